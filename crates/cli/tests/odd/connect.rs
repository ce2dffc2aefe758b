//! Servers that somebody else starts (`connect =`): whose state is behind the next connection.

use std::time::Duration;

use crate::stage::scripted::{NODES, SOON, Scripted, Step, eventually};
use crate::stage::text;

/// Servers end connections that are idle for so long, all at once; nodes use theirs more seldom.
const IDLE_MS: &str = "2500";
const STATE: &str = "state_object = \"o\"\n";

fn ends(scripted: &Scripted) -> Vec<usize> {
    let of = |name: &&str| {
        let file = scripted.domain.folder.path().join(format!("srv-{name}.log"));
        let noted = std::fs::read_to_string(file).unwrap_or_default();
        noted.lines().filter(|line| line.ends_with("idle-close")).count()
    };
    NODES.iter().map(of).collect()
}

/// All connections of all servers have ended several times.
fn all_end(scripted: &Scripted) -> Step {
    let before = ends(scripted);
    eventually(Duration::from_secs(20), || {
        let now = ends(scripted);
        let are_more = before.iter().zip(&now).all(|(before, now)| *now >= before + 4);
        if are_more { Ok(()) } else { Err(format!("idle ends: {before:?}, then {now:?}")) }
    })
}

fn add_at_each(scripted: &Scripted, known: &mut Vec<String>, when: &str) {
    for (node, name) in NODES.iter().enumerate() {
        let text = format!("{when}-{name}");
        // It may be refused, not executed, while no member is in.
        let added = eventually(SOON, || scripted.add(node, &text, SOON));
        added.unwrap_or_else(|wrong| panic!("{text}: {wrong}\n{}", scripted.domain.told()));
        known.push(text);
    }
    let has_all = || scripted.has_each_once(known, SOON);
    eventually(SOON, has_all).unwrap_or_else(|wrong| {
        panic!("{when}: {wrong}\n{}", scripted.domain.told());
    });
}

fn come_back_by_themselves(style: &str, how: &str) {
    let arguments = ["--idle-close", IDLE_MS, "--idle-how", how];
    let scripted = Scripted::connect(style, STATE, &arguments);
    let mut known = Vec::new();
    for round in 0..2 {
        add_at_each(&scripted, &mut known, &format!("before-{round}"));
        all_end(&scripted).unwrap_or_else(|wrong| panic!("{style}, {how}: {wrong}"));
    }
    add_at_each(&scripted, &mut known, "after");
}

/// Status says that no member has the group's state.
fn is_lost(scripted: &Scripted) -> Step {
    eventually(SOON, || {
        let told = scripted.domain.quorba(&["status"]);
        let told = text(&told.stdout);
        let is_lost = told.contains("no member is left that has the group's state");
        if is_lost { Ok(()) } else { Err(told) }
    })
}

#[test]
fn members_whose_connections_all_end_come_back_with_the_state_that_they_agreed_on() {
    come_back_by_themselves("active", "fin");
    come_back_by_themselves("active", "close-connection");
    come_back_by_themselves("active-with-voting", "rst");
}

#[test]
fn so_does_the_leader_of_a_passive_group() {
    come_back_by_themselves("warm-passive", "fin");
}

#[test]
fn a_server_that_was_started_anew_meanwhile_does_not() {
    let mut scripted = Scripted::connect("active", STATE, &[]);
    let mut known = Vec::new();
    add_at_each(&scripted, &mut known, "before");
    scripted.start_anew(1, &[]);
    scripted.becomes_healthy(SOON).expect("it is given the state");
    add_at_each(&scripted, &mut known, "after");
    for node in 0..NODES.len() {
        let has_all = || {
            let found = scripted.log_of_server(node)?;
            if found == known { Ok(()) } else { Err(format!("{node}: {found:?}")) }
        };
        eventually(SOON, has_all).expect("each has all");
    }
    // All at once: nothing has the state any more, and the empty ones are not taken for it.
    (0..NODES.len()).for_each(|node| scripted.start_anew(node, &[]));
    is_lost(&scripted).expect("status says so");
}

#[test]
fn without_a_state_object_the_operator_says_whose_state_it_is() {
    let arguments = ["--idle-close", "4000", "--idle-how", "fin"];
    let scripted = Scripted::connect("active", "", &arguments);
    for (node, name) in NODES.iter().enumerate() {
        scripted.add(node, name, SOON).expect("nothing stands against it");
    }
    let refused = scripted.domain.quorba(&["group", "adopt", "g", "n1"]);
    assert!(!refused.status.success(), "it is in");
    is_lost(&scripted).expect("status says so");
    let answered = eventually(2 * SOON, || {
        let output = scripted.domain.quorba(&["group", "adopt", "g", "n1"]);
        let told = text(&output.stderr);
        if !output.status.success() && !told.contains("takes part") {
            return Err(told);
        }
        scripted.log(0, SOON)
    });
    assert_eq!(answered.expect("the group goes on"), NODES);
}
