//! What the channels of event services do, as the service's server on this node says while it
//! leads.
//!
//! What it is not: asked for; who looks at the status waits for no server. Invariants: what is old
//! is not told; a number that fell began anew, and says nothing of what happened in between.

use quorba_admin::status::{ChannelStatus, MissingChannelStatus, SlowestStatus, millis};
use quorba_engine::replica::GroupId;
use quorba_idl::quorba::{ChannelFigures, EventServiceFigures};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// The server says it every second.
const OLD: Duration = Duration::from_secs(5);
/// More than a service may have, and the octets of a name or a reason.
const CHANNELS_MAX: usize = 2_000;
const TEXT_BYTES_MAX: usize = 1_024;
/// Of the proxies that a channel has ended so many are named.
const ENDED_MAX: usize = 16;

#[derive(Default)]
pub(super) struct Channels(HashMap<GroupId, Told>);

/// What was said last of a service.
struct Told {
    at: Instant,
    figures: EventServiceFigures,
    risen: BTreeMap<String, Risen>,
}

/// When numbers of a channel rose last, if they were seen to.
#[derive(Clone, Copy, Default)]
struct Risen {
    refused: Option<Instant>,
    dropped: Option<Instant>,
    left_out: Option<Instant>,
}

impl Risen {
    fn look(&mut self, before: &ChannelFigures, now: &ChannelFigures, at: Instant) {
        let look = |risen: &mut Option<Instant>, before: u64, now: u64| {
            if now > before {
                *risen = Some(at);
            }
        };
        look(&mut self.refused, before.refused, now.refused);
        look(&mut self.dropped, before.dropped, now.dropped);
        look(&mut self.left_out, before.left_out, now.left_out);
    }
}

fn is_fit(figures: &EventServiceFigures) -> bool {
    let EventServiceFigures { channels, missing } = figures;
    let is_short = |text: &String| text.len() <= TEXT_BYTES_MAX;
    channels.len().max(missing.len()) <= CHANNELS_MAX
        && channels.iter().all(|one| is_short(&one.name) && is_short(&one.slowest))
        && channels.iter().all(|one| one.ended.len() <= ENDED_MAX && one.ended.iter().all(is_short))
        && missing.iter().all(|one| is_short(&one.name) && is_short(&one.why))
}

impl Channels {
    /// The server here says what its channels do.
    pub(super) fn hear(&mut self, group: GroupId, figures: EventServiceFigures, at: Instant) {
        if !is_fit(&figures) {
            return;
        }
        let mut risen = BTreeMap::new();
        if let Some(before) = self.0.remove(&group).filter(|before| !before.is_old(at)) {
            let old: HashMap<&str, &ChannelFigures> =
                before.figures.channels.iter().map(|one| (one.name.as_str(), one)).collect();
            for one in &figures.channels {
                let Some(before_that) = old.get(one.name.as_str()) else { continue };
                let mut known = before.risen.get(&one.name).copied().unwrap_or_default();
                known.look(before_that, one, at);
                risen.insert(one.name.clone(), known);
            }
        }
        self.0.insert(group, Told { at, figures, risen });
    }

    pub(super) fn forget(&mut self, group: GroupId) {
        self.0.remove(&group);
    }

    fn of(&self, group: GroupId, at: Instant) -> Option<&Told> {
        self.0.get(&group).filter(|told| !told.is_old(at))
    }

    /// All channels of a service; none if its server has not said anything lately.
    pub(super) fn status(&self, group: GroupId, at: Instant) -> Vec<ChannelStatus> {
        let Some(told) = self.of(group, at) else { return Vec::new() };
        let channels = told.figures.channels.iter();
        channels
            .map(|one| status(one, told.risen.get(&one.name).copied().unwrap_or_default(), at))
            .collect()
    }

    pub(super) fn missing(&self, group: GroupId, at: Instant) -> Vec<MissingChannelStatus> {
        let missing = self.of(group, at).map(|told| told.figures.missing.iter());
        missing
            .into_iter()
            .flatten()
            .map(|one| MissingChannelStatus { name: one.name.clone(), why: one.why.clone() })
            .collect()
    }
}

impl Told {
    fn is_old(&self, at: Instant) -> bool {
        at.saturating_duration_since(self.at) > OLD
    }
}

fn status(one: &ChannelFigures, risen: Risen, at: Instant) -> ChannelStatus {
    let since =
        |risen: Option<Instant>| risen.map(|then| millis(at.saturating_duration_since(then)));
    ChannelStatus {
        name: one.name.clone(),
        reliable: one.is_reliable,
        consumers: one.consumers.into(),
        suppliers: one.suppliers.into(),
        pushed: one.pushed,
        refused: one.refused,
        refused_ms: since(risen.refused),
        left_out: one.left_out,
        left_out_ms: since(risen.left_out),
        delivered: one.delivered,
        dropped: one.dropped,
        dropped_ms: since(risen.dropped),
        failed: one.failed,
        waiting: one.waiting,
        waiting_bytes: one.waiting_bytes,
        slowest: (one.slowest_waiting > 0)
            .then(|| SlowestStatus { at: one.slowest.clone(), waiting: one.slowest_waiting }),
        ended_too_slow: one.ended_too_slow,
        ended_holding: one.ended_holding,
        ended_too_large: one.ended_too_large,
        ended_gone: one.ended_gone,
        ended_raises: one.ended_raises,
        ended: one.ended.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(3);

    fn figures(refused: u64, dropped: u64) -> EventServiceFigures {
        let channel = ChannelFigures {
            name: "alarms".into(),
            is_reliable: true,
            consumers: 2,
            suppliers: 1,
            pushed: 9,
            refused,
            left_out: 0,
            delivered: 12,
            dropped,
            failed: 0,
            waiting: 5,
            waiting_bytes: 5_000,
            slowest: "10.0.0.9:4711".into(),
            slowest_waiting: 4,
            ended_too_slow: 1,
            ended_holding: 0,
            ended_too_large: 0,
            ended_gone: 2,
            ended_raises: 3,
            ended: vec!["consumer 7 (10.0.0.9:4711) is disconnected: it is gone".into()],
        };
        EventServiceFigures { channels: vec![channel], missing: Vec::new() }
    }

    #[test]
    fn a_number_that_rises_says_when_and_one_that_falls_does_not() {
        let (mut channels, at) = (Channels::default(), Instant::now());
        let after = |seconds| at + Duration::from_secs(seconds);
        // What was before is not known.
        channels.hear(GROUP, figures(7, 3), at);
        assert_eq!(channels.status(GROUP, at)[0].refused_ms, None);
        channels.hear(GROUP, figures(8, 0), after(1));
        let shown = channels.status(GROUP, after(3)).remove(0);
        assert_eq!((shown.refused_ms, shown.dropped_ms), (Some(2_000), None));
        let slowest = shown.slowest.expect("something waits");
        assert_eq!((slowest.at.as_str(), slowest.waiting), ("10.0.0.9:4711", 4));
        assert_eq!((shown.ended_too_slow, shown.ended_gone, shown.ended_raises), (1, 2, 3));
        assert_eq!(shown.ended.len(), 1);
        // It stays known while the server goes on.
        channels.hear(GROUP, figures(8, 0), after(4));
        assert_eq!(channels.status(GROUP, after(4))[0].refused_ms, Some(3_000));
    }

    #[test]
    fn what_is_old_or_too_much_is_not_told() {
        let (mut channels, at) = (Channels::default(), Instant::now());
        channels.hear(GROUP, figures(0, 0), at);
        assert_eq!(channels.status(GROUP, at + OLD).len(), 1);
        assert_eq!(channels.status(GROUP, at + OLD + Duration::from_millis(1)), []);
        let mut many = figures(0, 0);
        many.channels = vec![many.channels[0].clone(); CHANNELS_MAX + 1];
        channels.hear(GROUP, many, at);
        assert_eq!(channels.status(GROUP, at).len(), 1, "what was said before");
    }
}
