//! The identity under which a client may repeat a call (FT-CORBA §23.2.8: FT_REQUEST).
//!
//! What it is not: a promise by itself. It is one only towards a gateway that remembers it.
//!
//! Invariants: a client id is never used by two clients, not even by two starts of one program;
//! a retention id is used for one call, however often it is sent; but for one that was answered
//! with COMPLETED_NO and is made anew, under the next id, and for one whose caller says that it is
//! the last one once more.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorba_giop::context::TIME_T_OF_UNIX_EPOCH;
use quorba_giop::{Endian, FtRequest};

/// Ticks of a TimeT per second.
const TICKS_PER_S: u64 = 10_000_000;

/// Clients that this process has given an identity.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// The time of this host's clock, in 100 ns as CORBA counts it (`TimeBase::TimeT`).
#[must_use]
pub fn time_t() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ticks = since.as_secs().saturating_mul(TICKS_PER_S);
    TIME_T_OF_UNIX_EPOCH.saturating_add(ticks).saturating_add((since.subsec_nanos() / 100).into())
}

/// A duration as TimeT counts it.
fn ticks(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / 100).unwrap_or(u64::MAX)
}

/// An identity for a client.
#[derive(Clone, Debug)]
pub struct Repeat {
    client_id: Vec<u8>,
    retention_id: i32,
}

impl Repeat {
    /// An identity that no other client has; `name` and `number` are for people who read it.
    #[must_use]
    pub fn new(name: &str, number: usize) -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let nth = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let client_id = format!("{name}{number}/{}/{started}/{nth}", process::id());
        Self { client_id: client_id.into_bytes(), retention_id: 0 }
    }

    /// The next call has the name of the last one; there was one.
    pub(super) const fn go_back(&mut self) {
        self.retention_id = self.retention_id.wrapping_sub(1);
    }

    /// The context data of the next call, which may be repeated for `duration`.
    pub(super) fn next(&mut self, endian: Endian, duration: Duration) -> Vec<u8> {
        self.retention_id = self.retention_id.wrapping_add(1);
        let context = FtRequest {
            client_id: self.client_id.clone(),
            retention_id: self.retention_id,
            expiration_time: time_t().saturating_add(ticks(duration)),
        };
        context.encode(endian)
    }
}
