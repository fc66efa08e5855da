//! A running server, the inputs that it is synced to, and its open documents.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::Settings;
use super::super::failure::Failure;
use super::super::inputs::{Inputs, SyncAction, Tools};
use super::super::report::ServerReport;
use super::super::server::Server;
use super::WorkerKind;
use super::kept::Identity;
use crate::digest::Digest;
use crate::lsp::{ChangeKind, FileChange};
use crate::path::AbsPath;
use crate::workspace::files::{DiskFiles, Files as _};

/// A running server and what is known about its state.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) server: Server,
    pub(super) identity: Identity,
    /// The inputs that it is synced to; `None` until the first request.
    pub(super) inputs: Option<Arc<Inputs>>,
    /// The inputs of the first request.
    pub(super) first_inputs: Option<Arc<Inputs>>,
    pub(super) documents: Mutex<BTreeMap<AbsPath, OpenDocument>>,
    /// Whether it served requests since its start, and since its last reset.
    pub(super) usage: Mutex<WorkerUsage>,
    /// Whether it must not be used any more, for example because it did not answer in time.
    pub(super) hung: AtomicBool,
    /// Whether it was shown documents with edits that are not on disk.
    pub(super) speculated: AtomicBool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WorkerUsage {
    pub(super) any: bool,
    pub(super) since_reset: bool,
}

/// A document that is open on the server.
#[derive(Debug)]
pub(super) struct OpenDocument {
    /// The digest of the text that the server has.
    pub(super) digest: Digest,
    /// How many guards need it.
    pub(super) users: usize,
    /// The time of its last use; the least recently used is closed first.
    pub(super) last_use: u64,
}

impl Worker {
    pub(super) async fn start(
        settings: &Arc<Settings>,
        kind: WorkerKind,
        tools: &Tools,
    ) -> Result<Self, Failure> {
        let python = tools.python.as_ref();
        let server = Server::start(settings.clone(), tools.found.clone()?, python, !kind.pulls).await?;
        Ok(Self::new(server, None))
    }

    /// A server that has served no request, and the inputs that it is synced to.
    pub(super) fn new(server: Server, inputs: Option<Arc<Inputs>>) -> Self {
        Self {
            server,
            identity: Identity::default(),
            first_inputs: inputs.clone(),
            inputs,
            documents: Mutex::default(),
            usage: Mutex::default(),
            hung: AtomicBool::new(false),
            speculated: AtomicBool::new(false),
        }
    }

    /// Starts a worker that is synced to `inputs`.
    pub(super) async fn start_with(
        settings: &Arc<Settings>,
        kind: WorkerKind,
        inputs: &Arc<Inputs>,
    ) -> Result<Self, Failure> {
        let worker = Self::start(settings, kind, &inputs.tools).await?;
        Ok(Self::new(worker.server, Some(inputs.clone())))
    }

    /// Whether it can serve requests.
    pub(super) fn is_usable(&self, settings: &Settings) -> bool {
        self.is_responsive() && !self.exceeds_memory_limit(settings)
    }

    /// Whether it is running and was not marked as hung or retired.
    pub(super) fn is_responsive(&self) -> bool {
        self.server.client.is_alive() && !self.hung.load(Ordering::Relaxed)
    }

    /// Whether it uses more memory than the settings allow.
    pub(super) fn exceeds_memory_limit(&self, settings: &Settings) -> bool {
        self.server.client.memory().is_some_and(|bytes| bytes > settings.session_memory)
    }

    pub(super) fn report(&self) -> ServerReport {
        let client = &self.server.client;
        let identity = client.identity();
        ServerReport {
            name: identity.name,
            version: identity.version.unwrap_or_else(|| self.server.found.version.clone()),
            pid: client.process_id().unwrap_or_default(),
            memory_bytes: client.memory(),
            documents: self.documents().len(),
        }
    }

    pub(super) fn is_synced_to(&self, inputs: &Arc<Inputs>) -> bool {
        self.inputs.as_ref().is_some_and(|current| Arc::ptr_eq(current, inputs))
    }

    /// Whether its first request had other inputs.
    pub(super) fn started_with_other_inputs(&self, inputs: &Arc<Inputs>) -> bool {
        self.first_inputs.as_ref().is_some_and(|first_inputs| !Arc::ptr_eq(first_inputs, inputs))
    }

    /// Syncs the server to `inputs`; `false` when it must be restarted instead.
    pub(super) fn sync_to(&mut self, inputs: &Arc<Inputs>, files: &DiskFiles) -> Result<bool, Failure> {
        let step = match &self.inputs {
            // It has just started and has read no source yet.
            None => SyncAction::Contents(Vec::new()),
            Some(current) if Arc::ptr_eq(current, inputs) => return Ok(true),
            // How the server combines a change on disk with unsaved text that it was shown is not known.
            Some(_) if self.speculated.load(Ordering::Relaxed) => return Ok(false),
            Some(current) => current.sync_action_to(inputs),
        };
        let SyncAction::Contents(changed) = step else { return Ok(false) };
        let client = &self.server.client;
        let mut documents = self.documents();
        for (path, document) in documents.iter_mut() {
            if inputs.holds(path, Some(document.digest)) == Some(true) {
                continue;
            }
            let Ok(now) = files.read(path) else { return Ok(false) };
            // The file differs from the inputs: it is being written right now.
            if inputs.holds(path, Some(now.digest)) == Some(false) {
                return Ok(false);
            }
            if now.digest != document.digest {
                client.change(path, now.clone())?;
                document.digest = now.digest;
            }
        }
        let unopened = changed.into_iter().filter(|path| !documents.contains_key(path));
        let changes: Vec<_> = unopened.map(|path| FileChange { path, kind: ChangeKind::Changed }).collect();
        if !changes.is_empty() {
            client.did_change_watched_files(&changes)?;
        }
        drop(documents);
        // Whether a changed file makes the server drop its inferred types depends on whether it had read the file.
        self.usage().since_reset = true;
        self.inputs = Some(inputs.clone());
        self.first_inputs.get_or_insert_with(|| inputs.clone());
        Ok(true)
    }

    pub(super) fn documents(&self) -> MutexGuard<'_, BTreeMap<AbsPath, OpenDocument>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn usage(&self) -> MutexGuard<'_, WorkerUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
