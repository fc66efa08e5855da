//! Where a piece of an old text is now: relocation, as a pure function of texts.
//!
//! The old text is matched with the new one as a whole ([`pairs`]): what kept its name, then what lost its name against what
//! is new. Inside of matched definitions statements and tokens are aligned ([`lines`]), and a stretch goes where its tokens
//! went ([`place`]). A definition that is in its file no more is looked for among what is new in the other files
//! ([`across`]). A target whose own text is untouched and that can be no other place is *certified*.
//!
//! What cannot be told from the texts is not guessed: two candidates that are about as good make the answer ambiguous, and
//! where nothing that is new resembles the target it is gone, however much an older definition looks like it.

mod across;
pub mod anchor;
mod common;
mod lex;
mod lines;
mod pairs;
mod place;
pub mod score;
mod shape;
pub(crate) mod side;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::outline::{DefinitionKind, Span};
use crate::workspace::files::Document;
use across::Lost;
pub(super) use across::module_likeness;
pub(super) use lex::hash_of;
use pairs::{Link, Pairs, Shaped, Terms};
use place::{Fate, Mapper, Spot};
pub use score::Features;
use score::{MARGIN, THRESHOLD};
pub(crate) use shape::sketch;

/// What happened to a target between the old state and the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happened {
    /// Nothing: it stands where it stood.
    Unchanged,
    /// What stands before it grew or shrank.
    Shifted,
    /// It was edited in its place.
    Edited,
    /// The parameters, the result or the bases are other ones.
    SignatureChanged,
    /// It stands elsewhere, in the same file or in another.
    Moved,
    /// It, or what it is inside of, has another name.
    Renamed,
    /// A part of it stands in another definition.
    Split,
    /// Another definition took it in.
    Merged,
}

/// A place in the new state.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file.
    pub document: Arc<Document>,
    /// The bytes of the target in it.
    pub span: Span,
    /// What happened.
    pub happened: Happened,
    /// What the score is made of.
    pub features: Features,
    /// The score.
    pub score: f64,
    /// How much better it is than the next candidate.
    pub margin: f64,
    /// Whether the target's own text is untouched, and no other place can be meant.
    pub certified: bool,
    /// What speaks for it, in a line.
    pub reason: String,
}

/// What became of a target.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// It is there.
    At(Box<Place>),
    /// It is one of these, best first, or none.
    Ambiguous(Vec<Place>),
    /// It is not there any more.
    Gone {
        /// What is known, in a line.
        reason: String,
        /// Where what it was a part of is now.
        near: Option<Box<Place>>,
    },
}

/// What a definition that left its file is known by.
#[derive(serde::Serialize, Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: DefinitionKind,
    /// The sketch of its body.
    pub sketch: crate::selector::Sketch,
    /// How many tokens its body has.
    pub size: u32,
}

/// What is known of the old state of a file that holds a candidate.
#[derive(Debug, Clone)]
pub enum Before {
    /// Nothing.
    Unknown,
    /// There was no such file.
    Absent,
    /// Its text.
    Text(Arc<str>),
}

/// A file that may hold what left its own.
#[derive(Debug, Clone)]
pub struct OtherFile {
    /// Its path, relative to the workspace.
    pub path: String,
    /// Its present content.
    pub document: Arc<Document>,
    /// Its old content.
    pub before: Before,
}

/// The other files of the workspace.
pub trait Elsewhere {
    /// The files that define something that is like one of these and that differ from the old state, as far as that is
    /// known.
    fn files(&self, wanted: &[Wanted]) -> Vec<OtherFile>;
}

/// What is to be found again.
pub struct Target<'t> {
    /// The path of its file in the old state, relative to the workspace where it can be.
    pub path: &'t str,
    /// The old text of the file.
    pub text: &'t str,
    /// The bytes of the target in it.
    pub span: Span,
}

/// Finds a target again. `current` is the same file in the new state, under its new name where that is known; `None` when
/// there is none any more.
#[must_use]
pub fn relocate(target: &Target<'_>, current: Option<&Arc<Document>>, elsewhere: &dyn Elsewhere) -> Verdict {
    let Some(span) = clamped(target) else {
        return Verdict::Gone { reason: "the old text has no such place".to_owned(), near: None };
    };
    if let Some(document) = current
        && document.text == target.text
    {
        return Verdict::At(Box::new(Place {
            document: document.clone(),
            span,
            happened: Happened::Unchanged,
            features: Features::SAME,
            score: 1.0,
            margin: 1.0,
            certified: true,
            reason: "the file is unchanged".to_owned(),
        }));
    }
    let old = Shaped::new(target.text);
    let lost = Lost { path: target.path, old: &old, span: &span, elsewhere };
    let Some(document) = current else { return lost.without_file() };
    let new = Shaped::new(&document.text);
    let pairs = Pairs::new(&old, &new, Terms::same_file());
    match Mapper::new(&pairs).map(&span) {
        Fate::Found(spot) => verdict(found(&pairs, document, &span, &spot)),
        Fate::OwnerLost(owner) => lost.definition(owner, Some((&pairs, document))),
        Fate::Removed(owner) => removed(&pairs, document, owner),
    }
}

/// The span, when the text has it.
fn clamped(target: &Target<'_>) -> Option<Span> {
    let span = target.span.clone();
    target.text.get(span.clone()).map(|_| span)
}

/// A place that scores enough is an answer; one that scores far less is none.
fn verdict(place: Place) -> Verdict {
    if place.certified || (place.score >= THRESHOLD && place.margin >= MARGIN) {
        Verdict::At(Box::new(place))
    } else if place.score < THRESHOLD - MARGIN {
        let reason = "it is gone, and nothing that is new resembles it enough".to_owned();
        Verdict::Gone { reason, near: Some(Box::new(place)) }
    } else {
        Verdict::Ambiguous(vec![place])
    }
}

/// A definition is where it was, or found again, and does not hold the target any more.
fn removed(pairs: &Pairs<'_, '_>, document: &Arc<Document>, owner: Option<u32>) -> Verdict {
    let Some((owner, link)) = owner.and_then(|owner| Some((owner, pairs.links[owner as usize]?))) else {
        return Verdict::Gone { reason: "the statement was taken out of the module".to_owned(), near: None };
    };
    let old = &pairs.old.side;
    let name = old.chain(owner).join(".");
    let span = pairs.new.side.name_span(&pairs.new.side.defs[link.new as usize]);
    let reason = format!("the statement was taken out of {name}");
    let was = old.name_span(&old.defs[owner as usize]);
    let spot =
        Spot { span, untouched: false, unmistakable: false, kept: 1.0, moved: false, owner: Some(owner) };
    Verdict::Gone { near: Some(Box::new(found(pairs, document, &was, &spot))), reason }
}

/// The place of a stretch whose definition was found again.
fn found(pairs: &Pairs<'_, '_>, document: &Arc<Document>, was: &Span, spot: &Spot) -> Place {
    let link = spot.owner.and_then(|owner| pairs.links[owner as usize]);
    let (happened, what) = happened(pairs, was, spot, link);
    let mut features = link.map_or(Features::SAME, |link| link.features);
    features.token_jaccard = features.token_jaccard.min(spot.kept);
    let rewritten = link.is_some_and(|link| link.features.token_jaccard < 0.15);
    let certified = spot.untouched && spot.unmistakable && !rewritten;
    let around = spot.owner.map_or(1.0, |owner| pairs.score_of(owner));
    let score = if certified { 1.0 } else { features.score().min(around).min(0.99) };
    let margin = link.map_or(1.0, |link| link.margin);
    Place {
        document: document.clone(),
        span: spot.span.clone(),
        happened,
        features: if certified { Features::SAME } else { features },
        score,
        margin,
        certified,
        reason: what,
    }
}

/// What happened to a stretch, and how that is said.
fn happened(pairs: &Pairs<'_, '_>, was: &Span, spot: &Spot, link: Option<Link>) -> (Happened, String) {
    let (old, new) = (&pairs.old.side, &pairs.new.side);
    let stays = if *was == spot.span { Happened::Unchanged } else { Happened::Shifted };
    let Some((owner, link)) = spot.owner.zip(link) else {
        return match () {
            () if spot.moved => (Happened::Moved, "the statement stands elsewhere".to_owned()),
            () if !spot.untouched => (Happened::Edited, "the statement was edited".to_owned()),
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
        let kind = if moved { Happened::Moved } else { Happened::Renamed };
        return (kind, format!("{before} is {now} now"));
    }
    if spot.moved {
        let token = u32::try_from(new.token_from(spot.span.start)).unwrap_or(u32::MAX);
        return match new.owner_of(token) {
            Some(other) if other != link.new => {
                let other = new.chain(other).join(".");
                (Happened::Split, format!("a part of {before} stands in {other} now"))
            }
            _ => (Happened::Moved, format!("the statement stands elsewhere in {now}")),
        };
    }
    let header = |side: &side::Side<'_>, index: u32| {
        let def = &side.defs[index as usize];
        let first = side.lines[def.header as usize].first;
        side.tokens[first as usize..def.body as usize].iter().map(|token| token.hash).collect::<Vec<_>>()
    };
    if is_definition && header(old, owner) != header(new, link.new) {
        return (Happened::SignatureChanged, format!("the signature of {now} was edited"));
    }
    if pairs.changed_order(owner) {
        return (Happened::Moved, format!("{now} stands elsewhere in the file"));
    }
    if !spot.untouched {
        return (Happened::Edited, format!("{now} was edited there"));
    }
    (stays, format!("the same text in {now}"))
}
