//! What messages cost in memory while they arrive.

mod common;

use common::framer;
use peak_alloc::PeakAlloc;
use quorba_giop::{Endian, Version, build, fragment, limits};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SLACK_BYTES: usize = 64 << 10;
/// A buffer doubles, and while it does, the old and the new one are counted both.
const GROWTH: usize = 3;

/// Peak of memory while `pieces` arrive and what is complete is taken out and dropped.
fn cost_bytes<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (usize, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut framer = framer();
    let mut messages = 0;
    for piece in pieces {
        framer.push(piece);
        while framer.next().expect("well-formed").is_some() {
            messages += 1;
        }
    }
    (MEMORY.peak_usage().saturating_sub(before), messages)
}

// One test: the allocator counts for all threads.
#[test]
fn memory_follows_what_came_not_what_was_announced() {
    let mut announced = build::locate_request(Version::V1_2, Endian::Big, 1, b"k").bytes().to_vec();
    announced[8..12].copy_from_slice(&(limits::MESSAGE_BYTES_MAX as u32 - 12).to_be_bytes());
    let (cost, messages) = cost_bytes(std::iter::once(announced.as_slice()));
    assert_eq!(messages, 0);
    assert!(cost <= SLACK_BYTES, "{cost} bytes for a header that announces 16 MiB");

    let body = vec![7; 1 << 20];
    let status = quorba_giop::ReplyStatus::NoException;
    let message =
        build::reply(Version::V1_2, Endian::Little, 1, status, |writer| writer.write_raw(&body));
    let bytes = message.bytes().clone();
    let bound = SLACK_BYTES + GROWTH * bytes.len();
    let (cost, messages) = cost_bytes(bytes.chunks(4096));
    assert_eq!(messages, 1);
    assert!(cost <= bound, "{cost} bytes for a message of {}", bytes.len());

    let pieces = fragment(&message, 8192);
    let stream: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
    let (cost, messages) = cost_bytes(stream.chunks(4096));
    assert_eq!(messages, 1);
    assert!(cost <= bound, "{cost} bytes for fragments of {}", bytes.len());
}
