//! What a client is told that asks for more than it may: so that it knows whether its call was
//! executed, and where it may go.
//!
//! Invariant: what is right is said by the standard and docs/reference/codes.md.

use std::net::Ipv4Addr;
use std::time::Duration;

use quorba_giop::{Completion, ExceptionKind};

use super::case::{ATTACKER, Case, Field};
use super::wire::{Answer, Wire, request};

/// Whose connections are too many: nobody else's are left from attacks before.
const CROWD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);
/// Connections that one address may have.
const CONNECTIONS_MAX: usize = 100;
/// More than the order carries, in octets.
const TOO_LARGE: usize = (16 << 20) + 1;
/// Requests after which a client closes its half.
const OWED: u32 = 5;
const WITHIN: Duration = Duration::from_secs(5);

pub(super) const CASES: &[Case] = &[
    Case::of("connection-101", connection_101),
    Case::of("request-too-large", too_large),
    Case::of("half-close", half_close),
];

fn connection_101(field: &mut Field<'_>) -> Result<(), String> {
    let to = field.stage.gateway(0);
    let call = request(2, "count", true, |_| {});
    let mut wires = Vec::new();
    for number in 0..CONNECTIONS_MAX {
        let mut wire = Wire::connect(CROWD, to).map_err(|error| error.to_string())?;
        // So that it counts before the next one comes.
        match wire.call(2, &call, WITHIN) {
            Answer::Results(_) => wires.push(wire),
            other => return Err(format!("connection {}: {other}", number + 1)),
        }
    }
    let mut one_more = Wire::connect(CROWD, to).map_err(|error| error.to_string())?;
    let told = one_more.call(2, &call, WITHIN);
    if !field.stage.says(0, &CROWD.to_string()) {
        field.fault("the log does not say from which address there are too many connections");
    }
    let is_right = matches!(&told, Answer::Raised(exception)
        if exception.kind == ExceptionKind::Transient && exception.completed == Completion::No);
    if !is_right {
        field.fault(format!("connection 101 gets {told}, TRANSIENT COMPLETED_NO is right"));
        return Ok(());
    }
    let then = one_more.answer(4, WITHIN);
    if !matches!(then, Answer::Refused) {
        field.fault(format!("behind TRANSIENT comes {then}, CloseConnection is right"));
    }
    Ok(())
}

fn too_large(field: &mut Field<'_>) -> Result<(), String> {
    let to = field.stage.gateway(0);
    let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
    let call = request(2, "add", true, |out| {
        out.write_u32(0);
        out.write_octets(&vec![b'l'; TOO_LARGE]);
    });
    let told = wire.call(2, &call, WITHIN);
    let is_right = matches!(&told, Answer::Raised(exception)
        if exception.kind == ExceptionKind::ImpLimit && exception.completed == Completion::No);
    if !is_right {
        field.fault(format!("a request above message_bytes gets {told}, IMP_LIMIT is right"));
    }
    Ok(())
}

fn half_close(field: &mut Field<'_>) -> Result<(), String> {
    let to = field.stage.gateway(0);
    let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
    let calls: Vec<u8> = (0..OWED)
        .flat_map(|number| {
            request(2 + 2 * number, "add", true, |out| {
                out.write_u32(2000);
                out.write_octets(b"");
            })
        })
        .collect();
    wire.send(&calls, WITHIN).map_err(|error| error.to_string())?;
    wire.half_close().map_err(|error| error.to_string())?;
    for number in 0..OWED {
        let told = wire.answer(2 + 2 * number, WITHIN);
        if !matches!(told, Answer::Results(_)) {
            field.fault(format!("reply {} of {OWED} behind a half-close: {told}", number + 1));
            return Ok(());
        }
    }
    Ok(())
}
