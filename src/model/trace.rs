//! A trace: recorded operations that can be replayed without a server or a workspace.
//!
//! A trace is JSON Lines. Each line is an [`Event`]; the events of one operation are consecutive, from its `header` to
//! its `end`. A `workspace` or `blob` is written once per file, in the first operation that uses it; later operations
//! refer to it by digest.
//!
//! Paths of the machine are replaced in everything that is recorded: the workspace is `/lanser/workspace`, the Python
//! environment `/lanser/env`, its base interpreter `/lanser/base`, the server's package `/lanser/server`. The process
//! environment is not recorded, and neither are options set there. Arguments are recorded as typed; no option of lanser
//! takes a secret. File contents are recorded whole, including any secrets in them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bundle::Bundle;
use super::environment::Environment;
use super::error::ErrorBody;
pub use super::recorded_bundle::RecordedBundle;
use super::request::Request;
use super::reward::ProcessReward;
use super::server::ServerKind;
use crate::digest::Digest;
use crate::path::WorkspacePath;
use crate::tape::MessageSender;

/// The name of the trace format, in every header.
pub const TRACE_FORMAT: &str = "lanser-trace";

/// The version of the trace format. Traces with another major version are rejected. Bundles in a trace have a version of their
/// own: see [`RecordedBundle`].
///
/// Changelog:
/// - 1.0: the first version.
/// - 2.0: each `end` names the byte offset of the previous one and the contents that its operation added, so that appending
///   reads only the end of a trace.
/// - 3.0: the requests and bundles inside have the member names of bundle format 1.5; `request` and `response` (was `question`,
///   `answer`), `portable`, `previous_end`, `non_utf8`, `configuration`.
/// - 3.1: `step` events.
pub const TRACE_VERSION: &str = "3.1";

/// How many hexadecimal digits a checksum has.
const SUM_DIGITS: usize = 16;

/// The checksum of the content of an event, as JSON text.
#[must_use]
pub fn checksum_of(content: &[u8]) -> String {
    let mut hex = Digest::of(content).to_hex();
    hex.truncate(SUM_DIGITS);
    hex
}

/// The end of the line of an event, after the part that the checksum covers.
#[must_use]
pub fn line_end(time: Option<u64>, sum: &str) -> String {
    match time {
        Some(time) => format!(",\"time\":{time},\"sum\":\"{sum}\"}}"),
        None => format!(",\"sum\":\"{sum}\"}}"),
    }
}

/// The checksum of a line without its newline, computed over the bytes as they are; `None` if it does not end with `time` and
/// `sum` as lanser writes them.
#[must_use]
pub fn checksum(line: &[u8], time: Option<u64>, sum: &str) -> Option<String> {
    let content = line.strip_suffix(line_end(time, sum).as_bytes())?;
    Some(checksum_of(&[content, b"}"].concat()))
}

/// One line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The operation, counted from 1 in the file.
    pub op: u64,
    /// The event, counted from 1 in the operation.
    pub seq: u64,
    /// The kind and content of the event.
    #[serde(flatten)]
    pub body: EventBody,
    /// When the event was written, in milliseconds since 1970-01-01 (UTC). Not compared; absent when times are not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// The first 16 hexadecimal digits of the SHA-256 of the line without `time` and `sum`.
    pub sum: String,
}

/// The kind and content of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum EventBody {
    /// Begins an operation.
    Header {
        /// `lanser-trace`.
        format: String,
        /// The version of the trace format.
        version: String,
        /// The version of the program that recorded the trace.
        lanser: String,
        /// The program's arguments as typed, without its name. An absolute path outside of the replaced folders becomes
        /// `/lanser/elsewhere` and its last component. For information only: a replay does not read them.
        argv: Vec<String>,
        /// The environment that the answer was computed with, as far as the workspace determines it; `null` when it was
        /// not determined.
        environment: Option<Box<Environment>>,
    },
    /// The state of a workspace.
    Workspace(Box<RecordedWorkspace>),
    /// The content of a file.
    Blob {
        /// The digest of the bytes.
        digest: Digest,
        /// The text; absent when the content is not UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The bytes in hexadecimal; absent when the content is UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hex: Option<String>,
    },
    /// The request of the operation.
    Request {
        /// The request, as in the bundle.
        request: Box<Request>,
        /// The request with paths of the machine replaced; absent when it is the same.
        #[serde(default, rename = "portable", skip_serializing_if = "Option::is_none")]
        resolved: Option<Box<Request>>,
        /// The `id` of the workspace event that the request was answered on; absent when no workspace was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<Digest>,
        /// The kind of server.
        server: ServerKind,
    },
    /// A file system call.
    File(RecordedCall),
    /// A lookup in the workspace's index of identifiers and symbols.
    Index(RecordedCall),
    /// A lookup in git's revisions.
    History(RecordedCall),
    /// A lookup in the stored contents of earlier bundles.
    Contents(RecordedCall),
    /// A check of files that are to be written.
    Guard(RecordedCall),
    /// The write of an edit.
    Transaction(RecordedCall),
    /// The run of an analyzer, or the answer of the other server of `agree`.
    Analyzer(RecordedCall),
    /// A message between lanser and the server.
    Frame {
        /// The sender.
        from: MessageSender,
        /// The JSON-RPC message. IDs are numbered within the operation.
        message: Value,
    },
    /// An external failure: of the server, by a change of the workspace, or by the caller's cancellation.
    Fault {
        /// The resulting error.
        error: Box<ErrorBody>,
        /// Whether the selector had been resolved before the failure.
        resolved: bool,
    },
    /// The answer.
    Bundle {
        /// The bundle, without `meta.volatile`.
        bundle: RecordedBundle,
    },
    /// The reward of a step between two bundles, in the order in which they were printed. It is an operation of its own, since
    /// bundles are computed in another order than they are printed, and only when the caller asked for a reward.
    Step(Box<RecordedStep>),
    /// Ends an operation.
    End {
        /// The number of events of the operation, including this one.
        events: u64,
        /// The SHA-256 of the `sum` members of all earlier events of the operation.
        digest: Digest,
        /// The byte offset, in the file, of the `end` line that precedes the operations covered by `contents`; absent
        /// when there is none.
        #[serde(default, rename = "previous_end", skip_serializing_if = "Option::is_none")]
        back: Option<u64>,
        /// The digests of blobs and workspaces written in this operation and those directly before it: as many
        /// operations in total as the largest power of two that divides this operation's number. A reader that goes
        /// back from the last `end` therefore finds all digests in few steps.
        contents: Vec<Digest>,
    },
}

/// The reward of a step, as it was printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedStep {
    /// The operation whose bundle the step leads to.
    pub bundle: u64,
    /// Where the step starts; `null` for the state before the bundle's own edit.
    pub previous: Option<StepOrigin>,
    /// The reward.
    pub reward: ProcessReward,
    /// Why the files that only one of the bundles covers could not be measured for the other one; absent when they were, or need
    /// not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<String>,
}

/// The bundle that a step starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepOrigin {
    /// That of an operation of this trace.
    Op(u64),
    /// One that the caller gave.
    Bundle(Box<Bundle>),
}

/// A recorded call to the outside, with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// The call.
    #[serde(rename = "request")]
    pub question: Value,
    /// The result.
    #[serde(rename = "response")]
    pub answer: Value,
}

/// The state of a workspace, as far as answers depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedWorkspace {
    /// The digest of the other members of this event; request events refer to it.
    pub id: Digest,
    /// The digest in `environment.workspace.digest` of bundles.
    pub digest: Digest,
    /// Every Python file with the digest of its content; `null` for a file that could not be read.
    #[schemars(with = "BTreeMap<String, Option<Digest>>")]
    pub files: BTreeMap<WorkspacePath, Option<Digest>>,
    /// Files that are not encoded in UTF-8.
    #[serde(rename = "non_utf8")]
    #[schemars(with = "BTreeSet<String>")]
    pub encoded: BTreeSet<WorkspacePath>,
    /// Folders that could not be read, and names that are not UTF-8.
    pub unreadable: BTreeSet<String>,
    /// The environment as in bundles, without what only a running server knows.
    pub environment: Environment,
    /// The resolved configuration: import roots, folders, the server. Its members are specific to the version of lanser
    /// that recorded it.
    #[serde(rename = "configuration")]
    pub surroundings: Value,
}

/// An operation, as `lanser trace list` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationSummary {
    /// The number of the operation.
    pub op: u64,
    /// The command, or `step` for the reward of a step; `null` when the request could not be parsed.
    pub cmd: Option<String>,
    /// The selector; `null` when there is none.
    pub selector: Option<String>,
    /// The status of the bundle; `null` when there is no bundle.
    pub status: Option<super::bundle::Status>,
    /// The exit code; `null` when there is no bundle.
    pub exit_code: Option<u8>,
    /// The ID of the bundle; `null` when there is no bundle.
    #[serde(rename = "bundleId")]
    pub bundle_id: Option<Digest>,
    /// The number of messages between lanser and the server.
    pub frames: u64,
    /// The number of events.
    pub events: u64,
    /// The size of the events in bytes.
    pub bytes: u64,
}
