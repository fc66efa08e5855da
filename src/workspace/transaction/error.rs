//! Why a transaction did not happen.

use std::io;

use crate::path::WorkspacePath;

/// What kind of failure it is, for an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The operating system refused (71, `E/FS_PERMISSIONS`).
    Permissions,
    /// Outside of what may be written (71, `E/JAIL`).
    Jail,
    /// The workspace is not what the changes were made for, or another lanser works on it (74, `E/CONTENT_MODIFIED`).
    ContentModified,
    /// It would do harm (78, `E/UNSAFE_EDIT`).
    Unsafe,
    /// What is to be undone was edited since (70, `E/APPLY_CONFLICT`).
    Conflict,
    /// There is no such transaction (3, `E/NOT_FOUND`).
    NotFound,
}

/// Why a transaction did not happen. Unless it says otherwise, nothing in the workspace was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// The operating system refused.
    #[error("cannot {doing} {path}: {reason}")]
    Refused {
        /// What was being done, as `write`.
        doing: &'static str,
        /// To which thing.
        path: String,
        /// The system's words, without the number.
        reason: String,
    },
    /// A file that its owner protected from writing.
    #[error("{path} is read-only")]
    ReadOnly {
        /// Which.
        path: WorkspacePath,
    },
    /// A link leads out of the workspace.
    #[error("{path} leads to {leads_to}, outside the workspace")]
    Outside {
        /// The path as it was named.
        path: WorkspacePath,
        /// Where it leads.
        leads_to: String,
    },
    /// Files that the caller wants left alone.
    #[error("--allow or --deny stops {}", listed(.paths))]
    Filtered {
        /// Which.
        paths: Vec<WorkspacePath>,
    },
    /// Git's own files are nobody's target.
    #[error("{path} is git's own")]
    GitFolder {
        /// The path as it was named.
        path: WorkspacePath,
    },
    /// The disk does not tell two names apart.
    #[error("{from} and {to} are one file on this disk, which does not tell upper from lower case")]
    CaseOnly {
        /// The old name.
        from: WorkspacePath,
        /// The new one.
        to: WorkspacePath,
    },
    /// A file with several names: the others would keep the old content.
    #[error("{path} has {links} hard links, and replacing it would leave the others behind")]
    HardLinked {
        /// Which.
        path: WorkspacePath,
        /// How many names it has.
        links: u64,
    },
    /// A folder, a device, a pipe.
    #[error("{path} is no regular file")]
    NotAFile {
        /// Which.
        path: WorkspacePath,
    },
    /// Two changes want the same file.
    #[error("two changes want {path}")]
    Overlap {
        /// Which.
        path: WorkspacePath,
    },
    /// A file is larger than lanser reads.
    #[error("{path} has {bytes} bytes, more than lanser moves")]
    TooLarge {
        /// Which.
        path: WorkspacePath,
        /// Its size.
        bytes: u64,
    },
    /// A file is not what the change was made for.
    #[error("{path} changed meanwhile")]
    Changed {
        /// Which.
        path: WorkspacePath,
    },
    /// A file that is to be made is there already.
    #[error("{path} exists already")]
    Exists {
        /// Which.
        path: WorkspacePath,
    },
    /// Another lanser is at work.
    #[error("another lanser (process {}) is changing this workspace", .pid.map_or("unknown".to_owned(), |pid| pid.to_string()))]
    Busy {
        /// Its process, when it says.
        pid: Option<u32>,
    },
    /// Files were edited since the transaction.
    #[error("edited since: {}", listed(.paths))]
    Conflict {
        /// Which.
        paths: Vec<WorkspacePath>,
    },
    /// There is nothing to undo, or not that.
    #[error("there is no transaction {id}")]
    NoTransaction {
        /// What was asked for.
        id: String,
    },
    /// What is to be undone is not known any more.
    #[error("transaction {id} cannot be taken back: {reason}")]
    Unreadable {
        /// The transaction.
        id: String,
        /// Why.
        reason: String,
    },
    /// A journal cannot be read.
    #[error("the journal in {place} cannot be read: {reason}")]
    Damaged {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// An apply failed, and taking it back failed too. The next lanser takes it back.
    #[error("{cause}; taking it back failed ({failed}), the next command tries again")]
    HalfDone {
        /// Why it did not happen.
        cause: Box<Self>,
        /// Why it could not be taken back.
        failed: Box<Self>,
    },
}

impl TransactionError {
    /// What kind of failure it is.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Refused { .. } | Self::ReadOnly { .. } | Self::Damaged { .. } => Class::Permissions,
            Self::Outside { .. } | Self::Filtered { .. } | Self::GitFolder { .. } | Self::CaseOnly { .. } => {
                Class::Jail
            }
            Self::HardLinked { .. }
            | Self::NotAFile { .. }
            | Self::Overlap { .. }
            | Self::TooLarge { .. } => Class::Unsafe,
            Self::Changed { .. } | Self::Exists { .. } | Self::Busy { .. } => Class::ContentModified,
            Self::Conflict { .. } | Self::Unreadable { .. } => Class::Conflict,
            Self::NoTransaction { .. } => Class::NotFound,
            Self::HalfDone { cause, .. } => cause.class(),
        }
    }

    /// For `map_err`: the system refused to do something to a thing.
    pub(super) fn refused(doing: &'static str, path: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_string();
        move |error| Self::Refused { doing, path, reason: words(&error) }
    }
}

/// The system's words for an error; the number differs between systems.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The first paths of a list, and how many more there are.
fn listed(paths: &[WorkspacePath]) -> String {
    let shown: Vec<&str> = paths.iter().take(5).map(WorkspacePath::as_str).collect();
    let more = paths.len() - shown.len();
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
