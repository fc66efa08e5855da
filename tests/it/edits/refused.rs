//! Checks that stop an edit: each with its name, its exit code, and the option that overrides it.

use super::Repository;
use crate::support::{Project, TestEnv};

#[test]
fn invalid_and_taken_names() {
    let shop = Repository::shop_with_ty();
    let add = "py://shop.stock#Stock.add";
    for (selector, new, check) in [
        (add, "class", "identifier"),
        (add, "not valid!", "identifier"),
        (add, "1st", "identifier"),
        (add, "match", "shadowing"),
        ("py://shop.stock#total", "len", "shadowing"),
        (add, "remove", "collision"),
        (add, "color", "collision"),
        (add, "size", "collision"),
        ("py://shop.stock#total", "Stock", "collision"),
        // Bound in a file that imports it.
        ("py://shop.stock#total", "run", "collision"),
        // A parameter of the same function, and a local variable of it.
        ("shop/stock.py:9:19", "note", "collision"),
        ("shop/stock.py:9:19", "number", "collision"),
    ] {
        let failed = shop.failed_checks(&["rename", selector, new], 78);
        assert!(failed.iter().any(|name| name == check), "{selector} {new}: {failed:?}");
    }
    // A method may have the name of a builtin, which is never looked up after a dot.
    let bundle = shop.plan(&["rename", add, "insert_all"]);
    assert_eq!(super::failed(&bundle), [""; 0]);
}

#[test]
fn an_override_covers_exactly_one_check() {
    let shop = Repository::shop();
    let rename = ["rename", "py://shop.stock#Stock.add", "class", "--allow-invalid-name"];
    // The result is not valid Python, which is another check.
    assert_eq!(shop.failed_checks(&rename, 78), ["diagnostics", "roundTrip"]);
    shop.env.write("other.txt", "x");
    // Uncommitted changes stop it before the server is asked; a preview makes all checks and ends with the same code.
    assert_eq!(shop.failed_checks(&rename, 77), ["git"]);
    let preview = shop.env.lanser(rename.iter().chain(&["--json"]));
    assert_eq!(super::failed(&preview.bundle()), ["git", "diagnostics", "roundTrip"]);
    preview.error(77, "E/DIRTY_WORKTREE");
}

#[test]
fn a_derived_class_with_the_name_stops_a_rename() {
    let shop = Repository::shop_with_ty();
    let failed = shop.failed_checks(&["rename", "py://shop.stock#Stock.remove", "take"], 78);
    assert!(failed.contains(&"overrides".to_owned()), "{failed:?}");
    let failed = shop.failed_checks(&["rename", "py://shop.stock#Cellar.remove", "take"], 78);
    assert!(failed.contains(&"overrides".to_owned()), "{failed:?}");
    // The override is recorded, and the other checks still count.
    let bundle = shop.env.lanser([
        "rename",
        "py://shop.stock#Cellar.remove",
        "take",
        "--apply",
        "--allow-broken-overrides",
        "--json",
    ]);
    let bundle = bundle.answer();
    let checks = bundle["edits"]["safety"].as_array().unwrap();
    let overridden: Vec<_> = checks.iter().filter(|check| check["overridden"] == true).collect();
    assert_eq!(overridden.len(), 1, "{bundle}");
    assert_eq!(overridden[0]["name"], "overrides");
    assert!(bundle["edits"]["transaction"]["id"].is_string());
}

#[test]
fn uncommitted_changes() {
    let shop = Repository::shop_with_ty();
    let rename = ["rename", "py://shop.stock#Stock.add", "put"];
    let with = |more: &'static str| {
        let mut args: Vec<&str> = rename.to_vec();
        args.push(more);
        args
    };
    shop.env.write("other.txt", "x");
    assert_eq!(shop.failed_checks(&rename, 77), ["git"]);
    assert_eq!(shop.failed_checks(&with("--allow-dirty=none"), 77), ["git"]);
    let dry = shop.env.lanser(with("--allow-dirty=elsewhere").iter().chain(&["--json"])).answer();
    assert_eq!(super::failed(&dry), [""; 0]);
    let use_py = std::fs::read_to_string(shop.env.file("shop/use.py")).unwrap();
    shop.env.write("shop/use.py", format!("{use_py}# mine\n"));
    assert_eq!(shop.failed_checks(&with("--allow-dirty=elsewhere"), 77), ["git"]);
    let error = shop.env.lanser(with("--allow-dirty=elsewhere").iter().chain(&["--apply", "--json"]));
    assert_eq!(error.error(77, "E/DIRTY_WORKTREE")["data"]["paths"][0], "shop/use.py");
    let made = shop.env.lanser(with("--allow-dirty").iter().chain(&["--apply", "--json"])).answer();
    assert!(made["edits"]["transaction"]["id"].is_string());
    let now = std::fs::read_to_string(shop.env.file("shop/use.py")).unwrap();
    assert!(now.ends_with("# mine\n") && now.contains("stock.put("));
}

#[test]
fn filters_and_the_configuration_of_a_workspace() {
    let shop = Repository::shop_with_ty();
    let rename = "rename py://shop.stock#Stock.add put";
    let stopped = |more: &str, code: i32| {
        let line = format!("{rename} {more}");
        shop.failed_checks(&line.split_whitespace().collect::<Vec<_>>(), code)
    };
    assert_eq!(stopped("--deny shop/use.py", 71), ["filters"]);
    assert_eq!(stopped("--allow docs --allow shop/stock.py", 71), ["filters"]);
    assert_eq!(
        super::failed(&shop.plan(&["rename", "py://shop.stock#Stock.add", "put", "--allow", "shop"])),
        [""; 0]
    );
    shop.env.write("lanser.toml", "deny = ['**/use.py']\nallow-dirty = 'all'\nworkspace-jail = false\n");
    assert_eq!(stopped("--allow shop --allow-dirty=elsewhere", 71), ["filters"]);
    // A workspace cannot loosen a guard: its own file is uncommitted.
    assert_eq!(stopped("", 77), ["git"]);
}

#[test]
fn an_uncertain_selector() {
    let project = Project::parse("//- /m.py\nif x:\n    def f(): ...\nelse:\n    def f(): ...\n");
    let repository = Repository::with_ty(&project);
    let output = repository.env.lanser(["rename", "py://m#f", "g", "--apply", "--json"]);
    output.error(4, "E/AMBIGUOUS");
}

#[test]
fn targets_outside_the_workspace() {
    let project = Project::parse("//- /m.py\nimport os\nos.getcwd()\nimport m2\n//- /m2.py\nx = 1\n");
    let repository = Repository::with_ty(&project);
    let output = repository.env.lanser(["rename", "m.py:2:5", "here", "--apply", "--json"]);
    assert_ne!(output.code, Some(0), "{output}");
    repository.env.lanser(["rename", "m.py:3:8", "m3", "--apply", "--json"]).error(72, "E/UNSUPPORTED_CAP");
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_new_diagnostic_stops_what_other_checks_miss() {
    let project = Project::parse(
        "\
//- /proto.py
from typing import Protocol
class Closes(Protocol):
    def close(self) -> None: ...
def end(it: Closes) -> None: it.close()
//- /thing.py
class Thing:
    def close(self) -> None: ...
//- /main.py
from proto import end
from thing import Thing
end(Thing())
",
    );
    let repository = Repository::with_ty(&project);
    let failed = repository.failed_checks(&["rename", "py://thing#Thing.close", "shut"], 78);
    // The call through the protocol keeps its name, and the object that is passed no longer fits.
    assert_eq!(failed, ["completeness", "diagnostics"]);
}

/// The protocol is in ty's stubs, which are in its program; an empty environment has no other copy of them.
#[test]
fn an_object_has_to_match_a_protocol_of_the_standard_library() {
    let project = Project::parse(
        "\
//- /thing.py
class Thing:
    def read(self, n: int = -1) -> str: return \"\"
def make() -> Thing: return Thing()
//- /main.py
import json
from thing import make
json.load(make())
",
    );
    let mut repository = Repository::with_ty(&project);
    let environment = repository.env.path("environment");
    let made = repository.env.run("python3", ["-m", "venv", "--without-pip", environment.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{made}");
    repository.env.set("VIRTUAL_ENV", &environment);
    let rename = ["rename", "py://thing#Thing.read", "fetch"];
    assert_eq!(repository.failed_checks(&rename, 78), ["diagnostics"]);
}

#[test]
fn importing_files_are_checked_before_others() {
    let mut project = Project::parse(
        "\
//- /zz/proto.py
from typing import Protocol
class Closes(Protocol):
    def close(self) -> None: ...
def end(it: Closes) -> None: it.close()
//- /zz/thing.py
class Thing:
    def close(self) -> None: ...
//- /zz/main.py
from zz.proto import end
from zz.thing import Thing
end(Thing())
",
    );
    for number in 0..125 {
        project = project.and(&format!("aa/m{number}.py"), "# close it\n");
    }
    let repository = Repository::with_ty(&project);
    let rename = ["rename", "py://zz.thing#Thing.close", "shut"];
    assert_eq!(repository.failed_checks(&rename, 78), ["completeness", "diagnostics"]);
    let shown = repository.env.lanser(rename);
    let text = &shown.stdout;
    assert!(text.contains("new diagnostics: 1, unchanged: 0; 121 files compared, 7 left out"), "{text}");
}

#[test]
fn files_that_are_not_compared_stop_a_rename() {
    let mut project = Project::parse(
        "\
//- /thing.py
class Thing:
    def close(self) -> None: ...
",
    );
    for number in 0..125 {
        project = project.and(&format!("m{number}.py"), "import thing\nt = thing.Thing()\n");
    }
    let repository = Repository::new(&project);
    let rename = ["rename", "py://thing#Thing.close", "shut"];
    assert_eq!(repository.failed_checks(&rename, 78), ["diagnostics"]);
    let shown = repository.env.lanser(rename);
    let hint =
        "hint: to compare all of them: lanser rename 'py://thing#Thing.close' shut --check importers\n";
    assert!(shown.stderr.contains("5 more files that could be affected not compared"), "{shown}");
    assert!(shown.stderr.ends_with(hint), "{shown}");
    let (planned, _) = repository.plan_apply_undo(&[&rename[..], &["--check", "importers"]].concat());
    assert_eq!(planned["edits"]["diagnostics"]["files_checked"], 126);
}

/// In Python a name is one variable in its scope, whatever binds it there. ty knows each binding for itself.
#[test]
fn a_variable_is_renamed_as_a_whole_or_not_at_all() {
    let repository = Repository::of(TestEnv::ty(&Project::parse(
        "\
//- /m.py
def price(): ...
def rate(): ...
//- /again.py
from m import price
def price(): ...
price()
//- /late.py
def load():
    global rate
    from m import rate
def use():
    rate()
",
    )));
    for (selector, check, place) in
        [("py://m#price", "collision", "again.py@L2:C5"), ("py://m#rate", "completeness", "late.py@L2:C12")]
    {
        let output = repository.env.lanser(["rename", selector, "renamed", "--json"]);
        let checks = output.bundle()["edits"]["safety"].as_array().unwrap().clone();
        let failed = checks.iter().find(|one| one["name"] == check).unwrap();
        assert_eq!(failed["passed"], false, "{output}");
        assert_eq!(failed["locations"], serde_json::json!([place]), "{output}");
    }
    let renamed =
        repository.env.lanser(["rename", "py://m#rate", "renamed", "--include", "unresolved", "--apply"]);
    assert_eq!(renamed.code, Some(0), "{renamed}");
    assert_eq!(
        std::fs::read_to_string(repository.env.file("late.py")).unwrap(),
        "def load():\n    global renamed\n    from m import renamed\ndef use():\n    renamed()\n"
    );
}
