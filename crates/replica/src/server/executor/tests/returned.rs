//! Replies with references in them are handed out, and padding is looked for when it is wanted.

use super::*;
use quorba_giop::Ior;
use quorba_giop::ior::IiopProfile;

/// What the server replies to the call that it was sent last.
fn replies(bench: &mut Bench, write: impl FnOnce(&mut quorba_giop::cdr::Writer)) {
    let (channel, request) = bench.sent.last().cloned().expect("a call");
    let Ok(Body::Request(request)) = request.parse() else { panic!("it is one") };
    let id = request.request_id();
    let version = Version::V1_2;
    let reply = build::reply(version, Endian::Little, id, ReplyStatus::NoException, write);
    bench.executor.received(Some(NOW), channel, reply.bytes());
    while bench.executor.next_outcome(channel, &mut Vec::new()).expect("it lives").is_some() {}
}

#[test]
fn a_reply_with_a_reference_is_handed_out_once_with_what_was_asked_for() {
    let mut bench = Bench::new(Concurrency::Sequential);
    bench.call_with(1, b"o", 0, None);
    bench.step();
    replies(&mut bench, |out| out.write_string(b"a text"));
    assert_eq!(bench.executor.returned(), []);
    bench.call_with(2, b"o", 0, None);
    bench.step();
    let profile = IiopProfile {
        version: Version::V1_2,
        host: "h".into(),
        port: 1,
        object_key: b"k".to_vec(),
        components: Vec::new(),
    };
    let profiles = vec![profile.encode(Endian::Little)];
    replies(&mut bench, |out| Ior { type_id: b"IDL:T:1.0".to_vec(), profiles }.write(out));
    let returned = bench.executor.returned();
    assert_eq!(returned.len(), 1);
    assert_eq!((returned[0].operation.octets(), returned[0].request), (&b"do"[..], Some(2)));
    assert_eq!(bench.executor.returned(), []);
}

#[test]
fn padding_is_looked_at_only_when_it_is_wanted() {
    let mut bench = Bench::new(Concurrency::Sequential);
    let uncleared = |out: &mut quorba_giop::cdr::Writer| {
        out.write_string(b"a");
        out.write_raw(&[7, 7]);
        out.write_u32(1);
    };
    bench.call_with(1, b"o", 0, None);
    bench.step();
    replies(&mut bench, uncleared);
    assert!(!bench.executor.was_uncleared());
    bench.executor.look_for_padding();
    bench.call_with(2, b"o", 0, None);
    bench.step();
    replies(&mut bench, uncleared);
    assert!(bench.executor.was_uncleared() && !bench.executor.was_uncleared());
}
