//! Colours. `anstream` takes them out again where there is no terminal or `NO_COLOR` is set.

use anstyle::{AnsiColor, Color};

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
    /// The text with its colour around it.
    pub(crate) fn paint(self, text: impl std::fmt::Display) -> String {
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
