//! Attacks on memory: what is asked for and not read, and what is sent faster than it is executed.
//!
//! Invariant: attackers read nothing, so that whatever is held for them is held by the nodes.

use std::thread;
use std::time::{Duration, Instant};

use quorba_giop::{Endian, Version, build};

use super::case::{ATTACKER, Case, Field};
use super::wire::{Answer, KEY, Wire, request};

/// What one big reply has, and how many connections ask for how many.
const BIG_BYTES: u32 = 4 << 20;
const BIG_CONNECTIONS: usize = 12;
const BIG_CALLS: u32 = 40;
/// What the server takes over one call.
const CALL_US: u32 = 200;
/// Connections that ask where the object is.
const LOCATING: usize = 4;
/// How long a call of the attack itself may take.
const CALL_WITHIN: Duration = Duration::from_secs(10);

pub(super) const CASES: &[Case] = &[
    Case::of("big-replies-unread", big_replies),
    Case::of("oneways-8", |field| oneways(field, 8)),
    Case::of("oneways-4096", |field| oneways(field, 4096)),
    Case::of("locates-unread", locates),
];

/// How long one call of the attack takes when nothing else is going on.
pub(super) fn measure(field: &mut Field<'_>, octets: &[u8]) -> Result<(), String> {
    let to = field.stage.gateway(0);
    let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
    let began = Instant::now();
    match wire.call(2, octets, CALL_WITHIN) {
        Answer::Results(_) => {
            field.longest = began.elapsed();
            Ok(())
        }
        other => Err(format!("one call of it: {other}")),
    }
}

fn big_replies(field: &mut Field<'_>) -> Result<(), String> {
    let until = field.until();
    measure(field, &request(2, "big", true, |out| out.write_u32(BIG_BYTES)))?;
    let to = field.stage.gateway(0);
    let calls: Vec<u8> = (0..BIG_CALLS)
        .flat_map(|number| request(2 + 2 * number, "big", true, |out| out.write_u32(BIG_BYTES)))
        .collect();
    let mut wires = Vec::new();
    for _ in 0..BIG_CONNECTIONS {
        let mut wire = Wire::connect_deaf(ATTACKER, to).map_err(|error| error.to_string())?;
        // What the gateway does not read at once it is not given.
        let _taken = wire.send(&calls, Duration::from_millis(100));
        wires.push(wire);
    }
    thread::sleep(until.saturating_duration_since(Instant::now()));
    Ok(())
}

fn oneways(field: &mut Field<'_>, octets: usize) -> Result<(), String> {
    let argument = vec![b'a'; octets];
    let call = |id, expects| {
        request(id, "add", expects, |out| {
            out.write_u32(CALL_US);
            out.write_octets(&argument);
        })
    };
    measure(field, &call(2, true))?;
    let burst: Vec<u8> = (0..200).flat_map(|number| call(2 + 2 * number, false)).collect();
    let each = burst.len() as u64 / 200;
    let to = field.stage.gateway(0);
    let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
    let taken = wire.flood(&burst, field.until());
    field.note(format!("{} oneways were taken", taken / each));
    Ok(())
}

fn locates(field: &mut Field<'_>) -> Result<(), String> {
    let (until, to) = (field.until(), field.stage.gateway(0));
    let locate = |number: u32| {
        let id = 2 + 2 * number;
        build::locate_request(Version::V1_2, Endian::Little, id, KEY).bytes().to_vec()
    };
    let burst: Vec<u8> = (0..1000).flat_map(locate).collect();
    let each = burst.len() as u64 / 1000;
    let mut wires = Vec::new();
    for _ in 0..LOCATING {
        wires.push(Wire::connect_deaf(ATTACKER, to).map_err(|error| error.to_string())?);
    }
    let taken: u64 = thread::scope(|scope| {
        let flood = |wire: &mut Wire| wire.flood(&burst, until);
        let floods: Vec<_> =
            wires.iter_mut().map(|wire| scope.spawn(move || flood(wire))).collect();
        floods.into_iter().map(|flood| flood.join().unwrap_or_default()).sum()
    });
    field.note(format!("{} LocateRequests were taken", taken / each));
    Ok(())
}
