//! After the last fault everything comes back by itself: one view, every member in, every request
//! answered.

use crate::names::index_of;
use crate::world::World;
use quorba_engine::NodeSnapshot;
use quorba_engine::order::StateName;
use quorba_engine::replica::{MemberState, OutReason, PrimaryStatus};

/// What is still missing, if anything is.
pub(super) fn unsettled(world: &World, snapshots: &[Option<NodeSnapshot>]) -> Option<String> {
    let mut ring = None;
    let ordered = snapshots.iter().flatten().map(|snapshot| snapshot.order.packets[0]).max();
    for (node, snapshot) in snapshots.iter().enumerate() {
        let Some(snapshot) = snapshot else { return Some(format!("n{node} does not run")) };
        if snapshot.order.state != StateName::Operational {
            return Some(format!("n{node} is in state {:?}", snapshot.order.state));
        }
        if snapshot.order.members.len() != world.plan.nodes {
            return Some(format!("n{node} is in a view of {:?}", snapshot.order.members));
        }
        if *ring.get_or_insert(snapshot.order.ring) != snapshot.order.ring {
            return Some(format!("n{node} is in another view than n0"));
        }
        // A message that the last datagram lost is asked for when the token comes round again.
        if Some(snapshot.order.packets[2]) != ordered {
            return Some(format!("n{node} has not delivered all that its ring has ordered"));
        }
        if snapshot.primary != PrimaryStatus::Primary {
            return Some(format!("n{node} is {:?}", snapshot.primary));
        }
        if let Some(text) = members_missing(world, node, snapshot) {
            return Some(text);
        }
        for (id, counters) in snapshot.gateway.groups.iter() {
            let group = index_of(id);
            if counters.pending > 0 && world.checks.groups[group].is_alive() {
                return Some(format!("n{node} g{group} keeps {} requests", counters.pending));
            }
        }
    }
    // What a slow server still computes is in no history yet.
    let busy = world.servers.iter().find(|server| {
        let lives = world.checks.groups[index_of(server.group)].is_alive();
        server.alive && lives && (!server.running.is_empty() || !server.queue.is_empty())
    });
    if let Some(server) = busy {
        return Some(format!(
            "the server of g{} at n{} is busy",
            index_of(server.group),
            server.node
        ));
    }
    world
        .clients
        .iter()
        .find(|client| !client.is_idle() && world.checks.groups[client.plan.group].is_alive())
        .map(|client| format!("a call has no answer: {}", client.describe()))
}

fn members_missing(world: &World, node: usize, snapshot: &NodeSnapshot) -> Option<String> {
    for (id, table) in snapshot.groups.iter() {
        let group = index_of(id);
        if !world.checks.groups[group].is_alive() {
            continue;
        }
        if table.local == Some("starting its server") {
            return Some(format!("n{node} g{group} starts its server"));
        }
        if table.logged > 0 {
            let logged = table.logged;
            return Some(format!(
                "n{node} g{group} has {logged} requests that no checkpoint covers"
            ));
        }
        if table.queued > 0 {
            return Some(format!("n{node} g{group} has {} requests to execute", table.queued));
        }
        if let Some((number, ..)) = &table.endings.waiting {
            return Some(format!("n{node} g{group} has no answer to request {number}"));
        }
        for (member, state) in &table.members {
            let fine = matches!(
                state,
                MemberState::In { .. }
                    | MemberState::Out {
                        reason: OutReason::NoStateObject
                            | OutReason::TooMuchToReplay
                            | OutReason::Removed,
                        ..
                    }
            );
            if !fine {
                return Some(format!("n{node} says of g{group} that member {member} is {state:?}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use crate::transcript::Transcript;
    use crate::world::{World, ms, us};

    // A run was judged while one replica computed still what the others had answered.
    #[test]
    fn a_server_that_still_computes_is_waited_for() {
        let mut world = World::new(3, Plan::draw(3), Transcript::new(false, false));
        let work = loop {
            world.run_until(world.now + us(50));
            if let Some(work) =
                world.servers.iter().find_map(|s| s.running.values().next().cloned())
            {
                break work;
            }
        };
        world.run_until(world.now + world.plan.safety);
        world.make_peace();
        while world.unsettled().is_some() {
            world.run_until(world.now + ms(20));
        }
        let server = world.servers.iter().position(|server| server.alive).expect("all is well");
        world.servers[server].queue.push_back(work);
        let missing = world.unsettled().expect("it has something to do");
        assert!(missing.contains("is busy"), "{missing}");
        world.servers[server].alive = false;
        let missing = world.unsettled().unwrap_or_default();
        assert!(!missing.contains("is busy"), "{missing}");
    }
}
