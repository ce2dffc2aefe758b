//! What is decoded is what was encoded, and what is cut off makes an error and no panic.

use super::*;
use crate::binding::Bound;
use crate::catalog::{CatalogMark, Definition};
use crate::disk_census::DiskState;
use crate::endings::Report;
use crate::hello::{Former, Lineage, MemoryPosition, Record};
use crate::history::History;
use crate::ids::{CallKey, RingId};
use alloc::vec;
use quorba_base::Position;
use quorba_base::policy::Style;

fn request_sample(group: GroupId) -> RequestEnvelope {
    RequestEnvelope {
        group,
        number: RequestNumber(5),
        released: Released { below: RequestNumber(4), also: vec![RequestNumber(9)] },
        stamp: 99,
        ft: Some(FtRequest {
            client_id: Bytes::from_static(b"client"),
            retention_id: -1,
            expiration: 77,
            bound: Bound { subject: [1; 16], call: [2; 16], body: [3; 16] },
        }),
        nested: None,
        ended_process: false,
        code_sets: Some(Bytes::from_static(&[0, 1, 2, 3])),
        giop: Bytes::from_static(b"GIOP..."),
    }
}

/// Of a fresh server, and of one of which little is known.
fn offers() -> [Offer; 2] {
    let disk_state = DiskState::NotLooked;
    let empty = Some(History::EMPTY);
    let known = History { count: 3, digest: 4 };
    let claim = empty;
    let (ends, is_through, held_checkpoint, ahead_of, told) = (0, false, None, None, 0);
    let heard_otherwise = false;
    let fresh = Offer {
        claim,
        ends,
        is_through,
        held_checkpoint,
        ahead_of,
        heard_otherwise,
        told,
        disk_state,
        known,
    };
    let disk_state = DiskState::Nothing;
    let (claim, ends, is_through, held_checkpoint, ahead_of, told) =
        (None, 7, true, empty, empty, 9);
    let heard_otherwise = true;
    let unknown = Offer {
        claim,
        ends,
        is_through,
        held_checkpoint,
        ahead_of,
        heard_otherwise,
        told,
        ..fresh
    };
    let unknown = Offer { disk_state, ..unknown };
    [fresh, unknown]
}

fn samples() -> alloc::vec::Vec<Envelope> {
    let node = NodeId::new(2).unwrap();
    let group = GroupId(7);
    let attempt = Attempt(3);
    let view = RingId { seq: 12, representative: node };
    let request = request_sample(group);
    let definition = Definition { name: "bank".into(), text: Bytes::from_static(b"members = []") };
    let define = |change| Envelope::Define { id: 7, operation: Bytes::from_static(b"op"), change };
    let key = CallKey { caller: GroupId(1), during: History::EMPTY, number: 3 };
    let nested = Some(NestedCall { key, attempt, digest: 12 });
    let to = GatewayKey { node, incarnation: 1, number: RequestNumber(5) };
    let ended_process = true;
    let plain = RequestEnvelope { ft: None, code_sets: None, ended_process, ..request.clone() };
    let nested = RequestEnvelope { nested, ..request.clone() };
    let named = (request.key(node, 4), History { count: 3, digest: 4 });
    let [fresh, unknown] = offers();
    vec![
        Envelope::Request(request),
        Envelope::Request(plain),
        Envelope::Request(nested),
        Envelope::Floor { group, attempt, up_to: 9 },
        Envelope::Outside { group, key, tries: 1, report: OutsideReport::NotBegun },
        Envelope::Outside {
            group,
            key,
            tries: 0,
            report: OutsideReport::Reply(Bytes::from_static(b"reply")),
        },
        Envelope::Reply { group, to, giop: Bytes::from_static(b"reply") },
        Envelope::Join { group, attempt, offer: fresh },
        Envelope::Join { group, attempt, offer: unknown },
        Envelope::Joined { group, attempt },
        Envelope::Down {
            group,
            attempt,
            reason: DownReason::ServerHung,
            ended: ProcessEnd { at: vec![named.clone()], answered: 7 },
        },
        Envelope::Ending { group, attempt, request: named, report: Report::Late },
        Envelope::StateDigest { group, attempt, number: 3, digest: Some(9) },
        Envelope::StateDigest { group, attempt, number: 3, digest: None },
        Envelope::StateFailed { group, joiner: node, attempt, reason: DownReason::StateTooLarge },
        Envelope::Open { group },
        Envelope::Full { group, attempt: Attempt(3), is_full: true },
        Envelope::ReadMark { group, number: 6 },
        Envelope::Released {
            group,
            released: Released { below: RequestNumber(6), also: vec![RequestNumber(9)] },
        },
        Envelope::Checkpoint {
            group,
            attempt,
            number: 4,
            piece: CheckpointPiece { offset: 1, total: 9, bytes: Bytes::from_static(b"xyz") },
        },
        Envelope::Votes {
            group,
            attempt,
            votes: vec![(Subject::decode(1), 2), (Subject::decode(4), 4)],
        },
        Envelope::Recorded { view },
        define(CatalogChange::Create(definition.clone())),
        define(CatalogChange::Change(definition)),
        define(CatalogChange::Delete("bank".into())),
        Envelope::Catalog { view, part: (1, 3), bytes: Bytes::from_static(b"part") },
    ]
}

fn hellos() -> [Envelope; 2] {
    let node = NodeId::new(2).unwrap();
    let view = RingId { seq: 3, representative: node };
    [
        Envelope::Hello(Hello {
            view,
            record: Record {
                formed: Some(Lineage { view, members: vec![(node, 3)] }),
                base: Some(view),
                attempts: vec![Lineage { view, members: vec![(node, 4)] }],
                former: None,
            },
            since: 2,
            lineage: Some(Lineage { view, members: vec![(node, 4)] }),
            prefix: 3,
            branch: 2,
            memory_groups: None,
            catalog: CatalogMark::default(),
        }),
        Envelope::Hello(Hello {
            view,
            record: Record {
                former: Some(Former { formed: None, base: Some(view) }),
                ..Record::default()
            },
            since: 2,
            lineage: None,
            prefix: 0,
            branch: 0,
            memory_groups: Some(MemoryPosition {
                lineage: Some(Lineage { view, members: vec![(node, 4)] }),
                prefix: 5,
                branch: 6,
            }),
            catalog: CatalogMark {
                version: Some(Position { component: view, prefix: 4 }),
                digest: 7,
            },
        }),
    ]
}

fn commands() -> impl Iterator<Item = Envelope> {
    let (node, group, attempt) = (NodeId::new(2).unwrap(), GroupId(7), Attempt(4));
    let component = RingId { seq: 3, representative: node };
    let commands = [
        Command::Promote(node),
        Command::SetStyle(Style::WarmPassive),
        Command::Backup(node),
        Command::Skip(History { count: 3, digest: 4 }),
        Command::SkipAnswered(History { count: 5, digest: 6 }),
        Command::Restore { node, attempt, component, wall: 5, digest: 6 },
    ];
    commands.into_iter().map(move |command| Envelope::Command { group, id: 7, command })
}

#[test]
fn decodes_what_it_encoded() {
    for envelope in samples().into_iter().chain(hellos()).chain(commands()) {
        assert_eq!(Envelope::decode(envelope.encode()), Ok(envelope));
    }
}

#[test]
fn no_request_or_reply_is_wrapped_in_more_than_the_limit() {
    let group = GroupId(u64::MAX);
    let number = RequestNumber(u64::MAX);
    let giop = Bytes::from_static(b"GIOP...");
    let bound = Bound::default();
    let client_id = Bytes::from(vec![b'c'; quorba_giop::limits::CLIENT_ID_BYTES_MAX]);
    let request = RequestEnvelope {
        group,
        number,
        released: Released { below: number, also: vec![number; Released::ALSO_MAX] },
        stamp: u64::MAX,
        ft: Some(FtRequest { client_id, retention_id: -1, expiration: u64::MAX, bound }),
        nested: Some(NestedCall {
            key: CallKey { caller: group, during: History::EMPTY, number: 1 },
            attempt: Attempt(u64::MAX),
            digest: u64::MAX,
        }),
        ended_process: true,
        code_sets: Some(Bytes::from(vec![0; CODE_SETS_BYTES_MAX])),
        giop: giop.clone(),
    };
    let to = GatewayKey { node: NodeId::new(2).unwrap(), incarnation: u64::MAX, number };
    let reply = Envelope::Reply { group, to, giop: giop.clone() };
    for payload in [request.into_payload(), reply.encode()] {
        let wrapping = payload.len() - giop.len();
        assert!(wrapping <= ENVELOPE_BYTES_MAX, "{wrapping}");
    }
}

#[test]
fn every_truncation_of_a_control_message_is_an_error_and_no_panic() {
    for envelope in samples().into_iter().chain(hellos()).chain(commands()) {
        let whole = envelope.encode();
        for length in 0..whole.len() {
            // A shorter body is legal where the body stands last; the rest must fail cleanly.
            let _ = Envelope::decode(whole.slice(..length));
        }
    }
    assert!(Envelope::decode(Bytes::new()).is_err());
    assert!(Envelope::decode(Bytes::from_static(&[99, 0, 0])).is_err());
}
