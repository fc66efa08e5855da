//! Words in the workspace's other texts: documentation and configuration, where code is spoken of.
//!
//! Only what is known by its ending to be text is read, of a moderate size, outside of folders that tools make.

use crate::path::{AbsPath, WorkspacePath};
use crate::workspace::files::read_bytes;

/// The endings of files that are read.
const ENDINGS: [&str; 12] =
    [".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".json", ".ipynb", ".html", ".pyx"];

/// The most bytes of one file.
const MAX_BYTES: u64 = 1 << 20;

/// The most files that are read.
const MAX_FILES: usize = 5_000;

/// The most places that are told.
const MAX_PLACES: usize = 1_000;

/// Where a word stands, in the order of paths: file, line and column, 1-based, columns in characters.
#[must_use]
pub fn lines_with_word(root: &AbsPath, word: &str) -> Vec<(WorkspacePath, usize, usize)> {
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder.as_path()) else { continue };
        for entry in entries.flatten() {
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            let made = name.starts_with('.')
                || matches!(name.as_str(), "node_modules" | "__pycache__" | "site-packages");
            if kind.is_dir() && !made {
                folders.push(folder.join(&name));
            } else if kind.is_file()
                && ENDINGS.iter().any(|ending| name.ends_with(ending))
                && entry.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES)
            {
                files.push(folder.join(&name));
            }
        }
    }
    files.sort();
    files.truncate(MAX_FILES);
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let mut found = Vec::new();
    for file in files {
        let Some(path) = file.strip_prefix(root).and_then(WorkspacePath::new) else { continue };
        let Some(text) = read_bytes(&file).ok().and_then(|bytes| String::from_utf8(bytes).ok()) else {
            continue;
        };
        if !text.contains(word) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            for (at, _) in line.match_indices(word) {
                let before = line[..at].chars().next_back();
                let after = line[at + word.len()..].chars().next();
                if !before.is_some_and(is_word) && !after.is_some_and(is_word) && found.len() < MAX_PLACES {
                    found.push((path.clone(), number + 1, line[..at].chars().count() + 1));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_documents() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        std::fs::create_dir_all(folder.path().join("docs/.git")).unwrap();
        for (name, text) in [
            ("README.md", "ü `add` and\nadded add"),
            ("docs/a.rst", "add_x"),
            ("docs/.git/b.md", "add"),
            ("c.py", "add"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let found: Vec<_> =
            lines_with_word(&root, "add").into_iter().map(|(_, line, column)| (line, column)).collect();
        assert_eq!(found, [(1, 4), (2, 7)]);
    }
}
