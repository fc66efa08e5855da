//! Renames that go on after a refusal: families of methods, and decisions about unresolved places.

use serde_json::{Value, json};

use super::{Repository, failed};
use crate::support::Project;

fn check(bundle: &Value, name: &str) -> Value {
    let checks = bundle["edits"]["safety"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or(&Value::Null).clone()
}

fn text(repository: &Repository, file: &str) -> String {
    std::fs::read_to_string(repository.env.file(file)).unwrap()
}

/// The command after `lanser` in a hint.
fn next(error: &Value) -> Vec<String> {
    let hint = error["hint"].as_str().unwrap();
    let command = hint.split("lanser rename ").nth(1).unwrap_or_else(|| panic!("no command: {hint}"));
    let words = command.split(' ').map(|word| word.trim_matches('\'').to_owned());
    std::iter::once("rename".to_owned()).chain(words).collect()
}

/// A part of a name that is built when the program runs cannot be renamed, only left.
#[test]
fn names_that_are_built_can_only_be_left() {
    let project = Project::parse(
        "//- /m.py\ndef visit_old(): ...\ndef call(kind): return globals()[f\"visit_{kind}\"]()\n",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://m#visit_old", "visit_new"];
    let refused = repository.plan(&rename);
    assert_eq!(failed(&refused), ["completeness"]);
    let place = check(&refused, "completeness")["locations"][0].as_str().unwrap().to_owned();
    let with = |more: &[&str]| {
        let args: Vec<&str> = rename.iter().chain(more).copied().collect();
        repository.env.lanser(args.iter().chain(&["--json"])).bundle()
    };
    assert_eq!(failed(&with(&["--include", "unresolved"])), ["completeness"]);
    let one = with(&["--include", &place]);
    assert_eq!(one["error"]["symbol"], "E/USAGE", "{one}");
    let next = next(&with(&["--apply"])["error"]);
    assert_eq!(next[3..], ["--exclude", "unresolved", "--apply"]);
    let made = repository.env.lanser(next.iter().map(String::as_str).chain(["--json"])).answer();
    assert!(made["edits"]["transaction"]["id"].is_string());
}

/// A method that is looked up by the name of a class no longer belongs to it when the class is renamed.
#[test]
fn a_class_whose_name_methods_contain() {
    let project = Project::parse(
        "\
//- /nodes.py
class Node: ...
class Block(Node): ...
class Free(Node): ...
//- /visit.py
from nodes import Node
class Visitor:
    def visit(self, node: Node) -> int:
        return getattr(self, f\"visit_{type(node).__name__}\", lambda _: 0)(node)
    def visit_Block(self, node: Node) -> int: return 1
",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://nodes#Block", "Part"];
    let refused = repository.plan(&rename);
    assert_eq!(failed(&refused), ["completeness"]);
    let locations = &check(&refused, "completeness")["locations"];
    assert!(locations[0].as_str().unwrap().starts_with("visit.py@L4:"), "{locations}");
    repository.plan_apply_undo(&[&rename[..], &["--exclude", "unresolved"]].concat());
    repository.plan_apply_undo(&["rename", "py://nodes#Free", "Part"]);
}

const SHAPES: &str = "\
//- /shapes.py
class Shape:
    def area(self, scale: int = 1) -> int: return 0
class Named:
    def area(self, scale: int = 1) -> int: return 1
class Square(Shape):
    def area(self, scale: int = 1) -> int: return super().area(scale=scale)
class Label(Square, Named):
    pass
class Other:
    def area(self) -> int: return 4
def total(shapes: list[Shape]) -> int:
    return sum(shape.area(scale=2) for shape in shapes) + Named().area() + Other().area()
";

#[test]
fn a_method_with_its_family() {
    let repository = Repository::new(&Project::parse(SHAPES));
    let rename = ["rename", "py://shapes#Square.area", "size"];
    assert_eq!(repository.failed_checks(&rename, 78), ["overrides"]);
    let refused = repository.env.lanser(rename.iter().chain(&["--json"]));
    let (bundle, error) = (refused.bundle(), refused.error(78, "E/UNSAFE_EDIT"));
    assert!(check(&bundle, "overrides")["detail"].as_str().unwrap().contains("(Named, Shape)"), "{bundle}");
    assert!(error["hint"].as_str().unwrap().contains("--family"), "{error}");
    let (_, files) = repository.plan_apply_undo(&[&rename[..], &["--family"]].concat());
    let renamed = String::from_utf8(files["shapes.py"].clone()).unwrap();
    assert_eq!(renamed.matches("size(").count(), 6, "{renamed}");
    assert_eq!(renamed.matches("area(").count(), 2, "the method of another class stays\n{renamed}");
    // It does not matter which of them is named.
    for name in ["Shape", "Named"] {
        let selector = format!("py://shapes#{name}.area");
        let (_, same) = repository.plan_apply_undo(&["rename", &selector, "size", "--family"]);
        assert_eq!(same, files, "{name}");
    }
    // A parameter that callers pass by name.
    let parameter = ["rename", "shapes.py:6:20", "factor"];
    assert!(repository.failed_checks(&parameter, 78).contains(&"overrides".to_owned()));
    let (_, files) = repository.plan_apply_undo(&[&parameter[..], &["--family"]].concat());
    let renamed = String::from_utf8(files["shapes.py"].clone()).unwrap();
    assert_eq!(renamed.matches("factor: int").count(), 3, "{renamed}");
    assert!(renamed.contains("super().area(factor=factor)") && renamed.contains("shape.area(factor=2)"));
}

#[test]
fn a_family_outside_of_the_workspace_stays() {
    let project = Project::parse(
        "//- /m.py\nfrom json import JSONEncoder\nclass E(JSONEncoder):\n    def default(self, o: object) -> object: return 1\n",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://m#E.default", "other", "--family"];
    assert!(repository.failed_checks(&rename, 78).contains(&"overrides".to_owned()));
    let error = repository.env.lanser(rename.iter().chain(&["--json"])).error(78, "E/UNSAFE_EDIT");
    assert!(!error["hint"].as_str().unwrap().contains("--family --family"), "{error}");
}

const ENGINE: &str = "\
//- /engine.py
class Engine:
    def start(self) -> int: return 1
//- /use.py
from engine import Engine
def one(x): return x.start()
def two(y):
    return y.start()
print(Engine().start())
";

#[test]
fn unresolved_places_are_decided_one_by_one() {
    let repository = Repository::new(&Project::parse(ENGINE));
    let rename = ["rename", "py://engine#Engine.start", "begin"];
    let bundle = repository.plan(&rename);
    let open = check(&bundle, "completeness");
    assert_eq!(open["locations"], json!(["use.py@L2:C22", "use.py@L4:C14"]));
    assert_eq!(open["previews"], json!(["def one(x): return x.start()", "    return y.start()"]));
    // As text, each place is printed with its line.
    let shown = repository.env.lanser(rename);
    assert_eq!(shown.code, Some(78), "{shown}");
    assert!(shown.stderr.contains("use.py:4:14: return y.start()"), "{shown}");
    assert!(shown.stdout.contains("+    def begin(self)"), "the diff is printed all the same: {shown}");
    // The place can be given in either form; one decision is not enough for two places.
    let one = [&rename[..], &["--include", "use.py:2:22"]].concat();
    let bundle = repository.plan(&one);
    assert_eq!(failed(&bundle), ["completeness"]);
    assert_eq!(check(&bundle, "completeness")["locations"], json!(["use.py@L4:C14"]));
    let both = [&one[..], &["--exclude", "use.py@L4:C14"]].concat();
    let (bundle, files) = repository.plan_apply_undo(&both);
    assert_eq!(
        check(&bundle, "completeness")["decisions"],
        json!([{"at": "use.py@L2:C22", "decision": "include"}, {"at": "use.py@L4:C14", "decision": "exclude"}])
    );
    let renamed = String::from_utf8(files["use.py"].clone()).unwrap();
    assert!(renamed.contains("x.begin()") && renamed.contains("y.start()"), "{renamed}");
    // All of them, but one.
    let most = [&rename[..], &["--include", "unresolved", "--exclude", "use.py:2:22"]].concat();
    let (_, files) = repository.plan_apply_undo(&most);
    let renamed = String::from_utf8(files["use.py"].clone()).unwrap();
    assert!(renamed.contains("x.start()") && renamed.contains("y.begin()"), "{renamed}");
}

#[test]
fn decisions_about_other_places_are_refused() {
    let repository = Repository::new(&Project::parse(ENGINE));
    let rename = ["rename", "py://engine#Engine.start", "begin", "--json"];
    for (more, part) in [
        (["--include", "use.py:1:1"].as_slice(), "is not an unresolved place"),
        (&["--exclude", "use.py:5:16"], "it is a reference"),
        (&["--exclude", "use.py:2:22", "--include", "use.py@L2:C22"], "both"),
    ] {
        let error = repository.env.lanser(rename.iter().chain(more)).error(2, "E/USAGE");
        assert!(error["message"].as_str().unwrap().contains(part), "{more:?}: {error}");
        assert!(error["hint"].is_string(), "{error}");
    }
    // A reference that is renamed anyway can be included.
    let more = ["--include", "use.py:5:16", "--include", "unresolved"];
    let bundle = repository.plan(&[&rename[..3], &more].concat());
    assert_eq!(failed(&bundle), [""; 0]);
}

#[test]
fn the_command_of_a_refusal_goes_on() {
    for (project, selector, symbols) in [
        (ENGINE, "py://engine#Engine.start", &["--include", "unresolved"][..]),
        (SHAPES, "py://shapes#Square.area", &["--family"]),
    ] {
        let repository = Repository::new(&Project::parse(project));
        let mut args: Vec<String> = ["rename", selector, "begin", "--apply"].map(str::to_owned).to_vec();
        for round in 0.. {
            let output = repository.env.lanser(args.iter().map(String::as_str).chain(["--json"]));
            if output.code == Some(0) && round > 0 {
                assert!(output.bundle()["edits"]["transaction"]["id"].is_string(), "{output}");
                break;
            }
            assert!(round < 3, "{output}");
            args = next(&output.error(78, "E/UNSAFE_EDIT"));
        }
        for symbol in symbols {
            assert!(args.iter().any(|word| word == symbol), "{args:?}");
        }
        repository.env.lanser(["undo"]).text();
        assert_eq!(repository.git(&["status", "--porcelain"]), "");
    }
}

#[test]
fn a_dirty_tree_refuses_before_the_server_is_asked() {
    let shop = Repository::shop();
    shop.env.write("other.txt", "x");
    let args = ["rename", "py://shop.stock#total", "sum_up", "--apply", "--json"];
    let error = shop.env.lanser(args).error(77, "E/DIRTY_WORKTREE");
    assert_eq!(error["data"]["paths"], json!(["other.txt"]));
    // Without a server: the environment of the bundle has none.
    let bundle = shop.env.lanser(args).bundle();
    assert_eq!(bundle["environment"]["tool"], Value::Null, "{bundle}");
    let keyword = ["rename", "py://shop.stock#total", "class", "--apply", "--json"];
    let bundle = shop.env.lanser(keyword).bundle();
    assert_eq!(failed(&bundle), ["identifier", "git"]);
    assert_eq!(bundle["environment"]["tool"], Value::Null, "{bundle}");
}

#[test]
fn what_was_planned_is_not_planned_again() {
    let shop = Repository::shop();
    let rename = ["rename", "py://shop.stock#total", "sum_up", "--json"];
    let planned = shop.env.lanser(rename).answer();
    assert_eq!(planned["meta"]["volatile"]["served_from"], "server");
    let again = shop.env.lanser(rename).answer();
    assert_eq!(again["meta"]["volatile"]["served_from"], "memo");
    assert_eq!(again["bundleId"], planned["bundleId"]);
    // What is no input of the plan is looked at again: git, and mentions in other files.
    shop.env.write("NOTES.md", "total\n");
    let dirty = shop.env.lanser(rename);
    assert_eq!(failed(&dirty.bundle()), ["git"]);
    assert_eq!(dirty.bundle()["meta"]["volatile"]["served_from"], "memo");
    assert_eq!(dirty.bundle()["edits"]["residue"]["kinds"]["document"], 1, "{dirty}");
    shop.commit();
    let made = shop.env.lanser(rename.iter().chain(&["--apply"])).answer();
    assert_eq!(made["meta"]["volatile"]["served_from"], "memo");
    assert!(made["edits"]["transaction"]["id"].is_string(), "{made}");
    assert_eq!(made["edits"]["diff"], planned["edits"]["diff"]);
    assert_eq!(made["processReward"]["components"], planned["processReward"]["components"]);
    assert!(text(&shop, "shop/stock.py").contains("def sum_up("));
    // The files have changed, so it is a new question.
    shop.env.lanser(rename).error(3, "E/NOT_FOUND");
    shop.env.lanser(["undo"]).text();
    let last = shop.env.lanser(rename).answer();
    assert_eq!(last["meta"]["volatile"]["served_from"], "memo");
}

/// A module may be passed where a protocol is expected: a file that names neither the old nor the new name then has a new
/// diagnostic. And a name may come through `*`.
#[test]
fn files_that_a_rename_of_a_function_can_affect() {
    let project = Project::parse(
        "\
//- /plugin.py
def run() -> int: return 1
def stop() -> int: return 2
def pause() -> int: return 3
//- /host.py
from typing import Protocol
class Plugin(Protocol):
    def run(self) -> int: ...
def start(plugin: Plugin) -> int: return plugin.run()
//- /main.py
import plugin
from host import start
start(plugin)
//- /far.py
import plugin
print(plugin.stop())
//- /star.py
from plugin import *
//- /user.py
from plugin import run
print(run())
",
    );
    let repository = Repository::new(&project);
    let bundle = repository.plan(&["rename", "py://plugin#run", "go"]);
    assert!(failed(&bundle).contains(&"diagnostics".to_owned()), "{bundle}");
    let found = &bundle["edits"]["diagnostics"];
    assert_eq!(found["introduced"][0]["uri"], "main.py", "{found}");
    // Since `main.py` passes the module on, what imports it may have it under any name.
    assert_eq!(found.get("unaffected"), None, "{found}");
    // A protocol of the standard library has the new name.
    let bundle = repository.plan(&["rename", "py://plugin#stop", "readline"]);
    assert_eq!(failed(&bundle), [""; 0]);
    assert_eq!(bundle["edits"]["diagnostics"].get("unaffected"), None, "{bundle}");
    let bundle = repository.plan(&["rename", "py://plugin#pause", "halt_all"]);
    assert_eq!(failed(&bundle), [""; 0]);
    let unaffected = &bundle["edits"]["diagnostics"]["unaffected"]["files"];
    assert_eq!(*unaffected, json!(["far.py", "main.py", "user.py"]), "{bundle}");
    let all = repository.plan(&["rename", "py://plugin#stop", "halt", "--check", "importers"]);
    assert_eq!(all["edits"]["diagnostics"].get("unaffected"), None, "{all}");
    // The edited files, and the three that import them.
    assert_eq!(all["edits"]["diagnostics"]["files_checked"], 5, "{all}");
}

#[test]
fn sorted_exports_stay_sorted_and_entry_points_follow() {
    let project = Project::parse(
        "\
//- /pyproject.toml
[project]
name = \"tool\"
[project.scripts]
tool = \"tool:main\"
other = \"tool.cli:App.main\"
//- /tool/__init__.py
from .cli import App, help_me, main

__all__ = [
    'App',
    'help_me',
    'main',
]
//- /tool/cli.py
class App:
    def main(self) -> int: return 1
def help_me() -> int: return 0
def main() -> int: return App().main()
//- /use.py
from tool import *
print(main(), help_me())
",
    );
    let repository = Repository::new(&project);
    let (bundle, files) = repository.plan_apply_undo(&["rename", "py://tool.cli#main", "go"]);
    let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
    assert!(text("tool/__init__.py").ends_with("__all__ = [\n    'App',\n    'go',\n    'help_me',\n]\n"));
    assert!(text("pyproject.toml").contains("tool = \"tool:go\"\nother = \"tool.cli:App.main\""));
    assert_eq!(bundle["edits"]["residue"]["kinds"]["document"], 1, "{}", bundle["edits"]["residue"]);
    let (_, files) = repository.plan_apply_undo(&["rename", "py://tool.cli#App.main", "go"]);
    let text = String::from_utf8(files["pyproject.toml"].clone()).unwrap();
    assert!(text.contains("tool = \"tool:main\"\nother = \"tool.cli:App.go\""), "{text}");
}

#[test]
fn rules_of_the_language_that_no_server_applies() {
    let project = Project::parse(
        "\
//- /rules.py
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, NewType, TypedDict

Id = NewType('Id', int)

class Color(Enum):
    RED = 1

class Movie(TypedDict):
    title: str

class Pair(NamedTuple):
    left: int

@dataclass
class Point:
    x: int

def run(point: Point, movie: Movie, pair: Pair) -> object:
    match point:
        case Point(x=3):
            pass
    made: Movie = {'title': 'a'}
    return (Color['RED'], movie['title'], made, Movie(title='b'), pair._replace(left=1), replace(point, x=2))
",
    );
    let repository = Repository::new(&project);
    for (selector, new, parts) in [
        ("py://rules#Color.RED", "CRIMSON", &["Color['CRIMSON']"][..]),
        ("py://rules#Movie.title", "name", &["movie['name']", "{'name': 'a'}", "Movie(name='b')"]),
        ("py://rules#Pair.left", "first", &["_replace(first=1)"]),
        ("py://rules#Id", "Key", &["Key = NewType('Key', int)"]),
        ("py://rules#Point.x", "abscissa", &["case Point(abscissa=3)", "replace(point, abscissa=2)"]),
    ] {
        let (_, files) = repository.plan_apply_undo(&["rename", selector, new]);
        let text = String::from_utf8(files["rules.py"].clone()).unwrap();
        for part in parts {
            assert!(text.contains(part), "{selector}: {part}\n{text}");
        }
    }
}

/// The field of a dataclass is a parameter of its constructor, which may have to match another callable where the class is passed on.
#[test]
fn files_that_a_rename_of_a_field_can_affect() {
    let project = Project::parse(
        "\
//- /item.py
from dataclasses import dataclass

@dataclass
class Item:
    sum_total: int

@dataclass
class Box:
    sum_total: int

    def class_of(self) -> type: return type(self)

def made(sum_total: int) -> Item: return Item(sum_total)
def item() -> Item: return made(1)
def box() -> Box: return Box(1)
//- /same.py
from typing import Callable, ParamSpec, TypeVar
P = ParamSpec('P')
A = TypeVar('A')
B = TypeVar('B')
def same(a: Callable[P, A], b: Callable[P, B]) -> None: ...
//- /far.py
from item import Item, made
from same import same
same(Item, made)
//- /instance.py
from item import box, made
from same import same
same(type(box()), made)
//- /user.py
from item import item, box
print(item(), type(box()).__name__)
",
    );
    let repository = Repository::new(&project);
    let plan = |class: &str| {
        let bundle = repository.plan(&["rename", &format!("py://item#{class}.sum_total"), "grand_total"]);
        assert!(failed(&bundle).contains(&"diagnostics".to_owned()), "{bundle}");
        bundle["edits"]["diagnostics"].clone()
    };
    let found = plan("Item");
    assert_eq!(found["introduced"][0]["uri"], "far.py", "{found}");
    assert_eq!(found.get("unaffected"), None, "the class is passed on: {found}");
    let found = plan("Box");
    assert_eq!(found["introduced"][0]["uri"], "instance.py", "{found}");
    assert_eq!(found["unaffected"]["files"], json!(["far.py", "user.py"]), "{found}");
}

/// A member affects files in which neither name is written only through structural types.
#[test]
fn files_that_a_rename_of_a_member_can_affect() {
    let project = Project::parse(
        "\
//- /door.py
from dataclasses import dataclass

@dataclass
class Door:
    width: int
    wide: bool = False

    def open_up(self) -> None: ...
    def close(self) -> None: ...
    def lock_up(self) -> None: ...

def made() -> Door: return Door(1)
//- /below.py
from door import Door

class Gate(Door): ...
//- /openers.py
from typing import Protocol, TypedDict

class Opens(Protocol):
    def open_up(self) -> None: ...

class Size(TypedDict):
    width: int

def enter(thing: Opens) -> None: thing.open_up()
//- /far.py
from door import made
from openers import Size, enter

enter(made())

def copy(size: Size) -> None:
    print(type(made())(**size))
//- /user.py
from door import made

made().lock_up()
",
    );
    let repository = Repository::new(&project);
    let plan =
        |member: &str, new: &str| repository.plan(&["rename", &format!("py://door#Door.{member}"), new]);
    // The object does not fit the protocol any more, the TypedDict not the parameters.
    for (member, new) in [("open_up", "go"), ("width", "size_x")] {
        let bundle = plan(member, new);
        assert!(failed(&bundle).contains(&"diagnostics".to_owned()), "{bundle}");
        let found = &bundle["edits"]["diagnostics"];
        assert_eq!(found["introduced"][0]["uri"], "far.py", "{found}");
        assert_eq!(found.get("unaffected"), None, "{found}");
    }
    // No structural type has it, or one of an installed package or the standard library may have it.
    for (member, new, unaffected) in [
        ("lock_up", "shut_tight", json!(["far.py"])),
        ("lock_up", "read", Value::Null),
        ("close", "shut_tight", Value::Null),
    ] {
        let bundle = plan(member, new);
        assert_eq!(failed(&bundle), [""; 0], "{bundle}");
        let found = &bundle["edits"]["diagnostics"];
        assert_eq!(found["unaffected"]["files"], unaffected, "{member} to {new}: {found}");
    }
}
