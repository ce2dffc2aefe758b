//! Which channels of a service have something to do, so that a call, a push or a moment of time
//! looks at those only, and not at all channels.
//!
//! What it is not: what they do; channels say it.
//!
//! Invariants: whoever changes a channel, or tells it the time, notes it anew; so what stands here
//! of a channel is what it would say itself.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::ops::Bound;

use crate::channel::Channel;

/// What a channel has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Noted {
    has_push: bool,
    has_outgoing: bool,
    /// When it is to be told the time; in the ordered time if it is reliable.
    due: Option<u64>,
    is_reliable: bool,
}

impl Noted {
    pub(crate) fn of(channel: &Channel) -> Self {
        Self {
            has_push: channel.has_push(),
            has_outgoing: channel.has_outgoing(),
            due: channel.poll_timeout(),
            is_reliable: channel.settings.is_reliable,
        }
    }
}

type Names = BTreeSet<Arc<str>>;

/// Channels by the time at which they are due.
type Dues = BTreeSet<(u64, Arc<str>)>;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Agenda {
    pushes: Names,
    outgoing: Names,
    /// Of channels that are not reliable.
    plain: Dues,
    /// Of the reliable ones, in the ordered time.
    reliable: Dues,
}

fn put(names: &mut Names, name: &Arc<str>, is_in: bool) {
    if is_in {
        names.insert(Arc::clone(name));
    } else {
        names.remove(name);
    }
}

/// The next name behind another one; the first one behind none.
fn behind(names: &Names, name: Option<&str>) -> Option<Arc<str>> {
    let from = name.map_or(Bound::Unbounded, Bound::Excluded);
    names.range::<str, _>((from, Bound::Unbounded)).next().cloned()
}

impl Agenda {
    /// A channel has that to do now, and had `before` until now.
    pub(crate) fn note(&mut self, name: &Arc<str>, before: &mut Noted, now: Noted) {
        let before = core::mem::replace(before, now);
        if before.has_push != now.has_push {
            put(&mut self.pushes, name, now.has_push);
        }
        if before.has_outgoing != now.has_outgoing {
            put(&mut self.outgoing, name, now.has_outgoing);
        }
        if (before.due, before.is_reliable) == (now.due, now.is_reliable) {
            return;
        }
        if let Some(at) = before.due {
            self.dues(before.is_reliable).remove(&(at, Arc::clone(name)));
        }
        if let Some(at) = now.due {
            self.dues(now.is_reliable).insert((at, Arc::clone(name)));
        }
    }

    fn dues(&mut self, is_reliable: bool) -> &mut Dues {
        if is_reliable { &mut self.reliable } else { &mut self.plain }
    }

    pub(crate) fn has_push(&self) -> bool {
        !self.pushes.is_empty()
    }

    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// So many channels have a push.
    pub(crate) fn pushes(&self) -> usize {
        self.pushes.len()
    }

    /// The channel with a push that comes behind one of that name; all take turns.
    pub(crate) fn next_push(&self, name: &str) -> Option<Arc<str>> {
        behind(&self.pushes, Some(name)).or_else(|| behind(&self.pushes, None))
    }

    /// The channel behind one of that name that has something else to be done; the first one behind
    /// none.
    pub(crate) fn next_outgoing(&self, name: Option<&str>) -> Option<Arc<str>> {
        behind(&self.outgoing, name)
    }

    /// When the first channel is due that is not reliable.
    pub(crate) fn first_plain(&self) -> Option<u64> {
        self.plain.first().map(|(at, _)| *at)
    }

    /// Those that are not reliable and are due at a time.
    pub(crate) fn due_plain(&self, now: u64) -> alloc::vec::Vec<Arc<str>> {
        let due = self.plain.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, name)| Arc::clone(name)).collect()
    }

    /// When each of the reliable ones is due, the first one first.
    pub(crate) fn reliable(&self) -> impl Iterator<Item = (u64, &str)> {
        self.reliable.iter().map(|(at, name)| (*at, &**name))
    }
}
