//! The event service in a running domain, and clients of its channels.

use std::net::Ipv4Addr;

use quorba_corba::{Any, Home, Object, Objects};
use quorba_giop::ExceptionKind;
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, EventChannelStub, ProxyPullSupplierStub, ProxyPushConsumerStub,
    ProxyPushSupplierStub, SupplierAdminStub,
};
use quorba_idl::cos_event_comm::push_consumer::PushError;
use quorba_idl::quorba_events::{ChannelInfo, ChannelsStub, ProxyInfo};
use quorba_orb::{Client, ClientOptions, Reference, Repeat, RunningServer, Server, ServerOptions};
use rustix::process::Pid;

use super::{Domain, LONG, free_ports, wait_until};

/// A domain with the channels `plain` and `sure`, the reliable one, and a naming service; and where
/// the event service is on the first node. The naming service is three ports behind it.
pub fn domain(of_service: &str, more: &str) -> (Domain, u16) {
    let ports = free_ports(21_500, 6);
    let text = format!(
        "[service.naming]\nlisten = {}\n[service.events]\nlisten = {ports}\n{of_service}\
         [service.events.channel.plain]\n\
         [service.events.channel.sure]\nreliable = true\nretry_ms = 100\n{more}",
        ports + 3
    );
    (Domain::start_group(&text), ports)
}

/// The same, when all is well and both channels are there.
pub fn healthy_domain(of_service: &str, more: &str) -> (Domain, u16) {
    let (domain, port) = domain(of_service, more);
    domain.wait_healthy();
    for name in ["plain", "sure"] {
        channel(port, name);
    }
    (domain, port)
}

pub fn options() -> ClientOptions {
    let repeat = Some(Repeat::new("test", 0));
    ClientOptions { call_timeout: Some(LONG), repeat, ..ClientOptions::default() }
}

/// A client that goes to whichever node answers.
pub fn to(object: &Object) -> Client {
    Client::new(&Reference::from_ior(&object.0).expect("addresses"), options())
}

/// A client of the object with this key at one gateway.
pub fn at(port: u16, key: &str) -> Client {
    let address = (Ipv4Addr::LOCALHOST, port).into();
    Client::new(&Reference::direct(address, key.as_bytes()), options())
}

/// The channel, once it is there.
pub fn channel(port: u16, name: &str) -> Object {
    let mut service = at(port, "EventService");
    let mut found = None;
    wait_until("the channel is there", || {
        found = ChannelsStub(&mut service).channel(&name.to_owned()).ok();
        found.is_some()
    });
    found.expect("it was found")
}

pub fn shown(port: u16, name: &str) -> (ChannelInfo, Vec<ProxyInfo>) {
    let mut service = at(port, "EventService");
    ChannelsStub(&mut service).show(&name.to_owned()).expect("a channel")
}

pub fn info(port: u16, name: &str) -> ChannelInfo {
    shown(port, name).0
}

/// How many consumers and suppliers a channel has.
pub fn proxies(port: u16, name: &str) -> (u32, u32) {
    let info = info(port, name);
    (info.consumers, info.suppliers)
}

/// A proxy that pushes to a consumer.
pub fn connect_consumer(channel: &Object, consumer: &Object) -> Object {
    let admin = EventChannelStub(&mut to(channel)).for_consumers().expect("an admin");
    let proxy = ConsumerAdminStub(&mut to(&admin)).obtain_push_supplier().expect("a proxy");
    ProxyPushSupplierStub(&mut to(&proxy)).connect_push_consumer(consumer).expect("connected");
    proxy
}

/// A proxy at which somebody pulls.
pub fn connect_puller(channel: &Object) -> Object {
    let admin = EventChannelStub(&mut to(channel)).for_consumers().expect("an admin");
    let proxy = ConsumerAdminStub(&mut to(&admin)).obtain_pull_supplier().expect("a proxy");
    let connected = ProxyPullSupplierStub(&mut to(&proxy)).connect_pull_consumer(&Object::nil());
    connected.expect("connected");
    proxy
}

/// A supplier's proxy, at which it pushes.
pub fn connect_supplier(channel: &Object) -> Client {
    connect_supplier_with(channel, options())
}

pub fn connect_supplier_with(channel: &Object, options: ClientOptions) -> Client {
    let admin = EventChannelStub(&mut to(channel)).for_suppliers().expect("an admin");
    let proxy = SupplierAdminStub(&mut to(&admin)).obtain_push_consumer().expect("a proxy");
    let mut client = Client::new(&Reference::from_ior(&proxy.0).expect("addresses"), options);
    ProxyPushConsumerStub(&mut client).connect_push_supplier(&Object::nil()).expect("connected");
    client
}

/// Pushes a number until it is taken: a consumer may have no room, or nobody lead.
pub fn push(supplier: &mut Client, number: u32) {
    push_any(supplier, &Any::new(&number).expect("a value"));
}

/// The same of a text.
pub fn push_text(supplier: &mut Client, text: &str) {
    push_any(supplier, &Any::new(&text.to_owned()).expect("a value"));
}

fn push_any(supplier: &mut Client, data: &Any) {
    wait_until("the push is taken", || match ProxyPushConsumerStub(supplier).push(data) {
        Ok(()) => true,
        Err(PushError::System(raised)) if raised.kind == ExceptionKind::Transient => false,
        Err(other) => panic!("{other:?}"),
    });
}

/// A program that channels call: its object.
pub fn serve(objects: impl Objects + Send + 'static) -> (RunningServer, Object) {
    let interface = objects.interface(b"peer").expect("an interface");
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
    let server = server.expect("a port").with_objects(objects).start().expect("threads");
    let address = (server.address().ip().to_string(), server.address().port());
    let home = Home { addresses: vec![address], prefix: Vec::new() };
    (server, home.object(interface.id(), b"peer"))
}

/// The process of the member that leads, or its node's, and the node's number.
pub fn leading(domain: &Domain, of_node: bool) -> (Pid, u16) {
    let mut found = None;
    wait_until("somebody leads", || {
        let status = domain.status();
        for (number, one) in status["nodes"].as_array().into_iter().flatten().enumerate() {
            let groups = one["status"]["groups"].as_array().into_iter().flatten();
            for group in groups.filter(|group| group["name"] == "events") {
                if group["leader"] == one["name"] {
                    let pid = if of_node { &one["status"]["pid"] } else { &group["server"]["pid"] };
                    let pid = pid.as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
                    found = pid.map(|pid| (pid, number as u16));
                }
            }
        }
        found.is_some()
    });
    found.expect("somebody leads")
}
