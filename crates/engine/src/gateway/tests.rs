//! That groups share the gateway fairly.

mod holdings;
mod reads;
mod shared;
mod stand;
mod stories;
mod stories_of_all;
mod times;
mod turns;
mod waits;

use super::requests::TURN_MAX;
use super::*;
use crate::access::ClientPeer;
use crate::output::Event;
use crate::pending::{Executed, Stage};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use quorba_base::NodeSet;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Endian, ResponseFlags, Version};
use quorba_replica::{
    Ack, Availability, Backlog, CheckpointRule, ComparisonRule, Concurrency, GroupConfig,
    OnTotalLoss, ReadRule, Replication, ReplyPath, Style,
};

const NOW: Instant = Instant::ZERO;
const SECOND: Duration = Duration::from_secs(1);

fn settings() -> GroupSettings {
    GroupSettings {
        replica: GroupConfig {
            members: NodeSet::first(1),
            state_object: None,
            object_key: None,
            member_keys: alloc::vec::Vec::new(),
            foreign: false,
            ack: Ack::Majority,
            reply: ReplyPath::Direct,
            replier: None,
            style: Style::Active,
            leader: None,
            checkpoint: CheckpointRule { requests: 100, after: SECOND, updates: false },
            comparison: ComparisonRule { requests: 0, expel: false, ignore_padding: false },
            transfer: quorba_replica::TransferRule::default(),
            reads: ReadRule::default(),
            concurrency: Concurrency::Sequential,
            on_total_loss: OnTotalLoss::Stop,
            durable: false,
            logged: false,
            open_after: SECOND,
            server_reply: SECOND,
            abandon: None,
            staggered: false,
            replication: Replication::Ordered,
            retention: SECOND,
            retention_bytes_max: 64 << 20,
            replay_bytes_max: None,
            by_application: false,
            reply_bytes_max: 1 << 20,
            state_bytes_max: 1 << 20,
            calls: alloc::vec::Vec::new(),
            is_called: false,
        },
        depth: 0,
        unavailable_wait: SECOND,
        access: Access::default(),
        references: None,
        initial_keys: alloc::vec::Vec::new(),
    }
}

fn gateway(groups: usize, limits: GatewayLimits) -> Gateway {
    with_groups(limits, (0..groups as u64).map(|id| (GroupId(id), settings())))
}

/// Groups are called by the digits of their ids.
fn with_groups(
    limits: GatewayLimits,
    groups: impl IntoIterator<Item = (GroupId, GroupSettings)>,
) -> Gateway {
    let mut gateway = Gateway::new(limits, 1 << 20, 0);
    for (id, settings) in groups {
        gateway.define((id, 0), &id.0.to_string().into(), settings);
    }
    gateway
}

/// `count` requests over a new connection to `group`.
fn send(gateway: &mut Gateway, id: u64, group: u16, count: u32) {
    let id = ConnectionId(id);
    gateway.opened(NOW, id, GroupId(group.into()), ClientPeer::at(Ipv4Addr::LOCALHOST.into()));
    for request_id in 0..count {
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"echo",
            operation: b"echo",
            contexts: &[],
        };
        gateway.received(NOW, id, build::request(&head, |_| {}).bytes());
    }
}

#[test]
fn a_single_request_is_submitted_within_one_round_beside_a_full_backlog() {
    let mut gateway = gateway(3, GatewayLimits::default());
    for connection in 0..20 {
        send(&mut gateway, connection, 0, 64);
    }
    send(&mut gateway, 20, 2, 1);
    let mut before = 0;
    while let Some(submission) =
        gateway.next_submission(|_| Availability::Ready, |_| Backlog::default())
    {
        if submission.group == GroupId(2) {
            break;
        }
        before += 1;
    }
    assert!(before <= TURN_MAX, "{before} requests of the hot group came first");
    assert!(gateway.groups[GroupId(0)].parked.len() > 1000, "the hot group has a backlog still");
}

#[test]
fn a_group_that_cannot_serve_holds_nobody_up() {
    let mut gateway = gateway(2, GatewayLimits::default());
    send(&mut gateway, 0, 0, 64);
    send(&mut gateway, 1, 1, 40);
    let only_the_second = |group| match group {
        GroupId(1) => Availability::Ready,
        _ => Availability::NoMember,
    };
    let submitted =
        core::iter::from_fn(|| gateway.next_submission(only_the_second, |_| Backlog::default()))
            .count();
    assert_eq!(submitted, 40);
}

#[test]
fn a_hot_group_leaves_the_others_their_share_of_the_room() {
    let limits = GatewayLimits { pending: 400, ..GatewayLimits::default() };
    let mut gateway = gateway(4, limits);
    for connection in 0..20 {
        send(&mut gateway, connection, 0, 64);
    }
    assert_eq!(gateway.groups[GroupId(0)].book.len(), 250, "all but three shares of 50");
    for group in 1..4 {
        send(&mut gateway, 20 + u64::from(group), group, 64);
        assert_eq!(gateway.groups[GroupId(group.into())].book.len(), 50);
    }
}

#[test]
fn a_group_alone_has_all_the_room() {
    let limits = GatewayLimits { pending: 100, ..GatewayLimits::default() };
    let mut gateway = gateway(1, limits);
    for connection in 0..4 {
        send(&mut gateway, connection, 0, 64);
    }
    assert_eq!(gateway.pending, 100);
}

/// What it says of clients that are not answered: numbers at the gateway.
fn unanswered(gateway: &mut Gateway) -> alloc::vec::Vec<u64> {
    let said = gateway.out.drain(..).filter_map(|output| match output {
        Output::Event(Event::Unanswered { number, peer, .. }) if peer.is_loopback() => Some(number),
        _ => None,
    });
    said.collect()
}

#[test]
fn whose_calls_they_were_is_told_when_clients_go_that_were_not_answered() {
    let mut gateway = gateway(1, GatewayLimits::default());
    send(&mut gateway, 0, 0, 3);
    let client = |gateway: &Gateway, number| gateway.client_of(GroupId(0), RequestNumber(number));
    assert_eq!(client(&gateway, 2), Some(Ipv4Addr::LOCALHOST.into()));
    let wait = gateway.longest_wait(NOW + SECOND, GroupId(0)).expect("three wait");
    assert_eq!(wait, (RequestNumber(1), SECOND, Ipv4Addr::LOCALHOST.into()));
    for ticket in 1..=2 {
        let submission = gateway
            .next_submission(|_| Availability::Ready, |_| Backlog::default())
            .expect("three wait");
        gateway.submitted(&submission, Ticket(ticket));
    }
    let answer = build::system_exception(
        Version::V1_2,
        Endian::Little,
        0,
        &quorba_giop::SystemException::ours(
            quorba_giop::ExceptionKind::Timeout,
            quorba_giop::MinorCode::Skipped,
            quorba_giop::Completion::Maybe,
        ),
    );
    gateway.held(Ticket(1));
    gateway.replied(GroupId(0), RequestNumber(1), Some(answer.bytes().clone()), false);
    assert_eq!(unanswered(&mut gateway), [], "an answer is on its way");
    gateway.closed(ConnectionId(0));
    assert_eq!(unanswered(&mut gateway), [2], "nobody was given the third");
    assert_eq!((client(&gateway, 2), client(&gateway, 9)), (None, None));
}

fn skipped() -> bytes::Bytes {
    let (kind, code) = (quorba_giop::ExceptionKind::Timeout, quorba_giop::MinorCode::Skipped);
    let maybe = quorba_giop::Completion::Maybe;
    let exception = quorba_giop::SystemException::ours(kind, code, maybe);
    build::system_exception(Version::V1_2, Endian::Little, 0, &exception).bytes().clone()
}

fn answers(gateway: &mut Gateway) -> usize {
    let answers = |output: &Output| matches!(output, Output::ClientSend { .. });
    gateway.out.drain(..).filter(answers).count()
}

// A node that was cut off was told by its operator to give a request up, and told its client so;
// nobody else heard of it, and the others told the client something else.
#[test]
fn how_a_call_has_ended_is_told_when_what_is_ordered_behind_it_is_safe() {
    let (group, number) = (GroupId(0), RequestNumber(1));
    let end = quorba_replica::RequestEnd::EndsServers;
    let me = (quorba_base::NodeId::new(0).expect("a node"), 0);
    let key = quorba_replica::RequestKey::Gateway(quorba_replica::GatewayKey {
        node: me.0,
        incarnation: me.1,
        number,
    });
    for somebody_is_in in [true, false] {
        let mut gateway = gateway(1, GatewayLimits::default());
        let tell = |gateway: &mut Gateway| {
            if somebody_is_in {
                gateway.replied(group, number, Some(skipped()), true);
            } else {
                gateway.ended(group, me, &key, end);
            }
        };
        send(&mut gateway, 0, 0, 1);
        let submission = gateway
            .next_submission(|_| Availability::Ready, |_| Backlog::default())
            .expect("it waits");
        gateway.submitted(&submission, Ticket(1));
        tell(&mut gateway);
        assert!(gateway.next_submission(|_| Availability::Ready, |_| Backlog::default()).is_none());
        gateway.held(Ticket(1));
        assert_eq!(answers(&mut gateway), 0, "the request is safe, and not its end");
        let again = gateway
            .next_submission(|_| Availability::NoMember, |_| Backlog::default())
            .expect("once more");
        gateway.submitted(&again, Ticket(2));
        tell(&mut gateway);
        gateway.dropped(NOW, group, number);
        assert_eq!(answers(&mut gateway), 0);
        // The view is over: all begins anew.
        gateway.view_changed();
        gateway.resubmit(None);
        let again = gateway
            .next_submission(|_| Availability::NoMember, |_| Backlog::default())
            .expect("and once more");
        gateway.submitted(&again, Ticket(3));
        gateway.held(Ticket(3));
        assert_eq!(answers(&mut gateway), 0, "it may end in another way");
        tell(&mut gateway);
        let again = gateway
            .next_submission(|_| Availability::NoMember, |_| Backlog::default())
            .expect("behind it");
        gateway.submitted(&again, Ticket(4));
        gateway.held(Ticket(4));
        assert_eq!((answers(&mut gateway), gateway.pending), (1, 0));
    }
}

#[test]
fn the_end_of_what_was_given_to_nobody_is_safe_when_it_is_ordered() {
    let (group, number) = (GroupId(0), RequestNumber(1));
    let (client_id, binding) = (bytes::Bytes::new(), quorba_replica::Binding::default());
    let key = quorba_replica::RequestKey::Client { client_id, retention_id: 0, binding };
    let mut gateway = gateway(1, GatewayLimits::default());
    send(&mut gateway, 0, 0, 1);
    let me = (quorba_base::NodeId::new(0).expect("a node"), 0);
    gateway.ended(group, me, &key, quorba_replica::RequestEnd::EndsServers);
    assert!(
        gateway.next_submission(|_| Availability::NoMember, |_| Backlog::default()).is_none(),
        "another's name"
    );
    let key = quorba_replica::RequestKey::Gateway(quorba_replica::GatewayKey {
        node: me.0,
        incarnation: me.1,
        number,
    });
    gateway.ended(group, me, &key, quorba_replica::RequestEnd::EndsServers);
    let submission = gateway
        .next_submission(|_| Availability::NoMember, |_| Backlog::default())
        .expect("at once");
    gateway.submitted(&submission, Ticket(1));
    assert_eq!(answers(&mut gateway), 0);
    gateway.held(Ticket(1));
    assert_eq!((answers(&mut gateway), gateway.pending), (1, 0));
}

/// Others wait for all that is dealt with at once.
#[test]
fn of_what_the_gateway_answers_itself_an_address_has_only_so_much_at_a_time() {
    let mut gateway = gateway(1, GatewayLimits::default());
    let here = ClientPeer::at(Ipv4Addr::LOCALHOST.into());
    let locate = build::locate_request(Version::V1_2, Endian::Little, 7, b"echo");
    let cancel = build::cancel_request(Version::V1_2, Endian::Little, 7);
    for id in (0..100).map(ConnectionId) {
        gateway.opened(NOW, id, GroupId(0), here.clone());
        gateway.received(NOW, id, &locate.bytes().repeat(1000));
    }
    let answers = |gateway: &mut Gateway| {
        let out = gateway.out.drain(..);
        out.filter(|output| matches!(output, Output::ClientSend { .. })).count()
    };
    let at_once = answers(&mut gateway);
    assert!((500..=600).contains(&at_once), "{at_once} answers at once");
    let mut later = 0;
    while let Some(at) = gateway.poll_timeout().filter(|at| *at < NOW + SECOND) {
        gateway.handle_timeout(at, |_| Availability::Ready);
        later += answers(&mut gateway);
    }
    assert!((15_000..=21_000).contains(&later), "{later} answers in a second");
    gateway.opened(NOW, ConnectionId(100), GroupId(0), ClientPeer::at([10, 0, 0, 1].into()));
    gateway.received(NOW, ConnectionId(100), locate.bytes());
    assert_eq!(answers(&mut gateway), 1, "another address waits for nobody");
    gateway.received(NOW, ConnectionId(100), &cancel.bytes().repeat(1000));
    assert!(gateway.paused.contains(&ConnectionId(100)), "what is no question counts, too");
}

/// What its caller demands counts beside what its group asks for.
#[test]
fn a_request_that_all_nodes_must_have_is_not_safe_when_a_majority_has_it() {
    let mut gateway = gateway(1, GatewayLimits::default());
    send(&mut gateway, 0, 0, 2);
    let mut numbers = Vec::new();
    for ticket in 1..=2 {
        let submission = gateway
            .next_submission(|_| Availability::Ready, |_| Backlog::default())
            .expect("two wait");
        if ticket == 1 {
            gateway.demand(&submission, Ack::Safe, false, Executed::NotAsked);
        }
        gateway.submitted(&submission, Ticket(ticket));
        numbers.push(submission.number);
    }
    let stages = |gateway: &Gateway| {
        let book = &gateway.groups[GroupId(0)].book;
        [0, 1].map(|at| book.get(numbers[at]).map(|pending| pending.stage))
    };
    gateway.held(Ticket(2));
    assert_eq!(stages(&gateway), [Some(Stage::Submitted(Ticket(1))), Some(Stage::Safe)]);
    gateway.stable(Ticket(1));
    assert_eq!(stages(&gateway), [Some(Stage::Safe), Some(Stage::Safe)]);
}
