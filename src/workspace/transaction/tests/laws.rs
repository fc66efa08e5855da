//! Property test: undoing is the inverse of applying, on any tree.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;
use super::project::{TransactionProject, label, path};

#[derive(Debug, Clone)]
enum RandomFile {
    File(Vec<u8>, u32),
    Link(String),
}

/// Paths, some of which are below others.
fn any_path() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abc]", 1..4).prop_map(|parts| parts.join("/"))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        "(x|y|é|\r\n|\n|\u{feff}){0,12}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

fn kind() -> impl Strategy<Value = RandomFile> {
    let mode = prop_oneof![Just(0o644), Just(0o755), Just(0o600), Just(0o664), Just(0o2750), Just(0o4711)];
    prop_oneof![
        6 => (bytes(), mode).prop_map(|(bytes, mode)| RandomFile::File(bytes, mode)),
        1 => "[abc]{1,2}".prop_map(RandomFile::Link),
    ]
}

fn tree() -> impl Strategy<Value = BTreeMap<String, RandomFile>> {
    proptest::collection::btree_map(any_path(), kind(), 0..10).prop_map(|mut tree| {
        // A file cannot have entries below it.
        let all: Vec<String> = tree.keys().cloned().collect();
        tree.retain(|path, _| !all.iter().any(|other| path.starts_with(&format!("{other}/"))));
        tree
    })
}

fn create_project(tree: &BTreeMap<String, RandomFile>, modes: &[u32]) -> TransactionProject {
    let project = TransactionProject::new(&[]);
    for (path, kind) in tree {
        match kind {
            RandomFile::File(bytes, mode) => {
                project.put(path, "");
                std::fs::write(project.root.join(path).as_path(), bytes).unwrap();
                project.chmod(path, *mode);
            }
            RandomFile::Link(target) => project.link(path, target),
        }
    }
    let folders: Vec<String> = project
        .tree_contents()
        .into_iter()
        .filter(|(_, what)| what.starts_with(b"d"))
        .map(|(path, _)| path)
        .collect();
    for (folder, mode) in folders.iter().zip(modes) {
        project.chmod(folder, *mode);
    }
    project
}

/// A random change of a path.
#[derive(Debug, Clone)]
enum RandomChange {
    Write(Vec<u8>),
    Delete,
    Move(String, Option<Vec<u8>>),
}

fn random_change() -> impl Strategy<Value = RandomChange> {
    prop_oneof![
        bytes().prop_map(RandomChange::Write),
        Just(RandomChange::Delete),
        (any_path(), proptest::option::of(bytes())).prop_map(|(to, bytes)| RandomChange::Move(to, bytes)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn undoing_is_the_inverse(
        tree in tree(),
        random_changes in proptest::collection::btree_map(any_path(), random_change(), 0..6),
        modes in proptest::collection::vec(prop_oneof![Just(0o755), Just(0o700), Just(0o775)], 8),
        roll_back: bool,
    ) {
        let project = create_project(&tree, &modes);
        let read = |at: &str| std::fs::read(project.root.join(at).as_path()).ok();
        let digest = |at: &str| read(at).map(|bytes| Digest::of(&bytes));
        let changes: Vec<Change> = random_changes
            .into_iter()
            .filter_map(|(at, change)| {
                let before = digest(&at);
                Some(match change {
                    RandomChange::Write(content) => Change::Write { path: path(&at), before, content, executable: None },
                    RandomChange::Delete => Change::Delete { path: path(&at), before: before? },
                    RandomChange::Move(to, content) => {
                        Change::Move { from: path(&at), to: path(&to), before: before?, content, executable: None }
                    }
                })
            })
            .collect();
        let old = project.tree_contents();
        let transactions = project.transactions();
        let staged = transactions.plan(changes, Policy::default()).and_then(|plan| plan.stage(&label("any")));
        let applied = match staged.and_then(Staged::apply) {
            Ok(applied) => applied,
            Err(error) => {
                prop_assert_eq!(project.tree_contents(), old, "{}", error);
                prop_assert_eq!(transactions.recover().unwrap(), Recovery::Nothing);
                return Ok(());
            }
        };
        if roll_back {
            prop_assert_eq!(applied.roll_back().unwrap(), []);
            prop_assert_eq!(project.tree_contents(), old);
            return Ok(());
        }
        let done = applied.commit().unwrap();
        prop_assert_eq!(done.cleanup_error, None);
        let new = project.tree_contents();
        prop_assert!(!new.keys().any(|path| path.contains("lanser")));
        let undone = transactions.undo(Some(&done.id), &label("undo"), Policy::default()).unwrap();
        prop_assert_eq!(project.tree_contents(), old.clone());
        transactions.undo(Some(&undone.transaction.id), &label("redo"), Policy::default()).unwrap();
        prop_assert_eq!(project.tree_contents(), new);
        transactions.undo(None, &label("undo again"), Policy::default()).unwrap();
        prop_assert_eq!(project.tree_contents(), old);
        prop_assert_eq!(transactions.list().unwrap().len(), 4);
    }
}
