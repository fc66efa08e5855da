//! The preview is a patch: git accepts it, and applying it gives the same files as `--apply`.

use serde_json::{Value, json};

use super::Repository;
use crate::support::Project;

/// A workspace with files that patches find hard.
fn difficult_files() -> Repository {
    let project = Project::parse("//- /plain.py\na = 1\nb = 2\nc = 3\n//- /empty.py\n//- /gone.py\nx = 1\n")
        .and("crlf.py", "a = 1\r\nb = 2\r\nc = 3\r\n")
        .and("mixed.py", "a = 1\r\nb = 2\nc = 3\r\n")
        .and("bom.py", "\u{feff}a = 1\nb = 2\n")
        .and("noend.py", "a = 1\nb = 2")
        .and("latin.py", &b"# coding: latin-1\na = '\xe9\xff'\nb = 2\n"[..])
        .and("cp1252.py", &b"# coding: cp1252\r\na = '\x80'\r\nb = 2"[..])
        .and("pfad/ü ß/ä.py", "a = 'ü'\nb = 2\n")
        .and("q\"uo\\te.py", "a = 1\n")
        .and("tab\there.py", "a = 1\n")
        .and("-dash.py", "a = 1\n")
        .and("feed.py", "a = 1\n\x0cb = '\u{85}\u{2028}😀'\nc = 3\n");
    Repository::with_ty(&project)
}

fn change(uri: &str, line: u32, text: &str) -> Value {
    let at = |character: u32| json!({"line": line, "character": character});
    json!({
        "textDocument": {"uri": uri, "version": null},
        "edits": [{"range": {"start": at(0), "end": at(0)}, "newText": text}],
    })
}

#[test]
fn git_applies_every_preview_with_the_same_result() {
    let repository = difficult_files();
    let before = repository.tree();
    let names = [
        "plain.py",
        "empty.py",
        "crlf.py",
        "mixed.py",
        "bom.py",
        "noend.py",
        "latin.py",
        "cp1252.py",
        "pfad/%C3%BC%20%C3%9F/%C3%A4.py",
        "q%22uo%5Cte.py",
        "tab%09here.py",
        "-dash.py",
        "feed.py",
    ];
    let everywhere = |line: u32, text: &str| -> Vec<Value> {
        let has = |name: &&&str| {
            line == 0 || !["empty.py", "q%22uo%5Cte.py", "tab%09here.py", "-dash.py"].contains(name)
        };
        names.iter().filter(has).map(|name| change(name, line, text)).collect()
    };
    let with_newline = names.iter().map(|name| {
        let line = u32::from(*name == "latin.py" || *name == "cp1252.py");
        change(name, line, "z = 1\r\n")
    });
    let cases: Vec<(&str, Vec<Value>)> = vec![
        ("a word in the second line of each", everywhere(1, "z")),
        ("a line in each", with_newline.collect()),
        (
            "a new file, an empty one, and one without a newline",
            vec![
                json!({"kind": "create", "uri": "neu/%C3%BC.py"}),
                change("neu/%C3%BC.py", 0, "x = 1\r\ny = 'ü'"),
                json!({"kind": "create", "uri": "neu/nothing.py"}),
            ],
        ),
        (
            "files that go",
            vec![
                json!({"kind": "delete", "uri": "gone.py"}),
                json!({"kind": "delete", "uri": "noend.py"}),
                json!({"kind": "delete", "uri": "latin.py"}),
                json!({"kind": "delete", "uri": "empty.py"}),
                json!({"kind": "delete", "uri": "pfad/%C3%BC%20%C3%9F/%C3%A4.py"}),
            ],
        ),
        (
            "files that move, as they are and edited",
            vec![
                json!({"kind": "rename", "oldUri": "gone.py", "newUri": "sub/here%20now.py"}),
                json!({"kind": "rename", "oldUri": "latin.py", "newUri": "sub/%C3%A9.py"}),
                change("sub/%C3%A9.py", 2, "zz"),
                json!({"kind": "rename", "oldUri": "noend.py", "newUri": "q%22.py"}),
                change("q%22.py", 0, "zz"),
            ],
        ),
        (
            "one takes the place of another",
            vec![
                json!({"kind": "delete", "uri": "plain.py"}),
                json!({"kind": "rename", "oldUri": "crlf.py", "newUri": "plain.py"}),
            ],
        ),
        (
            "one is replaced whole",
            vec![
                json!({"kind": "create", "uri": "feed.py", "options": {"overwrite": true}}),
                change("feed.py", 0, "x = 1\n"),
            ],
        ),
    ];
    for (what, changes) in cases {
        let edit = json!({"documentChanges": changes}).to_string();
        let dry = repository.env.lanser_with_input(["apply", "-", "--json"], &edit).plan();
        let diff = dry["edits"]["diff"].as_str().unwrap();
        repository.applies(diff);
        let args = ["apply", "-", "--apply", "--allow-new-diagnostics", "--json"];
        let made = repository.env.lanser_with_input(args, &edit).answer();
        assert_eq!(made["edits"]["diff"].as_str(), Some(diff), "{what}");
        let written = repository.tree();
        assert_ne!(written, before, "{what}");
        repository.env.lanser(["undo"]).text();
        assert_eq!(repository.tree(), before, "{what}");
        // The same with git.
        repository.git(&["apply", repository.env.path("the.patch").to_str().unwrap()]);
        assert_eq!(repository.tree(), written, "{what}\n{diff}");
        repository.git(&["checkout", "-q", "."]);
        repository.git(&["clean", "-qfd"]);
        assert_eq!(repository.tree(), before, "{what}");
        // Also applied by lanser itself, which reads no binary patches (for files in other encodings).
        if !diff.contains("GIT binary patch") {
            let again = repository.env.lanser_with_input(["apply", "-", "--json"], diff).answer();
            assert_eq!(again["edits"]["diff"].as_str(), Some(diff), "{what}");
        }
    }
}
