//! The arithmetic of [`predict`].
//!
//! *Circulating* (the paper): a request is broadcast when the token is at its gateway, and executed
//! at once. The token is at the leader so many hops later, and again after each rotation; the reply
//! goes at the first visit at which it is ready. A client that calls again at once has its next
//! request ready some time later, and that waits for the token's next visit in turn: so both
//! waits are steps of a rotation. After a long pause the token is anywhere: half a rotation.
//!
//! *Resting* (ours): whoever needs the token and does not have it asks for it and is handed it: two
//! datagrams. The last to use it in any call is the leader, if it replies through the order or is
//! the gateway's node: so the gateway of another node asks for it in every call, and then the
//! leader does. At the leader's own gateway nobody asks.
//!
//! Invariant: nanoseconds in integers, so that the same load gives the same result everywhere.

use alloc::vec::Vec;
use quorba_base::{Duration, NodeId};

use crate::{Clients, Part, Prediction, ReplyPath, Ring, Times, Token};

/// Datagrams until a majority has said that it holds a message: there and back.
const MAJORITY_HOPS: u64 = 2;
/// Datagrams until a token that rests elsewhere is here: asked for, and handed over.
const FETCH_HOPS: u64 = 2;

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
                Token::Circulates => circulating(ring, steps, nanos(one.think), times),
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

fn circulating(ring: &Ring, steps: u64, think: u64, times: &Times) -> Parts {
    let hop = nanos(ring.hop).max(1);
    let rotation = hop * ring.order.len() as u64;
    let server = nanos(times.server);
    let mut parts = Parts::default();
    parts[index(Part::Server)] = server;
    parts[index(Part::Request)] = nanos(times.request);
    // When the reply is sent, with the request at 0.
    let replied = if steps == 0 && ring.reply == ReplyPath::Direct {
        let held = MAJORITY_HOPS * hop;
        parts[index(Part::Majority)] = held.saturating_sub(server);
        server.max(held)
    } else {
        let visit = steps * hop;
        // At the visit that the request itself rides on, there is no reply yet.
        let rotations = server.saturating_sub(visit).div_ceil(rotation);
        let at = visit + if visit == 0 { rotations.max(1) } else { rotations } * rotation;
        parts[index(Part::TokenForReply)] = at - server;
        parts[index(Part::Reply)] = nanos(times.reply);
        at
    };
    parts[index(Part::TokenForRequest)] = if think > rotation {
        rotation / 2
    } else {
        let ready = replied + think;
        ready.div_ceil(rotation) * rotation - ready
    };
    parts
}

fn resting(ring: &Ring, steps: u64, times: &Times) -> Parts {
    let hop = nanos(ring.hop);
    let server = nanos(times.server);
    let mut parts = Parts::default();
    parts[index(Part::Server)] = server;
    parts[index(Part::Request)] = nanos(times.request);
    if steps == 0 {
        parts[index(Part::Majority)] = (MAJORITY_HOPS * hop).saturating_sub(server);
        if ring.reply == ReplyPath::Ordered {
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
        [Clients { gateway: node(gateway), calls: 1, think }]
    }

    /// §2.3, §2.4: 51 µs per hop, processing below 100 µs at both ends, 245 and 295 µs for the
    /// two messages.
    const PAPER: Times = Times {
        server: Duration::from_micros(100),
        request: Duration::from_micros(295),
        reply: Duration::from_micros(245),
    };

    fn latencies(found: &[Prediction]) -> Vec<(NodeId, u128)> {
        found.iter().map(|one| (one.leader, one.latency.as_micros())).collect()
    }

    #[test]
    fn the_latencies_of_the_paper_come_out_of_its_times() {
        let ring = ring(Token::Circulates, ReplyPath::Ordered);
        let candidates = [1, 2, 3].map(node);
        let found = predict(&ring, &at(0, us(100)), &PAPER, &candidates);
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
        let short = Times { server: us(40), request: us(0), reply: us(0) };
        let found = predict(&ring, &at(0, us(5_000)), &short, &[1, 2, 3].map(node));
        assert_eq!(found[0].leader, node(1));
        let long = Times { server: us(140), ..short };
        let found = predict(&ring, &at(0, us(5_000)), &long, &[1, 2, 3].map(node));
        assert_eq!(found[0].leader, node(3));
    }

    #[test]
    fn more_work_of_the_server_is_for_nothing_until_the_token_is_missed() {
        let ring = ring(Token::Circulates, ReplyPath::Ordered);
        let latency = |server| {
            let times = Times { server: us(server), request: us(0), reply: us(0) };
            predict(&ring, &at(0, us(0)), &times, &[node(2)])[0].latency
        };
        assert_eq!(latency(10), latency(100));
        assert_eq!(latency(110) - latency(100), us(204));
    }

    #[test]
    fn where_the_token_rests_the_leader_belongs_to_the_gateway() {
        let ring = ring(Token::Rests, ReplyPath::Direct);
        let times = Times { server: us(30), request: us(0), reply: us(0) };
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
        let times = Times { server: us(30), request: us(0), reply: us(0) };
        let clients = |calls: [u64; 2]| {
            [(1, calls[0]), (2, calls[1])].map(|(n, calls)| Clients {
                gateway: node(n),
                calls,
                think: us(0),
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
        let found = predict(&ring, &at(9, us(0)), &PAPER, &[node(7), node(1)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].latency, Duration::ZERO, "nobody on the ring calls");
        assert!(
            predict(&Ring { order: vec![], ..ring }, &at(0, us(0)), &PAPER, &[node(1)]).is_empty()
        );
    }
}
