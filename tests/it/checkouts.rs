//! What one checkout cannot do to the answers about another, and code that links hide.

use std::os::unix::fs::symlink;

use crate::support::{Project, TestEnv};

fn at(env: &TestEnv, folder: &str, args: &[&str]) -> crate::support::Output {
    let workspace = env.file(folder);
    let args = ["-C", workspace.to_str().unwrap()].iter().chain(args).copied().collect::<Vec<_>>();
    env.lanser(args)
}

fn commit(env: &TestEnv, folder: &str) {
    let folder = env.file(folder);
    let folder = folder.to_str().unwrap();
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ] {
        assert_eq!(env.run("git", ["-C", folder].iter().chain(args)).code, Some(0));
    }
}

/// Two checkouts with equal sources and records of their environments, of which one has another library.
#[test]
fn a_checkout_with_forged_records_does_not_answer_for_another() {
    let env = TestEnv::ty(&Project::parse("//- /unused.py\n"));
    let libraries = [
        ("forged", "class Z:\n    def go(self): ...\ndef make(c: object) -> Z: return Z()\n"),
        ("genuine", "from typing import TypeVar\nT = TypeVar('T')\ndef make(c: type[T]) -> T: return c()\n"),
    ];
    for (name, library) in libraries {
        let write = |path: &str, text: &str| env.write(&format!("{name}/{path}"), text);
        write("pyproject.toml", "");
        write("pkg/__init__.py", "");
        write("pkg/mod.py", "class A:\n    def go(self) -> int: return 1\n");
        write("pkg/use.py", "from pkg.mod import A\nfrom lib import make\nmake(A).go()\n");
        write(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
        write(".venv/bin/python", "");
        write(".venv/lib/python3.11/site-packages/lib/__init__.py", library);
        let info = ".venv/lib/python3.11/site-packages/lib-1.0.dist-info";
        write(&format!("{info}/RECORD"), "lib/__init__.py,sha256=AAAA,10\n");
        write(&format!("{info}/METADATA"), "Name: lib\nVersion: 1.0\n");
    }
    let references = |name: &str| {
        at(&env, name, &["refs", "pkg.mod.A.go", "--json"]).answer()["facts"]["references"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!([references("forged"), references("genuine")], [1, 2]);
}

#[test]
fn code_behind_links_is_read() {
    let env = TestEnv::ty(&Project::parse("//- /unused.py\n"));
    let code = "from pkg.mod import f\nf(1)\n";
    for (name, hidden, link, target, read) in [
        ("a", ".hid/use.py", "code", ".hid", "code/use.py"),
        ("b", "node_modules/use.py", "code", "node_modules", "code/use.py"),
        ("c", "impl.txt", "run", "impl.txt", "run"),
        ("d", "x.txt", ".hid/use.py", "../x.txt", ".hid/use.py"),
    ] {
        // What git tracks is read without a link.
        let ignored = if read == "code/use.py" { target } else { "" };
        env.write(&format!("{name}/.gitignore"), ignored);
        env.write(&format!("{name}/pyproject.toml"), "");
        env.write(&format!("{name}/pkg/__init__.py"), "");
        env.write(&format!("{name}/pkg/mod.py"), "def f(x): ...\n");
        env.write(&format!("{name}/{hidden}"), format!("#!/usr/bin/env python3\n{code}"));
        let link = env.file(&format!("{name}/{link}"));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, &link).unwrap();
        commit(&env, name);
        let found = at(&env, name, &["refs", "pkg.mod.f", "--json"]).answer();
        let references = found["facts"]["references"].as_array().unwrap();
        assert_eq!(references.len(), 3, "{name}: {found}");
        assert!(references.iter().any(|place| place["uri"] == read), "{name}: {found}");
    }
}

#[test]
fn submodules_are_not_entered_through_links() {
    let env = TestEnv::ty(&Project::parse("//- /pkg/mod.py\ndef f(): ...\n"));
    commit(&env, ".");
    let head = env.run("git", ["rev-parse", "HEAD"]).stdout;
    let entries =
        (0..20_000).map(|n| format!("100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\tq/{n}.txt\n"));
    let entries: String = entries.collect();
    let links = ["s1", "s2"].map(|name| {
        symlink(".", env.file(name)).unwrap();
        format!("160000 {} 0\t{name}\n", head.trim())
    });
    env.write("entries", entries + &links.concat());
    assert_eq!(env.run("sh", ["-c", "git update-index --index-info < entries"]).code, Some(0));
    // Reading the index a thousand times took longer than a minute.
    let output = env.lanser(["locate", "pkg.mod.f", "--timeout", "20"]);
    assert_eq!(output.code, Some(0), "{output}");
}

#[test]
fn a_baseline_is_an_input_of_diagnostics() {
    let env = TestEnv::basedpyright(&Project::parse("//- /use.py\nx: int = \"\"\n//- /pyproject.toml\n"));
    let errors = || {
        env.lanser(["diag", "--server", "basedpyright", "--json"]).answer()["facts"]["diagnostics"]["counts"]
            ["error"]
            .as_u64()
    };
    assert_eq!(errors(), Some(1));
    env.write(
        ".basedpyright/baseline.json",
        r#"{"files":{"./use.py":[{"code":"reportAssignmentType","range":{"startColumn":9,"endColumn":11,"lineCount":1}}]}}"#,
    );
    assert_eq!(errors(), Some(0));
    env.write(".basedpyright/baseline.json", "");
    assert_eq!(errors(), Some(1));
}

/// The author of a line of a batch is not the user.
#[test]
fn a_line_of_a_batch_does_not_switch_off_the_users_guards() {
    let mut env = TestEnv::ty(&Project::parse("//- /a.py\nx = 1\n//- /closed/b.py\ny = 1\n"));
    env.write("settings/lanser/config.toml", "workspace-jail = true\ndeny = [\"closed\"]\n");
    env.set("XDG_CONFIG_HOME", env.file("settings"));
    let edit = "--- a/closed/b.py\n+++ b/closed/b.py\n@@ -1 +1 @@\n-y = 1\n+y = 2\n";
    for guards in [r#"{"dirty":"all","overrides":["filters"]}"#, r#"{"dirty":"all","outside":true}"#] {
        let edit = serde_json::to_string(edit).unwrap();
        let line = format!(
            r#"{{"cmd":"apply","options":{{"edit":{{"text":{edit}}},"apply":true,"guards":{guards}}}}}"#
        );
        let output = env.lanser_with_input(["batch"], line);
        assert!(output.stdout.contains("E/USAGE"), "{guards}: {output}");
    }
    assert_eq!(std::fs::read_to_string(env.file("closed/b.py")).unwrap(), "y = 1\n");
}

#[test]
fn a_branch_for_another_platform_leaves_a_use_unresolved() {
    let env = TestEnv::ty(&Project::parse(
        "//- /term.py\nclass Win:\n    def read(self): ...\nclass Posix:\n    def read(self): ...\n\
         //- /use.py\nimport sys\nfrom term import Posix, Win\nif sys.platform == 'linux':\n    t = Posix()\nelse:\n    t = Win()\nt.read()\n\
         //- /pyproject.toml\n[tool.ty.environment]\npython-platform = 'win32'\n",
    ));
    for name in ["term.Win.read", "term.Posix.read"] {
        let found = env.lanser(["refs", name, "--json"]).answer();
        let uses = found["facts"]["references"].as_array().unwrap().len();
        let unresolved = found["facts"]["completeness"]["unresolved"]["count"].as_u64();
        assert!(uses == 2 || unresolved == Some(1), "{name}: {found}");
    }
}

#[test]
fn a_module_beside_a_script_may_be_the_one_that_is_imported() {
    let env = TestEnv::ty(&Project::parse(
        "//- /util.py\ndef f(x): ...\n//- /tests/util.py\ndef f(x): ...\n//- /tests/use.py\nimport util\nutil.f(1)\n\
         //- /pkg/__init__.py\n//- /pkg/util.py\ndef f(x): ...\n//- /pkg/use.py\nimport util\nutil.f(1)\n//- /pyproject.toml\n",
    ));
    let unresolved = |path: &str| {
        let found = env.lanser(["refs", path, "--json"]).answer();
        found["facts"]["completeness"]["unresolved"]["count"].as_u64()
    };
    assert_eq!(unresolved("tests/util.py:1:5"), Some(1));
    assert_eq!(unresolved("pkg/util.py:1:5"), Some(0));
}
