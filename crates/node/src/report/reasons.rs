//! Why something is as it is, in words for people: views, the primary component, nodes that left.
//!
//! What it is not: a judgement. Invariant: log and status say the same in the same words.

use super::Reporter;
use quorba_base::NodeId;
use quorba_engine::order::{GatherReason, LeaveReason, LeftOut, Snapshot};
use quorba_engine::replica::PrimaryStatus;
use quorba_engine::replica::primary::Basis;

/// Why a node is not in the view.
pub(crate) const fn why_left(reason: LeaveReason) -> &'static str {
    match reason {
        LeaveReason::Silent => "nothing was heard of it",
        LeaveReason::ProcessLost => "its process ended",
        LeaveReason::Departed => "it said that it leaves",
        LeaveReason::Restarted => "it was restarted",
        LeaveReason::FailedToReceive => "it did not receive messages, though it had the token",
        LeaveReason::PoorLinks => "much of what goes to it or comes from it is lost or late",
        LeaveReason::Unreachable => "another member does not hear it",
        LeaveReason::Parted => "it went with others",
    }
}

/// What a node says of itself that the others have left out for its links.
pub(super) const TOLD_OUT: &str = "left out by the others: much of what goes to it or \
                                   comes from it is lost or late; look at its network";

/// When a node that was left out for its links is tried again, in words.
pub(super) fn when_again(order: &Snapshot, node: NodeId) -> String {
    let poor = |out: &&LeftOut| out.node == node && out.cause == LeaveReason::PoorLinks;
    match order.left_out.iter().find(poor) {
        Some(out) => {
            let seconds = out.again_in.as_millis().div_ceil(1000);
            format!("; its links are measured again in {seconds} s, and it is taken in if good")
        }
        None => String::new(),
    }
}

/// On what a primary component goes on.
pub(crate) const fn basis_text(basis: Basis) -> &'static str {
    match basis {
        Basis::Continues => "a majority is connected",
        Basis::FirstStart => "first start of the domain",
        Basis::ColdStart => "every node was restarted: the domain begins anew",
        Basis::MemoryLost => {
            "every node is here, but most were restarted at once: acknowledged requests may be lost"
        }
    }
}

impl Reporter {
    /// Why the members of a ring were gathered anew, in words.
    pub(crate) fn why_gathered(&self, reason: GatherReason) -> String {
        let of = |node, what: &str| format!("{} {what}", self.name_of(node));
        match reason {
            GatherReason::Boot => "this node started".to_owned(),
            GatherReason::TokenLoss => "the token was lost".to_owned(),
            GatherReason::ForeignMessage(node) => of(node, "is in another ring and was heard"),
            GatherReason::Join(node) => of(node, "asked for a new ring"),
            GatherReason::PeerLost(node) => of(node, "lost its process"),
            GatherReason::Departed(node) => of(node, "said that it leaves"),
            GatherReason::CommitTimeout => "the commit token did not come round".to_owned(),
            GatherReason::RecoveryTimeout => "the token was lost during recovery".to_owned(),
            GatherReason::FailToReceive(node) => of(node, "does not receive what others have"),
            GatherReason::PoorLinks(node) => of(node, "has poor links"),
            GatherReason::Paused => "this process stood still for too long".to_owned(),
        }
    }

    pub(super) fn primary_reason(&self, primary: PrimaryStatus) -> String {
        match (primary, self.basis) {
            (PrimaryStatus::Primary, Some(Basis::Continues))
                if self.memory_basis == Some(Basis::MemoryLost) =>
            {
                "every node is here, but most were restarted at once: groups that are not durable \
                 may have lost acknowledged requests"
            }
            (PrimaryStatus::Primary, basis) => basis_text(basis.unwrap_or(Basis::Continues)),
            (PrimaryStatus::Forming, _) => "a view is being formed",
            (PrimaryStatus::CatchingUp, _) => "this node is being brought up to date",
            (PrimaryStatus::Blocked(reason), _) => reason.text(),
        }
        .into()
    }

    pub(super) fn away(&self, node: NodeId) -> String {
        match self.left.get(&node) {
            Some((_, reason)) => why_left(*reason).into(),
            None => "it has not been seen since this node started".into(),
        }
    }
}
