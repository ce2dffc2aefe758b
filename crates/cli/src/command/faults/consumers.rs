//! `quorba faults --consumers`: who is connected to the fault notifier, and who was cut off.
//!
//! What it is not: a way to cut anybody off. Invariant: who is connected stands before who was.

use quorba_corba::Object;
use quorba_idl::quorba::{CutOff, FaultConsumer, FaultDeliveryStub};
use quorba_orb::Client;
use serde_json::json;

use super::{PAGE, address, no_reply};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::text::table;

pub(super) fn show(context: &Context, client: &mut Client) -> Result<Exit, Failure> {
    let (connected, cut_off) = ask(client)?;
    if context.is_json() {
        for one in &connected {
            context.print_json(&json!({
                "connection": one.consumer,
                "consumer": place(&one.reference),
                "takes_sequences": one.is_batch,
                "form": form(one),
                "waiting": one.waiting,
                "cut_off": null,
            }))?;
        }
        for one in &cut_off {
            context.print_json(&json!({
                "connection": one.consumer,
                "consumer": place(&one.reference),
                "cut_off": one.why,
                "was_told": one.is_told,
            }))?;
        }
        return Ok(Exit::Ok);
    }
    let known = |object: &Object| place(object).unwrap_or_else(|| "unknown".to_owned());
    let mut rows = Vec::new();
    for one in &connected {
        let (number, waiting) = (one.consumer.to_string(), one.waiting.to_string());
        let form = form(one).to_owned();
        rows.push(vec![number, known(&one.reference), form, waiting, "connected".to_owned()]);
    }
    for one in &cut_off {
        let (number, state) = (one.consumer.to_string(), format!("cut off: {}", one.why));
        rows.push(vec![number, known(&one.reference), String::new(), String::new(), state]);
    }
    context.print(&table(&[">CONNECTION", "CONSUMER", "FORM", ">WAITING", "STATE"], rows))?;
    Ok(Exit::Ok)
}

fn ask(client: &mut Client) -> Result<(Vec<FaultConsumer>, Vec<CutOff>), Failure> {
    let mut connected: Vec<FaultConsumer> = Vec::new();
    loop {
        let after = connected.last().map_or(0, |one| one.consumer);
        let page = FaultDeliveryStub(client).consumers(&after, &PAGE).map_err(no_reply)?;
        let is_last = page.len() < PAGE as usize;
        connected.extend(page);
        if is_last {
            break;
        }
    }
    let cut_off = FaultDeliveryStub(client).cut_offs().map_err(no_reply)?;
    Ok((connected, cut_off))
}

/// In whose form it gets reports.
const fn form(one: &FaultConsumer) -> &'static str {
    if one.is_of_tao { "TAO" } else { "standard" }
}

/// Where a consumer is; nothing if its reference is not known any more.
fn place(object: &Object) -> Option<String> {
    object.0.endpoints().first().map(address)
}
