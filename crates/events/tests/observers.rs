//! What observers of TAO's interface, such as its gateways, are told of all clients.

#[allow(dead_code, reason = "each test takes a part of it")]
mod stage;

use quorba_corba::Object;
use quorba_events::filter::designator as d;
use quorba_events::{Limits, Outcome, Outgoing, Settings, Update};
use quorba_idl::cos_event_channel_admin as cos;
use quorba_idl::rtec_event_channel_admin as rtec;
use quorba_idl::rtec_event_comm::Event;
use stage::{RTEC, Stage, wants};

/// Types and sources.
type Headers = Vec<(i32, i32)>;

/// What an observer is told that consumers want, and that suppliers have.
fn told(stage: &mut Stage) -> (Headers, Headers) {
    let (_, observer) = stage.peer(RTEC);
    let channel = stage.channel.rtec_reference();
    stage
        .at(&channel, |it| rtec::EventChannelStub(it).append_observer(&observer))
        .expect("appended");
    let (mut wanted, mut offered) = (Vec::new(), Vec::new());
    while let Some(outgoing) = stage.channel.poll() {
        let Outgoing::Update { observer, ticket, update, .. } = outgoing else { continue };
        let header = |event: &Event| (event.header.r#type, event.header.source);
        match update {
            Update::Consumers(qos) => {
                wanted = qos.dependencies.iter().skip(1).map(|one| header(&one.event)).collect();
            }
            Update::Suppliers(qos) => {
                offered = qos.publications.iter().map(|one| header(&one.event)).collect();
            }
        }
        stage.channel.observed(observer, ticket, Outcome::Taken);
    }
    (wanted, offered)
}

/// A gateway that asked for less elsewhere would leave out what they want.
#[test]
fn observers_are_told_of_consumers_that_name_no_types_that_they_want_any_event() {
    let any: &[(i32, i32)] = &[(0, 0)];
    for (entries, expected) in [
        (&[(20, 1), (21, 0)][..], &[(20, 1), (21, 0)][..]),
        (&[(20, 1), (d::NULL, 0)], any),
        (&[(d::MASKED_TYPE, 0), (0xF0, 0), (0x20, 0)], any),
        (&[(d::NEGATION, 0), (20, 1)], any),
        (&[(d::BITMASK, 0), (0xFF, 0xFF), (20, 1)], &[(20, 1)]),
        (&[(d::BITMASK, 0), (0xFF, 0xFF), (d::NULL, 0)], any),
        (&[(d::LOGICAL_AND, 2), (d::NEGATION, 0), (20, 1), (20, 0)], &[(20, 0)]),
        (&[(d::LOGICAL_AND, 1), (d::NEGATION, 0), (20, 1)], any),
        (&[(d::CONJUNCTION, 2), (20, 1), (21, 1)], &[(20, 1), (21, 1)]),
        (&[], &[]),
    ] {
        let mut stage = Stage::new(Settings::default());
        stage.rtec_consumer(&wants(entries));
        assert_eq!(told(&mut stage).0, expected, "{entries:?}");
    }
    // More than is told is any, and not less than there is.
    let limits = Limits { observed_max: 3, ..Limits::default() };
    let mut stage = Stage::new(Settings { limits, ..Settings::default() });
    stage.rtec_consumer(&wants(&[(20, 1), (21, 1), (22, 1)]));
    assert_eq!(told(&mut stage).0.len(), 3);
    stage.rtec_consumer(&wants(&[(23, 1)]));
    assert_eq!(told(&mut stage).0, any);
}

#[test]
fn observers_are_told_what_clients_of_the_standard_want_and_have() {
    let mut stage = Stage::new(Settings { cos_type: 40, cos_source: 7, ..Settings::default() });
    let channel = stage.channel.cos_reference();
    let admins = stage.at(&channel, |it| {
        let mut it = cos::EventChannelStub(it);
        (it.for_consumers().expect("an admin"), it.for_suppliers().expect("an admin"))
    });
    let from = stage.at(&admins.1, |it| cos::SupplierAdminStub(it).obtain_push_consumer());
    let from = from.expect("a proxy");
    stage
        .at(&from, |it| cos::ProxyPushConsumerStub(it).connect_push_supplier(&Object::nil()))
        .expect("connected");
    assert_eq!(told(&mut stage), (vec![], vec![(40, 7)]));
    let to = stage.at(&admins.0, |it| cos::ConsumerAdminStub(it).obtain_pull_supplier());
    let to = to.expect("a proxy");
    stage
        .at(&to, |it| cos::ProxyPullSupplierStub(it).connect_pull_consumer(&Object::nil()))
        .expect("connected");
    assert_eq!(told(&mut stage), (vec![(0, 0)], vec![(40, 7)]));
}
