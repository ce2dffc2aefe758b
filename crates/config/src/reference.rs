//! References to a group, as its clients are given them: who makes one makes it here.
//!
//! What it is not: references to servers, and what else a server returns. Invariants: all gateways
//! of the domain are in it; references of one version differ in the order of the gateways alone,
//! and in who is the primary.

use quorba_giop::Endian;
use quorba_giop::ior::{
    CODE_SET_UTF_8, CODE_SET_UTF_16, CodeSetChoice, CodeSetInfo, Component, ComponentValue,
    FtGroup, GroupReference, Ior, SslTransport, group_reference,
};

use crate::domain::{Domain, Group, Host, Node, ObjectGroup};

/// Where clients reach a group: a gateway of each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateways {
    /// Host and port for plain IIOP; the port is 0 where there is none.
    pub addresses: Vec<(String, u16)>,
    /// TLS at the same hosts, in the same order; empty: there is none.
    pub tls: Vec<SslTransport>,
}

impl Gateways {
    /// Those of a group at these nodes.
    pub fn of<'n>(group: &Group, nodes: impl IntoIterator<Item = &'n Node>) -> Self {
        let mut gateways = Self::default();
        for node in nodes {
            let gateway = group.gateway(node);
            let host = match gateway.host {
                Host::Address(address) => address.to_string(),
                Host::Name(name) => name,
            };
            let port = if group.takes_plain() { gateway.port } else { 0 };
            gateways.addresses.push((host, port));
            gateways.tls.extend(tls(group, node));
        }
        gateways
    }

    /// This one comes first, in front of those that stood before it: most ORBs look at no other
    /// profile.
    pub fn begin_with(&mut self, index: usize) {
        for_first(&mut self.addresses, index);
        for_first(&mut self.tls, index);
    }
}

fn for_first<T>(all: &mut [T], index: usize) {
    if let Some(before) = all.get_mut(..=index) {
        before.rotate_right(1);
    }
}

fn tls(group: &Group, node: &Node) -> Option<SslTransport> {
    let tls = group.tls.as_ref()?;
    let (protection, target) = (SslTransport::PROTECTION, SslTransport::TRUST_IN_TARGET);
    let plain = if tls.plain { SslTransport::NO_PROTECTION } else { 0 };
    let asked = if tls.client_ca.is_some() { SslTransport::TRUST_IN_CLIENT } else { 0 };
    let needed = if tls.client_certificates_required { asked } else { 0 };
    let supports = protection | target | asked | plain;
    // What a client that comes in plain would not keep is not insisted on.
    let requires = if tls.plain { SslTransport::NO_PROTECTION } else { protection | needed };
    Some(SslTransport { supports, requires, port: group.tls_port(node)? })
}

impl Group {
    /// Which object group it is for clients that know FT-CORBA, and the version of its references.
    /// That is what the replication manager has written into its definition; of any other group its
    /// own `id`, and how often the domain has `counted` that its references became others.
    #[must_use]
    pub fn identity(&self, id: u64, counted: u32) -> ObjectGroup {
        self.object_group.unwrap_or(ObjectGroup { id, version: counted })
    }

    /// Its gateways, those of its members first, where a call takes one hop less.
    #[must_use]
    pub fn gateways(&self, domain: &Domain) -> Gateways {
        let others = domain.node_set().difference(self.members);
        let all = self.members.iter().chain(others.iter());
        Gateways::of(self, all.filter_map(|id| domain.node(id)))
    }
}

/// The reference to what clients ask of a group at these gateways by that key. `named`: the domain
/// and the object group; only for the object that the group is made for, since references to one
/// object group are references to one object (FT-CORBA §23.2.3). `has_primary`: the first gateway
/// is at the primary's node.
#[must_use]
pub fn reference_to(
    (client_key, type_id): (&[u8], &str),
    gateways: &Gateways,
    named: Option<(&str, ObjectGroup)>,
    has_primary: bool,
) -> Ior {
    let named = named.map(|(domain, ObjectGroup { id, version })| FtGroup {
        domain_id: domain.as_bytes().to_vec(),
        group_id: id,
        reference_version: version,
    });
    group_reference(&GroupReference {
        type_id: type_id.as_bytes(),
        object_key: client_key,
        gateways: &gateways.addresses,
        tls: &gateways.tls,
        group: named.as_ref(),
        primary: has_primary.then_some(0),
        heartbeat_enabled: true,
        components: &[code_sets()],
    })
}

/// One code set for texts and one for wide texts, so that all clients of a group agree: requests
/// of several clients share a connection to the server, and some servers take the code sets of a
/// connection from its first request only.
#[must_use]
pub fn code_sets() -> Component {
    let only = |native| CodeSetChoice { native, conversion: Vec::new() };
    let sets = CodeSetInfo { char_data: only(CODE_SET_UTF_8), wchar_data: only(CODE_SET_UTF_16) };
    ComponentValue::CodeSets(sets).encode(Endian::Big)
}
