//! Which definition of a new text is which of an old one, for a whole file at once.
//!
//! A definition is not looked for alone. What has kept its name keeps it; then what lost its name on the one side is held
//! against what is new on the other. So a rename shows because the old name went and a new one came with the same body, and
//! a deletion because nothing that is new resembles what is gone.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::score::{Compared, FLOOR, Features, MARGIN, features, is_same_sort};
use super::shape::{Shape, ratio};
use super::side::{Side, is_compound};

/// The most pairs of leftover definitions that are compared in full.
const MAX_PAIRS: usize = 60_000;

/// The most pairs of definitions of one name that are compared; more are taken in their order.
const MAX_GROUP: usize = 10_000;

/// How an old definition was found again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    /// The new definition.
    pub(super) new: u32,
    pub(super) features: Features,
    /// How much better it is than the next one that could be meant.
    pub(super) margin: f64,
    /// Whether name and surroundings are the same, and it is the only one.
    pub(super) sure: bool,
}

/// A text with the shapes of its definitions, each made when it is asked for.
pub(crate) struct Shaped<'t> {
    pub(crate) side: Side<'t>,
    shapes: Vec<OnceCell<Shape>>,
}

impl<'t> Shaped<'t> {
    /// Reads a text.
    pub(crate) fn new(text: &'t str) -> Self {
        let side = Side::new(text);
        let shapes = side.defs.iter().map(|_| OnceCell::new()).collect();
        Self { side, shapes }
    }

    pub(super) fn shape(&self, index: u32) -> &Shape {
        let def = &self.side.defs[index as usize];
        self.shapes[index as usize].get_or_init(|| Shape::new(&self.side, def))
    }

    pub(super) fn compared(&self, index: u32) -> Compared<'_> {
        Compared { side: &self.side, index, shape: self.shape(index) }
    }
}

/// The definitions of two texts, matched.
pub(super) struct Pairs<'s, 't> {
    pub(super) old: &'s Shaped<'t>,
    pub(super) new: &'s Shaped<'t>,
    /// For each old definition.
    pub(super) links: Vec<Option<Link>>,
    /// For each new definition, the old one.
    pub(super) origins: Vec<Option<u32>>,
    children: [BTreeMap<Option<u32>, Vec<u32>>; 2],
    /// For each old definition that lost its name, what scores enough to be meant, best first; found or not.
    pub(super) candidates: BTreeMap<u32, Vec<(u32, Features)>>,
    /// Old definitions whose name went one way and whose body another.
    pub(super) contested: BTreeSet<u32>,
    terms: Terms,
}

/// On what terms two texts are matched.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// How much of the module's path is the same; 1 for the same file.
    pub(super) module: f64,
    /// Old definitions that are found again elsewhere.
    pub(super) found: Vec<bool>,
    /// New definitions that were there before.
    pub(super) known: Vec<bool>,
}

impl Terms {
    /// The same file, of which nothing is known beforehand.
    pub(super) const fn same_file() -> Self {
        Self { module: 1.0, found: Vec::new(), known: Vec::new() }
    }
}

impl<'s, 't> Pairs<'s, 't> {
    /// Matches two texts.
    pub(super) fn new(old: &'s Shaped<'t>, new: &'s Shaped<'t>, terms: Terms) -> Self {
        let children = [old, new].map(|shaped| {
            let mut children: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
            for (index, def) in (0..).zip(&shaped.side.defs) {
                children.entry(def.parent).or_default().push(index);
            }
            children
        });
        let mut pairs = Self {
            old,
            new,
            links: vec![None; old.side.defs.len()],
            origins: vec![None; new.side.defs.len()],
            children,
            candidates: BTreeMap::new(),
            contested: BTreeSet::new(),
            terms,
        };
        pairs.by_name(None, None);
        // Classes first: with a class found again, its members are found by their names.
        pairs.leftovers(|kind| kind == super::DefinitionKind::Class);
        pairs.leftovers(super::DefinitionKind::is_function);
        pairs.leftovers(|kind| !is_compound(kind));
        if pairs.terms.module < 1.0 {
            pairs.weigh_company();
        }
        pairs
    }

    /// In another file no neighbours are the same; what came along from the same scope speaks for a move as well.
    fn weigh_company(&mut self) {
        let mut company: Vec<Option<f64>> = vec![None; self.links.len()];
        for (scope, siblings) in &self.children[0] {
            let moving: Vec<u32> = siblings
                .iter()
                .copied()
                .filter(|&index| {
                    let def = &self.old.side.defs[index as usize];
                    is_compound(def.kind) && self.terms.found.get(index as usize) != Some(&true)
                })
                .collect();
            let target = |index: u32| {
                self.links[index as usize].map(|link| self.new.side.defs[link.new as usize].parent)
            };
            for &index in &moving {
                let Some(there) = target(index) else { continue };
                let others =
                    moving.iter().filter(|&&other| other != index && target(other) == Some(there)).count();
                let kept = scope.is_some() && self.new_parent(*scope) == Some(there);
                company[index as usize] = Some(match moving.len() {
                    _ if kept => 1.0,
                    1 => 0.5,
                    all => ratio(others, all - 1).max(ratio(others.min(3), 3)),
                });
            }
        }
        for (link, company) in self.links.iter_mut().zip(company) {
            if let (Some(link), Some(company)) = (link, company) {
                link.features.proximity = company;
            }
        }
    }

    /// The new parent of what is in `parent`; `None` where that has none.
    fn new_parent(&self, parent: Option<u32>) -> Option<Option<u32>> {
        match parent {
            None => Some(None),
            Some(parent) => self.links[parent as usize].map(|link| Some(link.new)),
        }
    }

    fn is_found(&self, old: u32) -> bool {
        self.links[old as usize].is_some() || self.terms.found.get(old as usize) == Some(&true)
    }

    fn is_taken(&self, new: u32) -> bool {
        self.origins[new as usize].is_some() || self.terms.known.get(new as usize) == Some(&true)
    }

    fn link(&mut self, old: u32, new: u32, features: Features, margin: f64, sure: bool) {
        self.links[old as usize] = Some(Link { new, features, margin, sure });
        self.origins[new as usize] = Some(old);
        if is_compound(self.old.side.defs[old as usize].kind) {
            self.by_name(Some(old), Some(new));
        }
    }

    /// Matches what is in two scopes that belong together and has the same name.
    fn by_name(&mut self, old_scope: Option<u32>, new_scope: Option<u32>) {
        let mut groups: BTreeMap<&str, [Vec<u32>; 2]> = BTreeMap::new();
        for (which, (shaped, scope)) in [(self.old, old_scope), (self.new, new_scope)].into_iter().enumerate()
        {
            for &index in self.children[which].get(&scope).map_or(&[][..], Vec::as_slice) {
                let name = shaped.side.name(&shaped.side.defs[index as usize]);
                groups.entry(name).or_default()[which].push(index);
            }
        }
        for [olds, news] in groups.into_values() {
            self.group(olds, news);
        }
    }

    /// Matches definitions of one name in one scope.
    fn group(&mut self, mut olds: Vec<u32>, mut news: Vec<u32>) {
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
        if (olds.len() > 1 || news.len() > 1) && olds.len().saturating_mul(news.len()) <= MAX_GROUP {
            let (old_side, new_side) = (self.old, self.new);
            take(&mut olds, &mut news, &|old, new| {
                let (a, b) = (old_side.compared(old), new_side.compared(new));
                a.shape.is_same_body(b.shape) && a.def().kind == b.def().kind && header(a) == header(b)
            });
            take(&mut olds, &mut news, &|old, new| {
                let (a, b) = (old_side.compared(old), new_side.compared(new));
                a.shape.is_same_body(b.shape) && a.def().kind == b.def().kind
            });
            // Different numbers of the rest: the most alike first.
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
            let same_file = self.terms.module >= 1.0;
            let mut found = features(a, b, self.terms.module, if same_file { 1.0 } else { 0.5 });
            let alike = is_same_sort(a.def().kind, b.def().kind);
            if self.was_taken_over(old, new) {
                // Is it what bears the name, or what does the work? Both can be meant.
                self.contested.insert(old);
                self.candidates.entry(old).or_default().push((new, found));
                continue;
            }
            // The name in its place is the structure, whatever became of the body.
            found.ast = if alike { 1.0 } else { 0.9 };
            // In another file a name alone proves little.
            if same_file || a.def().parent.is_some() || found.score() >= FLOOR {
                self.link(old, new, found, 1.0, sure && alike && same_file);
            }
        }
    }

    /// Whether the old body went on under another name while something else took the name: then the name proves nothing.
    fn was_taken_over(&self, old: u32, new: u32) -> bool {
        let (a, b) = (self.old.shape(old), self.new.shape(new));
        let kind = self.old.side.defs[old as usize].kind;
        if !is_compound(kind) || a.tokens.len() < 30 || super::shape::dice(&a.triples, &b.triples) > 0.15 {
            return false;
        }
        let old_names: Vec<&str> = self.old.side.defs.iter().map(|def| self.old.side.name(def)).collect();
        (0..).zip(&self.new.side.defs).any(|(index, def)| {
            index != new
                && is_same_sort(kind, def.kind)
                && !old_names.contains(&self.new.side.name(def))
                && self.new.shape(index).is_same_body(a)
        })
    }

    /// Matches what has no partner by name, the most alike first.
    fn leftovers(&mut self, wanted: impl Fn(super::DefinitionKind) -> bool) {
        let free = |shaped: &Shaped<'_>, taken: &dyn Fn(usize) -> bool| -> Vec<u32> {
            let defs = (0..).zip(&shaped.side.defs);
            defs.filter(|(index, def)| wanted(def.kind) && !taken(*index as usize))
                .map(|(index, _)| index)
                .collect()
        };
        let small = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let olds = free(self.old, &|index| self.is_found(small(index)));
        let news = free(self.new, &|index| self.is_taken(small(index)));
        let mut scored: Vec<(f64, u32, u32, Features)> = Vec::new();
        let whole = olds.len() * news.len() <= MAX_PAIRS;
        for &old in &olds {
            for &new in &news {
                let same_name = self.old.side.name(&self.old.side.defs[old as usize])
                    == self.new.side.name(&self.new.side.defs[new as usize]);
                if !whole && !same_name && !self.old.shape(old).is_same_body(self.new.shape(new)) {
                    continue;
                }
                let (a, b) = (self.old.compared(old), self.new.compared(new));
                // What is local to a function goes with it, unless all of it is the same.
                if self.is_local(old, new) && !(a.shape.is_same_body(b.shape) && a.shape.tokens.len() >= 20) {
                    continue;
                }
                let found = features(a, b, self.terms.module, self.proximity(old, new));
                let is_variable = !is_compound(a.def().kind);
                // A variable with another name is the same one only if it is set to the same, in the same place.
                let telling =
                    !is_variable || same_name || (a.shape.is_same_body(b.shape) && a.shape.tokens.len() > 3);
                if telling && found.score() >= FLOOR {
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
        // What cannot be settled at its best is not settled with something worse.
        let mut open: BTreeSet<u32> = self.contested.clone();
        for &(score, old, new, found) in &scored {
            if self.is_found(old) || self.is_taken(new) || open.contains(&old) {
                continue;
            }
            // Who else could be meant: another new one for this old one, or another old one that became this new one.
            let beside = by_old.get(&old).into_iter().chain(by_new.get(&new)).flatten();
            let rivals: Vec<(f64, u32, u32)> = beside
                .map(|&at| (scored[at].0, scored[at].1, scored[at].2))
                .filter(|&(other, o, n)| {
                    !self.is_found(o) && !self.is_taken(n) && ((o == old) != (n == new)) && other <= score
                })
                .collect();
            let next = rivals.iter().map(|(score, ..)| *score).fold(0.0, f64::max);
            if score - next < MARGIN && !self.settles(old, new, &rivals, score) {
                open.insert(old);
                continue;
            }
            let margin = if score - next < MARGIN { MARGIN } else { score - next };
            self.link(old, new, found, margin, false);
        }
    }

    /// Whether one of the two is inside of a function that is not the other's.
    fn is_local(&self, old: u32, new: u32) -> bool {
        let scope = |side: &Side<'_>, def: u32| side.defs[def as usize].parent;
        let is_function = |side: &Side<'_>, def: Option<u32>| {
            def.is_some_and(|def| side.defs[def as usize].kind.is_function())
        };
        let (was, is) = (scope(&self.old.side, old), scope(&self.new.side, new));
        (is_function(&self.old.side, was) || is_function(&self.new.side, is))
            && self.new_parent(was) != Some(is)
    }

    /// The least score on the way from a definition up to the module. A body that speaks for itself is not held back by
    /// what is around it.
    pub(super) fn score_of(&self, old: u32) -> f64 {
        let own = self.links[old as usize].map_or(Features::SAME, |link| link.features);
        let mut least = own.score();
        let mut at = self.old.side.defs[old as usize].parent;
        while let Some(link) = at.and_then(|index| self.links[index as usize]) {
            least = least.min(link.features.score());
            at = at.and_then(|index| self.old.side.defs[index as usize].parent);
        }
        let tells = own.token_jaccard >= 0.8 && self.old.shape(old).tokens.len() >= super::score::TELLING;
        if tells { least.max(own.score() - 0.1) } else { least }
    }

    /// Several look alike: whether the name or the neighbours of one are much nearer.
    fn settles(&self, old: u32, new: u32, rivals: &[(f64, u32, u32)], score: f64) -> bool {
        let key = |old: u32, new: u32| {
            let names = super::shape::name_likeness(
                self.old.side.name(&self.old.side.defs[old as usize]),
                self.new.side.name(&self.new.side.defs[new as usize]),
            );
            names + self.proximity(old, new)
        };
        let near = rivals.iter().filter(|(other, ..)| score - other < MARGIN);
        let next = near.map(|(_, old, new)| key(*old, *new)).fold(0.0, f64::max);
        key(old, new) >= next + 0.45
    }

    /// Whether two definitions stand in the same scope between the same neighbours.
    fn proximity(&self, old: u32, new: u32) -> f64 {
        let (a, b) = (&self.old.side.defs[old as usize], &self.new.side.defs[new as usize]);
        if self.new_parent(a.parent) != Some(b.parent) || (self.terms.module < 1.0 && a.parent.is_none()) {
            return 0.0;
        }
        // What a method sets on its class is its own doing, and no neighbour.
        let neighbour = |which: usize, scope: Option<u32>, index: u32, step: isize| -> Option<u32> {
            let siblings = self.children[which].get(&scope)?;
            let defs = [self.old, self.new][which].side.defs.as_slice();
            let mut at = siblings.binary_search(&index).ok()?;
            loop {
                at = at.checked_add_signed(step)?;
                let sibling = *siblings.get(at)?;
                if defs[sibling as usize].kind != super::DefinitionKind::Attribute {
                    return Some(sibling);
                }
            }
        };
        let agrees = |step: isize| {
            let was = neighbour(0, a.parent, old, step);
            let is = neighbour(1, b.parent, new, step);
            match (was, is) {
                (None, None) => true,
                (Some(was), Some(is)) => self.links[was as usize].is_some_and(|link| link.new == is),
                _ => false,
            }
        };
        0.4 + if agrees(-1) { 0.3 } else { 0.0 } + if agrees(1) { 0.3 } else { 0.0 }
    }

    /// Whether a definition and all around it were found again by name alone.
    pub(super) fn is_sure(&self, old: Option<u32>) -> bool {
        let mut at = old;
        while let Some(index) = at {
            if !self.links[index as usize].is_some_and(|link| link.sure) {
                return false;
            }
            at = self.old.side.defs[index as usize].parent;
        }
        true
    }

    /// Whether a definition stands behind one of the siblings that stood behind it.
    pub(super) fn changed_order(&self, old: u32) -> bool {
        let Some(link) = self.links[old as usize] else { return false };
        let scope = self.old.side.defs[old as usize].parent;
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

/// The tokens of a header.
fn header(of: Compared<'_>) -> Vec<u64> {
    let def = of.def();
    let first = of.side.lines[def.lines.start as usize].first;
    of.side.tokens[first as usize..def.body as usize].iter().map(|token| token.hash).collect()
}
