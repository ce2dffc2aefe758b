//! A domain of three nodes with both services, and what happens to it.
//!
//! What it is not: the processes, which end with [`Running`].
//!
//! Invariant: a group that was made for a measurement is deleted before the next one.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::status::MemberState;
use quorba_corba::{Any, Cdr, Home, Object, Typed};
use quorba_idl::cos_naming::NameComponent;
use quorba_idl::ft::{self, FaultNotifierStub, ReplicationManagerStub};
use quorba_net::free_ports;
use quorba_orb::{Client, RunningServer};
use rustix::process::Signal;

use super::factory::{Consumer, Factory};
use super::{client, told};
use crate::domain::node_name;
use crate::nodes::{self, Ports};
use crate::peer::Peer;
use crate::serve::serve;
use crate::service::{Running, kill};

const NODES: usize = 3;
const LEDGER: &str = "IDL:Bank/Ledger:1.0";
/// A type that no node starts.
const THING: &str = "IDL:Lab/Thing:1.0";
/// How long a report, or a member, may take.
const WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked whether a member is in.
const LOOK: Duration = Duration::from_millis(1);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Starts of a server by itself, of which the median counts.
const STARTS: usize = 5;

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL.
    Killed,
    /// SIGSTOP.
    Stopped,
}

/// See the module's text.
pub(super) struct Stand {
    manager: Client,
    reports: Receiver<(Instant, String)>,
    /// One object for each node, of a factory that runs in this process.
    factories: Vec<ft::FactoryInfo>,
    // Their threads end with these.
    _servers: Vec<RunningServer>,
    running: Running,
}

fn name(id: &str) -> ft::Name {
    vec![NameComponent { id: id.to_owned(), kind: String::new() }]
}

fn property<T: Cdr + Typed>(id: &str, value: &T) -> Result<ft::Property, String> {
    let val = Any::new(value).ok_or("a property is too deep")?;
    Ok(ft::Property { nam: name(&format!("org.omg.ft.{id}")), val })
}

fn criteria(own: Vec<ft::Property>) -> Result<ft::Criteria, String> {
    Ok(vec![property("FTProperties", &own)?])
}

impl Stand {
    /// Starts one, and waits until all are in.
    pub(super) fn start(program: &Path) -> Result<Self, String> {
        let mut running = Running::new("fault-notifier")?;
        let folder = running.folder.path().to_owned();
        let failed = |error: io::Error| format!("cannot prepare the domain: {error}");
        // A group of three ports more for each of the other two listeners.
        let ports = Ports::free(NODES).map_err(failed)?;
        let more = free_ports(NODES * 2).map_err(failed)?;
        let (manager, shared) = (Self::above(&ports, &more[..NODES])?, &more[NODES..]);
        let shared = Self::above(&ports, shared)?;
        let text = format!(
            "[domain]\nid = \"managed\"\nkey_file = \"domain.key\"\n{}\
             [gateway]\nlisten = {shared}\n\
             [service.fault-notifier]\nlisten = {}\n\
             [service.replication-manager]\nlisten = {manager}\n\
             [type.\"{LEDGER}\"]\n\
             server = [\"{}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
             state_object = \"bank\"\nobject_key = \"bank\"\ntype_id = \"{LEDGER}\"\n\
             restart_backoff_ms = 10000\n",
            ports.tables(),
            ports.listen(),
            program.display(),
        );
        let file = nodes::write_files(&folder, &text).map_err(failed)?;
        running.admins = ports.admin_clients(&folder);
        for index in 0..NODES {
            running.processes.push(nodes::start(program, &file, index)?);
        }
        running.await_whole()?;
        Self::connect(running, &ports, manager)
    }

    /// A port to which every node can add its offset.
    fn above(ports: &Ports, free: &[u16]) -> Result<u16, String> {
        let span = ports.gateways.iter().max().copied().unwrap_or(0) - ports.listen();
        let base = free.iter().copied().min().unwrap_or(0);
        let is_free = |offset: u16| {
            let at = (Ipv4Addr::LOCALHOST, base.saturating_add(offset));
            std::net::TcpListener::bind(at).is_ok()
        };
        let offsets = ports.gateways.iter().map(|port| port - ports.listen());
        let fits = base.checked_add(span).is_some() && offsets.into_iter().all(is_free);
        fits.then_some(base).ok_or_else(|| "no free ports for another service".to_owned())
    }

    fn connect(running: Running, ports: &Ports, manager: u16) -> Result<Self, String> {
        let at = |base: u16, key: &str| format!("corbaloc:iiop:1.2@127.0.0.1:{base}/{key}");
        let first = ports.gateways[0] - ports.listen();
        let (consumer, reports) = Consumer::new();
        let (consumers, home) = serve(consumer)?;
        let to = home.object("IDL:omg.org/CosNotifyComm/StructuredPushConsumer:1.0", b"lab");
        let mut notifier = client(&at(ports.gateways[0], "FaultNotifier"))?;
        FaultNotifierStub(&mut notifier).connect_structured_fault_consumer(&to).map_err(told)?;
        let mut servers = vec![consumers];
        let mut factories = Vec::new();
        for index in 0..NODES {
            // Nobody calls the object; those of two members are two.
            let port = 1 + u16::try_from(index).unwrap_or(0);
            let addresses = vec![(Ipv4Addr::LOCALHOST.to_string(), port)];
            let object = Home { addresses, prefix: Vec::new() }.object(THING, b"thing");
            let (server, home) = serve(Factory(object))?;
            factories.push(ft::FactoryInfo {
                the_factory: home.object(ft::GENERIC_FACTORY.id(), b"factory"),
                the_location: name(&node_name(index)),
                the_criteria: Vec::new(),
            });
            servers.push(server);
        }
        Ok(Self {
            manager: client(&at(manager + first, "ReplicationManager"))?,
            reports,
            factories,
            _servers: servers,
            running,
        })
    }

    fn create(&mut self, of: &str, own: Vec<ft::Property>) -> Result<(Object, Any), String> {
        let criteria = criteria(own)?;
        let mut manager = ReplicationManagerStub(&mut self.manager);
        manager.create_object(&of.to_owned(), &criteria).map_err(told)
    }

    fn delete(&mut self, creation: &Any) -> Result<(), String> {
        ReplicationManagerStub(&mut self.manager).delete_object(creation).map_err(told)
    }

    /// How long a group of three takes whose members factories give that run.
    pub(super) fn create_by_factories(&mut self) -> Result<Duration, String> {
        let own = vec![
            property("Factories", &self.factories)?,
            property("ReplicationStyle", &ft::STATELESS)?,
            property("InitialNumberReplicas", &3_u16)?,
        ];
        let began = Instant::now();
        let (_, creation) = self.create(THING, own)?;
        let took = began.elapsed();
        self.delete(&creation)?;
        Ok(took)
    }

    /// How long a server takes, without a node, until it accepts a connection.
    pub(super) fn server_start(&self, program: &Path) -> Result<Duration, String> {
        let mut all = Vec::new();
        for number in 0..STARTS {
            let port = free_ports(1).map_err(|error| error.to_string())?[0];
            let mut command = Command::new(program);
            command.args(["servant", "bank", "--port", &port.to_string()]);
            let log = self.running.folder.path().join(format!("server-{number}.log"));
            let began = Instant::now();
            let _server = Peer::start_logged("server", &mut command, log)
                .map_err(|error| error.to_string())?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            while TcpStream::connect(address).is_err() {
                if began.elapsed() > WITHIN {
                    return Err("a server does not start".to_owned());
                }
                thread::sleep(LOOK);
            }
            all.push(began.elapsed());
        }
        all.sort_unstable();
        Ok(all[STARTS / 2])
    }

    /// Kills a member of a group of two: how long it took until a consumer was told, and until
    /// another one was in.
    pub(super) fn kill_member(&mut self) -> Result<(Duration, Duration), String> {
        let own = vec![
            property("InitialNumberReplicas", &2_u16)?,
            property("MinimumNumberReplicas", &2_u16)?,
        ];
        let (group, creation) = self.create(LEDGER, own)?;
        let mut manager = ReplicationManagerStub(&mut self.manager);
        let id = manager.get_object_group_id(&group).map_err(told)?;
        let locations = manager.locations_of_members(&group).map_err(told)?;
        let of_group = format!("object-{id}");
        let victim = locations.last().and_then(|at| at.first()).ok_or("no members")?.id.clone();
        let node = (0..NODES).find(|index| node_name(*index) == victim).ok_or("no such node")?;
        let pid = self.member(node, &of_group)?.ok_or("the member has no process")?;
        while self.reports.try_recv().is_ok() {}
        let began = Instant::now();
        kill(pid)?;
        let spare = (0..NODES)
            .find(|index| locations.iter().flatten().all(|part| part.id != node_name(*index)));
        let spare = spare.ok_or("no spare node")?;
        while !self.is_in(spare, &of_group)? {
            if began.elapsed() > WITHIN {
                return Err("no member comes in for the one that died".to_owned());
            }
            thread::sleep(LOOK);
        }
        let restored = began.elapsed();
        let reported = self.report_of(&victim)?.saturating_duration_since(began);
        self.delete(&creation)?;
        Ok((reported, restored))
    }

    /// The process of a group's member.
    fn member(&self, node: usize, group: &str) -> Result<Option<u32>, String> {
        let status = self.running.admins[node].status(ANSWER_WITHIN);
        let status = status.map_err(|error| error.to_string())?;
        let found = status.groups.into_iter().find(|one| one.name == group);
        Ok(found.and_then(|group| group.server?.pid))
    }

    fn is_in(&self, node: usize, group: &str) -> Result<bool, String> {
        let status = self.running.admins[node].status(ANSWER_WITHIN);
        let status = status.map_err(|error| error.to_string())?;
        let found = status.groups.into_iter().find(|one| one.name == group);
        let mut members = found.into_iter().flat_map(|group| group.members);
        let name = node_name(node);
        Ok(members.any(|member| member.node == name && member.state == MemberState::In))
    }

    /// When that location was reported.
    fn report_of(&self, location: &str) -> Result<Instant, String> {
        loop {
            let report = self.reports.recv_timeout(WITHIN);
            let (at, of) = report.map_err(|_| format!("{location} is not reported in time"))?;
            if of == location {
                return Ok(at);
            }
        }
    }

    /// Ends a node: how long it took until a consumer was told. The domain is of no use then.
    pub(super) fn end_node(&mut self, node: usize, fault: Fault) -> Result<Duration, String> {
        while self.reports.try_recv().is_ok() {}
        let signal = match fault {
            Fault::Killed => Signal::KILL,
            Fault::Stopped => Signal::STOP,
        };
        let began = Instant::now();
        self.running.processes[node].signal(signal).map_err(|error| error.to_string())?;
        let at = self.report_of(&node_name(node));
        if fault == Fault::Stopped {
            // A process that stands still does not end when it is asked to.
            self.running.processes[node].signal(Signal::CONT).map_err(|error| error.to_string())?;
        }
        Ok(at?.saturating_duration_since(began))
    }
}
