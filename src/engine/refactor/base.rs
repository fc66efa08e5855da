//! The file contents that edits are planned against. Each file is read once, and the final check of the inputs covers
//! what was read.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use crate::digest::Digest;
use crate::edit::{Base, Original};
use crate::engine::request_state::RequestState;
use crate::path::{AbsPath, WorkspacePath};
use crate::tape::{IoKind, Tape};
use crate::workspace::files::{FileKind, Files as _, ReadError, canonical, read_bytes};

/// The files on disk.
pub(super) struct Disk<'s> {
    state: &'s RequestState,
    root: &'s AbsPath,
    /// Whether links may point out of the workspace.
    outside: bool,
}

impl<'s> Disk<'s> {
    pub(super) fn new(state: &'s RequestState, outside: bool) -> Self {
        Self { state, root: state.inputs.snapshot.root(), outside }
    }
}

/// The real path of a workspace path, with links followed. For a path that does not exist, the nearest existing
/// parent folder is resolved.
fn real_path(root: &AbsPath, path: &WorkspacePath) -> Result<AbsPath, String> {
    let mut known = root.join(path.as_str());
    let mut rest: Vec<String> = Vec::new();
    while std::fs::symlink_metadata(known.as_path()).is_err() && known.as_str() != "/" {
        rest.push(known.file_name().to_owned());
        known = known.parent();
    }
    if std::fs::metadata(known.as_path()).is_err() {
        return Err("it is a dangling link".to_owned());
    }
    Ok(rest.iter().rev().fold(canonical(&known), |at, name| at.join(name)))
}

/// Whether a workspace path resolves to a path in the workspace.
pub(super) fn resolves_inside(state: &RequestState, path: &WorkspacePath) -> bool {
    let root = state.inputs.snapshot.root();
    let read = || real_path(root, path).is_ok_and(|real| real.strip_prefix(root).is_some());
    state.tape.query(IoKind::Guard, &("inside", path), read, || false)
}

impl Base for Disk<'_> {
    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        let unrecorded = || Err("it was not recorded".to_owned());
        let read = || self.inside(path);
        self.state.tape.query(IoKind::Guard, &("python", path, self.outside), read, unrecorded)
    }

    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String> {
        let tape = &self.state.tape;
        if tape.is_off() {
            return self.original(path).map(|original| original.map(Arc::new));
        }
        let read = || {
            let original = self.original(path)?;
            Ok(original.map(|original| (tape.record_blob(original.bytes.clone()), original.executable)))
        };
        let unrecorded = || Err("it was not recorded".to_owned());
        let known: Result<Option<(Digest, bool)>, String> =
            tape.query(IoKind::Guard, &("file", path), read, unrecorded);
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
    /// The tape that records all accesses to the disk.
    pub(super) fn tape(&self) -> &Tape {
        &self.state.tape
    }

    /// The real path, as a path of the workspace.
    fn inside(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        let real = real_path(self.root, path)?;
        let inside = real.strip_prefix(self.root).and_then(WorkspacePath::new);
        if inside.is_none() && self.outside {
            return Ok(path.clone());
        }
        let inside = inside.ok_or_else(|| "a link points out of the workspace".to_owned())?;
        if inside.as_str().split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
            return Err("a link points into a `.git` folder".to_owned());
        }
        Ok(inside)
    }

    /// The content of a file.
    fn original(&self, path: &WorkspacePath) -> Result<Option<Original>, String> {
        let place = self.root.join(path.as_str());
        let bytes = match read_bytes(&place) {
            Ok(bytes) => bytes,
            Err(ReadError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(self.state.inputs.paths.text(&error.to_string())),
        };
        // The inputs must record the content that was read here, so that the final check notices a change.
        if path.is_python() {
            let read = self.state.files.read(&place);
            let document = read.map_err(|error| self.state.inputs.paths.text(&error.to_string()))?;
            if document.digest != Digest::of(&bytes) {
                return Err("it changed while it was read".to_owned());
            }
        }
        let mode = std::fs::metadata(place.as_path()).map(|metadata| metadata.permissions().mode());
        Ok(Some(Original { bytes, executable: mode.is_ok_and(|mode| mode & 0o111 != 0) }))
    }
}
