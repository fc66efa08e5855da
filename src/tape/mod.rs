//! Records and replays the I/O of one operation.
//!
//! The I/O of an operation reads the workspace's files, its index, git and a server, and all of it goes through the
//! operation's [`Tape`]. A tape that is off does nothing. A recording tape stores each query with its answer. A replaying
//! tape returns the recorded answers and performs no I/O, so that live and replayed operations run the same code.
//!
//! A query that was not recorded gets an empty answer and marks the replay as different ([`Tape::first_unrecorded`]).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, to_canonical};

/// The kind of I/O that a query belongs to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum IoKind {
    /// The disk: the target of a path, the entries of a folder, the content of a file.
    File,
    /// The workspace's index of words and definitions.
    Index,
    /// The git history.
    History,
    /// The stored contents that earlier bundles were computed from.
    Contents,
    /// The state on disk and in git of files that are to be written.
    Guard,
    /// The write itself.
    Transaction,
    /// The run of an analyzer, or the answer of another server.
    Analyzer,
}

/// One message between lanser and a server, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The sender.
    pub from: MessageSender,
    /// The JSON-RPC message without its `jsonrpc` member. Ids count the calls of the operation from 1.
    pub message: String,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum MessageSender {
    /// lanser, the client.
    #[serde(rename = "c2s")]
    Client,
    /// The server.
    #[serde(rename = "s2c")]
    Server,
}

/// A recorded call to the server: the messages that the server sent before its response, and the response. All as JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Requests that the server sent while the call was in progress.
    pub meanwhile: Vec<String>,
    /// The response: `{"result": …}` or `{"error": …}`; `None` if the server did not respond.
    pub outcome: Option<String>,
}

/// The recorded I/O of an operation.
#[derive(Debug, Default)]
pub struct Recording {
    /// Queries and answers, both as JSON text.
    pub answers: BTreeMap<(IoKind, String), String>,
    /// The contents that answers refer to by digest.
    pub blobs: BTreeMap<Digest, Arc<Vec<u8>>>,
    /// The messages exchanged with the server, in order.
    pub frames: Vec<Frame>,
    /// The number of calls.
    calls: u64,
}

impl Recording {
    /// A recording with these parts.
    #[must_use]
    pub const fn new(
        answers: BTreeMap<(IoKind, String), String>,
        blobs: BTreeMap<Digest, Arc<Vec<u8>>>,
        frames: Vec<Frame>,
    ) -> Self {
        Self { answers, blobs, frames, calls: 0 }
    }

    fn put(&mut self, kind: IoKind, query: &(impl Serialize + ?Sized), answer: &impl Serialize) {
        self.answers.insert((kind, text(query)), text(answer));
    }
}

/// A store of contents by digest.
pub trait Blobs: std::fmt::Debug + Send + Sync {
    /// The content with this digest; `None` if it is missing or does not match the digest.
    fn blob(&self, digest: &Digest) -> Option<Arc<Vec<u8>>>;
}

impl Blobs for BTreeMap<Digest, Arc<Vec<u8>>> {
    fn blob(&self, digest: &Digest) -> Option<Arc<Vec<u8>>> {
        self.get(digest).cloned()
    }
}

/// A method and parameters as JSON text, by which a call is found in a recording.
pub type CallKey = (String, String);

/// The key of a call: the method and the canonical form of its parameters.
///
/// All calls of `initialize` have the same key. Its parameters describe the client, and a recorded server gives its
/// recorded answers to every client: also to one of another version, which declares other capabilities.
#[must_use]
pub fn call_key(method: &str, params: &impl Serialize) -> CallKey {
    let canonical = || {
        let text = to_canonical(params).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.unwrap_or_else(|| self::text(params))
    };
    (method.to_owned(), if method == "initialize" { "{}".to_owned() } else { canonical() })
}

/// The recorded data that a replay reads.
#[derive(Debug)]
pub struct ReplaySource {
    /// Queries and answers, both as JSON text.
    pub answers: BTreeMap<(IoKind, String), String>,
    /// The contents that answers refer to by digest.
    pub blobs: Arc<dyn Blobs>,
    /// Calls by their [`call_key`]; equal calls in the order in which they were made.
    pub calls: BTreeMap<CallKey, VecDeque<Exchange>>,
}

impl ReplaySource {
    fn get<A: DeserializeOwned>(&self, kind: IoKind, query: &(impl Serialize + ?Sized)) -> Option<A> {
        serde_json::from_str(self.answers.get(&(kind, text(query)))?).ok()
    }
}

/// A query or call that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrecordedQuery {
    /// The kind of I/O, `blob`, or the LSP method.
    pub kind: String,
    /// The query or the parameters as JSON text.
    pub query: String,
}

/// Records or replays the I/O of one operation. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub struct Tape(TapeMode);

#[derive(Debug, Clone, Default)]
enum TapeMode {
    #[default]
    Off,
    Recording(Arc<Mutex<Recording>>),
    Replaying(Arc<Mutex<ReplayState>>),
}

#[derive(Debug)]
struct ReplayState {
    source: ReplaySource,
    missing: Option<UnrecordedQuery>,
}

impl Tape {
    /// A tape that does nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// A tape that records.
    #[must_use]
    pub fn recording() -> Self {
        Self(TapeMode::Recording(Arc::default()))
    }

    /// A tape that replays `source`.
    #[must_use]
    pub fn replaying(source: ReplaySource) -> Self {
        Self(TapeMode::Replaying(Arc::new(Mutex::new(ReplayState { source, missing: None }))))
    }

    /// Whether the tape does nothing.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self.0, TapeMode::Off)
    }

    /// Whether the tape records.
    #[must_use]
    pub const fn is_recording(&self) -> bool {
        matches!(self.0, TapeMode::Recording(_))
    }

    /// Whether the tape replays.
    #[must_use]
    pub const fn is_replaying(&self) -> bool {
        matches!(self.0, TapeMode::Replaying(_))
    }

    /// Answers a query: `live` performs the I/O; `missing` is the answer if a replay has no record of it.
    pub fn query<Q, A>(
        &self,
        kind: IoKind,
        query: &Q,
        live: impl FnOnce() -> A,
        missing: impl FnOnce() -> A,
    ) -> A
    where
        Q: Serialize + ?Sized,
        A: Serialize + DeserializeOwned,
    {
        match &self.0 {
            TapeMode::Off => live(),
            TapeMode::Recording(recorded) => {
                let answer = live();
                locked(recorded).put(kind, query, &answer);
                answer
            }
            TapeMode::Replaying(replaying) => {
                let mut replaying = locked(replaying);
                replaying.source.get(kind, query).unwrap_or_else(|| {
                    replaying.mark_unrecorded(kind_name(kind), text(query));
                    missing()
                })
            }
        }
    }

    /// What I/O yields where it yields something, which is rare: `None` is not recorded, so that a trace of an earlier version,
    /// which did not ask, is replayed as well.
    pub fn query_rare<Q, A>(&self, kind: IoKind, query: &Q, live: impl FnOnce() -> Option<A>) -> Option<A>
    where
        Q: Serialize + ?Sized,
        A: Serialize + DeserializeOwned,
    {
        match &self.0 {
            TapeMode::Off => live(),
            TapeMode::Recording(recorded) => {
                let answer = live()?;
                locked(recorded).put(kind, query, &answer);
                Some(answer)
            }
            TapeMode::Replaying(replaying) => locked(replaying).source.get(kind, query),
        }
    }

    /// Answers a query whose answer is a content.
    pub fn query_bytes<Q: Serialize + ?Sized>(
        &self,
        kind: IoKind,
        query: &Q,
        live: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if self.is_off() {
            return live();
        }
        let digest: Option<Digest> =
            self.query(kind, query, || live().map(|bytes| self.record_blob(bytes)), || None);
        self.blob(&digest?).map(|bytes| bytes.to_vec())
    }

    /// Records a content that answers refer to by digest.
    pub fn record_blob(&self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::of(&bytes);
        if let TapeMode::Recording(recorded) = &self.0 {
            locked(recorded).blobs.entry(digest).or_insert_with(|| Arc::new(bytes));
        }
        digest
    }

    /// The recorded content with this digest.
    #[must_use]
    pub fn blob(&self, digest: &Digest) -> Option<Arc<Vec<u8>>> {
        match &self.0 {
            TapeMode::Off => None,
            TapeMode::Recording(recorded) => locked(recorded).blobs.get(digest).cloned(),
            TapeMode::Replaying(replaying) => {
                let mut replaying = locked(replaying);
                let found = replaying.source.blobs.blob(digest);
                if found.is_none() {
                    replaying.mark_unrecorded("blob", text(digest));
                }
                found
            }
        }
    }

    /// Records an outgoing call and returns the id of its messages; `None` if the tape does not record.
    #[must_use]
    pub fn record_call(&self, message: impl FnOnce(u64) -> String) -> Option<u64> {
        let TapeMode::Recording(recorded) = &self.0 else { return None };
        let mut recorded = locked(recorded);
        recorded.calls += 1;
        let id = recorded.calls;
        recorded.frames.push(Frame { from: MessageSender::Client, message: message(id) });
        Some(id)
    }

    /// Records a message.
    pub fn record_message(&self, from: MessageSender, message: impl FnOnce() -> String) {
        if let TapeMode::Recording(recorded) = &self.0 {
            locked(recorded).frames.push(Frame { from, message: message() });
        }
    }

    /// Replays a call; `None` if it was not recorded, which marks the replay as different. Equal calls are replayed in the
    /// order in which they were recorded.
    #[must_use]
    pub fn replay_call(&self, key: &CallKey) -> Option<Exchange> {
        let TapeMode::Replaying(replaying) = &self.0 else { return None };
        let mut replaying = locked(replaying);
        let found = replaying.source.calls.get_mut(key).and_then(VecDeque::pop_front);
        if found.is_none() {
            replaying.mark_unrecorded(&key.0, key.1.clone());
        }
        found
    }

    /// The first query or call that was not recorded.
    #[must_use]
    pub fn first_unrecorded(&self) -> Option<UnrecordedQuery> {
        let TapeMode::Replaying(replaying) = &self.0 else { return None };
        locked(replaying).missing.clone()
    }

    /// Removes and returns what was recorded so far.
    #[must_use]
    pub fn take_recording(&self) -> Recording {
        match &self.0 {
            TapeMode::Recording(recorded) => std::mem::take(&mut *locked(recorded)),
            TapeMode::Off | TapeMode::Replaying(_) => Recording::default(),
        }
    }
}

impl ReplayState {
    fn mark_unrecorded(&mut self, kind: &str, query: String) {
        self.missing.get_or_insert(UnrecordedQuery { kind: kind.to_owned(), query });
    }
}

/// The name of a kind of I/O.
#[must_use]
pub const fn kind_name(kind: IoKind) -> &'static str {
    match kind {
        IoKind::File => "file",
        IoKind::Index => "index",
        IoKind::History => "history",
        IoKind::Contents => "contents",
        IoKind::Guard => "guard",
        IoKind::Transaction => "transaction",
        IoKind::Analyzer => "analyzer",
    }
}

/// Data as JSON text with sorted members, the form in which it is read from a trace.
fn text<T: Serialize + ?Sized>(data: &T) -> String {
    serde_json::to_value(data).map(|value| value.to_string()).expect("queries and answers are plain data")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recorded_queries_are_answered() {
        let tape = Tape::recording();
        assert_eq!(tape.query(IoKind::Index, &("word", "a"), || vec![1, 2], Vec::new), [1, 2]);
        assert_eq!(
            tape.query_bytes(IoKind::File, "x", || Some(b"content".to_vec())),
            Some(b"content".to_vec())
        );
        assert_eq!(tape.query_bytes(IoKind::File, "y", || None), None);
        let Recording { answers, blobs, .. } = tape.take_recording();
        let replay =
            Tape::replaying(ReplaySource { answers, blobs: Arc::new(blobs), calls: BTreeMap::new() });
        let never = || -> Vec<i32> { unreachable!("a replay performs no I/O") };
        assert_eq!(replay.query(IoKind::Index, &("word", "a"), never, Vec::new), [1, 2]);
        assert_eq!(replay.query_bytes(IoKind::File, "x", || unreachable!()), Some(b"content".to_vec()));
        assert_eq!(replay.query_bytes(IoKind::File, "y", || unreachable!()), None);
        assert_eq!(replay.first_unrecorded(), None);
        assert_eq!(replay.query(IoKind::Index, &("word", "b"), never, Vec::new), Vec::<i32>::new());
        assert_eq!(replay.first_unrecorded().unwrap().query, r#"["word","b"]"#);
    }

    #[test]
    fn only_the_parameters_of_initialize_are_ignored() {
        use serde_json::json;
        let (recorded, other) = (json!({"b": 1, "a": 2.0}), json!({"a": 3}));
        assert_eq!(call_key("m", &recorded), ("m".to_owned(), r#"{"a":2,"b":1}"#.to_owned()));
        assert_ne!(call_key("m", &recorded), call_key("m", &other));
        assert_eq!(call_key("initialize", &recorded), call_key("initialize", &other));
    }

    #[test]
    fn equal_calls_are_replayed_in_order() {
        let exchange = |text: &str| Exchange { outcome: Some(text.to_owned()), ..Exchange::default() };
        let calls = BTreeMap::from([(
            ("m".to_owned(), "{}".to_owned()),
            VecDeque::from([exchange("1"), exchange("2")]),
        )]);
        let replay = Tape::replaying(ReplaySource {
            calls,
            answers: BTreeMap::new(),
            blobs: Arc::new(BTreeMap::new()),
        });
        let key = call_key("m", &serde_json::json!({}));
        assert_eq!(replay.replay_call(&key), Some(exchange("1")));
        assert_eq!(replay.replay_call(&key), Some(exchange("2")));
        assert_eq!(replay.first_unrecorded(), None);
        assert_eq!(replay.replay_call(&key), None);
        assert_eq!(replay.first_unrecorded().unwrap().kind, "m");
    }
}
