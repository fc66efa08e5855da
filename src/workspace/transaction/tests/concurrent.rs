//! Concurrent transactions.

use std::time::Instant;

use super::super::*;
use super::project::{TransactionProject, create, label, path, write};

#[test]
fn a_waiting_process_gets_the_pid_of_the_lock_holder() {
    let project = TransactionProject::new(&[("a.py", "1")]);
    let transactions = project.transactions();
    let staged = transactions.plan(vec![write("a.py", "1", "2")], Policy::default()).unwrap();
    let staged = staged.stage(&label("one")).unwrap();
    let began = Instant::now();
    let other = project.commit(vec![create("b.py", "")]).unwrap_err();
    assert!(began.elapsed() >= Duration::from_millis(100));
    assert_eq!(other, TransactionError::Busy { pid: Some(std::process::id()) });
    assert_eq!(other.class(), FailureClass::ContentModified);
    assert_eq!(project.transactions().recover().unwrap(), Recovery::UnderWay);
    staged.apply().unwrap().commit().unwrap();
    project.commit(vec![create("b.py", "")]).unwrap();
    assert_eq!(project.read("a.py"), "2");
}

#[test]
fn concurrent_transactions_never_mix() {
    let files: Vec<String> = (0..10).map(|n| format!("m{n}.py")).collect();
    let texts: Vec<(&str, &str)> = files.iter().map(|file| (file.as_str(), "start")).collect();
    let project = TransactionProject::new(&texts);
    let transactions = project.transactions().with_lock_timeout(Duration::from_secs(60));
    let committed: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|worker| {
                let (transactions, files, project) = (&transactions, &files, &project);
                scope.spawn(move || {
                    let mut committed = 0;
                    for round in 0..8 {
                        let changes = files
                            .iter()
                            .map(|file| Change::Write {
                                path: path(file),
                                before: Some(Digest::of(project.read(file).as_bytes())),
                                content: format!("{worker} {round}").into_bytes(),
                                executable: None,
                            })
                            .collect();
                        match super::project::commit(transactions, changes) {
                            Ok(_) => committed += 1,
                            Err(TransactionError::Changed { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    committed
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let first = project.read("m0.py");
    assert!(files.iter().all(|file| project.read(file) == first));
    assert_eq!(project.tree_contents().len(), 10);
    assert_eq!(transactions.list().unwrap().len(), committed);
    assert!(committed > 0);
}
