//! Subscriptions in running nodes, whose callers want so many members to have executed them
//! (Huang05 §3.4), while one member's process does nothing, and when it is killed.

mod stage;

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use quorba_corba::Home;
use quorba_giop::ExceptionKind;
use quorba_idl::ft_rtec_event_channel_admin::EventChannelStub;
use quorba_idl::quorba_events::ChannelsStub;
use quorba_idl::rtec_event_channel_admin::ConsumerQOS;
use quorba_idl::rtec_event_comm;
use quorba_orb::{Client, ClientOptions, Reference, Repeat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stage::{Domain, LONG, wait_until};

/// A client of the facade of the channel that wants so much, at one node's gateway.
fn client(port: u16, depth: Option<u32>) -> Client {
    let reference = Reference::direct((Ipv4Addr::LOCALHOST, port).into(), b"Events/plain/ft");
    let options = ClientOptions {
        call_timeout: Some(LONG),
        transaction_depth: depth,
        repeat: Some(Repeat::new("depth", 0)),
        ..ClientOptions::default()
    };
    Client::new(&reference, options)
}

/// Subscribes; or says what was raised.
fn subscribe(port: u16, depth: Option<u32>) -> Result<(), String> {
    let home = Home { addresses: vec![(Ipv4Addr::LOCALHOST.to_string(), 1)], prefix: Vec::new() };
    let nobody = home.object(rtec_event_comm::PUSH_CONSUMER.id(), b"nobody");
    let wants = ConsumerQOS { dependencies: Vec::new(), is_gateway: false };
    let mut client = client(port, depth);
    let answer = EventChannelStub(&mut client).connect_push_consumer(&nobody, &wants);
    answer.map(|_| ()).map_err(|error| format!("{error:?}"))
}

/// The events' group as each node has it, by the node's name.
fn groups(domain: &Domain) -> Vec<(String, Value)> {
    let status = domain.status();
    let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
    let group = |node: &Value| {
        let mut groups = node["status"]["groups"].as_array().into_iter().flatten();
        let found = groups.find(|group| group["name"] == "events")?.clone();
        Some((node["name"].as_str()?.to_owned(), found))
    };
    nodes.iter().filter_map(group).collect()
}

/// The server of the member that comes last in the chain: in front of the leader, around the ring.
fn last_in_chain(domain: &Domain) -> Pid {
    let mut found = None;
    wait_until("somebody leads", || {
        let groups = groups(domain);
        let leader = groups.iter().position(|(name, group)| group["leader"] == name.as_str());
        found = leader.and_then(|leader| {
            let (_, last) = &groups[(leader + groups.len() - 1) % groups.len()];
            Pid::from_raw(i32::try_from(last["server"]["pid"].as_i64()?).ok()?)
        });
        found.is_some()
    });
    found.expect("it was found")
}

fn subscriptions_by_depth(replication: &str) {
    let ports = stage::free_ports(21_500, 3);
    let domain = Domain::start_group(&format!(
        "[service.events]\nlisten = {ports}\nreplication = \"{replication}\"\ndepth = 2\n\
         [service.events.channel.plain]\n"
    ));
    domain.wait_healthy();
    wait_until("the channel is there", || {
        let reference = Reference::direct((Ipv4Addr::LOCALHOST, ports).into(), b"EventService");
        let mut service = Client::new(&reference, ClientOptions::default());
        ChannelsStub(&mut service).channel(&"plain".to_owned()).is_ok()
    });
    subscribe(ports, Some(3)).expect("all three are in");
    let error = subscribe(ports, Some(4)).expect_err("there are no four");
    // FTRT::TransactionDepthTooHigh, which the operation does not declare.
    assert!(error.contains("Unknown"), "{error}");

    // One member's process does nothing. Two are enough, as its callers and the file want; three
    // are not there until it goes on.
    let last = last_in_chain(&domain);
    kill_process(last, Signal::STOP).expect("it runs");
    for gateway in 0..3 {
        subscribe(ports + gateway, Some(2)).expect("two have it");
        subscribe(ports + gateway, None).expect("two have it");
    }
    let deep = thread::spawn(move || subscribe(ports + 1, Some(3)));
    // Others are served meanwhile, and that one still waits.
    for _ in 0..20 {
        subscribe(ports, Some(1)).expect("one has it");
        assert!(!deep.is_finished());
        thread::sleep(Duration::from_millis(10));
    }
    kill_process(last, Signal::CONT).expect("it is there");
    deep.join().expect("no panic").expect("three have it");

    // It ends before it has executed the call: its caller learns that it is not so deep, and
    // gets its reply when three are in.
    kill_process(last, Signal::STOP).expect("it runs");
    let deep = thread::spawn(move || subscribe(ports + 1, Some(3)));
    wait_until("two have executed it", || subscribe(ports, Some(2)).is_ok() && !deep.is_finished());
    kill_process(last, Signal::KILL).expect("it is there");
    match deep.join().expect("no panic") {
        Ok(()) => {}
        Err(error) => {
            assert!(error.contains(&format!("{:?}", ExceptionKind::Transient)), "{error}");
            assert!(error.contains("Maybe"), "{error}");
        }
    }
    domain.wait_healthy();
    wait_until("three are in again", || subscribe(ports + 2, Some(3)).is_ok());
}

#[test]
fn in_parallel_so_many_members_have_executed_a_subscription_as_its_caller_wants() {
    subscriptions_by_depth("parallel");
}

#[test]
fn in_a_chain_so_many_members_have_executed_a_subscription_as_its_caller_wants() {
    subscriptions_by_depth("chain");
}
