//! Merging three ways with git's own algorithm; what it cannot merge comes back as hunks.

use git2::MergeFileInput;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::digest::Digest;

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// One text with both sides' changes.
    Clean(Vec<u8>),
    /// Both sides changed the same lines; in order, at least one.
    Conflicts(Vec<ConflictHunk>),
}

/// Lines that both sides changed, each in its own way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictHunk {
    /// The lines as both sides knew them.
    pub base: HunkSide,
    /// The lines as they are in the workspace.
    pub ours: HunkSide,
    /// The lines as the edit wants them.
    pub theirs: HunkSide,
}

/// Lines of one of the three texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkSide {
    /// The number of the first line, from 1; of no lines, the line before which they would be.
    pub first: usize,
    /// How many lines.
    pub count: usize,
    /// The bytes of the lines, with their ends.
    pub text: Vec<u8>,
}

/// Merges what became of `base` in `ours` and in `theirs`.
///
/// # Errors
/// When libgit2 refuses, with its words: a text is larger than it reads.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Merged, String> {
    // `merge_file` alone of git2's functions does not wake libgit2, and fails where nobody did; this does.
    drop(git2::Buf::new());
    // A line of their own keeps all three from being empty, for which git2 would make a slice of nothing.
    let mark = Digest::of_fields([base, ours, theirs]).to_hex() + "\n";
    let marked = [base, ours, theirs].map(|text| [mark.as_bytes(), text].concat());
    let [old, one, other] = marked.each_ref().map(|text| {
        let mut input = MergeFileInput::new();
        input.content(text);
        input
    });
    let merged = git2::merge_file(&old, &one, &other, None);
    let merged = merged.map_err(|error| error.message().to_owned())?;
    if merged.is_automergeable() {
        let content = merged.content().strip_prefix(mark.as_bytes());
        return content.map(|content| Merged::Clean(content.to_vec())).ok_or("git lost a line".to_owned());
    }
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let mut found = conflicts(&base, &ours, &theirs);
    if found.is_empty() {
        // Git saw a conflict where this comparison sees none; then it is somewhere.
        let whole = |lines: &[&[u8]]| side(lines, 0, lines.len());
        found.push(ConflictHunk { base: whole(&base), ours: whole(&ours), theirs: whole(&theirs) });
    }
    Ok(Merged::Conflicts(found))
}

/// The lines of a text as git counts them: `\n` ends one, and nothing else.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn side(lines: &[&[u8]], first: usize, end: usize) -> HunkSide {
    HunkSide { first: first + 1, count: end - first, text: lines[first..end].concat() }
}

/// For each line of `base` where it is in `other`, and at the end the end.
fn places(base: &[&[u8]], other: &[&[u8]]) -> Vec<Option<usize>> {
    let mut places = vec![None; base.len()];
    for op in capture_diff_slices(Algorithm::Myers, base, other) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            for step in 0..len {
                places[old_index + step] = Some(new_index + step);
            }
        }
    }
    places.push(Some(other.len()));
    places
}

/// The stretches between lines that all three have in common, where both sides changed something and not the same.
fn conflicts(base: &[&[u8]], ours: &[&[u8]], theirs: &[&[u8]]) -> Vec<ConflictHunk> {
    let (in_ours, in_theirs) = (places(base, ours), places(base, theirs));
    let mut found = Vec::new();
    let (mut at_base, mut at_ours, mut at_theirs) = (0, 0, 0);
    for (line, pair) in in_ours.iter().zip(&in_theirs).enumerate() {
        let (Some(our_line), Some(their_line)) = (*pair.0, *pair.1) else { continue };
        let before = &base[at_base..line];
        let (we, they) = (&ours[at_ours..our_line], &theirs[at_theirs..their_line]);
        if we != before && they != before && we != they {
            found.push(ConflictHunk {
                base: side(base, at_base, line),
                ours: side(ours, at_ours, our_line),
                theirs: side(theirs, at_theirs, their_line),
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

    fn hunk(side: &HunkSide) -> (usize, usize, &str) {
        (side.first, side.count, std::str::from_utf8(&side.text).unwrap())
    }

    #[test]
    fn both_sides_changes_come_together() {
        let base = b"a\nb\nc\nd\ne\n";
        let merged = merge(base, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\nf").unwrap();
        assert_eq!(merged, Merged::Clean(b"A\nb\nc\nd\nE\nf".to_vec()));
    }

    #[test]
    fn a_conflict_is_told_with_its_lines() {
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
    fn line_ends_are_bytes_like_others() {
        let merged = merge(b"a\r\nb\r\nc\r\nd\r\n", b"A\r\nb\r\nc\r\nd\r\n", b"a\r\nb\r\nc\r\nd").unwrap();
        assert_eq!(merged, Merged::Clean(b"A\r\nb\r\nc\r\nd".to_vec()));
    }

    #[test]
    fn what_is_no_text_is_one_conflict() {
        let Merged::Conflicts(found) = merge(b"a\0", b"b\0", b"c\0").unwrap() else { panic!("no conflict") };
        assert_eq!(found.len(), 1);
        assert_eq!(merge(b"a\n", b"", b"a\n"), Ok(Merged::Clean(Vec::new())));
    }

    /// The program of git is the judge of what git does.
    fn by_program(texts: [&[u8]; 3]) -> Option<Vec<u8>> {
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
        fn a_side_that_changed_nothing_loses(base in text(), other in text()) {
            prop_assert_eq!(merge(&base, &base, &other), Ok(Merged::Clean(other.clone())));
            prop_assert_eq!(merge(&base, &other, &base), Ok(Merged::Clean(other.clone())));
            prop_assert_eq!(merge(&base, &other, &other), Ok(Merged::Clean(other)));
        }

        #[test]
        fn it_merges_what_git_merges(base in text(), ours in text(), theirs in text()) {
            let clean = by_program([&base, &ours, &theirs]);
            match merge(&base, &ours, &theirs).unwrap() {
                Merged::Clean(text) => prop_assert_eq!(Some(text), clean),
                Merged::Conflicts(_) => prop_assert_eq!(clean, None),
            }
        }

        #[test]
        fn hunks_are_what_they_say(base in text(), ours in text(), theirs in text()) {
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
