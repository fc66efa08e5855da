//! Modules and packages that are renamed and moved.

use serde_json::{Value, json};

use super::{Repository, failed};
use crate::support::{Project, TestEnv};

const PACKAGE: &str = "\
//- /pyproject.toml
[project]
name = \"x\"
[project.scripts]
run = \"pkg.old:main\"
//- /pkg/__init__.py
from . import old
from .old import main as main
__all__ = ['old', 'main']
//- /pkg/old.py
from . import helper
from .sub.deep import depth

class Size: ...

def main() -> int:
    return helper.help() + depth
//- /pkg/helper.py
def help() -> int: return 1
//- /pkg/sub/__init__.py
//- /pkg/sub/deep.py
depth = 2
def again() -> int:
    from ..old import main
    return main()
//- /pkg/sub/data.txt
not Python
//- /use.py
import pkg.old
import pkg.old as o
from pkg import old, helper
from unittest import mock

def run(x: 'pkg.old.Size') -> int:
    with mock.patch('pkg.old.main'):
        return pkg.old.main() + o.main() + old.main() + helper.help()
NAMES = ['pkg.old']
";

fn text(files: &std::collections::BTreeMap<String, Vec<u8>>, name: &str) -> String {
    String::from_utf8(files[name].clone()).unwrap()
}

#[test]
fn a_module_with_everything_that_imports_it() {
    let repository = Repository::new(&Project::parse(PACKAGE));
    let rename = ["rename", "py://pkg.old", "pkg.new"];
    // A list of names may be read by anything.
    let bundle = repository.plan(&rename);
    assert_eq!(failed(&bundle), ["completeness"]);
    let checks = bundle["edits"]["safety"].as_array().unwrap();
    let open = checks.iter().find(|check| check["name"] == "completeness").unwrap();
    assert_eq!(open["locations"], json!(["use.py@L9:C11"]));
    let (bundle, files) = repository.plan_apply_undo(&[&rename[..], &["--include", "unresolved"]].concat());
    assert!(!files.contains_key("pkg/old.py"), "{:?}", files.keys());
    assert!(text(&files, "pkg/new.py").contains("def main()"));
    assert_eq!(
        text(&files, "pkg/__init__.py"),
        "from . import new\nfrom .new import main as main\n__all__ = ['new', 'main']\n"
    );
    assert!(text(&files, "pkg/sub/deep.py").contains("from ..new import main"));
    assert!(text(&files, "pyproject.toml").contains("run = \"pkg.new:main\""));
    let user = text(&files, "use.py");
    for part in [
        "import pkg.new\n",
        "import pkg.new as o\n",
        "from pkg import new, helper\n",
        "mock.patch('pkg.new.main')",
        "pkg.new.main() + o.main() + new.main()",
        "NAMES = ['pkg.new']",
    ] {
        assert!(user.contains(part), "{part}\n{user}");
    }
    let renamed = bundle["edits"]["files"].as_array().unwrap();
    let renamed: Vec<&Value> = renamed.iter().filter(|file| file["change"] == "rename").collect();
    assert_eq!(renamed.len(), 1, "{renamed:?}");
    assert_eq!((&renamed[0]["from"], &renamed[0]["uri"]), (&"pkg/old.py".into(), &"pkg/new.py".into()));
}

#[test]
fn a_module_moves_to_another_package() {
    let repository = Repository::new(&Project::parse(PACKAGE));
    let by_path = ["move", "pkg/old.py", "pkg/sub/old.py", "--exclude", "unresolved"];
    let (_, files) = repository.plan_apply_undo(&by_path);
    let moved = text(&files, "pkg/sub/old.py");
    assert!(
        moved.starts_with("from pkg import helper\nfrom .deep import depth\n")
            || moved.starts_with("from pkg import helper\nfrom pkg.sub.deep import depth\n"),
        "{moved}"
    );
    assert!(text(&files, "pkg/__init__.py").starts_with("from .sub import old\nfrom .sub.old import main"));
    assert!(text(&files, "use.py").contains("from pkg.sub import old\nfrom pkg import helper\n"));
    assert!(text(&files, "use.py").contains("NAMES = ['pkg.old']"));
    let by_name = ["move", "py://pkg.old", "py://pkg.sub.old", "--exclude", "unresolved"];
    let (_, same) = repository.plan_apply_undo(&by_name);
    assert_eq!(same, files);
}

/// ty says in the message of an import that it cannot resolve where it searched. For the copy in which a move is checked these are
/// other folders, if the project is installed in editable mode.
#[test]
fn a_module_of_a_project_that_is_installed_in_editable_mode() {
    let project = Project::parse(
        "//- /src/pkg/__init__.py\n//- /src/pkg/a.py\nX = 1\n//- /use.py\nimport absent\nfrom pkg.a import X\nprint(X, absent)\n",
    );
    let mut env = TestEnv::ty(&project);
    let venv = env.path("venv");
    let made = env.run("python3", ["-m", "venv", "--without-pip", venv.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let lib = std::fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(lib.join("site-packages/pkg.pth"), format!("{}\n", env.file("src").display())).unwrap();
    env.set("VIRTUAL_ENV", &venv);
    let repository = Repository::of(env);
    let (_, files) = repository.plan_apply_undo(&["rename", "py://pkg.a", "pkg.b"]);
    assert_eq!(text(&files, "use.py"), "import absent\nfrom pkg.b import X\nprint(X, absent)\n");
}

#[test]
fn a_package_with_all_of_its_files() {
    let repository = Repository::new(&Project::parse(PACKAGE));
    let (_, files) = repository.plan_apply_undo(&["rename", "py://pkg.sub", "pkg.part"]);
    assert!(files.keys().all(|name| !name.starts_with("pkg/sub/")), "{:?}", files.keys());
    assert_eq!(files["pkg/part/data.txt"], b"not Python\n");
    assert!(text(&files, "pkg/old.py").contains("from .part.deep import depth"));
    let whole = ["rename", "py://pkg", "lib", "--include", "unresolved"];
    let (_, files) = repository.plan_apply_undo(&whole);
    assert!(text(&files, "use.py").starts_with("import lib.old\nimport lib.old as o\nfrom lib import old"));
    assert!(text(&files, "pyproject.toml").contains("lib.old:main"));
}

#[test]
fn moves_that_are_refused() {
    let repository = Repository::new(&Project::parse(PACKAGE));
    let refused = |args: &[&str], code: i32, symbol: &str| {
        repository.env.lanser(args.iter().chain(&["--json"])).error(code, symbol)
    };
    assert!(
        repository
            .failed_checks(&["rename", "py://pkg.old", "pkg.helper"], 78)
            .contains(&"collision".to_owned())
    );
    assert!(
        repository
            .failed_checks(&["rename", "py://pkg.old", "pkg.class"], 78)
            .contains(&"identifier".to_owned())
    );
    refused(&["rename", "py://pkg.none", "pkg.new"], 3, "E/NOT_FOUND");
    let error = refused(&["rename", "py://pkg.old", "new"], 2, "E/USAGE");
    assert!(error["hint"].as_str().unwrap().contains("pkg.new"), "{error}");
    refused(&["rename", "py://pkg", "pkg.old.pkg"], 2, "E/USAGE");
    refused(&["move", "pkg/old.py", "nowhere/old.py"], 2, "E/USAGE");
    // A token of an import may bind the module under any name.
    let error = refused(&["rename", "use.py:1:12", "new"], 72, "E/UNSUPPORTED_CAP");
    assert!(error["hint"].as_str().unwrap().contains("lanser rename py://pkg.old"), "{error}");
    // What the new place breaks is seen by the server, in a copy of the workspace.
    let project = Project::parse(
        "//- /a/__init__.py\n//- /a/m.py\nx = 1\n//- /a/n.py\ny = 1\n//- /a/1-2.py\n//- /c/__init__.py\n//- /use.py\nimport a.m\nprint(a.m.x, a.n.y)\n",
    );
    let repository = Repository::new(&project);
    assert_eq!(repository.failed_checks(&["rename", "py://a.m", "c.m"], 78), ["diagnostics"]);
    let error = repository.env.lanser(["move", "a/1-2.py", "a/x.py", "--json"]).error(2, "E/USAGE");
    assert!(error["message"].as_str().unwrap().contains("a part of its path is no name"), "{error}");
}

/// A line of a batch names a module as the command line does.
#[test]
fn a_batch_moves_modules_as_the_command_does() {
    let repository = Repository::with_ty(&Project::parse(PACKAGE));
    let plan = |name: &str, new: &str| repository.plan(&["move", name, new, "--exclude", "unresolved"]);
    let by_name = plan("py://pkg.old", "py://pkg.new")["bundleId"].clone();
    let by_path = plan("pkg/old.py", "pkg/new.py")["bundleId"].clone();
    let options = json!({"exclude": ["unresolved"]});
    let with_module = json!({"exclude": ["unresolved"], "module": "py://pkg.old"});
    let lines = [
        json!({"cmd": "move", "selector": "py://pkg.old", "newName": "py://pkg.new", "options": options}),
        json!({"cmd": "rename", "selector": "py://pkg.old", "newName": "pkg.new", "options": options}),
        json!({"cmd": "rename", "newName": "py://pkg.new", "options": with_module}),
        json!({"cmd": "rename", "selector": "pkg/old.py", "newName": "pkg/new.py", "options": options}),
        // Two modules are too many.
        json!({"cmd": "rename", "selector": "py://pkg.old", "newName": "pkg.new", "options": with_module}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let output = repository.env.lanser_with_input(["batch", "--ordered"], input);
    let bundles: Vec<Value> = output.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&Value> = bundles[..4].iter().map(|bundle| &bundle["bundleId"]).collect();
    assert_eq!(ids, [&by_name, &by_name, &by_name, &by_path]);
    assert_eq!(bundles[4]["status"], "error", "{}", bundles[4]);
}

/// What is planned can be applied later, with the same checks: the new file is on no disk when it is checked.
#[test]
fn a_planned_move_is_applied_from_its_bundle() {
    let repository = Repository::new(&Project::parse(PACKAGE));
    let rename = ["rename", "py://pkg.old", "pkg.new", "--exclude", "unresolved"];
    let plan = repository.plan(&rename);
    assert_eq!(failed(&plan), [""; 0]);
    let made =
        repository.env.lanser_with_input(["apply", "-", "--apply", "--json"], plan.to_string()).answer();
    assert_eq!(made["edits"]["diff"], plan["edits"]["diff"]);
    assert!(made["edits"]["diagnostics"]["introduced"].as_array().unwrap().is_empty(), "{made}");
    repository.env.lanser(["undo"]).text();
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
}

/// A file that an edit creates is there for the files that import it.
#[test]
fn created_files_are_checked_with_what_imports_them() {
    let repository = Repository::new(&Project::parse("//- /use.py\nprint(1)\n"));
    let diff = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x: int = 1\n--- a/use.py\n+++ b/use.py\n@@ -1 +1,2 @@\n-print(1)\n+from new import x\n+print(x + 'a')\n";
    let output = repository.env.lanser_with_input(["apply", "-", "--json"], diff);
    let bundle = output.plan();
    let introduced = bundle["edits"]["diagnostics"]["introduced"].as_array().unwrap();
    assert_eq!(introduced.len(), 1, "{introduced:?}");
    assert_eq!(introduced[0]["rule"], "reportOperatorIssue", "{introduced:?}");
}

/// What reaches a module or a name without naming it in code.
#[test]
fn places_that_only_run_time_decides() {
    let project = Project::parse(
        "\
//- /visit.py
class Visitor:
    def visit(self, kind: str) -> None:
        getattr(self, f'visit_{kind}')()
    def visit_block(self) -> None: ...
    def other(self) -> bool: return hasattr(self, 'other')
//- /pkg/__init__.py
LAZY = {'x': (__spec__.parent, '.old')}
//- /pkg/old.py
x = 1
//- /pkg/use.py
'''See pkg.old.'''
from . import old
print(old.x)
//- /pkg/run.py
//- /docs/api.md
`pkg.old` has it.
",
    );
    let repository = Repository::new(&project);
    let bundle = repository.plan(&["rename", "py://visit#Visitor.visit_block", "visit_body"]);
    assert_eq!(failed(&bundle), ["completeness"]);
    let excluded = repository.plan(&[
        "rename",
        "py://visit#Visitor.visit_block",
        "visit_body",
        "--exclude",
        "unresolved",
    ]);
    assert_eq!(failed(&excluded), [""; 0]);
    let bundle = repository.plan(&["rename", "py://visit#Visitor.other", "another"]);
    let diff = bundle["edits"]["diff"].as_str().unwrap();
    assert!(failed(&bundle) == ["completeness"] || diff.contains("hasattr(self, 'another')"), "{diff}");
    let bundle = repository.plan(&["rename", "py://pkg.old", "pkg.new"]);
    assert_eq!(failed(&bundle), ["completeness"]);
    let kinds = &bundle["edits"]["residue"]["kinds"];
    assert_eq!((&kinds["document"], &kinds["string"]), (&1.into(), &1.into()), "{kinds}");
    let (_, files) =
        repository.plan_apply_undo(&["rename", "py://pkg.old", "pkg.new", "--include", "unresolved"]);
    assert!(text(&files, "pkg/__init__.py").contains("(__spec__.parent, '.new')"));
    // A package cannot have a submodule and a member of one name.
    let project = Project::parse(
        "//- /pkg/__init__.py\ndef run() -> int: return 1\ndef go() -> int: return 2\n//- /pkg/main.py\n//- /pkg/there.py\n",
    );
    let repository = Repository::new(&project);
    let taken = repository.failed_checks(&["rename", "py://pkg.main", "pkg.run"], 78);
    assert!(taken.contains(&"collision".to_owned()), "{taken:?}");
    let taken = repository.failed_checks(&["rename", "py://pkg#go", "there"], 78);
    assert!(taken.contains(&"collision".to_owned()), "{taken:?}");
    assert!(repository.failed_checks(&["rename", "py://pkg", "json"], 78).contains(&"collision".to_owned()));
}

#[test]
fn linked_folders_are_not_moved() {
    let repository = Repository::new(&Project::parse(
        "//- /pkg/__init__.py\n//- /pkg/sub/__init__.py\n//- /shared/k.py\n",
    ));
    std::os::unix::fs::symlink("../../shared", repository.env.file("pkg/sub/link")).unwrap();
    repository.commit();
    repository.env.lanser(["rename", "py://pkg.sub", "pkg.part", "--apply", "--json"]).error(2, "E/USAGE");
    assert!(repository.env.file("shared/k.py").exists());
}

/// Each passes the module on to where a protocol is expected, without naming the function.
#[test]
fn modules_that_are_passed_on_in_other_ways() {
    let mut project = Project::parse(
        "\
//- /pk/__init__.py
//- /pk/m.py
def run() -> int: return 1
//- /host.py
from typing import Protocol
class HasRun(Protocol):
    def run(self) -> int: ...
def use(it: HasRun) -> int: return it.run()
//- /facade.py
from pk import m as mm
",
    );
    let uses = [
        "import pk\nimport pk.m\nuse(pk.m)\n",
        "from facade import mm\nuse(mm)\n",
        "import pk.m as q; use(q)\n",
        "import pk.m as q\nfrom host import HasRun\nv: HasRun = q\n...\n",
    ];
    for (number, text) in uses.iter().enumerate() {
        project = project.and(&format!("use{number}.py"), format!("from host import use\n{text}"));
    }
    let repository = Repository::new(&project);
    let bundle = repository.plan(&["rename", "py://pk.m#run", "go"]);
    let introduced = bundle["edits"]["diagnostics"]["introduced"].as_array().unwrap();
    let files: std::collections::BTreeSet<&str> =
        introduced.iter().map(|found| found["uri"].as_str().unwrap()).collect();
    assert_eq!(files.len(), uses.len(), "{files:?}");
}

/// Each is the only file that passes the module on, through the name of its package or another one.
#[test]
fn a_module_is_passed_on_by_one_file() {
    for (name, text) in [
        ("use.py", "import pk.m\nfrom host import use\nq = pk\nuse(q.m)\n"),
        ("use.py", "import pk.m\nfrom host import use\nuse((p := pk).m)\n"),
        (
            "use.py",
            "from host import use\nclass C:\n    import pk.m\n    def go(self) -> None: use(self.pk.m)\n",
        ),
        ("use.py", "from facade import mm as oo\nfrom host import use\nuse(oo)\n"),
        ("pk/__init__.py", "from host import use\nfrom .m import walk\nuse(m)\n"),
    ] {
        let project = Project::parse(
            "\
//- /pk/__init__.py
//- /pk/m.py
def run() -> int: return 1
def walk() -> int: return 2
//- /host.py
from typing import Protocol
class HasRun(Protocol):
    def run(self) -> int: ...
def use(it: HasRun) -> int: return it.run()
//- /facade.py
from pk import m as mm
",
        );
        let repository = Repository::with_ty(&project.and(name, text));
        let bundle = repository.plan(&["rename", "py://pk.m#run", "go"]);
        let introduced = bundle["edits"]["diagnostics"]["introduced"].as_array().unwrap();
        assert_eq!(introduced.len(), 1, "{text}: {bundle}");
        assert_eq!(introduced[0]["uri"], name);
    }
}

/// Nothing that imports something as `m` passes it on, so that no `m` of another file is the module.
#[test]
fn a_name_that_a_module_shares_with_variables() {
    let project = Project::parse(
        "\
//- /pk/__init__.py
//- /pk/m.py
def run() -> int: return 1
//- /host.py
from typing import Protocol
class HasRun(Protocol):
    def run(self) -> int: ...
//- /use.py
from pk import m
m.run()
//- /other.py
def f(m, *more): return f(m, more)
class C:
    m = 1
print(C().m)
",
    );
    let repository = Repository::with_ty(&project);
    let rename = ["rename", "py://pk.m#run", "go"];
    assert_eq!(repository.plan(&rename)["edits"]["diagnostics"]["files_checked"], 3);
    std::fs::write(repository.env.file("more.py"), "from pk import m\nfrom other import f\nf(m)\n").unwrap();
    repository.commit();
    assert_eq!(repository.plan(&rename)["edits"]["diagnostics"]["files_checked"], 5);
}

#[test]
fn a_folder_is_moved_by_its_path() {
    let repository = Repository::new(&Project::parse(PACKAGE));
    let (_, written) = repository.plan_apply_undo(&["move", "pkg/sub", "pkg/part"]);
    assert!(written.contains_key("pkg/part/data.txt") && !written.contains_key("pkg/sub/deep.py"));
    assert!(text(&written, "pkg/old.py").contains("from .part.deep import depth"));
    let mixed = repository.env.lanser(["move", "pkg/sub", "pkg/part.py"]);
    assert_eq!(mixed.code, Some(2), "{mixed}");
    assert!(mixed.stderr.contains("give both as files, PATH.py, or both as folders"), "{mixed}");
}

#[test]
fn texts_that_are_no_names_of_modules() {
    let project = Project::parse(
        "\
//- /pkg/__init__.py
//- /pkg/old.py
x = 1
//- /pkg/use.py
from importlib import import_module
from pkg.old import x
print(f'{x}. old', '. old', '..', '.old')
import_module('.old', 'pkg')
//- /pyproject.toml
[tool.x]
exclude = ['/src/pkg/old.py', 'pkg/older.py']
",
    );
    let repository = Repository::new(&project);
    let bundle = repository.plan(&["rename", "py://pkg.old", "pkg.new"]);
    let open = bundle["facts"]["completeness"]["unresolved"]["items"].as_array().unwrap();
    let open: Vec<&str> = open.iter().map(|item| item["at"].as_str().unwrap()).collect();
    assert_eq!(open, ["pkg/use.py@L3:C36", "pkg/use.py@L4:C16"]);
    let mentions = bundle["edits"]["residue"]["items"].as_array().unwrap();
    let mentions: Vec<&str> = mentions.iter().map(|item| item["at"].as_str().unwrap()).collect();
    assert_eq!(mentions, ["pyproject.toml@L2:C18"]);
}
