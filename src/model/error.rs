//! Errors as data, and the table of exit codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edits::CheckName;

/// Every kind of failure. The exit code of each is its [`code`](ErrorSymbol::code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ErrorSymbol {
    /// The selector cannot be parsed.
    #[serde(rename = "E/BAD_SELECTOR_SYNTAX")]
    BadSelectorSyntax,
    /// The command line or the request is invalid.
    #[serde(rename = "E/USAGE")]
    Usage,
    /// The target does not exist, or the server has no answer there.
    #[serde(rename = "E/NOT_FOUND")]
    NotFound,
    /// The selector has several candidates.
    #[serde(rename = "E/AMBIGUOUS")]
    Ambiguous,
    /// The revision that the selector refers to is not available.
    #[serde(rename = "E/VERSION_SKEW")]
    VersionSkew,
    /// The server did not answer in time.
    #[serde(rename = "E/LS_TIMEOUT")]
    LsTimeout,
    /// The server exited, or sent something that is not valid LSP.
    #[serde(rename = "E/LS_CRASH")]
    LsCrash,
    /// No server was found, and none could be installed.
    #[serde(rename = "E/LS_UNAVAILABLE")]
    LsUnavailable,
    /// The edit does not fit the content of the files.
    #[serde(rename = "E/APPLY_CONFLICT")]
    ApplyConflict,
    /// The operating system denied access to a file.
    #[serde(rename = "E/FS_PERMISSIONS")]
    FsPermissions,
    /// The edit touches files outside of the workspace, or files that may not be edited.
    #[serde(rename = "E/JAIL")]
    Jail,
    /// The server does not have a capability that the request needs.
    #[serde(rename = "E/UNSUPPORTED_CAP")]
    UnsupportedCap,
    /// The caller canceled the request.
    #[serde(rename = "E/REQUEST_CANCELLED")]
    RequestCancelled,
    /// The workspace changed while the request ran.
    #[serde(rename = "E/CONTENT_MODIFIED")]
    ContentModified,
    /// The unit of columns is unknown.
    #[serde(rename = "E/INDEXING_UNSUPPORTED")]
    IndexingUnsupported,
    /// The server uses a position encoding that was not offered.
    #[serde(rename = "E/INDEXING_MISMATCH")]
    IndexingMismatch,
    /// A replay differs from the recording, or the trace is damaged.
    #[serde(rename = "E/REPLAY_MISMATCH")]
    ReplayMismatch,
    /// The worktree has uncommitted changes.
    #[serde(rename = "E/DIRTY_WORKTREE")]
    DirtyWorktree,
    /// A safety check of the edit failed.
    #[serde(rename = "E/UNSAFE_EDIT")]
    UnsafeEdit,
    /// An internal error: a bug in lanser.
    #[serde(rename = "E/INTERNAL")]
    Internal,
}

/// Whether a retry can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Retryable {
    /// The same request fails again.
    No,
    /// The same request may succeed.
    Yes,
    /// The request may succeed after the code or the selector changes.
    Sometimes,
    /// The request succeeds after the user follows the hint.
    Manual,
}

impl ErrorSymbol {
    /// Every symbol, sorted by exit code.
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

    /// The symbol in bundles.
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

    /// Whether a retry can succeed.
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

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorBody {
    /// The exit code.
    pub code: u8,
    /// The kind of failure.
    pub symbol: ErrorSymbol,
    /// What failed, and on what.
    pub message: String,
    /// Whether a retry can succeed.
    pub retryable: Retryable,
    /// What to do next; `null` if there is no advice.
    pub hint: Option<String>,
    /// Details for programs; `null` if there are none.
    pub data: Option<ErrorData>,
}

/// Details of an error for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ErrorData {
    /// Targets or titles similar to the one that was not found.
    Suggestions {
        /// The suggestions, most similar first: selectors, or titles of code actions.
        selectors: Vec<String>,
    },
    /// The part of a text that cannot be parsed.
    Syntax {
        /// The text.
        text: String,
        /// The byte span in `text` that cannot be parsed, `[start, end]`.
        span: [u32; 2],
        /// What was expected there.
        expected: String,
    },
    /// The last lines of the server's standard error.
    Stderr {
        /// The lines.
        lines: Vec<String>,
    },
    /// Where a server was looked for.
    Tried {
        /// One line for each attempt.
        attempts: Vec<String>,
    },
    /// The checks that prevented an edit.
    Checks {
        /// The names of the checks.
        failed: Vec<CheckName>,
    },
    /// Where an edit conflicts with the content of the files.
    Conflicts {
        /// The conflicts.
        hunks: Vec<EditConflict>,
    },
    /// The files that prevent the request.
    Files {
        /// Their paths.
        paths: Vec<String>,
    },
    /// Where a replay differs from the recording.
    Mismatch {
        /// The operation, counted from 1.
        op: u64,
        /// The event in the operation, counted from 1; `null` if no event can be identified.
        event: Option<u64>,
        /// The member of the event, as a JSONPath; `null` for the whole event.
        field: Option<String>,
    },
    /// A file that changed.
    Changed {
        /// Its path.
        path: String,
    },
}

/// A conflict between an edit and the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditConflict {
    /// The file.
    pub path: String,
    /// The first conflicting line, 1-based.
    pub line: u32,
    /// The text in the file.
    pub ours: String,
    /// The text that the edit would write.
    pub theirs: String,
    /// The text that the edit was made from.
    pub base: String,
    /// The first line that differs from `base`, 1-based; absent when the edit is no diff, or fits in several places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u32>,
    /// What the diff expects in that line; absent with `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What the file has in that line; absent with `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

impl ErrorBody {
    /// Creates an error with a message; code and retryability follow from the symbol.
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

    /// Sets what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the details.
    #[must_use]
    pub fn data(mut self, data: ErrorData) -> Self {
        self.data = Some(data);
        self
    }

    /// Adds selectors or paths that may have been meant, if there are any.
    #[must_use]
    pub fn suggestions(self, selectors: Vec<String>) -> Self {
        if selectors.is_empty() { self } else { self.data(ErrorData::Suggestions { selectors }) }
    }
}
