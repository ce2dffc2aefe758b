//! A network of namespaces: one per node and one for the clients, joined by a bridge.
//!
//! What it is not: a change to this host's own network; the bridge is in a namespace, too.
//!
//! Invariant: dropped, nothing of it is left, unless this program was killed; then
//! `ip netns list` shows what is, under names that begin with `quorba-`.

use std::process::Command;

use crate::place::Place;

/// The addresses are `10.99.0.1` and so on for the nodes, this one for the clients.
const CLIENTS_ADDRESS: &str = "10.99.0.254/24";

/// See the module's text.
#[derive(Debug)]
pub struct Namespaces {
    switch: String,
    nodes: Vec<String>,
}

impl Namespaces {
    /// Makes the network for `nodes` nodes.
    ///
    /// # Errors
    /// Why this machine does not let us: it takes root, and the program `ip`.
    pub fn make(nodes: usize) -> Result<Self, String> {
        let id = std::process::id();
        let names = Self {
            switch: format!("quorba-{id}-switch"),
            nodes: (1..=nodes).map(|number| format!("quorba-{id}-n{number}")).collect(),
        };
        // From here on an error drops `names`, and with it what has been made so far.
        let switch = &names.switch;
        ip(&["netns", "add", switch])?;
        ip(&["-n", switch, "link", "set", "lo", "up"])?;
        ip(&["-n", switch, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", switch, "addr", "add", CLIENTS_ADDRESS, "dev", "bridge"])?;
        ip(&["-n", switch, "link", "set", "bridge", "up"])?;
        for (index, node) in names.nodes.iter().enumerate() {
            let port = port(index);
            let address = format!("{}/24", host(index));
            ip(&["netns", "add", node])?;
            ip(&["-n", node, "link", "set", "lo", "up"])?;
            ip(&[
                "-n", switch, "link", "add", &port, "type", "veth", "peer", "name", "eth0",
                "netns", node,
            ])?;
            ip(&["-n", switch, "link", "set", &port, "master", "bridge", "up"])?;
            ip(&["-n", node, "addr", "add", &address, "dev", "eth0"])?;
            ip(&["-n", node, "link", "set", "eth0", "up"])?;
        }
        Ok(names)
    }

    /// Where the node of this index is.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn node(&self, index: usize) -> Place {
        Place::Namespace(self.nodes[index].clone())
    }

    /// Where the clients are.
    #[must_use]
    pub fn clients(&self) -> Place {
        Place::Namespace(self.switch.clone())
    }

    /// Lets each node's cable carry so many bits a second, either way.
    ///
    /// # Errors
    /// What `tc` says, which comes with `ip`.
    pub fn limit(&self, bits_per_second: u64) -> Result<(), String> {
        let rate = format!("{bits_per_second}bit");
        for (index, node) in self.nodes.iter().enumerate() {
            let port = port(index);
            for (space, device) in [(node.as_str(), "eth0"), (self.switch.as_str(), &*port)] {
                let on = ["-n", space];
                let root = ["dev", device, "root", "handle", "1:", "htb", "default", "1"];
                tc(&[&on[..], &["qdisc", "add"], &root].concat())?;
                let class = ["dev", device, "parent", "1:", "classid", "1:1", "htb", "rate", &rate];
                tc(&[&on[..], &["class", "add"], &class].concat())?;
            }
        }
        Ok(())
    }

    /// Pulls a node's plug, or puts it back.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn set_plugged(&self, index: usize, plugged: bool) -> Result<(), String> {
        let state = if plugged { "up" } else { "down" };
        ip(&["-n", &self.switch, "link", "set", &port(index), state])
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in self.nodes.iter().chain([&self.switch]) {
            // One that was never made cannot be removed, and need not be.
            let _removed = ip(&["netns", "del", name]);
        }
    }
}

/// The address of a node.
#[must_use]
pub fn host(index: usize) -> String {
    format!("10.99.0.{}", index + 1)
}

fn port(index: usize) -> String {
    format!("n{}", index + 1)
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    run("ip", arguments)
}

fn tc(arguments: &[&str]) -> Result<(), String> {
    run("tc", arguments)
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}", arguments.join(" "), reason.trim()))
}
