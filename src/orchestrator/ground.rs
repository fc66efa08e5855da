//! What every answer rests on, whatever is asked: the files, the Python environment, the configuration, the server.
//!
//! A *survey* looks at all of it and gives a [`Ground`]; the same one as long as nothing is different. An answer is worth
//! telling when a survey that began after it finds the ground on which it was given.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::failure::Failure;
use super::occurrences::LeadCache;
use super::thrift::Thrift;
use super::{Settings, blocking, python, server};
use crate::bundle::portable::PathMap;
use crate::digest::Digest;
use crate::lsp::profile::{Profile, ServerSettings};
use crate::model::environment::{Environment, Lanser, Python, WorkspaceState};
use crate::model::trace::Workspace;
use crate::path::{AbsPath, DocUri, WorkspacePath};
use crate::resolve::index::Index;
use crate::resolve::meaning;
use crate::resolve::modules::ImportRoots;
use crate::text::ColumnUnit;
use crate::toolchain::{Found, Unavailable};
use crate::workspace::configured::Configured;
use crate::workspace::files::{DiskFiles, FileKind, Files, canonical};
use crate::workspace::python::{Memory, PythonEnvironment};
use crate::workspace::server_config::ServerConfig;
use crate::workspace::snapshot::{Scanner, Snapshot};
use crate::workspace::walk::is_skipped;

/// The programs that an answer is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tools {
    pub(super) python: Option<PythonEnvironment>,
    pub(super) found: Result<Found, Unavailable>,
}

impl Tools {
    /// Finds them; installs a server when there is none and `install` says so. Blocking.
    ///
    /// # Errors
    /// When the interpreter that the user named cannot be asked.
    pub(super) fn find(settings: &Settings, memory: &Memory, install: bool) -> Result<Self, Failure> {
        let (python, _) = python::find(settings, memory).map_err(Failure::told)?;
        Ok(Self { python, found: server::find(settings, install) })
    }
}

impl Tools {
    /// Whether an answer would be made with the same programs. Why there is no server is no program.
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
pub(super) struct Ground {
    pub(super) snapshot: Arc<Snapshot>,
    /// Folders outside the workspace from which the server takes sources: `extraPaths`, stubs, editable installs.
    outside: BTreeMap<AbsPath, Arc<Snapshot>>,
    pub(super) tools: Tools,
    /// What the environment's installed packages are.
    packages: Digest,
    pub(super) config: ServerConfig,
    /// What the configuration includes.
    pub(super) included: Configured,
    pub(super) roots: ImportRoots,
    pub(super) paths: PathMap,
    /// Without what only a running server knows.
    pub(super) environment: Environment,
    /// What of it may make answers other ones than a caller expects.
    pub(super) warnings: Vec<String>,
    /// The workspace's definitions, once somebody asked.
    pub(super) index: OnceLock<Index>,
    /// The ground as a trace tells it, once one was written.
    pub(super) told: OnceLock<Option<Arc<Workspace>>>,
    /// What is declared in which file, as far as somebody asked.
    pub(super) declared: meaning::Found,
    /// Where tokens lead, as the server said before.
    pub(super) leads: LeadCache,
    root: AbsPath,
}

/// How a server that stands on one ground comes to stand on a later one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// By being told that these files of the workspace, which it knew, were written.
    Contents(Vec<AbsPath>),
    /// Not at all: what it learned from, or the order in which it learned, would be another.
    Restart,
}

/// More changed files than this are not announced one by one: a server that starts anew is quicker.
const MOST_CHANGES: usize = 256;

impl Ground {
    /// Looks at everything; when nothing is different, this is the ground `last`. `tools` are those that were just found, if
    /// they were. Blocking.
    fn survey(
        settings: &Settings,
        tools: Option<Tools>,
        scanners: &mut Scanners,
        memory: &Memory,
        last: Option<Arc<Self>>,
    ) -> Result<Arc<Self>, Failure> {
        let files = DiskFiles::new();
        let around = || -> Result<_, Failure> {
            let tools = tools.map_or_else(|| Tools::find(settings, memory, false), Ok)?;
            let config = ServerConfig::read(&files, &settings.root, settings.server);
            let packages = match &tools.python {
                Some(python) => python.identity(&files, &settings.root, memory),
                None => Digest::of(b"no python"),
            };
            let outside = outside(settings, &config, tools.python.as_ref(), &files);
            Ok((tools, config, packages, outside))
        };
        let (around, snapshot) = std::thread::scope(|scope| {
            let around = scope.spawn(around);
            let snapshot = scanners.workspace.scan();
            (around.join().expect("looking around does not panic"), snapshot)
        });
        let (tools, config, packages, folders) = around?;
        let outside = folders.into_iter().map(|folder| {
            let snapshot = scanners.of(settings, &folder).scan();
            (folder, snapshot)
        });
        let outside: BTreeMap<_, _> = outside.collect();
        let mut warnings = config.problems.clone();
        warnings.extend(python::passed_over(settings, &files, tools.python.as_ref()));
        if let Some(last) = last
            && Arc::ptr_eq(&last.snapshot, &snapshot)
            && last.tools.are_same(&tools)
            && last.config == config
            && last.warnings == warnings
            && last.packages == packages
            && last.outside.keys().eq(outside.keys())
            && last.outside.values().zip(outside.values()).all(|(then, now)| Arc::ptr_eq(then, now))
        {
            return Ok(last);
        }
        let python = tools.python.as_ref();
        let package = tools.found.as_ref().ok().map(|found| &found.package);
        let paths = path_map(settings, python, package);
        let typeshed = package.map(|package| package.join("dist/typeshed-fallback"));
        let roots = ImportRoots::new(&files, &settings.root, &config, python, typeshed);
        let environment = environment(settings, &snapshot, &outside, &config, python, packages, &paths);
        let included = Configured::new(&config);
        let (index, told, root) = (OnceLock::new(), OnceLock::new(), settings.root.clone());
        Ok(Arc::new(Self {
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
            told,
            declared: meaning::Found::default(),
            leads: LeadCache::default(),
            root,
        }))
    }

    /// The digest that the workspace's state would have if its Python files were others, whose own digest this is.
    pub(super) fn digest_with(&self, files: Digest) -> Digest {
        state_digest(files, self.packages, &self.outside)
    }

    /// A ground that was recorded. It has no index: what was asked of that is on the recording's tape.
    pub(super) fn recorded(
        snapshot: Arc<Snapshot>,
        tools: Tools,
        included: Configured,
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
            index: OnceLock::new(),
            told: OnceLock::new(),
            declared: meaning::Found::default(),
            leads: LeadCache::default(),
        }
    }

    /// The import roots in another state of the files.
    pub(super) fn roots_of(&self, files: &dyn Files) -> ImportRoots {
        let package = self.tools.found.as_ref().ok().map(|found| &found.package);
        let typeshed = package.map(|package| package.join("dist/typeshed-fallback"));
        ImportRoots::new(files, &self.root, &self.config, self.tools.python.as_ref(), typeshed)
    }

    /// What a server that stands here needs to stand on `later`.
    ///
    /// Only other contents of files that are known on both sides can be told to a server. A file that comes or goes would
    /// stand at another place in its list than if it had enumerated now, and what Pyright infers depends on that order.
    pub(super) fn step_to(&self, later: &Self) -> Step {
        let (now, then) = (self.snapshot.files(), later.snapshot.files());
        let alike = self.tools == later.tools
            && self.config == later.config
            && self.packages == later.packages
            && self.environment.config_digest == later.environment.config_digest
            && self.outside.keys().eq(later.outside.keys())
            && self
                .outside
                .values()
                .zip(later.outside.values())
                .all(|(a, b)| a.files() == b.files() && a.shape() == b.shape() && a.is_untouched(b))
            && self.snapshot.shape() == later.snapshot.shape()
            && self.snapshot.encoded() == later.snapshot.encoded()
            && self.snapshot.unreadable() == later.snapshot.unreadable()
            && now.keys().eq(then.keys());
        if !alike {
            return Step::Restart;
        }
        let readable =
            |path| now.get(path).copied().flatten().and(then.get(path).copied().flatten()).is_some();
        let touched = self.snapshot.touched(&later.snapshot);
        let changes: Option<Vec<_>> =
            touched.map(|path| readable(path).then(|| later.snapshot.absolute(path))).collect();
        match changes {
            Some(changes) if changes.len() <= MOST_CHANGES => Step::Contents(changes),
            _ => Step::Restart,
        }
    }

    /// The first file, in order, that differs between two grounds; a word for the rest when no file does.
    pub(super) fn first_difference(&self, other: &Self) -> String {
        match self.snapshot.first_difference(&other.snapshot) {
            Some(path) => path.to_string(),
            None => "what the workspace is looked at with".to_owned(),
        }
    }

    /// Whether what a file holds is part of this ground, as far as any file can be: one of the workspace, or of the
    /// environment or the server, for which their versions stand.
    pub(super) fn covers(&self, uri: &DocUri) -> bool {
        match uri {
            DocUri::Workspace(path) => self.snapshot.files().contains_key(path),
            DocUri::File(_) => false,
            DocUri::Env(_) | DocUri::Server(_) => true,
        }
    }

    /// The folders outside the workspace from which the server takes sources.
    pub(super) fn outside(&self) -> impl Iterator<Item = &AbsPath> {
        self.outside.keys()
    }

    /// The same with what is in them, by paths relative to each.
    pub(super) fn outside_files(
        &self,
    ) -> impl Iterator<Item = (&AbsPath, &BTreeMap<WorkspacePath, Option<Digest>>)> {
        self.outside.iter().map(|(folder, snapshot)| (folder, snapshot.files()))
    }

    /// Whether the workspace is known to hold this content at this place.
    pub(super) fn holds(&self, path: &AbsPath, digest: Option<Digest>) -> Option<bool> {
        let uri = self.paths.uri(path);
        let known = self.snapshot.files().get(uri.workspace_path()?)?;
        Some(*known == digest)
    }
}

/// How files of this machine are called in a bundle.
fn path_map(settings: &Settings, python: Option<&PythonEnvironment>, package: Option<&AbsPath>) -> PathMap {
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

/// The folders from which the server takes sources and of which neither the workspace's files nor the records of installed
/// packages tell: outside of both, or in a folder that no scan enters.
fn outside(
    settings: &Settings,
    config: &ServerConfig,
    python: Option<&PythonEnvironment>,
    files: &DiskFiles,
) -> Vec<AbsPath> {
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
    // A virtual environment around the workspace does not make the workspace's neighbours packages.
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
    folders
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
    let sent = Profile::of(settings.server).digestable(&ServerSettings { python: None });
    let mut configuration = vec![sent.into_bytes()];
    for (path, digest) in &config.files {
        configuration.push(path.as_bytes().to_vec());
        configuration.push(digest.as_bytes().to_vec());
    }
    Environment {
        tool: None,
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

/// One scanner for each folder.
#[derive(Debug)]
struct Scanners {
    workspace: Scanner,
    outside: BTreeMap<AbsPath, Scanner>,
}

impl Scanners {
    fn new(settings: &Settings) -> Self {
        Self { workspace: scanner(settings, &settings.root), outside: BTreeMap::new() }
    }

    fn of(&mut self, settings: &Settings, folder: &AbsPath) -> &mut Scanner {
        self.outside.entry(folder.clone()).or_insert_with(|| scanner(settings, folder))
    }
}

fn scanner(settings: &Settings, folder: &AbsPath) -> Scanner {
    Scanner::new(folder, settings.keep.then_some(&settings.cache), settings.trust, settings.threads)
}

/// Makes surveys, one at a time; whoever waits for one that begins late enough shares it.
#[derive(Debug)]
pub(super) struct Surveyor {
    pub(super) memory: Arc<Memory>,
    work: Arc<tokio::sync::Mutex<Work>>,
    last: Mutex<Option<Arc<Ground>>>,
    pub(super) thrift: Thrift,
}

#[derive(Debug)]
struct Work {
    scanners: Scanners,
    /// When the last survey began, and what it found.
    done: Option<(Instant, Arc<Ground>)>,
}

impl Surveyor {
    /// `saves`: whether surveys wait for each other's answers.
    pub(super) fn new(settings: &Settings, saves: bool) -> Self {
        let work = Work { scanners: Scanners::new(settings), done: None };
        let memory = Arc::new(python::memory(settings));
        Self {
            memory,
            work: Arc::new(tokio::sync::Mutex::new(work)),
            last: Mutex::new(None),
            thrift: Thrift::new(saves),
        }
    }

    /// What the last survey found.
    pub(super) fn last(&self) -> Option<Arc<Ground>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a survey finds that begins at `moment` or later. `tools` are those that were just found, if they were.
    ///
    /// # Errors
    /// When the interpreter that the user named cannot be asked.
    pub(super) async fn since(
        &self,
        moment: Instant,
        settings: &Arc<Settings>,
        tools: Option<Tools>,
    ) -> Result<Arc<Ground>, Failure> {
        let mut work = self.work.clone().lock_owned().await;
        if let Some((began, ground)) = &work.done
            && *began >= moment
        {
            return Ok(ground.clone());
        }
        let (settings, memory, began) = (settings.clone(), self.memory.clone(), Instant::now());
        let ground = blocking(move || {
            let began = Instant::now();
            let last = work.done.take().map(|(_, ground)| ground);
            let ground = Ground::survey(&settings, tools, &mut work.scanners, &memory, last)?;
            work.done = Some((began, ground.clone()));
            Ok::<_, Failure>(ground)
        });
        let ground = ground.await??;
        self.thrift.looked(began.elapsed());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(ground.clone());
        Ok(ground)
    }
}
