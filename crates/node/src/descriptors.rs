//! How many descriptors a node may have, and for what.
//!
//! What it is not: a count of those that are open. Invariants: clients are never given those that
//! the node needs itself; some are kept in reserve for what must not wait.

use crate::clients::LINGERING_MAX;
use quorba_base::NodeId;
use quorba_config::Domain;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What every node has: standard streams, pollers, bells, sockets of the ring, the admin API, files
/// that it opens for a moment.
const ALWAYS: u64 = 64;
/// Connections of nodes that have not proven yet that they are some, of clients that are turned
/// away, and of admins.
const UNPROVEN: u64 = 256 + 64 + crate::admin::CONNECTIONS_MAX as u64;
/// Links to and from each node, old and new.
const PER_NODE: u64 = 4;
/// A server of ours: its pipes, keeper and connections; and while it is started.
const PER_MEMBER: u64 = 16;
/// Connections of our servers and to servers outside.
const CALLS: u64 = 128;
/// Clients in the middle of a handshake.
const HANDSHAKES: u64 = 256;
/// Files of the durable log.
const LOG: u64 = 16;
/// Kept open for nothing, until something must not wait.
const RESERVE: usize = 16;
/// How long what was lent is not taken back.
const LENT_FOR: Duration = Duration::from_secs(5);

/// How many clients may connect, if this process may have `most` descriptors; and what is to be
/// said of it, if these are fewer than the domain file says.
pub(crate) fn for_clients(domain: &Domain, me: NodeId, most: u64) -> (u32, Option<String>) {
    let of_mine = domain.groups.iter().filter(|group| group.members.contains(me));
    let calls = |group: &quorba_config::Group| !group.calls.is_empty() || !group.outside.is_empty();
    let listeners = domain.groups.len() as u64
        + of_mine.clone().map(|group| group.calls.len() + group.outside.len()).sum::<usize>()
            as u64;
    let own = ALWAYS
        + UNPROVEN
        + (LINGERING_MAX + RESERVE) as u64
        + PER_NODE * domain.nodes.len() as u64
        + PER_MEMBER * of_mine.clone().count() as u64
        + listeners
        + if of_mine.clone().any(calls) { CALLS } else { 0 }
        + if domain.groups.iter().any(|group| group.tls.is_some()) { HANDSHAKES } else { 0 }
        + if domain.groups.iter().any(|group| group.durable) { LOG } else { 0 };
    let wanted = domain.limits.connections;
    let room = u32::try_from(most.saturating_sub(own)).unwrap_or(u32::MAX).max(1);
    if room >= wanted {
        return (wanted, None);
    }
    let needed = own + u64::from(wanted);
    let said = format!(
        "`connections` = {wanted} needs {needed} descriptors, and this process may have {most}: \
         {room} clients can connect; raise its hard limit (ulimit -Hn, LimitNOFILE=)"
    );
    (room, Some(said))
}

/// Descriptors that are kept open, so that there are some to be had.
#[derive(Clone, Default)]
pub(crate) struct Reserve {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    spare: Vec<OwnedFd>,
    lent: Option<Instant>,
}

impl Reserve {
    /// As many as there are to be had.
    pub(crate) fn new() -> Self {
        let reserve = Self::default();
        reserve.fill();
        reserve
    }

    /// Closes what is kept: whoever asks for a descriptor next can have one.
    pub(crate) fn lend(&self) {
        let mut kept = self.kept.lock().expect("no holder panics");
        kept.spare.clear();
        kept.lent.get_or_insert_with(Instant::now);
    }

    /// Whether descriptors are scarce: clients must wait.
    pub(crate) fn is_lent(&self) -> bool {
        self.kept.lock().expect("no holder panics").lent.is_some()
    }

    /// Takes back what was lent, when it has been for long enough.
    pub(crate) fn refill(&self, now: Instant) {
        let lent = self.kept.lock().expect("no holder panics").lent;
        if lent.is_some_and(|since| now.saturating_duration_since(since) >= LENT_FOR) {
            self.fill();
        }
    }

    fn fill(&self) {
        let mut kept = self.kept.lock().expect("no holder panics");
        while kept.spare.len() < RESERVE {
            let Ok(spare) = eventfd(0, EventfdFlags::CLOEXEC) else { break };
            kept.spare.push(spare);
        }
        kept.lent = (kept.spare.len() < RESERVE).then(Instant::now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_config::{DomainKey, check_text};
    use std::path::Path;

    #[test]
    fn a_node_that_may_have_too_few_takes_in_fewer_clients_and_says_so() {
        let text = "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"127.0.0.1\"\n\
                    [group.bank]\nlisten = 5000\nmembers = [\"n1\"]\n\
                    server = [\"b\", \"{port}\"]\n";
        let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
        let domain = check_text(Path::new("quorba.toml"), text, key).domain.expect("a domain");
        let me = NodeId::new(0).expect("a node");
        assert_eq!(for_clients(&domain, me, 4096), (1000, None));
        let (room, said) = for_clients(&domain, me, 1024);
        assert!((400..1000).contains(&room), "{room}");
        let said = said.expect("something is said");
        assert!(said.contains(&format!("{room} clients")) && said.contains("1024"), "{said}");
    }

    #[test]
    fn what_is_lent_is_taken_back_later() {
        let reserve = Reserve::new();
        assert!(!reserve.is_lent());
        reserve.lend();
        reserve.refill(Instant::now());
        assert!(reserve.is_lent());
        reserve.refill(Instant::now() + LENT_FOR);
        assert!(!reserve.is_lent());
    }
}
