//! `cargo xtask test`: everything that must hold before a change lands, in the order in which it
//! fails fastest.
//!
//! What it is not: a second way to run tests. Each stage is a command that a person can run, and
//! its line says which. Invariants: what cannot run on this machine, a stage or a test in it, is
//! skipped by name, and neither passed nor silent; the commands that the README shows are among the
//! stages, word for word; what is begun ahead of its stage changes how long the stage takes, and
//! nothing else.

mod tally;
mod watched;

use std::ffi::{OsStr, OsString};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Args;

use crate::interop::has_corosync_libraries;
use crate::workspace::{root, target};
use tally::{Count, Ended, Rule, Tally};

/// The demo as the README shows it; what it prints is checked.
const DEMO: &str = "cargo run --release -- demo --for 10s --kill-every 2s -o json";

/// Which stages to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Only stages whose name contains one of these
    filters: Vec<String>,
    /// Name the stages and stop
    #[arg(long)]
    list: bool,
    /// Fail if anything was skipped, as CI does: a stage, or a test in one
    #[arg(long)]
    strict: bool,
    /// The test, case or step of this name may be skipped all the same
    #[arg(long, value_name = "NAME", requires = "strict")]
    may_skip: Vec<String>,
}

/// Bugs that are planted on purpose, each found by its seed. The feature is on in this build only.
const CANARIES: &[&str] =
    &["test", "--package", "quorba-sim", "--features", "canaries", "--test", "canaries"];

/// Begun beside the tests, which leave much of the cores while they wait, and finished by the stage
/// that builds the same: its name.
const AHEAD: (&str, &[&str]) = ("binary", &["build", "--release", "--quiet"]);
/// Beside which stage.
const AHEAD_BESIDE: &str = "tests";

/// Tests of what is built only with Corosync's libraries. The daemon itself is met in `interop`.
const FEATURES: &[&str] = &[
    "test",
    "--package",
    "quorba-corosync",
    "--package",
    "quorba-node",
    "--features",
    "quorba-corosync/libcpg,quorba-node/corosync",
    "--no-fail-fast",
];

enum Stage {
    /// A command that succeeds or fails.
    Command(&'static str, &'static [&'static str]),
    /// One that says besides how many tests, cases or steps it was, and which it skipped.
    Counted(&'static str, &'static [&'static str]),
    /// The README's demo: a command whose output must keep the promise.
    Demo,
}

/// In the order in which they run. Commands are words of a `cargo` call.
const STAGES: &[Stage] = &[
    Stage::Command("format", &["fmt", "--all", "--check"]),
    Stage::Command("tidy", &["xtask", "tidy"]),
    Stage::Command(
        "lints",
        &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
    ),
    // Needs nothing of Corosync's: what is only checked is not linked.
    Stage::Command(
        "lints of features",
        &[
            "clippy",
            "--quiet",
            "--package",
            "quorba-cli",
            "--package",
            "quorba-corosync",
            "--features",
            "quorba-cli/corosync,quorba-corosync/libcpg",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    ),
    Stage::Counted("no-std", &["xtask", "no-std"]),
    Stage::Command("docs", &["xtask", "docs"]),
    Stage::Counted("licences and versions", &["xtask", "deny"]),
    // Some tests need the examples of real ORBs.
    Stage::Counted("dependencies", &["xtask", "deps"]),
    Stage::Counted("idl", &["xtask", "idl"]),
    Stage::Counted("examples", &["xtask", "examples"]),
    Stage::Counted("tests", &["test", "--workspace", "--no-fail-fast"]),
    Stage::Counted("tests of features", FEATURES),
    Stage::Counted("canaries", CANARIES),
    Stage::Command("binary", &["build", "--release"]),
    Stage::Demo,
    Stage::Counted("interop", &["xtask", "interop"]),
    Stage::Counted("hostile", &["xtask", "hostile", "--short"]),
    Stage::Counted("order", &["xtask", "bench", "order", "--smoke"]),
];

impl Stage {
    fn name(&self) -> &'static str {
        match self {
            Self::Command(name, _) | Self::Counted(name, _) => name,
            Self::Demo => "demo",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Command(_, words) | Self::Counted(_, words) => {
                format!("cargo {}", words.join(" "))
            }
            Self::Demo => DEMO.into(),
        }
    }

    /// Why it cannot be run here at all.
    fn missing(&self) -> Option<&'static str> {
        let is_of_corosync = matches!(self, Self::Counted(_, words) if *words == FEATURES);
        let reason = "no libraries of Corosync here: cargo xtask deps installs them";
        (is_of_corosync && !has_corosync_libraries()).then_some(reason)
    }

    fn run(&self) -> (Ended, Count) {
        if let Some(reason) = self.missing() {
            return (Ended::Skipped(reason.into()), Count::default());
        }
        match self {
            Self::Command(_, words) => {
                let result = match cargo(words).status() {
                    Ok(status) if status.success() => Ok(()),
                    Ok(status) => Err(format!("{status}")),
                    Err(error) => Err(error.to_string()),
                };
                (Ended::of(result, false, &Count::default()), Count::default())
            }
            Self::Counted(name, words) => {
                let (result, count) = watched::run(cargo(words), name);
                (Ended::of(result, true, &count), count)
            }
            Self::Demo => (Ended::of(demo(), false, &Count::default()), Count::default()),
        }
    }
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let wanted = |stage: &&Stage| {
        let is_in = |part: &String| stage.name().contains(part.as_str());
        options.filters.is_empty() || options.filters.iter().any(is_in)
    };
    let mut tally = Tally::default();
    let has = |name| STAGES.iter().filter(wanted).any(|stage| stage.name() == name);
    let goes_ahead = !options.list && has(AHEAD.0) && has(AHEAD_BESIDE);
    let mut ahead = None;
    for stage in STAGES.iter().filter(wanted) {
        println!("── {}: {}", stage.name(), stage.text());
        if options.list {
            continue;
        }
        if goes_ahead && stage.name() == AHEAD_BESIDE {
            ahead = begin_ahead();
        }
        let began = Instant::now();
        if stage.name() == AHEAD.0
            && let Some(mut child) = ahead.take()
        {
            // What came of it the stage itself finds out.
            let _ = child.wait();
        }
        let (ended, count) = stage.run();
        println!("── {}: {}", stage.name(), told(&ended, &count, began.elapsed().as_secs_f64()));
        tally.add(stage.name(), ended, count);
    }
    if options.list {
        return ExitCode::SUCCESS;
    }
    let rule = Rule { is_strict: options.strict, may_skip: options.may_skip.clone() };
    println!("{}", tally.text(&rule));
    if tally.is_good(&rule) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn told(ended: &Ended, count: &Count, seconds: f64) -> String {
    match (ended, count.skips.len()) {
        (Ended::Passed, 0) => format!("passed in {seconds:.0} s"),
        (Ended::Passed, skips) => format!("passed in {seconds:.0} s, but for {skips} skipped"),
        (Ended::Skipped(reason), _) => format!("SKIPPED: {reason}"),
        (Ended::Failed(reason), _) => format!("FAILED after {seconds:.0} s: {reason}"),
    }
}

/// With what others leave of the cores; `None` where that cannot be asked for.
fn begin_ahead() -> Option<Child> {
    let mut command = in_workspace("chrt");
    command.args(["--idle", "0"]).arg(cargo_program()).args(AHEAD.1);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A command whose builds go where those of all stages do.
fn in_workspace(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).env("CARGO_TARGET_DIR", target()).stdin(Stdio::null());
    if std::env::var_os("CI").is_some() {
        // What is built once has no use for what would make the next build shorter.
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = in_workspace(cargo_program());
    command.args(words);
    command
}

/// Runs the README's demo and holds it to its promise.
fn demo() -> Result<(), String> {
    let words: Vec<&str> = DEMO.split(' ').skip(1).collect();
    let output =
        cargo(&words).stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{}", text.trim());
    if !output.status.success() {
        return Err(format!("{}", output.status));
    }
    check_demo(&text)
}

fn check_demo(text: &str) -> Result<(), String> {
    let answer: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not one JSON object: {error}"))?;
    let number =
        |name: &str| answer[name].as_u64().ok_or_else(|| format!("{name} is missing or no number"));
    for name in ["lost", "doubled"] {
        if number(name)? != 0 {
            return Err(format!("{name} is {}", answer[name]));
        }
    }
    if number("acknowledged")? == 0 || number("kills")? < 4 {
        return Err(format!("too little happened: {text}"));
    }
    if answer["replicas_equal"] != true {
        return Err("the replicas differ".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"acknowledged":9,"lost":0,"doubled":0,"kills":4,"replicas_equal":true}"#;

    #[test]
    fn the_readme_shows_the_commands_that_are_tested() {
        let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
        assert!(readme.contains(DEMO));
        assert!(readme.contains("cargo xtask test"));
        assert!(readme.contains("cargo run --release -- demo\n"));
    }

    #[test]
    fn the_sums_of_our_own_stages_are_read() {
        for stage in STAGES {
            let Stage::Counted(name, ["xtask", words @ ..]) = stage else { continue };
            let command = words.iter().rfind(|word| !word.starts_with('-'));
            assert!(command.is_some_and(|command| tally::SUMS.contains(command)), "{name}");
        }
    }

    #[test]
    fn a_demo_that_lost_doubled_or_did_nothing_fails() {
        assert_eq!(check_demo(GOOD), Ok(()));
        for (from, to) in [
            ("\"lost\":0", "\"lost\":1"),
            ("\"doubled\":0", "\"doubled\":1"),
            ("\"kills\":4", "\"kills\":3"),
            ("\"acknowledged\":9", "\"acknowledged\":0"),
            ("true", "false"),
            ("\"lost\":0,", ""),
            ("}", ""),
        ] {
            assert!(check_demo(&GOOD.replace(from, to)).is_err(), "{from} -> {to}");
        }
    }
}
