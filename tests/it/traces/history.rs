//! Bundles and traces of every published format, in `fixtures/history`.

use std::path::PathBuf;

use serde_json::Value;

use super::elsewhere;

fn history(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/history").join(name);
    assert!(path.exists(), "{name}");
    path.into_os_string().into_string().unwrap()
}

/// A folder for each published version: `bundle-1.4`, `trace-2.0`, ….
#[test]
fn every_version_has_documents() {
    for kind in [lanser::internal::schema::SchemaKind::Bundle, lanser::internal::schema::SchemaKind::Trace] {
        for version in &lanser::internal::schema::versions(kind)[1..] {
            history(&format!("{kind}-{version}"));
        }
    }
}

#[test]
fn documents_of_every_version_validate() {
    let all = history("");
    let output = elsewhere().lanser(["schema", "validate-batch", all.trim_end_matches('/')]);
    assert!(output.text().contains(" valid (bundle 12, trace "), "{output}");
    for folder in std::fs::read_dir(&all).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.is_dir() {
            continue;
        }
        // A forged document of an old format is found too.
        let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let env = elsewhere();
        for (old, new) in [("\"definition\"", "\"definitiom\""), ("\"line\":25", "\"lime\":25")] {
            assert!(text.contains(old), "{old} in {}", file.display());
            env.write("forged.jsonl", text.replace(old, new));
            let output = env.lanser(["schema", "validate", "forged.jsonl"]);
            assert_eq!(output.code, Some(1), "{}: {output}", file.display());
        }
    }
}

/// A changed value that fits the schema changes the digest, in old formats too.
#[test]
fn the_digest_of_an_old_bundle_is_checked() {
    let text = std::fs::read_to_string(history("bundle-1.4/bundles.jsonl")).unwrap();
    let env = elsewhere();
    env.write("forged.jsonl", text.lines().next().unwrap().replace("\"line\":25", "\"line\":26"));
    let output = env.lanser(["schema", "validate", "forged.jsonl"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(
        output.stdout.contains("$.bundleId") && output.stdout.contains("the digest of the content is"),
        "{output}"
    );
    // A version that never was, or is yet to come, is told first and only.
    env.write(
        "later.jsonl",
        text.lines().next().unwrap().replace("\"version\":\"1.4\"", "\"version\":\"7.0\""),
    );
    let output = env.lanser(["schema", "validate", "later.jsonl"]);
    assert_eq!(output.stdout.lines().count(), 2, "{output}");
    assert!(output.stdout.contains("this is a bundle of format \"7.0\"; this lanser reads "), "{output}");
}

/// Traces of the major version that this lanser reads are replayed; others are refused with both versions named.
#[test]
fn traces_of_every_version_are_replayed_or_refused() {
    let major = |version: &str| version.split('.').next().unwrap().to_owned();
    let current = lanser::model::trace::TRACE_VERSION;
    for version in ["3.0", "2.0"] {
        let trace = history(&format!("trace-{version}/trace.jsonl"));
        let output = elsewhere().lanser(["trace", "replay", "--trace-file", &trace, "--verify", "--json"]);
        if major(version) == major(current) {
            let summary: Value = serde_json::from_str(output.text()).unwrap();
            assert_eq!(
                (&summary["verified"], &summary["truncated"]),
                (&5.into(), &false.into()),
                "{summary}"
            );
        } else {
            let error = output.error(76, "E/REPLAY_MISMATCH");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(version) && message.contains(current), "{message}");
        }
    }
}

/// A bundle of another format in a trace is compared as far as it was recorded, and the report says so.
#[test]
fn a_bundle_of_another_format_is_compared_by_its_members() {
    let text = std::fs::read_to_string(history("trace-3.0/trace.jsonl")).unwrap();
    let env = elsewhere();
    let forged = |change: &dyn Fn(&mut Value)| {
        env.write("trace.jsonl", super::damage::rewritten(&text, change));
        env.lanser(["trace", "replay", "--verify", "trace.jsonl", "--op", "1"])
    };
    let output = forged(&|bundle| {
        bundle["version"] = "0.9".into();
        bundle.as_object_mut().unwrap().remove("capabilities");
    });
    let current = lanser::model::BUNDLE_VERSION;
    let note = format!("1 operation recorded in bundle format 0.9; this lanser writes {current}");
    assert!(output.text().contains(&note), "{output}");
    let listed = env.lanser(["trace", "list", "trace.jsonl"]);
    assert!(listed.text().contains("definition      ok         0"), "{listed}");
    let shown = env.lanser(["trace", "show", "trace.jsonl", "--kind", "bundle", "--op", "1"]);
    assert!(shown.text().contains(", bundle format 0.9"), "{shown}");
    let output = forged(&|bundle| {
        bundle["version"] = "0.9".into();
        bundle["facts"]["definitions"][0]["uri"] = "b.py".into();
    });
    let message = output.failure(76);
    assert!(
        message.contains("another $.facts.definitions[0].uri (recorded in bundle format 0.9"),
        "{output}"
    );
}
