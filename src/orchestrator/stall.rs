//! Whether an event loop still turns.
//!
//! One thread does the work and hears of time limits and signals, so a step that computes without end would be deaf to
//! both. A [`Heart`] beats in the loop; another thread listens, and ends the process when it has been silent for longer than
//! an answer may take. Silence is counted in looks and not by the clock, so that a process that was stopped and goes on has
//! missed nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often it beats, and how often the other thread looks.
const BEAT: Duration = Duration::from_millis(50);

/// How long it may be silent beyond the limit, so that the work's own answer to its limit goes first.
const GRACE: Duration = Duration::from_secs(1);

/// Why the process is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// One step took longer than it may.
    Limit,
    /// Somebody asked the process to stop, and it did not hear.
    Interrupted,
}

/// What beats as long as an event loop turns.
#[derive(Debug, Clone, Default)]
pub struct Heart {
    beats: Arc<AtomicU64>,
    /// Whether the end of the process was already taken in hand, by one side or the other.
    ended: Arc<Mutex<bool>>,
}

impl Heart {
    /// Beats in the event loop that this is called from, until that is gone.
    pub fn beat(&self) {
        let beats = self.beats.clone();
        drop(tokio::spawn(async move {
            loop {
                beats.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(BEAT).await;
            }
        }));
    }

    /// Ends the process when there was no beat for `limit` and a moment, or for a moment after `interrupted` ended: with the
    /// exit code that `stop` returns, which is called on another thread and says so to whoever waits.
    pub fn guard<I: Future<Output = ()>>(
        &self,
        limit: Duration,
        interrupted: impl FnOnce() -> I + Send + 'static,
        stop: impl FnOnce(Why) -> u8 + Send + 'static,
    ) {
        self.on_silence(limit, interrupted, move |why| std::process::exit(i32::from(stop(why))));
    }

    fn on_silence<I: Future<Output = ()>>(
        &self,
        limit: Duration,
        interrupted: impl FnOnce() -> I + Send + 'static,
        stop: impl FnOnce(Why) + Send + 'static,
    ) {
        let heart = self.clone();
        let listen = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            let why = runtime.block_on(heart.silence(limit.saturating_add(GRACE), interrupted()));
            // Held until the process is gone: whoever comes too late says nothing.
            let ended = heart.ended.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(why) = why.filter(|_| !*ended) {
                stop(why);
            }
        };
        // Without a thread there is no guard, and everything else works.
        let _ = std::thread::Builder::new().name("guard".to_owned()).spawn(listen);
    }

    /// Waits until it is silent for too long; `None` when it is to end.
    async fn silence(&self, limit: Duration, interrupted: impl Future<Output = ()>) -> Option<Why> {
        let mut interrupted = std::pin::pin!(interrupted);
        let (mut is_interrupted, mut last, mut silent) = (false, 0, 0_u32);
        loop {
            tokio::select! {
                () = &mut interrupted, if !is_interrupted => is_interrupted = true,
                () = tokio::time::sleep(BEAT) => silent += 1,
            }
            let beats = self.beats.load(Ordering::Relaxed);
            // Before the first beat there is nothing to hear.
            if beats != last || beats == 0 {
                (last, silent) = (beats, 0);
            }
            if *self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
                return None;
            }
            match BEAT * silent {
                silence if is_interrupted && silence > GRACE => return Some(Why::Interrupted),
                silence if silence > limit => return Some(Why::Limit),
                _ => {}
            }
        }
    }

    /// From here on nobody is stopped.
    pub fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const NEVER: fn() -> std::future::Pending<()> = std::future::pending;

    fn guarded(limit: Duration, is_interrupted: bool) -> (Heart, mpsc::Receiver<Why>) {
        let heart = Heart::default();
        heart.beat();
        let (stop, stopped) = mpsc::channel();
        let stop = move |why| stop.send(why).unwrap();
        match is_interrupted {
            true => heart.on_silence(limit, || async {}, stop),
            false => heart.on_silence(limit, NEVER, stop),
        }
        (heart, stopped)
    }

    fn compute() {
        std::thread::sleep(GRACE + Duration::from_millis(600));
    }

    #[tokio::test]
    async fn a_step_without_end_is_heard_and_waiting_is_none() {
        let (_heart, stopped) = guarded(Duration::ZERO, false);
        tokio::time::sleep(GRACE + Duration::from_millis(200)).await;
        assert!(stopped.try_recv().is_err());
        compute();
        assert_eq!(stopped.recv_timeout(Duration::from_secs(5)), Ok(Why::Limit));
    }

    #[tokio::test]
    async fn who_is_interrupted_and_does_not_hear_is_stopped() {
        let (_heart, stopped) = guarded(Duration::from_secs(60), true);
        tokio::time::sleep(GRACE + Duration::from_millis(200)).await;
        assert!(stopped.try_recv().is_err());
        compute();
        assert_eq!(stopped.recv_timeout(Duration::from_secs(5)), Ok(Why::Interrupted));
    }

    #[tokio::test]
    async fn what_has_ended_is_not_stopped() {
        let (heart, stopped) = guarded(Duration::ZERO, false);
        tokio::time::sleep(2 * BEAT).await;
        heart.end();
        compute();
        assert!(stopped.try_recv().is_err());
    }
}
