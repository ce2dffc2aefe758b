//! Connections to consumers that a member which does not lead keeps open, so that it has them when
//! it begins to lead (Huang05 §3.5, §4.3).
//!
//! Invariants: nothing is called on them; there are [`WARM_MAX`] at most, for a process may have so
//! many descriptors only; who cannot be reached is tried again behind all that were not tried yet;
//! the member that leads opens its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use quorba_corba::Object;
use quorba_events::{ConsumerForm, EventService};

use super::Core;
use super::pool::Pool;

/// How often is looked for consumers without a connection.
const ROUND: Duration = Duration::from_secs(1);
/// How long one look may take.
const ROUND_MAX: Duration = Duration::from_secs(5);
/// Before a consumer is tried again that could not be reached.
const UNREACHED: Duration = Duration::from_secs(30);
/// So many connections are opened before there is anything to call: half of what a process may
/// usually have open.
pub(super) const WARM_MAX: usize = 512;
/// How long an open connection is taken for one before it is looked at again.
const LOOKED_AT: Duration = Duration::from_secs(10);

/// A proxy of a consumer: its channel, and its number.
pub(super) type Proxy = (String, u64);

/// Opens connections while this member does not lead, for ever.
pub(super) fn start(core: &Arc<Core>, pool: &Pool) {
    let (core, pool) = (Arc::clone(core), pool.clone());
    thread::spawn(move || {
        let mut next: HashMap<Proxy, Instant> = HashMap::new();
        loop {
            round(&core, &pool, &mut next);
            thread::sleep(ROUND);
        }
    });
}

/// One look at all consumers; `next`: when each is to be looked at again. It ends in time to see
/// new ones, and when the member begins to lead.
fn round(core: &Core, pool: &Pool, next: &mut HashMap<Proxy, Instant>) {
    let mut all = consumers(&core.lock());
    let began = Instant::now();
    let there: BTreeSet<&Proxy> = all.iter().map(|(proxy, _)| proxy).collect();
    next.retain(|proxy, _| there.contains(proxy));
    all.retain(|(proxy, _)| next.get(proxy).is_none_or(|at| *at <= began));
    // Those that were not tried come first, then those that have waited for longest.
    all.sort_by_key(|(proxy, _)| next.get(proxy).copied());
    for (proxy, to) in all {
        if began.elapsed() >= ROUND_MAX || core.lock().leads() {
            return;
        }
        let is_open = pool.open(&proxy, &to);
        next.insert(proxy, Instant::now() + if is_open { LOOKED_AT } else { UNREACHED });
    }
}

/// Those that would be called if this member led; none if it leads.
fn consumers(service: &EventService) -> Vec<(Proxy, Object)> {
    if service.leads() {
        return Vec::new();
    }
    let of_one = |name: &str| {
        let name = name.to_owned();
        let all = service.channel(&name).into_iter().flat_map(|channel| channel.consumers());
        let called = all.filter(|one| one.form != ConsumerForm::Pull);
        let found = called.filter_map(|one| Some(((name.clone(), one.id), one.peer?)));
        found.collect::<Vec<_>>()
    };
    service.names().flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::class::Class;
    use super::super::tests::core;
    use super::super::turns::Turns;
    use super::*;
    use quorba_corba::Local;
    use quorba_idl::cos_event_channel_admin::{ConsumerAdminStub, ProxyPushSupplierStub};
    use std::net::TcpListener;

    #[test]
    fn a_member_that_does_not_lead_is_connected_to_consumers_that_can_be_reached() {
        let core = Arc::new(core(&["a"]));
        let pool = Pool::new(&core, Class::default(), Turns::default());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let nobody = quorba_net::free_ports(1).expect("a port")[0];
        let connect = |number: u64, port: u16| {
            let address = ("127.0.0.1".to_owned(), port);
            let home = quorba_corba::Home { addresses: vec![address], prefix: Vec::new() };
            let mut service = core.lock();
            let mut admin = Local::new(&mut *service, b"Events/a/consumers");
            ConsumerAdminStub(&mut admin).obtain_push_supplier().expect("a proxy");
            let proxy = format!("Unordered/a/c-{number}");
            let mut proxy = Local::new(&mut *service, proxy.as_bytes());
            let consumer = home.object("IDL:peer:1.0", b"peer");
            ProxyPushSupplierStub(&mut proxy).connect_push_consumer(&consumer).expect("connected");
        };
        connect(1, port);
        connect(2, nobody);
        let mut next = HashMap::new();
        round(&core, &pool, &mut next);
        assert_eq!(pool.kept(), 0, "it leads");
        core.lock().follow_another();
        round(&core, &pool, &mut next);
        listener.accept().expect("a connection");
        assert_eq!(pool.kept(), 1, "one can be reached");
        assert_eq!(next.len(), 2);
        let (mut local, key) = (core.lock(), b"Unordered/a/c-2");
        let mut proxy = Local::new(&mut *local, key);
        ProxyPushSupplierStub(&mut proxy).disconnect_push_supplier().expect("it was there");
        drop(local);
        round(&core, &pool, &mut next);
        assert_eq!(next.len(), 1, "who has gone is forgotten");
    }
}
