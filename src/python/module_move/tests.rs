//! Tests of the rewriting of imports and uses.

use super::*;
use crate::workspace::files::MemoryFiles;
use crate::workspace::server_config::ServerConfig;

/// The file `path` with `text` after the move, among modules `pkg.old`, `pkg.sub.deep` and `other`, and its open strings.
fn after(path: &str, text: &str, old: &str, new: &str) -> (String, usize) {
    let at = |path: &str| AbsPath::new(path).unwrap();
    let mut all = vec![
        ("/w/pkg/__init__.py", ""),
        ("/w/pkg/old.py", "x = 1\n"),
        ("/w/pkg/sub/__init__.py", ""),
        ("/w/pkg/sub/deep.py", ""),
        ("/w/other.py", ""),
    ];
    all.retain(|(known, _)| *known != path);
    all.push((path, text));
    let files = MemoryFiles::new(all);
    let roots = ImportRoots::new(&files, &at("/w"), &ServerConfig::default(), None, None);
    let module = roots.find(&files, old).remove(0);
    let own = [module.source, module.stub].into_iter().flatten().collect();
    let moved = ModuleMove { old: old.to_owned(), new: new.to_owned(), files: own };
    let found = rewrite(&files, &roots, &at(path), text, &moved);
    let mut out = text.to_owned();
    for (span, new) in found.splices.iter().rev() {
        out.replace_range(span.clone(), new);
    }
    (out, found.open.len())
}

#[test]
fn a_new_last_name() {
    for (text, expected) in [
        ("import pkg.old\nprint(pkg.old.x, pkg.sub)\n", "import pkg.new\nprint(pkg.new.x, pkg.sub)\n"),
        ("import pkg.old as o\nprint(o.x)\n", "import pkg.new as o\nprint(o.x)\n"),
        ("from pkg.old import x\nprint(x)\n", "from pkg.new import x\nprint(x)\n"),
        ("from pkg import old\nprint(old.x, a.old)\n", "from pkg import new\nprint(new.x, a.old)\n"),
        ("from pkg import old as o, sub\n", "from pkg import new as o, sub\n"),
        ("from pkg import old\nnew = old.x\n", "from pkg import new as old\nnew = old.x\n"),
        ("import pkg\nprint(pkg.old.x)\n", "import pkg\nprint(pkg.new.x)\n"),
        ("import pkg as p\nprint(p.old.x)\n", "import pkg as p\nprint(p.new.x)\n"),
        (
            "def f():\n    from pkg import old\n    return old\ndef g(old): return old\n",
            "def f():\n    from pkg import new\n    return new\ndef g(old): return old\n",
        ),
        ("x: 'pkg.old.C'\ny: list['pkg.old.C']\n", "x: 'pkg.new.C'\ny: list['pkg.new.C']\n"),
        (
            "@mock.patch('pkg.old.x')\ndef f(): import_module('pkg.old')\n",
            "@mock.patch('pkg.new.x')\ndef f(): import_module('pkg.new')\n",
        ),
        ("import other, pkg.old\n", "import other, pkg.new\n"),
        ("from elsewhere import old\nold()\n", "from elsewhere import old\nold()\n"),
    ] {
        assert_eq!(after("/w/use.py", text, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
    }
    // The idiom of stubs for what is exported; another alias stays.
    let stub = "from . import old as old\nold.x\n";
    let expected = "from . import new as new\nnew.x\n";
    assert_eq!(after("/w/pkg/__init__.pyi", stub, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
    let elsewhere = "from pkg import old as old\n";
    let expected = "from pkg import new as old\n";
    assert_eq!(after("/w/use.py", elsewhere, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
    let init = "from . import old\nfrom .old import x\n__all__ = ['old', 'x']\n";
    let expected = "from . import new\nfrom .new import x\n__all__ = ['new', 'x']\n";
    assert_eq!(after("/w/pkg/__init__.py", init, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
    let deep = "from ..old import x\nfrom .. import old as o\nfrom ... import nothing\n";
    let expected = "from ..new import x\nfrom .. import new as o\nfrom ... import nothing\n";
    assert_eq!(after("/w/pkg/sub/deep.py", deep, "pkg.old", "pkg.new"), (expected.to_owned(), 0));
}

#[test]
fn another_package() {
    for (text, expected) in [
        ("import pkg.old\nprint(pkg.old.x)\n", "import lib.new\nprint(lib.new.x)\n"),
        ("from pkg.old import x\n", "from lib.new import x\n"),
        ("from pkg import old\nprint(old.x)\n", "from lib import new\nprint(new.x)\n"),
        (
            "if 1:\n    from pkg import old as o, sub\n",
            "if 1:\n    from lib import new as o\n    from pkg import sub\n",
        ),
        ("from pkg import sub, old\nold\n", "from lib import new\nfrom pkg import sub\nnew\n"),
        (
            "from pkg import (\n    old,  # one\n    sub,  # two\n)\n",
            "from lib import new  # one\nfrom pkg import (\n    sub,  # two\n)\n",
        ),
        (
            "if 1:\n    from pkg import (\n        sub,  # two\n        # three\n        old as o  # one\n    )\n",
            "if 1:\n    from lib import new as o  # one\n    from pkg import (\n        sub,  # two\n        # three\n    )\n",
        ),
        ("from pkg import (\n    old,  # one\n)\n", "from lib import (\n    new,  # one\n)\n"),
        ("from pkg import sub, \\\n    old\n", "from lib import new\nfrom pkg import sub\n"),
        (
            "from pkg import (\n    old,\n    sub,  # why\n)\n",
            "from lib import new\nfrom pkg import (\n    sub,  # why\n)\n",
        ),
        ("if 1: from pkg import old, sub\n", "if 1: from lib import new; from pkg import sub\n"),
        ("from pkg import old, old as o\nold, o\n", "from lib import new, new as o\nnew, o\n"),
        ("from pkg import sub, old, old as o\n", "from lib import new, new as o\nfrom pkg import sub\n"),
        ("from pkg import old, sub, old as o\n", "from lib import new, new as o\nfrom pkg import sub\n"),
        (
            "try:\n    import pkg.old, other\nexcept ImportError: pass\n",
            "try:\n    import lib.new, other\nexcept ImportError: pass\n",
        ),
    ] {
        assert_eq!(after("/w/use.py", text, "pkg.old", "lib.new"), (expected.to_owned(), 0));
    }
    let sub = "from ..old import x\nfrom .. import old\nold.x\n";
    let expected = "from lib.new import x\nfrom lib import new\nnew.x\n";
    assert_eq!(after("/w/pkg/sub/deep.py", sub, "pkg.old", "lib.new"), (expected.to_owned(), 0));
    // To the top, and below the old package.
    let up = after("/w/use.py", "from pkg import old\nold.x\n", "pkg.old", "new");
    assert_eq!(up.0, "import new\nnew.x\n");
    let commented = after("/w/use.py", "from pkg import (  # a\n    old,  # b\n)\n", "pkg.old", "new");
    assert_eq!(commented.0, "import new  # a  # b\n");
    let down =
        after("/w/pkg/__init__.py", "from .old import x\nfrom . import old\n", "pkg.old", "pkg.sub.new");
    assert_eq!(down.0, "from .sub.new import x\nfrom .sub import new\n");
    // The moved module's own relative imports.
    let own = "from . import sub\nfrom .sub.deep import y\nfrom pkg import old\n";
    let expected = "from pkg import sub\nfrom pkg.sub.deep import y\nfrom lib import new\n";
    assert_eq!(after("/w/pkg/old.py", own, "pkg.old", "lib.new").0, expected);
}

#[test]
fn packages_and_top_modules() {
    let inside = "from . import deep\nfrom .. import old\nimport pkg.sub.deep\nprint(pkg.sub.deep)\n";
    let expected = "from . import deep\nfrom .. import old\nimport pkg.part.deep\nprint(pkg.part.deep)\n";
    assert_eq!(after("/w/pkg/sub/__init__.py", inside, "pkg.sub", "pkg.part").0, expected);
    let user = "from pkg.sub.deep import z\nimport pkg.sub.deep as d\nfrom pkg import sub\nsub.deep\n";
    let expected =
        "from pkg.part.deep import z\nimport pkg.part.deep as d\nfrom pkg import part\npart.deep\n";
    assert_eq!(after("/w/use.py", user, "pkg.sub", "pkg.part").0, expected);
    let top = "import other\nimport pkg.old\nother.run(pkg.old.x)\nfrom other import y\n";
    let expected = "import another\nimport pkg.old\nanother.run(pkg.old.x)\nfrom another import y\n";
    assert_eq!(after("/w/use.py", top, "other", "another").0, expected);
}

#[test]
fn other_strings_are_open() {
    let text = "APPS = ['pkg.old', 'pkg.old.C', 'pkg.older', 'old']\nwrite('pkg.old:main')\n'text with pkg.old'\nx = 'run = pkg.old:main'\n";
    assert_eq!(after("/w/use.py", text, "pkg.old", "pkg.new"), (text.to_owned(), 4));
    let lazy = "NAMES = {'x': (__spec__.parent, '.old')}\nimport_module('.old.x', __name__)\n";
    assert_eq!(after("/w/pkg/__init__.py", lazy, "pkg.old", "pkg.new"), (lazy.to_owned(), 2));
    // What the package's `__getattr__` imports.
    let lazy = "LAZY = {'old', 'x'}\ndef __getattr__(name): return import_module(f'.{name}', __name__)\n";
    assert_eq!(after("/w/pkg/__init__.py", lazy, "pkg.old", "pkg.new"), (lazy.to_owned(), 1));
    assert_eq!(after("/w/pkg/sub/__init__.py", lazy, "pkg.old", "pkg.new"), (lazy.to_owned(), 0));
    // Neither a dot nor another package's name.
    let dots = "host.startswith('.')\nf'.{x}'\n";
    assert_eq!(after("/w/pkg/sub/__init__.py", dots, "pkg.sub", "pkg.part"), (dots.to_owned(), 0));
    // A word without dots is hardly the name of a module.
    let words =
        "client.patch('other')\nx: Literal['other', 'a']\ny: Annotated[str, 'other']\nf('no other')\n";
    assert_eq!(after("/w/use.py", words, "other", "another"), (words.to_owned(), 3));
    assert_eq!(
        after("/w/use.py", "import_module('other')\n", "other", "another").0,
        "import_module('another')\n"
    );
}

#[test]
fn annotations_and_fallbacks_of_imports() {
    let text = "from pkg import old\ndef f(c: 'old.C', d: 'old') -> 'list[old.C]': ...\n";
    let expected = "from pkg import new\ndef f(c: 'new.C', d: 'old') -> 'list[old.C]': ...\n";
    assert_eq!(after("/w/use.py", text, "pkg.old", "pkg.new").0, expected);
    let text = "try:\n    from pkg import old\nexcept ImportError:\n    from fallback import old\nold.x\n";
    let expected = text.replace("from pkg import old", "from pkg import new as old");
    assert_eq!(after("/w/use.py", text, "pkg.old", "pkg.new").0, expected);
}
