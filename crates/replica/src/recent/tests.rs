//! What is remembered, for how long, and what it costs.

use super::*;
use crate::history::History;
use crate::ids::{GatewayKey, RequestNumber};
use crate::log::Place;
use crate::moment::Moment;
use crate::reply_summary::ReplySummary;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Endian, ResponseFlags, Version};

fn node() -> NodeId {
    NodeId::new(0).expect("in range")
}

fn recent() -> Recent {
    let here = NodeContext { node: node(), incarnation: 1, place: Place::begin(node()) };
    Recent::new(here, RECENT_REQUESTS_MAX)
}

fn request(version: Version) -> Bytes {
    let head = RequestHead {
        version,
        endian: Endian::Little,
        request_id: 7,
        response_flags: ResponseFlags::WithTarget,
        object_key: b"bank",
        operation: b"deposit",
        contexts: &[],
    };
    build::request(&head, |cdr| cdr.write_u32(1)).bytes().clone()
}

fn reply() -> Bytes {
    let status = ReplyStatus::NoException;
    build::reply(Version::V1_2, Endian::Little, 7, status, |cdr| cdr.write_u32(2)).bytes().clone()
}

fn arrived(index: u64) -> Arrived {
    let gateway = GatewayKey { node: node(), incarnation: 1, number: RequestNumber(index) };
    Arrived {
        key: RequestKey::Gateway(gateway),
        gateway,
        history: History { count: index, digest: 0 },
        calls_below: None,
        awaited: true,
        moment: Moment { number: index, ..Moment::default() },
        expiry: 0,
        clock: index * 10,
        full: false,
        released: crate::released::Released::below(RequestNumber(0)),
        giop: request(Version::V1_2),
        code_sets: None,
    }
}

fn millis(count: u64) -> Instant {
    Instant::from_nanos(count * 1_000_000)
}

const ALL: RecentQuery = RecentQuery { after: 0, record_until: None, bytes_max: 1 << 20 };

#[test]
fn a_request_is_told_with_what_became_of_it() {
    let mut recent = recent();
    recent.at(millis(5));
    recent.delivered(&arrived(1), 77);
    recent.delivered(&arrived(2), 78);
    recent.repeats();
    recent.at(millis(9));
    recent.executed(&arrived(1).key, Some(&reply()), ReplySummary::of(&reply()));
    let page = recent.page(millis(9), &ALL);
    let [first, second] = &page.requests[..] else { panic!("{page:?}") };
    assert_eq!(
        (first.operation.octets(), first.object_key.octets()),
        (&b"deposit"[..], &b"bank"[..])
    );
    assert_eq!((first.index, first.stamp, first.clock), (1, 77, 10));
    let Outcome::Executed { after, status, .. } = first.outcome else { panic!("{first:?}") };
    assert_eq!((after, status), (Duration::from_millis(4), Some(ReplyStatus::NoException)));
    assert_eq!(second.outcome, Outcome::Repetition);
    assert!(page.recorded.is_empty(), "nobody asked for messages");
}

#[test]
fn the_short_way_to_the_names_comes_to_what_the_whole_message_says() {
    for endian in [Endian::Little, Endian::Big] {
        for (object_key, operation) in [(&b"bank"[..], &b"deposit"[..]), (b"", b"a"), (b"k\0", b"")]
        {
            let head = RequestHead {
                version: Version::V1_2,
                endian,
                request_id: 7,
                response_flags: ResponseFlags::None,
                object_key,
                operation,
                contexts: &[(1, b"some")],
            };
            let giop = build::request(&head, |cdr| cdr.write_u32(1)).into_bytes();
            assert_eq!(names_by_key(&giop), Some((operation, object_key)));
            for length in 0..giop.len() {
                // Cut off, it names nothing or the same.
                let names = names_by_key(&giop[..length]);
                assert!(names.is_none_or(|names| names == (operation, object_key)), "{length}");
            }
        }
    }
    assert_eq!(names_by_key(&request(Version::V1_1)), None);
    assert_eq!(names_by_key(&reply()), None);
}

#[test]
fn old_versions_of_giop_are_read_too() {
    let mut recent = recent();
    let mut old = arrived(1);
    old.giop = request(Version::V1_0);
    recent.delivered(&old, 0);
    assert_eq!(recent.page(Instant::ZERO, &ALL).requests[0].operation.octets(), b"deposit");
}

#[test]
fn only_the_last_ones_are_remembered_and_those_that_end_late_are_found() {
    let mut recent = recent();
    let last = RECENT_REQUESTS_MAX as u64 + 100;
    for index in 1..=last {
        recent.delivered(&arrived(index), 0);
    }
    let page = recent.page(Instant::ZERO, &ALL);
    assert_eq!(page.requests.len(), RECENT_REQUESTS_MAX);
    assert_eq!(page.requests[0].index, 101);
    for index in 1..=last {
        recent.executed(&arrived(index).key, None, None);
    }
    let page = recent.page(Instant::ZERO, &RecentQuery { after: last - 2, ..ALL });
    let oneway =
        |request: &RecentRequest| matches!(request.outcome, Outcome::Executed { status: None, .. });
    assert_eq!((page.requests.len(), page.requests.iter().all(oneway)), (2, true));
}

#[test]
fn messages_are_kept_while_somebody_asks_and_no_longer() {
    let mut recent = recent();
    let ask = |after, until| RecentQuery { after, record_until: Some(until), ..ALL };
    recent.delivered(&arrived(1), 0);
    assert!(recent.page(millis(0), &ask(0, millis(10))).recorded.is_empty(), "from now on");
    recent.delivered(&arrived(2), 0);
    recent.delivered(&arrived(3), 0);
    recent.executed(&arrived(2).key, Some(&reply()), ReplySummary::of(&reply()));
    let page = recent.page(millis(5), &ask(1, millis(15)));
    let [second, third] = &page.recorded[..] else { panic!("{page:?}") };
    assert_eq!((second.index, second.reply.as_ref()), (2, Some(&reply())));
    assert_eq!((third.index, third.reply.as_ref()), (3, None));
    let few = RecentQuery { bytes_max: 1, ..ask(1, millis(15)) };
    assert_eq!(recent.page(millis(5), &few).recorded.len(), 1, "one at least");
    assert_eq!(recent.page(millis(5), &ask(2, millis(15))).recorded.len(), 1);
    recent.at(millis(15));
    recent.delivered(&arrived(4), 0);
    assert!(recent.recording.is_none(), "its time is over");
}

#[test]
fn a_recording_has_a_bound() {
    let mut recent = recent();
    let ask = RecentQuery { record_until: Some(millis(10)), bytes_max: usize::MAX, ..ALL };
    recent.page(millis(0), &ask);
    let mut large = arrived(1);
    large.giop = alloc::vec![0; RECORDED_BYTES_MAX / 3].into();
    for index in 1..=10 {
        large.history.count = index;
        recent.delivered(&large, 0);
    }
    let page = recent.page(millis(1), &ask);
    assert_eq!(page.recorded.first().map(|first| first.index), Some(8), "the last three");
}

#[test]
fn a_request_that_ended_without_a_reply_stays_so_whatever_its_caller_is_told() {
    let mut recent = recent();
    recent.delivered(&arrived(1), 0);
    recent.ended(1, RequestEnd::EndsServers);
    recent.ended(2, RequestEnd::Skipped);
    recent.executed(&arrived(1).key, Some(&reply()), ReplySummary::of(&reply()));
    let found = recent.find(1).map(|one| one.outcome);
    assert_eq!(found, Some(Outcome::Ended(RequestEnd::EndsServers)));
    assert!(recent.find(2).is_none());
}
