//! Reading unified diffs: git's format with its extended headers, and the plain one of `diff -u`.
//!
//! What stands between the files (mail headers, statistics) is passed over, as git and patch do. A hunk that is cut off or
//! has other numbers of lines than it says is an error with the number of the line. Binary patches are refused.

use crate::edit::quote::unquoted;

/// A diff that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the diff: {reason}")]
pub struct PatchError {
    /// 1-based.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

/// What a diff does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// What is done.
    pub operation: Operation,
    /// The file's name before, without `a/`; for a new file the name after.
    pub old: String,
    /// Its name after, without `b/`; for one that goes the name before.
    pub new: String,
    /// Whether the file is to be executable, where the diff says so.
    pub executable: Option<bool>,
    /// Where in the diff it begins, 1-based.
    pub line: usize,
    /// What is done to its lines.
    pub hunks: Vec<Hunk>,
}

/// What a diff does to a file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It stays where it is.
    Modify,
    /// It is new.
    Create,
    /// It goes.
    Delete,
    /// It gets another name.
    Rename,
    /// Its content also stands under another name.
    Copy,
}

/// A stretch of a file, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Where in the diff it begins, 1-based.
    pub line: usize,
    /// The first line before, 1-based; of an empty stretch the line before it.
    pub old_start: usize,
    /// The lines.
    pub lines: Vec<HunkLine>,
}

/// A line of a hunk, with its end, which the last line of a file may lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    /// It stays.
    Context(Vec<u8>),
    /// It goes.
    Removed(Vec<u8>),
    /// It comes.
    Added(Vec<u8>),
}

impl Hunk {
    /// The lines before.
    pub fn before(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(line) | HunkLine::Removed(line) => Some(line.as_slice()),
            HunkLine::Added(_) => None,
        })
    }

    /// The lines after.
    pub fn after(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(line) | HunkLine::Added(line) => Some(line.as_slice()),
            HunkLine::Removed(_) => None,
        })
    }
}

/// Reads a diff.
///
/// # Errors
/// See [`PatchError`].
pub fn parse(diff: &[u8]) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = Reader { lines: diff.split_inclusive(|&byte| byte == b'\n').collect(), at: 0 };
    let mut files = Vec::new();
    while let Some(line) = reader.peek() {
        if line.starts_with(b"diff --git ") {
            files.push(git_file(&mut reader)?);
        } else if line.starts_with(b"--- ") && reader.after().is_some_and(|next| next.starts_with(b"+++ ")) {
            files.push(plain_file(&mut reader)?);
        } else if line.starts_with(b"@@ -") {
            return Err(reader.wrong("a hunk stands before the name of its file"));
        } else {
            reader.at += 1;
        }
    }
    if files.is_empty() {
        return Err(PatchError {
            line: 1,
            reason: "there is no `---` and `+++`: this is no unified diff".to_owned(),
        });
    }
    Ok(files)
}

struct Reader<'d> {
    lines: Vec<&'d [u8]>,
    at: usize,
}

impl<'d> Reader<'d> {
    /// The line that is next, without its end.
    fn peek(&self) -> Option<&'d [u8]> {
        self.lines.get(self.at).map(|line| trimmed(line))
    }

    fn after(&self) -> Option<&'d [u8]> {
        self.lines.get(self.at + 1).map(|line| trimmed(line))
    }

    fn wrong(&self, reason: impl Into<String>) -> PatchError {
        PatchError { line: self.at + 1, reason: reason.into() }
    }

    fn take(&mut self, prefix: &[u8]) -> Option<&'d [u8]> {
        let rest = self.peek()?.strip_prefix(prefix)?;
        self.at += 1;
        Some(rest)
    }
}

/// A header's line without its end; of hunks' lines the end is a part.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn git_file(reader: &mut Reader<'_>) -> Result<FilePatch, PatchError> {
    let began = reader.at + 1;
    let header = reader.take(b"diff --git ").unwrap_or_default();
    let mut operation = Operation::Modify;
    let (mut old, mut new) = (None, None);
    let mut executable = None;
    while let Some(line) = reader.peek() {
        if line.starts_with(b"--- ") || line.starts_with(b"@@ ") || line.starts_with(b"diff --git ") {
            break;
        }
        if line == b"GIT binary patch" || line.starts_with(b"Binary files ") {
            return Err(reader.wrong("binary patches are not read"));
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
            b"new file mode " => operation = Operation::Create,
            b"deleted file mode " => operation = Operation::Delete,
            b"rename from " | b"copy from " => old = Some(whole_name(reader, rest)?),
            b"rename to " | b"copy to " => {
                new = Some(whole_name(reader, rest)?);
                operation = if word[0] == b'r' { Operation::Rename } else { Operation::Copy };
            }
            _ => {}
        }
        if matches!(word, b"new mode " | b"new file mode ") {
            executable = match rest {
                b"100755" => Some(true),
                b"100644" => Some(false),
                other => {
                    let mode = String::from_utf8_lossy(other);
                    return Err(reader.wrong(format!("files of mode {mode} are not edited")));
                }
            };
        }
        reader.at += 1;
    }
    let mut hunks = Vec::new();
    if reader.peek().is_some_and(|line| line.starts_with(b"--- ")) {
        let (before, after) = names(reader)?;
        match (&before, &after) {
            (None, Some(_)) => operation = Operation::Create,
            (Some(_), None) => operation = Operation::Delete,
            _ => {}
        }
        old = old.or_else(|| before.map(|name| stripped(&name, "a/")));
        new = new.or_else(|| after.map(|name| stripped(&name, "b/")));
        hunks = read_hunks(reader)?;
    }
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (Some(one), None) | (None, Some(one)) => (one.clone(), one),
        (None, None) => {
            let name = header_name(header).ok_or_else(|| PatchError {
                line: began,
                reason: "the names of the file cannot be told apart".to_owned(),
            })?;
            (name.clone(), name)
        }
    };
    Ok(FilePatch { operation, old, new, executable, line: began, hunks })
}

fn plain_file(reader: &mut Reader<'_>) -> Result<FilePatch, PatchError> {
    let began = reader.at + 1;
    let (before, after) = names(reader)?;
    let hunks = read_hunks(reader)?;
    // `diff -u a/x b/x` and `git diff --no-prefix` look the same: a prefix is one when both sides have theirs.
    let prefixed = before.as_deref().is_none_or(|name| name.starts_with("a/"))
        && after.as_deref().is_none_or(|name| name.starts_with("b/"));
    let strip = |name: String, prefix: &str| if prefixed { stripped(&name, prefix) } else { name };
    let (old, new) = (before.map(|name| strip(name, "a/")), after.map(|name| strip(name, "b/")));
    let (operation, old, new) = match (old, new) {
        (Some(old), Some(new)) => {
            // `diff -u x.orig x` is about x.
            let about = if old == new || !old.ends_with(".orig") { old } else { new.clone() };
            (Operation::Modify, about, new)
        }
        (None, Some(new)) => (Operation::Create, new.clone(), new),
        (Some(old), None) => (Operation::Delete, old.clone(), old),
        (None, None) => {
            return Err(PatchError { line: began, reason: "both sides are /dev/null".to_owned() });
        }
    };
    let new = if operation == Operation::Modify { old.clone() } else { new };
    Ok(FilePatch { operation, old, new, executable: None, line: began, hunks })
}

/// The names after `---` and `+++`; `None` for `/dev/null`.
fn names(reader: &mut Reader<'_>) -> Result<(Option<String>, Option<String>), PatchError> {
    let mut both = [None, None];
    for (name, word) in both.iter_mut().zip([&b"--- "[..], b"+++ "]) {
        let line = reader.peek().and_then(|line| line.strip_prefix(word));
        let line = line
            .ok_or_else(|| reader.wrong(format!("{} is expected", String::from_utf8_lossy(word).trim())))?;
        let found = if line.starts_with(b"\"") {
            whole_name(reader, line)?
        } else {
            // What follows a tab is a date.
            let plain = line.split(|&byte| byte == b'\t').next().unwrap_or_default();
            utf8(reader, plain)?
        };
        *name = Some(found).filter(|name| name != "/dev/null");
        reader.at += 1;
    }
    let [before, after] = both;
    Ok((before, after))
}

fn whole_name(reader: &Reader<'_>, text: &[u8]) -> Result<String, PatchError> {
    if !text.starts_with(b"\"") {
        return utf8(reader, text);
    }
    let (name, _) = unquoted(text).ok_or_else(|| reader.wrong("the quoted name has no end"))?;
    utf8(reader, &name)
}

fn utf8(reader: &Reader<'_>, name: &[u8]) -> Result<String, PatchError> {
    match std::str::from_utf8(name) {
        Ok("") => Err(reader.wrong("the name is empty")),
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(reader.wrong("the name is not UTF-8")),
    }
}

fn stripped(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

/// The one name of `diff --git a/NAME b/NAME`.
fn header_name(header: &[u8]) -> Option<String> {
    if header.starts_with(b"\"") {
        let (name, _) = unquoted(header)?;
        return Some(stripped(&String::from_utf8(name).ok()?, "a/"));
    }
    let text = std::str::from_utf8(header).ok()?;
    let half = text.len().checked_sub(1)? / 2;
    let (a, b) = (text.get(..half)?, text.get(half + 1..)?);
    let (a, b) = (a.strip_prefix("a/").unwrap_or(a), b.strip_prefix("b/").unwrap_or(b));
    (a == b && !a.is_empty()).then(|| a.to_owned())
}

fn read_hunks(reader: &mut Reader<'_>) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks: Vec<Hunk> = Vec::new();
    while let Some(line) = reader.peek().filter(|line| line.starts_with(b"@@ ")) {
        let numbers =
            numbers(line).ok_or_else(|| reader.wrong("the head of the hunk is not `@@ -A,B +C,D @@`"))?;
        let began = reader.at + 1;
        reader.at += 1;
        let hunk =
            Hunk { line: began, old_start: numbers.0, lines: hunk_lines(reader, numbers.1, numbers.3)? };
        if let Some(last) = hunks.last()
            && last.old_start + last.before().count()
                > hunk.old_start + usize::from(hunk.before().next().is_none())
        {
            return Err(PatchError { line: began, reason: "the hunk overlaps the one before it".to_owned() });
        }
        hunks.push(hunk);
    }
    Ok(hunks)
}

/// The four numbers of `@@ -A,B +C,D @@`.
fn numbers(line: &[u8]) -> Option<(usize, usize, usize, usize)> {
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

fn hunk_lines(reader: &mut Reader<'_>, mut old: usize, mut new: usize) -> Result<Vec<HunkLine>, PatchError> {
    let mut lines: Vec<HunkLine> = Vec::new();
    loop {
        let next = reader.lines.get(reader.at).copied();
        if let Some(line) = next.filter(|line| line.starts_with(b"\\")) {
            // `\ No newline at end of file`, in whatever language.
            let _ = line;
            match lines.last_mut() {
                Some(HunkLine::Context(last) | HunkLine::Removed(last) | HunkLine::Added(last)) => {
                    if last.ends_with(b"\n") {
                        last.pop();
                    }
                }
                None => return Err(reader.wrong("it says that nothing has no newline")),
            }
            reader.at += 1;
            continue;
        }
        if old == 0 && new == 0 {
            return Ok(lines);
        }
        let left =
            format!("{old} lines of the file before and {new} of the file after are missing from the hunk");
        let line = next.ok_or_else(|| PatchError { line: reader.lines.len() + 1, reason: left.clone() })?;
        let mut content = line.get(1..).unwrap_or_default().to_vec();
        if !line.ends_with(b"\n") {
            // The diff itself was cut without a newline, as copying and pasting does.
            content.push(b'\n');
        }
        let taken = match line.first() {
            Some(b' ') if old > 0 && new > 0 => HunkLine::Context(content),
            // Editors and mailers take the space off an empty line.
            Some(b'\n') if old > 0 && new > 0 => HunkLine::Context(b"\n".to_vec()),
            Some(b'\r') if old > 0 && new > 0 && line == b"\r\n" => HunkLine::Context(b"\r\n".to_vec()),
            Some(b'-') if old > 0 => HunkLine::Removed(content),
            Some(b'+') if new > 0 => HunkLine::Added(content),
            Some(b' ' | b'-' | b'+') => {
                return Err(reader.wrong("the hunk has more lines than its head says"));
            }
            _ => return Err(reader.wrong(left)),
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
            (Operation::Rename, "a.py", "b.py")
        );
        let file = one(
            "diff --git \"a/\\303\\274.py\" \"b/\\303\\274.py\"\nnew file mode 100644\nindex 0000000..e69de29\n",
        );
        assert_eq!((file.operation, file.new.as_str()), (Operation::Create, "ü.py"));
        let file = one(
            "diff --git a/a.py b/a.py\ndeleted file mode 100644\n--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
        );
        assert_eq!(file.operation, Operation::Delete);
        assert_eq!(file.hunks[0].lines, [HunkLine::Removed(b"x".to_vec())]);
    }

    #[test]
    fn plain_diffs() {
        let file =
            one("--- a.py\t2020-01-01 00:00:00\n+++ a.py\t2020-01-02\n@@ -1,2 +1,2 @@\n x\r\n-y\r\n+z\r\n");
        assert_eq!((file.old.as_str(), file.operation), ("a.py", Operation::Modify));
        assert_eq!(file.hunks[0].lines[0], HunkLine::Context(b"x\r\n".to_vec()));
        assert_eq!(one("--- a/b/c.py\n+++ b/b/c.py\n@@ -0,0 +1 @@\n+x\n").old, "b/c.py");
        assert_eq!(one("--- /dev/null\n+++ b/c.py\n@@ -0,0 +1 @@\n+x\n").operation, Operation::Create);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (diff, line) in [
            ("hello\n", 1),
            ("@@ -1 +1 @@\n-x\n+y\n", 1),
            ("--- a\n+++ a\n@@ -1,2 +1 @@\n-x\n", 5),
            ("--- a\n+++ a\n@@ -1 +1 @@\n-x\n-y\n+z\n", 5),
            ("--- a\n+++ a\n@@ nonsense @@\n", 3),
            ("--- a\n+++ a\n@@ -1 +1 @@\n-x\nwhat\n", 5),
            ("--- a\n+++ a\n@@ -5,2 +5,1 @@\n x\n-y\n@@ -5 +5 @@\n-x\n+y\n", 6),
            ("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\n", 3),
            ("diff --git a/x b/x\nnew file mode 120000\n", 2),
            ("--- \"a\n+++ b\n", 1),
        ] {
            assert_eq!(parse(diff.as_bytes()).unwrap_err().line, line, "{diff}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]
        #[test]
        fn any_text_is_read_or_refused(lines in proptest::collection::vec(
            "(diff --git |--- |\\+\\+\\+ |@@ -|rename from |new file mode |index |GIT binary patch|literal |[-+ \\\\]).{0,24}",
            0..24,
        )) {
            // Neither a panic nor a patch without end.
            if let Ok(patches) = parse(lines.join("\n").as_bytes()) {
                proptest::prop_assert!(patches.len() <= lines.len());
            }
        }
    }
}
