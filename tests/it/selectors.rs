use serde_json::Value;

use crate::support::{Output, Project, TestEnv};

const FORMS: [&str; 5] = ["cursor", "py", "ast", "anchor", "sym"];

fn project() -> Project {
    Project::parse(
        "
//- /pkg/__init__.py
//- /pkg/shop.py
import math


class Shop:
    def price_of(self, item, discount=0):
        base = self.prices[item]
        if discount:
            base = base - base * discount
        return math.floor(base)

    def close(self):
        self.open = False


def total(items, shop: Shop):
    amount = 0
    for item in items:
        amount += shop.price_of(item)
    print('the sum', amount)
    return amount
//- /pkg/other.py
from pkg.shop import Shop
",
    )
}

/// A git workspace with the project as its only commit.
fn with_history() -> TestEnv {
    let env = TestEnv::with(&project());
    for args in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-q", "-m", "one"],
    ] {
        env.run("git", args).text();
    }
    env
}

fn read(env: &TestEnv, name: &str) -> String {
    std::fs::read_to_string(env.file(name)).unwrap()
}

fn edit(env: &TestEnv, name: &str, from: &str, to: &str) {
    let text = read(env, name);
    assert!(text.contains(from), "{name} has no {from:?}");
    env.write(name, text.replace(from, to));
}

fn locate(env: &TestEnv, selector: &str) -> Output {
    env.lanser(["locate", selector, "--json"])
}

/// The location of a selector, how it was found, and whether it is certain.
#[track_caller]
fn place(env: &TestEnv, selector: &str) -> (String, String, bool) {
    let bundle = locate(env, selector).answer();
    let resolved = &bundle["resolution"]["resolved"];
    let text = |key: &str| resolved[key].as_str().unwrap().to_owned();
    (text("at"), text("via"), resolved["certified"].as_bool().unwrap())
}

#[track_caller]
fn found(env: &TestEnv, selector: &str, at: &str, via: &str, certified: bool) {
    assert_eq!(place(env, selector), (at.to_owned(), via.to_owned(), certified), "{selector}");
}

/// The selector that `--as` prints for a form.
#[track_caller]
fn as_form(env: &TestEnv, selector: &str, form: &str) -> String {
    let bundle = env.lanser(["locate", selector, "--as", form, "--json"]).answer();
    bundle["resolution"]["resolved"]["at"].as_str().unwrap().to_owned()
}

#[test]
fn every_form_resolves_to_the_location_that_it_was_made_from() {
    let env = TestEnv::with(&project());
    for form in FORMS {
        let selector = as_form(&env, "py://pkg.shop#Shop.price_of", form);
        let (at, _, certified) = place(&env, &selector);
        let line = if form == "anchor" { "pkg/shop.py@R(5,5->5,42)" } else { "pkg/shop.py@L5:C9" };
        assert_eq!((at.as_str(), certified), (line, true), "{selector}");
        // The canonical form of a canonical selector is itself.
        let bundle = locate(&env, &selector).answer();
        assert_eq!(bundle["resolution"]["original"].as_str().unwrap(), selector);
        // The JSON form resolves to the same.
        let json = bundle["request"]["selector"].to_string();
        assert_eq!(place(&env, &json).0, line, "{json}");
        // As text it is printed alone, ready for use.
        let text = env.lanser(["locate", "py://pkg.shop#Shop.price_of", "--as", form]);
        assert_eq!(place(&env, text.text().trim_end()).0, line, "{text}");
    }
    let call = as_form(&env, "pkg/shop.py:18:24", "ast");
    assert!(call.starts_with("ast://[module=pkg.shop]/[def=total]/[name=price_of]"), "{call}");
    found(&env, &call, "pkg/shop.py@L18:C24", "ast", true);
    env.lanser(["locate", "pkg/shop.py:16:5", "--as", "py"]).failure(3);
}

const KINDS: &str = "\
//- /k.py
import enum
import dataclasses
from typing import TypeAlias, TypeVar, overload

LIMIT = 10
first, second = 1, 2
Number: TypeAlias = int
type Pair[T] = tuple[T, T]
T = TypeVar(\"T\")
for step in range(3):
    pass
with open(\"x\") as handle, open(\"y\") as (left, right):
    pass
if (size := LIMIT):
    pass


class Color(enum.Enum):
    RED = 1
    GREEN = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0

    @property
    def length(self) -> float:
        \"\"\"How far away.\"\"\"
        return (self.x ** 2 + self.y ** 2) ** 0.5

    @staticmethod
    def origin() -> Point: return Point(0, 0)

    def scale(self, by):
        self.scaled = True
        def inner(value):
            return value * by
        return Point(inner(self.x), inner(self.y))


@overload
def parse(text: str) -> int: ...
@overload
def parse(text: bytes) -> str: ...
def parse(text):
    return text


async def größe(a, /, b, *rest, c=1, **more):
    def helper(): return a
    return helper()
";

#[test]
fn every_kind_of_definition_has_every_form() {
    let env = TestEnv::with(&Project::parse(KINDS));
    let names = [
        "LIMIT",
        "first",
        "second",
        "Number",
        "Pair",
        "T",
        "step",
        "handle",
        "left",
        "right",
        "size",
        "Color",
        "Color.RED",
        "Color.GREEN",
        "Point",
        "Point.x",
        "Point.y",
        "Point.length",
        "Point.origin",
        "Point.scale",
        "Point.scaled",
        "Point.scale.inner",
        "parse",
        "größe",
        "größe.helper",
    ];
    for name in names {
        let selector = format!("py://k#{name}");
        let bundle = locate(&env, &selector).answer();
        let resolved = &bundle["resolution"]["resolved"];
        assert!(resolved["symbolId"].is_string(), "{selector} has no symbolId: {resolved}");
        let there = resolved["at"].as_str().unwrap();
        for form in FORMS {
            let told = as_form(&env, &selector, form);
            let (at, _, certified) = place(&env, &told);
            if form == "anchor" {
                // The rest of the line from the name, or its keyword.
                let line = |at: &str| at.split(['L', '(', ':', ',']).nth(1).unwrap().to_owned();
                assert_eq!(line(&at), line(there), "{told}");
            } else {
                assert_eq!(at, there, "{told}");
            }
            // Very short text is similar to any other very short text.
            assert!(certified || form == "sym" || form == "anchor", "{told}");
        }
    }
}

#[test]
fn a_selector_of_a_part_resolves_to_that_part() {
    let env = TestEnv::with(&Project::parse(KINDS));
    let parts = [
        "py://k#Point:sig",
        "py://k#Point:body",
        "py://k#Point.length:doc",
        "py://k#Point.scale:body",
        "py://k#größe:sig",
    ];
    let mut told = Vec::new();
    for part in parts {
        let there = place(&env, part).0;
        // A cursor is where the part begins.
        for form in ["py", "ast", "anchor", "sym"] {
            let output = env.lanser(["locate", part, "--as", form, "--json"]);
            if output.code == Some(0) {
                let selector = output.answer()["resolution"]["resolved"]["at"].as_str().unwrap().to_owned();
                assert_eq!(place(&env, &selector).0, there, "{part} as {form}: {selector}");
                told.push(format!("{part} {form}"));
            } else {
                // A signature is not a construct, and an id never selects a part.
                output.error(3, "E/NOT_FOUND");
            }
        }
    }
    for expected in [
        "py://k#Point:body ast",
        "py://k#Point.length:doc ast",
        "py://k#Point:sig anchor",
        "py://k#Point:body anchor",
    ] {
        assert!(told.iter().any(|one| one == expected), "{expected} in {told:?}");
    }
}

#[test]
fn the_first_of_several_assignments_is_not_called_certain() {
    let env = TestEnv::with(&Project::parse(
        "//- /m.py\nif x:\n    DUP = 1\nelse:\n    DUP = 2\nONE = 1\ndef f(): pass\n",
    ));
    assert_eq!(place(&env, "py://m#DUP"), ("m.py@L2:C5".to_owned(), "name".to_owned(), false));
    assert!(place(&env, "py://m#ONE").2 && place(&env, "py://m#f").2);
    let said = env.lanser(["locate", "py://m#DUP"]);
    assert!(
        said.text().contains("not certain (0.90): it is assigned in 2 places, and this is the first"),
        "{said}"
    );
}

#[test]
fn a_selector_with_a_version_is_mapped_to_the_present() {
    let env = with_history();
    let content = locate(&env, "pkg/shop.py:5:9").answer()["resolution"]["resolved"]["docVersion"].clone();
    let versions = ["git:HEAD".to_owned(), content.as_str().unwrap().to_owned()];
    let each = |env: &TestEnv, at: &str, place: &str, via: &str, certified: bool| {
        for version in &versions {
            found(env, &format!("{at}?v={version}"), place, via, certified);
        }
    };
    each(&env, "pkg/shop.py:5:9", "pkg/shop.py@L5:C9", "unchanged", true);
    edit(&env, "pkg/shop.py", "import math\n", "import math\nimport os\nimport re\n");
    each(&env, "pkg/shop.py:5:9", "pkg/shop.py@L7:C9", "shifted", true);
    each(&env, "pkg/shop.py@R(19,5->19,29)", "pkg/shop.py@R(21,5->21,29)", "shifted", true);
    edit(&env, "pkg/shop.py", "item, discount=0", "item, *, discount: float = 0");
    each(&env, "pkg/shop.py:5:9", "pkg/shop.py@L7:C9", "signatureChanged", true);
    each(&env, "py://pkg.shop#Shop.price_of", "pkg/shop.py@L7:C9", "signatureChanged", true);
    edit(&env, "pkg/shop.py", "price_of", "cost");
    each(&env, "pkg/shop.py:5:9", "pkg/shop.py@L7:C9", "renamed", false);
    each(&env, "py://pkg.shop#Shop.price_of:body", "pkg/shop.py@R(8,9->11,32)", "renamed", false);
    // A whole definition moves to another file, with its statements.
    let text = read(&env, "pkg/shop.py");
    let (shop, total) = text.split_once("def total").unwrap();
    env.write("pkg/shop.py", shop);
    env.write("pkg/sums.py", format!("import logging\n\ndef total{total}"));
    each(&env, "pkg/shop.py:15:5", "pkg/sums.py@L3:C5", "moved", false);
    each(&env, "pkg/shop.py@R(19,5->19,29)", "pkg/sums.py@R(7,5->7,29)", "moved", false);
    // A deleted definition is gone, even if something similar remains.
    std::fs::remove_file(env.file("pkg/sums.py")).unwrap();
    for version in &versions {
        locate(&env, &format!("pkg/shop.py:15:5?v={version}")).error(3, "E/NOT_FOUND");
    }
}

#[test]
fn the_evidence_is_reported() {
    let env = with_history();
    edit(&env, "pkg/shop.py", "def close", "def shut_down");
    edit(&env, "pkg/shop.py", "price_of", "cost");
    let bundle = locate(&env, "pkg/shop.py:5:9?v=git:HEAD").answer();
    let told = &bundle["resolution"]["resolved"]["relocation"];
    let number = |value: &Value| value.as_f64().unwrap();
    let (features, weights) = (&told["features"], &bundle["meta"]["relocation"]["weights"]);
    let names = ["ast", "module", "tokenJaccard", "proximity"];
    let sum: f64 = names.iter().map(|name| number(&features[name]) * number(&weights[name])).sum();
    assert!((sum - number(&told["score"])).abs() < 0.011, "{told}");
    assert!(number(&told["score"]) >= number(&bundle["meta"]["relocation"]["tau"]));
    assert_eq!(told["reason"], "Shop.price_of is Shop.cost now");
    assert_eq!(bundle["meta"]["relocation"]["k"], 7);
    assert_eq!(bundle["meta"]["relocation"]["w"], 4);
}

#[test]
fn of_two_equal_candidates_none_is_chosen() {
    let env = with_history();
    let text = read(&env, "pkg/shop.py");
    let (shop, total) = text.split_once("def total").unwrap();
    env.write("pkg/shop.py", format!("{shop}def first{total}\n\ndef second{total}"));
    let error = locate(&env, "pkg/shop.py:15:5?v=git:HEAD");
    error.error(4, "E/AMBIGUOUS");
    let bundle = error.bundle();
    let candidates = bundle["resolution"]["disambiguation"].as_array().unwrap();
    let places: Vec<&str> = candidates.iter().map(|one| one["at"].as_str().unwrap()).collect();
    assert_eq!(places, ["pkg/shop.py@L15:C5", "pkg/shop.py@L23:C5"]);
    assert!(candidates.iter().all(|one| one["features"]["ast"].is_number()), "{candidates:?}");
}

#[test]
fn an_unavailable_version() {
    let env = with_history();
    let nowhere = format!("sha256:{}", "0".repeat(64));
    for version in ["git:nowhere", nowhere.as_str()] {
        let said = env.lanser(["locate", &format!("pkg/shop.py:5:9?v={version}")]);
        assert!(said.failure(10).starts_with("error: E/VERSION_SKEW: "), "{said}");
        // A selector with more information than a position is found anyway, but not called certain.
        found(&env, &format!("py://pkg.shop#Shop.close?v={version}"), "pkg/shop.py@L11:C9", "name", false);
    }
    // An ordinal is no more than a position.
    let content = as_form(&env, "pkg/shop.py@R(16,5->16,11)", "ast");
    let counted = content.split('?').next().unwrap().to_owned();
    locate(&env, &format!("{counted}?v=git:nowhere")).error(10, "E/VERSION_SKEW");
    locate(&env, "py://pkg.shop#Shop?v=git:HEAD:nonsense").error(2, "E/BAD_SELECTOR_SYNTAX");
    let here = env.lanser(["locate", "pkg/later.py:1:1?v=git:HEAD", "--json"]);
    here.error(10, "E/VERSION_SKEW");
}

#[test]
fn content_in_git_needs_no_stored_copy() {
    let env = with_history();
    let text = read(&env, "pkg/shop.py");
    let content = locate(&env, "pkg/shop.py:5:9").answer()["resolution"]["resolved"]["docVersion"].clone();
    let version = content.as_str().unwrap();
    edit(&env, "pkg/shop.py", "import math\n", "import math\nimport os\n");
    for args in
        [&["add", "-A"][..], &["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-q", "-m", "two"]]
    {
        env.run("git", args).text();
    }
    std::fs::remove_dir_all(env.path("test-cache").join("contents")).unwrap();
    found(&env, &format!("pkg/shop.py:5:9?v={version}"), "pkg/shop.py@L6:C9", "shifted", true);
    found(&env, &format!("py://pkg.shop#total?v={version}"), "pkg/shop.py@L16:C5", "shifted", true);
    // With the revision, the other files are known too: code that was always there is not a move target.
    env.write("pkg/shop.py", text.split_once("def total").unwrap().0);
    locate(&env, &format!("pkg/shop.py:15:5?v={version}")).error(3, "E/NOT_FOUND");
}

#[test]
fn selectors_without_a_version_are_matched_by_their_text() {
    let env = TestEnv::with(&project());
    let forms: Vec<String> =
        ["py", "ast", "anchor", "sym"].map(|form| as_form(&env, "py://pkg.shop#total", form)).into();
    let text = read(&env, "pkg/shop.py");
    let (shop, total) = text.split_once("def total").unwrap();
    env.write("pkg/shop.py", shop);
    env.write("pkg/sums.py", format!("def total{total}"));
    for selector in forms {
        let (at, via, _) = place(&env, &selector);
        assert!(at.starts_with("pkg/sums.py@"), "{selector}: {at}");
        assert!(via == "moved" || via == "structure", "{selector}: {via}");
    }
}

#[test]
fn equal_snippets_are_ambiguous_without_context() {
    let env = TestEnv::with(&project());
    env.write("pkg/two.py", "def f():\n    return 1\n\n\ndef g():\n    return 1\n");
    let ambiguous = locate(&env, "anchor://pkg/two.py#\"return%201\"");
    ambiguous.error(4, "E/AMBIGUOUS");
    let candidates = ambiguous.bundle()["resolution"]["disambiguation"].as_array().unwrap().clone();
    assert_eq!(candidates.len(), 2);
    for candidate in candidates {
        // A statement has no qualified name, and is not a kind of definition.
        assert!(candidate.get("qualname").is_none() && candidate.get("symbol_kind").is_none(), "{candidate}");
    }
    let anchor = as_form(&env, "pkg/two.py@R(6,5->6,13)", "anchor");
    found(&env, &anchor, "pkg/two.py@R(6,5->6,13)", "anchor", false);
}

#[test]
fn the_caret_marks_the_syntax_error() {
    let env = TestEnv::with(&project());
    let said = env.lanser(["locate", "ast://[module=m]/[klass=C]"]);
    let said = said.failure(2);
    let caret = said.lines().position(|line| line.trim() == "^^^^^").unwrap_or_else(|| panic!("{said}"));
    let (above, below) = (said.lines().nth(caret - 1).unwrap(), said.lines().nth(caret).unwrap());
    assert_eq!(above.find("klass"), below.find('^'), "{said}");
    assert!(said.contains("one of module, class, def,"), "{said}");
}

#[test]
fn every_command_accepts_every_form() {
    let env = TestEnv::pyright_session(&project());
    let expected = env.lanser(["refs", "py://pkg.shop#Shop.price_of", "--json"]).answer();
    let references = expected["facts"]["references"].as_array().unwrap();
    assert_eq!(references.len(), 2);
    for form in FORMS {
        let selector = as_form(&env, "py://pkg.shop#Shop.price_of", form);
        let bundle = env.lanser(["refs", &selector, "--json"]).answer();
        assert_eq!(bundle["facts"]["references"], expected["facts"]["references"], "{selector}");
        assert!(
            bundle["resolution"]["resolved"]["relocation"]["score"]
                .as_f64()
                .is_none_or(|score| score >= 0.75)
        );
    }
    let symbols = env.lanser(["symbols", "pkg/shop.py", "--json"]).answer();
    let definitions = ["Shop", "price_of", "close", "total"];
    let symbols = symbols["facts"]["symbols"].as_array().unwrap();
    let mut ids: Vec<&str> = symbols
        .iter()
        .filter(|symbol| definitions.contains(&symbol["name"].as_str().unwrap()))
        .map(|symbol| symbol["symbolId"].as_str().unwrap_or_else(|| panic!("{symbol} has no symbolId")))
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((count, ids.len()), (4, 4), "{ids:?}");
    found(&env, &format!("sym://{}", ids[0]), "pkg/shop.py@L4:C7", "structure", true);
}

#[test]
fn a_part_is_certain_only_when_its_own_text_is_untouched() {
    let env = with_history();
    edit(&env, "pkg/shop.py", "amount = 0", "amount = 1");
    found(&env, "py://pkg.shop#total?v=git:HEAD", "pkg/shop.py@L15:C5", "unchanged", true);
    assert!(place(&env, "py://pkg.shop#total:sig?v=git:HEAD").2);
    let (_, via, certified) = place(&env, "py://pkg.shop#total:body?v=git:HEAD");
    assert_eq!((via.as_str(), certified), ("edited", false));
    // The part was never there.
    locate(&env, "py://pkg.shop#total:doc?v=git:HEAD").error(3, "E/NOT_FOUND");
}

#[test]
fn a_rename_detected_by_git_is_a_move_without_certainty() {
    let env = with_history();
    std::fs::rename(env.file("pkg/shop.py"), env.file("pkg/store.py")).unwrap();
    found(&env, "py://pkg.shop#Shop.close?v=git:HEAD", "pkg/store.py@L11:C9", "moved", true);
    edit(&env, "pkg/store.py", "import math\n", "import math\nimport os\n");
    found(&env, "py://pkg.shop#Shop.close?v=git:HEAD", "pkg/store.py@L12:C9", "moved", false);
    // It moved to two files at once: which one is meant is unknown.
    edit(&env, "pkg/store.py", "import math\nimport os\n", "import math\n");
    std::fs::copy(env.file("pkg/store.py"), env.file("pkg/copy.py")).unwrap();
    locate(&env, "py://pkg.shop#Shop.close?v=git:HEAD").error(4, "E/AMBIGUOUS");
}

#[test]
fn a_snippet_with_another_context_is_not_followed_into_another_file() {
    let env = TestEnv::with(&Project::parse(
        "//- /a.py\nimport os\n\ndef url_for(name):\n    return os.path.join(name)\n\
         //- /b.py\nclass App:\n    def url_for(self, name, more):\n        return name\n",
    ));
    let anchor = as_form(&env, "py://a#url_for", "anchor");
    edit(&env, "a.py", "def url_for(", "def make_url(");
    let output = locate(&env, &anchor);
    assert!(matches!(output.code, Some(3 | 4)), "{output}");
    let (_, _, certified) =
        place(&env, "anchor://b.py#\"class%20App\"?hash=sha1:0000000000000000000000000000000000000000");
    assert!(!certified);
}

#[test]
fn a_name_is_printed_only_where_it_resolves_back() {
    let env = TestEnv::with(&Project::parse(
        "//- /m.py\nfrom typing import overload\n\n@overload\ndef f(a: int) -> int: ...\n@overload\ndef f(a: str) -> str: ...\n\
         def f(a):\n    \"\"\"Doc.\"\"\"\n    return a\n",
    ));
    for selector in
        ["py://m#f?overload=0", "py://m#f?overload=1", "py://m#f:sig", "py://m#f:doc", "py://m#f:body"]
    {
        let there = place(&env, selector).0;
        let printed = as_form(&env, selector, "py");
        assert_eq!(place(&env, &printed).0, there, "{selector} as {printed}");
    }
}

#[test]
fn an_ordinal_alone_is_not_an_answer() {
    let env = TestEnv::with(&Project::parse(
        "//- /a.py\ndef f(x):\n    g(x)\n    g(1)\n//- /b.py\nclass A:\n    def f(self): return 1\n//- /c.py\nclass A:\n    def f(self): return 1\n",
    ));
    let flagged = |selector: &str, places: &[&str]| {
        let output = locate(&env, selector);
        output.error(4, "E/AMBIGUOUS");
        let resolution = output.bundle()["resolution"].clone();
        assert_eq!((&resolution["ambiguous"], &resolution["resolved"]), (&Value::from(true), &Value::Null));
        assert_eq!(resolution["candidates"], places.len());
        let told: Vec<&str> = resolution["disambiguation"]
            .as_array()
            .unwrap()
            .iter()
            .inspect(|one| assert!(one["score"].as_f64().unwrap() < 0.75, "{one}"))
            .map(|one| one["at"].as_str().unwrap())
            .collect();
        assert_eq!(told, places, "{selector}");
        env.lanser(["locate", selector]).failure(4).to_owned()
    };
    let said = flagged("ast://[module=a]/[def=f]/[call=g][2]", &["a.py@L3:C5"]);
    assert!(said.contains("one location matches the selector, with too little evidence"), "{said}");
    assert!(said.contains("\n      g(1)\n"), "{said}");
    // With the content that it was counted in, it is certain.
    let call = as_form(&env, "a.py@R(3,5->3,9)", "ast");
    assert!(call.contains("[2]?v=sha256:"), "{call}");
    found(&env, &call, "a.py@R(3,5->3,9)", "unchanged", true);
    let twin = as_form(&env, "py://c#A.f", "sym");
    assert!(twin.contains(":2of2?v=sha256:"), "{twin}");
    found(&env, &twin, "c.py@L2:C9", "unchanged", true);
    flagged(twin.split('?').next().unwrap(), &["c.py@L2:C9", "b.py@L2:C9"]);
    // There are more of them now, so the ordinal no longer identifies one.
    env.write("b0.py", "class A:\n    def f(self): return 1\n");
    locate(&env, twin.split('?').next().unwrap()).error(4, "E/AMBIGUOUS");
}

#[test]
fn all_candidates_are_counted_and_the_first_are_shown() {
    let lines: String = (0..9).map(|number| format!("self.x{number} = self\n")).collect();
    let env = TestEnv::with(&Project::parse(&format!("//- /m.py\n{lines}")));
    let output = locate(&env, "anchor://m.py#\"self.x\"");
    let error = output.error(4, "E/AMBIGUOUS");
    assert_eq!(error["message"], "the selector matches 9 locations, of which 5 are shown");
    let resolution = &output.bundle()["resolution"];
    assert_eq!(
        (&resolution["candidates"], resolution["disambiguation"].as_array().unwrap().len()),
        (&9.into(), 5)
    );
    let said = env.lanser(["locate", "anchor://m.py#\"self.x\""]);
    let said = said.failure(4);
    for number in 0..5 {
        assert!(said.contains(&format!("\n      self.x{number} = self\n")), "{said}");
    }
}

#[test]
fn a_moved_function_is_found_by_every_form() {
    let env = TestEnv::with(&Project::parse(
        "//- /src/pkg/__init__.py\n//- /src/pkg/helpers.py\nimport os\n\n\ndef other():\n    return 2\n\n\n\
         def url_for(endpoint, **values):\n    parts = [endpoint, *sorted(values)]\n    return os.sep.join(parts)\n\
         //- /src/pkg/app.py\nclass App:\n    def url_for(self, endpoint):\n        return endpoint\n",
    ));
    let forms = ["py", "ast", "sym"].map(|form| as_form(&env, "py://pkg.helpers#url_for", form));
    let text = read(&env, "src/pkg/helpers.py");
    let (before, moved) = text.split_once("def url_for").unwrap();
    env.write("src/pkg/helpers.py", before);
    env.write("src/pkg/urls.py", format!("import os\n\n\ndef url_for{moved}"));
    for form in &forms {
        assert_eq!(place(&env, form).0, "src/pkg/urls.py@L4:C5", "{form}");
    }
    let score = |form: &str| locate(&env, form).answer()["resolution"]["resolved"]["confidence"].clone();
    assert_eq!(score(&forms[0]), score(&forms[1]));
    assert!(!place(&env, &forms[0]).2 && !place(&env, &forms[1]).2);
    // With a second candidate it is ambiguous, and every form reports both.
    env.write("src/pkg/links.py", format!("import os\n\n\ndef url_for{moved}"));
    for form in &forms {
        let output = locate(&env, form);
        output.error(4, "E/AMBIGUOUS");
        assert_eq!(output.bundle()["resolution"]["disambiguation"].as_array().unwrap().len(), 2, "{form}");
    }
}

#[test]
fn a_deleted_module_is_not_searched_in_an_installed_copy() {
    let mut env = TestEnv::with(&Project::parse(
        "//- /src/pkg/__init__.py\n//- /src/pkg/ctx.py\nclass AppContext:\n    def push(self):\n        return 1\n",
    ));
    env.run("python3", ["-m", "venv", "--without-pip", "env"]).text();
    let lib = std::fs::read_dir(env.file("env/lib")).unwrap().next().unwrap().unwrap().file_name();
    let site = format!("env/lib/{}/site-packages", lib.to_str().unwrap());
    env.write(&format!("{site}/pkg/__init__.py"), "");
    env.write(&format!("{site}/pkg/ctx.py"), read(&env, "src/pkg/ctx.py"));
    env.set("VIRTUAL_ENV", env.file("env"));
    let forms = [
        "py://pkg.ctx#AppContext",
        "py://pkg.ctx#AppContext.push",
        "ast://[module=pkg.ctx]/[class=AppContext]/[def=push]",
    ];
    for form in forms {
        assert!(place(&env, form).0.starts_with("src/pkg/ctx.py@"), "{form}");
    }
    std::fs::rename(env.file("src/pkg/ctx.py"), env.file("src/pkg/contexts.py")).unwrap();
    for form in forms {
        let (at, via, certified) = place(&env, form);
        assert!(at.starts_with("src/pkg/contexts.py@"), "{form}: {at}");
        assert_eq!((via.as_str(), certified), ("moved", false), "{form}");
    }
    locate(&env, "py://pkg.gone#AppContextual").error(3, "E/NOT_FOUND");
}

#[test]
fn selector_errors_are_explained() {
    let env = TestEnv::with(&Project::parse(
        "//- /m.py\nif x:\n    def twin(): return 1\nelse:\n    def twin(): return 2\n\ndef run():\n    return 1\n",
    ));
    let said = |args: &[&str], code: i32| env.lanser(args).failure(code).to_owned();
    let twin = said(&["locate", "m.py:2:9", "--as", "py"], 3);
    assert!(twin.contains("py://m#twin matches 2 definitions") && twin.contains("--as ast"), "{twin}");
    for form in ["ast", "sym", "cursor"] {
        assert_eq!(place(&env, &as_form(&env, "m.py:2:9", form)).0, "m.py@L2:C9");
    }
    let part = said(&["locate", "py://m#run:frob"], 3);
    assert!(part.contains("its parts are def, sig, body and doc"), "{part}");
    assert!(said(&["refs", ""], 2).starts_with("error: E/BAD_SELECTOR_SYNTAX: the selector is empty\n"));
    let raw = said(&["locate", "src/sp ace/a%b#c.py:1:7"], 2);
    assert!(raw.contains("the path percent-encoded: src/sp%20ace/a%25b%23c.py"), "{raw}");
}

const PLAIN: &str = "\
//- /app/__init__.py
from app.core import Service
//- /app/core.py
class Base:
    def start(self, port, *hosts, retries=0, **extra):
        self.port = port
        return retries


class Service(Base):
    \"\"\"Runs.\"\"\"

    def stop(self, now=False): return now


def load_data(path):
    data, size = path.read(), 1
    return Service().start(path)


def call_it():
    return Service().start(1, retries=2)
//- /app/other.py
def load(path): return path


class Loader:
    def load(self): return 1
//- /tests/test_app.py
import pytest
from app import Service


class TestBase:
    @pytest.mark.parametrize('now', [True])
    def test_stop(self, now):
        assert Service().stop(now=now)


class TestMore(TestBase):
    pass
//- /tools/run-it.py
def main(): pass
";

#[test]
fn short_forms_resolve_to_the_same_place_in_every_command() {
    let env = TestEnv::pyright_session(&Project::parse(PLAIN));
    for (full, at, short) in [
        (
            "py://app.core#Service.stop",
            "app/core.py@L10:C9",
            &[
                "app/core.py:10",
                "app/core.py:10:",
                "app/core.py@L10",
                "app.core.Service.stop",
                "app.Service.stop",
                "app.core:Service.stop",
                "app.core#Service.stop",
                "Service.stop",
                "stop",
                "app/core.py::Service::stop",
                "{\"kind\":\"line\",\"uri\":\"app/core.py\",\"line\":10}",
                "{\"kind\":\"name\",\"name\":\"Service.stop\"}",
            ][..],
        ),
        (
            "py://app.core#Base.start",
            "app/core.py@L2:C9",
            &["Base.start", "Service.start", "app.Service.start", "start"],
        ),
        (
            "py://app.core#load_data",
            "app/core.py@L13:C5",
            &["load_data", "app.core.load_data", "app/core.py:13"],
        ),
        (
            "py://tests.test_app#TestBase.test_stop",
            "tests/test_app.py@L7:C9",
            &[
                "tests/test_app.py::TestBase::test_stop[True-a::b]",
                "tests/test_app.py::TestMore::test_stop",
                "tests/test_app.py::TestBase::test_stop",
            ],
        ),
    ] {
        let expected = env.lanser(["refs", full, "--json"]).answer();
        let definition = env.lanser(["def", full, "--json"]).answer();
        for selector in short {
            found(&env, selector, at, via_of(selector), true);
            let references = env.lanser(["refs", selector, "--json"]).answer();
            assert_eq!(references["facts"], expected["facts"], "{selector}");
            let there = env.lanser(["def", selector, "--json"]).answer();
            assert_eq!(there["facts"], definition["facts"], "{selector}");
            // A line of a batch gives the same bundle.
            let line = serde_json::json!({"cmd": "references", "selector": selector});
            let answer = env.lanser_with_input(["batch"], line.to_string());
            let answer: Value = serde_json::from_str(answer.text()).unwrap();
            if !selector.starts_with('{') {
                assert_eq!(answer["bundleId"], references["bundleId"], "{selector}");
            }
            // The canonical form of what was parsed resolves to the same.
            let canonical = references["request"]["selector"].to_string();
            assert_eq!(place(&env, &canonical).0, at, "{canonical}");
        }
    }
    let outline = |target: &str| env.lanser(["symbols", target, "--json"]).answer()["facts"].clone();
    assert_eq!(outline("app.core"), outline("app/core.py"));
    assert_eq!(outline("Loader"), outline("py://app.other#Loader"));
    let said = env.lanser(["refs", "app.core"]);
    assert!(said.failure(3).contains("`lanser symbols app.core` lists its names"), "{said}");
    assert!(env.lanser(["calls", "call_it", "--outgoing"]).text().contains("calls"));
    assert!(env.lanser(["diag", "app.core"]).text().ends_with("1 file checked\n"));
}

/// How a short form is resolved.
fn via_of(selector: &str) -> &'static str {
    let is_line = selector.contains("\"line\"") || selector.contains(".py:1") || selector.contains("@L");
    if is_line { "coordinates" } else { "name" }
}

#[test]
fn a_name_that_is_not_unique_or_not_there_is_an_error_with_candidates() {
    let env = TestEnv::with(&Project::parse(PLAIN));
    let candidates = |selector: &str| {
        let output = locate(&env, selector);
        output.error(4, "E/AMBIGUOUS");
        let all = output.bundle()["resolution"]["disambiguation"].clone();
        all.as_array().unwrap().iter().map(|one| one["at"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(candidates("load"), ["app/other.py@L1:C5", "app/other.py@L5:C9"]);
    let suggested = |selector: &str| {
        locate(&env, selector).error(3, "E/NOT_FOUND")["data"]["selectors"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(suggested("lod_data"), ["py://app.core#load_data"]);
    assert_eq!(suggested("app.core.Servise"), ["py://app.core#Service"]);
    assert_eq!(suggested("Service.stopp"), ["py://app.core#Service.stop", "py://app.core#Service"]);
    assert_eq!(suggested("nothing_like_it"), [] as [&str; 0]);
    assert_eq!(suggested("mian"), ["tools/run-it.py::main"]);
    assert_eq!(place(&env, "tools/run-it.py::main").0, "tools/run-it.py@L1:C5");
    // A script is found by its name, too.
    assert_eq!(place(&env, "main").0, "tools/run-it.py@L1:C5");
    // What a script does not have is told by its path: no selector leads to its module.
    env.write("tools/run-it.py", "class Runner:\n    def start(self): pass\n");
    let message = "Runner.starts: module tools/run-it.py has no Runner.starts";
    assert_eq!(locate(&env, "Runner.starts").error(3, "E/NOT_FOUND")["message"], message);
    for wrong in ["Runner.starts", "tools/run-it.py::Runner::starts"] {
        assert_eq!(
            suggested(wrong),
            ["tools/run-it.py::Runner::start", "tools/run-it.py::Runner"],
            "{wrong}"
        );
    }
    // The path of a script without a suffix does not go before a name.
    env.write("tools/run", "#!/usr/bin/env python3\ndef launch(): pass\n");
    assert_eq!(suggested("lanch"), ["launch"]);
    // A name that looks percent-encoded, and is not.
    env.write("a%20b.py", "");
    assert_eq!(suggested("a%20b.py:1"), ["a%2520b.py@L1"]);
    // Names of functions are local.
    locate(&env, "data").error(3, "E/NOT_FOUND");
    locate(&env, "app/none.py::f").error(3, "E/NOT_FOUND");
    // The standard library has a name that the workspace has, too.
    env.write("late.py", "class json:\n    def loads(self): pass\n");
    assert_eq!(candidates("json.loads").len(), 2);
}

#[test]
fn a_line_with_several_names_asks_for_a_column() {
    let env = TestEnv::pyright_session(&Project::parse(PLAIN));
    found(&env, "app/core.py:15", "app/core.py@R(15,5->15,33)", "coordinates", true);
    for verb in ["def", "refs", "hover"] {
        let said = env.lanser([verb, "app/core.py:15"]);
        let said = said.failure(4);
        assert!(
            said.contains("  app/core.py:15:12  (`Service`, one of several names on the line)\n"),
            "{said}"
        );
        assert!(said.contains("  app/core.py:15:22  (`start`, "), "{said}");
    }
    // What the line binds is what it is about.
    let said = env.lanser(["refs", "app/core.py:14"]);
    assert!(said.failure(4).contains("(`size`, one of several names on the line)"), "{said}");
    assert!(env.lanser(["hover", "app/core.py:18"]).text().contains("call_it"));
    env.lanser(["refs", "app/core.py:11"]).failure(3);
    assert!(env.lanser(["locate", "app/core.py:11"]).failure(3).contains("line 11 has no code"));
    let said = env.lanser(["hover", "app/core.py:8"]);
    assert!(said.failure(3).contains("there is no name on the line"), "{said}");
}

#[test]
fn parameters_are_selected_and_renamed() {
    let env = TestEnv::pyright_session(&Project::parse(PLAIN));
    for (selector, at) in [
        ("py://app.core#Base.start(retries)", "app/core.py@L2:C35"),
        ("py://app#Service.start(hosts)", "app/core.py@L2:C28"),
        ("app.core.Base.start(extra)", "app/core.py@L2:C48"),
        ("Base.start(self)", "app/core.py@L2:C15"),
        ("app/core.py::Base::start(port)", "app/core.py@L2:C21"),
        (
            "{\"kind\":\"symbol\",\"qualname\":\"app.core:Base.start\",\"param\":\"port\"}",
            "app/core.py@L2:C21",
        ),
    ] {
        found(&env, selector, at, "name", true);
    }
    assert_eq!(as_form(&env, "app/core.py:2:35", "py"), "py://app.core#Base.start(retries)");
    let suggested = |selector: &str| {
        locate(&env, selector).error(3, "E/NOT_FOUND")["data"]["selectors"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(suggested("py://app.core#Base.start(retrie)"), ["py://app.core#Base.start(retries)"]);
    assert_eq!(suggested("py://app.core#Service(port)"), ["py://app.core#Service.__init__(port)"]);
    assert!(suggested("py://app.core#Base.start(port):body").is_empty());
    let facts = |selector: &str| env.lanser(["refs", selector, "--json"]).answer()["facts"].clone();
    assert_eq!(facts("py://app.core#Base.start(retries)"), facts("app/core.py:2:35"));
    let said =
        env.lanser(["rename", "py://app.core#Base.start(retries)", "attempts", "--apply", "--allow-dirty"]);
    assert_eq!(said.code, Some(0), "{said}");
    let text = read(&env, "app/core.py");
    assert!(text.contains("def start(self, port, *hosts, attempts=0, **extra):"), "{text}");
    assert!(text.contains("return attempts\n") && text.contains("start(1, attempts=2)"), "{text}");
}

#[test]
fn short_forms_with_a_version_are_mapped_to_the_present() {
    let env = with_history();
    for selector in
        ["pkg/shop.py:5", "Shop.price_of", "pkg.shop.Shop.price_of", "pkg/shop.py::Shop::price_of"]
    {
        found(&env, &format!("{selector}?v=git:HEAD"), "pkg/shop.py@L5:C9", "unchanged", true);
    }
    found(&env, "py://pkg.shop#Shop.price_of(item)?v=git:HEAD", "pkg/shop.py@L5:C24", "unchanged", true);
    edit(&env, "pkg/shop.py", "import math\n", "import math\nimport os\nimport re\n");
    edit(&env, "pkg/shop.py", "price_of", "cost");
    for selector in ["pkg/shop.py:5", "pkg/shop.py::Shop::price_of", "pkg.shop.Shop.price_of"] {
        found(&env, &format!("{selector}?v=git:HEAD"), "pkg/shop.py@L7:C9", "renamed", false);
    }
    // The code of a line that defines nothing.
    found(&env, "pkg/shop.py:19?v=git:HEAD", "pkg/shop.py@R(21,5->21,29)", "shifted", true);
    found(&env, "pkg/shop.py:16?v=git:HEAD", "pkg/shop.py@L18:C5", "shifted", true);
}

#[test]
fn the_first_of_a_construct_that_occurs_once_is_certain() {
    let env = TestEnv::with(&Project::parse(
        "//- /m.py\n'''doc'''\nclass C:\n    '''c'''\n    def f(self) -> int:\n        '''d'''\n        return 1\n",
    ));
    for (step, at) in [
        ("name", "m.py@L4:C9"),
        ("params", "m.py@R(4,10->4,16)"),
        ("returns", "m.py@L4:C20"),
        ("body", "m.py@R(5,9->6,17)"),
        ("doc", "m.py@R(5,9->5,16)"),
    ] {
        let path = format!("ast://[module=m]/[class=C]/[def=f]/{step}");
        assert_eq!(place(&env, &path).0, at, "{path}");
        found(&env, &format!("{path}[1]"), at, "ast", true);
        locate(&env, &format!("{path}[2]")).error(3, "E/NOT_FOUND");
    }
    found(&env, "ast://[module=m]/[class=C]/name[1]", "m.py@L2:C7", "ast", true);
    found(&env, "ast://[module=m]/doc[1]", "m.py@R(1,1->1,10)", "ast", true);
    // A count of what there may be several of is a position.
    locate(&env, "ast://[module=m]/[class=C]/[def=f]/param[1]").error(4, "E/AMBIGUOUS");
    locate(&env, "ast://[module=m]/[class=C]/[def=f][1]/name[1]").error(4, "E/AMBIGUOUS");
}

#[test]
fn a_path_from_the_current_folder_up() {
    let mut env =
        TestEnv::with(&Project::parse("//- /pyproject.toml\n//- /u.py\nx = 1\n//- /pkg/inner/a.py\nx = 1\n"));
    let root = env.cwd.clone();
    for (folder, selector, at) in [
        ("pkg", "../u.py:1:1", "u.py:1:1 "),
        ("pkg/inner", "../../u.py::x", "u.py:1:1 "),
        ("pkg", "../pkg/inner/a.py:1:1", "pkg/inner/a.py:1:1 "),
    ] {
        env.cwd = root.join(folder);
        let found = env.lanser(["locate", selector]);
        assert!(found.stdout.starts_with(at), "{folder} {selector}: {found}");
    }
    env.cwd = root.join("pkg");
    assert_eq!(env.lanser(["locate", "../../u.py:1:1"]).code, Some(2));
    assert_eq!(env.lanser(["locate", "../py://u#x"]).code, Some(2));
    // What is below the current folder is not above it.
    env.write("pkg/u.py", "x = 1\n");
    env.cwd = root.join("pkg/inner");
    env.write("pkg/v.py", "x = 1\n");
    env.lanser(["locate", "../v.py:1:1", "--json"]).error(3, "E/NOT_FOUND");
}
