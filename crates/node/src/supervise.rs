//! Keeps the servers of this node's members running, of all groups with one thread: starts them,
//! waits until they accept connections, notices their ends, starts them again with growing pauses;
//! and looks for those that somebody else runs.
//!
//! What it is not: it does not talk GIOP, and what an order or an end means, `supervision` knows.
//! Invariants: this side only sends messages and reads what is known, so nobody waits for a server
//! here; news of a server that was given up, or of a group that was closed, are told apart from
//! those of the one that is meant now.

mod driver;
mod ending;
mod known;
mod looker;
mod object;
mod places;
mod reactor;
mod server;
mod timers;

use self::driver::Driver;
use self::known::Table;
use crate::NodeError;
use crate::descriptors::Reserve;
use crate::endpoint::ServerEndpoint;
use crate::launch::Launcher;
use crate::output::Output;
use crate::running::{NotStarted, Running};
use crate::supervision::Order;
use crate::times::Times;
use crate::wake::{MailboxSender, mailbox};
use quorba_admin::status::{SchedulingStatus, ServerStatus};
use quorba_base::NodeId;
use quorba_config::{Backend, Endpoint, Group, Node};
use quorba_engine::replica::{DownReason, GroupId, GroupMap};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// What a supervisor tells the data plane.
#[derive(Debug)]
pub(crate) enum ServerNews {
    /// The server accepts connections here.
    Up(ServerEndpoint),
    /// The server is gone.
    Down(DownReason),
}

/// A server that is looked after: each time that a group is opened, another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Key(u64);

/// Of which server news are, and how many orders to give it up had been heeded then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life {
    key: Key,
    stops: u32,
}

/// Where servers are looked after.
pub(crate) struct SupervisorContext {
    pub(crate) me: NodeId,
    pub(crate) node: Node,
    pub(crate) reserve: Reserve,
}

/// A group whose server is to be looked after.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) group: Arc<Group>,
    /// How it is started, if that is up to this node.
    pub(crate) launcher: Option<Arc<Launcher>>,
    pub(crate) time: Option<Arc<Times>>,
    output: Option<Output>,
}

impl Opened {
    pub(crate) const fn new(
        group: Arc<Group>,
        launcher: Option<Arc<Launcher>>,
        time: Option<Arc<Times>>,
    ) -> Self {
        Self { group, launcher, time, output: None }
    }

    /// Where somebody else runs the server of `node`'s member.
    fn place(&self, node: NodeId) -> Option<&Endpoint> {
        place(&self.group, node)
    }
}

fn place(group: &Group, node: NodeId) -> Option<&Endpoint> {
    let Backend::Connect(servers) = &group.backend else { return None };
    servers.iter().find(|(of, _)| *of == node).map(|(_, member)| &member.endpoint)
}

/// Whether the server of `node`'s member is, behind a change of its group, still the same one.
pub(crate) fn is_same_server(before: &Group, group: &Group, node: NodeId) -> bool {
    let is_ours = |group: &Group| matches!(group.backend, Backend::Start(_));
    let (was, is) = (place(before, node), place(group, node));
    before.name == group.name && is_ours(before) == is_ours(group) && was == is
}

/// What the supervisor's thread is told.
enum SupervisorMessage {
    Open(GroupId, Key, Box<Opened>),
    Change(Key, Box<Opened>),
    Order(Key, Order),
    /// It is ended, and nobody asks for it any more.
    Close(Key),
    /// The node ends.
    Stop,
    /// A server was started, or could not be.
    Launched(Key, Box<Result<(Running, ServerEndpoint), NotStarted>>),
    /// The name of a place was looked up.
    Resolved(u64, io::Result<SocketAddr>),
}

/// What the data plane has of a server.
struct Handle {
    life: Life,
    output: Option<Output>,
}

/// See the module's text.
pub(crate) struct Supervisors {
    messages: MailboxSender<SupervisorMessage>,
    thread: Option<JoinHandle<()>>,
    site: Arc<SupervisorContext>,
    known: Table,
    handles: GroupMap<Handle>,
    last: u64,
}

impl Supervisors {
    /// Of no group yet; news go to `tell`.
    pub(crate) fn start(
        site: SupervisorContext,
        tell: impl Fn(GroupId, Life, ServerNews) -> bool + Send + 'static,
    ) -> Result<Self, NodeError> {
        let (messages, inbox) = mailbox().map_err(NodeError::Resources)?;
        let (site, known) = (Arc::new(site), Table::default());
        let about = (Arc::clone(&site), known.clone());
        let (boxes, tell) = ((messages.clone(), inbox), Box::new(tell));
        let (begun, has_begun) = channel();
        // A poller stays in its thread.
        let run = move || match Driver::new(about, boxes, tell) {
            Ok(driver) => {
                let _ = begun.send(Ok(()));
                driver.run();
            }
            Err(error) => _ = begun.send(Err(error)),
        };
        let thread = std::thread::Builder::new().name("servers".into());
        let thread = thread.spawn(run).map_err(NodeError::Resources)?;
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        let begun = has_begun.recv().map_err(|_| ended()).flatten();
        begun.map_err(NodeError::Resources)?;
        let (thread, handles) = (Some(thread), GroupMap::new());
        Ok(Self { messages, thread, site, known, handles, last: 0 })
    }

    /// Looks after the server of a group from now on. One of a former group of this name is ended
    /// first.
    pub(crate) fn open(&mut self, id: GroupId, mut of: Opened) {
        self.close(id);
        self.last += 1;
        let key = Key(self.last);
        let output = of.launcher.is_some();
        let output = output.then(|| Output::new(&self.site.node.state_dir, &of.group.name));
        of.output.clone_from(&output);
        self.known.open(id, key, output.clone());
        self.handles.insert(id, Handle { life: Life { key, stops: 0 }, output });
        self.messages.send(SupervisorMessage::Open(id, key, Box::new(of)));
    }

    /// The group is declared otherwise; its server [`is_same_server`].
    pub(crate) fn change(&mut self, id: GroupId, mut of: Opened) {
        let Some(Handle { life, output }) = self.handles.get(id) else {
            return self.open(id, of);
        };
        of.output.clone_from(output);
        self.messages.send(SupervisorMessage::Change(life.key, Box::new(of)));
    }

    /// Ends the server of a group, as at a stop, without waiting for that; its news are stale.
    pub(crate) fn close(&mut self, id: GroupId) {
        if let Some(handle) = self.handles.remove(id) {
            self.known.close(id);
            self.messages.send(SupervisorMessage::Close(handle.life.key));
        }
    }

    /// Whether news of that server are of interest.
    pub(crate) fn is_current(&self, id: GroupId, life: Life) -> bool {
        self.handles.get(id).is_some_and(|handle| handle.life == life)
    }

    fn order(&self, id: GroupId, order: Order) {
        if let Some(handle) = self.handles.get(id) {
            self.messages.send(SupervisorMessage::Order(handle.life.key, order));
        }
    }

    /// Ends the server and starts it anew.
    pub(crate) fn restart(&self, id: GroupId) {
        self.order(id, Order::Restart);
    }

    /// A server is wanted from now on.
    pub(crate) fn want(&self, id: GroupId) {
        self.order(id, Order::Want);
    }

    /// No server is wanted any more; news of the one that runs are stale from now on.
    pub(crate) fn give_up(&mut self, id: GroupId) {
        if let Some(handle) = self.handles.get_mut(id) {
            handle.life.stops += 1;
        }
        self.order(id, Order::GiveUp);
    }

    /// The member is in its group now, or is not any more.
    pub(crate) fn member_is_in(&self, id: GroupId, is_in: bool) {
        self.order(id, Order::Inside(is_in));
    }

    /// A server in quarantine is started at once, and one that is away looked for.
    pub(crate) fn release(&self, id: GroupId) {
        self.order(id, Order::Release);
    }

    /// The server says which class its threads have.
    pub(crate) fn is_scheduled(&self, id: GroupId, scheduling: SchedulingStatus) {
        if let Some(handle) = self.handles.get(id) {
            let scheduling = Some(Box::new(scheduling));
            self.known.update(id, handle.life.key, |known| known.scheduling = scheduling);
        }
    }

    /// What is to be told of these groups' servers.
    pub(crate) fn status_of(&self, groups: &[GroupId]) -> GroupMap<ServerStatus> {
        self.known.status_of(groups)
    }

    /// Where servers listen.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.known.ports()
    }

    /// Ends all servers for good, and waits for that.
    pub(crate) fn stop(&mut self) {
        self.messages.send(SupervisorMessage::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
