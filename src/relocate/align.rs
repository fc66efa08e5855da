//! Aligns the lines of an old definition with those of the new one, and the tokens of aligned lines.
//!
//! Lines are logical: a simple statement, or the header of a compound one. First equal lines in order are aligned, then
//! similar lines between these, then equal lines that moved within the definition.

use std::collections::BTreeMap;

use super::common_subsequence::common_subsequence;
use super::lex::TokenKind;
use super::shape::dice;
use super::structure::TextStructure;

/// The most lines on either side of a gap in which all pairs of lines are compared.
const MAX_GAP_LINES: usize = 120;
/// The most token comparisons in a gap.
const MAX_COMPARISONS: usize = 4_000_000;
/// The least similarity of two lines that are aligned.
const MIN_LINE_SIMILARITY: f64 = 0.5;

/// How a line was matched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LineMatch {
    /// The same tokens, in order with the lines around it.
    Same,
    /// The same tokens, at another position in the definition.
    Moved,
    /// Similar tokens, with this similarity.
    Edited(f64),
}

/// The alignment of the lines that belong directly to a pair of definitions.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    /// Old line to new line.
    pub(super) lines: BTreeMap<u32, (u32, LineMatch)>,
}

/// Aligns `olds` with `news`, which are lines in order. The pair `pinned` is aligned whatever its text is.
pub(super) fn align(
    old: &TextStructure<'_>,
    new: &TextStructure<'_>,
    olds: &[u32],
    news: &[u32],
    pinned: Option<(u32, u32)>,
) -> Alignment {
    let mut alignment = Alignment::default();
    let hash = |structure: &TextStructure<'_>, line: u32| structure.lines[line as usize].hash;
    if let Some((a, b)) = pinned {
        let at = |lines: &[u32], line: u32| lines.iter().position(|&other| other == line);
        if let (Some(x), Some(y)) = (at(olds, a), at(news, b)) {
            align_part(old, new, &olds[..x], &news[..y], &mut alignment);
            let kept = if hash(old, a) == hash(new, b) { LineMatch::Same } else { LineMatch::Edited(1.0) };
            alignment.lines.insert(a, (b, kept));
            align_part(old, new, &olds[x + 1..], &news[y + 1..], &mut alignment);
        }
    } else {
        align_part(old, new, olds, news, &mut alignment);
    }
    match_moved(old, new, olds, news, &mut alignment);
    alignment
}

fn align_part(
    old: &TextStructure<'_>,
    new: &TextStructure<'_>,
    olds: &[u32],
    news: &[u32],
    alignment: &mut Alignment,
) {
    let hash = |structure: &TextStructure<'_>, line: u32| structure.lines[line as usize].hash;
    // Lines that only one side has cannot be matched and would only slow the search down.
    let in_both =
        |mine: &TextStructure<'_>, lines: &[u32], other: &TextStructure<'_>, others: &[u32]| -> Vec<u32> {
            let known: std::collections::BTreeSet<u64> =
                others.iter().map(|&line| hash(other, line)).collect();
            lines.iter().copied().filter(|&line| known.contains(&hash(mine, line))).collect()
        };
    let (a, b) = (in_both(old, olds, new, news), in_both(new, news, old, olds));
    let hashes = |structure: &TextStructure<'_>, lines: &[u32]| {
        lines.iter().map(|&line| hash(structure, line)).collect::<Vec<_>>()
    };
    let found = common_subsequence(&hashes(old, &a), &hashes(new, &b));
    let matched: Vec<(u32, u32)> = found.into_iter().map(|(x, y)| (a[x], b[y])).collect();
    let (mut x, mut y) = (0, 0);
    for &(line, partner) in &matched {
        let (next_x, next_y) = (after(olds, line), after(news, partner));
        align_gap(old, new, &olds[x..next_x - 1], &news[y..next_y - 1], alignment);
        alignment.lines.insert(line, (partner, LineMatch::Same));
        (x, y) = (next_x, next_y);
    }
    align_gap(old, new, &olds[x..], &news[y..], alignment);
}

fn after(lines: &[u32], line: u32) -> usize {
    lines.partition_point(|&other| other <= line)
}

/// Aligns the lines between two equal ones: the in-order pairing with the greatest similarity.
fn align_gap(
    old: &TextStructure<'_>,
    new: &TextStructure<'_>,
    olds: &[u32],
    news: &[u32],
    alignment: &mut Alignment,
) {
    if olds.is_empty() || news.is_empty() || olds.len() > MAX_GAP_LINES || news.len() > MAX_GAP_LINES {
        return;
    }
    let sorted = |structure: &TextStructure<'_>, lines: &[u32]| {
        lines.iter().map(|&line| tokens(structure, line)).collect::<Vec<_>>()
    };
    let (a, b) = (sorted(old, olds), sorted(new, news));
    let size = |lists: &[(u64, Vec<u64>)]| lists.iter().map(|(_, tokens)| tokens.len()).sum::<usize>();
    if size(&a) * b.len() + size(&b) * a.len() > MAX_COMPARISONS {
        return;
    }
    let width = news.len() + 1;
    let similarity: Vec<f64> = a
        .iter()
        .flat_map(|x| b.iter().map(move |y| (x, y)))
        .map(|(x, y)| {
            // The first token shows the kind of statement.
            let first = if x.0 == y.0 { 0.1 } else { 0.0 };
            // A body has at most one docstring, so two docstrings match whatever their text is.
            if x.0 == 1 && y.0 == 1 { 1.0 } else { 0.9 * dice(&x.1, &y.1) + first }
        })
        .collect();
    let mut best = vec![0.0_f64; (olds.len() + 1) * width];
    for i in (0..olds.len()).rev() {
        for j in (0..news.len()).rev() {
            let alike = similarity[i * news.len() + j];
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let take = if alike >= MIN_LINE_SIMILARITY { alike + best[(i + 1) * width + j + 1] } else { 0.0 };
            best[i * width + j] = skip.max(take);
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < olds.len() && j < news.len() {
        let alike = similarity[i * news.len() + j];
        let here = best[i * width + j];
        if alike >= MIN_LINE_SIMILARITY && (alike + best[(i + 1) * width + j + 1] - here).abs() < 1e-12 {
            alignment.lines.insert(olds[i], (news[j], LineMatch::Edited(alike)));
            (i, j) = (i + 1, j + 1);
        } else if (best[(i + 1) * width + j] - here).abs() < 1e-12 {
            i += 1;
        } else {
            j += 1;
        }
    }
}

/// The first token of a line and all of its tokens, sorted. Comments are left out unless the line has nothing else.
fn tokens(structure: &TextStructure<'_>, line: u32) -> (u64, Vec<u64>) {
    let line = structure.lines[line as usize];
    let all = &structure.tokens[line.first as usize..line.end as usize];
    let mut hashes: Vec<u64> =
        all.iter().filter(|token| token.kind != TokenKind::Comment).map(|token| token.hash).collect();
    let is_docstring = line.end == line.first + 1 && all[0].kind == TokenKind::String;
    if hashes.is_empty() || is_docstring {
        // Comments and docstrings are compared by their words.
        let text = structure.token(line.first);
        hashes = text.split_whitespace().map(|word| super::lex::hash_of(word.as_bytes())).collect();
    }
    let first = if is_docstring { 1 } else { hashes.first().copied().unwrap_or_default() };
    hashes.sort_unstable();
    (first, hashes)
}

/// Matches lines that occur once on each side and have no partner in order.
fn match_moved(
    old: &TextStructure<'_>,
    new: &TextStructure<'_>,
    olds: &[u32],
    news: &[u32],
    alignment: &mut Alignment,
) {
    let taken: std::collections::BTreeSet<u32> = alignment.lines.values().map(|(line, _)| *line).collect();
    let once = |structure: &TextStructure<'_>, lines: &[u32]| {
        let mut found: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for &line in lines {
            found.entry(structure.lines[line as usize].hash).or_default().push(line);
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
            alignment.lines.insert(*line, (*partner, LineMatch::Moved));
        }
    }
}

/// Aligns the tokens of two lines: equal tokens in order, and tokens that were replaced one for one. The flag is `true` for
/// equal tokens.
pub(super) fn align_tokens(
    old: &TextStructure<'_>,
    new: &TextStructure<'_>,
    old_line: u32,
    new_line: u32,
) -> BTreeMap<u32, (u32, bool)> {
    let (a, b) = (old.lines[old_line as usize], new.lines[new_line as usize]);
    let hashes = |structure: &TextStructure<'_>, first: u32, end: u32| -> Vec<u64> {
        structure.tokens[first as usize..end as usize].iter().map(|token| token.hash).collect()
    };
    let to_u32 = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let mut found = BTreeMap::new();
    let (mut x, mut y) = (0, 0);
    let mut same = common_subsequence(&hashes(old, a.first, a.end), &hashes(new, b.first, b.end));
    same.push(((a.end - a.first) as usize, (b.end - b.first) as usize));
    for (i, j) in same {
        // As many new tokens as old ones: they were replaced one for one.
        if i - x == j - y {
            let pairs = (x..i).zip(y..j).map(|(x, y)| (a.first + to_u32(x), b.first + to_u32(y)));
            let alike = pairs.filter(|(x, y)| old.tokens[*x as usize].kind == new.tokens[*y as usize].kind);
            found.extend(alike.map(|(x, y)| (x, (y, false))));
        }
        if a.first + to_u32(i) < a.end {
            found.insert(a.first + to_u32(i), (b.first + to_u32(j), true));
        }
        (x, y) = (i + 1, j + 1);
    }
    found
}

/// Whether the match of a line is the only possible one: there are as many equal lines as before, or the neighboring lines
/// are the same.
pub(super) fn is_unambiguous(
    old: &TextStructure<'_>,
    new: &TextStructure<'_>,
    olds: &[u32],
    news: &[u32],
    alignment: &Alignment,
    line: u32,
) -> bool {
    let Some(&(partner, LineMatch::Same)) = alignment.lines.get(&line) else { return false };
    let hash = old.lines[line as usize].hash;
    let count = |structure: &TextStructure<'_>, lines: &[u32]| {
        lines.iter().filter(|&&line| structure.lines[line as usize].hash == hash).count()
    };
    if count(old, olds) == count(new, news) {
        return true;
    }
    let (x, y) = (after(olds, line), after(news, partner));
    let agrees = |a: Option<&u32>, b: Option<&u32>| match (a, b) {
        (Some(a), Some(b)) => alignment.lines.get(a) == Some(&(*b, LineMatch::Same)),
        (None, None) => true,
        _ => false,
    };
    agrees(olds.get(x.wrapping_sub(2)), news.get(y.wrapping_sub(2))) && agrees(olds.get(x), news.get(y))
}
