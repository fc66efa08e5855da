//! Completeness of answers that cover the whole workspace.
//!
//! Every file that contains the name, according to the word index, is opened, whatever the server's configuration
//! includes. Afterwards every occurrence of the name is explained (see [`super::occurrences`]), and the verdict
//! reports what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::blocking::blocking;
use super::context::RequestContext;
use super::failure::Failure;
use super::locations::preview;
use super::occurrences::{Explained, Token, UnresolvedToken};
use super::request_state::RequestTarget;
use crate::lsp::{LspLocation, Profile};
use crate::model::facts::{
    Completeness, CompletenessStatus, ExplainedCounts, Occurrence, Residue, Unresolved, UnresolvedOccurrence,
};
use crate::model::request::Scope;
use crate::path::{AbsPath, WorkspacePath, is_python};
use crate::python::local_variable::code_of_local_variable;
use crate::python::occurrences::{self, OccurrenceKind};
use crate::text::{Position, SourceEncoding};
use crate::workspace::files::{Document, Files as _};
use crate::workspace::parallel::parallel_map;

/// At most this many occurrences of a residue are listed; all are counted.
const MAX_LISTED: usize = 20;

/// The maximum length of an unresolved occurrence's receiver, in characters.
const MAX_RECEIVER_LENGTH: usize = 60;

/// The files that contain a name, and which of them the server knows.
pub(super) struct SearchedFiles {
    /// Readable files of the workspace that contain it.
    with_name: Vec<Arc<Document>>,
    /// How many of them the server knows.
    shown: usize,
    /// Files that could not be read.
    unreadable: Vec<AbsPath>,
    /// In which files the symbol can be used.
    pub(super) used_in: UsedIn,
    /// Why uses in the searched files may be missed.
    linked: Option<String>,
}

impl SearchedFiles {
    /// The completeness of an answer for which only the searched files matter, not the occurrences.
    pub(super) fn of_files(&self, cx: &RequestContext<'_>) -> Completeness {
        let (status, reason) = self.status(cx);
        Completeness {
            status,
            reason,
            scope: cx.request.options.scope,
            files_with_name: count(self.with_name.len()),
            files_searched: count(self.shown),
            explained: None,
            agreement: None,
            unresolved: Unresolved::default(),
        }
    }

    /// The status, and the reason if it is not `complete`.
    fn status(&self, cx: &RequestContext<'_>) -> (CompletenessStatus, Option<String>) {
        let (mut status, mut reason) = status(cx, &self.unreadable);
        weaken(&mut status, &mut reason, CompletenessStatus::Unknown, self.linked.clone());
        (status, reason)
    }

    /// The files that contain the name.
    pub(super) fn with_name(&self) -> impl Iterator<Item = &Arc<Document>> {
        self.with_name.iter()
    }
}

/// Also opens every file that contains another name: an alias.
pub(super) fn also_open_files_with_name(
    cx: &RequestContext<'_>,
    searched: &mut SearchedFiles,
    name: &str,
) -> Result<(), Failure> {
    let more = open_files_with_names(cx, &[name], &[], UsedIn::AnyFile)?;
    for document in more.with_name {
        if searched.with_name.iter().all(|known| known.path != document.path) {
            searched.shown += usize::from(cx.is_open(&document.path));
            searched.with_name.push(document);
        }
    }
    searched.with_name.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(())
}

/// In which files a symbol can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsedIn {
    /// In any that has its name.
    AnyFile,
    /// In its own: it is a local variable.
    OwnFile,
}

impl UsedIn {
    /// Whether the server is asked for the references in the file only: one that searches all files would take long for nothing.
    pub(super) fn is_asked_for_highlights(self, cx: &RequestContext<'_>) -> bool {
        self == Self::OwnFile
            && !Profile::of(cx.settings.server).finds_files
            && cx.server.client.capabilities().document_highlight
    }

    /// Where what is named at a place can be used. Only the syntax is looked at, before the server is asked.
    pub(super) fn of(target: &RequestTarget) -> Self {
        let (document, offset) = target.reference_position();
        match code_of_local_variable(&document.text, offset) {
            Some(_) => Self::OwnFile,
            None => Self::AnyFile,
        }
    }
}

/// Opens the files of the targets, and every file of the workspace that contains one of the names and in which the symbol can be used,
/// unless the server finds those files itself.
pub(super) fn open_files_with_names(
    cx: &RequestContext<'_>,
    names: &[&str],
    targets: &[&AbsPath],
    used_in: UsedIn,
) -> Result<SearchedFiles, Failure> {
    let snapshot = &cx.state.inputs.snapshot;
    let files_with_name: BTreeSet<AbsPath> = names
        .iter()
        .flat_map(|name| cx.state.files_with_word(name))
        .map(|path| snapshot.absolute(&path))
        .collect();
    let mut unreadable = unreadable(cx);
    let configured = cx.request.options.scope == Scope::Configured;
    let finds_files = Profile::of(cx.settings.server).finds_files || used_in == UsedIn::OwnFile;
    // No server finds a script without a suffix.
    let is_opened = |path: &&AbsPath| {
        !configured && (!finds_files || used_in == UsedIn::AnyFile && !is_python(path.as_str()))
    };
    let open: BTreeSet<AbsPath> =
        files_with_name.iter().filter(is_opened).chain(targets.iter().copied()).cloned().collect();
    unreadable.extend(cx.open(open.iter().cloned())?);
    let with_name: Vec<_> =
        files_with_name.iter().filter_map(|path| cx.state.files.read(path).ok()).collect();
    let is_shown = |path| finds_files && !configured || open.contains(path);
    let shown = with_name.iter().filter(|document| is_shown(&document.path)).count();
    let linked = (used_in == UsedIn::AnyFile)
        .then(|| targets.iter().find_map(|target| cx.state.linked(target)))
        .flatten();
    Ok(SearchedFiles { with_name, shown, unreadable, used_in, linked })
}

/// Starts to search the name's occurrences, while the server is busy.
pub(super) fn occurrences(
    cx: &RequestContext<'_>,
    searched: &SearchedFiles,
    name: &str,
) -> impl Future<Output = Result<Vec<FileOccurrences>, Failure>> + use<> {
    let (documents, name, threads) = (searched.with_name.clone(), name.to_owned(), cx.settings.threads);
    blocking(move || {
        parallel_map(&documents, threads, |document| {
            let found = occurrences::occurrences(&document.text, document.digest, &name);
            (document.clone(), found.into_iter().map(|found| (found.span(), found.kind)).collect::<Vec<_>>())
        })
    })
}

/// The occurrences in one file.
type FileOccurrences = (Arc<Document>, Vec<(std::ops::Range<usize>, OccurrenceKind)>);

/// The completeness of an answer for which `documents` files were searched, without a statement about occurrences.
pub(super) fn of_documents(
    cx: &RequestContext<'_>,
    documents: usize,
    unreadable: &[AbsPath],
) -> Completeness {
    let (status, reason) = status(cx, unreadable);
    let count = u32::try_from(documents).unwrap_or(u32::MAX);
    Completeness {
        status,
        reason,
        scope: cx.request.options.scope,
        files_with_name: count,
        files_searched: if cx.request.options.scope == Scope::Configured {
            cx.enumerated.min(count)
        } else {
            count
        },
        explained: None,
        agreement: None,
        unresolved: Unresolved::default(),
    }
}

/// The workspace's files that cannot be read, or are in an encoding that is not known.
pub(super) fn unreadable(cx: &RequestContext<'_>) -> Vec<AbsPath> {
    let snapshot = &cx.state.inputs.snapshot;
    let failed = snapshot.files().iter().filter(|(_, digest)| digest.is_none()).map(|(path, _)| path);
    let is_unknown = |path: &&WorkspacePath| {
        let read = cx.state.files.read(&snapshot.absolute(path));
        read.is_ok_and(|document| document.encoding == SourceEncoding::Unknown)
    };
    let unknown = snapshot.not_utf8().iter().filter(is_unknown);
    let paths: BTreeSet<AbsPath> = failed.chain(unknown).map(|path| snapshot.absolute(path)).collect();
    paths.into_iter().collect()
}

/// The status, and the reason if it is not `complete`.
fn status(cx: &RequestContext<'_>, unreadable: &[AbsPath]) -> (CompletenessStatus, Option<String>) {
    let reason = if let Some(path) = unreadable.first() {
        let uri = cx.locations.paths.uri(path);
        Some(format!("{} of the workspace's files cannot be read, the first is {uri}", unreadable.len()))
    } else if let Some(first) = cx.state.inputs.snapshot.unreadable().first() {
        Some(format!("the folder or name {first:?} cannot be read"))
    } else if cx.request.options.scope == Scope::Configured {
        Some("the search was limited to what the server's configuration includes".to_owned())
    } else {
        None
    };
    (if reason.is_some() { CompletenessStatus::Unknown } else { CompletenessStatus::Complete }, reason)
}

/// Makes what is called complete weaker if there is a reason for that.
pub(super) fn weaken(
    status: &mut CompletenessStatus,
    reason: &mut Option<String>,
    to: CompletenessStatus,
    why: Option<String>,
) {
    if *status == CompletenessStatus::Complete && why.is_some() {
        (*status, *reason) = (to, why);
    }
}

/// Places that are explained already, by file.
pub(super) struct ClaimedPlaces<'p>(BTreeMap<&'p AbsPath, BTreeSet<Position>>);

impl<'p> ClaimedPlaces<'p> {
    pub(super) fn new(places: impl Iterator<Item = &'p LspLocation>) -> Self {
        let mut by_file: BTreeMap<&AbsPath, BTreeSet<_>> = BTreeMap::new();
        for place in places {
            by_file.entry(&place.path).or_default().insert(place.range.start);
        }
        Self(by_file)
    }

    /// The other occurrences of the names in a file, in order. The file is parsed only if there may be some, and its tree is cached. If
    /// the symbol `cannot_be_used` in the file, all tokens of code may be given as identifiers.
    pub(super) fn others(
        &self,
        cx: &RequestContext<'_>,
        document: &Arc<Document>,
        names: &[&str],
        cannot_be_used: bool,
    ) -> Vec<Token> {
        let nothing = BTreeSet::new();
        let claimed = self.0.get(&document.path).unwrap_or(&nothing);
        let is_claimed = |offset: usize| {
            let at = document.lines.position(&document.text, offset, cx.locations.server_unit);
            claimed.contains(&at)
        };
        let mut others = Vec::new();
        for name in names {
            let candidates = occurrences::candidates(&document.text, name);
            let candidates: Vec<usize> = candidates.filter(|start| !is_claimed(*start)).collect();
            if candidates.is_empty() {
                continue;
            }
            let without_parsing =
                if cannot_be_used { occurrences::tokens_and_text } else { occurrences::plain_text };
            let found = without_parsing(&document.text, name, &candidates).unwrap_or_else(|| {
                let all = occurrences::occurrences_keeping_tree(&document.text, document.digest, name);
                all.into_iter().filter(|found| !is_claimed(found.start)).collect()
            });
            let found = found.into_iter();
            others.extend(found.map(|found| Token::new(document.clone(), found.span(), found.kind)));
        }
        others.sort_by_key(|token| token.span.start);
        others
    }
}

/// The occurrences at none of the claimed places, in the order of files and positions.
pub(super) fn unclaimed<'p>(
    cx: &RequestContext<'_>,
    occurrences: &[FileOccurrences],
    claimed: impl Iterator<Item = &'p LspLocation>,
) -> Vec<Token> {
    let by_file = ClaimedPlaces::new(claimed);
    let nothing = BTreeSet::new();
    let mut unclaimed = Vec::new();
    for (document, found) in occurrences {
        let claimed = by_file.0.get(&document.path).unwrap_or(&nothing);
        for (span, kind) in found {
            let start = document.lines.position(&document.text, span.start, cx.locations.server_unit);
            if !claimed.contains(&start) {
                unclaimed.push(Token::new(document.clone(), span.clone(), *kind));
            }
        }
    }
    unclaimed.sort_by(|a, b| (&a.document.path, a.span.start).cmp(&(&b.document.path, b.span.start)));
    unclaimed
}

/// The occurrences of the old name that a rename leaves unedited.
pub(super) fn residue(cx: &RequestContext<'_>, unclaimed: &[Token]) -> Residue {
    let mut residue = Residue { count: count(unclaimed.len()), ..Residue::default() };
    for one in unclaimed {
        *residue.kinds.entry(one.kind.as_str().to_owned()).or_default() += 1;
    }
    let mut listed: Vec<&Token> = unclaimed.iter().collect();
    listed.sort_by_key(|one| (listing_order(one.kind), !is_whole_string(one)));
    listed.truncate(MAX_LISTED);
    let items = listed.into_iter().map(|one| {
        let (_, range, at) = cx.locations.span(&one.document, one.span.clone());
        let preview = preview(&one.document, range.start.line);
        Occurrence { at, kind: one.kind.as_str().to_owned(), preview }
    });
    residue.items = items.collect();
    residue
}

/// The completeness of a list of references whose occurrences were all explained. All unresolved occurrences are
/// listed.
pub(super) fn verdict(
    cx: &RequestContext<'_>,
    searched: &SearchedFiles,
    explained: &Explained,
) -> Completeness {
    let (mut status, mut reason) = searched.status(cx);
    weaken(&mut status, &mut reason, CompletenessStatus::Unknown, explained.cut.clone());
    let unresolved = (!explained.unresolved.is_empty()).then(|| reasons(&explained.unresolved));
    weaken(&mut status, &mut reason, CompletenessStatus::Partial, unresolved);
    Completeness {
        status,
        reason,
        scope: cx.request.options.scope,
        files_with_name: count(searched.with_name.len()),
        files_searched: count(searched.shown),
        explained: Some(ExplainedCounts {
            reference: count(explained.references.len()),
            overriding: count(explained.overrides.len()),
            other: count(explained.other),
            text: count(explained.text),
        }),
        agreement: explained.compared,
        unresolved: Unresolved {
            count: count(explained.unresolved.len()),
            items: explained.unresolved.iter().map(|one| unresolved_use(cx, one)).collect(),
        },
    }
}

/// The reasons why occurrences are unresolved, the most frequent first.
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
    let parts: Vec<String> =
        counts.iter().take(3).map(|(reason, count)| format!("{reason} ({count})")).collect();
    let more = if counts.len() > 3 { ", …" } else { "" };
    format!("{}{more}", parts.join(", "))
}

fn unresolved_use(cx: &RequestContext<'_>, one: &UnresolvedToken) -> UnresolvedOccurrence {
    let (uri, range, at) = cx.locations.span(&one.token.document, one.token.span.clone());
    UnresolvedOccurrence {
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
    match line.char_indices().nth(MAX_RECEIVER_LENGTH) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Whether a name is all that a string holds, or is called in it: `"name"`, `"x.name()"`. A program may look it up.
fn is_whole_string(one: &Token) -> bool {
    let text = &one.document.text;
    let (before, after) = (&text[..one.span.start], &text[one.span.end..]);
    let is_quote = |c: char| c == '"' || c == '\'';
    (before.ends_with(is_quote) && after.starts_with(is_quote))
        || (before.ends_with('.') && after.starts_with('('))
}

/// The order of the listing: tokens, which may be unproven uses, then strings, which a program may evaluate, then
/// comments.
const fn listing_order(kind: OccurrenceKind) -> u8 {
    match kind {
        OccurrenceKind::Identifier | OccurrenceKind::Attribute | OccurrenceKind::Keyword => 0,
        OccurrenceKind::Exported | OccurrenceKind::String => 1,
        OccurrenceKind::Comment => 2,
    }
}
