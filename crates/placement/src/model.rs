//! The arithmetic of [`predict`].
//!
//! *Circulating* (the paper): a request is broadcast when the token is at its gateway, and executed
//! at once. The token goes right behind it: at the next node it is there with the message, at the
//! one after that a hop later, and so on; and there it is late by what the nodes do about the
//! message before they look at the token ([`BEHIND_REQUEST_PERCENT`]). Who is not ready when it
//! comes waits for another rotation. The same holds from the leader back to the gateway: for the
//! client's next request, if it calls again at once. After a long pause the token is anywhere: half
//! a rotation. The paper counts from the gateway's own visit instead, which is a hop more, and
//! leaves out what the message itself takes (Zhao02 §2.5); by its figures one cannot tell the two
//! apart. Server and client are not always equally quick, so a wait is the mean over their times.
//!
//! *Resting* (ours): whoever needs the token and does not have it asks for it and is handed it: two
//! datagrams. The last to use it in any call is the leader, if it replies through the order or is
//! the gateway's node: so the gateway of another node asks for it in every call, and then the
//! leader does. At the leader's own gateway nobody asks.
//!
//! Invariant: nanoseconds in integers, so that the same load gives the same result everywhere.

use alloc::vec::Vec;
use quorba_base::{Duration, NodeId};

use crate::{Clients, Part, Prediction, Ring, Times, Token};
use quorba_base::policy::ReplyPath;

/// Datagrams until a majority has said that it holds a message: there and back.
const MAJORITY_HOPS: u64 = 2;
/// Datagrams until a token that rests elsewhere is here: asked for, and handed over.
const FETCH_HOPS: u64 = 2;

/// Of what a request holds the token up for, so much is behind its delivery, in percent: the next
/// nodes give it to their servers before they handle the token (Zhao02 §2.4, case 3). As measured
/// (docs/performance.md): on a ring of four it made its first hop 170 µs longer, the next 120.
const BEHIND_REQUEST_PERCENT: u64 = 40;
/// The same for a reply, which the next nodes have no work with (there, case 1).
const BEHIND_REPLY_PERCENT: u64 = 20;

/// Nanoseconds of each part.
type Parts = [u64; 6];

/// What a call costs with each of `candidates` as the leader, the cheapest first, equal ones in the
/// order of `candidates`. Without any call every gateway counts alike.
///
/// Candidates and gateways that are not on the ring are left out.
#[must_use]
pub fn predict(
    ring: &Ring,
    clients: &[Clients],
    times: &Times,
    candidates: &[NodeId],
) -> Vec<Prediction> {
    let place = |node: NodeId| ring.order.iter().position(|other| *other == node);
    let calls: u64 = clients.iter().map(|one| one.calls).sum();
    let mut predictions: Vec<Prediction> = Vec::new();
    for leader in candidates.iter().copied().filter(|node| place(*node).is_some()) {
        let mut sums = [0_u128; 6];
        let mut weights = 0_u128;
        for one in clients {
            let Some(steps) = steps(ring, one.gateway, leader) else { continue };
            let weight = u128::from(if calls == 0 { 1 } else { one.calls });
            let parts = match ring.token {
                Token::Circulates => circulating(ring, steps, &one.think, times),
                Token::Rests => resting(ring, steps, times),
            };
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += weight * u128::from(part);
            }
            weights += weight;
        }
        let mean = |sum: u128| u64::try_from(sum / weights.max(1)).unwrap_or(u64::MAX);
        let parts = sums.map(|sum| Duration::from_nanos(mean(sum)));
        predictions.push(Prediction { leader, latency: parts.iter().sum(), parts });
    }
    predictions.sort_by_key(|one| one.latency);
    predictions
}

/// Hops from the gateway's node to the leader's along the ring.
fn steps(ring: &Ring, gateway: NodeId, leader: NodeId) -> Option<u64> {
    let place = |node: NodeId| ring.order.iter().position(|other| *other == node);
    let (from, to) = (place(gateway)?, place(leader)?);
    let count = ring.order.len();
    u64::try_from((to + count - from) % count).ok()
}

/// When the token comes to a node, counted from the delivery of a message there.
struct Visits {
    /// The first time, if it is not the visit that the message came with.
    first: Option<u64>,
    /// Every other time is this and some rotations, one at least.
    after: u64,
    rotation: u64,
}

impl Visits {
    /// Of a node so many hops behind the sender of `message`.
    fn new(ring: &Ring, steps: u64, message: Message) -> Self {
        let hop = nanos(ring.hop).max(1);
        let rotation = hop * ring.order.len() as u64;
        let Message { way, behind } = message;
        match steps {
            0 => Self { first: None, after: way + behind, rotation },
            1 => Self { first: Some(0), after: behind, rotation },
            _ => {
                let visit = (steps - 1) * hop + behind;
                Self { first: Some(visit), after: visit, rotation }
            }
        }
    }

    /// How long who is ready at `ready` waits.
    fn wait(&self, ready: u64) -> u64 {
        match self.first {
            Some(first) if ready <= first => first - ready,
            _ => {
                let rotations = ready.saturating_sub(self.after).div_ceil(self.rotation).max(1);
                self.after + rotations * self.rotation - ready
            }
        }
    }
}

/// What a message holds the token up for, before its delivery and behind it.
#[derive(Clone, Copy)]
struct Message {
    way: u64,
    behind: u64,
}

impl Message {
    fn new(holds_up: Duration, behind_percent: u64) -> Self {
        let behind = nanos(holds_up) * behind_percent / 100;
        Self { way: nanos(holds_up) - behind, behind }
    }

    /// The time until it is delivered, once the token is where it is sent.
    fn delivered(self, ring: &Ring, steps: u64) -> u64 {
        if steps == 0 { 0 } else { nanos(ring.hop) + self.way }
    }
}

fn circulating(ring: &Ring, steps: u64, think: &[Duration], times: &Times) -> Parts {
    let count = ring.order.len() as u64;
    let request = Message::new(times.request, BEHIND_REQUEST_PERCENT);
    let reply = Message::new(times.reply, BEHIND_REPLY_PERCENT);
    let asked = Visits::new(ring, steps, request);
    let mut parts = Parts::default();
    parts[index(Part::Server)] = mean(&times.server, |server| server);
    parts[index(Part::Request)] = request.delivered(ring, steps);
    if steps == 0 && ring.reply == ReplyPath::Direct {
        let held = MAJORITY_HOPS * nanos(ring.hop);
        parts[index(Part::Majority)] = mean(&times.server, |server| held.saturating_sub(server));
        let replied = mean(&times.server, |server| server.max(held));
        parts[index(Part::TokenForRequest)] =
            mean(think, |think| token_for_request(&asked, replied, think));
    } else {
        parts[index(Part::TokenForReply)] = mean(&times.server, |server| asked.wait(server));
        parts[index(Part::Reply)] = reply.delivered(ring, steps);
        let back = if steps == 0 { 0 } else { count - steps };
        let answered = Visits::new(ring, back, reply);
        parts[index(Part::TokenForRequest)] =
            mean(think, |think| token_for_request(&answered, 0, think));
    }
    parts
}

/// How long a request waits that a client makes `think` after it was answered at `replied`.
fn token_for_request(visits: &Visits, replied: u64, think: u64) -> u64 {
    if think > visits.rotation { visits.rotation / 2 } else { visits.wait(replied + think) }
}

/// The mean of `figure` over equally likely times; without any, of no time at all.
fn mean(times: &[Duration], figure: impl Fn(u64) -> u64) -> u64 {
    let sum: u128 = times.iter().map(|time| u128::from(figure(nanos(*time)))).sum();
    match times.len() as u128 {
        0 => figure(0),
        count => u64::try_from(sum / count).unwrap_or(u64::MAX),
    }
}

fn resting(ring: &Ring, steps: u64, times: &Times) -> Parts {
    let hop = nanos(ring.hop);
    let server = mean(&times.server, |server| server);
    let mut parts = Parts::default();
    parts[index(Part::Server)] = server;
    parts[index(Part::Request)] = nanos(times.request);
    if steps == 0 {
        parts[index(Part::Majority)] = (MAJORITY_HOPS * hop).saturating_sub(server);
        if ring.reply != ReplyPath::Direct {
            parts[index(Part::Reply)] = nanos(times.reply);
        }
    } else {
        parts[index(Part::TokenForRequest)] = FETCH_HOPS * hop;
        parts[index(Part::Request)] += hop;
        parts[index(Part::TokenForReply)] = FETCH_HOPS * hop;
        parts[index(Part::Reply)] = hop + nanos(times.reply);
    }
    parts
}

const fn index(part: Part) -> usize {
    part as usize
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn node(n: u8) -> NodeId {
        NodeId::new(n).expect("a node")
    }

    fn ring(token: Token, reply: ReplyPath) -> Ring {
        Ring { order: (0..4).map(node).collect(), hop: us(51), token, reply }
    }

    fn at(gateway: u8, think: Duration) -> [Clients; 1] {
        [Clients { gateway: node(gateway), calls: 1, think: vec![think] }]
    }

    /// §2.3, §2.4: 51 µs per hop, processing below 100 µs at both ends, 245 and 295 µs for the
    /// two messages.
    fn paper() -> Times {
        Times { server: vec![us(100)], request: us(295), reply: us(245) }
    }

    fn only(server: u64) -> Times {
        Times { server: vec![us(server)], request: us(0), reply: us(0) }
    }

    fn latencies(found: &[Prediction]) -> Vec<(NodeId, u128)> {
        found.iter().map(|one| (one.leader, one.latency.as_micros())).collect()
    }

    #[test]
    fn the_latencies_of_the_paper_come_out_of_its_times() {
        let ring = ring(Token::Circulates, ReplyPath::Ordered);
        let candidates = [1, 2, 3].map(node);
        let found = predict(&ring, &at(0, us(100)), &paper(), &candidates);
        // Measured there: 741 with the primary at node 2, 953 at node 1, 979 at node 3; the
        // client's 100 are its own between two calls.
        let own = 100;
        let expected = vec![(node(2), 744 - own), (node(1), 948 - own), (node(3), 948 - own)];
        assert_eq!(latencies(&found), expected);
        for one in &found {
            assert_eq!(one.parts.iter().sum::<Duration>(), one.latency);
        }
    }

    #[test]
    fn after_a_long_pause_the_nearest_in_front_of_the_client_is_best_that_is_ready_in_time() {
        // §2.5: the closest from the primary to the client along the ring, once the reply is ready
        // when the token comes.
        let ring = ring(Token::Circulates, ReplyPath::Ordered);
        for (server, best) in [(0, 1), (40, 2), (90, 3)] {
            let found = predict(&ring, &at(0, us(5_000)), &only(server), &[1, 2, 3].map(node));
            assert_eq!(found[0].leader, node(best), "{server}");
        }
    }

    #[test]
    fn more_work_of_the_server_is_for_nothing_until_the_token_is_missed() {
        let ring = ring(Token::Circulates, ReplyPath::Ordered);
        let latency = |server| predict(&ring, &at(0, us(0)), &only(server), &[node(2)])[0].latency;
        assert_eq!(latency(10), latency(50));
        assert_eq!(latency(60) - latency(50), us(204));
    }

    #[test]
    fn who_is_late_for_the_token_half_of_the_time_waits_for_half_a_rotation_more() {
        let ring = ring(Token::Circulates, ReplyPath::Ordered);
        let latency = |server: &[u64]| {
            let server = server.iter().map(|time| us(*time)).collect();
            let times = Times { server, request: us(0), reply: us(0) };
            predict(&ring, &at(0, us(0)), &times, &[node(2)])[0].latency
        };
        assert_eq!(latency(&[10, 60]) - latency(&[10, 50]), us(102));
    }

    #[test]
    fn where_the_token_rests_the_leader_belongs_to_the_gateway() {
        let ring = ring(Token::Rests, ReplyPath::Direct);
        let times = only(30);
        let found = predict(&ring, &at(3, us(0)), &times, &[1, 2, 3].map(node));
        // Elsewhere: fetch, request, work, fetch, reply.
        let elsewhere = 30 + 6 * 51;
        assert_eq!(
            latencies(&found),
            vec![(node(3), 102), (node(1), elsewhere), (node(2), elsewhere)]
        );
        assert_eq!(found[1].gain_percent(&found[0]), 69);
        assert_eq!(found[0].gain_percent(&found[1]), 0);
    }

    #[test]
    fn the_gateway_with_most_calls_decides_and_without_calls_all_count_alike() {
        let ring = ring(Token::Rests, ReplyPath::Direct);
        let times = only(30);
        let clients = |calls: [u64; 2]| {
            [(1, calls[0]), (2, calls[1])].map(|(n, calls)| Clients {
                gateway: node(n),
                calls,
                think: vec![us(0)],
            })
        };
        let candidates = [1, 2].map(node);
        let best = |calls| predict(&ring, &clients(calls), &times, &candidates)[0].leader;
        assert_eq!((best([10, 90]), best([90, 10])), (node(2), node(1)));
        assert_eq!(best([0, 0]), node(1), "equal: the first candidate");
    }

    #[test]
    fn who_is_not_on_the_ring_is_left_out() {
        let ring = ring(Token::Rests, ReplyPath::Direct);
        let found = predict(&ring, &at(9, us(0)), &paper(), &[node(7), node(1)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].latency, Duration::ZERO, "nobody on the ring calls");
        assert!(
            predict(&Ring { order: vec![], ..ring }, &at(0, us(0)), &paper(), &[node(1)])
                .is_empty()
        );
    }
}
