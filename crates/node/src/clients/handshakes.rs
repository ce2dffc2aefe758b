//! TLS connections whose clients have not shown yet who they are.
//!
//! What it is not: TLS. Invariants: they are few, of one address and in all, and none stays for
//! longer than it may; the engine hears of a connection when its handshake is over.

use crate::log_limiter::LogLimiter;
use quorba_engine::replica::GroupId;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant as Clock};

/// Handshakes under way at once from one address; further connections are closed at once.
const OF_ADDRESS_MAX: usize = 32;

struct Handshake {
    group: GroupId,
    peer: IpAddr,
    until: Clock,
}

/// What to do about a connection that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// Let it shake hands; another one is ended for it, if any.
    Yes(Option<u64>),
    /// Close it: its address has too many under way.
    No,
}

/// See the module's text.
pub(super) struct Handshakes {
    /// By token, which count up, so that the oldest is first.
    under_way: BTreeMap<u64, Handshake>,
    /// Of more than so many the oldest is ended.
    most: usize,
    of_address: HashMap<IpAddr, usize>,
    time: Duration,
    failures: LogLimiter,
}

impl Handshakes {
    pub(super) fn new(time: Duration, most: usize) -> Self {
        Self {
            under_way: BTreeMap::new(),
            most,
            of_address: HashMap::new(),
            time,
            failures: LogLimiter::default(),
        }
    }

    pub(super) fn begin(&mut self, now: Clock, token: u64, group: GroupId, peer: IpAddr) -> Begun {
        let count = self.of_address.entry(peer).or_default();
        if *count >= OF_ADDRESS_MAX {
            return Begun::No;
        }
        *count += 1;
        self.under_way.insert(token, Handshake { group, peer, until: now + self.time });
        if self.under_way.len() <= self.most {
            return Begun::Yes(None);
        }
        let oldest = self.under_way.first_key_value().map(|(token, _)| *token);
        if let Some(oldest) = oldest {
            self.end(oldest);
        }
        Begun::Yes(oldest)
    }

    pub(super) fn has(&self, token: u64) -> bool {
        self.under_way.contains_key(&token)
    }

    /// It is over, one way or another: to which group it went, and from where.
    pub(super) fn end(&mut self, token: u64) -> Option<(GroupId, IpAddr)> {
        let Handshake { group, peer, .. } = self.under_way.remove(&token)?;
        if let Some(count) = self.of_address.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&peer);
            }
        }
        Some((group, peer))
    }

    /// One has come to nothing. Of how many that was not told, if it is to be told now.
    pub(super) fn failed(&mut self, now: Clock) -> Option<u64> {
        self.failures.tells(now)
    }

    /// When the oldest has had its time.
    pub(super) fn until(&self) -> Option<Clock> {
        self.under_way.first_key_value().map(|(_, oldest)| oldest.until)
    }

    /// One that has had its time.
    pub(super) fn overdue(&self, now: Clock) -> Option<u64> {
        let (token, oldest) = self.under_way.first_key_value()?;
        (oldest.until <= now).then_some(*token)
    }

    pub(super) fn tokens(&self) -> Vec<u64> {
        self.under_way.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(3);
    const MOST: usize = 256;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn one_address_has_few_and_many_addresses_end_the_oldest() {
        let mut all = Handshakes::new(Duration::from_secs(5), MOST);
        let now = Clock::now();
        let of_one = OF_ADDRESS_MAX as u64;
        for token in 0..of_one {
            assert_eq!(all.begin(now, token, GROUP, address(1)), Begun::Yes(None));
        }
        assert_eq!(all.begin(now, of_one, GROUP, address(1)), Begun::No);
        for token in of_one..MOST as u64 {
            let peer = address(2 + (token / of_one) as u8);
            assert_eq!(all.begin(now, token, GROUP, peer), Begun::Yes(None));
        }
        assert_eq!(all.begin(now, 1_000, GROUP, address(99)), Begun::Yes(Some(0)));
        assert_eq!(all.under_way.len(), MOST);
        assert_eq!(all.end(1_000), Some((GROUP, address(99))));
        assert_eq!(all.begin(now, 1_001, GROUP, address(1)), Begun::Yes(None), "a place is free");
        for token in all.tokens() {
            let _ = all.end(token);
        }
        assert!(all.of_address.is_empty());
    }

    #[test]
    fn a_handshake_has_its_time() {
        let mut all = Handshakes::new(Duration::from_secs(5), MOST);
        let now = Clock::now();
        assert_eq!(all.begin(now, 7, GROUP, address(1)), Begun::Yes(None));
        assert_eq!(all.overdue(now), None);
        assert_eq!(all.until(), Some(now + Duration::from_secs(5)));
        assert_eq!(all.overdue(now + Duration::from_secs(5)), Some(7));
    }
}
