//! Matches the definitions of an old text with those of a new one, for the whole file at once.
//!
//! First definitions that kept their name are matched, then old definitions without a partner are compared with the new
//! ones. So a rename is recognized because the old name disappeared and a new one appeared with the same body, and a
//! deletion because nothing new resembles the old definition.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::continuation::{clear_continuations, word_pairs};
use super::score::{
    CONTINUED, ComparedDefinition, MARGIN, MIN_CANDIDATE_SCORE, MatchFeatures, features, is_same_sort,
};
use super::shape::{DefinitionShape, ratio};
use super::structure::{TextStructure, is_compound};
use crate::python::outline::DefinitionKind;

/// The most pairs of unmatched definitions that are all compared.
const MAX_PAIRS: usize = 60_000;

/// The most pairs of definitions with one name that are compared; above that they are matched in order.
const MAX_GROUP_PAIRS: usize = 10_000;

/// A definition that kept fewer of its tokens may be another one with the same name, so nothing in it is certified.
const MIN_CERTIFIED_JACCARD: f64 = 0.3;

/// A definition that kept at least so many of its tokens is no other one with the same name.
const MIN_CLOSE_JACCARD: f64 = 0.9;
/// The same for what is around a definition that is too short to tell.
const MIN_CLOSE_SCOPE_JACCARD: f64 = 0.6;

/// A definition whose body continues under another name is as likely there when the one with its name shares so few of its
/// contents.
const MAX_REUSED_DICE: f64 = 0.15;

/// The new definition that an old one was matched with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DefinitionLink {
    /// The new definition.
    pub(super) new: u32,
    pub(super) features: MatchFeatures,
    /// The distance to the score of the next candidate.
    pub(super) margin: f64,
    /// Whether the name and the scope are the same and the match is the only one.
    pub(super) sure: bool,
}

/// A text with its structure and the shapes of its definitions, which are computed when they are needed.
pub(crate) struct AnalyzedText<'t> {
    pub(crate) structure: TextStructure<'t>,
    shapes: Vec<OnceCell<DefinitionShape>>,
    word_pairs: Vec<OnceCell<Vec<u64>>>,
}

impl<'t> AnalyzedText<'t> {
    /// Reads the structure of a text.
    pub(crate) fn new(text: &'t str) -> Self {
        let structure = TextStructure::new(text);
        let shapes = structure.defs.iter().map(|_| OnceCell::new()).collect();
        let word_pairs = structure.defs.iter().map(|_| OnceCell::new()).collect();
        Self { structure, shapes, word_pairs }
    }

    pub(super) fn shape(&self, index: u32) -> &DefinitionShape {
        let def = &self.structure.defs[index as usize];
        self.shapes[index as usize].get_or_init(|| DefinitionShape::new(&self.structure, def))
    }

    /// The consecutive words of a definition.
    pub(super) fn word_pairs(&self, index: u32) -> &[u64] {
        let def = &self.structure.defs[index as usize];
        self.word_pairs[index as usize].get_or_init(|| word_pairs(&self.structure, def))
    }

    pub(super) fn compared(&self, index: u32) -> ComparedDefinition<'_> {
        ComparedDefinition { structure: &self.structure, index, shape: self.shape(index) }
    }
}

/// The definitions of two texts, matched.
pub(super) struct DefinitionPairs<'s, 't> {
    pub(super) old: &'s AnalyzedText<'t>,
    pub(super) new: &'s AnalyzedText<'t>,
    /// The match of each old definition.
    pub(super) links: Vec<Option<DefinitionLink>>,
    /// The old definition that each new one was matched with.
    pub(super) origins: Vec<Option<u32>>,
    children: [BTreeMap<Option<u32>, Vec<u32>>; 2],
    /// The candidates of each old definition without a partner by name, best first, whether or not one was accepted.
    pub(super) candidates: BTreeMap<u32, Vec<(u32, MatchFeatures)>>,
    /// Old definitions whose name went to one new definition and whose body to another.
    pub(super) contested: BTreeSet<u32>,
    options: PairingOptions,
}

/// How two texts are matched.
#[derive(Debug, Clone)]
pub(super) struct PairingOptions {
    /// The similarity of the module paths; 1 for the same file.
    pub(super) module: f64,
    /// For each old definition, whether it was already found in another file.
    pub(super) already_found: Vec<bool>,
    /// For each new definition, whether it existed before.
    pub(super) already_known: Vec<bool>,
}

impl PairingOptions {
    /// For two states of the same file.
    pub(super) const fn same_file() -> Self {
        Self { module: 1.0, already_found: Vec::new(), already_known: Vec::new() }
    }
}

impl<'s, 't> DefinitionPairs<'s, 't> {
    /// Matches two texts.
    pub(super) fn new(old: &'s AnalyzedText<'t>, new: &'s AnalyzedText<'t>, options: PairingOptions) -> Self {
        let mut pairs = Self::unmatched(old, new, options);
        pairs.match_by_name(None, None);
        // Classes first: with a class found again, its members are found by their names.
        pairs.match_remaining(|kind| kind == DefinitionKind::Class);
        pairs.match_remaining(DefinitionKind::is_function);
        pairs.match_remaining(|kind| !is_compound(kind));
        pairs.match_other_sorts();
        if pairs.options.module < 1.0 {
            pairs.score_common_moves();
        }
        pairs
    }

    /// Two texts of which only one pair of definitions is matched, with what is inside of them.
    pub(super) fn of_one(
        old: &'s AnalyzedText<'t>,
        new: &'s AnalyzedText<'t>,
        (before, now, features): (u32, u32, MatchFeatures),
    ) -> Self {
        let mut pairs = Self::unmatched(old, new, PairingOptions::same_file());
        pairs.link(before, now, features, 1.0, false);
        pairs
    }

    fn unmatched(old: &'s AnalyzedText<'t>, new: &'s AnalyzedText<'t>, options: PairingOptions) -> Self {
        let children = [old, new].map(|shaped| {
            let mut children: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
            for (index, def) in (0..).zip(&shaped.structure.defs) {
                children.entry(def.parent).or_default().push(index);
            }
            children
        });
        Self {
            old,
            new,
            links: vec![None; old.structure.defs.len()],
            origins: vec![None; new.structure.defs.len()],
            children,
            candidates: BTreeMap::new(),
            contested: BTreeSet::new(),
            options,
        }
    }

    /// Sets the proximity of matches in another file. No neighbors are the same there, so the share of siblings that moved
    /// to the same scope takes their place.
    fn score_common_moves(&mut self) {
        let mut shares: Vec<Option<f64>> = vec![None; self.links.len()];
        for (scope, siblings) in &self.children[0] {
            let moving: Vec<u32> = siblings
                .iter()
                .copied()
                .filter(|&index| {
                    let def = &self.old.structure.defs[index as usize];
                    is_compound(def.kind) && self.options.already_found.get(index as usize) != Some(&true)
                })
                .collect();
            let target = |index: u32| {
                self.links[index as usize].map(|link| self.new.structure.defs[link.new as usize].parent)
            };
            for &index in &moving {
                let Some(there) = target(index) else { continue };
                let others =
                    moving.iter().filter(|&&other| other != index && target(other) == Some(there)).count();
                let kept = scope.is_some() && self.new_parent(*scope) == Some(there);
                shares[index as usize] = Some(match moving.len() {
                    _ if kept => 1.0,
                    1 => 0.5,
                    all => ratio(others, all - 1).max(ratio(others.min(3), 3)),
                });
            }
        }
        for (link, shares) in self.links.iter_mut().zip(shares) {
            if let (Some(link), Some(shares)) = (link, shares) {
                link.features.proximity = shares;
            }
        }
    }

    /// The counterpart of the scope `parent`; `None` if it has none.
    fn new_parent(&self, parent: Option<u32>) -> Option<Option<u32>> {
        match parent {
            None => Some(None),
            Some(parent) => self.links[parent as usize].map(|link| Some(link.new)),
        }
    }

    fn is_found(&self, old: u32) -> bool {
        self.links[old as usize].is_some() || self.options.already_found.get(old as usize) == Some(&true)
    }

    fn is_taken(&self, new: u32) -> bool {
        self.origins[new as usize].is_some() || self.options.already_known.get(new as usize) == Some(&true)
    }

    fn link(&mut self, old: u32, new: u32, features: MatchFeatures, margin: f64, sure: bool) {
        self.links[old as usize] = Some(DefinitionLink { new, features, margin, sure });
        self.origins[new as usize] = Some(old);
        if is_compound(self.old.structure.defs[old as usize].kind) {
            self.match_by_name(Some(old), Some(new));
        }
    }

    /// Matches the definitions with the same name in two corresponding scopes.
    fn match_by_name(&mut self, old_scope: Option<u32>, new_scope: Option<u32>) {
        let groups = self.named_groups(old_scope, new_scope, |kind| match kind {
            DefinitionKind::Class => 0,
            kind if kind.is_function() => 1,
            _ => 2,
        });
        for [olds, news] in groups {
            self.match_group(olds, news);
        }
    }

    /// Matches what is left with the same name in corresponding scopes, of whatever sort: a function may have become a
    /// variable. Before, it may have continued under another name.
    fn match_other_sorts(&mut self) {
        let links =
            (0_u32..).zip(&self.links).filter_map(|(old, link)| Some((Some(old), Some(link.as_ref()?.new))));
        let scopes: Vec<_> = std::iter::once((None, None)).chain(links).collect();
        for (old_scope, new_scope) in scopes {
            for [mut olds, news] in self.named_groups(old_scope, new_scope, |_| 0) {
                olds.retain(|old| !self.contested.contains(old));
                self.match_group(olds, news);
            }
        }
    }

    /// The definitions of two corresponding scopes by their name and sort.
    fn named_groups(
        &self,
        old_scope: Option<u32>,
        new_scope: Option<u32>,
        sort: impl Fn(DefinitionKind) -> u8,
    ) -> Vec<[Vec<u32>; 2]> {
        let mut groups: BTreeMap<(&str, u8), [Vec<u32>; 2]> = BTreeMap::new();
        for (which, (shaped, scope)) in [(self.old, old_scope), (self.new, new_scope)].into_iter().enumerate()
        {
            for &index in self.children[which].get(&scope).map_or(&[][..], Vec::as_slice) {
                let def = &shaped.structure.defs[index as usize];
                let key = (shaped.structure.name(def), sort(def.kind));
                groups.entry(key).or_default()[which].push(index);
            }
        }
        groups.into_values().filter(|[olds, news]| !olds.is_empty() && !news.is_empty()).collect()
    }

    /// Matches the definitions of one name in one scope.
    fn match_group(&mut self, mut olds: Vec<u32>, mut news: Vec<u32>) {
        olds.retain(|&old| !self.is_found(old));
        news.retain(|&new| !self.is_taken(new));
        let sure = olds.len() == news.len();
        let mut chosen: Vec<(u32, u32)> = Vec::new();
        let mut take = |olds: &mut Vec<u32>, news: &mut Vec<u32>, fits: &dyn Fn(u32, u32) -> bool| {
            olds.retain(|&old| match news.iter().position(|&new| fits(old, new)) {
                Some(at) => {
                    chosen.push((old, news.remove(at)));
                    false
                }
                None => true,
            });
        };
        if (olds.len() > 1 || news.len() > 1) && olds.len().saturating_mul(news.len()) <= MAX_GROUP_PAIRS {
            let (old_side, new_side) = (self.old, self.new);
            take(&mut olds, &mut news, &|old, new| {
                let (a, b) = (old_side.compared(old), new_side.compared(new));
                a.shape.is_same_body(b.shape) && a.def().kind == b.def().kind && header(a) == header(b)
            });
            take(&mut olds, &mut news, &|old, new| {
                let (a, b) = (old_side.compared(old), new_side.compared(new));
                a.shape.is_same_body(b.shape) && a.def().kind == b.def().kind
            });
            // If the numbers differ, the most similar pairs are matched first.
            while !sure && olds.len().min(news.len()) > 0 {
                let score = |old: u32, new: u32| {
                    features(old_side.compared(old), new_side.compared(new), 1.0, 0.5).score()
                };
                let pairs = olds.iter().flat_map(|&old| news.iter().map(move |&new| (old, new)));
                let best = pairs.max_by(|x, y| score(x.0, x.1).total_cmp(&score(y.0, y.1)).then(y.cmp(x)));
                let Some((old, new)) = best else { break };
                olds.retain(|&other| other != old);
                news.retain(|&other| other != new);
                chosen.push((old, new));
            }
        }
        chosen.extend(olds.into_iter().zip(news));
        for (old, new) in chosen {
            let (a, b) = (self.old.compared(old), self.new.compared(new));
            let same_file = self.options.module >= 1.0;
            let mut found = features(a, b, self.options.module, if same_file { 1.0 } else { 0.5 });
            let alike = is_same_sort(a.def().kind, b.def().kind);
            let continues = self.continues_elsewhere(old, new);
            if continues && super::shape::dice(&a.shape.triples, &b.shape.triples) <= MAX_REUSED_DICE {
                // The name and the body went to different definitions; the target can be either.
                self.contested.insert(old);
                self.candidates.entry(old).or_default().push((new, found));
                continue;
            }
            // The same name in the same scope is the same structure, whatever the body is now.
            found.ast = if alike { 1.0 } else { 0.9 };
            // In another file the name alone is little evidence.
            if same_file || a.def().parent.is_some() || found.score() >= MIN_CANDIDATE_SCORE {
                self.link(old, new, found, 1.0, sure && alike && same_file && !continues);
            }
        }
    }

    /// Whether the old body continues under another name while a different definition has the old name. The name is little
    /// evidence then.
    fn continues_elsewhere(&self, old: u32, new: u32) -> bool {
        let (a, b) = (self.old.shape(old), self.new.shape(new));
        let kind = self.old.structure.defs[old as usize].kind;
        if !is_compound(kind) || a.tokens.len() < 30 || a.is_same_body(b) {
            return false;
        }
        let old_names: Vec<&str> =
            self.old.structure.defs.iter().map(|def| self.old.structure.name(def)).collect();
        (0..).zip(&self.new.structure.defs).any(|(index, def)| {
            index != new
                && is_same_sort(kind, def.kind)
                && !old_names.contains(&self.new.structure.name(def))
                && self.new.shape(index).is_same_body(a)
        })
    }

    /// Matches definitions without a partner by name, the most similar first.
    fn match_remaining(&mut self, wanted: impl Fn(DefinitionKind) -> bool) {
        let free = |shaped: &AnalyzedText<'_>, taken: &dyn Fn(usize) -> bool| -> Vec<u32> {
            let defs = (0..).zip(&shaped.structure.defs);
            defs.filter(|(index, def)| wanted(def.kind) && !taken(*index as usize))
                .map(|(index, _)| index)
                .collect()
        };
        let to_u32 = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let olds = free(self.old, &|index| self.is_found(to_u32(index)));
        let news = free(self.new, &|index| self.is_taken(to_u32(index)));
        let mut scored: Vec<(f64, u32, u32, MatchFeatures)> = Vec::new();
        let whole = olds.len() * news.len() <= MAX_PAIRS;
        let compounds = |text: &AnalyzedText<'_>, all: &[u32]| -> Vec<u32> {
            all.iter().copied().filter(|&at| is_compound(text.structure.defs[at as usize].kind)).collect()
        };
        let clear = match whole {
            true => clear_continuations(
                self.old,
                self.new,
                &compounds(self.old, &olds),
                &compounds(self.new, &news),
            ),
            false => BTreeSet::new(),
        };
        for &old in &olds {
            for &new in &news {
                let same_name = self.old.structure.name(&self.old.structure.defs[old as usize])
                    == self.new.structure.name(&self.new.structure.defs[new as usize]);
                if !whole && !same_name && !self.old.shape(old).is_same_body(self.new.shape(new)) {
                    continue;
                }
                let (a, b) = (self.old.compared(old), self.new.compared(new));
                let continues = clear.contains(&(old, new));
                // A definition inside a function belongs to that function, unless its text clearly continues elsewhere, or only
                // one in the file has its name, before and after.
                let same_body = a.shape.is_same_body(b.shape) && a.shape.tokens.len() >= 20;
                let leaves = same_body || continues || same_name && self.is_only_one(old, new);
                if !leaves && self.is_local(old, new) {
                    continue;
                }
                let mut found = features(a, b, self.options.module, self.proximity(old, new));
                if continues {
                    found.ast = found.ast.max(CONTINUED);
                }
                let is_variable = !is_compound(a.def().kind);
                // A variable with another name matches only if it is assigned the same value.
                let telling =
                    !is_variable || same_name || (a.shape.is_same_body(b.shape) && a.shape.tokens.len() > 3);
                if telling && found.score() >= MIN_CANDIDATE_SCORE {
                    scored.push((found.score(), old, new, found));
                }
            }
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
        for &(_, old, new, found) in &scored {
            self.candidates.entry(old).or_default().push((new, found));
        }
        let mut by_old: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut by_new: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, (_, old, new, _)) in scored.iter().enumerate() {
            by_old.entry(*old).or_default().push(at);
            by_new.entry(*new).or_default().push(at);
        }
        // A definition whose best candidate is not clear is not matched with a worse one.
        let mut unsettled: BTreeSet<u32> = self.contested.clone();
        for &(score, old, new, found) in &scored {
            if self.is_found(old) || self.is_taken(new) || unsettled.contains(&old) {
                continue;
            }
            // The competing pairs: another new definition for this old one, or another old one for this new one.
            let competing = by_old.get(&old).into_iter().chain(by_new.get(&new)).flatten();
            let rivals: Vec<(f64, u32, u32)> = competing
                .map(|&at| (scored[at].0, scored[at].1, scored[at].2))
                .filter(|&(other, o, n)| {
                    !self.is_found(o) && !self.is_taken(n) && ((o == old) != (n == new)) && other <= score
                })
                .collect();
            let next = rivals.iter().map(|(score, ..)| *score).fold(0.0, f64::max);
            if score - next < MARGIN && !self.breaks_tie(old, new, &rivals, score) {
                unsettled.insert(old);
                continue;
            }
            let margin = if score - next < MARGIN { MARGIN } else { score - next };
            self.link(old, new, found, margin, false);
        }
    }

    /// Whether no other function or class of the two texts has the name of these two, and their text tells something or is the same.
    fn is_only_one(&self, old: u32, new: u32) -> bool {
        let is_same = self.old.shape(old).is_same_body(self.new.shape(new));
        let is_only = |text: &AnalyzedText<'_>, index: u32| {
            let structure = &text.structure;
            let name = structure.name(&structure.defs[index as usize]);
            let tells = is_same || text.shape(index).tokens.len() >= super::score::MIN_INFORMATIVE_TOKENS;
            let named =
                structure.defs.iter().filter(|def| is_compound(def.kind) && structure.name(def) == name);
            tells && named.count() == 1
        };
        is_only(self.old, old) && is_only(self.new, new)
    }

    /// Whether one of the two is inside a function that does not correspond to the other's scope.
    fn is_local(&self, old: u32, new: u32) -> bool {
        let scope = |structure: &TextStructure<'_>, def: u32| structure.defs[def as usize].parent;
        let is_function = |structure: &TextStructure<'_>, def: Option<u32>| {
            def.is_some_and(|def| structure.defs[def as usize].kind.is_function())
        };
        let (was, is) = (scope(&self.old.structure, old), scope(&self.new.structure, new));
        (is_function(&self.old.structure, was) || is_function(&self.new.structure, is))
            && self.new_parent(was) != Some(is)
    }

    /// The least score from a definition up to the module. A long and similar body limits how far the enclosing
    /// definitions lower it.
    pub(super) fn chain_score(&self, old: u32) -> f64 {
        let own = self.links[old as usize].map_or(MatchFeatures::SAME, |link| link.features);
        let parent = self.old.structure.defs[old as usize].parent;
        // What became of the scope says nothing about a definition that left it.
        let own_scope =
            self.links[old as usize].map(|link| self.new.structure.defs[link.new as usize].parent);
        let parent = parent.filter(|parent| {
            self.links[*parent as usize]
                .is_some_and(|link| own_scope.is_none_or(|scope| scope == Some(link.new)))
        });
        let least = parent.map_or(1.0, |parent| self.chain_score(parent)).min(own.score());
        if self.tells(old) { least.max(own.score() - 0.1) } else { least }
    }

    /// Whether a definition is recognized by its own text, whatever became of the definitions around it.
    fn tells(&self, old: u32) -> bool {
        self.links[old as usize].is_none_or(|link| link.features.token_jaccard >= 0.8)
            && self.old.shape(old).tokens.len() >= super::score::MIN_INFORMATIVE_TOKENS
    }

    /// Whether a definition, or one around it, kept so little of its text that it may be another one with the same name.
    pub(super) fn is_rewritten(&self, old: u32) -> bool {
        !self.keeps(old, MIN_CERTIFIED_JACCARD, MIN_CERTIFIED_JACCARD)
    }

    /// Whether a definition kept nearly all of its text, so that none with the same name can have taken its place in between.
    pub(super) fn is_close(&self, old: u32) -> bool {
        self.keeps(old, MIN_CLOSE_JACCARD, MIN_CLOSE_SCOPE_JACCARD)
    }

    /// Whether a definition kept at least the share `own` of its tokens, and, if it is too short to tell, those around it
    /// kept `around`.
    fn keeps(&self, old: u32, own: f64, around: f64) -> bool {
        let kept = |old: u32, share: f64| {
            self.links[old as usize].is_none_or(|link| link.features.token_jaccard >= share)
        };
        let parent = |old: &u32| self.old.structure.defs[*old as usize].parent;
        kept(old, own)
            && (self.tells(old) || std::iter::successors(parent(&old), parent).all(|old| kept(old, around)))
    }

    /// Whether the name or the neighbors of one of several similar candidates are much closer.
    fn breaks_tie(&self, old: u32, new: u32, rivals: &[(f64, u32, u32)], score: f64) -> bool {
        let key = |old: u32, new: u32| {
            let names = super::shape::name_similarity(
                self.old.structure.name(&self.old.structure.defs[old as usize]),
                self.new.structure.name(&self.new.structure.defs[new as usize]),
            );
            names + self.proximity(old, new)
        };
        let close = rivals.iter().filter(|(other, ..)| score - other < MARGIN);
        let next = close.map(|(_, old, new)| key(*old, *new)).fold(0.0, f64::max);
        key(old, new) >= next + 0.45
    }

    /// Whether two definitions are in the same scope between the same neighbors, from 0 to 1.
    fn proximity(&self, old: u32, new: u32) -> f64 {
        let (a, b) = (&self.old.structure.defs[old as usize], &self.new.structure.defs[new as usize]);
        if self.new_parent(a.parent) != Some(b.parent) || (self.options.module < 1.0 && a.parent.is_none()) {
            return 0.0;
        }
        // An attribute that a method assigns is not a neighbor.
        let neighbor = |which: usize, scope: Option<u32>, index: u32, step: isize| -> Option<u32> {
            let siblings = self.children[which].get(&scope)?;
            let defs = [self.old, self.new][which].structure.defs.as_slice();
            let mut at = siblings.binary_search(&index).ok()?;
            loop {
                at = at.checked_add_signed(step)?;
                let sibling = *siblings.get(at)?;
                if defs[sibling as usize].kind != DefinitionKind::Attribute {
                    return Some(sibling);
                }
            }
        };
        let agrees = |step: isize| {
            let was = neighbor(0, a.parent, old, step);
            let is = neighbor(1, b.parent, new, step);
            match (was, is) {
                (None, None) => true,
                (Some(was), Some(is)) => self.links[was as usize].is_some_and(|link| link.new == is),
                _ => false,
            }
        };
        0.4 + if agrees(-1) { 0.3 } else { 0.0 } + if agrees(1) { 0.3 } else { 0.0 }
    }

    /// Whether a definition and all enclosing ones were matched by name without an alternative.
    pub(super) fn is_sure(&self, old: Option<u32>) -> bool {
        let mut at = old;
        while let Some(index) = at {
            if !self.links[index as usize].is_some_and(|link| link.sure) {
                return false;
            }
            at = self.old.structure.defs[index as usize].parent;
        }
        true
    }

    /// Whether the order of a definition and its siblings changed for at least a third of them.
    pub(super) fn changed_order(&self, old: u32) -> bool {
        let Some(link) = self.links[old as usize] else { return false };
        let scope = self.old.structure.defs[old as usize].parent;
        let siblings = self.children[0].get(&scope).map_or(&[][..], Vec::as_slice);
        let (mut kept, mut all) = (0, 0);
        for &sibling in siblings.iter().filter(|&&sibling| sibling != old) {
            if let Some(other) = self.links[sibling as usize] {
                all += 1;
                kept += usize::from((sibling < old) == (other.new < link.new));
            }
        }
        all > 0 && ratio(kept, all) < 0.67
    }
}

/// The hashes of the tokens of a header, decorators included.
fn header(of: ComparedDefinition<'_>) -> Vec<u64> {
    let def = of.def();
    let first = of.structure.lines[def.lines.start as usize].first;
    of.structure.tokens[first as usize..def.body as usize].iter().map(|token| token.hash).collect()
}
