//! From the entries of a subscription to a program.
//!
//! Two ways to write groups are read: with the number of parts (TAO's prefix builder), and without,
//! up to the next group (its basic builder). What stands beside each other at the top are
//! alternatives.
//!
//! Invariant: no input takes more steps than it has entries.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::designator as d;
use super::{BadFilter, Entry, Filter, FilterLimits, Header, Kind, Node, Repeat, Timer};

struct Compiler<'e> {
    entries: &'e [Entry],
    at: usize,
    limits: FilterLimits,
    nodes: Vec<Node>,
    marks: usize,
    /// What each store must hold.
    stores: Vec<usize>,
    timers: Vec<Timer>,
}

const fn is_group(entry: &Entry) -> bool {
    matches!(entry.event_type, d::CONJUNCTION | d::DISJUNCTION | d::LOGICAL_AND)
}

impl<T> Filter<T> {
    /// Compiles a subscription. Its timers stand still until they are armed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(entries: &[Entry], limits: FilterLimits) -> Result<Self, BadFilter> {
        if entries.len() > limits.entries_max {
            return Err(BadFilter::TooLarge);
        }
        let mut compiler = Compiler {
            entries,
            at: 0,
            limits,
            nodes: Vec::with_capacity(entries.len() + 1),
            marks: 0,
            stores: Vec::new(),
            timers: Vec::new(),
        };
        compiler.top()?;
        let held: usize = compiler.stores.iter().sum();
        if held > limits.held_max {
            return Err(BadFilter::HoldsTooMuch);
        }
        let mut marks = Vec::new();
        marks.resize(compiler.marks, false);
        let stores = compiler.stores.iter().map(|room| Vec::with_capacity(*room)).collect();
        let order = Vec::with_capacity(compiler.timers.len());
        Ok(Self { nodes: compiler.nodes, marks, stores, timers: compiler.timers, order })
    }

    /// The types that an event must have one of to be accepted; none if it may be another one. An
    /// event of type 0 stands for all.
    #[must_use]
    pub fn types(&self) -> Option<BTreeSet<i32>> {
        self.types_of(0)
    }

    fn types_of(&self, index: usize) -> Option<BTreeSet<i32>> {
        let node = self.nodes.get(index)?;
        match node.kind {
            Kind::Type(header) if header.event_type != 0 => {
                Some(BTreeSet::from([header.event_type]))
            }
            Kind::Timer(_) => Some(BTreeSet::new()),
            Kind::Bits(_) => self.types_of(index + 1),
            Kind::Any | Kind::Conjunction { .. } => {
                let mut all = BTreeSet::new();
                let mut at = index + 1;
                while at < node.end {
                    all.append(&mut self.types_of(at)?);
                    at = self.nodes.get(at)?.end;
                }
                Some(all)
            }
            Kind::Type(_) | Kind::Masked { .. } | Kind::Not | Kind::Every | Kind::Everything => {
                None
            }
        }
    }

    /// How many timers it has.
    #[must_use]
    pub const fn timers(&self) -> usize {
        self.timers.len()
    }

    /// Types and sources, one of which an event must have to be accepted, with 0 for any; none if
    /// it may be any event. What a timer gives is no event of others.
    #[must_use]
    pub fn headers(&self) -> Option<BTreeSet<(i32, i32)>> {
        self.headers_of(0)
    }

    fn headers_of(&self, index: usize) -> Option<BTreeSet<(i32, i32)>> {
        let node = self.nodes.get(index)?;
        match node.kind {
            Kind::Type(header) => Some(BTreeSet::from([(header.event_type, header.source)])),
            Kind::Timer(_) => Some(BTreeSet::new()),
            Kind::Bits(_) => self.headers_of(index + 1),
            Kind::Any | Kind::Conjunction { .. } | Kind::Every => {
                let (mut all, mut at) = (BTreeSet::new(), index + 1);
                while at < node.end {
                    let part = self.headers_of(at);
                    // All of them must accept it, so what one of them says is enough.
                    if node.kind == Kind::Every && part.is_some() {
                        return part;
                    }
                    if node.kind != Kind::Every {
                        all.append(&mut part?);
                    }
                    at = self.nodes.get(at)?.end;
                }
                (node.kind != Kind::Every).then_some(all)
            }
            Kind::Masked { .. } | Kind::Not | Kind::Everything => None,
        }
    }
}

impl Compiler<'_> {
    /// The entries as one part; how many alternatives there are is known at the end.
    fn top(&mut self) -> Result<(), BadFilter> {
        let index = self.begin(Kind::Any, 0);
        let mut parts = 0;
        while self.at < self.entries.len() {
            self.part(1)?;
            parts += 1;
        }
        if parts == 1 {
            self.nodes.remove(index);
            self.nodes.iter_mut().for_each(|node| node.end -= 1);
        } else {
            self.end(index);
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Entry, BadFilter> {
        let entry = self.entries.get(self.at).copied().ok_or(BadFilter::Cut)?;
        self.at += 1;
        Ok(entry)
    }

    fn begin(&mut self, kind: Kind, rt_info: i32) -> usize {
        let index = self.nodes.len();
        self.nodes.push(Node { kind, end: index + 1, rt_info });
        index
    }

    fn end(&mut self, index: usize) {
        let end = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(index) {
            node.end = end;
        }
    }

    /// One part; how many items it lets through at once, at most.
    fn part(&mut self, depth: usize) -> Result<usize, BadFilter> {
        if depth > self.limits.depth_max {
            return Err(BadFilter::TooDeep);
        }
        let entry = self.next()?;
        let header = |entry: Entry| Header { event_type: entry.event_type, source: entry.source };
        match entry.event_type {
            d::CONJUNCTION => return self.conjunction(entry, depth),
            d::DISJUNCTION => return Ok(self.group(Kind::Any, entry, depth)?.1),
            d::LOGICAL_AND => {
                self.group(Kind::Every, entry, depth)?;
            }
            d::GLOBAL => return self.part(depth + 1),
            d::NEGATION => {
                let index = self.begin(Kind::Not, entry.rt_info);
                self.part(depth + 1)?;
                self.end(index);
            }
            d::BITMASK => {
                let mask = header(self.next()?);
                let index = self.begin(Kind::Bits(mask), entry.rt_info);
                let width = self.part(depth + 1)?;
                self.end(index);
                return Ok(width);
            }
            d::MASKED_TYPE => {
                let (mask, value) = (header(self.next()?), self.next()?);
                let kind = Kind::Masked { mask, value: header(value) };
                self.begin(kind, value.rt_info);
            }
            d::NULL => {
                self.begin(Kind::Everything, entry.rt_info);
            }
            d::TIMEOUT => self.timer(Repeat::Never, entry)?,
            d::INTERVAL_TIMEOUT => self.timer(Repeat::Always, entry)?,
            d::DEADLINE_TIMEOUT => self.timer(Repeat::Deadline, entry)?,
            _ => {
                self.begin(Kind::Type(header(entry)), entry.rt_info);
            }
        }
        Ok(1)
    }

    fn timer(&mut self, repeat: Repeat, entry: Entry) -> Result<(), BadFilter> {
        if entry.period < self.limits.period_min.max(1) {
            return Err(BadFilter::Period);
        }
        if self.timers.len() >= self.limits.timers_max {
            return Err(BadFilter::Timers);
        }
        let (event_type, period) = (entry.event_type, entry.period);
        self.begin(Kind::Timer(self.timers.len()), entry.rt_info);
        self.timers.push(Timer { repeat, event_type, period, due: None });
        Ok(())
    }

    /// The parts of a group: how many, and the largest and the sum of what they let through.
    fn group(
        &mut self,
        kind: Kind,
        entry: Entry,
        depth: usize,
    ) -> Result<(usize, usize, usize), BadFilter> {
        let index = self.begin(kind, entry.rt_info);
        let told = usize::try_from(entry.source).map_err(|_| BadFilter::Count)?;
        let (mut parts, mut largest, mut sum) = (0, 1, 0);
        loop {
            let goes_on = if told > 0 {
                parts < told
            } else {
                self.entries.get(self.at).is_some_and(|next| !is_group(next))
            };
            if !goes_on {
                break;
            }
            let width = self.part(depth + 1)?;
            parts += 1;
            largest = largest.max(width);
            sum += width;
        }
        self.end(index);
        Ok((parts, largest, sum))
    }

    fn conjunction(&mut self, entry: Entry, depth: usize) -> Result<usize, BadFilter> {
        let index = self.nodes.len();
        let (parts, _, sum) = self.group(Kind::Everything, entry, depth)?;
        let kind = Kind::Conjunction { marks: self.marks, store: self.stores.len() };
        if let Some(node) = self.nodes.get_mut(index) {
            node.kind = kind;
        }
        self.marks += parts;
        self.stores.push(sum);
        Ok(sum)
    }
}
