//! How much a client address may do: connections and requests per second.
//!
//! Invariant: an address that has no connection and a full bucket is forgotten, so that memory
//! follows the connections that are open.

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use quorba_base::{Duration, Instant};

const NANOS: u64 = 1_000_000_000;

struct Peer {
    connections: usize,
    /// Nanoseconds of credit: a request costs `1 s / rate`, a full bucket is one second.
    credit_ns: u64,
    refilled: Instant,
}

/// Book-keeping per client address.
pub(crate) struct Peers {
    peers: BTreeMap<IpAddr, Peer>,
    connections_max: usize,
    requests_per_second: u32,
}

impl Peers {
    pub(crate) fn new(connections_max: usize, requests_per_second: u32) -> Self {
        Self { peers: BTreeMap::new(), connections_max, requests_per_second }
    }

    /// Whether one more connection from `address` is allowed; counts it if so.
    pub(crate) fn connect(&mut self, now: Instant, address: IpAddr) -> bool {
        let peer = self.peers.entry(address).or_insert(Peer {
            connections: 0,
            credit_ns: NANOS,
            refilled: now,
        });
        if peer.connections >= self.connections_max {
            return false;
        }
        peer.connections += 1;
        true
    }

    pub(crate) fn disconnect(&mut self, address: IpAddr) {
        if let Some(peer) = self.peers.get_mut(&address) {
            peer.connections = peer.connections.saturating_sub(1);
            if peer.connections == 0 {
                self.peers.remove(&address);
            }
        }
    }

    /// Takes the cost of one request; `Err` says how long to wait for enough credit.
    pub(crate) fn request(&mut self, now: Instant, address: IpAddr) -> Result<(), Duration> {
        if self.requests_per_second == 0 {
            return Ok(());
        }
        let Some(peer) = self.peers.get_mut(&address) else { return Ok(()) };
        let elapsed = u64::try_from(now.since(peer.refilled).as_nanos()).unwrap_or(NANOS);
        peer.credit_ns = peer.credit_ns.saturating_add(elapsed).min(NANOS);
        peer.refilled = now;
        let cost = NANOS / u64::from(self.requests_per_second);
        if peer.credit_ns < cost {
            return Err(Duration::from_nanos(cost - peer.credit_ns));
        }
        peer.credit_ns -= cost;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));

    #[test]
    fn connections_of_one_address_are_counted() {
        let mut peers = Peers::new(2, 0);
        let now = Instant::ZERO;
        assert!(peers.connect(now, A));
        assert!(peers.connect(now, A));
        assert!(!peers.connect(now, A));
        peers.disconnect(A);
        assert!(peers.connect(now, A));
    }

    #[test]
    fn a_burst_of_a_second_is_allowed_then_the_rate_holds() {
        let mut peers = Peers::new(2, 10);
        let start = Instant::ZERO;
        assert!(peers.connect(start, A));
        for _ in 0..10 {
            assert_eq!(peers.request(start, A), Ok(()));
        }
        assert_eq!(peers.request(start, A), Err(Duration::from_millis(100)));
        assert_eq!(peers.request(start + Duration::from_millis(100), A), Ok(()));
    }
}
