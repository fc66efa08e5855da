//! Whose turn it is: those who ask beside others go first, for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How long those who want a server for themselves let others go before them: a moment, and longer where many answers are
/// worth more together than each at once.
const GIVING_WAY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// Counts who asks a server beside others, or waits for that.
#[derive(Debug)]
pub(super) struct Turns {
    giving_way: Duration,
    sharing: AtomicUsize,
    nobody: Notify,
}

/// Somebody asks beside others, until this is dropped.
#[derive(Debug)]
pub(super) struct Shares(Arc<Turns>);

impl Turns {
    pub(super) fn new(many: bool) -> Self {
        Self {
            giving_way: GIVING_WAY[usize::from(many)],
            sharing: AtomicUsize::new(0),
            nobody: Notify::new(),
        }
    }

    /// Somebody asks beside others from now on.
    pub(super) fn share(self: &Arc<Self>) -> Shares {
        self.sharing.fetch_add(1, Ordering::SeqCst);
        Shares(self.clone())
    }

    /// Whether somebody asks beside others, or waits for that.
    pub(super) fn anybody_shares(&self) -> bool {
        self.sharing.load(Ordering::SeqCst) > 0
    }

    /// Waits until nobody asks beside others, but not for long. When the last of them is done, all who wait are let go.
    pub(super) async fn nobody_shares(&self) {
        let nobody = async {
            loop {
                // Who leaves between the look and the wait is heard.
                let mut left = std::pin::pin!(self.nobody.notified());
                left.as_mut().enable();
                if self.sharing.load(Ordering::SeqCst) == 0 {
                    return;
                }
                left.await;
            }
        };
        let _ = tokio::time::timeout(self.giving_way, nobody).await;
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        if self.0.sharing.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.nobody.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_want_it_alone_wait_for_the_last_of_the_others() {
        let turns = Arc::new(Turns::new(false));
        turns.nobody_shares().await;
        let (one, other) = (turns.share(), turns.share());
        let waiting = tokio::spawn({
            let turns = turns.clone();
            async move { turns.nobody_shares().await }
        });
        tokio::task::yield_now().await;
        drop(one);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(other);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let turns = Arc::new(Turns::new(false));
        let _one = turns.share();
        let long = Duration::from_secs(60);
        tokio::time::timeout(long, turns.nobody_shares()).await.expect("those before have had their time");
    }
}
