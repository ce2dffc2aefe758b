//! The event service in running nodes: suppliers push and are pulled, consumers are pushed to and
//! pull, through the death of the member that leads, of its node, and of all nodes.

mod stage;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Home, Interface, Object, Objects};
use quorba_giop::{Endian, ExceptionKind};
use quorba_idl::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use quorba_idl::cos_event_channel_admin::{
    EventChannelStub, ProxyPullConsumerStub, ProxyPullSupplierStub, ProxyPushConsumerStub,
    ProxyPushSupplierStub, SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::cos_event_comm::{self, pull_supplier};
use quorba_idl::cos_naming::{NameComponent, NamingContextExtStub};
use quorba_idl::ft_rtec_event_channel_admin::EventChannelFacadeStub;
use quorba_idl::ft_rtec_event_comm::PushConsumerStub;
use quorba_idl::quorba_events::ChannelsStub;
use quorba_idl::quorba_events::channels::RemoveError;
use quorba_idl::rtec_event_channel_admin::SupplierQOS;
use quorba_idl::rtec_event_comm::{Event, EventData, EventHeader};
use quorba_lab::skips::skip;
use quorba_orb::{Client, ClientOptions, Reference, RunningServer, Server, ServerOptions};
use rustix::process::{Signal, kill_process};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use serde_json::Value;
use stage::channels::{
    at, channel, connect_consumer, connect_puller, connect_supplier, connect_supplier_with, domain,
    healthy_domain, info, leading, options, push, to,
};
use stage::{Domain, pids, text, wait_until};

/// What a consumer was pushed, or a supplier has.
#[derive(Clone, Default)]
struct Peer {
    numbers: Arc<Mutex<VecDeque<u32>>>,
    disconnected: Arc<Mutex<bool>>,
    is_supplier: bool,
    /// It has no `try_pull`, and its `pull` waits for a number.
    has_only_pull: bool,
}

impl Peer {
    fn start(&self) -> (RunningServer, Object) {
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let (server, waiting) = (server.expect("a port").with_objects(self.clone()), self.clone());
        let server =
            server.with_waiting(|_, called| called == b"pull", move || Box::new(waiting.clone()));
        let server = server.start().expect("threads");
        let address = (server.address().ip().to_string(), server.address().port());
        let home = Home { addresses: vec![address], prefix: Vec::new() };
        let interface = self.interface(b"peer").expect("an interface");
        (server, home.object(interface.id(), b"peer"))
    }

    fn numbers(&self) -> Vec<u32> {
        self.numbers.lock().expect("no holder panics").iter().copied().collect()
    }

    fn is_disconnected(&self) -> bool {
        *self.disconnected.lock().expect("no holder panics")
    }
}

impl Objects for Peer {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        let supplier = self.is_supplier;
        Some(if supplier { cos_event_comm::PULL_SUPPLIER } else { cos_event_comm::PUSH_CONSUMER })
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        if self.is_supplier {
            return cos_event_comm::dispatch_pull_supplier(self, call);
        }
        cos_event_comm::dispatch_push_consumer(self, call)
    }
}

impl cos_event_comm::PushConsumer for Peer {
    fn push(&mut self, data: Any) -> Result<(), PushError> {
        let number = data.get::<u32>().expect("a number");
        self.numbers.lock().expect("no holder panics").push_back(number);
        Ok(())
    }

    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        *self.disconnected.lock().expect("no holder panics") = true;
        Ok(())
    }
}

impl cos_event_comm::PullSupplier for Peer {
    fn pull(&mut self) -> Result<Any, pull_supplier::PullError> {
        while self.has_only_pull && !self.is_disconnected() {
            if let Some(number) = self.numbers.lock().expect("no holder panics").pop_front() {
                return Ok(Any::new(&number).expect("a value"));
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        Err(quorba_corba::raise_system(ExceptionKind::NoImplement).into())
    }

    fn try_pull(&mut self) -> Result<(Any, bool), pull_supplier::TryPullError> {
        if self.has_only_pull {
            return Err(quorba_corba::raise_system(ExceptionKind::NoImplement).into());
        }
        let next = self.numbers.lock().expect("no holder panics").pop_front();
        let data = next.map(|number| Any::new(&number).expect("a value"));
        let is_there = data.is_some();
        Ok((data.unwrap_or_default(), is_there))
    }

    fn disconnect_pull_supplier(&mut self) -> Result<(), SystemException> {
        *self.disconnected.lock().expect("no holder panics") = true;
        Ok(())
    }
}

/// An event of TAO's interface with a number in it.
fn rtec_event(number: u32) -> Event {
    Event {
        header: EventHeader {
            r#type: 16,
            source: 1,
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData {
            pad1: 0,
            payload: Vec::new(),
            any_value: Any::new(&number).expect("a value"),
        },
    }
}

/// How many calls each member executed past the order, the fewest first.
fn reads(domain: &Domain) -> Vec<u64> {
    let status = domain.status();
    let mut reads = Vec::new();
    for one in status["nodes"].as_array().into_iter().flatten() {
        let groups = one["status"]["groups"].as_array().into_iter().flatten();
        let found = groups.filter(|group| group["name"] == "events");
        reads.extend(found.filter_map(|group| group["reads_executed"].as_u64()));
    }
    reads.sort_unstable();
    reads
}

fn name(id: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: String::new() }
}

/// The same by the facade.
fn push_by_facade(port: u16, numbers: std::ops::RangeInclusive<u32>) {
    let mut facade = at(port + 1, "Unordered/plain/ft");
    let offers = SupplierQOS { publications: Vec::new(), is_gateway: false };
    let id = EventChannelFacadeStub(&mut facade).connect_push_supplier(&Object::nil(), &offers);
    let id = id.expect("connected");
    for number in numbers {
        let event = rtec_event(number);
        PushConsumerStub(&mut facade).push(&id, &vec![event]).expect("it is taken");
    }
}

/// A supplier that has no `try_pull` is called by `pull`, and answers when it has something.
fn is_called_by_pull(admin: &Object, consumer: &Peer) {
    let waits = Peer { is_supplier: true, has_only_pull: true, ..Peer::default() };
    let (_waits_server, reference) = waits.start();
    let asking = SupplierAdminStub(&mut to(admin)).obtain_pull_consumer().expect("a proxy");
    ProxyPullConsumerStub(&mut to(&asking)).connect_pull_supplier(&reference).expect("connected");
    for number in 110..115_u32 {
        waits.numbers.lock().expect("no holder panics").push_back(number);
        wait_until("it is pulled", || consumer.numbers().last() == Some(&number));
    }
    assert_eq!(consumer.numbers().len(), 45);
    *waits.disconnected.lock().expect("no holder panics") = true;
}

#[test]
fn push_and_pull_work_on_both_sides_and_the_naming_service_knows_the_channels() {
    let (domain, port) = healthy_domain("", "");
    let plain = channel(port, "plain");
    let consumer = Peer::default();
    let (_server, reference) = consumer.start();
    let proxy = connect_consumer(&plain, &reference);
    let mut pulled = to(&connect_puller(&plain));
    let mut pull = ProxyPullSupplierStub(&mut pulled);
    assert!(!pull.try_pull().expect("it answers").1, "nothing yet");

    // A supplier pushes; who pulls gets the same as who is pushed to.
    let mut supplier = connect_supplier(&plain);
    (1..=20).for_each(|number| push(&mut supplier, number));
    wait_until("all are there", || consumer.numbers().len() == 20);
    assert_eq!(consumer.numbers(), (1..=20).collect::<Vec<_>>());
    for number in 1..=20_u32 {
        assert_eq!(pull.pull().expect("there").get::<u32>().expect("a number"), number);
    }
    let again = ProxyPushConsumerStub(&mut supplier).connect_push_supplier(&Object::nil());
    assert!(matches!(again, Err(ConnectPushSupplierError::AlreadyConnected(_))), "{again:?}");

    push_by_facade(port, 21..=30);
    wait_until("all are there", || consumer.numbers().len() == 30);
    assert_eq!(consumer.numbers(), (1..=30).collect::<Vec<_>>());

    // All of that went past the order, to the member that leads.
    let reads = reads(&domain);
    assert!(reads[..2] == [0, 0] && reads[2] >= 51, "{reads:?}");

    // Another one is pulled.
    let source = Peer { is_supplier: true, ..Peer::default() };
    source.numbers.lock().expect("no holder panics").extend(100..110);
    let (_source_server, reference) = source.start();
    let admin = EventChannelStub(&mut to(&plain)).for_suppliers().expect("an admin");
    let asking = SupplierAdminStub(&mut to(&admin)).obtain_pull_consumer().expect("a proxy");
    let mut asking = to(&asking);
    ProxyPullConsumerStub(&mut asking).connect_pull_supplier(&reference).expect("connected");
    wait_until("all were pulled", || consumer.numbers().len() == 40);
    assert_eq!(consumer.numbers()[30..], (100..110).collect::<Vec<_>>());
    is_called_by_pull(&admin, &consumer);

    // What the naming service has is the channel.
    let mut naming = at(port + 3, "NameService");
    let path = vec![name("Events"), name("plain")];
    wait_until("it is bound", || NamingContextExtStub(&mut naming).resolve(&path).is_ok());
    let bound = NamingContextExtStub(&mut naming).resolve(&path).expect("bound");
    EventChannelStub(&mut to(&bound)).for_consumers().expect("the channel");

    // Who disconnects gets nothing more; a channel of the file stays, one of a client ends.
    ProxyPushSupplierStub(&mut to(&proxy)).disconnect_push_supplier().expect("it was there");
    wait_until("the consumer is told", || consumer.is_disconnected());
    push(&mut supplier, 999);
    let mut service = at(port + 1, "EventService");
    let mut service = ChannelsStub(&mut service);
    let removed = service.remove(&"plain".to_owned());
    assert!(matches!(removed, Err(RemoveError::IsFiled(_))), "{removed:?}");
    let settings = "batch=2".to_owned();
    let own = service.create(&"own".to_owned(), &settings).expect("made");
    let late = Peer::default();
    let (_late_server, reference) = late.start();
    connect_consumer(&own, &reference);
    service.remove(&"own".to_owned()).expect("it was there");
    wait_until("its consumer is told", || late.is_disconnected());
    assert!(EventChannelStub(&mut to(&own)).for_consumers().is_err(), "it is no more");
    assert!(!consumer.numbers().contains(&999));
}

/// Kills again and again while a supplier pushes; what the consumer has then.
fn through_kills(domain: &Domain, port: u16, of_node: bool) -> Vec<u32> {
    let sure = channel(port, "sure");
    let consumer = Peer::default();
    let (_server, reference) = consumer.start();
    connect_consumer(&sure, &reference);
    let mut supplier = connect_supplier(&sure);
    let mut next = 1;
    for _round in 0..3 {
        for _ in 0..50 {
            push(&mut supplier, next);
            next += 1;
        }
        let (pid, _) = leading(domain, of_node);
        kill_process(pid, Signal::KILL).expect("it ran");
        for _ in 0..50 {
            push(&mut supplier, next);
            next += 1;
        }
        if of_node {
            break;
        }
        domain.wait_healthy();
    }
    let count = next as usize - 1;
    wait_until("everything is there", || {
        let counted: BTreeMap<u32, usize> =
            consumer.numbers().into_iter().fold(BTreeMap::new(), |mut all, one| {
                *all.entry(one).or_default() += 1;
                all
            });
        counted.len() == count
    });
    // Once all is acknowledged nothing waits.
    wait_until("nothing waits", || {
        (0..3).any(|node| {
            let address = (Ipv4Addr::LOCALHOST, port + node).into();
            let reference = Reference::direct(address, b"EventService");
            // A node may be dead: not repeated.
            let mut service = Client::new(&reference, ClientOptions::default());
            let shown = ChannelsStub(&mut service).show(&"sure".to_owned());
            shown.is_ok_and(|(info, _)| info.waiting == 0)
        })
    });
    consumer.numbers()
}

/// Each number's first coming is in order.
fn assert_in_order(numbers: &[u32]) {
    let mut highest = 0;
    for number in numbers {
        assert!(*number <= highest + 1, "{number} came before {}", highest + 1);
        highest = highest.max(*number);
    }
}

#[test]
fn a_reliable_channel_loses_nothing_when_the_process_that_leads_is_killed() {
    let (domain, port) = healthy_domain("", "");
    let numbers = through_kills(&domain, port, false);
    assert_in_order(&numbers);
    println!("{} for 300 events", numbers.len());
}

#[test]
fn a_reliable_channel_loses_nothing_when_the_node_that_leads_is_killed() {
    let (domain, port) = healthy_domain("", "");
    let numbers = through_kills(&domain, port, true);
    assert_in_order(&numbers);
    println!("{} for 100 events", numbers.len());
}

#[test]
fn subscriptions_outlive_all_nodes_and_dead_consumers_keep_nobody_waiting() {
    let more = "[service.events.channel.short]\ngive_up_ms = 300\nretry_ms = 50\n";
    let (mut domain, port) = domain("", more);
    let health = domain.wait_healthy();
    let plain = channel(port, "plain");
    let short = channel(port, "short");
    let consumer = Peer::default();
    let (_server, reference) = consumer.start();
    connect_consumer(&plain, &reference);
    connect_consumer(&short, &reference);
    let dead = {
        let (_server, dead) = Peer::default().start();
        dead
    };
    connect_consumer(&short, &dead);
    let mut supplier = connect_supplier(&short);
    (1..=100).for_each(|number| push(&mut supplier, number));
    wait_until("the other one has all", || consumer.numbers().len() == 100);
    wait_until("the dead one is given up", || info(port, "short").consumers == 1);

    let (shown, stats) = (domain.quorba(&["events", "show", "short"]), "events stats --for 100ms");
    assert!(shown.status.success(), "{}", stage::text(&shown.stderr));
    assert!(stage::text(&shown.stdout).contains("give_up_ms=300"));
    let stats = domain.quorba(&stats.split(' ').collect::<Vec<_>>());
    assert!(stage::text(&stats.stdout).contains("PUSHED/S"), "{}", stage::text(&stats.stderr));
    domain.black_out(&pids(&health));
    domain.wait_healthy();
    let mut supplier = connect_supplier(&plain);
    wait_until("it is subscribed", || info(port, "plain").consumers == 1);
    (101..=120).for_each(|number| push(&mut supplier, number));
    wait_until("what is pushed now is there", || consumer.numbers().len() == 120);
    assert_eq!(info(port, "short").consumers, 1);
}

#[test]
fn the_command_line_makes_channels_pushes_to_them_and_prints_what_comes() {
    let (domain, port) = healthy_domain("", "");
    channel(port, "plain");
    let ok = |words: &[&str]| {
        let output = domain.quorba(words);
        assert!(output.status.success(), "{words:?}: {}", stage::text(&output.stderr));
        stage::text(&output.stdout)
    };
    let code = |words: &[&str]| domain.quorba(words).status.code();
    assert_eq!(ok(&["events", "create", "own", "queue_events=9"]), "made: own\n");
    assert_eq!(ok(&["events", "create", "own", "queue_events=9"]), "made: own\n");
    assert_eq!(code(&["events", "create", "own"]), Some(1));
    assert_eq!(code(&["events", "create", "other", "queue_events=0"]), Some(1));
    let listed = ok(&["-o", "json", "events", "ls"]);
    let names: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|one| one["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(names, ["own", "plain", "sure"]);

    let words = ["-o", "json", "events", "sub", "own", "--count", "5", "--for", "60s"];
    let mut command = std::process::Command::new(stage::QUORBA);
    command.args(words).current_dir(domain.folder.path());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let subscriber = command.spawn().expect("quorba starts");
    wait_until("it is subscribed", || info(port, "own").consumers == 1);
    ok(&["events", "pub", "own", "pump 7", "42", "[1,2]"]);
    std::fs::write(domain.folder.path().join("more"), "1.5\n{\"on\":[true,null]}\n")
        .expect("written");
    ok(&["events", "pub", "own", "--file", "more"]);
    let output = subscriber.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let events: Vec<String> = stage::text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|one| one["event"].to_string())
        .collect();
    assert_eq!(events, ["\"pump 7\"", "42", "[1,2]", "1.5", "{\"on\":[true,null]}"]);
    wait_until("it has left", || info(port, "own").consumers == 0);
    let stats = ok(&["-o", "json", "events", "stats", "own", "--for", "100ms"]);
    let stats: Value = serde_json::from_str(&stats).expect("JSON");
    let none = serde_json::json!({
        "too_slow": 0, "holds_too_much": 0, "too_large": 0, "gone": 0, "raises": 0
    });
    assert_eq!(stats["ended"], none);
    let stats = ok(&["events", "stats", "own", "--for", "100ms"]);
    assert!(stats.lines().next().is_some_and(|line| line.trim_end().ends_with("ENDED")), "{stats}");

    assert_eq!(code(&["events", "pub", "own", "{}"]), Some(3), "no event");
    assert_eq!(code(&["events", "sub", "own", "--count", "1", "--for", "100ms"]), Some(4));
    assert_eq!(code(&["events", "show", "none"]), Some(1));
    assert_eq!(code(&["events", "rm", "plain"]), Some(1), "it is in the file");
    assert_eq!(ok(&["events", "rm", "own"]), "ended: own\n");
}

/// What the status of the domain says of a channel; it is at the node that leads.
fn in_status(domain: &Domain, name: &str) -> serde_json::Value {
    let status = domain.status();
    let nodes = status["nodes"].as_array().into_iter().flatten();
    let groups = nodes.flat_map(|one| one["status"]["groups"].as_array().into_iter().flatten());
    let channels = groups.flat_map(|group| group["channels"].as_array().into_iter().flatten());
    let mut found: Vec<_> = channels.filter(|channel| channel["name"] == name).cloned().collect();
    assert!(found.len() < 2, "only who leads tells: {found:?}");
    found.pop().unwrap_or_default()
}

/// The notes of the domain's status, by fact.
fn notes(domain: &Domain) -> BTreeMap<String, String> {
    let status = domain.status();
    let notes = status["notes"].as_array().into_iter().flatten();
    notes.map(|note| (note["fact"].to_string(), note["what"].to_string())).collect()
}

#[test]
fn the_status_says_what_channels_do_and_which_consumers_are_too_slow() {
    let more = "[service.events.channel.lossy]\nqueue_events = 2\nfull = \"drop-oldest\"\n\
                [service.events.channel.tight]\nreliable = true\nqueue_events = 2\n";
    let (domain, port) = healthy_domain("", more);
    wait_until("all channels are told of", || in_status(&domain, "tight")["pushed"] == 0);
    for name in ["lossy", "tight"] {
        let channel = channel(port, name);
        // It never pulls.
        connect_puller(&channel);
        // What is refused is not repeated.
        let once = ClientOptions { repeat: None, ..options() };
        let mut supplier = connect_supplier_with(&channel, once);
        push(&mut supplier, 1);
        push(&mut supplier, 2);
        let third = Any::new(&3_u32).expect("a value");
        let taken = ProxyPushConsumerStub(&mut supplier).push(&third).is_ok();
        assert_eq!(taken, name == "lossy");
    }
    let shown = |name: &str, key: &str| in_status(&domain, name)[key].clone();
    wait_until("it says what was dropped", || shown("lossy", "dropped") == 1);
    wait_until("it says what was refused", || shown("tight", "refused").as_u64() > Some(0));
    assert_eq!((shown("tight", "waiting"), shown("tight", "consumers")), (2.into(), 1.into()));
    assert!(shown("tight", "slowest")["at"].to_string().contains("proxy"));
    let notes = notes(&domain);
    assert!(notes["\"events-dropped\""].contains("lossy"), "{notes:?}");
    assert!(notes["\"events-refused\""].contains("tight"), "{notes:?}");
    assert_eq!(domain.status()["health"], "ok", "a slow consumer costs its own channel only");
    let text = stage::text(&domain.quorba(&["status", "events"]).stdout);
    assert!(text.contains("MOST OF IT FOR") && text.contains("lossy"), "{text}");

    // The next one tells it from then on.
    let (pid, leader) = leading(&domain, true);
    kill_process(pid, Signal::KILL).expect("it runs");
    wait_until("another one tells", || {
        shown("tight", "waiting") == 2 && leading(&domain, true).1 != leader
    });
}

#[test]
fn a_bridge_passes_the_events_of_one_channel_on_to_another() {
    let (domain, port) = healthy_domain("", "");
    let (sure, plain) = (channel(port, "sure"), channel(port, "plain"));
    let peer = Peer::default();
    let (_server, consumer) = peer.start();
    connect_consumer(&plain, &consumer);
    // As if it were of another event service.
    let to = plain.0.stringify(Endian::Big);
    let words = ["-o", "json", "events", "bridge", "sure", &to, "--count", "5", "--for", "60s"];
    let mut command = std::process::Command::new(stage::QUORBA);
    command.args(words).current_dir(domain.folder.path());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let bridge = command.spawn().expect("quorba starts");
    wait_until("it is connected", || info(port, "sure").consumers == 1);
    let mut supplier = connect_supplier(&sure);
    (0..5).for_each(|number| push(&mut supplier, number));
    let output = bridge.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&told["from"], &told["passed"]), (&"sure".into(), &5.into()));
    wait_until("all have come", || peer.numbers() == [0, 1, 2, 3, 4]);
    wait_until("it has left", || info(port, "sure").consumers == 0);
    wait_until("its supplier, too", || info(port, "plain").suppliers == 0);

    let code = |words: &[&str]| domain.quorba(words).status.code();
    assert_eq!(code(&["events", "bridge", "none", "plain"]), Some(1));
    assert_eq!(code(&["events", "bridge", "IOR:00", "plain"]), Some(1));
    let early = ["events", "bridge", "sure", "plain", "--count", "1", "--for", "100ms"];
    assert_eq!(code(&early), Some(4));
}

/// The state of each node's server of the event service, once it has said how it is scheduled.
fn scheduled(domain: &Domain) -> Vec<Value> {
    let mut found = Vec::new();
    wait_until("every server says how it is scheduled", || {
        let status = domain.status();
        let nodes = status["nodes"].as_array().into_iter().flatten();
        let groups = nodes.flat_map(|one| one["status"]["groups"].as_array().into_iter().flatten());
        let events = groups.filter(|group| group["name"] == "events");
        found = events.map(|group| group["server"].clone()).collect();
        found.len() == 3 && found.iter().all(|server| server["scheduling"].is_object())
    });
    found
}

/// Of each thread of a process its name, its policy and its real-time priority, as the kernel says
/// it (proc_pid_stat: 41, 40).
fn threads(server: &Value) -> Vec<(String, u32, u32)> {
    let pid = server["pid"].as_u64().expect("a process");
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let read = |task: fs::DirEntry| {
        // A thread may have ended meanwhile.
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some((name.trim().to_owned(), fields[38].parse().ok()?, fields[37].parse().ok()?))
    };
    tasks.filter_map(|task| read(task.ok()?)).collect()
}

const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
const PRIORITY: u32 = 42;

/// A domain whose events have a priority; and its port.
fn prioritised() -> (Domain, u16) {
    let ports = stage::free_ports(21_500, 3);
    let text = format!(
        "[service.events]\nlisten = {ports}\nreal_time_priority = {PRIORITY}\n\
         [service.events.channel.plain]\n"
    );
    (Domain::start_group(&text), ports)
}

/// Passes some events, so that all threads that events wait for are there.
fn pass_events(port: u16) {
    let plain = channel(port, "plain");
    let consumer = Peer::default();
    let (_server, reference) = consumer.start();
    connect_consumer(&plain, &reference);
    let mut supplier = connect_supplier(&plain);
    (1..=20).for_each(|number| push(&mut supplier, number));
    wait_until("all are there", || consumer.numbers().len() == 20);
}

#[test]
fn events_have_threads_of_a_real_time_class_and_nothing_else_has() {
    let (domain, port) = prioritised();
    domain.wait_healthy();
    let servers = scheduled(&domain);
    if let Some(why) = servers[0]["scheduling"]["refused"].as_str() {
        let name = "events_have_threads_of_a_real_time_class_and_nothing_else_has";
        return skip(name, &format!("no real-time class is permitted: {why}"));
    }
    for server in &servers {
        assert_eq!(server["scheduling"]["wanted_priority"], PRIORITY, "{server}");
        assert_eq!(server["scheduling"]["real_time_priority"], PRIORITY, "{server}");
    }
    pass_events(port);
    let all: Vec<_> = servers.iter().map(threads).collect();
    for thread in all.iter().flatten() {
        let (_, policy, priority) = thread;
        let is_one = [(SCHED_OTHER, 0), (SCHED_FIFO, PRIORITY)].contains(&(*policy, *priority));
        assert!(is_one, "{thread:?}");
    }
    let is_real_time = |(_, policy, _): &&(String, u32, u32)| *policy == SCHED_FIFO;
    // At each member who hands out and who hears of leaders; at the leader who takes and calls.
    for threads in &all {
        assert!(threads.iter().filter(is_real_time).count() >= 2, "{threads:?}");
    }
    let connections = |threads: &&Vec<(String, u32, u32)>| {
        let takes = threads.iter().filter(|(name, _, _)| name.starts_with("connection-"));
        let (takes, others): (Vec<_>, Vec<_>) = takes.partition(|thread| is_real_time(thread));
        (takes.len(), others.len())
    };
    let leading: Vec<_> = all.iter().filter(|threads| connections(threads).0 > 0).collect();
    assert_eq!(leading.len(), 1, "one takes pushes: {all:?}");
    let (takes, others) = connections(&leading[0]);
    // What is ordered has two: for clients with code sets, as the service is one, and without.
    assert!(takes == 1 && others >= 2, "pushes have a connection of their own: {leading:?}");
    let calls =
        |(name, policy, _): &(String, u32, u32)| name == "events-call" && *policy == SCHED_FIFO;
    assert!(leading[0].iter().any(calls), "{leading:?}");
}

#[test]
fn events_go_on_where_no_real_time_class_is_permitted_and_the_status_says_what_helps() {
    let name = "events_go_on_where_no_real_time_class_is_permitted_and_the_status_says_what_helps";
    if rustix::process::getrlimit(rustix::process::Resource::Rtprio).current != Some(0) {
        return skip(name, "RLIMIT_RTPRIO permits it to everybody");
    }
    // Processes that a thread starts have no capability that it may not have.
    let drops = std::thread::spawn(|| {
        // Who may not drop it does not have it.
        let _ = remove_capability_from_bounding_set(CapabilitySet::SYS_NICE);
        prioritised()
    });
    let (domain, port) = drops.join().expect("it starts");
    domain.wait_healthy();
    for server in scheduled(&domain) {
        let scheduling = &server["scheduling"];
        let why = scheduling["refused"].as_str().expect("it is refused");
        assert!(why.contains("not permitted"), "{why}");
        assert_eq!(scheduling["wanted_priority"], PRIORITY, "{scheduling}");
        assert_eq!(scheduling["real_time_priority"], 0, "{scheduling}");
        let path = domain.folder.path().join(server["log"].as_str().expect("a log"));
        let mut log = String::new();
        wait_until("its log says so", || {
            log = fs::read_to_string(&path).unwrap_or_default();
            log.contains("CAP_SYS_NICE")
        });
        assert_eq!(log.matches("have no real-time priority 42: ").count(), 1, "{log}");
    }
    pass_events(port);
    for thread in scheduled(&domain).iter().flat_map(threads) {
        assert_eq!(thread.1, SCHED_OTHER, "{thread:?}");
    }
    let status = domain.status();
    assert_eq!(status["health"], "ok", "{status}");
    let told = text(&domain.quorba(&["status"]).stdout);
    for part in ["priority 42", "not permitted", "CAP_SYS_NICE", "LimitRTPRIO=42"] {
        assert!(told.contains(part), "{part} in {told}");
    }
}
