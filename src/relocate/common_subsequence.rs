//! A long common subsequence of two lists, in bounded time.
//!
//! First the common prefix and suffix, then the items that occur exactly once in each list (patience diff), then Myers'
//! algorithm between these if it is cheap. Otherwise nothing is matched: two long lists without a common unique item have
//! little evidence in common.

use std::collections::BTreeMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The most comparisons for Myers' algorithm, in a part without unique items.
const MAX_COMPARISONS: usize = 4_000_000;
/// The recursion limit of the search for unique items between unique items.
const MAX_DEPTH: usize = 24;

/// The pairs of indices of a common subsequence, ascending in both.
pub(super) fn common_subsequence(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    search(a, b, (0, 0), 0, &mut found);
    found
}

fn search(a: &[u64], b: &[u64], at: (usize, usize), depth: usize, found: &mut Vec<(usize, usize)>) {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    found.extend((0..head).map(|i| (at.0 + i, at.1 + i)));
    let (a, b, at) = (&a[head..], &b[head..], (at.0 + head, at.1 + head));
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (inner_a, inner_b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    between(inner_a, inner_b, at, depth, found);
    found.extend((0..tail).map(|i| (at.0 + inner_a.len() + i, at.1 + inner_b.len() + i)));
}

fn between(a: &[u64], b: &[u64], at: (usize, usize), depth: usize, found: &mut Vec<(usize, usize)>) {
    if a.is_empty() || b.is_empty() {
        return;
    }
    let anchors = if depth < MAX_DEPTH { anchors(a, b) } else { Vec::new() };
    if anchors.is_empty() {
        if a.len().saturating_mul(b.len()) <= MAX_COMPARISONS {
            for op in capture_diff_slices(Algorithm::Myers, a, b) {
                if let DiffOp::Equal { old_index, new_index, len } = op {
                    found.extend((0..len).map(|i| (at.0 + old_index + i, at.1 + new_index + i)));
                }
            }
        }
        return;
    }
    let (mut x, mut y) = (0, 0);
    for (i, j) in anchors {
        search(&a[x..i], &b[y..j], (at.0 + x, at.1 + y), depth + 1, found);
        found.push((at.0 + i, at.1 + j));
        (x, y) = (i + 1, j + 1);
    }
    search(&a[x..], &b[y..], (at.0 + x, at.1 + y), depth + 1, found);
}

/// The items that occur once in each list: their longest subsequence that has the same order in both.
fn anchors(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let once = |list: &[u64]| {
        let mut places: BTreeMap<u64, Option<usize>> = BTreeMap::new();
        for (index, value) in list.iter().enumerate() {
            places.entry(*value).and_modify(|place| *place = None).or_insert(Some(index));
        }
        places
    };
    let others = once(b);
    let mut pairs: Vec<(usize, usize)> =
        once(a).into_iter().filter_map(|(value, place)| Some((place?, (*others.get(&value)?)?))).collect();
    pairs.sort_unstable();
    // The longest increasing subsequence: `ends[n]` is the pair that ends the best run of n + 1 pairs.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < pair.1);
        before.push(length.checked_sub(1).map(|length| ends[length]));
        if length == ends.len() { ends.push(index) } else { ends[length] = index }
    }
    let mut run: Vec<(usize, usize)> = std::iter::successors(ends.last().copied(), |&index| before[index])
        .map(|index| pairs[index])
        .collect();
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insertions_deletions_and_repetitions() {
        assert_eq!(common_subsequence(&[1, 2, 3], &[1, 9, 2, 3]), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(common_subsequence(&[1, 1, 2, 1], &[1, 2, 1]).len(), 3);
        assert_eq!(common_subsequence(&[], &[1]), []);
    }

    proptest::proptest! {
        #[test]
        fn the_result_is_a_common_subsequence(a: Vec<u8>, b: Vec<u8>) {
            let list = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(byte % 7)).collect::<Vec<_>>();
            let (a, b) = (list(&a), list(&b));
            let found = common_subsequence(&a, &b);
            proptest::prop_assert!(found.iter().all(|&(x, y)| a[x] == b[y]));
            proptest::prop_assert!(found.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            if a == b {
                proptest::prop_assert_eq!(found.len(), a.len());
            }
        }
    }
}
