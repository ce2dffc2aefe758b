//! Everything that a gateway keeps for clients, as figures: tests say that nothing is left.
//!
//! Each figure that the gateway has is counted a second time here, from its parts. Invariant: every
//! struct is taken apart field by field, so that what is added to one must be named here.

use super::{Gateway, GroupBook};
use crate::connection::ConnectionHoldings;
use crate::fair::Source;
use crate::limits::PeerHoldings;
use crate::output::ConnectionId;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use quorba_replica::{GroupId, GroupMap, RequestNumber};

/// What one group has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct GroupHoldings {
    /// Requests, with all that is known of them.
    pub(super) book: BTreeMap<RequestNumber, String>,
    answered: Vec<RequestNumber>,
    parked: BTreeMap<Source, Vec<RequestNumber>>,
    reads: BTreeMap<Source, Vec<RequestNumber>>,
    window: (u32, usize, u64),
    read_window: (u32, usize, u64),
    held: usize,
    given_up: Vec<RequestNumber>,
    calls: Vec<RequestNumber>,
}

/// What is there on account of connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holdings {
    pub(super) connections: BTreeMap<ConnectionId, ConnectionHoldings>,
    pub(super) peers: BTreeMap<IpAddr, PeerHoldings>,
    pub(super) groups: GroupMap<GroupHoldings>,
    awaiting: Vec<(GroupId, RequestNumber)>,
    deadlines: BTreeSet<(GroupId, RequestNumber)>,
    waiting: BTreeSet<(GroupId, RequestNumber)>,
    marks: [usize; 3],
    poison: usize,
    servers: [usize; 6],
    pending: usize,
    buffered_bytes: usize,
    paused: BTreeSet<ConnectionId>,
    stopping: bool,
}

/// Of how many addresses something is remembered: their rates, and how long their calls take in
/// each group, in front of the order and with members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Remembered {
    pub(super) addresses: usize,
    pub(super) queues: Vec<usize>,
}

impl Holdings {
    /// A gateway that stops is to keep as little as any other.
    pub(super) fn stopping(&mut self) {
        self.stopping = false;
    }
}

impl Gateway {
    /// What is kept now. Panics if one figure does not agree with another.
    pub(super) fn holdings(&self) -> (Holdings, Remembered) {
        let Self {
            connections,
            peers,
            groups,
            awaiting_held,
            awaiting_stable,
            marks,
            poison,
            servers,
            deadlines,
            waiting,
            pending,
            buffered_bytes,
            stopping,
            paused,
            // What was set up, and what comes next.
            limits: _,
            names: _,
            initial: _,
            payload_bytes_max: _,
            wall_clock_origin: _,
            turn: _,
            in_turn: _,
            held: _,
            stable: _,
            next_scan: _,
            resumed_last: _,
            has_unreleased: _,
            look_again: _,
            now: _,
            out: _,
        } = self;
        let (peers, addresses) = peers.holdings();
        let awaiting = awaiting_held.iter().chain(awaiting_stable);
        let mut queues = Vec::new();
        let groups = groups.iter().map(|(id, books)| (id, books.holdings(&mut queues))).collect();
        let holdings = Holdings {
            connections: connections.iter().map(|(id, it)| (*id, it.holdings())).collect(),
            peers,
            groups,
            awaiting: awaiting.map(|(_, group, number)| (*group, *number)).collect(),
            deadlines: deadlines.iter().map(|(_, group, number)| (*group, *number)).collect(),
            waiting: waiting.iter().map(|(_, group, number)| (*group, *number)).collect(),
            marks: marks.holdings(),
            poison: poison.holdings(),
            servers: servers.holdings(),
            pending: *pending,
            buffered_bytes: *buffered_bytes,
            paused: paused.clone(),
            stopping: *stopping,
        };
        self.count_again(&holdings);
        (holdings, Remembered { addresses, queues })
    }

    fn count_again(&self, holdings: &Holdings) {
        let requests = || {
            let books = self.groups.iter();
            books.flat_map(|(id, books)| books.book.iter().map(move |(n, it)| (id, n, it)))
        };
        assert_eq!(holdings.pending, requests().count());
        let nested = requests().filter(|(_, _, it)| it.is_nested()).count();
        let of_servers = holdings.connections.values().filter(|it| it.caller.is_some()).count();
        assert_eq!(holdings.servers[..2], [of_servers, nested]);
        let connections = holdings.connections.values();
        assert_eq!(holdings.buffered_bytes, connections.map(|it| it.buffered_bytes).sum::<usize>());
        // What becomes of a server's call is decided by the order alone.
        for (group, number, it) in requests().filter(|(_, _, it)| !it.is_nested()) {
            let one = (group, number);
            assert_eq!(holdings.waiting.contains(&one), it.is_held());
            let ends = it.is_held() || holdings.deadlines.contains(&one);
            assert!(ends, "{number:?} waits for ever");
        }
        let held = requests().filter(|(_, _, it)| it.is_held()).count();
        assert_eq!(holdings.waiting.len(), held);
        for (id, connection) in &holdings.connections {
            assert_eq!(connection.paused, holdings.paused.contains(id));
            let is_its = |source: Source| source.is_some() && connection.caller.is_none();
            let its = requests().filter(|(_, _, it)| it.connection == *id && is_its(it.source));
            assert_eq!(connection.calls, its.count());
            for (request_id, (group, number)) in &connection.pending {
                let found = self.groups[*group].book.get(*number);
                let client =
                    found.and_then(|it| it.waiter.client()).expect("it waits for what is there");
                assert_eq!((client.connection, client.request_id), (*id, *request_id));
            }
            if connection.caller.is_none() && !connection.turned_away {
                assert_eq!(connection.unread, connection.buffered_bytes);
            }
        }
        self.count_addresses_again(holdings);
        for (id, books) in self.groups.iter() {
            books.count_again(&holdings.groups[id]);
        }
    }

    fn count_addresses_again(&self, holdings: &Holdings) {
        let mut found: BTreeMap<IpAddr, PeerHoldings> = BTreeMap::new();
        for connection in holdings.connections.values().filter(|it| it.caller.is_none()) {
            let peer = found.entry(connection.address).or_default();
            peer.turned_away += usize::from(connection.turned_away);
            peer.connections += usize::from(!connection.turned_away);
            peer.unread += connection.unread;
            peer.unsent += connection.unsent;
            peer.held += connection.unread + connection.unsent;
        }
        for (_, request) in self.groups.iter().flat_map(|(_, books)| books.book.iter()) {
            if let Some(address) = request.source {
                let peer = found.entry(address).or_default();
                peer.pending += 1;
                peer.held += request.charged;
            }
        }
        for (address, peer) in &holdings.peers {
            let found = found.remove(address).unwrap_or_default();
            assert_eq!(*peer, PeerHoldings { leader: peer.leader, ..found }, "{address}");
            let leads = |id: ConnectionId| {
                holdings.connections.get(&id).is_some_and(|it| it.address == *address)
            };
            assert!(peer.leader.is_none_or(leads), "who leads is gone");
        }
        assert!(found.is_empty(), "nobody is charged for {found:?}");
    }
}

impl GroupBook {
    fn holdings(&self, remembered: &mut Vec<usize>) -> GroupHoldings {
        let Self {
            book,
            parked,
            window,
            held,
            reads,
            read_window,
            given_up,
            calls,
            // What was set up, is counted for ever, and is to be said.
            rules: _,
            counters: _,
        } = self;
        let (parked, parkers) = parked.holdings();
        let (reads, readers) = reads.holdings();
        remembered.extend([parkers.len(), readers.len()]);
        GroupHoldings {
            book: book.iter().map(|(number, it)| (number, format!("{it:?}"))).collect(),
            answered: book.holdings(),
            parked,
            reads,
            window: window.holdings(),
            read_window: read_window.holdings(),
            held: *held,
            given_up: given_up.keys().copied().collect(),
            calls: calls.iter().copied().collect(),
        }
    }

    fn count_again(&self, holdings: &GroupHoldings) {
        let charged = self.book.iter().map(|(_, request)| request.charged);
        assert_eq!(holdings.held, charged.sum::<usize>());
        let entered = |reads: bool| {
            let inside = self.book.iter().filter(|(_, it)| it.is_read() == reads);
            inside.filter(|(_, it)| it.entered.is_some()).count() as u32
        };
        let reads = entered(true) + holdings.given_up.len() as u32;
        assert_eq!((holdings.window.0, holdings.read_window.0), (entered(false), reads));
        for (queue, is_read) in [(&holdings.parked, false), (&holdings.reads, true)] {
            for (source, numbers) in queue {
                for number in numbers {
                    let request = self.book.get(*number).expect("what waits is in the book");
                    assert_eq!((request.source, request.is_read()), (*source, is_read));
                    assert!(request.entered.is_none(), "{number:?} waits for a turn that it has");
                }
            }
        }
    }
}
