//! Strings that name what is renamed: those that a rule of the language connects are renamed, and others stop the rename until the
//! caller has decided.

use super::{Repository, failed};
use crate::support::Project;

/// The places about which a rename asks.
#[track_caller]
fn open_places(repository: &Repository, args: &[&str]) -> Vec<String> {
    let bundle = repository.plan(args);
    assert_eq!(failed(&bundle), ["completeness"], "{args:?}");
    let checks = bundle["edits"]["safety"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "completeness").unwrap();
    check["locations"].as_array().unwrap().iter().map(|at| at.as_str().unwrap().to_owned()).collect()
}

fn text<'t>(written: &'t std::collections::BTreeMap<String, Vec<u8>>, file: &str) -> &'t str {
    std::str::from_utf8(&written[file]).unwrap()
}

/// Examples in docstrings use members and parameters of what the same file defines.
#[test]
fn members_and_parameters_in_examples() {
    let project = Project::parse(
        "\
//- /m.py
class Stock:
    def bind(self, count: int) -> int:
        '''Binds.

        >>> Stock().bind(count=2)
        2
        '''
        return count
class Other:
    def keep(self, number: int) -> int: return number
//- /n.py
def show() -> None:
    '''
    >>> other.keep(number=1)
    '''
",
    );
    let repository = Repository::with_ty(&project);
    let places = |symbol, new| open_places(&repository, &["rename", symbol, new]);
    assert_eq!(places("py://m#Stock.bind", "tie"), ["m.py@L5:C21"]);
    assert_eq!(places("py://m#Stock.bind(count)", "number"), ["m.py@L5:C26"]);
    for (symbol, new) in [("py://m#Other.keep", "hold"), ("py://m#Other.keep(number)", "count")] {
        repository.plan_apply_undo(&["rename", symbol, new]);
    }
}

/// What uses a name without writing it: the value of an enum's member, the keyword of a private field of attrs, `patch.multiple`.
#[test]
fn names_that_are_used_in_another_form() {
    let project = Project::parse(
        "\
//- /m.py
from enum import Enum, StrEnum, auto
from attrs import define
class Color(StrEnum):
    RED = auto()
    BLUE = 'blue'
class Count(Enum):
    ONE = auto()
@define
class P:
    _size: int = 1
    _free: int = 1
def helper() -> int: return 1
print(P(size=2), Color('red'))
//- /test_m.py
from unittest import mock
def test():
    with mock.patch.multiple('m', helper=lambda: 2): ...
",
    );
    let repository = Repository::with_ty(&project);
    for (symbol, new, place) in [
        ("py://m#Color.RED", "CRIMSON", "m.py@L4:C5"),
        ("py://m#P._size", "_length", "m.py@L10:C5"),
        ("py://m#helper", "help_out", "test_m.py@L3:C35"),
    ] {
        assert_eq!(open_places(&repository, &["rename", symbol, new]), [place]);
    }
    for (symbol, new) in
        [("py://m#Color.BLUE", "AZURE"), ("py://m#Count.ONE", "FIRST"), ("py://m#P._free", "_left")]
    {
        repository.plan_apply_undo(&["rename", symbol, new]);
    }
}

/// A program that computes a name, or gives an object attributes by keywords, may mean the renamed one.
#[test]
fn names_that_a_program_computes() {
    let project = Project::parse(
        "\
//- /m.py
from enum import Enum
COMMANDS = {}
def command(f):
    COMMANDS[f.__name__] = f
    return f
def plain(f):
    print(f.__name__)
    return f
@command
def go(): ...
@plain
def rest(): ...
class Base:
    known: dict = {}
    def __init_subclass__(cls):
        Base.known[cls.__name__.lower()] = cls
class Upper(Base): ...
class Color(Enum):
    RED = 1
    @classmethod
    def read(cls, text: str): return cls[text.upper()]
class Box:
    def __init__(self): self.size = 1
    def on_start(self): ...
    def with_size(self, size=2):
        box = Box()
        for key, value in locals().items(): setattr(box, key, value)
    def hooks(self): return [name for name in dir(self) if name.startswith('on_')]
def show(box: Box): return '{0.size}'.format(box)
def helper(): ...
//- /cli.py
def option(name): return lambda f: f
@option('--user-name')
def main(user_name: str): ...
//- /test_m.py
from unittest.mock import Mock, patch
import m
def test():
    m.show(Mock(size=4))
    with patch(f'{m.__name__}.helper'): ...
",
    );
    let repository = Repository::with_ty(&project);
    for (symbol, new, places) in [
        ("py://m#go", "run", &["m.py@L4:C16"][..]),
        ("py://m#Upper", "Lower", &["m.py@L16:C24"]),
        ("py://m#Color.RED", "CRIMSON", &["m.py@L21:C38"]),
        ("py://m#Box.on_start", "on_begin", &["m.py@L28:C77"]),
        ("py://m#helper", "aid", &["test_m.py@L5:C31"]),
        ("py://cli#main(user_name)", "user", &["cli.py@L3:C10"]),
    ] {
        assert_eq!(open_places(&repository, &["rename", symbol, new]), places, "{symbol}");
    }
    let of_attribute = open_places(&repository, &["rename", "py://m#Box.size", "length"]);
    for place in ["m.py@L25:C25", "m.py@L29:C32", "test_m.py@L4:C17"] {
        assert!(of_attribute.iter().any(|known| known == place), "{place}: {of_attribute:?}");
    }
    repository.plan_apply_undo(&["rename", "py://m#rest", "pause"]);
}

#[test]
fn attributes_of_modules_that_are_patched() {
    let project = Project::parse(
        "\
//- /pkg/__init__.py
from pkg.tools import load as load
//- /pkg/tools.py
def load() -> int: return 1
class Box:
    def load(self) -> int: return 2
//- /test_tools.py
from unittest import mock
import pkg
import pkg.tools
from pkg import tools as t

def test_load(monkeypatch):
    monkeypatch.setattr(pkg.tools, 'load', lambda: 3)
    monkeypatch.setattr(t, \"load\", lambda: 3)
    monkeypatch.setattr(pkg, 'load', lambda: 3, raising=False)
    assert getattr(t, 'load')() == 3
    with mock.patch.object(t, 'load'), mock.patch.object(t.Box, 'load'):
        pass
",
    );
    let repository = Repository::new(&project);
    let (_, written) = repository.plan_apply_undo(&["rename", "py://pkg.tools#load", "fetch"]);
    let test = text(&written, "test_tools.py");
    for line in [
        "pkg.tools, 'fetch'",
        "t, \"fetch\"",
        "pkg, 'fetch'",
        "getattr(t, 'fetch')",
        "object(t, 'fetch')",
        "(t.Box, 'load')",
    ] {
        assert!(test.contains(line), "{line}: {test}");
    }
    let (_, written) = repository.plan_apply_undo(&["rename", "py://pkg.tools#Box.load", "fetch"]);
    let test = text(&written, "test_tools.py");
    assert!(test.contains("object(t, 'load'), mock.patch.object(t.Box, 'fetch')"), "{test}");
}

#[test]
fn attributes_of_modules_that_other_files_import() {
    let project = Project::parse(
        "\
//- /pkg/__init__.py
from pkg.tools import run as run
//- /pkg/tools.py
from pkg._compat import load
def run() -> int: return load()
//- /pkg/_compat.py
def load() -> int: return 1
//- /test_tools.py
import pkg

def test_load(monkeypatch, other):
    monkeypatch.setattr(pkg._compat, 'load', lambda: 3)
    monkeypatch.setattr(other._compat, 'load', lambda: 3)
",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://pkg._compat#load", "fetch"];
    // `other` may be the package.
    assert_eq!(open_places(&repository, &rename), ["test_tools.py@L4:C39", "test_tools.py@L5:C41"]);
    let decided = ["--include", "test_tools.py:4:39", "--exclude", "test_tools.py:5:41"];
    let (_, written) = repository.plan_apply_undo(&[&rename[..], &decided].concat());
    let test = text(&written, "test_tools.py");
    assert!(test.contains("(pkg._compat, 'fetch'") && test.contains("(other._compat, 'load'"), "{test}");
}

#[test]
fn attributes_of_any_object() {
    let project = Project::parse(
        "\
//- /queues.py
class Queue:
    def ready(self) -> bool: return True

class Other: ...

def check(found: type, thing: object, other: Other) -> bool:
    return hasattr(found, 'ready') and hasattr(thing, 'ready') and hasattr(other, 'ready')
",
    );
    let repository = Repository::new(&project);
    for server in ["pyright", "ty"] {
        let rename = ["rename", "py://queues#Queue.ready", "is_ready", "--server", server];
        assert_eq!(open_places(&repository, &rename), ["queues.py@L7:C28", "queues.py@L7:C56"], "{server}");
    }
}

#[test]
fn slots() {
    let project = Project::parse(
        "\
//- /point.py
class Point:
    __slots__ = ('left', \"right\")
    __match_args__ = ('left',)
    def __init__(self) -> None:
        self.left = 1
        self.right = 2

class Other:
    __slots__ = {'left': 'its side'}
    def __init__(self) -> None:
        self.left = 'left'
",
    );
    let repository = Repository::new(&project);
    let (_, written) = repository.plan_apply_undo(&["rename", "py://point#Point.left", "first"]);
    let file = text(&written, "point.py");
    assert!(file.contains("__slots__ = ('first', \"right\")\n    __match_args__ = ('first',)"), "{file}");
    assert!(file.contains("__slots__ = {'left': 'its side'}"), "{file}");
    let (_, written) = repository.plan_apply_undo(&["rename", "py://point#Other.left", "first"]);
    let file = text(&written, "point.py");
    assert!(
        file.contains("__slots__ = {'first': 'its side'}") && file.contains("self.first = 'left'"),
        "{file}"
    );
}

#[test]
fn full_names() {
    let project = Project::parse(
        "\
//- /pkg/__init__.py
from pkg.filters import Filter as Filter
//- /pkg/filters.py
class Filter:
    def seen(self) -> bool: return False
//- /pkg/settings.py
FILTER = 'pkg.filters.Filter'
SHORT = \"pkg:Filter\"
SEEN = 'pkg.filters.Filter.seen'
MISSING = 'pkg.nothing.Filter'
TEXT = 'see pkg.filters.Filter'
IGNORE = ['error::pkg.Filter', 'ignore:old and:pkg.filters.Filter']
",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://pkg.filters#Filter", "Sieve"];
    let places = [
        "pkg/settings.py@L1:C23",
        "pkg/settings.py@L2:C14",
        "pkg/settings.py@L3:C21",
        "pkg/settings.py@L6:C23",
        "pkg/settings.py@L6:C60",
    ];
    assert_eq!(open_places(&repository, &rename), places);
    let seen = open_places(&repository, &["rename", "py://pkg.filters#Filter.seen", "has_seen"]);
    assert_eq!(seen, ["pkg/settings.py@L3:C28"]);
    let (_, written) = repository.plan_apply_undo(&[&rename[..], &["--include", "unresolved"]].concat());
    let settings = text(&written, "pkg/settings.py");
    assert!(
        settings.contains("'pkg.filters.Sieve'\nSHORT = \"pkg:Sieve\"\nSEEN = 'pkg.filters.Sieve.seen'"),
        "{settings}"
    );
    assert!(settings.contains("see pkg.filters.Filter"), "{settings}");
}

#[test]
fn tables_of_lazy_modules() {
    let project = Project::parse(
        "\
//- /pkg/__init__.py
import importlib
import typing
if typing.TYPE_CHECKING:
    from .mail import check as check
TABLE = {'check': '.mail', 'other': '.mail'}
def __getattr__(name: str) -> object:
    return getattr(importlib.import_module(TABLE[name], __name__), name)
//- /pkg/mail.py
def check(text: str) -> bool: return '@' in text
words = {'check': 1}
",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://pkg.mail#check", "is_address"];
    assert_eq!(open_places(&repository, &rename), ["pkg/__init__.py@L5:C11"]);
    let (_, written) =
        repository.plan_apply_undo(&[&rename[..], &["--include", "pkg/__init__.py:5:11"]].concat());
    assert!(text(&written, "pkg/__init__.py").contains("TABLE = {'is_address': '.mail'"));
}

#[test]
fn names_that_a_file_looks_up() {
    let project = Project::parse(
        "\
//- /box.py
class Box:
    size: int = 1
    color: str = 'red'

NAMES = ('size', 'color')
def show(box: Box) -> list[object]:
    return [getattr(box, name) for name in NAMES]
//- /other.py
from box import Box
words = {'size': Box().size}
print(getattr(Box(), 'color'))
//- /kept.py
from box import Box
class Kept(Box):
    def __getstate__(self):
        state = self.__dict__.copy()
        del state['size']
        return state
//- /frozen.py
from box import Box
def widen(box: Box) -> None:
    object.__setattr__(box, 'size', 2)
//- /listed.py
from box import Box
print(vars(Box())['size'])
",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://box#Box.size", "width"];
    let open = ["box.py@L5:C11", "frozen.py@L3:C30", "kept.py@L5:C20", "listed.py@L2:C20"];
    assert_eq!(open_places(&repository, &rename), open);
    let (planned, _) = repository.plan_apply_undo(&[&rename[..], &["--exclude", "unresolved"]].concat());
    assert_eq!(planned["edits"]["residue"]["kinds"]["string"], 5);
}

#[test]
fn placeholders_of_typed_dictionaries() {
    let project = Project::parse(
        "\
//- /shell.py
from typing import TypedDict
class Values(TypedDict):
    prog: str
def values() -> Values: return {'prog': 'x'}
TEXT = 'run %(prog)s twice: %(prog)s'
print(TEXT % values(), '{prog}'.format(**values()))
//- /log.py
FORMAT = '%(prog)s'
NAMES = {'prog': 1}
print('prog' in NAMES, NAMES['prog'])
",
    );
    let repository = Repository::new(&project);
    let rename = ["rename", "py://shell#Values.prog", "program"];
    // `NAMES` may be used as such a dictionary.
    let places = [
        "log.py@L2:C11",
        "log.py@L3:C31",
        "log.py@L3:C8",
        "shell.py@L5:C15",
        "shell.py@L5:C31",
        "shell.py@L6:C26",
    ];
    let mut open = open_places(&repository, &rename);
    open.sort();
    assert_eq!(open, places);
    let (_, written) = repository.plan_apply_undo(&[&rename[..], &["--include", "unresolved"]].concat());
    assert!(text(&written, "shell.py").contains("run %(program)s twice: %(program)s"));
    assert!(text(&written, "log.py").contains("'%(prog)s'"));
}

/// Nothing looks a local variable up but `locals()` and the like, so that other files and strings do not stop its rename.
#[test]
fn local_variables() {
    let project = Project::parse(
        "\
//- /m.py
def greet(user):
    name = user.name
    # the name
    return 'name: ' + name

def page(user):
    name = user.name
    return '%(name)s' % locals()
//- /tables.py
name = 'name'
def value(obj, key):
    return getattr(obj, key)
fields = ['name', 'size']
print(f'{name}')
//- /notes.md
The name.
",
    );
    for server in ["pyright", "ty"] {
        let mut repository = Repository::new(&project);
        crate::support::install(server);
        repository.env.set("LANSER_SERVER", server);
        let (plan, written) = repository.plan_apply_undo(&["rename", "m.py:2:5", "called"]);
        assert_eq!(
            text(&written, "m.py").split_once("\n\n").unwrap().0,
            "def greet(user):\n    called = user.name\n    # the name\n    return 'name: ' + called"
        );
        assert_eq!(plan["edits"]["diagnostics"]["files_checked"], 1, "{plan}");
        assert_eq!(plan["edits"]["residue"]["count"], 2, "{plan}");
        assert_eq!(open_places(&repository, &["rename", "m.py:7:5", "called"]), ["m.py@L8:C25"]);
        let (_, written) =
            repository.plan_apply_undo(&["rename", "m.py:7:5", "called", "--exclude", "unresolved"]);
        assert!(
            text(&written, "m.py").ends_with("    called = user.name\n    return '%(name)s' % locals()\n")
        );
    }
}
