//! Blocking work on separate threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::failure::Failure;
use crate::model::error::{ErrorBody, ErrorSymbol};

/// The work that is done, by its number, with the time since when its result is not awaited any more.
static WORK: Mutex<BTreeMap<u64, Option<Instant>>> = Mutex::new(BTreeMap::new());

/// Signals that some work is not awaited any more.
static ABANDONED: Notify = Notify::const_new();

fn all_work() -> MutexGuard<'static, BTreeMap<u64, Option<Instant>>> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Completes when work goes on for this long after it was abandoned. A thread cannot be stopped: a process that serves many requests
/// ends, so that nothing is computed, and no memory taken, for no one.
pub(crate) async fn abandoned_work_goes_on(grace: Duration) {
    loop {
        ABANDONED.notified().await;
        while let Some(oldest) = oldest_abandoned() {
            if oldest.elapsed() >= grace {
                return;
            }
            tokio::time::sleep_until(oldest + grace).await;
        }
    }
}

fn oldest_abandoned() -> Option<Instant> {
    all_work().values().copied().flatten().min()
}

/// Work that a thread does. Dropped by the thread, also if the work panics or never starts.
struct Working(u64);

impl Working {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        all_work().insert(number, None);
        Self(number)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        all_work().remove(&self.0);
    }
}

/// A task that awaits the work of this number.
struct Awaiting(u64);

impl Drop for Awaiting {
    fn drop(&mut self) {
        if let Some(since) = all_work().get_mut(&self.0) {
            *since = Some(Instant::now());
            ABANDONED.notify_one();
        }
    }
}

/// Runs blocking or long work on a separate thread.
///
/// The work starts immediately, not when the result is awaited.
pub(super) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Failure>> {
    let working = Working::new();
    let awaiting = Awaiting(working.0);
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

/// Like [`blocking`], for work that need not be awaited: it is never abandoned.
pub(super) fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// Like [`blocking`], with a time limit, for work that reads untrusted files of a repository, such as its git folder:
/// reading a named pipe in place of a file would block forever.
pub(super) async fn blocking_within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    read_within(limit, blocking(work)).await
}

/// The result of reading files of the workspace, if it is there in time.
pub(super) async fn read_within<T>(
    limit: Duration,
    reading: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::time::timeout(limit, reading).await.unwrap_or_else(|_| {
        let message =
            format!("the workspace's files or git's folder could not be read within {} s", limit.as_secs());
        let hint = "`git status` shows what is wrong with git's folder; very long lines, large histories and search paths of many files take long: --timeout gives more time";
        Err(Failure::reported(ErrorBody::new(ErrorSymbol::LsTimeout, message).hint(hint)))
    })
}
