//! Why an attempt failed, and the error in the bundle for it.

use std::time::Duration;

use crate::bundle::page::CursorError;
use crate::bundle::portable::PathMap;
use crate::lsp::error::{INTERNAL_ERROR, LspError};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::toolchain::Unavailable;

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// No server is available.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The server failed.
    #[error(transparent)]
    Server(#[from] LspError),
    /// The workspace changed while the answer was computed.
    #[error("{0} changed while the request ran")]
    Changed(String),
    /// The answer may depend on earlier requests, so a fresh server is needed.
    #[error("the answer depends on earlier requests to the server")]
    NeedsFreshServer,
    /// The answer may depend on concurrent requests, so exclusive use of a worker is needed.
    #[error("the answer may depend on concurrent requests to the server")]
    NeedsExclusiveServer,
    /// The cursor is invalid.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// Any error that already has the form of a bundle.
    #[error("{}", .0.message)]
    Reported(Box<ErrorBody>),
}

impl Failure {
    /// A failure from an error in the form of a bundle.
    pub(super) fn reported(error: ErrorBody) -> Self {
        Self::Reported(Box::new(error))
    }

    /// A failure with `E/NOT_FOUND`.
    pub(super) fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::reported(ErrorBody::new(ErrorSymbol::NotFound, message).hint(hint))
    }

    /// Whether the server ended, so that a new one may succeed.
    pub(super) const fn is_crash(&self) -> bool {
        matches!(self, Self::Server(LspError::Crashed { .. } | LspError::EndOfStream | LspError::Closed))
    }

    /// Whether the server did not respond in time.
    pub(super) const fn is_hang(&self) -> bool {
        matches!(self, Self::Server(LspError::Timeout { .. }))
    }

    /// Makes a timeout report the caller's limit instead of the time that was left for the single request.
    pub(super) fn within(mut self, limit: Duration) -> Self {
        if let Self::Server(LspError::Timeout { after, .. }) = &mut self {
            *after = limit;
        }
        self
    }

    /// Whether the cause is external, so that replaying the recorded I/O does not reproduce the failure.
    pub(super) fn is_outside(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Changed(_) | Self::NeedsFreshServer | Self::NeedsExclusiveServer => {
                true
            }
            Self::Server(error) => error.is_outside(),
            Self::Cursor(_) | Self::Reported(_) => false,
        }
    }

    /// The error object of the bundle, without paths of this machine.
    pub(super) fn into_body(self, paths: &PathMap) -> ErrorBody {
        match self {
            Self::Reported(error) => *error,
            Self::Unavailable(error) => ErrorBody::new(ErrorSymbol::LsUnavailable, paths.text(&error.what))
                .hint(error.hint)
                .data(ErrorData::Tried {
                    attempts: error
                        .tried
                        .iter()
                        .map(|tried| without_folders(&paths.text(&tried.to_string())))
                        .collect(),
                }),
            Self::Changed(path) => ErrorBody::new(
                ErrorSymbol::ContentModified,
                format!("{path} changed while the request ran, twice"),
            )
            .hint("repeat the request when no program writes to the workspace")
            .data(ErrorData::Changed { path }),
            // Retrying with a fresh server prevents these.
            Self::NeedsFreshServer | Self::NeedsExclusiveServer => {
                ErrorBody::new(ErrorSymbol::Internal, self.to_string())
            }
            Self::Cursor(error) => cursor_error(&error),
            Self::Server(error) => server_error(&error, paths),
        }
    }
}

/// The error of a cursor that does not belong to the list.
pub(in crate::engine) fn cursor_error(error: &CursorError) -> ErrorBody {
    let symbol = match error {
        CursorError::Syntax(_) => ErrorSymbol::Usage,
        CursorError::Stale(_) => ErrorSymbol::ContentModified,
    };
    ErrorBody::new(symbol, error.to_string()).hint("repeat the request without --cursor")
}

/// The error of a request that its caller cancelled.
pub(crate) fn cancelled() -> ErrorBody {
    ErrorBody::new(ErrorSymbol::RequestCancelled, "the request was cancelled").hint("repeat the request")
}

/// Shortens every absolute path in a text to its last name: bundles must not contain folders of this machine. `lanser
/// doctor` shows the whole paths.
fn without_folders(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let path = word.trim_end_matches([',', ';', ':', ')', '`', '"']);
        let bare = path.trim_start_matches(['(', '`', '"']);
        match bare.rsplit_once('/') {
            Some((_, name)) if bare.starts_with('/') => word.replacen(bare, &format!("…/{name}"), 1),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn server_error(error: &LspError, paths: &PathMap) -> ErrorBody {
    let message = paths.text(&error.to_string());
    let body = |symbol| ErrorBody::new(symbol, message.clone());
    match error {
        LspError::Timeout { method, after } => {
            let message = format!("the server did not answer {method} within {} s", after.as_secs_f64());
            ErrorBody::new(ErrorSymbol::LsTimeout, message).hint("increase the limit with --timeout SECONDS")
        }
        LspError::Crashed { exit, stderr } => {
            let lines = stderr.lines().map(|line| paths.text(line)).collect();
            ErrorBody::new(ErrorSymbol::LsCrash, format!("the server ended with {exit}, also after restarts"))
                .hint("`lanser doctor` shows which server and Node.js are used")
                .data(ErrorData::Stderr { lines })
        }
        LspError::EndOfStream | LspError::Closed | LspError::Protocol(_) | LspError::Malformed { .. } => {
            body(ErrorSymbol::LsCrash).hint("`lanser doctor` shows which server and Node.js are used")
        }
        LspError::Spawn { .. } | LspError::OtherServer { .. } => {
            body(ErrorSymbol::LsUnavailable).hint("`lanser doctor` shows which server and Node.js are used")
        }
        LspError::Unsupported { .. } => {
            body(ErrorSymbol::UnsupportedCap).hint("another server may offer it: --server basedpyright")
        }
        LspError::Cancelled => body(ErrorSymbol::RequestCancelled),
        LspError::ContentModified { .. } => body(ErrorSymbol::ContentModified),
        // The server failed, which says nothing about the code.
        LspError::Server { code: INTERNAL_ERROR, .. } => body(ErrorSymbol::LsCrash)
            .hint("the server is still running, and failed at this request; `--server` chooses another one"),
        // The server is still running and would return the same error again.
        LspError::Server { .. } => body(ErrorSymbol::NotFound)
            .hint("the server refused the request at this location; `--server` chooses another one"),
        LspError::Encoding(_) => body(ErrorSymbol::IndexingMismatch),
        LspError::NotOpen(_) => body(ErrorSymbol::Internal),
    }
}
