//! The properties of extended virtual synchrony (Moser94), one per file, and what the ring
//! promises besides.
//!
//! What they are not: part of the simulation; a checker looks and changes nothing. Invariant: each
//! can fail; the canaries show it.

mod basic_delivery;
mod causal_delivery;
mod configuration_changes;
mod failure_atomicity;
#[cfg(test)]
mod forged;
mod held;
mod memory;
mod safe_delivery;
mod self_delivery;
mod total_order;

pub(super) use memory::inspect;
pub(super) use safe_delivery::safe_now;

use super::life::History;
use super::world::RingWorld;

/// Looks at the whole history; the first thing that is wrong is enough.
pub(super) fn conclude(world: &mut RingWorld) {
    if let Err((invariant, text)) = judge(world) {
        world.violate(invariant, text);
    }
}

fn judge(world: &RingWorld) -> Result<(), (&'static str, String)> {
    let named = |name| move |text| (name, text);
    let history =
        History::new(world.plan.nodes, &world.lives).map_err(named("configuration changes"))?;
    basic_delivery::check(&history).map_err(named("basic delivery"))?;
    total_order::check(&history).map_err(named("total order"))?;
    configuration_changes::check(&history).map_err(named("configuration changes"))?;
    self_delivery::check(&history).map_err(named("self-delivery"))?;
    failure_atomicity::check(&history).map_err(named("failure atomicity"))?;
    causal_delivery::check(&history).map_err(named("causal delivery"))?;
    safe_delivery::check(&history).map_err(named("safe delivery"))?;
    held::check(&history).map_err(named("held"))
}

/// What is not given back yet, or not held yet.
pub(super) fn restless(world: &RingWorld) -> Option<String> {
    let up = (0..world.plan.nodes).map(|node| world.life(node));
    let unheld = up.map(held::all_are_held).find_map(Result::err);
    memory::check_quiet(world).err().or(unheld)
}
