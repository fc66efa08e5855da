//! The operation log, and undoing its transactions.

use std::collections::{BTreeMap, BTreeSet};

use super::journal::{Journal, JournalEntry, JournalHeader};
use super::plan::{Checker, PathChange};
use super::store::{ClosedJournal, JournalStore};
use super::{CommittedTransaction, FolderModes, Label, Policy, TransactionError, Transactions};
use crate::path::WorkspacePath;

/// The label of the transaction that installs the skill. It is no edit of the code: only undone by its id.
pub const SKILL_INSTALLATION: &str = "skill install";

/// An entry of the operation log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationLogEntry {
    /// The transaction's id.
    pub id: String,
    /// The time, in seconds since 1970.
    pub time: u64,
    /// Its description for people.
    pub what: String,
    /// The files that it changed, sorted.
    pub files: Vec<WorkspacePath>,
    /// The id of the transaction that it undid.
    pub undoes: Option<String>,
    /// The id of the transaction that undid it, unless that one was undone too.
    pub undone_by: Option<String>,
    /// Why its journal cannot be read, if it cannot. All fields except `id` are empty then.
    pub damaged: Option<String>,
}

/// The result of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoResult {
    /// The new transaction, which can be undone too.
    pub transaction: CommittedTransaction,
    /// The id of the transaction that was undone.
    pub undone: String,
    /// The files that changed back, sorted.
    pub files: Vec<WorkspacePath>,
}

/// A transaction in the log.
pub(super) struct LoggedTransaction {
    pub(super) closed: ClosedJournal,
    pub(super) journal: Journal,
}

/// A transaction in the log whose journal cannot be read.
pub(super) struct UnreadableJournal {
    closed: ClosedJournal,
    reason: String,
}

impl Transactions {
    /// The operation log of this workspace, oldest first. Transactions with unreadable journals come before all others.
    ///
    /// # Errors
    /// When the folder of journals cannot be read.
    pub fn list(&self) -> Result<Vec<OperationLogEntry>, TransactionError> {
        let (log, damaged) = self.log(self.store()?.as_ref())?;
        let undone = undone(&log);
        let damaged = damaged.into_iter().map(|UnreadableJournal { closed, reason, .. }| OperationLogEntry {
            id: closed.id,
            time: 0,
            what: String::new(),
            files: Vec::new(),
            undoes: None,
            undone_by: None,
            damaged: Some(reason),
        });
        let entry = |logged: LoggedTransaction| OperationLogEntry {
            undone_by: undone.get(&logged.journal.id).cloned(),
            files: logged.journal.files(),
            id: logged.journal.id,
            time: logged.journal.time,
            what: logged.journal.what,
            undoes: logged.journal.undoes,
            damaged: None,
        };
        Ok(damaged.chain(log.into_iter().map(entry)).collect())
    }

    fn store(&self) -> Result<Option<JournalStore>, TransactionError> {
        JournalStore::find(&self.sys, self.journal_dir.path())
    }

    /// The readable transactions of the log, and the unreadable ones.
    pub(super) fn log(
        &self,
        store: Option<&JournalStore>,
    ) -> Result<(Vec<LoggedTransaction>, Vec<UnreadableJournal>), TransactionError> {
        let mut log = Vec::new();
        let mut damaged = Vec::new();
        let Some(store) = store else { return Ok((log, damaged)) };
        for closed in store.closed_journals()? {
            let journal = match store.journal(&closed) {
                Ok(journal) => journal,
                // Perhaps from another version of lanser. The other transactions can still be undone.
                Err(error) => {
                    let reason = match error {
                        TransactionError::Damaged { reason, .. }
                        | TransactionError::Refused { reason, .. } => reason,
                        other => other.to_string(),
                    };
                    let reason = format!("its journal cannot be read: {reason}");
                    damaged.push(UnreadableJournal { closed, reason });
                    continue;
                }
            };
            if journal.prefix == self.journal_dir.prefix() {
                log.push(LoggedTransaction { closed, journal });
            }
        }
        Ok((log, damaged))
    }

    /// Undoes a transaction, or the last one that is neither undone nor an undo itself, and that edited code.
    ///
    /// # Errors
    /// [`TransactionError::Conflict`] with all files that changed since the transaction, and the errors of any
    /// transaction. Nothing is changed then.
    pub fn undo(
        &self,
        id: Option<&str>,
        label: &Label,
        policy: Policy,
    ) -> Result<UndoResult, TransactionError> {
        self.undo_if(id, label, policy, &|_| true)
    }

    /// The same, if `may_write` permits every file.
    ///
    /// # Errors
    /// Also [`TransactionError::Filtered`] with the files that it does not permit.
    pub fn undo_if(
        &self,
        id: Option<&str>,
        label: &Label,
        policy: Policy,
        may_write: &dyn Fn(&WorkspacePath) -> bool,
    ) -> Result<UndoResult, TransactionError> {
        let lock = self.begin()?;
        let store = self.store()?;
        let (mut log, damaged) = self.log(store.as_ref())?;
        let undone = undone(&log);
        let found = log.iter().rposition(|logged| match id {
            Some(id) => logged.journal.id == id,
            None => {
                !logged.journal.backwards
                    && !undone.contains_key(&logged.journal.id)
                    && logged.journal.what != SKILL_INSTALLATION
            }
        });
        let missing = || TransactionError::NoTransaction { id: id.map(str::to_owned) };
        // An unreadable journal may be newer than the last readable one.
        let later = |unread: &UnreadableJournal| found.is_none_or(|found| log[found].closed < unread.closed);
        let unread = damaged.into_iter().rev().find(|unread| match id {
            Some(id) => unread.closed.id == id,
            None => later(unread),
        });
        if let Some(UnreadableJournal { closed, reason, .. }) = unread {
            return Err(TransactionError::Unreadable { id: closed.id, reason });
        }
        let LoggedTransaction { closed, journal } = log.swap_remove(found.ok_or_else(missing)?);
        let store = store.ok_or_else(missing)?;
        let filtered: Vec<WorkspacePath> =
            journal.files().into_iter().filter(|path| !may_write(path)).collect();
        if !filtered.is_empty() {
            return Err(TransactionError::Filtered { paths: filtered });
        }
        let mut path_changes = BTreeMap::new();
        for entry in &journal.entries {
            let bytes = store.pre_image(entry, Some(&closed))?;
            path_changes.insert(entry.path.clone(), PathChange::inverse(entry, bytes));
        }
        let tree = self.tree()?;
        let checker = self.checker(&tree, policy);
        let checked = match checker.check(&path_changes) {
            Err(error) if is_conflict(&error) => {
                if let Some(by) = undone.get(&journal.id) {
                    return Err(TransactionError::AlreadyUndone { id: journal.id, by: by.clone() });
                }
                if journal.entries.iter().all(|entry| is_restored(&checker, entry)) {
                    return Err(TransactionError::AlreadyRestored { id: journal.id });
                }
                return Err(TransactionError::Conflict { paths: conflicts(&checker, &path_changes)? });
            }
            checked => checked?,
        };
        let new_folders: BTreeSet<_> = journal.new_folders.iter().map(|(folder, _)| folder).collect();
        let removable = checked.folders_above.iter().filter(|(folder, _)| new_folders.contains(folder));
        let folders = FolderModes {
            modes: journal.removable_folders.iter().cloned().collect(),
            removable_folders: Some(removable.map(|(folder, mode)| (folder.clone(), *mode)).collect()),
        };
        let header = JournalHeader {
            time: label.time,
            what: label.what.clone(),
            undoes: Some(journal.id.clone()),
            backwards: !journal.backwards,
            prefix: journal.prefix.clone(),
        };
        let transaction = self.stage(tree, lock, checked, header, folders, policy)?.apply()?.commit()?;
        Ok(UndoResult { transaction, files: journal.files(), undone: journal.id })
    }
}

/// The ids of the undone transactions, with the ids of those that undid them.
fn undone(log: &[LoggedTransaction]) -> BTreeMap<String, String> {
    let mut by: BTreeMap<&str, &str> = BTreeMap::new();
    let mut undone = BTreeMap::new();
    // Backwards, so that an undo is seen before its target, and an id that was reused after trimming the log is not
    // confused.
    for LoggedTransaction { journal, .. } in log.iter().rev() {
        if let Some(undoer) = by.remove(journal.id.as_str())
            && !undone.contains_key(undoer)
        {
            undone.insert(journal.id.clone(), undoer.to_owned());
        }
        if let Some(target) = &journal.undoes {
            by.entry(target).or_insert(&journal.id);
        }
    }
    undone
}

/// Whether the error means that a file changed since the transaction.
const fn is_conflict(error: &TransactionError) -> bool {
    use TransactionError::{Changed, Exists, NotAFile};
    matches!(error, Changed { .. } | Exists { .. } | NotAFile { .. })
}

/// Whether a file is as it was before the transaction.
fn is_restored(checker: &Checker<'_>, entry: &JournalEntry) -> bool {
    checker.check(&BTreeMap::from([(entry.path.clone(), PathChange::of_restored(entry))])).is_ok()
}

/// The files that changed since the transaction.
fn conflicts(
    checker: &Checker<'_>,
    path_changes: &BTreeMap<WorkspacePath, PathChange>,
) -> Result<Vec<WorkspacePath>, TransactionError> {
    let mut conflicts = Vec::new();
    for (path, change) in path_changes {
        let single = BTreeMap::from([(path.clone(), change.clone())]);
        match checker.check(&single) {
            Ok(_) => {}
            Err(error) if is_conflict(&error) => conflicts.push(path.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(conflicts)
}
