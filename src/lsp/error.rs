//! Errors between the client and a server.

use std::time::Duration;

use lsp_types::error_codes::REQUEST_CANCELLED;

use super::process::ProcessExit;
use super::server_requests::METHOD_NOT_FOUND;
use crate::path::AbsPath;

/// JSON-RPC's code of an internal error.
pub const INTERNAL_ERROR: i64 = -32603;

/// Why a request, or the whole connection, failed. Cloned to every waiting request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LspError {
    /// The server could not be started.
    #[error("cannot start {program}: {reason}")]
    Spawn {
        /// The program.
        program: String,
        /// The error of the operating system.
        reason: String,
    },
    /// No response in time. The request was cancelled.
    #[error("no response to {method} within {after:?}")]
    Timeout {
        /// The method, or what was waited for.
        method: String,
        /// The timeout.
        after: Duration,
    },
    /// The server's process ended.
    #[error("the server ended with {exit}{}", stderr_tail(stderr))]
    Crashed {
        /// How it ended.
        exit: ProcessExit,
        /// The last lines of its standard error; may be empty.
        stderr: String,
    },
    /// The server closed the stream; its process, if known, is still running.
    #[error("the server closed the connection")]
    EndOfStream,
    /// The connection was closed on this side.
    #[error("the connection is closed")]
    Closed,
    /// The server sent data that violates the protocol or cannot be decoded.
    #[error("the server violated the protocol: {0}")]
    Protocol(String),
    /// A response does not have the form that its method prescribes.
    #[error("cannot parse the response to {method}: {reason}")]
    Malformed {
        /// The method.
        method: String,
        /// What is wrong with the response.
        reason: String,
    },
    /// The server does not support the method.
    #[error("the server does not support {method}")]
    Unsupported {
        /// The method.
        method: String,
    },
    /// The server responded that the request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// The server abandoned the request on each attempt because documents changed.
    #[error("the server abandoned {method} {attempts} times because documents changed")]
    ContentModified {
        /// The method.
        method: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The server responded with an error.
    #[error("the server responded with error {code}: {message}")]
    Server {
        /// The error code of JSON-RPC or LSP.
        code: i64,
        /// The server's message.
        message: String,
    },
    /// The server chose a position encoding that the client does not support.
    #[error("the server chose the position encoding {0:?}, which the client does not support")]
    Encoding(String),
    /// The server is not the expected one.
    #[error("expected the server {expected}, found {found}")]
    OtherServer {
        /// The name in the profile.
        expected: String,
        /// The name that the server reports.
        found: String,
    },
    /// A document to be changed is not open.
    #[error("{0} is not open on the server")]
    NotOpen(AbsPath),
}

impl LspError {
    /// Whether the error is not a response of the server: a timeout, the end of the connection, or invalid data.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.response().is_none()
    }

    /// The code and message of the server's error response, if the error is one.
    pub(super) fn response(&self) -> Option<(i64, String)> {
        match self {
            Self::Server { code, message } => Some((*code, message.clone())),
            Self::Unsupported { method } => Some((METHOD_NOT_FOUND, format!("{method} is not offered"))),
            Self::Cancelled => Some((REQUEST_CANCELLED, "cancelled".to_owned())),
            _ => None,
        }
    }
}

fn stderr_tail(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its standard error ends with:\n{stderr}") }
}
