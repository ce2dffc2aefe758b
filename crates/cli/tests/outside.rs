//! A replicated shop that has its purchases booked by a plain bank outside of the domain. Servers,
//! nodes and the bank are processes; some of them die, and the bank hangs.

mod stage;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quorba_demo::bank::ledger::Ledger;
use quorba_demo::shop::Customer;
use quorba_lab::skips::skip;
use quorba_orb::giop::{Completion, ExceptionKind, MinorCode, QUORBA_VMCID, corbaloc};
use quorba_orb::{CallError, Client, ClientOptions, Reference};
use rustix::process::{Pid, Signal, kill_process};
use stage::{Domain, LONG, QUORBA, free_ports, pids, wait_until};

/// Where this file's banks listen.
const FIRST_PORT: u16 = 1_500;

/// A server that is not replicated.
struct Bank {
    process: Child,
    address: SocketAddr,
}

impl Bank {
    fn start(program: Option<&str>) -> Self {
        let port = free_ports(FIRST_PORT, 1);
        let address = ([127, 0, 0, 1], port).into();
        let mut command = Command::new(program.unwrap_or(QUORBA));
        match program {
            Some(_) => command.args(["-ORBendPoint", &format!("giop:tcp:{address}")]),
            None => command.args(["servant", "bank", "--port", &port.to_string()]),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("the bank starts");
        wait_until("the bank listens", || TcpStream::connect(address).is_ok());
        Self { process, address }
    }

    fn ledger(&self) -> Ledger {
        let options = ClientOptions { call_timeout: Some(LONG), ..ClientOptions::default() };
        Ledger::new(Client::new(&Reference::direct(self.address, b"bank"), options))
    }

    /// What was booked, as operation and reference.
    fn bookings(&self) -> Vec<(String, String)> {
        let mut ledger = self.ledger();
        let mut found = Vec::new();
        loop {
            let page = ledger.history(found.len() as u64, 500).expect("it answers");
            if page.is_empty() {
                return found;
            }
            found.extend(page.into_iter().map(|entry| (entry.operation, entry.reference)));
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }

    /// It answers nothing any more.
    fn stop(&self) {
        self.signal(Signal::STOP);
        let pid = Pid::from_child(&self.process);
        wait_until("it has stopped", || stage::has_stopped(pid));
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program of the examples, if it is built.
fn example(path: &str) -> Option<String> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("examples").join(path);
    program.is_file().then(|| program.display().to_string())
}

/// A shop on three nodes. `of_group` and `of_bank` are more lines of these tables.
fn shop(program: Option<&str>, reference: &str, of_group: &str, of_bank: &str) -> Domain {
    let mut server = match program {
        Some(program) => vec![program, "-ORBendPoint", "giop:tcp:127.0.0.1:{port}"],
        None => vec![QUORBA, "servant", "shop", "--port", "{port}"],
    };
    server.extend(["--bank", "{url.bank}"]);
    Domain::start_group(&format!(
        "[group.shop]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = {server:?}\nstate_object = \"shop\"\nobject_key = \"shop\"\n\
         calls = [\"bank\"]\n{of_group}\n\
         [outside.bank]\nreference = \"{reference}\"\n{of_bank}\n"
    ))
}

fn customer(domain: &Domain, node: u16) -> Customer {
    Customer::new(domain.client(node, b"shop"))
}

fn orders(domain: &Domain, node: u16) -> Vec<String> {
    customer(domain, node).orders().expect("it answers")
}

fn is_in_doubt(error: &CallError) -> bool {
    let minor = QUORBA_VMCID | MinorCode::OutsideInDoubt.number();
    matches!(error, CallError::System(exception) if exception.kind == ExceptionKind::CommFailure
        && exception.minor == minor && exception.completed == Completion::Maybe)
}

/// Buys until told to stop; gives the references of the purchases that were made, and of those of
/// which the bank's part is not known.
fn buy_until(
    mut customer: Customer,
    who: u16,
    stop: &AtomicBool,
    bought: &AtomicU64,
) -> (Vec<String>, Vec<String>) {
    let (mut made, mut doubtful) = (Vec::new(), Vec::new());
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let reference = format!("{who}-{number}");
        match customer.buy(1, &reference) {
            Ok(_) => made.push(reference),
            Err(error) if is_in_doubt(&error) => doubtful.push(reference),
            Err(error) => panic!("{reference}: {error:?}"),
        }
        bought.fetch_add(1, Ordering::Relaxed);
    }
    (made, doubtful)
}

/// Servers of the shop die, and a node, while customers buy at the other two.
fn purchases_are_booked_once(of_group: &str, programs: (Option<&str>, Option<&str>)) {
    let bank = Bank::start(programs.0);
    bank.ledger().open("shop", "open").expect("opened");
    let reference = format!("corbaloc::{}/bank", bank.address);
    let domain = shop(programs.1, &reference, of_group, "");
    domain.wait_healthy();
    let (stop, bought) = (AtomicBool::new(false), AtomicU64::new(0));
    let more = |count| {
        let goal = bought.load(Ordering::Relaxed) + count;
        wait_until("purchases are made", || bought.load(Ordering::Relaxed) >= goal);
    };
    let customers: Vec<_> = (0..2).map(|node| (node, customer(&domain, node))).collect();
    let results: Vec<_> = std::thread::scope(|scope| {
        let (stop, bought) = (&stop, &bought);
        let begin = |(node, customer)| scope.spawn(move || buy_until(customer, node, stop, bought));
        let customers: Vec<_> = customers.into_iter().map(begin).collect();
        for turn in 0..3 {
            more(40);
            let of_node = format!("n{}", turn + 1);
            let health = domain.wait_healthy();
            let mut own = pids(&health).into_iter().filter(|(name, _)| *name == of_node);
            let (node, server) = (own.next().expect("a node"), own.next());
            // The last one dies as a whole.
            let (_, victim) = if turn < 2 { server.unwrap_or(node) } else { node };
            let _ = kill_process(victim, Signal::KILL);
        }
        more(40);
        stop.store(true, Ordering::Relaxed);
        customers.into_iter().map(|customer| customer.join().expect("no panic")).collect()
    });
    let bookings = bank.bookings();
    let times = |operation: &str, reference: &String| {
        bookings.iter().filter(|(o, r)| o == operation && r == reference).count()
    };
    for (made, doubtful) in results {
        for reference in made {
            assert_eq!(times("deposit", &reference), 1, "deposit for {reference}");
            assert_eq!(times("increment", &reference), 1, "increment for {reference}");
        }
        for reference in doubtful {
            assert!(times("deposit", &reference) <= 1, "deposit for {reference}");
            assert!(times("increment", &reference) <= 1, "increment for {reference}");
        }
    }
    assert_eq!(orders(&domain, 0), orders(&domain, 1), "the replicas heard the same");
}

#[test]
fn a_plain_bank_books_each_purchase_once_whoever_dies() {
    purchases_are_booked_once("", (None, None));
}

#[test]
fn a_plain_bank_books_each_purchase_of_a_leader_once_whoever_dies() {
    let passive = "style = \"warm-passive\"\ncheckpoint_requests = 20\n";
    purchases_are_booked_once(passive, (None, None));
}

#[test]
fn a_plain_bank_of_omniorb_books_each_purchase_of_shops_of_omniorb_once() {
    let programs = (example("omniorb-bank/bank_server"), example("omniorb-shop/shop_server"));
    let (Some(bank), Some(shop)) = programs else {
        let reason = "cargo xtask examples has not built omniorb-bank and omniorb-shop";
        skip("a_plain_bank_of_omniorb_books_each_purchase_of_shops_of_omniorb_once", reason);
        return;
    };
    purchases_are_booked_once("", (Some(&bank), Some(&shop)));
}

#[test]
fn a_bank_that_hangs_is_told_to_all_replicas_alike_and_one_that_is_gone_was_not_asked() {
    let bank = Bank::start(None);
    bank.ledger().open("shop", "open").expect("opened");
    // The reference may be an IOR, too.
    let url = format!("corbaloc::{}/bank", bank.address);
    let reference = corbaloc::parse(&url).expect("a reference").to_ior().to_string();
    let domain = shop(None, &reference, "", "reply_ms = 5000\nconnect_ms = 5000\n");
    domain.wait_healthy();
    assert_eq!(customer(&domain, 0).buy(1, "before").expect("the bank is well"), (1, 1));
    bank.stop();
    let error = customer(&domain, 1).buy(1, "meanwhile").expect_err("the bank hangs");
    assert!(is_in_doubt(&error), "{error:?}");
    bank.signal(Signal::CONT);
    wait_until("the bank does what it was asked", || bank.bookings().len() >= 4);
    assert_eq!(customer(&domain, 2).buy(1, "after").expect("the bank is well"), (3, 2));
    drop(bank);
    match customer(&domain, 0).buy(1, "never") {
        Err(CallError::System(exception)) => {
            let minor = QUORBA_VMCID | MinorCode::OutsideNotReached.number();
            assert_eq!((exception.kind, exception.minor), (ExceptionKind::NoResources, minor));
            assert_eq!(exception.completed, Completion::No);
        }
        other => panic!("a bank that is gone has answered {other:?}"),
    }
    let all: Vec<_> = (0..3).map(|node| orders(&domain, node)).collect();
    assert_eq!(all[0], ["before 1 1", "after 3 2"]);
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
}

/// A purchase while the bank hangs and the node that calls it, that of the leader, ends; with the
/// other two nodes.
fn buy_while_the_caller_ends(of_bank: &str) -> (Domain, Vec<u16>, Result<(i64, u64), CallError>) {
    let bank = Bank::start(None);
    bank.ledger().open("shop", "open").expect("opened");
    let reference = format!("corbaloc::{}/bank", bank.address);
    let domain = shop(None, &reference, "style = \"warm-passive\"\n", of_bank);
    let health = domain.wait_healthy();
    let leader = &health["nodes"][0]["status"]["groups"][0]["leader"];
    let leader = leader.as_str().expect("a leader").to_owned();
    let others: Vec<u16> = (0..3).filter(|node| leader != format!("n{}", node + 1)).collect();
    let here = others[0];
    assert_eq!(customer(&domain, here).buy(1, "before").expect("the bank is well"), (1, 1));
    bank.stop();
    let result = std::thread::scope(|scope| {
        let buys = scope.spawn(|| customer(&domain, here).buy(1, "meanwhile"));
        wait_until("the leader calls the bank", || {
            let status = domain.quorba(&["-o", "json", "status"]).stdout;
            let status: serde_json::Value = serde_json::from_slice(&status).expect("JSON");
            let calls = &status["nodes"][usize::from(here)]["status"]["groups"][0]["calls"];
            calls["made"].as_u64() == Some(3)
        });
        // Its node's process stands before its server's.
        let node = pids(&health).into_iter().find(|(name, _)| *name == leader);
        kill_process(node.expect("it runs").1, Signal::KILL).expect("it runs");
        if of_bank.contains("repeat") {
            // Whatever it was asked first, it is asked again.
            bank.signal(Signal::CONT);
        }
        buys.join().expect("no panic")
    });
    bank.signal(Signal::CONT);
    (domain, others, result)
}

#[test]
fn the_end_of_the_node_that_calls_is_a_doubt_of_which_all_replicas_hear() {
    let (domain, others, result) = buy_while_the_caller_ends("");
    let error = result.expect_err("nobody knows what the bank did");
    assert!(is_in_doubt(&error), "{error:?}\n{}", domain.told());
    for node in others {
        assert_eq!(orders(&domain, node), ["before 1 1"], "at n{}", node + 1);
    }
}

#[test]
fn a_call_whose_node_ends_is_made_again_if_that_does_no_harm() {
    let (domain, others, result) = buy_while_the_caller_ends("on_doubt = \"repeat\"\n");
    let (balance, number) = result.expect("it is made again");
    // This bank does not know the call again.
    assert!((2..=3).contains(&balance), "{balance}");
    for node in others {
        let expected = ["before 1 1".to_owned(), format!("meanwhile {balance} {number}")];
        assert_eq!(orders(&domain, node), expected, "at n{}", node + 1);
    }
}
