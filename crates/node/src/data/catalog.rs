//! What operators ask of the groups that the domain has.
//!
//! What it is not: the ordered table. Invariant: each is answered once.

use super::DataPlane;
use crate::admin::{CatalogAsker, CatalogChange, DefineAsker, Refusal};

impl DataPlane {
    /// An operator wants to know all groups.
    pub(super) fn catalog(&self, asker: CatalogAsker) {
        // Whoever asked may have given up.
        let _ = asker.send(Err(self.not_yet()));
    }

    /// An operator creates, changes or deletes a group.
    pub(super) fn define(&self, operation: &str, change: &CatalogChange, asker: DefineAsker) {
        tracing::debug!(operation, group = change.name(), "a change of the catalog is refused");
        let _ = asker.send(Err(self.not_yet()));
    }

    fn not_yet(&self) -> Refusal {
        let node = self.reporter.node_name();
        format!("node {node} has no catalog of groups: this is not available yet").into()
    }
}
