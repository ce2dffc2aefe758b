//! Servers that end idle connections, all at once: nothing of it says that they have ended.

use std::time::Duration;

use crate::stage::scripted::{NODES, SOON, Scripted, eventually};

/// After what idle time they do. Calls that come in a row are closer together.
const IDLE_MS: &str = "1500";

fn idle_ends(scripted: &Scripted) -> Vec<usize> {
    let count = |node| scripted.noted(node).iter().filter(|line| *line == "idle-close").count();
    (0..NODES.len()).map(count).collect()
}

fn says_nothing(how: &str) {
    let arguments = ["--idle-close", IDLE_MS, "--idle-how", how];
    let scripted = Scripted::start("active", "", &arguments);
    let mut known = Vec::new();
    let mut add = |when: &str| {
        for (node, name) in NODES.iter().enumerate() {
            let text = format!("{when}-{name}");
            let added = scripted.add(node, &text, SOON);
            added.unwrap_or_else(|wrong| panic!("{how}: {wrong}\n{}", scripted.domain.told()));
            known.push(text);
        }
        scripted.has_each_once(&known, SOON).unwrap_or_else(|wrong| panic!("{how}: {wrong}"));
    };
    let processes = scripted.processes().expect("it tells");
    for round in 0..2 {
        add(&format!("before-{round}"));
        let before = idle_ends(&scripted);
        let ended = eventually(Duration::from_secs(10), || {
            let now = idle_ends(&scripted);
            let are_more = before.iter().zip(&now).all(|(before, now)| now > before);
            if are_more { Ok(()) } else { Err(format!("idle ends: {before:?}, then {now:?}")) }
        });
        ended.expect("all servers end idle connections");
        add(&format!("after-{round}"));
    }
    scripted.becomes_healthy(SOON).expect("all are in");
    assert_eq!(processes, scripted.processes().expect("it tells"), "{how}: somebody was restarted");
}

#[test]
fn servers_that_all_end_their_idle_connection_in_good_order_are_left_alone() {
    says_nothing("close-connection");
}

#[test]
fn servers_that_all_end_their_idle_connection_without_a_word_are_left_alone() {
    says_nothing("fin");
}

#[test]
fn servers_that_all_reset_their_idle_connection_are_left_alone() {
    says_nothing("rst");
}
