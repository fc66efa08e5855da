//! Searches documentation, configuration, and scripts, which may mention Python names.
//!
//! Only files of moderate size with a known text extension, or without one, are read. Hidden folders and folders that tools generate
//! are skipped.

use crate::path::{AbsPath, WorkspacePath};
use crate::workspace::files::read_bytes;

/// The extensions of the files that are searched.
const EXTENSIONS: [&str; 12] =
    [".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".json", ".ipynb", ".html", ".pyx"];

/// Larger files are skipped.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// At most this many files are searched.
const MAX_FILES: usize = 5_000;

/// At most this many matches are returned.
const MAX_MATCHES: usize = 1_000;

/// The whole-word matches of `word` in text files, in path order: file, line and column. Lines and columns are 1-based,
/// and columns count characters.
#[must_use]
pub fn find_in_text_files(root: &AbsPath, word: &str) -> Vec<(WorkspacePath, usize, usize)> {
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder.as_path()) else { continue };
        for entry in entries.flatten() {
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            let is_skipped = name.starts_with('.')
                || matches!(name.as_str(), "node_modules" | "__pycache__" | "site-packages");
            if kind.is_dir() && !is_skipped {
                folders.push(folder.join(&name));
            } else if kind.is_file()
                && (!name.contains('.') || EXTENSIONS.iter().any(|extension| name.ends_with(extension)))
                && entry.metadata().is_ok_and(|metadata| metadata.len() <= MAX_FILE_BYTES)
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
                if !before.is_some_and(is_word) && !after.is_some_and(is_word) && found.len() < MAX_MATCHES {
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
    fn whole_words_are_found_in_text_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        std::fs::create_dir_all(folder.path().join("docs/.git")).unwrap();
        for (name, text) in [
            ("README.md", "ü `add` and\nadded add"),
            ("docs/a.rst", "add_x"),
            ("docs/.git/b.md", "add"),
            ("c.py", "add"),
            ("docs/script", "#!/usr/bin/env python3\n\nadd()"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let found: Vec<_> =
            find_in_text_files(&root, "add").into_iter().map(|(_, line, column)| (line, column)).collect();
        assert_eq!(found, [(1, 4), (2, 7), (3, 1)]);
    }
}
