//! A request at which the process of every server that executes it ends: `execution` says how many
//! that are, and nobody executes it again.

use std::time::Duration;

use crate::stage::pids;
use crate::stage::scripted::{NODES, Process, SOON, Scripted};

/// What servers may take to start again, with their states.
const RECOVERY: Duration = Duration::from_secs(30);

fn start(style: &str, lines: &str) -> Scripted {
    let lines = format!("server_reply_ms = 2000\nrestart_backoff_ms = 20\n{lines}");
    Scripted::start(style, &lines, &[])
}

/// Three calls, the poisonous one, and what has become of the servers.
fn poison(scripted: &Scripted) -> (Vec<String>, Vec<Process>) {
    let mut known = Vec::new();
    for (node, name) in NODES.iter().enumerate() {
        scripted.add(node, name, SOON).expect("nothing stands against it");
        known.push((*name).to_owned());
    }
    let before = scripted.processes().expect("it tells");
    let mut client = scripted.client(2).expect("it listens");
    let answer = Scripted::odd(&mut client, ("crash", "", false), "poison", SOON);
    assert!(answer.ours().is_some(), "its caller got {answer}\n{}", scripted.domain.told());
    (known, before)
}

fn executed(scripted: &Scripted) -> [usize; 3] {
    scripted.executions("odd", "poison")
}

fn goes_on(scripted: &Scripted, known: &mut Vec<String>, when: &str) {
    let told = |wrong: String| -> ! { panic!("{when}: {wrong}\n{}", scripted.domain.told()) };
    scripted.becomes_healthy(RECOVERY).unwrap_or_else(|wrong| told(wrong));
    for (node, name) in NODES.iter().enumerate() {
        let text = format!("{when}-{name}");
        scripted.add(node, &text, SOON).unwrap_or_else(|wrong| told(wrong));
        known.push(text);
    }
    scripted.has_each_once(known, SOON).unwrap_or_else(|wrong| told(wrong));
}

fn costs_two_members_at_most(style: &str) {
    let scripted = start(style, "execution = \"staggered\"\n");
    let (mut known, before) = poison(&scripted);
    goes_on(&scripted, &mut known, "afterwards");
    let of_each = executed(&scripted);
    let all = of_each.iter().sum::<usize>();
    assert!((1..=2).contains(&all), "{style}: executed {of_each:?} times");
    let now = scripted.processes().expect("it tells");
    for node in 0..NODES.len() {
        if of_each[node] == 0 {
            assert_eq!(before[node], now[node], "{style}: {} has not executed it", NODES[node]);
        }
    }
    if style.starts_with("active") {
        scripted.servers_are_equal(SOON).expect("all skip it alike");
    }
}

#[test]
fn staggered_it_costs_an_active_group_two_members_at_most_and_no_state() {
    costs_two_members_at_most("active");
}

#[test]
fn staggered_it_costs_a_semi_active_group_two_members_at_most_and_no_state() {
    costs_two_members_at_most("semi-active");
}

#[test]
fn staggered_it_costs_a_voting_group_two_members_at_most_and_no_state() {
    costs_two_members_at_most("active-with-voting");
}

#[test]
fn it_costs_a_passive_group_two_leaders_at_most_and_no_state() {
    for style in ["warm-passive", "cold-passive"] {
        let scripted = start(style, "");
        let (mut known, _) = poison(&scripted);
        goes_on(&scripted, &mut known, "afterwards");
        let of_each = executed(&scripted);
        assert!(of_each.iter().sum::<usize>() <= 2, "{style}: executed {of_each:?} times");
    }
}

#[test]
fn together_a_durable_group_comes_back_by_itself_and_never_executes_it_again() {
    let mut scripted = start("active", "execution = \"together\"\ndurable = true\n");
    let (mut known, _) = poison(&scripted);
    goes_on(&scripted, &mut known, "afterwards");
    let of_each = executed(&scripted);
    assert!(of_each.iter().all(|count| *count <= 1), "executed {of_each:?} times");
    let running = pids(&scripted.status().expect("it tells"));
    scripted.domain.black_out(&running);
    goes_on(&scripted, &mut known, "after a restart of all nodes");
    assert_eq!(of_each, executed(&scripted), "executed again by the restart");
}

#[test]
fn it_is_executed_twice_at_most_in_a_stateless_group() {
    let scripted = start("stateless", "");
    let (mut known, _) = poison(&scripted);
    goes_on(&scripted, &mut known, "afterwards");
    let of_each = executed(&scripted);
    assert!(of_each.iter().sum::<usize>() <= 2, "executed {of_each:?} times");
}
