//! A watchdog for the event loop.
//!
//! One thread does the work and handles time limits and signals, so a computation that does not end would block both.
//! A [`Watchdog`] task counts heartbeats in the loop. Another thread checks the count and ends the process when the
//! heartbeat has stopped for longer than an answer may take. The pause is measured in checks and not by the clock, so
//! that a process that was suspended and resumed is not ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The interval of heartbeats and of checks.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(50);

/// How much longer than its limit work may take, so that its own reaction to the limit comes first.
pub(super) const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Why the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallReason {
    /// One step exceeded the limit.
    Limit,
    /// The process was interrupted and did not react.
    Interrupted,
}

/// Watches an event loop. Clones watch the same one.
#[derive(Debug, Clone, Default)]
pub struct Watchdog {
    heartbeats: Arc<AtomicU64>,
    /// Whether the process is already ending, through the work itself or the watchdog.
    is_ending: Arc<Mutex<bool>>,
}

impl Watchdog {
    /// Starts the heartbeat in the current event loop.
    pub fn start_heartbeat(&self) {
        let heartbeats = self.heartbeats.clone();
        drop(tokio::spawn(async move {
            loop {
                heartbeats.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(HEARTBEAT_INTERVAL).await;
            }
        }));
    }

    /// Ends the process if the heartbeat stops for `limit` plus a grace period, or for the grace period after
    /// `interrupted` completed. The exit code is what `stop` returns, which is called on another thread and informs
    /// the caller.
    pub fn exit_on_stall<I: Future<Output = ()>>(
        &self,
        limit: Duration,
        interrupted: impl FnOnce() -> I + Send + 'static,
        stop: impl FnOnce(StallReason) -> u8 + Send + 'static,
    ) {
        self.on_stall(limit, interrupted, move |reason| {
            let code = i32::from(stop(reason));
            crate::process::kill_all();
            std::process::exit(code)
        });
    }

    fn on_stall<I: Future<Output = ()>>(
        &self,
        limit: Duration,
        interrupted: impl FnOnce() -> I + Send + 'static,
        stop: impl FnOnce(StallReason) + Send + 'static,
    ) {
        let watchdog = self.clone();
        let watch = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            let reason =
                runtime.block_on(watchdog.wait_for_stall(limit.saturating_add(GRACE_PERIOD), interrupted()));
            // Held until the process has ended, so that only one side reports.
            let is_ending = watchdog.is_ending.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(reason) = reason.filter(|_| !*is_ending) {
                stop(reason);
            }
        };
        // Without the thread there is no watchdog; everything else works.
        let _ = std::thread::Builder::new().name("guard".to_owned()).spawn(watch);
    }

    /// Waits until the heartbeat has stopped for too long; `None` if the watchdog was disarmed.
    async fn wait_for_stall(
        &self,
        limit: Duration,
        interrupted: impl Future<Output = ()>,
    ) -> Option<StallReason> {
        let mut interrupted = std::pin::pin!(interrupted);
        let (mut is_interrupted, mut last, mut missed) = (false, 0, 0_u32);
        loop {
            tokio::select! {
                () = &mut interrupted, if !is_interrupted => is_interrupted = true,
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => missed += 1,
            }
            let heartbeats = self.heartbeats.load(Ordering::Relaxed);
            // The check starts with the first heartbeat.
            if heartbeats != last || heartbeats == 0 {
                (last, missed) = (heartbeats, 0);
            }
            if *self.is_ending.lock().unwrap_or_else(PoisonError::into_inner) {
                return None;
            }
            match HEARTBEAT_INTERVAL * missed {
                stalled if is_interrupted && stalled > GRACE_PERIOD => return Some(StallReason::Interrupted),
                stalled if stalled > limit => return Some(StallReason::Limit),
                _ => {}
            }
        }
    }

    /// Disarms the watchdog.
    pub fn disarm(&self) {
        *self.is_ending.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const NEVER: fn() -> std::future::Pending<()> = std::future::pending;

    fn watched(limit: Duration, is_interrupted: bool) -> (Watchdog, mpsc::Receiver<StallReason>) {
        let watchdog = Watchdog::default();
        watchdog.start_heartbeat();
        let (stop, stopped) = mpsc::channel();
        let stop = move |reason| stop.send(reason).unwrap();
        match is_interrupted {
            true => watchdog.on_stall(limit, || async {}, stop),
            false => watchdog.on_stall(limit, NEVER, stop),
        }
        (watchdog, stopped)
    }

    fn compute() {
        std::thread::sleep(GRACE_PERIOD + Duration::from_millis(600));
    }

    #[tokio::test]
    async fn a_blocked_loop_is_a_stall_and_waiting_is_not() {
        let (_watchdog, stopped) = watched(Duration::ZERO, false);
        tokio::time::sleep(GRACE_PERIOD + Duration::from_millis(200)).await;
        assert!(stopped.try_recv().is_err());
        compute();
        assert_eq!(stopped.recv_timeout(Duration::from_secs(5)), Ok(StallReason::Limit));
    }

    #[tokio::test]
    async fn an_interruption_without_reaction_is_a_stall() {
        let (_watchdog, stopped) = watched(Duration::from_secs(60), true);
        tokio::time::sleep(GRACE_PERIOD + Duration::from_millis(200)).await;
        assert!(stopped.try_recv().is_err());
        compute();
        assert_eq!(stopped.recv_timeout(Duration::from_secs(5)), Ok(StallReason::Interrupted));
    }

    #[tokio::test]
    async fn nothing_is_stopped_after_disarming() {
        let (watchdog, stopped) = watched(Duration::ZERO, false);
        tokio::time::sleep(2 * HEARTBEAT_INTERVAL).await;
        watchdog.disarm();
        compute();
        assert!(stopped.try_recv().is_err());
    }
}
