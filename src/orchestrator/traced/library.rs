//! Replay for programs.

use std::path::Path;
use std::sync::Arc;

use super::replay::{Grounds, Replayed, replay};
use crate::model::bundle::Bundle;
use crate::path::AbsPath;
use crate::trace::reader::{Reader, Store, TraceError};

/// The operations of a trace, made again one by one, with no server and no workspace.
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
    reader: Reader,
    store: Arc<Store>,
    grounds: Grounds,
}

/// An operation that was made again.
#[derive(Debug)]
pub struct Again {
    /// The operation, counted from 1.
    pub op: u64,
    /// The bundle that was made again.
    pub bundle: Bundle,
    /// The bundle that was recorded.
    pub recorded: Option<Bundle>,
    /// The first question that was asked and not recorded, as text: then the bundle means nothing.
    pub lost: Option<String>,
}

impl Again {
    /// Whether it came to what was recorded.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.lost.is_none() && self.recorded.as_ref() == Some(&self.bundle)
    }
}

impl Replay {
    /// Opens a trace.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(file: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = std::path::absolute(file)?;
        let path = AbsPath::new(path).map_err(|error| TraceError::Foreign(error.to_string()))?;
        let reader = Reader::open(&path)?;
        Ok(Self { store: reader.store(), reader, grounds: Grounds::default() })
    }

    /// Makes the next operation again; `None` at the end.
    ///
    /// # Errors
    /// When the trace is damaged or none.
    pub async fn next(&mut self) -> Result<Option<Again>, TraceError> {
        let Some(operation) = self.reader.next_operation()? else { return Ok(None) };
        let (op, recorded) = (operation.op, operation.bundle.clone());
        let Replayed { bundle, lost } = replay(operation, &self.store, &mut self.grounds).await;
        let lost = lost.map(|lost| format!("{} {}", lost.door, lost.question));
        Ok(Some(Again { op, bundle, recorded, lost }))
    }

    /// Whether the trace breaks off in the middle of an operation; known at its end.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.reader.truncated().is_some()
    }
}
