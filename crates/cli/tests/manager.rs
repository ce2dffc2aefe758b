//! The services of FT-CORBA in running nodes: groups that applications create live through the
//! death of a node and of all nodes, and consumers hear of what dies.

#[path = "manager/by_application.rs"]
mod by_application;
#[path = "manager/faults.rs"]
mod faults;
#[path = "manager/members.rs"]
mod members;
#[path = "manager/monitored.rs"]
mod monitored;
#[path = "manager/pushed.rs"]
mod pushed;
mod stage;

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::giop::SystemException;
use quorba_corba::{Any, Call, Cdr, Home, Interface, Object, Objects, Typed};
use quorba_demo::bank::ledger::Ledger;
use quorba_giop::{Completion, Endian, ExceptionKind};
use quorba_idl::cos_naming::NameComponent;
use quorba_idl::cos_notification::{EventTypeSeq, StructuredEvent};
use quorba_idl::cos_notify_comm::notify_publish::OfferChangeError;
use quorba_idl::cos_notify_comm::structured_push_consumer::PushStructuredEventError;
use quorba_idl::cos_notify_comm::{self, NotifyPublish, StructuredPushConsumer};
use quorba_idl::ft::generic_factory::{CreateObjectError, DeleteObjectError};
use quorba_idl::ft::{self, FaultNotifierStub, Name, Property, ReplicationManagerStub};
use quorba_notifier::event::Report;
use quorba_orb::{
    CallError, Client, ClientOptions, HeartbeatPolicy, Reference, RunningServer, Server,
    ServerOptions,
};
use rustix::process::{Pid, Signal, kill_process};
use stage::{Domain, LONG, QUORBA, has_stopped, pids, wait_until};

const LEDGER: &str = "IDL:Bank/Ledger:1.0";
/// The same server, which is started again at once.
const PROMPT: &str = "IDL:Bank/PromptLedger:1.0";
/// The same server, in groups that are durable.
const DURABLE: &str = "IDL:Bank/DurableLedger:1.0";

fn domain() -> Domain {
    let ports = stage::free_ports(21_500, 12);
    let bank = |id: &str, durable: bool, backoff_ms: u32| {
        format!(
            "[type.\"{id}\"]\n\
             server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
             state_object = \"bank\"\nobject_key = \"bank\"\ntype_id = \"{LEDGER}\"\n\
             durable = {durable}\nrestart_backoff_ms = {backoff_ms}\n"
        )
    };
    let services = |manager: u16, notifier: u16, shared: u16| {
        format!(
            "[gateway]\nlisten = {shared}\n\
             [service.replication-manager]\nlisten = {manager}\n\
             [service.fault-notifier]\nlisten = {notifier}\n{}{}{}",
            bank(LEDGER, false, 10_000),
            bank(PROMPT, false, 100),
            bank(DURABLE, true, 10_000)
        )
    };
    Domain::start_group(&services(ports, ports + 3, ports + 6))
}

/// The port that a service has on the first node.
fn port(domain: &Domain, service: &str) -> u16 {
    let file = std::fs::read_to_string(domain.folder.path().join("quorba.toml")).expect("read");
    let behind = file.split_once(&format!("[service.{service}]\nlisten = ")).expect("there").1;
    behind.lines().next().and_then(|line| line.parse().ok()).expect("a port")
}

fn client(domain: &Domain, service: &str, node: u16, key: &str) -> Client {
    let address = (Ipv4Addr::LOCALHOST, port(domain, service) + node).into();
    let options = ClientOptions { call_timeout: Some(LONG), ..ClientOptions::default() };
    Client::new(&Reference::direct(address, key.as_bytes()), options)
}

fn name(id: &str) -> Name {
    vec![NameComponent { id: id.to_owned(), kind: String::new() }]
}

fn property<T: Cdr + Typed>(id: &str, value: &T) -> Property {
    Property { nam: name(id), val: Any::new(value).expect("a value") }
}

/// A group of servers of that type, of so many members, and at least so many.
fn create(manager: &mut Client, of: &str, initial: u16, minimum: u16) -> Object {
    let own = vec![
        property("org.omg.ft.InitialNumberReplicas", &initial),
        property("org.omg.ft.MinimumNumberReplicas", &minimum),
    ];
    let criteria = vec![property("org.omg.ft.FTProperties", &own)];
    let created = ReplicationManagerStub(manager).create_object(&of.to_owned(), &criteria);
    created.expect("created").0
}

fn locations(manager: &mut Client, group: &Object) -> Vec<String> {
    let found = ReplicationManagerStub(manager).locations_of_members(group).expect("a group");
    found.into_iter().map(|location| location[0].id.clone()).collect()
}

fn ledger(group: &Object) -> Ledger {
    let reference = Reference::parse(&group.0.stringify(Endian::Big)).expect("a reference");
    let options = ClientOptions { call_timeout: Some(LONG), ..ClientOptions::default() };
    Ledger::new(Client::new(&reference, options))
}

/// A consumer that keeps what it is given.
#[derive(Clone, Default)]
struct Consumer(Arc<Mutex<Vec<Report>>>);

impl Objects for Consumer {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(cos_notify_comm::STRUCTURED_PUSH_CONSUMER)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        cos_notify_comm::dispatch_structured_push_consumer(self, call)
    }
}

impl NotifyPublish for Consumer {
    fn offer_change(&mut self, _: EventTypeSeq, _: EventTypeSeq) -> Result<(), OfferChangeError> {
        Ok(())
    }
}

impl StructuredPushConsumer for Consumer {
    fn push_structured_event(
        &mut self,
        notification: StructuredEvent,
    ) -> Result<(), PushStructuredEventError> {
        let report = Report::of_event(&notification).expect("a report");
        self.0.lock().expect("no holder panics").push(report);
        Ok(())
    }

    fn disconnect_structured_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Consumer {
    fn start(&self) -> (RunningServer, Object) {
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let server = server.expect("a port").with_objects(self.clone()).start().expect("threads");
        let address = (server.address().ip().to_string(), server.address().port());
        let home = Home { addresses: vec![address], prefix: Vec::new() };
        let id = cos_notify_comm::STRUCTURED_PUSH_CONSUMER.id();
        (server, home.object(id, b"consumer"))
    }

    fn reports(&self) -> Vec<Report> {
        self.0.lock().expect("no holder panics").clone()
    }
}

/// The process that a node is, or its server of a group.
fn process(domain: &Domain, node: &str, group: Option<&str>) -> Pid {
    let status = domain.status();
    let nodes = status["nodes"].as_array().expect("a list");
    let found = nodes.iter().find(|one| one["name"] == node).expect("a node");
    let status = &found["status"];
    let pid = match group {
        None => status["pid"].as_i64(),
        Some(name) => {
            let groups = status["groups"].as_array().expect("a list");
            let group = groups.iter().find(|one| one["name"] == name).expect("a group");
            group["server"]["pid"].as_i64()
        }
    };
    pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).expect("it runs")
}

/// Kills what a node is, or its server of a group.
fn kill(domain: &Domain, node: &str, group: Option<&str>) {
    kill_process(process(domain, node, group), Signal::KILL).expect("it ran");
}

#[test]
fn groups_live_through_the_death_of_a_node_and_of_all_nodes_and_faults_are_reported() {
    let mut domain = domain();
    let health = domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    // What one service is known by is found at the port of another one, too.
    let mut notifier = client(&domain, "replication-manager", 1, "FaultNotifier");
    let consumer = Consumer::default();
    let (_server, reference) = consumer.start();
    FaultNotifierStub(&mut notifier).connect_structured_fault_consumer(&reference).expect("new");
    let group = create(&mut manager, LEDGER, 2, 2);
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    let number = ReplicationManagerStub(&mut manager).get_object_group_id(&group).expect("one");
    let mut bank = ledger(&group);
    bank.open("a", "1").expect("opened");
    assert_eq!(bank.deposit("a", 5, "2").expect("booked"), 5);

    // A member dies: it is reported, and replaced on the third node.
    let killed = Instant::now();
    kill(&domain, "n2", Some("object-1"));
    wait_until("the member is reported", || {
        let reports = consumer.reports();
        reports.iter().any(|one| one.location == "n2" && one.group == Some(number))
    });
    println!("reported after {:?}", killed.elapsed());
    wait_until("the minimum is restored", || locations(&mut manager, &group) == ["n1", "n3"]);
    println!("restored after {:?}", killed.elapsed());
    assert_eq!(bank.balance("a").expect("it answers"), 5);

    // All nodes end at once: all groups are there again, and the state of those that are durable.
    let durable = create(&mut manager, DURABLE, 3, 2);
    ledger(&durable).open("b", "1").expect("opened");
    assert_eq!(ledger(&durable).deposit("b", 7, "2").expect("booked"), 7);
    domain.black_out(&pids(&health));
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 1, "ReplicationManager");
    assert_eq!(locations(&mut manager, &group), ["n1", "n3"]);
    let latest = ReplicationManagerStub(&mut manager).get_object_group_ref(&group).expect("one");
    assert!(latest.0.ft_group().expect("a group").reference_version > 1);
    assert_eq!(ledger(&durable).balance("b").expect("it answers"), 7);
    // Of the other one nothing is claimed but that it serves.
    ledger(&latest).open("a", "3").expect("opened");
    let had = ledger(&latest).balance("a").expect("it answers");
    let other = create(&mut manager, LEDGER, 1, 1);
    assert_ne!(other.0.ft_group(), latest.0.ft_group());

    // A node dies: it is reported once, and the group goes on.
    let before = consumer.reports().len();
    kill(&domain, "n3", None);
    wait_until("the node is reported", || {
        consumer.reports()[before..].iter().any(|one| one.location == "n3" && one.group.is_none())
    });
    wait_until("the minimum is restored", || locations(&mut manager, &group) == ["n1", "n2"]);
    assert_eq!(ledger(&latest).deposit("a", 6, "4").expect("booked"), had + 6);
    let of_n3 = consumer.reports()[before..].iter().filter(|one| one.location == "n3").count();
    assert_eq!(of_n3, 1, "{:?}", consumer.reports());
}

#[test]
fn our_client_follows_its_group_to_new_members_and_learns_that_it_is_gone() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let own = vec![
        property("org.omg.ft.InitialNumberReplicas", &2_u16),
        property("org.omg.ft.MinimumNumberReplicas", &2_u16),
    ];
    let criteria = vec![property("org.omg.ft.FTProperties", &own)];
    let created = ReplicationManagerStub(&mut manager).create_object(&LEDGER.to_owned(), &criteria);
    let (group, creation) = created.expect("created");
    let reference = Reference::parse(&group.0.stringify(Endian::Big)).expect("a reference");
    let version_of = |reference: &Reference| reference.group().expect("a group").reference_version;
    let heartbeat = Some(HeartbeatPolicy { interval: Duration::from_millis(1), timeout: LONG });
    let options = ClientOptions { call_timeout: Some(LONG), heartbeat, ..ClientOptions::default() };
    let mut client = Client::new(&reference, options);
    assert!(!client.non_existent().expect("an answer"));
    assert_eq!(version_of(client.reference()), version_of(&reference));

    kill(&domain, "n2", Some("object-1"));
    wait_until("it has another member", || locations(&mut manager, &group) == ["n1", "n3"]);
    let latest = ReplicationManagerStub(&mut manager).get_object_group_ref(&group).expect("one");
    let newest = latest.0.ft_group().expect("a group").reference_version;
    assert!(newest > version_of(&reference));
    assert!(group.0.is_equivalent(&latest.0));
    assert_eq!(group.0.hash(u32::MAX), latest.0.hash(u32::MAX));
    wait_until("it has heard of that", || {
        assert!(!client.non_existent().expect("an answer"));
        version_of(client.reference()) == newest
    });

    ReplicationManagerStub(&mut manager).delete_object(&creation).expect("deleted");
    wait_until("no node knows it", || client.non_existent().expect("an answer"));
}

#[test]
fn a_client_that_sends_heartbeats_leaves_a_node_that_has_stopped() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let group = create(&mut manager, LEDGER, 2, 1);
    let reference = Reference::parse(&group.0.stringify(Endian::Big)).expect("a reference");
    let (interval, timeout) = (Duration::from_millis(20), Duration::from_secs(3));
    let heartbeat = Some(HeartbeatPolicy { interval, timeout });
    // Nothing else would end its calls.
    let options = ClientOptions { call_timeout: None, heartbeat, ..ClientOptions::default() };
    let mut client = Client::new(&reference, options);
    assert!(client.is_a(LEDGER).expect("an answer"), "the group's first address is at n1");

    let stopped = process(&domain, "n1", None);
    kill_process(stopped, Signal::STOP).expect("it runs");
    wait_until("it has stopped", || has_stopped(stopped));
    let lost = client.is_a(LEDGER);
    let next = client.is_a(LEDGER);
    kill_process(stopped, Signal::CONT).expect("it is there");
    let Err(CallError::System(lost)) = lost else { panic!("nobody could answer: {lost:?}") };
    assert_eq!((lost.kind, lost.completed), (ExceptionKind::CommFailure, Completion::Maybe));
    assert!(next.expect("another node answers"));
}

/// An application's object, and the factory that gives it out.
#[derive(Clone)]
struct Monitored {
    is_alive: Arc<AtomicBool>,
    /// How often it was asked.
    asked: Arc<AtomicUsize>,
    /// Known when its server runs.
    object: Arc<OnceLock<Object>>,
}

const OBJECT: &[u8] = b"object";
const FACTORY: &[u8] = b"factory";

impl Objects for Monitored {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        Some(if key == OBJECT { ft::PULL_MONITORABLE } else { ft::GENERIC_FACTORY })
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        if key == OBJECT {
            ft::dispatch_pull_monitorable(self, call)
        } else {
            ft::dispatch_generic_factory(self, call)
        }
    }
}

impl ft::PullMonitorable for Monitored {
    fn is_alive(&mut self) -> Result<bool, SystemException> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.is_alive.load(Ordering::SeqCst))
    }
}

impl ft::GenericFactory for Monitored {
    fn create_object(
        &mut self,
        _: ft::TypeId,
        _: ft::Criteria,
    ) -> Result<(Object, Any), CreateObjectError> {
        let object = self.object.get().expect("its server runs").clone();
        Ok((object, Any::new(&1_u64).expect("a number")))
    }

    fn delete_object(&mut self, _: Any) -> Result<(), DeleteObjectError> {
        Ok(())
    }
}

/// The factory of a node, which has one object.
fn monitored() -> (RunningServer, Monitored, Object) {
    let monitored = Monitored {
        is_alive: Arc::new(true.into()),
        asked: Arc::default(),
        object: Arc::default(),
    };
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
    let server = server.expect("a port").with_objects(monitored.clone()).start().expect("threads");
    let home = at(server.address().port());
    monitored.object.set(home.object(ft::PULL_MONITORABLE.id(), OBJECT)).expect("once");
    (server, monitored, home.object(ft::GENERIC_FACTORY.id(), FACTORY))
}

fn at(port: u16) -> Home {
    Home { addresses: vec![(Ipv4Addr::LOCALHOST.to_string(), port)], prefix: Vec::new() }
}

/// What each group of these factories is to be like.
fn common(sites: &[(RunningServer, Monitored, Object)]) -> Vec<Property> {
    let factory = |(at, site): (usize, &(RunningServer, Monitored, Object))| ft::FactoryInfo {
        the_factory: site.2.clone(),
        the_location: name(&format!("n{}", at + 1)),
        the_criteria: Vec::new(),
    };
    let factories: Vec<ft::FactoryInfo> = sites.iter().enumerate().map(factory).collect();
    vec![
        property("org.omg.ft.Factories", &factories),
        property("org.omg.ft.ReplicationStyle", &ft::STATELESS),
        property("org.omg.ft.InitialNumberReplicas", &2_u16),
        property("org.omg.ft.MinimumNumberReplicas", &2_u16),
    ]
}

/// One whose objects are asked every 50 ms.
fn pulled(sites: &[(RunningServer, Monitored, Object)]) -> ft::Criteria {
    let times = ft::FaultMonitoringIntervalAndTimeoutValue {
        monitoring_interval: 500_000,
        timeout: 20_000_000,
    };
    let mut own = common(sites);
    own.extend([
        property("org.omg.ft.FaultMonitoringStyle", &ft::PULL),
        property("org.omg.ft.FaultMonitoringIntervalAndTimeout", &times),
    ]);
    vec![property("org.omg.ft.FTProperties", &own)]
}

#[test]
fn an_object_that_is_asked_and_is_not_alive_is_reported_and_replaced() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let mut notifier = client(&domain, "fault-notifier", 1, "FaultNotifier");
    let consumer = Consumer::default();
    let (_server, reference) = consumer.start();
    FaultNotifierStub(&mut notifier).connect_structured_fault_consumer(&reference).expect("new");
    let registered =
        at(port(&domain, "fault-notifier")).object(ft::FAULT_NOTIFIER.id(), b"FaultNotifier");
    ReplicationManagerStub(&mut manager).register_fault_notifier(&registered).expect("taken");

    let sites: Vec<_> = (0..3).map(|_| monitored()).collect();
    let thing = "IDL:Test/Thing:1.0".to_owned();
    let created = ReplicationManagerStub(&mut manager).create_object(&thing, &pulled(&sites));
    let (group, _) = created.expect("created");
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    let number = ReplicationManagerStub(&mut manager).get_object_group_id(&group).expect("one");

    let stopped = Instant::now();
    sites[0].1.is_alive.store(false, Ordering::SeqCst);
    wait_until("it is replaced", || locations(&mut manager, &group) == ["n2", "n3"]);
    println!("replaced after {:?}", stopped.elapsed());
    wait_until("it is reported", || {
        let reports = consumer.reports();
        reports.iter().any(|one| one.location == "n1" && one.group == Some(number))
    });
    // The others answer, and stay.
    assert_eq!(consumer.reports().len(), 1, "{:?}", consumer.reports());
    assert_eq!(locations(&mut manager, &group), ["n2", "n3"]);
}

/// A factory that is called, and whose answer never comes.
fn mute_factory() -> Object {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut octets = [0; 12];
            let _read = stream.and_then(|mut stream| stream.read_exact(&mut octets));
        }
    });
    at(address.port()).object(ft::GENERIC_FACTORY.id(), b"factory")
}

#[test]
fn where_a_factory_may_have_made_an_object_that_nobody_knows_of_the_status_says_so() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let factories = vec![ft::FactoryInfo {
        the_factory: mute_factory(),
        the_location: name("n1"),
        the_criteria: Vec::new(),
    }];
    let own = vec![
        property("org.omg.ft.Factories", &factories),
        property("org.omg.ft.ReplicationStyle", &ft::STATELESS),
        property("org.omg.ft.InitialNumberReplicas", &1_u16),
    ];
    let criteria = vec![property("org.omg.ft.FTProperties", &own)];
    let thing = "IDL:Test/Thing:1.0".to_owned();
    let created = ReplicationManagerStub(&mut manager).create_object(&thing, &criteria);
    assert!(created.is_err(), "{created:?}");
    wait_until("an operator is told", || {
        let status = domain.status();
        let nodes = status["nodes"].as_array().expect("a list");
        let warnings = nodes.iter().filter_map(|node| node["status"]["warnings"].as_array());
        let mut texts = warnings.flatten().filter_map(|warning| warning.as_str());
        texts.any(|text| text.contains("nobody knows of") && text.contains(&thing))
    });
}
