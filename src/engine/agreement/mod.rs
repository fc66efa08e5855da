//! A second opinion: another server is asked the same, and the answers are compared.
//!
//! The other server is that of a second engine for the same workspace. It is asked while the main server works ([`ask`]), and
//! answers with what it makes of every occurrence ([`opinion`]). An answer is recorded as such, so that a replay needs no second
//! server. Then the answers are merged ([`merge`], [`definitions`]): what one server leaves open the other may resolve, and where
//! they contradict each other, nothing is claimed.

mod ask;
mod definitions;
mod merge;
mod opinion;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) use ask::{OtherServer, ask};
pub(super) use definitions::merge_definitions;
pub(super) use merge::{Disputes, merge};
pub(super) use opinion::{Opinion, Question};

use super::context::{HandlerOutput, RequestContext};
use crate::model::facts::{Facts, Provenance};
use crate::path::DocUri;
use crate::workspace::files::{Document, Files as _};

/// Whose answers are compared.
pub(super) enum Opinions<'o> {
    /// One server answers alone.
    Single,
    /// This is the main server; another one is asked, too.
    Main(&'o OtherServer),
    /// This is the other server.
    Other(&'o OpinionRequest),
}

/// What the other server is asked, and where its answer goes.
pub(super) struct OpinionRequest {
    pub(super) question: Question,
    pub(super) opinion: Mutex<Option<Opinion>>,
}

impl OpinionRequest {
    /// Gives the answer; returns the output of the request, which nobody reads.
    pub(super) fn answer(&self, opinion: Opinion) -> HandlerOutput {
        *self.opinion.lock().unwrap_or_else(PoisonError::into_inner) = Some(opinion);
        HandlerOutput {
            facts: Facts::new(Provenance::Lsp),
            limits: None,
            capabilities: BTreeMap::new(),
            refactored: None,
            error: None,
        }
    }

    /// The further definitions that count as the same symbol.
    pub(super) fn family(&self, cx: &RequestContext<'_>) -> Vec<(Arc<Document>, usize)> {
        let read = |(uri, offset): &(DocUri, usize)| {
            let path = cx.locations.paths.absolute(uri)?;
            Some((cx.state.files.read(&path).ok()?, *offset))
        };
        self.question.family.iter().filter_map(read).collect()
    }
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
