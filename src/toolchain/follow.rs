//! Resolves an executable, a script or a folder to the package that it belongs to.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::model::server::ServerKind;

use super::package::Package;
use super::server_kinds::{in_site_packages, is_native, package_name};

/// How much of a script is read; generated wrappers are far shorter.
const SCRIPT_LIMIT_BYTES: u64 = 16 * 1024;

/// Finds the package that a path belongs to. The path is the folder of a package, a script in it, a link to such a script
/// (npm), a shell wrapper around one (pnpm), or a console script of `pip`, with its `site-packages` in the same prefix.
///
/// In a `site-packages` folder, a package of `kind` is preferred. The error says what the path is instead.
pub(super) fn follow(path: &Path, kind: ServerKind) -> Result<Package, String> {
    let real = path.canonicalize().map_err(|error| format!("cannot be read: {error}"))?;
    if real.is_dir() {
        // In the `pyright` folder of PyPI's wheel the package is one level down.
        let below = real.join("dist");
        let inner = !real.join("package.json").exists() && below.join("package.json").exists();
        return Package::identify(if inner { &below } else { &real }).map_err(|error| error.to_string());
    }
    if has_js_name(&real) {
        return of_script(&real);
    }
    let bin = real.parent().unwrap_or(&real);
    if is_native(kind) && real.file_name().is_some_and(|name| name == package_name(kind)) {
        return Package::identify(bin).map_err(|error| error.to_string());
    }
    let text = read_script(&real).map_err(|error| format!("cannot be read: {error}"))?;
    let Some(text) = text else { return Err("is a program, not a package of a server".to_owned()) };
    if let Some(script) = wrapped_script(&text, bin) {
        return of_script(&script);
    }
    of_console_script(&text, bin, kind)
}

/// Whether this is an executable file.
pub(super) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The `site-packages` folders of an installation prefix, the newest Python first.
pub(super) fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for lib in ["lib", "lib64"] {
        let Ok(entries) = fs::read_dir(prefix.join(lib)) else { continue };
        let mut pythons: Vec<(u32, PathBuf)> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| {
                Some((name.strip_prefix("python3.")?.parse().ok()?, prefix.join(lib).join(name)))
            })
            .collect();
        pythons.sort();
        for (_, python) in pythons.into_iter().rev() {
            found.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
        }
    }
    found.retain(|folder| folder.is_dir());
    found
}

fn has_js_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["js", "cjs", "mjs"].iter().any(|js| extension == *js))
}

/// The package of a script: the nearest folder above it that has a `package.json`.
fn of_script(script: &Path) -> Result<Package, String> {
    let root = script.ancestors().skip(1).find(|folder| folder.join("package.json").is_file());
    let root = root.ok_or_else(|| "is a script outside of any package".to_owned())?;
    Package::identify(root).map_err(|error| error.to_string())
}

/// The beginning of a script; `None` for a binary program.
fn read_script(path: &Path) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SCRIPT_LIMIT_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes.starts_with(b"#!").then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The script that a wrapper of npm's `cmd-shim` runs (pnpm uses it for all its executables): `"$basedir/….js"`.
fn wrapped_script(text: &str, bin: &Path) -> Option<PathBuf> {
    text.match_indices("\"$basedir/").find_map(|(at, prefix)| {
        let (path, _) = text[at + prefix.len()..].split_once('"')?;
        bin.join(path).canonicalize().ok().filter(|path| has_js_name(path))
    })
}

/// The package of a console script: in a `site-packages` of its prefix, or next to its `bin` folder (`pip install --target`).
fn of_console_script(text: &str, bin: &Path, kind: ServerKind) -> Result<Package, String> {
    let first = text.lines().next().unwrap_or_default();
    // pip writes a long interpreter path as `#!/bin/sh` and a second line that only sh executes.
    if !first.contains("python") && !text.contains("'''exec'") {
        return Err(format!("is a script ({first}) whose package cannot be determined"));
    }
    let prefix = bin.parent().unwrap_or(bin);
    let mut sites = site_packages(prefix);
    sites.push(prefix.to_owned());
    // The wanted kind first; the other one only for the error message.
    let others = ServerKind::ALL.into_iter().filter(|other| *other != kind);
    let mut problem = None;
    for kind in std::iter::once(kind).chain(others) {
        let Some(inside) = in_site_packages(kind) else { continue };
        for root in sites.iter().map(|site| site.join(inside)).filter(|root| root.is_dir()) {
            match Package::identify(&root) {
                Ok(package) => return Ok(package),
                Err(error) => problem = problem.or(Some(error.to_string())),
            }
        }
    }
    Err(problem.unwrap_or_else(|| {
        "is a Python script without an installed server package (older ones download the server when they run)"
            .to_owned()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::fixtures;

    fn seen(path: &Path, kind: ServerKind) -> Result<(ServerKind, String), String> {
        follow(path, kind).map(|package| (package.kind, package.version))
    }

    #[test]
    fn npm_links_lead_to_the_package_whatever_their_name() {
        let folder = tempfile::tempdir().unwrap();
        fixtures::npm(folder.path(), "basedpyright", "1.40.1");
        for name in ["pyright-langserver", "pyright", "basedpyright-langserver", "basedpyright"] {
            let bin = folder.path().join("node_modules/.bin").join(name);
            assert_eq!(
                seen(&bin, ServerKind::Pyright),
                Ok((ServerKind::Basedpyright, "1.40.1".into())),
                "{name}"
            );
        }
    }

    #[test]
    fn console_scripts_lead_to_the_package_of_the_wanted_kind() {
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().join("lib/python3.12/site-packages");
        fixtures::package(&site.join("pyright/dist"), "pyright", "1.1.407");
        fixtures::package(&site.join("basedpyright"), "basedpyright", "1.40.1");
        fs::create_dir_all(folder.path().join("lib/python3.9/site-packages")).unwrap();
        let bin = folder.path().join("bin/pyright");
        fixtures::script(&bin, "#!/venv/bin/python3\nfrom pyright.cli import entrypoint\n");
        assert_eq!(seen(&bin, ServerKind::Pyright), Ok((ServerKind::Pyright, "1.1.407".into())));
        assert_eq!(seen(&bin, ServerKind::Basedpyright), Ok((ServerKind::Basedpyright, "1.40.1".into())));
        fixtures::script(&bin, "#!/bin/sh\n'''exec' \"/a b/python\" \"$0\" \"$@\"\n' '''\n");
        assert_eq!(seen(&bin, ServerKind::Pyright), Ok((ServerKind::Pyright, "1.1.407".into())));
    }

    #[test]
    fn a_target_folder_is_its_own_site_packages() {
        let folder = tempfile::tempdir().unwrap();
        fixtures::package(&folder.path().join("pyright/dist"), "pyright", "1.1.414");
        let bin = folder.path().join("bin/pyright-langserver");
        fixtures::script(&bin, "#!/usr/bin/env python3\n");
        assert_eq!(seen(&bin, ServerKind::Pyright), Ok((ServerKind::Pyright, "1.1.414".into())));
    }

    #[test]
    fn shell_wrappers_of_pnpm() {
        let folder = tempfile::tempdir().unwrap();
        fixtures::package(&folder.path().join("global/5/node_modules/pyright"), "pyright", "1.1.414");
        let bin = folder.path().join("pyright");
        fixtures::script(
            &bin,
            "#!/bin/sh\nbasedir=$(dirname \"$0\")\nif [ -x \"$basedir/node\" ]; then\n  exec \"$basedir/node\" \
             \"$basedir/global/5/node_modules/pyright/langserver.index.js\" \"$@\"\nfi\n",
        );
        assert_eq!(seen(&bin, ServerKind::Pyright), Ok((ServerKind::Pyright, "1.1.414".into())));
    }

    #[test]
    fn unusable_paths_are_explained() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pyright");
        assert!(seen(&path, ServerKind::Pyright).unwrap_err().contains("cannot be read"));
        fixtures::script(&path, "#!/usr/bin/env bash\nexec pyenv exec pyright\n");
        assert!(seen(&path, ServerKind::Pyright).unwrap_err().contains("cannot be determined"));
        fixtures::script(&path, "\u{7f}ELF");
        assert!(seen(&path, ServerKind::Pyright).unwrap_err().contains("is a program"));
        fixtures::script(&path, "#!/usr/bin/python3\n");
        assert!(
            seen(&path, ServerKind::Pyright).unwrap_err().contains("without an installed server package")
        );
    }
}
