//! Tests of plans, and that git accepts the preview of each of them.

use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::*;
use crate::edit::patch::parse;
use crate::edit::preview::diff;
use crate::edit::quote::quote;

/// Files in memory.
struct FilesInMemory(BTreeMap<WorkspacePath, Arc<Original>>);

impl FilesInMemory {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let original = |bytes: &[u8]| Arc::new(Original { bytes: bytes.to_vec(), executable: false });
        Self(files.iter().map(|(path, bytes)| (at(path), original(bytes))).collect())
    }

    fn plan(
        &self,
        make: impl FnOnce(&mut Planner<'_>) -> Result<(), PlanError>,
    ) -> Result<EditPlan, PlanError> {
        let root = AbsPath::new("/w").unwrap();
        let mut planner = Planner::new(&root, self, ColumnUnit::Utf16);
        make(&mut planner)?;
        planner.plan()
    }

    fn edit(&self, json: &str) -> Result<EditPlan, PlanError> {
        let edit: WorkspaceEdit = serde_json::from_str(json).unwrap();
        self.plan(|planner| planner.workspace_edit(&edit))
    }

    fn patch(&self, diff: &str) -> Result<EditPlan, PlanError> {
        self.plan(|planner| planner.patches(&parse(diff.as_bytes()).unwrap()))
    }
}

impl Base for FilesInMemory {
    fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, String> {
        Ok(path.clone())
    }

    fn file(&self, path: &WorkspacePath) -> Result<Option<Arc<Original>>, String> {
        Ok(self.0.get(path).cloned())
    }

    fn is_folder(&self, path: &WorkspacePath) -> bool {
        self.0.keys().any(|file| file.as_str().starts_with(&format!("{path}/")))
    }
}

fn at(path: &str) -> WorkspacePath {
    WorkspacePath::new(path).unwrap()
}

fn modification(path: &str, before: Arc<Original>, after: &[u8]) -> PlannedChange {
    let executable = before.executable;
    PlannedChange {
        path: at(path),
        from: None,
        before: Some(before),
        after: Some(after.to_vec()),
        executable,
    }
}

/// Applies a plan's preview with git and compares every file with the plan.
fn check_with_git(base: &FilesInMemory, plan: &EditPlan) {
    let folder = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let ran = Command::new("git")
            .args(["-c", "core.autocrlf=false", "-c", "init.defaultBranch=m"])
            .args(args)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{args:?}: {}\n{}", String::from_utf8_lossy(&ran.stderr), diff(plan));
    };
    git(&["init", "-q"]);
    let file = |path: &WorkspacePath| folder.path().join(path.as_str());
    for (path, original) in &base.0 {
        std::fs::create_dir_all(file(path).parent().unwrap()).unwrap();
        std::fs::write(file(path), &original.bytes).unwrap();
    }
    let patch = Path::new("the.patch");
    std::fs::write(folder.path().join(patch), diff(plan)).unwrap();
    git(&["apply", "--check", "the.patch"]);
    git(&["apply", "the.patch"]);
    for change in plan.changes() {
        assert_eq!(std::fs::read(file(&change.path)).ok(), change.after, "{}", diff(plan));
        if let Some(from) = &change.from {
            assert!(!file(from).exists());
        }
    }
}

#[test]
fn operations_follow_each_other() {
    let base = FilesInMemory::new(&[("a.py", b"one\ntwo\n"), ("d.py", b"x\n")]);
    let json = r#"{"documentChanges":[
        {"kind":"rename","oldUri":"file:///w/a.py","newUri":"file:///w/p%20q/b.py"},
        {"textDocument":{"uri":"p%20q/b.py","version":null},"edits":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":3}},"newText":"ONE"}]},
        {"kind":"create","uri":"c.py"},
        {"textDocument":{"uri":"c.py","version":null},"edits":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":0}},"newText":"c = 1"}]},
        {"kind":"create","uri":"e.py"},
        {"kind":"delete","uri":"d.py"},{"kind":"delete","uri":"nothing.py","options":{"ignoreIfNotExists":true}}]}"#;
    let plan = base.edit(json).unwrap();
    let changed: Vec<_> =
        plan.changes().iter().map(|change| (change.path.as_str(), change.from.is_some())).collect();
    assert_eq!(changed, [("c.py", false), ("d.py", false), ("e.py", false), ("p q/b.py", true)]);
    check_with_git(&base, &plan);
    // Reading the preview gives the same plan.
    assert_eq!(base.patch(&diff(&plan)).unwrap(), plan);
}

/// The file system that ignores case is played by two names with the same content.
#[test]
fn a_change_of_case_alone_is_refused_where_case_is_ignored() {
    let rename = r#"{"documentChanges":[{"kind":"rename","oldUri":"a.py","newUri":"A.py"}]}"#;
    let ignoring = FilesInMemory::new(&[("a.py", b"x = 1\n"), ("A.py", b"x = 1\n")]);
    let case_only = PlanError::CaseOnly { from: at("a.py"), to: at("A.py") };
    assert_eq!(ignoring.edit(rename).unwrap_err(), case_only);
    let diff = "diff --git a/a.py b/A.py\nsimilarity index 100%\nrename from a.py\nrename to A.py\n";
    assert_eq!(ignoring.patch(diff).unwrap_err(), case_only);
    let other = FilesInMemory::new(&[("a.py", b"x = 1\n"), ("A.py", b"y = 2\n")]);
    assert_eq!(other.edit(rename).unwrap_err(), PlanError::Exists(at("A.py")));
}

#[test]
fn invalid_edits_are_rejected() {
    let base = FilesInMemory::new(&[("a.py", b"abc\n"), ("l.py", b"a\xff\n")]);
    let edit = |uri: &str, ranges: &[(u32, u32)]| {
        let edits: Vec<_> = ranges.iter().map(|(from, to)| format!(r#"{{"range":{{"start":{{"line":0,"character":{from}}},"end":{{"line":0,"character":{to}}}}},"newText":"x"}}"#)).collect();
        format!(r#"{{"changes":{{"{uri}":[{}]}}}}"#, edits.join(","))
    };
    assert!(matches!(base.edit(&edit("a.py", &[(0, 2), (1, 3)])), Err(PlanError::Overlap { .. })));
    assert!(matches!(base.edit(&edit("../a.py", &[(0, 1)])), Err(PlanError::Target(_))));
    assert!(matches!(base.edit(&edit("b.py", &[(0, 1)])), Err(PlanError::Missing(_))));
    assert!(matches!(base.edit(&edit("l.py", &[(0, 1)])), Err(PlanError::Unwritable { .. })));
    assert!(matches!(
        base.edit(r#"{"documentChanges":[{"kind":"create","uri":"a.py"}]}"#),
        Err(PlanError::Exists(_))
    ));
    assert!(
        base.edit(
            r#"{"documentChanges":[{"kind":"create","uri":"a.py","options":{"ignoreIfExists":true}}]}"#
        )
        .unwrap()
        .changes()
        .is_empty()
    );
    let delete = "diff --git a/a.py b/a.py\ndeleted file mode 100644\n--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-abd\n";
    assert!(matches!(base.patch(delete), Err(PlanError::Conflict { .. })));
    // Several URIs can name one file.
    let twice = r#"{"changes":{"a.py":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":2}},"newText":"x"}],"file:///w/a.py":[{"range":{"start":{"line":0,"character":1},"end":{"line":0,"character":3}},"newText":"y"}]}}"#;
    assert!(matches!(base.edit(twice), Err(PlanError::Overlap { .. })));
    let same = r#"{"changes":{"a.py":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":2}},"newText":"x"}],"file:///w/a.py":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":2}},"newText":"x"}]}}"#;
    assert_eq!(base.edit(same).unwrap().changes().len(), 1);
}

#[test]
fn folders_are_not_edited() {
    let base = FilesInMemory::new(&[("p/a.py", b"abc\n")]);
    for operation in [
        r#"{"kind":"rename","oldUri":"p","newUri":"q"}"#,
        r#"{"kind":"rename","oldUri":"p/a.py","newUri":"q/"}"#,
        r#"{"kind":"delete","uri":"p","options":{"recursive":true}}"#,
        r#"{"kind":"create","uri":"p","options":{"overwrite":true}}"#,
        r#"{"kind":"create","uri":"new/"}"#,
    ] {
        let edit = format!(r#"{{"documentChanges":[{operation}]}}"#);
        assert!(matches!(base.edit(&edit), Err(PlanError::Folder(_))), "{operation}");
    }
}

#[test]
fn executable_bits_are_shown() {
    let base = FilesInMemory::new(&[("a.py", b"1\n"), ("b.py", b"1\n")]);
    let text = "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+2\n\
                diff --git a/b.py b/c.py\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from b.py\nrename to c.py\n\
                diff --git a/d.py b/d.py\nnew file mode 100755\n--- /dev/null\n+++ b/d.py\n@@ -0,0 +1 @@\n+1\n";
    let plan = base.patch(text).unwrap();
    assert_eq!(diff(&plan), text);
    let modes: Vec<_> = plan.changes().iter().map(PlannedChange::new_mode).collect();
    assert_eq!(modes, [Some(true); 3]);
    check_with_git(&base, &plan);
    let only = "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n";
    assert!(matches!(base.patch(only), Err(PlanError::OnlyMode { executable: true, .. })));
    // An overwritten file keeps its mode.
    let mut base = FilesInMemory::new(&[("run.py", b"1\n")]);
    base.0.insert(at("run.py"), Arc::new(Original { bytes: b"1\n".to_vec(), executable: true }));
    let plan = base
        .edit(r#"{"documentChanges":[{"kind":"create","uri":"run.py","options":{"overwrite":true}}]}"#)
        .unwrap();
    assert_eq!(plan.changes()[0].new_mode(), None);
}

#[test]
fn unusual_names_and_bytes() {
    let contents: [(&[u8], &[u8]); 11] = [
        (b"a\n", b"b\n"),
        (b"a", b"b"),
        (b"a\n", b"a"),
        (b"", b"a\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"a\rb\rc\n", b"a\rB\rc\n"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n"),
        (b"# coding: latin-1\n\xe9 = a\n", b"# coding: latin-1\n\xe9 = b\n"),
        (b"\x0ca\n\xc2\x85\xe2\x80\xa8\n", b"\x0cb\n\xc2\x85\xe2\x80\xa8\n"),
        (b"a\0b\n", b"a\0c\n"),
        (b"--- a\n+++ b\n@@ -1 +1 @@\n", b"--- a\n+++ c\n@@ -1 +1 @@\n"),
    ];
    for name in ["a.py", "p/a b.py", "ü/ä.py", "q\"uo\\te.py", "tab\there.py", "-dash.py"] {
        for (before, after) in contents {
            let base = FilesInMemory::new(&[(name, before)]);
            let original = base.0[&at(name)].clone();
            let plan = EditPlan::of(vec![modification(name, original, after)]);
            check_with_git(&base, &plan);
            assert_eq!(quote(name).starts_with('"'), name.contains(['ü', '"', '\t']));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn git_and_the_diff_reader_accept_every_preview(before in "[ab\n\r]{0,40}", after in "[ab\n\r]{0,40}") {
        prop_assume!(before != after);
        let base = FilesInMemory::new(&[("a.py", before.as_bytes())]);
        let original = base.0[&at("a.py")].clone();
        let plan = EditPlan::of(vec![modification("a.py", original, after.as_bytes())]);
        check_with_git(&base, &plan);
        prop_assert_eq!(base.patch(&diff(&plan)).unwrap(), plan);
    }
}
