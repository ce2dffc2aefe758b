//! How long a subscription takes by the depth of its transaction (Huang05 §4.2, figure 3).
//!
//! The facade's one call, in the domain of figures 4 and 5; all depths take turns. The paper has
//! chains, and calls in parallel; here the order takes each change to all members at once.
//!
//! Invariant: a subscription has ended again before the next one begins.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use quorba_corba::Home;
use quorba_idl::ft_rtec_event_channel_admin::EventChannelStub;
use quorba_idl::rtec_event_channel_admin::ConsumerQOS;
use quorba_idl::rtec_event_comm;
use quorba_orb::{Client, ClientOptions, Reference};
use serde::Serialize;

use super::stand::Stand;
use crate::stats::Percentiles;

const WITHIN: Duration = Duration::from_secs(30);
/// Subscriptions before the first that counts.
const WARM_UP: u32 = 5;

/// Subscriptions of one depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subscriptions {
    /// How many members must have each one before its caller goes on; none: as the group asks.
    pub depth: Option<u32>,
    /// So many.
    pub count: u32,
    /// From before the call until its reply.
    pub latency: Percentiles,
}

struct Subscriber {
    depth: Option<u32>,
    client: Client,
    samples_ns: Vec<u64>,
}

impl Subscriber {
    fn new(stand: &Stand, depth: Option<u32>) -> Result<Self, String> {
        let facade = format!("{}/ft", stand.channel);
        let reference = Reference::parse(&facade).map_err(|error| error.to_string())?;
        let options = ClientOptions {
            call_timeout: Some(WITHIN),
            transaction_depth: depth,
            ..ClientOptions::default()
        };
        Ok(Self { depth, client: Client::new(&reference, options), samples_ns: Vec::new() })
    }

    fn subscribe(&mut self) -> Result<u64, String> {
        let address = (Ipv4Addr::LOCALHOST.to_string(), 1);
        let home = Home { addresses: vec![address], prefix: Vec::new() };
        let consumer = home.object(rtec_event_comm::PUSH_CONSUMER.id(), b"nobody");
        let wants_nothing = ConsumerQOS { dependencies: Vec::new(), is_gateway: false };
        let mut facade = EventChannelStub(&mut self.client);
        let began = Instant::now();
        let id = facade.connect_push_consumer(&consumer, &wants_nothing);
        let took = began.elapsed();
        let id = id.map_err(|error| format!("no subscription: {error:?}"))?;
        let ended = facade.disconnect_push_supplier(&id);
        ended.map_err(|error| format!("the subscription does not end: {error:?}"))?;
        Ok(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// So many of each depth up to that of `members`.
pub(super) fn measure(
    stand: &Stand,
    members: u32,
    count: u32,
) -> Result<Vec<Subscriptions>, String> {
    let depths = [None].into_iter().chain((1..=members).map(Some));
    let subscribers = depths.map(|depth| Subscriber::new(stand, depth));
    let mut subscribers = subscribers.collect::<Result<Vec<_>, _>>()?;
    for number in 0..WARM_UP + count {
        for one in &mut subscribers {
            let took = one.subscribe()?;
            if number >= WARM_UP {
                one.samples_ns.push(took);
            }
        }
    }
    let found = subscribers.into_iter().map(|one| {
        let latency = Percentiles::of(&one.samples_ns).ok_or("no subscriptions")?;
        Ok(Subscriptions { depth: one.depth, count, latency })
    });
    found.collect::<Result<_, &str>>().map_err(str::to_owned)
}

/// The summary.
pub(super) fn lines(all: &[Subscriptions]) -> Vec<String> {
    let line = |one: &Subscriptions| {
        let Percentiles { p50_us, p99_us, .. } = one.latency;
        let depth = one.depth.map_or("as the group asks".to_owned(), |depth| depth.to_string());
        format!("depth {depth:<17} p50 {p50_us:6.0} us, p99 {p99_us:6.0}")
    };
    let p50 = |depth: &u32| {
        let found = all.iter().find(|one| one.depth == Some(*depth))?;
        Some(found.latency.p50_us)
    };
    let deepest = all.iter().filter_map(|one| one.depth).max();
    // The first one that has it is whoever replies, so depth 1 asks for nothing.
    let both =
        deepest.filter(|deepest| *deepest > 2).and_then(|it| Some((it, p50(&it)?, p50(&2)?)));
    let words = both.map(|(deepest, most, least)| {
        format!(
            "The paper: in a chain the time grows by as much with each member, in parallel it is \
             about the same. Here the order gives it to all at once: depth {deepest} takes {:.2} \
             times depth 2; wanted: within 20 %.",
            most / least
        )
    });
    all.iter().map(line).chain(words).collect()
}
