//! The calls that have no answer yet. Every one of them ends: by its answer, by being given up, or with the stream.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::error::LspError;
use super::jsonrpc::{Reply, ResponseError};

/// How a call ends from outside: with the server's answer, or because there will be none.
pub(super) type Outcome = Result<Result<Reply, ResponseError>, LspError>;

/// The table of calls.
#[derive(Debug, Default)]
pub(super) struct Pending {
    last_id: i64,
    /// `None` for a call that was given up and whose answer, which the server still owes, is to be thrown away.
    calls: BTreeMap<i64, Option<oneshot::Sender<Outcome>>>,
    /// Why there will be no more answers.
    ended: Option<LspError>,
}

/// What an answer was for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// A call that is waited for.
    Waited,
    /// A call that was given up.
    GivenUp,
    /// Nothing that was asked.
    Nothing,
}

impl Pending {
    /// A new call. After the end it is over at once.
    pub(super) fn begin(&mut self) -> (i64, oneshot::Receiver<Outcome>) {
        self.last_id += 1;
        let (sender, receiver) = oneshot::channel();
        match &self.ended {
            Some(error) => drop(sender.send(Err(error.clone()))),
            None => drop(self.calls.insert(self.last_id, Some(sender))),
        }
        (self.last_id, receiver)
    }

    /// An answer came.
    pub(super) fn answer(&mut self, id: i64, outcome: Result<Reply, ResponseError>) -> Answered {
        match self.calls.remove(&id) {
            Some(Some(sender)) => {
                // The caller may have gone in this moment; then the answer is of no use.
                let _ = sender.send(Ok(outcome));
                Answered::Waited
            }
            Some(None) => Answered::GivenUp,
            None => Answered::Nothing,
        }
    }

    /// Nobody waits for this call any more. Whether the server still works on it.
    pub(super) fn give_up(&mut self, id: i64) -> bool {
        self.calls.get_mut(&id).is_some_and(|call| call.take().is_some())
    }

    /// How many calls were given up and not answered yet.
    pub(super) fn owed(&self) -> usize {
        self.calls.values().filter(|call| call.is_none()).count()
    }

    /// No answer will come any more. The first reason stays.
    pub(super) fn end(&mut self, error: &LspError) {
        let error = self.ended.get_or_insert_with(|| error.clone());
        for sender in std::mem::take(&mut self.calls).into_values().flatten() {
            let _ = sender.send(Err(error.clone()));
        }
    }

    /// Why there will be no more answers, if that is so.
    pub(super) fn ended(&self) -> Option<&LspError> {
        self.ended.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: i64) -> Reply {
        serde_json::Value::from(number).into()
    }

    #[test]
    fn answers_find_their_calls_in_any_order() {
        let mut pending = Pending::default();
        let ((a, mut first), (b, mut second)) = (pending.begin(), pending.begin());
        assert_eq!(pending.answer(b, Ok(number(2))), Answered::Waited);
        assert_eq!(pending.answer(a, Ok(number(1))), Answered::Waited);
        assert_eq!(pending.answer(a, Ok(number(1))), Answered::Nothing);
        assert_eq!(first.try_recv().unwrap(), Ok(Ok(number(1))));
        assert_eq!(second.try_recv().unwrap(), Ok(Ok(number(2))));
    }

    #[test]
    fn a_call_is_given_up_once_and_owed_until_answered() {
        let mut pending = Pending::default();
        let (id, _) = pending.begin();
        assert!(pending.give_up(id));
        assert!(!pending.give_up(id));
        assert_eq!(pending.owed(), 1);
        assert_eq!(pending.answer(id, Ok(number(0))), Answered::GivenUp);
        assert_eq!(pending.owed(), 0);
        assert!(!pending.give_up(id));
    }

    #[test]
    fn the_end_reaches_every_call_before_and_after() {
        let mut pending = Pending::default();
        let (_, mut before) = pending.begin();
        pending.end(&LspError::EndOfStream);
        pending.end(&LspError::Closed);
        let (_, mut after) = pending.begin();
        assert_eq!(before.try_recv().unwrap(), Err(LspError::EndOfStream));
        assert_eq!(after.try_recv().unwrap(), Err(LspError::EndOfStream));
    }
}
