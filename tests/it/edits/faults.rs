//! Applying a saved plan after the files changed, and a very large plan. Refusals by the operating system, call by call, are
//! tested in the transaction module.

use serde_json::{Value, json};

use super::Repository;
use crate::support::Project;

fn repository() -> Repository {
    Repository::with_ty(&Project::parse(
        "//- /a.py\nfrom sub.b import old\nprint(old)\n//- /sub/__init__.py\n//- /sub/b.py\nold = 1\n",
    ))
}

/// Plans a rename in two files, runs `meanwhile`, and applies the plan. Asserts that nothing is written and no journal or
/// temporary file remains; returns the error.
#[track_caller]
fn refused(repository: &Repository, meanwhile: impl FnOnce(), code: i32) -> Value {
    let plan = repository.plan(&["rename", "py://sub.b#old", "renamed"]);
    assert_eq!(plan["edits"]["files"].as_array().unwrap().len(), 2);
    meanwhile();
    let before = repository.tree();
    let args = ["apply", "-", "--apply", "--allow-dirty", "--allow-new-diagnostics", "--json"];
    let output = repository.env.lanser_with_input(args, plan.to_string());
    assert_eq!(output.code, Some(code), "{output}");
    assert_eq!(repository.tree(), before);
    let journals = repository.journals();
    assert!(["open", "new", "closing"].iter().all(|name| !journals.join(name).exists()));
    output.bundle()["error"].clone()
}

#[test]
fn links_swapped_in_are_not_followed() {
    let repository = repository();
    let outside = repository.env.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("b.py"), "old = 1\n").unwrap();
    std::fs::write(outside.join("__init__.py"), "").unwrap();
    // The file, replaced by a link to the same text elsewhere.
    let file = repository.env.file("sub/b.py");
    let swap_file = || {
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(outside.join("b.py"), &file).unwrap();
    };
    let error = refused(&repository, swap_file, 71);
    assert_eq!(error["symbol"], "E/JAIL", "{error}");
    repository.git(&["checkout", "-q", "."]);
    // The folder.
    let folder = repository.env.file("sub");
    let swap_folder = || {
        std::fs::rename(&folder, repository.env.path("aside")).unwrap();
        std::os::unix::fs::symlink(&outside, &folder).unwrap();
    };
    let error = refused(&repository, swap_folder, 71);
    assert_eq!(error["symbol"], "E/JAIL", "{error}");
    assert_eq!(std::fs::read_to_string(outside.join("b.py")).unwrap(), "old = 1\n");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 2);
    assert_eq!(std::fs::read_to_string(repository.env.path("aside/b.py")).unwrap(), "old = 1\n");
}

#[test]
fn missing_and_changed_files_are_reported() {
    let repository = repository();
    let vanish = || std::fs::remove_dir_all(repository.env.file("sub")).unwrap();
    let error = refused(&repository, vanish, 70);
    assert!(error["message"].as_str().unwrap().contains("sub/b.py"), "{error}");
    repository.git(&["checkout", "-q", "."]);
    let change = || repository.env.write("sub/b.py", "old = 2\n");
    let error = refused(&repository, change, 74);
    assert_eq!(error["data"]["paths"], json!(["sub/b.py"]), "{error}");
    repository.git(&["checkout", "-q", "."]);
    let replace = || {
        std::fs::remove_file(repository.env.file("sub/b.py")).unwrap();
        std::fs::create_dir(repository.env.file("sub/b.py")).unwrap();
    };
    let error = refused(&repository, replace, 70);
    assert!(error["message"].as_str().unwrap().contains("is a folder"), "{error}");
}

#[test]
fn ten_thousand_files_are_one_transaction() {
    let repository = Repository::with_ty(&Project::parse("//- /a.py\nx = 1\n"));
    let name = |n: usize| format!("data/{}/{n}.txt", n % 100);
    let zero = json!({"line": 0, "character": 0});
    let edit = json!([{"range": {"start": zero, "end": zero}, "newText": "new\n"}]);
    let mut changes = serde_json::Map::new();
    for n in 0..10_000 {
        repository.env.write(&name(n), format!("{n}\n"));
        changes.insert(name(n), edit.clone());
    }
    repository.commit();
    let before = repository.tree();
    let edit = json!({"changes": changes}).to_string();
    let made = repository.env.lanser_with_input(["apply", "-", "--apply", "--json"], &edit).answer();
    assert_eq!(made["edits"]["transaction"]["files"], 10_000);
    let after = repository.tree();
    assert_eq!(after.len(), before.len(), "nothing else lies about");
    assert!((0..10_000).all(|n| after[&name(n)] == format!("new\n{n}\n").into_bytes()));
    // One changed file prevents undo of all.
    repository.env.write(&name(5_000), "mine\n");
    repository.env.lanser(["undo", "--json"]).error(70, "E/APPLY_CONFLICT");
    repository.env.write(&name(5_000), "new\n5000\n");
    assert_eq!(repository.tree(), after);
    repository.env.lanser(["undo"]).text();
    assert_eq!(repository.tree(), before);
}
