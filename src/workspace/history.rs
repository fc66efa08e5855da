//! Old states of the workspace out of git: the files of a revision, and where they went since.
//!
//! Read with libgit2, which writes nothing here and runs no filter and no hook. What it refuses (another object format, a
//! repository that belongs to somebody else) is told, not worked around.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use git2::{ObjectType, Repository, Tree, TreeWalkMode, TreeWalkResult};
use serde::{Deserialize, Serialize};

use super::files::{MAX_FILE_BYTES, canonical, read_bytes};
use super::snapshot::Snapshot;
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::{Door, Tape};

/// Why a revision cannot be had.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
pub enum HistoryError {
    /// There is no repository around the workspace, or none that can be read.
    #[error("the workspace is in no git repository that can be read: {0}")]
    NoRepository(String),
    /// The repository has no such revision.
    #[error("git knows no revision {revision}: {reason}")]
    NoRevision {
        /// What was asked for.
        revision: String,
        /// The words of git.
        reason: String,
    },
}

/// git's mode of a symbolic link.
const LINK: i32 = 0o120_000;
/// How many revisions are looked at for a content.
const MAX_COMMITS: usize = 400;
/// How many contents of a file are looked at.
const MAX_VERSIONS: usize = 64;

/// The repository around the workspace, and the workspace's folder in it, with a slash at its end unless it is empty.
fn repository_around(root: &AbsPath) -> Result<(Repository, String), HistoryError> {
    let no_repository = |error: git2::Error| HistoryError::NoRepository(error.message().to_owned());
    let repository = Repository::discover(root.as_path()).map_err(no_repository)?;
    let folder = repository.workdir().and_then(|folder| AbsPath::new(folder).ok());
    let folder = folder.ok_or_else(|| HistoryError::NoRepository("it has no working tree".to_owned()))?;
    let inside = canonical(root);
    let prefix = inside.strip_prefix(&canonical(&folder)).unwrap_or_default();
    let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    Ok((repository, prefix))
}

/// Whether git ignores a file of the workspace at `root`; `None` where there is no repository.
#[must_use]
pub fn ignored(root: &AbsPath) -> Option<impl Fn(&WorkspacePath) -> bool + use<>> {
    let (repository, prefix) = repository_around(root).ok()?;
    Some(move |path: &WorkspacePath| {
        let whole = format!("{prefix}{path}");
        // What is tracked is part of the tree whatever the rules say of its name.
        let tracked = repository.index().is_ok_and(|index| index.get_path(whole.as_ref(), 0).is_some());
        !tracked && repository.is_path_ignored(&whole).unwrap_or(false)
    })
}

/// The Python files of the workspace at `root` with their digests, as a snapshot would have them, in recent revisions: the present
/// one first, then its first parents, at most `most`. Told as long as `tell` says so, each with the revision's name.
pub fn recent(
    root: &AbsPath,
    most: usize,
    mut tell: impl FnMut(&str, BTreeMap<WorkspacePath, Option<Digest>>) -> bool,
) {
    let Ok((repository, _)) = repository_around(root) else { return };
    let mut commit = repository.head().and_then(|head| head.peel_to_commit()).ok();
    let mut known: BTreeMap<git2::Oid, Option<Digest>> = BTreeMap::new();
    let mut last = None;
    for _ in 0..most {
        let Some(now) = commit else { return };
        let tree = now.tree_id();
        if last.replace(tree) != Some(tree) {
            let Ok((repository, prefix)) = repository_around(root) else { return };
            let revision = Revision { repository, tree, prefix, blobs: OnceCell::new() };
            let kept = |path: &WorkspacePath| {
                path.is_python() && !path.as_str().split('/').any(super::walk::is_skipped)
            };
            let files = revision.blobs_of(kept).into_iter().map(|(path, blob)| {
                let digest = known.entry(blob).or_insert_with(|| {
                    let blob = revision.repository.find_blob(blob).ok()?;
                    (blob.size() as u64 <= MAX_FILE_BYTES).then(|| Digest::of(blob.content()))
                });
                (path, *digest)
            });
            if !tell(&now.id().to_string(), files.collect()) {
                return;
            }
        }
        commit = now.parent(0).ok();
    }
}

/// The state of the workspace at a revision, or what a tape says of it.
pub struct Past {
    /// `None` where a tape answers.
    revision: Option<Revision>,
    tape: Tape,
    /// What was asked for, in the questions to the tape.
    name: String,
}

impl Past {
    /// The state of the workspace at `root` at a revision.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn at(root: &AbsPath, revision: &str, tape: &Tape) -> Result<Self, HistoryError> {
        let mut found = None;
        let find = || Revision::at(root, revision).map(|revision| found = Some(revision));
        let lost = || Err(HistoryError::NoRepository("it was not recorded".to_owned()));
        tape.ask(Door::History, &("at", revision), find, lost)?;
        Ok(Self { revision: found, tape: tape.clone(), name: revision.to_owned() })
    }

    /// The state of the workspace at the latest revision, on the way of first parents from the present one, in which a file
    /// had a content. `None` when it had not, as far back as is looked.
    #[must_use]
    pub fn holding(root: &AbsPath, path: &WorkspacePath, digest: &Digest, tape: &Tape) -> Option<Self> {
        let mut found = None;
        let find = || {
            found = Revision::holding(root, path, digest);
            found.is_some()
        };
        let name = format!("{path} {digest}");
        let has = tape.ask(Door::History, &("holding", &name), find, || false);
        has.then(|| Self { revision: found, tape: tape.clone(), name })
    }

    /// The content of a file; `None` when there was no such file.
    #[must_use]
    pub fn read(&self, path: &WorkspacePath) -> Option<Vec<u8>> {
        let question = (&self.name, "read", path.as_str());
        self.tape.bytes(Door::History, &question, || self.revision.as_ref()?.read(path))
    }

    /// Whether a path was a file, a folder, or nothing (`None`).
    #[must_use]
    pub fn is_folder(&self, path: &str) -> Option<bool> {
        self.ask("folder", path, |revision| revision.is_folder(path))
    }

    /// The names in a folder, sorted.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        self.ask("list", path, |revision| revision.list(path))
    }

    /// Every Python file.
    #[must_use]
    pub fn python_files(&self) -> Vec<WorkspacePath> {
        self.ask("files", "", Revision::python_files)
    }

    /// Every file that is wanted, with its content; nothing where a tape answers.
    #[must_use]
    pub fn files(&self, wanted: impl Fn(&WorkspacePath) -> bool) -> BTreeMap<WorkspacePath, Vec<u8>> {
        self.revision.as_ref().map(|revision| revision.files(wanted)).unwrap_or_default()
    }

    /// The present path of a file that is gone, found as git finds renames: of the files that are new the one that has the most
    /// of its bytes, in whole lines, at least half of the longer of both, and that is not more like another file that is gone.
    #[must_use]
    pub fn renamed(&self, path: &WorkspacePath, now: &Snapshot) -> Option<WorkspacePath> {
        self.ask("renamed", path.as_str(), |revision| revision.renamed(path, now))
    }

    fn ask<A>(&self, what: &str, path: &str, live: impl FnOnce(&Revision) -> A) -> A
    where
        A: Default + Serialize + serde::de::DeserializeOwned,
    {
        let asked = || self.revision.as_ref().map(live).unwrap_or_default();
        self.tape.ask(Door::History, &(&self.name, what, path), asked, A::default)
    }
}

/// A revision in a repository.
struct Revision {
    repository: Repository,
    tree: git2::Oid,
    /// The workspace's folder in the repository, with a slash at its end unless it is empty.
    prefix: String,
    /// The Python files, once they were asked for.
    blobs: OnceCell<BTreeMap<WorkspacePath, git2::Oid>>,
}

impl Revision {
    fn at(root: &AbsPath, revision: &str) -> Result<Self, HistoryError> {
        let (repository, prefix) = repository_around(root)?;
        let tree = {
            let found = repository.revparse_single(revision).and_then(|object| object.peel(ObjectType::Tree));
            let no_revision = |error: git2::Error| HistoryError::NoRevision {
                revision: revision.to_owned(),
                reason: error.message().to_owned(),
            };
            found.map_err(no_revision)?.id()
        };
        Ok(Self { repository, tree, prefix, blobs: OnceCell::new() })
    }

    fn holding(root: &AbsPath, path: &WorkspacePath, digest: &Digest) -> Option<Self> {
        let (repository, prefix) = repository_around(root).ok()?;
        let whole = format!("{prefix}{path}");
        let tree = {
            let mut commit = repository.head().ok()?.peel_to_commit().ok()?;
            let mut last = None;
            let mut contents = 0;
            let mut found = None;
            for _ in 0..MAX_COMMITS {
                let tree = commit.tree().ok()?;
                let blob = tree.get_path(whole.as_ref()).ok().map(|entry| entry.id());
                if blob != last
                    && let Some(blob) = blob.and_then(|blob| repository.find_blob(blob).ok())
                {
                    contents += 1;
                    if Digest::of(blob.content()) == *digest {
                        found = Some(tree.id());
                        break;
                    }
                }
                last = blob;
                if contents >= MAX_VERSIONS {
                    break;
                }
                let Ok(parent) = commit.parent(0) else { break };
                commit = parent;
            }
            found?
        };
        Some(Self { repository, tree, prefix, blobs: OnceCell::new() })
    }

    fn tree(&self) -> Option<Tree<'_>> {
        self.repository.find_tree(self.tree).ok()
    }

    fn read(&self, path: &WorkspacePath) -> Option<Vec<u8>> {
        let blob = match self.blobs.get().and_then(|blobs| blobs.get(path)) {
            Some(blob) => *blob,
            None => self.tree()?.get_path(format!("{}{path}", self.prefix).as_ref()).ok()?.id(),
        };
        let blob = self.repository.find_blob(blob).ok()?;
        (blob.size() as u64 <= MAX_FILE_BYTES).then(|| blob.content().to_vec())
    }

    fn is_folder(&self, path: &str) -> Option<bool> {
        if path.is_empty() && self.prefix.is_empty() {
            return Some(true);
        }
        let whole = format!("{}{path}", self.prefix);
        let entry = self.tree()?.get_path(whole.trim_end_matches('/').as_ref()).ok()?;
        match entry.kind() {
            Some(ObjectType::Tree) => Some(true),
            Some(ObjectType::Blob) => Some(false),
            _ => None,
        }
    }

    fn list(&self, path: &str) -> Vec<String> {
        let whole = format!("{}{path}", self.prefix);
        let whole = whole.trim_end_matches('/');
        let root = self.tree();
        let folder = if whole.is_empty() {
            root
        } else {
            let entry = root.as_ref().and_then(|tree| tree.get_path(whole.as_ref()).ok());
            entry.and_then(|entry| self.repository.find_tree(entry.id()).ok())
        };
        let Some(folder) = folder else { return Vec::new() };
        let mut names: Vec<String> =
            folder.iter().filter_map(|entry| entry.name().ok().map(str::to_owned)).collect();
        names.sort_unstable();
        names
    }

    fn python_files(&self) -> Vec<WorkspacePath> {
        self.blobs.get_or_init(|| self.find_blobs()).keys().cloned().collect()
    }

    fn files(&self, wanted: impl Fn(&WorkspacePath) -> bool) -> BTreeMap<WorkspacePath, Vec<u8>> {
        let read = |(path, blob): (WorkspacePath, git2::Oid)| {
            let blob = self.repository.find_blob(blob).ok()?;
            (blob.size() as u64 <= MAX_FILE_BYTES).then(|| (path, blob.content().to_vec()))
        };
        self.blobs_of(wanted).into_iter().filter_map(read).collect()
    }

    /// The Python files with their blobs, in one walk of the revision.
    fn find_blobs(&self) -> BTreeMap<WorkspacePath, git2::Oid> {
        self.blobs_of(WorkspacePath::is_python)
    }

    /// The files that are wanted with their blobs, in one walk of the revision.
    fn blobs_of(&self, wanted: impl Fn(&WorkspacePath) -> bool) -> BTreeMap<WorkspacePath, git2::Oid> {
        let mut found = BTreeMap::new();
        let mut visit = |folder: &str, entry: &git2::TreeEntry<'_>| {
            let whole = entry.name().map(|name| format!("{folder}{name}")).unwrap_or_default();
            let inside = whole.strip_prefix(&self.prefix);
            // A link's blob is the path that it leads to, and no source.
            if entry.kind() == Some(ObjectType::Blob) && entry.filemode() != LINK {
                let path = inside.and_then(WorkspacePath::new).filter(|path| wanted(path));
                found.extend(path.map(|path| (path, entry.id())));
            }
            let leads_in = inside.is_some() || self.prefix.starts_with(&format!("{whole}/"));
            if entry.kind() == Some(ObjectType::Tree) && !leads_in {
                return TreeWalkResult::Skip;
            }
            TreeWalkResult::Ok
        };
        if let Some(tree) = self.tree() {
            // A tree that cannot be read is one without files.
            let _ = tree.walk(TreeWalkMode::PreOrder, |folder, entry| visit(folder, entry));
        }
        found
    }

    fn renamed(&self, path: &WorkspacePath, now: &Snapshot) -> Option<WorkspacePath> {
        let before = self.blobs.get_or_init(|| self.find_blobs());
        let gone: Vec<(&WorkspacePath, Vec<u8>)> = before
            .keys()
            .filter(|other| !now.files().contains_key(*other))
            .filter_map(|other| Some((other, self.read(other)?)))
            .collect();
        let own = &gone.iter().find(|(other, _)| *other == path)?.1;
        let name = |path: &WorkspacePath| path.as_str().rsplit('/').next().map(str::to_owned);
        let new = now.files().keys().filter(|other| other.is_python() && !before.contains_key(*other));
        let mut candidates: Vec<(u64, bool, &WorkspacePath, Vec<u8>)> = new
            .take(MAX_NEW)
            .filter_map(|other| {
                let bytes = read_bytes(&now.absolute(other)).ok()?;
                let likeness = likeness(own, &bytes);
                (likeness >= HALF).then(|| (likeness, name(other) == name(path), other, bytes))
            })
            .collect();
        candidates.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.cmp(b.2)));
        let is_ours = |(own, _, _, bytes): &&(u64, bool, &WorkspacePath, Vec<u8>)| {
            gone.iter().all(|(other, text)| *other == path || likeness(text, bytes) <= *own)
        };
        candidates.iter().find(is_ours).map(|(_, _, path, _)| (*path).clone())
    }
}

/// How many new files are looked at for one that is gone.
const MAX_NEW: usize = 2000;
/// Two files that have half of their bytes in common are one, as git sees it.
const HALF: u64 = 500;

/// The share of the longer text, in thousandths, that both have in common as whole lines.
fn likeness(old: &[u8], new: &[u8]) -> u64 {
    let (shorter, longer) = (old.len().min(new.len()) as u64, old.len().max(new.len()) as u64);
    if old == new {
        return 1000;
    }
    if longer == 0 || shorter * 1000 / longer < HALF {
        return 0;
    }
    let mut lines: BTreeMap<&[u8], u64> = BTreeMap::new();
    for line in old.split_inclusive(|byte| *byte == b'\n') {
        *lines.entry(line).or_default() += 1;
    }
    let mut common = 0;
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        if let Some(left) = lines.get_mut(line).filter(|left| **left > 0) {
            *left -= 1;
            common += line.len() as u64;
        }
    }
    common * 1000 / longer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::snapshot::Trust;

    fn commit(repository: &Repository, message: &str) -> String {
        let mut index = repository.index().unwrap();
        index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
        index.write().unwrap();
        let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
        let signature = git2::Signature::new("a", "a@b", &git2::Time::new(0, 0)).unwrap();
        let parent = repository.head().ok().and_then(|head| head.peel_to_commit().ok());
        let parents: Vec<_> = parent.iter().collect();
        let id = repository.commit(Some("HEAD"), &signature, &signature, message, &tree, &parents).unwrap();
        id.to_string()
    }

    #[test]
    fn files_of_a_revision_and_where_they_went() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let repository = Repository::init(folder.path()).unwrap();
        std::fs::create_dir_all(at("ws/pkg")).unwrap();
        let text: String = (0..30).map(|n| format!("def f{n}(): return {n}\n")).collect();
        std::fs::write(at("ws/pkg/a.py"), &text).unwrap();
        std::fs::write(at("ws/b.py"), "x = 1\n").unwrap();
        let first = commit(&repository, "one");
        std::fs::remove_file(at("ws/pkg/a.py")).unwrap();
        std::fs::write(at("ws/c.py"), format!("import os\n{text}")).unwrap();
        std::fs::write(at("ws/b.py"), "x = 2\n").unwrap();
        let root = AbsPath::new(at("ws")).unwrap();
        let path = |path: &str| WorkspacePath::new(path).unwrap();
        let past = Past::at(&root, "HEAD", &Tape::off()).unwrap();
        assert_eq!(past.read(&path("pkg/a.py")).as_deref(), Some(text.as_bytes()));
        assert_eq!(past.read(&path("b.py")).as_deref(), Some(&b"x = 1\n"[..]));
        assert_eq!(past.read(&path("c.py")), None);
        assert_eq!(past.python_files(), [path("b.py"), path("pkg/a.py")]);
        assert_eq!(
            (past.list(""), past.list("pkg")),
            (vec!["b.py".to_owned(), "pkg".to_owned()], vec!["a.py".to_owned()])
        );
        assert_eq!(
            (past.is_folder("pkg"), past.is_folder("b.py"), past.is_folder("d")),
            (Some(true), Some(false), None)
        );
        let now = Snapshot::take(&root, None, Trust::Content, 1);
        assert_eq!(past.renamed(&path("pkg/a.py"), &now), Some(path("c.py")));
        assert_eq!(past.renamed(&path("b.py"), &now), None);
        assert!(Past::at(&root, &first[..8], &Tape::off()).is_ok());
        commit(&repository, "two");
        let tree = past.revision.as_ref().map(|revision| revision.tree);
        let holding =
            |file: &str, text: &str| Revision::holding(&root, &path(file), &Digest::of(text.as_bytes()));
        assert_eq!(holding("b.py", "x = 1\n").map(|past| past.tree), tree);
        assert_ne!(holding("b.py", "x = 2\n").map(|past| past.tree), tree);
        assert!(holding("b.py", "x = 3\n").is_none() && holding("d.py", "x = 1\n").is_none());
        assert!(holding("pkg/a.py", &text).is_some());
        assert!(matches!(Past::at(&root, "nowhere", &Tape::off()), Err(HistoryError::NoRevision { .. })));
    }

    #[test]
    fn a_new_file_is_what_most_of_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().as_path()).unwrap();
            std::fs::write(path.as_path(), text).unwrap();
        };
        let path = |path: &str| WorkspacePath::new(path).unwrap();
        let lines = |name: &str| (0..20).map(|n| format!("{name} = {n}\n")).collect::<String>();
        let repository = Repository::init(folder.path()).unwrap();
        write("w[1]/a.py", &lines("a"));
        write("w[1]/b.py", &format!("{}{}", lines("a"), lines("b")));
        write("other/c.py", &lines("c"));
        commit(&repository, "one");
        let inner = root.join("w[1]");
        let past = Past::at(&inner, "HEAD", &Tape::off()).unwrap();
        assert_eq!(past.python_files(), [path("a.py"), path("b.py")]);
        std::fs::remove_file(inner.join("a.py").as_path()).unwrap();
        std::fs::remove_file(inner.join("b.py").as_path()).unwrap();
        // It is more like the other one that is gone.
        write("w[1]/new.py", &format!("{}{}x = 1\n", lines("a"), lines("b")));
        let now = Snapshot::take(&inner, None, Trust::Content, 1);
        assert_eq!(past.renamed(&path("a.py"), &now), None);
        assert_eq!(past.renamed(&path("b.py"), &now), Some(path("new.py")));
        write("w[1]/a/a.py", &lines("a"));
        let now = Snapshot::take(&inner, None, Trust::Content, 1);
        assert_eq!(past.renamed(&path("a.py"), &now), Some(path("a/a.py")));
        assert_eq!(likeness(b"", b""), 1000);
        assert_eq!(likeness(b"a\n", b""), 0);
    }

    #[test]
    fn no_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        assert!(matches!(Past::at(&root, "HEAD", &Tape::off()), Err(HistoryError::NoRepository(_))));
    }
}
