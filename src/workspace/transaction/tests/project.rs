//! A project in a temporary folder, its tree as data, and a hook that fails or kills the process at a system call.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::super::sys::SyscallHook;
use super::super::*;

/// A project: a folder `w` with the workspace, and next to it the user's state folder.
pub(super) struct TransactionProject {
    pub(super) folder: tempfile::TempDir,
    pub(super) root: AbsPath,
}

/// The entry at each path: `f<mode> <bytes>`, `l <target>`, `d<mode>`.
pub(super) type TreeContents = BTreeMap<String, Vec<u8>>;

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

impl TransactionProject {
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

    /// A project in git with all files committed.
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
        Transactions::new(&self.root, &self.state()).with_lock_timeout(Duration::from_millis(100))
    }

    pub(super) fn hooked(&self, hook: &Arc<impl SyscallHook + 'static>) -> Transactions {
        let mut transactions = self.transactions();
        transactions.sys.hook = Some(Arc::clone(hook) as Arc<dyn SyscallHook>);
        transactions
    }

    /// Plans, stages, applies and commits.
    pub(super) fn commit(&self, changes: Vec<Change>) -> Result<CommittedTransaction, TransactionError> {
        commit(&self.transactions(), changes)
    }

    /// The whole tree except git's folder.
    pub(super) fn tree_contents(&self) -> TreeContents {
        let mut tree_contents = TreeContents::new();
        read_tree(self.root.as_path(), "", &mut tree_contents);
        tree_contents
    }
}

pub(super) fn commit(
    transactions: &Transactions,
    changes: Vec<Change>,
) -> Result<CommittedTransaction, TransactionError> {
    transactions.plan(changes, Policy::default())?.stage(&label("test"))?.apply()?.commit()
}

fn read_tree(folder: &Path, prefix: &str, tree_contents: &mut TreeContents) {
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
            read_tree(&entry.path(), &format!("{name}/"), tree_contents);
            format!("d{mode:o}").into_bytes()
        } else {
            [format!("f{mode:o} ").into_bytes(), std::fs::read(entry.path()).unwrap()].concat()
        };
        tree_contents.insert(name, what);
    }
}

/// What happens at the chosen system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InjectedFault {
    /// The call fails with this error.
    Once(rustix::io::Errno),
    /// The call and all later ones fail.
    FromThenOn(rustix::io::Errno),
    /// The process is killed before the call.
    Kill,
}

/// Counts the system calls, and injects a fault at one of them.
#[derive(Debug)]
pub(super) struct SyscallCounter {
    count: AtomicUsize,
    at: usize,
    fault: InjectedFault,
    /// The calls with the names of their files, in order.
    pub(super) calls: Mutex<Vec<String>>,
}

impl SyscallCounter {
    /// Injects a fault at the call with this number, from 0.
    pub(super) fn with_fault(at: usize, fault: InjectedFault) -> Arc<Self> {
        Arc::new(Self { count: AtomicUsize::new(0), at, fault, calls: Mutex::default() })
    }

    /// Without a fault.
    pub(super) fn without_fault() -> Arc<Self> {
        Self::with_fault(usize::MAX, InjectedFault::Kill)
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

impl SyscallHook for SyscallCounter {
    fn before(&self, call: &'static str, name: &str) -> io::Result<()> {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        self.calls.lock().unwrap().push(format!("{call} {name}"));
        match self.fault {
            InjectedFault::Kill if number == self.at => {
                let own = rustix::process::getpid();
                rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
                unreachable!("the process was killed");
            }
            InjectedFault::Once(error) if number == self.at => Err(error.into()),
            InjectedFault::FromThenOn(error) if number >= self.at => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Forty files and changes of every kind for them.
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
