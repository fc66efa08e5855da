//! lanser's own cache of servers: `<cache>/servers/<name>-<version>/`.
//!
//! A folder there counts when it has its marker, which is written last, before the folder gets its name by one rename;
//! so what is half done never looks whole, and is replaced by the next install. Installers wait for each other on a
//! lock file, which only saves work: where locks do not work, both install, and the second rename finds the place taken.

use std::fs::{self, File, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::model::server::ServerKind;
use crate::path::AbsPath;

use super::follow::is_executable;
use super::package::Package;
use super::pins::Pin;
use super::profile::{NODE_WHEEL_VERSION, package_name};
use super::progress::{Progress, Report};

/// Counted up when the layout of a folder changes.
const FORMAT: u32 = 1;
const MARKER: &str = "installed.json";
/// Where a server's package lies in its folder, whoever installed it.
pub(super) const PACKAGE: &str = "package";
/// Where node lies in its folder.
pub(super) const NODE_PROGRAM: &str = "bin/node";

/// How long another installer of the same thing is waited for: longer than one may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The folder of everything installed.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: AbsPath,
}

/// The place of one thing in the store.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    store: AbsPath,
    name: &'static str,
    version: String,
    /// The system and machine, for what is not portable.
    platform: Option<String>,
}

/// What is known about a finished install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    format: u32,
    name: String,
    version: String,
    /// The installer, such as `npm`.
    with: String,
    /// [`Package::code_digest`] as it was installed; none for node.
    code: Option<Digest>,
}

impl Store {
    pub(super) fn new(cache: &AbsPath) -> Self {
        Self { folder: cache.join("servers") }
    }

    /// The place of a server.
    pub(super) fn server(&self, kind: ServerKind, version: &str) -> Slot {
        Slot {
            store: self.folder.clone(),
            name: package_name(kind),
            version: version.to_owned(),
            platform: None,
        }
    }

    /// The place of the node that is installed where there is none. A cache folder may be shared by machines of several
    /// kinds, and node is the one thing in it that is not portable.
    pub(super) fn node(&self) -> Slot {
        Slot {
            store: self.folder.clone(),
            name: "nodejs",
            version: NODE_WHEEL_VERSION.to_owned(),
            platform: Some(format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)),
        }
    }
}

impl Slot {
    /// What is kept here, for people.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The folder, whether it is there or not.
    pub(super) fn folder(&self) -> AbsPath {
        self.store.join(&self.folder_name())
    }

    /// The folder of a server's package.
    pub(super) fn package_folder(&self) -> AbsPath {
        self.folder().join(PACKAGE)
    }

    /// The program of an installed node; `None` when the install is not finished.
    pub(super) fn node_program(&self) -> Option<AbsPath> {
        let program = self.folder().join(NODE_PROGRAM);
        (self.marker().is_ok() && is_executable(program.as_path())).then_some(program)
    }

    /// The server's package; the error says what is wrong with the folder. Cheap: what was installed is not read again.
    pub(super) fn package(&self) -> Result<Package, String> {
        self.marker()?;
        let package =
            Package::identify(self.package_folder().as_path()).map_err(|error| error.to_string())?;
        if package.kind.as_str() == self.name && package.version == self.version {
            return Ok(package);
        }
        Err(format!("holds {} {} instead", package.kind, package.version))
    }

    /// As [`Self::package`], and the code is compared with what is pinned, or else with what was installed.
    pub(super) fn verified_package(&self, pins: &'static [Pin]) -> Result<Package, String> {
        let package = self.package()?;
        let code = package.code_digest().map_err(|error| format!("cannot be read: {error}"))?;
        let is_whole = match Pin::of(pins, self.name, &self.version) {
            Some(pin) => pin.is_code(&code),
            None => self.marker()?.code == Some(code),
        };
        if is_whole { Ok(package) } else { Err("is damaged: its code is not what was installed".to_owned()) }
    }

    /// Fills the place, unless it is `whole`: `build` gets an empty folder on the same file system and makes the content
    /// there, which is then moved into its place. `report` hears of another installer that is waited for, and of the end.
    ///
    /// Whatever fails, nothing half-done is left that could be taken for an install.
    pub(super) fn fill<E: From<StoreError>>(
        &self,
        whole: impl Fn(&Self) -> bool,
        report: Report<'_>,
        build: impl FnOnce(&AbsPath, Report<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let store = self.store.as_path();
        let cannot = |what: &str, error| StoreError::Folder(what.to_owned(), self.store.clone(), error);
        crate::path::private::make(store).map_err(|error| cannot("make", error))?;
        let lock = self.lock(report)?;
        if whole(self) {
            return Ok(());
        }
        if lock.is_some() {
            self.sweep();
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
        self.publish(&content, whole)?;
        drop(staging);
        if lock.is_some() {
            // Again: the installer of a killed lanser may have been writing on until now.
            self.sweep();
        }
        report(Progress::Installed { what: self.title(), at: self.folder() });
        Ok(())
    }

    /// Writes the marker of a finished install into the folder that [`Self::fill`] gave.
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

    /// Gives the finished folder its name; what lies there is moved away first.
    fn publish(&self, content: &AbsPath, whole: impl Fn(&Self) -> bool) -> Result<(), StoreError> {
        let folder = self.folder();
        let away = content.join("../replaced");
        let _ = fs::rename(folder.as_path(), away.as_path());
        match fs::rename(content.as_path(), folder.as_path()) {
            Ok(()) => Ok(()),
            // Only where locks do not work: somebody else was faster.
            Err(_) if whole(self) => Ok(()),
            Err(error) => Err(StoreError::Folder("move the install to".to_owned(), folder, error)),
        }
    }

    /// Takes the lock, waiting for who has it. `None` on file systems without locks.
    fn lock(&self, report: Report<'_>) -> Result<Option<File>, StoreError> {
        let path = self.store.join(&format!(".lock-{}", self.folder_name()));
        let file = File::options().create(true).append(true).open(path.as_path());
        let file = file.map_err(|error| StoreError::Folder("write".to_owned(), path.clone(), error))?;
        let started = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::Error(_)) => return Ok(None),
                Err(TryLockError::WouldBlock) if started.elapsed() > PATIENCE => {
                    return Err(StoreError::Busy { path });
                }
                Err(TryLockError::WouldBlock) => {
                    if !told {
                        report(Progress::Waiting { what: self.title() });
                        told = true;
                    }
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    /// Removes what killed installers left; under the lock, nobody else is staging this.
    fn sweep(&self) {
        let prefix = self.staging_prefix();
        let entries = fs::read_dir(self.store.as_path()).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)) {
            // What cannot be removed is only in the way of disk space.
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
            .map_err(|_| "is no finished install: its marker is missing".to_owned())?;
        let marker: Marker = serde_json::from_slice(&text)
            .map_err(|error| format!("is no finished install: its marker is broken: {error}"))?;
        if (marker.format, marker.name.as_str(), &marker.version) != (FORMAT, self.name, &self.version) {
            return Err("is no install that this version of lanser understands".to_owned());
        }
        Ok(marker)
    }
}

/// Why something cannot be put into the store.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("cannot {0} {1}: {2}")]
    Folder(String, AbsPath, std::io::Error),
    #[error("{0}")]
    Path(String),
    #[error("another process has held {path} for {} minutes", PATIENCE.as_secs() / 60)]
    Busy { path: AbsPath },
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::toolchain::fake;

    /// What is done to a finished install, and how.
    type Damage = (&'static str, fn(&Path));

    fn slot(folder: &tempfile::TempDir) -> Slot {
        Store::new(&AbsPath::new(folder.path()).unwrap()).server(ServerKind::Pyright, "1.1.414")
    }

    fn build(slot: &Slot, content: &AbsPath, _: Report<'_>) -> Result<(), StoreError> {
        let package = content.join(PACKAGE);
        fake::package(package.as_path(), "pyright", "1.1.414");
        let code = Package::identify(package.as_path()).unwrap().code_digest().unwrap();
        slot.finish(content, "test", Some(code))
    }

    fn fill(slot: &Slot) -> u32 {
        let mut built = 0;
        let count = |content: &AbsPath, report: Report<'_>| {
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
    fn what_is_half_done_is_never_taken_and_always_replaced() {
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
            ("other version", |at| fake::package(&at.join(PACKAGE), "pyright", "1.1.400")),
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
    fn a_failed_build_leaves_nothing_and_leftovers_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let slot = slot(&folder);
        let fails = slot.fill(
            |_| false,
            &mut |_| (),
            |content: &AbsPath, report: Report<'_>| {
                build(&slot, content, report)?;
                Err(StoreError::Path("no".to_owned()))
            },
        );
        assert!(fails.is_err());
        assert!(slot.package().is_err());
        let servers = folder.path().join("servers");
        let leftover = servers.join(format!("{}dead", slot.staging_prefix()));
        fake::package(&leftover.join("content/package"), "pyright", "1.1.414");
        let others = servers.join(".staging-pyright-1.1.4.alive");
        fs::create_dir_all(&others).unwrap();
        fill(&slot);
        assert!(!leftover.exists() && others.exists());
    }

    #[test]
    fn a_cache_that_cannot_be_written_says_so() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("servers"), "a file").unwrap();
        let slot = slot(&folder);
        let error =
            slot.fill(|_| false, &mut |_| (), |content, report| build(&slot, content, report)).unwrap_err();
        assert!(error.to_string().starts_with("cannot make"), "{error}");
    }
}
