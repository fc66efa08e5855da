//! Reading a trace detects any changed byte and any truncation.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::operation::FinishedOperation;
use super::path_redactor::PathRedactor;
use super::reader::TraceReader;
use super::writer::TraceWriter;
use crate::bundle::seal::{BundleDraft, seal};
use crate::digest::Digest;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Command, Request};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::selector::parse;
use crate::tape::Blobs as _;
use crate::tape::{Frame, IoKind, MessageSender, Recording};

fn operation(number: usize) -> FinishedOperation {
    let error = ErrorBody::new(ErrorSymbol::NotFound, format!("nothing {number}"));
    let selector = parse("a.py@L1:C1", Default::default()).unwrap();
    let request = Request::about(Command::Definition, selector);
    let bytes = format!("x = {number} # ü\n").into_bytes();
    let other = vec![0xff, 0xfe, u8::try_from(number % 256).unwrap()];
    let blobs = [bytes, other].map(|bytes| (Digest::of(&bytes), Arc::new(bytes)));
    let frame = |from, message: serde_json::Value| Frame { from, message: message.to_string() };
    let recorded = Recording::new(
        BTreeMap::from([((IoKind::Index, "[\"word\",\"x\"]".to_owned()), "[\"a.py\"]".to_owned())]),
        BTreeMap::from(blobs),
        vec![
            frame(
                MessageSender::Client,
                json!({"id": 1, "method": "m", "params": {"n": number, "uri": "file:///w/a.py"}}),
            ),
            frame(MessageSender::Server, json!({"id": 1, "result": [0.25, "file:///w/b.py"]})),
        ],
    );
    let root = AbsPath::new("/w").unwrap();
    FinishedOperation {
        request: Some(request.clone()),
        server: Some(ServerKind::Pyright),
        workspace: None,
        recorded,
        fault: Some((error.clone(), false)),
        bundle: seal(BundleDraft::failed(Some(request), error)).unwrap(),
        redactor: PathRedactor::new([(&root, "workspace")]),
    }
}

fn trace(operations: usize) -> (tempfile::TempDir, AbsPath) {
    let folder = tempfile::tempdir().unwrap();
    let path = AbsPath::new(folder.path().join("t.jsonl")).unwrap();
    let writer = TraceWriter::open(&path, vec!["def".to_owned()]).unwrap();
    for number in 0..operations {
        writer.append(operation(number)).unwrap();
    }
    (folder, path)
}

/// How many operations can be read, and whether the trace ended without an error.
fn read(path: &AbsPath) -> (usize, bool) {
    let Ok(mut reader) = TraceReader::open(path) else { return (0, false) };
    let mut count = 0;
    loop {
        match reader.next_operation() {
            Ok(Some(_)) => count += 1,
            Ok(None) => return (count, reader.truncated().is_none()),
            Err(_) => return (count, false),
        }
    }
}

#[test]
fn a_named_pipe_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = AbsPath::new(folder.path().join("pipe.trace")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(pipe.as_path()).status().unwrap();
    assert!(made.success());
    assert!(TraceReader::open(&pipe).is_err());
    assert!(super::reader::step_links(&pipe).is_err());
}

#[test]
fn operations_are_read_as_they_were_written() {
    let (_folder, path) = trace(3);
    let mut reader = TraceReader::open(&path).unwrap();
    for number in 0..3 {
        let read = reader.next_operation().unwrap().unwrap();
        let written = operation(number);
        assert_eq!(read.request, written.request);
        assert_eq!(read.fault, written.fault);
        assert_eq!(read.bundle.and_then(|bundle| bundle.bundle_id()), Some(written.bundle.bundle_id));
        assert_eq!(read.answers, written.recorded.answers);
        let key = ("m".to_owned(), format!("{{\"n\":{number},\"uri\":\"file:///lanser/workspace/a.py\"}}"));
        assert!(read.calls[&key][0].outcome.as_ref().unwrap().contains("/lanser/workspace/b.py"));
        for (digest, bytes) in &written.recorded.blobs {
            assert_eq!(reader.store().blob(digest).as_ref(), Some(bytes));
        }
    }
    assert!(reader.next_operation().unwrap().is_none() && reader.truncated().is_none());
}

#[test]
fn concurrent_writers_do_not_interleave() {
    let folder = tempfile::tempdir().unwrap();
    let path = AbsPath::new(folder.path().join("t.jsonl")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let writer = TraceWriter::open(path, Vec::new()).unwrap();
                for number in 0..10 {
                    writer.append(operation(thread * 100 + number)).unwrap();
                }
            });
        }
    });
    assert_eq!(read(&path), (40, true));
}

/// Appending reads only the end of a trace, however long it is, and writes no content twice.
#[test]
fn appending_reads_only_the_end() {
    let (folder, path) = trace(20);
    for number in 0..20 {
        // Each by a new writer.
        TraceWriter::open(&path, Vec::new()).unwrap().append(operation(number)).unwrap();
    }
    assert_eq!(read(&path), (40, true));
    let text = std::fs::read_to_string(path.as_path()).unwrap();
    let blobs = text.lines().filter(|line| line.contains("\"kind\":\"blob\""));
    assert_eq!(blobs.count(), 40, "each operation has two contents, shared with one other operation");
    // Damage far from the end is detected by the reader, not by a writer.
    let line = text.lines().position(|line| line.contains("\"kind\":\"frame\"")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[line] = "damaged";
    std::fs::write(path.as_path(), lines.join("\n") + "\n").unwrap();
    // The offsets in the `end` events are wrong now, so following them fails, and the writer reports it.
    let refused = TraceWriter::open(&path, Vec::new()).unwrap().append(operation(3)).unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
    let same_length = format!("{:<1$}", "damaged", text.lines().nth(line).unwrap().len());
    lines[line] = &same_length;
    std::fs::write(path.as_path(), lines.join("\n") + "\n").unwrap();
    TraceWriter::open(&path, Vec::new()).unwrap().append(operation(3)).unwrap();
    assert!(!read(&path).1);
    drop(folder);
}

/// A long unfinished operation is truncated, and the complete one before it is found.
#[test]
fn a_long_unfinished_operation_is_truncated() {
    let (_folder, path) = trace(3);
    let whole = std::fs::read_to_string(path.as_path()).unwrap();
    let mut long = operation(9);
    let bytes = "# a comment\n".repeat(50_000).into_bytes();
    long.recorded.blobs.insert(Digest::of(&bytes), Arc::new(bytes));
    TraceWriter::open(&path, Vec::new()).unwrap().append(long).unwrap();
    let text = std::fs::read_to_string(path.as_path()).unwrap();
    let end = text.rfind("{\"op\":4,\"seq\":").unwrap();
    for length in [end + 10, end, end - 1, whole.len() + 70_000, whole.len() + 1] {
        std::fs::write(path.as_path(), &text[..length]).unwrap();
        TraceWriter::open(&path, Vec::new()).unwrap().append(operation(4)).unwrap();
        assert_eq!(read(&path), (4, true), "{length} bytes");
        assert!(std::fs::read_to_string(path.as_path()).unwrap().starts_with(&whole));
    }
}

#[test]
fn every_prefix_is_readable() {
    let (_folder, path) = trace(2);
    let bytes = std::fs::read(path.as_path()).unwrap();
    let ends: Vec<usize> = {
        let text = std::str::from_utf8(&bytes).unwrap();
        let lines = text.split_inclusive('\n').scan(0, |at, line| {
            *at += line.len();
            Some((*at, line.contains("\"kind\":\"end\"")))
        });
        lines.filter(|(_, is_end)| *is_end).map(|(at, _)| at).collect()
    };
    for length in (0..bytes.len()).filter(|length| {
        length % 5 == 0
            || bytes[length.saturating_sub(2)..].starts_with(b"\n")
            || bytes[*length..].starts_with(b"\n")
    }) {
        std::fs::write(path.as_path(), &bytes[..length]).unwrap();
        let whole = ends.iter().filter(|end| **end <= length).count();
        let is_cut = length > 0 && !ends.contains(&length);
        assert_eq!(read(&path), (whole, !is_cut), "{length} bytes");
        // The next writer continues after the complete operations.
        if length % 97 == 0 {
            TraceWriter::open(&path, Vec::new()).unwrap().append(operation(7)).unwrap();
            assert_eq!(read(&path), (whole + 1, true), "{length} bytes");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn any_changed_byte_is_detected(place in 0.0..1.0_f64, byte in any::<u8>()) {
        static TRACE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            let (_folder, path) = trace(2);
            std::fs::read(path.as_path()).unwrap()
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a small file")]
        let at = (place * TRACE.len() as f64) as usize;
        let mut bytes = TRACE.clone();
        prop_assume!(bytes[at] != byte);
        // `time` (the digits after `"time":`) is not verified.
        let line = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = std::str::from_utf8(&bytes[line..]).unwrap();
        let digits = rest.find("\"time\":").map(|time| line + time + 7);
        let is_time = digits.is_some_and(|begin| {
            at >= begin && bytes[begin..=at].iter().all(u8::is_ascii_digit) && byte.is_ascii_digit()
        });
        prop_assume!(!is_time);
        bytes[at] = byte;
        let folder = tempfile::tempdir().unwrap();
        let path = AbsPath::new(folder.path().join("t.jsonl")).unwrap();
        std::fs::write(path.as_path(), &bytes).unwrap();
        prop_assert!(!read(&path).1, "byte {at} may become {byte}");
    }
}
