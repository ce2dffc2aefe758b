//! IRL's experiments 1 to 3 (Baldoni, Marchetti, Termini 2002, §5.3): throughput and latency
//! against members, clients and request size, as ratios to the direct call.
//!
//! What it is not: a way to measure; that is the same as for every plan. Here are the plan, and
//! what the paper says.
//!
//! Invariants: a configuration is one style at one point of one experiment; it is compared with the
//! direct call of as many clients and longs in the same round. The paper's figures are those that
//! stand in its text; what is only drawn in its plots is not here.

use quorba_base::policy::Style;

use crate::orb::Orb;
use crate::placement::Setting;
use crate::plan::{Chain, Configuration, DomainShape, Plan};

/// What the plan is called.
pub(crate) const PLAN: &str = "irl";
/// The styles, in the order of the report.
pub(crate) const STYLES: [Style; 4] =
    [Style::Active, Style::SemiActive, Style::WarmPassive, Style::ColdPassive];
/// Members of a group in experiments 2 and 3: "minimum fault tolerance".
const MEMBERS: u32 = 2;
/// Nodes at least: with two, neither could be missed.
const NODES_MIN: u32 = 3;
/// Longs in one of the paper's K.
const LONGS_PER_K: u32 = 256;

/// What an experiment varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Experiment {
    /// Members of the group; one client, 1 K.
    Members,
    /// Clients; two members, 1 K.
    Clients,
    /// K of a request; two members, one client.
    Size,
}

/// One point of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    members: u32,
    clients: u32,
    k: u32,
}

impl Experiment {
    pub(crate) const ALL: [Self; 3] = [Self::Members, Self::Clients, Self::Size];

    /// The values of what varies (paper, figure 4(b)).
    pub(crate) const fn values(self) -> &'static [u32] {
        match self {
            Self::Members => &[2, 3, 4],
            Self::Clients => &[1, 2, 4, 8, 16],
            Self::Size => &[1, 5, 10, 20],
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Members => "Experiment 1: members (1 client, 1 K)",
            Self::Clients => "Experiment 2: clients (2 members, 1 K)",
            Self::Size => "Experiment 3: K of a request (2 members, 1 client)",
        }
    }

    /// Calls a second in those of the direct call, as the paper's text has them: the lower and the
    /// higher of its two ORBs.
    pub(crate) const fn paper(self, value: u32) -> Option<[f64; 2]> {
        match (self, value) {
            // "throughput roughly reduces of 70% on ORBacus and of 60% on JacORB if M=2 and of 80%
            // on both platforms if M=4"
            (Self::Members, 2) => Some([0.3, 0.4]),
            (Self::Members, 4) => Some([0.2, 0.2]),
            (Self::Members, _) => None,
            // "the throughput [still] decreases of roughly 70%", of every C but 1, and every S
            (Self::Clients, 1) => None,
            (Self::Clients | Self::Size, _) => Some([0.3, 0.3]),
        }
    }

    const fn point(self, value: u32) -> Point {
        let point = Point { members: MEMBERS, clients: 1, k: 1 };
        match self {
            Self::Members => Point { members: value, ..point },
            Self::Clients => Point { clients: value, ..point },
            Self::Size => Point { k: value, ..point },
        }
    }

    /// The configuration that has this style at this value.
    pub(crate) fn configuration(self, style: Style, value: u32) -> String {
        self.point(value).name(style)
    }
}

impl Point {
    fn name(self, style: Style) -> String {
        format!("{style}-m{}-c{}-k{}", self.members, self.clients, self.k)
    }

    fn direct(self) -> String {
        direct(self.clients, self.k)
    }
}

/// The direct call's configuration with so many clients and K.
pub(crate) fn direct(clients: u32, k: u32) -> String {
    format!("direct-c{clients}-k{k}")
}

/// Table 1 of the paper: clients, then latency in ms and calls a second of JacORB and ORBacus.
pub(crate) const TABLE_1: [(u32, [f64; 2], [u32; 2]); 5] = [
    (1, [1.28, 1.30], [769, 729]),
    (2, [1.37, 1.38], [1458, 1448]),
    (4, [2.30, 2.23], [1741, 1808]),
    (8, [4.34, 3.47], [1841, 2308]),
    (16, [8.30, 7.08], [1926, 2262]),
];

/// The plan.
pub(crate) fn plan() -> Plan {
    let mut points: Vec<Point> = Vec::new();
    for experiment in Experiment::ALL {
        for point in experiment.values().iter().map(|value| experiment.point(*value)) {
            if !points.contains(&point) {
                points.push(point);
            }
        }
    }
    let mut configurations: Vec<Configuration> = Vec::new();
    for point in points {
        // A direct call and the groups that are compared with it follow each other.
        if configurations.iter().all(|one| one.name != point.direct()) {
            configurations.push(configuration(point, None));
        }
        configurations.extend(STYLES.map(|style| configuration(point, Some(style))));
    }
    Plan {
        name: PLAN.to_owned(),
        title: "IRL's experiments 1 to 3, style by style".to_owned(),
        calls: 20_000,
        warm_up: 2_000,
        rounds: 5,
        longs: LONGS_PER_K,
        settings: vec![Setting::Free],
        against: direct(1, 1),
        configurations,
        steps: Vec::new(),
    }
}

fn configuration(point: Point, style: Option<Style>) -> Configuration {
    let Point { members, clients, k } = point;
    let (name, title, chain) = match style {
        None => {
            (point.direct(), format!("{clients} clients, {k} K, nothing between"), Chain::Direct)
        }
        Some(style) => (
            point.name(style),
            format!("{style}, {members} members, {clients} clients, {k} K"),
            Chain::Domain(shape(members, style)),
        ),
    };
    Configuration {
        name,
        title,
        headline: style.is_some_and(|style| style == STYLES[0]),
        chain,
        think_us: 0,
        think_spread_us: 0,
        clients,
        longs: Some(k * LONGS_PER_K),
        against: Some(point.direct()),
        repeats: None,
        warm_up: None,
        client_orb: Orb::Omniorb,
        server_orb: Orb::Omniorb,
    }
}

fn shape(members: u32, style: Style) -> DomainShape {
    let mut group = toml::Table::new();
    for (key, value) in
        [("style", style.as_str()), ("concurrency", "pipelined"), ("state_object", "state")]
    {
        group.insert(key.to_owned(), value.into());
    }
    DomainShape {
        nodes: members.max(NODES_MIN) as usize,
        members: members as usize,
        client: 1,
        wire: None,
        ring: toml::Table::new(),
        limits: toml::Table::new(),
        group,
        server_options: ["-ORBmaxServerThreadPerConnection", "1"].map(str::to_owned).to_vec(),
        server_socket: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_its_configuration_in_every_style() {
        let plan = plan();
        for experiment in Experiment::ALL {
            for value in experiment.values() {
                for style in STYLES {
                    let name = experiment.configuration(style, *value);
                    let one = plan.configuration(&name).expect("a configuration");
                    let point = experiment.point(*value);
                    assert_eq!((one.clients, one.longs), (point.clients, Some(point.k * 256)));
                    assert_eq!(one.against, Some(point.direct()));
                }
            }
        }
        for (clients, ..) in TABLE_1 {
            assert!(plan.configuration(&direct(clients, 1)).is_some());
        }
    }
}
