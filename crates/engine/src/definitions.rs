//! What definitions mean for the whole node: for the replica, and for the gateway.
//!
//! What it is not: the words of definitions, which the driver reads. Invariant: what the replica is
//! told depends on the text and on the ids of names alone, so that all nodes read alike.

use crate::abroad::OutsideSettings;
use crate::config::GroupSettings;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use quorba_replica::{
    Catalog, Defined, Definition, Definitions, FixedDefinitions, GroupConfig, GroupId, GroupMap,
};

/// What a definition means.
#[derive(Clone, Debug)]
pub enum Settings {
    /// It is a group of the domain.
    Group(Box<GroupSettings>),
    /// It is a server outside.
    Outside(OutsideSettings),
}

/// Reads definitions; see [`quorba_replica::Definitions`].
pub trait SettingsOf: Send + Sync {
    /// What `definition` means. `id_of` gives the ids of other names.
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
    /// Of the groups.
    pub groups: GroupMap<GroupSettings>,
    /// Of the servers outside, by ids that no group has.
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
        let group = self.groups.get(id).map(|group| Settings::Group(Box::new(group.clone())));
        let outside = || self.outside.get(id).map(|server| Settings::Outside(*server));
        group.or_else(outside).ok_or_else(|| "nothing has this id".into())
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
        Ok(match self.settings.settings_of(definition, id_of)? {
            Settings::Group(group) => Defined::Group(GroupConfig {
                reply_bytes_max: group.replica.reply_bytes_max.min(self.reply_bytes_max),
                ..group.replica
            }),
            Settings::Outside(server) => Defined::Outside(server.replica),
        })
    }
}
