//! `quorba lab`: measures what a call costs on this machine; and its hidden peers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use quorba_lab::{
    Changes, LabError, LabOptions, Setting, failover, huang, leaders, manager, many, naming,
    transfer,
};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// Measure what a call costs on this machine, directly and through nodes
#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(Run),
    #[command(hide = true)]
    Peer(Peer),
}

/// Run a plan: every configuration in every setting, round after round
///
/// It needs the omniORB echo of examples/omniorb-echo, which `cargo xtask examples` builds, and
/// a machine that has nothing else to do: figures of a debug build, or beside other work, are
/// refused unless --anyway is given. Raw samples, run.json and report.html go to a folder of
/// their own below --out.
#[derive(Debug, Args)]
struct Run {
    /// Its name (baseline, duplicates, failover, huang2005, irl, manager, many-groups, naming,
    /// placement, throughput, transfer, zhao2002), or a .toml file
    plan: String,

    /// Measured calls of each configuration in each round
    #[arg(long, value_name = "NUMBER")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(quorba_lab::CALLS_MAX)))]
    calls: Option<u32>,

    /// Measure little, in about two minutes: to see that it works, and roughly what comes
    #[arg(long, conflicts_with_all = ["calls", "rounds"])]
    quick: bool,

    /// Rounds; each runs every configuration in every setting once
    #[arg(long, value_name = "NUMBER")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(quorba_lab::ROUNDS_MAX)))]
    rounds: Option<u32>,

    /// Some of: free (the scheduler chooses), pinned (all on one core), awake (no core halts)
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',', value_parser = setting)]
    settings: Option<Vec<Setting>>,

    /// Only these configurations of the plan, and the one that they are compared with
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Option<Vec<String>>,

    /// Where echo_client and echo_server are; otherwise they are looked for
    #[arg(long, value_name = "FOLDER")]
    echo_dir: Option<PathBuf>,

    /// Where the run makes its folder
    #[arg(long, value_name = "FOLDER", default_value = "lab-out")]
    out: PathBuf,

    /// Measure even if the machine or the build makes the figures misleading; they are marked
    #[arg(long)]
    anyway: bool,
}

/// A process that a run measures with.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct Peer {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Lab {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self.action {
            Action::Run(run) => run.run(context),
            Action::Peer(peer) => peer.run(),
        }
    }
}

impl Run {
    fn run(self, context: &Context) -> Result<Exit, Failure> {
        let options = LabOptions {
            plan: self.plan,
            changes: Changes {
                calls: self.calls,
                rounds: self.rounds,
                quick: self.quick,
                settings: self.settings,
                only: self.only,
            },
            echo_dir: self.echo_dir,
            out: self.out,
            anyway: self.anyway,
            program: None,
        };
        match options.plan.as_str() {
            failover::PLAN => return run_failover(context, &options),
            huang::PLAN => return run_huang(context, &options),
            leaders::PLAN => return run_leaders(context, &options),
            manager::PLAN => return run_manager(context, &options),
            many::PLAN => return run_many(context, &options),
            naming::PLAN => return run_naming(context, &options),
            transfer::PLAN => return run_transfers(context, &options),
            _ => {}
        }
        let outcome = quorba_lab::run(&options, &mut |line| context.tell(line))
            .map_err(|error| refused(&error))?;
        if context.is_json() {
            context.print_json(&outcome.run)?;
        } else {
            context.print(&quorba_lab::table(&outcome.run))?;
        }
        context.tell(format!("report: {}", outcome.folder.join("report.html").display()));
        Ok(Exit::Ok)
    }
}

fn run_failover(context: &Context, options: &LabOptions) -> Result<Exit, Failure> {
    let outcome =
        failover::run(options, &mut |line| context.tell(line)).map_err(|error| refused(&error))?;
    if context.is_json() {
        context.print_json(&outcome.run)?;
    } else {
        context.print(&quorba_lab::failover_table(&outcome.run))?;
    }
    context.tell(format!("report: {}", outcome.folder.join("report.html").display()));
    Ok(Exit::Ok)
}

fn run_huang(context: &Context, options: &LabOptions) -> Result<Exit, Failure> {
    let outcome =
        huang::run(options, &mut |line| context.tell(line)).map_err(|error| refused(&error))?;
    if context.is_json() {
        context.print_json(&outcome.run)?;
    } else {
        context.print(&huang::table(&outcome.run))?;
    }
    context.tell(format!("report: {}", outcome.folder.join("report.html").display()));
    Ok(Exit::Ok)
}

fn run_leaders(context: &Context, options: &LabOptions) -> Result<Exit, Failure> {
    let outcome =
        leaders::run(options, &mut |line| context.tell(line)).map_err(|error| refused(&error))?;
    if context.is_json() {
        context.print_json(&outcome.run)?;
    } else {
        context.print(&quorba_lab::leaders_table(&outcome.run))?;
    }
    context.tell(format!("report: {}", outcome.folder.join("report.html").display()));
    Ok(Exit::Ok)
}

fn run_many(context: &Context, options: &LabOptions) -> Result<Exit, Failure> {
    let outcome =
        many::run(options, &mut |line| context.tell(line)).map_err(|error| refused(&error))?;
    if context.is_json() {
        context.print_json(&outcome.run)?;
    } else {
        context.print(&many::table(&outcome.run))?;
    }
    Ok(Exit::Ok)
}

fn run_manager(context: &Context, options: &LabOptions) -> Result<Exit, Failure> {
    let outcome =
        manager::run(options, &mut |line| context.tell(line)).map_err(|error| refused(&error))?;
    if context.is_json() {
        context.print_json(&outcome.run)?;
    } else {
        context.print(&manager::table(&outcome.run))?;
    }
    Ok(Exit::Ok)
}

fn run_naming(context: &Context, options: &LabOptions) -> Result<Exit, Failure> {
    let outcome =
        naming::run(options, &mut |line| context.tell(line)).map_err(|error| refused(&error))?;
    if context.is_json() {
        context.print_json(&outcome.run)?;
    } else {
        context.print(&naming::table(&outcome.run))?;
    }
    Ok(Exit::Ok)
}

fn run_transfers(context: &Context, options: &LabOptions) -> Result<Exit, Failure> {
    let outcome =
        transfer::run(options, &mut |line| context.tell(line)).map_err(|error| refused(&error))?;
    if context.is_json() {
        context.print_json(&outcome.run)?;
    } else {
        context.print(&quorba_lab::transfer_table(&outcome.run))?;
    }
    context.tell(format!("report: {}", outcome.folder.join("report.html").display()));
    Ok(Exit::Ok)
}

impl Peer {
    fn run(self) -> Result<Exit, Failure> {
        quorba_lab::peer_main(self.arguments).map_err(|error| {
            let next = "this process belongs to `quorba lab run`; see its own message";
            Failure::new(codes::LAB, Exit::Failed, error.to_string(), next)
        })?;
        Ok(Exit::Ok)
    }
}

fn setting(name: &str) -> Result<Setting, String> {
    Setting::find(name).ok_or_else(|| {
        let names = Setting::ALL.map(Setting::as_str);
        format!("settings: {}", names.join(", "))
    })
}

fn refused(error: &LabError) -> Failure {
    let (exit, next) = match error {
        LabError::Plan(_) => (Exit::Usage, "quorba lab run --help shows what can be changed"),
        LabError::EchoMissing { .. } => {
            (Exit::Failed, "cargo xtask examples builds them; or say where they are: --echo-dir")
        }
        LabError::Unfit { .. } => {
            (Exit::Failed, "cargo build --release, wait until all is quiet; or --anyway")
        }
        LabError::System { .. } => (Exit::Failed, "see that this user may do it, then try again"),
        LabError::Block { .. } => (Exit::Failed, "the lines above say what happened; try again"),
        LabError::Interrupted { .. } => (Exit::Failed, "run it again for a report"),
    };
    Failure::new(codes::LAB, exit, error.to_string(), next)
}
