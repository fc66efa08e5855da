//! What a server answered about one request, noted so that it can be said again in its place.
//!
//! A conversation is all or nothing: what a server infers for one question can hang on those before it, so a request is
//! answered from its conversation alone or asked anew from the beginning ([`LspError::Forgotten`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::error::LspError;
use super::jsonrpc::RawResult;
use crate::digest::Digest;
use crate::path::AbsPath;

/// The most that one conversation takes, in bytes. A longer one is not kept.
const LONGEST: usize = 1 << 20;

/// Answers by what was asked for them, and the documents that were shown for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    answers: BTreeMap<String, String>,
    shown: BTreeMap<AbsPath, Digest>,
}

impl Conversation {
    /// How much it takes, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let said: usize = self.answers.iter().map(|(question, answer)| question.len() + answer.len()).sum();
        let shown: usize = self.shown.keys().map(|path| path.as_str().len() + size_of::<Digest>()).sum();
        said + shown
    }

    /// What was answered.
    ///
    /// # Errors
    /// [`LspError::Forgotten`] when that was not asked.
    fn say(&self, method: &str, params: &Value) -> Result<RawResult, LspError> {
        let answer = self.answers.get(&question(method, params)).map(|answer| RawResult::from_text(answer));
        answer.ok_or_else(|| LspError::Forgotten { method: method.to_owned() })
    }
}

/// A conversation that is being held.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    conversation: Conversation,
    size: usize,
    /// Whether it cannot be said again.
    spoiled: bool,
}

impl Notes {
    /// What was said so far; `None` when it could not be said again: one question had two answers or none, or it is too long.
    #[must_use]
    pub fn take(&self) -> Option<Conversation> {
        let Noted { conversation, spoiled, .. } = std::mem::take(&mut *self.noted());
        (!spoiled).then_some(conversation)
    }

    fn show(&self, path: &AbsPath, digest: Digest) {
        let mut noted = self.noted();
        match noted.conversation.shown.insert(path.clone(), digest) {
            None => noted.size += path.as_str().len() + size_of::<Digest>(),
            // A document that was another one in the middle of it leaves open which of the answers are about which.
            Some(before) => noted.spoiled |= before != digest,
        }
        noted.spoiled |= noted.size > LONGEST;
    }

    fn note(&self, question: String, answer: Option<&RawResult>) {
        let mut noted = self.noted();
        let answer = answer.filter(|answer| !noted.spoiled && answer.size() <= LONGEST);
        let Some(answer) =
            answer.and_then(|answer| answer.read::<Value>().ok()).map(|answer| answer.to_string())
        else {
            *noted = Noted { spoiled: true, ..Noted::default() };
            return;
        };
        noted.size += question.len() + answer.len();
        let before = noted.conversation.answers.get(&question);
        if noted.size > LONGEST || before.is_some_and(|before| *before != answer) {
            *noted = Noted { spoiled: true, ..Noted::default() };
            return;
        }
        noted.conversation.answers.insert(question, answer);
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of a conversation while it is held.
#[derive(Debug, Clone, Default)]
pub enum Memory {
    /// Nobody will want it again.
    #[default]
    Off,
    /// It is noted.
    Noting(Arc<Notes>),
    /// It is said again; the server is asked nothing.
    Saying(Arc<Conversation>),
}

impl Memory {
    /// What is said in the server's place; `None` when the server is to be asked.
    pub(super) fn say(&self, method: &str, params: &Value) -> Option<Result<RawResult, LspError>> {
        match self {
            Self::Saying(conversation) => Some(conversation.say(method, params)),
            Self::Off | Self::Noting(_) => None,
        }
    }

    /// The server is shown a document, in the course of the conversation.
    ///
    /// # Errors
    /// [`LspError::Forgotten`] when it is said again and was about another document.
    pub fn show(&self, path: &AbsPath, digest: &Digest) -> Result<(), LspError> {
        match self {
            Self::Off => {}
            Self::Noting(notes) => notes.show(path, *digest),
            Self::Saying(conversation) if conversation.shown.get(path) == Some(digest) => {}
            Self::Saying(_) => return Err(LspError::Forgotten { method: "textDocument/didOpen".to_owned() }),
        }
        Ok(())
    }

    /// Notes a question that goes out. The answer follows; a question that is given up leaves the conversation spoiled.
    pub(super) fn ask(&self, method: &str, params: &Value) -> Option<Asked> {
        let Self::Noting(notes) = self else { return None };
        Some(Asked { notes: notes.clone(), question: Some(question(method, params)) })
    }
}

#[cfg(test)]
impl Memory {
    /// Notes an answer.
    pub(crate) fn hear(&self, method: &str, params: &Value, answer: &Value) {
        self.ask(method, params).expect("it takes notes").answered(&Ok(answer.clone().into()));
    }
}

/// A question whose answer is to be noted.
#[derive(Debug)]
pub(super) struct Asked {
    notes: Arc<Notes>,
    question: Option<String>,
}

impl Asked {
    pub(super) fn answered(mut self, answer: &Result<RawResult, LspError>) {
        if let Some(question) = self.question.take() {
            self.notes.note(question, answer.as_ref().ok());
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(question) = self.question.take() {
            self.notes.note(question, None);
        }
    }
}

fn question(method: &str, params: &Value) -> String {
    format!("{method} {params}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hold(exchanges: &[(&str, Result<Value, LspError>)]) -> Option<Conversation> {
        let notes = Arc::new(Notes::default());
        let memory = Memory::Noting(notes.clone());
        for (params, answer) in exchanges {
            assert!(memory.say("m", &json!(params)).is_none());
            memory.ask("m", &json!(params)).unwrap().answered(&answer.clone().map(RawResult::from));
        }
        notes.take()
    }

    #[test]
    fn what_was_said_is_said_again_and_nothing_else() {
        let held = hold(&[("a", Ok(json!([1, null]))), ("b", Ok(json!(null))), ("a", Ok(json!([1, null])))]);
        let memory = Memory::Saying(Arc::new(held.unwrap()));
        assert!(memory.ask("m", &json!("a")).is_none());
        assert_eq!(memory.say("m", &json!("a")), Some(Ok(json!([1, null]).into())));
        assert_eq!(memory.say("m", &json!("b")), Some(Ok(json!(null).into())));
        let forgotten = |method: &str| Some(Err(LspError::Forgotten { method: method.to_owned() }));
        assert_eq!(memory.say("m", &json!("c")), forgotten("m"));
        assert_eq!(memory.say("n", &json!("a")), forgotten("n"));
    }

    #[test]
    fn what_cannot_be_said_again_is_not_kept() {
        assert_eq!(hold(&[("a", Ok(json!(1))), ("a", Ok(json!(2)))]), None, "two answers");
        assert_eq!(hold(&[("a", Ok(json!(1))), ("b", Err(LspError::Cancelled))]), None, "no answer");
        assert_eq!(hold(&[("a", Ok(json!("x".repeat(LONGEST))))]), None, "too long");
        assert!(hold(&[("a", Ok(json!(1)))]).is_some());
    }

    #[test]
    fn a_question_that_was_given_up_spoils_the_conversation() {
        let notes = Arc::new(Notes::default());
        let memory = Memory::Noting(notes.clone());
        memory.ask("m", &json!("a")).unwrap().answered(&Ok(json!(1).into()));
        drop(memory.ask("m", &json!("b")));
        assert_eq!(notes.take(), None);
    }

    #[test]
    fn it_is_about_the_documents_that_were_shown() {
        let path = |name: &str| AbsPath::new(name).unwrap();
        let digest = |text: &str| Digest::of(text.as_bytes());
        let notes = Arc::new(Notes::default());
        let memory = Memory::Noting(notes.clone());
        for _ in 0..2 {
            memory.show(&path("/a.py"), &digest("a")).unwrap();
        }
        let memory = Memory::Saying(Arc::new(notes.take().unwrap()));
        memory.show(&path("/a.py"), &digest("a")).unwrap();
        assert!(memory.show(&path("/a.py"), &digest("b")).is_err(), "another text");
        assert!(memory.show(&path("/b.py"), &digest("a")).is_err(), "another document");

        let memory = Memory::Noting(notes.clone());
        memory.show(&path("/a.py"), &digest("a")).unwrap();
        memory.show(&path("/a.py"), &digest("b")).unwrap();
        assert_eq!(notes.take(), None, "it changed in the middle");
    }

    #[test]
    fn its_size_is_that_of_what_it_holds() {
        let size = hold(&[("a", Ok(json!("x".repeat(1000))))]).unwrap().size();
        assert!((1000..1020).contains(&size), "{size}");
        let notes = Notes::default();
        notes.show(&AbsPath::new("/a.py").unwrap(), Digest::of(b""));
        assert_eq!(notes.take().unwrap().size(), "/a.py".len() + 32);
    }
}
