//! Writes HTML. Text is escaped; only constants and numbers are written as they are.

use std::fmt::Write as _;

use crate::cli::output::screen::quoted;

/// A page, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup. A `&'static str` cannot come from a file.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds a number, such as a coordinate.
    pub(super) fn number(&mut self, value: f64) -> &mut Self {
        self.0.push_str(&number(value));
        self
    }

    /// Adds text, for an element or a quoted attribute. Characters that change how others are shown are made visible.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for c in quoted(text).chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
        self
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// A number with at most four decimals.
pub(super) fn number(value: f64) -> String {
    let mut text = String::new();
    // Zero must not become "-0".
    let _ = write!(text, "{}", (value * 1e4).round() / 1e4 + 0.0);
    text
}

/// A number with its sign, so that color is not the only sign of it.
pub(super) fn signed(value: f64) -> String {
    match number(value) {
        text if text.starts_with('-') => text.replacen('-', "\u{2212}", 1),
        text if text == "0" => text,
        text => format!("+{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut html = Html::default();
        html.text("<img src=x onerror='alert(1)'>&\"\u{202e}\u{7}\n");
        let shown = "&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;&quot;\\u{202e}\\x07\n";
        assert_eq!(html.finish(), shown);
    }

    #[test]
    fn numbers() {
        let shown = [0.0, -0.0, -0.000_01, 0.5, -0.5, 1.0 / 3.0, 12.0].map(signed);
        assert_eq!(shown, ["0", "0", "0", "+0.5", "−0.5", "+0.3333", "+12"]);
    }
}
