//! Editable installs of the workspace's own packages: their search path leads into the live tree, whatever is scored.
//!
//! A server looks into the copy first, so this shows only in what the copy does not have, or has where no import root is.

use crate::orchestrator::ground::Ground;
use crate::path::{AbsPath, WorkspacePath};
use crate::workspace::tree::FileTree;

/// The import roots that a server has in any folder.
const ROOTS: [&str; 2] = ["", "src"];

/// Why a server that stands on a copy (with this ground, of this state) may read files of the live tree at `live` instead.
pub(super) fn reads_live(ground: &Ground, live: &AbsPath, tree: &FileTree) -> Option<String> {
    for (folder, files) in ground.outside_files() {
        let Some(inside) = folder.strip_prefix(live) else { continue };
        let place = if inside.is_empty() { "the workspace itself" } else { inside };
        let says = format!("an editable install of the environment leads to {place}, in the live tree");
        if !ROOTS.contains(&inside) || !ground.config.execution_environments.is_empty() {
            return Some(format!("{says}: what is imported from there is not what is scored"));
        }
        let at = |path: &WorkspacePath| match inside {
            "" => Some(path.clone()),
            _ => WorkspacePath::new(&format!("{inside}/{path}")),
        };
        let only_there = files.keys().filter_map(at).find(|path| !tree.files.contains_key(path));
        if let Some(path) = only_there {
            return Some(format!("{says}, which has files that are not scored: {path}"));
        }
    }
    None
}
