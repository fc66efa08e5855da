//! SIGKILL before every system call of an apply of forty files, of what undoes it, and of what recovers from that; and at
//! moments that nobody chose.
//!
//! The process that is killed is this test binary, called again for the one test that plays it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::*;
use super::project::{Count, Picture, Project, Trouble, forty, label, make};

const SELF: &str = "workspace::transaction::tests::kill::the_process_that_is_killed";

/// What the process does before it is killed.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Keep,
    RollBack,
    Undo,
    Recover,
}

impl Deed {
    const ALL: [Self; 4] = [Self::Keep, Self::RollBack, Self::Undo, Self::Recover];

    fn to(self, transactions: &Transactions) {
        let (_, changes) = forty();
        match self {
            Self::Keep => drop(make(transactions, changes).unwrap()),
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

/// Not a test of its own: what [`killed`] starts.
#[test]
#[ignore = "played by the tests beside it"]
fn the_process_that_is_killed() {
    #[expect(clippy::disallowed_methods, reason = "the test that starts this one speaks through it")]
    let words = std::env::var("LANSER_TEST_KILLED").unwrap();
    let mut words = words.split('|');
    let root = AbsPath::new(words.next().unwrap()).unwrap();
    let deed = Deed::ALL[words.next().unwrap().parse::<usize>().unwrap()];
    let at = words.next().unwrap().parse().unwrap();
    let count = Count::to(at, Trouble::Kill);
    let mut transactions = Transactions::new(&root, &root.join("../state"));
    transactions.door.watch = Some(count);
    deed.to(&transactions);
}

fn process(project: &Project, deed: Deed, at: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([SELF, "--exact", "--ignored", "--test-threads=1"]);
    let words = format!("{}|{}|{at}", project.root, deed as usize);
    command
        .env("LANSER_TEST_KILLED", words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Starts the process, which is killed before its call number `at`; false when it came to its end before.
fn killed(project: &Project, deed: Deed, at: usize) -> bool {
    let out = process(project, deed, at).output().unwrap();
    let killed = out.status.signal() == Some(9);
    assert!(killed || out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    killed
}

fn project() -> Project {
    // Killing loses nothing that was written, so the disk need not be a slow one.
    let fast = std::path::Path::new("/dev/shm");
    let folder = if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() };
    let (files, _) = forty();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let project = Project::at(folder.unwrap(), &files);
    project.git(&["init", "-q"]);
    project.git(&["add", "-A"]);
    project.git(&["commit", "-qm", "all"]);
    project
}

/// The tree after, and how git tells of it.
fn states() -> ((Picture, String), (Picture, String)) {
    let project = project();
    let status = || project.git(&["status", "--porcelain", "--ignored", "-uall"]);
    let old = (project.picture(), status());
    Deed::Keep.to(&project.transactions());
    (old, (project.picture(), status()))
}

/// Recovers, and says whether the tree is the new one.
fn is_new(project: &Project, old: &(Picture, String), new: &(Picture, String), at: usize) -> bool {
    let transactions = project.transactions();
    transactions.recover().unwrap();
    assert_eq!(transactions.recover().unwrap(), Recovery::Nothing);
    let picture = project.picture();
    let is_new = picture == new.0;
    assert!(is_new || picture == old.0, "killed before call {at}: a mix: {:?}", picture.keys());
    let status = project.git(&["status", "--porcelain", "--ignored", "-uall"]);
    assert_eq!(status, if is_new { &new.1 } else { &old.1 }.as_str(), "killed before call {at}");
    is_new
}

/// The numbers of the system calls of a deed, made on a project of its own, from the first that writes more than the lock.
fn calls(project: &Project, deed: Deed) -> std::ops::Range<usize> {
    let count = Count::only();
    deed.to(&project.watched(&count));
    let calls = count.calls.lock().unwrap();
    let first = match deed {
        // The way there is that of `Keep`.
        Deed::RollBack => calls.iter().position(|call| call.starts_with("renameat2")).unwrap(),
        Deed::Keep | Deed::Undo => calls.iter().position(|call| call == "mkdirat new").unwrap(),
        Deed::Recover => 0,
    };
    first..calls.len()
}

/// How many calls less a deed may need on a project that was used before.
const SPARED: usize = 16;

/// Kills a deed before each of its calls. `prepare` makes the project ready for it.
fn kill_at_each_call(deed: Deed, prepare: impl Fn(&Project) + Sync, backwards: bool) {
    let (old, new) = states();
    let example = project();
    prepare(&example);
    let calls = calls(&example, deed);
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
                    if !killed(&project, deed, at) {
                        // A project that was used before has folders that need not be made again.
                        assert!(at + SPARED > calls.end, "call {at} of {calls:?} was not made");
                        project = self::project();
                        prepare(&project);
                        continue;
                    }
                    if is_new(&project, &old, &new, at) == backwards {
                        to_old.fetch_add(1, Ordering::SeqCst);
                        // It is as it was before, and can be used again.
                        if matches!(deed, Deed::Recover) {
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
    println!("{deed:?}: {} stops, {to_old:?} taken back, {to_new:?} finished", calls.len());
}

#[test]
fn an_apply_killed_anywhere_is_all_or_nothing() {
    kill_at_each_call(Deed::Keep, |_| {}, false);
}

#[test]
fn a_roll_back_killed_anywhere_is_all_or_nothing() {
    kill_at_each_call(Deed::RollBack, |_| {}, false);
}

#[test]
fn an_undo_killed_anywhere_is_all_or_nothing() {
    kill_at_each_call(Deed::Undo, |project| Deed::Keep.to(&project.transactions()), true);
}

/// Kills an apply before its call `at`, so that there is something to recover.
fn interrupt(project: &Project, at: usize) {
    assert!(killed(project, Deed::Keep, at));
    assert!(Store::is_busy(project.transactions().home.place()), "call {at} leaves nothing to recover");
}

/// The number of the first call of an apply that is this.
fn number_of(call: &str) -> usize {
    let project = project();
    let count = Count::only();
    Deed::Keep.to(&project.watched(&count));
    let calls = count.calls.lock().unwrap();
    calls.iter().position(|made| made.starts_with(call)).unwrap()
}

#[test]
fn a_recovery_killed_anywhere_is_recovered() {
    // Some files are exchanged and some are not.
    let first = number_of("renameat2 exchange");
    kill_at_each_call(Deed::Recover, |project| interrupt(project, first + 60), false);
}

#[test]
fn clearing_up_killed_anywhere_goes_on() {
    let decided = number_of("renameat closing");
    kill_at_each_call(Deed::Recover, |project| interrupt(project, decided + 1), true);
}

#[test]
fn killed_at_any_time() {
    let (old, new) = states();
    let mut project = project();
    // The length of a run, to kill within it.
    let began = std::time::Instant::now();
    assert!(!killed(&project, Deed::Keep, usize::MAX));
    let length = began.elapsed();
    project = self::project();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let (mut stopped, mut done) = (0, 0);
    for _ in 0..200 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut child = process(&project, Deed::Keep, usize::MAX).spawn().unwrap();
        std::thread::sleep(length * u32::try_from(seed % 1000).unwrap() / 1000);
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
fn of_two_processes_at_once_one_makes_the_change() {
    let (_, new) = states();
    for _ in 0..10 {
        let project = project();
        let both = [(); 2].map(|()| process(&project, Deed::Keep, usize::MAX).spawn().unwrap());
        let outputs = both.map(|child| child.wait_with_output().unwrap());
        let made = outputs.iter().filter(|output| output.status.success()).count();
        assert_eq!(made, 1, "{outputs:?}");
        assert_eq!(project.picture(), new.0);
        assert_eq!(project.transactions().list().unwrap().len(), 1);
    }
}
