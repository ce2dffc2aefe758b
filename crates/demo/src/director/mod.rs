//! The director of `quorba demo`: sets the stage, plays the run, and accounts for it.
//!
//! What it is not: a part of Quorba's machinery. It starts the same `quorba node` that a user
//! starts, watches it through the same admin API, and calls the bank through the same gateways.
//!
//! Invariants: whatever happens, no process and no file of the run is left; standard output is
//! not written to; the outcome is read from the servers' final state.

mod chaos;
mod finish;
mod fleet;
mod lines;
mod model;
mod names;
mod picture;
mod play;
mod screen;
pub(crate) mod stage;
mod watch;

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag};

use crate::load::{Load, LoadOptions};
use crate::options::{DemoError, DemoOptions, DemoOutcome, Show};
use fleet::{Change, Fleet};
use lines::say;
use play::Play;
use stage::Stage;
use watch::Watch;

/// How long the nodes have to become one group at the start.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// Exit code of a program that Ctrl-C ended, by the shells' convention.
const EXIT_INTERRUPTED: i32 = 130;
/// Pause between two looks at what is awaited.
const LOOK: Duration = Duration::from_millis(10);
/// How long a client waits for the answer to one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Accounts of the bank.
const ACCOUNTS: u32 = 10;

/// Runs the demo to its end.
pub(crate) fn run(options: &DemoOptions) -> Result<DemoOutcome, DemoError> {
    options.check()?;
    let began = Instant::now();
    let interrupt = Interrupt::listen()?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => env::current_exe().map_err(DemoError::system("find the program's own file"))?,
    };
    let doing = "prepare a temporary folder and free ports";
    let stage = Stage::make(options.nodes, &program, options.style, options.durable)
        .map_err(DemoError::system(doing))?;
    let doing = format!("start nodes with {}", program.display());
    let mut fleet = Fleet::start(&stage, &program).map_err(DemoError::system(doing))?;
    let watch = Watch::start(&stage);
    await_ready(options, &stage, &mut fleet, &watch, &interrupt)?;
    let ready = began.elapsed();
    if options.show != Show::Quiet {
        announce(options, &stage, ready);
    }
    let load = Load::start(&load_options(options, &stage))
        .map_err(|error| DemoError::Option { fault: error.to_string() })?;
    let mut play = Play::new(options, &stage, fleet, watch, load, ready)?;
    play.run(&interrupt)?;
    play.finish()
}

/// A request from outside to end: Ctrl-C, SIGTERM, or the terminal's end.
pub(super) struct Interrupt {
    asked: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    fn listen() -> Result<Self, DemoError> {
        let asked = Arc::new(AtomicBool::new(false));
        let mut interrupt = Self { asked, handlers: Vec::new() };
        let refused = || DemoError::system("listen for signals");
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order the first signal asks for the end, and the second one is the end;
            // what is left then is the reaper's.
            let asked = || Arc::clone(&interrupt.asked);
            let second = flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, asked());
            let first = flag::register(signal, asked());
            interrupt.handlers.push(second.map_err(refused())?);
            interrupt.handlers.push(first.map_err(refused())?);
        }
        Ok(interrupt)
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

fn await_ready(
    options: &DemoOptions,
    stage: &Stage,
    fleet: &mut Fleet,
    watch: &Watch,
    interrupt: &Interrupt,
) -> Result<(), DemoError> {
    let deadline = Instant::now() + READY_WITHIN;
    while !(0..options.nodes).all(|index| watch.seen(index).sees_all(options.nodes)) {
        if interrupt.is_asked() {
            return Err(DemoError::Interrupted);
        }
        let changes = fleet.poll().map_err(DemoError::system("look after the nodes"))?;
        let ended = changes.iter().find_map(|change| match change {
            Change::Exited(index, status) => Some((*index, *status)),
            Change::Started(_) | Change::Resumed(_) => None,
        });
        if let Some((index, status)) = ended {
            let name = &stage.nodes()[index].name;
            let log = fleet.log_tail(index);
            let standing = format!("node {name} ended by itself ({status}); it said:\n{log}");
            return Err(DemoError::NotReady { standing, waited: READY_WITHIN });
        }
        if Instant::now() >= deadline {
            let standing = standing(stage, fleet, watch);
            return Err(DemoError::NotReady { standing, waited: READY_WITHIN });
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// What each node says, for an error.
fn standing(stage: &Stage, fleet: &Fleet, watch: &Watch) -> String {
    let mut text = String::new();
    for (index, node) in stage.nodes().iter().enumerate() {
        let seen = watch.seen(index);
        let said = match (&seen.status, &seen.fault) {
            (Some(status), None) => {
                let members: Vec<String> = (seen.bank().into_iter())
                    .flat_map(|bank| &bank.members)
                    .map(|member| format!("{} {}", member.node, member.state.as_str()))
                    .collect();
                let ring = &status.ring;
                format!(
                    "ring {} of {}, {}; members {}",
                    ring.state,
                    ring.members.join(" "),
                    ring.primary_reason,
                    members.join(", ")
                )
            }
            (_, Some(fault)) => format!("does not answer: {fault}"),
            (None, None) => "was not asked yet".to_owned(),
        };
        text.push_str(&format!("{}: {said}\n", node.name));
        let log = fleet.log_tail(index);
        if !log.is_empty() {
            text.push_str(&format!("{log}\n"));
        }
    }
    text
}

fn announce(options: &DemoOptions, stage: &Stage, ready: Duration) {
    let gateways: Vec<String> = stage.nodes().iter().map(|node| node.gateway.to_string()).collect();
    say(&format!(
        "{} nodes on the loopback interface, each with a bank server of its own, ready in {:.1} s",
        options.nodes,
        ready.as_secs_f64()
    ));
    say(&format!("one reference for all of them: {}", stage.corbaloc()));
    let rate = match options.calls_per_s {
        0 => "as many calls as they can".to_owned(),
        rate => format!("{rate} calls/s"),
    };
    say(&format!("{} clients make {rate} through {}", options.clients, gateways.join(", ")));
    say(&format!("domain file: {}", stage.domain_file().display()));
}

fn load_options(options: &DemoOptions, stage: &Stage) -> LoadOptions {
    LoadOptions {
        reference: stage.corbaloc(),
        clients: options.clients,
        calls_per_s: options.calls_per_s,
        // Members that share no state share no accounts.
        accounts: if options.is_stateless() { 0 } else { ACCOUNTS },
        oneway_percent: 0,
        seed: options.seed,
        name: "c".to_owned(),
        ft_request: options.ft_request,
        call_timeout: CALL_TIMEOUT,
        record: None,
    }
}
