//! What a supervisor makes of its orders and of its servers' ends: whether a server is wanted, how
//! long it is left alone, and which order ends what it is just doing.
//!
//! What it is not: what starts a server, or waits. It reads no clock. Invariants: no order is lost,
//! whatever it comes in the middle of; what comes while a server is left alone counts as much as
//! what comes while it runs, so that a server of no use reaches its quarantine through any pause.

use crate::pauses::{Pause, PauseRule, Pauses};
use std::time::{Duration, Instant};

/// How long a node that lacks what a server needs waits before it tries again.
const SHORTAGE_PAUSE: Duration = Duration::from_secs(1);

/// What a supervisor is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Restart,
    /// A server is wanted.
    Want,
    /// None is wanted: the one that runs is ended.
    GiveUp,
    /// The member came into its group, or left it.
    Inside(bool),
    /// Its failures are forgiven.
    Release,
    /// The node ends.
    Stop,
}

/// What a supervisor does while an order comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Activity {
    /// No server is wanted.
    Nothing,
    /// The server is left alone.
    Pausing,
    /// It was started, and is not ready.
    Starting,
    /// It runs.
    Running,
    /// It is somebody else's, and not there yet.
    Seeking,
    /// It is somebody else's, and connected.
    Connected,
}

/// How a try to have a server ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It was begun at this time, and is over.
    Over(Instant),
    /// The node could not begin, for want of something of its own.
    NeverBegun,
}

/// See the module's text.
pub(crate) struct Supervision {
    pauses: Pauses,
    is_wanted: bool,
    /// Orders to give up that were heeded.
    stops: u32,
}

impl Supervision {
    pub(crate) fn new(rule: PauseRule, is_wanted: bool) -> Self {
        Self { pauses: Pauses::new(rule), is_wanted, stops: 0 }
    }

    /// Its group is declared otherwise.
    pub(crate) const fn set_rule(&mut self, rule: PauseRule) {
        self.pauses.set_rule(rule);
    }

    pub(crate) const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// How many orders to give up were heeded: news of a server carry it.
    pub(crate) const fn stops(&self) -> u32 {
        self.stops
    }

    /// Heeds an order; true if it ends what the supervisor is doing.
    pub(crate) fn hear(&mut self, now: Instant, order: Order, doing: Activity) -> bool {
        match order {
            Order::Inside(is_in) => self.pauses.member_is_in(now, is_in),
            Order::Release => self.pauses.release(),
            Order::Want => self.is_wanted = true,
            Order::GiveUp => {
                self.is_wanted = false;
                self.stops += 1;
            }
            Order::Restart | Order::Stop => {}
        }
        match order {
            Order::Stop | Order::GiveUp => true,
            Order::Want => matches!(doing, Activity::Nothing | Activity::Connected),
            // Where none runs it is being started anew already.
            Order::Restart => matches!(doing, Activity::Running | Activity::Connected),
            Order::Release => doing == Activity::Pausing,
            Order::Inside(_) => false,
        }
    }

    /// The server accepts connections.
    pub(crate) fn server_is_up(&mut self, now: Instant) {
        self.pauses.server_is_up(now);
    }

    /// What it stands for is somebody else's to decide: it is never in quarantine.
    pub(crate) fn is_elsewhere(&mut self) {
        self.pauses.release();
    }

    /// How long it is left alone now.
    pub(crate) fn ended(&mut self, end: End, now: Instant) -> Pause {
        match end {
            End::Over(began) => self.pauses.ended(began, now),
            End::NeverBegun => Pause::Short(SHORTAGE_PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: PauseRule = PauseRule {
        first: Duration::from_millis(100),
        longest: Duration::from_secs(10),
        quarantine_after: 3,
        quarantine: Duration::from_secs(60),
    };
    const ALL: [Activity; 6] = [
        Activity::Nothing,
        Activity::Pausing,
        Activity::Starting,
        Activity::Running,
        Activity::Seeking,
        Activity::Connected,
    ];

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// A supervisor without processes: time is what the test says.
    struct Driver {
        supervision: Supervision,
        now: Instant,
    }

    impl Driver {
        fn new() -> Self {
            Self { supervision: Supervision::new(RULE, true), now: Instant::now() }
        }

        fn hear(&mut self, order: Order, doing: Activity) -> bool {
            self.now += ms(1);
            self.supervision.hear(self.now, order, doing)
        }

        /// A server that is ready after 50 ms and ends 400 ms later; orders come while it runs.
        fn live(&mut self, orders: &[Order]) -> Pause {
            let began = self.now;
            self.now += ms(50);
            self.supervision.server_is_up(self.now);
            for order in orders {
                assert!(!self.hear(*order, Activity::Running), "{order:?} ends no server");
            }
            self.now += ms(400);
            self.supervision.ended(End::Over(began), self.now)
        }
    }

    /// That the member has left its group is told when its server is gone: in the pause.
    #[test]
    fn a_server_whose_member_left_in_a_pause_is_of_no_use_and_is_quarantined() {
        let mut driver = Driver::new();
        assert!(matches!(driver.live(&[Order::Inside(true)]), Pause::Short(_)));
        assert!(!driver.hear(Order::Inside(false), Activity::Pausing));
        assert!(matches!(driver.live(&[]), Pause::Short(_)));
        assert!(matches!(driver.live(&[]), Pause::Short(_)));
        assert_eq!(driver.live(&[]), Pause::Quarantine(ms(60_000), 3));
        assert_eq!(driver.live(&[]), Pause::Quarantine(ms(120_000), 4));
    }

    #[test]
    fn a_member_that_came_and_left_in_any_stage_counts_as_it_stands() {
        for doing in ALL {
            let mut driver = Driver::new();
            driver.hear(Order::Inside(true), doing);
            assert!((0..9).all(|_| matches!(driver.live(&[]), Pause::Short(_))), "{doing:?}");
            driver.hear(Order::Inside(false), doing);
            let pauses: Vec<_> = (0..3).map(|_| driver.live(&[])).collect();
            assert!(matches!(pauses[2], Pause::Quarantine(_, 3)), "{doing:?}: {pauses:?}");
        }
    }

    /// A quarantine stands until its time is over, or an operator ends it.
    #[test]
    fn only_a_release_a_stop_and_that_none_is_wanted_end_a_pause() {
        for order in [Order::Restart, Order::Want, Order::Inside(true), Order::Inside(false)] {
            assert!(!Driver::new().hear(order, Activity::Pausing), "{order:?}");
        }
        for order in [Order::Release, Order::Stop, Order::GiveUp] {
            assert!(Driver::new().hear(order, Activity::Pausing), "{order:?}");
        }
    }

    #[test]
    fn a_restart_in_quarantine_forgives_nothing_and_a_release_all() {
        let mut driver = Driver::new();
        let pauses: Vec<_> = (0..3).map(|_| driver.live(&[])).collect();
        assert!(matches!(pauses[2], Pause::Quarantine(_, 3)));
        driver.hear(Order::Restart, Activity::Pausing);
        assert!(matches!(driver.live(&[]), Pause::Quarantine(_, 4)));
        driver.hear(Order::Release, Activity::Pausing);
        assert!(matches!(driver.live(&[]), Pause::Short(_)));
    }

    /// News of a server are stale if its supervisor has heeded fewer of them than were given.
    #[test]
    fn no_order_to_give_up_is_lost_whatever_it_comes_in() {
        for doing in ALL {
            let mut driver = Driver::new();
            assert!(driver.hear(Order::GiveUp, doing), "{doing:?}");
            assert!(
                !driver.supervision.is_wanted() && driver.supervision.stops() == 1,
                "{doing:?}"
            );
            driver.hear(Order::Want, doing);
            assert!(driver.supervision.is_wanted(), "{doing:?}");
        }
    }

    #[test]
    fn orders_end_a_life_that_they_are_about() {
        let ends = |order| ALL.map(|doing| Driver::new().hear(order, doing));
        assert_eq!(ends(Order::Restart), [false, false, false, true, false, true]);
        assert_eq!(ends(Order::Want), [true, false, false, false, false, true]);
        assert_eq!(ends(Order::Stop), [true; 6]);
        assert_eq!(ends(Order::Release), [false, true, false, false, false, false]);
        assert_eq!(ends(Order::Inside(true)), [false; 6]);
    }

    /// It is not the server's fault.
    #[test]
    fn what_the_node_lacks_is_no_failure_of_the_server() {
        let mut driver = Driver::new();
        for _ in 0..20 {
            let pause = driver.supervision.ended(End::NeverBegun, driver.now);
            assert_eq!(pause, Pause::Short(SHORTAGE_PAUSE));
        }
        assert!(matches!(driver.live(&[]), Pause::Short(_)));
        assert!(matches!(driver.live(&[]), Pause::Short(_)));
        assert!(matches!(driver.live(&[]), Pause::Quarantine(_, 3)));
    }
}
