//! What an install tells while it runs.

use crate::path::AbsPath;

/// What an install is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Another process installs the same thing and is waited for.
    Waiting {
        /// What is installed, such as `pyright 1.1.414`.
        what: String,
    },
    /// An installer has been started.
    Installing {
        /// What is installed.
        what: String,
        /// The installer: `npm` or `pip`.
        with: String,
    },
    /// It is in its place.
    Installed {
        /// What was installed.
        what: String,
        /// Its folder.
        at: AbsPath,
    },
}

/// Who is told.
pub(super) type Report<'r> = &'r mut dyn FnMut(Progress);
