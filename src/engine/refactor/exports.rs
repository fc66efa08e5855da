//! What a rename changes besides references: the order of `__all__`, the name that `TypeVar("T")` gets, and entry points in
//! `pyproject.toml` and `setup.cfg`.

use std::collections::BTreeMap;

use super::collision::Renaming;
use super::family::DefinitionSite;
use super::rename_edit::{splices_by_file, with_edits};
use crate::engine::context::RequestContext;
use crate::model::edits::{DocumentChange, TextEdit, WorkspaceEdit};
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::entry_points::{FILES, entry_points};
use crate::python::outline::{ExportedName, Outline, Span};
use crate::text::Range;
use crate::workspace::files::{Document, Files as _};

/// A list whose entries are in another order after the edit: the file, and its entries before the edit.
pub(super) type ReorderedExports = (AbsPath, Span);

/// The orders in which linters keep `__all__`.
#[derive(Debug, Clone, Copy)]
enum ListOrder {
    /// By code points.
    Plain,
    /// `CONSTANTS`, then `Classes`, then all others, as isort and Ruff sort.
    ByCase,
    /// Without regard to case.
    CaseFolded,
}

impl ListOrder {
    const ALL: [Self; 3] = [Self::Plain, Self::ByCase, Self::CaseFolded];

    fn key(self, name: &str) -> (u8, String) {
        let is_constant = name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase);
        let case = match name.chars().next() {
            _ if is_constant => 0,
            Some(first) if first.is_uppercase() => 1,
            _ => 2,
        };
        match self {
            Self::Plain => (0, name.to_owned()),
            Self::ByCase => (case, name.to_owned()),
            Self::CaseFolded => (0, name.to_lowercase()),
        }
    }

    fn is_kept(self, names: &[&str]) -> bool {
        names.is_sorted_by_key(|name| self.key(name))
    }
}

/// Keeps each `__all__` sorted that the edit changes and that is sorted.
pub(super) fn keep_order(
    cx: &RequestContext<'_>,
    mut edit: WorkspaceEdit,
    old: &str,
    new: &str,
) -> (WorkspaceEdit, Vec<ReorderedExports>) {
    let mut reordered = Vec::new();
    let mut more: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    for (path, splices) in splices_by_file(cx, &edit) {
        let Ok(document) = cx.state.files.read(&path) else { continue };
        let outline = Outline::parse(&document.text);
        let Some(exports) = &outline.exports else { continue };
        let is_edited = |entry: &&ExportedName| {
            let inside = |splice: &Span| entry.span.start <= splice.start && splice.end <= entry.span.end;
            entry.name == old && splices.iter().any(|splice| inside(&splice.span))
        };
        let Some(entry) = exports.names.iter().find(is_edited) else { continue };
        let Some(texts) = sorted_entries(&document.text, &exports.names, old, new) else { continue };
        let range = |span: &Span| -> Range {
            document.lines.range(&document.text, span.clone(), cx.locations.server_unit)
        };
        remove_within(&mut edit, cx, &path, range(&entry.span));
        let edits = more.entry(path.clone()).or_default();
        for (span, text) in texts {
            edits.push(TextEdit { range: range(&span).into(), new_text: text, annotation_id: None });
        }
        let whole = exports.names[0].span.start..exports.names[exports.names.len() - 1].span.end;
        reordered.push((path, whole));
    }
    (with_edits(edit, more), reordered)
}

/// The literals that change so that the list stays sorted; `None` if it is not sorted, stays so, or has comments in it.
fn sorted_entries(text: &str, entries: &[ExportedName], old: &str, new: &str) -> Option<Vec<(Span, String)>> {
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let is_plain = entries.windows(2).all(|pair| {
        let between = text.get(pair[0].span.end..pair[1].span.start);
        between.is_some_and(|text| text.chars().all(|c| c == ',' || c.is_whitespace()))
    });
    let order = ListOrder::ALL.into_iter().find(|order| order.is_kept(&names)).filter(|_| names.len() > 1)?;
    let mut renamed: Vec<&str> = names.iter().map(|name| if *name == old { new } else { name }).collect();
    if !is_plain || order.is_kept(&renamed) {
        return None;
    }
    renamed.sort_by_key(|name| order.key(name));
    let changes = entries.iter().zip(renamed).filter(|(entry, name)| entry.name != *name);
    let literal = |(entry, name): (&ExportedName, &str)| {
        let quoted = text.get(entry.span.clone())?.replacen(&entry.name, name, 1);
        Some((entry.span.clone(), quoted))
    };
    changes.map(literal).collect()
}

/// Removes the text edits of a file inside a range.
pub(super) fn remove_within(edit: &mut WorkspaceEdit, cx: &RequestContext<'_>, path: &AbsPath, range: Range) {
    let root = cx.state.inputs.snapshot.root();
    let is_it = |uri: &str| {
        crate::edit::target::of_uri(root, uri).is_ok_and(|found| root.join(found.as_str()) == *path)
    };
    let is_outside = |edit: &TextEdit| {
        let found = Range::from(edit.range);
        found.start < range.start || found.end > range.end
    };
    for change in edit.document_changes.iter_mut().flatten() {
        if let DocumentChange::Edit(edit) = change
            && is_it(&edit.text_document.uri)
        {
            edit.edits.retain(is_outside);
        }
    }
    for (uri, edits) in &mut edit.changes {
        if is_it(uri) {
            edits.retain(is_outside);
        }
    }
}

/// What gets the name of the variable that it is assigned to as its first argument. Type checkers demand that they are equal.
const NAMED: [&str; 13] = [
    "TypeVar",
    "ParamSpec",
    "TypeVarTuple",
    "NewType",
    "TypeAliasType",
    "NamedTuple",
    "namedtuple",
    "TypedDict",
    "Enum",
    "IntEnum",
    "StrEnum",
    "Flag",
    "IntFlag",
];

/// Adds the first arguments that name the definitions: `T = TypeVar("T")`.
pub(super) fn with_name_arguments<'d>(
    cx: &RequestContext<'_>,
    edit: WorkspaceEdit,
    definitions: impl Iterator<Item = &'d DefinitionSite>,
    old: &str,
    new: &str,
) -> WorkspaceEdit {
    let splices = splices_by_file(cx, &edit);
    let mut more: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    for (document, offset) in definitions {
        let Some(span) = name_argument(&document.text, *offset + old.len(), old) else { continue };
        let known = splices.get(&document.path).into_iter().flatten();
        if known.into_iter().all(|splice| splice.span != span) {
            let range = document.lines.range(&document.text, span, cx.locations.server_unit).into();
            let edits = more.entry(document.path.clone()).or_default();
            edits.push(TextEdit { range, new_text: new.to_owned(), annotation_id: None });
        }
    }
    with_edits(edit, more)
}

/// The name in the string of `= TypeVar("T"`, which follows a variable's name in a text.
fn name_argument(text: &str, end: usize, name: &str) -> Option<Span> {
    let value = text.get(end..)?.trim_start().strip_prefix('=')?.trim_start();
    let (called, arguments) = value.split_once('(')?;
    if !NAMED.contains(&called.trim_end().rsplit('.').next()?) {
        return None;
    }
    let quoted = arguments.trim_start();
    let literal = quoted.strip_prefix(['"', '\''])?;
    let is_it = literal.strip_prefix(name)?.starts_with(quoted.chars().next()?);
    let start = text.len() - literal.len();
    is_it.then(|| start..start + name.len())
}

/// Adds the entry points that name the symbol, or something in it.
pub(super) fn with_entry_points(
    cx: &RequestContext<'_>,
    edit: WorkspaceEdit,
    renaming: &Renaming<'_>,
) -> WorkspaceEdit {
    let root = cx.state.inputs.snapshot.root();
    let roots = &cx.state.inputs.roots;
    let classes = Classes::new(&cx.state.files, roots);
    let is_it = |path: &AbsPath, offset: usize| {
        renaming.definitions().any(|(document, at)| document.path == *path && *at == offset)
    };
    let mut more: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    for name in FILES {
        let Ok(document) = cx.state.files.read(&root.join(name)) else { continue };
        if !document.text.contains(renaming.old) {
            continue;
        }
        for entry in entry_points(&document.text) {
            let Some(object) = entry.object else { continue };
            let module = &document.text[entry.module];
            let files = roots.find(&cx.state.files, module);
            for span in parts(&document, &object, renaming.old) {
                let chain: Vec<String> =
                    document.text[object.start..span.end].split('.').map(str::to_owned).collect();
                let found = files.iter().filter_map(|module| module.file());
                if found.flat_map(|file| classes.resolve(file, &chain)).any(|(path, at)| is_it(&path, at)) {
                    let range = document.lines.range(&document.text, span, cx.locations.server_unit).into();
                    let new_text = renaming.new.to_owned();
                    let edits = more.entry(document.path.clone()).or_default();
                    edits.push(TextEdit { range, new_text, annotation_id: None });
                }
            }
        }
    }
    with_edits(edit, more)
}

/// The parts of a dotted name that are this word.
fn parts(document: &Document, dotted: &Span, word: &str) -> Vec<Span> {
    let mut start = dotted.start;
    let mut found = Vec::new();
    for part in document.text[dotted.clone()].split('.') {
        if part == word {
            found.push(start..start + part.len());
        }
        start += part.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_type_variables() {
        for (text, expected) in [
            ("T = TypeVar(\"T\", bound=int)", Some(13..14)),
            ("T = t.NewType( 'T', int)", Some(16..17)),
            ("T = TypeVar(\"TT\")", None),
            ("T = make(\"T\")", None),
            ("T: int = TypeVar(\"T\")", None),
            ("T == TypeVar(\"T\")", None),
        ] {
            assert_eq!(name_argument(text, 1, "T"), expected, "{text}");
        }
    }

    #[test]
    fn sorted_lists_stay_sorted() {
        let renamed = |text: &str, old: &str, new: &str| {
            let exports = Outline::parse(text).exports.clone().unwrap().names;
            let mut out = text.to_owned();
            for (span, text) in sorted_entries(text, &exports, old, new)?.into_iter().rev() {
                out.replace_range(span, &text);
            }
            Some(out)
        };
        let text = "__all__ = ['a', \"c\", 'e']\n";
        assert_eq!(renamed(text, "a", "d").unwrap(), "__all__ = ['c', \"d\", 'e']\n");
        assert_eq!(renamed(text, "a", "b"), None, "it stays sorted by itself");
        let by_case = "__all__ = [\n    'MAX',\n    'Box',\n    'add',\n]\n";
        assert_eq!(
            renamed(by_case, "add", "LIMIT").unwrap(),
            "__all__ = [\n    'LIMIT',\n    'MAX',\n    'Box',\n]\n"
        );
        assert_eq!(renamed("__all__ = ['c', 'a', 'b']\n", "a", "z"), None, "it is not sorted");
        assert_eq!(
            renamed("__all__ = [\n 'a',  # why\n 'b',\n]\n", "a", "z"),
            None,
            "comments stay in place"
        );
    }
}
