//! Keeps one member's server running: starts it, waits until it accepts connections, notices its
//! end, starts it again with growing pauses. One plain blocking thread per group.
//!
//! What it is not: it does not talk GIOP, and what an order or an end means, `standing` knows.
//! Invariant: a server is reported up only after a connection to its port came about, and at most
//! one process of it runs at any time.

use crate::NodeError;
use crate::descriptors::Reserve;
use crate::door::Door;
use crate::names::{index_of, outside_index};
use crate::output::Output;
use crate::pauses::{Pause, PauseRule};
use crate::process::{CANNOT_START, KEEP, NOT_STARTED};
use crate::ready::{self, Look};
use crate::running::{NotStarted, Running};
use crate::seldom::Seldom;
use crate::standing::{Doing, End, Order, Standing};
use crate::status::{ServerStatus, millis};
use crate::times::Times;
use crate::wake::{Mailbox, Mailer, mailbox};
use quorba_base::NodeId;
use quorba_config::{
    Backend, Domain, Endpoint, Group, Host, Member, Node, Placeholder, RESTART_BACKOFF_MAX,
    ServerCommand, Style, Values,
};
use quorba_engine::replica::{DownReason, GroupId};
use quorba_giop::corbaloc::{self, Corbaloc, EscapedKey};
use quorba_net::timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{PathBuf, absolute};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a starting server's port is tried.
const PROBE: Duration = Duration::from_millis(10);
/// How long after a server's start, and at the longest how often, it is looked for the object that
/// references name: it may be created later.
const OBJECT_FIRST: Duration = Duration::from_millis(500);
const OBJECT_LAST: Duration = Duration::from_secs(10);
/// How long the words of a server that could not be started may be on their way.
const WORDS_WITHIN: Duration = Duration::from_millis(300);
/// How long after its connections a process may end that was killed.
const ENDS_WITHIN: Duration = Duration::from_millis(200);
/// How often somebody else's server is looked for.
const SEEK_AGAIN: Duration = Duration::from_millis(200);
/// How long a server may take to end by itself when the node stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// What a supervisor tells the data plane.
#[derive(Debug)]
pub(crate) enum ServerNews {
    /// The server accepts connections here.
    Up(Door),
    /// The server is gone.
    Down(DownReason),
}

/// A running supervisor.
pub(crate) struct Supervisor {
    orders: Mailer<Order>,
    thread: Option<JoinHandle<()>>,
    state: Arc<Mutex<Known>>,
    output: Output,
    /// How often it was told that no server is wanted.
    stops: u32,
}

/// What is told of a server, and since when its state is what it is.
struct Known {
    status: ServerStatus,
    since: Instant,
}

/// How the supervisor's servers are started.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    /// The program and first arguments that come before the node's process id and the command.
    pub(crate) prefix: Vec<String>,
    /// By name of a group, or of a server outside: the port on which the server calls it.
    pub(crate) calls: Vec<(String, u16)>,
    /// By name of a server outside: a reference to its object, at that port.
    pub(crate) urls: Vec<(String, String)>,
    /// The gateways of the servers' group, on all nodes.
    pub(crate) gateways: Vec<String>,
}

impl Launcher {
    /// For a group whose servers call at these ports.
    pub(crate) fn new(
        domain: &Domain,
        group: &Group,
        prefix: Vec<String>,
        ports: &[(GroupId, u16)],
    ) -> Self {
        let gateways = domain.nodes.iter().map(|node| group.gateway(node).to_string()).collect();
        let mut launcher = Self { prefix, calls: Vec::new(), urls: Vec::new(), gateways };
        for (of, port) in ports {
            let server = outside_index(*of).map(|index| &domain.outside[index]);
            let name = server.map(|server| &server.name);
            let name = name.unwrap_or_else(|| &domain.groups[index_of(*of)].name);
            launcher.calls.push((name.clone(), *port));
            if let Some(endpoint) = server.and_then(|server| server.endpoints.first()) {
                let address = corbaloc::Address::Iiop {
                    version: endpoint.version,
                    host: Ipv4Addr::LOCALHOST.to_string(),
                    port: *port,
                };
                let object_key = endpoint.object_key.to_vec();
                let url = Corbaloc { addresses: vec![address], object_key };
                launcher.urls.push((name.clone(), url.to_string()));
            }
        }
        launcher
    }
}

impl Supervisor {
    /// Starts supervising the server of `group` at `node`, which is `me`; news go to `tell`.
    pub(crate) fn start(
        id: GroupId,
        me: NodeId,
        group: &Group,
        node: &Node,
        launcher: Launcher,
        (time, reserve): (Option<Arc<Times>>, Reserve),
        tell: impl Fn(GroupId, u32, ServerNews) -> bool + Send + 'static,
    ) -> Result<Self, NodeError> {
        let (orders, inbox) = mailbox().map_err(NodeError::Resources)?;
        let status = ServerStatus { state: "starting".into(), ..ServerStatus::default() };
        let state = Arc::new(Mutex::new(Known { status, since: Instant::now() }));
        let output = Output::new(&node.state_dir, &group.name);
        let mut group = group.clone();
        // What is looked for is what this member's server has, under the key that it has there.
        group.object_key = group.object_key_at(me).map(<[u8]>::to_vec);
        let name = format!("server-{}", group.name);
        let worker = Worker {
            id,
            me,
            node: node.clone(),
            launcher,
            time,
            inbox,
            state: Arc::clone(&state),
            output: output.clone(),
            shortage: Seldom::default(),
            reserve,
            tell: Box::new(tell),
            standing: standing_of(&group),
            group,
            pending: VecDeque::new(),
            object: ObjectLook::default(),
        };
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || worker.run())
            .map_err(NodeError::Resources)?;
        Ok(Self { orders, thread: Some(thread), state, output, stops: 0 })
    }

    /// Ends the server and starts it anew.
    pub(crate) fn restart(&self) {
        self.orders.send(Order::Restart);
    }

    /// A server is wanted from now on.
    pub(crate) fn want(&self) {
        self.orders.send(Order::Want);
    }

    /// No server is wanted any more; news of the one that runs are stale from now on.
    pub(crate) fn give_up(&mut self) {
        self.stops += 1;
        self.orders.send(Order::GiveUp);
    }

    /// The member is in its group now, or is not any more.
    pub(crate) fn member_is_in(&self, is_in: bool) {
        self.orders.send(Order::Inside(is_in));
    }

    /// A server in quarantine is started at once.
    pub(crate) fn release(&self) {
        self.orders.send(Order::Release);
    }

    /// How often [`Self::give_up`] was called.
    pub(crate) fn stops(&self) -> u32 {
        self.stops
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let known = self.state.lock().expect("no holder panics");
        let mut status = known.status.clone();
        let since = known.since.elapsed();
        drop(known);
        status.since_ms = Some(millis(since));
        status.output_left_out_bytes = self.output.lost();
        if status.state != "running" && status.log.is_some() {
            status.last_output = self.output.last_lines();
        }
        status
    }

    /// Ends the server for good: all supervisors first get the order, then are waited for.
    pub(crate) fn stop_all(supervisors: &mut [Option<Self>]) {
        for supervisor in supervisors.iter().flatten() {
            supervisor.orders.send(Order::Stop);
        }
        for supervisor in supervisors.iter_mut().flatten() {
            if let Some(thread) = supervisor.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

struct Worker {
    id: GroupId,
    me: NodeId,
    group: Group,
    node: Node,
    launcher: Launcher,
    time: Option<Arc<Times>>,
    inbox: Mailbox<Order>,
    state: Arc<Mutex<Known>>,
    output: Output,
    /// The node lacks what a server needs.
    shortage: Seldom,
    reserve: Reserve,
    tell: Box<dyn Fn(GroupId, u32, ServerNews) -> bool + Send>,
    standing: Standing,
    /// Orders that have come and were not heeded yet.
    pending: VecDeque<Order>,
    object: ObjectLook,
}

/// When it is looked for the object that references name, beside the one that must be there.
#[derive(Default)]
struct ObjectLook {
    next: Option<Instant>,
    pause: Duration,
}

impl ObjectLook {
    fn begin(now: Instant) -> Self {
        // At once: who waits for a healthy domain must not be told so before.
        Self { next: Some(now), pause: OBJECT_FIRST / 2 }
    }

    fn again(&mut self, now: Instant) {
        self.pause = (self.pause * 2).min(OBJECT_LAST);
        self.next = Some(now + self.pause);
    }
}

/// What came of a try to have a server.
enum Life {
    /// It was ended on order.
    Ordered(Order),
    /// It ended by itself, or was of no use.
    Ended,
    /// The node could not start it, for want of something of its own.
    NeverBegun,
}

/// Why a wait ended.
enum Woken {
    Order(Order),
    Exited,
    Timeout,
}

impl Worker {
    fn run(mut self) {
        loop {
            if !self.standing.is_wanted() {
                self.fail("no server is wanted on this node now".into());
                match self.wait(None, Duration::MAX, Doing::Nothing) {
                    Woken::Order(Order::Stop) => return,
                    Woken::Order(_) | Woken::Exited | Woken::Timeout => continue,
                }
            }
            let began = Instant::now();
            let life = match self.group.backend.clone() {
                Backend::Start(command) => self.run_once(&command),
                Backend::Connect(targets) => Life::Ordered(self.connect_once(&targets)),
            };
            let end = match life {
                Life::Ordered(Order::Stop) => return,
                Life::Ordered(_) | Life::Ended => End::Over(began),
                Life::NeverBegun => End::NeverBegun,
            };
            if !self.standing.is_wanted() {
                continue;
            }
            let pause = self.standing.ended(end, Instant::now());
            if let Some(Order::Stop) = self.pause(pause) {
                return;
            }
            if self.standing.is_wanted() && end != End::NeverBegun {
                self.update(|state| state.restarts += 1);
            }
        }
    }

    /// Leaves the server alone for a while, or until an order ends that: which one.
    fn pause(&mut self, pause: Pause) -> Option<Order> {
        let pause = match pause {
            Pause::Short(pause) => pause,
            Pause::Quarantine(pause, failures) => {
                self.tell_of_quarantine(pause, failures);
                pause
            }
        };
        match self.wait(None, pause, Doing::Pausing) {
            Woken::Order(order) => Some(order),
            Woken::Exited | Woken::Timeout => None,
        }
    }

    fn tell_of_quarantine(&self, pause: Duration, failures: u32) {
        let seconds = pause.as_secs();
        let group = self.group.name.as_str();
        self.update(|state| {
            let last = state.reason.take().unwrap_or_default();
            state.state = "quarantined".into();
            state.reason = Some(format!(
                "{failures} failures in a row, the last: {last}; tried again after {seconds} s, \
                 or at once by `quorba group release {group} {node}`",
                node = self.node.name,
            ));
        });
        tracing::error!(group, failures, seconds, "the server is in quarantine");
    }

    /// One life of the server.
    fn run_once(&mut self, command: &ServerCommand) -> Life {
        // An order to give up ends it; what is told of it then is as stale as it is.
        let stops = self.standing.stops();
        let (mut server, door) = match self.spawn(command) {
            Ok(started) => started,
            Err(NotStarted { reason, is_ours }) => {
                if !is_ours {
                    tracing::error!(group = self.group.name, %reason, "cannot start the server");
                } else if self.shortage.tells(Instant::now()).is_some() {
                    let group = self.group.name.as_str();
                    tracing::error!(group, %reason, "the node lacks what a server needs");
                }
                self.fail(reason);
                if is_ours {
                    self.reserve.lend();
                    return Life::NeverBegun;
                }
                return Life::Ended;
            }
        };
        self.update(|state| {
            state.state = "starting".into();
            state.pid = server.pid();
            state.port = door.port();
        });
        let (woken, found) = match self.wait_ready(server.pidfd(), &door) {
            Err(why) => why,
            Ok(()) => {
                self.runs(door.port());
                self.standing.server_is_up(Instant::now());
                (self.tell)(self.id, stops, ServerNews::Up(door.clone()));
                (self.wait_for_end(server.pidfd(), &door), Look::Ready)
            }
        };
        // That a server has ended is noticed by its connection first.
        let is_restarted = matches!(woken, Woken::Order(Order::Restart));
        let ended_itself = is_restarted && server.has_ended(ENDS_WITHIN);
        let stopping = matches!(woken, Woken::Order(Order::Stop));
        let ended = server.end(if stopping { STOP_WITHIN } else { Duration::ZERO });
        let reason = match &woken {
            _ if ended_itself => self.why_ended(&ended),
            Woken::Exited => self.why_ended(&ended),
            Woken::Timeout => {
                let waited = self.group.start_timeout.as_millis();
                let found = found.text(&door, wanted_key(&self.group));
                format!("did not serve within {waited} ms: it {found}")
            }
            Woken::Order(Order::GiveUp) => "not wanted any more".into(),
            Woken::Order(Order::Stop) => "ended with its node".into(),
            Woken::Order(_) => "restarted by its node".into(),
        };
        tracing::warn!(group = self.group.name, %reason, "server ended");
        self.fail(reason);
        (self.tell)(self.id, stops, ServerNews::Down(DownReason::ServerExited));
        match woken {
            Woken::Order(order) => Life::Ordered(order),
            Woken::Exited | Woken::Timeout => Life::Ended,
        }
    }

    /// An error says what it was woken by before the server accepted connections, and what was
    /// found last. It has no less time while the node cannot look.
    fn wait_ready(&mut self, pidfd: &OwnedFd, door: &Door) -> Result<(), (Woken, Look)> {
        let mut until = Instant::now() + self.group.start_timeout;
        let mut found = Look::Deaf;
        loop {
            let looked = Instant::now();
            match ready::look(door, self.wanted_key()) {
                Ok(Look::Ready) => return Ok(()),
                Ok(look) if Instant::now() >= until => return Err((Woken::Timeout, look)),
                Ok(look) => found = look,
                Err(_) => until += looked.elapsed() + PROBE,
            }
            match self.wait(Some(pidfd), PROBE, Doing::Starting) {
                Woken::Timeout => {}
                woken => return Err((woken, found)),
            }
        }
    }

    /// Until it ends, or is to end.
    fn wait_for_end(&mut self, pidfd: &OwnedFd, door: &Door) -> Woken {
        loop {
            match self.wait(Some(pidfd), self.until_look(), Doing::Running) {
                Woken::Timeout => self.look_for_object(door),
                woken => return woken,
            }
        }
    }

    fn spawn(&self, server: &ServerCommand) -> Result<(Running, Door), NotStarted> {
        self.update(|state| state.log = Some(self.output.path().display().to_string()));
        let shortage = |error| NotStarted::because("nobody can take what it prints", &error);
        let out = self.output.pipe().map_err(shortage)?;
        let err = out.try_clone().map_err(shortage)?;
        let time = self.time.as_deref();
        let printed = (out.into(), err.into());
        launch(&self.group, &self.node, &self.launcher, server, time, printed)
    }

    /// Waits until somebody else's server accepts connections, then until the node loses it.
    fn connect_once(&mut self, targets: &[(NodeId, Member)]) -> Order {
        let mine = targets.iter().find(|(node, _)| *node == self.me);
        let Some((_, Member { endpoint, .. })) = mine else {
            return self.wait_for_order(None);
        };
        loop {
            let looked = resolve(endpoint).and_then(|address| {
                let door = Door::Address(address);
                ready::look(&door, self.wanted_key()).map(|found| (door, found))
            });
            match looked {
                Ok((door, Look::Ready)) => {
                    self.runs(door.port());
                    (self.tell)(self.id, self.standing.stops(), ServerNews::Up(door.clone()));
                    self.standing.is_elsewhere();
                    let order = self.wait_for_order(Some(&door));
                    self.fail("the connection to it was lost".into());
                    return order;
                }
                Ok((door, found)) => {
                    let found = found.text(&door, wanted_key(&self.group));
                    self.fail(format!("{endpoint} does not serve yet: it {found}"));
                }
                Err(error) => self.fail(format!("{endpoint}: {error}")),
            }
            if let Woken::Order(order) = self.wait(None, SEEK_AGAIN, Doing::Seeking) {
                return order;
            }
        }
    }

    /// For one that is about the server's life.
    fn wait_for_order(&mut self, door: Option<&Door>) -> Order {
        loop {
            match self.wait(None, self.until_look(), Doing::Connected) {
                Woken::Order(order) => return order,
                Woken::Timeout => {
                    if let Some(door) = door {
                        self.look_for_object(door);
                    }
                }
                Woken::Exited => {}
            }
        }
    }

    /// The object that must be there before the server counts as up.
    fn wanted_key(&self) -> Option<&[u8]> {
        wanted_key(&self.group).map(|(_, key)| key)
    }

    /// A server that could not be started has said why, in other words than its exit code.
    fn why_ended(&self, ended: &str) -> String {
        if !ended.contains(&format!(" {NOT_STARTED}")) {
            return format!("ended: {ended}");
        }
        let until = Instant::now() + WORDS_WITHIN;
        loop {
            let lines = self.output.last_lines();
            let said = lines.iter().rev().find_map(|line| Some(&line[line.find(CANNOT_START)?..]));
            if let Some(said) = said {
                return said.to_owned();
            }
            if Instant::now() >= until {
                return format!("ended: {ended}");
            }
            std::thread::sleep(PROBE);
        }
    }

    /// The server serves.
    fn runs(&mut self, port: Option<u16>) {
        self.object = match &self.group.object_key {
            Some(key) if Some(&key[..]) != self.wanted_key() => ObjectLook::begin(Instant::now()),
            _ => ObjectLook::default(),
        };
        self.update(|state| {
            state.state = "running".into();
            state.port = port;
            state.reason = None;
            state.missing_object = None;
        });
    }

    fn until_look(&self) -> Duration {
        let next = self.object.next;
        next.map_or(Duration::MAX, |next| next.saturating_duration_since(Instant::now()))
    }

    /// Whether the object that references name is there.
    fn look_for_object(&mut self, door: &Door) {
        let Some(key) = self.group.object_key.clone() else { return };
        match ready::look(door, Some(&key)) {
            Ok(Look::Ready) => {
                self.object = ObjectLook::default();
                self.update(|state| state.missing_object = None);
            }
            found => {
                if matches!(found, Ok(Look::NoObject)) {
                    let key = EscapedKey(&key).to_string();
                    self.update(|state| state.missing_object = Some(key));
                }
                self.object.again(Instant::now());
            }
        }
    }

    fn fail(&self, reason: String) {
        self.update(|state| {
            state.state = "down".into();
            state.pid = None;
            state.reason = Some(reason);
            state.missing_object = None;
        });
    }

    fn update(&self, change: impl FnOnce(&mut ServerStatus)) {
        let mut known = self.state.lock().expect("no holder panics");
        let before = (known.status.state.clone(), known.status.missing_object.is_some());
        change(&mut known.status);
        if before != (known.status.state.clone(), known.status.missing_object.is_some()) {
            known.since = Instant::now();
        }
    }

    /// Waits for an order that ends what this does, for the end of the process, or for `timeout`.
    fn wait(&mut self, pidfd: Option<&OwnedFd>, timeout: Duration, doing: Doing) -> Woken {
        let until = Instant::now().checked_add(timeout);
        loop {
            while let Some(order) = self.next_order() {
                if self.standing.hear(Instant::now(), order, doing) {
                    return Woken::Order(order);
                }
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let limit = left.map(timespec);
            let bell = self.inbox.bell();
            let mut fds = vec![PollFd::new(&bell, PollFlags::IN)];
            if let Some(pidfd) = pidfd {
                fds.push(PollFd::new(pidfd, PollFlags::IN));
            }
            let ready = poll(&mut fds, limit.as_ref());
            if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
                // An order that came with it is heeded next.
                return Woken::Exited;
            }
            if matches!(ready, Ok(0)) {
                return Woken::Timeout;
            }
        }
    }

    /// What is to be heeded next: a stop before all else, the others in their order.
    fn next_order(&mut self) -> Option<Order> {
        self.pending.extend(self.inbox.take());
        match self.pending.iter().position(|order| matches!(order, Order::Stop)) {
            Some(stop) => self.pending.remove(stop),
            None => self.pending.pop_front(),
        }
    }
}

fn standing_of(group: &Group) -> Standing {
    let rule = PauseRule {
        first: group.restart_backoff,
        longest: RESTART_BACKOFF_MAX,
        quarantine_after: group.quarantine_after,
        quarantine: group.quarantine,
    };
    Standing::new(rule, group.style != Style::ColdPassive)
}

/// Where the server's socket is, if it listens on one.
fn socket_path(group: &Group, node: &Node) -> Result<PathBuf, String> {
    let path = node.state_dir.join(format!("{}.sock", group.name));
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Starts a server of `group` as the member on `node` would be; says where it will listen.
pub(crate) fn launch(
    group: &Group,
    node: &Node,
    launcher: &Launcher,
    server: &ServerCommand,
    time: Option<&Times>,
    (out, err): (Stdio, Stdio),
) -> Result<(Running, Door), NotStarted> {
    let port = free_port().map_err(|error| NotStarted::because("no free port", &error))?;
    let state_dir = node.state_dir.display().to_string();
    let host = node.host.to_string();
    let socket = socket_path(group, node)?;
    let door = if server.uses(Placeholder::Socket) {
        Door::file(socket.clone())?
    } else {
        Door::Address(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    let values = Values {
        port,
        socket: &socket.display().to_string(),
        host: &host,
        listen: group.gateway(node).port,
        node: &node.name,
        group: &group.name,
        state_dir: &state_dir,
        time: &time.map_or_else(String::new, Times::reference),
        gateways: &launcher.gateways,
        calls: &launcher.calls,
        urls: &launcher.urls,
    };
    let mut arguments = server.command.iter().map(|part| part.fill(&values));
    let (program, rest) = launcher.prefix.split_first().ok_or_else(|| "no launcher".to_owned())?;
    let mut command = Command::new(program);
    command.args(rest).arg(KEEP);
    let wanted = arguments.next().ok_or_else(|| "the command is empty".to_owned())?;
    // The server begins in another folder than its node.
    let wanted = match wanted.contains('/') {
        true => absolute(&wanted).unwrap_or_else(|_| wanted.into()),
        false => wanted.into(),
    };
    command.arg(&wanted).args(arguments);
    for (name, value) in &server.env {
        command.env(name, value.fill(&values));
    }
    let cwd = server.cwd.as_ref().map_or_else(|| state_dir.clone(), |cwd| cwd.fill(&values));
    command.current_dir(cwd).stdout(out).stderr(err);
    Ok((Running::start(command)?, door))
}

/// The object that must be there before a server of `group` counts as up, and the key of the domain
/// file that names it.
pub(crate) fn wanted_key(group: &Group) -> Option<(&'static str, &[u8])> {
    let state = group.state_object.as_deref().map(|key| ("state_object", key));
    state.or(group.object_key.as_deref().map(|key| ("object_key", key)))
}

/// A port on which nothing listens now; taken and given back, so that the server can have it.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The first address of a host.
pub(crate) fn resolve(endpoint: &Endpoint) -> std::io::Result<SocketAddr> {
    match &endpoint.host {
        Host::Address(address) => Ok(SocketAddr::new(*address, endpoint.port)),
        Host::Name(name) => resolve_host(name, endpoint.port),
    }
}

/// The first address of `name`.
pub(crate) fn resolve_host(name: &str, port: u16) -> std::io::Result<SocketAddr> {
    let mut addresses = (name, port).to_socket_addrs()?;
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    addresses.next().ok_or_else(none)
}

/// The address that a node's sockets bind to.
pub(crate) fn bind_address(node: &Node) -> std::io::Result<IpAddr> {
    match (node.bind_address(), &node.host) {
        (Some(address), _) => Ok(address),
        (None, Host::Address(address)) => Ok(*address),
        (None, Host::Name(name)) => Ok(resolve_host(name, node.ring_port)?.ip()),
    }
}
