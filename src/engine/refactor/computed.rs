//! Code that computes a name, or makes objects by the names of keywords, where the rename cannot see that it means the symbol: an enum
//! that is looked up by a computed name, a registry by `__name__`, a mock with an attribute of the name.

use std::sync::Arc;

use super::collision::Renaming;
use super::spelled::Reason;
use crate::engine::context::RequestContext;
use crate::engine::occurrences::Explained;
use crate::path::AbsPath;
use crate::python::classes::{Class, Classes};
use crate::python::occurrences::{OccurrenceKind, TextOccurrence};
use crate::python::outline::{Definition, Outline, Span};
use crate::python::roles::parameter_at;
use crate::python::usage::Usage;
use crate::tape::IoKind;
use crate::text::names::{is_in_name, whole_names};
use crate::workspace::files::{Document, Files as _};

/// Why a place is open that computes the name: no rename changes it.
pub(super) const COMPUTED: Reason = "members of the enum are looked up by a computed name";
/// See [`COMPUTED`].
pub(super) const REGISTERED: Reason = "it is registered by its `__name__`";

const PATCHED: Reason = "`patch.multiple` sets what a keyword names";
const MADE: Reason = "a keyword makes an attribute of that name";
const SET: Reason = "a parameter of that name may be set as an attribute";

/// What makes an object with the attributes that its keywords name.
const MAKERS: [&str; 5] = ["Mock", "MagicMock", "AsyncMock", "NonCallableMock", "SimpleNamespace"];

/// Calls that keep something under a name.
const REGISTERING: [&str; 4] = ["setdefault(", "register(", "add(", "append("];

/// The occurrences of the name, and the places that compute it, with the reasons.
pub(super) fn computed(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    explained: &Explained,
    written: &[(Arc<Document>, Vec<TextOccurrence>)],
) -> Vec<(Arc<Document>, Span, Reason)> {
    let mut found = Vec::new();
    for (document, all) in written {
        for one in all {
            let span = one.span();
            let why = match one.kind {
                OccurrenceKind::Keyword => keyword(&document.text, &span, explained.is_member),
                OccurrenceKind::Identifier if explained.is_member && is_set(&document.text, &span) => {
                    Some(SET)
                }
                _ => None,
            };
            found.extend(why.map(|why| (document.clone(), span, why)));
        }
    }
    let (document, offset) = &renaming.definition;
    let query = ("computed names", &document.path, offset);
    let computing = cx.state.tape.query_rare(IoKind::Guard, &query, || {
        let computing = computing(cx, &document.path, *offset);
        (!computing.is_empty()).then_some(computing)
    });
    for (path, span, is_enum) in computing.unwrap_or_default() {
        let Ok(document) = cx.state.files.read(&path) else { continue };
        found.push((document, span, if is_enum { COMPUTED } else { REGISTERED }));
    }
    found
}

/// Why the keyword of a call may be the symbol.
fn keyword(text: &str, span: &Span, is_member: bool) -> Option<Reason> {
    let callee = Usage::of(text).keyword(span.start)?.callee?;
    if text[..callee.end].ends_with("patch.multiple") {
        return Some(PATCHED);
    }
    (is_member && MAKERS.contains(&&text[callee])).then_some(MADE)
}

/// Whether a name is a parameter of a function that sets all of its variables: `for key, value in locals().items(): setattr(…)`.
fn is_set(text: &str, span: &Span) -> bool {
    if !text.contains("locals()") {
        return false;
    }
    let Some(function) = parameter_at(text, span.start).and_then(|parameter| parameter.function) else {
        return false;
    };
    let outline = Outline::parse(text);
    let body = outline.definitions.iter().find(|one| one.name_span == function);
    let body = body.and_then(|one| text.get(one.body.clone()?)).unwrap_or_default();
    body.contains("locals()")
        && ["setattr(", "__dict__", "vars("].iter().any(|setting| body.contains(setting))
}

/// The places that compute the name of the definition at an offset, and whether it is the member of an enum.
fn computing(cx: &RequestContext<'_>, path: &AbsPath, offset: usize) -> Vec<(AbsPath, Span, bool)> {
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    let Some(defined) = classes.defined_at(path, offset) else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(class) = defined.class.as_ref().filter(|class| classes.is_enumeration(class)) {
        let snapshot = &cx.state.inputs.snapshot;
        for path in cx.state.files_with_word(class.name()).iter().map(|path| snapshot.absolute(path)) {
            let Ok(document) = cx.state.files.read(&path) else { continue };
            let of_it = looked_up(&document.text, class.name());
            found.extend(of_it.into_iter().map(|span| (path.clone(), span, true)));
        }
        let (document, span) = (class.document(), class.span());
        for own in looked_up(&document.text[span.clone()], "cls") {
            let own = own.start + span.start..own.end + span.start;
            found.push((document.path.clone(), own, true));
        }
    }
    for (document, span) in registering(cx, &classes, path, offset, &defined.decorators) {
        found.extend(key_by_name(&document.text, &span).map(|key| (document.path.clone(), key, false)));
    }
    found
}

/// Where members of an enum are looked up by a name that is not written there: `Color[text.upper()]`, `Color.__members__`.
fn looked_up(text: &str, class: &str) -> Vec<Span> {
    let is_computed = |span: &Span| {
        let after = &text[span.end..];
        let index = after.strip_prefix('[').map(str::trim_start);
        index.is_some_and(|index| !index.starts_with(['"', '\''])) || after.starts_with(".__members__")
    };
    whole_names(text, class).filter(is_computed).collect()
}

/// The functions that see a definition when it is made: its decorators, and what its base classes do with new subclasses.
fn registering(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    path: &AbsPath,
    offset: usize,
    decorators: &[String],
) -> Vec<(Arc<Document>, Span)> {
    let function_at = |path: &AbsPath, offset: usize| {
        let document = cx.state.files.read(path).ok().filter(|_| cx.state.is_in_workspace(path))?;
        let outline = Outline::parse(&document.text);
        let is_it = |one: &&Definition| one.name_span.start == offset && one.kind.is_function();
        let one = outline.definitions.iter().find(is_it)?;
        Some((document, one.body.clone()?))
    };
    let mut found = Vec::new();
    for decorator in decorators.iter().filter(|decorator| !decorator.is_empty()) {
        let chain: Vec<String> = decorator.split('.').map(str::to_owned).collect();
        let at = classes.resolve(path, &chain).into_iter();
        found.extend(at.filter_map(|(path, offset)| function_at(&path, offset)));
    }
    let above = classes.class_at(path, offset).map(|class| classes.ancestors(&class)).unwrap_or_default();
    let hooks = above.iter().flat_map(|class: &Class| {
        class.members("__init_subclass__").map(|span| (class.document().path.clone(), span.start))
    });
    found.extend(hooks.filter_map(|(path, offset)| function_at(&path, offset)));
    found
}

/// Where a part of a text keeps something under its name: `registry[cls.__name__] = cls`, `setattr(x, f.__name__, f)`.
fn key_by_name(text: &str, part: &Span) -> Option<Span> {
    // More than any function has.
    const MAX_NAMES: usize = 1_000;
    let is_part = |c: char| is_in_name(c) || matches!(c, '.' | '(' | ')');
    let in_text = |span: Span| span.start + part.start..span.end + part.start;
    let text = text.get(part.clone())?;
    let is_key = |span: &Span| {
        let start = text[..span.start].rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
        let (before, after) = (text[..start].trim_end(), text[span.end..].trim_start_matches(is_part));
        // The opening bracket of a call belongs to what was taken for the expression.
        let taken = &text[start..span.start];
        let is_registered = REGISTERING.iter().any(|call| taken.contains(call));
        let line = before.lines().next_back().unwrap_or_default();
        let is_set = before.ends_with(',') && line.contains("setattr(");
        let is_in_dict = before.ends_with(['{', ',']) && after.starts_with(": ");
        let variable = line.trim_end().strip_suffix('=').map(|name| name.trim().to_owned());
        let is_index = variable.is_some_and(|name| {
            name.chars().all(is_in_name) && text[span.end..].contains(&format!("[{name}]"))
        });
        before.ends_with('[') || is_registered || is_set || is_in_dict || is_index
    };
    whole_names(text, "__name__").take(MAX_NAMES).find(is_key).map(in_text)
}

#[cfg(test)]
mod tests {
    use super::super::spelled::tests::at;
    use super::*;

    #[test]
    fn keywords_that_name_attributes() {
        for (text, expected) in [
            ("mock.patch.multiple('m', name=1)", Some(PATCHED)),
            ("@patch.multiple(A, other=f(1), name=g(2))", Some(PATCHED)),
            ("patch.multiple(A, other=f(name=1))", None),
            ("patch.object(A, name=1)", None),
            ("Mock(name=1)", Some(MADE)),
            ("types.SimpleNamespace(a=(1, 2), name=1)", Some(MADE)),
            ("name=1", None),
        ] {
            assert_eq!(keyword(text, &at(text, "name"), true), expected, "{text}");
        }
        assert_eq!(keyword("Mock(name=1)", &(5..9), false), None);
    }

    #[test]
    fn parameters_that_are_set() {
        let text = "def f(self, name=1):\n    for k, v in locals().items(): setattr(x, k, v)\n";
        assert!(is_set(text, &at(text, "name")));
        let text = "def f(self, name=1):\n    print(locals())\n";
        assert!(!is_set(text, &at(text, "name")));
    }

    #[test]
    fn enums_that_are_looked_up() {
        for (text, count) in [
            ("Color[text.upper()]", 1),
            ("Color['RED']", 0),
            ("Color.__members__[x]", 1),
            ("Color(x)", 0),
            ("OtherColor[x]", 0),
        ] {
            assert_eq!(looked_up(text, "Color").len(), count, "{text}");
        }
    }

    #[test]
    fn keys_that_are_names() {
        for (text, expected) in [
            ("REGISTRY[f.__name__] = f", true),
            ("Base.registry[cls.__name__.lower()] = cls", true),
            ("REGISTRY.setdefault(f.__name__, f)", true),
            ("all.append(f.__name__)", true),
            ("setattr(target, f.__name__, f)", true),
            ("return {f.__name__: f}", true),
            ("name = f.__name__\nREGISTRY[name] = f", true),
            ("name = f.__name__\nprint(name)", false),
            ("print(f'{f.__name__}')", false),
            ("print(f'{f.__name__:>10}')", false),
            ("wrapper.__name__ = f.__name__", false),
            ("log(f.__name__)", false),
        ] {
            assert_eq!(key_by_name(text, &(0..text.len())).is_some(), expected, "{text}");
        }
    }
}
