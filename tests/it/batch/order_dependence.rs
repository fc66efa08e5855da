//! Names whose types look declared but are inferred: Pyright takes them from somewhere else than where the names are bound.

use serde_json::json;

use super::bundles;
use crate::support::{Project, TestEnv, portable};

/// A class of methods that call each other. For a request about `two` alone, Pyright infers that it never returns; after a request
/// about `three`, it infers the return type (1.1.414).
fn knot(name: &str, value: &str) -> String {
    format!(
        "class {name}:
    def one(self):
        self.three()
        while c: self.one()
        raise ValueError
    def two(self):
        self.two()
        self.three()
        self.two()
        return {value}
    def three(self):
        self.one()
        if c:
            self.two()
            return {value}
        return self.two()
"
    )
}

/// Four such classes, names whose types depend on them, and a file that makes the server infer them from the other end.
fn project() -> Project {
    let knots =
        [("OfClass", "A"), ("OfNone", "None"), ("OfCheck", "isinstance"), ("OfStatic", "staticmethod")];
    let knots = knots.map(|(name, value)| knot(name, value)).concat();
    let touch: Vec<String> = ["OfClass", "OfNone", "OfCheck", "OfStatic"]
        .iter()
        .map(|knot| format!("    def f(self, k: {knot}, p):\n        if p: k.three()\n        self.m\n"))
        .collect();
    Project::parse(&format!(
        "//- /cyc.py
c = object()
class A:
    def m(self): pass
{knots}//- /made.py
from cyc import OfCheck, OfClass, OfNone, OfStatic
def knot() -> OfClass: return OfClass()
def nothing() -> OfNone: return OfNone()
def check() -> OfCheck: return OfCheck()
def static() -> OfStatic: return OfStatic()
kind = knot().two()
isa = check().two()
stat = static().two()
class Of(knot().two()): pass
def deco(f): return nothing().two()
//- /st.pyi
from made import Of
class S:
    x: Of
v: Of
//- /touch.py
from cyc import OfCheck, OfClass, OfNone, OfStatic
class T:
{touch}//- /kept.py
import enum, made, st
from made import Of, isa, kind, stat
class Y:
    @made.deco
    def none(self): pass
    def m(self, k): pass
    def own(self, k): pass
    @stat
    def static(self):
        self.own(k=1)
class Z:
    def __init__(self): self.y = Y()
    def compares(self):
        if self.y.none is None: return
        self.y.m
class E(enum.Enum):
    A = made.kind
    def f(self): self.value.m
class Q(st.S):
    def f(self): self.x.m
def compares():
    y = Y()
    if y.none is None: return
    y.m
def asks():
    y = Y()
    ok = isa(y, kind)
    if ok: y.m
def comments():
    y = Y()
    if isinstance( # why
        y, kind): y.m
def chooses():
    y = Y()
    x = (y.m # why
         if isa(y, kind) else 2)
st.v.m
x: \"Of.m\"
def f(a): # type: (Of.m) -> None
    pass
",
        touch = touch.concat(),
    ))
}

/// Sends requests one after the other, in one batch.
fn ask(env: &TestEnv, cmd: &str, places: &[String]) -> Vec<String> {
    let line = |place: &String| json!({"cmd": cmd, "selector": place}).to_string() + "\n";
    let lines: String = places.iter().map(line).collect();
    let output = env.lanser_with_input(["batch", "--no-cache", "--ordered", "--concurrency", "1"], &lines);
    bundles(&output).iter().map(portable).collect()
}

/// The positions of names in a file.
fn places(env: &TestEnv, file: &str, names: &[&str]) -> Vec<String> {
    let text = std::fs::read_to_string(env.file(file)).unwrap();
    let mut places = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let found = names.iter().flat_map(|name| line.match_indices(name));
        places.extend(found.map(|(at, name)| {
            format!("{file}:{}:{}", number + 1, at + 1 + usize::from(name.starts_with('.')))
        }));
    }
    places
}

#[test]
fn answers_about_inferred_names_do_not_depend_on_earlier_requests() {
    let env = TestEnv::pyright(&project());
    let asked = places(&env, "kept.py", &[".m", "k=1", ".own("]);
    assert_eq!(asked.len(), 12, "{asked:?}");
    let first = places(&env, "touch.py", &[".m"]);
    for cmd in ["definition", "references"] {
        let all: Vec<String> = first.iter().chain(&asked).cloned().collect();
        let told = ask(&env, cmd, &all).split_off(first.len());
        // The two commands at different places.
        for (place, told) in asked.iter().zip(&told).skip(usize::from(cmd == "references")).step_by(2) {
            assert_eq!(&ask(&env, cmd, std::slice::from_ref(place))[0], told, "{cmd} {place}");
        }
    }
}

/// References of names that are declared everywhere are searched concurrently with other requests.
#[test]
fn references_do_not_depend_on_earlier_requests() {
    let env = TestEnv::pyright(&project());
    let names = ["knot()", "Of,", "two(", "Y(", "OfNone", "static(", "stat\n", "three()", "none(", "kind)"];
    let mut asked: Vec<String> =
        ["cyc.py", "made.py", "kept.py"].iter().flat_map(|file| places(&env, file, &names)).collect();
    asked.dedup();
    assert!(asked.len() > 20, "{asked:?}");
    let forth = ask(&env, "references", &asked);
    asked.reverse();
    let mut back = ask(&env, "references", &asked);
    back.reverse();
    assert_eq!(forth, back);
    let session = TestEnv::pyright_session(&project());
    session.lanser(["session", "start"]).text();
    for (place, told) in asked.iter().rev().zip(&forth).step_by(4) {
        let warm = session.lanser(["refs", place, "--json", "--no-cache"]).bundle();
        assert_eq!(&portable(&warm), told, "{place}");
    }
    session.lanser(["session", "stop"]).text();
}
