//! One member's server, from the outside: started and kept running, or looked for where somebody
//! else runs it. What stage it is in, and what leads to the next one.
//!
//! What it is not: a talk in GIOP; and what an order or an end means, [`Standing`] knows. It waits
//! for nothing: it is told what has come, and when it wants to be asked again. Invariants: a server
//! is reported up only after a connection to its port came about; at most one process of it is
//! there at any time; of orders that come while it can heed none, none is lost.

use super::ending::{Ended, Ending, Why};
use super::hands::{Hands, Source};
use super::looker::Looker;
use super::object::{Found, ObjectLook};
use super::places::Sought;
use super::{Key, Letter, Life, Opened, ServerNews};
use crate::door::Door;
use crate::launch::{launch, wanted_key};
use crate::output::Output;
use crate::pauses::{Pause, PauseRule};
use crate::ready::Look;
use crate::running::{NotStarted, Running};
use crate::seldom::Seldom;
use crate::standing::{Doing, End, Order, Standing};
use quorba_config::{Backend, Endpoint, Group, RESTART_BACKOFF_MAX, ServerCommand, Style};
use quorba_engine::replica::{DownReason, GroupId};
use quorba_giop::corbaloc::EscapedKey;
use quorba_net::Interest;
use std::time::{Duration, Instant};

/// How often a starting server's port is tried.
const PROBE: Duration = Duration::from_millis(10);

/// A process, and what is to be known of it when it is gone.
pub(super) struct Process {
    pub(super) running: Running,
    pub(super) past: Past,
}

/// See [`Process`].
#[derive(Clone)]
pub(super) struct Past {
    pub(super) door: Door,
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
    Connected { began: Instant, door: Option<Door>, object: ObjectLook },
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
    standing: Standing,
    stage: Stage,
    /// Orders that came while none could be heeded.
    pending: Vec<Order>,
    /// The node lacks what a server needs.
    shortage: Seldom,
}

impl Server {
    /// `is_held`: nothing is begun before [`Self::let_go`].
    pub(super) fn new((id, key): (GroupId, Key), of: Opened) -> Self {
        let standing = Standing::new(rule(&of.group), of.group.style != Style::ColdPassive);
        let (stage, pending, shortage) = (Stage::Held, Vec::new(), Seldom::default());
        Self { key, id, of, standing, stage, pending, shortage }
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
    pub(super) fn tell_of_hold(&self, hands: &Hands) {
        let reason = "the server of the group that had this name before is being ended";
        hands.update(self.id, self.key, |known| known.reason = Some(reason.into()));
    }

    /// It may begin.
    pub(super) fn let_go(&mut self, now: Instant, hands: &mut Hands) {
        if self.is_held() {
            self.begin_or_not(now, hands);
            self.heed_pending(now, hands);
        }
    }

    /// The group is declared otherwise from now on; of where its server is, nothing has changed.
    pub(super) fn change(&mut self, of: Opened, now: Instant, hands: &mut Hands) {
        self.standing.set_rule(rule(&of.group));
        let same_object = of.group.object_key == self.of.group.object_key
            && of.group.state_object == self.of.group.state_object;
        self.of = of;
        if let Stage::Seeking { at, .. } = &self.stage {
            hands.places.seek(at, self.key, &self.of.group, now);
        }
        let group = &self.of.group;
        if let Stage::Running(_, object) | Stage::Connected { object, .. } = &mut self.stage
            && !same_object
        {
            *object = ObjectLook::begin(group, now);
            hands.timers.set(self.key, object.due());
        }
    }

    // -- orders ---------------------------------------------------------------------------------

    /// What it does, if it can heed orders.
    const fn doing(&self) -> Option<Doing> {
        Some(match self.stage {
            Stage::Unwanted => Doing::Nothing,
            Stage::Pausing { .. } => Doing::Pausing,
            Stage::Starting(_) => Doing::Starting,
            Stage::Running(..) => Doing::Running,
            Stage::Seeking { .. } => Doing::Seeking,
            Stage::Connected { .. } => Doing::Connected,
            Stage::Held | Stage::Launching { .. } | Stage::Ending(_) | Stage::Gone => return None,
        })
    }

    pub(super) fn order(&mut self, order: Order, now: Instant, hands: &mut Hands) {
        if let (Stage::Held, Order::Stop) = (&self.stage, order) {
            self.stage = Stage::Gone;
            return;
        }
        self.pending.push(order);
        self.heed_pending(now, hands);
    }

    /// Heeds what has come: a stop before all else, the others in their order.
    fn heed_pending(&mut self, now: Instant, hands: &mut Hands) {
        while let Some(doing) = self.doing() {
            let stop = self.pending.iter().position(|order| *order == Order::Stop);
            if self.pending.is_empty() {
                // Mostly there is nothing for long.
                self.pending = Vec::new();
                return;
            }
            let order = self.pending.remove(stop.unwrap_or(0));
            if self.standing.hear(now, order, doing) {
                self.heed(order, now, hands);
            } else if let (Order::Release, Stage::Seeking { at, .. }) = (order, &self.stage) {
                hands.places.hurry(at, now);
            }
        }
    }

    /// An order that ends what it is just doing.
    fn heed(&mut self, order: Order, now: Instant, hands: &mut Hands) {
        match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Unwanted if order == Order::Stop => {}
            Stage::Unwanted => self.begin_or_not(now, hands),
            Stage::Pausing { .. } if order == Order::Stop => {}
            Stage::Pausing { was_begun } => self.pause_is_over(was_begun, now, hands),
            Stage::Starting(starting) => {
                let Starting { process, .. } = *starting;
                self.end(process, Why::Ordered(order), now, hands);
            }
            Stage::Running(process, _) => self.end(*process, Why::Ordered(order), now, hands),
            Stage::Seeking { began, at, .. } => {
                hands.places.leave(&at, self.key);
                self.over(order == Order::Stop, End::Over(began), now, hands);
            }
            Stage::Connected { began, door, .. } => {
                if door.is_some() {
                    self.fail("the connection to it was lost".into(), hands);
                }
                self.over(order == Order::Stop, End::Over(began), now, hands);
            }
            stage @ (Stage::Held | Stage::Launching { .. } | Stage::Ending(_) | Stage::Gone) => {
                // No order is heeded in these.
                self.stage = stage;
            }
        }
        if self.is_gone() {
            hands.timers.set(self.key, None);
        }
    }

    // -- beginning and pausing ------------------------------------------------------------------

    fn begin_or_not(&mut self, now: Instant, hands: &mut Hands) {
        hands.timers.set(self.key, None);
        if !self.standing.is_wanted() {
            self.fail("no server is wanted on this node now".into(), hands);
            self.stage = Stage::Unwanted;
            return;
        }
        match &self.of.group.backend {
            Backend::Start(command) => {
                let command = command.clone();
                self.launch(command, now, hands);
            }
            Backend::Connect(_) => match self.of.place(hands.site.me) {
                Some(at) => {
                    let at = Box::new(at.clone());
                    hands.places.seek(&at, self.key, &self.of.group, now);
                    self.stage = Stage::Seeking { began: now, at, last: None };
                }
                None => {
                    let object = ObjectLook::default();
                    self.stage = Stage::Connected { began: now, door: None, object };
                }
            },
        }
    }

    /// A try to have a server is over.
    fn over(&mut self, is_stop: bool, end: End, now: Instant, hands: &mut Hands) {
        if is_stop {
            self.stage = Stage::Gone;
            return;
        }
        if !self.standing.is_wanted() {
            return self.begin_or_not(now, hands);
        }
        let pause = match self.standing.ended(end, now) {
            Pause::Short(pause) => pause,
            Pause::Quarantine(pause, failures) => {
                self.tell_of_quarantine(pause, failures, hands);
                pause
            }
        };
        self.stage = Stage::Pausing { was_begun: end != End::NeverBegun };
        hands.timers.set(self.key, now.checked_add(pause));
    }

    fn tell_of_quarantine(&self, pause: Duration, failures: u32, hands: &Hands) {
        let seconds = pause.as_secs();
        let group = self.of.group.name.as_str();
        hands.update(self.id, self.key, |known| {
            let last = known.reason.take().unwrap_or_default();
            known.state = "quarantined";
            let reason = format!(
                "{failures} failures in a row, the last: {last}; tried again after {seconds} s, \
                 or at once by `quorba group release {group} {node}`",
                node = hands.site.node.name,
            );
            known.reason = Some(reason.into());
        });
        tracing::error!(group, failures, seconds, "the server is in quarantine");
    }

    fn pause_is_over(&mut self, was_begun: bool, now: Instant, hands: &mut Hands) {
        if self.standing.is_wanted() && was_begun {
            hands.update(self.id, self.key, |known| known.restarts += 1);
        }
        self.begin_or_not(now, hands);
    }

    // -- a process of ours ----------------------------------------------------------------------

    fn launch(&mut self, command: ServerCommand, now: Instant, hands: &mut Hands) {
        hands.update(self.id, self.key, |known| known.prints = true);
        self.stage = Stage::Launching { began: now, stops: self.standing.stops() };
        let (key, of, site) = (self.key, self.of.clone(), hands.site.clone());
        let letters = hands.letters.clone();
        let job = move || {
            let started = start(&of, &site.node, &command);
            // Nobody listens when the node has ended; what was started ends with it.
            letters.send(Letter::Launched(key, Box::new(started)));
        };
        if let Err(error) = hands.starters.run(job) {
            let none = NotStarted::because("no thread to start it", &error);
            self.launched(Err(none), now, hands);
        }
    }

    /// It was started, or could not be.
    pub(super) fn launched(
        &mut self,
        started: Result<(Running, Door), NotStarted>,
        now: Instant,
        hands: &mut Hands,
    ) {
        let Stage::Launching { began, stops } = self.stage else { return };
        let watched = started.and_then(|(running, door)| {
            let token = Source::Process(self.key).token();
            let added = hands.poller.add(running.pidfd(), token, Interest::READ);
            added.map_err(|error| NotStarted::because("it cannot be watched", &error))?;
            Ok((running, door))
        });
        let (running, door) = match watched {
            Ok(started) => started,
            Err(NotStarted { reason, is_ours }) => {
                self.tell_of_no_start(&reason, is_ours, now);
                self.fail(reason, hands);
                if is_ours {
                    hands.site.reserve.lend();
                }
                let end = if is_ours { End::NeverBegun } else { End::Over(began) };
                self.over(false, end, now, hands);
                return self.heed_pending(now, hands);
            }
        };
        hands.update(self.id, self.key, |known| {
            known.state = "starting";
            known.pid = running.pid();
            known.port = door.port();
        });
        let process = Process { running, past: Past { door, began, stops } };
        let until = now + self.of.group.start_timeout;
        let (found, looker) = (Look::Deaf, None);
        self.stage =
            Stage::Starting(Box::new(Starting { process, until, found, looker, next: now }));
        self.heed_pending(now, hands);
        self.due(now, hands);
    }

    fn tell_of_no_start(&mut self, reason: &str, is_ours: bool, now: Instant) {
        let group = self.of.group.name.as_str();
        if !is_ours {
            tracing::error!(group, %reason, "cannot start the server");
        } else if self.shortage.tells(now).is_some() {
            tracing::error!(group, %reason, "the node lacks what a server needs");
        }
    }

    /// A starting server is looked at, until it serves or its time is up. It has no less time while
    /// the node cannot look.
    fn look_at_start(&mut self, mut starting: Box<Starting>, now: Instant, hands: &mut Hands) {
        let token = Source::Look(self.key).token();
        let begun = match starting.looker.take() {
            Some(looker) => Ok(Ok(looker)),
            None if starting.next > now => {
                hands.timers.set(self.key, Some(starting.next));
                self.stage = Stage::Starting(starting);
                return;
            }
            None => {
                let key = wanted_key(&self.of.group).map(|(_, key)| key);
                Looker::begin(&starting.process.past.door, key, token, now)
            }
        };
        let look = match begun {
            Ok(Ok(mut looker)) => {
                let look = looker.step(now, &hands.poller);
                if look.is_none() {
                    hands.timers.set(self.key, Some(looker.until()));
                    starting.looker = Some(looker);
                    self.stage = Stage::Starting(starting);
                    return;
                }
                look
            }
            Ok(Err(look)) => Some(look),
            Err(_) => None,
        };
        match look {
            Some(Look::Ready) => return self.runs(starting.process, now, hands),
            Some(look) if now >= starting.until => {
                return self.end(starting.process, Why::Late(look), now, hands);
            }
            Some(look) => starting.found = look,
            None => starting.until += PROBE,
        }
        starting.next = now + PROBE;
        hands.timers.set(self.key, Some(starting.next));
        self.stage = Stage::Starting(starting);
    }

    fn runs(&mut self, process: Process, now: Instant, hands: &mut Hands) {
        let Past { door, stops, .. } = process.past.clone();
        self.serves(door.port(), hands);
        self.standing.server_is_up(now);
        (hands.tell)(self.id, Life { key: self.key, stops }, ServerNews::Up(door));
        let object = ObjectLook::begin(&self.of.group, now);
        hands.timers.set(self.key, object.due());
        self.stage = Stage::Running(Box::new(process), object);
    }

    /// Its process has something to say: it ends, or has ended.
    pub(super) fn process_ready(&mut self, now: Instant, hands: &mut Hands) {
        match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Starting(starting) if starting.process.running.has_ended(Duration::ZERO) => {
                let Starting { process, .. } = *starting;
                self.end(process, Why::Exited, now, hands);
            }
            Stage::Running(process, _) if process.running.has_ended(Duration::ZERO) => {
                self.end(*process, Why::Exited, now, hands);
            }
            Stage::Ending(ending) => self.go_on_ending(*ending, now, hands),
            // Of one before.
            stage => self.stage = stage,
        }
        self.heed_pending(now, hands);
    }

    fn end(&mut self, process: Process, why: Why, now: Instant, hands: &mut Hands) {
        let ending = Ending::begin(process, why, now);
        self.go_on_ending(ending, now, hands);
    }

    fn go_on_ending(&mut self, ending: Ending, now: Instant, hands: &mut Hands) {
        match ending.step(&self.of.group, self.of.output.as_ref(), now) {
            Ended::NotYet(ending, next) => {
                hands.timers.set(self.key, next);
                self.stage = Stage::Ending(Box::new(ending));
            }
            Ended::Gone(Past { began, stops, .. }, why, reason) => {
                hands.timers.set(self.key, None);
                tracing::warn!(group = self.of.group.name, %reason, "server ended");
                self.fail(reason, hands);
                let news = ServerNews::Down(DownReason::ServerExited);
                (hands.tell)(self.id, Life { key: self.key, stops }, news);
                let is_stop = matches!(why, Why::Ordered(Order::Stop));
                self.over(is_stop, End::Over(began), now, hands);
            }
        }
    }

    // -- somebody else's ------------------------------------------------------------------------

    /// It was looked for.
    pub(super) fn sought(&mut self, sought: Sought, now: Instant, hands: &mut Hands) {
        let Stage::Seeking { began, at, last } = &mut self.stage else { return };
        match sought {
            Sought::Found(door) => {
                let began = *began;
                self.serves(door.port(), hands);
                let life = Life { key: self.key, stops: self.standing.stops() };
                (hands.tell)(self.id, life, ServerNews::Up(door.clone()));
                self.standing.is_elsewhere();
                let object = ObjectLook::begin(&self.of.group, now);
                hands.timers.set(self.key, object.due());
                self.stage = Stage::Connected { began, door: Some(door), object };
            }
            // What was told is what is the case.
            Sought::Not(_, found) if *last == Some(found) => {}
            Sought::Not(door, found) => {
                *last = Some(found);
                let text = found.text(&door, wanted_key(&self.of.group));
                let reason = format!("{at} does not serve yet: it {text}");
                self.fail(reason, hands);
            }
            Sought::Failed(reason) => {
                *last = None;
                self.fail(reason, hands);
            }
        }
    }

    // -- what is due ----------------------------------------------------------------------------

    /// Its time has come, or a look has something to say.
    pub(super) fn due(&mut self, now: Instant, hands: &mut Hands) {
        match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Pausing { was_begun } => self.pause_is_over(was_begun, now, hands),
            Stage::Starting(starting) => self.look_at_start(starting, now, hands),
            Stage::Ending(ending) => self.go_on_ending(*ending, now, hands),
            Stage::Running(process, object) => {
                let object = self.look_for_object(Some(&process.past.door), object, now, hands);
                self.stage = Stage::Running(process, object);
            }
            Stage::Connected { began, door, object } => {
                let object = self.look_for_object(door.as_ref(), object, now, hands);
                self.stage = Stage::Connected { began, door, object };
            }
            stage => self.stage = stage,
        }
        self.heed_pending(now, hands);
    }

    /// Something has come of a look at it, if one is under way.
    pub(super) fn look_ready(&mut self, now: Instant, hands: &mut Hands) {
        if !matches!(self.stage, Stage::Pausing { .. }) {
            self.due(now, hands);
        }
    }

    /// Whether the object that references name is there.
    fn look_for_object(
        &self,
        door: Option<&Door>,
        mut object: ObjectLook,
        now: Instant,
        hands: &mut Hands,
    ) -> ObjectLook {
        let Some((door, key)) = door.zip(self.of.group.object_key.as_deref()) else {
            return ObjectLook::default();
        };
        let token = Source::Look(self.key).token();
        let found = object.step((door, key), token, now, &hands.poller);
        match found {
            Some(Found::Here) => {
                hands.update(self.id, self.key, |known| known.missing_object = None);
            }
            Some(Found::Missing) => {
                let key = EscapedKey(key).to_string();
                hands.update(self.id, self.key, |known| known.missing_object = Some(key.into()));
            }
            Some(Found::Unknown) | None => {}
        }
        hands.timers.set(self.key, object.due());
        object
    }

    fn serves(&self, port: Option<u16>, hands: &Hands) {
        hands.update(self.id, self.key, |known| {
            known.state = "running";
            known.port = port;
            known.reason = None;
            known.missing_object = None;
        });
    }

    fn fail(&self, reason: String, hands: &Hands) {
        hands.update(self.id, self.key, |known| known.fail(reason));
    }
}

/// For a thread that may wait.
fn start(
    of: &Opened,
    node: &quorba_config::Node,
    command: &ServerCommand,
) -> Result<(Running, Door), NotStarted> {
    let shortage = |error| NotStarted::because("nobody can take what it prints", &error);
    let output = of.output.as_ref().map(Output::pipe).transpose().map_err(shortage)?;
    let launcher = of.launcher.as_deref().ok_or_else(|| "no launcher".to_owned())?;
    let out = output.ok_or_else(|| "nobody takes what it prints".to_owned())?;
    let err = out.try_clone().map_err(shortage)?;
    let time = of.time.as_deref();
    launch(&of.group, node, launcher, command, time, (out.into(), err.into()))
}

fn rule(group: &Group) -> PauseRule {
    PauseRule {
        first: group.restart_backoff,
        longest: RESTART_BACKOFF_MAX,
        quarantine_after: group.quarantine_after,
        quarantine: group.quarantine,
    }
}
