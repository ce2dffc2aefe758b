//! `quorba sim`: runs seeds and says what came of them.

use crate::run::{Options, run};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "\
quorba sim: runs the real engine in a simulated domain, with seeded faults

  --seed N       replay one seed and print what happened
  --verbose      with every single input and call
  --seeds N      run N seeds (default 100)
  --from N       begin with seed N (default 1)
  --minutes M    run for M minutes instead
  --keep-going   do not stop at the first broken promise
";

#[derive(Debug)]
struct Arguments {
    scope: crate::report::Scope,
    seed: Option<u64>,
    verbose: bool,
    from: u64,
    seeds: u64,
    minutes: Option<u64>,
    keep_going: bool,
}

/// Carries out the command; `arguments` come without the program's name.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    match parse(arguments) {
        Ok(arguments) => match arguments.seed {
            Some(seed) => replay(seed, &arguments),
            None => sweep(&arguments),
        },
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            ExitCode::from(3)
        }
    }
}

fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Arguments, String> {
    let mut parsed = Arguments {
        scope: crate::report::Scope::Domain,
        seed: None,
        verbose: false,
        from: 1,
        seeds: 100,
        minutes: None,
        keep_going: false,
    };
    let mut arguments = arguments.into_iter();
    while let Some(name) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("{value} is not a number"))
        };
        match name.as_str() {
            "--seed" => parsed.seed = Some(number()?),
            "--from" => parsed.from = number()?,
            "--seeds" => parsed.seeds = number()?,
            "--minutes" => parsed.minutes = Some(number()?),
            "--ring" => parsed.scope = crate::report::Scope::Ring,
            "--verbose" => parsed.verbose = true,
            "--keep-going" => parsed.keep_going = true,
            _ => return Err(format!("unknown argument {name}")),
        }
    }
    Ok(parsed)
}

fn replay(seed: u64, arguments: &Arguments) -> ExitCode {
    let (verbose, scope) = (arguments.verbose, arguments.scope);
    let report = run(seed, Options { transcript: true, verbose, scope, ..Options::default() });
    let mut text = report.transcript.clone().unwrap_or_default();
    let _ = writeln!(text, "digest {:016x}\n{report}\nplan: {}", report.digest, report.plan);
    // A reader that has seen enough closes the pipe; that is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn sweep(arguments: &Arguments) -> ExitCode {
    let began = Instant::now();
    let until = arguments.minutes.map(|minutes| began + Duration::from_secs(60 * minutes));
    let mut broken = 0u64;
    let mut runs = 0u64;
    let mut simulated = Duration::ZERO;
    let mut slowest = (Duration::ZERO, 0);
    for seed in arguments.from.. {
        let done = match until {
            Some(until) => Instant::now() >= until,
            None => runs >= arguments.seeds,
        };
        if done || (broken > 0 && !arguments.keep_going) {
            break;
        }
        let report = run(seed, Options { scope: arguments.scope, ..Options::default() });
        runs += 1;
        simulated += report.simulated;
        slowest = slowest.max((report.settled_after, seed));
        if !report.is_good() {
            broken += 1;
            println!("{report}");
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{runs} seeds in {seconds:.1} s, {broken} broken; {:.0} s simulated ({:.0} per second); \
         slowest to settle: seed {} with {:.1} s",
        simulated.as_secs_f64(),
        simulated.as_secs_f64() / seconds,
        slowest.1,
        slowest.0.as_secs_f64(),
    );
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
