//! Asks the nodes of a domain how they are.
//!
//! A node's admin API listens on loopback, so only the nodes on this machine can be asked
//! directly; the others are asked through one of these, over the links between the nodes.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use quorba_admin::status::Status;
use quorba_admin::{AdminError, Client};
use quorba_config::{Domain, Node};

use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::health;
use crate::text::system_reason;

/// One node is not waited for longer than this, whatever the deadline of the command.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);
/// Nor shorter: at the end of a command's time, a busy node must not look like a hung one.
const NODE_TIMEOUT_MIN: Duration = Duration::from_millis(500);

/// What one node of the domain file said.
#[derive(Debug)]
pub struct Answer {
    /// Its name in the domain file.
    pub node: String,
    /// Its host in the domain file.
    pub host: String,
    /// Where it was asked.
    pub admin: SocketAddr,
    /// Its status, or why there is none.
    pub status: Result<Status, Silence>,
    /// How to ask it more.
    pub client: Client,
}

/// Why a node did not say how it is.
#[derive(Debug)]
pub enum Silence {
    /// Nothing listens on its admin address: it does not run, or not on this machine.
    NotHere,
    /// Another node answers at its address, so it runs on another machine.
    Elsewhere {
        /// Who answers.
        answered: String,
    },
    /// Its token cannot be read.
    NoToken {
        /// The token's file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It does not accept the token: the file is of an earlier run, or of another node.
    Denied {
        /// The token's file.
        file: PathBuf,
    },
    /// It accepted the connection, and said nothing in time.
    Hung,
    /// It said something that is no status.
    Confused {
        /// What was wrong with it.
        reason: String,
    },
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHere => f.write_str("not running here"),
            Self::Elsewhere { answered } => {
                write!(f, "on another machine ({answered} answers here)")
            }
            Self::NoToken { file, reason } => {
                write!(f, "running; its token {} cannot be read: {reason}", file.display())
            }
            Self::Denied { file } => {
                write!(f, "running; it refuses the token in {}", file.display())
            }
            Self::Hung => f.write_str("running; no answer"),
            Self::Confused { reason } => write!(f, "running; unreadable answer: {reason}"),
        }
    }
}

/// Asks every node of the domain at the same time, each for `left`, within half a second and two;
/// then those that do not answer here through one that does.
pub fn everyone(domain: &Domain, left: Duration) -> Vec<Answer> {
    let time = left.clamp(NODE_TIMEOUT_MIN, NODE_TIMEOUT);
    let mut answers: Vec<Answer> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            domain.nodes.iter().map(|node| scope.spawn(move || ask(domain, node, time))).collect();
        asked.into_iter().map(|asked| asked.join().expect("asking does not panic")).collect()
    });
    let Some((through, linked)) = knows_a_way(&answers) else { return answers };
    std::thread::scope(|scope| {
        let silent = answers.iter_mut().filter(|answer| {
            let is_elsewhere = answer.status.as_ref().is_err_and(Silence::may_be_elsewhere);
            is_elsewhere && linked.contains(&answer.node)
        });
        for answer in silent {
            let client = through.at(&answer.node);
            scope.spawn(move || {
                if let Ok(status) = client.status(time)
                    && status.domain == domain.id
                    && status.node == answer.node
                {
                    (answer.status, answer.client) = (Ok(status), client);
                }
            });
        }
    });
    answers
}

/// A node that answers here, and the nodes to which its links lead.
fn knows_a_way(answers: &[Answer]) -> Option<(Client, Vec<String>)> {
    let best = health::best(answers)?;
    let answer = answers.iter().find(|answer| answer.node == best.node)?;
    let linked = best.nodes.iter().filter(|node| node.linked).map(|node| node.name.clone());
    Some((answer.client.clone(), linked.collect()))
}

/// Fails if the domain file has no such node.
pub fn require_node<'d>(domain: &'d Domain, name: &str) -> Result<&'d Node, Failure> {
    domain.nodes.iter().find(|node| node.name == name).ok_or_else(|| {
        let names: Vec<&str> = domain.nodes.iter().map(|node| node.name.as_str()).collect();
        let what = format!("domain {} has no node {name:?}", domain.id);
        let next = format!("nodes: {}", names.join(", "));
        Failure::new(codes::NOT_IN_DOMAIN, Exit::Usage, what, next)
    })
}

/// Why nothing is known of `group`: by `node`, or by any node if none was named.
pub fn no_word(domain: &Domain, answers: &[Answer], group: &str, node: Option<&str>) -> Failure {
    let silent = answers.iter().find(|answer| Some(answer.node.as_str()) == node);
    if let Some(Answer { node, admin, status: Err(silence), .. }) = silent {
        let what = format!("node {node}: {silence} ({admin})");
        let next = "quorba status shows which nodes answer; without --node one of those is asked";
        return Failure::new(codes::NOBODY_ANSWERS, Exit::Failed, what, next);
    }
    let said = answers.iter().find(|answer| answer.status.is_ok() && is_meant(answer, node));
    match said {
        Some(answer) => unknown_group(&answer.node, group),
        None => nobody_here(domain),
    }
}

fn is_meant(answer: &Answer, node: Option<&str>) -> bool {
    node.is_none_or(|name| answer.node == name)
}

/// What helps against a group that the file has and the running domain has not.
pub const CREATE_OR_LOOK: &str = "quorba config apply FILE creates what the file says; quorba \
                                  group list shows the groups that run";

/// The domain file has a group that the running domain has not.
pub fn unknown_group(node: &str, group: &str) -> Failure {
    let what = format!("the running domain has no group {group}, says node {node}");
    Failure::new(codes::NOT_IN_DOMAIN, Exit::Failed, what, CREATE_OR_LOOK)
}

/// No node answers.
pub fn nobody_here(domain: &Domain) -> Failure {
    let what = format!("no node of domain {} answers on this machine", domain.id);
    let next = "start one with quorba node, or run this where one runs";
    Failure::new(codes::NOBODY_ANSWERS, Exit::Failed, what, next)
}

fn ask(domain: &Domain, node: &Node, time: Duration) -> Answer {
    let client = Client::new(node.admin, node.admin_token_file());
    let status = client.status(time);
    let status = status.map_err(Silence::from).and_then(|status| {
        if status.domain == domain.id && status.node == node.name {
            return Ok(status);
        }
        let answered = if status.domain == domain.id {
            status.node
        } else {
            format!("{} of domain {}", status.node, status.domain)
        };
        Err(Silence::Elsewhere { answered })
    });
    let (name, host) = (node.name.clone(), node.host.to_string());
    Answer { node: name, host, admin: node.admin, status, client }
}

impl Silence {
    /// The node that is meant may run on another machine, or belong to another user.
    const fn may_be_elsewhere(&self) -> bool {
        match self {
            Self::NotHere | Self::Elsewhere { .. } | Self::NoToken { .. } | Self::Denied { .. } => {
                true
            }
            Self::Hung | Self::Confused { .. } => false,
        }
    }
}

impl From<AdminError> for Silence {
    fn from(error: AdminError) -> Self {
        match error {
            // A node writes its token when it starts: without one it never ran here.
            AdminError::Token { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Self::NotHere
            }
            AdminError::Token { path, source } => {
                Self::NoToken { file: path, reason: system_reason(&source) }
            }
            AdminError::Refused { path, .. } => Self::Denied { file: path },
            AdminError::Unreachable { .. } => Self::NotHere,
            AdminError::Timeout { .. } => Self::Hung,
            AdminError::Answer { detail, .. }
            | AdminError::Conflict { refusal: detail, .. }
            | AdminError::NotNow { refusal: detail, .. } => Self::Confused { reason: detail },
        }
    }
}
