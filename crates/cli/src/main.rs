//! The one binary `quorba`: parse the command line, ask the nodes, print.
//!
//! What it is not: a place for protocol or policy. It changes no engine state; what it knows of
//! a running domain it learns from the admin API of its nodes.
//!
//! Invariants: data goes to standard output and talk to standard error; every command that asks
//! somebody else has a deadline; every failure names the thing, the place and the next step; the
//! exit code is one of [`exit::Exit`].

#![forbid(unsafe_code)]
#![allow(
    unreachable_pub,
    reason = "nothing outside of a binary reaches in; pub is for its modules"
)]

mod args;
mod ask;
mod catalog;
mod codes;
mod command;
mod context;
mod exit;
mod failure;
mod health;
mod probe;
mod reference;
mod text;

use std::process::ExitCode;

use clap::Parser;
use quorba_heap::Heap;

use args::{Arguments, Command};
use context::Context;
use exit::Exit;
use failure::Failure;

#[global_allocator]
static HEAP: Heap = Heap;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are answers; everything else that clap says is a usage error.
            if !error.use_stderr() {
                let _ = error.print();
                return Exit::Ok.into();
            }
            if args::wants_json(std::env::args_os()) {
                eprintln!("{}", usage(&error).to_json());
            } else {
                let _ = error.print();
            }
            return Exit::Usage.into();
        }
    };
    let context = Context::new(&arguments);
    match run(arguments.command, &context) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            context.tell_failure(&failure);
            failure.exit.into()
        }
    }
}

/// What clap says of a command line, as any other failure.
fn usage(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let what = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    let rest: Vec<&str> = lines.collect();
    let next = "the command with --help shows how it is used";
    Failure::new(failure::codes::USAGE, Exit::Usage, what, next)
        .data(serde_json::json!({ "details": rest }))
}

fn run(command: Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Demo(demo) => demo.run(context),
        Command::Node(node) => node.run(context),
        Command::Up(up) => up.run(context),
        Command::Status(status) => status.run(context),
        Command::Group(group) => group.run(context),
        Command::Backup(backup) => backup.run(context),
        Command::Restore(restore) => restore.run(context),
        Command::Ior(ior) => ior.run(context),
        Command::Naming(naming) => naming.run(context),
        Command::Outside(outside) => outside.run(context),
        Command::Faults(faults) => faults.run(context),
        Command::Events(events) => events.run(context),
        Command::Ping(ping) => ping.run(context),
        Command::Key(key) => key.run(context),
        Command::Config(config) => config.run(context),
        Command::Lab(lab) => lab.run(context),
        Command::Sim(sim) => sim.run(context),
        Command::Explain(explain) => explain.run(context),
        Command::Completions(completions) => completions.run(context),
        Command::Man(man) => man.run(context),
        Command::Servant(servant) => servant.run(),
        Command::Serve(serve) => serve.run(),
        Command::ExecServer(server) => server.run(context),
    }
}
