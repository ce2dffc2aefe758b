//! What a service shows of its channels and of who is connected to them.
//!
//! Invariant: to look changes nothing.

use alloc::format;
use alloc::string::{String, ToString};

use quorba_corba::Object;
use quorba_corba::giop::corbaloc::HostPort;
use quorba_idl::quorba::ChannelFigures;
use quorba_idl::quorba_events::{ChannelInfo, EndFigures, EndedProxy, ProxyInfo, ProxyInfos};

use crate::channel::Channel;
use crate::registry::{ConsumerForm, SupplierForm};
use crate::service::Held;

const fn consumer_word(form: ConsumerForm) -> &'static str {
    match form {
        ConsumerForm::Push => "push",
        ConsumerForm::Pull => "pull",
        ConsumerForm::Rtec => "rtec",
        ConsumerForm::Facade => "facade",
        ConsumerForm::Numbered => "numbered",
    }
}

const fn supplier_word(form: SupplierForm) -> &'static str {
    match form {
        SupplierForm::Push => "push",
        SupplierForm::Pull => "pull",
        SupplierForm::Rtec => "rtec",
        SupplierForm::Facade => "facade",
    }
}

/// What a channel has done, and for whom most waits.
pub(crate) fn figures(name: &str, held: &Held) -> ChannelFigures {
    let (channel, totals) = (&held.channel, held.channel.totals());
    let counts = channel.end_counts();
    let mut figures = ChannelFigures {
        name: name.to_string(),
        is_reliable: held.rule.reliable,
        consumers: u32::try_from(channel.registry.consumers.len()).unwrap_or(u32::MAX),
        suppliers: u32::try_from(channel.registry.suppliers.len()).unwrap_or(u32::MAX),
        pushed: totals.pushed,
        refused: totals.refused,
        left_out: totals.left_out,
        delivered: totals.delivered,
        dropped: totals.dropped,
        failed: 0,
        waiting: 0,
        waiting_bytes: 0,
        slowest: String::new(),
        slowest_waiting: 0,
        ended_too_slow: counts.too_slow,
        ended_holding: counts.holds_too_much,
        ended_too_large: counts.too_large,
        ended_gone: counts.gone,
        ended_raises: counts.raises,
        ended: channel.last_ended().map(ToString::to_string).collect(),
    };
    let mut slowest = None;
    for (id, queue) in channel.queues() {
        let waiting = queue.len() as u64;
        figures.delivered += queue.counters.delivered;
        figures.dropped += queue.counters.dropped;
        figures.failed += queue.counters.failed;
        figures.waiting += waiting;
        figures.waiting_bytes += queue.bytes() as u64;
        if waiting > figures.slowest_waiting {
            (slowest, figures.slowest_waiting) = (Some(id), waiting);
        }
    }
    figures.slowest = slowest.map(|id| place_of(channel, id)).unwrap_or_default();
    figures
}

/// What is shown of a host's name: no more than names of hosts have, whatever a reference says.
const HOST_BYTES_SHOWN: usize = 255;

/// Where a consumer is called, as host and port; if nowhere, the number of its proxy.
fn place_of(channel: &Channel, id: u64) -> String {
    place(channel.registry.consumers.get(&id).and_then(|one| one.peer.as_ref()), id)
}

/// The same of the client of any proxy.
pub(crate) fn place(peer: Option<&Object>, id: u64) -> String {
    let Some(place) = peer.and_then(|peer| peer.0.endpoints().into_iter().next()) else {
        return format!("proxy {id}");
    };
    let graphic = |one: char| if one.is_ascii_graphic() { one } else { '?' };
    let host: String = place.host.chars().take(HOST_BYTES_SHOWN).map(graphic).collect();
    HostPort(&host, place.port).to_string()
}

/// A channel, for who asks for it.
pub(crate) fn info(name: &str, held: &Held) -> ChannelInfo {
    let figures = figures(name, held);
    ChannelInfo {
        name: figures.name,
        settings: held.rule.to_string(),
        is_filed: held.is_filed,
        changes: held.channel.sequence(),
        consumers: figures.consumers,
        suppliers: figures.suppliers,
        pushed: figures.pushed,
        refused: figures.refused,
        left_out: figures.left_out,
        delivered: figures.delivered,
        dropped: figures.dropped,
        waiting: figures.waiting,
        waiting_bytes: figures.waiting_bytes,
        channel: held.channel.cos_reference(),
    }
}

/// Which proxies the channel has ended.
pub(crate) fn ends(held: &Held) -> EndFigures {
    let counts = held.channel.end_counts();
    let last = held.channel.last_ended().map(|one| EndedProxy {
        id: one.proxy,
        is_consumer: one.is_consumer,
        place: one.place.clone(),
        why: one.why.word().to_string(),
        at: one.at,
    });
    EndFigures {
        too_slow: counts.too_slow,
        holds_too_much: counts.holds_too_much,
        too_large: counts.too_large,
        gone: counts.gone,
        raising: counts.raises,
        last: last.collect(),
    }
}

/// Who is connected.
pub(crate) fn proxies(held: &Held) -> ProxyInfos {
    let consumers = held.channel.consumers().map(|one| ProxyInfo {
        id: one.id,
        is_consumer: true,
        form: consumer_word(one.form).to_string(),
        is_connected: one.peer.is_some(),
        peer: one.peer.unwrap_or_else(Object::nil),
        is_suspended: one.is_suspended,
        delivered: one.counters.delivered,
        dropped: one.counters.dropped,
        failed: one.counters.failed,
        waiting: one.waiting as u64,
        waiting_bytes: one.waiting_bytes as u64,
    });
    let suppliers = held.channel.registry.suppliers.iter().map(|(id, one)| ProxyInfo {
        id: *id,
        is_consumer: false,
        form: supplier_word(one.form).to_string(),
        peer: one.peer.clone().unwrap_or_else(Object::nil),
        is_connected: one.peer.is_some(),
        is_suspended: false,
        delivered: 0,
        dropped: 0,
        failed: 0,
        waiting: 0,
        waiting_bytes: 0,
    });
    consumers.chain(suppliers).collect()
}
