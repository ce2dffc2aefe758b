//! A site that has omniEvents: its events come to a channel of the domain, and those of the domain
//! to omniEvents, by `quorba events bridge`; its suppliers and consumers stay as they are.
//!
//! What it is not: a promise that omniEvents loses nothing. Invariant: the domain's leader is
//! killed while events pass, and each comes to the other side all the same.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::{COUNT, Clients, Role, TIME_MAX, channels};
use crate::interop::{Context, Orb, Verdict, domain, fleet};
use crate::{wait, workspace};

/// When so many events have passed the domain's leader is killed.
const KILL_AFTER: usize = COUNT / 3;

/// A process that ends with this.
struct Process(Child);

impl Process {
    fn start(name: &str, command: &mut Command, folder: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let log = File::create(folder.join(format!("{name}.log"))).map_err(failed)?;
        let out = log.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(out).stderr(log);
        Ok(Self(command.spawn().map_err(failed)?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _status = self.0.wait();
    }
}

pub(in crate::interop) fn run(context: &Context) -> Verdict {
    let here = ["omniEvents", "eventc"].iter().all(|name| workspace::program(name).is_some());
    if !here {
        return Verdict::Skipped("no omniEvents here: cargo xtask deps installs it".into());
    }
    run_in(context).map_or_else(Verdict::Failed, Verdict::Passed)
}

/// Starts omniEvents; the reference of a channel that it was made to have.
fn omni_events(folder: &Path, name: &str) -> Result<(Process, String), String> {
    let port = domain::free_ports(1)?;
    let state = folder.join(name);
    std::fs::create_dir_all(&state).map_err(|error| format!("{}: {error}", state.display()))?;
    let mut command = Command::new("omniEvents");
    command.args(["-f", "-p", &port.to_string(), "-l"]).arg(&state);
    let process = Process::start(name, &mut command, folder)?;
    let factory = format!("corbaloc::127.0.0.1:{port}/omniEvents");
    let reference = wait::until("omniEvents makes a channel", TIME_MAX, || {
        let mut command = Command::new("eventc");
        // It drops what is pushed while more waits than this, 1,024 where nothing is said.
        command.args(["-i", "plant", "-q", "10000", "-v", &factory]);
        // There is no naming service; it goes on without.
        command.args(["-ORBInitRef", "NameService=corbaloc::127.0.0.1:1/NameService"]);
        let made = command.output().map_err(|error| format!("eventc: {error}"))?;
        let said = String::from_utf8_lossy(&made.stdout).into_owned();
        let found = said.lines().find(|line| line.starts_with("IOR:")).map(str::to_owned);
        found.ok_or_else(|| format!("eventc says no reference: {}", said.trim()))
    })?;
    Ok((process, reference))
}

fn run_in(context: &Context) -> Result<String, String> {
    let folder = &context.folder;
    let (fleet, channel) = channels(context)?;
    let (from_process, from) = omni_events(folder, "omnievents-from")?;
    let (to_process, to) = omni_events(folder, "omnievents-to")?;
    let bridge = |name, ends: [&str; 2]| {
        let mut command = Command::new(&context.quorba);
        command.args(["events", "bridge"]).args(ends).env("QUORBA_CONFIG", fleet.domain_file());
        Process::start(name, &mut command, folder)
    };
    let clients = Clients::Compiled(Orb::Omniorb);
    let start = |name, words: &[&str]| Role::start((clients, folder), name, words);
    // Both bridges pass on from the start: omniEvents keeps nothing for those that come late.
    let last = start("bridge-last", &["consume", &to])?;
    let middle = start("bridge-middle", &["consume", &channel("sure")])?;
    let into = bridge("bridge-into", [&from, "sure"])?;
    let outwards = bridge("bridge-out", ["sure", &to])?;
    await_bridges(&start, &from, &last)?;
    let count = COUNT.to_string();
    let supplier = start("bridge-supply", &["supply", &from, &count])?;
    middle.wait_for(KILL_AFTER)?;
    fleet::signal(fleet.server(fleet.leader()?)?.pid, Signal::KILL);
    supplier.wait_for(COUNT)?;
    let (through, out) = (middle.check(0)?, last.check(0)?);
    drop((supplier, middle, last, into, outwards, from_process, to_process));
    fleet.wait_whole()?;
    fleet.end()?;
    Ok(format!(
        "{COUNT} events of omniEvents came to the domain and on to another omniEvents, while the \
         leader was killed; {} and {} came again",
        through.again, out.again
    ))
}

/// Pushes the first number until it has come through both bridges.
fn await_bridges(
    start: &impl Fn(&'static str, &[&str]) -> Result<Role, String>,
    from: &str,
    last: &Role,
) -> Result<(), String> {
    wait::until("both bridges pass events on", TIME_MAX, || {
        let mut first = start("bridge-first", &["supply", from, "1"])?;
        first.wait_for_end()?;
        match last.numbers().is_empty() {
            false => Ok(()),
            true => Err("nothing has come through".to_owned()),
        }
    })
}
