//! FaultMonitoringStyle of servers that nodes start, and of objects at nodes without a manager.

use super::*;

/// Servers that may be asked `is_alive`.
const ASKED: &str = "IDL:Bank/AskedLedger:1.0";

/// A domain whose managers are on these nodes.
fn domain(managers: &str) -> Domain {
    let ports = stage::free_ports(21_500, 12);
    let (manager, notifier, shared) = (ports, ports + 3, ports + 6);
    let bank = |id: &str, more: &str| {
        format!(
            "[type.\"{id}\"]\n\
             server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
             state_object = \"bank\"\nobject_key = \"bank\"\nrestart_backoff_ms = 10000\n{more}"
        )
    };
    Domain::start_group(&format!(
        "[gateway]\nlisten = {shared}\n\
         [service.replication-manager]\nlisten = {manager}\nmembers = [{managers}]\n\
         [service.fault-notifier]\nlisten = {notifier}\n{}{}",
        bank(LEDGER, ""),
        bank(ASKED, "pull_monitorable = true\n")
    ))
}

fn connected(domain: &Domain) -> (RunningServer, Consumer) {
    let mut notifier = client(domain, "fault-notifier", 1, "FaultNotifier");
    let consumer = Consumer::default();
    let (server, reference) = consumer.start();
    FaultNotifierStub(&mut notifier).connect_structured_fault_consumer(&reference).expect("new");
    (server, consumer)
}

/// A group of two that is monitored like this.
fn watched(manager: &mut Client, of: &str, style: u16) -> Object {
    let times = ft::FaultMonitoringIntervalAndTimeoutValue {
        monitoring_interval: 500_000,
        timeout: 20_000_000,
    };
    let own = vec![
        property("org.omg.ft.InitialNumberReplicas", &2_u16),
        property("org.omg.ft.MinimumNumberReplicas", &2_u16),
        property("org.omg.ft.FaultMonitoringStyle", &style),
        property("org.omg.ft.FaultMonitoringIntervalAndTimeout", &times),
    ];
    let criteria = vec![property("org.omg.ft.FTProperties", &own)];
    let created = ReplicationManagerStub(manager).create_object(&of.to_owned(), &criteria);
    created.expect("created").0
}

fn number(group: &Object) -> Option<u64> {
    group.0.ft_group().map(|named| named.group_id)
}

#[test]
fn of_what_is_not_monitored_nobody_is_told_and_its_minimum_is_kept() {
    let domain = domain("\"n1\", \"n2\", \"n3\"");
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let (_server, consumer) = connected(&domain);
    let quiet = watched(&mut manager, LEDGER, ft::NOT_MONITORED);
    let other = watched(&mut manager, LEDGER, ft::PULL);
    kill(&domain, "n2", Some("object-1"));
    wait_until("the minimum is restored", || locations(&mut manager, &quiet) == ["n1", "n3"]);
    kill(&domain, "n2", Some("object-2"));
    // Reports come in their order.
    wait_until("the other one is reported", || !consumer.reports().is_empty());
    let told: Vec<_> = consumer.reports().iter().map(|one| one.group).collect();
    assert_eq!(told, [number(&other)]);
}

#[test]
fn a_server_that_says_nothing_when_it_is_asked_is_reported_and_replaced() {
    let domain = domain("\"n1\", \"n2\", \"n3\"");
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let (_server, consumer) = connected(&domain);
    let group = watched(&mut manager, ASKED, ft::PULL);
    // A member has a reference of its own, by way of its node.
    let member = ReplicationManagerStub(&mut manager).get_member_ref(&group, &name("n2"));
    let member = member.expect("it is in");
    assert!(member.0.ft_group().is_none() && member.0.endpoints().len() == 1);
    ledger(&member).open("a", "1").expect("opened");
    assert_eq!(ledger(&group).deposit("a", 5, "2").expect("booked"), 5);

    // Nobody calls it, so that only who asks can find it.
    let stopped = process(&domain, "n2", Some("object-1"));
    kill_process(stopped, Signal::STOP).expect("it runs");
    wait_until("it is reported", || {
        let reports = consumer.reports();
        reports.iter().any(|one| one.location == "n2" && one.group == number(&group))
    });
    wait_until("it is replaced", || locations(&mut manager, &group) == ["n1", "n3"]);
    let latest = ReplicationManagerStub(&mut manager).get_object_group_ref(&group).expect("one");
    assert_eq!(ledger(&latest).balance("a").expect("it answers"), 5);
}

#[test]
fn objects_at_nodes_without_a_manager_are_asked_and_listened_to() {
    let domain = domain("\"n1\"");
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let (_server, consumer) = connected(&domain);
    let sites: Vec<_> = (0..3).map(|_| monitored()).collect();
    let thing = "IDL:Test/Thing:1.0".to_owned();
    let mut create = |criteria: &ft::Criteria| {
        let created = ReplicationManagerStub(&mut manager).create_object(&thing, criteria);
        created.expect("created").0
    };
    let group = create(&pulled(&sites));
    wait_until("the one at n2 is asked", || sites[1].1.asked.load(Ordering::SeqCst) > 0);
    sites[1].1.is_alive.store(false, Ordering::SeqCst);
    wait_until("it is reported", || {
        let reports = consumer.reports();
        reports.iter().any(|one| one.location == "n2" && one.group == number(&group))
    });
    wait_until("it is replaced", || locations(&mut manager, &group) == ["n1", "n3"]);

    let silent: Vec<_> = (0..3).map(|_| monitored()).collect();
    let mut own = common(&silent);
    let times = ft::FaultMonitoringIntervalAndTimeoutValue {
        monitoring_interval: 1_000_000,
        timeout: 1_000_000,
    };
    own.extend([
        property("org.omg.ft.FaultMonitoringStyle", &ft::PUSH),
        property("org.omg.ft.FaultMonitoringIntervalAndTimeout", &times),
    ]);
    let criteria = vec![property("org.omg.ft.FTProperties", &own)];
    let created = ReplicationManagerStub(&mut manager).create_object(&thing, &criteria);
    let group = created.expect("created").0;
    // Nobody says that it lives.
    wait_until("the one at n2 is silent", || {
        let reports = consumer.reports();
        reports.iter().any(|one| one.location == "n2" && one.group == number(&group))
    });
}
