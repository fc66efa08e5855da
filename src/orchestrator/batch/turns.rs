//! Whose turn it is: which requests wait, which are under way, and in which order their answers go out.

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::oneshot;
use tokio::task::Id;

use super::Terms;
use super::input::Asked;
use crate::model::batch::RequestId;
use crate::model::bundle::Bundle;
use crate::model::request::Request;

/// How many answers may wait for their proof, besides the requests that are asked.
const PROVING: usize = 512;

/// How many requests may wait for the others, to have the server for themselves, besides those that are asked. They are
/// asked one after the other, and each has to be answered in its time.
const ASIDE: usize = 16;

/// How many requests, and how many bytes of them, wait before no more are read. Answers that nobody took count with them, for
/// lines that cannot be read are answered at once. What gives a request up is heard so many lines ahead of it.
const WAITING: usize = 4096;
const WAITING_BYTES: usize = 64 << 20;

/// How many answers wait for whoever takes them, or for those before them, before no more is begun.
const UNTAKEN: usize = 1024;

/// What an answer is known by.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) id: Option<RequestId>,
    pub(super) line: u64,
}

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    number: u64,
    bytes: usize,
    asked: Box<Asked>,
}

/// A request that is under way.
#[derive(Debug)]
struct UnderWay {
    request: Request,
    cancel: Option<oneshot::Sender<()>>,
    stage: Stage,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is one of those that are asked at a time.
    Asking,
    /// It waits for the others, or is asked when they are answered.
    Aside,
    /// It is answered but for the proof.
    Proving,
}

/// Requests and answers, numbered in the order of their lines.
#[derive(Debug)]
pub(super) struct Turns {
    terms: Terms,
    /// The number of the next line that is answered.
    next: u64,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    under_way: BTreeMap<u64, UnderWay>,
    tasks: BTreeMap<Id, u64>,
    /// How many of those under way are asked.
    asking: usize,
    /// How many of them are aside.
    aside: usize,
    /// Whether what is under way has to be alone.
    alone: bool,
    marks: BTreeMap<u64, Mark>,
    /// Answers whose turn has not come.
    held: BTreeMap<u64, Bundle>,
    /// The number of the answer whose turn is next, where they are in order.
    turn: u64,
    out: VecDeque<Bundle>,
}

impl Turns {
    pub(super) const fn new(terms: Terms) -> Self {
        Self {
            terms,
            next: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            under_way: BTreeMap::new(),
            tasks: BTreeMap::new(),
            asking: 0,
            aside: 0,
            alone: false,
            marks: BTreeMap::new(),
            held: BTreeMap::new(),
            turn: 0,
            out: VecDeque::new(),
        }
    }

    /// Whether everything that came was answered and taken.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty() && self.out.is_empty()
    }

    /// Whether requests wait that have not begun.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether more may be read.
    pub(super) fn has_room(&self) -> bool {
        // That no more is begun is no reason to hear no more: what comes may give up what all others wait for.
        self.waiting.len() + self.untaken() < WAITING && self.waiting_bytes < WAITING_BYTES
    }

    fn untaken(&self) -> usize {
        self.held.len() + self.out.len()
    }

    fn number(&mut self, mark: Mark) -> u64 {
        let number = self.next;
        self.next += 1;
        self.marks.insert(number, mark);
        number
    }

    /// A request of so many bytes came.
    pub(super) fn wait(&mut self, mark: Mark, bytes: usize, asked: Box<Asked>) {
        let number = self.number(mark);
        self.waiting_bytes += bytes;
        self.waiting.push_back(Waiting { number, bytes, asked });
    }

    /// A line came whose answer is there.
    pub(super) fn answered_at_once(&mut self, mark: Mark, bundle: Bundle) {
        let number = self.number(mark);
        self.answered(number, bundle);
    }

    /// The request whose turn it is to begin; [`Self::begun`] is to follow.
    pub(super) fn next(&mut self) -> Option<(u64, Box<Asked>)> {
        let writes = self.waiting.front()?.asked.request.writes();
        let may = if writes {
            self.under_way.is_empty()
        } else {
            !self.alone
                && self.asking < self.terms.concurrency
                && self.under_way.len() < self.terms.concurrency + ASIDE + PROVING
        };
        if !may || self.untaken() >= UNTAKEN {
            return None;
        }
        self.alone = writes;
        let Waiting { number, bytes, asked } = self.waiting.pop_front()?;
        self.waiting_bytes -= bytes;
        Some((number, asked))
    }

    /// A request has begun.
    pub(super) fn begun(&mut self, number: u64, task: Id, request: Request, cancel: oneshot::Sender<()>) {
        self.asking += 1;
        self.tasks.insert(task, number);
        self.under_way.insert(number, UnderWay { request, cancel: Some(cancel), stage: Stage::Asking });
    }

    /// A request wants the server for itself, and waits until the others are answered: more of those may begin. Where one is
    /// asked at a time, nobody else would.
    pub(super) fn aside(&mut self, number: u64) {
        if self.aside < ASIDE && self.terms.concurrency > 1 {
            self.reaches(number, Stage::Aside);
        }
    }

    /// A request is asked no more.
    pub(super) fn proving(&mut self, number: u64) {
        self.reaches(number, Stage::Proving);
    }

    fn reaches(&mut self, number: u64, stage: Stage) {
        let Some(under_way) = self.under_way.get_mut(&number) else { return };
        let before = std::mem::replace(&mut under_way.stage, stage);
        if before == Stage::Proving {
            // It is asked once more, because something changed; that is not worth waiting for.
            under_way.stage = before;
            return;
        }
        self.asking -= usize::from(before == Stage::Asking);
        self.aside -= usize::from(before == Stage::Aside);
        self.aside += usize::from(stage == Stage::Aside);
    }

    /// The request of a task that ended.
    pub(super) fn ended(&mut self, task: Id) -> Option<(u64, Request)> {
        let number = self.tasks.remove(&task)?;
        self.proving(number);
        let under_way = self.under_way.remove(&number)?;
        self.alone = false;
        Some((number, under_way.request))
    }

    /// Cancels what bears a name and is under way, and takes what waits.
    pub(super) fn cancel(&mut self, id: &RequestId) -> Vec<(u64, Box<Asked>)> {
        let Self { marks, .. } = self;
        let named = |number: u64| marks.get(&number).is_some_and(|mark| mark.id.as_ref() == Some(id));
        let numbers: Vec<u64> = marks.keys().copied().filter(|number| named(*number)).collect();
        self.give_up(|number| numbers.contains(&number))
    }

    /// Cancels everything that is under way, and takes what waits.
    pub(super) fn cancel_all(&mut self) -> Vec<(u64, Box<Asked>)> {
        self.give_up(|_| true)
    }

    fn give_up(&mut self, is_meant: impl Fn(u64) -> bool) -> Vec<(u64, Box<Asked>)> {
        for (_, under_way) in self.under_way.iter_mut().filter(|(number, _)| is_meant(**number)) {
            // It may have ended a moment ago.
            let _ = under_way.cancel.take().map(|cancel| cancel.send(()));
        }
        let (given_up, stay): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| is_meant(waiting.number));
        self.waiting = stay.into();
        self.waiting_bytes -= given_up.iter().map(|waiting| waiting.bytes).sum::<usize>();
        given_up.into_iter().map(|waiting| (waiting.number, waiting.asked)).collect()
    }

    /// An answer is there.
    pub(super) fn answered(&mut self, number: u64, mut bundle: Bundle) {
        if let Some(Mark { id, line }) = self.marks.remove(&number) {
            bundle.meta.volatile.id = id;
            bundle.meta.volatile.line = Some(line);
        }
        if !self.terms.ordered {
            self.out.push_back(bundle);
            return;
        }
        self.held.insert(number, bundle);
        while let Some(bundle) = self.held.remove(&self.turn) {
            self.out.push_back(bundle);
            self.turn += 1;
        }
    }

    /// Whether an answer can be taken.
    pub(super) fn has_answer(&self) -> bool {
        !self.out.is_empty()
    }

    /// The next answer.
    pub(super) fn take_answer(&mut self) -> Option<Bundle> {
        self.out.pop_front()
    }
}
