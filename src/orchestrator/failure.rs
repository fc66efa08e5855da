//! Why an attempt came to nothing, and what the bundle says of it.

use std::time::Duration;

use crate::bundle::page::CursorError;
use crate::bundle::portable::PathMap;
use crate::lsp::error::LspError;
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::toolchain::Unavailable;

/// Why an attempt came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// There is no server.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The server failed.
    #[error(transparent)]
    Server(#[from] LspError),
    /// The workspace changed under the answer.
    #[error("{0} changed while the request ran")]
    Changed(String),
    /// The answer depends on what the server was asked before.
    #[error("the answer depends on what the server was asked before")]
    Unclean,
    /// The answer may depend on what the server is asked beside it.
    #[error("the answer may depend on what the server is asked beside it")]
    Company,
    /// The list cannot be continued.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// Anything that is already told in the words of a bundle.
    #[error("{}", .0.message)]
    Told(Box<ErrorBody>),
}

impl Failure {
    /// A failure in the words of a bundle.
    pub(super) fn told(error: ErrorBody) -> Self {
        Self::Told(Box::new(error))
    }

    /// Nothing is there, or the server has nothing to say of it.
    pub(super) fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::told(ErrorBody::new(ErrorSymbol::NotFound, message).hint(hint))
    }

    /// Whether a new server may do better.
    pub(super) const fn is_crash(&self) -> bool {
        matches!(self, Self::Server(LspError::Crashed { .. } | LspError::EndOfStream | LspError::Closed))
    }

    /// Whether the server did not answer in time.
    pub(super) const fn is_hang(&self) -> bool {
        matches!(self, Self::Server(LspError::Timeout { .. }))
    }

    /// The same failure; one by the time limit names the caller's limit, whatever was left of it for this question.
    pub(super) fn within(mut self, limit: Duration) -> Self {
        if let Self::Server(LspError::Timeout { after, .. }) = &mut self {
            *after = limit;
        }
        self
    }

    /// Whether something outside failed: no record of what was asked and answered tells it.
    pub(super) fn is_outside(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Changed(_) | Self::Unclean | Self::Company => true,
            Self::Server(error) => error.is_outside(),
            Self::Cursor(_) | Self::Told(_) => false,
        }
    }

    /// The error object of the bundle, free of the machine's paths.
    pub(super) fn into_body(self, paths: &PathMap) -> ErrorBody {
        match self {
            Self::Told(error) => *error,
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
            .hint("ask again when nothing writes into the workspace")
            .data(ErrorData::Changed { path }),
            // A server that nobody asked before gives no such answer.
            Self::Unclean | Self::Company => ErrorBody::new(ErrorSymbol::Internal, self.to_string()),
            Self::Cursor(error) => {
                let symbol = match error {
                    CursorError::Syntax(_) => ErrorSymbol::Usage,
                    CursorError::Stale(_) => ErrorSymbol::ContentModified,
                };
                ErrorBody::new(symbol, error.to_string()).hint("ask again without --cursor")
            }
            Self::Server(error) => server_error(&error, paths),
        }
    }
}

/// A text with every absolute path cut to its last name: where programs and caches lie is the machine's business, and an
/// answer is the same on all of them. `lanser doctor` shows the whole paths.
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
            ErrorBody::new(ErrorSymbol::LsTimeout, message).hint("give it longer with --timeout SECONDS")
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
        // The server lives and says the same when it is asked again.
        LspError::Server { .. } => body(ErrorSymbol::NotFound)
            .hint("the server failed at this place; ask about another, or with --server basedpyright"),
        LspError::Encoding(_) => body(ErrorSymbol::IndexingMismatch),
        LspError::NotOpen(_) | LspError::Forgotten { .. } => body(ErrorSymbol::Internal),
    }
}
