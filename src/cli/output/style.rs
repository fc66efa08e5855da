//! Colours, where there is a terminal and `NO_COLOR` is not set.

use anstyle::{AnsiColor, Color};

use super::screen::screen;

/// Every sequence that [`Style::paint`] writes.
pub(super) const CODES: [&str; 7] =
    ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];

/// What a piece of text is.
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
    /// The text with its colour around it, if there are colours.
    pub(crate) fn paint(self, text: impl std::fmt::Display) -> String {
        if screen().is_styled { self.painted(text) } else { text.to_string() }
    }

    fn painted(self, text: impl std::fmt::Display) -> String {
        let colour = |colour: AnsiColor| anstyle::Style::new().fg_color(Some(Color::Ansi(colour)));
        let style = match self {
            Self::Path => colour(AnsiColor::Cyan),
            Self::Error => colour(AnsiColor::Red).bold(),
            Self::Warning => colour(AnsiColor::Yellow).bold(),
            Self::Quiet => anstyle::Style::new().dimmed(),
            Self::Removed => colour(AnsiColor::Red),
            Self::Hint => colour(AnsiColor::Green),
        };
        format!("{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_that_are_written() {
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
