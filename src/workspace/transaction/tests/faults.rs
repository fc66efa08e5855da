//! Every system call of a transaction fails, in turn and for good.

use rustix::io::Errno;

use super::super::*;
use super::project::{Count, Picture, Project, Trouble, forty, label, make, path, write};

const ERRORS: [Errno; 6] = [Errno::NOSPC, Errno::ACCESS, Errno::IO, Errno::ROFS, Errno::DQUOT, Errno::XDEV];

/// Fewer files than forty, of the same kinds.
fn few() -> (Project, Vec<Change>, Picture, Picture) {
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
    let project = Project::new(&files);
    let old = project.picture();
    let done = project.make(changes.clone()).unwrap();
    let new = project.picture();
    assert_ne!(old, new);
    project.transactions().undo(Some(&done.id), &label("undo"), Policy::default()).unwrap();
    assert_eq!(project.picture(), old);
    (project, changes, old, new)
}

fn back(project: &Project) {
    project.transactions().undo(None, &label("undo"), Policy::default()).unwrap();
}

/// Removes all journals, so that each transaction begins with the same calls: by making their folder.
fn forget(project: &Project) {
    let _ = std::fs::remove_dir_all(project.state().as_path());
}

#[test]
fn a_call_that_fails_once_changes_nothing() {
    let (project, changes, old, new) = few();
    let mut refused = 0;
    for at in 0.. {
        forget(&project);
        let count = Count::to(at, Trouble::Once(ERRORS[at % ERRORS.len()]));
        let result = make(&project.watched(&count), changes.clone());
        if count.made() <= at {
            result.unwrap();
            break;
        }
        let call = count.calls.lock().unwrap()[at].clone();
        match result {
            Err(error) => {
                refused += 1;
                assert!(
                    matches!(error.class(), Class::Permissions | Class::ContentModified),
                    "{call}: {error}"
                );
                assert!(!matches!(error, TransactionError::HalfDone { .. }), "{call}: {error}");
                assert_eq!(project.picture(), old, "{call}: {error}");
                assert_eq!(project.transactions().recover().unwrap(), Recovery::Nothing, "{call}: {error}");
            }
            // It was decided already, or nothing depends on the call.
            Ok(done) => {
                project.transactions().recover().unwrap();
                assert_eq!(project.picture(), new, "{call}: {done:?}");
                back(&project);
            }
        }
    }
    println!("{refused} refused");
    assert!(refused > 100);
}

#[test]
fn a_disk_that_fails_for_good_is_recovered_from_when_it_is_back() {
    let (project, changes, old, new) = few();
    let mut half_done = 0;
    for at in 0.. {
        forget(&project);
        let count = Count::to(at, Trouble::FromThenOn(ERRORS[at % ERRORS.len()]));
        let result = make(&project.watched(&count), changes.clone());
        if count.made() <= at {
            result.unwrap();
            break;
        }
        half_done += usize::from(matches!(result, Err(TransactionError::HalfDone { .. })));
        project.transactions().recover().unwrap();
        let picture = project.picture();
        match result {
            Err(error) => assert_eq!(picture, old, "call {at}: {error}"),
            Ok(_) => {
                assert_eq!(picture, new, "call {at}");
                back(&project);
            }
        }
    }
    assert!(half_done > 20);
}

#[test]
fn an_undo_that_fails_changes_nothing() {
    let (project, changes, old, new) = few();
    forget(&project);
    project.make(changes.clone()).unwrap();
    for at in 0.. {
        let count = Count::to(at, Trouble::Once(ERRORS[at % ERRORS.len()]));
        let result = project.watched(&count).undo(None, &label("undo"), Policy::default());
        if count.made() <= at {
            result.unwrap();
            break;
        }
        project.transactions().recover().unwrap();
        if result.is_err() {
            assert_eq!(project.picture(), new, "call {at}");
        } else {
            assert_eq!(project.picture(), old, "call {at}");
            forget(&project);
            project.make(changes.clone()).unwrap();
        }
    }
    assert_eq!(project.picture(), old);
}

/// A file system that can neither exchange nor rename without replacing, as some sandboxes and network disks.
#[test]
fn where_names_cannot_be_exchanged_it_is_all_the_same() {
    struct Plain(std::sync::Arc<Count>);
    impl door::Watch for Plain {
        fn before(&self, call: &'static str, name: &str) -> std::io::Result<()> {
            self.0.before(call, name)?;
            if call.starts_with("renameat2") { Err(Errno::INVAL.into()) } else { Ok(()) }
        }
    }
    let (project, changes, old, new) = few();
    for at in 0.. {
        forget(&project);
        let count = Count::to(at, Trouble::FromThenOn(Errno::IO));
        let plain = std::sync::Arc::new(Plain(std::sync::Arc::clone(&count)));
        let result = make(&project.watched(&plain), changes.clone());
        if count.made() <= at {
            result.unwrap();
            break;
        }
        project.transactions().recover().unwrap();
        assert_eq!(project.picture(), if result.is_err() { &old } else { &new }.clone(), "call {at}");
        if result.is_ok() {
            back(&project);
        }
    }
    assert_eq!(project.picture(), new);
}

#[test]
fn an_error_says_what_happened_to_which_file() {
    let project = Project::new(&[("pkg/a.py", "1")]);
    let changes = vec![write("pkg/a.py", "1", "2")];
    // The first one makes the folder of journals.
    project.make(changes.clone()).unwrap();
    back(&project);
    let only = Count::only();
    let transactions = project.watched(&only);
    let plan = transactions.plan(changes.clone(), Policy::default()).unwrap();
    assert_eq!(plan.files(), [path("pkg/a.py")]);
    drop(plan);
    let counted = only.made();
    let all = Count::only();
    make(&project.watched(&all), changes.clone()).unwrap();
    back(&project);
    let calls = all.calls.lock().unwrap();
    let at = calls.iter().position(|call| call.starts_with("creat .lanser-")).unwrap();
    assert!(at > counted);
    let error = make(&project.watched(&Count::to(at, Trouble::Once(Errno::NOSPC))), changes).unwrap_err();
    assert_eq!(error.to_string(), "cannot write pkg/a.py: No space left on device");
}
