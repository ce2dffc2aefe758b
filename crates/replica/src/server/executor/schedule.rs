//! Which jobs may be with the server at the same time, as the group's [`Concurrency`] says.
//!
//! What it is not: it sends nothing and waits for nothing. Invariants: a job that runs alone starts
//! when everything before it has ended, and nothing starts until it has ended; two calls of one
//! object never change their order; when the server is idle, the next job starts.

use super::{Call, Job, Outstanding};
use crate::words::history::History;
use crate::words::ids::RequestKey;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::canary;
use quorba_base::policy::Concurrency;
use quorba_giop::{Body, Message};

/// Calls that may be with the server at the same time.
pub(crate) const CALLS_MAX: usize = 64;
/// Bytes of their requests.
const BYTES_MAX: usize = 1 << 20;
/// A larger request runs alone. If a server refuses to read one, as omniORB does above its
/// `giopMaxMsgSize`, no other call is then with it whose fate would be unknown.
const SHARED_BYTES_MAX: usize = 256 << 10;

/// See the module's text.
pub(super) struct Schedule {
    concurrency: Concurrency,
    /// Another member executes what this server was to.
    stands_by: bool,
    /// In the order in which they came.
    queue: VecDeque<Job>,
    /// Objects with a call that is outstanding or ready, and the calls that wait for its end.
    lanes: BTreeMap<Bytes, VecDeque<Job>>,
    /// Jobs in the lanes.
    in_lanes: usize,
    /// Calls whose object has become free, before anything in the queue.
    ready: VecDeque<Job>,
    /// In the order in which they were sent.
    outstanding: VecDeque<Outstanding>,
    bytes: usize,
}

impl Schedule {
    pub(super) fn new(concurrency: Concurrency) -> Self {
        Self {
            concurrency,
            stands_by: false,
            queue: VecDeque::new(),
            lanes: BTreeMap::new(),
            in_lanes: 0,
            ready: VecDeque::new(),
            outstanding: VecDeque::new(),
            bytes: 0,
        }
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.len() + self.ready.len() + self.in_lanes
    }

    pub(super) fn outstanding_count(&self) -> usize {
        self.outstanding.len()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queued() == 0 && self.outstanding.is_empty()
    }

    /// Whether anything waits for the end of what is with the server.
    pub(super) fn is_awaited(&self) -> bool {
        self.queued() > 0
            || self.outstanding.iter().any(|call| call.abandoned || call.job.is_awaited())
    }

    /// Whether a state is to be given to the server.
    pub(super) fn awaits_state(&self) -> bool {
        self.queue.iter().any(|job| matches!(job, Job::Restore { .. }))
    }

    /// What came first of all that has not begun, if calls keep their order.
    pub(super) fn next(&self) -> Option<&Job> {
        self.queue.front()
    }

    /// The call that was sent first and is not answered; its time runs.
    pub(super) fn oldest(&self) -> Option<&Outstanding> {
        self.outstanding.front()
    }

    pub(super) fn oldest_mut(&mut self) -> Option<&mut Outstanding> {
        self.outstanding.front_mut()
    }

    /// Whether the server has a call, and whether one that `is_such`.
    pub(super) fn is_at(&self, is_such: impl Fn(&Job) -> bool) -> (bool, bool) {
        (!self.outstanding.is_empty(), self.outstanding.iter().any(|call| is_such(&call.job)))
    }

    /// Whether the server is given a state, or waits for one.
    pub(super) fn is_restoring(&self) -> bool {
        let is_one = |job: &Job| matches!(job, Job::Restore { .. });
        self.outstanding.iter().any(|call| is_one(&call.job)) || self.queue.iter().any(is_one)
    }

    /// Whether the server has one call at a time.
    pub(super) fn is_sequential(&self) -> bool {
        self.concurrency == Concurrency::Sequential
    }

    /// The first request of the group that is outstanding or waits, if calls keep their order.
    pub(super) fn first_request(&self) -> Option<u64> {
        let outstanding = self.outstanding.iter().filter(|call| !call.abandoned);
        let jobs = outstanding.map(|call| &call.job).chain(&self.queue);
        jobs.filter_map(Job::request).next()
    }

    /// Whether the time of a call runs from when it is sent, or from when it is the oldest.
    pub(super) fn runs_side_by_side(&self) -> bool {
        self.concurrency == Concurrency::PerObject
    }

    pub(super) fn outstanding(&self) -> impl Iterator<Item = &Outstanding> {
        self.outstanding.iter()
    }

    /// Requests that are with the server, or wait for it.
    pub(super) fn histories(&self) -> impl Iterator<Item = History> {
        let outstanding = self.outstanding.iter().map(|call| &call.job);
        let waiting = self.queue.iter().chain(&self.ready).chain(self.lanes.values().flatten());
        outstanding.chain(waiting).filter_map(|job| match job {
            Job::Execute { call: Call::Request(_, history), .. } => Some(*history),
            _ => None,
        })
    }

    /// The last request of the group that is with the server or waits for it, and may be of that
    /// object; whichever it is, if there are more than `looked_at_max`.
    pub(super) fn last_request_of(
        &self,
        object: Option<&Bytes>,
        looked_at_max: usize,
    ) -> Option<u64> {
        let outstanding = self.outstanding.iter().map(|call| &call.job);
        let waiting = self.ready.iter().chain(self.lanes.values().flatten()).chain(&self.queue);
        let is_looked_at = self.queued() + self.outstanding.len() <= looked_at_max;
        let may_be_of_it = |giop: &Bytes| match (object, object_key(giop)) {
            (Some(object), Some(named)) if is_looked_at => named == *object,
            _ => true,
        };
        let requests = outstanding.chain(waiting).filter_map(|job| match job {
            Job::Execute { call: Call::Request(_, history), giop, .. } if may_be_of_it(giop) => {
                Some(history.count)
            }
            _ => None,
        });
        requests.max()
    }

    /// Whether a request with this name waits for the server.
    pub(super) fn has(&self, key: &RequestKey) -> bool {
        let waiting = self.queue.iter().chain(&self.ready).chain(self.lanes.values().flatten());
        waiting.into_iter().any(|job| job.is_named(key))
    }

    pub(super) fn outstanding_mut(&mut self) -> impl Iterator<Item = &mut Outstanding> {
        self.outstanding.iter_mut()
    }

    pub(super) fn push(&mut self, job: Job) {
        if canary!(CaptureOvertakes) && matches!(job, Job::Capture(_)) {
            return self.queue.push_front(job);
        }
        self.queue.push_back(job);
    }

    pub(super) fn push_first(&mut self, job: Job) {
        self.queue.push_front(job);
    }

    /// The last of the requests that are not in the queue any more, `at` or a later one.
    pub(super) fn begun(&self, at: History) -> History {
        let outstanding = self.outstanding.iter().map(|call| &call.job);
        let begun = outstanding.chain(&self.ready).chain(self.lanes.values().flatten());
        let requests = begun.filter_map(|job| match job {
            Job::Execute { call: Call::Request(_, history), .. } => Some(*history),
            _ => None,
        });
        requests.chain([at]).max_by_key(|history| history.count).unwrap_or(at)
    }

    /// Forgets what has not started.
    pub(super) fn clear_queue(&mut self) {
        self.queue.clear();
        self.lanes.clear();
        self.in_lanes = 0;
        self.ready.clear();
    }

    /// Forgets what has not started, but for what is to `stay`.
    pub(super) fn retain_queue(&mut self, mut stay: impl FnMut(&Job) -> bool) {
        self.queue.retain(&mut stay);
        self.ready.retain(&mut stay);
        for lane in self.lanes.values_mut() {
            lane.retain(&mut stay);
        }
        self.in_lanes = self.lanes.values().map(VecDeque::len).sum();
    }

    /// Whether there is a job that `is_such`.
    pub(super) fn has_job(&self, is_such: impl Fn(&Job) -> bool) -> bool {
        let outstanding = self.outstanding.iter().map(|call| &call.job);
        let waiting = self.queue.iter().chain(&self.ready).chain(self.lanes.values().flatten());
        outstanding.chain(waiting).any(is_such)
    }

    /// Whether another member executes what this server was to.
    pub(super) fn stand_by(&mut self, stands_by: bool) {
        self.stands_by = stands_by;
    }

    /// Whether it is given no requests: others execute them, and nothing else waits for it.
    pub(super) fn spares_requests(&self) -> bool {
        self.stands_by && self.queue.iter().all(|job| job.request().is_some())
    }

    /// Forgets requests that nothing else waits behind.
    pub(super) fn drop_last_requests(&mut self) {
        while self.queue.pop_back_if(|job| job.request().is_some()).is_some() {}
    }

    /// Takes out everything, in its order.
    pub(super) fn drain(&mut self) -> Vec<Job> {
        let outstanding = self.outstanding.drain(..).filter(|call| !call.abandoned);
        let mut jobs: Vec<Job> = outstanding.map(|call| call.job).collect();
        jobs.extend(self.ready.drain(..));
        jobs.extend(self.lanes.values_mut().flat_map(|lane| lane.drain(..)));
        jobs.extend(self.queue.drain(..));
        self.clear();
        jobs
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.clear_queue();
        self.outstanding.clear();
        self.bytes = 0;
    }

    /// The next job that may start now, but for one that `holds` says has to wait; then what comes
    /// behind it waits, too. [`Self::started`] or [`Self::leave_out`] must follow.
    pub(super) fn take(&mut self, holds: impl Fn(&Job) -> bool) -> Option<Job> {
        if self.outstanding.is_empty() && self.ready.is_empty() {
            let job = self.queue.pop_front_if(|job| !holds(job))?;
            self.occupy(&job);
            return Some(job);
        }
        if let Some(oldest) = self.outstanding.front() {
            // What runs abandoned may still change what a later call sees.
            let is_stalled = oldest.is_odd() && !self.runs_side_by_side();
            if oldest.abandoned || self.is_alone(&oldest.job) || is_stalled {
                return None;
            }
        }
        if let Some(job) = self.ready.front() {
            let starts = self.has_room(job) && !holds(job);
            return if starts { self.ready.pop_front() } else { None };
        }
        loop {
            let job = self.queue.front()?;
            if self.is_alone(job) || !self.shares_channel(job) || holds(job) {
                return None;
            }
            if let Some(lane) = self.object_of(job).and_then(|key| self.lanes.get_mut(&key)) {
                lane.extend(self.queue.pop_front());
                self.in_lanes += 1;
                continue;
            }
            if !self.has_room(job) {
                return None;
            }
            let job = self.queue.pop_front().expect("just looked");
            self.occupy(&job);
            return Some(job);
        }
    }

    /// A job that was taken is with the server.
    pub(super) fn started(&mut self, call: Outstanding) {
        self.bytes += call.job.bytes();
        self.outstanding.push_back(call);
    }

    /// The call ends that `matches`; the others stay. In order means that only the oldest ends.
    pub(super) fn end(&mut self, matches: impl Fn(&Outstanding) -> bool) -> Option<Outstanding> {
        let index = match self.concurrency {
            Concurrency::PerObject => self.outstanding.iter().position(matches)?,
            Concurrency::Sequential | Concurrency::Pipelined => {
                matches(self.outstanding.front()?).then_some(0)?
            }
        };
        let call = self.outstanding.remove(index)?;
        self.bytes -= call.job.bytes();
        self.free(&call.job);
        Some(call)
    }

    /// The call with this request id ends, whatever stands before it.
    pub(super) fn take_out(&mut self, request_id: u32) -> Option<Outstanding> {
        let index = self.outstanding.iter().position(|call| call.request_id == request_id)?;
        let call = self.outstanding.remove(index)?;
        self.bytes -= call.job.bytes();
        self.free(&call.job);
        Some(call)
    }

    /// All that was sent behind the oldest call has not begun: it waits again, in its order.
    pub(super) fn put_back_behind_oldest(&mut self) {
        while self.outstanding.len() > 1
            && let Some(call) = self.outstanding.pop_back()
        {
            self.bytes -= call.job.bytes();
            if !call.abandoned {
                self.queue.push_front(call.job);
            }
        }
    }

    /// A job that was taken is not given to the server.
    pub(super) fn leave_out(&mut self, job: &Job) {
        self.free(job);
    }

    fn has_room(&self, job: &Job) -> bool {
        self.outstanding.is_empty()
            || self.outstanding.len() < CALLS_MAX && self.bytes + job.bytes() <= BYTES_MAX
    }

    /// Whether nothing else may be with the server while this is.
    fn is_alone(&self, job: &Job) -> bool {
        match (self.concurrency, job) {
            (Concurrency::Sequential, _) => true,
            (_, Job::Capture(_)) => !canary!(CaptureAmongCalls),
            (_, Job::Restore { .. }) => true,
            (_, Job::Execute { giop, .. }) if giop.len() > SHARED_BYTES_MAX => true,
            (Concurrency::PerObject, Job::Execute { giop, .. }) => object_key(giop).is_none(),
            (Concurrency::Pipelined, Job::Execute { .. }) => false,
        }
    }

    /// Nothing is known of the order between two connections.
    fn shares_channel(&self, job: &Job) -> bool {
        self.outstanding.front().is_none_or(|oldest| oldest.job.code_sets() == job.code_sets())
    }

    /// The object whose calls this one must not overtake.
    fn object_of(&self, job: &Job) -> Option<Bytes> {
        match (self.concurrency, job) {
            _ if canary!(IgnoresObjects) => None,
            (Concurrency::PerObject, Job::Execute { giop, .. }) => object_key(giop),
            _ => None,
        }
    }

    fn occupy(&mut self, job: &Job) {
        if let Some(key) = self.object_of(job) {
            self.lanes.insert(key, VecDeque::new());
        }
    }

    /// The object of a job that has ended is free for the next that waits for it.
    fn free(&mut self, job: &Job) {
        let Some(key) = self.object_of(job) else { return };
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        match lane.pop_front() {
            Some(next) => {
                self.in_lanes -= 1;
                self.ready.push_back(next);
            }
            None => {
                self.lanes.remove(&key);
            }
        }
    }
}

/// The key that a request names its object by, if it does; the standard allows other ways
/// (GIOP §15.4.2).
pub(super) fn object_key(giop: &Bytes) -> Option<Bytes> {
    let message = Message::from_bytes(giop.clone()).ok()?;
    let Ok(Body::Request(request)) = message.parse() else { return None };
    request.object_key().map(|key| giop.slice_ref(key))
}
