//! What waits for a reader that is slow.

use super::*;
use std::thread;

const LONG: usize = UNSENT_MAX + (8 << 20);

/// Writes until there is nothing left, a bounded piece at a time, and ends the stream.
fn send_all(mut stream: Stream, poller: &mut Poller) {
    while stream.has_unsent() {
        let before = stream.unsent_bytes();
        poller.wait(None).expect("events");
        stream.flush(poller).expect("a reader");
        assert!(before - stream.unsent_bytes() <= FLUSHED_MAX);
    }
}

#[test]
fn one_message_may_be_longer_than_what_may_wait() {
    let (here, mut there) = UnixStream::pair().expect("a pair");
    let mut poller = Poller::new().expect("a poller");
    let mut stream = Stream::local(here, 1, &poller).expect("a stream");
    stream.gather(Bytes::from_static(b"head"), &poller).expect("room");
    stream.gather(Bytes::from(vec![7; LONG]), &poller).expect("it may be as long as it likes");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        there.read_to_end(&mut bytes).map(|_| bytes)
    });
    while stream.has_unsent() {
        poller.wait(None).expect("events");
        stream.flush(&poller).expect("a reader");
    }
    drop(stream);
    let bytes = reader.join().expect("no panic").expect("all of it");
    assert!(bytes.starts_with(b"head") && bytes.len() == 4 + LONG);
}

#[test]
fn so_may_one_that_comes_in_many_pieces() {
    let (here, mut there) = UnixStream::pair().expect("a pair");
    let mut poller = Poller::new().expect("a poller");
    let mut stream = Stream::local(here, 1, &poller).expect("a stream");
    let piece = Bytes::from(vec![7; 128 << 10]);
    let pieces = LONG.div_ceil(piece.len());
    let message =
        (0..pieces).flat_map(|_| [Bytes::from_static(b"header of a fragment"), piece.clone()]);
    stream.gather_all(message, &poller).expect("it may be as long as it likes");
    let reader = thread::spawn(move || std::io::copy(&mut there, &mut std::io::sink()));
    send_all(stream, &mut poller);
    let bytes = reader.join().expect("no panic").expect("all of it");
    assert_eq!(bytes, (pieces * (piece.len() + 20)) as u64);
}

/// The token waits while a stream is written to, however much a reader takes.
#[test]
fn a_fast_reader_does_not_keep_the_writer() {
    let (here, mut there) = UnixStream::pair().expect("a pair");
    let mut poller = Poller::new().expect("a poller");
    let mut stream = Stream::local(here, 1, &poller).expect("a stream");
    let reader = thread::spawn(move || std::io::copy(&mut there, &mut std::io::sink()));
    stream.gather(Bytes::from(vec![7; LONG]), &poller).expect("it may be as long as it likes");
    send_all(stream, &mut poller);
    assert_eq!(reader.join().expect("no panic").expect("all of it"), LONG as u64);
}

/// One that leaves its replies would cost a system call for each further one.
#[test]
fn a_socket_that_is_full_is_written_to_when_the_poller_says_so_and_not_with_each_piece() {
    let (here, mut there) = UnixStream::pair().expect("a pair");
    let poller = Poller::new().expect("a poller");
    let mut stream = Stream::local(here, 1, &poller).expect("a stream");
    stream.gather(Bytes::from(vec![7; 2 * GATHERED_MAX]), &poller).expect("room");
    stream.flush(&poller).expect("a reader");
    let unsent = stream.unsent_bytes();
    assert!(unsent > GATHERED_MAX, "the socket takes less: {unsent}");
    there.set_nonblocking(true).expect("a socket");
    while there.read(&mut [0; 4096]).is_ok() {}
    let is_first = stream.gather(Bytes::from_static(b"piece"), &poller).expect("room");
    assert_eq!((is_first, stream.unsent_bytes()), (false, unsent + 5), "nothing was tried");
    stream.flush(&poller).expect("a reader");
    assert!(stream.unsent_bytes() < unsent, "there is room");
}

#[test]
fn small_pieces_for_a_slow_reader_take_little_more_than_their_octets_and_keep_their_order() {
    let (here, mut there) = UnixStream::pair().expect("a pair");
    let mut poller = Poller::new().expect("a poller");
    let mut stream = Stream::local(here, 1, &poller).expect("a stream");
    let mut wanted = vec![7; 2 * GATHERED_MAX];
    stream.gather(Bytes::from(wanted.clone()), &poller).expect("room");
    for number in 0..100_000_u32 {
        let long = number % 1000 == 0;
        let piece = number.to_le_bytes().repeat(if long { 1000 } else { 5 });
        wanted.extend_from_slice(&piece);
        stream.gather(Bytes::from(piece), &poller).expect("room");
    }
    assert!(stream.unsent.len() < 1000, "{} pieces", stream.unsent.len());
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        there.read_to_end(&mut bytes).map(|_| bytes)
    });
    send_all(stream, &mut poller);
    assert!(reader.join().expect("no panic").expect("all of it") == wanted);
}

#[test]
fn a_reader_that_is_too_slow_is_cut_off() {
    let (here, _there) = UnixStream::pair().expect("a pair");
    let poller = Poller::new().expect("a poller");
    let mut stream = Stream::local(here, 1, &poller).expect("a stream");
    stream.gather(Bytes::from(vec![7; LONG]), &poller).expect("nothing waited");
    assert!(stream.gather(Bytes::from_static(b"more"), &poller).is_err());
}

#[test]
fn who_has_ended_its_sending_still_gets_what_it_is_sent() {
    let (here, mut there) = UnixStream::pair().expect("a pair");
    let mut poller = Poller::new().expect("a poller");
    let mut stream = Stream::local(here, 1, &poller).expect("a stream");
    there.shutdown(Shutdown::Write).expect("open");
    assert!(matches!(stream.read(&mut [0; 8]), ReadOutcome::Closed) && stream.is_at_end());
    stream.set_reading(true, &poller).expect("open");
    let waited = poller.wait(Some(Duration::from_millis(1))).expect("nothing to tell");
    assert_eq!(waited, 0, "the end is told once");
    let reader = thread::spawn(move || std::io::copy(&mut there, &mut std::io::sink()));
    let is_owed = stream.gather(Bytes::from(vec![7; 3 << 20]), &poller).expect("room");
    assert!(is_owed);
    assert!(stream.close_when_sent(&poller), "it is not broken");
    send_all(stream, &mut poller);
    assert_eq!(reader.join().expect("no panic").expect("all of it"), 3 << 20);
}
