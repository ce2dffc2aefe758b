//! `quorba config`: the domain file.

mod apply;
mod keys;
mod machine;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use quorba_config::{Checked, Domain, Report};
use serde_json::{Value, json};

use self::machine::Warning;

use crate::args::DomainFile;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// Look at a domain file, and apply it to a running domain
#[derive(Debug, Args)]
pub struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show everything that is wrong with a domain file, and what is probably not meant
    Check {
        /// The domain file
        #[arg(conflicts_with = "config")]
        file: Option<PathBuf>,

        #[command(flatten)]
        domain: DomainFile,
    },
    Apply(apply::Apply),
    Keys(keys::Keys),
}

impl Config {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self.action {
            Action::Check { file, domain } => check(context, &file.unwrap_or(domain.config)),
            Action::Apply(apply) => apply.run(context),
            Action::Keys(keys) => keys.run(context),
        }
    }
}

fn check(context: &Context, file: &Path) -> Result<Exit, Failure> {
    let Checked { domain, report } = quorba_config::check(file);
    let machine = domain.as_ref().map_or_else(Vec::new, machine::look);
    if context.is_json() {
        context.print_json(&answer_json(domain.as_ref(), &report, &machine))?;
    } else {
        context.print(&report.render(context.colours_stdout()))?;
        for Warning { code, message, help } in &machine {
            context.print(&format!("warning[{code}]: {message}\n  next: {help}\n\n"))?;
        }
    }
    let errors = report.error_count();
    let Some(domain) = domain else {
        let what = match errors {
            1 => format!("{} has an error", file.display()),
            _ => format!("{} has {errors} errors", file.display()),
        };
        let next = "repair what is marked, then check again; `quorba explain CODE` says more";
        return Err(Failure::new(codes::DOMAIN_FILE, Exit::Failed, what, next));
    };
    if !context.is_json() {
        let warnings = domain.warnings.len() + machine.len();
        context.print(&summary(&file.display().to_string(), &domain, warnings))?;
    }
    Ok(Exit::Ok)
}

fn summary(file: &str, domain: &Domain, warnings: usize) -> String {
    let count = |number: usize, word: &str| match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    };
    let survives = domain.nodes.len().saturating_sub(1) / 2;
    format!(
        "{file} is right: domain {}, {}, {}, {}; survives {} at a time{}\ndigest {:016x}\n",
        domain.id,
        count(domain.nodes.len(), "node"),
        count(domain.groups.len(), "group"),
        count(warnings, "warning"),
        match survives {
            0 => "no crash".to_owned(),
            _ => count(survives, "crash").replace("crashs", "crashes"),
        },
        // A majority of an even number is one more.
        match domain.nodes.len() {
            nodes if nodes > 2 && nodes.is_multiple_of(2) => format!(", as {} nodes do", nodes - 1),
            _ => String::new(),
        },
        domain.digest()
    )
}

fn answer_json(domain: Option<&Domain>, report: &Report, machine: &[Warning]) -> Value {
    json!({
        "file": report.path(),
        "ok": domain.is_some(),
        "problems": problems_json(report),
        "machine": machine,
        "domain": domain.map(|domain| json!({
            "id": domain.id,
            "digest": format!("{:016x}", domain.digest()),
            "nodes": domain.nodes.iter().map(|node| &node.name).collect::<Vec<_>>(),
            "groups": domain.groups.iter().map(|group| &group.name).collect::<Vec<_>>(),
        })),
    })
}

/// The problems of a file for `-o json`.
pub fn problems_json(report: &Report) -> Value {
    let problem = |problem: &quorba_config::Problem| {
        json!({
            "code": problem.code.as_str(),
            "severity": if problem.is_warning() { "warning" } else { "error" },
            "message": problem.message,
            "line": problem.line,
            "column": problem.column,
            "help": problem.help,
        })
    };
    report.problems().iter().map(problem).collect()
}
