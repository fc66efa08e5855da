//! Why there is no server.

use std::fmt;

/// One thing that was tried, and why it did not lead to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The place looked at, or the command that was run.
    pub what: String,
    /// What was there instead, or how it failed. May have several lines when a program said so much.
    pub why: String,
}

impl Attempt {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}

impl fmt::Display for Attempt {
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
    /// Everything that was tried, in order.
    pub tried: Vec<Attempt>,
    /// The one command, or the one thing to do, that mends it.
    pub hint: String,
}
