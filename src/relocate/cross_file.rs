//! Relocation across files: for a target whose definition or whole file is gone, the candidates in all files that changed.

use std::sync::Arc;

use super::pairs::{AnalyzedText, DefinitionPairs, PairingOptions};
use super::score::{MARGIN, MIN_CANDIDATE_SCORE, MatchFeatures, THRESHOLD};
use super::shape::{contained, jaccard, name_similarity, ratio};
use super::span_mapper::{MapOutcome, SpanMapper};
use super::structure::is_compound;
use super::{
    MissingDefinition, OldContent, OtherFile, OtherFiles, RelocationMatch, RelocationOutcome, TargetChange,
    decide, match_of_span,
};
use crate::python::outline::Span;
use crate::workspace::files::Document;

/// The most candidates of an ambiguous result.
const MAX_CANDIDATES: usize = 5;
/// The most definitions of a deleted file that are searched for to find out where it went.
const MAX_SAMPLED_DEFINITIONS: usize = 24;

/// The search for a span that is not in its old file.
pub(super) struct CrossFileSearch<'l, 't> {
    pub(super) path: &'l str,
    pub(super) old: &'l AnalyzedText<'t>,
    pub(super) span: &'l Span,
    pub(super) other_files: &'l dyn OtherFiles,
}

impl CrossFileSearch<'_, '_> {
    /// Relocates a target whose whole file is gone: to the file that most of its definitions went to, or else to where the
    /// target's own definition went.
    pub(super) fn for_missing_file(&self) -> RelocationOutcome {
        let defs = (0_u32..).zip(&self.old.structure.defs);
        let top: Vec<u32> = defs
            .filter(|(_, def)| def.parent.is_none() && is_compound(def.kind))
            .map(|(index, _)| index)
            .collect();
        let mut wanted: Vec<MissingDefinition> =
            top.iter().take(MAX_SAMPLED_DEFINITIONS).map(|&def| self.missing_definition(def)).collect();
        let first = u32::try_from(self.old.structure.token_from(self.span.start)).unwrap_or(u32::MAX);
        let owner =
            self.old.structure.owner_of(first.min(to_u32(self.old.structure.tokens.len().saturating_sub(1))));
        wanted.extend(owner.map(|owner| self.missing_definition(owner)));
        let files = self.other_files.files(&wanted);
        let mut best: Option<(f64, &OtherFile)> = None;
        for file in &files {
            let share = self.inherited_share(file, &top);
            if share >= 0.5 && best.is_none_or(|(other, _)| share > other) {
                best = Some((share, file));
            }
        }
        if let Some((_, file)) = best {
            let new = AnalyzedText::new(&file.document.text);
            let known = existed_before(file, &new);
            let module = module_similarity(self.path, &file.path);
            let pairs = DefinitionPairs::new(
                self.old,
                &new,
                PairingOptions { module, already_found: Vec::new(), already_known: known },
            );
            if let MapOutcome::Found(mapped_span) = SpanMapper::new(&pairs).map(self.span) {
                let mut place = match_of_span(&pairs, &file.document, self.span, &mapped_span);
                place.certified = false;
                if mapped_span.owner.is_none() {
                    place.features.module = module;
                    place.score = place.features.score().min(0.99);
                }
                if place.change != TargetChange::Renamed {
                    place.change = TargetChange::Moved;
                }
                place.reason = format!("most of the file moved to {}; {}", file.path, place.reason);
                let is_copy = |other: &&OtherFile| other.document.digest == file.document.digest;
                if files.iter().filter(is_copy).count() > 1 {
                    // It may have moved to any of them.
                    place.margin = 0.0;
                }
                // A file with most of the old file's lines is that file, whatever it contained before.
                let is_same_file = lines_in_common(&self.old.structure, &new.structure) >= 0.5;
                return decide(if is_same_file { place } else { limit_unproven_score(place, &file.before) });
            }
        }
        match owner {
            Some(owner) => self.decide_among(owner, None, files),
            None => RelocationOutcome::Gone { reason: "the file no longer exists".to_owned(), closest: None },
        }
    }

    /// The share of the old file's definitions that are new in another file; of its lines if it has no definitions.
    fn inherited_share(&self, file: &OtherFile, top: &[u32]) -> f64 {
        let new = AnalyzedText::new(&file.document.text);
        let known = existed_before(file, &new);
        if top.is_empty() {
            return lines_in_common(&self.old.structure, &new.structure);
        }
        let module = module_similarity(self.path, &file.path);
        let pairs = DefinitionPairs::new(
            self.old,
            &new,
            PairingOptions { module, already_found: Vec::new(), already_known: known },
        );
        let is_there = |def: &&u32| {
            pairs.links[**def as usize].is_some_and(|link| link.features.score() >= THRESHOLD - MARGIN)
        };
        ratio(top.iter().filter(is_there).count(), top.len())
    }

    fn missing_definition(&self, def: u32) -> MissingDefinition {
        let structure = &self.old.structure;
        let def = &structure.defs[def as usize];
        let (sketch, size) = super::sketch(structure, def);
        MissingDefinition { name: structure.name(def).to_owned(), kind: def.kind, sketch, size }
    }

    /// Relocates a target whose definition was not found in its own file.
    pub(super) fn for_missing_definition(
        &self,
        owner: u32,
        here: Option<(&DefinitionPairs<'_, '_>, &Arc<Document>)>,
    ) -> RelocationOutcome {
        let mut wanted = vec![self.missing_definition(owner)];
        let mut at = self.old.structure.defs[owner as usize].parent;
        while let Some(parent) = at {
            if here.is_none_or(|(pairs, _)| pairs.links[parent as usize].is_none()) {
                wanted.push(self.missing_definition(parent));
            }
            at = self.old.structure.defs[parent as usize].parent;
        }
        let files = self.other_files.files(&wanted);
        self.decide_among(owner, here, files)
    }

    fn decide_among(
        &self,
        owner: u32,
        here: Option<(&DefinitionPairs<'_, '_>, &Arc<Document>)>,
        files: Vec<OtherFile>,
    ) -> RelocationOutcome {
        let mut places: Vec<RelocationMatch> = Vec::new();
        // Similar definitions with other names in files whose old content is unknown.
        let mut unproven: Vec<RelocationMatch> = Vec::new();
        let mut is_named_other_files = false;
        let chain = self.old.structure.chain(owner);
        let taken: Vec<bool> = match here {
            Some((pairs, _)) => pairs.links.iter().map(Option::is_some).collect(),
            None => Vec::new(),
        };
        if let Some((pairs, document)) = here {
            places.extend(self.candidates(pairs, document, owner));
            places.extend(self.merged_definition(pairs, document, owner));
        }
        for file in &files {
            let new = AnalyzedText::new(&file.document.text);
            let known = existed_before(file, &new);
            let module = module_similarity(self.path, &file.path);
            let pairs = DefinitionPairs::new(
                self.old,
                &new,
                PairingOptions { module, already_found: taken.clone(), already_known: known },
            );
            if pairs.links[owner as usize].is_some() {
                if let MapOutcome::Found(mapped_span) = SpanMapper::new(&pairs).map(self.span) {
                    let mut place = match_of_span(&pairs, &file.document, self.span, &mapped_span);
                    if place.change != TargetChange::Renamed {
                        place.change = TargetChange::Moved;
                    }
                    place.certified = false;
                    place.reason = format!("it moved to {}; {}", file.path, place.reason);
                    let place = limit_unproven_score(place, &file.before);
                    let same_chain = pairs.links[owner as usize]
                        .is_some_and(|link| pairs.new.structure.chain(link.new) == chain);
                    is_named_other_files |= same_chain && place.score >= THRESHOLD;
                    match same_chain || !matches!(file.before, OldContent::Unknown) {
                        true => places.push(place),
                        false => unproven.push(place),
                    }
                }
            } else if matches!(file.before, OldContent::Unknown) {
                unproven.extend(self.candidates(&pairs, &file.document, owner));
            } else {
                places.extend(self.candidates(&pairs, &file.document, owner));
            }
        }
        // They may have existed before, so a match with the same qualified name takes precedence.
        if !is_named_other_files {
            places.extend(unproven);
        }
        places.retain(|place| place.score >= MIN_CANDIDATE_SCORE);
        places.sort_by(|a, b| {
            let at = |place: &RelocationMatch| (place.document.path.clone(), place.span.start);
            b.score.total_cmp(&a.score).then_with(|| at(a).cmp(&at(b)))
        });
        places.dedup_by(|a, b| a.document.path == b.document.path && a.span == b.span);
        let name = self.old.structure.chain(owner).join(".");
        let Some(first) = places.first() else {
            let reason = format!("{name} is gone, and nothing new is similar");
            return RelocationOutcome::Gone { reason, closest: None };
        };
        let margin = places.get(1).map_or(1.0, |next| first.score - next.score).min(first.margin);
        if first.score >= THRESHOLD && margin >= MARGIN {
            let mut place = places.swap_remove(0);
            place.margin = margin;
            return RelocationOutcome::Found(Box::new(place));
        }
        let best = first.score;
        if best < THRESHOLD - MARGIN {
            let reason = format!("{name} is gone, and nothing new is similar enough");
            return RelocationOutcome::Gone { reason, closest: Some(Box::new(places.swap_remove(0))) };
        }
        places.truncate(MAX_CANDIDATES);
        RelocationOutcome::Ambiguous(places)
    }

    /// The candidates in one file that were not matched with another definition.
    fn candidates(
        &self,
        pairs: &DefinitionPairs<'_, '_>,
        document: &Arc<Document>,
        owner: u32,
    ) -> Vec<RelocationMatch> {
        let free = pairs.candidates.get(&owner).into_iter().flatten();
        let free = free.filter(|(new, _)| pairs.origins[*new as usize].is_none());
        let contested = pairs.contested.contains(&owner);
        // The candidates are sorted, and so many are reported.
        free.take(MAX_CANDIDATES)
            .filter_map(|(new, features)| {
                let mut place = self.place_in(pairs, document, owner, *new, *features)?;
                if contested {
                    place.margin = 0.0;
                }
                Some(place)
            })
            .collect()
    }

    /// Where the target is if its definition is a certain new one now; `None` if that one does not contain it.
    fn place_in(
        &self,
        pairs: &DefinitionPairs<'_, '_>,
        document: &Arc<Document>,
        owner: u32,
        new: u32,
        mut features: MatchFeatures,
    ) -> Option<RelocationMatch> {
        let structure = &pairs.new.structure;
        let (before, now) = (self.old.structure.chain(owner).join("."), structure.chain(new).join("."));
        let same = self.old.structure.name(&self.old.structure.defs[owner as usize])
            == structure.name(&structure.defs[new as usize]);
        let change = if same { TargetChange::Moved } else { TargetChange::Renamed };
        let reason = format!("{before} may be {now} now");
        let mut span = structure.name_span(&structure.defs[new as usize]);
        // A parameter is not the function.
        if self.span.start >= self.old.structure.name_span(&self.old.structure.defs[owner as usize]).end {
            let one = DefinitionPairs::of_one(pairs.old, pairs.new, (owner, new, features));
            let MapOutcome::Found(mapped) = SpanMapper::new(&one).map(self.span) else { return None };
            features.token_jaccard = features.token_jaccard.min(mapped.kept);
            span = mapped.span;
        }
        let score = features.score().min(0.99);
        Some(RelocationMatch {
            document: document.clone(),
            span,
            change,
            features,
            score,
            margin: 1.0,
            certified: false,
            close: false,
            reason,
        })
    }

    /// The one definition that contains the old body now and did not before.
    fn merged_definition(
        &self,
        pairs: &DefinitionPairs<'_, '_>,
        document: &Arc<Document>,
        owner: u32,
    ) -> Option<RelocationMatch> {
        let mine = self.old.shape(owner);
        if mine.triples.len() < 15
            || self.old.structure.defs[owner as usize].kind == super::DefinitionKind::Class
        {
            return None;
        }
        let mut found = None;
        for (index, def) in (0_u32..).zip(&pairs.new.structure.defs) {
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
            let features =
                MatchFeatures { ast: share * 0.9, module: 1.0, token_jaccard: share, proximity: 0.5 };
            let mut place = self.place_in(pairs, document, owner, index, features)?;
            place.change = TargetChange::Merged;
            let (before, now) =
                (self.old.structure.chain(owner).join("."), pairs.new.structure.chain(index).join("."));
            place.reason = format!("{before} was merged into {now}");
            found = Some(place);
        }
        found
    }
}

/// Lowers the score of a match in a file whose old content is unknown, because the match may have existed before: with the
/// same name it needs half of the target's tokens, with another name nearly all.
fn limit_unproven_score(mut place: RelocationMatch, before: &OldContent) -> RelocationMatch {
    let least = if place.change == TargetChange::Renamed { 0.9 } else { 0.5 };
    if matches!(before, OldContent::Unknown) && place.features.token_jaccard < least {
        place.score = place.score.min(THRESHOLD - 0.01);
    }
    place
}

/// The Jaccard index of the lines of two texts.
fn lines_in_common(
    old: &super::structure::TextStructure<'_>,
    new: &super::structure::TextStructure<'_>,
) -> f64 {
    let hashes = |structure: &super::structure::TextStructure<'_>| {
        let mut hashes: Vec<u64> = structure.lines.iter().map(|line| line.hash).collect();
        hashes.sort_unstable();
        hashes
    };
    jaccard(&hashes(old), &hashes(new))
}

fn to_u32(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// For each definition of a file, whether it existed before.
fn existed_before(file: &OtherFile, new: &AnalyzedText<'_>) -> Vec<bool> {
    match &file.before {
        OldContent::Unknown | OldContent::Absent => Vec::new(),
        OldContent::Text(text) => {
            let before = AnalyzedText::new(text);
            let pairs = DefinitionPairs::new(&before, new, PairingOptions::same_file());
            pairs.origins.iter().map(Option::is_some).collect()
        }
    }
}

/// The similarity of two paths: the share of their common parts, with extra weight for the last part.
pub(crate) fn module_similarity(old: &str, new: &str) -> f64 {
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
    let last = name_similarity(&name(&a), &name(&b));
    // Two modules of one workspace never score 0.
    0.25 + 0.75 * 0.7f64.mul_add(of_all, 0.3 * last)
}
