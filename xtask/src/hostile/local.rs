//! Attacks from the node's own machine: servers that write without end, and a second process of
//! one node.
//!
//! Invariant: what is planted lies in the stage's own folder.

use std::fs;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use super::case::{ATTACKER, Case, Field};
use super::stage::{NODES, Setup, node_name};
use super::watch::folder_bytes;
use super::wire::{Answer, Wire, request};
use crate::wait;

/// What a server writes, in megabytes.
const POURED_MB: u32 = 1024;
/// What a node keeps of that.
const KEPT_BYTES_MAX: u64 = 64 << 20;
const STRAYS: Setup = Setup { has_strays: true, ..Setup::PLAIN };
/// In which time what servers left behind has to end with its node.
const STRAYS_WITHIN: Duration = Duration::from_secs(5);
/// Ports of a second process of a node lie so much higher.
const HIGHER: u16 = 100;
/// In which time that has to end.
const REFUSED_WITHIN_S: &str = "5";

pub(super) const CASES: &[Case] = &[
    Case { is_rough: true, ..Case::of("server-output", output) },
    Case::of("second-process", second_process),
    Case { setup: STRAYS, is_rough: true, ..Case::of("stray-children", strays) },
];

/// All servers write gigabytes; whoever waits for them waits, but disks stay.
fn output(field: &mut Field<'_>) -> Result<(), String> {
    let (until, to, began) = (field.until(), field.stage.gateway(0), Instant::now());
    let mut wire = Wire::connect(ATTACKER, to).map_err(|error| error.to_string())?;
    let pour = request(2, "pour", true, |out| out.write_u32(POURED_MB));
    wire.send(&pour, Duration::from_secs(1)).map_err(|error| error.to_string())?;
    let mut most = [0; NODES];
    // It is over when the server has written all.
    let mut is_over = false;
    while !is_over || Instant::now() < until {
        let answer = wire.answer(2, Duration::from_millis(50));
        is_over = is_over || !matches!(answer, Answer::Silence);
        if Instant::now() > until + OUTPUT_WITHIN {
            break;
        }
        for (index, most) in most.iter_mut().enumerate() {
            *most = folder_bytes(&field.stage.state_dir(index)).max(*most);
        }
        thread::sleep(Duration::from_millis(10));
    }
    // The other nodes' servers may still be at it.
    for gateway in field.stage.gateways() {
        let mut wire = Wire::connect(ATTACKER, gateway).map_err(|error| error.to_string())?;
        let told = wire.call(2, &request(2, "count", true, |_| {}), OUTPUT_WITHIN);
        if !matches!(told, Answer::Results(_)) {
            field.fault(format!("{gateway} behind what its server has written: {told}"));
        }
    }
    field.longest = began.elapsed();
    field.note(format!("{:?} MiB in the state folders", most.map(|bytes| bytes >> 20)));
    for (index, bytes) in most.into_iter().enumerate() {
        if bytes > KEPT_BYTES_MAX {
            let (node, bytes) = (node_name(index), bytes >> 20);
            field.fault(format!("{node} keeps {bytes} MiB of what its server writes"));
        }
    }
    Ok(())
}

/// How long the servers may take to write all.
const OUTPUT_WITHIN: Duration = Duration::from_secs(30);

fn second_process(field: &mut Field<'_>) -> Result<(), String> {
    field.stage.write("second.toml", HIGHER)?;
    let token = field.stage.state_dir(0).join("admin.token");
    let before = fs::read(&token).map_err(|error| format!("{}: {error}", token.display()))?;
    let arguments = ["node", "n1", "--config", "second.toml"];
    let second = field.stage.quorba_within(REFUSED_WITHIN_S, &arguments)?;
    let pid = field.stage.pids()[0].to_string();
    if second.status.success() || second.status.code() == Some(124) {
        field.fault("a second process of n1 with the same state_dir runs");
    } else if !told(&second).contains(&pid) {
        field.fault(format!("it is refused without the first one's pid: {}", told(&second)));
    }
    if fs::read(&token).ok().as_ref() != Some(&before) {
        field.fault("the second process has written over the first one's token");
    }
    let status = field.stage.quorba(&["status"])?;
    if !status.status.success() {
        field.fault(format!("quorba status fails afterwards: {}", told(&status)));
    }
    Ok(())
}

/// Servers start a process in a session of its own; then their nodes are killed.
fn strays(field: &mut Field<'_>) -> Result<(), String> {
    let before = field.stage.strays().len();
    field.note(format!("{before} processes were left behind by servers"));
    if before < NODES {
        return Err(format!("{before} of {NODES} servers have left a process behind"));
    }
    field.stage.kill(NODES - 1);
    let gone = wait::until("what the server left behind has ended", STRAYS_WITHIN, || {
        let left = field.stage.strays().len();
        if left < before { Ok(()) } else { Err(format!("{left} of {before} are left")) }
    });
    if let Err(fault) = gone {
        field.fault(format!("{} was killed: {fault}", node_name(NODES - 1)));
    }
    field.stage.start_node(NODES - 1)?;
    field.stage.wait_whole()
}

fn told(output: &Output) -> String {
    let text = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8_lossy(&text).trim().to_owned()
}
