//! The replication manager of a domain, called by a client in omniORB C++ that goes through every
//! operation and exception; again while a process of the manager was killed.
//!
//! What it is not: a test of repairs; `crates/cli/tests/manager.rs` has those.
//!
//! Invariant: what the client finds after a kill is what it would find without.

use std::process::Command;

use rustix::process::Signal;

use super::domain::DomainFile;
use super::fleet::{self, Fleet};
use super::{Context, Verdict};
use crate::examples::Example;

/// The name of the service, and of its group.
const SERVICE: &str = "replication-manager";

pub(super) fn run(context: &Context) -> Verdict {
    run_in(context).map_or_else(Verdict::Failed, Verdict::Passed)
}

fn run_in(context: &Context) -> Result<String, String> {
    let domain = DomainFile::with_manager(&context.quorba, &context.folder, SERVICE)?;
    let fleet = Fleet::start(&context.quorba, &context.folder, SERVICE, domain)?;
    fleet.wait_whole()?;
    let steps = drive(&fleet)?;
    fleet::signal(fleet.server(0)?.pid, Signal::KILL);
    // Not waited for anything: it meets the manager in the middle of it.
    let again = drive(&fleet)?;
    if steps != again {
        return Err(format!("{steps}, and {again} after a kill"));
    }
    fleet.wait_whole()?;
    Ok(format!("{steps}, twice"))
}

/// Runs the client; what it says last.
fn drive(fleet: &Fleet) -> Result<String, String> {
    let program = Example::OmniorbManager.built().join("manager_driver");
    let gateways: Vec<String> =
        fleet.nodes().iter().map(|node| format!("iiop:1.2@{}", node.gateway)).collect();
    let mut command = Command::new(&program);
    command.arg(format!("corbaloc:{}/ReplicationManager", gateways.join(",")));
    command.args(fleet.nodes().iter().map(|node| &node.name));
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let out = String::from_utf8_lossy(&output.stdout);
    let last = out.lines().last().unwrap_or_default().to_owned();
    if output.status.success() {
        return Ok(last);
    }
    Err(format!("{last}: {}", String::from_utf8_lossy(&output.stderr)))
}
