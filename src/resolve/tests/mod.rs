//! What symbolic selectors lead to.

mod laws;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::modules::ImportRoots;
use super::outline::Outline;
use super::symbol::{Outcome, Target, symbol};
use crate::path::AbsPath;
use crate::selector::{PositionSpec, parse};
use crate::text::ColumnUnit;
use crate::workspace::files::MemoryFiles;

/// Files in one text, each after a line `//- name`; `$1` marks a place and is not part of the file.
struct Project {
    files: MemoryFiles,
    roots: ImportRoots,
    /// Mark to file and offset.
    marks: BTreeMap<String, (String, usize)>,
}

impl Project {
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

    fn resolve(&self, selector: &str) -> Outcome {
        match parse(selector, ColumnUnit::Codepoint).unwrap() {
            PositionSpec::Symbol(spec) => symbol(&self.files, &self.roots, &spec),
            other => panic!("{other} is not symbolic"),
        }
    }

    /// The marks that a selector leads to, joined, or the reason why it leads nowhere.
    fn marks_of(&self, selector: &str) -> String {
        let mark = |target: &Target| {
            let place = (target.document.path.as_str().to_owned(), target.span.start);
            let found = self.marks.iter().find(|(_, marked)| **marked == place);
            found.map_or_else(|| format!("{place:?}"), |(mark, _)| mark.clone())
        };
        match self.resolve(selector) {
            Outcome::Found(target) => mark(&target),
            Outcome::Ambiguous(targets) => targets.iter().map(mark).collect::<Vec<_>>().join("|"),
            Outcome::NotFound(near) => near.reason.to_string(),
        }
    }

    #[track_caller]
    fn check(&self, table: &[(&str, &str)]) {
        for (selector, expected) in table {
            assert_eq!(self.marks_of(selector), *expected, "{selector}");
        }
    }

    fn found(&self, selector: &str) -> Target {
        match self.resolve(selector) {
            Outcome::Found(target) => *target,
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
    Project::new(
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
    global made
    $imade = 1
    class $jK: pass
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
        ("py://m#A.missing", "m has no A.missing"),
        (
            "py://m#A.c.local",
            "the function A.c has no nested function or class local, and its parts are def, sig, body and doc; parameters and local variables have no symbolic selector",
        ),
        (
            "py://m#x.real",
            "x is a variable, and what attributes its value has depends on its type: name the class of real",
        ),
        ("py://n#x", "there is no module n"),
    ]);
}

#[test]
fn the_parts_of_a_definition() {
    let project = Project::new(
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
    let project = Project::new(
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
        ("py://m#f?overload=3", "f has 3 overloads, counted from 0; there is no overload 3"),
        ("py://s#g", "e"),
        ("py://s#g?overload=1", "f"),
        ("py://m#C.p", "d"),
        ("py://m#C.p?overload=1", "p has 1 overloads, counted from 0; there is no overload 1"),
    ]);
    assert_eq!(project.found("py://m#f").declarations.len(), 2);
    assert_eq!(project.found("py://m#C.p").declarations.len(), 2);
}

#[test]
fn branches_and_rebinding() {
    let project = Project::new(
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
    let Outcome::Ambiguous(targets) = project.resolve("py://m#f") else { panic!("not ambiguous") };
    let conditions: Vec<_> = targets.iter().map(|target| target.conditions.join(" / ")).collect();
    assert_eq!(conditions, ["if sys.platform == 'win32'", "elif sys.platform == 'x'"]);
    assert_eq!(project.found("py://m#v").declarations.len(), 1);
}

#[test]
fn imports_are_followed() {
    let project = Project::new(
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
        ("py://pkg#hidden", "pkg has no hidden"),
        ("py://pkg#sub.f", "e"),
        ("py://pkg#renamed", "f"),
        ("py://pkg#er.thing", "f"),
        ("py://pkg#deep.er.thing", "f"),
        ("py://pkg#gone", "x"),
        ("py://pkg#gone.y", "gone is imported from a module that cannot be found"),
        ("py://user#Flask", "a"),
        ("py://user#listed", "user has no listed"),
        ("py://user#pkg.Flask.run", "b"),
        ("py://circle#absent", "circle has no absent"),
        ("py://circle2#Flask", "a"),
    ]);
    let target = project.found("py://circle2#Flask.run");
    assert_eq!(target.qualname.unwrap().to_string(), "pkg.app:Flask.run");
    let via: Vec<_> = target.via.iter().map(|hop| format!("{} {}", hop.kind.as_str(), hop.to)).collect();
    assert_eq!(via, ["starImport circle", "starImport user", "starImport pkg", "import pkg.app"]);
}

#[test]
fn members_are_inherited_in_python_order() {
    Project::new(
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
        ("py://m#Loop1.absent", "m has no Loop1.absent"),
        ("py://m#Self.absent", "m has no Self.absent"),
        ("py://m#Sub.nested.absent", "Sub.nested is a field, and what attributes its value has depends on its type: name the class of absent"),
    ]);
}

#[test]
fn wide_diamonds_end() {
    let mut text = String::from("//- m.py\nclass C0: pass\nclass D0: pass\n");
    for i in 1..40 {
        let _ = writeln!(text, "class C{i}(C{0}, D{0}): pass\nclass D{i}(C{0}, D{0}): pass", i - 1);
    }
    Project::new(&text).check(&[("py://m#C15.absent", "m has no C15.absent")]);
}

#[test]
fn near_names() {
    let project = Project::new(
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
    let near = |selector: &str| match project.resolve(selector) {
        Outcome::NotFound(near) => near.suggestions,
        other => panic!("{selector}: {other:?}"),
    };
    assert_eq!(near("py://pkg.mod#Session.get_adaptor")[0], "py://pkg.mod#Session.get_adapter");
    assert_eq!(near("py://pkg.mod#Sesion")[0], "py://pkg.mod#Session");
    assert_eq!(near("py://pkg.mod#elsewhere"), ["py://pkg.other#elsewhere"]);
    assert_eq!(near("py://pkg.mdo#Session"), ["py://pkg.mod#Session"]);
    assert_eq!(near("py://pgk.mod#Session"), ["py://pkg.mod#Session"]);
    assert_eq!(near("py://pkg.mod.Session#send"), ["py://pkg.mod#Session.send"]);
}

#[test]
fn a_syntax_error_does_not_hide_its_neighbours() {
    Project::new(
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
fn depth_and_size_are_no_danger() {
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
