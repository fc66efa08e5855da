//! Blocking work on separate threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::failure::Failure;
use crate::model::error::{ErrorBody, ErrorSymbol};

/// How many threads do work whose result is not awaited any more.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Signals that there is more of it.
static MORE_ABANDONED: Notify = Notify::const_new();

/// Completes when abandoned work goes on for this long. A thread cannot be stopped: a process that serves many requests ends, so that
/// nothing is computed, and no memory taken, for no one.
pub(crate) async fn abandoned_work_goes_on(grace: Duration) {
    loop {
        MORE_ABANDONED.notified().await;
        tokio::time::sleep(grace).await;
        if ABANDONED.load(Ordering::Relaxed) > 0 {
            return;
        }
    }
}

const RUNNING: u8 = 0;
const LEFT: u8 = 1;
const DONE: u8 = 2;

/// The state of some work, shared by the thread that does it and the task that awaits it.
#[derive(Clone)]
struct WorkState(Arc<AtomicU8>);

impl WorkState {
    fn end(&self) {
        if self.0.swap(DONE, Ordering::Relaxed) == LEFT {
            ABANDONED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Dropped by the task.
struct Awaiting(WorkState);

impl Drop for Awaiting {
    fn drop(&mut self) {
        // Counted before the thread can see it.
        ABANDONED.fetch_add(1, Ordering::Relaxed);
        let left = self.0.0.compare_exchange(RUNNING, LEFT, Ordering::Relaxed, Ordering::Relaxed);
        if left.is_ok() {
            MORE_ABANDONED.notify_one();
        } else {
            ABANDONED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Dropped by the thread, also if the work panics or never starts.
struct Working(WorkState);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs blocking or long work on a separate thread.
///
/// The work starts immediately, not when the result is awaited.
pub(super) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Failure>> {
    let state = WorkState(Arc::new(AtomicU8::new(RUNNING)));
    let (working, awaiting) = (Working(state.clone()), Awaiting(state));
    let thread = tokio::task::spawn_blocking(move || {
        let _working = working;
        work()
    });
    async move {
        let _awaiting = awaiting;
        // The panic message is left out: it names a task, and a bundle is the same in every run.
        let failed =
            |_| Failure::reported(ErrorBody::new(ErrorSymbol::Internal, "a part of the work failed"));
        thread.await.map_err(failed)
    }
}

/// Like [`blocking`], with a time limit, for work that reads untrusted files of a repository, such as its git folder:
/// reading a named pipe in place of a file would block forever.
pub(super) async fn blocking_within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let Ok(done) = tokio::time::timeout(limit, blocking(work)).await else {
        let message =
            format!("the workspace's files or git's folder could not be read within {} s", limit.as_secs());
        let hint = "very long lines and large histories take long; --timeout gives more time";
        return Err(Failure::reported(ErrorBody::new(ErrorSymbol::LsTimeout, message).hint(hint)));
    };
    done
}
