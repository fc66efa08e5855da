//! Checks whether a new name is valid: identifier, keyword, soft keyword, builtin.

use super::checks::Checks;
use crate::model::edits::CheckName;
use crate::python::stdlib::is_builtin;
use crate::selector::name::is_identifier;
use crate::text::names::is_dunder;

/// Python 3.14's keywords (`keyword.kwlist`).
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// `keyword.softkwlist`.
const SOFT_KEYWORDS: [&str; 4] = ["_", "case", "match", "type"];

/// Records whether `new` is a valid name, and what it would shadow. `is_attribute`: the name is only used after a
/// dot, where builtins are not looked up. `mangled_places`: the places where the name would be mangled differently
/// than in its definition.
pub(super) fn check(checks: &mut Checks<'_>, new: &str, is_attribute: bool, mangled_places: Vec<String>) {
    check_identifier(checks, new);
    if SOFT_KEYWORDS.contains(&new) {
        checks.fail(CheckName::Shadowing, format!("`{new}` is a soft keyword"), Vec::new());
    } else if is_dunder(new) {
        checks.fail(CheckName::Shadowing, format!("`{new}` has a special meaning in Python"), Vec::new());
    } else if !is_attribute && is_builtin(new) {
        checks.fail(CheckName::Shadowing, format!("`{new}` would hide the builtin"), Vec::new());
    } else if !mangled_places.is_empty() {
        let wrong = "Python mangles names that begin with `__` with the name of the class, so that it would be several names";
        checks.fail_if_any(CheckName::Shadowing, mangled_places, "", wrong);
    } else {
        checks.pass(CheckName::Shadowing, format!("`{new}` hides no builtin and is no soft keyword"));
    }
}

/// Records whether every part of a dotted name is an identifier and no keyword.
pub(super) fn check_identifiers(checks: &mut Checks<'_>, dotted: &str) {
    let is_wrong = |part: &&str| !is_identifier(part) || KEYWORDS.contains(part);
    let first = dotted.split('.').find(is_wrong);
    check_identifier(checks, first.or_else(|| dotted.rsplit('.').next()).unwrap_or_default());
}

/// Records whether `new` is an identifier and no keyword. This stops `--apply` before the server is asked.
pub(super) fn check_identifier(checks: &mut Checks<'_>, new: &str) {
    let wrong = if !is_identifier(new) {
        format!("{new:?} is not an identifier")
    } else if KEYWORDS.contains(&new) {
        format!("`{new}` is a keyword")
    } else {
        checks.pass(CheckName::Identifier, format!("`{new}` is an identifier and no keyword"));
        return;
    };
    checks.fail(CheckName::Identifier, wrong, Vec::new());
    checks.stops_early(CheckName::Identifier);
}
