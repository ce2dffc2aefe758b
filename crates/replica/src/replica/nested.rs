//! Calls between groups: their names where they are made, and what they are where they are
//! delivered.
//!
//! What it is not: who waits for whom, which is [`crate::calls::nested`]. Invariant: whoever makes
//! a call gets an answer for each delivery of it at its own node: the reply, a refusal, or that it
//! is void.

use super::{Phase, Replica, disk};
use crate::calls::nested::{CallRefusal, Callee, NestedCall, Verdict};
use crate::calls::outside::OutsideConfig;
use crate::calls::refusal;
use crate::group::Group;
use crate::messages::envelope::{Envelope, RequestEnvelope};
use crate::output::{Event, GatewayOutput, Output};
use crate::table::DownReason;
use crate::words::ids::{CallKey, GroupId};
use bytes::Bytes;
use quorba_base::{Instant, NodeId, canary};
use quorba_giop::{Body, Message, padding};
use twox_hash::XxHash3_64;

/// A group that is called.
fn callee(group: &Group, is_read: bool) -> Callee {
    let table = group.table();
    let is_served = table.opened && group.takes_requests();
    Callee::Group { position: table.history.count + 1, is_served, is_read }
}

impl Replica {
    /// The local server of `caller` calls another group; `giop` is the whole message. `None`: it
    /// executes no request that counts.
    pub fn begin_call(
        &mut self,
        now: Instant,
        caller: GroupId,
        giop: &Bytes,
    ) -> Option<NestedCall> {
        let group = self.groups.get_mut(caller)?;
        let Some((during, number, attempt)) = group.begin_call() else {
            group.figures.void += 1;
            return None;
        };
        let key = CallKey { caller, during, number };
        let ignores_padding = group.ignores_padding();
        // Somebody may have waited for that.
        self.with_group(now, caller, |_, _, _| {});
        Some(NestedCall { key, attempt, digest: digest_of(giop, ignores_padding) })
    }

    /// A group has ended calls that members which are gone had answered: the replicas of those that
    /// made them are compared, for one may have heard a reply, and another one the end (seed 400876
    /// of the simulator's `calls`).
    pub(super) fn mind_callers_of(&mut self, now: Instant, group: GroupId) {
        let in_doubt = self.groups.get_mut(group).map(Group::take_callers_in_doubt);
        for (caller, during) in in_doubt.into_iter().flatten() {
            let Some(group) = self.groups.get_mut(caller) else { continue };
            group.compare_states(during.count);
            if self.is_primary() {
                self.with_group(now, caller, |_, _, _| {});
            }
        }
    }

    /// The same for all groups, whichever has changed.
    pub(super) fn mind_callers(&mut self, now: Instant) {
        let mut next = self.groups.next_id(None);
        while let Some(group) = next {
            self.mind_callers_of(now, group);
            next = self.groups.next_id(Some(group));
        }
    }

    /// The local server has its answer, or does not wait for it any more.
    pub fn end_call(&mut self, now: Instant, key: CallKey) {
        if let Some(group) = self.groups.get_mut(key.caller) {
            group.end_call(now, key.during);
        }
    }

    /// Whether a message goes on to its group; if it is a call, with which group calls, and which
    /// of its requests nobody executes again.
    pub(super) fn admit(
        &mut self,
        by: (NodeId, u64),
        envelope: &Envelope,
    ) -> Option<Option<(GroupId, u64)>> {
        let Envelope::Request(request) = envelope else { return Some(None) };
        let Some(call) = request.nested else { return Some(None) };
        let caller = call.key.caller;
        let goes_on = self.admit_call(by, request, call);
        goes_on.then(|| Some((caller, self.calls.forgotten_below(caller))))
    }

    /// A call is delivered; gives whether it goes on to the group that is called.
    fn admit_call(
        &mut self,
        by: (NodeId, u64),
        request: &RequestEnvelope,
        call: NestedCall,
    ) -> bool {
        let (CallKey { caller, during, .. }, target) = (call.key, request.group);
        let (origin, _) = by;
        let outside = self.outside(target);
        let callee = self.callee_of(request, outside);
        let source = self.groups.get(caller).filter(|group| {
            let table = group.table();
            group.may_call(target)
                && (table.attempt(origin) == Some(call.attempt) || canary!(VoidCallsCount))
                && during.count <= table.history.count
        });
        let (Some(callee), Some(_)) = (callee, source) else {
            if !self.hold_call(by, request, call) {
                self.answer_call(by, request, refusal::no_call(&request.giop));
            }
            return false;
        };
        let verdict = self.calls.deliver(&call, target, callee);
        let in_primary = matches!(self.phase, Phase::Primary);
        let group = &mut self.groups[caller];
        match verdict {
            Verdict::New { floors } => {
                group.figures.made += 1;
                if floors && in_primary {
                    group.say_floor(&mut self.out);
                }
                self.goes_on(by, request, call, outside)
            }
            Verdict::Known { differs } => {
                if differs {
                    group.figures.differing += 1;
                    let during = during.count;
                    let event = Event::CallDiffers { caller, node: origin, during };
                    self.out.push_back(Output::Event(event));
                }
                self.goes_on(by, request, call, outside)
            }
            Verdict::Refused { why, first } => {
                if first {
                    group.figures.made += 1;
                    group.figures.refused += 1;
                    let refused = call.key;
                    if why == CallRefusal::NoRoom && in_primary {
                        group.say_floor(&mut self.out);
                    }
                    let during = during.count;
                    let event = Event::CallRefused { caller, target, during, why };
                    self.out.push_back(Output::Event(event));
                    if let Some(callee) = self.groups.get_mut(target) {
                        callee.mind_refused(|key| key == refused);
                    }
                }
                self.answer_call(by, request, refusal::call_refused(&request.giop, why));
                false
            }
            Verdict::TooLate => {
                if in_primary && origin == self.here.node {
                    let reason = DownReason::CallsForgotten;
                    group.lost(Some(call.attempt), reason, &mut self.out);
                }
                self.answer_call(by, request, refusal::no_call(&request.giop));
                false
            }
        }
    }

    fn callee_of(
        &self,
        request: &RequestEnvelope,
        outside: Option<OutsideConfig>,
    ) -> Option<Callee> {
        if let Some(OutsideConfig { reply_bytes_max, .. }) = outside {
            return Some(Callee::Outside { reply_bytes_max });
        }
        let group = self.groups.get(request.group)?;
        let is_read = self.config.serves_reentrant_reads && group.is_read(&request.giop);
        Some(callee(group, is_read))
    }

    /// Whether a call goes on to the group that is called, now that it counts.
    fn goes_on(
        &mut self,
        by: (NodeId, u64),
        request: &RequestEnvelope,
        call: NestedCall,
        outside: Option<OutsideConfig>,
    ) -> bool {
        match (self.calls.spot(call.key), outside) {
            (Some(spot), _) => {
                self.deliver_reentrant(by, request, call.key, spot);
                false
            }
            (None, Some(outside)) => self.deliver_outside(by, request, call, outside),
            (None, None) => true,
        }
    }

    /// What this node says to its own server.
    fn answer_call(&mut self, by: (NodeId, u64), request: &RequestEnvelope, giop: Option<Bytes>) {
        if by == (self.here.node, self.here.incarnation) {
            let (group, number) = (request.group, request.number);
            self.out.push_back(GatewayOutput::Reply { group, number, giop }.into());
            self.await_disk(group, disk::Awaited::Request(number));
        }
    }
}

/// Of what a call asks for: the object, the operation, and the arguments. Contexts and the
/// request's id are the ORB's own.
fn digest_of(giop: &Bytes, ignores_padding: bool) -> u64 {
    let Ok(message) = Message::from_bytes(giop.clone()) else { return 0 };
    let Ok(Body::Request(request)) = message.parse() else { return 0 };
    let (octets, from) = (request.message_bytes(), request.body_offset());
    let body = match ignores_padding {
        true => XxHash3_64::oneshot(&padding::cleared(octets, from, message.endian())),
        false => XxHash3_64::oneshot(octets.get(from..).unwrap_or_default()),
    };
    let key = request.object_key().unwrap_or_default();
    let parts = [XxHash3_64::oneshot(key), XxHash3_64::oneshot(request.operation()), body];
    let mut bytes = [0; 24];
    for (chunk, part) in bytes.chunks_exact_mut(8).zip(parts) {
        chunk.copy_from_slice(&part.to_le_bytes());
    }
    XxHash3_64::oneshot(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_giop::build::{self, RequestHead};
    use quorba_giop::{Endian, ResponseFlags, Version};

    #[test]
    fn padding_behind_a_text_counts_unless_it_is_ignored() {
        let digest = |fill: u8, number: u8, ignores_padding| {
            let head = RequestHead {
                version: Version::V1_2,
                endian: Endian::Little,
                request_id: 7,
                response_flags: ResponseFlags::WithTarget,
                object_key: b"o",
                operation: b"do",
                contexts: &[],
            };
            let body = [2, 0, 0, 0, b'a', 0, fill, fill, number, 0, 0, 0];
            let request = build::request(&head, |out| out.write_raw(&body));
            digest_of(request.bytes(), ignores_padding)
        };
        assert_ne!(digest(1, 5, false), digest(2, 5, false));
        assert_eq!(digest(1, 5, true), digest(2, 5, true));
        assert_ne!(digest(1, 5, true), digest(1, 6, true));
    }
}
