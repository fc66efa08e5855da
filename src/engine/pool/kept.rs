//! What the servers said on one ground, kept to be said again.
//!
//! A bare server keeps what it inferred, and so answers at once what it was asked before. Ours is made to forget that, so
//! that no answer hangs on the questions before it; what it *said* about a request hangs on nothing but the ground. So its
//! words are kept until the ground is another one, or the server ends by itself; the answer is made from them anew. A server
//! that takes another one's place, because a question needs one that was never asked anything, inherits its words.
//!
//! What rests on files that no ground tells of is not kept. For installed files their distribution's version stands; where
//! one of those that an answer was made with is another one by now, its words are not said again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::inputs::Inputs;
use super::WorkerKind;
use crate::digest::Digest;
use crate::lsp::Conversation;
use crate::model::request::{Command, Request};
use crate::path::AbsPath;

/// How much is kept, in bytes of text.
const MOST: usize = 4 << 20;

/// A conversation, and who said it.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Held {
    pub(super) conversation: Arc<Conversation>,
    pub(super) server: Identity,
    /// Whether that server had never been asked anything before.
    pub(super) pristine: bool,
    /// Where that server is.
    pub(super) kind: WorkerKind,
    /// The files outside the workspace that the answer was made with, as [`RequestState::read_outside`] tells them.
    ///
    /// [`RequestState::read_outside`]: super::super::request_state::RequestState::read_outside
    pub(super) read: Arc<BTreeMap<AbsPath, Option<Digest>>>,
}

/// One server, as long as it runs, and those that take its place.
#[derive(Debug, Clone, Default)]
pub(super) struct Identity(Arc<()>);

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What was said on one ground. Another ground's words take the place of all.
#[derive(Debug)]
pub(super) struct Kept<G = Inputs>(Mutex<Shelf<G>>);

#[derive(Debug)]
struct Shelf<G> {
    ground: Option<Arc<G>>,
    held: BTreeMap<Question, (Held, u64)>,
    /// How much text it is, in bytes.
    size: usize,
    /// Of the last use; the least goes first.
    turn: u64,
}

type Question = (WorkerKind, String);

/// Whether what a server says about such a request is kept.
pub(super) const fn is_kept(request: &Request) -> bool {
    match request.cmd {
        Command::Definition
        | Command::Declaration
        | Command::TypeDefinition
        | Command::Implementation
        | Command::References
        | Command::Hover
        | Command::Calls => true,
        // Of diagnostics there are many, and nobody asks for them again where nothing has changed; what edits is asked again.
        _ => false,
    }
}

impl<G> Default for Kept<G> {
    fn default() -> Self {
        Self(Mutex::new(Shelf::on(None)))
    }
}

impl<G> Kept<G> {
    /// What was said about a request on a ground.
    pub(super) fn get(&self, kind: WorkerKind, request: &Request, ground: &Arc<G>) -> Option<Held> {
        let mut shelf = self.shelf();
        if shelf.ground.as_ref().is_some_and(|mine| !Arc::ptr_eq(mine, ground)) {
            // A ground takes memory, too.
            *shelf = Shelf::on(None);
        }
        shelf.turn += 1;
        let now = shelf.turn;
        let (held, turn) = shelf.held.get_mut(&question(kind, request))?;
        *turn = now;
        Some(held.clone())
    }

    /// Keeps what was said.
    pub(super) fn put(&self, kind: WorkerKind, request: &Request, ground: &Arc<G>, held: Held) {
        let mut shelf = self.shelf();
        if shelf.ground.as_ref().is_none_or(|mine| !Arc::ptr_eq(mine, ground)) {
            *shelf = Shelf::on(Some(ground.clone()));
        }
        shelf.turn += 1;
        let (question, turn) = (question(kind, request), shelf.turn);
        shelf.size += size(&question, &held);
        if let Some((old, _)) = shelf.held.insert(question.clone(), (held, turn)) {
            shelf.size -= size(&question, &old);
        }
        while shelf.size > MOST
            && let Some(oldest) = shelf.held.iter().min_by_key(|(_, (_, turn))| *turn)
        {
            let question = oldest.0.clone();
            shelf.remove(&question);
        }
    }

    /// Forgets what was said about a request.
    pub(super) fn forget(&self, kind: WorkerKind, request: &Request) {
        self.shelf().remove(&question(kind, request));
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        *self.shelf() = Shelf::on(None);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<G>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G> Shelf<G> {
    const fn on(ground: Option<Arc<G>>) -> Self {
        Self { ground, held: BTreeMap::new(), size: 0, turn: 0 }
    }

    fn remove(&mut self, question: &Question) {
        if let Some((old, _)) = self.held.remove(question) {
            self.size -= size(question, &old);
        }
    }
}

fn size(question: &Question, held: &Held) -> usize {
    let read: usize = held.read.keys().map(|path| path.as_str().len() + size_of::<Option<Digest>>()).sum();
    question.1.len() + held.conversation.size() + read
}

fn question(kind: WorkerKind, request: &Request) -> Question {
    (kind, serde_json::to_string(request).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lsp::{Memory, Notes};
    use crate::selector::parse;
    use crate::text::ColumnUnit;

    fn request(line: usize) -> Request {
        let selector = parse(&format!("a.py:{line}:1"), ColumnUnit::Codepoint).unwrap();
        Request::about(Command::Hover, selector)
    }

    fn held(bytes: usize) -> Held {
        let notes = Arc::new(Notes::default());
        Memory::Noting(notes.clone()).hear("m", &json!(null), &json!("x".repeat(bytes)));
        let conversation = Arc::new(notes.take().unwrap());
        Held {
            conversation,
            server: Identity::default(),
            pristine: false,
            kind: WorkerKind::usual(),
            read: Arc::default(),
        }
    }

    #[test]
    fn another_ground_has_other_words() {
        let (kept, kind, one, other) = (Kept::default(), WorkerKind::usual(), Arc::new(1), Arc::new(1));
        kept.put(kind, &request(1), &one, held(1));
        assert!(kept.get(kind, &request(1), &one).is_some());
        assert!(kept.get(kind, &request(2), &one).is_none());
        assert!(kept.get(WorkerKind { second: true, ..kind }, &request(1), &one).is_none());
        assert!(kept.get(kind, &request(1), &other).is_none(), "it only looks the same");
        kept.put(kind, &request(2), &other, held(1));
        assert!(kept.get(kind, &request(1), &one).is_none());
        kept.forget(kind, &request(2));
        assert!(kept.get(kind, &request(2), &other).is_none());
    }

    #[test]
    fn what_was_wanted_longest_ago_goes_first() {
        let (kept, kind, ground) = (Kept::default(), WorkerKind::usual(), Arc::new(()));
        let large = MOST / 10;
        for line in 1..=9 {
            kept.put(kind, &request(line), &ground, held(large));
        }
        assert!(kept.get(kind, &request(1), &ground).is_some());
        kept.put(kind, &request(10), &ground, held(large));
        assert!(kept.get(kind, &request(2), &ground).is_none());
        for line in [1, 3, 10] {
            assert!(kept.get(kind, &request(line), &ground).is_some(), "{line}");
        }
        // The same again takes no more room.
        for _ in 0..20 {
            kept.put(kind, &request(3), &ground, held(large));
        }
        assert!(kept.get(kind, &request(4), &ground).is_some());
        for line in [1, 3, 4, 5, 6, 7, 8, 9, 10] {
            kept.forget(kind, &request(line));
        }
        assert_eq!(kept.shelf().size, 0);
    }
}
