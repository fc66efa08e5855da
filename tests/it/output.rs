//! Output for people, agents and pipes: the text of every command, its limits and continuation, colors, and silence.

use std::fmt::Write as _;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Behavior, FakeServer, LANSER, Output, Project, TestEnv};

/// Runs a shell command line in which `lanser` is the binary under test.
fn shell(env: &TestEnv, line: &str) -> Output {
    let folder = std::path::Path::new(LANSER).parent().unwrap();
    let line = format!("PATH=\"{}:$PATH\"; {line}", folder.display());
    env.run("/bin/sh", ["-c", line.as_str()])
}

#[test]
fn a_deleted_working_directory_is_reported() {
    let env = TestEnv::with(&Project::fixture("shop"));
    let gone = shell(&env, "mkdir gone; cd gone; rmdir ../gone; lanser session status --all");
    assert_eq!(gone.code, Some(2));
    let words = "error: cannot find the current folder (No such file or directory (os error 2)); change to an existing folder\n";
    assert_eq!(gone.stderr, words);
    let server = FakeServer::new(&env, &Behavior::good());
    let homeless = shell(
        &env,
        &format!(
            "TMPDIR=$PWD/missing lanser def src/shop/till.py:9:12 --server-command '{}'",
            server.command()
        ),
    );
    assert_eq!(homeless.code, Some(66));
    assert!(homeless.stderr.contains("cannot create a folder in "), "{}", homeless.stderr);
}

#[test]
fn locations_as_text() {
    let env = TestEnv::pyright_session(&Project::fixture("shop"));
    let text = |args: &[&str]| env.lanser(args).text().to_owned();
    assert_snapshot!(text(&["def", "src/shop/till.py:9:12"]), @"src/shop/legacy.py:1:5  def discount(amount, percent=10):");
    assert_snapshot!(text(&["decl", "src/shop/till.py:9:12"]), @"src/shop/legacy.pyi:1:5  def discount(amount: float, percent: float = 10) -> float: ...");
    assert_snapshot!(text(&["typedef", "src/shop/till.py:8:11"]), @"src/shop/items.py:24:7  class Book(Item):");
    assert_snapshot!(text(&["refs", "py://shop#price_of", "-v"]), @r#"
    src/shop/__init__.py:4:21  from .prices import price_of
    src/shop/__init__.py:6:29  __all__ = ["Book", "Item", "price_of"]
    src/shop/prices.py:4:5  def price_of(item: Item) -> float:
    src/shop/prices.py:9:16  return sum(price_of(item) for item in items)
    src/shop/till.py:4:25  from shop.prices import price_of, total
    src/shop/till.py:9:21  return discount(price_of(book), 5)
    src/shop/till.py:17:30  HANDLERS = {"price_of": shop.price_of}
    tests/test_prices.py:1:24  from shop import Book, price_of
    tests/test_prices.py:5:12  assert price_of(Book("x", 2.0)) == 2.0
    9 references, complete
    "#);
    assert_snapshot!(text(&["def", "src/shop/till.py:8:5"]), @r"
    server://dist/typeshed-fallback/stdlib/builtins.pyi:2076:5  def print(
    server://dist/typeshed-fallback/stdlib/builtins.pyi:2084:5  def print(
    ");
}

#[test]
fn other_answers_as_text() {
    let env = TestEnv::pyright_session(&Project::fixture("shop"));
    let text = |args: &[&str]| env.lanser(args).text().to_owned();
    assert_snapshot!(text(&["hover", "py://shop.items#Item.gross"]), @r"
    ```python
    (method) def gross(self: Self@Item) -> float
    ```
    ---
    The price with tax.
    ");
    assert_snapshot!(text(&["symbols", "src/shop/prices.py"]), @r"
    src/shop/prices.py:4:5  function price_of
    src/shop/prices.py:8:5  function total
    parameters and local variables: 2, shown with -v
    ");
    assert_snapshot!(text(&["symbols", "src/shop/prices.py", "-v"]), @r"
    src/shop/prices.py:4:5  function price_of
    src/shop/prices.py:4:14  variable price_of.item
    src/shop/prices.py:8:5  function total
    src/shop/prices.py:8:11  variable total.items
    ");
    assert_snapshot!(text(&["symbols", "--query", "zzzz"]), @"no symbols");
    assert_snapshot!(text(&["calls", "py://shop.items#Item.gross", "--incoming", "--depth", "2"]), @r#"
    src/shop/items.py:21:37  in Item.label: return f"{self.name}: {self.gross():.2f}"
    src/shop/prices.py:5:17  in price_of: return item.gross()
    src/shop/prices.py:9:16  in total: return sum(price_of(item) for item in items)  [depth 2: calls price_of]
    src/shop/till.py:8:16  in pay: print(book.label)  [depth 2: calls Item.label]
    src/shop/till.py:9:21  in pay: return discount(price_of(book), 5)  [depth 2: calls price_of]
    tests/test_prices.py:5:12  in test_price_of_a_book: assert price_of(Book("x", 2.0)) == 2.0  [depth 2: calls price_of]
    src/shop/items.py:25:9  def gross(self) -> float:  [override in Book]
    src/shop/till.py:17:30  HANDLERS = {"price_of": shop.price_of}  [unresolved: used as a value, which may be called]
    6 callers, 1 override, 1 unresolved (used as a value, which may be called): not complete
    "#);
    assert_snapshot!(text(&["calls", "py://shop.till#bill", "--incoming"]), @"0 callers, complete");
    assert_snapshot!(text(&["diag"]), @r#"
    src/shop/till.py:13:23  error: Type "float" is not assignable to declared type "str" (reportAssignmentType)
        "float" is not assignable to "str"
        sum_of_all: str = total([find(1), find("two")])
    1 error, 0 warnings in 8 files checked
    "#);
}

#[test]
fn commands_without_a_server_as_text() {
    let env = TestEnv::with(&Project::fixture("shop"));
    assert_snapshot!(env.lanser(["locate", "py://shop#Book.label:sig"]).text(), @r"
    src/shop/items.py@R(20,5->20,28)  def label(self) -> str:
    property shop.items:Item.label
      import of shop.items at src/shop/__init__.py:3:20
      inherited of shop.items:Item at src/shop/items.py:24:7
    ");
    assert_snapshot!(env.lanser(["locate", "py://shop#prise_of"]).failure(3), @r"
    error: E/NOT_FOUND: py://shop#prise_of: module shop has no prise_of
    did you mean:
      py://shop#price_of
    hint: use one of these, or search with `lanser symbols --query NAME`
    ");
    assert_snapshot!(env.lanser(["locate", "src/shop/items.py@Lx"]).failure(2), @r#"
    error: E/BAD_SELECTOR_SYNTAX: the selector "src/shop/items.py@Lx" cannot be parsed: expected a number from 1
      src/shop/items.py@Lx
                         ^
    hint: `lanser help locate` shows the forms of a selector
    "#);
    assert!(
        env.lanser(["locate", "src/shop/item.py:1:1"])
            .failure(3)
            .contains("did you mean:\n  src/shop/items.py@L1:C1\n")
    );
    assert!(
        env.lanser(["symbols", "src/shop/itmes.py"])
            .failure(3)
            .contains("did you mean:\n  src/shop/items.py\n")
    );
    assert!(
        env.lanser(["refs", "src/shop/items.py"])
            .failure(2)
            .contains("hint: `lanser symbols src/shop/items.py` lists")
    );
    let mut env = env;
    env.set("LANSER_SERVER", "ty");
    assert!(env.lanser(["refs"]).failure(2).contains("Usage: lanser refs <SELECTOR>\n"));
    let unknown = env.lanser(["refs", "shop.Book", "--limits"]);
    assert!(unknown.failure(2).ends_with("hint: `lanser help refs` describes the arguments\n"), "{unknown}");
    assert!(!unknown.stderr.contains("as a value"), "{unknown}");
    assert!(env.lanser(["hovr", "x"]).failure(2).contains("'hover'"));
}

/// A rename that is refused has its reasons and hint within the same budget as its diff.
#[test]
fn a_long_refusal_keeps_its_hint() {
    let uses = "x.run()\n".repeat(60);
    let env = TestEnv::ty(&Project::parse(&format!(
        "//- /a.py\nclass A:\n    def run(self): ...\ndef go(a: A):\n    a.run()\n//- /b.py\nimport c\nx = c.any()\n{uses}//- /text.md\nrun\n"
    )));
    let refused = env.lanser(["rename", "a.A.run", "walk"]);
    let lines = refused.stdout.lines().count() + refused.stderr.lines().count();
    assert!(refused.stderr.contains("hint: ") && lines <= 40, "{lines}: {refused}");
    // Nothing of a text is a Python name.
    let text = env.lanser(["hover", "text.md:1"]);
    assert!(text.failure(2).contains("text.md is not a Python file"), "{text}");
    let listed = env.lanser(["rename", "a.A.run", "walk", "--include", "a.py:1:1"]);
    assert!(listed.failure(2).contains("b.py@L3:C3, b.py@L4:C3"), "{listed}");
    assert!(listed.stderr.contains(" more, which `lanser refs` lists"), "{listed}");
}

/// An answer about a part of a repository says so, and the commands that it proposes are about that part.
#[test]
fn a_part_of_a_repository_is_named() {
    let env = TestEnv::ty(&Project::parse(
        "//- /a/pyproject.toml\n//- /a/m.py\ndef f(): ...\n//- /b/u.py\nfrom m import f\nf()\n",
    ));
    assert_eq!(env.run("git", ["init", "-q"]).code, Some(0));
    let part = env.file("a");
    let inside = |args: &[&str]| {
        let mut command = env.command(args);
        command.current_dir(&part);
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(inside(&["refs", "m.f"]).ends_with("1 reference, complete in a\n"));
    assert!(inside(&["rename", "m.f", "g"]).contains("\nchecks in a: "));
    assert!(inside(&["refs", "m.f", "-C", "."]).ends_with("1 reference, complete in a\n"));
    let applied = inside(&["rename", "m.f", "g", "-C", ".", "--allow-dirty", "--apply"]);
    let undo = applied.lines().find_map(|line| line.strip_prefix("to undo: lanser ")).unwrap();
    assert!(undo.starts_with("-C . undo "), "{undo}");
    assert!(inside(&undo.split(' ').collect::<Vec<_>>()).contains("undid"));
}

/// `--preview N` prints N lines from the location on.
#[test]
fn a_preview_has_the_requested_number_of_lines() {
    let env = TestEnv::with(&Project::fixture("shop"));
    let shown = env.lanser(["locate", "py://shop#Item", "--preview", "3"]);
    assert!(shown.text().contains("Anything that has a price"), "{shown}");
}

/// A file with more references than the default limit, in lines so long that even forty exceed the byte limit.
fn many(width: usize) -> Project {
    let mut text = "def f(n): return n\n".to_owned();
    for number in 0..120 {
        writeln!(text, "f({number})  # {}", "word ".repeat(width / 5)).unwrap();
    }
    Project::default().and("many.py", text)
}

#[test]
fn forty_lines_and_the_command_for_the_next_page() {
    for width in [20, 200] {
        let env = TestEnv::pyright_session(&many(width));
        let whole = env.lanser(["refs", "py://many#f", "--limit", "1000"]);
        let expected: Vec<&str> = whole.text().lines().filter(|line| line.starts_with("many.py:")).collect();
        assert_eq!(expected.len(), 121);
        let mut found = Vec::new();
        let mut line = "lanser refs py://many#f".to_owned();
        for page in 1.. {
            let output = shell(&env, &line);
            let text = output.text();
            assert!(text.lines().count() <= 40 && text.len() <= 4000, "page {page}:\n{text}");
            found.extend(text.lines().filter(|line| line.starts_with("many.py:")).map(str::to_owned));
            let more = text.lines().find_map(|line| line.split_once(" more: "));
            let Some((left, next)) = more else { break };
            assert_eq!(left, (121 - found.len()).to_string(), "page {page}");
            line = next.to_owned();
            assert!(page < 20, "it never ends: {line}");
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn pages_of_json() {
    let env = TestEnv::pyright_session(&many(20));
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..3 {
        let mut args = vec!["refs", "py://many#f", "--json", "--limit", "50"];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let bundle = env.lanser(args).answer();
        found.extend(
            bundle["facts"]["references"].as_array().unwrap().iter().map(|item| item["range"][0].clone()),
        );
        let limits = &bundle["meta"]["limits"];
        assert_eq!(limits["total"], 121);
        assert_eq!(limits["truncated"], limits["cursor"].is_string(), "{limits}");
        assert_eq!(bundle["status"] == "partial", limits["truncated"] == true);
        cursor = limits["cursor"].as_str().map(str::to_owned);
    }
    assert_eq!((found, cursor), ((0..121).map(Value::from).collect(), None));
    // A cursor into a list that has changed is refused.
    let bundle = env.lanser(["refs", "py://many#f", "--json", "--limit", "50"]).answer();
    let cursor = bundle["meta"]["limits"]["cursor"].as_str().unwrap();
    env.write("more.py", "from many import f\nf(1)\n");
    std::fs::write(env.file("many.py"), "# moved\ndef f(n): return n\n".to_owned() + &"f(1)\n".repeat(90))
        .unwrap();
    env.lanser(["refs", "py://many#f", "--json", "--cursor", cursor]).error(74, "E/CONTENT_MODIFIED");
}

#[test]
fn a_long_hover_is_truncated_and_continued() {
    let lines = 100;
    let words: String = (0..lines).map(|number| format!("line {number}\n")).collect();
    let env = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\n"));
    let contents = json!({"contents": {"kind": "markdown", "value": words}});
    let server = FakeServer::new(&env, &Behavior::good().answers("textDocument/hover", contents));
    let output = shell(&env, &format!("lanser hover m.py:1:5 --server-command '{}'", server.command()));
    assert_eq!(output.text().lines().count(), 40);
    let next = output.text().lines().last().unwrap().split_once(" more lines: ").unwrap().1.to_owned();
    assert_eq!(shell(&env, &next).text(), words);
}

#[test]
fn fields() {
    let env = TestEnv::with(&Project::fixture("shop"));
    let output =
        env.lanser(["locate", "py://shop#Book", "--fields", "status,resolution.resolved.at,facts.hover"]);
    let parts: Value = serde_json::from_str(output.text()).unwrap();
    assert_eq!(
        parts,
        json!({"status": "ok", "resolution": {"resolved": {"at": "src/shop/items.py@L24:C7"}}})
    );
    let output = env.lanser(["locate", "py://shop#Buch", "--fields", "error.code"]);
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.as_str()),
        (Some(3), "{\"error\":{\"code\":3}}\n", "")
    );
    // Unknown fields are refused before a server starts.
    let refused = env.lanser(["locate", "py://shop#Book", "--fields", "resolution.at"]);
    let told: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!((refused.code, &told["status"]), (Some(2), &"error".into()), "{refused}");
    let message = told["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "--fields resolution.at: no such field; `resolution` has ambiguous, candidates, disambiguation,"
        ),
        "{message}"
    );
    let doctor = env.lanser(["doctor", "--fields", "nothing"]);
    assert!(
        doctor.failure(2).starts_with("error: E/USAGE: --fields nothing: no such field; the answer has "),
        "{doctor}"
    );
}

#[test]
fn a_bare_name_is_looked_up_in_the_workspace() {
    let env = TestEnv::with(&Project::fixture("shop"));
    let said = env.lanser(["locate", "Book"]);
    assert!(said.text().ends_with("class shop.items:Book\n"), "{said}");
    let said = env.lanser(["locate", "Bok"]);
    assert!(said.failure(3).contains("did you mean:\n  py://shop.items#Book\n"), "{said}");
}

#[test]
fn a_printed_location_is_a_selector() {
    let env = TestEnv::pyright_session(&Project::fixture("shop"));
    let said = env.lanser(["refs", "Book"]);
    let places: Vec<&str> = said.text().lines().filter_map(|line| line.split("  ").next()).collect();
    let places: Vec<&&str> = places.iter().filter(|place| place.contains(".py:")).collect();
    assert!(places.len() > 2, "{said}");
    for place in places {
        let at = |selector: &str| {
            env.lanser(["locate", selector, "--json"]).answer()["resolution"]["resolved"]["at"].clone()
        };
        let canonical = at(place);
        let (line, _) = place.rsplit_once(':').unwrap();
        // As it is, as linters and `grep` print it, and as bundles do.
        for selector in [format!("{place}:"), format!("./{place}"), canonical.as_str().unwrap().to_owned()] {
            assert_eq!(at(&selector), canonical, "{selector}");
        }
        let number = |at: &str| at.split_once("@L").unwrap().1.split(':').next().unwrap().to_owned();
        for selector in [line.to_owned(), format!("{line}:")] {
            let found = env.lanser(["locate", &selector, "--json"]).answer();
            let found = &found["resolution"]["resolved"];
            let start = found["range"][0].as_u64().unwrap() + 1;
            assert_eq!(start.to_string(), number(canonical.as_str().unwrap()), "{selector}: {found}");
        }
    }
}

#[test]
fn absolute_paths_are_printed_on_request_and_are_not_hashed() {
    let mut env = TestEnv::pyright_session(&Project::fixture("shop"));
    let args = ["def", "builtins.str.upper", "--json"];
    let plain = env.lanser(args).answer();
    let absolute = env.lanser(args.iter().chain(&["--absolute"])).answer();
    assert_eq!(plain["bundleId"], absolute["bundleId"]);
    assert_eq!(plain["meta"]["volatile"]["absolute"], Value::Null);
    let paths = absolute["meta"]["volatile"]["absolute"].as_object().unwrap();
    let uri = absolute["facts"]["definitions"][0]["uri"].as_str().unwrap();
    assert!(uri.contains("://"), "{uri}");
    for (uri, path) in paths {
        assert!(std::fs::read_to_string(path.as_str().unwrap()).is_ok(), "{uri}: {path}");
    }
    let path = paths[uri].as_str().unwrap();
    let text = env.lanser(["def", "builtins.str.upper", "--absolute"]);
    assert!(text.text().starts_with(&format!("{path}:")), "{text}");
    // What is printed is a selector for the same place.
    let place = text.text().split("  ").next().unwrap().to_owned();
    let again = env.lanser(["locate", &place, "--json"]).answer();
    assert_eq!(again["resolution"]["resolved"]["uri"], uri);
    env.set("LANSER_ABSOLUTE", "1");
    let own = env.lanser(["locate", "Book"]);
    assert!(own.text().starts_with(env.file("src/shop/items.py").to_str().unwrap()), "{own}");
}

#[test]
fn the_last_line_says_how_complete_the_answer_is() {
    let env = TestEnv::pyright_session(&Project::parse(
        "//- /m.py\nclass C:\n    def go(self): pass\ndef a(c: C):\n    c.go()\ndef b(o):\n    o.go()\n",
    ));
    let last = |args: &[&str]| env.lanser(args).text().lines().last().unwrap().to_owned();
    let incomplete = "1 unresolved (receiver type unknown): not complete";
    assert_eq!(last(&["calls", "py://m#C.go", "--incoming"]), format!("1 caller, {incomplete}"));
    assert_eq!(last(&["refs", "py://m#C.go"]), format!("2 references, {incomplete}"));
    assert_eq!(last(&["refs", "py://m#C.go", "--limit", "1"]), format!("2 references, {incomplete}"));
    assert_eq!(last(&["calls", "py://m#a", "--incoming"]), "0 callers, complete");
}

#[test]
fn a_limit_counts_lines() {
    let env = TestEnv::pyright_session(&Project::parse(
        "//- /m.py\ndef f(): pass\ndef a():\n    f()\n    f(); f()\ndef b():\n    f()\ndef c():\n    f()\n",
    ));
    let said = env.lanser(["calls", "py://m#f", "--incoming", "--limit", "2"]);
    let lines: Vec<&str> = said.text().lines().collect();
    assert_eq!(lines[..2], ["m.py:3:5  in a: f()  and at 4:5, 4:10", "m.py:6:5  in b: f()"], "{said}");
    assert!(lines[2].starts_with("1 more: lanser calls "), "{said}");
}

#[test]
fn colors_are_for_terminals() {
    let mut env = TestEnv::with(&Project::fixture("shop"));
    let colored = |env: &TestEnv| {
        let output = env.lanser(["locate", "py://shop#Book"]);
        let error = env.lanser(["locate", "py://shop#Buch"]);
        [output.text().contains('\u{1b}'), error.failure(3).contains('\u{1b}')]
    };
    assert_eq!(colored(&env), [false, false], "in a pipe");
    env.set("TERM", "xterm-256color").set("CLICOLOR_FORCE", "1");
    assert_eq!(colored(&env), [true, true], "asked for");
    env.set("NO_COLOR", "1");
    assert_eq!(colored(&env), [false, false], "asked not to");
    let json = env.lanser(["locate", "py://shop#Book", "--json"]);
    assert!(!json.stdout.contains('\u{1b}'));
}

/// The reader closes the pipe before the first byte is written.
#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let env = TestEnv::with(&Project::fixture("shop"));
    for args in [
        "locate py://shop#Book",
        "locate py://shop#Book --json",
        "locate py://shop#Book --fields status",
        "completions bash",
        "schema commands",
        "server list",
        "doctor --offline",
        "help",
    ] {
        let output = shell(&env, &format!("{{ sleep 0.2; lanser {args}; echo \"code $?\" >&2; }} | :"));
        let doctor_without_server = args.starts_with("doctor") && output.stderr == "code 66\n";
        assert!(output.stderr == "code 0\n" || doctor_without_server, "{args}: {output}");
    }
    let output = shell(&env, "lanser completions zsh | head -1");
    assert_eq!(output.text(), "#compdef lanser\n");
}

#[test]
fn completions_and_man_pages() {
    let env = TestEnv::new();
    for (shell, word) in
        [("bash", "complete -F _lanser"), ("zsh", "#compdef lanser"), ("fish", "complete -c lanser")]
    {
        let script = env.lanser(["completions", shell]);
        assert!(script.text().contains(word) && script.stdout.contains("index-io"), "{shell}");
    }
    assert_eq!(env.lanser(["completions", "--man", "man/man1"]).text(), "");
    let mut pages: Vec<String> = std::fs::read_dir(env.file("man/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    for page in ["lanser.1", "lanser-refs.1", "lanser-schema-validate.1", "lanser-server-install.1"] {
        assert!(pages.contains(&page.to_owned()), "{pages:?}");
    }
    let page = std::fs::read_to_string(env.file("man/man1/lanser-refs.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("exclude\\-declaration"), "{page}");
    assert!(env.lanser(["completions"]).failure(2).contains("error: "));
}

#[test]
fn the_version_and_the_help() {
    let env = TestEnv::new();
    assert_eq!(env.lanser(["--version"]).text(), format!("lanser {}\n", env!("CARGO_PKG_VERSION")));
    let help = env.lanser(["help"]);
    assert!(
        help.text().contains("Exit codes, which `lanser schema commands` prints as JSON:\n    0  success\n"),
        "{help}"
    );
    // Without arguments the help is shown, and the run fails.
    assert!(env.lanser([""; 0]).failure(2).contains("Usage: lanser"));
}

#[test]
fn settings_and_their_sources() {
    let mut env = TestEnv::pyright_session(&Project::fixture("shop"));
    env.write("lanser.toml", "timeout = 5\nindex-io = 'utf-8'\n");
    env.set("LANSER_TIMEOUT", "7");
    let report = |args: &[&str]| -> Value {
        let output = env.lanser(["doctor", "--json"].iter().chain(args));
        serde_json::from_str(output.text()).unwrap()
    };
    let found = report(&["--scope", "configured"]);
    assert_eq!(found["settings"]["timeout"], json!({"value": "7", "origin": "environment"}));
    assert_eq!(found["settings"]["scope"], json!({"value": "configured", "origin": "flag"}));
    let index_io = &found["settings"]["index-io"];
    assert_eq!(index_io["value"], "utf-8");
    assert!(index_io["origin"].as_str().unwrap().ends_with("/lanser.toml"), "{index_io}");
    assert_eq!(found["server"]["version"], "1.1.414");
    assert_eq!(
        found["supported"],
        json!(["pyright 1.1.406", "pyright 1.1.407", "pyright 1.1.414 (default)"])
    );
    assert_eq!(report(&["--timeout", "9"])["settings"]["timeout"], json!({"value": "9", "origin": "flag"}));
    env.set("LANSER_CACHE_DIR", env.path("nothing"));
    let output = env.lanser(["doctor"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(66), ""), "{output}");
    assert!(output.stdout.contains("lanser server install pyright"), "{output}");
}
