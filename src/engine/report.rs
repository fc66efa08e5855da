//! The report on running servers for `session status`.

use serde::{Deserialize, Serialize};

/// What an engine is running.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunningServers {
    /// Its servers.
    pub servers: Vec<ServerReport>,
}

/// A running server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerReport {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The memory of its process in bytes, if the operating system reports it.
    pub memory_bytes: Option<u64>,
    /// The number of open documents.
    pub documents: usize,
}
