//! The fuzzer's target over values of many types and mutations of them, the same ones every time.

#[path = "../../giop/tests/dice/mod.rs"]
mod dice;

use dice::Dice;
use peak_alloc::PeakAlloc;
use quorba_corba::giop::cdr::Writer;
use quorba_corba::giop::{Completion, Endian, Version};
use quorba_corba::{
    Any, Cdr, CharSet, Coding, Encoder, Kind, Object, TypeCode, Typed, WString, fuzzing,
};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const RUNS: usize = 150_000;
/// What reading an input may cost besides what its size costs, in octets.
const MEMORY_BYTES: usize = 64 << 10;
/// Octets of memory for one of input: a node of a graph for a member's length and kind.
const MEMORY_PER_OCTET: usize = 24;

impl Dice {
    fn mutate(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..1 + self.roll(4) {
            let at = self.roll(bytes.len());
            let word = at & !3;
            match self.roll(5) {
                0 => bytes.truncate(at),
                1 => {
                    let length = self.roll(16).min(bytes.len() - at);
                    bytes.extend_from_within(at..at + length);
                }
                2 if bytes.len() >= word + 4 => {
                    let number = [0, 1, 2, 20, 0xffff_ffff, 0x7fff_ffff, 0xffff_fff0][self.roll(7)];
                    bytes[word..word + 4].copy_from_slice(&u32::to_le_bytes(number));
                }
                3 if bytes.len() >= word + 4 => {
                    let number = u32::try_from(self.roll(64)).expect("small");
                    bytes[word..word + 4].copy_from_slice(&number.to_be_bytes());
                }
                _ => bytes[at] ^= 1 << self.roll(8),
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        bytes
    }
}

/// A struct with one of everything, as an any of it.
#[derive(Clone)]
struct Everything;

impl Typed for Everything {
    fn type_code_within(open: &mut Vec<&'static str>) -> TypeCode {
        let colour = TypeCode::enumeration("IDL:Colour:1.0", "Colour", &["red", "green"]);
        let arms = [(0, "text", TypeCode::string(0)), (1, "any", TypeCode::basic(Kind::Any))];
        let kids = TypeCode::sequence(&TypeCode::recursive("IDL:All:1.0"), 0);
        let members = [
            ("wide", TypeCode::wstring(0)),
            ("union", TypeCode::union("IDL:U:1.0", "U", &colour, None, &arms)),
            ("number", TypeCode::basic(Kind::LongDouble)),
            ("object", Object::type_code_within(open)),
            ("array", TypeCode::array(&TypeCode::basic(Kind::Short), 3)),
            ("kids", kids),
            ("type", TypeCode::basic(Kind::TypeCode)),
        ];
        TypeCode::structure("IDL:All:1.0", "All", &members)
    }
}

impl Cdr for Everything {
    const BYTES_MIN: usize = 1;

    fn read(_: &mut quorba_corba::Decoder<'_>) -> Result<Self, quorba_corba::giop::MessageError> {
        Ok(Self)
    }

    fn write(&self, to: &mut Encoder) {
        let mut one = |kids: u32| {
            to.write(&WString::from("wide \u{1f600}"));
            to.write(&1_u32);
            to.write(&Any::new(&vec![1.5_f64, 2.5]).expect("a value"));
            to.write(&quorba_corba::LongDouble([7; 16]));
            to.write(&Object::nil());
            to.write(&[1_i16, 2, 3]);
            to.write(&kids);
        };
        one(2);
        one(0);
        to.write(&TypeCode::string(3));
        let mut two = |kids: u32| {
            to.write(&WString::default());
            to.write(&0_u32);
            to.write(&"text".to_owned());
            to.write(&quorba_corba::LongDouble([0; 16]));
            to.write(&Object::nil());
            to.write(&[0_i16; 3]);
            to.write(&kids);
        };
        two(0);
        to.write(&TypeCode::basic(Kind::Void));
        to.write(&TypeCode::basic(Kind::Void));
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let anys = [
        Any::new(&Everything).expect("a value"),
        Any::new(&vec!["a".to_owned(), "\u{e9}".to_owned()]).expect("a value"),
        Any::new(&vec![1_u64, 2, 3]).expect("a value"),
        Any::new(&Any::new(&WString::from("x")).expect("a value")).expect("a value"),
    ];
    let mut seeds = Vec::new();
    for any in &anys {
        for first in 0..128_u8 {
            let endian = Endian::from_bit(first & 1);
            let chars = if first & 2 == 0 { CharSet::Latin1 } else { CharSet::Utf8 };
            let version = [Version::V1_0, Version::V1_1, Version::V1_2, Version::V1_2]
                [usize::from(first >> 2 & 3)];
            let mut to = Encoder::new(endian, Coding { version, chars });
            (0..first >> 4 & 7).for_each(|_| to.write(&0_u8));
            to.write(any);
            let mut seed = vec![first];
            seed.extend(to.finish(Completion::No).expect("written"));
            seeds.push(seed);
        }
        let mut state = Writer::new(Endian::Big);
        any.keep(&mut state);
        seeds.push(state.finish());
    }
    seeds
}

// One test: the allocator counts for all threads.
#[test]
fn mutations_of_anys_hold_the_targets_assertions_within_bounded_memory() {
    let mut dice = Dice(0x0A17_C0DE_5EED_0001);
    let seeds = seeds();
    assert!(seeds.iter().filter(|seed| check(seed)).count() > seeds.len() / 2);
    let mut read = 0;
    for _ in 0..RUNS {
        let seed = dice.roll(seeds.len());
        let mutated = dice.mutate(&seeds[seed]);
        read += usize::from(check(&mutated));
    }
    assert!(read > RUNS / 10, "{read} of {RUNS} could be read: the others test little");
}

/// Whether it was an any.
fn check(input: &[u8]) -> bool {
    let hex = || input.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let checked = std::panic::catch_unwind(|| fuzzing::any(input));
    assert!(checked.is_ok(), "any with {}", hex());
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let read = fuzzing::decode_any(input);
    let used = MEMORY.peak_usage().saturating_sub(before);
    let bound = MEMORY_BYTES + MEMORY_PER_OCTET * input.len();
    assert!(used <= bound, "{used} octets of memory for {}", hex());
    read
}
