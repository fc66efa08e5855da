//! The state of a project, and a test case: a target in an old state and its location in the new one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lanser::internal::path::{AbsPath, WorkspacePath};
use lanser::internal::workspace::files::Document;

use crate::answers::Answer;

/// The Python files of one state.
#[derive(Clone, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, Arc<Document>>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> Self {
        let mut tree = Self::default();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "py")
                    && let Ok(bytes) = std::fs::read(&path)
                    && let Some(name) = path.strip_prefix(root).ok().and_then(|path| path.to_str())
                    && WorkspacePath::new(name).is_some()
                {
                    tree.set(name, bytes);
                }
            }
        }
        tree
    }

    pub(crate) fn set(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        let path = AbsPath::new(format!("/{name}")).expect("an absolute path");
        self.files.insert(name.to_owned(), Arc::new(Document::new(path, bytes.into())));
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(|document| document.text.as_str())
    }
}

/// The true location of a target in the new state.
#[derive(Debug, Clone)]
pub(crate) enum Truth {
    /// In this file, at this byte offset.
    At(String, usize),
    /// The target was deleted.
    Gone,
    /// Several equal candidates.
    Ambiguous,
}

/// A target in an old state.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) category: String,
    /// A description for the report.
    pub(crate) what: String,
    pub(crate) path: String,
    /// Its span in the old text.
    pub(crate) span: std::ops::Range<usize>,
    pub(crate) truth: Truth,
    /// Its first line, and its position in the old text: 0-based line, byte column.
    pub(crate) line: String,
    pub(crate) line_column: (usize, usize),
    /// The old text of its file, if it differs from the old state.
    pub(crate) old: Option<String>,
}

impl Case {
    pub(crate) fn new(
        category: &str,
        what: String,
        old: &Tree,
        path: &str,
        span: std::ops::Range<usize>,
        truth: Truth,
    ) -> Self {
        let text = old.text(path).unwrap_or_default();
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[start..].lines().next().unwrap_or_default().to_owned();
        let line_column = (text[..span.start].matches('\n').count(), span.start - start);
        Self {
            category: category.to_owned(),
            what,
            path: path.to_owned(),
            span,
            truth,
            line,
            line_column,
            old: None,
        }
    }

    /// Classifies an answer as `right`, `wrong`, `certain` (and wrong), `flagged` or `missing`.
    pub(crate) fn judge(&self, new: &Tree, answer: &Answer) -> &'static str {
        if answer.ambiguous {
            return if matches!(self.truth, Truth::Ambiguous) { "right" } else { "flagged" };
        }
        let wrong = if answer.certified { "certain" } else { "wrong" };
        match (&self.truth, &answer.place) {
            (Truth::At(path, offset), Some((file, start))) => {
                let line = |offset: usize| {
                    new.files[path].lines.display(&new.files[path].text, offset, Default::default()).0
                };
                let is_right = path == file && line(*offset) == line(*start);
                if is_right { "right" } else { wrong }
            }
            (Truth::Gone, None) => "right",
            (Truth::At(..) | Truth::Ambiguous, None) => "missing",
            (Truth::Gone | Truth::Ambiguous, Some(_)) => wrong,
        }
    }

    pub(crate) fn shown(&self, new: &Tree) -> String {
        match &self.truth {
            Truth::At(path, offset) => {
                let document = &new.files[path];
                format!("{path}:{}", document.lines.display(&document.text, *offset, Default::default()).0)
            }
            other => format!("{other:?}"),
        }
    }
}

/// Pseudo-random numbers from a seed, the same in every run.
pub(crate) struct Seeded(pub u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count.max(1) as u64).unwrap_or_default()
    }
}
