//! An index of all definitions of a workspace, by name and by structure. Symbol ids are made from it, and relocation searches it
//! for definitions that moved to another file.
//!
//! The definitions of each file are cached between runs by content digest, so that after an edit only the changed files are
//! parsed. The location of the cache is up to the workspace; this module defines its content.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::structure::{TextStructure, is_compound};
use super::{MissingDefinition, hash_of, sketch};
use crate::digest::Digest;
use crate::path::WorkspacePath;
use crate::python::outline::DefinitionKind;
use crate::selector::{Sketch, SymbolId};
use crate::workspace::cache_file::{FieldReader, FieldWriter};
use crate::workspace::parallel::parallel_map;
use crate::workspace::snapshot::Snapshot;

/// One definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// The kind.
    pub kind: DefinitionKind,
    /// The names from the module down, joined by dots.
    pub chain: String,
    /// The kinds of its parameters, one letter each.
    pub shape: String,
    /// The sketch of its body.
    pub sketch: Sketch,
    /// The number of tokens in its body.
    pub size: u32,
    /// The byte offset of its name.
    pub offset: u32,
}

impl IndexEntry {
    /// The last name of the chain.
    #[must_use]
    pub fn name(&self) -> &str {
        self.chain.rsplit('.').next().unwrap_or_default()
    }

    /// The id of the definition. `ordinal` is its number among the definitions of the same structure, and their count.
    #[must_use]
    pub fn id(&self, ordinal: Option<(u32, u32)>) -> SymbolId {
        SymbolId {
            kind: self.kind.as_str().to_owned(),
            names: self.chain.split('.').map(str::to_owned).collect(),
            shape: self.shape.clone(),
            sketch: self.sketch,
            ordinal,
        }
    }

    fn structure(&self) -> (DefinitionKind, &str, &str, Sketch) {
        (self.kind, &self.chain, &self.shape, self.sketch)
    }
}

/// The definitions of one text, in the order of their names.
#[must_use]
pub fn entries(text: &str) -> Vec<IndexEntry> {
    let side = TextStructure::new(text);
    let mut entries: Vec<IndexEntry> = (0_u32..)
        .zip(&side.defs)
        .map(|(index, def)| {
            let (sketch, size) = sketch(&side, def);
            IndexEntry {
                kind: def.kind,
                chain: side.chain(index).join("."),
                shape: side.shape_letters(def),
                sketch,
                size,
                offset: u32::try_from(side.name_span(def).start).unwrap_or(u32::MAX),
            }
        })
        .collect();
    entries.sort_by_key(|entry| entry.offset);
    entries
}

/// The definitions of a workspace.
#[derive(Debug, Default)]
pub struct Index {
    /// Sorted by path.
    files: Vec<(WorkspacePath, Arc<Vec<IndexEntry>>)>,
    /// The number of queries for an id.
    id_queries: AtomicUsize,
    /// For each entry the hash of its chain, the index of its file and its index in the file; sorted.
    by_chain: OnceLock<Vec<(u64, u32, u32)>>,
}

/// The format of the cache; a cache of another format is ignored.
const CACHE_MAGIC: [u8; 8] = *b"lnsrsy04";
/// With at most so many new contents the cache is not rewritten.
const MIN_NEW_TO_WRITE: usize = 8;
/// With more outdated contents than this the cache is rewritten.
const MAX_STALE_CONTENTS: usize = 64;
/// The name of the cache.
const CACHE_NAME: &str = "symbols";

/// The least similarity of two sketches for two bodies to count as the same definition under another name.
const MIN_SIMILARITY: f64 = 0.45;
/// Definitions whose bodies have fewer tokens are found by name only.
const MIN_BODY_TOKENS: u32 = 12;
/// So many queries for an id scan all definitions; later ones use an index by chain.
const MAX_LINEAR_ID_QUERIES: usize = 8;
/// The most files that [`Index::likely_files`] returns.
const MAX_LIKELY_FILES: usize = 24;

impl Index {
    /// The index of a workspace's files. Contents that are not in the cache are parsed on `threads` threads and added to it.
    #[must_use]
    pub fn of(snapshot: &Snapshot, threads: usize) -> Self {
        let mut cached = snapshot
            .load_cached(CACHE_NAME, CACHE_MAGIC)
            .and_then(|bytes| decode(&bytes))
            .unwrap_or_default();
        let digests: std::collections::BTreeSet<Digest> =
            snapshot.files().values().flatten().copied().collect();
        let before = cached.len();
        cached.retain(|digest, _| digests.contains(digest));
        let mut missing: BTreeMap<Digest, &WorkspacePath> = BTreeMap::new();
        for (path, digest) in snapshot.files() {
            if let Some(digest) = digest.filter(|digest| !cached.contains_key(digest)) {
                missing.insert(digest, path);
            }
        }
        // Parsing a few files again is faster than writing the whole cache.
        let changed = missing.len() > MIN_NEW_TO_WRITE || before - cached.len() > MAX_STALE_CONTENTS;
        let missing: Vec<(Digest, &WorkspacePath)> = missing.into_iter().collect();
        let read = parallel_map(&missing, threads, |(digest, path)| {
            Some(Arc::new(entries(&snapshot.text_of(path, *digest)?)))
        });
        for ((digest, _), entries) in missing.into_iter().zip(read) {
            cached.extend(entries.map(|entries| (digest, entries)));
        }
        if changed {
            snapshot.store_cached(CACHE_NAME, CACHE_MAGIC, &encode(&cached));
        }
        let of = |digest: &Option<Digest>| digest.and_then(|digest| cached.get(&digest).cloned());
        let files = snapshot.files().iter().filter_map(|(path, digest)| Some((path.clone(), of(digest)?)));
        Self { files: files.collect(), ..Self::default() }
    }

    /// The index of some texts.
    #[must_use]
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = (WorkspacePath, &'t str)>) -> Self {
        let mut files: Vec<_> =
            texts.into_iter().map(|(path, text)| (path, Arc::new(entries(text)))).collect();
        files.sort_by(|a, b| a.0.cmp(&b.0));
        Self { files, ..Self::default() }
    }

    /// Every definition with its file, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&WorkspacePath, &IndexEntry)> {
        self.files.iter().flat_map(|(path, entries)| entries.iter().map(move |entry| (path, entry)))
    }

    /// The definitions of a file.
    #[must_use]
    pub fn file(&self, path: &WorkspacePath) -> &[IndexEntry] {
        let at = self.files.binary_search_by(|(other, _)| other.cmp(path));
        at.map_or(&[], |at| self.files[at].1.as_slice())
    }

    /// The id of a definition, unique in the workspace.
    #[must_use]
    pub fn id(&self, path: &WorkspacePath, entry: &IndexEntry) -> SymbolId {
        // A few queries scan all entries; only many are worth sorting them.
        if self.id_queries.fetch_add(1, Ordering::Relaxed) < MAX_LINEAR_ID_QUERIES {
            return id_among(path, entry, self.iter());
        }
        let chain = hash_of(entry.chain.as_bytes());
        let by_chain = self.by_chain.get_or_init(|| self.sorted_by_chain());
        let first = by_chain.partition_point(|(other, ..)| *other < chain);
        let others =
            by_chain[first..].iter().take_while(|(other, ..)| *other == chain).map(|&(_, file, at)| {
                let (path, entries) = &self.files[file as usize];
                (path, &entries[at as usize])
            });
        id_among(path, entry, others)
    }

    fn sorted_by_chain(&self) -> Vec<(u64, u32, u32)> {
        let mut all = Vec::with_capacity(self.files.iter().map(|(_, entries)| entries.len()).sum());
        for ((_, entries), file) in self.files.iter().zip(0..) {
            all.extend(
                entries.iter().zip(0..).map(|(entry, at)| (hash_of(entry.chain.as_bytes()), file, at)),
            );
        }
        all.sort_unstable();
        all
    }

    /// The files with a definition like one of `wanted`, the likeliest first.
    #[must_use]
    pub fn likely_files(&self, wanted: &[MissingDefinition]) -> Vec<&WorkspacePath> {
        let mut scored: Vec<(f64, &WorkspacePath)> = Vec::new();
        for (path, entries) in &self.files {
            let likeness =
                |entry: &IndexEntry| wanted.iter().map(|wanted| likeness(wanted, entry)).fold(0.0, f64::max);
            let best = entries.iter().map(likeness).fold(0.0, f64::max);
            if best > 0.0 {
                scored.push((best, path));
            }
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        scored.into_iter().take(MAX_LIKELY_FILES).map(|(_, path)| path).collect()
    }
}

/// The entry of the definition whose name begins at an offset of a file; for a repeated assignment to a variable, the entry of
/// the first.
#[must_use]
pub fn entry_at<'e>(entries: &'e [IndexEntry], offset: usize, chain: &str) -> Option<&'e IndexEntry> {
    let exact = entries.iter().find(|entry| entry.offset as usize == offset);
    exact.or_else(|| entries.iter().find(|entry| entry.chain == chain && !is_compound(entry.kind)))
}

/// The id of a definition, unique among `all`, which have all definitions of its name in the order of the files.
pub(super) fn id_among<'e>(
    path: &WorkspacePath,
    entry: &IndexEntry,
    all: impl Iterator<Item = (&'e WorkspacePath, &'e IndexEntry)>,
) -> SymbolId {
    let (mut count, mut which) = (0, None);
    for (other_path, other) in all {
        if other.structure() == entry.structure() {
            count += 1;
            if other_path == path && other.offset == entry.offset {
                which = Some(count);
            }
        }
    }
    entry.id(which.map(|which| (which, count)).filter(|(_, count)| *count > 1))
}

/// How likely an entry is the wanted definition; 0 when it is not.
fn likeness(wanted: &MissingDefinition, entry: &IndexEntry) -> f64 {
    let same_sort = (wanted.kind.is_function() && entry.kind.is_function())
        || (is_compound(wanted.kind) == is_compound(entry.kind)
            && (wanted.kind == entry.kind || !is_compound(entry.kind)));
    if !same_sort {
        return 0.0;
    }
    let same_name = entry.name() == wanted.name;
    let sizes = (wanted.size.min(entry.size), wanted.size.max(entry.size));
    let is_comparable = sizes.0 >= MIN_BODY_TOKENS && sizes.1 <= sizes.0.saturating_mul(3);
    if !same_name && !is_comparable {
        return 0.0;
    }
    let similarity = wanted.sketch.similarity(entry.sketch);
    if same_name {
        1.0 + similarity
    } else if similarity >= MIN_SIMILARITY {
        similarity
    } else {
        0.0
    }
}

fn encode(cached: &BTreeMap<Digest, Arc<Vec<IndexEntry>>>) -> Vec<u8> {
    let mut writer = FieldWriter::default();
    writer.u64(cached.len() as u64);
    for (digest, entries) in cached {
        writer.digest(digest);
        writer.u64(entries.len() as u64);
        for entry in entries.iter() {
            writer.0.push(kind_code(entry.kind));
            writer.0.extend_from_slice(&entry.sketch.0.to_le_bytes());
            writer.0.extend_from_slice(&entry.size.to_le_bytes());
            writer.0.extend_from_slice(&entry.offset.to_le_bytes());
            writer.text(&entry.chain);
            writer.text(&entry.shape);
        }
    }
    writer.0
}

fn decode(bytes: &[u8]) -> Option<BTreeMap<Digest, Arc<Vec<IndexEntry>>>> {
    let mut reader = FieldReader(bytes);
    let mut cached = BTreeMap::new();
    for _ in 0..reader.u64()? {
        let digest = reader.digest()?;
        let count = usize::try_from(reader.u64()?).ok()?;
        let mut entries = Vec::with_capacity(count.min(1 << 16));
        for _ in 0..count {
            entries.push(IndexEntry {
                kind: KINDS.get(usize::from(*reader.bytes(1)?.first()?)).copied()?,
                sketch: Sketch(u128::from_le_bytes(reader.bytes(16)?.try_into().ok()?)),
                size: u32::from_le_bytes(reader.bytes(4)?.try_into().ok()?),
                offset: u32::from_le_bytes(reader.bytes(4)?.try_into().ok()?),
                chain: reader.text()?.to_owned(),
                shape: reader.text()?.to_owned(),
            });
        }
        cached.insert(digest, Arc::new(entries));
    }
    Some(cached)
}

/// The kinds of entries, in the order of their codes in the cache.
const KINDS: [DefinitionKind; 7] = [
    DefinitionKind::Class,
    DefinitionKind::Function,
    DefinitionKind::Method,
    DefinitionKind::Property,
    DefinitionKind::Variable,
    DefinitionKind::Field,
    DefinitionKind::Attribute,
];

fn kind_code(kind: DefinitionKind) -> u8 {
    let at = KINDS.iter().position(|other| *other == kind);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

/// The other files of a workspace, for relocation.
pub struct OtherWorkspaceFiles<'o, R, B> {
    /// The workspace's definitions.
    pub index: &'o Index,
    /// The file of the target, which is excluded.
    pub own: Option<&'o WorkspacePath>,
    /// Reads a file.
    pub read: R,
    /// Returns a file in the old state; `None` when it is unchanged.
    pub before: B,
}

impl<R, B> super::OtherFiles for OtherWorkspaceFiles<'_, R, B>
where
    R: Fn(&WorkspacePath) -> Option<Arc<crate::workspace::files::Document>>,
    B: Fn(&WorkspacePath) -> Option<super::OldContent>,
{
    fn files(&self, wanted: &[MissingDefinition]) -> Vec<super::OtherFile> {
        let others = self.index.likely_files(wanted).into_iter().filter(|path| Some(*path) != self.own);
        others.filter_map(|path| other_file(path, &self.read, &self.before)).collect()
    }
}

/// A file with its current and its old text.
pub(super) fn other_file(
    path: &WorkspacePath,
    read: impl Fn(&WorkspacePath) -> Option<Arc<crate::workspace::files::Document>>,
    before: impl Fn(&WorkspacePath) -> Option<super::OldContent>,
) -> Option<super::OtherFile> {
    let (before, document) = (before(path)?, read(path)?);
    Some(super::OtherFile { path: path.as_str().to_owned(), document, before })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[(&str, &str)]) -> Index {
        Index::of_texts(texts.iter().map(|(path, text)| (WorkspacePath::new(path).unwrap(), *text)))
    }

    #[test]
    fn no_two_definitions_share_an_id() {
        let text = "class A:\n    def f(self): pass\n    x = 1\ndef f(): pass\nif a:\n    def f(): pass\n";
        let index = index(&[("a.py", text), ("b.py", text)]);
        let ids: Vec<String> = index.iter().map(|(path, entry)| index.id(path, entry).to_string()).collect();
        let mut distinct = ids.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(ids.len(), 10);
        assert_eq!(distinct.len(), 10, "{ids:?}");
        assert!(ids.iter().any(|id| id.ends_with(":4of4")), "{ids:?}");
        assert!(ids.iter().all(|id| SymbolId::parse(id).is_some_and(|read| read.to_string() == *id)));
    }

    #[test]
    fn the_cache_round_trips() {
        let text = "class A:\n    def f(self, *a): return 1\nX: int = 3\n";
        let cached = BTreeMap::from([(Digest::of(b"x"), Arc::new(entries(text)))]);
        let bytes = encode(&cached);
        assert_eq!(decode(&bytes), Some(cached));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None);
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_not_cached() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| crate::path::AbsPath::new(folder.path().join(name)).unwrap();
        let (root, cache) = (at("work"), at("cache"));
        std::fs::create_dir(root.as_path()).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name).as_path(), text).unwrap();
        // Enough files for the index to be saved.
        for number in 0..=MIN_NEW_TO_WRITE {
            write(&format!("{number}.py"), &format!("x{number} = 1"));
        }
        write("a.py", "def f(): pass\n");
        let detection = crate::workspace::snapshot::ChangeDetection::Content;
        let index = || Index::of(&Snapshot::take(&root, Some(&cache), detection, 1), 1);
        let snapshot = Snapshot::take(&root, Some(&cache), detection, 1);
        write("a.py", "def g(): pass\n");
        assert_eq!(Index::of(&snapshot, 1).file(&WorkspacePath::new("a.py").unwrap()), []);
        write("a.py", "def f(): pass\n");
        let names: Vec<String> =
            index().iter().map(|(_, entry)| entry.chain.clone()).filter(|chain| chain.len() == 1).collect();
        assert_eq!(names, ["f"]);
    }

    #[test]
    fn likely_files_by_name_and_by_body() {
        let body = "(a, b):\n    x = a + b\n    y = a - b\n    return x * y + f(x, y) + g(a)\n";
        let one = format!("def one{body}");
        let two = format!("def two{body}");
        let index = index(&[("a.py", "def two(): pass\n"), ("b.py", &one), ("c.py", "def other(): pass\n")]);
        let entry = &entries(&two)[0];
        let wanted = MissingDefinition {
            name: "two".to_owned(),
            kind: entry.kind,
            sketch: entry.sketch,
            size: entry.size,
        };
        let likely: Vec<&str> =
            index.likely_files(&[wanted]).into_iter().map(WorkspacePath::as_str).collect();
        assert_eq!(likely, ["a.py", "b.py"]);
    }
}
