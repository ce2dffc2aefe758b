//! The named malformed inputs against our own framer and parser.

mod common;

use std::collections::BTreeSet;

use common::framer;
use peak_alloc::PeakAlloc;
use quorba_giop::hostile::{Case, Reactions, cases};
use quorba_giop::{Body, Endian, Message, Version, describe};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What an input may cost besides twice its own size, in bytes.
const MEMORY_BYTES: usize = 64 << 10;

fn variants() -> impl Iterator<Item = (Version, Endian)> {
    let versions = [Version::V1_0, Version::V1_1, Version::V1_2];
    versions.into_iter().flat_map(|version| {
        [Endian::Big, Endian::Little].into_iter().map(move |endian| (version, endian))
    })
}

/// What follows from a whole message, whatever the object says to it.
fn reaction_to(message: &Message) -> Reactions {
    match message.parse() {
        Err(_) => Reactions::MESSAGE_ERROR,
        Ok(Body::Request(request)) if request.response_expected() => Reactions::REPLIES,
        Ok(Body::LocateRequest(_)) => Reactions::REPLIES,
        Ok(Body::CloseConnection | Body::MessageError) => Reactions::CLOSES,
        Ok(_) => Reactions::IGNORES,
    }
}

/// What the octets of a connection lead to: the first thing that is not ignored.
fn reaction(bytes: &[u8], piece: usize) -> Reactions {
    let mut framer = framer();
    let mut reaction = Reactions::IGNORES;
    for piece in bytes.chunks(piece) {
        framer.push(piece);
        loop {
            assert!(framer.buffered_bytes() <= bytes.len());
            match framer.next() {
                Err(_) => return Reactions::MESSAGE_ERROR,
                Ok(None) => break,
                Ok(Some(message)) => match reaction_to(&message) {
                    Reactions::IGNORES => {}
                    Reactions::REPLIES => reaction = Reactions::REPLIES,
                    refused => return refused,
                },
            }
        }
    }
    reaction
}

// One test: the allocator counts for all threads.
#[test]
fn malformed_input_gets_an_allowed_reaction_within_bounded_memory() {
    for (version, endian) in variants() {
        for Case { name, bytes, may } in cases(version, endian) {
            let context = format!("{name} in GIOP {version} {endian:?}");
            MEMORY.reset_peak_usage();
            let before = MEMORY.current_usage();
            let whole = reaction(&bytes, usize::MAX);
            let used = MEMORY.peak_usage().saturating_sub(before);
            let bound = MEMORY_BYTES + 2 * bytes.len();
            assert!(used <= bound, "{context}: {used} bytes for {}", bytes.len());
            assert!(may.contains(whole), "{context}: {whole:?}, but may {may:?}");
            assert_eq!(reaction(&bytes, 1), whole, "{context}: otherwise if it comes in pieces");
            // Describing never fails; that it says something is all that can be asked.
            assert!(!describe::bytes(&bytes).is_empty(), "{context}");
        }
        let all = cases(version, endian);
        let names: BTreeSet<&str> = all.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), all.len(), "names are unique");
        assert!(all.len() >= 60, "only {} cases for GIOP {version}", all.len());
    }
}
