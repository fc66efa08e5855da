//! The answer to a line of a batch.

use serde::Serialize;

use super::scheduler::LineLabel;
use crate::model::batch::RequestId;
use crate::model::bundle::{Bundle, Volatile};
use crate::reward::episode::Episode;

/// The answer to a line.
#[derive(Debug)]
pub enum BatchAnswer {
    /// To a request, and to a line that is not valid.
    Bundle(Box<Bundle>),
    /// To a head that was scored.
    Episode(Box<ScoredHead>),
}

/// An episode with the line that it answers.
#[derive(Debug, Serialize)]
pub struct ScoredHead {
    #[serde(flatten)]
    episode: Episode,
    meta: EpisodeMeta,
}

#[derive(Debug, Default, Serialize)]
struct EpisodeMeta {
    volatile: EpisodeVolatile,
}

/// As in a bundle.
#[derive(Debug, Default, Serialize)]
struct EpisodeVolatile {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

impl BatchAnswer {
    /// Removes what differs between equal answers, except for the caller's identifier.
    pub fn remove_volatile(&mut self) {
        match self {
            Self::Bundle(bundle) => {
                let id = bundle.meta.volatile.id.take();
                bundle.meta.volatile = Volatile { id, ..Volatile::default() };
            }
            Self::Episode(scored) => scored.meta.volatile.line = None,
        }
    }

    pub(super) fn set_label(&mut self, LineLabel { id, line }: LineLabel) {
        match self {
            Self::Bundle(bundle) => {
                bundle.meta.volatile.id = id;
                bundle.meta.volatile.line = Some(line);
            }
            Self::Episode(scored) => scored.meta.volatile = EpisodeVolatile { id, line: Some(line) },
        }
    }
}

impl From<Bundle> for BatchAnswer {
    fn from(bundle: Bundle) -> Self {
        Self::Bundle(Box::new(bundle))
    }
}

impl From<Episode> for BatchAnswer {
    fn from(episode: Episode) -> Self {
        Self::Episode(Box::new(ScoredHead { episode, meta: EpisodeMeta::default() }))
    }
}
