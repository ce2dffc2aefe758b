//! How the members of a group share the work, and what follows from it for one member.
//!
//! What it is not: the mechanism. Invariant: every question about a style is answered here, by an
//! exhaustive match, so that a new style is a compile error wherever it matters.

use crate::wire::{code_of, of_code};

/// How the members of a group share the work (FT-CORBA §23.3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Style {
    /// Every member executes every request; the one nearest to the client answers.
    #[default]
    Active,
    /// Every member executes every request; what more than half of them reply is the answer.
    ActiveWithVoting,
    /// Every member executes every request; the leader answers.
    SemiActive,
    /// The leader executes and answers. The others have servers too, which get its state from time
    /// to time; they log the requests since.
    WarmPassive,
    /// The leader executes and answers. The others have no server: they keep the last state and
    /// log the requests since.
    ColdPassive,
    /// Any member executes, without order, and none remembers anything.
    Stateless,
}

/// Whether nothing but its members' memory is promised to have a group's state: it is not durable,
/// and has one, or may have one when an operator has changed its style. Of how it is declared.
#[must_use]
pub fn lives_in_memory(durable: bool, declared: Style, has_state_object: bool) -> bool {
    !durable && (declared != Style::Stateless || has_state_object)
}

impl Style {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Active,
        Self::SemiActive,
        Self::WarmPassive,
        Self::ColdPassive,
        Self::ActiveWithVoting,
        Self::Stateless,
    ];

    pub(crate) fn code(self) -> u8 {
        code_of(&Self::ALL, &self)
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        of_code(&Self::ALL, code)
    }

    /// Whether one member answers all clients, wherever they are connected.
    #[must_use]
    pub fn has_leader(self) -> bool {
        match self {
            Self::Active | Self::ActiveWithVoting | Self::Stateless => false,
            Self::SemiActive | Self::WarmPassive | Self::ColdPassive => true,
        }
    }

    /// Whether only the leader executes.
    #[must_use]
    pub fn is_passive(self) -> bool {
        match self {
            Self::Active | Self::ActiveWithVoting | Self::SemiActive | Self::Stateless => false,
            Self::WarmPassive | Self::ColdPassive => true,
        }
    }

    /// Whether the reply of a single member that executes is the group's.
    pub(crate) fn lets_one_read(self) -> bool {
        match self {
            Self::Active
            | Self::SemiActive
            | Self::WarmPassive
            | Self::ColdPassive
            | Self::Stateless => true,
            // What one member replies, the others have not confirmed.
            Self::ActiveWithVoting => false,
        }
    }

    /// The word in the domain file.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::ActiveWithVoting => "active-with-voting",
            Self::SemiActive => "semi-active",
            Self::WarmPassive => "warm-passive",
            Self::ColdPassive => "cold-passive",
            Self::Stateless => "stateless",
        }
    }
}

/// What a member has to do with a request that was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duty {
    /// Execute it, as the others do.
    Execute,
    /// Execute it for all, and send checkpoints.
    Lead,
    /// Keep it, with a server that stands by.
    StandBy,
    /// Keep it; no server is wanted.
    Keep,
}

impl Duty {
    /// That of a member that leads or does not.
    pub(crate) fn of(style: Style, leads: bool) -> Self {
        match style {
            Style::Active | Style::ActiveWithVoting | Style::SemiActive | Style::Stateless => {
                Self::Execute
            }
            Style::WarmPassive | Style::ColdPassive if leads => Self::Lead,
            Style::WarmPassive => Self::StandBy,
            Style::ColdPassive => Self::Keep,
        }
    }

    pub(crate) fn needs_server(self) -> bool {
        self != Self::Keep
    }

    pub(crate) fn executes(self) -> bool {
        matches!(self, Self::Execute | Self::Lead)
    }
}
