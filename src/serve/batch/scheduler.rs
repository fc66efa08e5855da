//! The scheduler of a batch: which requests wait, which are running, and in which order their answers are returned.

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::oneshot;
use tokio::task::Id;

use super::BatchOptions;
use super::answer::BatchAnswer;
use super::input::Job;
use crate::model::batch::RequestId;

/// How many answers may wait for the proof that they are fresh, besides the active requests.
const MAX_VERIFYING: usize = 512;

/// How many requests may wait for exclusive use of a server, besides the active ones. They run one after the other,
/// and each has its own time limit.
const MAX_WAITING_FOR_EXCLUSIVE: usize = 16;

/// How many requests, and how many bytes of them, wait before reading stops. Answers that were not taken count, too,
/// because invalid lines are answered immediately. A cancellation is noticed at most this many lines late.
const MAX_WAITING: usize = 4096;
const MAX_WAITING_BYTES: usize = 64 << 20;

/// How many answers wait to be taken, or for earlier ones, before no more requests start.
const MAX_UNTAKEN: usize = 1024;

/// Identifies the answer to a line.
#[derive(Debug)]
pub(super) struct LineLabel {
    pub(super) id: Option<RequestId>,
    pub(super) line: u64,
}

/// A request that has not started.
#[derive(Debug)]
struct WaitingRequest {
    number: u64,
    bytes: usize,
    job: Job,
}

/// A request that has started.
#[derive(Debug)]
struct RunningRequest {
    job: Job,
    cancel: Option<oneshot::Sender<()>>,
    stage: RequestStage,
}

/// The stage of a running request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestStage {
    /// It counts as active.
    Active,
    /// It waits for exclusive use of a server, or has it.
    WaitingForExclusive,
    /// It is answered except for the proof that the answer is fresh.
    Verifying,
}

/// Requests and answers, numbered in the order of their lines.
#[derive(Debug)]
pub(super) struct Scheduler {
    options: BatchOptions,
    /// The number of the next line.
    next: u64,
    waiting: VecDeque<WaitingRequest>,
    waiting_bytes: usize,
    running: BTreeMap<u64, RunningRequest>,
    tasks: BTreeMap<Id, u64>,
    /// The number of active requests.
    active: usize,
    /// The number of requests that wait for exclusive use of a server, or have it.
    waiting_for_exclusive: usize,
    /// Whether the running request must run alone.
    runs_alone: bool,
    labels: BTreeMap<u64, LineLabel>,
    /// Answers that wait for earlier ones.
    out_of_order: BTreeMap<u64, BatchAnswer>,
    /// The number of the next answer to return, if they are ordered.
    next_ordered: u64,
    out: VecDeque<BatchAnswer>,
}

impl Scheduler {
    pub(super) const fn new(options: BatchOptions) -> Self {
        Self {
            options,
            next: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            running: BTreeMap::new(),
            tasks: BTreeMap::new(),
            active: 0,
            waiting_for_exclusive: 0,
            runs_alone: false,
            labels: BTreeMap::new(),
            out_of_order: BTreeMap::new(),
            next_ordered: 0,
            out: VecDeque::new(),
        }
    }

    /// Whether every line was answered and every answer taken.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty() && self.out.is_empty()
    }

    /// Whether any requests have not started.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether more lines may be read.
    pub(super) fn has_room(&self) -> bool {
        // Reading goes on while no requests can start: a later line may cancel the one that all others wait for.
        self.waiting.len() + self.untaken() < MAX_WAITING && self.waiting_bytes < MAX_WAITING_BYTES
    }

    fn untaken(&self) -> usize {
        self.out_of_order.len() + self.out.len()
    }

    fn number(&mut self, label: LineLabel) -> u64 {
        let number = self.next;
        self.next += 1;
        self.labels.insert(number, label);
        number
    }

    /// Adds a request whose line has this many bytes.
    pub(super) fn enqueue(&mut self, label: LineLabel, bytes: usize, job: Job) {
        let number = self.number(label);
        self.waiting_bytes += bytes;
        self.waiting.push_back(WaitingRequest { number, bytes, job });
    }

    /// Adds a line that is already answered.
    pub(super) fn add_answered(&mut self, label: LineLabel, answer: BatchAnswer) {
        let number = self.number(label);
        self.add_answer(number, answer);
    }

    /// The next request that may start. The caller starts it and calls [`Self::started`].
    pub(super) fn next_to_start(&mut self) -> Option<(u64, Job)> {
        let writes = self.waiting.front()?.job.writes();
        let may = if writes {
            self.running.is_empty()
        } else {
            !self.runs_alone
                && self.active < self.options.concurrency
                && self.running.len() < self.options.concurrency + MAX_WAITING_FOR_EXCLUSIVE + MAX_VERIFYING
        };
        if !may || self.untaken() >= MAX_UNTAKEN {
            return None;
        }
        self.runs_alone = writes;
        let WaitingRequest { number, bytes, job } = self.waiting.pop_front()?;
        self.waiting_bytes -= bytes;
        Some((number, job))
    }

    /// A request was started.
    pub(super) fn started(&mut self, number: u64, task: Id, job: Job, cancel: oneshot::Sender<()>) {
        self.active += 1;
        self.tasks.insert(task, number);
        self.running
            .insert(number, RunningRequest { job, cancel: Some(cancel), stage: RequestStage::Active });
    }

    /// A request waits for exclusive use of a server until the active ones are answered, so more of those may start.
    /// With a concurrency of one this changes nothing: no other request may start.
    pub(super) fn waiting_for_exclusive(&mut self, number: u64) {
        if self.waiting_for_exclusive < MAX_WAITING_FOR_EXCLUSIVE && self.options.concurrency > 1 {
            self.set_stage(number, RequestStage::WaitingForExclusive);
        }
    }

    /// A request is only waiting for the proof that its answer is fresh.
    pub(super) fn verifying(&mut self, number: u64) {
        self.set_stage(number, RequestStage::Verifying);
    }

    fn set_stage(&mut self, number: u64, stage: RequestStage) {
        let Some(running) = self.running.get_mut(&number) else { return };
        let before = std::mem::replace(&mut running.stage, stage);
        if before == RequestStage::Verifying {
            // It runs again because the workspace changed. It still does not count as active.
            running.stage = before;
            return;
        }
        self.active -= usize::from(before == RequestStage::Active);
        self.waiting_for_exclusive -= usize::from(before == RequestStage::WaitingForExclusive);
        self.waiting_for_exclusive += usize::from(stage == RequestStage::WaitingForExclusive);
    }

    /// A task ended; returns what it was for.
    pub(super) fn finish(&mut self, task: Id) -> Option<(u64, Job)> {
        let number = self.tasks.remove(&task)?;
        self.verifying(number);
        let running = self.running.remove(&number)?;
        self.runs_alone = false;
        Some((number, running.job))
    }

    /// Cancels the running requests with an id; removes and returns the waiting ones.
    pub(super) fn cancel(&mut self, id: &RequestId) -> Vec<(u64, Job)> {
        let Self { labels, .. } = self;
        let named = |number: u64| labels.get(&number).is_some_and(|label| label.id.as_ref() == Some(id));
        let numbers: Vec<u64> = labels.keys().copied().filter(|number| named(*number)).collect();
        self.cancel_where(|number| numbers.contains(&number))
    }

    /// Cancels all running requests; removes and returns the waiting ones.
    pub(super) fn cancel_all(&mut self) -> Vec<(u64, Job)> {
        self.cancel_where(|_| true)
    }

    fn cancel_where(&mut self, matches: impl Fn(u64) -> bool) -> Vec<(u64, Job)> {
        for (_, running) in self.running.iter_mut().filter(|(number, _)| matches(**number)) {
            // It may just have ended.
            let _ = running.cancel.take().map(|cancel| cancel.send(()));
        }
        let (canceled, remaining): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| matches(waiting.number));
        self.waiting = remaining.into();
        self.waiting_bytes -= canceled.iter().map(|waiting| waiting.bytes).sum::<usize>();
        canceled.into_iter().map(|waiting| (waiting.number, waiting.job)).collect()
    }

    /// Adds the answer to a request.
    pub(super) fn add_answer(&mut self, number: u64, mut answer: BatchAnswer) {
        if let Some(label) = self.labels.remove(&number) {
            answer.set_label(label);
        }
        if !self.options.ordered {
            self.out.push_back(answer);
            return;
        }
        self.out_of_order.insert(number, answer);
        while let Some(answer) = self.out_of_order.remove(&self.next_ordered) {
            self.out.push_back(answer);
            self.next_ordered += 1;
        }
    }

    /// Whether an answer is ready to be returned.
    pub(super) fn has_answer(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes the next answer.
    pub(super) fn take_answer(&mut self) -> Option<BatchAnswer> {
        self.out.pop_front()
    }
}
