//! `quorba lab run` from end to end, with few calls: that it measures, not how fast it is.
//!
//! The configurations with an ORB need the built echo of examples/omniorb-echo; without it their
//! test says so (`quorba_lab::skips`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quorba_lab::skips::skip;
use serde_json::Value;
use tempfile::TempDir;

/// A plan that needs nothing but this program.
const BARE: &str = r#"
name = "bare"
title = "Sockets"
calls = 40
warm_up = 4
rounds = 2
longs = 256
settings = ["free", "pinned"]
against = "tcp"

[[configuration]]
name = "tcp"
title = "two processes"
headline = true
chain = { tcp = { relays = 0 } }

[[configuration]]
name = "relay"
title = "three processes"
chain = { tcp = { relays = 1 } }

[[configuration]]
name = "ring"
title = "once around"
chain = { udp = { processes = 3 } }

[[step]]
name = "relaying"
from = "tcp"
to = "relay"
text = "a process between them"
"#;

fn quorba(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorba"));
    // Tests are debug builds on busy machines.
    command.args(["-o", "json", "lab", "run", "--anyway", "--out", "out"]).args(arguments);
    command.current_dir(folder).output().expect("the quorba program")
}

fn measured(output: &Output) -> Value {
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    serde_json::from_slice(&output.stdout).expect("one object")
}

/// The only folder in `out`.
fn run_folder(folder: &TempDir) -> PathBuf {
    let mut runs = fs::read_dir(folder.path().join("out")).expect("a folder");
    runs.next().expect("a run").expect("a run").path()
}

fn lines_of_samples(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("samples.ndjson")).expect("samples");
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

const NO_ECHO: &str = "cargo xtask examples has not built omniorb-echo";

fn echo_dir() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("examples/omniorb-echo");
    ["echo_client", "echo_server"].iter().all(|name| folder.join(name).is_file()).then_some(folder)
}

#[test]
fn bare_configurations_are_measured() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("bare.toml"), BARE).expect("a plan");
    let run = measured(&quorba(folder.path(), &["bare.toml"]));
    assert_eq!(run["rows"].as_array().map(Vec::len), Some(3 * 2));
    assert_eq!(run["steps"].as_array().map(Vec::len), Some(2));
    for row in run["rows"].as_array().expect("rows") {
        assert!(row["p50_us"]["median"].as_f64().expect("a figure") > 0.0, "{row}");
        assert!(row["p99_us"]["max"].as_f64() >= row["p50_us"]["min"].as_f64(), "{row}");
    }
    let of = run_folder(&folder);
    let lines = lines_of_samples(&of);
    assert_eq!(lines.len(), 3 * 2 * 2);
    for line in lines {
        assert_eq!(line["samples_ns"].as_array().map(Vec::len), Some(40));
    }
    let page = fs::read_to_string(of.join("report.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("relaying"));
    let kept: Value =
        serde_json::from_slice(&fs::read(of.join("run.json")).expect("a record")).expect("JSON");
    assert_eq!(kept, run);
}

#[test]
fn domains_are_measured() {
    let Some(echo_dir) = echo_dir() else {
        skip("domains_are_measured", NO_ECHO);
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let echo_dir = echo_dir.to_string_lossy();
    let few = ["baseline", "--calls", "30", "--rounds", "1", "--settings", "free"];
    let only = ["--only", "one-node,group", "--echo-dir", &echo_dir];
    let run = measured(&quorba(folder.path(), &[&few[..], &only[..]].concat()));
    let rows = run["rows"].as_array().expect("rows");
    let names: Vec<_> = rows.iter().filter_map(|row| row["configuration"].as_str()).collect();
    assert_eq!(names, ["direct", "one-node", "group"]);
    let processes = rows[2]["cpu_us_by_process"].as_object().expect("processes");
    // The client, three nodes, three servers.
    assert_eq!(processes.len(), 7, "{processes:?}");
    assert!(run["blocks"][2]["ring"]["rotation_us"].is_number(), "{}", run["blocks"][2]);
}

#[test]
fn the_paper_of_2002_is_repeated() {
    let Some(echo_dir) = echo_dir() else {
        skip("the_paper_of_2002_is_repeated", NO_ECHO);
        return;
    };
    let folder = TempDir::new().expect("a folder");
    let echo_dir = echo_dir.to_string_lossy();
    let few = ["zhao2002", "--calls", "100", "--settings", "free", "--echo-dir", &echo_dir];
    let only = ["--only", "a-paper,d-paper,e-paper,a-shipped"];
    let run = measured(&quorba(folder.path(), &[&few[..], &only[..]].concat()));
    let outcome = &run["zhao2002"];
    let figures = outcome["figures"].as_array().expect("figures");
    assert_eq!(figures.len(), 5, "b-paper is what the others are compared with");
    for one in figures {
        assert_eq!(one["latency"]["count"], 100, "{one}");
        assert_eq!(one["nodes"].as_array().map(Vec::len), Some(4), "{one}");
    }
    assert!(!outcome["claims"].as_array().expect("claims").is_empty(), "{outcome}");
    let of = run_folder(&folder);
    let lines = lines_of_samples(&of);
    let samples = |configuration: &str, node: u64, series: &str| {
        let line = lines.iter().find(|line| {
            line["configuration"] == configuration
                && line["node"] == node
                && line["series"] == series
        });
        line.and_then(|line| line["samples_ns"].as_array()).map(Vec::len).expect("a series")
    };
    // Each request is ordered once, executed everywhere, and answered by those who shall.
    for configuration in ["a-paper", "b-paper", "d-paper", "e-paper", "a-shipped"] {
        assert_eq!(samples(configuration, 0, "send_delay"), 100);
        let executed: Vec<usize> = (0..4)
            .map(|node| {
                assert!(samples(configuration, node, "token_rotation") > 0, "{configuration}");
                samples(configuration, node, "server")
            })
            .collect();
        assert_eq!(executed[0], 0, "{configuration}: it has no server");
        // Whose server is behind executes the last ones when nobody measures any more.
        let is_right = executed[1..].iter().all(|count| (1..=100).contains(count));
        assert!(is_right && executed[1..].contains(&100), "{configuration}: {executed:?}");
        let pauses = samples(configuration, 0, "client");
        assert!((98..=100).contains(&pauses), "{configuration}: {pauses}");
    }
    // A hundred replies, or nearly none.
    for (configuration, replies) in
        [("a-paper", [1, 0, 0]), ("b-paper", [0, 1, 0]), ("d-paper", [1; 3])]
    {
        for (node, sends) in (1..).zip(replies) {
            let count = samples(configuration, node, "send_delay");
            // Whose server is behind sends its last replies when nobody measures any more; and a
            // node has other messages, too.
            assert_eq!(count > 20, sends == 1, "{configuration}, node {node}: {count}");
        }
    }
    let page = fs::read_to_string(of.join("report.html")).expect("a page");
    for part in ["Figure 2", "Figure 3", "Figure 4", "Figure 5", "Figure 6", "<svg", "agrees"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_paper_of_2005_is_repeated() {
    let folder = TempDir::new().expect("a folder");
    let run = measured(&quorba(folder.path(), &["huang2005", "--calls", "50", "--rounds", "1"]));
    let trials = run["trials"].as_array().expect("trials");
    let backups: Vec<_> =
        trials.iter().filter_map(|trial| trial["service"]["domain"]["backups"].as_u64()).collect();
    assert_eq!(backups, [0, 1, 2, 3]);
    assert_eq!(trials[0]["service"], "alone");
    for trial in trials {
        assert_eq!(trial["events"], 50, "{trial}");
        let figure = |name: &str| trial["latency"][name].as_f64().expect("a figure");
        assert!(figure("min_us") > 0.0 && figure("p50_us") <= figure("max_us"), "{trial}");
    }
    let subscriptions = run["subscriptions"].as_array().expect("subscriptions");
    for way in ["ordered", "parallel", "chain"] {
        let of_way = subscriptions.iter().filter(|one| one["replication"] == way);
        let depths: Vec<_> = of_way.map(|one| one["depth"].as_u64().expect("a depth")).collect();
        assert_eq!(depths, [1, 2, 3, 4], "{way}: as many as there are members");
    }
    for one in subscriptions {
        assert!(one["latency"]["p50_us"].as_f64().expect("a figure") > 0.0, "{one}");
    }
    // The leader's process and its node, between two events and in the middle of a push; with each
    // measure alone, and with all.
    let deaths = run["deaths"].as_array().expect("deaths");
    let skipped = run["skipped"].as_array().expect("a list").iter().filter_map(|it| it.as_str());
    let skipped: Vec<_> = skipped.filter(|it| it.contains("real-time priority")).collect();
    let of = |setting: &str| deaths.iter().filter(|death| death["setting"] == setting).count();
    assert_eq!(of("all but priorities"), 6, "and of a backup, and of nobody");
    for setting in ["no measure", "own threads only", "warm connections only"] {
        assert_eq!(of(setting), 3, "{setting}");
    }
    for setting in ["priorities only", "all measures"] {
        let is_skipped = skipped.iter().any(|line| line.contains(setting));
        assert_eq!(of(setting), if is_skipped { 0 } else { 3 }, "{setting}: {skipped:?}");
    }
    for death in deaths.iter().filter(|death| death["moment"] == "between") {
        assert!(death["latency_us"].as_f64().expect("it came") > 0.0, "{death}");
    }
    let loads = run["loads"].as_array().expect("loads");
    let crowds = loads.iter().map(|load| load["consumers"].as_u64().expect("a number"));
    assert!(crowds.clone().any(|consumers| consumers == 1_000), "{loads:?}");
    assert!(crowds.filter(|consumers| *consumers == 10).count() >= 3, "{loads:?}");
    for load in loads {
        assert!(load["events_s"].as_f64().expect("a figure") > 0.0, "{load}");
    }
    assert_eq!(run["crowd"]["subscriptions"], 10_000);
    let samples = lines_of_samples(&run_folder(&folder)).len();
    assert_eq!(samples, trials.len() + loads.len() + 1 + subscriptions.len() + deaths.len());
    let page = fs::read_to_string(run_folder(&folder).join("report.html")).expect("a page");
    for part in [
        "Figure 2",
        "3 backups",
        "Figure 3",
        "Figure 4",
        "without threads of their own",
        "with threads and priorities",
        "Figure 5",
        "Measure by measure",
        "warm connections only",
        "The paper",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = TempDir::new().expect("a folder");
    for (arguments, exit, words) in [
        (["basline", "--calls", "1"], 3, "there is no plan"),
        (["baseline", "--only", "grup"], 3, "no configuration"),
        (["baseline", "--settings", "asleep"], 3, "free, pinned, awake"),
        (["baseline", "--calls", "0"], 3, "--calls"),
        (["baseline", "--echo-dir", "nowhere"], 1, "nowhere"),
    ] {
        let output = quorba(folder.path(), &arguments);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {talk}");
        assert!(talk.contains(words), "{arguments:?}: {talk}");
    }
    assert!(!folder.path().join("out").exists(), "nothing was begun");
}
