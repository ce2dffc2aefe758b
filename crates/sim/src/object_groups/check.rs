//! What must hold of groups and objects when all has come to rest, and after all have ended.
//!
//! Invariant: an object that no group has is there for a reason that was written down.

use super::domain::{Around, OWN, Way};
use super::model::{Known, Model, id_of};
use super::operation::{Heard, Op, Question, home};
use super::values::{Key, Value};
use super::world::World;
use crate::ordered::Ordered;
use quorba_manager::{Limits, Manager};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

type Wrong = Option<(&'static str, String)>;

pub(crate) fn conclude(world: &mut World) {
    world.is_over = true;
    world.catch_up();
    let mut wrong = Vec::from_iter(world.alike(|at| world.members[at].manager.state()));
    let model = judged(world);
    wrong.extend(model.wrong.iter().cloned());
    wrong.extend(there(world, &model));
    wrong.extend(objects(world, &model));
    if wrong.is_empty() {
        wrong.extend(remembered(world, &model));
    }
    wrong.into_iter().for_each(|(name, text)| world.violate(name, text));
}

/// What everything that was ordered means.
fn judged(world: &World) -> Model {
    let mut model = Model::new();
    for (place, entry) in world.group.order.log.iter().enumerate() {
        let reply = entry.reply.as_ref().expect("it was executed");
        let did = world.around.borrow().did(place);
        model.take(place, &entry.op, &reply.heard, &did);
    }
    model
}

/// The groups of the domain are those of the manager.
fn there(world: &World, model: &Model) -> Wrong {
    let around = world.around.borrow();
    let all = around.table.groups.iter().filter_map(|(name, group)| Some((id_of(name)?, group)));
    let mut found: BTreeMap<u64, (Vec<String>, u32)> =
        all.map(|(id, group)| (id, (group.members(), group.version()))).collect();
    for (id, known) in model.groups.iter().filter(|(_, known)| !known.members.is_empty()) {
        let now = found.remove(id);
        if now != Some((known.members.clone(), known.version)) {
            return Some(("groups", format!("group {id} is {now:?} instead of {known:?}")));
        }
    }
    found.retain(|id, _| !model.ghosts.contains(id));
    let (id, left) = found.pop_first()?;
    Some(("groups", format!("group {id} is left behind: {left:?}")))
}

/// Objects that factories made are those of the groups.
fn objects(world: &World, model: &Model) -> Wrong {
    if !model.ghosts.is_empty() {
        return None;
    }
    let around = world.around.borrow();
    let made: BTreeSet<u64> = around.table.made.values().flatten().copied().collect();
    let due: usize = model
        .groups
        .values()
        .filter(|known| !known.is_local)
        .map(|known| known.members.iter().filter(|at| !known.added.contains_key(*at)).count())
        .sum();
    let left = made.iter().filter(|serial| around.left.contains_key(serial)).count();
    let is_right = made.len() - left == due || model.is_blind;
    let text =
        format!("{} objects are there, {left} of them explained, {due} in groups", made.len());
    (!is_right).then_some(("objects", text))
}

fn ask(manager: &mut Manager<Way>, op: Op) -> Heard {
    op.execute(manager).heard
}

/// What a manager says of a group.
fn shown(manager: &mut Manager<Way>, id: u64) -> (Heard, Heard, Heard) {
    let locations = ask(manager, Op::Ask(id, Question::Locations));
    let properties = ask(manager, Op::Ask(id, Question::Properties));
    (locations, properties, ask(manager, Op::Ask(id, Question::Reference)))
}

/// A manager without memory finds everything again.
fn remembered(world: &mut World, model: &Model) -> Wrong {
    let around = Rc::clone(&world.around);
    around.borrow_mut().begin(world.group.order.log.len(), None);
    let mut anew = Manager::new(Way(around), OWN, &home(), Limits::default());
    let old = &mut world.members[0].manager;
    for id in model.groups.keys() {
        let (was, is) = (shown(old, *id), shown(&mut anew, *id));
        if was != is {
            return Some(("memory", format!("group {id} was {was:?} and is {is:?}")));
        }
    }
    for of in super::world::TYPES {
        let of = Op::OfType(of.to_owned());
        let (was, is) = (ask(old, of.clone()), ask(&mut anew, of));
        if was != is {
            return Some(("memory", format!("the type was {was:?} and is {is:?}")));
        }
    }
    None
}

/// A group that has fewer members than it must, although it can have more.
pub(crate) fn short(world: &World, leader: usize) -> Option<String> {
    let state = world.members[leader].manager.state();
    let mut manager = Manager::new(Way(Rc::clone(&world.around)), OWN, &home(), Limits::default());
    manager.take_over(&state).expect("a state");
    world.known.keys().find_map(|id| {
        let Heard::Places(at) = ask(&mut manager, Op::Ask(*id, Question::Locations)) else {
            return None;
        };
        let Heard::Properties(values) = ask(&mut manager, Op::Ask(*id, Question::Properties))
        else {
            return None;
        };
        let known = Known { creation: values, members: at, ..Known::default() };
        let least = known.minimum().min(most(&known, *id, &world.around));
        let is_short = known.is_by_infrastructure()
            && !known.members.is_empty()
            && known.members.len() < least;
        is_short.then(|| format!("group {id} has {:?}, and must have {least}", known.members))
    })
}

/// As many members as the group can have, as far as that is clear.
fn most(known: &Known, id: u64, around: &Rc<RefCell<Around>>) -> usize {
    let around = around.borrow();
    let name = format!("object-{id}");
    let is_foreign =
        around.table.groups.get(&name).is_some_and(|it| it.keys.contains_key("connect"));
    let mut at: BTreeSet<&String> = known.members.iter().collect();
    match (is_foreign, known.creation.get(&Key::Factories)) {
        (true, Some(Value::Factories(all))) => at.extend(all.iter().map(|(_, node)| node)),
        (false, _) => at.extend(around.table.nodes.keys()),
        _ => {}
    }
    at.len()
}
