//! Free ports on the loopback interface, found by binding them; for demonstrations, measurements
//! and tests, whose nodes all run on one machine.
//!
//! What it is not: a reservation. The ports are let go before other processes bind them.
//!
//! Invariants: no port is in the range from which the system takes the local ports of outgoing
//! connections, else a client could sit on the port of a node that is down for a moment. One
//! process is not given a port again that it was given lately.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// Ports are looked for from here on, up to the system's own range.
const PORT_FIRST: u16 = 10_240;
/// Where the system's own range begins if it does not say (the default of Linux).
const OUTGOING_FIRST_DEFAULT: u16 = 32_768;
/// So many ports are remembered: fewer than the half of the narrowest range.
const GIVEN_MAX: usize = 900;

/// The ports that this process was given last.
static GIVEN: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());

/// So many different ports, free over TCP and UDP at this moment.
///
/// # Errors
/// If there are not so many.
pub fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let end = outgoing_first().clamp(PORT_FIRST + 2_000, u16::MAX);
    let width = u32::from(end - PORT_FIRST);
    // Anywhere, so that searches at the same time, in whatever processes, rarely meet.
    let anywhere = RandomState::new().hash_one(count);
    let offset = u32::try_from(anywhere % u64::from(width)).expect("below a width");
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut held = Vec::new();
    for step in 0..width {
        if held.len() == count {
            break;
        }
        let within = u16::try_from((offset + step) % width).expect("narrower than all ports");
        let address = (Ipv4Addr::LOCALHOST, PORT_FIRST + within);
        if given.contains(&address.1) {
            continue;
        }
        // Held until all are found, so that none is found twice.
        if let (Ok(tcp), Ok(udp)) = (TcpListener::bind(address), UdpSocket::bind(address)) {
            held.push((address.1, tcp, udp));
        }
    }
    if held.len() < count {
        let fault = format!("no {count} free ports between {PORT_FIRST} and {end}");
        return Err(io::Error::new(io::ErrorKind::AddrInUse, fault));
    }
    let ports: Vec<u16> = held.into_iter().map(|(port, _, _)| port).collect();
    given.extend(&ports);
    let forgotten = given.len().saturating_sub(GIVEN_MAX);
    given.drain(..forgotten);
    Ok(ports)
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
    fn ports_differ_and_can_be_bound_again() {
        let mut ports = free_ports(9).expect("free ports");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 9);
        for port in ports {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("free again");
        }
    }

    #[test]
    fn no_port_is_given_twice_in_a_row() {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..GIVEN_MAX / 9 {
            for port in free_ports(9).expect("free ports") {
                assert!(seen.insert(port), "{port} was given twice");
            }
        }
    }
}
