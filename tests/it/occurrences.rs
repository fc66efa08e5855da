//! `refs`, `calls`, `impl` and `def` where servers miss occurrences: aliases, stubs, class families, keyword arguments, pytest
//! fixtures; and that completeness is never overstated. All with the real Pyright.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::score::git;
use crate::support::{Behavior, FakeServer, Project, TestEnv};

/// The answer of `refs`: references with provenance, unresolved occurrences, the verdict.
struct Uses {
    references: Vec<(String, String)>,
    unresolved: Vec<String>,
    status: String,
    bundle: Value,
}

#[track_caller]
fn uses(env: &TestEnv, selector: &str) -> Uses {
    let bundle = env.lanser(["refs", selector, "--json"]).answer();
    let facts = &bundle["facts"];
    let text = |value: &Value| value.as_str().unwrap_or_default().replace("@L", ":").replace(":C", ":");
    let references = facts["references"].as_array().unwrap().iter();
    let verdict = &facts["completeness"];
    let unresolved = verdict["unresolved"]["items"].as_array().unwrap().iter();
    assert_eq!(verdict["explained"]["reference"], json!(references.len()));
    assert_eq!(verdict["unresolved"]["count"], json!(unresolved.len()));
    Uses {
        references: references.map(|item| (text(&item["at"]), text(&item["provenance"]))).collect(),
        unresolved: unresolved.map(|item| text(&item["at"])).collect(),
        status: text(&verdict["status"]),
        bundle: bundle.clone(),
    }
}

impl Uses {
    fn at(&self) -> Vec<&str> {
        self.references.iter().map(|(at, _)| at.as_str()).collect()
    }

    fn provenance(&self, at: &str) -> &str {
        let found = self.references.iter().find(|(place, _)| place == at);
        found.map_or_else(|| panic!("{at}: {:?}", self.references), |(_, provenance)| provenance.as_str())
    }
}

/// Reading a property of an object gives its value; in a class, an assignment gives the property another name.
#[test]
fn the_value_of_a_property_is_no_alias() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
class Box:
    @property
    def size(self) -> int:
        return 1
    width = size
    def keep(self):
        self.kept = self.size
box = Box()
value = box.size
print(value, box.width, box.kept)
",
        ));
        let found = uses(&env, "py://m#Box.size");
        let expected: BTreeSet<&str> =
            ["m.py:3:9", "m.py:5:5", "m.py:5:13", "m.py:7:26", "m.py:9:13", "m.py:10:18"].into();
        assert_eq!(found.at().into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn aliases_are_followed() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /m.py
def f(): ...
g = f
class H:
    def __init__(self):
        self.call = f
    def run(self):
        self.call()
//- /n.py
from m import f as _f, g
import m as other
__all__ = ['_f', 'g']
_f()
g()
other.f()
//- /o.py
from n import _f as deep
deep()
f = 1
print(f)
",
    ));
    let found = uses(&env, "py://m#f");
    let expected: BTreeSet<&str> = [
        "m.py:1:5",
        "m.py:2:1",
        "m.py:2:5",
        "m.py:5:14",
        "m.py:5:21",
        "m.py:7:14",
        "n.py:1:15",
        "n.py:1:20",
        "n.py:1:24",
        "n.py:3:13",
        "n.py:3:19",
        "n.py:4:1",
        "n.py:5:1",
        "n.py:6:7",
        "o.py:1:15",
        "o.py:1:21",
        "o.py:2:1",
    ]
    .into();
    assert_eq!(found.at().into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(found.provenance("n.py:4:1"), "import-alias");
    assert_eq!(found.provenance("n.py:5:1"), "alias");
    assert_eq!(found.provenance("o.py:2:1"), "import-alias");
    assert_eq!((found.status.as_str(), found.unresolved.len()), ("complete", 0));
    let calls = env.lanser(["calls", "--incoming", "py://m#f", "--json"]).answer();
    let sites: BTreeSet<&str> = calls["facts"]["calls"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|call| call["sites"].as_array().unwrap())
        .map(|site| site["at"].as_str().unwrap())
        .collect();
    assert_eq!(
        sites,
        BTreeSet::from(["m.py@L7:C14", "n.py@L4:C1", "n.py@L5:C1", "n.py@L6:C7", "o.py@L2:C1"])
    );
}

#[test]
fn a_stub_and_its_source_are_one_symbol() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /pkg/__init__.py
from ._impl import f
//- /pkg/__init__.pyi
def f(a: int = ...) -> int: ...
//- /pkg/_impl.py
def f(a=1): return a
f()
//- /use.py
import pkg
from pkg import f
pkg.f(1)
f(2)
",
    ));
    for selector in ["pkg/_impl.py:1:5", "pkg/__init__.pyi:1:5", "use.py:4:1"] {
        let found = uses(&env, selector);
        assert_eq!(
            found.at(),
            [
                "pkg/__init__.py:1:20",
                "pkg/__init__.pyi:1:5",
                "pkg/_impl.py:1:5",
                "pkg/_impl.py:2:1",
                "use.py:2:17",
                "use.py:3:5",
                "use.py:4:1"
            ],
            "{selector}"
        );
        assert_eq!(found.status, "complete", "{selector}");
    }
}

/// A base class, overriding classes, a mixin, an unrelated class, and an untyped receiver.
const FAMILY: &str = "\
//- /base.py
from typing import Protocol
class Base:
    def convert(self, x): return x
    def run(self): return self.convert(1)
class Mixin:
    def both(self): return self.convert(2)
class Converts(Protocol):
    def convert(self, x): ...
//- /sub.py
from base import Base as B, Converts, Mixin
class Sub(Mixin, B):
    def convert(self, x): return super().convert(x)
class Unrelated:
    def convert(self, x): ...
def typed(b: B, s: Sub, u: Unrelated, c: Converts):
    b.convert(1)
    s.convert(2)
    u.convert(3)
    c.convert(4)
def untyped(o):
    o.convert(5)
";

#[test]
fn calls_through_a_base_class_are_references() {
    let env = TestEnv::pyright_session(&Project::parse(FAMILY));
    let found = uses(&env, "py://sub#Sub.convert");
    assert_eq!(
        found.at(),
        ["base.py:4:32", "base.py:6:33", "sub.py:3:9", "sub.py:7:7", "sub.py:8:7", "sub.py:10:7"]
    );
    for at in ["base.py:4:32", "base.py:6:33", "sub.py:7:7", "sub.py:10:7"] {
        assert_eq!(found.provenance(at), "dispatch", "{at}");
    }
    assert_eq!((found.status.as_str(), found.unresolved), ("partial", vec!["sub.py:12:7".to_owned()]));
    let family = &found.bundle["facts"]["overrides"];
    assert_eq!((&family[0]["class"], &family[0]["relation"]), (&json!("Base"), &json!("base")));

    let base = uses(&env, "py://base#Base.convert");
    let called: BTreeSet<&str> = base.at().into_iter().collect();
    assert!(called.contains("sub.py:3:42") && called.contains("sub.py:7:7"), "{called:?}");
    assert!(!called.contains("sub.py:8:7") && !called.contains("sub.py:9:7"), "{called:?}");
    assert_eq!(base.bundle["facts"]["overrides"][0]["relation"], "derived");

    let text = env.lanser(["refs", "py://sub#Sub.convert"]);
    let last = text.text().trim_end().lines().last().unwrap().to_owned();
    assert_eq!(last, "6 references, 1 base method, 1 unresolved (receiver type unknown): not complete");
    assert!(text.text().contains("sub.py:12:7  o.convert(5)  [unresolved: receiver type unknown]"));
}

#[test]
fn mocks_may_replace_a_class() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /m.py
class C:
    def go(self): ...
    def stop(self): ...
    def hand(self): ...
//- /test_m.py
from unittest.mock import MagicMock, Mock
from m import C
def test_it():
    wrapping = Mock(wraps=C())
    wrapping.go()
    mock = MagicMock(spec_set=['stop'])
    mock.stop.return_value = 7
    mock.hand()
    mock.hand = C().hand
def test_passed(mock: Mock):
    mock.go()
    mock.go.assert_called_once_with()
",
    ));
    let found = uses(&env, "py://m#C.go");
    assert_eq!(
        (found.status.as_str(), found.unresolved),
        ("partial", vec!["test_m.py:5:14".to_owned(), "test_m.py:11:10".to_owned()])
    );
    let found = uses(&env, "py://m#C.hand");
    assert!(found.unresolved.contains(&"test_m.py:8:10".to_owned()), "{:?}", found.unresolved);
    // Nothing is behind this mock; but what is given it calls `stop`.
    let found = uses(&env, "py://m#C.stop");
    assert_eq!((found.status.as_str(), found.unresolved.len()), ("complete", 0));
    let rename = env.lanser(["rename", "py://m#C.stop", "halt", "--json"]).plan();
    let checks = rename["edits"]["safety"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "completeness").unwrap();
    assert_eq!((&check["passed"], &check["locations"]), (&json!(false), &json!(["test_m.py@L7:C10"])));
}

#[test]
fn decorators_declare_the_types_of_first_parameters() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /pkg/__init__.py
//- /pkg/core.py
class Context:
    def invoke(self): ...
class Other:
    def invoke(self): ...
//- /pkg/decorators.py
from __future__ import annotations
import typing as t
if t.TYPE_CHECKING:
    from .core import Context
P = t.ParamSpec('P')
R = t.TypeVar('R')
def pass_context(f: t.Callable[t.Concatenate[Context, P], R]) -> t.Callable[P, R]:
    return lambda *a, **k: f(current(), *a, **k)
def unchanged(f): return f
def current(): ...
//- /tests/test_it.py
from pkg.decorators import pass_context, unchanged
def test_it():
    @pass_context
    def run(ctx, x):
        ctx.invoke()
    @unchanged
    def other(ctx):
        ctx.invoke()
",
    ));
    let found = uses(&env, "py://pkg.core#Context.invoke");
    assert_eq!(found.at(), ["pkg/core.py:2:9", "tests/test_it.py:5:13"]);
    assert_eq!(found.provenance("tests/test_it.py:5:13"), "decorator");
    assert_eq!(found.unresolved, ["tests/test_it.py:8:13"]);
    let found = uses(&env, "py://pkg.core#Other.invoke");
    assert_eq!(
        (found.at(), found.unresolved.clone()),
        (vec!["pkg/core.py:4:9"], vec!["tests/test_it.py:8:13".to_owned()])
    );
    let definition = env.lanser(["def", "tests/test_it.py:5:13", "--json"]).answer();
    assert_eq!(definition["facts"]["definitions"][0]["at"], "pkg/core.py@L2:C9");
    assert_eq!(definition["facts"]["definitions"][0]["provenance"], "decorator");
}

#[test]
fn members_of_derived_classes_behind_a_declared_base() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /m.py
class Base: ...
class Derived(Base):
    def go(self): ...
    def both(self): ...
class Unrelated:
    def go(self): ...
    def both(self): ...
class Plain:
    def go(self): ...
    def never(self): ...
def use(o: Base):
    o.go()
def use_plain(o: Plain, p: Base):
    p.never()
",
    ));
    let found = uses(&env, "py://m#Derived.go");
    assert_eq!(found.at(), ["m.py:3:9", "m.py:12:7"]);
    assert_eq!((found.provenance("m.py:12:7"), found.status.as_str()), ("dispatch", "complete"));
    let found = uses(&env, "py://m#Unrelated.go");
    assert_eq!((found.at(), found.status.as_str()), (vec!["m.py:6:9"], "complete"));
    assert_eq!(uses(&env, "py://m#Derived.both").status, "complete");
    // No class derived from `Base` has it: the annotation may be wrong.
    let found = uses(&env, "py://m#Plain.never");
    assert_eq!(found.unresolved, ["m.py:14:7"]);
}

/// A class whose base a loop or a parameter holds may be a subclass of any: its members may be the symbol's.
#[test]
fn members_of_classes_with_computed_bases() {
    let project = Project::parse(
        "\
//- /m.py
class A:
    def f(self): ...
class B:
    def f(self): ...
    def g(self): ...
class C:
    def g(self): ...
def loop():
    for X in (A, int):
        class My(X): ...
        m = My()
        m.f()
def beside(base):
    class New(base, B):
        def h(self): return super().f()
    n = New()
    n.f()
def by_string(b: B):
    getattr(b, 'f')
def plain(b: C):
    b.g()
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let env = env.with_sessions();
        let found = uses(&env, "py://m#A.f");
        let open: Vec<&str> =
            found.at().into_iter().chain(found.unresolved.iter().map(String::as_str)).collect();
        assert_eq!(
            open.into_iter().collect::<BTreeSet<_>>(),
            BTreeSet::from(["m.py:12:11", "m.py:15:37", "m.py:17:7", "m.py:19:17", "m.py:2:9"])
        );
        assert!(found.unresolved.contains(&"m.py:17:7".to_owned()) && found.status == "partial");
        let found = uses(&env, "py://m#C.g");
        assert_eq!((found.at(), found.status.as_str()), (vec!["m.py:7:9", "m.py:21:7"], "complete"));
        // `calls` lists overrides, and what may be one.
        env.write(
            "n.py",
            "class D:\n    def k(self): ...\ndef make(base):\n    class N(base):\n        def k(self): ...\n",
        );
        let calls = env.lanser(["calls", "n.D.k", "--json"]).answer()["facts"].clone();
        assert_eq!(calls["completeness"]["unresolved"]["items"][0]["at"], "n.py@L5:C13", "{calls}");
        assert_eq!(calls["completeness"]["status"], "partial");
    }
}

/// The name of a module's attribute as a string, where its package imports from it, and where something else may hold it.
#[test]
fn attributes_of_modules_by_string() {
    let project = Project::parse(
        "\
//- /pkg/__init__.py
from .m import *
//- /pkg/m.py
def helper(): ...
//- /use.py
import pkg.m
from pkg import m
x = m
getattr(m, 'helper')
getattr(pkg.m, 'helper')
getattr(x, 'helper')
class C:
    helper = 1
def typed(m: C):
    getattr(m, 'helper')
//- /held.py
import sys
from types import ModuleType
def use(module, typed: ModuleType):
    getattr(module, 'helper')
    getattr(typed, 'helper')
    getattr(sys.modules['pkg.m'], 'helper')
//- /empty/__init__.py
//- /empty/m.py
def other(): ...
//- /dotted.py
import empty.m
getattr(empty.m, 'other')
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let dotted = uses(&env, "py://empty.m#other");
        assert_eq!(
            (dotted.at(), dotted.status.as_str()),
            (vec!["dotted.py:2:19", "empty/m.py:1:5"], "complete")
        );
        let found = uses(&env, "py://pkg.m#helper");
        assert!(found.at().starts_with(&["pkg/m.py:1:5", "use.py:4:13", "use.py:5:17"]), "{:?}", found.at());
        // What a variable holds only ty says.
        let x = "use.py:6:13".to_owned();
        assert!(found.at().contains(&x.as_str()) || found.unresolved.contains(&x));
        // An object of a class is no module, whatever it is called.
        assert!(!found.bundle["facts"].to_string().contains("use.py@L10"), "{}", found.bundle);
        let held: Vec<&String> = found.unresolved.iter().filter(|at| at.starts_with("held.py")).collect();
        assert_eq!(held, ["held.py:4:22", "held.py:5:21", "held.py:6:36"]);
        env.write("held.py", "");
        env.write("use.py", "from pkg import m\ngetattr(m, 'helper')\n");
        assert_eq!(uses(&env, "py://pkg.m#helper").status, "complete");
    }
}

/// A Python script is code, too, if its first line says so and it has no suffix.
#[test]
fn scripts_without_a_suffix() {
    let project = Project::parse(
        "\
//- /shop.py
def total(): ...
//- /bin/report
#!/usr/bin/env python3
from shop import total as t
from shop import total
total()
t()  # total
//- /bin/other
#!/usr/bin/python
def total(): ...
total()
//- /bin/shell
#!/bin/sh
from shop import total
//- /base.py
class Base:
    def convert(self): ...
//- /bin/derived
#!/usr/bin/env python3
from base import Base
class Sub(Base):
    def convert(self): ...
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let found = uses(&env, "py://shop#total");
        let expected = [
            "bin/report:2:18",
            "bin/report:2:27",
            "bin/report:3:18",
            "bin/report:4:1",
            "bin/report:5:1",
            "shop.py:1:5",
        ];
        assert_eq!((found.at(), found.status.as_str()), (expected.to_vec(), "complete"));
        assert_eq!(found.bundle["facts"]["completeness"]["explained"]["other"], 2);
        let found = uses(&env, "py://base#Base.convert");
        assert_eq!(found.bundle["facts"]["overrides"][0]["at"], "bin/derived@L4:C9", "{}", found.bundle);
        assert!(env.lanser(["symbols", "--query", "Sub"]).stdout.starts_with("bin/derived:3:7"));
        let created =
            "--- /dev/null\n+++ b/bin/new\n@@ -0,0 +1,2 @@\n+#!/usr/bin/python3\n+from shop import totals\n";
        let checked = env.lanser_with_input(["check", "-"], created);
        assert!(checked.stdout.contains("bin/new:2:18  error"), "{checked}");
        // A file that is made a script.
        env.write("bin/shell", "#!/usr/bin/python3\nfrom shop import total\n");
        assert!(uses(&env, "py://shop#total").at().contains(&"bin/shell:2:18"));
        env.write("bin/shell", "#!/bin/sh\nfrom shop import total\n");
        assert_eq!(uses(&env, "py://shop#total").at(), expected);
        let rename = ["rename", "py://shop#total", "add", "--allow-dirty", "--apply", "--json"];
        let bundle = env.lanser(rename).answer();
        let text = std::fs::read_to_string(env.file("bin/report")).unwrap();
        assert!(text.ends_with("import add as t\nfrom shop import add\nadd()\nt()  # total\n"), "{text}");
        assert_eq!(bundle["edits"]["residue"]["kinds"], json!({"comment": 1, "document": 1}), "{bundle}");
        let moved = ["move", "py://shop", "py://market", "--allow-dirty", "--apply", "--json"];
        env.lanser(moved).answer();
        let text = std::fs::read_to_string(env.file("bin/report")).unwrap();
        assert!(text.contains("from market import add\n"), "{text}");
        env.write("bin/report", "#!/usr/bin/env python3\nfrom market import adding\n");
        assert_eq!(env.lanser(["diag", "bin/report"]).code, Some(0));
        assert!(env.lanser(["diag", "bin/report"]).stdout.contains("bin/report:2:20"));
    }
}

/// Folders that tools fill are skipped by their names, which prove nothing where git tracks code in them.
#[test]
fn code_in_folders_that_tools_fill() {
    const USE: &str = "from shop import total\ntotal()\n";
    for (env, is_pyright) in
        [(TestEnv::ty(&Project::default()), false), (TestEnv::pyright(&Project::default()), true)]
    {
        env.write("shop.py", "def total() -> int: ...\n");
        for file in [".ci/use.py", "node_modules/use.py", "env/own/use.py", "tools/env/lib/use.py"] {
            env.write(file, USE);
        }
        env.write("env/pyvenv.cfg", "home = /usr/bin\n");
        env.write("tools/env/pyvenv.cfg", "home = /usr/bin\n");
        git(&env, &["init", "-q"]);
        git(&env, &["add", "-Af"]);
        git(&env, &["commit", "-qm", "x"]);
        let files = |found: &Uses| {
            let mut files: Vec<_> =
                found.at().iter().filter_map(|at| Some(at.split_once(':')?.0.to_owned())).collect();
            files.dedup();
            files
        };
        let expected =
            [".ci/use.py", "env/own/use.py", "node_modules/use.py", "shop.py", "tools/env/lib/use.py"];
        let found = uses(&env, "py://shop#total");
        assert_eq!(
            (files(&found), found.status.as_str()),
            (expected.map(str::to_owned).to_vec(), "complete")
        );
        // A submodule has an index of its own. A file that is no index says nothing about what is tracked.
        let inner = TestEnv::ty(&Project::default());
        inner.write(".ci/inner.py", USE);
        git(&inner, &["init", "-q"]);
        git(&inner, &["add", "-A"]);
        git(&inner, &["commit", "-qm", "x"]);
        let inner = inner.file("").to_str().unwrap().to_owned();
        git(&env, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &inner, "sub"]);
        let at = "sub/.ci/inner.py";
        assert!(uses(&env, "py://shop#total").at().iter().any(|place| place.starts_with(at)));
        git(&env, &["rm", "-qf", "sub"]);
        std::fs::rename(env.file(".git/index"), env.file("index")).unwrap();
        env.write(".git/index", "DIRC");
        assert_eq!(uses(&env, "py://shop#total").status, "unknown");
        std::fs::rename(env.file("index"), env.file(".git/index")).unwrap();
        git(&env, &["commit", "-qm", "z"]);
        // What git does not track is the tools'. (ty reports references in hidden folders itself.)
        env.write("node_modules/more/use.py", USE);
        env.write("tools/env/lib/python3.11/site-packages/use.py", USE);
        if is_pyright {
            assert_eq!(files(&uses(&env, "py://shop#total")), expected);
        }
        git(&env, &["add", "-f", "node_modules/more"]);
        assert!(files(&uses(&env, "py://shop#total")).contains(&"node_modules/more/use.py".to_owned()));
        git(&env, &["commit", "-qm", "y"]);
        // The states that a change is compared with have those files, too: a revision, and a copy.
        env.write(".ci/use.py", format!("{USE}total(1)\n"));
        let new = env.lanser(["diag", "--new", "--json"]).answer();
        assert_eq!(new["facts"]["diagnostics"]["items"].as_array().map(Vec::len), Some(1), "{new}");
        assert_eq!(new["facts"]["diagnostics"]["items"][0]["uri"], ".ci/use.py");
        env.write(".ci/use.py", USE);
        let diff = "--- a/.ci/use.py\n+++ b/.ci/use.py\n@@ -1,2 +1,2 @@\n from shop import total\n-total()\n+total(1)\n";
        let checked = env.lanser_with_input(["check", "-"], diff);
        assert!(checked.stdout.contains(".ci/use.py:2:7  error"), "{checked}");
        let rename = ["rename", "py://shop#total", "add", "--allow-dirty", "--apply", "--json"];
        env.lanser(rename).answer();
        for file in expected.iter().filter(|file| **file != "shop.py") {
            assert_eq!(
                std::fs::read_to_string(env.file(file)).unwrap(),
                USE.replace("total", "add"),
                "{file}"
            );
        }
    }
}

/// A name is one variable in its scope: where the server does not know one of its uses, Python's scopes do.
#[test]
fn uses_that_are_one_variable_with_a_reference() {
    let project = Project::parse(
        "\
//- /m.py
def rate(): ...
//- /late.py
def load():
    global rate
    from m import rate
def use():
    rate()
//- /broken.py
from m import rate
def (:
  rate()
  rate(
//- /twice.py
from m import rate
rate()
from other import rate
rate()
//- /other.py
def rate(): ...
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let found = uses(&env, "py://m#rate");
        for place in ["late.py:2:12", "broken.py:3:3", "broken.py:4:3"] {
            let is_doubted = found.unresolved.iter().any(|other| other == place);
            assert!(is_doubted != found.at().contains(&place), "{place}: {}", found.bundle);
        }
        // Bound to another function since.
        assert!(!found.unresolved.iter().any(|place| place.starts_with("twice.py")), "{}", found.bundle);
    }
}

/// The object of `getattr(x.attribute, "name")` may be what a property returns, or what a decorator makes of a function.
#[test]
fn strings_that_getattr_looks_up_on_properties() {
    let project = Project::parse(
        "\
//- /held.py
def helper(): ...
//- /m.py
from types import ModuleType
from typing import Callable
import held
class Handler:
    def handle(self): ...
def deco(f: Callable[[], None]) -> Handler:
    return Handler()
@deco
def decorated() -> None: ...
def plain() -> None: ...
class Uses:
    @property
    def handler(self) -> Handler:
        return Handler()
    @property
    def module(self) -> ModuleType:
        return held
def use(uses: Uses):
    getattr(uses.handler, 'handle')
    getattr(decorated, 'handle')
    getattr(plain, 'handle')
    getattr(uses.module, 'helper')
//- /looked_up.py
from m import Handler
class Other:
    def handle(self): ...
class Run:
    def run(self): ...
def use(handler: Handler, run: Run, other: Other):
    handle = getattr(handler, 'handle', None)
    handle()
    getattr(run, 'run')()
    run = other.handle
    run()
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let found = uses(&env, "py://m#Handler.handle");
        let mut either: Vec<&str> = found.at();
        either.extend(found.unresolved.iter().map(String::as_str));
        // What is bound to a variable is called by the variable's name.
        let expected = ["looked_up.py:7:32", "m.py:5:9", "m.py:19:28", "m.py:20:25", "looked_up.py:8:5"];
        either.sort_by_key(|at| expected.iter().position(|place| place == at));
        assert_eq!(either, expected);
        assert!(found.at().contains(&"m.py:19:28") && found.unresolved.contains(&expected[4].to_owned()));
        assert_eq!(uses(&env, "py://looked_up#Run.run").status, "complete");
        let found = uses(&env, "py://held#helper");
        assert_eq!((found.status.as_str(), found.unresolved), ("partial", vec!["m.py:22:27".to_owned()]));
    }
}

/// A variable that is called may hold a function that is passed on, also that of another function and in another file. A rename leaves
/// the variable its name.
#[test]
fn variables_may_hold_functions() {
    let project = Project::parse(
        "\
//- /m.py
from run import run
def match(x): return x
def first():
    def match(x): return x
    def other(x): return other(x)
    def unused(x): return x
    unused(other(1))
    return run(match)
def second(): return run(match)
//- /run.py
def run(match):
    other = unused = match
    return match(1), other, unused(2)
//- /wrap.py
from typing import Callable
class Wrapper:
    call: Callable[[], int]
    def __init__(self, inner): self.inner = inner
    def __getattr__(self, name): return getattr(self.inner, name)
    def go(self): return self.call()
class A:
    def call(self): return 1
run = [A().call]
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        for (name, at) in [("m.py:2:5", ["m.py:2:5", "m.py:9:26"]), ("m.py:4:9", ["m.py:4:9", "m.py:8:16"])] {
            let found = uses(&env, name);
            assert_eq!(
                (found.at(), found.unresolved.clone()),
                (at.to_vec(), vec!["run.py:3:12".to_owned()]),
                "{name}"
            );
            let bundle = env.lanser(["rename", name, "same", "--allow-dirty", "--json"]).bundle();
            assert_eq!(bundle["error"], Value::Null, "{bundle}");
            assert_eq!(bundle["edits"]["files"].as_array().unwrap().len(), 1, "{bundle}");
        }
        for name in ["m.py:5:9", "m.py:6:9"] {
            assert_eq!(uses(&env, name).status, "complete", "{name}");
        }
        // What an attribute holds may be reached by the name of the method.
        let bundle = env.lanser(["rename", "A.call", "same", "--allow-dirty", "--json"]).bundle();
        assert_eq!(bundle["error"]["data"]["failed"], json!(["completeness"]), "{bundle}");
    }
}

/// A decorator gets the function, too, unless it is known to leave the calls to its callers.
#[test]
fn variables_may_hold_decorated_functions() {
    let project = Project::parse(
        "\
//- /app.py
from typing import Callable
class App:
    def __init__(self) -> None:
        self.callbacks: list[Callable[[], int]] = []
    def register(self, callback: Callable[[], int]) -> Callable[[], int]:
        self.callbacks.append(callback)
        return callback
def run(main: Callable[[], int], plain: Callable[[], int]) -> int:
    return main() + plain()
//- /m.py
from functools import lru_cache
from app import App
app = App()
@app.register
def main() -> int: return 1
@lru_cache
def plain() -> int: return 1
@[app.register][0]
def listed() -> int: return 1
//- /use.py
def run(listed): return listed()
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let found = uses(&env, "py://m#main");
        assert_eq!((found.at(), &found.unresolved), (vec!["m.py:5:5"], &vec!["app.py:9:12".to_owned()]));
        assert_eq!(uses(&env, "py://m#plain").status, "complete");
        assert_eq!(uses(&env, "py://m#listed").unresolved, ["use.py:1:25"]);
    }
}

/// In the body of a class a name that it binds only there is the module's, and the default value of a parameter is not the parameter.
#[test]
fn names_that_a_class_or_a_parameter_binds_again() {
    let project = Project::parse(
        "\
//- /core.py
def filter(x): return x
class day: ...
def launch(): ...
//- /use.py
from core import filter, day, launch
class A:
    filter = staticmethod(filter)
    day: 'day | None' = None
    again = day
def run(launch=launch): return launch()
run(lambda: 1)
//- /maybe.py
import sys
size = 1
class B:
    if sys.argv: size = 2
    size_of_b = size
class C:
    size: size
    other: size
class D:
    size = 3
    size_of_d = size
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let found = uses(&env, "core.filter");
        assert_eq!(
            (found.at(), found.status.as_str()),
            (vec!["core.py:1:5", "use.py:1:18", "use.py:3:27"], "complete")
        );
        let found = uses(&env, "core.day");
        assert_eq!(
            (found.at(), found.status.as_str()),
            (vec!["core.py:2:7", "use.py:1:26", "use.py:4:11"], "complete")
        );
        let found = uses(&env, "core.launch");
        assert_eq!(found.at(), ["core.py:3:5", "use.py:1:31", "use.py:6:16"]);
        assert_eq!(found.unresolved, ["use.py:6:32"]);
        let found = uses(&env, "maybe.py:2:1");
        assert_eq!(found.at(), ["maybe.py:2:1", "maybe.py:7:11", "maybe.py:8:12"]);
        assert_eq!(found.unresolved, ["maybe.py:5:17"]);
    }
}

#[test]
fn types_in_strings_are_uses() {
    let project = Project::parse(
        "\
//- /core.py
class Ctx: ...
//- /use.py
import typing as t
import core
from core import Ctx
def f(x) -> 'Ctx': return t.cast('Ctx', x)
N = t.NewType('N', 'Ctx')
T = t.TypeVar('T', bound='core.Ctx | None')
class Other:
    class Ctx: ...
    def g(self): return t.cast('Ctx', self), t.cast('str', 'Ctx')
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let found = uses(&env, "core.Ctx");
        let uses = ["core.py:1:7", "use.py:3:18", "use.py:4:14", "use.py:4:35", "use.py:5:21", "use.py:6:32"];
        assert_eq!(found.at()[..6], uses, "{:?}", found.at());
        // In a method, the name is not that of the class around it.
        assert_eq!((&found.at()[6..], found.status.as_str()), (&["use.py:9:33"][..], "complete"));
    }
}

/// The code of a file with many of them is read once.
#[test]
fn many_types_in_strings() {
    let uses_of_type = "t.cast('C', 1)\n".repeat(2000);
    let list = format!("words = '{}'\n", "C , ".repeat(20_000));
    let project = Project::parse("//- /core.py\nclass C: ...\n")
        .and("use.py", format!("import typing as t\nfrom core import C\n{uses_of_type}"))
        .and("list.py", format!("from core import C\n{list}"));
    let found = uses(&TestEnv::pyright(&project), "core.C");
    assert_eq!((found.at().len(), found.status.as_str()), (2003, "complete"));
}

#[test]
fn keys_of_dictionaries_that_are_written_out() {
    let project = Project::parse(
        "\
//- /m.py
from typing import TypedDict
class Config(TypedDict, total=False):
    size: int
def f(x: Config, y):
    x.update({'size': 2})
    if 'size' in x and 'size' in y:
        return 'size', {'name': 'size'}
made: Config = {'size': 1}
",
    );
    for (env, knows) in [(TestEnv::ty(&project), false), (TestEnv::pyright(&project), true)] {
        let found = uses(&env, "Config.size");
        let (mut expected, mut open) = (vec!["m.py:3:5", "m.py:6:9"], vec!["m.py:5:16", "m.py:6:25"]);
        if knows {
            expected.push("m.py:8:18");
        } else {
            open.push("m.py:8:18");
        }
        assert_eq!(
            (found.at(), found.unresolved.clone()),
            (expected, open.iter().map(|at| (*at).to_owned()).collect())
        );
    }
}

/// A pattern of a class may bind a method to a name that is called.
#[test]
fn methods_in_class_patterns_may_be_called() {
    let project = Project::parse(
        "//- /m.py\nclass C:\n    def run(self): ...\ndef f(x: object, g):\n    match x:\n        case C(run=r):\n            g(r)\n",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let facts = env.lanser(["calls", "m.C.run", "--json"]).answer()["facts"].clone();
        assert_eq!(facts["completeness"]["unresolved"]["items"][0]["at"], "m.py@L5:C16", "{facts}");
    }
}

#[test]
fn a_base_of_the_standard_library_has_unrelated_subclasses() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /m.py
import os
from collections.abc import MutableMapping
class Own(MutableMapping[str, str]):
    def update(self, *a, **k): ...
def use(given: MutableMapping[str, str], own: dict[str, Own], untyped):
    os.environ.update({})
    given.update({})
    own['x'].update({})
    own.update({})
",
    ));
    let found = uses(&env, "py://m#Own.update");
    assert_eq!(found.at(), ["m.py:4:9", "m.py:7:11", "m.py:8:14"]);
    assert_eq!((found.provenance("m.py:7:11"), found.status.as_str()), ("dispatch", "complete"));
}

#[test]
fn overloads_declare_the_types_of_parameters() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /m.py
from typing import Any, Protocol, overload
class Makes(Protocol):
    def make(self) -> int: ...
class Other:
    def make(self) -> int: ...
    def more(self) -> int: ...
class C:
    def make(self) -> int: return 1
@overload
def run(o: Makes) -> int: ...
@overload
def run(o: str) -> str: ...
def run(o: Any) -> Any:
    return o.make()
def untyped(o: Any) -> Any:
    return o.more()
",
    ));
    let found = uses(&env, "py://m#C.make");
    assert_eq!(found.at(), ["m.py:8:9", "m.py:14:14"]);
    assert_eq!((found.provenance("m.py:14:14"), found.status.as_str()), ("dispatch", "complete"));
    let found = uses(&env, "py://m#Other.more");
    assert_eq!((found.status.as_str(), found.unresolved), ("partial", vec!["m.py:16:14".to_owned()]));
    // The protocol's member keeps its name, so the call does too.
    let rename = env.lanser(["rename", "py://m#C.make", "build"]);
    assert!(rename.stderr.contains("used through an interface that keeps its name"), "{rename}");
}

#[test]
fn implementations_without_server_support() {
    let env = TestEnv::pyright_session(&Project::parse(FAMILY));
    let at = |selector: &str| -> Vec<String> {
        let bundle = env.lanser(["impl", selector, "--json"]).answer();
        assert_eq!(bundle["facts"]["provenance"], "index+lsp");
        assert_eq!(bundle["facts"]["completeness"]["status"], "complete");
        let found = bundle["facts"]["implementations"].as_array().unwrap();
        found.iter().map(|item| item["at"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(at("py://base#Base.convert"), ["base.py@L3:C9", "sub.py@L3:C9"]);
    assert_eq!(at("py://base#Base"), ["sub.py@L2:C7"]);
}

#[test]
fn language_rules_explain_occurrences() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /m.py
import dataclasses
from enum import Enum
from typing import TypedDict
@dataclasses.dataclass
class D:
    size: int = 0
@dataclasses.dataclass
class E:
    size: int = 0
class Color(Enum):
    RED = 1
class T(TypedDict):
    key: int
def use(d: D, e: E, t: T, plain: dict):
    dataclasses.replace(d, size=1)
    dataclasses.replace(e, size=2)
    match d:
        case D(size=n): print(n)
    print(Color['RED'], t['key'], t.get('key'), plain['key'])
    dict(size=3)
",
    ));
    let size = uses(&env, "py://m#D.size");
    assert_eq!(size.at(), ["m.py:6:5", "m.py:15:28", "m.py:18:16"]);
    assert_eq!((size.provenance("m.py:15:28"), size.status.as_str()), ("replace", "complete"));
    let red = uses(&env, "py://m#Color.RED");
    assert_eq!((red.provenance("m.py:19:18"), red.status.as_str()), ("subscript", "complete"));
    let key = uses(&env, "py://m#T.key");
    assert_eq!(key.at(), ["m.py:13:5", "m.py:19:28", "m.py:19:42"]);
}

/// A project whose tests get the functions that they call from fixtures.
const FIXTURES: &str = "\
//- /app.py
class App:
    def send(self, text): return text
class Client:
    def send(self, text): return text
//- /tests/conftest.py
import pytest
from app import App
@pytest.fixture
def app():
    yield App()
//- /tests/unit/conftest.py
import pytest
from app import Client
@pytest.fixture(name='client')
def make_client(app):
    app.send('setup')
    return Client()
//- /tests/unit/test_it.py
import pytest
from app import App
def test_one(app, client):
    app.send('a')
    client.send('b')
@pytest.mark.parametrize('given, text', [(App(), 'x'), pytest.param(App(), 'y', id='z')])
def test_two(given, text, other):
    given.send(text)
    other.send(text)
class TestThree:
    @pytest.fixture(autouse=True)
    def setup(self, app):
        self.app = app
    def test_three(self):
        self.app.send('c')
";

#[test]
fn fixture_values_are_known() {
    let env = TestEnv::pyright_session(&Project::parse(FIXTURES));
    let found = uses(&env, "py://app#App.send");
    let in_tests: Vec<&str> = found.at().into_iter().filter(|at| at.starts_with("tests")).collect();
    assert_eq!(
        in_tests,
        [
            "tests/unit/conftest.py:5:9",
            "tests/unit/test_it.py:4:9",
            "tests/unit/test_it.py:8:11",
            "tests/unit/test_it.py:15:18"
        ]
    );
    assert!(in_tests.iter().all(|at| found.provenance(at) == "pytest-fixture"));
    assert_eq!(found.unresolved, ["tests/unit/test_it.py:9:11"]);
    assert_eq!(uses(&env, "py://app#Client.send").at()[1..], ["tests/unit/test_it.py:5:12"]);
    let led = env.lanser(["def", "tests/unit/test_it.py:5:12", "--json"]).answer();
    let definition = &led["facts"]["definitions"][0];
    assert_eq!(
        (&definition["at"], &definition["provenance"]),
        (&json!("app.py@L4:C9"), &json!("pytest-fixture"))
    );
    // The references of the fixture are the parameters that it is passed to.
    let app = uses(&env, "py://tests.conftest#app");
    for at in ["tests/unit/conftest.py:4:17", "tests/unit/test_it.py:3:14", "tests/unit/test_it.py:12:21"] {
        assert_eq!(app.provenance(at), "fixture-request");
    }
}

#[test]
fn keys_that_may_become_arguments_are_unresolved() {
    let env = TestEnv::ty(&Project::parse(
        "//- /m.py\ndef f(gamma): ...\n\
         //- /beside.py\nfrom threading import Thread\nfrom m import f\nThread(target=f, kwargs={'gamma': 1}).start()\n\
         //- /inside.py\nfrom m import f\nf(**dict(zip(['gamma'], [1])))\n\
         //- /test_given.py\nimport pytest\nfrom m import f\n@pytest.mark.parametrize('given', [{'gamma': 1}])\ndef test_f(given): f(**given)\n\
         //- /other.py\nfrom m import f\nf({'gamma': 1})\nx = {'gamma': 'gamma'}\n\
         //- /pyproject.toml\n",
    ));
    let found = uses(&env, "m.f(gamma)");
    assert_eq!(found.unresolved, ["beside.py:3:27", "inside.py:2:16", "test_given.py:3:38"]);
}

#[test]
fn parametrize_names_the_fixtures_that_it_passes_values_to() {
    let env = TestEnv::ty(&Project::parse(
        "//- /conftest.py\nimport pytest\n@pytest.fixture\ndef zed(request): return request.param\n\
         //- /test_a.py\nimport pytest\n\
         @pytest.mark.parametrize('zed, b', [(1, 2)], indirect=['zed'])\ndef test_a(zed, b): ...\n\
         @pytest.mark.parametrize('zed', [1])\ndef test_b(zed): ...\n\
         @pytest.mark.parametrize(('zed', 'c'), [(1, 2)], indirect=True)\ndef test_c(zed, c): ...\n\
         //- /pyproject.toml\n",
    ));
    let found = uses(&env, "conftest.zed");
    let expected = ["2:27", "2:57", "3:12", "6:28", "7:12"].map(|at| format!("test_a.py:{at}"));
    assert_eq!(found.at()[1..], expected);
    assert!(found.unresolved.is_empty());
}

#[test]
fn one_answer_on_every_path() {
    let script = "//- /bin/tool\n#!/usr/bin/env python3\nfrom base import Base\nBase().convert('x')\n";
    let project = Project::parse(&format!("{FAMILY}{FIXTURES}{script}"));
    let env = TestEnv::pyright_session(&project);
    let asked: [&[&str]; 6] = [
        &["refs", "py://app#App.send"],
        &["refs", "py://sub#Sub.convert"],
        &["calls", "--incoming", "py://base#Base.convert"],
        &["impl", "py://base#Base.convert"],
        &["def", "tests/unit/test_it.py:5:12"],
        &["refs", "py://tests.conftest#app"],
    ];
    let id = |args: &[&str]| env.lanser(args).answer()["bundleId"].as_str().unwrap().to_owned();
    let ask = |more: &[&str]| -> Vec<String> {
        asked.iter().map(|args| id(&[*args, &["--json"][..], more].concat())).collect()
    };
    let cold = ask(&["--no-session", "--no-cache"]);
    assert_eq!(cold, ask(&["--no-cache"]), "a session");
    let mut backwards = asked.iter().rev();
    let again: Vec<String> =
        backwards.by_ref().map(|args| id(&[&args[..], &["--json", "--no-cache"]].concat())).collect();
    assert_eq!(cold, again.into_iter().rev().collect::<Vec<_>>(), "another order");
    assert_eq!(cold, ask(&[]), "kept");
    assert_eq!(cold, ask(&[]), "remembered");
    let trace = env.path("trace.jsonl");
    let recorded = ["--no-session", "--trace-file", trace.to_str().unwrap()];
    assert_eq!(cold, ask(&recorded), "recorded");
    let replayed = env.lanser(["trace", "replay", trace.to_str().unwrap(), "--verify"]);
    assert_eq!(replayed.code, Some(0), "{replayed}");
}

#[test]
fn pages_cover_references_family_and_unresolved() {
    let env = TestEnv::pyright_session(&Project::parse(FAMILY));
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut args = vec!["refs", "py://sub#Sub.convert", "--json", "--limit", "3"];
        if let Some(cursor) = &cursor {
            args.extend(["--cursor", cursor]);
        }
        let bundle = env.lanser(args).answer();
        let facts = &bundle["facts"];
        let lists =
            [&facts["references"], &facts["overrides"], &facts["completeness"]["unresolved"]["items"]];
        let items = lists.into_iter().filter_map(Value::as_array).flatten();
        seen.extend(items.map(|item| item["at"].as_str().unwrap().to_owned()));
        assert_eq!(bundle["meta"]["limits"]["total"], 8);
        match bundle["meta"]["limits"]["cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
    assert_eq!(seen.last().map(String::as_str), Some("sub.py@L12:C7"));
}

#[test]
fn settings_that_change_answers_are_reported() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /pyrightconfig.json
{ broken
//- /.venv/pyvenv.cfg
home = /usr/bin
//- /m.py
import nowhere_to_be_found
def f(): ...
",
    ));
    let output = env.lanser(["refs", "py://m#f"]);
    assert_eq!(output.code, Some(0), "{output}");
    for part in ["pyrightconfig.json", ".venv", "nowhere_to_be_found"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    let bundle = env.lanser(["refs", "py://m#f", "--json"]).answer();
    assert_eq!(bundle["warnings"].as_array().unwrap().len(), 3);
}

#[test]
fn on_timeout_the_known_part_is_the_answer() {
    let env = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\nf()\n# f\n"));
    let server = FakeServer::new(&env, &Behavior::good().hangs_on("textDocument/references"));
    let began = std::time::Instant::now();
    let args = ["refs", "m.py:1:5", "--json", "--timeout", "4", "--server-command", server.command()];
    let output = env.lanser(args);
    assert!(began.elapsed().as_secs() < 8, "{:?}", began.elapsed());
    assert_eq!(output.code, Some(64), "{output}");
    let bundle: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&bundle["status"], &bundle["error"]["symbol"]), (&json!("partial"), &json!("E/LS_TIMEOUT")));
    let verdict = &bundle["facts"]["completeness"];
    assert_eq!((&verdict["status"], &verdict["unresolved"]["count"]), (&json!("unknown"), &json!(2)));
}

/// A module that is passed on may be any object; one that is only inspected is not.
#[test]
fn a_module_may_be_held_by_a_variable() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /a.py
def f(): ...
//- /b.py
def g(): ...
//- /c.py
def h(): ...
//- /use.py
import a
import b
import c as other
from types import SimpleNamespace
def call(any):
    any.f()
    any.g()
    any.h()
call(a)
setattr(b, 'g', None)
call(other)
SimpleNamespace(k=b.g).k()
//- /load.py
import importlib
from b import g
module = importlib.import_module('a')
module.f()
SimpleNamespace(g=g).g()
",
        ));
        let found = uses(&env, "py://a#f");
        assert!(found.unresolved.contains(&"use.py:6:9".to_owned()), "{}", found.bundle);
        // ty knows what is imported.
        let is_listed =
            found.unresolved.contains(&"load.py:4:8".to_owned()) || found.at().contains(&"load.py:4:8");
        assert!(is_listed, "{}", found.bundle);
        assert!(uses(&env, "py://c#h").unresolved.contains(&"use.py:8:9".to_owned()));
        // The namespace keeps it by its name.
        assert!(uses(&env, "py://b#g").status != "complete");
    }
}

/// An assignment that chooses a value gives it another name, too.
#[test]
fn chosen_aliases_are_followed() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
def f(): ...
def other(): ...
chosen = f if input() else other
chosen()
one, two = other, f
two()
if (kept := f):
    kept()
",
        ));
        let found = uses(&env, "py://m#f");
        for at in ["m.py:4:1", "m.py:6:1", "m.py:8:5"] {
            assert!(found.at().contains(&at), "{at}: {}", found.bundle);
        }
    }
}

/// What a server infers from a default, or from what a function assigns to its parameter, is not what callers pass.
#[test]
fn receivers_that_callers_may_replace_are_unresolved() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
class Real:
    def send(self): ...
class Fake:
    def send(self): ...
def either(client=None):
    client = client or Real()
    client.send()
def default(client=Real()):
    client.send()
class App:
    def __init__(self, client=None):
        self.client = client if client is not None else Real()
        self.own = Real()
    def run(self):
        self.client.send()
        self.own.send()
def declared(client: Real | None = None, sep='x'):
    client = client or Real()
    client.send()
    made = Real()
    made.send()
    sep.join([])
either(Fake())
default(Fake())
App(Fake()).run()
",
        ));
        let found = uses(&env, "py://m#Fake.send");
        assert_eq!(found.at(), ["m.py:4:9"]);
        assert_eq!(found.unresolved, ["m.py:7:12", "m.py:9:12", "m.py:15:21"]);
        assert_eq!(uses(&env, "py://m#Real.send").status, "complete");
    }
}

#[test]
fn keywords_that_reach_a_symbol_without_its_call_are_unresolved() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
from unittest import mock
def send(to, *, subject='x'): ...
def notify():
    send('me', subject='hello')
with mock.patch('m.send') as sent:
    notify()
    sent.assert_called_once_with('me', subject='hello')
    assert sent.call_args == mock.call('me', subject='hello')
options = dict(subject='y')
send('you', **options)
",
        ));
        let found = uses(&env, "py://m#send(subject)");
        assert_eq!(found.unresolved, ["m.py:7:40", "m.py:8:46", "m.py:9:16"]);
    }
}

#[test]
fn keywords_that_a_class_makes_attributes_of_are_unresolved() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
class Options:
    color = 'red'
    def __init__(self, **values):
        self.width = 1
        self.__dict__.update(values)
class Set:
    height = 2
    def change(self, **values):
        for name in values:
            setattr(self, name, values[name])
class Below(Set):
    def __init__(self):
        self.depth = 3
class Other:
    color = 'blue'
    def __init__(self, *, color, **more): self.color = color
Options(color='blue', width=3)
Set().change(height=5)
Below().change(depth=5)
Other(color='green')
Options(**{'color': 'grey'})
Options(**dict(width=4))
",
        ));
        let unresolved = |selector| uses(&env, selector).unresolved;
        assert_eq!(unresolved("py://m#Options.color"), ["m.py:17:9", "m.py:21:13"]);
        assert_eq!(unresolved("py://m#Options.width"), ["m.py:17:23", "m.py:22:16"]);
        assert_eq!(unresolved("py://m#Set.height"), ["m.py:18:14"]);
        assert_eq!(unresolved("py://m#Below.depth"), ["m.py:19:16"]);
        assert_eq!(uses(&env, "py://m#Other.color").status, "complete");
    }
}

#[test]
fn keys_of_dictionaries_that_are_unpacked_are_unresolved() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
from dataclasses import dataclass
def send(to, *, subject='x', **more): return more['subject']
@dataclass
class Mail:
    subject: str = 'y'
options: dict[str, str] = {'subject': 'a'}
options['subject'] = 'b'
options.setdefault('subject', 'c')
send('me', **options)
class App:
    kept = {'subject': 'd', 'other': {'subject': 'nested'}}
    def run(self):
        self.own = {'subject': 'e'}
        return Mail(**self.own)
unused = {'subject': 'f'}
print('subject', unused['subject'])
shown = {'subject': 'g'}
print('{subject}'.format(**shown))
",
        ));
        let expected = ["m.py:6:29", "m.py:7:10", "m.py:8:21", "m.py:13:22"];
        assert_eq!(uses(&env, "py://m#send(subject)").unresolved, expected);
        assert_eq!(uses(&env, "py://m#Mail.subject").unresolved, expected);
    }
}

#[test]
fn keys_of_unpacked_attributes_replacers_and_typed_dictionaries() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
from dataclasses import dataclass, replace
from typing import TypedDict
@dataclass
class Mail:
    subject: str = 'x'
class App:
    def run(self):
        self.options: dict[str, str] = {}
        self.options['subject'] = 'a'
        first = second = {'subject': 'b'}
        return Mail(**self.options), Mail(**first)
changed = {'subject': 'c'}
replace(Mail(), **changed)
class Movie(TypedDict):
    title: str
def show(movie: Movie) -> str:
    print('{title}'.format(**movie))
    return movie['title']
",
        ));
        assert_eq!(uses(&env, "py://m#Mail.subject").unresolved, ["m.py:9:23", "m.py:10:28", "m.py:12:13"]);
        let found = uses(&env, "py://m#Movie.title");
        assert_eq!(found.at(), ["m.py:15:5", "m.py:18:19"]);
    }
}

#[test]
fn names_that_a_package_makes_are_unresolved() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /pkg/__init__.py
import importlib
def __getattr__(name):
    return getattr(importlib.import_module('pkg.core'), name)
//- /pkg/core.py
class Thing: ...
//- /main.py
from pkg import Thing
Thing()
",
        ));
        let found = uses(&env, "py://pkg.core#Thing");
        assert_eq!(found.status, "partial", "{}", found.bundle);
        assert_eq!(found.unresolved, ["main.py:1:17", "main.py:2:1"]);
    }
}

#[test]
fn attributes_of_super_are_those_of_base_classes() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
class Base:
    @property
    def level(self) -> int: return 1
    def save(self) -> None: ...
class Sub(Base):
    @property
    def level(self) -> int: return super().level + 1
    def save(self) -> None:
        do = super().save
        do()
",
        ));
        let found = uses(&env, "py://m#Base.level");
        assert_eq!((found.at(), found.status.as_str()), (vec!["m.py:3:9", "m.py:7:44"], "complete"));
        assert!(uses(&env, "py://m#Base.save").at().contains(&"m.py:9:22"));
        assert!(!uses(&env, "py://m#Sub.level").at().contains(&"m.py:7:44"));
    }
}

#[test]
fn keys_of_returned_dictionaries_are_unresolved() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
from typing import TypedDict
class In(TypedDict, total=False):
    key: int
def make() -> In: return In(key=1)
make().get('key')
make().setdefault('key', 3)
",
        ));
        let found = uses(&env, "py://m#In.key");
        assert_eq!(found.unresolved, ["m.py:5:13", "m.py:6:20"]);
    }
}

/// Python decodes such a file as its coding comment says, so that other names than those that can be seen may be in it.
#[test]
fn a_file_in_an_unknown_encoding_is_not_called_searched() {
    let env = TestEnv::ty(&Project::parse(
        "//- /a.py\ndef f(): ...\n//- /b.py\n# coding: unicode_escape\nfrom a import \\x66\n\\x66()\n",
    ));
    let found = uses(&env, "py://a#f");
    assert_eq!(found.status, "unknown", "{}", found.bundle);
}

/// Only the file of a local variable can use it; everywhere else its name is another symbol, or text.
#[test]
fn a_local_variable_is_not_used_by_other_files() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
def f() -> int:
    amount = 1  # amount
    def g() -> int: return amount
    return g() + amount
//- /names.py
amount = 2  # the amount
class A:
    amount: int = 3
print(A.amount, dict(amount=4), 'amount', 'the amount', 'amounts')
//- /formatted.py
from names import amount
print(f'{amount} amount')
//- /exported.py
from names import amount
__all__ = ['amount']
",
        ));
        let found = uses(&env, "m.py:2:5");
        assert_eq!(
            found.at().into_iter().collect::<BTreeSet<_>>(),
            ["m.py:2:5", "m.py:3:28", "m.py:4:18"].into()
        );
        assert_eq!(found.status, "complete");
        let explained = &found.bundle["facts"]["completeness"]["explained"];
        assert_eq!(explained, &json!({"reference": 3, "override": 0, "other": 8, "text": 5}));
    }
}

/// What a function does not provably bind may be used anywhere: names that a class binds without a plain assignment, names in
/// parentheses, and functions that another function defines as `global`.
#[test]
fn a_name_is_local_only_if_a_function_binds_it() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
(va) = 1
for (vb) in [1]: pass
class A:
    (vc) = 1
    vd, ve = 1, 2
def setup():
    global vf
    def vf(x): return x
//- /use.py
from m import vf
import m
m.vf(1)
//- /unknown.py
import m
def g(p):
    return p.va, p.vb, p.vc, p.vd, p.vf(1)
g(m)
",
        ));
        for (selector, unresolved) in [
            ("m.py:1:2", "unknown.py:3:14"),
            ("m.py:2:6", "unknown.py:3:20"),
            ("m.py:4:6", "unknown.py:3:26"),
            ("m.py:5:5", "unknown.py:3:32"),
            ("m.py:8:9", "unknown.py:3:38"),
        ] {
            assert_eq!(uses(&env, selector).unresolved, [unresolved], "{selector}");
        }
        let found = uses(&env, "py://m#vf");
        let places: BTreeSet<&str> = found.at().into_iter().collect();
        assert_eq!(places, ["m.py:7:12", "m.py:8:9", "use.py:1:15", "use.py:3:3"].into());
    }
}

/// The fields of a named tuple are defined by strings, and are keyword arguments.
#[test]
fn fields_of_a_named_tuple_are_members() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /m.py
from collections import namedtuple
P = namedtuple('P', ['alpha', 'beta'])
Q = namedtuple('Q', 'gamma delta')
//- /use.py
from m import P, Q
P(1, 2).alpha
P(alpha=1, beta=2)._replace(alpha=3)
Q(1, 2).gamma
Q(gamma=1, delta=2)
//- /unknown.py
def g(p):
    return p.alpha, p.gamma
",
    ));
    let found = uses(&env, "use.py:2:9");
    assert_eq!(found.at(), ["m.py:2:23", "use.py:2:9", "use.py:3:3"]);
    assert_eq!(found.unresolved, ["unknown.py:2:14", "use.py:3:29"]);
    assert_eq!(uses(&env, "use.py:4:9").unresolved, ["unknown.py:2:23", "use.py:5:3"]);
}

/// A module has those that it imports as attributes, under the names that it gives them.
#[test]
fn a_module_is_held_by_one_that_imports_it() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /helper.py
def z(): ...
//- /m.py
import helper as hp
hp.z()
//- /other.py
import m
def g(mod):
    mod.hp.z()
    mod.something.z()
    mod.helper.z()
    mod()[0].hp.z()
g(m)
",
        ));
        let unresolved = ["other.py:3:12", "other.py:5:16", "other.py:6:17"];
        assert_eq!(uses(&env, "py://helper#z").unresolved, unresolved);
    }
}

/// A function inside a function can get anywhere under another name.
#[test]
fn aliases_of_a_local_function_are_followed() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
class A:
    def __init__(self) -> None:
        def inner(n: int) -> int: return n
        self.summed = inner
        def total(n: int) -> int: return n
        self.total = total
def setup() -> None:
    global pub
    def wrapper(n: int) -> int: return n
    pub = wrapper
//- /use.py
import m
m.A().summed(1)
m.A().total(2)
m.pub(3)
def g(a):
    a.summed(4)
    a.total(5)
",
        ));
        for (selector, used, unresolved) in [
            ("m.py:3:13", "use.py:2:7", &["use.py:6:7"][..]),
            ("m.py:5:13", "use.py:3:7", &["use.py:7:7"]),
            ("m.py:9:9", "use.py:4:3", &[]),
        ] {
            let found = uses(&env, selector);
            assert!(found.at().contains(&used), "{selector}: {}", found.bundle);
            assert_eq!(found.unresolved, unresolved, "{selector}: {}", found.bundle);
        }
    }
}

/// What a server resolves by one part of a receiver's type may be the symbol by another part.
#[test]
fn half_known_receivers_are_unresolved() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
import os.path
class A:
    def go(self): return 'A'
class B:
    def go(self): return 'B'
def pick(found, key):
    x = found.get(key) or A()
    return x.go()
def last(items):
    cur = A()
    for item in items:
        cur = item
    return cur.go()
def known(a: A, size: int) -> str:
    os.path.join('go')
    return a.go()
",
        ));
        let found = uses(&env, "py://m#B.go");
        assert_eq!(found.unresolved, ["m.py:8:14", "m.py:13:16"], "{}", found.bundle);
        let reasons = &found.bundle["facts"]["completeness"]["reason"];
        assert_eq!(reasons, "a part of the receiver's type is unknown", "{}", found.bundle);
        // The places where the receiver is known, and the definition.
        assert_eq!(found.bundle["facts"]["completeness"]["explained"]["other"], 2, "{}", found.bundle);
    }
}

/// The first parameter of a function inside a method is no instance of the method's class.
#[test]
fn receivers_that_only_look_like_self() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
class Sum:
    def total(self): return 3
class Suite:
    def test(self):
        def show(self): return f'<{self.total()}>'
        Sum.__str__ = show
        return str(Sum())
//- /meta.py
class Meta(type):
    def build(cls): return cls.create()
class D(metaclass=Meta):
    @classmethod
    def create(cls): return 'created'
//- /pattern.py
class Modes:
    FAST = 1
def pick(mode, modes):
    match mode:
        case modes.FAST: return 'fast'
        case modes.FAST(1): return 'object'
",
        ));
        assert_eq!(uses(&env, "py://m#Sum.total").unresolved, ["m.py:5:41"]);
        assert_eq!(uses(&env, "py://meta#D.create").unresolved, ["meta.py:2:32"]);
        assert_eq!(uses(&env, "py://pattern#Modes.FAST").unresolved, ["pattern.py:5:20", "pattern.py:6:20"]);
    }
}

/// Code for another platform is not checked by a server, and uses the names of its class all the same.
#[test]
fn names_in_the_body_of_a_class_that_is_not_checked() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
import sys
if sys.platform == 'win32':
    class Con:
        base = 2
        total = base * 2
else:
    class Con:
        base = 3
        total = base * 2
",
        ));
        let found = uses(&env, "m.py:8:9");
        let places: BTreeSet<&str> = found.at().into_iter().collect();
        assert_eq!(places, ["m.py:4:9", "m.py:5:17", "m.py:8:9", "m.py:9:17"].into());
        assert_eq!(found.status, "complete");
    }
}

/// A call through the class above or below passes the parameter of the same method by its name.
#[test]
fn parameters_of_related_methods_and_of_overloads() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
class Base:
    def go(self, size): return size
class Derived(Base):
    def go(self, size): return size * 2
class Other:
    def go(self, size): return size
def use(b: Base, o: Other): return b.go(size=3), o.go(size=4)
//- /f.py
from typing import overload
@overload
def f(size: int) -> int: ...
@overload
def f(size: str) -> str: ...
def f(size): return size
print(f(size=1))
",
        ));
        let found = uses(&env, "m.py:4:18");
        let places: BTreeSet<&str> = found.at().into_iter().collect();
        assert_eq!(places, ["m.py:4:18", "m.py:4:32", "m.py:7:41"].into());
        assert_eq!(found.status, "complete");
        let found = uses(&env, "f.py:6:7");
        assert_eq!(found.status, "unknown", "{}", found.bundle);
    }
}

/// A class has the members of `object` without defining them, and those that a decorator makes.
#[test]
fn protocols_with_members_that_no_class_writes() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
from dataclasses import dataclass
from typing import Protocol
class HasLabel(Protocol):
    __slots__ = ()
    def label(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...
class Thing:
    def label(self) -> str: return 'thing'
def show(x: HasLabel) -> str: return x.label()
//- /o.py
from dataclasses import dataclass
from typing import Protocol
class Ordered(Protocol):
    def key(self) -> str: ...
    def __lt__(self, other: object) -> bool: ...
@dataclass(order=True)
class Item:
    size: int
    def key(self) -> str: return 'item'
def first(x: Ordered) -> str: return x.key()
",
        ));
        let found = uses(&env, "py://m#Thing.label");
        assert_eq!(found.provenance("m.py:9:40"), "dispatch");
        assert_eq!(uses(&env, "py://o#Item.key").unresolved, ["o.py:10:40"]);
    }
}

/// A module can be passed on as what a protocol describes.
#[test]
fn a_module_that_implements_a_protocol() {
    for server in [TestEnv::pyright_session, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /app.py
from typing import Protocol
class Plugin(Protocol):
    def run(self, x: int) -> int: ...
def call(plugin: Plugin) -> int:
    return plugin.run(2)
//- /plug.py
def run(x: int) -> int: return x + 1
//- /main.py
import plug
from app import call
print(call(plug))
",
        ));
        assert_eq!(uses(&env, "py://plug#run").unresolved, ["app.py:5:19"]);
    }
}

/// In code that cannot run Pyright takes every variable of the name for the module's, and each import of it.
#[test]
fn variables_in_code_that_cannot_run_are_other_variables() {
    let project = Project::parse(
        "\
//- /u.py
def echo(x=1): return x
//- /other.py
def echo(): return 2
//- /w.py
import sys
from u import echo
echo(1)
if sys.platform == 'win32':
    def p1(echo): return echo()
    def p2():
        for echo in []: echo()
        return [echo() for echo in []], (lambda echo: echo())(3)
    class Z:
        echo = 5
        y = echo
        def m(self): return self.echo
    def p3(*, echo=3): return echo
    p3(echo=4)
    def p4():
        from other import echo
        return echo()
    def p5(): return echo(9)
    class Y:
        echo = staticmethod(echo)
    def p6():
        from u import echo
        return echo()
def after():
    return 1
    def q(echo): return echo()
    return echo(5)
def late(echo):
    return 1
    return echo()
//- /fallback.py
import sys
if sys.platform == 'win32':
    from other import echo
else:
    from u import echo
echo()
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        let bundle = env.lanser(["refs", "py://u#echo", "--json"]).answer();
        let found = bundle["facts"]["references"].as_array().unwrap();
        let found: Vec<_> = found.iter().map(|one| one["at"].as_str().unwrap()).collect();
        let expected = [
            "fallback.py@L5:C19",
            "fallback.py@L6:C1",
            "u.py@L1:C5",
            "w.py@L2:C15",
            "w.py@L3:C1",
            "w.py@L18:C22",
            "w.py@L20:C29",
            "w.py@L22:C23",
            "w.py@L23:C16",
            "w.py@L27:C12",
        ];
        assert_eq!(found, expected, "{bundle}");
        // `staticmethod` is given it, so that what is called may be it.
        let completeness = &bundle["facts"]["completeness"];
        assert_eq!(completeness["reason"], "it is a variable that may hold it", "{bundle}");
        env.lanser(["rename", "py://u#echo", "say", "--apply", "--json"]).answer();
        let text = std::fs::read_to_string(env.file("w.py")).unwrap();
        let lines: Vec<(usize, &str)> =
            text.lines().enumerate().filter(|(_, line)| line.contains("say")).collect();
        let expected = [
            (1, "from u import say"),
            (2, "say(1)"),
            (17, "    def p5(): return say(9)"),
            (19, "        echo = staticmethod(say)"),
            (21, "        from u import say"),
            (22, "        return say()"),
            (26, "    return say(5)"),
        ];
        assert_eq!(lines, expected);
        let text = std::fs::read_to_string(env.file("fallback.py")).unwrap();
        assert!(
            text.contains("    from other import echo as say\nelse:\n    from u import say\nsay()\n"),
            "{text}"
        );
    }
}

/// A `TypedDict` is a plain dictionary when the program runs.
#[test]
fn the_key_of_a_plain_dictionary_may_be_that_of_a_typed_one() {
    let project = Project::parse(
        "\
//- /m.py
from typing import Any, TypedDict, cast
class M(TypedDict, total=False):
    hooks: list[int]
class N(TypedDict):
    hooks: int
def update(core: Any) -> None:
    typed = cast(M, core)
    typed['hooks'] = [1]
def go(plain: dict[str, Any], other: N) -> object:
    update(plain)
    return plain['hooks'], other['hooks']
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        let bundle = env.lanser(["refs", "py://m#M.hooks", "--json"]).answer();
        let unresolved = bundle["facts"]["completeness"]["unresolved"]["items"].as_array().unwrap();
        let unresolved: Vec<_> = unresolved.iter().map(|one| one["at"].as_str().unwrap()).collect();
        assert_eq!(unresolved, ["m.py@L11:C19"], "{bundle}");
        let found = bundle["facts"]["references"].as_array().unwrap();
        let found: Vec<_> = found.iter().map(|one| one["at"].as_str().unwrap()).collect();
        assert_eq!(found, ["m.py@L3:C5", "m.py@L8:C12"], "{bundle}");
    }
}

/// A parameter that requests a fixture is no variable of its own.
#[test]
fn fixtures_are_requested_in_code_that_cannot_run() {
    let env = TestEnv::pyright_session(&Project::parse(
        "\
//- /test_m.py
import sys
import pytest
@pytest.fixture
def loc(): return 1
def test_a(loc): assert loc
if sys.platform == 'win32':
    def test_z(loc): assert loc
",
    ));
    let bundle = env.lanser(["refs", "test_m.py:4:5", "--json"]).answer();
    let found = bundle["facts"]["references"].as_array().unwrap();
    let found: Vec<_> = found.iter().map(|one| one["at"].as_str().unwrap()).collect();
    for place in ["test_m.py@L5:C12", "test_m.py@L7:C16"] {
        assert!(found.contains(&place), "{bundle}");
    }
}

/// What an object has in place of its class's method, what it keeps under the name of a local function, and what only a stub declares.
#[test]
fn objects_that_are_not_what_their_class_says_leave_uses_unresolved() {
    let project = Project::parse(
        "\
//- /kept.py
class Keeper:
    def __init__(self, handler=None):
        self.handler = handler
    def run(self):
        return self.handler(1)
def use():
    def handler(e):
        return e
    return Keeper(handler).run()
//- /inline.py
class Inline:
    def process(self) -> str:
        return 'a'
    def run(self) -> str:
        return self.process()
//- /plugin.py
import types
from inline import Inline
def process(self):
    return 'b'
def plug(inline: Inline) -> None:
    inline.process = types.MethodType(process, inline)
//- /set.py
from functools import partial
class Task:
    def start(self) -> int:
        return 1
    def stop(self) -> int:
        return 2
def start(task) -> int:
    return 3
def stop() -> int:
    return 4
def patch(task: Task) -> None:
    setattr(task, 'start', partial(start, task))
    for task.stop in [stop]:
        pass
def run(task: Task) -> int:
    return task.start() + task.stop()
//- /lib.py
class Base:
    def clear(self):
        pass
def cached(f):
    return type('Made', (Base,), {'__call__': f})()
class _Point:
    def clear(self):
        pass
Point = _Point
//- /lib.pyi
class _Wrapper:
    def clear(self) -> None: ...
    def __call__(self) -> int: ...
class Point:
    def clear(self) -> None: ...
def cached(f: object) -> _Wrapper: ...
//- /caches.py
from lib import Point, cached
@cached
def f() -> int:
    return 1
f.clear()
Point().clear()
//- /flags.py
def enabled():
    return 1
class Flags:
    def __init__(self):
        self.enabled = bool(enabled)
class Light:
    def enabled(self):
        return 2
def ask(light: Light):
    return light.enabled()
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        for (symbol, place, reason) in [
            ("kept.py:7:9", "kept.py@L5:C21", "it is a variable that may hold it"),
            (
                "py://plugin#process",
                "inline.py@L5:C21",
                "an assignment to an object's attribute may have replaced it",
            ),
            ("set.py:7:5", "set.py@L16:C17", "an assignment to an object's attribute may have replaced it"),
            ("set.py:9:5", "set.py@L16:C32", "an assignment to an object's attribute may have replaced it"),
            (
                "py://lib#Base.clear",
                "caches.py@L5:C3",
                "its class is only declared in a stub: at run time it is another one",
            ),
        ] {
            let bundle = env.lanser(["refs", symbol, "--json"]).answer();
            let items = bundle["facts"]["completeness"]["unresolved"]["items"].as_array().unwrap();
            let found: Vec<_> = items.iter().map(|one| (&one["at"], &one["reason"])).collect();
            assert_eq!(found, [(&json!(place), &json!(reason))], "{bundle}");
        }
        assert_eq!(uses(&env, "py://flags#enabled").status, "complete");
        // The method keeps its name, as the object's attribute does.
        env.lanser(["rename", "py://plugin#process", "doubled", "--apply", "--json"]).answer();
        let text = std::fs::read_to_string(env.file("inline.py")).unwrap();
        assert!(text.contains("self.process()"), "{text}");
        let text = std::fs::read_to_string(env.file("plugin.py")).unwrap();
        assert!(text.contains("inline.process = types.MethodType(doubled, inline)"), "{text}");
    }
}

/// A method of a subclass that assigns to a property calls its setter; ty takes the assignment for a definition of all objects of the
/// subclass. A private member has another name outside of its class.
#[test]
fn assigned_properties_and_mangled_names_are_uses_of_the_member() {
    let project = Project::parse(
        "\
//- /base.py
class Base:
    @property
    def size(self) -> int:
        return 1
    @size.setter
    def size(self, value: int) -> None:
        print('set')
    def __secret(self):
        return 1
//- /sub.py
from base import Base
class Sub(Base):
    def fit(self) -> None:
        self.size = 3
class Own(Base):
    size = 5
    def fit(self) -> None:
        self.size = 3
def use(s: Sub, b: Base, o: Own) -> None:
    s.size = 4
    print(b.size, o.size, s._Base__secret(), o._Own__secret())
",
    );
    let others = Project::parse(
        "\
//- /declared.py
class Base:
    @property
    def size(self): return 1
    @size.setter
    def size(self, v): pass
class Sub(Base):
    size: int
    def __init__(self): self.size = 4
class Imports(Base):
    from helpers import size
    def __init__(self): self.size = 4
print(Sub().size)
//- /helpers.py
size = 7
//- /called.py
class Base:
    def _get(self): return 1
    def _set(self, v): pass
    size = property(_get, _set)
class Sub(Base):
    def __init__(self): self.size = 3
print(Sub().size)
",
    );
    let env = TestEnv::ty(&others);
    for (symbol, expected) in [
        ("declared.py:3:9", &["3:9", "4:6", "5:9", "7:5", "8:30", "12:13"][..]),
        ("called.py:4:5", &["4:5", "6:30", "7:13"]),
    ] {
        let found = uses(&env, symbol);
        let file = symbol.split(':').next().unwrap();
        let expected: Vec<String> = expected.iter().map(|place| format!("{file}:{place}")).collect();
        let places: Vec<&str> = found.references.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, expected, "{symbol}: {}", found.bundle);
        assert_eq!(found.status, "complete", "{symbol}: {}", found.bundle);
    }
    // Pyright takes what a class has in place of a declared property for that property.
    for (env, of_own) in [
        (TestEnv::pyright_session(&project), &["sub.py:8:14", "sub.py:11:21"][..]),
        (TestEnv::ty(&project), &[]),
    ] {
        for symbol in ["base.py:3:9", "base.py:6:9", "sub.py:4:14", "sub.py:10:7"] {
            let found = uses(&env, symbol);
            let places = found.references.iter().map(|(place, _)| place.as_str());
            let places: Vec<&str> = places.filter(|place| !of_own.contains(place)).collect();
            let expected =
                ["base.py:3:9", "base.py:5:6", "base.py:6:9", "sub.py:4:14", "sub.py:10:7", "sub.py:11:13"];
            assert_eq!(places, expected, "{symbol}: {}", found.bundle);
            assert_eq!(found.status, "complete", "{symbol}: {}", found.bundle);
        }
        let found = uses(&env, "py://base#Base.__secret");
        assert_eq!(found.unresolved, ["sub.py:11:29"], "{}", found.bundle);
    }
}

/// `getattr` with a string on what may be anything: declared as `Any`, which ty takes for a class, or known in part.
#[test]
fn strings_looked_up_on_half_known_objects_are_unresolved() {
    let project = Project::parse(
        "\
//- /m.py
from typing import Any
class R:
    def resolve(self, ref):
        return ref
class V:
    held: Any = None
    def go(self):
        return getattr(self.held, 'resolve', None)
def half(table):
    r = table.get(1) or 3
    return getattr(r, 'resolve')
def sure(r: list[int]):
    return getattr(r, 'resolve')
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        let found = uses(&env, "py://m#R.resolve");
        assert_eq!(found.unresolved, ["m.py:8:36", "m.py:11:24"], "{}", found.bundle);
    }
}

/// What a method of a metaclass assigns to its first parameter is a member of the metaclass's classes.
#[test]
fn members_that_a_metaclass_assigns_are_unresolved() {
    let project = Project::parse(
        "\
//- /m.py
class Meta(type):
    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)
        cls.hooks = cls.resolve()
    def resolve(cls):
        return []
class Schema(metaclass=Meta):
    hooks = []
    def go(self):
        return self.hooks
class Plain:
    hooks = []
    def go(self):
        return self.hooks
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        let found = uses(&env, "py://m#Schema.hooks");
        assert_eq!(found.unresolved, ["m.py:4:13"], "{}", found.bundle);
        let found = uses(&env, "m.py:4:13");
        assert!(found.unresolved.contains(&"m.py:8:5".to_owned()), "{}", found.bundle);
        let found = uses(&env, "py://m#Plain.hooks");
        assert_eq!((found.status.as_str(), found.unresolved.len()), ("complete", 0), "{}", found.bundle);
    }
}

/// Pyright takes what the body of a method without an annotation returns for the type of `self.make()`. An override may return
/// something else.
#[test]
fn what_an_overridden_method_without_an_annotation_returns() {
    let project = Project::parse(
        "\
//- /base.py
class Real:
    def run(self): return 1
class Base:
    def make(self): return Real()
    @property
    def thing(self): return Real()
    def same(self): return Real()
    def typed(self) -> Real: return Real()
    def go(self):
        self.make().run()
        self.thing.run()
        x = self.make()
        x.run()
        self.same().run()
        self.typed().run()
//- /fake.py
from base import Base, Real
class Fake:
    def run(self): return 2
class Sub(Base):
    def make(self): return Fake()
    @property
    def thing(self): return Fake()
    def same(self): return Real()
",
    );
    let env = TestEnv::pyright_session(&project);
    let found = uses(&env, "py://fake#Fake.run");
    assert_eq!(found.unresolved, ["base.py:10:21", "base.py:11:20", "base.py:13:11"], "{}", found.bundle);
    let found = uses(&env, "py://base#Real.run");
    assert_eq!((found.status.as_str(), found.references.len()), ("complete", 6), "{}", found.bundle);
}

/// Which of several imports binds a name is known when the program runs. A server takes one of them.
#[test]
fn what_one_of_several_imports_may_bind_is_no_other_symbol() {
    let project = Project::parse(
        "\
//- /u.py
try:
    from fast import K, f
except ImportError:
    from slow import K, f
import typing as t
if t.TYPE_CHECKING:
    import fast as mod
else:
    import slow as mod
mod.g()
def typed(k: mod.C):
    k.n()
//- /v.py
from u import K, f
from a import h
from b import h
f()
h()
def go(k: K):
    k.m()
//- /one.py
try: from fast import H
except Exception: from slow import H
def go(h: H):
    h.q()
//- /a.py
def h(): return 1
//- /b.py
def h(): return 2
class Alone:
    def n(self):
        return 2
Alone().n()
//- /fast.py
class Base:
    def q(self): return 1
class H(Base): pass
def f(): return 1
def g(): return 1
class K:
    def m(self): return 1
class C:
    def n(self): return 1
//- /slow.py
class H:
    def q(self): return 2
def f(): return 2
def g(): return 2
class K:
    def m(self): return 2
class C:
    def n(self): return 2
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        for (symbol, places) in [
            ("py://slow#f", &["v.py:4:1"][..]),
            ("py://slow#g", &["u.py:10:5"]),
            ("py://slow#K.m", &["v.py:7:7"]),
            ("py://slow#H.q", &["one.py:4:7"]),
            ("py://slow#C.n", &["u.py:12:7"]),
            ("py://slow#C", &["u.py:11:18"]),
        ] {
            let found = uses(&env, symbol);
            for place in places {
                let is_reference = found.references.iter().any(|(known, _)| known == place);
                let is_unresolved = found.unresolved.iter().any(|known| known == place);
                assert!(is_reference || is_unresolved, "{symbol} {place}: {}", found.bundle);
                assert_eq!(is_unresolved, found.status != "complete", "{symbol}: {}", found.bundle);
            }
        }
        let found = uses(&env, "py://b#Alone.n");
        assert_eq!((found.status.as_str(), found.unresolved.len()), ("complete", 0), "{}", found.bundle);
    }
}

/// A base that no server finds may be a class of the workspace: under another root, or made by `__getattr__` of a module.
#[test]
fn a_base_that_is_not_found_may_be_a_class_of_its_name() {
    let project = Project::parse(
        "\
//- /lib/__init__.py
//- /lib/mod.py
class K:
    def m(self): return 1
def go(k: K):
    k.m()
//- /test_mod.py
from thing.mod import K
class L(K):
    def m(self): return 2
//- /pkg/__init__.py
import importlib
def __getattr__(name):
    return getattr(importlib.import_module('.inner', __name__), name)
//- /pkg/inner.py
class C:
    def n(self): return 1
def go(c: C):
    c.n()
//- /u.py
import pkg
class D(pkg.C):
    def n(self): return 2
//- /test_star.py
from thing.mod import *
class M(K):
    def m(self): return 3
//- /v.py
from httpx import C
class E(C):
    def n(self): return 2
//- /compat.py
from httpx import C
//- /w.py
from compat import C
class F(C):
    def n(self): return 2
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        for (class, method, derived) in [
            ("py://lib.mod#K", "py://lib.mod#K.m", &["test_mod.py:3:9", "test_star.py:3:9"][..]),
            ("py://pkg.inner#C", "py://pkg.inner#C.n", &["u.py:3:9"]),
        ] {
            let types = env.lanser(["types", class, "--subtypes", "--json"]).answer();
            assert_ne!(types["facts"]["completeness"]["status"], "complete", "{types}");
            let found = uses(&env, method);
            assert_eq!(found.unresolved, derived, "{}", found.bundle);
        }
    }
}

/// An object of a class that is registered with an abstract one passes for that.
#[test]
fn calls_through_a_class_that_another_is_registered_with_are_unresolved() {
    let project = Project::parse(
        "\
//- /m.py
from abc import ABC, abstractmethod
class Base(ABC):
    @abstractmethod
    def run(self): ...
@Base.register
class A:
    def run(self): return 1
class B:
    def run(self): return 1
class C:
    def run(self): return 1
//- /use.py
from m import B, Base
Base.register(B)
def f(b: Base):
    b.run()
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        for (method, unresolved) in
            [("py://m#A.run", &["use.py:4:7"][..]), ("py://m#B.run", &["use.py:4:7"]), ("py://m#C.run", &[])]
        {
            assert_eq!(uses(&env, method).unresolved, unresolved, "{method}");
        }
    }
}

/// The base of a class may be an item of a dictionary.
#[test]
fn a_base_that_is_an_item_may_be_any_class_in_it() {
    let project = Project::parse(
        "\
//- /m.py
class Base:
    def run(self):
        return 1
class Other:
    pass
BASES = {'a': Base}
NAMES = ('a', 'b')
class S(BASES['a']):
    def run(self):
        return super().run()
def f(b: Base):
    b.run()
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        let types = env.lanser(["types", "py://m#Base", "--subtypes", "--json"]).answer();
        assert_ne!(types["facts"]["completeness"]["status"], "complete", "{types}");
        let found = uses(&env, "py://m#S.run");
        assert_ne!(found.status, "complete", "{}", found.bundle);
        assert!(found.unresolved.contains(&"m.py:12:7".to_owned()), "{}", found.bundle);
    }
}

/// A module that is loaded by the path of its file is an object whose type says nothing.
#[test]
fn attributes_of_modules_that_are_loaded_from_files_are_unresolved() {
    let project = Project::parse(
        "\
//- /pkg/__init__.py
//- /pkg/mod.py
def f(): ...
//- /u.py
import importlib.util
spec = importlib.util.spec_from_file_location('mod', 'pkg/mod.py')
m = importlib.util.module_from_spec(spec)
spec.loader.exec_module(m)
m.f()
",
    );
    for env in [TestEnv::pyright_session(&project), TestEnv::ty(&project)] {
        let found = uses(&env, "py://pkg.mod#f");
        assert_eq!(found.unresolved, ["u.py:5:3"], "{}", found.bundle);
    }
}
