//! What the paper says of its figures, and whether it is so here, and why: in words that are
//! computed from the figures.
//!
//! What it is not: a test. Whether a claim holds depends on the machine; hence the report.
//!
//! Invariant: a claim is left out if the scenarios that it speaks of were not run.

use serde::Serialize;

use super::figures::expected_waits_us;
use super::{Figures, NODES, Peak, RingKind, Scenario, Shape, count, paper};
use crate::placement::Setting;

/// One sentence of the paper, and ours beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The setting.
    pub setting: Setting,
    /// Where it stands in the paper.
    pub place: &'static str,
    /// What the paper says.
    pub paper: String,
    /// What is so here, on the ring that is set as in the paper.
    pub ours: String,
    /// Whether the shape is the same.
    pub agrees: bool,
    /// Why, as far as the samples tell.
    pub why: String,
}

/// Latencies that differ by less than this part are equal.
const EQUAL_PART: f64 = 0.05;

/// Every claim in every setting.
pub(crate) fn claims(figures: &[Figures]) -> Vec<Claim> {
    let mut settings: Vec<Setting> = figures.iter().map(|one| one.setting).collect();
    settings.dedup();
    settings.into_iter().flat_map(|setting| of_setting(figures, setting)).collect()
}

fn of_setting(figures: &[Figures], setting: Setting) -> Vec<Claim> {
    let Some(view) = View::of(figures, setting) else { return Vec::new() };
    let mut claims = Vec::new();
    let mut add = |place, paper: &str, found: Option<Found>| {
        if let Some(Found { ours, agrees, why }) = found {
            claims.push(Claim { setting, place, paper: paper.to_owned(), ours, agrees, why });
        }
    };
    add(
        "§2.5",
        "client and server have their messages ready within 100 µs, a little less than \
        two token passings (0.49 rotations)",
        view.processing(),
    );
    add(
        "§2.3, figure 2",
        "the primary at node 2 gives the lowest latency (741 µs; node 1: 953, \
        node 3: 979)",
        view.best_place(),
    );
    add(
        "§2.4",
        "at node 1 the latency is about one rotation higher than at node 2 (+212 µs, \
        1.03 rotations)",
        view.one_rotation_less(),
    );
    add(
        "§2.4",
        "at node 3 it is slightly higher than at node 1 (+26 µs, 0.13 rotations)",
        view.node_3_against_1(),
    );
    add("§2.3, figure 2", "the peaks of the semi-active scenarios are narrow", view.narrow());
    add(
        "§2.3, figure 2",
        "active replication without think time is slower than any semi-active \
        scenario (1,227 µs, 1.25 times the slowest)",
        view.active_is_slower(),
    );
    add(
        "§2.3, figure 2",
        "with think time its latency spreads over about 250 µs (1.2 rotations) \
        from about where the best semi-active peak is",
        view.thinking_spreads(),
    );
    add(
        "§2.3, figure 3",
        "the token's rotation has several peaks, and not every node sees the \
        same: in (a) 450 and 500 µs at nodes 0, 2 and 3, but 205 (the rotation without load) and \
        740 µs at node 1",
        view.rotation_peaks(),
    );
    add(
        "§2.3",
        "rotations per call: 2.1 in (a) and (c), 1.25 in (b), 1.1 in (d)",
        view.rotations_per_call(),
    );
    add(
        "§2.4, figure 5",
        "at node 1 a reply waits almost a whole rotation for the token (180 µs, \
        0.88 rotations)",
        view.reply_wait(),
    );
    add(
        "§2.5",
        "virtually all duplicate replies are sent: four messages per call in active \
        replication",
        view.duplicates(),
    );
    claims
}

/// What is so here.
struct Found {
    ours: String,
    agrees: bool,
    why: String,
}

/// The figures of one setting on the ring that is set as in the paper.
struct View<'a> {
    scenarios: [Option<&'a Figures>; 5],
    /// Token rotation without load.
    rotation_us: f64,
}

impl<'a> View<'a> {
    fn of(figures: &'a [Figures], setting: Setting) -> Option<Self> {
        let find = |scenario: Scenario| {
            figures.iter().find(|one| {
                let repeats = one.repeats;
                let same = (repeats.scenario, repeats.ring) == (scenario, RingKind::Paper);
                same && one.setting == setting
            })
        };
        let scenarios = Scenario::ALL.map(find);
        let idle = |one: &&Figures| one.idle_rotation.as_ref().map(Shape::peak_us);
        let mut rotations_us: Vec<f64> = scenarios.iter().flatten().filter_map(idle).collect();
        rotations_us.sort_by(f64::total_cmp);
        let rotation_us = *rotations_us.get(rotations_us.len() / 2)?;
        Some(Self { scenarios, rotation_us })
    }

    fn get(&self, scenario: Scenario) -> Option<&'a Figures> {
        self.scenarios[scenario as usize]
    }

    /// The median latencies of (a), (b) and (c).
    fn semi_active(&self) -> Option<[f64; 3]> {
        let [Some(a), Some(b), Some(c), ..] = self.scenarios else { return None };
        Some([a, b, c].map(|one| one.latency.p50_us))
    }

    fn rotations(&self, us: f64) -> String {
        format!("{:.2} rotations", us / self.rotation_us)
    }

    /// Median times of the primary's server and of the client, over the semi-active scenarios.
    fn processing_us(&self) -> Option<(f64, f64)> {
        let semi_active = || self.scenarios[..3].iter().flatten();
        let middle = |times: Vec<f64>| {
            let mut times = times;
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied()
        };
        let server = |one: &&Figures| Some(one.primary()?.server.as_ref()?.p50_us);
        let client = |one: &&Figures| Some(one.nodes.first()?.client.as_ref()?.p50_us);
        let servers = middle(semi_active().filter_map(server).collect())?;
        Some((servers, middle(semi_active().filter_map(client).collect())?))
    }

    fn processing(&self) -> Option<Found> {
        let (server_us, client_us) = self.processing_us()?;
        let longest = server_us.max(client_us);
        let agrees = longest <= self.rotation_us / 2.0;
        let why = if agrees {
            "so a message can be ready when the token has passed two nodes, as there".to_owned()
        } else {
            format!(
                "the paper had a processor for each node, and a network between them that made \
                 one passing take {:.0} µs; here all nodes, servers and the client share the cores \
                 of one machine, where a passing takes {:.0} µs, and processing is long against it",
                paper::PASSING_US,
                self.rotation_us / count(NODES),
            )
        };
        let ours = format!(
            "the primary's server takes {server_us:.0} µs ({}), the client {client_us:.0} µs ({})",
            self.rotations(server_us),
            self.rotations(client_us)
        );
        Some(Found { ours, agrees, why })
    }

    fn best_place(&self) -> Option<Found> {
        let latencies = self.semi_active()?;
        let best = lowest(&latencies);
        let others = || (0..3).filter(|place| *place != best);
        let close = others().find(|place| latencies[*place] < latencies[best] * (1.0 + EQUAL_PART));
        let [a, b, c] = latencies;
        let ours = match close {
            None => format!("node {} (medians {a:.0}, {b:.0}, {c:.0} µs)", best + 1),
            Some(place) => format!(
                "nodes {} and {} are within 5 % (medians {a:.0}, {b:.0}, {c:.0} µs)",
                best + 1,
                place + 1
            ),
        };
        let agrees = best == 1 && close.is_none();
        Some(Found { ours, agrees, why: self.why_best_place()? })
    }

    /// What the measured times of client and server would make the best place.
    fn why_best_place(&self) -> Option<String> {
        let (server_us, client_us) = self.processing_us()?;
        let passing_us = self.rotation_us / count(NODES);
        let waits = [1, 2, 3].map(|n| expected_waits_us(n, passing_us, server_us, client_us));
        let spread = self.get(Scenario::B)?.primary()?.server.as_ref()?.width_us();
        let measured = [Scenario::A, Scenario::B, Scenario::C].map(|scenario| {
            let figures = self.get(scenario)?;
            let request = figures.nodes.first()?.send_delay.as_ref()?.p50_us;
            Some(request + figures.primary()?.send_delay.as_ref()?.p50_us)
        });
        let [Some(a), Some(b), Some(c)] = measured else { return None };
        let text = format!(
            "a token that nothing holds up would, with these times, make request and reply wait \
             {:.0}, {:.0}, {:.0} µs together at nodes 1, 2, 3: best node {}. Measured waits: \
             {a:.0}, {b:.0}, {c:.0} µs.",
            waits[0],
            waits[1],
            waits[2],
            lowest(&waits) + 1
        );
        if spread < self.rotation_us / 2.0 {
            return Some(text);
        }
        Some(format!(
            "{text} But the server's own time varies by {spread:.0} µs ({}), so that it is chance \
             where the token is when the reply is ready",
            self.rotations(spread)
        ))
    }

    fn one_rotation_less(&self) -> Option<Found> {
        let [a, b, _] = self.semi_active()?;
        let rotations = (a - b) / self.rotation_us;
        let per_call = |scenario| self.get(scenario).map(|one| one.rotations_per_call);
        let (of_a, of_b) = (per_call(Scenario::A)?, per_call(Scenario::B)?);
        Some(Found {
            ours: format!("{:+.0} µs, {rotations:+.2} rotations", a - b),
            agrees: (0.5..=1.5).contains(&rotations),
            why: format!("rotations per call: {of_a:.2} in (a), {of_b:.2} in (b)"),
        })
    }

    fn node_3_against_1(&self) -> Option<Found> {
        let [a, _, c] = self.semi_active()?;
        let rotations = (c - a) / self.rotation_us;
        Some(Found {
            ours: format!("{:+.0} µs, {rotations:+.2} rotations", c - a),
            agrees: (0.0..=0.5).contains(&rotations),
            why: "the paper: the token is held up a little longer by a request's processing at \
                  node 3's side of the ring than by a reply's"
                .to_owned(),
        })
    }

    fn narrow(&self) -> Option<Found> {
        let widths: Vec<f64> =
            self.scenarios[..3].iter().flatten().map(|one| one.latency.width_us()).collect();
        let widest = widths.iter().copied().reduce(f64::max)?;
        let list: Vec<String> = widths.iter().map(|width| format!("{width:.0}")).collect();
        Some(Found {
            ours: format!("from the first tenth to the last: {} µs", list.join(", ")),
            agrees: widest < self.rotation_us,
            why: format!("the widest is {}", self.rotations(widest)),
        })
    }

    fn active_is_slower(&self) -> Option<Found> {
        let semi_active = self.semi_active()?;
        let times_of = |other: f64| Some(self.get(Scenario::D)?.latency.p50_us / other);
        let times = times_of(semi_active.into_iter().fold(0.0, f64::max))?;
        let times_best = times_of(semi_active[lowest(&semi_active)])?;
        let active = self.get(Scenario::D)?;
        Some(Found {
            ours: format!("{:.0} µs, {times:.2} times the slowest", active.latency.p50_us),
            agrees: times > 1.0 + EQUAL_PART,
            why: format!(
                "the member at the best place replies first, and {:.1} messages per call instead \
                 of 2 hold up the token: together {times_best:.2} times the best place alone",
                active.messages_per_call
            ),
        })
    }

    fn thinking_spreads(&self) -> Option<Found> {
        let best = self.semi_active()?.into_iter().fold(f64::MAX, f64::min);
        let thinking = &self.get(Scenario::E)?.latency;
        let width = thinking.width_us();
        let agrees = (0.6..=2.0).contains(&(width / self.rotation_us))
            && (0.7..=1.3).contains(&(thinking.p10_us / best));
        Some(Found {
            ours: format!(
                "{width:.0} µs ({}) from {:.0} µs; the best semi-active median is {best:.0} µs",
                self.rotations(width),
                thinking.p10_us
            ),
            agrees,
            why: "a client that thinks at random finds the token anywhere on the ring: the \
                  request waits between nothing and a whole rotation"
                .to_owned(),
        })
    }

    fn rotation_peaks(&self) -> Option<Found> {
        let a = self.get(Scenario::A)?;
        let [client, primary] = [0, 1].map(|node| a.nodes[node].rotation.as_ref());
        let (client, primary) = (client?, primary?);
        let idle = primary
            .peaks
            .iter()
            .any(|peak| (0.75..=1.25).contains(&(peak.at_us / self.rotation_us)));
        Some(Found {
            ours: format!(
                "in (a) {} µs at node 0, {} µs at node 1; without load {:.0} µs",
                list_of(&client.peaks),
                list_of(&primary.peaks),
                self.rotation_us
            ),
            agrees: idle && primary.peaks.len() > 1,
            why: format!(
                "a rotation that carries a message is longer by its processing; medians: {:.0} µs \
                 at node 0, {:.0} µs at node 1",
                client.p50_us, primary.p50_us
            ),
        })
    }

    fn rotations_per_call(&self) -> Option<Found> {
        let [Some(a), Some(b), Some(c), Some(d), _] =
            self.scenarios.map(|one| one.map(|one| one.rotations_per_call))
        else {
            return None;
        };
        let (server_us, client_us) = self.processing_us()?;
        Some(Found {
            ours: format!("{a:.2} in (a), {b:.2} in (b), {c:.2} in (c), {d:.2} in (d)"),
            agrees: b < a && b < c && d < a && d < c,
            why: format!(
                "processing alone takes {} per call here, {:.2} in the paper",
                self.rotations(server_us + client_us),
                2.0 * paper::PROCESSING_MOST_US / paper::ROTATION_US
            ),
        })
    }

    fn reply_wait(&self) -> Option<Found> {
        let a = self.get(Scenario::A)?;
        let wait = a.primary()?.send_delay.as_ref()?;
        let (server_us, _) = self.processing_us()?;
        let passing_us = self.rotation_us / count(NODES);
        let expected = (passing_us - server_us).rem_euclid(self.rotation_us);
        let paper = paper::REPLY_WAIT_AT_1_US / paper::ROTATION_US;
        Some(Found {
            ours: format!("median {:.0} µs, {}", wait.p50_us, self.rotations(wait.p50_us)),
            agrees: (wait.p50_us / self.rotation_us - paper).abs() < 0.25,
            why: format!(
                "the reply is ready {server_us:.0} µs after the request; a token that nothing \
                 holds up would be there {expected:.0} µs later ({})",
                self.rotations(expected)
            ),
        })
    }

    fn duplicates(&self) -> Option<Found> {
        let messages = self.get(Scenario::D)?.messages_per_call;
        Some(Found {
            ours: format!("{messages:.2} messages per call"),
            agrees: messages > 3.8,
            why: "nothing suppresses duplicates in this mode, on purpose; as shipped, one member \
                  replies and there are none"
                .to_owned(),
        })
    }
}

fn lowest(values: &[f64; 3]) -> usize {
    (0..3).min_by(|a, b| values[*a].total_cmp(&values[*b])).expect("there are three")
}

/// Peaks that are listed, at most.
const LISTED: usize = 4;

/// The places of the highest peaks, from the left.
pub(crate) fn list_of(peaks: &[Peak]) -> String {
    let mut places: Vec<f64> = peaks.iter().take(LISTED).map(|peak| peak.at_us).collect();
    places.sort_by(f64::total_cmp);
    places.iter().map(|us| format!("{us:.0}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
