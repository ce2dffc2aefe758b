//! A request that all servers answer, and soon after which their processes end: each start from the
//! log executes it again and ends again. An operator is told which it is, and gives it up.

use std::time::Duration;

use serde_json::Value;

use crate::stage::scripted::{NODES, SOON, Scripted, eventually};
use crate::stage::{pids, text};

const RECOVERY: Duration = Duration::from_secs(30);

/// What status finds of the group that nobody is in: what it says, and what it advises.
fn nobody_in(scripted: &Scripted) -> Option<(String, String)> {
    let status = scripted.status().ok()?;
    let mut findings = status["findings"].as_array()?.iter();
    let found = findings.find(|finding| finding["fact"] == "nobody-in")?;
    let of = |name: &str| Some(found[name].as_str()?.to_owned());
    Some((of("what")?, of("next")?))
}

#[test]
fn a_durable_group_comes_back_without_the_request_behind_which_its_servers_end() {
    let lines = "durable = true\nexecution = \"together\"\nrestart_backoff_ms = 20\n";
    let mut scripted = Scripted::start("active", lines, &[]);
    let told = |wrong: String| -> ! { panic!("{wrong}\n{}", scripted.domain.told()) };
    let mut known = Vec::new();
    for (node, name) in NODES.iter().enumerate() {
        scripted.add(node, name, SOON).unwrap_or_else(|wrong| told(wrong));
        known.push((*name).to_owned());
    }
    let mut client = scripted.client(2).expect("it listens");
    let answer = Scripted::odd(&mut client, ("dies-after:50", "", false), "deadly", SOON);
    assert!(answer.number().is_ok(), "its caller got {answer}");
    let found = eventually(RECOVERY, || {
        let found = nobody_in(&scripted).filter(|(what, _)| what.contains("(odd on o"));
        found.ok_or_else(|| format!("status names no request: {:?}", scripted.status()))
    });
    let (what, next) = found.unwrap_or_else(|wrong| told(wrong));
    let number = next.split("group skip g ").nth(1).and_then(|rest| rest.split(' ').next());
    let number = number.unwrap_or_else(|| panic!("{what}; {next}"));
    let unsaid = scripted.domain.quorba(&["group", "skip", "g", number, "--answered"]);
    assert_eq!(unsaid.status.code(), Some(3), "{unsaid:?}");
    assert!(text(&unsaid.stderr).contains("--yes"), "{unsaid:?}");
    let skip = ["-o", "json", "group", "skip", "g", number, "--answered", "--yes"];
    // Somebody may be in for a moment.
    let skipped = eventually(RECOVERY, || {
        let output = scripted.domain.quorba(&skip);
        if output.status.success() { Ok(output) } else { Err(text(&output.stderr)) }
    });
    let said = skipped.unwrap_or_else(|wrong| told(wrong));
    let said: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!((said["skipped"].to_string(), &said["answered"]), (number.into(), &true.into()));
    scripted.becomes_healthy(RECOVERY).unwrap_or_else(|wrong| told(wrong));
    for (node, name) in NODES.iter().enumerate() {
        let text = format!("afterwards-{name}");
        scripted.add(node, &text, SOON).unwrap_or_else(|wrong| told(wrong));
        known.push(text);
    }
    scripted.has_each_once(&known, SOON).unwrap_or_else(|wrong| told(wrong));
    // Nor does the log bring it back.
    let running = pids(&scripted.status().expect("it tells"));
    scripted.domain.black_out(&running);
    let told = |wrong: String| -> ! { panic!("{wrong}\n{}", scripted.domain.told()) };
    scripted.becomes_healthy(RECOVERY).unwrap_or_else(|wrong| told(wrong));
    scripted.has_each_once(&known, SOON).unwrap_or_else(|wrong| told(wrong));
    scripted.servers_are_equal(SOON).unwrap_or_else(|wrong| told(wrong));
    assert!(!scripted.log(0, SOON).expect("it answers").contains(&"deadly".to_owned()));
}
