//! Every system call of a transaction fails, once or permanently.

use rustix::io::Errno;

use super::super::*;
use super::project::{
    InjectedFault, SyscallCounter, TransactionProject, TreeContents, commit, forty, label, path, write,
};

const ERRORS: [Errno; 6] = [Errno::NOSPC, Errno::ACCESS, Errno::IO, Errno::ROFS, Errno::DQUOT, Errno::XDEV];

/// Fewer than forty files, with changes of the same kinds.
fn few() -> (TransactionProject, Vec<Change>, TreeContents, TreeContents) {
    let (files, changes) = forty();
    let wanted = |path: &WorkspacePath| {
        let number: String = path.as_str().rsplit('m').next().unwrap_or_default().to_owned();
        number.trim_end_matches(".py").parse::<u32>().map_or(true, |n| n < 8)
    };
    let changes: Vec<Change> = changes
        .into_iter()
        .filter(|change| match change {
            Change::Write { path, .. } | Change::Delete { path, .. } => wanted(path),
            Change::Move { from, .. } => wanted(from),
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let project = TransactionProject::new(&files);
    let old = project.tree_contents();
    let done = project.commit(changes.clone()).unwrap();
    let new = project.tree_contents();
    assert_ne!(old, new);
    project.transactions().undo(Some(&done.id), &label("undo"), Policy::default()).unwrap();
    assert_eq!(project.tree_contents(), old);
    (project, changes, old, new)
}

fn undo(project: &TransactionProject) {
    project.transactions().undo(None, &label("undo"), Policy::default()).unwrap();
}

/// Removes all journals, so that each transaction begins with the same calls, which create their folder.
fn remove_journals(project: &TransactionProject) {
    let _ = std::fs::remove_dir_all(project.state().as_path());
}

#[test]
fn a_call_that_fails_once_changes_nothing() {
    let (project, changes, old, new) = few();
    let mut refused = 0;
    for at in 0.. {
        remove_journals(&project);
        let counter = SyscallCounter::with_fault(at, InjectedFault::Once(ERRORS[at % ERRORS.len()]));
        let result = commit(&project.hooked(&counter), changes.clone());
        if counter.count() <= at {
            result.unwrap();
            break;
        }
        let call = counter.calls.lock().unwrap()[at].clone();
        match result {
            Err(error) => {
                refused += 1;
                assert!(
                    matches!(error.class(), FailureClass::Permissions | FailureClass::ContentModified),
                    "{call}: {error}"
                );
                assert!(!matches!(error, TransactionError::HalfDone { .. }), "{call}: {error}");
                assert_eq!(project.tree_contents(), old, "{call}: {error}");
                assert_eq!(project.transactions().recover().unwrap(), Recovery::Nothing, "{call}: {error}");
            }
            // It was already committed, or the call is not essential.
            Ok(done) => {
                project.transactions().recover().unwrap();
                assert_eq!(project.tree_contents(), new, "{call}: {done:?}");
                undo(&project);
            }
        }
    }
    println!("{refused} refused");
    assert!(refused > 100);
}

#[test]
fn a_permanent_disk_failure_is_recovered_from_later() {
    let (project, changes, old, new) = few();
    let mut half_done = 0;
    for at in 0.. {
        remove_journals(&project);
        let counter = SyscallCounter::with_fault(at, InjectedFault::FromThenOn(ERRORS[at % ERRORS.len()]));
        let result = commit(&project.hooked(&counter), changes.clone());
        if counter.count() <= at {
            result.unwrap();
            break;
        }
        half_done += usize::from(matches!(result, Err(TransactionError::HalfDone { .. })));
        project.transactions().recover().unwrap();
        let tree_contents = project.tree_contents();
        match result {
            Err(error) => assert_eq!(tree_contents, old, "call {at}: {error}"),
            Ok(_) => {
                assert_eq!(tree_contents, new, "call {at}");
                undo(&project);
            }
        }
    }
    assert!(half_done > 20);
}

#[test]
fn an_undo_that_fails_changes_nothing() {
    let (project, changes, old, new) = few();
    remove_journals(&project);
    project.commit(changes.clone()).unwrap();
    for at in 0.. {
        let counter = SyscallCounter::with_fault(at, InjectedFault::Once(ERRORS[at % ERRORS.len()]));
        let result = project.hooked(&counter).undo(None, &label("undo"), Policy::default());
        if counter.count() <= at {
            result.unwrap();
            break;
        }
        project.transactions().recover().unwrap();
        if result.is_err() {
            assert_eq!(project.tree_contents(), new, "call {at}");
        } else {
            assert_eq!(project.tree_contents(), old, "call {at}");
            remove_journals(&project);
            project.commit(changes.clone()).unwrap();
        }
    }
    assert_eq!(project.tree_contents(), old);
}

/// A file system without `renameat2`, as in some sandboxes and on network disks.
#[test]
fn transactions_are_atomic_without_renameat2() {
    struct NoRenameat2(std::sync::Arc<SyscallCounter>);
    impl sys::SyscallHook for NoRenameat2 {
        fn before(&self, call: &'static str, name: &str) -> std::io::Result<()> {
            self.0.before(call, name)?;
            if call.starts_with("renameat2") { Err(Errno::INVAL.into()) } else { Ok(()) }
        }
    }
    let (project, changes, old, new) = few();
    for at in 0.. {
        remove_journals(&project);
        let counter = SyscallCounter::with_fault(at, InjectedFault::FromThenOn(Errno::IO));
        let plain = std::sync::Arc::new(NoRenameat2(std::sync::Arc::clone(&counter)));
        let result = commit(&project.hooked(&plain), changes.clone());
        if counter.count() <= at {
            result.unwrap();
            break;
        }
        project.transactions().recover().unwrap();
        assert_eq!(project.tree_contents(), if result.is_err() { &old } else { &new }.clone(), "call {at}");
        if result.is_ok() {
            undo(&project);
        }
    }
    assert_eq!(project.tree_contents(), new);
}

#[test]
fn an_error_names_the_operation_and_the_file() {
    let project = TransactionProject::new(&[("pkg/a.py", "1")]);
    let changes = vec![write("pkg/a.py", "1", "2")];
    // The first transaction creates the folder of journals.
    project.commit(changes.clone()).unwrap();
    undo(&project);
    let only = SyscallCounter::without_fault();
    let transactions = project.hooked(&only);
    let plan = transactions.plan(changes.clone(), Policy::default()).unwrap();
    assert_eq!(plan.files(), [path("pkg/a.py")]);
    drop(plan);
    let counted = only.count();
    let all = SyscallCounter::without_fault();
    commit(&project.hooked(&all), changes.clone()).unwrap();
    undo(&project);
    let calls = all.calls.lock().unwrap();
    let at = calls.iter().position(|call| call.starts_with("creat .lanser-")).unwrap();
    assert!(at > counted);
    let error =
        commit(&project.hooked(&SyscallCounter::with_fault(at, InjectedFault::Once(Errno::NOSPC))), changes)
            .unwrap_err();
    assert_eq!(error.to_string(), "cannot write pkg/a.py: No space left on device");
}
