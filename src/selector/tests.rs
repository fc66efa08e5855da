use proptest::prelude::*;

use super::*;
use crate::digest::Digest;
use crate::path::{AbsPath, WorkspacePath};

fn canonical(text: &str) -> String {
    parse(text, ColumnUnit::Codepoint).unwrap_or_else(|error| panic!("{text}: {error:?}")).to_string()
}

fn caret(text: &str) -> String {
    let error = parse(text, ColumnUnit::Codepoint).unwrap_err();
    let width = text[error.span.clone()].chars().count().max(1);
    format!("{}{}", " ".repeat(text[..error.span.start].chars().count()), "^".repeat(width))
}

const ID: &str = "method:C.m:ppd:0123456789abcdef0123456789abcdef";

#[test]
fn canonical_spellings() {
    let content = Digest::of(b"x").to_string();
    for (text, expected) in [
        ("src/app.py@L42:C7", "src/app.py@L42:C7"),
        ("./src/app.py:42:7", "src/app.py@L42:C7"),
        ("src/app.py:42:7:", "src/app.py@L42:C7"),
        ("src/app.py@L42:C7:", "src/app.py@L42:C7"),
        ("src/app.py:42", "src/app.py@L42"),
        ("src/app.py:42:", "src/app.py@L42"),
        ("src/app.py@L42?v=git:HEAD", "src/app.py@L42?v=git:HEAD"),
        ("Makefile:3", "Makefile@L3"),
        ("file:///c:/x.py:1", "file:///C:/x.py@L1"),
        ("load_data", "load_data"),
        ("Class.method", "Class.method"),
        ("pkg.mod.Class.method:body?overload=1&v=git:a", "pkg.mod.Class.method:body?overload=1&v=git:a"),
        ("Class.method(item)", "Class.method(item)"),
        ("f:def", "f"),
        ("body", "body"),
        ("pkg.mod:Class.method", "py://pkg.mod#Class.method"),
        ("pkg.mod:Class:method:sig", "py://pkg.mod#Class.method:sig"),
        ("pkg.mod#f", "py://pkg.mod#f"),
        ("pkg.mod#f(x)", "py://pkg.mod#f(x)"),
        ("py://m#C.m(item):def?overload=0", "py://m#C.m(item)?overload=0"),
        ("tests/test_x.py::test_m", "tests/test_x.py::test_m"),
        ("./tests/test_x.py::TestC::test_m[param-1]", "tests/test_x.py::TestC::test_m"),
        ("tests/test_x.py::test_m[a[0]::b@L1 ?x=/#1]", "tests/test_x.py::test_m"),
        ("tests/test_x.py::test_m[a]?v=git:x", "tests/test_x.py::test_m?v=git:x"),
        ("tests/test_x.py::test_m(tmp_path)", "tests/test_x.py::test_m(tmp_path)"),
        ("tests/test_x.py::body", "tests/test_x.py::body"),
        ("tests/test_x.py::TestC::def:doc", "tests/test_x.py::TestC::def:doc"),
        ("/t/test x.py::f", "file:///t/test%20x.py::f"),
        (r"c:\t\test_x.py::f", "file:///C:/t/test_x.py::f"),
        ("a.py:::b.pyi@L1", "a.py:::b.pyi@L1"),
        ("src/app.py@R(42,7->44,1)", "src/app.py@R(42,7->44,1)"),
        ("a@L1:C1/b.py@L1:C2?indexing=utf-16", "a@L1:C1/b.py@L1:C2?indexing=utf-16"),
        ("a b#.py:1:1?indexing=codepoint", "a%20b%23.py@L1:C1"),
        ("py://pkg.mod#Class.method:body", "py://pkg.mod#Class.method:body"),
        ("py://m#C:m:def", "py://m#C.m"),
        ("py://m#C:body:def", "py://m#C.body"),
        ("py://m#f?overload=0", "py://m#f?overload=0"),
        ("py://m#f?v=git:HEAD~1&overload=1", "py://m#f?overload=1&v=git:HEAD~1"),
        ("/etc/x.py:1:1", "file:///etc/x.py@L1:C1"),
        ("env://lib/python3/os.py:1:1", "env://lib/python3/os.py@L1:C1"),
        (r"c:\src\my app.py:1:1", "file:///C:/src/my%20app.py@L1:C1"),
        ("C:/x.py@R(1,1->2,1)?v=git:a%26b", "file:///C:/x.py@R(1,1->2,1)?v=git:a%26b"),
        (&format!("a.py:1:1?v={content}"), &format!("a.py@L1:C1?v={content}")),
        (
            "ast://[module=pkg.mod]/[class=C]/[def=m]/call[2]",
            "ast://[module=pkg.mod]/[class=C]/[def=m]/call[2]",
        ),
        (
            "ast://[module=a%2Fb c.py]/if/[name=x][1]?v=git:main",
            "ast://[module=a%2Fb%20c.py]/if/[name=x][1]?v=git:main",
        ),
        (r#"anchor://a.py#"def f(\"x\"):\/ \n""#, "anchor://a.py#\"def%20f(%22x%22):/%20%5Cn\""),
        // A shell removes the quotes.
        ("anchor://a.py#def load_data(?ctx=24", "anchor://a.py#\"def%20load_data(\""),
        ("anchor://a.py#a ? ctx?b", "anchor://a.py#\"a%20%3F%20ctx%3Fb\""),
        ("anchor://a.py#x?ctx=2?v=git:b", "anchor://a.py#\"x%3Fctx=2\"?v=git:b"),
        (r#"anchor://a.py#"a ? #b"?ctx=24"#, "anchor://a.py#\"a%20%3F%20%23b\""),
        (
            r#"anchor://a%20b.py#"é"?v=git:x&hash=sha1:0123456789abcdef0123456789abcdef01234567&ctx=0"#,
            "anchor://a%20b.py#\"é\"?ctx=0&hash=sha1:0123456789abcdef0123456789abcdef01234567&v=git:x",
        ),
        (&format!("sym://{ID}"), &format!("sym://{ID}")),
        (&format!("sym://{ID}:2of3?v=git:x"), &format!("sym://{ID}:2of3?v=git:x")),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
        assert_eq!(canonical(expected), expected);
    }
}

#[test]
fn the_caret_is_under_the_error() {
    for (text, expected) in [
        ("src/app.py", "          ^"),
        ("src/app.py:42: in f", "             ^^^^^^"),
        ("src/app.py:42:7: F401 unused", "               ^^^^^^^^^^^^^"),
        ("src/app.py:42:    x = f(1)", "             ^^^^^^^^^^^^^"),
        ("tests/t.py::f[1] - assert", "                ^^^^^^^^^"),
        ("tests/t.py::1", "            ^"),
        ("tests/t.py::", "            ^"),
        ("src/app.py:0", "           ^"),
        ("app.py:f", "        ^"),
        ("two words", "^^^^^^^^^"),
        ("Class.", "^^^^^^"),
        ("", "^"),
        ("py://m#f(", "         ^"),
        ("py://m#f(a", "         ^"),
        ("py://m#f(a,b)", "         ^^^^"),
        ("py://m#f()", "         ^"),
        ("src/app.py@L0:C1", "            ^"),
        ("src/app.py@L1:C", "               ^"),
        ("src/app.py@L1;C1", "             ^"),
        ("src/app.py@R(1,1->1)", "                   ^"),
        ("a.py@R(2,1->1,1)", "       ^^^^^^^^"),
        ("../x.py:1:1", "^^^^^^^"),
        ("gopher://x", "^^^^^^^^^"),
        ("py://pkg.mod", "            ^"),
        ("py://pkg..mod#f", "         ^"),
        ("py://m#1f", "       ^^"),
        ("py://m#f?overlord=1", "         ^^^^^^^^"),
        ("py://m#f?overload=x", "                  ^"),
        ("py://m#f?overload=1&overload=1", "                    ^^^^^^^^"),
        ("a.py:1:1?indexing=utf-7", "                  ^^^^^"),
        ("a.py:1:1?v=git:", "           ^^^^"),
        ("a.py:1:1?v=sha256:00", "           ^^^^^^^^^"),
        ("ast://", "      ^"),
        ("ast://[module=m]/[klass=C]", "                  ^^^^^"),
        ("ast://[module=m]/[class=]", "                        ^"),
        ("ast://[module=m]/[class=C", "                         ^"),
        ("ast://[module=m]/[class]", "                       ^"),
        ("ast://[module=m]/call[0]", "                      ^"),
        ("ast://[module=m]/call[2", "                       ^"),
        ("ast://[module=m]/call[2]x", "                        ^"),
        ("ast://[module=m]//call", "                 ^"),
        ("anchor://a.py", "             ^"),
        ("anchor://a.py#", "              ^"),
        ("anchor://a.py#?ctx=2", "              ^"),
        ("anchor://a.py#\"x", "                ^"),
        ("anchor://a.py#\"\"", "              ^^"),
        ("anchor://a.py#\"%x\"", "              ^^^^"),
        ("anchor://a.py#\"x\"y", "                 ^"),
        ("anchor://a.py#\"x\"?hash=sha1:0", "                       ^^^^^^"),
        ("anchor://../a.py#\"x\"", "         ^^^^^^^"),
        ("sym://method:C.m", "      ^^^^^^^^^^"),
        ("sym://", "      ^"),
    ] {
        assert_eq!(caret(text), expected, "{text}");
    }
}

#[test]
fn a_path_that_looks_like_a_position_can_be_printed() {
    for text in ["file:///w/a.py:3:.py3:.py@L33", "a.py:3:b@L4:C5", "a.py:1::@R(1,2->3,4)"] {
        let parsed = parse(text, ColumnUnit::Codepoint).unwrap();
        assert_eq!(parsed.to_string().split('?').next(), Some(text));
    }
    assert!(parse("a.py:3: see b.py@L4", ColumnUnit::Codepoint).is_err());
}

#[test]
fn an_error_names_what_is_expected() {
    let expected = |text: &str| parse(text, ColumnUnit::Codepoint).unwrap_err().expected;
    assert!(expected("ast://[klass=C]").starts_with("one of module, class, def, name,"));
    assert_eq!(expected("src/app.py:42:7: F401"), "the end of the selector: src/app.py:42:7");
    let forms = expected("two words");
    assert!(forms.len() <= 3 * 100, "{}", forms.len());
    for form in
        ["path:LINE,", "path:LINE:COL,", "Class.method,", "py://pkg.mod#function(parameter),", "::test_name,"]
    {
        assert!(forms.contains(form), "{form}");
    }
    assert_eq!(expected("sym://x?y=1"), "a symbol id as printed in bundles");
    assert_eq!(expected("anchor://a.py#\"x\"?y=1"), "ctx=<number>, hash=sha1:<digits> or v=<version>");
    assert_eq!(expected("py://m#f?ctx=1"), "overload=<number> or v=<version>");
}

#[test]
fn units_of_columns_are_the_same_in_every_form() {
    for (name, unit) in
        [("utf-8", "utf-8"), ("utf-16", "utf-16"), ("codepoint", "codepoint"), ("utf-32", "codepoint")]
    {
        let unit = ColumnUnit::parse(unit).unwrap();
        let text = parse(&format!("a.py:1:1?indexing={name}"), ColumnUnit::Codepoint).unwrap();
        let json = format!(r#"{{"kind":"cursor","uri":"a.py","line":1,"col":1,"indexing":"{name}"}}"#);
        assert_eq!(serde_json::from_str::<PositionSpec>(&json).unwrap(), text);
        assert!(matches!(text, PositionSpec::Cursor(cursor) if cursor.indexing == unit), "{name}");
    }
    for name in ["bytes", "utf8", "UTF-8", "utf-7", ""] {
        let error = parse(&format!("a.py:1:1?indexing={name}"), ColumnUnit::Codepoint).unwrap_err();
        assert!(error.is_unknown_unit, "{name}");
        let json = format!(r#"{{"kind":"cursor","uri":"a.py","line":1,"col":1,"indexing":"{name}"}}"#);
        assert!(serde_json::from_str::<PositionSpec>(&json).is_err(), "{name}");
    }
    assert!(!parse("a.py:1:1?indexin=x", ColumnUnit::Codepoint).unwrap_err().is_unknown_unit);
}

#[test]
fn an_ordinal_counts_unless_there_is_only_one_child() {
    for (text, counted) in [
        ("ast://[module=m]/[class=C]/[def=f]/name[1]", None),
        ("ast://[module=m]/[class=C]/name[2]", None),
        ("ast://[module=m]/[def=f]/params[1]/param[1]", Some("param[1]")),
        ("ast://[module=m]/[def=f]/returns[1]/name[1]", Some("name[1]")),
        ("ast://[module=m]/doc[1]", None),
        ("ast://[module=m]/[def=f]/body[1]/if[1]/body[1]", Some("if[1]")),
        ("ast://[module=m]/if/body[1]", Some("body[1]")),
        ("ast://[module=m]/[def=f]/[name=x][1]", Some("[name=x][1]")),
        ("ast://[module=m]/name[1]", Some("name[1]")),
        ("ast://[module=m]/[def=f][2]/name[1]", Some("[def=f][2]")),
    ] {
        let PositionSpec::Ast(spec) = parse(text, ColumnUnit::Codepoint).unwrap() else { panic!("{text}") };
        assert_eq!(spec.counted_step().map(ToString::to_string).as_deref(), counted, "{text}");
    }
}

#[test]
fn sketches_compare() {
    assert!((Sketch(7).similarity(Sketch(7)) - 1.0).abs() < 1e-9);
    assert!(Sketch(u128::MAX).similarity(Sketch(0)) < 1e-9);
    let half = Sketch(u128::MAX).similarity(Sketch(u128::MAX << 64));
    assert!((0.45..0.5).contains(&half), "{half}");
}

#[test]
fn the_json_form() {
    let json = r#"{"kind":"ast","path":[["module","pkg.mod"],["class","C"],["call",2],["def","m",1]],"docVersion":"git:HEAD"}"#;
    let spec: PositionSpec = serde_json::from_str(json).unwrap();
    assert_eq!(spec.to_string(), "ast://[module=pkg.mod]/[class=C]/call[2]/[def=m][1]?v=git:HEAD");
    assert_eq!(serde_json::to_string(&spec).unwrap(), json);
    for wrong in [
        r#"{"kind":"ast","path":[]}"#,
        r#"{"kind":"ast","path":[["def","m",0]]}"#,
        r#"{"kind":"ast","path":[["def",1,"m"]]}"#,
        r#"{"kind":"ast","path":[["function","m"]]}"#,
        r#"{"kind":"anchor","uri":"a.py","snippet":""}"#,
        r#"{"kind":"symid","id":"x"}"#,
        r#"{"kind":"line","uri":"a.py","line":0}"#,
        r#"{"kind":"name","name":"a.py"}"#,
        r#"{"kind":"name","name":""}"#,
        r#"{"kind":"name","name":"f","param":"x y"}"#,
        r#"{"kind":"name","name":"f","uri":"README.md"}"#,
        r#"{"kind":"cursor","uri":"a.py","line":1,"col":1,"docVersion":"git:"}"#,
    ] {
        assert!(serde_json::from_str::<PositionSpec>(wrong).is_err(), "{wrong}");
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_][a-z0-9_]{0,5}", "(body|def|sig|doc|é1|名)"]
}

fn uri() -> impl Strategy<Value = DocUri> {
    let path = prop::collection::vec("[-a-z@RL(#%?\" :)é名.,>]{1,6}|@R\\([a-z]", 1..4)
        .prop_map(|parts| parts.join("/"))
        .prop_filter_map("a workspace path", |path| WorkspacePath::new(&path));
    prop_oneof![
        path.clone().prop_map(DocUri::Workspace),
        path.clone().prop_map(|path| DocUri::Env(path.to_string())),
        path.clone().prop_map(|path| DocUri::Server(path.to_string())),
        path.prop_map(|path| DocUri::File(AbsPath::new(format!("/{path}")).unwrap())),
    ]
    // `x://` at the start of a workspace path is parsed as a scheme, and `x:/` as a drive, so such a folder has no relative
    // spelling.
    .prop_filter("no scheme inside", |uri| match uri {
        DocUri::Workspace(path) => {
            let path = path.as_str();
            !path.contains("://") && !path.starts_with("file:") && path.get(1..3) != Some(":/")
        }
        // A drive has one spelling.
        DocUri::File(path) => path.as_str().get(2..4) != Some(":/"),
        _ => true,
    })
}

/// The file of a name: it ends in `.py`, and may contain the text that ends a path.
fn python_uri() -> impl Strategy<Value = DocUri> {
    (uri(), "(\\.py::?|)", "\\.py[iw]?").prop_filter_map("a Python file", |(uri, inner, suffix)| {
        DocUri::parse(&format!("{uri}{inner}{suffix}"))
    })
}

fn unit() -> impl Strategy<Value = ColumnUnit> {
    prop_oneof![Just(ColumnUnit::Utf8), Just(ColumnUnit::Utf16), Just(ColumnUnit::Codepoint)]
}

fn version() -> impl Strategy<Value = Option<DocVersion>> {
    let git = "[-a-zA-Z0-9~^@{}/.:&?#%\"=é]{1,12}".prop_map(|text| DocVersion::parse(&format!("git:{text}")));
    prop_oneof![
        Just(None),
        git,
        any::<[u8; 8]>().prop_map(|seed| Some(DocVersion::Content(Digest::of(&seed))))
    ]
}

fn symbol_id() -> impl Strategy<Value = SymbolId> {
    let names = prop::collection::vec(name(), 1..4);
    let ordinal =
        prop::option::of((1..5_u32, 0..3_u32).prop_map(|(which, more)| (which, (which + more).max(2))));
    ("[a-zA-Z]{1,8}", names, "[pdanmk]{0,5}", any::<u128>(), ordinal).prop_map(
        |(kind, names, shape, sketch, ordinal)| SymbolId {
            kind,
            names,
            shape,
            sketch: Sketch(sketch),
            ordinal,
        },
    )
}

fn step() -> impl Strategy<Value = AstStep> {
    let name = prop::option::of(prop_oneof![name(), "[^\\x00-\\x1f\\x7f-\\x9f]{1,6}"]);
    (prop::sample::select(Construct::ALL), name, prop::option::of(1..=u32::MAX))
        .prop_filter_map("a step", |(construct, name, ordinal)| AstStep::new(construct, name, ordinal))
}

pub(crate) fn spec() -> impl Strategy<Value = PositionSpec> {
    let count = 1..=u32::MAX;
    let cursor = (uri(), count.clone(), count.clone(), unit()).prop_map(|(uri, line, col, indexing)| {
        PositionSpec::Cursor(CursorSpec { uri, line, col, indexing, doc_version: None })
    });
    let range = (uri(), [count.clone(), count.clone()], [count.clone(), count], unit()).prop_map(
        |(uri, a, b, indexing)| {
            let (start, end) = (a.min(b), a.max(b));
            PositionSpec::Range(RangeSpec { uri, start, end, indexing, doc_version: None })
        },
    );
    let role = prop_oneof![Just(Role::Def), Just(Role::Sig), Just(Role::Body), Just(Role::Doc)];
    let names = || prop::collection::vec(name(), 1..4);
    let param = || prop::option::of(name().prop_map(|name| Identifier::new(&name).unwrap()));
    let overload = prop::option::of(0..=u32::MAX);
    let symbol = (names(), names(), param(), role.clone(), overload.clone()).prop_map(
        |(module, names, param, role, overload)| {
            let qualname = QualName::new(ModuleName::new(&module.join(".")).unwrap(), names).unwrap();
            PositionSpec::Symbol(SymbolSpec { qualname, param, role, overload, doc_version: None })
        },
    );
    let line = (uri(), 1..=u32::MAX)
        .prop_map(|(uri, line)| PositionSpec::Line(LineSpec { uri, line, doc_version: None }));
    let named = (prop::option::of(python_uri()), names(), param(), role, overload).prop_filter_map(
        "names do not end like a path",
        |(uri, names, param, role, overload)| {
            let name = DottedName::new(names)?;
            Some(PositionSpec::Name(NameSpec { uri, name, param, role, overload, doc_version: None }))
        },
    );
    let ast = prop::collection::vec(step(), 1..5)
        .prop_map(|path| PositionSpec::Ast(AstSpec { path, doc_version: None }));
    let anchor =
        (uri(), ".{1,12}|[\\\\/\"%#? \n\r\t\u{0}é😀a]{1,12}", 0..=u32::MAX, prop::option::of(any::<u8>()))
            .prop_map(|(uri, snippet, ctx, seed)| {
                let hash = seed.map(|seed| ContextHash::of(&seed.to_string(), 0..0, 9).unwrap());
                PositionSpec::Anchor(AnchorSpec { uri, snippet, ctx, hash, doc_version: None })
            });
    let symid = symbol_id().prop_map(|id| PositionSpec::Symid(SymidSpec { id, doc_version: None }));
    (prop_oneof![cursor, range, line, symbol, named, ast, anchor, symid], version()).prop_map(
        |(mut spec, version)| {
            spec.set_doc_version(version);
            spec
        },
    )
}

#[test]
fn coordinates_are_counted_from_one_in_json_too() {
    let read = |text: &str| serde_json::from_str::<PositionSpec>(text);
    assert!(read(r#"{"kind":"cursor","uri":"a.py","line":1,"col":1}"#).is_ok());
    assert!(read(r#"{"kind":"cursor","uri":"a.py","line":0,"col":1}"#).is_err());
    assert!(read(r#"{"kind":"range","uri":"a.py","start":[1,0],"end":[1,1]}"#).is_err());
    assert!(read(r#"{"kind":"range","uri":"a.py","start":[2,1],"end":[1,1]}"#).is_err());
}

#[test]
fn a_version_is_a_digest_or_a_revision_but_not_a_file_of_one() {
    for version in ["git:HEAD", "git:v1.2^{}", "git:HEAD~3", "git:a@%7B1%7D"] {
        assert!(parse(&format!("a.py:1:1?v={version}"), ColumnUnit::Codepoint).is_ok(), "{version}");
    }
    for version in ["git:HEAD:nonsense", "git::0:a.py", "git:", "git:-x", "sha256:12", "HEAD"] {
        let error = parse(&format!("a.py:1:1?v={version}"), ColumnUnit::Codepoint).unwrap_err();
        assert_eq!(
            (error.span, error.expected.as_str()),
            (11..11 + version.len(), "sha256:<64 digits> or git:<revision>")
        );
    }
}

proptest! {
    #[test]
    fn parse_is_the_inverse_of_print(spec in spec()) {
        let text = spec.to_string();
        prop_assert_eq!(parse(&text, ColumnUnit::Codepoint).unwrap(), spec.clone(), "{}", text);
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(serde_json::from_str::<PositionSpec>(&json).unwrap(), spec);
    }

    #[test]
    fn print_is_canonical_and_nothing_panics(
        text in "\\PC{0,30}|(py://|a\\.py|a\\.py::|ast://|anchor://a#\"|sym://)?[a-z@LRC0-9:#.,()>?=&\\[\\]/%\\\\\"é-]{0,24}",
    ) {
        match parse(&text, ColumnUnit::Codepoint) {
            Ok(spec) => {
                let printed = spec.to_string();
                prop_assert_eq!(parse(&printed, ColumnUnit::Codepoint).unwrap().to_string(), printed);
            }
            Err(error) => prop_assert!(text.get(error.span.clone()).is_some(), "{:?} in {:?}", error.span, text),
        }
    }
}
