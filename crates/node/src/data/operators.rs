//! What operators ask of a node besides its status and changes, and what servers ask of it.

use super::DataPlane;
use crate::commands::Asker;
use crate::recent;
use crate::tunnel;
use bytes::Bytes;
use quorba_admin::Wanted;
use quorba_admin::requests::Requests;
use quorba_admin::status::{GroupStatus, WaitStatus, millis};
use quorba_base::NodeId;
use quorba_engine::NodeSnapshot;
use quorba_engine::replica::{GroupId, Lane};
use quorba_net::Sent;

impl DataPlane {
    /// The group's server is told the time of the request that it executes now, if it wants to
    /// know.
    pub(super) fn tell_time(&self, group: GroupId) {
        if let Some(time) = self.times.get(group) {
            let caller = self.engine.caller(group).unwrap_or_default();
            time.publish(self.engine.moment(group), caller);
        }
    }

    /// What a group was delivered lately.
    pub(super) fn requests(&mut self, group: &str, wanted: Wanted) -> Result<Requests, String> {
        let id = self.reporter.group_id(group)?;
        if !self.reporter.has_member(id) {
            let node = self.reporter.node_name();
            return Err(format!("node {node} has no member of group {group}: ask one that has"));
        }
        let now = self.now();
        let query = recent::query(now, wanted.after, wanted.messages);
        Ok(self.reporter.requests(now, self.engine.recent(now, id, &query)))
    }

    /// A message of a tunnel; where no link leads, the tunnel ends.
    pub(super) fn send_tunnel(&mut self, node: NodeId, message: Bytes) {
        if self.transport.send_peer(node, Lane::Control, message) != Sent::Queued {
            // Nobody listens only if the admin API has ended.
            let _ = self.tunnels.send(tunnel::News::Down(node));
        }
    }

    /// An operator gives up a request that the local server has, or which waits for it; or one
    /// that was answered.
    pub(super) fn skip(&mut self, group: &str, (number, answered): (u64, bool), asker: Asker) {
        match self.reporter.group_id(group) {
            Ok(group) => {
                let id = self.commands.open(asker);
                let now = self.now();
                if answered {
                    self.engine.handle_skip_answered(now, group, id, number);
                } else {
                    self.engine.handle_skip(now, group, id, number);
                }
            }
            Err(refusal) => {
                // Whoever asked may have given up.
                let _ = asker.send(Err(refusal));
            }
        }
    }

    /// Whose requests the local servers are at, as far as this node's clients have sent them.
    pub(super) fn look_whose_waits(&mut self, snapshot: &NodeSnapshot) {
        for (id, group) in snapshot.groups.iter() {
            if let Some(number) = self.reporter.own_waiting(&group.endings)
                && let Some(client) = self.engine.client_of(id, number)
            {
                self.reporter.remember_client(id, number, client);
            }
            let longest = self.engine.longest_wait(self.now(), id);
            if let Some((number, time, client)) = longest
                && time >= self.reporter.stuck_after(id)
            {
                self.reporter.remember_client(id, number, client);
            }
        }
    }

    /// Calls of this node's clients that nobody answers, also those that another node's server may
    /// be at.
    pub(super) fn tell_who_waits(&self, groups: &mut [GroupStatus]) {
        for group in groups {
            let Some(id) = self.reporter.groups().id_of(&group.name) else { continue };
            let numbers = self.reporter.unanswered(id).into_iter();
            let requests = numbers.filter_map(|number| self.engine.own_request(id, number));
            group.waiting = self.reporter.waiting(self.now(), id, requests.collect());
            let longest = self.engine.longest_wait(self.now(), id);
            let longest = longest.filter(|it| it.1 >= self.reporter.stuck_after(id));
            group.longest_wait = longest.map(|(_, time, client)| WaitStatus {
                client: client.to_string(),
                since_ms: millis(time),
            });
        }
    }
}
