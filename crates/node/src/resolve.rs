//! Hosts of the domain file as addresses.
//!
//! What it is not: for whom must not wait: a name may take the system's resolver seconds.
//! Invariant: an address needs no look-up.

use quorba_config::{Endpoint, Host, Node};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The first address of a host.
pub(crate) fn resolve(endpoint: &Endpoint) -> std::io::Result<SocketAddr> {
    match &endpoint.host {
        Host::Address(address) => Ok(SocketAddr::new(*address, endpoint.port)),
        Host::Name(name) => resolve_host(name, endpoint.port),
    }
}

/// The first address of `name`.
pub(crate) fn resolve_host(name: &str, port: u16) -> std::io::Result<SocketAddr> {
    let mut addresses = (name, port).to_socket_addrs()?;
    let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    addresses.next().ok_or_else(none)
}

/// The address that a node's sockets bind to.
pub(crate) fn bind_address(node: &Node) -> std::io::Result<IpAddr> {
    match (node.bind_address(), &node.host) {
        (Some(address), _) => Ok(address),
        (None, Host::Address(address)) => Ok(*address),
        (None, Host::Name(name)) => Ok(resolve_host(name, node.ring_port)?.ip()),
    }
}
