//! Server processes and their supervisors.
//!
//! Invariant: at most one process per supervisor; its node hears of it in the order in which
//! things happened.

use crate::event::Event;
use crate::host::Input;
use crate::names::{group_id, index_of};
use crate::run::ServerBug;
use crate::servant::{Log, Operation, Reference, bad_param};
use crate::server::{Misdeed, Server, Work};
use crate::stream::{Callee, Caller, Segment, Side, StreamId};
use crate::world::{World, ms, us};
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_engine::replica::{Concurrency, DownReason, GroupId, MemberState, ServerCommand, Style};
use quorba_giop::{Body, ReplyStatus, build};

/// The longest pause between two starts of a server.
const BACKOFF_MAX_MS: u64 = 10_000;
/// A server that ran this long has recovered.
const SETTLED: Duration = Duration::from_secs(10);

impl World {
    pub(crate) fn group_plan(&self, group: GroupId) -> &crate::plan::GroupPlan {
        &self.plan.groups[index_of(group)]
    }

    // -- supervision ------------------------------------------------------------------------

    /// A node started: its supervisors start their servers, or find those of somebody else.
    pub(crate) fn begin_supervision(&mut self, node: usize, group: GroupId) {
        let backoff_ms = self.group_plan(group).backoff_ms;
        let wanted = self.group_plan(group).style != Style::ColdPassive;
        let Some(supervisor) = &mut self.hosts[node].supervisors[index_of(group)] else {
            return;
        };
        supervisor.backoff_ms = backoff_ms;
        supervisor.wanted = wanted;
        if wanted {
            self.order_server(node, group, Duration::ZERO);
        }
    }

    /// A node's process ended. Servers that it started end with it.
    pub(crate) fn end_supervision(&mut self, node: usize, group: GroupId, power_cut: bool) {
        let foreign = self.group_plan(group).foreign && !power_cut;
        let Some(supervisor) = &mut self.hosts[node].supervisors[index_of(group)] else {
            return;
        };
        supervisor.serial += 1;
        if let Some(server) = supervisor.server
            && !foreign
        {
            self.kill_server(server);
        }
    }

    fn order_server(&mut self, node: usize, group: GroupId, wait: Duration) {
        let boot = self.hosts[node].boot;
        let Some(supervisor) = &mut self.hosts[node].supervisors[index_of(group)] else {
            return;
        };
        supervisor.serial += 1;
        let serial = supervisor.serial;
        self.queue.push(self.now + wait, Event::ServerStart { node, boot, group, serial });
    }

    pub(crate) fn start_server(&mut self, node: usize, boot: u64, group: GroupId, serial: u64) {
        let host = &mut self.hosts[node];
        let Some(supervisor) = &mut host.supervisors[index_of(group)] else { return };
        let stale = supervisor.serial != serial || !supervisor.wanted;
        if host.boot != boot || host.node.is_none() || stale {
            return;
        }
        let running = supervisor.server.filter(|server| self.servers[*server].alive);
        let ready = if let Some(server) = running {
            self.servers[server].listening = true;
            us(500)
        } else {
            let server = self.servers.len();
            supervisor.server = Some(server);
            let has_threads = self.group_plan(group).has_threads;
            let log = if self.plan.names { Log::with_names() } else { Log::default() };
            self.servers.push(Server::new(node, group, has_threads, log));
            self.servers[server].listening = true;
            let start_ms = self.group_plan(group).start_ms;
            us(self.rng.between(start_ms * 500, start_ms * 2_000))
        };
        let supervisor = self.hosts[node].supervisors[index_of(group)].as_mut();
        supervisor.expect("looked up above").started_at = self.now;
        self.say(|| format!("n{node} g{} server starts", index_of(group)));
        self.tell(node, group, ready, None);
    }

    /// Plans news for a node, behind those that are on the way.
    fn tell(&mut self, node: usize, group: GroupId, wait: Duration, down: Option<DownReason>) {
        let at = self.now + wait;
        let boot = self.hosts[node].boot;
        let Some(supervisor) = &mut self.hosts[node].supervisors[index_of(group)] else {
            return;
        };
        supervisor.news_at = at.max(supervisor.news_at + Duration::from_nanos(1));
        let stops = supervisor.stops;
        let news = Event::ServerNews { node, boot, group, stops, down };
        self.queue.push(supervisor.news_at, news);
    }

    pub(crate) fn server_news(
        &mut self,
        (node, boot): (usize, u64),
        (group, stops): (GroupId, u32),
        down: Option<DownReason>,
    ) {
        let supervisor = self.hosts[node].supervisors[index_of(group)].as_ref();
        if self.hosts[node].boot != boot || supervisor.is_none_or(|s| s.stops != stops) {
            return;
        }
        self.close_channels(node, group);
        match down {
            None => self.deliver(node, Input::ServerUp(group, stops)),
            Some(reason) => self.deliver(node, Input::ServerDown(group, stops, reason)),
        }
    }

    /// A server ends, by itself or because it is told to.
    pub(crate) fn end_server(&mut self, server: usize) {
        if !self.servers[server].alive {
            return;
        }
        let (node, group) = (self.servers[server].node, self.servers[server].group);
        self.note_process_end(server);
        self.kill_server(server);
        if !self.hosts[node].is_up() || self.group_plan(group).foreign {
            // Somebody else's server: its node sees no more than its connections end.
            return;
        }
        let wait = us(self.rng.between(20, 3_000));
        self.tell(node, group, wait, Some(DownReason::ServerExited));
        self.restart_later(node, group);
    }

    fn restart_later(&mut self, node: usize, group: GroupId) {
        let backoff_ms = self.group_plan(group).backoff_ms;
        let Some(supervisor) = &mut self.hosts[node].supervisors[index_of(group)] else {
            return;
        };
        if self.now.since(supervisor.started_at) >= SETTLED {
            supervisor.backoff_ms = backoff_ms;
        }
        let wait = ms(supervisor.backoff_ms) + ms(4);
        supervisor.backoff_ms = (supervisor.backoff_ms * 2).min(BACKOFF_MAX_MS);
        self.order_server(node, group, wait);
    }

    fn kill_server(&mut self, server: usize) {
        let dead = &mut self.servers[server];
        if !std::mem::replace(&mut dead.alive, false) {
            return;
        }
        dead.listening = false;
        dead.queue.clear();
        dead.running.clear();
        let node = dead.node;
        let links = std::mem::take(&mut dead.links);
        self.say(|| format!("n{node} server {server} ends"));
        for id in links.into_keys() {
            let segment = if self.rng.per_mille(500) { Segment::Reset } else { Segment::End };
            self.send(id, Side::Callee, segment);
        }
        self.end_calls(server);
        self.checks.server_ended(&self.servers[server]);
    }

    // -- commands of the engine -------------------------------------------------------------

    pub(crate) fn command_server(&mut self, node: usize, group: GroupId, command: ServerCommand) {
        match command {
            ServerCommand::Connect(channel) => {
                self.note_connect(node, index_of(group));
                let supervisor = self.hosts[node].supervisors[index_of(group)].as_ref();
                let server = supervisor.and_then(|s| s.server).expect("an up server was told of");
                let boot = self.hosts[node].boot;
                let caller = Caller::Node { node, boot, group, channel };
                self.connect(caller, Callee::Server(server), false);
            }
            ServerCommand::Send(channel, bytes) => {
                self.transcript.mix_bytes(&bytes);
                self.note_moment(node, group, &bytes);
                if let Some(id) = self.channel(node, group, channel) {
                    self.send(id, Side::Caller, Segment::Bytes(bytes));
                }
            }
            ServerCommand::SendAll(channel, pieces) => {
                let mut reader = Server::framer();
                for bytes in &pieces {
                    self.transcript.mix_bytes(bytes);
                    reader.push(bytes);
                }
                if let Ok(Some(message)) = reader.next() {
                    self.note_moment(node, group, message.bytes());
                }
                for bytes in pieces {
                    if let Some(id) = self.channel(node, group, channel) {
                        self.send(id, Side::Caller, Segment::Bytes(bytes));
                    }
                }
            }
            ServerCommand::Close(channel) => {
                if let Some(id) = self.channel(node, group, channel) {
                    self.close_channel(id);
                }
            }
            ServerCommand::Restart(reason) => {
                self.say(|| {
                    format!("n{node} g{} restarts its server: {}", index_of(group), reason.text())
                });
                self.note_restart(node, index_of(group), reason);
                self.close_channels(node, group);
                self.restart_server(node, group);
            }
            ServerCommand::Start => self.want_server(node, group),
            ServerCommand::Stop => self.stop_server(node, group),
        }
    }

    fn want_server(&mut self, node: usize, group: GroupId) {
        let Some(supervisor) = &mut self.hosts[node].supervisors[index_of(group)] else {
            return;
        };
        if !std::mem::replace(&mut supervisor.wanted, true) {
            self.order_server(node, group, Duration::ZERO);
        }
    }

    fn stop_server(&mut self, node: usize, group: GroupId) {
        self.say(|| format!("n{node} g{} needs no server", index_of(group)));
        self.close_channels(node, group);
        let Some(supervisor) = &mut self.hosts[node].supervisors[index_of(group)] else {
            return;
        };
        supervisor.wanted = false;
        supervisor.stops += 1;
        if let Some(server) = supervisor.server {
            self.kill_server(server);
        }
    }

    fn restart_server(&mut self, node: usize, group: GroupId) {
        let foreign = self.group_plan(group).foreign;
        let Some(supervisor) = self.hosts[node].supervisors[index_of(group)] else { return };
        let Some(server) = supervisor.server else { return };
        if foreign {
            // Nobody here can end it: it is connected to again.
            self.restart_later(node, group);
        } else if self.servers[server].alive {
            self.end_server(server);
        }
    }

    fn channel(
        &self,
        node: usize,
        group: GroupId,
        channel: quorba_engine::replica::ChannelId,
    ) -> Option<StreamId> {
        let boot = self.hosts[node].boot;
        let wanted = Caller::Node { node, boot, group, channel };
        self.streams
            .iter()
            .find(|(_, stream)| stream.caller == wanted && !stream.is_deaf(Side::Caller))
            .map(|(id, _)| *id)
    }

    fn close_channel(&mut self, id: StreamId) {
        self.send(id, Side::Caller, Segment::End);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.hear_no_more(Side::Caller);
        }
    }

    /// What the driver does when it hears of a server: old connections are closed unsaid.
    pub(crate) fn close_channels(&mut self, node: usize, group: GroupId) {
        let open: Vec<StreamId> = self
            .streams
            .iter()
            .filter(|(_, stream)| {
                matches!(stream.caller, Caller::Node { node: n, group: g, .. }
                    if n == node && g == group)
                    && !stream.is_deaf(Side::Caller)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in open {
            self.close_channel(id);
        }
    }

    // -- the server's side ------------------------------------------------------------------

    pub(crate) fn server_hears(&mut self, id: StreamId, server: usize, segment: Segment) {
        let target = &mut self.servers[server];
        match segment {
            Segment::Open if target.alive && target.listening => {
                target.links.insert(id, Server::framer());
                self.send(id, Side::Callee, Segment::Accepted);
            }
            Segment::Open => self.send(id, Side::Callee, Segment::Refused),
            Segment::Bytes(bytes) => self.server_bytes(id, server, &bytes),
            Segment::End | Segment::Reset => {
                target.links.remove(&id);
                // A server executes what it was sent, even if nobody waits for the reply. Behind a
                // call that it left out it would go on beside the next connection, against what
                // `pipelined` promises, and nobody could tell.
                if target.owes.contains(&id) {
                    target.queue.retain(|work| work.stream != id);
                }
                self.streams.remove(&id);
            }
            Segment::Accepted | Segment::Refused => {}
        }
    }

    fn server_bytes(&mut self, id: StreamId, server: usize, bytes: &[u8]) {
        let came = self.now;
        let target = &mut self.servers[server];
        let Some(framer) = target.links.get_mut(&id) else { return };
        framer.push(bytes);
        while let Ok(Some(message)) = framer.next() {
            let Ok(Body::Request(request)) = message.parse() else { continue };
            let work = Work {
                stream: id,
                request_id: request.request_id(),
                operation: Operation::of(&request, message.endian()),
                wants_reply: request.response_expected(),
                message: message.clone(),
                came,
            };
            target.queue.push_back(work);
        }
        self.server_next(server);
    }

    fn server_next(&mut self, server: usize) {
        let concurrency = self.group_plan(self.servers[server].group).concurrency;
        while !self.servers[server].hangs
            && let Some(work) = self.servers[server].next_work(concurrency)
        {
            self.server_begins(server, work);
        }
    }

    fn server_begins(&mut self, server: usize, work: Work) {
        self.note_begin(index_of(self.servers[server].group), server, &work);
        if self.says_goodbye(server, &work) {
            return;
        }
        let lateness = self.lateness(server, &work);
        let target = &mut self.servers[server];
        target.serial += 1;
        self.hearsay.beside += u64::from(target.calling.is_some());
        target.running.insert(target.serial, work);
        let serial = target.serial;
        let (group, slow) = (target.group, target.slow_until > self.now);
        let lingers = target.lingers.take().unwrap_or_default();
        let (low, high) = self.group_plan(group).execute_us;
        let mut time = self.rng.between(low, high);
        if slow {
            time = time * 20 + 50_000;
        }
        self.queue
            .push(self.now + us(time) + lingers + lateness, Event::ServerDone { server, serial });
    }

    pub(crate) fn server_done(&mut self, server: usize, serial: u64) {
        let target = &mut self.servers[server];
        if !target.alive || target.hangs {
            return;
        }
        if !target.running.contains_key(&serial) || self.begin_calls(server, serial) {
            return;
        }
        self.server_ends(server, serial);
    }

    /// What a server works on is done, with all that it has called for it.
    pub(crate) fn server_ends(&mut self, server: usize, serial: u64) {
        let target = &mut self.servers[server];
        let Some(work) = target.running.remove(&serial) else { return };
        if let Some(reaction) = self.reaction(server, &work) {
            self.react(server, &work, reaction);
            return self.server_next(server);
        }
        let reply = self.execute(server, &work);
        if work.wants_reply && self.servers[server].links.contains_key(&work.stream) {
            self.transcript.mix_bytes(&reply);
            self.send(work.stream, Side::Callee, Segment::Bytes(reply));
        }
        self.server_next(server);
    }

    pub(crate) fn execute(&mut self, server: usize, work: &Work) -> Bytes {
        let has_several =
            self.group_plan(self.servers[server].group).concurrency != Concurrency::Sequential;
        let is_outvoted = self.is_outvoted(self.servers[server].group, &work.operation);
        let target = &mut self.servers[server];
        let (version, endian) = (work.message.version(), work.message.endian());
        let group = target.group;
        // It has left a call out. Its node learns that, and counts on nothing behind it; but until
        // then a server that goes on with other calls has executed other ones than its peers.
        target.hangs |=
            has_several && matches!(target.misdeed, Some(Misdeed::Garbage | Misdeed::WrongId));
        let is_state = work.operation.is_state();
        if matches!(target.misdeed, Some(Misdeed::Garbage | Misdeed::WrongId)) {
            self.note_strange(server);
            if let Operation::Append(reference) = work.operation {
                self.checks.endings.odd.insert(reference);
            }
        }
        let target = &mut self.servers[server];
        match target.misdeed {
            Some(Misdeed::Garbage) => {
                target.misdeed = None;
                return Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n");
            }
            Some(Misdeed::WrongId) => {
                target.misdeed = None;
                return bad_param(version, endian, work.request_id.wrapping_add(7));
            }
            Some(Misdeed::NoState) if is_state => {
                target.misdeed = None;
                return bad_param(version, endian, work.request_id);
            }
            _ => {}
        }
        let operation = work.operation.clone();
        let mut reply = operation.execute(&mut target.log, version, endian, work.request_id);
        if is_outvoted && target.misdeed.take_if(|misdeed| *misdeed == Misdeed::Lie).is_some() {
            // No two servers tell the same lie.
            let mut log = target.log.clone();
            log.append(Reference(1_000 + server as u64));
            reply = Operation::Peek.execute(&mut log, version, endian, work.request_id);
        }
        let reply = self.spoil(server, work, reply);
        if is_state {
            self.note_state(server);
        }
        let target = &self.servers[server];
        if let Operation::Append(reference) = work.operation {
            let end = target.log.end();
            let node = target.node;
            self.transcript.whisper(self.now, || {
                format!("n{node} server {server} executes {:x} at {}", reference.0, end.length)
            });
            self.transcript.mix(end.digest);
            self.note_fresh_start(group, end);
            self.note_executed(group, reference);
            self.note_had(node, reference);
            let facts = &mut self.checks.groups[index_of(group)];
            if !facts.has_history() {
                facts.executed.insert(reference);
            }
        }
        reply
    }

    /// Whether one member that says something else is outvoted: all have a say in this call, as
    /// every node knew every member to be in before it was made.
    fn is_outvoted(&self, group: GroupId, operation: &Operation) -> bool {
        if !self.plan.lies {
            return true;
        }
        let Operation::Append(reference) = operation else { return false };
        let invoked = self.ledger.calls.get(reference).map(|call| call.invoked);
        let is_in = |state: &MemberState| matches!(state, MemberState::In { .. });
        let are_all_in = self.snapshots().iter().all(|snapshot| {
            let table = snapshot.as_ref().map(|s| &s.groups[group].members);
            table.is_some_and(|members| members.iter().all(|(_, state)| is_in(state)))
        });
        are_all_in && invoked > self.checks.groups[index_of(group)].moved_at
    }

    /// Lets the planted bug, if there is one, do its work on what was just executed.
    fn spoil(&mut self, server: usize, work: &Work, reply: Bytes) -> Bytes {
        let Some(bug) = self.server_bug else { return reply };
        let (version, endian) = (work.message.version(), work.message.endian());
        let target = &mut self.servers[server];
        match (bug, &work.operation) {
            (ServerBug::ForgetsInTransfer, Operation::SetState(_)) => target.log.forget_last(),
            (ServerBug::LosesNameInTransfer, Operation::SetState(_)) => target.log.lose_name(),
            (ServerBug::ResolvesLate, Operation::Last(reference)) => {
                if let Some(value) = target.log.before_last_of(reference.object()) {
                    let good = ReplyStatus::NoException;
                    let id = work.request_id;
                    let reply = build::reply(version, endian, id, good, |cdr| cdr.write_u64(value));
                    return reply.bytes().clone();
                }
            }
            (bug, Operation::Append(reference)) if reference.0 % 16 == 5 => match bug {
                ServerBug::ExecutesTwice => {
                    target.log.append(*reference);
                }
                ServerBug::SkipsOnOneNode if target.node == 0 => target.log.forget_last(),
                ServerBug::Lies => {
                    let mut log = target.log.clone();
                    log.forget_last();
                    log.append(Reference(1));
                    let look = Operation::Peek;
                    return look.execute(&mut log, version, endian, work.request_id);
                }
                ServerBug::RefusesAfterExecution => {
                    return bad_param(version, endian, work.request_id);
                }
                _ => {}
            },
            _ => {}
        }
        reply
    }

    /// The server stops answering at all.
    pub(crate) fn hang_server(&mut self, server: usize) {
        // What it worked on is never done.
        self.servers[server].hangs = true;
    }

    /// The server closes its connections: as GIOP wants it, or without a word.
    pub(crate) fn drop_links(&mut self, server: usize, politely: bool) {
        // GIOP allows CloseConnection only while no call is being answered.
        let target = &self.servers[server];
        let owes = target.owes_some();
        if politely && (owes || !target.running.is_empty()) {
            return;
        }
        if self.servers[server].calling.is_some() {
            // It would wait for what it called, and nothing that comes behind would be executed.
            return;
        }
        let running = self.servers[server].running.values();
        let operations: Vec<_> = running.map(|work| work.operation.clone()).collect();
        for operation in operations {
            if let Operation::Append(reference) = operation {
                self.checks.endings.odd.insert(reference);
            }
            // What it executes has no reply, and others may have one.
            self.note_strange(server);
        }
        let links: Vec<StreamId> = self.servers[server].links.keys().copied().collect();
        self.servers[server].links.clear();
        // What came on them and was not begun is forgotten.
        self.servers[server].queue.retain(|work| !links.contains(&work.stream));
        for id in links {
            if politely {
                let goodbye = build::close_connection(quorba_giop::Version::V1_2).bytes().clone();
                self.send(id, Side::Callee, Segment::Bytes(goodbye));
                self.send(id, Side::Callee, Segment::End);
            } else {
                self.send(id, Side::Callee, Segment::Reset);
            }
        }
    }

    /// Servers of a group that run, by node.
    /// In every group that has a leader and another member, the leader's server ends.
    pub(crate) fn end_leaders(&mut self) {
        let snapshots = self.snapshots();
        for group in 0..self.plan.groups.len() {
            let leaders =
                snapshots.iter().flatten().filter_map(|s| s.groups.get(group_id(group))?.leader);
            let Some(leader) = leaders.map(|node| usize::from(node.index())).next() else {
                continue;
            };
            let supervisor = self.hosts[leader].supervisors[group].as_ref();
            if self.has_other_member(&snapshots, group, leader)
                && let Some(server) = supervisor.and_then(|s| s.server)
            {
                self.say(|| format!("the leader of g{group} ends"));
                self.end_server(server);
            }
        }
    }

    pub(crate) fn live_servers(&self, group: GroupId) -> Vec<usize> {
        self.hosts
            .iter()
            .filter_map(|host| host.supervisors[index_of(group)].and_then(|s| s.server))
            .filter(|server| self.servers[*server].alive)
            .collect()
    }

    pub(crate) fn slow_server(&mut self, server: usize, until: Instant) {
        self.servers[server].slow_until = until;
    }
}
