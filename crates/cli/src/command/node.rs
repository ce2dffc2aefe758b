//! `quorba node`: one node of a domain, in the foreground.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quorba_config::Domain;
use quorba_node::{NodeError, RunOptions};
use rustix::process::{Pid, Signal};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::LevelFilter;

use crate::args::DomainFile;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// Run one node of a domain until SIGTERM or Ctrl-C
///
/// It starts and watches the servers of the groups that it is a member of. SIGHUP makes it read
/// keys, certificates, and what the domain file says of groups, again.
#[derive(Debug, Args)]
pub struct Node {
    /// The node's name in the domain file
    name: String,

    #[command(flatten)]
    domain: DomainFile,

    /// How much the node tells
    #[arg(long, value_enum, default_value_t = Level::Info, env = "QUORBA_LOG")]
    #[arg(hide_env_values = true)]
    log: Level,

    /// Keep time stamps of token visits, messages and calls in memory, and write them to this file
    /// when the node ends (one JSON object a line)
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// The process without which this one shall not go on
    #[arg(long, value_name = "PID", hide = true)]
    parent: Option<i32>,
}

/// Lines that wait to be written; what comes when so many wait is lost.
const LINES_MAX: usize = 16_384;

/// How much a node tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Node {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        if let Some(parent) = self.parent {
            end_with(parent)?;
        }
        let domain = context.load(&self.domain.config)?;
        let Some(me) = domain.node_id(&self.name) else {
            return Err(no_such_node(&domain, &self.name));
        };
        let (lost, _written_at_the_end) = self.log(context);
        for warning in &domain.warnings {
            tracing::warn!("{}: {warning}", self.domain.config.display());
        }
        let options = RunOptions { record: self.record.clone(), ..RunOptions::default() };
        let ended = quorba_node::run(domain, me, &options);
        if lost.dropped_lines() > 0 {
            tracing::warn!(
                lines = lost.dropped_lines(),
                "log lines are lost: their reader was too slow"
            );
        }
        ended.map_err(|error| node_failed(&self.name, &error))?;
        Ok(Exit::Ok)
    }

    /// What is told is written by a thread of its own, until what is returned goes: a terminal that
    /// stands still, a full pipe or a slow disk must not keep the node from its calls.
    fn log(&self, context: &Context) -> (ErrorCounter, WorkerGuard) {
        let level = match self.log {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        };
        let writer = NonBlockingBuilder::default().buffered_lines_limit(LINES_MAX).lossy(true);
        let (writer, guard) = writer.thread_name("log").finish(std::io::stderr());
        let lost = writer.error_counter();
        let lines = tracing_subscriber::fmt()
            .with_writer(writer)
            .with_max_level(level)
            .with_ansi(context.colours_stderr())
            .with_target(false);
        if context.is_json() {
            lines.json().init();
        } else {
            lines.init();
        }
        (lost, guard)
    }
}

/// Ends this process when its parent ends, however that ends.
fn end_with(parent: i32) -> Result<(), Failure> {
    let failure = |what: String| {
        Failure::new(codes::PROCESS, Exit::Failed, what, "start the node without --parent")
    };
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| failure(format!("the kernel will not tell of the parent: {error}")))?;
    // It may have ended before the kernel knew that we want to hear of it.
    if rustix::process::getppid() != Pid::from_raw(parent) {
        return Err(failure(format!("process {parent}, for which this node runs, has ended")));
    }
    Ok(())
}

/// Fails because the domain file has no such node.
pub fn no_such_node(domain: &Domain, name: &str) -> Failure {
    let names: Vec<&str> = domain.nodes.iter().map(|node| node.name.as_str()).collect();
    let what = format!("domain {} has no node {name:?}", domain.id);
    let next = format!("nodes: {}", names.join(", "));
    Failure::new(codes::NOT_IN_DOMAIN, Exit::Usage, what, next)
}

fn node_failed(name: &str, error: &NodeError) -> Failure {
    let (code, next) = match error {
        NodeError::StateDir { .. } => {
            (codes::NODE_STATE_DIR, "give the node a state_dir that it may write to")
        }
        NodeError::StateFile { .. } | NodeError::StateDamaged { .. } => {
            (codes::NODE_STATE_FILE, "look whether the directory is this node's")
        }
        NodeError::InUse { .. } => (
            codes::NODE_IN_USE,
            "end that process, or give this node a state_dir of its own: one for each node",
        ),
        NodeError::Listen { .. } => (
            codes::NODE_LISTEN,
            "end whoever has the address (perhaps this very node), or change the domain file",
        ),
        NodeError::Tls { .. } => {
            (codes::FILE, "name PEM files that the node may read: a chain and its key")
        }
        NodeError::Resolve { .. } => {
            (codes::NODE_RESOLVE, "give the host as an address, or repair the resolver")
        }
        NodeError::Resources(_) => {
            (codes::NODE_RESOURCES, "raise the limits of the process (ulimit -n, ulimit -u)")
        }
        NodeError::Record { .. } => (codes::FILE, "give --record a file that can be written"),
        NodeError::Corosync(_) => (codes::NODE_COROSYNC, "systemctl status corosync"),
        NodeError::NoCorosync => (
            codes::NODE_COROSYNC,
            "build it with `cargo build --features corosync`, or take engine = \"totem\"",
        ),
        NodeError::Log { .. } | NodeError::LogRefused { .. } => {
            (codes::NODE_LOG, "look at the directory and its disk")
        }
        NodeError::Groups { .. } => (codes::NODE_LOG, "look at the file and its disk"),
        NodeError::NoSuchNode => (codes::NOT_IN_DOMAIN, "look for [node.NAME] in the domain file"),
    };
    Failure::new(code, Exit::Failed, format!("node {name} cannot run: {error}"), next)
}

/// The way in which a node starts its servers; see `quorba_node::exec_server`.
#[derive(Debug, Args)]
pub struct ExecServer {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// What shells exit with if a command cannot be started; the node tells it from the server's own.
const EXIT_NOT_STARTED: i32 = 127;

impl ExecServer {
    pub fn run(self, context: &Context) -> ! {
        if let Err(reason) = quorba_node::exec_server(self.arguments) {
            let next = "check `server` in the domain file: the program's path, and that it can run";
            context.tell(Failure::new(codes::PROCESS, Exit::Failed, reason, next));
        }
        std::process::exit(EXIT_NOT_STARTED)
    }
}
