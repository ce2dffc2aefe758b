//! The bank over the wire: every operation, its state, and a load that is accounted for.

use std::path::Path;
use std::time::Duration;

use quorba_demo::accounting::{account, read};
use quorba_demo::bank::books::{INSUFFICIENT_FUNDS_ID, NO_SUCH_ACCOUNT_ID};
use quorba_demo::bank::ledger::{Ledger, LedgerError};
use quorba_demo::bank::servant::{Bank, CHECKPOINTABLE_ID, Faults, INVALID_STATE_ID, LEDGER_ID};
use quorba_demo::load::{Load, LoadOptions};
use quorba_demo::record::{self, CallRecord, Recording, Verdict};
use quorba_orb::giop::{Completion, ExceptionKind, SystemException, Version};
use quorba_orb::{Client, ClientOptions, Reference, RunningServer, Server, ServerOptions};

const STATE_BYTES_MAX: usize = 1 << 20;

fn start() -> RunningServer {
    let server = Server::bind("127.0.0.1:0", ServerOptions::default()).expect("a port");
    let bank = Bank::new(Faults::default(), STATE_BYTES_MAX);
    server.with("bank", bank).start().expect("started")
}

fn client(server: &RunningServer, version: Version) -> Client {
    let options = ClientOptions { version, ..ClientOptions::default() };
    Client::new(&Reference::direct(server.address(), "bank"), options)
}

fn ledger(server: &RunningServer) -> Ledger {
    Ledger::new(client(server, Version::V1_2))
}

fn raised<T>(id: &str) -> Result<T, LedgerError> {
    Err(LedgerError::Raised(id.to_owned()))
}

#[test]
fn every_operation_in_every_version() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let server = start();
        let mut bank = Ledger::new(client(&server, version));
        bank.open("bob", "r0").expect("opened");
        bank.open("alice", "r1").expect("opened");
        assert_eq!(bank.deposit("alice", 100, "r2"), Ok(100));
        assert_eq!(bank.deposit("carol", 1, "r3"), raised(NO_SUCH_ACCOUNT_ID));
        assert_eq!(bank.transfer("alice", "bob", 60, "r4"), Ok(()));
        assert_eq!(bank.transfer("alice", "bob", 60, "r5"), raised(INSUFFICIENT_FUNDS_ID));
        assert_eq!(bank.increment("r6"), Ok(1));
        bank.note("two words").expect("sent");
        assert_eq!(bank.balance("alice"), Ok(40));
        assert_eq!(bank.balance("nobody"), raised(NO_SUCH_ACCOUNT_ID));
        assert_eq!(bank.accounts(), Ok(vec!["alice".to_owned(), "bob".to_owned()]));
        assert_eq!(bank.counter(), Ok(1));
        assert_eq!(bank.executed(), Ok(6));
        let page = bank.history(3, 2).expect("a page");
        let words: Vec<(u64, &str, &str, &str, &str, i64)> = (page.iter())
            .map(|e| (e.number, &*e.reference, &*e.operation, &*e.account, &*e.other, e.amount))
            .collect();
        assert_eq!(
            words,
            [(3, "r4", "transfer", "alice", "bob", 60), (4, "r6", "increment", "", "", 0)]
        );
        assert_eq!(bank.history(99, 2), Ok(Vec::new()));
    }
}

#[test]
fn a_state_moves_to_another_bank_octet_by_octet() {
    let (one, two) = (start(), start());
    let (mut one, mut two) = (ledger(&one), ledger(&two));
    one.open("alice", "r0").expect("opened");
    one.deposit("alice", 5, "r1").expect("deposited");
    two.open("something else", "x").expect("opened");
    let state = one.state().expect("a state");
    two.set_state(&state).expect("taken");
    assert_eq!(two.state(), Ok(state.clone()));
    assert_eq!(two.executed(), Ok(2));

    assert_eq!(two.set_state(&state[..state.len() - 1]), raised(INVALID_STATE_ID));
    let too_large = vec![b' '; STATE_BYTES_MAX + 1];
    let refused =
        SystemException { kind: ExceptionKind::Marshal, minor: 0, completed: Completion::No };
    assert_eq!(two.set_state(&too_large), Err(LedgerError::System(refused)));
    assert_eq!(two.state(), Ok(state));
}

#[test]
fn what_the_bank_is_and_what_it_refuses() {
    let server = start();
    let mut client = client(&server, Version::V1_2);
    for id in [LEDGER_ID, CHECKPOINTABLE_ID] {
        assert!(client.is_a(id).expect("an answer"), "{id}");
    }
    assert!(!client.is_a("IDL:Bank/Vault:1.0").expect("an answer"));
    let mut bank = ledger(&server);
    assert!(client.call("deposit", |_| {}).is_err());
    assert!(client.call("rob", |_| {}).is_err());
    assert!(client.call("open", |out| (0..2).for_each(|_| out.write_string(&[0xff]))).is_err());
    assert_eq!(bank.executed(), Ok(0));
}

fn load(server: &RunningServer, record: Option<&Path>) -> LoadOptions {
    LoadOptions {
        reference: format!("corbaloc:iiop:1.2@{}/bank", server.address()),
        clients: 4,
        calls_per_s: 0,
        accounts: 5,
        oneway_percent: 10,
        seed: 1,
        name: "c".to_owned(),
        ft_request: false,
        call_timeout: Duration::from_secs(60),
        record: record.map(Path::to_owned),
    }
}

fn work(load: &Load, calls: u64) {
    while load.counts().requests < calls {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Until what was sent without asking for a reply has been executed, too.
fn settle(server: &RunningServer, recording: &Recording) {
    let executed = |record: &&CallRecord| {
        record.changes() && matches!(record.verdict(), Verdict::Acknowledged | Verdict::Sent)
    };
    let due = recording.records.iter().filter(executed).count() as u64;
    let mut bank = ledger(server);
    while bank.executed() != Ok(due) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_load_is_accounted_for_from_memory() {
    let server = start();
    let mut load = Load::start(&load(&server, None)).expect("started");
    work(&load, 2_000);
    let result = load.stop();
    settle(&server, &result.recording);
    let replica = read::replica("n1", server.address().port()).expect("read");
    let account = account(std::slice::from_ref(&result.recording), &[replica]);
    assert!(account.is_clean(), "{account:?}");
    assert_eq!(account.requests, result.counts.requests);
    assert_eq!(account.requests, account.acknowledged + account.oneways_executed);
    assert!(account.oneways_executed > 0);
}

#[test]
fn a_load_is_accounted_for_from_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.ndjson");
    let server = start();
    let mut load = Load::start(&load(&server, Some(&path))).expect("started");
    work(&load, 2_000);
    let result = load.stop();
    assert_eq!(load.record_fault(), None);
    let recording = record::read(&path).expect("a recording");
    settle(&server, &recording);
    assert_eq!(recording.records.len() as u64, result.counts.requests);
    let replica = read::replica("n1", server.address().port()).expect("read");
    let account = account(&[recording], &[replica]);
    assert!(account.is_clean(), "{account:?}");
}

#[test]
fn a_server_that_stops_is_told_by_refusals() {
    let server = start();
    let port = server.address().port();
    let mut load = Load::start(&load(&server, None)).expect("started");
    work(&load, 500);
    server.stop();
    // Refused from here on: nobody listens any more.
    let refused = load.counts().refused;
    while load.counts().refused < refused + 10 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let result = load.stop();
    assert!(result.counts.refused >= 10);
    assert!(read::replica("n1", port).is_err());
}

#[test]
fn a_load_without_a_bank_can_be_stopped() {
    let server = start();
    let mut options = load(&server, None);
    options.reference = "corbaloc:iiop:1.2@127.0.0.1:1/bank".to_owned();
    drop(server);
    let mut load = Load::start(&options).expect("started");
    work(&load, 3);
    let result = load.stop();
    assert_eq!(result.counts.acknowledged, 0);
    assert_eq!(result.longest_gap, Duration::ZERO);
}

#[test]
fn a_reference_that_is_none_is_refused_at_once() {
    let server = start();
    let mut options = load(&server, None);
    options.reference = "http://127.0.0.1/bank".to_owned();
    assert!(Load::start(&options).is_err());
}
