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

#[cfg(test)]
mod tests {
    use crate::reward::testing::Case;

    #[test]
    fn a_file_that_cannot_be_read_owes_what_it_owed() {
        let base = "def f(x):\n    return g(x) #! r\n\ndef h(x):\n    return k(x) #! s\n";
        let broken = Case::of(base, "def (:\n    return g(x) #!\n\ndef h(x):\n    return k(x)\n");
        assert!(broken.drop() < 0.0, "{}", broken.drop());
        assert_eq!(broken.judged().integrity.parse_errors, 1);
    }

    #[test]
    fn a_file_that_can_be_read_again_is_repaired() {
        let repaired = Case::of("def f(x:\n    return g(x) #!\n", "def f(x):\n    return g(x)\n");
        assert_eq!((repaired.drop(), repaired.judged().integrity.parse_errors), (1.0, 0));
    }
}
