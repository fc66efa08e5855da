//! Relocation by simpler methods, for comparison.

use std::collections::BTreeMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::answers::Answer;
use crate::cases::{Case, Tree};

fn at(path: &str, offset: Option<usize>) -> Answer {
    Answer {
        place: offset.map(|offset| (path.to_owned(), offset)),
        ambiguous: false,
        certified: true,
        told: String::new(),
    }
}

fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    (before.matches('\n').count(), offset - before.rfind('\n').map_or(0, |at| at + 1))
}

fn offset_of(text: &str, line: usize, column: usize) -> Option<usize> {
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let length = text.split('\n').nth(line)?.len();
    Some(start + column.min(length))
}

/// The same line and column.
pub(crate) fn raw(new: &Tree, case: &Case) -> Answer {
    let (line, column) = case.line_column;
    at(&case.path, new.text(&case.path).and_then(|text| offset_of(text, line, column)))
}

/// The line to which a diff of the file maps the target's line.
pub(crate) fn diff(old: &Tree, new: &Tree, case: &Case) -> Answer {
    let (Some(before), Some(now)) = (case.old.as_deref().or(old.text(&case.path)), new.text(&case.path))
    else {
        return at(&case.path, None);
    };
    let (line, column) = line_column(before, case.span.start);
    let lines = |text: &str| {
        text.split('\n').map(|line| lanser::internal::digest::Digest::of(line.as_bytes())).collect::<Vec<_>>()
    };
    let (a, b) = (lines(before), lines(now));
    let mut found = None;
    for op in capture_diff_slices(Algorithm::Patience, &a, &b) {
        match op {
            DiffOp::Equal { old_index, new_index, len } if (old_index..old_index + len).contains(&line) => {
                found = Some(new_index + line - old_index);
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len }
                if (old_index..old_index + old_len).contains(&line) && line - old_index < new_len =>
            {
                found = Some(new_index + line - old_index);
            }
            _ => {}
        }
    }
    at(&case.path, found.and_then(|line| offset_of(now, line, column)))
}

/// The line of the file, or else of the project, that shares most words with the target's line.
pub(crate) fn fuzzy(new: &Tree, case: &Case) -> Answer {
    let words = |line: &str| {
        let mut words = BTreeMap::new();
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
            *words.entry(word.to_owned()).or_insert(0_usize) += 1;
        }
        words
    };
    let wanted = words(&case.line);
    let likeness = |line: &str| {
        if line.trim() == case.line.trim() {
            return 2.0;
        }
        let other = words(line);
        let shared: usize =
            wanted.iter().map(|(word, count)| (*count).min(other.get(word).copied().unwrap_or(0))).sum();
        let all = wanted.values().sum::<usize>() + other.values().sum::<usize>();
        if all == 0 { 0.0 } else { 2.0 * shared as f64 / all as f64 }
    };
    let best = |text: &str| {
        let mut best = (0.0, 0);
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let score = likeness(line);
            if score > best.0 {
                best = (score, offset);
            }
            offset += line.len();
        }
        best
    };
    if let Some(text) = new.text(&case.path) {
        let (score, offset) = best(text);
        if score >= 0.75 {
            return at(&case.path, Some(offset));
        }
    }
    let mut found = (0.75, String::new(), 0);
    for (path, document) in &new.files {
        let (score, offset) = best(&document.text);
        if score > found.0 {
            found = (score, path.clone(), offset);
        }
    }
    at(&found.1, (found.0 > 0.75).then_some(found.2))
}
