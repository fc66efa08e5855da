//! The fuzz targets. Each takes one input; a violated property is a panic.

use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use lanser::internal::digest::{Digest, strict_json};
use lanser::internal::edit::patch;
use lanser::internal::lsp::codec::Codec;
use lanser::internal::path::{AbsPath, WorkspacePath};
use lanser::internal::relocate::anchor::{header_of, matching_headers, same_tokens, windows};
use lanser::internal::relocate::index::{Index, OtherWorkspaceFiles};
use lanser::internal::relocate::{OldContent, OldTarget, RelocationOutcome, relocate};
use lanser::internal::schema::validate_lines;
use lanser::internal::text::ColumnUnit;
use lanser::internal::trace::reader::TraceReader;
use lanser::internal::workspace::files::{Document, MemoryFiles};
use lanser::internal::workspace::transaction::{Change, Label, Policy, Transactions};
use lanser::internal::workspace::virtual_env;
use lanser::selector::parse;
use tokio_util::codec::Decoder as _;

use crate::Random;
use crate::inputs::{damaged, file, mutated, text};

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

pub(crate) const TARGETS: [(&str, Feed); 8] = [
    ("selector", selector),
    ("relocation", relocation),
    ("frames", frames),
    ("json", json),
    ("trace", trace),
    ("patch", diff),
    ("journal", journal),
    ("environment", environment),
];

fn selector(random: &mut Random, _: &Seeds) {
    let selector = text(random, 40);
    if let Ok(spec) = parse(&selector, ColumnUnit::Codepoint) {
        let printed = spec.to_string();
        assert_eq!(parse(&printed, ColumnUnit::Codepoint).as_ref(), Ok(&spec), "{printed}");
    }
}

fn relocation(random: &mut Random, seeds: &Seeds) {
    let sources = &seeds.sources;
    let old = file(random, sources);
    let new = if random.below(3) == 0 { file(random, sources) } else { mutated(random, &old) };
    let other = if random.below(2) == 0 { mutated(random, &old) } else { file(random, sources) };
    let boundary = |mut at: usize| {
        while !old.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = random.below(old.len() + 1);
    let end = (start + random.below(200)).min(old.len());
    let span = boundary(start)..boundary(end).max(boundary(start));
    let document = |path: &str, text: &str| {
        let path = AbsPath::new(path).expect("an absolute path");
        Arc::new(Document::new(path, text.as_bytes().to_vec()))
    };
    let path = |text: &str| WorkspacePath::new(text).expect("a workspace path");
    let (current, elsewhere) = (document("/a.py", &new), document("/b.py", &other));
    let index = Index::of_texts([(path("a.py"), new.as_str()), (path("b.py"), other.as_str())]);
    let own = path("a.py");
    let before = match random.below(3) {
        0 => OldContent::Unknown,
        1 => OldContent::Absent,
        _ => OldContent::Text(mutated(random, &other).into()),
    };
    let others = OtherWorkspaceFiles {
        index: &index,
        own: Some(&own),
        read: |_: &WorkspacePath| Some(elsewhere.clone()),
        before: |_: &WorkspacePath| Some(before.clone()),
    };
    let target = OldTarget { path: "a.py", text: &old, span: span.clone() };
    let current = Some(&current).filter(|_| random.below(5) > 0);
    match relocate(&target, current, &others) {
        RelocationOutcome::Found(place) => assert!(place.document.text.get(place.span).is_some()),
        RelocationOutcome::Ambiguous(places) => {
            assert!(places.into_iter().all(|place| place.document.text.get(place.span).is_some()));
        }
        RelocationOutcome::Gone { .. } => {}
    }
    let snippet = &old[span];
    for (found, _) in windows(&new, snippet) {
        assert!(new.get(found).is_some());
    }
    for found in same_tokens(&new, snippet) {
        assert!(new.get(found).is_some());
    }
    if let Some((name, is_class)) = header_of(snippet) {
        for (found, _) in matching_headers(&new, snippet, &name, is_class) {
            assert!(new.get(found).is_some());
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
        stream.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes());
    }
    let stream = damaged(random, &stream);
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

/// Whatever the strict parser accepts, serde_json accepts too, and the line checker returns a result for any input.
fn json(random: &mut Random, seeds: &Seeds) {
    let seed = pick(random, &seeds.json, "{\"a\":[1,2.5,\"b\"]}");
    let bytes = damaged(random, seed.as_bytes());
    if let Ok(value) = strict_json::from_slice::<serde_json::Value>(&bytes) {
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&bytes).ok(), Some(value));
    }
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(validate_lines(None, &bytes[..]).count() <= lines);
}

fn trace(random: &mut Random, seeds: &Seeds) {
    let seed = pick(random, &seeds.lines, "{}\n");
    let bytes = match random.below(2) {
        0 => mutated(random, &seed).into_bytes(),
        _ => damaged(random, seed.as_bytes()),
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace");
    std::fs::write(&path, bytes).expect("a file");
    let Ok(mut reader) = TraceReader::open(&AbsPath::new(&path).expect("an absolute path")) else { return };
    while let Ok(Some(_)) = reader.next_operation() {}
}

/// Paths in a diff stay below the folder that it is applied in.
fn diff(random: &mut Random, seeds: &Seeds) {
    let seed = pick(random, &seeds.diffs, "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n");
    let bytes = match random.below(2) {
        0 => mutated(random, &seed).into_bytes(),
        _ => damaged(random, seed.as_bytes()),
    };
    for patch in patch::parse(&bytes).into_iter().flatten() {
        for hunk in &patch.hunks {
            assert!(hunk.before().count() + hunk.after().count() <= 2 * bytes.len());
        }
    }
}

/// A journal with any content writes nothing outside of its worktree.
fn journal(random: &mut Random, _: &Seeds) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| {
        AbsPath::new(folder.path().canonicalize().expect("a folder").join(name)).expect("an absolute path")
    };
    let (root, state, bystander) = (at("work"), at("state"), at("bystander"));
    std::fs::create_dir(root.as_path()).expect("a folder");
    std::fs::write(root.join("a.py").as_path(), "1").expect("a file");
    std::fs::write(bystander.as_path(), "1").expect("a file");
    let transactions = Transactions::new(&root, &state);
    let path = |text: &str| WorkspacePath::new(text).expect("a workspace path");
    let change = |name: &str, before: Option<&str>| Change::Write {
        path: path(name),
        before: before.map(|text| Digest::of(text.as_bytes())),
        content: b"2".to_vec(),
        executable: None,
    };
    let plan = transactions.plan(vec![change("a.py", Some("1")), change("b/c.py", None)], Policy::default());
    let label = Label { what: "fuzz".to_owned(), time: 1 };
    let applied = plan.expect("a plan").stage(&label).expect("a place").apply().expect("files");
    // The journal of a killed process, or the one that stays for `undo`.
    let interrupted: Vec<_> = walk(state.as_path())
        .into_iter()
        .filter(|file| file.file_name().is_some_and(|name| name == "journal"))
        .map(|file| (std::fs::read(&file).expect("a journal"), file))
        .collect();
    drop(applied.commit());
    if random.below(2) == 0 {
        for (bytes, file) in interrupted {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(&file, bytes).expect("a file");
        }
    }
    for file in walk(state.as_path()) {
        if file.file_name().is_some_and(|name| name == "journal") {
            let whole = std::fs::read(&file).expect("a journal");
            let json = damaged(random, whole.get(65..).unwrap_or_default());
            let mut bytes = format!("{}\n", Digest::of(&json).to_hex()).into_bytes();
            bytes.extend(json);
            std::fs::write(&file, bytes).expect("a file");
        }
    }
    let _ = transactions.recover();
    let _ = transactions.undo(None, &label, Policy::default());
    assert_eq!(std::fs::read(bystander.as_path()).expect("a file"), b"1");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 3);
}

fn environment(random: &mut Random, _: &Seeds) {
    const CONFIG: &str =
        "home = /usr/bin\nversion = 3.11.2\ninclude-system-site-packages = true\nimplementation = CPython\n";
    const PATHS: &str = "../../../../src\nimport os; os.system('x')\n/usr/lib\n# c\n";
    let config = damaged(random, CONFIG.as_bytes());
    let paths = damaged(random, PATHS.as_bytes());
    let (config, paths) = (String::from_utf8_lossy(&config), String::from_utf8_lossy(&paths));
    let files = MemoryFiles::new([
        ("/w/.venv/pyvenv.cfg", &*config),
        ("/w/.venv/lib/python3.11/site-packages/a.pth", &*paths),
        ("/usr/lib/python3.11/os.py", ""),
        ("/w/src/a.py", ""),
    ]);
    let _ = virtual_env::read(&files, &AbsPath::new("/w/.venv").expect("an absolute path"));
}

fn pick(random: &mut Random, seeds: &[String], otherwise: &str) -> String {
    match seeds.len() {
        0 => otherwise.to_owned(),
        count => seeds[random.below(count)].clone(),
    }
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { vec![entry.path()] })
        .collect()
}
