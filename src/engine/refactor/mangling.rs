//! Name mangling: `__x` in `class C` is `_C__x`, also after a dot and in calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::collision::Renaming;
use crate::engine::context::RequestContext;
use crate::python::occurrences::{OccurrenceKind, occurrences};
use crate::python::outline::{Definition, DefinitionKind, Outline, Span};
use crate::python::roles::enclosing_class;
use crate::text::names::{is_private, mangled};
use crate::workspace::files::{Document, Files as _};

/// The places where the old or the new name is mangled differently than in its definition, so that they are different
/// names.
pub(super) fn mangled_differently(cx: &RequestContext<'_>, renaming: &Renaming<'_>) -> Vec<String> {
    if !is_private(renaming.old) && !is_private(renaming.new) {
        return Vec::new();
    }
    let (document, offset) = &renaming.definition;
    let class = enclosing_class(&document.text, *offset);
    let mangle = |class: Option<&str>| (mangled(renaming.old, class), mangled(renaming.new, class));
    let own = mangle(class.as_deref());
    let mut places = Vec::new();
    for (path, splices) in renaming.splices {
        let Ok(document) = cx.state.files.read(path) else { continue };
        // What is written in its mangled form stays the name of one class.
        for splice in splices.iter().filter(|splice| document.text[splice.span.clone()] == *renaming.old) {
            let class = enclosing_class(&document.text, splice.span.start);
            if mangle(class.as_deref()) != own {
                places.push(cx.locations.span(&document, splice.span.clone()).2);
            }
        }
    }
    places
}

/// If a class is renamed: its private names outside of it, `x._Old__secret`, which Python mangles with the name of the class.
pub(super) fn mangled_with_class(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
) -> Vec<(Arc<Document>, Span)> {
    let (document, offset) = &renaming.definition;
    let outline = Outline::parse(&document.text);
    let is_it = |found: &Definition| found.kind == DefinitionKind::Class && found.name_span.start == *offset;
    let Some(class) = outline.definitions.iter().find(|found| is_it(found)) else { return Vec::new() };
    let body = &document.text[class.span.clone()];
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let private: BTreeSet<&str> =
        body.split(|c: char| !is_word(c)).filter(|word| is_private(word) && word.len() > 2).collect();
    private.into_iter().flat_map(|word| written(cx, &mangled(word, Some(renaming.old)))).collect()
}

/// The occurrences of the old name in its mangled form: `x._C__old`, or in a string.
pub(super) fn mangled_occurrences(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
) -> Vec<(Arc<Document>, Span)> {
    let [word, _] = renaming.mangled();
    if word == renaming.old { Vec::new() } else { written(cx, &word) }
}

/// Where a name is written other than in comments.
fn written(cx: &RequestContext<'_>, word: &str) -> Vec<(Arc<Document>, Span)> {
    let snapshot = &cx.state.inputs.snapshot;
    let mut places = Vec::new();
    for path in cx.state.files_with_word(word) {
        let Ok(document) = cx.state.files.read(&snapshot.absolute(&path)) else { continue };
        let found = occurrences(&document.text, document.digest, word).into_iter();
        let found = found.filter(|one| one.kind != OccurrenceKind::Comment);
        places.extend(found.map(|one| (document.clone(), one.span())));
    }
    places
}
