//! Server packages on disk, identified by their `package.json` and, if installed from a wheel, by its metadata; a server that is
//! one program by the wheel's metadata, or else by what the program says.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::digest::Digest;
use crate::model::server::ServerKind;
use crate::path::AbsPath;

use super::child::{ChildCommand, run};
use super::follow::{is_executable, site_packages};
use super::program_cache::ProgramCache;
use super::server_kinds::{REQUIRED_FILES, is_native, package_name, version_is_in_wheel_metadata};

/// How long a server may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The package of a language server. All required files exist; their content is not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The kind, from its `name`.
    pub kind: ServerKind,
    /// The version that the server will report when it runs.
    pub version: String,
    /// Its root, links resolved; of a server that is one program, the folder of the program.
    pub root: AbsPath,
}

/// Why a folder is not a server package.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackageError {
    #[error("there is no package.json in {0}")]
    NoManifest(PathBuf),
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, std::io::Error),
    #[error("{0} is not a package.json with a name and a version: {1}")]
    BrokenManifest(PathBuf, serde_json::Error),
    #[error("it is {0} {1}, which is not a supported server")]
    Unknown(String, String),
    #[error("it is {name} {version}, but incomplete: {missing} is missing")]
    Incomplete { name: String, version: String, missing: &'static str },
    #[error("{0} does not say its version: {1}")]
    NoVersion(AbsPath, String),
    #[error("its path is not UTF-8: {0:?}")]
    NotUtf8(PathBuf),
}

#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
}

impl Package {
    /// Identifies the package whose `package.json` or program is in this folder. A program without a wheel's metadata is run, so
    /// the caller must know that it may be.
    pub(super) fn identify(folder: &Path) -> Result<Self, PackageError> {
        let root = folder.canonicalize().map_err(|_| PackageError::NoManifest(folder.to_owned()))?;
        let root = AbsPath::new(&root).map_err(|_| PackageError::NotUtf8(root))?;
        let native = ServerKind::ALL.into_iter().filter(|kind| is_native(*kind));
        for kind in native {
            let program = root.join(package_name(kind));
            if is_executable(program.as_path()) {
                let version = metadata_folder(&root, kind).and_then(|folder| wheel_version(&folder));
                let version = version.map_or_else(|| printed_version(&program), Ok);
                let version = version.map_err(|why| PackageError::NoVersion(program, why))?;
                return Ok(Self { kind, version, root });
            }
        }
        let path = root.join("package.json").as_path().to_owned();
        let text = fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => PackageError::NoManifest(root.as_path().to_owned()),
            _ => PackageError::Unreadable(path.clone(), error),
        })?;
        let Manifest { name, version } =
            serde_json::from_slice(&text).map_err(|error| PackageError::BrokenManifest(path, error))?;
        let Some(kind) = ServerKind::parse(&name) else { return Err(PackageError::Unknown(name, version)) };
        if let Some(missing) = REQUIRED_FILES.into_iter().find(|file| !root.join(file).as_path().is_file()) {
            return Err(PackageError::Incomplete { name, version, missing });
        }
        let version = match metadata_folder(&root, kind) {
            Some(folder) => wheel_version(&folder).unwrap_or(version),
            None => version,
        };
        Ok(Self { kind, version, root })
    }

    /// The folder of the wheel's metadata, if the version is only in there.
    pub(super) fn metadata_folder(&self) -> Option<PathBuf> {
        metadata_folder(&self.root, self.kind)
    }

    /// The file that starts the server: a program, or a script for node.
    #[must_use]
    pub fn main_file(&self) -> AbsPath {
        self.root.join(if is_native(self.kind) { package_name(self.kind) } else { "langserver.index.js" })
    }

    /// [`Self::code_digest`], of a program from lanser's cache if it has not changed: all of a large program is read only when it
    /// is new.
    pub(super) fn known_code(&self, cache: &AbsPath) -> std::io::Result<Digest> {
        if !is_native(self.kind) {
            return self.code_digest();
        }
        program_digest(&self.main_file(), cache)
    }

    /// The digest of the server's code: of its program, or the paths and contents of all `*.js` and `dist/**/*.js`, sorted by path.
    ///
    /// npm and PyPI have the same bytes of Pyright, but different builds of basedpyright.
    ///
    /// # Errors
    /// If a file or folder cannot be read.
    pub fn code_digest(&self) -> std::io::Result<Digest> {
        if is_native(self.kind) {
            return Ok(Digest::of(&fs::read(self.main_file().as_path())?));
        }
        let top = fs::read_dir(self.root.as_path())?.map(|entry| Ok(entry?.file_name()));
        let top = top.collect::<std::io::Result<Vec<_>>>()?;
        let top = top.iter().filter_map(|name| name.to_str()).filter(|name| name.ends_with(".js"));
        let mut files: Vec<AbsPath> = top.map(|name| self.root.join(name)).collect();
        let mut folders = vec![self.root.join("dist")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder.as_path())? {
                let entry = entry?;
                let name = entry.file_name();
                let Some(name) = name.to_str() else { continue };
                if entry.file_type()?.is_dir() {
                    // The stubs are half of the files and contain no code.
                    if name != "typeshed-fallback" {
                        folders.push(folder.join(name));
                    }
                } else if name.ends_with(".js") {
                    files.push(folder.join(name));
                }
            }
        }
        files.sort();
        let mut fields = Vec::with_capacity(2 * files.len());
        for file in &files {
            fields.push(file.strip_prefix(&self.root).unwrap_or_default().as_bytes().to_vec());
            fields.push(fs::read(file.as_path())?);
        }
        Ok(Digest::of_fields(fields.iter().map(Vec::as_slice)))
    }
}

/// The digest of a file that starts a server, from lanser's cache if the file has not changed.
///
/// # Errors
/// If the file cannot be read.
pub fn program_digest(file: &AbsPath, cache: &AbsPath) -> std::io::Result<Digest> {
    let known = ProgramCache::new(cache, "program-digests.json");
    known.get_or_query(file.as_path(), |_: &Digest| true, || Ok(Digest::of(&fs::read(file.as_path())?)))
}

/// The version that a program prints: `ty 0.0.105`, perhaps with a commit behind it.
fn printed_version(program: &AbsPath) -> Result<String, String> {
    let command = ChildCommand {
        program: program.as_path(),
        arguments: &["--version"],
        folder: Path::new("/"),
        environment: &[],
        timeout: VERSION_TIMEOUT,
    };
    let lines = run(&command).map_err(|error| error.to_string())?;
    let printed = lines.first().map(String::as_str).unwrap_or_default();
    let version = printed.split(' ').nth(1).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    version.map(str::to_owned).ok_or_else(|| format!("it printed {printed:?}"))
}

/// The version of the server in a folder by the metadata of its wheel. Runs nothing.
pub(super) fn version_in_metadata(folder: &Path, kind: ServerKind) -> Option<String> {
    wheel_version(&metadata_folder(&AbsPath::new(folder).ok()?, kind)?)
}

/// `<name>-<version>.dist-info` next to the package, or for a program in a `bin` folder among the packages of its prefix.
fn metadata_folder(root: &AbsPath, kind: ServerKind) -> Option<PathBuf> {
    if !version_is_in_wheel_metadata(kind) {
        return None;
    }
    let prefix = format!("{}-", package_name(kind));
    let above = root.parent();
    let mut sites = vec![above.as_path().to_owned()];
    if is_native(kind) {
        sites.extend(site_packages(above.as_path()));
    }
    let entries = sites.iter().filter_map(|site| fs::read_dir(site).ok()).flatten();
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let version = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".dist-info"));
            version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
                && path.join("METADATA").is_file()
        })
        .collect();
    // pip leaves exactly one. If there are several, the choice is at least deterministic.
    found.sort();
    found.pop()
}

/// The `Version` header of a wheel's metadata.
fn wheel_version(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("METADATA")).ok()?;
    let headers = text.lines().take_while(|line| !line.is_empty());
    headers.filter_map(|line| line.strip_prefix("Version:")).next().map(|version| version.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::fixtures;

    #[test]
    fn the_manifest_determines_kind_and_version() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("pyright");
        fixtures::package(&root, "basedpyright", "1.40.1");
        let package = Package::identify(&root).unwrap();
        assert_eq!((package.kind, package.version.as_str()), (ServerKind::Basedpyright, "1.40.1"));
    }

    #[test]
    fn a_wheel_of_basedpyright_has_its_version_in_the_metadata() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("basedpyright");
        fixtures::wheel(folder.path(), "basedpyright", "1.40.1");
        fixtures::package(&root, "basedpyright", "1.1.414");
        assert_eq!(Package::identify(&root).unwrap().version, "1.40.1");
        // The metadata of other packages is ignored.
        fs::remove_dir_all(folder.path().join("basedpyright-1.40.1.dist-info")).unwrap();
        fixtures::wheel(folder.path(), "basedpyright-extras", "3.0");
        fixtures::package(&root, "basedpyright", "1.39.0");
        assert_eq!(Package::identify(&root).unwrap().version, "1.39.0");
    }

    #[test]
    fn folders_that_are_not_packages() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("p");
        let why = || Package::identify(&root).unwrap_err().to_string();
        assert!(why().contains("no package.json"));
        fixtures::package(&root, "pyright", "1.1.414");
        fs::remove_file(root.join("dist/typeshed-fallback/stdlib/builtins.pyi")).unwrap();
        assert!(why().contains("incomplete"), "{}", why());
        fixtures::package(&root, "left-pad", "1.0.0");
        assert!(why().contains("left-pad 1.0.0"));
        for broken in ["", "{\"name\":\"pyright\"}", "{\"name\":\"pyright\",\"version\":\"1.1.414\"", "\u{0}"]
        {
            fs::write(root.join("package.json"), broken).unwrap();
            assert!(why().contains("name and a version"), "{broken:?}: {}", why());
        }
    }

    #[test]
    fn the_digest_depends_only_on_code() {
        let folder = tempfile::tempdir().unwrap();
        fixtures::package(folder.path(), "pyright", "1.1.414");
        let package = Package::identify(folder.path()).unwrap();
        let before = package.code_digest().unwrap();
        fs::write(folder.path().join("dist/x.js.map"), "{}").unwrap();
        assert_eq!(package.code_digest().unwrap(), before);
        fs::write(folder.path().join("dist/pyright-langserver.js"), "other").unwrap();
        assert_ne!(package.code_digest().unwrap(), before);
    }
}
