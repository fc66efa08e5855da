//! The inputs of every answer, whatever the request: the files, the Python environment, the configuration, the
//! server.
//!
//! A *scan* collects them as [`Inputs`]; as long as nothing changes, every scan returns the same `Arc`. An answer is
//! valid when a scan that started after it returns the inputs on which it was computed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::blocking::{blocking, read_within};
use super::definition_cache::DefinitionCache;
use super::failure::Failure;
use super::installed_words::InstalledWords;
use super::scan_throttle::ScanThrottle;
use super::settings::Settings;
use super::{python_env, server};
use crate::bundle::portable::PathMap;
use crate::digest::Digest;
use crate::lsp::profile::{Profile, ServerSettings};
use crate::model::environment::{Environment, Lanser, Python, WorkspaceState};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::trace::RecordedWorkspace;
use crate::path::{AbsPath, DocUri, WorkspacePath};
use crate::python::modules::ImportRoots;
use crate::relocate::lazy_index::LazyIndex;
use crate::text::ColumnUnit;
use crate::toolchain::{FoundServer, Unavailable};
use crate::workspace::code_folders::{SkippedFolders, is_skipped};
use crate::workspace::files::{DiskFiles, FileKind, Files, canonical};
use crate::workspace::include_filter::IncludeFilter;
use crate::workspace::python::{EnvironmentCache, PythonEnvironment};
use crate::workspace::root;
use crate::workspace::server_config::ServerConfig;
use crate::workspace::snapshot::{Snapshot, SnapshotScanner};

/// The programs that compute an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tools {
    pub(super) python: Option<PythonEnvironment>,
    /// Why environments that were tried before cannot be used.
    pub(super) problems: Vec<String>,
    pub(super) found: Result<FoundServer, Unavailable>,
}

impl Tools {
    /// Finds them. If no server is found, installs one if `install` is true. Blocking.
    ///
    /// # Errors
    /// If the interpreter given by the user cannot be run, or one does not answer in time.
    pub(super) fn find(
        settings: &Settings,
        environment_cache: &EnvironmentCache,
        install: bool,
    ) -> Result<Self, Failure> {
        let (python, problems) = python_env::find(settings, environment_cache).map_err(Failure::reported)?;
        Ok(Self { python, problems, found: server::find(settings, install) })
    }
}

impl Tools {
    /// Whether both have the same programs. The reason why a server is unavailable does not matter.
    fn are_same(&self, other: &Self) -> bool {
        let found = match (&self.found, &other.found) {
            (Ok(mine), Ok(other)) => mine == other,
            (Err(_), Err(_)) => true,
            _ => false,
        };
        found && self.python == other.python
    }
}

/// Everything that an answer depends on besides the request, at one moment.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) snapshot: Arc<Snapshot>,
    /// Folders outside the workspace from which the server reads sources: `extraPaths`, stubs, editable installs.
    outside: BTreeMap<AbsPath, Arc<Snapshot>>,
    pub(super) tools: Tools,
    /// The digest of the environment's installed packages.
    packages: Digest,
    pub(super) config: ServerConfig,
    /// The files that the configuration includes.
    pub(super) included: IncludeFilter,
    pub(super) roots: ImportRoots,
    pub(super) paths: PathMap,
    /// The environment for bundles, without the fields that only a running server knows.
    pub(super) environment: Environment,
    /// Warnings about inputs that may lead to answers that the caller does not expect.
    pub(super) warnings: Vec<String>,
    /// The workspace's definitions, once they are needed.
    pub(super) index: LazyIndex,
    /// The files that may have classes with computed bases, once they are needed.
    pub(super) computed_bases: OnceLock<Vec<WorkspacePath>>,
    /// The words of what is installed, once a request without a cache needs them.
    uncached_words: OnceLock<Arc<InstalledWords>>,
    /// The inputs in the form of the trace, once one was written.
    pub(super) trace_form: OnceLock<Option<Arc<RecordedWorkspace>>>,
    /// The server's definitions of tokens, from earlier requests.
    pub(super) definitions: DefinitionCache,
    root: AbsPath,
}

/// How to sync a server from one set of inputs to a later one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SyncAction {
    /// Announce that these files of the workspace, which the server knows, were written.
    Contents(Vec<AbsPath>),
    /// Restart it: the files that it learned from, or the order in which it learned of them, would differ.
    Restart,
}

/// With more changed files than this, restarting the server is faster than announcing them.
const MAX_ANNOUNCED_CHANGES: usize = 256;

impl Inputs {
    /// Scans everything. If nothing has changed, returns `last`. `tools` are the programs if they were just found. With
    /// `presume`, the workspace's files are presumed to be those of the last scan of another process; `None` if there is none.
    /// Blocking.
    fn scan(
        settings: &Settings,
        tools: Option<Tools>,
        scanners: &mut FolderScanners,
        environment_cache: &EnvironmentCache,
        last: Option<Arc<Self>>,
        presume: bool,
    ) -> Result<Option<Arc<Self>>, Failure> {
        let presumed = match presume.then(|| scanners.workspace.presume()) {
            Some(None) => return Ok(None),
            presumed => presumed.flatten(),
        };
        let files = DiskFiles::new();
        let environment_scan = || -> Result<_, Failure> {
            let tools = tools.map_or_else(|| Tools::find(settings, environment_cache, false), Ok)?;
            let config = ServerConfig::read(&files, &settings.root, settings.server);
            let packages = match &tools.python {
                Some(python) => python.identity(&files, &settings.root, environment_cache),
                None => Digest::of(b"no python"),
            };
            let outside = outside(settings, &config, tools.python.as_ref(), &files)?;
            Ok((tools, config, packages, outside))
        };
        let (environment_scan, snapshot) = std::thread::scope(|scope| {
            let environment_scan = scope.spawn(environment_scan);
            let snapshot = presumed.unwrap_or_else(|| scanners.workspace.scan());
            (environment_scan.join().expect("the environment scan does not panic"), snapshot)
        });
        let (tools, config, packages, folders) = environment_scan?;
        let outside = folders.into_iter().map(|folder| {
            let snapshot = scanners.of(settings, &folder).scan();
            (folder, snapshot)
        });
        let outside: BTreeMap<_, _> = outside.collect();
        let mut warnings = config.problems.clone();
        warnings.extend(python_env::unused_environments(
            settings,
            &files,
            tools.python.as_ref(),
            &tools.problems,
        ));
        if let Some(last) = last
            && Arc::ptr_eq(&last.snapshot, &snapshot)
            && last.tools.are_same(&tools)
            && last.config == config
            && last.warnings == warnings
            && last.packages == packages
            && last.outside.keys().eq(outside.keys())
            && last.outside.values().zip(outside.values()).all(|(then, now)| Arc::ptr_eq(then, now))
        {
            return Ok(Some(last));
        }
        let python = tools.python.as_ref();
        let package = tools.found.as_ref().ok().map(|found| &found.stubs);
        let paths = path_map(settings, python, package);
        let roots = import_roots(&files, &settings.root, &config, &tools);
        let environment = environment(settings, &snapshot, &outside, &config, python, packages, &paths);
        let included = IncludeFilter::new(&config);
        let (index, trace_form, root) = (LazyIndex::default(), OnceLock::new(), settings.root.clone());
        Ok(Some(Arc::new(Self {
            snapshot,
            outside,
            tools,
            packages,
            config,
            included,
            roots,
            paths,
            environment,
            warnings,
            index,
            computed_bases: OnceLock::new(),
            uncached_words: OnceLock::new(),
            trace_form,
            definitions: DefinitionCache::default(),
            root,
        })))
    }

    /// The words of installed packages and of the server's stubs. `cache` is the folder of all caches.
    pub(super) fn installed_words(&self, cache: Option<&AbsPath>, threads: usize) -> Arc<InstalledWords> {
        let words = || Arc::new(InstalledWords::new(self.installed_folders(), self.packages, cache, threads));
        match cache {
            Some(_) => words(),
            None => self.uncached_words.get_or_init(words).clone(),
        }
    }

    /// The folders of installed packages and of the server's stubs. `None` if the server also reads sources from elsewhere.
    fn installed_folders(&self) -> Option<Vec<AbsPath>> {
        if !self.outside.is_empty() {
            return None;
        }
        // What is in the workspace is searched there.
        let is_own = |folder: &AbsPath| {
            let mut files = self.snapshot.files().keys();
            files.any(|path| self.snapshot.absolute(path).strip_prefix(folder).is_some())
        };
        Some(self.roots.installed()?.into_iter().filter(|folder| !is_own(folder)).cloned().collect())
    }

    /// The digest of the workspace's state if its Python files had the digest `files`.
    pub(super) fn digest_with(&self, files: Digest) -> Digest {
        state_digest(files, self.packages, &self.outside)
    }

    /// Inputs from a trace. They have no index: results that were computed with it are on the operation's tape.
    pub(super) fn recorded(
        snapshot: Arc<Snapshot>,
        tools: Tools,
        included: IncludeFilter,
        config: ServerConfig,
        roots: ImportRoots,
        paths: PathMap,
        environment: Environment,
    ) -> Self {
        Self {
            root: snapshot.root().clone(),
            snapshot,
            outside: BTreeMap::new(),
            tools,
            packages: Digest::of(b"recorded"),
            config,
            included,
            roots,
            paths,
            environment,
            warnings: Vec::new(),
            index: LazyIndex::default(),
            computed_bases: OnceLock::new(),
            uncached_words: OnceLock::new(),
            trace_form: OnceLock::new(),
            definitions: DefinitionCache::default(),
        }
    }

    /// The import roots for another state of the files.
    pub(super) fn roots_of(&self, files: &dyn Files) -> ImportRoots {
        import_roots(files, &self.root, &self.config, &self.tools)
    }

    /// How to sync a server from these inputs to `later`.
    ///
    /// Only changed contents of files that exist in both can be announced. A created or deleted file would have
    /// another position in the server's list than if the server had enumerated now, and the types that Pyright infers
    /// depend on that order.
    pub(super) fn sync_action_to(&self, later: &Self) -> SyncAction {
        let (now, then) = (self.snapshot.files(), later.snapshot.files());
        let compatible = self.tools.are_same(&later.tools)
            && self.config == later.config
            && self.packages == later.packages
            && self.environment.config_digest == later.environment.config_digest
            && self.outside.keys().eq(later.outside.keys())
            && self.outside.values().zip(later.outside.values()).all(|(a, b)| {
                a.files() == b.files() && a.import_layout() == b.import_layout() && a.is_untouched(b)
            })
            && self.snapshot.import_layout() == later.snapshot.import_layout()
            && self.snapshot.not_utf8() == later.snapshot.not_utf8()
            && self.snapshot.unreadable() == later.snapshot.unreadable()
            && now.keys().eq(then.keys());
        if !compatible {
            return SyncAction::Restart;
        }
        let readable =
            |path| now.get(path).copied().flatten().and(then.get(path).copied().flatten()).is_some();
        let touched = self.snapshot.touched(&later.snapshot);
        let changes: Option<Vec<_>> =
            touched.map(|path| readable(path).then(|| later.snapshot.absolute(path))).collect();
        match changes {
            Some(changes) if changes.len() <= MAX_ANNOUNCED_CHANGES => SyncAction::Contents(changes),
            _ => SyncAction::Restart,
        }
    }

    /// The first file, in order, that differs; a general phrase if no file does.
    pub(super) fn first_difference(&self, other: &Self) -> String {
        match self.snapshot.first_difference(&other.snapshot) {
            Some(path) => path.to_string(),
            None => "the environment or the configuration".to_owned(),
        }
    }

    /// Whether the content of a file is part of these inputs: directly for a file of the workspace, by their versions
    /// for files of the environment and of the server.
    pub(super) fn covers(&self, uri: &DocUri) -> bool {
        match uri {
            DocUri::Workspace(path) => self.snapshot.files().contains_key(path),
            DocUri::File(_) => false,
            DocUri::Env(_) | DocUri::Server(_) => true,
        }
    }

    /// The folders outside the workspace from which the server reads sources.
    pub(super) fn outside(&self) -> impl Iterator<Item = &AbsPath> {
        self.outside.keys()
    }

    /// Those folders with their files, by paths relative to each.
    pub(super) fn outside_files(
        &self,
    ) -> impl Iterator<Item = (&AbsPath, &BTreeMap<WorkspacePath, Option<Digest>>)> {
        self.outside.iter().map(|(folder, snapshot)| (folder, snapshot.files()))
    }

    /// Whether a file of the workspace has this content; `None` for any other file.
    pub(super) fn holds(&self, path: &AbsPath, digest: Option<Digest>) -> Option<bool> {
        let uri = self.paths.uri(path);
        let known = self.snapshot.files().get(uri.workspace_path()?)?;
        Some(*known == digest)
    }
}

/// Maps paths of this machine to the portable URIs of a bundle.
pub(super) fn path_map(
    settings: &Settings,
    python: Option<&PythonEnvironment>,
    package: Option<&AbsPath>,
) -> PathMap {
    let mut paths = PathMap::new().workspace(settings.root.clone());
    if let Some(python) = python {
        for prefix in [&python.prefix, &canonical(&python.prefix)] {
            paths = paths.env(prefix.clone());
        }
        for prefix in [&python.base_prefix, &canonical(&python.base_prefix)] {
            paths = paths.env_base(prefix.clone());
        }
    }
    match package {
        Some(package) => paths.server(package.clone()),
        None => paths,
    }
}

fn import_roots(files: &dyn Files, root: &AbsPath, config: &ServerConfig, tools: &Tools) -> ImportRoots {
    let typeshed = tools.found.as_ref().ok().and_then(|found| found.typeshed.clone());
    ImportRoots::new(files, root, config, tools.python.as_ref(), typeshed)
}

/// The folders from which the server reads sources and that are covered neither by the scan of the workspace nor by
/// the records of installed packages: they are outside of both, or in a folder that scans skip.
///
/// # Errors
/// If one is a folder of the system, whose files are too many to be compared before each answer.
fn outside(
    settings: &Settings,
    config: &ServerConfig,
    python: Option<&PythonEnvironment>,
    files: &DiskFiles,
) -> Result<Vec<AbsPath>, Failure> {
    let environments = config.execution_environments.iter();
    let mut folders: Vec<AbsPath> = environments
        .flat_map(|environment| {
            std::iter::once(environment.root.clone()).chain(environment.extra_paths.iter().flatten().cloned())
        })
        .chain(config.extra_paths.iter().flatten().cloned())
        .chain(config.stub_path.clone())
        .chain(config.typeshed_path.clone())
        .collect();
    let mut known = Vec::new();
    if let Some(python) = python {
        folders.extend(python.pth_roots(files));
        known.push(python.stdlib.clone());
        known.extend(python.site_packages.iter().cloned());
    }
    // If the workspace is inside a virtual environment, its sibling folders are not packages.
    known.retain(|known| settings.root.strip_prefix(known).is_none());
    let is_scanned = |folder: &AbsPath| {
        let Some(inside) = folder.strip_prefix(&settings.root) else { return false };
        let mut on_the_way = settings.root.clone();
        inside.split('/').filter(|name| !name.is_empty()).all(|name| {
            on_the_way = on_the_way.join(name);
            !is_skipped(name) && files.kind(&on_the_way.join("pyvenv.cfg")) == FileKind::Missing
        })
    };
    let is_installed = |folder: &AbsPath| known.iter().any(|known| folder.strip_prefix(known).is_some());
    folders.retain(|folder| !is_scanned(folder) && !is_installed(folder));
    folders.sort();
    folders.dedup();
    match folders.iter().find(|folder| root::is_of_system(folder)) {
        Some(folder) => {
            let message = format!("{folder} cannot be a search path: it is a folder of the system");
            let hint = "remove it from the server's configuration or from the .pth file of the environment that names it";
            Err(Failure::reported(ErrorBody::new(ErrorSymbol::Usage, message).hint(hint)))
        }
        None => Ok(folders),
    }
}

fn environment(
    settings: &Settings,
    snapshot: &Snapshot,
    outside: &BTreeMap<AbsPath, Arc<Snapshot>>,
    config: &ServerConfig,
    python: Option<&PythonEnvironment>,
    packages: Digest,
    paths: &PathMap,
) -> Environment {
    let sent = Profile::of(settings.server).digest_input(&ServerSettings { python: None });
    let mut configuration = vec![sent.into_bytes()];
    for (path, digest) in &config.files {
        configuration.push(path.as_bytes().to_vec());
        configuration.push(digest.as_bytes().to_vec());
    }
    Environment {
        tool: None,
        other_tool: None,
        lanser: Lanser { version: env!("CARGO_PKG_VERSION").to_owned() },
        position_encoding: ColumnUnit::Utf16.as_lsp().to_owned(),
        python: python.map(|python| Python {
            version: python.version.clone(),
            exe: paths.uri(&python.interpreter).to_string(),
            venv: python.prefix != python.base_prefix,
        }),
        config_digest: Digest::of_fields(configuration.iter().map(Vec::as_slice)),
        platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        workspace: WorkspaceState { digest: state_digest(snapshot.digest(), packages, outside) },
    }
}

fn state_digest(files: Digest, packages: Digest, outside: &BTreeMap<AbsPath, Arc<Snapshot>>) -> Digest {
    let outside = outside.values().map(|snapshot| snapshot.digest());
    let sources: Vec<Digest> = [files, packages].into_iter().chain(outside).collect();
    Digest::of_fields(sources.iter().map(|digest| &digest.as_bytes()[..]))
}

#[derive(Debug)]
struct FolderScanners {
    workspace: SnapshotScanner,
    outside: BTreeMap<AbsPath, SnapshotScanner>,
}

impl FolderScanners {
    fn new(settings: &Settings) -> Self {
        let skipped = match settings.copy_of {
            Some(_) => SkippedFolders::Read,
            None => SkippedFolders::ReadTracked,
        };
        Self { workspace: scanner(settings, &settings.root).reading(skipped), outside: BTreeMap::new() }
    }

    fn of(&mut self, settings: &Settings, folder: &AbsPath) -> &mut SnapshotScanner {
        self.outside.entry(folder.clone()).or_insert_with(|| scanner(settings, folder))
    }
}

fn scanner(settings: &Settings, folder: &AbsPath) -> SnapshotScanner {
    SnapshotScanner::new(folder, settings.keep.then_some(&settings.cache), settings.trust, settings.threads)
}

/// Scans the inputs, one scan at a time. Callers that wait for a scan that starts late enough share its result.
#[derive(Debug)]
pub(super) struct InputScanner {
    pub(super) environment_cache: Arc<EnvironmentCache>,
    state: Arc<tokio::sync::Mutex<ScanState>>,
    last: Mutex<Option<Arc<Inputs>>>,
    pub(super) throttle: ScanThrottle,
}

#[derive(Debug)]
struct ScanState {
    scanners: FolderScanners,
    /// The start and the result of the last scan; no start for presumed inputs.
    done: Option<(Option<Instant>, Arc<Inputs>)>,
}

impl InputScanner {
    /// With `throttled`, scans are delayed while requests are pending (see [`ScanThrottle`]).
    pub(super) fn new(settings: &Settings, throttled: bool) -> Self {
        let state = ScanState { scanners: FolderScanners::new(settings), done: None };
        let environment_cache = Arc::new(python_env::environment_cache(settings));
        Self {
            environment_cache,
            state: Arc::new(tokio::sync::Mutex::new(state)),
            last: Mutex::new(None),
            throttle: ScanThrottle::new(throttled),
        }
    }

    /// The result of the last scan.
    pub(super) fn last(&self) -> Option<Arc<Inputs>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Inputs with the files of the last scan of another process, without a look at them. The next scan returns the same inputs if
    /// they are right. `None` if there is no such scan, or there was one in this process.
    ///
    /// # Errors
    /// If the interpreter given by the user cannot be run, or one does not answer in time.
    pub(super) async fn presume(
        &self,
        settings: &Arc<Settings>,
        tools: Tools,
    ) -> Result<Option<Arc<Inputs>>, Failure> {
        let mut state = self.state.clone().lock_owned().await;
        if state.done.is_some() {
            return Ok(None);
        }
        let (settings, environment_cache) = (settings.clone(), self.environment_cache.clone());
        let inputs = blocking(move || {
            let scanners = &mut state.scanners;
            let inputs = Inputs::scan(&settings, Some(tools), scanners, &environment_cache, None, true)?;
            state.done = inputs.clone().map(|inputs| (None, inputs));
            Ok::<_, Failure>(inputs)
        });
        let inputs = inputs.await??;
        (*self.last.lock().unwrap_or_else(PoisonError::into_inner)).clone_from(&inputs);
        Ok(inputs)
    }

    /// The result of a scan that began at `start` or later. `tools` are the programs if they were just found.
    ///
    /// # Errors
    /// If the interpreter given by the user cannot be run, or one does not answer in time; if the scan takes longer than a request
    /// may take; if a search path is a folder of the system.
    pub(super) async fn scan_since(
        &self,
        start: Instant,
        settings: &Arc<Settings>,
        tools: Option<Tools>,
    ) -> Result<Arc<Inputs>, Failure> {
        read_within(settings.timeout, self.scan_until_done(start, settings, tools)).await
    }

    async fn scan_until_done(
        &self,
        start: Instant,
        settings: &Arc<Settings>,
        tools: Option<Tools>,
    ) -> Result<Arc<Inputs>, Failure> {
        let mut state = self.state.clone().lock_owned().await;
        if let Some((began, inputs)) = &state.done
            && began.is_some_and(|began| began >= start)
        {
            return Ok(inputs.clone());
        }
        let (settings, environment_cache, began) =
            (settings.clone(), self.environment_cache.clone(), Instant::now());
        let inputs = blocking(move || {
            let began = Instant::now();
            let last = state.done.take().map(|(_, inputs)| inputs);
            let scanners = &mut state.scanners;
            let inputs = Inputs::scan(&settings, tools, scanners, &environment_cache, last, false)?;
            state.done = inputs.clone().map(|inputs| (Some(began), inputs));
            Ok::<_, Failure>(inputs.expect("only presumed inputs may be missing"))
        });
        let inputs = inputs.await??;
        self.throttle.record_scan(began.elapsed());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(inputs.clone());
        Ok(inputs)
    }
}
