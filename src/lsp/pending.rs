//! The requests that have no response yet. Each ends: by its response, by cancellation, or with the connection.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::error::LspError;
use super::jsonrpc::{RawResult, ResponseError};

/// The outcome of a request: the server's response, or why there is none.
pub(super) type RequestOutcome = Result<Result<RawResult, ResponseError>, LspError>;

/// The table of requests without a response.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    last_id: i64,
    /// `None` for a cancelled request, whose response is still to come and will be ignored.
    requests: BTreeMap<i64, Option<oneshot::Sender<RequestOutcome>>>,
    /// Why the connection is closed.
    close_reason: Option<LspError>,
}

/// What a response belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResponseMatch {
    /// A request that is being waited for.
    Pending,
    /// A cancelled request.
    Cancelled,
    /// No known request.
    Unknown,
}

impl PendingRequests {
    /// Adds a request. After [`Self::close`] it fails at once.
    pub(super) fn register(&mut self) -> (i64, oneshot::Receiver<RequestOutcome>) {
        self.last_id += 1;
        let (sender, receiver) = oneshot::channel();
        match &self.close_reason {
            Some(error) => drop(sender.send(Err(error.clone()))),
            None => drop(self.requests.insert(self.last_id, Some(sender))),
        }
        (self.last_id, receiver)
    }

    /// Completes a request with its response.
    pub(super) fn complete(&mut self, id: i64, outcome: Result<RawResult, ResponseError>) -> ResponseMatch {
        match self.requests.remove(&id) {
            Some(Some(sender)) => {
                // The receiver may have been dropped just now; then the response is not needed.
                let _ = sender.send(Ok(outcome));
                ResponseMatch::Pending
            }
            Some(None) => ResponseMatch::Cancelled,
            None => ResponseMatch::Unknown,
        }
    }

    /// Cancels a request; returns whether the server is still working on it.
    pub(super) fn cancel(&mut self, id: i64) -> bool {
        self.requests.get_mut(&id).is_some_and(|request| request.take().is_some())
    }

    /// How many cancelled requests have no response yet.
    pub(super) fn unanswered_cancelled(&self) -> usize {
        self.requests.values().filter(|request| request.is_none()).count()
    }

    /// Fails all requests, now and later. The first reason is kept.
    pub(super) fn close(&mut self, error: &LspError) {
        let error = self.close_reason.get_or_insert_with(|| error.clone());
        for sender in std::mem::take(&mut self.requests).into_values().flatten() {
            let _ = sender.send(Err(error.clone()));
        }
    }

    /// Why the connection is closed; `None` while it is open.
    pub(super) fn close_reason(&self) -> Option<&LspError> {
        self.close_reason.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: i64) -> RawResult {
        serde_json::Value::from(number).into()
    }

    #[test]
    fn responses_complete_their_requests_in_any_order() {
        let mut pending = PendingRequests::default();
        let ((a, mut first), (b, mut second)) = (pending.register(), pending.register());
        assert_eq!(pending.complete(b, Ok(number(2))), ResponseMatch::Pending);
        assert_eq!(pending.complete(a, Ok(number(1))), ResponseMatch::Pending);
        assert_eq!(pending.complete(a, Ok(number(1))), ResponseMatch::Unknown);
        assert_eq!(first.try_recv().unwrap(), Ok(Ok(number(1))));
        assert_eq!(second.try_recv().unwrap(), Ok(Ok(number(2))));
    }

    #[test]
    fn a_request_is_cancelled_once_and_unanswered_until_its_response() {
        let mut pending = PendingRequests::default();
        let (id, _) = pending.register();
        assert!(pending.cancel(id));
        assert!(!pending.cancel(id));
        assert_eq!(pending.unanswered_cancelled(), 1);
        assert_eq!(pending.complete(id, Ok(number(0))), ResponseMatch::Cancelled);
        assert_eq!(pending.unanswered_cancelled(), 0);
        assert!(!pending.cancel(id));
    }

    #[test]
    fn closing_fails_earlier_and_later_requests() {
        let mut pending = PendingRequests::default();
        let (_, mut before) = pending.register();
        pending.close(&LspError::EndOfStream);
        pending.close(&LspError::Closed);
        let (_, mut after) = pending.register();
        assert_eq!(before.try_recv().unwrap(), Err(LspError::EndOfStream));
        assert_eq!(after.try_recv().unwrap(), Err(LspError::EndOfStream));
    }
}
