use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Talk, bundles, id, outcome, shop};
use crate::support::{Project, TestEnv, is_alive, portable, wait_until};

/// Every read-only command at many places of the shop; some twice, some that fail.
fn requests() -> Vec<Value> {
    let places = [
        "py://shop#Book",
        "py://shop.prices#price_of",
        "src/shop/till.py:9:21",
        "src/shop/till.py:8:16",
        "src/shop/items.py:1:1",
        "py://shop#nothing",
        "price_of(item)",
        "src/shop/till.py:9",
    ];
    let about = [
        "definition",
        "declaration",
        "typeDefinition",
        "implementation",
        "references",
        "hover",
        "locate",
        "prepareRename",
        "actions",
    ];
    let mut all: Vec<Value> =
        about.iter().flat_map(|cmd| places.map(|place| json!({"cmd": cmd, "selector": place}))).collect();
    for direction in ["incoming", "outgoing"] {
        all.push(json!({"cmd": "calls", "selector": places[1], "options": {"direction": direction}}));
    }
    all.push(json!({"cmd": "calls", "selector": places[1]}));
    all.push(json!({"cmd": "typeHierarchy", "selector": "py://shop#Book"}));
    for direction in ["supertypes", "subtypes"] {
        all.push(
            json!({"cmd": "typeHierarchy", "selector": "py://shop#Book", "options": {"types": direction}}),
        );
    }
    all.push(json!({"cmd": "symbols", "options": {"paths": ["src/shop/items.py"]}}));
    all.push(json!({"cmd": "symbols", "options": {"query": "price"}}));
    all.push(json!({"cmd": "diagnostics", "options": {"paths": ["src/shop/till.py", "tests"]}}));
    all.push(json!({"cmd": "rename", "selector": places[1], "newName": "cost_of"}));
    all.push(json!({"cmd": "rename", "newName": "shop.goods", "options": {"module": "shop.items"}}));
    all.push(json!({"cmd": "rename", "selector": "py://shop#Book.label", "newName": "title_of", "options": {"family": true}}));
    all.push(json!({"cmd": "check", "options": {"edit": {"text": "--- a/src/shop/till.py\n+++ b/src/shop/till.py\n@@ -1,1 +1,1 @@\n-import shop\n+import shop, nothing\n"}}}));
    all.push(json!({"cmd": "undo", "options": {"list": true}}));
    all.extend(all.clone().into_iter().step_by(3));
    all.iter_mut().enumerate().for_each(|(number, request)| request["id"] = number.into());
    all
}

#[test]
fn a_batch_answers_like_single_commands_at_any_concurrency() {
    compare_orders(&TestEnv::pyright(&shop()));
}

#[test]
fn a_batch_of_ty_answers_like_single_commands_at_any_concurrency() {
    compare_orders(&TestEnv::ty(&shop()));
}

fn compare_orders(env: &TestEnv) {
    let requests = requests();
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let told = |lines: &str, concurrency: &str| -> BTreeMap<u64, String> {
        let output = env.lanser_with_input(["batch", "--no-cache", "--concurrency", concurrency], lines);
        bundles(&output).iter().map(|bundle| (id(bundle).as_u64().unwrap(), portable(bundle))).collect()
    };
    let at_once = told(&lines, "16");
    assert_eq!(at_once.len(), requests.len());
    assert_same(&told(&lines, "1"), &at_once, "one after the other");
    // In reverse, so that every request comes after different ones.
    let backwards: String = lines.lines().rev().map(|line| format!("{line}\n")).collect();
    assert_same(&told(&backwards, "4"), &at_once, "backwards");
    // One by one, each in a separate process: every command, at different places.
    for request in requests.iter().step_by(9) {
        let mut alone = told(&format!("{request}\n"), "16");
        let number = request["id"].as_u64().unwrap();
        assert_eq!(alone.remove(&number).as_ref(), at_once.get(&number), "{request}");
    }
    // And as single commands.
    for (cmd, command) in
        [("references", ["refs", "py://shop#Book"]), ("hover", ["hover", "src/shop/till.py:9:21"])]
    {
        let is_it = |request: &Value| request["cmd"] == cmd && request["selector"] == command[1];
        let number = requests.iter().position(is_it).unwrap();
        let single = env.lanser(command.iter().chain(&["--json", "--no-cache"])).bundle();
        assert_eq!(Some(&portable(&single)), at_once.get(&(number as u64)));
    }
    // Without a direction it is that of the command line.
    for (cmd, options) in
        [("calls", json!({"direction": "incoming"})), ("typeHierarchy", json!({"types": "subtypes"}))]
    {
        let number = |options: &Value| {
            let is_it = |request: &Value| request["cmd"] == cmd && request["options"] == *options;
            requests.iter().position(is_it).unwrap() as u64
        };
        assert_eq!(at_once[&number(&Value::Null)], at_once[&number(&options)], "{cmd}");
    }
    let good = at_once.values().filter(|text| outcome(&serde_json::from_str(text).unwrap()) == "ok").count();
    assert!(good * 2 > at_once.len(), "{good} of {} have an answer", at_once.len());
}

/// The first lines that differ are named, rather than all answers printed.
fn assert_same(found: &BTreeMap<u64, String>, expected: &BTreeMap<u64, String>, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (number, expected) in expected {
        if expected != &found[number] {
            let pairs = expected.lines().zip(found[number].lines());
            let differing: Vec<_> = pairs.filter(|(expected, found)| expected != found).take(12).collect();
            let error = |text: &str| serde_json::from_str::<Value>(text).unwrap()["error"].clone();
            let errors = (error(expected), error(&found[number]));
            panic!("request {number}, {what}: {errors:#?} {differing:#?}");
        }
    }
}

/// Hovers need the server exclusively, definitions do not: with many of both, a second server answers the hovers.
#[test]
fn a_second_server_answers_like_the_first_and_follows_changes() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: with one processor there is no second server");
        return;
    }
    let env = TestEnv::pyright(&shop());
    let mut batch = Talk::start(&env, &["--no-cache", "--concurrency", "16"]);
    let lines: Vec<String> = (5..=9)
        .flat_map(|line| (1..=6).map(move |step| format!("src/shop/till.py:{line}:{}", step * 4)))
        .flat_map(|place| ["definition", "hover"].map(|cmd| json!({"cmd": cmd, "selector": place})))
        .enumerate()
        .map(|(number, mut request)| {
            request["id"] = number.into();
            request.to_string()
        })
        .collect();
    let by_one = all(&mut batch, &lines);
    let mut servers = Vec::new();
    wait_until("there are two servers", Duration::from_secs(120), || {
        assert_eq!(all(&mut batch, &lines), by_one);
        servers = batch.servers();
        servers.len() == 2
    });
    // It is ready when it has read the workspace; from then on it answers the hovers.
    for _ in 0..5 {
        assert_eq!(all(&mut batch, &lines), by_one);
    }
    let text = std::fs::read_to_string(env.file("src/shop/till.py")).unwrap();
    env.write("src/shop/till.py", format!("import sys\n{text}"));
    let changed = all(&mut batch, &lines);
    assert_ne!(changed, by_one);
    let output = env.lanser_with_input(["batch", "--no-cache"], lines.join("\n"));
    let anew: BTreeMap<_, _> =
        bundles(&output).iter().map(|bundle| (id(bundle).as_u64().unwrap(), portable(bundle))).collect();
    assert_eq!(changed, anew);
    let (rest, code) = batch.end();
    assert_eq!((rest.len(), code), (0, Some(0)));
    assert!(!servers.into_iter().any(is_alive));
}

/// Sends all lines at once; returns the answers by number.
fn all(batch: &mut Talk, lines: &[String]) -> BTreeMap<u64, String> {
    batch.send(&lines.join("\n"));
    let answers = lines.iter().map(|_| batch.receive());
    answers.map(|bundle| (id(&bundle).as_u64().unwrap(), portable(&bundle))).collect()
}

/// Functions that call each other, and uses of their results.
fn knot() -> Project {
    Project::parse(
        "//- /knot.py
class A:
    def m(self, k): pass
class B:
    def m(self, k): pass
class D:
    def m(self, k): pass
def k1(x=None):
    while x:
        y = k2(x)
        x = y.m or y
    return x or A()
def k2(x=None):
    for i in range(3):
        x = k1(x)
        if x: x = k3(x)
    return x or B()
def k3(x):
    z = k1(x)
    while z: z = k2(z) or z
    return z or k1(z) or D()
v1 = k1()
v2 = k2()
//- /uses.py
import knot
from knot import k2, v1, v2
v1.m
def f():
    own = k2()
    own.m
    knot.v2.m
    knot.extra = k2()
    knot.extra.m
    v2.m(k=1)
    (own.  # a comment between
     m)
    knot.v1
class C:
    knot = k2()
    all = [i for i in knot.m]
//- /told.py
import knot, made
from knot import A, k1, v1, v2
from made import Bare, Given, Of, first, second
class E(Of):
    def f(self, a):
        self.m
        a.m
def g(a, b: A):
    if isinstance(a, second.kind): a.m
    if a == v2: a.m
    b.m
    k1(x=1)
    knot.A.m
    own = Bare()
    own.m
    other = Given(k1())
    other.m
    made.first.m
second.m
v1.m
knot.v2.m
made.Deco.m
Bare.m
//- /ends.py
from knot import A, B
import over, without
c = object()
class K:
    def one(self):
        if c: return self.three()
        self.three()
    def two(self):
        if c: self.one()
        else: self.three()
        raise ValueError
    def three(self):
        self.two()
        self.one()
def f(k: K, a: A | B):
    if isinstance(a, A): k.one()
    a.m
def g(k: K, a: A | B):
    if isinstance(a, A): k.three()
    a.m
def h(k: K):
    v = A()
    if c: v = B(); k.one()
    v.m
def i(k: K):
    if c:
        v = A()
        k.one()
    v.m
over.fn.m
fn = over.fn(x=1)
//- /over.py
from typing import overload
from knot import A, k2
class Some:
    def two(self):
        @overload
        def made(f: A) -> A: ...
        @overload
        def made(f: int) -> int: ...
        def made(f): return f
        return lambda f: made if k2(f) else f
@Some().two()
def fn(x): pass
//- /without.py
from knot import A
x0 = A()
class C(x0):
    def f(self): self.m
x1 = C()
class D(x1): pass
x1 = D()
//- /made.py
from knot import A, B, D, k1, k2
def pick(k=None):
    return type(k2(k))
class Of(pick()): pass
class Bare(B): pass
class Given:
    kind = A
    def __init__(self, a: B): pass
    def m(self): pass
class Keeps:
    kind = pick()
    m = k2()
first = Bare()
second = Keeps()
def deco(c):
    return pick() or c
@deco
class Deco:
    def m(self): pass
",
    )
}

/// Requests definitions one after the other, in one batch.
fn ask_in_order(env: &TestEnv, places: &[&str]) -> Vec<String> {
    let lines = places.iter().map(|place| {
        let selector = if place.contains(".py:") { (*place).to_owned() } else { format!("uses.py:{place}") };
        json!({"cmd": "definition", "selector": selector}).to_string() + "\n"
    });
    let lines: String = lines.collect();
    let output = env.lanser_with_input(["batch", "--no-cache", "--ordered", "--concurrency", "1"], &lines);
    bundles(&output).iter().map(portable).collect()
}

/// Every `.m` and `.fn`, and the keyword argument, in a file of the project.
fn knot_names(env: &TestEnv, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(env.file(file)).unwrap();
    let mut names = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let columns = line.match_indices(".m").chain(line.match_indices(".fn"));
        let columns =
            columns.filter(|(at, name)| !line[at + name.len()..].starts_with(char::is_alphanumeric));
        let columns = columns.map(|(at, _)| at + 2).chain(line.find("x=1").map(|at| at + 1));
        names.extend(columns.map(|column| format!("{file}:{}:{column}", number + 1)));
    }
    names
}

/// What Pyright infers for functions that call each other depends on which one it is asked about first: after a request about
/// `first.m` it returns two definitions of `own.m`, alone three (1.1.414). Each request must find a server without inferred
/// types.
#[test]
fn answers_do_not_depend_on_earlier_requests() {
    let env = TestEnv::pyright(&knot());
    let places = ["3:4", "6:9", "7:13", "9:16", "10:8", "10:10", "12:6", "16:28"];
    let ask = |places: &[&str]| ask_in_order(&env, places);
    let alone: Vec<String> = places.iter().flat_map(|place| ask(&[place])).collect();
    assert_eq!(alone[1].matches("\"at\": \"knot.py@").count(), 3, "{}", alone[1]);
    for (place, alone) in places.iter().zip(&alone).skip(1) {
        // The second one runs concurrently with others.
        for first in [places[0], "13:10"] {
            let after = ask(&[first, place, place]);
            assert_eq!(&after[1], alone, "{place} after {first}");
            assert_eq!(&after[2], alone, "{place} after {first}");
        }
    }
    assert_eq!(ask(&places), alone);
}

/// Names whose types other files declare are requested concurrently; those that only look declared are not.
#[test]
fn answers_about_names_declared_elsewhere_do_not_depend_on_earlier_requests() {
    let env = TestEnv::pyright(&knot());
    for file in ["told.py", "ends.py", "without.py"] {
        let lines: Vec<String> = knot_names(&env, file);
        let all: Vec<&str> = lines.iter().map(String::as_str).collect();
        let forth = ask_in_order(&env, &all);
        for (line, told) in all.iter().zip(&forth).step_by(3) {
            assert_eq!(&ask_in_order(&env, &[line])[0], told, "{line}");
        }
        let mut backwards: Vec<&str> = all.iter().rev().copied().collect();
        // The request that infers the types from the other end comes first.
        backwards.insert(0, "uses.py:3:4");
        let mut told = ask_in_order(&env, &backwards).split_off(1);
        told.reverse();
        assert_eq!(told, forth, "{file}");
    }
}

/// The same in a session whose server was started before the first request.
#[test]
fn answers_of_a_session_do_not_depend_on_earlier_requests() {
    let env = TestEnv::pyright_session(&knot());
    let ask = |place: &str, more: &[&str]| {
        portable(&env.lanser(["def", place, "--json", "--no-cache"].iter().chain(more)).bundle())
    };
    let cold = ["uses.py:3:4", "uses.py:6:9"].map(|place| ask(place, &["--no-session"]));
    env.lanser(["session", "start"]).text();
    assert_eq!(ask("uses.py:3:4", &[]), cold[0]);
    assert_eq!(ask("uses.py:6:9", &[]), cold[1]);
    env.lanser(["session", "stop"]).text();
}
