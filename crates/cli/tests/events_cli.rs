//! `quorba events` as people and scripts use it: interrupted, with output that nobody reads,
//! between channels that have no room, and where clients have gone for good.

mod stage;

use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Home, Interface, Object, Objects};
use quorba_giop::ExceptionKind;
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPullSupplierStub, ProxyPushConsumerStub,
    ProxyPushSupplierStub, SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, PushConsumer};
use quorba_idl::cos_naming::{NameComponent, NamingContextExtStub};
use quorba_idl::quorba_events::{ChannelInfo, ChannelsStub, ProxyInfo};
use quorba_orb::{Client, ClientOptions, Reference, Repeat, RunningServer, Server, ServerOptions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stage::{Domain, LONG, pids, text, wait_until};

/// A domain with the channels `plain` and `sure`, the reliable one; and where the event service is
/// on the first node.
fn domain(of_service: &str, more: &str) -> (Domain, u16) {
    let ports = stage::free_ports(21_500, 6);
    let text = format!(
        "[service.naming]\nlisten = {}\n[service.events]\nlisten = {ports}\n{of_service}\
         [service.events.channel.plain]\n\
         [service.events.channel.sure]\nreliable = true\nretry_ms = 100\n{more}",
        ports + 3
    );
    let domain = Domain::start_group(&text);
    domain.wait_healthy();
    for name in ["plain", "sure"] {
        wait_until("the channel is there", || {
            ChannelsStub(&mut at(ports, "EventService")).channel(&name.to_owned()).is_ok()
        });
    }
    (domain, ports)
}

fn options() -> ClientOptions {
    let repeat = Some(Repeat::new("test", 0));
    ClientOptions { call_timeout: Some(LONG), repeat, ..ClientOptions::default() }
}

fn to(object: &Object) -> Client {
    Client::new(&Reference::from_ior(&object.0).expect("addresses"), options())
}

fn at(port: u16, key: &str) -> Client {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    Client::new(&Reference::direct(address, key.as_bytes()), options())
}

fn shown(port: u16, name: &str) -> (ChannelInfo, Vec<ProxyInfo>) {
    let mut service = at(port, "EventService");
    ChannelsStub(&mut service).show(&name.to_owned()).expect("a channel")
}

/// How many consumers and suppliers a channel has.
fn proxies(port: u16, name: &str) -> (u32, u32) {
    let (info, _) = shown(port, name);
    (info.consumers, info.suppliers)
}

/// How often consumers of a channel have not taken what they were given.
fn failed(port: u16, name: &str) -> u64 {
    shown(port, name).1.iter().map(|one| one.failed).sum()
}

fn start(domain: &Domain, words: &[&str]) -> Child {
    let mut command = Command::new(stage::QUORBA);
    command.args(words).current_dir(domain.folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("quorba starts")
}

fn supplier(port: u16, name: &str) -> Client {
    let admin = EventChannelStub(&mut to(&shown(port, name).0.channel)).for_suppliers();
    let proxy = SupplierAdminStub(&mut to(&admin.expect("an admin"))).obtain_push_consumer();
    let mut client = to(&proxy.expect("a proxy"));
    ProxyPushConsumerStub(&mut client).connect_push_supplier(&Object::nil()).expect("connected");
    client
}

/// Pushes until it is taken: a consumer may have no room.
fn push(supplier: &mut Client, data: &str) {
    let data = Any::new(&data.to_owned()).expect("a value");
    wait_until("the push is taken", || match ProxyPushConsumerStub(supplier).push(&data) {
        Ok(()) => true,
        Err(PushError::System(raised)) if raised.kind == ExceptionKind::Transient => false,
        Err(other) => panic!("{other:?}"),
    });
}

/// The number that a text begins with.
fn number(text: &str) -> usize {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn a_signal_ends_what_a_command_has_in_a_channel_and_then_the_command() {
    let (mut domain, port) = domain("", "");
    let pids = pids(&domain.wait_healthy());
    let commands: [(&[&str], Signal); 4] = [
        (&["events", "sub", "sure"], Signal::INT),
        (&["events", "sub", "plain"], Signal::TERM),
        (&["events", "bridge", "sure", "plain"], Signal::INT),
        // It waits for events.
        (&["events", "pub", "plain", "--file", "-"], Signal::INT),
    ];
    let mut running: Vec<_> =
        commands.iter().map(|(words, signal)| (start(&domain, words), *signal)).collect();
    wait_until("all are connected", || {
        proxies(port, "sure") == (2, 0) && proxies(port, "plain") == (1, 2)
    });
    for (child, signal) in &mut running {
        kill_process(Pid::from_child(child), *signal).expect("it runs");
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
    }
    // It ended only when the channels had been told.
    assert_eq!((proxies(port, "sure"), proxies(port, "plain")), ((0, 0), (0, 0)));

    // Nobody is there to be told: the second signal does not wait for that.
    let mut late = start(&domain, &["events", "sub", "sure"]);
    wait_until("it is connected", || proxies(port, "sure") == (1, 0));
    domain.end(&pids);
    kill_process(Pid::from_child(&late), Signal::INT).expect("it runs");
    kill_process(Pid::from_child(&late), Signal::TERM).expect("it runs");
    assert!(late.wait().expect("it ends").signal().is_some());
    let mut told = String::new();
    late.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
    assert!(!told.contains("in time"), "{told}");
}

#[test]
fn each_event_is_printed_once_though_nobody_reads_for_long() {
    const COUNT: usize = 300;
    let (domain, port) = domain("", "");
    for name in ["sure", "plain"] {
        let mut child = start(&domain, &["events", "sub", name]);
        wait_until("it is subscribed", || proxies(port, name).0 == 1);
        let mut supplier = supplier(port, name);
        // More than a pipe and what waits to be printed hold.
        let rest = "x".repeat(2_000);
        (0..COUNT).for_each(|number| push(&mut supplier, &format!("{number}{rest}")));
        wait_until("it has no room", || failed(port, name) > 0);
        // Blocked as it is, a signal would end it; now somebody reads.
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut printed = Vec::new();
        while printed.last() != Some(&(COUNT - 1)) {
            printed.push(number(&lines.next().expect("a line").expect("text")));
        }
        wait_until("all is acknowledged", || shown(port, name).0.waiting == 0);
        kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        child.wait().expect("it ends");
        printed.extend(lines.map(|line| number(&line.expect("text"))));
        assert_eq!(printed, (0..COUNT).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn a_sub_that_is_blocked_by_its_output_hears_a_signal() {
    let (domain, port) = domain("", "");
    let mut child = start(&domain, &["events", "sub", "sure"]);
    wait_until("it is subscribed", || proxies(port, "sure").0 == 1);
    let mut supplier = supplier(port, "sure");
    let rest = "x".repeat(2_000);
    (0..200).for_each(|number| push(&mut supplier, &format!("{number}{rest}")));
    wait_until("it has no room", || failed(port, "sure") > 0);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").signal(), Some(Signal::INT.as_raw()));
    assert_eq!(proxies(port, "sure").0, 0);
}

#[test]
fn a_bridge_passes_each_event_once_though_the_other_channel_has_no_room_for_long() {
    const COUNT: usize = 20;
    let tight = "[service.events.channel.tight]\nreliable = true\nqueue_events = 2\n";
    let (domain, port) = domain("", tight);
    let admin = EventChannelStub(&mut to(&shown(port, "tight").0.channel)).for_consumers();
    let proxy = ConsumerAdminStub(&mut to(&admin.expect("an admin"))).obtain_pull_supplier();
    let mut consumer = to(&proxy.expect("a proxy"));
    let mut consumer = ProxyPullSupplierStub(&mut consumer);
    consumer.connect_pull_consumer(&Object::nil()).expect("connected");
    let mut bridge = start(&domain, &["events", "bridge", "sure", "tight"]);
    wait_until("it is connected", || proxies(port, "sure").0 == 1);
    let mut supplier = supplier(port, "sure");
    (0..COUNT).for_each(|number| push(&mut supplier, &number.to_string()));
    wait_until("it has said more than once that it has no room", || failed(port, "sure") > 1);
    let mut passed = Vec::new();
    let mut pull = |passed: &mut Vec<usize>| {
        let (data, is_there) = consumer.try_pull().expect("it answers");
        if is_there {
            passed.push(number(&data.get::<String>().expect("a text")));
        }
        is_there
    };
    wait_until("all have come", || {
        pull(&mut passed);
        passed.last() == Some(&(COUNT - 1))
    });
    wait_until("nothing waits", || shown(port, "sure").0.waiting == 0);
    while pull(&mut passed) {}
    assert_eq!(passed, (0..COUNT).collect::<Vec<_>>());
    kill_process(Pid::from_child(&bridge), Signal::INT).expect("it runs");
    bridge.wait().expect("it ends");
}

/// A consumer that wants to know when it is disconnected.
#[derive(Clone, Default)]
struct Peer(Arc<AtomicBool>);

impl Peer {
    fn start(&self) -> (RunningServer, Object) {
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let server = server.expect("a port").with_objects(self.clone()).start().expect("threads");
        let address = (server.address().ip().to_string(), server.address().port());
        let home = Home { addresses: vec![address], prefix: Vec::new() };
        (server, home.object(cos_event_comm::PUSH_CONSUMER.id(), b"peer"))
    }
}

impl Objects for Peer {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(cos_event_comm::PUSH_CONSUMER)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        cos_event_comm::dispatch_push_consumer(self, call)
    }
}

impl PushConsumer for Peer {
    fn push(&mut self, _: Any) -> Result<(), PushError> {
        Ok(())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        self.0.store(true, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn an_operator_ends_proxies_whose_clients_have_gone() {
    let (domain, port) = domain("", "");
    let channel = shown(port, "sure").0.channel;
    let peer = Peer::default();
    let (_server, reference) = peer.start();
    let admin = EventChannelStub(&mut to(&channel)).for_consumers().expect("an admin");
    let proxy = ConsumerAdminStub(&mut to(&admin)).obtain_push_supplier().expect("a proxy");
    let mut proxy = to(&proxy);
    ProxyPushSupplierStub(&mut proxy).connect_push_consumer(&reference).expect("connected");
    // A supplier that has gone, and a proxy that nobody ever connected to.
    drop(supplier(port, "sure"));
    ConsumerAdminStub(&mut to(&admin)).obtain_push_supplier().expect("a proxy");
    let all: Vec<u64> = shown(port, "sure").1.iter().map(|one| one.id).collect();
    assert_eq!(all.len(), 3);

    let unknown = domain.quorba(&["events", "disconnect", "sure", "99"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("no proxy 99"), "{}", text(&unknown.stderr));
    let unknown = domain.quorba(&["events", "disconnect", "none", "1"]);
    assert_eq!(unknown.status.code(), Some(1));
    let wrong = domain.quorba(&["events", "disconnect", "sure", "first"]);
    assert_eq!(wrong.status.code(), Some(3));
    for id in &all {
        let id = id.to_string();
        let done = domain.quorba(&["-o", "json", "events", "disconnect", "sure", &id]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        let done: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!(
            (&done["proxy"], &done["name"]),
            (&id.parse::<u64>().unwrap().into(), &"sure".into())
        );
    }
    assert_eq!(proxies(port, "sure"), (0, 0));
    wait_until("the consumer is told", || peer.0.load(Ordering::SeqCst));
    let again = domain.quorba(&["events", "disconnect", "sure", &all[0].to_string()]);
    assert_eq!(again.status.code(), Some(1));
    let shown = text(&domain.quorba(&["events", "show", "sure"]).stdout);
    assert!(shown.contains(": removed"), "{shown}");
}

#[test]
fn who_only_looks_is_answered_where_too_few_members_are_in_for_a_subscription() {
    let (domain, port) = domain("depth = 3\n", "");
    drop(supplier(port, "sure"));
    let id = shown(port, "sure").1[0].id.to_string();
    let health = domain.wait_healthy();
    let (_, node) = pids(&health).into_iter().find(|(name, _)| name == "n3").expect("a node");
    kill_process(node, Signal::KILL).expect("it runs");
    wait_until("a member has gone", || {
        // Who wants the depth of the group is refused.
        let once = ClientOptions { repeat: None, ..options() };
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let mut client = Client::new(&Reference::direct(address, b"EventService".as_slice()), once);
        ChannelsStub(&mut client).list().is_err()
    });
    let commands: [&[&str]; 4] = [
        &["events", "ls"],
        &["events", "show", "sure"],
        &["events", "stats", "sure", "--for", "10ms"],
        &["events", "disconnect", "sure", &id],
    ];
    for words in commands {
        let done = domain.quorba(words);
        assert!(done.status.success(), "{words:?}: {}", text(&done.stderr));
    }
}

#[test]
fn the_object_that_knows_all_channels_has_a_name() {
    let (_domain, port) = domain("", "");
    let part = |id: &str, kind: &str| NameComponent { id: id.to_owned(), kind: kind.to_owned() };
    let path = vec![part("Events", ""), part("EventService", "channels")];
    let mut naming = at(port + 3, "NameService");
    let mut naming = NamingContextExtStub(&mut naming);
    wait_until("it is bound", || naming.resolve(&path).is_ok());
    let service = naming.resolve(&path).expect("bound");
    let all = ChannelsStub(&mut to(&service)).list().expect("it is ours");
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["plain", "sure"]);
}
