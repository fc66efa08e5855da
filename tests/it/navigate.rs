//! Navigation requests on `fixtures/projects/shop` with the real Pyright and basedpyright: every command, every selector form,
//! every unit of columns, and the completeness of answers.

use serde_json::{Value, json};

use crate::support::{Project, TestEnv};

fn shop() -> TestEnv {
    TestEnv::pyright_session(&Project::fixture("shop"))
}

/// The locations of an answer.
#[track_caller]
fn places(env: &TestEnv, args: &[&str]) -> Vec<String> {
    let bundle = env.lanser(args.iter().chain([&"--json"])).answer();
    let facts = bundle["facts"].as_object().unwrap();
    let names = ["definitions", "declarations", "type_definitions", "references", "symbols"];
    let list = names.iter().find_map(|name| facts.get(*name)).unwrap_or_else(|| panic!("{bundle}"));
    list.as_array().unwrap().iter().map(|item| item["at"].as_str().unwrap().to_owned()).collect()
}

/// The location of a selector, resolved without a server.
#[track_caller]
fn located(env: &TestEnv, selector: &str) -> String {
    let bundle = env.lanser(["locate", selector, "--json"]).answer();
    bundle["resolution"]["resolved"]["at"].as_str().unwrap().to_owned()
}

/// Every use of `price_of`, including one in `tests`, which the server's configuration excludes.
const USES_OF_PRICE_OF: [&str; 9] = [
    "src/shop/__init__.py@L4:C21",
    "src/shop/__init__.py@L6:C29",
    "src/shop/prices.py@L4:C5",
    "src/shop/prices.py@L9:C16",
    "src/shop/till.py@L4:C25",
    "src/shop/till.py@L9:C21",
    "src/shop/till.py@L17:C30",
    "tests/test_prices.py@L1:C24",
    "tests/test_prices.py@L5:C12",
];

#[test]
fn one_definition_from_every_form_of_selector() {
    let env = shop();
    let forms = [
        "src/shop/till.py:9:21",
        "src/shop/till.py:9:29",
        "src/shop/till.py@L9:C23",
        "src/shop/till.py@R(9,21->9,29)",
        "py://shop#price_of",
        "py://shop.prices#price_of:body",
        r#"{"kind":"cursor","uri":"src/shop/till.py","line":9,"col":21}"#,
        r#"{"kind":"range","uri":"src/shop/till.py","start":[9,21],"end":[9,29],"indexing":"utf-8"}"#,
        r#"{"kind":"symbol","qualname":"shop.till:price_of"}"#,
    ];
    // Each form is resolved without a server; one of each kind is sent to the server.
    let name = located(&env, "src/shop/till.py:9:21");
    for form in [forms[1], forms[2], forms[3], forms[6]] {
        let resolved = env.lanser(["locate", form, "--json"]).answer()["resolution"]["resolved"].clone();
        assert_eq!(
            (&resolved["uri"], &resolved["range"][0]),
            (&json!("src/shop/till.py"), &json!(8)),
            "{form}"
        );
    }
    assert_eq!(name, "src/shop/till.py@L9:C21");
    for form in [forms[1], forms[3], forms[4], forms[7], forms[8]] {
        assert_eq!(places(&env, &["def", form]), ["src/shop/prices.py@L4:C5"], "{form}");
    }
    for form in [forms[2], forms[6]] {
        let output = env.lanser_with_input(["locate", "-", "--json"], format!("{form}\n"));
        let bundle = output.answer();
        assert_eq!(bundle["resolution"]["resolved"]["uri"], "src/shop/till.py", "{form}");
    }
}

#[test]
fn symbolic_selectors_follow_python_s_rules() {
    let env = shop();
    for (selector, at) in [
        // Through a re-export, through a base class, a property, overloads and their implementation.
        ("py://shop#Book", "src/shop/items.py@L24:C7"),
        ("py://shop#Book.label", "src/shop/items.py@L20:C9"),
        ("py://shop.items#Book.gross", "src/shop/items.py@L25:C9"),
        ("py://shop.items#find?overload=0", "src/shop/items.py@L30:C5"),
        ("py://shop.items#find?overload=1", "src/shop/items.py@L32:C5"),
        ("py://shop.items#find", "src/shop/items.py@L33:C5"),
        ("py://shop.items#Item.name", "src/shop/items.py@L12:C14"),
        ("py://shop.items#TAX", "src/shop/items.py@L5:C1"),
        ("py://shop.legacy#discount", "src/shop/legacy.py@L1:C5"),
        ("py://shop.items#Item.label:sig", "src/shop/items.py@R(20,5->20,28)"),
        ("py://shop.items#Item.gross:doc", "src/shop/items.py@R(16,9->16,34)"),
        ("py://shop.items#Book.gross:body", "src/shop/items.py@R(26,9->26,24)"),
    ] {
        assert_eq!(located(&env, selector), at, "{selector}");
    }
    let bundle = env.lanser(["locate", "py://shop#Book.label", "--json"]).answer();
    let steps: Vec<_> = bundle["resolution"]["resolved"]["evidence"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hop| format!("{} of {} at {}", hop["step"], hop["to"], hop["at"]).replace('"', ""))
        .collect();
    assert_eq!(
        steps,
        [
            "import of shop.items at src/shop/__init__.py@L3:C20",
            "inherited of shop.items:Item at src/shop/items.py@L24:C7",
        ]
    );
    assert_eq!(bundle["environment"]["tool"], Value::Null, "no server was asked");
}

#[test]
fn stubs_and_sources() {
    let env = shop();
    let call = "src/shop/till.py:9:12";
    assert_eq!(places(&env, &["def", call]), ["src/shop/legacy.py@L1:C5"]);
    assert_eq!(places(&env, &["decl", call]), ["src/shop/legacy.pyi@L1:C5"]);
    assert_eq!(places(&env, &["typedef", "src/shop/till.py:8:11"]), ["src/shop/items.py@L24:C7"]);
    let uses = [
        "src/shop/legacy.py@L1:C5",
        "src/shop/legacy.pyi@L1:C5",
        "src/shop/till.py@L3:C25",
        "src/shop/till.py@L9:C12",
    ];
    for selector in ["py://shop.legacy#discount", call, "src/shop/legacy.pyi:1:5"] {
        assert_eq!(places(&env, &["refs", selector]), uses, "{selector}");
    }
}

#[test]
fn references_are_complete_whatever_the_configuration_includes() {
    let env = shop();
    for selector in ["py://shop#price_of", "tests/test_prices.py:5:12"] {
        let bundle = env.lanser(["refs", selector, "--json"]).answer();
        let at: Vec<_> =
            bundle["facts"]["references"].as_array().unwrap().iter().map(|item| &item["at"]).collect();
        assert_eq!(at, USES_OF_PRICE_OF, "{selector}");
        assert_eq!(bundle["status"], "ok");
        assert_eq!(
            bundle["facts"]["completeness"],
            json!({
                "status": "complete", "scope": "workspace", "files_with_name": 4, "files_searched": 4,
                "explained": {"reference": 9, "override": 0, "other": 0, "text": 1},
                "unresolved": {"count": 0, "items": []},
            })
        );
    }
    let uses = places(&env, &["refs", "py://shop#price_of", "--exclude-declaration"]);
    assert_eq!(uses.len(), USES_OF_PRICE_OF.len() - 1);
    assert!(!uses.contains(&"src/shop/prices.py@L4:C5".to_owned()));
}

#[test]
fn references_within_the_configuration_are_reported_as_incomplete() {
    let env = shop();
    let bundle = env.lanser(["refs", "py://shop#price_of", "--scope", "configured", "--json"]).answer();
    let at: Vec<_> =
        bundle["facts"]["references"].as_array().unwrap().iter().map(|item| &item["at"]).collect();
    assert_eq!(at, USES_OF_PRICE_OF[..7]);
    let verdict = &bundle["facts"]["completeness"];
    assert_eq!((&bundle["status"], &verdict["status"]), (&json!("partial"), &json!("unknown")));
    assert_eq!((&verdict["scope"], &verdict["files_with_name"]), (&json!("configured"), &json!(4)));
    assert!(verdict["reason"].is_string());
}

#[test]
fn an_override_is_another_symbol() {
    let env = shop();
    let uses = ["src/shop/items.py@L15:C9", "src/shop/items.py@L21:C37", "src/shop/prices.py@L5:C17"];
    assert_eq!(places(&env, &["refs", "py://shop.items#Item.gross"]), uses);
    // The receiver of a call on an `Item` may be a `Book`.
    let own = "src/shop/items.py@L25:C9";
    let through_the_base = ["src/shop/items.py@L21:C37", own, "src/shop/prices.py@L5:C17"];
    let bundle = env.lanser(["refs", "py://shop.items#Book.gross", "--json"]).answer();
    let references = bundle["facts"]["references"].as_array().unwrap();
    let at: Vec<_> = references.iter().map(|item| item["at"].as_str().unwrap()).collect();
    assert_eq!(at, through_the_base);
    for reference in references.iter().filter(|reference| reference["at"] != own) {
        assert_eq!(
            (&reference["provenance"], &reference["via"]),
            (&json!("dispatch"), &json!("Item.gross")),
            "{reference}"
        );
    }
    let family = &bundle["facts"]["overrides"];
    assert_eq!(family.as_array().unwrap().len(), 1);
    assert_eq!(
        (&family[0]["at"], &family[0]["class"], &family[0]["relation"]),
        (&json!(uses[0]), &json!("Item"), &json!("base"))
    );
}

#[test]
fn hovers() {
    let env = shop();
    for (selector, words) in [
        (
            "py://shop.items#Item.gross",
            "(method) def gross(self: Self@Item) -> float\n```\n---\nThe price with tax.",
        ),
        ("py://shop#Book.label", "(property) label: (self: Self@Item) -> str"),
        ("src/shop/till.py:13:30", "(function) def find(key: int) -> Item"),
        ("src/shop/till.py:13:39", "(function) def find(key: str) -> Book"),
    ] {
        let bundle = env.lanser(["hover", selector, "--json"]).answer();
        let said = bundle["facts"]["hover"]["markdown"].as_str().unwrap();
        assert!(said.contains(words), "{selector}: {said}");
    }
}

#[test]
fn outlines_and_searches() {
    let env = shop();
    let names = |args: &[&str]| -> Vec<String> {
        let bundle = env.lanser(args.iter().chain([&"--json"])).answer();
        let symbols = bundle["facts"]["symbols"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().map(|text| format!("{text}.")).unwrap_or_default();
        symbols
            .filter(|symbol| symbol["symbol_kind"] != "variable")
            .map(|symbol| {
                format!(
                    "{} {}{}",
                    symbol["symbol_kind"].as_str().unwrap(),
                    text(&symbol["container"]),
                    symbol["name"].as_str().unwrap()
                )
            })
            .collect()
    };
    let outline = [
        "constant TAX",
        "class Item",
        "method Item.__init__",
        "method Item.gross",
        "method Item.label",
        "class Book",
        "method Book.gross",
        "function find",
    ];
    assert_eq!(names(&["symbols", "src/shop/items.py"]), outline);
    assert_eq!(names(&["symbols", "py://shop#Book"]), outline[5..7], "a part of a file");
    assert_eq!(names(&["symbols", "tests"]), ["function test_price_of_a_book"]);
}

/// Pyright's search skips documents that its configuration excludes, even while they are open.
#[test]
fn a_search_finds_names_in_excluded_files() {
    let env = shop();
    let found = places(&env, &["symbols", "--query", "price_of"]);
    assert_eq!(found, ["src/shop/prices.py@L4:C5", "tests/test_prices.py@L4:C5"]);
    let found = places(&env, &["symbols", "--query", "price_of", "--scope", "configured"]);
    assert_eq!(found, ["src/shop/prices.py@L4:C5"]);
}

#[test]
fn calls_in_both_directions() {
    let env = shop();
    let calls = |args: &[&str]| -> Vec<(i64, String, String)> {
        let bundle = env.lanser(args.iter().chain([&"--json"])).answer();
        let calls = bundle["facts"]["calls"].as_array().unwrap().iter();
        let end = |value: &Value| value["name"].as_str().unwrap().to_owned();
        let mut calls: Vec<_> = calls
            .map(|call| (call["depth"].as_i64().unwrap(), end(&call["caller"]), end(&call["callee"])))
            .collect();
        calls.sort();
        calls
    };
    let of = |list: &[(i64, &str, &str)]| -> Vec<_> {
        list.iter().map(|(depth, from, to)| (*depth, (*from).to_owned(), (*to).to_owned())).collect()
    };
    let price_of = ["pay", "test_price_of_a_book", "total"];
    assert_eq!(
        calls(&["calls", "py://shop#price_of", "--incoming"]),
        of(&price_of.map(|caller| (1, caller, "price_of")))
    );
    let two_steps = [
        (1, "label", "gross"),
        (1, "price_of", "gross"),
        (2, "pay", "label"),
        (2, "pay", "price_of"),
        (2, "test_price_of_a_book", "price_of"),
        (2, "total", "price_of"),
    ];
    assert_eq!(calls(&["calls", "py://shop.items#Item.gross", "--incoming", "--depth", "2"]), of(&two_steps));
    let outgoing = [(1, "total", "price_of"), (1, "total", "sum"), (1, "total", "sum"), (1, "total", "sum")];
    let found = calls(&["calls", "py://shop.prices#total", "--outgoing"]);
    assert_eq!(found.first(), of(&outgoing).first());
    assert!(found[1..].iter().all(|(_, _, callee)| callee == "sum") && found.len() > 1, "{found:?}");
}

#[test]
fn diagnostics_of_files_folders_and_everything() {
    let env = shop();
    let diag = |args: &[&str]| -> Value {
        env.lanser(args.iter().chain([&"--json"])).answer()["facts"]["diagnostics"].clone()
    };
    let all = diag(&["diag"]);
    let [item] = all["items"].as_array().unwrap().as_slice() else { panic!("{all}") };
    assert_eq!(item["at"], "src/shop/till.py@L13:C23");
    assert_eq!((&item["severity"], &item["rule"]), (&json!("error"), &json!("reportAssignmentType")));
    assert_eq!(
        all["counts"],
        json!({"error": 1, "warning": 0, "information": 0, "hint": all["counts"]["hint"]})
    );
    // The stub replaces its module, and both are checked.
    assert_eq!(all["files_checked"], 8);
    assert_eq!(diag(&["diag", "src"])["files_checked"], 7);
    let tests = diag(&["diag", "tests", "src/shop/prices.py"]);
    assert_eq!((&tests["files_checked"], &tests["items"]), (&json!(2), &json!([])));
    assert_eq!(diag(&["diag", "py://shop.till#bill"])["items"], all["items"]);
    assert_eq!(diag(&["diag", "--scope", "configured"])["files_checked"], 7);
}

/// The length of a text in a unit.
type Count = fn(&str) -> usize;

/// Columns on a line that begins with a character outside the basic plane and continues with combining marks.
#[test]
fn columns_in_every_unit() {
    let project = Project::parse(
        "//- /m.py\ndef $0spell(word: str) -> str:\n    return word\n\n\n𝒳 = \"🜁 e\u{301}\"; e\u{301}te\u{301} = \"e\u{301}\"; out = $1spell(\"🜁🜂 e\u{301}\") + $2spell(e\u{301}te\u{301})\n",
    );
    let env = TestEnv::pyright_session(&project);
    let counts: [(&str, Count); 3] = [
        ("codepoint", |text| text.chars().count()),
        ("utf-8", str::len),
        ("utf-16", |text| text.encode_utf16().count()),
    ];
    let mut server: Option<Value> = None;
    for (unit, count) in counts {
        let at = |mark| project.at_counting(mark, count);
        let query = if unit == "codepoint" { String::new() } else { format!("?indexing={unit}") };
        let expected = [0, 1, 2].map(|mark| {
            let place = at(mark);
            let [file, line, column] = place.split(':').collect::<Vec<_>>()[..] else { panic!("{place}") };
            format!("{file}@L{line}:C{column}{query}")
        });
        let bundle = env.lanser(["refs", &at(2), "--index-io", unit, "--json"]).answer();
        let found = bundle["facts"]["references"].as_array().unwrap();
        assert_eq!(
            found.iter().map(|item| item["at"].as_str().unwrap()).collect::<Vec<_>>(),
            expected,
            "{unit}"
        );
        // The server's own columns do not depend on the caller's.
        let ranges: Vec<_> = found.iter().map(|item| item["range"].clone()).collect();
        assert_eq!(server.get_or_insert_with(|| Value::Array(ranges.clone())), &Value::Array(ranges));
        // A printed location can be passed back, and resolves to the same place whatever the unit of the next call.
        for (mark, at) in (0..).zip(&expected) {
            let bundle = env.lanser(["locate", at, "--json"]).answer();
            let resolved = &bundle["resolution"]["resolved"];
            assert_eq!(resolved["range"], found[mark]["range"], "{at}");
        }
    }
}

#[test]
fn both_coordinate_systems_with_verbose() {
    let env = shop();
    let plain = env.lanser(["refs", "py://shop.glyphs#spell", "--index-io", "utf-8", "--json"]).answer();
    let dual = env.lanser(["refs", "py://shop.glyphs#spell", "--index-io", "utf-8", "--json", "-v"]).answer();
    assert_eq!(plain["bundleId"], dual["bundleId"], "what -v adds is outside the hash");
    assert!(plain["meta"]["volatile"]["coordinates"].is_null());
    let pairs = dual["meta"]["volatile"]["coordinates"].as_array().unwrap();
    assert_eq!(pairs.len(), 3);
    let first = &pairs[1];
    assert_eq!((&first["server_unit"], &first["io_unit"]), (&json!("utf-16"), &json!("utf-8")));
    assert_eq!((&first["server"], &first["io"]), (&json!([4, 39, 4, 44]), &json!([5, 47, 5, 52])));
}

#[test]
fn basedpyright_answers_the_same_requests() {
    let env = TestEnv::basedpyright(&Project::fixture("shop"));
    let ask = |args: &[&str]| env.lanser(args.iter().chain(&["--server", "basedpyright", "--json"])).answer();
    let bundle = ask(&["def", "src/shop/till.py:9:21"]);
    assert_eq!(bundle["facts"]["definitions"][0]["at"], "src/shop/prices.py@L4:C5");
    assert_eq!(bundle["environment"]["tool"], json!({"name": "basedpyright", "version": "1.40.1"}));
    let bundle = ask(&["refs", "py://shop#price_of"]);
    let at: Vec<_> =
        bundle["facts"]["references"].as_array().unwrap().iter().map(|item| &item["at"]).collect();
    assert_eq!(at, USES_OF_PRICE_OF);
    assert_eq!(bundle["facts"]["completeness"]["status"], "complete");
    let said = ask(&["hover", "py://shop.items#Item.gross"])["facts"]["hover"]["markdown"].clone();
    assert!(said.as_str().unwrap().contains("The price with tax."), "{said}");
    let found = &ask(&["diag"])["facts"]["diagnostics"];
    assert_eq!((&found["files_checked"], &found["counts"]["error"]), (&json!(8), &json!(1)));
    let rules: Vec<_> =
        found["items"].as_array().unwrap().iter().map(|item| item["rule"].as_str().unwrap()).collect();
    // A rule that only basedpyright has, so it was not Pyright that answered.
    assert!(
        rules.contains(&"reportImplicitOverride") && rules.contains(&"reportAssignmentType"),
        "{rules:?}"
    );
}

/// A shell completes paths relative to the current folder; if the workspace has no such file, the path is relative to that
/// folder, and the answer is the same as for the path relative to the workspace.
#[test]
fn a_path_relative_to_a_subfolder() {
    let env =
        TestEnv::with(&Project::default().and("lanser.toml", "").and("pkg/inner/m.py", "def f(): pass\n"));
    // `resolution.original` repeats a selector as it is given, save for a path that is not the workspace's.
    let whole = env.lanser(["locate", "pkg/inner/m.py@L1:C5", "--json"]).answer();
    let words = ["-c", "cd pkg/inner && exec \"$0\" locate m.py:1:5 --json", env!("CARGO_BIN_EXE_lanser")];
    assert_eq!(env.run("/bin/sh", words).answer()["bundleId"], whole["bundleId"]);
}

/// Prints the names of the direct bases and subclasses of each class.
const HIERARCHY_SCRIPT: &str = "\
import json, far, near
classes = [c for m in (near, far) for c in vars(m).values() if isinstance(c, type) and c.__module__ == m.__name__]
print(json.dumps({
    c.__module__ + '#' + c.__qualname__: {
        'supertypes': sorted(b.__name__ for b in c.__bases__ if b.__name__ not in ('Generic', 'object')),
        'subtypes': sorted(b.__name__ for b in c.__subclasses__()),
    } for c in classes
}))
";

/// Python itself knows the hierarchy.
fn check_type_hierarchy(new_env: fn(&Project) -> TestEnv) {
    let env = new_env(&Project::parse(
        "\
//- /near.py
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar('T')


class Base: ...


class Mixin(Base, Generic[T]):
    class Inner(Exception): ...


class Ordered(OrderedDict, Base): ...
//- /far.py
import near as n
from near import Mixin as M

Alias = n.Mixin


class Below(M[int]): ...


class Further(Below, n.Ordered): ...


class Aliased(Alias, n.Mixin.Inner): ...
",
    ));
    let output = env.run("python3", ["-B", "-c", HIERARCHY_SCRIPT]);
    let known: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output}"));
    for (class, directions) in known.as_object().unwrap() {
        for (direction, end) in [("supertypes", "supertype"), ("subtypes", "subtype")] {
            let bundle =
                env.lanser(["types", &format!("py://{class}"), &format!("--{direction}"), "--json"]).answer();
            let edges = bundle["facts"]["types"].as_array().unwrap();
            let mut names: Vec<&str> = edges.iter().map(|edge| edge[end]["name"].as_str().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(json!(names), directions[direction], "{direction} of {class}: {bundle}");
            assert_eq!(bundle["facts"]["completeness"]["status"], "complete", "{bundle}");
        }
    }
    let far = env.lanser(["types", "near.Base", "--subtypes", "--depth", "3", "--json"]).answer();
    let edge = |edge: &Value| {
        format!("{} {} {}", edge["depth"], edge["subtype"]["name"], edge["supertype"]["name"])
            .replace('"', "")
    };
    let mut edges: Vec<String> = far["facts"]["types"].as_array().unwrap().iter().map(edge).collect();
    edges.sort_unstable();
    assert_eq!(
        edges,
        [
            "1 Mixin Base",
            "1 Ordered Base",
            "2 Aliased Mixin",
            "2 Below Mixin",
            "2 Further Ordered",
            "3 Further Below"
        ]
    );
    env.lanser(["types", "near.T", "--subtypes"]).failure(3);
}

#[test]
fn type_hierarchy_of_pyright() {
    check_type_hierarchy(TestEnv::pyright_session);
}

#[test]
fn type_hierarchy_of_ty() {
    check_type_hierarchy(TestEnv::ty);
}

/// A base that is computed may be any class.
#[test]
fn computed_bases_leave_a_hierarchy_incomplete() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /m.py
def made(base: type) -> type:
    return type('Made', (base,), {})


class Base: ...


class Known(Base): ...


class Computed(made(Base)): ...
",
    ));
    for args in [["types", "m.Base", "--subtypes"], ["types", "m.Computed", "--supertypes"]] {
        let bundle = env.lanser([&args[..], &["--json"]].concat()).answer();
        assert_eq!(bundle["facts"]["completeness"]["status"], "unknown", "{bundle}");
    }
    let bundle = env.lanser(["impl", "m.Base", "--json"]).answer();
    assert_eq!(bundle["facts"]["completeness"]["status"], "unknown", "{bundle}");
}

/// The bound of a type parameter has a colon, as the end of a class head has.
#[test]
fn subclasses_with_bounded_type_parameters_are_found() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /m.py
class Base[T]: ...
//- /n.py
from m import Base
class Below[T: (int, str)](Base[T]): ...
",
    ));
    let bundle = env.lanser(["types", "m.Base", "--subtypes", "--json"]).answer();
    assert_eq!(bundle["facts"]["types"][0]["subtype"]["name"], "Below", "{bundle}");
}

/// Every binding of a base counts, and a base that only the program knows may be any class.
#[test]
fn a_base_may_be_bound_several_times_or_computed() {
    let env = TestEnv::ty(&Project::parse(
        "\
//- /m.py
import typing as t
from n import first


class Base:
    def run(self): ...


class Other: ...


Chosen = Base if first() else Other
try:
    from n import Tried
except ImportError:
    from o import Tried


class ByChoice(Chosen): ...


class ByTry(Tried): ...


class Shape(t.Protocol):
    def run(self): ...
//- /n.py
import m


class Tried: ...


def first(): ...
//- /o.py
import m


class Tried(m.Base): ...
//- /made.py
import m


Made = first()


class Hidden(Made):
    def run(self): ...
",
    ));
    let types = |class: &str, direction: &str| env.lanser(["types", class, direction, "--json"]).answer();
    let names = |bundle: &Value, end: &str| -> Vec<String> {
        let edges = bundle["facts"]["types"].as_array().unwrap().iter();
        edges.map(|edge| edge[end]["name"].as_str().unwrap().to_owned()).collect()
    };
    let status = |bundle: &Value| bundle["facts"]["completeness"]["status"].as_str().unwrap().to_owned();
    let chosen = types("m.ByChoice", "--supertypes");
    assert_eq!(
        (names(&chosen, "supertype"), status(&chosen)),
        (vec!["Base".to_owned(), "Other".to_owned()], "complete".to_owned())
    );
    let tried = types("m.ByTry", "--supertypes");
    assert_eq!(
        (names(&tried, "supertype"), status(&tried)),
        (vec!["Tried".to_owned(); 2], "complete".to_owned())
    );
    let below = types("m.Base", "--subtypes");
    assert_eq!(names(&below, "subtype"), ["ByChoice", "Tried"], "{below}");
    assert_eq!(status(&below), "unknown", "{below}");
    let reason = below["facts"]["completeness"]["reason"].as_str().unwrap();
    assert!(reason.contains("made.py@L7:C7"), "{reason}");
    assert_eq!(status(&types("m.Shape", "--subtypes")), "unknown");
    let refs = env.lanser(["refs", "m.Base.run", "--json"]).answer();
    let open = &refs["facts"]["completeness"]["unresolved"]["items"];
    assert_eq!(open[0]["at"], "made.py@L8:C9", "{refs}");
}

/// The stubs of ty are in its program.
#[test]
fn builtin_bases_are_found_with_every_server() {
    let project = Project::parse("//- /m.py\nclass Mine(ValueError): ...\nclass Far(Mine, int): ...\n");
    for env in [TestEnv::ty(&project), TestEnv::pyright_session(&project)] {
        let bundle = env.lanser(["types", "m.Far", "--supertypes", "--depth", "3", "--json"]).answer();
        let edges = bundle["facts"]["types"].as_array().unwrap().iter();
        let mut above: Vec<&str> = edges.map(|edge| edge["supertype"]["name"].as_str().unwrap()).collect();
        above.sort_unstable();
        assert_eq!(above, ["Exception", "Mine", "ValueError", "int"], "{bundle}");
        assert_eq!(bundle["facts"]["completeness"]["status"], "complete", "{bundle}");
    }
    // What else inherits from a builtin class is not known then.
    let env = TestEnv::ty(&project);
    let below = env.lanser(["types", "m.py:1:12", "--subtypes", "--json"]).answer();
    let facts = &below["facts"];
    let is_found = facts["types"].as_array().unwrap().iter().any(|edge| edge["subtype"]["name"] == "Mine");
    assert!(is_found || facts["completeness"]["status"] == "unknown", "{below}");
}

#[test]
fn overloads_are_one_function_and_overrides_are_told() {
    let project = Project::parse(
        "\
//- /m.py
from typing import overload


class Base:
    @overload
    def get(self, k: int) -> int: ...
    @overload
    def get(self, k: str) -> str: ...
    def get(self, k):
        return k

    def run(self) -> int:
        return self.get(1)


class Child(Base):
    def run(self) -> int:
        return 2
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright_session(&project)] {
        let text = env.lanser(["calls", "py://m#Child.get", "--incoming"]).stdout;
        assert!(text.contains("in Base.run: ") && text.contains("Base.get is inherited"), "{text}");
        assert!(text.trim_end().ends_with("1 caller, complete"), "{text}");
        let text = env.lanser(["calls", "Base.run", "--outgoing"]).stdout;
        assert_eq!(text.matches("Base.get").count(), 1, "{text}");
        let text = env.lanser(["calls", "Base.run"]).stdout;
        assert!(text.contains("[override in Child]"), "{text}");
    }
}

#[test]
fn a_function_does_not_call_what_functions_within_it_call() {
    let project = Project::parse(
        "\
//- /m.py
def log(): ...
def make(): ...
def default(): ...


def decorate(function):
    def wrapper(x=default()):
        log()
        return function()
    make()
    return wrapper
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright(&project)] {
        let callees = |name: &str| -> Vec<String> {
            let bundle = env.lanser(["calls", name, "--outgoing", "--json"]).answer();
            let calls = bundle["facts"]["calls"].as_array().unwrap().iter();
            calls.map(|call| call["callee"]["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(callees("py://m#decorate"), ["make", "default"]);
        assert_eq!(callees("py://m#decorate.wrapper"), ["log"]);
    }
}

/// What a generic class, a string, a descriptor and a name that Python calls by itself mean for the calls of a function.
#[test]
fn callers_that_do_not_write_a_plain_call() {
    let project = Project::parse(
        "\
//- /m.py
from typing import Generic, TypeVar
from missing import lazy, task
T = TypeVar('T')
class Box(Generic[T]):
    def __init__(self, x: T) -> None: self.x = x
    @lazy
    def size(self) -> int: return 1
    def go(self) -> int: return 2
@task
def job() -> int: return 3
def plain() -> int: return 4
//- /n.py
from m import Box, job, plain as renamed
b = Box[int](3)
getattr(b, 'go')()
if b.size: job.delay()
renamed()
plain: Box[int]
//- /__init__.py
from .m import plain as plain
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright_session(&project)] {
        let found = |name: &str| {
            let bundle = env.lanser(["calls", &format!("py://m#{name}"), "--incoming", "--json"]).answer();
            let at = |item: &Value| item["at"].as_str().unwrap().to_owned();
            let list = |items: &Value| items.as_array().unwrap().iter().map(at).collect::<Vec<_>>();
            let calls = bundle["facts"]["calls"].as_array().unwrap();
            let sites: Vec<String> = calls.iter().flat_map(|call| list(&call["sites"])).collect();
            let stated = &bundle["facts"]["completeness"];
            (sites, list(&stated["unresolved"]["items"]), stated["status"].as_str().unwrap().to_owned())
        };
        let of = |sites: &[&str], unresolved: &[&str], status: &str| {
            let texts = |places: &[&str]| places.iter().map(|place| (*place).to_owned()).collect::<Vec<_>>();
            (texts(sites), texts(unresolved), status.to_owned())
        };
        assert_eq!(found("Box"), of(&["n.py@L2:C5"], &[], "complete"));
        assert_eq!(found("Box.go"), of(&["n.py@L3:C13"], &[], "complete"));
        // Pyright takes it for a property.
        let (sites, unresolved, status) = found("Box.size");
        assert_eq!(status == "complete", unresolved.is_empty());
        assert_eq!([sites, unresolved].concat(), ["n.py@L4:C6"]);
        assert_eq!(found("job"), of(&[], &["n.py@L4:C12"], "partial"));
        assert_eq!(found("plain"), of(&["n.py@L5:C1"], &[], "complete"));
        assert_eq!(found("Box.__init__").2, "unknown");
    }
}

/// What gets a function as a value may call it, and a property is called where it is read.
#[test]
fn callers_of_functions_that_are_used_as_values() {
    let project = Project::parse(
        "\
//- /m.py
from collections.abc import Callable
class View:
    def show(self) -> int: return 1
    @property
    def size(self) -> int: return 2
    def quiet(self) -> int: return 3
def ensure(f: Callable[[], int]) -> int: return f()
def go(v: View) -> object:
    v.quiet()
    again = v.quiet
    again()
    print(v.size)
    hooks: dict[str, object] = {}; hooks['k'] = v.show
    return [v.show(), ensure(v.show), [v.show]]
def decorate(f: Callable[[], int]) -> Callable[[], int]: return f
@decorate
def one() -> int: return 1
def each(x, y: View) -> object:
    got = x.show
    h = hooks = [one for _ in 'ab']
    return (one)(), got
class Point: ...
def make(x: object) -> object: return isinstance(x, Point), Point()
",
    );
    for env in [TestEnv::ty(&project), TestEnv::pyright_session(&project)] {
        let found = |selector: &str| {
            let bundle = env.lanser(["calls", selector, "--incoming", "--json"]).answer();
            let calls = bundle["facts"]["calls"].as_array().unwrap();
            let sites = calls.iter().flat_map(|call| call["sites"].as_array().unwrap());
            let at = |item: &Value| item["at"].as_str().unwrap().replace("m.py@", "");
            let stated = &bundle["facts"]["completeness"];
            let items = stated["unresolved"]["items"].as_array().unwrap();
            let unresolved =
                items.iter().map(|item| format!("{}: {}", at(item), item["reason"].as_str().unwrap()));
            (
                sites.map(at).collect::<Vec<_>>(),
                unresolved.collect::<Vec<_>>(),
                stated["status"] == "complete",
            )
        };
        let value = |at: &str| format!("{at}: used as a value, which may be called");
        assert_eq!(
            found("py://m#View.show"),
            (
                vec!["L14:C15".into()],
                vec![
                    value("L13:C51"),
                    value("L14:C32"),
                    value("L14:C42"),
                    "L19:C13: receiver type unknown".into()
                ],
                false
            )
        );
        let (sites, unresolved, is_complete) = found("py://m#View.size");
        let read = "L12:C13: a property, called where it is accessed".to_owned();
        assert!(
            sites == ["L12:C13"] && is_complete || unresolved == [read] && !is_complete,
            "{sites:?} {unresolved:?}"
        );
        assert_eq!(found("py://m#View.quiet"), (vec!["L9:C7".into(), "L11:C5".into()], vec![], true));
        assert_eq!(found("py://m#decorate"), (vec!["L16:C2".into()], vec![], true));
        assert_eq!(found("py://m#one"), (vec!["L21:C13".into()], vec![value("L20:C18")], false));
        assert_eq!(found("py://m#Point"), (vec!["L23:C61".into()], vec![], true));
    }
}
