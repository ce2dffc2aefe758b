//! Names that clients gave to calls past the order at which processes of servers ended.
//!
//! Nobody else remembers a call that has no place in the order. So a client that waits less long
//! than two processes take to end would never be told that they do, and repeat its call: each time
//! one server more ends at it, or hangs until somebody ends it. The gateway remembers how many have
//! ended at which name, for as long as groups remember replies.
//!
//! What it is not: known to other gateways, each of which counts for itself. Invariants: few names
//! are kept, and short ones; a name counts for those only who may repeat it.

use super::Gateway;
use crate::pending::{Pending, Waiter};
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;
use quorba_base::{Instant, canary};
use quorba_replica::{Bound, FtRequest, GroupId, RequestEnd, RequestNumber};

/// So many processes may end at a call past the order before it is tried no more.
pub(super) const PROCESS_ENDS_MAX: u8 = 2;

/// Names that are kept of each group; the oldest goes first.
const NAMES_MAX: usize = 64;
/// A longer one is not kept.
const NAME_BYTES_MAX: usize = 256;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Poison {
    /// Of groups that have some, in the order in which they came.
    names: BTreeMap<GroupId, VecDeque<Name>>,
}

struct Name {
    client_id: Bytes,
    retention_id: i32,
    bound: Bound,
    /// Processes that have ended at it.
    ends: u8,
    until: Instant,
}

impl Name {
    fn is_of(&self, ft: &FtRequest) -> bool {
        self.retention_id == ft.retention_id
            && self.client_id == ft.client_id
            && self.bound.is_repeated_by(&ft.bound)
    }
}

impl Poison {
    /// One more process has ended at a call of this name; how many have.
    fn ended(&mut self, group: GroupId, ft: &FtRequest, until: Instant) -> u8 {
        let names = self.names.entry(group).or_default();
        if let Some(name) = names.iter_mut().find(|name| name.is_of(ft)) {
            name.ends = name.ends.saturating_add(1);
            name.until = until;
            return name.ends;
        }
        if ft.client_id.len() <= NAME_BYTES_MAX {
            if names.len() == NAMES_MAX {
                names.pop_front();
            }
            let client_id = Bytes::copy_from_slice(&ft.client_id);
            let FtRequest { retention_id, bound, .. } = *ft;
            names.push_back(Name { client_id, retention_id, bound, ends: 1, until });
        }
        1
    }

    /// Whether it is executed no more.
    fn has(&self, now: Instant, group: GroupId, ft: &FtRequest) -> bool {
        let names = self.names.get(&group);
        let name = names.and_then(|names| names.iter().find(|name| name.is_of(ft)));
        name.is_some_and(|name| name.ends >= PROCESS_ENDS_MAX && now < name.until)
    }

    /// Time passed.
    pub(super) fn expire(&mut self, now: Instant) {
        self.names.retain(|_, names| {
            names.retain(|name| now < name.until);
            !names.is_empty()
        });
    }

    /// How many names are kept.
    #[cfg(test)]
    pub(super) fn holdings(&self) -> usize {
        self.names.values().map(VecDeque::len).sum()
    }
}

/// The name that counts. A call that waits at the gateway is made again and again under one, and
/// what ends meanwhile need not end at it.
fn name_of(pending: &Pending) -> Option<&FtRequest> {
    pending.request.ft.as_ref().filter(|_| pending.wait.is_none())
}

/// Whether its client has gone, or has cancelled it.
pub(super) const fn is_left(pending: &Pending) -> bool {
    matches!(pending.waiter, Waiter::Gone) && !pending.is_nested()
}

impl Gateway {
    /// One more process has ended at a call past the order. Whether it is tried no more.
    pub(super) fn process_ended(&mut self, group: GroupId, number: RequestNumber) -> bool {
        if canary!(TriesForEver) {
            return false;
        }
        let now = self.now;
        let books = &mut self.groups[group];
        let until = now + books.rules.retention;
        let Some(pending) = books.book.get_mut(number) else { return false };
        pending.process_ends = pending.process_ends.saturating_add(1);
        if let Some(ft) = name_of(pending) {
            self.poison.expire(now);
            let ends = self.poison.ended(group, ft, until);
            pending.process_ends = pending.process_ends.max(ends);
        }
        pending.process_ends >= PROCESS_ENDS_MAX
    }

    /// Whether a call is to be handed to no member past the order: nobody waits for it any more, or
    /// processes have ended at it, as its client is told. It is forgotten then.
    pub(crate) fn is_needless(&mut self, group: GroupId, number: RequestNumber) -> bool {
        let Some(pending) = self.groups[group].book.get(number) else { return true };
        if is_left(pending) {
            self.forget(group, number);
            return true;
        }
        let is_poison = name_of(pending).is_some_and(|ft| self.poison.has(self.now, group, ft));
        if is_poison {
            self.tell_end(group, number, RequestEnd::EndsServers);
        }
        is_poison
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_base::Duration;

    fn named(retention_id: i32, bytes: usize) -> FtRequest {
        let client_id = Bytes::from(alloc::vec![0; bytes]);
        FtRequest { client_id, retention_id, expiration: 0, bound: Bound::default() }
    }

    #[test]
    fn few_names_are_kept_of_a_group_short_ones_and_for_their_time() {
        let (mut poison, now) = (Poison::default(), Instant::ZERO);
        let (until, [group, other]) = (now + Duration::from_secs(1), [0, 1].map(GroupId));
        assert_eq!(poison.ended(other, &named(999, 8), until), 1);
        for retention_id in 0..1000 {
            assert_eq!(poison.ended(group, &named(retention_id, 8), until), 1);
        }
        assert_eq!(poison.holdings(), NAMES_MAX + 1);
        assert_eq!(poison.ended(group, &named(999, 8), until), 2);
        assert!(poison.has(now, group, &named(999, 8)));
        assert!(!poison.has(now, other, &named(999, 8)) && !poison.has(now, group, &named(998, 8)));
        let long = named(1, NAME_BYTES_MAX + 1);
        assert_eq!([1; 2], [(); 2].map(|()| poison.ended(group, &long, until)));
        assert!(!poison.has(until, group, &named(999, 8)));
        poison.expire(until);
        assert_eq!(poison.holdings(), 0);
    }

    #[test]
    fn a_strangers_call_under_the_same_name_is_another_one() {
        let (mut poison, now, group) = (Poison::default(), Instant::ZERO, GroupId(0));
        let own = named(1, 8);
        let of = |subject, body| Bound { subject: [subject; 16], call: [0; 16], body: [body; 16] };
        for _ in 0..PROCESS_ENDS_MAX {
            poison.ended(group, &own, now + Duration::from_secs(1));
        }
        let marshalled_anew = FtRequest { bound: of(0, 1), ..own.clone() };
        assert!(poison.has(now, group, &marshalled_anew));
        assert!(!poison.has(now, group, &FtRequest { bound: of(1, 1), ..own }));
    }
}
