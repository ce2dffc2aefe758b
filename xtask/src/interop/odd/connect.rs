//! Servers that somebody else runs: their nodes can start none, and know of no process.
//!
//! Invariant: dropped, no server is left.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quorba_demo::accounting::{account, read};
use rustix::process::Signal;

use super::super::domain::{self, NODES, Servers};
use super::super::load::{self, Load};
use super::super::{Context, Orb, bank, fleet};
use super::relay::Relay;
use super::story::Story;
use super::{Deed, Setting, deeds};
use crate::place::Place;
use crate::wait;

/// How long a server that was started again may take to be in, and all to be even.
const BACK_TIME_MAX: Duration = Duration::from_secs(20);
/// No server is ended when less than this is left of the load.
const LOAD_LEFT_MIN: Duration = Duration::from_secs(1);

/// The servers, and what is needed to start one again.
struct Outside {
    program: PathBuf,
    folder: PathBuf,
    orb: Orb,
    /// Where they listen.
    ports: Vec<u16>,
    /// Where their nodes reach them.
    doors: Vec<u16>,
    relays: Vec<Relay>,
    processes: Vec<Child>,
}

pub(super) fn run(context: &Context, setting: Setting) -> Result<String, String> {
    let mut outside = Outside::start(context, setting)?;
    let servers = Servers::Elsewhere(outside.addresses());
    let mut story = Story::with_servers(context, setting, servers)?;
    story.increment_everywhere("before")?;
    let told = deeds::newer_idl(&mut story)?;
    story.increment_everywhere("after")?;
    // Nobody took one of them for dead: what they say themselves is what was acknowledged.
    story.fleet.is_whole()?;
    let is_passive = setting.style.ends_with("passive");
    let compare = |story: &Story, ports: &[u16]| {
        // Backups have executed a part of it.
        if is_passive { Ok(()) } else { story.compare(ports) }
    };
    compare(&story, &outside.ports)?;
    if setting.deed == Deed::ConnectActivated {
        for (number, relay) in outside.relays.iter().enumerate() {
            relay.cut();
            story.increment_everywhere(&format!("cut-{number}"))?;
            story.fleet.wait_whole().map_err(|error| format!("cut: {error}"))?;
        }
        compare(&story, &outside.ports)?;
    }
    for (way, with) in [("orderly", Signal::TERM), ("killed", Signal::KILL)] {
        // In the style `active` there is no leader, and it is always the first.
        let index = (story.fleet.leader()? + usize::from(!is_passive && way == "killed")) % NODES;
        let again = |error| format!("{way}: {error}");
        outside.end(index, with)?;
        if setting.deed == Deed::Connect {
            story.increment_everywhere(&format!("{way}-without")).map_err(again)?;
        }
        outside.begin(index)?;
        story.increment_everywhere(&format!("{way}-again")).map_err(again)?;
        // It begins with nothing, so what it has then it was given.
        compare(&story, &outside.ports).map_err(again)?;
        story.fleet.wait_whole().map_err(again)?;
        story.increment_everywhere(&format!("{way}-after")).map_err(again)?;
    }
    if is_passive {
        story.fleet.change_style("active")?;
        story.fleet.wait_whole()?;
    }
    story.compare(&outside.ports)?;
    let acknowledged = story.acknowledged();
    drop(outside);
    story.fleet.end()?;
    Ok(format!("{told}; 2 servers restarted; {acknowledged} acknowledged and there"))
}

/// Under load one server after the other is ended and started again, in either way; then every
/// call of the load is accounted for.
pub(super) fn kills(context: &Context, setting: Setting) -> Result<String, String> {
    let mut outside = Outside::start(context, setting)?;
    let servers = Servers::Elsewhere(outside.addresses());
    let Story { fleet, .. } = Story::with_servers(context, setting, servers)?;
    let load = Load::start(context, Orb::BOTH, &fleet.reference()?, &Place::Here)?;
    load.wait_under_way()?;
    let mut kills = 0;
    while kills == 0 || load.time_left() > LOAD_LEFT_MIN {
        let index = kills % NODES;
        outside.end(index, if kills % 2 == 0 { Signal::TERM } else { Signal::KILL })?;
        outside.begin(index)?;
        kills += 1;
        wait::until("the server has the state, and is in", BACK_TIME_MAX, || {
            let executed = read::executed(outside.ports[index]).map_err(|why| why.to_string())?;
            if executed == 0 {
                return Err(format!("{} has nothing", index + 1));
            }
            fleet.is_whole()
        })?;
    }
    let (recordings, figures) = load.finish()?;
    if setting.style.ends_with("passive") {
        fleet.change_style("active")?;
        fleet.wait_whole()?;
    }
    let replicas = wait::until("the servers are even", BACK_TIME_MAX, || {
        let read = |port: &u16| read::replica(&port.to_string(), *port);
        let replicas: Result<Vec<_>, _> = outside.ports.iter().map(read).collect();
        let replicas = replicas.map_err(|why| why.to_string())?;
        let are_even = replicas.windows(2).all(|pair| pair[0].books == pair[1].books);
        if are_even { Ok(replicas) } else { Err("they differ".into()) }
    })?;
    drop(outside);
    fleet.end()?;
    let account = account(&recordings, &replicas);
    let told = bank::told(kills, &account, &figures);
    if account.is_clean() { Ok(told) } else { Err(format!("{told}\n{:?}", account.differences)) }
}

impl Outside {
    /// Where their nodes reach them.
    fn addresses(&self) -> Vec<SocketAddr> {
        let address = |door: &u16| SocketAddr::from((Ipv4Addr::LOCALHOST, *door));
        self.doors.iter().map(address).collect()
    }

    fn start(context: &Context, setting: Setting) -> Result<Self, String> {
        let program = load::program(&context.folder, setting.server, "server")?;
        let first = domain::more_ports()?;
        let ports: Vec<u16> = (first..).take(NODES).collect();
        let (mut doors, mut relays) = (ports.clone(), Vec::new());
        if [Deed::ConnectActivated, Deed::ConnectKills { activated: true }].contains(&setting.deed)
        {
            doors.iter_mut().for_each(|door| *door += NODES as u16);
            let pairs = doors.iter().zip(&ports);
            let started = pairs.map(|(door, port)| Relay::start(*door, *port));
            let started: io::Result<Vec<_>> = started.collect();
            relays = started.map_err(|error| error.to_string())?;
        }
        let (folder, orb) = (context.folder.clone(), setting.server);
        let processes = Vec::new();
        let mut outside = Self { program, folder, orb, ports, doors, relays, processes };
        for index in 0..NODES {
            let process = outside.spawn(index)?;
            outside.processes.push(process);
        }
        Ok(outside)
    }

    fn spawn(&self, index: usize) -> Result<Child, String> {
        let log = self.folder.join(format!("outside-{}.log", index + 1));
        let told = |error| format!("{}: {error}", log.display());
        let log = File::options().create(true).append(true).open(&log).map_err(told)?;
        let mut command = Command::new(&self.program);
        let address = format!("127.0.0.1:{}", self.ports[index]);
        match self.orb {
            Orb::Omniorb => command.args(["-ORBendPoint", &format!("giop:tcp:{address}")]),
            Orb::Jacorb => command.args(["--listen", &address]),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map_err(|error| format!("{}: {error}", self.program.display()))
    }

    /// Ends a server, and it is gone.
    fn end(&mut self, index: usize, with: Signal) -> Result<(), String> {
        let process = &mut self.processes[index];
        fleet::signal(process.id(), with);
        process.wait().map(drop).map_err(|error| error.to_string())
    }

    /// Starts one again that has ended.
    fn begin(&mut self, index: usize) -> Result<(), String> {
        self.processes[index] = self.spawn(index)?;
        Ok(())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It cannot fail but for a process that has ended already.
            let _killed = process.kill();
            let _status = process.wait();
        }
    }
}
