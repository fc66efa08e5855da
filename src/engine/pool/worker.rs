//! A running server, the inputs that it is synced to, and its open documents.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::failure::Failure;
use super::super::inputs::{Inputs, SyncAction, Tools};
use super::super::report::ServerReport;
use super::super::server::Server;
use super::super::settings::Settings;
use super::{Isolation, WorkerKind};
use crate::digest::Digest;
use crate::lsp::{ChangeKind, FileChange};
use crate::path::AbsPath;
use crate::workspace::files::{DiskFiles, Files as _};

/// A running server and what is known about it.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) server: Server,
    synced: Mutex<SyncedInputs>,
    pub(super) documents: Mutex<BTreeMap<AbsPath, OpenDocument>>,
    /// Counts the requests that it served.
    pub(super) requests: AtomicU64,
    /// Whether it was shown documents with edits that are not on disk.
    pub(super) speculated: AtomicBool,
}

/// The inputs that a worker is synced to, and those that it was started with; `None` until the first request.
#[derive(Debug, Default)]
struct SyncedInputs {
    now: Option<Arc<Inputs>>,
    first: Option<Arc<Inputs>>,
}

/// A document that is open on the server.
#[derive(Debug)]
pub(super) struct OpenDocument {
    /// The digest of the text that the server has.
    pub(super) digest: Digest,
    /// How many guards need it.
    pub(super) users: usize,
    /// The request that used it last, by number; the least recently used is closed first.
    pub(super) last_use: u64,
}

impl Worker {
    /// Starts a server. `inputs` are what it is synced to; `None` if they are not known yet.
    pub(super) async fn start(
        settings: &Arc<Settings>,
        kind: WorkerKind,
        tools: &Tools,
        inputs: Option<&Arc<Inputs>>,
    ) -> Result<Self, Failure> {
        let python = tools.python.as_ref();
        let server = Server::start(settings.clone(), tools.found.clone()?, python, !kind.pulls).await?;
        Ok(Self::new(server, inputs.cloned()))
    }

    /// A server that has served no request, and the inputs that it is synced to.
    pub(super) fn new(server: Server, inputs: Option<Arc<Inputs>>) -> Self {
        Self {
            server,
            synced: Mutex::new(SyncedInputs { now: inputs.clone(), first: inputs }),
            documents: Mutex::default(),
            requests: AtomicU64::new(0),
            speculated: AtomicBool::new(false),
        }
    }

    /// Whether it can serve requests.
    pub(super) fn is_usable(&self, settings: &Settings) -> bool {
        self.server.client.is_alive() && !self.exceeds_memory_limit(settings)
    }

    /// Whether its past allows it to serve such a request under these inputs.
    pub(super) fn allows(&self, isolation: Isolation, inputs: &Arc<Inputs>) -> bool {
        match isolation {
            Isolation::Shared | Isolation::Reset => true,
            Isolation::NeverSynced => {
                self.synced().first.as_ref().is_none_or(|first| Arc::ptr_eq(first, inputs))
            }
            Isolation::Fresh => self.requests.load(Ordering::Relaxed) == 0,
        }
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

    /// The inputs that it is synced to.
    pub(super) fn inputs(&self) -> Option<Arc<Inputs>> {
        self.synced().now.clone()
    }

    pub(super) fn is_synced_to(&self, inputs: &Arc<Inputs>) -> bool {
        self.synced().now.as_ref().is_some_and(|current| Arc::ptr_eq(current, inputs))
    }

    /// Whether it has never been synced to any inputs.
    pub(super) fn was_never_synced(&self) -> bool {
        self.synced().now.is_none()
    }

    /// Syncs the server to `inputs`; `false` when it must be restarted instead. No request may be using it.
    pub(super) fn sync_to(&self, inputs: &Arc<Inputs>, files: &DiskFiles) -> Result<bool, Failure> {
        let step = match self.inputs() {
            // It has just started and has read no source yet.
            None => SyncAction::Contents(Vec::new()),
            Some(current) if Arc::ptr_eq(&current, inputs) => return Ok(true),
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
        let mut synced = self.synced();
        synced.now = Some(inputs.clone());
        synced.first.get_or_insert_with(|| inputs.clone());
        Ok(true)
    }

    fn synced(&self) -> MutexGuard<'_, SyncedInputs> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn documents(&self) -> MutexGuard<'_, BTreeMap<AbsPath, OpenDocument>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
