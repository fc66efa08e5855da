//! When the workspace is looked at while many requests are under way.
//!
//! One look proves every answer that was there before it. So while more are being worked out a look may wait, and
//! looking takes a tenth of the time at most; as soon as nobody is asked anything any more there is nothing to wait for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// How long a look is followed by none, in times of its own duration.
const REST: u32 = 9;

/// The longest rest.
const LONGEST: Duration = Duration::from_millis(300);

/// Knows when it is time to look.
#[derive(Debug)]
pub(super) struct Thrift {
    /// How many answers are being worked out; `None` where looks never wait.
    asking: Option<Arc<watch::Sender<usize>>>,
    /// When the rest after the last look is over.
    rested: Mutex<Option<Instant>>,
}

/// That more answers are to come.
#[derive(Debug)]
pub struct MoreToCome(Option<Arc<watch::Sender<usize>>>);

impl Thrift {
    /// `saves`: whether looks wait for each other's answers.
    pub(super) fn new(saves: bool) -> Self {
        Self { asking: saves.then(|| Arc::new(watch::channel(0).0)), rested: Mutex::new(None) }
    }

    /// An answer is being worked out until what is returned is dropped.
    pub(super) fn more_to_come(&self) -> MoreToCome {
        if let Some(asking) = &self.asking {
            asking.send_modify(|asking| *asking += 1);
        }
        MoreToCome(self.asking.clone())
    }

    /// Waits until it is time to look.
    pub(super) async fn turn(&self) {
        let rested = *self.rested.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(asking), Some(rested)) = (&self.asking, rested) else { return };
        let mut asking = asking.subscribe();
        tokio::select! {
            biased;
            // The sender is in `self`.
            _ = asking.wait_for(|asking| *asking == 0) => {}
            () = tokio::time::sleep_until(rested.into()) => {}
        }
    }

    /// A look took so long.
    pub(super) fn looked(&self, took: Duration) {
        let rested = Instant::now() + (took * REST).min(LONGEST);
        *self.rested.lock().unwrap_or_else(PoisonError::into_inner) = Some(rested);
    }
}

impl Drop for MoreToCome {
    fn drop(&mut self) {
        if let Some(asking) = &self.0 {
            asking.send_modify(|asking| *asking -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(thrift: &Thrift) -> Duration {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let began = Instant::now();
        runtime.block_on(thrift.turn());
        began.elapsed()
    }

    #[test]
    fn a_look_waits_only_while_others_ask() {
        let thrift = Thrift::new(true);
        let other = thrift.more_to_come();
        assert!(waited(&thrift) < Duration::from_millis(20), "nobody has looked yet");
        thrift.looked(Duration::from_millis(10));
        assert!(waited(&thrift) > Duration::from_millis(60));
        assert!(waited(&thrift) < Duration::from_millis(60), "the rest is over");
        thrift.looked(Duration::from_secs(10));
        assert!(waited(&thrift) < Duration::from_secs(5), "no rest is very long");
        thrift.looked(Duration::from_secs(10));
        drop(other);
        assert!(waited(&thrift) < Duration::from_millis(100), "nobody asks any more");
        let hasty = Thrift::new(false);
        let _other = hasty.more_to_come();
        hasty.looked(Duration::from_secs(10));
        assert!(waited(&hasty) < Duration::from_millis(100));
    }
}
