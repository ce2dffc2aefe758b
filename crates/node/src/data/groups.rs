//! Groups that come, change and go while the node runs: what it has of each is opened and closed
//! here, also at the start.
//!
//! What it is not: what the engine has of a group, which it is told elsewhere. Invariants: nothing
//! here waits for a server; behind [`DataPlane::close_group`] nothing of the group is left but its
//! server, which ends in the background, and what is late of it finds nobody.

use super::DataPlane;
use crate::NodeError;
use crate::launch::Launcher;
use crate::supervise::{Opened, is_same_server};
use crate::times::Times;
use quorba_config::{Backend, Group};
use quorba_engine::replica::{DownReason, GroupId};
use std::sync::Arc;
use std::time::Instant as Clock;

impl DataPlane {
    /// Begins to serve a group: listens to its clients, and, if a member is here, to its server's
    /// calls, and has that server started or looked for. A port that cannot be opened is tried
    /// again, and status says so.
    ///
    /// # Errors
    /// The system has no room for its ordered time.
    pub(crate) fn open_group(&mut self, id: GroupId, group: Arc<Group>) -> Result<(), NodeError> {
        self.reporter.open(id, Arc::clone(&group));
        if group.listen.is_none() && self.reader.shared().gateway.is_none() {
            let what = "clients cannot reach the group on this node: it has no `listen`, and this \
                        node's domain file no [gateway]; enter that, and start the node anew";
            tracing::warn!(group = group.name, "{what}");
        }
        self.listen(id, &group);
        self.auto_placements.open(id, &group);
        if let Some(recorder) = &mut self.recorder {
            recorder.open(id);
        }
        if let Some(call_timings) = &mut self.call_timings {
            call_timings.open(id);
        }
        if group.members.contains(self.me) {
            self.begin_server(id, group)?;
        }
        Ok(())
    }

    /// The group is declared in another way: what is different from now on. Where its server is
    /// another one (by its address, or by who starts it), the one that there was is given up; a
    /// command counts when the server is started next.
    ///
    /// # Errors
    /// As of [`Self::open_group`].
    pub(crate) fn change_group(&mut self, id: GroupId, group: Arc<Group>) -> Result<(), NodeError> {
        let Some(before) = self.reporter.groups().get(id).cloned() else {
            return self.open_group(id, group);
        };
        self.reporter.open(id, Arc::clone(&group));
        self.listen(id, &group);
        self.auto_placements.open(id, &group);
        let had_member = before.members.contains(self.me);
        match (had_member, group.members.contains(self.me)) {
            (_, false) => self.end_server(id),
            (true, true) if is_same_server(&before, &group, self.me) => {
                let opened = self.opened(id, group)?;
                self.supervisors.change(id, opened);
            }
            (had_member, true) => {
                if had_member {
                    self.end_server(id);
                    let now = self.now();
                    self.engine.handle_server_down(now, id, DownReason::ServerExited);
                }
                self.begin_server(id, group)?;
            }
        }
        Ok(())
    }

    /// Serves the group no more: closes its ports and connections, and has its server ended, for
    /// which nobody waits.
    pub(crate) fn close_group(&mut self, id: GroupId) {
        let now = self.now();
        for connection in self.clients.close_group(id) {
            self.engine.handle_client_closed(now, connection);
        }
        self.end_server(id);
        self.auto_placements.close(id);
        self.reading.close(id);
        if let Some(recorder) = &mut self.recorder {
            recorder.close(id);
        }
        if let Some(call_timings) = &mut self.call_timings {
            call_timings.close(id);
        }
        self.reporter.close(id);
    }

    /// Opens the ports of a group that are not open yet, and closes those that it needs no more.
    pub(super) fn listen(&mut self, id: GroupId, group: &Group) {
        let calls = match group.members.contains(self.me) {
            true => self.reporter.groups().calls_of(group),
            false => Vec::new(),
        };
        self.clients.open_group((id, group), &calls, &self.poller);
    }

    /// Ports that could not be opened are tried again; a server that is to call at one of them is
    /// told of it when it is started next.
    pub(super) fn listen_again(&mut self) {
        let groups = self.reporter.groups();
        let name_of = |id| groups.name_of(id).unwrap_or("?").to_owned();
        for id in self.clients.open_again(name_of, &self.poller) {
            let Some(group) = self.reporter.groups().get(id).cloned() else { continue };
            match self.opened(id, group) {
                Ok(opened) => self.supervisors.change(id, opened),
                Err(error) => {
                    let group = id.0;
                    tracing::error!(group, %error, "the group's server is not told of its ports");
                }
            }
        }
    }

    fn begin_server(&mut self, id: GroupId, group: Arc<Group>) -> Result<(), NodeError> {
        let opened = self.opened(id, group)?;
        self.supervisors.open(id, opened);
        Ok(())
    }

    fn end_server(&mut self, id: GroupId) {
        self.servers.forget(id);
        self.times.remove(id);
        self.supervisors.close(id);
    }

    /// What is needed to look after the server of the member here.
    fn opened(&mut self, id: GroupId, group: Arc<Group>) -> Result<Opened, NodeError> {
        if matches!(group.backend, Backend::Connect(_)) {
            self.times.remove(id);
            // What is looked for is what this member's server has, under the key that it has there.
            let key = group.object_key_at(self.me).map(<[u8]>::to_vec);
            let group = match key == group.object_key {
                true => group,
                false => Arc::new(Group { object_key: key, ..Group::clone(&group) }),
            };
            return Ok(Opened::new(group, None, None));
        }
        if !Times::is_wanted(&group) {
            self.times.remove(id);
        } else if !self.times.contains(id) {
            self.times.insert(id, Arc::new(Times::start().map_err(NodeError::Resources)?));
        }
        let time = self.times.get(id).cloned();
        let ports = self.clients.ports_for(id).map_err(NodeError::Resources)?;
        let about = (self.reporter.groups(), self.reporter.all_nodes());
        let mut launcher = Launcher::new(about, &group, self.launcher.clone(), &ports);
        launcher.news = self.offer.news_reference();
        launcher.leaders = self.offer.leaders_reference();
        launcher.figures = group.service.map(|_| self.offer.figures_reference());
        launcher.own_gateway = self.clients.port_of_service(id);
        Ok(Opened::new(group, Some(Arc::new(launcher)), time))
    }

    /// All groups of the domain file. No server is started before every port is open.
    ///
    /// # Errors
    /// A port cannot be opened: that is for who starts the node to see.
    pub(super) fn open_all(&mut self) -> Result<(), NodeError> {
        let groups = self.reporter.groups().iter();
        let all: Vec<_> = groups.map(|(id, group)| (id, Arc::clone(group))).collect();
        for (id, group) in &all {
            self.listen(*id, group);
            if let Some(error) = self.clients.take_failure() {
                return Err(error);
            }
        }
        if let Some(gateway) = self.reader.shared().gateway {
            self.clients.open_shared(gateway.listen, &self.poller);
            if let Some(error) = self.clients.take_failure() {
                return Err(error);
            }
        }
        all.into_iter().try_for_each(|(id, group)| self.open_group(id, group))
    }

    /// When [`Self::listen_again`] is wanted.
    pub(super) const fn listen_again_at(&self) -> Option<Clock> {
        self.clients.open_again_at()
    }
}

#[cfg(test)]
mod tests;
