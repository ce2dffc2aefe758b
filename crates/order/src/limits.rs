//! The named limits that bound a ring's memory and work.
//!
//! Invariant: memory of a ring <= queue + packet log + one partial message per member. While a new
//! ring is being formed, its log is there as well as the old one's.

use crate::config::{Config, DATAGRAM_BYTES_LIMIT, DATAGRAM_BYTES_MIN};
use crate::seal::SEAL_BYTES;
use crate::wire::{DATA_HEADER_BYTES, RECOVERED_HEADER_BYTES, TICKET_BYTES};

/// The longest payload that can be submitted: 16 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// The most messages that wait in the submission queue.
pub const QUEUE_MESSAGES_MAX: usize = 65_536;
/// The most payload bytes that wait in the submission queue: 64 MiB.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Received packets that are kept for repetition, in bytes, aimed at.
const LOG_BYTES_AIM: usize = 16 << 20;
/// What may be in flight in one rotation, in bytes, aimed at; socket buffers must hold it.
const WINDOW_BYTES_AIM: usize = 1 << 20;

/// The most packets that the log of one ring holds, where datagrams have at most so many bytes
/// ([`Config::datagram_bytes_max`]).
#[must_use]
pub fn log_packets_max(datagram_bytes_max: usize) -> u64 {
    Limits::of(datagram_bytes_max).log_packets
}

/// Limits that follow from the size of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of messages, with chunk headers, in one packet.
    pub(crate) body_bytes: usize,
    /// Packets that may be sent beyond what all members have received.
    pub(crate) unstable_packets: u64,
    /// Packets that a log holds at most.
    pub(crate) log_packets: u64,
    /// Packets sent by all members in one rotation.
    pub(crate) window_packets: u32,
    /// Packets sent by one member in one visit of the token.
    pub(crate) visit_packets: u32,
}

impl Limits {
    pub(crate) fn new(config: &Config) -> Self {
        Self::of(config.datagram_bytes_max)
    }

    fn of(datagram_bytes_max: usize) -> Self {
        let datagram = datagram_bytes_max.clamp(DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_LIMIT);
        let overhead = SEAL_BYTES + DATA_HEADER_BYTES + RECOVERED_HEADER_BYTES + TICKET_BYTES;
        let window = (WINDOW_BYTES_AIM / datagram).clamp(16, 512);
        let unstable = (LOG_BYTES_AIM / datagram).clamp(128, 4096) as u64;
        Self {
            body_bytes: datagram - overhead,
            unstable_packets: unstable,
            log_packets: 2 * unstable + window as u64 + 16,
            window_packets: window as u32,
            visit_packets: (window / 2) as u32,
        }
    }
}
