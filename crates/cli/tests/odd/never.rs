//! A request that no server ever answers: the client's own limit ends its wait, the servers are
//! left alone, and an operator abandons the request (`quorba group skip`), so that others go on.

use std::time::Duration;

use serde_json::Value;

use crate::reaction::SERVER_REPLY;
use crate::stage::scripted::{KEY, NODES, SOON, Scripted, Step, eventually};
use crate::stage::text;
use crate::stage::wire::Wire;

/// The client's patience: longer than `server_reply_ms`, which is not to end anything.
const PATIENCE: Duration = Duration::from_secs(3);

fn start(style: &str, durable: bool) -> Scripted {
    assert!(PATIENCE > SERVER_REPLY);
    let lines = format!("server_reply_ms = {}\ndurable = {durable}\n", SERVER_REPLY.as_millis());
    Scripted::start(style, &lines, &[])
}

/// The number of the last request of this operation, as `quorba group log` gives it.
fn number_of(scripted: &Scripted, operation: &str) -> Step<String> {
    let output = scripted.domain.quorba(&["-o", "json", "group", "log", "g"]);
    let lines = text(&output.stdout);
    let mut requests = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = requests.rfind(|request| request["operation"] == operation);
    let number = last.and_then(|request| request["number"].as_u64());
    number.map(|number| number.to_string()).ok_or_else(|| {
        format!("no {operation} in the group's log: {lines}{}", text(&output.stderr))
    })
}

/// A call whose answer is not waited for.
fn send_add(client: &mut Wire, text: &str) -> Step<u32> {
    let (id, request) = client.request(KEY, "add", &[], |out| out.write_string(text.as_bytes()));
    client.send(request.bytes()).map_err(|error| error.to_string())?;
    Ok(id)
}

fn try_never(scripted: &Scripted) -> Step {
    let mut known = Vec::new();
    for (node, name) in NODES.iter().enumerate() {
        let text = format!("before-{name}");
        scripted.add(node, &text, SOON)?;
        known.push(text);
    }
    let before = scripted.processes()?;
    let mut client = scripted.client(0)?;
    let answer = Scripted::odd(&mut client, ("never", "", false), "never", PATIENCE);
    if !matches!(answer, crate::stage::wire::Answer::Silence) {
        return Err(format!("its caller got {answer} before its own limit was over"));
    }
    scripted.are_left_alone(&before)?;
    let mut other = scripted.client(1)?;
    let waiting = send_add(&mut other, "meanwhile")?;
    let number = eventually(SOON, || number_of(scripted, "odd"))?;
    let skipped = scripted.domain.quorba(&["group", "skip", "g", &number]);
    if !skipped.status.success() {
        return Err(format!("group skip g {number}: {}", text(&skipped.stderr)));
    }
    let answer = client.answer(client.last_id(), SOON);
    if answer.ours().is_none() {
        return Err(format!("its caller got {answer} when it was abandoned"));
    }
    let answer = other.answer(waiting, SOON);
    answer.number().map_err(|answer| format!("the call behind it got {answer}"))?;
    known.push("meanwhile".into());
    for (node, name) in NODES.iter().enumerate() {
        let text = format!("after-{name}");
        scripted.add(node, &text, SOON).map_err(|wrong| format!("after it: {wrong}"))?;
        known.push(text);
    }
    scripted.has_each_once(&known, SOON)?;
    let executed = scripted.executions("odd", "never");
    if executed.iter().any(|count| *count > 1) {
        return Err(format!("it was executed {executed:?} times"));
    }
    scripted.are_left_alone(&before)
}

fn is_abandoned(style: &str, durable: bool) {
    let scripted = start(style, durable);
    let tried = try_never(&scripted);
    tried.unwrap_or_else(|wrong| panic!("{style}: {wrong}\n{}", scripted.domain.told()));
}

#[test]
fn an_operator_abandons_what_no_server_answers_in_an_active_group() {
    is_abandoned("active", false);
}

#[test]
fn an_operator_abandons_what_no_server_answers_in_a_durable_active_group() {
    is_abandoned("active", true);
}

#[test]
fn an_operator_abandons_what_no_server_answers_in_a_semi_active_group() {
    is_abandoned("semi-active", false);
}

#[test]
fn an_operator_abandons_what_no_server_answers_in_a_voting_group() {
    is_abandoned("active-with-voting", false);
}

#[test]
fn an_operator_abandons_what_no_server_answers_in_a_warm_passive_group() {
    is_abandoned("warm-passive", false);
}

#[test]
fn an_operator_abandons_what_no_server_answers_in_a_cold_passive_group() {
    is_abandoned("cold-passive", false);
}

#[test]
fn in_a_stateless_group_what_is_never_answered_keeps_nobody_else_waiting() {
    let scripted = start("stateless", false);
    let mut client = scripted.client(0).expect("it listens");
    let id = {
        let (id, request) = client.request(KEY, "odd", &[], |out| {
            out.write_string(b"never");
            out.write_string(b"");
            out.write_bool(false);
            out.write_string(b"never");
        });
        client.send(request.bytes()).expect("it is read");
        id
    };
    let begun = || {
        let executed = scripted.executions("odd", "never");
        if executed == [0; 3] { Err("nobody has it".to_owned()) } else { Ok(()) }
    };
    eventually(SOON, begun).expect("it is executed");
    for round in 0..2 {
        for node in 0..NODES.len() {
            let added = scripted.add(node, &format!("{round}"), SOON);
            added.unwrap_or_else(|wrong| panic!("{wrong}\n{}", scripted.domain.told()));
        }
        // The second round comes when its server is late beyond its limit.
        if round == 0 {
            let answer = client.answer(id, PATIENCE);
            assert!(answer.number().is_err(), "nobody has answered it");
        }
    }
    let executed = scripted.executions("odd", "never");
    assert!(executed.iter().sum::<usize>() <= 2, "executed {executed:?} times");
}
