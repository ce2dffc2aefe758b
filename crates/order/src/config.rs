//! What a ring is told at its start: the domain, its own boot, and the floors of its timers.
//!
//! What it is not: the domain file. Whoever reads that checks it; here are only plain values.
//!
//! Invariants: the domain key is never printed and is wiped when dropped; every duration is a
//! floor or a cap, the running value is derived from the measured rotation time.

use core::fmt;
use quorba_base::{Duration, NodeId, NodeSet};
use zeroize::Zeroize;

/// The smallest [`Config::datagram_bytes_max`]; smaller values are raised to it.
pub const DATAGRAM_BYTES_MIN: usize = 1400;
/// The largest [`Config::datagram_bytes_max`]; larger values are lowered to it.
pub const DATAGRAM_BYTES_LIMIT: usize = 65_000;

/// The 32 bytes that make a process a member of the domain.
#[derive(Clone)]
pub struct DomainKey([u8; 32]);

impl DomainKey {
    /// Wraps the key's bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for DomainKey {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for DomainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DomainKey(hidden)")
    }
}

impl Drop for DomainKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Everything that a ring is configured with; the same on every node but for `me`.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node.
    pub me: NodeId,
    /// All nodes of the domain, `me` included.
    pub nodes: NodeSet,
    /// From it, every boot of every node derives its own sealing key.
    pub domain_key: DomainKey,
    /// Digest of the domain file. A node with another digest is refused and reported.
    pub domain_digest: u64,
    /// The most bytes that one sealed datagram may have ([`DATAGRAM_BYTES_MIN`] to
    /// [`DATAGRAM_BYTES_LIMIT`]).
    pub datagram_bytes_max: usize,
    /// `false`: datagrams are neither encrypted nor authenticated. Only for experiments.
    pub encrypt: bool,
    /// Pass the token on before the multicast is finished (Babay 2016), instead of after.
    pub accelerated: bool,
    /// What [`crate::Output::Held`] means.
    pub hold: Hold,
    /// Floors and caps of the timers.
    pub timing: Timing,
}

/// How many nodes must have a message before it is held ([`crate::Output::Held`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// A majority of the domain's nodes.
    #[default]
    Domain,
    /// A majority of the domain's nodes, or all members of a ring that is no larger than half of
    /// it: for domains with a tie-breaker.
    DomainOrAll,
    /// A majority of the ring's members: for dynamic voting.
    Members,
}

/// Floors and caps of the timers. The defaults suit a LAN and find their way on a WAN: the ring
/// measures its rotation and stretches what depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The least time without a sign of the token after which it is lost.
    pub token_loss_min: Duration,
    /// The most that token loss is stretched to on slow rings.
    pub token_loss_max: Duration,
    /// How long a gather waits for nodes that stay silent.
    pub consensus: Duration,
    /// Time between repeated Joins; on a WAN half a rotation if longer.
    pub join_interval: Duration,
    /// Longest rest of the token before it goes round to collect what everyone has received; by two
    /// fifths of `token_loss_min` longer if nothing was sent since it went round last.
    /// Zero: it never rests but circulates all the time, as Amir95's does, whatever that costs.
    pub rest_max: Duration,
    /// How long the resting holder waits for asked acknowledgements before it rotates the token; on
    /// a WAN two rotations if longer.
    pub ack_wait: Duration,
    /// First pause before a request for the token is repeated; it doubles up to `rest_max`; on a
    /// WAN two rotations if longer.
    pub request_retry: Duration,
    /// How long a gap may be mere reordering before a retransmission is asked for; on a WAN half a
    /// rotation if longer.
    pub reorder_wait: Duration,
    /// First pause between presence datagrams to nodes outside of the view; it doubles.
    pub presence_min: Duration,
    /// Longest pause between presence datagrams.
    pub presence_max: Duration,
    /// A node whose timers are this late was paused: it drops what queued up and gathers anew.
    pub pause: Duration,
}

impl Timing {
    /// By how much an idle ring's token rests longer than a busy one's. Its loss is noticed so
    /// much sooner when it does go round.
    pub(crate) fn idle_stretch(&self) -> Duration {
        if self.rest_max.is_zero() { Duration::ZERO } else { self.token_loss_min * 2 / 5 }
    }
}

impl Default for Timing {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            token_loss_min: ms(120),
            token_loss_max: ms(10_000),
            consensus: ms(40),
            join_interval: ms(10),
            rest_max: ms(25),
            ack_wait: ms(4),
            request_retry: ms(2),
            reorder_wait: ms(1),
            presence_min: ms(50),
            presence_max: ms(1_000),
            pause: ms(150),
        }
    }
}

/// What distinguishes this boot of the node from all others.
#[derive(Clone, Copy, Debug)]
pub struct Boot {
    /// Larger than at any earlier boot of this node.
    pub incarnation: u64,
    /// Fresh random bytes.
    pub salt: [u8; 16],
    /// The highest ring sequence number that this node ever stored; 0 if none.
    pub ring_seq_min: u64,
}
