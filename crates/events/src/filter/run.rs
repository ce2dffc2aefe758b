//! Asking a filter.
//!
//! As in TAO: of alternatives, and of the parts of a conjunction, the first that accepts an event
//! has it; a part of a conjunction that has come keeps what came first; when something passes,
//! everything begins anew; 0 in an event's type or source stands for any, as in a subscription.
//!
//! Invariant: `accepts` and `offer` agree on whether an event is accepted.

use super::{Filter, Header, Kind, Memory, Node, Passed, Repeat, Timer};
use quorba_base::canary;

/// What a part hands to the one that it is a part of.
#[derive(Clone, Copy)]
enum Emitted {
    Nothing,
    Item(i32),
    /// What a conjunction has in its store.
    Store(usize, i32),
}

const fn is_same(wanted: i32, there: i32) -> bool {
    wanted == 0 || there == 0 || wanted == there
}

const fn fits(wanted: Header, there: Header) -> bool {
    is_same(wanted.event_type, there.event_type) && is_same(wanted.source, there.source)
}

const fn has_bits(mask: Header, there: Header) -> bool {
    mask.event_type & there.event_type != 0 && mask.source & there.source != 0
}

const fn has_value(mask: Header, value: Header, there: Header) -> bool {
    mask.event_type & there.event_type == value.event_type
        && mask.source & there.source == value.source
}

/// What is offered.
struct Offer<'i, T> {
    header: Header,
    timer: Option<usize>,
    item: &'i T,
}

impl<T: Clone> Filter<T> {
    fn node(&self, index: usize) -> Option<Node> {
        self.nodes.get(index).copied()
    }

    /// Whether an event, or the firing of one of its timers, is accepted: let through, or held.
    #[must_use]
    pub fn accepts(&self, header: Header, timer: Option<usize>) -> bool {
        self.does_accept(0, header, timer)
    }

    fn does_accept(&self, index: usize, header: Header, timer: Option<usize>) -> bool {
        let Some(node) = self.node(index) else { return false };
        match node.kind {
            Kind::Type(wanted) => fits(wanted, header),
            Kind::Masked { mask, value } => has_value(mask, value, header),
            Kind::Bits(mask) => {
                has_bits(mask, header) && self.does_accept(index + 1, header, timer)
            }
            Kind::Not => !self.does_accept(index + 1, header, timer),
            Kind::Everything => true,
            Kind::Timer(number) => timer == Some(number),
            Kind::Every => self.parts(index, node).all(|at| self.does_accept(at, header, timer)),
            Kind::Any | Kind::Conjunction { .. } => {
                self.parts(index, node).any(|at| self.does_accept(at, header, timer))
            }
        }
    }

    /// Where the parts of a group begin.
    fn parts(&self, index: usize, node: Node) -> impl Iterator<Item = usize> {
        let first = (index + 1 < node.end).then_some(index + 1);
        core::iter::successors(first, move |at| {
            self.node(*at).map(|part| part.end).filter(|next| *next < node.end)
        })
    }

    /// Offers an event, or the firing of a timer; what passes, if something does.
    pub fn offer(
        &mut self,
        header: Header,
        timer: Option<usize>,
        item: &T,
        now: u64,
    ) -> Option<Passed<T>> {
        let (_, emitted) = self.walk(0, &Offer { header, timer, item });
        let passed = match emitted {
            Emitted::Nothing => return None,
            Emitted::Item(rt_info) => Passed::One { rt_info },
            Emitted::Store(store, rt_info) => {
                let items = self.stores.get_mut(store)?.drain(..).collect();
                Passed::Many { rt_info, items }
            }
        };
        self.clear(now);
        Some(passed)
    }

    fn walk(&mut self, index: usize, offer: &Offer<'_, T>) -> (bool, Emitted) {
        let Some(node) = self.node(index) else { return (false, Emitted::Nothing) };
        let is_accepted = match node.kind {
            Kind::Type(wanted) => fits(wanted, offer.header),
            Kind::Masked { mask, value } => has_value(mask, value, offer.header),
            Kind::Everything => true,
            Kind::Timer(number) => offer.timer == Some(number),
            Kind::Not => !self.walk(index + 1, offer).0,
            Kind::Bits(mask) => {
                if has_bits(mask, offer.header) {
                    return self.walk(index + 1, offer);
                }
                false
            }
            Kind::Every => self.is_every(index, node, offer),
            Kind::Any => {
                return self
                    .first(index, node, offer)
                    .map_or((false, Emitted::Nothing), |found| (true, found.1));
            }
            Kind::Conjunction { marks, store } => {
                return match self.first(index, node, offer) {
                    None => (false, Emitted::Nothing),
                    Some((part, emitted)) => {
                        let mark = marks + part;
                        (true, self.collect(index, node, (mark, marks, store), emitted, offer))
                    }
                };
            }
        };
        let emitted = if is_accepted { Emitted::Item(node.rt_info) } else { Emitted::Nothing };
        (is_accepted, emitted)
    }

    fn is_every(&mut self, index: usize, node: Node, offer: &Offer<'_, T>) -> bool {
        let mut at = index + 1;
        while at < node.end {
            if !self.walk(at, offer).0 {
                return false;
            }
            at = self.node(at).map_or(node.end, |part| part.end);
        }
        true
    }

    /// The first part that accepts: which one, and what it hands on.
    fn first(
        &mut self,
        index: usize,
        node: Node,
        offer: &Offer<'_, T>,
    ) -> Option<(usize, Emitted)> {
        let (mut at, mut part) = (index + 1, 0);
        while at < node.end {
            if let (true, emitted) = self.walk(at, offer) {
                return Some((part, emitted));
            }
            at = self.node(at).map_or(node.end, |part| part.end);
            part += 1;
        }
        None
    }

    /// Puts what a part has handed on to what has come; everything, if it was the last.
    fn collect(
        &mut self,
        index: usize,
        node: Node,
        (mark, first_mark, store): (usize, usize, usize),
        emitted: Emitted,
        offer: &Offer<'_, T>,
    ) -> Emitted {
        if matches!(emitted, Emitted::Nothing) {
            return Emitted::Nothing;
        }
        match self.marks.get_mut(mark) {
            Some(mark) if !*mark => *mark = true,
            _ => return Emitted::Nothing,
        }
        let rt_info = match emitted {
            Emitted::Nothing => return Emitted::Nothing,
            Emitted::Item(rt_info) => {
                if let Some(store) = self.stores.get_mut(store) {
                    store.push(offer.item.clone());
                }
                rt_info
            }
            Emitted::Store(inner, rt_info) => {
                let mut items = self.stores.get_mut(inner).map(core::mem::take).unwrap_or_default();
                if let Some(store) = self.stores.get_mut(store) {
                    store.append(&mut items);
                }
                if let Some(inner) = self.stores.get_mut(inner) {
                    *inner = items;
                }
                rt_info
            }
        };
        let parts = self.parts(index, node).count();
        let marks = self.marks.get(first_mark..first_mark + parts).unwrap_or(&[]);
        if marks.iter().all(|mark| *mark) {
            Emitted::Store(store, rt_info)
        } else {
            Emitted::Nothing
        }
    }

    /// Forgets what has come; deadlines begin anew.
    pub fn clear(&mut self, now: u64) {
        if !canary!(KeepsMarks) {
            self.marks.fill(false);
        }
        self.stores.iter_mut().for_each(alloc::vec::Vec::clear);
        let mut has_deadlines = false;
        for timer in self.timers.iter_mut().filter(|timer| timer.repeat == Repeat::Deadline) {
            timer.due = Some(now.saturating_add(timer.period));
            has_deadlines = true;
        }
        if has_deadlines {
            self.sort_timers();
        }
    }

    /// Notes anew which timers are armed, and when each is due.
    fn sort_timers(&mut self) {
        let Self { timers, order, .. } = self;
        order.clear();
        order.extend((0..).zip(&*timers).filter(|(_, one)| one.due.is_some()).map(|(at, _)| at));
        order.sort_unstable_by_key(|number| (due_of(timers, *number), *number));
    }

    /// What it remembers.
    pub(crate) fn memory(&self) -> Memory<T> {
        let dues = self.timers.iter().map(|timer| timer.due).collect();
        Memory { marks: self.marks.clone(), stores: self.stores.clone(), dues }
    }

    /// Remembers what another one with the same program did; whatever fits not is left out.
    pub(crate) fn remember(&mut self, memory: Memory<T>) {
        for (mark, there) in self.marks.iter_mut().zip(memory.marks) {
            *mark = there;
        }
        for (store, items) in self.stores.iter_mut().zip(memory.stores) {
            store.clear();
            store.extend(items);
        }
        for (timer, due) in self.timers.iter_mut().zip(memory.dues) {
            timer.due = due;
        }
        self.sort_timers();
    }

    /// All that conjunctions hold.
    pub fn held(&self) -> impl Iterator<Item = &T> {
        self.stores.iter().flatten()
    }

    /// Begins all timers.
    pub fn arm(&mut self, now: u64) {
        self.timers.iter_mut().for_each(|timer| timer.due = Some(now.saturating_add(timer.period)));
        self.sort_timers();
    }

    /// When the next timer is due.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        self.order.first().and_then(|number| due_of(&self.timers, *number))
    }

    /// The timer that has been due for longest, and what it is called in events. It begins anew;
    /// times that have passed meanwhile are left out.
    pub fn fire(&mut self, now: u64) -> Option<(usize, i32)> {
        let number = self.order.first().copied()?;
        let timer = self.timers.get_mut(number)?;
        let due = timer.due.take_if(|due| *due <= now)?;
        let event_type = timer.event_type;
        if timer.repeat != Repeat::Never {
            let rounds = 1 + now.saturating_sub(due) / timer.period.max(1);
            timer.due = Some(due.saturating_add(timer.period.saturating_mul(rounds)));
        }
        let again = timer.due.map(|due| (Some(due), number));
        self.order.remove(0);
        if let Some(again) = again {
            let before = |other: &usize| (due_of(&self.timers, *other), *other) < again;
            let at = self.order.partition_point(before);
            self.order.insert(at, number);
        }
        Some((number, event_type))
    }
}

fn due_of(timers: &[Timer], number: usize) -> Option<u64> {
    timers.get(number).and_then(|timer| timer.due)
}
