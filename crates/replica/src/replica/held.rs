//! Calls of servers whose member is cut off in the middle of a request.
//!
//! Such a member asks to come in with what its server has executed, and the server goes on as soon
//! as the group lets it: what it calls, or had called, is ordered again then, under the same name
//! and the try that brought the member in.
//!
//! What it is not: whether the group lets it in. Invariants: a call that waits here is one whose
//! copies so far were void or are not ordered yet; none waits longer than its request counts.

use super::Replica;
use crate::envelope::RequestEnvelope;
use crate::history::History;
use crate::ids::{Attempt, GroupId, RequestNumber};
use crate::member::CallerState;
use crate::nested::NestedCall;
use crate::output::{GatewayOutput, Output};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorba_base::NodeId;

/// Calls by whom they are for and their number: who makes each, in which request.
#[derive(Default)]
pub(super) struct Held(BTreeMap<(GroupId, RequestNumber), (GroupId, History)>);

impl Replica {
    /// A copy of a call of this node's server is void. Whether another one will count.
    pub(super) fn hold_call(
        &mut self,
        by: (NodeId, u64),
        request: &RequestEnvelope,
        call: NestedCall,
    ) -> bool {
        let (caller, during) = (call.key.caller, call.key.during);
        let Some(group) = self.groups.get(caller) else { return false };
        let is_mine = by == (self.here.node, self.here.incarnation);
        if !is_mine || !group.may_call(request.group) {
            return false;
        }
        match group.caller_state(during) {
            CallerState::Serving(attempt) if attempt == call.attempt => false,
            CallerState::Serving(_) | CallerState::Returning => {
                self.held.0.insert((request.group, request.number), (caller, during));
                true
            }
            CallerState::Gone => false,
        }
    }

    /// Orders the calls again that count now, or never will.
    pub(super) fn mind_held(&mut self) {
        if self.held.0.is_empty() || !self.is_primary() {
            return;
        }
        let mut again: Vec<(GroupId, RequestNumber, Option<Attempt>)> = Vec::new();
        let groups = &self.groups;
        self.held.0.retain(|(target, number), (caller, during)| {
            let group = groups.get(*caller);
            let attempt = match group.map_or(CallerState::Gone, |group| group.caller_state(*during))
            {
                CallerState::Returning => return true,
                CallerState::Serving(attempt) => Some(attempt),
                // Where it is delivered, it is answered.
                CallerState::Gone => None,
            };
            again.push((*target, *number, attempt));
            false
        });
        let order = |(group, number, attempt)| GatewayOutput::OrderAgain { group, number, attempt };
        self.out.extend(again.into_iter().map(order).map(Output::from));
    }
}
