//! Targets whose new location does not follow with certainty from the two states alone: the states between them decide,
//! which are those of the commits, or those of lanser's own transactions.

use std::sync::{Arc, Mutex, PoisonError};

use super::past::{VersionedTarget, content, gone, relocate_from, same_content};
use super::{LocateOutcome, LocatedTarget, ResolveContext, ResolvedVia};
use crate::digest::Digest;
use crate::path::WorkspacePath;
use crate::relocate::TargetChange;
use crate::relocate::trail::{HistoryTrail, StepCache, TrailEnd, TrailState, follow};
use crate::selector::{DocVersion, PositionSpec};
use crate::tape::{IoKind, Tape};
use crate::workspace::disk_cache::DiskCache;
use crate::workspace::files::Document;
use crate::workspace::history::RevisionFiles;

/// Locates a target by the states since its revision, unless `direct`, which is what the two ends alone show, is certain. `then` is
/// the text of the requested part in the state of the selector.
pub(super) fn by_states_between(
    cx: &ResolveContext<'_>,
    old: &VersionedTarget,
    past: Option<&Mutex<RevisionFiles>>,
    selector: &PositionSpec,
    then: &str,
    direct: LocateOutcome,
) -> LocateOutcome {
    if is_certain(&direct) {
        return direct;
    }
    let search = StatesBetween { cx, selector, then };
    let logged = matches!(selector.doc_version(), Some(DocVersion::Content(_)))
        .then(|| transactions_trail(cx, old, &cx.relative(&old.document.path)?))
        .flatten();
    let Some(trail) = logged else { return search.by_commits(old, past, direct) };
    let last = match &trail.end {
        TrailEnd::At { path, digest, .. } => {
            RevisionFiles::containing(cx.snapshot.root(), path, digest, cx.tape).map(Mutex::new)
        }
        TrailEnd::Gone { .. } | TrailEnd::Unclear { .. } => None,
    };
    search.by_trail(old, &trail, last.as_ref(), direct, |state, direct| match is_certain(&direct) {
        true => direct,
        false => search.by_commits(state, last.as_ref(), direct),
    })
}

/// Whether two states alone show where a target is: no other definition can have taken its place in between.
fn is_certain(direct: &LocateOutcome) -> bool {
    matches!(direct, LocateOutcome::Found(located) if located.evidence.certified && located.evidence.close)
}

/// What targets are located for; see [`by_states_between`].
struct StatesBetween<'s> {
    cx: &'s ResolveContext<'s>,
    selector: &'s PositionSpec,
    then: &'s str,
}

impl StatesBetween<'_> {
    /// Locates a target by the commits since its revision.
    fn by_commits(
        &self,
        old: &VersionedTarget,
        past: Option<&Mutex<RevisionFiles>>,
        direct: LocateOutcome,
    ) -> LocateOutcome {
        let cx = self.cx;
        let trail = past.zip(cx.relative(&old.document.path));
        let Some(trail) = trail.and_then(|(past, path)| commits_trail(cx, old, &path, past)) else {
            return direct;
        };
        let head = RevisionFiles::at(cx.snapshot.root(), "HEAD", cx.tape).ok().map(Mutex::new);
        self.by_trail(old, &trail, head.as_ref(), direct, |_, direct| direct)
    }

    /// Locates a target by a trail, which ends in the state `last`. `onward` follows it from there to the current files, given what
    /// these two states alone show.
    fn by_trail(
        &self,
        old: &VersionedTarget,
        trail: &HistoryTrail,
        last: Option<&Mutex<RevisionFiles>>,
        direct: LocateOutcome,
        onward: impl FnOnce(&VersionedTarget, LocateOutcome) -> LocateOutcome,
    ) -> LocateOutcome {
        let Some(path) = self.cx.relative(&old.document.path) else { return direct };
        match &trail.end {
            TrailEnd::Unclear { by } => match direct {
                // It may be another definition of the name.
                LocateOutcome::Found(mut located) if located.evidence.certified => {
                    let evidence = &mut located.evidence;
                    evidence.certified = false;
                    evidence.score = evidence.score.min(0.95);
                    evidence.reason = format!("{}; {} left it unclear", evidence.reason, short(by));
                    LocateOutcome::Found(located)
                }
                direct => direct,
            },
            // Nothing between the two ends changed it.
            TrailEnd::At { path: now, digest, .. } if *now == path && *digest == old.document.digest => {
                direct
            }
            TrailEnd::Gone { by, reason } => match direct {
                // Something with the same name was added again later, and may be another thing. Another name is not.
                LocateOutcome::Found(mut located) if !is_renamed(&located) => {
                    let doubt = format!("{} removed it, and this was added later", short(by));
                    located.evidence = located.evidence.with_doubt(doubt);
                    LocateOutcome::Found(located)
                }
                _ => gone(format!("{reason} ({} removed it)", short(by))),
            },
            TrailEnd::At { path, span, digest } => {
                let Ok(bytes) = content(self.cx, digest, last, Some(&self.cx.snapshot.absolute(path))) else {
                    return direct;
                };
                let document = Arc::new(Document::new(self.cx.snapshot.absolute(path), bytes));
                let doubt = old.doubt.clone();
                let state = VersionedTarget { document, span: span.clone(), part: old.part, doubt };
                match onward(&state, relocate_from(self.cx, &state, last, self.selector, self.then)) {
                    LocateOutcome::Found(located) if is_same(&direct, &located, trail) => direct,
                    LocateOutcome::Found(located) => {
                        LocateOutcome::Found(Box::new(combine(trail, *located, &direct)))
                    }
                    _ => direct,
                }
            }
        }
    }
}

/// Whether every state between confirms what the two ends alone show.
fn is_same(direct: &LocateOutcome, located: &LocatedTarget, trail: &HistoryTrail) -> bool {
    let LocateOutcome::Found(direct) = direct else { return false };
    direct.evidence.certified
        && located.evidence.certified
        && trail.steps.is_empty()
        && is_at_same_place(direct, located)
}

fn is_at_same_place(one: &LocatedTarget, other: &LocatedTarget) -> bool {
    one.target.document.path == other.target.document.path && one.target.span == other.target.span
}

/// Whether a target was found under another name.
fn is_renamed(located: &LocatedTarget) -> bool {
    located.evidence.via == ResolvedVia::Since(TargetChange::Renamed)
}

/// Adds the evidence of the states between to that of the last step, which leads to the current files.
fn combine(trail: &HistoryTrail, mut located: LocatedTarget, direct: &LocateOutcome) -> LocatedTarget {
    let agreeing = match direct {
        LocateOutcome::Found(other) if is_at_same_place(other, &located) => other.evidence.score,
        _ => 0.0,
    };
    let evidence = &mut located.evidence;
    evidence.certified &= trail.steps.is_empty();
    if !evidence.certified {
        evidence.score = (trail.confidence() * evidence.score).max(agreeing).min(0.99);
    }
    let last = match evidence.via {
        ResolvedVia::Since(change) => change,
        _ => TargetChange::Unchanged,
    };
    let changes = trail.steps.iter().map(|step| step.change);
    evidence.via = ResolvedVia::Since(changes.chain([last]).max_by_key(|it| weight(*it)).unwrap_or(last));
    let steps = trail.steps.iter().map(|step| format!("{} ({})", step.reason, short(&step.by)));
    let mut steps: Vec<String> = steps.collect();
    if !steps.is_empty() {
        if evidence.followed_history {
            steps.push(std::mem::take(&mut evidence.reason));
        }
        evidence.reason = steps.join("; ");
    }
    evidence.followed_history = true;
    evidence.trail.splice(0..0, trail.steps.iter().cloned());
    located
}

/// Which of several changes says most about what became of a target.
const fn weight(change: TargetChange) -> u8 {
    match change {
        TargetChange::Unchanged => 0,
        TargetChange::Shifted => 1,
        TargetChange::Edited => 2,
        TargetChange::SignatureChanged => 3,
        TargetChange::Split => 4,
        TargetChange::Merged => 5,
        TargetChange::Moved => 6,
        TargetChange::Renamed => 7,
    }
}

/// Follows a target through the commits after its revision.
fn commits_trail(
    cx: &ResolveContext<'_>,
    old: &VersionedTarget,
    path: &WorkspacePath,
    past: &Mutex<RevisionFiles>,
) -> Option<HistoryTrail> {
    let key = format!("{path} {} {}..{}", old.document.digest, old.span.start, old.span.end);
    let start =
        TrailState { at: 0, path: path.clone(), document: old.document.clone(), span: old.span.clone() };
    let past = past.lock().unwrap_or_else(PoisonError::into_inner);
    past.walk(&key, |commits| {
        let ends = commits.ends();
        // Two builds of one version may give different answers.
        let fields = [env!("LANSER_BUILD"), &ends, cx.cache_scope];
        let group = Digest::of_fields(fields.map(str::as_bytes));
        let whole = Digest::of(key.as_bytes());
        let cached = cx.trails.and_then(|cache| serde_json::from_slice(&cache.get(&group, &whole)?).ok());
        cached.or_else(|| {
            let steps = CachedSteps { cache: cx.trails };
            let trail = follow(commits, cx.snapshot.root(), start, &steps);
            if let Some(cache) = cx.trails {
                cache.put(&group, &whole, |out| Ok(serde_json::to_writer(out, &trail)?));
            }
            Some(trail)
        })
    })
}

/// Follows a target through the transactions after the state that its selector was made in.
fn transactions_trail(
    cx: &ResolveContext<'_>,
    old: &VersionedTarget,
    path: &WorkspacePath,
) -> Option<HistoryTrail> {
    let transactions = cx.transactions?;
    let walk = || {
        let committed = |digest: &Digest| {
            RevisionFiles::containing(cx.snapshot.root(), path, digest, &Tape::off())?.read(path)
        };
        let stored = |digest: &Digest| {
            let kept = cx.contents.and_then(|contents| contents.get(digest));
            kept.or_else(|| same_content(cx, digest)).or_else(|| committed(digest))
        };
        let (states, at) = transactions.states_with(path, &old.document.digest, &stored)?;
        let start =
            TrailState { at, path: path.clone(), document: old.document.clone(), span: old.span.clone() };
        Some(follow(&states, cx.snapshot.root(), start, &CachedSteps { cache: None }))
    };
    let key = ("transactions", path, old.document.digest, old.span.start, old.span.end);
    cx.tape.query_rare(IoKind::History, &key, walk)
}

/// The comparisons of two contents of one file, on disk.
struct CachedSteps<'c> {
    cache: Option<&'c DiskCache>,
}

impl CachedSteps<'_> {
    fn group() -> Digest {
        Digest::of_fields([env!("LANSER_BUILD").as_bytes(), b"steps"])
    }
}

impl StepCache for CachedSteps<'_> {
    fn get(&self, key: &Digest) -> Option<Vec<u8>> {
        self.cache?.get(&Self::group(), key)
    }

    fn put(&self, key: &Digest, bytes: &[u8]) {
        if let Some(cache) = self.cache {
            cache.put(&Self::group(), key, |out| out.write_all(bytes));
        }
    }
}

/// A commit or transaction, with the first digits of its ID.
pub(super) fn short(id: &str) -> String {
    match id.len() {
        40 | 64 => format!("commit {}", id.get(..10).unwrap_or(id)),
        _ => format!("transaction {id}"),
    }
}
