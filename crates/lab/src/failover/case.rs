//! What a case is: a style, a fault, and what the fault meets.
//!
//! What it is not: where the fault is made; that is [`super::trial`].
//!
//! Invariant: a fault of the replier meets whoever answers the client when it comes.

use quorba_base::policy::Style;
use serde::{Serialize, Serializer};

/// The client's node, a member that does not reply, and the leader where there is one.
pub(super) const CLIENT: usize = 2;
pub(super) const OTHER: usize = 1;
pub(super) const LEADER: usize = 0;

/// How the members share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// As their style says; those that execute do so together.
    Together(Style),
    /// Style `active`, and the first member goes ahead: the others begin a request when it is
    /// through.
    ActiveStaggered,
}

impl Serialize for Sharing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Sharing {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Together(Style::Active),
        Self::ActiveStaggered,
        Self::Together(Style::SemiActive),
        Self::Together(Style::WarmPassive),
        Self::Together(Style::ColdPassive),
    ];

    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Together(style) => style.as_str(),
            Self::ActiveStaggered => "active-staggered",
        }
    }

    /// The node whose member answers, or whose member the one that answers waits for.
    const fn replier(self) -> usize {
        match self {
            Self::Together(style) if !style.has_leader() => CLIENT,
            Self::Together(_) | Self::ActiveStaggered => LEADER,
        }
    }

    /// The words of the domain file: `style` and `execution`.
    pub(super) const fn keys(self) -> [&'static str; 2] {
        match self {
            Self::Together(style) => [style.as_str(), "together"],
            Self::ActiveStaggered => [Style::Active.as_str(), "staggered"],
        }
    }
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// SIGKILL to the server that replies.
    ReplierServer,
    /// The same when most has to be executed anew: right before the leader of a passive group
    /// would have sent its next state.
    LateServer,
    /// SIGKILL to a server that does not.
    OtherServer,
    /// SIGSTOP to the server that replies.
    StoppedServer,
    /// SIGKILL to the node whose member replies, and so the end of its server.
    ReplierNode,
    /// SIGKILL to a node that is neither the client's nor the replier's.
    OtherNode,
    /// SIGSTOP to the first node.
    StoppedNode,
    /// The cable of the node whose member replies is cut, where the client is at another.
    ReplierCable,
    /// The cable of a node is cut that is neither the client's nor the replier's.
    OtherCable,
    /// SIGKILL to a process like a server, which no node knows: what any death of such a process
    /// is felt on this machine.
    ReferenceServer,
    /// Nothing: what the machine does by itself.
    Nothing,
}

/// What a fault meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    KilledServer(usize),
    StoppedServer(usize),
    KilledNode(usize),
    StoppedNode(usize),
    CutNode(usize),
    ReferenceServer,
    Nobody,
}

/// The most that the gap should be, as the project wants it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// In milliseconds.
    Ms(f64),
    /// In milliseconds, on top of what it takes to execute anew what the last state lacks.
    BesideReplay(f64),
    /// In longest waits of as long a while without a fault, see
    /// [`super::record::Sample::control_us`].
    Control(f64),
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 11] = [
        Self::ReplierServer,
        Self::LateServer,
        Self::OtherServer,
        Self::StoppedServer,
        Self::ReplierNode,
        Self::OtherNode,
        Self::StoppedNode,
        Self::ReplierCable,
        Self::OtherCable,
        Self::ReferenceServer,
        Self::Nothing,
    ];

    /// The word on the command line and in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReplierServer => "replier-server",
            Self::LateServer => "late-server",
            Self::OtherServer => "other-server",
            Self::StoppedServer => "stopped-server",
            Self::ReplierNode => "replier-node",
            Self::OtherNode => "other-node",
            Self::StoppedNode => "stopped-node",
            Self::ReplierCable => "replier-cable",
            Self::OtherCable => "other-cable",
            Self::ReferenceServer => "bystander",
            Self::Nothing => "nothing",
        }
    }

    /// For a report.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::ReplierServer => "the replying server's process is killed",
            Self::LateServer => {
                "the replying server's process is killed right before the next state is sent"
            }
            Self::OtherServer => "the process of a server that does not reply is killed",
            Self::StoppedServer => "the replying server's process is stopped",
            Self::ReplierNode => "the replier's node is killed, and its server with it",
            Self::OtherNode => "a node that neither replies nor has the client is killed",
            Self::StoppedNode => "the first node hears and says nothing any more (it is stopped)",
            Self::ReplierCable => {
                "the cable of the replier's node is cut; the client is at another"
            }
            Self::OtherCable => {
                "the cable of a node is cut that neither replies nor has the client"
            }
            Self::ReferenceServer => {
                "a process like a server is killed that no node knows, to compare with"
            }
            Self::Nothing => "no fault, to compare with",
        }
    }

    /// What it meets in a group of this style; `None` if there is no such thing.
    pub(super) const fn meets(self, style: Sharing) -> Option<Victim> {
        let replier = style.replier();
        Some(match self {
            Self::ReplierServer => Victim::KilledServer(replier),
            Self::LateServer if !self.is_late_in(style) => return None,
            Self::LateServer => Victim::KilledServer(replier),
            Self::OtherServer if matches!(style, Sharing::Together(Style::ColdPassive)) => {
                return None;
            }
            Self::OtherServer => Victim::KilledServer(OTHER),
            Self::StoppedServer => Victim::StoppedServer(replier),
            Self::ReplierNode => Victim::KilledNode(replier),
            Self::OtherNode => Victim::KilledNode(OTHER),
            Self::StoppedNode => Victim::StoppedNode(LEADER),
            // Its own node would be cut off from the client, too.
            Self::ReplierCable if matches!(style, Sharing::Together(Style::Active)) => return None,
            Self::ReplierCable => Victim::CutNode(replier),
            Self::OtherCable => Victim::CutNode(OTHER),
            Self::ReferenceServer => Victim::ReferenceServer,
            Self::Nothing => Victim::Nobody,
        })
    }

    /// Whether it waits until the other members have much to execute anew.
    pub(super) const fn is_late_in(self, style: Sharing) -> bool {
        matches!((self, style), (Self::LateServer, Sharing::Together(style)) if style.is_passive())
    }

    /// Whether it takes nodes with cables.
    pub(super) const fn is_cut(self) -> bool {
        matches!(self, Self::ReplierCable | Self::OtherCable)
    }

    /// What the gap should not exceed, where the project has said so.
    pub(super) const fn target(self, style: Sharing) -> Option<Target> {
        let Sharing::Together(style) = style else { return None };
        match (style, self) {
            (Style::Active, Self::OtherServer | Self::OtherNode) => Some(Target::Control(1.5)),
            (Style::Active, Self::ReplierServer) => Some(Target::Ms(20.0)),
            (Style::SemiActive | Style::WarmPassive, Self::ReplierServer) => Some(Target::Ms(30.0)),
            (Style::SemiActive | Style::WarmPassive, Self::ReplierNode) => Some(Target::Ms(150.0)),
            (Style::WarmPassive, Self::LateServer) => Some(Target::BesideReplay(50.0)),
            _ => None,
        }
    }
}
