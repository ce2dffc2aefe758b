//! Who may call what: the rules of one group, and who a client is.
//!
//! What it is not: the proof that a client is who it says, which is the handshake's, outside. It
//! reads no domain file.
//! Invariants: a decision depends on the rules, the client and the operation alone, so every
//! gateway decides alike; operations that move the state of a whole replica are refused whoever
//! calls and whatever object it names, unless the rules name them. What a process of a service asks
//! of its own node, at the port that only such processes are told, is not a client's: rules for
//! clients do not bind it, and it alone may call a service's own objects.

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr};
use quorba_base::Network;
use quorba_giop::MinorCode;
use quorba_replica::name_fits;

/// What FT::Checkpointable and FT::Updateable move a state with (FT-CORBA §23.5).
pub const STATE_OPERATIONS: [&[u8]; 4] = [b"get_state", b"set_state", b"get_update", b"set_update"];

/// What any object can be asked (CORBA §8.3). ORBs ask by themselves, when a reference is used for
/// the first time in a process.
const IMPLICIT: [&[u8]; 5] =
    [b"_is_a", b"_non_existent", b"_not_existent", b"_interface", b"_component"];

/// Some clients, and what they may call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientRule {
    /// From these; empty: from anywhere.
    pub networks: Vec<Network>,
    /// With a certificate that has one of these names, in which `*` stands for any part; empty:
    /// with any, or none.
    pub names: Vec<Bytes>,
    /// Operations, in which `*` stands for any part of a name. `None`: all.
    pub operations: Option<Vec<Bytes>>,
}

/// The rules of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Whoever fits one of them may call what that one says. `None`: everybody may call.
    pub clients: Option<Vec<ClientRule>>,
    /// Of [`STATE_OPERATIONS`], those that clients may call all the same.
    pub state_operations: Vec<Bytes>,
    /// The keys of the objects that only a service's own processes may call.
    pub own_keys: Box<[Bytes]>,
}

/// A certificate that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The first octets of its SHA-256.
    pub digest: [u8; 16],
    /// The common name of its subject and its DNS names.
    pub names: Vec<Bytes>,
}

/// A client, as far as its gateway knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientPeer {
    /// Where it connected from.
    pub address: IpAddr,
    /// With what it has shown who it is.
    pub certificate: Option<Certificate>,
}

impl ClientPeer {
    /// Whoever is at that address.
    #[must_use]
    pub const fn at(address: IpAddr) -> Self {
        Self { address, certificate: None }
    }

    /// A process of one of the node's services. It has no client's address, so that its budget is
    /// its own.
    #[must_use]
    pub const fn of_service() -> Self {
        Self::at(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    /// Whether it is [`Self::of_service`]. No client has that address (RFC 1122 §3.2.1.3).
    const fn is_of_service(&self) -> bool {
        self.address.is_unspecified()
    }

    /// By what its requests are told from those of others: its certificate, or else its address.
    #[must_use]
    pub fn subject(&self) -> [u8; 16] {
        match (&self.certificate, self.address.to_canonical()) {
            (Some(certificate), _) => certificate.digest,
            (None, IpAddr::V4(address)) => address.to_ipv6_mapped().octets(),
            (None, IpAddr::V6(address)) => address.octets(),
        }
    }
}

impl From<IpAddr> for ClientPeer {
    fn from(address: IpAddr) -> Self {
        Self::at(address)
    }
}

impl ClientRule {
    fn fits(&self, caller: &ClientPeer) -> bool {
        let from = self.networks.is_empty()
            || self.networks.iter().any(|network| network.has(caller.address));
        let names = caller.certificate.iter().flat_map(|certificate| &certificate.names);
        let mut names = names.flat_map(|name| self.names.iter().map(move |it| (it, name)));
        from && (self.names.is_empty() || names.any(|(pattern, name)| name_fits(pattern, name)))
    }

    fn allows(&self, operation: &[u8]) -> bool {
        let Some(operations) = &self.operations else { return true };
        is_implicit(operation) || operations.iter().any(|pattern| name_fits(pattern, operation))
    }
}

impl Access {
    /// Everything is allowed, states too: what stands behind is no group of the domain.
    pub(crate) fn open() -> Self {
        let state_operations = STATE_OPERATIONS.into_iter().map(Bytes::from_static).collect();
        Self { clients: None, state_operations, own_keys: Box::default() }
    }

    /// Whether the operation of the object may be called; by a client, or, if that is `None`, by
    /// the server of a group of the domain.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(
        &self,
        caller: Option<&ClientPeer>,
        (object_key, operation): (Option<&[u8]>, &[u8]),
    ) -> Result<(), MinorCode> {
        if STATE_OPERATIONS.contains(&operation)
            && !self.state_operations.iter().any(|open| open == operation)
        {
            return Err(MinorCode::StateIsProtected);
        }
        if caller.is_some_and(ClientPeer::is_of_service) {
            return Ok(());
        }
        if self.own_keys.iter().any(|own| Some(&**own) == object_key) {
            return Err(MinorCode::ServiceOnly);
        }
        let (Some(rules), Some(caller)) = (&self.clients, caller) else { return Ok(()) };
        let mut fitting = rules.iter().filter(|rule| rule.fits(caller)).peekable();
        if fitting.peek().is_none() {
            return Err(MinorCode::ClientNotAllowed);
        }
        let is_allowed = fitting.any(|rule| rule.allows(operation));
        if is_allowed { Ok(()) } else { Err(MinorCode::OperationNotAllowed) }
    }
}

/// Whether ORBs call it by themselves. It is no call that replicas have in common, and changes
/// nothing.
pub(crate) fn is_implicit(operation: &[u8]) -> bool {
    IMPLICIT.contains(&operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn network(address: [u8; 4], prefix_bits: u8) -> Network {
        Network { address: Ipv4Addr::from(address).into(), prefix_bits }
    }

    fn named(names: &[&'static str]) -> ClientPeer {
        let names = names.iter().map(|name| Bytes::from_static(name.as_bytes())).collect();
        let certificate = Some(Certificate { digest: [7; 16], names });
        ClientPeer { address: Ipv4Addr::new(9, 9, 9, 9).into(), certificate }
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        let net = network([10, 1, 0, 0], 16);
        assert!(net.has(Ipv4Addr::new(10, 1, 255, 3).into()));
        assert!(!net.has(Ipv4Addr::new(10, 2, 0, 0).into()));
        assert!(net.has(Ipv4Addr::new(10, 1, 2, 3).to_ipv6_mapped().into()));
        assert!(!net.has(Ipv6Addr::LOCALHOST.into()));
        assert!(network([0; 4], 0).has(Ipv4Addr::new(1, 2, 3, 4).into()));
        assert!(network([127, 0, 0, 2], 32).has(Ipv4Addr::new(127, 0, 0, 2).into()));
        assert!(!network([127, 0, 0, 2], 32).has(Ipv4Addr::LOCALHOST.into()));
        let net = Network { address: "fd00::".parse().unwrap(), prefix_bits: 8 };
        assert!(net.has("fdff::1".parse().unwrap()) && !net.has("fe80::1".parse().unwrap()));
    }

    #[test]
    fn states_are_moved_by_nobody_unless_the_group_says_so_by_name() {
        let closed = Access::default();
        for operation in STATE_OPERATIONS {
            let refused = Err(MinorCode::StateIsProtected);
            assert_eq!(closed.check(Some(&named(&[])), (None, operation)), refused);
            assert_eq!(closed.check(None, (None, operation)), refused, "a server's call");
            assert_eq!(Access::open().check(None, (None, operation)), Ok(()));
        }
        let read = vec![Bytes::from_static(b"get_state")];
        let access = Access { state_operations: read, ..Access::default() };
        assert_eq!(access.check(None, (None, b"get_state")), Ok(()));
        assert_eq!(access.check(None, (None, b"set_state")), Err(MinorCode::StateIsProtected));
        assert_eq!(closed.check(None, (None, b"_get_state")), Ok(()), "an attribute");
        assert_eq!(closed.check(None, (None, b"_is_a")), Ok(()));
    }

    #[test]
    fn who_fits_a_rule_may_call_what_it_says() {
        let all = ClientRule { networks: vec![network([10, 0, 0, 0], 8)], ..Default::default() };
        let some = ClientRule {
            names: vec![Bytes::from_static(b"*.audit.example")],
            operations: Some(vec![Bytes::from_static(b"get_*")]),
            ..Default::default()
        };
        let access = Access { clients: Some(vec![all, some]), ..Default::default() };
        let inside = ClientPeer::at(Ipv4Addr::new(10, 3, 2, 1).into());
        let outside = ClientPeer::at(Ipv4Addr::new(11, 3, 2, 1).into());
        assert_eq!(access.check(Some(&inside), (None, b"transfer")), Ok(()));
        assert_eq!(
            access.check(Some(&outside), (None, b"_is_a")),
            Err(MinorCode::ClientNotAllowed)
        );
        let auditor = named(&["somebody", "one.audit.example"]);
        assert_eq!(access.check(Some(&auditor), (None, b"get_balance")), Ok(()));
        assert_eq!(access.check(Some(&auditor), (None, b"_is_a")), Ok(()));
        let refused = Err(MinorCode::OperationNotAllowed);
        assert_eq!(access.check(Some(&auditor), (None, b"transfer")), refused);
        let other = named(&["audit.example"]);
        assert_eq!(
            access.check(Some(&other), (None, b"get_balance")),
            Err(MinorCode::ClientNotAllowed)
        );
        assert_eq!(access.check(None, (None, b"transfer")), Ok(()), "servers of the domain");
        let nobody = Access { clients: Some(vec![]), ..Default::default() };
        assert_eq!(nobody.check(Some(&inside), (None, b"x")), Err(MinorCode::ClientNotAllowed));
    }

    #[test]
    fn a_services_own_objects_are_for_its_processes_which_no_rule_for_clients_binds() {
        let own_keys = Box::new([Bytes::from_static(b"S/own")]);
        let access = Access { clients: Some(vec![]), own_keys, ..Default::default() };
        let own = ClientPeer::of_service();
        let called = |key: &'static [u8]| (Some(key), &b"push"[..]);
        assert_eq!(access.check(Some(&own), called(b"S/own")), Ok(()));
        assert_eq!(access.check(Some(&own), called(b"S")), Ok(()));
        let state = (Some(&b"S/own"[..]), &b"set_state"[..]);
        assert_eq!(access.check(Some(&own), state), Err(MinorCode::StateIsProtected));
        let everybody = Access { clients: None, ..access };
        let local = ClientPeer::at(Ipv4Addr::LOCALHOST.into());
        for caller in [Some(&local), None] {
            assert_eq!(everybody.check(caller, called(b"S/own")), Err(MinorCode::ServiceOnly));
            assert_eq!(everybody.check(caller, called(b"S")), Ok(()));
        }
    }

    #[test]
    fn a_client_is_its_certificate_or_else_its_address() {
        let plain = ClientPeer::at(Ipv4Addr::new(10, 3, 2, 1).into());
        let mapped = ClientPeer::at(Ipv4Addr::new(10, 3, 2, 1).to_ipv6_mapped().into());
        assert_eq!(plain.subject(), mapped.subject());
        assert_eq!(named(&[]).subject(), [7; 16]);
    }
}
