//! What is behind a stub that has no source of its own, such as those of modules that are written in C.
//!
//! For a name that a stub declares Pyright looks for the source. Where the stub's module has one there is no doubt. Where
//! it has none, Pyright follows the imports of the files that it happens to have read, from the stub back to the file that
//! it was asked about, and takes the first module on that way that has a source; after a thousand steps it gives up
//! (`buildImportTree` in its `sourceMapper.ts`, 1.1.414). So `heapq.heappush`, which `heapq.pyi` has from `_heapq.pyi`, is
//! in `heapq.py` for a server that has read little and in `_heapq.pyi` for one that has read much. What is found here
//! hangs on nothing but the files of the environment.

use std::sync::Arc;

use super::modules::ImportRoots;
use super::outline::{Definition, DefinitionKind, Span};
use super::reading::Reading;
use crate::path::AbsPath;
use crate::workspace::files::{Document, Files};

/// What is behind a place of a stub.
#[derive(Debug)]
pub enum Behind {
    /// The source of the same module; or the place is in no stub.
    Source,
    /// Definitions of the same name in the module that a C module is the quick half of: `heapq` for `_heapq`.
    Twin(Vec<(Arc<Document>, Span)>),
    /// Nothing that could be told.
    Nothing {
        /// Whether the stub documents the name itself.
        documented: bool,
    },
}

/// What is behind the place at an offset of a file.
#[must_use]
pub fn behind(
    files: &dyn Files,
    roots: &ImportRoots,
    path: &AbsPath,
    offset: impl Fn(&Document) -> usize,
) -> Behind {
    if !path.as_str().ends_with(".pyi") {
        return Behind::Source;
    }
    let module = roots.name_of_any(path);
    if module.as_ref().is_some_and(|module| !roots.sources(files, module, path).is_empty()) {
        return Behind::Source;
    }
    let nothing = Behind::Nothing { documented: false };
    let Ok(document) = files.read(path) else { return nothing };
    let reading = Reading::of(&document);
    let (outline, offset) = (&reading.outline, offset(&document));
    let at = outline.definitions.iter().position(|definition| definition.name_span.start == offset);
    let Some(at) = at else { return nothing };
    let declared = &outline.definitions[at];
    if let Some(twin) = module.as_deref().and_then(twin) {
        let found =
            roots.sources(files, &twin, path).into_iter().filter_map(|source| files.read(&source).ok());
        let found: Vec<_> = found.flat_map(|source| named(&source, &outline.names(at), declared)).collect();
        if !found.is_empty() {
            return Behind::Twin(found);
        }
    }
    Behind::Nothing { documented: declared.doc.is_some() }
}

/// The name of the module that a C module is the quick half of: the same without the underscore before it.
fn twin(module: &str) -> Option<String> {
    let (package, last) = module.rsplit_once('.').unwrap_or(("", module));
    let last = last.strip_prefix('_').filter(|last| !last.is_empty() && !last.starts_with('_'))?;
    Some(if package.is_empty() { last.to_owned() } else { format!("{package}.{last}") })
}

/// The definitions of a chain of names that are of the kind of another.
fn named(source: &Arc<Document>, names: &[String], like: &Definition) -> Vec<(Arc<Document>, Span)> {
    let reading = Reading::of(source);
    let outline = &reading.outline;
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
    fn a_quick_half_has_its_twin_and_nothing_else_is_guessed() {
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
        let ask = |file: &str, offset: usize| match behind(
            &files,
            &roots,
            &AbsPath::new(file).unwrap(),
            |_| offset,
        ) {
            Behind::Source => "source".to_owned(),
            Behind::Twin(found) => found
                .iter()
                .map(|(document, span)| format!("{}:{}", document.path, span.start))
                .collect::<Vec<_>>()
                .join(" "),
            Behind::Nothing { documented } => format!("nothing {documented}"),
        };
        assert_eq!(ask("/w/_heap.pyi", 4), "/w/heap.py:24", "the method of that name is another");
        assert_eq!(ask("/w/_heap.pyi", 43), "/w/heap.py:49");
        assert_eq!(ask("/w/_heap.pyi", 58), "nothing true");
        assert_eq!(ask("/w/_heap.pyi", 0), "nothing false");
        assert_eq!(ask("/w/clock.pyi", 4), "nothing false");
        assert_eq!(ask("/w/both.pyi", 4), "source");
        assert_eq!(ask("/w/both.py", 4), "source");
        assert_eq!(twin("a._b"), Some("a.b".to_owned()));
        assert_eq!([twin("a.b"), twin("_"), twin("__future__")], [None, None, None]);
    }
}
