//! How long what decides a call's time took lately, on a ring whose token goes round always: the
//! token, messages, servers, and clients between two calls. The leader's place follows from it.
//!
//! What it is not: the recorder, which keeps everything for whoever studies latency. Where the
//! token rests there are no such timings: what decides there is in the ring's snapshot.
//!
//! Invariants: a fixed number of samples is kept, the last ones; figures are medians and tenths, so
//! that a host that stood still for a moment does not show in them.

use std::collections::VecDeque;

use quorba_config::{Domain, Engine};
use quorba_engine::ConnectionId;
use quorba_engine::order::Progress;
use quorba_engine::replica::{GroupId, GroupMap};
use rustix::time::{ClockId, clock_gettime};

use quorba_admin::status::CallTimingsStatus;

/// Samples of a kind that are kept.
const SAMPLES_MAX: usize = 1_000;
/// Fewer say nothing.
const SAMPLES_MIN: usize = 20;
/// Rotations with more messages are not looked at: they come in batches, which cost less each.
const MESSAGES_MAX: usize = 3;
/// Equally likely times that a kind is shown as.
const TIMES: usize = 10;

/// See the module's text.
pub(crate) struct CallTimings {
    /// Rotations without a message, right behind one with a message: under load, that is.
    missed: Samples,
    /// Rotations without a message behind others without one.
    idle: Samples,
    /// Rotations with one message, two, and so on.
    loaded: [Samples; MESSAGES_MAX],
    servers: GroupMap<Server>,
    clients: Samples,
    /// The client that was answered last, and when.
    answered: Option<(ConnectionId, u64)>,
    seen: Option<Progress>,
    visited_ns: Option<u64>,
    was_loaded: bool,
}

/// The local server of a group.
#[derive(Default)]
struct Server {
    took: Samples,
    /// When it was given the request that it has not answered.
    asked_ns: Option<u64>,
}

impl CallTimings {
    /// Of a node of this domain, if its token goes round always.
    pub(crate) fn of_domain(domain: &Domain) -> Option<Self> {
        let goes_round = domain.ring.engine == Engine::Totem && !domain.ring.token_rests;
        goes_round.then(Self::new)
    }

    fn new() -> Self {
        Self {
            missed: Samples::default(),
            idle: Samples::default(),
            loaded: Default::default(),
            servers: GroupMap::new(),
            clients: Samples::default(),
            answered: None,
            seen: None,
            visited_ns: None,
            was_loaded: false,
        }
    }

    /// There is such a group from now on.
    pub(crate) fn open(&mut self, group: GroupId) {
        self.servers.insert(group, Server::default());
    }

    /// There is no such group any more.
    pub(crate) fn close(&mut self, group: GroupId) {
        self.servers.remove(group);
    }

    /// The engine has handled something.
    pub(crate) fn progress(&mut self, now: Progress) {
        if self.seen.is_none_or(|seen| seen.token_visits != now.token_visits) {
            self.visited(now_ns(), now);
        }
    }

    fn visited(&mut self, at_ns: u64, now: Progress) {
        let since_ns = self.visited_ns.replace(at_ns);
        let (Some(before), Some(since_ns)) = (self.seen.replace(now), since_ns) else { return };
        // Of two visits at once nobody knows when the first was; in another ring numbers differ.
        let messages = now.visit_packets.checked_sub(before.visit_packets);
        let Some(messages) = messages.filter(|_| now.token_visits == before.token_visits + 1)
        else {
            return;
        };
        let was_loaded = std::mem::replace(&mut self.was_loaded, messages > 0);
        let samples = match usize::try_from(messages) {
            Ok(0) if was_loaded => Some(&mut self.missed),
            Ok(0) => Some(&mut self.idle),
            Ok(count) => self.loaded.get_mut(count - 1),
            Err(_) => None,
        };
        if let Some(samples) = samples {
            samples.add(at_ns.saturating_sub(since_ns));
        }
    }

    /// The local server of `group` is about to be given a request.
    pub(crate) fn server_asked(&mut self, group: GroupId) {
        if let Some(server) = self.servers.get_mut(group) {
            server.asked_ns = Some(now_ns());
        }
    }

    /// The local server of `group` has said something.
    pub(crate) fn server_spoke(&mut self, group: GroupId) {
        if let Some(server) = self.servers.get_mut(group)
            && let Some(since_ns) = server.asked_ns.take()
        {
            server.took.add(now_ns().saturating_sub(since_ns));
        }
    }

    /// A client is about to be given a reply.
    pub(crate) fn client_answered(&mut self, client: ConnectionId) {
        self.answered = Some((client, now_ns()));
    }

    /// A client has said something.
    pub(crate) fn client_spoke(&mut self, client: ConnectionId) {
        if let Some((_, since_ns)) = self.answered.take_if(|(answered, _)| *answered == client) {
            self.clients.add(now_ns().saturating_sub(since_ns));
        }
    }

    /// What the local server of `group` takes, as [`CallTimingsStatus::servers_us`] has it.
    pub(crate) fn server_us(&self, group: GroupId) -> Vec<f64> {
        self.servers.get(group).map_or_else(Vec::new, |server| server.took.times_us())
    }

    /// What an operator is told; of servers nothing is said.
    pub(crate) fn of_ring(&self) -> CallTimingsStatus {
        let light_us = self.missed.median_us().or_else(|| self.idle.median_us());
        let mut message_us = 0.0;
        let mut weights = 0.0;
        for (count, samples) in (1_u32..).zip(&self.loaded) {
            if let (Some(light_us), Some(loaded_us)) = (light_us, samples.median_us()) {
                let weight = f64::from(count) * count_of(&samples.kept);
                message_us += weight * (loaded_us - light_us).max(0.0) / f64::from(count);
                weights += weight;
            }
        }
        CallTimingsStatus {
            rotation_us: light_us,
            message_us: (weights > 0.0).then(|| message_us / weights),
            client_us: self.clients.times_us(),
            servers_us: Vec::new(),
        }
    }

    /// What an operator is told, of these groups in this order.
    pub(crate) fn status(&self, groups: impl Iterator<Item = GroupId>) -> CallTimingsStatus {
        let servers_us = groups.map(|group| self.server_us(group)).collect();
        CallTimingsStatus { servers_us, ..self.of_ring() }
    }
}

/// The last samples of a kind, in nanoseconds.
#[derive(Default)]
struct Samples {
    kept: VecDeque<u64>,
}

impl Samples {
    fn add(&mut self, took_ns: u64) {
        if self.kept.len() == SAMPLES_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(took_ns);
    }

    fn sorted(&self) -> Option<Vec<u64>> {
        let mut sorted: Vec<u64> = self.kept.iter().copied().collect();
        sorted.sort_unstable();
        (sorted.len() >= SAMPLES_MIN).then_some(sorted)
    }

    fn median_us(&self) -> Option<f64> {
        self.sorted().map(|sorted| micros(sorted[sorted.len() / 2]))
    }

    /// The middle of each tenth; nothing of too few.
    fn times_us(&self) -> Vec<f64> {
        let Some(sorted) = self.sorted() else { return Vec::new() };
        let middle = |tenth: usize| sorted[sorted.len() * (2 * tenth + 1) / (2 * TIMES)];
        (0..TIMES).map(|tenth| micros(middle(tenth))).collect()
    }
}

fn count_of(samples: &VecDeque<u64>) -> f64 {
    f64::from(u32::try_from(samples.len()).unwrap_or(u32::MAX))
}

fn micros(ns: u64) -> f64 {
    std::time::Duration::from_nanos(ns).as_secs_f64() * 1e6
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The clock starts at the boot of the machine: neither part is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits at these times (µs) of a token that has met so many packets.
    fn after(visits: impl IntoIterator<Item = (u64, u64)>) -> CallTimings {
        let mut call_timings = CallTimings::new();
        for (number, (at_us, visit_packets)) in (1..).zip(visits) {
            let now = Progress { token_visits: number, visit_packets, ..Progress::default() };
            call_timings.visited(at_us * 1_000, now);
        }
        call_timings
    }

    #[test]
    fn a_rotation_behind_a_message_is_the_light_one_and_what_messages_take_more_is_theirs() {
        // By turns: two messages in 640 µs, none in 400, none in 150.
        let mut at_us = 0;
        let visits = (0..300_u64).map(|number| {
            at_us += [150, 640, 400][(number % 3) as usize];
            (at_us, number.div_ceil(3) * 2)
        });
        let status = after(visits.collect::<Vec<_>>()).of_ring();
        assert_eq!((status.rotation_us, status.message_us), (Some(400.0), Some(120.0)));
    }

    #[test]
    fn without_load_the_idle_rotation_counts_and_of_messages_nothing_is_known() {
        let status = after((0..100).map(|number| (number * 150, 7))).of_ring();
        assert_eq!((status.rotation_us, status.message_us), (Some(150.0), None));
    }

    #[test]
    fn servers_are_told_of_in_the_order_in_which_groups_are_asked_for() {
        let mut call_timings = CallTimings::new();
        call_timings.open(GroupId(9));
        for _ in 0..SAMPLES_MIN {
            for group in [GroupId(4), GroupId(9)] {
                call_timings.server_asked(group);
                call_timings.server_spoke(group);
            }
        }
        let status = call_timings.status([GroupId(4), GroupId(9)].into_iter());
        assert_eq!(status.servers_us[0], [0.0; 0], "there is no such group");
        assert_eq!(status.servers_us[1].len(), TIMES);
        call_timings.close(GroupId(9));
        assert!(call_timings.server_us(GroupId(9)).is_empty());
    }

    #[test]
    fn visits_that_were_not_seen_one_by_one_and_other_rings_are_left_out() {
        let mut call_timings = after((0..30).map(|number| (number * 150, 100)));
        let last = call_timings.seen.expect("the last visit");
        let skipped = Progress { token_visits: last.token_visits + 2, ..last };
        call_timings.visited(1_000_000_000, skipped);
        let new_ring =
            Progress { token_visits: skipped.token_visits + 1, visit_packets: 0, ..last };
        call_timings.visited(2_000_000_000, new_ring);
        assert_eq!(call_timings.idle.kept.len(), 29);
        assert!(call_timings.missed.kept.is_empty());
    }

    #[test]
    fn the_last_samples_are_kept_and_their_tenths_shown() {
        let mut samples = Samples::default();
        (0..19).for_each(|ns| samples.add(ns));
        assert!(samples.times_us().is_empty(), "too few");
        (0..2_000).for_each(|us| samples.add(us * 1_000));
        let tenths: Vec<f64> = (0..10).map(|tenth| f64::from(1_050 + tenth * 100)).collect();
        assert_eq!(samples.times_us(), tenths);
    }
}
