//! What one client address has here, and how much it may: connections, requests per second, bytes.
//!
//! What it is not: where the bytes are. Invariants: what is charged is discharged once; memory
//! follows the addresses that have something here, and those that had lately.

use crate::config::GatewayLimits;
use crate::fair::Source;
use crate::output::ConnectionId;
use crate::window::{CallCost, Window};
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;
use quorba_base::{Duration, Instant};
use quorba_replica::GroupId;

const NANOS: i64 = 1_000_000_000;
/// How often is said that one address is turned away.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// Connections of one address over the limit that are told so; more are closed without a word.
const TURNED_AWAY_MAX: usize = 8;
/// Addresses without a connection that are remembered.
const ABSENT_MAX: usize = 4096;
/// Messages of one address in a second that the gateway deals with by itself, and how many at once:
/// what it says to one client all others wait for.
const ANSWERS_PER_SECOND: u32 = 20_000;
const ANSWERS_AT_ONCE: i64 = 512;
/// Requests that one address may always have, however many others have.
const PENDING_MIN: usize = 16;

/// What bytes are held for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// They came and are no whole message yet, or are not looked at yet.
    Unread,
    /// A request, from when it is taken in until it is executed, or its reply.
    Call,
    /// A reply that the client does not take.
    Unsent,
}

#[derive(Default)]
struct Peer {
    connections: usize,
    /// Connections over the limit that wait to be told so.
    turned_away: usize,
    /// How many were turned away, and when that was said last.
    refused: u64,
    said: Option<Instant>,
    /// For requests and questions, if their rate is limited: a full one is a second.
    requests: Bucket,
    /// For what the gateway deals with by itself.
    answers: Bucket,
    pending: usize,
    held: usize,
    unread: usize,
    unsent: usize,
    /// The connection that is read on although the address has its share, so that the messages
    /// which have begun can end.
    leader: Option<ConnectionId>,
    /// Groups that were called since it had no connection.
    called: BTreeSet<GroupId>,
}

/// Credit in nanoseconds: a message costs `1 s / rate`. The one that broke the limit is served, and
/// owed.
#[derive(Clone, Copy, Default)]
struct Bucket {
    credit_ns: i64,
    full_ns: i64,
    refilled: Instant,
}

impl Bucket {
    const fn full(now: Instant, full_ns: i64) -> Self {
        Self { credit_ns: full_ns, full_ns, refilled: now }
    }

    fn credit_at(&self, now: Instant) -> i64 {
        let elapsed = i64::try_from(now.since(self.refilled).as_nanos()).unwrap_or(i64::MAX);
        self.credit_ns.saturating_add(elapsed).min(self.full_ns)
    }

    fn is_full(&self, now: Instant) -> bool {
        self.credit_at(now) >= self.full_ns
    }

    fn take(&mut self, now: Instant, rate: u32) {
        self.credit_ns = self.credit_at(now).saturating_sub(cost_ns(rate));
        self.refilled = now;
    }

    /// Until when something is owed.
    fn owes_until(&self, now: Instant) -> Option<Instant> {
        let owed = u64::try_from(-self.credit_at(now)).ok().filter(|owed| *owed > 0)?;
        Some(now + Duration::from_nanos(owed))
    }
}

const fn cost_ns(rate: u32) -> i64 {
    NANOS / rate as i64
}

impl Peer {
    fn is_here(&self) -> bool {
        self.connections + self.turned_away > 0
    }
}

/// How a connection is received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Welcome {
    Come,
    /// There are too many: its first request is answered so.
    TurnAway,
    /// There are too many of those, too.
    Close,
}

/// What one address has, without what is only remembered of it.
#[cfg(test)]
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PeerHoldings {
    pub(crate) connections: usize,
    pub(crate) turned_away: usize,
    pub(crate) pending: usize,
    pub(crate) held: usize,
    pub(crate) unread: usize,
    pub(crate) unsent: usize,
    pub(crate) leader: Option<ConnectionId>,
}

/// Book-keeping per client address.
pub(crate) struct Peers {
    peers: BTreeMap<IpAddr, Peer>,
    limits: GatewayLimits,
    turned_away: usize,
    held: usize,
    /// Addresses that something is held for.
    holders: usize,
    /// Addresses that have a connection.
    present: usize,
}

impl Peers {
    pub(crate) fn new(limits: GatewayLimits) -> Self {
        Self { peers: BTreeMap::new(), limits, turned_away: 0, held: 0, holders: 0, present: 0 }
    }

    /// Addresses that have something here, and how many are known at all. Each sum is as large as
    /// its parts.
    #[cfg(test)]
    pub(crate) fn holdings(&self) -> (BTreeMap<IpAddr, PeerHoldings>, usize) {
        let Self { peers, limits: _, turned_away, held, holders, present } = self;
        let holdings = |peer: &Peer| {
            let Peer {
                connections,
                turned_away,
                pending,
                held,
                unread,
                unsent,
                leader,
                called: _,
                // These are remembered.
                refused: _,
                said: _,
                requests: _,
                answers: _,
            } = *peer;
            PeerHoldings { connections, turned_away, pending, held, unread, unsent, leader }
        };
        let all: BTreeMap<_, _> = peers.iter().map(|(at, peer)| (*at, holdings(peer))).collect();
        let sum = |of: fn(&PeerHoldings) -> usize| all.values().map(of).sum::<usize>();
        assert_eq!(*turned_away, sum(|peer| peer.turned_away));
        assert_eq!(*held, sum(|peer| peer.held));
        assert_eq!(*holders, sum(|peer| usize::from(peer.held > 0)));
        let is_here = |peer: &PeerHoldings| usize::from(peer.connections + peer.turned_away > 0);
        assert_eq!(*present, sum(is_here));
        let known = all.len();
        (all.into_iter().filter(|(_, peer)| *peer != PeerHoldings::default()).collect(), known)
    }

    // -- connections ------------------------------------------------------------------------

    /// One more connection from `address`, which is counted. `full`: the node has all it may.
    pub(crate) fn connect(&mut self, now: Instant, address: IpAddr, full: bool) -> Welcome {
        if self.peers.len() >= ABSENT_MAX && !self.peers.contains_key(&address) {
            self.forget_absent(now);
        }
        let answers_ns = cost_ns(ANSWERS_PER_SECOND) * ANSWERS_AT_ONCE;
        let new = || Peer {
            requests: Bucket::full(now, NANOS),
            answers: Bucket::full(now, answers_ns),
            ..Peer::default()
        };
        let peer = self.peers.entry(address).or_insert_with(new);
        let was_here = peer.is_here();
        if !full && peer.connections < self.limits.connections_per_peer {
            peer.connections += 1;
            self.present += usize::from(!was_here);
            return Welcome::Come;
        }
        peer.refused += 1;
        if peer.turned_away >= TURNED_AWAY_MAX || self.turned_away >= self.limits.turned_away {
            return Welcome::Close;
        }
        peer.turned_away += 1;
        self.turned_away += 1;
        self.present += usize::from(!was_here);
        Welcome::TurnAway
    }

    /// Whether an address has fewer connections than it may have.
    pub(crate) fn may_connect(&self, address: IpAddr) -> bool {
        let peer = self.peers.get(&address);
        peer.is_none_or(|peer| peer.connections < self.limits.connections_per_peer)
    }

    pub(crate) fn disconnect(&mut self, address: IpAddr) {
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.connections -= 1;
            self.present -= usize::from(!peer.is_here());
        }
    }

    /// One that was turned away is gone.
    pub(crate) fn turned_away_gone(&mut self, address: IpAddr) {
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.turned_away -= 1;
            self.turned_away -= 1;
            self.present -= usize::from(!peer.is_here());
        }
    }

    /// Connections that wait to be told that there are too many.
    pub(crate) const fn turned_away(&self) -> usize {
        self.turned_away
    }

    /// Whether it is time to say that `address` is turned away: how many connections it has, and
    /// how many were refused.
    pub(crate) fn say_refused(&mut self, now: Instant, address: IpAddr) -> Option<(usize, u64)> {
        let peer = self.peers.get_mut(&address)?;
        if peer.said.is_some_and(|said| now.since(said) < SAY_AGAIN) {
            return None;
        }
        peer.said = Some(now);
        Some((peer.connections, peer.refused))
    }

    /// The address that was refused most connections of late, with how many it has and how many
    /// were refused.
    pub(crate) fn most_refused(&self) -> Option<(IpAddr, usize, u64)> {
        let refused = self.peers.iter().filter(|(_, peer)| peer.refused > 0);
        let (address, peer) = refused.max_by_key(|(_, peer)| peer.refused)?;
        Some((*address, peer.connections, peer.refused))
    }

    /// Whether anything is known of the address.
    /// A client of this address has called this group.
    pub(crate) fn calls(&mut self, address: IpAddr, group: GroupId) {
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.called.insert(group);
        }
    }

    /// The groups that clients of this address have called since it had no connection.
    pub(crate) fn called_by(&mut self, address: IpAddr) -> BTreeSet<GroupId> {
        let peer = self.peers.get_mut(&address);
        peer.map(|peer| core::mem::take(&mut peer.called)).unwrap_or_default()
    }

    pub(crate) fn knows(&self, address: IpAddr) -> bool {
        self.peers.contains_key(&address)
    }

    pub(crate) fn has_connections(&self, address: IpAddr) -> bool {
        self.peers.get(&address).is_some_and(Peer::is_here)
    }

    /// Whether there is an address that may be forgotten one day: it has no connection.
    pub(crate) fn has_absent(&self) -> bool {
        self.peers.len() > self.present
    }

    /// Forgets addresses that have nothing here any more and whose bucket is full again. If there
    /// are too many, the latter does not count.
    pub(crate) fn forget_absent(&mut self, now: Instant) {
        let rate = self.limits.requests_per_second_per_peer;
        let is_crowded = self.peers.len() >= ABSENT_MAX;
        self.peers.retain(|_, peer| {
            let is_here = peer.is_here() || peer.pending + peer.held > 0;
            let is_full = (rate == 0 || peer.requests.is_full(now)) && peer.answers.is_full(now);
            let was_said = peer.said.is_some_and(|said| now.since(said) < SAY_AGAIN);
            is_here || !is_crowded && (!is_full || was_said)
        });
    }

    // -- requests ---------------------------------------------------------------------------

    /// Takes the cost of one request or question, which may be owed: see [`Self::owes_until`].
    pub(crate) fn request(&mut self, now: Instant, address: IpAddr) {
        let rate = self.limits.requests_per_second_per_peer;
        if rate > 0
            && let Some(peer) = self.peers.get_mut(&address)
        {
            peer.requests.take(now, rate);
        }
    }

    /// The same of a message that the gateway deals with by itself.
    pub(crate) fn answer(&mut self, now: Instant, address: IpAddr) {
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.answers.take(now, ANSWERS_PER_SECOND);
        }
    }

    /// Until when nothing more of the address is read, because it has asked for more than its rate.
    /// That is the address's: it has no more for having several connections, or another one.
    pub(crate) fn owes_until(&self, now: Instant, address: IpAddr) -> Option<Instant> {
        let peer = self.peers.get(&address)?;
        let is_rated = self.limits.requests_per_second_per_peer > 0;
        let requests = is_rated.then(|| peer.requests.owes_until(now)).flatten();
        let half = Duration::from_nanos(peer.answers.full_ns.unsigned_abs() / 2);
        // Not one by one: each time costs more than the message.
        requests.max(peer.answers.owes_until(now).map(|until| until + half))
    }

    /// A request is taken in, or (`is_over`) it is there no more.
    pub(crate) fn pending(&mut self, address: IpAddr, is_over: bool) {
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.pending = if is_over { peer.pending - 1 } else { peer.pending + 1 };
        }
    }

    /// Whether the address has so few requests that it may have one more in any case.
    pub(crate) fn has_few(&self, address: IpAddr) -> bool {
        self.peers.get(&address).is_none_or(|peer| peer.pending < PENDING_MIN)
    }

    // -- bytes ------------------------------------------------------------------------------

    /// What was `before` bytes is `after` bytes now.
    pub(crate) fn recount(&mut self, address: IpAddr, what: Held, before: usize, after: usize) {
        if before == after {
            return;
        }
        let Some(peer) = self.peers.get_mut(&address) else { return };
        let had = peer.held > 0;
        let figure = match what {
            Held::Unread => Some(&mut peer.unread),
            Held::Call => None,
            Held::Unsent => Some(&mut peer.unsent),
        };
        if let Some(figure) = figure {
            *figure = *figure - before + after;
        }
        peer.held = peer.held - before + after;
        self.held = self.held - before + after;
        match (had, peer.held > 0) {
            (false, true) => self.holders += 1,
            (true, false) => self.holders -= 1,
            _ => {}
        }
    }

    /// All that is held for clients.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Whether the node holds more than it may.
    pub(crate) const fn is_overfull(&self) -> bool {
        self.held > self.limits.buffered_bytes
    }

    /// Whether one address holds so much more than its share that something of it must go: replies
    /// cannot be left where they are.
    pub(crate) fn holds_too_much(&self, address: IpAddr) -> bool {
        let most = self.limits.buffered_bytes_per_peer.saturating_mul(2);
        self.peers.get(&address).is_some_and(|peer| peer.held > most)
    }

    /// Whether the address has all that it may, of the node's bytes and of the `group_held` ones
    /// of a group. Half of each is for whoever comes first, the rest in equal shares.
    pub(crate) fn is_full(&self, address: IpAddr, group_held: usize) -> bool {
        let Some(peer) = self.peers.get(&address) else { return false };
        let beyond = |held: usize, most: usize| {
            held >= most / 2 && peer.held >= most / 2 / self.holders.max(1)
        };
        peer.held >= self.limits.buffered_bytes_per_peer
            || beyond(self.held, self.limits.buffered_bytes)
            || beyond(group_held, self.limits.buffered_bytes_per_group)
    }

    /// Whether the connection, which has begun a message, is read on although its address has all
    /// it may. One at a time is, so that messages end, as long as it is they that take the room.
    pub(crate) fn leads(&mut self, address: IpAddr, id: ConnectionId) -> bool {
        let most = self.limits.buffered_bytes_per_peer;
        let Some(peer) = self.peers.get_mut(&address) else { return false };
        if peer.held - peer.unread >= most {
            return false;
        }
        *peer.leader.get_or_insert(id) == id
    }

    /// The connection has no message that has begun, or is gone.
    pub(crate) fn leads_no_more(&mut self, address: IpAddr, id: ConnectionId) {
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.leader = peer.leader.filter(|leader| *leader != id);
        }
    }

    /// Whether a client at that address, whose calls take so much, may have one more in a window;
    /// a server may have as much as that lets in.
    pub(crate) fn let_in(&self, window: &Window, source: Source, call_cost: CallCost) -> bool {
        source.is_none_or(|address| self.may_order(address)) && window.may_enter(source, call_cost)
    }

    /// Whether more requests of this address may be ordered: not while it leaves its replies.
    fn may_order(&self, address: IpAddr) -> bool {
        let most = self.limits.buffered_bytes_per_peer / 2;
        self.peers.get(&address).is_none_or(|peer| peer.unsent < most)
    }

    /// The address that holds the most.
    pub(crate) fn largest(&self) -> Option<IpAddr> {
        self.peers.iter().max_by_key(|(_, peer)| peer.held).map(|(address, _)| *address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    const MIB: usize = 1 << 20;

    fn peers(limits: GatewayLimits) -> Peers {
        Peers::new(limits)
    }

    fn rated(connections: usize, rate: u32) -> Peers {
        peers(GatewayLimits {
            connections_per_peer: connections,
            requests_per_second_per_peer: rate,
            ..GatewayLimits::default()
        })
    }

    #[test]
    fn connections_of_one_address_are_counted() {
        let mut peers = rated(2, 0);
        let now = Instant::ZERO;
        assert_eq!(peers.connect(now, A, false), Welcome::Come);
        assert_eq!(peers.connect(now, A, false), Welcome::Come);
        assert_eq!(peers.connect(now, A, false), Welcome::TurnAway);
        assert_eq!(peers.connect(now, B, false), Welcome::Come);
        peers.disconnect(A);
        assert_eq!(peers.connect(now, A, false), Welcome::Come);
        assert_eq!(peers.connect(now, B, true), Welcome::TurnAway);
    }

    #[test]
    fn who_is_turned_away_is_told_as_long_as_that_costs_little() {
        let mut peers = rated(1, 0);
        let now = Instant::ZERO;
        peers.connect(now, A, false);
        for _ in 0..TURNED_AWAY_MAX {
            assert_eq!(peers.connect(now, A, false), Welcome::TurnAway);
        }
        assert_eq!(peers.connect(now, A, false), Welcome::Close);
        peers.turned_away_gone(A);
        assert_eq!(peers.connect(now, A, false), Welcome::TurnAway);
    }

    #[test]
    fn that_an_address_is_turned_away_is_said_once_a_minute() {
        let mut peers = rated(1, 0);
        let now = Instant::ZERO;
        peers.connect(now, A, false);
        peers.connect(now, A, false);
        assert_eq!(peers.say_refused(now, A), Some((1, 1)));
        peers.connect(now, A, false);
        assert_eq!(peers.say_refused(now + Duration::from_secs(59), A), None);
        assert_eq!(peers.say_refused(now + Duration::from_secs(60), A), Some((1, 2)));
        assert_eq!(peers.most_refused(), Some((A, 1, 2)));
    }

    #[test]
    fn a_burst_of_a_second_is_allowed_then_the_rate_holds() {
        let mut peers = rated(2, 10);
        let (start, tenth) = (Instant::ZERO, Duration::from_millis(100));
        peers.connect(start, A, false);
        for _ in 0..10 {
            assert_eq!(peers.owes_until(start, A), None);
            peers.request(start, A);
        }
        assert_eq!(peers.owes_until(start, A), None, "the next one is served, and owed");
        peers.request(start, A);
        assert_eq!(peers.owes_until(start, A), Some(start + tenth));
        assert_eq!(peers.owes_until(start + tenth, A), None);
    }

    #[test]
    fn who_comes_again_has_no_full_bucket() {
        let mut peers = rated(2, 10);
        let start = Instant::ZERO;
        let mut served = 0;
        for _ in 0..20 {
            peers.connect(start, A, false);
            if peers.owes_until(start, A).is_none() {
                peers.request(start, A);
                served += 1;
            }
            peers.disconnect(A);
            peers.forget_absent(start);
        }
        assert_eq!(served, 11);
        peers.forget_absent(start + Duration::from_secs(2));
        assert!(peers.peers.is_empty(), "a full bucket is not remembered");
    }

    /// Each of them still owes something.
    #[test]
    fn so_many_addresses_are_remembered_and_who_is_here_is_among_them() {
        let mut peers = rated(2, 1);
        let now = Instant::ZERO;
        peers.connect(now, A, false);
        for number in 0..2 * ABSENT_MAX as u32 {
            let address = IpAddr::V4(Ipv4Addr::from((10 << 24) + number));
            peers.connect(now, address, false);
            peers.request(now, address);
            peers.disconnect(address);
            assert!(peers.peers.len() <= ABSENT_MAX + 1, "{}", peers.peers.len());
        }
        assert!(peers.has_connections(A) && peers.has_absent());
        peers.forget_absent(now + Duration::from_secs(2));
        assert_eq!((peers.peers.len(), peers.has_absent()), (1, false));
    }

    #[test]
    fn that_an_address_is_turned_away_is_not_said_again_because_it_was_gone() {
        let mut peers = rated(1, 0);
        let (start, seconds) = (Instant::ZERO, Duration::from_secs);
        for (after, said) in [(0, Some((1, 1))), (59, None), (120, Some((1, 1)))] {
            let now = start + seconds(after);
            assert_eq!(peers.connect(now, A, false), Welcome::Come);
            assert_eq!(peers.connect(now, A, false), Welcome::TurnAway);
            assert_eq!(peers.say_refused(now, A), said);
            peers.turned_away_gone(A);
            peers.disconnect(A);
            peers.forget_absent(now + seconds(after.min(1)));
        }
    }

    #[test]
    fn what_is_answered_at_once_has_a_rate_of_its_own() {
        let mut peers = rated(2, 0);
        let start = Instant::ZERO;
        peers.connect(start, A, false);
        for _ in 0..=ANSWERS_AT_ONCE {
            assert_eq!(peers.owes_until(start, A), None);
            peers.answer(start, A);
        }
        let until = peers.owes_until(start, A).expect("it waits");
        assert_eq!(until, start + Duration::from_micros(50 + 256 * 50));
        assert_eq!(peers.owes_until(until, A), None);
    }

    fn budget() -> Peers {
        let mut peers = peers(GatewayLimits {
            buffered_bytes: 64 * MIB,
            buffered_bytes_per_peer: 40 * MIB,
            buffered_bytes_per_group: 64 * MIB,
            ..GatewayLimits::default()
        });
        peers.connect(Instant::ZERO, A, false);
        peers.connect(Instant::ZERO, B, false);
        peers
    }

    #[test]
    fn who_holds_little_has_room_beside_one_who_holds_much() {
        let mut peers = budget();
        peers.recount(A, Held::Call, 0, 33 * MIB);
        peers.recount(B, Held::Unsent, 0, MIB);
        assert!(peers.is_full(A, 0), "half of the node's bytes are taken");
        assert!(!peers.is_full(B, 0));
        peers.recount(A, Held::Call, 33 * MIB, 0);
        assert!(!peers.is_full(A, 0));
        assert_eq!(peers.held(), MIB);
        assert!(!peers.is_full(A, 63 * MIB), "a group is full, and not of its requests");
        peers.recount(A, Held::Call, 0, 20 * MIB);
        assert!(peers.is_full(A, 63 * MIB) && !peers.is_full(A, 0));
        assert_eq!(peers.largest(), Some(A));
    }

    #[test]
    fn of_an_address_that_is_full_of_beginnings_one_connection_is_read_on() {
        let mut peers = budget();
        peers.recount(A, Held::Unread, 0, 50 * MIB);
        let (first, second) = (ConnectionId(1), ConnectionId(2));
        assert!(peers.is_full(A, 0));
        assert!(peers.leads(A, first) && !peers.leads(A, second) && peers.leads(A, first));
        peers.leads_no_more(A, first);
        assert!(peers.leads(A, second));
        peers.leads_no_more(A, second);
        peers.recount(A, Held::Call, 0, 40 * MIB);
        assert!(!peers.leads(A, first), "it is not the beginnings that take the room");
        assert!(peers.is_overfull() && peers.holds_too_much(A));
    }
}
