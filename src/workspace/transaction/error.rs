//! The errors of transactions.

use std::io;

use crate::path::WorkspacePath;
use crate::workspace::files::MAX_FILE_BYTES;

/// The kind of a failure, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureClass {
    /// The operating system refused (71, `E/FS_PERMISSIONS`).
    Permissions,
    /// The file must not be written (71, `E/JAIL`).
    Jail,
    /// The workspace changed since the changes were planned, or another lanser process is changing it (74,
    /// `E/CONTENT_MODIFIED`).
    ContentModified,
    /// The change could cause damage (78, `E/UNSAFE_EDIT`).
    Unsafe,
    /// A file was edited since the transaction to be undone (70, `E/APPLY_CONFLICT`).
    Conflict,
    /// The transaction does not exist (3, `E/NOT_FOUND`).
    NotFound,
}

/// Why a transaction failed. Except for [`Self::HalfDone`], the workspace is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// The operating system refused.
    #[error("cannot {doing} {path}: {reason}")]
    Refused {
        /// The attempted operation, such as `write`.
        doing: &'static str,
        /// The path, or another name of what it was done to.
        path: String,
        /// The system's error message, without the error number.
        reason: String,
    },
    /// The file is write-protected.
    #[error("{path} is read-only")]
    ReadOnly {
        /// The file.
        path: WorkspacePath,
    },
    /// The path leads out of the workspace through a symbolic link.
    #[error("{path} leads to {leads_to}, outside the workspace")]
    Outside {
        /// The path in the change.
        path: WorkspacePath,
        /// Its real path.
        leads_to: String,
    },
    /// The caller's filters exclude files of the transaction.
    #[error("--allow and --deny do not permit changing {}", listed(.paths))]
    Filtered {
        /// The files.
        paths: Vec<WorkspacePath>,
    },
    /// The path leads into git's folder, whose files are never written.
    #[error("{path} is inside a git folder")]
    GitFolder {
        /// The path in the change.
        path: WorkspacePath,
    },
    /// A rename changes only the case, on a file system that ignores case.
    #[error("{from} and {to} are the same file, because the file system ignores case")]
    CaseOnly {
        /// The old path.
        from: WorkspacePath,
        /// The new path.
        to: WorkspacePath,
    },
    /// The file has several hard links; the others would keep the old content.
    #[error("{path} has {links} hard links, and replacing it would not change the others")]
    HardLinked {
        /// The file.
        path: WorkspacePath,
        /// The number of hard links.
        links: u64,
    },
    /// The path is a folder, a device or a pipe.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// The file.
        path: WorkspacePath,
    },
    /// Two changes affect the same file.
    #[error("two changes affect {path}")]
    Overlap {
        /// The file.
        path: WorkspacePath,
    },
    /// The file is too large.
    #[error("{path} has {bytes} bytes, more than the limit of {MAX_FILE_BYTES}")]
    TooLarge {
        /// The file.
        path: WorkspacePath,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The file does not have the content that the change expects.
    #[error("{path} was changed in the meantime")]
    Changed {
        /// The file.
        path: WorkspacePath,
    },
    /// A file to be created already exists.
    #[error("{path} already exists")]
    Exists {
        /// The file.
        path: WorkspacePath,
    },
    /// Another lanser process is changing the workspace.
    #[error("another lanser (process {}) is changing this workspace", .pid.map_or("unknown".to_owned(), |pid| pid.to_string()))]
    Busy {
        /// Its process id, if known.
        pid: Option<u32>,
    },
    /// The transaction to be undone was undone before.
    #[error("the transaction {id} is already undone, by {by}")]
    AlreadyUndone {
        /// Its id.
        id: String,
        /// That of the transaction that undid it.
        by: String,
    },
    /// Something else, such as git, restored the files of the transaction to be undone.
    #[error("the files of the transaction {id} are as they were before it: there is nothing to undo")]
    AlreadyRestored {
        /// Its id.
        id: String,
    },
    /// Files were edited since the transaction to be undone.
    #[error("edited since the transaction: {}", listed(.paths))]
    Conflict {
        /// The files.
        paths: Vec<WorkspacePath>,
    },
    /// The transaction to be undone does not exist, or there is nothing to undo.
    #[error("there is no transaction {}", .id.as_deref().unwrap_or("to undo"))]
    NoTransaction {
        /// The requested id.
        id: Option<String>,
    },
    /// The journal of the transaction to be undone cannot be read.
    #[error("cannot undo transaction {id}: {reason}")]
    Unreadable {
        /// The transaction's id.
        id: String,
        /// The reason.
        reason: String,
    },
    /// A journal cannot be read.
    #[error("cannot read the journal in {path}: {reason}")]
    Damaged {
        /// The journal's folder.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A transaction failed, and rolling it back failed too. The next command rolls it back.
    #[error("{cause}; rolling back failed ({failed}), the next command tries again")]
    HalfDone {
        /// Why the transaction failed.
        cause: Box<Self>,
        /// Why it could not be rolled back.
        failed: Box<Self>,
    },
}

impl TransactionError {
    /// The kind of this failure.
    #[must_use]
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Refused { .. } | Self::ReadOnly { .. } | Self::Damaged { .. } => FailureClass::Permissions,
            Self::Outside { .. } | Self::Filtered { .. } | Self::GitFolder { .. } | Self::CaseOnly { .. } => {
                FailureClass::Jail
            }
            Self::HardLinked { .. }
            | Self::NotAFile { .. }
            | Self::Overlap { .. }
            | Self::TooLarge { .. } => FailureClass::Unsafe,
            Self::Changed { .. } | Self::Exists { .. } | Self::Busy { .. } => FailureClass::ContentModified,
            Self::Conflict { .. }
            | Self::AlreadyUndone { .. }
            | Self::AlreadyRestored { .. }
            | Self::Unreadable { .. } => FailureClass::Conflict,
            Self::NoTransaction { .. } => FailureClass::NotFound,
            Self::HalfDone { cause, .. } => cause.class(),
        }
    }

    /// For `map_err`: the system refused an operation on a path.
    pub(super) fn refused(doing: &'static str, path: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_string();
        move |error| Self::Refused { doing, path, reason: system_message(&error) }
    }
}

/// The system's error message, without the error number, which differs between systems.
fn system_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The first paths of a list, and how many more there are.
fn listed(paths: &[WorkspacePath]) -> String {
    let shown: Vec<&str> = paths.iter().take(5).map(WorkspacePath::as_str).collect();
    let more = paths.len() - shown.len();
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
