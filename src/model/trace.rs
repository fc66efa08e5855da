//! A trace: operations recorded so that they can be replayed with no server and no workspace.
//!
//! A trace is JSON Lines. Each line is an [`Event`]; the events of one operation stand together, from its `header` to its
//! `end`. A `workspace` and a `blob` stand once in a file, in the operation that needed them first; later ones name them by
//! their digests.
//!
//! Folders of the machine are replaced in everything that was recorded: the workspace is `/lanser/workspace`, the Python
//! environment `/lanser/env`, the interpreter below it `/lanser/base`, the server's package `/lanser/server`. Nothing of the
//! process environment is recorded, nor what options were given there. Arguments are recorded as they were typed; no option
//! of lanser takes a secret. The contents of files are recorded whole, and what they hold with them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bundle::Bundle;
use super::environment::Environment;
use super::error::ErrorBody;
use super::request::Request;
use super::server::ServerKind;
use crate::digest::Digest;
use crate::path::WorkspacePath;
use crate::tape::Side;

/// The version of the trace format. What differs in its first number is not read.
///
/// Changelog: 1.0 is the first. 2.0 tells in each `end` where the one before it is and what the operation brought, so that
/// appending reads the end of a trace only.
pub const TRACE_VERSION: &str = "2.0";

/// One line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The operation, counted from 1 in the file.
    pub op: u64,
    /// The event, counted from 1 in the operation.
    pub seq: u64,
    /// What it is.
    #[serde(flatten)]
    pub body: Body,
    /// When it was written, in milliseconds since 1970 (UTC). Outside of every comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// The first 16 hexadecimal digits of the SHA-256 of the line without `time` and `sum`.
    pub sum: String,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Body {
    /// An operation begins.
    Header {
        /// `lanser-trace`.
        format: String,
        /// The version of the format.
        version: String,
        /// The program that recorded.
        lanser: String,
        /// Its arguments as they were typed, without the program's name. An absolute path outside of the folders with names
        /// is `/lanser/elsewhere` and its last part. They are told for people; no replay reads them.
        argv: Vec<String>,
        /// What the answer was computed with, as far as the workspace tells.
        environment: Option<Box<Environment>>,
    },
    /// The state of a workspace.
    Workspace(Box<Workspace>),
    /// The content of a file.
    Blob {
        /// The digest of its bytes.
        digest: Digest,
        /// The text, where it is UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The bytes in hexadecimal, where it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hex: Option<String>,
    },
    /// What was asked.
    Request {
        /// The request, as the bundle echoes it.
        request: Box<Request>,
        /// The same with the machine's folders replaced, where that is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolved: Option<Box<Request>>,
        /// The workspace on which it was answered; absent when it came to none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<Digest>,
        /// Which server.
        server: ServerKind,
    },
    /// A question to the disk, and its answer.
    File(Asked),
    /// A question to the workspace's index of words and symbols, and its answer.
    Index(Asked),
    /// A question to git's revisions, and its answer.
    History(Asked),
    /// A question to the contents of earlier bundles, and its answer.
    Contents(Asked),
    /// A question about files that are to be written, and its answer.
    Guard(Asked),
    /// What was written, and what came of it.
    Transaction(Asked),
    /// A message between lanser and the server.
    Frame {
        /// Who sent it.
        from: Side,
        /// The JSON-RPC message. Ids count the operation's own calls.
        message: Value,
    },
    /// Something outside failed: the server, the workspace that changed, the caller who gave up.
    Fault {
        /// What became of it.
        error: Box<ErrorBody>,
        /// Whether the selector had been resolved before.
        resolved: bool,
    },
    /// The answer, without what differs from run to run.
    Bundle {
        /// The bundle.
        bundle: Box<Bundle>,
    },
    /// The operation is over.
    End {
        /// How many events it has, this one included.
        events: u64,
        /// The SHA-256 of the sums of all events before this one.
        digest: Digest,
        /// In which byte of the file the line begins of the `end` before the operations whose contents are named here;
        /// absent when there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        back: Option<u64>,
        /// The blobs and workspaces that stand in this operation and those just before it, so many operations in all as the
        /// largest power of two that divides this one's number: from the last `end` back, few of them name everything.
        contents: Vec<Digest>,
    },
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The question.
    pub question: Value,
    /// The answer.
    pub answer: Value,
}

/// The state of a workspace, as far as answers depend on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workspace {
    /// The digest of this event's other members; what requests name it by.
    pub id: Digest,
    /// The digest that bundles tell as `environment.workspace.digest`.
    pub digest: Digest,
    /// Every Python file with the digest of its content; `null` where it could not be read.
    #[schemars(with = "BTreeMap<String, Option<Digest>>")]
    pub files: BTreeMap<WorkspacePath, Option<Digest>>,
    /// Those in another encoding than UTF-8.
    #[schemars(with = "BTreeSet<String>")]
    pub encoded: BTreeSet<WorkspacePath>,
    /// Folders that could not be read, and names that are not UTF-8.
    pub unreadable: BTreeSet<String>,
    /// The environment part of bundles, without what only a running server knows.
    pub environment: Environment,
    /// What lanser made of the configuration and the environment: import roots, folders, the server. Its members belong to
    /// this version of lanser.
    pub surroundings: Value,
}

/// What `lanser trace list` tells of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Summary {
    /// Its number.
    pub op: u64,
    /// The command; `null` when the request could not be read.
    pub cmd: Option<String>,
    /// The selector.
    pub selector: Option<String>,
    /// The bundle's status.
    pub status: Option<super::bundle::Status>,
    /// The exit code.
    pub exit_code: Option<u8>,
    /// The bundle's id.
    pub bundle_id: Option<Digest>,
    /// How many messages went to and fro.
    pub frames: u64,
    /// How many events there are.
    pub events: u64,
    /// How many bytes they take.
    pub bytes: u64,
}
