//! Strings that spell the old name where a program may look it up: `"pkg.mod.name"`, the tables of a module's `__getattr__`, the
//! placeholders that a `TypedDict` fills, strings beside a `getattr` whose name is computed, or beside `__dict__`. No rule of the language says that they
//! are uses, so that the caller decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::collision::Renaming;
use crate::engine::context::RequestContext;
use crate::engine::occurrences::{Explained, offset_of};
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::occurrences::{OccurrenceKind, TextOccurrence, is_quoted, occurrences};
use crate::python::outline::{Outline, Span};
use crate::python::usage::{StringUse, Usage};
use crate::text::names::is_in_name;
use crate::workspace::files::{Document, Files as _};

/// Why a string may have to be renamed, to be followed by "in N places".
pub(super) type Reason = &'static str;

const FULL_NAME: Reason = "a string spells the full name";
const LAZY_EXPORT: Reason = "a string is in a module whose `__getattr__` may look it up";
const PLACEHOLDER: Reason = "a placeholder in a string is the key";
pub(super) const EXAMPLE: Reason = "an example in a docstring may use it";
const FORMATTED: Reason = "a placeholder of a string may name the attribute";
const MOCKED: Reason = "a string may name what a mock replaces";
const KEY: Reason = "a string may be the key";
const LOOKED_UP: Reason = "a string is in a file that looks names up";

/// Calls that look a name up, with the number of arguments before the name.
const LOOKUPS: [(&str, usize); 6] = [
    ("getattr(", 1),
    ("setattr(", 1),
    ("hasattr(", 1),
    ("delattr(", 1),
    ("attrgetter(", 0),
    ("methodcaller(", 0),
];

/// Dictionaries of names.
const NAMESPACES: [&str; 4] = ["globals()[", "globals().get(", "__dict__[", "__dict__.get("];

/// What gives attributes by their names, written in place or passed on: `state = self.__dict__.copy(); del state["name"]`.
const BY_NAME: [&str; 6] = ["__dict__", "__setattr__(", "__members__", "vars(", "asdict(", "model_dump("];

/// The files in which a name is written, with its occurrences.
pub(super) fn files_with_occurrences(
    cx: &RequestContext<'_>,
    name: &str,
) -> Vec<(Arc<Document>, Vec<TextOccurrence>)> {
    let snapshot = &cx.state.inputs.snapshot;
    let read = |path| cx.state.files.read(&snapshot.absolute(&path)).ok();
    let documents = cx.state.files_with_word(name).into_iter().filter_map(read);
    documents.map(|document| with_occurrences(document, name)).collect()
}

/// The files of the definitions, with the occurrences of a name.
pub(super) fn own_occurrences(
    renaming: &Renaming<'_>,
    name: &str,
) -> Vec<(Arc<Document>, Vec<TextOccurrence>)> {
    let documents: BTreeMap<&AbsPath, &Arc<Document>> =
        renaming.definitions().map(|(document, _)| (&document.path, document)).collect();
    documents.into_values().map(|document| with_occurrences(document.clone(), name)).collect()
}

fn with_occurrences(document: Arc<Document>, name: &str) -> (Arc<Document>, Vec<TextOccurrence>) {
    let found = occurrences(&document.text, document.digest, name);
    (document, found)
}

/// The strings that may have to be renamed, with the reasons.
pub(super) fn strings(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
    explained: &Explained,
    written: &[(Arc<Document>, Vec<TextOccurrence>)],
) -> Vec<(Arc<Document>, Span, Reason)> {
    let search = StringSearch::new(cx, renaming, explained);
    let mut found = Vec::new();
    for (document, all) in written {
        let strings: Vec<Span> =
            all.iter().filter(|one| one.kind == OccurrenceKind::String).map(|one| one.span()).collect();
        found.extend(
            search.of_file(document, strings).into_iter().map(|(span, why)| (document.clone(), span, why)),
        );
    }
    found
}

struct StringSearch<'s> {
    cx: &'s RequestContext<'s>,
    classes: Classes<'s>,
    /// The definitions of the symbol.
    definitions: BTreeSet<(AbsPath, usize)>,
    /// The files with references, if the symbol is the key of a `TypedDict`.
    with_keys: BTreeSet<&'s AbsPath>,
    is_key: bool,
    is_global: bool,
    explained: &'s Explained,
}

impl<'s> StringSearch<'s> {
    fn new(cx: &'s RequestContext<'_>, renaming: &Renaming<'_>, explained: &'s Explained) -> Self {
        let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
        let own = renaming.definitions().map(|(document, offset)| (document.path.clone(), *offset));
        let declared = explained.declarations.iter().filter_map(|place| offset_of(cx, place));
        let definitions =
            own.chain(declared.map(|(document, offset)| (document.path.clone(), offset))).collect();
        let (document, offset) = &renaming.definition;
        let defined = classes.defined_at(&document.path, *offset);
        let class = defined.and_then(|defined| defined.class);
        let is_key = class.is_some_and(|class| class.is_derived_from("TypedDict"));
        let with_keys = match is_key {
            true => explained.references.keys().map(|place| &place.path).collect(),
            false => BTreeSet::new(),
        };
        Self { cx, classes, definitions, with_keys, is_key, is_global: explained.is_by_name, explained }
    }

    fn of_file(&self, document: &Document, strings: Vec<Span>) -> Vec<(Span, Reason)> {
        let text = &document.text;
        let mut is_looking_up: Option<Option<Reason>> = None;
        let mut reason = |span: &Span| {
            let dotted = dotted(text, span);
            if !dotted.is_empty() {
                return dotted.iter().any(|name| self.is_full_name(name)).then_some(FULL_NAME);
            }
            if is_example(text, span) && (self.is_global || self.may_be_shown(document, span)) {
                return Some(EXAMPLE);
            }
            if is_patched(text, span) {
                return Some(MOCKED);
            }
            if !self.is_global && is_formatted(text, span) {
                return Some(FORMATTED);
            }
            if !is_quoted(text, span) {
                let is_key = self.with_keys.contains(&document.path) && is_placeholder(text, span);
                return is_key.then_some(PLACEHOLDER);
            }
            if self.is_key && self.may_be_key(document, span) {
                return Some(KEY);
            }
            *is_looking_up.get_or_insert_with(|| match () {
                () if self.is_global && has_getattr(text) => Some(LAZY_EXPORT),
                () if computes_names(text) || BY_NAME.iter().any(|word| text.contains(word)) => {
                    Some(LOOKED_UP)
                }
                () => None,
            })
        };
        strings.into_iter().filter_map(|span| reason(&span).map(|why| (span, why))).collect()
    }

    /// Whether an example may use a member or a parameter: `x.name`, `f(name=1)`. Such names are common, so only examples in the
    /// file of the definition count.
    fn may_be_shown(&self, document: &Document, span: &Span) -> bool {
        let text = &document.text;
        let is_argument = || is_argument(text, span);
        let mut here = self.definitions.iter().filter(|(path, _)| *path == document.path);
        here.any(|(_, offset)| {
            let is_function = text.get(..*offset).is_some_and(|before| before.trim_end().ends_with("def"));
            match (self.explained.is_member, is_function) {
                (true, true) => is_attribute(text, span),
                // A field is an argument, too.
                (true, false) => is_attribute(text, span) || is_argument(),
                (false, _) => is_argument(),
            }
        })
    }

    /// Whether a string may be a key of a dictionary whose type the server does not know: `{"key": …}`.
    fn may_be_key(&self, document: &Document, span: &Span) -> bool {
        let is_other = self.explained.other_strings.contains(&(document.path.clone(), span.start));
        !is_other && Usage::of(&document.text).string(span) == Some(StringUse::Other)
    }

    /// Whether a dotted name, from its module on, is the symbol's.
    fn is_full_name(&self, dotted: &[&str]) -> bool {
        let (roots, files) = (&self.cx.state.inputs.roots, &self.cx.state.files);
        (1..dotted.len()).rev().any(|count| {
            let chain: Vec<String> = dotted[count..].iter().map(|part| (*part).to_owned()).collect();
            let modules = roots.find(files, &dotted[..count].join("."));
            let mut here = modules.iter().filter_map(|module| module.file());
            here.any(|file| {
                self.cx.state.is_in_workspace(file)
                    && self.classes.resolve(file, &chain).iter().any(|place| self.definitions.contains(place))
            })
        })
    }
}

fn is_quote(c: char) -> bool {
    c == '"' || c == '\''
}

/// The dotted names up to a word in them that a string may hold, by their parts: all of it, as `pkg.mod.name` and
/// `pkg.mod:name.more`, or what is after a colon, as in the filter of warnings `error:message:pkg.name`.
fn dotted<'t>(text: &'t str, word: &Span) -> Vec<Vec<&'t str>> {
    let is_part = |c: char| c == '.' || c == ':' || is_in_name(c);
    let Some(start) = text[..word.start].rfind(|c| !is_part(c)).map(|at| at + 1) else { return Vec::new() };
    let end = text[word.end..].find(|c| !is_part(c)).map(|length| word.end + length);
    if !end.is_some_and(|end| text[end..].starts_with(is_quote)) {
        return Vec::new();
    }
    let found = &text[start..word.end];
    let whole = text[..start].ends_with(is_quote).then(|| found.split(['.', ':']).collect());
    let after_colon = found.rsplit_once(':').map(|(_, name)| name.split('.').collect());
    let is_name = |parts: &Vec<&str>| parts.len() > 1 && parts.iter().all(|part| !part.is_empty());
    whole.into_iter().chain(after_colon).filter(is_name).collect()
}

/// Whether a word is a placeholder: `%(word)s`, `{word}`, `{word!r}`.
fn is_placeholder(text: &str, word: &Span) -> bool {
    let (before, after) = (&text[..word.start], &text[word.end..]);
    (before.ends_with("%(") && after.starts_with(')'))
        || (before.ends_with('{') && after.starts_with(['}', '!', ':', '.', '[']))
}

/// Whether a word is in a line of an example that doctest runs: `>>> word()`.
fn is_example(text: &str, word: &Span) -> bool {
    let line = text[..word.start].lines().next_back().unwrap_or_default().trim_start();
    line.starts_with(">>> ") || line.starts_with("... ")
}

/// Whether a word in an example is an attribute: `x.word`.
fn is_attribute(text: &str, word: &Span) -> bool {
    let before = text[..word.start].trim_end();
    before.ends_with('.') && !before.ends_with("...")
}

/// Whether a word in an example is the name of an argument: `f(word=1)`.
fn is_argument(text: &str, word: &Span) -> bool {
    let (before, after) = (text[..word.start].trim_end(), &text[word.end..]);
    before.ends_with(['(', ',']) && after.starts_with('=') && !after.starts_with("==")
}

/// Whether a word in a string is the attribute of a placeholder: `{0.word}`.
fn is_formatted(text: &str, word: &Span) -> bool {
    let is_part = |c: char| is_in_name(c) || matches!(c, '.' | '[' | ']');
    let before = text[..word.start].strip_suffix('.').map(|before| before.trim_end_matches(is_part));
    before.is_some_and(|before| before.ends_with('{'))
        && text[word.end..].starts_with(['}', '!', ':', '.', '['])
        && text.contains(".format(")
}

/// Whether a word in a string follows a computed module, or names what the attribute of a mock gives: `patch(f"{module}.word")`,
/// `"word.return_value"`.
fn is_patched(text: &str, word: &Span) -> bool {
    let after = &text[word.end..];
    let before = text[..word.start].trim_end_matches(|c| c == '.' || is_in_name(c));
    let is_after_module = text[before.len()..].starts_with('.') && before.ends_with(['"', '\'', '}']);
    let is_attribute = text[..word.start].ends_with(is_quote)
        && [".return_value", ".side_effect"].iter().any(|attribute| after.starts_with(attribute));
    is_attribute || is_after_module && after.starts_with(is_quote) && text.contains("patch(")
}

/// Whether a module has a function `__getattr__`.
fn has_getattr(text: &str) -> bool {
    text.contains("def __getattr__(")
        && Outline::parse(text)
            .definitions
            .iter()
            .any(|found| found.parent.is_none() && found.name == "__getattr__")
}

/// Whether a file looks up a name that is not written in the call.
fn computes_names(text: &str) -> bool {
    let is_literal = |rest: &str| rest.trim_start().starts_with(is_quote);
    let is_computed = |call: &str, before: usize| {
        text.match_indices(call)
            .any(|(at, _)| argument(&text[at + call.len()..], before).is_some_and(|rest| !is_literal(rest)))
    };
    LOOKUPS.iter().any(|(call, before)| is_computed(call, *before))
        || NAMESPACES.iter().any(|call| is_computed(call, 0))
}

/// The text from an argument of a call on; nothing if the call has fewer.
fn argument(arguments: &str, number: usize) -> Option<&str> {
    let (mut depth, mut left) = (0_usize, number);
    for (at, c) in arguments.char_indices() {
        if left == 0 {
            return Some(&arguments[at..]);
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => left -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn at(text: &str, word: &str) -> Span {
        let start = text.find(word).unwrap();
        start..start + word.len()
    }

    #[test]
    fn dotted_names_in_strings() {
        for (text, expected) in [
            ("x = 'pkg.mod.name'", vec!["pkg.mod.name"]),
            ("x = \"pkg.mod:name\"", vec!["pkg.mod.name"]),
            ("x = 'pkg.name.more'", vec!["pkg.name"]),
            ("x = 'error::pkg.name'", vec!["pkg.name"]),
            ("x = 'ignore:no more:pkg.name'", vec!["pkg.name"]),
            ("x = 'error:more:pkg.name'", vec!["error.more.pkg.name", "pkg.name"]),
            ("x = 'name.more'", vec![]),
            ("x = 'see pkg.name'", vec![]),
            ("x = '.name'", vec![]),
        ] {
            let found: Vec<String> =
                dotted(text, &at(text, "name")).iter().map(|parts| parts.join(".")).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn members_and_arguments_in_examples() {
        for (text, expected) in [
            (">>> x.name()", (true, false)),
            (">>> f(1, name=2)", (false, true)),
            (">>> f(name == 2)", (false, false)),
            (">>> name = 2", (false, false)),
            (">>> for x in y:\n...     name = 3", (false, false)),
        ] {
            let word = at(text, "name");
            assert_eq!((is_attribute(text, &word), is_argument(text, &word)), expected, "{text}");
        }
    }

    #[test]
    fn lookups_of_computed_names() {
        for (text, expected) in [
            ("getattr(a.b(c, d), name)", true),
            ("getattr(a, 'name')", false),
            ("getattr(\n  a,\n  \"name\")", false),
            ("getattr(a)", false),
            ("setattr(self, f'{x}', 1)", true),
            ("attrgetter(*names)", true),
            ("attrgetter('x')", false),
            ("globals()[name]", true),
            ("vars", false),
        ] {
            assert_eq!(computes_names(text), expected, "{text}");
        }
    }

    #[test]
    fn what_mocks_replace() {
        for (text, expected) in [
            ("patch(f'{MOD}.name')", true),
            ("patch(MOD + '.name')", true),
            ("patch(MOD + '.Class.name')", true),
            ("patch('pkg.name')", false),
            ("MOD + '.name'", false),
            ("Mock(**{'name.return_value': 1})", true),
            ("'name.value'", false),
        ] {
            assert_eq!(is_patched(text, &at(text, "name")), expected, "{text}");
        }
    }

    #[test]
    fn examples_in_docstrings() {
        for (text, expected) in [
            ("'''\n    >>> name(1)\n    '''", true),
            ("'''\n    >>> for x in y:\n    ...     name(x)\n'''", true),
            ("'''See name.'''", false),
            ("'''\n    >>> f()\n    name\n'''", false),
        ] {
            assert_eq!(is_example(text, &at(text, "name")), expected, "{text}");
        }
    }

    #[test]
    fn attributes_in_placeholders() {
        for (text, expected) in [
            ("'{0.name}'.format(x)", true),
            ("'{x.y.name!r}'.format(x=x)", true),
            ("'{name}'.format(name=x)", false),
            ("'a {x}.name'.format(x=x)", false),
        ] {
            assert_eq!(is_formatted(text, &at(text, "name")), expected, "{text}");
        }
    }

    #[test]
    fn placeholders() {
        for (text, expected) in [
            ("'%(name)s'", true),
            ("'{name!r}'", true),
            ("'{name}'", true),
            ("'(name)'", false),
            ("'name}'", false),
        ] {
            assert_eq!(is_placeholder(text, &at(text, "name")), expected, "{text}");
        }
    }
}
