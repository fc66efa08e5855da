//! The workers by state, their users, and the requests that wait for one.
//!
//! Workers of one kind are equal. A request that shares a worker joins one that is being shared, or takes an idle one;
//! any other request takes an idle one. Idle workers are taken in the order in which requests came. Where
//! there is only one worker, a request joins it only after those that came earlier, so that none waits for ever.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Isolation, WorkerKind};

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerState {
    /// It is being started, synced or reset.
    Starting,
    /// It has no inferred types.
    Clean,
    /// Since its last reset, it may have inferred types.
    Dirty,
    /// It must not be used again, for example because it did not answer in time.
    Dead,
}

/// A place for one worker.
#[derive(Debug)]
struct Slot<W> {
    id: u64,
    kind: WorkerKind,
    state: WorkerState,
    users: usize,
    /// Whether no other request may join its user.
    is_exclusive: bool,
    /// The time of the last use, on the clock of [`WorkerSlots`].
    last_use: u64,
    /// `None` while its process is being started.
    worker: Option<Arc<W>>,
}

/// All workers.
#[derive(Debug)]
pub(super) struct WorkerSlots<W> {
    list: Vec<Slot<W>>,
    /// Counts slots, requests and uses.
    clock: u64,
    /// The requests that wait for a worker, by kind, in the order in which they came.
    waiting: BTreeSet<(WorkerKind, u64)>,
}

/// A slot that a request has taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenSlot {
    pub(super) id: u64,
    /// Whether the worker is shared with earlier requests, so that nothing is left to be done.
    pub(super) is_joined: bool,
    /// Whether the worker may have inferred types.
    pub(super) is_dirty: bool,
}

/// An idle worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdleSlot {
    pub(super) id: u64,
    last_use: u64,
}

impl<W> Default for WorkerSlots<W> {
    fn default() -> Self {
        Self { list: Vec::new(), clock: 0, waiting: BTreeSet::new() }
    }
}

impl<W> WorkerSlots<W> {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn get(&mut self, id: u64) -> Option<&mut Slot<W>> {
        self.list.iter_mut().find(|slot| slot.id == id)
    }

    /// A number for a request that may have to wait.
    pub(super) fn ticket(&mut self) -> u64 {
        self.tick()
    }

    /// Lets a request wait; returns whether it did not wait before.
    pub(super) fn wait(&mut self, kind: WorkerKind, ticket: u64) -> bool {
        self.waiting.insert((kind, ticket))
    }

    /// Ends the waiting of a request; returns whether it waited.
    pub(super) fn stop_waiting(&mut self, kind: WorkerKind, ticket: u64) -> bool {
        self.waiting.remove(&(kind, ticket))
    }

    /// How many workers of this kind there are.
    pub(super) fn count(&self, kind: WorkerKind) -> usize {
        self.list.iter().filter(|slot| slot.kind == kind).count()
    }

    /// A worker for a request, or a new slot if there is none of this kind; `None` if the request has to wait. `suits`
    /// tells whether a worker can be used as it is.
    pub(super) fn take(
        &mut self,
        kind: WorkerKind,
        isolation: Isolation,
        ticket: u64,
        suits: impl Fn(&W) -> bool,
    ) -> Option<TakenSlot> {
        let now = self.tick();
        let is_first = self.waiting.range((kind, 0)..(kind, ticket)).next().is_none();
        let suits = |slot: &Slot<W>| slot.worker.as_ref().is_some_and(|worker| suits(worker));
        let running =
            self.list.iter().filter(|slot| slot.kind == kind && slot.state != WorkerState::Starting).count();
        let is_joinable = |slot: &&mut Slot<W>| {
            slot.kind == kind && slot.users > 0 && !slot.is_exclusive && slot.state == WorkerState::Dirty
        };
        if isolation == Isolation::Shared
            && (is_first || running > 1)
            && let Some(slot) = self.list.iter_mut().filter(is_joinable).find(|slot| suits(slot))
        {
            slot.users += 1;
            slot.last_use = now;
            return Some(TakenSlot { id: slot.id, is_joined: true, is_dirty: true });
        }
        if !is_first {
            return None;
        }
        let is_new = self.count(kind) == 0;
        // Inferred types serve shared requests, and have to be reset for others.
        let wanted = match isolation {
            Isolation::Shared => WorkerState::Dirty,
            Isolation::Reset | Isolation::NeverSynced | Isolation::Fresh => WorkerState::Clean,
        };
        let idle = self.list.iter_mut().filter(|slot| slot.kind == kind && slot.users == 0);
        match idle.min_by_key(|slot| (!suits(slot), slot.state != wanted, slot.last_use)) {
            Some(slot) => {
                let is_dirty = slot.state == WorkerState::Dirty;
                (slot.users, slot.is_exclusive, slot.last_use) = (1, true, now);
                slot.state = WorkerState::Starting;
                Some(TakenSlot { id: slot.id, is_joined: false, is_dirty })
            }
            None if is_new => {
                let id = self.add(kind);
                Some(TakenSlot { id, is_joined: false, is_dirty: false })
            }
            None => None,
        }
    }

    /// Adds a slot for a worker that is being started.
    pub(super) fn add(&mut self, kind: WorkerKind) -> u64 {
        let id = self.tick();
        let state = WorkerState::Starting;
        self.list.push(Slot { id, kind, state, users: 1, is_exclusive: true, last_use: id, worker: None });
        id
    }

    /// Takes a worker that is still idle and was not used since.
    pub(super) fn take_idle(&mut self, idle: IdleSlot) -> Option<Arc<W>> {
        let slot = self.get(idle.id).filter(|slot| slot.users == 0 && slot.last_use == idle.last_use)?;
        (slot.users, slot.is_exclusive, slot.state) = (1, true, WorkerState::Starting);
        slot.worker.clone()
    }

    /// The worker of a taken slot is ready; `is_exclusive`: no other request may join. A dead one stays dead.
    pub(super) fn ready(&mut self, id: u64, worker: &Arc<W>, state: WorkerState, is_exclusive: bool) {
        let Some(slot) = self.get(id) else { return };
        slot.worker = Some(worker.clone());
        slot.is_exclusive = is_exclusive;
        if slot.state != WorkerState::Dead {
            slot.state = state;
        }
    }

    /// Keeps other requests from joining the only user of a worker; returns whether it is the only one.
    pub(super) fn exclude_others(&mut self, id: u64) -> bool {
        let Some(slot) = self.get(id).filter(|slot| slot.users == 1) else { return false };
        slot.is_exclusive = true;
        true
    }

    /// Other requests may join the user of a worker again.
    pub(super) fn admit_others(&mut self, id: u64) {
        if let Some(slot) = self.get(id) {
            slot.is_exclusive = false;
        }
    }

    /// The worker of a slot.
    pub(super) fn worker(&mut self, id: u64) -> Option<Arc<W>> {
        self.get(id)?.worker.clone()
    }

    /// Removes the worker of a taken slot, to start another one in its place.
    pub(super) fn remove_worker(&mut self, id: u64) -> Option<Arc<W>> {
        self.get(id)?.worker.take()
    }

    /// The worker must not be used again.
    pub(super) fn kill(&mut self, id: u64) {
        if let Some(slot) = self.get(id) {
            slot.state = WorkerState::Dead;
        }
    }

    /// Gives a taken slot back. Returns it if it is idle now, or its worker if that is dead.
    pub(super) fn release(&mut self, id: u64) -> (Option<IdleSlot>, Option<Arc<W>>) {
        let Some(at) = self.list.iter().position(|slot| slot.id == id) else { return (None, None) };
        let slot = &mut self.list[at];
        slot.users = slot.users.saturating_sub(1);
        if slot.users > 0 {
            return (None, None);
        }
        if slot.worker.is_none() || slot.state == WorkerState::Dead {
            return (None, self.list.remove(at).worker);
        }
        if slot.state == WorkerState::Starting {
            // Its preparation was interrupted.
            slot.state = WorkerState::Dirty;
        }
        (Some(IdleSlot { id, last_use: slot.last_use }), None)
    }

    /// Removes the idle worker of this slot if the condition holds.
    pub(super) fn remove_if(&mut self, id: u64, condition: impl Fn(&W) -> bool) -> Option<Arc<W>> {
        let is_it = |slot: &Slot<W>| slot.worker.as_ref().is_some_and(|worker| condition(worker));
        let at = self.list.iter().position(|slot| slot.id == id && slot.users == 0 && is_it(slot))?;
        self.list.remove(at).worker
    }

    /// Removes idle workers of other kinds until fewer than `limit` workers are left, the least recently used first.
    pub(super) fn evict(&mut self, kind: WorkerKind, limit: usize) -> Vec<Arc<W>> {
        let mut evicted = Vec::new();
        while self.list.len() >= limit {
            let idle = self.list.iter().enumerate().filter(|(_, slot)| slot.kind != kind && slot.users == 0);
            let Some((at, _)) = idle.min_by_key(|(_, slot)| slot.last_use) else { break };
            evicted.extend(self.list.remove(at).worker);
        }
        evicted
    }

    /// All workers whose processes have started.
    pub(super) fn workers(&self) -> impl Iterator<Item = &Arc<W>> {
        self.list.iter().filter_map(|slot| slot.worker.as_ref())
    }

    /// Removes all workers.
    pub(super) fn clear(&mut self) -> Vec<Arc<W>> {
        self.list.drain(..).filter_map(|slot| slot.worker).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: WorkerKind = WorkerKind::usual();

    /// Adds an idle worker.
    fn idle(slots: &mut WorkerSlots<u8>, state: WorkerState) -> u64 {
        let id = slots.add(KIND);
        slots.ready(id, &Arc::new(0), state, false);
        slots.release(id);
        id
    }

    /// A request that comes now.
    fn come(slots: &mut WorkerSlots<u8>, isolation: Isolation) -> Option<TakenSlot> {
        let ticket = slots.ticket();
        let taken = slots.take(KIND, isolation, ticket, |_| true);
        if let Some(taken) = &taken {
            let is_exclusive = isolation != Isolation::Shared;
            slots.ready(taken.id, &Arc::new(0), WorkerState::Dirty, is_exclusive);
        }
        taken
    }

    #[test]
    fn shared_requests_join_and_others_have_a_worker_for_themselves() {
        let mut slots = WorkerSlots::default();
        let first = idle(&mut slots, WorkerState::Clean);
        let (one, two) = (come(&mut slots, Isolation::Shared), come(&mut slots, Isolation::Shared));
        assert!(!one.unwrap().is_joined && two.unwrap().is_joined);
        assert!(come(&mut slots, Isolation::Reset).is_none());
        assert_eq!(slots.release(first), (None, None));
        assert!(slots.release(first).0.is_some());
        let taken = come(&mut slots, Isolation::Reset).unwrap();
        assert!(taken.is_dirty && !taken.is_joined);
        assert!(come(&mut slots, Isolation::Shared).is_none());
        assert!(come(&mut slots, Isolation::Reset).is_none());
    }

    #[test]
    fn the_only_user_of_a_shared_worker_can_have_it_alone_for_a_while() {
        let mut slots = WorkerSlots::default();
        let id = idle(&mut slots, WorkerState::Clean);
        come(&mut slots, Isolation::Shared).unwrap();
        assert!(slots.exclude_others(id));
        assert!(come(&mut slots, Isolation::Shared).is_none());
        slots.admit_others(id);
        assert!(come(&mut slots, Isolation::Shared).unwrap().is_joined);
        assert!(!slots.exclude_others(id), "another request uses it");
        assert!(come(&mut slots, Isolation::Shared).unwrap().is_joined);
    }

    #[test]
    fn shared_requests_keep_the_inferred_types_and_others_avoid_them() {
        for (isolation, expected) in [(Isolation::Shared, 0), (Isolation::Reset, 1), (Isolation::Fresh, 1)] {
            let mut slots = WorkerSlots::default();
            let ids = [idle(&mut slots, WorkerState::Dirty), idle(&mut slots, WorkerState::Clean)];
            assert_eq!(come(&mut slots, isolation).unwrap().id, ids[expected]);
        }
    }

    #[test]
    fn who_waits_for_the_only_worker_is_not_overtaken() {
        let mut slots = WorkerSlots::default();
        idle(&mut slots, WorkerState::Clean);
        come(&mut slots, Isolation::Shared).unwrap();
        let ticket = slots.ticket();
        assert!(slots.take(KIND, Isolation::Reset, ticket, |_| true).is_none());
        assert!(slots.wait(KIND, ticket) && !slots.wait(KIND, ticket));
        assert!(come(&mut slots, Isolation::Shared).is_none());
        idle(&mut slots, WorkerState::Clean);
        assert!(come(&mut slots, Isolation::Shared).unwrap().is_joined, "there is another worker");
        assert!(come(&mut slots, Isolation::Reset).is_none(), "others keep their order");
        assert!(slots.take(KIND, Isolation::Reset, ticket, |_| true).is_some());
        assert!(slots.stop_waiting(KIND, ticket));
    }

    #[test]
    fn dead_workers_and_failed_starts_leave_no_slot() {
        let mut slots = WorkerSlots::default();
        let id = idle(&mut slots, WorkerState::Clean);
        come(&mut slots, Isolation::Shared).unwrap();
        slots.kill(id);
        slots.ready(id, &Arc::new(0), WorkerState::Clean, false);
        assert!(come(&mut slots, Isolation::Shared).is_none());
        assert!(matches!(slots.release(id), (None, Some(_))));
        let id = slots.add(KIND);
        assert_eq!((slots.count(KIND), slots.release(id)), (1, (None, None)));
        assert_eq!(slots.count(KIND), 0);
        let ticket = slots.ticket();
        let taken = slots.take(KIND, Isolation::Reset, ticket, |_| true).unwrap();
        assert_eq!(slots.worker(taken.id), None, "a new slot");
    }

    #[test]
    fn an_idle_worker_is_tended_only_if_it_was_not_used_since() {
        let mut slots = WorkerSlots::default();
        let id = idle(&mut slots, WorkerState::Dirty);
        come(&mut slots, Isolation::Reset).unwrap();
        let before = slots.release(id).0.unwrap();
        come(&mut slots, Isolation::Reset).unwrap();
        assert!(slots.take_idle(before).is_none());
        let now = slots.release(id).0.unwrap();
        assert!(slots.take_idle(before).is_none() && slots.take_idle(now).is_some());
    }

    #[test]
    fn idle_workers_of_other_kinds_make_room() {
        let mut slots = WorkerSlots::default();
        idle(&mut slots, WorkerState::Clean);
        let other = WorkerKind { pulls: true, ..KIND };
        assert!(slots.evict(KIND, 1).is_empty());
        assert_eq!(slots.evict(other, 2).len(), 0);
        assert_eq!((slots.evict(other, 1).len(), slots.count(KIND)), (1, 0));
    }
}
