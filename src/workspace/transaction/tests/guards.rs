//! Forbidden changes are refused, and changed files keep their metadata.

use std::os::unix::fs::MetadataExt as _;

use super::super::sys::SyscallHook;
use super::super::*;
use super::project::{TransactionProject, create, delete, label, path, rename, write};

fn refused(project: &TransactionProject, changes: Vec<Change>) -> TransactionError {
    let old = project.tree_contents();
    let error = project.commit(changes).unwrap_err();
    assert_eq!(project.tree_contents(), old, "{error}");
    error
}

#[test]
fn a_symbolic_link_is_followed() {
    let project = TransactionProject::new(&[("real/a.py", "1")]);
    project.link("b.py", "real/a.py");
    project.link("folder", "real");
    let transactions = project.transactions();
    let plan = transactions.plan(vec![write("b.py", "1", "2")], Policy::default()).unwrap();
    assert_eq!((plan.files(), plan.targets()), (&[path("b.py")][..], &["real/a.py".to_owned()][..]));
    plan.stage(&label("x")).unwrap().apply().unwrap().commit().unwrap();
    assert_eq!(project.read("real/a.py"), "2");
    assert!(project.root.join("b.py").as_path().is_symlink());
    project.commit(vec![write("folder/a.py", "2", "3"), create("folder/new.py", "n")]).unwrap();
    assert_eq!((project.read("real/a.py"), project.read("real/new.py")), ("3".to_owned(), "n".to_owned()));
    let error = refused(&project, vec![write("folder/a.py", "3", "4"), write("real/a.py", "3", "5")]);
    assert!(matches!(error, TransactionError::Overlap { .. }), "{error}");
}

/// The order of the real paths differs from that of the paths in the changes.
#[test]
fn contents_are_not_confused_when_links_change_the_order() {
    let project = TransactionProject::new(&[("a/one.py", "1"), ("b.py", "2")]);
    project.link("z", "a");
    let done = project.commit(vec![write("b.py", "2", "two"), write("z/one.py", "1", "one")]).unwrap();
    assert_eq!((project.read("a/one.py"), project.read("b.py")), ("one".to_owned(), "two".to_owned()));
    project.transactions().undo(Some(&done.id), &label("undo"), Policy::default()).unwrap();
    assert_eq!((project.read("a/one.py"), project.read("b.py")), ("1".to_owned(), "2".to_owned()));
}

#[test]
fn nothing_outside_is_written() {
    let project = TransactionProject::new(&[]);
    let outside = project.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.py"), "1").unwrap();
    project.link("link.py", "../outside/a.py");
    project.link("folder", outside.to_str().unwrap());
    for change in [
        write("link.py", "1", "2"),
        write("folder/a.py", "1", "2"),
        create("folder/new/b.py", ""),
        delete("folder/a.py", "1"),
    ] {
        let error = refused(&project, vec![change]);
        assert!(matches!(error, TransactionError::Outside { .. }), "{error}");
        assert_eq!(error.class(), FailureClass::Jail);
    }
    let free = Policy { jail: false, ..Policy::default() };
    let transactions = project.transactions();
    let plan = transactions.plan(vec![write("link.py", "1", "2")], free).unwrap();
    let done = plan.stage(&label("out")).unwrap().apply().unwrap().commit().unwrap();
    assert_eq!(std::fs::read_to_string(outside.join("a.py")).unwrap(), "2");
    assert!(transactions.undo(Some(&done.id), &label("undo"), Policy::default()).is_err());
    transactions.undo(Some(&done.id), &label("undo"), free).unwrap();
    assert_eq!(std::fs::read_to_string(outside.join("a.py")).unwrap(), "1");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn git_folders_are_never_written() {
    let project = TransactionProject::with_git(&[("a.py", "1")]);
    project.link("sneaky", ".git");
    for at in [".git/config", ".GIT/x", "sub/.git/hooks/x", ".g\u{200c}it/x", "sneaky/x"] {
        let error = refused(&project, vec![create(at, "")]);
        assert!(matches!(error, TransactionError::GitFolder { .. }), "{at}: {error}");
    }
}

/// The common folder of linked worktrees, a repository without a worktree, and what a `.git` file points to have any name.
#[test]
fn git_folders_of_any_name_are_never_written() {
    let project =
        TransactionProject::with_git(&[("a.py", "1"), ("fixtures/HEAD", "x"), ("fixtures/refs", "y")]);
    project.git(&["init", "-q", "--bare", "store"]);
    project.git(&["init", "-q", "--separate-git-dir", "kept", "sub"]);
    project.git(&["worktree", "add", "-q", "other"]);
    project.git(&["clone", "-q", "--bare", ".", "pool/.bare"]);
    project.git(&["-C", "pool/.bare", "worktree", "add", "-q", "../tree"]);
    project.link("hk", "store/hooks");
    for at in [
        "store/hooks/post-commit",
        "kept/x",
        "pool/.bare/worktrees/tree/config.worktree",
        "hk/x",
        "store/new/x",
    ] {
        let error = refused(&project, vec![create(at, "")]);
        assert!(matches!(error, TransactionError::GitFolder { .. }), "{at}: {error}");
    }
    // All files of one in one edit, and what is missing of one.
    for files in [
        &["a/HEAD", "a/objects/x", "a/refs/y", "a/config"][..],
        &["fixtures/objects/x"],
        &["HEAD", "commondir"],
    ] {
        let error = refused(&project, files.iter().map(|at| create(at, "")).collect());
        assert!(matches!(error, TransactionError::GitFolder { .. }), "{files:?}: {error}");
    }
    for at in [
        "fixtures/new.py",
        "other/new.py",
        "pool/tree/new.py",
        "sub/new.py",
        "objects/x",
        "fixtures/x/objects/y",
    ] {
        let transactions = project.transactions();
        let refused = transactions.plan(vec![create(at, "")], Policy::default()).err();
        assert!(refused.is_none(), "{at}: {refused:?}");
    }
}

#[test]
fn hard_links_are_refused_unless_allowed() {
    let project = TransactionProject::new(&[("a.py", "1")]);
    std::fs::hard_link(project.root.join("a.py").as_path(), project.root.join("b.py").as_path()).unwrap();
    for change in [write("a.py", "1", "2"), rename("a.py", "c.py", "1", None)] {
        let error = refused(&project, vec![change]);
        assert_eq!((error.class(), error.to_string().contains("2 hard links")), (FailureClass::Unsafe, true));
    }
    let policy = Policy { hard_links: true, ..Policy::default() };
    let transactions = project.transactions();
    let plan = transactions.plan(vec![write("a.py", "1", "2")], policy).unwrap();
    plan.stage(&label("x")).unwrap().apply().unwrap().commit().unwrap();
    assert_eq!((project.read("a.py"), project.read("b.py")), ("2".to_owned(), "1".to_owned()));
}

/// On a file system that ignores case, two names refer to one file. Hard links simulate that.
#[test]
fn a_rename_to_another_name_of_the_same_file_is_refused() {
    let project = TransactionProject::new(&[("pkg/a.py", "1")]);
    let at = |path: &str| project.root.join(path).as_path().to_owned();
    std::fs::create_dir(at("Pkg")).unwrap();
    std::fs::hard_link(at("pkg/a.py"), at("Pkg/A.py")).unwrap();
    std::fs::hard_link(at("pkg/a.py"), at("other.py")).unwrap();
    let refused = |to: &str| {
        let policy = Policy { hard_links: true, ..Policy::default() };
        project.transactions().plan(vec![rename("pkg/a.py", to, "1", None)], policy).unwrap_err()
    };
    let error = refused("Pkg/A.py");
    assert_eq!(error, TransactionError::CaseOnly { from: path("pkg/a.py"), to: path("Pkg/A.py") });
    assert_eq!(error.class(), FailureClass::Jail);
    assert!(matches!(refused("other.py"), TransactionError::Exists { .. }));
}

#[test]
fn read_only_files_and_non_files_are_refused() {
    let project = TransactionProject::new(&[("a.py", "1"), ("d/x", "")]);
    project.chmod("a.py", 0o444);
    let error = refused(&project, vec![write("a.py", "1", "2")]);
    assert_eq!(error.to_string(), "a.py is read-only");
    assert_eq!(error.class(), FailureClass::Permissions);
    let error = refused(&project, vec![delete("d", "")]);
    assert!(matches!(error, TransactionError::NotAFile { .. }), "{error}");
    assert!(matches!(refused(&project, vec![create("d", "")]), TransactionError::Exists { .. }));
    // A file is where a folder would have to be.
    let error = refused(&project, vec![create("d/x/y/z.py", "")]);
    assert_eq!(error.class(), FailureClass::Permissions, "{error}");
}

#[test]
fn two_changes_of_one_file_are_refused_unless_one_removes_it() {
    let project = TransactionProject::new(&[("a.py", "1"), ("b.py", "2"), ("c.py", "3")]);
    for changes in [
        vec![write("a.py", "1", "x"), write("a.py", "1", "x")],
        vec![write("a.py", "1", "x"), delete("a.py", "1")],
        vec![rename("a.py", "d.py", "1", None), rename("b.py", "d.py", "2", None)],
        vec![rename("a.py", "d.py", "1", None), delete("a.py", "1")],
    ] {
        assert!(matches!(refused(&project, changes), TransactionError::Overlap { .. }));
    }
    // A cycle of renames.
    let cycle = [("a.py", "b.py", "1"), ("b.py", "c.py", "2"), ("c.py", "a.py", "3")];
    project.commit(cycle.map(|(from, to, before)| rename(from, to, before, None)).to_vec()).unwrap();
    assert_eq!([project.read("a.py"), project.read("b.py"), project.read("c.py")], ["3", "1", "2"]);
}

#[test]
fn a_file_that_changed_or_appeared_is_not_touched() {
    let project = TransactionProject::new(&[("a.py", "1")]);
    assert!(matches!(refused(&project, vec![write("a.py", "other", "2")]), TransactionError::Changed { .. }));
    assert!(matches!(refused(&project, vec![write("b.py", "1", "2")]), TransactionError::Changed { .. }));
    assert!(matches!(refused(&project, vec![create("a.py", "2")]), TransactionError::Exists { .. }));
    assert!(matches!(refused(&project, vec![delete("b.py", "1")]), TransactionError::Changed { .. }));

    // After the check, before the apply.
    let transactions = project.transactions();
    let stage = |changes| transactions.plan(changes, Policy::default()).unwrap().stage(&label("x")).unwrap();
    let staged = stage(vec![write("a.py", "1", "2"), create("n.py", "new")]);
    project.put("a.py", "theirs");
    assert_eq!(staged.apply().unwrap_err(), TransactionError::Changed { path: path("a.py") });
    let staged = stage(vec![write("a.py", "theirs", "2"), create("n.py", "new")]);
    project.put("n.py", "theirs");
    assert_eq!(staged.apply().unwrap_err(), TransactionError::Exists { path: path("n.py") });
    let staged = stage(vec![delete("a.py", "theirs")]);
    project.put("a.py", "again");
    assert_eq!(staged.apply().unwrap_err(), TransactionError::Changed { path: path("a.py") });
    assert_eq!((project.read("a.py"), project.read("n.py")), ("again".to_owned(), "theirs".to_owned()));
    assert_eq!(project.tree_contents().len(), 2);
}

/// Runs a function just before the system calls that start with a text.
struct BeforeCall<F>(&'static str, F);

impl<F: Fn() + Send + Sync> SyscallHook for BeforeCall<F> {
    fn before(&self, call: &'static str, name: &str) -> std::io::Result<()> {
        if format!("{call} {name}").starts_with(self.0) {
            (self.1)();
        }
        Ok(())
    }
}

#[test]
fn a_file_replaced_at_the_last_moment_is_restored() {
    let project = TransactionProject::new(&[("a.py", "1"), ("b.py", "1")]);
    let (a, once) = (project.root.join("b.py"), std::sync::Once::new());
    let overwrite = move || once.call_once(|| std::fs::write(a.as_path(), "theirs").unwrap());
    let hook = std::sync::Arc::new(BeforeCall("renameat2 exchange b.py", overwrite));
    let changes = vec![write("a.py", "1", "2"), write("b.py", "1", "2")];
    let error = super::project::commit(&project.hooked(&hook), changes).unwrap_err();
    assert_eq!(error, TransactionError::Changed { path: path("b.py") });
    assert_eq!((project.read("a.py"), project.read("b.py")), ("1".to_owned(), "theirs".to_owned()));
    assert_eq!(project.tree_contents().len(), 2);
}

#[test]
fn a_swapped_in_link_cannot_redirect_a_write() {
    let project = TransactionProject::new(&[("pkg/a.py", "1")]);
    let outside = project.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.py"), "1").unwrap();
    for call in ["creat .lanser", "renameat2 exchange", "openat2 pkg"] {
        let (pkg, aside) = (project.root.join("pkg"), project.root.join("aside"));
        let (from, to) = (pkg.clone(), aside.clone());
        let outside_again = outside.clone();
        // If the folder is already open, the write goes to the intended folder.
        let swap = move || {
            if !from.as_path().is_symlink() {
                std::fs::rename(from.as_path(), to.as_path()).unwrap();
                std::os::unix::fs::symlink(&outside_again, from.as_path()).unwrap();
            }
        };
        let hook = std::sync::Arc::new(BeforeCall(call, swap));
        let result = super::project::commit(&project.hooked(&hook), vec![write("pkg/a.py", "1", "2")]);
        assert!(result.is_err(), "{call}: {result:?}");
        std::fs::remove_file(pkg.as_path()).unwrap();
        std::fs::rename(aside.as_path(), pkg.as_path()).unwrap();
        project.transactions().recover().unwrap();
        assert_eq!(project.read("pkg/a.py"), "1", "{call}");
        assert_eq!(std::fs::read_to_string(outside.join("a.py")).unwrap(), "1", "{call}");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "{call}");
        assert_eq!(project.tree_contents().len(), 2, "{call}: {:?}", project.tree_contents().keys());
    }
}

#[test]
fn a_followed_link_that_changes_its_target_is_detected() {
    let project = TransactionProject::new(&[("a.py", "1"), ("b.py", "1")]);
    project.link("link.py", "a.py");
    let transactions = project.transactions();
    let plan = transactions.plan(vec![write("link.py", "1", "2")], Policy::default()).unwrap();
    let staged = plan.stage(&label("x")).unwrap();
    std::fs::remove_file(project.root.join("link.py").as_path()).unwrap();
    project.link("link.py", "b.py");
    assert!(matches!(staged.apply(), Err(TransactionError::Changed { .. })));
    assert_eq!((project.read("a.py"), project.read("b.py")), ("1".to_owned(), "1".to_owned()));
}

#[test]
fn a_folder_that_vanishes_is_an_error() {
    let project = TransactionProject::new(&[("a.py", "1"), ("pkg/a.py", "1")]);
    let transactions = project.transactions();
    let changes = vec![write("a.py", "1", "2"), write("pkg/a.py", "1", "2")];
    let staged = transactions.plan(changes, Policy::default()).unwrap().stage(&label("x")).unwrap();
    std::fs::remove_dir_all(project.root.join("pkg").as_path()).unwrap();
    let error = staged.apply().unwrap_err();
    assert!(error.to_string().contains("pkg/a.py"), "{error}");
    assert_eq!(project.tree_contents().len(), 1);
    assert_eq!(project.read("a.py"), "1");
    assert_eq!(transactions.recover().unwrap(), Recovery::Nothing);
}

#[test]
fn metadata_is_preserved() {
    let project = TransactionProject::new(&[("a.py", "1"), ("b.py", "2")]);
    let at = |path: &str| std::fs::File::open(project.root.join(path).as_path()).unwrap();
    let set = |path: &str, name: &str, value: &str| {
        rustix::fs::fsetxattr(at(path), name, value.as_bytes(), rustix::fs::XattrFlags::empty())
    };
    let get = |path: &str, name: &str| {
        let mut value = [0; 100];
        let length = rustix::fs::fgetxattr(at(path), name, &mut value[..]).unwrap();
        String::from_utf8(value[..length].to_vec()).unwrap()
    };
    project.chmod("a.py", 0o4751);
    project.chmod("b.py", 0o640);
    let attributes = set("a.py", "user.note", "kept").is_ok() && set("b.py", "user.note", "moved").is_ok();
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(project.root.join("a.py").as_path(), Some(1234), Some(2345)).unwrap();
        project.chmod("a.py", 0o4751);
    }
    project.commit(vec![write("a.py", "1", "22"), rename("b.py", "x/c.py", "2", Some("3"))]).unwrap();
    let check = |moved: &str| {
        let a = at("a.py").metadata().unwrap();
        assert_eq!((a.mode() & 0o7777, at(moved).metadata().unwrap().mode() & 0o7777), (0o4751, 0o640));
        if root {
            assert_eq!((a.uid(), a.gid()), (1234, 2345));
        }
        if attributes {
            assert_eq!(
                (get("a.py", "user.note"), get(moved, "user.note")),
                ("kept".to_owned(), "moved".to_owned())
            );
        }
    };
    check("x/c.py");
    project.transactions().undo(None, &label("undo"), Policy::default()).unwrap();
    check("b.py");
}

#[test]
fn a_new_file_has_the_default_mode() {
    let project = TransactionProject::new(&[("like.py", "")]);
    project.commit(vec![create("pkg/new.py", "")]).unwrap();
    let mode = |path: &str| std::fs::metadata(project.root.join(path).as_path()).unwrap().mode();
    assert_eq!(mode("like.py"), mode("pkg/new.py"));
}

#[test]
fn an_undo_that_would_lose_edits_reports_the_files() {
    let project = TransactionProject::new(&[("a.py", "1"), ("b.py", "2"), ("c.py", "3")]);
    let changes = vec![write("a.py", "1", "x"), delete("b.py", "2"), rename("c.py", "d.py", "3", None)];
    let done = project.commit(changes).unwrap();
    project.put("a.py", "edited");
    project.put("b.py", "made again");
    std::fs::remove_file(project.root.join("d.py").as_path()).unwrap();
    let transactions = project.transactions();
    let error = transactions.undo(None, &label("undo"), Policy::default()).unwrap_err();
    assert_eq!(error, TransactionError::Conflict { paths: vec![path("a.py"), path("b.py"), path("d.py")] });
    assert_eq!(error.class(), FailureClass::Conflict);
    project.put("a.py", "x");
    std::fs::remove_file(project.root.join("b.py").as_path()).unwrap();
    project.put("d.py", "3");
    // As if git had restored the files.
    project.put("a.py", "1");
    project.put("b.py", "2");
    std::fs::rename(project.root.join("d.py").as_path(), project.root.join("c.py").as_path()).unwrap();
    let error = transactions.undo(None, &label("undo"), Policy::default()).unwrap_err();
    assert_eq!(error, TransactionError::AlreadyRestored { id: done.id.clone() });
    assert_eq!(error.class(), FailureClass::Conflict);
    project.put("a.py", "x");
    std::fs::remove_file(project.root.join("b.py").as_path()).unwrap();
    std::fs::rename(project.root.join("c.py").as_path(), project.root.join("d.py").as_path()).unwrap();
    let undone = transactions.undo(Some(&done.id), &label("undo"), Policy::default()).unwrap();
    let again = transactions.undo(Some(&done.id), &label("undo"), Policy::default()).unwrap_err();
    assert_eq!(
        again,
        TransactionError::AlreadyUndone { id: done.id.clone(), by: undone.transaction.id.clone() }
    );
    assert_eq!(undone.files.len(), 4);
    let lines = transactions.list().unwrap();
    assert_eq!(lines[0].undone_by.as_ref(), Some(&undone.transaction.id));
    assert_eq!(lines[1].undoes.as_ref(), Some(&done.id));
    let error = transactions.undo(None, &label("undo"), Policy::default()).unwrap_err();
    assert_eq!(error.class(), FailureClass::NotFound);
}

#[test]
fn a_change_has_the_same_id_everywhere() {
    let id = |project: &TransactionProject| project.commit(vec![write("a.py", "1", "2")]).unwrap().id;
    let (one, other) = (
        TransactionProject::new(&[("a.py", "1")]),
        TransactionProject::with_git(&[("a.py", "1"), ("b.py", "1")]),
    );
    let first = id(&one);
    assert_eq!(first, id(&other));
    one.transactions().undo(None, &label("undo"), Policy::default()).unwrap();
    assert_eq!(id(&one), format!("{first}-2"));
}

#[test]
fn journals_are_outside_of_the_repository() {
    let project = TransactionProject::with_git(&[("a.py", "1"), ("sub/b.py", "1")]);
    project.commit(vec![write("a.py", "1", "2")]).unwrap();
    assert!(!project.root.join(".git/lanser").as_path().exists());
    assert!(project.transactions().journal_dir.path().join("lock").as_path().exists());
    assert_eq!(project.git(&["status", "--porcelain"]), " M a.py\n");
    // A workspace in the same worktree has a separate log and the same lock.
    let inner = Transactions::new(&project.root.join("sub"), &project.state());
    assert_eq!(inner.journal_dir.path(), project.transactions().journal_dir.path());
    assert_eq!(inner.list().unwrap(), []);
    super::project::commit(&inner, vec![write("b.py", "1", "2")]).unwrap();
    assert_eq!((inner.list().unwrap().len(), project.transactions().list().unwrap().len()), (1, 1));
    inner.undo(None, &label("undo"), Policy::default()).unwrap();
    assert_eq!(project.read("sub/b.py"), "1");
    // A linked worktree has separate journals.
    project.git(&["worktree", "add", "-q", "../linked"]);
    let linked = project.root.join("../linked");
    let transactions = Transactions::new(&linked, &project.state());
    super::project::commit(&transactions, vec![write("a.py", "1", "3")]).unwrap();
    assert_eq!(transactions.list().unwrap().len(), 1);
}

#[test]
fn recovery_stays_in_the_worktree_and_follows_no_link() {
    let project = TransactionProject::with_git(&[("a.py", "1"), ("sub/b.py", "1"), ("other/b.py", "2")]);
    let inner = Transactions::new(&project.root.join("sub"), &project.state());
    let plan = inner.plan(vec![write("b.py", "1", "2")], Policy::default()).unwrap();
    let applied = plan.stage(&label("x")).unwrap().apply().unwrap();
    let (sub, aside) = (project.root.join("sub"), project.root.join("aside"));
    let journals = inner.journal_dir.path().join("open");
    let saved = project.folder.path().join("saved");
    std::fs::rename(journals.as_path(), &saved).unwrap();
    // The rollback finds no journal to remove.
    drop(applied);
    std::fs::rename(&saved, journals.as_path()).unwrap();
    project.put("sub/b.py", "2");
    std::fs::rename(sub.as_path(), aside.as_path()).unwrap();
    project.link("sub", "other");
    assert!(project.transactions().recover().is_err());
    assert_eq!(project.read("other/b.py"), "2");
    std::fs::remove_file(sub.as_path()).unwrap();
    std::fs::rename(aside.as_path(), sub.as_path()).unwrap();
    assert!(matches!(project.transactions().recover().unwrap(), Recovery::RolledBack { .. }));
    assert_eq!(project.read("sub/b.py"), "1");
}

#[test]
fn a_journal_inside_a_repository_is_ignored() {
    let project = TransactionProject::with_git(&[("a.py", "1")]);
    let transactions = project.transactions();
    let plan = transactions.plan(vec![write("a.py", "1", "2")], Policy::default()).unwrap();
    let applied = plan.stage(&label("x")).unwrap().apply().unwrap();
    let path = project.transactions().journal_dir.path().clone();
    let planted = project.root.join(".git/lanser");
    let copied =
        std::process::Command::new("cp").arg("-r").args([path.as_path(), planted.as_path()]).status();
    assert!(copied.unwrap().success());
    applied.commit().unwrap();
    assert_eq!(project.transactions().recover().unwrap(), Recovery::Nothing);
    assert_eq!(project.transactions().list().unwrap().len(), 1);
    assert_eq!(project.read("a.py"), "2");
}

#[test]
fn a_folder_of_journals_that_others_can_write_to_is_refused() {
    let project = TransactionProject::new(&[("a.py", "1")]);
    project.commit(vec![write("a.py", "1", "2")]).unwrap();
    let path = project.transactions().journal_dir.path().clone();
    std::fs::set_permissions(path.as_path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert!(matches!(project.transactions().list(), Err(TransactionError::Damaged { .. })));
    let undone = project.transactions().undo(None, &label("undo"), Policy::default());
    assert!(matches!(undone, Err(TransactionError::Damaged { .. })));
}

#[test]
fn a_journal_with_a_path_out_of_the_workspace_is_invalid() {
    let project = TransactionProject::with_git(&[("a.py", "1")]);
    let transactions = project.transactions();
    let staged = transactions.plan(vec![write("a.py", "1", "2")], Policy::default()).unwrap();
    let applied = staged.stage(&label("x")).unwrap().apply().unwrap();
    let path = transactions.journal_dir.path().join("open/journal");
    let journal = std::fs::read_to_string(path.as_path()).unwrap();
    for (from, to) in [
        (r#""outside":false,"path":"a.py""#, r#""outside":false,"path":"../x""#),
        (r#""outside":false,"path":"a.py""#, r#""outside":false,"path":".git/config""#),
        (r#""temp":".lanser-"#, r#""temp":"../.lanser-"#),
        (r#""prefix":"""#, r#""prefix":"../..""#),
    ] {
        let json = journal.split_once('\n').unwrap().1;
        assert!(json.contains(from), "{json}");
        let json = json.replace(from, to);
        let bad = format!("{}\n{json}", Digest::of(json.as_bytes()).to_hex());
        assert!(Journal::from_bytes(bad.as_bytes()).is_err(), "{to}");
    }
    assert!(Journal::from_bytes(journal.as_bytes()).is_ok());
    assert!(Journal::from_bytes(&journal.as_bytes()[..journal.len() - 1]).is_err());
    drop(applied);
    assert_eq!(project.read("a.py"), "1");
}

#[test]
fn only_the_owner_can_read_pre_images() {
    let project = TransactionProject::with_git(&[("a.py", "1")]);
    project.commit(vec![write("a.py", "1", "2")]).unwrap();
    let mut folders = vec![project.transactions().journal_dir.path().clone()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(std::fs::metadata(folder.as_path()).unwrap().mode() & 0o77, 0);
        for entry in std::fs::read_dir(folder.as_path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().mode() & 0o77, 0, "{:?}", entry.path());
            seen += 1;
            if entry.metadata().unwrap().is_dir() {
                folders.push(AbsPath::new(entry.path()).unwrap());
            }
        }
    }
    assert_eq!(seen, 4);
}

#[test]
fn dropping_rolls_back() {
    let project = TransactionProject::new(&[("a.py", "1")]);
    let old = project.tree_contents();
    let transactions = project.transactions();
    let stage = || {
        let plan = transactions.plan(vec![write("a.py", "1", "2"), create("x/y.py", "")], Policy::default());
        plan.unwrap().stage(&label("x")).unwrap()
    };
    let staged = stage();
    assert_ne!(project.tree_contents(), old);
    drop(staged);
    assert_eq!(project.tree_contents(), old);
    let applied = stage().apply().unwrap();
    assert_eq!(project.read("a.py"), "2");
    drop(applied);
    assert_eq!(project.tree_contents(), old);
    let applied = stage().apply().unwrap();
    project.put("a.py", "theirs");
    assert_eq!(applied.roll_back().unwrap(), [path("a.py")]);
    assert_eq!(project.read("a.py"), "theirs");
    assert_eq!(project.tree_contents().len(), 1);
}

#[test]
fn the_log_is_bounded() {
    let project = TransactionProject::new(&[("a.py", "0")]);
    for n in 0..103 {
        project.commit(vec![write("a.py", &n.to_string(), &(n + 1).to_string())]).unwrap();
    }
    let lines = project.transactions().list().unwrap();
    assert_eq!(lines.len(), 100);
    project.transactions().undo(Some(&lines[99].id), &label("undo"), Policy::default()).unwrap();
    assert_eq!(project.read("a.py"), "102");
    assert_eq!(project.transactions().list().unwrap().len(), 100);
    // By bytes: most pre-images have two or three bytes. The newest transaction always stays.
    let store =
        JournalStore::find(&Sys::default(), project.transactions().journal_dir.path()).unwrap().unwrap();
    store.trim(100, 31).unwrap();
    assert_eq!(project.transactions().list().unwrap().len(), 13);
    store.trim(100, 0).unwrap();
    assert_eq!(project.transactions().list().unwrap().len(), 1);
}

#[test]
fn a_change_can_set_the_executable_bit() {
    let project = TransactionProject::new(&[("run.py", "1"), ("move.py", "1"), ("own.py", "1")]);
    project.chmod("run.py", 0o640);
    project.chmod("own.py", 0o750);
    let before = project.tree_contents();
    let with = |change: Change, is: bool| match change {
        Change::Write { path, before, content, .. } => {
            Change::Write { path, before, content, executable: Some(is) }
        }
        Change::Move { from, to, before, content, .. } => {
            Change::Move { from, to, before, content, executable: Some(is) }
        }
        Change::Delete { .. } => change,
    };
    project
        .commit(vec![
            with(create("new.py", "x"), true),
            with(write("run.py", "1", "2"), true),
            with(write("own.py", "1", "2"), false),
            with(rename("move.py", "moved.py", "1", None), true),
        ])
        .unwrap();
    let mode = |name: &str| {
        let metadata = std::fs::metadata(project.root.join(name).as_path()).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
    };
    let umask = mode("new.py");
    assert_eq!((umask & 0o100, mode("run.py"), mode("own.py")), (0o100, 0o750, 0o640));
    assert_eq!(mode("moved.py") & 0o500, 0o500);
    let made = project.tree_contents();
    let undone = project.transactions().undo(None, &label("undo"), Policy::default()).unwrap();
    assert_eq!(project.tree_contents(), before);
    let redo = Some(undone.transaction.id.as_str());
    project.transactions().undo(redo, &label("redo"), Policy::default()).unwrap();
    assert_eq!(project.tree_contents(), made);
}

#[test]
fn an_unreadable_journal_is_reported() {
    let project = TransactionProject::with_git(&[("a.py", "1"), ("b.py", "1"), ("c.py", "1")]);
    let ids = ["a.py", "b.py", "c.py"].map(|file| project.commit(vec![write(file, "1", "2")]).unwrap().id);
    let journal = |id: &str| {
        let store = project.transactions().journal_dir.path().clone();
        let names = std::fs::read_dir(store.as_path()).unwrap();
        let found = names.map(|name| name.unwrap().path()).find(|path| path.to_str().unwrap().ends_with(id));
        found.unwrap().join("journal")
    };
    let undo = |id: Option<&str>| project.transactions().undo(id, &label("undo"), Policy::default());
    std::fs::write(journal(&ids[1]), "nonsense").unwrap();
    let lines = project.transactions().list().unwrap();
    let listed: Vec<(&str, bool)> =
        lines.iter().map(|line| (line.id.as_str(), line.damaged.is_some())).collect();
    assert_eq!(listed, [(ids[1].as_str(), true), (&ids[0], false), (&ids[2], false)]);
    assert!(matches!(undo(Some(&ids[1])), Err(TransactionError::Unreadable { .. })));
    // The unreadable one is not the last, so the last can be undone.
    undo(None).unwrap();
    assert_eq!((project.read("c.py"), project.read("a.py")), ("1".to_owned(), "2".to_owned()));
    // The last transaction is unreadable: an earlier one is not undone in its place, unless it is named.
    std::fs::remove_file(journal(&ids[0])).unwrap();
    std::fs::create_dir(journal(&ids[0])).unwrap();
    project.put("d.py", "1");
    let last = project.commit(vec![write("d.py", "1", "2")]).unwrap().id;
    std::fs::write(journal(&last), "").unwrap();
    assert!(project.transactions().list().unwrap().iter().any(|line| line.id == ids[0]));
    let error = undo(None).unwrap_err();
    assert!(error.to_string().contains(&last), "{error}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_valid_journal_or_refused(position in 0.0..1.0_f64, bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..8)) {
        static JOURNAL: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            let project = TransactionProject::new(&[("a.py", "1")]);
            project.commit(vec![write("a.py", "1", "2"), create("b/c.py", "x")]).unwrap();
            let path = project.transactions().journal_dir.path().clone();
            let folders = std::fs::read_dir(path.as_path()).unwrap().map(|entry| entry.unwrap().path().join("journal"));
            let json = std::fs::read(folders.into_iter().find(|path| path.exists()).unwrap()).unwrap();
            json[65..].to_vec()
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a position in a small file")]
        let at = (position * JOURNAL.len() as f64) as usize;
        let mut json = JOURNAL.clone();
        let end = json.len().min(at + bytes.len());
        json.splice(at..end, bytes);
        let mut journal_bytes = format!("{}\n", Digest::of(&json).to_hex()).into_bytes();
        journal_bytes.extend_from_slice(&json);
        if let Ok(journal) = Journal::from_bytes(&journal_bytes) {
            // Its paths do not contain `..` or a git folder.
            for entry in &journal.entries {
                proptest::prop_assert!(!entry.real_path.path.split('/').any(|part| part == ".." || part.eq_ignore_ascii_case(".git")));
                proptest::prop_assert!(!entry.temp.contains('/'));
            }
        }
    }
}
