//! An operator who gives up requests that servers will never answer.
//!
//! What it is not: impatient; a request that somebody still executes is left alone. Invariant:
//! draws nothing, so that a run in which nothing hangs is what it was without an operator.

use crate::event::Event;
use crate::host::Input;
use crate::names::group_id;
use crate::world::{World, ms};
use quorba_base::Duration;
use quorba_engine::replica::PrimaryStatus;

/// How often the operator looks.
const LOOKS_EVERY: Duration = Duration::from_millis(250);

impl World {
    pub(crate) fn plan_attendant(&mut self) {
        self.queue.push(self.now + LOOKS_EVERY, Event::Attendant);
    }

    /// Looks for requests that nobody answers.
    pub(crate) fn attend(&mut self) {
        for group in 0..self.plan.groups.len() {
            if let Some((node, number)) = self.find_hung(group) {
                self.say(|| format!("OPERATOR at n{node}: skip {number} of g{group}"));
                self.note_skip(group, number);
                self.deliver(node, Input::Skip(group_id(group), number));
            }
            if self.checks.groups[group].stateless {
                self.end_silent_servers(group);
            }
        }
        self.plan_attendant();
    }

    /// Calls of a group without a state have no number to be skipped by: the server is ended.
    fn end_silent_servers(&mut self, group: usize) {
        let patience = ms(2 * self.plan.groups[group].server_reply_ms + 2_000);
        let snapshots = self.snapshots();
        let mut gateways =
            snapshots.iter().flatten().filter_map(|node| node.gateway.groups.get(group_id(group)));
        let somebody_waits = gateways.any(|counters| counters.pending > 0);
        for (node, snapshot) in snapshots.iter().enumerate() {
            let waits = snapshot
                .as_ref()
                .and_then(|snapshot| snapshot.groups.get(group_id(group)))
                .is_some_and(|table| table.queued > 0);
            let supervisor = self.hosts[node].supervisors[group].as_ref();
            let Some(server) = supervisor.and_then(|s| s.server) else { continue };
            let (now, target) = (self.now, &mut self.servers[server]);
            // Others are handed what would wait behind it, and may be silent, too.
            let waits = waits || somebody_waits && target.owes_some();
            let works = !target.running.is_empty() || target.hangs || !target.alive;
            if works || !waits || target.silent_since.is_none_or(|(at, _)| at != target.serial) {
                target.silent_since = Some((target.serial, now));
            } else if target.silent_since.is_some_and(|(_, at)| now.since(at) > patience) {
                self.say(|| format!("OPERATOR at n{node}: server {server} is ended"));
                self.end_server(server);
            }
        }
    }

    /// A request that all who execute have had for too long, and that some server has and does not
    /// work on: others may wait for that one.
    fn find_hung(&self, group: usize) -> Option<(usize, u64)> {
        let patience = ms(2 * self.plan.groups[group].server_reply_ms + 2_000);
        let (mut found, mut is_silent) = (None, false);
        for (node, snapshot) in self.snapshots().iter().enumerate() {
            let Some(snapshot) = snapshot else { continue };
            let Some(table) = snapshot.groups.get(group_id(group)) else { continue };
            let serves = table.local == Some("serving");
            if snapshot.primary != PrimaryStatus::Primary || !serves {
                continue;
            }
            let leads = table.leader.is_none_or(|leader| usize::from(leader.index()) == node);
            if table.style.is_passive() && !leads {
                continue;
            }
            let (number, since, _) = table.endings.waiting.as_ref()?;
            let now = self.hosts[node].machine.clock.local(self.now);
            let server = self.hosts[node].supervisors[group].as_ref()?.server?;
            let server = &self.servers[server];
            let works = !server.running.is_empty() || server.calling.is_some() || server.hangs;
            if now.since(*since) < patience
                || !server.running.is_empty() && server.calling.is_none()
            {
                return None;
            }
            is_silent |= !works;
            match found {
                None => found = Some((node, *number)),
                Some((_, other)) if other != *number => return None,
                Some(_) => {}
            }
        }
        found.filter(|_| is_silent)
    }
}
