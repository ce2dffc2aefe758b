//! Whose replies are wanted, and what is counted if they are read late.

use super::*;

#[test]
fn a_reply_is_wanted_by_who_is_answered_here_or_waits_behind_it() {
    let mut bench = Bench::new(Concurrency::Pipelined);
    let wanted = |bench: &Bench| (bench.executor.is_busy(), bench.executor.is_awaited());
    assert_eq!(wanted(&bench), (false, false));
    bench.call_for_nobody(1);
    bench.call_for_nobody(2);
    bench.step();
    assert_eq!(wanted(&bench), (true, false), "others answer both");
    bench.call(3, b"x");
    bench.step();
    assert_eq!(wanted(&bench), (true, true), "3 is answered here, behind the others");
    for index in 0..3 {
        bench.answer(index).unwrap();
    }
    bench.call_for_nobody(4);
    bench.step();
    assert_eq!(wanted(&bench), (true, false));
    bench.capture();
    bench.step();
    assert_eq!(wanted(&bench), (true, true), "the capture waits for 4");
    bench.executor.abandon();
    assert_eq!(wanted(&bench), (true, true), "whether it is free again is asked for");
}

#[test]
fn how_long_the_server_worked_is_counted_only_if_it_is_known_when_the_reply_came() {
    let mut bench = Bench::new(Concurrency::Sequential);
    for (number, came) in [(1, Some(NOW)), (2, None)] {
        bench.call(number, b"x");
        bench.step();
        let (channel, message) = bench.sent.last().unwrap();
        let (channel, id) = (*channel, id_of(message));
        let reply =
            build::reply(Version::V1_2, Endian::Little, id, ReplyStatus::NoException, |_| ());
        bench.executor.received(came, channel, reply.bytes());
        assert!(bench.executor.next_outcome(channel, &mut Vec::new()).unwrap().is_some());
    }
    assert_eq!(bench.executor.served().requests, 1);
}
