//! FaultMonitoringStyle PUSH in running nodes.

use quorba_idl::quorba::PushMonitorStub;

use super::*;

/// A group of these factories, whose members push.
fn pushed(sites: &[(RunningServer, Monitored, Object)], times: Option<(u64, u64)>) -> ft::Criteria {
    let mut own = common(sites);
    own.push(property("org.omg.ft.FaultMonitoringStyle", &ft::PUSH));
    own.extend(times.map(|(monitoring_interval, timeout)| {
        let times = ft::FaultMonitoringIntervalAndTimeoutValue { monitoring_interval, timeout };
        property("org.omg.ft.FaultMonitoringIntervalAndTimeout", &times)
    }));
    vec![property("org.omg.ft.FTProperties", &own)]
}

/// An object that says that it lives, as long as it does; it counts how often that was heard.
fn push(domain: &Domain, node: u16, site: &Monitored) -> Arc<AtomicUsize> {
    let mut monitor = client(domain, "replication-manager", node, "PushMonitor");
    let (site, heard) = (site.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&heard);
    thread::spawn(move || {
        let object = site.object.get().expect("its server runs").clone();
        while site.is_alive.load(Ordering::SeqCst) {
            if PushMonitorStub(&mut monitor).alive(&object) == Ok(true) {
                count.fetch_add(1, Ordering::SeqCst);
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    heard
}

#[test]
fn an_object_that_no_longer_says_that_it_lives_is_reported_and_replaced() {
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
    // Each calls another node than its own: all of them hear it.
    let pushers = [1, 2, 0].iter().zip(&sites);
    let heard: Vec<_> = pushers.map(|(at, it)| push(&domain, *at, &it.1)).collect();
    let thing = "IDL:Test/Thing:1.0".to_owned();
    let wanted = pushed(&sites, Some((1_000_000, 20_000_000)));
    let created = ReplicationManagerStub(&mut manager).create_object(&thing, &wanted);
    let (group, _) = created.expect("created");
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    // For longer than one may be silent: 2.1 s, so that a busy machine is none who is silent.
    let count = |at: usize| heard[at].load(Ordering::SeqCst);
    wait_until("both were heard often", || count(0) > 60 && count(1) > 60);
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);

    let stopped = Instant::now();
    sites[0].1.is_alive.store(false, Ordering::SeqCst);
    wait_until("it is replaced", || locations(&mut manager, &group) == ["n2", "n3"]);
    println!("replaced after {:?}", stopped.elapsed());
    assert!(stopped.elapsed() > Duration::from_secs(2), "not before it could be silent");
    wait_until("the other one is heard", || count(2) > 0);
    let number = ReplicationManagerStub(&mut manager).get_object_group_id(&group).expect("one");
    wait_until("it is reported", || {
        let reports = consumer.reports();
        reports.iter().any(|one| one.location == "n1" && one.group == Some(number))
    });
    let before = count(2);
    wait_until("the others were heard often", || count(2) > before + 20);
    assert_eq!(consumer.reports().len(), 1, "{:?}", consumer.reports());
    assert_eq!(locations(&mut manager, &group), ["n2", "n3"]);
}

#[test]
fn who_was_reported_by_an_application_is_replaced_unless_it_says_that_it_is_alive() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let mut notifier = client(&domain, "fault-notifier", 1, "FaultNotifier");
    let sites: Vec<_> = (0..3).map(|_| monitored()).collect();
    let thing = "IDL:Test/Thing:1.0".to_owned();
    let wanted = pushed(&sites, None);
    let created = ReplicationManagerStub(&mut manager).create_object(&thing, &wanted);
    let (group, _) = created.expect("created");
    let named = group.0.ft_group().expect("a group");
    let report = Report {
        domain_id: String::from_utf8(named.domain_id).expect("a text"),
        location: "n1".to_owned(),
        type_id: Some(thing),
        group: Some(named.group_id),
        incident: String::new(),
    };
    FaultNotifierStub(&mut notifier).push_structured_fault(&report.to_event()).expect("taken");
    wait_until("it is asked", || sites[0].1.asked.load(Ordering::SeqCst) > 0);
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);

    sites[0].1.is_alive.store(false, Ordering::SeqCst);
    let reported = Instant::now();
    let events = vec![report.to_event()];
    FaultNotifierStub(&mut notifier).push_sequence_fault(&events).expect("taken");
    wait_until("it is replaced", || locations(&mut manager, &group) == ["n2", "n3"]);
    println!("replaced after {:?}", reported.elapsed());
    // Nobody else was asked.
    assert_eq!(sites[1].1.asked.load(Ordering::SeqCst), 0);
}
