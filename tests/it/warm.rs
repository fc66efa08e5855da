//! A warm session gives the same answers as a cold process after any change of the workspace, with the real Pyright. Each step
//! changes something and sends a request at once; `tools/differential` does the same at random on real code.

use serde_json::Value;

use crate::support::{Output, Project, TestEnv, portable};

/// A workspace with a session, and a virtual environment to install packages into.
fn env() -> TestEnv {
    let project = Project::parse(
        "//- /pkg/__init__.py\nfrom .shapes import area\n\
         //- /pkg/shapes.py\ndef area(side):\n    return side * side\n\n\ndef twice(side):\n    return area(side) + area(side)\n\
         //- /pkg/use.py\nfrom pkg import area\nfrom pkg.shapes import twice\n\nprint(area(2), twice(3))\n\
         //- /tests/test_shapes.py\nimport pkg.shapes\n\nassert pkg.shapes.area(1) == 1\n",
    );
    TestEnv::pyright_session(&project)
}

/// Compares the answers of the session and of a new process. Returns where the session's answer came from.
#[track_caller]
fn same(env: &TestEnv, what: &str, question: &[&str]) -> String {
    let ask =
        |more: &[&str]| -> Output { env.lanser(question.iter().chain(["--json"].iter()).chain(more.iter())) };
    let warm = ask(&[]).bundle();
    let cold = ask(&["--no-session", "--no-cache"]).bundle();
    assert_eq!(portable(&warm), portable(&cold), "{what}: {question:?}");
    warm["meta"]["volatile"]["served_from"].as_str().unwrap().to_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(output.text()).unwrap_or_else(|error| panic!("{error}: {output}"))
}

fn pid(env: &TestEnv) -> u64 {
    let status = json(&env.lanser(["session", "status", "--json"]));
    status[0]["pid"].as_u64().unwrap_or_else(|| panic!("no session: {status}"))
}

#[test]
fn every_change_is_seen_by_the_next_answer() {
    let env = env();
    let area: &[&str] = &["refs", "py://pkg.shapes#area"];
    assert_eq!(same(&env, "at first", area), "server");
    let session = pid(&env);
    assert_eq!(same(&env, "again", area), "memo");
    assert_eq!(same(&env, "another question", &["def", "pkg/use.py:4:7"]), "warm_server");

    env.write("pkg/use.py", "from pkg import area\n\n\nprint(area(2))\nprint(area)\n");
    assert_eq!(same(&env, "an edit", area), "warm_server");
    env.write("pkg/shapes.py", "# moved down\n\ndef area(side: int) -> int:\n    return side * side\n");
    assert_eq!(same(&env, "an edit of the definition", &["hover", "pkg/use.py:4:7"]), "warm_server");
    assert_eq!(same(&env, "what it broke", &["diag", "pkg/use.py"]), "server");
    env.write("pkg/shapes.py", "def area(side: str) -> int:\n    return len(side)\n");
    assert_eq!(same(&env, "an edit, seen from elsewhere", &["diag", "pkg/use.py"]), "warm_server");

    env.write("pkg/more.py", "from .shapes import area\narea('x')\n");
    same(&env, "a new file", area);
    std::fs::remove_file(env.file("pkg/use.py")).unwrap();
    same(&env, "a file less", area);
    std::fs::rename(env.file("pkg"), env.file("renamed")).unwrap();
    same(&env, "a renamed folder", &["symbols", "--query", "area"]);
    same(&env, "imports of it", &["diag", "tests/test_shapes.py"]);
    std::fs::rename(env.file("renamed"), env.file("pkg")).unwrap();
    same(&env, "and back", &["diag", "tests/test_shapes.py"]);

    env.write("pyrightconfig.json", r#"{"reportMissingImports": false, "exclude": ["tests"]}"#);
    same(&env, "configuration", area);
    env.write("tests/test_shapes.py", "import nowhere\n");
    same(&env, "configured diagnostics", &["diag", "tests/test_shapes.py"]);
    std::fs::remove_file(env.file("pyrightconfig.json")).unwrap();
    same(&env, "no configuration", &["diag", "tests/test_shapes.py"]);

    let text = std::fs::read(env.file("pkg/shapes.py")).unwrap();
    std::fs::write(env.file("pkg/shapes.py"), b"x = 1\n").unwrap();
    std::fs::write(env.file("pkg/shapes.py"), text).unwrap();
    same(&env, "changed and changed back", &["hover", "pkg/more.py:2:1"]);
    assert_eq!(pid(&env), session, "one session answered it all");
}

#[test]
fn an_installed_package_is_seen() {
    let mut env = env();
    let output = env.run("python3", ["-m", "venv", "--without-pip", "env"]);
    assert_eq!(output.code, Some(0), "{output}");
    env.set("VIRTUAL_ENV", env.file("env"));
    env.write("pkg/use.py", "import installed\nprint(installed.answer())\n");
    same(&env, "before", &["diag", "pkg/use.py"]);
    let lib = env.file("env/lib");
    let version = std::fs::read_dir(&lib).unwrap().next().unwrap().unwrap().file_name();
    let packages = lib.join(version).join("site-packages");
    std::fs::create_dir_all(packages.join("installed-1.dist-info")).unwrap();
    std::fs::write(packages.join("installed.py"), "def answer() -> int: return 42\n").unwrap();
    std::fs::write(packages.join("installed-1.dist-info/RECORD"), "installed.py,sha256=x,31\n").unwrap();
    same(&env, "installed", &["diag", "pkg/use.py"]);
    same(&env, "its definition", &["def", "pkg/use.py:2:17"]);
    // An editable install: its sources are outside of all other folders.
    let sources = env.path("sources");
    std::fs::create_dir_all(&sources).unwrap();
    std::fs::write(sources.join("editable.py"), "def f(a): return a\n").unwrap();
    std::fs::write(packages.join("editable.pth"), format!("{}\n", sources.display())).unwrap();
    env.write("pkg/use.py", "import editable\nprint(editable.f(1))\n");
    same(&env, "editable", &["hover", "pkg/use.py:2:16"]);
    std::fs::write(sources.join("editable.py"), "def f(a: int, b: int = 0) -> str: return ''\n").unwrap();
    same(&env, "edited there", &["hover", "pkg/use.py:2:16"]);
    // One from a repository: its sources are in the environment, and no record lists them.
    let sources = env.file("env/src");
    std::fs::create_dir_all(&sources).unwrap();
    std::fs::write(sources.join("inner.py"), "def f(a): return a\n").unwrap();
    std::fs::write(packages.join("inner.pth"), format!("{}\n", sources.display())).unwrap();
    env.write("pkg/use.py", "import inner\nprint(inner.f(1))\n");
    same(&env, "editable, in the environment", &["hover", "pkg/use.py:2:13"]);
    std::fs::write(sources.join("inner.py"), "def f(a: int) -> str: return ''\n").unwrap();
    same(&env, "edited in the environment", &["hover", "pkg/use.py:2:13"]);
}

#[test]
fn configured_sources_are_seen_in_any_folder() {
    let project = Project::parse(
        "//- /pyrightconfig.json\n{\"extraPaths\": [\".vendored\", \"node_modules/py\"]}\n\
         //- /.vendored/one.py\ndef f():\n    return 1\n\
         //- /node_modules/py/two.py\ndef g():\n    return 1\n\
         //- /a.py\nfrom one import f\nfrom two import g\nx = f()\ny = g()\n",
    );
    let env = TestEnv::pyright_session(&project);
    let questions: [&[&str]; 3] = [&["hover", "a.py:3:1"], &["hover", "a.py:4:1"], &["def", "a.py:3:5"]];
    for (turn, text) in ["return 1", "return 's'", "return b''"].into_iter().enumerate() {
        env.write(".vendored/one.py", format!("{}def f():\n    {text}\n", "\n".repeat(turn)));
        env.write("node_modules/py/two.py", format!("def g():\n    {text}\n"));
        for question in questions {
            same(&env, text, question);
            same_without_memo(&env, text, question);
        }
    }
}

#[test]
fn the_memo_is_shared_by_trusted_checkouts_of_the_same_content() {
    let one = env();
    let mut two = TestEnv::named("another/place");
    for path in ["pkg/__init__.py", "pkg/shapes.py", "pkg/use.py", "tests/test_shapes.py"] {
        two.write(path, std::fs::read(one.file(path)).unwrap());
    }
    two.set("LANSER_CACHE_DIR", one.path("test-cache"));
    let question = ["refs", "py://pkg.shapes#area", "--json", "--no-session", "--trust-workspace"];
    let first = one.lanser(question).bundle();
    let second = two.lanser(question).bundle();
    assert_eq!(first["meta"]["volatile"]["served_from"], "server");
    assert_eq!(second["meta"]["volatile"]["served_from"], "memo");
    assert_eq!(portable(&first), portable(&second));
    // With a damaged byte, the answer is computed again, and doctor reports it.
    let folder = one.path("test-cache/memo");
    let kept: Vec<_> = walk(&folder);
    assert_eq!(kept.len(), 1);
    let mut bytes = std::fs::read(&kept[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&kept[0], bytes).unwrap();
    let memo = || json(&one.lanser(["doctor", "--cache", "--json"]))["memo"].clone();
    assert_eq!(memo()["damaged"], 1);
    let third = two.lanser(question).bundle();
    assert_eq!(third["meta"]["volatile"]["served_from"], "server");
    assert_eq!(portable(&first), portable(&third));
    assert_eq!((memo()["damaged"].as_u64(), memo()["answers"].as_u64()), (Some(0), Some(1)));
    // A checkout that is not trusted may have what decides an answer and is not among the inputs.
    let untrusted = two.lanser(&question[..4]).bundle();
    assert_eq!(untrusted["meta"]["volatile"]["served_from"], "server");
    assert_eq!(portable(&first), portable(&untrusted));
}

/// The files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Pyright searches the source of a stub along the imports of the files it has read, up to a limit.
#[test]
fn files_read_by_the_server_do_not_change_where_a_library_is() {
    const MODULES: usize = 9;
    let names: Vec<String> = (0..MODULES).map(|number| format!("m{number}")).collect();
    let mut text = "//- /pkg/__init__.py\n".to_owned();
    for name in &names {
        text.extend(["//- /pkg/", name, ".py\nimport heapq\nimport math\nimport warnings\n"]);
        for other in names.iter().filter(|other| *other != name) {
            text.extend(["import pkg.", other, "\n"]);
        }
        text.push_str("warnings.warn('x')\nheapq.heappush([], 1)\n");
    }
    text.push_str(
        "//- /user.py\nimport math\nimport warnings\nfrom heapq import heappush\nfrom pkg.m0 import pkg\n\
         warnings.warn('x')\nheappush([], 1)\nmath.sqrt(len('x'))\n",
    );
    let env = TestEnv::pyright_session(&Project::parse(&text));
    for name in &names {
        // The server reads the file, and so learns its imports.
        let path = format!("pkg/{name}.py");
        env.lanser(["def", &format!("{path}:12:10")]).text();
        env.lanser(["def", &format!("{path}:13:7")]).text();
    }
    for place in ["user.py:5:10", "user.py:6:1", "user.py:7:6", "user.py:7:11", "user.py:1:8"] {
        same(&env, "after much reading", &["def", place]);
        same(&env, "after much reading", &["hover", place]);
    }
    let told = env.lanser(["hover", "user.py:6:1"]).to_string();
    assert!(told.contains("Push item onto heap"), "{told}");
    let told = env.lanser(["def", "user.py:6:1"]).to_string();
    assert!(told.contains("heapq.py"), "{told}");
}

/// The same without the memo.
#[track_caller]
fn same_without_memo(env: &TestEnv, what: &str, question: &[&str]) {
    let ask = |more: &[&str]| -> Value {
        let words = question.iter().chain(["--json", "--no-cache"].iter()).chain(more.iter());
        env.lanser(words).bundle()
    };
    let (warm, cold) = (ask(&[]), ask(&["--no-session"]));
    assert_eq!(portable(&warm), portable(&cold), "{what}: {question:?}");
}

#[test]
fn uses_of_a_library_need_a_fresh_server_and_others_do_not() {
    let project = Project::parse(
        "//- /pyrightconfig.json\n{}\n//- /a.py\nimport json\nprint(json.dumps(1))\ndef f(): return json.dumps(2)\nf()\n",
    );
    let env = TestEnv::pyright_session(&project);
    // For a name of a library, the server's answer depends on the files that it has read, unless it has read none.
    let (library, own) = (["refs", "a.py:2:12"], ["hover", "a.py:4:1"]);
    let ask = |words: [&str; 2]| env.lanser(words.into_iter().chain(["--json", "--no-cache"])).answer();
    let servers = || {
        let status = env.lanser(["session", "status", "--json"]);
        serde_json::from_str::<Value>(status.text()).unwrap()[0]["status"]["servers"].clone()
    };
    let hovered = ask(own);
    let before = servers();
    let used = ask(library);
    let after = servers();
    assert_ne!(after[0]["pid"], before[0]["pid"], "it needs one that was never asked anything");
    ask(own);
    assert_eq!(servers()[0]["pid"], after[0]["pid"]);
    for _ in 0..2 {
        assert_eq!(portable(&ask(own)), portable(&hovered));
        assert_eq!(portable(&ask(library)), portable(&used));
    }
    same_without_memo(&env, "a library's uses", &library);
    same_without_memo(&env, "a hover", &own);

    // Installed files are identified by the records of their distributions, the workspace's own files by content.
    env.write("b.py", "import json\njson.dumps(3)\n");
    same_without_memo(&env, "another file", &library);
}

#[test]
fn responses_about_a_changed_installed_file_are_not_reused() {
    let mut env = env();
    let output = env.run("python3", ["-m", "venv", "--without-pip", "env"]);
    assert_eq!(output.code, Some(0), "{output}");
    env.set("VIRTUAL_ENV", env.file("env"));
    let lib = env.file("env/lib");
    let version = std::fs::read_dir(&lib).unwrap().next().unwrap().unwrap().file_name();
    let loose = lib.join(version).join("site-packages/loose.py");
    std::fs::write(&loose, "def lf(): return 1\n").unwrap();
    env.write("pkg/use.py", "import loose\nprint(loose.lf())\n");
    for line in ["# more\n", "import json\n", ""] {
        for question in
            [["refs", "pkg/use.py:2:13"], ["refs", "pkg/use.py:2:13"], ["typedef", "pkg/use.py:2:13"]]
        {
            same_without_memo(&env, line, &question);
        }
        std::fs::write(&loose, format!("{line}def lf(): return 1\n")).unwrap();
    }
}

#[test]
fn configured_stubs_of_the_standard_library_are_seen() {
    let project = Project::parse(
        "//- /pyrightconfig.json\n{\"typeshedPath\": \".typeshed\"}\n\
         //- /.typeshed/stdlib/json/__init__.pyi\ndef dumps(obj: object) -> str: ...\n\
         //- /.typeshed/stdlib/VERSIONS\njson: 3.0-\n\
         //- /a.py\nimport json\nx = json.dumps(1)\n",
    );
    let env = TestEnv::pyright_session(&project);
    same_without_memo(&env, "before", &["hover", "a.py:2:1"]);
    env.write(".typeshed/stdlib/json/__init__.pyi", "def dumps(obj: object) -> bytes: ...\n");
    same_without_memo(&env, "edited", &["hover", "a.py:2:1"]);
    same(&env, "edited", &["hover", "a.py:2:1"]);
}

#[test]
fn responses_about_files_outside_the_inputs_are_not_reused() {
    let project = Project::parse(
        "//- /__init__.py\n\n//- /pyrightconfig.json\n{}\n//- /a.py\nfrom ..other import f\nk = f()\nprint(k)\n",
    );
    let env = TestEnv::pyright_session(&project);
    std::fs::write(env.path("__init__.py"), "").unwrap();
    std::fs::write(env.path("other.py"), "def f():\n    return 1\n").unwrap();
    let (uses, callers): (&[&str], &[&str]) = (&["refs", "a.py:2:5"], &["calls", "a.py:2:5", "--incoming"]);
    for _ in 0..2 {
        same_without_memo(&env, "at first", uses);
        same_without_memo(&env, "at first", callers);
    }
    std::fs::write(env.path("other.py"), "# one\n# two\ndef f():\n    return 's'\nf()\n").unwrap();
    same_without_memo(&env, "the file outside is another one", uses);
    same_without_memo(&env, "what that means here", &["hover", "a.py:2:1"]);
    std::fs::remove_file(env.path("other.py")).unwrap();
    same_without_memo(&env, "the file outside is gone", uses);
}

#[test]
fn requests_that_need_a_fresh_server_always_get_one() {
    let project = Project::parse("//- /a.py\nimport os\n\nos.getcwd()\nx = os.path.join('a', 'b')\n");
    let env = TestEnv::pyright_session(&project);
    for turn in ["first", "again", "and again"] {
        same_without_memo(&env, turn, &["refs", "a.py:3:4"]);
        same_without_memo(&env, turn, &["hover", "a.py:4:8"]);
    }
}

/// A process without a session presumes that the files are those of the last scan, and finds out afterwards.
#[test]
fn a_presumed_state_of_the_files_is_verified() {
    let env = TestEnv::ty(&Project::parse(
        "//- /pkg/__init__.py\n\n//- /pkg/a.py\ndef area(side: int): ...\n//- /pkg/b.py\nfrom .a import area\narea(1)\n\n\n",
    ));
    let mut limit = 100;
    let mut ask = |what: &str| {
        // Times that are older than this are trusted.
        std::thread::sleep(std::time::Duration::from_millis(2_100));
        // The memo has the answer to the first request, and none to the second.
        for question in ["100".to_owned(), limit.to_string()] {
            let question = ["refs", "py://pkg.a#area", "--json", "--limit", &question];
            let presumed = env.lanser(question).answer();
            let fresh = env.lanser(question.iter().chain(&["--no-cache"])).answer();
            assert_eq!(portable(&presumed), portable(&fresh), "{what}");
        }
        limit += 1;
    };
    ask("at first");
    ask("settled");
    env.write("pkg/b.py", "from .a import area\narea(1)\narea(2)\n");
    ask("an edit of another file");
    env.write("pkg/a.py", "\n\ndef area(side: int): ...\n");
    ask("an edit of the file itself");
    env.write("pkg/c.py", "from .a import area\n");
    ask("a new file");
    std::fs::remove_file(env.file("pkg/b.py")).unwrap();
    ask("a file less");
    std::fs::create_dir(env.file("pkg/d")).unwrap();
    ask("a new folder");
    env.write("pkg/d/e.py", "from pkg.a import area\narea(1)\n");
    ask("a file in it");
}
