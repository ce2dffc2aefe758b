//! What must hold of reports and consumers when all has come to rest.
//!
//! Invariant: nothing is judged that is not promised: what only a member had that was cut off may
//! have been given to somebody, and who is given something may have had it from another member.

use super::consumers::{Consumer, Stage};
use super::model::{Connection, Model};
use super::operation::Op;
use super::world::World;
use crate::ordered::Ordered;
use std::collections::{BTreeMap, BTreeSet};

type Wrong = Option<(&'static str, String)>;

pub(crate) fn conclude(world: &mut World) {
    world.is_over = true;
    world.catch_up();
    let mut wrong = Vec::from_iter(world.alike(|at| world.members[at].notifier.state()));
    let mut model = Model::new(world.plan.waiting_max);
    for entry in &world.group.order.log {
        model.take(&entry.op, entry.reply.as_ref().expect("it was executed"));
    }
    wrong.extend(model.wrong.take().map(|text| ("reports answered", text)));
    wrong.extend(cut_off(world, &model));
    let unaware = model.to_part.iter().find(|id| !world.parted.contains(id));
    wrong.extend(unaware.map(|id| ("cut off", format!("nobody tells whoever has {id}"))));
    let lost = lost(world);
    for (index, consumer) in world.consumers.iter().enumerate() {
        let mine = |one: &(&u64, &Connection)| one.1.consumer == index;
        let connection = model.connections.iter().find(mine).map(|(_, one)| one);
        let Some(connection) = connection else { continue };
        let due = &connection.due;
        let all = [
            kept(consumer, connection),
            told(&consumer.got, due, &lost),
            in_order(&consumer.got, due, &lost),
        ];
        let found = all.into_iter().flatten();
        wrong.extend(found.map(|(name, text)| (name, format!("consumer {index}: {text}"))));
    }
    let (got, due) = (&world.manager.got, &model.for_manager);
    let all = [missing(got, due), in_order(got, due, &lost)];
    let found = all.into_iter().flatten();
    wrong.extend(found.map(|(name, text)| (name, format!("the manager: {text}"))));
    wrong.into_iter().for_each(|(name, text)| world.violate(name, text));
}

/// What was reported at a place in the order that is gone.
fn lost(world: &World) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    for op in &world.group.lost {
        match op {
            Op::Report(all) => lost.extend(all.iter().map(|told| told.identity())),
            Op::News(item) => drop(lost.insert(item.incident.clone())),
            _ => {}
        }
    }
    lost
}

/// Nobody is cut off in place of another one.
fn cut_off(world: &World, model: &Model) -> Wrong {
    let other = model.cut_off.iter().find(|cut| !world.meant.contains(cut))?;
    Some(("cut off", format!("consumer {} was cut off, and was not meant", other.1)))
}

fn missing(got: &[String], due: &[String]) -> Wrong {
    let got: BTreeSet<&String> = got.iter().collect();
    let mut missing = due.iter().filter(|one| !got.contains(one));
    let first = missing.next()?;
    let more = missing.count();
    Some(("reports kept", format!("{first:?} is not there, {more} more")))
}

/// Who is connected was given what it wants.
fn kept(consumer: &Consumer, connection: &Connection) -> Wrong {
    let is_in = matches!(consumer.stage, Stage::In(_)) && connection.is_open;
    missing(&consumer.got, &connection.due).filter(|_| is_in)
}

/// Nobody is told what it does not want, or what is no news.
fn told(got: &[String], due: &[String], lost: &BTreeSet<String>) -> Wrong {
    let due: BTreeSet<&String> = due.iter().collect();
    let wrong = got.iter().find(|one| !due.contains(one) && !lost.contains(*one))?;
    Some(("reports wanted", format!("it was told {wrong:?}")))
}

/// For the first time reports come in their order.
fn in_order(got: &[String], due: &[String], lost: &BTreeSet<String>) -> Wrong {
    let places: BTreeMap<&String, usize> = due.iter().zip(0..).collect();
    let mut seen = BTreeSet::new();
    let mut last = 0;
    for one in got.iter().filter(|one| !lost.contains(*one)) {
        let Some(place) = places.get(one) else { continue };
        if seen.insert(one) && *place < last {
            return Some(("reports order", format!("{one:?} came behind {:?}", due[last])));
        }
        last = last.max(*place);
    }
    None
}
