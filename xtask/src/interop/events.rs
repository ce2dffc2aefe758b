//! The event service of a domain, used by omniORBpy: consumers that are pushed to and that pull,
//! and a supplier, while the process that leads is killed twice, and then its node.
//!
//! What it is not: a test of each operation; `crates/events/tests` has those.
//!
//! Invariant: in a reliable channel each number that was taken comes to every consumer, for the
//! first time in its order.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::domain::DomainFile;
use super::fleet::{self, Fleet};
use super::{Context, Verdict};
use crate::{omniorbpy, wait, workspace};

/// The name of the service, and of its group.
const SERVICE: &str = "events";
/// Events that are pushed.
const COUNT: usize = 1_500;
/// After so many of them something is killed: the process that leads, again, and its node.
const KILLS: [usize; 3] = [300, 600, 900];
/// How long a step may take.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A client with its output in a file; killed when this is dropped.
struct Role {
    name: &'static str,
    child: Child,
    path: PathBuf,
}

impl Drop for Role {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Role {
    fn start(folder: &Path, name: &'static str, words: &[&str]) -> Result<Self, String> {
        let script = workspace::root().join("examples/omniorbpy-events/events.py");
        let mut command = omniorbpy::command(&script).ok_or("no omniORBpy")?;
        let path = folder.join(format!("{name}.out"));
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let out = File::create(&path).map_err(failed)?;
        let err = File::create(folder.join(format!("{name}.err"))).map_err(failed)?;
        command.args(words).stdin(Stdio::null()).stdout(out).stderr(err);
        let role = Self { name, child: command.spawn().map_err(failed)?, path };
        // Who is pulled may give numbers before its call has returned.
        let is_connected = || role.text().lines().any(|line| line == "connected");
        wait::until("a client is connected", TIME_MAX, || match is_connected() {
            true => Ok(()),
            false => Err(format!("{name} is not")),
        })?;
        Ok(role)
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }

    /// What it has printed so far; a line that is not whole yet is none.
    fn numbers(&self) -> Vec<usize> {
        let text = self.text();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn wait_for(&self, count: usize) -> Result<(), String> {
        wait::until("numbers come", TIME_MAX, || {
            let there: BTreeSet<usize> = self.numbers().into_iter().collect();
            match there.len() >= count {
                true => Ok(()),
                false => Err(format!("{} has {} of {count}", self.name, there.len())),
            }
        })
    }

    /// All numbers came, for the first time in their order; how many came again.
    fn check(&self) -> Result<usize, String> {
        self.wait_for(COUNT)?;
        let (numbers, mut seen) = (self.numbers(), BTreeSet::new());
        for number in &numbers {
            if seen.insert(*number) && seen.len() != *number {
                return Err(format!("{}: {number} came as number {}", self.name, seen.len()));
            }
        }
        Ok(numbers.len() - seen.len())
    }
}

pub(super) fn run(context: &Context) -> Verdict {
    if omniorbpy::command(Path::new("")).is_none() {
        return Verdict::Skipped("no omniORBpy here: cargo xtask deps installs it".into());
    }
    run_in(context).map_or_else(Verdict::Failed, Verdict::Passed)
}

fn run_in(context: &Context) -> Result<String, String> {
    let folder = &context.folder;
    let domain = DomainFile::with_service(&context.quorba, folder, SERVICE)?;
    let failed = |error: std::io::Error| format!("{}: {error}", domain.path.display());
    let text = fs::read_to_string(&domain.path).map_err(failed)?;
    let channels = "[service.events.channel.plain]\n\
                    [service.events.channel.sure]\nreliable = true\nretry_ms = 100\n";
    fs::write(&domain.path, text + channels).map_err(failed)?;
    let mut fleet = Fleet::start(&context.quorba, folder, SERVICE, domain)?;
    fleet.wait_whole()?;
    let gateways: Vec<String> =
        fleet.nodes().iter().map(|node| format!("iiop:1.2@{}", node.gateway)).collect();
    let channel = |name: &str| format!("corbaloc:{}/Events/{name}", gateways.join(","));
    let (plain, sure, count) = (channel("plain"), channel("sure"), COUNT.to_string());

    // Without faults: all four kinds at a channel that is not reliable.
    let pushed = Role::start(folder, "plain-consume", &["consume", &plain])?;
    let pulled = Role::start(folder, "plain-pull", &["pull", &plain])?;
    let supplier = Role::start(folder, "plain-supply", &["supply", &plain, "100"])?;
    supplier.wait_for(100)?;
    let source = Role::start(folder, "plain-source", &["source", &plain, "150"])?;
    source.wait_for(150)?;
    pushed.wait_for(150)?;
    pulled.wait_for(150)?;
    drop((pushed, pulled, supplier, source));

    let pushed = Role::start(folder, "sure-consume", &["consume", &sure])?;
    let pulled = Role::start(folder, "sure-pull", &["pull", &sure])?;
    let supplier = Role::start(folder, "sure-supply", &["supply", &sure, &count])?;
    for (number, after) in KILLS.into_iter().enumerate() {
        supplier.wait_for(after)?;
        fleet.wait_whole()?;
        let leader = fleet.leader()?;
        if number + 1 < KILLS.len() {
            fleet::signal(fleet.server(leader)?.pid, Signal::KILL);
        } else {
            fleet.kill_node(leader);
            fleet.start_node(leader)?;
        }
    }
    supplier.wait_for(COUNT)?;
    let again = (pushed.check()?, pulled.check()?);
    drop((pushed, pulled, supplier));
    fleet.wait_whole()?;
    fleet.end()?;
    Ok(format!("{COUNT} events through {} kills, came again: {again:?}", KILLS.len()))
}
