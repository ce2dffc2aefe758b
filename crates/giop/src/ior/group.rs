//! The reference that clients of an object group get.
//!
//! Its form is the one that every ORB fails over with: one IIOP profile for each gateway, for
//! those that walk profiles, and in each profile the other gateways as alternate addresses, for
//! those that only look at the first profile.

use super::{Component, ComponentValue, FtGroup, IiopProfile, Ior, Profile, SslTransport};
use crate::limits::PROFILES_MAX;
use crate::version::{Endian, Version};
use alloc::string::String;
use alloc::vec::Vec;

/// What a group's reference says.
#[derive(Clone, Copy, Debug)]
pub struct GroupReference<'a> {
    /// Repository id of the interface; empty if not known.
    pub type_id: &'a [u8],
    /// The same at every gateway.
    pub object_key: &'a [u8],
    /// Host (without brackets) and port of each gateway, the preferred one first.
    pub gateways: &'a [(String, u16)],
    /// TLS at each gateway, in the same order; empty: there is none. A gateway without plain IIOP
    /// has the port 0 in `gateways`.
    pub tls: &'a [SslTransport],
    /// Names the group for clients that know FT-CORBA.
    pub group: Option<&'a FtGroup>,
    /// Which gateway's profile is marked as the primary's; only with `group`.
    pub primary: Option<usize>,
    /// Whether clients may ask for heartbeats; only with `group`.
    pub heartbeat_enabled: bool,
    /// What else is to stand in every profile, such as code sets.
    pub components: &'a [Component],
}

/// Makes a group's reference. A group without gateways has a TAG_MULTIPLE_COMPONENTS profile that
/// only names it (FT-CORBA §23.2.2), or is nil if it has no name either.
///
/// # Panics
/// If there are more gateways than [`PROFILES_MAX`]: a domain has far fewer nodes.
#[must_use]
pub fn group_reference(reference: &GroupReference<'_>) -> Ior {
    let gateways = reference.gateways;
    assert!(gateways.len() <= PROFILES_MAX, "{} gateways", gateways.len());
    let type_id = reference.type_id.to_vec();
    if gateways.is_empty() {
        let only = reference
            .group
            .map(|_| Profile::of_components(&ft_components(reference, None), Endian::Big));
        return Ior { type_id, profiles: only.into_iter().collect() };
    }
    let profiles = gateways.iter().enumerate().map(|(index, (host, port))| {
        // Each profile begins with the next gateway, so that the clients of one that fails do not
        // all go to the same other.
        let others = gateways.iter().cycle().skip(index + 1).take(gateways.len() - 1);
        let mut components: Vec<Component> = reference.components.to_vec();
        components.extend(reference.tls.get(index).map(|tls| {
            // Before the other addresses, which are without it.
            ComponentValue::SslTransport(*tls).encode(Endian::Big)
        }));
        let others = others.filter(|(_, port)| *port != 0);
        components.extend(others.map(|(host, port)| {
            let alternate = ComponentValue::AlternateAddress { host: host.clone(), port: *port };
            alternate.encode(Endian::Big)
        }));
        components.extend(ft_components(reference, Some(index)));
        let profile = IiopProfile {
            version: Version::V1_2,
            host: host.clone(),
            port: *port,
            object_key: reference.object_key.to_vec(),
            components,
        };
        profile.encode(Endian::Big)
    });
    Ior { type_id, profiles: profiles.collect() }
}

fn ft_components(reference: &GroupReference<'_>, index: Option<usize>) -> Vec<Component> {
    let Some(group) = reference.group else { return Vec::new() };
    let mut values = Vec::from([ComponentValue::FtGroup(group.clone())]);
    if index.is_some() && reference.primary == index {
        values.push(ComponentValue::FtPrimary(true));
    }
    if index.is_some() && reference.heartbeat_enabled {
        values.push(ComponentValue::FtHeartbeatEnabled(true));
    }
    values.iter().map(|value| value.encode(Endian::Big)).collect()
}
