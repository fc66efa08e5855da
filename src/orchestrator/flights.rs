//! One question for all who ask it at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::Settings;
use super::ground::Ground;
use crate::model::bundle::Bundle;
use crate::model::request::Request;

/// The questions that are being asked.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: Arc<Mutex<Open>>,
    /// How many requests came so far that nobody else shares.
    alone: AtomicU64,
}

/// By the question: how to wait for its answer. Whoever finds it here came before the workspace was looked at for the last
/// time, so the answer will be fresh for him too.
type Open = BTreeMap<String, watch::Receiver<Option<Arc<Bundle>>>>;

/// How somebody comes to an answer.
pub(super) enum Boarded {
    /// He asks.
    Leader(Leader),
    /// Somebody else asks the same.
    Follower(watch::Receiver<Option<Arc<Bundle>>>),
}

/// The one who asks. Dropped without an answer, it makes the others ask for themselves.
#[derive(Debug)]
pub(super) struct Leader {
    open: Arc<Mutex<Open>>,
    question: String,
    answer: watch::Sender<Option<Arc<Bundle>>>,
}

impl Flights {
    /// Joins the question, or begins it.
    pub(super) fn board(&self, request: &Request, ground: &Arc<Ground>, settings: &Settings) -> Boarded {
        let words = serde_json::to_string(request).unwrap_or_default();
        // Who writes, writes for himself; and what is recorded is recorded for itself.
        let own = if request.writes() || settings.trace.is_some() {
            self.alone.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            0
        };
        let question =
            format!("{:p} {} {:?} {own} {words}", Arc::as_ptr(ground), settings.verbose, settings.timeout);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = open.get(&question) {
            return Boarded::Follower(answer.clone());
        }
        let (sender, receiver) = watch::channel(None);
        open.insert(question.clone(), receiver);
        Boarded::Leader(Leader { open: self.open.clone(), question, answer: sender })
    }
}

impl Leader {
    /// Nobody can join any more.
    pub(super) fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.question);
    }

    /// Gives the answer to all who joined.
    pub(super) fn deliver(self, bundle: &Bundle) {
        if self.answer.receiver_count() > 0 {
            self.answer.send_replace(Some(Arc::new(bundle.clone())));
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.close();
    }
}

/// The answer of whoever asks; `None` when he gave up.
pub(super) async fn wait(mut answer: watch::Receiver<Option<Arc<Bundle>>>) -> Option<Arc<Bundle>> {
    answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone())
}
