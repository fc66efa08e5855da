/// What classes have and lack.
mod members;

use Kind::{Declared, Inferred, Scoped};

use super::*;
use crate::path::AbsPath;
use crate::workspace::files::MemoryFiles;
use crate::workspace::server_config::ServerConfig;

/// What is found out of a name in the end.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Scoped,
    Declared,
    Inferred,
}

/// The folder `/w`, and stubs that the server ships in `/t`.
fn roots(files: &MemoryFiles) -> ImportRoots {
    let [workspace, shipped] = ["/w", "/t"].map(|path| AbsPath::new(path).unwrap());
    ImportRoots::new(files, &workspace, &ServerConfig::default(), None, Some(shipped))
}

/// What the name behind a `|` in the file `a.py` hangs on, beside other files.
fn beside(text: &str, others: &[(&str, &str)]) -> Kind {
    let (before, after) = text.split_once('|').unwrap();
    let length = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
    let path = AbsPath::new("/w/p/a.py").unwrap();
    let document = Document::new(path, format!("{before}{after}").into_bytes());
    let files = others.iter().copied().chain([("/w/p/a.py", document.text.as_str())]);
    let files = MemoryFiles::new(files);
    let roots = roots(&files);
    match meaning(&document, &(before.len()..before.len() + length)) {
        Meaning::Scoped => Scoped,
        Meaning::Declared => Declared,
        Meaning::Claimed(claims) if claims.hold(&files, &roots, &Found::default()) => Declared,
        Meaning::Claimed(_) | Meaning::Inferred => Inferred,
    }
}

/// The same of a file that stands alone.
fn asked(text: &str) -> Kind {
    beside(text, &[])
}

/// The same in statements of a method.
fn in_method(statements: &str) -> Kind {
    asked(&format!("class A:\n    def f(self, a):\n        {}\n", statements.replace('\n', "\n        ")))
}

#[track_caller]
fn all(found: fn(&str) -> Kind, expected: Kind, texts: &[&str]) {
    for text in texts {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn a_name_that_stands_alone_hangs_on_its_scopes() {
    all(
        asked,
        Scoped,
        &["|b", "f(|x == 1)", "import |a", "x = |a", "def f(|x): pass", "|a = 1", "|a: int = 1"],
    );
    all(
        asked,
        Declared,
        &["import a.|b.c", "import a.|b as c", "from a.|b import c", "from ..a.|b import *"],
    );
    all(asked, Scoped, &["x: '|a'", "def f(): # type: () -> |a\n  pass"]);
    all(asked, Inferred, &["x: 'a.|b'", "def f() -> 'a.|b': pass", "def f(): # type: () -> a.|b\n  pass"]);
    all(asked, Scoped, &["def f(|x=1): pass", "for a in b: |c = a", "a = |b = 1", "lambda |x=1: x"]);
}

#[test]
fn results_and_variables_are_inferred() {
    all(
        asked,
        Inferred,
        &["f().|b", "a = g()\na.|b", "a.b.|c", "(a).|b", "a[0].|b", "class A(B, |k=1): pass"],
    );
    all(asked, Inferred, &["f()(|x=1)", "a = g()\na(|x=1)", "a.b.c(|x=1)", "lambda a: a.|b"]);
    all(asked, Inferred, &["[a.|b for a in c]", "def f(*a): a.|b", "def f(a=g()): a.|b", "a = b = 1\nb.|c"]);
    all(in_method, Inferred, &["self.f().|b", "a.self.|b", "(self).|b", "self().|b", "lambda self: self.|b"]);
    all(in_method, Inferred, &["self.f.g(|x=1)", "super().f(|x=1)", "match a:\n    case A(|k=1): pass"]);
    all(in_method, Inferred, &["match a:\n    case A.|B: pass", "match a:\n    case A.|B(): pass"]);
}

#[test]
fn what_is_imported_from_a_module_may_be_a_variable() {
    all(asked, Inferred, &["from x import a\na.|b", "from x import f\nf(|x=1)", "from x import *\na.|b"]);
    all(asked, Inferred, &["import a\na.b.|c", "import a\na.f(|x=1)", "from . import x\nx.|b"]);
    all(
        asked,
        Inferred,
        &["try:\n  import a\nexcept E:\n  from b import a\na.|b", "from x import *\nf(|x=1)"],
    );
}

#[test]
fn decorators_make_anything_of_what_they_are_given() {
    all(asked, Inferred, &["@g\ndef f(x): pass\nf(|x=1)", "@g\nclass A: pass\nA.|b"]);
    all(asked, Inferred, &["class T:\n  @thing.|m\n  def thing(self): pass"]);
}

#[test]
fn modules_classes_functions_and_literals_are_declared() {
    all(asked, Declared, &["import a\na.|b", "import a\na . |b", "import x.y as a\n(a.\n  |b)"]);
    all(asked, Declared, &["import a.c\na.\\\n  |b", "class a: pass\na.|b", "def a(): pass\na.|b"]);
    all(asked, Declared, &["import a\n(a.  # why\n  |b)", "def f(x): f(|x  # why\n =1)", "str.|join"]);
    all(asked, Declared, &["''.|join(x)", "'a' 'b'.|c", "def f(x): f(|x=1)", "dict(|x=1)"]);
    all(in_method, Declared, &["super().|b"]);
    all(in_method, Inferred, &["super(A, self).|b", "super = g\nsuper().|b"]);
}

#[test]
fn of_what_binds_a_name_one_scope_is_looked_at() {
    all(asked, Declared, &["import a\ndef f():\n  a = g()\na.|b"]);
    all(asked, Declared, &["import a\nclass C:\n  a = g()\n  def f(s): a.|b"]);
    all(asked, Declared, &["a = g()\ndef f():\n  import a\n  a.|b"]);
    all(asked, Inferred, &["import a\nmatch b:\n  case a:\n    a.|b"]);
    all(asked, Inferred, &["import a\na = g()\na.|b", "import a\ndef f():\n  global a\n  a = g()\na.|b"]);
    all(
        asked,
        Inferred,
        &["try:\n  import a\nexcept E:\n  a = None\na.|b", "import a\ndef f():\n  a.|b\n  a = g()"],
    );
    all(asked, Inferred, &["import a\na.|b\n)))\n", "import a\ntry: f()\nexcept E as a: a.|b"]);
    // A class's names are seen from what a comprehension in it goes through.
    all(asked, Inferred, &["import a\nclass C:\n  a = g()\n  x = [i for i in a.|b]"]);
    all(asked, Declared, &["import a\nclass C:\n  a = g()\n  x = [a.|b for i in y]"]);
}

#[test]
fn what_a_method_is_called_on_is_declared() {
    all(in_method, Declared, &["self.|b", "x = -self . |b", "g(self, self=self).c = self.|b"]);
    all(in_method, Declared, &["x = self\nself.|b", "def g():\n    return self.|b"]);
    all(
        asked,
        Declared,
        &[
            "class A:\n  if g:\n    def f(self): self.|b",
            "class A:\n  match g:\n    case 1:\n      def f(self): self.|b",
            "class A:\n  @property\n  def f(self): self.|b",
            "class A:\n  @f.setter\n  def f(self): self.|b",
            "def g(f): pass\nclass A:\n  @g\n  def f(self): self.|b",
            "class g: pass\nclass A:\n  @g(1)\n  def f(self): self.|b",
            "class A:\n  def f( # why\n    self, a): self.|b",
        ],
    );
    all(
        asked,
        Inferred,
        &[
            "def f(self): self.|b",
            "class A:\n  def f(a, self): self.|b",
            "class A:\n  def f(*self): self.|b",
            "class A:\n  def f(self: B): self.|b",
            "class A:\n  def f(self=1): self.|b",
            "class A:\n  @staticmethod\n  def f(self): self.|b",
            "g = h()\nclass A:\n  @g\n  def f(self): self.|b",
            "g = h()\nclass A:\n  @g(1)\n  def f(self): self.|b",
            "from g import h\nclass A:\n  @h\n  def f(self): self.|b",
            "class A:\n  @g[0]\n  def f(self): self.|b",
            "class A:\n  g = h()\n  @g\n  def f(self): self.|b",
            "class A:\n  def f(self):\n    # type: (B) -> None\n    self.|b",
            "class A:\n  def f(self): # type: (B) -> None\n    self.|b",
            "class A:\n  def f(self):\n    def g(a): a.|b",
            "class A:\n  lambda self: self.|b",
        ],
    );
    all(in_method, Inferred, &["a.|b", "__class__.|b"]);
    all(
        asked,
        Inferred,
        &["def f(a): a.|b", "def f(a: int): a.|b", "def f[T: int](): T.|b", "class A[T]:\n  x = T.|b"],
    );
}

#[test]
fn one_place_binds_a_name_and_surely() {
    all(
        asked,
        Inferred,
        &[
            "if g:\n  import a\na.|b",
            "if g:\n  import a\nelse:\n  import c as a\na.|b",
            "import a\nimport c as a\na.|b",
            "try:\n  class A: pass\nfinally: pass\nA.|b",
            "with g:\n  class A: pass\nA.|b",
            "def f(k): pass\ndef f(k): pass\nf(|k=1)",
        ],
    );
    all(asked, Declared, &["def f():\n  import a\n  if g: a.|b"]);
}

#[test]
fn nothing_is_known_of_what_stands_in_a_condition() {
    for condition in [
        "if isinstance(N, g): pass",
        "while g(N): pass",
        "assert N is not g",
        "x = N and g",
        "x = not N",
        "x = N == 1",
        "x = [y for y in z if N]",
        "match N:\n    case 1: pass",
        "match (N, 1):\n    case _: pass",
        "match g:\n    case 1 if N: pass",
        "x = (y := N)",
        "x = 1 if g(N) else 2",
        "if g: pass\nelif N: pass",
        "x = (1 # why\n if N else 2)",
        "isinstance( # why\n N, g)",
        "x = g(N)\nif x: pass",
        "x = (g(1, k=N))\nwhile not x: pass",
        "x = g(N)\ny = h(x)\nassert y",
        "x = isinstance(y := N, g)",
        "if g(k=N): pass",
        "x = [1][N] == 2",
        "if x[N]: pass",
    ] {
        let named = |name| condition.replace('N', name);
        assert_eq!(asked(&format!("import a\n{}\na.|b", named("a"))), Inferred, "{condition}");
        assert_eq!(in_method(&format!("{}\nself.|b", named("self"))), Inferred, "{condition}");
    }
    for harmless in [
        "if isinstance(g, (a, int)): pass",
        "if a.c: pass",
        "if a.c(): pass",
        "x = a if g else 2",
        "if g.a: pass",
        "if g(a=1): pass",
        "x = g(a)",
        "if g: x = a",
        "x = g(a)\nif y: pass",
        "x = a(1)\nif x: pass",
    ] {
        assert_eq!(asked(&format!("import a\n{harmless}\na.|b")), Declared, "{harmless}");
    }
    for constant in ["if a.c == 1: pass", "x = a.c is None", "x = a['c'] != 1"] {
        assert_eq!(asked(&format!("import a\n{constant}\na.|b")), Inferred, "{constant}");
    }
    for part in [
        "if self.c == g: pass",
        "x = g is self.c",
        "x = self['c'] != g",
        "match self.c:\n    case 1: pass",
        "x = (self.c) is not g",
        "x = 1 < self.c != g",
        "x = self.c == self.d",
    ] {
        assert_eq!(in_method(&format!("{part}\nself.|b")), Inferred, "{part}");
    }
    all(
        in_method,
        Declared,
        &[
            "if self.c: self.|b",
            "if self.c > 1 or 2 <= self.c < 3: self.|b",
            "if g in self.c or self.c not in g: self.|b",
            "if (self.c) is None or 'd' == self['c']: self.|b",
            "if self.c == 1: pass\nsuper().|b",
            "if self.c.d == 1: self.|b",
        ],
    );
}

#[test]
fn a_self_that_is_bound_anew_may_be_anything() {
    all(
        in_method,
        Inferred,
        &[
            "self = other()\nself.|b",
            "self: A = other()\nself.|b",
            "for self in x:\n    self.|b",
            "for a, self in x:\n    self.|b",
            "self, a = x\nself.|b",
            "(a, self) = x\nself.|b",
            "[a, *self] = x\nself.|b",
            "with g() as self:\n    self.|b",
            "with g() as (a, self):\n    self.|b",
            "if (self := g()):\n    self.|b",
            "[self.|b for a, self in x]",
            "match a:\n    case A(self):\n        self.|b",
            "match a:\n    case {'x': self}:\n        self.|b",
            "match a:\n    case [*self]:\n        self.|b",
            "match a:\n    case A() as self:\n        self.|b",
            "import x as self\nself.|b",
            "del self\nself.|b",
            "self += 1\nself.|b",
            "def g():\n    nonlocal self\n    self = 1\nself.|b",
        ],
    );
}

/// A stub that the server ships.
const STUB: (&str, &str) = (
    "/t/stdlib/s.pyi",
    "class M(type): ...\nclass E(metaclass=M):\n  @property\n  def v(self): ...\nclass B[T]:\n  v: T\nclass C:\n  v: int\nv: C\n",
);

/// What `|` hangs on where the package holds `b.py` with this text.
#[track_caller]
fn with(b: &str, expected: Kind, texts: &[&str]) {
    for text in texts {
        let files = [("/w/p/__init__.py", ""), ("/w/p/b.py", b), STUB];
        assert_eq!(beside(text, &files), expected, "{b}\n---\n{text}");
    }
}

/// Uses of what is imported as `x`.
const USES: [&str; 5] = [
    "from p.b import x\nx.|c",
    "from .b import x as y\ny.|c",
    "from . import b\nb.x.|c",
    "import p.b\np.b.x.|c",
    "from p import b\nb.x(|k=1)",
];

#[test]
fn an_import_is_followed_to_what_it_names() {
    for declared in ["class x: pass", "def x(k): pass", "async def x(k): pass"] {
        with(declared, Declared, &USES);
    }
    for inferred in [
        "x = g()",
        "x: A = g()",
        "for x in y: pass",
        "with g() as x: pass",
        "class x: pass\nx = g(x)",
        "@g\nclass x: pass",
        "@g\ndef x(k): pass",
        "class x: pass\ndef f():\n  global x\n  x = g()",
        "from .c import x",
        "y = 1",
        "",
        "class x: pass\n)))",
        "import x",
        "from .b import x",
        "class x: pass\ndel x",
        "if (x := g()): pass",
    ] {
        let uses = if inferred == "import x" { &USES[4..4] } else { &USES[..] };
        with(inferred, Inferred, uses);
    }
    with("import x", Declared, &["from p.b import x\nx.|c"]);
}

#[test]
fn a_decorator_of_a_class_must_be_that_of_a_stub() {
    let use_of = |decorator: &str, stub: &str| {
        let b = format!("import s\nfrom s import d\n{decorator}\nclass x(s.C):\n  def f(self): self.g\n");
        beside("from .b import x\nclass A(x): pass\nA.|c", &[("/w/p/b.py", &b), ("/t/stdlib/s.pyi", stub)])
    };
    let stub = "class C: ...\ndef d(c: C) -> C: ...\nv: C\n";
    for declared in ["@d", "@s.d(1)", "@d\n@s.v"] {
        assert_eq!(use_of(declared, stub), Declared, "{declared}");
    }
    for inferred in ["@d()()", "@s.w", "@x", "@d\n@g.h"] {
        assert_eq!(use_of(inferred, stub), Inferred, "{inferred}");
    }
    assert_eq!(asked("@g\nclass A:\n  def f(self): self.|b"), Declared, "it is the class itself");
}

#[test]
fn an_import_is_followed_through_others() {
    let files = |init: &'static str, c: &'static str| {
        [("/w/p/__init__.py", init), ("/w/p/b.py", "from p.c import *"), ("/w/p/c.py", c)]
    };
    let use_of = |init, c| beside("from p.b import x\nx.|c", &files(init, c));
    assert_eq!(use_of("", "class x: pass"), Declared);
    assert_eq!(use_of("", "x = g()"), Inferred);
    assert_eq!(use_of("", "from q import *\nclass x: pass"), Inferred, "what is not found may bind it, too");
    assert_eq!(
        use_of("", "from p.b import *\nclass x: pass"),
        Inferred,
        "a circle is not known to be declared"
    );
    let package = |init| beside("import p\np.c.x.|d", &files(init, "class x: pass"));
    assert_eq!(package(""), Declared, "a submodule");
    assert_eq!(package("from p import c"), Declared);
    assert_eq!(package("c = g()"), Inferred, "what the package binds goes before its submodule");
}

#[test]
fn what_is_set_on_a_module_is_what_is_found_there() {
    for set in [
        "b.x = g()",
        "b.x: A = g()",
        "b.x += 1",
        "(a, b.x) = g()",
        "for b.x in y: pass",
        "with g() as b.x: pass",
        "del b.x",
    ] {
        let text = format!("from . import b\n{set}\nb.x.|c");
        with("class x: pass", Inferred, &[&text]);
    }
    with("class x: pass", Declared, &["from . import b\nb.x.y = g()\nb.x.|c"]);
}

#[test]
fn a_class_is_declared_when_what_it_inherits_from_is() {
    with(
        "class x: pass",
        Declared,
        &[
            "from .b import x\nclass A(x): pass\nA.|c",
            "from . import b\nclass A(b.x, metaclass=b.x): pass\nA.|c",
            "from . import b\nclass A(b.x[int]):\n  def f(self): self.|c",
            "from . import b\nclass A(b.x): pass\nclass B(A):\n  def f(self): super().|c",
            "class A: pass\nclass B(A, int, k=g()): pass\nB.|c",
        ],
    );
    let inferred = [
        "from .b import x\nclass A(x): pass\nA.|c",
        "from . import b\nclass A(metaclass=b.x): pass\nA.|c",
        "from . import b\nclass A(b.x):\n  def f(self): self.|c",
        "from . import b\nclass A(b.x):\n  def f(self, a): a.|c",
        "from . import b\nclass A(b.x): pass\nclass B(A):\n  def f(self): super().|c",
        "class A(g()): pass\nA.|c",
        "class A(*g): pass\nA.|c",
        "def f(): pass\nclass A(f): pass\nA.|c",
    ];
    with("x = g()", Inferred, &inferred);
    with("class x(g()): pass", Inferred, &inferred);
    with("class y(x): pass\nclass x(y): pass", Inferred, &inferred);
}

#[test]
fn a_call_hangs_on_how_a_class_is_made() {
    let call = "from .b import x\nx(|k=1)";
    with("class x:\n  def __init__(self, k=[]): pass", Declared, &[call]);
    with("class y:\n  def __new__(self, k): pass\nclass x(y): pass", Declared, &[call]);
    with(
        "class x:\n  @g\n  def __init__(self, k): pass",
        Inferred,
        &[call, "from .b import x\nclass A(x): pass\nA(|k=1)"],
    );
    with("class x:\n  __new__ = g()", Inferred, &[call]);
    with("class x:\n  if g:\n    __init__ = g()", Inferred, &[call]);
    with("class m:\n  def __call__(self, k): pass\nclass x(metaclass=m): pass", Inferred, &[call]);
}

#[test]
fn calling_a_class_makes_an_instance_of_it() {
    let uses = ["from .b import x\nv = x()\nv.|c", "from . import b\ndef f():\n  v = b.x()\n  v.|c"];
    let given = ["from .b import x\nv = x(g())\nv.|c"];
    for declared in [
        "class x: pass",
        "class x:\n  def __init__(self, a=None): pass",
        "class y: pass\nclass x(y): pass",
        "class m(type):\n  def __new__(cls, *a, b: int = 1): pass\nclass x(metaclass=m): pass",
    ] {
        with(declared, Declared, &uses);
        with(declared, Declared, &given);
    }
    let annotated = "class x:\n  def __init__(self, a: int = 1): pass";
    for typed in [
        annotated,
        "class x(dict): pass",
        "from s import d\n@d\nclass x: pass",
        "import s\nclass x(s.v): pass",
    ] {
        let files = [("/w/p/b.py", typed), ("/t/stdlib/s.pyi", "def d(c): ...\nv: int\n")];
        for (text, expected) in
            uses.iter().map(|text| (text, Declared)).chain(given.iter().map(|text| (text, Inferred)))
        {
            assert_eq!(beside(text, &files), expected, "{typed}\n---\n{text}");
        }
    }
    for inferred in [
        "def x(): pass",
        "x = g()",
        "class x:\n  def __new__(cls): pass",
        "class x(g()): pass",
        "@g\nclass x: pass",
        "class m:\n  def __call__(self): pass\nclass x(metaclass=m): pass",
        "class x:\n  @g\n  def __init__(self): pass",
    ] {
        with(inferred, Inferred, &uses);
        with(inferred, Inferred, &given);
    }
    with(
        "class x: pass",
        Inferred,
        &[
            "from .b import x\nv = x()\nv = g()\nv.|c",
            "from .b import x\nv: g = x()\nv.|c",
            "from .b import x\nv = w = x()\nv.|c",
            "from .b import x\nv, w = x()\nw.|c",
            "from .b import x\nv = x()\nv(|k=1)",
            "from .b import x\nv = x()\nw = v()\nw.|c",
            "from .b import x\nx = x()\nx.|c",
            "from .b import x\nv = x().y\nv.|c",
            "from .b import x\nv = x()\nclass A(v): pass\nA.|c",
            "from .b import x\nv = x()\nif isinstance(v, g()): v.|c",
        ],
    );
    let made = "class C: pass\nx = C()\nn = x\n";
    with(made, Declared, &["from .b import x\nx.|c", "from . import b\nb.x.|c"]);
    with(
        made,
        Inferred,
        &[
            "from .b import n\nn.|c",
            "from . import b\nb.x.y.|c",
            "from .b import x\nx(|k=1)",
            "from . import b\nif isinstance(b.x, g): b.x.|c",
        ],
    );
    with("class C: pass\nif g:\n  x = C()\nelse:\n  x = None", Inferred, &["from .b import x\nx.|c"]);
}

/// What hangs on the decorators of the function in `a.py` that is called `f`.
fn made_of(text: &str, stub: &str) -> Kind {
    let path = AbsPath::new("/w/p/a.py").unwrap();
    let document = Document::new(path, text.as_bytes().to_vec());
    let files = MemoryFiles::new([("/w/p/a.py", text), ("/t/stdlib/s.pyi", stub)]);
    let roots = roots(&files);
    match decoration(&document, text.find("def f").unwrap() + 4) {
        Meaning::Scoped => Scoped,
        Meaning::Declared => Declared,
        Meaning::Claimed(claims) if claims.hold(&files, &roots, &Found::default()) => Declared,
        Meaning::Claimed(_) | Meaning::Inferred => Inferred,
    }
}

#[test]
fn only_stubs_that_the_server_ships_declare_without_proof() {
    let text = "class O(g()): ...\nv: O\nclass S:\n  v: O\n  def m(self) -> O: ...\ndef d(c) -> O: ...\n@d\nclass D: ...\n";
    let uses = [
        "from t import v\nv.|c",
        "from t import S\nclass A(S):\n  def f(self): self.v.|c",
        "from t import d\n@d\nclass A: pass\nclass B(A): pass\nB.|c",
        "from t import D\nD.|c",
    ];
    for used in uses {
        assert_eq!(beside(used, &[("/w/t.pyi", text)]), Inferred, "{used}");
        let shipped = text.replace("g()", "");
        assert_eq!(beside(used, &[("/t/stdlib/t.pyi", &shipped)]), Declared, "{used}");
    }
    assert_eq!(
        beside("from t import S\nclass A(S):\n  def f(self): self.|v", &[("/w/t.pyi", text)]),
        Declared
    );
}

#[test]
fn decorators_that_are_declared_make_what_they_say() {
    let stub = "def d(f): ...\nv: int\n";
    for declared in [
        "def f(): pass",
        "x = (1)\n\ndef f(): pass",
        "@property\ndef f(): pass",
        "class A:\n  @property\n  def g(self): pass\n  @g.setter\n  def f(self): pass",
        "import s\n@s.d\ndef f(): pass",
        "from s import d, v\n@d(\n  1,\n)\n@v\n# why\n\ndef f(): pass",
        "class g: pass\n@g\ndef f(): pass",
        "@g()()\nclass A:\n  def f(self): pass",
    ] {
        assert_eq!(made_of(declared, stub), Declared, "{declared}");
    }
    for inferred in [
        "def g(f): pass\n@g\ndef f(): pass",
        "@h()()\ndef f(): pass",
        "from typing import overload\n@overload\ndef f(): pass",
        "import s\n@s.w\ndef f(): pass",
        "import s\n@s.d\n@g.h\ndef f(): pass",
        "from q import d\n@d(\n  1,\n  2)\ndef f(): pass",
        "class g:\n  def __new__(cls, f): pass\n@g\ndef f(): pass",
        "@property\n\ndef f(): pass\n)",
    ] {
        assert_eq!(made_of(inferred, stub), Inferred, "{inferred}");
    }
}
