//! Pushes per second through a channel without a network: `cargo run --release -p quorba-events
//! --example pushes`.
//!
//! Each event of 1 KiB goes in, is filtered, queued, scheduled, taken out again and encoded for
//! each consumer, in one thread. What it is not: a figure of a channel on a node.

use std::time::Instant;

use quorba_corba::giop::{Endian, Version};
use quorba_corba::{Any, Coding, Encoder, Home, Local, Object};
use quorba_events::filter::designator as d;
use quorba_events::{Channel, Outcome, Settings};
use quorba_idl::ft_rtec_event_channel_admin::EventChannelStub;
use quorba_idl::rtec_event_channel_admin::{ConsumerQOS, Dependency, SupplierQOS};
use quorba_idl::rtec_event_comm::{Event, EventData, EventHeader};

fn event(event_type: i32, payload: usize) -> Event {
    let header = EventHeader {
        r#type: event_type,
        source: 1,
        ttl: 1,
        creation_time: 0,
        ec_recv_time: 0,
        ec_send_time: 0,
    };
    let data = EventData { pad1: 0, payload: vec![7; payload], any_value: Any::default() };
    Event { header, data }
}

fn wants(types: &[i32]) -> ConsumerQOS {
    let dependency = |one: &i32| Dependency { event: event(*one, 0), rt_info: 0 };
    ConsumerQOS { dependencies: types.iter().map(dependency).collect(), is_gateway: false }
}

/// What is measured.
struct Case {
    consumers: usize,
    /// Of so many consumers one wants the events.
    of: usize,
    batch: usize,
    encodes: bool,
}

fn run(case: &Case) -> (f64, f64) {
    let home = Home { addresses: vec![("n1".to_owned(), 1)], prefix: Vec::new() };
    let settings = Settings { batch_max: case.batch, ..Settings::default() };
    let mut channel = Channel::new("Events/figure", &home, settings).expect("settings");
    let mut local = Local::new(&mut channel, b"Events/figure/ft");
    let mut facade = EventChannelStub(&mut local);
    let peer = home.object("IDL:RtecEventComm/PushConsumer:1.0", b"peer");
    for number in 0..case.consumers {
        let types = if number % case.of == 0 { [16, 17] } else { [18, 19] };
        let group = [d::DISJUNCTION, types[0], types[1]];
        facade.connect_push_consumer(&peer, &wants(&group)).expect("connected");
    }
    let qos = SupplierQOS { publications: Vec::new(), is_gateway: false };
    facade.connect_push_supplier(&Object::nil(), &qos).expect("connected");
    let (mut pushes, mut deliveries, mut octets) = (0_u64, 0_u64, 0_usize);
    let begin = Instant::now();
    while begin.elapsed().as_millis() < 1000 {
        for _ in 0..case.batch {
            channel.push(vec![event(17, 1024)]).expect("pushed");
            pushes += 1;
        }
        while let Some(push) = channel.poll_push() {
            deliveries += push.events() as u64;
            if case.encodes {
                let mut to = Encoder::new(Endian::Little, Coding::plain(Version::V1_2));
                push.write(&mut to);
                octets += to.position();
            }
            channel.pushed(push.consumer, push.ticket, Outcome::Taken);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    assert!(!case.encodes || octets > 0);
    (pushes as f64 / seconds, deliveries as f64 / seconds)
}

fn main() {
    println!("consumers  one of  batch  encoded    pushes/s  deliveries/s");
    for consumers in [1, 10, 1000] {
        for (of, batch, encodes) in [(1, 1, true), (1, 16, true), (1, 1, false), (100, 1, true)] {
            let (pushes, deliveries) = run(&Case { consumers, of, batch, encodes });
            println!(
                "{consumers:9}  {of:6}  {batch:5}  {encodes:7}  {pushes:10.0}  {deliveries:12.0}"
            );
        }
    }
}
