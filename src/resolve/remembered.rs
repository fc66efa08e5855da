//! What was made of the files that were asked about last, by content.
//!
//! Parsing takes most of the time that a question costs, and one file is asked about many times. A tree is some ten times
//! its text; what a question needs of it is about as long as the text. So that is kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::Digest;

/// How much is remembered of each kind, in bytes as [`Weigh::weight`] counts them.
static REMEMBERED: AtomicUsize = AtomicUsize::new(4 << 20);

/// Has so much remembered, if it were less.
pub(super) fn remember(bytes: usize) {
    REMEMBERED.fetch_max(bytes, Ordering::Relaxed);
}

/// How many files are remembered at most: they are searched one after the other.
const MOST: usize = 2048;

/// Something that takes memory.
pub(super) trait Weigh {
    /// About how many bytes it takes.
    fn weight(&self) -> usize;
}

/// What was made of each content, what it weighs, the latest last.
pub(super) struct Remembered<T>(Mutex<VecDeque<(Digest, Arc<T>, usize)>>);

impl<T: Weigh + Clone> Remembered<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// What was made of this content, or what `make` makes of it.
    pub(super) fn get(&self, of: Digest, make: impl FnOnce() -> T) -> Arc<T> {
        let latest = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let mut latest = latest();
            let at = latest.iter().rposition(|(digest, ..)| *digest == of);
            at.and_then(|at| latest.remove(at))
        };
        let (digest, made, weight) = known.unwrap_or_else(|| {
            let made = make();
            let weight = made.weight();
            // The original lies between the pieces of a tree, whose memory could hardly be used again.
            (of, Arc::new(made.clone()), weight)
        });
        let mut latest = latest();
        // Somebody else may have made it meanwhile.
        latest.retain(|(other, ..)| *other != digest);
        latest.push_back((digest, made.clone(), weight));
        let mut all: usize = latest.iter().map(|(.., weight)| weight).sum();
        while latest.len() > MOST || (latest.len() > 1 && all > REMEMBERED.load(Ordering::Relaxed)) {
            let Some((.., gone)) = latest.pop_front() else { break };
            all -= gone;
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weigh for Vec<u8> {
        fn weight(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn what_is_remembered_is_by_content_and_bounded() {
        let remembered = Remembered::new();
        let of = |number: usize| Digest::of(number.to_string().as_bytes());
        let first = remembered.get(of(0), || vec![0; 1 << 20]);
        assert!(Arc::ptr_eq(&first, &remembered.get(of(0), || unreachable!("it is remembered"))));
        for number in 1..80 {
            drop(remembered.get(of(number), || vec![0; 1 << 20]));
        }
        let latest = remembered.0.lock().unwrap();
        let weight: usize = latest.iter().map(|(_, made, _)| made.weight()).sum();
        assert!(weight <= REMEMBERED.load(Ordering::Relaxed), "{weight}");
        assert!(latest.iter().any(|(digest, ..)| *digest == of(79)), "the latest is there");
        assert!(latest.iter().all(|(digest, ..)| *digest != of(0)), "the first is not");
    }
}
