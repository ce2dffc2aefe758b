//! A member that was cut off comes back with what has changed, on live processes: its node is
//! stopped, and goes on when the group has worked without it.

mod stage;

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use stage::{Domain, QUORBA, pids, text, wait_until};

/// Of the whole state.
const STATE_BYTES: u64 = 16 << 20;

fn group_at(domain: &Domain, node: usize) -> Value {
    let shown = domain.quorba(&["-o", "json", "group", "show", "ballast"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    shown.pointer(&format!("/nodes/{node}/status/groups/0")).cloned().unwrap_or_default()
}

fn state_of_third(group: &Value) -> &str {
    group.pointer("/members/2/state").and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn a_member_with_a_large_state_that_was_cut_off_is_given_a_few_bytes() {
    let domain = Domain::start_group(&format!(
        "[group.ballast]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         style = \"warm-passive\"\nleader = \"n1\"\nstate_object = \"ballast\"\n\
         checkpoint_requests = 10\ncheckpoint_ms = 200\ncheckpoint_updates = true\n\
         server = [\"{QUORBA}\", \"lab\", \"peer\", \"ballast\", \"--socket\", \"{{socket}}\"]\n"
    ));
    let running = pids(&domain.wait_healthy());
    let (_, third) = *running.iter().find(|(name, _)| name == "n3").expect("it runs");
    let mut client = domain.client(0, b"ballast");
    let mut touch = |calls: usize| {
        (0..calls).for_each(|_| drop(client.call("touch", |_| {}).expect("it answers")));
    };
    let mut filler = domain.client(0, b"ballast");
    filler.call("fill", |out| out.write_u64(STATE_BYTES)).expect("it answers");
    touch(25);
    wait_until("the third has the checkpoint", || group_at(&domain, 2)["logged"] == 0);
    kill_process(third, Signal::STOP).expect("it runs");
    wait_until("the third is cut off", || state_of_third(&group_at(&domain, 0)) == "down");
    touch(45);
    kill_process(third, Signal::CONT).expect("it is there");
    touch(45);
    wait_until("the third is back", || {
        (0..3).all(|node| state_of_third(&group_at(&domain, node)) == "in")
    });
    let brought = group_at(&domain, 2)["last_catch_up"].clone();
    println!("a state of {STATE_BYTES} bytes; brought by {brought}");
    assert_eq!(brought["what"], "updates", "{}", domain.told());
    let bytes = brought["bytes"].as_u64().expect("a number");
    assert!(bytes < STATE_BYTES / 100, "{bytes} bytes");
    touch(5);
    let digest = || {
        let mut client = domain.client(1, b"ballast");
        let answer = client.call("digest", |_| {}).expect("it answers");
        answer.results().read_u64("digest").expect("a number")
    };
    let before = digest();
    let moved = domain.quorba(&["group", "promote", "ballast", "n3"]);
    assert!(moved.status.success(), "{}", text(&moved.stderr));
    assert_eq!(digest(), before, "the server of the third has the same state");
}
