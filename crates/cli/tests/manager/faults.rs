//! Faults in running nodes: who tells of them, who hears of them, and what is shown.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use quorba_idl::tao_ft;
use serde_json::Value;

use super::*;

/// A domain whose services are on one node alone.
fn blind() -> Domain {
    let ports = stage::free_ports(21_500, 12);
    let (manager, notifier, shared) = (ports, ports + 3, ports + 6);
    Domain::start_group(&format!(
        "[gateway]\nlisten = {shared}\n\
         [service.replication-manager]\nlisten = {manager}\nmembers = [\"n1\"]\n\
         [service.fault-notifier]\nlisten = {notifier}\nmembers = [\"n1\"]\n\
         [type.\"{LEDGER}\"]\n\
         server = [\"{QUORBA}\", \"servant\", \"bank\", \"--port\", \"{{port}}\"]\n\
         state_object = \"bank\"\nobject_key = \"bank\"\ntype_id = \"{LEDGER}\"\n\
         restart_backoff_ms = 10000\n"
    ))
}

/// A consumer that is connected, which lives as long as its server.
fn connected(domain: &Domain) -> (RunningServer, Consumer) {
    let mut notifier = client(domain, "fault-notifier", 1, "FaultNotifier");
    let consumer = Consumer::default();
    let (server, reference) = consumer.start();
    FaultNotifierStub(&mut notifier).connect_structured_fault_consumer(&reference).expect("new");
    (server, consumer)
}

/// The lines of a command's output as JSON.
fn lines(domain: &Domain, arguments: &[&str]) -> Vec<Value> {
    let output = domain.quorba(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("a text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// `quorba faults --follow`, and what it prints.
struct Follower(Child, mpsc::Receiver<String>);

impl Follower {
    fn start(domain: &Domain, output: &str) -> Self {
        let mut command = Command::new(QUORBA);
        command.args(["-o", output, "faults", "--follow"]).current_dir(domain.folder.path());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("quorba runs");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        Self(child, lines)
    }

    /// The next line in which this is.
    fn next(&self, what: &str) -> String {
        let line = || self.1.recv_timeout(LONG).expect("it is shown");
        std::iter::repeat_with(line).find(|line| line.contains(what)).expect("the first one")
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        self.0.wait().expect("it ends");
    }
}

#[test]
fn services_on_one_node_hear_of_a_member_that_dies_on_another_one() {
    let domain = blind();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    let (_server, consumer) = connected(&domain);
    let group = create(&mut manager, LEDGER, 2, 2);
    assert_eq!(locations(&mut manager, &group), ["n1", "n2"]);
    let number = ReplicationManagerStub(&mut manager).get_object_group_id(&group).expect("one");
    let (people, machine) = (Follower::start(&domain, "text"), Follower::start(&domain, "json"));
    people.next("OBJECT GROUP");

    let killed = Instant::now();
    kill(&domain, "n2", Some("object-1"));
    wait_until("the member is reported", || !consumer.reports().is_empty());
    println!("reported after {:?}", killed.elapsed());
    wait_until("the minimum is restored", || locations(&mut manager, &group) == ["n1", "n3"]);
    println!("restored after {:?}", killed.elapsed());
    assert!(people.next("n2").contains(LEDGER));
    let line: Value = serde_json::from_str(&machine.next("n2")).expect("JSON");
    assert_eq!((&line["object_group"], &line["type_id"]), (&number.into(), &LEDGER.into()));

    domain.wait_healthy();
    kill(&domain, "n3", Some("object-1"));
    machine.next("n3");
    kill(&domain, "n3", None);
    let line: Value = serde_json::from_str(&machine.next("n3")).expect("JSON");
    assert_eq!(line["object_group"], Value::Null, "the node");
    let all = lines(&domain, &["-o", "json", "faults"]);
    let seen: Vec<_> = all.iter().map(|one| one["node"].as_str().expect("a node")).collect();
    assert_eq!(seen, ["n2", "n3", "n3"]);
    assert_eq!(consumer.reports().len(), 3, "each once: {:?}", consumer.reports());
}

#[test]
fn an_object_is_reported_once_for_each_time_it_dies_to_the_domains_own_notifier() {
    let domain = domain();
    domain.wait_healthy();
    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    // Whoever asks for the notifier is given that of the domain, in either form.
    let own = ReplicationManagerStub(&mut manager).get_fault_notifier().expect("the domain's");
    let consumer = Consumer::default();
    let (_server, reference) = consumer.start();
    let of = |object: &Object| {
        let reference = Reference::parse(&object.0.stringify(Endian::Big)).expect("a reference");
        Client::new(&reference, ClientOptions::default())
    };
    FaultNotifierStub(&mut of(&own)).connect_structured_fault_consumer(&reference).expect("new");
    let mut tao = client(&domain, "replication-manager", 1, "TAO/ReplicationManager");
    let own = tao_ft::ReplicationManagerStub(&mut tao).get_fault_notifier().expect("TAO's");
    assert_eq!(tao_ft::FaultNotifierStub(&mut of(&own)).is_alive(), Ok(true));

    // There are no other places for its objects.
    let sites: Vec<_> = (0..2).map(|_| monitored()).collect();
    let thing = "IDL:Test/Thing:1.0".to_owned();
    let created = ReplicationManagerStub(&mut manager).create_object(&thing, &pulled(&sites));
    let number = created.expect("created").0.0.ft_group().expect("a group").group_id;
    let site = &sites[0].1;
    let asked = || site.asked.load(Ordering::SeqCst);
    let asked_more = || {
        let before = asked();
        wait_until("it is asked again", || asked() > before + 3);
    };
    asked_more();
    let heard = || {
        let reports = consumer.reports().into_iter();
        reports.filter(|one| one.group == Some(number)).collect::<Vec<_>>()
    };
    let is_shown = |count: usize| {
        let all = lines(&domain, &["-o", "json", "faults"]);
        all.iter().filter(|one| one["object_group"] == number).count() == count
    };

    // Nobody is there who is to hear it.
    let nobody = at(stage::free_ports(30_500, 1)).object(ft::FAULT_NOTIFIER.id(), b"nobody");
    ReplicationManagerStub(&mut manager).register_fault_notifier(&nobody).expect("taken");
    site.is_alive.store(false, Ordering::SeqCst);
    asked_more();
    // The process that has found it, and leads, ends meanwhile; and another notifier is there.
    kill(&domain, "n1", Some("replication-manager"));
    let mut manager = client(&domain, "replication-manager", 1, "ReplicationManager");
    ReplicationManagerStub(&mut manager).register_fault_notifier(&Object::nil()).expect("taken");
    wait_until("it is reported", || heard().len() == 1);
    domain.wait_healthy();
    asked_more();
    let reports = heard();
    assert!(reports.len() == 1 && reports[0].location == "n1", "{reports:?}");
    assert!(is_shown(1));

    // It lives again, and dies again.
    site.is_alive.store(true, Ordering::SeqCst);
    asked_more();
    site.is_alive.store(false, Ordering::SeqCst);
    wait_until("it is reported again", || heard().len() == 2);
    assert!(is_shown(2));
}

/// A consumer that takes nothing.
#[derive(Clone, Default)]
struct Unwilling {
    is_told: Arc<AtomicBool>,
}

impl Objects for Unwilling {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(cos_notify_comm::STRUCTURED_PUSH_CONSUMER)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        cos_notify_comm::dispatch_structured_push_consumer(self, call)
    }
}

impl NotifyPublish for Unwilling {
    fn offer_change(&mut self, _: EventTypeSeq, _: EventTypeSeq) -> Result<(), OfferChangeError> {
        Ok(())
    }
}

impl StructuredPushConsumer for Unwilling {
    fn push_structured_event(
        &mut self,
        _: StructuredEvent,
    ) -> Result<(), PushStructuredEventError> {
        Err(quorba_idl::cos_event_comm::Disconnected {}.into())
    }

    fn disconnect_structured_push_consumer(&mut self) -> Result<(), SystemException> {
        self.is_told.store(true, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn who_is_cut_off_is_told_so_and_people_see_why() {
    let domain = domain();
    domain.wait_healthy();
    let (_server, consumer) = connected(&domain);
    let unwilling = Unwilling::default();
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
    let server = server.expect("a port").with_objects(unwilling.clone()).start().expect("threads");
    let id = cos_notify_comm::STRUCTURED_PUSH_CONSUMER.id();
    let reference = at(server.address().port()).object(id, b"unwilling");
    let mut notifier = client(&domain, "fault-notifier", 0, "TAO/FaultNotifier");
    let connection = tao_ft::FaultNotifierStub(&mut notifier)
        .connect_structured_fault_consumer(&reference, &Object::nil())
        .expect("connected");
    let shown = || lines(&domain, &["-o", "json", "faults", "--consumers"]);
    let one_of = |all: &[Value]| {
        let found = all.iter().find(|one| one["connection"] == connection);
        found.cloned().expect("it is shown")
    };
    let before = one_of(&shown());
    assert_eq!((&before["form"], &before["cut_off"]), (&"TAO".into(), &Value::Null));

    let mut manager = client(&domain, "replication-manager", 0, "ReplicationManager");
    create(&mut manager, LEDGER, 2, 1);
    kill(&domain, "n2", Some("object-1"));
    wait_until("it is told", || unwilling.is_told.load(Ordering::SeqCst));
    wait_until("that is known", || one_of(&shown())["was_told"] == true);
    let after = one_of(&shown());
    let why = after["cut_off"].as_str().expect("a reason");
    assert!(why.contains("disconnected"), "{why}");
    let place = after["consumer"].as_str().expect("a place").to_owned();
    assert_eq!(place, format!("127.0.0.1:{}", server.address().port()));
    let output = domain.quorba(&["faults", "--consumers"]);
    let text = String::from_utf8(output.stdout).expect("a text");
    let line = |what: &str| text.lines().any(|line| line.contains(what));
    assert!(line("connected") && line(&place) && line(&format!("cut off: {why}")), "{text}");
    wait_until("the other one has it", || consumer.reports().len() == 1);
}
