//! Consumers that pull in running nodes: a pull waits for its event, through the death of the
//! member that leads and of its node; and the names of channels in the naming service.

mod stage;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quorba_corba::Object;
use quorba_giop::{ExceptionKind, MinorCode};
use quorba_idl::cos_event_channel_admin::{ProxyPullSupplierStub, ProxyPushConsumerStub};
use quorba_idl::cos_event_comm::pull_supplier::PullError;
use quorba_idl::cos_naming::{NameComponent, NamingContextExtStub};
use quorba_idl::quorba_events::{
    Acknowledgement, Bounds, ChannelsStub, DecisionsStub, WaitingStub,
};
use quorba_orb::{Client, ClientOptions, Reference, Repeat};
use rustix::process::{Signal, kill_process};
use stage::channels::{
    at, channel, connect_puller, connect_supplier, healthy_domain, leading, options, push, to,
};
use stage::wire::{Answer, Wire};
use stage::{Domain, LONG, wait_until};

/// One that pulls, and calls again only if its gateway or its server is gone.
struct Puller {
    numbers: Arc<Mutex<Vec<u32>>>,
    /// Gives how often it heard that there is nothing.
    thread: JoinHandle<u32>,
}

impl Puller {
    fn start(proxy: &Object, is_named: bool, count: usize) -> Self {
        let numbers = Arc::new(Mutex::new(Vec::new()));
        let (got, reference) = (Arc::clone(&numbers), proxy.clone());
        let thread = thread::spawn(move || {
            let reference = Reference::from_ior(&reference.0).expect("addresses");
            let repeat = is_named.then(|| Repeat::new("pulls", 0));
            let mut client = Client::new(&reference, ClientOptions { repeat, ..options() });
            let mut nothing = 0;
            let is_done = || {
                let got: BTreeSet<u32> = got.lock().expect("no panic").iter().copied().collect();
                got.len() >= count
            };
            while !is_done() {
                match ProxyPullSupplierStub(&mut client).pull() {
                    Ok(data) => {
                        got.lock().expect("no panic").push(data.get().expect("a number"));
                    }
                    Err(PullError::System(raised)) => {
                        let code = MinorCode::from_minor(raised.minor);
                        nothing += u32::from(code == Some(MinorCode::NothingYet));
                        thread::sleep(Duration::from_millis(20));
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
            nothing
        });
        Self { numbers, thread }
    }

    fn wait_for(&self, number: u32) {
        wait_until("the number is pulled", || {
            self.numbers.lock().expect("no panic").contains(&number)
        });
    }

    fn end(self) -> (Vec<u32>, u32) {
        let nothing = self.thread.join().expect("no panic");
        (self.numbers.lock().expect("no panic").clone(), nothing)
    }
}

/// Requests that gateways have not answered.
fn pending(domain: &Domain) -> u64 {
    let status = domain.status();
    let nodes = status["nodes"].as_array().into_iter().flatten();
    let groups = nodes.flat_map(|one| one["status"]["groups"].as_array().into_iter().flatten());
    let its = groups.filter(|group| group["name"] == "events");
    its.filter_map(|group| group["pending"].as_u64()).sum()
}

#[test]
fn a_pull_waits_for_its_event_through_the_end_of_who_leads_and_nothing_is_lost() {
    let (domain, port) = healthy_domain("", "");
    let sure = channel(port, "sure");
    let pullers = [true, false].map(|named| Puller::start(&connect_puller(&sure), named, 40));
    let mut supplier = connect_supplier(&sure);
    for number in 1..=40 {
        if number % 10 == 0 {
            // Both wait, and have nothing.
            pullers.iter().for_each(|puller| puller.wait_for(number - 1));
            let signalled = kill_process(leading(&domain, number == 20).0, Signal::KILL);
            signalled.expect("it runs");
        }
        push(&mut supplier, number);
        if number % 7 == 0 {
            pullers.iter().for_each(|puller| puller.wait_for(number));
        }
    }
    for puller in pullers {
        let (numbers, nothing) = puller.end();
        let mut seen = BTreeSet::new();
        for number in &numbers {
            let last = seen.last().copied().unwrap_or_default();
            assert!(!seen.insert(*number) || *number == last + 1, "in order: {numbers:?}");
        }
        assert_eq!((seen.len(), nothing), (40, 0), "{numbers:?}");
    }
}

#[test]
fn a_held_pull_of_a_plain_channel_goes_on_at_the_next_leader_and_ends_with_its_proxy() {
    let (domain, port) = healthy_domain("", "");
    let plain = channel(port, "plain");
    let first = connect_puller(&plain);
    let puller = Puller::start(&first, false, 2);
    let mut supplier = connect_supplier(&plain);
    push(&mut supplier, 1);
    puller.wait_for(1);
    for of_node in [false, true] {
        kill_process(leading(&domain, of_node).0, Signal::KILL).expect("it runs");
    }
    push(&mut supplier, 2);
    let (numbers, nothing) = puller.end();
    assert_eq!((numbers, nothing), (vec![1, 2], 0));

    let held = first.clone();
    let ends = thread::spawn(move || ProxyPullSupplierStub(&mut to(&held)).pull());
    wait_until("it is held", || pending(&domain) == 1);
    let ended = ProxyPullSupplierStub(&mut to(&first)).disconnect_pull_supplier();
    ended.expect("it was there");
    let raised = ends.join().expect("no panic").expect_err("its proxy is no more");
    let PullError::System(raised) = raised else { panic!("{raised:?}") };
    assert_eq!(raised.kind, ExceptionKind::ObjectNotExist);
}

#[test]
fn no_event_is_taken_for_a_consumer_that_has_gone_while_its_pull_was_held() {
    let (domain, port) = healthy_domain("", "");
    for name in ["plain", "sure"] {
        let channel = channel(port, name);
        let proxy = connect_puller(&channel);
        let mut supplier = connect_supplier(&channel);
        let place = proxy.0.endpoints().into_iter().next().expect("an address");
        let mut wire = Wire::connect(place.port).expect("a connection");
        let answer = wire.call(&place.object_key, "pull", Duration::from_secs(2), |_| {});
        assert!(matches!(answer, Answer::Silence), "it waits: {answer}");
        drop(wire);
        wait_until("it is held no longer", || pending(&domain) == 0);
        push(&mut supplier, 7);
        let data = ProxyPullSupplierStub(&mut to(&proxy)).pull().expect("there");
        assert_eq!(data.get::<u32>().expect("a number"), 7);
    }
}

/// Such an event is too large for a message between nodes, and plain channels have theirs at the
/// member that leads only.
#[test]
fn a_large_event_of_a_plain_channel_is_pulled_at_every_gateway() {
    const BYTES: usize = 600_000;
    let (domain, port) = healthy_domain("", "");
    let plain = channel(port, "plain");
    let proxy = connect_puller(&plain);
    let mut supplier = connect_supplier(&plain);
    let key = proxy.0.endpoints().into_iter().next().expect("an address").object_key;
    let key = str::from_utf8(&key).expect("it is text").to_owned();
    for gateway in 0..3 {
        let mut client = at(port + gateway, &key);
        for waits in [true, false] {
            let text = format!("{gateway} {waits} {}", "x".repeat(BYTES));
            let data = quorba_corba::Any::new(&text).expect("a value");
            let pushed = ProxyPushConsumerStub(&mut supplier).push(&data);
            pushed.expect("it is taken: somebody leads");
            let mut stub = ProxyPullSupplierStub(&mut client);
            let data = match waits {
                true => stub.pull().expect("an event"),
                false => {
                    let (data, has_event) = stub.try_pull().expect("it answers");
                    assert!(has_event, "at gateway {gateway}");
                    data
                }
            };
            let pulled = data.get::<String>().expect("a text");
            assert!(pulled == text, "at gateway {gateway}: {:.20}", pulled);
        }
    }
    drop(domain);
}

#[test]
fn a_client_cannot_ask_what_only_gateways_ask_and_its_pull_is_held() {
    let (domain, port) = healthy_domain("", "");
    for name in ["plain", "sure"] {
        let channel = channel(port, name);
        let proxy = connect_puller(&channel);
        for with_event in [false, true] {
            if with_event {
                push(&mut connect_supplier(&channel), 1);
            }
            let raised = WaitingStub(&mut to(&proxy)).has_event().expect_err("it is no client's");
            assert_eq!(raised.kind, ExceptionKind::BadOperation, "{name}");
            assert_eq!(MinorCode::from_minor(raised.minor), Some(MinorCode::GatewaysOnly));
        }
        let puller = Puller::start(&proxy, false, 2);
        puller.wait_for(1);
        wait_until("it is held", || pending(&domain) == 1);
        push(&mut connect_supplier(&channel), 2);
        assert_eq!(puller.end(), (vec![1, 2], 0));
    }
}

/// Who could call it would end channels of the domain file, and lose what others have not had.
#[test]
fn what_the_services_processes_decide_is_decided_by_no_client() {
    let (_domain, port) = healthy_domain("", "");
    let channel = channel(port, "sure");
    let proxy = connect_puller(&channel);
    push(&mut connect_supplier(&channel), 1);
    let mut client = at(port, "EventService/decisions");
    let mut decisions = DecisionsStub(&mut client);
    let none = Bounds { channels_bytes: 1, reliable_bytes: 1 };
    let all = (1..10).map(|consumer| Acknowledgement {
        channel: "sure".to_owned(),
        consumer,
        last: u64::MAX,
    });
    let answers = [
        decisions.configure(&Vec::new(), &none),
        decisions.acknowledge(&all.collect::<Vec<_>>()),
        decisions.end_consumer(&"sure".to_owned(), &1, &false),
        decisions.look(&"sure".to_owned()),
    ];
    for answer in answers {
        let raised = answer.expect_err("it is no client's");
        assert_eq!(raised.kind, ExceptionKind::NoPermission);
        assert_eq!(MinorCode::from_minor(raised.minor), Some(MinorCode::ServiceOnly));
    }
    let pulled = ProxyPullSupplierStub(&mut to(&proxy)).pull().expect("it is there");
    assert_eq!(pulled.get::<u32>().expect("a number"), 1);
}

/// The service's own processes are no clients.
#[test]
fn a_list_of_clients_without_the_nodes_leaves_the_service_whole() {
    let port = stage::free_ports(21_500, 3);
    let text = format!(
        "[service.events]\nlisten = {port}\nclients = [\"10.255.255.1\"]\n\
         [service.events.channel.plain]\n"
    );
    let domain = Domain::start_group(&text);
    domain.wait_healthy();
    wait_until("the channel of the file is made", || {
        domain.status().to_string().contains("\"plain\"")
    });
    let raised = ChannelsStub(&mut at(port, "EventService")).channel(&"plain".to_owned());
    assert!(format!("{raised:?}").contains("NoPermission"), "{raised:?}");
}

fn path(name: &str, kind: &str) -> Vec<NameComponent> {
    let part = |id: &str, kind: &str| NameComponent { id: id.to_owned(), kind: kind.to_owned() };
    vec![part("Events", ""), part(name, kind)]
}

#[test]
fn every_object_of_a_channel_has_a_name_and_a_new_leader_takes_away_names_of_no_channel() {
    let (domain, port) = healthy_domain("", "");
    let mut client = at(port + 3, "NameService");
    let mut naming = NamingContextExtStub(&mut client);
    let kinds = [
        ("", "/EventChannel:"),
        ("rtec", "/EventChannel:"),
        ("ft", "FtRtec"),
        ("numbered", "/NumberedChannel:"),
    ];
    for (kind, what) in kinds {
        for name in ["plain", "sure"] {
            wait_until("it is bound", || naming.resolve(&path(name, kind)).is_ok());
            let bound = naming.resolve(&path(name, kind)).expect("bound");
            let id = String::from_utf8_lossy(&bound.0.type_id).into_owned();
            assert!(id.contains(what), "{name}.{kind}: {id}");
        }
    }
    // As an earlier leader has left it, whose channel was removed when it had ended.
    let sure = channel(port, "sure");
    let place = sure.0.endpoints().into_iter().next().expect("an address");
    let home = quorba_corba::Home { addresses: vec![(place.host, place.port)], prefix: Vec::new() };
    for (kind, key) in [("", "Events/ghost"), ("rtec", "Events/ghost/rtec")] {
        let ghost =
            home.object("IDL:omg.org/CosEventChannelAdmin/EventChannel:1.0", key.as_bytes());
        naming.rebind(&path("ghost", kind), &ghost).expect("bound");
    }
    // Somebody's own.
    naming.rebind(&path("mine", ""), &sure).expect("bound");
    kill_process(leading(&domain, false).0, Signal::KILL).expect("it runs");
    for kind in ["", "rtec"] {
        wait_until("it is taken away", || naming.resolve(&path("ghost", kind)).is_err());
    }
    naming.resolve(&path("mine", "")).expect("it is nobody's business");
    naming.resolve(&path("sure", "ft")).expect("it is there");

    let mut service = at(port, "EventService");
    let mut service = ChannelsStub(&mut service);
    service.create(&"own".to_owned(), &String::new()).expect("made");
    wait_until("it is bound", || naming.resolve(&path("own", "numbered")).is_ok());
    service.remove(&"own".to_owned()).expect("it was there");
    for (kind, _) in kinds {
        wait_until("it is taken away", || naming.resolve(&path("own", kind)).is_err());
    }
}

/// Seconds of processor time of all nodes and their servers so far.
fn spent(domain: &Domain) -> f64 {
    let status = domain.status();
    let mut pids = Vec::new();
    for one in status["nodes"].as_array().into_iter().flatten() {
        pids.extend(one["status"]["pid"].as_i64());
        let groups = one["status"]["groups"].as_array().into_iter().flatten();
        let its = groups.filter(|group| group["name"] == "events");
        pids.extend(its.filter_map(|group| group["server"]["pid"].as_i64()));
    }
    let ticks = |pid: &i64| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind = text.rsplit(')').next().unwrap_or_default().to_owned();
        let fields = behind.split_ascii_whitespace().skip(11).take(2);
        fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>()
    };
    pids.iter().map(ticks).sum::<f64>() / 100.0
}

#[test]
#[ignore = "on demand: a measurement, whose figures are printed"]
fn what_held_pulls_cost() {
    const TIME: Duration = Duration::from_secs(10);
    let (domain, port) = healthy_domain("", "");
    for name in ["plain", "sure"] {
        for count in [0, 1, 100, 1_000_usize] {
            let channel = channel(port, name);
            let proxies: Vec<Object> = (0..count).map(|_| connect_puller(&channel)).collect();
            let mut supplier = connect_supplier(&channel);
            // Of each address a node has 100 connections, of each connection 64 calls.
            let mut wires: Vec<Wire> = Vec::new();
            for (at, proxy) in proxies.iter().enumerate() {
                if at % 50 == 0 {
                    wires.push(Wire::connect(port).expect("a connection"));
                }
                let key = proxy.0.endpoints().into_iter().next().expect("an address").object_key;
                let wire = wires.last_mut().expect("one was made");
                let (_, request) = wire.request(&key, "pull", &[], |_| {});
                wire.send(request.bytes()).expect("sent");
            }
            wait_until("they are held", || pending(&domain) as usize == count);
            let (before, begin) = (spent(&domain), std::time::Instant::now());
            thread::sleep(TIME);
            let cost = (spent(&domain) - before) / begin.elapsed().as_secs_f64();
            let mut waits: Vec<u128> = Vec::new();
            if count > 0 {
                let begin = std::time::Instant::now();
                push(&mut supplier, 1);
                for wire in &mut wires {
                    for _ in 0..50.min(count - waits.len()) {
                        let until = begin + LONG;
                        wire.receive(until).expect("an answer");
                        waits.push(begin.elapsed().as_millis());
                    }
                }
            }
            waits.sort_unstable();
            println!(
                "{name}: {count} held, {:.1} % of a core; all have the event after {:?} ms, half \
                 after {:?} ms",
                cost * 100.0,
                waits.last(),
                waits.get(waits.len() / 2)
            );
            for proxy in &proxies {
                let _ended = ProxyPullSupplierStub(&mut to(proxy)).disconnect_pull_supplier();
            }
        }
    }
}
