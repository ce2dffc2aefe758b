//! The naming service of a domain, by its one line in the domain file: a tree of contexts that
//! nameclt, JacORB and omniORBpy list and resolve at every node, before and after each kill; and
//! the end of all nodes at once; and a tree that another ORB's name server had.
//!
//! What it is not: a test of each operation; `crates/naming/tests` has those.
//!
//! Invariant: what a client was told is bound is there afterwards, at every node.

mod import;
pub(super) mod other;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use quorba_lab::skips::skip;
use rustix::process::Signal;

use super::domain::{DomainFile, NODES};
use super::fleet::{self, Fleet};
use super::live::operator::Operator;
use super::{Context, Verdict};
use crate::examples::Example;
use crate::place::Place;
use crate::{omniorbpy, wait, workspace};
use other::Maker;

/// The name of the service, and of its group.
const SERVICE: &str = "naming";
/// Contexts of the tree.
const CONTEXTS: [&str; 4] = ["plant", "plant/hall.1", "plant/hall.1/line", "office"];
/// Objects of the tree; more than clients list in one call.
const OBJECTS: [&str; 9] = [
    "a",
    "b.kind",
    "c",
    "d",
    "plant/x",
    "plant/hall.1/y",
    "plant/hall.1/z.k",
    "office/desk",
    "plant/hall.1/line/robot",
];
/// Names bound before all nodes end.
const MANY: usize = 100;
/// How long a client may need until it is served, while a node ends and others see it.
const SERVED_TIME_MAX: Duration = Duration::from_secs(20);

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Story {
    /// Each node's service process is killed, and then each node.
    Kills,
    /// All nodes are killed at once.
    WholeDomain,
    /// The tree comes from another ORB's name server.
    Import(Maker),
}

impl Story {
    pub(super) const ALL: [Self; 4] = [
        Self::Kills,
        Self::WholeDomain,
        Self::Import(Maker::Jacorb),
        Self::Import(Maker::Omninames),
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kills => "naming-service-kills",
            Self::WholeDomain => "naming-service-whole-domain",
            Self::Import(Maker::Jacorb) => "naming-service-import-from-jacorb",
            Self::Import(Maker::Omninames) => "naming-service-import-from-omninames",
        }
    }
}

pub(super) fn run(context: &Context, story: Story) -> Verdict {
    if workspace::program("nameclt").is_none() {
        return Verdict::Skipped("no nameclt here: cargo xtask deps installs it".into());
    }
    if let Story::Import(maker) = story
        && let Some(reason) = maker.missing()
    {
        return Verdict::Skipped(reason);
    }
    let told = Life::begin(context, story).and_then(|life| match story {
        Story::Kills => life.through_kills(),
        Story::WholeDomain => life.through_the_end_of_all(),
        Story::Import(maker) => import::run(life, context, maker),
    });
    told.map_or_else(Verdict::Failed, Verdict::Passed)
}

/// A client that lists a whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    Nameclt,
    Jacorb,
    Omniorbpy,
}

struct Life {
    fleet: Fleet,
    operator: Operator,
    clients: Vec<Client>,
    /// A line for each binding, as the clients print them.
    expected: BTreeSet<String>,
    /// How often a client listed the tree.
    looks: usize,
}

impl Life {
    fn begin(context: &Context, story: Story) -> Result<Self, String> {
        let mut clients = vec![Client::Nameclt, Client::Jacorb];
        match omniorbpy::command(Path::new("")) {
            Some(_) => clients.push(Client::Omniorbpy),
            None => skip(
                &format!("{}-omniorbpy", story.name()),
                "no omniORBpy here: cargo xtask deps installs it",
            ),
        }
        let domain = DomainFile::with_service(&context.quorba, &context.folder, SERVICE)?;
        let fleet = Fleet::start(&context.quorba, &context.folder, SERVICE, domain)?;
        fleet.wait_whole()?;
        let operator = Operator::of(context, &fleet);
        let mut life = Self { fleet, operator, clients, expected: BTreeSet::new(), looks: 0 };
        if matches!(story, Story::Import(_)) {
            return Ok(life);
        }
        for name in CONTEXTS {
            life.operator.ok(&["naming", "mkctx", name])?;
            life.expected.insert(format!("context {name}"));
        }
        for name in OBJECTS {
            life.operator.ok(&["naming", "bind", name, &target(name)])?;
            life.expected.insert(format!("object {name}"));
        }
        Ok(life)
    }

    fn through_kills(mut self) -> Result<String, String> {
        self.check()?;
        for index in 0..NODES {
            let killed = self.fleet.server(index)?.pid;
            fleet::signal(killed, Signal::KILL);
            self.bind_across(&format!("server-{index}"))?;
            wait::until("another process serves", SERVED_TIME_MAX, || {
                match self.fleet.server(index)?.pid == killed {
                    true => Err("the killed one is shown".into()),
                    false => Ok(()),
                }
            })?;
            self.fleet.wait_whole()?;
            self.check()?;
        }
        for index in 0..NODES {
            self.fleet.kill_node(index);
            self.bind_across(&format!("node-{index}"))?;
            self.fleet.start_node(index)?;
            self.fleet.wait_whole()?;
            self.check()?;
        }
        self.operator.wait_healthy()?;
        let (names, looks) = (self.expected.len(), self.looks);
        self.fleet.end()?;
        Ok(format!("{names} bindings, {looks} times listed and resolved by {:?}", self.clients))
    }

    fn through_the_end_of_all(mut self) -> Result<String, String> {
        // A reference to a context, which is to be good afterwards.
        let reference = self.operator.ok(&["naming", "resolve", "plant"])?.trim().to_owned();
        for number in 0..MANY {
            let name = format!("many-{number}");
            nameclt(&self.place(0), &["bind", &name, &target(&name)])?;
            self.expected.insert(format!("object {name}"));
        }
        for index in 0..NODES {
            self.fleet.signal_node(index, Signal::KILL);
        }
        for index in 0..NODES {
            self.fleet.kill_node(index);
        }
        for index in 0..NODES {
            self.fleet.start_node(index)?;
        }
        self.fleet.wait_whole()?;
        self.check()?;
        let listed = nameclt(&reference, &["list"])?;
        if listed.lines().map(str::trim).collect::<Vec<_>>() != ["hall.1/", "x"] {
            return Err(format!("the context that was held has {listed:?}"));
        }
        self.operator.wait_healthy()?;
        let names = self.expected.len();
        self.fleet.end()?;
        Ok(format!("{names} bindings kept, by {:?}", self.clients))
    }

    /// The root at one node.
    fn place(&self, node: usize) -> String {
        format!("corbaloc:iiop:1.2@{}/NameService", self.fleet.nodes()[node].gateway)
    }

    /// The root at all nodes.
    fn everywhere(&self) -> String {
        let places: Vec<String> =
            self.fleet.nodes().iter().map(|node| format!("iiop:1.2@{}", node.gateway)).collect();
        format!("corbaloc:{}/NameService", places.join(","))
    }

    /// Every client binds a name of its own while something has ended; one that meets the end of
    /// its gateway does it again, as its user would.
    fn bind_across(&mut self, name: &str) -> Result<(), String> {
        let everywhere = self.everywhere();
        for client in self.clients.clone() {
            let name = format!("{name}-{client:?}");
            wait::until("a name can be bound", SERVED_TIME_MAX, || match client {
                Client::Nameclt => {
                    nameclt(&everywhere, &["rebind", &name, &target(&name)]).map(drop)
                }
                _ => tree(client, &everywhere, &["--bind", &name]).map(drop),
            })?;
            self.expected.insert(format!("object {name}"));
        }
        Ok(())
    }

    /// Every client lists and resolves everything at every node.
    fn check(&mut self) -> Result<(), String> {
        for node in 0..NODES {
            for client in self.clients.clone() {
                let seen = tree(client, &self.place(node), &[])?;
                self.looks += 1;
                if seen != self.expected {
                    let missing: Vec<_> = self.expected.difference(&seen).collect();
                    let extra: Vec<_> = seen.difference(&self.expected).collect();
                    return Err(format!(
                        "{client:?} at n{}: without {missing:?} and with {extra:?}",
                        node + 1
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What a client sees of the naming service at `place`.
pub(super) fn tree(client: Client, place: &str, more: &[&str]) -> Result<BTreeSet<String>, String> {
    let command = match client {
        Client::Nameclt => return nameclt_tree(place),
        Client::Jacorb => {
            let program = Example::JacorbBank.built().join("bin/names-tree");
            let mut command = Place::Here.command(&program);
            command.arg(place).args(more);
            command
        }
        Client::Omniorbpy => {
            let script = workspace::root().join("examples/omniorbpy-names/tree.py");
            let mut command = omniorbpy::command(&script).ok_or("no omniORBpy")?;
            command.args(more).arg("-ORBInitRef").arg(format!("NameService={place}"));
            command
        }
    };
    let text = output(command, &format!("{client:?}"))?;
    Ok(text.lines().map(|line| line.trim().to_owned()).collect())
}

/// nameclt lists one context at a time.
fn nameclt_tree(place: &str) -> Result<BTreeSet<String>, String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![String::new()];
    while let Some(context) = open.pop() {
        let words: Vec<&str> =
            ["list", &context].into_iter().filter(|word| !word.is_empty()).collect();
        for line in nameclt(place, &words)?.lines().map(str::trim) {
            let (part, kind) = match line.strip_suffix('/') {
                Some(part) => (part, "context"),
                None => (line, "object"),
            };
            let name = match context.as_str() {
                "" => part.to_owned(),
                context => format!("{context}/{part}"),
            };
            if !nameclt(place, &["resolve", &name])?.starts_with("IOR:") {
                return Err(format!("{name} resolves to nothing"));
            }
            seen.insert(format!("{kind} {name}"));
            if kind == "context" {
                open.push(name);
            }
        }
    }
    Ok(seen)
}

fn nameclt(place: &str, words: &[&str]) -> Result<String, String> {
    let mut command = Place::Here.command(Path::new("nameclt"));
    // rebind is one of the operations that it calls advanced.
    command.args(["-ORBInitRef", &format!("NameService={place}"), "-advanced"]).args(words);
    output(command, &format!("nameclt {}", words.join(" ")))
}

fn output(mut command: Command, what: &str) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{what}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(format!("{what}: {} {}", text.trim(), reason.trim()))
}

fn target(name: &str) -> String {
    format!("corbaloc::127.0.0.1:9/{name}")
}
