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

use quorba_admin::status::Status;
use quorba_net::free_ports;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;

use crate::bare::{ClientFigures, FRAME_LEN_MAX};
use crate::domain::{self, Domain, Servers};
use crate::error::LabError;
use crate::orb::Orb;
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

/// Calls of a block.
#[derive(Clone, Copy)]
struct Counts {
    /// Measured ones.
    calls: u32,
    /// Before the first that counts.
    warm_up: u32,
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
        let counts = self.counts(configuration);
        let rings_before = stand.statuses()?;
        let before = stand.read(&placement)?;
        let (figures, client) = self.run_client(&mut stand, counts)?;
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
            processes: self.shares(&stand.watched, (&before, &after), (&figures, client), counts),
            elapsed_ms: 0.0,
            others_percent: 0.0,
            stolen_percent: 0.0,
            ring: ring_share(&rings_before, &rings_after, counts.served()),
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
        Trace::cut(
            &recorded,
            &names,
            self.plan.warm_up_of(configuration) as usize,
            self.plan.calls as usize,
        )
    }

    fn stand(&self, configuration: &Configuration) -> Result<Stand, String> {
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary folder: {error}"))?;
        let stand = match &configuration.chain {
            Chain::Tcp { relays } => self.stand_tcp(configuration, *relays, folder),
            Chain::Udp { processes } => self.stand_udp(configuration, *processes, folder),
            Chain::Direct => self.stand_direct(configuration, folder),
            Chain::BareGroup { server_socket } => {
                self.stand_bare_group(configuration, *server_socket, folder)
            }
            Chain::Domain(shape) => {
                let server = configuration.server_orb.server(&self.echo_dir);
                let records = configuration.repeats.is_some();
                let servers = Servers::Echo(configuration.server_orb, &server);
                let domain = Domain::start(shape, &self.program, servers, folder.path(), records)?;
                let mut watched: Vec<_> =
                    domain.processes().map(|(name, pid)| (name.to_owned(), pid)).collect();
                let servers = domain::servers(&domain.statuses()?);
                watched.extend(servers.into_iter().map(|server| (server.name, server.pid)));
                let client = self.echo_client(configuration, domain.gateway(), folder.path());
                return Ok(Stand::new(client, Vec::new(), folder).with(watched, domain));
            }
        };
        stand.map_err(|error| error.to_string())
    }

    fn stand_tcp(
        &self,
        configuration: &Configuration,
        relays: usize,
        folder: TempDir,
    ) -> Result<Stand, LabError> {
        let ports = find_ports(relays + 1)?;
        let mut to = ports[0];
        let arguments = ["tcp-echo", "--port", &to.to_string()];
        let mut peers = vec![Peer::start("server", &self.program, &arguments)?];
        for (index, port) in ports[1..].iter().enumerate() {
            let arguments = ["tcp-relay", "--port", &port.to_string(), "--to", &to.to_string()];
            let name = format!("relay {}", index + 1);
            peers.push(Peer::start(&name, &self.program, &arguments)?);
            to = *port;
        }
        let client = self.bare_client(configuration, "tcp-client", (0, to), folder.path());
        Ok(Stand::new(client, peers, folder))
    }

    fn stand_udp(
        &self,
        configuration: &Configuration,
        processes: usize,
        folder: TempDir,
    ) -> Result<Stand, LabError> {
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
        let client = self.bare_client(configuration, "udp-client", (own, ports[0]), folder.path());
        Ok(Stand::new(client, peers, folder))
    }

    fn stand_direct(
        &self,
        configuration: &Configuration,
        folder: TempDir,
    ) -> Result<Stand, LabError> {
        let port = find_ports(1)?[0];
        let orb = configuration.server_orb;
        let peers =
            vec![self.echo_server("server", orb, &orb.listen_on(&port.to_string()), &[])?];
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
            let orb = Orb::Omniorb;
            let at = server_socket.then(|| orb.listen_at(&path)).flatten();
            let at = at.unwrap_or_else(|| orb.listen_on(&port.to_string()));
            // As the members of a pipelined group.
            let options = ["-ORBmaxServerThreadPerConnection", "1"];
            echoes.push(self.echo_server(&format!("s:n{}", index + 1), orb, &at, &options)?);
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

    fn echo_server(
        &self,
        name: &str,
        orb: Orb,
        at: &[String],
        more: &[&str],
    ) -> Result<Peer, LabError> {
        let mut server = Command::new(&self.program);
        // Through this program, so that the server ends when we do, however that happens.
        server.arg("exec-server").arg(process::id().to_string());
        server.arg(orb.server(&self.echo_dir));
        server.args(at).args(more).stdin(Stdio::null());
        Peer::start_ready(name, &mut server)
    }

    fn echo_client(&self, configuration: &Configuration, port: u16, folder: &Path) -> Command {
        let longs = configuration.longs.unwrap_or(self.plan.longs);
        let mut command = Command::new(configuration.client_orb.client(&self.echo_dir));
        command.arg("--ref").arg(format!("corbaloc:iiop:1.2@127.0.0.1:{port}/echo"));
        command.args(["--longs", &longs.to_string()]);
        command.args(["--clients", &configuration.clients.to_string()]);
        for (option, us) in [
            ("--think-us", configuration.think_us),
            ("--think-spread-us", configuration.think_spread_us),
        ] {
            if us > 0 {
                command.args([option, &us.to_string()]);
            }
        }
        self.counts(configuration).tell(&mut command, folder);
        command
    }

    fn bare_client(
        &self,
        configuration: &Configuration,
        role: &str,
        (own_port, to): (u16, u16),
        folder: &Path,
    ) -> Command {
        let octets = (self.plan.longs as usize * 4 + GIOP_OVERHEAD_LEN).min(FRAME_LEN_MAX);
        let mut command = Command::new(&self.program);
        command.args([
            "lab",
            "peer",
            role,
            "--to",
            &to.to_string(),
            "--port",
            &own_port.to_string(),
        ]);
        command.args(["--octets", &octets.to_string()]);
        self.counts(configuration).tell(&mut command, folder);
        command
    }

    fn counts(&self, configuration: &Configuration) -> Counts {
        Counts { calls: self.plan.calls, warm_up: self.plan.warm_up_of(configuration) }
    }

    fn run_client(
        &self,
        stand: &mut Stand,
        counts: Counts,
    ) -> Result<(ClientFigures, Usage), String> {
        let [out, log] = ["client.out", "client.log"].map(|name| stand.folder.path().join(name));
        let open = |path: &Path| File::create(path).map_err(|error| error.to_string());
        stand.client.stdin(Stdio::null()).stdout(open(&out)?).stderr(open(&log)?);
        let mut client = stand.client.spawn().map_err(|error| {
            format!("{} cannot be started: {error}", stand.client.get_program().to_string_lossy())
        })?;
        let ended = self.await_end(&client, stand, counts.all());
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
    fn await_end(&self, client: &Child, stand: &mut Stand, calls: u32) -> Result<(), String> {
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

    fn shares(
        &self,
        watched: &[(String, u32)],
        (before, after): (&Reading, &Reading),
        (figures, client): (&ClientFigures, Usage),
        counts: Counts,
    ) -> Vec<ProcessShare> {
        let calls = counts.served();
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

impl Counts {
    fn all(self) -> u32 {
        self.calls.saturating_add(self.warm_up)
    }

    /// All but the client have served the calls that do not count as well.
    fn served(self) -> f64 {
        f64::from(self.calls) + f64::from(self.warm_up)
    }

    fn tell(self, client: &mut Command, folder: &Path) {
        client.args(["--calls", &self.calls.to_string()]);
        client.args(["--warm-up", &self.warm_up.to_string()]);
        client.arg("--samples").arg(folder.join("samples"));
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
