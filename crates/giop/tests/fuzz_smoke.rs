//! The fuzzers' targets over the corpus and mutations of it, the same ones every time: some
//! seconds of what `fuzz/` does for hours.

mod common;
mod dice;
mod targets;

use common::{messages, references, streams};
use dice::Dice;
use peak_alloc::PeakAlloc;
use quorba_giop::hostile::{OBJECT_KEY, cases};
use quorba_giop::ior::FtGroup;
use quorba_giop::{CodeSets, Endian, FtRequest, GroupVersion, Version};
use targets::{TARGETS, Target};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What decoding an input may cost besides twice its own size, in bytes.
const MEMORY_BYTES: usize = 64 << 10;
const RUNS: usize = 210_000;
/// Larger seeds are few, and slow.
const SEED_BYTES_MAX: usize = 8 << 10;
/// Lengths and counts that decoders get wrong.
const NUMBERS: [u32; 10] = [0, 1, 2, 7, 0xff, 0x100, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

impl Dice {
    fn mutate(&mut self, seed: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..1 + self.roll(4) {
            self.mutate_once(&mut bytes, other);
        }
        bytes
    }

    fn mutate_once(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.roll(bytes.len());
        let end = (at + self.roll(16)).min(bytes.len());
        match self.roll(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.extend_from_within(at..end),
            3 => {
                let tail = bytes.split_off(at);
                bytes.push(u8::try_from(self.roll(256)).expect("below 256"));
                bytes.extend(tail);
            }
            4 => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[self.roll(other.len())..]);
            }
            5 => {
                let number = NUMBERS[self.roll(NUMBERS.len())];
                let raw =
                    if self.roll(2) == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
                let at = at & !3;
                let length = bytes.len().saturating_sub(at).min(4);
                bytes[at..at + length].copy_from_slice(&raw[..length]);
            }
            6 => bytes[at..end].fill(if self.roll(2) == 0 { 0 } else { 0xff }),
            _ => {
                if let Some(octet) = bytes.get_mut(at) {
                    *octet ^= 1 << self.roll(8);
                }
            }
        }
    }
}

/// What each target begins with.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let whole = || {
        let messages = |stream: &common::Stream| messages(&stream.bytes, usize::MAX);
        let bytes = |message: quorba_giop::Message| message.bytes().to_vec();
        streams().iter().flat_map(messages).map(bytes).collect::<Vec<_>>()
    };
    let hostile = || {
        let orders = [Endian::Big, Endian::Little].into_iter();
        let all = orders.flat_map(|endian| cases(Version::V1_2, endian));
        all.map(|case| case.bytes)
    };
    let mut seeds: Vec<Vec<u8>> = match target.name {
        "framer" => streams().into_iter().map(|stream| stream.bytes).chain(hostile()).collect(),
        "reference" => {
            let octets = |text: &str| -> Vec<u8> {
                let digits = text.trim().trim_start_matches("IOR:").as_bytes().chunks(2);
                let pair = |pair: &[u8]| {
                    let text = str::from_utf8(pair).expect("a reference is ASCII");
                    u8::from_str_radix(text, 16).expect("hexadecimal")
                };
                digits.map(pair).collect()
            };
            references().iter().map(|(_, text)| octets(text)).collect()
        }
        "reference_text" => {
            let mut texts: Vec<String> = references().into_iter().map(|(_, text)| text).collect();
            texts.push("corbaloc:iiop:1.2@a.example:5000,iiop:[::1]:7,:b/k%20x".to_owned());
            texts.push("corbaloc:rir:/NameService".to_owned());
            texts.into_iter().map(String::into_bytes).collect()
        }
        "contexts" => context_seeds(),
        _ => whole().into_iter().chain(hostile()).collect(),
    };
    seeds.retain(|seed| seed.len() <= SEED_BYTES_MAX && !seed.is_empty());
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    seeds
}

fn context_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for endian in [Endian::Big, Endian::Little] {
        seeds.push(CodeSets { char_data: 0x0501_0001, wchar_data: 0x0001_0109 }.encode(endian));
        let client_id = OBJECT_KEY.to_vec();
        seeds.push(FtRequest { client_id, retention_id: -1, expiration_time: 9 }.encode(endian));
        seeds.push(GroupVersion(7).encode(endian));
        let group = FtGroup { domain_id: b"bank".to_vec(), group_id: 1, reference_version: 2 };
        seeds.push(quorba_giop::ior::ComponentValue::FtGroup(group).encode(endian).data);
        let mut writer = quorba_giop::cdr::Writer::new(endian);
        writer.write_string(b"IDL:omg.org/CORBA/TRANSIENT:1.0");
        writer.write_u64(1);
        seeds.push(writer.finish());
    }
    seeds
}

// One test: the allocator counts for all threads.
#[test]
fn mutations_of_the_corpus_hold_the_targets_assertions_within_bounded_memory() {
    let mut dice = Dice(0x51AB_0C0D_E511_2357);
    for target in &TARGETS {
        let seeds = seeds(target);
        seeds.iter().for_each(|seed| check(target, seed));
        for _ in 0..RUNS / TARGETS.len() {
            let seed = &seeds[dice.roll(seeds.len())];
            let other = &seeds[dice.roll(seeds.len())];
            check(target, &dice.mutate(seed, other));
        }
    }
}

fn check(target: &Target, input: &[u8]) {
    let checked = std::panic::catch_unwind(|| (target.run)(input));
    assert!(checked.is_ok(), "{} with {}", target.name, hex(input));
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    (target.decode)(input);
    let used = MEMORY.peak_usage().saturating_sub(before);
    let bound = MEMORY_BYTES + 2 * input.len();
    assert!(used <= bound, "{}: {used} bytes of memory for {}", target.name, hex(input));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|octet| format!("{octet:02x}")).collect()
}
