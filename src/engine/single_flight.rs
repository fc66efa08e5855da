//! Single flight: identical concurrent requests are answered by one computation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::inputs::Inputs;
use super::settings::Settings;
use crate::model::bundle::Bundle;
use crate::model::request::Request;

/// The requests in flight.
#[derive(Debug, Default)]
pub(super) struct SingleFlight {
    in_flight: Arc<Mutex<InFlight>>,
    /// The number of requests so far that must not be shared; makes their keys distinct.
    unshared: AtomicU64,
}

/// By request key, how to wait for the answer. A request that finds its key here arrived before the final scan of the
/// workspace, so the answer will be fresh for it, too.
type InFlight = BTreeMap<String, watch::Receiver<Option<Arc<Bundle>>>>;

/// The role of a request.
pub(super) enum FlightRole {
    /// It computes the answer.
    Leader(FlightLeader),
    /// An identical request is already in flight.
    Follower(watch::Receiver<Option<Arc<Bundle>>>),
}

/// Computes the answer for all identical requests. If it is dropped without an answer, the others compute their own.
#[derive(Debug)]
pub(super) struct FlightLeader {
    in_flight: Arc<Mutex<InFlight>>,
    key: String,
    answer: watch::Sender<Option<Arc<Bundle>>>,
}

impl SingleFlight {
    /// Joins an identical request in flight, or starts a new one.
    pub(super) fn join(&self, request: &Request, inputs: &Arc<Inputs>, settings: &Settings) -> FlightRole {
        let json = serde_json::to_string(request).unwrap_or_default();
        // Writes and recorded requests are never deduplicated.
        let unshared_number = if request.writes() || settings.trace.is_some() {
            self.unshared.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            0
        };
        let key = format!(
            "{:p} {} {:?} {unshared_number} {json}",
            Arc::as_ptr(inputs),
            settings.verbose,
            settings.timeout
        );
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = in_flight.get(&key) {
            return FlightRole::Follower(answer.clone());
        }
        let (sender, receiver) = watch::channel(None);
        in_flight.insert(key.clone(), receiver);
        FlightRole::Leader(FlightLeader { in_flight: self.in_flight.clone(), key, answer: sender })
    }
}

impl FlightLeader {
    /// Ends the time in which requests can join.
    pub(super) fn close(&self) {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }

    /// Sends the answer to all requests that joined.
    pub(super) fn deliver(self, bundle: &Bundle) {
        if self.answer.receiver_count() > 0 {
            self.answer.send_replace(Some(Arc::new(bundle.clone())));
        }
    }
}

impl Drop for FlightLeader {
    fn drop(&mut self) {
        self.close();
    }
}

/// Waits for the leader's answer; `None` if it was dropped without one.
pub(super) async fn wait(mut answer: watch::Receiver<Option<Arc<Bundle>>>) -> Option<Arc<Bundle>> {
    answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone())
}
