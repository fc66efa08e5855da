//! Merges three ways with git's algorithm. Conflicts are returned as hunks.

use git2::MergeFileInput;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::digest::Digest;

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// One text with both sides' changes.
    Clean(Vec<u8>),
    /// The hunks in which both sides changed the same lines, in order; at least one.
    Conflicts(Vec<MergeConflict>),
}

/// Lines that both sides changed in different ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    /// The lines in the common base.
    pub base: HunkSide,
    /// The lines in the workspace.
    pub ours: HunkSide,
    /// The lines in the edit's result.
    pub theirs: HunkSide,
}

/// Lines of one of the three texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkSide {
    /// The number of the first line, 1-based. Without lines, the number of the line before which they would be.
    pub first: usize,
    /// The number of lines.
    pub count: usize,
    /// The bytes of the lines, including line ends.
    pub text: Vec<u8>,
}

/// Merges the changes from `base` to `ours` and from `base` to `theirs`.
///
/// # Errors
/// libgit2's error message: a text is larger than it reads.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Merged, String> {
    // `merge_file` is the only function of git2 that does not initialize libgit2, and it fails without that. Creating a
    // `Buf` does it.
    drop(git2::Buf::new());
    // A marker line is prepended to all three, because git2 makes an invalid slice of an empty text.
    let marker = Digest::of_fields([base, ours, theirs]).to_hex() + "\n";
    let marked = [base, ours, theirs].map(|text| [marker.as_bytes(), text].concat());
    let [old, one, other] = marked.each_ref().map(|text| {
        let mut input = MergeFileInput::new();
        input.content(text);
        input
    });
    let merged = git2::merge_file(&old, &one, &other, None);
    let merged = merged.map_err(|error| error.message().to_owned())?;
    if merged.is_automergeable() {
        let content = merged.content().strip_prefix(marker.as_bytes());
        return content
            .map(|content| Merged::Clean(content.to_vec()))
            .ok_or("the merge result lacks the marker line".to_owned());
    }
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let mut found = conflicts(&base, &ours, &theirs);
    if found.is_empty() {
        // git found a conflict that this comparison did not find, so the whole texts are reported.
        let whole = |lines: &[&[u8]]| hunk_side(lines, 0, lines.len());
        found.push(MergeConflict { base: whole(&base), ours: whole(&ours), theirs: whole(&theirs) });
    }
    Ok(Merged::Conflicts(found))
}

/// The lines of a text as git counts them: only `\n` ends a line.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn hunk_side(lines: &[&[u8]], first: usize, end: usize) -> HunkSide {
    HunkSide { first: first + 1, count: end - first, text: lines[first..end].concat() }
}

/// For each line of `base` its index in `other`, if it is there; then the length of `other`.
fn line_indexes(base: &[&[u8]], other: &[&[u8]]) -> Vec<Option<usize>> {
    let mut indexes = vec![None; base.len()];
    for op in capture_diff_slices(Algorithm::Myers, base, other) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            for step in 0..len {
                indexes[old_index + step] = Some(new_index + step);
            }
        }
    }
    indexes.push(Some(other.len()));
    indexes
}

/// The spans between lines common to all three texts in which both sides made different changes.
fn conflicts(base: &[&[u8]], ours: &[&[u8]], theirs: &[&[u8]]) -> Vec<MergeConflict> {
    let (in_ours, in_theirs) = (line_indexes(base, ours), line_indexes(base, theirs));
    let mut found = Vec::new();
    let (mut at_base, mut at_ours, mut at_theirs) = (0, 0, 0);
    for (line, pair) in in_ours.iter().zip(&in_theirs).enumerate() {
        let (Some(our_line), Some(their_line)) = (*pair.0, *pair.1) else { continue };
        let before = &base[at_base..line];
        let (our_lines, their_lines) = (&ours[at_ours..our_line], &theirs[at_theirs..their_line]);
        if our_lines != before && their_lines != before && our_lines != their_lines {
            found.push(MergeConflict {
                base: hunk_side(base, at_base, line),
                ours: hunk_side(ours, at_ours, our_line),
                theirs: hunk_side(theirs, at_theirs, their_line),
            });
        }
        (at_base, at_ours, at_theirs) = (line + 1, our_line + 1, their_line + 1);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hunk(hunk_side: &HunkSide) -> (usize, usize, &str) {
        (hunk_side.first, hunk_side.count, std::str::from_utf8(&hunk_side.text).unwrap())
    }

    #[test]
    fn changes_of_both_sides_are_merged() {
        let base = b"a\nb\nc\nd\ne\n";
        let merged = merge(base, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\nf").unwrap();
        assert_eq!(merged, Merged::Clean(b"A\nb\nc\nd\nE\nf".to_vec()));
    }

    #[test]
    fn a_conflict_has_the_lines_of_all_sides() {
        let Merged::Conflicts(found) = merge(b"a\nb\nc\n", b"x\na\nB\nc\n", b"a\nbb\nbbb\nc\n").unwrap()
        else {
            panic!("no conflict");
        };
        let [conflict] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(hunk(&conflict.base), (2, 1, "b\n"));
        assert_eq!(hunk(&conflict.ours), (3, 1, "B\n"));
        assert_eq!(hunk(&conflict.theirs), (2, 2, "bb\nbbb\n"));
    }

    #[test]
    fn line_ends_are_merged_as_bytes() {
        let merged = merge(b"a\r\nb\r\nc\r\nd\r\n", b"A\r\nb\r\nc\r\nd\r\n", b"a\r\nb\r\nc\r\nd").unwrap();
        assert_eq!(merged, Merged::Clean(b"A\r\nb\r\nc\r\nd".to_vec()));
    }

    #[test]
    fn binary_files_are_one_conflict() {
        let Merged::Conflicts(found) = merge(b"a\0", b"b\0", b"c\0").unwrap() else { panic!("no conflict") };
        assert_eq!(found.len(), 1);
        assert_eq!(merge(b"a\n", b"", b"a\n"), Ok(Merged::Clean(Vec::new())));
    }

    /// The result of `git merge-file`; `None` for a conflict.
    fn merge_by_git(texts: [&[u8]; 3]) -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let [base, ours, theirs] = ["base", "ours", "theirs"].map(|name| folder.path().join(name));
        for (path, text) in [&base, &ours, &theirs].into_iter().zip(texts) {
            std::fs::write(path, text).unwrap();
        }
        let mut command = std::process::Command::new("git");
        let out = command.args(["merge-file", "-p"]).args([ours, base, theirs]).output().unwrap();
        out.status.success().then_some(out.stdout)
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec("[abcd]\n", 0..12).prop_map(|lines| lines.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn an_unchanged_side_yields_to_the_other(base in text(), other in text()) {
            prop_assert_eq!(merge(&base, &base, &other), Ok(Merged::Clean(other.clone())));
            prop_assert_eq!(merge(&base, &other, &base), Ok(Merged::Clean(other.clone())));
            prop_assert_eq!(merge(&base, &other, &other), Ok(Merged::Clean(other)));
        }

        #[test]
        fn the_result_equals_git_merge_file(base in text(), ours in text(), theirs in text()) {
            let clean = merge_by_git([&base, &ours, &theirs]);
            match merge(&base, &ours, &theirs).unwrap() {
                Merged::Clean(text) => prop_assert_eq!(Some(text), clean),
                Merged::Conflicts(_) => prop_assert_eq!(clean, None),
            }
        }

        #[test]
        fn hunks_have_the_lines_they_name(base in text(), ours in text(), theirs in text()) {
            if let Merged::Conflicts(found) = merge(&base, &ours, &theirs).unwrap() {
                prop_assert!(!found.is_empty());
                for conflict in found {
                    let HunkSide { first, count, text } = conflict.ours;
                    prop_assert_eq!(lines(&ours)[first - 1..first - 1 + count].concat(), text);
                }
            }
        }
    }
}
