//! What an operator changes of a group while it works: ordered, so that all nodes change alike and
//! no request falls between before and after.
//!
//! What it is not: it carries nothing out. Invariant: whether a command is refused depends on the
//! group's table alone, so all nodes refuse alike.

use crate::table::disk_census::{holders_min, speakers_min};
use crate::table::{GroupTable, MemberState, OutReason};
use crate::words::config::GroupConfig;
use crate::words::history::{History, put_history, take_history};
use crate::words::ids::{Attempt, RingId};
use crate::words::style::{code_of_style, style_of_code};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use quorba_base::policy::Style;
use quorba_base::{NodeId, NodeSet};

/// A change of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Its members share the work in another way from here on.
    SetStyle(Style),
    /// This member leads from here on.
    Promote(NodeId),
    /// The member on this node takes part again.
    Add(NodeId),
    /// The member on this node takes no part until it is added again.
    Remove(NodeId),
    /// The member on this node gives what it has to its operator.
    Backup(NodeId),
    /// The group has the state that the member on this node has been given by its operator.
    Restore {
        /// The node, which says so itself.
        node: NodeId,
        /// The try that brings the member in.
        attempt: Attempt,
        /// The primary component in which it counts, and in no later one: whoever asked for it is
        /// not told any more what becomes of it then.
        component: RingId,
        /// What servers have been told the time is, TimeT.
        wall: u64,
        /// Which state.
        digest: u64,
    },
    /// The request with which the group was delivered this is given up: no member waits for its
    /// reply any more, and none executes it that has not begun.
    Skip(History),
    /// The same of one that was answered: no server that is given the log executes it any more. Its
    /// client was told that it was executed, so this is for one behind which servers end.
    SkipAnswered(History),
    /// The operator knows that the server of the member on this node has the group's state, which
    /// nobody else can tell: it comes in with that.
    Adopt(NodeId),
}

/// Why a command changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandRefused {
    /// The style has no leader.
    NoLeader(Style),
    /// The node has no member of the group.
    NoMember(NodeId),
    /// The member is not in the group now.
    NotIn(NodeId),
    /// Passive styles move the state, and the group names no object to get it from.
    NoStateObject(Style),
    /// The member takes part already.
    NotRemoved(NodeId),
    /// The member takes no part already.
    Removed(NodeId),
    /// No other member is in the group now.
    LastMember(NodeId),
    /// It could not come back: the group names no object to get the state from.
    NoWayBack(NodeId),
    /// The disks of those that would be left are too few for what the group promises.
    TooFewDisks(NodeId),
    /// A stateless group remembers nothing, and a durable one everything.
    Durable,
    /// The members' states are the application's, and this style compares their replies.
    MayDiffer(Style),
    /// The members of a stateless group may differ, and cannot be made alike.
    MembersDiffer,
    /// Groups that call, or are called, remember what was executed.
    Calls,
    /// The group names no object to get the state from, or to give it to.
    NoState,
    /// A stateless group has no state that its members agree on.
    Stateless,
    /// Groups that call, or are called, would not fit together any more.
    CallsApart,
    /// Only the member that leads has executed everything.
    NotLeading(NodeId),
    /// No request with this number, counted from the group's first, is with the local server or
    /// waits for it.
    NotWaiting(u64),
    /// The request with this number has ended, or somebody who is in has answered it.
    HasEnded(u64),
    /// The request with this number has ended, or is not known here.
    NotKnown(u64),
    /// Members are in, and their states have what an answered request did.
    MembersIn(NodeSet),
    /// Nothing of a group in memory is executed again.
    NotDurable,
    /// The member takes part, or its server is not there, or can be given another one's state.
    NotOut(NodeId),
    /// Disks tell what a durable group goes on from.
    DisksDecide,
    /// This node is in no primary component, so nothing can be ordered.
    NoPrimary,
    /// The group is not durable, and waits for a node that is away.
    Waits,
    /// The node has no such group.
    NoGroup,
}

impl fmt::Display for CommandRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLeader(style) => {
                write!(f, "a group with style \"{}\" has no leader", style.as_str())
            }
            Self::NoMember(node) => write!(f, "node {node} has no member of the group"),
            Self::NotIn(node) => write!(f, "the member on node {node} is not in the group now"),
            Self::NotRemoved(node) => write!(f, "the member on node {node} takes part already"),
            Self::Removed(node) => write!(f, "the member on node {node} is removed already"),
            Self::LastMember(node) => {
                write!(f, "no member but the one on node {node} is in the group now")
            }
            Self::NoWayBack(node) => write!(
                f,
                "the member on node {node} could not come back: the group names no state_object"
            ),
            Self::TooFewDisks(node) => write!(
                f,
                "without the member on node {node} too few disks are left for a durable group"
            ),
            Self::NoStateObject(style) => write!(
                f,
                "style \"{}\" moves the servers' state, and the group names no state_object",
                style.as_str()
            ),
            Self::Durable => {
                f.write_str("a durable group cannot become stateless: nothing would be kept")
            }
            Self::MayDiffer(style) => write!(
                f,
                "style \"{}\" compares the members' replies, which may differ: the application \
                 keeps their states",
                style.as_str()
            ),
            Self::MembersDiffer => f.write_str(
                "the members of a stateless group may differ: to make them alike one must be in, \
                 and the group must name a state_object",
            ),
            Self::Calls => f.write_str(
                "a group that calls others, or is called by one, cannot become stateless",
            ),
            Self::NoState => f.write_str("the group names no state_object"),
            Self::Stateless => f.write_str("a stateless group has no state of its own"),
            Self::NotOut(node) => write!(
                f,
                "the member on node {node} takes part, or has no server, or can be given the \
                 state of one that takes part"
            ),
            Self::DisksDecide => {
                f.write_str("a durable group goes on from what its members' disks have")
            }
            Self::CallsApart => f.write_str(
                "a group that calls others, or is called by one, would not fit to them any more",
            ),
            Self::NotLeading(node) => write!(
                f,
                "the member on node {node} does not lead, and has executed a part of it only"
            ),
            Self::NotWaiting(_)
            | Self::HasEnded(_)
            | Self::NotKnown(_)
            | Self::MembersIn(_)
            | Self::NotDurable => self.write_of_request(f),
            Self::NoPrimary => f.write_str("this node is in no primary component"),
            Self::Waits => f.write_str(
                "the group waits for a node that is away, and may have acknowledged requests",
            ),
            Self::NoGroup => f.write_str("there is no such group"),
        }
    }
}

impl CommandRefused {
    /// Why a request is not given up.
    fn write_of_request(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting(number) => write!(
                f,
                "no request with number {number} is with the server of this node's member, or \
                 waits for it: `quorba status` and `quorba group log` tell the number"
            ),
            Self::HasEnded(number) => write!(
                f,
                "request {number} has ended, or a member has answered it, so that it is not given \
                 up: a member that is late with it is restarted by itself"
            ),
            Self::NotKnown(number) => write!(
                f,
                "request {number} has ended without a reply already, or this node does not \
                 remember it: `quorba group log` shows those that it remembers"
            ),
            Self::MembersIn(nodes) => {
                let nodes: Vec<_> = nodes.iter().map(|node| node.to_string()).collect();
                write!(
                    f,
                    "the members on nodes {} are in, with states that have what it did: an \
                     answered request can be given up while nobody is in",
                    nodes.join(", ")
                )
            }
            Self::NotDurable => f.write_str(
                "the group is not durable and its servers execute no answered request again",
            ),
            _ => unreachable!("it is about no request"),
        }
    }
}

impl core::error::Error for CommandRefused {}

/// Whether nothing but an operator's word can tell what the server of a member has.
fn check_adoption(
    node: NodeId,
    config: &GroupConfig,
    table: &GroupTable,
) -> Result<(), CommandRefused> {
    let reason = match table.state(node).ok_or(CommandRefused::NoMember(node))? {
        _ if config.durable => return Err(CommandRefused::DisksDecide),
        _ if table.style == Style::Stateless => return Err(CommandRefused::Stateless),
        MemberState::Out { reason, .. } => reason,
        _ => return Err(CommandRefused::NotOut(node)),
    };
    match reason {
        OutReason::TotalLoss | OutReason::NoStateObject => Ok(()),
        OutReason::Removed => Err(CommandRefused::Removed(node)),
        OutReason::TooMuchToReplay => Err(CommandRefused::NotOut(node)),
    }
}

/// Whether a request that was answered can be given up: nobody's state may have what it did, but
/// for a leader's, whose servers end behind it.
fn check_answered(
    at: History,
    config: &GroupConfig,
    table: &GroupTable,
) -> Result<(), CommandRefused> {
    let passive = table.style.is_passive();
    if table.style == Style::Stateless {
        return Err(CommandRefused::Stateless);
    }
    if !config.durable && !passive {
        return Err(CommandRefused::NotDurable);
    }
    if at.count > table.history.count || table.endings.has_ended(at) {
        return Err(CommandRefused::NotKnown(at.count));
    }
    let inside = table.in_set();
    if passive || inside.is_empty() { Ok(()) } else { Err(CommandRefused::MembersIn(inside)) }
}

/// So many members of a durable group must take part: to acknowledge, and to know, after the end
/// of all nodes, what was acknowledged.
fn disks_min(config: &GroupConfig) -> usize {
    let members = config.members.len();
    holders_min(members).max(speakers_min(members))
}

impl Command {
    /// Whether it can be carried out on `table`.
    pub(crate) fn check(
        self,
        config: &GroupConfig,
        table: &GroupTable,
    ) -> Result<(), CommandRefused> {
        match self {
            Self::SetStyle(style) if style.is_passive() && config.state_object.is_none() => {
                Err(CommandRefused::NoStateObject(style))
            }
            Self::SetStyle(style @ Style::ActiveWithVoting) if config.by_application => {
                Err(CommandRefused::MayDiffer(style))
            }
            Self::SetStyle(Style::Stateless) if config.durable => Err(CommandRefused::Durable),
            Self::SetStyle(Style::Stateless) if config.is_called || !config.calls.is_empty() => {
                Err(CommandRefused::Calls)
            }
            Self::SetStyle(style)
                if table.style == Style::Stateless
                    && style != Style::Stateless
                    && (config.state_object.is_none() || table.in_set().is_empty()) =>
            {
                Err(CommandRefused::MembersDiffer)
            }
            Self::SetStyle(_) => Ok(()),
            Self::Promote(_) if !table.style.has_leader() => {
                Err(CommandRefused::NoLeader(table.style))
            }
            Self::Promote(node) if table.state(node).is_none() => {
                Err(CommandRefused::NoMember(node))
            }
            Self::Promote(node) if !table.in_set().contains(node) => {
                Err(CommandRefused::NotIn(node))
            }
            Self::Promote(_) => Ok(()),
            Self::Add(node) | Self::Remove(node) if table.state(node).is_none() => {
                Err(CommandRefused::NoMember(node))
            }
            Self::Add(node) if !table.removed().contains(node) => {
                Err(CommandRefused::NotRemoved(node))
            }
            Self::Remove(node)
                if config.durable
                    && !table.removed().contains(node)
                    && config.members.len() - table.removed().len() <= disks_min(config) =>
            {
                Err(CommandRefused::TooFewDisks(node))
            }
            Self::Remove(node) if table.removed().contains(node) => {
                Err(CommandRefused::Removed(node))
            }
            Self::Remove(node) if table.in_set().iter().all(|inside| inside == node) => {
                Err(CommandRefused::LastMember(node))
            }
            Self::Remove(node) if !config.can_recover() && table.style != Style::Stateless => {
                Err(CommandRefused::NoWayBack(node))
            }
            Self::Add(_) | Self::Remove(_) => Ok(()),
            Self::Skip(_) if table.style == Style::Stateless => Err(CommandRefused::Stateless),
            Self::Skip(at) if at.count > table.history.count => {
                Err(CommandRefused::NotWaiting(at.count))
            }
            Self::Skip(at) if !table.may_skip(config, at) => {
                Err(CommandRefused::HasEnded(at.count))
            }
            Self::Skip(_) => Ok(()),
            Self::SkipAnswered(at) => check_answered(at, config, table),
            Self::Adopt(node) => check_adoption(node, config, table),
            Self::Backup(_) | Self::Restore { .. } => self.check_backup(config, table),
        }
    }

    /// The same, of what moves the state out of the group, or into it.
    fn check_backup(self, config: &GroupConfig, table: &GroupTable) -> Result<(), CommandRefused> {
        match self {
            Self::Backup(node) | Self::Restore { node, .. } if table.state(node).is_none() => {
                Err(CommandRefused::NoMember(node))
            }
            Self::Backup(_) | Self::Restore { .. } if table.style == Style::Stateless => {
                Err(CommandRefused::Stateless)
            }
            Self::Backup(_) | Self::Restore { .. } if config.state_object.is_none() => {
                Err(CommandRefused::NoState)
            }
            Self::Backup(_) | Self::Restore { .. }
                if config.is_called || !config.calls.is_empty() =>
            {
                Err(CommandRefused::CallsApart)
            }
            Self::Backup(node) if !table.in_set().contains(node) => {
                Err(CommandRefused::NotIn(node))
            }
            Self::Backup(node) if table.style.is_passive() && table.leading() != Some(node) => {
                Err(CommandRefused::NotLeading(node))
            }
            Self::Restore { node, .. } if table.removed().contains(node) => {
                Err(CommandRefused::Removed(node))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn encode(self, w: &mut Writer) {
        match self {
            Self::SetStyle(style) => {
                w.u8(0);
                w.u8(code_of_style(style));
            }
            Self::Promote(node) => {
                w.u8(1);
                w.node(node);
            }
            Self::Add(node) => {
                w.u8(2);
                w.node(node);
            }
            Self::Remove(node) => {
                w.u8(3);
                w.node(node);
            }
            Self::Backup(node) => {
                w.u8(4);
                w.node(node);
            }
            Self::Restore { node, attempt, component, wall, digest } => {
                w.u8(5);
                w.node(node);
                w.u64(component.seq);
                w.node(component.representative);
                [attempt.0, wall, digest].into_iter().for_each(|number| w.u64(number));
            }
            Self::Skip(at) => {
                w.u8(6);
                put_history(w, at);
            }
            Self::Adopt(node) => {
                w.u8(7);
                w.node(node);
            }
            Self::SkipAnswered(at) => {
                w.u8(8);
                put_history(w, at);
            }
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let invalid = r.error("command");
        match r.u8("command")? {
            0 => style_of_code(r.u8("style")?).map(Self::SetStyle).ok_or(invalid),
            1 => Ok(Self::Promote(r.node("member")?)),
            2 => Ok(Self::Add(r.node("member")?)),
            3 => Ok(Self::Remove(r.node("member")?)),
            4 => Ok(Self::Backup(r.node("member")?)),
            5 => Ok(Self::Restore {
                node: r.node("member")?,
                component: crate::words::ids::take_view(r)?,
                attempt: Attempt(r.u64("attempt")?),
                wall: r.u64("wall clock")?,
                digest: r.u64("state digest")?,
            }),
            6 => Ok(Self::Skip(take_history(r)?)),
            7 => Ok(Self::Adopt(r.node("member")?)),
            8 => Ok(Self::SkipAnswered(take_history(r)?)),
            _ => Err(invalid),
        }
    }
}
