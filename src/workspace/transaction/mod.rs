//! Changing files: all of them or none, also across a kill or a power cut, and back again.
//!
//! A [`Plan`] is checked changes; staging it writes the new files beside their targets ([`Staged`]), applying puts them in
//! place ([`Applied`]), and then they are kept or rolled back. Keeping is the point of no return: whatever ends the process
//! before it, all is old after the next command's [`Transactions::recover`]; after it, all is new. What was kept is a line of
//! the operation log and can be undone, which is a transaction as well.
//!
//! Bytes are the caller's: text, encodings and line ends are no matter here. What belongs to a file besides its bytes (mode,
//! owner, attributes, access control list) is carried over.
//!
//! Deliberately absent: whether a change is wise, what git says ([`super::git`]), time stamps of files, attributes of folders.

mod door;
mod error;
mod home;
mod image;
mod journal;
mod plan;
mod store;
mod tree;
mod undo;
mod work;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::Duration;

pub use error::{Class, TransactionError};
pub use undo::{Line, Undone};

use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use door::Door;
use home::Home;
use journal::{Entry, Heading, Journal};
use plan::{Checked, Checker};
use store::{Progress, Store};
use tree::Tree;
use work::Work;

/// How long a lock is waited for that should be free: a program that its dead holder was just starting may have a copy.
const MOMENT: Duration = Duration::from_millis(50);

/// A change of one file against what is known of it. Digests are of all bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file gets other bytes, or is made. A symbolic link is followed, if it stays in the workspace.
    Write {
        /// Which.
        path: WorkspacePath,
        /// What it has; `None` when it must not exist.
        before: Option<Digest>,
        /// What it gets.
        content: Vec<u8>,
        /// Whether it is to be executable; `None` leaves it as it is, or as new files are.
        executable: Option<bool>,
    },
    /// A file goes. Of a symbolic link it is the link that goes.
    Delete {
        /// Which.
        path: WorkspacePath,
        /// What it has; of a link, what it leads to.
        before: Digest,
    },
    /// A file gets another name, and other bytes perhaps. Of a symbolic link it is the link that moves.
    Move {
        /// The old name.
        from: WorkspacePath,
        /// The new one, which must be free, or be freed by another change.
        to: WorkspacePath,
        /// What it has; of a link, what it leads to.
        before: Digest,
        /// What it gets; `None` leaves it as it is.
        content: Option<Vec<u8>>,
        /// Whether it is to be executable; `None` leaves it as it is.
        executable: Option<bool>,
    },
}

/// What may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether everything outside the workspace is out of bounds, also through links.
    pub jail: bool,
    /// Whether a file may be replaced that has other names, which keep the old content.
    pub hard_links: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { jail: true, hard_links: false }
    }
}

/// What the operation log says about a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// What it is, for people: the command.
    pub what: String,
    /// When, in seconds since 1970.
    pub time: u64,
}

/// What an interrupted transaction came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// There was none.
    Nothing,
    /// One is under way in another process.
    UnderWay,
    /// It was taken back.
    RolledBack {
        /// Its id.
        id: String,
        /// What it was.
        what: String,
        /// Files that somebody else changed since and that were left as they are.
        foreign: Vec<WorkspacePath>,
    },
    /// It had been decided, and was cleared up.
    Finished {
        /// Its id.
        id: String,
        /// What it was.
        what: String,
    },
}

/// The transactions of one workspace.
#[derive(Debug, Clone)]
pub struct Transactions {
    root: AbsPath,
    home: Home,
    patience: Duration,
    door: Door,
}

impl Transactions {
    /// Those of the workspace at `root`, whose links are resolved. `state` is the user's folder for lanser's state, which
    /// nobody else may write to.
    #[must_use]
    pub fn new(root: &AbsPath, state: &AbsPath) -> Self {
        Self {
            root: root.clone(),
            home: Home::of(root, state),
            patience: Duration::from_secs(10),
            door: Door::default(),
        }
    }

    /// How long another lanser is waited for.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Checks changes against the disk, and touches nothing.
    ///
    /// # Errors
    /// When a file is not what it is said to be, or may not be changed.
    pub fn plan(&self, changes: Vec<Change>, policy: Policy) -> Result<Plan<'_>, TransactionError> {
        let tree = self.tree()?;
        let checked = self.checker(&tree, policy).check(&plan::wants(&changes)?)?;
        let files = checked.entries.iter().map(|entry| entry.path.clone()).collect();
        let targets = checked.entries.iter().map(|entry| entry.spot.to_string()).collect();
        Ok(Plan { of: self, changes, policy, files, targets })
    }

    fn tree(&self) -> Result<Tree, TransactionError> {
        Tree::open(&self.door, &self.root).map_err(TransactionError::refused("open", &self.root))
    }

    fn checker<'t>(&'t self, tree: &'t Tree, policy: Policy) -> Checker<'t> {
        Checker { tree, root: &self.root, git: self.home.git(), policy }
    }

    /// Finishes or takes back what was interrupted. Costs a look at the disk when there is nothing.
    ///
    /// # Errors
    /// When the disk refuses, or the journal cannot be read.
    pub fn recover(&self) -> Result<Recovery, TransactionError> {
        let place = self.home.place();
        if !Store::is_busy(place) {
            return Ok(Recovery::Nothing);
        }
        let Some(store) = Store::find(&self.door, place)? else { return Ok(Recovery::Nothing) };
        let lock = match store.lock(MOMENT) {
            Err(TransactionError::Busy { .. }) => return Ok(Recovery::UnderWay),
            lock => lock?,
        };
        Ok(self.recover_in(store, lock)?.0)
    }

    /// Recovers what one store says was interrupted; gives the lock back.
    fn recover_in(
        &self,
        store: Store,
        lock: store::Lock,
    ) -> Result<(Recovery, store::Lock), TransactionError> {
        let Some((progress, journal)) = store.interrupted(&lock)? else {
            return Ok((Recovery::Nothing, lock));
        };
        let (top, prefix) = (self.home.top(), &journal.prefix);
        let tree = Tree::beneath(&self.door, top, prefix);
        let tree = tree.map_err(TransactionError::refused("open", top.join(prefix)))?;
        let (id, what) = (journal.id.clone(), journal.what.clone());
        let work = Work { tree, store, journal, lock };
        let recovery = match progress {
            Progress::Open => Recovery::RolledBack { id, what, foreign: work.roll_back()? },
            Progress::Closing => {
                work.finish()?;
                Recovery::Finished { id, what }
            }
        };
        Ok((recovery, work.lock))
    }

    /// Waits for the lock, and recovers what was interrupted.
    fn begin(&self) -> Result<store::Lock, TransactionError> {
        let store = Store::make(&self.door, self.home.place())?;
        let lock = store.lock(self.patience)?;
        Ok(self.recover_in(store, lock)?.1)
    }

    /// Writes the journal and the new files.
    fn stage(
        &self,
        tree: Tree,
        lock: store::Lock,
        checked: Checked,
        heading: Heading,
        folders: Folders,
        policy: Policy,
    ) -> Result<Staged<'_>, TransactionError> {
        let store = Store::make(&self.door, self.home.place())?;
        let kept = store.kept()?;
        let Checked { entries, contents, pre_images, missing, above } = checked;
        let made = missing.into_iter().map(|folder| {
            let mode = folders.modes.get(&folder).copied();
            (folder, mode)
        });
        let may_go = folders.may_go.unwrap_or(above);
        let journal = Journal::new(heading, entries, made.collect(), may_go, |id, entries| {
            kept.iter().any(|line| line.id == id) || entries.iter().any(|entry| is_taken(&tree, entry))
        });
        let pre_images: Vec<&[u8]> = pre_images.iter().map(Vec::as_slice).collect();
        store.begin(&journal, &pre_images, &lock)?;
        let staged = Staged { of: self, policy, work: Some(Work { tree, store, journal, lock }) };
        match staged.work().stage(&contents) {
            Ok(()) => Ok(staged),
            Err(error) => Err(staged.fail(error)),
        }
    }
}

/// Whether somebody else has a name that would be a transaction's own.
fn is_taken(tree: &Tree, entry: &Entry) -> bool {
    let Ok(Some(folder)) = tree.folder_if_any(&entry.spot) else { return false };
    [entry.temp.clone(), entry.second_temp()]
        .iter()
        .any(|name| tree.door.stat(folder.as_fd(), name).is_ok_and(|stat| stat.is_some()))
}

/// What is known of folders besides what is there.
#[derive(Debug, Default)]
struct Folders {
    /// The modes of those that may have to be made.
    modes: BTreeMap<tree::Spot, u32>,
    /// Those that go when they are empty, if not all above a file that goes.
    may_go: Option<BTreeMap<tree::Spot, u32>>,
}

/// Changes that could be made: every file is what it is said to be, and may be changed.
#[derive(Debug)]
#[must_use = "nothing happens until it is staged and applied"]
pub struct Plan<'t> {
    of: &'t Transactions,
    changes: Vec<Change>,
    policy: Policy,
    files: Vec<WorkspacePath>,
    targets: Vec<String>,
}

impl<'t> Plan<'t> {
    /// The files that change, sorted; those that have the wanted content already are left out.
    #[must_use]
    pub fn files(&self) -> &[WorkspacePath] {
        &self.files
    }

    /// Where each of [`Self::files`] is, links followed: relative to the workspace, or absolute when it is outside.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// Waits for other lansers, checks again, and writes everything beside its target.
    ///
    /// # Errors
    /// When the disk refuses, or a file changed, or another lanser does not end. Nothing is left.
    pub fn stage(self, label: &Label) -> Result<Staged<'t>, TransactionError> {
        let lock = self.of.begin()?;
        let tree = self.of.tree()?;
        let checked = self.of.checker(&tree, self.policy).check(&plan::wants(&self.changes)?)?;
        let heading = Heading {
            time: label.time,
            what: label.what.clone(),
            undoes: None,
            backwards: false,
            prefix: self.of.home.prefix().to_owned(),
        };
        self.of.stage(tree, lock, checked, heading, Folders::default(), self.policy)
    }
}

/// Everything is written beside its target, and on the disk. Dropped, it leaves no trace.
#[derive(Debug)]
#[must_use = "it is taken back when it is dropped"]
pub struct Staged<'t> {
    of: &'t Transactions,
    policy: Policy,
    /// Invariant: there until it is applied or failed.
    work: Option<Work>,
}

impl<'t> Staged<'t> {
    fn work(&self) -> &Work {
        self.work.as_ref().expect("because only what consumes it takes it")
    }

    fn fail(mut self, cause: TransactionError) -> TransactionError {
        take_back(self.work.take(), cause)
    }

    /// The transaction's id. The same change has the same id everywhere, unless it is in the log already.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.work().journal.id
    }

    /// Puts every file in its place.
    ///
    /// # Errors
    /// When the disk refuses, or a file is not what it was. All is as it was, then.
    pub fn apply(mut self) -> Result<Applied<'t>, TransactionError> {
        let applied = self.put();
        match applied {
            Ok(()) => Ok(Applied { work: self.work.take(), of: std::marker::PhantomData }),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn put(&self) -> Result<(), TransactionError> {
        let work = self.work();
        let checker = self.of.checker(&work.tree, self.policy);
        for entry in &work.journal.entries {
            if !checker.still_leads(entry)? {
                return Err(TransactionError::Changed { path: entry.path.clone() });
            }
        }
        work.apply()
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            // What fails here is done by the next command.
            let _ = work.roll_back();
        }
    }
}

/// Every file is in its place, and all can still be taken back. Dropped, it is.
#[derive(Debug)]
#[must_use = "it is taken back when it is dropped"]
pub struct Applied<'t> {
    work: Option<Work>,
    of: std::marker::PhantomData<&'t Transactions>,
}

/// A transaction that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Its id, for [`Transactions::undo`].
    pub id: String,
    /// Why traces are left, which the next command removes.
    pub left: Option<String>,
}

impl Applied<'_> {
    /// The transaction's id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.work.as_ref().map_or("", |work| &work.journal.id)
    }

    /// Decides for the new state.
    ///
    /// # Errors
    /// When the decision cannot be written down. All is as it was, then.
    pub fn keep(mut self) -> Result<Done, TransactionError> {
        let work = self.work.take().expect("because only what consumes it takes it");
        if let Err(error) = work.store.commit() {
            let cause = TransactionError::refused("close", "the journal")(error);
            return Err(take_back(Some(work), cause));
        }
        let left = work.finish().err().map(|error| error.to_string());
        Ok(Done { id: work.journal.id, left })
    }

    /// Decides for the old state. Returns the files that somebody else changed meanwhile and that were left as they are.
    ///
    /// # Errors
    /// When the disk refuses; the next command tries again.
    pub fn roll_back(mut self) -> Result<Vec<WorkspacePath>, TransactionError> {
        let work = self.work.take().expect("because only what consumes it takes it");
        work.roll_back()
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            // What fails here is done by the next command.
            let _ = work.roll_back();
        }
    }
}

/// Takes back what failed.
fn take_back(work: Option<Work>, cause: TransactionError) -> TransactionError {
    match work.map(|work| work.roll_back()) {
        Some(Err(failed)) => TransactionError::HalfDone { cause: Box::new(cause), failed: Box::new(failed) },
        // Whose files were left alone is what the cause says, or has nothing to do with it.
        _ => cause,
    }
}
