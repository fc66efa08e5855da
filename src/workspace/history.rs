//! Reads the workspace's files at git revisions, and finds the current paths of files that were renamed since.
//!
//! It uses libgit2, which writes nothing here and runs no filter and no hook. What libgit2 refuses (another object
//! format, a repository owned by another user) is reported as an error.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use git2::{ErrorCode, ObjectType, Repository, Tree, TreeWalkMode, TreeWalkResult};
use serde::{Deserialize, Serialize};

use super::commits::{self, CommitPath, SearchLimits};
use super::files::{canonical, read_bytes};
use super::git::find_blob;
use super::git::tree_size::{MAX_TREE_ENTRIES, TreeSizes};
use super::scripts::{folder_of, folders_of_data, is_script_content, may_be_code};
use super::snapshot::Snapshot;
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::{IoKind, Tape};

/// Why a revision cannot be read.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
pub enum HistoryError {
    /// The workspace is not in a git repository, or the repository cannot be read.
    #[error("cannot read a git repository around the workspace: {0}")]
    NoRepository(String),
    /// The repository does not have the revision, or it has more files than are read.
    #[error("git has no revision {revision}{}", detail(.revision, .reason))]
    NoRevision {
        /// The requested revision.
        revision: String,
        /// git's error message.
        reason: String,
    },
}

/// git's reason, unless it only repeats that the revision does not exist.
fn detail(revision: &str, reason: &str) -> String {
    match reason == format!("revspec '{revision}' not found") {
        true => String::new(),
        false => format!(": {reason}"),
    }
}

/// The file mode of a symbolic link in git.
pub(super) const SYMLINK_MODE: i32 = 0o120_000;
/// A content is searched for in at most this many revisions.
const MAX_COMMITS: usize = 400;
/// A content is compared with at most this many contents of its file.
const MAX_VERSIONS: usize = 64;

/// The repository around the workspace, and the workspace's path in it, which ends with a slash unless it is empty.
fn repository_around(root: &AbsPath) -> Result<(Repository, String), HistoryError> {
    // Messages are part of bundles, which are the same in every folder.
    let no_repository = |error: git2::Error| {
        HistoryError::NoRepository(match error.code() {
            ErrorCode::NotFound => "there is none".to_owned(),
            ErrorCode::Owner => "it belongs to another user".to_owned(),
            _ => error.message().replace(root.as_str(), "."),
        })
    };
    let repository = Repository::discover(root.as_path()).map_err(no_repository)?;
    let folder = repository.workdir().and_then(|folder| AbsPath::new(folder).ok());
    let folder = folder.ok_or_else(|| HistoryError::NoRepository("it has no working tree".to_owned()))?;
    let prefix = canonical(root);
    let prefix = prefix.strip_prefix(&canonical(&folder)).unwrap_or_default();
    let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    Ok((repository, prefix))
}

/// A predicate for the files of the workspace at `root` that git ignores; `None` outside of a repository.
#[must_use]
pub fn ignore_filter(root: &AbsPath) -> Option<impl Fn(&WorkspacePath) -> bool + use<>> {
    let (repository, prefix) = repository_around(root).ok()?;
    Some(move |path: &WorkspacePath| {
        let path = format!("{prefix}{path}");
        // A tracked file is part of the tree even if an ignore rule matches it.
        let tracked = repository.index().is_ok_and(|index| index.get_path(path.as_ref(), 0).is_some());
        !tracked && repository.is_path_ignored(&path).unwrap_or(false)
    })
}

/// The ID of the commit that a revision names in the repository around the workspace at `root`.
///
/// # Errors
/// See [`HistoryError`].
pub fn commit_id(root: &AbsPath, revision: &str) -> Result<String, HistoryError> {
    let (repository, _) = repository_around(root)?;
    let found = repository.revparse_single(revision).and_then(|object| object.peel(ObjectType::Commit));
    let id = found.map(|commit| commit.id().to_string());
    id.map_err(|error| HistoryError::NoRevision {
        revision: revision.to_owned(),
        reason: error.message().to_owned(),
    })
}

/// The ID of the newest commit, among `HEAD` and its first parents, in which one of some files of the workspace at `root` has a
/// content that `is_wanted`, and the number of that file. `None` if no commit has one, as far as the history is searched.
#[must_use]
pub fn last_with(
    root: &AbsPath,
    files: &[&WorkspacePath],
    is_wanted: impl FnMut(usize, &[u8]) -> bool,
) -> Option<(String, usize)> {
    let (repository, prefix) = repository_around(root).ok()?;
    let paths: Vec<String> = files.iter().map(|file| format!("{prefix}{file}")).collect();
    let (commit, at) = commits::last_with(&repository, &paths, &SearchLimits::UNKNOWN, is_wanted)?;
    Some((commit.to_string(), at))
}

/// Visits up to `limit` recent revisions: `HEAD`, then its first parents. `visit` gets the name of each revision and
/// the Python files of the workspace at `root` with their digests, as in a snapshot. It returns whether to go on.
pub fn visit_recent(
    root: &AbsPath,
    limit: usize,
    mut visit: impl FnMut(&str, BTreeMap<WorkspacePath, Option<Digest>>) -> bool,
) {
    let Ok((repository, _)) = repository_around(root) else { return };
    let mut commit = repository.head().and_then(|head| head.peel_to_commit()).ok();
    let mut known: BTreeMap<git2::Oid, (Option<Digest>, bool)> = BTreeMap::new();
    let mut last = None;
    for _ in 0..limit {
        let Some(now) = commit else { return };
        let tree = now.tree_id();
        if last.replace(tree) != Some(tree) {
            let Ok((repository, prefix)) = repository_around(root) else { return };
            let revision =
                GitRevision { repository, commit: Some(now.id()), tree, prefix, blobs: OnceCell::new() };
            // Also in folders that are skipped where git does not track them.
            let blobs = revision.blobs_of(may_be_code);
            let data = folders_of_data(blobs.keys());
            let files = blobs.into_iter().filter_map(|(path, blob)| {
                let (digest, is_script) = *known.entry(blob).or_insert_with(|| {
                    let content = find_blob(&revision.repository, blob);
                    let content = content.as_ref().map(git2::Blob::content);
                    (content.map(Digest::of), content.is_some_and(is_script_content))
                });
                (path.is_python() || is_script && !data.contains(folder_of(&path))).then_some((path, digest))
            });
            if !visit(&now.id().to_string(), files.collect()) {
                return;
            }
        }
        commit = now.parent(0).ok();
    }
}

/// The files of the workspace at a git revision, from the repository or from a replaying tape.
pub struct RevisionFiles {
    /// `None` when a tape replays.
    revision: Option<GitRevision>,
    tape: Tape,
    /// The requested revision, as a key on the tape.
    name: String,
}

impl RevisionFiles {
    /// The files of the workspace at `root` at a revision.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn at(root: &AbsPath, revision: &str, tape: &Tape) -> Result<Self, HistoryError> {
        let mut found = None;
        let find = || GitRevision::at(root, revision).map(|revision| found = Some(revision));
        let lost = || Err(HistoryError::NoRepository("it is not in the trace".to_owned()));
        tape.query(IoKind::History, &("at", revision), find, lost)?;
        Ok(Self { revision: found, tape: tape.clone(), name: revision.to_owned() })
    }

    /// The files at the latest revision, among `HEAD` and its first parents, in which a file had a given content.
    /// `None` when none of the searched revisions has it.
    #[must_use]
    pub fn containing(root: &AbsPath, path: &WorkspacePath, digest: &Digest, tape: &Tape) -> Option<Self> {
        let mut found = None;
        let find = || {
            found = GitRevision::containing(root, path, digest);
            found.is_some().then_some(true)
        };
        let name = format!("{path} {digest}");
        let has = tape.query_rare(IoKind::History, &("holding", &name), find);
        has.filter(|has| *has).map(|_| Self { revision: found, tape: tape.clone(), name })
    }

    /// The content of a file; `None` when the file did not exist.
    #[must_use]
    pub fn read(&self, path: &WorkspacePath) -> Option<Vec<u8>> {
        let key = (&self.name, "read", path.as_str());
        self.tape.query_bytes(IoKind::History, &key, || self.revision.as_ref()?.read(path))
    }

    /// Whether a path was a folder or a file; `None` when it did not exist.
    #[must_use]
    pub fn is_folder(&self, path: &str) -> Option<bool> {
        self.recorded("folder", path, |revision| revision.is_folder(path))
    }

    /// The names in a folder, sorted.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        self.recorded("list", path, |revision| revision.list(path))
    }

    /// Every Python file.
    #[must_use]
    pub fn python_files(&self) -> Vec<WorkspacePath> {
        self.recorded("files", "", GitRevision::python_files)
    }

    /// The files that `wanted` selects, with their contents; empty when a tape replays.
    #[must_use]
    pub fn files(&self, wanted: impl Fn(&WorkspacePath) -> bool) -> BTreeMap<WorkspacePath, Vec<u8>> {
        self.revision.as_ref().map(|revision| revision.files(wanted)).unwrap_or_default()
    }

    /// The current path of a removed file, found as git detects renames: the added file that shares the most bytes with
    /// it, in whole lines. They must share at least half of the longer file, and the added file must not be more
    /// similar to another removed file.
    #[must_use]
    pub fn renamed(&self, path: &WorkspacePath, now: &Snapshot) -> Option<WorkspacePath> {
        self.recorded("renamed", path.as_str(), |revision| revision.renamed(path, now))
    }

    /// What `walk` finds on the commits from this revision to `HEAD`. Its result is recorded under `key`; `None` if
    /// there are no such commits.
    pub fn walk<A>(&self, key: &str, walk: impl FnOnce(&CommitPath<'_>) -> Option<A>) -> Option<A>
    where
        A: Serialize + serde::de::DeserializeOwned,
    {
        let live = || {
            let revision = self.revision.as_ref()?;
            walk(&CommitPath::new(&revision.repository, &revision.prefix, revision.commit?)?)
        };
        // Earlier versions asked less often, and their traces are replayed as well.
        self.tape.query_rare(IoKind::History, &(&self.name, "walk", key), live)
    }

    fn recorded<A>(&self, what: &str, path: &str, live: impl FnOnce(&GitRevision) -> A) -> A
    where
        A: Default + Serialize + serde::de::DeserializeOwned,
    {
        let read = || self.revision.as_ref().map(live).unwrap_or_default();
        self.tape.query(IoKind::History, &(&self.name, what, path), read, A::default)
    }
}

/// A revision in a repository.
struct GitRevision {
    repository: Repository,
    /// `None` for a revision that names a tree.
    commit: Option<git2::Oid>,
    tree: git2::Oid,
    /// The workspace's path in the repository, which ends with a slash unless it is empty.
    prefix: String,
    /// The Python files, once they were listed.
    blobs: OnceCell<BTreeMap<WorkspacePath, git2::Oid>>,
}

/// Whether the workspace's part of a tree has no more files than are read.
fn is_readable(repository: &Repository, tree: git2::Oid, prefix: &str) -> bool {
    let inside = || {
        let entry = repository.find_tree(tree).ok()?.get_path(prefix.trim_end_matches('/').as_ref()).ok()?;
        Some(entry.id())
    };
    let part = if prefix.is_empty() { Some(tree) } else { inside() };
    // A workspace that the revision does not have is empty.
    part.is_none_or(|part| TreeSizes::default().is_readable(repository, part))
}

impl GitRevision {
    fn at(root: &AbsPath, revision: &str) -> Result<Self, HistoryError> {
        let (repository, prefix) = repository_around(root)?;
        let (commit, tree) = {
            let found = repository.revparse_single(revision);
            let commit = found.as_ref().ok().and_then(|object| object.peel(ObjectType::Commit).ok());
            let found = found.and_then(|object| object.peel(ObjectType::Tree));
            let no_revision = |error: git2::Error| HistoryError::NoRevision {
                revision: revision.to_owned(),
                reason: error.message().to_owned(),
            };
            (commit.map(|commit| commit.id()), found.map_err(no_revision)?.id())
        };
        if !is_readable(&repository, tree, &prefix) {
            let reason = format!("it has more than {MAX_TREE_ENTRIES} files");
            return Err(HistoryError::NoRevision { revision: revision.to_owned(), reason });
        }
        Ok(Self { repository, commit, tree, prefix, blobs: OnceCell::new() })
    }

    fn containing(root: &AbsPath, path: &WorkspacePath, digest: &Digest) -> Option<Self> {
        let (repository, prefix) = repository_around(root).ok()?;
        let limits = SearchLimits {
            commits: MAX_COMMITS,
            contents: MAX_VERSIONS,
            bytes: usize::MAX,
            entries: usize::MAX,
        };
        let is_it = |_, content: &[u8]| Digest::of(content) == *digest;
        let (commit, _) = commits::last_with(&repository, &[format!("{prefix}{path}")], &limits, is_it)?;
        let tree = repository.find_commit(commit).ok()?.tree_id();
        if !is_readable(&repository, tree, &prefix) {
            return None;
        }
        Some(Self { repository, commit: Some(commit), tree, prefix, blobs: OnceCell::new() })
    }

    fn tree(&self) -> Option<Tree<'_>> {
        self.repository.find_tree(self.tree).ok()
    }

    fn read(&self, path: &WorkspacePath) -> Option<Vec<u8>> {
        let blob = match self.blobs.get().and_then(|blobs| blobs.get(path)) {
            Some(blob) => *blob,
            None => self.tree()?.get_path(format!("{}{path}", self.prefix).as_ref()).ok()?.id(),
        };
        Some(find_blob(&self.repository, blob)?.content().to_vec())
    }

    fn is_folder(&self, path: &str) -> Option<bool> {
        if path.is_empty() && self.prefix.is_empty() {
            return Some(true);
        }
        let repository_path = format!("{}{path}", self.prefix);
        let entry = self.tree()?.get_path(repository_path.trim_end_matches('/').as_ref()).ok()?;
        match entry.kind() {
            Some(ObjectType::Tree) => Some(true),
            Some(ObjectType::Blob) => Some(false),
            _ => None,
        }
    }

    fn list(&self, path: &str) -> Vec<String> {
        let repository_path = format!("{}{path}", self.prefix);
        let repository_path = repository_path.trim_end_matches('/');
        let root = self.tree();
        let folder = if repository_path.is_empty() {
            root
        } else {
            let entry = root.as_ref().and_then(|tree| tree.get_path(repository_path.as_ref()).ok());
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
            Some((path, find_blob(&self.repository, blob)?.content().to_vec()))
        };
        self.blobs_of(wanted).into_iter().filter_map(read).collect()
    }

    /// The files that may be code by their paths with their blobs, from one walk of the tree.
    fn find_blobs(&self) -> BTreeMap<WorkspacePath, git2::Oid> {
        self.blobs_of(may_be_code)
    }

    /// The files that `wanted` selects, with their blobs, from one walk of the tree.
    fn blobs_of(&self, wanted: impl Fn(&WorkspacePath) -> bool) -> BTreeMap<WorkspacePath, git2::Oid> {
        let mut found = BTreeMap::new();
        let mut visit = |folder: &str, entry: &git2::TreeEntry<'_>| {
            let repository_path = entry.name().map(|name| format!("{folder}{name}")).unwrap_or_default();
            let inside = repository_path.strip_prefix(&self.prefix);
            // The blob of a symbolic link is its target path, not source.
            if entry.kind() == Some(ObjectType::Blob) && entry.filemode() != SYMLINK_MODE {
                let path = inside.and_then(WorkspacePath::new).filter(|path| wanted(path));
                found.extend(path.map(|path| (path, entry.id())));
            }
            let leads_to_workspace =
                inside.is_some() || self.prefix.starts_with(&format!("{repository_path}/"));
            if entry.kind() == Some(ObjectType::Tree) && !leads_to_workspace {
                return TreeWalkResult::Skip;
            }
            TreeWalkResult::Ok
        };
        if let Some(tree) = self.tree() {
            // A tree that cannot be read counts as empty.
            let _ = tree.walk(TreeWalkMode::PreOrder, |folder, entry| visit(folder, entry));
        }
        found
    }

    fn renamed(&self, path: &WorkspacePath, now: &Snapshot) -> Option<WorkspacePath> {
        let before = self.blobs.get_or_init(|| self.find_blobs());
        let removed: Vec<(&WorkspacePath, Vec<u8>)> = before
            .keys()
            .filter(|other| !now.files().contains_key(*other))
            .filter_map(|other| Some((other, self.read(other)?)))
            .collect();
        let own = &removed.iter().find(|(other, _)| *other == path)?.1;
        let added = now.files().keys().filter(|other| may_be_code(other) && !before.contains_key(*other));
        let added = added.take(MAX_NEW_FILES);
        let added = added.filter_map(|other| Some((other, read_bytes(&now.absolute(other)).ok()?)));
        let others = removed.iter().filter(|(other, _)| *other != path).map(|(_, text)| text.as_slice());
        let found = rename_candidates(path, own, added, &others.collect::<Vec<_>>());
        found.into_iter().next().map(|candidate| candidate.path.clone())
    }
}

/// A file that another one may have been renamed to.
pub(crate) struct RenameCandidate<'p> {
    /// In thousandths.
    pub(crate) similarity: u64,
    /// How many names at the end of its path are those of the other one's: of the file, its folder, and so on.
    pub(crate) kept_names: usize,
    pub(crate) path: &'p WorkspacePath,
    pub(crate) content: Vec<u8>,
}

/// The added files that a removed one may have been renamed to, as git detects renames: the most similar first, then those that keep
/// more of its path. None to which another removed file is more similar.
pub(crate) fn rename_candidates<'p>(
    path: &WorkspacePath,
    own: &[u8],
    added: impl Iterator<Item = (&'p WorkspacePath, Vec<u8>)>,
    other_removed: &[&[u8]],
) -> Vec<RenameCandidate<'p>> {
    let kept_names = |other: &WorkspacePath| {
        let (mine, other) = (path.as_str().rsplit('/'), other.as_str().rsplit('/'));
        mine.zip(other).take_while(|(mine, other)| mine == other).count()
    };
    let mut found: Vec<RenameCandidate<'p>> = added
        .map(|(path, content)| RenameCandidate {
            similarity: similarity(own, &content),
            kept_names: kept_names(path),
            path,
            content,
        })
        .filter(|one| one.similarity >= MIN_SIMILARITY)
        .filter(|one| other_removed.iter().all(|other| similarity(other, &one.content) <= one.similarity))
        .collect();
    let rank = |one: &RenameCandidate<'_>| std::cmp::Reverse((one.similarity, one.kept_names));
    found.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.path.cmp(b.path)));
    found
}

/// At most this many added files are compared with a removed one.
const MAX_NEW_FILES: usize = 2000;
/// The similarity, in thousandths, from which two files count as renamed; git's default.
const MIN_SIMILARITY: u64 = 500;

/// The similarity of two texts: how much of the longer one, in thousandths, they share as whole lines.
fn similarity(old: &[u8], new: &[u8]) -> u64 {
    let (shorter, longer) = (old.len().min(new.len()) as u64, old.len().max(new.len()) as u64);
    if old == new {
        return 1000;
    }
    if longer == 0 || shorter * 1000 / longer < MIN_SIMILARITY {
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
    use crate::workspace::file_tree::FileTree;
    use crate::workspace::scripts::MAX_MAYBE_SCRIPTS;
    use crate::workspace::snapshot::ChangeDetection;

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
    fn files_of_a_revision_and_their_renames() {
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
        let past = RevisionFiles::at(&root, "HEAD", &Tape::off()).unwrap();
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
        let now = Snapshot::take(&root, None, ChangeDetection::Content, 1);
        assert_eq!(past.renamed(&path("pkg/a.py"), &now), Some(path("c.py")));
        assert_eq!(past.renamed(&path("b.py"), &now), None);
        assert!(RevisionFiles::at(&root, &first[..8], &Tape::off()).is_ok());
        commit(&repository, "two");
        let tree = past.revision.as_ref().map(|revision| revision.tree);
        let containing = |file: &str, text: &str| {
            GitRevision::containing(&root, &path(file), &Digest::of(text.as_bytes()))
        };
        assert_eq!(containing("b.py", "x = 1\n").map(|past| past.tree), tree);
        assert_ne!(containing("b.py", "x = 2\n").map(|past| past.tree), tree);
        assert!(containing("b.py", "x = 3\n").is_none() && containing("d.py", "x = 1\n").is_none());
        assert!(containing("pkg/a.py", &text).is_some());
        assert!(matches!(
            RevisionFiles::at(&root, "nowhere", &Tape::off()),
            Err(HistoryError::NoRevision { .. })
        ));
    }

    #[test]
    fn a_rename_goes_to_the_most_similar_removed_file() {
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
        let past = RevisionFiles::at(&inner, "HEAD", &Tape::off()).unwrap();
        assert_eq!(past.python_files(), [path("a.py"), path("b.py")]);
        std::fs::remove_file(inner.join("a.py").as_path()).unwrap();
        std::fs::remove_file(inner.join("b.py").as_path()).unwrap();
        // It is more similar to the other removed file.
        write("w[1]/new.py", &format!("{}{}x = 1\n", lines("a"), lines("b")));
        let now = Snapshot::take(&inner, None, ChangeDetection::Content, 1);
        assert_eq!(past.renamed(&path("a.py"), &now), None);
        assert_eq!(past.renamed(&path("b.py"), &now), Some(path("new.py")));
        write("w[1]/a/a.py", &lines("a"));
        let now = Snapshot::take(&inner, None, ChangeDetection::Content, 1);
        assert_eq!(past.renamed(&path("a.py"), &now), Some(path("a/a.py")));
        assert_eq!(similarity(b"", b""), 1000);
        assert_eq!(similarity(b"a\n", b""), 0);
    }

    /// Otherwise no revision would be that of a bundle.
    #[test]
    fn revisions_and_folders_have_the_same_scripts() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.join(path).as_path(), text).unwrap();
        let repository = Repository::init(folder.path()).unwrap();
        std::fs::create_dir(root.join("bin").as_path()).unwrap();
        let python = "#!/usr/bin/env python3\nx = 1\n";
        for (path, text) in [("a.py", "x"), ("bin/tool", python), ("LICENSE", "python"), ("bin/x.sh", python)]
        {
            write(path, text);
        }
        write("bin/large", &format!("{python}{}", "#".repeat(1 << 20)));
        write("bin/long", &format!("#!/usr/bin/env {}python3\n", "A=1 ".repeat(80)));
        std::fs::create_dir(root.join("data").as_path()).unwrap();
        for number in 0..=MAX_MAYBE_SCRIPTS {
            write(&format!("data/{number}"), python);
        }
        let commit = commit(&repository, "one");
        let snapshot = Snapshot::take(&root, None, ChangeDetection::Stat, 1);
        let names: Vec<&str> = snapshot.files().keys().map(WorkspacePath::as_str).collect();
        assert_eq!(names, ["a.py", "bin/tool"]);
        let mut seen = None;
        visit_recent(&root, 1, |_, digests| {
            seen = Some(digests);
            true
        });
        assert_eq!(seen.as_ref(), Some(snapshot.files()));
        let tree = FileTree::of_folder(&root);
        assert!(tree.files.keys().eq(snapshot.files().keys()));
        assert_eq!(FileTree::of_revision(&root, &commit).ok(), Some(tree));
    }

    #[test]
    fn no_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let error = RevisionFiles::at(&root, "HEAD", &Tape::off()).err().map(|error| error.to_string());
        let expected = "cannot read a git repository around the workspace: there is none";
        assert_eq!(error.as_deref(), Some(expected));
    }
}
