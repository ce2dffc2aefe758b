//! What is said of a member: where it stands, why it is gone, what it lacks.
//!
//! What it is not: who may change it, and when; that is the table.

use crate::words::ids::Attempt;
use crate::words::wire::{code_of, of_code};
use quorba_base::NodeId;

/// Why a member is not in the group any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DownReason {
    /// Its server has not been started yet in this view.
    NotStarted,
    /// Its server process ended.
    ServerExited,
    /// Its server closed the connection in a way that no living server does.
    ConnectionLost,
    /// Its server did not answer in time.
    ServerHung,
    /// Its server sent what is not a GIOP reply to the request.
    ServerProtocol,
    /// Its server refused the state (`set_state`).
    StateRefused,
    /// The donor's server could not give its state (`get_state`).
    StateUnavailable,
    /// The donor left while it was giving its state.
    DonorLost,
    /// Its node left the view.
    NodeLeft,
    /// Its node missed messages while it was away.
    NodeMissedMessages,
    /// It replied something else than most members.
    Diverged,
    /// It logged more requests than it may keep: no checkpoint came for too long.
    LogOverflow,
    /// The state that it was given is not what the donor had.
    StateDamaged,
    /// The donor's state and the replies that go with it are more than is passed on.
    StateTooLarge,
    /// The group recovers by replay, and has executed more than is kept for that.
    TooMuchToReplay,
    /// The group recovers by replay, and its server has executed some of it before.
    NotFresh,
    /// The donor does not have the requests that the member lacks.
    RequestsUnknown,
    /// The requests that it lacks are more than its donor passes on where a state can be had.
    RequestsTooLong,
    /// The group was stateless, and its state may be another one than that of the member that
    /// stayed in.
    MayDiffer,
    /// It executed a request anew in which it called, and what became of the call is forgotten.
    CallsForgotten,
    /// The group was given the state of a backup, and it has another one.
    Restored,
    /// The updates since the state that it had kept are not to be had: it gets a state.
    UpdatesUnknown,
    /// The group has no member on its node any more.
    NotMember,
}

impl DownReason {
    const ALL: [Self; 23] = [
        Self::NotStarted,
        Self::ServerExited,
        Self::ConnectionLost,
        Self::ServerHung,
        Self::ServerProtocol,
        Self::StateRefused,
        Self::StateUnavailable,
        Self::DonorLost,
        Self::NodeLeft,
        Self::NodeMissedMessages,
        Self::LogOverflow,
        Self::StateDamaged,
        Self::StateTooLarge,
        Self::Diverged,
        Self::MayDiffer,
        Self::TooMuchToReplay,
        Self::NotFresh,
        Self::RequestsUnknown,
        Self::RequestsTooLong,
        Self::CallsForgotten,
        Self::Restored,
        Self::UpdatesUnknown,
        Self::NotMember,
    ];

    /// Whether its server did something else than the others'.
    pub(crate) fn is_of_server(self) -> bool {
        matches!(self, Self::ConnectionLost | Self::ServerHung | Self::ServerProtocol)
    }

    pub(crate) fn code(self) -> u8 {
        code_of(&Self::ALL, &self)
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        of_code(&Self::ALL, code)
    }

    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NotStarted => "its server has not joined yet",
            Self::ServerExited => "its server process ended",
            Self::ConnectionLost => "its server dropped the connection",
            Self::ServerHung => "its server did not answer in time",
            Self::ServerProtocol => "its server answered with something that is no reply",
            Self::StateRefused => "its server refused the state",
            Self::StateUnavailable => "no state could be had from the donor's server",
            Self::DonorLost => "the member that was giving it its state left",
            Self::NodeLeft => "its node left the view",
            Self::NodeMissedMessages => "its node was away, or was started anew",
            Self::Diverged => "it replied something else than most members",
            Self::LogOverflow => "its log of requests grew too long without a checkpoint",
            Self::StateDamaged => "the state that it was given is not what the donor had",
            Self::StateTooLarge => {
                "the donor's state, with the replies that it keeps, is larger than 1.5 GiB"
            }
            Self::TooMuchToReplay => "the group has executed more than replay_bytes",
            Self::NotFresh => "its server had executed requests and must begin anew",
            Self::RequestsUnknown => "the donor has not all the requests that it lacks",
            Self::RequestsTooLong => "the requests that it lacks are many: it gets a state",
            Self::MayDiffer => "its state may differ from that of the others",
            Self::CallsForgotten => {
                "its server made a nested call again whose outcome is forgotten"
            }
            Self::Restored => "the group was restored from a backup at another member",
            Self::NotMember => "the group has no member on its node any more",
            Self::UpdatesUnknown => "the updates that it lacks are not kept: it gets a state",
        }
    }
}

/// Why a member whose server runs cannot take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutReason {
    /// It missed requests, and the group names no `state_object` to fetch them from.
    NoStateObject,
    /// No member is left that has the state.
    TotalLoss,
    /// The group recovers by replay, and has executed more than is kept for that.
    TooMuchToReplay,
    /// An operator took it out.
    Removed,
}

impl OutReason {
    const ALL: [Self; 4] =
        [Self::NoStateObject, Self::TotalLoss, Self::TooMuchToReplay, Self::Removed];

    pub(crate) fn code(self) -> u8 {
        code_of(&Self::ALL, &self)
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        of_code(&Self::ALL, code)
    }

    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NoStateObject => "it missed requests and the group names no state_object",
            Self::TotalLoss => "no member is left that has the group's state",
            Self::TooMuchToReplay => "the group has executed more than replay_bytes",
            Self::Removed => "an operator removed it",
        }
    }
}

/// What a joining member is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lacks {
    /// A state, and the replies that clients may still ask for.
    State,
    /// The requests behind those that its server has executed.
    Requests,
    /// What has changed since the checkpoint whose state it has, and the replies.
    Updates,
}

/// Where a member stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// No server, or its node is away.
    Down(DownReason),
    /// Being brought up to date by `donor`.
    Joining {
        /// Which try this is.
        attempt: Attempt,
        /// Who gives it what it lacks.
        donor: NodeId,
        /// What that is.
        lacks: Lacks,
    },
    /// Executes requests and may answer.
    In {
        /// The try that brought it in.
        attempt: Attempt,
    },
    /// Has a server that cannot take part.
    Out {
        /// The try that was refused.
        attempt: Attempt,
        /// Why.
        reason: OutReason,
    },
}
