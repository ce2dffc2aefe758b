//! A durable group of omniORB servers that nodes start: created on a running domain, used across
//! kills of servers, of nodes and of all nodes, deleted under load, and created anew.

use std::path::Path;
use std::time::Duration;

use quorba_demo::accounting::account;
use quorba_demo::record::{CallRecord, Completed, Outcome, Recording};

use super::super::cluster::Ground;
use super::super::domain::{DomainFile, NODES};
use super::super::fault::{self, Fault};
use super::super::fleet::Fleet;
use super::super::load::{self, Load};
use super::super::{Context, Orb, bank};
use super::GROUP;
use super::operator::Operator;
use crate::place::Place;
use crate::wait;

/// How long servers may take to end whose group is deleted.
const ENDED_TIME_MAX: Duration = Duration::from_secs(20);
const GONE: &str = "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0";

pub(super) fn run(context: &Context) -> Result<String, String> {
    let domain = DomainFile::without_groups(&context.quorba, &context.folder)?;
    let mut fleet = Fleet::start(&context.quorba, &context.folder, GROUP, domain)?;
    let operator = Operator::of(context, &fleet);
    operator.wait_healthy()?;
    create(context, &operator)?;
    fleet.wait_whole()?;
    let told = use_across_kills(context, &operator, &mut fleet)?;
    delete_under_load(context, &operator, &fleet)?;
    operator.json(&["group", "create", GROUP, "--from", "bank.group", "--operation", "third"])?;
    fleet.wait_whole()?;
    let load = Load::named("s", context, [Orb::Omniorb; 2], &fleet.reference()?, &Place::Here)?;
    let (recordings, _) = load.finish()?;
    let second = account(&recordings, &bank::quiet(&fleet, false)?);
    if !second.is_clean() {
        return Err(format!("of the group before: {:?}", second.differences));
    }
    fleet.end()?;
    let requests = second.requests;
    Ok(format!("{told}; deleted under load, and created anew: {requests} calls"))
}

/// The operator does not see the answer, and repeats the command.
fn create(context: &Context, operator: &Operator) -> Result<(), String> {
    let program = load::program(&context.folder, Orb::Omniorb, "server")?.display().to_string();
    let line = [&program, "-ORBendPoint", "giop:tcp:127.0.0.1:{port}"];
    let text = format!(
        "[group.{GROUP}]\nmembers = [\"n1\", \"n2\", \"n3\"]\nserver = {line:?}\ndurable = true\n\
         state_object = \"bank\"\nobject_key = \"bank\"\ntype_id = \"IDL:Bank/Ledger:1.0\"\n"
    );
    let file = context.folder.join("bank.group");
    std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    let words = ["group", "create", GROUP, "--from", "bank.group", "--operation", "first"];
    let (first, again) = (operator.json(&words)?, operator.json(&words)?);
    let is_once = first["id"] == again["id"] && first["existed"] == false;
    if is_once && again["existed"] == true { Ok(()) } else { Err(format!("{first}, {again}")) }
}

fn use_across_kills(
    context: &Context,
    operator: &Operator,
    fleet: &mut Fleet,
) -> Result<String, String> {
    let load = Load::start(context, [Orb::Omniorb; 2], &fleet.reference()?, &Place::Here)?;
    let (every, kills) = (context.kill_every, Fault::Kills { domain: true });
    let faults = fault::disturb(kills, every, fleet, &load, &mut Ground::default())?;
    let (recordings, figures) = load.finish()?;
    fleet.wait_whole()?;
    // Nobody calls while they end: what is there then has come from disks alone.
    (0..NODES).for_each(|node| fleet.kill_node(node));
    (0..NODES).try_for_each(|node| fleet.start_node(node))?;
    operator.wait_healthy()?;
    fleet.wait_whole()?;
    let replicas = bank::quiet(fleet, false)?;
    bank::save(context, &replicas)?;
    let account = account(&recordings, &replicas);
    let told = bank::told(faults + 1, &account, &figures);
    if account.is_clean() { Ok(told) } else { Err(format!("{told}\n{:?}", account.differences)) }
}

/// Clients go on calling what is no longer there.
fn delete_under_load(context: &Context, operator: &Operator, fleet: &Fleet) -> Result<(), String> {
    let servers: Result<Vec<_>, String> = (0..NODES).map(|node| fleet.server(node)).collect();
    let servers = servers?;
    let load = Load::named("d", context, [Orb::Omniorb; 2], &fleet.reference()?, &Place::Here)?;
    load.wait_under_way()?;
    let delete = ["group", "delete", GROUP, "--yes", "--operation", "second"];
    let (first, again) = (operator.json(&delete)?, operator.json(&delete)?);
    if first["existed"] != false || again["existed"] != true {
        return Err(format!("{first}, {again}"));
    }
    let (recordings, _) = load.finish()?;
    recordings.iter().try_for_each(all_were_told)?;
    wait::until("the servers have ended", ENDED_TIME_MAX, || {
        let runs = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
        match servers.iter().map(|server| server.pid).find(runs) {
            Some(pid) => Err(format!("{pid} runs")),
            None => Ok(()),
        }
    })?;
    let late = operator.refused(&["ior", "make", GROUP])?;
    if late.contains(GROUP) { Ok(()) } else { Err(late) }
}

/// Each call was answered, or its caller was told that there is no such object: surely not executed
/// if the call came behind the end, and perhaps if it was under way.
fn all_were_told(recording: &Recording) -> Result<(), String> {
    let is_told = |call: &&CallRecord| call.exception.as_deref() == Some(GONE);
    let is_answered = |call: &&CallRecord| call.outcome == Outcome::Ok;
    let mut calls = recording.records.iter();
    if let Some(call) = calls.find(|call| !is_answered(call) && !is_told(call)) {
        return Err(format!("{}: {call:?}", recording.name));
    }
    // One that wants no reply is told nothing.
    let mut replied = recording.records.iter().filter(|call| call.operation != "note");
    match replied.next_back().filter(is_told) {
        Some(last) if last.completed == Some(Completed::No) => Ok(()),
        _ => Err(format!("{}: the last call was not told", recording.name)),
    }
}
