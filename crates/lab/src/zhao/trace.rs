//! What the nodes of a block recorded, cut to the calls that count.
//!
//! Invariant: the calls that count are the last ones that the client made; what was recorded
//! before the first of its calls shows the ring without load.

use quorba_node::{Recorded, SeriesName};

use super::NODES;

/// What was recorded shortly before the first call, and not while the nodes were still starting.
const IDLE_NS: u64 = 200_000_000;

/// Samples of all nodes, in nanoseconds; index 0 is the client's node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) nodes: [NodeTrace; NODES],
}

/// Samples of one node, in nanoseconds, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeTrace {
    /// Token rotations before the first call.
    pub(crate) idle_rotations: Vec<u64>,
    /// Token rotations during the calls.
    pub(crate) rotations: Vec<u64>,
    /// How long the node's messages waited for the token: requests at the client's node, replies
    /// elsewhere.
    pub(crate) send_delays: Vec<u64>,
    /// How long the node's server took.
    pub(crate) servers: Vec<u64>,
    /// How long the client took from a reply to its next request.
    pub(crate) clients: Vec<u64>,
}

impl NodeTrace {
    /// The series with their names in records.
    pub(crate) fn series(&self) -> [(&'static str, &[u64]); 5] {
        [
            ("token_rotation_idle", &self.idle_rotations),
            ("token_rotation", &self.rotations),
            ("send_delay", &self.send_delays),
            ("server", &self.servers),
            ("client", &self.clients),
        ]
    }
}

impl Trace {
    /// From what the nodes wrote; `names` are theirs, from the client's node along the ring.
    /// Fails if something is missing.
    pub(crate) fn cut(
        recorded: &[Recorded],
        names: &[String; NODES],
        warm_up: usize,
        calls: usize,
    ) -> Result<Self, String> {
        let find = |name: &String, series: SeriesName| {
            let found = recorded.iter().find(|one| one.node == *name && one.series == series);
            found.ok_or_else(|| format!("{name} has not recorded {series:?}"))
        };
        let requests = find(&names[0], SeriesName::SendDelay)?;
        let count = requests.at_ns.len();
        if count < warm_up + calls {
            return Err(format!("{} has recorded {count} requests", names[0]));
        }
        let submitted = |index: usize| requests.at_ns[index] - requests.took_ns[index];
        let from_ns = submitted(count - calls);
        let first_ns = submitted(count - calls - warm_up);
        let last_ns = requests.at_ns[count - 1];
        let mut trace = Self::default();
        for (node, name) in trace.nodes.iter_mut().zip(names) {
            let rotations = find(name, SeriesName::TokenRotation)?;
            let begins_late = rotations.at_ns.first().is_none_or(|at_ns| *at_ns > from_ns);
            if begins_late && rotations.overwritten > 0 {
                return Err(format!("{name} had no room for all visits of the token"));
            }
            node.idle_rotations = between(rotations, first_ns.saturating_sub(IDLE_NS), first_ns);
            node.rotations = between(rotations, from_ns, last_ns);
            node.send_delays = between(find(name, SeriesName::SendDelay)?, from_ns, u64::MAX);
            let servers = &find(name, SeriesName::Server)?.took_ns;
            // Every member executes every request, and some are behind when the calls begin.
            node.servers = servers[servers.len().saturating_sub(calls)..].to_vec();
            node.clients = between(find(name, SeriesName::Client)?, from_ns, last_ns);
        }
        Ok(trace)
    }

    /// Adds the samples of another round.
    pub(crate) fn add(&mut self, other: Self) {
        for (mine, others) in self.nodes.iter_mut().zip(other.nodes) {
            mine.idle_rotations.extend(others.idle_rotations);
            mine.rotations.extend(others.rotations);
            mine.send_delays.extend(others.send_delays);
            mine.servers.extend(others.servers);
            mine.clients.extend(others.clients);
        }
    }
}

/// The samples that lie wholly between two moments.
fn between(recorded: &Recorded, from_ns: u64, to_ns: u64) -> Vec<u64> {
    let samples = recorded.at_ns.iter().zip(&recorded.took_ns);
    let within = samples.filter(|(at, took)| **at <= to_ns && **at - **took >= from_ns);
    within.map(|(_, took)| *took).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(node: &str, series: SeriesName, samples: &[(u64, u64)]) -> Recorded {
        let (at_ns, took_ns) = samples.iter().copied().unzip();
        Recorded { node: node.to_owned(), series, overwritten: 0, at_ns, took_ns }
    }

    /// A client at `n4` that made one call at 1,000, one at 2,000 and one at 3,000.
    fn of_three_calls() -> Vec<Recorded> {
        let mut all = Vec::new();
        for node in ["n1", "n2", "n3", "n4"] {
            let visits: Vec<_> = (1..40).map(|n| (n * 100, 100)).collect();
            all.push(recorded(node, SeriesName::TokenRotation, &visits));
            let calls = [(1_050, 50), (2_040, 40), (3_030, 30)];
            all.push(recorded(node, SeriesName::SendDelay, &calls));
            let member = node != "n4";
            let times = [(1_200, 7), (2_200, 8), (3_200, 9)];
            all.push(recorded(node, SeriesName::Server, if member { &times } else { &[] }));
            let times = [(2_000, 500), (3_000, 600)];
            all.push(recorded(node, SeriesName::Client, if member { &[] } else { &times }));
        }
        all
    }

    fn names() -> [String; NODES] {
        ["n4", "n1", "n2", "n3"].map(str::to_owned)
    }

    #[test]
    fn only_the_calls_that_count_are_left() {
        let trace = Trace::cut(&of_three_calls(), &names(), 1, 2).expect("a trace");
        let [client, member, ..] = &trace.nodes;
        assert_eq!((&client.send_delays[..], &client.servers[..]), (&[40, 30][..], &[][..]));
        assert_eq!((&member.send_delays[..], &member.servers[..]), (&[40, 30][..], &[8, 9][..]));
        assert_eq!(client.clients, [600], "the first pause began before the first call");
        assert_eq!(member.rotations.len(), 10, "from 2,000 to 3,030");
        assert_eq!(member.idle_rotations.len(), 10, "until 1,000");
    }

    #[test]
    fn what_is_missing_is_told() {
        let mut all = of_three_calls();
        assert!(Trace::cut(&all, &names(), 2, 2).is_err(), "there were three calls");
        all[0].overwritten = 1;
        assert!(Trace::cut(&all, &names(), 1, 2).is_ok(), "what is gone is not wanted");
        all[0].at_ns.drain(..30);
        all[0].took_ns.drain(..30);
        let fault = Trace::cut(&all, &names(), 1, 2).expect_err("it is wanted");
        assert!(fault.contains("n1"), "{fault}");
        all.remove(1);
        let fault = Trace::cut(&all, &names(), 1, 2).expect_err("a series is missing");
        assert!(fault.contains("n1"), "{fault}");
    }
}
