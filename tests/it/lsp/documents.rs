//! What a client has open, and how it spells it.

use serde_json::json;

use super::{connect, everything, open, place, places, result, uri, with};
use crate::support::{Project, TestEnv};

/// The edits of a document as `line:column`, 1-based, and the new text.
fn edits_of(edit: &serde_json::Value, document: &str) -> Vec<String> {
    let changes = edit["documentChanges"].as_array().unwrap_or_else(|| panic!("{edit}"));
    let change = changes.iter().find(|change| change["textDocument"]["uri"] == document);
    let change = change.unwrap_or_else(|| panic!("{document}: {edit}"));
    let one = |edit: &serde_json::Value| {
        let start = &edit["range"]["start"];
        let line = start["line"].as_u64().unwrap() + 1;
        let column = start["character"].as_u64().unwrap() + 1;
        format!("{line}:{column} {}", edit["newText"].as_str().unwrap())
    };
    let mut edits: Vec<String> = change["edits"].as_array().unwrap().iter().map(one).collect();
    edits.sort();
    edits
}

const TWO_FILES: &str = "\
//- /ws/pkg/a.py
def f(x: int) -> int:
    return x
//- /ws/pkg/b.py
from pkg.a import f
print(f(1))
";

/// A client may reach the workspace, and a document, through symbolic links. Answers are about its text, and have its URIs.
#[cfg(unix)]
#[test]
fn a_workspace_behind_a_link() {
    for server in [TestEnv::pyright, TestEnv::ty] {
        let env = server(&Project::parse(TWO_FILES));
        let folder = env.cwd.canonicalize().unwrap();
        std::os::unix::fs::symlink(folder.join("ws"), folder.join("link")).unwrap();
        std::os::unix::fs::symlink(folder.join("ws/pkg/b.py"), folder.join("b_link.py")).unwrap();
        let link = format!("file://{}/link", folder.display());
        let mut client = crate::support::RpcClient::start(&env, &["lsp"], crate::support::Framing::Headers);
        let params = json!({"processId": null, "rootUri": link, "capabilities": everything()});
        assert!(client.request("initialize", params).get("error").is_none());
        let rename_at = |uri: &str, line: u32, character: u32| json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}, "newName": "g"});
        for spelled in [format!("{link}/pkg/b.py"), format!("file://{}/b_link.py", folder.display())] {
            let text = "from pkg.a import f\n\nprint(len([]), f(f(2)))\n";
            let document = json!({"uri": spelled, "languageId": "python", "version": 7, "text": text});
            client.notify("textDocument/didOpen", json!({"textDocument": document}));
            let edit = result(&mut client, "textDocument/rename", rename_at(&spelled, 2, 15));
            assert_eq!(edits_of(&edit, &spelled), ["1:19 g", "3:16 g", "3:18 g"], "{edit}");
            assert_eq!(edits_of(&edit, &format!("{link}/pkg/a.py")), ["1:5 g"], "{edit}");
            let report =
                result(&mut client, "textDocument/diagnostic", json!({"textDocument": {"uri": spelled}}));
            assert_eq!(report["items"], json!([]));
            client.notify("textDocument/didClose", json!({"textDocument": {"uri": spelled}}));
        }
        // Through another link, and with the text of the disk again.
        let spelled = format!("file://{}/b_link.py", folder.display());
        let here = json!({"textDocument": {"uri": spelled}, "position": {"line": 1, "character": 6},
            "context": {"includeDeclaration": true}});
        let found = result(&mut client, "textDocument/references", here);
        assert_eq!(places(&found), ["a.py:1:5", "b.py:1:19", "b.py:2:7"]);
        assert!(found[0]["uri"].as_str().unwrap().starts_with(&link), "{found}");
        assert_eq!(client.finish().0, Some(0));
    }
}

/// A client that does not show a byte order mark counts columns without it.
#[test]
fn a_client_that_leaves_out_the_byte_order_mark() {
    for server in [TestEnv::pyright, TestEnv::ty] {
        let env = server(&Project::parse("//- /a.py\ndef f(x: int) -> int:\n    return x\n"));
        let text = "from a import f, f as h\nprint(f(1))\n";
        env.write("b.py", format!("\u{feff}{text}"));
        let mut client = connect(&env, &[], everything());
        open(&mut client, &env, "b.py", text);
        let b = uri(&env, "b.py");
        let here = json!({"textDocument": {"uri": b}, "position": {"line": 0, "character": 14}});
        let edit = result(&mut client, "textDocument/rename", with(here.clone(), json!({"newName": "g"})));
        assert_eq!(edits_of(&edit, &b), ["1:15 g", "1:18 g", "2:7 g"], "{edit}");
        assert_eq!(places(&result(&mut client, "textDocument/definition", here)), ["a.py:1:5"]);
    }
}

/// Whether the client counts the byte order mark depends on whether it has it, in every unit.
#[test]
fn columns_beside_a_byte_order_mark() {
    let text = "ab=cd=1\nprint(ab,cd)\n";
    let env = TestEnv::ty(&Project::parse("//- /a.py\n").and("a.py", format!("\u{feff}{text}")));
    for (unit, width) in [("utf-8", 3), ("utf-16", 1), ("utf-32", 1)] {
        for sent in [Some(text.to_owned()), Some(format!("\u{feff}{text}")), Some(format!("{text}#")), None] {
            let offered = json!({"general": {"positionEncodings": [unit]}});
            let mut client = connect(&env, &[], offered);
            if let Some(sent) = &sent {
                open(&mut client, &env, "a.py", sent);
            }
            let mark = if sent.is_none_or(|sent| sent.starts_with('\u{feff}')) { width } else { 0 };
            for (column, name) in [(0, "ab"), (1, "ab"), (3, "cd"), (4, "cd")] {
                let at = json!({"textDocument": {"uri": uri(&env, "a.py")}, "position": {"line": 0, "character": column + mark}});
                let asked = with(at, json!({"context": {"includeDeclaration": true}}));
                let found = places(&result(&mut client, "textDocument/references", asked));
                let first = if name == "ab" { 1 } else { 4 };
                let expected = [format!("a.py:1:{}", first + mark), format!("a.py:2:{}", first + 6)];
                assert_eq!(found, expected, "{unit} {mark} {column}");
            }
        }
    }
}

/// What one document says about another has to follow that one.
#[test]
fn diagnostics_of_other_open_documents_are_pushed_again() {
    for server in [TestEnv::pyright, TestEnv::ty] {
        let env = server(&Project::parse(
            "//- /a.py\ndef f(x: int) -> int:\n    return x\n//- /b.py\nfrom a import f\nf(1)\n",
        ));
        let mut client = connect(&env, &[], json!({}));
        let pushed = |client: &mut crate::support::RpcClient, wanted: usize| {
            let mut found = std::collections::BTreeMap::new();
            while found.len() < 2 || found.get("b.py") != Some(&wanted) {
                let message = client.message().unwrap();
                assert_eq!(message["method"], "textDocument/publishDiagnostics", "{message}");
                let name = message["params"]["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
                found.insert(name, message["params"]["diagnostics"].as_array().unwrap().len());
            }
        };
        for name in ["a.py", "b.py"] {
            let text = std::fs::read_to_string(env.file(name)).unwrap();
            open(&mut client, &env, name, &text);
        }
        pushed(&mut client, 0);
        let text = "def f(x: str) -> str:\n    return x\n";
        let change = json!({"textDocument": {"uri": uri(&env, "a.py"), "version": 2}, "contentChanges": [{"text": text}]});
        client.notify("textDocument/didChange", change);
        pushed(&mut client, 1);
    }
}

/// Shells and other programs write files that no client has open.
#[test]
fn changes_on_the_disk_are_followed() {
    let env = TestEnv::ty(&Project::parse("//- /a.py\nX: int = 1\n//- /b.py\nfrom a import X\n"));
    let change = json!({"changes": [{"uri": uri(&env, "a.py"), "type": 2}]});
    let mut client = connect(&env, &[], json!({}));
    open(&mut client, &env, "b.py", "from a import X\n");
    let found = |client: &mut crate::support::RpcClient| {
        let message = client.message().unwrap();
        assert_eq!(message["method"], "textDocument/publishDiagnostics", "{message}");
        message["params"]["diagnostics"].as_array().unwrap().len()
    };
    assert_eq!(found(&mut client), 0);
    env.write("a.py", "Y: int = 1\n");
    client.notify("workspace/didChangeWatchedFiles", change.clone());
    assert_eq!(found(&mut client), 1);

    let pulls = json!({
        "textDocument": {"diagnostic": {}},
        "workspace": {
            "diagnostics": {"refreshSupport": true},
            "didChangeWatchedFiles": {"dynamicRegistration": true},
        },
    });
    let mut client = connect(&env, &[], pulls);
    let asked = client.message().unwrap();
    assert_eq!(asked["method"], "client/registerCapability", "{asked}");
    let registered = &asked["params"]["registrations"][0];
    assert_eq!(registered["method"], "workspace/didChangeWatchedFiles", "{asked}");
    assert_eq!(registered["registerOptions"]["watchers"][0]["globPattern"], "**/*.{py,pyi,pyw}", "{asked}");
    client.notify("workspace/didChangeWatchedFiles", change);
    let asked = client.message().unwrap();
    assert_eq!(asked["method"], "workspace/diagnostic/refresh", "{asked}");
}

/// A file may be open under more than one name. Which of two texts an answer is about would be a guess.
#[test]
fn a_file_that_is_open_under_two_names() {
    let text = "def f(x: int) -> int:\n    return x\n\n\nf('')\n";
    let env = TestEnv::ty(&Project::parse(&format!("//- /a.py\n{text}")));
    let mut client = connect(&env, &[], json!({}));
    let names = ["a.py", "%61.py"];
    for name in names {
        open(&mut client, &env, name, text);
    }
    let mut pushed = std::collections::BTreeSet::new();
    while pushed.len() < 2 {
        let message = client.message().unwrap();
        assert_eq!(message["params"]["diagnostics"].as_array().map(Vec::len), Some(1), "{message}");
        pushed.insert(message["params"]["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned());
    }
    assert!(pushed.iter().eq(["%61.py", "a.py"]), "{pushed:?}");

    let other = json!({"textDocument": {"uri": uri(&env, "%61.py"), "version": 2}, "contentChanges": [{"text": "\n"}]});
    client.notify("textDocument/didChange", other);
    for name in names {
        let place =
            json!({"textDocument": {"uri": uri(&env, name)}, "position": {"line": 4, "character": 0}});
        let refused = client.request("textDocument/definition", place);
        assert_eq!(refused["error"]["code"], -32803, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("a.py") && message.contains("%61.py"), "{message}");
    }
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri(&env, "%61.py")}}));
    let place = json!({"textDocument": {"uri": uri(&env, "a.py")}, "position": {"line": 4, "character": 0}});
    let found = result(&mut client, "textDocument/definition", place);
    assert_eq!(places(&found), ["a.py:1:5"]);
}

/// A client gets of a diagnostic what it has said that it shows.
#[test]
fn diagnostics_have_what_the_client_shows() {
    let env = TestEnv::pyright(&Project::parse("//- /a.py\nimport os\n"));
    let shows = json!({"relatedInformation": true, "tagSupport": {"valueSet": [1, 2]}});
    for (published, tags) in [(json!({}), json!(null)), (shows, json!([1]))] {
        let offered = json!({"textDocument": {"diagnostic": {}, "publishDiagnostics": published}});
        let mut client = connect(&env, &[], offered);
        let asked = json!({"textDocument": {"uri": uri(&env, "a.py")}});
        let found = result(&mut client, "textDocument/diagnostic", asked);
        assert_eq!(found["items"][0]["tags"], tags, "{found}");
    }
}

/// The server asks for whole texts; some clients send changed parts all the same.
#[test]
fn changed_parts_of_a_document_are_followed() {
    let env = TestEnv::ty(&Project::parse("//- /a.py\ndef f(): ...\n//- /b.py\nfrom a import f\n\nf()\n"));
    let mut client = connect(&env, &[], everything());
    open(&mut client, &env, "b.py", "# 😀😀 f\nfrom a import f\n\nf()\n");
    let range = |from: (u32, u32), to: (u32, u32)| json!({"start": {"line": from.0, "character": from.1}, "end": {"line": to.0, "character": to.1}});
    let change = |changes: serde_json::Value| json!({"textDocument": {"uri": uri(&env, "b.py"), "version": 2}, "contentChanges": changes});
    // In UTF-16: a call in place of the comment, then one more at the end, beyond the last line.
    let changes = json!([
        {"range": range((0, 0), (0, 7)), "text": "import a;a."},
        {"range": range((0, 12), (0, 12)), "text": "()"},
        {"range": range((90, 0), (91, 0)), "text": "f()\n"},
    ]);
    client.notify("textDocument/didChange", change(changes));
    let asked = with(place(&env, "a.py", "f()"), json!({"context": {"includeDeclaration": true}}));
    let found = places(&result(&mut client, "textDocument/references", asked.clone()));
    assert_eq!(found, ["a.py:1:5", "b.py:1:12", "b.py:2:15", "b.py:4:1", "b.py:5:1"]);
    client.notify("textDocument/didChange", change(json!([{"text": "from a import f\n"}])));
    assert_eq!(places(&result(&mut client, "textDocument/references", asked)), ["a.py:1:5", "b.py:1:15"]);
}

/// A link decides whether a copy can show the unsaved text.
#[test]
fn a_link_that_comes_and_goes_while_text_is_unsaved() {
    let env = TestEnv::ty(&Project::parse("//- /a.py\ndef f(): ...\n//- /b.py\nfrom a import f\n\nf()\n"));
    let mut client = connect(&env, &[], everything());
    open(&mut client, &env, "a.py", "def f(): ...\n\n\n# unsaved\n");
    let asked = with(place(&env, "a.py", "f()"), json!({"context": {"includeDeclaration": true}}));
    assert_eq!(result(&mut client, "textDocument/references", asked.clone()).as_array().unwrap().len(), 3);
    std::fs::create_dir(env.path("outside")).unwrap();
    std::os::unix::fs::symlink(env.path("outside"), env.file("linked")).unwrap();
    let refused = client.request("textDocument/references", asked.clone());
    assert!(refused["error"]["message"].as_str().unwrap().contains("links"), "{refused}");
    std::fs::remove_file(env.file("linked")).unwrap();
    assert_eq!(result(&mut client, "textDocument/references", asked).as_array().unwrap().len(), 3);
}

/// An answer about code that is not searched would be short without a word.
#[test]
fn files_of_a_second_folder_are_refused() {
    let env = TestEnv::ty(&Project::parse("//- /a.py\ndef f(): ...\n"));
    std::fs::create_dir(env.path("second")).unwrap();
    std::fs::write(env.path("second/b.py"), "def g(): ...\n").unwrap();
    let mut client = crate::support::RpcClient::start(&env, &["lsp"], crate::support::Framing::Headers);
    let folders = [env.cwd.clone(), env.path("second")]
        .map(|folder| json!({"uri": format!("file://{}", folder.display()), "name": "x"}));
    let params = json!({"processId": null, "rootUri": null, "workspaceFolders": folders, "capabilities": {}});
    client.request("initialize", params);
    client.notify("initialized", json!({}));
    let document = json!({"uri": format!("file://{}", env.path("second/b.py").display())});
    let at = json!({"textDocument": document, "position": {"line": 0, "character": 4}, "context": {"includeDeclaration": true}});
    for method in ["textDocument/references", "textDocument/definition", "textDocument/hover"] {
        let refused = client.request(method, at.clone());
        assert_eq!(refused["error"]["code"], -32803, "{method}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("another folder"), "{refused}");
    }
}

/// Nothing at a position is an answer; a position that is in no file is a mistake of the client.
#[test]
fn a_position_in_no_file_is_an_error() {
    let env = TestEnv::ty(&Project::parse("//- /a.py\nx = 1\nif x:\n    pass\ny = x\n"));
    let mut client = connect(&env, &[], everything());
    let at = |name: &str, line: u32| json!({"textDocument": {"uri": uri(&env, name)}, "position": {"line": line, "character": 0}});
    for method in ["textDocument/definition", "textDocument/hover", "textDocument/prepareRename"] {
        assert!(result(&mut client, method, at("a.py", 1)).is_null(), "{method}");
        for (name, line) in [("a.py", 900), ("none.py", 0)] {
            let answer = client.request(method, at(name, line));
            assert_eq!(answer["error"]["code"], -32803, "{method} {name}: {answer}");
            // Positions of the protocol begin at 0.
            let says_from_what = answer["error"]["message"].as_str().unwrap().contains("from 1");
            assert_eq!(says_from_what, name == "a.py", "{method} {name}: {answer}");
        }
    }
    // A column beyond the end of a line is its end.
    let beyond = with(at("a.py", 3), json!({"position": {"line": 3, "character": 4_000_000_000_u32}}));
    assert_eq!(places(&result(&mut client, "textDocument/definition", beyond)), ["a.py:1:1"]);
}
