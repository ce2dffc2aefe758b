//! The data-plane thread: waits for sockets, timers and letters, feeds the engine, and carries
//! out what it answers.
//!
//! Invariants: everything that the engine sees happens in this thread; what sockets brought at one
//! time is taken in together, and the outputs are carried out in their order before anything else
//! is; nothing here blocks but the wait itself and the rare write of the boot file.

mod backups;
mod catalog;
mod deferred;
mod descriptors;
mod effects;
mod external;
mod full;
mod groups;
mod handshakes;
mod news;
mod operators;
mod services;
mod status;

use crate::admin::{self, AdminServer};
use crate::auto_placement::AutoPlacements;
use crate::boot::BootFile;
use crate::call_timings::CallTimings;
use crate::clients::{Accepted, Clients, Who};
use crate::commands::Commands;
use crate::deferred_free::DeferredFree;
use crate::definitions::{self, Reader};
use crate::descriptors::TransientConnections;
use crate::external::{ExternalCalls, LookUp};
use crate::groups::Groups;
use crate::log::{Log, LogNews};
use crate::offer::Offer;
use crate::priority::Priority;
use crate::recorder::Recorder;
use crate::report::Reporter;
use crate::reread::{self, Rereader};
use crate::servers::Servers;
use crate::store::CatalogStore;
use crate::supervise::{Life, ServerNews, SupervisorContext, Supervisors};
use crate::times::Times;
use crate::transport::{Tokens, Transport};
use crate::tunnel;
use crate::wake::{Mailbox, MailboxSender, mailbox};
use crate::{NodeError, RunOptions, settings};
use bytes::BytesMut;
use quorba_base::{Instant, NodeId, Position};
use quorba_config::Domain;
use quorba_engine::replica::{Catalog, Command, GroupId, GroupMap};
use quorba_engine::{ClientPeer, ConnectionId, Node};
use quorba_net::{Interest, Poller, ReadOutcome, Ready};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

const BELL: u64 = 0;
const SIGNALS: u64 = 1;
const ORDER: u64 = 2;
const RELOADS: u64 = 3;
const LISTENERS: u64 = 16;
/// Links to other nodes begin here.
const LINKS: u64 = 1 << 20;
/// Tokens of connections begin here, above any group's listener.
const CONNECTIONS: u64 = 1 << 32;

/// Bytes read from a connection at once.
const READ_BYTES: usize = 64 << 10;
/// How long open calls may take when the node stops.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// Letters from other threads.
pub(crate) enum DataMessage {
    /// From a supervisor.
    ///
    /// Of which server, and how many orders to end it for good it had then.
    Server(GroupId, Life, ServerNews),
    /// From the admin API.
    Admin(admin::Question),
    /// From the durable log.
    Log(LogNews),
    /// The list of groups is on disk as of there.
    Groups(Position),
    /// From who reads the domain file again.
    File(reread::Ask),
    /// The names of a server outside were looked up.
    LookedUp(GroupId, LookUp),
}

/// A node that is set up.
pub(crate) struct DataPlane {
    reporter: Reporter,
    boot: BootFile,
    engine: Node,
    poller: Poller,
    transport: Transport,
    clients: Clients,
    servers: Servers,
    external: ExternalCalls,
    /// How servers are read that have something to do.
    reading: deferred::Readings,
    supervisors: Supervisors,
    /// The program and first arguments through which servers are started.
    launcher: Vec<String>,
    me: NodeId,
    /// Of the groups whose servers ask for ordered time.
    times: GroupMap<Arc<Times>>,
    mailbox: Mailbox<DataMessage>,
    commands: Commands,
    store: CatalogStore,
    reader: Arc<Reader>,
    /// Changes of the catalog that operators wait for.
    defines: catalog::Defines,
    rereader: Rereader,
    /// Where a log is begun, if the first durable group is created.
    logs: LogPlace,
    deferred_free: DeferredFree,
    backups: backups::Backups,
    /// Only if a group is durable.
    log: Option<Log>,
    statuses: status::Statuses,
    auto_placements: AutoPlacements,
    signals: UnixStream,
    reloads: UnixStream,
    tunnels: tunnel::NewsSender,
    // Dropping it ends the admin thread.
    _admin: AdminServer,
    // What services call; dropping it ends its threads.
    offer: Offer,
    news: news::News,
    started: Clock,
    next_token: u64,
    /// Since the engine was asked last what it wants.
    handshake_steps: u32,
    accept_again: Option<Clock>,
    descriptors: descriptors::DescriptorBudget,
    stop_by: Option<Clock>,
    buffer: Vec<u8>,
    /// Sockets for which something is gathered; always empty between events, kept for its room.
    to_send: Vec<u64>,
    /// Always empty between events; kept for its room.
    datagrams: Vec<BytesMut>,
    raise_priority: bool,
    /// Only if somebody wants it.
    recorder: Option<Recorder>,
    /// Only where the token goes round always.
    call_timings: Option<CallTimings>,
}

impl DataPlane {
    /// Opens everything; nothing is sent before [`Self::run`].
    pub(crate) fn start(
        domain: Domain,
        me: NodeId,
        options: &RunOptions,
    ) -> Result<Self, NodeError> {
        let node = domain.node(me).ok_or(NodeError::NoSuchNode)?.clone();
        let (domain, descriptors) = descriptors::DescriptorBudget::of(domain, me);
        let boot = BootFile::begin(&node.state_dir)?;
        let (mailer, mailbox) = mailbox().map_err(NodeError::Resources)?;
        let (store, catalog) = open_store((&domain, &node.state_dir), mailer.clone())?;
        let reader = Arc::new(Reader::new(&domain));
        let groups = Groups::of_catalog(&reader, &catalog);
        let (poller, signals, reloads) = watch(&mailbox)?;
        let transport = open_transport((&domain, me), &boot, &descriptors, &poller)?;
        let logs = LogPlace { me, incarnation: boot.incarnation(), mailer: mailer.clone() };
        let (log, found) = logs.open_for(&domain, &groups)?;
        let file: Arc<str> = domain.canonical().into();
        let (admin, tunnels) = start_admin((&domain, &file), me, &descriptors, mailer.clone())?;
        let offer = start_offer(&domain, mailer.clone())?;
        let rereader = start_rereader((&domain, &file), mailer.clone())?;
        let passing = descriptors.passing;
        let (engine, groups) = with_keys((me, &boot, found, passing), (&reader, groups, catalog));
        let domain = Arc::new(domain.forget_groups());
        let mut plane = Self {
            call_timings: CallTimings::of_domain(&domain),
            clients: Clients::new(&node, (domain.limits.header, passing), LISTENERS..LINKS)?,
            auto_placements: AutoPlacements::new(Arc::clone(&domain), me),
            external: ExternalCalls::new(&groups, &offer.entrance(), mailer.clone()),
            reporter: Reporter::new((domain, file), groups, me, boot.incarnation()),
            boot,
            engine,
            poller,
            transport,
            servers: Servers::default(),
            reading: deferred::Readings::default(),
            supervisors: start_supervisors((me, node, &descriptors), mailer)?,
            launcher: options.launcher.clone(),
            me,
            times: GroupMap::new(),
            mailbox,
            commands: Commands::default(),
            store,
            reader,
            defines: catalog::Defines::default(),
            rereader,
            logs,
            deferred_free: DeferredFree::default(),
            backups: backups::Backups::default(),
            log,
            statuses: status::Statuses::default(),
            signals,
            reloads,
            tunnels,
            _admin: admin,
            offer,
            news: news::News::default(),
            started: Clock::now(),
            next_token: CONNECTIONS,
            handshake_steps: 0,
            accept_again: None,
            descriptors,
            stop_by: None,
            buffer: vec![0; READ_BYTES],
            to_send: Vec::new(),
            datagrams: Vec::new(),
            raise_priority: options.raise_priority,
            recorder: options.record.as_ref().map(|_| Recorder::new()),
        };
        plane.open_all().map(|()| plane)
    }

    /// Runs until told to stop; gives back what was recorded.
    pub(crate) fn run(mut self) -> Result<Option<Recorder>, NodeError> {
        let mut priority = Priority::new(self.raise_priority);
        tracing::info!(node = self.reporter.node_name(), "node started");
        if let Some(what) = self.file_differs() {
            tracing::warn!("{what}");
        }
        loop {
            self.drain()?;
            if self.is_done() {
                break;
            }
            let now = Clock::now();
            priority.mind(self.engine.calls_under_way(), now);
            self.look_who_waits(priority.is_busy(), now);
            let timeout = self.timeout();
            let ready = self.poller.wait(timeout).map_err(NodeError::Resources)?;
            self.handle_all(ready)?;
            self.drain()?;
            self.tick(&mut priority)?;
        }
        let now = self.now();
        self.engine.handle_leave(now);
        self.drain()?;
        self.transport.leave();
        self.supervisors.stop();
        if let Some(log) = self.log.take() {
            log.stop();
        }
        tracing::info!(node = self.reporter.node_name(), "node stopped");
        Ok(self.recorder)
    }

    fn handle_all(&mut self, ready: usize) -> Result<(), NodeError> {
        self.handshake_steps = 0;
        for index in 0..ready {
            let event = self.poller.ready(index);
            let together = event.token == ORDER || event.token >= CONNECTIONS;
            if !together {
                self.drain()?;
            }
            self.handle(event)?;
            if !together {
                self.drain()?;
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn timeout(&self) -> Option<Duration> {
        let engine = self.engine.poll_timeout().map(|at| at.since(self.now()));
        let until = |at: Clock| at.saturating_duration_since(Clock::now());
        let accept = self.accept_again.map(until);
        let connect = self.descriptors.connect_again.map(until);
        let stop = self.stop_by.map(until);
        let transport = self.transport.retry_at().map(until);
        let linger = self.clients.linger_until().map(until);
        let auto_placements = self.auto_placements.due().map(until);
        let late = self.reading.deferred_until().map(until);
        let listen = self.listen_again_at().map(until);
        let status = self.statuses.is_under_way().then_some(Duration::ZERO);
        let all = [
            engine,
            accept,
            connect,
            stop,
            transport,
            linger,
            auto_placements,
            late,
            listen,
            status,
        ];
        all.into_iter().flatten().min()
    }

    fn tick(&mut self, priority: &mut Priority) -> Result<(), NodeError> {
        self.look_at_groups();
        let now = self.now();
        if let Some(at) = self.engine.poll_timeout().filter(|at| *at <= now) {
            priority.was_late(now.since(at), Clock::now());
            self.engine.handle_timeout(now);
        }
        if self.reading.deferred_until().is_some_and(|at| at <= Clock::now()) {
            self.end_deferred_reads(Clock::now());
        }
        self.clients.drop_lingering();
        if self.transport.retry_at().is_some_and(|at| at <= Clock::now()) {
            self.transport.retry(&self.poller)?;
        }
        if self.auto_placements.due().is_some_and(|at| at <= Clock::now()) {
            self.look_for_better_leaders(now);
        }
        if self.listen_again_at().is_some_and(|at| at <= Clock::now()) {
            self.listen_again();
        }
        if self.descriptors.connect_again.is_some() || self.accept_again.is_some() {
            self.look_for_descriptors();
        }
        if self.accept_again.is_some_and(|at| at <= Clock::now()) {
            self.accept_again = None;
            self.clients.set_listening(true, &self.poller);
        }
        Ok(())
    }

    fn look_for_better_leaders(&mut self, now: Instant) {
        let snapshot = self.engine.snapshot_of(&self.auto_placements.groups());
        let wanted = self.auto_placements.look(now, &snapshot, self.call_timings.as_ref());
        for (group, node) in wanted {
            let (group_name, name) = (self.reporter.group_name(group), self.reporter.name_of(node));
            tracing::info!(group = group_name, node = name, "a better leader is promoted");
            // Nobody waits for the answer; if it is refused, the next look is taken all the same.
            let (asker, _) = tokio::sync::oneshot::channel();
            let id = self.commands.open(asker);
            self.engine.handle_command(now, group, id, Command::Promote(node));
        }
    }

    fn is_done(&self) -> bool {
        let Some(stop_by) = self.stop_by else { return false };
        (self.engine.is_drained() && self.clients.is_empty()) || stop_by <= Clock::now()
    }

    fn handle(&mut self, event: Ready) -> Result<(), NodeError> {
        match event.token {
            BELL => self.read_letters()?,
            SIGNALS => self.stop(),
            RELOADS => self.reload(),
            ORDER => {
                self.read_deferred();
                self.read_order()?;
            }
            LISTENERS..LINKS => self.accept(event.token),
            LINKS..CONNECTIONS => self.transport.link_ready(event, &self.poller),
            token if self.clients.get(token).is_some() => self.client_ready(token, event),
            token if self.external.get(token).is_some() => self.external_ready(token, event),
            token => self.server_ready(token, event),
        }
        Ok(())
    }

    fn read_order(&mut self) -> Result<(), NodeError> {
        let mut datagrams = std::mem::take(&mut self.datagrams);
        self.transport.receive(&mut datagrams)?;
        for datagram in datagrams.drain(..) {
            let now = self.now();
            self.engine.handle_datagram(now, datagram);
        }
        self.datagrams = datagrams;
        Ok(())
    }

    fn accept(&mut self, token: u64) {
        if self.descriptors.reserve.is_lent() {
            return self.accept_later();
        }
        let (accepted, result) = self.clients.accept(token, &mut self.next_token, &self.poller);
        let now = self.now();
        for Accepted { connection, group, who, peer } in accepted {
            let peer = match who {
                Who::ServerOf(caller) => {
                    let groups = (caller, group);
                    self.engine.handle_call_opened(now, connection, groups, peer);
                    continue;
                }
                Who::Services => ClientPeer::of_service(),
                Who::Clients => ClientPeer::at(peer),
            };
            self.engine.handle_client_opened(now, connection, group, peer);
        }
        if let Err(error) = result {
            self.tell_of_shortage(&error);
            self.accept_later();
        }
    }

    fn accept_later(&mut self) {
        self.clients.set_listening(false, &self.poller);
        self.accept_again = Some(Clock::now() + descriptors::AGAIN);
    }

    fn client_ready(&mut self, token: u64, event: Ready) {
        if self.clients.is_handshaking(token) {
            return self.handshake_ready(token, event);
        }
        let Some(stream) = self.clients.get(token) else { return };
        let id = ConnectionId(token);
        if event.writable {
            if stream.flush(&self.poller).is_err() {
                return self.client_gone(token);
            }
            self.tell_unsent(token);
        }
        let Some(stream) = self.clients.get(token) else { return };
        if event.readable {
            let outcome = stream.read(&mut self.buffer);
            // What TLS itself has to say.
            if stream.is_tls() && stream.flush(&self.poller).is_err() {
                return self.client_gone(token);
            }
            match outcome {
                // It was told that the connection ends.
                ReadOutcome::Bytes(_) if stream.is_closing() => return,
                ReadOutcome::Bytes(count) => {
                    if let Some(recorder) = &mut self.recorder {
                        recorder.client_spoke(id);
                    }
                    if let Some(call_timings) = &mut self.call_timings {
                        call_timings.client_spoke(id);
                    }
                    let now = self.now();
                    self.engine.handle_client_bytes(now, id, &self.buffer[..count]);
                    return;
                }
                ReadOutcome::Nothing => {}
                ReadOutcome::Closed if stream.is_at_end() => return self.client_ended(token),
                ReadOutcome::Closed => return self.client_gone(token),
            }
        }
        if event.hung_up {
            self.client_gone(token);
        }
    }

    /// The client has ended its sending. It may wait for replies, or take what it was sent.
    fn client_ended(&mut self, token: u64) {
        let Some(stream) = self.clients.get(token) else { return };
        let is_owed = !stream.is_closing() || stream.has_unsent();
        if !is_owed || stream.set_reading(false, &self.poller).is_err() {
            return self.client_gone(token);
        }
        if !stream.is_closing() {
            let now = self.now();
            self.engine.handle_client_half_closed(now, ConnectionId(token));
        }
    }

    /// Tells the engine of a client that does not take what it is sent.
    pub(super) fn tell_unsent(&mut self, token: u64) {
        if let Some(unsent) = self.clients.unsent_news(token) {
            let now = self.now();
            self.engine.handle_client_unsent(now, ConnectionId(token), unsent);
        }
    }

    fn client_gone(&mut self, token: u64) {
        let told = self.clients.get(token).is_some_and(|stream| !stream.is_closing());
        self.clients.remove(token);
        if told {
            let now = self.now();
            self.engine.handle_client_closed(now, ConnectionId(token));
        }
    }

    fn server_ready(&mut self, token: u64, event: Ready) {
        let Some(channel) = self.servers.get(token) else { return };
        let (group, id) = (channel.group, channel.id);
        let now = Instant::from_nanos(self.started.elapsed().as_nanos() as u64);
        if event.writable {
            if channel.connected {
                if channel.stream.flush(&self.poller).is_err() {
                    return self.server_gone(token);
                }
            } else if channel.stream.check_connected(&self.poller).is_err() {
                return self.server_gone(token);
            } else {
                channel.connected = true;
                self.engine.handle_server_connected(now, group, id);
            }
        }
        let Some(channel) = self.servers.get(token) else { return };
        if event.readable {
            match channel.stream.read(&mut self.buffer) {
                ReadOutcome::Bytes(count) => {
                    if let Some(recorder) = &mut self.recorder {
                        recorder.server_spoke(group);
                    }
                    if let Some(call_timings) = &mut self.call_timings {
                        call_timings.server_spoke(group);
                    }
                    let bytes = &self.buffer[..count];
                    self.engine.handle_server_bytes(now, group, id, bytes);
                    self.tell_time(group);
                    return;
                }
                ReadOutcome::Nothing => {}
                ReadOutcome::Closed => return self.server_gone(token),
            }
        }
        if event.hung_up {
            self.server_gone(token);
        }
    }

    fn server_gone(&mut self, token: u64) {
        if let Some((group, channel)) = self.servers.remove(token) {
            let now = self.now();
            self.engine.handle_server_closed(now, group, channel);
        }
    }

    fn read_letters(&mut self) -> Result<(), NodeError> {
        for message in self.mailbox.take() {
            let now = self.now();
            match message {
                DataMessage::Server(group, life, news)
                    if !self.supervisors.is_current(group, life) =>
                {
                    tracing::debug!(group = group.0, ?news, "news of a server that was given up");
                }
                DataMessage::Server(group, _, ServerNews::Up(endpoint)) => {
                    self.servers.close_group(group);
                    self.servers.set_endpoint(group, endpoint);
                    self.engine.handle_server_up(now, group);
                }
                DataMessage::Server(group, _, ServerNews::Down(reason)) => {
                    self.servers.close_group(group);
                    self.engine.handle_server_down(now, group, reason);
                }
                DataMessage::Admin(question) => self.answer(question),
                DataMessage::Log(news) => self.hear_log(news)?,
                DataMessage::Groups(version) => self.engine.handle_catalog_saved(now, version),
                DataMessage::File(ask) => self.reread(ask),
                DataMessage::LookedUp(server, found) => self.external.looked_up(server, found),
            }
        }
        Ok(())
    }

    fn answer(&mut self, question: admin::Question) {
        match question {
            admin::Question::Status(asker) => self.ask_status(asker),
            admin::Question::Change(name, quorba_admin::Change::Release(node), asker) => {
                let own = self.reporter.own_member(&name, &node);
                let _ = asker.send(own.map(|group| self.supervisors.release(group)));
            }
            admin::Question::Service(asked) => self.answer_service(asked),
            admin::Question::Tunnel(node, message) => self.send_tunnel(node, message),
            admin::Question::File(node, text) => self.reporter.heard_file(node, text.as_deref()),
            admin::Question::Clock(node, ahead_ms) => self.reporter.heard_clock(node, ahead_ms),
            admin::Question::Backup(name, asker) => self.back_up(&name, asker),
            admin::Question::Catalog(asker) => self.catalog(asker),
            admin::Question::Define { operation, change, asker } => {
                self.define(operation, change, asker);
            }
            admin::Question::Restore(name, given, asker) => self.restore(&name, *given, asker),
            admin::Question::Requests(name, wanted, asker) => {
                let _ = asker.send(self.requests(&name, wanted));
            }
            admin::Question::Change(name, quorba_admin::Change::Skip(number), asker) => {
                self.skip(&name, (number, false), asker);
            }
            admin::Question::Change(name, quorba_admin::Change::SkipAnswered(number), asker) => {
                self.skip(&name, (number, true), asker);
            }
            admin::Question::Change(name, change, asker) => {
                match self.reporter.command(&name, &change) {
                    Ok((group, command)) => {
                        let id = self.commands.open(asker);
                        let now = self.now();
                        self.engine.handle_command(now, group, id, command);
                    }
                    Err(refusal) => {
                        let _ = asker.send(Err(refusal));
                    }
                }
            }
        }
    }

    fn stop(&mut self) {
        let mut byte = [0; 16];
        let _ = std::io::Read::read(&mut self.signals, &mut byte);
        if self.stop_by.is_some() {
            // A second signal: the operator does not want to wait.
            self.stop_by = Some(Clock::now());
            return;
        }
        tracing::info!("stopping: clients are told to use other gateways");
        self.stop_by = Some(Clock::now() + DRAIN_WITHIN);
        self.clients.close_listeners();
        let now = self.now();
        self.engine.handle_stop(now);
    }

    /// Reads keys and the domain file again.
    fn reload(&mut self) {
        let mut byte = [0; 16];
        let _ = std::io::Read::read(&mut self.reloads, &mut byte);
        self.reload_keys();
        self.rereader.read();
    }

    /// Reads the key file again, and certificates. What is wrong with them is said, and changes
    /// nothing.
    fn reload_keys(&mut self) {
        let now = self.now();
        let file = self.reporter.key_file();
        let set = match quorba_config::DomainKey::read_file(file) {
            Ok(keys) => self
                .engine
                .set_domain_keys(now, settings::domain_keys(&keys))
                .map(|()| {
                    self.transport.set_keys(keys.iter().map(quorba_config::DomainKey::as_bytes));
                })
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let file = file.display();
        match set {
            Ok(()) => tracing::info!(%file, "the domain keys were read again"),
            Err(error) => tracing::error!(%file, error, "the domain keys stay what they were"),
        }
        self.clients.reload_keys();
    }
}

/// What the engine knows of this node: its id, boot, log, and how many connections may pass by.
type Known<'a> = (NodeId, &'a BootFile, Option<crate::log::Boot>, TransientConnections);

/// The engine with all keys of its domain, of which it has the first, and the groups that it knows:
/// the log may know of more than the list of groups.
fn with_keys(
    (me, boot, found, passing): Known<'_>,
    (reader, groups, catalog): (&Arc<Reader>, Groups, Catalog),
) -> (Node, Groups) {
    let keys = settings::domain_keys(&reader.shared().keys);
    let version = catalog.version();
    let about = (reader, catalog);
    let mut engine = settings::engine(about, me, boot, found, passing, Instant::ZERO);
    if let Err(error) = engine.set_domain_keys(Instant::ZERO, keys) {
        tracing::error!(%error, "only the first of the domain keys is used");
    }
    let groups = match engine.catalog().version() == version {
        true => groups,
        false => Groups::of_catalog(reader, engine.catalog()),
    };
    (engine, groups)
}

fn open_transport(
    (domain, me): (&Domain, NodeId),
    boot: &BootFile,
    descriptors: &descriptors::DescriptorBudget,
    poller: &Poller,
) -> Result<Transport, NodeError> {
    let tokens = Tokens { order: ORDER, links: LINKS };
    let mut transport = Transport::open(domain, me, boot, &tokens, poller)?;
    transport.bound_unproven(descriptors.passing.unproven);
    Ok(transport)
}

/// Begins to answer services.
fn start_offer(domain: &Domain, mailer: MailboxSender<DataMessage>) -> Result<Offer, NodeError> {
    Offer::start(domain, move |asked| mailer.send(DataMessage::Admin(asked)))
}

fn start_rereader(
    about: (&Domain, &str),
    mailer: MailboxSender<DataMessage>,
) -> Result<Rereader, NodeError> {
    Rereader::start(about, move |what| mailer.send(DataMessage::File(what)))
}

fn start_supervisors(
    (me, node, descriptors): (NodeId, quorba_config::Node, &descriptors::DescriptorBudget),
    mailer: MailboxSender<DataMessage>,
) -> Result<Supervisors, NodeError> {
    let site = SupervisorContext { me, node, reserve: descriptors.reserve.clone() };
    Supervisors::start(site, move |id, life, what| mailer.send(DataMessage::Server(id, life, what)))
}

/// Where the durable log of this node is, and who hears of it.
pub(crate) struct LogPlace {
    me: NodeId,
    incarnation: u64,
    mailer: MailboxSender<DataMessage>,
}

impl LogPlace {
    /// The same if there is a durable group.
    fn open_for(
        &self,
        domain: &Domain,
        groups: &Groups,
    ) -> Result<(Option<Log>, Option<crate::log::Boot>), NodeError> {
        Ok(match groups.iter().any(|(_, group)| group.durable) {
            true => self.open(domain).map(|(log, found)| (Some(log), Some(found)))?,
            false => (None, None),
        })
    }

    /// Opens the log, and gives what it remembers.
    fn open(&self, domain: &Domain) -> Result<(Log, crate::log::Boot), NodeError> {
        let node = domain.node(self.me).ok_or(NodeError::NoSuchNode)?;
        let mailer = self.mailer.clone();
        let tell = move |what| {
            mailer.send(DataMessage::Log(what));
        };
        Log::open(domain, self.me, self.incarnation, &node.state_dir, tell)
    }
}

/// Opens the list of groups; where there is none yet, the file's groups are those that there are.
fn open_store(
    (domain, state_dir): (&Domain, &Path),
    mailer: MailboxSender<DataMessage>,
) -> Result<(CatalogStore, Catalog), NodeError> {
    let (store, catalog) = CatalogStore::open(state_dir, move |version| {
        mailer.send(DataMessage::Groups(version));
    })?;
    Ok((store, catalog.unwrap_or_else(|| definitions::of_file(domain))))
}

/// What wakes the loop: letters, and what is asked of the process.
fn watch(mailbox: &Mailbox<DataMessage>) -> Result<(Poller, UnixStream, UnixStream), NodeError> {
    let poller = Poller::new().map_err(NodeError::Resources)?;
    poller.add(mailbox.bell(), BELL, Interest::READ).map_err(NodeError::Resources)?;
    let signals = listen_to(&[SIGTERM, SIGINT], SIGNALS, &poller)?;
    let reloads = listen_to(&[SIGHUP], RELOADS, &poller)?;
    Ok((poller, signals, reloads))
}

/// Begins to answer operators, here and through other nodes.
fn start_admin(
    (domain, file): (&Domain, &Arc<str>),
    me: NodeId,
    descriptors: &descriptors::DescriptorBudget,
    mailer: MailboxSender<DataMessage>,
) -> Result<(AdminServer, tunnel::NewsSender), NodeError> {
    let (tunnels, news) = tunnel::news();
    let ask = move |question| mailer.send(DataMessage::Admin(question));
    let about = (peers(domain, me), Arc::clone(file));
    let node = domain.node(me).ok_or(NodeError::NoSuchNode)?;
    Ok((
        AdminServer::start(
            node,
            admin::UnprovenConnections::new(descriptors.passing.admins),
            about,
            news,
            ask,
        )?,
        tunnels,
    ))
}

/// The nodes of the domain file, for the admin API.
fn peers(domain: &Domain, me: NodeId) -> Vec<admin::Peer> {
    let named = domain.node_set().iter().zip(&domain.nodes);
    let peer = |(id, node): (NodeId, &quorba_config::Node)| admin::Peer {
        name: node.name.clone(),
        id,
        is_me: id == me,
    };
    named.map(peer).collect()
}

/// A socket that becomes readable, as `token`, when one of `signals` comes.
fn listen_to(signals: &[i32], token: u64, poller: &Poller) -> Result<UnixStream, NodeError> {
    let socket = || {
        let (write, read) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
        }
        poller.add(&read, token, Interest::READ)?;
        Ok(read)
    };
    socket().map_err(NodeError::Resources)
}
