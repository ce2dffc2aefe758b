//! One block: start what a configuration needs, let the client make its calls, end it all.
//!
//! What it is not: an opinion on what is measured; that is the plan's.
//!
//! Invariants: when the calls begin, no process of another configuration is there, so that the
//! difference of two configurations is theirs; what a process used is read right before the
//! client begins and right after it has ended; nothing of a block is left behind.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorba_net::free_ports;
use quorba_node::status::Status;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;

use crate::bare::{ClientFigures, FRAME_LEN_MAX};
use crate::domain::{self, Domain, Servers};
use crate::error::LabError;
use crate::peer::Peer;
use crate::placement::{Placement, Setting};
use crate::plan::{Chain, Configuration, Plan};
use crate::record::{Block, ProcessShare};
use crate::ring_share::{ring_share, to_f64};
use crate::stats::Percentiles;
use crate::usage::{self, MachineUsage, Usage};
use crate::zhao::Trace;

/// What a block takes at the longest, beside its calls.
const BLOCK_WITHIN: Duration = Duration::from_secs(30);
/// What a call takes at the longest on average; else something is wrong.
const CALL_WITHIN: Duration = Duration::from_millis(20);
/// How often a running client is looked at for other reasons than its end.
const LOOK: Duration = Duration::from_millis(500);
/// Octets of a GIOP request beside its 256 longs, and nearly those of the reply.
const GIOP_OVERHEAD_LEN: usize = 72;
/// The omniORB programs that every configuration with an ORB uses.
const ECHO_CLIENT: &str = "echo_client";
const ECHO_SERVER: &str = "echo_server";
/// Servers of a group of bare processes, as many as the plans' groups have.
const BARE_MEMBERS: usize = 3;

/// What a block has measured.
pub(crate) struct Measured {
    /// Its figures.
    pub(crate) block: Block,
    /// The time of every call in nanoseconds, in the order of the calls.
    pub(crate) samples_ns: Vec<u64>,
    /// What the nodes recorded, if they were asked to.
    pub(crate) trace: Option<Trace>,
}

/// What all blocks of a run share.
pub(crate) struct Bench<'a> {
    /// This very program: nodes and bare peers are started with it.
    pub(crate) program: PathBuf,
    /// Where the echo programs are; empty if the plan needs none.
    pub(crate) echo_dir: PathBuf,
    pub(crate) plan: &'a Plan,
    /// Set when the user wants it to end.
    pub(crate) interrupted: &'a AtomicBool,
}

/// The processes of a configuration, and what asks them.
struct Stand {
    client: Command,
    domain: Option<Domain>,
    /// Kept so that they are ended with it.
    _peers: Vec<Peer>,
    /// Whose use of the CPU counts, besides the client's.
    watched: Vec<(String, u32)>,
    samples: PathBuf,
    folder: TempDir,
}

/// Readings before and after the calls.
struct Reading {
    processes: Vec<Usage>,
    machine: MachineUsage,
    own: Usage,
    at: Instant,
}

impl Bench<'_> {
    /// Runs a block.
    pub(crate) fn run(
        &self,
        configuration: &Configuration,
        setting: Setting,
        round: u32,
    ) -> Result<Measured, String> {
        let placement =
            Placement::enter(setting, &self.program).map_err(|error| error.to_string())?;
        let mut stand = self.stand(configuration)?;
        let rings_before = stand.statuses()?;
        let before = stand.read(&placement)?;
        let (figures, client) = self.run_client(&mut stand)?;
        let after = stand.read(&placement)?;
        let rings_after = stand.statuses()?;
        let samples_ns = read_samples(&stand.samples)?;
        if samples_ns.len() as u64 != figures.calls || figures.calls != u64::from(self.plan.calls) {
            return Err(format!("the client wrote {} samples", samples_ns.len()));
        }
        let latency = Percentiles::of(&samples_ns).ok_or("no samples")?;
        let mut block = Block {
            configuration: configuration.name.clone(),
            setting,
            round,
            calls: figures.calls,
            latency,
            calls_per_s: figures.calls_per_s,
            cpu_us: 0.0,
            sleeps: 0.0,
            processes: self.shares(&stand.watched, &before, &after, (&figures, client)),
            elapsed_ms: 0.0,
            others_percent: 0.0,
            stolen_percent: 0.0,
            ring: ring_share(&rings_before, &rings_after, self.served_calls()),
        };
        block.cpu_us = block.processes.iter().map(|one| one.user_us + one.system_us).sum();
        block.sleeps = block.processes.iter().map(|one| one.sleeps).sum();
        note_others(&mut block, &before, &after, client);
        let trace = match &configuration.repeats {
            Some(_) => Some(self.trace(configuration, stand)?),
            None => None,
        };
        Ok(Measured { block, samples_ns, trace })
    }

    /// Ends the nodes, and takes what they have recorded.
    fn trace(&self, configuration: &Configuration, stand: Stand) -> Result<Trace, String> {
        let Chain::Domain(shape) = &configuration.chain else {
            unreachable!("a plan lets domains record only");
        };
        let domain = stand.domain.ok_or("there was no domain")?;
        let recorded = domain.end(stand.folder.path())?;
        let names = domain::names_from(shape.client - 1);
        Trace::cut(&recorded, &names, self.plan.warm_up as usize, self.plan.calls as usize)
    }

    fn stand(&self, configuration: &Configuration) -> Result<Stand, String> {
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let stand = match &configuration.chain {
            Chain::Tcp { relays } => self.stand_tcp(*relays, folder),
            Chain::Udp { processes } => self.stand_udp(*processes, folder),
            Chain::Direct => self.stand_direct(configuration, folder),
            Chain::BareGroup { server_socket } => {
                self.stand_bare_group(configuration, *server_socket, folder)
            }
            Chain::Domain(shape) => {
                let server = self.echo_dir.join(ECHO_SERVER);
                let records = configuration.repeats.is_some();
                let servers = Servers::Echo(&server);
                let domain = Domain::start(shape, &self.program, servers, folder.path(), records)?;
                let mut watched: Vec<_> =
                    domain.processes().map(|(name, pid)| (name.to_owned(), pid)).collect();
                let servers = domain::servers(&domain.statuses()?);
                watched.extend(servers.into_iter().map(|server| (server.name, server.pid)));
                let mut client = self.echo_client(configuration, domain.gateway(), folder.path());
                client.args(["--think-us", &configuration.think_us.to_string()]);
                client.args(["--think-spread-us", &configuration.think_spread_us.to_string()]);
                return Ok(Stand::new(client, Vec::new(), folder).with(watched, domain));
            }
        };
        stand.map_err(|error| error.to_string())
    }

    fn stand_tcp(&self, relays: usize, folder: TempDir) -> Result<Stand, LabError> {
        let ports = find_ports(relays + 1)?;
        let mut to = ports[0].to_string();
        let arguments = ["tcp-echo", "--port", &to];
        let mut peers = vec![Peer::start("server", &self.program, &arguments)?];
        for (index, port) in ports[1..].iter().enumerate() {
            let port = port.to_string();
            let arguments = ["tcp-relay", "--port", &port, "--to", &to];
            let name = format!("relay {}", index + 1);
            peers.push(Peer::start(&name, &self.program, &arguments)?);
            to = port;
        }
        let client = self.bare_client("tcp-client", 0, &to, folder.path());
        Ok(Stand::new(client, peers, folder))
    }

    fn stand_udp(&self, processes: usize, folder: TempDir) -> Result<Stand, LabError> {
        // One port each; the client's is the last, and its datagrams go to the first.
        let ports = find_ports(processes)?;
        let mut peers = Vec::new();
        for (index, pair) in ports.windows(2).enumerate() {
            let [port, to] = [pair[0].to_string(), pair[1].to_string()];
            let arguments = ["udp-forward", "--port", &port, "--to", &to];
            let name = format!("peer {}", index + 1);
            peers.push(Peer::start(&name, &self.program, &arguments)?);
        }
        let own = ports[processes - 1];
        let client = self.bare_client("udp-client", own, &ports[0].to_string(), folder.path());
        Ok(Stand::new(client, peers, folder))
    }

    fn stand_direct(
        &self,
        configuration: &Configuration,
        folder: TempDir,
    ) -> Result<Stand, LabError> {
        let port = find_ports(1)?[0];
        let peers = vec![self.echo_server("server", &format!("giop:tcp:127.0.0.1:{port}"), &[])?];
        let client = self.echo_client(configuration, port, folder.path());
        Ok(Stand::new(client, peers, folder))
    }

    fn stand_bare_group(
        &self,
        configuration: &Configuration,
        server_socket: bool,
        folder: TempDir,
    ) -> Result<Stand, LabError> {
        let ports = find_ports(1 + 2 * BARE_MEMBERS)?;
        let (rings, servers) = ports[1..].split_at(BARE_MEMBERS);
        let mut doors = Vec::new();
        let mut echoes = Vec::new();
        for (index, port) in servers.iter().enumerate() {
            let path = folder.path().join(format!("{}.sock", index + 1)).display().to_string();
            let end_point = match server_socket {
                true => format!("giop:unix:{path}"),
                false => format!("giop:tcp:127.0.0.1:{port}"),
            };
            // As the members of a pipelined group.
            let options = ["-ORBmaxServerThreadPerConnection", "1"];
            echoes.push(self.echo_server(&format!("s:n{}", index + 1), &end_point, &options)?);
            doors.push(if server_socket { path } else { port.to_string() });
        }
        let rings: Vec<String> = rings.iter().map(u16::to_string).collect();
        let port = ports[0].to_string();
        let mut arguments = vec!["group-gateway", "--port", &port, "--ring", &rings[0]];
        arguments.extend(["--server", &doors[0]]);
        arguments.extend(rings[1..].iter().flat_map(|ring| ["--follower", ring]));
        // Ended in this order: nobody misses who is still there.
        let mut peers = vec![Peer::start("n1", &self.program, &arguments)?];
        for index in 1..BARE_MEMBERS {
            let (ring, door) = (rings[index].as_str(), doors[index].as_str());
            let gateway = rings[0].as_str();
            let arguments =
                ["group-follower", "--ring", ring, "--server", door, "--gateway", gateway];
            let name = format!("n{}", index + 1);
            peers.push(Peer::start(&name, &self.program, &arguments)?);
        }
        peers.append(&mut echoes);
        let client = self.echo_client(configuration, ports[0], folder.path());
        Ok(Stand::new(client, peers, folder))
    }

    fn echo_server(&self, name: &str, end_point: &str, more: &[&str]) -> Result<Peer, LabError> {
        let mut server = Command::new(&self.program);
        // Through this program, so that the server ends when we do, however that happens.
        server.arg("exec-server").arg(process::id().to_string());
        server.arg(self.echo_dir.join(ECHO_SERVER));
        server.args(["-ORBendPoint", end_point]).args(more).stdin(Stdio::null());
        Peer::start_ready(name, &mut server)
    }

    fn echo_client(&self, configuration: &Configuration, port: u16, folder: &Path) -> Command {
        let longs = configuration.longs.unwrap_or(self.plan.longs);
        let mut command = Command::new(self.echo_dir.join(ECHO_CLIENT));
        command.arg("--ref").arg(format!("corbaloc:iiop:1.2@127.0.0.1:{port}/echo"));
        command.args(["--longs", &longs.to_string()]);
        command.args(["--clients", &configuration.clients.to_string()]);
        self.counts(&mut command, folder);
        command
    }

    fn bare_client(&self, role: &str, own_port: u16, to: &str, folder: &Path) -> Command {
        let octets = (self.plan.longs as usize * 4 + GIOP_OVERHEAD_LEN).min(FRAME_LEN_MAX);
        let mut command = Command::new(&self.program);
        command.args(["lab", "peer", role, "--to", to, "--port", &own_port.to_string()]);
        command.args(["--octets", &octets.to_string()]);
        self.counts(&mut command, folder);
        command
    }

    fn counts(&self, command: &mut Command, folder: &Path) {
        command.args(["--calls", &self.plan.calls.to_string()]);
        command.args(["--warm-up", &self.plan.warm_up.to_string()]);
        command.arg("--samples").arg(folder.join("samples"));
    }

    fn run_client(&self, stand: &mut Stand) -> Result<(ClientFigures, Usage), String> {
        let [out, log] = ["client.out", "client.log"].map(|name| stand.folder.path().join(name));
        let open = |path: &Path| File::create(path).map_err(|error| error.to_string());
        stand.client.stdin(Stdio::null()).stdout(open(&out)?).stderr(open(&log)?);
        let mut client = stand.client.spawn().map_err(|error| {
            format!("{} cannot be started: {error}", stand.client.get_program().to_string_lossy())
        })?;
        let ended = self.await_end(&client, stand);
        // It has ended and is not waited for yet, so its figures can still be read.
        let used = usage::of_process(client.id());
        if ended.is_err() {
            let _gone = client.kill();
        }
        let status = client.wait().map_err(|error| error.to_string())?;
        ended?;
        if !status.success() {
            let said = fs::read_to_string(&log).unwrap_or_default();
            return Err(format!("the client ended with {status}: {}", said.trim()));
        }
        let line = fs::read(&out).map_err(|error| error.to_string())?;
        let figures = serde_json::from_slice(&line)
            .map_err(|error| format!("the client's figures cannot be read: {error}"))?;
        Ok((figures, used.map_err(|error| error.to_string())?))
    }

    /// Waits without using a core, which is somebody's who is measured.
    fn await_end(&self, client: &Child, stand: &mut Stand) -> Result<(), String> {
        let calls = self.plan.calls.saturating_add(self.plan.warm_up);
        let deadline = Instant::now() + BLOCK_WITHIN + CALL_WITHIN.saturating_mul(calls);
        let handle = pidfd_open(Pid::from_child(client), PidfdFlags::empty());
        let handle = handle.map_err(|error| format!("the client cannot be watched: {error}"))?;
        let look = Timespec::try_from(LOOK).expect("a short time");
        loop {
            let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&look));
            if ended == Ok(1) {
                return Ok(());
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            if let Some(death) = stand.domain.as_mut().and_then(Domain::death) {
                return Err(death);
            }
            if Instant::now() >= deadline {
                return Err(format!("the client has not ended; {calls} calls took too long"));
            }
        }
    }

    /// All but the client have served the calls that do not count as well.
    fn served_calls(&self) -> f64 {
        f64::from(self.plan.calls) + f64::from(self.plan.warm_up)
    }

    fn shares(
        &self,
        watched: &[(String, u32)],
        before: &Reading,
        after: &Reading,
        (figures, client): (&ClientFigures, Usage),
    ) -> Vec<ProcessShare> {
        let calls = self.served_calls();
        let share = |name: &str, used: Usage| ProcessShare {
            name: name.to_owned(),
            user_us: to_f64(used.user_us) / calls,
            system_us: to_f64(used.system_us) / calls,
            sleeps: to_f64(used.sleeps) / calls,
        };
        let mut first = share("client", client);
        // Its start would count as well, so its own figure is taken; /proc has the proportion.
        let total_us = first.user_us + first.system_us;
        let system = if total_us > 0.0 { first.system_us / total_us } else { 0.5 };
        first.system_us = figures.client_cpu_us * system;
        first.user_us = figures.client_cpu_us - first.system_us;
        let used = before.processes.iter().zip(&after.processes);
        let others = watched.iter().zip(used);
        let others = others.map(|((name, _), (before, after))| share(name, after.since(*before)));
        std::iter::once(first).chain(others).collect()
    }
}

impl Stand {
    fn new(client: Command, peers: Vec<Peer>, folder: TempDir) -> Self {
        let watched = peers.iter().map(|peer| (peer.name.clone(), peer.pid())).collect();
        let samples = folder.path().join("samples");
        Self { client, domain: None, _peers: peers, watched, samples, folder }
    }

    fn with(self, watched: Vec<(String, u32)>, domain: Domain) -> Self {
        Self { watched, domain: Some(domain), ..self }
    }

    fn statuses(&self) -> Result<Vec<Status>, String> {
        self.domain.as_ref().map_or(Ok(Vec::new()), Domain::statuses)
    }

    fn read(&self, placement: &Placement) -> Result<Reading, String> {
        let read = |(name, pid): &(String, u32)| {
            usage::of_process(*pid).map_err(|error| format!("{name} is gone: {error}"))
        };
        let mut own = usage::of_process(process::id()).map_err(|error| error.to_string())?;
        for pid in placement.spinners() {
            let spinner = usage::of_process(pid).map_err(|error| error.to_string())?;
            own.user_us += spinner.user_us;
            own.system_us += spinner.system_us;
        }
        Ok(Reading {
            processes: self.watched.iter().map(read).collect::<Result<_, _>>()?,
            machine: usage::of_machine().map_err(|error| error.to_string())?,
            own,
            at: Instant::now(),
        })
    }
}

/// Notes what the machine did in the meantime that was not of the run.
fn note_others(block: &mut Block, before: &Reading, after: &Reading, client: Usage) {
    let elapsed_us = after.at.duration_since(before.at).as_secs_f64() * 1e6;
    block.elapsed_ms = elapsed_us / 1e3;
    let all_us = elapsed_us * to_f64(crate::placement::cores_online() as u64);
    let processes = before.processes.iter().zip(&after.processes);
    let ours = processes
        .map(|(before, after)| after.since(*before))
        .chain([after.own.since(before.own), client])
        .map(|used| used.user_us + used.system_us)
        .sum::<u64>();
    let busy_us = after.machine.busy_us.saturating_sub(before.machine.busy_us);
    let stolen_us = after.machine.stolen_us.saturating_sub(before.machine.stolen_us);
    block.others_percent = to_f64(busy_us.saturating_sub(ours)) / all_us * 100.0;
    block.stolen_percent = to_f64(stolen_us) / all_us * 100.0;
}

pub(crate) fn read_samples(path: &Path) -> Result<Vec<u64>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("no samples: {error}"))?;
    text.lines().map(|line| line.parse().map_err(|_| format!("no sample: {line:?}"))).collect()
}

fn find_ports(count: usize) -> Result<Vec<u16>, LabError> {
    free_ports(count).map_err(LabError::system("find free ports"))
}
