//! The contents that edits are planned against: those of the disk, each file read once, so that the ground's last look proves
//! them.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use crate::digest::Digest;
use crate::edit::{Base, Original};
use crate::orchestrator::state::State;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::{Door, Tape};
use crate::workspace::files::{FileKind, Files as _, ReadError, canonical, read_bytes};

/// The workspace's files.
pub(super) struct Disk<'s> {
    state: &'s State,
    root: &'s AbsPath,
    /// Whether links may lead out of the workspace.
    outside: bool,
}

impl<'s> Disk<'s> {
    pub(super) fn new(state: &'s State, outside: bool) -> Self {
        Self { state, root: state.ground.snapshot.root(), outside }
    }
}

/// Where a path of the workspace leads, links followed; of what does not exist the nearest folder that does says where it would
/// be.
fn real(root: &AbsPath, path: &WorkspacePath) -> Result<AbsPath, String> {
    let mut known = root.join(path.as_str());
    let mut rest: Vec<String> = Vec::new();
    while std::fs::symlink_metadata(known.as_path()).is_err() && known.as_str() != "/" {
        rest.push(known.file_name().to_owned());
        known = known.parent();
    }
    if std::fs::metadata(known.as_path()).is_err() {
        return Err("it is a link that leads nowhere".to_owned());
    }
    Ok(rest.iter().rev().fold(canonical(&known), |at, name| at.join(name)))
}

/// Whether a path of the workspace leads to a file of the workspace.
pub(super) fn leads_inside(state: &State, path: &WorkspacePath) -> bool {
    let root = state.ground.snapshot.root();
    let look = || real(root, path).is_ok_and(|real| real.strip_prefix(root).is_some());
    state.tape.ask(Door::Guard, &("inside", path), look, || false)
}

impl Base for Disk<'_> {
    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        let lost = || Err("it was not recorded".to_owned());
        let look = || self.inside(path);
        self.state.tape.ask(Door::Guard, &("resolve", path, self.outside), look, lost)
    }

    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String> {
        let tape = &self.state.tape;
        if tape.is_off() {
            return self.original(path).map(|original| original.map(Arc::new));
        }
        let look = || {
            let original = self.original(path)?;
            Ok(original.map(|original| (tape.keep(original.bytes.clone()), original.executable)))
        };
        let lost = || Err("it was not recorded".to_owned());
        let known: Result<Option<(Digest, bool)>, String> =
            tape.ask(Door::Guard, &("file", path), look, lost);
        let original = |(digest, executable): (Digest, bool)| {
            let bytes = tape.blob(&digest)?.to_vec();
            Some(Arc::new(Original { bytes, executable }))
        };
        Ok(known?.and_then(original))
    }

    fn is_folder(&self, path: &WorkspacePath) -> bool {
        self.state.files.kind(&self.root.join(path.as_str())) == FileKind::Folder
    }
}

impl Disk<'_> {
    /// What every look at the disk passes through.
    pub(super) fn tape(&self) -> &Tape {
        &self.state.tape
    }

    /// Where a path leads, as a path of the workspace.
    fn inside(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        let real = real(self.root, path)?;
        let inside = real.strip_prefix(self.root).and_then(WorkspacePath::new);
        if inside.is_none() && self.outside {
            return Ok(path.clone());
        }
        let inside = inside.ok_or_else(|| "a link leads out of the workspace".to_owned())?;
        if inside.as_str().split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
            return Err("a link leads into a `.git` folder".to_owned());
        }
        Ok(inside)
    }

    /// What a file holds.
    fn original(&self, path: &WorkspacePath) -> Result<Option<Original>, String> {
        let place = self.root.join(path.as_str());
        let bytes = match read_bytes(&place) {
            Ok(bytes) => bytes,
            Err(ReadError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(self.state.ground.paths.text(&error.to_string())),
        };
        // What the ground says of the file is what was read, or the last look at it notices.
        if path.is_python() {
            let read = self.state.files.read(&place);
            let document = read.map_err(|error| self.state.ground.paths.text(&error.to_string()))?;
            if document.digest != Digest::of(&bytes) {
                return Err("it is being written right now".to_owned());
            }
        }
        let mode = std::fs::metadata(place.as_path()).map(|metadata| metadata.permissions().mode());
        Ok(Some(Original { bytes, executable: mode.is_ok_and(|mode| mode & 0o111 != 0) }))
    }
}
