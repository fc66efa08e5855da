//! Mocks: objects that answer for any name, and stand in for objects of other classes.
//!
//! `Mock(wraps=C()).go()` runs `C.go`, so an attribute of a mock is unresolved; unless the mock is seen to be made without
//! anything to wrap, or the attribute is only looked into (`mock.go.assert_called_once()`), which runs nothing: then it is the
//! mock's own. A rename counts such attributes, too: what the test hands the mock to calls it by the member's name.

use super::explainer::Explainer;
use super::{Token, offset_of};
use crate::lsp::LspLocation;
use crate::python::classes::Class;
use crate::python::usage::{TokenUse, Usage};

/// Modules whose classes with methods of [`super::receivers::ANY_NAME`] are mocks: the standard library's, and the package on PyPI.
const MOCK_MODULES: [&str; 3] = ["unittest.mock", "mock", "mock.mock"];

/// The position of the parameter `wraps` of `unittest.mock.Mock`, from 0.
const WRAPS_POSITION: usize = 3;

/// What gives a mock attributes other than by an assignment that is seen.
const SETTERS: [&str; 3] = ["configure_mock", "attach_mock", "setattr"];

/// Attributes that every mock has of its own, and hardly any function: what is before the dot is a mock, not what it stands for.
const OWN_ATTRIBUTES: [&str; 18] = [
    "assert_any_await",
    "assert_any_call",
    "assert_awaited",
    "assert_awaited_once",
    "assert_awaited_once_with",
    "assert_awaited_with",
    "assert_called",
    "assert_called_once",
    "assert_called_once_with",
    "assert_called_with",
    "assert_has_calls",
    "assert_not_called",
    "call_args",
    "call_args_list",
    "call_count",
    "mock_calls",
    "return_value",
    "side_effect",
];

/// Whether a token is followed by an attribute of [`OWN_ATTRIBUTES`].
fn is_looked_into(token: &Token) -> bool {
    let rest = token.document.text.get(token.span.end..).and_then(|rest| rest.strip_prefix('.'));
    let name = rest.and_then(|rest| rest.split(|c: char| c != '_' && !c.is_alphanumeric()).next());
    name.is_some_and(|name| OWN_ATTRIBUTES.contains(&name))
}

impl Explainer<'_> {
    /// Whether objects of a class are mocks. One may wrap an object of the symbol's class, or have its names set in its place.
    pub(super) fn is_mock(&self, class: &Class) -> bool {
        let mut order = self.classes.with_ancestors(class);
        order.any(|class| {
            MOCK_MODULES.contains(&class.id().module.as_str()) && super::receivers::answers_any_name(&class)
        })
    }

    /// Whether an attribute of a mock that a variable holds, defined at these places, cannot be the symbol.
    pub(super) fn is_of_mock(&self, token: &Token, variable: &[LspLocation]) -> bool {
        is_looked_into(token) || self.wraps_nothing(token, variable)
    }

    /// Whether a mock is its own: each of these places of the variable that holds it assigns a new mock that wraps nothing, and
    /// nothing in the file gives it the symbol.
    fn wraps_nothing(&self, token: &Token, variable: &[LspLocation]) -> bool {
        let document = &token.document;
        let usage = Usage::of(&document.text);
        let is_new = |place: &LspLocation| {
            let made = offset_of(self.cx, place)
                .filter(|(file, _)| file.path == document.path)
                .and_then(|(_, offset)| usage.assigned_call(offset));
            made.is_some_and(|made| {
                !made.has_spread
                    && made.positional <= WRAPS_POSITION
                    && !made.keywords.iter().any(|name| name == "wraps" || *name == self.symbol.name)
                    && self
                        .classes
                        .class_named(&document.path, &made.function)
                        .is_some_and(|class| self.is_mock(&class))
            })
        };
        let is_handed_on = || {
            self.claimed.iter().filter(|place| place.path == document.path).any(|place| {
                let offset = offset_of(self.cx, place);
                offset.is_some_and(|(_, offset)| {
                    matches!(usage.of_token(offset), TokenUse::Passed | TokenUse::Assigned(_))
                })
            })
        };
        !variable.is_empty()
            && variable.iter().all(is_new)
            && !SETTERS.iter().any(|name| document.text.contains(name))
            && !is_handed_on()
    }
}
