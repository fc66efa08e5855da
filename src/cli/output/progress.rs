//! Progress on standard error, for people at a terminal: one line that is replaced, shown once the work takes longer than
//! [`SHOW_AFTER`]. Messages that stay, such as that a server is being installed, are printed in any case.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::screen::quoted;

/// Work that ends earlier shows no progress.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// How often the line is drawn while no step is reported.
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);

/// A line of progress.
#[derive(Debug, Clone)]
pub(crate) struct TerminalProgress {
    bar: ProgressBar,
    /// The current step; empty when there is nothing to show.
    step: Arc<Mutex<String>>,
}

impl TerminalProgress {
    /// A line that is drawn on standard error if `is_shown` and standard error is a terminal with cursor control.
    pub(super) fn new(is_shown: bool) -> Self {
        let step = Arc::new(Mutex::new(String::new()));
        let current = Arc::clone(&step);
        let write_step = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            if state.elapsed() >= SHOW_AFTER {
                let _ = out.write_str(&current.lock().unwrap_or_else(PoisonError::into_inner));
            }
        };
        let style = ProgressStyle::with_template("{step}").expect("the template is valid");
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target).with_style(style.with_key("step", write_step));
        if !bar.is_hidden() {
            bar.enable_steady_tick(REDRAW_INTERVAL);
        }
        Self { bar, step }
    }

    /// Replaces the line.
    pub(crate) fn step(&self, text: &str) {
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        step.clear();
        let _ = write!(step, "{}", quoted(text));
    }

    /// Prints a message that stays.
    pub(crate) fn print_message(&self, text: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(anstream::stderr(), "{}", quoted(text));
        });
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.step("");
        self.bar.suspend(|| ());
    }
}

impl crate::engine::Progress for TerminalProgress {
    fn step(&self, text: &str) {
        Self::step(self, text);
    }

    fn notify(&self, text: &str) {
        Self::print_message(self, text);
    }

    fn done(&self) {
        self.clear();
    }
}
