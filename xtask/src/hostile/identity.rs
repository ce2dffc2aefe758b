//! Attacks with names of calls (FT_REQUEST): those of another client, and very many.
//!
//! Invariant: the victim is an honest client that names its calls as the standard says.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use quorba_giop::context::FT_REQUEST;
use quorba_giop::{Endian, ExceptionKind, FtRequest, Version};

use super::case::{ATTACKER, Case, Field};
use super::honest;
use super::wire::{Answer, KEY, RequestFields, Wire, request_to};

/// Names of one client.
const NAMES: u32 = 100_000;
/// Where that would take too long.
const FEW_NAMES: u32 = 6_000;
const WITHIN: Duration = Duration::from_secs(10);
/// Names are good for so long: far beyond the test, in 100 ns since 1582.
const NEVER: u64 = i64::MAX as u64;

pub(super) const CASES: &[Case] = &[
    Case::of("identity-stolen-after", |field| stolen(field, false)),
    Case::of("identity-stolen-before", |field| stolen(field, true)),
    Case::of("identities-100000", many),
];

/// A call by name: of whom, under which number, which operation of which object, with what.
#[derive(Clone, Copy)]
struct Named<'a> {
    client: &'a str,
    number: i32,
    key: &'a [u8],
    operation: &'a str,
    text: &'a str,
}

fn call(from: Ipv4Addr, field: &Field<'_>, node: usize, named: Named<'_>) -> Answer {
    match Wire::connect(from, field.stage.gateway(node)) {
        Ok(mut wire) => call_on(&mut wire, named),
        Err(error) => Answer::Odd(error.to_string()),
    }
}

fn octets(named: Named<'_>) -> Vec<u8> {
    let name = FtRequest {
        client_id: named.client.as_bytes().to_vec(),
        retention_id: named.number,
        expiration_time: NEVER,
    };
    let name = name.encode(Endian::Little);
    let contexts = [(FT_REQUEST, name.as_slice())];
    let Named { key, operation, text, .. } = named;
    let aim = RequestFields {
        version: Version::V1_2,
        key,
        operation,
        contexts: &contexts,
        ..RequestFields::default()
    };
    request_to(&aim, |out| out.write_string(text.as_bytes()))
}

fn call_on(wire: &mut Wire, named: Named<'_>) -> Answer {
    wire.call(2, &octets(named), WITHIN)
}

fn is_refused(answer: &Answer) -> bool {
    use ExceptionKind::{BadContext, NoPermission};
    matches!(answer, Answer::Raised(exception)
        if [BadContext, NoPermission].contains(&exception.kind))
}

/// The text that `say` gives, if it has said any.
fn said(answer: &Answer) -> Option<String> {
    let Answer::Results(octets) = answer else { return None };
    let (head, text) = octets.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*head) as usize;
    Some(String::from_utf8_lossy(text.get(..length.checked_sub(1)?)?).into_owned())
}

/// A stranger calls by a name of another client, before or after that one.
fn stolen(field: &mut Field<'_>, before: bool) -> Result<(), String> {
    let said_by_victim = "of the victim";
    let variants = [
        ("another operation", Named { operation: "count", ..plain("stranger") }),
        ("another object", Named { key: b"bank/o", ..plain(said_by_victim) }),
        ("another text", plain("of the stranger")),
        ("the same text", plain(said_by_victim)),
    ];
    let tag = if before { "b" } else { "a" };
    for (index, (what, stranger)) in variants.into_iter().enumerate() {
        for node in 0..2 {
            let client = format!("victim-{tag}-{index}-{node}");
            let stranger = Named { client: &client, ..stranger };
            let victim = Named { client: &client, ..plain(said_by_victim) };
            let first = before.then(|| call(ATTACKER, field, node, stranger));
            let his = call(honest::ADDRESS, field, 0, victim);
            let theirs = first.unwrap_or_else(|| call(ATTACKER, field, node, stranger));
            judge(field, (what, before, node), &his, &theirs);
            // Whoever repeats a call may have marshalled it anew.
            let anew = Named { text: "of the victim, marshalled anew", ..victim };
            let again = call(honest::ADDRESS, field, node, anew);
            if !before && said(&again).as_deref() != Some(said_by_victim) {
                field.fault(format!("the victim repeats its call at n{}: {again}", node + 1));
            }
        }
    }
    Ok(())
}

const fn plain(text: &str) -> Named<'_> {
    Named { client: "", number: 1, key: KEY, operation: "say", text }
}

fn judge(field: &mut Field<'_>, case: (&str, bool, usize), his: &Answer, theirs: &Answer) {
    let (what, before, node) = case;
    let when = if before { "before" } else { "after" };
    let when = format!("{what} {when} the victim, at n{}", node + 1);
    if !before && !is_refused(theirs) && what != "the same text" {
        field.fault(format!("{when}: the stranger gets {theirs}, a refusal is right"));
    }
    let is_his = said(his).as_deref() == Some("of the victim");
    // Who comes second may be refused, and must never be told what another one is.
    if !(is_his || before && is_refused(his)) {
        field.fault(format!("{when}: the victim gets {his}"));
    }
}

/// One client uses up names, as fast as it may.
fn many(field: &mut Field<'_>) -> Result<(), String> {
    let names = if field.times.is_whole { NAMES } else { FEW_NAMES };
    let to = field.stage.gateway(0);
    let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
    let (began, mut refused) = (Instant::now(), 0);
    // A window of calls, so that it is fast.
    for first in (0..names).step_by(WINDOW as usize) {
        let numbers = first..(first + WINDOW).min(names);
        let burst: Vec<u8> = numbers.clone().flat_map(one_of_many).collect();
        wire.send(&burst, WITHIN).map_err(|error| format!("name {first}: {error}"))?;
        for number in numbers {
            match wire.answer(2 + 2 * number, WITHIN) {
                Answer::Results(_) => {}
                Answer::Raised(_) => refused += 1,
                other => return Err(format!("name {number}: {other}")),
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    if refused > 0 && !field.stage.says(0, &ATTACKER.to_string()) {
        field.fault(format!("{refused} names are refused, and the log does not say whose"));
    }
    field.note(format!("{names} names in {seconds:.0} s, {refused} refused"));
    for node in 0..2 {
        let another = Named { client: "another client", number: node + 1, ..plain("hello") };
        let told = call(honest::ADDRESS, field, node as usize, another);
        if said(&told).as_deref() != Some("hello") {
            field.fault(format!("another client that names its calls, at n{}: {told}", node + 1));
        }
    }
    Ok(())
}

/// Calls under way at once.
const WINDOW: u32 = 50;

fn one_of_many(number: u32) -> Vec<u8> {
    let name = FtRequest {
        client_id: format!("many-{}", number / 1000).into_bytes(),
        retention_id: number as i32,
        expiration_time: NEVER,
    };
    let name = name.encode(Endian::Little);
    let contexts = [(FT_REQUEST, name.as_slice())];
    let aim = RequestFields {
        id: 2 + 2 * number,
        operation: "say",
        contexts: &contexts,
        ..RequestFields::default()
    };
    request_to(&aim, |out| out.write_string(b"x"))
}
