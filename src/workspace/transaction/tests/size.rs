//! A transaction of ten thousand files.

use std::time::Instant;

use super::super::*;
use super::project::{TransactionProject, label, rename, write};

#[test]
fn ten_thousand_files() {
    let project = TransactionProject::new(&[]);
    let at = |n: usize| format!("pkg{}/sub{}/m{n}.py", n % 40, n % 400);
    let text = |n: usize| format!("x = {n}\n").repeat(100);
    for n in 0..10_000 {
        project.put(&at(n), &text(n));
    }
    let old = project.tree_contents();
    let changes: Vec<Change> = (0..10_000)
        .map(|n| match n % 10 {
            0 => rename(&at(n), &format!("moved/{}", at(n)), &text(n), None),
            _ => write(&at(n), &text(n), &text(n + 1)),
        })
        .collect();
    let began = Instant::now();
    let transactions = project.transactions();
    let plan = transactions.plan(changes, Policy::default()).unwrap();
    let planned = began.elapsed();
    let staged = plan.stage(&label("many")).unwrap();
    let staged_after = began.elapsed();
    let applied = staged.apply().unwrap();
    let applied_after = began.elapsed();
    applied.commit().unwrap();
    println!(
        "planned {planned:?}, staged {staged_after:?}, applied {applied_after:?}, committed {:?}",
        began.elapsed()
    );
    assert_ne!(project.tree_contents(), old);
    let began = Instant::now();
    let undone = transactions.undo(None, &label("undo"), Policy::default()).unwrap();
    println!("undone {:?}", began.elapsed());
    assert_eq!(undone.files.len(), 11_000);
    assert_eq!(project.tree_contents(), old);
}
