//! Decides which requests may share a worker.
//!
//! The types that Pyright infers can depend on earlier requests, so an answer that depends on inferred types needs a
//! worker without any (see [`Isolation`]). A name that is neither an attribute nor a keyword argument needs none: its
//! definition depends on the scopes around it. That is decided by the text around the name alone; where the text
//! leaves it open, the name counts as dependent on types.
//!
//! None of this is recorded on the tape, because it affects only the isolation of the request, not the answer.

use std::ops::Range;

use super::context::RequestContext;
use super::pool::Isolation;
use super::request_state::{RequestState, RequestTarget};
use crate::lsp::{LspLocation, Profile};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::python::decorated::is_decorated_function;
use crate::workspace::files::Files as _;

/// The isolation that a request needs.
pub(super) fn isolation(request: &Request, state: &RequestState, server: ServerKind) -> Isolation {
    match request.cmd {
        // Scans do not cover what such a file imports from its own folder.
        _ if !state.is_target_covered() => Isolation::Fresh,
        Command::Symbols | Command::Locate => Isolation::Shared,
        cmd if cmd.edits() => Isolation::NeverSynced,
        _ if Profile::of(server).is_order_independent => Isolation::Shared,
        Command::Definition | Command::Declaration if state.is_scoped() => Isolation::Shared,
        _ => Isolation::Reset,
    }
}

impl RequestState {
    /// Whether the target's name is neither an attribute nor a keyword argument. A target that is not a name is
    /// scoped: nothing is inferred for it.
    pub(super) fn is_scoped(&self) -> bool {
        self.target().is_ok_and(is_target_scoped)
    }
}

fn is_target_scoped(target: &RequestTarget) -> bool {
    let text = &target.document.text;
    let name = target.name_span.clone().unwrap_or_else(|| word_around(text, target.offset));
    stands_alone(text, &name)
}

/// Whether a response for a scoped name depends on inferred types after all: for a decorated function, Pyright returns
/// the overloads of what the decorators make of it.
pub(super) fn needs_inference(cx: &RequestContext<'_>, places: &[LspLocation]) -> bool {
    if Profile::of(cx.settings.server).is_order_independent {
        return false;
    }
    places.iter().any(|place| {
        let Ok(document) = cx.state.files.read(&place.path) else { return false };
        let unit = cx.locations.server_unit;
        let offset = document.lines.offset(&document.text, place.range.start, unit);
        offset.is_some_and(|offset| is_decorated_function(&document.text, offset))
    })
}

/// The identifier around an offset, such as one in a string or a comment; possibly empty.
fn word_around(text: &str, offset: usize) -> Range<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let start = text[..offset].trim_end_matches(is_part).len();
    let end = text.len() - text[offset..].trim_start_matches(is_part).len();
    start..end
}

/// Whether a name certainly follows no dot and precedes no `=`, across line ends and comments.
fn stands_alone(text: &str, name: &Range<usize>) -> bool {
    !may_follow_dot(&text[..name.start]) && !may_precede_equals_sign(&text[name.end..])
}

/// Whether the last token of a text may be a dot. A `#` may begin a comment or be part of a string, so both are
/// considered.
fn may_follow_dot(before: &str) -> bool {
    for line in before.rsplit(['\n', '\r']) {
        let may_end = line.match_indices('#').map(|(at, _)| &line[..at]).chain([line]);
        let mut is_blank = false;
        for code in may_end.map(|code| code.trim_end().trim_end_matches('\\').trim_end()) {
            if code.ends_with('.') {
                return true;
            }
            is_blank |= code.is_empty();
        }
        if !is_blank {
            return false;
        }
    }
    false
}

/// Whether the first token of a text may be `=`.
fn may_precede_equals_sign(after: &str) -> bool {
    for line in after.split(['\n', '\r']) {
        let code = line.trim_start();
        if !code.is_empty() && !code.starts_with(['#', '\\']) {
            return code.starts_with('=') && !code.starts_with("==");
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the name between `<` and `>` stands alone.
    fn alone(marked: &str) -> bool {
        let start = marked.find('<').unwrap();
        let end = marked.find('>').unwrap() - 1;
        stands_alone(&marked.replace(['<', '>'], ""), &(start..end))
    }

    #[test]
    fn names_that_stand_alone() {
        for text in [
            "<x>",
            "f(<x>)",
            "<x> == 1",
            "import <x>",
            "from a import <x>",
            "a\n<x>()",
            "a. b\n<x>\n",
            "x = <y>",
            "f(<x>\n    == 2)",
            "# a comment\n<x>",
            "def <f>(): ...",
            "[<x> for y in z]",
            "'a' # b\n<x>",
        ] {
            assert!(alone(text), "{text}");
        }
    }

    #[test]
    fn attributes_and_keyword_arguments_do_not() {
        for text in [
            "a.<x>",
            "a . <x>",
            "a.\\\n<x>",
            "a.\\\n  # not a comment\n<x>",
            "(a.\n<x>)",
            "(a. # why\n <x>)",
            "(a. # why\n\n# more\n <x>)",
            "(a.\r<x>)",
            "(a. # why\r<x>)",
            "(a.\r\n<x>)",
            "f(<x>=1)",
            "f(<x> =1)",
            "f(<x>\n=1)",
            "f(<x> # why\n  # more\n = 1)",
            "f(<x>\r# why\r=1)",
            "f(<x>\\\n=1)",
            "case W(<x>=y): pass",
            "'A.<x>'",
            "# type: a.<x>",
            "a.\u{c}<x>",
            "(a.#'#\n<x>)",
        ] {
            assert!(!alone(text), "{text}");
        }
    }

    #[test]
    fn the_word_around_an_offset() {
        assert_eq!(word_around("\"A.bc\" x", 4), 3..5);
        assert_eq!(word_around("a  b", 2), 2..2);
    }
}
