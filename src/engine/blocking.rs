//! Blocking work on separate threads.

use std::time::Duration;

use super::failure::Failure;
use crate::model::error::{ErrorBody, ErrorSymbol};

/// Runs blocking or long work on a separate thread.
///
/// The work starts immediately, not when the result is awaited.
pub(super) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, Failure>> {
    let working = tokio::task::spawn_blocking(work);
    async move {
        // The panic message is left out: it names a task, and a bundle is the same in every run.
        let failed =
            |_| Failure::reported(ErrorBody::new(ErrorSymbol::Internal, "a part of the work failed"));
        working.await.map_err(failed)
    }
}

/// Like [`blocking`], with a time limit, for work that reads untrusted files of a repository, such as its git folder:
/// reading a named pipe in place of a file would block forever.
pub(super) async fn blocking_within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let Ok(done) = tokio::time::timeout(limit, blocking(work)).await else {
        let message = format!("the disk or git's folder did not answer within {} s", limit.as_secs());
        let hint = "`git status` shows what is wrong; --timeout gives more time";
        return Err(Failure::reported(ErrorBody::new(ErrorSymbol::LsTimeout, message).hint(hint)));
    };
    done
}
