//! What a person at a terminal is told while something takes long. Without a terminal nothing is said, except that a
//! server is being installed: that needs the network and the disk, so it is never done silently.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::screen::quoted;

/// Work of less time than this is not worth a word.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells of long work. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    terminal: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    began: Instant,
    shown: Option<Instant>,
}

impl Progress {
    pub(super) fn new(terminal: bool) -> Self {
        Self { terminal, state: Arc::new(Mutex::new(State { began: Instant::now(), shown: None })) }
    }

    /// A line that replaces the one before, shown only on a terminal and only for work that takes long.
    pub(crate) fn step(&self, text: &str) {
        if !self.terminal {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let often = state.shown.is_some_and(|shown| now.duration_since(shown) < Duration::from_millis(100));
        if now.duration_since(state.began) >= PATIENCE && !often {
            let _ = write!(anstream::stderr(), "\r\x1b[2K{}", quoted(text));
            state.shown = Some(now);
        }
    }

    /// A line that stays.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        let _ = writeln!(anstream::stderr(), "{}", quoted(text));
    }

    /// Takes the replaceable line away.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.shown.take().is_some() {
            let _ = write!(anstream::stderr(), "\r\x1b[2K");
        }
    }
}

impl crate::orchestrator::Progress for Progress {
    fn step(&self, text: &str) {
        Self::step(self, text);
    }

    fn say(&self, text: &str) {
        Self::say(self, text);
    }

    fn done(&self) {
        self.clear();
    }
}
