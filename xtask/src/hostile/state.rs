//! Attacks on the state: the operations of FT::Checkpointable and FT::Updateable, called by a
//! client, in every form of target.
//!
//! Invariant: the servers know their object under any key, as some ORBs do.

use std::time::Duration;

use quorba_giop::cdr::Writer;
use quorba_giop::context::FT_REQUEST;
use quorba_giop::{Endian, FtRequest, Version};

use super::case::{ATTACKER, Case, Field};
use super::wire::{Answer, RequestFields, Wire, request, request_to};

const OPERATIONS: [&str; 4] = ["get_state", "set_state", "get_update", "set_update"];
const KEYS: [&[u8]; 3] = [b"o", b"bank/bank/o", b""];
const WITHIN: Duration = Duration::from_secs(5);
/// What a stranger would like the state to be.
const PLANTED: &[u8] = b"4000000000";

pub(super) const CASES: &[Case] = &[Case::of("state-operations", state_operations)];

fn state_operations(field: &mut Field<'_>) -> Result<(), String> {
    let mut forms = Vec::new();
    for operation in OPERATIONS {
        for key in KEYS {
            let shown = String::from_utf8_lossy(key);
            for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
                let form = format!("{operation} of {shown:?}, GIOP {version}");
                let aim = RequestFields { version, key, operation, ..RequestFields::default() };
                forms.push((form, request_to(&aim, argument)));
            }
            for kind in [PROFILE, REFERENCE] {
                let form = format!("{operation} of {shown:?} by target {kind}");
                forms.push((form, addressed(kind, key, operation)));
            }
        }
        forms.push((format!("{operation} by a client's name"), named(operation)));
        let quick = RequestFields { operation, expects: false, ..RequestFields::default() };
        forms.push((format!("{operation}, oneway"), request_to(&quick, argument)));
    }
    let mut executed = Vec::new();
    for (form, octets) in &forms {
        let to = field.stage.gateway(0);
        let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
        let within = if form.ends_with("oneway") { Duration::from_millis(50) } else { WITHIN };
        match wire.call(2, octets, within) {
            Answer::Results(_) => executed.push(form.clone()),
            Answer::Silence if !form.ends_with("oneway") => {
                field.fault(format!("{form}: no answer"));
            }
            _ => {}
        }
    }
    field.note(format!("{} forms", forms.len()));
    if !executed.is_empty() {
        let first: Vec<_> = executed.iter().take(3).cloned().collect();
        field.fault(format!("{} forms are executed: {first:?}", executed.len()));
    }
    for index in 0..super::stage::NODES {
        let count = request(2, "count", true, |_| {});
        let to = field.stage.gateway(index);
        let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
        if let Answer::Results(octets) = wire.call(2, &count, WITHIN)
            && octets.first_chunk().is_some_and(|head| u32::from_le_bytes(*head) > 3_000_000_000)
        {
            field.fault("the state is what a stranger has set it to");
            break;
        }
    }
    Ok(())
}

fn argument(out: &mut Writer) {
    out.write_octets(PLANTED);
}

fn named(operation: &str) -> Vec<u8> {
    let name = FtRequest {
        client_id: b"a thief".to_vec(),
        retention_id: 1,
        expiration_time: i64::MAX as u64,
    };
    let name = name.encode(Endian::Little);
    let contexts = [(FT_REQUEST, name.as_slice())];
    request_to(
        &RequestFields { operation, contexts: &contexts, ..RequestFields::default() },
        argument,
    )
}

/// Kinds of targets (GIOP §15.4.2.2).
const PROFILE: u16 = 1;
const REFERENCE: u16 = 2;

/// A request by profile or by reference, written octet by octet.
fn addressed(kind: u16, key: &[u8], operation: &str) -> Vec<u8> {
    let mut profile = Writer::encapsulation(Endian::Little);
    profile.write_raw(&[1, 2]);
    profile.write_string(b"127.0.0.1");
    profile.write_u16(1);
    profile.write_octets(key);
    profile.write_u32(0);
    let profile = profile.finish();
    let mut out = Writer::new(Endian::Little);
    out.write_raw(b"GIOP");
    out.write_raw(&[1, 2, 1, 0, 0, 0, 0, 0]);
    out.write_u32(2);
    out.write_raw(&[3, 0, 0, 0]);
    out.write_u16(kind);
    if kind == REFERENCE {
        out.write_u32(0);
        out.write_string(b"IDL:X:1.0");
        out.write_u32(1);
    }
    out.write_u32(0);
    out.write_octets(&profile);
    out.write_string(operation.as_bytes());
    out.write_u32(0);
    out.align(8);
    argument(&mut out);
    let mut octets = out.finish();
    let size = octets.len() as u32 - 12;
    octets[8..12].copy_from_slice(&size.to_le_bytes());
    octets
}
