//! Whether a name can be one: identifier, keyword, soft keyword, builtin.

use super::checks::Checks;
use crate::model::edits::CheckName;
use crate::selector::name::is_identifier;

/// Python 3.14's keywords (`keyword.kwlist`).
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// `keyword.softkwlist`.
const SOFT_KEYWORDS: [&str; 4] = ["_", "case", "match", "type"];

/// What `dir(builtins)` lists on Python 3.13, dunders left out.
const BUILTINS: &str = "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError \
BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError \
ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception ExceptionGroup \
FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning \
IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError \
ModuleNotFoundError NameError NotADirectoryError NotImplemented NotImplementedError OSError OverflowError \
PendingDeprecationWarning PermissionError ProcessLookupError PythonFinalizationError RecursionError ReferenceError \
ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError \
SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError \
UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError abs aiter all anext any ascii bin \
bool breakpoint bytearray bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod \
enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id input int isinstance \
issubclass iter len license list locals map max memoryview min next object oct open ord pow print property quit range \
repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip";

/// Whether a name has a meaning for Python itself: `__len__`.
pub(super) fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

/// Whether a class spells a name with its own in front: `__x` in `class C` is `_C__x`.
pub(super) fn is_private(name: &str) -> bool {
    name.starts_with("__") && !name.ends_with("__")
}

/// How `name` is spelled in a class, or outside of any.
pub(super) fn spelled(name: &str, class: Option<&str>) -> String {
    match class.map(|class| class.trim_start_matches('_')).filter(|class| !class.is_empty()) {
        Some(class) if is_private(name) => format!("_{class}{name}"),
        _ => name.to_owned(),
    }
}

/// Records whether `new` can be a name, and what it would hide. `is_attribute` says that it is only ever read after a dot,
/// where builtins are not looked for. `strangers` are places where a class would spell the name otherwise than its
/// definition.
pub(super) fn check(checks: &mut Checks<'_>, new: &str, is_attribute: bool, strangers: Vec<String>) {
    if !is_identifier(new) {
        checks.fail(CheckName::Identifier, format!("{new:?} is no identifier"), Vec::new());
    } else if KEYWORDS.contains(&new) {
        checks.fail(CheckName::Identifier, format!("`{new}` is a keyword"), Vec::new());
    } else {
        checks.pass(CheckName::Identifier, format!("`{new}` is an identifier and no keyword"));
    }
    if SOFT_KEYWORDS.contains(&new) {
        checks.fail(CheckName::Shadowing, format!("`{new}` is a soft keyword"), Vec::new());
    } else if is_dunder(new) {
        checks.fail(CheckName::Shadowing, format!("`{new}` has a meaning for Python itself"), Vec::new());
    } else if !is_attribute && BUILTINS.split(' ').any(|name| name == new) {
        checks.fail(CheckName::Shadowing, format!("`{new}` would hide the builtin"), Vec::new());
    } else if !strangers.is_empty() {
        let wrong =
            "classes put their own name before one that begins with `__`, so that it would be several";
        checks.none_of(CheckName::Shadowing, strangers, "", wrong);
    } else {
        checks.pass(CheckName::Shadowing, format!("`{new}` hides no builtin and is no soft keyword"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_python_knows_or_spells_otherwise() {
        for (name, dunder, private) in [
            ("__len__", true, false),
            ("__x", false, true),
            ("__x_", false, true),
            ("_x", false, false),
            ("____", false, false),
            ("x__", false, false),
        ] {
            assert_eq!((is_dunder(name), is_private(name)), (dunder, private), "{name}");
        }
        assert_eq!(spelled("__x", Some("_C")), "_C__x");
        assert_eq!(spelled("__x", Some("__")), "__x");
        assert_eq!(spelled("__x", None), "__x");
        assert_eq!(spelled("_x", Some("C")), "_x");
    }
}
