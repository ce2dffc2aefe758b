//! One member's server, from the outside: started and kept running, or looked for where somebody
//! else runs it. What stage it is in, and what leads to the next one.
//!
//! What it is not: a talk in GIOP; and what an order or an end means, [`Supervision`] knows. It
//! waits for nothing: it is told what has come, and when it wants to be asked again. Invariants: a
//! server is reported up only after a connection to its port came about; at most one process of it
//! is there at any time; of orders that come while it can heed none, none is lost.

mod elsewhere;
mod process;

use super::ending::{Ending, Why};
use super::looker::Looker;
use super::object::ObjectLook;
use super::reactor::Reactor;
use super::{Key, Opened};
use crate::endpoint::ServerEndpoint;
use crate::log_limiter::LogLimiter;
use crate::pauses::{Pause, PauseRule};
use crate::ready::Look;
use crate::running::Running;
use crate::supervision::{Activity, End, Order, Supervision};
use quorba_admin::status::ServerState;
use quorba_base::policy::Style;
use quorba_config::{Backend, Endpoint, Group, RESTART_BACKOFF_MAX};
use quorba_engine::replica::GroupId;
use std::time::{Duration, Instant};

/// A process, and what is to be known of it when it is gone.
pub(super) struct Process {
    pub(super) running: Running,
    pub(super) past: ProcessHistory,
}

/// See [`Process`].
#[derive(Clone)]
pub(super) struct ProcessHistory {
    pub(super) endpoint: ServerEndpoint,
    began: Instant,
    /// Orders to give up that were heeded before: what is told of it is as stale as it is.
    stops: u32,
}

/// See the module's text.
enum Stage {
    /// Another group's server, of the same name, is not gone yet.
    Held,
    /// No server is wanted.
    Unwanted,
    /// It is left alone; whether it was begun before.
    Pausing { was_begun: bool },
    /// It is being started, by a thread for that.
    Launching { began: Instant, stops: u32 },
    /// It was started, and is not ready.
    Starting(Box<Starting>),
    /// It runs.
    Running(Box<Process>, ObjectLook),
    /// It is being ended.
    Ending(Box<Ending>),
    /// It is somebody else's, and not there yet; what was found last.
    Seeking { began: Instant, at: Box<Endpoint>, last: Option<Look> },
    /// It is somebody else's, and connected, if its node is to have any.
    Connected { began: Instant, endpoint: Option<ServerEndpoint>, object: ObjectLook },
    /// There is nothing more to be done.
    Gone,
}

struct Starting {
    process: Process,
    until: Instant,
    found: Look,
    looker: Option<Looker>,
    next: Instant,
}

/// See the module's text.
pub(super) struct Server {
    key: Key,
    id: GroupId,
    /// What it is, as it was opened or changed last.
    of: Opened,
    supervision: Supervision,
    stage: Stage,
    /// Orders that came while none could be heeded.
    pending: Vec<Order>,
    /// The node lacks what a server needs.
    shortage: LogLimiter,
}

impl Server {
    /// `is_held`: nothing is begun before [`Self::let_go`].
    pub(super) fn new((id, key): (GroupId, Key), of: Opened) -> Self {
        let supervision = Supervision::new(rule(&of.group), of.group.style != Style::ColdPassive);
        let (stage, pending, shortage) = (Stage::Held, Vec::new(), LogLimiter::default());
        Self { key, id, of, supervision, stage, pending, shortage }
    }

    pub(super) fn group(&self) -> &Group {
        &self.of.group
    }

    pub(super) const fn is_held(&self) -> bool {
        matches!(self.stage, Stage::Held)
    }

    /// Whether there is nothing more to be done.
    pub(super) const fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Gone)
    }

    /// It waits for another one of its name.
    pub(super) fn tell_of_hold(&self, reactor: &Reactor) {
        let reason = "the server of the group that had this name before is being ended";
        reactor.update(self.id, self.key, |known| known.reason = Some(reason.into()));
    }

    /// It may begin.
    pub(super) fn let_go(&mut self, now: Instant, reactor: &mut Reactor) {
        if self.is_held() {
            self.begin_or_not(now, reactor);
            self.heed_pending(now, reactor);
        }
    }

    /// The group is declared otherwise from now on; of where its server is, nothing has changed.
    pub(super) fn change(&mut self, of: Opened, now: Instant, reactor: &mut Reactor) {
        self.supervision.set_rule(rule(&of.group));
        let same_object = of.group.object_key == self.of.group.object_key
            && of.group.state_object == self.of.group.state_object;
        self.of = of;
        if let Stage::Seeking { at, .. } = &self.stage {
            reactor.places.seek(at, self.key, &self.of.group, now);
        }
        let group = &self.of.group;
        if let Stage::Running(_, object) | Stage::Connected { object, .. } = &mut self.stage
            && !same_object
        {
            *object = ObjectLook::begin(group, now);
            reactor.timers.set(self.key, object.due());
        }
    }

    // -- orders ---------------------------------------------------------------------------------

    /// What it does, if it can heed orders.
    const fn doing(&self) -> Option<Activity> {
        Some(match self.stage {
            Stage::Unwanted => Activity::Nothing,
            Stage::Pausing { .. } => Activity::Pausing,
            Stage::Starting(_) => Activity::Starting,
            Stage::Running(..) => Activity::Running,
            Stage::Seeking { .. } => Activity::Seeking,
            Stage::Connected { .. } => Activity::Connected,
            Stage::Held | Stage::Launching { .. } | Stage::Ending(_) | Stage::Gone => return None,
        })
    }

    pub(super) fn order(&mut self, order: Order, now: Instant, reactor: &mut Reactor) {
        if let (Stage::Held, Order::Stop) = (&self.stage, order) {
            self.stage = Stage::Gone;
            return;
        }
        self.pending.push(order);
        self.heed_pending(now, reactor);
    }

    /// Heeds what has come: a stop before all else, the others in their order.
    fn heed_pending(&mut self, now: Instant, reactor: &mut Reactor) {
        while let Some(doing) = self.doing() {
            let stop = self.pending.iter().position(|order| *order == Order::Stop);
            if self.pending.is_empty() {
                // Mostly there is nothing for long.
                self.pending = Vec::new();
                return;
            }
            let order = self.pending.remove(stop.unwrap_or(0));
            if self.supervision.hear(now, order, doing) {
                self.heed(order, now, reactor);
            } else if let (Order::Release, Stage::Seeking { at, .. }) = (order, &self.stage) {
                reactor.places.hurry(at, now);
            }
        }
    }

    /// An order that ends what it is just doing.
    fn heed(&mut self, order: Order, now: Instant, reactor: &mut Reactor) {
        match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Unwanted if order == Order::Stop => {}
            Stage::Unwanted => self.begin_or_not(now, reactor),
            Stage::Pausing { .. } if order == Order::Stop => {}
            Stage::Pausing { was_begun } => self.pause_is_over(was_begun, now, reactor),
            Stage::Starting(starting) => {
                let Starting { process, .. } = *starting;
                self.end(process, Why::Ordered(order), now, reactor);
            }
            Stage::Running(process, _) => self.end(*process, Why::Ordered(order), now, reactor),
            Stage::Seeking { began, at, .. } => {
                reactor.places.leave(&at, self.key);
                self.over(order == Order::Stop, End::Over(began), now, reactor);
            }
            Stage::Connected { began, endpoint, .. } => {
                if endpoint.is_some() {
                    self.fail("the connection to it was lost".into(), reactor);
                }
                self.over(order == Order::Stop, End::Over(began), now, reactor);
            }
            stage @ (Stage::Held | Stage::Launching { .. } | Stage::Ending(_) | Stage::Gone) => {
                // No order is heeded in these.
                self.stage = stage;
            }
        }
        if self.is_gone() {
            reactor.timers.set(self.key, None);
        }
    }

    // -- beginning and pausing ------------------------------------------------------------------

    fn begin_or_not(&mut self, now: Instant, reactor: &mut Reactor) {
        reactor.timers.set(self.key, None);
        if !self.supervision.is_wanted() {
            self.fail("no server is wanted on this node now".into(), reactor);
            self.stage = Stage::Unwanted;
            return;
        }
        match &self.of.group.backend {
            Backend::Start(command) => {
                let command = command.clone();
                self.launch(command, now, reactor);
            }
            Backend::Connect(_) => match self.of.place(reactor.site.me) {
                Some(at) => {
                    let at = Box::new(at.clone());
                    reactor.places.seek(&at, self.key, &self.of.group, now);
                    self.stage = Stage::Seeking { began: now, at, last: None };
                }
                None => {
                    let object = ObjectLook::default();
                    self.stage = Stage::Connected { began: now, endpoint: None, object };
                }
            },
        }
    }

    /// A try to have a server is over.
    fn over(&mut self, is_stop: bool, end: End, now: Instant, reactor: &mut Reactor) {
        if is_stop {
            self.stage = Stage::Gone;
            return;
        }
        if !self.supervision.is_wanted() {
            return self.begin_or_not(now, reactor);
        }
        let pause = match self.supervision.ended(end, now) {
            Pause::Short(pause) => pause,
            Pause::Quarantine(pause, failures) => {
                self.tell_of_quarantine(pause, failures, reactor);
                pause
            }
        };
        self.stage = Stage::Pausing { was_begun: end != End::NeverBegun };
        reactor.timers.set(self.key, now.checked_add(pause));
    }

    fn tell_of_quarantine(&self, pause: Duration, failures: u32, reactor: &Reactor) {
        let seconds = pause.as_secs();
        let group = self.of.group.name.as_str();
        reactor.update(self.id, self.key, |known| {
            let last = known.reason.take().unwrap_or_default();
            known.state = ServerState::Quarantined;
            let reason = format!(
                "{failures} failures in a row, the last: {last}; tried again after {seconds} s, \
                 or at once by `quorba group release {group} {node}`",
                node = reactor.site.node.name,
            );
            known.reason = Some(reason.into());
        });
        tracing::error!(group, failures, seconds, "the server is in quarantine");
    }

    fn pause_is_over(&mut self, was_begun: bool, now: Instant, reactor: &mut Reactor) {
        if self.supervision.is_wanted() && was_begun {
            reactor.update(self.id, self.key, |known| known.restarts += 1);
        }
        self.begin_or_not(now, reactor);
    }

    // -- what is due ----------------------------------------------------------------------------

    /// Its time has come, or a look has something to say.
    pub(super) fn due(&mut self, now: Instant, reactor: &mut Reactor) {
        match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Pausing { was_begun } => self.pause_is_over(was_begun, now, reactor),
            Stage::Starting(starting) => self.look_at_start(starting, now, reactor),
            Stage::Ending(ending) => self.go_on_ending(*ending, now, reactor),
            Stage::Running(process, object) => {
                let object =
                    self.look_for_object(Some(&process.past.endpoint), object, now, reactor);
                self.stage = Stage::Running(process, object);
            }
            Stage::Connected { began, endpoint, object } => {
                let object = self.look_for_object(endpoint.as_ref(), object, now, reactor);
                self.stage = Stage::Connected { began, endpoint, object };
            }
            stage => self.stage = stage,
        }
        self.heed_pending(now, reactor);
    }

    /// Something has come of a look at it, if one is under way.
    pub(super) fn look_ready(&mut self, now: Instant, reactor: &mut Reactor) {
        if !matches!(self.stage, Stage::Pausing { .. }) {
            self.due(now, reactor);
        }
    }

    fn serves(&self, port: Option<u16>, reactor: &Reactor) {
        reactor.update(self.id, self.key, |known| {
            known.state = ServerState::Running;
            known.port = port;
            known.reason = None;
            known.missing_object = None;
        });
    }

    fn fail(&self, reason: String, reactor: &Reactor) {
        reactor.update(self.id, self.key, |known| known.fail(reason));
    }
}

fn rule(group: &Group) -> PauseRule {
    PauseRule {
        first: group.restart_backoff,
        longest: RESTART_BACKOFF_MAX,
        quarantine_after: group.quarantine_after,
        quarantine: group.quarantine,
    }
}
