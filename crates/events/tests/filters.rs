//! Filters against an evaluation of their own: random filters, events and timers, of which both
//! must think the same.
//!
//! The evaluation here knows nothing of programs: it walks a tree of boxes, keeps what has come in
//! maps by the path of a part, and makes lists wherever it likes.

#[path = "../../giop/tests/dice/mod.rs"]
mod dice;

use std::collections::BTreeMap;

use dice::Dice;
use quorba_events::filter::designator as d;
use quorba_events::filter::{BadFilter, Entry, Filter, FilterLimits, Header, Passed};

#[derive(Clone, Debug)]
enum Tree {
    Type(i32, i32),
    Masked([i32; 4]),
    Bits(i32, i32, Box<Tree>),
    Not(Box<Tree>),
    Global(Box<Tree>),
    All(Vec<Tree>),
    Any(Vec<Tree>),
    And(Vec<Tree>),
    Everything,
    Timer(i32, u64),
}

/// What has come, by the path of a conjunction's part.
#[derive(Default)]
struct Oracle {
    came: BTreeMap<Vec<usize>, Vec<u32>>,
    /// In which order.
    order: BTreeMap<Vec<usize>, Vec<usize>>,
    dues: BTreeMap<Vec<usize>, u64>,
}

struct Given {
    event_type: i32,
    source: i32,
    timer: Option<Vec<usize>>,
    item: u32,
}

fn child(path: &[usize], part: usize) -> Vec<usize> {
    [path, &[part]].concat()
}

impl Oracle {
    /// Whether a part accepts, and what it hands up.
    fn ask(&mut self, tree: &Tree, path: &[usize], given: &Given) -> (bool, Option<Vec<u32>>) {
        let alone = |accepts: bool| (accepts, accepts.then(|| vec![given.item]));
        match tree {
            Tree::Type(event_type, source) => {
                let fits = |one: i32, other: i32| one * other == 0 || one == other;
                alone(fits(*event_type, given.event_type) && fits(*source, given.source))
            }
            Tree::Masked([type_mask, source_mask, event_type, source]) => alone(
                given.event_type & type_mask == *event_type
                    && given.source & source_mask == *source,
            ),
            Tree::Bits(event_type, source, inner) => {
                if given.event_type & event_type == 0 || given.source & source == 0 {
                    return (false, None);
                }
                self.ask(inner, &child(path, 0), given)
            }
            Tree::Global(inner) => self.ask(inner, &child(path, 0), given),
            Tree::Not(inner) => {
                let (accepts, _) = self.ask(inner, &child(path, 0), given);
                alone(!accepts)
            }
            Tree::Everything => alone(true),
            Tree::Timer(..) => alone(given.timer.as_deref() == Some(path)),
            Tree::And(parts) => {
                for (part, inner) in parts.iter().enumerate() {
                    if !self.ask(inner, &child(path, part), given).0 {
                        return (false, None);
                    }
                }
                alone(true)
            }
            Tree::Any(parts) => {
                for (part, inner) in parts.iter().enumerate() {
                    let found = self.ask(inner, &child(path, part), given);
                    if found.0 {
                        return found;
                    }
                }
                (false, None)
            }
            Tree::All(parts) => {
                for (part, inner) in parts.iter().enumerate() {
                    let (accepts, items) = self.ask(inner, &child(path, part), given);
                    if accepts {
                        return (true, self.collect(parts.len(), path, part, items));
                    }
                }
                (false, None)
            }
        }
    }

    fn collect(
        &mut self,
        parts: usize,
        path: &[usize],
        part: usize,
        items: Option<Vec<u32>>,
    ) -> Option<Vec<u32>> {
        let place = child(path, part);
        if self.came.contains_key(&place) {
            return None;
        }
        self.came.insert(place, items?);
        let order = self.order.entry(path.to_vec()).or_default();
        order.push(part);
        if order.len() < parts {
            return None;
        }
        let order = order.clone();
        Some(order.into_iter().flat_map(|part| self.came[&child(path, part)].clone()).collect())
    }

    fn offer(&mut self, tree: &Tree, given: &Given, now: u64) -> Option<Vec<u32>> {
        let (_, items) = self.ask(tree, &[], given);
        if items.is_some() {
            self.came.clear();
            self.order.clear();
            for (path, kind, period) in timers(tree, &[]) {
                if kind == d::DEADLINE_TIMEOUT {
                    self.dues.insert(path, now + period);
                }
            }
        }
        items
    }
}

/// All timers in prefix order: path, kind, period.
fn timers(tree: &Tree, path: &[usize]) -> Vec<(Vec<usize>, i32, u64)> {
    match tree {
        Tree::Timer(kind, period) => vec![(path.to_vec(), *kind, *period)],
        Tree::Bits(_, _, inner) | Tree::Not(inner) | Tree::Global(inner) => {
            timers(inner, &child(path, 0))
        }
        Tree::All(parts) | Tree::Any(parts) | Tree::And(parts) => parts
            .iter()
            .enumerate()
            .flat_map(|(part, inner)| timers(inner, &child(path, part)))
            .collect(),
        _ => Vec::new(),
    }
}

fn entry(event_type: i32, source: i32, period: u64) -> Entry {
    Entry { event_type, source, period, rt_info: 0 }
}

/// A tree as a subscription, with the numbers of parts.
fn write(tree: &Tree, out: &mut Vec<Entry>) {
    let group = |kind: i32, parts: &[Tree], out: &mut Vec<Entry>| {
        out.push(entry(kind, i32::try_from(parts.len()).expect("few"), 0));
        parts.iter().for_each(|part| write(part, out));
    };
    match tree {
        Tree::Type(event_type, source) => out.push(entry(*event_type, *source, 0)),
        Tree::Masked([type_mask, source_mask, event_type, source]) => {
            out.push(entry(d::MASKED_TYPE, 0, 0));
            out.push(entry(*type_mask, *source_mask, 0));
            out.push(entry(*event_type, *source, 0));
        }
        Tree::Bits(event_type, source, inner) => {
            out.push(entry(d::BITMASK, 0, 0));
            out.push(entry(*event_type, *source, 0));
            write(inner, out);
        }
        Tree::Not(inner) => {
            out.push(entry(d::NEGATION, 0, 0));
            write(inner, out);
        }
        Tree::Global(inner) => {
            out.push(entry(d::GLOBAL, 0, 0));
            write(inner, out);
        }
        Tree::All(parts) => group(d::CONJUNCTION, parts, out),
        Tree::Any(parts) => group(d::DISJUNCTION, parts, out),
        Tree::And(parts) => group(d::LOGICAL_AND, parts, out),
        Tree::Everything => out.push(entry(d::NULL, 0, 0)),
        Tree::Timer(kind, period) => out.push(entry(*kind, 0, *period)),
    }
}

fn number(dice: &mut Dice, below: usize) -> i32 {
    i32::try_from(dice.roll(below)).expect("small")
}

fn event_type(dice: &mut Dice) -> i32 {
    if dice.roll(6) == 0 { 0 } else { d::UNDEFINED + number(dice, 4) }
}

fn grow(dice: &mut Dice, depth: usize) -> Tree {
    let boxed = |dice: &mut Dice| Box::new(grow(dice, depth - 1));
    let some = |dice: &mut Dice| -> Vec<Tree> {
        (0..1 + dice.roll(3)).map(|_| grow(dice, depth - 1)).collect()
    };
    match dice.roll(if depth == 0 { 6 } else { 16 }) {
        0 | 1 => Tree::Type(event_type(dice), number(dice, 3)),
        2 => Tree::Masked([3, 1, number(dice, 4), number(dice, 2)]),
        3 if dice.roll(4) == 0 => Tree::Everything,
        3 | 4 => Tree::Type(d::UNDEFINED + number(dice, 4), 0),
        5 => {
            let kind = [d::TIMEOUT, d::INTERVAL_TIMEOUT, d::DEADLINE_TIMEOUT][dice.roll(3)];
            Tree::Timer(kind, 1 + dice.roll(20) as u64)
        }
        6 => Tree::Bits(1 + number(dice, 20), 1 + number(dice, 3), boxed(dice)),
        7 => Tree::Not(boxed(dice)),
        8 => Tree::Global(boxed(dice)),
        9..=12 => Tree::All(some(dice)),
        13 | 14 => Tree::Any(some(dice)),
        _ => Tree::And(some(dice)),
    }
}

const LIMITS: FilterLimits =
    FilterLimits { entries_max: 500, depth_max: 12, held_max: 500, timers_max: 500, period_min: 1 };

/// Both are given the same events, and fire the same timers; how often something passed.
fn compare(dice: &mut Dice, tree: &Tree) -> usize {
    let mut entries = Vec::new();
    write(tree, &mut entries);
    let mut filter = Filter::<u32>::compile(&entries, LIMITS).expect("a filter");
    let types = filter.types();
    let mut oracle = Oracle::default();
    filter.arm(0);
    let timers = timers(tree, &[]);
    for (path, _, period) in &timers {
        oracle.dues.insert(path.clone(), *period);
    }
    let (mut now, mut passed) = (0, 0);
    for item in 0..40 {
        now += dice.roll(4) as u64;
        let given = match next_timer(&mut oracle, &timers, now) {
            Some((place, kind)) => {
                assert_eq!(filter.fire(now), Some((place, kind)), "{tree:?}");
                let timer = Some(timers[place].0.clone());
                Given { event_type: kind, source: 0, timer, item }
            }
            None => {
                assert_eq!(filter.fire(now), None, "{tree:?}");
                let (event_type, source) = (event_type(dice), number(dice, 3));
                Given { event_type, source, timer: None, item }
            }
        };
        let header = Header { event_type: given.event_type, source: given.source };
        let timer = given.timer.as_ref();
        let timer = timer.and_then(|path| timers.iter().position(|one| one.0 == *path));
        let accepts = filter.accepts(header, timer);
        let ours = match filter.offer(header, timer, &item, now) {
            None => None,
            Some(Passed::One { .. }) => Some(vec![item]),
            Some(Passed::Many { items, .. }) => Some(items),
        };
        let theirs = oracle.offer(tree, &given, now);
        assert_eq!(ours, theirs, "{tree:?}\n{header:?} {timer:?}");
        assert!(accepts || ours.is_none(), "what passes is accepted: {tree:?}");
        let is_named = types.as_ref().is_none_or(|types| types.contains(&header.event_type));
        assert!(
            !accepts || is_named || header.event_type == 0 || timer.is_some(),
            "what is accepted is of a type that is named: {tree:?}"
        );
        passed += usize::from(ours.is_some());
    }
    passed
}

/// The timer that has been due for longest, the first one of several, begun anew.
fn next_timer(
    oracle: &mut Oracle,
    timers: &[(Vec<usize>, i32, u64)],
    now: u64,
) -> Option<(usize, i32)> {
    let dues =
        timers.iter().enumerate().filter_map(|(at, one)| Some((oracle.dues.get(&one.0)?, at)));
    let (_, place) = dues.filter(|(due, _)| **due <= now).min()?;
    let (path, kind, period) = &timers[place];
    let mut due = oracle.dues.remove(path)?;
    if *kind != d::TIMEOUT {
        while due <= now {
            due += period;
        }
        oracle.dues.insert(path.clone(), due);
    }
    Some((place, *kind))
}

#[test]
fn a_filter_and_the_evaluation_of_its_own_agree() {
    let mut dice = Dice(0x00A1_1CE5_0000_0130);
    let mut passed = 0;
    for round in 0..6000 {
        let tree = grow(&mut dice, round % 5);
        passed += compare(&mut dice, &tree);
    }
    // Neither nothing nor everything, or nothing would be compared.
    assert!((50_000..200_000).contains(&passed), "{passed}");
}

fn compiled(entries: &[(i32, i32)]) -> Result<Filter<u32>, BadFilter> {
    let entries: Vec<Entry> = entries.iter().map(|one| entry(one.0, one.1, 5)).collect();
    Filter::compile(&entries, FilterLimits { period_min: 5, ..LIMITS })
}

fn lets(filter: &mut Filter<u32>, event_type: i32, source: i32) -> Option<usize> {
    match filter.offer(Header { event_type, source }, None, &1, 0)? {
        Passed::One { .. } => Some(1),
        Passed::Many { items, .. } => Some(items.len()),
    }
}

#[test]
fn a_group_without_a_number_goes_to_the_next_group() {
    // 16 and 17, or 18, or else what is not 19; TAO's basic builder would know the first only.
    let entries = [
        (d::CONJUNCTION, 0),
        (16, 0),
        (17, 0),
        (d::DISJUNCTION, 0),
        (18, 0),
        (d::LOGICAL_AND, 0),
        (d::NEGATION, 0),
        (19, 0),
        (20, 7),
    ];
    let mut filter = compiled(&entries).expect("a filter");
    assert_eq!(lets(&mut filter, 16, 1), None);
    assert_eq!(lets(&mut filter, 18, 1), Some(1), "and what has come of 16 is forgotten");
    assert_eq!(lets(&mut filter, 17, 1), None);
    assert_eq!(lets(&mut filter, 16, 1), Some(2));
    assert_eq!(lets(&mut filter, 20, 7), Some(1));
    assert_eq!(lets(&mut filter, 19, 7), None);
}

#[test]
fn what_stands_alone_are_alternatives_and_nothing_is_nothing() {
    let mut filter = compiled(&[(16, 0), (17, 2)]).expect("a filter");
    assert_eq!(lets(&mut filter, 16, 9), Some(1));
    assert_eq!(lets(&mut filter, 17, 2), Some(1));
    assert_eq!(lets(&mut filter, 17, 1), None);
    assert_eq!(lets(&mut compiled(&[]).expect("a filter"), 16, 1), None);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let not = (d::NEGATION, 0);
    let cases: [(&[(i32, i32)], BadFilter); 7] = [
        (&[not], BadFilter::Cut),
        (&[(d::CONJUNCTION, 3), (16, 0), (17, 0)], BadFilter::Cut),
        (&[(d::MASKED_TYPE, 0), (1, 1)], BadFilter::Cut),
        (&[(d::BITMASK, 0), (1, 1)], BadFilter::Cut),
        (&[(d::DISJUNCTION, -1), (16, 0)], BadFilter::Count),
        (&[not; 13], BadFilter::TooDeep),
        (&[(16, 0); 501], BadFilter::TooLarge),
    ];
    for (entries, fault) in cases {
        assert_eq!(compiled(entries).err(), Some(fault), "{entries:?}");
    }
    let short = [entry(d::INTERVAL_TIMEOUT, 0, 4)];
    let limits = FilterLimits { period_min: 5, ..LIMITS };
    assert_eq!(Filter::<u32>::compile(&short, limits).err(), Some(BadFilter::Period));
    // Conjunctions in conjunctions hold everything at each level.
    let mut nested = vec![(d::CONJUNCTION, 1); 11];
    nested.push((d::CONJUNCTION, 100));
    nested.extend([(16, 0); 100]);
    assert_eq!(compiled(&nested).err(), Some(BadFilter::TooDeep));
    nested.drain(..2);
    assert_eq!(compiled(&nested).err(), Some(BadFilter::HoldsTooMuch));
}
