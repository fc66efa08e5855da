//! What another server is asked, and its answer: how it explains every occurrence of a name, in a form that does not depend on the
//! server. [`super::agreement`] compares it with the main server's answer.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::concurrent::BoxedFuture;
use super::failure::Failure;
use crate::digest::Digest;
use crate::model::environment::OtherTool;
use crate::model::facts::{Location, UseProvenance};
use crate::model::request::{Command, Options, Request};
use crate::model::server::ServerKind;
use crate::path::DocUri;
use crate::text::ColumnUnit;

/// Whether the answers of two servers are compared, and which of the two works on the request.
pub(super) enum Opinions<'o> {
    /// One server answers alone.
    Single,
    /// This is the main server; another one is asked, too.
    Main(&'o dyn OtherServer),
    /// This is the other server.
    Other(&'o OpinionRequest),
}

/// Another server for the same workspace.
pub(super) trait OtherServer: Send + Sync {
    /// The kind of server.
    fn kind(&self) -> ServerKind;

    /// Its answer about the workspace with this digest.
    fn opinion(&self, question: Question, snapshot: Digest) -> BoxedFuture<'_, Result<Opinion, Failure>>;
}

/// What the other server is asked, and where its answer goes.
pub(super) struct OpinionRequest {
    pub(super) question: Question,
    pub(super) opinion: Mutex<Option<Opinion>>,
}

/// What the other server is asked.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Question {
    pub(super) request: Request,
    /// Further definitions that count as the same symbol, by file and byte offset.
    pub(super) family: Vec<(DocUri, usize)>,
    /// The unit of columns in the locations of definitions.
    pub(super) unit: ColumnUnit,
}

/// The answer of the other server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Opinion {
    pub(super) tool: Option<OtherTool>,
    /// The digest of what the answer depends on. Not recorded: only the memo needs it.
    #[serde(skip)]
    pub(super) inputs: Option<Digest>,
    /// How it explains the occurrences, sorted by place.
    pub(super) occurrences: Vec<OccurrenceOpinion>,
    pub(super) definitions: Vec<DefinitionOpinion>,
}

/// How a server explains one occurrence.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OccurrenceOpinion {
    pub(super) uri: DocUri,
    /// The name, in bytes.
    pub(super) span: (usize, usize),
    pub(super) claim: Claim,
}

/// What an occurrence is for a server, and for lanser's rules about its answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Claim {
    /// The symbol.
    Reference { provenance: Option<UseProvenance>, via: Option<String>, structural: bool },
    /// Another symbol, to which the server resolves it; whether nothing else is possible.
    Defined { name: String, certain: bool },
    /// Not the symbol, by a rule.
    Otherwise,
    /// Not known; the reason.
    Unresolved(String),
}

/// A definition that a server reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DefinitionOpinion {
    /// The name, in bytes.
    pub(super) span: (usize, usize),
    /// Module and qualified name; `None` if no definition in a module or class is there.
    pub(super) symbol: Option<String>,
    pub(super) location: Location,
}

impl Opinions<'_> {
    /// Whether the answers of two servers are compared.
    pub(super) const fn are_compared(&self) -> bool {
        !matches!(self, Self::Single)
    }

    /// Whether this is the other server.
    pub(super) const fn is_other(&self) -> bool {
        matches!(self, Self::Other(_))
    }
}

/// The request that the other server is asked: the same, about the whole answer and without the options of an edit.
pub(super) fn question(request: &Request) -> Request {
    let Options { index_io, scope, exclude_declaration, .. } = request.options;
    let options = Options { index_io, scope, exclude_declaration, ..Options::default() };
    let cmd = if request.cmd == Command::Definition { Command::Definition } else { Command::References };
    Request { cmd, selector: request.selector.clone(), original: None, new_name: None, options }
}
