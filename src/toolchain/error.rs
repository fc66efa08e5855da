//! Errors of the search for a server.

use std::fmt;

/// One attempt to find or install a server, and why it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchAttempt {
    /// The path that was checked, or the command that was run.
    pub what: String,
    /// Why it cannot be used, or how it failed. May have several lines, from the output of a program.
    pub why: String,
}

impl SearchAttempt {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}

impl fmt::Display for SearchAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// No server could be found or installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Unavailable {
    /// What is missing, in one line.
    pub what: String,
    /// All attempts, in order.
    pub tried: Vec<SearchAttempt>,
    /// The command or change that fixes it.
    pub hint: String,
}
