//! Servers outside that come, change and go while real nodes run, and a group that calls one.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use quorba_demo::bank::ledger::Ledger;
use quorba_demo::shop::Customer;
use quorba_orb::{Client, ClientOptions, Reference};

use crate::cluster::{ALL, Cluster};
use crate::stage::{LONG, QUORBA, wait_until};

/// A bank that is not replicated.
struct Bank {
    process: Child,
    address: SocketAddr,
}

impl Bank {
    /// On a port of the cluster that no group has.
    fn start(cluster: &Cluster, port: u16) -> Self {
        let address = ([127, 0, 0, 1], cluster.first + 15 + port).into();
        let mut command = Command::new(QUORBA);
        let port = (cluster.first + 15 + port).to_string();
        command.args(["servant", "bank", "--port", &port]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("the bank starts");
        wait_until("the bank listens", || TcpStream::connect(address).is_ok());
        let bank = Self { process, address };
        bank.ledger().open("shop", "open").expect("opened");
        bank
    }

    fn ledger(&self) -> Ledger {
        let options = ClientOptions { call_timeout: Some(LONG), ..ClientOptions::default() };
        Ledger::new(Client::new(&Reference::direct(self.address, b"bank"), options))
    }

    fn reference(&self) -> String {
        format!("corbaloc::{}/bank", self.address)
    }

    /// How often each of these purchases was booked.
    fn bookings(&self, references: &[String]) -> Vec<usize> {
        let page = self.ledger().history(0, 500).expect("it answers");
        let times = |reference: &String| {
            let its = page.iter().filter(|entry| entry.reference == *reference);
            its.filter(|entry| entry.operation == "deposit").count()
        };
        references.iter().map(times).collect()
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const SHOP: &str = "state_object = \"shop\"\nobject_key = \"shop\"\ncalls = [\"bank\"]\n";

fn create_shop(cluster: &Cluster) {
    let text = format!(
        "[group.shop]\nmembers = {ALL:?}\nserver = [\"{QUORBA}\", \"servant\", \"shop\", \
         \"--port\", \"{{port}}\", \"--bank\", \"{{url.bank}}\"]\n{SHOP}"
    );
    cluster.create("shop", &text, &[]);
    cluster.wait_healthy();
}

fn buy(cluster: &Cluster, node: usize, reference: &str) -> String {
    let options = ClientOptions { call_timeout: Some(LONG), ..ClientOptions::default() };
    let address = ([127, 0, 0, 1], cluster.gateway(node)).into();
    let client = Client::new(&Reference::direct(address, b"QRB/shop/shop"), options);
    Customer::new(client).buy(1, reference).expect("it is bought");
    reference.to_owned()
}

#[test]
fn a_server_outside_is_created_called_moved_and_deleted_while_the_domain_works() {
    let mut cluster = Cluster::start("");
    let (first, second) = (Bank::start(&cluster, 0), Bank::start(&cluster, 1));
    let create = ["outside", "create", "bank", "--reference", &first.reference()];
    let made = cluster.json(&[&create[..], &["--operation", "op-1"]].concat());
    assert_eq!((&made["created"], &made["existed"]), (&true.into(), &false.into()), "{made}");
    let again = cluster.json(&[&create[..], &["--operation", "op-1"]].concat());
    assert_eq!((&again["id"], &again["existed"]), (&made["id"], &true.into()));
    create_shop(&cluster);
    let mut bought = vec![buy(&cluster, 0, "a")];
    // Nodes end one by one; the last calls go to another bank.
    for node in 0..3 {
        cluster.kill(node);
        bought.push(buy(&cluster, (node + 1) % 3, &format!("while-{node}-is-away")));
        cluster.start_node(node);
        cluster.wait_healthy();
    }
    assert_eq!(first.bookings(&bought), [1; 4]);
    let moved = ["outside", "change", "bank", "--reference", &second.reference()];
    assert_eq!(cluster.json(&[&moved[..], &["--reply-ms", "9000"]].concat())["changed"], true);
    let later = [buy(&cluster, 0, "b"), buy(&cluster, 2, "c")];
    assert_eq!((first.bookings(&later), second.bookings(&later)), (vec![0; 2], vec![1; 2]));
    let refused = cluster.refused(&["outside", "delete", "bank"]);
    assert!(refused.contains("shop calls bank"), "{refused}");
    let refused = cluster.refused(&["group", "delete", "bank", "--yes"]);
    assert!(refused.contains("is a server outside"), "{refused}");
    // All of it is there behind the end of all nodes.
    (0..3).for_each(|node| cluster.kill(node));
    cluster.start_all();
    cluster.wait_healthy();
    let listed = cluster.json(&["outside", "list"]);
    assert_eq!(listed["reference"], second.reference().as_str(), "{listed}");
    assert_eq!((&listed["reply_ms"], &listed["called_by"][0]), (&9000.into(), &"shop".into()));
    let last = [buy(&cluster, 1, "d")];
    assert_eq!(second.bookings(&last), [1]);
    cluster.ok(&["group", "delete", "shop", "--yes"]);
    assert_eq!(cluster.json(&["outside", "delete", "bank"])["deleted"], true);
    assert_eq!(cluster.ok(&["outside", "list"]).lines().count(), 1, "the headings alone");
}

#[test]
fn a_file_brings_servers_outside_to_a_running_domain_before_the_groups_that_call_them() {
    let cluster = Cluster::start("");
    let bank = Bank::start(&cluster, 0);
    let outside = format!("[outside.bank]\nreference = \"{}\"\n", bank.reference());
    let group = format!(
        "[group.shop]\nmembers = {ALL:?}\nserver = [\"{QUORBA}\", \"servant\", \"shop\", \
         \"--port\", \"{{port}}\", \"--bank\", \"{{url.bank}}\"]\n{SHOP}"
    );
    cluster.write_file("wanted", &format!("{group}{outside}"));
    let shown = cluster.ok(&["config", "apply", "wanted.toml", "--dry-run"]);
    assert_eq!(shown, "create server outside bank\ncreate group shop\n");
    cluster.ok(&["config", "apply", "wanted.toml"]);
    cluster.wait_healthy();
    let bought = [buy(&cluster, 1, "a")];
    assert_eq!(bank.bookings(&bought), [1]);
    let slower = format!("{group}{outside}reply_ms = 70\n");
    cluster.write_file("wanted", &slower);
    let shown = cluster.ok(&["config", "apply", "wanted.toml"]);
    assert!(shown.contains("change server outside bank") && shown.contains("now"), "{shown}");
    cluster.write_file("wanted", "");
    let left = cluster.refused(&["config", "apply", "wanted.toml"]);
    assert!(left.contains("server outside bank is not deleted"), "{left}");
    cluster.ok(&["config", "apply", "wanted.toml", "--yes"]);
    assert!(cluster.ok(&["config", "apply", "wanted.toml"]).contains("as the file says"));
}
