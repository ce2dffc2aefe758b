//! References to groups, as clients that know FT-CORBA get them.
//!
//! What it is not: their form, which is the config's ([`quorba_config::reference_to`]). Invariant:
//! references to one version of a group are equal at all nodes, but for who is the primary.

use quorba_config::{Domain, Gateways, Group, ObjectGroup, reference_to};
use quorba_engine::References;
use quorba_engine::replica::{Catalog, GroupId};
use quorba_giop::ior::Ior;
use std::sync::Arc;

/// What a reference says.
#[derive(Clone, Debug)]
pub(crate) struct ParsedReference {
    pub(crate) domain_id: String,
    pub(crate) identity: ObjectGroup,
    pub(crate) type_id: String,
    pub(crate) object_key: Vec<u8>,
    pub(crate) gateways: Gateways,
    /// Which of them is the primary's.
    pub(crate) primary: Option<usize>,
}

impl ParsedReference {
    pub(crate) fn to_ior(&self) -> Ior {
        let mut gateways = self.gateways.clone();
        let primary = self.primary.filter(|index| *index < gateways.addresses.len());
        if let Some(index) = primary {
            gateways.begin_with(index);
        }
        let named = Some((self.domain_id.as_str(), self.identity));
        reference_to((&self.object_key, &self.type_id), &gateways, named, primary.is_some())
    }
}

/// What clients with an older reference to a group are told.
#[derive(Debug)]
struct Current {
    shared: Arc<Domain>,
    group: Arc<Group>,
    id: GroupId,
}

impl References for Current {
    fn object_key(&self) -> &[u8] {
        self.group.object_key.as_deref().unwrap_or_default()
    }

    fn version(&self, counted: u32) -> u32 {
        self.group.identity(self.id.0, counted).version
    }

    fn reference(&self, counted: u32) -> Ior {
        let said = ParsedReference {
            domain_id: self.shared.id.clone(),
            identity: self.group.identity(self.id.0, counted),
            type_id: self.group.type_id.clone().unwrap_or_default(),
            object_key: self.group.client_key(self.object_key()),
            gateways: self.group.gateways(&self.shared),
            primary: None,
        };
        said.to_ior()
    }
}

/// The number by which references name a group that the domain file has, in a domain that has never
/// been.
#[must_use]
pub fn id_in_file(group: &str) -> u64 {
    Catalog::id_in_file(group).0
}

/// What clients with an older reference are told; nothing if nobody knows which object is the
/// group's.
pub(crate) fn current(
    shared: &Arc<Domain>,
    group: &Arc<Group>,
    id: GroupId,
) -> Option<Arc<dyn References>> {
    group.object_key.as_ref()?;
    Some(Arc::new(Current { shared: Arc::clone(shared), group: Arc::clone(group), id }))
}
