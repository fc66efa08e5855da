//! lanser for programs: a workspace that is opened, asked typed requests, and answers with typed bundles.
//!
//! Everything that the command line takes from options, environment and configuration files has a default here or is said
//! by the program; configuration files are not read. Deliberately absent: printing, sessions, exit codes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{
    Orchestrator, Progress, Report, Scored, Settings, Source, checked, read_selector, score, sealed,
};
use crate::bundle::seal::Draft;
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Direction, EditInput, Options, Request};
use crate::model::server::ServerKind;
use crate::path::{AbsPath, WorkspacePath, absolute::AbsPathError, private};
use crate::reward::Terms;
use crate::reward::episode::Episode;
use crate::text::ColumnUnit;
use crate::trace::writer::Writer;
use crate::workspace::snapshot::Trust;

/// How long an answer of the server is waited for when nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder of Python code that can be asked about.
///
/// Its language server is found, or installed into lanser's cache, and started by the first request that needs one; it
/// stays for later ones and ends with [`Self::close`], or when the last clone is dropped. Any number of requests can be
/// asked at once. Each answer is a [`Bundle`], also when there is none: then [`Bundle::error`] says why. What changed in the folder
/// since the last request is noticed by itself.
///
/// Requests need a tokio runtime with time and I/O enabled. A program that is killed leaves the server to notice that; on Linux
/// [`WorkspaceOptions::guard`] ends it for certain.
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
    orchestrator: Orchestrator,
    columns: ColumnUnit,
}

/// What a workspace is opened with. Every value has a default.
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
    trust: Trust,
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
    /// It is not there, or no folder.
    #[error("{path} is no folder that can be read")]
    Folder {
        /// The path as it was given.
        path: PathBuf,
    },
    /// What is asked cannot be recorded there.
    #[error("cannot record into {path}: {reason}")]
    Trace {
        /// The path as it was given.
        path: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// A path has no name in UTF-8, or is relative where it must not be.
    #[error(transparent)]
    Path(#[from] AbsPathError),
}

impl Workspace {
    /// Opens a folder with the defaults: the pinned Pyright, and the environment of this process.
    ///
    /// # Errors
    /// When it is no folder.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::options(folder).open()
    }

    /// What a folder is opened with, to be changed before [`WorkspaceOptions::open`].
    pub fn options(folder: impl AsRef<Path>) -> WorkspaceOptions {
        WorkspaceOptions {
            folder: folder.as_ref().to_owned(),
            server: ServerKind::default(),
            server_version: None,
            server_command: None,
            python: None,
            timeout: TIMEOUT,
            offline: false,
            trust_workspace: false,
            trust: Trust::Stat,
            cache: None,
            keep: true,
            guard: None,
            environment: None,
            columns: ColumnUnit::default(),
            threads: None,
            progress: Arc::new(Silent),
            trace: None,
        }
    }

    /// Answers a request.
    pub async fn ask(&self, request: Request) -> Bundle {
        self.ask_until(request, std::future::pending()).await
    }

    /// Answers a request; when `interrupted` ends first, with `E/REQUEST_CANCELLED`. A write that has begun is finished.
    pub async fn ask_until(&self, request: Request, interrupted: impl Future<Output = ()>) -> Bundle {
        match checked(request.clone()) {
            Ok(request) => self.orchestrator.run(request, interrupted).await,
            Err(error) => self.orchestrator.refused(request, error),
        }
    }

    /// Where a name is defined. Like everywhere here the selector is a text: `py://pkg.mod#Class.method`, `path:LINE:COL`, or
    /// any other form.
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

    /// Every use of a symbol, with how complete that is.
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

    /// Who calls a function, or what it calls, in so many steps (1 to 8).
    pub async fn calls(&self, selector: &str, direction: Direction, steps: u32) -> Bundle {
        self.about(Command::Calls, selector, |options| {
            options.direction = Some(direction);
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

    /// What is wrong in files and folders; in the whole workspace when none are given.
    pub async fn diagnostics(&self, paths: &[WorkspacePath]) -> Bundle {
        self.of_files(Command::Diagnostics, |options| options.paths = paths.to_vec()).await
    }

    /// What a rename would write, and whether it is safe. To write it, [`Self::ask`] with [`Options::apply`].
    pub async fn rename(&self, selector: &str, new_name: &str) -> Bundle {
        match read_selector(selector, self.columns) {
            Ok(selector) => {
                let new_name = Some(new_name.to_owned());
                let options = self.default_options();
                self.ask(Request { cmd: Command::Rename, selector: Some(selector), new_name, options }).await
            }
            Err(error) => unreadable(error),
        }
    }

    /// Which diagnostics an edit brings and which it ends: a `WorkspaceEdit` as JSON, a bundle, or a unified diff.
    pub async fn check(&self, edit: Vec<u8>) -> Bundle {
        self.of_files(Command::Check, |options| options.edit = Some(EditInput::new(edit))).await
    }

    /// Scores heads against a base by one server, which is started for that and ended with it; each is told as soon as it is known.
    ///
    /// # Errors
    /// When there is no such base, or no server.
    pub async fn score(
        &self,
        base: &Source,
        heads: &[Scored],
        terms: &Terms,
        tell: impl FnMut(Episode),
    ) -> Result<(), ErrorBody> {
        score(&self.orchestrator.settings, base, heads, terms, std::future::pending(), tell).await
    }

    /// Looks at the folder and starts the server, if none runs and one is installed. For who does not want the first request
    /// to wait for that.
    pub async fn warm_up(&self) {
        self.orchestrator.warm_up().await;
    }

    /// What is running.
    #[must_use]
    pub fn report(&self) -> Report {
        self.orchestrator.report()
    }

    /// Who answers, for [`super::batch::run`].
    #[must_use]
    pub const fn orchestrator(&self) -> &Orchestrator {
        &self.orchestrator
    }

    /// Ends the servers.
    pub async fn close(self) {
        self.orchestrator.close().await;
    }

    fn default_options(&self) -> Options {
        Options { index_io: self.columns, ..Options::default() }
    }

    async fn about(&self, cmd: Command, selector: &str, set: impl FnOnce(&mut Options)) -> Bundle {
        let selector = match read_selector(selector, self.columns) {
            Ok(selector) => selector,
            Err(error) => return unreadable(error),
        };
        let mut options = self.default_options();
        set(&mut options);
        self.ask(Request { cmd, selector: Some(selector), new_name: None, options }).await
    }

    async fn of_files(&self, cmd: Command, set: impl FnOnce(&mut Options)) -> Bundle {
        let mut options = self.default_options();
        set(&mut options);
        self.ask(Request { cmd, selector: None, new_name: None, options }).await
    }
}

impl WorkspaceOptions {
    /// Which server (default: Pyright).
    pub const fn server(mut self, server: ServerKind) -> Self {
        self.server = server;
        self
    }

    /// Which version of it (default: the pinned one).
    pub fn server_version(mut self, version: impl Into<String>) -> Self {
        self.server_version = Some(version.into());
        self
    }

    /// The server's script, package folder or executable, instead of looking for it.
    pub fn server_command(mut self, command: impl Into<PathBuf>) -> Self {
        self.server_command = Some(command.into());
        self
    }

    /// A file to which everything is appended that answers are made from, for [`super::Replay`] (default: none).
    pub fn trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.trace = Some(file.into());
        self
    }

    /// The interpreter whose environment the code is looked at in (default: `$VIRTUAL_ENV`, `.venv`, `PATH`).
    pub fn python(mut self, interpreter: impl Into<PathBuf>) -> Self {
        self.python = Some(interpreter.into());
        self
    }

    /// How long an answer of the server is waited for (default: 60 s).
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether nothing may be installed (default: no).
    pub const fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Whether programs that the folder brings may be run (default: no).
    pub const fn trust_workspace(mut self, trust: bool) -> Self {
        self.trust_workspace = trust;
        self
    }

    /// What proves that a file is unchanged (default: its `stat`).
    pub const fn freshness(mut self, proof: Trust) -> Self {
        self.trust = proof;
        self
    }

    /// The cache folder, where servers are installed and answers are kept (default: as the command line's).
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Whether what was learned of the folder is read from the cache and kept there (default: yes).
    pub const fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// The `lanser` program, which then makes sure that the server dies with the thread that started it: with a guard, ask
    /// from a runtime with one thread.
    pub fn guard(mut self, program: impl Into<PathBuf>) -> Self {
        self.guard = Some(program.into());
        self
    }

    /// The environment variables (default: those of this process).
    pub fn environment(mut self, variables: BTreeMap<String, String>) -> Self {
        self.environment = Some(variables);
        self
    }

    /// What a column counts, in selectors given as text and in the `at` of locations (default: code points).
    pub const fn columns(mut self, unit: ColumnUnit) -> Self {
        self.columns = unit;
        self
    }

    /// How many threads may scan and parse (default: one for each processor, at most 8).
    pub const fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Who is told of long work (default: nobody).
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// Opens the workspace. Nothing is started yet.
    ///
    /// # Errors
    /// When the folder is none, or a path cannot be used.
    pub fn open(self) -> Result<Workspace, OpenError> {
        let settings = self.settings()?;
        Ok(Workspace { orchestrator: Orchestrator::new(settings), columns: self.columns })
    }

    fn settings(&self) -> Result<Settings, OpenError> {
        let real = std::fs::canonicalize(&self.folder).ok().filter(|real| real.is_dir());
        let root = AbsPath::new(real.ok_or_else(|| OpenError::Folder { path: self.folder.clone() })?)?;
        let environment = self.environment.clone().unwrap_or_else(of_process);
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
                let writer = Writer::open(&absolute(file)?, Vec::new())
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
        })
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.orchestrator.settings.root).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for WorkspaceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceOptions").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Nobody is told.
struct Silent;

impl Progress for Silent {
    fn step(&self, _text: &str) {}

    fn say(&self, _text: &str) {}

    fn done(&self) {}
}

/// A selector that cannot be read.
fn unreadable(error: ErrorBody) -> Bundle {
    debug_assert_eq!(error.symbol, ErrorSymbol::BadSelectorSyntax);
    sealed(Draft::failed(None, error))
}

/// How many threads may scan and parse on this machine.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// Lanser's cache: `LANSER_CACHE_DIR`, else the platform's cache folder. Where there is none, or others can write to it,
/// a folder of the user's own among temporary files.
///
/// What is in it is run, so one that somebody else may have filled is none.
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
    named.filter(|cache| private::is_own(cache.as_path())).unwrap_or_else(|| private_cache(temp))
}

/// A cache among temporary files, which all users share: in a folder that is made now, so that it is nobody else's.
fn private_cache(temp: &AbsPath) -> AbsPath {
    let user = rustix::process::geteuid().as_raw();
    let usual = temp.join(&format!("lanser-{user}-cache"));
    // What cannot be made is told by whoever writes to it.
    let _ = private::make(usual.as_path());
    let is_link = usual.as_path().symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    if private::is_own(usual.as_path()) && !is_link {
        return usual;
    }
    // Somebody was there first: a name that nobody can know before.
    let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    temp.join(&format!("lanser-{user}-{}-{since:x}-cache", std::process::id()))
}

/// The user's folder for what lanser has to remember: journals, and which repositories are trusted (XDG Base Directory
/// Specification, "state").
pub(crate) fn state_folder(environment: &BTreeMap<String, String>, cache: &AbsPath) -> AbsPath {
    let of = |name: &str| environment.get(name).and_then(|path| AbsPath::new(path).ok());
    let home = || of("HOME").map(|home| home.join(".local/state"));
    of("XDG_STATE_HOME").or_else(home).map_or_else(|| cache.join("state"), |folder| folder.join("lanser"))
}

/// The folders of `PATH`.
pub(crate) fn search_path(environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let path = environment.get("PATH").map_or("", String::as_str);
    std::env::split_paths(path).filter(|path| path.is_absolute()).collect()
}

/// The variables of this process whose names and values are UTF-8.
fn of_process() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        std::fs::write(&file, "").unwrap();
        for path in [file, folder.path().join("nowhere")] {
            assert!(matches!(Workspace::open(&path), Err(OpenError::Folder { path: told }) if told == path));
        }
    }

    #[test]
    fn answers_that_need_no_server() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("m.py"), "def f(): ...\n").unwrap();
        let workspace = Workspace::options(folder.path()).keep(false).offline(true).open().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // As a task: a program with many threads can ask.
        let (found, unread, empty) = runtime
            .block_on(async {
                let asked = tokio::spawn(async move {
                    let found = workspace.locate("py://m#f").await;
                    let unread = workspace.hover("py://").await;
                    let empty = workspace.search(" ").await;
                    workspace.close().await;
                    (found, unread, empty)
                });
                asked.await
            })
            .unwrap();
        assert_eq!(found.resolution.unwrap().resolved.unwrap().at, "m.py@L1:C5");
        assert_eq!(unread.error.unwrap().symbol, ErrorSymbol::BadSelectorSyntax);
        assert_eq!(empty.error.unwrap().symbol, ErrorSymbol::Usage);
    }
}
