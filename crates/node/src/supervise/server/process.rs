//! A server that this node starts: from the start of its process until that is gone.
//!
//! What it is not: when one is started; see [`super`]. Invariant: a process that is there is in
//! exactly one stage, and its end is waited for in all of them.

use super::{Process, ProcessHistory, Server, Stage, Starting};
use crate::endpoint::ServerEndpoint;
use crate::launch::{launch, wanted_key};
use crate::output::Output;
use crate::ready::Look;
use crate::running::{NotStarted, Running};
use crate::supervise::ending::{Ended, Ending, Why};
use crate::supervise::looker::Looker;
use crate::supervise::object::ObjectLook;
use crate::supervise::reactor::{Reactor, Source};
use crate::supervise::{Life, Opened, ServerNews, SupervisorMessage};
use crate::supervision::{End, Order};
use quorba_admin::status::ServerState;
use quorba_config::{Node, ServerCommand};
use quorba_engine::replica::DownReason;
use quorba_net::Interest;
use std::time::{Duration, Instant};

/// How often a starting server's port is tried.
const PROBE: Duration = Duration::from_millis(10);

impl Server {
    pub(super) fn launch(&mut self, command: ServerCommand, now: Instant, reactor: &mut Reactor) {
        reactor.update(self.id, self.key, |known| known.prints = true);
        self.stage = Stage::Launching { began: now, stops: self.supervision.stops() };
        let (key, of, site) = (self.key, self.of.clone(), reactor.site.clone());
        let messages = reactor.messages.clone();
        // What it says of itself may come before the message that it is started.
        reactor.update(self.id, self.key, |known| known.scheduling = None);
        let job = move || {
            let started = start(&of, &site.node, &command);
            // Nobody listens when the node has ended; what was started ends with it.
            messages.send(SupervisorMessage::Launched(key, Box::new(started)));
        };
        if let Err(error) = reactor.starters.run(job) {
            let none = NotStarted::because("no thread to start it", &error);
            self.launched(Err(none), now, reactor);
        }
    }

    /// It was started, or could not be.
    pub(in crate::supervise) fn launched(
        &mut self,
        started: Result<(Running, ServerEndpoint), NotStarted>,
        now: Instant,
        reactor: &mut Reactor,
    ) {
        let Stage::Launching { began, stops } = self.stage else { return };
        let watched = started.and_then(|(running, endpoint)| {
            let token = Source::Process(self.key).token();
            let added = reactor.poller.add(running.pidfd(), token, Interest::READ);
            added.map_err(|error| NotStarted::because("it cannot be watched", &error))?;
            Ok((running, endpoint))
        });
        let (running, endpoint) = match watched {
            Ok(started) => started,
            Err(NotStarted { reason, is_ours }) => {
                self.tell_of_no_start(&reason, is_ours, now);
                self.fail(reason, reactor);
                if is_ours {
                    reactor.site.reserve.lend();
                }
                let end = if is_ours { End::NeverBegun } else { End::Over(began) };
                self.over(false, end, now, reactor);
                return self.heed_pending(now, reactor);
            }
        };
        reactor.update(self.id, self.key, |known| {
            known.state = ServerState::Starting;
            known.pid = running.pid();
            known.port = endpoint.port();
        });
        let process = Process { running, past: ProcessHistory { endpoint, began, stops } };
        let until = now + self.of.group.start_timeout;
        let (found, looker) = (Look::Deaf, None);
        self.stage =
            Stage::Starting(Box::new(Starting { process, until, found, looker, next: now }));
        self.heed_pending(now, reactor);
        self.due(now, reactor);
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
    pub(super) fn look_at_start(
        &mut self,
        mut starting: Box<Starting>,
        now: Instant,
        reactor: &mut Reactor,
    ) {
        let token = Source::Look(self.key).token();
        let begun = match starting.looker.take() {
            Some(looker) => Ok(Ok(looker)),
            None if starting.next > now => {
                reactor.timers.set(self.key, Some(starting.next));
                self.stage = Stage::Starting(starting);
                return;
            }
            None => {
                let key = wanted_key(&self.of.group).map(|(_, key)| key);
                Looker::begin(&starting.process.past.endpoint, key, token, now)
            }
        };
        let look = match begun {
            Ok(Ok(mut looker)) => {
                let look = looker.step(now, &reactor.poller);
                if look.is_none() {
                    reactor.timers.set(self.key, Some(looker.until()));
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
            Some(Look::Ready) => return self.runs(starting.process, now, reactor),
            Some(look) if now >= starting.until => {
                return self.end(starting.process, Why::Late(look), now, reactor);
            }
            Some(look) => starting.found = look,
            None => starting.until += PROBE,
        }
        starting.next = now + PROBE;
        reactor.timers.set(self.key, Some(starting.next));
        self.stage = Stage::Starting(starting);
    }

    fn runs(&mut self, process: Process, now: Instant, reactor: &mut Reactor) {
        let ProcessHistory { endpoint, stops, .. } = process.past.clone();
        self.serves(endpoint.port(), reactor);
        self.supervision.server_is_up(now);
        (reactor.tell)(self.id, Life { key: self.key, stops }, ServerNews::Up(endpoint));
        let object = ObjectLook::begin(&self.of.group, now);
        reactor.timers.set(self.key, object.due());
        self.stage = Stage::Running(Box::new(process), object);
    }

    /// Its process has something to say: it ends, or has ended.
    pub(in crate::supervise) fn process_ready(&mut self, now: Instant, reactor: &mut Reactor) {
        match std::mem::replace(&mut self.stage, Stage::Gone) {
            Stage::Starting(starting) if starting.process.running.has_ended(Duration::ZERO) => {
                let Starting { process, .. } = *starting;
                self.end(process, Why::Exited, now, reactor);
            }
            Stage::Running(process, _) if process.running.has_ended(Duration::ZERO) => {
                self.end(*process, Why::Exited, now, reactor);
            }
            Stage::Ending(ending) => self.go_on_ending(*ending, now, reactor),
            // Of one before.
            stage => self.stage = stage,
        }
        self.heed_pending(now, reactor);
    }

    pub(super) fn end(&mut self, process: Process, why: Why, now: Instant, reactor: &mut Reactor) {
        let ending = Ending::begin(process, why, now);
        self.go_on_ending(ending, now, reactor);
    }

    pub(super) fn go_on_ending(&mut self, ending: Ending, now: Instant, reactor: &mut Reactor) {
        match ending.step(&self.of.group, self.of.output.as_ref(), now) {
            Ended::NotYet(ending, next) => {
                reactor.timers.set(self.key, next);
                self.stage = Stage::Ending(Box::new(ending));
            }
            Ended::Gone(ProcessHistory { began, stops, .. }, why, reason) => {
                reactor.timers.set(self.key, None);
                tracing::warn!(group = self.of.group.name, %reason, "server ended");
                self.fail(reason, reactor);
                let news = ServerNews::Down(DownReason::ServerExited);
                (reactor.tell)(self.id, Life { key: self.key, stops }, news);
                let is_stop = matches!(why, Why::Ordered(Order::Stop));
                self.over(is_stop, End::Over(began), now, reactor);
            }
        }
    }
}

/// For a thread that may wait.
fn start(
    of: &Opened,
    node: &Node,
    command: &ServerCommand,
) -> Result<(Running, ServerEndpoint), NotStarted> {
    let shortage = |error| NotStarted::because("nobody can take what it prints", &error);
    let output = of.output.as_ref().map(Output::pipe).transpose().map_err(shortage)?;
    let launcher = of.launcher.as_deref().ok_or_else(|| "no launcher".to_owned())?;
    let out = output.ok_or_else(|| "nobody takes what it prints".to_owned())?;
    let err = out.try_clone().map_err(shortage)?;
    let time = of.time.as_deref();
    launch(&of.group, node, launcher, command, time, (out.into(), err.into()))
}
