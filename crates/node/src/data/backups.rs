//! Backups and restores that operators ask a node for, until the engine has answered.
//!
//! Invariant: each is answered at most once; one whose asker has gone is forgotten in time.

use super::DataPlane;
use crate::admin::{BackupAsker, Refusal, RestoreAsker};
use crate::backup::Description;
use quorba_engine::replica::{Backup, BackupRefused, GroupId};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// See the module's text.
#[derive(Default)]
pub(super) struct Backups {
    last: u64,
    wanted: BTreeMap<u64, BackupAsker>,
    given: BTreeMap<u64, RestoreAsker>,
}

impl Backups {
    fn next(&mut self) -> u64 {
        self.wanted.retain(|_, asker| !asker.is_closed());
        self.given.retain(|_, asker| !asker.is_closed());
        self.last += 1;
        self.last
    }
}

impl DataPlane {
    /// An operator wants a backup.
    pub(super) fn back_up(&mut self, group: &str, asker: BackupAsker) {
        match self.reporter.group_id(group) {
            Ok(group) => {
                let id = self.backups.next();
                self.backups.wanted.insert(id, asker);
                let now = self.now();
                self.engine.handle_backup(now, group, id);
            }
            Err(refusal) => {
                let _ = asker.send(Err(refusal.into()));
            }
        }
    }

    /// An operator gives one back.
    pub(super) fn restore(
        &mut self,
        group: &str,
        (description, backup): (Description, Backup),
        asker: RestoreAsker,
    ) {
        let is_its = |id| {
            let group = self.reporter.group_config(id);
            description.check_for(group.ok_or_else(|| "the group has gone".to_owned())?)?;
            Ok(id)
        };
        match self.reporter.group_id(group).and_then(is_its) {
            Ok(group) => {
                let id = self.backups.next();
                self.backups.given.insert(id, asker);
                let name = self.reporter.group_name(group);
                tracing::warn!(
                    group = name,
                    from = description.node,
                    executed = description.executed,
                    "an operator restores the group from a backup"
                );
                let now = self.now();
                self.engine.handle_restore(now, group, id, backup);
            }
            Err(refusal) => {
                let _ = asker.send(Err(refusal.into()));
            }
        }
    }

    /// The engine has a backup, or none.
    pub(super) fn backed_up(
        &mut self,
        group: GroupId,
        id: u64,
        result: Result<Backup, BackupRefused>,
    ) {
        let Some(asker) = self.backups.wanted.remove(&id) else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let taken_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let told = result.map_err(|refused| self.refusal(refused)).and_then(|backup| {
            let of = self.reporter.backup_names(group);
            let of = of.ok_or_else(|| "the group has gone".to_owned())?;
            Ok((Description::of(of, taken_ms, &backup), backup))
        });
        // Whoever asked may have given up.
        let _ = asker.send(told);
    }

    /// The engine has carried out a restore, or not.
    pub(super) fn restored(&mut self, id: u64, result: Result<(), BackupRefused>) {
        let Some(asker) = self.backups.given.remove(&id) else { return };
        let _ = asker.send(result.map_err(|refused| {
            // Done twice, it would throw away what was acknowledged in between.
            let is_unknown = refused == BackupRefused::Unknown;
            let refusal = self.refusal(refused);
            Refusal { is_passing: refusal.is_passing && !is_unknown, ..refusal }
        }));
    }

    fn refusal(&self, refused: BackupRefused) -> Refusal {
        let is_passing = refused.is_passing();
        let text = match refused {
            BackupRefused::Group(refused) => self.reporter.refusal(refused),
            refused => format!("node {}: {refused}", self.reporter.node_name()),
        };
        Refusal { text, is_passing }
    }
}
