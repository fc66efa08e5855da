//! The library API of replay.

use std::path::Path;
use std::sync::Arc;

use super::replay::{RecordedInputsCache, ReplayResult, replay};
use crate::model::bundle::Bundle;
use crate::model::trace::RecordedBundle;
use crate::path::AbsPath;
use crate::trace::compare::recorded_difference;
use crate::trace::reader::{TraceBlobs, TraceError, TraceReader};

/// Replays the operations of a trace one by one, without a server or a workspace.
///
/// ```no_run
/// # async fn again() -> Result<(), Box<dyn std::error::Error>> {
/// let mut replay = lanser::Replay::open("trace.jsonl")?;
/// while let Some(again) = replay.next().await? {
///     assert!(again.is_same());
///     println!("{}", again.bundle.bundle_id);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Replay {
    reader: TraceReader,
    store: Arc<TraceBlobs>,
    inputs_cache: RecordedInputsCache,
}

/// A replayed operation.
#[derive(Debug)]
pub struct ReplayedOperation {
    /// The 1-based number of the operation.
    pub op: u64,
    /// The replayed bundle.
    pub bundle: Bundle,
    /// The recorded bundle.
    pub recorded: Option<RecordedBundle>,
    /// The first I/O call that was not recorded, as text. If there is one, the replayed bundle is meaningless.
    pub unrecorded: Option<String>,
}

impl ReplayedOperation {
    /// Whether the replayed bundle is the recorded one. Of a bundle of another format, the recorded members are compared.
    #[must_use]
    pub fn is_same(&self) -> bool {
        let is_same = || match self.recorded.as_ref()? {
            RecordedBundle::Current(recorded) => Some(**recorded == self.bundle),
            RecordedBundle::Other { document, .. } => {
                let replayed = serde_json::to_value(&self.bundle).ok()?;
                Some(recorded_difference(document, &replayed).is_none())
            }
        };
        self.unrecorded.is_none() && is_same() == Some(true)
    }
}

impl Replay {
    /// Opens a trace.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(file: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = std::path::absolute(file)?;
        let path = AbsPath::new(path).map_err(|error| TraceError::Foreign(error.to_string()))?;
        let reader = TraceReader::open(&path)?;
        Ok(Self { store: reader.store(), reader, inputs_cache: RecordedInputsCache::default() })
    }

    /// Replays the next operation; `None` at the end.
    ///
    /// # Errors
    /// If the file is damaged or is not a trace.
    pub async fn next(&mut self) -> Result<Option<ReplayedOperation>, TraceError> {
        let operation = loop {
            match self.reader.next_operation()? {
                None => return Ok(None),
                // The rewards of steps are not computed from the record, but from the bundles.
                Some(operation) if operation.step.is_some() => {}
                Some(operation) => break operation,
            }
        };
        let (op, recorded) = (operation.op, operation.bundle.clone());
        let ReplayResult { bundle, unrecorded: lost } =
            replay(operation, &self.store, &mut self.inputs_cache).await;
        let unrecorded = lost.map(|lost| format!("{} {}", lost.kind, lost.query));
        Ok(Some(ReplayedOperation { op, bundle, recorded, unrecorded }))
    }

    /// Whether the trace ends in the middle of an operation; known at its end.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.reader.truncated().is_some()
    }
}
