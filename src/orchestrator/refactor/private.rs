//! Names that classes spell otherwise: `__x` in `class C` is `_C__x`, whatever it is before a dot or a call.

use super::collision::Renaming;
use super::names::{is_private, spelled};
use crate::orchestrator::ask::Asking;
use crate::resolve::occurrences::{OccurrenceKind, occurrences};
use crate::resolve::roles::class_around;
use crate::workspace::files::Files as _;

/// Where the old name or the new one would be spelled otherwise than in its definition, so that the two are not one name there.
pub(super) fn strangers(asking: &Asking<'_>, renaming: &Renaming<'_>) -> Vec<String> {
    if !is_private(renaming.old) && !is_private(renaming.new) {
        return Vec::new();
    }
    let (document, offset) = &renaming.definition;
    let class = class_around(&document.text, *offset);
    let spelling = |class: Option<&str>| (spelled(renaming.old, class), spelled(renaming.new, class));
    let own = spelling(class.as_deref());
    let mut places = Vec::new();
    for (path, splices) in renaming.splices {
        let Ok(document) = asking.state.files.read(path) else { continue };
        for splice in splices {
            let class = class_around(&document.text, splice.span.start);
            if spelling(class.as_deref()) != own {
                places.push(asking.places.span(&document, splice.span.clone()).2);
            }
        }
    }
    places
}

/// Where the old name stands as Python spells it: `x._C__old`, or in a string.
pub(super) fn spelled_out(asking: &Asking<'_>, renaming: &Renaming<'_>) -> Vec<String> {
    let (document, offset) = &renaming.definition;
    let class = class_around(&document.text, *offset);
    let word = spelled(renaming.old, class.as_deref());
    if word == renaming.old {
        return Vec::new();
    }
    let snapshot = &asking.state.ground.snapshot;
    let mut places = Vec::new();
    for path in asking.state.files_with_word(&word) {
        let Ok(document) = asking.state.files.read(&snapshot.absolute(&path)) else { continue };
        let found = occurrences(&document.text, document.digest, &word);
        for one in found.into_iter().filter(|one| one.kind != OccurrenceKind::Comment) {
            places.push(asking.places.span(&document, one.span()).2);
        }
    }
    places
}
