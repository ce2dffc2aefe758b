//! `quorba-ringd`: a node of the ring without CORBA.

#![forbid(unsafe_code)]

mod participant;

use clap::{Args, Parser, Subcommand, ValueEnum};
use quorba_base::{NODES_MAX, NodeId, NodeSet};
use quorba_config::DomainKey;
use quorba_net::Multicast;
use quorba_order::{Config, Hold, Timing};
use quorba_ringd::daemon::Daemon;
use quorba_ringd::driver::Driver;
use serde_json::json;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;

/// The Totem ring as a service: ordered messages and process groups, without CORBA.
#[derive(Parser)]
#[command(name = "quorba-ringd", version)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Serve programs on this machine until stopped
    Daemon(RingArguments),
    /// Take part in `cargo xtask bench order` as a program beside the daemon
    #[command(hide = true)]
    Client(ClientArguments),
    /// Take part in `cargo xtask bench order` as a node of the ring, in one process
    #[command(hide = true)]
    Member(RingArguments),
}

#[derive(Args)]
struct ClientArguments {
    /// This node's number, from 1
    #[arg(long)]
    node: u8,
    /// How many nodes there are
    #[arg(long)]
    nodes: u8,
    /// The daemon's folder
    #[arg(long)]
    dir: PathBuf,
}

/// The daemon's socket in its folder.
const SOCKET: &str = "ring.sock";

fn daemon(arguments: &RingArguments) -> Result<(), String> {
    let path = arguments.dir.join(SOCKET);
    let daemon = Daemon::listen(arguments.open()?, &path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let text = |error: std::io::Error| error.to_string();
    if arguments.until_stdin_ends {
        daemon.end_with_stdin().map_err(text)?;
    }
    participant::tell(&json!({ "event": "listening", "socket": path })).map_err(text)?;
    daemon.run().map_err(text)
}

#[derive(Args)]
struct RingArguments {
    /// This node's number, from 1
    #[arg(long)]
    node: u8,
    /// How many nodes there are
    #[arg(long)]
    nodes: u8,
    /// This node's own folder
    #[arg(long)]
    dir: PathBuf,
    /// The ring addresses of all nodes, in their order
    #[arg(long, value_delimiter = ',', required = true)]
    peers: Vec<SocketAddr>,
    /// The domain key's file; needed unless `--encryption off`
    #[arg(long, required_if_eq("encryption", "on"))]
    key: Option<PathBuf>,
    /// Whether datagrams are encrypted and authenticated
    #[arg(long, value_enum, default_value_t = Switch::On)]
    encryption: Switch,
    /// When the token is passed on
    #[arg(long, value_enum, default_value_t = Kind::Original)]
    ring: Kind,
    /// How datagrams to all nodes are sent
    #[arg(long, value_enum, default_value_t = Transport::Auto)]
    transport: Transport,
    /// The multicast group
    #[arg(long, default_value = "239.192.81.82:5511")]
    group: SocketAddrV4,
    /// The longest datagram, in bytes
    #[arg(long, default_value_t = 1400)]
    datagram_bytes: usize,
    /// End when standard input does
    #[arg(long)]
    until_stdin_ends: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// By multicast where probes show that it works
    Auto,
    /// By multicast only
    Multicast,
    /// One by one
    Unicast,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// After the messages (Totem)
    Original,
    /// Before the last of them (accelerated ring)
    Accelerated,
}

impl RingArguments {
    fn open(&self) -> Result<Driver, String> {
        let nodes = usize::from(self.nodes);
        let me = self.node.checked_sub(1).filter(|me| usize::from(*me) < nodes);
        let me = me.and_then(NodeId::new).filter(|_| nodes <= NODES_MAX);
        let me = me.ok_or_else(|| format!("--node must be 1 to --nodes (at most {NODES_MAX})"))?;
        if self.peers.len() != nodes {
            return Err(format!("--peers has {} addresses for {nodes} nodes", self.peers.len()));
        }
        let keys = match (&self.key, self.encryption) {
            (Some(path), Switch::On) => {
                DomainKey::read_file(path).map_err(|e| format!("{}: {e}", path.display()))?
            }
            _ => vec![DomainKey::from_bytes([0; 32])],
        };
        let config = Config {
            me,
            nodes: NodeSet::first(nodes),
            domain_key: (*keys[0].as_bytes()).into(),
            domain_digest: u64::from(self.nodes),
            datagram_bytes_max: self.datagram_bytes,
            encrypt: self.encryption == Switch::On,
            accelerated: self.ring == Kind::Accelerated,
            hold: Hold::default(),
            timing: Timing::default(),
        };
        let multicast = match self.transport {
            Transport::Auto => Multicast::Probed(self.group),
            Transport::Multicast => Multicast::Always(self.group),
            Transport::Unicast => Multicast::Off,
        };
        Driver::open(config, &keys, &self.dir, self.peers.clone(), multicast)
            .map_err(|error| error.to_string())
    }
}

fn main() -> ExitCode {
    let result = match Arguments::parse().role {
        Role::Daemon(arguments) => daemon(&arguments),
        Role::Client(arguments) => {
            let (node, nodes) = (u32::from(arguments.node), u32::from(arguments.nodes));
            participant::client(&arguments.dir.join(SOCKET), node, nodes)
                .map_err(|error| error.to_string())
        }
        Role::Member(arguments) => arguments.open().and_then(|driver| {
            participant::member(driver, u32::from(arguments.node), u32::from(arguments.nodes))
                .map_err(|error| error.to_string())
        }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quorba-ringd: {error}");
            ExitCode::FAILURE
        }
    }
}
