//! `cargo xtask mutants`: changes small things in the functions that a change has touched, one at a
//! time, and lists those that no test notices.
//!
//! What it is not: a stage of `cargo xtask test`. It takes as long as one lets it, and what it
//! lists is to be read: some survivors mean the same as what they replaced.
//!
//! Invariants: the source tree is not touched, `cargo mutants` works in a copy; what there was no
//! time for is counted, and not called noticed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};

use crate::workspace::{self, root, target};

/// The rooms whose functions are changed.
const ROOMS: [&str; 6] = ["order", "replica", "engine", "journal", "giop", "node"];
/// The version that is installed where none is there.
const VERSION: &str = "27.1.0";
/// How long it has to write down what it found when its time is over.
const END_WITHIN: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);

/// Which functions, and for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these rooms [default: order, replica, engine, journal, giop, node]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(ROOMS))]
    rooms: Vec<String>,
    /// Functions that have changed since this commit [default: where main was left, or the last
    /// commit but one]
    #[arg(long, value_name = "REV")]
    since: Option<String>,
    /// Minutes after which it ends, done or not
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Name the changes and stop
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    match try_run(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("mutants: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(options: &Options) -> Result<bool, String> {
    let since = options.since.clone().map_or_else(left_main_at, Ok)?;
    let folder = target().join("mutants");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = std::path::absolute(&folder).map_err(|error| error.to_string())?;
    let rooms: Vec<&str> = match options.rooms.is_empty() {
        true => ROOMS.to_vec(),
        false => options.rooms.iter().map(String::as_str).collect(),
    };
    let change = changed(&since, &rooms, &folder)?;
    if change.is_empty() {
        println!("mutants: nothing of {} has changed since {since}", rooms.join(", "));
        return Ok(true);
    }
    let diff = folder.join("change.diff");
    fs::write(&diff, whole_functions(&change)).map_err(|error| error.to_string())?;
    let mut command = Command::new(tool()?);
    command.arg("mutants").arg("--in-diff").arg(&diff).arg("--output").arg(&folder);
    command.args(["--no-shuffle", "--colors", "never"]).current_dir(root());
    // A change after which the tests hang costs this many times what they take.
    command.args(["--timeout-multiplier", "2"]);
    // When its time is over it would tell at which line of its own.
    command.env("RUST_LIB_BACKTRACE", "0");
    for room in rooms {
        // Without a name, it takes the packages that a plain `cargo build` builds.
        command.arg("--package").arg(format!("quorba-{room}"));
    }
    // It builds in a copy, beside which this folder would be none of its own.
    command.env_remove("CARGO_TARGET_DIR").stdin(Stdio::null());
    if options.list {
        return Ok(command.arg("--list").status().map_err(|error| error.to_string())?.success());
    }
    let found = folder.join("mutants.out");
    // What an earlier run found is none of this one's.
    let _ = fs::remove_dir_all(&found);
    let child = command.spawn().map_err(|error| format!("cargo-mutants: {error}"))?;
    let code = within(child, Duration::from_secs(options.minutes * 60))?;
    if code == Some(0) && !found.exists() {
        println!("mutants: nothing that has changed since {since} can be changed a little");
        return Ok(true);
    }
    // What was found counts, however it ended.
    let outcome = Found::read(&found)?;
    print!("{}", outcome.text());
    match code {
        Some(0 | 2 | 3) => Ok(outcome.survivors.is_empty() && outcome.left() == 0),
        None => Err(format!("its {} minutes are over", options.minutes)),
        Some(code) => {
            let log = found.join("debug.log");
            Err(format!("cargo-mutants ended with {code} before its end; see {}", log.display()))
        }
    }
}

/// Where this branch left main; on main, and without one, the last commit but one.
fn left_main_at() -> Result<String, String> {
    let head = git(&["rev-parse", "HEAD"])?;
    match git(&["merge-base", "main", "HEAD"]) {
        Ok(base) if base != head => Ok(base),
        _ => git(&["rev-parse", "HEAD~1"]),
    }
}

fn git(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output();
    let output = output.map_err(|error| format!("git cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(format!("git {}: {}", arguments[0], reason.trim()))
}

/// The change in the rooms, with the whole of every function that it touches.
fn changed(since: &str, rooms: &[&str], folder: &Path) -> Result<String, String> {
    // By it git knows where a function begins.
    let attributes = folder.join("attributes");
    fs::write(&attributes, "*.rs diff=rust\n").map_err(|error| error.to_string())?;
    let attributes = format!("core.attributesFile={}", attributes.display());
    let sources: Vec<String> = rooms.iter().map(|room| format!("crates/{room}/src")).collect();
    let mut arguments =
        vec!["-c", &attributes, "diff", "--no-color", "--no-ext-diff", "--function-context"];
    arguments.extend(["--diff-filter=d", since, "--"]);
    arguments.extend(sources.iter().map(String::as_str));
    git(&arguments).map(|diff| if diff.is_empty() { diff } else { diff + "\n" })
}

/// As if every line of a touched function had been written anew: `cargo mutants` changes what
/// stands in such lines only.
fn whole_functions(diff: &str) -> String {
    let mut text = String::new();
    let mut is_in_hunk = false;
    for line in diff.lines() {
        is_in_hunk = match line {
            _ if line.starts_with("diff ") => false,
            _ if line.starts_with("@@ ") => true,
            _ => is_in_hunk,
        };
        match line.strip_prefix(' ').filter(|_| is_in_hunk) {
            Some(context) => text += &format!("-{context}\n+{context}\n"),
            None => text += &format!("{line}\n"),
        }
    }
    text
}

/// `cargo-mutants`; installed, if it is not there.
fn tool() -> Result<PathBuf, String> {
    if let Some(there) = workspace::program("cargo-mutants") {
        return Ok(there);
    }
    let tools = std::path::absolute(target().join("tools")).map_err(|error| error.to_string())?;
    let tool = tools.join("bin/cargo-mutants");
    if !tool.is_file() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut install = Command::new(cargo);
        install.args(["install", "cargo-mutants", "--locked", "--version", VERSION, "--root"]);
        let done = install.arg(&tools).status().map_err(|error| error.to_string())?;
        if !done.success() {
            return Err("cargo install cargo-mutants has failed".into());
        }
    }
    Ok(tool)
}

/// Its exit code; none if its time was over. A process that a signal has ended gives one, too.
fn within(mut child: Child, time: Duration) -> Result<Option<i32>, String> {
    let until = Instant::now() + time;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok((!is_told).then(|| status.code().unwrap_or(-1)));
        }
        let now = Instant::now();
        if now >= until && !is_told {
            is_told = true;
            // It ends in order, and so do the tests that it runs.
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
        } else if now >= until + END_WITHIN {
            let _ = child.kill();
        }
        std::thread::sleep(LOOK);
    }
}

/// What became of the changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    all: usize,
    noticed: usize,
    /// That do not compile.
    void: usize,
    survivors: Vec<String>,
}

impl Found {
    fn read(folder: &Path) -> Result<Self, String> {
        let lines = |name: &str| -> Vec<String> {
            let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        };
        let path = folder.join("mutants.json");
        let all = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let all: Vec<serde_json::Value> =
            serde_json::from_slice(&all).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self {
            all: all.len(),
            // A change after which the tests do not end was noticed.
            noticed: lines("caught.txt").len() + lines("timeout.txt").len(),
            void: lines("unviable.txt").len(),
            survivors: lines("missed.txt"),
        })
    }

    /// Those that were not tried.
    fn left(&self) -> usize {
        self.all.saturating_sub(self.noticed + self.void + self.survivors.len())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.survivors {
            text += &format!("survived: {one}\n");
        }
        let Self { all, noticed, void, survivors } = self;
        text += &format!(
            "mutants: {all}, of which {noticed} noticed, {} survived, {void} do not compile, \
             {} not tried\n",
            survivors.len(),
            self.left()
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_touched_function_counts_as_changed() {
        let diff = "diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@ fn f\n \
                    fn f() {\n-    old();\n+    new();\n }\n";
        let whole = "diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@ fn f\n\
                     -fn f() {\n+fn f() {\n-    old();\n+    new();\n-}\n+}\n";
        assert_eq!(whole_functions(diff), whole);
    }

    #[test]
    fn survivors_are_named_and_what_there_was_no_time_for_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Found::read(folder.path()).is_err(), "it did not begin");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        write("mutants.json", "[{}, {}, {}, {}, {}, {}]");
        write("caught.txt", "a\nb\n");
        write("timeout.txt", "c\n");
        write("missed.txt", "src/x.rs:3: replace f with ()\n");
        let found = Found::read(folder.path()).expect("read");
        let last = "mutants: 6, of which 3 noticed, 1 survived, 0 do not compile, 2 not tried\n";
        assert_eq!(found.text(), format!("survived: src/x.rs:3: replace f with ()\n{last}"));
    }
}
