//! What definitions mean for the whole node: for the replica, and for the gateway.
//!
//! What it is not: the words of definitions, which the driver reads. Invariant: what the replica is
//! told depends on the text and on the ids of names alone, so that all nodes read alike.

use crate::config::GroupSettings;
use crate::external::OutsideSettings;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use quorba_replica::{
    Catalog, Defined, Definition, Definitions, FixedDefinitions, GroupConfig, GroupId, GroupMap,
};

/// What a definition means for the whole node.
#[derive(Clone)]
pub enum Settings {
    /// A group.
    Group(Box<GroupSettings>),
    /// A server outside of the domain.
    Outside(OutsideSettings),
}

/// Reads definitions; see [`quorba_replica::Definitions`].
pub trait SettingsOf: Send + Sync {
    /// What `definition` means. `id_of` gives the ids of groups and servers outside.
    ///
    /// # Errors
    /// What is wrong with it, in words for an operator.
    fn settings_of(
        &self,
        definition: &Definition,
        id_of: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<Settings, String>;
}

/// Settings that are known beforehand, for experiments and tests; see [`FixedDefinitions`].
#[derive(Clone, Default)]
pub struct FixedSettings {
    /// The groups.
    pub groups: GroupMap<GroupSettings>,
    /// The servers outside.
    pub outside: GroupMap<OutsideSettings>,
}

impl FixedSettings {
    /// The catalog that has these, and no others.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        FixedDefinitions::catalog_of(self.groups.ids().chain(self.outside.ids()))
    }
}

impl SettingsOf for FixedSettings {
    fn settings_of(
        &self,
        definition: &Definition,
        _: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<Settings, String> {
        let id = FixedDefinitions::id(definition).ok_or("its name is no number")?;
        if let Some(server) = self.outside.get(id) {
            return Ok(Settings::Outside(*server));
        }
        let group = self.groups.get(id).cloned().ok_or("nothing has this id")?;
        Ok(Settings::Group(Box::new(group)))
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
    ) -> Result<Defined, String> {
        let replica = match self.settings.settings_of(definition, id_of)? {
            Settings::Group(settings) => settings.replica,
            Settings::Outside(server) => return Ok(Defined::Outside(server.replica)),
        };
        let reply_bytes_max = replica.reply_bytes_max.min(self.reply_bytes_max);
        Ok(Defined::Group(Box::new(GroupConfig { reply_bytes_max, ..replica })))
    }
}
