//! The git status of files before they are edited: whether they are clean, and which other files are dirty.
//!
//! libgit2 is used first. If it reports everything clean, that is the result. If it reports anything else or fails, the
//! `git` program decides: libgit2 does not read reftable, SHA-256 repositories, a sparse index or a split index, and it
//! reports clean files with a filter as modified. If neither can tell, the status is unknown, which does not count as
//! clean.

use std::collections::{BTreeMap, BTreeSet};

use git2::{Repository, Status, StatusOptions};
use serde::{Deserialize, Serialize};

use super::Worktree;
use super::program::GitProgram;
use super::tree_size::{MAX_TREE_ENTRIES, TreeSizes};
use crate::path::{AbsPath, WorkspacePath};

/// The git status of the files of one edit.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub enum GitState {
    /// None of the files is in a git worktree.
    NoRepository,
    /// The status of each file.
    Known(GitReport),
    /// The status could not be determined, for this reason. No file counts as clean.
    Unknown(String),
}

/// The git status of files.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct GitReport {
    /// The status of the requested files. A symbolic link has the status of its target.
    pub files: BTreeMap<WorkspacePath, GitFileState>,
    /// All other dirty files of their worktrees. Paths are relative to the worktree; a folder ends with `/`.
    pub elsewhere: BTreeMap<String, GitFileState>,
    /// Whether a repository's configuration has filters that were not run, so that a file with such a filter counts as
    /// modified.
    #[serde(default)]
    pub has_filters: bool,
}

/// The git status of one file.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitFileState {
    /// Equal to the commit.
    Clean,
    /// Different from the commit, staged or not, or removed.
    Modified,
    /// In an unfinished merge.
    Conflicted,
    /// Not tracked, and not ignored.
    Untracked,
    /// Ignored by git, which therefore cannot restore it.
    Ignored,
    /// Marked `assume-unchanged` or `skip-worktree`, so that git does not check its content.
    Unwatched,
    /// The file does not exist and is not tracked.
    Absent,
    /// Outside of every worktree.
    Outside,
}

impl GitFileState {
    /// Whether git could restore the file as it is, or there is no file.
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(self, Self::Clean | Self::Absent)
    }
}

/// The dirty files of a worktree by path, and which of the requested paths are ignored or unwatched.
#[derive(Debug, Default)]
struct DirtyPaths {
    dirty: BTreeMap<String, GitFileState>,
    ignored: BTreeSet<String>,
    unwatched: BTreeSet<String>,
    /// Whether the repository's configuration has filters that were not run.
    has_filters: bool,
}

/// The bit of `assume-unchanged` in the flags of an entry in git's index.
const ASSUME_UNCHANGED: u16 = 0x8000;
/// The bit of `skip-worktree` in the extended flags of an entry in git's index.
const SKIP_WORKTREE: u16 = 0x4000;

/// The git status of some files of the workspace at `root`. The files need not exist. `program` is used where libgit2
/// is not enough.
#[must_use]
pub fn state<'p>(
    root: &AbsPath,
    files: impl IntoIterator<Item = &'p WorkspacePath>,
    program: Option<&GitProgram>,
) -> GitState {
    let mut by_worktree: BTreeMap<AbsPath, BTreeMap<String, Vec<&WorkspacePath>>> = BTreeMap::new();
    let mut report = GitReport::default();
    for file in files {
        let real_path = real_path(&root.join(file.as_str()));
        let found = Worktree::around(&real_path.parent()).map(|worktree| worktree.top);
        let inside = found.and_then(|top| Some((real_path.strip_prefix(&top)?.to_owned(), top)));
        match inside {
            Some((inside, top)) => {
                by_worktree.entry(top).or_default().entry(inside).or_default().push(file);
            }
            None => {
                report.files.insert(file.clone(), GitFileState::Outside);
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
        let dirty_paths = match dirty_paths(top, &paths, program) {
            Ok(dirty_paths) => dirty_paths,
            Err(reason) => return GitState::Unknown(reason),
        };
        for (inside, named) in files {
            let state = match dirty_paths.dirty.get(inside) {
                Some(state) => *state,
                None if is_in_untracked_folder(inside, &dirty_paths) => GitFileState::Untracked,
                None if top.join(inside).as_path().symlink_metadata().is_err() => GitFileState::Absent,
                None if dirty_paths.ignored.contains(inside) => GitFileState::Ignored,
                None if dirty_paths.unwatched.contains(inside) => GitFileState::Unwatched,
                None => GitFileState::Clean,
            };
            report.files.extend(named.iter().map(|path| ((*path).clone(), state)));
        }
        report.has_filters |= dirty_paths.has_filters;
        let elsewhere = dirty_paths.dirty.into_iter().filter(|(path, _)| !files.contains_key(path));
        report.elsewhere.extend(elsewhere);
    }
    GitState::Known(report)
}

/// Whether a path is in a folder that git lists as untracked as a whole. It does so when the folder is another
/// repository.
fn is_in_untracked_folder(path: &str, dirty_paths: &DirtyPaths) -> bool {
    dirty_paths.dirty.keys().any(|folder| folder.ends_with('/') && path.starts_with(folder.as_str()))
}

/// A path with the symbolic links in its existing part resolved.
fn real_path(path: &AbsPath) -> AbsPath {
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

fn dirty_paths(top: &AbsPath, paths: &[&str], program: Option<&GitProgram>) -> Result<DirtyPaths, String> {
    if let Ok(repository) = Repository::open(top.as_path()) {
        if repository.workdir().is_some_and(|named| real_folder(named).as_ref() != Some(top)) {
            // Its status would be about other files.
            return Err("the repository's configuration names another work tree".to_owned());
        }
        let head = repository.head().and_then(|head| head.peel_to_tree());
        if head.is_ok_and(|head| !TreeSizes::default().is_readable(&repository, head.id())) {
            return Err(format!("the commit that is checked out has more than {MAX_TREE_ENTRIES} files"));
        }
    }
    let from_libgit2 = dirty_paths_by_libgit2(top, paths).map_err(|error| error.message().to_owned());
    if from_libgit2.as_ref().is_ok_and(|found| found.dirty.is_empty() && found.ignored.is_empty()) {
        return from_libgit2;
    }
    let Some(program) = program else { return from_libgit2 };
    dirty_paths_by_git(top, paths, program).or_else(|reason| from_libgit2.map_err(|_| reason))
}

fn real_folder(path: &std::path::Path) -> Option<AbsPath> {
    AbsPath::new(std::fs::canonicalize(path).ok()?).ok()
}

fn dirty_paths_by_libgit2(top: &AbsPath, paths: &[&str]) -> Result<DirtyPaths, git2::Error> {
    let repository = Repository::open(top.as_path())?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
    // Do not write a refreshed index.
    options.update_index(false).no_refresh(false);
    let mut found = DirtyPaths::default();
    for entry in repository.statuses(Some(&mut options))?.iter() {
        let status = entry.status();
        let state = if status.is_conflicted() {
            GitFileState::Conflicted
        } else if status == Status::WT_NEW {
            GitFileState::Untracked
        } else if status == Status::CURRENT || status.is_ignored() {
            continue;
        } else {
            GitFileState::Modified
        };
        found.dirty.insert(String::from_utf8_lossy(entry.path_bytes()).into_owned(), state);
    }
    let index = repository.index()?;
    for path in paths {
        match index.get_path(path.as_ref(), 0) {
            None if repository.status_should_ignore(path.as_ref())? => {
                found.ignored.insert((*path).to_owned());
            }
            Some(entry)
                if entry.flags & ASSUME_UNCHANGED != 0 || entry.flags_extended & SKIP_WORKTREE != 0 =>
            {
                found.unwatched.insert((*path).to_owned());
            }
            _ => {}
        }
    }
    Ok(found)
}

fn dirty_paths_by_git(top: &AbsPath, paths: &[&str], program: &GitProgram) -> Result<DirtyPaths, String> {
    let git = program.at(top)?;
    let args = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"];
    // A submodule has its own configuration. The status of an edited file in one is read from the submodule.
    let args = [&args[..], &["--ignore-submodules=all"]].concat();
    let output = git.run(&args, b"", &[0])?;
    let mut found = DirtyPaths { has_filters: git.has_filters(), ..DirtyPaths::default() };
    for line in output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        // `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path`, `? path`
        let (fields, state) = match line.as_bytes()[0] {
            b'1' => (9, GitFileState::Modified),
            b'u' => (11, GitFileState::Conflicted),
            b'?' => (2, GitFileState::Untracked),
            _ => return Err("git status printed a line that lanser cannot read".to_owned()),
        };
        let path = line.splitn(fields, ' ').nth(fields - 1);
        let path = path.ok_or("git status printed a line that lanser cannot read")?;
        found.dirty.insert(path.to_owned(), state);
    }
    if !paths.is_empty() {
        // `check-ignore` reads pathspecs. The prefix `./` makes each of them a plain path.
        let input: String = paths.iter().map(|path| format!("./{path}\0")).collect();
        // Exit code 1 means that none is ignored.
        let output = git.run(&["check-ignore", "-z", "--stdin"], input.as_bytes(), &[0, 1])?;
        let ignored = output.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let plain = |path| String::from_utf8_lossy(path).trim_start_matches("./").to_owned();
        found.ignored.extend(ignored.map(plain));
        // The tag is a lower-case letter for `assume-unchanged`, and `S` for `skip-worktree`.
        let output = git.run(&["ls-files", "-v", "-z"], b"", &[0])?;
        let marked = output
            .split(|byte| *byte == 0)
            .filter(|line| line.first().is_some_and(|tag| tag.is_ascii_lowercase() || *tag == b'S'));
        let requested: BTreeSet<&str> = paths.iter().copied().collect();
        let names = marked.filter_map(|line| std::str::from_utf8(line.get(2..)?).ok());
        found.unwatched.extend(names.filter(|name| requested.contains(name)).map(str::to_owned));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    struct TestRepository {
        folder: tempfile::TempDir,
        root: AbsPath,
    }

    fn path(path: &str) -> WorkspacePath {
        WorkspacePath::new(path).unwrap()
    }

    fn program() -> GitProgram {
        #[expect(clippy::disallowed_methods, reason = "the tests use the git that a user would use")]
        let found = std::env::var_os("PATH").unwrap();
        let folders: Vec<_> = std::env::split_paths(&found).collect();
        GitProgram::find(&folders, &BTreeMap::new(), &AbsPath::new("/nowhere").unwrap(), false).unwrap()
    }

    /// The same with this folder as the user's configuration.
    fn program_with_config(config: &Path, trusted: bool) -> GitProgram {
        let environment = BTreeMap::from([("XDG_CONFIG_HOME".to_owned(), config.display().to_string())]);
        GitProgram::find(
            &[program().folder().to_owned()],
            &environment,
            &AbsPath::new("/nowhere").unwrap(),
            trusted,
        )
        .unwrap()
    }

    impl TestRepository {
        fn new(init: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = AbsPath::new(folder.path().canonicalize().unwrap().join("w")).unwrap();
            std::fs::create_dir(root.as_path()).unwrap();
            let checkout = Self { folder, root };
            checkout.git(&[&["init", "-q"], init].concat());
            checkout
        }

        fn git(&self, args: &[&str]) -> String {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]);
            let out = command.args(args).current_dir(self.root.as_path()).output().unwrap();
            assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8(out.stdout).unwrap()
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.root.join(path);
            std::fs::create_dir_all(path.parent().as_path()).unwrap();
            std::fs::write(path.as_path(), text).unwrap();
        }

        fn commit(&self) {
            self.git(&["add", "-A"]);
            self.git(&["commit", "-qm", "all"]);
        }

        fn state(&self, files: &[&str], program: Option<&GitProgram>) -> GitState {
            state(&self.root, &files.iter().map(|file| path(file)).collect::<Vec<_>>(), program)
        }

        fn report(&self, files: &[&str], program: Option<&GitProgram>) -> GitReport {
            match self.state(files, program) {
                GitState::Known(report) => report,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn every_file_state_with_and_without_the_git_program() {
        let checkout = TestRepository::new(&[]);
        for file in ["clean.py", "sub/modified.py", "staged.py", "removed.py", "x/elsewhere é.py"] {
            checkout.put(file, "1");
        }
        checkout.put(".gitignore", "*.log\n");
        checkout.commit();
        checkout.put("sub/modified.py", "2");
        checkout.put("staged.py", "2");
        checkout.git(&["add", "staged.py"]);
        std::fs::remove_file(checkout.root.join("removed.py").as_path()).unwrap();
        checkout.put("new/deep/untracked.py", "");
        checkout.put("ignored.log", "");
        checkout.put("x/elsewhere é.py", "2");
        checkout.put("x/[*].py", "2");
        std::os::unix::fs::symlink("sub/modified.py", checkout.root.join("link.py").as_path()).unwrap();
        let files = [
            ("clean.py", GitFileState::Clean),
            ("sub/modified.py", GitFileState::Modified),
            ("link.py", GitFileState::Modified),
            ("staged.py", GitFileState::Modified),
            ("removed.py", GitFileState::Modified),
            ("new/deep/untracked.py", GitFileState::Untracked),
            ("ignored.log", GitFileState::Ignored),
            ("absent.py", GitFileState::Absent),
            ("nowhere/absent.py", GitFileState::Absent),
        ];
        let requested: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
        let git = program();
        for program in [None, Some(&git)] {
            let report = checkout.report(&requested, program);
            assert_eq!(report.files, files.iter().map(|(file, state)| (path(file), *state)).collect());
            let elsewhere: Vec<&str> = report.elsewhere.keys().map(String::as_str).collect();
            assert_eq!(elsewhere, ["link.py", "x/[*].py", "x/elsewhere é.py"]);
        }
        // A workspace below the worktree's top, then a report without requested files.
        let inner = state(&checkout.root.join("sub"), &[path("modified.py")], None);
        assert!(
            matches!(inner, GitState::Known(report) if report.files[&path("modified.py")] == GitFileState::Modified)
        );
        assert_eq!(checkout.report(&[], None).elsewhere.len(), 7);
    }

    #[test]
    fn a_folder_outside_of_git_has_no_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        assert_eq!(state(&root, &[path("a.py")], Some(&program())), GitState::NoRepository);
    }

    #[test]
    fn the_git_program_reads_what_libgit2_cannot() {
        let git = program();
        for init in [&["--ref-format=reftable"][..], &["--object-format=sha256"][..]] {
            let checkout = TestRepository::new(init);
            checkout.put("a.py", "1");
            checkout.put("b.py", "1");
            checkout.commit();
            checkout.put("b.py", "2");
            let report = checkout.report(&["a.py", "b.py"], Some(&git));
            assert_eq!(report.files[&path("a.py")], GitFileState::Clean, "{init:?}");
            assert_eq!(report.files[&path("b.py")], GitFileState::Modified, "{init:?}");
            assert!(matches!(checkout.state(&["a.py"], None), GitState::Unknown(_)), "{init:?}");
        }
        for config in [
            &["config", "core.splitIndex", "true"][..],
            &["sparse-checkout", "set", "--sparse-index", "x"][..],
        ] {
            let checkout = TestRepository::new(&[]);
            checkout.put("x/a.py", "1");
            checkout.put("y/b.py", "1");
            checkout.commit();
            checkout.git(config);
            checkout.git(&["update-index", "--refresh"]);
            checkout.put("x/a.py", "2");
            let report = checkout.report(&["x/a.py"], Some(&git));
            assert_eq!(report.files[&path("x/a.py")], GitFileState::Modified, "{config:?}");
            assert_eq!(report.elsewhere, BTreeMap::new(), "{config:?}");
        }
    }

    #[test]
    fn unwatched_files_are_not_clean() {
        let git = program();
        for (init, by) in [(&[][..], None), (&[], Some(&git)), (&["--object-format=sha256"], Some(&git))] {
            for mark in ["--assume-unchanged", "--skip-worktree"] {
                let checkout = TestRepository::new(init);
                checkout.put("ü/a.py", "1");
                checkout.put("b.py", "1");
                checkout.commit();
                checkout.git(&["update-index", mark, "ü/a.py"]);
                checkout.put("ü/a.py", "2");
                let report = checkout.report(&["ü/a.py", "b.py"], by);
                assert_eq!(report.files[&path("ü/a.py")], GitFileState::Unwatched, "{init:?} {mark}");
                assert_eq!(report.files[&path("b.py")], GitFileState::Clean, "{init:?} {mark}");
            }
        }
    }

    #[test]
    fn the_git_program_decides_about_files_with_filters() {
        let checkout = TestRepository::new(&[]);
        let ran = checkout.folder.path().join("ran");
        let clean = format!("touch '{}'; tr a-z A-Z", ran.display());
        checkout.git(&["config", "filter.up.clean", &clean]);
        checkout.git(&["config", "filter.up.smudge", "tr A-Z a-z"]);
        checkout.put(".gitattributes", "*.py filter=up\n");
        checkout.put("a.py", "abc\n");
        checkout.commit();
        // As if the same content was written again: only the time differs.
        let file = std::fs::File::options().append(true).open(checkout.root.join("a.py").as_path()).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        std::fs::remove_file(&ran).unwrap();
        let config = tempfile::tempdir().unwrap();
        let of = |trusted| {
            let git = program_with_config(config.path(), trusted);
            checkout.report(&["a.py"], Some(&git)).files[&path("a.py")]
        };
        // A program in the repository's configuration is not run, in whichever setting it is.
        assert_eq!((of(false), ran.exists()), (GitFileState::Modified, false));
        checkout.git(&["config", "filter.up.process", &format!("touch '{}'", ran.display())]);
        checkout.git(&["config", "filter.up.required", "true"]);
        assert_eq!((of(false), ran.exists()), (GitFileState::Modified, false));
        checkout.git(&["config", "--unset", "filter.up.process"]);
        checkout.git(&["config", "--rename-section", "filter.up", "filter.x = y.up"]);
        checkout.put(".git/more", &format!("[filter \"up\"]\nclean = \"{clean}\"\n"));
        checkout.git(&["config", "include.path", "more"]);
        // A filter that cannot be disabled: git is not run.
        assert_eq!((of(false), ran.exists()), (GitFileState::Modified, false));
        checkout.git(&["config", "--remove-section", "filter.x = y.up"]);
        assert_eq!((of(false), ran.exists()), (GitFileState::Modified, false));
        // It runs when the repository is trusted. A filter of the user's configuration always runs.
        assert_eq!((of(true), ran.exists()), (GitFileState::Clean, true));
        assert_eq!(checkout.report(&["a.py"], None).files[&path("a.py")], GitFileState::Modified);
        checkout.git(&["config", "--unset", "include.path"]);
        std::fs::create_dir(config.path().join("git")).unwrap();
        std::fs::write(config.path().join("git/config"), "[filter \"up\"]\nclean = tr a-z A-Z\n").unwrap();
        assert_eq!(of(false), GitFileState::Clean);
        checkout.put("a.py", "abcd\n");
        assert_eq!(of(false), GitFileState::Modified);
    }

    #[test]
    fn a_repository_that_names_another_work_tree_has_an_unknown_state() {
        let checkout = TestRepository::new(&[]);
        checkout.put("a.py", "1");
        checkout.put("other/a.py", "1");
        checkout.commit();
        checkout.git(&["config", "core.worktree", checkout.root.join("other").as_str()]);
        std::fs::write(checkout.root.join("a.py").as_path(), "2").unwrap();
        for program in [None, Some(&program())] {
            let state = checkout.state(&["a.py"], program);
            assert!(
                matches!(&state, GitState::Unknown(reason) if reason.contains("another work tree")),
                "{state:?}"
            );
        }
    }

    #[test]
    fn a_pipe_is_not_a_git_folder() {
        let checkout = TestRepository::new(&[]);
        std::fs::remove_dir_all(checkout.root.join(".git").as_path()).unwrap();
        let git = checkout.root.join(".git");
        assert!(Command::new("mkfifo").arg(git.as_path()).status().unwrap().success());
        assert_eq!(Worktree::around(&checkout.root), None);
    }

    #[test]
    fn a_file_gets_its_state_from_the_innermost_repository() {
        let checkout = TestRepository::new(&[]);
        checkout.put("a.py", "1");
        checkout.put("nested/.keep", "");
        checkout.commit();
        let inner =
            TestRepository { root: checkout.root.join("nested"), folder: tempfile::tempdir().unwrap() };
        inner.git(&["init", "-q"]);
        inner.put("b.py", "1");
        inner.commit();
        inner.put("b.py", "2");
        inner.put("c.py", "2");
        let outside = checkout.folder.path().join("outside.py");
        std::fs::write(&outside, "").unwrap();
        std::os::unix::fs::symlink(&outside, checkout.root.join("out.py").as_path()).unwrap();
        let git = program();
        let files = ["a.py", "nested/b.py", "nested/c.py", "out.py"];
        let report = checkout.report(&files, Some(&git));
        let states: Vec<GitFileState> = files.iter().map(|file| report.files[&path(file)]).collect();
        assert_eq!(
            states,
            [GitFileState::Clean, GitFileState::Modified, GitFileState::Untracked, GitFileState::Outside]
        );
    }

    #[test]
    fn an_unborn_branch_and_a_merge() {
        let checkout = TestRepository::new(&["-b", "main"]);
        checkout.put("a.py", "1");
        let git = program();
        for program in [None, Some(&git)] {
            assert_eq!(checkout.report(&["a.py"], program).files[&path("a.py")], GitFileState::Untracked);
        }
        checkout.commit();
        checkout.git(&["checkout", "-qb", "other"]);
        checkout.put("a.py", "2");
        checkout.commit();
        checkout.git(&["checkout", "-q", "main"]);
        checkout.put("a.py", "3");
        checkout.commit();
        let merging = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "other"])
            .current_dir(checkout.root.as_path())
            .output()
            .unwrap();
        assert!(!merging.status.success());
        for program in [None, Some(&git)] {
            assert_eq!(checkout.report(&["a.py"], program).files[&path("a.py")], GitFileState::Conflicted);
        }
    }

    #[test]
    fn git_ignores_git_variables_and_writes_nothing() {
        let checkout = TestRepository::new(&[]);
        checkout.put("a.py", "1");
        checkout.commit();
        checkout.put("a.py", "2");
        // A file system monitor of the repository's configuration must not run.
        let ran = checkout.folder.path().join("ran");
        checkout.git(&["config", "core.fsmonitor", &format!("touch {}; false", ran.display())]);
        let index = || std::fs::read(checkout.root.join(".git/index").as_path()).unwrap();
        let before = index();
        let environment = BTreeMap::from([("GIT_DIR".to_owned(), "/nowhere".to_owned())]);
        let mut git = program();
        git = GitProgram::find(&[git.folder().to_owned()], &environment, &checkout.root, false).unwrap();
        assert_eq!(checkout.report(&["a.py"], Some(&git)).files[&path("a.py")], GitFileState::Modified);
        assert_eq!(index(), before);
        assert!(!ran.exists());
        let inside: &Path = git.folder();
        assert!(
            GitProgram::find(&[inside.to_owned()], &environment, &AbsPath::new(inside).unwrap(), false)
                .is_none()
        );
    }
}
