//! `quorba status` is not healthy when a call cannot be answered, when replicas may differ, or when
//! the next fault loses state; and it tells of all nodes, whichever is asked.

mod stage;

use serde_json::Value;
use stage::scripted::{KEY, SOON, Scripted, eventually};
use stage::{Domain, QUORBA, text, wait_until};
use std::fs;

/// What status finds, by the names of the facts, and the whole answer.
fn found(domain: &Domain, arguments: &[&str]) -> (Vec<String>, Value) {
    let output = domain.quorba(&[&["-o", "json", "status"], arguments].concat());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let findings = said["findings"].as_array().cloned().unwrap_or_default();
    let facts: Vec<String> =
        findings.iter().map(|one| one["fact"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(output.status.code() == Some(0), facts.is_empty(), "{said}");
    (facts, said)
}

fn wait_for(domain: &Domain, fact: &str) -> Value {
    let mut last = Value::Null;
    wait_until(fact, || {
        let (facts, said) = found(domain, &[]);
        last = said;
        facts.iter().any(|one| one == fact)
    });
    let findings = last["findings"].as_array().expect("a list");
    findings.iter().find(|one| one["fact"] == fact).expect("just seen").clone()
}

fn a_bank(server: &str, lines: &str) -> Domain {
    Domain::start_group(&format!(
        "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = {server}\n{lines}"
    ))
}

fn servant() -> String {
    format!("[\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]")
}

#[test]
fn replies_that_differ_are_found_until_all_members_have_the_state_of_one() {
    let scripted = Scripted::start("active", "compare_replies = 1\n", &[]);
    let mut wire = scripted.client(0).expect("a gateway");
    for _ in 0..50 {
        // Each server says its own name.
        wire.call(KEY, "who", SOON, |_| {});
    }
    let differ = wait_for(&scripted.domain, "differ");
    assert!(differ["since_ms"].is_u64() && differ["group"] == "g", "{differ}");
    assert!(differ["next"].as_str().is_some_and(|it| it.contains("group remove g")), "{differ}");
    let output = scripted.domain.quorba(&["status", "--wait-healthy", "300ms"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    wait_until("all of them are counted", || {
        let (_, said) = found(&scripted.domain, &[]);
        said["nodes"][0]["status"]["groups"][0]["differ"]["times"].as_u64() >= Some(50)
    });
    let told = scripted.domain.told();
    let lines = told.matches("none has a majority").count();
    assert!((1..=3).contains(&lines), "{lines} lines for 50 differences: {told}");
    for node in ["n2", "n3"] {
        for change in ["remove", "add"] {
            let output = scripted.domain.quorba(&["group", change, "g", node]);
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        wait_until("it is in again", || {
            found(&scripted.domain, &[]).0.iter().all(|fact| fact == "differ")
        });
    }
    scripted.domain.wait_healthy();
}

/// Asks for a reference, at the gateway of n1.
fn refer(scripted: &Scripted, port: u16, key: &str) {
    let answer = scripted.client(0).expect("a gateway").call(KEY, "refer", SOON, |out| {
        out.write_u32(port.into());
        out.write_string(key.as_bytes());
    });
    assert!(answer.to_string().contains("reply"), "{answer}");
}

#[test]
fn a_reference_that_leads_past_the_order_is_found_until_its_server_is_another_one() {
    let scripted = Scripted::start("active", "", &[]);
    for _ in 0..20 {
        refer(&scripted, 0, "thing");
    }
    let finding = wait_for(&scripted.domain, "past-the-order");
    let what = finding["what"].as_str().expect("text");
    assert!(what.contains("`refer`") && what.contains("127.0.0.1:"), "{what}");
    let ports = scripted.processes().expect("they run").into_iter().filter_map(|one| one.port);
    assert!(ports.into_iter().any(|port| what.contains(&format!(":{port},"))), "{what}");
    assert!(finding["since_ms"].is_u64() && finding["group"] == "g", "{finding}");
    assert!(finding["next"].as_str().is_some_and(|it| it.contains("{gateways}")), "{finding}");
    assert_eq!(found(&scripted.domain, &[]).1["health"], "degraded");
    wait_until("each of them is counted", || {
        let (_, said) = found(&scripted.domain, &[]);
        let of = |node: usize| said["nodes"][node]["status"]["groups"][0]["references"][0].clone();
        (0..3).all(|node| of(node)["times"].as_u64() == Some(20))
    });
    let said = |told: &str| told.matches("past the order").count();
    let told = scripted.domain.told_once("each node says it", |told| said(told) >= 3);
    assert_eq!(said(&told), 3, "once at each node: {told}");
    for node in ["n1", "n2", "n3"] {
        for change in ["remove", "add"] {
            let output = scripted.domain.quorba(&["group", change, "g", node]);
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        wait_until("it is in again", || {
            found(&scripted.domain, &[]).0.iter().all(|fact| fact == "past-the-order")
        });
    }
    scripted.domain.wait_healthy();
}

#[test]
fn a_reference_to_one_gateway_is_noted_and_one_to_what_is_not_of_the_domain_is_not() {
    let scripted = Scripted::start("active", "", &[]);
    // Nobody's: as from a naming service that knows servers outside.
    refer(&scripted, 1, "thing");
    let status = text(&scripted.domain.quorba(&["status"]).stdout);
    assert!(!status.contains("`refer`"), "{status}");
    refer(&scripted, scripted.domain.first_port + 6, "thing");
    wait_until("it is noted", || {
        let status = text(&scripted.domain.quorba(&["status"]).stdout);
        status.contains("replies to `refer` have a reference to one gateway only, 127.0.0.1:")
    });
    scripted.domain.wait_healthy();
}

#[test]
fn a_reference_to_a_server_with_the_key_of_its_group_and_a_port_of_its_own_is_found() {
    let scripted = Scripted::connect("active", "", &[]);
    refer(&scripted, 1, "o");
    let finding = wait_for(&scripted.domain, "past-the-order");
    assert!(finding["what"].as_str().is_some_and(|it| it.contains("127.0.0.1:1,")), "{finding}");
}

#[test]
fn keys_of_references_that_differ_between_replicas_are_named() {
    let scripted = Scripted::start("active", "", &[]);
    refer(&scripted, 1, "the same");
    assert_eq!(found(&scripted.domain, &[]).0, Vec::<String>::new());
    // Each process has its own.
    refer(&scripted, 1, "");
    let finding = wait_for(&scripted.domain, "keys-differ");
    let what = finding["what"].as_str().expect("text");
    assert!(what.contains("`refer`") && what.contains("object keys"), "{what}");
    assert!(what.contains("n1: object ") && what.contains("n2: object "), "{what}");
}

/// Asks for a text and a number; the server on `node` leaves what is between them as it was, that
/// on `liar` has another number.
fn padded(scripted: &Scripted, node: &str, liar: &str) {
    let answer = scripted.client(0).expect("a gateway").call(KEY, "padded", SOON, |out| {
        ["a", node, liar].iter().for_each(|text| out.write_string(text.as_bytes()));
    });
    assert!(answer.to_string().contains("reply"), "{answer}");
}

const IGNORE: &str = "compare_replies = \"ignore-padding\"\n";

#[test]
fn votes_count_padding_unless_they_are_told_not_to() {
    let ignoring = Scripted::start("active-with-voting", IGNORE, &[]);
    let before = ignoring.processes().expect("they run");
    (0..30).for_each(|_| padded(&ignoring, "n3", ""));
    (0..30).for_each(|_| padded(&ignoring, "*", ""));
    // A number that differs is one all the same, and comes behind in the order.
    padded(&ignoring, "*", "n2");
    let told = ignoring.domain.told_once("the liar", |told| told.contains("it is expelled"));
    let expelled: Vec<&str> = told.lines().filter(|it| it.contains("it is expelled")).collect();
    assert!(expelled.iter().all(|line| line.contains("member=\"n2\"")), "{expelled:?}");
    ignoring.domain.wait_healthy();
    let now = ignoring.processes().expect("they run");
    assert_eq!((now[0], now[2]), (before[0], before[2]), "none but the liar was started anew");

    let counting = Scripted::start("active-with-voting", "", &[]);
    padded(&counting, "n3", "");
    let told = counting.domain.told_once("it", |told| told.contains("it is expelled"));
    assert!(told.contains("member=\"n3\""), "{told}");
}

#[test]
fn where_replies_differ_padding_is_named_with_the_key_that_ignores_it() {
    let counting = Scripted::start("active", "compare_replies = 1\n", &[]);
    wait_until("it is said", || {
        padded(&counting, "*", "");
        let (_, said) = found(&counting.domain, &[]);
        let what = said["findings"][0]["what"].as_str().unwrap_or_default().to_owned();
        what.contains("replied") && what.contains("`compare_replies = \"ignore-padding\"`")
    });
    counting.domain.told_once("it is in a log", |told| told.contains("ignore-padding"));

    let ignoring = Scripted::start("active", IGNORE, &[]);
    // More than a window.
    (0..130).for_each(|_| padded(&ignoring, "*", ""));
    assert_eq!(found(&ignoring.domain, &[]).0, Vec::<String>::new());
    (0..64).for_each(|_| padded(&ignoring, "*", "n2"));
    let differ = wait_for(&ignoring.domain, "differ");
    assert!(differ["what"].as_str().is_some_and(|it| it.contains("n2")), "{differ}");
}

#[test]
fn an_object_key_that_no_server_has_is_found() {
    let lines = "state_object = \"bank\"\nobject_key = \"bnak\"\n";
    let domain = a_bank(&servant(), lines);
    // Nobody is told before that all is well.
    let output = domain.quorba(&["status", "--wait-healthy", "3s"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    let missing = wait_for(&domain, "object-missing");
    let what = missing["what"].as_str().expect("text");
    assert!(what.contains("`bnak`") && what.contains("object_key"), "{what}");
}

#[test]
fn a_passive_group_whose_leader_gives_no_state_is_found() {
    let lines = "checkpoint_requests = 5\ncheckpoint_ms = 100\n";
    let scripted = Scripted::start("warm-passive", lines, &["--no-state"]);
    for number in 0..20 {
        scripted.add(0, &format!("call {number}"), SOON).expect("it is executed all the same");
    }
    let refused = wait_for(&scripted.domain, "state-refused");
    let what = refused["what"].as_str().expect("text");
    assert!(what.contains("NO_RESOURCES"), "{what}");
}

#[test]
fn a_state_that_is_too_long_is_told_with_its_size_and_the_option_of_the_orb() {
    let lines = "checkpoint_requests = 5\ncheckpoint_ms = 100\n";
    let scripted = Scripted::start("warm-passive", lines, &["--state-max", "400"]);
    let add = |number: u32| {
        scripted.add(0, &format!("{number:040}"), SOON).expect("it is executed all the same");
    };
    (0..5).for_each(add);
    wait_until("a state is had", || {
        let (_, said) = found(&scripted.domain, &[]);
        said["nodes"][1]["status"]["groups"][0]["logged"] == 0
    });
    (5..20).for_each(add);
    let refused = wait_for(&scripted.domain, "state-refused");
    let what = refused["what"].as_str().expect("text");
    let told = "MARSHAL:1.0 (minor 0x41540045, of omniORB); the last state that it gave has ";
    assert!(what.contains(told) && what.contains("times in a row"), "{what}");
    let next = refused["next"].as_str().expect("text");
    assert!(next.contains("-ORBgiopMaxMsgSize 268435456"), "{next}");
}

#[test]
fn a_state_that_a_server_does_not_take_is_told_and_tried_more_and_more_seldom() {
    let arguments = ["--state-max", "900", "--state-max-on", "n2"];
    let scripted = Scripted::start("active", "quarantine_after = 3\n", &arguments);
    let domain = &scripted.domain;
    for number in 0..50 {
        scripted.add(0, &format!("{number:040}"), SOON).expect("it is executed");
    }
    let pid = scripted.processes().expect("they run")[1].pid.expect("it runs");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    let refused = wait_for(domain, "state-not-taken");
    assert_eq!(refused["node"], "n2");
    let what = refused["what"].as_str().expect("text");
    assert!(what.contains("has not taken the state of another one (2 kB)"), "{what}");
    // It is not started for ever: its end was the first failure of three.
    wait_for(domain, "quarantined");
    let refused = wait_for(domain, "state-not-taken");
    assert!(
        refused["what"].as_str().is_some_and(|it| it.contains("2 times in a row")),
        "{refused}"
    );
}

#[test]
fn a_read_that_no_server_answers_is_found() {
    use rustix::process::{Signal, kill_process};
    let scripted = Scripted::start("active", "readonly = [\"log\"]\nstuck_ms = 300\n", &[]);
    let pids: Vec<_> = scripted.processes().expect("they run").iter().map(|it| it.pid).collect();
    let all = |signal| {
        for pid in pids.iter().flatten() {
            kill_process(*pid, signal).expect("it runs");
        }
    };
    all(Signal::STOP);
    // A process that was sent the signal goes on until one of its threads has seen it.
    wait_until("they have stopped", || pids.iter().flatten().all(|pid| stage::has_stopped(*pid)));
    std::thread::scope(|scope| {
        let read = scope.spawn(|| scripted.log(0, SOON * 4));
        let unanswered = wait_for(&scripted.domain, "unanswered");
        assert_eq!((&unanswered["group"], &unanswered["node"]), (&"g".into(), &"n1".into()));
        assert!(unanswered["since_ms"].as_u64() >= Some(300), "{unanswered}");
        all(Signal::CONT);
        read.join().expect("no panic").expect("it is answered");
    });
    scripted.domain.wait_healthy();
}

#[test]
fn a_state_object_that_no_server_has_is_told_with_what_it_answered() {
    let lines = "state_object = \"bnak\"\nstart_timeout_ms = 500\n";
    let domain = a_bank(&servant(), lines);
    wait_until("the answer is told", || {
        let status = text(&domain.quorba(&["status", "bank"]).stdout);
        status.contains("has no object `bnak` (state_object)") && status.contains("UNKNOWN_OBJECT")
    });
}

#[test]
fn a_program_that_is_not_there_is_named_and_the_last_words_of_one_that_ends_are_shown() {
    let domain = a_bank("[\"./bnak\", \"{port}\"]", "object_key = \"bank\"\n");
    wait_until("the program is named", || {
        let status = text(&domain.quorba(&["status", "bank"]).stdout);
        status.contains("cannot start /") && status.contains("bnak: No such file")
    });
    let script = "[\"sh\", \"-c\", \"echo no database at db7 >&2; exit 3 # {port}\"]";
    let domain = a_bank(script, "object_key = \"bank\"\n");
    wait_until("its last words are shown", || {
        let status = text(&domain.quorba(&["status", "bank"]).stdout);
        status.contains("| no database at db7") && status.contains("exit status: 3")
    });
}

#[test]
fn a_program_is_found_from_the_folder_of_the_domain_file_and_one_that_is_killed_has_ended() {
    use std::os::unix::fs::PermissionsExt;
    let group = "[group.bank]\nlisten = {listen}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
                 server = [\"bin/bank\", \"{port}\"]\nstate_object = \"bank\"\n";
    let domain = Domain::start_group_by(group, |folder| {
        let script = format!("#!/bin/sh\nexec {QUORBA} servant bank --port $1\n");
        fs::create_dir(folder.join("bin")).expect("made");
        fs::write(folder.join("bin/bank"), script).expect("written");
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.join("bin/bank"), all).expect("allowed");
        stage::up(folder)
    });
    let status = domain.wait_healthy();
    let pid = status["nodes"][1]["status"]["groups"][0]["server"]["pid"].as_i64();
    let pid = rustix::process::Pid::from_raw(pid.expect("it runs") as i32).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    let told = domain.told_once("its end", |told| told.contains("server ended"));
    assert!(told.contains("ended: signal: 9") && !told.contains("restarted by its node"), "{told}");
    domain.wait_healthy();
}

#[test]
fn a_member_that_an_operator_removed_makes_nobody_ill() {
    let domain = Domain::start_with("");
    domain.wait_healthy();
    for node in ["n2", "n3"] {
        let output = domain.quorba(&["group", "remove", "bank", node]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    // An operator wants it so: one of one is whole.
    assert_eq!(found(&domain, &[]).0, Vec::<String>::new());
}

/// The domain file as on the machine of n1: the others' admin APIs cannot be reached from there.
fn on_the_machine_of_n1(domain: &Domain) -> String {
    let file = fs::read_to_string(domain.folder.path().join("quorba.toml")).expect("there");
    let mut here = file;
    for node in 1..3 {
        let port = domain.first_port + 3 + node;
        // Nobody listens there.
        let elsewhere = domain.first_port + 9 + node;
        here = here.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{elsewhere}"));
    }
    fs::write(domain.folder.path().join("here.toml"), here).expect("written");
    "here.toml".into()
}

#[test]
fn one_node_tells_of_all_and_takes_commands_for_all() {
    let domain = Domain::start_with("");
    domain.wait_healthy();
    let here = on_the_machine_of_n1(&domain);
    let run = |arguments: &[&str]| domain.quorba(&[arguments, &["-c", &here]].concat());
    let (facts, said) = found(&domain, &["-c", &here]);
    assert_eq!(facts, Vec::<String>::new());
    for (index, name) in ["n1", "n2", "n3"].iter().enumerate() {
        let node = &said["nodes"][index]["status"];
        assert!(node["node"] == *name && node["groups"][0]["server"]["pid"].is_u64(), "{node}");
    }
    domain.bank(0).increment("a").expect("it answers");
    let log = run(&["group", "log", "bank", "--node", "n3"]);
    assert!(text(&log.stdout).contains("increment"), "{}", text(&log.stderr));
    let release = run(&["group", "release", "bank", "n2"]);
    assert!(release.status.success(), "{}", text(&release.stderr));
    let backup = run(&["backup", "bank", "--node", "n2", "--to", "b.qbk"]);
    assert!(backup.status.success(), "{}", text(&backup.stderr));
    domain.bank(1).increment("b").expect("it answers");
    let restore = run(&["restore", "--group", "bank", "b.qbk", "--node", "n3", "--yes"]);
    assert!(restore.status.success(), "{}", text(&restore.stderr));
    eventually(SOON, || match domain.bank(2).history(0, 10) {
        Ok(page) if page.len() == 1 => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .expect("what came behind the backup is gone");
}

#[test]
fn the_admin_api_says_the_same_of_the_whole_domain() {
    use quorba_admin::Client;
    use quorba_admin::health::Health;
    let domain = Domain::start_with("");
    domain.wait_healthy();
    let token = domain.folder.path().join("quorba-state/n2/admin.token");
    let client = Client::new(([127, 0, 0, 1], domain.first_port + 4).into(), token);
    let said = client.domain(SOON).expect("it answers");
    assert_eq!((said.asked_by.as_str(), said.judgement.health), ("n2", Health::Ok));
    assert!(said.nodes.iter().all(|node| node.status.is_some()), "{said:?}");
    let third = client.at("n3").status(SOON).expect("it answers");
    assert_eq!(third.node, "n3");
    assert!(client.at("n9").status(SOON).is_err());
    // What came through another node goes no further.
    assert!(client.at("n3/at/n1").status(SOON).is_err());
}
