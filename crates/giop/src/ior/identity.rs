//! Which object a reference refers to, without asking anybody: equivalence and hash.
//!
//! What it is not: proof. References that are not equivalent here may still lead to one object, as
//! CORBA (§4.3.6) allows; those to one group never differ (FT-CORBA §23.2.3).
//!
//! Invariant: equivalent references have the same hash.

use super::Ior;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// FNV-1a with 64 bits.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl Ior {
    /// Whether both refer to the same object, as far as can be told from them (`is_equivalent`).
    /// References to a group are equivalent if they name the same domain and group, whatever their
    /// versions and members; none is equivalent to one that names no group.
    #[must_use]
    pub fn is_equivalent(&self, other: &Self) -> bool {
        match (self.ft_group(), other.ft_group()) {
            (Some(this), Some(other)) => this.is_same_group(&other),
            (None, None) => {
                let (these, those) = (self.places(), other.places());
                let is_known = !these.is_empty() || !those.is_empty();
                if is_known { these == those } else { self.profiles == other.profiles }
            }
            _ => false,
        }
    }

    /// A number of at most `maximum` that never changes while the object lives (`hash`). That of a
    /// group comes from its number alone, so it is the same in all versions of its reference.
    #[must_use]
    pub fn hash(&self, maximum: u32) -> u32 {
        let whole = match self.ft_group() {
            Some(group) => group.group_id,
            None => match self.places().first() {
                Some((host, port, key)) => {
                    let port = port.to_be_bytes();
                    let octets = host.bytes().chain(port).chain(key.iter().copied());
                    fnv(octets)
                }
                None => fnv(self.profiles.iter().flat_map(|it| it.data.iter().copied())),
            },
        };
        u32::try_from(whole % (u64::from(maximum) + 1)).unwrap_or(maximum)
    }

    /// Its addresses and keys. Versions say how to speak, not to whom, and hosts are the same in
    /// small and large letters.
    fn places(&self) -> Vec<(String, u16, Bytes)> {
        let place = |it: super::Endpoint| (it.host.to_ascii_lowercase(), it.port, it.object_key);
        self.endpoints().into_iter().map(place).collect()
    }
}

fn fnv(octets: impl Iterator<Item = u8>) -> u64 {
    octets.fold(FNV_OFFSET, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(FNV_PRIME))
}

#[cfg(test)]
mod tests {
    use crate::corbaloc;
    use crate::ior::{FtGroup, GroupReference, Ior, group_reference};
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn group(domain: &[u8], group_id: u64, version: u32, ports: &[u16]) -> Ior {
        let named = FtGroup { domain_id: domain.to_vec(), group_id, reference_version: version };
        let gateways: Vec<_> = ports.iter().map(|port| ("n1".to_string(), *port)).collect();
        group_reference(&GroupReference {
            type_id: b"IDL:T:1.0",
            object_key: b"key",
            gateways: &gateways,
            tls: &[],
            group: Some(&named),
            primary: None,
            heartbeat_enabled: version > 1,
            components: &[],
        })
    }

    fn plain(text: &str) -> Ior {
        corbaloc::parse(text).expect("a corbaloc").to_ior()
    }

    #[test]
    fn references_to_one_group_are_equivalent_and_hash_alike_whatever_their_version_and_members() {
        let first = group(b"d", 7, 1, &[1, 2]);
        for other in [group(b"d", 7, 2, &[3]), group(b"d", 7, 9, &[]), group(b"d", 7, 0, &[2, 1])] {
            assert!(first.is_equivalent(&other) && other.is_equivalent(&first));
            for maximum in [0, 1, 5, 1000, u32::MAX] {
                assert_eq!(first.hash(maximum), other.hash(maximum));
            }
        }
    }

    #[test]
    fn another_group_another_domain_and_no_group_are_not_equivalent() {
        let first = group(b"d", 7, 1, &[1]);
        assert!(!first.is_equivalent(&group(b"d", 8, 1, &[1])));
        assert!(!first.is_equivalent(&group(b"e", 7, 1, &[1])));
        assert!(!first.is_equivalent(&plain("corbaloc::n1:1/key")));
        assert!(!plain("corbaloc::n1:1/key").is_equivalent(&first));
        assert!(!first.is_equivalent(&Ior::nil()));
        assert_ne!(first.hash(u32::MAX), group(b"d", 8, 1, &[1]).hash(u32::MAX));
    }

    #[test]
    fn others_are_equivalent_by_their_addresses_and_keys() {
        let first = plain("corbaloc::host:1,:other:2/key");
        let same = plain("corbaloc:iiop:1.2@HOST:1,iiop:1.1@other:2/key");
        assert!(first.is_equivalent(&same));
        assert_eq!(first.hash(u32::MAX), same.hash(u32::MAX));
        for other in ["corbaloc::host:1/key", "corbaloc::host:1,:other:2/Key"] {
            assert!(!first.is_equivalent(&plain(other)), "{other}");
        }
        assert!(Ior::nil().is_equivalent(&Ior::nil()));
        assert!(!Ior::nil().is_equivalent(&first));
    }

    #[test]
    fn a_hash_is_no_larger_than_asked_for() {
        for maximum in [0, 1, 2, 17, u32::MAX] {
            for reference in [group(b"d", u64::MAX, 1, &[1]), plain("corbaloc::h:1/k"), Ior::nil()]
            {
                assert!(reference.hash(maximum) <= maximum);
            }
        }
    }

    #[test]
    fn a_group_without_members_is_not_nil() {
        assert!(!group(b"d", 7, 1, &[]).is_nil());
        assert!(Ior::nil().is_nil());
    }
}
