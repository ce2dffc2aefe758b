//! What the groups ask of their driver, as one closed enum, and the types inside of it.
//!
//! Invariant: outputs take effect in the order of [`crate::Groups::poll`].

use crate::ids::{GroupName, GroupNumber, GroupViewId, ProcessId, ProcessNumber};
use crate::wire::InvalidPayload;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use quorba_base::NodeId;
use quorba_order::{Guarantee, LeaveReason, ViewKind};

/// One thing for the driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Give this to the ring. If its queue is full, keep it and try again: none may be lost, and
    /// none may overtake another.
    Submit {
        /// An ordered message of this layer.
        payload: Bytes,
        /// How to order it.
        guarantee: Guarantee,
    },
    /// A process is told of a change of its group.
    View {
        /// Who is told.
        to: ProcessNumber,
        /// In which group.
        group: GroupNumber,
        /// The change; shared by all local members.
        view: Arc<GroupView>,
    },
    /// A process gets a message of its group.
    Message {
        /// Who gets it.
        to: ProcessNumber,
        /// In which group.
        group: GroupNumber,
        /// The regular view that the message belongs to: the one given last, or the one that a
        /// transitional view has begun to end.
        view: GroupViewId,
        /// Who sent it.
        from: ProcessId,
        /// What was sent: a slice of what the ring delivered.
        payload: Bytes,
    },
    /// A node orders what this layer does not understand; that payload was skipped, by all.
    Malformed {
        /// The node. Its program is broken or of another version.
        origin: NodeId,
        /// What is wrong with it.
        reason: InvalidPayload,
    },
}

/// A view of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Transitional: the rest of view `id`, for those who remain together. Regular: a new view.
    pub kind: ViewKind,
    /// The new view, or, if this one is transitional, the regular view that ends.
    pub id: GroupViewId,
    /// The name of the group.
    pub name: GroupName,
    /// The members, ascending.
    pub members: Arc<[ProcessId]>,
    /// Who was not in the regular view before and why it came; ascending. A member that was away
    /// in between is both here and in `left`.
    pub joined: Vec<(ProcessId, JoinReason)>,
    /// Who was in the regular view before, and why it is not, or was not all the time; ascending.
    /// A process that leaves gets a last view, in which it stands here.
    pub left: Vec<(ProcessId, Gone)>,
}

/// Why a process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinReason {
    /// It joined.
    Joined,
    /// Its part of the group and mine have found each other.
    Merged,
}

/// Why a process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It left.
    Left,
    /// It ended, and its node said so.
    Died,
    /// Its node is gone from the ring, or was not with this one all the time.
    Node(LeaveReason),
}

/// Why a call was not taken. The caller's fault, except for `NotSettled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The ring has just changed, and views are being worked out: try again when
    /// [`crate::Groups::is_settled`]; that takes milliseconds.
    NotSettled,
    /// No such process, or it is gone. Retrying does not help.
    NoProcess,
    /// The process is not a member of the group, or not yet: try again after its first view.
    NotMember,
    /// The process is a member, or is about to be. Retrying does not help.
    AlreadyMember,
    /// The process is about to leave: try again after the view that says so.
    Leaving,
    /// This node's processes are in [`crate::GROUPS_PER_NODE_MAX`] groups.
    TooManyGroups,
    /// This node's processes have [`crate::MEMBERSHIPS_PER_NODE_MAX`] memberships.
    TooManyMemberships,
    /// This node has [`crate::PROCESSES_PER_NODE_MAX`] processes.
    TooManyProcesses,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSettled => "the ring has just changed; try again",
            Self::NoProcess => "no such process",
            Self::NotMember => "the process is not a member of the group",
            Self::AlreadyMember => "the process is a member of the group already",
            Self::Leaving => "the process is about to leave the group; try again",
            Self::TooManyGroups => "the node's processes are in too many groups",
            Self::TooManyMemberships => "the node's processes have too many memberships",
            Self::TooManyProcesses => "the node has too many processes",
        })
    }
}

impl core::error::Error for Refused {}

/// A look at everything, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Whether views are settled: messages can be sent.
    pub settled: bool,
    /// Groups with a member anywhere in the ring.
    pub groups: usize,
    /// Memberships of all nodes.
    pub memberships: usize,
    /// Processes of this node.
    pub processes: usize,
    /// Joins, leaves and deaths of this node that have no place in the order yet.
    pub pending: usize,
    /// Messages that wait for announcements.
    pub held: usize,
    /// Their bytes.
    pub held_bytes: usize,
    /// Nodes of the ring whose announcement is missing, as bits.
    pub unannounced: u64,
    /// Ring views whose announcements came in.
    pub settlements: u64,
    /// Messages delivered to local processes.
    pub messages: u64,
    /// Messages that were for no member here, or from none.
    pub strays: u64,
    /// Payloads that were not understood.
    pub malformed: u64,
}
