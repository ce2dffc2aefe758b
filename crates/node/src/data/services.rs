//! What services ask of the domain: groups as they are now, and nodes.
//!
//! What it is not: a change of anything; those go the way of an operator's. Invariant: what is told
//! of one group takes work for that group only.

use super::DataPlane;
use crate::offer::{Asked, Known};
use quorba_admin::status::ServerState;
use quorba_config::{Definition, Node, Service};
use quorba_engine::replica::{GroupId, MemberState};

impl DataPlane {
    pub(super) fn answer_service(&mut self, asked: Asked) {
        // Whoever asked may have given up.
        match asked {
            Asked::Group(name, asker) => {
                let id = self.engine.catalog().id_of(&name);
                let _ = asker.send(id.and_then(|id| self.known_group(id)));
            }
            Asked::LeftBehind(what) => {
                tracing::warn!("{what}");
                self.reporter.hear_left_behind(what);
            }
            Asked::NotCreated(what) => {
                if self.reporter.hear_not_created(&what) {
                    tracing::warn!("{what}");
                }
            }
            Asked::Noted(after, most, asker) => {
                let _ = asker.send(self.noted_groups(&after, most));
            }
            Asked::News(after, asker) => self.news.ask(after, asker),
            Asked::Leader(name, known, asker) => {
                let leader = self.leader_of(&name);
                if leader == known {
                    self.news.watch(name, known, asker);
                } else {
                    let _ = asker.send(leader);
                }
            }
            Asked::Gateway(name, asker) => {
                let _ = asker.send(self.own_gateway(&name).unwrap_or_default());
            }
            Asked::Monitorable(name, asker) => {
                let _ = asker.send(self.monitorable(&name));
            }
            Asked::Channels(name, figures) => {
                let groups = self.reporter.groups();
                let is_one = |id: &GroupId| {
                    let group = groups.get(*id);
                    group.is_some_and(|group| group.service == Some(Service::Events))
                };
                if let Some(id) = self.engine.catalog().id_of(&name).filter(is_one) {
                    self.reporter.hear_channels(id, figures);
                }
            }
            Asked::Scheduled(name, scheduling, asker) => {
                if let Some(id) = self.engine.catalog().id_of(&name) {
                    self.supervisors.is_scheduled(id, scheduling);
                }
                let _ = asker.send(());
            }
            Asked::Nodes(asker) => {
                let domain = self.reader.shared();
                let up = self.engine.snapshot_of(&[]).order.members;
                let named = domain.node_set().iter().zip(&domain.nodes);
                let state = |(id, node): (_, &Node)| (node.name.clone(), up.contains(id));
                let _ = asker.send(named.map(state).collect());
            }
        }
    }

    /// Who leads a group, as far as this node may say so; in a style without a leader the first
    /// member that is in.
    pub(super) fn leader_of(&self, name: &str) -> String {
        let found = || {
            let id = self.engine.catalog().id_of(name)?;
            let snapshot = self.engine.snapshot_of(&[id]);
            let state = snapshot.groups.get(id).filter(|state| state.opened)?;
            let is_in = |state: &MemberState| matches!(state, MemberState::In { .. });
            let mut inside = state.members.iter().filter(|(_, state)| is_in(state));
            let leader = state.leader.or_else(|| inside.next().map(|(node, _)| *node))?;
            Some(self.reporter.name_of(leader).to_owned())
        };
        found().unwrap_or_default()
    }

    fn own_gateway(&self, name: &str) -> Option<String> {
        let id = self.engine.catalog().id_of(name)?;
        if let Some(own) = self.clients.port_of_service(id) {
            return Some(own.to_string());
        }
        let group = self.reporter.groups().get(id)?;
        let nodes = self.reader.shared().nodes.iter();
        let mut own = nodes.filter(|node| node.name == self.reporter.name_of(self.me));
        own.next().map(|node| group.gateway(node).to_string())
    }

    /// Where the server of a group can be asked whether it is alive. One that is being given a
    /// state may be too busy to answer.
    fn monitorable(&self, name: &str) -> Option<(u16, Vec<u8>, String)> {
        let id = self.engine.catalog().id_of(name)?;
        let snapshot = self.engine.snapshot_of(&[id]);
        let mut members = snapshot.groups.get(id)?.members.iter();
        let own = members.find(|(node, _)| *node == self.me);
        own.filter(|(_, state)| matches!(state, MemberState::In { .. }))?;
        let group = self.reporter.groups().get(id).filter(|group| group.pull_monitorable)?;
        let known = self.supervisors.status_of(&[id]);
        let server = known.get(id).filter(|server| server.state == ServerState::Running)?;
        Some((server.port?, group.object_key.clone()?, group.type_id.clone().unwrap_or_default()))
    }

    fn noted_groups(&self, after: &str, most: usize) -> Vec<Known> {
        let groups = self.reporter.groups().iter();
        let mut noted: Vec<(&str, GroupId)> = groups
            .filter(|(_, group)| group.note.is_some() && group.name.as_str() > after)
            .map(|(id, group)| (group.name.as_str(), id))
            .collect();
        noted.sort_unstable();
        noted.into_iter().take(most).filter_map(|(_, id)| self.known_group(id)).collect()
    }

    fn known_group(&self, id: GroupId) -> Option<Known> {
        let definition = self.engine.catalog().get(id)?;
        let group = self.reporter.groups().get(id)?;
        let snapshot = self.engine.snapshot_of(&[id]);
        let state = snapshot.groups.get(id)?;
        let name = |node| self.reporter.name_of(node).to_owned();
        let those = |is: fn(&MemberState) -> bool| {
            let members = state.members.iter();
            let these = members.filter(|(node, of)| is(of) && group.members.contains(*node));
            these.map(|(node, _)| name(*node)).collect()
        };
        let own = group.object_key.clone().unwrap_or_default();
        let identity = group.identity(id.0, self.engine.catalog().reference_version(id));
        Some(Known {
            definition: Definition {
                name: definition.name.to_string(),
                text: String::from_utf8_lossy(&definition.text).into_owned(),
            },
            note: group.note.clone().unwrap_or_default(),
            identity,
            type_id: group.type_id.clone().unwrap_or_default(),
            object_key: group.client_key(&own),
            gateways: group.gateways(self.reader.shared()),
            members: group.members.iter().map(name).collect(),
            members_in: those(|state| matches!(state, MemberState::In { .. })),
            coming: those(|state| matches!(state, MemberState::Joining { .. })),
            leader: state.leader.map(name).unwrap_or_default(),
            is_led: group.style.is_passive(),
        })
    }
}
