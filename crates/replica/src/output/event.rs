//! What happened, for logs and pictures.
//!
//! What it is not: something to carry out. Invariant: nothing depends on whether anybody looks.

use crate::calls::nested::CallRefusal;
use crate::calls::outside::OutsideFailure;
use crate::messages::command::Command;
use crate::primary::{Basis, Blocked};
use crate::table::endings::RequestEnd;
use crate::table::{DownReason, MemberState};
use crate::words::ids::{Attempt, GroupId, RingId};
use crate::words::short::Short;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;
use quorba_base::{NodeId, NodeSet};
use quorba_giop::Endian;

/// What happened, for logs and pictures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The view is a primary component.
    Primary {
        /// Which view.
        view: RingId,
        /// All its nodes.
        members: NodeSet,
        /// Those that were up to date.
        current: NodeSet,
        /// Why it may go on.
        basis: Basis,
    },
    /// In a primary component that disks decided, groups that are not durable go on from these
    /// nodes, or go on again.
    MemoryFrom {
        /// Which view.
        view: RingId,
        /// Those that were up to date.
        current: NodeSet,
        /// Why they may go on.
        basis: Basis,
    },
    /// In a primary component that disks decided, groups that are not durable wait: a node that is
    /// away may have what they acknowledged.
    MemoryWaits {
        /// Which view.
        view: RingId,
    },
    /// The view must not serve.
    Blocked {
        /// Which view.
        view: RingId,
        /// Why.
        reason: Blocked,
    },
    /// A member changed.
    Member {
        /// Of this group.
        group: GroupId,
        /// On this node.
        node: NodeId,
        /// What it is now.
        state: MemberState,
        /// The try of it that is over with this, if it is down now and there was one: the same at
        /// all nodes.
        ended: Option<Attempt>,
    },
    /// The group takes requests.
    Opened {
        /// Which group.
        group: GroupId,
    },
    /// An operator has changed the group.
    Changed {
        /// Which group.
        group: GroupId,
        /// How.
        command: Command,
    },
    /// Another member leads.
    Leader {
        /// Of this group.
        group: GroupId,
        /// `None`: nobody does.
        leader: Option<NodeId>,
    },
    /// A member replied something else than the majority.
    Diverged {
        /// Of this group.
        group: GroupId,
        /// Whose member.
        node: NodeId,
        /// The first request of those that were compared, counted from the group's first.
        first: u64,
        /// The last of them.
        request: u64,
        /// It is expelled and rebuilt.
        expelled: bool,
    },
    /// The members replied different things, and none has a majority.
    Disagreement {
        /// Of this group.
        group: GroupId,
        /// The first request of those that were compared, counted from the group's first.
        first: u64,
        /// The last of them.
        request: u64,
    },
    /// A request has no reply of a server, and will have none.
    RequestEnded {
        /// Of this group.
        group: GroupId,
        /// Which request, counted from the group's first.
        request: u64,
        /// How it ended.
        end: RequestEnd,
    },
    /// A member's server did not reply to a request that another member's has answered.
    AtFault {
        /// Of this group.
        group: GroupId,
        /// Whose member.
        node: NodeId,
        /// Which request, counted from the group's first.
        request: u64,
        /// What it did.
        reason: DownReason,
    },
    /// The group takes no new FT_REQUESTs, or does again: what its members remember is too much.
    Full {
        /// Which group.
        group: GroupId,
        /// Which of the two.
        is_full: bool,
    },
    /// A request was refused because of the name that its client gave it (FT_REQUEST). Said now and
    /// then only.
    IdentityRefused {
        /// Of this group.
        group: GroupId,
        /// Why.
        fault: IdentityFault,
        /// The client's name of itself.
        client_id: Bytes,
        /// Who sent it; see [`crate::Bound::subject`].
        subject: [u8; 16],
        /// So many for this reason since the node started.
        count: u64,
    },
    /// A call of a replicated server is not executed.
    CallRefused {
        /// Whose server called.
        caller: GroupId,
        /// What it called.
        target: GroupId,
        /// In which of its requests, counted from the group's first.
        during: u64,
        /// Why.
        why: CallRefusal,
    },
    /// A server outside did not reply to a call.
    OutsideFailed {
        /// Whose server called.
        caller: GroupId,
        /// What it called.
        target: GroupId,
        /// In which of its requests, counted from the group's first.
        during: u64,
        /// What happened.
        why: OutsideFailure,
    },
    /// A member asked for something else than another one in the same call of the same request.
    CallDiffers {
        /// Of this group.
        caller: GroupId,
        /// Whose member.
        node: NodeId,
        /// In which request, counted from the group's first.
        during: u64,
    },
    /// The local server has replied with something that looks like a reference.
    Returned {
        /// Of this group.
        group: GroupId,
        /// The reply.
        returned: Returned,
    },
    /// Members were seen to reply differently, and replies of the local server have octets where
    /// padding seems to be that are not zero.
    Uncleared {
        /// Of this group.
        group: GroupId,
    },
    /// A definition means nothing to this node: another version wrote it.
    Unreadable {
        /// Its name.
        name: Arc<str>,
        /// What is wrong with it.
        reason: String,
    },
    /// A message of another version was skipped.
    Skipped {
        /// Who sent it.
        origin: NodeId,
    },
}

/// Why a request under a client's name was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdentityFault {
    /// The name is that of another request.
    Taken,
    /// Too many names, or bytes of replies, are remembered, in all or of its client.
    NoRoom,
}

/// A reply with something in it that looks like a reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Returned {
    /// What was asked for.
    pub operation: Short,
    /// Which request, counted from the group's first, if it is one that all members execute.
    pub request: Option<u64>,
    /// The whole GIOP message.
    pub reply: Bytes,
    /// Where its results begin.
    pub body_offset: usize,
    /// Their byte order.
    pub endian: Endian,
}
