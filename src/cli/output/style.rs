//! Colors, if standard output is a terminal and `NO_COLOR` is not set.

use anstyle::{AnsiColor, Color};

use super::screen::screen;

/// Every escape sequence that [`Style::paint`] prints.
pub(super) const CODES: [&str; 7] =
    ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];

/// The role of a text, which determines its color.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Path,
    Error,
    Warning,
    Quiet,
    Removed,
    Hint,
}

impl Style {
    /// The text in its color, if colors are printed.
    pub(crate) fn paint(self, text: impl std::fmt::Display) -> String {
        if screen().is_styled { self.painted(text) } else { text.to_string() }
    }

    fn painted(self, text: impl std::fmt::Display) -> String {
        let color = |color: AnsiColor| anstyle::Style::new().fg_color(Some(Color::Ansi(color)));
        let style = match self {
            Self::Path => color(AnsiColor::Cyan),
            Self::Error => color(AnsiColor::Red).bold(),
            Self::Warning => color(AnsiColor::Yellow).bold(),
            Self::Quiet => anstyle::Style::new().dimmed(),
            Self::Removed => color(AnsiColor::Red),
            Self::Hint => color(AnsiColor::Green),
        };
        format!("{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lists_every_printed_sequence() {
        let all = [Style::Path, Style::Error, Style::Warning, Style::Quiet, Style::Removed, Style::Hint];
        for style in all {
            let mut painted = style.painted("");
            for code in CODES {
                painted = painted.replace(code, "");
            }
            assert_eq!(painted, "", "{style:?}");
        }
    }
}
