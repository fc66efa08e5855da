//! Parses unified diffs: git's format with its extended headers, and the plain format of `diff -u`.
//!
//! Text between the files (mail headers, statistics) is skipped, as in git and patch. Diffs that people and models write by hand
//! often have wrong numbers in the headers of their hunks, or none (`@@`, `@@ def f():`): then the lines up to the next header
//! count, and [`Hunk::is_recounted`] says so. Binary patches are rejected.

use crate::edit::quote::unquote;

/// Why a diff cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the diff: {reason}")]
pub struct PatchError {
    /// The 1-based line of the diff.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

/// The part of a diff that changes one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The operation on the file.
    pub operation: PatchOperation,
    /// The old name of the file, without `a/`; for a created file the new name.
    pub old: String,
    /// The new name of the file, without `b/`; for a deleted file the old name.
    pub new: String,
    /// Whether the file becomes executable; `None` if the diff has no mode.
    pub executable: Option<bool>,
    /// The 1-based line of the diff where this part starts.
    pub line: usize,
    /// The changes of its lines.
    pub hunks: Vec<Hunk>,
}

/// The operation of a diff on a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchOperation {
    /// The content changes.
    Modify,
    /// The file is created.
    Create,
    /// The file is deleted.
    Delete,
    /// The file is renamed.
    Rename,
    /// The file is copied to another name.
    Copy,
}

/// A range of lines before and after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The 1-based line of the diff where the hunk starts.
    pub line: usize,
    /// The 1-based first line of the old range; for an empty range the line before it. `None` if the header does not say.
    pub old_start: Option<usize>,
    /// Whether the header has no or wrong numbers.
    pub is_recounted: bool,
    /// The lines.
    pub lines: Vec<HunkLine>,
}

/// A line of a hunk with its line end, which the last line of a file may lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    /// An unchanged line.
    Context(Vec<u8>),
    /// A removed line.
    Removed(Vec<u8>),
    /// An added line.
    Added(Vec<u8>),
}

impl HunkLine {
    /// The line, without the sign before it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Context(line) | Self::Removed(line) | Self::Added(line) => line,
        }
    }
}

impl Hunk {
    /// The lines of the old range.
    pub fn before(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(line) | HunkLine::Removed(line) => Some(line.as_slice()),
            HunkLine::Added(_) => None,
        })
    }

    /// The lines of the new range.
    pub fn after(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(line) | HunkLine::Added(line) => Some(line.as_slice()),
            HunkLine::Removed(_) => None,
        })
    }
}

/// Parses a diff.
///
/// # Errors
/// See [`PatchError`].
pub fn parse(diff: &[u8]) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = DiffReader { lines: diff.split_inclusive(|&byte| byte == b'\n').collect(), at: 0 };
    let mut files = Vec::new();
    while let Some(line) = reader.peek() {
        if line.starts_with(b"diff --git ") {
            files.push(read_git_file(&mut reader)?);
        } else if line.starts_with(b"--- ")
            && reader.peek_second().is_some_and(|next| next.starts_with(b"+++ "))
        {
            files.push(read_plain_file(&mut reader)?);
        } else if line.starts_with(b"@@") {
            return Err(reader.error("a hunk has no file header before it"));
        } else {
            reader.at += 1;
        }
    }
    if files.is_empty() {
        let reason = match diff.trim_ascii().is_empty() {
            true => "it is empty",
            false => "not a unified diff: there is no `---` and `+++` header",
        };
        return Err(PatchError { line: 1, reason: reason.to_owned() });
    }
    Ok(files)
}

struct DiffReader<'d> {
    lines: Vec<&'d [u8]>,
    at: usize,
}

impl<'d> DiffReader<'d> {
    /// The next line, without its line end.
    fn peek(&self) -> Option<&'d [u8]> {
        self.lines.get(self.at).map(|line| trim_line_end(line))
    }

    fn peek_second(&self) -> Option<&'d [u8]> {
        self.lines.get(self.at + 1).map(|line| trim_line_end(line))
    }

    /// Whether the part of another file begins here.
    fn is_file_header(&self) -> bool {
        let starts =
            |at: usize, prefix: &[u8]| self.lines.get(at).is_some_and(|line| line.starts_with(prefix));
        starts(self.at, b"diff --git ") || (starts(self.at, b"--- ") && starts(self.at + 1, b"+++ "))
    }

    /// Whether the signature begins here with which `git format-patch` ends a mail.
    fn is_signature(&self) -> bool {
        let is_hunk_line = |line: &&[u8]| matches!(line.first(), Some(b' ' | b'+' | b'-' | b'@'));
        self.peek() == Some(b"-- ") && !self.peek_second().is_some_and(|next| is_hunk_line(&next))
    }

    fn error(&self, reason: impl Into<String>) -> PatchError {
        PatchError { line: self.at + 1, reason: reason.into() }
    }

    fn take_prefix(&mut self, prefix: &[u8]) -> Option<&'d [u8]> {
        let rest = self.peek()?.strip_prefix(prefix)?;
        self.at += 1;
        Some(rest)
    }
}

/// A header line without its line end. Lines of hunks keep theirs.
fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn read_git_file(reader: &mut DiffReader<'_>) -> Result<FilePatch, PatchError> {
    let start_line = reader.at + 1;
    let header = reader.take_prefix(b"diff --git ").unwrap_or_default();
    let mut operation = PatchOperation::Modify;
    let (mut old, mut new) = (None, None);
    let mut executable = None;
    while let Some(line) = reader.peek() {
        if line.starts_with(b"--- ") || line.starts_with(b"@@ ") || line.starts_with(b"diff --git ") {
            break;
        }
        if line == b"GIT binary patch" || line.starts_with(b"Binary files ") {
            return Err(reader
                .error("binary patches are not read; the bundle of the preview (`--json`) can be applied"));
        }
        let known = [
            &b"old mode "[..],
            b"new mode ",
            b"deleted file mode ",
            b"new file mode ",
            b"rename from ",
            b"rename to ",
            b"copy from ",
            b"copy to ",
            b"similarity index ",
            b"dissimilarity index ",
            b"index ",
        ];
        let Some(word) = known.into_iter().find(|word| line.starts_with(word)) else { break };
        let rest = &line[word.len()..];
        match word {
            b"new file mode " => operation = PatchOperation::Create,
            b"deleted file mode " => operation = PatchOperation::Delete,
            b"rename from " | b"copy from " => old = Some(unquote_name(reader, rest)?),
            b"rename to " | b"copy to " => {
                new = Some(unquote_name(reader, rest)?);
                operation = if word[0] == b'r' { PatchOperation::Rename } else { PatchOperation::Copy };
            }
            _ => {}
        }
        if matches!(word, b"new mode " | b"new file mode ") {
            executable = match rest {
                b"100755" => Some(true),
                b"100644" => Some(false),
                other => {
                    let mode = String::from_utf8_lossy(other);
                    return Err(reader.error(format!("files of mode {mode} cannot be edited")));
                }
            };
        }
        reader.at += 1;
    }
    let mut hunks = Vec::new();
    if reader.peek().is_some_and(|line| line.starts_with(b"--- ")) {
        let (before, after) = read_names(reader)?;
        match (&before, &after) {
            (None, Some(_)) => operation = PatchOperation::Create,
            (Some(_), None) => operation = PatchOperation::Delete,
            _ => {}
        }
        old = old.or_else(|| before.map(|name| without_prefix(&name, "a/")));
        new = new.or_else(|| after.map(|name| without_prefix(&name, "b/")));
        hunks = read_hunks(reader)?;
    }
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (Some(one), None) | (None, Some(one)) => (one.clone(), one),
        (None, None) => {
            let name = header_name(header).ok_or_else(|| PatchError {
                line: start_line,
                reason: "the header does not separate the old and the new name".to_owned(),
            })?;
            (name.clone(), name)
        }
    };
    Ok(FilePatch { operation, old, new, executable, line: start_line, hunks })
}

fn read_plain_file(reader: &mut DiffReader<'_>) -> Result<FilePatch, PatchError> {
    let start_line = reader.at + 1;
    let (before, after) = read_names(reader)?;
    let hunks = read_hunks(reader)?;
    // `diff -u a/x b/x` and `git diff --no-prefix` look the same: the prefixes are stripped only if both sides have one.
    let prefixed = before.as_deref().is_none_or(|name| name.starts_with("a/"))
        && after.as_deref().is_none_or(|name| name.starts_with("b/"));
    let strip = |name: String, prefix: &str| if prefixed { without_prefix(&name, prefix) } else { name };
    let (old, new) = (before.map(|name| strip(name, "a/")), after.map(|name| strip(name, "b/")));
    let (operation, old, new) = match (old, new) {
        (Some(old), Some(new)) => {
            // `diff -u x.orig x` changes x.
            let about = if old == new || !old.ends_with(".orig") { old } else { new.clone() };
            (PatchOperation::Modify, about, new)
        }
        (None, Some(new)) => (PatchOperation::Create, new.clone(), new),
        (Some(old), None) => (PatchOperation::Delete, old.clone(), old),
        (None, None) => {
            return Err(PatchError { line: start_line, reason: "both sides are /dev/null".to_owned() });
        }
    };
    let new = if operation == PatchOperation::Modify { old.clone() } else { new };
    Ok(FilePatch { operation, old, new, executable: None, line: start_line, hunks })
}

/// The names after `---` and `+++`; `None` for `/dev/null`.
fn read_names(reader: &mut DiffReader<'_>) -> Result<(Option<String>, Option<String>), PatchError> {
    let mut both = [None, None];
    for (name, word) in both.iter_mut().zip([&b"--- "[..], b"+++ "]) {
        let line = reader.peek().and_then(|line| line.strip_prefix(word));
        let line = line.ok_or_else(|| {
            reader.error(format!("expected a {} line", String::from_utf8_lossy(word).trim()))
        })?;
        let found = if line.starts_with(b"\"") {
            unquote_name(reader, line)?
        } else {
            // The text after a tab is a date.
            let plain = line.split(|&byte| byte == b'\t').next().unwrap_or_default();
            utf8(reader, plain)?
        };
        *name = Some(found).filter(|name| name != "/dev/null");
        reader.at += 1;
    }
    let [before, after] = both;
    Ok((before, after))
}

fn unquote_name(reader: &DiffReader<'_>, text: &[u8]) -> Result<String, PatchError> {
    if !text.starts_with(b"\"") {
        return utf8(reader, text);
    }
    let (name, _) = unquote(text).ok_or_else(|| reader.error("the quoted name is not well-formed"))?;
    utf8(reader, &name)
}

fn utf8(reader: &DiffReader<'_>, name: &[u8]) -> Result<String, PatchError> {
    match std::str::from_utf8(name) {
        Ok("") => Err(reader.error("the name is empty")),
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(reader.error("the name is not UTF-8")),
    }
}

fn without_prefix(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

/// The one name of `diff --git a/NAME b/NAME`.
fn header_name(header: &[u8]) -> Option<String> {
    if header.starts_with(b"\"") {
        let (name, _) = unquote(header)?;
        return Some(without_prefix(&String::from_utf8(name).ok()?, "a/"));
    }
    let text = std::str::from_utf8(header).ok()?;
    let half = text.len().checked_sub(1)? / 2;
    let (a, b) = (text.get(..half)?, text.get(half + 1..)?);
    let (a, b) = (a.strip_prefix("a/").unwrap_or(a), b.strip_prefix("b/").unwrap_or(b));
    (a == b && !a.is_empty()).then(|| a.to_owned())
}

fn read_hunks(reader: &mut DiffReader<'_>) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks: Vec<Hunk> = Vec::new();
    while let Some(line) = reader.peek().filter(|line| line.starts_with(b"@@")) {
        let start_line = reader.at + 1;
        reader.at += 1;
        let numbers = hunk_numbers(line);
        let body = reader.at;
        let declared = match numbers {
            Some((_, old, _, new)) => read_hunk_lines(reader, old, new).and_then(|lines| {
                // Further lines of a hunk show that the numbers are wrong.
                let is_over = reader.peek().is_none_or(|next| {
                    next.is_empty()
                        || !matches!(next[0], b' ' | b'+' | b'-')
                        || reader.is_file_header()
                        || reader.is_signature()
                });
                let more = "the hunk has more lines than its header declares";
                if is_over { Ok(lines) } else { Err(reader.error(more)) }
            }),
            None => {
                let reason = "the hunk has no numbers in its header, and changes nothing".to_owned();
                Err(PatchError { line: start_line, reason })
            }
        };
        let is_recounted = declared.is_err();
        let lines = match declared {
            Ok(lines) => lines,
            Err(error) => {
                reader.at = body;
                let lines = recounted_lines(reader)?;
                let is_change = |line: &HunkLine| !matches!(line, HunkLine::Context(_));
                if !lines.iter().any(is_change) {
                    return Err(error);
                }
                lines
            }
        };
        let old_start = numbers.map(|numbers| numbers.0);
        let hunk = Hunk { line: start_line, old_start, is_recounted, lines };
        if let Some(last) = hunks.last().filter(|last| !last.is_recounted && !is_recounted)
            && let Some((before, start)) = last.old_start.zip(old_start)
            && before + last.before().count() > start + usize::from(hunk.before().next().is_none())
        {
            return Err(PatchError {
                line: start_line,
                reason: "the hunk overlaps the previous one".to_owned(),
            });
        }
        hunks.push(hunk);
    }
    Ok(hunks)
}

/// The lines of a hunk up to the next header, or to text that does not belong to the diff.
fn recounted_lines(reader: &mut DiffReader<'_>) -> Result<Vec<HunkLine>, PatchError> {
    let mut old = 0;
    let mut new = 0;
    let mut blank = 0;
    let start = reader.at;
    while let Some(line) = reader.peek().filter(|_| !reader.is_file_header() && !reader.is_signature()) {
        match line.first() {
            Some(b'+') => new += 1,
            Some(b'-') => old += 1,
            Some(b'\\') => {}
            Some(b' ') => (old, new) = (old + 1, new + 1),
            // An empty context line without its space; at the end it does not belong to the hunk.
            None => (old, new, blank) = (old + 1, new + 1, blank + 1),
            Some(_) => break,
        }
        if !line.is_empty() {
            blank = 0;
        }
        reader.at += 1;
    }
    reader.at = start;
    read_hunk_lines(reader, old - blank, new - blank)
}

/// The four numbers of `@@ -A,B +C,D @@`.
fn hunk_numbers(line: &[u8]) -> Option<(usize, usize, usize, usize)> {
    let text = std::str::from_utf8(line.split(|&byte| byte == b'@').nth(2)?).ok()?;
    let (old, new) = text.trim().split_once(' ')?;
    let pair = |text: &str| -> Option<(usize, usize)> {
        match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let (old, new) = (pair(old.strip_prefix('-')?)?, pair(new.strip_prefix('+')?)?);
    Some((old.0, old.1, new.0, new.1))
}

fn read_hunk_lines(
    reader: &mut DiffReader<'_>,
    mut old: usize,
    mut new: usize,
) -> Result<Vec<HunkLine>, PatchError> {
    let mut lines: Vec<HunkLine> = Vec::new();
    loop {
        let next = reader.lines.get(reader.at).copied();
        if let Some(line) = next.filter(|line| line.starts_with(b"\\")) {
            // `\ No newline at end of file`, which may be localized.
            let _ = line;
            match lines.last_mut() {
                Some(HunkLine::Context(last) | HunkLine::Removed(last) | HunkLine::Added(last)) => {
                    if last.ends_with(b"\n") {
                        last.pop();
                    }
                }
                None => return Err(reader.error("a `\\ No newline` line has no line before it")),
            }
            reader.at += 1;
            continue;
        }
        if old == 0 && new == 0 {
            return Ok(lines);
        }
        let left = format!("the hunk is missing {old} lines of the old file and {new} of the new file");
        let line = next.ok_or_else(|| PatchError { line: reader.lines.len() + 1, reason: left.clone() })?;
        let mut content = line.get(1..).unwrap_or_default().to_vec();
        if !line.ends_with(b"\n") {
            // The diff lacks its last newline, for example after copy and paste.
            content.push(b'\n');
        }
        let taken = match line.first() {
            Some(b' ') if old > 0 && new > 0 => HunkLine::Context(content),
            // Editors and mailers remove the space of an empty context line.
            Some(b'\n') if old > 0 && new > 0 => HunkLine::Context(b"\n".to_vec()),
            Some(b'\r') if old > 0 && new > 0 && line == b"\r\n" => HunkLine::Context(b"\r\n".to_vec()),
            Some(b'-') if old > 0 => HunkLine::Removed(content),
            Some(b'+') if new > 0 => HunkLine::Added(content),
            Some(b' ' | b'-' | b'+') => {
                return Err(reader.error("the hunk has more lines than its header declares"));
            }
            _ => return Err(reader.error(left)),
        };
        match &taken {
            HunkLine::Context(_) => (old, new) = (old - 1, new - 1),
            HunkLine::Removed(_) => old -= 1,
            HunkLine::Added(_) => new -= 1,
        }
        lines.push(taken);
        reader.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(diff: &str) -> FilePatch {
        let mut files = parse(diff.as_bytes()).unwrap();
        assert_eq!(files.len(), 1);
        files.remove(0)
    }

    #[test]
    fn headers_of_git() {
        let file = one("diff --git a/x y.py b/x y.py\nold mode 100644\nnew mode 100755\n");
        assert_eq!((file.old.as_str(), file.executable), ("x y.py", Some(true)));
        let file = one(
            "From: me\n\ndiff --git a/a.py b/b.py\nsimilarity index 90%\nrename from a.py\nrename to b.py\n--- a/a.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n",
        );
        assert_eq!(
            (file.operation, file.old.as_str(), file.new.as_str()),
            (PatchOperation::Rename, "a.py", "b.py")
        );
        let file = one(
            "diff --git \"a/\\303\\274.py\" \"b/\\303\\274.py\"\nnew file mode 100644\nindex 0000000..e69de29\n",
        );
        assert_eq!((file.operation, file.new.as_str()), (PatchOperation::Create, "ü.py"));
        let file = one(
            "diff --git a/a.py b/a.py\ndeleted file mode 100644\n--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
        );
        assert_eq!(file.operation, PatchOperation::Delete);
        assert_eq!(file.hunks[0].lines, [HunkLine::Removed(b"x".to_vec())]);
    }

    #[test]
    fn plain_diffs() {
        let file =
            one("--- a.py\t2020-01-01 00:00:00\n+++ a.py\t2020-01-02\n@@ -1,2 +1,2 @@\n x\r\n-y\r\n+z\r\n");
        assert_eq!((file.old.as_str(), file.operation), ("a.py", PatchOperation::Modify));
        assert_eq!(file.hunks[0].lines[0], HunkLine::Context(b"x\r\n".to_vec()));
        assert_eq!(one("--- a/b/c.py\n+++ b/b/c.py\n@@ -0,0 +1 @@\n+x\n").old, "b/c.py");
        assert_eq!(one("--- /dev/null\n+++ b/c.py\n@@ -0,0 +1 @@\n+x\n").operation, PatchOperation::Create);
    }

    #[test]
    fn errors_have_a_line_number() {
        for (diff, line) in [
            ("hello\n", 1),
            ("@@ -1 +1 @@\n-x\n+y\n", 1),
            ("--- a\n+++ a\n@@ nonsense @@\n", 3),
            ("--- a\n+++ a\n@@ -1,5 +1,5 @@\n x\nwhat\n", 5),
            ("--- a\n+++ a\n@@ -1,2 +1 @@\n x\n", 5),
            ("--- a\n+++ a\n@@ -5,2 +5,1 @@\n x\n-y\n@@ -5 +5 @@\n-x\n+y\n", 6),
            ("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\n", 3),
            ("diff --git a/x b/x\nnew file mode 120000\n", 2),
            ("--- \"a\n+++ b\n", 1),
        ] {
            assert_eq!(parse(diff.as_bytes()).unwrap_err().line, line, "{diff}");
        }
    }

    #[test]
    fn headers_with_wrong_numbers_are_recounted() {
        let header = "--- a/m.py\n+++ b/m.py\n";
        for (text, start, before, after) in [
            ("@@ -1,9 +1,9 @@\n x\n-y\n+z\n", Some(1), "x\ny\n", "x\nz\n"),
            ("@@ -3 +3 @@\n x\n-y\n+z\n", Some(3), "x\ny\n", "x\nz\n"),
            ("@@\n x\n-y\n+z\n\n", None, "x\ny\n", "x\nz\n"),
            ("@@ def f():\n x\n\n-y\n", None, "x\n\ny\n", "x\n\n"),
            ("@@ ... @@\n-- y\n+z\nEnd of patch\n", None, "- y\n", "z\n"),
        ] {
            let file = one(&format!("{header}{text}"));
            let [hunk] = file.hunks.as_slice() else { panic!("{text}: {:?}", file.hunks) };
            assert_eq!((hunk.old_start, hunk.is_recounted), (start, true), "{text}");
            let joined = |lines: Vec<&[u8]>| String::from_utf8(lines.concat()).unwrap();
            assert_eq!(joined(hunk.before().collect()), before, "{text}");
            assert_eq!(joined(hunk.after().collect()), after, "{text}");
        }
        // The end of a mail is no line of the last hunk.
        let mail = one("--- a/m\n+++ b/m\n@@ -1 +1 @@\n-x\n+y\n-- \n2.47.3\n\n");
        assert!(!mail.hunks[0].is_recounted && mail.hunks[0].lines.len() == 2);
        // Two hunks without numbers, and a second file.
        let files =
            parse(b"--- a/a\n+++ b/a\n@@\n-x\n+y\n@@\n-z\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-p\n+q\n").unwrap();
        assert_eq!(files.iter().map(|file| file.hunks.len()).collect::<Vec<_>>(), [2, 1]);
        assert!(!files[1].hunks[0].is_recounted);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]
        #[test]
        fn any_text_is_parsed_or_rejected(lines in proptest::collection::vec(
            "(diff --git |--- |\\+\\+\\+ |@@ -|rename from |new file mode |index |GIT binary patch|literal |[-+ \\\\]).{0,24}",
            0..24,
        )) {
            // Neither a panic nor an endless loop.
            if let Ok(patches) = parse(lines.join("\n").as_bytes()) {
                proptest::prop_assert!(patches.len() <= lines.len());
            }
        }
    }
}
