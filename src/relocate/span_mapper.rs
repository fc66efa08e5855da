//! Maps a span of the old text to the new one, after the definitions of both were matched.

use std::collections::BTreeMap;

use super::align::{Alignment, LineMatch, align, align_tokens, is_unambiguous};
use super::lex::TokenKind;
use super::pairs::DefinitionPairs;
use super::shape::{dice, ratio};
use super::structure::{TextStructure, is_compound};
use crate::python::outline::Span;

/// A span that was found in the new text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MappedSpan {
    /// Its bytes in the new text.
    pub(super) span: Span,
    /// Whether its own text is unchanged, byte for byte.
    pub(super) untouched: bool,
    /// Whether no other location is possible.
    pub(super) unambiguous: bool,
    /// The share of its tokens that were found.
    pub(super) kept: f64,
    /// Whether it changed its position among the statements of its definition.
    pub(super) moved: bool,
    /// The old definition that it belongs to; `None` is the module.
    pub(super) owner: Option<u32>,
}

/// The result of mapping a span.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MapOutcome {
    /// It was found.
    Found(MappedSpan),
    /// Its definition was not found in this text.
    OwnerLost(u32),
    /// Its definition was found and no longer contains it.
    Removed(Option<u32>),
}

/// Maps spans of one pair of texts. Caches the alignments.
pub(super) struct SpanMapper<'p, 's, 't> {
    pairs: &'p DefinitionPairs<'s, 't>,
    own: [BTreeMap<Option<u32>, Vec<u32>>; 2],
    /// The variables of both texts by the tokens of their names.
    variables: [BTreeMap<u32, u32>; 2],
    alignments: BTreeMap<Option<u32>, Alignment>,
    tokens: BTreeMap<u32, BTreeMap<u32, (u32, bool)>>,
}

/// One token that was found.
#[derive(Clone, Copy)]
struct MappedToken {
    token: u32,
    same: bool,
    kept: LineMatch,
}

impl<'p, 's, 't> SpanMapper<'p, 's, 't> {
    pub(super) fn new(pairs: &'p DefinitionPairs<'s, 't>) -> Self {
        let own = [pairs.old, pairs.new].map(|shaped| {
            let mut own: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
            for (line, owner) in (0..).zip(&shaped.structure.owner) {
                own.entry(*owner).or_default().push(line);
            }
            own
        });
        let variables = [pairs.old, pairs.new].map(|shaped| {
            let defs = (0_u32..).zip(&shaped.structure.defs);
            defs.filter(|(_, def)| !is_compound(def.kind)).map(|(index, def)| (def.name, index)).collect()
        });
        Self { pairs, own, variables, alignments: BTreeMap::new(), tokens: BTreeMap::new() }
    }

    fn old_structure(&self) -> &'s TextStructure<'t> {
        &self.pairs.old.structure
    }

    fn new_structure(&self) -> &'s TextStructure<'t> {
        &self.pairs.new.structure
    }

    fn lines(&self, which: usize, owner: Option<u32>) -> &[u32] {
        self.own[which].get(&owner).map_or(&[], Vec::as_slice)
    }

    /// The owner's counterpart; `None` if it has none.
    fn counterpart(&self, owner: Option<u32>) -> Option<Option<u32>> {
        match owner {
            None => Some(None),
            Some(old) => self.pairs.links[old as usize].map(|link| Some(link.new)),
        }
    }

    fn ensure_aligned(&mut self, owner: Option<u32>) {
        if self.alignments.contains_key(&owner) {
            return;
        }
        let mut alignment = Alignment::default();
        if let Some(new_owner) = self.counterpart(owner) {
            let header = |structure: &TextStructure<'_>, def: u32| structure.defs[def as usize].header;
            let pinned = owner
                .zip(new_owner)
                .map(|(old, new)| (header(self.old_structure(), old), header(self.new_structure(), new)));
            let (olds, news) = (self.lines(0, owner), self.lines(1, new_owner));
            alignment = align(self.old_structure(), self.new_structure(), olds, news, pinned);
            self.pin_variables(owner, new_owner, &mut alignment);
        }
        self.alignments.insert(owner, alignment);
    }

    /// Aligns the lines of variables that kept their name, whatever value is assigned.
    fn pin_variables(&self, owner: Option<u32>, new_owner: Option<u32>, alignment: &mut Alignment) {
        let taken: std::collections::BTreeSet<u32> =
            alignment.lines.values().map(|(line, _)| *line).collect();
        for (def, link) in self.old_structure().defs.iter().zip(&self.pairs.links) {
            let Some(link) = link else { continue };
            let new = &self.new_structure().defs[link.new as usize];
            let here = self.old_structure().owner[def.header as usize] == owner
                && self.new_structure().owner[new.header as usize] == new_owner;
            if !is_compound(def.kind)
                && !is_compound(new.kind)
                && here
                && !alignment.lines.contains_key(&def.header)
                && !taken.contains(&new.header)
            {
                alignment.lines.insert(def.header, (new.header, LineMatch::Edited(0.5)));
            }
        }
    }

    /// Maps a token. The name of a variable that kept its name is mapped to that, whatever line has its value now, and the name of
    /// one that is gone is not mapped to that of another one.
    fn token(&mut self, token: u32) -> Option<MappedToken> {
        let found = self.aligned_token(token);
        let Some(&index) = self.variables[0].get(&token) else { return found };
        let Some(link) = self.pairs.links[index as usize] else {
            let is_taken = |found: &MappedToken| {
                let other = self.variables[1].get(&found.token);
                other.is_some_and(|other| self.pairs.origins[*other as usize].is_some())
            };
            return found.filter(|found| !is_taken(found));
        };
        let (old, new) = (self.old_structure(), self.new_structure());
        let (was, is) = (&old.defs[index as usize], &new.defs[link.new as usize]);
        let is_kept = !is_compound(is.kind) && old.name(was) == new.name(is);
        if is_kept && found.as_ref().is_none_or(|found| found.token != is.name) {
            return Some(MappedToken { token: is.name, same: true, kept: LineMatch::Edited(0.5) });
        }
        found
    }

    fn aligned_token(&mut self, token: u32) -> Option<MappedToken> {
        let line = u32::try_from(self.old_structure().line_of(token)).ok()?;
        let owner = self.old_structure().owner[line as usize];
        self.ensure_aligned(owner);
        let &(new_line, kept) = self.alignments.get(&owner)?.lines.get(&line)?;
        let (old, new) = (self.old_structure(), self.new_structure());
        let links = &self.pairs.links;
        let tokens = self.tokens.entry(line).or_insert_with(|| {
            let mut found = align_tokens(old, new, line, new_line);
            // The name token of a definition maps to the name token of its counterpart.
            for (def, link) in old.defs.iter().zip(links) {
                if let (true, Some(link)) = (def.header == line, link) {
                    let target = &new.defs[link.new as usize];
                    if target.header == new_line {
                        let same = old.name(def) == new.name(target);
                        found.retain(|_, (token, _)| *token != target.name);
                        found.insert(def.name, (target.name, same));
                    }
                }
            }
            found
        });
        tokens.get(&token).map(|&(token, same)| MappedToken { token, same, kept })
    }

    /// Maps a span of the old text.
    pub(super) fn map(&mut self, span: &Span) -> MapOutcome {
        let old = self.old_structure();
        let first = old.token_from(span.start);
        let end = old.tokens.partition_point(|token| (token.start as usize) < span.end.max(span.start + 1));
        if first >= old.tokens.len() {
            // After the last token: the end of the text.
            let end = self.new_structure().text.len();
            return MapOutcome::Found(self.mapped_span(end..end, true, false, 1.0, false, None));
        }
        if first >= end {
            return self.map_gap(span, first);
        }
        let indices: Vec<u32> = (first..end).filter_map(|index| u32::try_from(index).ok()).collect();
        let owner = indices.first().and_then(|&token| old.owner_of(token));
        let mapped: Vec<Option<MappedToken>> = indices.iter().map(|&token| self.token(token)).collect();
        let found = mapped.iter().flatten().count();
        let mut kept = ratio(mapped.iter().flatten().filter(|token| token.same).count(), indices.len());
        if let ([token], [Some(is)]) = (indices.as_slice(), mapped.as_slice()) {
            if self.is_name_of_owner(*token, owner) {
                // The name of a matched definition counts as kept even if it was renamed.
                kept = 1.0;
            } else if !is.same && self.is_literal(*token) {
                return self.map_in_literal(span, *token, *is, owner);
            }
        }
        if found == 0 || (indices.len() >= 4 && ratio(found, indices.len()) < 0.34) {
            return match owner {
                Some(owner) if self.pairs.links[owner as usize].is_none() => MapOutcome::OwnerLost(owner),
                owner => self
                    .find_moved_lines(span, &indices)
                    .map_or(MapOutcome::Removed(owner), MapOutcome::Found),
            };
        }
        let (Some(from), Some(to)) = self.ends(&indices, &mapped, span) else {
            return MapOutcome::Removed(owner);
        };
        if from > to {
            // Its end was moved before its start: the span no longer exists.
            return MapOutcome::Removed(owner);
        }
        let new_span = from..to;
        let untouched =
            self.old_structure().text.get(span.clone()) == self.new_structure().text.get(new_span.clone());
        let in_order = mapped
            .iter()
            .all(|token| token.is_some_and(|token| token.same && token.kept != LineMatch::Moved));
        let moved = mapped.iter().flatten().any(|token| token.kept == LineMatch::Moved);
        let sure = in_order && self.are_lines_unambiguous(&indices);
        MapOutcome::Found(self.mapped_span(new_span, untouched, sure, kept, moved, owner))
    }

    fn is_name_of_owner(&self, token: u32, owner: Option<u32>) -> bool {
        owner.is_some_and(|owner| self.old_structure().defs[owner as usize].name == token)
    }

    fn is_literal(&self, token: u32) -> bool {
        matches!(self.old_structure().tokens[token as usize].kind, TokenKind::String | TokenKind::Comment)
    }

    /// Maps a span inside a string or comment that was edited.
    fn map_in_literal(&self, span: &Span, token: u32, is: MappedToken, owner: Option<u32>) -> MapOutcome {
        let (old, new) = (self.old_structure(), self.new_structure());
        let (a, b) = (old.tokens[token as usize], new.tokens[is.token as usize]);
        let (x, y) =
            (&old.text[a.start as usize..a.end as usize], &new.text[b.start as usize..b.end as usize]);
        let inside = |offset: usize| offset.clamp(a.start as usize, a.end as usize) - a.start as usize;
        if span.start <= a.start as usize && span.end >= a.end as usize {
            let kept = dice(&words(x), &words(y));
            return MapOutcome::Found(self.mapped_span(
                b.start as usize..b.end as usize,
                false,
                false,
                kept,
                false,
                owner,
            ));
        }
        let Some((start, kept)) = map_by_line(x, y, inside(span.start)) else {
            return MapOutcome::Removed(owner);
        };
        let end = map_by_line(x, y, inside(span.end)).map_or(start, |(end, _)| end.max(start));
        let new_span = b.start as usize + start..b.start as usize + end;
        let untouched = old.text.get(span.clone()) == new.text.get(new_span.clone());
        let kept = if untouched { 1.0 } else { kept };
        MapOutcome::Found(self.mapped_span(
            new_span,
            untouched,
            untouched && is.kept != LineMatch::Moved,
            kept,
            false,
            owner,
        ))
    }

    fn mapped_span(
        &self,
        span: Span,
        untouched: bool,
        unambiguous: bool,
        kept: f64,
        moved: bool,
        owner: Option<u32>,
    ) -> MappedSpan {
        let unambiguous = unambiguous && self.pairs.is_sure(owner);
        MappedSpan { span, untouched, unambiguous, kept, moved, owner }
    }

    /// The byte offsets at which the counterpart of a span starts and ends.
    fn ends(
        &self,
        indices: &[u32],
        mapped: &[Option<MappedToken>],
        span: &Span,
    ) -> (Option<usize>, Option<usize>) {
        let (old, new) = (self.old_structure(), self.new_structure());
        let first = mapped.iter().position(Option::is_some);
        let last = mapped.iter().rposition(Option::is_some);
        let start = first.and_then(|at| {
            let (was, is) = (indices[at], mapped[at]?);
            if at > 0 {
                // Its first tokens were replaced. A whole statement still starts with the first token of its line.
                let line = old.lines[old.line_of(indices[0])];
                let new_line = new.lines[new.line_of(is.token)];
                let whole = line.first == indices[0] && old.line_of(was) == old.line_of(indices[0]);
                let token = if whole { new_line.first } else { is.token };
                return Some(new.tokens[token as usize].start as usize);
            }
            Some(self.map_in_token(was, is, span.start))
        });
        let end = last.and_then(|at| {
            let (was, is) = (indices[at], mapped[at]?);
            if at + 1 < indices.len() {
                return Some(new.tokens[is.token as usize].end as usize);
            }
            Some(self.map_in_token(was, is, span.end))
        });
        (start, end)
    }

    /// Maps an offset in or at a token to the token's counterpart.
    fn map_in_token(&self, was: u32, is: MappedToken, offset: usize) -> usize {
        let (old, new) = (self.old_structure(), self.new_structure());
        let (a, b) = (old.tokens[was as usize], new.tokens[is.token as usize]);
        let (start, end) = (a.start as usize, a.end as usize);
        let (new_start, new_end) = (b.start as usize, b.end as usize);
        if offset <= start {
            // White space before the token belongs to the span if it is still there.
            let gap = &old.text[offset..start];
            let blank = !gap.is_empty() && gap.chars().all(|c| c == ' ' || c == '\t');
            return if blank && new.text[..new_start].ends_with(gap) {
                new_start - gap.len()
            } else {
                new_start
            };
        }
        if offset >= end {
            return new_end;
        }
        let into = offset - start;
        if is.same || matches!(a.kind, TokenKind::Name | TokenKind::Number) {
            let mut at = (new_start + into).min(new_end);
            while !new.text.is_char_boundary(at) {
                at -= 1;
            }
            return at;
        }
        let (x, y) = (&old.text[start..end], &new.text[new_start..new_end]);
        map_by_line(x, y, into).map_or(new_start, |(at, _)| new_start + at)
    }

    fn are_lines_unambiguous(&self, indices: &[u32]) -> bool {
        let (old, new) = (self.old_structure(), self.new_structure());
        let mut last = None;
        indices.iter().all(|&token| {
            let line = old.line_of(token);
            if last.replace(line) == Some(line) {
                return true;
            }
            let owner = old.owner[line];
            let (Some(new_owner), Some(alignment)) = (self.counterpart(owner), self.alignments.get(&owner))
            else {
                return false;
            };
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            // The header of a definition that was matched by name belongs to that definition.
            if owner.is_some_and(|owner| old.defs[owner as usize].header == line) {
                return true;
            }
            is_unambiguous(old, new, self.lines(0, owner), self.lines(1, new_owner), alignment, line)
        })
    }

    /// Maps a span in white space: to the same distance before the next token, if that is still white space.
    fn map_gap(&mut self, span: &Span, next: usize) -> MapOutcome {
        let old = self.old_structure();
        let Ok(token) = u32::try_from(next) else { return MapOutcome::Removed(None) };
        let before = old.tokens[next].start as usize - span.start;
        let owner = old.owner_of(token);
        match self.token(token) {
            Some(mapped) => {
                let start = self.new_structure().tokens[mapped.token as usize].start as usize;
                let at = start.saturating_sub(before);
                let text = self.new_structure().text;
                let gap =
                    text.get(at..start).filter(|gap| *gap == &old.text[span.start..span.start + before]);
                let at = gap.map_or(start, |_| at);
                let end = at + span.len().min(start - at);
                let sure = gap.is_some() && mapped.same && mapped.kept == LineMatch::Same;
                let sure = sure && self.are_lines_unambiguous(&[token]);
                let moved = mapped.kept == LineMatch::Moved;
                MapOutcome::Found(self.mapped_span(at..end, gap.is_some(), sure, 1.0, moved, owner))
            }
            None => match owner {
                Some(owner) if self.pairs.links[owner as usize].is_none() => MapOutcome::OwnerLost(owner),
                owner => MapOutcome::Removed(owner),
            },
        }
    }

    /// Finds statements that moved to another definition of the same text: the same tokens, exactly once on each side among
    /// all lines without a partner.
    fn find_moved_lines(&mut self, span: &Span, indices: &[u32]) -> Option<MappedSpan> {
        let old = self.old_structure();
        let owners: Vec<Option<u32>> = self.own[0].keys().copied().collect();
        for owner in owners {
            self.ensure_aligned(owner);
        }
        let (first, last) = (old.line_of(*indices.first()?), old.line_of(*indices.last()?));
        let mut taken = vec![false; self.new_structure().lines.len()];
        for (line, _) in self.alignments.values().flat_map(|alignment| alignment.lines.values()) {
            taken[*line as usize] = true;
        }
        let left = |line: usize| {
            let owner = old.owner[line];
            let known = self.alignments.get(&owner).map(|alignment| &alignment.lines);
            !known.is_some_and(|lines| lines.contains_key(&u32::try_from(line).unwrap_or(u32::MAX)))
        };
        let wanted: Vec<u64> = old.lines[first..=last].iter().map(|line| line.hash).collect();
        let size: u32 = old.lines[first..=last].iter().map(|line| line.end - line.first).sum();
        if size < 6 {
            return None;
        }
        let same = |structure: &TextStructure<'_>, at: usize| {
            structure.lines[at..].iter().take(wanted.len()).map(|line| line.hash).eq(wanted.iter().copied())
        };
        let news: Vec<usize> = (0..self.new_structure().lines.len())
            .filter(|&line| !taken[line] && same(self.new_structure(), line))
            .collect();
        let olds = (0..old.lines.len()).filter(|&line| left(line) && same(old, line)).count();
        let &[line] = news.as_slice() else { return None };
        if olds != 1 {
            return None;
        }
        let new = self.new_structure();
        let offset = old.lines[first].first;
        let begins = new.lines[line].first + (indices.first()? - offset);
        let ends = new.lines[line].first + (indices.last()? - offset);
        // There may be a comment between the same statements.
        let text = |structure: &TextStructure<'_>, token: u32| {
            structure.tokens.get(token as usize).map(|token| token.hash)
        };
        if text(new, begins) != text(old, *indices.first()?) || text(new, ends) != text(old, *indices.last()?)
        {
            return None;
        }
        let new_span = new.tokens[begins as usize].start as usize..new.tokens[ends as usize].end as usize;
        let untouched = old.text.get(span.clone()) == new.text.get(new_span.clone());
        let owner = old.owner_of(*indices.first()?);
        Some(self.mapped_span(new_span, untouched, false, 1.0, true, owner))
    }
}

/// Maps an offset in a long literal to its new form, by physical lines, with the share of its line that was kept.
fn map_by_line(old: &str, new: &str, offset: usize) -> Option<(usize, f64)> {
    let head = old.bytes().zip(new.bytes()).take_while(|(x, y)| x == y).count();
    let tail = old.bytes().rev().zip(new.bytes().rev()).take_while(|(x, y)| x == y).count();
    let (was, now): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let line = old.get(..offset)?.matches('\n').count();
    let column = offset - old.get(..offset)?.rfind('\n').map_or(0, |at| at + 1);
    let hashes = |lines: &[&str]| -> Vec<u64> {
        lines.iter().map(|line| super::lex::hash_of(line.trim().as_bytes())).collect()
    };
    let same = super::common_subsequence::common_subsequence(&hashes(&was), &hashes(&now));
    let start_of = |line: usize| now.iter().take(line).map(|line| line.len() + 1).sum::<usize>();
    let place = |partner: usize| {
        let indent = |text: &str| text.len() - text.trim_start().len();
        // The same distance from the first word of the line.
        let column =
            (column + indent(now[partner])).saturating_sub(indent(was[line])).min(now[partner].len());
        let mut at = start_of(partner) + column;
        while !new.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    if let Some((_, partner)) = same.iter().find(|(a, _)| *a == line) {
        return Some((place(*partner), 1.0));
    }
    // An edited line: the most similar line between the nearest equal lines.
    let from = same.iter().rev().find(|(a, _)| *a < line).map_or(0, |(_, b)| b + 1);
    let to = same.iter().find(|(a, _)| *a > line).map_or(now.len(), |(_, b)| *b);
    let wanted = words(was[line]);
    let best = (from..to.min(from + 200))
        .map(|partner| (dice(&wanted, &words(now[partner])), partner))
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    if best.0 < 0.5 {
        return None;
    }
    if offset <= head && head >= 3 && line == 0 {
        return Some((offset, best.0));
    }
    if old.len() - offset <= tail && line + 1 == was.len() {
        return Some((new.len() - (old.len() - offset), best.0));
    }
    Some((place(best.1), best.0))
}

/// The words of a text, sorted.
fn words(text: &str) -> Vec<u64> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let mut words: Vec<u64> = words.map(|word| super::lex::hash_of(word.as_bytes())).collect();
    words.sort_unstable();
    words
}
