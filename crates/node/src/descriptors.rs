//! How many descriptors a node may have, and for what.
//!
//! What it is not: a count of those that are open. Invariants: clients are never given those that
//! the node needs itself; some are kept in reserve for what must not wait.

use quorba_base::NodeId;
use quorba_config::{Backend, Domain, Group};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What every node has: standard streams, pollers, bells, sockets of the ring, the admin API, files
/// that it opens for a moment.
const ALWAYS: u64 = 64;
/// Links to and from each node, old and new.
const PER_NODE: u64 = 4;
/// A server of ours: its pipes, keeper and connections; and while it is started.
const PER_MEMBER: u64 = 16;
/// A server that somebody else runs: connections to it, old and new.
const PER_ELSEWHERE: u64 = 4;
/// While such servers are away: looks at where they should be.
const LOOKS: u64 = 128;
/// Connections of our servers and to servers outside.
const CALLS: u64 = 128;
/// Files of the durable log.
const LOG: u64 = 16;
/// Kept open for nothing, until something must not wait.
const RESERVE: usize = 16;
/// How long what was lent is not taken back.
const LENT_FOR: Duration = Duration::from_secs(5);

/// What others may have of this process's descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shares {
    /// Clients.
    pub(crate) clients: u32,
    pub(crate) passing: TransientConnections,
}

/// Connections that are here for a short time only, each kind with a bound: where there are too
/// many, another one of the kind is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TransientConnections {
    /// Of nodes that have not proven yet that they are some.
    pub(crate) unproven: usize,
    /// Of clients that are turned away, and wait to be told so.
    pub(crate) turned_away: usize,
    /// That were ended, and whose clients may still take their time.
    pub(crate) lingering: usize,
    /// To the admin API, which have not shown the token.
    pub(crate) admins: usize,
    /// Of clients in the middle of a TLS handshake.
    pub(crate) handshakes: usize,
}

impl TransientConnections {
    /// Where there are descriptors enough.
    pub(crate) const FULL: Self =
        Self { unproven: 256, turned_away: 64, lingering: 64, admins: 32, handshakes: 256 };

    fn sum(&self, has_tls: bool) -> u64 {
        let Self { unproven, turned_away, lingering, admins, handshakes } = *self;
        let handshakes = if has_tls { handshakes } else { 0 };
        (unproven + turned_away + lingering + admins + handshakes) as u64
    }

    /// The same part of each; of each there is one at least.
    fn part(&self, of: u64, whole: u64) -> Self {
        let part = |most: usize| (most as u64 * of / whole.max(1)).max(1) as usize;
        Self {
            unproven: part(self.unproven),
            turned_away: part(self.turned_away),
            lingering: part(self.lingering),
            admins: part(self.admins),
            handshakes: part(self.handshakes),
        }
    }
}

/// Shares out `most` descriptors; and what is to be said, if clients get fewer than the domain file
/// says. What the node needs itself comes first. Of the rest clients have half at least: else those
/// who only pass by would leave them nothing.
pub(crate) fn share_out(domain: &Domain, me: NodeId, most: u64) -> (Shares, Option<String>) {
    let own = own(domain, me);
    let has_tls = domain.groups.iter().any(|group| group.tls.is_some());
    let (wanted, full) = (domain.limits.connections, TransientConnections::FULL.sum(has_tls));
    let needed = own + full + u64::from(wanted);
    if most >= needed {
        return (Shares { clients: wanted, passing: TransientConnections::FULL }, None);
    }
    let left = most.saturating_sub(own);
    let passing = if left / 2 >= full {
        TransientConnections::FULL
    } else {
        TransientConnections::FULL.part(left / 2, full)
    };
    let room = left.saturating_sub(passing.sum(has_tls)).clamp(1, u64::from(wanted));
    let said = format!(
        "`connections` = {wanted} needs {needed} descriptors, and this process may have {most}: \
         {room} clients can connect; raise its hard limit (ulimit -Hn, LimitNOFILE=)"
    );
    (Shares { clients: u32::try_from(room).unwrap_or(wanted), passing }, Some(said))
}

/// What the node needs itself.
fn own(domain: &Domain, me: NodeId) -> u64 {
    let of_mine = domain.groups.iter().filter(|group| group.members.contains(me));
    let calls = |group: &Group| !group.calls.is_empty();
    let listeners = domain.groups.len() as u64
        + of_mine.clone().map(|group| group.calls.len()).sum::<usize>() as u64;
    let is_elsewhere = |group: &&Group| matches!(group.backend, Backend::Connect(_));
    let elsewhere = of_mine.clone().filter(is_elsewhere).count() as u64;
    ALWAYS
        + RESERVE as u64
        + PER_NODE * domain.nodes.len() as u64
        + PER_MEMBER * (of_mine.clone().count() as u64 - elsewhere)
        + PER_ELSEWHERE * elsewhere
        + if elsewhere > 0 { LOOKS } else { 0 }
        + listeners
        + if of_mine.clone().any(calls) { CALLS } else { 0 }
        + if domain.groups.iter().any(|group| group.durable) { LOG } else { 0 }
}

/// Descriptors that are kept open, so that there are some to be had.
#[derive(Clone, Default)]
pub(crate) struct Reserve {
    kept: Arc<Mutex<HeldDescriptors>>,
}

#[derive(Default)]
struct HeldDescriptors {
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
        self.fill_by(|| eventfd(0, EventfdFlags::CLOEXEC));
    }

    fn fill_by<E>(&self, mut open: impl FnMut() -> Result<OwnedFd, E>) {
        let mut kept = self.kept.lock().expect("no holder panics");
        while kept.spare.len() < RESERVE {
            let Ok(spare) = open() else { break };
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

    fn domain() -> Domain {
        domain_of(1, 1, "")
    }

    /// All groups have their member on the first node; `more` stands in their tables.
    fn domain_of(nodes: u16, groups: u16, more: &str) -> Domain {
        let mut text = "[domain]\nid = \"d\"\nkey_file = \"key\"\n".to_owned();
        for node in 1..=nodes {
            text += &format!("[node.n{node}]\nhost = \"127.0.0.{node}\"\n");
        }
        for group in 0..groups {
            let port = 5000 + group;
            text += &format!(
                "[group.bank{group}]\nlisten = {port}\nmembers = [\"n1\"]\n\
                 server = [\"b\", \"{{port}}\"]\n{more}"
            );
        }
        let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
        let read = check_text(Path::new("quorba.toml"), &text, key);
        read.domain.unwrap_or_else(|| panic!("{}", read.report))
    }

    #[test]
    fn a_node_that_may_have_too_few_takes_in_fewer_clients_and_says_so() {
        let domain = domain();
        let me = NodeId::new(0).expect("a node");
        let all = Shares { clients: 1000, passing: TransientConnections::FULL };
        assert_eq!(share_out(&domain, me, 4096), (all, None));
        let (Shares { clients, passing }, said) = share_out(&domain, me, 1024);
        assert!((400..1000).contains(&clients), "{clients}");
        assert_eq!(passing, TransientConnections::FULL);
        let said = said.expect("something is said");
        assert!(said.contains(&format!("{clients} clients")) && said.contains("1024"), "{said}");
    }

    #[test]
    fn where_descriptors_are_very_few_clients_have_half_of_what_the_node_does_not_need() {
        let domain = domain();
        let me = NodeId::new(0).expect("a node");
        for most in [160, 256, 400, 512] {
            let (Shares { clients, passing }, _) = share_out(&domain, me, most);
            let left = most - own(&domain, me);
            assert!(u64::from(clients) >= left / 2 - 5, "{most}: {clients} of {left}");
            assert!(u64::from(clients) + passing.sum(false) <= left, "{most}: {passing:?}");
            assert!(passing.unproven > passing.admins && passing.admins > 0, "{passing:?}");
        }
    }

    #[test]
    fn a_node_counts_what_it_needs_for_each_node_member_and_log() {
        let me = NodeId::new(0).expect("a node");
        let needs = |nodes, groups, more| own(&domain_of(nodes, groups, more), me);
        let plain = needs(1, 1, "");
        assert_eq!(needs(3, 1, "") - plain, 2 * PER_NODE);
        assert_eq!(needs(1, 2, "") - plain, PER_MEMBER + 1, "and its listener");
        let away = |groups| {
            let mut domain = domain_of(1, groups, "");
            for group in &mut domain.groups {
                group.backend = Backend::Connect(Vec::new());
            }
            own(&domain, me)
        };
        assert_eq!(away(3) - away(1), 2 * (PER_ELSEWHERE + 1), "a process would take more");
        assert_eq!(needs(1, 1, "durable = true\nstate_object = \"s\"\n") - plain, LOG);
    }

    /// It is tried again, and clients wait meanwhile.
    #[test]
    fn descriptors_are_scarce_while_not_all_can_be_kept() {
        let reserve = Reserve::default();
        let mut left = RESERVE - 1;
        reserve.fill_by(|| match left {
            0 => Err(()),
            _ => {
                left -= 1;
                eventfd(0, EventfdFlags::CLOEXEC).map_err(|_| ())
            }
        });
        assert!(reserve.is_lent());
        reserve.refill(Instant::now() + LENT_FOR);
        assert!(!reserve.is_lent());
    }

    /// Whoever asks next could else have none.
    #[test]
    fn to_lend_is_to_close_what_was_kept_and_to_take_back_is_to_open_it_again() {
        let reserve = Reserve::new();
        let kept = || reserve.kept.lock().expect("nobody panics").spare.len();
        assert_eq!(kept(), RESERVE);
        reserve.lend();
        assert_eq!(kept(), 0);
        let now = Instant::now();
        reserve.refill(now + LENT_FOR / 2);
        assert_eq!((kept(), reserve.is_lent()), (0, true));
        reserve.refill(now + LENT_FOR * 2);
        assert_eq!((kept(), reserve.is_lent()), (RESERVE, false));
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
