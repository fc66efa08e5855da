//! Successful renames: of everything that has a name, in files of every kind, with no other change.

use super::{Repository, SHOP, failed};
use crate::support::{Project, TestEnv};

fn text(files: &std::collections::BTreeMap<String, Vec<u8>>, name: &str) -> String {
    String::from_utf8(files[name].clone()).unwrap()
}

#[test]
fn functions_classes_methods_attributes_parameters_and_constants() {
    let shop = Repository::shop();
    let (_, files) = shop.plan_apply_undo(&["rename", "py://shop.stock#total", "sum_up"]);
    let init = text(&files, "shop/__init__.py");
    assert!(init.contains("sum_up as total") || init.contains("'sum_up'"), "{init}");
    assert!(text(&files, "shop/stock.py").contains("def sum_up(stock"));
    let (bundle, files) = shop.plan_apply_undo(&["rename", "py://shop.stock#Stock", "Store"]);
    for (name, part) in [
        ("shop/__init__.py", "import Store, total"),
        ("shop/__init__.py", "__all__ = ['Store'"),
        ("shop/stock.py", "class Cellar(Store)"),
        ("shop/use.py", "stock = Store(1)"),
    ] {
        assert!(text(&files, name).contains(part), "{name}\n{}", text(&files, name));
    }
    assert_eq!(bundle["edits"]["files"].as_array().unwrap().len(), 3);
    let (bundle, files) = shop.plan_apply_undo(&["rename", "py://shop.stock#Stock.add", "put"]);
    assert!(text(&files, "shop/use.py").contains("stock.put(count=1)"));
    // A string, a docstring and a document that contain the name are reported and unchanged.
    let residue = &bundle["edits"]["residue"];
    assert_eq!(
        (residue["kinds"]["string"].as_u64(), residue["kinds"]["document"].as_u64()),
        (Some(2), Some(2)),
        "{residue}"
    );
    assert!(text(&files, "shop/use.py").contains("getattr(run, 'add')"));
    assert_eq!(files["README.md"], b"Use `add` to add.\n");
    let (_, files) = shop.plan_apply_undo(&["rename", "py://shop.stock#Stock.size", "extent"]);
    assert!(text(&files, "shop/stock.py").contains("self.extent = size"));
    assert!(text(&files, "shop/use.py").contains("stock.extent + LIMIT"));
    let (_, files) = shop.plan_apply_undo(&["rename", "py://shop.stock#LIMIT", "MOST"]);
    assert!(text(&files, "shop/use.py").contains("import total, MOST"));
    // A parameter, with the calls that pass it by keyword; and a local variable.
    let (_, files) = shop.plan_apply_undo(&["rename", "shop/stock.py:9:19", "amount"]);
    assert!(text(&files, "shop/stock.py").contains("def add(self, amount: int"));
    assert!(text(&files, "shop/use.py").contains("stock.add(amount=1)"));
    let (bundle, _) = shop.plan_apply_undo(&["rename", "shop/stock.py:11:9", "sum_of_both"]);
    assert_eq!(bundle["edits"]["files"][0]["insertions"], 2);
}

#[test]
fn other_bytes_stay_the_same() {
    let project = Project::parse("//- /pkg/__init__.py\n//- /pkg/m.py\ndef old(): ...\n")
        .and("pkg/crlf.py", "from pkg.m import old\r\n\r\nold()\r\nx = 1")
        .and("pkg/bom.py", "\u{feff}from pkg.m import old; old()\n")
        .and(
            "pkg/latin.py",
            &b"# coding: latin-1\nfrom pkg.m import old\ns = '\xe9\xff'; old()  # \xfc\n"[..],
        )
        .and("pkg/feed.py", "from pkg.m import old\n\x0cold(); s = '\u{85}\u{2028}😀'; old()\n");
    let repository = Repository::new(&project);
    let before = repository.tree();
    let (bundle, after) = repository.plan_apply_undo(&["rename", "py://pkg.m#old", "renamed"]);
    assert_eq!(bundle["edits"]["files"].as_array().unwrap().len(), 5);
    for (name, content) in &before {
        let expected = replaced(content, b"old", b"renamed");
        assert_eq!(after[name], expected, "{name}");
    }
}

fn replaced(content: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = content;
    while let Some(at) = rest.windows(old.len()).position(|window| window == old) {
        out.extend(&rest[..at]);
        out.extend(new);
        rest = &rest[at + old.len()..];
    }
    out.extend(rest);
    out
}

#[test]
fn text_output_names_the_next_command() {
    let shop = Repository::shop();
    let shown = shop.env.lanser(["rename", "py://shop.stock#Stock.add", "put"]);
    let text = shown.text();
    assert!(text.contains("-    def add(self") && text.contains("+    def put(self"), "{text}");
    assert!(text.contains("the old name remains in") && !text.contains("resolved"), "{text}");
    assert!(text.ends_with("to apply: lanser rename 'py://shop.stock#Stock.add' put --apply\n"), "{text}");
    let made = shop.env.lanser(["rename", "py://shop.stock#Stock.add", "put", "--apply"]);
    let last = made.text().lines().last().unwrap().to_owned();
    let undo = last.strip_prefix("to undo: lanser ").unwrap();
    assert!(shop.env.lanser(undo.split(' ')).text().contains("undid"));
    assert_eq!(shop.git(&["status", "--porcelain"]), "");
    let refused = shop.env.lanser(["-C", ".", "rename", "py://shop.stock#total", "Stock"]);
    let next = "to go on anyway: lanser -C . rename 'py://shop.stock#total' Stock --";
    assert!(refused.stderr.contains(next), "{refused}");
    let listed = shop.env.lanser(["undo", "--list"]);
    assert_eq!(listed.text().lines().count(), 2, "{listed}");
    let newest = shop.env.lanser(["undo", "--list", "--limit", "1"]);
    let (first, rest) = newest.text().split_once('\n').unwrap();
    assert_eq!(Some(first), listed.text().lines().next(), "{newest}");
    let next = rest.lines().find_map(|line| line.split_once("lanser ").map(|(_, command)| command)).unwrap();
    let oldest = shop.env.lanser(next.split(' '));
    assert_eq!(oldest.text().lines().next(), listed.text().lines().nth(1), "{oldest}");
}

#[test]
fn prepare_rename_returns_the_name() {
    let project = Project::parse(SHOP);
    let shop = Repository::new(&project);
    let bundle = shop.env.lanser(["prepare-rename", "py://shop.stock#total", "--json"]).answer();
    assert_eq!(bundle["facts"]["renamable"]["name"], "total");
    shop.env.lanser(["prepare-rename", "shop/stock.py:3:1", "--json"]).error(3, "E/NOT_FOUND");
}

/// A file that has another name by a link is edited once, and is compared under both.
#[test]
fn a_file_with_two_names_is_edited_once() {
    let project = Project::parse("//- /m.py\ndef foo(): ...\n//- /u.py\nfrom m import foo\nfoo()\n");
    let env = TestEnv::ty(&project);
    std::fs::create_dir(env.file("sub")).unwrap();
    std::os::unix::fs::symlink("../u.py", env.file("sub/link.py")).unwrap();
    let bundle = env.lanser(["rename", "m.foo", "bar", "--allow-dirty", "--apply", "--json"]).answer();
    assert_eq!(bundle["edits"]["files"].as_array().unwrap().len(), 2, "{bundle}");
    assert_eq!(std::fs::read_to_string(env.file("sub/link.py")).unwrap(), "from m import bar\nbar()\n");
    assert!(std::fs::symlink_metadata(env.file("sub/link.py")).unwrap().is_symlink());
}

/// The other module keeps its name: only the name that the file binds changes.
#[test]
fn imports_with_a_fallback() {
    let project = Project::parse(
        "\
//- /made.py
try:
    from lib import make
except ImportError:
    def make() -> int: return 1

def run() -> int: return make()
//- /written.py
try:
    from json import dumps
except ImportError:
    def dumps(x: object) -> str: return ''
try:
    from made import run
except ImportError:
    def run() -> int: return 2

dumps(1)
//- /use.py
from made import make
from written import dumps, run
make(), dumps(1), run()
",
    );
    for server in ["pyright", "ty"] {
        let repository = Repository::new(&project);
        let rename = |args: &[&str]| {
            let (_, files) = repository.plan_apply_undo(&[args, &["--server", server]].concat());
            files
        };
        let files = rename(&["rename", "py://made#make", "build"]);
        let made = text(&files, "made.py");
        assert!(
            made.contains("import make as build\n")
                && made.contains("def build()")
                && made.contains("build()\n"),
            "{server}: {made}"
        );
        assert!(text(&files, "use.py").starts_with("from made import build\n"), "{server}");
        // Pyright finds the symbol only in the other module, and offers no rename.
        let bundle = repository.plan(&["rename", "written.py:4:9", "write", "--server", server]);
        let refused: &[&str] = if server == "pyright" { &["prepareRename"] } else { &[] };
        assert_eq!(failed(&bundle), refused, "{server}");
        let diff = bundle["edits"]["diff"].as_str().unwrap();
        for line in ["+    from json import dumps as write\n", "+write(1)\n", "+make(), write(1), run()\n"] {
            assert!(diff.contains(line), "{server}: {diff}");
        }
    }
}

/// Their bases are in ty's stubs, which are in its program.
#[test]
fn members_of_classes_below_the_standard_library() {
    let project = Project::parse(
        "\
//- /m.py
import enum, unittest
class Color(str, enum.Enum):
    RED = \"r\"
class Broken(ValueError):
    def detail(self) -> str: return \"\"
class Case(unittest.TestCase):
    def make(self) -> Broken: return Broken()
    def test_it(self) -> None: print(self.make().detail(), Color.RED)
",
    );
    let repository = Repository::with_ty(&project);
    for (name, new, count) in
        [("Color.RED", "BLUE", 2), ("Broken.detail", "text", 2), ("Case.make", "build", 2)]
    {
        let (planned, _) = repository.plan_apply_undo(&["rename", &format!("py://m#{name}"), new]);
        let edits = planned["edits"]["workspaceEdit"]["changes"]["m.py"].as_array();
        assert_eq!(edits.map(Vec::len), Some(count), "{name}");
    }
    // What the base has, too, keeps its name.
    let failed = repository.failed_checks(&["rename", "py://m#Case.test_it", "run"], 78);
    assert!(failed.iter().any(|check| check == "collision"), "{failed:?}");
}

/// The calls of a function that nothing passes on decide what its parameter can affect.
#[test]
fn parameters_of_functions_with_many_importers() {
    let mut project = Project::parse(
        "\
//- /m.py
def compute_it(arg: int = 1) -> int: return arg
class C: pass
//- /use.py
import m
print(m.compute_it(arg=2), m.compute_it(3))
",
    );
    for number in 0..125 {
        project = project.and(&format!("m{number}.py"), "import m\nc = m.C()\n");
    }
    let repository = Repository::with_ty(&project);
    let rename = ["rename", "py://m#compute_it(arg)", "value"];
    let (planned, _) = repository.plan_apply_undo(&rename);
    assert_eq!(planned["edits"]["diagnostics"]["files_checked"], 2);
    assert_eq!(planned["edits"]["diagnostics"]["unaffected"]["count"], 125);
    // Where the function is expected to match a type, its parameters matter, in a file without its name, too.
    let callback = "from typing import Protocol\nclass Call(Protocol):\n    def __call__(self, arg: int = 1) -> int: ...\n";
    std::fs::write(repository.env.file("callback.py"), callback).unwrap();
    std::fs::write(repository.env.file("kept.py"), "import m\nkept = m.compute_it\n").unwrap();
    let given = "import m\nfrom callback import Call\nfrom kept import kept\ng: Call = kept\n";
    std::fs::write(repository.env.file("given.py"), given).unwrap();
    repository.commit();
    let shown = repository.plan(&rename);
    let introduced = shown["edits"]["diagnostics"]["introduced"].as_array().unwrap();
    assert_eq!(introduced.len(), 1, "{shown}");
    assert_eq!(introduced[0]["uri"], "given.py");
}

/// The file with the new diagnostic has neither the function's name nor that of its parameter.
#[test]
fn parameters_that_matter_where_nothing_is_called() {
    let callback = "from typing import Protocol\nclass Call(Protocol):\n    def __call__(self, amount: int) -> int: ...\ndef feed(it: Call) -> None: ...\n";
    let generic = "from typing import Callable, Generic, ParamSpec, TypeVar\nP = ParamSpec(\"P\")\nR = TypeVar(\"R\")\nT = TypeVar(\"T\")\n";
    let task = "class Task(Generic[P, R]):\n    def __init__(self, callback: Callable[P, R]) -> None: self.callback = callback\ndef task(it: Callable[P, R]) -> Task[P, R]: return Task(it)\ndef cast(it: T) -> T: return it\n";
    let given = "from call import feed\nfrom mole import handler\nfeed(handler)\n";
    for (mole, given, parameter) in [
        (
            "from deco import task\n@task\ndef dig_it(amount: int) -> int: return amount\nhandler = dig_it.callback\n",
            given,
            "amount",
        ),
        (
            "from deco import cast\ndef dig_it(amount: int) -> int: return amount\nhandler = cast(dig_it)\n",
            given,
            "amount",
        ),
        (
            "from typing import Callable, TypeVar, dataclass_transform\nT = TypeVar(\"T\")\n@dataclass_transform()\ndef dig_it(*, order: bool = False) -> Callable[[type[T]], type[T]]: ...\n@dig_it(order=True)\nclass Point:\n    x: int\n",
            "from mole import Point\nprint(Point(1) < Point(2))\n",
            "order",
        ),
    ] {
        let project = Project::parse(&format!("//- /call.py\n{callback}"))
            .and("deco.py", format!("{generic}{task}"))
            .and("mole.py", mole)
            .and("given.py", given);
        let repository = Repository::with_ty(&project);
        let shown = repository.plan(&["rename", &format!("py://mole#dig_it({parameter})"), "zebras"]);
        let introduced = shown["edits"]["diagnostics"]["introduced"].as_array().unwrap();
        assert!(introduced.iter().any(|found| found["uri"] == "given.py"), "{mole}: {shown}");
    }
}
