//! What a node tells of itself, of others and of its servers, as a notifier is told it.
//!
//! What it is not: who asks the node. Invariant: of a member that is in again, or that is not
//! monitored, a notifier need not know.

use alloc::string::{String, ToString};

use quorba_corba::Transport;
use quorba_corba::giop::SystemException;
use quorba_idl::cos_notification::StructuredEvent;
use quorba_idl::ft::FaultNotifierStub;
use quorba_idl::quorba::{FaultDeliveryStub, NewsItem};

use crate::event::Report;
use crate::notifier::{DELIVERY_KEY, NOTIFIER_KEY};

/// What a notifier is told.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// A node or a member has died.
    Fault(StructuredEvent),
    /// A node has come, in a view.
    NodeIsUp(String),
}

impl News {
    /// Of an item; nothing if no notifier has to know it.
    #[must_use]
    pub fn of(item: &NewsItem, domain_id: &str) -> Option<Self> {
        match (item.is_up, item.group.is_empty()) {
            (true, true) => Some(Self::NodeIsUp(item.incident.clone())),
            (true, false) => None,
            (false, _) if !item.is_monitored => None,
            (false, _) => Some(Self::Fault(Report::of_news(item, domain_id).to_event())),
        }
    }

    /// The key of the notifier's object that is told it.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Fault(_) => NOTIFIER_KEY,
            Self::NodeIsUp(_) => DELIVERY_KEY,
        }
    }

    /// Tells a notifier, at its object with that key.
    ///
    /// # Errors
    /// What the group, or the way to it, answers.
    pub fn tell(&self, object: &mut impl Transport) -> Result<(), SystemException> {
        match self {
            Self::Fault(event) => FaultNotifierStub(object).push_structured_fault(event),
            Self::NodeIsUp(incident) => FaultDeliveryStub(object).node_is_up(incident),
        }
    }
}

impl Report {
    /// Of what a node tells of somebody who has died.
    #[must_use]
    pub fn of_news(item: &NewsItem, domain_id: &str) -> Self {
        let is_member = !item.group.is_empty();
        Self {
            domain_id: domain_id.to_string(),
            location: item.node.clone(),
            type_id: is_member.then(|| item.type_id.clone()),
            group: is_member.then_some(item.group_id),
            incident: item.incident.clone(),
        }
    }
}
