//! Which line of a new definition is which of the old one, and which token in it.
//!
//! Lines are logical: a statement, or its head. First those that are the same, in order; then, between these, those that
//! are alike; then those that went elsewhere in the same definition.

use std::collections::BTreeMap;

use super::common::common;
use super::lex::TokenKind;
use super::shape::dice;
use super::side::Side;

/// The most lines on either side of a gap in which every line is compared with every other.
const MAX_GAP: usize = 120;
/// The most tokens that are compared in a gap.
const MAX_WORK: usize = 4_000_000;
/// Lines that have less in common than this are different lines.
const ALIKE: f64 = 0.5;

/// How a line was found again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kept {
    /// The same tokens, in order with what is around it.
    Same,
    /// The same tokens, elsewhere in the definition.
    Moved,
    /// Tokens that are alike, by this much.
    Edited(f64),
}

/// The alignment of the own lines of a pair of definitions.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    /// Old line to new line.
    pub(super) lines: BTreeMap<u32, (u32, Kept)>,
}

/// Aligns `olds` with `news`, which are lines in order. `pinned` belong together whatever they say.
pub(super) fn align(
    old: &Side<'_>,
    new: &Side<'_>,
    olds: &[u32],
    news: &[u32],
    pinned: Option<(u32, u32)>,
) -> Alignment {
    let mut alignment = Alignment::default();
    let hash = |side: &Side<'_>, line: u32| side.lines[line as usize].hash;
    if let Some((a, b)) = pinned {
        let at = |lines: &[u32], line: u32| lines.iter().position(|&other| other == line);
        if let (Some(x), Some(y)) = (at(olds, a), at(news, b)) {
            stretch(old, new, &olds[..x], &news[..y], &mut alignment);
            let kept = if hash(old, a) == hash(new, b) { Kept::Same } else { Kept::Edited(1.0) };
            alignment.lines.insert(a, (b, kept));
            stretch(old, new, &olds[x + 1..], &news[y + 1..], &mut alignment);
        }
    } else {
        stretch(old, new, olds, news, &mut alignment);
    }
    moved(old, new, olds, news, &mut alignment);
    alignment
}

fn stretch(old: &Side<'_>, new: &Side<'_>, olds: &[u32], news: &[u32], alignment: &mut Alignment) {
    let hash = |side: &Side<'_>, line: u32| side.lines[line as usize].hash;
    // Lines that only one side has cannot be matched and would only slow the search down.
    let in_both = |mine: &Side<'_>, lines: &[u32], other: &Side<'_>, others: &[u32]| -> Vec<u32> {
        let known: std::collections::BTreeSet<u64> = others.iter().map(|&line| hash(other, line)).collect();
        lines.iter().copied().filter(|&line| known.contains(&hash(mine, line))).collect()
    };
    let (a, b) = (in_both(old, olds, new, news), in_both(new, news, old, olds));
    let hashes =
        |side: &Side<'_>, lines: &[u32]| lines.iter().map(|&line| hash(side, line)).collect::<Vec<_>>();
    let found = common(&hashes(old, &a), &hashes(new, &b));
    let matched: Vec<(u32, u32)> = found.into_iter().map(|(x, y)| (a[x], b[y])).collect();
    let (mut x, mut y) = (0, 0);
    for &(line, partner) in &matched {
        let (next_x, next_y) = (after(olds, line), after(news, partner));
        gap(old, new, &olds[x..next_x - 1], &news[y..next_y - 1], alignment);
        alignment.lines.insert(line, (partner, Kept::Same));
        (x, y) = (next_x, next_y);
    }
    gap(old, new, &olds[x..], &news[y..], alignment);
}

fn after(lines: &[u32], line: u32) -> usize {
    lines.partition_point(|&other| other <= line)
}

/// Lines between two that are the same: the pairing in order that has most in common.
fn gap(old: &Side<'_>, new: &Side<'_>, olds: &[u32], news: &[u32], alignment: &mut Alignment) {
    if olds.is_empty() || news.is_empty() || olds.len() > MAX_GAP || news.len() > MAX_GAP {
        return;
    }
    let sorted =
        |side: &Side<'_>, lines: &[u32]| lines.iter().map(|&line| tokens(side, line)).collect::<Vec<_>>();
    let (a, b) = (sorted(old, olds), sorted(new, news));
    let size = |lists: &[(u64, Vec<u64>)]| lists.iter().map(|(_, tokens)| tokens.len()).sum::<usize>();
    if size(&a) * b.len() + size(&b) * a.len() > MAX_WORK {
        return;
    }
    let width = news.len() + 1;
    let likeness: Vec<f64> = a
        .iter()
        .flat_map(|x| b.iter().map(move |y| (x, y)))
        .map(|(x, y)| {
            // The first word says what kind of statement it is.
            let first = if x.0 == y.0 { 0.1 } else { 0.0 };
            // There is one docstring at most, whatever it says.
            if x.0 == 1 && y.0 == 1 { 1.0 } else { 0.9 * dice(&x.1, &y.1) + first }
        })
        .collect();
    let mut best = vec![0.0_f64; (olds.len() + 1) * width];
    for i in (0..olds.len()).rev() {
        for j in (0..news.len()).rev() {
            let alike = likeness[i * news.len() + j];
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let take = if alike >= ALIKE { alike + best[(i + 1) * width + j + 1] } else { 0.0 };
            best[i * width + j] = skip.max(take);
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < olds.len() && j < news.len() {
        let alike = likeness[i * news.len() + j];
        let here = best[i * width + j];
        if alike >= ALIKE && (alike + best[(i + 1) * width + j + 1] - here).abs() < 1e-12 {
            alignment.lines.insert(olds[i], (news[j], Kept::Edited(alike)));
            (i, j) = (i + 1, j + 1);
        } else if (best[(i + 1) * width + j] - here).abs() < 1e-12 {
            i += 1;
        } else {
            j += 1;
        }
    }
}

/// The first token of a line, and all of them sorted, comments left out unless there is nothing else.
fn tokens(side: &Side<'_>, line: u32) -> (u64, Vec<u64>) {
    let line = side.lines[line as usize];
    let all = &side.tokens[line.first as usize..line.end as usize];
    let mut hashes: Vec<u64> =
        all.iter().filter(|token| token.kind != TokenKind::Comment).map(|token| token.hash).collect();
    let is_docstring = line.end == line.first + 1 && all[0].kind == TokenKind::Text;
    if hashes.is_empty() || is_docstring {
        // A comment or a docstring is as much like another as their words are.
        let text = side.token(line.first);
        hashes = text.split_whitespace().map(|word| super::lex::hash_of(word.as_bytes())).collect();
    }
    let first = if is_docstring { 1 } else { hashes.first().copied().unwrap_or_default() };
    hashes.sort_unstable();
    (first, hashes)
}

/// Lines that stand on each side once and found no partner in order.
fn moved(old: &Side<'_>, new: &Side<'_>, olds: &[u32], news: &[u32], alignment: &mut Alignment) {
    let taken: std::collections::BTreeSet<u32> = alignment.lines.values().map(|(line, _)| *line).collect();
    let once = |side: &Side<'_>, lines: &[u32]| {
        let mut found: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for &line in lines {
            found.entry(side.lines[line as usize].hash).or_default().push(line);
        }
        found
    };
    let (a, b) = (once(old, olds), once(new, news));
    for (hash, lines) in a {
        if let ([line], Some([partner])) = (lines.as_slice(), b.get(&hash).map(Vec::as_slice))
            && !alignment.lines.contains_key(line)
            && !taken.contains(partner)
            && old.lines[*line as usize].end - old.lines[*line as usize].first >= 3
        {
            alignment.lines.insert(*line, (*partner, Kept::Moved));
        }
    }
}

/// Which token of a new line is which of the old one: the same ones in order, and single ones that were replaced. The flag
/// says whether it is the same.
pub(super) fn align_tokens(
    old: &Side<'_>,
    new: &Side<'_>,
    old_line: u32,
    new_line: u32,
) -> BTreeMap<u32, (u32, bool)> {
    let (a, b) = (old.lines[old_line as usize], new.lines[new_line as usize]);
    let hashes = |side: &Side<'_>, first: u32, end: u32| -> Vec<u64> {
        side.tokens[first as usize..end as usize].iter().map(|token| token.hash).collect()
    };
    let small = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let mut found = BTreeMap::new();
    let (mut x, mut y) = (0, 0);
    let mut same = common(&hashes(old, a.first, a.end), &hashes(new, b.first, b.end));
    same.push(((a.end - a.first) as usize, (b.end - b.first) as usize));
    for (i, j) in same {
        // As many tokens replaced as there were: one for one.
        if i - x == j - y {
            let pairs = (x..i).zip(y..j).map(|(x, y)| (a.first + small(x), b.first + small(y)));
            let alike = pairs.filter(|(x, y)| old.tokens[*x as usize].kind == new.tokens[*y as usize].kind);
            found.extend(alike.map(|(x, y)| (x, (y, false))));
        }
        if a.first + small(i) < a.end {
            found.insert(a.first + small(i), (b.first + small(j), true));
        }
        (x, y) = (i + 1, j + 1);
    }
    found
}

/// Whether a line that was found again could just as well be another: as many lines like it then as now, or the same lines
/// before and after it.
pub(super) fn is_unmistakable(
    old: &Side<'_>,
    new: &Side<'_>,
    olds: &[u32],
    news: &[u32],
    alignment: &Alignment,
    line: u32,
) -> bool {
    let Some(&(partner, Kept::Same)) = alignment.lines.get(&line) else { return false };
    let hash = old.lines[line as usize].hash;
    let count = |side: &Side<'_>, lines: &[u32]| {
        lines.iter().filter(|&&line| side.lines[line as usize].hash == hash).count()
    };
    if count(old, olds) == count(new, news) {
        return true;
    }
    let (x, y) = (after(olds, line), after(news, partner));
    let agrees = |a: Option<&u32>, b: Option<&u32>| match (a, b) {
        (Some(a), Some(b)) => alignment.lines.get(a) == Some(&(*b, Kept::Same)),
        (None, None) => true,
        _ => false,
    };
    agrees(olds.get(x.wrapping_sub(2)), news.get(y.wrapping_sub(2))) && agrees(olds.get(x), news.get(y))
}
