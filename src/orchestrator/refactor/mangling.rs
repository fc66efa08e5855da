//! Name mangling: `__x` in `class C` is `_C__x`, also after a dot and in calls.

use std::sync::Arc;

use super::collision::Renaming;
use super::names::{is_private, mangled};
use crate::orchestrator::ask::RequestContext;
use crate::resolve::occurrences::{OccurrenceKind, occurrences};
use crate::resolve::outline::Span;
use crate::resolve::roles::enclosing_class;
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
        for splice in splices {
            let class = enclosing_class(&document.text, splice.span.start);
            if mangle(class.as_deref()) != own {
                places.push(cx.locations.span(&document, splice.span.clone()).2);
            }
        }
    }
    places
}

/// The occurrences of the old name in its mangled form: `x._C__old`, or in a string.
pub(super) fn mangled_occurrences(
    cx: &RequestContext<'_>,
    renaming: &Renaming<'_>,
) -> Vec<(Arc<Document>, Span)> {
    let (document, offset) = &renaming.definition;
    let class = enclosing_class(&document.text, *offset);
    let word = mangled(renaming.old, class.as_deref());
    if word == renaming.old {
        return Vec::new();
    }
    let snapshot = &cx.state.inputs.snapshot;
    let mut places = Vec::new();
    for path in cx.state.files_with_word(&word) {
        let Ok(document) = cx.state.files.read(&snapshot.absolute(&path)) else { continue };
        let found = occurrences(&document.text, document.digest, &word);
        for one in found.into_iter().filter(|one| one.kind != OccurrenceKind::Comment) {
            places.push((document.clone(), one.span()));
        }
    }
    places
}
