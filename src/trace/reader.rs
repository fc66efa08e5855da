//! Reading a trace, one operation at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use super::directory::{Directory, Entry};
use super::event::{self, LineError};
use super::lines::{Line, MAX_LINE, next};
use super::operation::{FORMAT, Operation, bytes_of};
use crate::digest::Digest;
use crate::model::trace::{Body, Event, TRACE_VERSION, Workspace};
use crate::path::AbsPath;
use crate::tape::Blobs;

/// How many bytes of blobs stay in memory.
const MAX_BLOBS: usize = 64 << 20;

/// Why a trace cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("cannot read the trace: {0}")]
    Io(#[from] io::Error),
    /// It is no trace, or one of another version.
    #[error("{0}")]
    Foreign(String),
    /// A line is not what was written.
    #[error("operation {op}, event {seq} (line {line}): {why}")]
    Damaged {
        /// The operation.
        op: u64,
        /// The event in it.
        seq: u64,
        /// The line of the file, counted from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
}

/// Gives the operations of a trace in their order.
#[derive(Debug)]
pub struct Reader {
    file: BufReader<File>,
    store: Arc<Store>,
    /// Where the next line begins.
    offset: u64,
    /// The lines that were read.
    line: u64,
    /// The operations that were read.
    last: u64,
    truncated: Option<u64>,
    length: u64,
    /// The events of the last operation, when they are wanted.
    events: Option<Vec<Event>>,
    /// What the ends have to say.
    directory: Directory,
}

/// The blobs and workspaces of a trace, wherever they stand in it.
#[derive(Debug)]
pub struct Store {
    file: File,
    places: Mutex<BTreeMap<Digest, (u64, usize)>>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    blobs: BTreeMap<Digest, (Arc<Vec<u8>>, u64)>,
    bytes: usize,
    turn: u64,
}

impl Reader {
    /// Opens a trace.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &AbsPath) -> Result<Self, TraceError> {
        let file = File::open(path.as_path())?;
        let store = Store { file: file.try_clone()?, places: Mutex::default(), held: Mutex::default() };
        let length = file.metadata()?.len();
        let (file, store) = (BufReader::with_capacity(1 << 18, file), Arc::new(store));
        let directory = Directory::default();
        Ok(Self {
            file,
            store,
            offset: 0,
            line: 0,
            last: 0,
            truncated: None,
            length,
            events: None,
            directory,
        })
    }

    /// Has the events of each operation kept for [`Self::take_events`].
    pub fn keep_events(&mut self) {
        self.events = Some(Vec::new());
    }

    /// The events of the last operation.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The blobs and workspaces that were read so far.
    #[must_use]
    pub fn store(&self) -> Arc<Store> {
        self.store.clone()
    }

    /// The line at which the trace breaks off in the middle of an operation, once its end was reached.
    #[must_use]
    pub const fn truncated(&self) -> Option<u64> {
        self.truncated
    }

    /// How much of the file was read, and how much there is, in bytes.
    #[must_use]
    pub const fn progress(&self) -> (u64, u64) {
        (self.offset, self.length)
    }

    /// The next operation; `None` at the end.
    ///
    /// # Errors
    /// See [`TraceError`]. Nothing can be read after one.
    pub fn next_operation(&mut self) -> Result<Option<Operation>, TraceError> {
        let begin = self.offset;
        let mut operation = Operation::new(self.last + 1);
        let (mut sums, mut contents, mut text) = (Vec::new(), Vec::new(), Vec::new());
        if begin == 0 && self.file.fill_buf()?.first().is_some_and(|first| *first != b'{') {
            return Err(TraceError::Foreign("it is no trace of lanser".to_owned()));
        }
        loop {
            let count = match next(&mut self.file, MAX_LINE, &mut text)? {
                Line::Whole(count) => count,
                Line::CutOff(count) => {
                    if count > 0 || operation.events > 0 {
                        self.truncated = Some(self.line + u64::from(count > 0));
                    }
                    return Ok(None);
                }
                Line::TooLong => {
                    self.line += 1;
                    let why = format!("the line is longer than the {MAX_LINE} bytes of the longest event");
                    return Err(self.damaged(operation.op, operation.events + 1, why));
                }
            };
            let at = self.offset;
            self.offset += count as u64;
            self.line += 1;
            let seq = operation.events + 1;
            let event = self.read(&text, operation.op, seq)?;
            operation.events = seq;
            contents.extend(self.note(&event.body, at, count - 1));
            if let Some(events) = &mut self.events {
                events.push(event.clone());
            }
            if let Body::End { events, digest, back, contents: told } = event.body {
                let expected = Digest::of_fields(sums.iter().map(String::as_bytes));
                let entry = self.directory.next(contents.clone());
                self.directory.push(contents, at);
                if events != seq || digest != expected || entry != (Entry { back, contents: told }) {
                    let why = "the operation is not what its end says".to_owned();
                    return Err(self.damaged(operation.op, seq, why));
                }
                operation.bytes = self.offset - begin;
                operation.settle();
                self.last = operation.op;
                return Ok(Some(operation));
            }
            sums.push(event.sum);
            operation.take(seq, event.body);
        }
    }

    /// Reads a line that has to be that event.
    fn read(&self, text: &[u8], op: u64, seq: u64) -> Result<Event, TraceError> {
        let event = match event::read(text) {
            Ok(event) => event,
            Err(LineError::Json(why)) if self.line == 1 => {
                return Err(TraceError::Foreign(
                    self.foreign(text).unwrap_or_else(|| format!("it is no trace of lanser: {why}")),
                ));
            }
            Err(error) => {
                let foreign = Some(()).filter(|()| seq == 1).and_then(|()| self.foreign(text));
                return Err(match foreign {
                    Some(foreign) => TraceError::Foreign(foreign),
                    None => self.damaged(op, seq, error.to_string()),
                });
            }
        };
        if seq == 1
            && let Body::Header { format, version, .. } = &event.body
            && (format != FORMAT || major(version) != major(TRACE_VERSION))
        {
            return Err(TraceError::Foreign(refusal(format, version)));
        }
        if (event.op, event.seq) != (op, seq) || (seq == 1) != matches!(event.body, Body::Header { .. }) {
            let why = format!("here stands event {} of operation {}", event.seq, event.op);
            return Err(self.damaged(op, seq, why));
        }
        if let Body::Blob { digest, text, hex } = &event.body {
            match bytes_of(text.clone(), hex.as_deref()).filter(|bytes| Digest::of(bytes) == *digest) {
                Some(bytes) => self.store.hold(*digest, Arc::new(bytes)),
                None => {
                    return Err(self.damaged(op, seq, "the content is not that of its digest".to_owned()));
                }
            }
        }
        Ok(event)
    }

    /// Why a header is not one of ours, when it is a header at all.
    fn foreign(&self, text: &[u8]) -> Option<String> {
        let header: serde_json::Value = serde_json::from_slice(text).ok()?;
        let (format, version) = (header["format"].as_str()?, header["version"].as_str()?);
        (format != FORMAT || major(version) != major(TRACE_VERSION)).then(|| refusal(format, version))
    }

    fn damaged(&self, op: u64, seq: u64, why: String) -> TraceError {
        TraceError::Damaged { op, seq, line: self.line, why }
    }

    /// Notes where a content stands; which one that is.
    fn note(&self, body: &Body, offset: u64, length: usize) -> Option<Digest> {
        let digest = match body {
            Body::Blob { digest, .. } => *digest,
            Body::Workspace(workspace) => workspace.id,
            _ => return None,
        };
        let mut places = self.store.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.entry(digest).or_insert((offset, length));
        Some(digest)
    }
}

fn refusal(format: &str, version: &str) -> String {
    format!("it is written in {format} {version}, and this lanser reads {FORMAT} {TRACE_VERSION}")
}

/// Whether a version of the format can be read.
pub(super) fn is_readable(version: &str) -> bool {
    major(version) == major(TRACE_VERSION)
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

impl Store {
    fn body(&self, digest: &Digest) -> Option<Body> {
        let (offset, length) = *self.places.lock().unwrap_or_else(PoisonError::into_inner).get(digest)?;
        let mut text = vec![0; length];
        self.file.read_exact_at(&mut text, offset).ok()?;
        // It was judged when it was read for the first time.
        event::known(&text).ok().map(|event| event.body)
    }

    /// A workspace by its id.
    #[must_use]
    pub fn workspace(&self, id: &Digest) -> Option<Workspace> {
        match self.body(id)? {
            Body::Workspace(workspace) => Some(*workspace),
            _ => None,
        }
    }
}

impl Blobs for Store {
    fn blob(&self, digest: &Digest) -> Option<Arc<Vec<u8>>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.turn += 1;
        let turn = held.turn;
        if let Some((bytes, used)) = held.blobs.get_mut(digest) {
            *used = turn;
            return Some(bytes.clone());
        }
        drop(held);
        let Body::Blob { text, hex, .. } = self.body(digest)? else { return None };
        let bytes = Arc::new(bytes_of(text, hex.as_deref())?);
        self.hold(*digest, bytes.clone());
        Some(bytes)
    }
}

impl Store {
    /// Keeps a content in memory, for as long as there is room.
    fn hold(&self, digest: Digest, bytes: Arc<Vec<u8>>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = held.turn;
        let length = bytes.len();
        if held.blobs.insert(digest, (bytes, turn)).is_none() {
            held.bytes += length;
        }
        while held.bytes > MAX_BLOBS && held.blobs.len() > 1 {
            let Some(oldest) =
                held.blobs.iter().min_by_key(|(_, (_, used))| *used).map(|(digest, _)| *digest)
            else {
                break;
            };
            if let Some((gone, _)) = held.blobs.remove(&oldest) {
                held.bytes -= gone.len();
            }
        }
    }
}
