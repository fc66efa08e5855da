//! What can go wrong between the client and a server.

use std::time::Duration;

use super::link::{METHOD_NOT_FOUND, REQUEST_CANCELLED};
use super::process::Exit;
use crate::path::AbsPath;

/// Why a call, or the whole connection, came to nothing. Cloned to every call that was waiting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LspError {
    /// The server could not be started.
    #[error("cannot start {program}: {reason}")]
    Spawn {
        /// What was to be started.
        program: String,
        /// What the system says.
        reason: String,
    },
    /// No answer in time. The server was told to stop working on it.
    #[error("no answer to {method} within {after:?}")]
    Timeout {
        /// What was asked or waited for.
        method: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The server's process ended by itself.
    #[error("the server ended with {exit}{}", last_words(stderr))]
    Crashed {
        /// How it ended.
        exit: Exit,
        /// The last lines of its standard error, perhaps none.
        stderr: String,
    },
    /// The server closed the stream although its process, if it has one here, lives on.
    #[error("the server closed the connection")]
    EndOfStream,
    /// The connection was closed on this side.
    #[error("the connection is closed")]
    Closed,
    /// What came is not the protocol, or cannot be read any further.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// An answer does not have the form that its method prescribes.
    #[error("the answer to {method} cannot be read: {reason}")]
    Malformed {
        /// What was asked.
        method: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// It was to be said again, and had not been asked before.
    #[error("{method} was not asked before")]
    Forgotten {
        /// What was asked.
        method: String,
    },
    /// The server does not offer this.
    #[error("the server does not offer {method}")]
    Unsupported {
        /// What was asked.
        method: String,
    },
    /// The server says that the call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The server took the call back again and again, because its documents kept changing.
    #[error("the server gave {method} up {attempts} times because its documents changed")]
    ContentModified {
        /// What was asked.
        method: String,
        /// How often it was asked.
        attempts: u32,
    },
    /// The server answered with an error.
    #[error("the server answered with error {code}: {message}")]
    Server {
        /// JSON-RPC's or LSP's number.
        code: i64,
        /// The server's sentence.
        message: String,
    },
    /// The server counts columns in a unit that was not offered.
    #[error("the server counts columns in {0:?}, which was not offered")]
    Encoding(String),
    /// Another server than the expected one answers.
    #[error("{found} answers where {expected} was expected")]
    OtherServer {
        /// The profile's name.
        expected: String,
        /// The server's own.
        found: String,
    },
    /// A document that is not open was to be changed.
    #[error("{0} is not open")]
    NotOpen(AbsPath),
}

impl LspError {
    /// Whether it is no answer of the server's: it came too late, ended, or made no sense.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.response().is_none()
    }

    /// The server's own words, when it was the server that refused: code and message.
    pub(super) fn response(&self) -> Option<(i64, String)> {
        match self {
            Self::Server { code, message } => Some((*code, message.clone())),
            Self::Unsupported { method } => Some((METHOD_NOT_FOUND, format!("{method} is not offered"))),
            Self::Cancelled => Some((REQUEST_CANCELLED, "cancelled".to_owned())),
            _ => None,
        }
    }
}

fn last_words(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its last words:\n{stderr}") }
}
