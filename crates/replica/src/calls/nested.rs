//! Calls that replicated servers make: which are known, which wait for which, and which are
//! refused.
//!
//! Every member that executes a request makes the same calls in it, so a call is named by the
//! request and a count ([`CallKey`]), and the group that is called executes each name once. What is
//! decided here is decided where a call is delivered, at all nodes alike, whether or not they have
//! a member of either group:
//!
//! - a call is *void* if the try that brought its member in is not the one that the group knows: it
//!   may stem from a request that the group was never delivered;
//! - a new call is refused if nobody could execute it, or if it would wait for the request in which
//!   it is made. The refusal is remembered like a reply, for the members that make the call later;
//! - but one that changes nothing is served as reentrant reads while the request waits
//!   ([`crate::calls::reentrant`]).
//!
//! A group executes one request at a time, so a call that is delivered behind a request that waits
//! has certainly not been executed. The request in which a new call is made has certainly not ended
//! either. From there on [`Calls::blocked_by`] goes backwards: whose last call is behind a request
//! that waits, waits too. A call of one of these groups closes a cycle; the last call of every
//! cycle is found, because all others of it were delivered before, and no call is refused that
//! could have been executed.
//!
//! What it is not: it executes and keeps no reply, which is the retention table's business.
//! Invariants: a function of what was delivered; as long as any member of the caller may make a
//! call again, whether it was refused, and its reply, are known.

use crate::calls::outside::{OUTSIDE_BYTES_MAX, OUTSIDE_REPLY_BYTES_MAX, Outside};
use crate::calls::reentrant::{REENTRANT_REPLY_BYTES_MAX, Spot};
use crate::words::history::History;
use crate::words::ids::{Attempt, CallKey, GroupId, put_call, take_call};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::BTreeMap;
use quorba_base::{NodeId, canary};

/// The most calls in one request.
pub(crate) const CALLS_PER_REQUEST_MAX: u32 = 256;
/// The most calls that are known of all groups together; the tables of a domain have to fit into
/// one message of any order.
const KNOWN_MAX: usize = 16_384;
/// After so many new calls of a group its members say what they will not execute again.
const FLOOR_EVERY: u64 = 64;
/// The least that a caller takes: its id, what it has forgotten, calls made, flags and two counts.
const CALLER_BYTES: usize = 2 + 8 + 8 + 1 + 4 + 4;
/// Bytes of a call that is known.
const KNOWN_BYTES: usize = 29;
/// Stands where a refusal would, for a call to the outside.
const OUTSIDE: u8 = u8::MAX;
/// And for a read that is served beside the request that it would wait for.
const REENTRANT: u8 = u8::MAX - 1;

/// A call of a replicated server, on its way to the group that it calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NestedCall {
    /// Its name.
    pub key: CallKey,
    /// The try that brought the calling member in.
    pub attempt: Attempt,
    /// Of what is asked for; members that agree ask for the same.
    pub digest: u64,
}

impl NestedCall {
    pub(crate) fn encode(&self, w: &mut Writer) {
        put_call(w, &self.key);
        w.u64(self.attempt.0);
        w.u64(self.digest);
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let key = take_call(r)?;
        Ok(Self { key, attempt: Attempt(r.u64("attempt")?), digest: r.u64("call digest")? })
    }
}

/// Why a call is not executed, at any member and at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallRefusal {
    /// It would wait for the request in which it is made.
    Cycle,
    /// No member of the group that is called was in.
    NoMember,
    /// The request has made more calls than a request may.
    TooMany,
    /// Too many replies from outside of the domain are remembered.
    NoRoom,
}

impl CallRefusal {
    const ALL: [Self; 4] = [Self::Cycle, Self::NoMember, Self::TooMany, Self::NoRoom];

    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Cycle => "it would wait for the request in which it is made",
            Self::NoMember => "no member of the group that is called is in",
            Self::TooMany => "the request has made too many calls",
            Self::NoRoom => "too many replies from outside are remembered",
        }
    }
}

/// How many calls a group has made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CallFigures {
    /// Different ones that were delivered while this node looked on.
    pub made: u64,
    /// Of these, refused.
    pub refused: u64,
    /// Calls with which a member asked for something else than another one.
    pub differing: u64,
    /// Calls outside of any request, or of members that do not count, at this node.
    pub void: u64,
}

/// What a delivered call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// To be executed. `floors`: the caller's members are to say what they are done with.
    New { floors: bool },
    /// Delivered before. `differs`: it asks for something else than then.
    Known { differs: bool },
    /// It is refused, now or since it was delivered first.
    Refused { why: CallRefusal, first: bool },
    /// What became of it is forgotten: its member is too far behind.
    TooLate,
}

/// What a call is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Callee {
    /// A group.
    Group {
        /// The place that the call gets in its order.
        position: u64,
        /// Somebody there can execute it.
        is_served: bool,
        /// It changes nothing, and one member can execute it wherever it stands.
        is_read: bool,
    },
    /// A server outside of the domain.
    Outside {
        /// The largest reply that it may give.
        reply_bytes_max: usize,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Known {
    digest: u64,
    refused: Option<CallRefusal>,
    /// It goes to the outside, or beside.
    outside: Option<Outside>,
    /// It is a read, served where its group waits.
    reentrant: Option<Spot>,
}

/// The last call of a group's newest request, if it may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wait {
    target: GroupId,
    /// Its place among the requests of that group.
    position: u64,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Caller {
    known: BTreeMap<(History, u32), Known>,
    /// The last request in which there was a call.
    newest: Option<History>,
    wait: Option<Wait>,
    /// Nothing is known of calls in requests before this one, and nobody may make them.
    forgotten_below: u64,
    /// New calls so far.
    made: u64,
    floors: BTreeMap<NodeId, (Attempt, u64)>,
}

/// See the module's text.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Calls {
    callers: BTreeMap<GroupId, Caller>,
}

impl Calls {
    /// A call is delivered.
    pub(crate) fn deliver(
        &mut self,
        call: &NestedCall,
        target: GroupId,
        callee: Callee,
    ) -> Verdict {
        let CallKey { caller: id, during, number } = call.key;
        let caller = self.callers.entry(id).or_default();
        if during.count < caller.forgotten_below {
            return Verdict::TooLate;
        }
        if number > CALLS_PER_REQUEST_MAX {
            return Verdict::Refused { why: CallRefusal::TooMany, first: false };
        }
        if let Some(known) = caller.known.get(&(during, number)) {
            return match known.refused {
                Some(why) => Verdict::Refused { why, first: false },
                None => Verdict::Known { differs: known.digest != call.digest },
            };
        }
        let is_newest = caller.newest.is_none_or(|newest| newest <= during);
        let closes = is_newest && self.blocked_by(id, during.count).contains_key(&target);
        let spot = closes.then(|| self.spot_of(target, &call.key)).flatten();
        let room = self.room_for(callee);
        let (refused, wait, outside) = match callee {
            Callee::Group { is_served: true, is_read: true, .. } if spot.is_some() => {
                let is_room = room >= REENTRANT_REPLY_BYTES_MAX;
                let refused = (!is_room).then_some(CallRefusal::NoRoom);
                (refused, None, is_room.then_some(Outside::NEW))
            }
            Callee::Group { .. } if closes && !canary!(CyclesStay) => {
                (Some(CallRefusal::Cycle), None, None)
            }
            Callee::Group { is_served: false, .. } => (Some(CallRefusal::NoMember), None, None),
            Callee::Group { position, .. } => (None, Some(Wait { target, position }), None),
            Callee::Outside { reply_bytes_max } if room >= reply_bytes_max => {
                (None, None, Some(Outside::NEW))
            }
            Callee::Outside { .. } => (Some(CallRefusal::NoRoom), None, None),
        };
        let reentrant = spot.filter(|_| outside.is_some());
        let caller = self.callers.entry(id).or_default();
        if is_newest {
            (caller.newest, caller.wait) = (Some(during), wait);
        }
        let known = Known { digest: call.digest, refused, outside, reentrant };
        caller.known.insert((during, number), known);
        caller.made += 1;
        let floors = caller.made.is_multiple_of(FLOOR_EVERY) || room < OUTSIDE_BYTES_MAX / 4 * 3;
        self.make_room();
        match refused {
            Some(why) => Verdict::Refused { why, first: true },
            None => Verdict::New { floors },
        }
    }

    /// Bytes of replies from outside that can be remembered beside those that are. Nothing is
    /// forgotten for more: who may make a call again must hear what was heard then.
    fn room_for(&self, callee: Callee) -> usize {
        let most = match callee {
            Callee::Outside { reply_bytes_max } => reply_bytes_max,
            // Of whom the open calls are is not known here.
            Callee::Group { is_read: true, .. } => OUTSIDE_REPLY_BYTES_MAX,
            Callee::Group { .. } => return OUTSIDE_BYTES_MAX,
        };
        let known = self.callers.values().flat_map(|caller| caller.known.values());
        let bytes = known.filter_map(|known| {
            let most = if known.reentrant.is_some() { REENTRANT_REPLY_BYTES_MAX } else { most };
            Some(known.outside.as_ref()?.bytes(most))
        });
        OUTSIDE_BYTES_MAX.saturating_sub(bytes.sum())
    }

    /// Where a group stands that waits: its last call, which closed no cycle before this one did.
    fn spot_of(&self, target: GroupId, closing: &CallKey) -> Option<Spot> {
        if target == closing.caller {
            let (during, number) = (closing.during, closing.number);
            return Some(Spot { group: target, during, number });
        }
        let (during, number) = *self.callers.get(&target)?.known.keys().next_back()?;
        Some(Spot { group: target, during, number })
    }

    /// Whether it is known to be refused.
    pub(crate) fn is_refused(&self, key: CallKey) -> bool {
        let caller = self.callers.get(&key.caller);
        let known = caller.and_then(|caller| caller.known.get(&(key.during, key.number)));
        known.is_some_and(|known| known.refused.is_some())
    }

    /// Whether the last that is known of its group is that it stands there.
    pub(crate) fn is_at(&self, spot: Spot) -> bool {
        let last = self.callers.get(&spot.group).and_then(|caller| caller.known.keys().next_back());
        last == Some(&(spot.during, spot.number))
    }

    /// Where a read is served, if it closed a cycle.
    pub(crate) fn spot(&self, key: CallKey) -> Option<Spot> {
        let caller = self.callers.get(&key.caller)?;
        caller.known.get(&(key.during, key.number))?.reentrant
    }

    /// What is known of a call to the outside.
    pub(crate) fn outside(&mut self, key: CallKey) -> Option<&mut Outside> {
        let caller = self.callers.get_mut(&key.caller)?;
        caller.known.get_mut(&(key.during, key.number))?.outside.as_mut()
    }

    /// The groups that cannot go on before request `count` of `group` has ended, each with the
    /// request that waits.
    fn blocked_by(&self, group: GroupId, count: u64) -> BTreeMap<GroupId, u64> {
        let mut blocked = BTreeMap::from([(group, count)]);
        loop {
            let next = self.callers.iter().find_map(|(id, caller)| {
                let (newest, wait) = (caller.newest?, caller.wait?);
                let since = blocked.get(&wait.target)?;
                let waits = !blocked.contains_key(id) && wait.position >= *since;
                waits.then_some((*id, newest.count))
            });
            let Some((id, count)) = next else { return blocked };
            blocked.insert(id, count);
        }
    }

    /// The oldest request of a group whose calls are known.
    pub(crate) fn forgotten_below(&self, caller: GroupId) -> u64 {
        self.callers.get(&caller).map_or(0, |caller| caller.forgotten_below)
    }

    /// A member says that it will not execute again what was delivered up to `up_to`. `members`:
    /// all that are in or join, with their tries.
    pub(crate) fn floor(
        &mut self,
        caller: GroupId,
        (node, attempt, up_to): (NodeId, Attempt, u64),
        members: &[(NodeId, Attempt)],
    ) {
        let Some(caller) = self.callers.get_mut(&caller) else { return };
        caller.floors.insert(node, (attempt, up_to));
        caller.floors.retain(|node, (attempt, _)| members.contains(&(*node, *attempt)));
        let floor = |(node, _): &(NodeId, Attempt)| caller.floors.get(node).map(|(_, at)| *at);
        let lowest = members.iter().map(floor).min().flatten();
        if let Some(lowest) = lowest {
            caller.forget_below(lowest.saturating_add(1));
        }
    }

    /// A group begins anew: its requests are counted from the first again.
    pub(crate) fn reset(&mut self, caller: GroupId) {
        self.callers.remove(&caller);
    }

    /// Forgets the oldest request of whoever has most to remember.
    fn make_room(&mut self) {
        while self.callers.values().map(|caller| caller.known.len()).sum::<usize>() > KNOWN_MAX {
            let oldest = |caller: &Caller| caller.known.keys().next().map(|(during, _)| *during);
            let is_over = |caller: &&mut Caller| oldest(caller) < caller.newest;
            let callers = self.callers.values_mut().filter(is_over);
            let Some(most) = callers.max_by_key(|caller| caller.known.len()) else { return };
            let below = oldest(most).map_or(0, |during| during.count + 1);
            most.forget_below(below);
        }
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u32(self.callers.len() as u32);
        for (id, caller) in &self.callers {
            w.u64(id.0);
            caller.encode(w);
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let mut callers = BTreeMap::new();
        for _ in 0..r.count(CALLER_BYTES, "caller count")? {
            let id = GroupId(r.u64("caller")?);
            callers.insert(id, Caller::decode(r)?);
        }
        Ok(Self { callers })
    }
}

impl Caller {
    fn forget_below(&mut self, below: u64) {
        self.forgotten_below = self.forgotten_below.max(below);
        let first = (History { count: self.forgotten_below, digest: 0 }, 0);
        self.known = self.known.split_off(&first);
    }

    fn encode(&self, w: &mut Writer) {
        w.u64(self.forgotten_below);
        w.u64(self.made);
        w.u8(u8::from(self.newest.is_some()) | u8::from(self.wait.is_some()) << 1);
        if let Some(newest) = self.newest {
            w.u64(newest.count);
            w.u64(newest.digest);
        }
        if let Some(wait) = self.wait {
            w.u64(wait.target.0);
            w.u64(wait.position);
        }
        w.u32(self.floors.len() as u32);
        for (node, (attempt, floor)) in &self.floors {
            w.node(*node);
            w.u64(attempt.0);
            w.u64(*floor);
        }
        w.u32(self.known.len() as u32);
        for ((during, number), known) in &self.known {
            w.u64(during.count);
            w.u64(during.digest);
            w.u32(*number);
            w.u64(known.digest);
            let code = CallRefusal::ALL.iter().position(|why| Some(*why) == known.refused);
            let code = code.map_or(0, |code| code as u8 + 1);
            w.u8(match (&known.outside, known.reentrant) {
                (Some(_), Some(_)) => REENTRANT,
                (Some(_), None) => OUTSIDE,
                (None, _) => code,
            });
            if let Some(spot) = known.reentrant {
                spot.encode(w);
            }
            if let Some(outside) = &known.outside {
                if canary!(OutsideRepliesStayHome) { &Outside::NEW } else { outside }.encode(w);
            }
        }
    }

    fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let (forgotten_below, made) = (r.u64("forgotten calls")?, r.u64("calls made")?);
        let flags = r.u8("caller flags")?;
        let mut caller = Self { forgotten_below, made, ..Self::default() };
        if flags & 1 != 0 {
            let count = r.u64("newest request")?;
            caller.newest = Some(History { count, digest: r.u64("newest history")? });
        }
        if flags & 2 != 0 {
            let target = GroupId(r.u64("called group")?);
            caller.wait = Some(Wait { target, position: r.u64("call position")? });
        }
        for _ in 0..r.count(17, "floor count")? {
            let node = r.node("member")?;
            let attempt = Attempt(r.u64("attempt")?);
            caller.floors.insert(node, (attempt, r.u64("floor")?));
        }
        for _ in 0..r.count(KNOWN_BYTES, "call count")? {
            let count = r.u64("request")?;
            let during = History { count, digest: r.u64("history")? };
            let number = r.u32("call number")?;
            let digest = r.u64("call digest")?;
            let invalid = r.error("refusal");
            let (refused, reentrant, outside) = match r.u8("refusal")? {
                0 => (None, None, None),
                OUTSIDE => (None, None, Some(Outside::decode(r)?)),
                REENTRANT => (None, Some(Spot::decode(r)?), Some(Outside::decode(r)?)),
                code => {
                    let why = CallRefusal::ALL.get(usize::from(code) - 1);
                    (Some(*why.ok_or(invalid)?), None, None)
                }
            };
            caller.known.insert((during, number), Known { digest, refused, outside, reentrant });
        }
        Ok(caller)
    }
}

#[cfg(test)]
mod tests;
