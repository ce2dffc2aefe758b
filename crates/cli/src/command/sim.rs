//! `quorba sim`: whole domains, and rings alone, in virtual time, with seeded faults.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use quorba_sim::measure::{self, Cost, Speed};
use quorba_sim::{Options, Report, Scope, Summary, Sweep};
use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// Run the very engine in virtual time, with seeded faults, and judge what it does
///
/// Without an option the seeds 1 to 100 are run, each twice: as a domain of whole nodes with their
/// servers and clients, and as rings alone. A seed that breaks a promise is told with the command
/// that does it again, to the byte. Standard output has the result, standard error the progress.
#[derive(Debug, Args)]
pub struct Sim {
    /// Do one seed again and print what happens
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["seeds", "from", "minutes"])]
    seed: Option<u64>,

    /// With every input, call and delivery
    #[arg(long, requires = "seed")]
    verbose: bool,

    /// Only domains, or only rings
    #[arg(long, value_enum, value_name = "domain|ring", hide_possible_values = true)]
    scope: Option<What>,

    /// The first seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    from: u64,

    /// How many seeds
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    seeds: u64,

    /// Go on for so long instead of for so many seeds
    #[arg(long, value_name = "NUMBER", conflicts_with = "seeds")]
    minutes: Option<u64>,

    /// Go on after a broken promise
    #[arg(long)]
    keep_going: bool,

    /// Measure how fast the simulator is instead
    #[arg(long, conflicts_with_all = ["seed", "sizes"])]
    speed: bool,

    /// Measure what a message costs in rings of 3 to 64 nodes instead
    #[arg(long, conflicts_with = "seed")]
    sizes: bool,

    /// Draw the sizes as SVG into this file
    #[arg(long, value_name = "FILE", requires = "sizes")]
    plot: Option<PathBuf>,
}

/// A scope, as the command line names it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Domain,
    Ring,
    Styles,
    Calls,
    Backups,
    Groups,
    Names,
    Depths,
    Events,
    Notifier,
    Manager,
}

impl Sim {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        if self.speed {
            return print_speed(context);
        }
        if self.sizes {
            return self.print_sizes(context);
        }
        match self.seed {
            Some(seed) => self.replay(context, seed),
            None => self.sweep(context),
        }
    }

    fn scopes(&self) -> Vec<Scope> {
        match self.scope {
            None => Scope::ALL.to_vec(),
            Some(What::Domain) => vec![Scope::Domain],
            Some(What::Ring) => vec![Scope::Ring],
            Some(What::Styles) => vec![Scope::Styles],
            Some(What::Calls) => vec![Scope::Calls],
            Some(What::Backups) => vec![Scope::Backups],
            Some(What::Groups) => vec![Scope::Groups],
            Some(What::Names) => vec![Scope::Names],
            Some(What::Depths) => vec![Scope::Depths],
            Some(What::Events) => vec![Scope::Events],
            Some(What::Notifier) => vec![Scope::Notifier],
            Some(What::Manager) => vec![Scope::Manager],
        }
    }

    fn replay(&self, context: &Context, seed: u64) -> Result<Exit, Failure> {
        let mut exit = Exit::Ok;
        for scope in self.scopes() {
            let transcript = !context.is_json();
            let options = Options { scope, transcript, verbose: self.verbose, server_bug: None };
            let report = quorba_sim::run(seed, options);
            if context.is_json() {
                context.print_json(&report_json(&report))?;
            } else {
                let transcript = report.transcript.as_deref().unwrap_or_default();
                let (digest, plan) = (report.digest, &report.plan);
                context.print(&format!("{transcript}{report}\ndigest {digest:016x}\n{plan}\n"))?;
            }
            if !report.is_good() {
                exit = Exit::Failed;
            }
        }
        Ok(exit)
    }

    fn sweep(&self, context: &Context) -> Result<Exit, Failure> {
        let now = Instant::now();
        let planned = self.minutes.map(|minutes| now + Duration::from_secs(60 * minutes));
        let latest = context.timeout.map(|timeout| now + timeout);
        let sweep = Sweep {
            scopes: self.scopes(),
            from: self.from,
            seeds: if self.minutes.is_some() { u64::MAX } else { self.seeds },
            until: [planned, latest].into_iter().flatten().min(),
            keep_going: self.keep_going,
        };
        let summary = quorba_sim::sweep(&sweep, |so_far, broken| match broken {
            Some(report) => context.tell(report),
            None => context.tell(so_far.line()),
        });
        if context.is_json() {
            context.print_json(&summary_json(&summary))?;
        } else {
            context.print(&summary_text(&summary))?;
        }
        let timed_out = latest.is_some_and(|latest| Instant::now() >= latest);
        Ok(if !summary.broken.is_empty() {
            Exit::Failed
        } else if timed_out && planned.is_none_or(|planned| Instant::now() < planned) {
            Exit::TimedOut
        } else {
            Exit::Ok
        })
    }

    fn print_sizes(&self, context: &Context) -> Result<Exit, Failure> {
        let mut costs = Vec::new();
        for nodes in measure::SIZES {
            context.tell(format!("a ring of {nodes}"));
            costs.extend(measure::cost(*nodes));
        }
        if let Some(path) = &self.plot {
            std::fs::write(path, measure::plot(&costs)).map_err(|error| {
                let what = format!("cannot write {}: {error}", path.display());
                Failure::new(codes::FILE, Exit::Failed, what, "name a file that can be written")
            })?;
        }
        if context.is_json() {
            for cost in &costs {
                context.print_json(&cost_json(cost))?;
            }
        } else {
            context.print(&cost_table(&costs))?;
        }
        let all = costs.len() == measure::SIZES.len();
        Ok(if all { Exit::Ok } else { Exit::Failed })
    }
}

fn print_speed(context: &Context) -> Result<Exit, Failure> {
    let speeds = measure::speed();
    if context.is_json() {
        for Speed { name, simulated, took, events } in &speeds {
            context.print_json(&json!({
                "load": name,
                "simulated_s": simulated.as_secs_f64(),
                "cpu_s": took.as_secs_f64(),
                "events": events,
            }))?;
        }
    } else {
        let mut text = String::new();
        for speed in &speeds {
            let _ = writeln!(
                text,
                "{:18} {:6.0} simulated seconds per second of one core, {:.1} µs per event",
                speed.name,
                speed.rate(),
                speed.took.as_secs_f64() * 1e6 / speed.events.max(1) as f64,
            );
        }
        context.print(&text)?;
    }
    Ok(Exit::Ok)
}

fn milliseconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64() * 1e3)
}

fn cost_json(cost: &Cost) -> Value {
    json!({
        "nodes": cost.nodes,
        "formed_ms": milliseconds(cost.formed[0]),
        "formed_with_loss_ms": milliseconds(cost.formed[1]),
        "rotation_us": cost.rotation.as_secs_f64() * 1e6,
        "datagrams_per_message": cost.datagrams,
        "bytes_per_message": cost.bytes,
        "cpu_us_per_message": cost.cpu.as_secs_f64() * 1e6,
    })
}

fn cost_table(costs: &[Cost]) -> String {
    let mut text =
        "| nodes | one ring after, ms | with 2 % loss, ms | rotation, ms | datagrams per \
                    message | bytes per message | CPU per message and node, µs |\n\
                    |---|---|---|---|---|---|---|\n"
            .to_owned();
    for cost in costs {
        let time = |time| milliseconds(time).map_or("never".to_owned(), |ms| format!("{ms:.0}"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {:.2} | {:.0} | {:.1} |",
            cost.nodes,
            time(cost.formed[0]),
            time(cost.formed[1]),
            cost.rotation.as_secs_f64() * 1e3,
            cost.datagrams,
            cost.bytes,
            cost.cpu.as_secs_f64() * 1e6 / cost.nodes as f64,
        );
    }
    text
}

fn report_json(report: &Report) -> Value {
    let violations = report.violations.iter().map(|violation| {
        let at_s = violation.at_ns as f64 / 1e9;
        json!({ "invariant": violation.invariant, "at_s": at_s, "what": violation.text })
    });
    let figures: serde_json::Map<String, Value> =
        report.figures.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
    json!({
        "scope": report.scope.name(),
        "seed": report.seed,
        "good": report.is_good(),
        "digest": format!("{:016x}", report.digest),
        "simulated_s": report.simulated.as_secs_f64(),
        "settled_after_s": report.settled_after.as_secs_f64(),
        "figures": figures,
        "violations": violations.collect::<Vec<_>>(),
        "plan": report.plan,
        "replay": report.replay(),
    })
}

fn summary_json(summary: &Summary) -> Value {
    let mut figures = json!({});
    for ((scope, name), count) in &summary.figures {
        figures[scope.name()][*name] = json!(count);
    }
    let mut slowest = json!({});
    for (scope, (time, seed)) in &summary.slowest {
        slowest[scope.name()] = json!({ "seed": seed, "settled_after_s": time.as_secs_f64() });
    }
    json!({
        "seeds": summary.seeds,
        "next": summary.next,
        "took_s": summary.took.as_secs_f64(),
        "simulated_s": summary.simulated.as_secs_f64(),
        "figures": figures,
        "slowest": slowest,
        "broken": summary.broken.iter().map(report_json).collect::<Vec<_>>(),
    })
}

fn summary_text(summary: &Summary) -> String {
    let mut text = summary.line();
    for (scope, (time, seed)) in &summary.slowest {
        let figures = summary.figures.iter().filter(|((known, _), _)| known == scope);
        let figures: Vec<String> =
            figures.map(|((_, name), count)| format!("{count} {name}")).collect();
        let (name, seconds) = (scope.name(), time.as_secs_f64());
        let _ = write!(text, "\n{name}: {}; slowest to settle: ", figures.join(", "));
        let _ = write!(text, "seed {seed} with {seconds:.1} s");
    }
    for report in &summary.broken {
        let _ = write!(text, "\nBROKEN {}: {}", report.violations[0].invariant, report.replay());
    }
    text.push('\n');
    text
}
