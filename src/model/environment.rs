//! What an answer was computed with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::ServerKind;
use crate::digest::Digest;

/// What an answer was computed with, without a path or a name of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Environment {
    /// The language server, as it says itself; `null` where none was asked.
    pub tool: Option<Tool>,
    /// This program.
    pub lanser: Lanser,
    /// What the columns of this bundle count: `utf-8`, `utf-16` or `utf-32`.
    pub position_encoding: String,
    /// The interpreter that the server was given; `null` where there is none.
    pub python: Option<Python>,
    /// Over every file and setting that changes what the server says.
    pub config_digest: Digest,
    /// Operating system and architecture, `linux-x86_64`.
    pub platform: String,
    /// The code.
    pub workspace: WorkspaceState,
}

/// The language server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Which server.
    pub name: ServerKind,
    /// Its version.
    pub version: String,
}

/// This program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lanser {
    /// Its version.
    pub version: String,
}

/// The interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// Implementation and version, `3.13.1`.
    pub version: String,
    /// The interpreter, relative to its environment: `env://bin/python3`.
    pub exe: String,
    /// Whether it is a virtual environment.
    pub venv: bool,
}

/// The code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceState {
    /// Over the path and content of every Python file, and the identity of the Python environment.
    pub digest: Digest,
}
