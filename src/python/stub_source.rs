//! Finds the source of a declaration in a stub whose module has no Python source, such as a module written in C.
//!
//! For a name that a stub declares, Pyright looks for the source. If the stub's module has one, the result is unambiguous. If
//! not, Pyright follows the imports of the files that it happens to have read, from the stub back to the requested file,
//! and takes the first module on that path that has a source; after a thousand steps it stops (`buildImportTree` in its
//! `sourceMapper.ts`, 1.1.414). So `heapq.heappush`, which `heapq.pyi` imports from `_heapq.pyi`, is in `heapq.py` for a
//! server that has read few files and in `_heapq.pyi` for one that has read many. The result here depends on the files of
//! the environment only.

use std::sync::Arc;

use super::modules::ImportRoots;
use super::outline::{Definition, DefinitionKind, Span};
use super::parsed_file::ParsedFile;
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files};

/// The source of a declaration in a stub.
#[derive(Debug)]
pub enum StubSource {
    /// The module of the stub has a source; or the file is not a stub.
    OwnModule,
    /// Definitions of the same name in the pure Python module of an accelerator module: `heapq` for `_heapq`.
    PurePython(Vec<(Arc<Document>, Span)>),
    /// No source was found.
    Unknown {
        /// Whether the stub has a docstring for the name.
        documented: bool,
    },
}

/// Finds the source of the declaration at an offset of a file.
#[must_use]
pub fn stub_source(
    files: &dyn Files,
    roots: &ImportRoots,
    path: &AbsPath,
    offset: impl Fn(&Document) -> usize,
) -> StubSource {
    if !path.as_str().ends_with(".pyi") {
        return StubSource::OwnModule;
    }
    let module = roots.name_of_any(path);
    if module.as_ref().is_some_and(|module| !roots.sources(files, module, path).is_empty()) {
        return StubSource::OwnModule;
    }
    let unknown = StubSource::Unknown { documented: false };
    let Ok(document) = files.read(path) else { return unknown };
    let parsed = ParsedFile::of(&document);
    let (outline, offset) = (&parsed.outline, offset(&document));
    let at = outline.definitions.iter().position(|definition| definition.name_span.start == offset);
    let Some(at) = at else { return unknown };
    let declared = &outline.definitions[at];
    if let Some(pure_python) = module.as_deref().and_then(pure_python_name) {
        let found = roots
            .sources(files, &pure_python, path)
            .into_iter()
            .filter_map(|source| files.read(&source).ok());
        let found: Vec<_> =
            found.flat_map(|source| definitions_of(&source, &outline.names(at), declared)).collect();
        if !found.is_empty() {
            return StubSource::PurePython(found);
        }
    }
    StubSource::Unknown { documented: declared.doc.is_some() }
}

/// The name of the pure Python module of an accelerator module: the same without the leading underscore.
fn pure_python_name(module: &str) -> Option<String> {
    let (package, last) = module.rsplit_once('.').unwrap_or(("", module));
    let last = last.strip_prefix('_').filter(|last| !last.is_empty() && !last.starts_with('_'))?;
    Some(if package.is_empty() { last.to_owned() } else { format!("{package}.{last}") })
}

/// The definitions of a chain of names that are the same sort of definition (function, class, import, other) as `like`.
fn definitions_of(source: &Arc<Document>, names: &[String], like: &Definition) -> Vec<(Arc<Document>, Span)> {
    let parsed = ParsedFile::of(source);
    let outline = &parsed.outline;
    let sort = |kind: DefinitionKind| {
        (kind.is_function(), kind == DefinitionKind::Class, kind == DefinitionKind::Import)
    };
    let all = outline.definitions.iter().enumerate();
    all.filter(|(at, definition)| sort(definition.kind) == sort(like.kind) && outline.names(*at) == names)
        .map(|(_, definition)| (source.clone(), definition.name_span.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::MemoryFiles;

    #[test]
    fn an_accelerator_module_has_its_pure_python_module_and_nothing_else_is_guessed() {
        let files = MemoryFiles::new([
            (
                "/w/_heap.pyi",
                "def push(x): ...\ndef push(x, y): ...\nclass push2: ...\ndef told():\n    'doc'\n",
            ),
            (
                "/w/heap.py",
                "from _heap import *\ndef push(x):\n    'doc'\nclass push2:\n    def push(self): ...\n",
            ),
            ("/w/clock.pyi", "def now(): ...\n"),
            ("/w/both.pyi", "def f(): ...\n"),
            ("/w/both.py", "def f(): ...\n"),
        ]);
        let roots = ImportRoots::of_folder(AbsPath::new("/w").unwrap());
        let ask = |file: &str, offset: usize| match stub_source(
            &files,
            &roots,
            &AbsPath::new(file).unwrap(),
            |_| offset,
        ) {
            StubSource::OwnModule => "source".to_owned(),
            StubSource::PurePython(found) => found
                .iter()
                .map(|(document, span)| format!("{}:{}", document.path, span.start))
                .collect::<Vec<_>>()
                .join(" "),
            StubSource::Unknown { documented } => format!("unknown {documented}"),
        };
        assert_eq!(ask("/w/_heap.pyi", 4), "/w/heap.py:24", "the method of the same name is not a match");
        assert_eq!(ask("/w/_heap.pyi", 43), "/w/heap.py:49");
        assert_eq!(ask("/w/_heap.pyi", 58), "unknown true");
        assert_eq!(ask("/w/_heap.pyi", 0), "unknown false");
        assert_eq!(ask("/w/clock.pyi", 4), "unknown false");
        assert_eq!(ask("/w/both.pyi", 4), "source");
        assert_eq!(ask("/w/both.py", 4), "source");
        assert_eq!(pure_python_name("a._b"), Some("a.b".to_owned()));
        assert_eq!(
            [pure_python_name("a.b"), pure_python_name("_"), pure_python_name("__future__")],
            [None, None, None]
        );
    }
}
