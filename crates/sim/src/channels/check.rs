//! What must hold of events and subscriptions when all has come to rest.
//!
//! Invariant: nothing is judged that the documents do not promise: who pushes may have pushed
//! again, and who is pushed to may have heard it more than once. Of a channel that keeps no events
//! what a member took is judged that led to the end.

use super::operation::{Op, Reply};
use super::peers::{Consumer, Stage};
use super::plan::{Kind, PERIOD_US, Wants};
use super::world::{EACH, World};
use crate::ordered::Ordered;
use quorba_events::{Decision, Proposal};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn conclude(world: &mut World) {
    // All that was ordered comes to everybody.
    world.is_over = true;
    world.catch_up();
    let alike = world.alike(|member| world.members[member].service.state());
    let mut wrong = Vec::from_iter(alike);
    let is_reliable = world.plan.is_reliable;
    for (index, consumer) in world.consumers.iter().enumerate() {
        let all = [wanted(world, index), once(consumer), timer(world, index)];
        let kept = if is_reliable {
            [kept(world, consumer), pulled(world, consumer), exact(world, index)]
        } else {
            [kept_by_leader(world, index), None, None]
        };
        let more = [in_order(world, consumer).filter(|_| is_reliable)];
        for (name, text) in all.into_iter().chain(kept).chain(more).flatten() {
            wrong.push((name, format!("consumer {index}, {:?}: {text}", consumer.kind)));
        }
    }
    wrong.into_iter().for_each(|(name, text)| world.violate(name, text));
}

type Wrong = Option<(&'static str, String)>;

/// Whether it is given each event that it wants alone.
fn is_for(consumer: &Consumer, event_type: i32) -> bool {
    consumer.wants.lets(event_type) && !matches!(consumer.wants, Wants::Both(..))
}

/// Who is connected was given what was acknowledged since.
fn kept(world: &World, consumer: &Consumer) -> Wrong {
    if !matches!(consumer.stage, Stage::In(_)) {
        return None;
    }
    let got: BTreeSet<u32> = consumer.got.iter().copied().collect();
    let mine = world.pushed.iter().skip(consumer.from as usize);
    let mut missing = mine.filter(|one| {
        one.is_acknowledged && is_for(consumer, one.event_type) && !got.contains(&one.number)
    });
    // Who moves to and fro between gateways too quickly may look like two that share a proxy, and
    // is not given again then what its last gateway has lost.
    let first = missing.nth(consumer.restless)?;
    let more = missing.count();
    Some((
        "events kept",
        format!("{} was acknowledged and is not there, {more} more", first.number),
    ))
}

/// Of a supplier that is pulled, no more is lost than leaders have ended.
fn pulled(world: &World, consumer: &Consumer) -> Wrong {
    let is_all = consumer.wants == Wants::All;
    if consumer.from > 0 || !is_all || !matches!(consumer.stage, Stage::In(_)) {
        return None;
    }
    let first = world.suppliers.len() as u32 * EACH;
    let got: BTreeSet<u32> = consumer.got.iter().copied().filter(|one| *one > first).collect();
    let lost = world.source.given as usize - got.len();
    let text = format!("{lost} of a pulled supplier are lost, {} leaders ended", world.leader_ends);
    (lost > world.leader_ends + consumer.restless).then_some(("events kept", text))
}

/// Nobody is given what it does not want, or what was pushed after it had left; past the order
/// that is what a member took that knew that it had.
fn wanted(world: &World, index: usize) -> Wrong {
    let consumer = &world.consumers[index];
    let left = places(world, index).map_or(usize::MAX, |(_, left)| left);
    let is_late = |at: u64, number: u32| {
        let mut taken = world.taken_past.iter().filter(|one| one.number == number);
        at >= consumer.until && taken.all(|one| one.received > left)
    };
    let all: BTreeMap<u32, (u64, i32)> =
        (0..).zip(&world.pushed).map(|(at, one)| (one.number, (at, one.event_type))).collect();
    let first = world.suppliers.len() as u32 * EACH;
    let wrong = consumer.got.iter().find(|number| match all.get(number) {
        Some((at, event_type)) => is_late(*at, **number) || !consumer.wants.lets(*event_type),
        None => **number <= first || !consumer.wants.lets(0),
    })?;
    Some(("events wanted", format!("it was given {wrong}")))
}

/// Who leaves out numbers that it has seen is given each event once.
fn once(consumer: &Consumer) -> Wrong {
    let mut seen = BTreeSet::new();
    let again = consumer.got.iter().find(|number| !seen.insert(**number))?;
    (consumer.kind == Kind::Numbered).then(|| ("events once", format!("{again} came again")))
}

/// For the first time events come in the order of their supplier.
fn in_order(world: &World, consumer: &Consumer) -> Wrong {
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for number in &consumer.got {
        let supplier = number / EACH;
        let is_pulled = supplier as usize == world.suppliers.len();
        let before = last.entry(supplier).or_default();
        // Who was cut off may order late what it had pulled.
        if seen.insert(*number) && number < before && !(is_pulled && world.group.cuts > 0) {
            return Some(("events order", format!("{number} came behind {before}")));
        }
        *before = *number.max(before);
    }
    None
}

/// Where in the order a consumer is connected, and where its connection ends.
fn places(world: &World, index: usize) -> Option<(usize, usize)> {
    let log = &world.group.order.log;
    let (joined, its) = log.iter().enumerate().find_map(|(at, entry)| {
        let name = match &entry.reply {
            Some(Reply::Name(name)) => name,
            _ => return None,
        };
        matches!(entry.op, Op::Join(_, of, _) if of == index).then_some((at, name))
    })?;
    let is_leave = |op: &Op| matches!(op, Op::Leave(_, of) if of == its);
    let left = log.iter().position(|entry| is_leave(&entry.op)).unwrap_or(log.len());
    Some((joined, left))
}

/// What an entry of the order brings: a number, and its type.
fn brings(op: &Op) -> Option<(u32, i32)> {
    match op {
        Op::Push(_, event_type, number) => Some((*number, *event_type)),
        Op::Decide(Decision::Proposal(_, Proposal::Pulled { data, .. })) => {
            Some((data.get::<u32>()?, 0))
        }
        _ => None,
    }
}

/// Who is pushed to by a reliable channel was given what an evaluation of its own of the order
/// says; who is told numbers exactly that, in that order. The others may have been given before
/// what a member took that was cut off, and what was ordered in another place then.
fn exact(world: &World, index: usize) -> Wrong {
    let consumer = &world.consumers[index];
    let (joined, left) = places(world, index).filter(|_| consumer.kind != Kind::Pull)?;
    let mut wanted: Vec<u32> = Vec::new();
    let mut holds: Option<(u32, i32)> = None;
    let taken = world.group.order.log[joined..left].iter();
    for (number, event_type) in
        taken.filter(|entry| entry.reply == Some(Reply::Done)).filter_map(|it| brings(&it.op))
    {
        match (consumer.wants.lets(event_type), consumer.wants, holds) {
            (false, ..) => {}
            (true, Wants::Both(..), None) => holds = Some((number, event_type)),
            (true, Wants::Both(..), Some((_, of))) if of == event_type => {}
            (true, Wants::Both(..), Some((before, _))) => {
                wanted.extend([before, number]);
                holds = None;
            }
            (true, ..) => wanted.push(number),
        }
    }
    let (got, is_in) = (&consumer.got, matches!(consumer.stage, Stage::In(_)));
    if consumer.kind != Kind::Numbered {
        let got: BTreeSet<u32> = got.iter().copied().collect();
        let missing = wanted.iter().find(|number| !got.contains(number)).filter(|_| is_in)?;
        return Some(("events exact", format!("{missing} is not there")));
    }
    // Who leaves loses what waits for it.
    let is_right = if is_in { *got == wanted } else { wanted.starts_with(got) };
    if is_right {
        return None;
    }
    let at = got.iter().zip(&wanted).position(|(one, other)| one != other);
    let at = at.unwrap_or(got.len().min(wanted.len()));
    let (has, lacks) = (got.get(at), wanted.get(at));
    Some(("events exact", format!("{has:?} stands where {lacks:?} belongs, number {at}")))
}

/// A channel that keeps no events passes on what its leader took while it led to the end, to who
/// was connected there.
fn kept_by_leader(world: &World, index: usize) -> Wrong {
    let consumer = &world.consumers[index];
    if !matches!(consumer.stage, Stage::In(_)) || consumer.kind == Kind::Pull {
        return None;
    }
    let (joined, _) = places(world, index)?;
    let leader = world.leader()?;
    let life = (world.members[leader].boot, world.members[leader].term);
    let got: BTreeSet<u32> = consumer.got.iter().copied().collect();
    let mut mine = world.taken_past.iter().filter(|one| one.life == life && one.received > joined);
    let missing =
        mine.find(|one| is_for(consumer, one.event_type) && !got.contains(&one.number))?;
    Some(("events kept", format!("{} was taken by who leads and is not there", missing.number)))
}

/// A timer fires once in each period at most, and goes on whoever leads.
fn timer(world: &World, index: usize) -> Wrong {
    let consumer = &world.consumers[index];
    if consumer.wants != Wants::Timer {
        let text = format!("{} times a timer that it has not", consumer.fired);
        return (consumer.fired > 0).then_some(("events wanted", text));
    }
    if !matches!(consumer.stage, Stage::In(_)) {
        return None;
    }
    let (joined, _) = places(world, index)?;
    let since_us = world.group.order.log[joined].time / 10;
    let most = world.group.now_us.saturating_sub(since_us) / PERIOD_US + 1;
    let fired = consumer.fired;
    // What is pushed again was counted again.
    if consumer.kind == Kind::Numbered && fired > most {
        return Some(("events once", format!("its timer fired {fired} times, {most} at most")));
    }
    // All was quiet for 2 s in the end.
    let least = 2_000_000 / PERIOD_US - 2;
    (fired < least)
        .then(|| ("events kept", format!("its timer fired {fired} times, {least} at least")))
}
