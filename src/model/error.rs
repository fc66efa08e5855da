//! Errors as data, and the table of exit codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edits::CheckName;

/// Every way in which a request can fail. The exit code of each is its [`code`](ErrorSymbol::code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ErrorSymbol {
    /// The selector cannot be read.
    #[serde(rename = "E/BAD_SELECTOR_SYNTAX")]
    BadSelectorSyntax,
    /// The command line or the request cannot be read.
    #[serde(rename = "E/USAGE")]
    Usage,
    /// There is no such target, or the server has no answer there.
    #[serde(rename = "E/NOT_FOUND")]
    NotFound,
    /// There are several candidates.
    #[serde(rename = "E/AMBIGUOUS")]
    Ambiguous,
    /// The version of a selector cannot be had.
    #[serde(rename = "E/VERSION_SKEW")]
    VersionSkew,
    /// The server did not answer in time.
    #[serde(rename = "E/LS_TIMEOUT")]
    LsTimeout,
    /// The server died, or what it said is no LSP.
    #[serde(rename = "E/LS_CRASH")]
    LsCrash,
    /// No server could be found or installed.
    #[serde(rename = "E/LS_UNAVAILABLE")]
    LsUnavailable,
    /// The edit does not fit what the files hold.
    #[serde(rename = "E/APPLY_CONFLICT")]
    ApplyConflict,
    /// The operating system refused.
    #[serde(rename = "E/FS_PERMISSIONS")]
    FsPermissions,
    /// The edit reaches out of the workspace, or to files that may not be edited.
    #[serde(rename = "E/JAIL")]
    Jail,
    /// The server lacks what the request needs.
    #[serde(rename = "E/UNSUPPORTED_CAP")]
    UnsupportedCap,
    /// The caller cancelled.
    #[serde(rename = "E/REQUEST_CANCELLED")]
    RequestCancelled,
    /// The workspace changed while the request ran.
    #[serde(rename = "E/CONTENT_MODIFIED")]
    ContentModified,
    /// A unit of columns that lanser does not know.
    #[serde(rename = "E/INDEXING_UNSUPPORTED")]
    IndexingUnsupported,
    /// The server speaks a position encoding that was not offered.
    #[serde(rename = "E/INDEXING_MISMATCH")]
    IndexingMismatch,
    /// A replay is not what was recorded, or the trace is damaged.
    #[serde(rename = "E/REPLAY_MISMATCH")]
    ReplayMismatch,
    /// There are uncommitted changes.
    #[serde(rename = "E/DIRTY_WORKTREE")]
    DirtyWorktree,
    /// A check says that the edit is not safe.
    #[serde(rename = "E/UNSAFE_EDIT")]
    UnsafeEdit,
    /// A defect of lanser's own.
    #[serde(rename = "E/INTERNAL")]
    Internal,
}

/// Whether asking again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Retryable {
    /// The same request fails again.
    No,
    /// It may succeed as it is.
    Yes,
    /// It may succeed after the code or the selector changed.
    Sometimes,
    /// It succeeds after somebody did what the hint says.
    Manual,
}

impl ErrorSymbol {
    /// Every symbol, by exit code.
    pub const ALL: [Self; 20] = [
        Self::BadSelectorSyntax,
        Self::Usage,
        Self::NotFound,
        Self::Ambiguous,
        Self::VersionSkew,
        Self::LsTimeout,
        Self::LsCrash,
        Self::LsUnavailable,
        Self::ApplyConflict,
        Self::FsPermissions,
        Self::Jail,
        Self::UnsupportedCap,
        Self::RequestCancelled,
        Self::ContentModified,
        Self::IndexingUnsupported,
        Self::IndexingMismatch,
        Self::ReplayMismatch,
        Self::DirtyWorktree,
        Self::UnsafeEdit,
        Self::Internal,
    ];

    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::BadSelectorSyntax | Self::Usage => 2,
            Self::NotFound => 3,
            Self::Ambiguous => 4,
            Self::VersionSkew => 10,
            Self::LsTimeout => 64,
            Self::LsCrash => 65,
            Self::LsUnavailable => 66,
            Self::ApplyConflict => 70,
            Self::FsPermissions | Self::Jail => 71,
            Self::UnsupportedCap => 72,
            Self::RequestCancelled => 73,
            Self::ContentModified => 74,
            Self::IndexingUnsupported | Self::IndexingMismatch => 75,
            Self::ReplayMismatch => 76,
            Self::DirtyWorktree => 77,
            Self::UnsafeEdit => 78,
            Self::Internal => 101,
        }
    }

    /// The symbol as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadSelectorSyntax => "E/BAD_SELECTOR_SYNTAX",
            Self::Usage => "E/USAGE",
            Self::NotFound => "E/NOT_FOUND",
            Self::Ambiguous => "E/AMBIGUOUS",
            Self::VersionSkew => "E/VERSION_SKEW",
            Self::LsTimeout => "E/LS_TIMEOUT",
            Self::LsCrash => "E/LS_CRASH",
            Self::LsUnavailable => "E/LS_UNAVAILABLE",
            Self::ApplyConflict => "E/APPLY_CONFLICT",
            Self::Jail => "E/JAIL",
            Self::ReplayMismatch => "E/REPLAY_MISMATCH",
            Self::DirtyWorktree => "E/DIRTY_WORKTREE",
            Self::UnsafeEdit => "E/UNSAFE_EDIT",
            Self::FsPermissions => "E/FS_PERMISSIONS",
            Self::UnsupportedCap => "E/UNSUPPORTED_CAP",
            Self::RequestCancelled => "E/REQUEST_CANCELLED",
            Self::ContentModified => "E/CONTENT_MODIFIED",
            Self::IndexingUnsupported => "E/INDEXING_UNSUPPORTED",
            Self::IndexingMismatch => "E/INDEXING_MISMATCH",
            Self::Internal => "E/INTERNAL",
        }
    }

    /// Whether asking again can help.
    #[must_use]
    pub const fn retryable(self) -> Retryable {
        match self {
            Self::NotFound => Retryable::Sometimes,
            Self::ApplyConflict | Self::DirtyWorktree | Self::UnsafeEdit => Retryable::Manual,
            Self::Ambiguous
            | Self::VersionSkew
            | Self::LsTimeout
            | Self::LsCrash
            | Self::LsUnavailable
            | Self::RequestCancelled
            | Self::ContentModified => Retryable::Yes,
            Self::BadSelectorSyntax
            | Self::Usage
            | Self::FsPermissions
            | Self::Jail
            | Self::UnsupportedCap
            | Self::IndexingUnsupported
            | Self::IndexingMismatch
            | Self::ReplayMismatch
            | Self::Internal => Retryable::No,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorBody {
    /// The exit code.
    pub code: u8,
    /// Its name.
    pub symbol: ErrorSymbol,
    /// What happened, to which thing.
    pub message: String,
    /// Whether asking again can help.
    pub retryable: Retryable,
    /// What to do next.
    pub hint: Option<String>,
    /// The parts of it that a program may want.
    pub data: Option<ErrorData>,
}

/// The parts of an error that a program may want.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ErrorData {
    /// Names that were perhaps meant, as selectors, nearest first.
    Near {
        /// The selectors.
        selectors: Vec<String>,
    },
    /// Where a text could not be read.
    Syntax {
        /// The text.
        text: String,
        /// The bytes of it that cannot be read, `[start, end]`.
        span: [u32; 2],
        /// What could stand there.
        expected: String,
    },
    /// The last lines that the server wrote to its standard error.
    Stderr {
        /// The lines.
        lines: Vec<String>,
    },
    /// What was tried to find a server.
    Tried {
        /// One line for each place.
        attempts: Vec<String>,
    },
    /// The checks that stopped an edit.
    Checks {
        /// Their names.
        failed: Vec<CheckName>,
    },
    /// Where an edit does not fit.
    Conflicts {
        /// One for each place.
        hunks: Vec<ConflictHunk>,
    },
    /// The files that stand in the way.
    Files {
        /// Their paths.
        paths: Vec<String>,
    },
    /// Where a replay is not what was recorded.
    Mismatch {
        /// The operation, counted from 1.
        op: u64,
        /// The event in it, counted from 1; absent where none can be named.
        event: Option<u64>,
        /// The member of the event, as a JSONPath; absent where the whole event is meant.
        field: Option<String>,
    },
    /// The file that changed.
    Changed {
        /// Its path.
        path: String,
    },
}

/// A place where an edit does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConflictHunk {
    /// The file.
    pub path: String,
    /// Its first line that is in question, 1-based.
    pub line: u32,
    /// What stands there.
    pub ours: String,
    /// What the edit wants there.
    pub theirs: String,
    /// What the edit was made from.
    pub base: String,
}

impl ErrorBody {
    /// An error with a message; code and retryability follow from the symbol.
    #[must_use]
    pub fn new(symbol: ErrorSymbol, message: impl Into<String>) -> Self {
        Self {
            code: symbol.code(),
            symbol,
            message: message.into(),
            retryable: symbol.retryable(),
            hint: None,
            data: None,
        }
    }

    /// The same with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with its parts.
    #[must_use]
    pub fn data(mut self, data: ErrorData) -> Self {
        self.data = Some(data);
        self
    }
}
