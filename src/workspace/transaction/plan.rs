//! From changes to entries: what is to become of which file, checked against what is there now.

use std::collections::{BTreeMap, btree_map};
use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::FileType;

use super::error::TransactionError;
use super::image::{Content, Image, Meta, look, meta};
use super::journal::{Entry, touches_git};
use super::tree::{Spot, Tree};
use super::{Change, Policy};
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use crate::workspace::files::MAX_FILE_BYTES;

/// What is wanted of one path.
#[derive(Debug, Clone)]
pub(super) struct Want {
    /// Where it is, when that is known; else it is found by the path.
    pub(super) spot: Option<Spot>,
    /// Whether a link is edited through.
    follow: bool,
    /// Whether its bytes go somewhere else, so that no other name of the file goes with them.
    moved: bool,
    expect: Expect,
    put: Option<Put>,
}

/// What must be there.
#[derive(Debug, Clone)]
pub(super) enum Expect {
    Nothing,
    /// A file with these bytes, or a link that leads to such a file.
    Digest(Digest),
    /// Exactly this.
    Content(Content),
}

/// What is to be there.
#[derive(Debug, Clone)]
pub(super) struct Put {
    source: Source,
    dress: Dress,
    /// Whether it is to be executable, where that is not what its dress says.
    executable: Option<bool>,
}

#[derive(Debug, Clone)]
enum Source {
    Bytes(Vec<u8>),
    Link(Vec<u8>),
    /// What this path holds.
    Path(WorkspacePath),
}

/// What belongs to the new file.
#[derive(Debug, Clone)]
enum Dress {
    /// What belongs to the file that it replaces; if there is none, what the system gives.
    Own,
    /// What belongs to the file at this path.
    Of(WorkspacePath),
    /// This.
    Given(Option<Meta>),
}

/// Entries, the new bytes and the pre-images, all in one order.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) entries: Vec<Entry>,
    pub(super) contents: Vec<Vec<u8>>,
    pub(super) pre_images: Vec<Vec<u8>>,
    /// The folders that are missing.
    pub(super) missing: Vec<Spot>,
    /// The folders above what goes, with their modes.
    pub(super) above: BTreeMap<Spot, u32>,
}

/// What changes want, by path.
pub(super) fn wants(changes: &[Change]) -> Result<BTreeMap<WorkspacePath, Want>, TransactionError> {
    let mut puts: BTreeMap<&WorkspacePath, (Expect, bool, Put)> = BTreeMap::new();
    let mut removals: BTreeMap<&WorkspacePath, (Digest, bool)> = BTreeMap::new();
    for change in changes {
        let (put, removal) = match change {
            Change::Write { path, before, content, executable } => {
                let expect = before.map_or(Expect::Nothing, Expect::Digest);
                let source = Source::Bytes(content.clone());
                let put = Put { source, dress: Dress::Own, executable: *executable };
                (Some((path, (expect, before.is_some(), put))), None)
            }
            Change::Delete { path, before } => (None, Some((path, (*before, false)))),
            Change::Move { from, to, before, content, executable } => {
                let source = content.clone().map_or_else(|| Source::Path(from.clone()), Source::Bytes);
                let put = Put { source, dress: Dress::Of(from.clone()), executable: *executable };
                (Some((to, (Expect::Nothing, false, put))), Some((from, (*before, true))))
            }
        };
        let taken = put.and_then(|(path, put)| puts.insert(path, put).map(|_| path));
        let taken = taken
            .or_else(|| removal.and_then(|(path, removal)| removals.insert(path, removal).map(|_| path)));
        if let Some(path) = taken {
            return Err(TransactionError::Overlap { path: path.clone() });
        }
    }
    let mut wants: BTreeMap<WorkspacePath, Want> = BTreeMap::new();
    for (path, (expect, follow, put)) in puts {
        let (expect, moved) = match (expect, removals.remove(path)) {
            (expect, None) => (expect, false),
            // What one change takes away makes room for another.
            (Expect::Nothing, Some((digest, moved))) => (Expect::Digest(digest), moved),
            _ => return Err(TransactionError::Overlap { path: path.clone() }),
        };
        wants.insert(path.clone(), Want { spot: None, follow, moved, expect, put: Some(put) });
    }
    for (path, (digest, moved)) in removals {
        let want = Want { spot: None, follow: false, moved, expect: Expect::Digest(digest), put: None };
        wants.insert(path.clone(), want);
    }
    Ok(wants)
}

impl Want {
    /// What takes an entry back; `bytes` are its pre-image.
    pub(super) fn inverse(entry: &Entry, bytes: Vec<u8>) -> Self {
        let exactly = |image: &Image| Expect::Content(image.content.clone());
        let put = entry.before.as_ref().map(|image| match &image.content {
            Content::Link { target } => {
                Put { source: Source::Link(target.clone()), dress: Dress::Given(None), executable: None }
            }
            // What its owner changed about it since stays changed.
            _ if entry.after.as_ref().is_some_and(|after| after.meta == image.meta) => {
                Put { source: Source::Bytes(bytes), dress: Dress::Own, executable: None }
            }
            _ => Put {
                source: Source::Bytes(bytes),
                dress: Dress::Given(image.meta.clone()),
                executable: None,
            },
        });
        Self {
            spot: Some(entry.spot.clone()),
            follow: false,
            moved: false,
            expect: entry.after.as_ref().map_or(Expect::Nothing, exactly),
            put,
        }
    }
}

/// Who finds and checks.
pub(super) struct Checker<'t> {
    pub(super) tree: &'t Tree,
    pub(super) root: &'t AbsPath,
    /// Git's folder, wherever it is.
    pub(super) git: Option<&'t AbsPath>,
    pub(super) policy: Policy,
}

impl Checked {
    /// Orders the entries by where they are, as the journal has them, and what belongs to each with it: through links that is
    /// another order than that of their paths.
    fn sort(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        let contents = std::mem::take(&mut self.contents).into_iter();
        let pre_images = std::mem::take(&mut self.pre_images).into_iter();
        let mut all: Vec<_> = entries.into_iter().zip(contents.zip(pre_images)).collect();
        all.sort_by(|(a, _), (b, _)| a.spot.cmp(&b.spot));
        for (entry, (content, pre_image)) in all {
            self.entries.push(entry);
            self.contents.push(content);
            self.pre_images.push(pre_image);
        }
    }
}

impl Checker<'_> {
    /// Checks everything that is wanted. Files that have the wanted content already are left out.
    pub(super) fn check(&self, wants: &BTreeMap<WorkspacePath, Want>) -> Result<Checked, TransactionError> {
        let mut spots: BTreeMap<Spot, &WorkspacePath> = BTreeMap::new();
        let mut found: BTreeMap<&WorkspacePath, Found> = BTreeMap::new();
        let mut going: BTreeMap<(u64, u64), &WorkspacePath> = BTreeMap::new();
        for (path, want) in wants {
            let spot = self.spot(path, want)?;
            if spots.insert(spot.clone(), path).is_some() {
                return Err(TransactionError::Overlap { path: path.clone() });
            }
            let at = self.find(path, want, spot)?;
            if want.put.is_none() {
                going.extend(at.inode.map(|inode| (inode, path)));
            }
            found.insert(path, at);
        }
        let mut checked = Checked::default();
        for (path, want) in wants {
            let at = &found[path];
            if matches!(want.expect, Expect::Nothing)
                && let Some(inode) = at.inode
            {
                let to = path.clone();
                return Err(match going.get(&inode) {
                    Some(&from) if from.as_str().to_lowercase() == to.as_str().to_lowercase() => {
                        TransactionError::CaseOnly { from: from.clone(), to }
                    }
                    _ => TransactionError::Exists { path: to },
                });
            }
            self.add(path, want, &found, &mut checked)?;
        }
        checked.missing.sort();
        checked.missing.dedup();
        checked.sort();
        Ok(checked)
    }

    fn add(
        &self,
        path: &WorkspacePath,
        want: &Want,
        found: &BTreeMap<&WorkspacePath, Found>,
        checked: &mut Checked,
    ) -> Result<(), TransactionError> {
        let at = &found[path];
        let cannot = || TransactionError::refused("read", path);
        let (after, bytes) = match &want.put {
            None => (None, Vec::new()),
            Some(put) => {
                let (content, bytes) = match &put.source {
                    Source::Bytes(bytes) => (Content::of(bytes), bytes.clone()),
                    Source::Link(target) => (Content::Link { target: target.clone() }, Vec::new()),
                    Source::Path(from) => {
                        let from = &found[from];
                        let content = from.before.as_ref().map(|image| image.content.clone());
                        (content.unwrap_or(Content::Other), from.bytes.clone())
                    }
                };
                let mut meta = match &put.dress {
                    Dress::Own => at.before.as_ref().and_then(|image| image.meta.clone()),
                    Dress::Of(from) => found[from].before.as_ref().and_then(|image| image.meta.clone()),
                    Dress::Given(meta) => meta.clone(),
                };
                if let (Some(meta), Some(executable)) = (&mut meta, put.executable) {
                    meta.mode = with_execution(meta.mode, executable);
                }
                let executable = meta.is_none() && put.executable == Some(true);
                (Some(Image { content, meta, executable }), bytes)
            }
        };
        // What moves to where the same bytes were changes nothing there: which of two states a file is in has to be seen in
        // its content.
        let content = |image: &Option<Image>| image.as_ref().map(|image| image.content.clone());
        if content(&at.before) == content(&after) {
            return Ok(());
        }
        if at.before.is_none() {
            checked.missing.extend(self.tree.missing_above(&at.spot).map_err(cannot())?);
        }
        if after.is_none() && !at.spot.outside {
            let mut folder = at.spot.parent();
            while let Some(above) = folder.filter(|folder| !folder.path.is_empty()) {
                folder = above.parent();
                if let btree_map::Entry::Vacant(unseen) = checked.above.entry(above) {
                    let holder = self.tree.folder_of(unseen.key()).map_err(cannot())?;
                    let stat = self.tree.door.stat(holder.as_fd(), unseen.key().name()).map_err(cannot())?;
                    unseen.insert(stat.map_or(0o755, |stat| stat.mode));
                }
            }
        }
        checked.entries.push(Entry {
            path: path.clone(),
            spot: at.spot.clone(),
            temp: String::new(),
            before: at.before.clone(),
            after,
            offset: 0,
        });
        checked.contents.push(bytes);
        checked.pre_images.push(at.bytes.clone());
        Ok(())
    }

    /// Where a path leads.
    pub(super) fn spot(&self, path: &WorkspacePath, want: &Want) -> Result<Spot, TransactionError> {
        if let Some(spot) = &want.spot {
            if spot.outside && self.policy.jail {
                return Err(TransactionError::Outside { path: path.clone(), leads_to: spot.to_string() });
            }
            return Ok(spot.clone());
        }
        if touches_git(path.as_str()) {
            return Err(TransactionError::GitFolder { path: path.clone() });
        }
        let (folder, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let mut real = self.real_folder(path, folder)?.join(name);
        if want.follow && real.as_path().is_symlink() {
            real = self
                .canonical(path, &real)?
                .ok_or_else(|| TransactionError::Changed { path: path.clone() })?;
        }
        let in_git = self.git.is_some_and(|git| real.strip_prefix(git).is_some());
        if in_git || touches_git(real.as_str().strip_prefix(self.root.as_str()).unwrap_or(real.as_str())) {
            return Err(TransactionError::GitFolder { path: path.clone() });
        }
        match real.strip_prefix(self.root) {
            Some(inside) => Ok(Spot { outside: false, path: inside.to_owned() }),
            None if self.policy.jail => {
                Err(TransactionError::Outside { path: path.clone(), leads_to: real.to_string() })
            }
            None => Ok(Spot { outside: true, path: real.as_str().trim_start_matches('/').to_owned() }),
        }
    }

    /// Whether an entry's path still leads where it led.
    pub(super) fn still_leads(&self, entry: &Entry) -> Result<bool, TransactionError> {
        if !entry.spot.outside && entry.spot.path == entry.path.as_str() {
            // No link was on the way, and none is followed later.
            return Ok(true);
        }
        let is_link = |image: &Image| matches!(image.content, Content::Link { .. });
        let follow = entry.after.is_some() && entry.before.as_ref().is_some_and(|image| !is_link(image));
        let want = Want { spot: None, follow, moved: false, expect: Expect::Nothing, put: None };
        Ok(self.spot(&entry.path, &want)? == entry.spot)
    }

    /// A folder with all links resolved, also when the end of its path is still to be made.
    fn real_folder(&self, path: &WorkspacePath, folder: &str) -> Result<AbsPath, TransactionError> {
        let mut there = self.root.join(folder);
        let mut missing: Vec<String> = Vec::new();
        loop {
            if let Some(real) = self.canonical(path, &there)? {
                return Ok(missing.iter().rev().fold(real, |at, name| at.join(name)));
            }
            missing.push(there.file_name().to_owned());
            there = there.parent();
        }
    }

    /// A path with all links resolved; `None` when it leads to nothing.
    fn canonical(&self, path: &WorkspacePath, at: &AbsPath) -> Result<Option<AbsPath>, TransactionError> {
        match self.tree.door.canonical(at.as_path()) {
            Ok(real) => AbsPath::new(real).map(Some).map_err(|error| TransactionError::Refused {
                doing: "follow",
                path: path.to_string(),
                reason: error.to_string(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TransactionError::refused("follow", path)(error)),
        }
    }

    /// Looks at what is there, and whether it is what was expected and may be touched.
    fn find(&self, path: &WorkspacePath, want: &Want, spot: Spot) -> Result<Found, TransactionError> {
        let door = &self.tree.door;
        let cannot = || TransactionError::refused("read", path);
        let changed = || TransactionError::Changed { path: path.clone() };
        let folder = self.tree.folder_if_any(&spot).map_err(cannot())?;
        let Some(folder) = folder else {
            let nothing = Found { spot, before: None, bytes: Vec::new(), inode: None };
            return if matches!(want.expect, Expect::Nothing) { Ok(nothing) } else { Err(changed()) };
        };
        let folder = folder.as_fd();
        let name = spot.name();
        let stat = door.stat(folder, name).map_err(cannot())?;
        let Some(stat) = stat else {
            let nothing = Found { spot, before: None, bytes: Vec::new(), inode: None };
            return if matches!(want.expect, Expect::Nothing) { Ok(nothing) } else { Err(changed()) };
        };
        let inode = Some(stat.inode);
        if matches!(want.expect, Expect::Nothing) {
            // Told apart by the caller: it may be the same file under another name.
            return Ok(Found { spot, before: None, bytes: Vec::new(), inode });
        }
        let regular = match stat.kind {
            FileType::RegularFile => true,
            FileType::Symlink => false,
            _ => return Err(TransactionError::NotAFile { path: path.clone() }),
        };
        if regular {
            let links = stat.links;
            let parted = want.put.is_some() || want.moved;
            if links > 1 && parted && !self.policy.hard_links {
                return Err(TransactionError::HardLinked { path: path.clone(), links });
            }
            if stat.size > MAX_FILE_BYTES {
                return Err(TransactionError::TooLarge { path: path.clone(), bytes: stat.size });
            }
            let unwritable = TransactionError::refused("write", path);
            if stat.mode & 0o222 == 0 || !door.may_write(folder, name).map_err(unwritable)? {
                return Err(TransactionError::ReadOnly { path: path.clone() });
            }
        }
        let seen = look(door, folder, name).map_err(cannot())?.ok_or_else(changed)?;
        let as_expected = match (&want.expect, &seen.content) {
            (Expect::Digest(digest), Content::File { digest: is, .. }) => is == digest,
            (Expect::Digest(digest), Content::Link { .. }) => {
                let through = self.canonical(path, &self.root.join(&spot.path))?;
                through.and_then(|real| std::fs::read(real.as_path()).ok()).map(|bytes| Digest::of(&bytes))
                    == Some(*digest)
            }
            (Expect::Content(content), is) => is == content,
            _ => false,
        };
        if !as_expected {
            return Err(changed());
        }
        let meta = if regular { Some(meta(door, folder, name).map_err(cannot())?) } else { None };
        Ok(Found {
            spot,
            before: Some(Image { content: seen.content, meta, executable: false }),
            bytes: seen.bytes,
            inode,
        })
    }
}

/// A mode by which whoever may read a file may run it, or by which nobody may.
const fn with_execution(mode: u32, executable: bool) -> u32 {
    if executable { mode | (mode & 0o444) >> 2 } else { mode & !0o111 }
}

/// What was found at a path.
#[derive(Debug)]
struct Found {
    spot: Spot,
    before: Option<Image>,
    bytes: Vec<u8>,
    inode: Option<(u64, u64)>,
}
