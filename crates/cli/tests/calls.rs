//! Replicated servers that call other groups: a shop has its purchases booked by a bank, and two
//! shops call each other in a cycle. Servers and nodes are processes, and some of them die.
//! Quorba's own shop executes one call after the other; omniORB's has threads.

mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quorba_demo::bank::ledger::Ledger;
use quorba_demo::shop::Customer;
use quorba_lab::skips::skip;
use quorba_orb::giop::{ExceptionKind, MinorCode, QUORBA_VMCID};
use quorba_orb::{CallError, Client, ClientOptions, Reference};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stage::{LONG, QUORBA, free_ports, up, wait_until};
use tempfile::TempDir;

/// Where this file's domains look for ports: beside those of the other tests.
const FIRST_PORT: u16 = 22_000;
const NODES: u16 = 3;
/// The groups, each with what stands in its command behind the port.
const GROUPS: [(&str, &[&str]); 4] = [
    ("bank", &[]),
    ("shop", &["--bank", "{call.bank}"]),
    ("left", &["--bank", "{call.bank}", "--partner", "{call.right}"]),
    ("right", &["--bank", "{call.bank}", "--partner", "{call.left}"]),
];
const PORTS: u16 = NODES * (2 + GROUPS.len() as u16);

struct Domain {
    folder: TempDir,
    up: Child,
    first_port: u16,
}

const NO_SHOP: &str = "cargo xtask examples has not built omniorb-shop";

/// The shop of `examples/omniorb-shop`, if it is built.
fn omniorb_shop() -> Option<String> {
    let examples = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("examples");
    let program = examples.join("omniorb-shop/shop_server");
    program.is_file().then(|| program.display().to_string())
}

/// The table of a group; `more` stands in those of groups that call, and `shop` is another program
/// for their servers.
fn table(name: &str, flags: &[&str], listen: u16, more: &str, shop: Option<&str>) -> String {
    let role = if name == "bank" { "bank" } else { "shop" };
    let mut command = match shop.filter(|_| role == "shop") {
        Some(program) => vec![program, "-ORBendPoint", "giop:tcp:127.0.0.1:{port}"],
        None => vec![QUORBA, "servant", role, "--port", "{port}"],
    };
    let references: Vec<String> = flags
        .iter()
        .map(|flag| {
            let key = if *flag == "{call.bank}" { "bank" } else { "shop" };
            let is_reference = flag.starts_with('{');
            if is_reference { format!("corbaloc::{flag}/{key}") } else { (*flag).to_owned() }
        })
        .collect();
    command.extend(references.iter().map(String::as_str));
    let called: Vec<&str> = flags.iter().filter_map(|f| f.strip_prefix("{call.")).collect();
    let called: Vec<&str> = called.iter().filter_map(|name| name.strip_suffix('}')).collect();
    let calls =
        if called.is_empty() { String::new() } else { format!("calls = {called:?}\n{more}") };
    format!(
        "[group.{name}]\nlisten = {listen}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = {command:?}\nstate_object = \"{role}\"\nobject_key = \"{role}\"\n{calls}"
    )
}

impl Domain {
    /// With these lines in the tables of groups that call, and another program for their servers.
    fn start(more: &str, shop: Option<&str>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let first_port = free_ports(FIRST_PORT, PORTS);
        let mut text = "[domain]\nid = \"calls\"\nkey_file = \"domain.key\"\n".to_owned();
        for index in 0..NODES {
            text += &format!(
                "[node.n{}]\nhost = \"127.0.0.1\"\nring_port = {}\nadmin = \"127.0.0.1:{}\"\n\
                 gateway_port_offset = {index}\n",
                index + 1,
                first_port + index,
                first_port + NODES + index,
            );
        }
        for (index, (name, flags)) in GROUPS.iter().enumerate() {
            let listen = first_port + NODES * (2 + index as u16);
            text += &table(name, flags, listen, more, shop);
        }
        fs::write(folder.path().join("quorba.toml"), text).expect("written");
        let key = folder.path().join("domain.key");
        fs::write(&key, "7e".repeat(32)).expect("written");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("allowed");
        let up = up(folder.path());
        let domain = Self { folder, up, first_port };
        domain.wait_healthy();
        domain
    }

    /// A client at the gateway of one node.
    fn client(&self, group: &str, node: u16) -> Client {
        let index = GROUPS.iter().position(|(name, _)| *name == group).expect("a group") as u16;
        let address = ([127, 0, 0, 1], self.first_port + NODES * (2 + index) + node).into();
        let key: &[u8] = if group == "bank" { b"bank" } else { b"shop" };
        let call_timeout = Some(LONG);
        let options = ClientOptions { call_timeout, ..ClientOptions::default() };
        Client::new(&Reference::direct(address, key), options)
    }

    fn bank(&self, node: u16) -> Ledger {
        Ledger::new(self.client("bank", node))
    }

    fn customer(&self, group: &str, node: u16) -> Customer {
        Customer::new(self.client(group, node))
    }

    fn wait_healthy(&self) -> Value {
        let mut command = Command::new(QUORBA);
        command.args(["-o", "json", "status", "--wait-healthy", "60s"]);
        let output = command.current_dir(self.folder.path()).output().expect("quorba runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let read = |name| fs::read_to_string(self.folder.path().join(name)).expect("read");
        assert!(output.status.success(), "{told}\n{}\n{}", read("out"), read("err"));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Kills the server of a group on a node.
    fn kill_server(&self, health: &Value, group: &str, node: usize) {
        let groups = health["nodes"][node]["status"]["groups"].as_array().expect("a list");
        let status = groups.iter().find(|status| status["name"] == group).expect("the group");
        let pid = status["server"]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(Pid::from_raw).expect("a process id");
        // It may have ended since.
        let _ = kill_process(pid, Signal::KILL);
    }

    /// What the bank has booked for the shop, as one of its replicas tells it.
    fn bookings(&self, node: u16) -> Vec<(String, String)> {
        let mut bank = self.bank(node);
        let mut found = Vec::new();
        loop {
            let page = bank.history(found.len() as u64, 500).expect("it answers");
            if page.is_empty() {
                return found;
            }
            found.extend(page.into_iter().map(|entry| (entry.operation, entry.reference)));
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

/// Buys until told to stop; gives the references of the purchases that were answered.
fn buy_until(
    mut customer: Customer,
    who: u16,
    stop: &AtomicBool,
    bought: &AtomicU64,
) -> Vec<String> {
    let mut references = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let reference = format!("{who}-{number}");
        match customer.buy(1, &reference) {
            Ok(_) => references.push(reference),
            // The gateway's node lives, so nothing is in doubt.
            Err(error) => panic!("{reference}: {error:?}"),
        }
        bought.fetch_add(1, Ordering::Relaxed);
    }
    references
}

/// Servers of both groups die, one after the other, while customers buy.
fn purchases_are_booked_once(more: &str, shop: Option<&str>) {
    let domain = Domain::start(more, shop);
    domain.bank(0).open("shop", "open").expect("opened");
    let (stop, bought) = (AtomicBool::new(false), AtomicU64::new(0));
    let customers: Vec<_> = (0..NODES).map(|node| (node, domain.customer("shop", node))).collect();
    let answered: Vec<String> = std::thread::scope(|scope| {
        let (stop, bought) = (&stop, &bought);
        let begin = |(node, customer)| scope.spawn(move || buy_until(customer, node, stop, bought));
        let customers: Vec<_> = customers.into_iter().map(begin).collect();
        for (turn, group) in ["shop", "bank", "shop", "bank"].into_iter().enumerate() {
            let goal = bought.load(Ordering::Relaxed) + 50;
            wait_until("purchases are made", || bought.load(Ordering::Relaxed) >= goal);
            domain.kill_server(&domain.wait_healthy(), group, turn % usize::from(NODES));
        }
        let goal = bought.load(Ordering::Relaxed) + 50;
        wait_until("purchases are made", || bought.load(Ordering::Relaxed) >= goal);
        stop.store(true, Ordering::Relaxed);
        customers.into_iter().flat_map(|customer| customer.join().expect("no panic")).collect()
    });
    domain.wait_healthy();
    let orders = domain.customer("shop", 0).orders().expect("it answers");
    assert_eq!(orders.len(), answered.len(), "an order for each purchase");
    for node in 0..NODES {
        let bookings = domain.bookings(node);
        for operation in ["deposit", "increment"] {
            for reference in &answered {
                let is_it = |(o, r): &&(String, String)| o == operation && r == reference;
                let count = bookings.iter().filter(is_it).count();
                assert_eq!(count, 1, "{operation} for {reference} at n{}", node + 1);
            }
        }
        assert_eq!(bookings.len(), 1 + 2 * answered.len(), "and nothing else");
        assert_eq!(domain.customer("shop", node).orders().expect("it answers"), orders);
    }
    // Every replica heard the same: the numbers count up without a gap.
    for (index, order) in orders.iter().enumerate() {
        let number = format!("{0} {0}", index + 1);
        assert!(order.ends_with(&format!(" {number}")), "{order} is order {number}");
    }
}

#[test]
fn purchases_are_booked_once_whoever_dies() {
    purchases_are_booked_once("", None);
}

#[test]
fn purchases_are_booked_once_by_a_leader_whoever_dies() {
    purchases_are_booked_once("style = \"warm-passive\"\ncheckpoint_requests = 20\n", None);
}

#[test]
fn purchases_are_booked_once_by_shops_of_omniorb_whoever_dies() {
    let Some(shop) = omniorb_shop() else {
        skip("purchases_are_booked_once_by_shops_of_omniorb_whoever_dies", NO_SHOP);
        return;
    };
    purchases_are_booked_once("", Some(&shop));
    cycles_are_told(Some(&shop));
}

#[test]
fn shops_that_call_each_other_in_a_circle_are_told_so_and_go_on() {
    cycles_are_told(None);
}

fn cycles_are_told(shop: Option<&str>) {
    let domain = Domain::start("", shop);
    let cycle = |result: Result<u32, CallError>| match result {
        Err(CallError::System(exception)) => {
            let minor = QUORBA_VMCID | MinorCode::CallCycle.number();
            assert_eq!((exception.kind, exception.minor), (ExceptionKind::NoResources, minor));
        }
        other => panic!("a cycle has ended with {other:?}"),
    };
    let there = domain.customer("left", 0).pass_on(1, "there");
    assert_eq!(there.expect("no cycle"), 2);
    cycle(domain.customer("left", 1).pass_on(2, "and back"));
    // Two that begin at both ends: neither is a cycle by itself.
    for round in 0..20 {
        std::thread::scope(|scope| {
            let both = [("left", 0), ("right", 1)].map(|(group, node)| {
                let mut customer = domain.customer(group, node);
                scope.spawn(move || customer.pass_on(1, &format!("{group}-{round}")))
            });
            for result in both.map(|thread| thread.join().expect("no panic")) {
                match result {
                    Ok(shops) => assert_eq!(shops, 2),
                    refused => cycle(refused),
                }
            }
        });
    }
    let lefts: Vec<_> = (0..NODES)
        .map(|node| domain.customer("left", node).orders().expect("it answers"))
        .collect();
    assert!(lefts.windows(2).all(|pair| pair[0] == pair[1]), "{lefts:?}");
}

/// What lets a shop look at its partner in the middle of a call.
const LOOKS: &str = "readonly = [\"orders\"]\nserver_reply_ms = 3000\n";

#[test]
fn a_shop_of_omniorb_is_looked_at_in_the_middle_of_its_call_whoever_dies() {
    let Some(shop) = omniorb_shop() else {
        skip("a_shop_of_omniorb_is_looked_at_in_the_middle_of_its_call_whoever_dies", NO_SHOP);
        return;
    };
    let domain = Domain::start(LOOKS, Some(&shop));
    for round in 0..40_u32 {
        if round % 10 == 5 {
            let group = if round % 20 == 5 { "left" } else { "right" };
            domain.kill_server(&domain.wait_healthy(), group, (round / 10) as usize % 3);
        }
        let node = (round % u32::from(NODES)) as u16;
        let seen = domain.customer("left", node).reflect(&format!("look-{round}"));
        // Two lines of each call before, and what this one has begun with.
        assert_eq!(seen.expect("no cycle"), 2 * round + 1);
    }
    domain.wait_healthy();
    for group in ["left", "right"] {
        let orders: Vec<_> = (0..NODES)
            .map(|node| domain.customer(group, node).orders().expect("it answers"))
            .collect();
        assert!(orders.windows(2).all(|pair| pair[0] == pair[1]), "{orders:?}");
    }
    let told = domain.customer("right", 0).orders().expect("it answers");
    for (round, order) in told.iter().enumerate() {
        assert_eq!(*order, format!("look-{round} {}", 2 * round + 1), "as the shop was told");
    }
}

#[test]
fn a_server_that_executes_one_call_at_a_time_is_not_looked_at_and_nobody_waits_for_ever() {
    let domain = Domain::start(LOOKS, None);
    for round in 0..2 {
        match domain.customer("left", round).reflect("look") {
            Err(CallError::System(exception)) => {
                let minor = QUORBA_VMCID | MinorCode::CircleUnanswered.number();
                let said = (exception.kind, exception.minor);
                assert_eq!(said, (ExceptionKind::NoResources, minor));
            }
            other => panic!("it has ended with {other:?}"),
        }
    }
    assert_eq!(domain.customer("left", 0).pass_on(1, "there").expect("no cycle"), 2);
    domain.wait_healthy();
}
