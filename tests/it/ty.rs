//! What ty leaves out of its answers is found or listed: no answer is called complete because a server says little.

use serde_json::Value;

use crate::support::{Project, TestEnv};

/// The places of an answer: references, and unresolved occurrences; with its status.
fn uses(env: &TestEnv, selector: &str) -> (Vec<String>, Vec<String>, String) {
    let bundle = env.lanser(["refs", selector, "--json"]).answer();
    let facts = &bundle["facts"];
    let places = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["at"].as_str().unwrap().to_owned()).collect()
    };
    let completeness = &facts["completeness"];
    (
        places(&facts["references"]),
        places(&completeness["unresolved"]["items"]),
        completeness["status"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn attributes_of_untyped_values_are_unresolved() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /point.py
class Point:
    def __init__(self, only: int) -> None:
        self.only = only
    def shift(self) -> int: return self.only
//- /use.py
def near(p): return p.only
",
    ));
    let (found, unresolved, status) = uses(&env, "py://point#Point.only");
    assert_eq!(found, ["point.py@L3:C14", "point.py@L4:C41"]);
    assert_eq!((unresolved, status.as_str()), (vec!["use.py@L1:C23".to_owned()], "partial"));
    let definition = env.lanser(["def", "point.py:4:41", "--json"]).answer();
    assert_eq!(definition["facts"]["definitions"][0]["at"], "point.py@L3:C14");
}

#[test]
fn calls_outside_of_functions_are_the_modules_as_with_pyright() {
    let project = Project::parse(
        "\
//- /make.py
def make() -> int: return 1
//- /pkg/__init__.py
import make
N = make.make()
//- /use.py
from make import make
make()
",
    );
    let callers = |env: TestEnv| {
        let facts = env.lanser(["calls", "make.make", "--json"]).answer()["facts"].clone();
        facts["calls"].as_array().unwrap().iter().map(|call| call["caller"].clone()).collect::<Vec<_>>()
    };
    let found = callers(TestEnv::ty(&project));
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1]["name"], "(module) use.py");
    assert_eq!(found, callers(TestEnv::pyright(&project)));
}

#[test]
fn uses_of_a_file_elsewhere_are_not_known() {
    let env = TestEnv::ty(&Project::parse("//- /m.py\nx = 1\n"));
    let file = env.path("elsewhere.py");
    std::fs::write(&file, "def f(): ...\n").unwrap();
    let selector = format!("{}:1:5", file.display());
    let bundle = env.lanser(["refs", &selector, "--json"]).answer();
    assert_eq!(bundle["facts"]["completeness"]["status"], "unknown", "{bundle}");
}

/// The definition of a module that its package imports is that import.
#[test]
fn references_of_a_module_behind_its_package_are_not_complete() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /shop/__init__.py
from .till import pay as pay
//- /shop/till.py
def pay() -> None: ...
//- /use.py
import shop.till
shop.till.pay()
//- /other.py
from shop import till
till.pay()
",
    ));
    let definition = env.lanser(["def", "use.py:2:6", "--json"]).answer();
    assert_eq!(definition["facts"]["definitions"][0]["at"], "shop/__init__.py@L1:C7");
    let (_, _, status) = uses(&env, "use.py:2:6");
    assert_eq!(status, "unknown");
}

#[test]
fn keywords_of_patterns_are_renamed() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /box.py
from dataclasses import dataclass
@dataclass
class Box:
    size: int
@dataclass
class Cup:
    size: int
def fill(size: int, given: object) -> None:
    match given:
        case Box(size=1) | Cup(size=2): pass
",
    ));
    let (found, _, status) = uses(&env, "py://box#Box.size");
    assert_eq!(
        (found, status.as_str()),
        (vec!["box.py@L4:C5".to_owned(), "box.py@L10:C18".to_owned()], "complete")
    );
    let renamed = env.lanser(["rename", "py://box#Box.size", "extent", "--json"]).plan();
    let diff = renamed["edits"]["diff"].as_str().unwrap();
    assert!(diff.contains("+        case Box(extent=1) | Cup(size=2): pass"), "{diff}");
}

#[test]
fn stubs_that_leave_names_out_and_aliases_in_all() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /pkg/__init__.py
from pkg.make import attrib
attr = attrib
__all__ = ['attr', 'attrib']
//- /pkg/make.py
def attrib(): ...
def _hidden(): ...
//- /pkg/make.pyi
def attrib() -> None: ...
//- /test_it.py
from pkg.make import _hidden
_hidden()
",
    ));
    let (found, _, status) = uses(&env, "pkg/make.py:2:5");
    assert_eq!(found, ["pkg/make.py@L2:C5", "test_it.py@L1:C22", "test_it.py@L2:C1"]);
    assert_eq!(status, "complete");
    let all = [
        "pkg/__init__.py@L1:C22",
        "pkg/__init__.py@L2:C1",
        "pkg/__init__.py@L2:C8",
        "pkg/__init__.py@L3:C13",
        "pkg/__init__.py@L3:C21",
    ];
    for selector in ["pkg/make.py:1:5", "pkg/make.pyi:1:5"] {
        let (found, _, status) = uses(&env, selector);
        let inside: Vec<&String> = found.iter().filter(|at| at.starts_with("pkg/__init__")).collect();
        assert_eq!(
            (inside, status.as_str()),
            (all.map(str::to_owned).iter().collect(), "complete"),
            "{selector}"
        );
    }
}

/// The classes above are in ty's program, whose stubs lanser writes to its cache.
#[test]
fn uses_through_the_standard_library_are_not_overlooked() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /m.py
from collections.abc import MutableMapping
class Own(MutableMapping[str, str]):
    def update(self, *a, **k): ...
class Words(dict):
    def clear(self): ...
class Plain:
    def clear(self): ...
def use(given: MutableMapping[str, str], words: dict):
    given.update({})
    words.clear()
",
    ));
    let (found, _, _) = uses(&env, "py://m#Own.update");
    assert!(found.contains(&"m.py@L9:C11".to_owned()), "{found:?}");
    let (found, unresolved, status) = uses(&env, "py://m#Words.clear");
    assert!(found.contains(&"m.py@L10:C11".to_owned()), "{found:?}");
    assert_eq!((unresolved.len(), status.as_str()), (0, "complete"));
    assert_eq!(uses(&env, "py://m#Plain.clear").2, "complete");
}

/// `kit` takes from `tool` what its stub declares by itself, as attrs does.
#[test]
fn an_installed_name_is_that_of_a_stub_elsewhere() {
    let mut env = TestEnv::ty(&Project::parse(
        "//- /use.py\nfrom kit import field\nimport kit\nx = field()\ny = kit.field()\n//- /own.py\ndef field(): ...\nfield()\n",
    ));
    let folder = env.path("environment");
    let made = env.run("python3", ["-m", "venv", "--without-pip", folder.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{made}");
    let library = std::fs::read_dir(folder.join("lib")).unwrap().next().unwrap().unwrap().path();
    for (name, text) in [
        ("tool/__init__.py", "def field(x=1):\n    return x\n"),
        ("kit/__init__.py", "from tool import field\n"),
        ("kit/__init__.pyi", "def field(x: int = 1) -> int: ...\n"),
        ("kit/py.typed", ""),
    ] {
        let path = library.join("site-packages").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    env.set("VIRTUAL_ENV", &folder);
    let (found, _, status) = uses(&env, "kit.field");
    for place in ["use.py@L1:C17", "use.py@L3:C5", "use.py@L4:C9"] {
        assert!(found.contains(&place.to_owned()), "{place}: {found:?}");
    }
    assert!(!found.iter().any(|place| place.starts_with("own.py")), "{found:?}");
    assert_eq!(status, "complete");
}

#[test]
fn uses_of_what_cannot_be_imported_are_not_complete() {
    let env = TestEnv::ty(&Project::parse(
        "//- /m.py\nfrom nowhere import thing\nprint(thing)\n//- /n.py\nfrom m import thing\nprint(thing)\n",
    ));
    for place in ["m.py:2:7", "n.py:2:7"] {
        assert_eq!(uses(&env, place).2, "unknown", "{place}");
    }
}

#[test]
fn files_that_git_ignores_are_searched_and_no_node_is_needed() {
    let mut env = TestEnv::ty(&Project::parse(
        "//- /a.py\ndef f(): ...\n//- /.gitignore\nbuild/\n//- /build/b.py\nfrom a import f\nf()\n",
    ));
    assert_eq!(env.run("git", ["init", "--quiet"]).code, Some(0));
    env.set("PATH", env.path_of(&["git", "env"]));
    let (found, _, status) = uses(&env, "py://a#f");
    assert_eq!(found, ["a.py@L1:C5", "build/b.py@L1:C15", "build/b.py@L2:C1"]);
    assert_eq!(status, "complete");
    env.write("build/c.py", "import a\n@a.f\nclass First: ...\n");
    env.write("d.py", "import a\n@a.f\nclass First: ...\n");
    let listed = env.lanser(["symbols", "--query", "first", "--json"]).answer();
    let symbols = listed["facts"]["symbols"].as_array().unwrap();
    let at: Vec<&str> = symbols.iter().map(|symbol| symbol["at"].as_str().unwrap()).collect();
    assert_eq!(at, ["build/c.py@L3:C7", "d.py@L3:C7"]);
}

#[test]
fn the_users_own_configuration_is_not_read() {
    let mut env = TestEnv::ty(&Project::parse("//- /a.py\nx: int = ''\n"));
    env.set("XDG_CONFIG_HOME", env.path("config"));
    std::fs::create_dir_all(env.path("config/ty")).unwrap();
    std::fs::write(env.path("config/ty/ty.toml"), "[rules]\ninvalid-assignment = 'ignore'\n").unwrap();
    let diagnostics = env.lanser(["diag", "--json"]).answer();
    assert_eq!(diagnostics["facts"]["diagnostics"]["counts"]["error"], 1);
    env.write("ty.toml", "[rules]\ninvalid-assignment = 'ignore'\n");
    let configured = env.lanser(["diag", "--json"]).answer();
    assert_eq!(configured["facts"]["diagnostics"]["counts"]["error"], 0);
    let digest = |bundle: &Value| bundle["environment"]["configDigest"].clone();
    assert_ne!(digest(&diagnostics), digest(&configured));
}

/// Where not all uses can be found, the answer does not say that they were.
#[test]
fn what_is_not_searched_is_not_called_complete() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /core.py
class Eng: ...
def helper(key=None): return key
//- /core.pyi
class Eng: ...
def helper(key: object = ...) -> object: ...
//- /pkg/__init__.py
//- /pkg/leaf.py
x = 1
//- /use.py
from core import Eng as Motor, helper
import pkg.leaf
Motor(), helper(key=1), pkg.leaf.x
",
    ));
    for selector in ["core.py:2:12", "core.pyi:2:12", "use.py:3:17", "use.py:1:25", "use.py:3:25"] {
        let (_, _, status) = uses(&env, selector);
        assert_eq!(status, "unknown", "{selector}");
    }
    let renamed = env.lanser(["rename", "core.py:2:12", "zed", "--json"]).bundle();
    assert_eq!(renamed["error"]["symbol"], "E/UNSAFE_EDIT", "{renamed}");
    assert_eq!(uses(&env, "py://core#Eng").2, "complete");
}

/// A hidden folder is no input, and ty searches it nevertheless: what it says about one is not kept for later.
#[test]
fn answers_that_name_no_inputs_are_not_remembered() {
    let env = TestEnv::ty(&Project::parse("//- /a.py\ndef f(): ...\n//- /.hid/b.py\nfrom a import f\nf()\n"));
    let (found, ..) = uses(&env, "py://a#f");
    assert_eq!(found, [".hid/b.py@L1:C15", ".hid/b.py@L2:C1", "a.py@L1:C5"]);
    env.write(".hid/b.py", "");
    assert_eq!(uses(&env, "py://a#f").0, ["a.py@L1:C5"]);
}

#[test]
fn symbols_have_their_container() {
    let env = TestEnv::ty(&Project::parse("//- /a.py\nclass Outer:\n    def inner(self): ...\n"));
    let containers = |args: &[&str]| {
        let listed = env.lanser(args.iter().chain(&["--json"])).answer()["facts"]["symbols"].clone();
        let symbols = listed.as_array().unwrap();
        let symbol = symbols.iter().find(|symbol| symbol["name"] == "inner").unwrap_or(&Value::Null);
        symbol["container"].clone()
    };
    assert_eq!(containers(&["symbols", "--query", "inner"]), "Outer");
    assert_eq!(containers(&["symbols", "a.py"]), "Outer");
}
