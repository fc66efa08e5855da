//! The library API: [`Workspace`] opens a folder, takes typed requests, and returns typed bundles.
//!
//! Everything that the command line takes from options, environment and configuration files has a default here or is
//! set by the program; configuration files are not read. Printing, sessions and exit codes are deliberately not part
//! of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::instance::Engine;
use super::report::RunningServers;
use super::request_input::{read_selector, validate_request};
use super::reward::{ScoreHead, StateSource, score};
use super::sealing::sealed;
use super::settings::{Progress, Settings};
use crate::bundle::seal::BundleDraft;
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Direction, EditInput, GivenSelector, Options, Request, TypeDirection};
use crate::model::server::ServerKind;
use crate::path::{AbsPath, WorkspacePath, absolute::AbsPathError, private};
use crate::reward::RewardFormula;
use crate::reward::episode::Episode;
use crate::text::ColumnUnit;
use crate::trace::writer::TraceWriter;
use crate::workspace::snapshot::ChangeDetection;

/// The default time limit for a response of the server.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A folder of Python code that answers requests.
///
/// The first request that needs a language server finds it, or installs it into lanser's cache, and starts it. The server
/// is kept for later requests until [`Self::close`] is called or the last clone is dropped. Any number of requests can run
/// concurrently. Each returns a [`Bundle`]; if the request failed, [`Bundle::error`] has the reason. Changes in the folder since
/// the last request are detected.
///
/// Requests need a tokio runtime with time and I/O enabled. If the program is killed, the server may outlive it for a while; on
/// Linux, [`WorkspaceOptions::guard`] ends it immediately.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use lanser::Workspace;
///
/// let workspace = Workspace::open("path/to/project")?;
/// let bundle = workspace.references("py://pkg.mod#Class.method").await;
/// match &bundle.error {
///     None => {
///         for place in bundle.facts.iter().flat_map(|facts| facts.references.iter().flatten()) {
///             println!("{}  {}", place.at, place.preview.as_deref().unwrap_or_default());
///         }
///     }
///     Some(error) => println!("{}: {}", error.symbol.as_str(), error.message),
/// }
/// workspace.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Workspace {
    engine: Engine,
    columns: ColumnUnit,
}

/// How to open a workspace. Every option has a default.
#[derive(Clone)]
#[must_use]
pub struct WorkspaceOptions {
    folder: PathBuf,
    server: ServerKind,
    server_version: Option<String>,
    server_command: Option<PathBuf>,
    python: Option<PathBuf>,
    timeout: Duration,
    offline: bool,
    trust_workspace: bool,
    trust: ChangeDetection,
    cache: Option<PathBuf>,
    keep: bool,
    guard: Option<PathBuf>,
    environment: Option<BTreeMap<String, String>>,
    columns: ColumnUnit,
    threads: Option<usize>,
    progress: Arc<dyn Progress>,
    trace: Option<PathBuf>,
}

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder does not exist, or the path is not a folder.
    #[error("{path} is not a readable folder")]
    Folder {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The trace file cannot be written.
    #[error("cannot record into {path}: {reason}")]
    Trace {
        /// The path as it was given.
        path: PathBuf,
        /// The cause.
        reason: std::io::Error,
    },
    /// A path is not UTF-8, or is relative where it must not be.
    #[error(transparent)]
    Path(#[from] AbsPathError),
}

impl Workspace {
    /// Opens a folder with the defaults: the pinned Pyright, and the environment of this process.
    ///
    /// # Errors
    /// If it is not a folder.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::options(folder).open()
    }

    /// The options for a folder, to be changed before [`WorkspaceOptions::open`].
    pub fn options(folder: impl AsRef<Path>) -> WorkspaceOptions {
        WorkspaceOptions {
            folder: folder.as_ref().to_owned(),
            server: ServerKind::default(),
            server_version: None,
            server_command: None,
            python: None,
            timeout: DEFAULT_TIMEOUT,
            offline: false,
            trust_workspace: false,
            trust: ChangeDetection::Stat,
            cache: None,
            keep: true,
            guard: None,
            environment: None,
            columns: ColumnUnit::default(),
            threads: None,
            progress: Arc::new(SilentProgress),
            trace: None,
        }
    }

    /// Answers a request.
    pub async fn ask(&self, request: Request) -> Bundle {
        self.ask_until(request, std::future::pending()).await
    }

    /// Answers a request. If `interrupted` completes first, the bundle has the error `E/REQUEST_CANCELLED`. A write
    /// that has begun is finished.
    pub async fn ask_until(&self, request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
        match validate_request(request.clone()) {
            Ok(request) => self.engine.run(request, interrupted).await,
            Err(error) => self.engine.refused(request, error),
        }
    }

    /// Where a name is defined. All selectors here are text: `py://pkg.mod#Class.method`, `path:LINE:COL`, or any
    /// other form.
    pub async fn definition(&self, selector: &str) -> Bundle {
        self.about(Command::Definition, selector, |_| {}).await
    }

    /// Where a name is declared, stubs before sources.
    pub async fn declaration(&self, selector: &str) -> Bundle {
        self.about(Command::Declaration, selector, |_| {}).await
    }

    /// Where the type of an expression is defined.
    pub async fn type_definition(&self, selector: &str) -> Bundle {
        self.about(Command::TypeDefinition, selector, |_| {}).await
    }

    /// What implements a method or class.
    pub async fn implementation(&self, selector: &str) -> Bundle {
        self.about(Command::Implementation, selector, |_| {}).await
    }

    /// The references of a symbol, and how complete they are.
    pub async fn references(&self, selector: &str) -> Bundle {
        self.about(Command::References, selector, |_| {}).await
    }

    /// Signature and documentation.
    pub async fn hover(&self, selector: &str) -> Bundle {
        self.about(Command::Hover, selector, |_| {}).await
    }

    /// Where a selector is now. No server is needed.
    pub async fn locate(&self, selector: &str) -> Bundle {
        self.about(Command::Locate, selector, |_| {}).await
    }

    /// The callers of a function, or what it calls, to a depth of 1 to 8.
    pub async fn calls(&self, selector: &str, direction: Direction, steps: u32) -> Bundle {
        self.about(Command::Calls, selector, |options| {
            options.direction = Some(direction);
            options.depth = Some(steps);
        })
        .await
    }

    /// The base classes or subclasses of a class, to a depth of 1 to 8.
    pub async fn types(&self, selector: &str, direction: TypeDirection, steps: u32) -> Bundle {
        self.about(Command::TypeHierarchy, selector, |options| {
            options.types = Some(direction);
            options.depth = Some(steps);
        })
        .await
    }

    /// The outline of files and folders.
    pub async fn symbols(&self, paths: &[WorkspacePath]) -> Bundle {
        self.of_files(Command::Symbols, |options| options.paths = paths.to_vec()).await
    }

    /// The definitions whose name matches, over the whole workspace.
    pub async fn search(&self, name: &str) -> Bundle {
        self.of_files(Command::Symbols, |options| options.query = Some(name.to_owned())).await
    }

    /// The diagnostics of files and folders; of the whole workspace if none are given.
    pub async fn diagnostics(&self, paths: &[WorkspacePath]) -> Bundle {
        self.of_files(Command::Diagnostics, |options| options.paths = paths.to_vec()).await
    }

    /// What a rename would write, and whether it is safe. To write it, [`Self::ask`] with [`Options::apply`].
    pub async fn rename(&self, selector: &str, new_name: &str) -> Bundle {
        match read_selector(selector, self.columns) {
            Ok(spec) => {
                let selector = GivenSelector::parsed(spec, selector);
                let new_name = Some(new_name.to_owned());
                let options = self.default_options();
                self.ask(Request::new(Command::Rename, Some(selector), new_name, options)).await
            }
            Err(error) => unparsable_selector(error),
        }
    }

    /// The diagnostics that an edit adds and removes. The edit is a `WorkspaceEdit` as JSON, a bundle, or a unified
    /// diff.
    pub async fn check(&self, edit: Vec<u8>) -> Bundle {
        self.of_files(Command::Check, |options| options.edit = Some(EditInput::new(edit))).await
    }

    /// Scores heads against a base with one server, which is started and stopped by this call. Each episode is
    /// reported as soon as it is known.
    ///
    /// # Errors
    /// If the base does not exist, or no server is available.
    pub async fn score(
        &self,
        base: &StateSource,
        heads: &[ScoreHead],
        terms: &RewardFormula,
        tell: impl FnMut(Episode),
    ) -> Result<(), ErrorBody> {
        let parts = (terms, &[][..]);
        score(&self.engine.settings, base, heads, parts, std::future::pending(), tell).await
    }

    /// Scans the folder and starts the server, if it is installed and not running yet, so that the first request need
    /// not wait for it.
    pub async fn warm_up(&self) {
        self.engine.warm_up().await;
    }

    /// The running servers.
    #[must_use]
    pub fn report(&self) -> RunningServers {
        self.engine.report()
    }

    /// The engine, for [`crate::serve::batch::run`].
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Stops the servers.
    pub async fn close(self) {
        self.engine.close().await;
    }

    fn default_options(&self) -> Options {
        Options { index_io: self.columns, ..Options::default() }
    }

    async fn about(&self, cmd: Command, selector: &str, set: impl FnOnce(&mut Options)) -> Bundle {
        let selector = match read_selector(selector, self.columns) {
            Ok(spec) => GivenSelector::parsed(spec, selector),
            Err(error) => return unparsable_selector(error),
        };
        let mut options = self.default_options();
        set(&mut options);
        self.ask(Request::new(cmd, Some(selector), None, options)).await
    }

    async fn of_files(&self, cmd: Command, set: impl FnOnce(&mut Options)) -> Bundle {
        let mut options = self.default_options();
        set(&mut options);
        self.ask(Request::new(cmd, None, None, options)).await
    }
}

impl WorkspaceOptions {
    /// The kind of server (default: Pyright).
    pub const fn server(mut self, server: ServerKind) -> Self {
        self.server = server;
        self
    }

    /// The server's version (default: the pinned one).
    pub fn server_version(mut self, version: impl Into<String>) -> Self {
        self.server_version = Some(version.into());
        self
    }

    /// The server's script, package folder or executable, instead of searching for it.
    pub fn server_command(mut self, command: impl Into<PathBuf>) -> Self {
        self.server_command = Some(command.into());
        self
    }

    /// A trace file to which the recorded I/O of every request is appended, for [`super::Replay`] (default: none).
    pub fn trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.trace = Some(file.into());
        self
    }

    /// The interpreter whose environment the code is analyzed in (default: `$VIRTUAL_ENV`, `.venv`, `PATH`).
    pub fn python(mut self, interpreter: impl Into<PathBuf>) -> Self {
        self.python = Some(interpreter.into());
        self
    }

    /// The time limit for each response of the server (default: 60 s).
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether installing anything is forbidden (default: no).
    pub const fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Whether programs from the folder may be run (default: no).
    pub const fn trust_workspace(mut self, trust: bool) -> Self {
        self.trust_workspace = trust;
        self
    }

    /// How changed files are detected (default: by `stat`).
    pub const fn freshness(mut self, proof: ChangeDetection) -> Self {
        self.trust = proof;
        self
    }

    /// The cache folder for servers and bundles (default: as for the command line).
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Whether results about the folder are read from and written to the cache (default: yes).
    pub const fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// The `lanser` program, which then stops the server when the thread that started it ends. With a guard, send
    /// requests from a runtime with one thread.
    pub fn guard(mut self, program: impl Into<PathBuf>) -> Self {
        self.guard = Some(program.into());
        self
    }

    /// The environment variables (default: those of this process).
    pub fn environment(mut self, variables: BTreeMap<String, String>) -> Self {
        self.environment = Some(variables);
        self
    }

    /// The unit of columns, in selectors given as text and in the `at` of locations (default: code points).
    pub const fn columns(mut self, unit: ColumnUnit) -> Self {
        self.columns = unit;
        self
    }

    /// How many threads may scan and parse (default: one for each processor, at most 8).
    pub const fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Receives progress (default: nothing does).
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// Opens the workspace. No server is started yet.
    ///
    /// # Errors
    /// If the folder is not a folder, or a path cannot be used.
    pub fn open(self) -> Result<Workspace, OpenError> {
        let settings = self.settings()?;
        Ok(Workspace { engine: Engine::new(settings), columns: self.columns })
    }

    fn settings(&self) -> Result<Settings, OpenError> {
        let real = std::fs::canonicalize(&self.folder).ok().filter(|real| real.is_dir());
        let root = AbsPath::new(real.ok_or_else(|| OpenError::Folder { path: self.folder.clone() })?)?;
        let environment = self.environment.clone().unwrap_or_else(process_environment);
        let absolute =
            |path: &PathBuf| AbsPath::new(std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        let optional = |path: &Option<PathBuf>| path.as_ref().map(absolute).transpose();
        let temp = AbsPath::new(environment.get("TMPDIR").map_or("/tmp", String::as_str))?;
        let cache = match &self.cache {
            Some(cache) => absolute(cache)?,
            None => cache_folder(&environment, &temp, |path| root.join(path)),
        };
        let trace = match &self.trace {
            Some(file) => {
                let writer = TraceWriter::open(&absolute(file)?, Vec::new())
                    .map_err(|reason| OpenError::Trace { path: file.clone(), reason })?;
                Some(Arc::new(writer))
            }
            None => None,
        };
        Ok(Settings {
            trace,
            server: self.server,
            server_version: self.server_version.clone(),
            server_command: optional(&self.server_command)?,
            python: optional(&self.python)?,
            timeout: self.timeout,
            offline: self.offline,
            trust_workspace: self.trust_workspace,
            trust: self.trust,
            cache,
            keep: self.keep,
            temp,
            guard: optional(&self.guard)?,
            search_path: search_path(&environment),
            environment,
            verbose: false,
            threads: self.threads.unwrap_or_else(processors).max(1),
            session_memory: Settings::SERVER_MEMORY,
            progress: self.progress.clone(),
            root,
            copy_of: None,
            environment_of: None,
        })
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.engine.settings.root).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for WorkspaceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceOptions").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Ignores progress.
struct SilentProgress;

impl Progress for SilentProgress {
    fn step(&self, _text: &str) {}

    fn notify(&self, _text: &str) {}

    fn done(&self) {}
}

/// The bundle for a selector that cannot be parsed.
fn unparsable_selector(error: ErrorBody) -> Bundle {
    debug_assert_eq!(error.symbol, ErrorSymbol::BadSelectorSyntax);
    sealed(BundleDraft::failed(None, error))
}

/// How many threads may scan and parse on this machine.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// Lanser's cache: `LANSER_CACHE_DIR`, else the platform's cache folder. If there is none, or other users can write
/// to it, a private folder among temporary files.
///
/// Programs from the cache are run, so a folder that another user may have filled is not used.
pub(crate) fn cache_folder(
    environment: &BTreeMap<String, String>,
    temp: &AbsPath,
    absolute: impl Fn(&str) -> AbsPath,
) -> AbsPath {
    let var = |name: &str| environment.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let named = match (var("LANSER_CACHE_DIR"), var("XDG_CACHE_HOME"), var("HOME")) {
        (Some(cache), ..) => Some(absolute(cache)),
        (None, Some(cache), _) => Some(absolute(cache).join("lanser")),
        (None, None, Some(home)) if cfg!(target_os = "macos") => {
            Some(absolute(home).join("Library/Caches/lanser"))
        }
        (None, None, Some(home)) => Some(absolute(home).join(".cache/lanser")),
        (None, None, None) => None,
    };
    named.filter(|cache| private::is_trusted(cache.as_path())).unwrap_or_else(|| private_cache(temp))
}

/// A cache among temporary files, which all users share: a private folder, created if necessary.
fn private_cache(temp: &AbsPath) -> AbsPath {
    let user = rustix::process::geteuid().as_raw();
    let usual = temp.join(&format!("lanser-{user}-cache"));
    // If it cannot be created, writing to it reports the error.
    let _ = private::create(usual.as_path());
    let is_link = usual.as_path().symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    if private::is_trusted(usual.as_path()) && !is_link {
        return usual;
    }
    // Another user has created it: use an unpredictable name.
    let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    temp.join(&format!("lanser-{user}-{}-{since:x}-cache", std::process::id()))
}

/// The folders of `PATH`.
pub(crate) fn search_path(environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let path = environment.get("PATH").map_or("", String::as_str);
    std::env::split_paths(path).filter(|path| path.is_absolute()).collect()
}

/// The variables of this process whose names and values are UTF-8.
fn process_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_folders() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        std::fs::write(&file, "").unwrap();
        for path in [file, folder.path().join("nowhere")] {
            assert!(
                matches!(Workspace::open(&path), Err(OpenError::Folder { path: given }) if given == path)
            );
        }
    }

    #[test]
    fn requests_that_need_no_server() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("m.py"), "def f(): ...\n").unwrap();
        let workspace = Workspace::options(folder.path()).keep(false).offline(true).open().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // As a task: `Workspace` must be usable with a multi-threaded runtime.
        let (found, unparsable, empty) = runtime
            .block_on(async {
                let requests = tokio::spawn(async move {
                    let found = workspace.locate("py://m#f").await;
                    let unparsable = workspace.hover("py://").await;
                    let empty = workspace.search(" ").await;
                    workspace.close().await;
                    (found, unparsable, empty)
                });
                requests.await
            })
            .unwrap();
        assert_eq!(found.resolution.unwrap().resolved.unwrap().at, "m.py@L1:C5");
        assert_eq!(unparsable.error.unwrap().symbol, ErrorSymbol::BadSelectorSyntax);
        assert_eq!(empty.error.unwrap().symbol, ErrorSymbol::Usage);
    }
}
