//! Definitions that are known beforehand, for experiments and tests: a name is an id in digits, and
//! the text says nothing.

use super::{Catalog, Defined, Definition, Definitions};
use crate::calls::outside::OutsideConfig;
use crate::words::config::GroupConfig;
use crate::words::group_map::GroupMap;
use crate::words::ids::GroupId;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use bytes::Bytes;

/// See the module's text.
#[derive(Clone, Default)]
pub struct FixedDefinitions {
    /// The groups.
    pub groups: GroupMap<GroupConfig>,
    /// The servers outside.
    pub outside: GroupMap<OutsideConfig>,
}

impl FixedDefinitions {
    /// The catalog that has these, and no others.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        Self::catalog_of(self.groups.ids().chain(self.outside.ids()))
    }

    /// The catalog of definitions with these ids.
    #[must_use]
    pub fn catalog_of(ids: impl IntoIterator<Item = GroupId>) -> Catalog {
        let definition =
            |id: GroupId| Definition { name: id.0.to_string().into(), text: Bytes::new() };
        Catalog::of_file(ids.into_iter().map(|id| (id, definition(id))))
    }

    /// The id of a definition of this kind.
    #[must_use]
    pub fn id(definition: &Definition) -> Option<GroupId> {
        definition.name.parse().ok().map(GroupId)
    }
}

impl Definitions for FixedDefinitions {
    fn define(
        &self,
        definition: &Definition,
        _: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<Defined, String> {
        let id = Self::id(definition).ok_or_else(|| String::from("its name is no number"))?;
        if let Some(server) = self.outside.get(id) {
            return Ok(Defined::Outside(*server));
        }
        let group = self.groups.get(id).cloned();
        let group = group.ok_or_else(|| format!("nothing has the id {}", id.0))?;
        Ok(Defined::Group(Box::new(group)))
    }
}
