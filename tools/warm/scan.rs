//! The lower bound for freshness: a bare walk over the folders that can contain a workspace's Python files, with a `stat` of each
//! file.
//!
//! It does only what is necessary: no order, no stored paths, no links to folders followed. Anything that answers from the current
//! state of a workspace needs at least this before each answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

/// Folders still to be read, and the number of threads reading one.
struct Queue {
    folders: Vec<PathBuf>,
    busy: usize,
}

/// The number of Python files below a folder, with a `stat` of each, using as many threads as there are processors.
pub(crate) fn scan(root: &Path) -> usize {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(Queue { folders: vec![root.to_owned()], busy: 0 });
    let wake = Condvar::new();
    let work = || {
        let mut files = 0;
        let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(folder) = state.folders.pop() {
                state.busy += 1;
                drop(state);
                let mut below = Vec::new();
                files += read(&folder, folder == root, &mut below);
                state = queue.lock().unwrap_or_else(PoisonError::into_inner);
                state.busy -= 1;
                state.folders.append(&mut below);
                wake.notify_all();
            } else if state.busy == 0 {
                return files;
            } else {
                state = wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        own + helpers.into_iter().map(|helper| helper.join().unwrap_or_default()).sum::<usize>()
    })
}

/// Counts the Python files of one folder and adds the folders in it that are to be read; a virtual environment has none.
fn read(folder: &Path, is_root: bool, below: &mut Vec<PathBuf>) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if !name.starts_with('.') && name != "node_modules" && name != "__pycache__" {
                below.push(entry.path());
            }
        } else if name == "pyvenv.cfg" && !is_root {
            below.clear();
            return 0;
        } else if name.ends_with(".py") || name.ends_with(".pyi") {
            let stat = if kind.is_symlink() { fs::metadata(entry.path()) } else { entry.metadata() };
            files += usize::from(stat.is_ok_and(|stat| stat.is_file()));
        }
    }
    files
}
