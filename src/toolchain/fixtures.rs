//! Package trees and programs for the tests of this module.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::model::server::ServerKind;
use crate::path::AbsPath;

use super::request::ToolchainRequest;
use super::server_kinds::REQUIRED_FILES;

/// Writes a complete package.
pub(super) fn package(root: &Path, name: &str, version: &str) {
    for file in REQUIRED_FILES {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("// {name} {version}")).unwrap();
    }
    let manifest = format!("{{\"name\": \"{name}\", \"version\": \"{version}\", \"bin\": {{}}}}");
    fs::write(root.join("package.json"), manifest).unwrap();
}

/// Writes the metadata that pip installs with a wheel.
pub(super) fn wheel(site: &Path, name: &str, version: &str) {
    let folder = site.join(format!("{name}-{version}.dist-info"));
    fs::create_dir_all(&folder).unwrap();
    let text = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nVersion: 0\n");
    fs::write(folder.join("METADATA"), text).unwrap();
}

/// Writes a package as `npm install` does: basedpyright also installs Pyright's executables.
pub(super) fn npm(prefix: &Path, name: &str, version: &str) {
    package(&prefix.join("node_modules").join(name), name, version);
    let bin = prefix.join("node_modules/.bin");
    fs::create_dir_all(&bin).unwrap();
    for (program, script) in [
        (name.to_owned(), "index.js"),
        (format!("{name}-langserver"), "langserver.index.js"),
        ("pyright".to_owned(), "index.js"),
        ("pyright-langserver".to_owned(), "langserver.index.js"),
    ] {
        let target = format!("../{name}/{script}");
        let path = prefix.join("node_modules").join(name).join(script);
        fs::write(&path, "#!/usr/bin/env node\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let _ = symlink(target, bin.join(program));
    }
}

/// Writes an executable file, from another process: a file that this process, or a fork of any of its threads, has open for
/// writing cannot be executed.
pub(super) fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut child = Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Writes a `node` that reports this version.
pub(super) fn node(folder: &Path, version: &str) {
    script(&folder.join("node"), &format!("#!/bin/sh\necho \"{version} $0\"\n"));
}

/// Folders of a machine, and a request to search them.
pub(super) struct FakeMachine {
    _folder: tempfile::TempDir,
    root: PathBuf,
    pub(super) request: ToolchainRequest,
}

impl FakeMachine {
    /// An empty untrusted `workspace`, an empty `cache`, and a PATH of one empty folder, `bin`.
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["workspace", "bin"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let request = ToolchainRequest {
            kind: ServerKind::Pyright,
            version: None,
            command: None,
            workspace: AbsPath::new(root.join("workspace")).unwrap(),
            checkout: AbsPath::new(root.join("workspace")).unwrap(),
            trust_workspace: false,
            program: None,
            search_path: vec![root.join("bin")],
            environment: BTreeMap::new(),
            cache: AbsPath::new(root.join("cache")).unwrap(),
            offline: false,
            pins: &[],
        };
        Self { _folder: folder, root, request }
    }

    /// A path below the temporary root, links resolved.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Puts a folder at the end of PATH.
    pub(super) fn add_to_path(&mut self, path: &str) {
        self.request.search_path.push(self.at(path));
    }

    /// Sets the user's command; `@` stands for the temporary root.
    pub(super) fn command(&mut self, args: &[&str]) {
        let root = self.root.to_str().unwrap();
        self.request.command = Some(args.iter().map(|arg| arg.replace('@', root)).collect());
    }

    /// Writes an npm that takes some seconds, logs its runs in `npm.log` and installs the package at `tree`.
    pub(super) fn npm(&self, tree: &str, seconds: f32) {
        let (tree, log) = (self.at(tree), self.at("npm.log"));
        script(
            &self.at("bin/npm"),
            &format!(
                "#!/bin/sh\necho \"$@\" >> '{log}'\nfor word; do [ \"$before\" = --prefix ] && folder=$word; before=$word; done\n\
                 /bin/sleep {seconds}\n/bin/mkdir \"$folder/node_modules\"\n\
                 /bin/cp -R '{tree}' \"$folder/node_modules/{name}\"\n",
                log = log.display(),
                tree = tree.display(),
                name = self.request.kind,
            ),
        );
    }

    /// Writes a python3 whose pip installs the content of `tree` and logs its runs in `pip.log`.
    pub(super) fn pip(&self, tree: &str) {
        let (tree, log) = (self.at(tree), self.at("pip.log"));
        script(
            &self.at("bin/python3"),
            &format!(
                "#!/bin/sh\n[ \"$3\" = --version ] && exit 0\necho \"$@\" >> '{log}'\n\
                 for word; do [ \"$before\" = --target ] && folder=$word; before=$word; done\n\
                 /bin/cp -R '{tree}/.' \"$folder\"\n",
                log = log.display(),
                tree = tree.display(),
            ),
        );
    }

    /// The lines of a log; none if it does not exist.
    pub(super) fn log(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.at(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}
