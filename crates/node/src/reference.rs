//! References to groups, as clients that know FT-CORBA get them.
//!
//! What it is not: what `quorba ior make` prints for clients that do not. Invariant: references to
//! one version of a group are equal at all nodes, but for who is the primary.

use quorba_config::{Domain, Group, Host, Node};
use quorba_engine::CurrentReference;
use quorba_giop::Endian;
use quorba_giop::ior::{
    CodeSetInfo, ComponentValue, FtGroup, GroupReference, Ior, group_reference,
};
use std::sync::Arc;

/// What a reference says.
#[derive(Clone, Debug)]
pub(crate) struct ParsedReference {
    pub(crate) domain_id: String,
    /// The object group and its version.
    pub(crate) identity: (u64, u32),
    pub(crate) type_id: String,
    pub(crate) object_key: Vec<u8>,
    pub(crate) gateways: Vec<(String, u16)>,
    /// Which of them is the primary's.
    pub(crate) primary: Option<usize>,
}

impl ParsedReference {
    pub(crate) fn to_ior(&self) -> Ior {
        let (group_id, reference_version) = self.identity;
        let domain_id = self.domain_id.clone().into_bytes();
        let named = FtGroup { domain_id, group_id, reference_version };
        let mut gateways = self.gateways.clone();
        let primary = self.primary.filter(|index| *index < gateways.len());
        // Its profile comes first, too: most ORBs look at no other.
        if let Some(index) = primary {
            gateways[..=index].rotate_right(1);
        }
        let code_sets = ComponentValue::CodeSets(CodeSetInfo::usual()).encode(Endian::Big);
        group_reference(&GroupReference {
            type_id: self.type_id.as_bytes(),
            object_key: &self.object_key,
            gateways: &gateways,
            tls: &[],
            group: Some(&named),
            primary: primary.map(|_| 0),
            heartbeat_enabled: true,
            components: &[code_sets],
        })
    }
}

/// The gateways of a group at all nodes: those of its members first, where a call takes one hop
/// less.
pub(crate) fn gateways(domain: &Domain, group: &Group) -> Vec<(String, u16)> {
    let others = domain.node_set().difference(group.members);
    let gateway = |node: &Node| {
        let gateway = group.gateway(node);
        let host = match gateway.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name,
        };
        (host, gateway.port)
    };
    let all = group.members.iter().chain(others.iter());
    all.filter_map(|id| domain.node(id)).map(gateway).collect()
}

/// What clients with an older reference are told; nothing if nobody counts the group's versions.
pub(crate) fn current(domain: &Domain, group: &Group) -> Option<CurrentReference> {
    let object_group = group.object_group?;
    let key = group.object_key.as_deref()?;
    let said = ParsedReference {
        domain_id: domain.id.clone(),
        identity: (object_group.id, object_group.version),
        type_id: group.type_id.clone().unwrap_or_default(),
        object_key: group.client_key(key),
        gateways: gateways(domain, group),
        primary: None,
    };
    Some(CurrentReference { version: object_group.version, ior: Arc::new(said.to_ior()) })
}
