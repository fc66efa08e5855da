//! Every definition of a workspace, by name and by structure: what symbol ids are made from, and where relocation looks for
//! what left its file.
//!
//! What is known of a content is kept by its digest between runs, so that one edited file costs one file. Where the cache is
//! kept is the workspace's business; here is only what is in it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::outline::DefinitionKind;
use super::relocate::side::{Side, is_compound};
use super::relocate::{Wanted, hash_of, sketch};
use crate::digest::Digest;
use crate::path::WorkspacePath;
use crate::selector::{Sketch, SymbolId};
use crate::workspace::cache_file::{Reader, Writer};
use crate::workspace::parallel::parallel_map;
use crate::workspace::snapshot::Snapshot;

/// One definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What it is.
    pub kind: DefinitionKind,
    /// The names from the module down, joined by dots.
    pub chain: String,
    /// The letters of its parameters.
    pub shape: String,
    /// The sketch of its body.
    pub sketch: Sketch,
    /// How many tokens its body has.
    pub size: u32,
    /// Where its name begins, in bytes.
    pub offset: u32,
}

impl Entry {
    /// The name itself.
    #[must_use]
    pub fn name(&self) -> &str {
        self.chain.rsplit('.').next().unwrap_or_default()
    }

    /// The identity of the definition, when it is this one of so many with the same structure.
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

/// The definitions of one text, in the order of their names' places.
#[must_use]
pub fn entries(text: &str) -> Vec<Entry> {
    let side = Side::new(text);
    let mut entries: Vec<Entry> = (0_u32..)
        .zip(&side.defs)
        .map(|(index, def)| {
            let (sketch, size) = sketch(&side, def);
            Entry {
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
    /// In the order of the paths.
    files: Vec<(WorkspacePath, Arc<Vec<Entry>>)>,
    /// How many identities were asked for.
    asked: AtomicUsize,
    /// The hash of each entry's names, its file's number and its own in the file; in order.
    by_chain: OnceLock<Vec<(u64, u32, u32)>>,
}

/// The format of the cache; another one is read as none.
const MAGIC: [u8; 8] = *b"lnsrsy02";
/// So few contents are not worth writing the whole cache again.
const FEW: usize = 8;
/// So many contents that no file has any more are.
const MAX_STALE: usize = 64;
/// The name of the cache.
const CACHE: &str = "symbols";

/// How alike two sketches are, at least, for a body to be thought of as the same one under another name.
const ALIKE: f64 = 0.45;
/// Bodies with fewer tokens are found by their names only.
const TELLING: u32 = 12;
/// So many identities are found by looking at every definition.
const MAX_PLAIN: usize = 8;
/// How many files are named that may hold a definition.
const MAX_FILES: usize = 24;

impl Index {
    /// The index of a workspace's files. What the cache knows is not read again; what it does not know is read on `threads`
    /// threads and kept.
    #[must_use]
    pub fn of(snapshot: &Snapshot, threads: usize) -> Self {
        let mut known = snapshot.kept(CACHE, MAGIC).and_then(|bytes| decode(&bytes)).unwrap_or_default();
        let digests: std::collections::BTreeSet<Digest> =
            snapshot.files().values().flatten().copied().collect();
        let before = known.len();
        known.retain(|digest, _| digests.contains(digest));
        let mut missing: BTreeMap<Digest, &WorkspacePath> = BTreeMap::new();
        for (path, digest) in snapshot.files() {
            if let Some(digest) = digest.filter(|digest| !known.contains_key(digest)) {
                missing.insert(digest, path);
            }
        }
        // A few files are read sooner than all is written.
        let changed = missing.len() > FEW || before - known.len() > MAX_STALE;
        let missing: Vec<(Digest, &WorkspacePath)> = missing.into_iter().collect();
        let read = parallel_map(&missing, threads, |(_, path)| {
            let text = crate::workspace::files::read_text(&snapshot.absolute(path))?;
            Some(Arc::new(entries(&text)))
        });
        for ((digest, _), entries) in missing.into_iter().zip(read) {
            known.extend(entries.map(|entries| (digest, entries)));
        }
        if changed {
            snapshot.keep(CACHE, MAGIC, &encode(&known));
        }
        let of = |digest: &Option<Digest>| digest.and_then(|digest| known.get(&digest).cloned());
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
    pub fn iter(&self) -> impl Iterator<Item = (&WorkspacePath, &Entry)> {
        self.files.iter().flat_map(|(path, entries)| entries.iter().map(move |entry| (path, entry)))
    }

    /// The definitions of a file.
    #[must_use]
    pub fn file(&self, path: &WorkspacePath) -> &[Entry] {
        let at = self.files.binary_search_by(|(other, _)| other.cmp(path));
        at.map_or(&[], |at| self.files[at].1.as_slice())
    }

    /// The entry of a definition whose name begins at a byte of a file; for a further assignment to a variable, the entry
    /// of the first.
    #[must_use]
    pub fn entry(&self, path: &WorkspacePath, offset: usize, chain: &str) -> Option<&Entry> {
        let entries = self.file(path);
        let exact = entries.iter().find(|entry| entry.offset as usize == offset);
        exact.or_else(|| entries.iter().find(|entry| entry.chain == chain && !is_compound(entry.kind)))
    }

    /// The identity of a definition, unlike that of every other definition of the workspace.
    #[must_use]
    pub fn id(&self, path: &WorkspacePath, entry: &Entry) -> SymbolId {
        let (mut count, mut which) = (0, None);
        let mut look = |other_path: &WorkspacePath, other: &Entry| {
            if other.structure() == entry.structure() {
                count += 1;
                if other_path == path && other.offset == entry.offset {
                    which = Some(count);
                }
            }
        };
        // Whoever asks for one looks at all; whoever asks for many is worth an order by structure.
        if self.asked.fetch_add(1, Ordering::Relaxed) < MAX_PLAIN {
            self.iter().for_each(|(path, other)| look(path, other));
        } else {
            let chain = hash_of(entry.chain.as_bytes());
            let by_chain = self.by_chain.get_or_init(|| self.in_order_of_chains());
            let first = by_chain.partition_point(|(other, ..)| *other < chain);
            for &(_, file, at) in by_chain[first..].iter().take_while(|(other, ..)| *other == chain) {
                let (path, entries) = &self.files[file as usize];
                look(path, &entries[at as usize]);
            }
        }
        entry.id(which.map(|which| (which, count)).filter(|(_, count)| *count > 1))
    }

    fn in_order_of_chains(&self) -> Vec<(u64, u32, u32)> {
        let mut all = Vec::with_capacity(self.files.iter().map(|(_, entries)| entries.len()).sum());
        for ((_, entries), file) in self.files.iter().zip(0..) {
            all.extend(
                entries.iter().zip(0..).map(|(entry, at)| (hash_of(entry.chain.as_bytes()), file, at)),
            );
        }
        all.sort_unstable();
        all
    }

    /// The files that define something like one of `wanted`, the likeliest first.
    #[must_use]
    pub fn likely(&self, wanted: &[Wanted]) -> Vec<&WorkspacePath> {
        let mut scored: Vec<(f64, &WorkspacePath)> = Vec::new();
        for (path, entries) in &self.files {
            let likeness =
                |entry: &Entry| wanted.iter().map(|wanted| likeness(wanted, entry)).fold(0.0, f64::max);
            let best = entries.iter().map(likeness).fold(0.0, f64::max);
            if best > 0.0 {
                scored.push((best, path));
            }
        }
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        scored.into_iter().take(MAX_FILES).map(|(_, path)| path).collect()
    }
}

/// How much an entry is like what is wanted; 0 when it is something else.
fn likeness(wanted: &Wanted, entry: &Entry) -> f64 {
    let same_sort = (wanted.kind.is_function() && entry.kind.is_function())
        || (is_compound(wanted.kind) == is_compound(entry.kind)
            && (wanted.kind == entry.kind || !is_compound(entry.kind)));
    if !same_sort {
        return 0.0;
    }
    let same_name = entry.name() == wanted.name;
    let sizes = (wanted.size.min(entry.size), wanted.size.max(entry.size));
    let telling = sizes.0 >= TELLING && sizes.1 <= sizes.0.saturating_mul(3);
    if !same_name && !telling {
        return 0.0;
    }
    let alike = wanted.sketch.similarity(entry.sketch);
    if same_name {
        1.0 + alike
    } else if alike >= ALIKE {
        alike
    } else {
        0.0
    }
}

fn encode(known: &BTreeMap<Digest, Arc<Vec<Entry>>>) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u64(known.len() as u64);
    for (digest, entries) in known {
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

fn decode(bytes: &[u8]) -> Option<BTreeMap<Digest, Arc<Vec<Entry>>>> {
    let mut reader = Reader(bytes);
    let mut known = BTreeMap::new();
    for _ in 0..reader.u64()? {
        let digest = reader.digest()?;
        let count = usize::try_from(reader.u64()?).ok()?;
        let mut entries = Vec::with_capacity(count.min(1 << 16));
        for _ in 0..count {
            entries.push(Entry {
                kind: KINDS.get(usize::from(*reader.bytes(1)?.first()?)).copied()?,
                sketch: Sketch(u128::from_le_bytes(reader.bytes(16)?.try_into().ok()?)),
                size: u32::from_le_bytes(reader.bytes(4)?.try_into().ok()?),
                offset: u32::from_le_bytes(reader.bytes(4)?.try_into().ok()?),
                chain: reader.text()?.to_owned(),
                shape: reader.text()?.to_owned(),
            });
        }
        known.insert(digest, Arc::new(entries));
    }
    Some(known)
}

/// The kinds that entries have, in the order of their codes.
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

/// The other files of a workspace as relocation asks for them.
pub struct Others<'o, R, B> {
    /// The workspace's definitions.
    pub index: &'o Index,
    /// The target's own file, which is none of the others.
    pub own: Option<&'o WorkspacePath>,
    /// Reads a file.
    pub read: R,
    /// What a file was in the old state; `None` when it is the same now.
    pub before: B,
}

impl<R, B> super::relocate::Elsewhere for Others<'_, R, B>
where
    R: Fn(&WorkspacePath) -> Option<Arc<crate::workspace::files::Document>>,
    B: Fn(&WorkspacePath) -> Option<super::relocate::Before>,
{
    fn files(&self, wanted: &[Wanted]) -> Vec<super::relocate::OtherFile> {
        let others = self.index.likely(wanted).into_iter().filter(|path| Some(*path) != self.own);
        others.filter_map(|path| other_file(path, &self.read, &self.before)).collect()
    }
}

/// A file as relocation sees it: what it is, and what it was.
pub(super) fn other_file(
    path: &WorkspacePath,
    read: impl Fn(&WorkspacePath) -> Option<Arc<crate::workspace::files::Document>>,
    before: impl Fn(&WorkspacePath) -> Option<super::relocate::Before>,
) -> Option<super::relocate::OtherFile> {
    let (before, document) = (before(path)?, read(path)?);
    Some(super::relocate::OtherFile { path: path.as_str().to_owned(), document, before })
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
    fn what_is_written_is_read_again() {
        let text = "class A:\n    def f(self, *a): return 1\nX: int = 3\n";
        let known = BTreeMap::from([(Digest::of(b"x"), Arc::new(entries(text)))]);
        let bytes = encode(&known);
        assert_eq!(decode(&bytes), Some(known));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None);
        }
    }

    #[test]
    fn likely_files_by_name_and_by_body() {
        let body = "(a, b):\n    x = a + b\n    y = a - b\n    return x * y + f(x, y) + g(a)\n";
        let one = format!("def one{body}");
        let two = format!("def two{body}");
        let index = index(&[("a.py", "def two(): pass\n"), ("b.py", &one), ("c.py", "def other(): pass\n")]);
        let entry = &entries(&two)[0];
        let wanted =
            Wanted { name: "two".to_owned(), kind: entry.kind, sketch: entry.sketch, size: entry.size };
        let likely: Vec<&str> = index.likely(&[wanted]).into_iter().map(WorkspacePath::as_str).collect();
        assert_eq!(likely, ["a.py", "b.py"]);
    }
}
