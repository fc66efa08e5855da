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

/// Records whether `new` can be a name, and what it would hide. `is_attribute` says that it is only ever read after a dot,
/// where builtins are not looked for.
pub(super) fn check(checks: &mut Checks<'_>, new: &str, is_attribute: bool) {
    if !is_identifier(new) {
        checks.fail(CheckName::Identifier, format!("{new:?} is no identifier"), Vec::new());
    } else if KEYWORDS.contains(&new) {
        checks.fail(CheckName::Identifier, format!("`{new}` is a keyword"), Vec::new());
    } else {
        checks.pass(CheckName::Identifier, format!("`{new}` is an identifier and no keyword"));
    }
    if SOFT_KEYWORDS.contains(&new) {
        checks.fail(CheckName::Shadowing, format!("`{new}` is a soft keyword"), Vec::new());
    } else if !is_attribute && BUILTINS.split(' ').any(|name| name == new) {
        checks.fail(CheckName::Shadowing, format!("`{new}` would hide the builtin"), Vec::new());
    } else {
        checks.pass(CheckName::Shadowing, format!("`{new}` hides no builtin and is no soft keyword"));
    }
}
