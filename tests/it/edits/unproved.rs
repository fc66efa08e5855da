//! Uses of the old name that the server does not claim: those that may be meant stop a rename, those that are proved to be of
//! something else do not.

use serde_json::Value;

use super::{Repository, failed};
use crate::support::Project;

/// The places that the check of completeness tells, of a rename that it stops.
#[track_caller]
fn unproved(repository: &Repository, selector: &str, new: &str) -> Vec<String> {
    let bundle = repository.plan(&["rename", selector, new]);
    assert_eq!(failed(&bundle), ["completeness"], "{selector}");
    assert_eq!(bundle["facts"]["completeness"]["status"], "unknown");
    assert_eq!(repository.stopped(&["rename", selector, new], 78), ["completeness"]);
    let all = bundle["edits"]["safety"].as_array().unwrap().iter();
    let check = all.clone().find(|check| check["name"] == "completeness").unwrap();
    check["places"].as_array().unwrap().iter().map(|at| at.as_str().unwrap().to_owned()).collect()
}

#[test]
fn attributes_of_what_has_no_type() {
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
    let only = unproved(&repository, "py://point#Point.only", "single");
    // What `type(other) is Point` says, the server understands, and renames.
    assert_eq!(only, ["point.py@L8:C34", "use.py@L2:C23"]);
    assert_eq!(unproved(&repository, "py://point#Point.shift", "move"), ["use.py@L1:C22", "use.py@L2:C32"]);
    let given_up = ["rename", "py://point#Point.shift", "move", "--allow-incomplete", "--apply", "--json"];
    let made = repository.env.lanser(given_up).answer();
    assert!(made["edits"]["transaction"]["id"].is_string());
}

#[test]
fn what_is_passed_by_name() {
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
    let left = unproved(&repository, "py://rows#Row.left", "first");
    assert!(left.contains(&"use.py@L3:C40".to_owned()), "{left:?}");
    let right = unproved(&repository, "py://rows#Pair.right", "second");
    assert!(right.contains(&"use.py@L4:C28".to_owned()), "{right:?}");
    let parameter = unproved(&repository, "rows.py:13:21", "second");
    assert!(parameter.contains(&"use.py@L5:C19".to_owned()), "{parameter:?}");
    // `dict` and `str.format` hand nothing on.
    for place in left.iter().chain(&right).chain(&parameter) {
        assert!(!place.contains("@L7"), "{place}");
    }
}

#[test]
fn imports_that_lead_nowhere() {
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
    assert_eq!(unproved(&repository, selector, "sum_up"), ["scripts/run.py@L3:C19", "scripts/run.py@L5:C18"]);
    assert_eq!(unproved(&repository, "src/deep/tools.py:2:5", "another"), ["scripts/run.py@L5:C29"]);
}

#[test]
fn what_is_proved_to_be_something_else() {
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
        repository.whole_way(&["rename", selector, new]);
    }
    let (_, files) = repository.whole_way(&["rename", "py://store#Box.size", "extent"]);
    let text = String::from_utf8(files["store.py"].clone()).unwrap();
    assert!(text.contains("case Box(extent=1)"), "{text}");
}

#[test]
fn an_attribute_that_answers_for_any_name() {
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
    assert_eq!(unproved(&repository, "py://proxy#Engine.start", "begin"), ["proxy.py@L7:C42"]);
}

#[test]
fn more_than_anyone_looks_at() {
    let uses: String = (0..230).map(|number| format!("def f{number}(x): return x.start\n")).collect();
    let text = format!("class Engine:\n    def start(self) -> int: return 1\n{uses}");
    let repository = Repository::new(&Project::default().and("engine.py", text));
    let bundle = repository.plan(&["rename", "py://engine#Engine.start", "begin"]);
    assert_eq!(failed(&bundle), ["completeness"]);
    let reason = bundle["facts"]["completeness"]["reason"].as_str().unwrap();
    assert!(reason.contains("230 places (30 of them"), "{reason}");
    let listed = bundle["edits"]["residue"]["items"].as_array().unwrap();
    assert!(listed.iter().all(|item| item["kind"] == "attribute"), "{listed:?}");
    assert_ne!(bundle["facts"]["completeness"]["unresolved"]["count"], Value::from(0));
}
