//! Tests of resolving symbolic selectors.

mod properties;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::modules::ImportRoots;
use super::outline::Outline;
use super::symbol::{ResolveOutcome, ResolvedTarget, resolve_symbol};
use crate::path::AbsPath;
use crate::selector::{PositionSpec, parse};
use crate::text::ColumnUnit;
use crate::workspace::files::MemoryFiles;

/// Files in one text, each after a line `//- name`; `$1` marks an offset and is not part of the file.
struct TestProject {
    files: MemoryFiles,
    roots: ImportRoots,
    /// Mark to file and offset.
    marks: BTreeMap<String, (String, usize)>,
}

impl TestProject {
    fn new(text: &str) -> Self {
        let mut files: Vec<(String, String)> = Vec::new();
        let mut marks = BTreeMap::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("//- ") {
                files.push((format!("/w/{name}"), String::new()));
                continue;
            }
            let (path, content) = files.last_mut().unwrap();
            let mut parts = line.split('$');
            content.push_str(parts.next().unwrap());
            for part in parts {
                marks.insert(part[..1].to_owned(), (path.clone(), content.len()));
                content.push_str(&part[1..]);
            }
            content.push('\n');
        }
        let files = MemoryFiles::new(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        Self { files, roots: ImportRoots::of_folder(AbsPath::new("/w").unwrap()), marks }
    }

    fn resolve(&self, selector: &str) -> ResolveOutcome {
        match parse(selector, ColumnUnit::Codepoint).unwrap() {
            PositionSpec::Symbol(spec) => resolve_symbol(&self.files, &self.roots, &spec),
            other => panic!("{other} is not symbolic"),
        }
    }

    /// The marks of a selector's targets, joined, or the reason why it has none.
    fn marks_of(&self, selector: &str) -> String {
        let mark = |target: &ResolvedTarget| {
            let location = (target.document.path.as_str().to_owned(), target.span.start);
            let found = self.marks.iter().find(|(_, marked)| **marked == location);
            found.map_or_else(|| format!("{location:?}"), |(mark, _)| mark.clone())
        };
        match self.resolve(selector) {
            ResolveOutcome::Found(target) => mark(&target),
            ResolveOutcome::Ambiguous(targets) => targets.iter().map(mark).collect::<Vec<_>>().join("|"),
            ResolveOutcome::NotFound(not_found) => not_found.reason.to_string(),
        }
    }

    #[track_caller]
    fn check(&self, table: &[(&str, &str)]) {
        for (selector, expected) in table {
            assert_eq!(self.marks_of(selector), *expected, "{selector}");
        }
    }

    fn found(&self, selector: &str) -> ResolvedTarget {
        match self.resolve(selector) {
            ResolveOutcome::Found(target) => *target,
            other => panic!("{selector}: {other:?}"),
        }
    }

    fn text(&self, selector: &str) -> String {
        let target = self.found(selector);
        target.document.text[target.span].to_owned()
    }
}

#[test]
fn names_of_every_kind() {
    TestProject::new(
        "\
//- m.py
import enum
class $AA:
    $bb: int = 1
    def $cc(self):
        self.$dd = self.b = 2
        def $einner(): pass
        local = 1
    class $FF:
        def $gg(self): pass
def $hf(p):
    global made, Made, make
    $imade = 1
    class $jK: pass
    class $YMade:
        def $Zm(self): pass
    def $Xmake(): pass
$kx, ($ly, *$mz) = 1, (2, 3)
with open('f') as $nw: pass
for $oi in []:
    if ($pq := 1): pass
type $rT = int
class $SE(enum.Enum):
    $tONE = 1
async def $uco(): pass
match 1:
    case {'k': $vcap}: pass
",
    )
    .check(&[
        ("py://m#A", "A"),
        ("py://m#A.b", "b"),
        ("py://m#A.c", "c"),
        ("py://m#A.d", "d"),
        ("py://m#A.c.inner", "e"),
        ("py://m#A.F.g", "g"),
        ("py://m#A:F", "F"),
        ("py://m#f", "h"),
        ("py://m#made", "i"),
        ("py://m#Made", "Y"),
        ("py://m#Made.m", "Z"),
        ("py://m#make", "X"),
        ("py://m#f.K", "j"),
        ("py://m#x", "k"),
        ("py://m#y", "l"),
        ("py://m#z", "m"),
        ("py://m#w", "n"),
        ("py://m#i", "o"),
        ("py://m#q", "p"),
        ("py://m#T", "r"),
        ("py://m#E.ONE", "t"),
        ("py://m#co", "u"),
        ("py://m#cap", "v"),
        ("py://m#A.missing", "module m has no A.missing"),
        (
            "py://m#A.c.local",
            "function A.c has no nested function or class local; its parts are def, sig, body and doc, a parameter is `A.c(NAME)`, and local variables have no symbolic selector",
        ),
        (
            "py://m#x.real",
            "x is a variable, and the attributes of its value depend on its type: select real in the class that defines it",
        ),
        ("py://n#x", "module n not found"),
    ]);
}

#[test]
fn the_parts_of_a_definition() {
    let project = TestProject::new(
        "\
//- m.py
'module doc'
@dec(1)
class C(Base,
        Other):
    'class doc'
    x = 1
    @property
    async def f(self, a: dict[str, int] = {1: 2}) -> int:
        # not the body
        r'''doc'''
        return 1
    def g(self): return 2
v = 1
",
    );
    for (selector, text) in [
        ("py://m#C:def", "C"),
        ("py://m#C:sig", "class C(Base,\n        Other):"),
        ("py://m#C:doc", "'class doc'"),
        ("py://m#C.f:sig", "async def f(self, a: dict[str, int] = {1: 2}) -> int:"),
        ("py://m#C.f:doc", "r'''doc'''"),
        ("py://m#C.f:body", "r'''doc'''\n        return 1"),
        ("py://m#C.g:body", "return 2"),
    ] {
        assert_eq!(project.text(selector), text, "{selector}");
    }
    project.check(&[
        ("py://m#C.g:doc", "the method g has no doc"),
        ("py://m#v:sig", "the variable v has no sig"),
        ("py://m#v:body", "the variable v has no body"),
    ]);
}

#[test]
fn overloads_and_accessors_are_one_symbol() {
    let project = TestProject::new(
        "\
//- m.py
import typing
@typing.overload
def $af(x: int) -> int: ...
@typing.overload
def $bf(x: str) -> str: ...
def $cf(x): return x
class C:
    @property
    def $dp(self): pass
    @p.setter
    def p(self, v): self.p = v
    @p.deleter
    def p(self): pass
//- s.pyi
from typing import overload
@overload
def $eg(x: int) -> int: ...
@overload
def $fg(x: str) -> str: ...
",
    );
    project.check(&[
        ("py://m#f", "c"),
        ("py://m#f?overload=0", "a"),
        ("py://m#f?overload=1", "b"),
        ("py://m#f?overload=2", "c"),
        ("py://m#f?overload=3", "overload 3 of f not found: it has 3 overloads, counted from 0"),
        ("py://s#g", "e"),
        ("py://s#g?overload=1", "f"),
        ("py://m#C.p", "d"),
        ("py://m#C.p?overload=1", "overload 1 of p not found: it has 1 overload, counted from 0"),
    ]);
    assert_eq!(project.found("py://m#f").declarations.len(), 2);
    assert_eq!(project.found("py://m#C.p").declarations.len(), 2);
}

#[test]
fn branches_and_rebinding() {
    let project = TestProject::new(
        "\
//- m.py
import sys
from typing import TYPE_CHECKING
if sys.platform == 'win32':
    def $af(): pass
elif sys.platform == 'x':
    def $bf(): pass
else:
    f = None
def $cg(): pass
def $dg(): pass
$ev = 1
v = 2
v += 3
if TYPE_CHECKING:
    class $hT: pass
else:
    class T: pass
if not TYPE_CHECKING:
    def u(): pass
else:
    def $iu(): pass
try:
    from fast import $jh
except ImportError:
    def $kh(): pass
try:
    from gone import n
except ImportError:
    def $ln(): pass
class K:
    def a(self): self.x = 1
    def __init__(self): self.$mx = 0
    def m(self): pass
    m = staticmethod(m)
with open('x'):
    def $oonly(): pass
try:
    import $pmissing_module as mm
except ImportError:
    mm = None
//- fast.py
def $qh(): pass
",
    );
    project.check(&[
        ("py://m#f", "a|b"),
        ("py://m#g", "c|d"),
        ("py://m#v", "e"),
        ("py://m#T", "h"),
        ("py://m#u", "i"),
        ("py://m#h", "k|q"),
        ("py://m#n", "l"),
        ("py://m#K.x", "m"),
        ("py://m#only", "o"),
    ]);
    let ResolveOutcome::Ambiguous(targets) = project.resolve("py://m#f") else { panic!("not ambiguous") };
    let conditions: Vec<_> = targets.iter().map(|target| target.conditions.join(" / ")).collect();
    assert_eq!(conditions, ["if sys.platform == 'win32'", "elif sys.platform == 'x'"]);
    assert_eq!(project.found("py://m#v").declarations.len(), 1);
}

#[test]
fn imports_are_followed() {
    let project = TestProject::new(
        "\
//- pkg/__init__.py
from .app import Flask as Flask
from .stars import *
from . import sub
from .deep.er import thing as renamed
import pkg.deep.er as er
import $xgone
__all__ = ['Flask']
__all__ += sub.__all__
//- pkg/app.py
from typing import Any
class $aFlask:
    def $brun(self): pass
//- pkg/stars.py
from .app import Flask as _F
from .more import *
__all__ = ['listed'] + more.__all__
def $clisted(): pass
def hidden(): pass
from . import more
//- pkg/more.py
__all__ = ('from_more',)
def $dfrom_more(): pass
def _private(): pass
//- pkg/sub.py
__all__ = ['f']
def $ef(): pass
//- pkg/deep/er.py
def $fthing(): pass
//- user.py
from pkg import *
import pkg
from circle import nothing
//- circle.py
from circle import nothing
from circle2 import *
from user import *
//- circle2.py
from circle import *
",
    );
    project.check(&[
        ("py://pkg#Flask", "a"),
        ("py://pkg#Flask.run", "b"),
        ("py://pkg#listed", "c"),
        ("py://pkg#from_more", "d"),
        ("py://pkg#hidden", "module pkg has no hidden"),
        ("py://pkg#sub.f", "e"),
        ("py://pkg#renamed", "f"),
        ("py://pkg#er.thing", "f"),
        ("py://pkg#deep.er.thing", "f"),
        ("py://pkg#gone", "x"),
        ("py://pkg#gone.y", "gone is imported from a module that cannot be found"),
        ("py://user#Flask", "a"),
        ("py://user#listed", "module user has no listed"),
        ("py://user#pkg.Flask.run", "b"),
        ("py://circle#absent", "module circle has no absent"),
        ("py://circle2#Flask", "a"),
    ]);
    let target = project.found("py://circle2#Flask.run");
    assert_eq!(target.qualname.unwrap().to_string(), "pkg.app:Flask.run");
    let via: Vec<_> = target.via.iter().map(|step| format!("{} {}", step.kind.as_str(), step.to)).collect();
    assert_eq!(via, ["starImport circle", "starImport user", "starImport pkg", "import pkg.app"]);
}

#[test]
fn members_are_inherited_in_python_order() {
    TestProject::new(
        "\
//- base.py
class Top:
    def $atop(self): pass
    def both(self): pass
class Meta(type):
    def $bof_meta(cls): pass
//- m.py
import base
from base import Top as Renamed
class Left(base.Top): pass
class Right(Renamed):
    def $cboth(self): pass
class Bottom(Left, Right): pass
Alias = Bottom
class Sub(Alias, metaclass=base.Meta):
    class $dInner: pass
    nested = Inner
    def $eown(self): pass
class Loop1(Loop2): pass
class Loop2(Loop1):
    def $ffound(self): pass
class Self(Self): pass
class Generic(Bottom[int]): pass
",
    )
    .check(&[
        ("py://m#Bottom.top", "a"),
        ("py://m#Bottom.both", "c"),
        ("py://m#Alias.both", "c"),
        ("py://m#Sub.top", "a"),
        ("py://m#Sub.of_meta", "b"),
        ("py://m#Sub.own", "e"),
        ("py://m#Generic.both", "c"),
        ("py://m#Loop1.found", "f"),
        ("py://m#Loop1.absent", "module m has no Loop1.absent"),
        ("py://m#Self.absent", "module m has no Self.absent"),
        ("py://m#Sub.nested.absent", "Sub.nested is a field, and the attributes of its value depend on its type: select absent in the class that defines it"),
    ]);
}

#[test]
fn wide_diamonds_terminate() {
    let mut text = String::from("//- m.py\nclass C0: pass\nclass D0: pass\n");
    for i in 1..40 {
        let _ = writeln!(text, "class C{i}(C{0}, D{0}): pass\nclass D{i}(C{0}, D{0}): pass", i - 1);
    }
    TestProject::new(&text).check(&[("py://m#C15.absent", "module m has no C15.absent")]);
}

#[test]
fn suggestions() {
    let project = TestProject::new(
        "\
//- pkg/__init__.py
//- pkg/mod.py
class Base:
    def get_adapter(self): pass
class Session(Base):
    def send(self): pass
def session(): pass
//- pkg/other.py
def elsewhere(): pass
",
    );
    let suggestions = |selector: &str| match project.resolve(selector) {
        ResolveOutcome::NotFound(not_found) => not_found.suggestions,
        other => panic!("{selector}: {other:?}"),
    };
    assert_eq!(suggestions("py://pkg.mod#Session.get_adaptor")[0], "py://pkg.mod#Session.get_adapter");
    assert_eq!(suggestions("py://pkg.mod#Sesion")[0], "py://pkg.mod#Session");
    assert_eq!(suggestions("py://pkg.mod#elsewhere"), ["py://pkg.other#elsewhere"]);
    assert_eq!(suggestions("py://pkg.mdo#Session"), ["py://pkg.mod#Session"]);
    assert_eq!(suggestions("py://pgk.mod#Session"), ["py://pkg.mod#Session"]);
    assert_eq!(suggestions("py://pkg.mod.Session#send"), ["py://pkg.mod#Session.send"]);
}

#[test]
fn definitions_next_to_a_syntax_error_are_found() {
    TestProject::new(
        "\
//- m.py
def $abefore(): pass
class $bC:
    def $cok(self): self.$dx = (1
    def $ebad(self)
        return 2
    def $fafter(self): return 3
y = [1, 2
@decorated
def $glast(): return {
$hz = 1
",
    )
    .check(&[
        ("py://m#before", "a"),
        ("py://m#C", "b"),
        ("py://m#C.ok", "c"),
        ("py://m#C.bad", "e"),
        ("py://m#C.after", "f"),
        ("py://m#last", "g"),
        ("py://m#z", "h"),
    ]);
}

#[test]
fn deep_and_large_sources_have_an_outline() {
    let deep = format!("{}1{}\ndef after(): pass\n", "(".repeat(10_000), ")".repeat(10_000));
    let unclosed = format!("x = {}\ndef after(): pass\n", "(".repeat(10_000));
    let sum = format!("x = {}1\ndef after(): pass\n", "1 + ".repeat(50_000));
    let attributes = format!("x = a{}\ndef after(): pass\n", ".b".repeat(20_000));
    let nested: String = (0..300).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
    let nested = format!("{nested}{}pass\ndef after(): pass\n", " ".repeat(300));
    for text in [deep, unclosed, sum, attributes, nested] {
        let outline = Outline::parse(&text);
        assert!(outline.definitions.iter().any(|d| d.name == "after"), "{}", &text[..20]);
    }
}
