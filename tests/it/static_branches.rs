//! Objects whose classes depend on the platform, the version of Python and the like, of which a server reads one branch.

use std::fmt::Write as _;

use crate::support::{Project, TestEnv};

/// Small modules, each of which calls `read` of a `Win` or a `Posix`.
const MODULES: &str = include_str!("../../fixtures/static_branches.txt");

const COMPAT: &str = "import sys
WINDOWS = sys.platform == 'win32'
def is_windows(): return WINDOWS
class Env:
    WIN = WINDOWS
";

/// Every module has its own classes, with a method of its own name, so that none is explained by another one.
fn project() -> (Project, Vec<&'static str>) {
    let mut text = format!("//- /compat.py\n{COMPAT}//- /pyproject.toml\n");
    text.push_str(
        "[tool.ty.environment]\npython-platform = 'linux'\n[tool.pyright]\npythonPlatform = 'Linux'\n",
    );
    let mut names = Vec::new();
    for module in MODULES.split("//- /").skip(1) {
        let (name, body) = module.split_once(".py\n").unwrap();
        let body = format!("import sys\nfrom term import Posix, Win, posix, win\n{body}");
        let term = "class Win:\n    def read(self): ...\nclass Posix:\n    def read(self): ...\n\
                    def win() -> Win: ...\ndef posix() -> Posix: ...\n";
        let own = |text: &str| {
            text.replace("read", &format!("read_{name}")).replace("term", &format!("term_{name}"))
        };
        write!(text, "//- /{name}.py\n{}//- /term_{name}.py\n{}", own(&body), own(term)).unwrap();
        names.push(name);
    }
    (Project::parse(&text), names)
}

/// Asks for the uses of both classes' methods in each module, and returns the modules of which an answer misses the use.
fn missed(env: &TestEnv, names: &[&str]) -> Vec<String> {
    let asked: Vec<(&str, &str)> = names.iter().flat_map(|name| [(*name, "Win"), (*name, "Posix")]).collect();
    let lines: String = asked
        .iter()
        .map(|(name, class)| {
            format!("{{\"cmd\":\"references\",\"selector\":\"term_{name}.{class}.read_{name}\"}}\n")
        })
        .collect();
    let output = env.lanser_with_input(["batch", "--ordered"], lines);
    let answers: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), asked.len(), "{output}");
    let mut missed = Vec::new();
    for ((name, class), answer) in asked.iter().zip(&answers) {
        let facts = &answer["facts"];
        let in_module = |list: &serde_json::Value| {
            let all = list.as_array().unwrap();
            all.iter().filter(|place| place["uri"] == format!("{name}.py")).count()
        };
        let found =
            in_module(&facts["references"]) + in_module(&facts["completeness"]["unresolved"]["items"]);
        let uses = std::fs::read_to_string(env.file(&format!("{name}.py")))
            .unwrap()
            .matches(&format!(".read_{name}()"))
            .count();
        if found < uses {
            missed.push(format!("{name}: {class}"));
        }
    }
    missed
}

#[test]
fn ty_misses_no_use_without_a_word() {
    let (project, names) = project();
    assert_eq!(missed(&TestEnv::ty(&project), &names), Vec::<String>::new());
}

#[test]
fn pyright_misses_no_use_without_a_word() {
    let (project, names) = project();
    assert_eq!(missed(&TestEnv::pyright(&project), &names), Vec::<String>::new());
}

#[test]
fn other_objects_are_resolved() {
    let env = TestEnv::ty(&Project::parse(
        "//- /term.py\nclass Win:\n    def read(self): self.read()\nclass Posix:\n    def read(self): self.read()\n\
         //- /use.py\nimport sys\nfrom term import Posix, Win\n\
         if sys.platform == 'linux':\n    def f() -> Win: return Win()\nelse:\n    def f() -> Win: return make(Posix())\n\
         f().read()\nPosix().read()\n\
         class A:\n    def t(self):\n        if sys.platform == 'linux':\n            return Win()\n\
         class B:\n    platform = ''\n    def t(self):\n        if self.platform == '':\n            return Win()\n        return Posix()\n\
         //- /pyproject.toml\n",
    ));
    for name in ["term.Win.read", "term.Posix.read"] {
        let found = env.lanser(["refs", name, "--json"]).answer();
        assert_eq!(found["facts"]["completeness"]["status"], "complete", "{found}");
    }
}
