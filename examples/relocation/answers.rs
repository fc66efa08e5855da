//! Lanser's answers.

use lanser::path::WorkspacePath;
use lanser::resolve::index::{Index, Others};
use lanser::resolve::relocate::{Before, Target, Verdict, relocate};

use crate::cases::{Case, Tree};

/// What is known of the old state.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Known {
    /// Every file, as with `git:`.
    Everything,
    /// The target's own, as with `sha256:`.
    OwnFile,
}

pub(crate) struct Answer {
    /// File and byte.
    pub(crate) place: Option<(String, usize)>,
    pub(crate) ambiguous: bool,
    /// Whether it is told as certain. The baselines know no doubt.
    pub(crate) certified: bool,
    /// For people.
    pub(crate) told: String,
}

pub(crate) fn index(tree: &Tree) -> Index {
    let path = |name: &String| WorkspacePath::new(name).expect("a workspace path");
    Index::of_texts(tree.files.iter().map(|(name, document)| (path(name), document.text.as_str())))
}

pub(crate) fn lanser(index: &Index, old: &Tree, new: &Tree, case: &Case, known: Known) -> Answer {
    let own = WorkspacePath::new(&case.path);
    let others = Others {
        index,
        own: own.as_ref(),
        read: |path: &WorkspacePath| new.files.get(path.as_str()).cloned(),
        before: |path: &WorkspacePath| match (known, old.files.get(path.as_str())) {
            (Known::OwnFile, _) => Some(Before::Unknown),
            (_, None) => Some(Before::Absent),
            (_, Some(old)) if Some(old.digest) == new.files.get(path.as_str()).map(|new| new.digest) => None,
            (_, Some(old)) => Some(Before::Text(old.text.as_str().into())),
        },
    };
    let text = case.old.as_deref().or(old.text(&case.path)).unwrap_or_default();
    let target = Target { path: &case.path, text, span: case.span.clone() };
    match relocate(&target, new.files.get(&case.path), &others) {
        Verdict::At(place) => {
            let path = place.document.path.as_str().trim_start_matches('/').to_owned();
            let told = format!(
                "{path}@{} {:?} {:.3} {:?}: {}",
                place.span.start, place.happened, place.score, place.features, place.reason
            );
            let certified = place.certified;
            Answer { place: Some((path, place.span.start)), ambiguous: false, certified, told }
        }
        Verdict::Ambiguous(places) => {
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
        Verdict::Gone { reason, near } => {
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
