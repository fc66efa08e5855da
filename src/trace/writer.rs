//! Appends operations to a trace.
//!
//! Each operation is written with one call while the whole file is locked, so writers in any number of processes never
//! interleave. A writer that is killed leaves at most one unfinished operation at the end, which the next writer truncates.
//!
//! Of an existing file, only the last `end` event and the few that it leads to are read ([`super::content_index`]): the cost of
//! appending grows with the number of contents, not with the size of the operations. Damage elsewhere is left for the reader
//! to report.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::content_index::{ContentIndex, EndEntry, span};
use super::event::{LineError, line_of, read};
use super::lines::{LineRead, MAX_LINE_BYTES, read_line};
use super::operation::{FinishedOperation, step_bodies};
use super::reader::is_readable;
use crate::digest::Digest;
use crate::model::trace::{Event, EventBody, RecordedStep};
use crate::path::AbsPath;

/// The first bytes of every trace.
const HEADER_PREFIX: &[u8] = b"{\"op\":1,\"seq\":1,\"kind\":\"header\"";

/// A trace file open for appending.
#[derive(Debug)]
pub struct TraceWriter {
    argv: Vec<String>,
    state: Mutex<WriterState>,
    /// Whether writing an operation has failed.
    has_failed: AtomicBool,
}

#[derive(Debug)]
struct WriterState {
    file: File,
    /// How many bytes of the file this writer has accounted for.
    length: u64,
    /// The number of the last operation.
    last: u64,
    /// Digests of the blobs and workspaces in the file.
    known: BTreeSet<Digest>,
    /// The `end` events that name them.
    content_index: ContentIndex,
}

impl TraceWriter {
    /// Opens a trace, or creates one. `argv` is written into every header.
    ///
    /// # Errors
    /// When the file cannot be opened for reading and writing, or is not a trace.
    pub fn open(path: &AbsPath, argv: Vec<String>) -> io::Result<Self> {
        // A link may be the checkout's: nothing is made where it leads.
        let is_empty = || std::fs::metadata(path.as_path()).map_or(true, |file| file.len() == 0);
        if path.as_path().is_symlink() && is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link to what is no trace"));
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path.as_path())?;
        let (known, content_index) = (BTreeSet::new(), ContentIndex::default());
        let state = WriterState { file, length: 0, last: 0, known, content_index };
        // Another writer may be creating it.
        state.file.lock()?;
        let is_trace = state.check_is_trace();
        state.file.unlock()?;
        is_trace?;
        Ok(Self { argv, state: Mutex::new(state), has_failed: AtomicBool::new(false) })
    }

    /// Appends an operation, and returns its number in the file.
    ///
    /// # Errors
    /// When it cannot be written completely; the file is then as it was before.
    pub fn append(&self, operation: FinishedOperation) -> io::Result<u64> {
        self.locked(|state| state.append(operation, &self.argv))
    }

    /// Appends the reward of a step, and returns the number of its operation.
    ///
    /// # Errors
    /// As for [`Self::append`].
    pub fn append_step(&self, step: RecordedStep) -> io::Result<u64> {
        self.locked(|state| {
            state.catch_up()?;
            state.write(step_bodies(step), Vec::new())
        })
    }

    fn locked(&self, write: impl FnOnce(&mut WriterState) -> io::Result<u64>) -> io::Result<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let written = state.file.lock().and_then(|()| {
            let written = write(&mut state);
            state.file.unlock()?;
            written
        });
        self.has_failed.fetch_or(written.is_err(), Ordering::Relaxed);
        written
    }

    /// Whether writing an operation has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}

impl WriterState {
    fn append(&mut self, operation: FinishedOperation, argv: &[String]) -> io::Result<u64> {
        self.catch_up()?;
        let known = &mut self.known;
        let mut new = Vec::new();
        let bodies = operation.bodies(argv, |digest| {
            let is_known = known.contains(digest);
            if !is_known {
                new.push(*digest);
            }
            is_known
        });
        self.write(bodies, new)
    }

    /// Writes the events of an operation that adds these contents.
    fn write(&mut self, bodies: Vec<EventBody>, new: Vec<Digest>) -> io::Result<u64> {
        let op = self.last + 1;
        let (text, end) = lines(op, bodies, self.content_index.entry_for_next(new.clone()));
        let before = self.length;
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            let _ = self.file.set_len(before);
            return Err(error);
        }
        self.known.extend(new.iter().copied());
        self.content_index.push(new, before + end as u64);
        self.length = before + text.len() as u64;
        self.last = op;
        Ok(op)
    }

    /// Reads what other writers have appended, and truncates an operation that one of them left unfinished.
    fn catch_up(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length < self.length {
            // Another process has replaced the content.
            self.length = 0;
            self.last = 0;
            self.known.clear();
            self.content_index = ContentIndex::default();
        }
        if length == self.length {
            return Ok(());
        }
        if self.length == 0 {
            self.load_last_end(length)?;
        }
        self.read_appended()?;
        if self.length < length {
            self.file.set_len(self.length)?;
        }
        Ok(())
    }

    /// Initializes the state from the last complete operation.
    fn load_last_end(&mut self, length: u64) -> io::Result<()> {
        self.check_is_trace()?;
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
        self.content_index = ContentIndex::of(ends);
        self.known = self.content_index.contents().copied().collect();
        Ok(())
    }

    /// Reads the `end` event at an offset; also returns the offset after its line.
    fn end_at(&self, at: u64) -> io::Result<(OperationEnd, u64)> {
        let mut reader = &self.file;
        reader.seek(SeekFrom::Start(at))?;
        let mut text = Vec::new();
        let LineRead::Whole(count) = read_line(&mut BufReader::new(reader), MAX_LINE_BYTES, &mut text)?
        else {
            return Err(damaged());
        };
        let event = read(&text).map_err(|_| damaged())?;
        match event.body {
            EventBody::End { back, contents, .. } if event.op > 0 => {
                Ok((OperationEnd { op: event.op, entry: EndEntry { back, contents } }, at + count as u64))
            }
            _ => Err(damaged()),
        }
    }

    /// Verifies that the file begins like a trace of a supported version.
    fn check_is_trace(&self) -> io::Result<()> {
        let mut prefix = [0; HEADER_PREFIX.len()];
        let mut count = 0;
        while count < prefix.len() {
            match self.file.read_at(&mut prefix[count..], count as u64)? {
                0 => break,
                more => count += more,
            }
        }
        if prefix[..count] != HEADER_PREFIX[..count] {
            return Err(not_a_trace());
        }
        let (mut reader, mut text) = (&self.file, Vec::new());
        reader.seek(SeekFrom::Start(0))?;
        if matches!(read_line(&mut BufReader::new(reader), MAX_LINE_BYTES, &mut text)?, LineRead::Whole(_)) {
            read_supported(&text).map_err(|_| not_a_trace())?;
        }
        Ok(())
    }

    /// Reads the operations after the last known one.
    fn read_appended(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.length))?;
        let mut reader = BufReader::new(&self.file);
        let (mut text, mut at, mut news) = (Vec::new(), self.length, Vec::new());
        loop {
            let count = match read_line(&mut reader, MAX_LINE_BYTES, &mut text)? {
                LineRead::Whole(count) => count,
                // Only an unfinished line of a writer may be truncated, nothing else.
                LineRead::CutOff(_) => break,
                LineRead::TooLong => return Err(damaged()),
            };
            // Damaged events and events of other versions are never truncated; the reader reports them.
            let event = read_supported(&text).map_err(|_| damaged())?;
            match event.body {
                EventBody::Blob { digest, .. } => news.push(digest),
                EventBody::Workspace(workspace) => news.push(workspace.id),
                EventBody::End { back, contents, .. } => {
                    let own = std::mem::take(&mut news);
                    if self.content_index.entry_for_next(own.clone()) != (EndEntry { back, contents }) {
                        return Err(damaged());
                    }
                    self.known.extend(&own);
                    self.content_index.push(own, at);
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

/// A parsed `end` event.
struct OperationEnd {
    op: u64,
    entry: EndEntry,
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the file is a damaged trace; inspect it with `lanser trace list`",
    )
}

fn not_a_trace() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file exists and is not a lanser trace")
}

/// Reads an event, and refuses headers of unsupported versions.
fn read_supported(text: &[u8]) -> Result<Event, LineError> {
    let event = read(text)?;
    match &event.body {
        EventBody::Header { version, .. } if !is_readable(version) => {
            Err(LineError::Json(format!("unsupported format version {version}")))
        }
        _ => Ok(event),
    }
}

/// The offset of the last complete `end` line, found by reading backwards; `None` when there is none.
fn last_end(file: &File, length: u64) -> io::Result<Option<u64>> {
    /// Bytes read at a time.
    const CHUNK_BYTES: usize = 64 << 10;
    /// The longest beginning of an `end` line up to its kind: two numbers, and the text around them.
    const PREFIX_BYTES: usize = 96;
    let (mut stop, mut is_whole) = (length, false);
    let mut part = vec![0; CHUNK_BYTES + PREFIX_BYTES];
    while stop > 0 {
        let start = stop.saturating_sub(CHUNK_BYTES as u64);
        let taken = usize::try_from(length.min(stop + PREFIX_BYTES as u64) - start).unwrap_or(CHUNK_BYTES);
        file.read_exact_at(&mut part[..taken], start)?;
        let own = usize::try_from(stop - start).unwrap_or(CHUNK_BYTES);
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

/// Whether a line begins like an `end` event.
fn is_end(line: &[u8]) -> bool {
    fn after<'t>(text: &'t [u8], word: &[u8]) -> Option<&'t [u8]> {
        let rest = text.strip_prefix(word)?;
        Some(&rest[rest.iter().take_while(|byte| byte.is_ascii_digit()).count()..])
    }
    let rest = after(line, b"{\"op\":").and_then(|rest| after(rest, b",\"seq\":"));
    rest.is_some_and(|rest| rest.starts_with(b",\"kind\":\"end\""))
}

/// The lines of an operation, and the offset of its `end` in them.
fn lines(op: u64, bodies: Vec<EventBody>, entry: EndEntry) -> (String, usize) {
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
    let (EndEntry { back, contents }, at) = (entry, text.len());
    line_of(op, seq + 1, &EventBody::End { events: seq + 1, digest, back, contents }, time, &mut text);
    text.push('\n');
    (text, at)
}
