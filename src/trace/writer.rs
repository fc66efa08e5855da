//! Appending operations to a trace.
//!
//! An operation is written in one piece under a lock of the whole file, so writers in any number of processes never mix. A
//! writer that was killed leaves at most one unfinished operation at the end, which the next one cuts off.
//!
//! Of a file that is there no more is read than its end, and the few ends to which that leads ([`super::directory`]): appending
//! takes as long as the names of its contents take to read, not its operations. Damage elsewhere is for the reader to find.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::directory::{Directory, Entry, span};
use super::event::{LineError, line_of, read};
use super::lines::{Line, MAX_LINE, next};
use super::operation::Finished;
use super::reader::is_readable;
use crate::digest::Digest;
use crate::model::trace::{Body, Event};
use crate::path::AbsPath;

/// How every trace begins.
const BEGINNING: &[u8] = b"{\"op\":1,\"seq\":1,\"kind\":\"header\"";

/// A trace that operations are appended to.
#[derive(Debug)]
pub struct Writer {
    argv: Vec<String>,
    state: Mutex<State>,
    /// Whether an operation could not be written.
    has_failed: AtomicBool,
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
    /// Where they are named.
    directory: Directory,
}

impl Writer {
    /// Opens a trace, or begins one. `argv` is told in every header.
    ///
    /// # Errors
    /// When the file cannot be opened for reading and writing, or is something else than a trace.
    pub fn open(path: &AbsPath, argv: Vec<String>) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path.as_path())?;
        let (known, directory) = (BTreeSet::new(), Directory::default());
        let state = State { file, length: 0, last: 0, known, directory };
        // Another writer may be beginning it.
        state.file.lock()?;
        let is_trace = state.see_that_it_is_a_trace();
        state.file.unlock()?;
        is_trace?;
        Ok(Self { argv, state: Mutex::new(state), has_failed: AtomicBool::new(false) })
    }

    /// Appends an operation.
    ///
    /// # Errors
    /// When it cannot be written whole; the file is as before then.
    pub fn append(&self, operation: Finished) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let written = state.file.lock().and_then(|()| {
            let written = state.append(operation, &self.argv);
            state.file.unlock()?;
            written
        });
        self.has_failed.fetch_or(written.is_err(), Ordering::Relaxed);
        written
    }

    /// Whether an operation could not be written.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
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
        let (text, end) = lines(op, bodies, self.directory.next(new.clone()));
        let before = self.length;
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            let _ = self.file.set_len(before);
            return Err(error);
        }
        known.extend(new.iter().copied());
        self.directory.push(new, before + end as u64);
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
            self.directory = Directory::default();
        }
        if length == self.length {
            return Ok(());
        }
        if self.length == 0 {
            self.begin_at_the_end(length)?;
        }
        self.read_on()?;
        if self.length < length {
            self.file.set_len(self.length)?;
        }
        Ok(())
    }

    /// Goes to the last operation that is whole.
    fn begin_at_the_end(&mut self, length: u64) -> io::Result<()> {
        self.see_that_it_is_a_trace()?;
        let Some(mut at) = last_end(&self.file, length)? else { return Ok(()) };
        let (mut ends, mut expected) = (Vec::new(), None);
        loop {
            let (end, after) = self.end_at(at)?;
            let first = expected.is_none();
            if first {
                self.length = after;
                self.last = end.op;
            }
            if !first && expected != Some(end.op) {
                return Err(damaged());
            }
            let earlier = end.op - span(end.op);
            ends.push((end.op, at, end.entry.contents));
            match end.entry.back {
                Some(back) if earlier > 0 && back < at => (at, expected) = (back, Some(earlier)),
                None if earlier == 0 => break,
                _ => return Err(damaged()),
            }
        }
        self.directory = Directory::of(ends);
        self.known = self.directory.contents().copied().collect();
        Ok(())
    }

    /// The end of an operation whose line begins at a place, and where the line is over.
    fn end_at(&self, at: u64) -> io::Result<(End, u64)> {
        let mut reader = &self.file;
        reader.seek(SeekFrom::Start(at))?;
        let mut text = Vec::new();
        let Line::Whole(count) = next(&mut BufReader::new(reader), MAX_LINE, &mut text)? else {
            return Err(damaged());
        };
        let event = read(&text).map_err(|_| damaged())?;
        match event.body {
            Body::End { back, contents, .. } if event.op > 0 => {
                Ok((End { op: event.op, entry: Entry { back, contents } }, at + count as u64))
            }
            _ => Err(damaged()),
        }
    }

    /// Whether the file begins as a trace does, and as one of a version that can be read.
    fn see_that_it_is_a_trace(&self) -> io::Result<()> {
        let mut beginning = [0; BEGINNING.len()];
        let mut count = 0;
        while count < beginning.len() {
            match self.file.read_at(&mut beginning[count..], count as u64)? {
                0 => break,
                more => count += more,
            }
        }
        if beginning[..count] != BEGINNING[..count] {
            return Err(foreign());
        }
        let (mut reader, mut text) = (&self.file, Vec::new());
        reader.seek(SeekFrom::Start(0))?;
        if matches!(next(&mut BufReader::new(reader), MAX_LINE, &mut text)?, Line::Whole(_)) {
            readable(&text).map_err(|_| foreign())?;
        }
        Ok(())
    }

    /// Reads what follows the last operation that is known.
    fn read_on(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.length))?;
        let mut reader = BufReader::new(&self.file);
        let (mut text, mut at, mut news) = (Vec::new(), self.length, Vec::new());
        loop {
            let count = match next(&mut reader, MAX_LINE, &mut text)? {
                Line::Whole(count) => count,
                // What a writer of ours began there may be cut off, and nothing else.
                Line::CutOff(_) => break,
                Line::TooLong => return Err(damaged()),
            };
            // What is damaged, or of another version, is nothing to be cut off: it is for the reader to tell.
            let event = readable(&text).map_err(|_| damaged())?;
            match event.body {
                Body::Blob { digest, .. } => news.push(digest),
                Body::Workspace(workspace) => news.push(workspace.id),
                Body::End { back, contents, .. } => {
                    let own = std::mem::take(&mut news);
                    if self.directory.next(own.clone()) != (Entry { back, contents }) {
                        return Err(damaged());
                    }
                    self.known.extend(&own);
                    self.directory.push(own, at);
                    self.last = event.op;
                    self.length = at + count as u64;
                }
                _ => {}
            }
            at += count as u64;
        }
        Ok(())
    }
}

/// The end of an operation.
struct End {
    op: u64,
    entry: Entry,
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file is a damaged trace")
}

fn foreign() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file is there and is no trace")
}

/// An event of a version that can be read.
fn readable(text: &[u8]) -> Result<Event, LineError> {
    let event = read(text)?;
    match &event.body {
        Body::Header { version, .. } if !is_readable(version) => {
            Err(LineError::Json(format!("it is of version {version}")))
        }
        _ => Ok(event),
    }
}

/// Where the line of the last end begins that is whole; `None` when there is none. Read backwards.
fn last_end(file: &File, length: u64) -> io::Result<Option<u64>> {
    /// How much is read at a time.
    const STEP: usize = 64 << 10;
    /// The longest beginning of an end: two numbers, and the words around them.
    const WORDS: usize = 96;
    let (mut stop, mut is_whole) = (length, false);
    let mut part = vec![0; STEP + WORDS];
    while stop > 0 {
        let start = stop.saturating_sub(STEP as u64);
        let taken = usize::try_from(length.min(stop + WORDS as u64) - start).unwrap_or(STEP);
        file.read_exact_at(&mut part[..taken], start)?;
        let own = usize::try_from(stop - start).unwrap_or(STEP);
        for at in (0..own).rev().filter(|at| part[*at] == b'\n') {
            if is_whole && is_end(&part[at + 1..taken]) {
                return Ok(Some(start + at as u64 + 1));
            }
            is_whole = true;
        }
        stop = start;
    }
    Ok(None)
}

/// Whether a line begins as the end of an operation does.
fn is_end(line: &[u8]) -> bool {
    fn after<'t>(text: &'t [u8], word: &[u8]) -> Option<&'t [u8]> {
        let rest = text.strip_prefix(word)?;
        Some(&rest[rest.iter().take_while(|byte| byte.is_ascii_digit()).count()..])
    }
    let rest = after(line, b"{\"op\":").and_then(|rest| after(rest, b",\"seq\":"));
    rest.is_some_and(|rest| rest.starts_with(b",\"kind\":\"end\""))
}

/// The text of an operation, and where in it its end begins.
fn lines(op: u64, bodies: Vec<Body>, entry: Entry) -> (String, usize) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let time = now.and_then(|now| u64::try_from(now.as_millis()).ok());
    let (mut text, mut sums) = (String::new(), Vec::new());
    let mut seq = 0;
    for body in &bodies {
        seq += 1;
        sums.push(line_of(op, seq, body, time, &mut text));
        text.push('\n');
    }
    let digest = Digest::of_fields(sums.iter().map(String::as_bytes));
    let (Entry { back, contents }, at) = (entry, text.len());
    line_of(op, seq + 1, &Body::End { events: seq + 1, digest, back, contents }, time, &mut text);
    text.push('\n');
    (text, at)
}
