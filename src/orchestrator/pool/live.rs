//! A running server and what it believes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::Settings;
use super::super::failure::Failure;
use super::super::ground::{Ground, Step, Tools};
use super::super::report::ServerReport;
use super::super::server::Server;
use super::Kind;
use super::kept::Identity;
use crate::digest::Digest;
use crate::lsp::{ChangeKind, FileChange};
use crate::path::AbsPath;
use crate::workspace::files::{DiskFiles, Files as _};

/// A running server and what it believes.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) server: Server,
    pub(super) identity: Identity,
    /// `None` until it is asked for the first time.
    pub(super) ground: Option<Arc<Ground>>,
    /// The ground on which it was asked for the first time.
    pub(super) born: Option<Arc<Ground>>,
    pub(super) opened: Mutex<BTreeMap<AbsPath, Opened>>,
    /// Whether anything was asked since it was started, and since it was renewed.
    pub(super) asked: Mutex<Asked>,
    /// Whether it did not answer in time.
    pub(super) hung: AtomicBool,
    /// Whether it was shown documents as they might become.
    pub(super) speculated: AtomicBool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    pub(super) ever: bool,
    pub(super) since_renewal: bool,
}

/// A document that is open on the server.
#[derive(Debug)]
pub(super) struct Opened {
    /// Of the content that the server was told.
    pub(super) digest: Digest,
    /// How many leases need it.
    pub(super) users: usize,
    /// Of its last use; the least goes first.
    pub(super) turn: u64,
}

impl Live {
    pub(super) async fn start(settings: &Arc<Settings>, kind: Kind, tools: &Tools) -> Result<Self, Failure> {
        let python = tools.python.as_ref();
        let server = Server::start(settings.clone(), tools.found.clone()?, python, !kind.pulls).await?;
        Ok(Self::of(server, None))
    }

    /// A server that was asked nothing yet, and the ground that it stands on.
    pub(super) fn of(server: Server, ground: Option<Arc<Ground>>) -> Self {
        Self {
            server,
            identity: Identity::default(),
            born: ground.clone(),
            ground,
            opened: Mutex::default(),
            asked: Mutex::default(),
            hung: AtomicBool::new(false),
            speculated: AtomicBool::new(false),
        }
    }

    /// A new server that stands on a ground.
    pub(super) async fn on(
        settings: &Arc<Settings>,
        kind: Kind,
        ground: &Arc<Ground>,
    ) -> Result<Self, Failure> {
        let live = Self::start(settings, kind, &ground.tools).await?;
        Ok(Self::of(live.server, Some(ground.clone())))
    }

    /// Whether it can be asked.
    pub(super) fn is_fit(&self, settings: &Settings) -> bool {
        self.has_words() && !self.is_exhausted(settings)
    }

    /// Whether it answers, and what it said stands.
    pub(super) fn has_words(&self) -> bool {
        self.server.client.is_alive() && !self.hung.load(Ordering::Relaxed)
    }

    /// Whether it takes more memory than it may.
    pub(super) fn is_exhausted(&self, settings: &Settings) -> bool {
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
            documents: self.opened().len(),
        }
    }

    pub(super) fn stands_on(&self, ground: &Arc<Ground>) -> bool {
        self.ground.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, ground))
    }

    /// Whether it was asked on another ground before.
    pub(super) fn is_moved(&self, ground: &Arc<Ground>) -> bool {
        self.born.as_ref().is_some_and(|born| !Arc::ptr_eq(born, ground))
    }

    /// Makes the server believe what `ground` says; `false` when only a new one will.
    pub(super) fn bring_to(&mut self, ground: &Arc<Ground>, files: &DiskFiles) -> Result<bool, Failure> {
        let step = match &self.ground {
            // It was started a moment ago and has read no source yet.
            None => Step::Contents(Vec::new()),
            Some(mine) if Arc::ptr_eq(mine, ground) => return Ok(true),
            // What it makes of a change on top of what it was only shown, nobody has to find out.
            Some(_) if self.speculated.load(Ordering::Relaxed) => return Ok(false),
            Some(mine) => mine.step_to(ground),
        };
        let Step::Contents(changed) = step else { return Ok(false) };
        let client = &self.server.client;
        let mut opened = self.opened();
        for (path, document) in opened.iter_mut() {
            if ground.holds(path, Some(document.digest)) == Some(true) {
                continue;
            }
            let Ok(now) = files.read(path) else { return Ok(false) };
            // Another one than the ground says: it is being written right now.
            if ground.holds(path, Some(now.digest)) == Some(false) {
                return Ok(false);
            }
            if now.digest != document.digest {
                client.change(path, now.clone())?;
                document.digest = now.digest;
            }
        }
        let unopened = changed.into_iter().filter(|path| !opened.contains_key(path));
        let changes: Vec<_> = unopened.map(|path| FileChange { path, kind: ChangeKind::Changed }).collect();
        if !changes.is_empty() {
            client.did_change_watched_files(&changes)?;
        }
        drop(opened);
        // Whether a changed file makes the server forget what it inferred depends on whether it had read it.
        self.asked().since_renewal = true;
        self.ground = Some(ground.clone());
        self.born.get_or_insert_with(|| ground.clone());
        Ok(true)
    }

    pub(super) fn opened(&self) -> MutexGuard<'_, BTreeMap<AbsPath, Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
