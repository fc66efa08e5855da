//! Renames in class hierarchies: inherited members, members of other bases, and names that Python treats specially. None of
//! these conflicts shows as a diagnostic.

use serde_json::Value;

use super::{Repository, failed};
use crate::support::Project;

/// Asserts that exactly one check stops a rename, and returns it.
#[track_caller]
fn only_failed_check(repository: &Repository, selector: &str, new: &str, name: &str) -> Value {
    let bundle = repository.plan(&["rename", selector, new]);
    assert_eq!(failed(&bundle), [name], "{selector} {new}: {bundle:#}");
    let mut checks = bundle["edits"]["safety"].as_array().unwrap().iter();
    checks.find(|check| check["name"] == name).unwrap().clone()
}

#[test]
fn another_base_of_a_derived_class() {
    let project = Project::parse(
        "\
//- /left.py
class Left:
    def run(self) -> int: return 1
    def own(self) -> int: return 2
//- /right.py
class Above:
    def stop(self) -> int: return 1
class Right(Above):
    def run(self) -> int: return 3
//- /both.py
from left import Left
from right import Right
class Both(Left, Right): pass
print(Both().own())
",
    );
    let repository = Repository::new(&project);
    let check = only_failed_check(&repository, "py://left#Left.own", "stop", "collision");
    assert_eq!(check["locations"], serde_json::json!(["right.py@L2:C9"]), "{check}");
    // `super().run()` in one of them resolves to the other.
    let check = only_failed_check(&repository, "py://left#Left.run", "go", "overrides");
    assert_eq!(check["locations"], serde_json::json!(["right.py@L4:C9"]), "{check}");
    repository.plan_apply_undo(&["rename", "py://left#Left.own", "mine"]);
}

/// An attribute that is bound to a function under its name is renamed with it, and has a class with bases of its own.
#[test]
fn attributes_that_are_bound_to_a_function() {
    let project = Project::parse(
        "\
//- /h.py
def handle(self: object, n: int) -> int: return n
def close(self: object) -> None: ...
//- /a.py
import json
from h import close, handle
class Base:
    def close(self) -> None: ...
class Sub(Base):
    close = close
class Plain:
    def __init__(self) -> None:
        self.handle = handle
        self.process = 1
class Other:
    handle = handle
print(Other().handle(3))
",
    );
    let repository = Repository::new(&project);
    let check = only_failed_check(&repository, "py://h#close", "shut", "overrides");
    assert_eq!(check["locations"], serde_json::json!(["a.py@L4:C9"]), "{check}");
    let check = only_failed_check(&repository, "py://h#handle", "process", "collision");
    assert_eq!(check["locations"], serde_json::json!(["a.py@L10:C14"]), "{check}");
    repository.plan_apply_undo(&["rename", "py://h#handle", "treat"]);
}

#[test]
fn parameters_of_methods_that_override() {
    let project = Project::parse(
        "\
//- /shapes.py
class Shape:
    def draw(self, scale: int, depth: int = 0) -> int: return scale
    def move(self, by: int, /) -> int: return by
    def __init__(self, name: str = '') -> None: self.name = name
class Disc(Shape):
    def draw(self, scale: int, depth: int = 0, *, fill: int = 0) -> int: return scale + depth + fill
    def move(self, by: int, /) -> int: return by
    def __init__(self, name: str = '') -> None: super().__init__(name=name)
def show(shape: Shape) -> int: return shape.draw(scale=1)
",
    )
    .and("pyrightconfig.json", "{\"reportIncompatibleMethodOverride\": false}");
    let repository = Repository::new(&project);
    for (selector, place) in [("shapes.py:2:20", "shapes.py@L6:C20"), ("shapes.py:6:20", "shapes.py@L2:C20")]
    {
        let check = only_failed_check(&repository, selector, "factor", "overrides");
        assert_eq!(check["locations"], serde_json::json!([place]), "{check}");
    }
    // No other method has `fill`, no call passes `by` by keyword, and a constructor is called through its class.
    for selector in ["shapes.py:6:51", "shapes.py:7:20", "shapes.py:8:24"] {
        repository.plan_apply_undo(&["rename", selector, "other"]);
    }
}

#[test]
fn bases_that_cannot_be_resolved() {
    let project = Project::parse(
        "\
//- /m.py
from collections import namedtuple
from typing import Generic, NamedTuple, Protocol, TypeVar
import library  # type: ignore
T = TypeVar('T')
class Far(library.Base):
    def run(self) -> int: return 1
class Plain:
    def run(self) -> int: return 1
class Mixed(Plain, library.Base): pass
class Known(Generic[T]):
    def run(self) -> int: return 1
class Shape(Protocol):
    def run(self) -> int: ...
class Pair(namedtuple('Pair', 'left right')):
    def run(self) -> int: return 1
",
    );
    let repository = Repository::new(&project);
    for class in ["Far", "Plain"] {
        only_failed_check(&repository, &format!("py://m#{class}.run"), "go", "overrides");
    }
    for class in ["Known", "Shape", "Pair"] {
        repository.plan_apply_undo(&["rename", &format!("py://m#{class}.run"), "go"]);
    }
    only_failed_check(&repository, "py://m#Pair.run", "left", "collision");
}

#[test]
fn bases_that_a_call_makes() {
    let project = Project::parse(
        "\
//- /m.py
def make(): return object
class Made(make()):
    def run(self) -> int: return 1
class Known:
    def run(self) -> int: return 1
",
    );
    let repository = Repository::new(&project);
    only_failed_check(&repository, "py://m#Made.run", "go", "overrides");
    // What is made may be `Known`.
    only_failed_check(&repository, "py://m#Known.run", "go", "completeness");
}

#[test]
fn names_that_python_treats_specially() {
    let project = Project::parse(
        "\
//- /m.py
class Box:
    def __len__(self) -> int: return 1
    def __enter__(self): return self
    def size(self) -> int: return 1
    def __init__(self) -> None: pass
def __getattr__(name: str) -> int: return 1
",
    );
    let repository = Repository::new(&project);
    for (selector, new, check) in [
        ("py://m#Box.__len__", "length", "overrides"),
        ("py://m#Box.__init__", "start", "overrides"),
        ("py://m#__getattr__", "answer", "overrides"),
        ("py://m#Box.size", "__bool__", "shadowing"),
    ] {
        only_failed_check(&repository, selector, new, check);
    }
    // Members of `object` are taken as well.
    let bundle = repository.plan(&["rename", "py://m#Box.size", "__eq__"]);
    assert!(failed(&bundle).contains(&"collision".to_owned()), "{:?}", failed(&bundle));
}

#[test]
fn classes_that_stand_in_for_others() {
    let project = Project::parse(
        "\
//- /base.py
class Base:
    def is_empty(self) -> bool:
        raise NotImplementedError
    def push(self, item: int) -> None:
        raise NotImplementedError
class Queue(Base):
    def is_empty(self) -> bool: return True
    def push(self, item: int) -> None: ...
//- /test_base.py
class Minimal:
    def is_empty(self) -> bool: return False
    def push(self, item: int) -> None:
        if self.is_empty(): print(item)
class Derived(Minimal):
    def is_empty(self) -> bool: return True
class Half:
    def is_empty(self) -> bool: return False
",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://base#Base.is_empty", "has_none", "--family"];
    let bundle = repository.plan(&rename);
    assert_eq!(failed(&bundle), ["completeness"]);
    let check = check_of(&bundle, "completeness");
    assert_eq!(check["locations"], serde_json::json!(["test_base.py@L2:C9"]));
    let (planned, written) =
        repository.plan_apply_undo(&[&rename[..], &["--include", "test_base.py:2:9"]].concat());
    let decisions = &check_of(&planned, "completeness")["decisions"];
    assert_eq!(decisions, &serde_json::json!([{"at": "test_base.py@L2:C9", "decision": "include"}]));
    let test = std::str::from_utf8(&written["test_base.py"]).unwrap();
    assert_eq!(test.matches("has_none").count(), 3, "{test}");
    assert!(test.ends_with("class Half:\n    def is_empty(self) -> bool: return False\n"), "{test}");
    let (_, written) = repository.plan_apply_undo(&[&rename[..], &["--exclude", "unresolved"]].concat());
    assert!(!std::str::from_utf8(&written["test_base.py"]).unwrap().contains("has_none"));
}

fn check_of<'b>(bundle: &'b Value, name: &str) -> &'b Value {
    let mut checks = bundle["edits"]["safety"].as_array().unwrap().iter();
    checks.find(|check| check["name"] == name).unwrap()
}
