//! Relocation: finds a span of an old text in the new one. A pure function of texts.
//!
//! 1. [`pairs`] matches the definitions of the whole old text with those of the new text: first definitions that kept their
//!    name, then those that lost theirs with new ones.
//! 2. [`align`] aligns statements and tokens inside matched definitions.
//! 3. [`span_mapper`] maps a span to where its tokens went.
//! 4. [`cross_file`] searches the new definitions of other files for a definition that left its file.
//! 5. [`trail`] repeats this for each commit between two revisions.
//!
//! A target whose own text is unchanged and that has no other possible location is *certified*.
//!
//! Nothing is guessed that the texts do not show. Two candidates with about the same score make the result ambiguous. Where
//! nothing new resembles the target, it is gone, however similar a definition is that existed before.

mod align;
pub mod anchor;
mod common_subsequence;
mod continuation;
mod cross_file;
pub mod definitions;
pub mod index;
pub mod lazy_index;
mod lex;
pub mod locate;
mod pairs;
pub mod score;
pub mod selector_forms;
mod shape;
mod span_mapper;
pub(crate) mod structure;
#[cfg(test)]
mod tests;
pub mod trail;

use std::sync::Arc;

use crate::python::outline::{DefinitionKind, Span};
use crate::workspace::files::Document;
use cross_file::CrossFileSearch;
pub(super) use cross_file::module_similarity;
pub(super) use lex::hash_of;
use pairs::{AnalyzedText, DefinitionLink, DefinitionPairs, PairingOptions};
pub use score::MatchFeatures;
use score::{MARGIN, THRESHOLD};
pub(crate) use shape::sketch;
use span_mapper::{MapOutcome, MappedSpan, SpanMapper};

/// How a target changed between the old state and the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetChange {
    /// Nothing changed: same text, same offset.
    Unchanged,
    /// Only text before it changed.
    Shifted,
    /// It was edited in place.
    Edited,
    /// The parameters, the return annotation or the bases changed.
    SignatureChanged,
    /// It moved within the file or to another file.
    Moved,
    /// It or an enclosing definition was renamed.
    Renamed,
    /// A part of it moved to another definition.
    Split,
    /// It was merged into another definition.
    Merged,
}

/// A location in the new state that matches the target.
#[derive(Debug, Clone)]
pub struct RelocationMatch {
    /// The file.
    pub document: Arc<Document>,
    /// The bytes of the target in it.
    pub span: Span,
    /// How the target changed.
    pub change: TargetChange,
    /// The components of the score.
    pub features: MatchFeatures,
    /// The score.
    pub score: f64,
    /// The distance to the score of the next candidate.
    pub margin: f64,
    /// Whether the target's own text is unchanged and no other location is possible.
    pub certified: bool,
    /// Whether the definition around it kept nearly all of its text, so that none with the same name can have taken its place
    /// between the two states.
    pub close: bool,
    /// The evidence, in one line.
    pub reason: String,
}

/// The result of a relocation.
#[derive(Debug, Clone)]
pub enum RelocationOutcome {
    /// The target was found.
    Found(Box<RelocationMatch>),
    /// The target is one of these, best first, or none of them.
    Ambiguous(Vec<RelocationMatch>),
    /// The target no longer exists.
    Gone {
        /// Why, in one line.
        reason: String,
        /// The definition that contained it, or the best candidate below the threshold.
        closest: Option<Box<RelocationMatch>>,
    },
}

/// The features by which a definition that left its file is searched for.
#[derive(serde::Serialize, Debug, Clone, PartialEq)]
pub struct MissingDefinition {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: DefinitionKind,
    /// The sketch of its body.
    pub sketch: crate::selector::Sketch,
    /// The number of tokens in its body.
    pub size: u32,
}

/// The old content of a file that may hold a candidate.
#[derive(Debug, Clone)]
pub enum OldContent {
    /// Not available.
    Unknown,
    /// The file did not exist.
    Absent,
    /// The file had this text.
    Text(Arc<str>),
}

/// Another file that may hold a definition that left its own file.
#[derive(Debug, Clone)]
pub struct OtherFile {
    /// Its path, relative to the workspace.
    pub path: String,
    /// Its present content.
    pub document: Arc<Document>,
    /// Its old content.
    pub before: OldContent,
}

/// The other files of the workspace.
pub trait OtherFiles {
    /// The files that define something similar to one of these and that differ from the old state, as far as the old state
    /// is known.
    fn files(&self, wanted: &[MissingDefinition]) -> Vec<OtherFile>;
}

/// The span to relocate.
pub struct OldTarget<'t> {
    /// The path of its file in the old state, relative to the workspace if it is inside.
    pub path: &'t str,
    /// The old text of the file.
    pub text: &'t str,
    /// The bytes of the target in it.
    pub span: Span,
}

/// Relocates a target. `current` is the same file in the new state, under its new name if that is known; `None` if the file
/// no longer exists.
#[must_use]
pub fn relocate(
    target: &OldTarget<'_>,
    current: Option<&Arc<Document>>,
    other_files: &dyn OtherFiles,
) -> RelocationOutcome {
    let Some(span) = valid_span(target) else {
        return RelocationOutcome::Gone { reason: "the old text has no such span".to_owned(), closest: None };
    };
    if let Some(document) = current
        && document.text == target.text
    {
        return RelocationOutcome::Found(Box::new(RelocationMatch {
            document: document.clone(),
            span,
            change: TargetChange::Unchanged,
            features: MatchFeatures::SAME,
            score: 1.0,
            margin: 1.0,
            certified: true,
            close: true,
            reason: "the file is unchanged".to_owned(),
        }));
    }
    let old = AnalyzedText::new(target.text);
    let search = CrossFileSearch { path: target.path, old: &old, span: &span, other_files };
    let Some(document) = current else { return search.for_missing_file() };
    let new = AnalyzedText::new(&document.text);
    let pairs = DefinitionPairs::new(&old, &new, PairingOptions::same_file());
    match SpanMapper::new(&pairs).map(&span) {
        MapOutcome::Found(mapped_span) => decide(match_of_span(&pairs, document, &span, &mapped_span)),
        MapOutcome::OwnerLost(owner) => search.for_missing_definition(owner, Some((&pairs, document))),
        MapOutcome::Removed(owner) => removed_from_owner(&pairs, document, owner),
    }
}

/// The span, if it is valid in the text.
fn valid_span(target: &OldTarget<'_>) -> Option<Span> {
    let span = target.span.clone();
    target.text.get(span.clone()).map(|_| span)
}

/// Accepts a match with a sufficient score, rejects one far below the threshold, and calls the rest ambiguous.
fn decide(place: RelocationMatch) -> RelocationOutcome {
    if place.certified || (place.score >= THRESHOLD && place.margin >= MARGIN) {
        RelocationOutcome::Found(Box::new(place))
    } else if place.score < THRESHOLD - MARGIN {
        let reason = "it is gone, and nothing new is similar enough".to_owned();
        RelocationOutcome::Gone { reason, closest: Some(Box::new(place)) }
    } else {
        RelocationOutcome::Ambiguous(vec![place])
    }
}

/// The target was removed from a definition that still exists.
fn removed_from_owner(
    pairs: &DefinitionPairs<'_, '_>,
    document: &Arc<Document>,
    owner: Option<u32>,
) -> RelocationOutcome {
    let Some((owner, link)) = owner.and_then(|owner| Some((owner, pairs.links[owner as usize]?))) else {
        return RelocationOutcome::Gone {
            reason: "the statement was removed from the module".to_owned(),
            closest: None,
        };
    };
    let old = &pairs.old.structure;
    let name = old.chain(owner).join(".");
    let span = pairs.new.structure.name_span(&pairs.new.structure.defs[link.new as usize]);
    let reason = format!("the statement was removed from {name}");
    let was = old.name_span(&old.defs[owner as usize]);
    let mapped_span = MappedSpan {
        span,
        untouched: false,
        unambiguous: false,
        kept: 1.0,
        moved: false,
        owner: Some(owner),
    };
    RelocationOutcome::Gone {
        closest: Some(Box::new(match_of_span(pairs, document, &was, &mapped_span))),
        reason,
    }
}

/// The match of a span whose definition was matched.
fn match_of_span(
    pairs: &DefinitionPairs<'_, '_>,
    document: &Arc<Document>,
    was: &Span,
    mapped_span: &MappedSpan,
) -> RelocationMatch {
    let link = mapped_span.owner.and_then(|owner| pairs.links[owner as usize]);
    let (change, what) = describe_change(pairs, was, mapped_span, link);
    let mut features = link.map_or(MatchFeatures::SAME, |link| link.features);
    features.token_jaccard = features.token_jaccard.min(mapped_span.kept);
    let rewritten = mapped_span.owner.is_some_and(|owner| pairs.is_rewritten(owner));
    let certified = mapped_span.untouched && mapped_span.unambiguous && !rewritten;
    let around = mapped_span.owner.map_or(1.0, |owner| pairs.chain_score(owner));
    let score = if certified { 1.0 } else { features.score().min(around).min(0.99) };
    let margin = link.map_or(1.0, |link| link.margin);
    RelocationMatch {
        document: document.clone(),
        span: mapped_span.span.clone(),
        change,
        features: if certified { MatchFeatures::SAME } else { features },
        score,
        margin,
        certified,
        close: mapped_span.owner.is_none_or(|owner| pairs.is_close(owner)),
        reason: what,
    }
}

/// How a span changed, with the reason in one line.
fn describe_change(
    pairs: &DefinitionPairs<'_, '_>,
    was: &Span,
    mapped_span: &MappedSpan,
    link: Option<DefinitionLink>,
) -> (TargetChange, String) {
    let (old, new) = (&pairs.old.structure, &pairs.new.structure);
    let stays = if *was == mapped_span.span { TargetChange::Unchanged } else { TargetChange::Shifted };
    let Some((owner, link)) = mapped_span.owner.zip(link) else {
        return match () {
            () if mapped_span.moved => (TargetChange::Moved, "the statement was moved".to_owned()),
            () if !mapped_span.untouched => (TargetChange::Edited, "the statement was edited".to_owned()),
            () => (stays, "the same text in the same order".to_owned()),
        };
    };
    let (before, now) = (old.chain(owner).join("."), new.chain(link.new).join("."));
    let def = &old.defs[owner as usize];
    let is_definition = {
        let header = old.header_span(def);
        was.start <= header.end
    };
    if before != now {
        let same_name = old.name(def) == new.name(&new.defs[link.new as usize]);
        let scope_kept = def.parent.is_none_or(|parent| {
            pairs.links[parent as usize].map(|link| link.new) == new.defs[link.new as usize].parent
        });
        let moved = same_name && !(scope_kept && def.parent.is_some());
        let kind = if moved { TargetChange::Moved } else { TargetChange::Renamed };
        return (kind, format!("{before} is {now} now"));
    }
    if mapped_span.moved {
        let token = u32::try_from(new.token_from(mapped_span.span.start)).unwrap_or(u32::MAX);
        return match new.owner_of(token) {
            Some(other) if other != link.new => {
                let other = new.chain(other).join(".");
                (TargetChange::Split, format!("a part of {before} is in {other} now"))
            }
            _ => (TargetChange::Moved, format!("the statement was moved within {now}")),
        };
    }
    let header = |structure: &structure::TextStructure<'_>, index: u32| {
        let def = &structure.defs[index as usize];
        let first = structure.lines[def.header as usize].first;
        structure.tokens[first as usize..def.body as usize].iter().map(|token| token.hash).collect::<Vec<_>>()
    };
    if is_definition && header(old, owner) != header(new, link.new) {
        return (TargetChange::SignatureChanged, format!("the signature of {now} was edited"));
    }
    if pairs.changed_order(owner) {
        return (TargetChange::Moved, format!("{now} was moved within the file"));
    }
    if !mapped_span.untouched {
        return (TargetChange::Edited, format!("{now} was edited"));
    }
    (stays, format!("the same text in {now}"))
}
