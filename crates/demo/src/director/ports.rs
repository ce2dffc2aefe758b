//! Free ports on the loopback interface, found by binding them.
//!
//! What it is not: a reservation. The ports are let go before the nodes bind them, because they
//! are other processes, and bind them again after each kill.
//!
//! Invariant: no port is in the range from which the system takes the local ports of outgoing
//! connections, else a client could sit on the port of a node that is down for a moment.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// Ports are looked for from here on, up to the system's own range.
const PORT_FIRST: u16 = 12_000;
/// Where the system's own range begins if it does not say (the default of Linux).
const OUTGOING_FIRST_DEFAULT: u16 = 32_768;
/// Ports that are tried before giving up.
const ATTEMPTS_MAX: usize = 5_000;

/// Ports of one run.
pub(super) struct Ports {
    /// For `ring_port`, one per node.
    pub(super) ring: Vec<u16>,
    /// For the admin API, one per node.
    pub(super) admin: Vec<u16>,
    /// For the gateway of the bank's group, one per node.
    pub(super) gateway: Vec<u16>,
}

/// Finds ports for `nodes` nodes, all of them free over TCP and UDP at this moment.
pub(super) fn find(nodes: usize) -> io::Result<Ports> {
    let mut choices = fastrand::Rng::new();
    let end = outgoing_first().clamp(PORT_FIRST + 1_000, u16::MAX);
    let mut held = Vec::new();
    for _ in 0..ATTEMPTS_MAX {
        if held.len() == nodes * 3 {
            break;
        }
        let port = choices.u16(PORT_FIRST..end);
        // Held until all are found, so that none is found twice.
        let address = (Ipv4Addr::LOCALHOST, port);
        if let (Ok(tcp), Ok(udp)) = (TcpListener::bind(address), UdpSocket::bind(address)) {
            held.push((port, tcp, udp));
        }
    }
    if held.len() < nodes * 3 {
        let fault = format!("no {} free ports between {PORT_FIRST} and {end}", nodes * 3);
        return Err(io::Error::new(io::ErrorKind::AddrInUse, fault));
    }
    let mut ports = held.iter().map(|(port, _, _)| *port);
    let mut some = || ports.by_ref().take(nodes).collect();
    Ok(Ports { ring: some(), admin: some(), gateway: some() })
}

fn outgoing_first() -> u16 {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(OUTGOING_FIRST_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ports_differ_and_can_be_bound_again() {
        let Ports { ring, admin, gateway } = find(3).expect("free ports");
        let mut all = [ring, admin, gateway].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 9);
        for port in all {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("free again");
        }
    }
}
