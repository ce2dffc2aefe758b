//! What operators ask of real nodes: the log of a group, recordings, and the doctor.

mod stage;

use std::process::Output;

use quorba_orb::Client;
use serde_json::Value;

use stage::{Domain, QUORBA, text};

fn json(output: &Output) -> Vec<Value> {
    let lines = text(&output.stdout);
    lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// A group of clocks; with `{time}` they tell ordered time.
fn clocks(more: &str) -> Domain {
    Domain::start_group(&format!(
        "[group.clock]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"{QUORBA}\", \"servant\", \"clock\", \"--port\", \"{{port}}\"{more}]\n\
         state_object = \"clock\"\nobject_key = \"clock\"\n"
    ))
}

fn two(client: &mut Client, operation: &str) -> (u64, u64) {
    let answer = client.call(operation, |_| {}).expect("it answers");
    let mut results = answer.results();
    let mut next = || results.read_u64("result").expect("two numbers");
    (next(), next())
}

/// Asks each node's clock in turn, and gives what each of them has told at the end.
fn ask_around(domain: &Domain) -> Vec<(u64, u64)> {
    let mut clients: Vec<_> = (0..3).map(|node| domain.client(node, b"clock")).collect();
    for round in 0..30 {
        two(&mut clients[round % 3], "tell");
    }
    clients.iter_mut().map(|client| two(client, "told")).collect()
}

#[test]
fn replicas_that_ask_for_ordered_time_tell_the_same_and_others_do_not() {
    let domain = clocks(", \"--time\", \"{time}\"");
    domain.wait_healthy();
    let told = ask_around(&domain);
    assert_eq!(told[0].0, 30);
    assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    drop(domain);
    let domain = clocks("");
    domain.wait_healthy();
    let told = ask_around(&domain);
    assert!(told[0] != told[1] || told[1] != told[2], "{told:?}");
}

/// Records what happens while `calls` runs.
fn record(domain: &Domain, group: &str, calls: impl FnOnce()) {
    let recorded = std::thread::scope(|scope| {
        let arguments = ["-o", "json", "group", "record", group, "--for", "3s", "--to", "log"];
        let recorded = scope.spawn(move || domain.quorba(&arguments));
        let file = domain.folder.path().join("log");
        stage::wait_until("the recording begins", || file.exists());
        calls();
        recorded.join().expect("no panic")
    });
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let said = &json(&recorded)[0];
    assert_eq!(said["missing"], 0, "{said}");
}

fn doctor(domain: &Domain, group: &str) -> (Option<i32>, Value) {
    doctor_with(domain, group, &[])
}

fn doctor_with(domain: &Domain, group: &str, more: &[&str]) -> (Option<i32>, Value) {
    let arguments = ["-o", "json", "group", "doctor", group, "--log", "log"];
    let output = domain.quorba(&[&arguments[..], more].concat());
    let told = text(&output.stderr);
    let report = json(&output).into_iter().next();
    (output.status.code(), report.unwrap_or_else(|| panic!("{told}")))
}

#[test]
fn the_doctor_finds_a_time_in_replies_and_none_where_it_is_ordered() {
    let domain = clocks("");
    domain.wait_healthy();
    record(&domain, "clock", || {
        let mut client = domain.client(1, b"clock");
        two(&mut client, "told");
        two(&mut client, "tell");
        two(&mut client, "tell");
    });
    let (code, report) = doctor(&domain, "clock");
    assert_eq!((code, &report["verdict"]), (Some(1), &Value::from("replies-differ")), "{report}");
    assert_eq!((&report["compared"], &report["differing"]), (&3.into(), &2.into()), "{report}");
    let first = &report["first"];
    let names = (&first["number"], &first["operation"], &first["key"]);
    assert_eq!(names, (&2.into(), &"tell".into(), &"clock".into()), "{report}");
    assert_eq!(first["causes"][0], "time", "{report}");
    assert_eq!(first["offset"], 24, "the results begin with the time: {report}");
    assert_eq!(report["states"]["equal"], false, "{report}");
    let folder = domain.folder.path().join("temporary");
    std::fs::create_dir(&folder).expect("made");
    let mut late = std::process::Command::new(QUORBA);
    late.current_dir(domain.folder.path()).env("TMPDIR", &folder);
    late.args(["group", "doctor", "clock", "--log", "log", "--timeout", "1ms"]);
    assert_eq!(late.output().expect("it runs").status.code(), Some(4));
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0, "nothing is left");
    let shown = domain.quorba(&["group", "doctor", "clock", "--log", "log"]);
    assert!(text(&shown.stdout).contains("request 2: tell of object clock"), "{shown:?}");
    // The same servers with ordered time, as a file says that is not what runs: as they were
    // recorded.
    let file = domain.folder.path().join("quorba.toml");
    let ordered = std::fs::read_to_string(&file).expect("read");
    let ordered = ordered.replace("\"{port}\"", "\"{port}\", \"--time\", \"{time}\"");
    std::fs::write(domain.folder.path().join("ordered.toml"), ordered).expect("written");
    let (code, report) = doctor_with(&domain, "clock", &["--from", "ordered.toml"]);
    assert_eq!((code, &report["verdict"]), (Some(0), &Value::from("alike")), "{report}");
    assert_eq!(report["states"]["equal"], true, "{report}");
}

#[test]
fn a_deterministic_server_answers_as_it_was_recorded() {
    let domain = Domain::start();
    domain.wait_healthy();
    record(&domain, "bank", || {
        let mut bank = domain.bank(0);
        for number in 0..50 {
            bank.increment(&format!("r-{number}")).expect("it answers");
        }
    });
    let (code, report) = doctor(&domain, "bank");
    assert_eq!((code, &report["verdict"]), (Some(0), &Value::from("alike")), "{report}");
    let figures = [&report["requests"], &report["compared"], &report["as_recorded"]];
    assert_eq!(figures, [&Value::from(50); 3], "{report}");
    let log = domain.quorba(&["-o", "json", "group", "log", "bank", "-n", "3"]);
    let log = json(&log);
    assert_eq!(log.len(), 3);
    assert_eq!(log[2]["number"], 50);
    assert_eq!(log[2]["operation"], "increment");
    assert_eq!(log[2]["outcome"]["status"], "no-exception");
    assert_eq!(log[2]["gateway"], "n1");
    let other = domain.quorba(&["group", "log", "bank", "--node", "n9"]);
    assert_eq!(other.status.code(), Some(3), "{}", text(&other.stderr));
    let wrong = domain.quorba(&["group", "doctor", "bank", "--log", "quorba.toml"]);
    assert_eq!(wrong.status.code(), Some(1), "{}", text(&wrong.stderr));
    assert!(text(&wrong.stderr).contains("line 1 is not that of a recording"));
}

#[test]
fn a_durable_log_is_read_from_the_disk_when_nothing_runs() {
    let mut domain = Domain::start_with("durable = true\n");
    let pids = stage::pids(&domain.wait_healthy());
    let mut bank = domain.bank(0);
    for number in 0..20 {
        bank.increment(&format!("r-{number}")).expect("it answers");
    }
    domain.end(&pids);
    let on_disk = |node: &str| {
        json(&domain.quorba(&["-o", "json", "group", "log", "bank", "--disk", "--node", node]))
    };
    let logs = ["n1", "n2", "n3"].map(on_disk);
    // What was acknowledged is on two disks; the third may have been a little behind.
    let is_whole = |log: &Vec<Value>| log.len() == 20;
    assert!(logs.iter().filter(|log| is_whole(log)).count() >= 2, "{logs:?}");
    let whole = logs.iter().position(is_whole).expect("two of three");
    let last = &logs[whole][19];
    assert_eq!((&last["number"], &last["operation"]), (&20.into(), &"increment".into()));
    let numbers =
        |log: &[Value]| -> Vec<Value> { log.iter().map(|one| one["number"].clone()).collect() };
    for log in &logs {
        assert_eq!(numbers(log), numbers(&logs[whole][..log.len()]), "a beginning of the same");
    }
    let node = ["n1", "n2", "n3"][whole];
    let record = ["group", "record", "bank", "--disk", "--node", node, "--to", "log"];
    let said = domain.quorba(&record);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let (code, report) = doctor(&domain, "bank");
    assert_eq!((code, &report["verdict"]), (Some(0), &Value::from("alike")), "{report}");
    assert_eq!(report["compared"], 20, "{report}");
    let recorded = std::fs::read_to_string(domain.folder.path().join("log")).expect("read");
    let head: Value = recorded.lines().next().expect("a line").parse().expect("JSON");
    assert_eq!(head["node"], node);
    // A bit of the tenth request is another one.
    let segments = domain.folder.path().join(format!("quorba-state/{node}/log"));
    let files = std::fs::read_dir(segments).expect("a log").map(|entry| entry.expect("one").path());
    let mut files: Vec<_> = files.filter(|path| path.extension() == Some("seg".as_ref())).collect();
    files.sort();
    let mut bytes = std::fs::read(&files[0]).expect("read");
    let at = bytes.windows(4).position(|four| four == b"r-10").expect("it is there");
    bytes[at] ^= 1;
    std::fs::write(&files[0], bytes).expect("written");
    for asked in [
        &["group", "log", "bank", "--disk", "--node", node][..],
        &["group", "record", "bank", "--disk", "--node", node, "--to", "part"],
    ] {
        let (code, told) = refused(&domain, asked);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains(&format!("node {node}")), "{told}");
        let file = files[0].strip_prefix(domain.folder.path()).expect("it is there");
        assert!(told.contains(&file.display().to_string()), "{told}");
        assert!(told.contains("reading of this file ended there"), "{told}");
    }
    let part = std::fs::read_to_string(domain.folder.path().join("part")).expect("read");
    assert!(part.lines().count() < 21 && !part.contains("\"missing\""), "it has no end");
}

#[test]
fn a_change_of_the_group_is_no_request_that_is_missing() {
    use std::os::unix::fs::PermissionsExt;
    let domain = Domain::start();
    domain.wait_healthy();
    record(&domain, "bank", || {
        let mut bank = domain.bank(0);
        for number in 0..10 {
            bank.increment(&format!("r-{number}")).expect("it answers");
        }
        for style in ["semi-active", "active"] {
            assert!(domain.quorba(&["group", "style", "bank", style]).status.success());
        }
        for number in 10..20 {
            bank.increment(&format!("r-{number}")).expect("it answers");
        }
    });
    let file = std::fs::metadata(domain.folder.path().join("log")).expect("written");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    let log = domain.quorba(&["-o", "json", "group", "log", "bank"]);
    assert_eq!((json(&log).len(), text(&log.stderr)), (20, String::new()));
    let new = ["-o", "json", "--timeout", "500ms", "group", "log", "bank", "-n", "0", "-f"];
    let followed = domain.quorba(&new);
    assert!(followed.status.success());
    assert_eq!(json(&followed), [Value::Null; 0], "nothing is new");
    let (code, told) = refused(&domain, &["group", "record", "bank", "--disk", "--to", "x"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(!domain.folder.path().join("x").exists());
}

#[test]
fn a_member_is_removed_and_added_while_the_domain_works() {
    let domain = Domain::start();
    let pids = stage::pids(&domain.wait_healthy());
    let mut bank = domain.bank(0);
    let mut call = |number: u64| bank.increment(&format!("r-{number}")).expect("it answers");
    call(1);
    let group = |arguments: &[&str]| {
        let output = domain.quorba(&[&["-o", "json", "group"], arguments].concat());
        (output.status.code(), json(&output).into_iter().next().unwrap_or_default())
    };
    let (code, said) = group(&["remove", "bank", "n2"]);
    assert_eq!((code, &said["members"][1]["state"]), (Some(0), &"removed".into()), "{said}");
    call(2);
    // Its node is not missed, and its server was replaced.
    let status = domain.wait_healthy();
    let server =
        |status: &Value| status["nodes"][1]["status"]["groups"][0]["server"]["pid"].clone();
    stage::wait_until("another server waits", || {
        let status = domain.wait_healthy();
        server(&status)
            .as_i64()
            .is_some_and(|pid| pid != i64::from(pids[3].1.as_raw_nonzero().get()))
    });
    assert_eq!(group(&["remove", "bank", "n2"]).0, Some(1), "{status}");
    assert_eq!(group(&["remove", "bank", "n9"]).0, Some(3));
    assert_eq!(group(&["remove", "bank", "n1"]).0, Some(0));
    assert_eq!(group(&["remove", "bank", "n3"]).0, Some(1), "the last one stays");
    call(3);
    for node in ["n1", "n2"] {
        assert_eq!(group(&["add", "bank", node]).0, Some(0));
    }
    stage::wait_until("all are in", || {
        let (_, status) = group(&["ls"]);
        let members = status["members"].as_array().cloned().unwrap_or_default();
        members.iter().all(|member| member["state"] == "in")
    });
    call(4);
    for node in 0..3 {
        assert_eq!(domain.bank(node).history(0, 100).expect("it answers").len(), 4);
    }
}

/// The exit code, and what was said on standard error.
fn refused(domain: &Domain, arguments: &[&str]) -> (Option<i32>, String) {
    let output = domain.quorba(arguments);
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_node_that_is_silent_and_a_group_that_nodes_lack_are_named() {
    let domain = Domain::start();
    let pids = stage::pids(&domain.wait_healthy());
    let folder = domain.folder.path();
    assert!(domain.quorba(&["backup", "bank", "--to", "bank.backup"]).status.success());
    let (_, third) = pids.iter().find(|(name, _)| name == "n3").expect("it runs");
    rustix::process::kill_process(*third, rustix::process::Signal::KILL).expect("it runs");
    stage::wait_until("n3 is gone", || {
        let (_, told) = refused(&domain, &["group", "log", "bank", "--node", "n3"]);
        told.contains("node n3: not running here")
    });
    for asked in [
        &["group", "log", "bank", "--node", "n3"][..],
        &["group", "record", "bank", "--node", "n3", "--to", "x"],
        &["backup", "bank", "--node", "n3", "--to", "x"],
        &["restore", "bank.backup", "--group", "bank", "--node", "n3"],
    ] {
        let (code, told) = refused(&domain, asked);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains("node n3: not running here"), "{told}");
    }
    assert!(!folder.join("x").exists());
    let file = std::fs::read_to_string(folder.join("quorba.toml")).expect("read");
    let more = "[group.newone]\nlisten = 21000\nmembers = [\"n1\"]\nconnect = \"127.0.0.1:9\"\n";
    std::fs::write(folder.join("other.toml"), file + more).expect("written");
    for command in ["log", "show", "advise", "record"] {
        let asked = ["group", command, "newone", "-c", "other.toml", "--to", "x"];
        let count = if command == "record" { 7 } else { 5 };
        let (code, told) = refused(&domain, &asked[..count]);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains("has no group newone"), "{told}");
    }
    for command in ["promote", "add", "remove", "release"] {
        let (code, told) = refused(&domain, &["group", command, "bank", "n9"]);
        assert_eq!(code, Some(3), "{told}");
        assert!(told.contains("QB-CLI-002") && told.contains("nodes: n1, n2, n3"), "{told}");
    }
    let (code, told) = refused(&domain, &["group", "style", "bank", "foo"]);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("active-with-voting") && told.contains("stateless"), "{told}");
    let (code, told) = refused(&domain, &["group", "advise", "bank", "--timeout", "1s"]);
    assert_eq!(code, Some(4), "{told}");
}

#[test]
fn a_command_about_one_group_judges_that_group() {
    let domain = Domain::start_group(&format!(
        "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
         state_object = \"bank\"\nobject_key = \"bank\"\n\
         [group.bad]\nlisten = {}\nmembers = [\"n1\"]\nserver = [\"false\", \"{{port}}\"]\n\
         restart_backoff_ms = 1\n",
        stage::free_ports(21_000, 1)
    ));
    let healthy = domain.quorba(&["status", "bank", "--wait-healthy", "60s"]);
    assert_eq!(healthy.status.code(), Some(0), "{}", text(&healthy.stderr));
    stage::wait_until("the server is in quarantine", || {
        text(&domain.quorba(&["status"]).stdout).contains("is quarantined")
    });
    assert_eq!(domain.quorba(&["status"]).status.code(), Some(2));
    assert_eq!(domain.quorba(&["group", "show", "bank"]).status.code(), Some(0));
    let bad = domain.quorba(&["group", "show", "bad"]);
    assert_eq!(bad.status.code(), Some(2));
    let shown = text(&bad.stdout);
    assert!(shown.contains("! group bad: the server on n1 is quarantined"), "{shown}");
    assert!(!shown.contains("its server has not joined yet\nn2"), "{shown}");
    let row = shown.lines().find(|line| line.starts_with("n1")).expect("a row");
    assert!(!row.contains("has not joined"), "{row}");
}
