//! Rule 4: parse first. In a file with a syntax error, all earlier diagnostics stay outstanding.

use super::code::Code;
use super::judge::{FileView, SideCode};
use crate::model::request::Severity;

/// Parts of the messages by which a server reports text that it cannot parse.
const SYNTAX_MESSAGES: [&str; 8] = [
    "Expected ",
    "ndent",
    "was not closed",
    "nvalid character",
    "nvalid expression",
    "nterminated",
    "Inconsistent use of tabs",
    "is not closed",
];

/// Whether a file cannot be parsed as Python: the server reports an error without a rule, and either the parser agrees or the
/// message is unambiguous.
pub(super) fn is_broken(view: &FileView<'_>, code: Option<&Code>) -> bool {
    let errors = view.bare.unwrap_or(view.found).iter();
    errors.filter(|item| item.rule.is_none() && item.severity == Severity::Error).any(|item| {
        code.is_some_and(|code| code.has_error)
            || SYNTAX_MESSAGES.iter().any(|word| item.message.contains(word))
    })
}

/// How many more files have syntax errors than before.
pub(super) fn added(base: &SideCode<'_>, head: &SideCode<'_>) -> u32 {
    let broken = |side: &SideCode<'_>| {
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
    fn an_unparsable_file_keeps_its_diagnostics_outstanding() {
        let base = "def f(x):\n    return g(x) #! r\n\ndef h(x):\n    return k(x) #! s\n";
        let broken = Case::of(base, "def (:\n    return g(x) #!\n\ndef h(x):\n    return k(x)\n");
        assert!(broken.drop() < 0.0, "{}", broken.drop());
        assert_eq!(broken.judged().integrity.parse_errors, 1);
    }

    #[test]
    fn a_file_that_parses_again_is_repaired() {
        let repaired = Case::of("def f(x:\n    return g(x) #!\n", "def f(x):\n    return g(x)\n");
        assert_eq!((repaired.drop(), repaired.judged().integrity.parse_errors), (1.0, 0));
    }
}
