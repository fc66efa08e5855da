//! Atomic changes of several files: all files change or none, also across a kill or a power cut, and every change can
//! be undone.
//!
//! 1. [`Transactions::plan`] checks the changes and returns a [`TransactionPlan`].
//! 2. [`TransactionPlan::stage`] writes the new files next to their targets ([`Staged`]).
//! 3. [`Staged::apply`] moves them into place ([`Applied`]).
//! 4. [`Applied::commit`] or [`Applied::roll_back`] decides.
//!
//! The commit is the point of no return. If the process ends before it, the next command's [`Transactions::recover`]
//! restores all old files; after it, all files are new. A committed transaction is an entry of the operation log and
//! can be undone by another transaction.
//!
//! Contents are bytes: text, encodings and line ends do not matter here. The other properties of a file (mode, owner,
//! extended attributes, access control list) are preserved.
//!
//! Not here: whether a change is a good idea, git status ([`super::git`]), time stamps of files, attributes of folders.

mod error;
mod file_image;
mod journal;
mod journal_dir;
mod plan;
mod states;
mod steps;
mod store;
mod sys;
mod tree;
mod undo;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::Duration;

pub use error::{FailureClass, TransactionError};
pub use states::LoggedStates;
pub use undo::{OperationLogEntry, SKILL_INSTALLATION, UndoResult};

use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};
use journal::{Journal, JournalEntry, JournalHeader};
use journal_dir::JournalDir;
use plan::{CheckedChanges, Checker};
use steps::OpenTransaction;
use store::{JournalState, JournalStore};
use sys::Sys;
use tree::Tree;

/// The time limit for the lock of an interrupted transaction. The lock is normally free, but a program that the dead
/// holder was starting may still have a copy of it.
const RECOVERY_LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// A change of one file whose current content is known. Digests cover all bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Writes a file, which may be new. A symbolic link is followed, if its target is in the workspace.
    Write {
        /// The file.
        path: WorkspacePath,
        /// The digest of its current content; `None` when it must not exist.
        before: Option<Digest>,
        /// Its new content.
        content: Vec<u8>,
        /// Whether it will be executable; `None` keeps its mode, or uses the default of new files.
        executable: Option<bool>,
    },
    /// Deletes a file. For a symbolic link, it deletes the link.
    Delete {
        /// The file.
        path: WorkspacePath,
        /// The digest of its current content; for a link, of its target's content.
        before: Digest,
    },
    /// Renames a file, and optionally writes it. For a symbolic link, it renames the link.
    Move {
        /// The old path.
        from: WorkspacePath,
        /// The new path, which must not exist unless another change removes it.
        to: WorkspacePath,
        /// The digest of its current content; for a link, of its target's content.
        before: Digest,
        /// Its new content; `None` keeps the current one.
        content: Option<Vec<u8>>,
        /// Whether it will be executable; `None` keeps its mode.
        executable: Option<bool>,
    },
}

/// Which files may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether writing outside the workspace, also through symbolic links, is forbidden.
    pub jail: bool,
    /// Whether a file with other hard links may be replaced. The other links keep the old content.
    pub hard_links: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { jail: true, hard_links: false }
    }
}

/// The description of a transaction in the operation log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The command, as text for people.
    pub what: String,
    /// The time, in seconds since 1970.
    pub time: u64,
}

/// The result of recovering an interrupted transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// No transaction was interrupted.
    Nothing,
    /// Another process is running a transaction.
    UnderWay,
    /// The transaction was rolled back.
    RolledBack {
        /// Its id.
        id: String,
        /// Its description.
        what: String,
        /// Files that other programs changed since. They were not touched.
        foreign: Vec<WorkspacePath>,
    },
    /// The transaction was already committed, and its cleanup was finished.
    Finished {
        /// Its id.
        id: String,
        /// Its description.
        what: String,
    },
}

/// The transactions of one workspace.
#[derive(Debug, Clone)]
pub struct Transactions {
    root: AbsPath,
    journal_dir: JournalDir,
    lock_timeout: Duration,
    sys: Sys,
}

impl Transactions {
    /// The transactions of the workspace at `root`, a path with symbolic links resolved. `state` is the folder for
    /// lanser's state, to which only the user may write.
    #[must_use]
    pub fn new(root: &AbsPath, state: &AbsPath) -> Self {
        Self {
            root: root.clone(),
            journal_dir: JournalDir::of(root, state),
            lock_timeout: Duration::from_secs(10),
            sys: Sys::default(),
        }
    }

    /// Sets the time limit for waiting for another lanser process.
    #[must_use]
    pub const fn with_lock_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// Checks changes against the files on disk, without changing anything.
    ///
    /// # Errors
    /// When a file differs from the change's `before`, or must not be changed.
    pub fn plan(
        &self,
        changes: Vec<Change>,
        policy: Policy,
    ) -> Result<TransactionPlan<'_>, TransactionError> {
        let tree = self.tree()?;
        let checked = self.checker(&tree, policy).check(&plan::path_changes(&changes)?)?;
        let files = checked.entries.iter().map(|entry| entry.path.clone()).collect();
        let targets = checked.entries.iter().map(|entry| entry.real_path.to_string()).collect();
        Ok(TransactionPlan { transactions: self, changes, policy, files, targets })
    }

    fn tree(&self) -> Result<Tree, TransactionError> {
        Tree::open(&self.sys, &self.root).map_err(TransactionError::refused("open", &self.root))
    }

    fn checker<'t>(&'t self, tree: &'t Tree, policy: Policy) -> Checker<'t> {
        Checker { tree, root: &self.root, git: self.journal_dir.git(), policy }
    }

    /// Finishes or rolls back an interrupted transaction. Takes two `lstat` calls when there is none.
    ///
    /// # Errors
    /// When a system call fails, or the journal cannot be read.
    pub fn recover(&self) -> Result<Recovery, TransactionError> {
        let path = self.journal_dir.path();
        if !JournalStore::is_busy(path) {
            return Ok(Recovery::Nothing);
        }
        let Some(store) = JournalStore::find(&self.sys, path)? else { return Ok(Recovery::Nothing) };
        let lock = match store.lock(RECOVERY_LOCK_TIMEOUT) {
            Err(TransactionError::Busy { .. }) => return Ok(Recovery::UnderWay),
            lock => lock?,
        };
        Ok(self.recover_in(store, lock)?.0)
    }

    /// Recovers the interrupted transaction of a store, if there is one. Returns the lock.
    fn recover_in(
        &self,
        store: JournalStore,
        lock: store::WorkspaceLock,
    ) -> Result<(Recovery, store::WorkspaceLock), TransactionError> {
        let Some((progress, journal)) = store.interrupted(&lock)? else {
            return Ok((Recovery::Nothing, lock));
        };
        let (top, prefix) = (self.journal_dir.top(), &journal.prefix);
        let tree = Tree::beneath(&self.sys, top, prefix);
        let tree = tree.map_err(TransactionError::refused("open", top.join(prefix)))?;
        let (id, what) = (journal.id.clone(), journal.what.clone());
        let transaction = OpenTransaction { tree, store, journal, lock };
        let recovery = match progress {
            JournalState::Open => Recovery::RolledBack { id, what, foreign: transaction.roll_back()? },
            JournalState::Closing => {
                transaction.finish()?;
                Recovery::Finished { id, what }
            }
        };
        Ok((recovery, transaction.lock))
    }

    /// Waits for the lock, and recovers an interrupted transaction.
    fn begin(&self) -> Result<store::WorkspaceLock, TransactionError> {
        let store = JournalStore::create(&self.sys, self.journal_dir.path())?;
        let lock = store.lock(self.lock_timeout)?;
        Ok(self.recover_in(store, lock)?.1)
    }

    /// Writes the journal and the new files.
    fn stage(
        &self,
        tree: Tree,
        lock: store::WorkspaceLock,
        checked: CheckedChanges,
        header: JournalHeader,
        folders: FolderModes,
        policy: Policy,
    ) -> Result<Staged<'_>, TransactionError> {
        let store = JournalStore::create(&self.sys, self.journal_dir.path())?;
        let closed = store.closed_journals()?;
        let CheckedChanges { entries, contents, pre_images, missing_folders, folders_above } = checked;
        let new_folders = missing_folders.into_iter().map(|folder| {
            let mode = folders.modes.get(&folder).copied();
            (folder, mode)
        });
        let removable_folders = folders.removable_folders.unwrap_or(folders_above);
        let journal =
            Journal::new(header, entries, new_folders.collect(), removable_folders, |id, entries| {
                closed.iter().any(|other| other.id == id)
                    || entries.iter().any(|entry| is_taken(&tree, entry))
            });
        let pre_images: Vec<&[u8]> = pre_images.iter().map(Vec::as_slice).collect();
        store.begin(&journal, &pre_images, &lock)?;
        let staged = Staged {
            transactions: self,
            policy,
            transaction: Some(OpenTransaction { tree, store, journal, lock }),
        };
        match staged.transaction().stage(&contents) {
            Ok(()) => Ok(staged),
            Err(error) => Err(staged.fail(error)),
        }
    }
}

/// Whether a temporary name of the transaction already exists.
fn is_taken(tree: &Tree, entry: &JournalEntry) -> bool {
    let Ok(Some(folder)) = tree.folder_if_exists(&entry.real_path) else { return false };
    [entry.temp.clone(), entry.restore_temp()]
        .iter()
        .any(|name| tree.sys.stat(folder.as_fd(), name).is_ok_and(|stat| stat.is_some()))
}

/// Modes of folders that are not on disk, or will not be.
#[derive(Debug, Default)]
struct FolderModes {
    /// The modes of folders that may have to be created.
    modes: BTreeMap<tree::RealPath, u32>,
    /// The folders to remove when they are empty; `None` means all folders above a removed file.
    removable_folders: Option<BTreeMap<tree::RealPath, u32>>,
}

/// Checked changes: every file has the expected content and may be changed.
#[derive(Debug)]
#[must_use = "a plan changes nothing until it is staged and applied"]
pub struct TransactionPlan<'t> {
    transactions: &'t Transactions,
    changes: Vec<Change>,
    policy: Policy,
    files: Vec<WorkspacePath>,
    targets: Vec<String>,
}

impl<'t> TransactionPlan<'t> {
    /// The files that change, sorted. Files that already have the new content are omitted.
    #[must_use]
    pub fn files(&self) -> &[WorkspacePath] {
        &self.files
    }

    /// The real path of each of [`Self::files`], with symbolic links resolved: relative to the workspace, or absolute
    /// when it is outside.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// Waits for other lanser processes, checks again, and writes the new files next to their targets.
    ///
    /// # Errors
    /// When a system call fails, a file changed, or another lanser process does not finish in time. No traces are left
    /// then.
    pub fn stage(self, label: &Label) -> Result<Staged<'t>, TransactionError> {
        let lock = self.transactions.begin()?;
        let tree = self.transactions.tree()?;
        let checked =
            self.transactions.checker(&tree, self.policy).check(&plan::path_changes(&self.changes)?)?;
        let header = JournalHeader {
            time: label.time,
            what: label.what.clone(),
            undoes: None,
            backwards: false,
            prefix: self.transactions.journal_dir.prefix().to_owned(),
        };
        self.transactions.stage(tree, lock, checked, header, FolderModes::default(), self.policy)
    }
}

/// A transaction whose new files are written next to their targets and synced to disk. Dropping it removes them.
#[derive(Debug)]
#[must_use = "a staged transaction is rolled back when it is dropped"]
pub struct Staged<'t> {
    transactions: &'t Transactions,
    policy: Policy,
    /// Invariant: `Some` until the transaction is applied or fails.
    transaction: Option<OpenTransaction>,
}

impl<'t> Staged<'t> {
    fn transaction(&self) -> &OpenTransaction {
        self.transaction.as_ref().expect("because only a method that consumes `self` takes it")
    }

    fn fail(mut self, cause: TransactionError) -> TransactionError {
        roll_back_after(self.transaction.take(), cause)
    }

    /// The transaction's id. The same change has the same id everywhere, unless that id is already in the log.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.transaction().journal.id
    }

    /// Moves every new file into place.
    ///
    /// # Errors
    /// When a system call fails, or a file changed. All files are restored then.
    pub fn apply(mut self) -> Result<Applied<'t>, TransactionError> {
        let applied = self.put_in_place();
        match applied {
            Ok(()) => {
                Ok(Applied { transaction: self.transaction.take(), lifetime: std::marker::PhantomData })
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn put_in_place(&self) -> Result<(), TransactionError> {
        let transaction = self.transaction();
        let checker = self.transactions.checker(&transaction.tree, self.policy);
        for entry in &transaction.journal.entries {
            if !checker.still_resolves(entry)? {
                return Err(TransactionError::Changed { path: entry.path.clone() });
            }
        }
        transaction.apply()
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            // If this fails, the next command does it.
            let _ = transaction.roll_back();
        }
    }
}

/// A transaction whose files are in place and can still be rolled back. Dropping it rolls it back.
#[derive(Debug)]
#[must_use = "an applied transaction is rolled back when it is dropped"]
pub struct Applied<'t> {
    transaction: Option<OpenTransaction>,
    lifetime: std::marker::PhantomData<&'t Transactions>,
}

/// A committed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedTransaction {
    /// Its id, for [`Transactions::undo`].
    pub id: String,
    /// The number of paths that changed: two for a file that moved.
    pub files: usize,
    /// Why the cleanup failed, if it did. The next command repeats it.
    pub cleanup_error: Option<String>,
}

impl Applied<'_> {
    /// The transaction's id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.transaction.as_ref().map_or("", |transaction| &transaction.journal.id)
    }

    /// Commits the new files.
    ///
    /// # Errors
    /// When the journal cannot be closed. All files are restored then.
    pub fn commit(mut self) -> Result<CommittedTransaction, TransactionError> {
        let transaction =
            self.transaction.take().expect("because only a method that consumes `self` takes it");
        if let Err(error) = transaction.store.commit() {
            let cause = TransactionError::refused("close", "the journal")(error);
            return Err(roll_back_after(Some(transaction), cause));
        }
        let files = transaction.journal.entries.len();
        let cleanup_error = transaction.finish().err().map(|error| error.to_string());
        Ok(CommittedTransaction { id: transaction.journal.id, files, cleanup_error })
    }

    /// Restores the old files. Returns the files that other programs changed in the meantime, which are not touched.
    ///
    /// # Errors
    /// When a system call fails. The next command tries again.
    pub fn roll_back(mut self) -> Result<Vec<WorkspacePath>, TransactionError> {
        let transaction =
            self.transaction.take().expect("because only a method that consumes `self` takes it");
        transaction.roll_back()
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            // If this fails, the next command does it.
            let _ = transaction.roll_back();
        }
    }
}

/// Rolls back a failed transaction and returns the error to report.
fn roll_back_after(transaction: Option<OpenTransaction>, cause: TransactionError) -> TransactionError {
    match transaction.map(|transaction| transaction.roll_back()) {
        Some(Err(failed)) => TransactionError::HalfDone { cause: Box::new(cause), failed: Box::new(failed) },
        // Files that were not touched are either the cause or unrelated to it.
        _ => cause,
    }
}
