//! Kills a process (SIGKILL) before every system call of applying changes to forty files, of undoing them, and of
//! recovering; and also at random times.
//!
//! The killed process is this test binary, started again for one ignored test.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::*;
use super::project::{InjectedFault, SyscallCounter, TransactionProject, TreeContents, commit, forty, label};

const SELF: &str = "workspace::transaction::tests::kill::the_process_that_is_killed";

/// What the process does before it is killed.
#[derive(Debug, Clone, Copy)]
enum ChildAction {
    Commit,
    RollBack,
    Undo,
    Recover,
}

impl ChildAction {
    const ALL: [Self; 4] = [Self::Commit, Self::RollBack, Self::Undo, Self::Recover];

    fn run(self, transactions: &Transactions) {
        let (_, changes) = forty();
        match self {
            Self::Commit => drop(commit(transactions, changes).unwrap()),
            Self::RollBack => {
                let staged = transactions.plan(changes, Policy::default()).unwrap().stage(&label("test"));
                let foreign = staged.unwrap().apply().unwrap().roll_back().unwrap();
                assert_eq!(foreign, []);
            }
            Self::Undo => drop(transactions.undo(None, &label("undo"), Policy::default()).unwrap()),
            Self::Recover => assert_ne!(transactions.recover().unwrap(), Recovery::Nothing),
        }
    }
}

/// Not a test: [`run_and_kill`] starts it.
#[test]
#[ignore = "started by the other tests of this module"]
fn the_process_that_is_killed() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test that starts this process passes its arguments in it"
    )]
    let arguments = std::env::var("LANSER_TEST_KILLED").unwrap();
    let mut arguments = arguments.split('|');
    let root = AbsPath::new(arguments.next().unwrap()).unwrap();
    let action = ChildAction::ALL[arguments.next().unwrap().parse::<usize>().unwrap()];
    let at = arguments.next().unwrap().parse().unwrap();
    let counter = SyscallCounter::with_fault(at, InjectedFault::Kill);
    let mut transactions = Transactions::new(&root, &root.join("../state"));
    transactions.sys.hook = Some(counter);
    action.run(&transactions);
}

fn process(project: &TransactionProject, action: ChildAction, at: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([SELF, "--exact", "--ignored", "--test-threads=1"]);
    let arguments = format!("{}|{}|{at}", project.root, action as usize);
    command
        .env("LANSER_TEST_KILLED", arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Starts the process, which is killed before its system call number `at`. Returns false when the process ended before.
fn run_and_kill(project: &TransactionProject, action: ChildAction, at: usize) -> bool {
    let out = process(project, action, at).output().unwrap();
    let was_killed = out.status.signal() == Some(9);
    assert!(was_killed || out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    was_killed
}

fn project() -> TransactionProject {
    // A kill does not lose written data, so a memory file system is good enough.
    let fast = std::path::Path::new("/dev/shm");
    let folder = if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() };
    let (files, _) = forty();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let project = TransactionProject::at(folder.unwrap(), &files);
    project.git(&["init", "-q"]);
    project.git(&["add", "-A"]);
    project.git(&["commit", "-qm", "all"]);
    project
}

/// The old and the new tree, each with the output of `git status`.
fn states() -> ((TreeContents, String), (TreeContents, String)) {
    let project = project();
    let status = || project.git(&["status", "--porcelain", "--ignored", "-uall"]);
    let old = (project.tree_contents(), status());
    ChildAction::Commit.run(&project.transactions());
    (old, (project.tree_contents(), status()))
}

/// Recovers, and returns whether the tree is the new one.
fn is_new(
    project: &TransactionProject,
    old: &(TreeContents, String),
    new: &(TreeContents, String),
    at: usize,
) -> bool {
    let transactions = project.transactions();
    transactions.recover().unwrap();
    assert_eq!(transactions.recover().unwrap(), Recovery::Nothing);
    let tree_contents = project.tree_contents();
    let is_new = tree_contents == new.0;
    assert!(is_new || tree_contents == old.0, "killed before call {at}: a mix: {:?}", tree_contents.keys());
    let status = project.git(&["status", "--porcelain", "--ignored", "-uall"]);
    assert_eq!(status, if is_new { &new.1 } else { &old.1 }.as_str(), "killed before call {at}");
    is_new
}

/// The range of system calls of an action on a new project, from the first one that writes more than the lock.
fn calls(project: &TransactionProject, action: ChildAction) -> std::ops::Range<usize> {
    let counter = SyscallCounter::without_fault();
    action.run(&project.hooked(&counter));
    let calls = counter.calls.lock().unwrap();
    let first = match action {
        // The calls before are the same as those of `Commit`.
        ChildAction::RollBack => calls.iter().position(|call| call.starts_with("renameat2")).unwrap(),
        ChildAction::Commit | ChildAction::Undo => {
            calls.iter().position(|call| call == "mkdirat new").unwrap()
        }
        ChildAction::Recover => 0,
    };
    first..calls.len()
}

/// An action may need up to this many calls less on a project that was used before.
const MAX_SAVED_CALLS: usize = 16;

/// Kills an action before each of its calls. `prepare` prepares the project for it. `backwards` says that the action
/// restores the old tree.
fn kill_at_each_call(action: ChildAction, prepare: impl Fn(&TransactionProject) + Sync, backwards: bool) {
    let (old, new) = states();
    let example = project();
    prepare(&example);
    let calls = calls(&example, action);
    let next = AtomicUsize::new(calls.start);
    let (to_old, to_new) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut project = project();
                prepare(&project);
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    if at >= calls.end {
                        break;
                    }
                    if !run_and_kill(&project, action, at) {
                        // A project that was used before already has some of the folders.
                        assert!(at + MAX_SAVED_CALLS > calls.end, "call {at} of {calls:?} was not made");
                        project = self::project();
                        prepare(&project);
                        continue;
                    }
                    if is_new(&project, &old, &new, at) == backwards {
                        to_old.fetch_add(1, Ordering::SeqCst);
                        // The project is unchanged and can be used again.
                        if matches!(action, ChildAction::Recover) {
                            project = self::project();
                            prepare(&project);
                        }
                    } else {
                        to_new.fetch_add(1, Ordering::SeqCst);
                        project = self::project();
                        prepare(&project);
                    }
                }
            });
        }
    });
    println!("{action:?}: {} stops, {to_old:?} taken back, {to_new:?} finished", calls.len());
}

#[test]
fn an_apply_killed_anywhere_is_all_or_nothing() {
    kill_at_each_call(ChildAction::Commit, |_| {}, false);
}

#[test]
fn a_roll_back_killed_anywhere_is_all_or_nothing() {
    kill_at_each_call(ChildAction::RollBack, |_| {}, false);
}

#[test]
fn an_undo_killed_anywhere_is_all_or_nothing() {
    kill_at_each_call(ChildAction::Undo, |project| ChildAction::Commit.run(&project.transactions()), true);
}

/// Kills an apply before its call `at`, so that there is something to recover.
fn interrupt(project: &TransactionProject, at: usize) {
    assert!(run_and_kill(project, ChildAction::Commit, at));
    assert!(
        JournalStore::is_busy(project.transactions().journal_dir.path()),
        "call {at} leaves nothing to recover"
    );
}

/// The number of the first call of a commit that starts with `call`.
fn number_of(call: &str) -> usize {
    let project = project();
    let counter = SyscallCounter::without_fault();
    ChildAction::Commit.run(&project.hooked(&counter));
    let calls = counter.calls.lock().unwrap();
    calls.iter().position(|other| other.starts_with(call)).unwrap()
}

#[test]
fn a_recovery_killed_anywhere_is_recovered() {
    // Some files are exchanged by then and some are not.
    let first = number_of("renameat2 exchange");
    kill_at_each_call(ChildAction::Recover, |project| interrupt(project, first + 60), false);
}

#[test]
fn a_cleanup_killed_anywhere_is_finished() {
    let committed = number_of("renameat closing");
    kill_at_each_call(ChildAction::Recover, |project| interrupt(project, committed + 1), true);
}

#[test]
fn killed_at_any_time() {
    let (old, new) = states();
    let mut project = project();
    // The duration of a run, to kill within it.
    let began = std::time::Instant::now();
    assert!(!run_and_kill(&project, ChildAction::Commit, usize::MAX));
    let duration = began.elapsed();
    project = self::project();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let (mut stopped, mut done) = (0, 0);
    for _ in 0..200 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut child = process(&project, ChildAction::Commit, usize::MAX).spawn().unwrap();
        std::thread::sleep(duration * u32::try_from(seed % 1000).unwrap() / 1000);
        child.kill().unwrap();
        let _ = child.wait().unwrap();
        if is_new(&project, &old, &new, 0) {
            done += 1;
            project = self::project();
        } else {
            stopped += 1;
        }
    }
    println!("{stopped} taken back, {done} done");
    assert!(stopped > 0);
}

#[test]
fn exactly_one_of_two_concurrent_processes_makes_the_change() {
    let (_, new) = states();
    for _ in 0..10 {
        let project = project();
        let both = [(); 2].map(|()| process(&project, ChildAction::Commit, usize::MAX).spawn().unwrap());
        let outputs = both.map(|child| child.wait_with_output().unwrap());
        let made = outputs.iter().filter(|output| output.status.success()).count();
        assert_eq!(made, 1, "{outputs:?}");
        assert_eq!(project.tree_contents(), new.0);
        assert_eq!(project.transactions().list().unwrap().len(), 1);
    }
}
