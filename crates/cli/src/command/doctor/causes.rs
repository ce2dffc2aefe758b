//! What two octet sequences that should be equal look like: the list of docs/determinism.md.
//!
//! What it is not: a decoder. It looks at the values that stand where the difference is, in the
//! byte order of the message, and for texts that say what they are.
//!
//! Invariant: there is always a cause, if only one that says that nothing is recognised.

use quorba_giop::context::TIME_T_OF_UNIX_EPOCH;
use quorba_giop::{Body, Endian, Message, references};
use serde::Serialize;

/// A time within this of now, in seconds, is taken for one.
const NOW_SLACK_S: u64 = 7 * 86_400;
/// Octets before and behind a difference in which a text is looked for.
const AROUND: usize = 48;

/// The length of its first profile stands so far before what is found of a reference.
const BEFORE_REFERENCE: usize = 4;

/// What is known of the two runs.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Where the two servers listened.
    pub ports: [u16; 2],
    /// When they ran, s since 1970.
    pub now_s: u64,
}

/// Why replicas differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    Padding,
    Time,
    Address,
    ObjectKey,
    Pointer,
    Order,
    Random,
    Crash,
}

/// The cause if both have a reference around the first octet of the results that differs, with
/// different keys.
pub fn object_key(a: &Message, b: &Message) -> Option<Cause> {
    let Ok(Body::Reply(reply)) = a.parse() else { return None };
    let body = reply.body_offset();
    let mut pairs = a.bytes().iter().zip(b.bytes().iter()).skip(body);
    let first = body + pairs.position(|(one, other)| one != other)?;
    let around = |message: &Message| {
        let Ok(Body::Reply(reply)) = message.parse() else { return None };
        let found = references::find(message.bytes(), reply.body_offset(), message.endian());
        // Lengths before it differ with the key's.
        found.into_iter().find(|one| one.end > first)
    };
    let (one, other) = (around(a)?, around(b)?);
    let is_there = one.offset <= first + BEFORE_REFERENCE && one.offset == other.offset;
    (is_there && one.keys != other.keys).then_some(Cause::ObjectKey)
}

impl Cause {
    /// In words, with what to do.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Padding => {
                "octets that only align what follows: the ORB does not clear its buffers. Clients \
                 do not see them, but style active-with-voting does, unless `compare_replies = \
                 \"ignore-padding\"` and they stand behind texts"
            }
            Self::Time => {
                "a time: take it from the request, or from Quorba's ordered time \
                 (docs/determinism.md)"
            }
            Self::Address => {
                "the server's own address, as in a reference that it made: create references for \
                 the gateways, with a persistent object key"
            }
            Self::ObjectKey => {
                "the object key of a reference that the server made: give objects persistent keys \
                 from the state (docs/determinism.md, \"References that servers return\")"
            }
            Self::Pointer => {
                "an address in memory: an id that is made of a pointer, or memory that was never \
                 written"
            }
            Self::Order => {
                "the same octets in another order: a hash table that is gone through, whose seed \
                 differs from process to process"
            }
            Self::Random => {
                "nothing that is recognised: random numbers, UUIDs, or memory that was never \
                 written"
            }
            Self::Crash => "only one of the two servers answered: a crash, a hang, or a race",
        }
    }
}

/// What the difference at `spans` looks like; the most likely first.
pub fn of(
    a: &[u8],
    b: &[u8],
    spans: &[(usize, usize)],
    endian: Endian,
    scene: &Scene,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut add = |cause: Cause, holds: bool| {
        if holds && !causes.contains(&cause) {
            causes.push(cause);
        }
    };
    for (begin, end) in spans.iter().copied().take(16) {
        let both = |test: &dyn Fn(&[u8], usize) -> bool| test(a, 0) && test(b, 1);
        let around = begin.saturating_sub(AROUND)..end.saturating_add(AROUND);
        let has_port = |octets: &[u8], run: usize| {
            names_port(slice(octets, &around), scene.ports[run], endian)
        };
        add(Cause::Address, both(&has_port));
        let is_time = |octets: &[u8], _| {
            words(octets, begin, endian).any(|word| is_now(word, scene.now_s))
                || is_date(slice(octets, &around))
        };
        add(Cause::Time, both(&is_time));
        let points = |octets: &[u8], _| words(octets, begin, endian).any(is_pointer);
        add(Cause::Pointer, both(&points));
    }
    add(Cause::Order, a.len() == b.len() && sorted(a) == sorted(b));
    if causes.is_empty() {
        causes.push(Cause::Random);
    }
    causes
}

fn slice<'a>(octets: &'a [u8], range: &std::ops::Range<usize>) -> &'a [u8] {
    let end = range.end.min(octets.len());
    octets.get(range.start.min(end)..end).unwrap_or(&[])
}

fn sorted(octets: &[u8]) -> Vec<u8> {
    let mut octets = octets.to_vec();
    octets.sort_unstable();
    octets
}

/// A value that may be meant.
#[derive(Clone, Copy)]
enum Word {
    Four(u32),
    Eight(u64),
}

/// The aligned values that the octet at `at` is a part of.
fn words(octets: &[u8], at: usize, endian: Endian) -> impl Iterator<Item = Word> {
    let four = octets.get(at & !3..).and_then(|rest| rest.first_chunk::<4>());
    let eight = octets.get(at & !7..).and_then(|rest| rest.first_chunk::<8>());
    let four = four.map(|chunk| match endian {
        Endian::Little => Word::Four(u32::from_le_bytes(*chunk)),
        Endian::Big => Word::Four(u32::from_be_bytes(*chunk)),
    });
    let eight = eight.map(|chunk| match endian {
        Endian::Little => Word::Eight(u64::from_le_bytes(*chunk)),
        Endian::Big => Word::Eight(u64::from_be_bytes(*chunk)),
    });
    four.into_iter().chain(eight)
}

/// Whether it is about now in some unit that is used for times.
fn is_now(word: Word, now_s: u64) -> bool {
    let near = |seconds: u64| seconds.abs_diff(now_s) <= NOW_SLACK_S;
    match word {
        Word::Four(word) => near(word.into()),
        Word::Eight(word) => {
            let since_1582 = word.saturating_sub(TIME_T_OF_UNIX_EPOCH) / 10_000_000;
            let float = f64::from_bits(word);
            let units = [1, 1_000, 1_000_000, 1_000_000_000];
            near(since_1582)
                || units.iter().any(|unit| near(word / unit))
                || [1.0, 1_000.0].iter().any(|unit| {
                    let seconds = float / unit;
                    seconds > 1e9 && (seconds - to_f64(now_s)).abs() <= to_f64(NOW_SLACK_S)
                })
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are exact")]
const fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Whether it looks like an address of a 64-bit process: stack, heap or library.
fn is_pointer(word: Word) -> bool {
    matches!(word, Word::Eight(word) if matches!(word >> 40, 0x55 | 0x56 | 0x7e | 0x7f))
}

/// Whether there is a date as `2026-11-22`, or a time of day as `14:03:07`.
fn is_date(octets: &[u8]) -> bool {
    let matches = |window: &[u8], pattern: &[u8]| {
        window.iter().zip(pattern).all(|(octet, wanted)| match wanted {
            b'0' => octet.is_ascii_digit(),
            wanted => octet == wanted,
        })
    };
    [&b"0000-00-00"[..], b"00:00:00"]
        .iter()
        .any(|pattern| octets.windows(pattern.len()).any(|window| matches(window, pattern)))
}

/// Whether the port stands there, as a number or as a text.
fn names_port(octets: &[u8], port: u16, endian: Endian) -> bool {
    let number = match endian {
        Endian::Little => port.to_le_bytes(),
        Endian::Big => port.to_be_bytes(),
    };
    let has = |wanted: &[u8]| octets.windows(wanted.len()).any(|window| window == wanted);
    // As in a reference, which may have its own byte order.
    has(&number)
        || has(&port.to_be_bytes())
        || has(port.to_string().as_bytes())
        || has(format!("{:04x}", port).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: Scene = Scene { ports: [40_001, 40_002], now_s: 1_790_000_000 };

    fn causes(a: &[u8], b: &[u8]) -> Vec<Cause> {
        let at = a.iter().zip(b).position(|(a, b)| a != b).expect("they differ");
        of(a, b, &[(at, at + 1)], Endian::Little, &SCENE)
    }

    #[test]
    fn times_are_known_in_any_unit() {
        for unit in [1_u64, 1_000, 1_000_000, 1_000_000_000] {
            let at = |seconds: u64| (seconds * unit).to_le_bytes();
            let found = causes(&at(1_790_000_001), &at(1_790_000_003));
            assert_eq!(found.first(), Some(&Cause::Time), "{unit}");
        }
        let time_t = |s: u64| (TIME_T_OF_UNIX_EPOCH + s * 10_000_000).to_le_bytes();
        assert_eq!(causes(&time_t(1_790_000_001), &time_t(1_790_000_002)), [Cause::Time]);
        assert_eq!(causes(b"at 2026-11-22", b"at 2026-11-23"), [Cause::Time]);
    }

    #[test]
    fn addresses_pointers_and_orders_are_told_apart() {
        assert_eq!(causes(b"127.0.0.1:40001/x", b"127.0.0.1:40002/x"), [Cause::Address]);
        let at = |address: u64| address.to_le_bytes();
        assert_eq!(causes(&at(0x7f12_3456_7890), &at(0x7f12_1111_2222)), [Cause::Pointer]);
        assert_eq!(causes(b"ann bob eve", b"eve bob ann"), [Cause::Order]);
        assert_eq!(causes(&[1, 2, 3, 4], &[9, 8, 7, 6]), [Cause::Random]);
    }
}
