//! One virtual machine of the domain: its disk, its clock, its node process if it runs, and who
//! looks after the servers.
//!
//! Invariant: a node sees its inputs in the order in which they came, also after a pause.

use crate::stream::StreamId;
use bytes::{Bytes, BytesMut};
use quorba_base::{Instant, NodeId};
use quorba_engine::Node;
use quorba_engine::replica::{ChannelId, DownReason, GroupId};
use std::collections::VecDeque;

/// Something that happens to a node process.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Datagram(BytesMut),
    PeerLost(NodeId),
    ClientOpened(StreamId, GroupId),
    ClientBytes(StreamId, Bytes),
    ClientClosed(StreamId),
    ServerUp(GroupId),
    ServerDown(GroupId, DownReason),
    ServerConnected(GroupId, ChannelId),
    ServerClosed(GroupId, ChannelId),
    ServerBytes(GroupId, ChannelId, Bytes),
    Stop,
}

impl Input {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Datagram(_) => "datagram",
            Self::PeerLost(_) => "peer lost",
            Self::ClientOpened(..) => "client opened",
            Self::ClientBytes(..) => "client bytes",
            Self::ClientClosed(_) => "client closed",
            Self::ServerUp(_) => "server up",
            Self::ServerDown(..) => "server down",
            Self::ServerConnected(..) => "server connected",
            Self::ServerClosed(..) => "server closed",
            Self::ServerBytes(..) => "server bytes",
            Self::Stop => "stop",
        }
    }
}

/// What survives a crash of the host.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Disk {
    pub(crate) incarnation: u64,
    pub(crate) ring_seq: u64,
    pub(crate) bootstrapped: bool,
}

/// A monotonic clock that starts at zero with the process, drifts, and may jump ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    /// Parts per million that it runs too fast; negative: too slow.
    drift_ppm: i64,
    ahead_ns: u64,
}

impl Clock {
    pub(crate) fn new(origin: Instant, drift_ppm: i64) -> Self {
        Self { origin, drift_ppm, ahead_ns: 0 }
    }

    fn rate(&self) -> u128 {
        u128::try_from(1_000_000 + self.drift_ppm).expect("drift is far below one million")
    }

    /// What it shows at the true time `at`.
    pub(crate) fn local(&self, at: Instant) -> Instant {
        let true_ns = u128::from(at.as_nanos() - self.origin.as_nanos());
        let local_ns = true_ns * self.rate() / 1_000_000;
        Instant::from_nanos(local_ns as u64 + self.ahead_ns)
    }

    /// The first true time at which it shows `local` or more.
    pub(crate) fn global(&self, local: Instant) -> Instant {
        let local_ns = u128::from(local.as_nanos().saturating_sub(self.ahead_ns));
        let true_ns = (local_ns * 1_000_000).div_ceil(self.rate());
        let true_ns = u64::try_from(true_ns).unwrap_or(u64::MAX);
        Instant::from_nanos(self.origin.as_nanos().saturating_add(true_ns))
    }

    pub(crate) fn jump(&mut self, ahead_ns: u64) {
        self.ahead_ns += ahead_ns;
    }
}

/// Starts a server again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supervisor {
    /// The server that it started last, or found.
    pub(crate) server: Option<usize>,
    pub(crate) backoff_ms: u64,
    /// Counts orders, so that an old one is recognised.
    pub(crate) serial: u64,
    /// When the last news of it reach the node.
    pub(crate) news_at: Instant,
    pub(crate) started_at: Instant,
}

/// See the module's text.
pub(crate) struct Host {
    pub(crate) node: Option<Node>,
    /// Counts the starts of the process.
    pub(crate) boot: u64,
    pub(crate) disk: Disk,
    pub(crate) clock: Clock,
    pub(crate) paused_until: Option<Instant>,
    pub(crate) busy_until: Instant,
    /// How long each input takes it.
    pub(crate) slow_us: u64,
    pub(crate) inbox: VecDeque<Input>,
    pub(crate) armed: Option<Instant>,
    /// The process ends after so many effects.
    pub(crate) crash_after: Option<u64>,
    /// The host has power, so its kernel answers for a dead process.
    pub(crate) powered: bool,
    /// By group; `None` where the group has no member here.
    pub(crate) supervisors: Vec<Option<Supervisor>>,
    /// It lost its memory and is not in a primary component again.
    pub(crate) amnesic: bool,
    pub(crate) stopping: bool,
    /// Wake-ups in a row at the same time.
    pub(crate) spins: u32,
}

impl Host {
    pub(crate) fn new(supervisors: Vec<Option<Supervisor>>) -> Self {
        Self {
            node: None,
            boot: 0,
            disk: Disk::default(),
            clock: Clock::new(Instant::ZERO, 0),
            paused_until: None,
            busy_until: Instant::ZERO,
            slow_us: 0,
            inbox: VecDeque::new(),
            armed: None,
            crash_after: None,
            powered: true,
            supervisors,
            amnesic: false,
            stopping: false,
            spins: 0,
        }
    }

    /// Whether it cannot look at inputs now.
    pub(crate) fn is_blocked(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| until > now) || self.busy_until > now
    }

    pub(crate) fn is_up(&self) -> bool {
        self.node.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_set_by_a_drifting_clock_is_due_when_it_rings() {
        let origin = Instant::from_nanos(5_000);
        for drift_ppm in [-20_000, -3, 0, 7, 20_000] {
            let mut clock = Clock::new(origin, drift_ppm);
            for ahead_ns in [0, 12_345] {
                clock.jump(ahead_ns);
                for local_ns in [12_345, 12_346, 1_000_000_007] {
                    let local = Instant::from_nanos(local_ns);
                    let rings = clock.global(local);
                    assert!(clock.local(rings) >= local);
                    let before = Instant::from_nanos(rings.as_nanos() - 1);
                    assert!(before < origin || clock.local(before) < local);
                }
            }
        }
    }
}
