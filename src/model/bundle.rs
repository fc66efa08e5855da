//! The Analysis Bundle: one answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::batch::RequestId;
use super::edits::Edits;
use super::environment::Environment;
use super::error::ErrorBody;
use super::facts::Facts;
use super::request::Request;
use super::resolution::{RelocationRules, Resolution};
use super::reward::ProcessReward;
use crate::digest::Digest;
use crate::path::DocUri;
use crate::text::ColumnUnit;

/// One answer to one request. `bundleId` is the SHA-256 of the RFC 8785 form of an object with `request`, `resolution`,
/// `facts`, `edits`, `environment`, `capabilities`, `error`, `warnings` (if there are any) and `meta` without `volatile`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    /// The version of this format.
    pub version: String,
    /// The content's digest.
    pub bundle_id: Digest,
    /// Whether there is an answer, a part of one, or none.
    pub status: Status,
    /// What was asked; `null` when it could not be read.
    pub request: Option<Request>,
    /// Where the selector is now; `null` for a request without one, or when it was never looked for.
    pub resolution: Option<Resolution>,
    /// What is true; `null` when nothing could be said.
    // They may be long: copies of a bundle share them.
    pub facts: Option<Arc<Facts>>,
    /// What would be, or was, written; `null` for requests that only read.
    pub edits: Option<Edits>,
    /// The reward of the step that this bundle is; `null` where none was computed.
    pub process_reward: Option<ProcessReward>,
    /// What the answer was computed with; `null` when nothing was computed.
    pub environment: Option<Environment>,
    /// What the server offered of what this request depends on.
    pub capabilities: BTreeMap<String, bool>,
    /// Why there is no answer; `null` when there is one.
    pub error: Option<ErrorBody>,
    /// What may make the answer another one than the caller expects: a configuration that cannot be read, a virtual environment
    /// that was passed over, imports that cannot be resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// About the bundle itself.
    pub meta: Meta,
}

/// Whether there is an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The whole answer.
    Ok,
    /// No answer; see `error`.
    Error,
    /// An answer that is known not to be whole; see `facts.completeness` and `meta.limits`.
    Partial,
}

/// About the bundle itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The exit code that the program ends with.
    pub exit_code: u8,
    /// What lists of locations are ordered by; ties by the canonical form of the item.
    pub sorting_keys: Vec<String>,
    /// How `bundleId` is made.
    pub hashing: Hashing,
    /// Weights and thresholds of relocation; `null` where nothing was weighed.
    pub relocation: Option<RelocationRules>,
    /// Whether the list of facts was cut; `null` for facts that are no list.
    pub limits: Option<Limits>,
    /// What differs from run to run, outside `bundleId`.
    pub volatile: Volatile,
}

/// How `bundleId` is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hashing {
    /// `sha256-jcs-v1`: SHA-256 over RFC 8785 canonical JSON.
    pub algo: String,
}

/// Whether a list was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The most items that one bundle of this request holds.
    pub cap: u32,
    /// How many items there are in all.
    pub total: u32,
    /// Whether items follow that are not here.
    pub truncated: bool,
    /// What `--cursor` continues with.
    pub cursor: Option<String>,
}

/// What differs from run to run. Nothing here is part of `bundleId`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Volatile {
    /// In a batch: what the caller calls the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RequestId>,
    /// In a batch: the line that was answered, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// How long the answer took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// How the answer came about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub road: Option<Road>,
    /// The workspace's absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The process that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// With `-v`: every location in both coordinate systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coordinates: Vec<DualCoordinates>,
}

/// How an answer came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Road {
    /// A server was started for it.
    Cold,
    /// A server that was running already was asked.
    Warm,
    /// The same was asked before.
    Memo,
    /// No server was needed.
    Syntax,
}

/// One location in both coordinate systems.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DualCoordinates {
    /// The file.
    pub uri: DocUri,
    /// 0-based, in the server's unit.
    pub server: [u32; 4],
    /// The server's unit.
    pub server_unit: ColumnUnit,
    /// 1-based, in `--index-io`'s unit.
    pub io: [u32; 4],
    /// `--index-io`'s unit.
    pub io_unit: ColumnUnit,
}
