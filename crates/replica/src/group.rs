//! One object group at one node: the replicated table and the local member, kept in step.
//!
//! What it is not: what commands and checkpoints do to them, which is `changes`, and how its state
//! travels, which is `transfers`.
//! Invariant: the table changes in `deliver_*` and `decided` only; what the local server does can
//! only lead to messages, never to a change of the table.

mod agreed;
mod backup;
mod calls;
mod changes;
mod deferred;
mod definition;
mod depth;
mod duplicates;
mod endings;
mod fullness;
mod joins;
mod log_snapshot;
mod names;
mod news;
mod progress;
mod reads;
mod reentrant;
pub(crate) mod replay;
mod revival;
mod server;
mod snapshot;
mod stagger;
mod stateless;
mod transfers;
mod voting;

pub use self::log_snapshot::LogHold;
pub(crate) use self::log_snapshot::SnapshotState;
pub use self::names::IdentityFigures;
use self::names::Names;
pub use self::progress::Backlog;
pub use self::snapshot::{EndingsSnapshot, GroupSnapshot};
use crate::calls::arrived::Arrived;
use crate::calls::duplicates::Duplicates;
use crate::calls::nested::CallFigures;
use crate::calls::reads::{Ordered, Reads};
use crate::calls::refusal;
use crate::member::{Accepted, Asks, Consequence, Member};
use crate::messages::envelope::{Envelope, RequestEnvelope};
use crate::output::{
    DriverOutput, Event, GatewayOutput, IdentityFault, OrderOutput, Outbox, Output, ServerCommand,
};
use crate::server::executor::Returning;
use crate::server::recent::{RECENT_REQUESTS_MAX, Recent, RecentPage, RecentQuery};
use crate::state::catch_up_log::CatchUpLog;
use crate::table::moment::Moment;
use crate::table::offer::Offer;
use crate::table::{DownReason, GroupTable, MemberState, OutReason};
use crate::words::config::GroupConfig;
use crate::words::history::History;
use crate::words::ids::{Attempt, GatewayKey, GroupId, RequestKey, RequestNumber};
use crate::words::place::{NodeContext, Place};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::policy::Style;
use quorba_base::{Instant, NodeId, NodeSet, canary};

/// The longest that a client may ask its request to be remembered, in TimeT ticks (24 hours).
const RETENTION_TICKS_MAX: u64 = 24 * 3600 * 10_000_000;

/// See the module's text.
pub(crate) struct Group {
    id: GroupId,
    /// This node.
    here: NodeId,
    config: GroupConfig,
    table: GroupTable,
    member: Option<Box<Member>>,
    /// When the group opens without its missing members; set by its first member.
    open_at: Option<Instant>,
    former: definition::FormerMember,
    /// What the log says the group was delivered, while it is gone through.
    replay: Option<Box<replay::Replay>>,
    log_looks: revival::LogLooks,
    /// Where the local member asked for the state that is on its way, and requests until then.
    joined_at: (Place, History),
    log_snapshots: log_snapshot::LogSnapshots,
    /// What was delivered lately.
    catch_up_log: CatchUpLog,
    nested: calls::NestedCalls,
    /// Only where members wait for each other, or are waited for.
    through: Option<Box<stagger::Through>>,
    /// Only while somebody waits.
    depths: Option<Box<depth::Depths>>,
    progress: progress::Progress,
    /// When states that could not be compared are compared again, and how often they were.
    compare_at: Option<Instant>,
    comparisons: u32,
    quiet: agreed::Quiet,
    hung: endings::Hung,
    /// The local server has had a call for longer than it should.
    is_late: bool,
    /// What was said last of the local member's replies, and not delivered yet.
    told_full: Option<(Attempt, bool)>,
    backups: backup::Backups,
    counts: snapshot::Counts,
    duplicates_of_replies: Duplicates,
    reads: Reads,
    names: Names,
    recent: Recent,
    /// A read that the local server executes while it waits.
    task: Option<Box<reentrant::Task>>,
    pub(crate) figures: CallFigures,
    /// Always empty between calls; kept for its room.
    commands: Vec<ServerCommand>,
}

impl Group {
    pub(crate) fn new(
        id: GroupId,
        config: GroupConfig,
        here: NodeContext,
        bootstrapped: bool,
    ) -> Self {
        let member = config
            .members
            .contains(here.node)
            .then(|| Box::new(Member::new(&config, here.node, here.incarnation)));
        let table = GroupTable::new(&config);
        let remembers = if member.is_some() { RECENT_REQUESTS_MAX } else { 0 };
        Self {
            recent: Recent::new(here, remembers),
            id,
            here: here.node,
            config,
            table,
            member,
            open_at: None,
            former: definition::FormerMember::none(!bootstrapped),
            replay: None,
            log_looks: revival::LogLooks::default(),
            joined_at: (here.place, History::EMPTY),
            log_snapshots: log_snapshot::LogSnapshots::default(),
            catch_up_log: CatchUpLog::default(),
            nested: calls::NestedCalls::default(),
            through: None,
            depths: None,
            progress: progress::Progress::default(),
            compare_at: None,
            comparisons: 0,
            quiet: agreed::Quiet::default(),
            hung: endings::Hung::default(),
            is_late: false,
            told_full: None,
            backups: backup::Backups::default(),
            counts: snapshot::Counts::default(),
            duplicates_of_replies: Duplicates::default(),
            reads: Reads::default(),
            names: Names::default(),
            task: None,
            figures: CallFigures::default(),
            commands: Vec::new(),
        }
    }

    pub(crate) fn table(&self) -> &GroupTable {
        &self.table
    }

    /// What the server may know of the request that it executes.
    pub(crate) fn moment(&self) -> Option<Moment> {
        self.member.as_deref()?.moment()
    }

    /// Whether a request was delivered, if there is a member that is in.
    pub(crate) fn knows(&self, key: &RequestKey) -> Option<bool> {
        let is_in = self.table.in_set().contains(self.here);
        self.member.as_deref().filter(|_| is_in).map(|member| member.knows(key))
    }

    /// Whose request that is.
    pub(crate) fn caller(&self) -> Option<u64> {
        self.member.as_deref()?.caller()
    }

    /// What was delivered lately; see [`Recent`].
    pub(crate) fn recent(&mut self, now: Instant, query: &RecentQuery) -> RecentPage {
        self.recent.page(now, query)
    }

    pub(crate) fn deadline(&self, in_primary: bool) -> Option<Instant> {
        let member = self.member.as_deref().and_then(|member| member.deadline(in_primary));
        let opens = self.open_at.filter(|_| in_primary);
        let compares = self.compare_at.filter(|_| in_primary);
        let agrees = self.quiet.at().filter(|_| in_primary);
        [member, opens, compares, agrees, self.reads.load.deadline()].into_iter().flatten().min()
    }

    // -- decided views ----------------------------------------------------------------------

    /// A primary component was decided and this node is up to date.
    pub(crate) fn decided(
        &mut self,
        now: Instant,
        current: NodeSet,
        view: NodeSet,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let before = self.table.clone();
        if canary!(ForgetsAtTakeover)
            && let Some(member) = &mut self.member
        {
            member.retention.replace_by(crate::state::retention::Retention::default());
        }
        self.table.keep_only(&self.config, current, view);
        self.duplicates_of_replies.begin_anew();
        self.drop_undelivered_depths();
        self.changed(now, &before, here, out);
        self.reconsider();
    }

    /// Nodes have come that may know what a member lacks which nobody could help.
    fn reconsider(&mut self) {
        let is_out =
            |state| matches!(state, Some(MemberState::Out { reason: OutReason::TotalLoss, .. }));
        if let Some(member) =
            self.member.as_deref_mut().filter(|_| is_out(self.table.state(self.here)))
        {
            member.reconsider();
        }
    }

    /// The domain begins anew: nobody remembers anything.
    pub(crate) fn begin_anew(&mut self, out: &mut Outbox) {
        if let Some(member) = &mut self.member {
            member.detach(self.table.history);
        }
        self.table = GroupTable::new(&self.config);
        self.bind(|_| true);
        self.open_at = None;
        self.assign(out);
    }

    /// A primary component was decided, and this node is not up to date.
    pub(crate) fn fell_behind(&mut self) {
        self.drop_undelivered_depths();
        self.reads.ordered.retain(|_, what| *what != Ordered::Reply);
        if let Some(member) = &mut self.member {
            member.detach(self.table.history);
        }
    }

    /// The table as the up-to-date nodes have it.
    pub(crate) fn adopt(&mut self, table: GroupTable, out: &mut Outbox) {
        self.table = table;
        self.assign(out);
        self.read_again(out);
        if self.table.style != Style::ActiveWithVoting
            && let Some(member) = &mut self.member
        {
            member.release_unheard();
        }
        self.reconsider();
    }

    // -- ordered messages -------------------------------------------------------------------

    pub(crate) fn deliver_request(
        &mut self,
        now: Instant,
        (origin, incarnation): (NodeId, u64),
        request: RequestEnvelope,
        calls_below: Option<(GroupId, u64)>,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let number = request.number;
        *self.counts.callers.get_or_insert_with(origin, || 0) += 1;
        if self.table.in_set().is_empty() {
            if origin == here.node && incarnation == here.incarnation {
                let key = request.key(origin, incarnation);
                out.push_back(self.left_alone(key, number));
            }
            return;
        }
        // Not by what is dropped: at one history it is one time, whatever came by meanwhile.
        self.table.clock.advance((origin, incarnation), request.stamp, self.kept_ticks());
        if self.is_stateless() {
            return self.deliver_call(origin, incarnation, request, here, out);
        }
        let (before, full) = (self.table.history, self.table.is_full());
        self.table.history = before.with_request(origin, incarnation, number, full);
        self.progress.note_origin(origin);
        self.outdate_disk_state();
        let (expiry, stamp, history) = (self.expiry(&request), request.stamp, self.table.history);
        self.note_depth((origin, incarnation), number, here);
        self.note_ended_before(&request, (origin, incarnation));
        if self.member.is_none() {
            return;
        }
        let awaited = self.table.repliers(&self.config, origin).contains(here.node);
        if awaited && self.replay.is_none() {
            let to = GatewayKey { node: origin, incarnation, number };
            self.owes_reply(to, request.released.below);
        }
        let Some(member) = &mut self.member else { return };
        let arrived = Arrived {
            awaited,
            key: request.key(origin, incarnation),
            gateway: GatewayKey { node: origin, incarnation, number },
            history,
            moment: Moment::of(&self.table),
            expiry,
            clock: if canary!(ExpiresByAnyClock) { request.stamp } else { self.table.clock.time() },
            full: if canary!(FullByItself) {
                member.retention.is_full(self.config.retention_bytes_max, false)
            } else {
                full
            },
            released: request.released,
            calls_below,
            giop: request.giop,
            code_sets: request.code_sets,
        };
        if !self.config.logged {
            // Where there is a log nobody is given requests; see the table.
            self.catch_up_log.push(before, &arrived);
        }
        if let Some(replay) = &mut self.replay {
            return replay.request(arrived);
        }
        self.names.at(now);
        self.recent.at(now);
        self.recent.delivered(&arrived, stamp);
        let accepted = member.accept(arrived);
        self.heed(accepted, here, out);
    }

    /// A request of this node's gateway was delivered, and nobody is in.
    fn left_alone(&mut self, key: RequestKey, number: RequestNumber) -> Output {
        self.drop_depth(number);
        let group = self.id;
        match self.table.endings.end_of(&key) {
            Some(end) => GatewayOutput::Ended { group, key, end }.into(),
            None => GatewayOutput::Dropped { group, number }.into(),
        }
    }

    /// What the local member made of a request.
    fn heed(&mut self, accepted: Accepted, here: NodeContext, out: &mut Outbox) {
        match accepted {
            Accepted::Nothing => {}
            Accepted::Waits => self.recent.repeats(),
            Accepted::Answer(gateway, reply) => {
                self.recent.repeats();
                self.counts.duplicates += 1;
                self.answer(&[gateway], reply, here, out);
            }
            Accepted::Refuse(gateway, key, giop) => {
                self.note_refusal(&key, IdentityFault::NoRoom, out);
                self.answer(&[gateway], refusal::no_room(&giop), here, out);
            }
            Accepted::Taken(gateway, key, giop) => {
                self.recent.repeats();
                self.note_refusal(&key, IdentityFault::Taken, out);
                self.answer(&[gateway], refusal::identity_taken(&giop), here, out);
            }
            Accepted::Forgotten(gateway, giop) => {
                self.recent.repeats();
                self.answer(&[gateway], refusal::forgotten(&giop), here, out);
            }
            Accepted::Overflow(attempt, reason) => self.lost(Some(attempt), reason, out),
        }
    }

    /// How long requests with a name are remembered at least.
    fn kept_ticks(&self) -> u64 {
        let ticks = u64::try_from(self.config.retention.as_nanos() / 100).unwrap_or(u64::MAX);
        ticks.min(RETENTION_TICKS_MAX)
    }

    /// Until when, on the ordered clock, a client's request is remembered. Clients' clocks and even
    /// their epochs differ, so what they ask for is held between sane bounds.
    fn expiry(&self, request: &RequestEnvelope) -> u64 {
        let ticks = self.kept_ticks();
        let ticks = if canary!(ForgetsEarly) { ticks / 16 } else { ticks };
        let expiration = request.ft.as_ref().map_or(0, |ft| ft.expiration);
        let asked = expiration.saturating_sub(request.stamp);
        self.table.clock.time().saturating_add(asked.clamp(ticks, RETENTION_TICKS_MAX))
    }

    /// A reply of the member at `origin` to a request of a gateway. It counts only while the member
    /// is in: what one that fell behind has executed, the group may have ordered otherwise since.
    pub(crate) fn deliver_reply(
        &mut self,
        origin: NodeId,
        to: GatewayKey,
        giop: Bytes,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        let mine = to.node == here.node && to.incarnation == here.incarnation;
        let counts = self.table.in_set().contains(origin);
        if counts {
            self.heard_reply(origin, to, here, out);
        }
        if origin == here.node && self.says_again(&to) {
            self.reads.ordered.remove(&to);
        }
        if mine && counts {
            let (group, number) = (self.id, to.number);
            // Empty: that of a oneway.
            let giop = Some(giop).filter(|giop| !giop.is_empty());
            // One that was too long for a message between nodes.
            out.push_back(match self.reads.answered_by_order(number, origin) {
                true => GatewayOutput::Read { group, number, giop, ended: false }.into(),
                false => GatewayOutput::Reply { group, number, giop }.into(),
            });
        }
    }

    pub(crate) fn deliver_open(&mut self, out: &mut Outbox) {
        if !self.table.opened && !self.table.in_set().is_empty() {
            self.table.opened = true;
            self.open_at = None;
            out.push_back(Output::Event(Event::Opened { group: self.id }));
        }
    }

    // -- time -------------------------------------------------------------------------------

    /// Time passed, or something changed: ask to join, start the next call, notice a hung server.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        in_primary: bool,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if in_primary && self.open_at.is_some_and(|at| at <= now) {
            self.open_at = None;
            if !self.table.opened && self.table.in_set().lowest() == Some(here.node) {
                out.push_back(
                    OrderOutput::Submit(Envelope::Open { group: self.id }.encode()).into(),
                );
            }
        }
        self.settle_member(now, in_primary, here, out);
        self.mind_late_server(now, here, out);
        self.mind_depths(out);
        self.settle_task(now, out);
        self.settle_reads(now, in_primary, here, out);
        self.mind_backup(out);
    }

    fn settle_member(
        &mut self,
        now: Instant,
        in_primary: bool,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        self.mind_endings(now, in_primary, out);
        self.mind_stagger(out);
        self.mind_progress(now, out);
        self.mind_doubt(now, in_primary, out);
        self.mind_quiet(now, in_primary, out);
        let Some(member) = &mut self.member else { return };
        out.extend(member.long_states().map(DriverOutput::FreeLater).map(Output::from));
        let mut commands = core::mem::take(&mut self.commands);
        member.step(now, &mut commands);
        if in_primary && let Some((attempt, votes)) = member.votes_to_cast() {
            let votes = Envelope::Votes { group: self.id, attempt, votes };
            out.push_back(OrderOutput::Submit(votes.encode()).into());
        }
        let agreed = self.table.endings.agreed.state();
        if in_primary && let Some(asks) = member.ask(now, agreed) {
            let Asks { attempt, claim, ends, is_through, held_checkpoint, disk_state } = asks;
            let known = self.table.history;
            let is_bound = self.nested.is_bound() || member.has_heard_behind(known);
            let is_ahead = |claim| !is_bound && self.catch_up_log.leads_from(known, claim);
            let ahead_of = claim.filter(|claim| is_ahead(*claim)).map(|_| known);
            let (heard_otherwise, told) = (self.nested.has_heard_otherwise(), member.told());
            let offer = Offer {
                claim,
                ends,
                is_through,
                held_checkpoint,
                ahead_of,
                heard_otherwise,
                told,
                disk_state,
                known,
            };
            let join = Envelope::Join { group: self.id, attempt, offer };
            out.push_back(OrderOutput::Submit(join.encode()).into());
        }
        let group = self.id;
        out.extend(
            commands.drain(..).map(|command| Output::from(DriverOutput::Server { group, command })),
        );
        self.commands = commands;
        self.follow_ends(now, in_primary, here, out);
        if in_primary {
            self.tell_fullness(out);
            // What is sent between a view and its primary component would be in front of pieces
            // that do not count and are sent again.
            self.send_checkpoint(None, out);
        }
        self.save_log_snapshot(out);
        while let Some((to, reply)) = self.member.as_deref_mut().and_then(Member::next_withheld) {
            self.answer(&to, reply, here, out);
        }
        while let Some(consequence) = self.member.as_deref_mut().and_then(Member::give_settled) {
            self.follow(Some(consequence), here, out);
        }
        self.send_to_members(now, out);
    }

    // -- consequences -----------------------------------------------------------------------

    fn follow(&mut self, consequence: Option<Consequence>, here: NodeContext, out: &mut Outbox) {
        match consequence {
            None => {}
            Some(Consequence::Answer(waiters, reply)) => {
                self.counts.executed += 1;
                self.answer(&waiters, reply, here, out);
            }
            Some(Consequence::Read(id, reply)) => self.read_executed(id, reply, here, out),
            Some(Consequence::ReadEnded(id, reply)) => {
                // A stateless group's call is whoever's has executed it; another one goes on.
                let reply = reply.filter(|_| self.is_stateless());
                self.read_executed(id, reply, here, out);
            }
            // Who looks at the time sees to it.
            Some(Consequence::Overdue) => {}
            Some(Consequence::CannotGive { joiner, attempt }) => {
                self.submit_failed(joiner, attempt, DownReason::StateUnavailable, out);
            }
            Some(Consequence::CannotUpdate(Returning { joiner, attempt, .. })) => {
                self.submit_failed(joiner, attempt, DownReason::UpdatesUnknown, out);
            }
            Some(Consequence::CannotReplay { joiner, attempt }) => {
                self.submit_failed(joiner, attempt, DownReason::TooMuchToReplay, out);
            }
            Some(Consequence::TooMuch { joiner, attempt }) => {
                self.submit_failed(joiner, attempt, DownReason::StateTooLarge, out);
            }
            Some(Consequence::Useless(attempt, reason)) => {
                self.submit_down(Some(attempt), reason, out);
            }
            Some(Consequence::Caught { attempt }) => {
                let joined = Envelope::Joined { group: self.id, attempt };
                out.push_back(OrderOutput::Submit(joined.encode()).into());
            }
            Some(Consequence::Reentrant(served)) => self.served_reentrant(served, out),
            Some(Consequence::Held) => self.counts.executed += 1,
            Some(Consequence::BackedUp(captured)) => self.backed_up(captured, out),
            // It is sent when the group is settled, and can be.
            Some(Consequence::Send { refused }) => {
                self.follow(refused.map(Consequence::CannotUpdate), here, out);
            }
            Some(Consequence::Lost(attempt, reason)) => self.lost(attempt, reason, out),
            Some(Consequence::Replace(reason)) => self.replace_server(reason, out),
        }
    }

    /// Sends a reply to the gateways that this member answers; the others are another's to answer.
    fn answer(
        &mut self,
        waiters: &[GatewayKey],
        reply: Option<Bytes>,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        for to in waiters {
            let is_mine = self.table.repliers(&self.config, to.node).contains(here.node)
                || canary!(AbandonedCallCounts);
            if is_mine {
                self.send_replies([to].into_iter(), reply.clone(), here, out);
            }
        }
    }
}
