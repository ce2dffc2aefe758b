//! Reads that close a cycle, where they are delivered: who serves one, and who hears the answer.
//!
//! What it is not: why that is right, which is in [`crate::reentrant`]. Invariant: who serves a
//! read is a function of what was delivered.

use super::{Replica, disk};
use crate::envelope::RequestEnvelope;
use crate::group::Group;
use crate::ids::{Attempt, CallKey, GroupId, RequestNumber};
use crate::output::GatewayOutput;
use crate::outside::Copy;
use crate::reentrant::{Question, ReadAttempt, Spot};
use crate::refusal;
use alloc::vec::Vec;
use quorba_base::NodeId;

impl Replica {
    /// A copy of a read that is served beside is delivered.
    pub(super) fn deliver_reentrant(
        &mut self,
        by: (NodeId, u64),
        request: &RequestEnvelope,
        key: CallKey,
        spot: Spot,
    ) {
        // A member that asks for something else under this name may ask another group.
        let (target, number) = (request.group, request.number);
        let able = self.able(spot, by.0);
        let Some(read) = self.calls.outside(key) else { return };
        let mine = by == (self.here.node, self.here.incarnation);
        match read.assign(&able) {
            Copy::MadeBy((node, attempt), tries) => {
                if mine {
                    self.outside.wait(key, (target, number));
                }
                let is_primary = self.is_primary();
                let Some(group) = self.groups.get_mut(spot.group) else { return };
                if node != self.here.node {
                    group.need_not_serve(key);
                } else if is_primary {
                    let read_attempt = ReadAttempt { key, tries };
                    let (giop, code_sets) = (request.giop.clone(), request.code_sets.clone());
                    let question = Question { read_attempt, spot, giop, code_sets };
                    group.take_question(Attempt(attempt), question);
                }
            }
            Copy::Ended(what) => {
                self.outside.wait_no_more(key);
                if let Some(group) = self.groups.get_mut(spot.group) {
                    group.need_not_serve(key);
                }
                if mine {
                    let giop = match what {
                        Ok(reply) => Some(reply),
                        Err(why) => refusal::reentrant_read_failed(&request.giop, why),
                    };
                    self.out.push_back(GatewayOutput::Reply { group: target, number, giop }.into());
                    self.await_disk(target, disk::Awaited::Request(number));
                }
            }
        }
    }

    /// Members that can serve a read there: none if their group is not there any more.
    fn able(&self, spot: Spot, origin: NodeId) -> Vec<(NodeId, u64)> {
        let group = self.groups.get(spot.group);
        let group = group.filter(|_| self.calls.is_at(spot));
        group.map_or_else(Vec::new, |group| group.can_serve(origin))
    }

    /// The table has changed: reads whose member is gone are ordered again, for another one.
    pub(super) fn mind_reentrant_reads(&mut self) {
        let waiting = self.outside.waiting().filter(|(key, _)| self.calls.spot(*key).is_some());
        let waiting: Vec<(CallKey, (GroupId, RequestNumber))> = waiting.collect();
        for (key, (group, number)) in waiting {
            let Some(spot) = self.calls.spot(key) else { continue };
            let able = self.able(spot, self.here.node);
            let maker = self.calls.outside(key).and_then(|read| read.maker());
            if maker.is_some_and(|maker| !able.contains(&maker)) {
                self.outside.wait_no_more(key);
                self.out
                    .push_back(GatewayOutput::OrderAgain { group, number, attempt: None }.into());
            }
        }
    }

    /// A component was established: what nobody may have heard is said again, as long as it counts.
    pub(super) fn say_tasks_again(&mut self) {
        let memory_groups_wait = self.memory_groups.is_some();
        for group in self.groups.values_mut() {
            if memory_groups_wait && group.lives_in_memory() {
                continue;
            }
            let Some((ReadAttempt { key, tries }, attempt)) = group.task() else { continue };
            let maker = (self.here.node, attempt.0);
            let read = self.calls.outside(key);
            if read.is_some_and(|read| read.is_made_by(maker, tries)) {
                group.say_task_again(&mut self.out);
            } else {
                group.drop_task();
            }
        }
    }

    /// Who says what came of a read: the member under the try that the group knows.
    pub(super) fn server_of(&self, target: GroupId, node: NodeId) -> Option<(NodeId, u64)> {
        let table = self.groups.get(target).map(Group::table)?;
        Some((node, table.attempt(node)?.0))
    }
}
