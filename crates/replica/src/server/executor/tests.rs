//! What is with a server at the same time, and what becomes of it when something ends.

use super::*;
use crate::table::endings::RequestEnd;
use crate::table::moment::Moment;
use crate::words::history::History;
use crate::words::ids::{Attempt, GatewayKey, RequestKey, RequestNumber};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use quorba_base::NodeId;
use quorba_base::policy::Concurrency;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Endian, Framer, FramerLimits, ReplyStatus, ResponseFlags, Version};

const WITHIN: Duration = Duration::from_secs(30);
const NOW: Instant = Instant::ZERO;

/// An executor whose server reads what it is sent.
struct Bench {
    executor: Executor,
    /// What is read of each channel.
    readers: BTreeMap<ChannelId, Framer>,
    sent: Vec<(ChannelId, Message)>,
    closed: Vec<ChannelId>,
}

fn reader() -> Framer {
    let bytes_max = 64 << 20;
    Framer::new(FramerLimits {
        message_bytes_max: bytes_max,
        fragmented_requests_max: 1,
        buffered_bytes_max: bytes_max,
    })
}

fn node(index: u8) -> NodeId {
    NodeId::new(index).expect("in range")
}

fn key(number: u64) -> RequestKey {
    let number = RequestNumber(number);
    RequestKey::Gateway(GatewayKey { node: node(0), incarnation: 1, number })
}

fn history(count: u64) -> History {
    History { count, digest: count }
}

impl Bench {
    fn new(concurrency: Concurrency) -> Self {
        Self::of(concurrency, false)
    }

    /// `foreign`: somebody else starts and ends the server.
    fn of(concurrency: Concurrency, foreign: bool) -> Self {
        let config = GroupConfig { foreign, concurrency, ..GroupConfig::plain(WITHIN) };
        let executor = Executor::new(&config, NodeId::new(0).unwrap());
        let (readers, sent, closed) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut bench = Self { executor, readers, sent, closed };
        let mut out = Vec::new();
        bench.executor.watch(&mut out);
        bench.carry_out(out);
        bench
    }

    fn note_sent(&mut self, id: ChannelId, pieces: &[Bytes]) {
        let reader = self.readers.entry(id).or_insert_with(reader);
        pieces.iter().for_each(|piece| reader.push(piece));
        let messages = core::iter::from_fn(|| reader.next().expect("well-formed"));
        self.sent.extend(messages.map(|message| (id, message)));
    }

    fn carry_out(&mut self, mut out: Vec<ServerCommand>) {
        while !out.is_empty() {
            for command in core::mem::take(&mut out) {
                match command {
                    ServerCommand::Connect(id) => self.executor.connected(id, &mut out),
                    ServerCommand::Send(id, bytes) => self.note_sent(id, &[bytes]),
                    ServerCommand::SendAll(id, pieces) => self.note_sent(id, &pieces),
                    ServerCommand::Close(id) => self.closed.push(id),
                    _ => panic!("an executor starts and ends no server"),
                }
            }
        }
    }

    fn call_with(&mut self, number: u64, object: &[u8], padding: usize, code_sets: Option<&[u8]>) {
        self.call_awaited((number, object), padding, code_sets, true);
    }

    fn call_awaited(
        &mut self,
        (number, object): (u64, &[u8]),
        padding: usize,
        code_sets: Option<&[u8]>,
        awaited: bool,
    ) {
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id: 7,
            response_flags: ResponseFlags::WithTarget,
            object_key: object,
            operation: b"do",
            contexts: &[],
        };
        let request = build::request(&head, |cdr| cdr.write_octets(&vec![0; padding]));
        let giop = request.bytes().clone();
        let code_sets = code_sets.map(Bytes::copy_from_slice);
        let call = Call::Request(key(number), history(number));
        let moment = Some(Moment { number, ..Moment::default() });
        self.executor.push(Job::Execute { call, moment, giop, code_sets, awaited });
    }

    /// Somebody else answers its client.
    fn call_for_nobody(&mut self, number: u64) {
        self.call_awaited((number, b"x"), 0, None, false);
    }

    fn call(&mut self, number: u64, object: &[u8]) {
        self.call_with(number, object, 0, None);
    }

    fn capture(&mut self) {
        let (joiner, attempt) = (node(2), Attempt(1));
        self.executor.push(Job::Capture(Capture::Join { joiner, attempt }));
    }

    /// Lets start what may; the objects of what the server got by it.
    fn step_at(&mut self, now: Instant) -> Vec<String> {
        let mut out = Vec::new();
        self.executor.step(now, &mut out);
        let before = self.sent.len();
        self.carry_out(out);
        self.sent[before..].iter().map(|(_, message)| object_of(message)).collect()
    }

    fn step(&mut self) -> Vec<String> {
        self.step_at(NOW)
    }

    fn hear(&mut self, channel: ChannelId, bytes: &[u8]) -> Result<Vec<String>, DownReason> {
        self.executor.received(Some(Instant::ZERO), channel, bytes);
        let mut ended = Vec::new();
        let mut out = Vec::new();
        while let Some(outcome) = self.executor.next_outcome(channel, &mut out)? {
            ended.push(text_of(outcome));
        }
        self.carry_out(out);
        Ok(ended)
    }

    /// What has ended, or is told, by that time without bytes of the server.
    fn ends_at(&mut self, now: Instant) -> Result<Vec<String>, DownReason> {
        let (mut ended, mut out) = (Vec::new(), Vec::new());
        self.executor.step(now, &mut out);
        while let Some(outcome) = self.executor.next_end(now, &mut out)? {
            ended.push(text_of(outcome));
        }
        self.carry_out(out);
        Ok(ended)
    }

    /// The connection of the call that was sent as number `index` ends.
    fn cut(&mut self, index: usize) -> Result<(), DownReason> {
        let mut out = Vec::new();
        self.executor.disconnected(self.sent[index].0, &mut out)?;
        self.carry_out(out);
        Ok(())
    }

    /// How requests have ended, as far as the group knows.
    fn learn(&mut self, ends: &[(u64, RequestEnd)], skipped: &[u64]) {
        let ends: Vec<_> = ends.iter().map(|(of, end)| (key(*of), history(*of), *end)).collect();
        let ends = ends.iter().map(|(key, at, end)| (key, *at, *end));
        self.executor.learn(ends, skipped.iter().map(|of| history(*of)));
    }

    /// The server answers the call that it got as number `index`.
    fn answer(&mut self, index: usize) -> Result<Vec<String>, DownReason> {
        let (channel, message) = &self.sent[index];
        let (channel, id) = (*channel, id_of(message));
        let reply =
            build::reply(Version::V1_2, Endian::Little, id, ReplyStatus::NoException, |cdr| {
                cdr.write_octets(&[1, 2, 3]);
            });
        self.hear(channel, reply.bytes())
    }
}

fn text_of(outcome: Outcome) -> String {
    let number = |key: &RequestKey| match key {
        RequestKey::Gateway(key) => key.number.0,
        _ => panic!("no client has named its request"),
    };
    match outcome {
        Outcome::Executed { call: Call::Request(key, _), reply, .. } => {
            alloc::format!("{}{}", number(&key), exception_of(&reply))
        }
        Outcome::Executed { call: Call::Read(id), reply, .. } => {
            alloc::format!("read {} answered{}", id.0, exception_of(&reply))
        }
        Outcome::Executed { .. } => panic!("nothing was replayed"),
        Outcome::Captured { state, .. } => alloc::format!("state {}", state.is_some()),
        Outcome::Restored { .. } => panic!("nothing was restored"),
        Outcome::NoReply { key, how, .. } => alloc::format!("{} {how:?}", number(&key)),
        Outcome::Late { key, report, .. } => alloc::format!("{} {report:?}", number(&key)),
        Outcome::ReadEnded { id, .. } => alloc::format!("read {}", id.0),
        Outcome::Overdue => String::from("overdue"),
        Outcome::Reentrant(served) => match served.report {
            crate::calls::outside::OutsideReport::Reply(_) => String::from("reentrant reply"),
            report => alloc::format!("reentrant {report:?}"),
        },
    }
}

fn id_of(message: &Message) -> u32 {
    let Ok(Body::Request(request)) = message.parse() else { panic!("no request") };
    request.request_id()
}

fn object_of(message: &Message) -> String {
    let Ok(Body::Request(request)) = message.parse() else { return "no request".into() };
    String::from_utf8(request.object_key().expect("a key").to_vec()).expect("a text")
}

/// ` MARSHAL` and the like for a system exception, nothing for a reply.
fn exception_of(reply: &Option<Bytes>) -> &'static str {
    let message = Message::from_bytes(reply.clone().expect("a reply")).expect("a message");
    let Ok(Body::Reply(reply)) = message.parse() else { panic!("no reply") };
    match reply.status() {
        ReplyStatus::NoException => "",
        _ if message.bytes().windows(7).any(|word| word == b"MARSHAL") => " MARSHAL",
        _ if message.bytes().windows(12).any(|word| word == b"COMM_FAILURE") => " COMM_FAILURE",
        _ if message.bytes().windows(7).any(|word| word == b"TIMEOUT") => " TIMEOUT",
        _ if message.bytes().windows(12).any(|word| word == b"NO_RESOURCES") => " NO_RESOURCES",
        _ => " another exception",
    }
}

fn good(ended: &[&str]) -> Result<Vec<String>, DownReason> {
    Ok(ended.iter().map(|text| String::from(*text)).collect())
}

#[test]
fn in_sequence_a_server_has_one_call() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call(1, b"a");
    bench.call(2, b"b");
    assert_eq!(bench.step(), ["a"]);
    assert_eq!(bench.answer(0), good(&["1"]));
    assert_eq!(bench.step(), ["b"]);
    assert_eq!(bench.answer(1), good(&["2"]));
    assert!(bench.executor.is_idle());
}

#[test]
fn in_a_pipeline_a_server_has_a_window_of_calls_on_one_channel_in_order() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    for number in 0..100 {
        bench.call(number, b"a");
    }
    assert_eq!(bench.step().len(), CALLS_MAX);
    let channel = bench.sent[0].0;
    assert!(bench.sent.iter().all(|(id, _)| *id == channel));
    assert!(bench.sent.windows(2).all(|pair| id_of(&pair[0].1) < id_of(&pair[1].1)));
    assert_eq!(bench.answer(0), good(&["0"]));
    assert_eq!(bench.answer(1), good(&["1"]));
    assert_eq!(bench.step().len(), 2);
    assert_eq!(bench.executor.queued(), 100 - CALLS_MAX - 2);
}

#[test]
fn several_replies_in_one_piece_end_several_calls() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    (1..=3).for_each(|number| bench.call(number, b"a"));
    bench.step();
    let reply = |id| {
        build::reply(Version::V1_2, Endian::Little, id, ReplyStatus::NoException, |_| {})
            .bytes()
            .clone()
    };
    let ids: Vec<u32> = bench.sent.iter().map(|(_, message)| id_of(message)).collect();
    let bytes: Vec<u8> = ids.into_iter().flat_map(reply).collect();
    let channel = bench.sent[0].0;
    assert_eq!(bench.hear(channel, &bytes), good(&["1", "2", "3"]));
}

#[test]
fn a_server_in_a_pipeline_that_answers_out_of_order_is_not_what_it_was_declared_to_be() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    bench.call(1, b"a");
    bench.call(2, b"a");
    bench.step();
    assert_eq!(bench.answer(1), good(&[]));
    assert_eq!(bench.ends_at(NOW), good(&["1 NotAReply", "2 NotAReply"]));
}

#[test]
fn calls_of_one_object_wait_for_each_other_and_others_do_not() {
    let mut bench = Bench::new(Concurrency::PerObject);
    for (number, object) in [(1, b"a"), (2, b"a"), (3, b"b"), (4, b"a"), (5, b"c")] {
        bench.call(number, object);
    }
    assert_eq!(bench.step(), ["a", "b", "c"]);
    assert_eq!(bench.answer(2), good(&["5"]));
    assert!(bench.step().is_empty());
    assert_eq!(bench.answer(0), good(&["1"]));
    assert_eq!(bench.step(), ["a"]);
    assert_eq!(bench.answer(3), good(&["2"]));
    assert_eq!(bench.answer(1), good(&["3"]));
    assert_eq!(bench.step(), ["a"]);
    assert_eq!(bench.answer(4), good(&["4"]));
    assert!(bench.executor.is_idle());
}

#[test]
fn the_state_is_taken_behind_all_calls_before_it_and_before_all_behind() {
    for concurrency in [Concurrency::Pipelined, Concurrency::PerObject] {
        let mut bench = Bench::new(concurrency);
        bench.call(1, b"a");
        bench.call(2, b"b");
        bench.capture();
        bench.call(3, b"c");
        assert_eq!(bench.step(), ["a", "b"]);
        assert_eq!(bench.answer(0), good(&["1"]));
        assert!(bench.step().is_empty());
        assert_eq!(bench.answer(1), good(&["2"]));
        assert_eq!(bench.step(), ["state"]);
        assert_eq!(bench.answer(2), good(&["state true"]));
        assert_eq!(bench.step(), ["c"]);
    }
}

#[test]
fn what_another_channel_must_carry_waits_for_the_calls_on_this_one() {
    for concurrency in [Concurrency::Pipelined, Concurrency::PerObject] {
        let mut bench = Bench::new(concurrency);
        bench.call_with(1, b"a", 0, None);
        bench.call_with(2, b"b", 0, Some(b"code sets"));
        bench.call_with(3, b"c", 0, Some(b"code sets"));
        assert_eq!(bench.step(), ["a"]);
        assert_eq!(bench.answer(0), good(&["1"]));
        assert_eq!(bench.step(), ["b", "c"]);
        assert_ne!(bench.sent[0].0, bench.sent[1].0);
        assert_eq!(bench.sent[1].0, bench.sent[2].0);
    }
}

#[test]
fn a_large_request_runs_alone() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    bench.call(1, b"a");
    bench.call_with(2, b"b", 300 << 10, None);
    bench.call(3, b"c");
    assert_eq!(bench.step(), ["a"]);
    assert_eq!(bench.answer(0), good(&["1"]));
    assert_eq!(bench.step(), ["b"]);
    assert_eq!(bench.answer(1), good(&["2"]));
    assert_eq!(bench.step(), ["c"]);
}

#[test]
fn a_server_has_a_mebibyte_of_requests_at_most() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    for number in 0..10 {
        bench.call_with(number, b"a", 200 << 10, None);
    }
    assert_eq!(bench.step().len(), 5);
}

#[test]
fn what_was_outstanding_when_the_server_says_goodbye_goes_out_again_in_order() {
    for concurrency in [Concurrency::Pipelined, Concurrency::PerObject] {
        let mut bench = Bench::new(concurrency);
        for (number, object) in [(1, b"a"), (2, b"b"), (3, b"c")] {
            bench.call(number, object);
        }
        bench.step();
        assert_eq!(bench.answer(0), good(&["1"]));
        let channel = bench.sent[0].0;
        let goodbye = build::close_connection(Version::V1_2);
        assert_eq!(bench.hear(channel, goodbye.bytes()), good(&[]));
        assert_eq!(bench.closed, [channel]);
        let again: Vec<String> = bench.sent[3..].iter().map(|(_, m)| object_of(m)).collect();
        assert_eq!(again, ["b", "c"]);
        assert!(bench.sent[3..].iter().all(|(id, _)| *id != channel));
        assert_eq!(bench.answer(3), good(&["2"]));
        assert_eq!(bench.answer(4), good(&["3"]));
        assert!(bench.executor.is_idle());
    }
}

#[test]
fn a_message_error_names_no_call_so_that_each_of_several_is_in_doubt() {
    for concurrency in [Concurrency::Pipelined, Concurrency::PerObject] {
        let mut bench = Bench::new(concurrency);
        for (number, object) in [(1, b"a"), (2, b"b"), (3, b"a")] {
            bench.call(number, object);
        }
        bench.step();
        let channel = bench.sent[0].0;
        let before = bench.sent.len();
        let error = build::message_error(Version::V1_2);
        assert_eq!(bench.hear(channel, error.bytes()), good(&[]));
        let told = bench.ends_at(NOW).expect("the server lives on");
        assert_eq!(told.len(), before, "{told:?}");
        assert_eq!(bench.sent.len(), before, "nothing is sent again");
        let no_reply = RequestEnd::NoReply(NoReply::Rejected);
        bench.learn(&[(1, no_reply), (2, no_reply), (3, no_reply)], &[]);
        let ended = bench.ends_at(NOW).expect("the server lives on");
        assert!(ended.iter().all(|text| text.ends_with("MARSHAL")), "{ended:?}");
        // What had not been sent, because its object was busy, is sent now.
        bench.step();
        assert_eq!(bench.sent.len(), 3);
    }
}

#[test]
fn in_a_pipeline_a_connection_ends_at_the_oldest_call_and_the_others_go_out_again() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    for (number, object) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        bench.call(number, object);
    }
    bench.step();
    bench.cut(0).expect("it lives");
    bench.step();
    assert_eq!(bench.ends_at(NOW + Duration::from_millis(200)), good(&["1 ConnectionEnded"]));
    assert_eq!(bench.sent.len(), 3, "nothing is sent before that is decided");
    bench.learn(&[(1, RequestEnd::NoReply(NoReply::ConnectionEnded))], &[]);
    assert_eq!(bench.ends_at(NOW), good(&["1 COMM_FAILURE"]));
    bench.step();
    let again: Vec<String> = bench.sent[3..].iter().map(|(_, m)| object_of(m)).collect();
    assert_eq!(again, ["b", "c"]);
    assert_eq!(bench.answer(3), good(&["2"]));
    assert_eq!(bench.answer(4), good(&["3"]));
    assert!(bench.executor.is_idle());
}

// It goes on with what it has read, whatever becomes of the connection (styles 912717).
#[test]
fn in_a_pipeline_what_is_no_reply_puts_all_that_the_server_has_in_doubt() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    for (number, object) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        bench.call(number, object);
    }
    bench.step();
    let channel = bench.sent[0].0;
    assert_eq!(bench.hear(channel, b"HTTP/1.1 200 OK\r\n\r\n"), good(&[]));
    let told = bench.ends_at(NOW).expect("the server lives on");
    assert_eq!(told, ["1 NotAReply", "2 NotAReply", "3 NotAReply"]);
    bench.step();
    assert_eq!(bench.sent.len(), 3, "nothing is sent again");
}

#[test]
fn in_a_pipeline_a_reply_out_of_order_puts_all_that_the_server_has_in_doubt() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    for (number, object) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        bench.call(number, object);
    }
    bench.step();
    assert_eq!(bench.answer(1), good(&[]));
    let told = bench.ends_at(NOW).expect("the server lives on");
    assert_eq!(told, ["1 NotAReply", "2 NotAReply", "3 NotAReply"]);
    assert_eq!(bench.sent.len(), 3, "nothing is sent again");
}

#[test]
fn in_a_pipeline_the_time_of_a_call_begins_when_the_one_before_it_has_ended() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    bench.call(1, b"a");
    bench.call(2, b"b");
    bench.step();
    assert_eq!(bench.executor.deadline(), Some(NOW + WITHIN / 2), "then it is late");
    let later = NOW + Duration::from_secs(29);
    assert_eq!(bench.answer(0), good(&["1"]));
    assert_eq!(bench.executor.deadline(), None);
    bench.step_at(later);
    let deadline = bench.executor.deadline().expect("time runs");
    assert!(deadline > later && deadline <= later + WITHIN / 2);
}

#[test]
fn side_by_side_the_time_of_a_call_begins_when_it_is_sent() {
    let mut bench = Bench::new(Concurrency::PerObject);
    bench.call(1, b"a");
    bench.step();
    let later = NOW + Duration::from_secs(9);
    bench.call(2, b"b");
    bench.step_at(later);
    assert_eq!(bench.answer(0), good(&["1"]));
    let deadline = bench.executor.deadline().expect("time runs");
    assert!(deadline > later && deadline <= later + WITHIN / 2);
}

#[test]
fn abandoned_calls_count_for_nothing_and_nothing_starts_beside_them() {
    for concurrency in [Concurrency::Pipelined, Concurrency::PerObject] {
        let mut bench = Bench::new(concurrency);
        for (number, object) in [(1, b"a"), (2, b"b"), (3, b"a")] {
            bench.call(number, object);
        }
        let sent = bench.step().len();
        bench.executor.abandon();
        bench.call(4, b"d");
        for index in 0..sent {
            assert!(bench.step().is_empty());
            assert_eq!(bench.answer(index), good(&[]));
        }
        assert_eq!(bench.step(), ["d"]);
        assert_eq!(bench.answer(sent), good(&["4"]));
        assert!(bench.executor.is_idle());
    }
}

#[test]
fn a_state_that_nobody_wants_any_more_leaves_no_doubt_of_what_was_executed() {
    // A member that was cut off while it gave its state had everything, and said that it did not.
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.executor.push(Job::Capture(Capture::Backup { number: 1 }));
    bench.step();
    bench.executor.finish_requests();
    assert!(!bench.executor.has_abandoned() && !bench.executor.is_idle());
    bench.call(1, b"a");
    bench.executor.abandon();
    assert!(!bench.executor.has_abandoned(), "it has not begun");
}

mod aside;
mod ends;
mod late;
mod reentrant;
mod returned;
