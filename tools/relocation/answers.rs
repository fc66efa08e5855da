//! Relocation by lanser.

use lanser::internal::path::WorkspacePath;
use lanser::internal::relocate::index::{Index, OtherWorkspaceFiles};
use lanser::internal::relocate::{OldContent, OldTarget, RelocationOutcome, relocate};

use crate::cases::{Case, Tree};

/// How much of the old state is known.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Known {
    /// Every file, as with `git:`.
    Everything,
    /// Only the file of the target, as with `sha256:`.
    OwnFile,
}

pub(crate) struct Answer {
    /// File and byte offset.
    pub(crate) place: Option<(String, usize)>,
    pub(crate) ambiguous: bool,
    /// Whether it is reported as certain. The baselines always are.
    pub(crate) certified: bool,
    /// A description for the report.
    pub(crate) told: String,
}

pub(crate) fn index(tree: &Tree) -> Index {
    let path = |name: &String| WorkspacePath::new(name).expect("a workspace path");
    Index::of_texts(tree.files.iter().map(|(name, document)| (path(name), document.text.as_str())))
}

pub(crate) fn lanser(index: &Index, old: &Tree, new: &Tree, case: &Case, known: Known) -> Answer {
    let own = WorkspacePath::new(&case.path);
    let others = OtherWorkspaceFiles {
        index,
        own: own.as_ref(),
        read: |path: &WorkspacePath| new.files.get(path.as_str()).cloned(),
        before: |path: &WorkspacePath| match (known, old.files.get(path.as_str())) {
            (Known::OwnFile, _) => Some(OldContent::Unknown),
            (_, None) => Some(OldContent::Absent),
            (_, Some(old)) if Some(old.digest) == new.files.get(path.as_str()).map(|new| new.digest) => None,
            (_, Some(old)) => Some(OldContent::Text(old.text.as_str().into())),
        },
    };
    let text = case.old.as_deref().or(old.text(&case.path)).unwrap_or_default();
    let target = OldTarget { path: &case.path, text, span: case.span.clone() };
    match relocate(&target, new.files.get(&case.path), &others) {
        RelocationOutcome::Found(place) => {
            let path = place.document.path.as_str().trim_start_matches('/').to_owned();
            let told = format!(
                "{path}@{} {:?} {:.3} {:?}: {}",
                place.span.start, place.change, place.score, place.features, place.reason
            );
            let certified = place.certified;
            Answer { place: Some((path, place.span.start)), ambiguous: false, certified, told }
        }
        RelocationOutcome::Ambiguous(places) => {
            let told = places.iter().map(|place| {
                format!("{} {:.3} {:?} {}; ", place.document.path, place.score, place.features, place.reason)
            });
            Answer {
                place: None,
                ambiguous: true,
                certified: false,
                told: format!("ambiguous: {}", told.collect::<String>()),
            }
        }
        RelocationOutcome::Gone { reason, closest: near } => {
            let near = near.map(|place| format!("{} {:.3} {:?}", place.reason, place.score, place.features));
            Answer {
                place: None,
                ambiguous: false,
                certified: false,
                told: format!("gone: {reason} {near:?}"),
            }
        }
    }
}
