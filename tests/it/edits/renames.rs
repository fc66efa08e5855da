//! Successful renames: of everything that has a name, in files of every kind, with no other change.

use super::{Repository, SHOP, failed};
use crate::support::Project;

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
    let listed = shop.env.lanser(["undo", "--list"]);
    assert_eq!(listed.text().lines().count(), 2, "{listed}");
}

#[test]
fn prepare_rename_returns_the_name() {
    let project = Project::parse(SHOP);
    let shop = Repository::new(&project);
    let bundle = shop.env.lanser(["prepare-rename", "py://shop.stock#total", "--json"]).answer();
    assert_eq!(bundle["facts"]["renamable"]["name"], "total");
    shop.env.lanser(["prepare-rename", "shop/stock.py:3:1", "--json"]).error(3, "E/NOT_FOUND");
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
