//! `quorba demo`, and the hidden processes that it starts.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use quorba_base::policy::Style;
use quorba_demo::{
    CLIENTS_MAX, DemoError, DemoOptions, DemoOutcome, KILL_EVERY_DEFAULT, NODES_MAX, ServantError,
    Show,
};

use crate::args::duration;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// See it work: three nodes on this machine, a replicated bank, clients, and kills
///
/// Needs nothing installed, and leaves nothing behind. At the end every replica's history is
/// compared with what the clients were told: lost and doubled calls are counted, not assumed.
/// Exits with 0 only if none is, and all replicas are equal. Those of a stateless group are not
/// compared: every call after the last kill must have been executed by exactly one of them.
#[derive(Debug, Args)]
pub struct Demo {
    /// How long it runs; without it, until q is pressed
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    run_for: Option<Duration>,

    /// Kill a server or a node whenever this time has passed and all members are in again
    #[arg(long, value_name = "TIME", value_parser = duration)]
    kill_every: Option<Duration>,

    /// Kill now and then, without being asked
    #[arg(long)]
    chaos: bool,

    /// Calls a second, of all clients together; 0 is as many as they can
    #[arg(long, value_name = "CALLS", default_value_t = DemoOptions::default().calls_per_s)]
    load: u32,

    /// Clients, each with a connection of its own
    #[arg(long, value_name = "NUMBER", default_value_t = DemoOptions::default().clients as u64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=CLIENTS_MAX as u64))]
    clients: u64,

    /// Nodes, each with a replica
    #[arg(long, value_name = "NUMBER", default_value_t = DemoOptions::default().nodes as u64)]
    #[arg(value_parser = clap::value_parser!(u64).range(3..=NODES_MAX as u64))]
    nodes: u64,

    /// Let clients repeat calls of unknown outcome under their FT_REQUEST identity
    #[arg(long)]
    ft_request: bool,

    /// How the replicas share the work
    #[arg(long, value_name = "STYLE", default_value = "active")]
    #[arg(value_parser = crate::args::style())]
    style: Style,

    /// Keep everything on disk, and kill the whole domain, too (key d)
    #[arg(long)]
    durable: bool,

    /// What the choices of calls and victims are drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = DemoOptions::default().seed)]
    seed: u64,

    /// Say nothing but the outcome
    #[arg(short, long)]
    quiet: bool,
}

impl Demo {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let outcome = quorba_demo::run(&self.options(context)).map_err(|error| refused(&error))?;
        if context.is_json() {
            context.print_json(&outcome)?;
        } else {
            context.print(&format!("{outcome}\n"))?;
        }
        if outcome.is_clean() { Ok(Exit::Ok) } else { Err(broken(&outcome)) }
    }

    fn options(&self, context: &Context) -> DemoOptions {
        let show = match (self.quiet, context.is_json()) {
            (true, _) => Show::Quiet,
            (false, true) => Show::Lines,
            (false, false) => Show::Picture,
        };
        // A deadline ends the load, and the demo then ends as it should.
        let run_for = [self.run_for, context.timeout].into_iter().flatten().min();
        let to_usize = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        DemoOptions {
            nodes: to_usize(self.nodes),
            clients: to_usize(self.clients),
            calls_per_s: self.load,
            run_for,
            kill_every: self.kill_every.or(self.chaos.then_some(KILL_EVERY_DEFAULT)),
            ft_request: self.ft_request,
            style: self.style,
            durable: self.durable,
            seed: self.seed,
            show,
            program: None,
        }
    }
}

fn refused(error: &DemoError) -> Failure {
    let (exit, next) = match error {
        DemoError::Option { .. } => (Exit::Usage, "quorba demo --help shows what is possible"),
        DemoError::NotReady { .. } => (Exit::TimedOut, "the lines above say what was waited for"),
        DemoError::System { .. } => (Exit::Failed, "see that this user may do it, then try again"),
        _ => (Exit::Failed, "try again; with the same --seed the choices are the same"),
    };
    Failure::new(codes::DEMO, exit, error.to_string(), next)
}

fn broken(outcome: &DemoOutcome) -> Failure {
    let what = format!(
        "a promise was broken: lost {}, doubled {}, replicas {}",
        outcome.lost,
        outcome.doubled,
        match (outcome.account.replicas_compared, outcome.replicas_equal) {
            (false, _) => "not compared",
            (true, true) => "equal",
            (true, false) => "not equal",
        }
    );
    let next = "this is a fault of Quorba: please report the outcome above, with the options";
    Failure::new(codes::DEMO, Exit::Failed, what, next)
}

/// The processes of the demo: bank server, load client, and who clears up after them.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Servant {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Servant {
    pub fn run(self) -> Result<Exit, Failure> {
        let error = match quorba_demo::servant_main(self.arguments) {
            Ok(()) => return Ok(Exit::Ok),
            Err(error) => error,
        };
        if let ServantError::Usage(usage) = &error {
            usage.exit();
        }
        let next = "this process belongs to `quorba demo` or to a test; see its own message";
        Err(Failure::new(codes::DEMO, Exit::Failed, error.to_string(), next))
    }
}
