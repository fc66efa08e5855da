//! Guards that apply to every way of making an edit: a failed plan stays failed, filters and the workspace boundary also bind
//! `undo`, and an error reports the first failed check.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{Repository, failed};
use crate::support::{Project, portable};

impl Repository {
    fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.env.file(name)).unwrap().permissions().mode() & 0o777
    }

    fn chmod(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.env.file(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn check(&self, bundle: &Value, name: &str) -> Value {
        let checks = bundle["edits"]["safety"].as_array().unwrap();
        let found: Vec<&Value> = checks.iter().filter(|check| check["name"] == name).collect();
        assert_eq!(found.len(), 1, "{name} is recorded once: {bundle}");
        found[0].clone()
    }
}

fn append(uri: &str, line: u32, text: &str) -> String {
    let at = json!({"line": line, "character": 0});
    json!({"changes": {uri: [{"range": {"start": at, "end": at}, "newText": text}]}}).to_string()
}

#[test]
fn a_plan_that_failed_stays_failed() {
    let shop = Repository::shop_with_ty();
    let plan = shop.plan(&["rename", "py://shop.stock#Stock.add", "color"]);
    assert!(failed(&plan).contains(&"collision".to_owned()), "{plan}");
    let before = shop.tree();
    let bring = |more: &[&str]| {
        shop.env.lanser_with_input([&["apply", "-", "--apply", "--json"], more].concat(), plan.to_string())
    };
    // New diagnostics may be overridden now; the failed check of the plan may not.
    let stopped = bring(&["--allow-new-diagnostics"]);
    assert!(failed(&stopped.bundle()).contains(&"collision".to_owned()), "{stopped}");
    stopped.error(78, "E/UNSAFE_EDIT");
    assert_eq!(shop.tree(), before);
    let more: Vec<String> = failed(&plan)
        .iter()
        .filter_map(|name| match name.as_str() {
            "collision" => Some("--allow-collision"),
            "roundTrip" => Some("--allow-changed-references"),
            "completeness" => Some("--allow-incomplete"),
            _ => None,
        })
        .map(str::to_owned)
        .collect();
    let mut more: Vec<&str> = more.iter().map(String::as_str).collect();
    more.push("--allow-new-diagnostics");
    let made = bring(&more).answer();
    assert_eq!(shop.check(&made, "collision")["overridden"], true);
    shop.env.lanser(["undo"]).text();
    assert_eq!(shop.tree(), before);
    // An override of the plan does not count when it is applied.
    let args = ["rename", "py://shop.stock#Stock.add", "color", "--allow-collision", "--json"];
    let plan = shop.env.lanser(args).plan();
    let stopped = shop
        .env
        .lanser_with_input(["apply", "-", "--apply", "--allow-new-diagnostics", "--json"], plan.to_string());
    assert!(failed(&stopped.bundle()).contains(&"collision".to_owned()), "{stopped}");
}

#[test]
fn an_edit_without_a_base_applies_to_the_current_text() {
    let lines = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n";
    let repository = Repository::with_ty(&Project::parse(&format!("//- /m.py\n{lines}")));
    // Two lines more than in the last commit: line 4 is now `c = 3`.
    repository.env.write("m.py", format!("x = 0\ny = 0\n{lines}"));
    let at = |character: u32| json!({"line": 4, "character": character});
    let edit = json!({"changes": {"m.py": [{"range": {"start": at(0), "end": at(1)}, "newText": "z"}]}});
    for strategy in ["rename", "3way"] {
        let args = ["apply", "-", "--apply", "--allow-dirty", "--strategy", strategy, "--json"];
        repository.env.lanser_with_input(args, edit.to_string()).answer();
        let now = std::fs::read_to_string(repository.env.file("m.py")).unwrap();
        assert_eq!(now, format!("x = 0\ny = 0\n{}", lines.replace("c = 3", "z = 3")), "{strategy}");
        repository.env.lanser(["undo"]).text();
    }
    // A diff that fits the current text is applied to it; one that only fits the last commit is merged.
    let fits = "--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,2 @@\n-x = 0\n+x = 9\n y = 0\n";
    let args = ["apply", "-", "--apply", "--allow-dirty", "--strategy", "3way", "--json"];
    repository.env.lanser_with_input(args, fits).answer();
    let now = std::fs::read_to_string(repository.env.file("m.py")).unwrap();
    assert_eq!(now, format!("x = 9\ny = 0\n{lines}"));
    let old = "--- a/m.py\n+++ b/m.py\n@@ -1,5 +1,5 @@\n a = 1\n b = 2\n c = 3\n-d = 4\n+d = 9\n e = 5\n";
    repository.env.write("m.py", format!("{}\n\n\n", lines.replace("a = 1", "a = 7")));
    repository.env.lanser_with_input(args, old).answer();
    let now = std::fs::read_to_string(repository.env.file("m.py")).unwrap();
    assert_eq!(now, format!("{}\n\n\n", lines.replace("a = 1", "a = 7").replace("d = 4", "d = 9")));
}

#[test]
fn edits_outside_the_workspace_are_recorded_and_undone() {
    let repository = Repository::with_ty(&Project::parse("//- /a.py\nx = 1\n"));
    let outside = repository.env.path("outside.py");
    std::fs::write(&outside, "y = 1\n").unwrap();
    std::os::unix::fs::symlink(&outside, repository.env.file("link.py")).unwrap();
    repository.commit();
    let bring = |more: &[&str]| {
        let args = [&["apply", "-", "--apply", "--allow-dirty", "--json"], more].concat();
        repository.env.lanser_with_input(args, append("link.py", 0, "z = 1\n"))
    };
    let error = bring(&[]).error(71, "E/JAIL");
    assert!(error["hint"].as_str().unwrap().contains("--workspace-jail=false"), "{error}");
    let made = bring(&["--workspace-jail=false"]).answer();
    let jail = repository.check(&made, "jail");
    assert_eq!((&jail["passed"], &jail["overridden"]), (&false.into(), &true.into()), "{jail}");
    assert_eq!(jail["locations"], json!(["link.py"]));
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "z = 1\ny = 1\n");
    // Undo writes outside, too.
    let error = repository.env.lanser(["undo", "--json"]).error(71, "E/JAIL");
    assert!(error["hint"].as_str().unwrap().contains("--workspace-jail=false"), "{error}");
    repository.env.lanser(["undo", "--workspace-jail=false"]).text();
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "y = 1\n");
    // Some paths cannot be allowed by any option.
    for uri in ["../outside.py", ".git/config", "a.py%00"] {
        let args = ["apply", "-", "--apply", "--workspace-jail=false", "--json"];
        repository.env.lanser_with_input(args, append(uri, 0, "evil\n")).error(71, "E/JAIL");
    }
}

#[test]
fn filters_bind_undo_as_well() {
    let repository = Repository::with_ty(&Project::parse("//- /src/a.py\nx = 1\n"));
    let before = repository.tree();
    repository
        .env
        .lanser_with_input(["apply", "-", "--apply", "--json"], append("src/a.py", 0, "y = 1\n"))
        .answer();
    let made = repository.tree();
    for filter in [["--deny", "src"], ["--allow", "docs"]] {
        let error = repository.env.lanser(["undo", "--json", filter[0], filter[1]]).error(71, "E/JAIL");
        assert_eq!(error["data"]["paths"], json!(["src/a.py"]), "{error}");
        assert_eq!(repository.tree(), made);
    }
    repository.env.lanser(["undo", "--allow", "src/*.py", "--deny", "docs"]).text();
    assert_eq!(repository.tree(), before);
}

#[test]
fn globs_are_of_paths_in_the_workspace() {
    let repository =
        Repository::with_ty(&Project::parse("//- /src/a.py\nx = 1\n//- /src/deep/b.py\nx = 1\n"));
    let root = repository.env.cwd.to_str().unwrap().to_owned();
    let stops = |uri: &str, option: &str, glob: &str| {
        let output = repository
            .env
            .lanser_with_input(["apply", "-", "--json", option, glob], append(uri, 0, "y = 1\n"))
            .plan();
        assert!(!portable(&output).contains(&root), "{output}");
        failed(&output) == ["filters"]
    };
    let (shallow, deep) = ("src/a.py", "src/deep/b.py");
    for (option, glob, stops_shallow, stops_deep) in [
        ("--deny", "src/*.py", true, false),
        ("--allow", "./src/deep,src/{b,a}.py", false, false),
        ("--allow", &format!("{root}/src/deep/"), true, false),
        ("--deny", &root, true, true),
    ] {
        assert_eq!(stops(shallow, option, glob), stops_shallow, "{option} {glob} {shallow}");
        assert_eq!(stops(deep, option, glob), stops_deep, "{option} {glob} {deep}");
    }
    for glob in ["../x", "/elsewhere/**", "a["] {
        let error = repository
            .env
            .lanser_with_input(["apply", "-", "--json", "--deny", glob], append(shallow, 0, "y = 1\n"))
            .error(2, "E/USAGE");
        assert!(error["hint"].is_string(), "{error}");
    }
}

#[test]
fn a_diff_can_set_the_executable_bit() {
    let repository = Repository::with_ty(&Project::parse("//- /run.py\nx = 1\n//- /old.py\nx = 1\n"));
    let before = repository.tree();
    let patch = "\
diff --git a/new.py b/new.py
new file mode 100755
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+x = 1
diff --git a/old.py b/moved.py
old mode 100644
new mode 100755
similarity index 100%
rename from old.py
rename to moved.py
diff --git a/run.py b/run.py
old mode 100644
new mode 100755
--- a/run.py
+++ b/run.py
@@ -1 +1 @@
-x = 1
+x = 2
";
    let dry = repository.env.lanser_with_input(["apply", "-", "--json"], patch).answer();
    let diff = dry["edits"]["diff"].as_str().unwrap();
    repository.applies(diff);
    assert_eq!(diff.matches("new mode 100755").count(), 2, "{diff}");
    assert!(diff.contains("new file mode 100755"), "{diff}");
    repository.env.lanser_with_input(["apply", "-", "--apply", "--json"], patch).answer();
    let modes = |names: &[&str]| names.iter().map(|name| repository.mode(name)).collect::<Vec<_>>();
    assert_eq!(modes(&["new.py", "moved.py", "run.py"]), [0o755; 3]);
    repository.env.lanser(["undo"]).text();
    assert_eq!(repository.tree(), before);
    assert_eq!(modes(&["old.py", "run.py"]), [0o644; 2]);
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    // The other way round, for a file that only its owner can read.
    repository.chmod("run.py", 0o700);
    repository.commit();
    let back = "diff --git a/run.py b/run.py\nold mode 100755\nnew mode 100644\n--- a/run.py\n+++ b/run.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n";
    repository.env.lanser_with_input(["apply", "-", "--apply", "--json"], back).answer();
    assert_eq!(repository.mode("run.py"), 0o600);
    repository.env.lanser(["undo"]).text();
    assert_eq!(repository.mode("run.py"), 0o700);
    // A change of only the mode is reported.
    let only = "diff --git a/old.py b/old.py\nold mode 100644\nnew mode 100755\n";
    let error =
        repository.env.lanser_with_input(["apply", "-", "--json"], only).error(70, "E/APPLY_CONFLICT");
    assert!(error["message"].as_str().unwrap().contains("executable"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("chmod"), "{error}");
}

#[test]
fn the_first_failed_check_is_reported() {
    let shop = Repository::shop_with_ty();
    // Uncommitted changes of an edited file (77) and a name that is taken (78), which comes first.
    shop.env.write(
        "shop/use.py",
        format!("{}# mine\n", std::fs::read_to_string(shop.env.file("shop/use.py")).unwrap()),
    );
    let args = ["rename", "py://shop.stock#total", "Stock", "--allow-dirty=elsewhere", "--apply", "--json"];
    let output = shop.env.lanser(args);
    let names = failed(&output.bundle());
    assert!(names.len() > 1 && names.contains(&"git".to_owned()), "{names:?}");
    let error = output.error(78, "E/UNSAFE_EDIT");
    let first = shop.check(&output.bundle(), &names[0]);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(first["detail"].as_str().unwrap()), "{message}");
    assert!(names[1..].iter().all(|name| message.contains(name.as_str())), "{message}");
    shop.git(&["checkout", "-q", "."]);
    // A read-only file (71) that a filter stops as well (71, another symbol), before a dirty one (77).
    shop.chmod("shop/stock.py", 0o444);
    shop.env.write("README.md", "mine\n");
    let edit = append("shop/stock.py", 0, "y = 1\n");
    let error =
        shop.env.lanser_with_input(["apply", "-", "--apply", "--json"], &edit).error(71, "E/FS_PERMISSIONS");
    assert!(error["message"].as_str().unwrap().contains("read-only"), "{error}");
    let args = ["apply", "-", "--apply", "--json", "--deny", "shop"];
    let error = shop.env.lanser_with_input(args, &edit).error(71, "E/JAIL");
    assert!(error["message"].as_str().unwrap().contains("--deny"), "{error}");
}

#[test]
fn a_hard_link_is_refused_with_a_hint() {
    let repository = Repository::with_ty(&Project::parse("//- /a.py\nx = 1\n"));
    std::fs::hard_link(repository.env.file("a.py"), repository.env.path("other.py")).unwrap();
    let bring = |more: &[&str]| {
        let args = [&["apply", "-", "--apply", "--json"], more].concat();
        repository.env.lanser_with_input(args, append("a.py", 0, "y = 1\n"))
    };
    let error = bring(&[]).error(78, "E/UNSAFE_EDIT");
    assert!(error["hint"].as_str().unwrap().contains("--allow-hard-links"), "{error}");
    bring(&["--allow-hard-links"]).answer();
    assert_eq!(std::fs::read_to_string(repository.env.path("other.py")).unwrap(), "x = 1\n");
    std::fs::hard_link(repository.env.file("a.py"), repository.env.path("third.py")).unwrap();
    let error = repository.env.lanser(["undo", "--json"]).error(78, "E/UNSAFE_EDIT");
    assert!(error["hint"].as_str().unwrap().contains("--allow-hard-links"), "{error}");
    repository.env.lanser(["undo", "--allow-hard-links"]).text();
}

/// git can record what is changed, but not what it ignores.
#[test]
fn the_hint_says_what_git_can_record() {
    let files = "//- /a.py\nx = 1\n//- /ignored.py\nx = 1\n//- /.gitignore\nignored.py\n";
    let repository = Repository::with_ty(&Project::parse(files));
    let bring = |uri: &str| {
        let edit = append(uri, 0, "y = 1\n");
        let error = repository.env.lanser_with_input(["apply", "-", "--apply", "--json"], edit);
        error.error(77, "E/DIRTY_WORKTREE")["hint"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        bring("ignored.py"),
        "to apply the edit anyway: lanser apply EDIT --server ty --allow-dirty --apply"
    );
    repository.env.write("a.py", "x = 2\n");
    assert!(bring("a.py").starts_with("commit or stash the changes; to apply the edit anyway: "));
}

#[test]
fn an_assume_unchanged_file_is_not_clean() {
    for mark in ["--assume-unchanged", "--skip-worktree"] {
        let repository = Repository::with_ty(&Project::parse("//- /a.py\nx = 1\n//- /b.py\nx = 1\n"));
        repository.git(&["update-index", mark, "a.py"]);
        repository.env.write("a.py", "mine = 1\n");
        assert_eq!(repository.git(&["status", "--porcelain"]), "");
        let bring = |uri: &str, more: &[&str]| {
            let args = [&["apply", "-", "--apply", "--json"], more].concat();
            repository.env.lanser_with_input(args, append(uri, 0, "y = 1\n"))
        };
        let error = bring("a.py", &[]).error(77, "E/DIRTY_WORKTREE");
        assert!(error["message"].as_str().unwrap().contains("a.py"), "{mark}: {error}");
        bring("a.py", &["--allow-dirty=elsewhere"]).error(77, "E/DIRTY_WORKTREE");
        bring("b.py", &[]).answer();
        bring("a.py", &["--allow-dirty"]).answer();
    }
}

#[test]
fn folders_are_refused_with_a_hint() {
    let repository = Repository::with_ty(&Project::parse(
        "//- /pkg/__init__.py\n//- /pkg/mod.py\nx = 1\n//- /use.py\nimport pkg.mod\nfrom pkg import mod\nprint(pkg.mod.x, mod.x)\n",
    ));
    let before = repository.tree();
    for (operation, name) in [
        (json!({"kind": "rename", "oldUri": "pkg", "newUri": "other"}), "pkg"),
        (json!({"kind": "delete", "uri": "pkg", "options": {"recursive": true}}), "pkg"),
        (json!({"kind": "create", "uri": "pkg", "options": {"overwrite": true}}), "pkg"),
        (json!({"kind": "create", "uri": "new/"}), "new"),
        (json!({"kind": "rename", "oldUri": "use.py", "newUri": "pkg"}), "pkg"),
    ] {
        let edit = json!({"documentChanges": [operation]}).to_string();
        let error = repository
            .env
            .lanser_with_input(["apply", "-", "--apply", "--json"], edit)
            .error(70, "E/APPLY_CONFLICT");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("{name} is a folder")), "{message}");
        assert!(error["hint"].as_str().unwrap().contains("git mv"), "{error}");
    }
    assert_eq!(repository.tree(), before);
}

#[test]
fn a_transaction_whose_journal_is_damaged_is_listed() {
    let repository = Repository::with_ty(&Project::parse("//- /a.py\nx = 1\n"));
    let made = repository
        .env
        .lanser_with_input(["apply", "-", "--apply", "--json"], append("a.py", 0, "y = 1\n"))
        .answer();
    let id = made["edits"]["transaction"]["id"].as_str().unwrap();
    let journals = repository.journals();
    for entry in std::fs::read_dir(journals).unwrap() {
        let journal = entry.unwrap().path().join("journal");
        if journal.exists() {
            std::fs::write(journal, "nonsense").unwrap();
        }
    }
    let listed = repository.env.lanser(["undo", "--list", "--json"]).answer();
    let line = &listed["facts"]["transactions"][0];
    assert_eq!((&line["id"], &line["state"]), (&id.into(), &"damaged".into()), "{listed}");
    assert!(
        repository.env.lanser(["undo", "--list"]).text().contains(&format!("{id}  damaged  its journal"))
    );
    for args in [&["undo", "--json"][..], &["undo", id, "--json"]] {
        let error = repository.env.lanser(args).error(70, "E/APPLY_CONFLICT");
        assert!(error["message"].as_str().unwrap().contains(id), "{error}");
    }
}
