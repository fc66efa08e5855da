//! The Analysis Bundle: the JSON document that answers one request.

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

/// The answer to one request. `bundleId` is the SHA-256 of the RFC 8785 form of an object with `request`, `resolution`,
/// `facts`, `edits`, `environment`, `capabilities`, `error`, `warnings` (unless empty) and `meta` without `volatile`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// The version of the bundle format.
    pub version: String,
    /// The digest of the hashed members; see `meta.hashing`.
    #[serde(rename = "bundleId")]
    pub bundle_id: Digest,
    /// Whether the answer is whole, partial, or an error.
    pub status: Status,
    /// The request, normalized; `null` when it could not be parsed.
    pub request: Option<Request>,
    /// What the selector resolved to; `null` for a request without a selector, or when resolution was not reached.
    pub resolution: Option<Resolution>,
    /// The answer; `null` when nothing is known, as with most errors.
    // Shared between copies of a bundle, because it can be large.
    pub facts: Option<Arc<Facts>>,
    /// The edit that was planned or written; `null` for read-only requests.
    pub edits: Option<Edits>,
    /// The reward of the step that this bundle is; `null` when it was not computed. Not hashed.
    #[serde(rename = "processReward")]
    pub process_reward: Option<ProcessReward>,
    /// The server, interpreter and workspace that the answer was computed with; `null` when nothing was computed.
    pub environment: Option<Environment>,
    /// The server capabilities that the request depends on, and whether the server has each.
    pub capabilities: BTreeMap<String, bool>,
    /// Why the request failed; `null` when it succeeded.
    pub error: Option<ErrorBody>,
    /// Conditions that can make the answer unexpected: an unreadable configuration, a virtual environment that is not
    /// used, imports that cannot be resolved. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Data about the bundle itself.
    pub meta: Meta,
}

/// Whether the answer is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The whole answer.
    Ok,
    /// The request failed; see `error`.
    Error,
    /// The answer is known to be incomplete; see `facts.completeness` and `meta.limits`.
    Partial,
}

/// Data about the bundle itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The exit code of the program.
    pub exit_code: u8,
    /// The keys that lists of locations are sorted by; ties are broken by the canonical JSON form of the item.
    pub sorting_keys: Vec<String>,
    /// How `bundleId` is computed.
    pub hashing: Hashing,
    /// Weights and thresholds of relocation; `null` when no candidates were scored.
    pub relocation: Option<RelocationRules>,
    /// The digest of the diagnostics that the reward is computed from: SHA-256 of the RFC 8785 form of `[state.scope, before,
    /// integrity]` of `processReward`. Absent when none were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Digest>,
    /// Paging of the list in `facts`; `null` when `facts` has no list.
    pub limits: Option<Limits>,
    /// Data that differs between runs. Not hashed.
    pub volatile: Volatile,
}

/// How `bundleId` is computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hashing {
    /// `sha256-jcs-v1`: SHA-256 over RFC 8785 canonical JSON.
    pub algo: String,
}

/// Paging of a list of facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The maximum number of items in one bundle of this request.
    pub cap: u32,
    /// The number of items on all pages.
    pub total: u32,
    /// Whether there are more items after this page.
    pub truncated: bool,
    /// The value of `--cursor` for the next page; `null` on the last page.
    pub cursor: Option<String>,
}

/// Data that differs between runs. Not hashed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Volatile {
    /// The `id` of the batch request; absent outside of a batch, or when the request has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RequestId>,
    /// The line of the batch input that this bundle answers, counted from 1; absent outside of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// How long the answer took, in milliseconds; absent when it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// Where the answer came from; absent when nothing was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_from: Option<ServedFrom>,
    /// The absolute path of the workspace; absent when no workspace was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The process ID of the process that computed the answer; absent when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The number of the operation in the trace; absent when none is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_op: Option<u64>,
    /// With `--absolute`: the absolute path of every `uri` in this bundle. Absent when empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absolute: BTreeMap<String, String>,
    /// With `-v`: every location in the server's and in the caller's coordinates. Absent when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coordinates: Vec<DualCoordinates>,
}

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServedFrom {
    /// A language server that was started for this answer.
    Server,
    /// A language server that was already running.
    WarmServer,
    /// The memo: the same request was answered before for the same inputs.
    Memo,
    /// The syntax of the files alone; no language server was needed.
    Syntax,
}

/// One location in both coordinate systems.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DualCoordinates {
    /// The file.
    pub uri: DocUri,
    /// `[start line, start column, end line, end column]`, 0-based, columns in `server_unit`.
    pub server: [u32; 4],
    /// The unit of columns that the server uses.
    pub server_unit: ColumnUnit,
    /// `[start line, start column, end line, end column]`, 1-based, columns in `io_unit`.
    pub io: [u32; 4],
    /// The unit of columns that `--index-io` sets.
    pub io_unit: ColumnUnit,
}
