//! Reads a trace, one operation at a time, and verifies every line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use super::content_index::{ContentIndex, EndEntry};
use super::event::{self, LineError};
use super::lines::{LineRead, MAX_LINE_BYTES, read_line};
use super::operation::{TracedOperation, bytes_of};
use crate::digest::Digest;
use crate::model::trace::{Event, EventBody, RecordedWorkspace, StepOrigin, TRACE_FORMAT, TRACE_VERSION};
use crate::path::AbsPath;
use crate::tape::Blobs;

/// Limit for the blobs held in memory, in bytes.
const MAX_CACHED_BLOB_BYTES: usize = 64 << 20;

/// Why reading a trace stopped.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Reading the file failed.
    #[error("cannot read the trace: {0}")]
    Io(#[from] io::Error),
    /// The file is not a trace, or has an unsupported version.
    #[error("{0}")]
    Foreign(String),
    /// A line differs from what was written.
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

/// Reads the operations of a trace in order.
#[derive(Debug)]
pub struct TraceReader {
    file: BufReader<File>,
    store: Arc<TraceBlobs>,
    /// The offset of the next line.
    offset: u64,
    /// The number of lines read.
    line: u64,
    /// The number of operations read.
    last: u64,
    truncated: Option<u64>,
    length: u64,
    /// The events of the last operation with their lines; `None` when they are not collected.
    events: Option<Vec<(Event, String)>>,
    /// The expected index entries of the `end` events.
    content_index: ContentIndex,
}

/// Random access to the blobs and workspaces of a trace.
#[derive(Debug)]
pub struct TraceBlobs {
    file: File,
    offsets: Mutex<BTreeMap<Digest, (u64, usize)>>,
    cache: Mutex<BlobCache>,
}

#[derive(Debug, Default)]
struct BlobCache {
    blobs: BTreeMap<Digest, (Arc<Vec<u8>>, u64)>,
    bytes: usize,
    clock: u64,
}

impl TraceReader {
    /// Opens a trace.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &AbsPath) -> Result<Self, TraceError> {
        let file = open_regular(path)?;
        let store =
            TraceBlobs { file: file.try_clone()?, offsets: Mutex::default(), cache: Mutex::default() };
        let length = file.metadata()?.len();
        let (file, store) = (BufReader::with_capacity(1 << 18, file), Arc::new(store));
        let content_index = ContentIndex::default();
        Ok(Self {
            file,
            store,
            offset: 0,
            line: 0,
            last: 0,
            truncated: None,
            length,
            events: None,
            content_index,
        })
    }

    /// Makes [`Self::take_events`] return the events of each operation.
    pub fn keep_events(&mut self) {
        self.events = Some(Vec::new());
    }

    /// The events of the last operation with their lines.
    pub fn take_events(&mut self) -> Vec<(Event, String)> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The blobs and workspaces read so far.
    #[must_use]
    pub fn store(&self) -> Arc<TraceBlobs> {
        self.store.clone()
    }

    /// The line at which the trace breaks off in the middle of an operation; known only at the end of the file.
    #[must_use]
    pub const fn truncated(&self) -> Option<u64> {
        self.truncated
    }

    /// The bytes read so far, and the size of the file.
    #[must_use]
    pub const fn progress(&self) -> (u64, u64) {
        (self.offset, self.length)
    }

    /// Reads the next operation; `None` at the end.
    ///
    /// # Errors
    /// See [`TraceError`]. Nothing can be read after an error.
    pub fn next_operation(&mut self) -> Result<Option<TracedOperation>, TraceError> {
        let begin = self.offset;
        let mut operation = TracedOperation::new(self.last + 1);
        let (mut sums, mut contents, mut text) = (Vec::new(), Vec::new(), Vec::new());
        if begin == 0 && self.file.fill_buf()?.first().is_some_and(|first| *first != b'{') {
            return Err(TraceError::Foreign("the file is not a lanser trace".to_owned()));
        }
        loop {
            let count = match read_line(&mut self.file, MAX_LINE_BYTES, &mut text)? {
                LineRead::Whole(count) => count,
                LineRead::CutOff(count) => {
                    if count > 0 || operation.events > 0 {
                        self.truncated = Some(self.line + u64::from(count > 0));
                    }
                    return Ok(None);
                }
                LineRead::TooLong => {
                    self.line += 1;
                    let why =
                        format!("the line is longer than the {MAX_LINE_BYTES} bytes of the longest event");
                    return Err(self.damaged(operation.op, operation.events + 1, why));
                }
            };
            let at = self.offset;
            self.offset += count as u64;
            self.line += 1;
            let seq = operation.events + 1;
            let event = self.read(&text, operation.op, seq)?;
            operation.events = seq;
            contents.extend(self.record_content(&event.body, at, count - 1));
            if let Some(events) = &mut self.events {
                events.push((event.clone(), String::from_utf8_lossy(&text).into_owned()));
            }
            if let EventBody::End { events, digest, back, contents: named } = event.body {
                let expected = Digest::of_fields(sums.iter().map(String::as_bytes));
                let entry = self.content_index.entry_for_next(contents.clone());
                self.content_index.push(contents, at);
                if events != seq || digest != expected || entry != (EndEntry { back, contents: named }) {
                    let why = "the operation does not match its end event".to_owned();
                    return Err(self.damaged(operation.op, seq, why));
                }
                operation.bytes = self.offset - begin;
                operation.group_calls();
                self.last = operation.op;
                return Ok(Some(operation));
            }
            sums.push(event.sum);
            operation.add_event(seq, event.body);
        }
    }

    /// Reads a line that must be event `seq` of operation `op`.
    fn read(&self, text: &[u8], op: u64, seq: u64) -> Result<Event, TraceError> {
        let event = match event::read(text) {
            Ok(event) => event,
            Err(LineError::Json(why)) if self.line == 1 => {
                return Err(TraceError::Foreign(
                    self.header_error(text)
                        .unwrap_or_else(|| format!("the file is not a lanser trace: {why}")),
                ));
            }
            Err(error) => {
                let header_error = Some(()).filter(|()| seq == 1).and_then(|()| self.header_error(text));
                return Err(match header_error {
                    Some(header_error) => TraceError::Foreign(header_error),
                    None => self.damaged(op, seq, error.to_string()),
                });
            }
        };
        if seq == 1
            && let EventBody::Header { format, version, .. } = &event.body
            && (format != TRACE_FORMAT || major(version) != major(TRACE_VERSION))
        {
            return Err(TraceError::Foreign(unsupported_format(format, version)));
        }
        if (event.op, event.seq) != (op, seq) || (seq == 1) != matches!(event.body, EventBody::Header { .. })
        {
            let why = format!("the trace has event {} of operation {} here", event.seq, event.op);
            return Err(self.damaged(op, seq, why));
        }
        if let EventBody::Blob { digest, text, hex } = &event.body {
            match bytes_of(text.clone(), hex.as_deref()).filter(|bytes| Digest::of(bytes) == *digest) {
                Some(bytes) => self.store.cache_blob(*digest, Arc::new(bytes)),
                None => {
                    return Err(self.damaged(op, seq, "the content does not match its digest".to_owned()));
                }
            }
        }
        Ok(event)
    }

    /// Why a header is not supported; `None` when the line is not a header or is supported.
    fn header_error(&self, text: &[u8]) -> Option<String> {
        let header: serde_json::Value = serde_json::from_slice(text).ok()?;
        let (format, version) = (header["format"].as_str()?, header["version"].as_str()?);
        (format != TRACE_FORMAT || major(version) != major(TRACE_VERSION))
            .then(|| unsupported_format(format, version))
    }

    fn damaged(&self, op: u64, seq: u64, why: String) -> TraceError {
        TraceError::Damaged { op, seq, line: self.line, why }
    }

    /// Remembers the offset of a blob or workspace, and returns its digest.
    fn record_content(&self, body: &EventBody, offset: u64, length: usize) -> Option<Digest> {
        let digest = match body {
            EventBody::Blob { digest, .. } => *digest,
            EventBody::Workspace(workspace) => workspace.id,
            _ => return None,
        };
        let mut offsets = self.store.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        offsets.entry(digest).or_insert((offset, length));
        Some(digest)
    }
}

/// A step, and the operations that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepLink {
    /// The operation of the step.
    pub step: u64,
    /// The operation whose bundle the step leads to.
    pub bundle: u64,
    /// The operation whose bundle the step starts from; `None` if it starts elsewhere.
    pub previous: Option<u64>,
}

/// The steps of a trace, found by the beginnings of its lines. Nothing is verified: the reader does that when it gets there.
///
/// # Errors
/// When the file cannot be read.
pub fn step_links(path: &AbsPath) -> io::Result<Vec<StepLink>> {
    /// How a line of a step begins, after the numbers of the operation and the event.
    const KIND: &[u8] = b",\"seq\":2,\"kind\":\"step\"";
    /// The longest beginning: the number of an operation, and the text around it.
    const PREFIX_BYTES: usize = 64;
    let (mut file, mut text, mut links) = (BufReader::new(open_regular(path)?), Vec::new(), Vec::new());
    while matches!(read_line(&mut file, MAX_LINE_BYTES, &mut text)?, LineRead::Whole(_)) {
        let beginning = text.get(..PREFIX_BYTES.min(text.len())).unwrap_or_default();
        if !beginning.windows(KIND.len()).any(|part| part == KIND) {
            continue;
        }
        if let Ok(Event { op, body: EventBody::Step(step), .. }) = event::parse(&text) {
            let previous = match step.previous {
                Some(StepOrigin::Op(previous)) => Some(previous),
                Some(StepOrigin::Bundle(_)) | None => None,
            };
            links.push(StepLink { step: op, bundle: step.bundle, previous });
        }
    }
    Ok(links)
}

/// Opens a regular file. A trace is read at several places, which a pipe does not allow, and a named pipe without a writer
/// would be waited for forever.
fn open_regular(path: &AbsPath) -> io::Result<File> {
    if !std::fs::metadata(path.as_path())?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    File::open(path.as_path())
}

fn unsupported_format(format: &str, version: &str) -> String {
    format!(
        "the format is {format} {version}, but this version of lanser reads {TRACE_FORMAT} {TRACE_VERSION}"
    )
}

/// Whether this lanser can read a version of the format.
pub(super) fn is_readable(version: &str) -> bool {
    major(version) == major(TRACE_VERSION)
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

impl TraceBlobs {
    fn body(&self, digest: &Digest) -> Option<EventBody> {
        let (offset, length) = *self.offsets.lock().unwrap_or_else(PoisonError::into_inner).get(digest)?;
        let mut text = vec![0; length];
        self.file.read_exact_at(&mut text, offset).ok()?;
        // The line was verified when it was first read.
        event::parse(&text).ok().map(|event| event.body)
    }

    /// A workspace by its id.
    #[must_use]
    pub fn workspace(&self, id: &Digest) -> Option<RecordedWorkspace> {
        match self.body(id)? {
            EventBody::Workspace(workspace) => Some(*workspace),
            _ => None,
        }
    }
}

impl Blobs for TraceBlobs {
    fn blob(&self, digest: &Digest) -> Option<Arc<Vec<u8>>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.clock += 1;
        let clock = cache.clock;
        if let Some((bytes, used)) = cache.blobs.get_mut(digest) {
            *used = clock;
            return Some(bytes.clone());
        }
        drop(cache);
        let EventBody::Blob { text, hex, .. } = self.body(digest)? else { return None };
        let bytes = Arc::new(bytes_of(text, hex.as_deref())?);
        self.cache_blob(*digest, bytes.clone());
        Some(bytes)
    }
}

impl TraceBlobs {
    /// Keeps a blob in memory, and evicts the least recently used ones above the limit.
    fn cache_blob(&self, digest: Digest, bytes: Arc<Vec<u8>>) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let clock = cache.clock;
        let length = bytes.len();
        if cache.blobs.insert(digest, (bytes, clock)).is_none() {
            cache.bytes += length;
        }
        while cache.bytes > MAX_CACHED_BLOB_BYTES && cache.blobs.len() > 1 {
            let Some(oldest) =
                cache.blobs.iter().min_by_key(|(_, (_, used))| *used).map(|(digest, _)| *digest)
            else {
                break;
            };
            if let Some((gone, _)) = cache.blobs.remove(&oldest) {
                cache.bytes -= gone.len();
            }
        }
    }
}
