//! When a manager is told of a fault, and when it is to look again: what the process beside a
//! replica decides.
//!
//! What it is not: a part of a replica's state, or of a clock. Invariant: whatever a manager could
//! not do is tried again as long as there is something to do, and by one process only.

use alloc::collections::BTreeMap;
use core::time::Duration;

use quorba_corba::Transport;
use quorba_idl::quorba::NewsItem;

use crate::manager::Manager;
use crate::trials::Newcomer;

/// Before a look that follows one at which something was left to do.
const FIRST: Duration = Duration::from_millis(500);
/// The same in the end, and where nothing is known that is to be done.
const MOST: Duration = Duration::from_secs(10);

/// What the manager is told of what a node has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tidings {
    /// A node or a member has died: it is reported.
    Fault,
    /// A node has come: who was not to be replaced may be.
    Look,
}

impl Tidings {
    /// Of an item; nothing if the manager need not know it.
    #[must_use]
    pub const fn of(item: &NewsItem) -> Option<Self> {
        match (item.is_up, item.group.is_empty()) {
            (true, true) => Some(Self::Look),
            (true, false) => None,
            (false, _) => Some(Self::Fault),
        }
    }
}

/// When the process of a replica has the manager look, beside what its node tells.
#[derive(Debug)]
pub struct Lookout {
    /// When it looks next; not before it is known that it is the one who does.
    due: Option<Duration>,
    pause: Duration,
    has_work: bool,
    is_looking: bool,
    /// Since when a newcomer is waited for.
    awaited: BTreeMap<Newcomer, Duration>,
}

impl Default for Lookout {
    fn default() -> Self {
        let awaited = BTreeMap::new();
        Self { due: None, pause: FIRST, has_work: false, is_looking: false, awaited }
    }
}

impl Lookout {
    /// Another replica is first, or nobody knows who is.
    pub fn follow_another(&mut self) {
        self.due = None;
        self.has_work = false;
        self.awaited = BTreeMap::new();
    }

    /// A newcomer that has not come in for too long: the manager is to be told. It is told again
    /// after as long a time, if nothing has changed by then.
    pub fn overdue<D: Transport>(
        &mut self,
        manager: &Manager<D>,
        now: Duration,
    ) -> Option<Newcomer> {
        let before = core::mem::take(&mut self.awaited);
        let since = |one: Newcomer| {
            let since = before.get(&one).copied().unwrap_or(now);
            (one, since)
        };
        self.awaited = manager.newcomers().map(since).collect();
        let first = Duration::from_millis(manager.limits.replace_ms.into());
        let is_late = |(one, since): &(&Newcomer, &mut Duration)| {
            now.saturating_sub(**since) >= one.patience(first)
        };
        let (late, since) = self.awaited.iter_mut().find(is_late)?;
        *since = now;
        Some(late.clone())
    }

    /// Whether the manager is to look now, as this is the first replica that is in; what comes of
    /// it is told by [`Lookout::looked`]. Times are since anything.
    pub fn look<D: Transport>(&mut self, manager: &Manager<D>, now: Duration) -> bool {
        if self.is_looking {
            return false;
        }
        let had_work = core::mem::replace(&mut self.has_work, manager.has_work());
        if !self.has_work {
            self.pause = MOST;
        } else if !had_work {
            (self.due, self.pause) = (None, FIRST);
        }
        let pause = self.pause;
        let due = *self.due.get_or_insert_with(|| now + pause);
        self.is_looking = due <= now;
        self.is_looking
    }

    /// The manager has looked, or could not be reached.
    pub fn looked(&mut self, now: Duration) {
        self.is_looking = false;
        self.due = Some(now + self.pause);
        self.pause = MOST.min(self.pause * 2);
    }
}
