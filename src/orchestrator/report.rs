//! What an orchestrator has running, for `session status`.

use serde::{Deserialize, Serialize};

/// What an orchestrator has running.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
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
    /// The memory of its process, in bytes, where the operating system tells.
    pub memory_bytes: Option<u64>,
    /// How many documents it has open.
    pub documents: usize,
}
