//! Safe output to a terminal.
//!
//! Source text, paths and server messages may contain characters that control a terminal: they move the cursor, set the
//! clipboard, or reorder a line. In a pipe and in JSON every text is exact. On a terminal such characters are shown as
//! escapes. All output goes through [`Screen::escape`], which lets only lanser's own colors and links pass; the texts of a
//! bundle go through [`bundle_for_terminal`] before that.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use serde_json::Value;

use super::style::CODES;
use crate::model::bundle::Bundle;

/// Standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Whether it is a terminal.
    pub(crate) is_terminal: bool,
    /// Whether colors and links are printed.
    pub(crate) is_styled: bool,
}

/// Standard output of this process, detected once.
pub(crate) fn screen() -> Screen {
    static SCREEN: OnceLock<Screen> = OnceLock::new();
    *SCREEN.get_or_init(|| {
        let choice = anstream::AutoStream::choice(&io::stdout());
        Screen {
            is_terminal: io::stdout().is_terminal(),
            is_styled: !matches!(choice, anstream::ColorChoice::Never),
        }
    })
}

/// Writes a text to standard output.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(screen().escape(text).as_bytes())?;
    out.flush()
}

/// Writes JSON to standard output. On a terminal, control characters are escaped in JSON's own notation.
pub(crate) fn write_json(json: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match std::str::from_utf8(json) {
        Ok(text) if screen().is_terminal => out.write_all(escaped(text, json_escape).as_bytes())?,
        _ => out.write_all(json)?,
    }
    out.flush()
}

/// Text of files and servers, escaped if standard output is a terminal.
pub(crate) fn escape_for_terminal(text: &str) -> Cow<'_, str> {
    if screen().is_terminal { escaped(text, rust_escape) } else { Cow::Borrowed(text) }
}

/// The same for standard error, where text is always escaped.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    escaped(text, rust_escape)
}

/// A bundle whose texts are escaped if standard output is a terminal, so that none of them passes for lanser's own colors and links.
pub(crate) fn bundle_for_terminal(bundle: &Bundle) -> Cow<'_, Bundle> {
    if !screen().is_terminal {
        return Cow::Borrowed(bundle);
    }
    fn escape_all(value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(shown) = escaped(text, rust_escape) {
                    *text = shown;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(escape_all),
            Value::Object(members) => members.values_mut().for_each(escape_all),
            _ => {}
        }
    }
    let shown = serde_json::to_value(bundle).ok().and_then(|mut value| {
        escape_all(&mut value);
        serde_json::from_value(value).ok()
    });
    shown.map_or(Cow::Borrowed(bundle), Cow::Owned)
}

/// A message for standard error: escaped, except for lanser's own colors.
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    Screen { is_terminal: true, ..screen() }.escape(text)
}

impl Screen {
    /// The text with everything escaped that controls a terminal, except for lanser's own colors and links.
    fn escape(self, text: &str) -> Cow<'_, str> {
        if !self.is_terminal || !text.chars().any(is_harmful) {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(is_harmful) {
            let (before, from) = rest.split_at(at);
            shown.push_str(before);
            let length = if self.is_styled { own_code(from) } else { None };
            let length = length.unwrap_or_else(|| {
                let harmful = from.chars().next().unwrap_or_default();
                rust_escape(harmful, &mut shown);
                harmful.len_utf8()
            });
            if from.starts_with('\x1b') && length > 1 {
                shown.push_str(&from[..length]);
            }
            rest = &from[length..];
        }
        shown.push_str(rest);
        Cow::Owned(shown)
    }
}

/// The length of the color code or hyperlink printed by lanser itself that `text` begins with.
fn own_code(text: &str) -> Option<usize> {
    if let Some(code) = CODES.iter().find(|code| text.starts_with(**code)) {
        return Some(code.len());
    }
    let target = text.strip_prefix("\x1b]8;;")?;
    let length = target.find("\x1b\\")?;
    let is_own = target[..length].is_empty()
        || target.starts_with("file://") && target[..length].chars().all(|c| c.is_ascii_graphic());
    is_own.then_some(5 + length + 2)
}

/// Whether a character may control a terminal, change how others are shown, or hold a text that is not seen: control characters
/// except tab and line feed, the marks that set the direction of text (CVE-2021-42574), characters without width, variation
/// selectors and tags, which a model may read.
fn is_harmful(c: char) -> bool {
    let is_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_invisible = matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    let is_line_end = matches!(c, '\u{2028}' | '\u{2029}');
    c.is_control() && c != '\t' && c != '\n' || is_direction || is_invisible || is_line_end
}

fn escaped(text: &str, escape: fn(char, &mut String)) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmful(c) { escape(c, &mut shown) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Rust's notation: `\x1b`, `\u{202e}`.
fn rust_escape(c: char, to: &mut String) {
    use std::fmt::Write as _;
    let written = match u32::from(c) {
        code @ 0..0x80 => write!(to, "\\x{code:02x}"),
        code => write!(to, "\\u{{{code:x}}}"),
    };
    written.expect("a text can be written to");
}

/// JSON's notation: `\u202e`, and two of them for a character beyond the basic multilingual plane.
fn json_escape(c: char, to: &mut String) {
    use std::fmt::Write as _;
    for unit in c.encode_utf16(&mut [0; 2]) {
        write!(to, "\\u{unit:04x}").expect("a text can be written to");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: Screen = Screen { is_terminal: true, is_styled: true };

    #[test]
    fn control_characters_are_escaped_except_for_own_colors_and_links() {
        let hostile = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\rd\u{8}e\u{9b}2Jf\u{202e}g\u{2066}h\x7f";
        let shown = "a\\x1b]52;c;aGk=\\x07b\\x1b[2Jc\\x0dd\\x08e\\u{9b}2Jf\\u{202e}g\\u{2066}h\\x7f";
        assert_eq!(TERMINAL.escape(hostile), shown);
        assert_eq!(quoted(hostile), shown);
        assert_eq!(Screen { is_terminal: false, is_styled: false }.escape(hostile), hostile);
        let own = "\x1b]8;;file:///w/a.py\x1b\\\x1b[36ma.py:1:1\x1b[0m\x1b]8;;\x1b\\\ttext\n";
        assert_eq!(TERMINAL.escape(own), own);
        assert!(!Screen { is_terminal: true, is_styled: false }.escape(own).contains('\x1b'));
        for other in
            ["\x1b]8;;http://x\x1b\\", "\x1b]8;;file://\x07\x1b\\", "\x1b[8m", "\x1b]8;;file://", "\x1b"]
        {
            assert!(!TERMINAL.escape(other).contains('\x1b'), "{other:?}");
        }
    }

    #[test]
    fn escaped_json_is_equivalent() {
        let json = serde_json::to_string("\u{9b}2J\u{202e}\x7f\x1b\u{e0041}\u{200b}").unwrap();
        let shown = escaped(&json, json_escape);
        assert!(!shown.chars().any(is_harmful));
        let (before, after): (String, String) =
            (serde_json::from_str(&json).unwrap(), serde_json::from_str(&shown).unwrap());
        assert_eq!(before, after);
    }
}
