//! The operation log, and taking back what is in it.

use std::collections::{BTreeMap, BTreeSet};

use super::journal::{Heading, Journal};
use super::plan::{Checker, Want};
use super::store::{Kept, Store};
use super::{Done, Folders, Label, Policy, TransactionError, Transactions};
use crate::path::WorkspacePath;

/// A line of the operation log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The transaction.
    pub id: String,
    /// When, in seconds since 1970.
    pub time: u64,
    /// What it was, for people.
    pub what: String,
    /// The files that it changed, sorted.
    pub files: Vec<WorkspacePath>,
    /// The transaction that it undid.
    pub undoes: Option<String>,
    /// The transaction that undid it, unless that was undone too.
    pub undone_by: Option<String>,
    /// Why its journal cannot be read, if it cannot; nothing else is known of it then.
    pub damaged: Option<String>,
}

/// What undoing did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The transaction that undid, which can be undone too.
    pub transaction: Done,
    /// The transaction that was undone.
    pub undone: String,
    /// The files that changed back, sorted.
    pub files: Vec<WorkspacePath>,
}

/// A transaction that is kept.
struct Logged {
    kept: Kept,
    journal: Journal,
}

/// A transaction that is kept and whose journal cannot be read.
struct Unread {
    kept: Kept,
    reason: String,
}

impl Transactions {
    /// The operation log of this workspace, the oldest first.
    ///
    /// # Errors
    /// When the disk refuses. A journal that this lanser cannot read is a line that says so, before all others.
    pub fn list(&self) -> Result<Vec<Line>, TransactionError> {
        let (log, damaged) = self.log(self.store()?.as_ref())?;
        let undone = undone(&log);
        let damaged = damaged.into_iter().map(|Unread { kept, reason, .. }| Line {
            id: kept.id,
            time: 0,
            what: String::new(),
            files: Vec::new(),
            undoes: None,
            undone_by: None,
            damaged: Some(reason),
        });
        let line = |logged: Logged| Line {
            undone_by: undone.get(&logged.journal.id).cloned(),
            files: logged.journal.files(),
            id: logged.journal.id,
            time: logged.journal.time,
            what: logged.journal.what,
            undoes: logged.journal.undoes,
            damaged: None,
        };
        Ok(damaged.chain(log.into_iter().map(line)).collect())
    }

    fn store(&self) -> Result<Option<Store>, TransactionError> {
        Store::find(&self.door, self.home.place())
    }

    /// What can be read of the log, and what cannot with the reason.
    fn log(&self, store: Option<&Store>) -> Result<(Vec<Logged>, Vec<Unread>), TransactionError> {
        let mut log = Vec::new();
        let mut damaged = Vec::new();
        let Some(store) = store else { return Ok((log, damaged)) };
        for kept in store.kept()? {
            let journal = match store.journal(&kept) {
                Ok(journal) => journal,
                // Another version's, perhaps: no reason to keep the others from being undone.
                Err(error) => {
                    let reason = match error {
                        TransactionError::Damaged { reason, .. }
                        | TransactionError::Refused { reason, .. } => reason,
                        other => other.to_string(),
                    };
                    let reason = format!("its journal cannot be read: {reason}");
                    damaged.push(Unread { kept, reason });
                    continue;
                }
            };
            if journal.prefix == self.home.prefix() {
                log.push(Logged { kept, journal });
            }
        }
        Ok((log, damaged))
    }

    /// Undoes a transaction, or the last one that is neither undone nor an undoing itself.
    ///
    /// # Errors
    /// [`TransactionError::Conflict`] with all files that are not as the transaction left them, and everything that can keep a
    /// transaction from being made. Nothing is changed, then.
    pub fn undo(&self, id: Option<&str>, label: &Label, policy: Policy) -> Result<Undone, TransactionError> {
        self.undo_if(id, label, policy, &|_| true)
    }

    /// The same, if every file may be written.
    ///
    /// # Errors
    /// As well [`TransactionError::Filtered`] with the files that may not.
    pub fn undo_if(
        &self,
        id: Option<&str>,
        label: &Label,
        policy: Policy,
        may: &dyn Fn(&WorkspacePath) -> bool,
    ) -> Result<Undone, TransactionError> {
        let lock = self.begin()?;
        let store = self.store()?;
        let (mut log, damaged) = self.log(store.as_ref())?;
        let undone = undone(&log);
        let found = log.iter().rposition(|logged| match id {
            Some(id) => logged.journal.id == id,
            None => !logged.journal.backwards && !undone.contains_key(&logged.journal.id),
        });
        let missing = || TransactionError::NoTransaction { id: id.unwrap_or("to undo").to_owned() };
        // What was done last is not the last that can be read.
        let later = |unread: &Unread| found.is_none_or(|found| log[found].kept < unread.kept);
        let unread = damaged.into_iter().rev().find(|unread| match id {
            Some(id) => unread.kept.id == id,
            None => later(unread),
        });
        if let Some(Unread { kept, reason, .. }) = unread {
            return Err(TransactionError::Unreadable { id: kept.id, reason });
        }
        let Logged { kept, journal } = log.swap_remove(found.ok_or_else(missing)?);
        let store = store.ok_or_else(missing)?;
        let stopped: Vec<WorkspacePath> = journal.files().into_iter().filter(|path| !may(path)).collect();
        if !stopped.is_empty() {
            return Err(TransactionError::Filtered { paths: stopped });
        }
        let mut wants = BTreeMap::new();
        for entry in &journal.entries {
            let bytes = store.pre_image(entry, Some(&kept))?;
            wants.insert(entry.path.clone(), Want::inverse(entry, bytes));
        }
        let tree = self.tree()?;
        let checker = self.checker(&tree, policy);
        let checked = match checker.check(&wants) {
            Err(error) if is_conflict(&error) => {
                return Err(TransactionError::Conflict { paths: conflicts(&checker, &wants)? });
            }
            checked => checked?,
        };
        let made: BTreeSet<_> = journal.made.iter().map(|(folder, _)| folder).collect();
        let going = checked.above.iter().filter(|(folder, _)| made.contains(folder));
        let folders = Folders {
            modes: journal.may_go.iter().cloned().collect(),
            may_go: Some(going.map(|(folder, mode)| (folder.clone(), *mode)).collect()),
        };
        let heading = Heading {
            time: label.time,
            what: label.what.clone(),
            undoes: Some(journal.id.clone()),
            backwards: !journal.backwards,
            prefix: journal.prefix.clone(),
        };
        let transaction = self.stage(tree, lock, checked, heading, folders, policy)?.apply()?.keep()?;
        Ok(Undone { transaction, files: journal.files(), undone: journal.id })
    }
}

/// Which transactions are undone, and by which.
fn undone(log: &[Logged]) -> BTreeMap<String, String> {
    let mut by: BTreeMap<&str, &str> = BTreeMap::new();
    let mut undone = BTreeMap::new();
    // Backwards, so that whoever undoes is known before, and an id that was forgotten and given again is not mistaken.
    for Logged { journal, .. } in log.iter().rev() {
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

/// Whether a file is not what it should be.
const fn is_conflict(error: &TransactionError) -> bool {
    use TransactionError::{Changed, Exists, NotAFile};
    matches!(error, Changed { .. } | Exists { .. } | NotAFile { .. })
}

/// The files that are not what they should be.
fn conflicts(
    checker: &Checker<'_>,
    wants: &BTreeMap<WorkspacePath, Want>,
) -> Result<Vec<WorkspacePath>, TransactionError> {
    let mut conflicts = Vec::new();
    for (path, want) in wants {
        let single = BTreeMap::from([(path.clone(), want.clone())]);
        match checker.check(&single) {
            Ok(_) => {}
            Err(error) if is_conflict(&error) => conflicts.push(path.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(conflicts)
}
