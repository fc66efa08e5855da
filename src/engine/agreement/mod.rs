//! A second opinion: another server is asked the same, and the answers are compared.
//!
//! The other server is that of a second engine for the same workspace. It is asked while the main server works (`ask`), and
//! answers with its explanation of every occurrence (`collect`). An answer is recorded as such, so that a replay needs no second
//! server. Then the answers are merged (`merge`, `definitions`): what one server leaves open the other may resolve, and where
//! they contradict each other, nothing is claimed.

mod collect;
mod definitions;
mod merge;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

pub(super) use collect::{opinion_on_definitions, opinion_on_occurrences};
pub(super) use definitions::merge_definitions;
pub(super) use merge::{Disputes, merge};

use super::context::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::opinion::{Opinion, OpinionRequest, Opinions, Question, question};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::facts::{Facts, Provenance};
use crate::path::DocUri;
use crate::tape::IoKind;
use crate::workspace::files::{Document, Files as _};

/// Asks the other server about the target of a request, or replays its answer; `None` if the request wants no other server.
/// `family` are further definitions that count as the same symbol.
pub(super) async fn ask(
    cx: &RequestContext<'_>,
    family: &[(Arc<Document>, usize)],
) -> Result<Option<Opinion>, Failure> {
    let Opinions::Main(other) = &cx.opinions else { return Ok(None) };
    let uri = |document: &Document| cx.locations.paths.uri(&document.path);
    let question = Question {
        request: question(cx.request),
        family: family.iter().map(|(document, offset)| (uri(document), *offset)).collect(),
        unit: cx.locations.server_unit,
    };
    let query = ("agree", other.kind(), &question);
    let unrecorded = || {
        Err(ErrorBody::new(
            ErrorSymbol::ReplayMismatch,
            "the trace does not have the answer of the other server",
        ))
    };
    let tape = &cx.state.tape;
    let outcome: Result<Opinion, ErrorBody> = if tape.is_replaying() {
        tape.query(IoKind::Analyzer, &query, unrecorded, unrecorded)
    } else {
        let outcome = other.opinion(question.clone(), cx.state.inputs.snapshot.digest()).await;
        let outcome = outcome.map_err(|failure| {
            let mut error = failure.into_body(cx.locations.paths);
            error.message = format!("{}: {}", other.kind(), error.message);
            error
        });
        tape.query(IoKind::Analyzer, &query, || outcome.clone(), unrecorded)
    };
    let opinion = outcome.map_err(Failure::reported)?;
    cx.state.compared_with(&opinion);
    Ok(Some(opinion))
}

/// Gives the opinion of the other server; returns the output of its request, which only says that it has ended.
pub(super) fn give(request: &OpinionRequest, opinion: Opinion) -> HandlerOutput {
    *request.opinion.lock().unwrap_or_else(PoisonError::into_inner) = Some(opinion);
    HandlerOutput {
        facts: Facts::new(Provenance::Lsp),
        limits: None,
        capabilities: BTreeMap::new(),
        refactored: None,
        error: None,
    }
}

/// The further definitions that count as the same symbol, if this is the other server.
pub(super) fn family(cx: &RequestContext<'_>) -> Vec<(Arc<Document>, usize)> {
    let Opinions::Other(request) = &cx.opinions else { return Vec::new() };
    let read = |(uri, offset): &(DocUri, usize)| {
        let path = cx.locations.paths.absolute(uri)?;
        Some((cx.state.files.read(&path).ok()?, *offset))
    };
    request.question.family.iter().filter_map(read).collect()
}
