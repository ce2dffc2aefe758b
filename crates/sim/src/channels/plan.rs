//! What a seed stands for when only the event service is simulated.
//!
//! Invariant: a plan is a function of the seed and nothing else.

use crate::rng::Rng;

/// How a consumer is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// CosEvent, push.
    Cos,
    /// CosEvent, pull.
    Pull,
    /// The facade, push.
    Facade,
    /// The facade, told numbers; it leaves out what it has seen.
    Numbered,
    /// TAO's interface, push.
    Rtec,
}

impl Kind {
    /// Whether it can say what it wants.
    pub(crate) const fn filters(self) -> bool {
        matches!(self, Self::Facade | Self::Numbered | Self::Rtec)
    }
}

/// What a consumer wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wants {
    All,
    /// One type.
    Type(i32),
    /// All but one type.
    Not(i32),
    /// One of two types.
    Either(i32, i32),
    /// An event of each of two types, together.
    Both(i32, i32),
    /// What comes from a source that is none, or of one type: both of one event.
    And(i32),
    /// No events: a timer that fires again and again.
    Timer,
}

/// The period of timers. It is long, so that nothing waits now and then.
pub(crate) const PERIOD_US: u64 = 300_000;

impl Wants {
    /// Whether it may be given an event of that type.
    pub(crate) const fn lets(self, event_type: i32) -> bool {
        match self {
            Self::All => true,
            Self::Type(only) | Self::And(only) => event_type == only,
            Self::Not(other) => event_type != other,
            Self::Either(one, other) | Self::Both(one, other) => {
                event_type == one || event_type == other
            }
            Self::Timer => false,
        }
    }

    fn draw(rng: &mut Rng) -> Self {
        let (one, other) = rng.pick(&[(1, 2), (2, 3), (3, 1)]);
        match rng.below(10) {
            0 => Self::Timer,
            1 => Self::Not(one),
            2 => Self::And(one),
            3 | 4 => Self::Either(one, other),
            _ => Self::Both(one, other),
        }
    }
}

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A member ends.
    Crash,
    /// The member that leads ends.
    CrashLeader,
    /// A member ends that has executed what nobody else has.
    CrashAhead,
    /// A member is cut off, and notices it later than the others.
    Cut,
    /// The member that leads is.
    CutLeader,
    /// For a moment no member is told who leads.
    Blink,
    /// A consumer cannot be reached for a while.
    Away,
    /// What consumers answer gets lost for a while.
    Mute,
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::Crash,
        Self::CrashLeader,
        Self::CrashAhead,
        Self::Cut,
        Self::CutLeader,
        Self::Blink,
        Self::Away,
        Self::Mute,
    ];
}

/// See the module's text. Times are in microseconds; chances are per thousand.
#[derive(Clone, Debug)]
pub(crate) struct ChannelsPlan {
    pub(crate) members: usize,
    pub(crate) consumers: Vec<Kind>,
    /// What some of those want that can say it; the others want a type, or all.
    pub(crate) wants: Vec<Option<Wants>>,
    /// Events are kept until consumers have them; else they are with the member that leads, and
    /// pushes and pulls go past the order.
    pub(crate) is_reliable: bool,
    /// How many consumers there are from the beginning; the others come later.
    pub(crate) early: usize,
    /// Of each supplier: whether it names its calls and repeats them.
    pub(crate) suppliers: Vec<bool>,
    pub(crate) messages: u32,
    pub(crate) push_every_us: u64,
    /// Events that a supplier has that is pulled; 0: there is none.
    pub(crate) stock: u32,
    /// Suppliers push at the facade, which may not be told to come again, so that queues must have
    /// room for all.
    pub(crate) is_facade: bool,
    pub(crate) queue_events: u64,
    pub(crate) batch: u64,
    pub(crate) faults: Vec<Fault>,
    pub(crate) fault_every_us: u64,
    pub(crate) safety_us: u64,
    /// How long an entry of the order takes to another member.
    pub(crate) order_us: (u64, u64),
    /// How long a call to a consumer or a supplier takes.
    pub(crate) call_us: (u64, u64),
    /// The chance that a consumer leaves and another one comes in its place.
    pub(crate) leave: u64,
}

impl ChannelsPlan {
    /// The plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(0x4556);
        let kinds = [Kind::Cos, Kind::Pull, Kind::Facade, Kind::Numbered, Kind::Numbered];
        let consumers: Vec<Kind> = (0..rng.between(1, 6)).map(|_| rng.pick(&kinds)).collect();
        let mut faults = Fault::ALL.to_vec();
        rng.shuffle(&mut faults);
        faults.truncate(rng.pick(&[0, 1, 2, 3, 5, 8]));
        let is_facade = rng.per_mille(400);
        // Of its own, so that the rest of a plan is what it was without.
        let mut more = Rng::new(seed).fork(0x5254);
        let is_reliable = more.per_mille(650);
        let consumers: Vec<Kind> = consumers
            .into_iter()
            .map(|kind| match kind {
                Kind::Facade if more.per_mille(500) => Kind::Rtec,
                Kind::Numbered if !is_reliable => Kind::Rtec,
                kind => kind,
            })
            .collect();
        let wants = |_| more.per_mille(500).then(|| Wants::draw(&mut more));
        let wants = consumers.iter().map(wants).collect();
        Self {
            wants,
            is_reliable,
            members: rng.pick(&[1, 2, 3, 3, 3, 4, 5]),
            early: rng.between(1, consumers.len() as u64) as usize,
            consumers,
            suppliers: (0..rng.between(1, 3)).map(|_| rng.per_mille(600)).collect(),
            messages: rng.pick(&[20, 60, 150]),
            push_every_us: rng.pick(&[300, 2_000, 10_000]),
            stock: rng.pick(&[0, 40, 150]),
            queue_events: match rng.pick(&[4, 30, 1_000]) {
                few if is_reliable && !is_facade => few,
                _ => 1_000,
            },
            is_facade,
            batch: rng.pick(&[1, 4, 100]),
            faults,
            fault_every_us: rng.pick(&[3_000, 15_000, 60_000, 200_000]),
            safety_us: rng.pick(&[100_000, 400_000, 1_000_000]),
            order_us: rng.pick(&[(50, 300), (100, 3_000), (1_000, 20_000)]),
            call_us: rng.pick(&[(30, 200), (100, 3_000), (1_000, 30_000)]),
            leave: rng.pick(&[0, 0, 300]),
        }
    }
}
