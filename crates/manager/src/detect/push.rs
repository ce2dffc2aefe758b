//! Objects that say by themselves that they live, and those of which others say that they do not
//! (FaultMonitoringStyle PUSH).
//!
//! What it is not: who hears them; that is the manager. Invariants: nobody is silent while calls do
//! not get through to the manager, or as long as they take long; who says `is_alive` when it is
//! asked is not reported because others said it is not.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Errand, Target};
use crate::pushed::Pushing;

/// How long a call through the order may take, and then is waited once more: at least, and at most.
const GRACE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What the process is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PushErrand {
    /// Call the manager through the order, and tell [`PushDetector::listened`].
    Listen(Errand),
    /// Ask it whether it is alive, and tell [`PushDetector::answered`].
    Ask(Errand, Pushing),
    /// Tell the manager that it is not alive, and then [`PushDetector::told`].
    Report {
        /// About whom.
        errand: Errand,
        /// The notifier does not know it yet.
        is_for_notifier: bool,
    },
}

/// What is being done about one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Idle,
    /// A call is made, since then.
    Listening(u64, Duration),
    /// Others are heard: if it is not by then it is dead.
    Waiting(Duration),
    Asking(u64),
    /// What was said by others, if that was so; else that it is silent.
    Reporting(u64, bool),
}

/// How far it is with one object.
#[derive(Debug)]
struct Waited {
    pushing: Pushing,
    /// When it was heard, or could have been.
    since: Duration,
    is_accused: bool,
    is_reported: bool,
    stage: Stage,
}

impl Waited {
    fn new(pushing: Pushing, now: Duration) -> Self {
        Self {
            since: now,
            is_accused: false,
            // A process before this one may have reported it.
            is_reported: pushing.is_reported,
            pushing,
            stage: Stage::Idle,
        }
    }

    fn grace(&self) -> Duration {
        (self.pushing.silence.unwrap_or_default() / 4).clamp(GRACE.0, GRACE.1)
    }

    /// What is to be done about it now.
    fn attend(&mut self, errand: Errand, now: Duration) -> Option<PushErrand> {
        if core::mem::take(&mut self.pushing.is_heard) {
            self.since = now;
            self.is_reported = false;
            if matches!(self.stage, Stage::Waiting(_)) {
                self.stage = Stage::Idle;
            }
        }
        self.is_accused |= core::mem::take(&mut self.pushing.is_accused);
        if !matches!(self.stage, Stage::Idle | Stage::Waiting(_)) {
            return None;
        }
        if core::mem::take(&mut self.is_accused) {
            self.stage = Stage::Asking(errand.number);
            return Some(PushErrand::Ask(errand, self.pushing.clone()));
        }
        let silence = self.pushing.silence?;
        if now.saturating_sub(self.since) <= silence || self.is_reported {
            return None;
        }
        match self.stage {
            Stage::Waiting(until) if now < until => None,
            Stage::Waiting(_) => {
                self.is_reported = true;
                self.stage = Stage::Reporting(errand.number, false);
                Some(PushErrand::Report { errand, is_for_notifier: true })
            }
            _ => {
                self.stage = Stage::Listening(errand.number, now);
                Some(PushErrand::Listen(errand))
            }
        }
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct PushDetector {
    book: BTreeMap<Target, Waited>,
    last: u64,
}

impl PushDetector {
    /// Whether somebody is waited for.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.book.is_empty()
    }

    /// These are to say that they live, and some have; what is to be done now. It goes on with
    /// those that were there already.
    pub fn attend(&mut self, pushing: Vec<Pushing>, now: Duration) -> Vec<PushErrand> {
        let mut before = core::mem::take(&mut self.book);
        for one in pushing {
            let target = one.target();
            let same = |waited: &Waited| waited.pushing.object == one.object;
            let waited = match before.remove(&target).filter(same) {
                Some(waited) => Waited { pushing: one, ..waited },
                None => Waited::new(one, now),
            };
            self.book.insert(target, waited);
        }
        let mut errands = Vec::new();
        for (target, waited) in &mut self.book {
            self.last += 1;
            let errand = Errand { target: target.clone(), number: self.last };
            errands.extend(waited.attend(errand, now));
        }
        errands
    }

    /// A call through the order has ended, in order or not.
    pub fn listened(&mut self, errand: &Errand, is_through: bool, now: Duration) {
        let Some(waited) = self.book.get_mut(&errand.target) else { return };
        let Stage::Listening(number, began) = waited.stage else { return };
        if number != errand.number {
            return;
        }
        let grace = waited.grace();
        if is_through && now.saturating_sub(began) <= grace {
            // Others wait for their gateways longer than this one did.
            waited.stage = Stage::Waiting(now + grace);
        } else {
            // Nobody could be heard.
            (waited.since, waited.stage) = (now, Stage::Idle);
        }
    }

    /// Somebody was asked whether it is alive: what it says; nothing if it cannot be asked. What is
    /// to be told.
    pub fn answered(&mut self, errand: Errand, is_alive: Option<bool>) -> Option<PushErrand> {
        let waited = self.book.get_mut(&errand.target);
        let waited = waited.filter(|waited| waited.stage == Stage::Asking(errand.number))?;
        waited.stage = Stage::Idle;
        // If it cannot be asked, and is to say that it lives, its silence counts.
        let is_dead = is_alive.map_or(waited.pushing.silence.is_none(), |is_alive| !is_alive);
        if !is_dead || waited.is_reported {
            return None;
        }
        waited.is_reported = true;
        waited.stage = Stage::Reporting(errand.number, true);
        // The notifier knows it: from there it comes.
        Some(PushErrand::Report { errand, is_for_notifier: false })
    }

    /// What was to be told was, or never will be.
    pub fn told(&mut self, errand: &Errand) {
        let Some(waited) = self.book.get_mut(&errand.target) else { return };
        let Stage::Reporting(number, is_by_others) = waited.stage else { return };
        if number == errand.number {
            waited.stage = Stage::Idle;
            // Where nothing but others can say that it is dead, they may say it again.
            waited.is_reported &= !is_by_others || waited.pushing.silence.is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;
    use quorba_corba::Home;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// One that may be silent for so long.
    fn pushing(silence: Option<u64>) -> Pushing {
        let home = Home { addresses: vec![("s".to_string(), 1)], prefix: Vec::new() };
        Pushing {
            location: "n1".to_string(),
            type_id: None,
            group: Some(1),
            object: home.object("", b"o"),
            silence: silence.map(ms),
            timeout: ms(5),
            is_reported: false,
            is_heard: false,
            is_accused: false,
        }
    }

    fn attend(it: &mut PushDetector, one: Pushing, now: u64) -> Option<PushErrand> {
        let mut all = it.attend(vec![one], ms(now));
        assert!(all.len() <= 1, "{all:?}");
        all.pop()
    }

    fn listens(errand: Option<PushErrand>) -> Errand {
        let Some(PushErrand::Listen(errand)) = errand else { panic!("{errand:?}") };
        errand
    }

    #[test]
    fn who_is_silent_is_reported_once_when_others_could_be_heard() {
        let mut it = PushDetector::default();
        let one = || pushing(Some(400));
        assert_eq!(attend(&mut it, one(), 0), None);
        assert_eq!(attend(&mut it, one(), 400), None);
        let errand = listens(attend(&mut it, one(), 401));
        assert_eq!(attend(&mut it, one(), 402), None, "one thing at a time");
        it.listened(&errand, true, ms(410));
        assert_eq!(attend(&mut it, one(), 509), None, "a grace of a quarter");
        let report = attend(&mut it, one(), 510);
        let Some(PushErrand::Report { errand, is_for_notifier: true }) = report else {
            panic!("{report:?}")
        };
        it.told(&errand);
        assert_eq!(attend(&mut it, one(), 9_000), None, "it was reported");
        // It is heard, and silent again.
        assert_eq!(attend(&mut it, Pushing { is_heard: true, ..one() }, 9_100), None);
        listens(attend(&mut it, one(), 9_501));
    }

    #[test]
    fn who_is_heard_in_the_last_moment_lives() {
        let mut it = PushDetector::default();
        let one = || pushing(Some(400));
        attend(&mut it, one(), 0);
        let errand = listens(attend(&mut it, one(), 500));
        it.listened(&errand, true, ms(501));
        assert_eq!(attend(&mut it, Pushing { is_heard: true, ..one() }, 601), None);
        assert_eq!(attend(&mut it, one(), 1_001), None);
    }

    #[test]
    fn nobody_is_silent_while_nobody_could_be_heard() {
        let mut it = PushDetector::default();
        let one = || pushing(Some(400));
        attend(&mut it, one(), 0);
        let errand = listens(attend(&mut it, one(), 500));
        it.listened(&errand, true, ms(601));
        assert_eq!(attend(&mut it, one(), 1_001), None, "it took longer than the grace");
        let errand = listens(attend(&mut it, one(), 1_002));
        it.listened(&errand, false, ms(1_003));
        assert_eq!(attend(&mut it, one(), 1_403), None, "it did not get through");
        listens(attend(&mut it, one(), 1_404));
    }

    #[test]
    fn who_is_accused_is_asked_and_reported_if_it_is_dead() {
        for (silence, says, is_dead) in [
            (None, Some(false), true),
            (None, Some(true), false),
            (None, None, true),
            (Some(400), None, false),
            (Some(400), Some(false), true),
        ] {
            let mut it = PushDetector::default();
            let accused = || Pushing { is_accused: true, ..pushing(silence) };
            let asked = attend(&mut it, accused(), 0);
            let Some(PushErrand::Ask(errand, _)) = asked else { panic!("{asked:?}") };
            let told = it.answered(errand.clone(), says);
            let report = PushErrand::Report { errand: errand.clone(), is_for_notifier: false };
            assert_eq!(told, is_dead.then_some(report), "{silence:?} {says:?}");
            it.told(&errand);
            // Who is never heard can be accused again.
            let again = attend(&mut it, accused(), 10);
            let Some(PushErrand::Ask(errand, _)) = again else { panic!("{again:?}") };
            let is_told = it.answered(errand, Some(false)).is_some();
            assert_eq!(is_told, !is_dead || silence.is_none(), "{silence:?} {says:?}");
        }
    }

    #[test]
    fn what_comes_of_a_call_about_a_former_object_changes_nothing() {
        let mut it = PushDetector::default();
        let asked = attend(&mut it, Pushing { is_accused: true, ..pushing(None) }, 0);
        let Some(PushErrand::Ask(errand, _)) = asked else { panic!("{asked:?}") };
        let home = Home { addresses: vec![("t".to_string(), 1)], prefix: Vec::new() };
        let other = Pushing { object: home.object("", b"o"), ..pushing(None) };
        assert_eq!(attend(&mut it, other, 1), None);
        assert_eq!(it.answered(errand, Some(false)), None);
    }
}
