//! Unusual files that break naive tools: each is answered correctly or with a clear error, and none affects the others.

use serde_json::{Value, json};

use crate::support::{Project, TestEnv};

/// A workspace of unusual files that each define one name, and a module that uses all of them.
fn unusual() -> TestEnv {
    let env = TestEnv::pyright(&Project::parse(
        "
//- /uses.py
from bom import with_bom
from crlf import with_crlf
from latin import after
from marks import deep
from tabs import tabbed
from unfinished import last
from twice import typed

with_bom(1); with_crlf(2); after(); deep(4); tabbed(5); last(6); typed(7)
//- /empty.py
//- /tabs.py
if 1:
\tif 2:
\t\tdef tabbed(n: int): ...
//- /twice.py
def typed(n): return n
//- /twice.pyi
def typed(n: int) -> int: ...
//- /broken.py
x: int = 'no number'


def half(:
    return (
",
    ));
    env.write("crlf.py", "# one\r\ndef with_crlf(n: int):\r\n    return n\r\n");
    env.write("bom.py", "\u{feff}def with_bom(n: int): ...\n");
    env.write("latin.py", b"# -*- coding: latin-1 -*-\n\xe9t\xe9 = '\xe9'; \ndef caf\xe9(n: int): ...\n'\xe9\xe9'; after = lambda: 0\n");
    env.write("marks.py", "\u{1d4b3} = '\u{1f701}e\u{301}'; deep = lambda n: n\n");
    env.write("unfinished.py", "def last(n: int): ...");
    env.write("not_utf8.py", b"x = '\xff\xfe'\ndef lost(): ...\n");
    env.write("a name #1.py", "def hashed(n: int): ...\nhashed('wrong')\n");
    std::fs::create_dir(env.file("folder.py")).unwrap();
    env.write("folder.py/inside.py", "def inside(): ...\n");
    std::os::unix::fs::symlink(".", env.file("loop")).unwrap();
    // Larger than lanser reads, which no permission changes. It is sparse, without blocks on the disk.
    std::fs::File::create(env.file("huge.py")).unwrap().set_len(65 << 20).unwrap();
    std::os::unix::fs::symlink("nowhere.py", env.file("dangling.py")).unwrap();
    env
}

#[track_caller]
fn definition(env: &TestEnv, selector: &str) -> Vec<Value> {
    let bundle = env.lanser(["def", selector, "--json"]).answer();
    bundle["facts"]["definitions"].as_array().unwrap().clone()
}

/// The definitions are in files that lanser did not open for the request.
#[test]
fn definitions_in_unusual_files() {
    let env = unusual();
    for (name, at) in [
        ("with_bom", "bom.py@L1:C5"),
        ("with_crlf", "crlf.py@L2:C5"),
        ("after", "latin.py@L4:C7"),
        ("deep", "marks.py@L1:C12"),
        ("tabbed", "tabs.py@L3:C7"),
        ("last", "unfinished.py@L1:C5"),
    ] {
        let line = "with_bom(1); with_crlf(2); after(); deep(4); tabbed(5); last(6); typed(7)";
        let column = line[..line.find(&format!("{name}(")).unwrap()].chars().count() + 1;
        let found = definition(&env, &format!("uses.py:9:{column}"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["at"], at, "{name}");
        // The columns are right: the name is there.
        let located = env.lanser(["locate", at, "--json"]).answer();
        let resolved = &located["resolution"]["resolved"];
        assert_eq!(resolved["range"], found[0]["range"], "{name}");
        assert!(resolved["qualname"].as_str().unwrap().ends_with(&format!(":{name}")), "{located}");
    }
}

#[test]
fn diagnostics_skip_unreadable_files() {
    let env = unusual();
    let bundle = env.lanser(["diag", "--json"]).answer();
    let found = &bundle["facts"]["diagnostics"];
    let of = |uri: &str| found["items"].as_array().unwrap().iter().filter(|item| item["uri"] == uri).count();
    assert!(of("broken.py") >= 2, "a file that does not parse is checked all the same: {found}");
    assert_eq!(of("a%20name%20%231.py"), 1, "{found}");
    assert_eq!(of("uses.py"), 0, "every import of every strange file resolves: {found}");
    assert_eq!(of("crlf.py") + of("bom.py") + of("latin.py") + of("empty.py"), 0, "{found}");
    // Files behind the symlink loop are the same files; a folder called x.py is a folder.
    assert!(!bundle.to_string().contains("loop/"));
    let names: Vec<_> = found["not_checked"].as_array().unwrap().iter().map(|file| &file["uri"]).collect();
    assert_eq!(names, ["huge.py", "not_utf8.py"], "{found}");
    assert_eq!(bundle["status"], "partial", "two files were not checked, and that is said");
    assert_eq!(found["files_checked"], 13, "{found}");
    let judged = env.lanser(["diag", "not_utf8.py", "--fail-on", "error"]);
    assert_eq!(judged.code, Some(1), "Python cannot read it: {judged}");
}

/// A server returns only the uses in a link if it is asked about the link.
#[test]
fn names_of_a_module_behind_a_link_are_those_of_the_file() {
    for server in [TestEnv::pyright, TestEnv::ty] {
        let env = server(&Project::parse(
            "//- /real/__init__.py\n//- /real/a.py\ndef f(x):\n    return x\n\n\nf(1)\n//- /use.py\nfrom real.a import f\n\nf(2)\n",
        ));
        std::os::unix::fs::symlink("real", env.file("linked")).unwrap();
        let of_file = env.lanser(["refs", "real.a.f", "--json"]).answer()["facts"].clone();
        assert_eq!(of_file["completeness"]["status"], "complete", "{of_file}");
        for selector in ["linked.a.f", "py://linked.a#f", "linked/a.py::f", "linked/a.py:1:5"] {
            let bundle = env.lanser(["refs", selector, "--json"]).answer();
            assert_eq!(bundle["facts"], of_file, "{selector}");
            assert_eq!(bundle["resolution"]["resolved"]["qualname"], "real.a:f", "{selector}");
        }
    }
}

/// What is imported through a link is another module for a server.
#[test]
fn uses_through_a_link_are_not_called_complete() {
    for server in [TestEnv::pyright, TestEnv::ty] {
        let env = server(&Project::parse(
            "//- /lib/__init__.py\n//- /lib/a.py\ndef foo(x):\n    return x\n//- /use.py\nfrom lib.b import foo\n\nfoo(2)\n",
        ));
        std::os::unix::fs::symlink("a.py", env.file("lib/b.py")).unwrap();
        for command in ["refs", "calls"] {
            let facts = env.lanser([command, "lib.a.foo", "--json"]).answer()["facts"].clone();
            assert_eq!(facts["completeness"]["status"], "unknown", "{facts}");
            assert!(facts["completeness"]["reason"].as_str().unwrap().contains("lib/b.py"), "{facts}");
        }
        for edit in [["rename", "lib.a.foo", "bar"], ["move", "py://lib.a", "py://lib.c"]] {
            let refused = env.lanser(edit);
            assert_eq!(refused.code, Some(78), "{refused}");
            assert!(refused.stderr.contains("lib/b.py is a symbolic link"), "{refused}");
        }
        // The file and the link are one place.
        assert_eq!(env.lanser(["locate", "foo"]).stdout, "lib/a.py:1:5  def foo(x):\nfunction lib.a:foo\n");
    }
    // A folder of sources, which imports do not spell, and a link that nothing imports through.
    let env =
        TestEnv::ty(&Project::parse("//- /real/a.py\ndef f(x): ...\n//- /use.py\nfrom a import f\n\nf(2)\n"));
    std::os::unix::fs::symlink("real", env.file("src")).unwrap();
    let facts = env.lanser(["refs", "real/a.py:1:5", "--json"]).answer()["facts"].clone();
    assert_eq!(facts["completeness"]["status"], "unknown", "{facts}");
    let env = TestEnv::ty(&Project::parse(
        "//- /pkg/__init__.py\n//- /pkg/a.py\ndef f(x): ...\n//- /docs/conf.py\n# docs of pkg\n//- /use.py\nfrom pkg.a import f\n\nf(2)\n",
    ));
    std::os::unix::fs::symlink("../pkg", env.file("docs/pkg")).unwrap();
    let facts = env.lanser(["refs", "pkg.a.f", "--json"]).answer()["facts"].clone();
    assert_eq!(facts["completeness"]["status"], "complete", "{facts}");

    let env = TestEnv::ty(&Project::parse("//- /use.py\nfrom ext.o import outer\n\nouter()\n"));
    std::fs::create_dir(env.path("ext")).unwrap();
    std::fs::write(env.path("ext/o.py"), "def outer(): ...\n").unwrap();
    std::os::unix::fs::symlink(env.path("ext"), env.file("ext")).unwrap();
    std::os::unix::fs::symlink(env.path("ext/o.py"), env.file("oo.py")).unwrap();
    // Nothing imports through the other link.
    let answer = |selector: &str| env.lanser(["refs", selector, "--json"]).answer()["facts"].clone();
    assert_eq!(answer("ext/o.py:1:5")["completeness"]["status"], "complete");
    assert_eq!(answer("oo.py:1:5")["completeness"]["status"], "unknown");
}

/// Many links to a file hide no other definition of a name, and make none certain.
#[test]
fn links_to_a_file_do_not_compete_with_it() {
    let env = TestEnv::with(&Project::parse("//- /pkg/a.py\nx = 1\nx = 2\n"));
    std::fs::create_dir(env.file("links")).unwrap();
    for number in 0..70 {
        std::os::unix::fs::symlink("../pkg/a.py", env.file(&format!("links/n{number}.py"))).unwrap();
    }
    let resolved = |output: &crate::support::Output| output.bundle()["resolution"]["resolved"].clone();
    let found = resolved(&env.lanser(["locate", "x", "--json"]));
    assert_eq!((&found["at"], &found["certified"]), (&"pkg/a.py@L1:C1".into(), &false.into()), "{found}");
    env.write("zzz.py", "x = 3\n");
    env.lanser(["locate", "x", "--json"]).error(4, "E/AMBIGUOUS");
}

#[test]
fn outlines_skip_unreadable_files() {
    let env = unusual();
    let bundle = env.lanser(["symbols", ".", "--json"]).answer();
    let names = bundle["facts"]["symbols"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|symbol| symbol["name"].as_str().unwrap()).collect();
    for name in
        ["with_bom", "with_crlf", "caf\u{e9}", "deep", "tabbed", "last", "lost", "half", "hashed", "inside"]
    {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert_eq!(bundle["status"], "partial");
    assert!(bundle["facts"]["completeness"]["reason"].as_str().unwrap().contains("huge.py"), "{bundle}");
    let text = env.lanser(["symbols", ".", "--limit", "1000"]);
    assert!(text.text().contains("\nnot complete: huge.py has 68157440 bytes"), "{text}");
    assert!(env.lanser(["symbols", "huge.py"]).failure(3).contains("68157440 bytes"));
}

#[test]
fn references_report_unsearched_files() {
    let env = unusual();
    let uses = |selector: &str| {
        let bundle = env.lanser(["refs", selector, "--json"]).answer();
        let found = bundle["facts"]["references"].as_array().unwrap().iter();
        let at: Vec<String> = found.map(|item| item["at"].as_str().unwrap().to_owned()).collect();
        (at, bundle["facts"]["completeness"]["status"].clone())
    };
    let expected = ["crlf.py@L2:C5", "uses.py@L2:C18", "uses.py@L9:C14"];
    assert_eq!(uses("py://crlf#with_crlf"), (expected.map(str::to_owned).to_vec(), json!("unknown")));
    std::fs::remove_file(env.file("huge.py")).unwrap();
    assert_eq!(uses("py://crlf#with_crlf"), (expected.map(str::to_owned).to_vec(), json!("complete")));
    assert_eq!(uses("py://latin#after").0, ["latin.py@L4:C7", "uses.py@L3:C19", "uses.py@L9:C28"]);
    assert_eq!(uses("a%20name%20%231.py:1:5").0, ["a%20name%20%231.py@L1:C5", "a%20name%20%231.py@L2:C1"]);
}

#[test]
fn locating_in_each_file_works_or_is_explained() {
    let env = unusual();
    for (selector, code) in [
        ("empty.py:1:1", 0),
        ("unfinished.py:1:5", 0),
        ("unfinished.py:1:22", 0),
        ("unfinished.py:2:1", 3),
        ("crlf.py:2:23", 0),
        ("crlf.py:2:24", 3),
        ("bom.py:1:5", 0),
        ("py://bom#with_bom", 0),
        ("py://not_utf8#lost", 0),
        ("py://broken#x", 0),
        ("py://folder.inside#inside", 3),
        ("folder.py/inside.py:1:5", 0),
        ("folder.py:1:1", 71),
        ("dangling.py:1:1", 3),
        ("huge.py:1:1", 71),
        ("loop/loop/crlf.py:2:5", 0),
        ("a%20name%20%231.py:1:5", 0),
        ("tabs.py:3:7", 0),
    ] {
        let output = env.lanser(["locate", selector, "--json"]);
        let bundle = output.bundle();
        assert_eq!(output.code, Some(code), "{selector}: {}", bundle["error"]);
        assert!(code == 0 || bundle["error"]["hint"].is_string(), "{selector}: {bundle}");
    }
    let bundle = env.lanser(["locate", "py://bom#with_bom", "--json"]).answer();
    // The server counts the byte order mark as a column; readers of the file do not.
    let resolved = &bundle["resolution"]["resolved"];
    assert_eq!((&resolved["at"], &resolved["range"]), (&json!("bom.py@L1:C5"), &json!([0, 5, 0, 13])));
}

#[test]
fn five_megabytes() {
    let env = TestEnv::pyright(&Project::parse("//- /small.py\nimport large\nlarge.at_the_end()\n"));
    let mut text = "x = [\n".to_owned();
    while text.len() < 5 << 20 {
        text.push_str("    'a line of a table that is much too long for a source file',\n");
    }
    text.push_str("]\n\ndef at_the_end(): ...\n");
    env.write("large.py", &text);
    let line = text.lines().count();
    assert_eq!(definition(&env, "small.py:2:7")[0]["at"], format!("large.py@L{line}:C5"));
    let bundle = env.lanser(["refs", "py://large#at_the_end", "--json"]).answer();
    assert_eq!(bundle["facts"]["references"].as_array().unwrap().len(), 2);
    assert_eq!(bundle["facts"]["completeness"]["status"], "complete");
}

/// Pyright reads the file as UTF-8 until it is opened, so it does not know the name; lanser opens such files only when they are
/// in an answer.
#[test]
fn names_that_are_not_ascii_in_a_latin_1_file() {
    let env = TestEnv::pyright(&Project::parse("//- /uses.py\nfrom latin import caf\u{e9}\ncaf\u{e9}(3)\n"));
    env.write("latin.py", b"# -*- coding: latin-1 -*-\ndef caf\xe9(n: int): ...\n");
    assert_eq!(definition(&env, "uses.py:2:1")[0]["at"], "latin.py@L2:C5");
    let bundle = env.lanser(["diag", "uses.py", "--json"]).answer();
    assert_eq!(bundle["facts"]["diagnostics"]["counts"]["error"], 0);
}

/// Permissions do not restrict root, which runs the tests on some machines.
#[test]
fn a_file_without_read_permission() {
    use std::os::unix::fs::PermissionsExt as _;

    let env = TestEnv::pyright(&Project::parse(
        "//- /open.py\ndef f(): ...\nf()\n//- /closed.py\nfrom open import f\n",
    ));
    std::fs::set_permissions(env.file("closed.py"), std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(env.file("closed.py")).is_ok() {
        println!("skipped: this user may read every file");
        return;
    }
    env.lanser(["locate", "closed.py:1:1", "--json"]).error(71, "E/FS_PERMISSIONS");
    let bundle = env.lanser(["diag", "--json"]).answer();
    assert_eq!(bundle["facts"]["diagnostics"]["not_checked"][0]["uri"], "closed.py");
    assert_eq!(
        (&bundle["status"], &bundle["facts"]["diagnostics"]["files_checked"]),
        (&json!("partial"), &json!(1))
    );
    let bundle = env.lanser(["refs", "py://open#f", "--json"]).answer();
    assert_eq!(bundle["facts"]["completeness"]["status"], "unknown");
    assert_eq!(bundle["facts"]["references"].as_array().unwrap().len(), 2);
}

/// Windows starts `.pyw` files without a terminal, and Unix scripts without a suffix. No server lists them as a part of a package.
#[test]
fn programs_without_a_terminal_are_searched_and_renamed() {
    for server in [TestEnv::pyright, TestEnv::ty] {
        let env = server(&Project::parse(
            "\
//- /m.py
class C:
    def run(self) -> int:
        return 1
//- /window.pyw
from m import C
C().run()
//- /bin/tool
#!/usr/bin/env python3
from m import C
C().run()
",
        ));
        let bundle = env.lanser(["refs", "py://m#C.run", "--json"]).answer();
        let found = bundle["facts"]["references"].as_array().unwrap();
        let found: Vec<_> = found.iter().map(|one| one["at"].as_str().unwrap()).collect();
        assert_eq!(found, ["bin/tool@L3:C5", "m.py@L2:C9", "window.pyw@L2:C5"], "{bundle}");
        assert_eq!(bundle["facts"]["completeness"]["status"], "complete", "{bundle}");
        env.lanser(["rename", "py://m#C.run", "go", "--apply", "--json"]).answer();
        assert_eq!(std::fs::read_to_string(env.file("window.pyw")).unwrap(), "from m import C\nC().go()\n");
        let script = "#!/usr/bin/env python3\nfrom m import C\nC().go()\n";
        assert_eq!(std::fs::read_to_string(env.file("bin/tool")).unwrap(), script);
    }
}
