//! A state of the workspace, written to a temporary folder, with a server for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::measure::DiagnosticsByFile;
use super::scratch_folder::ScratchFolder;
use crate::engine::blocking::blocking;
use crate::engine::context::{Deadline, RequestContext};
use crate::engine::failure::Failure;
use crate::engine::instance::Engine;
use crate::engine::locations::LocationBuilder;
use crate::engine::pool::{Isolation, WorkerGuard, WorkerKind};
use crate::engine::refactor;
use crate::engine::request_state::RequestState;
use crate::engine::settings::Settings;
use crate::model::environment::Environment;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Options, Request};
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::Tape;
use crate::workspace::file_tree::FileTree;
use crate::workspace::files::canonical;

/// A state of the workspace with a server.
pub(in crate::engine) struct ScratchWorkspace {
    engine: Engine,
    /// Deleted on drop.
    _folder: ScratchFolder,
    pub(in crate::engine) root: AbsPath,
    pub(in crate::engine) request: Request,
    pub(in crate::engine) state: Arc<RequestState>,
    lease: Option<WorkerGuard>,
    /// The number of files that the server's configuration includes.
    enumerated: u32,
}

impl ScratchWorkspace {
    /// Writes a state to a temporary folder and scans it.
    pub(in crate::engine) async fn new(settings: &Settings, tree: &Arc<FileTree>) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            let error = ErrorBody::new(
                ErrorSymbol::FsPermissions,
                format!("cannot write a temporary copy of the workspace: {error}"),
            );
            Failure::reported(error.hint("set TMPDIR to a folder with enough space"))
        };
        let (temp, files) = (settings.temp.clone(), tree.clone());
        let written = blocking(move || {
            let folder = ScratchFolder::new(&temp)?;
            let root = canonical(&folder.code()?);
            files.write_to(&root)?;
            Ok((folder, root))
        });
        let (folder, root) = written.await?.map_err(cannot)?;
        // Results about a temporary folder are not worth caching.
        let settings = Settings {
            root: root.clone(),
            copy_of: Some(settings.checkout()),
            keep: false,
            verbose: false,
            trace: None,
            ..settings.clone()
        };
        let engine = Engine::new(settings);
        let request = Request::new(Command::Check, None, None, Options::default());
        let (scanner, own_settings) = (&engine.shared.scanner, &engine.settings);
        let inputs = scanner.scan_since(Instant::now(), own_settings, None).await?;
        let (own_settings, owned_request) = (own_settings.clone(), request.clone());
        let state =
            blocking(move || Arc::new(RequestState::new(&own_settings, &owned_request, inputs, Tape::off())))
                .await?;
        Ok(Self { engine, _folder: folder, root, request, state, lease: None, enumerated: 0 })
    }

    /// The path of a file in the folder.
    pub(in crate::engine) fn at(&self, path: &WorkspacePath) -> AbsPath {
        self.root.join(path.as_str())
    }

    /// Starts the server, unless it is running.
    pub(in crate::engine) async fn ready(&mut self) -> Result<(), Failure> {
        if self.lease.is_some() {
            return Ok(());
        }
        let (pool, settings) = (&self.engine.shared.pool, &self.engine.settings);
        let kind = WorkerKind::of(&self.request, settings.server);
        let lease = pool.acquire(kind, Isolation::Fresh, &self.state.inputs, &self.state.files).await?;
        self.enumerated = lease.client.ready(settings.timeout).await?.files;
        self.lease = Some(lease);
        Ok(())
    }

    /// The environment of the measurements; `None` before the server is started.
    pub(in crate::engine) fn environment(&self) -> Option<Environment> {
        let lease = self.lease.as_ref()?;
        let mut environment = self.state.inputs.environment.clone();
        environment.tool = Some(lease.tool(self.engine.settings.server));
        Some(environment)
    }

    /// Discards the server: the next request starts another one.
    pub(in crate::engine) fn discard_server(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.retire();
        }
    }

    /// Runs `work` with a request context on the server.
    pub(in crate::engine) async fn with_context<T>(
        &mut self,
        work: impl AsyncFnOnce(&RequestContext<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.ready().await?;
        let lease = self.lease.as_ref().ok_or(Failure::NeedsFreshServer)?;
        let locations = LocationBuilder {
            state: &self.state,
            files: &self.state.files,
            paths: &self.state.inputs.paths,
            server_unit: lease.client.encoding(),
            io_unit: self.request.options.index_io,
            dual: None,
        };
        let cx = RequestContext {
            request: &self.request,
            state: &self.state,
            server: lease,
            settings: &self.engine.settings,
            response_timeout: self.engine.settings.timeout,
            deadline: Deadline::never(),
            locations: &locations,
            enumerated: self.enumerated,
            measured: Mutex::default(),
        };
        let encoded = self.state.inputs.snapshot.not_utf8().iter();
        cx.open(encoded.map(|path| self.state.inputs.snapshot.absolute(path)))?;
        work(&cx).await
    }

    /// The server's diagnostics of files as they are on disk.
    pub(in crate::engine) async fn diagnostics(
        &mut self,
        files: &[AbsPath],
    ) -> Result<DiagnosticsByFile, Failure> {
        if files.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.with_context(async |cx| {
            refactor::diagnostics(cx, &cx.state.files, cx.locations, files.iter()).await
        })
        .await
    }

    /// Stops the server.
    pub(in crate::engine) async fn close(mut self) {
        self.lease = None;
        self.engine.close().await;
    }
}
