//! What status says of a group.
//!
//! What it is not: replicated; the figures are this node's.

use super::{Group, IdentityFigures, LogHold};
use crate::Served;
use crate::calls::duplicates::OrderedReplies;
use crate::calls::nested::CallFigures;
use crate::member::Member;
use crate::server::executor::{ServerFigures, StateRefused, Waiting};
use crate::server::recent::RecentRequest;
use crate::state::transfer::TransferProgress;
use crate::table::endings::RequestEnd;
use crate::table::{Lacks, MemberState};
use crate::words::history::History;
use crate::words::node_map::NodeMap;
use alloc::vec::Vec;
use quorba_base::policy::Style;
use quorba_base::{Instant, NodeId, NodeSet};

/// Figures for status.
#[derive(Clone, Debug)]
pub struct GroupSnapshot {
    /// Requests delivered to the group.
    pub history: History,
    /// Every configured member and where it stands.
    pub members: Vec<(NodeId, MemberState)>,
    /// Those that operators took out, whether their nodes are there or not.
    pub removed: NodeSet,
    /// Whether requests are taken.
    pub opened: bool,
    /// What the local member is doing; `None` if this node has none.
    pub local: Option<&'static str>,
    /// How the members share the work now.
    pub style: Style,
    /// Who leads, if the style has a leader.
    pub leader: Option<NodeId>,
    /// Requests that wait for the local server.
    pub queued: usize,
    /// Requests that the local member keeps and has not executed.
    pub logged: usize,
    /// Requests remembered.
    pub retained: usize,
    /// Bytes of their replies.
    pub retained_bytes: usize,
    /// Requests with a name of a client that gateways may have ordered again.
    pub unreleased: usize,
    /// New FT_REQUESTs are refused until some replies are forgotten.
    pub full: bool,
    /// Requests that were refused because of the names that clients gave them.
    pub identities: IdentityFigures,
    /// Repetitions recognised.
    pub duplicates: u64,
    /// Replies that went through the order, or need not.
    pub ordered_replies: OrderedReplies,
    /// Requests executed by the local member.
    pub executed: u64,
    /// Reads executed by the local member without a place in the order.
    pub reads: u64,
    /// Messages that were ordered for them.
    pub read_marks: u64,
    /// What its server has done since this node started.
    pub served: Served,
    /// Ordered requests of each gateway since this node started.
    pub callers: Vec<(NodeId, u64)>,
    /// States on their way to or from the local member.
    pub transfers: Vec<TransferProgress>,
    /// What the local member was given last, and how many bytes that was.
    pub joined_with: Option<(Lacks, u64)>,
    /// Why this node's log cannot be compacted now, as far as it is because of this group.
    pub log_hold: Option<LogHold>,
    /// The local member is in, and this node's disk does not count for it yet.
    pub disk_lacks_state: bool,
    /// It waits for a node that is away, and may have requests in memory that were acknowledged.
    pub waits_for_memory: bool,
    /// What its servers have called.
    pub calls: CallFigures,
    /// Requests that had no reply of a server, and what is the matter with servers that live.
    pub endings: EndingsSnapshot,
}

/// Requests that servers have not answered, for status.
#[derive(Clone, Default, Debug)]
pub struct EndingsSnapshot {
    /// The last ones that ended without a reply, oldest first, by their numbers, with what is known
    /// of them here.
    pub ended: Vec<(u64, RequestEnd, Option<RecentRequest>)>,
    /// The members' states may differ behind this request.
    pub doubt: Option<u64>,
    /// Server processes have ended, this often in a row, when they had answered this request last,
    /// and what is known of it here.
    pub ends_behind: Option<(u64, u8, Option<RecentRequest>)>,
    /// Members whose servers are late with what others have answered; others answer for them.
    pub late: NodeSet,
    /// The request that the local server is at, since when, and what is known of it.
    pub waiting: Option<(u64, Instant, Option<RecentRequest>)>,
    /// What the local server did that cost nothing.
    pub server: ServerFigures,
    /// It has not given its state.
    pub state_not_given: Option<StateRefused>,
    /// It has not taken the state of another one.
    pub state_not_taken: Option<StateRefused>,
}

/// So many ended requests are shown.
const ENDED_SHOWN: usize = 16;

/// What is counted of the group's requests, for status.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) duplicates: u64,
    pub(super) executed: u64,
    /// Requests by the node of their gateway.
    pub(super) callers: NodeMap<u64>,
}

impl Group {
    pub(crate) fn snapshot(&self, disk_lacks_state: bool, waits_for_memory: bool) -> GroupSnapshot {
        let member = self.member.as_deref();
        let (reads, read_marks) = self.reads.figures();
        GroupSnapshot {
            history: self.table.history,
            members: self.table.members().collect(),
            removed: self.table.removed(),
            opened: self.table.opened,
            local: member.map(Member::stage_text),
            style: self.table.style,
            leader: self.table.leading(),
            queued: member.map_or(0, Member::queued),
            logged: member.map_or(0, Member::logged),
            retained: member.map_or(0, |m| m.retention.len()),
            retained_bytes: member.map_or(0, |m| m.retention.reply_bytes()),
            unreleased: member.map_or(0, |m| m.retention.unreleased()),
            full: self.table.is_full(),
            identities: self.names.figures,
            duplicates: self.counts.duplicates,
            ordered_replies: self.ordered_replies(),
            executed: self.counts.executed,
            reads,
            read_marks,
            served: member.map_or_else(Served::default, Member::served),
            callers: self.counts.callers.iter().map(|(node, requests)| (node, *requests)).collect(),
            transfers: member.map_or_else(Vec::new, Member::transfers),
            joined_with: member.and_then(Member::joined_with),
            log_hold: self.holds_log().filter(|hold| *hold != LogHold::NotIn || !waits_for_memory),
            disk_lacks_state,
            waits_for_memory,
            calls: self.figures,
            endings: self.endings_snapshot(),
        }
    }

    fn endings_snapshot(&self) -> EndingsSnapshot {
        let (endings, member) = (&self.table.endings, self.member.as_deref());
        let of = |count| self.recent.find(count);
        let ends = endings.ends().map(|(_, at, end)| (at.count, end));
        let skipped = endings.skipped().map(|at| (at.count, RequestEnd::Skipped));
        let mut ended: Vec<_> =
            ends.chain(skipped).map(|(count, end)| (count, end, of(count))).collect();
        ended.sort_by_key(|(count, _, _)| *count);
        let shown = ended.split_off(ended.len().saturating_sub(ENDED_SHOWN));
        let waiting = member.and_then(Member::waiting);
        let refused = member.map_or([None; 2], Member::states_refused);
        let [state_not_given, state_not_taken] = refused.map(|it| it.cloned());
        EndingsSnapshot {
            ended: shown,
            doubt: endings.states.doubt(),
            ends_behind: endings.behind.suspect().map(|(count, ends)| (count, ends, of(count))),
            late: endings.late(),
            waiting: waiting.map(|Waiting { at, since }| (at.count, since, of(at.count))),
            server: member.map_or_else(ServerFigures::default, Member::server_figures),
            state_not_given,
            state_not_taken,
        }
    }

    /// What is remembered of the request with this number.
    pub(crate) fn request(&self, number: u64) -> Option<RecentRequest> {
        self.recent.find(number)
    }

    /// The same of the request that a gateway took in: its node, that node's boot, its number.
    pub(crate) fn request_of(&self, gateway: (NodeId, u64, u64)) -> Option<RecentRequest> {
        self.recent.find_of(gateway)
    }

    /// The request with this number, if it is remembered.
    pub(crate) fn recall(&self, number: u64) -> Option<History> {
        self.recent.history(number)
    }

    /// The request with this number, if the local server has it or it waits for it.
    pub(crate) fn find(&self, number: u64) -> Option<History> {
        self.member.as_deref()?.find(number)
    }
}
