//! `quorba events` as people and scripts use it: interrupted, with output that nobody reads,
//! between channels that have no room, and where clients have gone for good.

mod stage;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Interface, Object, Objects, raise_system};
use quorba_giop::{Endian, ExceptionKind};
use quorba_idl::cos_event_channel_admin::{
    self, ConsumerAdminStub, EventChannelStub, ProxyPullSupplierStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, PushConsumer};
use quorba_idl::cos_naming::{NameComponent, NamingContextExtStub};
use quorba_idl::quorba_events::ChannelsStub;
use quorba_orb::{Client, ClientOptions, Reference};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stage::channels::{
    self, at, channel, connect_consumer, connect_puller, connect_supplier, healthy_domain, options,
    proxies, push_text, shown, to,
};
use stage::{Domain, pids, text, wait_until};

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

/// The number that a text begins with.
fn number(text: &str) -> usize {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn a_signal_ends_what_a_command_has_in_a_channel_and_then_the_command() {
    let (mut domain, port) = healthy_domain("", "");
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
    let (domain, port) = healthy_domain("", "");
    for name in ["sure", "plain"] {
        let mut child = start(&domain, &["events", "sub", name]);
        wait_until("it is subscribed", || proxies(port, name).0 == 1);
        let mut supplier = connect_supplier(&channel(port, name));
        // More than a pipe and what waits to be printed hold.
        let rest = "x".repeat(2_000);
        (0..COUNT).for_each(|number| push_text(&mut supplier, &format!("{number}{rest}")));
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
    let (domain, port) = healthy_domain("", "");
    let mut child = start(&domain, &["events", "sub", "sure"]);
    wait_until("it is subscribed", || proxies(port, "sure").0 == 1);
    let mut supplier = connect_supplier(&channel(port, "sure"));
    let rest = "x".repeat(2_000);
    (0..200).for_each(|number| push_text(&mut supplier, &format!("{number}{rest}")));
    wait_until("it has no room", || failed(port, "sure") > 0);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").signal(), Some(Signal::INT.as_raw()));
    assert_eq!(proxies(port, "sure").0, 0);
}

#[test]
fn a_bridge_passes_each_event_once_though_the_other_channel_has_no_room_for_long() {
    const COUNT: usize = 20;
    let tight = "[service.events.channel.tight]\nreliable = true\nqueue_events = 2\n";
    let (domain, port) = healthy_domain("", tight);
    let mut consumer = to(&connect_puller(&channel(port, "tight")));
    let mut consumer = ProxyPullSupplierStub(&mut consumer);
    let mut bridge = start(&domain, &["events", "bridge", "sure", "tight"]);
    wait_until("it is connected", || proxies(port, "sure").0 == 1);
    let mut supplier = connect_supplier(&channel(port, "sure"));
    (0..COUNT).for_each(|number| push_text(&mut supplier, &number.to_string()));
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
    let (domain, port) = healthy_domain("", "");
    let sure = channel(port, "sure");
    let peer = Peer::default();
    let (_server, reference) = channels::serve(peer.clone());
    connect_consumer(&sure, &reference);
    // A supplier that has gone, and a proxy that nobody ever connected to.
    drop(connect_supplier(&sure));
    let admin = EventChannelStub(&mut to(&sure)).for_consumers().expect("an admin");
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
    let (domain, port) = healthy_domain("depth = 3\n", "");
    drop(connect_supplier(&channel(port, "sure")));
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
    let (_domain, port) = healthy_domain("", "");
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

/// Nobody has a proxy in the channels, as an operator sees it.
fn assert_no_proxies(domain: &Domain, after: &str) {
    for name in ["plain", "sure"] {
        let shown = domain.quorba(&["-o", "json", "events", "show", name]);
        let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        assert_eq!(shown["proxies"], serde_json::json!([]), "{name} after {after}");
    }
}

/// A command that fails: how it ends, and what it says.
fn fails(domain: &Domain, line: &str, exit: i32, says: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let done = domain.quorba(&words);
    let told = text(&done.stderr);
    assert_eq!(done.status.code(), Some(exit), "{line}: {told}");
    assert!(told.contains(says), "{line}: {told}");
}

#[test]
fn commands_that_fail_leave_no_proxies() {
    let (domain, port) = healthy_domain("", "");
    // It takes connections, and never answers.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let silent = silent.local_addr().expect("an address").port();
    let silent = format!("corbaloc::127.0.0.1:{silent}/channel");
    let nobody = "corbaloc::127.0.0.1:1/channel";
    let naming = format!("corbaloc::127.0.0.1:{}/NameService", port + 3);
    fs::write(domain.folder.path().join("bad"), "1\n{\"pump\": 7\n3\n").expect("written");
    let runs = "look whether it runs";
    let is_one = "the reference of a CosEventChannelAdmin::EventChannel";
    for (line, says) in [
        (format!("events bridge plain {silent} --timeout 1s"), runs),
        (format!("events bridge sure {nobody}"), runs),
        (format!("events bridge sure {naming}"), is_one),
        // These have a proxy in the channel that they would push to.
        (format!("events bridge {silent} sure --timeout 1s"), runs),
        (format!("events bridge {nobody} plain"), runs),
        (format!("events bridge {naming} plain"), is_one),
        ("events bridge plain sure --listen 192.0.2.1:1".to_owned(), "--listen"),
        ("events sub sure --listen 192.0.2.1:1".to_owned(), "--listen"),
    ] {
        fails(&domain, &line, 1, says);
        assert_no_proxies(&domain, &line);
    }
    let line = "events pub plain --file bad";
    fails(&domain, line, 3, "line 2 of bad cannot be an event: EOF");
    fails(&domain, line, 3, "1 were pushed before it");
    assert_no_proxies(&domain, line);
    for name in ["plain", "sure"] {
        let mut command = Command::new(stage::QUORBA);
        command.args(["events", "sub", name]).current_dir(domain.folder.path());
        let full = File::options().write(true).open("/dev/full").expect("it is there");
        let mut child = command.stdout(full).stderr(Stdio::piped()).spawn().expect("it starts");
        wait_until("it is subscribed", || proxies(port, name).0 == 1);
        let done = domain.quorba(&["events", "pub", name, "1"]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert_eq!(child.wait().expect("it ends").code(), Some(1));
        assert_no_proxies(&domain, "events sub > /dev/full");
    }
}

#[test]
fn what_cannot_be_done_is_told_with_the_reason_and_in_time() {
    let tight = "[service.events.channel.tight]\nreliable = true\nqueue_events = 1\n";
    let (domain, port) = healthy_domain("", tight);
    let write = |name: &str, text: &str| {
        fs::write(domain.folder.path().join(name), text).expect("written");
    };
    write("large", &format!("\"{}\"\n", "x".repeat(5 << 20)));
    write("latin", "\"ok\"\n");
    let deep = format!("events pub plain {}1{}", "[".repeat(200), "]".repeat(200));
    let (another, _) = channels::serve(Strict::default());
    let other = format!("events show plain --at {}", another.address());
    for (line, exit, says) in [
        (deep.as_str(), 3, "recursion limit"),
        ("events pub plain 18446744073709551616", 3, "64 bits"),
        ("events pub plain --file /dev/zero", 3, "more than 32 MiB"),
        ("events pub plain --file large", 1, "879,520"),
        ("events pub plain --file /", 1, "/ cannot be read"),
        ("events pub plain --file nothing", 1, "nothing cannot be read"),
        ("events bridge plain plain", 3, "to itself"),
        ("events bridge plain IOR:zz", 1, "reference"),
        ("events sub plain --for 999999days", 3, "36500 days"),
        ("events sub plain --count=-1", 3, "--count"),
        ("events sub plain --listen 0.0.0.0:0", 1, "--listen HOST:PORT"),
        ("events ls --at ,", 3, "n1:2812,n2:2812"),
        ("events ls --at 127.0.0.1:1 --timeout 1s", 1, "the event service answers with"),
        (other.as_str(), 1, "--at"),
    ] {
        fails(&domain, line, exit, says);
    }
    for words in [
        &["events", "pub", "plain", "-5", "-1.5"][..],
        // Standard input is closed there.
        &["events", "pub", "plain", "--file", "-"],
        &["events", "pub", "plain", "--file", "latin"],
        &["events", "bridge", "plain", "sure", "--count", "0"],
        &["events", "sub", "plain", "--count", "0"],
    ] {
        let done = domain.quorba(words);
        assert!(done.status.success(), "{words:?}: {}", text(&done.stderr));
    }
    connect_puller(&channel(port, "tight"));
    fails(&domain, "events pub tight 1 2 --timeout 1s", 4, "; 1 were pushed before it");
    fails(&domain, "events pub tight 1 --timeout 1s", 4, "deadline passed");
}

/// A channel of another event service, that takes no event. All of its objects are one.
#[derive(Clone, Default)]
struct Strict(Arc<OnceLock<Object>>);

impl Objects for Strict {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(cos_event_channel_admin::EVENT_CHANNEL)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match call.operation() {
            "for_suppliers" | "obtain_push_consumer" => {
                call.result(self.0.get().expect("it was told"));
            }
            "connect_push_supplier" | "disconnect_push_consumer" => {}
            "push" => return Err(raise_system(ExceptionKind::ImpLimit)),
            _ => return Err(call.unknown_operation()),
        }
        Ok(())
    }
}

#[test]
fn a_bridge_that_is_given_up_says_that_the_other_channel_takes_no_such_event() {
    let soon = "[service.events.channel.soon]\nreliable = true\nretry_ms = 20\ngive_up_ms = 200\n";
    let (domain, port) = healthy_domain("", soon);
    let strict = Strict::default();
    let (_server, reference) = channels::serve(strict.clone());
    strict.0.set(reference.clone()).expect("once");
    let bridge = start(&domain, &["events", "bridge", "soon", &reference.0.stringify(Endian::Big)]);
    wait_until("it is connected", || proxies(port, "soon").0 == 1);
    push_text(&mut connect_supplier(&channel(port, "soon")), "too large");
    let done = bridge.wait_with_output().expect("it ends");
    let told = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.contains("IMP_LIMIT") && told.contains("879,520"), "{told}");
}
