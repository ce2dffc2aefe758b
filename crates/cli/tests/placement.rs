//! A leader that moves by itself on a live domain, by what its node measures.

mod stage;

use serde_json::Value;

use stage::{Domain, QUORBA, text};

fn leader(domain: &Domain) -> String {
    let shown = domain.quorba(&["-o", "json", "group", "show", "clock"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let leader = shown.pointer("/nodes/0/status/groups/0/leader").and_then(Value::as_str);
    leader.unwrap_or_else(|| panic!("no leader: {shown}")).to_owned()
}

/// On a ring whose token rests the leader belongs to the gateway with most calls: a call from
/// elsewhere fetches the token twice.
#[test]
fn a_leader_moves_to_the_gateway_whose_clients_call_and_stays() {
    let domain = Domain::start_group(&format!(
        "[group.clock]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         style = \"semi-active\"\nleader = \"n1\"\nplacement = \"auto\"\n\
         placement_watch_ms = 600\nstate_object = \"clock\"\n\
         server = [\"{QUORBA}\", \"servant\", \"clock\", \"--port\", \"{{port}}\", \
         \"--time\", \"{{time}}\"]\n"
    ));
    domain.wait_healthy();
    let moved = domain.quorba(&["group", "promote", "clock", "n1"]);
    assert!(moved.status.success(), "{}", text(&moved.stderr));
    let mut client = domain.client(2, b"clock");
    let mut calls = 0;
    let mut call = || {
        client.call("tell", |_| {}).expect("no call is lost");
        calls += 1;
    };
    stage::wait_until("n3 leads", || {
        (0..50).for_each(|_| call());
        leader(&domain) == "n3"
    });
    (0..200).for_each(|_| call());
    assert_eq!(leader(&domain), "n3");
    let answer = client.call("told", |_| {}).expect("it answers");
    assert_eq!(answer.results().read_u64("told"), Ok(calls), "each call was executed once");
}
