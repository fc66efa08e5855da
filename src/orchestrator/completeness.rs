//! Making an answer over the workspace complete, and saying how complete it is.
//!
//! The word index says which files hold a name; they are opened, whatever the server's configuration includes. Afterwards
//! every occurrence of the name that the server did not claim is counted: in strings, in comments, in code whose type
//! nobody knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ask::Asking;
use super::blocking;
use super::failure::Failure;
use crate::lsp::Place;
use crate::model::facts::{Completeness, CompletenessStatus, Occurrence, Unresolved};
use crate::model::request::Scope;
use crate::path::AbsPath;
use crate::resolve::occurrences::{self, OccurrenceKind};
use crate::workspace::files::{Document, Files as _};
use crate::workspace::parallel::parallel_map;

/// The most unclaimed occurrences that are listed; all are counted.
const LISTED: usize = 20;

/// Which files hold a name, and which of them the server was shown.
pub(super) struct Searched {
    /// Readable files of the workspace that hold it.
    with_name: Vec<Arc<Document>>,
    /// How many of them the server knows.
    shown: usize,
    /// Files that could not be read.
    unreadable: Vec<AbsPath>,
}

/// Opens every file of the workspace in which one of the names stands, and the files of the question itself.
pub(super) fn make_known(
    asking: &Asking<'_>,
    names: &[&str],
    targets: &[&AbsPath],
) -> Result<Searched, Failure> {
    let snapshot = &asking.state.ground.snapshot;
    let holding: BTreeSet<AbsPath> = names
        .iter()
        .flat_map(|name| asking.state.files_with_word(name))
        .map(|path| snapshot.absolute(&path))
        .collect();
    let mut unreadable = unreadable(asking);
    let configured = asking.request.options.scope == Scope::Configured;
    let open: BTreeSet<AbsPath> = if configured { BTreeSet::new() } else { holding.clone() }
        .into_iter()
        .chain(targets.iter().copied().cloned())
        .collect();
    unreadable.extend(asking.open(open.iter().cloned())?);
    let with_name: Vec<_> = holding.iter().filter_map(|path| asking.state.files.read(path).ok()).collect();
    let shown = with_name.iter().filter(|document| open.contains(&document.path)).count();
    Ok(Searched { with_name, shown, unreadable })
}

/// Starts to look for the name's occurrences, while the server is busy with the question.
pub(super) fn occurrences(
    asking: &Asking<'_>,
    searched: &Searched,
    name: &str,
) -> impl Future<Output = Result<Vec<Found>, Failure>> + use<> {
    let (documents, name, threads) = (searched.with_name.clone(), name.to_owned(), asking.settings.threads);
    blocking(move || {
        parallel_map(&documents, threads, |document| {
            let found = occurrences::occurrences(&document.text, document.digest, &name);
            (document.clone(), found.into_iter().map(|found| (found.span(), found.kind)).collect::<Vec<_>>())
        })
    })
}

/// The occurrences of one file.
type Found = (Arc<Document>, Vec<(std::ops::Range<usize>, OccurrenceKind)>);

/// How complete an answer over the workspace is for which `documents` files were searched, where nothing is said of
/// occurrences.
pub(super) fn of_documents(asking: &Asking<'_>, documents: usize, unreadable: &[AbsPath]) -> Completeness {
    let (status, reason) = status(asking, unreadable);
    let count = u32::try_from(documents).unwrap_or(u32::MAX);
    Completeness {
        status,
        reason,
        scope: asking.request.options.scope,
        files_with_name: count,
        files_searched: if asking.request.options.scope == Scope::Configured {
            asking.enumerated.min(count)
        } else {
            count
        },
        unresolved: Unresolved::default(),
    }
}

/// The workspace's files that cannot be read.
pub(super) fn unreadable(asking: &Asking<'_>) -> Vec<AbsPath> {
    let snapshot = &asking.state.ground.snapshot;
    let failed = snapshot.files().iter().filter(|(_, digest)| digest.is_none());
    failed.map(|(path, _)| snapshot.absolute(path)).collect()
}

/// The verdict, and why it is not better.
fn status(asking: &Asking<'_>, unreadable: &[AbsPath]) -> (CompletenessStatus, Option<String>) {
    let reason = if let Some(path) = unreadable.first() {
        let uri = asking.places.paths.uri(path);
        Some(format!("{} of the workspace's files cannot be read, the first is {uri}", unreadable.len()))
    } else if let Some(first) = asking.state.ground.snapshot.unreadable().first() {
        Some(format!("the folder or name {first:?} cannot be read"))
    } else if asking.request.options.scope == Scope::Configured {
        Some("the search was kept to what the server's configuration includes".to_owned())
    } else {
        None
    };
    (if reason.is_some() { CompletenessStatus::Partial } else { CompletenessStatus::Complete }, reason)
}

/// A place where the name stands that the server did not claim.
pub(super) struct Unclaimed {
    pub(super) document: Arc<Document>,
    pub(super) span: std::ops::Range<usize>,
    pub(super) kind: OccurrenceKind,
}

/// The occurrences that are none of the server's places, in the order of files and places.
pub(super) fn unclaimed(asking: &Asking<'_>, occurrences: &[Found], claimed: &[Place]) -> Vec<Unclaimed> {
    let mut by_file: BTreeMap<&AbsPath, BTreeSet<_>> = BTreeMap::new();
    for place in claimed {
        by_file.entry(&place.path).or_default().insert(place.range.start);
    }
    let nothing = BTreeSet::new();
    let mut unclaimed = Vec::new();
    for (document, found) in occurrences {
        let claimed = by_file.get(&document.path).unwrap_or(&nothing);
        for (span, kind) in found {
            let start = document.lines.position(&document.text, span.start, asking.places.server_unit);
            if !claimed.contains(&start) {
                unclaimed.push(Unclaimed { document: document.clone(), span: span.clone(), kind: *kind });
            }
        }
    }
    unclaimed.sort_by(|a, b| (&a.document.path, a.span.start).cmp(&(&b.document.path, b.span.start)));
    unclaimed
}

/// How complete a list of places is, beside which the name stands in these.
pub(super) fn verdict(asking: &Asking<'_>, searched: &Searched, unclaimed: &[Unclaimed]) -> Completeness {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut unresolved = Unresolved { count: count(unclaimed.len()), ..Unresolved::default() };
    for one in unclaimed {
        *unresolved.kinds.entry(one.kind.as_str().to_owned()).or_default() += 1;
    }
    let mut listed: Vec<&Unclaimed> = unclaimed.iter().collect();
    listed.sort_by_key(|one| weight(one.kind));
    listed.truncate(LISTED);
    let told = listed.into_iter().map(|one| {
        let (_, _, at) = asking.places.span(&one.document, one.span.clone());
        Occurrence { at, kind: one.kind.as_str().to_owned() }
    });
    unresolved.items = told.collect();
    let (status, reason) = status(asking, &searched.unreadable);
    Completeness {
        status,
        reason,
        scope: asking.request.options.scope,
        files_with_name: count(searched.with_name.len()),
        files_searched: count(searched.shown),
        unresolved,
    }
}

/// What is told first: tokens, which may be uses that nobody could prove; then strings, which a program may read; comments
/// last.
const fn weight(kind: OccurrenceKind) -> u8 {
    match kind {
        OccurrenceKind::Identifier | OccurrenceKind::Attribute | OccurrenceKind::Keyword => 0,
        OccurrenceKind::Exported | OccurrenceKind::String => 1,
        OccurrenceKind::Comment => 2,
    }
}
