//! What git says of files before they are edited: which are clean, and what is dirty elsewhere.
//!
//! libgit2 is asked first. Where it finds everything clean, that is the answer. Where it does not, or refuses (it reads no
//! reftable, no SHA-256, no sparse and no split index, and takes clean files behind a filter for modified), the `git` program
//! decides. What nobody can tell is told as such, and is not clean.

use std::collections::{BTreeMap, BTreeSet};

use git2::{Repository, Status, StatusOptions};
use serde::{Deserialize, Serialize};

use super::Worktree;
use super::program::GitProgram;
use crate::path::{AbsPath, WorkspacePath};

/// What git says of the files of one edit.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub enum GitState {
    /// None of the files is in a git worktree.
    NoRepository,
    /// It says this.
    Known(Report),
    /// It cannot be had, for this reason. Nothing counts as clean.
    Unknown(String),
}

/// What git says.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The files that were asked about. A link is what it leads to.
    pub files: BTreeMap<WorkspacePath, FileState>,
    /// Everything else in their worktrees that is not clean; paths relative to the worktree, `/` at the end of a folder.
    pub elsewhere: BTreeMap<String, FileState>,
    /// Whether a repository's own configuration names filters that were not run, so that a file behind one counts as
    /// modified.
    #[serde(default)]
    pub has_filters: bool,
}

/// What git says of one file.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Git was told not to look at it (`assume-unchanged`, `skip-worktree`): what is in it, it does not know.
    Unwatched,
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

/// The dirt of a worktree by path, and which of the paths asked about are ignored, and not looked at.
#[derive(Debug, Default)]
struct Dirt {
    dirty: BTreeMap<String, FileState>,
    ignored: BTreeSet<String>,
    unwatched: BTreeSet<String>,
    /// Whether the repository names filters that were not run.
    has_filters: bool,
}

/// The marks of an entry of git's index: "assume unchanged" among its flags, "skip the worktree" among the extended.
const ASSUME_UNCHANGED: u16 = 0x8000;
const SKIP_WORKTREE: u16 = 0x4000;

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
                None if dirt.unwatched.contains(inside) => FileState::Unwatched,
                None => FileState::Clean,
            };
            report.files.extend(named.iter().map(|path| ((*path).clone(), state)));
        }
        report.has_filters |= dirt.has_filters;
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
    if let Ok(repository) = Repository::open(top.as_path())
        && repository.workdir().is_some_and(|named| real_folder(named).as_ref() != Some(top))
    {
        // What it says would be said of other files.
        return Err("the repository's configuration names another work tree".to_owned());
    }
    let by_library = by_library(top, paths).map_err(|error| error.message().to_owned());
    if by_library.as_ref().is_ok_and(|dirt| dirt.dirty.is_empty() && dirt.ignored.is_empty()) {
        return by_library;
    }
    let Some(program) = program else { return by_library };
    by_program(top, paths, program).or_else(|words| by_library.map_err(|_| words))
}

fn real_folder(path: &std::path::Path) -> Option<AbsPath> {
    AbsPath::new(std::fs::canonicalize(path).ok()?).ok()
}

fn by_library(top: &AbsPath, paths: &[&str]) -> Result<Dirt, git2::Error> {
    let repository = Repository::open(top.as_path())?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
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
        match index.get_path(path.as_ref(), 0) {
            None if repository.status_should_ignore(path.as_ref())? => {
                dirt.ignored.insert((*path).to_owned());
            }
            Some(entry)
                if entry.flags & ASSUME_UNCHANGED != 0 || entry.flags_extended & SKIP_WORKTREE != 0 =>
            {
                dirt.unwatched.insert((*path).to_owned());
            }
            _ => {}
        }
    }
    Ok(dirt)
}

fn by_program(top: &AbsPath, paths: &[&str], program: &GitProgram) -> Result<Dirt, String> {
    let git = program.at(top)?;
    let args = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"];
    // A submodule has a configuration of its own; what is edited in one is asked about there.
    let args = [&args[..], &["--ignore-submodules=all"]].concat();
    let told = git.ask(&args, b"", &[0])?;
    let mut dirt = Dirt { has_filters: git.has_filters(), ..Dirt::default() };
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
        // It reads pathspecs; with this before it, a path is only a path.
        let input: String = paths.iter().map(|path| format!("./{path}\0")).collect();
        // 1 says that none is ignored.
        let told = git.ask(&["check-ignore", "-z", "--stdin"], input.as_bytes(), &[0, 1])?;
        let ignored = told.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let plain = |path| String::from_utf8_lossy(path).trim_start_matches("./").to_owned();
        dirt.ignored.extend(ignored.map(plain));
        // A small letter: assumed to be unchanged. `S`: not to be looked at.
        let told = git.ask(&["ls-files", "-v", "-z"], b"", &[0])?;
        let marked = told
            .split(|byte| *byte == 0)
            .filter(|line| line.first().is_some_and(|tag| tag.is_ascii_lowercase() || *tag == b'S'));
        let asked: BTreeSet<&str> = paths.iter().copied().collect();
        let names = marked.filter_map(|line| std::str::from_utf8(line.get(2..)?).ok());
        dirt.unwatched.extend(names.filter(|name| asked.contains(name)).map(str::to_owned));
    }
    Ok(dirt)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    struct Checkout {
        folder: tempfile::TempDir,
        root: AbsPath,
    }

    fn path(path: &str) -> WorkspacePath {
        WorkspacePath::new(path).unwrap()
    }

    fn program() -> GitProgram {
        #[expect(clippy::disallowed_methods, reason = "the tests' own git is the one that a user would have")]
        let found = std::env::var_os("PATH").unwrap();
        let folders: Vec<_> = std::env::split_paths(&found).collect();
        GitProgram::find(&folders, &BTreeMap::new(), &AbsPath::new("/nowhere").unwrap(), false).unwrap()
    }

    /// The same with this as the user's own configuration.
    fn program_of(config: &Path, trusted: bool) -> GitProgram {
        let environment = BTreeMap::from([("XDG_CONFIG_HOME".to_owned(), config.display().to_string())]);
        GitProgram::find(
            &[program().folder().to_owned()],
            &environment,
            &AbsPath::new("/nowhere").unwrap(),
            trusted,
        )
        .unwrap()
    }

    impl Checkout {
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

        fn ask(&self, files: &[&str], program: Option<&GitProgram>) -> GitState {
            state(&self.root, &files.iter().map(|file| path(file)).collect::<Vec<_>>(), program)
        }

        fn report(&self, files: &[&str], program: Option<&GitProgram>) -> Report {
            match self.ask(files, program) {
                GitState::Known(report) => report,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn every_state_a_file_can_be_in_with_and_without_the_program() {
        let checkout = Checkout::new(&[]);
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
            ("clean.py", FileState::Clean),
            ("sub/modified.py", FileState::Modified),
            ("link.py", FileState::Modified),
            ("staged.py", FileState::Modified),
            ("removed.py", FileState::Modified),
            ("new/deep/untracked.py", FileState::Untracked),
            ("ignored.log", FileState::Ignored),
            ("absent.py", FileState::Absent),
            ("nowhere/absent.py", FileState::Absent),
        ];
        let asked: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
        let git = program();
        for program in [None, Some(&git)] {
            let report = checkout.report(&asked, program);
            assert_eq!(report.files, files.iter().map(|(file, state)| (path(file), *state)).collect());
            let elsewhere: Vec<&str> = report.elsewhere.keys().map(String::as_str).collect();
            assert_eq!(elsewhere, ["link.py", "x/[*].py", "x/elsewhere é.py"]);
        }
        // A workspace below the top, and nothing asked.
        let inner = state(&checkout.root.join("sub"), &[path("modified.py")], None);
        assert!(
            matches!(inner, GitState::Known(report) if report.files[&path("modified.py")] == FileState::Modified)
        );
        assert_eq!(checkout.report(&[], None).elsewhere.len(), 7);
    }

    #[test]
    fn no_repository_is_an_answer_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        assert_eq!(state(&root, &[path("a.py")], Some(&program())), GitState::NoRepository);
    }

    #[test]
    fn what_libgit2_cannot_open_the_program_tells() {
        let git = program();
        for init in [&["--ref-format=reftable"][..], &["--object-format=sha256"][..]] {
            let checkout = Checkout::new(init);
            checkout.put("a.py", "1");
            checkout.put("b.py", "1");
            checkout.commit();
            checkout.put("b.py", "2");
            let report = checkout.report(&["a.py", "b.py"], Some(&git));
            assert_eq!(report.files[&path("a.py")], FileState::Clean, "{init:?}");
            assert_eq!(report.files[&path("b.py")], FileState::Modified, "{init:?}");
            assert!(matches!(checkout.ask(&["a.py"], None), GitState::Unknown(_)), "{init:?}");
        }
        for config in [
            &["config", "core.splitIndex", "true"][..],
            &["sparse-checkout", "set", "--sparse-index", "x"][..],
        ] {
            let checkout = Checkout::new(&[]);
            checkout.put("x/a.py", "1");
            checkout.put("y/b.py", "1");
            checkout.commit();
            checkout.git(config);
            checkout.git(&["update-index", "--refresh"]);
            checkout.put("x/a.py", "2");
            let report = checkout.report(&["x/a.py"], Some(&git));
            assert_eq!(report.files[&path("x/a.py")], FileState::Modified, "{config:?}");
            assert_eq!(report.elsewhere, BTreeMap::new(), "{config:?}");
        }
    }

    #[test]
    fn what_git_was_told_not_to_look_at_is_not_clean() {
        let git = program();
        for (init, by) in [(&[][..], None), (&[], Some(&git)), (&["--object-format=sha256"], Some(&git))] {
            for mark in ["--assume-unchanged", "--skip-worktree"] {
                let checkout = Checkout::new(init);
                checkout.put("ü/a.py", "1");
                checkout.put("b.py", "1");
                checkout.commit();
                checkout.git(&["update-index", mark, "ü/a.py"]);
                checkout.put("ü/a.py", "2");
                let report = checkout.report(&["ü/a.py", "b.py"], by);
                assert_eq!(report.files[&path("ü/a.py")], FileState::Unwatched, "{init:?} {mark}");
                assert_eq!(report.files[&path("b.py")], FileState::Clean, "{init:?} {mark}");
            }
        }
    }

    #[test]
    fn behind_a_filter_the_program_decides() {
        let checkout = Checkout::new(&[]);
        let ran = checkout.folder.path().join("ran");
        let clean = format!("touch '{}'; tr a-z A-Z", ran.display());
        checkout.git(&["config", "filter.up.clean", &clean]);
        checkout.git(&["config", "filter.up.smudge", "tr A-Z a-z"]);
        checkout.put(".gitattributes", "*.py filter=up\n");
        checkout.put("a.py", "abc\n");
        checkout.commit();
        // The same content written again: only its time is new.
        let file = std::fs::File::options().append(true).open(checkout.root.join("a.py").as_path()).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        std::fs::remove_file(&ran).unwrap();
        let config = tempfile::tempdir().unwrap();
        let of = |trusted| {
            let git = program_of(config.path(), trusted);
            checkout.report(&["a.py"], Some(&git)).files[&path("a.py")]
        };
        // A program that the repository's own configuration names is not run, whichever way it names it.
        assert_eq!((of(false), ran.exists()), (FileState::Modified, false));
        checkout.git(&["config", "filter.up.process", &format!("touch '{}'", ran.display())]);
        checkout.git(&["config", "filter.up.required", "true"]);
        assert_eq!((of(false), ran.exists()), (FileState::Modified, false));
        checkout.git(&["config", "--unset", "filter.up.process"]);
        checkout.git(&["config", "--rename-section", "filter.up", "filter.x = y.up"]);
        checkout.put(".git/more", &format!("[filter \"up\"]\nclean = \"{clean}\"\n"));
        checkout.git(&["config", "include.path", "more"]);
        // One that cannot be switched off: git is not asked.
        assert_eq!((of(false), ran.exists()), (FileState::Modified, false));
        checkout.git(&["config", "--remove-section", "filter.x = y.up"]);
        assert_eq!((of(false), ran.exists()), (FileState::Modified, false));
        // It is run when the repository is trusted, and one of the user's own always.
        assert_eq!((of(true), ran.exists()), (FileState::Clean, true));
        assert_eq!(checkout.report(&["a.py"], None).files[&path("a.py")], FileState::Modified);
        checkout.git(&["config", "--unset", "include.path"]);
        std::fs::create_dir(config.path().join("git")).unwrap();
        std::fs::write(config.path().join("git/config"), "[filter \"up\"]\nclean = tr a-z A-Z\n").unwrap();
        assert_eq!(of(false), FileState::Clean);
        checkout.put("a.py", "abcd\n");
        assert_eq!(of(false), FileState::Modified);
    }

    #[test]
    fn a_repository_that_names_another_work_tree_tells_nothing_of_this_one() {
        let checkout = Checkout::new(&[]);
        checkout.put("a.py", "1");
        checkout.put("other/a.py", "1");
        checkout.commit();
        checkout.git(&["config", "core.worktree", checkout.root.join("other").as_str()]);
        std::fs::write(checkout.root.join("a.py").as_path(), "2").unwrap();
        for program in [None, Some(&program())] {
            let said = checkout.ask(&["a.py"], program);
            assert!(matches!(&said, GitState::Unknown(why) if why.contains("another work tree")), "{said:?}");
        }
    }

    #[test]
    fn a_pipe_is_no_git_folder() {
        let checkout = Checkout::new(&[]);
        std::fs::remove_dir_all(checkout.root.join(".git").as_path()).unwrap();
        let git = checkout.root.join(".git");
        assert!(Command::new("mkfifo").arg(git.as_path()).status().unwrap().success());
        assert_eq!(Worktree::around(&checkout.root), None);
    }

    #[test]
    fn a_file_is_asked_of_the_repository_that_it_is_in() {
        let checkout = Checkout::new(&[]);
        checkout.put("a.py", "1");
        checkout.put("nested/.keep", "");
        checkout.commit();
        let inner = Checkout { root: checkout.root.join("nested"), folder: tempfile::tempdir().unwrap() };
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
        let states: Vec<FileState> = files.iter().map(|file| report.files[&path(file)]).collect();
        assert_eq!(states, [FileState::Clean, FileState::Modified, FileState::Untracked, FileState::Outside]);
    }

    #[test]
    fn an_unborn_branch_and_a_merge() {
        let checkout = Checkout::new(&["-b", "main"]);
        checkout.put("a.py", "1");
        let git = program();
        for program in [None, Some(&git)] {
            assert_eq!(checkout.report(&["a.py"], program).files[&path("a.py")], FileState::Untracked);
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
            assert_eq!(checkout.report(&["a.py"], program).files[&path("a.py")], FileState::Conflicted);
        }
    }

    #[test]
    fn the_environment_leads_to_no_other_repository_and_asking_writes_nothing() {
        let checkout = Checkout::new(&[]);
        checkout.put("a.py", "1");
        checkout.commit();
        checkout.put("a.py", "2");
        // Somebody's monitor must not run because a question was asked.
        let ran = checkout.folder.path().join("ran");
        checkout.git(&["config", "core.fsmonitor", &format!("touch {}; false", ran.display())]);
        let index = || std::fs::read(checkout.root.join(".git/index").as_path()).unwrap();
        let before = index();
        let environment = BTreeMap::from([("GIT_DIR".to_owned(), "/nowhere".to_owned())]);
        let mut git = program();
        git = GitProgram::find(&[git.folder().to_owned()], &environment, &checkout.root, false).unwrap();
        assert_eq!(checkout.report(&["a.py"], Some(&git)).files[&path("a.py")], FileState::Modified);
        assert_eq!(index(), before);
        assert!(!ran.exists());
        let inside: &Path = git.folder();
        assert!(
            GitProgram::find(&[inside.to_owned()], &environment, &AbsPath::new(inside).unwrap(), false)
                .is_none()
        );
    }
}
