//! From a line of settings to consumers that are called: who is served first is what the strategy
//! of the channel says.

use std::sync::{Arc, Mutex};

use quorba_corba::{Home, Local, Object};
use quorba_events::SERVICE_KEY;
use quorba_idl::ft_rtec_event_channel_admin::EventChannelFacadeStub;
use quorba_idl::ft_rtec_event_comm::PushConsumerStub;
use quorba_idl::quorba_events as numbered;
use quorba_idl::quorba_events::{ChannelsStub, NumberedChannelStub};
use quorba_idl::rtec_event_channel_admin::{ConsumerQOS, Dependency, SupplierQOS};
use quorba_idl::rtec_event_comm::{self, Event, EventData, EventHeader, EventSet};
use quorba_orb::{Server, ServerOptions};

use super::tests::{core, wait_until};
use super::*;

/// Consumers that are called one after the other, and write down who they are.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Objects for Log {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(numbered::NUMBERED_CONSUMER)
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        let name = String::from_utf8_lossy(key).into_owned();
        self.0.lock().expect("no holder panics").push(name);
        numbered::dispatch_numbered_consumer(self, call)
    }
}

impl rtec_event_comm::PushConsumer for Log {
    fn push(&mut self, _: EventSet) -> Result<(), SystemException> {
        Ok(())
    }
    fn disconnect_push_consumer(&mut self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl numbered::NumberedConsumer for Log {
    fn push_numbered(&mut self, _: u64, _: EventSet) -> Result<(), SystemException> {
        Ok(())
    }
}

fn event() -> Event {
    Event {
        header: EventHeader {
            r#type: 16,
            source: 1,
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData { pad1: 0, payload: Vec::new(), any_value: quorba_corba::Any::default() },
    }
}

/// What each `rt_info` means: four that differ in everything. Of a fifth one, 9, nothing is said.
const RT_INFOS: &str = "rt_info.1=priority:1,deadline_us:800000 \
                        rt_info.2=priority:2,deadline_us:500000 \
                        rt_info.3=priority:3,deadline_us:600000,execution_us:400000 \
                        rt_info.4=priority:4,deadline_us:700000,execution_us:100000,critical:true";

/// In which order consumers with these `rt_info`s are called, if one call is under way at a time.
fn order(strategy: &str) -> Vec<String> {
    let log = Log::default();
    let server = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
    let server = server.expect("a port").with_objects(log.clone()).start().expect("threads");
    let address = (server.address().ip().to_string(), server.address().port());
    let home = Home { addresses: vec![address], prefix: Vec::new() };
    let core = Arc::new(core(&[]));
    let mut service = core.lock();
    let settings = format!("strategy={strategy} {RT_INFOS}");
    let mut local = Local::new(&mut *service, SERVICE_KEY.as_bytes());
    ChannelsStub(&mut local).create(&"a".to_owned(), &settings).expect("it is made");
    let mut local = Local::new(&mut *service, b"Events/a/numbered");
    for rt_info in [9, 3, 1, 4, 2] {
        let consumer = home.object("IDL:peer:1.0", format!("{rt_info}").as_bytes());
        let dependencies = vec![Dependency { event: event(), rt_info }];
        let wants = ConsumerQOS { dependencies, is_gateway: false };
        let mut channel = NumberedChannelStub(&mut local);
        channel.connect_numbered_consumer(&consumer, &wants).expect("connected");
    }
    let mut local = Local::new(&mut *service, b"Events/a/ft");
    let mut facade = EventChannelFacadeStub(&mut local);
    let offers = SupplierQOS { publications: Vec::new(), is_gateway: false };
    let supplier = facade.connect_push_supplier(&Object::nil(), &offers).expect("connected");
    PushConsumerStub(&mut local).push(&supplier, &vec![event()]).expect("taken");
    drop(service);
    core.hears(Instant::now());
    let turns = Turns::new(1).with_grace(Duration::from_secs(600));
    let pool = Pool::new(&core, Class::default(), turns);
    let (decider, goodbyes) = (Decider::default(), Goodbyes::default());
    let ways = Ways { pool, management: management(&core), decider, goodbyes };
    let handed_out = Arc::clone(&core);
    thread::spawn(move || hand_out(&handed_out, &ways));
    wait_until("all five are called", || {
        core.hears(Instant::now());
        log.0.lock().expect("no holder panics").len() == 5
    });
    log.0.lock().expect("no holder panics").clone()
}

#[test]
fn the_four_strategies_give_four_orders_in_which_consumers_are_called() {
    assert_eq!(order("fixed-priority"), ["1", "2", "3", "4", "9"]);
    assert_eq!(order("earliest-deadline"), ["2", "3", "4", "1", "9"]);
    assert_eq!(order("least-laxity"), ["3", "2", "4", "1", "9"]);
    assert_eq!(order("maximum-urgency"), ["4", "3", "2", "1", "9"]);
}
