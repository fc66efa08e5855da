//! A second server for those who have many questions: it is asked what wants a server for itself, and the first one keeps what
//! it inferred for the others.
//!
//! A server costs some seconds of processor time to start and hundreds of megabytes to keep; a question that has one for itself
//! costs some 20 ms, and as many more for those after it, which find nothing inferred. So the second is only started when
//! so many were asked that more are likely, and nobody waits for it.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

use super::super::ground::Ground;
use super::live::Live;
use super::{Access, Kind, Pool};

/// How many questions that want a server for themselves are asked before they get one.
const ENOUGH: usize = 24;

/// What a pool knows of its second server.
#[derive(Debug)]
pub(super) struct Second {
    /// Whether there may be one.
    may_be: bool,
    /// How many questions wanted a server for themselves while others were asked.
    wanted: AtomicUsize,
    /// Whether it was ordered.
    ordered: AtomicBool,
    /// Whether it has read the workspace.
    is_there: Arc<AtomicBool>,
    /// The latest start.
    start: Mutex<Option<JoinHandle<()>>>,
}

impl Second {
    /// There may be one for many questions at a time, where a second processor runs it.
    pub(super) fn new(many: bool) -> Self {
        // To count them, files of the system are read.
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            may_be: many && processors() > 1,
            wanted: AtomicUsize::new(0),
            ordered: AtomicBool::new(false),
            is_there: Arc::default(),
            start: Mutex::default(),
        }
    }

    /// How many servers there may be for it.
    pub(super) fn servers(&self) -> usize {
        usize::from(self.ordered.load(Ordering::Acquire))
    }

    /// Gives up a start that is under way.
    pub(super) async fn give_up(&self) {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(start) = start {
            start.abort();
            // What it had begun is gone when it is.
            let _ = start.await;
        }
    }
}

impl Pool {
    /// The kind of server that a question is asked of: the second one when it is there and the question wants one for
    /// itself.
    pub(super) fn placed(&self, kind: Kind, access: Access, ground: &Arc<Ground>) -> Kind {
        let second = &self.second;
        if !second.may_be || !matches!(access, Access::Alone | Access::Pristine) || kind != Kind::usual() {
            return kind;
        }
        let its = Kind { second: true, ..kind };
        if second.is_there.load(Ordering::Acquire) {
            // One that is locked is being asked.
            if self
                .slot(its)
                .place
                .try_read()
                .map_or(true, |live| live.as_ref().is_some_and(|live| live.is_fit(&self.settings)))
            {
                return its;
            }
            // It ended. Another is started as the first one was.
            second.is_there.store(false, Ordering::Release);
            second.wanted.store(0, Ordering::Relaxed);
            second.ordered.store(false, Ordering::Release);
        }
        let others = self.slot(kind).turns.anybody_shares();
        let wanted = second.wanted.fetch_add(usize::from(others), Ordering::Relaxed);
        if wanted >= ENOUGH && !second.ordered.swap(true, Ordering::AcqRel) {
            self.order(its, ground);
        }
        kind
    }

    /// Starts the second server while the questions go on.
    fn order(&self, kind: Kind, ground: &Arc<Ground>) {
        self.make_room(kind);
        let (slot, settings, ground) = (self.slot(kind), self.settings.clone(), ground.clone());
        let is_there = self.second.is_there.clone();
        let start = tokio::spawn(async move {
            let mut place = slot.place.write().await;
            // What stands in the way is told to whoever asks the first one.
            let Ok(live) = Live::on(&settings, kind, &ground).await else { return };
            if live.server.client.ready(settings.timeout).await.is_ok() {
                *place = Some(live);
                is_there.store(true, Ordering::Release);
            }
        });
        *self.second.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
    }
}
