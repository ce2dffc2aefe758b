//! A request at which all servers hang, with real nodes and servers: who is told of it, and how an
//! operator gives it up.

mod stage;

use quorba_giop::MinorCode;
use quorba_orb::CallError;
use serde_json::Value;
use stage::{Domain, QUORBA, text};

/// Banks whose changes take eight seconds: late, and not dead.
fn slow_bank(style: &str) -> Domain {
    Domain::start_group(&format!(
        "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\", \"--delay-us\", \
         \"8000000\"]\nstate_object = \"bank\"\nobject_key = \"bank\"\nstuck_ms = 300\n\
         style = \"{style}\"\n"
    ))
}

/// The number of the request that status calls stuck, with the reason in words.
fn stuck(domain: &Domain) -> Option<(String, String)> {
    let output = domain.quorba(&["-o", "json", "status", "bank"]);
    let said: Value = serde_json::from_slice(&output.stdout).ok()?;
    let finding = said["findings"].as_array()?.iter().find(|one| one["fact"] == "stuck")?;
    let next = finding["next"].as_str()?;
    let number = next.split("group skip bank ").nth(1)?.split(' ').next()?;
    Some((number.to_owned(), finding["what"].as_str()?.to_owned()))
}

#[test]
fn a_request_at_which_all_servers_hang_is_shown_and_given_up() {
    given_up("active");
}

/// The client's address is known at another node than the one whose server hangs.
#[test]
fn so_is_one_at_which_the_leader_hangs() {
    given_up("warm-passive");
}

fn given_up(style: &str) {
    let domain = slow_bank(style);
    let pids = stage::pids(&domain.wait_healthy());
    let mut bank = domain.client(1, b"bank");
    let caller = std::thread::spawn(move || {
        bank.call("increment", |arguments| arguments.write_string(b"slow")).map(|_| ())
    });
    let mut found = None;
    stage::wait_until("status shows it", || {
        found = stuck(&domain);
        found.is_some()
    });
    let (number, reason) = found.expect("just seen");
    assert!(
        reason.contains("(increment on bank") && reason.contains("127.0.0.1 at n2"),
        "{reason}"
    );
    let wrong = domain.quorba(&["group", "skip", "bank", "99999"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("no request with number 99999"), "{wrong:?}");
    let skipped = domain.quorba(&["-o", "json", "group", "skip", "bank", &number]);
    assert!(skipped.status.success(), "{skipped:?}");
    let said: Value = serde_json::from_slice(&skipped.stdout).expect("JSON");
    assert_eq!(said["skipped"].to_string(), number);
    let told = caller.join().expect("it ends").expect_err("no server has answered");
    let CallError::System(exception) = &told else { panic!("{told}") };
    assert_eq!(MinorCode::from_minor(exception.minor), Some(MinorCode::Skipped));
    let log = domain.quorba(&["group", "log", "bank"]);
    assert!(text(&log.stdout).contains("SKIPPED"), "{}", text(&log.stdout));
    // The servers finish it, are found to be equal, and nobody was ended.
    let after = stage::pids(&domain.wait_healthy());
    assert_eq!(after, pids);
    let status = text(&domain.quorba(&["status", "bank"]).stdout);
    assert!(status.contains("ended without a reply") && status.contains("127.0.0.1"), "{status}");
    let lines = |told: &str| {
        let lines = told.lines().filter(|line| line.contains("the request has no reply"));
        lines.filter(|line| line.contains("increment")).count()
    };
    let told = domain.told_once("a line of each node", |told| lines(told) >= 3);
    assert_eq!(lines(&told), 3, "once a node: {told}");
}

#[test]
fn where_nobody_is_in_nothing_can_be_given_up_and_it_is_told_why() {
    let domain = Domain::start_group(
        "[group.bank]\nlisten = {listen}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"/bin/false\", \"{port}\"]\nobject_key = \"bank\"\n",
    );
    stage::wait_until("status says that nobody is in", || {
        let output = domain.quorba(&["-o", "json", "status", "bank"]);
        text(&output.stdout).contains("\"nobody-in\"")
    });
    let output = domain.quorba(&["group", "skip", "bank", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("QB-CLI-014"), "{said}");
    assert!(said.contains("no member of group bank is in"), "{said}");
}
