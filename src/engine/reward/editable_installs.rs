//! Detects editable installs of the workspace's own packages: their search path leads into the live tree, whatever
//! state is scored.
//!
//! A server searches the copy first, so this matters only for files that the copy does not have, or that are not
//! below an import root.

use crate::engine::inputs::Inputs;
use crate::path::{AbsPath, WorkspacePath};
use crate::workspace::file_tree::FileTree;

/// The import roots that a server assumes in any folder.
const IMPORT_ROOTS: [&str; 2] = ["", "src"];

/// The reason why a server on a copy (with these inputs, of this state) may read files of the live tree at `live`
/// instead; `None` if it does not.
pub(super) fn reads_live(inputs: &Inputs, live: &AbsPath, tree: &FileTree) -> Option<String> {
    for (folder, files) in inputs.outside_files() {
        let Some(inside) = folder.strip_prefix(live) else { continue };
        let place = if inside.is_empty() { "the workspace itself" } else { inside };
        let message = format!("an editable install of the environment refers to {place}, in the live tree");
        if !IMPORT_ROOTS.contains(&inside) || !inputs.config.execution_environments.is_empty() {
            return Some(format!("{message}: imports from there do not see the scored state"));
        }
        let at = |path: &WorkspacePath| match inside {
            "" => Some(path.clone()),
            _ => WorkspacePath::new(&format!("{inside}/{path}")),
        };
        let only_there = files.keys().filter_map(at).find(|path| !tree.files.contains_key(path));
        if let Some(path) = only_there {
            return Some(format!("{message}, which has a file that is not in the scored state: {path}"));
        }
    }
    None
}
