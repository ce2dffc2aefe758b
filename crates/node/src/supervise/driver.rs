//! The supervisor's thread: waits for messages, processes, looks and times, and tells each server
//! of what is its.
//!
//! What it is not: what a server does about it. Invariants: nothing here blocks but the wait
//! itself; a server of a closed group is looked after until it is gone, and meanwhile none of the
//! same name is begun, so that their files do not collide.

use super::known::Table;
use super::places::{LookResult, Places};
use super::reactor::{BELL, Reactor, Source};
use super::server::Server;
use super::timers::Timers;
use super::{Key, Life, ServerNews, SupervisorContext, SupervisorMessage};
use crate::supervision::Order;
use crate::wake::{Mailbox, MailboxSender};
use crate::workers::Workers;
use quorba_engine::replica::GroupId;
use quorba_net::{Interest, Poller};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Threads that start processes, and that look names up.
const STARTERS_MAX: usize = 8;
const RESOLVERS_MAX: usize = 4;
/// How long a poller that failed is left alone.
const POLL_AGAIN: Duration = Duration::from_millis(100);

/// See the module's text.
pub(super) struct Driver {
    inbox: Mailbox<SupervisorMessage>,
    reactor: Reactor,
    servers: BTreeMap<Key, Server>,
    /// Of these, those whose groups are closed.
    leaving: BTreeSet<Key>,
    is_stopping: bool,
}

impl Driver {
    pub(super) fn new(
        (site, known): (Arc<SupervisorContext>, Table),
        (messages, inbox): (MailboxSender<SupervisorMessage>, Mailbox<SupervisorMessage>),
        tell: Box<dyn Fn(GroupId, Life, ServerNews) -> bool + Send>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(inbox.bell(), BELL, Interest::READ)?;
        let resolvers = Workers::new("names", RESOLVERS_MAX);
        let reactor = Reactor {
            site,
            poller,
            timers: Timers::new(),
            places: Places::new(resolvers, messages.clone(), Instant::now()),
            starters: Workers::new("starter", STARTERS_MAX),
            messages,
            known,
            tell,
        };
        let (servers, leaving) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { inbox, reactor, servers, leaving, is_stopping: false })
    }

    /// Until the node ends, and all servers with it.
    pub(super) fn run(mut self) {
        loop {
            for message in self.inbox.take() {
                self.heed(message, Instant::now());
            }
            self.do_what_is_due(Instant::now());
            if self.is_stopping && self.servers.is_empty() {
                return;
            }
            let next = [self.reactor.timers.next(), self.reactor.places.next()];
            let next = next.into_iter().flatten().min();
            let timeout = next.map(|at| at.saturating_duration_since(Instant::now()));
            let Ok(ready) = self.reactor.poller.wait(timeout) else {
                std::thread::sleep(POLL_AGAIN);
                continue;
            };
            let now = Instant::now();
            for index in 0..ready {
                match Source::of(self.reactor.poller.ready(index).token) {
                    Source::Bell => {}
                    Source::Process(key) => self.tell(key, now, Server::process_ready),
                    Source::Look(key) => self.tell(key, now, Server::look_ready),
                    Source::Place(number) => {
                        self.reactor.places.step(number, now, &self.reactor.poller);
                    }
                }
            }
        }
    }

    fn do_what_is_due(&mut self, now: Instant) {
        while let Some(key) = self.reactor.timers.pop_due(now) {
            self.tell(key, now, Server::due);
        }
        let found = self.reactor.places.run(now, &self.reactor.poller);
        for (key, sought) in found {
            self.tell_of_look(key, sought, now);
        }
    }

    fn tell_of_look(&mut self, key: Key, sought: LookResult, now: Instant) {
        self.tell(key, now, |server, now, reactor| server.sought(sought, now, reactor));
    }

    /// Something has come for a server, if it is still there.
    fn tell(
        &mut self,
        key: Key,
        now: Instant,
        of: impl FnOnce(&mut Server, Instant, &mut Reactor),
    ) {
        let Some(server) = self.servers.get_mut(&key) else { return };
        of(server, now, &mut self.reactor);
        if server.is_gone() {
            self.forget(key, now);
        }
    }

    /// A server is gone for good: one of the same name may begin.
    fn forget(&mut self, key: Key, now: Instant) {
        self.reactor.timers.set(key, None);
        let Some(gone) = self.servers.remove(&key) else { return };
        if !self.leaving.remove(&key) {
            return;
        }
        let name = &gone.group().name;
        let waits = |server: &Server| server.is_held() && server.group().name == *name;
        let held = self.servers.iter().find(|(_, server)| waits(server)).map(|(key, _)| *key);
        if let Some(held) = held
            && !self.is_leaving(name)
        {
            self.tell(held, now, Server::let_go);
        }
    }

    /// Whether a server of a closed group of that name is still there.
    fn is_leaving(&self, name: &str) -> bool {
        let mut leaving = self.leaving.iter().filter_map(|key| self.servers.get(key));
        leaving.any(|server| server.group().name == name)
    }

    fn heed(&mut self, message: SupervisorMessage, now: Instant) {
        match message {
            SupervisorMessage::Open(..) if self.is_stopping => {}
            SupervisorMessage::Open(id, key, of) => {
                let server = Server::new((id, key), *of);
                if self.is_leaving(&server.group().name) {
                    server.tell_of_hold(&self.reactor);
                    self.servers.insert(key, server);
                } else {
                    self.servers.insert(key, server);
                    self.tell(key, now, Server::let_go);
                }
            }
            SupervisorMessage::Change(key, of) => {
                self.tell(key, now, |server, now, reactor| server.change(*of, now, reactor));
            }
            SupervisorMessage::Order(key, order) => {
                self.tell(key, now, |server, now, reactor| server.order(order, now, reactor));
            }
            SupervisorMessage::Close(key) => {
                if self.servers.contains_key(&key) {
                    self.leaving.insert(key);
                    self.tell(key, now, |it, now, reactor| it.order(Order::Stop, now, reactor));
                }
            }
            SupervisorMessage::Stop => {
                self.is_stopping = true;
                for key in self.servers.keys().copied().collect::<Vec<_>>() {
                    self.tell(key, now, |it, now, reactor| it.order(Order::Stop, now, reactor));
                }
            }
            SupervisorMessage::Launched(key, started) => {
                // One that nobody waits for ends where it is dropped.
                self.tell(key, now, |it, now, reactor| it.launched(*started, now, reactor));
            }
            SupervisorMessage::Resolved(number, address) => {
                self.reactor.places.resolved(number, address, now, &self.reactor.poller);
            }
        }
    }
}
