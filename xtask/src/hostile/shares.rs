//! Attacks on others' shares: much work for few octets, unfinished messages, and connections that
//! come again with a full bucket.
//!
//! Invariant: no attacker does what a client may not do by the standard.

use std::thread;
use std::time::{Duration, Instant};

use quorba_giop::{Endian, Version, build};

use super::case::{ATTACKER, Case, Field};
use super::memory::measure;
use super::stage::Setup;
use super::wire::{Answer, Wire, request};

/// What the server takes over one call that is cancelled.
const CALL_US: u32 = 1000;
/// Connections with an unfinished message each, the octets of one, and of what comes of it: all
/// together 50 kB less than the 256 MiB that a node has for such.
const UNFINISHED: usize = 18;
const UNFINISHED_BYTES: usize = 16_000_000;
const BEGUN_BYTES: usize = 14_910_000;
/// What an honest call takes meanwhile.
const HONEST_BYTES: usize = 100_000;
/// How long one of them may take.
const BEGUN_WITHIN: Duration = Duration::from_secs(2);
/// Somewhat more than the least rate that a gateway accepts.
const DRIP_BYTES: usize = 600;
const DRIP_EVERY: Duration = Duration::from_millis(500);
/// Requests a second that one address has, where that is limited.
const RATE: u64 = 200;
const RATED: Setup =
    Setup { tables: "[limits]\nrequests_per_second_per_peer = 200\n", ..Setup::PLAIN };

pub(super) const CASES: &[Case] = &[
    Case::of("cancels", cancels),
    Case { honest_octets: HONEST_BYTES, ..Case::of("unfinished", unfinished) },
    Case { setup: RATED, ..Case::of("reconnects", reconnects) },
];

fn cancels(field: &mut Field<'_>) -> Result<(), String> {
    let call = |id| {
        request(id, "add", true, |out| {
            out.write_u32(CALL_US);
            out.write_octets(b"cancelled");
        })
    };
    measure(field, &call(2))?;
    let pair = |number: u32| {
        let id = 2 + 2 * number;
        let cancel = build::cancel_request(Version::V1_2, Endian::Little, id);
        [call(id), cancel.bytes().to_vec()].concat()
    };
    let burst: Vec<u8> = (0..200).flat_map(pair).collect();
    let each = burst.len() as u64 / 200;
    let to = field.stage.gateway(0);
    let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
    let taken = wire.flood(&burst, field.until());
    field.note(format!("{} pairs were taken", taken / each));
    Ok(())
}

fn unfinished(field: &mut Field<'_>) -> Result<(), String> {
    let (until, to) = (field.until(), field.stage.gateway(0));
    let whole = request(2, "add", true, |out| {
        out.write_u32(0);
        out.write_octets(&vec![b'u'; UNFINISHED_BYTES]);
    });
    let (begun, rest) = whole.split_at(BEGUN_BYTES);
    let mut wires = Vec::new();
    for _ in 0..UNFINISHED {
        let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
        // What does not go in is no attack.
        let _refused = wire.send(begun, BEGUN_WITHIN);
        wires.push(wire);
    }
    let mut at = 0;
    while Instant::now() < until || at == 0 {
        for wire in &mut wires {
            let _refused = wire.send(&rest[at..at + DRIP_BYTES], Duration::from_millis(20));
        }
        at += DRIP_BYTES;
        thread::sleep(DRIP_EVERY);
    }
    Ok(())
}

/// As many requests as a full bucket has, over a new connection each time.
fn reconnects(field: &mut Field<'_>) -> Result<(), String> {
    let (until, to, began) = (field.until(), field.stage.gateway(0), Instant::now());
    let (mut answered, mut connections) = (0_u64, 0_u64);
    let burst: Vec<u8> = (0..RATE as u32)
        .flat_map(|number| {
            request(2 + 2 * number, "add", true, |out| {
                out.write_u32(0);
                out.write_octets(b"");
            })
        })
        .collect();
    while Instant::now() < until {
        let Ok(mut wire) = Wire::connect(ATTACKER, to) else { break };
        connections += 1;
        let _refused = wire.send(&burst, Duration::from_millis(100));
        for number in 0..RATE as u32 {
            // Whoever has to wait comes again instead.
            match wire.answer(2 + 2 * number, Duration::from_millis(100)) {
                Answer::Results(_) => answered += 1,
                Answer::Raised(_) => {}
                _ => break,
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    field.note(format!("{answered} answers in {seconds:.1} s, {connections} connections"));
    // A full bucket once, then the rate; and one request of each connection may be on its way.
    let most = RATE as f64 * (seconds + 1.0) * 1.1 + connections as f64;
    if answered as f64 > most {
        field.fault(format!("{answered} answers, at most {most:.0} are right at {RATE}/s"));
    }
    Ok(())
}
