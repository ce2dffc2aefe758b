//! The supervisor's thread: waits for letters, processes, looks and times, and tells each server of
//! what is its.
//!
//! What it is not: what a server does about it. Invariants: nothing here blocks but the wait
//! itself; a server of a closed group is looked after until it is gone, and meanwhile none of the
//! same name is begun, so that their files do not collide.

use super::hands::{BELL, Hands, Source};
use super::known::Table;
use super::places::{Places, Sought};
use super::server::Server;
use super::timers::Timers;
use super::workers::Workers;
use super::{Key, Letter, Life, ServerNews, Site};
use crate::supervision::Order;
use crate::wake::{Mailbox, Mailer};
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
    inbox: Mailbox<Letter>,
    hands: Hands,
    servers: BTreeMap<Key, Server>,
    /// Of these, those whose groups are closed.
    leaving: BTreeSet<Key>,
    is_stopping: bool,
}

impl Driver {
    pub(super) fn new(
        (site, known): (Arc<Site>, Table),
        (letters, inbox): (Mailer<Letter>, Mailbox<Letter>),
        tell: Box<dyn Fn(GroupId, Life, ServerNews) -> bool + Send>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(inbox.bell(), BELL, Interest::READ)?;
        let resolvers = Workers::new("names", RESOLVERS_MAX);
        let hands = Hands {
            site,
            poller,
            timers: Timers::new(),
            places: Places::new(resolvers, letters.clone(), Instant::now()),
            starters: Workers::new("starter", STARTERS_MAX),
            letters,
            known,
            tell,
        };
        let (servers, leaving) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { inbox, hands, servers, leaving, is_stopping: false })
    }

    /// Until the node ends, and all servers with it.
    pub(super) fn run(mut self) {
        loop {
            for letter in self.inbox.take() {
                self.heed(letter, Instant::now());
            }
            self.do_what_is_due(Instant::now());
            if self.is_stopping && self.servers.is_empty() {
                return;
            }
            let next = [self.hands.timers.next(), self.hands.places.next()];
            let next = next.into_iter().flatten().min();
            let timeout = next.map(|at| at.saturating_duration_since(Instant::now()));
            let Ok(ready) = self.hands.poller.wait(timeout) else {
                std::thread::sleep(POLL_AGAIN);
                continue;
            };
            let now = Instant::now();
            for index in 0..ready {
                match Source::of(self.hands.poller.ready(index).token) {
                    Source::Bell => {}
                    Source::Process(key) => self.tell(key, now, Server::process_ready),
                    Source::Look(key) => self.tell(key, now, Server::look_ready),
                    Source::Place(number) => {
                        self.hands.places.step(number, now, &self.hands.poller);
                    }
                }
            }
        }
    }

    fn do_what_is_due(&mut self, now: Instant) {
        while let Some(key) = self.hands.timers.pop_due(now) {
            self.tell(key, now, Server::due);
        }
        let found = self.hands.places.run(now, &self.hands.poller);
        for (key, sought) in found {
            self.tell_of_look(key, sought, now);
        }
    }

    fn tell_of_look(&mut self, key: Key, sought: Sought, now: Instant) {
        self.tell(key, now, |server, now, hands| server.sought(sought, now, hands));
    }

    /// Something has come for a server, if it is still there.
    fn tell(&mut self, key: Key, now: Instant, of: impl FnOnce(&mut Server, Instant, &mut Hands)) {
        let Some(server) = self.servers.get_mut(&key) else { return };
        of(server, now, &mut self.hands);
        if server.is_gone() {
            self.forget(key, now);
        }
    }

    /// A server is gone for good: one of the same name may begin.
    fn forget(&mut self, key: Key, now: Instant) {
        self.hands.timers.set(key, None);
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

    fn heed(&mut self, letter: Letter, now: Instant) {
        match letter {
            Letter::Open(..) if self.is_stopping => {}
            Letter::Open(id, key, of) => {
                let server = Server::new((id, key), *of);
                if self.is_leaving(&server.group().name) {
                    server.tell_of_hold(&self.hands);
                    self.servers.insert(key, server);
                } else {
                    self.servers.insert(key, server);
                    self.tell(key, now, Server::let_go);
                }
            }
            Letter::Change(key, of) => {
                self.tell(key, now, |server, now, hands| server.change(*of, now, hands));
            }
            Letter::Order(key, order) => {
                self.tell(key, now, |server, now, hands| server.order(order, now, hands));
            }
            Letter::Close(key) => {
                if self.servers.contains_key(&key) {
                    self.leaving.insert(key);
                    self.tell(key, now, |it, now, hands| it.order(Order::Stop, now, hands));
                }
            }
            Letter::Stop => {
                self.is_stopping = true;
                for key in self.servers.keys().copied().collect::<Vec<_>>() {
                    self.tell(key, now, |it, now, hands| it.order(Order::Stop, now, hands));
                }
            }
            Letter::Launched(key, started) => {
                // One that nobody waits for ends where it is dropped.
                self.tell(key, now, |it, now, hands| it.launched(*started, now, hands));
            }
            Letter::Resolved(number, address) => {
                self.hands.places.resolved(number, address, now, &self.hands.poller);
            }
        }
    }
}
