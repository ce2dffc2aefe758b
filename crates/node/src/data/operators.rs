//! What operators ask of a node besides its status and changes, and what servers ask of it.

use super::DataPlane;
use crate::admin::Wanted;
use crate::recent::{self, Requests};
use quorba_engine::replica::GroupId;

impl DataPlane {
    /// The group's server is told the time of the request that it executes now, if it wants to
    /// know.
    pub(super) fn tell_time(&self, group: GroupId) {
        if let Some(Some(time)) = self.times.get(usize::from(group.0)) {
            time.publish(self.engine.moment(group));
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
}
