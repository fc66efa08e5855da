//! What passes through the doors of one operation: its questions to the outside, and the answers.
//!
//! An operation's outside is the workspace's files, its index, git, and a server. Whoever asks one of them goes through
//! the operation's [`Tape`]. Off, a tape does nothing. Recording, it notes question and answer. Replaying, it answers what
//! was recorded, and the outside is never asked: everything between the doors is the same code, live and replayed.
//!
//! A question that was not recorded gets an empty answer, and is noted ([`Tape::first_lost`]): whatever comes of it, the
//! replay is none of what was recorded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// Whom a question went to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Door {
    /// The disk: what a path leads to, what a folder holds, what a file holds.
    File,
    /// The workspace's index of words and definitions.
    Index,
    /// The revisions of git.
    History,
    /// The contents that earlier bundles were made from.
    Contents,
    /// What git and the disk say of files that are to be written.
    Guard,
    /// The writing itself.
    Transaction,
}

/// One message between lanser and a server, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Who sent it.
    pub from: Side,
    /// The JSON-RPC message without its `jsonrpc` member. Ids count the operation's own calls, from 1.
    pub message: String,
}

/// The two sides of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Side {
    /// lanser.
    #[serde(rename = "c2s")]
    Client,
    /// The server.
    #[serde(rename = "s2c")]
    Server,
}

/// A call to the server that was recorded: what the server said before its answer, and the answer. Both as JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Requests of the server's own while it worked on the call.
    pub meanwhile: Vec<String>,
    /// The outcome: `{"result": …}` or `{"error": …}`; `None` when none came.
    pub outcome: Option<String>,
}

/// What was recorded of an operation.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Questions and answers, both as JSON text.
    pub answers: BTreeMap<(Door, String), String>,
    /// The contents that answers name by their digests.
    pub blobs: BTreeMap<Digest, Arc<Vec<u8>>>,
    /// The conversation, in its order.
    pub frames: Vec<Frame>,
    /// How many calls there were.
    calls: u64,
}

impl Recorded {
    /// A record made of its parts.
    #[must_use]
    pub const fn new(
        answers: BTreeMap<(Door, String), String>,
        blobs: BTreeMap<Digest, Arc<Vec<u8>>>,
        frames: Vec<Frame>,
    ) -> Self {
        Self { answers, blobs, frames, calls: 0 }
    }
}

/// Contents by their digests.
pub trait Blobs: std::fmt::Debug + Send + Sync {
    /// The content with this digest; `None` when it is not there or is another one.
    fn blob(&self, digest: &Digest) -> Option<Arc<Vec<u8>>>;
}

impl Blobs for BTreeMap<Digest, Arc<Vec<u8>>> {
    fn blob(&self, digest: &Digest) -> Option<Arc<Vec<u8>>> {
        self.get(digest).cloned()
    }
}

/// What an operation is answered from.
#[derive(Debug)]
pub struct Source {
    /// Questions and answers, both as JSON text.
    pub answers: BTreeMap<(Door, String), String>,
    /// The contents that answers name by their digests.
    pub blobs: Arc<dyn Blobs>,
    /// Calls by method and canonical parameters; those that are alike in the order in which they were made.
    pub calls: BTreeMap<(String, String), VecDeque<Exchange>>,
}

/// A question that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Whom it went to, in one word.
    pub door: String,
    /// The question as JSON text.
    pub question: String,
}

/// The tape of one operation. Clones are the same tape.
#[derive(Debug, Clone, Default)]
pub struct Tape(Mode);

#[derive(Debug, Clone, Default)]
enum Mode {
    #[default]
    Off,
    Recording(Arc<Mutex<Recorded>>),
    Replaying(Arc<Mutex<Replaying>>),
}

#[derive(Debug)]
struct Replaying {
    source: Source,
    lost: Option<Lost>,
}

impl Tape {
    /// A tape that does nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// An empty tape that notes everything.
    #[must_use]
    pub fn recording() -> Self {
        Self(Mode::Recording(Arc::default()))
    }

    /// A tape that answers.
    #[must_use]
    pub fn replaying(source: Source) -> Self {
        Self(Mode::Replaying(Arc::new(Mutex::new(Replaying { source, lost: None }))))
    }

    /// Whether it does nothing.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self.0, Mode::Off)
    }

    /// Whether it notes everything.
    #[must_use]
    pub const fn is_recording(&self) -> bool {
        matches!(self.0, Mode::Recording(_))
    }

    /// Whether it answers.
    #[must_use]
    pub const fn is_replaying(&self) -> bool {
        matches!(self.0, Mode::Replaying(_))
    }

    /// The answer to a question: `live` asks the outside; `lost` is the empty answer.
    pub fn ask<Q, A>(&self, door: Door, question: &Q, live: impl FnOnce() -> A, lost: impl FnOnce() -> A) -> A
    where
        Q: Serialize + ?Sized,
        A: Serialize + DeserializeOwned,
    {
        match &self.0 {
            Mode::Off => live(),
            Mode::Recording(recorded) => {
                let answer = live();
                locked(recorded).answers.insert((door, text(question)), text(&answer));
                answer
            }
            Mode::Replaying(replaying) => {
                let mut replaying = locked(replaying);
                let key = (door, text(question));
                let told =
                    replaying.source.answers.get(&key).and_then(|told| serde_json::from_str(told).ok());
                told.unwrap_or_else(|| {
                    replaying.lose(door_name(door), key.1);
                    lost()
                })
            }
        }
    }

    /// The same for a question whose answer is a content.
    pub fn bytes<Q: Serialize + ?Sized>(
        &self,
        door: Door,
        question: &Q,
        live: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if self.is_off() {
            return live();
        }
        let digest: Option<Digest> =
            self.ask(door, question, || live().map(|bytes| self.keep(bytes)), || None);
        self.blob(&digest?).map(|bytes| bytes.to_vec())
    }

    /// Notes a content that answers name by its digest.
    pub fn keep(&self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::of(&bytes);
        if let Mode::Recording(recorded) = &self.0 {
            locked(recorded).blobs.entry(digest).or_insert_with(|| Arc::new(bytes));
        }
        digest
    }

    /// A content by its digest.
    #[must_use]
    pub fn blob(&self, digest: &Digest) -> Option<Arc<Vec<u8>>> {
        match &self.0 {
            Mode::Off => None,
            Mode::Recording(recorded) => locked(recorded).blobs.get(digest).cloned(),
            Mode::Replaying(replaying) => {
                let mut replaying = locked(replaying);
                let found = replaying.source.blobs.blob(digest);
                if found.is_none() {
                    replaying.lose("blob", text(digest));
                }
                found
            }
        }
    }

    /// Notes that a call goes out; the number that its frames carry.
    #[must_use]
    pub fn call(&self, message: impl FnOnce(u64) -> String) -> Option<u64> {
        let Mode::Recording(recorded) = &self.0 else { return None };
        let mut recorded = locked(recorded);
        recorded.calls += 1;
        let id = recorded.calls;
        recorded.frames.push(Frame { from: Side::Client, message: message(id) });
        Some(id)
    }

    /// Notes a message.
    pub fn note(&self, from: Side, message: impl FnOnce() -> String) {
        if let Mode::Recording(recorded) = &self.0 {
            locked(recorded).frames.push(Frame { from, message: message() });
        }
    }

    /// What was recorded of a call; `None` when it was never made, which is noted. The same call made again gives what came
    /// of it again.
    #[must_use]
    pub fn exchange(&self, method: &str, params: &str) -> Option<Exchange> {
        let Mode::Replaying(replaying) = &self.0 else { return None };
        let mut replaying = locked(replaying);
        let found = replaying
            .source
            .calls
            .get_mut(&(method.to_owned(), params.to_owned()))
            .and_then(VecDeque::pop_front);
        if found.is_none() {
            replaying.lose(method, params.to_owned());
        }
        found
    }

    /// The first question that was not recorded.
    #[must_use]
    pub fn first_lost(&self) -> Option<Lost> {
        let Mode::Replaying(replaying) = &self.0 else { return None };
        locked(replaying).lost.clone()
    }

    /// What was recorded so far; it is taken out.
    #[must_use]
    pub fn take(&self) -> Recorded {
        match &self.0 {
            Mode::Recording(recorded) => std::mem::take(&mut *locked(recorded)),
            Mode::Off | Mode::Replaying(_) => Recorded::default(),
        }
    }
}

impl Replaying {
    fn lose(&mut self, door: &str, question: String) {
        self.lost.get_or_insert(Lost { door: door.to_owned(), question });
    }
}

/// The one word for a door.
#[must_use]
pub const fn door_name(door: Door) -> &'static str {
    match door {
        Door::File => "file",
        Door::Index => "index",
        Door::History => "history",
        Door::Contents => "contents",
        Door::Guard => "guard",
        Door::Transaction => "transaction",
    }
}

/// Data as JSON text with its members sorted, as it is again when it comes out of a file.
fn text<T: Serialize + ?Sized>(data: &T) -> String {
    serde_json::to_value(data)
        .map(|value| value.to_string())
        .expect("what passes through a door is plain data")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_answered_and_nothing_else() {
        let tape = Tape::recording();
        assert_eq!(tape.ask(Door::Index, &("word", "a"), || vec![1, 2], Vec::new), [1, 2]);
        assert_eq!(tape.bytes(Door::File, "x", || Some(b"content".to_vec())), Some(b"content".to_vec()));
        assert_eq!(tape.bytes(Door::File, "y", || None), None);
        let Recorded { answers, blobs, .. } = tape.take();
        let replay = Tape::replaying(Source { answers, blobs: Arc::new(blobs), calls: BTreeMap::new() });
        let never = || -> Vec<i32> { unreachable!("a replay asks nobody") };
        assert_eq!(replay.ask(Door::Index, &("word", "a"), never, Vec::new), [1, 2]);
        assert_eq!(replay.bytes(Door::File, "x", || unreachable!()), Some(b"content".to_vec()));
        assert_eq!(replay.bytes(Door::File, "y", || unreachable!()), None);
        assert_eq!(replay.first_lost(), None);
        assert_eq!(replay.ask(Door::Index, &("word", "b"), never, Vec::new), Vec::<i32>::new());
        assert_eq!(replay.first_lost().unwrap().question, r#"["word","b"]"#);
    }

    #[test]
    fn calls_that_are_alike_are_answered_in_their_order() {
        let exchange = |text: &str| Exchange { outcome: Some(text.to_owned()), ..Exchange::default() };
        let calls = BTreeMap::from([(
            ("m".to_owned(), "{}".to_owned()),
            VecDeque::from([exchange("1"), exchange("2")]),
        )]);
        let replay =
            Tape::replaying(Source { calls, answers: BTreeMap::new(), blobs: Arc::new(BTreeMap::new()) });
        assert_eq!(replay.exchange("m", "{}"), Some(exchange("1")));
        assert_eq!(replay.exchange("m", "{}"), Some(exchange("2")));
        assert_eq!(replay.first_lost(), None);
        assert_eq!(replay.exchange("m", "{}"), None);
        assert_eq!(replay.first_lost().unwrap().door, "m");
    }
}
