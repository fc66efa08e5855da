//! What git says of files before they are edited: which are clean, and what is dirty elsewhere.
//!
//! libgit2 is asked first. Where it finds everything clean, that is the answer. Where it does not, or refuses (it reads no
//! reftable, no SHA-256, no sparse and no split index, and takes clean files behind a filter for modified), the `git` program
//! decides. What nobody can tell is told as such, and is not clean.

use std::collections::{BTreeMap, BTreeSet};

use git2::{Repository, Status, StatusOptions};

use super::Worktree;
use super::program::GitProgram;
use crate::path::{AbsPath, WorkspacePath};

/// What git says of the files of one edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitState {
    /// None of the files is in a git worktree.
    NoRepository,
    /// It says this.
    Known(Report),
    /// It cannot be had, for this reason. Nothing counts as clean.
    Unknown(String),
}

/// What git says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The files that were asked about. A link is what it leads to.
    pub files: BTreeMap<WorkspacePath, FileState>,
    /// Everything else in their worktrees that is not clean; paths relative to the worktree, `/` at the end of a folder.
    pub elsewhere: BTreeMap<String, FileState>,
}

/// What git says of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileState {
    /// As it was committed.
    Clean,
    /// Not as it was committed, staged or not, or removed.
    Modified,
    /// In the middle of a merge.
    Conflicted,
    /// Git does not know it, and does not ignore it.
    Untracked,
    /// Git ignores it: it could not bring it back.
    Ignored,
    /// There is no such file, and git knows of none.
    Absent,
    /// It is outside of every worktree.
    Outside,
}

impl FileState {
    /// Whether git could bring the file back as it is, or there is nothing to bring back.
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(self, Self::Clean | Self::Absent)
    }
}

/// The dirt of a worktree by path, and which of the paths asked about are ignored.
#[derive(Debug, Default)]
struct Dirt {
    dirty: BTreeMap<String, FileState>,
    ignored: BTreeSet<String>,
}

/// What git says of some files of the workspace at `root`, which need not exist. `program` decides where libgit2 cannot.
#[must_use]
pub fn state<'p>(
    root: &AbsPath,
    files: impl IntoIterator<Item = &'p WorkspacePath>,
    program: Option<&GitProgram>,
) -> GitState {
    let mut by_worktree: BTreeMap<AbsPath, BTreeMap<String, Vec<&WorkspacePath>>> = BTreeMap::new();
    let mut report = Report::default();
    for file in files {
        let real = real(&root.join(file.as_str()));
        let found = Worktree::around(&real.parent()).map(|worktree| worktree.top);
        let inside = found.and_then(|top| Some((real.strip_prefix(&top)?.to_owned(), top)));
        match inside {
            Some((inside, top)) => {
                by_worktree.entry(top).or_default().entry(inside).or_default().push(file);
            }
            None => {
                report.files.insert(file.clone(), FileState::Outside);
            }
        }
    }
    if by_worktree.is_empty() {
        match Worktree::around(root) {
            Some(worktree) => drop(by_worktree.insert(worktree.top, BTreeMap::new())),
            None => return GitState::NoRepository,
        }
    }
    for (top, files) in &by_worktree {
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        let dirt = match dirt_of(top, &paths, program) {
            Ok(dirt) => dirt,
            Err(reason) => return GitState::Unknown(reason),
        };
        for (inside, named) in files {
            let state = match dirt.dirty.get(inside) {
                Some(state) => *state,
                None if below_a_dirty_folder(inside, &dirt) => FileState::Untracked,
                None if top.join(inside).as_path().symlink_metadata().is_err() => FileState::Absent,
                None if dirt.ignored.contains(inside) => FileState::Ignored,
                None => FileState::Clean,
            };
            report.files.extend(named.iter().map(|path| ((*path).clone(), state)));
        }
        let elsewhere = dirt.dirty.into_iter().filter(|(path, _)| !files.contains_key(path));
        report.elsewhere.extend(elsewhere);
    }
    GitState::Known(report)
}

/// An untracked folder is told as one line when it is a repository of its own.
fn below_a_dirty_folder(path: &str, dirt: &Dirt) -> bool {
    dirt.dirty.keys().any(|folder| folder.ends_with('/') && path.starts_with(folder.as_str()))
}

/// A path with links resolved, as far as it exists.
fn real(path: &AbsPath) -> AbsPath {
    let mut at = path.clone();
    let mut rest = Vec::new();
    loop {
        let found = std::fs::canonicalize(at.as_path()).ok().and_then(|real| AbsPath::new(real).ok());
        match found {
            Some(real) => return rest.iter().rev().fold(real, |at: AbsPath, name: &String| at.join(name)),
            None if at.file_name().is_empty() => return path.clone(),
            None => {
                rest.push(at.file_name().to_owned());
                at = at.parent();
            }
        }
    }
}

fn dirt_of(top: &AbsPath, paths: &[&str], program: Option<&GitProgram>) -> Result<Dirt, String> {
    let by_library = by_library(top, paths).map_err(|error| error.message().to_owned());
    if by_library.as_ref().is_ok_and(|dirt| dirt.dirty.is_empty() && dirt.ignored.is_empty()) {
        return by_library;
    }
    let Some(program) = program else { return by_library };
    by_program(top, paths, program).or_else(|words| by_library.map_err(|_| words))
}

fn by_library(top: &AbsPath, paths: &[&str]) -> Result<Dirt, git2::Error> {
    let repository = Repository::open(top.as_path())?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true);
    // Writing the index is nobody's business who only asks.
    options.update_index(false).no_refresh(false);
    let mut dirt = Dirt::default();
    for entry in repository.statuses(Some(&mut options))?.iter() {
        let status = entry.status();
        let state = if status.is_conflicted() {
            FileState::Conflicted
        } else if status == Status::WT_NEW {
            FileState::Untracked
        } else if status == Status::CURRENT || status.is_ignored() {
            continue;
        } else {
            FileState::Modified
        };
        dirt.dirty.insert(String::from_utf8_lossy(entry.path_bytes()).into_owned(), state);
    }
    let index = repository.index()?;
    for path in paths {
        if index.get_path(path.as_ref(), 0).is_none() && repository.status_should_ignore(path.as_ref())? {
            dirt.ignored.insert((*path).to_owned());
        }
    }
    Ok(dirt)
}

fn by_program(top: &AbsPath, paths: &[&str], program: &GitProgram) -> Result<Dirt, String> {
    let args = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"];
    let told = program.ask(top, &args, b"", &[0])?;
    let mut dirt = Dirt::default();
    for line in told.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        // `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path`, `? path`
        let (fields, state) = match line.as_bytes()[0] {
            b'1' => (9, FileState::Modified),
            b'u' => (11, FileState::Conflicted),
            b'?' => (2, FileState::Untracked),
            _ => return Err("git status said what lanser cannot read".to_owned()),
        };
        let path = line.splitn(fields, ' ').nth(fields - 1);
        let path = path.ok_or("git status said what lanser cannot read")?;
        dirt.dirty.insert(path.to_owned(), state);
    }
    if !paths.is_empty() {
        let input = paths.join("\0");
        // 1 says that none is ignored.
        let told = program.ask(top, &["check-ignore", "-z", "--stdin"], input.as_bytes(), &[0, 1])?;
        let ignored = told.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        dirt.ignored.extend(ignored.map(|path| String::from_utf8_lossy(path).into_owned()));
    }
    Ok(dirt)
}
