//! Throttles scans of the workspace while many requests are running.
//!
//! One scan proves the freshness of every answer that was complete before it started. So a scan is delayed while more
//! answers are being computed, and scanning takes at most a tenth of the time. When no request is pending any more,
//! there is no reason to wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// The minimum interval between scans, in multiples of the last scan's duration.
const INTERVAL_FACTOR: u32 = 9;

/// The maximum interval between scans.
const MAX_INTERVAL: Duration = Duration::from_millis(300);

/// Delays scans.
#[derive(Debug)]
pub(super) struct ScanThrottle {
    /// The number of answers being computed; `None` if scans are never delayed.
    pending: Option<Arc<watch::Sender<usize>>>,
    /// The end of the interval after the last scan.
    next_scan: Mutex<Option<Instant>>,
}

/// Counts an answer as being computed, until it is dropped.
#[derive(Debug)]
pub struct PendingGuard(Option<Arc<watch::Sender<usize>>>);

impl ScanThrottle {
    pub(super) fn new(throttled: bool) -> Self {
        Self { pending: throttled.then(|| Arc::new(watch::channel(0).0)), next_scan: Mutex::new(None) }
    }

    /// Counts an answer as being computed, until the returned guard is dropped.
    pub(super) fn pending_guard(&self) -> PendingGuard {
        if let Some(pending) = &self.pending {
            pending.send_modify(|pending| *pending += 1);
        }
        PendingGuard(self.pending.clone())
    }

    /// Waits until the next scan is due.
    pub(super) async fn wait(&self) {
        let next_scan = *self.next_scan.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(pending), Some(next_scan)) = (&self.pending, next_scan) else { return };
        let mut pending = pending.subscribe();
        tokio::select! {
            biased;
            // This cannot fail: the sender is in `self`.
            _ = pending.wait_for(|pending| *pending == 0) => {}
            () = tokio::time::sleep_until(next_scan.into()) => {}
        }
    }

    /// Starts a new interval after a scan that took this long.
    pub(super) fn record_scan(&self, took: Duration) {
        let next_scan = Instant::now() + (took * INTERVAL_FACTOR).min(MAX_INTERVAL);
        *self.next_scan.lock().unwrap_or_else(PoisonError::into_inner) = Some(next_scan);
    }
}

impl Drop for PendingGuard {
    fn drop(&mut self) {
        if let Some(pending) = &self.0 {
            pending.send_modify(|pending| *pending -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_waited(throttle: &ScanThrottle) -> Duration {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let began = Instant::now();
        runtime.block_on(throttle.wait());
        began.elapsed()
    }

    #[test]
    fn scans_are_delayed_only_while_answers_are_pending() {
        let throttle = ScanThrottle::new(true);
        let other = throttle.pending_guard();
        assert!(time_waited(&throttle) < Duration::from_millis(20), "there was no scan yet");
        throttle.record_scan(Duration::from_millis(10));
        assert!(time_waited(&throttle) > Duration::from_millis(60));
        assert!(time_waited(&throttle) < Duration::from_millis(60), "the interval is over");
        throttle.record_scan(Duration::from_secs(10));
        assert!(time_waited(&throttle) < Duration::from_secs(5), "the interval is limited");
        throttle.record_scan(Duration::from_secs(10));
        drop(other);
        assert!(time_waited(&throttle) < Duration::from_millis(100), "no answer is pending");
        let unthrottled = ScanThrottle::new(false);
        let _other = unthrottled.pending_guard();
        unthrottled.record_scan(Duration::from_secs(10));
        assert!(time_waited(&unthrottled) < Duration::from_millis(100));
    }
}
