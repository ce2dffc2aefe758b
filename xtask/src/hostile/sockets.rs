//! Attacks on connections and descriptors: clients that say nothing, at the gateway and at the
//! admin API, and nodes that have few descriptors.
//!
//! Invariant: no attacker has more connections from one address than one address may have.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::case::{Case, Field};
use super::honest;
use super::stage::{NODES, Setup, node_name};
use super::wire::{Answer, Wire, request};

/// Addresses that attack, and connections of each.
const ADDRESSES: u8 = 10;
const CONNECTIONS: usize = 100;
/// Connections to the admin API.
const ADMIN_CONNECTIONS: usize = 200;
/// How long attackers take over their connections to one gateway, at most.
const OPENED_WITHIN: Duration = Duration::from_secs(4);
/// How long a new client may have to wait.
const ADMITTED_WITHIN: Duration = Duration::from_secs(3);
const FEW_FILES: Setup = Setup { files_max: Some(256), ..Setup::PLAIN };

pub(super) const CASES: &[Case] = &[
    Case::of("silent-1000", silent),
    Case { setup: FEW_FILES, ..Case::of("admin-silent-200", admin_silent) },
    Case { setup: FEW_FILES, is_rough: true, ..Case::of("files-256-view-change", few_files) },
];

fn attackers() -> impl Iterator<Item = Ipv4Addr> {
    (0..ADDRESSES).map(|index| Ipv4Addr::new(127, 0, 0, 10 + index))
}

/// Opens silent connections to a gateway, as many as it takes in time.
fn open_silent(to: SocketAddr, of_each: usize) -> Vec<Wire> {
    let until = Instant::now() + OPENED_WITHIN;
    let each = attackers().flat_map(|from| (0..of_each).map(move |_| from));
    let open = |from| if Instant::now() < until { Wire::connect(from, to).ok() } else { None };
    each.filter_map(open).collect()
}

/// A client that was not there before calls.
fn new_client(field: &mut Field<'_>, index: usize, when: &str) {
    let (to, until) = (field.stage.gateway(index), Instant::now() + ADMITTED_WITHIN);
    let call = request(2, "count", true, |_| {});
    let last = loop {
        let last = match Wire::connect(honest::ADDRESS, to) {
            Ok(mut wire) => wire.call(2, &call, ADMITTED_WITHIN),
            Err(error) => Answer::Odd(error.to_string()),
        };
        if matches!(last, Answer::Results(_)) || Instant::now() > until {
            break last;
        }
        thread::sleep(Duration::from_millis(50));
    };
    if !matches!(last, Answer::Results(_)) {
        let node = node_name(index);
        field.fault(format!("{when}, a new client at {node}: {last}"));
    }
}

fn silent(field: &mut Field<'_>) -> Result<(), String> {
    let until = field.until();
    let wires = open_silent(field.stage.gateway(0), CONNECTIONS);
    field.note(format!("{} silent connections were made", wires.len()));
    new_client(field, 0, "beside the silent ones");
    thread::sleep(until.saturating_duration_since(Instant::now()));
    new_client(field, 0, "after a while beside them");
    Ok(())
}

fn admin_silent(field: &mut Field<'_>) -> Result<(), String> {
    let until = field.until();
    let mut silent = Vec::new();
    for _ in 0..ADMIN_CONNECTIONS {
        let within = Duration::from_millis(200);
        // One that is refused is none.
        silent.extend(TcpStream::connect_timeout(&field.stage.admin(0), within).ok());
    }
    field.note(format!("{} connections were made", silent.len()));
    thread::sleep(until.saturating_duration_since(Instant::now()));
    let status = field.stage.quorba(&["status"])?;
    if !status.status.success() {
        let told = String::from_utf8_lossy(&status.stdout).trim().to_owned();
        field.fault(format!("quorba status fails beside silent connections: {told}"));
    }
    new_client(field, 0, "beside silent connections to the admin API");
    Ok(())
}

/// All nodes have few descriptors, as many connections as they take, and lose one of themselves.
fn few_files(field: &mut Field<'_>) -> Result<(), String> {
    let until = field.until();
    let gateways = field.stage.gateways();
    let wires: Vec<Wire> =
        gateways.iter().flat_map(|gateway| open_silent(*gateway, CONNECTIONS / 2)).collect();
    field.note(format!("{} silent connections were made", wires.len()));
    field.stage.kill(NODES - 1);
    thread::sleep(until.saturating_duration_since(Instant::now()));
    for fault in field.stage.ended() {
        field.fault(format!("at the view change: {fault}"));
    }
    for index in 0..NODES - 1 {
        new_client(field, index, "after the view change");
    }
    drop(wires);
    field.stage.start_node(NODES - 1)?;
    field.stage.wait_whole()
}
