//! What definitions mean for the whole node: for the replica, and for the gateway.
//!
//! What it is not: the words of definitions, which the driver reads. Invariant: what the replica is
//! told depends on the text and on the ids of names alone, so that all nodes read alike.

use crate::config::GroupSettings;
use alloc::string::String;
use alloc::sync::Arc;
use quorba_replica::{
    Catalog, Definition, Definitions, FixedDefinitions, GroupConfig, GroupId, GroupMap,
};

/// Reads definitions; see [`quorba_replica::Definitions`].
pub trait SettingsOf: Send + Sync {
    /// What `definition` means. `id_of` gives the ids of other groups.
    ///
    /// # Errors
    /// What is wrong with it, in words for an operator.
    fn settings_of(
        &self,
        definition: &Definition,
        id_of: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<GroupSettings, String>;
}

/// Settings that are known beforehand, for experiments and tests; see [`FixedDefinitions`].
#[derive(Clone, Default)]
pub struct FixedSettings(pub GroupMap<GroupSettings>);

impl FixedSettings {
    /// The catalog that has these, and no others.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        FixedDefinitions::catalog_of(self.0.ids())
    }
}

impl SettingsOf for FixedSettings {
    fn settings_of(
        &self,
        definition: &Definition,
        _: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<GroupSettings, String> {
        let id = FixedDefinitions::id(definition).ok_or("its name is no number")?;
        self.0.get(id).cloned().ok_or_else(|| "nothing has this id".into())
    }
}

/// What the replica has to know of them.
pub(crate) struct ForReplica {
    pub(crate) settings: Arc<dyn SettingsOf>,
    /// Any member may have to pass a reply on, and all must come to the same one.
    pub(crate) reply_bytes_max: usize,
}

impl Definitions for ForReplica {
    fn define(
        &self,
        definition: &Definition,
        id_of: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<GroupConfig, String> {
        let replica = self.settings.settings_of(definition, id_of)?.replica;
        let reply_bytes_max = replica.reply_bytes_max.min(self.reply_bytes_max);
        Ok(GroupConfig { reply_bytes_max, ..replica })
    }
}
