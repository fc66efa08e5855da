//! The fuzz targets. Each takes one input; a violated property is a panic.

mod edits;
mod repository;
mod source;

use bytes::BytesMut;
use lanser::ColumnUnit;
use lanser::internal::digest::{Digest, strict_json};
use lanser::internal::lsp::codec::Codec;
use lanser::internal::path::AbsPath;
use lanser::internal::python::modules::ImportRoots;
use lanser::internal::schema::validate_lines;
use lanser::internal::trace::event;
use lanser::internal::trace::reader::TraceReader;
use lanser::internal::workspace::files::MemoryFiles;
use lanser::internal::workspace::server_config::ServerConfig;
use lanser::internal::workspace::virtual_env;
use lanser::model::batch::BatchLine;
use lanser::model::bundle::Bundle;
use lanser::model::server::ServerKind;
use lanser::model::trace::{Event, EventBody};
use lanser::selector::{PositionSpec, parse};
use serde_json::Value;
use tokio_util::codec::Decoder as _;

use crate::Random;
use crate::inputs::{changed, damaged, mutated, text};

/// The files to mutate.
#[derive(Default)]
pub(crate) struct Seeds {
    pub(crate) sources: Vec<String>,
    /// Bundles, requests, schemas.
    pub(crate) json: Vec<String>,
    /// Traces and batches: one JSON value per line.
    pub(crate) lines: Vec<String>,
    pub(crate) diffs: Vec<String>,
}

pub(crate) type Feed = fn(&mut Random, &Seeds);

pub(crate) const TARGETS: [(&str, Feed); 11] = [
    ("selector", selector),
    ("python", source::python),
    ("relocation", source::relocation),
    ("frames", frames),
    ("json", json),
    ("trace", trace),
    ("patch", edits::diff),
    ("edit", edits::workspace_edit),
    ("journal", edits::journal),
    ("environment", environment),
    ("repository", repository::repository),
];

/// Selectors of every kind, to be changed.
const SELECTORS: [&str; 18] = [
    "py://pkg.mod#Class.method:sig?v=git:HEAD~3",
    "py://pkg.mod",
    "py://m#f:param(x)",
    "ast://[module=pkg.mod]/[class=C]/[def=m]/name[1]",
    "ast://[module=m]/[call=f][2]",
    "anchor://src/app.py#\"return%20view\"?v=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "sym://method:C.m:p:0123456789abcdef",
    "src/app.py@L42:C7",
    "src/app.py@R(42,7->44,1)",
    "src/app.py@L42",
    "src/app.py:42:7",
    "file:///w/a%20b.py@L1:C1",
    "tests/test_x.py::TestC::test_m[a-1]",
    "pkg.mod.Class.method",
    "Class.method",
    "src/app.py#Class.method",
    "Some.thing()",
    "/w/a.py:3",
];

/// Printing a selector and parsing it gives the same one, in its text and in its JSON form.
fn selector(random: &mut Random, _: &Seeds) {
    let selector = match random.below(3) {
        0 => text(random, 40),
        1 => format!("{}{}", random.pick(&SELECTORS), text(random, 3)),
        _ => {
            let seed = random.pick(&SELECTORS);
            String::from_utf8_lossy(&damaged(random, seed.as_bytes())).into_owned()
        }
    };
    if let Ok(spec) = parse(&selector, ColumnUnit::Codepoint) {
        let printed = spec.to_string();
        assert_eq!(parse(&printed, ColumnUnit::Codepoint).as_ref(), Ok(&spec), "{printed}");
        let json = serde_json::to_value(&spec).expect("a selector is plain data");
        assert_eq!(serde_json::from_value::<PositionSpec>(json.clone()).ok(), Some(spec), "{json}");
        // A changed JSON form may be a selector that no text gives.
        if let Ok(spec) = serde_json::from_value::<PositionSpec>(changed(random, &json, &SELECTORS)) {
            let _ = parse(&spec.to_string(), ColumnUnit::Codepoint);
        }
    }
}

/// Frames split anywhere give the same messages as in one piece.
fn frames(random: &mut Random, seeds: &Seeds) {
    let mut stream = Vec::new();
    for _ in 0..random.below(4) {
        let body = match random.below(3) {
            0 => pick(random, &seeds.json, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}"),
            1 => text(random, 60),
            _ => "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":[1e999]}".to_owned(),
        };
        let header = match random.below(4) {
            0 => "content-length",
            1 => "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length",
            _ => "Content-Length",
        };
        stream.extend(format!("{header}: {}\r\n\r\n{body}", body.len()).into_bytes());
    }
    let stream = if random.below(3) == 0 { stream } else { damaged(random, &stream) };
    let decode = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut codec, mut buffer, mut messages) = (Codec::default(), BytesMut::new(), Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            loop {
                match codec.decode(&mut buffer) {
                    Ok(Some(message)) => messages.push(format!("{message:?}")),
                    Ok(None) => break,
                    // The message quotes the input seen so far.
                    Err(_) => return (messages, true),
                }
            }
        }
        let failed = codec.decode_eof(&mut buffer).is_err();
        (messages, failed)
    };
    let size = random.below(50) + 1;
    assert_eq!(decode(&mut stream.chunks(size)), decode(&mut std::iter::once(&stream[..])));
}

/// What the strict parser accepts, serde_json accepts too; the line checker returns a result for any input; and a document that is
/// read is written so that it reads as the same.
fn json(random: &mut Random, seeds: &Seeds) {
    const WORDS: [&str; 12] = [
        "refs", "rename", "cmd", "selector", "options", "version", "kind", "id", "sha256:", "a.py",
        "py://a#f", "..",
    ];
    const REQUEST: &str = r#"{"id":1,"cmd":"refs","selector":"py://a#f","options":{"limit":3},"timeout":5}"#;
    let seed = match random.below(3) {
        0 => REQUEST.to_owned(),
        1 => pick(random, &seeds.json, "{\"a\":[1,2.5,\"b\"]}"),
        _ => line_of(random, &seeds.lines).unwrap_or_default(),
    };
    let bytes = match serde_json::from_str::<Value>(&seed) {
        Ok(value) if random.below(3) > 0 => changed(random, &value, &WORDS).to_string().into_bytes(),
        _ => damaged(random, seed.as_bytes()),
    };
    if let Ok(value) = strict_json::from_slice::<Value>(&bytes) {
        assert_eq!(serde_json::from_slice::<Value>(&bytes).ok(), Some(value));
    }
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(validate_lines(None, &bytes[..]).count() <= lines);
    let _ = strict_json::from_slice::<BatchLine>(&bytes);
    if let Ok(bundle) = serde_json::from_slice::<Bundle>(&bytes) {
        let written = serde_json::to_value(&bundle).expect("a bundle is plain data");
        let read: Bundle = serde_json::from_value(written.clone()).expect("a bundle that lanser wrote");
        assert_eq!(serde_json::to_value(&read).expect("a bundle is plain data"), written);
    }
}

/// A line of one of the texts.
fn line_of(random: &mut Random, texts: &[String]) -> Option<String> {
    let text = texts.get(random.below(texts.len()))?;
    text.lines().nth(random.below(text.lines().count())).map(str::to_owned)
}

fn trace(random: &mut Random, seeds: &Seeds) {
    let seed = pick(random, &seeds.lines, "{}\n");
    let bytes = match random.below(4) {
        0 => mutated(random, &seed).into_bytes(),
        1 => damaged(random, seed.as_bytes()),
        _ => resealed(random, &seed).into_bytes(),
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace");
    std::fs::write(&path, bytes).expect("a file");
    let path = AbsPath::new(&path).expect("an absolute path");
    let _ = lanser::internal::trace::reader::step_links(&path);
    let Ok(mut reader) = TraceReader::open(&path) else { return };
    if random.below(2) == 0 {
        reader.keep_events();
    }
    let store = reader.store();
    while let Ok(Some(_)) = reader.next_operation() {
        for (event, _) in reader.take_events() {
            match event.body {
                EventBody::Blob { digest, .. } => {
                    let content = lanser::internal::tape::Blobs::blob(&*store, &digest);
                    assert!(content.is_none_or(|content| Digest::of(&content) == digest));
                }
                EventBody::Workspace(workspace) => drop(store.workspace(&workspace.id)),
                _ => {}
            }
        }
    }
}

/// A trace with some events changed, and its checksums made right again, so that the reader believes them.
fn resealed(random: &mut Random, trace: &str) -> String {
    const WORDS: [&str; 8] = ["..", "git:HEAD", "/w/a.py", "refs", "utf-8", "", "sha256:", "lanser"];
    let (mut sums, mut out) = (Vec::new(), String::new());
    let among = trace.lines().count().min(1 + random.below(40));
    for line in trace.lines() {
        let Ok(event) = event::read(line.as_bytes()) else {
            out += line;
            out.push('\n');
            continue;
        };
        let (op, seq, time) = (event.op, event.seq, event.time);
        let body = match event.body {
            EventBody::End { events, back, contents, .. } => {
                let digest = Digest::of_fields(sums.drain(..).map(|sum: String| sum.into_bytes()));
                EventBody::End { events, digest, back, contents }
            }
            body if random.below(among) == 0 => {
                let mut json =
                    serde_json::to_value(event::event(op, seq, body.clone(), time)).expect("plain data");
                json = changed(random, &json, &WORDS);
                serde_json::from_value::<Event>(json).map_or(body, |event| event.body)
            }
            body => body,
        };
        let event = event::event(op, seq, body, time);
        sums.push(event.sum.clone());
        if matches!(event.body, EventBody::End { .. }) {
            sums.clear();
        }
        out += &event::line(&event);
        out.push('\n');
    }
    out
}

/// A virtual environment and the configuration of servers, which belong to the checkout.
fn environment(random: &mut Random, _: &Seeds) {
    const CONFIG: &str =
        "home = /usr/bin\nversion = 3.11.2\ninclude-system-site-packages = true\nimplementation = CPython\n";
    const PATHS: &str = "../../../../src\nimport os; os.system('x')\n/usr/lib\n# c\n";
    const PYRIGHT: &str = r#"{
        // A comment.
        "extends": "../base.json", "include": ["src/**"], "exclude": ["**/x"], "venvPath": ".", "venv": ".venv",
        "extraPaths": ["lib*", "../lib"], "stubPath": "typings", "typeshedPath": "/w/ts",
        "executionEnvironments": [{"root": "src", "extraPaths": ["lib"]},],
    }"#;
    const PROJECT: &str = r#"[tool.pyright]
include = ["src"]
extraPaths = ["lib"]
[tool.ty.environment]
python = "../.venv"
root = ["./src"]
extra-paths = ["lib", "/usr/lib"]
typeshed = "ts"
[tool.ty.src]
exclude = ["x/**"]
[[tool.ty.overrides]]
include = ["tests/**"]
"#;
    const TY: &str =
        "[environment]\nextra-paths = [\"lib\"]\npython = \".venv\"\n[src]\ninclude = [\"src\"]\n";
    let [config, paths, pyright, project, ty] = [CONFIG, PATHS, PYRIGHT, PROJECT, TY].map(|text| {
        let changed = match random.below(3) {
            0 => text.as_bytes().to_vec(),
            1 => mutated(random, text).into_bytes(),
            _ => damaged(random, text.as_bytes()),
        };
        String::from_utf8_lossy(&changed).into_owned()
    });
    let all = [
        ("/w/.venv/pyvenv.cfg", &config),
        ("/w/.venv/lib/python3.11/site-packages/a.pth", &paths),
        ("/usr/lib/python3.11/os.py", &String::new()),
        ("/w/src/a.py", &String::new()),
        ("/w/base.json", &pyright),
        ("/w/pyrightconfig.json", &pyright),
        ("/w/pyproject.toml", &project),
        ("/w/ty.toml", &ty),
    ];
    let some: Vec<_> =
        all.into_iter().filter(|_| random.below(6) > 0).map(|(path, text)| (path, &**text)).collect();
    let files = MemoryFiles::new(some);
    let root = AbsPath::new("/w").expect("an absolute path");
    let python = virtual_env::read(&files, &root.join(".venv")).ok();
    for server in [ServerKind::Pyright, ServerKind::Ty] {
        let config = ServerConfig::read(&files, &root, server);
        let roots = ImportRoots::new(&files, &root, &config, python.as_ref(), None);
        let _ = roots.find(&files, "a");
    }
}

fn pick(random: &mut Random, seeds: &[String], otherwise: &str) -> String {
    match seeds.len() {
        0 => otherwise.to_owned(),
        count => seeds[random.below(count)].clone(),
    }
}
