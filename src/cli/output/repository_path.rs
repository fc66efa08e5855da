//! Paths relative to the repository, as CI systems expect them in reports.

use std::path::Path;

use crate::model::bundle::Bundle;
use crate::path::WorkspacePath;

/// The workspace's folder in its git repository, which ends with a slash; empty if they are the same, or if there is none.
pub(super) fn prefix(bundle: &Bundle) -> String {
    let Some(root) = bundle.meta.volatile.root.as_deref().map(Path::new) else { return String::new() };
    let repository = root.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
    let inside = repository.and_then(|folder| root.strip_prefix(folder).ok()?.to_str());
    inside.filter(|inside| !inside.is_empty()).map(|inside| format!("{inside}/")).unwrap_or_default()
}

/// The path of a file of the workspace in the repository.
pub(super) fn in_repository(prefix: &str, path: &WorkspacePath) -> String {
    format!("{prefix}{path}")
}
