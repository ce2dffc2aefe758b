//! What is in a piece stays in it while it grows and shrinks past every bound, and a large one that
//! grows is not copied.

use quorba_heap::{Heap, LARGE_BYTES};

#[global_allocator]
static HEAP: Heap = Heap;

/// What is at a place: no two of a page's are the same as their neighbours'.
fn octet(place: usize) -> u8 {
    (place ^ place >> 8 ^ place >> 16) as u8
}

fn is_kept(piece: &[u8]) -> bool {
    piece.iter().enumerate().all(|(place, &found)| found == octet(place))
}

/// The most memory that this process has had at a time.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its peak");
    let kib: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kib << 10
}

#[test]
fn a_piece_keeps_what_is_in_it_past_every_bound() {
    let mut piece: Vec<u8> = Vec::new();
    let sizes = [1, 4096, LARGE_BYTES - 1, LARGE_BYTES, LARGE_BYTES + 1, 3 * LARGE_BYTES + 7];
    for &size in sizes.iter().chain(sizes.iter().rev()) {
        let had = piece.len();
        piece.truncate(size);
        piece.shrink_to_fit();
        piece.reserve_exact(size - piece.len());
        piece.extend((had.min(size)..size).map(octet));
        assert!(piece.len() == size && is_kept(&piece), "{size} octets, {had} before");
    }
}

#[test]
fn a_large_zeroed_piece_is_zeroed_though_one_was_freed_there() {
    for _ in 0..3 {
        let mut piece = vec![0_u8; 2 * LARGE_BYTES];
        assert!(piece.iter().all(|&octet| octet == 0));
        piece.fill(1);
    }
}

#[test]
fn pieces_of_large_alignment_are_aligned() {
    #[repr(align(65536))]
    struct Aligned(#[expect(dead_code, reason = "only its size counts")] [u8; 2 * LARGE_BYTES]);
    // In a vector, so that it is never on the stack.
    let mut pieces: Vec<Aligned> = Vec::with_capacity(1);
    let place = pieces.spare_capacity_mut()[0].as_mut_ptr();
    assert_eq!(place.addr() % 65536, 0);
    assert!(place.is_aligned());
    pieces.reserve(3);
    assert_eq!(pieces.as_ptr().addr() % 65536, 0);
}

/// A copy would have both at a time.
#[test]
fn a_large_piece_that_grows_is_not_copied() {
    const BYTES: usize = 256 << 20;
    let mut piece = vec![7_u8; BYTES];
    let before = peak_bytes();
    piece.reserve_exact(BYTES);
    assert!(piece.capacity() >= 2 * BYTES);
    assert!(piece.iter().step_by(4096).all(|&octet| octet == 7));
    // The kernel counts in batches, so it may have forgotten a little.
    let more = peak_bytes().saturating_sub(before);
    assert!(more < BYTES / 4, "{more} bytes more while it grew");
}
