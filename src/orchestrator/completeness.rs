//! Making an answer over the workspace complete, and saying how complete it is.
//!
//! The word index says which files have a name; they are opened, whatever the server's configuration includes. Afterwards
//! every occurrence of the name is explained (see [`super::occurrences`]), and the verdict says what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ask::Asking;
use super::blocking;
use super::failure::Failure;
use super::occurrences::{Explained, Token, UnresolvedToken};
use super::places::preview;
use crate::lsp::Place;
use crate::model::facts::{
    Completeness, CompletenessStatus, ExplainedCounts, Occurrence, Residue, Unresolved, UnresolvedUse,
};
use crate::model::request::Scope;
use crate::path::AbsPath;
use crate::resolve::occurrences::{self, OccurrenceKind};
use crate::workspace::files::{Document, Files as _};
use crate::workspace::parallel::parallel_map;

/// The most occurrences of a residue that are listed; all are counted.
const LISTED: usize = 20;

/// The longest receiver of an unresolved occurrence, in characters.
const MAX_RECEIVER: usize = 60;

/// Which files hold a name, and which of them the server was shown.
pub(super) struct Searched {
    /// Readable files of the workspace that hold it.
    with_name: Vec<Arc<Document>>,
    /// How many of them the server knows.
    shown: usize,
    /// Files that could not be read.
    unreadable: Vec<AbsPath>,
}

impl Searched {
    /// How complete an answer is of which only the searched files count.
    pub(super) fn of_files(&self, asking: &Asking<'_>) -> Completeness {
        let (status, reason) = status(asking, &self.unreadable);
        Completeness {
            status,
            reason,
            scope: asking.request.options.scope,
            files_with_name: count(self.with_name.len()),
            files_searched: count(self.shown),
            explained: None,
            unresolved: Unresolved::default(),
        }
    }

    /// The files with the name.
    pub(super) fn with_name(&self) -> impl Iterator<Item = &Arc<Document>> {
        self.with_name.iter()
    }
}

/// Opens every file in which one more name is written: an alias.
pub(super) fn make_known_too(
    asking: &Asking<'_>,
    searched: &mut Searched,
    name: &str,
) -> Result<(), Failure> {
    let more = make_known(asking, &[name], &[])?;
    for document in more.with_name {
        if searched.with_name.iter().all(|known| known.path != document.path) {
            searched.shown += usize::from(asking.is_open(&document.path));
            searched.with_name.push(document);
        }
    }
    searched.with_name.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(())
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
        explained: None,
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
    (if reason.is_some() { CompletenessStatus::Unknown } else { CompletenessStatus::Complete }, reason)
}

/// The occurrences that are none of these places, in the order of files and places.
pub(super) fn unclaimed<'p>(
    asking: &Asking<'_>,
    occurrences: &[Found],
    claimed: impl Iterator<Item = &'p Place>,
) -> Vec<Token> {
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
                unclaimed.push(Token { document: document.clone(), span: span.clone(), kind: *kind });
            }
        }
    }
    unclaimed.sort_by(|a, b| (&a.document.path, a.span.start).cmp(&(&b.document.path, b.span.start)));
    unclaimed
}

/// What a rename leaves of the old name, beside what it edits.
pub(super) fn residue(asking: &Asking<'_>, unclaimed: &[Token]) -> Residue {
    let mut residue = Residue { count: count(unclaimed.len()), ..Residue::default() };
    for one in unclaimed {
        *residue.kinds.entry(one.kind.as_str().to_owned()).or_default() += 1;
    }
    let mut listed: Vec<&Token> = unclaimed.iter().collect();
    listed.sort_by_key(|one| weight(one.kind));
    listed.truncate(LISTED);
    let items = listed.into_iter().map(|one| {
        let (_, _, at) = asking.places.span(&one.document, one.span.clone());
        Occurrence { at, kind: one.kind.as_str().to_owned() }
    });
    residue.items = items.collect();
    residue
}

/// How complete a list of references is for which every occurrence was explained. The unresolved ones are listed whole.
pub(super) fn verdict(asking: &Asking<'_>, searched: &Searched, explained: &Explained) -> Completeness {
    let (mut status, mut reason) = status(asking, &searched.unreadable);
    if let Some(cut) = explained.cut.clone().filter(|_| status == CompletenessStatus::Complete) {
        (status, reason) = (CompletenessStatus::Unknown, Some(cut));
    }
    if status == CompletenessStatus::Complete && !explained.unresolved.is_empty() {
        (status, reason) = (CompletenessStatus::Partial, Some(reasons(&explained.unresolved)));
    }
    Completeness {
        status,
        reason,
        scope: asking.request.options.scope,
        files_with_name: count(searched.with_name.len()),
        files_searched: count(searched.shown),
        explained: Some(ExplainedCounts {
            reference: count(explained.references.len()),
            overriding: count(explained.overrides.len()),
            other: count(explained.other),
            text: count(explained.text),
        }),
        unresolved: Unresolved {
            count: count(explained.unresolved.len()),
            items: explained.unresolved.iter().map(|one| unresolved_use(asking, one)).collect(),
        },
    }
}

/// Why occurrences are unresolved, the most frequent reason first.
fn reasons(unresolved: &[UnresolvedToken]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in unresolved {
        *counts.entry(&one.reason).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), *reason));
    if let [(reason, _)] = counts.as_slice() {
        return (*reason).to_owned();
    }
    let told: Vec<String> =
        counts.iter().take(3).map(|(reason, count)| format!("{reason} ({count})")).collect();
    let more = if counts.len() > 3 { ", …" } else { "" };
    format!("{}{more}", told.join(", "))
}

fn unresolved_use(asking: &Asking<'_>, one: &UnresolvedToken) -> UnresolvedUse {
    let (uri, range, at) = asking.places.span(&one.token.document, one.token.span.clone());
    UnresolvedUse {
        uri,
        range,
        at,
        kind: one.token.kind.as_str().to_owned(),
        receiver: one.receiver.as_ref().map(|text| first_line(text)),
        reason: one.reason.clone(),
        preview: preview(&one.token.document, range.start.line),
    }
}

/// The first line of an expression, cut when it is long.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_RECEIVER) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
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
