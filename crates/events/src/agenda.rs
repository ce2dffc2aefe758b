//! Which channels of a service have something to do, so that a call, a push or a moment of time
//! looks at those only, and not at all channels.
//!
//! What it is not: what they do; channels say it.
//!
//! Invariants: whoever changes a channel, or tells it the time, notes it anew; so what stands here
//! of a channel is what it would say itself.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::ops::Bound;

use crate::channel::Channel;

/// What a channel has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Noted {
    has_push: bool,
    has_outgoing: bool,
    /// When it is to be told the time; in the ordered time if it is reliable.
    due: Option<u64>,
    is_reliable: bool,
}

impl Noted {
    pub(crate) fn of(channel: &Channel) -> Self {
        Self {
            has_push: channel.has_push(),
            has_outgoing: channel.has_outgoing(),
            due: channel.poll_timeout(),
            is_reliable: channel.settings.is_reliable,
        }
    }
}

type Names = BTreeSet<Arc<str>>;

/// Channels by the time at which they are due.
type Dues = BTreeSet<(u64, Arc<str>)>;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Agenda {
    pushes: Names,
    outgoing: Names,
    /// Of channels that are not reliable.
    plain: Dues,
    /// Of the reliable ones, in the ordered time.
    reliable: Dues,
}

fn put(names: &mut Names, name: &Arc<str>, is_in: bool) {
    if is_in {
        names.insert(Arc::clone(name));
    } else {
        names.remove(name);
    }
}

/// The next name behind another one; the first one behind none.
fn behind(names: &Names, name: Option<&str>) -> Option<Arc<str>> {
    let from = name.map_or(Bound::Unbounded, Bound::Excluded);
    names.range::<str, _>((from, Bound::Unbounded)).next().cloned()
}

impl Agenda {
    /// A channel has that to do now, and had `before` until now.
    pub(crate) fn note(&mut self, name: &Arc<str>, before: &mut Noted, now: Noted) {
        let before = core::mem::replace(before, now);
        if before.has_push != now.has_push {
            put(&mut self.pushes, name, now.has_push);
        }
        if before.has_outgoing != now.has_outgoing {
            put(&mut self.outgoing, name, now.has_outgoing);
        }
        if (before.due, before.is_reliable) == (now.due, now.is_reliable) {
            return;
        }
        if let Some(at) = before.due {
            self.dues(before.is_reliable).remove(&(at, Arc::clone(name)));
        }
        if let Some(at) = now.due {
            self.dues(now.is_reliable).insert((at, Arc::clone(name)));
        }
    }

    fn dues(&mut self, is_reliable: bool) -> &mut Dues {
        if is_reliable { &mut self.reliable } else { &mut self.plain }
    }

    pub(crate) fn has_push(&self) -> bool {
        !self.pushes.is_empty()
    }

    pub(crate) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// So many channels have a push.
    pub(crate) fn pushes(&self) -> usize {
        self.pushes.len()
    }

    /// The channel with a push that comes behind one of that name; all take turns.
    pub(crate) fn next_push(&self, name: &str) -> Option<Arc<str>> {
        behind(&self.pushes, Some(name)).or_else(|| behind(&self.pushes, None))
    }

    /// The channel behind one of that name that has something else to be done; the first one behind
    /// none.
    pub(crate) fn next_outgoing(&self, name: Option<&str>) -> Option<Arc<str>> {
        behind(&self.outgoing, name)
    }

    /// When the first channel is due that is not reliable.
    pub(crate) fn first_plain(&self) -> Option<u64> {
        self.plain.first().map(|(at, _)| *at)
    }

    /// Those that are not reliable and are due at a time.
    pub(crate) fn due_plain(&self, now: u64) -> alloc::vec::Vec<Arc<str>> {
        let due = self.plain.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, name)| Arc::clone(name)).collect()
    }

    /// When each of the reliable ones is due, the first one first.
    pub(crate) fn reliable(&self) -> impl Iterator<Item = (u64, &str)> {
        self.reliable.iter().map(|(at, name)| (*at, &**name))
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;
    use crate::outgoing::{Outcome, Outgoing};
    use crate::service::EventService;
    use quorba_corba::{Any, Home, Local};
    use quorba_idl::cos_event_channel_admin as cos;
    use quorba_idl::ft_rtec_event_channel_admin::EventChannelFacadeStub;
    use quorba_idl::quorba_events::ChannelsStub;
    use quorba_idl::rtec_event_channel_admin::{ConsumerQOS, Dependency, EventChannelStub};

    const NAMES: [&str; 4] = ["a", "b", "c", "d"];

    /// Says numbers, always the same ones.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, below: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % below
        }
    }

    fn home() -> Home {
        Home { addresses: alloc::vec![("here".to_owned(), 1)], prefix: Vec::new() }
    }

    fn all(dues: &Dues) -> Vec<(u64, &str)> {
        dues.iter().map(|(at, name)| (*at, &**name)).collect()
    }

    /// The agenda says what all channels say when each one is asked.
    fn check(service: &EventService) {
        // Channels are told the time when it matters to them.
        let said: Vec<Noted> =
            service.channels.values().map(|held| Noted::of(&held.channel)).collect();
        let (mut pushes, mut outgoing) = (Vec::new(), Vec::new());
        let (mut plain, mut reliable) = (Vec::new(), Vec::new());
        for ((name, held), said) in service.channels.iter().zip(said) {
            if said.has_push {
                pushes.push(&**name);
            }
            if said.has_outgoing {
                outgoing.push(&**name);
            }
            let dues = if held.rule.reliable { &mut reliable } else { &mut plain };
            dues.extend(said.due.map(|at| (at, &**name)));
        }
        plain.sort_unstable();
        reliable.sort_unstable();
        let agenda = &service.agenda;
        assert!(agenda.pushes.iter().map(|name| &**name).eq(pushes));
        assert!(agenda.outgoing.iter().map(|name| &**name).eq(outgoing));
        assert_eq!((all(&agenda.plain), all(&agenda.reliable)), (plain, reliable));
    }

    fn subscribe(service: &mut EventService, name: &str, dice: &mut Dice) {
        let entry = |event_type: i32, period: u64| {
            let header = crate::filter::Header { event_type, source: 0 };
            Dependency { event: crate::event::plain(header, 0, period), rt_info: 0 }
        };
        let timer = [4, 5, 6][dice.roll(3) as usize];
        let dependencies = alloc::vec![entry(timer, 10_000 + dice.roll(90_000)), entry(0, 0)];
        let wants = ConsumerQOS { dependencies, is_gateway: false };
        let mut local = Local::new(service, format!("Events/{name}/ft").as_bytes());
        let peer = home().object("IDL:peer:1.0", b"peer");
        let _ = EventChannelFacadeStub(&mut local).connect_push_consumer(&peer, &wants);
    }

    fn source(service: &mut EventService, name: &str) {
        let mut local = Local::new(service, format!("Events/{name}/suppliers").as_bytes());
        let Ok(proxy) = cos::SupplierAdminStub(&mut local).obtain_pull_consumer() else { return };
        let key = home().key_of(&proxy).expect("one of the service's");
        let mut local = Local::new(service, &key);
        let _ = cos::ProxyPullConsumerStub(&mut local).connect_pull_supplier(&proxy);
    }

    fn work(service: &mut EventService, dice: &mut Dice) {
        let outcomes = [Outcome::Taken, Outcome::Taken, Outcome::Failed, Outcome::Gone];
        let outcome = outcomes[dice.roll(4) as usize];
        if let Some((name, push)) = service.poll_push() {
            service.pushed(&name, push.consumer, push.ticket, outcome);
        }
        check(service);
        match service.poll() {
            Some((name, Outgoing::Propose(proposal))) => {
                let decision = crate::Decision::Proposal(name, proposal);
                if dice.roll(4) == 0 {
                    return service.left_out(&decision);
                }
                let mut local = Local::new(service, crate::DECISIONS_KEY.as_bytes());
                decision.call(&mut local).expect("ordered");
                check(service);
                service.decided(&decision);
            }
            Some((name, Outgoing::Pull { supplier, ticket, .. })) => {
                let answers =
                    [Ok(None), Ok(Some(Any::new(&1_u32).expect("a value"))), Err(outcome)];
                let answer = answers[dice.roll(3) as usize].clone();
                service.pulled(&name, supplier, ticket, answer);
            }
            Some((name, Outgoing::Update { observer, ticket, .. })) => {
                service.observed(&name, observer, ticket, outcome);
            }
            _ => {}
        }
    }

    #[test]
    fn the_agenda_says_what_all_channels_would_say_one_by_one() {
        let mut dice = Dice(7);
        let clock = Arc::new(core::sync::atomic::AtomicU64::new(0));
        let ordered = Arc::clone(&clock);
        let told = move || Some(ordered.load(core::sync::atomic::Ordering::Relaxed));
        let mut service = EventService::new(home()).with_clock(alloc::boxed::Box::new(told));
        service.lead();
        let (mut now, mut served) = (0, 0);
        for _ in 0..4_000 {
            let name = NAMES[dice.roll(4) as usize];
            match dice.roll(40) {
                0 => {
                    let kinds = ["reliable=true retry_ms=5", "retry_ms=5 full=back-pressure", ""];
                    let settings = kinds[dice.roll(3) as usize].to_owned();
                    let mut local = Local::new(&mut service, crate::SERVICE_KEY.as_bytes());
                    let _ = ChannelsStub(&mut local).create(&name.to_owned(), &settings);
                }
                1 if dice.roll(4) == 0 => service.remove(name),
                2 => subscribe(&mut service, name, &mut dice),
                3 => source(&mut service, name),
                4 => {
                    let mut local =
                        Local::new(&mut service, format!("Events/{name}/rtec").as_bytes());
                    let peer = home().object("IDL:peer:1.0", b"observer");
                    let _ = EventChannelStub(&mut local).append_observer(&peer);
                }
                5 if dice.roll(3) == 0 => service.follow_another(),
                6 if dice.roll(3) == 0 => {
                    let state = service.state();
                    service.take_over(&state).expect("its own");
                }
                7 => service.lead(),
                8..20 => {
                    now += dice.roll(60_000);
                    service.tick(now);
                    check(&service);
                    clock.store(now, core::sync::atomic::Ordering::Relaxed);
                    for name in service.overdue() {
                        service.tick_channel(&name);
                    }
                }
                20..25 => {
                    let data = Any::new(&1_u32).expect("a value");
                    let pushed = service.with_channel(name, |it| {
                        let event = it.event_of(data);
                        it.push(alloc::vec![event])
                    });
                    served += usize::from(pushed == Some(Ok(())));
                }
                _ => work(&mut service, &mut dice),
            }
            check(&service);
        }
        assert!(served > 50, "{served}");
    }
}
