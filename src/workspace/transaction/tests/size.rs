//! Ten thousand files at once.

use std::time::Instant;

use super::super::*;
use super::project::{Project, label, rename, write};

#[test]
fn ten_thousand_files() {
    let project = Project::new(&[]);
    let at = |n: usize| format!("pkg{}/sub{}/m{n}.py", n % 40, n % 400);
    let text = |n: usize| format!("x = {n}\n").repeat(100);
    for n in 0..10_000 {
        project.put(&at(n), &text(n));
    }
    let old = project.picture();
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
    let staged_at = began.elapsed();
    let applied = staged.apply().unwrap();
    let applied_at = began.elapsed();
    applied.keep().unwrap();
    println!("planned {planned:?}, staged {staged_at:?}, applied {applied_at:?}, kept {:?}", began.elapsed());
    assert_ne!(project.picture(), old);
    let began = Instant::now();
    let undone = transactions.undo(None, &label("undo"), Policy::default()).unwrap();
    println!("undone {:?}", began.elapsed());
    assert_eq!(undone.files.len(), 11_000);
    assert_eq!(project.picture(), old);
}
