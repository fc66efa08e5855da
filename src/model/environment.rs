//! The environment that an answer was computed with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::ServerKind;
use crate::digest::Digest;

/// The environment that an answer was computed with. It contains no absolute path and no name of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// The language server; `null` when none was used.
    pub tool: Option<Tool>,
    /// The other server, with `agree`; absent when none was used.
    #[serde(default, rename = "otherTool", skip_serializing_if = "Option::is_none")]
    pub other_tool: Option<OtherTool>,
    /// This program.
    pub lanser: Lanser,
    /// The unit of columns in this bundle: `utf-8`, `utf-16` or `utf-32`.
    #[serde(rename = "positionEncoding")]
    pub position_encoding: String,
    /// The Python interpreter that the server was configured with; `null` if none was found.
    pub python: Option<Python>,
    /// The digest of every configuration file and setting that changes the server's answers.
    #[serde(rename = "configDigest")]
    pub config_digest: Digest,
    /// Operating system and architecture, as in `linux-x86_64`.
    pub platform: String,
    /// The content of the workspace.
    pub workspace: WorkspaceState,
}

/// The language server, as reported by the server itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The kind of server.
    pub name: ServerKind,
    /// The server's version.
    pub version: String,
}

/// Another language server that was asked the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherTool {
    /// The kind of server.
    pub name: ServerKind,
    /// The server's version.
    pub version: String,
    /// The digest of every configuration file and setting that changes this server's answers.
    #[serde(rename = "configDigest")]
    pub config_digest: Digest,
}

/// This program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lanser {
    /// The program's version.
    pub version: String,
}

/// The Python interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// The version, as in `3.13.1`.
    pub version: String,
    /// The interpreter's path relative to its environment, as in `env://bin/python3`.
    pub exe: String,
    /// Whether it belongs to a virtual environment.
    pub venv: bool,
}

/// The content of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceState {
    /// The digest of the path and content of every Python file, and of the identity of the Python environment.
    pub digest: Digest,
}
