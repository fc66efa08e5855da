//! lanser's own cache of servers: `<cache>/servers/<name>-<version>/`.
//!
//! A folder is valid only with its marker. The marker is written last, before one rename gives the folder its name, so
//! an incomplete install is never mistaken for a complete one, and the next install replaces it. Concurrent installers
//! wait for each other on a lock file. This only saves work: on file systems without locks both install, and the second
//! rename finds the folder taken.

use std::fs::{self, File, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::model::server::ServerKind;
use crate::path::AbsPath;

use super::event::{InstallEvent, OnInstallEvent};
use super::follow::is_executable;
use super::package::Package;
use super::pins::Pin;
use super::server_kinds::{NODE_WHEEL_VERSION, is_native, package_name};

/// Incremented when the layout of a folder changes.
const FORMAT: u32 = 1;
const MARKER: &str = "installed.json";
/// The path of a server's package in its folder, for all installers.
pub(super) const PACKAGE: &str = "package";
/// The path of node in its folder.
pub(super) const NODE_PROGRAM: &str = "bin/node";

/// How long to wait for another installer of the same thing; longer than one may run.
const LOCK_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// The interval between two attempts to take the lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The folder of all installs.
#[derive(Debug, Clone)]
pub(super) struct InstallStore {
    folder: AbsPath,
}

/// The folder of one server or node.
#[derive(Debug, Clone)]
pub(super) struct InstallSlot {
    store: AbsPath,
    name: &'static str,
    version: String,
    /// The operating system and architecture, if the content depends on them.
    platform: Option<String>,
}

/// The marker file of a finished install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    format: u32,
    name: String,
    version: String,
    /// The installer, such as `npm`.
    with: String,
    /// [`Package::code_digest`] of the installed server, or the digest of an analyzer's files; none for node.
    code: Option<Digest>,
}

/// The operating system and architecture of this machine.
fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

impl InstallStore {
    pub(super) fn new(cache: &AbsPath) -> Self {
        Self { folder: cache.join("servers") }
    }

    /// The slot of a server.
    pub(super) fn server(&self, kind: ServerKind, version: &str) -> InstallSlot {
        InstallSlot {
            store: self.folder.clone(),
            name: package_name(kind),
            version: version.to_owned(),
            platform: is_native(kind).then(platform),
        }
    }

    /// The folder where a server that holds its stubs in its program writes them. The server names the folders below by the
    /// content.
    pub(super) fn stubs(&self, kind: ServerKind) -> AbsPath {
        self.folder.join(&format!("stubs-of-{kind}"))
    }

    /// The slot of an analyzer, for one platform and, if it is compiled for it, one version of Python.
    pub(super) fn analyzer(&self, name: &'static str, version: &str, python: Option<&str>) -> InstallSlot {
        let python = python.map(|python| format!("-python{python}")).unwrap_or_default();
        InstallSlot {
            store: self.folder.clone(),
            name,
            version: version.to_owned(),
            platform: Some(platform() + &python),
        }
    }

    /// The slot of node. Machines of several platforms may share a cache folder, and only node depends on the platform.
    pub(super) fn node(&self) -> InstallSlot {
        InstallSlot {
            store: self.folder.clone(),
            name: "nodejs",
            version: NODE_WHEEL_VERSION.to_owned(),
            platform: Some(platform()),
        }
    }
}

impl InstallSlot {
    /// The content, for messages.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The folder, which may not exist.
    pub(super) fn folder(&self) -> AbsPath {
        self.store.join(&self.folder_name())
    }

    /// The folder of a server's package.
    pub(super) fn package_folder(&self) -> AbsPath {
        self.folder().join(PACKAGE)
    }

    /// The program of an installed node; `None` if it is not completely installed.
    pub(super) fn node_program(&self) -> Option<AbsPath> {
        let program = self.folder().join(NODE_PROGRAM);
        (self.marker().is_ok() && is_executable(program.as_path())).then_some(program)
    }

    /// Checks that the install is finished; the error says what is wrong with the folder.
    pub(super) fn check_marker(&self) -> Result<(), String> {
        self.marker().map(drop)
    }

    /// The digest of the code when it was installed.
    pub(super) fn recorded_code(&self) -> Option<Digest> {
        self.marker().ok()?.code
    }

    /// The server's package; the error says what is wrong with the folder. Cheap: does not read the code.
    pub(super) fn package(&self) -> Result<Package, String> {
        self.marker()?;
        let package =
            Package::identify(self.package_folder().as_path()).map_err(|error| error.to_string())?;
        if package.kind.as_str() == self.name && package.version == self.version {
            return Ok(package);
        }
        Err(format!("holds {} {} instead", package.kind, package.version))
    }

    /// As [`Self::package`], but also compares the code with the pin, or without a pin with the marker.
    pub(super) fn verified_package(&self, pins: &'static [Pin]) -> Result<Package, String> {
        let package = self.package()?;
        let code = package.code_digest().map_err(|error| format!("cannot be read: {error}"))?;
        let is_intact = match Pin::of(pins, self.name, &self.version) {
            Some(pin) => pin.is_code(&code),
            None => self.marker()?.code == Some(code),
        };
        if is_intact { Ok(package) } else { Err("is damaged: its code is not what was installed".to_owned()) }
    }

    /// Fills the slot, unless it is intact: `build` gets an empty folder on the same file system and creates the content
    /// there, which is then moved into the slot. `report` receives the wait for another installer, and the end.
    ///
    /// After a failure, nothing is left that could be mistaken for an install.
    pub(super) fn fill<E: From<StoreError>>(
        &self,
        is_intact: impl Fn(&Self) -> bool,
        report: OnInstallEvent<'_>,
        build: impl FnOnce(&AbsPath, OnInstallEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let store = self.store.as_path();
        let cannot = |what: &str, error| StoreError::Folder(what.to_owned(), self.store.clone(), error);
        crate::path::private::create(store).map_err(|error| cannot("create", error))?;
        let lock = self.lock(report)?;
        if is_intact(self) {
            return Ok(());
        }
        if lock.is_some() {
            self.remove_leftovers();
        }
        let staging = tempfile::Builder::new()
            .prefix(&self.staging_prefix())
            .tempdir_in(store)
            .map_err(|error| cannot("write into", error))?;
        let content = AbsPath::new(staging.path())
            .map_err(|error| StoreError::Path(error.to_string()))?
            .join("content");
        fs::create_dir(content.as_path()).map_err(|error| cannot("write into", error))?;
        build(&content, report)?;
        self.publish(&content, is_intact)?;
        drop(staging);
        if lock.is_some() {
            // Again: the installer started by a killed lanser may have kept writing until now.
            self.remove_leftovers();
        }
        report(InstallEvent::Installed { what: self.title(), at: self.folder() });
        Ok(())
    }

    /// Writes the marker of a finished install into the folder provided by [`Self::fill`].
    pub(super) fn finish(
        &self,
        content: &AbsPath,
        with: &str,
        code: Option<Digest>,
    ) -> Result<(), StoreError> {
        let version = self.version.clone();
        let marker =
            Marker { format: FORMAT, name: self.name.to_owned(), version, with: with.to_owned(), code };
        let text = serde_json::to_vec(&marker).map_err(std::io::Error::from);
        text.and_then(|text| fs::write(content.join(MARKER).as_path(), text))
            .map_err(|error| StoreError::Folder("write into".to_owned(), content.clone(), error))
    }

    /// Moves the finished folder into the slot, after moving away what is there.
    fn publish(&self, content: &AbsPath, is_intact: impl Fn(&Self) -> bool) -> Result<(), StoreError> {
        let folder = self.folder();
        let away = content.join("../replaced");
        let _ = fs::rename(folder.as_path(), away.as_path());
        match fs::rename(content.as_path(), folder.as_path()) {
            Ok(()) => Ok(()),
            // On file systems without locks, another process may have been faster.
            Err(_) if is_intact(self) => Ok(()),
            Err(error) => Err(StoreError::Folder("move the install to".to_owned(), folder, error)),
        }
    }

    /// Takes the lock, waiting for its holder. `None` on file systems without locks.
    fn lock(&self, report: OnInstallEvent<'_>) -> Result<Option<File>, StoreError> {
        let path = self.store.join(&format!(".lock-{}", self.folder_name()));
        let file = File::options().create(true).append(true).open(path.as_path());
        let file = file.map_err(|error| StoreError::Folder("write".to_owned(), path.clone(), error))?;
        let started = Instant::now();
        let mut is_reported = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::Error(_)) => return Ok(None),
                Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_TIMEOUT => {
                    return Err(StoreError::Busy { path });
                }
                Err(TryLockError::WouldBlock) => {
                    if !is_reported {
                        report(InstallEvent::Waiting { what: self.title() });
                        is_reported = true;
                    }
                    thread::sleep(LOCK_POLL_INTERVAL);
                }
            }
        }
    }

    /// Removes the staging folders of killed processes. The caller must hold the lock, so no running process uses them.
    fn remove_leftovers(&self) {
        let prefix = self.staging_prefix();
        let entries = fs::read_dir(self.store.as_path()).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)) {
            // A leftover that cannot be removed only wastes disk space.
            let _ = fs::remove_dir_all(entry.path());
        }
    }

    fn folder_name(&self) -> String {
        let platform = self.platform.iter().map(|platform| format!("-{platform}")).collect::<String>();
        format!("{}-{}{platform}", self.name, self.version)
    }

    fn staging_prefix(&self) -> String {
        format!(".staging-{}.", self.folder_name())
    }

    /// Reads the marker; the error says what is wrong with the folder.
    fn marker(&self) -> Result<Marker, String> {
        if !self.folder().as_path().is_dir() {
            return Err("is not installed".to_owned());
        }
        let text = fs::read(self.folder().join(MARKER).as_path())
            .map_err(|_| "is an incomplete install: its marker is missing".to_owned())?;
        let marker: Marker = serde_json::from_slice(&text)
            .map_err(|error| format!("is an incomplete install: its marker is invalid: {error}"))?;
        if (marker.format, marker.name.as_str(), &marker.version) != (FORMAT, self.name, &self.version) {
            return Err("was installed by an incompatible version of lanser".to_owned());
        }
        Ok(marker)
    }
}

/// Why something cannot be installed into the store.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("cannot {0} {1}: {2}")]
    Folder(String, AbsPath, std::io::Error),
    #[error("{0}")]
    Path(String),
    #[error("another process has held the lock {path} for {} minutes", LOCK_TIMEOUT.as_secs() / 60)]
    Busy { path: AbsPath },
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::toolchain::fixtures;

    /// A kind of damage, and how it is done to a finished install.
    type Damage = (&'static str, fn(&Path));

    fn slot(folder: &tempfile::TempDir) -> InstallSlot {
        InstallStore::new(&AbsPath::new(folder.path()).unwrap()).server(ServerKind::Pyright, "1.1.414")
    }

    fn build(slot: &InstallSlot, content: &AbsPath, _: OnInstallEvent<'_>) -> Result<(), StoreError> {
        let package = content.join(PACKAGE);
        fixtures::package(package.as_path(), "pyright", "1.1.414");
        let code = Package::identify(package.as_path()).unwrap().code_digest().unwrap();
        slot.finish(content, "test", Some(code))
    }

    fn fill(slot: &InstallSlot) -> u32 {
        let mut built = 0;
        let count = |content: &AbsPath, report: OnInstallEvent<'_>| {
            built += 1;
            build(slot, content, report)
        };
        slot.fill(|slot| slot.verified_package(&[]).is_ok(), &mut |_| (), count).unwrap();
        built
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn filled_once() {
        let folder = tempfile::tempdir().unwrap();
        let slot = slot(&folder);
        assert_eq!(slot.package().unwrap_err(), "is not installed");
        assert_eq!([fill(&slot), fill(&slot)], [1, 0]);
        assert_eq!(slot.verified_package(&[]).unwrap().version, "1.1.414");
        assert_eq!(names(&folder.path().join("servers")), [".lock-pyright-1.1.414", "pyright-1.1.414"]);
    }

    #[test]
    fn an_incomplete_install_is_never_used_and_always_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let slot = slot(&folder);
        let damages: &[Damage] = &[
            ("marker gone", |at| fs::remove_file(at.join(MARKER)).unwrap()),
            ("marker cut", |at| fs::write(at.join(MARKER), "{\"format\":1,").unwrap()),
            ("marker of the future", |at| {
                let text = fs::read_to_string(at.join(MARKER)).unwrap();
                fs::write(at.join(MARKER), text.replace("\"format\":1", "\"format\":2")).unwrap();
            }),
            ("script gone", |at| fs::remove_file(at.join("package/langserver.index.js")).unwrap()),
            ("other version", |at| fixtures::package(&at.join(PACKAGE), "pyright", "1.1.400")),
            ("all but the marker gone", |at| fs::remove_dir_all(at.join(PACKAGE)).unwrap()),
        ];
        for (what, damage) in damages {
            fill(&slot);
            damage(slot.folder().as_path());
            assert!(slot.package().is_err(), "{what}");
            assert_eq!(fill(&slot), 1, "{what}");
            assert!(slot.verified_package(&[]).is_ok(), "{what}");
        }
        fs::write(slot.package_folder().join("dist/pyright-langserver.js").as_path(), "changed").unwrap();
        assert!(slot.package().is_ok());
        assert!(slot.verified_package(&[]).unwrap_err().contains("damaged"));
        assert_eq!(fill(&slot), 1);
        fs::remove_dir_all(slot.folder().as_path()).unwrap();
        fs::write(slot.folder().as_path(), "a file in its place").unwrap();
        assert_eq!(fill(&slot), 1);
    }

    #[test]
    fn a_failed_build_leaves_nothing_and_leftovers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let slot = slot(&folder);
        let fails = slot.fill(
            |_| false,
            &mut |_| (),
            |content: &AbsPath, report: OnInstallEvent<'_>| {
                build(&slot, content, report)?;
                Err(StoreError::Path("no".to_owned()))
            },
        );
        assert!(fails.is_err());
        assert!(slot.package().is_err());
        let servers = folder.path().join("servers");
        let leftover = servers.join(format!("{}dead", slot.staging_prefix()));
        fixtures::package(&leftover.join("content/package"), "pyright", "1.1.414");
        let others = servers.join(".staging-pyright-1.1.4.alive");
        fs::create_dir_all(&others).unwrap();
        fill(&slot);
        assert!(!leftover.exists() && others.exists());
    }

    #[test]
    fn a_read_only_cache_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("servers"), "a file").unwrap();
        let slot = slot(&folder);
        let error =
            slot.fill(|_| false, &mut |_| (), |content, report| build(&slot, content, report)).unwrap_err();
        assert!(error.to_string().starts_with("cannot create"), "{error}");
    }
}
