//! What lost its definition, or its whole file: the candidates in all files that changed.

use std::sync::Arc;

use super::pairs::{Pairs, Shaped, Terms};
use super::place::{Fate, Mapper};
use super::score::{FLOOR, Features, MARGIN, THRESHOLD};
use super::shape::{contained, jaccard, name_likeness, ratio};
use super::side::is_compound;
use super::{Before, Elsewhere, Happened, OtherFile, Place, Verdict, Wanted, found, verdict};
use crate::resolve::outline::Span;
use crate::workspace::files::Document;

/// How many candidates an ambiguous answer has.
const TOP: usize = 5;
/// How many definitions of a file that is gone are looked for to find out where it went.
const SAMPLED: usize = 24;

/// A stretch that is not where it was.
pub(super) struct Lost<'l, 't> {
    pub(super) path: &'l str,
    pub(super) old: &'l Shaped<'t>,
    pub(super) span: &'l Span,
    pub(super) elsewhere: &'l dyn Elsewhere,
}

impl Lost<'_, '_> {
    /// The whole file is gone: where most of its definitions went, or else where this one did.
    pub(super) fn without_file(&self) -> Verdict {
        let defs = (0_u32..).zip(&self.old.side.defs);
        let top: Vec<u32> = defs
            .filter(|(_, def)| def.parent.is_none() && is_compound(def.kind))
            .map(|(index, _)| index)
            .collect();
        let mut wanted: Vec<Wanted> = top.iter().take(SAMPLED).map(|&def| self.wanted(def)).collect();
        let first = u32::try_from(self.old.side.token_from(self.span.start)).unwrap_or(u32::MAX);
        let owner = self.old.side.owner_of(first.min(small(self.old.side.tokens.len().saturating_sub(1))));
        wanted.extend(owner.map(|owner| self.wanted(owner)));
        let files = self.elsewhere.files(&wanted);
        let mut best: Option<(f64, &OtherFile)> = None;
        for file in &files {
            let share = self.inherited(file, &top);
            if share >= 0.5 && best.is_none_or(|(other, _)| share > other) {
                best = Some((share, file));
            }
        }
        if let Some((_, file)) = best {
            let new = Shaped::new(&file.document.text);
            let known = known(file, &new);
            let module = module_likeness(self.path, &file.path);
            let pairs = Pairs::new(self.old, &new, Terms { module, found: Vec::new(), known });
            if let Fate::Found(spot) = Mapper::new(&pairs).map(self.span) {
                let mut place = found(&pairs, &file.document, self.span, &spot);
                place.certified = false;
                if spot.owner.is_none() {
                    place.features.module = module;
                    place.score = place.features.score().min(0.99);
                }
                if place.happened != Happened::Renamed {
                    place.happened = Happened::Moved;
                }
                place.reason = format!("most of the file went to {}; {}", file.path, place.reason);
                // A file that has most of the old one's lines is that file, whatever else was before.
                let is_same_file = lines_in_common(&self.old.side, &new.side) >= 0.5;
                return verdict(if is_same_file { place } else { doubted(place, &file.before) });
            }
        }
        match owner {
            Some(owner) => self.among(owner, None, files),
            None => Verdict::Gone { reason: "there is no such file any more".to_owned(), near: None },
        }
    }

    /// The share of the file's definitions, or statements, that another file has now and had not before.
    fn inherited(&self, file: &OtherFile, top: &[u32]) -> f64 {
        let new = Shaped::new(&file.document.text);
        let known = known(file, &new);
        if top.is_empty() {
            return lines_in_common(&self.old.side, &new.side);
        }
        let module = module_likeness(self.path, &file.path);
        let pairs = Pairs::new(self.old, &new, Terms { module, found: Vec::new(), known });
        let is_there = |def: &&u32| {
            pairs.links[**def as usize].is_some_and(|link| link.features.score() >= THRESHOLD - MARGIN)
        };
        ratio(top.iter().filter(is_there).count(), top.len())
    }

    fn wanted(&self, def: u32) -> Wanted {
        let side = &self.old.side;
        let def = &side.defs[def as usize];
        let (sketch, size) = super::sketch(side, def);
        Wanted { name: side.name(def).to_owned(), kind: def.kind, sketch, size }
    }

    /// The definition around the target was not found again in its own file.
    pub(super) fn definition(&self, owner: u32, here: Option<(&Pairs<'_, '_>, &Arc<Document>)>) -> Verdict {
        let mut wanted = vec![self.wanted(owner)];
        let mut at = self.old.side.defs[owner as usize].parent;
        while let Some(parent) = at {
            if here.is_none_or(|(pairs, _)| pairs.links[parent as usize].is_none()) {
                wanted.push(self.wanted(parent));
            }
            at = self.old.side.defs[parent as usize].parent;
        }
        let files = self.elsewhere.files(&wanted);
        self.among(owner, here, files)
    }

    fn among(
        &self,
        owner: u32,
        here: Option<(&Pairs<'_, '_>, &Arc<Document>)>,
        files: Vec<OtherFile>,
    ) -> Verdict {
        let mut places: Vec<Place> = Vec::new();
        // What looks like it under other names, in files whose older state cannot be seen.
        let mut unproven: Vec<Place> = Vec::new();
        let mut is_named_elsewhere = false;
        let chain = self.old.side.chain(owner);
        let taken: Vec<bool> = match here {
            Some((pairs, _)) => pairs.links.iter().map(Option::is_some).collect(),
            None => Vec::new(),
        };
        if let Some((pairs, document)) = here {
            places.extend(self.candidates(pairs, document, owner));
            places.extend(self.merged(pairs, document, owner));
        }
        for file in &files {
            let new = Shaped::new(&file.document.text);
            let known = known(file, &new);
            let module = module_likeness(self.path, &file.path);
            let pairs = Pairs::new(self.old, &new, Terms { module, found: taken.clone(), known });
            if pairs.links[owner as usize].is_some() {
                if let Fate::Found(spot) = Mapper::new(&pairs).map(self.span) {
                    let mut place = found(&pairs, &file.document, self.span, &spot);
                    if place.happened != Happened::Renamed {
                        place.happened = Happened::Moved;
                    }
                    place.certified = false;
                    place.reason = format!("it went to {}; {}", file.path, place.reason);
                    let place = doubted(place, &file.before);
                    let same_chain = pairs.links[owner as usize]
                        .is_some_and(|link| pairs.new.side.chain(link.new) == chain);
                    is_named_elsewhere |= same_chain && place.score >= THRESHOLD;
                    match same_chain || !matches!(file.before, Before::Unknown) {
                        true => places.push(place),
                        false => unproven.push(place),
                    }
                }
            } else if matches!(file.before, Before::Unknown) {
                unproven.extend(self.candidates(&pairs, &file.document, owner));
            } else {
                places.extend(self.candidates(&pairs, &file.document, owner));
            }
        }
        // They may always have been there, and where all of the names are now says more.
        if !is_named_elsewhere {
            places.extend(unproven);
        }
        places.retain(|place| place.score >= FLOOR);
        places.sort_by(|a, b| {
            let at = |place: &Place| (place.document.path.clone(), place.span.start);
            b.score.total_cmp(&a.score).then_with(|| at(a).cmp(&at(b)))
        });
        places.dedup_by(|a, b| a.document.path == b.document.path && a.span == b.span);
        let name = self.old.side.chain(owner).join(".");
        let Some(first) = places.first() else {
            let reason = format!("{name} is gone, and nothing that is new resembles it");
            return Verdict::Gone { reason, near: None };
        };
        let margin = places.get(1).map_or(1.0, |next| first.score - next.score).min(first.margin);
        if first.score >= THRESHOLD && margin >= MARGIN {
            let mut place = places.swap_remove(0);
            place.margin = margin;
            return Verdict::At(Box::new(place));
        }
        let best = first.score;
        if best < THRESHOLD - MARGIN {
            let reason = format!("{name} is gone, and nothing that is new resembles it enough");
            return Verdict::Gone { reason, near: Some(Box::new(places.swap_remove(0))) };
        }
        places.truncate(TOP);
        Verdict::Ambiguous(places)
    }

    /// What scored enough to be meant and was not chosen, in one file.
    fn candidates(&self, pairs: &Pairs<'_, '_>, document: &Arc<Document>, owner: u32) -> Vec<Place> {
        let free = pairs.candidates.get(&owner).into_iter().flatten();
        let free = free.filter(|(new, _)| pairs.origins[*new as usize].is_none());
        let contested = pairs.contested.contains(&owner);
        free.map(|(new, features)| {
            let mut place = self.definition_place(pairs, document, owner, *new, *features);
            if contested {
                place.margin = 0.0;
            }
            place
        })
        .collect()
    }

    /// A definition as the place of its counterpart's name.
    fn definition_place(
        &self,
        pairs: &Pairs<'_, '_>,
        document: &Arc<Document>,
        owner: u32,
        new: u32,
        features: Features,
    ) -> Place {
        let side = &pairs.new.side;
        let (before, now) = (self.old.side.chain(owner).join("."), side.chain(new).join("."));
        let same =
            self.old.side.name(&self.old.side.defs[owner as usize]) == side.name(&side.defs[new as usize]);
        let happened = if same { Happened::Moved } else { Happened::Renamed };
        let score = features.score().min(0.99);
        let reason = format!("{before} may be {now} now");
        let span = side.name_span(&side.defs[new as usize]);
        Place {
            document: document.clone(),
            span,
            happened,
            features,
            score,
            margin: 1.0,
            certified: false,
            reason,
        }
    }

    /// A definition that took the body in and did not have it before.
    fn merged(&self, pairs: &Pairs<'_, '_>, document: &Arc<Document>, owner: u32) -> Option<Place> {
        let mine = self.old.shape(owner);
        if mine.triples.len() < 15 || self.old.side.defs[owner as usize].kind == super::DefinitionKind::Class
        {
            return None;
        }
        let mut found = None;
        for (index, def) in (0_u32..).zip(&pairs.new.side.defs) {
            let new = pairs.new.shape(index);
            if !def.kind.is_function()
                || contained(&mine.triples, &new.triples) < 0.8
                || new.triples.len() < mine.triples.len()
            {
                continue;
            }
            let origin = pairs.origins[index as usize];
            let before = origin.map_or(0.0, |old| contained(&mine.triples, &self.old.shape(old).triples));
            if before > 0.4 {
                continue;
            }
            if found.is_some() {
                return None;
            }
            let share = contained(&mine.triples, &new.triples);
            let features = Features { ast: share * 0.9, module: 1.0, token_jaccard: share, proximity: 0.5 };
            let mut place = self.definition_place(pairs, document, owner, index, features);
            place.happened = Happened::Merged;
            let (before, now) = (self.old.side.chain(owner).join("."), pairs.new.side.chain(index).join("."));
            place.reason = format!("{now} took {before} in");
            found = Some(place);
        }
        found
    }
}

/// Where the older state of a file cannot be seen, what looks like the target may always have been there: under its own
/// name it has to have half of its tokens, under another one nearly all.
fn doubted(mut place: Place, before: &Before) -> Place {
    let least = if place.happened == Happened::Renamed { 0.9 } else { 0.5 };
    if matches!(before, Before::Unknown) && place.features.token_jaccard < least {
        place.score = place.score.min(THRESHOLD - 0.01);
    }
    place
}

/// Jaccard's index of the lines of two texts.
fn lines_in_common(old: &super::side::Side<'_>, new: &super::side::Side<'_>) -> f64 {
    let hashes = |side: &super::side::Side<'_>| {
        let mut hashes: Vec<u64> = side.lines.iter().map(|line| line.hash).collect();
        hashes.sort_unstable();
        hashes
    };
    jaccard(&hashes(old), &hashes(new))
}

fn small(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Which definitions of a file were there before.
fn known(file: &OtherFile, new: &Shaped<'_>) -> Vec<bool> {
    match &file.before {
        Before::Unknown | Before::Absent => Vec::new(),
        Before::Text(text) => {
            let before = Shaped::new(text);
            let pairs = Pairs::new(&before, new, Terms::same_file());
            pairs.origins.iter().map(Option::is_some).collect()
        }
    }
}

/// How much of two paths is the same: the share of their folders and names, the last counting as much as all others.
pub(in crate::resolve) fn module_likeness(old: &str, new: &str) -> f64 {
    let parts = |path: &str| -> Vec<String> {
        let path =
            path.strip_suffix("i").unwrap_or(path).trim_end_matches(".py").trim_end_matches("/__init__");
        path.split('/')
            .map(|part| part.trim_start_matches('_'))
            .filter(|part| !part.is_empty() && *part != "src")
            .map(str::to_owned)
            .collect()
    };
    let (a, b) = (parts(old), parts(new));
    let shared = a.iter().filter(|part| b.contains(part)).count();
    let of_all = ratio(2 * shared, a.len() + b.len());
    let name = |parts: &[String]| parts.last().cloned().unwrap_or_default();
    let last = name_likeness(&name(&a), &name(&b));
    // What is in one workspace is never wholly foreign.
    0.25 + 0.75 * 0.7f64.mul_add(of_all, 0.3 * last)
}
