//! What must hold of events and subscriptions when all has come to rest.
//!
//! Invariant: nothing is judged that the documents do not promise of a reliable channel: who pushes
//! may have pushed again, and who is pushed to may have heard it more than once.

use super::peers::{Consumer, Stage};
use super::plan::Kind;
use super::world::{EACH, World};
use crate::ordered::Ordered;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn conclude(world: &mut World) {
    // All that was ordered comes to everybody.
    world.is_over = true;
    world.catch_up();
    let alike = world.alike(|member| world.members[member].service.state());
    let mut wrong = Vec::from_iter(alike);
    for (index, consumer) in world.consumers.iter().enumerate() {
        let all = [kept(world, consumer), pulled(world, consumer), wanted(world, consumer)];
        let more = [once(consumer), in_order(world, consumer)];
        for (name, text) in all.into_iter().chain(more).flatten() {
            wrong.push((name, format!("consumer {index}, {:?}: {text}", consumer.kind)));
        }
    }
    wrong.into_iter().for_each(|(name, text)| world.violate(name, text));
}

type Wrong = Option<(&'static str, String)>;

fn is_for(consumer: &Consumer, event_type: i32) -> bool {
    consumer.wanted.is_none_or(|wanted| wanted == event_type)
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
    if consumer.from > 0 || consumer.wanted.is_some() || !matches!(consumer.stage, Stage::In(_)) {
        return None;
    }
    let first = world.suppliers.len() as u32 * EACH;
    let got: BTreeSet<u32> = consumer.got.iter().copied().filter(|one| *one > first).collect();
    let lost = world.source.given as usize - got.len();
    let text = format!("{lost} of a pulled supplier are lost, {} leaders ended", world.leader_ends);
    (lost > world.leader_ends + consumer.restless).then_some(("events kept", text))
}

/// Nobody is given what it does not want, or what was pushed after it had left.
fn wanted(world: &World, consumer: &Consumer) -> Wrong {
    let all: BTreeMap<u32, (u64, i32)> =
        (0..).zip(&world.pushed).map(|(at, one)| (one.number, (at, one.event_type))).collect();
    let first = world.suppliers.len() as u32 * EACH;
    let wrong = consumer.got.iter().find(|number| match all.get(number) {
        Some((at, event_type)) => *at >= consumer.until || !is_for(consumer, *event_type),
        None => **number <= first || consumer.wanted.is_some(),
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
