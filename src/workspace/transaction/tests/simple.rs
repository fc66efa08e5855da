use super::super::*;

fn path(path: &str) -> WorkspacePath {
    WorkspacePath::new(path).unwrap()
}

fn label(what: &str) -> Label {
    Label { what: what.to_owned(), time: 1 }
}

#[test]
fn there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap().join("w");
    let at = |path: &str| root.join(path).as_path().to_owned();
    std::fs::create_dir_all(at("pkg")).unwrap();
    std::fs::write(at("a.py"), "a").unwrap();
    std::fs::write(at("pkg/b.py"), "b").unwrap();
    let all = Transactions::new(&root, &root.join("../state"));
    let changes = vec![
        Change::Write { path: path("a.py"), before: Some(Digest::of(b"a")), content: b"A".to_vec() },
        Change::Move {
            from: path("pkg/b.py"),
            to: path("x/y/b.py"),
            before: Digest::of(b"b"),
            content: None,
        },
        Change::Write { path: path("new.py"), before: None, content: b"n".to_vec() },
    ];
    let plan = all.plan(changes, Policy::default()).unwrap();
    assert_eq!(plan.files().len(), 4);
    let done = plan.stage(&label("one")).unwrap().apply().unwrap().keep().unwrap();
    assert_eq!(done.left, None);
    assert_eq!(std::fs::read(at("a.py")).unwrap(), b"A");
    assert_eq!(std::fs::read(at("x/y/b.py")).unwrap(), b"b");
    assert!(!at("pkg").exists());
    assert_eq!(std::fs::read_dir(&root.as_path()).unwrap().count(), 3);
    let undone = all.undo(None, &label("undo"), Policy::default()).unwrap();
    assert_eq!(undone.undone, done.id);
    assert_eq!(std::fs::read(at("pkg/b.py")).unwrap(), b"b");
    assert_eq!(std::fs::read(at("a.py")).unwrap(), b"a");
    assert_eq!(std::fs::read_dir(&root.as_path()).unwrap().count(), 2);
    assert_eq!(all.list().unwrap().len(), 2);
    assert_eq!(all.recover().unwrap(), Recovery::Nothing);
}
