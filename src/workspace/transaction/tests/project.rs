//! A project in a temporary folder, its tree as data, and a watch that stops or fails at a system call.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::super::door::Watch;
use super::super::*;

/// A project: the folder `w` with a workspace, and beside it the user's state.
pub(super) struct Project {
    pub(super) folder: tempfile::TempDir,
    pub(super) root: AbsPath,
}

/// What is under a path: `f<mode> <bytes>`, `l <target>`, `d<mode>`.
pub(super) type Picture = BTreeMap<String, Vec<u8>>;

pub(super) fn path(path: &str) -> WorkspacePath {
    WorkspacePath::new(path).unwrap()
}

pub(super) fn label(what: &str) -> Label {
    Label { what: what.to_owned(), time: 1_700_000_000 }
}

pub(super) fn write(at: &str, before: &str, after: &str) -> Change {
    let before = Some(Digest::of(before.as_bytes()));
    Change::Write { path: path(at), before, content: after.into(), executable: None }
}

pub(super) fn create(at: &str, content: &str) -> Change {
    Change::Write { path: path(at), before: None, content: content.into(), executable: None }
}

pub(super) fn delete(at: &str, before: &str) -> Change {
    Change::Delete { path: path(at), before: Digest::of(before.as_bytes()) }
}

pub(super) fn rename(from: &str, to: &str, before: &str, after: Option<&str>) -> Change {
    let content = after.map(|content| content.into());
    let before = Digest::of(before.as_bytes());
    Change::Move { from: path(from), to: path(to), before, content, executable: None }
}

impl Project {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        Self::at(tempfile::tempdir().unwrap(), files)
    }

    pub(super) fn at(folder: tempfile::TempDir, files: &[(&str, &str)]) -> Self {
        let root = AbsPath::new(folder.path().canonicalize().unwrap().join("w")).unwrap();
        std::fs::create_dir(root.as_path()).unwrap();
        let project = Self { folder, root };
        for (path, text) in files {
            project.put(path, text);
        }
        project
    }

    /// With git, and everything committed.
    pub(super) fn with_git(files: &[(&str, &str)]) -> Self {
        let project = Self::new(files);
        project.git(&["init", "-q"]);
        project.git(&["add", "-A"]);
        project.git(&["commit", "-qm", "all"]);
        project
    }

    pub(super) fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
        let out = command.args(args).current_dir(self.root.as_path()).output().unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().as_path()).unwrap();
        std::fs::write(path.as_path(), text).unwrap();
    }

    pub(super) fn chmod(&self, path: &str, mode: u32) {
        let path = self.root.join(path);
        std::fs::set_permissions(path.as_path(), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(super) fn link(&self, path: &str, target: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().as_path()).unwrap();
        std::os::unix::fs::symlink(target, path.as_path()).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path).as_path()).unwrap()
    }

    pub(super) fn state(&self) -> AbsPath {
        AbsPath::new(self.folder.path()).unwrap().join("state")
    }

    pub(super) fn transactions(&self) -> Transactions {
        Transactions::new(&self.root, &self.state()).with_patience(Duration::from_millis(100))
    }

    pub(super) fn watched(&self, watch: &Arc<impl Watch + 'static>) -> Transactions {
        let mut transactions = self.transactions();
        transactions.door.watch = Some(Arc::clone(watch) as Arc<dyn Watch>);
        transactions
    }

    /// Plans, stages, applies and keeps.
    pub(super) fn make(&self, changes: Vec<Change>) -> Result<Done, TransactionError> {
        make(&self.transactions(), changes)
    }

    /// The whole tree but git's folder.
    pub(super) fn picture(&self) -> Picture {
        let mut picture = Picture::new();
        look(self.root.as_path(), "", &mut picture);
        picture
    }
}

pub(super) fn make(transactions: &Transactions, changes: Vec<Change>) -> Result<Done, TransactionError> {
    transactions.plan(changes, Policy::default())?.stage(&label("test"))?.apply()?.keep()
}

fn look(folder: &Path, prefix: &str, picture: &mut Picture) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if name == ".git" {
            continue;
        }
        let metadata = entry.metadata().unwrap();
        let mode = metadata.mode() & 0o7777;
        let what = if metadata.is_symlink() {
            format!("l {}", std::fs::read_link(entry.path()).unwrap().display()).into_bytes()
        } else if metadata.is_dir() {
            look(&entry.path(), &format!("{name}/"), picture);
            format!("d{mode:o}").into_bytes()
        } else {
            [format!("f{mode:o} ").into_bytes(), std::fs::read(entry.path()).unwrap()].concat()
        };
        picture.insert(name, what);
    }
}

/// What a watch does at its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// That call fails with this number.
    Once(rustix::io::Errno),
    /// That call fails and all that follow.
    FromThenOn(rustix::io::Errno),
    /// The process is killed before it.
    Kill,
}

/// Counts the calls, and makes trouble at one of them.
#[derive(Debug)]
pub(super) struct Count {
    made: AtomicUsize,
    at: usize,
    trouble: Trouble,
    /// The calls by name, for who looks at the order.
    pub(super) calls: Mutex<Vec<String>>,
}

impl Count {
    /// Trouble at the call with this number, from 0.
    pub(super) fn to(at: usize, trouble: Trouble) -> Arc<Self> {
        Arc::new(Self { made: AtomicUsize::new(0), at, trouble, calls: Mutex::default() })
    }

    /// No trouble.
    pub(super) fn only() -> Arc<Self> {
        Self::to(usize::MAX, Trouble::Kill)
    }

    pub(super) fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }
}

impl Watch for Count {
    fn before(&self, call: &'static str, name: &str) -> io::Result<()> {
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        self.calls.lock().unwrap().push(format!("{call} {name}"));
        match self.trouble {
            Trouble::Kill if number == self.at => {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
                unreachable!("because it was killed");
            }
            Trouble::Once(error) if number == self.at => Err(error.into()),
            Trouble::FromThenOn(error) if number >= self.at => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Forty files to be changed in every way, the changes, and what they make of it.
pub(super) fn forty() -> (Vec<(String, String)>, Vec<Change>) {
    let mut files = Vec::new();
    let mut changes = Vec::new();
    for n in 0..40 {
        let (folder, old) = (n % 7, format!("# old {n}\r\nx = {n}\n"));
        let (at, new) = (format!("pkg{folder}/m{n}.py"), format!("# new {n}\r\nyy = {n}"));
        match n % 8 {
            0..5 => changes.push(write(&at, &old, &new)),
            5 => changes.push(rename(&at, &format!("moved/sub{folder}/m{n}.py"), &old, Some(&new))),
            6 => changes.push(delete(&at, &old)),
            _ => {
                changes.push(create(&at, &new));
                continue;
            }
        }
        files.push((at, old));
    }
    files.push(("gone/deep/only.py".to_owned(), "1".to_owned()));
    changes.push(rename("gone/deep/only.py", "m.py", "1", None));
    files.push(("untouched.py".to_owned(), "u".to_owned()));
    (files, changes)
}
