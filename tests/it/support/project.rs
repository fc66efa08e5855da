//! Test projects written as one string, with marked positions.

use std::collections::BTreeMap;
use std::path::Path;

/// Files of a workspace, and the positions marked in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Project {
    files: BTreeMap<String, Vec<u8>>,
    marks: BTreeMap<String, Mark>,
}

/// A marked position.
#[derive(Debug, Clone)]
struct Mark {
    file: String,
    /// 1-based.
    line: usize,
    /// The text of the line before the mark.
    before: String,
}

impl Project {
    /// Parses `//- /path` headers, each followed by the text of a file. `$0` to `$9` mark positions and are removed.
    pub(crate) fn parse(text: &str) -> Self {
        let mut project = Self::default();
        for part in text.split("//- /").skip(1) {
            let (name, body) = part.split_once('\n').unwrap_or((part, ""));
            project.add(name.trim(), body);
        }
        assert!(!project.files.is_empty(), "a project starts with `//- /`");
        project
    }

    /// A project of the folder `fixtures/projects`.
    pub(crate) fn fixture(name: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/projects").join(name);
        let mut project = Self::default();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                    project.files.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
        assert!(!project.files.is_empty(), "the fixture {name} is missing");
        project
    }

    fn add(&mut self, name: &str, text: &str) {
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            plain.push_str(before);
            match after[1..].chars().next().filter(char::is_ascii_digit) {
                Some(digit) => {
                    let line = plain.matches('\n').count() + 1;
                    let before = plain.rsplit('\n').next().unwrap_or_default().to_owned();
                    let mark = Mark { file: name.to_owned(), line, before };
                    assert!(self.marks.insert(digit.to_string(), mark).is_none(), "two marks ${digit}");
                    rest = &after[2..];
                }
                None => {
                    plain.push('$');
                    rest = &after[1..];
                }
            }
        }
        plain.push_str(rest);
        self.files.insert(name.to_owned(), plain.into_bytes());
    }

    /// Adds a file with any bytes.
    pub(crate) fn and(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name.to_owned(), content.into());
        self
    }

    /// The position of a mark, as `path:line:col` with columns in code points.
    pub(crate) fn at(&self, mark: u8) -> String {
        self.at_counting(mark, |before| before.chars().count())
    }

    /// The position of a mark, with the column computed by `count` from the text before it.
    pub(crate) fn at_counting(&self, mark: u8, count: impl Fn(&str) -> usize) -> String {
        let mark = &self.marks[&mark.to_string()];
        format!("{}:{}:{}", mark.file, mark.line, count(&mark.before) + 1)
    }

    /// Writes the files.
    pub(crate) fn write_to(&self, folder: &Path) {
        self.write(folder, self.files.iter());
    }

    /// Writes the files in reverse order.
    pub(crate) fn write_backwards_to(&self, folder: &Path) {
        self.write(folder, self.files.iter().rev());
    }

    #[expect(clippy::unused_self, reason = "both orders write the same files")]
    fn write<'f>(&self, folder: &Path, files: impl Iterator<Item = (&'f String, &'f Vec<u8>)>) {
        for (name, content) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
}
