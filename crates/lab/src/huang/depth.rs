//! How long a subscription takes by the depth of its transaction (Huang05 §4.2, figure 3).
//!
//! The facade's one call, in domains of four members, one for each way to count who has a change:
//! who holds it in the order, who has executed it beside the others, and who has executed it behind
//! the one in front of it in the chain. The paper has the last two. All depths take turns.
//!
//! Invariant: a subscription has ended again before the next one begins.

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use quorba_base::policy::Replication;
use quorba_corba::Home;
use quorba_idl::ft_rtec_event_channel_admin::EventChannelStub;
use quorba_idl::rtec_event_channel_admin::ConsumerQOS;
use quorba_idl::rtec_event_comm;
use quorba_orb::{Client, ClientOptions, Reference};
use serde::Serialize;

use super::stand::Stand;
use crate::stats::Percentiles;

/// Members beside the one that leads, as in the paper.
pub(super) const BACKUPS: usize = 3;
/// The ways that are measured, and what `--only` calls them.
pub(super) const WAYS: [(Replication, &str); 3] = [
    (Replication::Ordered, "depth ordered"),
    (Replication::Parallel, "depth parallel"),
    (Replication::Chain, "depth chain"),
];
const WITHIN: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(20);
/// Subscriptions before the first that counts.
const WARM_UP: u32 = 20;

/// Subscriptions of one depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subscriptions {
    /// Which members count: the word of the domain file.
    pub replication: &'static str,
    /// How many members must have each one before its caller goes on.
    pub depth: u32,
    /// So many.
    pub count: u32,
    /// From before the call until its reply.
    pub latency: Percentiles,
}

struct Subscriber {
    depth: u32,
    client: Client,
    samples_ns: Vec<u64>,
}

impl Subscriber {
    fn new(stand: &Stand, depth: u32) -> Result<Self, String> {
        let facade = format!("{}/ft", stand.channel);
        let reference = Reference::parse(&facade).map_err(|error| error.to_string())?;
        let options = ClientOptions {
            call_timeout: Some(WITHIN),
            transaction_depth: Some(depth),
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

/// So many of each depth up to that of all members.
pub(super) fn measure(
    stand: &Stand,
    replication: Replication,
    count: u32,
) -> Result<Vec<Subscriptions>, String> {
    let members = u32::try_from(BACKUPS + 1).unwrap_or(u32::MAX);
    let subscribers = (1..=members).map(|depth| Subscriber::new(stand, depth));
    let mut subscribers = subscribers.collect::<Result<Vec<_>, _>>()?;
    // A member that begins to lead makes the channels of the file first.
    let until = Instant::now() + WITHIN;
    while let Err(error) = subscribers[0].subscribe() {
        if Instant::now() >= until {
            return Err(error);
        }
        thread::sleep(AGAIN);
    }
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
        let replication = replication.as_str();
        Ok(Subscriptions { replication, depth: one.depth, count, latency })
    });
    found.collect::<Result<_, &str>>().map_err(str::to_owned)
}

/// The summary.
pub(super) fn lines(all: &[Subscriptions]) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().map(line).collect();
    let parallel = p50s(all, Replication::Parallel);
    if let [_, second, .., last] = parallel[..] {
        lines.push(format!(
            "The paper: in parallel the time is about the same from depth 2 on. Here depth {} \
             takes {:.2} times depth 2; wanted: within 20 %.",
            parallel.len(),
            last / second
        ));
    }
    let chain = p50s(all, Replication::Chain);
    let steps: Vec<String> =
        chain.windows(2).map(|pair| format!("{:+.0} us", pair[1] - pair[0])).collect();
    if !steps.is_empty() {
        lines.push(format!(
            "The paper: in a chain it grows by as much with each member. Here by {}.",
            steps.join(", ")
        ));
    }
    lines
}

fn line(one: &Subscriptions) -> String {
    let Percentiles { p50_us, p99_us, .. } = one.latency;
    format!("{:<8} depth {}  p50 {p50_us:6.0} us, p99 {p99_us:6.0}", one.replication, one.depth)
}

/// The medians of one way, by depth.
fn p50s(all: &[Subscriptions], of: Replication) -> Vec<f64> {
    let found = all.iter().filter(|one| one.replication == of.as_str());
    found.map(|one| one.latency.p50_us).collect()
}
