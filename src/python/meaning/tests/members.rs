use super::Kind::{Declared, Inferred};
use super::with;

#[test]
fn of_what_a_class_does_not_have_nothing_is_inferred() {
    let uses = [
        "from .b import x\nx.objects.|all",
        "from . import b\nb.x.objects.all.|c",
        "from .b import x\nx.objects.all(|k=1)",
    ];
    for lacking in [
        "class x: pass",
        "class y(object):\n  def all(self): pass\nclass m(type): pass\nclass x(y, metaclass=m):\n  a = 1",
        "objects = g()\nclass x: pass",
        "class x:\n  class y:\n    objects = g()\n  def f(self):\n    objects = g()",
    ] {
        with(lacking, Declared, &uses);
    }
    for having in [
        "class x:\n  objects = g()",
        "class x:\n  if g:\n    objects: A",
        "class x:\n  for objects in g: pass",
        "class x:\n  import objects",
        "class x:\n  from g import y as objects",
        "class x:\n  with g() as objects: pass",
        "class x:\n  @g\n  def objects(self): pass",
        "class x:\n  (a, [objects]) = g()",
        "class x:\n  def f(self): self.objects = g()",
        "class x:\n  @classmethod\n  def f(cls):\n    for cls.objects in g: pass",
        "class x:\n  def __getattr__(self, name): pass",
        "class x:\n  __getattribute__ = g",
        "class x:\n  __slots__ = ('objects',)",
        "class m(type):\n  objects = g()\nclass x(metaclass=m): pass",
        "class y:\n  objects = g()\nclass x(y): pass",
        "class x(dict): pass",
        "class x(g()): pass",
        "import s\nclass x(s.y): pass",
        "@g\nclass x: pass",
        "def f():\n  global objects\n  objects = 1\nclass x: pass",
    ] {
        with(having, Inferred, &uses);
    }
    with(
        "class x: pass",
        Inferred,
        &[
            "from .b import x\nx.__doc__.|c",
            "from .b import x\nx.mro.|c",
            "from .b import x\nx.objects = g()\nx.objects.|c",
            "from .b import x\nv = x()\nv.objects.|c",
        ],
    );
}

#[test]
fn what_a_class_has_is_what_one_place_binds() {
    let uses = [
        "from .b import x\nclass A(x):\n  def f(self): self.v.|c",
        "from . import b\nclass A(b.x):\n  @classmethod\n  def f(cls): cls.v.|c",
    ];
    for declared in [
        "class C: pass\nclass x:\n  v = C()",
        "class C: pass\nclass x:\n  def f(self): self.v = C()",
        "class C: pass\nclass y:\n  w = C\nclass x(y):\n  @classmethod\n  def f(cls): cls.v = cls.w()",
        "class C: pass\nclass x: v = C",
        "class x:\n  v = ['a', 1]",
        "class x:\n  def f(self): self.v = {}",
        "class x:\n  v = set()",
        "class x:\n  def v(self): pass",
        "class y:\n  def v(self): pass\nclass x(y):\n  async def v(self): pass",
        "class x: v = 1",
        "class x: pass",
    ] {
        with(declared, Declared, &uses);
    }
    for inferred in [
        "class x:\n  v = g()",
        "class x:\n  v = None",
        "class x:\n  import v",
        "class x:\n  v = [g()]",
        "class x:\n  v = [h]",
        "class x:\n  v = {1: g}",
        "class x:\n  v: A = []",
        "class x:\n  v = []\n  v = {}",
        "class x:\n  if g: v = []",
        "class x:\n  v = []\n  def f(self): self.v = []",
        "class x:\n  def f(self):\n    self.v = []\n    self.v = []",
        "class x:\n  def f(self):\n    if g: self.v = []",
        "class x:\n  def f(self, a): a.v = []",
        "class x:\n  def f(self): self.v = []\ndef f(a): a.v = 1",
        "class x:\n  def f(self): self.v, w = [], []",
        "class x:\n  def f(self): self.v = w = []",
        "class x:\n  def f(self): self.v = []\n  def h(self): del self.v",
        "class x:\n  def f(self): self.v += []",
        "class C:\n  def __init__(self, a): pass\nclass x:\n  def f(self, a): self.v = C(a)",
        "class C:\n  def __get__(self, a, b): return g()\nclass x:\n  v = C()",
        "class m(type):\n  def __get__(self, a, b): return g()\nclass C(metaclass=m): pass\nclass x:\n  v = C",
        "class C(g()): pass\nclass x:\n  v = C()",
        "class x:\n  @g\n  def v(self): pass",
        "class x:\n  @property\n  def v(self): pass",
        "class y:\n  v = []\nclass x(y):\n  v = []",
        "class y:\n  v = []\nclass x(y):\n  def v(self): pass",
        "class m(type):\n  v = []\nclass x(metaclass=m):\n  v = []",
        "class m(type): pass\nclass x(metaclass=m):\n  v = []",
        "import s\nclass x(s.E): pass",
        "import s\nclass x(s.B[g]): pass",
        "class x:\n  v = []\ndef f():\n  global v\n  v = 1",
        "class C: pass\nh = g()\nclass x:\n  @h\n  def f(self): self.v = C()",
        "import s\nclass x(s.y):\n  v = []",
        "class y: pass\nclass x: v = C\nC = y()",
        "def h(): pass\nclass x: v = h",
        "class x(dict):\n  v = []",
        "class x(g()):\n  v = []",
    ] {
        with(inferred, Inferred, &uses);
    }
    let made = "class x:\n  def f(self): self.v = []\n  def m(self, k): pass";
    with(
        made,
        Declared,
        &[
            "from .b import x\nclass A(x):\n  def f(self): self.m(|k=1)",
            "from .b import x\nclass A(x):\n  def f(self):\n    if self.v.x: self.v.|c",
            "from .b import x\nclass A(x):\n  def f(self):\n    if self.v.x() or self.m(1): self.v.|c",
            "from .b import x\nclass A(x):\n  def f(self): self.m(|k=1)\n  def m(self, k): pass",
            "from .b import x\nclass A(x): pass\na = A()\na.m(|k=1)",
            "from .b import x\nclass A(x): pass\nA.m(|k=1)",
            "from . import b\nclass A: a = b.x()\nclass B(A):\n  def f(self): self.a.v.|c",
            "from . import b\na = b.x()\na.v.|c",
            "from . import b\nb.x.v.|c",
        ],
    );
    with(
        made,
        Inferred,
        &[
            "from .b import x\nclass A(x):\n  def f(self):\n    if self.v: self.v.|c",
            "from .b import x\nclass A(x):\n  def f(self):\n    if self.v.x == 1: self.v.|c",
            "from .b import x\nclass A(x):\n  def f(self):\n    if self.v.x == g: self.v.|c",
            "from .b import x\nclass A(x):\n  def f(self):\n    if isinstance(self.v, g()): self.v.|c",
            "from .b import x\nclass A(x):\n  def f(self):\n    match self.v:\n      case g(): self.v.|c",
            "from .b import x\nclass A(x):\n  def f(self):\n    self.v = g()\n    self.v.|c",
            "from .b import x\nclass A(x):\n  def f(self):\n    self.m = g()\n    self.m(|k=1)",
            "from .b import x\nclass A(x):\n  def f(self): self.m(|k=1)\n  m = g()",
            "from .b import x\nclass A(x):\n  def f(self): self.v.w.|c",
            "from .b import x\na = x()\na.v = g()\na.v.|c",
            "from .b import x\na = x()\nif a.v: a.v.|c",
            "from .b import x\na = x()\nif a: a.v.|c",
            "from .b import x\na = x()\na.v.w.|c",
            "from . import b\nif b.x.v: b.x.v.|c",
            "from .b import x\nclass A(x):\n  def f(self, a): a.m(|k=1)",
        ],
    );
}
