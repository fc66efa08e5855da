//! Appending operations to a trace.
//!
//! An operation is written in one piece under a lock of the whole file, so writers in any number of processes never mix. A
//! writer that was killed leaves at most one unfinished operation at the end, which the next one cuts off.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::event::{event, line, read};
use super::operation::Finished;
use super::reader::is_readable;
use crate::digest::Digest;
use crate::model::trace::Body;
use crate::path::AbsPath;

/// How every trace begins.
const BEGINNING: &[u8] = b"{\"op\":1,\"seq\":1,\"kind\":\"header\"";

/// A trace that operations are appended to.
#[derive(Debug)]
pub struct Writer {
    argv: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// How far the file is known.
    length: u64,
    /// The number of the last operation.
    last: u64,
    /// The blobs and workspaces in the file.
    known: BTreeSet<Digest>,
}

impl Writer {
    /// Opens a trace, or begins one. `argv` is told in every header.
    ///
    /// # Errors
    /// When the file cannot be opened for reading and writing.
    pub fn open(path: &AbsPath, argv: Vec<String>) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path.as_path())?;
        let state = State { file, length: 0, last: 0, known: BTreeSet::new() };
        Ok(Self { argv, state: Mutex::new(state) })
    }

    /// Appends an operation.
    ///
    /// # Errors
    /// When it cannot be written whole; the file is as before then.
    pub fn append(&self, operation: Finished) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.file.lock()?;
        let written = state.append(operation, &self.argv);
        state.file.unlock()?;
        written
    }
}

impl State {
    fn append(&mut self, operation: Finished, argv: &[String]) -> io::Result<()> {
        self.catch_up()?;
        let op = self.last + 1;
        let known = &mut self.known;
        let mut new = Vec::new();
        let bodies = operation.bodies(argv, |digest| {
            let is_known = known.contains(digest);
            if !is_known {
                new.push(*digest);
            }
            is_known
        });
        let text = lines(op, bodies);
        let before = self.length;
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            let _ = self.file.set_len(before);
            return Err(error);
        }
        known.extend(new);
        self.length = before + text.len() as u64;
        self.last = op;
        Ok(())
    }

    /// Learns what other writers have appended, and cuts off what one of them left unfinished.
    fn catch_up(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length < self.length {
            // Somebody began it anew.
            self.length = 0;
            self.last = 0;
            self.known.clear();
        }
        if length == self.length {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(self.length))?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the file is a damaged trace");
        let mut reader = BufReader::new(&self.file);
        let (mut text, mut at, mut whole) = (Vec::new(), self.length, self.length);
        let foreign = || io::Error::new(io::ErrorKind::InvalidData, "the file is there and is no trace");
        let mut news: BTreeSet<Digest> = BTreeSet::new();
        loop {
            text.clear();
            let count = reader.read_until(b'\n', &mut text)?;
            if count == 0 || text.last() != Some(&b'\n') {
                // What a writer of ours began there may be cut off, and nothing else.
                if at == 0 && !BEGINNING.starts_with(&text[..count.min(BEGINNING.len())]) {
                    return Err(foreign());
                }
                break;
            }
            // What is damaged, or of another version, is nothing to be cut off: it is for the reader to tell.
            let Ok(event) = read(&text[..count - 1]) else {
                return Err(if at == 0 { foreign() } else { damaged() });
            };
            if let Body::Header { version, .. } = &event.body
                && !is_readable(version)
            {
                return Err(foreign());
            }
            at += count as u64;
            match event.body {
                Body::Blob { digest, .. } => drop(news.insert(digest)),
                Body::Workspace(workspace) => drop(news.insert(workspace.id)),
                Body::End { .. } => {
                    self.known.append(&mut news);
                    self.last = event.op;
                    whole = at;
                }
                _ => {}
            }
        }
        if whole < length {
            self.file.set_len(whole)?;
        }
        self.length = whole;
        Ok(())
    }
}

/// The text of an operation.
fn lines(op: u64, bodies: Vec<Body>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let time = now.and_then(|now| u64::try_from(now.as_millis()).ok());
    let (mut text, mut sums) = (String::new(), Vec::new());
    let mut push = |seq: u64, body: Body| {
        let event = event(op, seq, body, time);
        text.push_str(&line(&event));
        text.push('\n');
        event.sum
    };
    let mut seq = 0;
    for body in bodies {
        seq += 1;
        sums.push(push(seq, body));
    }
    let digest = Digest::of_fields(sums.iter().map(String::as_bytes));
    push(seq + 1, Body::End { events: seq + 1, digest });
    text
}
