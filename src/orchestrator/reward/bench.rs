//! A state of the workspace laid out in a temporary folder, with a server that stands on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::folder::Folder;
use super::measure::Found;
use crate::model::environment::Environment;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Options, Request};
use crate::orchestrator::ask::{Asking, Due};
use crate::orchestrator::failure::Failure;
use crate::orchestrator::places::Places;
use crate::orchestrator::pool::{Access, Kind, Lease};
use crate::orchestrator::refactor;
use crate::orchestrator::state::State;
use crate::orchestrator::{Orchestrator, Settings, blocking};
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::Tape;
use crate::workspace::files::canonical;
use crate::workspace::tree::FileTree;

/// A state of the workspace with a server.
pub(super) struct Bench {
    orchestrator: Orchestrator,
    /// Removed with everything in it at the end.
    _folder: Folder,
    pub(super) root: AbsPath,
    pub(super) request: Request,
    pub(super) state: Arc<State>,
    lease: Option<Lease>,
    /// How many files the server's configuration includes.
    enumerated: u32,
}

impl Bench {
    /// Lays a state out for a server to stand on.
    pub(super) async fn new(settings: &Settings, tree: &Arc<FileTree>) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            let error =
                ErrorBody::new(ErrorSymbol::FsPermissions, format!("no temporary copy can be made: {error}"));
            Failure::told(error.hint("set TMPDIR to a folder with room"))
        };
        let (temp, files) = (settings.temp.clone(), tree.clone());
        let laid_out = blocking(move || {
            let folder = Folder::new(&temp)?;
            let root = canonical(&folder.code()?);
            files.write_to(&root)?;
            Ok((folder, root))
        });
        let (folder, root) = laid_out.await?.map_err(cannot)?;
        // What was learned of a folder that will be gone is not worth keeping.
        let settings = Settings {
            root: root.clone(),
            copy_of: Some(settings.checkout()),
            keep: false,
            verbose: false,
            trace: None,
            ..settings.clone()
        };
        let orchestrator = Orchestrator::new(settings);
        let request =
            Request { cmd: Command::Check, selector: None, new_name: None, options: Options::default() };
        let (surveyor, own) = (&orchestrator.shared.surveyor, &orchestrator.settings);
        let ground = surveyor.since(Instant::now(), own, None).await?;
        let (own, asked) = (own.clone(), request.clone());
        let state = blocking(move || Arc::new(State::take(&own, &asked, ground, Tape::off()))).await?;
        Ok(Self { orchestrator, _folder: folder, root, request, state, lease: None, enumerated: 0 })
    }

    /// The place of a file.
    pub(super) fn at(&self, path: &WorkspacePath) -> AbsPath {
        self.root.join(path.as_str())
    }

    /// Makes sure that there is a server.
    pub(super) async fn ready(&mut self) -> Result<(), Failure> {
        if self.lease.is_some() {
            return Ok(());
        }
        let (pool, settings) = (&self.orchestrator.shared.pool, &self.orchestrator.settings);
        let kind = Kind::of(&self.request, settings.server);
        let lease = pool.lease(kind, Access::Pristine, &self.state.ground, &self.state.files).await?;
        self.enumerated = lease.client.ready(settings.timeout).await?.files;
        self.lease = Some(lease);
        Ok(())
    }

    /// What is looked at the state with; nothing before there is a server.
    pub(super) fn environment(&self) -> Option<Environment> {
        let lease = self.lease.as_ref()?;
        let mut environment = self.state.ground.environment.clone();
        environment.tool = Some(lease.tool(self.orchestrator.settings.server));
        Some(environment)
    }

    /// Gives the server up: the next question is asked of another one.
    pub(super) fn give_up(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.hung();
        }
    }

    /// Asks the server.
    pub(super) async fn asking<T>(
        &mut self,
        ask: impl AsyncFnOnce(&Asking<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.ready().await?;
        let lease = self.lease.as_ref().ok_or(Failure::Unclean)?;
        let places = Places {
            state: &self.state,
            files: &self.state.files,
            paths: &self.state.ground.paths,
            server_unit: lease.client.encoding(),
            io_unit: self.request.options.index_io,
            dual: None,
        };
        let asking = Asking {
            request: &self.request,
            state: &self.state,
            server: lease,
            settings: &self.orchestrator.settings,
            time: self.orchestrator.settings.timeout,
            due: Due::never(),
            places: &places,
            enumerated: self.enumerated,
            measured: Mutex::default(),
        };
        let encoded = self.state.ground.snapshot.encoded().iter();
        asking.open(encoded.map(|path| self.state.ground.snapshot.absolute(path)))?;
        ask(&asking).await
    }

    /// What the server finds wrong in files as they are.
    pub(super) async fn diagnostics(&mut self, files: &[AbsPath]) -> Result<Found, Failure> {
        if files.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.asking(async |asking| {
            refactor::diagnostics(asking, &asking.state.files, asking.places, files.iter()).await
        })
        .await
    }

    /// Ends the server.
    pub(super) async fn close(mut self) {
        self.lease = None;
        self.orchestrator.close().await;
    }
}
