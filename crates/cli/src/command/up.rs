//! `quorba up`: every node of a domain file on this machine, for trying things out.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anstyle::AnsiColor;
use clap::Args;
use quorba_config::Domain;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::DomainFile;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::system_reason;

/// A node that was told to stop is killed after this time.
const STOP_TIME: Duration = Duration::from_secs(10);
/// A longer line is shown in pieces.
const LINE_BYTES_MAX: u64 = 16 << 10;

/// Run all nodes of a domain file on this machine
///
/// Their output is shown with the node's name in front. Ctrl-C stops them all; a second Ctrl-C
/// kills them. SIGHUP is passed on: they read keys, and what the file says of groups, again.
#[derive(Debug, Args)]
pub struct Up {
    #[command(flatten)]
    domain: DomainFile,
}

enum Event {
    Line { node: usize, stream: &'static str, line: String },
    Signal(i32),
}

struct Running {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
}

impl Up {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let domain = context.load(&self.domain.config)?;
        let (sender, events) = mpsc::channel();
        // Before the first child, so that no end of one is missed.
        watch_signals(sender.clone()).map_err(|error| {
            let what = format!("signals cannot be received: {}", system_reason(&error));
            Failure::new(codes::PROCESS, Exit::Failed, what, "run the nodes one by one")
        })?;
        let mut nodes = Vec::new();
        for (index, node) in domain.nodes.iter().enumerate() {
            match start(&self.domain.config, &node.name, index, &sender) {
                Ok(child) => nodes.push(Running { name: node.name.clone(), child, ended: None }),
                Err(error) => {
                    tell_nodes(&nodes, Signal::KILL);
                    nodes.iter_mut().for_each(|node| drop(node.child.wait()));
                    let reason = system_reason(&error);
                    let what = format!("node {} cannot be started: {reason}", node.name);
                    let next = "check that this program can be executed again";
                    return Err(Failure::new(codes::PROCESS, Exit::Failed, what, next));
                }
            }
        }
        drop(sender);
        supervise(context, &domain, nodes, &events)
    }
}

fn watch_signals(sender: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGCHLD])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if sender.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

fn start(config: &Path, name: &str, index: usize, sender: &Sender<Event>) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("node").arg(name).arg("--config").arg(config);
    command.arg("--parent").arg(std::process::id().to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: Ctrl-C on the terminal reaches this process only, which then stops
    // the nodes in order.
    command.process_group(0);
    let mut child = command.spawn()?;
    if let Some(out) = child.stdout.take() {
        forward(out, index, "stdout", sender.clone());
    }
    if let Some(err) = child.stderr.take() {
        forward(err, index, "stderr", sender.clone());
    }
    Ok(child)
}

fn forward(
    from: impl Read + Send + 'static,
    node: usize,
    stream: &'static str,
    sender: Sender<Event>,
) {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            match from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(Event::Line { node, stream, line }).is_err() {
                return;
            }
        }
    });
}

fn supervise(
    context: &Context,
    domain: &Domain,
    mut nodes: Vec<Running>,
    events: &Receiver<Event>,
) -> Result<Exit, Failure> {
    let run_until = context.timeout.map(|time| Instant::now() + time);
    let mut stopping: Option<Instant> = None;
    let mut failed: Vec<String> = Vec::new();
    let width = domain.nodes.iter().map(|node| node.name.len()).max().unwrap_or(0);
    while nodes.iter().any(|node| node.ended.is_none()) {
        let next = stopping.or(run_until);
        match receive(events, next) {
            Ok(Event::Line { node, stream, line }) => {
                show(context, node, &nodes[node].name, width, stream, &line)?;
            }
            Ok(Event::Signal(SIGCHLD)) => {
                failed.extend(reap(context, &mut nodes, stopping.is_some()));
            }
            Ok(Event::Signal(SIGHUP)) => tell_nodes(&nodes, Signal::HUP),
            Ok(Event::Signal(_)) if stopping.is_some() => tell_nodes(&nodes, Signal::KILL),
            Ok(Event::Signal(_)) => {
                context.tell("stopping; once more to kill");
                tell_nodes(&nodes, Signal::TERM);
                stopping = Some(Instant::now() + STOP_TIME);
            }
            Err(RecvTimeoutError::Timeout) if stopping.is_some() => {
                tell_nodes(&nodes, Signal::KILL);
                stopping = Some(Instant::now() + STOP_TIME);
            }
            Err(RecvTimeoutError::Timeout) => {
                tell_nodes(&nodes, Signal::TERM);
                stopping = Some(Instant::now() + STOP_TIME);
            }
            Err(RecvTimeoutError::Disconnected) => {
                failed.extend(reap(context, &mut nodes, stopping.is_some()));
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
    drain(context, &nodes, width, events)?;
    if failed.is_empty() {
        return Ok(Exit::Ok);
    }
    let what = format!("ended by themselves: {}", failed.join(", "));
    let next = "their last lines above say why";
    Err(Failure::new(codes::PROCESS, Exit::Failed, what, next))
}

fn receive(events: &Receiver<Event>, until: Option<Instant>) -> Result<Event, RecvTimeoutError> {
    match until {
        None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(until) => events.recv_timeout(until.saturating_duration_since(Instant::now())),
    }
}

/// The lines that were still on their way when the last node ended.
fn drain(
    context: &Context,
    nodes: &[Running],
    width: usize,
    events: &Receiver<Event>,
) -> Result<(), Failure> {
    const QUIET: Duration = Duration::from_millis(100);
    while let Ok(event) = events.recv_timeout(QUIET) {
        if let Event::Line { node, stream, line } = event {
            show(context, node, &nodes[node].name, width, stream, &line)?;
        }
    }
    Ok(())
}

/// Takes notice of nodes that ended; names those that were not told to.
fn reap(context: &Context, nodes: &mut [Running], stopping: bool) -> Vec<String> {
    let mut failed = Vec::new();
    for node in nodes.iter_mut().filter(|node| node.ended.is_none()) {
        let Ok(Some(status)) = node.child.try_wait() else { continue };
        node.ended = Some(status);
        if !stopping {
            context.tell(format_args!("{} ended: {status}", node.name));
            failed.push(format!("{} ({status})", node.name));
        }
    }
    failed
}

fn tell_nodes(nodes: &[Running], signal: Signal) {
    for node in nodes.iter().filter(|node| node.ended.is_none()) {
        // The child has not been waited for, so the number is still its own.
        let pid = Pid::from_child(&node.child);
        // One that has just ended cannot be told any more; SIGCHLD says so.
        let _ = match signal {
            Signal::KILL => kill_process_group(pid, signal),
            _ => kill_process(pid, signal),
        };
    }
}

fn show(
    context: &Context,
    index: usize,
    name: &str,
    width: usize,
    stream: &str,
    line: &str,
) -> Result<(), Failure> {
    if context.is_json() {
        return context.print_json(&json!({ "node": name, "stream": stream, "line": line }));
    }
    const COLOURS: [AnsiColor; 6] = [
        AnsiColor::Cyan,
        AnsiColor::Yellow,
        AnsiColor::Green,
        AnsiColor::Magenta,
        AnsiColor::Blue,
        AnsiColor::BrightRed,
    ];
    let colour = COLOURS[index % COLOURS.len()].on_default();
    context.print(&format!("{colour}{name:width$} |{colour:#} {line}\n"))
}
