//! Objects that are asked `is_alive` (FaultMonitoringStyle PULL).
//!
//! What it is not: who asks them, or says what an answer means. Invariants: an object that is slow
//! keeps no other waiting, up to a bound of questions at a time; who is asked is asked again after
//! its interval, and when its answer is there.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Errand, Target};
use crate::watched::Watched;

/// Nobody is asked more often.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Objects that are being asked at a time; others wait.
const ASKED_MAX: usize = 64;

/// What the process is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PullErrand {
    /// Ask it whether it is alive, and tell [`PullDetector::answered`].
    Ask(Errand, Watched),
    /// Tell the manager that it is not alive, and then [`PullDetector::told`].
    Report(Errand),
    /// Tell the manager that it answers again, and then [`PullDetector::told`].
    Answers(Errand, Watched),
}

/// How far it is with one object.
#[derive(Debug)]
struct Asked {
    watched: Watched,
    due: Duration,
    /// The number of what is being done.
    busy: Option<u64>,
    is_reported: bool,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct PullDetector {
    book: BTreeMap<Target, Asked>,
    last: u64,
}

impl PullDetector {
    /// These are to be asked; it goes on with those that were there already.
    pub fn update(&mut self, watched: Vec<Watched>, now: Duration) {
        let mut before = core::mem::take(&mut self.book);
        for one in watched {
            let target = one.target();
            let same = |asked: &Asked| asked.watched.whom == one.whom;
            let asked = match before.remove(&target).filter(same) {
                Some(asked) => Asked { watched: one, ..asked },
                None => Asked {
                    due: now,
                    busy: None,
                    // A process before this one may have reported it.
                    is_reported: one.is_reported,
                    watched: one,
                },
            };
            self.book.insert(target, asked);
        }
    }

    /// Who is to be asked now.
    pub fn poll(&mut self, now: Duration) -> Option<PullErrand> {
        let busy = self.book.values().filter(|asked| asked.busy.is_some()).count();
        if busy >= ASKED_MAX {
            return None;
        }
        let is_due = |(_, asked): &(&Target, &mut Asked)| asked.due <= now && asked.busy.is_none();
        // Who has waited longest goes first.
        let (target, asked) = self.book.iter_mut().filter(is_due).min_by_key(|one| one.1.due)?;
        self.last += 1;
        asked.busy = Some(self.last);
        asked.due = now + asked.watched.interval.max(INTERVAL_MIN);
        let errand = Errand { target: target.clone(), number: self.last };
        Some(PullErrand::Ask(errand, asked.watched.clone()))
    }

    /// When somebody is to be asked.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.book.values().filter(|asked| asked.busy.is_none()).map(|asked| asked.due).min()
    }

    /// It is alive, or not; nothing if nobody could tell. What is to be told.
    pub fn answered(&mut self, errand: Errand, is_alive: Option<bool>) -> Option<PullErrand> {
        let asked = self.book.get_mut(&errand.target);
        let asked = asked.filter(|asked| asked.busy == Some(errand.number))?;
        let is_dead = is_alive.map_or(asked.is_reported, |is_alive| !is_alive);
        if is_dead == asked.is_reported {
            asked.busy = None;
            return None;
        }
        asked.is_reported = is_dead;
        Some(match is_dead {
            true => PullErrand::Report(errand),
            false => PullErrand::Answers(errand, asked.watched.clone()),
        })
    }

    /// What was to be told was, or never will be.
    pub fn told(&mut self, errand: &Errand) {
        if let Some(asked) = self.book.get_mut(&errand.target)
            && asked.busy == Some(errand.number)
        {
            asked.busy = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watched::Whom;
    use alloc::string::ToString;
    use alloc::vec;
    use quorba_corba::{Home, Object};

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn object(port: u16) -> Object {
        Home { addresses: vec![("s".to_string(), port)], prefix: Vec::new() }.object("", b"o")
    }

    fn watched(group: u64, port: u16, interval: u64) -> Watched {
        Watched {
            location: "n1".to_string(),
            type_id: None,
            group: Some(group),
            whom: Whom::Object(object(port)),
            name: object(port),
            interval: ms(interval),
            timeout: ms(5),
            is_reported: false,
        }
    }

    /// Whom it asks at that time, each by its group.
    fn asks(detector: &mut PullDetector, now: u64) -> Vec<(u64, Errand)> {
        let mut asked = Vec::new();
        while let Some(errand) = detector.poll(ms(now)) {
            let PullErrand::Ask(errand, watched) = errand else { panic!("{errand:?}") };
            asked.push((watched.group.expect("of one group"), errand));
        }
        asked
    }

    fn one(asked: Vec<(u64, Errand)>) -> Errand {
        let [(_, errand)] = <[_; 1]>::try_from(asked).expect("one");
        errand
    }

    #[test]
    fn each_is_asked_after_its_interval_and_a_slow_one_keeps_nobody_waiting() {
        let mut it = PullDetector::default();
        it.update(vec![watched(1, 1, 100), watched(2, 2, 50)], ms(0));
        let asked = asks(&mut it, 0);
        assert_eq!(asked.iter().map(|one| one.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(it.answered(asked[1].1.clone(), Some(true)), None);
        assert!(asks(&mut it, 49).is_empty());
        assert_eq!(it.due(), Some(ms(50)));
        let second = one(asks(&mut it, 50));
        assert_eq!(it.answered(second, Some(true)), None);
        // The first one has not answered yet.
        let third = one(asks(&mut it, 100));
        assert_eq!((third.target.group, it.due()), (Some(2), None));
        assert_eq!(it.answered(asked[0].1.clone(), Some(true)), None);
        assert_eq!(one(asks(&mut it, 101)).target.group, Some(1));
    }

    #[test]
    fn who_is_dead_is_reported_once_until_it_answers() {
        let mut it = PullDetector::default();
        it.update(vec![watched(1, 1, 100)], ms(0));
        let first = one(asks(&mut it, 0));
        assert_eq!(
            it.answered(first.clone(), Some(false)),
            Some(PullErrand::Report(first.clone()))
        );
        assert!(asks(&mut it, 500).is_empty(), "it is being reported");
        it.told(&first);
        let second = one(asks(&mut it, 500));
        assert_eq!(it.answered(second, Some(false)), None, "that is known");
        let third = one(asks(&mut it, 600));
        assert_eq!(it.answered(third, None), None, "nobody can tell");
        let fourth = one(asks(&mut it, 700));
        let answers = it.answered(fourth.clone(), Some(true));
        assert!(matches!(answers, Some(PullErrand::Answers(of, _)) if of == fourth));
        it.told(&fourth);
        let fifth = one(asks(&mut it, 800));
        assert_eq!(it.answered(fifth.clone(), Some(false)), Some(PullErrand::Report(fifth)));
    }

    #[test]
    fn what_comes_of_a_question_to_a_former_object_says_nothing_of_the_one_that_is_there() {
        let mut it = PullDetector::default();
        it.update(vec![watched(1, 1, 100)], ms(0));
        let former = one(asks(&mut it, 0));
        it.update(vec![watched(1, 2, 100)], ms(10));
        let now = one(asks(&mut it, 10));
        assert_eq!(it.answered(former.clone(), Some(false)), None);
        it.told(&former);
        assert!(asks(&mut it, 200).is_empty(), "it is being asked");
        assert_eq!(it.answered(now, Some(true)), None);
    }

    #[test]
    fn who_was_reported_by_a_process_before_is_not_reported_again() {
        let mut it = PullDetector::default();
        it.update(vec![Watched { is_reported: true, ..watched(1, 1, 100) }], ms(0));
        let first = one(asks(&mut it, 0));
        assert_eq!(it.answered(first, Some(false)), None);
    }

    #[test]
    fn only_so_many_are_asked_at_a_time() {
        let mut it = PullDetector::default();
        let many = (1..=80).map(|number| watched(number, 1, 10)).collect();
        it.update(many, ms(0));
        let asked = asks(&mut it, 0);
        assert_eq!(asked.len(), ASKED_MAX);
        for (_, errand) in asked {
            it.answered(errand, Some(true));
        }
        let next: Vec<u64> = asks(&mut it, 100).iter().map(|one| one.0).collect();
        assert!((65..=80).all(|group| next.contains(&group)), "{next:?}");
    }
}
