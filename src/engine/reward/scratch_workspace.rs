//! A state of the workspace, written to a temporary folder, with a server for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::measure::DiagnosticsByFile;
use super::scratch_folder::ScratchFolder;
use crate::engine::blocking::blocking;
use crate::engine::context::{Deadline, RequestContext};
use crate::engine::failure::Failure;
use crate::engine::inputs::{InputScanner, Inputs};
use crate::engine::instance::Engine;
use crate::engine::locations::LocationBuilder;
use crate::engine::opinion::Opinions;
use crate::engine::pool::{Isolation, WorkerGuard, WorkerKind};
use crate::engine::refactor;
use crate::engine::request_state::RequestState;
use crate::engine::settings::Settings;
use crate::model::environment::Environment;
use crate::model::request::{Command, Options, Request};
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::Tape;
use crate::workspace::file_tree::FileTree;

/// A state of the workspace in a temporary folder, and its inputs. Several servers can work on it.
pub(super) struct ScratchTree {
    settings: Settings,
    /// Deleted on drop.
    _folder: ScratchFolder,
    root: AbsPath,
    scanner: InputScanner,
    inputs: Arc<Inputs>,
}

impl ScratchTree {
    /// Writes a state to a temporary folder and scans it.
    pub(super) async fn write(settings: &Settings, tree: &Arc<FileTree>) -> Result<Self, Failure> {
        let (folder, root) = ScratchFolder::with_copy(settings, tree, "the workspace").await?;
        // Results about a temporary folder are not worth caching.
        let settings = Settings {
            root: root.clone(),
            copy_of: Some(settings.checkout()),
            keep: false,
            verbose: false,
            trace: None,
            ..settings.clone()
        };
        let shared = Arc::new(settings.clone());
        let scanner = InputScanner::new(&shared, false);
        let inputs = scanner.scan_since(Instant::now(), &shared, None).await?;
        Ok(Self { settings, _folder: folder, root, scanner, inputs })
    }

    /// Whether the environment of the state is as it was when the state was scanned.
    pub(super) async fn is_current(&self) -> Result<bool, Failure> {
        let settings = Arc::new(self.settings.clone());
        let inputs = self.scanner.scan_since(Instant::now(), &settings, None).await?;
        Ok(Arc::ptr_eq(&inputs, &self.inputs))
    }
}

/// A state of the workspace with a server.
pub(in crate::engine) struct ScratchWorkspace {
    _tree: Arc<ScratchTree>,
    engine: Engine,
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
        Self::on(Arc::new(ScratchTree::write(settings, tree).await?)).await
    }

    /// A state that was written before, with a separate server.
    pub(super) async fn on(tree: Arc<ScratchTree>) -> Result<Self, Failure> {
        let engine = Engine::new(tree.settings.clone());
        let request = Request::new(Command::Check, None, None, Options::default());
        let (settings, owned_request, inputs) =
            (engine.settings.clone(), request.clone(), tree.inputs.clone());
        let state =
            blocking(move || Arc::new(RequestState::new(&settings, &owned_request, inputs, Tape::off())));
        let (root, state) = (tree.root.clone(), state.await?);
        Ok(Self { _tree: tree, engine, root, request, state, lease: None, enumerated: 0 })
    }

    /// The memory of its server in bytes; `None` if it has no server, or the operating system does not report it.
    pub(super) fn memory(&self) -> Option<u64> {
        self.lease.as_ref()?.client.memory()
    }

    /// Whether its server uses more memory than the settings allow.
    pub(super) fn exceeds_memory_limit(&self) -> bool {
        self.memory().is_some_and(|bytes| bytes > self.engine.settings.session_memory)
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
            opinions: Opinions::Single,
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
