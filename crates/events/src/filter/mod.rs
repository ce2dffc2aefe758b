//! Filters: what a consumer wants, as TAO's clients say it, compiled once and asked for each event.
//!
//! A [`Filter`] is a program in prefix order, and a memory: which parts of a conjunction have come,
//! and when timers are due. Only the program is made of the subscription; the memory is what events
//! have left.
//!
//! What it is not: bound to events. It sees a type and a source, and holds items of any kind.
//!
//! Invariants: every entry of a subscription counts, or all of it is refused; asking allocates
//! nothing, because what conjunctions may hold was reserved before; whether an event is accepted
//! does not depend on the memory; depth and size are those that [`FilterLimits`] allow; which timer
//! is due next is known without looking at the others.

mod compile;
mod run;

use alloc::vec::Vec;

/// Types of events that say something about a filter (TAO's `Event_Service_Constants`).
pub mod designator {
    /// Any type, and any source.
    pub const ANY: i32 = 0;
    /// A timer that fires once.
    pub const TIMEOUT: i32 = 4;
    /// A timer that fires again and again.
    pub const INTERVAL_TIMEOUT: i32 = 5;
    /// A timer that begins anew whenever the consumer gets something.
    pub const DEADLINE_TIMEOUT: i32 = 6;
    /// What follows stands for itself.
    pub const GLOBAL: i32 = 7;
    /// All that follow, at any times.
    pub const CONJUNCTION: i32 = 8;
    /// One of those that follow.
    pub const DISJUNCTION: i32 = 9;
    /// Not what follows.
    pub const NEGATION: i32 = 10;
    /// All that follow, of one event.
    pub const LOGICAL_AND: i32 = 11;
    /// What follows, if bits are set.
    pub const BITMASK: i32 = 12;
    /// Certain bits of type and source.
    pub const MASKED_TYPE: i32 = 13;
    /// Everything.
    pub const NULL: i32 = 14;
    /// The first type that is an application's.
    pub const UNDEFINED: i32 = 16;
}

/// One entry of a subscription, as far as it means something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The type, or a designator.
    pub event_type: i32,
    /// The source; with a group's designator the number of its parts, 0 for all up to the next
    /// group.
    pub source: i32,
    /// The period of a timer, in 100 ns.
    pub period: u64,
    /// Which line of the table of priorities.
    pub rt_info: i32,
}

/// What of an event counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its type.
    pub event_type: i32,
    /// Its source.
    pub source: i32,
}

/// How large a filter may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilterLimits {
    /// Entries.
    pub entries_max: usize,
    /// Parts in parts.
    pub depth_max: usize,
    /// Items that its conjunctions can hold, all together.
    pub held_max: usize,
    /// Timers.
    pub timers_max: usize,
    /// The shortest period of a timer, in 100 ns.
    pub period_min: u64,
}

impl Default for FilterLimits {
    fn default() -> Self {
        let (timers_max, period_min) = (32, 100_000);
        Self { entries_max: 1024, depth_max: 32, held_max: 1024, timers_max, period_min }
    }
}

impl FilterLimits {
    /// Those of subscriptions that are there: an earlier version may have taken them with more
    /// timers, and with shorter ones, and nobody loses one for that.
    pub(crate) const fn of_kept(self) -> Self {
        Self { timers_max: self.entries_max, period_min: 1, ..self }
    }
}

/// What is wrong with a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadFilter {
    /// More entries than may be.
    TooLarge,
    /// Parts in parts in parts.
    TooDeep,
    /// Its conjunctions would hold too much.
    HoldsTooMuch,
    /// It ends where a part must follow.
    Cut,
    /// A number of parts that is none.
    Count,
    /// A timer without a period, or with one that is too short.
    Period,
    /// More timers than may be.
    Timers,
}

/// A part of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Type(Header),
    Masked {
        mask: Header,
        value: Header,
    },
    Bits(Header),
    Not,
    Every,
    Any,
    /// The first of its marks, and its store.
    Conjunction {
        marks: usize,
        store: usize,
    },
    Timer(usize),
    Everything,
}

/// A part, with those that it has behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Node {
    kind: Kind,
    /// The index behind its last part.
    end: usize,
    rt_info: i32,
}

/// When a timer begins anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Repeat {
    Never,
    Always,
    /// And when the consumer gets something.
    Deadline,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Timer {
    repeat: Repeat,
    event_type: i32,
    period: u64,
    due: Option<u64>,
}

/// A compiled filter that holds items of type `T`.
#[derive(Clone, PartialEq, Debug)]
pub struct Filter<T> {
    nodes: Vec<Node>,
    /// Which parts of conjunctions have come.
    marks: Vec<bool>,
    /// What has come, per conjunction.
    stores: Vec<Vec<T>>,
    timers: Vec<Timer>,
    /// The numbers of those that are armed, as they are due.
    order: Vec<usize>,
}

/// What a filter remembers of events, as data.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Memory<T> {
    pub(crate) marks: Vec<bool>,
    pub(crate) stores: Vec<Vec<T>>,
    pub(crate) dues: Vec<Option<u64>>,
}

/// What a filter lets through.
#[derive(Clone, PartialEq, Debug)]
pub enum Passed<T> {
    /// The event that was offered.
    One {
        /// Of the part that let it through.
        rt_info: i32,
    },
    /// All that a conjunction has waited for.
    Many {
        /// Of the part that came last.
        rt_info: i32,
        /// In the order in which they came.
        items: Vec<T>,
    },
}
