//! Occurrences of the old name that the server does not confirm: unresolved ones stop a rename, proven others do not.

use serde_json::Value;

use super::{Repository, failed};
use crate::support::Project;

/// The occurrences reported by the completeness check of a rename that it stops.
#[track_caller]
fn unresolved(repository: &Repository, selector: &str, new: &str) -> Vec<String> {
    let bundle = repository.plan(&["rename", selector, new]);
    assert_eq!(failed(&bundle), ["completeness"], "{selector}");
    assert_eq!(bundle["facts"]["completeness"]["status"], "partial");
    assert_eq!(repository.failed_checks(&["rename", selector, new], 78), ["completeness"]);
    let all = bundle["edits"]["safety"].as_array().unwrap().iter();
    let check = all.clone().find(|check| check["name"] == "completeness").unwrap();
    check["locations"].as_array().unwrap().iter().map(|at| at.as_str().unwrap().to_owned()).collect()
}

#[test]
fn attributes_of_untyped_values() {
    let project = Project::parse(
        "\
//- /point.py
class Point:
    def __init__(self, only: int) -> None:
        self.only = only
    def __eq__(self, other: object) -> bool:
        return type(other) is Point and self.only == other.only  # type: ignore
    def shift(self) -> int: return self.only
    def is_below(self, other: object) -> bool:
        return self.only < other.only  # type: ignore
//- /use.py
def far(p): return p.shift()
def near(p): return p.only + p.shift()
",
    );
    let repository = Repository::new(&project);
    let only = unresolved(&repository, "py://point#Point.only", "single");
    // The server understands `type(other) is Point`, and renames it.
    assert_eq!(only, ["point.py@L8:C34", "use.py@L2:C23"]);
    assert_eq!(unresolved(&repository, "py://point#Point.shift", "move"), ["use.py@L1:C22", "use.py@L2:C32"]);
    let command = ["rename", "py://point#Point.shift", "move", "--allow-incomplete", "--apply", "--json"];
    let made = repository.env.lanser(command).answer();
    assert!(made["edits"]["transaction"]["id"].is_string());
}

#[test]
fn keyword_arguments() {
    let project = Project::parse(
        "\
//- /rows.py
import dataclasses
from typing import Any, NamedTuple

@dataclasses.dataclass
class Row:
    left: int
    right: int = 0

class Pair(NamedTuple):
    left: int
    right: int

def made(left: int, right: int = 0) -> Row:
    return Row(left, right=right)

def through(**more: Any) -> Row:
    return made(1, **more)
//- /use.py
import dataclasses, functools
from rows import Row, Pair, made, through
row = dataclasses.replace(Row(left=1), left=2)
pair = Pair(1, 2)._replace(right=3)
swapped = through(right=4)
part = functools.partial(made, right=5)
words = dict(left=1, right=2), '{left}'.format(left=1)
",
    );
    let repository = Repository::new(&project);
    let left = unresolved(&repository, "py://rows#Row.left", "first");
    assert!(left.contains(&"use.py@L3:C40".to_owned()), "{left:?}");
    let right = unresolved(&repository, "py://rows#Pair.right", "second");
    assert!(right.contains(&"use.py@L4:C28".to_owned()), "{right:?}");
    let parameter = unresolved(&repository, "rows.py:13:21", "second");
    assert!(parameter.contains(&"use.py@L5:C19".to_owned()), "{parameter:?}");
    // `dict` and `str.format` do not pass keywords on.
    for place in left.iter().chain(&right).chain(&parameter) {
        assert!(!place.contains("@L7"), "{place}");
    }
}

#[test]
fn unresolvable_imports() {
    let project = Project::parse(
        "\
//- /src/deep/tools.py
def total() -> int: return 1
def other() -> int: return 2
//- /scripts/run.py
import sys
sys.path.append('src/deep')
from tools import total  # type: ignore
import tools as t  # type: ignore
print(total(), t.total(), t.other())
",
    );
    let repository = Repository::new(&project);
    let selector = "src/deep/tools.py:1:5";
    assert_eq!(
        unresolved(&repository, selector, "sum_up"),
        ["scripts/run.py@L3:C19", "scripts/run.py@L5:C7", "scripts/run.py@L5:C18"]
    );
    assert_eq!(unresolved(&repository, "src/deep/tools.py:2:5", "another"), ["scripts/run.py@L5:C29"]);
}

#[test]
fn occurrences_proven_to_be_something_else() {
    let project = Project::parse(
        "\
//- /store.py
from __future__ import annotations
import os
import nowhere  # type: ignore
from dataclasses import dataclass

class Store:
    size = 1
    def get(self, key: str) -> int: return len(key)
    def join(self, path: str) -> Store: return self

@dataclass
class Box:
    size: int

class Cup:
    def __init__(self, size: int) -> None:
        self.size = size
    def get(self) -> int: return self.size

def fill(size: int, path: str = '') -> Box:
    get = {}.get('x')
    Cup(size=2).get()
    match Box(1):
        case Box(size=1): pass
    return Box(size=size) if os.path.join(path, 'a') and nowhere.get(1) else Box(size=3)
//- /use.py
from store import Store, fill, Box
store = Store().join('x')
print(store.get('k'), store.size, fill(size=1), Box(size=1).size, ','.join([]), {}.get(1), dict(size=2))
",
    );
    let repository = Repository::new(&project);
    for (selector, new) in [
        ("py://store#Store.get", "fetch"),
        ("py://store#Store.join", "enter"),
        ("py://store#Store.size", "extent"),
    ] {
        repository.plan_apply_undo(&["rename", selector, new]);
    }
    let (_, files) = repository.plan_apply_undo(&["rename", "py://store#Box.size", "extent"]);
    let text = String::from_utf8(files["store.py"].clone()).unwrap();
    assert!(text.contains("case Box(extent=1)"), "{text}");
}

#[test]
fn attributes_set_by_methods_are_not_constructor_arguments() {
    let project = Project::parse(
        "\
//- /m.py
from typing import Any
class Cup:
    depth = 1
    def __init__(self, **more: Any) -> None: self.size = more['size']
class Jug(Cup):
    width = 1
def through(**more: Any) -> Any: return more
through(size=1, depth=2, width=3)
print(Cup(size=1).size, Jug.depth, Jug.width)
",
    );
    let repository = Repository::new(&project);
    repository.plan_apply_undo(&["rename", "py://m#Cup.size", "extent"]);
    repository.plan_apply_undo(&["rename", "py://m#Cup.depth", "extent"]);
    // Whether a derived class has such a constructor depends on its bases.
    assert_eq!(unresolved(&repository, "py://m#Jug.width", "extent"), ["m.py@L8:C26"]);
}

#[test]
fn a_class_with_dynamic_attributes() {
    let project = Project::parse(
        "\
//- /proxy.py
from typing import Any
class Engine:
    def start(self) -> int: return 1
class Proxy:
    def __init__(self, of: Engine) -> None: self.of = of
    def __getattr__(self, name: str) -> Any: return getattr(self.of, name)
def run() -> int: return Proxy(Engine()).start()
",
    );
    let repository = Repository::new(&project);
    assert_eq!(unresolved(&repository, "py://proxy#Engine.start", "begin"), ["proxy.py@L7:C42"]);
}

#[test]
fn all_occurrences_are_counted() {
    let uses: String = (0..230).map(|number| format!("def f{number}(x): return x.start\n")).collect();
    let text = format!("class Engine:\n    def start(self) -> int: return 1\n{uses}");
    let repository = Repository::new(&Project::default().and("engine.py", text));
    let bundle = repository.plan(&["rename", "py://engine#Engine.start", "begin"]);
    assert_eq!(failed(&bundle), ["completeness"]);
    let reason = bundle["facts"]["completeness"]["reason"].as_str().unwrap();
    assert!(reason.contains("230 places"), "{reason}");
    let listed = bundle["edits"]["residue"]["items"].as_array().unwrap();
    assert!(listed.iter().all(|item| item["kind"] == "attribute"), "{listed:?}");
    assert_ne!(bundle["facts"]["completeness"]["unresolved"]["count"], Value::from(0));
}

#[test]
fn fixtures_passed_by_pytest() {
    let project = Project::parse(
        "\
//- /pytest.py
def fixture(f): return f
class mark:
    @staticmethod
    def usefixtures(*names): return lambda f: f
//- /conftest.py
import pytest

@pytest.fixture
def client() -> int: return 1

@pytest.fixture
def pair(client): return client, client

def plain() -> int: return 2
//- /test_it.py
import pytest
def test_one(client): assert client
class TestTwo:
    def test_two(self, plain, client: int): assert client and plain
@pytest.mark.usefixtures('client')
def test_three(): pass
def helper(client): return client
",
    );
    let repository = Repository::new(&project);
    // A fixture is renamed with the parameters that request it, what uses them, and its name in strings.
    let (_, files) = repository.plan_apply_undo(&["rename", "py://conftest#client", "customer"]);
    let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
    assert!(text("conftest.py").contains("def customer() -> int"), "{}", text("conftest.py"));
    assert!(text("conftest.py").contains("def pair(customer): return customer, customer"));
    for line in [
        "def test_one(customer): assert customer\n",
        "def test_two(self, plain, customer: int): assert customer and plain\n",
        "usefixtures('customer')",
        "def helper(client): return client\n",
    ] {
        assert!(text("test_it.py").contains(line), "{line}\n{}", text("test_it.py"));
    }
    // pytest looks up the fixture by the name of the parameter.
    assert_eq!(unresolved(&repository, "test_it.py:2:14", "customer"), ["test_it.py@L2:C14"]);
    repository.plan_apply_undo(&["rename", "test_it.py:7:12", "customer"]);
    repository.plan_apply_undo(&["rename", "py://conftest#plain", "simple"]);
}

#[test]
fn mangled_names() {
    let project = Project::parse(
        "\
//- /box.py
class Box:
    def __init__(self) -> None:
        self.__size = 1
        self.open = 2
    def size(self) -> int: return self.__size + self.open
def spy(box: Box) -> int: return box._Box__size + getattr(box, '_Box__size')  # type: ignore
class Post:
    def __send(self) -> int: return 1
def push(post: Post) -> int: return post._Post__send()
//- /lid.py
from box import Box
class Lid(Box):
    def lift(self) -> int: return self.open
class Other:
    def __init__(self) -> None: self.__own = 1
    def own(self) -> int: return self.__own
",
    );
    let repository = Repository::new(&project);
    assert_eq!(unresolved(&repository, "box.py:3:14", "extent"), ["box.py@L6:C38", "box.py@L6:C65"]);
    // Outside of its class, the name is not mangled.
    let bundle = repository.plan(&["rename", "box.py:4:14", "__open"]);
    assert!(failed(&bundle).contains(&"shadowing".to_owned()), "{:?}", failed(&bundle));
    let checks = bundle["edits"]["safety"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "shadowing").unwrap();
    assert_eq!(check["locations"], serde_json::json!(["lid.py@L3:C40"]));
    repository.plan_apply_undo(&["rename", "lid.py:5:38", "__mine"]);
    // With the places included it stays one name, and what is written outside of the class is no new error.
    repository.plan_apply_undo(&["rename", "box.py:8:10", "__sent", "--include", "unresolved"]);
}

#[test]
fn hooks_of_plugins() {
    let project = Project::parse(
        "\
//- /hooks.py
from marks import hookspec

def pytest_started(item: object) -> None: ...

@hookspec
def stopped() -> None: ...

def plain() -> None: ...
//- /marks.py
def hookspec(f): return f
def hookimpl(f): return f
//- /plugin.py
from marks import hookimpl

def pytest_started(item): return None

class Plugin:
    @hookimpl
    def stopped(self): return None
    def plain(self): return None
//- /manager.py
class Relay:
    def __getattr__(self, name: str): ...

def run(relay: Relay) -> None:
    relay.pytest_started(item=1)
    getattr(relay, 'stopped')()
",
    );
    let repository = Repository::new(&project);
    let open = unresolved(&repository, "py://hooks#pytest_started", "pytest_begun");
    assert_eq!(open, ["manager.py@L5:C11", "plugin.py@L3:C5", "hooks.py@L3:C5"]);
    let open = unresolved(&repository, "py://hooks#stopped", "ended");
    assert_eq!(open, ["plugin.py@L7:C9", "manager.py@L6:C21", "hooks.py@L6:C5"]);
    let open = unresolved(&repository, "plugin.py:3:20", "node");
    assert_eq!(open, ["manager.py@L5:C26", "plugin.py@L3:C20"]);
    repository.plan_apply_undo(&["rename", "py://hooks#plain", "simple"]);
}
