//! The order of calls: a list, of which each member has a part.
//!
//! What it is not: a protocol. Invariants: a member has what it was given first and nothing behind
//! a gap; a call is answered when a majority of all members has it; what nobody has who stays is
//! gone; a name is in the order once.

use std::collections::BTreeMap;

/// One logical call, in all its repetitions.
pub(crate) type Name = (u64, u64);

/// A call at its place.
#[derive(Debug)]
pub(crate) struct Entry<O, R> {
    pub(crate) op: O,
    pub(crate) name: Option<Name>,
    /// Its time, in 100 ns.
    pub(crate) time: u64,
    /// Whose it is.
    pub(crate) caller: u64,
    /// What the first member answered that has executed it.
    pub(crate) reply: Option<R>,
}

/// Where a member stands.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Place {
    /// Its process lives.
    pub(crate) is_up: bool,
    /// The others have it among them.
    pub(crate) is_in: bool,
    /// How many entries it has executed.
    pub(crate) received: usize,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Order<O, R> {
    pub(crate) log: Vec<Entry<O, R>>,
    pub(crate) places: Vec<Place>,
    /// Who leads, and who comes next.
    pub(crate) line: Vec<usize>,
    /// So many entries a majority has, although not all of it has executed them: what a member
    /// calls while it executes one is called when a majority has that call, and the entry.
    pub(crate) fixed: usize,
    names: BTreeMap<Name, usize>,
}

impl<O, R> Order<O, R> {
    pub(crate) fn new(members: usize) -> Self {
        let place = Place { is_up: true, is_in: true, received: 0 };
        let (places, line) = (vec![place; members], (0..members).collect());
        Self { log: Vec::new(), places, line, fixed: 0, names: BTreeMap::new() }
    }

    pub(crate) fn leader(&self) -> Option<usize> {
        self.line.first().copied().filter(|_| self.is_primary())
    }

    fn majority(&self) -> usize {
        self.places.len() / 2 + 1
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.line.len() >= self.majority()
    }

    /// Whether so many would stay that one may go.
    pub(crate) fn can_lose_one(&self) -> bool {
        self.line.len() > self.majority()
    }

    /// Where a call has its place: a new one, unless its name has one.
    pub(crate) fn place(&mut self, mut entry: Entry<O, R>) -> usize {
        if let Some(known) = entry.name.and_then(|name| self.names.get(&name)) {
            return *known;
        }
        let at = self.log.len();
        entry.time = entry.time.max(self.log.last().map_or(0, |last| last.time) + 1);
        if let Some(name) = entry.name {
            self.names.insert(name, at);
        }
        self.log.push(entry);
        at
    }

    /// How many entries a majority has.
    pub(crate) fn held(&self) -> usize {
        let mut received: Vec<usize> =
            self.line.iter().map(|member| self.places[*member].received).collect();
        received.sort_unstable_by(|one, other| other.cmp(one));
        received.get(self.majority() - 1).copied().unwrap_or(0)
    }

    /// A member is not among the others any more; what nobody else has is gone. How many entries
    /// are left, which all others must have now, and what is gone.
    pub(crate) fn leave(&mut self, member: usize) -> (usize, Vec<Entry<O, R>>) {
        self.places[member].is_in = false;
        self.line.retain(|other| *other != member);
        let most = self.line.iter().map(|other| self.places[*other].received).max().unwrap_or(0);
        let most = most.max(self.fixed);
        let gone = self.log.split_off(most);
        self.names.retain(|_, at| *at < most);
        (most, gone)
    }

    /// All processes end: what nobody has executed is gone, and no name is known any more.
    pub(crate) fn end_all(&mut self) -> Vec<Entry<O, R>> {
        let executed = self.log.iter().position(|entry| entry.reply.is_none());
        let gone = self.log.split_off(executed.unwrap_or(self.log.len()));
        self.names.clear();
        self.line.clear();
        gone
    }

    /// A member is back, with what another one had.
    pub(crate) fn join(&mut self, member: usize, received: usize) {
        self.places[member] = Place { is_up: true, is_in: true, received };
        self.line.push(member);
    }
}
