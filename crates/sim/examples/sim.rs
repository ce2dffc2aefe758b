//! `cargo run --release -p quorba-sim --example sim -- [SCOPE] [FROM [SEEDS]]`: the seeds of
//! `quorba sim`, without the rest of the command; for one seed, with the transcript.

use quorba_sim::{Options, Scope, Sweep, run, sweep};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let scope = words.next_if(|word| word.parse::<u64>().is_err());
    let named = |known: &&Scope| scope.as_ref().is_none_or(|name| known.name() == name);
    let scopes: Vec<Scope> = Scope::ALL.iter().filter(named).copied().collect();
    let mut numbers = words.map(|word| word.parse().expect("a number"));
    let (from, seeds) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(100));
    if seeds == 1 {
        for scope in &scopes {
            let options = Options {
                scope: *scope,
                transcript: true,
                verbose: std::env::var_os("VERBOSE").is_some(),
                ..Options::default()
            };
            print!("{}", run(from, options).transcript.unwrap_or_default());
        }
    }
    let options = Sweep { scopes, from, seeds, until: None, keep_going: true };
    let summary = sweep(&options, |so_far, broken| match broken {
        Some(report) => println!("{report}"),
        None => eprintln!("{}", so_far.line()),
    });
    println!("{}", summary.line());
    for ((scope, name), count) in &summary.figures {
        println!("{}: {count} {name}", scope.name());
    }
    if summary.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
