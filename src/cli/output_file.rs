//! Files that a command writes besides its output.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use super::context::CliContext;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::path::AbsPath;
use crate::workspace::root::is_of_system;

/// A file that is written in one step: a reader sees the old content or the new one.
pub(crate) struct OutputFile<'n> {
    path: AbsPath,
    /// The path as the user gave it.
    named: &'n str,
    /// The option that names it.
    option: &'static str,
}

impl<'n> OutputFile<'n> {
    /// The file that an option names. Nothing is written yet.
    pub(crate) fn new(option: &'static str, named: &'n str, context: &CliContext) -> Self {
        Self { path: context.env.absolute(named), named, option }
    }

    /// Writes the whole content.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be written to.
    pub(crate) fn write(&self, text: &str) -> Result<(), ErrorBody> {
        write_file(&self.path, text).map_err(|error| self.cannot("write", &error))
    }

    /// Removes what an earlier run wrote.
    ///
    /// # Errors
    /// If there is a file that cannot be removed.
    pub(crate) fn remove(&self) -> Result<(), ErrorBody> {
        match std::fs::remove_file(self.path.as_path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(self.cannot("remove", &error)),
            _ => Ok(()),
        }
    }

    fn cannot(&self, what: &str, error: &std::io::Error) -> ErrorBody {
        let Self { path, named, option } = self;
        match path.parent() {
            folder if !folder.as_path().is_dir() => {
                let message = format!("cannot {what} {named}: no such folder: {folder}");
                ErrorBody::new(ErrorSymbol::NotFound, message).hint("create the folder first")
            }
            _ => ErrorBody::new(ErrorSymbol::FsPermissions, format!("cannot {what} {named}: {error}"))
                .hint(format!("pass a writable file to {option}")),
        }
    }
}

/// Creates a file that is written in many steps. A link in its place may be the checkout's, and is replaced; those of the system,
/// such as `/dev/stdout`, are followed.
///
/// # Errors
/// If the file cannot be created, or the link not be removed.
pub(crate) fn create(path: &AbsPath) -> std::io::Result<File> {
    if path.as_path().is_symlink() && !is_of_system(&path.parent()) {
        std::fs::remove_file(path.as_path())?;
    }
    File::create(path.as_path())
}

/// Writes a file in one step.
///
/// # Errors
/// If the folder does not exist or cannot be written to.
pub(crate) fn write_file(path: &AbsPath, text: &str) -> std::io::Result<()> {
    if path.as_path().is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    let mut file = tempfile::Builder::new()
        // As for any new file, the user's mask applies.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(path.parent().as_path())?;
    file.write_all(text.as_bytes())?;
    file.persist(path.as_path()).map_err(|error| error.error)?;
    Ok(())
}
