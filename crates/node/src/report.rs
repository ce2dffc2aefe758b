//! Turns what the engine counts into what people and programs read: [`Status`].
//!
//! Invariant: names instead of numbers, taken from the domain file.

mod channels;
mod clocks;
mod differences;
mod reasons;
mod references;
mod refusals;
#[cfg(test)]
mod tests;
mod unanswered;

use self::reasons::{TOLD_OUT, when_again};
pub(crate) use self::reasons::{basis_text, why_left};
pub(crate) use self::unanswered::end_kind;
use crate::NodeError;
use crate::groups::Groups;
use crate::recent;
use quorba_admin::Change;
use quorba_admin::requests::Requests;
use quorba_admin::status::{
    CallStatus, Caller, CatchUpKind, CatchUpStatus, ChannelStatus, GroupStatus, IdentityStatus,
    MemberState as State, MemberStatus, MissingChannelStatus, NodeStatus, RingState, RingStatus,
    ServerStatus, Status, TransferStatus, millis,
};
use quorba_base::{NodeId, NodeSet};
use quorba_config::{Backend, Domain, Engine, Group, Node, Outside};
use quorba_engine::order::{LeaveReason, Protection, Snapshot, StateName, View};
use quorba_engine::replica::primary::Basis;
use quorba_engine::replica::{
    Command, CommandRefused, GroupId, GroupMap, GroupSnapshot, Lacks, LogHold, MemberState,
    PrimaryStatus, RecentPage, Style, TransferProgress,
};
use quorba_engine::{GatewayCounters, GatewaySnapshot, NodeSnapshot};
use quorba_idl::quorba::EventServiceFigures;
use quorba_net::Fanout;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Linux counts process times in these units for every architecture that it runs on today.
const CLOCK_TICKS_PER_SECOND: u64 = 100;
const PAGE_BYTES: u64 = 4096;
/// A checkpoint is overdue when so many times as many requests have come as it comes after, and so
/// many more: several may be under way.
const OVERDUE: u64 = 4;
const OVERDUE_LEAST: u64 = 1000;

/// See the module's text.
pub(crate) struct Reporter {
    /// Its groups are not looked at: those that there are now are in `groups`.
    domain: Arc<Domain>,
    /// What must be equal in the domain files of all nodes.
    file: Arc<str>,
    groups: Groups,
    me: NodeId,
    last_changes: HashMap<GroupId, String>,
    differences: differences::Differences,
    references: references::References,
    refusals: refusals::Refusals,
    clocks: clocks::Clocks,
    basis: Option<Basis>,
    /// The same for groups that are not durable, where that is another question.
    memory_basis: Option<Basis>,
    /// When the domain began anew, because too many nodes had ended at the same time.
    memory_lost: Option<Instant>,
    /// The groups that there were then.
    lost: HashSet<GroupId>,
    /// Who is not in the view, since when and why.
    left: HashMap<NodeId, (Instant, LeaveReason)>,
    /// This boot, as requests name it.
    incarnation: u64,
    clients: unanswered::Clients,
    channels: channels::Channels,
    /// What factories of applications may have left behind, in words for an operator.
    left_behind: VecDeque<String>,
    /// Why objects were not created, in words for an operator.
    not_created: VecDeque<String>,
}

/// So many of the last ones are told.
const TOLD_MAX: usize = 8;

impl Reporter {
    pub(crate) fn new(
        (domain, file): (Arc<Domain>, Arc<str>),
        groups: Groups,
        me: NodeId,
        incarnation: u64,
    ) -> Self {
        Self {
            domain,
            file,
            groups,
            me,
            last_changes: HashMap::new(),
            differences: differences::Differences::default(),
            references: references::References::default(),
            refusals: refusals::Refusals::default(),
            clocks: clocks::Clocks::default(),
            basis: None,
            memory_basis: None,
            memory_lost: None,
            lost: HashSet::new(),
            left: HashMap::new(),
            incarnation,
            clients: unanswered::Clients::default(),
            channels: channels::Channels::default(),
            left_behind: VecDeque::new(),
            not_created: VecDeque::new(),
        }
    }

    /// All groups, and servers outside, that there are now.
    pub(crate) const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// All nodes of the domain, in the order of their ids.
    pub(crate) fn all_nodes(&self) -> &[Node] {
        &self.domain.nodes
    }

    /// There is such a group from now on, or it is another one.
    pub(crate) fn open(&mut self, id: GroupId, group: Arc<Group>) {
        self.groups.insert(id, group);
    }

    /// There is such a server outside from now on, or it is another one.
    pub(crate) fn open_outside(&mut self, id: GroupId, server: Arc<Outside>) {
        self.groups.insert_outside(id, server);
    }

    /// There is no such server outside any more.
    pub(crate) fn close_outside(&mut self, id: GroupId) -> Option<Arc<Outside>> {
        self.groups.remove_outside(id)
    }

    /// There is no such group any more, and nothing of it is remembered; what it was.
    pub(crate) fn close(&mut self, id: GroupId) -> Option<Arc<Group>> {
        self.last_changes.remove(&id);
        self.channels.forget(id);
        self.lost.remove(&id);
        self.differences.forget(id);
        self.references.forget(id);
        self.clients.forget(id);
        self.groups.remove(id)
    }

    fn node(&self) -> &Node {
        self.domain.node(self.me).expect("checked at the start")
    }

    pub(crate) fn node_name(&self) -> &str {
        &self.node().name
    }

    pub(crate) fn name_of(&self, node: NodeId) -> &str {
        self.domain.node(node).map_or("?", |node| node.name.as_str())
    }

    pub(crate) fn group_name(&self, group: GroupId) -> &str {
        self.groups.name_of(group).unwrap_or("?")
    }

    pub(crate) fn disk_failed(&self, source: std::io::Error) -> NodeError {
        NodeError::StateDir { path: self.node().state_dir.clone(), source }
    }

    pub(crate) fn saw_view(&mut self, view: &View) {
        (self.basis, self.memory_basis) = (None, None);
        let now = Instant::now();
        self.left.extend(view.left.iter().map(|(node, reason)| (*node, (now, *reason))));
        self.left.retain(|node, _| !view.members.contains(*node));
    }

    pub(crate) fn is_primary(&mut self, basis: Basis) {
        self.basis = Some(basis);
        self.heed_loss(basis);
    }

    fn heed_loss(&mut self, basis: Basis) {
        if matches!(basis, Basis::ColdStart | Basis::MemoryLost) {
            self.memory_lost = Some(Instant::now());
            self.lost = self.groups.ids().collect();
            tracing::warn!(
                "most nodes had ended at the same time: what groups that are not durable had only \
                 in memory is lost; quorba restore brings back a backup"
            );
        }
    }

    /// Groups that are not durable go on from other nodes than the domain.
    pub(crate) fn memory_is_from(&mut self, basis: Basis) {
        self.memory_basis = Some(basis);
        self.heed_loss(basis);
    }

    pub(crate) fn member_changed(&mut self, group: GroupId, text: String) {
        // What is late is of a group that has gone.
        if self.groups.get(group).is_some() {
            self.last_changes.insert(group, text);
        }
    }

    /// The server of an event service here says what its channels do.
    pub(crate) fn hear_channels(&mut self, group: GroupId, figures: EventServiceFigures) {
        self.channels.hear(group, figures, Instant::now());
    }

    /// What is said of these groups. One that the engine has not got yet, or has no more, is not
    /// told of.
    pub(crate) fn groups_status(
        &self,
        snapshot: &NodeSnapshot,
        groups: &[GroupId],
        mut servers: GroupMap<ServerStatus>,
        uptime: Duration,
    ) -> Vec<(GroupId, GroupStatus)> {
        let known = groups.iter().filter_map(|id| {
            let id = *id;
            let group = self.groups.get(id)?;
            Some((id, group, snapshot.groups.get(id)?, snapshot.gateway.groups.get(id)?))
        });
        known
            .map(|(id, group, replica, gateway)| {
                let server = servers.remove(id);
                let last = self.last_changes.get(&id).cloned();
                let away = self.domain.node_set().difference(snapshot.order.members);
                let waits = replica.waits_for_memory;
                let waits_for = if waits { self.names(away) } else { Vec::new() };
                let server = server.map(|server| unanswered::server(replica, server));
                let endings = &replica.endings;
                let (channels, missing_channels) = self.channels(id, replica);
                let status = GroupStatus {
                    channels,
                    missing_channels,
                    differ: self.differ(id),
                    references: self.references.status(id),
                    reference_keys: self.references.keys(id),
                    may_differ_ms: self.may_differ_ms(id, endings.doubt),
                    lost_memory: self.lost.contains(&id),
                    members: self.members(id, replica),
                    waits_for,
                    ended: self.ended(id, endings),
                    ends_behind: self.ends_behind(id, endings),
                    stuck: self.stuck((id, group), endings, uptime),
                    ..self.group(group, replica, gateway, server, last)
                };
                (id, status)
            })
            .collect()
    }

    /// What the channels of an event service do, where its leader is.
    fn channels(
        &self,
        id: GroupId,
        replica: &GroupSnapshot,
    ) -> (Vec<ChannelStatus>, Vec<MissingChannelStatus>) {
        if replica.leader != Some(self.me) {
            return (Vec::new(), Vec::new());
        }
        let now = Instant::now();
        (self.channels.status(id, now), self.channels.missing(id, now))
    }

    /// The whole status, with what is said of the groups. `links`: what waits to be sent to each
    /// node that messages pass to.
    pub(crate) fn status(
        &self,
        snapshot: &NodeSnapshot,
        (fanout, links): (&Fanout, &BTreeMap<NodeId, usize>),
        groups: Vec<GroupStatus>,
        uptime: Duration,
    ) -> Status {
        let (cpu_ms, rss_bytes) = own_usage();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            domain: self.domain.id.clone(),
            node: self.node_name().into(),
            pid: std::process::id(),
            uptime_ms: millis(uptime),
            ring: self.ring(&snapshot.order, fanout, snapshot.primary),
            nodes: self.nodes(&snapshot.order, snapshot.primary, links),
            groups,
            cpu_ms,
            rss_bytes,
            call_timings: None,
            log: None,
            warnings: self.warnings(&snapshot.order, &snapshot.gateway),
        }
    }

    fn fanout(&self, fanout: &Fanout) -> String {
        match fanout {
            Fanout::Unicast(why) => format!("unicast: {why}"),
            Fanout::Multicast { group, reached } => {
                let names = self.names(*reached).join(", ");
                format!("multicast {group}, which reaches {names}")
            }
        }
    }

    fn ring(&self, order: &Snapshot, fanout: &Fanout, primary: PrimaryStatus) -> RingStatus {
        let state = match order.state {
            StateName::Gather => RingState::Gather,
            StateName::Commit => RingState::Commit,
            StateName::Recovery => RingState::Recovery,
            StateName::Operational => RingState::Operational,
        };
        let us = |time: Duration| (!time.is_zero()).then_some(time.as_secs_f64() * 1e6);
        RingStatus {
            state,
            reason: self.why_gathered(order.reason),
            view_seq: order.ring.map_or(0, |ring| ring.seq),
            representative: order.ring.map_or("", |ring| self.name_of(ring.representative)).into(),
            members: self.names(order.members),
            primary: primary == PrimaryStatus::Primary,
            primary_reason: self.primary_reason(primary),
            memory_lost_ms: self.memory_lost.map(|at| millis(at.elapsed())),
            rotation_us: us(order.rotation),
            exchange_us: us(order.exchange),
            token_visits: order.counters.token_visits,
            delivered: order.counters.delivered,
            retransmits: order.counters.repeated,
            view_changes: order.counters.rings,
            encrypt: order.protection == Protection::Sealed,
            sealing_key: order.sealing_key.map(|key| key.to_string()),
            fanout: self.fanout(fanout),
            engine: self.domain.ring.engine.as_str().into(),
        }
    }

    /// The group called `name`.
    pub(crate) fn group_id(&self, name: &str) -> Result<GroupId, String> {
        self.groups.id_of(name).ok_or_else(|| format!("there is no group {name}"))
    }

    fn node_id(&self, name: &str) -> Result<NodeId, String> {
        self.domain.node_id(name).ok_or_else(|| format!("there is no node {name}"))
    }

    /// Whether this node has a member of the group.
    pub(crate) fn has_member(&self, group: GroupId) -> bool {
        self.groups.get(group).is_some_and(|group| group.members.contains(self.me))
    }

    /// The group as it was declared; none if it has gone.
    pub(crate) fn group_config(&self, group: GroupId) -> Option<&Group> {
        self.groups.get(group).map(|group| &**group)
    }

    /// How long somebody may be at a request of the group before it is stuck.
    pub(crate) fn stuck_after(&self, group: GroupId) -> Duration {
        self.group_config(group).map_or(Duration::MAX, |group| group.stuck)
    }

    /// What a backup of the group is called by; nothing if it has gone.
    pub(crate) fn backup_names(&self, group: GroupId) -> Option<(&str, &Group, &str)> {
        Some((&self.domain.id, self.group_config(group)?, self.node_name()))
    }

    pub(crate) fn requests(&self, now: quorba_base::Instant, page: RecentPage) -> Requests {
        recent::answer(&self.domain, self.me, now, page)
    }

    /// The command that an operator's change of the group called `name` is.
    pub(crate) fn command(
        &self,
        name: &str,
        change: &Change,
    ) -> Result<(GroupId, Command), String> {
        let id = self.group_id(name)?;
        let backend = self.group_config(id).map(|group| &group.backend);
        let command = match change {
            Change::Style(word) => match Style::from_word(word) {
                Some(style)
                    if style == Style::ColdPassive
                        && matches!(backend, Some(Backend::Connect(_))) =>
                {
                    return Err(format!(
                        "style \"{word}\" needs servers that the nodes start and end; those of \
                         group {name} are started by somebody else"
                    ));
                }
                Some(style) => Command::SetStyle(style),
                None => return Err(format!("there is no style \"{word}\"")),
            },
            Change::Promote(node) => Command::Promote(self.node_id(node)?),
            Change::Add(node) => Command::Add(self.node_id(node)?),
            Change::Remove(node) => Command::Remove(self.node_id(node)?),
            Change::Adopt(node) => Command::Adopt(self.node_id(node)?),
            Change::Release(_) => unreachable!("it concerns one node and is not ordered"),
            Change::Skip(_) | Change::SkipAnswered(_) => {
                unreachable!("the engine makes the command, of what it remembers")
            }
        };
        Ok((id, command))
    }

    pub(crate) fn is_me(&self, node: NodeId) -> bool {
        node == self.me
    }

    /// The group called `name`, whose member on `node`, which is to be this one, is meant.
    pub(crate) fn own_member(&self, name: &str, node: &str) -> Result<GroupId, String> {
        let group = self.group_id(name)?;
        match self.domain.node_id(node) {
            None => Err(format!("there is no node {node}")),
            Some(id) if id != self.me => Err(format!("node {node} is to be asked itself")),
            Some(_) if !self.has_member(group) => {
                Err(format!("group {name} has no member on node {node}"))
            }
            Some(_) => Ok(group),
        }
    }

    /// Why a command was refused, with names.
    pub(crate) fn refusal(&self, refused: CommandRefused) -> String {
        match refused {
            CommandRefused::NoMember(node) => format!(
                "node {} has no member of the group: the group's definition does not list it \
                 under `members`",
                self.name_of(node)
            ),
            CommandRefused::NotOut(node) => format!(
                "the member on node {} takes part, or has no server, or can be given the state of \
                 one that takes part; `quorba status` tells which members are out, and why",
                self.name_of(node)
            ),
            CommandRefused::NotRemoved(node) => {
                format!("the member on node {} takes part already", self.name_of(node))
            }
            CommandRefused::Removed(node) => {
                format!("the member on node {} is removed already", self.name_of(node))
            }
            CommandRefused::NoWayBack(node) => format!(
                "the member on node {} could not come back: the group names no state_object",
                self.name_of(node)
            ),
            CommandRefused::LastMember(node) => format!(
                "no member but the one on node {} is in the group now: without it, what the \
                 group knows would be lost",
                self.name_of(node)
            ),
            CommandRefused::TooFewDisks(node) => format!(
                "without the member on node {} too few disks are left for a durable group",
                self.name_of(node)
            ),
            CommandRefused::NotLeading(node) => format!(
                "the member on node {} does not lead, and has executed a part of it only: ask the \
                 leader's node",
                self.name_of(node)
            ),
            CommandRefused::NotIn(node) => {
                format!("the member on node {} is not in the group now", self.name_of(node))
            }
            refused => refused.to_string(),
        }
    }

    pub(crate) fn key_file(&self) -> &Path {
        &self.domain.key_file
    }

    fn names(&self, nodes: NodeSet) -> Vec<String> {
        nodes.iter().map(|node| self.name_of(node).to_string()).collect()
    }

    fn nodes(
        &self,
        order: &Snapshot,
        primary: PrimaryStatus,
        links: &BTreeMap<NodeId, usize>,
    ) -> Vec<NodeStatus> {
        let ids = self.domain.node_set().iter();
        ids.zip(&self.domain.nodes)
            .map(|(id, node)| {
                let in_view = order.members.contains(id);
                let standing = match (in_view, id == self.me, primary) {
                    (false, _, _) => self.away(id) + &when_again(order, id),
                    (true, true, _) if order.told_out => TOLD_OUT.into(),
                    (true, true, PrimaryStatus::CatchingUp) => "catching up".into(),
                    (true, _, PrimaryStatus::Blocked(_)) => "blocked".into(),
                    (true, _, PrimaryStatus::Forming) => "forming".into(),
                    (true, _, _) => "ok".into(),
                };
                NodeStatus {
                    name: node.name.clone(),
                    host: node.host.to_string(),
                    in_view,
                    standing,
                    since_ms: self.left.get(&id).map(|(since, _)| millis(since.elapsed())),
                    refused: self.node_refused(id),
                    clock_ahead_ms: self.clocks.ahead_ms(id),
                    linked: links.contains_key(&id),
                    link_queued_bytes: links.get(&id).map_or(0, |bytes| *bytes as u64),
                }
            })
            .collect()
    }

    fn group(
        &self,
        group: &Group,
        replica: &GroupSnapshot,
        gateway: &GatewayCounters,
        server: Option<ServerStatus>,
        last_change: Option<String>,
    ) -> GroupStatus {
        GroupStatus {
            name: group.name.clone(),
            style: replica.style.as_str().into(),
            leader: replica.leader.map(|node| self.name_of(node).into()),
            logged: replica.logged as u64,
            listen: Self::gateway(group, self.node()),
            reference_version: gateway.reference_version,
            executed: replica.executed,
            served: replica.served.requests,
            served_us: u64::try_from(replica.served.time.as_micros()).unwrap_or(u64::MAX),
            callers: (replica.callers.iter())
                .map(|(node, requests)| Caller {
                    node: self.name_of(*node).into(),
                    requests: *requests,
                })
                .collect(),
            may_differ: replica.endings.doubt,
            durable: group.durable,
            has_state_object: group.state_object.is_some(),
            checkpoint_overdue: is_overdue(group, replica),
            late: self.names(replica.endings.late),
            state_refused: unanswered::refused(replica.endings.state_not_given.as_ref()),
            state_not_taken: unanswered::refused(replica.endings.state_not_taken.as_ref()),
            waits_for_members: !replica.opened && is_somebody_in(replica),
            server,
            connections: gateway.connections as u64,
            pending: gateway.pending as u64,
            requests: gateway.requests,
            reads: gateway.reads,
            reads_executed: replica.reads,
            read_marks: replica.read_marks,
            replies: gateway.replies,
            replies_sent: replica.ordered_replies.sent,
            replies_suppressed: replica.ordered_replies.suppressed,
            replies_dropped: gateway.replies_dropped,
            duplicates: replica.duplicates,
            retained: replica.retained as u64,
            retained_bytes: replica.retained_bytes as u64,
            refused: gateway.refused,
            malformed: gateway.malformed,
            last_change,
            calls: CallStatus {
                made: replica.calls.made,
                refused: replica.calls.refused,
                differing: replica.calls.differing,
                void: replica.calls.void,
            },
            identities: IdentityStatus {
                taken: replica.identities.taken,
                no_room: replica.identities.no_room,
            },
            transfers: replica.transfers.iter().map(|transfer| self.transfer(*transfer)).collect(),
            last_catch_up: replica
                .joined_with
                .map(|(lacks, bytes)| CatchUpStatus { what: caught_up(lacks), bytes }),
            ..GroupStatus::default()
        }
    }

    /// Where clients find it, without TLS if they may.
    fn gateway(group: &Group, node: &Node) -> String {
        let mut gateway = group.gateway(node);
        if let Some(port) = group.tls_port(node).filter(|_| !group.takes_plain()) {
            gateway.port = port;
        }
        gateway.to_string()
    }

    /// Groups because of which the log cannot be compacted now, and why.
    pub(crate) fn log_holds(&self, snapshot: &NodeSnapshot) -> Vec<(&str, LogHold)> {
        let holds = snapshot.groups.iter();
        holds.filter_map(|(id, of)| Some((self.groups.name_of(id)?, of.log_hold?))).collect()
    }

    /// Groups whose member here is in, while this node's log lacks its state.
    pub(crate) fn log_lacks(&self, snapshot: &NodeSnapshot) -> Vec<&str> {
        let lacks = snapshot.groups.iter().filter(|(_, group)| group.disk_lacks_state);
        lacks.filter_map(|(id, _)| self.groups.name_of(id)).collect()
    }

    fn transfer(&self, transfer: TransferProgress) -> TransferStatus {
        let (me, peer) = (self.node_name(), self.name_of(transfer.peer));
        let (from, to) = if transfer.gives { (me, peer) } else { (peer, me) };
        TransferStatus {
            from: from.into(),
            to: to.into(),
            done_bytes: transfer.done,
            total_bytes: transfer.total,
        }
    }

    fn members(&self, group: GroupId, replica: &GroupSnapshot) -> Vec<MemberStatus> {
        let waits = "the group waits for a node that is away, and may have acknowledged requests";
        let member = |(node, state): &(NodeId, MemberState)| {
            let (state, reason) = match (replica.removed.contains(*node), replica.waits_for_memory)
            {
                (true, _) => (State::Removed, None),
                (false, true) => (State::Out, Some(waits.into())),
                (false, false) => self.member(*state),
            };
            let since_ms = match state {
                State::In => None,
                _ => self.differences.out_since(group, *node).map(|at| millis(at.elapsed())),
            };
            MemberStatus { node: self.name_of(*node).into(), state, reason, since_ms }
        };
        replica.members.iter().map(member).collect()
    }

    fn member(&self, state: MemberState) -> (State, Option<String>) {
        match state {
            MemberState::In { .. } => (State::In, None),
            MemberState::Joining { donor, .. } => {
                (State::Joining, Some(format!("state comes from {}", self.name_of(donor))))
            }
            MemberState::Down(reason) => (State::Down, Some(reason.text().into())),
            MemberState::Out { reason, .. } => (State::Out, Some(reason.text().into())),
        }
    }

    /// An object may have been made that nobody knows of.
    pub(crate) fn hear_left_behind(&mut self, what: String) {
        put_first(&mut self.left_behind, what);
    }

    /// A group was not created for an application, and why; whether that is new.
    pub(crate) fn hear_not_created(&mut self, what: &str) -> bool {
        put_first(&mut self.not_created, what.to_owned())
    }

    fn warnings(&self, order: &Snapshot, gateway: &GatewaySnapshot) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.domain.warnings.iter().map(|problem| problem.message.clone()).collect();
        let is_ours = self.domain.ring.engine == Engine::Totem;
        if is_ours && order.protection == Protection::NoneAtAll {
            warnings.push(
                "THE RING IS NOT PROTECTED: anyone on the network can forge and read its messages \
                 (ring.encrypt = false)"
                    .into(),
            );
        }
        if let Some((newest, keyed)) = order.newest_key
            && order.sealing_key != Some(newest)
        {
            let lacking = self.names(self.domain.node_set().difference(keyed)).join(", ");
            warnings.push(format!(
                "the domain key {newest} is used when every node has it; not known to have it: \
                 {lacking}"
            ));
        }
        if let Some((address, connections, refused)) = gateway.most_refused {
            warnings.push(format!(
                "{refused} connections of {address} were turned away at this node; it has \
                 {connections}. Limits: connections_per_peer = {}, connections = {}",
                self.domain.limits.connections_per_peer, self.domain.limits.connections
            ));
        }
        warnings.extend(self.left_behind.iter().chain(&self.not_created).cloned());
        warnings
    }
}

/// Puts a text before the others, each of which stands there once; whether it is a new one.
fn put_first(texts: &mut VecDeque<String>, what: String) -> bool {
    let is_new = !texts.contains(&what);
    texts.retain(|known| *known != what);
    texts.truncate(TOLD_MAX - 1);
    texts.push_front(what);
    is_new
}

fn is_somebody_in(replica: &GroupSnapshot) -> bool {
    replica.members.iter().any(|(_, state)| matches!(state, MemberState::In { .. }))
}

/// Whether a member that stands by has had no checkpoint for much longer than it should.
fn is_overdue(group: &Group, replica: &GroupSnapshot) -> bool {
    let due = u64::from(group.checkpoint.requests);
    let is_passive = replica.style.is_passive();
    is_passive && replica.logged as u64 > due.saturating_mul(OVERDUE) + OVERDUE_LEAST
}

/// CPU time in ms and resident memory in bytes of this process; zeros where /proc is not there.
fn own_usage() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold blanks; what follows it does not.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|text| text.parse().ok()).unwrap_or(0);
    let ticks: u64 = number(11) + number(12);
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 =
        statm.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    (ticks * 1000 / CLOCK_TICKS_PER_SECOND, pages * PAGE_BYTES)
}

/// What a member was given that lacked this.
const fn caught_up(lacks: Lacks) -> CatchUpKind {
    match lacks {
        Lacks::State => CatchUpKind::State,
        Lacks::Requests => CatchUpKind::Requests,
        Lacks::Updates => CatchUpKind::Updates,
    }
}
