//! What is known of the servers behind this node's members, for whoever asks for the status.
//!
//! What it is not: what decides anything. Invariants: of a group that is closed nothing is said any
//! more, whatever its server still does; since when a server is in its state is since that changed
//! last.

use crate::output::Output;
use quorba_admin::status::{SchedulingStatus, ServerState, ServerStatus, millis};
use quorba_engine::replica::{GroupId, GroupMap};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::Key;

/// Of one server.
pub(super) struct Known {
    key: Key,
    pub(super) state: ServerState,
    pub(super) pid: Option<u32>,
    pub(super) port: Option<u16>,
    pub(super) restarts: u64,
    pub(super) reason: Option<Box<str>>,
    pub(super) missing_object: Option<Box<str>>,
    /// What it said of its threads.
    pub(super) scheduling: Option<Box<SchedulingStatus>>,
    /// It was started here, so that there is something that it printed.
    pub(super) prints: bool,
    output: Option<Output>,
    since: Instant,
}

impl Known {
    pub(super) fn fail(&mut self, reason: String) {
        self.state = ServerState::Down;
        self.pid = None;
        self.reason = Some(reason.into());
        self.missing_object = None;
        self.scheduling = None;
    }

    fn status(&self) -> ServerStatus {
        let mut status = ServerStatus {
            state: self.state,
            pid: self.pid,
            port: self.port,
            restarts: self.restarts,
            reason: self.reason.as_deref().map(Into::into),
            missing_object: self.missing_object.as_deref().map(Into::into),
            since_ms: Some(millis(self.since.elapsed())),
            scheduling: self.scheduling.as_deref().cloned(),
            ..ServerStatus::default()
        };
        if let Some(output) = self.output.as_ref().filter(|_| self.prints) {
            status.log = Some(output.path().display().to_string());
            status.output_left_out_bytes = output.lost();
            if self.state != ServerState::Running {
                status.last_output = output.last_lines();
            }
        }
        status
    }
}

/// See the module's text.
#[derive(Clone, Default)]
pub(super) struct Table(Arc<Mutex<BTreeMap<GroupId, Known>>>);

impl Table {
    /// There is a server to look after.
    pub(super) fn open(&self, id: GroupId, key: Key, output: Option<Output>) {
        let known = Known {
            key,
            state: ServerState::Starting,
            pid: None,
            port: None,
            restarts: 0,
            reason: None,
            missing_object: None,
            scheduling: None,
            prints: false,
            output,
            since: Instant::now(),
        };
        self.0.lock().expect("no holder panics").insert(id, known);
    }

    pub(super) fn close(&self, id: GroupId) {
        self.0.lock().expect("no holder panics").remove(&id);
    }

    /// Something else is known of that server, unless it is of interest to nobody any more.
    pub(super) fn update(&self, id: GroupId, key: Key, change: impl FnOnce(&mut Known)) {
        let mut all = self.0.lock().expect("no holder panics");
        let Some(known) = all.get_mut(&id).filter(|known| known.key == key) else { return };
        let before = (known.state, known.missing_object.is_some());
        change(known);
        if before != (known.state, known.missing_object.is_some()) {
            known.since = Instant::now();
        }
    }

    pub(super) fn status_of(&self, groups: &[GroupId]) -> GroupMap<ServerStatus> {
        let all = self.0.lock().expect("no holder panics");
        groups.iter().filter_map(|id| Some((*id, all.get(id)?.status()))).collect()
    }

    /// Where servers listen.
    pub(super) fn ports(&self) -> Vec<u16> {
        let all = self.0.lock().expect("no holder panics");
        all.values().filter_map(|known| known.port).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(7);

    #[test]
    fn of_a_group_that_was_closed_and_of_a_former_server_nothing_is_said() {
        let table = Table::default();
        table.open(GROUP, Key(1), None);
        table.update(GROUP, Key(1), |known| known.port = Some(1));
        assert_eq!(table.ports(), [1]);
        table.close(GROUP);
        table.update(GROUP, Key(1), |_| panic!("it is closed"));
        table.open(GROUP, Key(2), None);
        table.update(GROUP, Key(1), |_| panic!("it is another one's"));
        assert_eq!(table.status_of(&[GROUP])[GROUP].state, ServerState::Starting);
        assert!(table.ports().is_empty());
    }

    #[test]
    fn a_state_is_as_old_as_its_last_change() {
        let table = Table::default();
        table.open(GROUP, Key(1), None);
        let since = || table.0.lock().expect("nobody panics")[&GROUP].since;
        let first = since();
        table.update(GROUP, Key(1), |known| known.restarts += 1);
        assert_eq!(since(), first);
        table.update(GROUP, Key(1), |known| known.fail("a reason".into()));
        let second = since();
        assert!(second > first);
        table.update(GROUP, Key(1), |known| known.fail("another one".into()));
        assert_eq!(since(), second);
        let status = &table.status_of(&[GROUP])[GROUP];
        assert_eq!(
            (status.state, status.reason.as_deref()),
            (ServerState::Down, Some("another one"))
        );
    }
}
