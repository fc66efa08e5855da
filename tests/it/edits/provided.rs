//! Edits provided by the caller as JSON, diffs and bundles: their effect on diagnostics, and that none leaves the workspace.

use serde_json::{Value, json};

use super::{Repository, failed};
use crate::support::Project;

fn insert(uri: &str, text: &str) -> String {
    let zero = json!({"line": 0, "character": 0});
    json!({"changes": {uri: [{"range": {"start": zero, "end": zero}, "newText": text}]}}).to_string()
}

impl Repository {
    fn run_with_edit(&self, args: &[&str], edit: impl AsRef<[u8]>) -> crate::support::Output {
        self.env.lanser_with_input(args, edit)
    }
}

#[test]
fn a_patch_introduces_and_resolves_diagnostics() {
    let project = Project::parse(
        "//- /a.py\ndef f(x: int) -> int:\n    return x + 'a'\n//- /b.py\nfrom a import f\nprint(f(1))\n//- /c.py\nx = 1\n",
    );
    let repository = Repository::with_ty(&project);
    let patch = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-def f(x: int) -> int:\n-    return x + 'a'\n+def f(x: str) -> str:\n+    return x + 'a'\n";
    let before = repository.tree();
    let bundle = repository.run_with_edit(&["check", "-", "--json"], patch).answer();
    let delta = &bundle["edits"]["diagnostics"];
    let uris = |list: &Value| {
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| item["uri"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (uris(&delta["introduced"]), uris(&delta["resolved"])),
        (vec!["b.py".to_owned()], vec!["a.py".to_owned()])
    );
    assert_eq!(delta["files_checked"].as_u64(), Some(2));
    assert_eq!(repository.tree(), before);
    let verdict = repository.run_with_edit(&["check", "-", "--fail-on", "error", "--json"], patch);
    assert_eq!(verdict.bundle()["facts"]["verdict"], "fail");
    assert_eq!(verdict.code, Some(1));
    assert!(repository.run_with_edit(&["check", "-"], patch).text().contains("new: b.py:2:9  error"));
    let stopped = repository.run_with_edit(&["apply", "-", "--apply", "--json"], patch);
    assert_eq!(failed(&stopped.bundle()), ["diagnostics"]);
    let made = repository
        .run_with_edit(&["apply", "-", "--apply", "--json", "--allow-new-diagnostics"], patch)
        .answer();
    assert!(made["edits"]["transaction"]["id"].is_string());
    assert!(repository.env.lanser(["undo"]).text().contains("undid"));
    assert_eq!(repository.tree(), before);
}

/// No diagnostic shows a call through an object of unknown type.
#[test]
fn functions_that_callers_may_no_longer_call_are_noted() {
    let repository = Repository::with_ty(&Project::parse(
        "//- /a.py\nclass A:\n    def go(self, x): ...\n    def stay(self): ...\ndef gone(): ...\n//- /b.py\ndef f(a): a.go(1)\n",
    ));
    let patch = "--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,3 @@\n class A:\n-    def go(self, x): ...\n-    def stay(self): ...\n-def gone(): ...\n+    def go(self, x, y): ...\n+    def stay(self, z=1): ...\n";
    let note = |name: &str, what: &str| {
        format!(
            "py://a#{name}: {what}; calls through objects of unknown types are not checked; in the state before the edit, `lanser calls py://a#{name}` lists them"
        )
    };
    let expected = [note("A.go", "its parameters change"), note("gone", "it is removed")];
    for command in ["check", "apply"] {
        let bundle = repository.run_with_edit(&[command, "-", "--json"], patch).answer();
        assert_eq!(bundle["edits"]["notes"], json!(expected));
    }
    let text = repository.run_with_edit(&["check", "-"], patch);
    let lines: Vec<&str> = text.text().lines().collect();
    assert_eq!(lines[0], format!("note: {}", expected[0]));
    assert_eq!(
        lines.last(),
        Some(&"1 file, +2 -3 lines; new diagnostics: 0, resolved: 0, unchanged: 0; 1 file compared")
    );
}

#[test]
fn files_are_created_deleted_and_moved() {
    let repository = Repository::with_ty(&Project::parse("//- /a.py\nx = 1\n//- /gone.py\ny = 1\n"));
    let before = repository.tree();
    let zero = json!({"line": 0, "character": 0});
    let edit = json!({"documentChanges": [
        {"kind": "rename", "oldUri": "a.py", "newUri": "pkg/a%20b.py"},
        {"kind": "create", "uri": "new.py"},
        {"textDocument": {"uri": "new.py", "version": null}, "edits": [
            {"range": {"start": zero, "end": zero}, "newText": "z = 1\n", "annotationId": "why"},
        ]},
        {"kind": "delete", "uri": "gone.py"},
    ], "changeAnnotations": {"why": {"label": "because"}}});
    let dry = repository.run_with_edit(&["apply", "-", "--json"], edit.to_string()).answer();
    repository.applies(dry["edits"]["diff"].as_str().unwrap());
    let told = &dry["edits"]["workspaceEdit"];
    assert_eq!(told["documentChanges"][2]["edits"][0]["annotationId"], "why");
    let made = repository.run_with_edit(&["apply", "-", "--apply", "--json"], edit.to_string()).answer();
    assert_eq!(made["edits"]["diff"], dry["edits"]["diff"]);
    let names: Vec<String> = repository.tree().into_keys().collect();
    assert_eq!(names, ["new.py", "pkg/a b.py"]);
    repository.env.lanser(["undo"]).text();
    assert_eq!(repository.tree(), before);
    // The bundle itself is an edit, while the files are unchanged.
    let again = repository.run_with_edit(&["apply", "-", "--json"], dry.to_string()).answer();
    assert_eq!(again["edits"]["diff"], dry["edits"]["diff"]);
    repository.env.write("gone.py", "y = 2\n");
    let changed =
        repository.run_with_edit(&["apply", "-", "--apply", "--allow-dirty", "--json"], dry.to_string());
    changed.error(74, "E/CONTENT_MODIFIED");
}

#[test]
fn no_edit_leaves_the_workspace() {
    let repository = Repository::with_ty(&Project::parse("//- /a.py\nx = 1\n"));
    let outside = repository.env.path("outside.py");
    std::fs::write(&outside, "secret = 1\n").unwrap();
    std::os::unix::fs::symlink(&outside, repository.env.file("link.py")).unwrap();
    std::os::unix::fs::symlink(repository.env.path(""), repository.env.file("up")).unwrap();
    repository.commit();
    let absolute = format!("file://{}", outside.to_str().unwrap());
    for uri in [
        "../outside.py",
        "a/../../outside.py",
        "%2e%2e/outside.py",
        "a%2F..%2F..%2Foutside.py",
        "link.py",
        "up/outside.py",
        "up/new.py",
        ".git/hooks/post-commit",
        ".git/config",
        "a.py%00",
        "http://x/a.py",
        absolute.as_str(),
    ] {
        let output = repository.run_with_edit(
            &["apply", "-", "--apply", "--allow-new-diagnostics", "--json"],
            insert(uri, "evil = 1\n"),
        );
        assert_eq!(failed(&output.bundle()), ["jail"], "{uri}");
        output.error(71, "E/JAIL");
        let creates =
            json!({"documentChanges": [{"kind": "create", "uri": uri, "options": {"overwrite": true}}]});
        repository
            .run_with_edit(&["apply", "-", "--apply", "--json"], creates.to_string())
            .error(71, "E/JAIL");
    }
    for name in ["../outside.py", "up/outside.py", "link.py", ".git/config"] {
        let patch = format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-secret = 1\n+secret = 2\n");
        repository.run_with_edit(&["apply", "-", "--apply", "--json"], patch).error(71, "E/JAIL");
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret = 1\n");
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
}

#[test]
fn unreadable_and_unfitting_edits_are_refused() {
    let repository = Repository::with_ty(&Project::parse("//- /a.py\nx = 1\ny = 2\n"));
    for (edit, part) in [
        ("hello", "not a unified diff"),
        ("\n", "line 1 of the diff: it is empty"),
        ("diff --git a/a.py b/a.py\nGIT binary patch\n", "the bundle of the preview"),
        ("{}", "neither"),
        ("{\"changes\": 3}", "cannot be parsed"),
        ("--- a.py\n+++ a.py\n@@ -1,2 +1 @@\n x\n", "line 5"),
        ("{\"documentChanges\":[{\"kind\":\"move\"}]}", "move"),
    ] {
        let error = repository.run_with_edit(&["check", "-", "--json"], edit).error(2, "E/USAGE");
        assert!(error["message"].as_str().unwrap().contains(part), "{edit}: {error}");
    }
    let conflict = "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 3\n+y = 4\n";
    let error = repository.run_with_edit(&["apply", "-", "--json"], conflict).error(70, "E/APPLY_CONFLICT");
    assert_eq!(error["data"]["hunks"][0]["ours"], "x = 1\ny = 2\n");
    let edits = |from: u32, to: u32| json!({"range": {"start": {"line": 0, "character": from}, "end": {"line": 0, "character": to}}, "newText": "z"});
    let overlap = json!({"changes": {"a.py": [edits(0, 3), edits(2, 5)]}}).to_string();
    let output = repository.run_with_edit(&["apply", "-", "--json"], overlap);
    assert_eq!(failed(&output.bundle()), ["overlap"]);
    output.error(78, "E/UNSAFE_EDIT");
    let bundle = repository.run_with_edit(&["apply", "-", "--apply", "--json"], insert("missing.py", "x"));
    bundle.error(70, "E/APPLY_CONFLICT");
}

#[test]
fn imports_are_put_in_order() {
    let repository = Repository::new(&Project::parse("//- /a.py\nimport sys\nimport os\n\nprint(os, sys)\n"));
    let listed = repository.env.lanser(["actions", "a.py:1:1", "--json"]).answer();
    let titles: Vec<_> =
        listed["facts"]["actions"].as_array().unwrap().iter().map(|action| action["title"].clone()).collect();
    assert!(titles.contains(&"Organize imports".into()), "{titles:?}");
    let dry = repository.plan(&["actions", "a.py:1:1", "--run", "Organize imports"]);
    assert!(dry["edits"]["diff"].as_str().unwrap().contains("+import os\n import sys\n-import os"), "{dry}");
    let made = repository.env.lanser(["actions", "a.py:1:1", "--run", "Organize imports", "--apply"]);
    assert!(made.text().contains("wrote 1 file"));
    assert_eq!(
        std::fs::read_to_string(repository.env.file("a.py")).unwrap(),
        "import os\nimport sys\n\nprint(os, sys)\n"
    );
    repository.env.lanser(["actions", "a.py:1:1", "--run", "Nonsense", "--json"]).error(3, "E/NOT_FOUND");
}

#[test]
fn concurrent_changes_are_merged_or_reported() {
    let repository = Repository::with_ty(&Project::parse(
        "//- /a.py\nfirst = 1\n\n\n\n\n\n\ndef old(): ...\n\n\n\n\n\n\nold()\n",
    ));
    let plan = repository.plan(&["rename", "py://a#old", "renamed"]);
    let text = std::fs::read_to_string(repository.env.file("a.py")).unwrap();
    repository.env.write("a.py", text.replace("first = 1", "first = 2"));
    repository.commit();
    let bring = |args: &[&str]| repository.run_with_edit(args, plan.to_string());
    bring(&["apply", "-", "--apply", "--json"]).error(74, "E/CONTENT_MODIFIED");
    bring(&["apply", "-", "--apply", "--strategy", "3way", "--json"]).answer();
    let now = std::fs::read_to_string(repository.env.file("a.py")).unwrap();
    assert_eq!(now, text.replace("first = 1", "first = 2").replace("old", "renamed"));
    repository.env.lanser(["undo"]).text();
    repository.env.write("a.py", text.replace("def old(): ...", "def old(): pass"));
    repository.commit();
    let error =
        bring(&["apply", "-", "--apply", "--strategy", "3way", "--json"]).error(70, "E/APPLY_CONFLICT");
    let hunk = &error["data"]["hunks"][0];
    assert_eq!(hunk["ours"], "def old(): pass\n", "{error}");
    assert_eq!(
        (&hunk["theirs"], &hunk["base"]),
        (&"def renamed(): ...\n".into(), &"def old(): ...\n".into())
    );
}

#[test]
fn excluded_files_are_renamed_too() {
    let project = Project::parse(
        "//- /pyrightconfig.json\n{\"include\": [\"src\"]}\n//- /src/m.py\ndef old(): ...\n//- /tests/t.py\nfrom m import old\nold()\n",
    );
    let repository = Repository::with_ty(&project);
    let bundle = repository.plan(&["rename", "py://m#old", "renamed"]);
    assert_eq!(bundle["edits"]["files"].as_array().unwrap().len(), 2, "{bundle}");
    assert_eq!(failed(&bundle), [""; 0]);
}

/// Diffs as models write them: hunk headers without or with wrong numbers, context from memory.
#[test]
fn diffs_that_do_not_quite_fit() {
    let text = "def f():\n    a = 1\n    b = 2\n    return a\n\n\ndef g():\n    return 2\n";
    let repository = Repository::with_ty(&Project::default().and("m.py", text));
    let before = repository.tree();
    let apply = |hunks: &str| {
        let diff = format!("--- a/m.py\n+++ b/m.py\n{hunks}");
        repository.env.lanser_with_input(["apply", "-", "--apply", "--json"], diff)
    };
    for (hunks, note) in [
        ("@@\n     a = 1\n-    b = 2\n+    b = 3\n", "by its lines"),
        ("@@ def f():\n     a = 1\n-    b = 2\n+    b = 3\n", "by its lines"),
        ("@@ -40,9 +40,7 @@\n     a = 1\n-    b = 2\n+    b = 3\n", "by its lines"),
        ("@@ -1,3 +1,3 @@\n def h():\n     a = 1\n-    b = 2\n+    b = 3\n", "context lines"),
    ] {
        let bundle = apply(hunks).answer();
        let notes = bundle["edits"]["notes"].to_string();
        assert!(notes.contains(note), "{hunks}: {notes}");
        assert_eq!(
            std::fs::read_to_string(repository.env.file("m.py")).unwrap(),
            text.replace("b = 2", "b = 3")
        );
        repository.env.lanser(["undo"]).text();
    }
    assert_eq!(repository.tree(), before);
    // As text, the note is printed.
    let diff = "--- a/m.py\n+++ b/m.py\n@@\n-    b = 2\n+    b = 3\n";
    assert!(
        repository.env.lanser_with_input(["apply", "-"], diff).text().contains("note: the hunk in line 3")
    );
    // What does not fit is shown beside what the file has.
    let error = apply("@@ -1,4 +1,4 @@\n def f():\n     a = 1\n-    b = 4\n+    b = 3\n     return a\n")
        .error(70, "E/APPLY_CONFLICT");
    let hunk = &error["data"]["hunks"][0];
    assert_eq!(
        (&hunk["at"], &hunk["expected"], &hunk["found"]),
        (&3.into(), &"    b = 4\n".into(), &"    b = 2\n".into())
    );
    assert!(error["message"].as_str().unwrap().contains("`    b = 2`, not `    b = 4`"), "{error}");
    // A line that stands in two places shows no place.
    apply("@@\n-    return 2\n+    return 3\n@@\n").error(2, "E/USAGE");
    let twice = "x = 1\nx = 1\n";
    repository.env.write("m.py", twice);
    repository.commit();
    apply("@@\n-x = 1\n+x = 2\n").error(70, "E/APPLY_CONFLICT");
}
