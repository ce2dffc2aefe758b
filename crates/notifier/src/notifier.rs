//! The notifier: its state, its objects, and what they have in common.
//!
//! Invariants: reports have numbers without gaps, in the order in which they were taken in; a
//! consumer is given them in that order.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use quorba_base::canary;
use quorba_corba::giop::{ExceptionKind, MessageError, SystemException};
use quorba_corba::{Call, Home, Interface, Object, Objects, key_number, raise_system};
use quorba_idl::cos_notification::StructuredEvent;
use quorba_idl::{cos_notify_filter, ft, quorba, tao_ft};

use crate::analyzer::Analyzer;
use crate::delivery::DeliveryView;
use crate::event::Report;
use crate::filter::Filter;
use crate::omg::OmgView;
use crate::tao::{FilterView, TaoView};

/// The key of the notifier in the standard's form.
pub const NOTIFIER_KEY: &str = "FaultNotifier";
/// The key of the notifier for clients linked with TAO.
pub const TAO_KEY: &str = "TAO/FaultNotifier";
/// What the keys of filters begin with; a number follows.
const FILTER_PREFIX: &str = "TAO/FaultNotifier/filter";
/// The key of the object for who calls consumers.
pub const DELIVERY_KEY: &str = "FaultNotifier/delivery";
/// The key of the object that hands out the state.
pub const STATE_KEY: &str = "FaultNotifier/state";

/// How large everything may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Consumers.
    pub consumers_max: usize,
    /// Filters of TAO's clients.
    pub filters_max: usize,
    /// Constraints of one filter.
    pub constraints_max: usize,
    /// Reports that one consumer has not taken; then it is cut off.
    pub waiting_max: usize,
    /// Reports that are kept for who asks later.
    pub recent_max: usize,
    /// Octets of one report.
    pub event_bytes_max: usize,
    /// Reports in one reply.
    pub listed_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            consumers_max: 1_000,
            filters_max: 1_000,
            constraints_max: 64,
            waiting_max: 10_000,
            recent_max: 1_000,
            event_bytes_max: 16 << 10,
            listed_max: 256,
        }
    }
}

/// Which reports a consumer wants.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Wanted {
    Own(Filter),
    /// Those of a filter object; nothing if it was destroyed.
    Of(u64),
}

/// A consumer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Consumer {
    pub(crate) reference: Object,
    pub(crate) is_batch: bool,
    /// It came by TAO's form.
    pub(crate) is_of_tao: bool,
    pub(crate) wanted: Wanted,
    /// Numbers of reports that it has not got.
    pub(crate) waiting: VecDeque<u64>,
}

/// A consumer that was cut off.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gone {
    pub(crate) id: u64,
    pub(crate) reference: Object,
    pub(crate) is_batch: bool,
    pub(crate) why: String,
    /// Somebody has tried to tell it.
    pub(crate) is_told: bool,
}

/// What replicas have alike.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct State {
    pub(crate) last_consumer: u64,
    pub(crate) consumers: BTreeMap<u64, Consumer>,
    pub(crate) last_filter: u64,
    pub(crate) filters: BTreeMap<u64, Filter>,
    pub(crate) last_report: u64,
    pub(crate) reports: BTreeMap<u64, StructuredEvent>,
    /// Who was cut off lately.
    pub(crate) cut_off: VecDeque<Gone>,
    pub(crate) analyzer: Analyzer,
    /// Numbers of reports by others than nodes that the replication manager has not got.
    pub(crate) for_manager: VecDeque<u64>,
}

/// So many consumers are remembered that were cut off.
const CUT_OFF_MAX: usize = 100;

/// A fault notifier.
pub struct Notifier {
    pub(crate) state: State,
    pub(crate) limits: Limits,
    home: Home,
    /// Reports of other domains are passed on, and not analyzed.
    domain_id: String,
    /// How many states it was given; no part of them.
    pub(crate) states: u64,
}

/// Which object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Notifier,
    Tao,
    Filter(u64),
    Delivery,
    State,
}

fn place(key: &[u8]) -> Option<Place> {
    let key = core::str::from_utf8(key).ok()?;
    match key {
        NOTIFIER_KEY => Some(Place::Notifier),
        TAO_KEY => Some(Place::Tao),
        DELIVERY_KEY => Some(Place::Delivery),
        STATE_KEY => Some(Place::State),
        _ => key.strip_prefix(FILTER_PREFIX).and_then(key_number).map(Place::Filter),
    }
}

impl Notifier {
    /// One without consumers, whose references lead to `home`.
    #[must_use]
    pub fn new(home: Home, domain_id: &str, limits: Limits) -> Self {
        let domain_id = domain_id.to_string();
        Self { state: State::default(), limits, home, domain_id, states: 0 }
    }

    /// What it knows, as octets.
    #[must_use]
    pub fn state(&self) -> Vec<u8> {
        crate::state::write(&self.state)
    }

    /// Takes over what another one handed out by [`Notifier::state`].
    ///
    /// # Errors
    /// If it is no such state; then nothing changes.
    pub fn take_over(&mut self, state: &[u8]) -> Result<(), MessageError> {
        self.state = crate::state::read(state)?;
        self.states += 1;
        Ok(())
    }

    /// Takes a report in: a number, and who wants it.
    pub(crate) fn take(&mut self, event: StructuredEvent) -> Result<(), SystemException> {
        if crate::state::event_octets(&event).len() > self.limits.event_bytes_max {
            return Err(raise_system(ExceptionKind::ImpLimit));
        }
        let report = Report::of_event(&event).filter(|one| one.domain_id == self.domain_id);
        let is_of_object = crate::event::is_by_detector(&event);
        let analyzer = &mut self.state.analyzer;
        if report.as_ref().is_some_and(|report| !analyzer.is_news(report, is_of_object)) {
            return Ok(());
        }
        self.state.last_report += 1;
        let number = self.state.last_report;
        if report.is_some() && crate::event::is_by_others(&event) {
            self.state.for_manager.push_back(number);
            // It is never cut off; what is too much for it is lost, the oldest first.
            if self.state.for_manager.len() > self.limits.waiting_max {
                self.state.for_manager.pop_front();
            }
        }
        let filters = &self.state.filters;
        let mut full = Vec::new();
        for (id, consumer) in &mut self.state.consumers {
            let is_wanted = match &consumer.wanted {
                Wanted::Own(filter) => filter.matches(&event),
                Wanted::Of(filter) => filters.get(filter).is_some_and(|it| it.matches(&event)),
            };
            if is_wanted {
                consumer.waiting.push_back(number);
            }
            if consumer.waiting.len() > self.limits.waiting_max {
                full.push(*id);
            }
        }
        self.state.reports.insert(number, event);
        for id in full {
            let waiting = self.limits.waiting_max;
            self.cut_off(id, format!("more than {waiting} reports wait for it"));
        }
        self.forget();
        Ok(())
    }

    /// Forgets reports that nobody waits for, but for the last ones.
    pub(crate) fn forget(&mut self) {
        let recent = u64::try_from(self.limits.recent_max).unwrap_or(u64::MAX);
        let kept = self.state.last_report.saturating_sub(recent);
        let waiting = self.state.consumers.values().filter_map(|one| one.waiting.front());
        let waiting = waiting.chain(self.state.for_manager.front());
        let first = waiting.copied().min().unwrap_or(u64::MAX).min(kept + 1);
        self.state.reports = self.state.reports.split_off(&first);
    }

    pub(crate) fn connect(
        &mut self,
        reference: Object,
        (is_batch, is_of_tao): (bool, bool),
        wanted: Wanted,
    ) -> Result<u64, SystemException> {
        if reference.0.endpoints().is_empty() {
            return Err(raise_system(ExceptionKind::BadParam));
        }
        let is_long =
            reference.0.encode(quorba_corba::giop::Endian::Big).len() > self.limits.event_bytes_max;
        if self.state.consumers.len() >= self.limits.consumers_max || is_long {
            return Err(raise_system(ExceptionKind::NoResources));
        }
        self.state.last_consumer += 1;
        let waiting = VecDeque::new();
        let consumer = Consumer { reference, is_batch, is_of_tao, wanted, waiting };
        self.state.consumers.insert(self.state.last_consumer, consumer);
        Ok(self.state.last_consumer)
    }

    /// Whether it was connected.
    pub(crate) fn disconnect(&mut self, id: u64) -> bool {
        let was_there = self.state.consumers.remove(&id).is_some();
        self.forget();
        was_there
    }

    pub(crate) fn cut_off(&mut self, id: u64, why: String) {
        let Some(Consumer { reference, is_batch, .. }) = self.state.consumers.remove(&id) else {
            return;
        };
        if canary!(CutsOffTheNext) {
            self.state.consumers.remove(&(id + 1));
        }
        if self.state.cut_off.len() >= CUT_OFF_MAX {
            self.state.cut_off.pop_front();
        }
        self.state.cut_off.push_back(Gone { id, reference, is_batch, why, is_told: false });
        self.forget();
    }

    pub(crate) fn filter_object(&self, number: u64) -> Object {
        let key = format!("{FILTER_PREFIX}{number}");
        self.home.object(cos_notify_filter::FILTER.id(), key.as_bytes())
    }

    /// The number of a filter of this notifier that a reference leads to.
    pub(crate) fn own_filter(&self, object: &Object) -> Option<u64> {
        match place(&self.home.key_of(object)?)? {
            Place::Filter(number) => self.state.filters.contains_key(&number).then_some(number),
            _ => None,
        }
    }
}

impl Objects for Notifier {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        match place(key)? {
            Place::Notifier => Some(ft::FAULT_NOTIFIER),
            Place::Tao => Some(tao_ft::FAULT_NOTIFIER),
            Place::Filter(number) => {
                let is_there = self.state.filters.contains_key(&number);
                is_there.then_some(cos_notify_filter::FILTER)
            }
            Place::Delivery => Some(quorba::FAULT_DELIVERY),
            Place::State => Some(ft::CHECKPOINTABLE),
        }
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match place(key).ok_or(raise_system(ExceptionKind::ObjectNotExist))? {
            Place::Notifier => ft::dispatch_fault_notifier(&mut OmgView(self), call),
            Place::Tao => tao_ft::dispatch_fault_notifier(&mut TaoView(self), call),
            Place::Filter(number) => {
                let mut view = FilterView { notifier: self, number };
                cos_notify_filter::dispatch_filter(&mut view, call)
            }
            Place::Delivery => quorba::dispatch_fault_delivery(&mut DeliveryView(self), call),
            Place::State => ft::dispatch_checkpointable(self, call),
        }
    }
}
