//! What is measured: a plan as a TOML file.
//!
//! What it is not: a way to say how it is measured; that is the same for every plan, see
//! [`mod@crate::run`].
//!
//! Invariants: a [`Plan`] that exists can be run: its names are unique, its steps name
//! configurations that are there, its counts are within the limits below.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::failover;
use crate::irl;
use crate::leaders;
use crate::orb::Orb;
use crate::placement::Setting;
use crate::transfer;
use crate::wire::{self, Wire};
use crate::zhao::{self, Repeats};

/// The plans that are part of the program.
const BUILT_IN: &[(&str, &str)] = &[
    ("baseline", include_str!("../plans/baseline.toml")),
    ("duplicates", include_str!("../plans/duplicates.toml")),
    ("execution", include_str!("../plans/execution.toml")),
    ("throughput", include_str!("../plans/throughput.toml")),
    ("zhao2002", include_str!("../plans/zhao2002.toml")),
];

/// Most calls of a block: their samples are held in memory.
pub const CALLS_MAX: u32 = 10_000_000;
/// Calls of a block that is to be over soon.
const QUICK_CALLS: u32 = 8_000;
/// Most calls of a block whose nodes record time stamps: nodes have room for not many more.
const RECORDED_CALLS_MAX: u32 = 100_000;
/// Most rounds.
pub const ROUNDS_MAX: u32 = 1_000;
/// Most longs of a call: 1 MiB.
const LONGS_MAX: u32 = 1 << 18;
/// Most processes of a configuration without Quorba.
const PROCESSES_MAX: usize = 16;
/// Most nodes of a domain on one machine.
const NODES_MAX: usize = 16;
/// Most clients of a block.
const CLIENTS_MAX: u32 = 256;
/// Most octets of a name; it becomes part of file names and columns.
const NAME_LEN_MAX: usize = 32;

/// A plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What it is called on the command line.
    pub name: String,
    /// What the report is called.
    pub title: String,
    /// Measured calls of a block.
    pub calls: u32,
    /// Calls of a block before the first that counts.
    pub warm_up: u32,
    /// How often every configuration runs in every setting.
    pub rounds: u32,
    /// Longs in a call, and in its answer.
    pub longs: u32,
    /// The settings, in the order of the report.
    pub settings: Vec<Setting>,
    /// The configuration that the others are compared with.
    pub against: String,
    /// The configurations, in the order in which a round runs them.
    #[serde(rename = "configuration")]
    pub configurations: Vec<Configuration>,
    /// The breakdown, in the order of the report.
    #[serde(default, rename = "step")]
    pub steps: Vec<Step>,
}

/// Something that is measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Its name in records.
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// Whether it is one that a user would compare, and not only a building block.
    #[serde(default)]
    pub headline: bool,
    /// The processes between the caller and the answer.
    pub chain: Chain,
    /// How long the client sleeps before each call; that is not part of the call's time.
    #[serde(default)]
    pub think_us: u32,
    /// It sleeps up to so much longer, at random.
    #[serde(default)]
    pub think_spread_us: u32,
    /// Clients that call at the same time, each over a connection of its own; only with an ORB.
    #[serde(default = "one")]
    pub clients: u32,
    /// Instead of the plan's `longs`.
    #[serde(default)]
    pub longs: Option<u32>,
    /// Instead of the plan's `against`: the direct call with as many clients and longs.
    #[serde(default)]
    pub against: Option<String>,
    /// What it repeats of Zhao02. Its nodes then record their time stamps.
    #[serde(default)]
    pub repeats: Option<Repeats>,
    /// Instead of the plan's `warm_up`: a virtual machine needs more calls than a program.
    #[serde(default)]
    pub warm_up: Option<u32>,
    /// What the echo clients are written with.
    #[serde(default)]
    pub client_orb: Orb,
    /// What the echo servers are written with.
    #[serde(default)]
    pub server_orb: Orb,
}

/// The processes between the caller and the answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chain {
    /// A bare TCP client, so many relays, and a bare TCP server that echoes.
    Tcp {
        /// Processes between the two.
        relays: usize,
    },
    /// A datagram once around so many processes, the client among them.
    Udp {
        /// At least 2.
        processes: usize,
    },
    /// The echo client and the echo server.
    Direct,
    /// The echo client at a process that hands every request to three echo servers, to two by
    /// another process each, and does nothing else.
    BareGroup {
        /// The servers listen on sockets of the machine, and not on ports.
        #[serde(default)]
        server_socket: bool,
    },
    /// The echo client at a gateway of a domain.
    Domain(DomainShape),
}

/// A domain with one group.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainShape {
    /// Nodes, all on the loopback interface.
    pub nodes: usize,
    /// Members of the group: so many of the first nodes.
    pub members: usize,
    /// The node at whose gateway the client calls, from 1.
    #[serde(default = "first")]
    pub client: usize,
    /// A network that the ring's datagrams go through; none: the loopback interface as it is.
    /// Wants `multicast = "off"`.
    #[serde(default)]
    pub wire: Option<Wire>,
    /// What stands in the domain file's `[ring]`.
    #[serde(default)]
    pub ring: toml::Table,
    /// What stands in the domain file's `[limits]`.
    #[serde(default)]
    pub limits: toml::Table,
    /// What stands in the domain file's `[group.echo]`, besides members and server.
    #[serde(default)]
    pub group: toml::Table,
    /// More options of the echo servers.
    #[serde(default)]
    pub server_options: Vec<String>,
    /// The servers listen on a socket of their machine, and not on a port.
    #[serde(default)]
    pub server_socket: bool,
}

fn one() -> u32 {
    1
}

fn first() -> usize {
    1
}

/// A part of a call's time: the difference of two configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The part.
    pub name: String,
    /// The configuration without it; none if it is the whole of `to`.
    pub from: Option<String>,
    /// The configuration with it.
    pub to: String,
    /// What happens in it.
    pub text: String,
}

/// What the command line changes of a plan.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Instead of the plan's `calls`; `warm_up` shrinks with it.
    pub calls: Option<u32>,
    /// Instead of the plan's `rounds`.
    pub rounds: Option<u32>,
    /// Whether little is measured, so that it does not take long.
    pub quick: bool,
    /// Instead of the plan's `settings`.
    pub settings: Option<Vec<Setting>>,
    /// Only these configurations, and the one that they are compared with.
    pub only: Option<Vec<String>>,
}

impl Plan {
    /// The plan of this name, or the file at this path if it ends in `.toml`.
    ///
    /// # Errors
    /// [`LabError::Plan`] if there is no such plan, or it cannot be run.
    pub fn find(name: &str) -> Result<Self, LabError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(text);
        }
        if name == irl::PLAN {
            let plan = irl::plan();
            plan.check()?;
            return Ok(plan);
        }
        if !name.ends_with(".toml") {
            let names = BUILT_IN.iter().map(|(known, _)| *known);
            let others = [irl::PLAN, failover::PLAN, leaders::PLAN, transfer::PLAN];
            let names: Vec<_> = names.chain(others).collect();
            let what = format!(
                "there is no plan {name:?}; plans: {}, or a file whose name ends in .toml",
                names.join(", ")
            );
            return Err(LabError::Plan(what));
        }
        let text = fs::read_to_string(Path::new(name))
            .map_err(LabError::system(format!("read the plan {name}")))?;
        Self::parse(&text)
    }

    /// Reads a plan.
    ///
    /// # Errors
    /// [`LabError::Plan`] if it is no TOML, no plan, or none that can be run.
    pub fn parse(text: &str) -> Result<Self, LabError> {
        let plan: Self = toml::from_str(text).map_err(|error| LabError::Plan(error.to_string()))?;
        plan.check()?;
        Ok(plan)
    }

    /// The plan with what the command line changes.
    ///
    /// # Errors
    /// [`LabError::Plan`] if what is left cannot be run.
    pub fn with(mut self, changes: Changes) -> Result<Self, LabError> {
        if let Some(calls) = changes.calls.or(changes.quick.then_some(QUICK_CALLS)) {
            self.calls = calls;
            self.warm_up = self.warm_up.min(calls / 10).max(1);
            for one in &mut self.configurations {
                one.warm_up = one.warm_up.map(|warm_up| warm_up.min(calls));
            }
        }
        let rounds = changes.rounds.or(changes.quick.then_some(1));
        self.rounds = rounds.unwrap_or(self.rounds);
        self.settings = changes.settings.unwrap_or(self.settings);
        if let Some(only) = changes.only {
            if let Some(unknown) = only.iter().find(|name| self.configuration(name).is_none()) {
                return Err(self.no_configuration(unknown));
            }
            let against = self.against.clone();
            let wanted = |one: &Configuration| only.contains(&one.name);
            let compared: Vec<String> = (self.configurations.iter().filter(|one| wanted(one)))
                .map(|one| self.against_of(one).to_owned())
                .collect();
            self.configurations
                .retain(|one| one.name == against || wanted(one) || compared.contains(&one.name));
            let left: Vec<_> = self.configurations.iter().map(|one| one.name.clone()).collect();
            self.steps.retain(|step| step.names().all(|name| left.contains(name)));
        }
        self.check()?;
        Ok(self)
    }

    /// The configuration of this name.
    #[must_use]
    pub fn configuration(&self, name: &str) -> Option<&Configuration> {
        self.configurations.iter().find(|one| one.name == name)
    }

    /// Calls of a block of it before the first that counts.
    pub(crate) fn warm_up_of(&self, one: &Configuration) -> u32 {
        one.warm_up.unwrap_or(self.warm_up)
    }

    /// The ORBs whose echo programs it needs.
    pub(crate) fn orbs(&self) -> impl Iterator<Item = Orb> {
        let echoes = self.configurations.iter().filter(|one| one.chain.uses_echo());
        echoes.flat_map(|one| [one.client_orb, one.server_orb])
    }

    /// The name of what a configuration is compared with.
    pub(crate) fn against_of<'a>(&'a self, one: &'a Configuration) -> &'a str {
        one.against.as_ref().unwrap_or(&self.against)
    }

    fn check(&self) -> Result<(), LabError> {
        let fault = |what: String| Err(LabError::Plan(format!("plan {}: {what}", self.name)));
        for (what, value, max) in [
            ("calls", self.calls, CALLS_MAX),
            ("warm_up", self.warm_up, CALLS_MAX),
            ("rounds", self.rounds, ROUNDS_MAX),
            ("longs", self.longs, LONGS_MAX),
        ] {
            if value == 0 || value > max {
                return fault(format!("{what} is {value}, and must be from 1 to {max}"));
            }
        }
        if self.settings.is_empty() || self.configurations.is_empty() {
            return fault("needs at least one setting and one configuration".to_owned());
        }
        for (index, one) in self.configurations.iter().enumerate() {
            let fits = (1..=NAME_LEN_MAX).contains(&one.name.len());
            let plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
            if !fits || !one.name.bytes().all(plain) {
                return fault(format!("the name {:?} is not 1 to 32 of a-z, 0-9, -", one.name));
            }
            if self.configurations[..index].iter().any(|other| other.name == one.name) {
                return fault(format!("two configurations are called {}", one.name));
            }
            if one.repeats.is_some() && self.calls > RECORDED_CALLS_MAX {
                return fault(format!(
                    "calls is {}; at most {RECORDED_CALLS_MAX} are recorded",
                    self.calls
                ));
            }
            let like_the_paper = |shape: &DomainShape| shape.nodes == zhao::NODES;
            let fits = matches!(&one.chain, Chain::Domain(shape) if like_the_paper(shape));
            if one.repeats.is_some() && !fits {
                return fault(format!("configuration {} is no domain of four nodes", one.name));
            }
            if let Some(what) = one.chain.fault().or_else(|| one.fault()) {
                return fault(format!("configuration {}: {what}", one.name));
            }
        }
        let against = self.configurations.iter().filter_map(|one| one.against.as_ref());
        let named = self.steps.iter().flat_map(Step::names).chain([&self.against]);
        match named.chain(against).find(|name| self.configuration(name).is_none()) {
            Some(unknown) => Err(self.no_configuration(unknown)),
            None => Ok(()),
        }
    }

    fn no_configuration(&self, name: &str) -> LabError {
        let names: Vec<_> = self.configurations.iter().map(|one| one.name.as_str()).collect();
        LabError::Plan(format!(
            "plan {} has no configuration {name:?}; it has {}",
            self.name,
            names.join(", ")
        ))
    }
}

impl Configuration {
    fn fault(&self) -> Option<String> {
        if !(1..=CLIENTS_MAX).contains(&self.clients) {
            Some(format!("clients must be from 1 to {CLIENTS_MAX}"))
        } else if self.clients > 1 && !self.chain.uses_echo() {
            Some("only the echo client is several".to_owned())
        } else if self.longs.is_some_and(|longs| !(1..=LONGS_MAX).contains(&longs)) {
            Some(format!("longs must be from 1 to {LONGS_MAX}"))
        } else if self.warm_up.is_some_and(|calls| !(1..=CALLS_MAX).contains(&calls)) {
            Some(format!("warm_up must be from 1 to {CALLS_MAX}"))
        } else if self.server_orb != Orb::Omniorb && self.chain.wants_omniorb() {
            Some("only omniORB's server stands behind a socket or a bare group".to_owned())
        } else if self.client_orb != Orb::Omniorb && self.think_us + self.think_spread_us > 0 {
            Some("only omniORB's client thinks".to_owned())
        } else {
            None
        }
    }
}

impl Step {
    fn names(&self) -> impl Iterator<Item = &String> {
        self.from.iter().chain([&self.to])
    }
}

impl DomainShape {
    fn fault(&self) -> Option<String> {
        let of_nodes = 1..=self.nodes;
        if !(1..=NODES_MAX).contains(&self.nodes) {
            Some("needs 1 to 16 nodes".to_owned())
        } else if !of_nodes.contains(&self.members) {
            Some("needs at least one member, and no more than nodes".to_owned())
        } else if !of_nodes.contains(&self.client) {
            Some("has no node for its client".to_owned())
        } else if self.wire.is_some_and(|wire| wire.hop_us > wire::HOP_US_MAX || wire.mbit_s == 0) {
            Some("has a wire that nothing comes through in time".to_owned())
        } else {
            crate::domain::refusal(self)
        }
    }
}

impl Chain {
    /// What keeps it from being run, if anything.
    fn fault(&self) -> Option<String> {
        let text = match self {
            Self::Tcp { relays } if *relays > PROCESSES_MAX => "has too many relays",
            Self::Udp { processes } if !(2..=PROCESSES_MAX).contains(processes) => {
                "needs 2 to 16 processes"
            }
            Self::Domain(shape) => return shape.fault(),
            Self::Tcp { .. } | Self::Udp { .. } | Self::Direct | Self::BareGroup { .. } => {
                return None;
            }
        };
        Some(text.to_owned())
    }

    /// Whether its servers are started as only omniORB's can be.
    const fn wants_omniorb(&self) -> bool {
        match self {
            Self::BareGroup { .. } => true,
            Self::Domain(shape) => shape.server_socket,
            Self::Tcp { .. } | Self::Udp { .. } | Self::Direct => false,
        }
    }

    /// Whether it needs the echo programs.
    pub(crate) fn uses_echo(&self) -> bool {
        !matches!(self, Self::Tcp { .. } | Self::Udp { .. })
    }
}

#[cfg(test)]
mod tests;
