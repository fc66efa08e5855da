//! Targets whose new location does not follow with certainty from the two states alone: the commits between them decide.

use std::sync::{Arc, Mutex, PoisonError};

use super::past::{VersionedTarget, gone, relocate_from};
use super::{LocateOutcome, LocatedTarget, ResolveContext, ResolvedVia};
use crate::relocate::TargetChange;
use crate::relocate::trail::{Trail, TrailEnd, follow};
use crate::selector::PositionSpec;
use crate::workspace::files::Document;
use crate::workspace::history::RevisionFiles;

/// Locates a target by the commits since its revision. `direct` is what the two states alone show.
pub(super) fn by_commits(
    cx: &ResolveContext<'_>,
    old: &VersionedTarget,
    past: Option<&Mutex<RevisionFiles>>,
    selector: &PositionSpec,
    then: &str,
    direct: LocateOutcome,
) -> LocateOutcome {
    let Some(trail) = past.and_then(|past| trail(cx, old, past)) else { return direct };
    match &trail.end {
        TrailEnd::Unclear { .. } => direct,
        TrailEnd::Gone { commit, reason } => {
            let reason = format!("{reason}; commit {} removed it", short(commit));
            match direct {
                // Something with the same name or body was added again later, which may be another thing.
                LocateOutcome::Found(mut located) => {
                    located.evidence = located
                        .evidence
                        .with_doubt(format!("commit {} removed it, and this came later", short(commit)));
                    LocateOutcome::Found(located)
                }
                _ => gone(reason),
            }
        }
        TrailEnd::At { path, span } => {
            let Ok(head) = RevisionFiles::at(cx.snapshot.root(), "HEAD", cx.tape) else { return direct };
            let Some(bytes) = head.read(path) else { return direct };
            let document = Arc::new(Document::new(cx.snapshot.absolute(path), bytes));
            let last = VersionedTarget { document, span: span.clone(), role: old.role, doubt: old.doubt };
            let head = Mutex::new(head);
            match relocate_from(cx, &last, Some(&head), selector, then) {
                LocateOutcome::Found(located) => {
                    LocateOutcome::Found(Box::new(combine(&trail, *located, &direct)))
                }
                _ => direct,
            }
        }
    }
}

/// The evidence of the commits and of the last step, from `HEAD` to the files.
fn combine(trail: &Trail, mut located: LocatedTarget, direct: &LocateOutcome) -> LocatedTarget {
    let evidence = &mut located.evidence;
    let product = trail.confidence() * evidence.score;
    let agrees = match direct {
        LocateOutcome::Found(other) => {
            other.target.document.path == located.target.document.path
                && other.target.span == located.target.span
        }
        _ => false,
    };
    let other = match direct {
        LocateOutcome::Found(other) if agrees => other.evidence.score,
        _ => 0.0,
    };
    evidence.certified &= trail.steps.is_empty();
    evidence.score = if evidence.certified { 1.0 } else { product.max(other).min(0.99) };
    let last = match evidence.via {
        ResolvedVia::Since(change) => change,
        _ => TargetChange::Unchanged,
    };
    let change =
        trail.steps.iter().map(|step| step.change).chain([last]).max_by_key(|change| weight(*change));
    evidence.via = ResolvedVia::Since(change.unwrap_or(last));
    let decided = trail.steps.iter().map(|step| format!("{} in commit {}", step.reason, short(&step.commit)));
    let decided: Vec<String> = decided.collect();
    if !decided.is_empty() {
        evidence.reason = decided.join("; ");
    }
    evidence.trail = trail.steps.clone();
    located
}

/// Which of several changes describes all of them best.
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

fn trail(cx: &ResolveContext<'_>, old: &VersionedTarget, past: &Mutex<RevisionFiles>) -> Option<Trail> {
    let path = cx.relative(&old.document.path)?;
    let key = format!("{path} {} {}..{}", old.document.digest, old.span.start, old.span.end);
    let past = past.lock().unwrap_or_else(PoisonError::into_inner);
    past.walk(&key, |commits| {
        Some(follow(commits, cx.snapshot.root(), &path, old.document.clone(), old.span.clone()))
    })
}

/// The first digits of a commit's ID.
fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
