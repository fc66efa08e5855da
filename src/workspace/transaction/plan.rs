//! Turns changes into journal entries, and checks them against the files on disk.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::FileType;

use super::error::TransactionError;
use super::file_image::{Content, FileImage, FileMetadata, read_entry, read_metadata};
use super::journal::JournalEntry;
use super::tree::{RealPath, Tree};
use super::{Change, Policy};
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath, touches_git};
use crate::workspace::files::MAX_FILE_BYTES;
use crate::workspace::git::{has_entry, has_names_of_git_folder, is_git_folder};

/// The change of one path: what must be there, and what will be.
#[derive(Debug, Clone)]
pub(super) struct PathChange {
    /// The real path if it is known; otherwise it is resolved from the path.
    pub(super) real_path: Option<RealPath>,
    /// Whether a symbolic link is followed.
    follow: bool,
    /// Whether the file is moved away, which would separate it from its other hard links.
    moved: bool,
    expect: Expect,
    new_state: Option<NewState>,
}

/// The required current state of a path.
#[derive(Debug, Clone)]
pub(super) enum Expect {
    Nothing,
    /// A file with this digest, or a link to such a file.
    Digest(Digest),
    /// Exactly this content.
    Content(Content),
}

/// The new state of a path.
#[derive(Debug, Clone)]
pub(super) struct NewState {
    content: NewContent,
    metadata: NewMetadata,
    /// Whether it will be executable, if that differs from `metadata`.
    executable: Option<bool>,
}

#[derive(Debug, Clone)]
enum NewContent {
    Bytes(Vec<u8>),
    Link(Vec<u8>),
    /// The content of this path.
    Path(WorkspacePath),
}

/// The metadata of the new file.
#[derive(Debug, Clone)]
enum NewMetadata {
    /// That of the replaced file, or the system's defaults if there is none.
    OfReplaced,
    /// That of the file at this path.
    OfPath(WorkspacePath),
    /// This metadata.
    Given(Option<FileMetadata>),
}

/// The checked changes: entries, new bytes and pre-images, all in the same order.
#[derive(Debug, Default)]
pub(super) struct CheckedChanges {
    pub(super) entries: Vec<JournalEntry>,
    pub(super) contents: Vec<Vec<u8>>,
    pub(super) pre_images: Vec<Vec<u8>>,
    /// The folders that have to be created.
    pub(super) missing_folders: Vec<RealPath>,
    /// The folders above removed files, with their modes.
    pub(super) folders_above: BTreeMap<RealPath, u32>,
}

/// The changes by path.
pub(super) fn path_changes(
    changes: &[Change],
) -> Result<BTreeMap<WorkspacePath, PathChange>, TransactionError> {
    let mut new_states: BTreeMap<&WorkspacePath, (Expect, bool, NewState)> = BTreeMap::new();
    let mut removals: BTreeMap<&WorkspacePath, (Digest, bool)> = BTreeMap::new();
    for change in changes {
        let (new_state, removal) = match change {
            Change::Write { path, before, content, executable } => {
                let expect = before.map_or(Expect::Nothing, Expect::Digest);
                let content = NewContent::Bytes(content.clone());
                let new_state =
                    NewState { content, metadata: NewMetadata::OfReplaced, executable: *executable };
                (Some((path, (expect, before.is_some(), new_state))), None)
            }
            Change::Delete { path, before } => (None, Some((path, (*before, false)))),
            Change::Move { from, to, before, content, executable } => {
                let content =
                    content.clone().map_or_else(|| NewContent::Path(from.clone()), NewContent::Bytes);
                let new_state = NewState {
                    content,
                    metadata: NewMetadata::OfPath(from.clone()),
                    executable: *executable,
                };
                (Some((to, (Expect::Nothing, false, new_state))), Some((from, (*before, true))))
            }
        };
        let taken = new_state.and_then(|(path, new_state)| new_states.insert(path, new_state).map(|_| path));
        let taken = taken
            .or_else(|| removal.and_then(|(path, removal)| removals.insert(path, removal).map(|_| path)));
        if let Some(path) = taken {
            return Err(TransactionError::Overlap { path: path.clone() });
        }
    }
    let mut path_changes: BTreeMap<WorkspacePath, PathChange> = BTreeMap::new();
    for (path, (expect, follow, new_state)) in new_states {
        let (expect, moved) = match (expect, removals.remove(path)) {
            (expect, None) => (expect, false),
            // One change removes the file that another one replaces.
            (Expect::Nothing, Some((digest, moved))) => (Expect::Digest(digest), moved),
            _ => return Err(TransactionError::Overlap { path: path.clone() }),
        };
        path_changes.insert(
            path.clone(),
            PathChange { real_path: None, follow, moved, expect, new_state: Some(new_state) },
        );
    }
    for (path, (digest, moved)) in removals {
        let change = PathChange {
            real_path: None,
            follow: false,
            moved,
            expect: Expect::Digest(digest),
            new_state: None,
        };
        path_changes.insert(path.clone(), change);
    }
    Ok(path_changes)
}

impl PathChange {
    /// A change of an entry's file that expects it to be as in an image; `None` if there must be no file.
    fn expecting(entry: &JournalEntry, image: Option<&FileImage>, new_state: Option<NewState>) -> Self {
        Self {
            real_path: Some(entry.real_path.clone()),
            follow: false,
            moved: false,
            expect: image.map_or(Expect::Nothing, |image| Expect::Content(image.content.clone())),
            new_state,
        }
    }

    /// A change that can only be made if an entry's file is as it was before. It is checked, and never made.
    pub(super) fn of_restored(entry: &JournalEntry) -> Self {
        let new_state = entry.after.as_ref().map(|_| NewState {
            content: NewContent::Bytes(Vec::new()),
            metadata: NewMetadata::OfReplaced,
            executable: None,
        });
        Self::expecting(entry, entry.before.as_ref(), new_state)
    }

    /// The change that undoes an entry; `bytes` are its pre-image.
    pub(super) fn inverse(entry: &JournalEntry, bytes: Vec<u8>) -> Self {
        let new_state = entry.before.as_ref().map(|image| match &image.content {
            Content::Link { target } => NewState {
                content: NewContent::Link(target.clone()),
                metadata: NewMetadata::Given(None),
                executable: None,
            },
            // If the transaction did not change the metadata, the current metadata stays.
            _ if entry.after.as_ref().is_some_and(|after| after.metadata == image.metadata) => NewState {
                content: NewContent::Bytes(bytes),
                metadata: NewMetadata::OfReplaced,
                executable: None,
            },
            _ => NewState {
                content: NewContent::Bytes(bytes),
                metadata: NewMetadata::Given(image.metadata.clone()),
                executable: None,
            },
        });
        Self::expecting(entry, entry.after.as_ref(), new_state)
    }
}

/// Resolves and checks changes.
pub(super) struct Checker<'t> {
    pub(super) tree: &'t Tree,
    pub(super) root: &'t AbsPath,
    /// The git folder, which may be outside of the worktree.
    pub(super) git: Option<&'t AbsPath>,
    pub(super) policy: Policy,
}

impl CheckedChanges {
    /// Sorts everything by real path, which is the order of the journal. With symbolic links, that differs from the
    /// order of the paths.
    fn sort(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        let contents = std::mem::take(&mut self.contents).into_iter();
        let pre_images = std::mem::take(&mut self.pre_images).into_iter();
        let mut all: Vec<_> = entries.into_iter().zip(contents.zip(pre_images)).collect();
        all.sort_by(|(a, _), (b, _)| a.real_path.cmp(&b.real_path));
        for (entry, (content, pre_image)) in all {
            self.entries.push(entry);
            self.contents.push(content);
            self.pre_images.push(pre_image);
        }
    }
}

impl Checker<'_> {
    /// Checks all changes. Files that already have the new content are omitted.
    pub(super) fn check(
        &self,
        path_changes: &BTreeMap<WorkspacePath, PathChange>,
    ) -> Result<CheckedChanges, TransactionError> {
        let mut real_paths: BTreeMap<RealPath, &WorkspacePath> = BTreeMap::new();
        let mut found: BTreeMap<&WorkspacePath, FoundFile> = BTreeMap::new();
        let mut removed: BTreeMap<(u64, u64), &WorkspacePath> = BTreeMap::new();
        for (path, change) in path_changes {
            let real_path = self.resolve(path, change)?;
            if real_paths.insert(real_path.clone(), path).is_some() {
                return Err(TransactionError::Overlap { path: path.clone() });
            }
            let at = self.find(path, change, real_path)?;
            if change.new_state.is_none() {
                removed.extend(at.inode.map(|inode| (inode, path)));
            }
            found.insert(path, at);
        }
        let mut checked = CheckedChanges::default();
        for (path, change) in path_changes {
            let at = &found[path];
            if matches!(change.expect, Expect::Nothing)
                && let Some(inode) = at.inode
            {
                let to = path.clone();
                return Err(match removed.get(&inode) {
                    Some(&from) if from.as_str().to_lowercase() == to.as_str().to_lowercase() => {
                        TransactionError::CaseOnly { from: from.clone(), to }
                    }
                    _ => TransactionError::Exists { path: to },
                });
            }
            self.add(path, change, &found, &mut checked)?;
        }
        checked.missing_folders.sort();
        checked.missing_folders.dedup();
        checked.sort();
        self.check_made_git_folders(&checked.entries)?;
        Ok(checked)
    }

    fn add(
        &self,
        path: &WorkspacePath,
        change: &PathChange,
        found: &BTreeMap<&WorkspacePath, FoundFile>,
        checked: &mut CheckedChanges,
    ) -> Result<(), TransactionError> {
        let at = &found[path];
        let cannot = || TransactionError::refused("read", path);
        let (after, bytes) = match &change.new_state {
            None => (None, Vec::new()),
            Some(new_state) => {
                let (content, bytes) = match &new_state.content {
                    NewContent::Bytes(bytes) => (Content::of(bytes), bytes.clone()),
                    NewContent::Link(target) => (Content::Link { target: target.clone() }, Vec::new()),
                    NewContent::Path(from) => {
                        let from = &found[from];
                        let content = from.before.as_ref().map(|image| image.content.clone());
                        (content.unwrap_or(Content::Other), from.bytes.clone())
                    }
                };
                let mut metadata = match &new_state.metadata {
                    NewMetadata::OfReplaced => at.before.as_ref().and_then(|image| image.metadata.clone()),
                    NewMetadata::OfPath(from) => {
                        found[from].before.as_ref().and_then(|image| image.metadata.clone())
                    }
                    NewMetadata::Given(metadata) => metadata.clone(),
                };
                if let (Some(metadata), Some(executable)) = (&mut metadata, new_state.executable) {
                    metadata.mode = with_execution(metadata.mode, executable);
                }
                let executable = metadata.is_none() && new_state.executable == Some(true);
                (Some(FileImage { content, metadata, executable }), bytes)
            }
        };
        // What moves to where the same bytes were changes nothing there: which of two states a file is in has to be
        // seen in its content.
        let content = |image: &Option<FileImage>| image.as_ref().map(|image| image.content.clone());
        if content(&at.before) == content(&after) {
            return Ok(());
        }
        if at.before.is_none() {
            checked.missing_folders.extend(self.tree.missing_above(&at.real_path).map_err(cannot())?);
        }
        if after.is_none() && !at.real_path.outside {
            let mut folder = at.real_path.parent();
            while let Some(above) = folder.filter(|folder| !folder.path.is_empty()) {
                folder = above.parent();
                if let btree_map::Entry::Vacant(unseen) = checked.folders_above.entry(above) {
                    let holder = self.tree.folder_of(unseen.key()).map_err(cannot())?;
                    let stat = self.tree.sys.stat(holder.as_fd(), unseen.key().name()).map_err(cannot())?;
                    unseen.insert(stat.map_or(0o755, |stat| stat.mode));
                }
            }
        }
        checked.entries.push(JournalEntry {
            path: path.clone(),
            real_path: at.real_path.clone(),
            temp: String::new(),
            before: at.before.clone(),
            after,
            offset: 0,
        });
        checked.contents.push(bytes);
        checked.pre_images.push(at.bytes.clone());
        Ok(())
    }

    /// Resolves a path.
    pub(super) fn resolve(
        &self,
        path: &WorkspacePath,
        change: &PathChange,
    ) -> Result<RealPath, TransactionError> {
        if let Some(real_path) = &change.real_path {
            if real_path.outside && self.policy.jail {
                return Err(TransactionError::Outside {
                    path: path.clone(),
                    leads_to: real_path.to_string(),
                });
            }
            // The folder around it may have become a git folder since.
            if self.absolute(real_path).is_some_and(|real| self.is_in_git_folder(&real)) {
                return Err(TransactionError::GitFolder { path: path.clone() });
            }
            return Ok(real_path.clone());
        }
        if touches_git(path.as_str()) {
            return Err(TransactionError::GitFolder { path: path.clone() });
        }
        let (folder, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let mut real = self.real_folder(path, folder)?.join(name);
        if change.follow && real.as_path().is_symlink() {
            real = self
                .canonical(path, &real)?
                .ok_or_else(|| TransactionError::Changed { path: path.clone() })?;
        }
        let in_git = self.git.is_some_and(|git| real.strip_prefix(git).is_some());
        if in_git
            || self.is_in_git_folder(&real)
            || touches_git(real.as_str().strip_prefix(self.root.as_str()).unwrap_or(real.as_str()))
        {
            return Err(TransactionError::GitFolder { path: path.clone() });
        }
        match real.strip_prefix(self.root) {
            Some(inside) => Ok(RealPath { outside: false, path: inside.to_owned() }),
            None if self.policy.jail => {
                Err(TransactionError::Outside { path: path.clone(), leads_to: real.to_string() })
            }
            None => Ok(RealPath { outside: true, path: real.as_str().trim_start_matches('/').to_owned() }),
        }
    }

    fn absolute(&self, path: &RealPath) -> Option<AbsPath> {
        match path.outside {
            true => AbsPath::new(format!("/{}", path.path)).ok(),
            false => Some(self.root.join(&path.path)),
        }
    }

    /// Whether a file is in a git folder of any name, below the workspace's root if it is in the workspace: git would run its hooks,
    /// and what its configuration names.
    fn is_in_git_folder(&self, real: &AbsPath) -> bool {
        let mut folder = real.parent();
        while folder != *self.root {
            if is_git_folder(&folder) {
                return true;
            }
            let above = folder.parent();
            if above == folder {
                return false;
            }
            folder = above;
        }
        false
    }

    /// Refuses new files that together, or with files that are there, make a folder that git takes for a git folder (see
    /// [`is_git_folder`]), with a configuration that git would follow in it.
    fn check_made_git_folders(&self, entries: &[JournalEntry]) -> Result<(), TransactionError> {
        let created = entries.iter().filter(|entry| entry.before.is_none());
        let created: Vec<(&WorkspacePath, AbsPath)> =
            created.filter_map(|entry| Some((&entry.path, self.absolute(&entry.real_path)?))).collect();
        let mut made: BTreeMap<AbsPath, BTreeSet<String>> = BTreeMap::new();
        for (_, file) in &created {
            let mut at = file.clone();
            while at != *self.root && at.parent() != at {
                let name = at.as_str().rsplit('/').next().unwrap_or_default();
                // A file system may ignore case.
                made.entry(at.parent()).or_default().insert(name.to_ascii_lowercase());
                at = at.parent();
            }
        }
        let is_made = |(folder, names): &(AbsPath, BTreeSet<String>)| {
            // A folder that has the names already is nothing that the edit makes.
            !is_git_folder(folder)
                && has_names_of_git_folder(|name| {
                    names.contains(&name.to_ascii_lowercase()) || has_entry(folder, name)
                })
        };
        let git_folders: Vec<(AbsPath, BTreeSet<String>)> = made.into_iter().filter(is_made).collect();
        let is_inside =
            |file: &AbsPath| git_folders.iter().any(|(folder, _)| file.strip_prefix(folder).is_some());
        match created.into_iter().find(|(_, file)| is_inside(file)) {
            Some((path, _)) => Err(TransactionError::GitFolder { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// Whether an entry's path still resolves to the same real path.
    pub(super) fn still_resolves(&self, entry: &JournalEntry) -> Result<bool, TransactionError> {
        if !entry.real_path.outside && entry.real_path.path == entry.path.as_str() {
            // The path has no links, and folders are opened without following links.
            return Ok(true);
        }
        let is_link = |image: &FileImage| matches!(image.content, Content::Link { .. });
        let follow = entry.after.is_some() && entry.before.as_ref().is_some_and(|image| !is_link(image));
        let change =
            PathChange { real_path: None, follow, moved: false, expect: Expect::Nothing, new_state: None };
        Ok(self.resolve(&entry.path, &change)? == entry.real_path)
    }

    /// A folder's path with all links resolved, also when the folder does not exist yet.
    fn real_folder(&self, path: &WorkspacePath, folder: &str) -> Result<AbsPath, TransactionError> {
        let mut existing = self.root.join(folder);
        let mut missing: Vec<String> = Vec::new();
        loop {
            if let Some(real) = self.canonical(path, &existing)? {
                return Ok(missing.iter().rev().fold(real, |at, name| at.join(name)));
            }
            missing.push(existing.file_name().to_owned());
            existing = existing.parent();
        }
    }

    /// A path with all links resolved; `None` when it does not exist.
    fn canonical(&self, path: &WorkspacePath, at: &AbsPath) -> Result<Option<AbsPath>, TransactionError> {
        match self.tree.sys.canonical(at.as_path()) {
            Ok(real) => AbsPath::new(real).map(Some).map_err(|error| TransactionError::Refused {
                doing: "follow",
                path: path.to_string(),
                reason: error.to_string(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TransactionError::refused("follow", path)(error)),
        }
    }

    /// Reads the current file, and checks that it is the expected one and may be changed.
    fn find(
        &self,
        path: &WorkspacePath,
        change: &PathChange,
        real_path: RealPath,
    ) -> Result<FoundFile, TransactionError> {
        let sys = &self.tree.sys;
        let cannot = || TransactionError::refused("read", path);
        let changed = || TransactionError::Changed { path: path.clone() };
        let folder = self.tree.folder_if_exists(&real_path).map_err(cannot())?;
        let Some(folder) = folder else {
            let nothing = FoundFile { real_path, before: None, bytes: Vec::new(), inode: None };
            return if matches!(change.expect, Expect::Nothing) { Ok(nothing) } else { Err(changed()) };
        };
        let folder = folder.as_fd();
        let name = real_path.name();
        let stat = sys.stat(folder, name).map_err(cannot())?;
        let Some(stat) = stat else {
            let nothing = FoundFile { real_path, before: None, bytes: Vec::new(), inode: None };
            return if matches!(change.expect, Expect::Nothing) { Ok(nothing) } else { Err(changed()) };
        };
        let inode = Some(stat.inode);
        if matches!(change.expect, Expect::Nothing) {
            // The caller decides: it may be the same file under another name.
            return Ok(FoundFile { real_path, before: None, bytes: Vec::new(), inode });
        }
        let regular = match stat.kind {
            FileType::RegularFile => true,
            FileType::Symlink => false,
            _ => return Err(TransactionError::NotAFile { path: path.clone() }),
        };
        if regular {
            let links = stat.links;
            let separates_links = change.new_state.is_some() || change.moved;
            if links > 1 && separates_links && !self.policy.hard_links {
                return Err(TransactionError::HardLinked { path: path.clone(), links });
            }
            if stat.size > MAX_FILE_BYTES {
                return Err(TransactionError::TooLarge { path: path.clone(), bytes: stat.size });
            }
            let unwritable = TransactionError::refused("write", path);
            if stat.mode & 0o222 == 0 || !sys.may_write(folder, name).map_err(unwritable)? {
                return Err(TransactionError::ReadOnly { path: path.clone() });
            }
        }
        let current = read_entry(sys, folder, name).map_err(cannot())?.ok_or_else(changed)?;
        let as_expected = match (&change.expect, &current.content) {
            (Expect::Digest(digest), Content::File { digest: is, .. }) => is == digest,
            (Expect::Digest(digest), Content::Link { .. }) => {
                let through = self.canonical(path, &self.root.join(&real_path.path))?;
                through.and_then(|real| std::fs::read(real.as_path()).ok()).map(|bytes| Digest::of(&bytes))
                    == Some(*digest)
            }
            (Expect::Content(content), is) => is == content,
            _ => false,
        };
        if !as_expected {
            return Err(changed());
        }
        let metadata = if regular { Some(read_metadata(sys, folder, name).map_err(cannot())?) } else { None };
        Ok(FoundFile {
            real_path,
            before: Some(FileImage { content: current.content, metadata, executable: false }),
            bytes: current.bytes,
            inode,
        })
    }
}

/// Adds execute permission for everyone with read permission, or removes all execute permissions.
const fn with_execution(mode: u32, executable: bool) -> u32 {
    if executable { mode | (mode & 0o444) >> 2 } else { mode & !0o111 }
}

/// What was found at a path.
#[derive(Debug)]
struct FoundFile {
    real_path: RealPath,
    before: Option<FileImage>,
    bytes: Vec<u8>,
    inode: Option<(u64, u64)>,
}
