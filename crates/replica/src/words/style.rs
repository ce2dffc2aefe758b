//! What the style of a group means for one member, and how a style is coded.
//!
//! What it is not: the mechanism, nor the styles themselves. Invariant: every question about a
//! style is answered here or where the styles are defined, by an exhaustive match, so that a new
//! style is a compile error wherever it matters.

use crate::words::wire::{code_of, of_code};
use quorba_base::policy::Style;

/// By the octet that stands for one in messages, logs and backups.
const CODES: [Style; 6] = [
    Style::Active,
    Style::SemiActive,
    Style::WarmPassive,
    Style::ColdPassive,
    Style::ActiveWithVoting,
    Style::Stateless,
];

pub(crate) fn code_of_style(style: Style) -> u8 {
    code_of(&CODES, &style)
}

pub(crate) fn style_of_code(code: u8) -> Option<Style> {
    of_code(&CODES, code)
}

/// Whether nothing but its members' memory is promised to have a group's state: it is not durable,
/// and has one, or may have one when an operator has changed its style. Of how it is declared.
#[must_use]
pub fn lives_in_memory(durable: bool, declared: Style, has_state_object: bool) -> bool {
    !durable && (declared != Style::Stateless || has_state_object)
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
