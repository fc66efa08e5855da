use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::path::AbsPath;

/// No other files.
struct NoOtherFiles;

impl OtherFiles for NoOtherFiles {
    fn files(&self, _: &[MissingDefinition]) -> Vec<OtherFile> {
        Vec::new()
    }
}

/// One other file: its path, its text and its old content.
struct OneOtherFile(&'static str, &'static str, OldContent);

impl OtherFiles for OneOtherFile {
    fn files(&self, _: &[MissingDefinition]) -> Vec<OtherFile> {
        vec![OtherFile {
            path: self.0.to_owned(),
            document: document(self.0, self.1),
            before: self.2.clone(),
        }]
    }
}

fn document(path: &str, text: &str) -> Arc<Document> {
    Arc::new(Document::new(AbsPath::new(format!("/{path}")).unwrap(), text.as_bytes().to_vec()))
}

/// Relocates the text between `«` and `»` in `old`.
fn find(old: &str, new: &str, other_files: &dyn OtherFiles) -> RelocationOutcome {
    let start = old.find('«').unwrap();
    let plain = old.replace('«', "");
    let end = plain.find('»').unwrap();
    let text = plain.replace('»', "");
    let target = OldTarget { path: "a.py", text: &text, span: start..end };
    relocate(&target, Some(&document("a.py", new)), other_files)
}

fn at(old: &str, new: &str) -> String {
    match find(old, new, &NoOtherFiles) {
        RelocationOutcome::Found(place) => {
            let line = new[..place.span.start].matches('\n').count() + 1;
            let sure = if place.certified { " certified" } else { "" };
            format!("{line} {} {:?}{sure}", &new[place.span.clone()], place.change)
        }
        RelocationOutcome::Ambiguous(places) => format!("ambiguous {}", places.len()),
        RelocationOutcome::Gone { .. } => "gone".to_owned(),
    }
}

const BODY: &str = "(data, limit):\n    total = 0\n    for item in data:\n        if item > limit:\n            total += item * limit\n    log('sum', total)\n    return total\n";

fn named(name: &str) -> String {
    format!("def {name}{BODY}")
}

#[test]
fn two_equal_copies_are_ambiguous() {
    let method = |name: &str| {
        format!(
            "    def {name}(self):\n        self.a = open_it(self)\n        self.b = self.a.read(1, 2)\n        return self.b\n"
        )
    };
    let class =
        |inner: &str| format!("class C:\n    def before(self): pass\n{inner}    def after(self): pass\n");
    let old = class(&method("«run»"));
    let new = class(&format!("{}{}", method("first"), method("other")));
    assert_eq!(at(&old, &new), "ambiguous 2");
}

#[test]
fn unchanged_text_is_certified_where_it_shifts() {
    let old = format!("import os\n\ndef «f»{BODY}");
    assert_eq!(at(&old, &old.replace(['«', '»'], "")), "3 f Unchanged certified");
    assert_eq!(at(&old, &format!("import os\nimport re\n\n\ndef f{BODY}")), "5 f Shifted certified");
    let statement = named("f").replace("log('sum', total)", "«log('sum', total)»");
    assert_eq!(at(&statement, &format!("x = 1\n{}", named("f"))), "7 log('sum', total) Shifted certified");
}

#[test]
fn edits_of_body_and_signature() {
    let old = named("«f»");
    assert_eq!(at(&old, &named("f").replace("total = 0", "total = 1")), "1 f Unchanged certified");
    assert_eq!(at(&old, &named("f").replace("limit):", "limit=3):")), "1 f SignatureChanged certified");
    let name = named("f").replace("'sum', total", "'sum', «total»");
    assert_eq!(
        at(&name, &named("f").replace("log('sum', total)", "log('the sum', total, 1)")),
        "6 total Shifted"
    );
    let gone = named("f").replace("log('sum', total)", "«log»('sum', total)");
    assert_eq!(at(&gone, &named("f").replace("    log('sum', total)\n", "")), "gone");
}

#[test]
fn renamed_moved_and_gone() {
    let old = format!("{}class C:\n    x = 1\n", named("«f»"));
    assert_eq!(at(&old, &format!("{}class C:\n    x = 1\n", named("g"))), "1 g Renamed");
    let inside = named("f").lines().map(|line| format!("    {line}\n")).collect::<String>();
    assert_eq!(at(&old, &format!("class C:\n    x = 1\n{inside}")), "3 f Moved");
    assert_eq!(at(&old, "class C:\n    x = 1\n"), "gone");
    let twin = named("g").replace("limit", "least");
    assert_eq!(at(&format!("{}{twin}", named("«f»")), &twin), "gone", "the twin existed before");
    assert_eq!(at(&old, &format!("{}{}class C:\n    x = 1\n", named("g"), named("h"))), "ambiguous 2");
}

#[test]
fn a_text_that_clearly_continues_is_the_same_definition() {
    let text = |name: &str, what: &str, more: &str| {
        format!(
            "def {name}(path, {what}):\n    '''Read the {what} of a path, and close it.\n\n    The {what} are stripped.\n    '''\n    with open(path) as file:\n        found = file.readlines()\n    return [one.strip('{what} of') for one in found]\n{more}"
        )
    };
    let other = "def log(a):\n    print('log', a)\n";
    let old = format!("{}{other}", text("«load»", "lines", ""));
    let now = text("fetch", "rows", "");
    assert_eq!(at(&old, &format!("{other}\n{now}")), "4 fetch Renamed");
    // A rival with as much in common makes it unclear, and a third of the words is no evidence.
    let rival = format!("{other}\n{now}{}", text("query", "cells", ""));
    assert_eq!(at(&old, &rival), "ambiguous 2");
    let third = "def fetch(path):\n    with open(path) as file:\n        return json.load(file, strict=False, object_hook=dict, cls=Decoder)['rows']\n";
    assert_eq!(at(&old, &format!("{other}\n{third}")), "gone");
}

#[test]
fn a_function_that_left_its_function_is_found() {
    let inner = "    def check(value, least):\n        if value is None or value < least:\n            raise ValueError(f'{value} is below {least}')\n        return value\n";
    let old = format!("def make(a):\n{}    return check\n", inner.replace("check", "«check»"));
    let moved = inner.lines().map(|line| format!("{}\n", &line[4..])).collect::<String>();
    assert_eq!(at(&old, &format!("{moved}def make(a):\n    return check\n")), "1 check Moved");
}

/// Similar local functions that were edited when they moved to another function, each the only one of its name.
#[test]
fn local_functions_of_their_own_names_follow_into_another_function() {
    let local = |head: &str, wait: [&str; 3], name: &str| {
        let [open, close, tail] = wait;
        format!(
            "{head}
        for method in methods['{name}']:
            method = cast('Callable', method)
            if method in with_least:
                found = {open}method(value=value, least=a.least){close}
            else:
                found = {open}method(value=value){close}
            if found is not None and not isinstance(found, (int, float)):
                raise ValueError(f'{{value}} is wrong')
            if found:
                return found
{tail}
"
        )
    };
    let names = ["«check»", "clean", "close"];
    let was = names.map(|name| {
        let head = format!("    @in_background\n    def {name}(value: Value) -> Generator[Found, Any, Value]:");
        let tail = "        if need:\n            return (yield start(value, a.least))\n        return (yield start(value))\n";
        local(&head, ["yield later(", ")", tail], name.trim_matches(['«', '»']))
    });
    let is = names.map(|name| {
        let name = name.trim_matches(['«', '»']);
        let head = format!("    async def {name}(value: Value) -> Value:");
        local(
            &head,
            ["await ensure(", ", _warn=name_of(method))", "        return await start(value)\n"],
            name,
        )
    });
    let old = format!("def run(a):\n    need = is_required(a)\n{}    return check\n", was.concat());
    let new = format!(
        "def run(a):\n    return wait_for(run_async(a))\n\nasync def run_async(a):\n{}    return await check(a)\n",
        is.concat()
    );
    assert_eq!(at(&old, &new), "5 check Moved");
    // Another one of the name makes it a guess.
    let twice =
        format!("{new}\ndef other(b):\n    def check(value):\n        return value\n    return check(b)\n");
    assert_eq!(at(&old, &twice), "gone");
}

#[test]
fn a_small_function_follows_the_function_around_it() {
    let test = "    def test_of_urls(self, app, context):\n        @app.route('/')\n        def «index»():\n            return '42'\n        found = app.url_for('index', external=True, scheme='https')\n        assert found == 'https://localhost/' and context.is_open\n";
    let old = format!("class TestLogging:\n    def test_log(self):\n        log(1, 2, 3)\n{test}");
    let new = format!(
        "class TestUrls:\n    level = 1\n\n    def test_query(self):\n        assert query('a') == 'b'\n{}",
        test.replace(['«', '»'], "")
    );
    assert_eq!(at(&old, &new), "8 index Renamed");
}

#[test]
fn a_name_that_became_a_variable_does_not_keep_the_body() {
    let method = "(self):\n        found = self.current\n        self.at = (self.at + 1) % len(self.items)\n        return found\n";
    let old = format!("class C:\n    def «__next__»{method}    next = __next__\n");
    let new = format!("class C:\n    def next{method}    __next__ = next\n");
    assert_eq!(at(&old, &new), "2 next Renamed");
}

#[test]
fn a_statement_of_a_merged_function_is_found_in_the_other() {
    let body = "    stream = open_it(path, mode)\n    while stream.has_more(mode):\n        yield stream.read(1, mode)\n    stream.close(path, mode)\n";
    let marked = body.replace("yield stream.read(1, mode)", "«yield stream.read(1, mode)»");
    let old =
        format!("def each(path, mode):\n{marked}\ndef all(path, mode):\n    return list(each(path, mode))\n");
    let new = format!("def all(path, mode):\n    found = []\n{body}    return found\n");
    assert_eq!(at(&old, &new), "5 yield stream.read(1, mode) Merged");
}

#[test]
fn a_parameter_of_a_merged_function_is_no_function() {
    let body = "    stream = open_it(path, mode)\n    while stream.has_more(mode):\n        yield stream.read(1, mode)\n    stream.close(path, mode)\n";
    let old =
        format!("def each(path, «mode»):\n{body}\ndef all(path, mode):\n    return list(each(path, mode))\n");
    let new = format!("def all(path, mode):\n    found = []\n{body}    return found\n");
    assert_eq!(at(&old, &new), "1 mode Merged");
}

#[test]
fn a_variable_that_kept_its_name_is_not_the_one_with_its_value() {
    let new = "class C(enum.Enum):\n    BLUE = 1\n    GREEN = 2\n";
    assert_eq!(at("class C(enum.Enum):\n    RED = 1\n    «BLUE» = 2\n", new), "2 BLUE Shifted");
    assert_eq!(at("class C(enum.Enum):\n    «RED» = 1\n    BLUE = 2\n", new), "gone");
    assert_eq!(at("«A» = 1\nB = 2\n", "B = 1\nC = 2\n"), "gone");
    assert_eq!(at("A = 1\n«B» = 2\n", "B = 1\nC = 2\n"), "1 B Shifted");
    assert_eq!(at("«A» = 1\nB = 2\n", "B = 1\nA = 2\n"), "2 A Shifted");
    // A value stays what it was.
    assert!(at("A = «foo»()\nB = bar()\n", "B = foo()\nA = bar()\n").starts_with("1 foo "));
    assert!(at("DEBUG = «compute»(1)\nLEVEL = 2\n", "LEVEL = compute(1)\n").starts_with("1 compute "));
}

#[test]
fn a_name_and_a_body_that_went_to_different_definitions_are_ambiguous() {
    let long = "(a, b, c):\n    x = a + b\n    y = b * c\n    z = [x, y, a, b]\n    for i in z:\n        print(i, x, y)\n    return x + y + len(z)\n";
    let new = format!("def f(a, b, c):\n    return work(a, b, c)\n\ndef work{long}");
    assert_eq!(at(&format!("def «f»{long}"), &new), "ambiguous 2");
}

#[test]
fn a_statement_extracted_into_a_function_is_split() {
    let old = named("f").replace("log('sum', total)", "«log('sum', total)»");
    let new = format!(
        "{}def tell(total):\n    log('sum', total)\n",
        named("f").replace("log('sum', total)", "tell()")
    );
    assert_eq!(at(&old, &new), "9 log('sum', total) Split");
}

#[test]
fn definitions_are_found_in_other_files() {
    let old = named("«f»");
    let moved: &'static str = "import os\ndef f(data, limit):\n    total = 0\n    for item in data:\n        if item > limit:\n            total += item * limit\n    log('sum', total)\n    return total\n";
    for before in [OldContent::Absent, OldContent::Unknown, OldContent::Text("import os\n".into())] {
        match find(&old, "x = 1\n", &OneOtherFile("pkg/b.py", moved, before)) {
            RelocationOutcome::Found(place) => {
                assert_eq!((place.document.path.as_str(), place.change), ("/pkg/b.py", TargetChange::Moved));
                assert!(!place.certified);
            }
            other => panic!("{other:?}"),
        }
    }
    let known = find(&old, "x = 1\n", &OneOtherFile("pkg/b.py", moved, OldContent::Text(moved.into())));
    assert!(matches!(known, RelocationOutcome::Gone { .. }), "it existed before: {known:?}");
}

#[test]
fn deep_and_wide_texts_take_bounded_time() {
    let began = std::time::Instant::now();
    let nested: String = (0..3000).map(|depth| format!("{}def f(x):\n", " ".repeat(depth))).collect();
    let same = "x = 1\ny = 2\n".repeat(20_000);
    let other = "y = 2\nx = 1\ny = 2\n".repeat(12_000);
    let wide = format!("x = [{}]\n", "1, ".repeat(200_000));
    let twins: String = (0..300).map(named_by_number).collect();
    let moved: String = (300..600).map(named_by_number).collect();
    for (old, new) in
        [(&nested, &same), (&same, &other), (&wide, &format!("{wide}y = 1\n")), (&twins, &moved)]
    {
        for at in [0, old.len() / 2, old.len()] {
            let target = OldTarget { path: "a.py", text: old, span: at..at };
            let _ = relocate(&target, Some(&document("a.py", new)), &NoOtherFiles);
        }
    }
    assert!(began.elapsed().as_secs() < 120, "{:?}", began.elapsed());
}

fn named_by_number(number: usize) -> String {
    named(&format!("f{number}"))
}

/// Python-like text: lines of statements and headers with various indentations, some of them broken.
fn python() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["f", "g", "C", "é", "x", "self"]);
    let statement = (name.clone(), name, 0..12_usize).prop_map(|(a, b, sort)| match sort {
        0 | 1 => format!("def {a}({b}):"),
        2 => format!("class {a}({b}):"),
        3 => format!("@{a}.{b}"),
        4 => format!("{a} = {b}(1)  # {a}"),
        5 => format!("self.{a}: int = '''{b}\n  {a}'''"),
        6 => format!("if {a}: {b}"),
        7 => format!("({a}, {b} = [1"),
        8 => format!("# {a} {b}"),
        9 => format!("'{a}"),
        10 => format!("return f\"{{{a}['{b}']}}\" + {b}"),
        _ => String::new(),
    });
    prop::collection::vec((0..4_usize, statement), 0..14).prop_map(|lines| {
        lines.into_iter().map(|(depth, line)| format!("{}{line}\n", "  ".repeat(depth))).collect()
    })
}

proptest! {
    #[test]
    fn any_two_texts_have_a_valid_result(old in python(), new in python(), a in 0..200_usize, b in 0..20_usize) {
        let boundary = |mut at: usize| {
            at = at.min(old.len());
            while !old.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let span = boundary(a)..boundary(a + b);
        let target = OldTarget { path: "a.py", text: &old, span };
        let check = |place: &RelocationMatch| place.document.text.get(place.span.clone()).is_some() && (0.0..=1.0).contains(&place.score);
        match relocate(&target, Some(&document("a.py", &new)), &NoOtherFiles) {
            RelocationOutcome::Found(place) => prop_assert!(check(&place), "{:?}", place),
            RelocationOutcome::Ambiguous(places) => prop_assert!(!places.is_empty() && places.iter().all(check)),
            RelocationOutcome::Gone { closest, .. } => prop_assert!(closest.is_none_or(|place| check(&place))),
        }
    }

    #[test]
    fn a_shifted_token_is_certified(text in python(), at in 0..200_usize) {
        let structure = structure::TextStructure::new(&text);
        if structure.tokens.is_empty() || text.starts_with([' ', '\'', '"']) {
            return Ok(());
        }
        let token = structure.tokens[at % structure.tokens.len()];
        let span = token.start as usize..token.end as usize;
        let target = OldTarget { path: "a.py", text: &text, span: span.clone() };
        let before = "import something_new\n";
        match relocate(&target, Some(&document("a.py", &format!("{before}{text}"))), &NoOtherFiles) {
            RelocationOutcome::Found(place) => {
                prop_assert_eq!(place.span.start, span.start + before.len());
                prop_assert!(place.certified, "{:?}", place);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
