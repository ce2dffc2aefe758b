//! Which requests were executed, and with what reply: promise 2.
//!
//! Part of the replicated state: all members that are in agree on which requests it knows, and
//! it travels with the state to a member that joins. Invariant: an entry goes only when nobody
//! may ask again: its gateway said so, its gateway's boot is over, its client's time is up, or no
//! member of the group that called can execute the request any more in which it did. Gateways may
//! ask again when a client's time is up; what they asked is known then by its number
//! ([`crate::words::submitted`]), and is not executed.
//! So the table is bounded by what it takes in: so many entries, of which each client and address
//! has a share ([`crate::words::holders`]), and no new ones of clients as long
//! as the group knows, by ordered messages, that a member has too many bytes of replies.

use crate::words::history::History;
use crate::words::holders::Holders;
use crate::words::ids::{
    CallKey, GatewayKey, GroupId, RequestKey, RequestNumber, put_key, take_key,
};
use crate::words::released::Released;
use crate::words::submitted::Submitted;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::btree_map::{self, Entry as MapEntry};
use alloc::collections::{BTreeMap, BTreeSet, btree_set};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{NodeId, canary};

/// Gateways whose requests wait for one execution; a client that repeats itself at more gateways
/// than this while its first call still runs gets the reply at the first ones.
const WAITERS_MAX: usize = 16;
/// Entries of forgotten tables that are freed at a time, and tables that wait for it.
const FREED: usize = 64;
const GRAVES_MAX: usize = 4;
/// About what an entry takes in a state, without its reply.
const ENTRY_BYTES: usize = 48;

/// What is known of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// Queued or being executed.
    Executing {
        /// Who wants the reply.
        waiters: Vec<GatewayKey>,
    },
    /// Executed; `reply` is `None` for a oneway.
    Done {
        /// The whole GIOP message.
        reply: Option<Bytes>,
    },
}

/// A request, as the table has it.
struct Known {
    entry: Entry,
    /// Under which [`Retention::expiries`] has it; of clients' requests only.
    expiry: u64,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Retention {
    entries: BTreeMap<RequestKey, Known>,
    /// When client entries may go, on the group's ordered clock.
    expiries: BTreeSet<(u64, RequestKey)>,
    /// Who waits for requests that still run although their time is over. What is forgotten must
    /// depend on the order alone, never on how fast a member is.
    overdue: BTreeMap<RequestKey, Vec<GatewayKey>>,
    /// What gateways may have ordered again, of what clients have named.
    submitted: Submitted,
    reply_bytes: usize,
    holders: Holders,
    graves: Vec<Grave>,
}

/// What is left of a table that was forgotten as a whole.
struct Grave {
    entries: btree_map::IntoIter<RequestKey, Known>,
    expiries: btree_set::IntoIter<(u64, RequestKey)>,
}

/// What a retention table knew at some position of the order.
pub(crate) struct Frozen {
    requests: Vec<(RequestKey, u64, Option<Bytes>)>,
    submitted: Submitted,
}

impl Frozen {
    /// Replies to these are not known to be right yet: what is known when it is written counts.
    pub(crate) fn forget_replies(&mut self, is_doubtful: impl Fn(&RequestKey) -> bool) {
        for (key, _, reply) in &mut self.requests {
            if is_doubtful(key) {
                *reply = None;
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }
}

/// What to do with a delivered request.
pub(crate) enum Admission {
    /// It is new: execute it.
    Execute,
    /// It is being executed; the gateway has been noted.
    Wait,
    /// It was executed.
    Answer(Option<Bytes>),
    /// No room to remember it.
    Refuse,
    /// Its name is that of another request.
    Taken,
    /// It was given to the group before, which has forgotten since what came of it.
    Forgotten,
}

impl Retention {
    /// What is known from now on. What was known is freed by and by ([`Self::free_some`]): a table
    /// can be so large that everybody who waits for this node would feel it.
    pub(crate) fn replace_by(&mut self, new: Self) {
        let old = core::mem::replace(self, new);
        self.graves = old.graves;
        let (entries, expiries) = (old.entries.into_iter(), old.expiries.into_iter());
        if self.graves.len() < GRAVES_MAX && entries.len() > 0 {
            self.graves.push(Grave { entries, expiries });
        }
    }

    /// Frees a little of what was forgotten.
    pub(crate) fn free_some(&mut self) {
        let Some(grave) = self.graves.last_mut() else { return };
        let entries = grave.entries.by_ref().take(FREED).count();
        if entries + grave.expiries.by_ref().take(FREED).count() == 0 {
            self.graves.pop();
        }
    }

    /// Whether it was delivered, and is not forgotten.
    pub(crate) fn knows(&self, key: &RequestKey) -> bool {
        self.entries.contains_key(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Requests that clients have named, and that gateways may have ordered again.
    pub(crate) fn unreleased(&self) -> usize {
        self.submitted.len()
    }

    pub(crate) fn reply_bytes(&self) -> usize {
        self.reply_bytes
    }

    /// Whether a member with a bound of so many bytes should say that it has too many, given what
    /// it `said` last: with some distance in between, so that it is not said all the time.
    pub(crate) fn is_full(&self, bytes_max: usize, said: bool) -> bool {
        self.reply_bytes > if said { bytes_max / 4 * 3 } else { bytes_max }
    }

    /// Looks a request up, and enters it if it is new. `expiry` counts for client keys only;
    /// `full`: the group takes no new ones of clients.
    pub(crate) fn admit(
        &mut self,
        key: &RequestKey,
        waiter: GatewayKey,
        expiry: u64,
        full: bool,
    ) -> Admission {
        let is_named = matches!(key, RequestKey::Client { .. });
        let comes_again = is_named && self.submitted.contains(waiter);
        let known = match self.entries.entry(key.clone()) {
            MapEntry::Occupied(known) if !known.key().is_repeated_by(key) => {
                return if comes_again { Admission::Forgotten } else { Admission::Taken };
            }
            MapEntry::Occupied(known) => {
                if is_named && !comes_again {
                    if !self.submitted.has_room(waiter) {
                        return Admission::Forgotten;
                    }
                    self.submitted.add(waiter);
                }
                &mut known.into_mut().entry
            }
            MapEntry::Vacant(place) => {
                let entry = Entry::Executing { waiters: [waiter].into() };
                let RequestKey::Client { client_id, binding, .. } = key else {
                    place.insert(Known { entry, expiry });
                    return Admission::Execute;
                };
                if comes_again && !canary!(ForgetsSubmitted) {
                    return Admission::Forgotten;
                }
                let has_room = self.holders.has_room(&binding.subject, client_id);
                if full || !has_room || !self.submitted.has_room(waiter) {
                    return Admission::Refuse;
                }
                self.submitted.add(waiter);
                // It is kept for longer than the message that it came in.
                let key = key.detached();
                if let RequestKey::Client { client_id, binding, .. } = &key {
                    self.holders.add(binding.subject, client_id);
                }
                self.expiries.insert((expiry, key.clone()));
                self.entries.insert(key, Known { entry, expiry });
                return Admission::Execute;
            }
        };
        match known {
            Entry::Executing { waiters } => {
                if !waiters.contains(&waiter) && waiters.len() < WAITERS_MAX {
                    waiters.push(waiter);
                }
                Admission::Wait
            }
            Entry::Done { .. } if canary!(ExecutesRepetitions) => Admission::Execute,
            Entry::Done { reply } => Admission::Answer(reply.clone()),
        }
    }

    /// Nobody waits for anything that is still to be executed: who asked is gone, or asks again.
    pub(crate) fn forget_waiters(&mut self) {
        self.overdue.values_mut().for_each(Vec::clear);
        for known in self.entries.values_mut() {
            if let Entry::Executing { waiters } = &mut known.entry {
                waiters.clear();
            }
        }
    }

    /// Records the reply; returns who waits for it.
    pub(crate) fn complete(&mut self, key: &RequestKey, reply: Option<Bytes>) -> Vec<GatewayKey> {
        if let Some(waiters) = self.overdue.remove(key) {
            return waiters;
        }
        let bytes = reply.as_ref().map_or(0, Bytes::len);
        match self.entry_mut(key) {
            Some(entry @ Entry::Executing { .. }) => {
                let done = Entry::Done { reply };
                let Entry::Executing { waiters } = core::mem::replace(entry, done) else {
                    unreachable!("just matched");
                };
                self.reply_bytes += bytes;
                waiters
            }
            // Its gateway's boot is over and the entry was dropped meanwhile.
            _ => Vec::new(),
        }
    }

    /// What was replied to `keys`, or to all requests that are known. What has been forgotten, all
    /// members have.
    pub(crate) fn replies(&self, keys: Option<&[RequestKey]>) -> Vec<(RequestKey, Option<Bytes>)> {
        let reply = |key: &RequestKey| match &self.entries.get(key)?.entry {
            Entry::Done { reply } => Some((key.clone(), reply.clone())),
            Entry::Executing { .. } => None,
        };
        match keys {
            Some(keys) => keys.iter().filter_map(reply).collect(),
            None => self.entries.keys().filter_map(reply).collect(),
        }
    }

    /// The reply to a request that is only known to have been executed.
    pub(crate) fn fill_in(&mut self, key: &RequestKey, by: Option<Bytes>) {
        if let (Some(Entry::Done { reply: reply @ None }), Some(by)) = (self.entry_mut(key), by) {
            let bytes = by.len();
            *reply = Some(by);
            self.reply_bytes += bytes;
        }
    }

    /// A request that is known is still to be executed, by whoever goes on from here.
    pub(crate) fn mark_unexecuted(&mut self, key: &RequestKey) {
        if let Some(entry @ Entry::Done { .. }) = self.entry_mut(key)
            && let Entry::Done { reply } =
                core::mem::replace(entry, Entry::Executing { waiters: Vec::new() })
        {
            self.reply_bytes -= reply.map_or(0, |reply| reply.len());
        }
    }

    /// What was kept until some time after `from` is kept as long after `to`.
    pub(crate) fn shift(&mut self, from: u64, to: u64) {
        let expiries = core::mem::take(&mut self.expiries).into_iter();
        let shifted = |expiry: u64| to.saturating_add(expiry.saturating_sub(from));
        self.expiries = expiries.map(|(expiry, key)| (shifted(expiry), key)).collect();
        self.entries.values_mut().for_each(|known| known.expiry = shifted(known.expiry));
    }

    /// Puts another reply in the place of one.
    pub(crate) fn replace(&mut self, key: &RequestKey, by: impl FnOnce(&Bytes) -> Option<Bytes>) {
        if let Some(Entry::Done { reply: Some(reply) }) = self.entry_mut(key)
            && let Some(new) = by(reply)
        {
            let (gone, come) = (reply.len(), new.len());
            *reply = new;
            self.reply_bytes = self.reply_bytes - gone + come;
        }
    }

    /// The gateway will not ask again for these requests, nor for those of earlier boots.
    pub(crate) fn release(&mut self, node: NodeId, incarnation: u64, released: &Released) {
        self.submitted.release(node, incarnation, released);
        let key = |incarnation, number| {
            RequestKey::Gateway(GatewayKey { node, incarnation, number: RequestNumber(number) })
        };
        self.remove_between(&key(0, 0), &key(incarnation, released.below.0));
        for number in &released.also {
            self.remove(&key(incarnation, number.0));
        }
    }

    /// No member of `caller` executes again what its group was delivered before request `below`.
    pub(crate) fn release_calls(&mut self, caller: GroupId, below: u64) {
        let key = |count| {
            let during = History { count, digest: 0 };
            RequestKey::Nested(CallKey { caller, during, number: 0 })
        };
        self.remove_between(&key(0), &key(below));
    }

    fn remove_between(&mut self, low: &RequestKey, high: &RequestKey) {
        // Those of one gateway are often the first of all, which takes no search.
        while let Some(first) = self.entries.first_entry().filter(|first| first.key() >= low) {
            if first.key() >= high {
                return;
            }
            let gone = first.remove();
            self.uncount(&gone.entry);
        }
        while let Some((first, _)) = self.entries.range(low..high).next() {
            let first = first.clone();
            self.remove(&first);
        }
    }

    /// Forgets client requests whose time is over at `clock`.
    pub(crate) fn expire(&mut self, clock: u64) {
        if canary!(ForgetsNothing) {
            return;
        }
        while let Some((expiry, key)) = self.expiries.first() {
            if *expiry >= clock {
                return;
            }
            let key = key.clone();
            self.expiries.pop_first();
            if let Some(Entry::Executing { waiters }) = self.entry_mut(&key) {
                let waiters = core::mem::take(waiters);
                self.overdue.insert(key.clone(), waiters);
            }
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &RequestKey) {
        if let Some((key, gone)) = self.entries.remove_entry(key) {
            self.uncount(&gone.entry);
            if let RequestKey::Client { client_id, binding, .. } = &key {
                self.holders.remove(binding.subject, client_id);
            }
        }
    }

    fn entry_mut(&mut self, key: &RequestKey) -> Option<&mut Entry> {
        self.entries.get_mut(key).map(|known| &mut known.entry)
    }

    fn uncount(&mut self, gone: &Entry) {
        if let Entry::Done { reply: Some(reply) } = gone {
            self.reply_bytes -= reply.len();
        }
    }

    /// What is known now, for a member that joins at this position of the order. Requests that
    /// are still executing are in it, because their repetitions may come behind this position.
    pub(crate) fn freeze(&self) -> Frozen {
        let known = |(key, known): (&RequestKey, &Known)| {
            let reply = match &known.entry {
                Entry::Done { reply } => reply.clone(),
                Entry::Executing { .. } => None,
            };
            (key.clone(), known.expiry, reply)
        };
        let requests = self.entries.iter().map(known).collect();
        Frozen { requests, submitted: self.submitted.clone() }
    }

    /// Encodes what was known when `frozen` was made, with the replies that came since. What was
    /// forgotten meanwhile was answered for good: only that it was executed still matters.
    pub(crate) fn encode(&self, frozen: &Frozen, writer: &mut Writer) {
        if canary!(RetentionStaysHome) {
            writer.u32(0);
            return Submitted::default().encode(writer);
        }
        // The ring waits for it: what is written has room before, and nothing is looked up twice.
        let replies =
            frozen.requests.iter().map(|(_, _, reply)| reply.as_ref().map_or(0, Bytes::len));
        writer.reserve(replies.map(|bytes| bytes + ENTRY_BYTES).sum());
        writer.u32(frozen.requests.len() as u32);
        for (key, expiry, reply) in &frozen.requests {
            let reply = reply.as_ref().or_else(|| match &self.entries.get(key)?.entry {
                Entry::Done { reply } => reply.as_ref(),
                Entry::Executing { .. } => None,
            });
            put_key(writer, key, *expiry);
            writer.u8(u8::from(reply.is_some()));
            writer.bytes(reply.map_or(&[], |reply| reply.as_ref()));
        }
        frozen.submitted.encode(writer);
    }

    /// What `reader` is made of is not kept: a whole state may stand behind it.
    pub(crate) fn decode(reader: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let (mut entries, mut expiries, mut reply_bytes) = (Vec::new(), Vec::new(), 0);
        let mut holders = Holders::default();
        for _ in 0..reader.count(14, "retention count")? {
            let (mut key, expiry) = take_key(reader)?;
            if let RequestKey::Client { client_id, binding, .. } = &mut key {
                *client_id = Bytes::copy_from_slice(client_id);
                holders.add(binding.subject, client_id);
            }
            if let Some(expiry) = expiry {
                expiries.push((expiry, key.clone()));
            }
            let some = reader.bool("reply flag")?;
            let reply = Bytes::copy_from_slice(&reader.bytes("retained reply")?);
            reply_bytes += reply.len();
            let entry = Entry::Done { reply: some.then_some(reply) };
            entries.push((key, Known { entry, expiry: expiry.unwrap_or(0) }));
        }
        // They come in order, so the trees are built from below, without a search for each.
        let (entries, expiries) = (entries.into_iter().collect(), expiries.into_iter().collect());
        let submitted = Submitted::decode(reader)?;
        Ok(Self { entries, expiries, submitted, reply_bytes, holders, ..Self::default() })
    }
}

#[cfg(test)]
mod tests;
