//! The states of the files before and after the transactions of the operation log.

use std::collections::BTreeMap;

use super::Transactions;
use super::file_image::{Content, FileImage};
use super::store::{ClosedJournal, JournalStore};
use crate::digest::Digest;
use crate::path::WorkspacePath;
use crate::workspace::scripts::may_be_code;
use crate::workspace::states::{ChangedFile, ContentId, States};

/// The changes of a transaction, or those that were made to its files since the transaction before.
struct LoggedChanges {
    /// The ID of the transaction.
    id: String,
    changes: Vec<ChangedFile>,
}

/// The states that the operation log knows of. A file that was changed between two transactions has a state of its own, so
/// that each transaction is one step.
pub struct LoggedStates<'l> {
    store: JournalStore,
    /// Where the pre-image of each content is.
    pre_images: BTreeMap<Digest, (ClosedJournal, super::JournalEntry)>,
    /// Reads a content that is not a pre-image.
    other: &'l dyn Fn(&Digest) -> Option<Vec<u8>>,
    /// The changes that lead to each state but the first.
    steps: Vec<LoggedChanges>,
}

impl Transactions {
    /// The states of the operation log, and the last of them in which a file had a content. `other` reads contents that
    /// are not in the log. `None` if no state has it, or if the log cannot be read.
    #[must_use]
    pub fn states_with<'l>(
        &self,
        path: &WorkspacePath,
        digest: &Digest,
        other: &'l dyn Fn(&Digest) -> Option<Vec<u8>>,
    ) -> Option<(LoggedStates<'l>, usize)> {
        let store = JournalStore::find(&self.sys, self.journal_dir.path()).ok()??;
        let (log, _) = self.log(Some(&store)).ok()?;
        let mut last: BTreeMap<WorkspacePath, Option<ContentId>> = BTreeMap::new();
        let (mut pre_images, mut steps) = (BTreeMap::new(), Vec::new());
        for logged in log {
            let (mut since, mut made) = (Vec::new(), Vec::new());
            for entry in logged.journal.entries {
                let (before, after) = (content_of(entry.before.as_ref()), content_of(entry.after.as_ref()));
                let path = entry.path.clone();
                if let Some(ContentId::Digest(digest)) = before {
                    pre_images.insert(digest, (logged.closed.clone(), entry));
                }
                if !may_be_code(&path) {
                    continue;
                }
                if let Some(known) = last.get(&path).filter(|known| **known != before) {
                    since.push(ChangedFile { path: path.clone(), before: *known, after: before });
                }
                last.insert(path.clone(), after);
                made.push(ChangedFile { path, before, after });
            }
            for mut changes in [since, made] {
                if !changes.is_empty() {
                    changes.sort_by(|a, b| a.path.cmp(&b.path));
                    steps.push(LoggedChanges { id: logged.journal.id.clone(), changes });
                }
            }
        }
        let wanted = Some(ContentId::Digest(*digest));
        let is_it = |content: Option<ContentId>| content == wanted;
        // The state number n is the one before the step number n.
        let found = steps.iter().enumerate().rev().find_map(|(at, step)| {
            let change = step.changes.iter().find(|change| change.path == *path)?;
            if is_it(change.after) {
                return Some(at + 1);
            }
            is_it(change.before).then_some(at)
        })?;
        Some((LoggedStates { store, pre_images, other, steps }, found))
    }
}

fn content_of(image: Option<&FileImage>) -> Option<ContentId> {
    match image?.content {
        Content::File { digest, .. } => Some(ContentId::Digest(digest)),
        Content::Link { .. } | Content::Other => None,
    }
}

impl States for LoggedStates<'_> {
    fn id(&self, at: usize) -> String {
        at.checked_sub(1).and_then(|at| self.steps.get(at)).map(|step| step.id.clone()).unwrap_or_default()
    }

    fn versions(&self, path: &WorkspacePath, from: usize) -> Vec<(usize, Option<ContentId>)> {
        let mut found = Vec::new();
        for (at, step) in self.steps.iter().enumerate().skip(from) {
            if let Some(change) = step.changes.iter().find(|change| change.path == *path) {
                found.push((at + 1, change.after));
                if change.after.is_none() {
                    break;
                }
            }
        }
        found
    }

    fn content(&self, id: ContentId) -> Option<Vec<u8>> {
        let ContentId::Digest(digest) = id else { return None };
        let pre_image = || {
            let (closed, entry) = self.pre_images.get(&digest)?;
            self.store.pre_image(entry, Some(closed)).ok()
        };
        pre_image().or_else(|| (self.other)(&digest)).filter(|bytes| Digest::of(bytes) == digest)
    }

    fn changes(&self, at: usize) -> Option<Vec<ChangedFile>> {
        self.steps.get(at.checked_sub(1)?).map(|step| step.changes.clone())
    }
}
