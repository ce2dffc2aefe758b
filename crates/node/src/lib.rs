//! The Quorba daemon: the pure engine, driven by real sockets, a real clock and real processes.
//!
//! One data-plane thread per node owns the ring socket and all IIOP sockets, because a thread
//! hand-off costs more than the protocol; see [`mod@data`]. One supervisor thread starts and
//! watches the servers of all groups; another one serves the admin API from snapshots.
//!
//! What it is not: it decides nothing about protocols. Invariants: a datagram leaves only after
//! what the engine wanted stored before it is on disk; a server does not outlive its node.

#![forbid(unsafe_code)]

pub mod admin;
mod auto_placement;
pub mod backup;
pub mod boot;
mod call_timings;
mod clients;
mod commands;
#[cfg(feature = "corosync")]
mod corosync;
#[cfg(not(feature = "corosync"))]
#[path = "no_corosync.rs"]
mod corosync;
mod data;
mod deferred_free;
mod definitions;
mod descriptors;
mod endpoint;
mod events;
mod external;
mod factories;
mod filesystem;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod groups;
mod keeper;
mod launch;
mod lease;
mod log;
mod log_limiter;
pub mod logged;
mod offer;
mod output;
mod pauses;
pub mod placement;
mod priority;
mod process;
mod ready;
pub mod recent;
mod recorder;
mod reference;
mod report;
mod reread;
mod resolve;
mod ring;
mod running;
mod servers;
mod settings;
mod state_lock;
mod store;
mod supervise;
mod supervision;
pub mod times;
mod transport;
pub mod trial;
mod tunnel;
mod wake;
mod workers;

use quorba_base::NodeId;
use quorba_config::Domain;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use process::exec_server;
pub use recorder::{Recorded, SeriesName};
pub use reference::id_in_file;

/// How a node is to run, beside what the domain file says.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The program and first arguments through which servers are started; what follows is what
    /// [`exec_server`] wants. The binary's own hidden subcommand by default.
    pub launcher: Vec<String>,
    /// The thread of the ring asks for a better place in the scheduler's queue.
    pub raise_priority: bool,
    /// Keep time stamps of the token, messages and calls in memory, and write them to this file
    /// when the node ends; see [`Recorded`].
    pub record: Option<PathBuf>,
}

impl Default for RunOptions {
    fn default() -> Self {
        let exe = std::env::current_exe().unwrap_or_else(|_| "quorba".into());
        let launcher = vec![exe.display().to_string(), "exec-server".into()];
        Self { launcher, raise_priority: true, record: None }
    }
}

/// Why a node cannot run. None of these is cured by waiting, save for what the operator frees.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The state directory cannot be used.
    #[error("state directory {}: {}", path.display(), filesystem::explain(path, source))]
    StateDir {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process runs with the state directory.
    #[error(
        "state directory {}: {} runs with it",
        path.display(),
        pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
    )]
    InUse {
        /// Which.
        path: PathBuf,
        /// Whose, as far as it could say so.
        pid: Option<u32>,
    },
    /// The state file has changed since this node wrote it.
    #[error(
        "{} is damaged at offset {offset}: what this node must remember is not certain; check the \
         disk, and move the file away only while the other nodes are up and have the state",
        path.display()
    )]
    StateDamaged {
        /// Which.
        path: PathBuf,
        /// Where.
        offset: usize,
    },
    /// The state file is not one of ours.
    #[error(
        "{} is not a node's state file of this version; move it away only while the other nodes \
         are up and have the state",
        path.display()
    )]
    StateFile {
        /// Which.
        path: PathBuf,
    },
    /// The durable log cannot be written.
    #[error(
        "the durable log in {}: {}; the node stops, because it could not keep what it \
         acknowledges. Make the disk work or free space, then start the node",
        path.display(),
        filesystem::explain(path, source)
    )]
    Log {
        /// Its directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The durable log cannot be opened.
    #[error("the durable log in {}: {source}; {}", path.display(), log::advice(path, source))]
    LogRefused {
        /// Its directory.
        path: PathBuf,
        /// Why.
        source: quorba_journal::OpenError,
    },
    /// The list of groups is damaged.
    #[error(
        "{}: {what}; which groups the domain has is not certain from it. Move the file away: the \
         other nodes tell this one when it joins them, and a node that is first begins with the \
         groups of its domain file",
        path.display()
    )]
    Groups {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A gateway's certificate or key is of no use.
    #[error("TLS of group {group}: {problem}")]
    Tls {
        /// Whose gateway.
        group: String,
        /// Which file, and what is wrong.
        problem: String,
    },
    /// A socket cannot be opened.
    #[error("cannot listen for {what} on {address}: {source}")]
    Listen {
        /// For what.
        what: String,
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A host of the domain file cannot be resolved.
    #[error("node {node}: host {host}: {source}")]
    Resolve {
        /// Whose host.
        node: String,
        /// Which host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused a descriptor or a thread.
    #[error("the system refused a resource: {0}")]
    Resources(#[source] io::Error),
    /// The recorded time stamps cannot be written.
    #[error("cannot record to {}: {source}", path.display())]
    Record {
        /// Where to.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Corosync makes the order, and cannot be used.
    #[error("{0}")]
    Corosync(String),
    /// Corosync is to make the order, and this program cannot talk to it.
    #[error("the domain's engine is \"corosync\", and this program was built without it")]
    NoCorosync,
    /// The node is not in the domain file.
    #[error("the domain file has no such node")]
    NoSuchNode,
}

impl NodeError {
    fn record(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Record { path: path.to_path_buf(), source }
    }
}

/// Runs node `me` of `domain` until it is told to stop (SIGTERM, SIGINT).
///
/// # Errors
/// If the node cannot start, or loses a resource without which it cannot go on.
pub fn run(domain: Domain, me: NodeId, options: &RunOptions) -> Result<(), NodeError> {
    let name = domain.node(me).ok_or(NodeError::NoSuchNode)?.name.clone();
    // Made at once, so that a wrong path is told before anything is measured.
    let record = match &options.record {
        Some(path) => Some((File::create(path).map_err(NodeError::record(path))?, path)),
        None => None,
    };
    let mut options = options.clone();
    if process::do_without_huge_pages() {
        options.launcher.push(process::HUGE_PAGES.into());
    }
    let (descriptors, before) = process::raise_descriptors();
    if descriptors != before {
        options.launcher.extend([process::DESCRIPTORS.into(), before.to_string()]);
    }
    let recorder = data::DataPlane::start(domain, me, &options)?.run()?;
    match (recorder, record) {
        (Some(recorder), Some((file, path))) => {
            recorder.write(&name, file).map_err(NodeError::record(path))
        }
        _ => Ok(()),
    }
}
