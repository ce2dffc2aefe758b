//! A stateless group of omniORB servers whose clients have the servers' own addresses, and the
//! gateways behind them: used while a server is killed, while no node runs, and while the servers
//! are somewhere else than the reference says.
//!
//! Invariant: an unmodified client finds whoever serves, by its reference alone.

use std::fs::File;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quorba_demo::accounting::read;
use quorba_demo::record::{CallRecord, Outcome, Recording, Verdict};

use super::super::domain::{DomainFile, NODES, free_ports};
use super::super::fleet::Fleet;
use super::super::load::{self, Load};
use super::super::{Context, Orb, STATELESS};
use super::GROUP;
use super::operator::Operator;
use crate::place::Place;
use crate::wait;

/// How long a server may take to serve.
const START_TIME_MAX: Duration = Duration::from_secs(20);
/// How long nodes that were started may take to be a domain again.
const APPLY_TIME_MAX: Duration = Duration::from_secs(30);

/// A server that no node starts.
struct Server {
    port: u16,
    process: Child,
}

impl Server {
    fn start(context: &Context, port: u16) -> Result<Self, String> {
        let program = load::program(&context.folder, Orb::Omniorb, "server")?;
        let told = |error: std::io::Error| format!("{}: {error}", program.display());
        let log = File::create(context.folder.join(format!("server-{port}.log"))).map_err(told)?;
        let mut command = Command::new(&program);
        command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let server = Self { port, process: command.spawn().map_err(told)? };
        wait::until("a server serves", START_TIME_MAX, || {
            let connected = TcpStream::connect(("127.0.0.1", port));
            connected.map(drop).map_err(|error| error.to_string())
        })?;
        Ok(server)
    }

    /// How many requests it has executed, whoever asked for them.
    fn executed(&self) -> Result<u64, String> {
        read::executed(self.port).map_err(|error| format!("{}: {error}", self.port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It cannot fail but for a process that has ended already.
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }
}

struct Life<'a> {
    context: &'a Context,
    fleet: Fleet,
    operator: Operator,
    /// Where the gateways of the group are.
    listen: u16,
}

pub(super) fn run(context: &Context) -> Result<String, String> {
    let domain = DomainFile::without_groups(&context.quorba, &context.folder)?;
    let fleet = Fleet::start(&context.quorba, &context.folder, GROUP, domain)?;
    let operator = Operator::of(context, &fleet);
    operator.wait_healthy()?;
    let listen = free_ports(NODES as u16)?;
    let mut life = Life { context, fleet, operator, listen };
    let mut servers = life.servers()?;
    life.apply("first.toml", &servers)?;
    let reference = life.operator.ok(&["ior", "make", GROUP, "--members"])?.trim().to_owned();

    let load = life.load("a", &reference)?;
    load.wait_under_way()?;
    drop(servers.remove(0));
    let after_a_server = all_answered_but_under_way(&load.finish()?.0)?;
    if servers[0].executed()? == 0 {
        return Err("nobody went on to the next server".into());
    }

    (0..NODES).for_each(|node| life.fleet.kill_node(node));
    let load = life.load("b", &reference)?;
    let (recordings, direct) = load.finish()?;
    let without_nodes = all_answered(&recordings)?;

    (0..NODES).try_for_each(|node| life.fleet.start_node(node))?;
    drop(servers);
    let servers = life.servers()?;
    life.apply("again.toml", &servers)?;
    let load = life.load("c", &reference)?;
    let (recordings, indirect) = load.finish()?;
    let by_gateways = all_answered(&recordings)?;
    let executed: Result<Vec<u64>, String> = servers.iter().map(Server::executed).collect();
    if executed?.iter().sum::<u64>() == 0 {
        return Err("nobody came over the gateways".into());
    }
    drop(servers);
    life.fleet.end()?;
    Ok(format!(
        "{after_a_server} calls across the death of a server; {without_nodes} without any node, \
         median {:?}; {by_gateways} through the gateways to servers that have moved, median {:?}",
        direct.p50, indirect.p50
    ))
}

/// How many calls were answered; each was.
fn all_answered(recordings: &[Recording]) -> Result<usize, String> {
    match unanswered(recordings).first() {
        Some(call) => Err(format!("a call was not answered: {call:?}")),
        None => Ok(calls(recordings).count()),
    }
}

/// How many calls were answered, across the death of a server. The others went into a connection to
/// that server: nobody knows whether it had executed them. A client has no more connections than
/// threads, and each is noticed to have ended by the call that uses it next.
fn all_answered_but_under_way(recordings: &[Recording]) -> Result<usize, String> {
    let known = |call: &&CallRecord| call.verdict() != Verdict::Maybe;
    if let Some(call) = unanswered(recordings).into_iter().find(known) {
        return Err(format!("a call was not answered, though not under way: {call:?}"));
    }
    for recording in recordings {
        let unanswered = unanswered(std::slice::from_ref(recording));
        if unanswered.len() > load::CLIENTS as usize {
            return Err(format!("more calls than connections were not answered: {unanswered:?}"));
        }
    }
    Ok(calls(recordings).count() - unanswered(recordings).len())
}

fn calls(recordings: &[Recording]) -> impl Iterator<Item = &CallRecord> {
    recordings.iter().flat_map(|recording| &recording.records)
}

fn unanswered(recordings: &[Recording]) -> Vec<&CallRecord> {
    calls(recordings).filter(|call| call.outcome == Outcome::Exception).collect()
}

impl Life<'_> {
    /// One for each node, at ports of their own.
    fn servers(&self) -> Result<Vec<Server>, String> {
        let first = free_ports(NODES as u16)?;
        (0..NODES as u16).map(|at| Server::start(self.context, first + at)).collect()
    }

    /// Brings the domain to a file with the group of these servers.
    fn apply(&self, file: &str, servers: &[Server]) -> Result<(), String> {
        let of_node =
            |(at, server): (usize, &Server)| format!("n{} = \"127.0.0.1:{}\"", at + 1, server.port);
        let servers: Vec<String> = servers.iter().enumerate().map(of_node).collect();
        let section = format!(
            "[group.{GROUP}]\nstyle = \"{STATELESS}\"\nlisten = {}\nobject_key = \"bank\"\n\
             type_id = \"IDL:Bank/Ledger:1.0\"\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
             connect = {{ {} }}\n",
            self.listen,
            servers.join(", ")
        );
        let file = self.operator.write_file(file, &section)?;
        wait::until("the domain takes it", APPLY_TIME_MAX, || {
            self.operator.ok(&["config", "apply", &file]).map(drop)
        })?;
        let all = ["n1", "n2", "n3"];
        self.operator.wait_members(GROUP, &all, &all)
    }

    fn load(&self, name: &str, reference: &str) -> Result<Load, String> {
        Load::named(name, self.context, [Orb::Omniorb; 2], reference, &Place::Here)
    }
}
