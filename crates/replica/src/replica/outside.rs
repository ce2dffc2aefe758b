//! Calls to servers outside of the domain, as far as this node has a part in them.
//!
//! What it is not: what a call is for all nodes, which is [`crate::calls::outside`]. Invariants: a
//! try of a call is begun once in a boot; what came of it is said until a majority has heard it.

use super::{Replica, disk};
use crate::calls::nested::{CallRefusal, NestedCall};
use crate::calls::outside::{Copy, OutsideConfig, OutsideReport};
use crate::calls::refusal;
use crate::group::Group;
use crate::messages::envelope::{Envelope, RequestEnvelope};
use crate::output::{Event, GatewayOutput, OrderOutput, Output};
use crate::words::group_map::GroupMap;
use crate::words::ids::{CallKey, GroupId, RequestNumber};
use alloc::collections::BTreeMap;
use quorba_base::policy::OnDoubt;
use quorba_base::{NodeId, canary};

/// What this node has to do with calls to the outside.
#[derive(Default)]
pub(super) struct Part {
    /// Calls that this node makes, or has made: this node alone may have heard what came of them.
    making: BTreeMap<CallKey, Making>,
    /// Requests of this node's gateway that are delivered and wait for what comes of a call.
    waiting: BTreeMap<CallKey, (GroupId, RequestNumber)>,
    /// The servers outside: those of every domain, and those of the catalog.
    servers: GroupMap<OutsideConfig>,
}

impl Part {
    /// `servers`: those that are in no catalog.
    pub(super) fn new(servers: GroupMap<OutsideConfig>) -> Self {
        Self { servers, ..Self::default() }
    }

    /// There is such a server from here on, or it is another one.
    pub(super) fn define(&mut self, id: GroupId, server: OutsideConfig) {
        self.servers.insert(id, server);
    }

    /// There is no such server any more. No group calls it, so nobody waits for it.
    pub(super) fn forget(&mut self, id: GroupId) {
        self.servers.remove(id);
    }

    /// A request of this node's gateway waits for what comes of a call.
    pub(super) fn wait(&mut self, key: CallKey, request: (GroupId, RequestNumber)) {
        self.waiting.insert(key, request);
    }

    pub(super) fn wait_no_more(&mut self, key: CallKey) {
        self.waiting.remove(&key);
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = (CallKey, (GroupId, RequestNumber))> + '_ {
        self.waiting.iter().map(|(key, request)| (*key, *request))
    }

    /// A copy of a call is delivered. A caller has one call open at a time, and makes the next one
    /// when some replica of it was answered: by then a majority has heard what came of the last.
    fn forget_before(&mut self, call: CallKey) {
        let place = |key: &CallKey| (key.during.count, key.number);
        self.making.retain(|key, making| {
            key.caller != call.caller || place(key) >= place(&call) || making.report.is_none()
        });
    }
}

struct Making {
    target: GroupId,
    tries: u32,
    report: Option<OutsideReport>,
}

impl Replica {
    /// How the server outside that goes by this number is called; none if a group does.
    pub(super) fn outside(&self, target: GroupId) -> Option<OutsideConfig> {
        self.outside.servers.get(target).copied()
    }

    /// Whether the number stands for a server outside.
    #[must_use]
    pub fn is_outside(&self, target: GroupId) -> bool {
        self.outside(target).is_some()
    }

    /// A copy of a call is delivered, which counts. It goes on to no group.
    pub(super) fn deliver_outside(
        &mut self,
        by: (NodeId, u64),
        request: &RequestEnvelope,
        call: NestedCall,
        config: OutsideConfig,
    ) -> bool {
        let (key, target) = (call.key, request.group);
        let lineage = &self.lineage;
        let is_present = |maker: (NodeId, u64)| {
            lineage.as_ref().is_some_and(|lineage| lineage.members.contains(&maker))
        };
        self.outside.forget_before(key);
        let Some(outside) = self.calls.outside(key) else { return false };
        let me = (self.here.node, self.here.incarnation);
        match outside.deliver(by, is_present, config.on_doubt) {
            Copy::MadeBy(maker, tries) => {
                if by == me {
                    self.outside.waiting.insert(key, (target, request.number));
                }
                let making = self.outside.making.get(&key).map(|making| making.tries);
                if maker == me && making != Some(tries) && self.is_primary() {
                    let making = Making { target, tries, report: None };
                    self.outside.making.insert(key, making);
                    self.out.push_back(GatewayOutput::CallOutside { target, key, tries }.into());
                }
            }
            Copy::Ended(what) => {
                self.outside.waiting.remove(&key);
                if by == me {
                    let giop = match what {
                        Ok(reply) => Some(reply),
                        Err(why) => refusal::outside_failed(&request.giop, why),
                    };
                    let number = request.number;
                    self.out.push_back(GatewayOutput::Reply { group: target, number, giop }.into());
                    self.await_disk(key.caller, disk::Awaited::Outside(target, number));
                }
            }
        }
        false
    }

    /// What came of a try of a call that [`GatewayOutput::CallOutside`] asked for.
    pub fn handle_called_outside(&mut self, key: CallKey, tries: u32, report: OutsideReport) {
        let Some(making) = self.outside.making.get_mut(&key) else { return };
        if making.tries == tries && making.report.is_none() {
            making.report = Some(report);
            let payload = making.told(key);
            self.out.extend(payload.map(OrderOutput::Submit).map(Output::from));
        }
    }

    /// Somebody says what came of a call.
    pub(super) fn deliver_report(
        &mut self,
        by: (NodeId, u64),
        (target, key): (GroupId, CallKey),
        tries: u32,
        report: &OutsideReport,
    ) {
        let me = (self.here.node, self.here.incarnation);
        let is_this = |making: &Making| by == me && making.tries == tries;
        if *report == OutsideReport::NotBegun && self.outside.making.get(&key).is_some_and(is_this)
        {
            // Whoever is to make it now, this node has not.
            self.outside.making.remove(&key);
        }
        let is_read = self.calls.spot(key).is_some();
        let (rule, by) = match self.outside(target) {
            Some(config) if !is_read => (config.on_doubt, by),
            None if is_read => {
                let Some(by) = self.server_of(target, by.0) else { return };
                (OnDoubt::Fail, by)
            }
            _ => return,
        };
        let Some(outside) = self.calls.outside(key) else { return };
        if !outside.end(by, tries, report, rule) {
            return;
        }
        if let Some(group) = self.groups.get_mut(target).filter(|_| is_read) {
            group.need_not_serve(key);
        }
        if let OutsideReport::Failed(why) = report {
            let (caller, during, why) = (key.caller, key.during.count, *why);
            let refused = CallRefusal::Cycle;
            self.out.push_back(Output::Event(if is_read {
                Event::CallRefused { caller, target, during, why: refused }
            } else {
                Event::OutsideFailed { caller, target, during, why }
            }));
        }
        if let Some((group, number)) = self.outside.waiting.remove(&key) {
            match report {
                OutsideReport::Reply(reply) if canary!(OutsideAnswersEarly) => {
                    let giop = Some(reply.clone());
                    self.out.push_back(GatewayOutput::Reply { group, number, giop }.into());
                }
                _ => {
                    let attempt = None;
                    self.out.push_back(GatewayOutput::OrderAgain { group, number, attempt }.into());
                }
            }
        }
    }

    /// A view has become a primary component: everything that waits is ordered anew, and what
    /// nobody may have heard is said again.
    pub(super) fn say_reports_again(&mut self) {
        self.outside.waiting.clear();
        let (memory_groups_wait, groups) = (self.memory_groups.is_some(), &self.groups);
        // What groups that wait have called is said when they go on.
        let waits = |key: &CallKey| {
            let caller = groups.get(key.caller);
            memory_groups_wait && caller.is_some_and(Group::lives_in_memory)
        };
        let (calls, me) = (&mut self.calls, (self.here.node, self.here.incarnation));
        self.outside.making.retain(|key, making| {
            let is_made = calls.outside(*key).is_some_and(|call| call.is_made_by(me, making.tries));
            waits(key) || is_made
        });
        let made = self.outside.making.iter().filter(|(key, _)| !waits(key));
        let told = made.filter_map(|(key, making)| making.told(*key));
        self.out.extend(told.map(OrderOutput::Submit).map(Output::from));
        self.say_tasks_again();
    }
}

impl Making {
    fn told(&self, key: CallKey) -> Option<bytes::Bytes> {
        let (group, tries) = (self.target, self.tries);
        let report = self.report.clone()?;
        Some(Envelope::Outside { group, key, tries, report }.encode())
    }
}
