//! Rule 4: parse first. A file with a syntax error owes at least what it owed before.

use super::code::Code;
use super::judge::{FileView, Side};
use crate::model::request::Severity;

/// Words of a server about a text that it cannot read.
const WORDS: [&str; 8] = [
    "Expected ",
    "ndent",
    "was not closed",
    "nvalid character",
    "nvalid expression",
    "nterminated",
    "Inconsistent use of tabs",
    "is not closed",
];

/// Whether a file cannot be read as Python: the server says so in words of no rule, and the parser agrees or the words are clear.
pub(super) fn is_broken(view: &FileView<'_>, code: Option<&Code>) -> bool {
    let errors = view.bare.unwrap_or(view.found).iter();
    errors.filter(|item| item.rule.is_none() && item.severity == Severity::Error).any(|item| {
        code.is_some_and(|code| code.has_error) || WORDS.iter().any(|word| item.message.contains(word))
    })
}

/// How many files cannot be read any more.
pub(super) fn added(base: &Side<'_>, head: &Side<'_>) -> u32 {
    let broken = |side: &Side<'_>| {
        side.seen()
            .filter(|(name, code)| side.view(name).is_some_and(|view| is_broken(view, Some(code))))
            .count()
    };
    u32::try_from(broken(head).saturating_sub(broken(base))).unwrap_or(u32::MAX)
}
