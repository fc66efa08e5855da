//! Edits with the real Pyright: what is renamed, what is refused and by which check, what the preview shows, what is written, and
//! that everything can be undone.

/// Code actions of servers.
mod actions;
/// Renames in class hierarchies.
mod classes;
/// The same plan from cold processes, sessions, and after undo.
mod consistency;
/// Files that change between planning and writing, and a very large edit.
mod faults;
/// Renames that go on after a refusal, and plans that are used again.
mod going_on;
/// Guards that apply to every way of making an edit.
mod guards;
/// Modules and packages that are renamed and moved.
mod modules;
/// Every preview is a patch that git accepts.
mod previews;
/// Edits provided by the caller: applied, judged, confined to the workspace.
mod provided;
/// Read-only commands write nothing.
mod read_only;
/// Checks that stop an edit, and the options that override them.
mod refused;
/// Successful renames.
mod renames;
/// Strings that name what is renamed.
mod strings;
/// Unresolved occurrences.
mod unresolved;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Project, TestEnv};

/// A workspace with every kind of thing that can be renamed.
pub(crate) const SHOP: &str = "\
//- /shop/__init__.py
from shop.stock import Stock, total as total
__all__ = ['Stock', 'total']
//- /shop/stock.py
LIMIT = 10

class Stock:
    color = 'red'

    def __init__(self, size: int) -> None:
        self.size = size

    def add(self, count: int, note: str = '') -> int:
        \"\"\"Calls add, and nothing else.\"\"\"
        number = count + len(note)
        return number + self.size

    def remove(self, count: int) -> int:
        return self.size - count

def total(stock: Stock) -> int:
    return stock.add(LIMIT, note='x')

class Cellar(Stock):
    def remove(self, count: int) -> int:
        return 0
//- /shop/use.py
import shop
from shop import Stock
from shop.stock import total, LIMIT

def run() -> int:
    stock = Stock(1)
    return stock.add(count=1) + shop.total(stock) + total(stock) + stock.size + LIMIT

print(getattr(run, 'add'))
//- /README.md
Use `add` to add.
";

/// A git repository in which everything is committed.
pub(crate) struct Repository {
    pub(crate) env: TestEnv,
}

impl Repository {
    pub(crate) fn new(project: &Project) -> Self {
        Self::of(TestEnv::pyright_session(project))
    }

    /// For what does not depend on the server: ty starts much faster.
    pub(crate) fn with_ty(project: &Project) -> Self {
        Self::of(TestEnv::ty(project))
    }

    pub(crate) fn of(env: TestEnv) -> Self {
        let this = Self { env };
        this.git(&["init", "-q"]);
        // A commit may start maintenance in the background, which writes.
        this.git(&["config", "maintenance.auto", "false"]);
        // Files that compiling leaves are ignored.
        std::fs::write(this.env.file(".git/info/exclude"), "__pycache__\n").unwrap();
        this.commit();
        this
    }

    pub(crate) fn shop() -> Self {
        Self::new(&Project::parse(SHOP))
    }

    pub(crate) fn shop_with_ty() -> Self {
        Self::with_ty(&Project::parse(SHOP))
    }

    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let fixed = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false"];
        let output = self.env.run("git", fixed.iter().chain(args));
        assert_eq!(output.code, Some(0), "{output}");
        output.stdout
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "all", "--allow-empty"]);
    }

    /// The folder of the repository's journals, in the user's state folder; does not exist before the first write.
    pub(crate) fn journals(&self) -> std::path::PathBuf {
        let folder = self.env.path("home").join(".local/state/lanser/transactions");
        let found = std::fs::read_dir(&folder).ok().and_then(|mut found| found.next());
        found.map_or(folder, |found| found.unwrap().path())
    }

    /// Every file of the workspace, except those of git.
    pub(crate) fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.env.cwd.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    if path.file_name() != Some("__pycache__".as_ref())
                        && path.file_name() != Some(".git".as_ref())
                    {
                        folders.push(path);
                    }
                } else {
                    let name = path.strip_prefix(&self.env.cwd).unwrap().to_str().unwrap().to_owned();
                    found.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    /// Plans an edit without writing it; asserts that git accepts the diff.
    #[track_caller]
    pub(crate) fn plan(&self, args: &[&str]) -> Value {
        let before = self.tree();
        let bundle = self.env.lanser(args.iter().chain(&["--json"])).plan();
        assert_eq!(self.tree(), before, "{args:?} wrote");
        assert_eq!(self.git(&["status", "--porcelain"]), "", "{args:?} left traces");
        let diff = bundle["edits"]["diff"].as_str().unwrap();
        if !diff.is_empty() {
            self.applies(diff);
        }
        bundle
    }

    /// Asserts that git would apply a diff.
    #[track_caller]
    pub(crate) fn applies(&self, diff: &str) {
        let patch = self.env.path("the.patch");
        std::fs::write(&patch, diff).unwrap();
        self.git(&["apply", "--check", patch.to_str().unwrap()]);
    }

    /// Plans and writes an edit, compares the two, compiles, and undoes it; returns the bundle of the plan and the written files.
    #[track_caller]
    pub(crate) fn plan_apply_undo(&self, args: &[&str]) -> (Value, BTreeMap<String, Vec<u8>>) {
        let before = self.tree();
        let planned = self.plan(args);
        for check in planned["edits"]["safety"].as_array().unwrap() {
            assert_eq!(check["passed"], true, "{check}");
        }
        let made = self.env.lanser(args.iter().chain(&["--apply", "--json"])).answer();
        let written = self.tree();
        assert_ne!(written, before, "{args:?} wrote nothing");
        for part in ["diff", "files", "safety", "workspaceEdit", "residue", "diagnostics"] {
            assert_eq!(
                planned["edits"][part], made["edits"][part],
                "{part} of what was planned and what was made"
            );
        }
        let patch = self.env.path("the.patch");
        std::fs::write(&patch, planned["edits"]["diff"].as_str().unwrap()).unwrap();
        // The written files are those of the preview: reversing the diff restores the original.
        self.git(&["apply", "-R", "--check", patch.to_str().unwrap()]);
        let compiled = self.env.run("python3", ["-m", "compileall", "-q", "."]);
        assert_eq!(compiled.code, Some(0), "{compiled}");
        let id = made["edits"]["transaction"]["id"].as_str().unwrap();
        self.env.lanser(["undo", id]).text();
        assert_eq!(self.tree(), before, "undo brings back the tree");
        assert_eq!(self.git(&["status", "--porcelain"]), "", "undo leaves traces");
        (planned, written)
    }

    /// The failed checks of a command that must fail with this exit code and write nothing.
    #[track_caller]
    pub(crate) fn failed_checks(&self, args: &[&str], code: i32) -> Vec<String> {
        let before = self.tree();
        let output = self.env.lanser(args.iter().chain(&["--apply", "--json"]));
        let bundle = output.bundle();
        assert_eq!(output.code, Some(code), "{output}");
        assert_eq!(self.tree(), before, "{args:?} wrote");
        assert_eq!(bundle["edits"]["transaction"], Value::Null);
        failed(&bundle)
    }
}

/// The names of the checks that failed and were not overridden.
pub(crate) fn failed(bundle: &Value) -> Vec<String> {
    let checks = bundle["edits"]["safety"].as_array().unwrap().iter();
    let stopping = checks.filter(|check| check["passed"] == false && check["overridden"] != true);
    stopping.map(|check| check["name"].as_str().unwrap().to_owned()).collect()
}
