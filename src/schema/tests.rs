//! Compares validation, which reads documents as their types, with a validator of schemas: on `fixtures/schemas/`, on
//! generated bundles, and on documents that are one change away from a valid one.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{MAX_PROBLEMS, SchemaKind, Validity, export, validate};
use crate::bundle::order;
use crate::bundle::seal::{BundleDraft, bundle_id, seal};
use crate::digest::strict_json;
use crate::model::batch::BatchLine;
use crate::model::bundle::{Bundle, Limits};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::facts::{Facts, Location, Provenance};
use crate::model::request::{Command, Request};
use crate::model::trace::Event;
use crate::path::DocUri;
use crate::reward::state::{renew_digest, renew_measured};
use crate::selector::tests::spec;
use crate::selector::{self, PositionSpec};
use crate::text::{ColumnUnit, Position, Range};

/// Whether golden files are written instead of compared.
#[expect(clippy::disallowed_methods, reason = "a test's own switch, not a setting of the program")]
fn update() -> bool {
    std::env::var_os("LANSER_UPDATE").is_some_and(|value| value == "1")
}

fn fixtures(folder: &str) -> PathBuf {
    let parent = if folder == "valid" { "fixtures/schemas" } else { "tests/rejected" };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(parent).join(folder)
}

/// The documents of a folder: file name, kind and bytes.
fn corpus(folder: &str) -> Vec<(String, SchemaKind, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(fixtures(folder))
        .unwrap()
        .map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let kind = SchemaKind::parse(name.split('-').next().unwrap()).unwrap();
            let bytes = fs::read(fixtures(folder).join(&name)).unwrap();
            (name, kind, bytes)
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} has documents");
    files
}

/// The compiled schema of a kind.
fn validator(kind: SchemaKind) -> &'static Validator {
    static ALL: LazyLock<Vec<(SchemaKind, Validator)>> = LazyLock::new(|| {
        let compile = |kind| {
            let schema: Value = serde_json::from_str(export(kind)).unwrap();
            (kind, jsonschema::draft202012::new(&schema).unwrap())
        };
        SchemaKind::ALL.into_iter().map(compile).collect()
    });
    &ALL.iter().find(|(of, _)| *of == kind).unwrap().1
}

fn fits_schema(kind: SchemaKind, bytes: &[u8]) -> bool {
    strict_json::from_slice::<Value>(bytes).is_ok_and(|value| validator(kind).is_valid(&value))
}

fn fits_type(kind: SchemaKind, bytes: &[u8]) -> bool {
    match kind {
        SchemaKind::Bundle => strict_json::from_slice::<Bundle>(bytes).is_ok(),
        SchemaKind::Selector => strict_json::from_slice::<PositionSpec>(bytes).is_ok(),
        SchemaKind::Request => strict_json::from_slice::<Request>(bytes).is_ok(),
        SchemaKind::Trace => strict_json::from_slice::<Event>(bytes).is_ok(),
        SchemaKind::Batch => strict_json::from_slice::<BatchLine>(bytes).is_ok(),
    }
}

fn sample(name: &str) -> Bundle {
    let bytes = fs::read(fixtures("valid").join(format!("bundle-{name}.json"))).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// The problems that `validate` finds in a bundle.
fn problems_of(document: &Value) -> String {
    let text = serde_json::to_vec(document).unwrap();
    validate(SchemaKind::Bundle, &text).map_or_else(|problems| problems.to_string(), |_| String::new())
}

/// A changed bundle with its digest recomputed.
fn resealed(name: &str, change: impl FnOnce(&mut Bundle)) -> Value {
    let mut bundle = sample(name);
    change(&mut bundle);
    serde_json::to_value(sealed_again(bundle)).unwrap()
}

fn sealed_again(mut bundle: Bundle) -> Bundle {
    renew_measured(&mut bundle);
    bundle.bundle_id = bundle_id(&bundle).unwrap();
    renew_digest(&mut bundle);
    bundle
}

#[test]
fn schema_and_type_agree_on_the_corpus() {
    let mut problems = Vec::new();
    for (folder, by_schema, by_type) in
        [("valid", true, true), ("invalid", false, false), ("refused-by-type", true, false)]
    {
        for (name, kind, mut bytes) in corpus(folder) {
            if update() && kind == SchemaKind::Bundle {
                let bundle: Bundle = serde_json::from_slice(&bytes).unwrap();
                bytes = serde_json::to_vec_pretty(&sealed_again(bundle)).unwrap();
                bytes.push(b'\n');
                fs::write(fixtures(folder).join(&name), &bytes).unwrap();
            }
            assert_eq!(fits_schema(kind, &bytes), by_schema, "the schema on {folder}/{name}");
            assert_eq!(fits_type(kind, &bytes), by_type, "the type on {folder}/{name}");
            match validate(kind, &bytes) {
                Ok(validity) => assert_eq!((folder, validity), ("valid", Validity::Whole), "{name}"),
                Err(found) => problems.push(format!("{folder}/{name}\n{found}\n")),
            }
        }
    }
    let problems = problems.join("\n");
    let golden = fixtures("problems.txt");
    if update() {
        fs::write(golden, problems).unwrap();
    } else {
        assert_eq!(problems, fs::read_to_string(golden).unwrap(), "LANSER_UPDATE=1 rewrites the file");
    }
}

/// Every value in a document, by its JSON pointer.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                pointers(member, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_single_change_to_a_bundle_is_found() {
    for name in ["full", "error", "minimal"] {
        let good = serde_json::to_value(sample(name)).unwrap();
        assert_eq!(problems_of(&good), "", "{name}");
        let mut all = Vec::new();
        pointers(&good, "", &mut all);
        for pointer in all {
            let changed = |change: &dyn Fn(&mut Value)| {
                let mut document = good.clone();
                change(document.pointer_mut(&pointer).unwrap());
                document
            };
            let fits = |document: &Value| validator(SchemaKind::Bundle).is_valid(document);

            // No value in a bundle may be a list of objects with a member of this name.
            let other = changed(&|value| *value = json!([{"unknown": null}]));
            assert!(!fits(&other), "{name}: another type at {pointer}");
            assert_ne!(problems_of(&other), "", "{name}: another type at {pointer}");

            if good.pointer(&pointer).unwrap().is_object() {
                let more = changed(&|value| value["unknown"] = json!({}));
                assert!(!fits(&more), "{name}: another member at {pointer}");
                assert_ne!(problems_of(&more), "");
            }

            let Some((parent, key)) = pointer.rsplit_once('/') else { continue };
            let mut less = good.clone();
            match less.pointer_mut(parent).unwrap() {
                Value::Object(members) => drop(members.remove(key)),
                Value::Array(items) => drop(items.remove(key.parse().unwrap())),
                _ => unreachable!("only containers have members"),
            }
            // Members of `volatile` are optional.
            if !pointer.starts_with("/meta/volatile/") {
                assert_ne!(problems_of(&less), "", "{name}: nothing at {pointer}");
            }
        }
    }
}

/// The types are at least as strict as their schemas: about every minimum, pattern, enumeration and name of a member.
#[test]
fn a_changed_document_that_its_type_accepts_fits_the_schema() {
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(4_294_967_296_u64),
        json!(""),
        json!("x y"),
        json!([]),
        json!([0, 0]),
        json!({}),
    ];
    let mut wrong = Vec::new();
    for (name, kind, bytes) in corpus("valid") {
        if kind == SchemaKind::Bundle {
            continue;
        }
        let good: Value = strict_json::from_slice(&bytes).unwrap();
        let mut check = |what: String, document: &Value| {
            let text = serde_json::to_vec(document).unwrap();
            if validate(kind, &text).is_ok() && !validator(kind).is_valid(document) {
                wrong.push(format!("{name}: {what}"));
            }
        };
        let mut all = Vec::new();
        pointers(&good, "", &mut all);
        for pointer in all {
            for other in &others {
                let mut document = good.clone();
                *document.pointer_mut(&pointer).unwrap() = other.clone();
                check(format!("{other} at {pointer}"), &document);
            }
            let mut document = good.clone();
            if let Some(members) = document.pointer_mut(&pointer).and_then(Value::as_object_mut) {
                members.insert("unknown".to_owned(), json!(0));
                check(format!("another member at {pointer}"), &document);
                for key in good.pointer(&pointer).and_then(Value::as_object).unwrap().keys() {
                    let mut document = good.clone();
                    document.pointer_mut(&pointer).and_then(Value::as_object_mut).unwrap().remove(key);
                    check(format!("no {key} at {pointer}"), &document);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Only a [`Score`](crate::digest::Score) is finite by its type, and a float that is not has no canonical form.
#[test]
fn the_only_floats_are_scores() {
    fn floats(schema: &Value, at: &str, found: &mut Vec<String>) {
        let mut all = Vec::new();
        pointers(schema, at, &mut all);
        found.extend(all.into_iter().filter(|pointer| match schema.pointer(pointer) {
            Some(Value::String(name)) if name == "number" => pointer.contains("/type"),
            _ => false,
        }));
    }
    for kind in SchemaKind::ALL {
        let mut found = Vec::new();
        floats(&serde_json::from_str(export(kind)).unwrap(), "", &mut found);
        found.retain(|pointer| pointer != "/$defs/Score/type");
        assert!(found.is_empty(), "{kind}: {found:?}");
    }
}

#[test]
fn the_digest_covers_the_content() {
    let good = serde_json::to_value(sample("full")).unwrap();
    let id = good["bundleId"].as_str().unwrap().to_owned();
    for at in "sha256:".len()..id.len() {
        let flipped = if id.as_bytes()[at] == b'0' { "1" } else { "0" };
        let mut document = good.clone();
        document["bundleId"] = format!("{}{flipped}{}", &id[..at], &id[at + 1..]).into();
        let found = problems_of(&document);
        assert!(found.starts_with("$.bundleId (line 1, column "), "{found}");
        assert!(found.ends_with(&format!("the digest of the content is {id}")), "{found}");
    }
}

#[test]
fn inconsistent_parts_are_found() {
    let cases = [
        (
            resealed("full", |b| b.meta.exit_code = 3),
            "$.meta.exit_code",
            "3 is not 0, the exit code that follows from error and verdict",
        ),
        (
            resealed("error", |b| b.meta.exit_code = 0),
            "$.meta.exit_code",
            "0 is not 3, the exit code that follows from error and verdict",
        ),
        (
            resealed("error", |b| {
                b.error.as_mut().unwrap().code = 4;
                b.meta.exit_code = 4;
            }),
            "$.error.code",
            "4 is not 3, the code of E/NOT_FOUND",
        ),
        (
            resealed("error", |b| b.error.as_mut().unwrap().retryable = ErrorSymbol::Internal.retryable()),
            "$.error.retryable",
            "not the value for E/NOT_FOUND",
        ),
        (
            resealed("minimal", |b| b.status = sample("error").status),
            "$.status",
            "the status is \"error\" if and only if there is an error",
        ),
        (
            resealed("minimal", |b| b.meta.hashing.algo = "md5".to_owned()),
            "$.meta.hashing.algo",
            "\"md5\" is not \"sha256-jcs-v1\"",
        ),
    ];
    for (document, path, message) in cases {
        let found = problems_of(&document);
        assert!(found.starts_with(&format!("{path} (line 1, ")) && found.ends_with(message), "{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}

#[test]
fn unsorted_lists_are_found() {
    let out_of_order = "from here on, the list is not sorted by uri and range, or contains duplicates";
    let swapped = |change: &dyn Fn(&mut Facts)| {
        problems_of(&resealed("full", |b| change(Arc::make_mut(b.facts.as_mut().unwrap()))))
    };
    for (found, path) in [
        (swapped(&|f| f.references.as_mut().unwrap().swap(1, 2)), "$.facts.references[1]"),
        (
            swapped(&|f| {
                let twice = f.references.as_ref().unwrap()[3].clone();
                f.references.as_mut().unwrap().push(twice);
            }),
            "$.facts.references[4]",
        ),
        (swapped(&|f| f.symbols.as_mut().unwrap().reverse()), "$.facts.symbols[0]"),
        (swapped(&|f| f.calls.as_mut().unwrap()[0].sites.reverse()), "$.facts.calls[0].sites[0]"),
    ] {
        assert!(found.starts_with(&format!("{path} (line 1, ")) && found.ends_with(out_of_order), "{found}");
    }
}

/// A bundle's digest covers its text, so a value that the type accepts in two forms has only one form in a bundle.
#[test]
fn a_bundle_has_one_form() {
    let good = serde_json::to_value(sample("full")).unwrap();
    for (pointer, value, message) in [
        ("/facts/references/0/uri", json!("./a.py"), r#"lanser writes "a.py" here, not "./a.py""#),
        ("/resolution/resolved/confidence", json!(0.875_000_1), "lanser writes 0.875 here, not 0.8750001"),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        let found = problems_of(&document);
        assert!(found.ends_with(message) && found.lines().count() == 1, "{found}");
    }
    let mut minimal = serde_json::to_value(sample("minimal")).unwrap();
    minimal["request"]["options"]["scope"] = "workspace".into();
    let found = problems_of(&minimal);
    assert!(
        found.starts_with("$.request.options.scope ") && found.ends_with("lanser omits this member here"),
        "{found}"
    );
}

#[test]
fn other_versions_are_rejected() {
    let mut document = serde_json::to_value(sample("minimal")).unwrap();
    document["version"] = "1.3".into();
    let message = crate::schema::history::unknown_version(SchemaKind::Bundle, "1.3");
    assert_eq!(problems_of(&document), format!("$: {message}"));
}

#[test]
fn many_problems_are_cut_off() {
    let document = resealed("full", |bundle| {
        let facts = Arc::make_mut(bundle.facts.as_mut().unwrap());
        let mut call = facts.calls.as_ref().unwrap()[0].clone();
        call.sites.reverse();
        facts.calls = Some(vec![call; 30]);
    });
    let problems = validate(SchemaKind::Bundle, &serde_json::to_vec(&document).unwrap()).unwrap_err();
    assert_eq!(problems.listed.len(), MAX_PROBLEMS);
}

#[test]
fn long_values_are_not_repeated() {
    let long = json!({"kind": "cursor", "uri": ["x".repeat(9000)], "line": "y".repeat(9000), "col": 1});
    let found = validate(SchemaKind::Selector, &serde_json::to_vec(&long).unwrap()).unwrap_err().to_string();
    assert!(found.len() < 600, "{found}");
}

fn uri() -> impl Strategy<Value = DocUri> {
    "(env://|server://|file:///)?[a-zé#? %]{1,4}(/[a-z~._-]{3,5})?"
        .prop_filter_map("a document URI", |text| DocUri::parse(&text.replace('%', "%25")))
}

fn location() -> impl Strategy<Value = Location> {
    (uri(), 0..4_u32, any::<u32>(), any::<String>(), prop::option::of(any::<String>())).prop_map(
        |(uri, line, column, at, preview)| Location {
            uri,
            range: Range::new(Position::new(line, column), Position::new(line + 1, 0)),
            at,
            symbol_id: None,
            provenance: None,
            agreement: None,
            via: None,
            preview,
        },
    )
}

fn error() -> impl Strategy<Value = ErrorBody> {
    let lines = || prop::collection::vec(any::<String>(), 0..3);
    let data = prop_oneof![
        lines().prop_map(|selectors| ErrorData::Suggestions { selectors }),
        (any::<String>(), any::<[u32; 2]>(), any::<String>())
            .prop_map(|(text, span, expected)| ErrorData::Syntax { text, span, expected }),
        lines().prop_map(|lines| ErrorData::Stderr { lines }),
        lines().prop_map(|attempts| ErrorData::Tried { attempts }),
        any::<String>().prop_map(|path| ErrorData::Changed { path }),
    ];
    let symbol = prop::sample::select(ErrorSymbol::ALL.to_vec());
    (symbol, any::<String>(), prop::option::of(any::<String>()), prop::option::of(data))
        .prop_map(|(symbol, message, hint, data)| ErrorBody { hint, data, ..ErrorBody::new(symbol, message) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn sealed_bundles_are_valid(
        spec in spec(),
        mut references in prop::collection::vec(location(), 0..6),
        error in prop::option::of(error()),
        capabilities in prop::collection::btree_map(any::<String>(), any::<bool>(), 0..3),
        partial: bool,
        total in prop::option::of(any::<u32>()),
    ) {
        order::sort(&mut references);
        let facts = Facts { references: Some(references), ..Facts::new(Provenance::Lsp) };
        let bundle = seal(BundleDraft {
            measured: None,
            edits: None,
            request: Some(Request::about(Command::References, spec)),
            resolution: None,
            facts: error.is_none().then_some(facts),
            environment: sample("full").environment,
            capabilities,
            error,
            warnings: Vec::new(),
            relocation: None,
            limits: total.map(|total| Limits { cap: 5, total, truncated: false, cursor: None }),
            partial,
        })
        .unwrap();
        let text = serde_json::to_vec_pretty(&bundle).unwrap();
        if let Err(problems) = validate(SchemaKind::Bundle, &text) {
            prop_assert!(false, "{problems}");
        }
        prop_assert_eq!(strict_json::from_slice::<Bundle>(&text).unwrap(), bundle);
    }

    #[test]
    fn selectors_are_valid_as_json_and_as_text(spec in spec()) {
        let json = serde_json::to_vec(&spec).unwrap();
        prop_assert_eq!(validate(SchemaKind::Selector, &json), Ok(Validity::Whole));
        prop_assert_eq!(selector::parse(&spec.to_string(), ColumnUnit::default()), Ok(spec));
    }
}
