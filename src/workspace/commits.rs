//! The commits between a revision and `HEAD`: what they changed, and the contents before and after.
//!
//! The history may come from a hostile repository. It is read with libgit2 alone, which runs no program, filter or hook
//! here, and everything is limited by counts, so that the result does not depend on the speed of the machine.

use std::cell::RefCell;

use git2::{DiffOptions, Oid, Repository};

use super::git::find_blob;
use super::git::tree_size::TreeSizes;
use super::scripts::{folder_of, folders_of_data, is_python_script, may_be_code};
use super::states::{ChangedFile, ContentId, States};
use crate::path::WorkspacePath;

/// The most commits between the two ends.
const MAX_COMMITS: usize = 4000;
/// The most merges at which the way from `HEAD` to the revision leaves the first parent.
const MAX_BRANCHES: usize = 32;
/// The most Python files that one commit may change for its changes to be searched.
const MAX_CHANGED_FILES: usize = 2000;

/// How far the history is searched for a content.
pub(super) struct SearchLimits {
    pub(super) commits: usize,
    pub(super) contents: usize,
    pub(super) bytes: usize,
    /// The entries of folders that are read: a folder is read again in each commit that changed something below it.
    pub(super) entries: usize,
}

impl SearchLimits {
    /// For a search of something that may never have been there.
    pub(super) const UNKNOWN: Self =
        Self { commits: MAX_COMMITS, contents: 256, bytes: 128 << 20, entries: 4_000_000 };
}

/// The commits from a revision to `HEAD`, along first parents where they lead to the revision.
pub struct CommitPath<'r> {
    repository: &'r Repository,
    /// The workspace's path in the repository, which ends with a slash unless it is empty.
    prefix: &'r str,
    /// The commits with their trees, the revision first.
    commits: Vec<(Oid, Oid)>,
    sizes: RefCell<TreeSizes>,
}

impl<'r> CommitPath<'r> {
    /// The commits from `from` to `HEAD`. `None` if it is not an ancestor of `HEAD`, or too far away, or if the history
    /// cannot be read.
    pub(super) fn new(repository: &'r Repository, prefix: &'r str, from: Oid) -> Option<Self> {
        let mut found: Vec<Oid> = Vec::new();
        let mut tip = repository.head().ok()?.peel_to_commit().ok()?.id();
        for _ in 0..MAX_BRANCHES {
            let line = first_parents(repository, tip, from, MAX_COMMITS.checked_sub(found.len())?);
            if line.last() == Some(&from) {
                found.extend(line);
                found.reverse();
                let commit = |id: Oid| Some((id, repository.find_commit(id).ok()?.tree_id()));
                let commits = found.into_iter().map(commit).collect::<Option<Vec<_>>>()?;
                return Some(Self { repository, prefix, commits, sizes: RefCell::default() });
            }
            // The revision was merged. The commits that contain it are the newer part of the line.
            let contains = |id: &Oid| repository.graph_descendant_of(*id, from).unwrap_or(false);
            let merged = line.partition_point(contains);
            let merge = *line.get(merged.checked_sub(1)?)?;
            found.extend(&line[..merged]);
            let parents: Vec<Oid> = repository.find_commit(merge).ok()?.parent_ids().skip(1).collect();
            tip = parents.into_iter().find(|parent| *parent == from || contains(parent))?;
        }
        None
    }

    /// The IDs of the first and the last commit, and the workspace's path in the repository.
    #[must_use]
    pub fn ends(&self) -> String {
        format!("{} {} {}", self.id(0), self.id(self.commits.len() - 1), self.prefix)
    }
}

impl States for CommitPath<'_> {
    fn id(&self, at: usize) -> String {
        self.commits.get(at).map(|(id, _)| id.to_string()).unwrap_or_default()
    }

    fn versions(&self, path: &WorkspacePath, from: usize) -> Vec<(usize, Option<ContentId>)> {
        let path = format!("{}{path}", self.prefix);
        let parts: Vec<&str> = path.split('/').collect();
        let mut lookup = PathLookup::new(self.repository, &parts);
        let mut found = Vec::new();
        let mut last = self.commits.get(from).and_then(|(_, tree)| lookup.blob_in(*tree));
        for (at, (_, tree)) in self.commits.iter().enumerate().skip(from + 1) {
            let blob = lookup.blob_in(*tree);
            if blob != last {
                found.push((at, blob.map(ContentId::Blob)));
                last = blob;
            }
            if blob.is_none() {
                break;
            }
        }
        found
    }

    fn content(&self, id: ContentId) -> Option<Vec<u8>> {
        let ContentId::Blob(id) = id else { return None };
        Some(find_blob(self.repository, id)?.content().to_vec())
    }

    fn changes(&self, at: usize) -> Option<Vec<ChangedFile>> {
        let tree = |at: usize| self.repository.find_tree(self.commits.get(at)?.1).ok();
        let (before, after) = (tree(at.checked_sub(1)?)?, tree(at)?);
        let mut sizes = self.sizes.borrow_mut();
        if [&before, &after].iter().any(|tree| !sizes.is_readable(self.repository, tree.id())) {
            return None;
        }
        let mut options = DiffOptions::new();
        if !self.prefix.is_empty() {
            // A folder as it is written, not as a pattern.
            options.disable_pathspec_match(true).pathspec(self.prefix.trim_end_matches('/'));
        }
        let diff = self.repository.diff_tree_to_tree(Some(&before), Some(&after), Some(&mut options)).ok()?;
        let path_of = |delta: &git2::DiffDelta<'_>| {
            let path = delta.new_file().path().or_else(|| delta.old_file().path())?.to_str()?;
            WorkspacePath::new(path.strip_prefix(self.prefix)?).filter(may_be_code)
        };
        let paths: Vec<WorkspacePath> = diff.deltas().filter_map(|delta| path_of(&delta)).collect();
        let data = folders_of_data(paths.iter());
        let mut found = Vec::new();
        for delta in diff.deltas() {
            let side = |file: git2::DiffFile<'_>| {
                let is_text = matches!(file.mode(), git2::FileMode::Blob | git2::FileMode::BlobExecutable);
                (is_text && !file.id().is_zero()).then(|| ContentId::Blob(file.id()))
            };
            let Some(path) = path_of(&delta) else { continue };
            let (before, after) = (side(delta.old_file()), side(delta.new_file()));
            let is_script = |id| self.content(id).is_some_and(|content| is_python_script(&content));
            let has_script = || [before, after].into_iter().flatten().any(is_script);
            if path.is_python() || !data.contains(folder_of(&path)) && has_script() {
                found.push(ChangedFile { path, before, after });
            }
            if found.len() > MAX_CHANGED_FILES {
                return None;
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Some(found)
    }
}

/// The newest commit, from `HEAD` along first parents, in which one of some files has a content that `is_wanted`, and the number
/// of that file. The paths are those in the repository.
pub(super) fn last_with(
    repository: &Repository,
    paths: &[String],
    limits: &SearchLimits,
    mut is_wanted: impl FnMut(usize, &[u8]) -> bool,
) -> Option<(Oid, usize)> {
    let parts: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let mut lookups: Vec<(PathLookup<'_>, Option<Oid>)> =
        parts.iter().map(|parts| (PathLookup::new(repository, parts), None)).collect();
    let mut commit = repository.head().ok()?.peel_to_commit().ok()?;
    let (mut contents, mut bytes) = (0, 0);
    for _ in 0..limits.commits {
        for (at, (lookup, last)) in lookups.iter_mut().enumerate() {
            let blob = lookup.blob_in(commit.tree_id());
            if std::mem::replace(last, blob) == blob {
                continue;
            }
            let Some(blob) = blob.and_then(|blob| find_blob(repository, blob)) else { continue };
            contents += 1;
            bytes += blob.size();
            if is_wanted(at, blob.content()) {
                return Some((commit.id(), at));
            }
        }
        let entries: usize = lookups.iter().map(|(lookup, _)| lookup.entries).sum();
        if contents >= limits.contents || bytes >= limits.bytes || entries >= limits.entries {
            return None;
        }
        commit = commit.parent(0).ok()?;
    }
    None
}

/// Up to `limit` commits from `tip` along first parents, the last of which is `until` if it was reached.
fn first_parents(repository: &Repository, tip: Oid, until: Oid, limit: usize) -> Vec<Oid> {
    let mut found = Vec::new();
    let mut at = Some(tip);
    while let Some(id) = at.filter(|_| found.len() < limit) {
        found.push(id);
        at = match id == until {
            true => None,
            false => repository.find_commit(id).ok().and_then(|commit| commit.parent_id(0).ok()),
        };
    }
    found
}

/// Looks one path up in many trees, reading only the folders that differ from those of the tree before.
struct PathLookup<'l> {
    repository: &'l Repository,
    parts: &'l [&'l str],
    /// The trees along the path that were read last.
    trees: Vec<Oid>,
    blob: Option<Oid>,
    /// The entries of all trees that were read.
    entries: usize,
}

impl<'l> PathLookup<'l> {
    const fn new(repository: &'l Repository, parts: &'l [&'l str]) -> Self {
        Self { repository, parts, trees: Vec::new(), blob: None, entries: 0 }
    }

    fn blob_in(&mut self, root: Oid) -> Option<Oid> {
        let mut tree = root;
        for (level, part) in self.parts.iter().enumerate() {
            if self.trees.get(level) == Some(&tree) {
                return self.blob;
            }
            match self.trees.get_mut(level) {
                Some(known) => *known = tree,
                None => self.trees.push(tree),
            }
            let entry = self.repository.find_tree(tree).ok().and_then(|tree| {
                self.entries += tree.len();
                let entry = tree.get_name(part)?;
                Some((entry.id(), entry.kind()?, entry.filemode()))
            });
            let is_last = level + 1 == self.parts.len();
            match entry {
                Some((id, git2::ObjectType::Tree, _)) if !is_last => tree = id,
                Some((id, git2::ObjectType::Blob, mode))
                    if is_last && mode != super::history::SYMLINK_MODE =>
                {
                    self.blob = Some(id);
                }
                _ => {
                    self.trees.truncate(level + 1);
                    self.blob = None;
                    return None;
                }
            }
        }
        self.blob
    }
}
