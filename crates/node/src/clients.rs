//! Gateway listeners and client connections, as sockets; what is said on them is the engine's.
//!
//! Invariant: a token of a connection is used once, so that a late event of a closed one finds
//! nothing.

mod handshakes;
mod keys;
mod listeners;

use self::handshakes::{Begun, Handshakes};
pub(crate) use self::listeners::Who;
use self::listeners::{Listener, Listeners};
use crate::NodeError;
use crate::descriptors::TransientConnections;
use crate::resolve::bind_address;
use quorba_config::{Group, Node};
use quorba_engine::replica::GroupId;
use quorba_engine::{ConnectionId, SHARED_PORT};
use quorba_net::{Poller, Stream};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant as Clock};

/// Connections taken in at once, before other sockets have their turn.
const ACCEPT_BATCH: usize = 16;
/// How long a client may take to close a connection that was ended, or to take something of what it
/// is still owed.
const LINGER: Duration = Duration::from_secs(1);
/// Silence after which the kernel asks a client's host whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Who has connected.
pub(crate) struct Accepted {
    pub(crate) connection: ConnectionId,
    pub(crate) group: GroupId,
    pub(crate) who: Who,
    pub(crate) peer: IpAddr,
}

/// A connection.
struct Client {
    stream: Stream,
    group: GroupId,
    /// The group whose server, on this host, it is.
    caller: Option<GroupId>,
}

/// See the module's text.
pub(crate) struct Clients {
    node: Node,
    bind: IpAddr,
    listeners: Listeners,
    streams: BTreeMap<u64, Client>,
    /// Of these, those of local servers.
    servers: usize,
    /// Connections that were ended and are not closed by their client yet, with what was unsent
    /// when that was looked at last, oldest look first.
    ending: VecDeque<(Clock, u64, usize)>,
    /// Of more than so many the oldest is dropped at once.
    ending_max: usize,
    /// How much the engine knows of clients that do not take what they are sent.
    unsent: HashMap<u64, usize>,
    handshakes: Handshakes,
}

impl Clients {
    /// Of no group yet. Listeners' tokens are `tokens`; `header`: how long a handshake may take.
    pub(crate) fn new(
        node: &Node,
        (header, passing): (Duration, TransientConnections),
        tokens: Range<u64>,
    ) -> Result<Self, NodeError> {
        let bind = bind_address(node).map_err(|source| NodeError::Resolve {
            node: node.name.clone(),
            host: node.host.to_string(),
            source,
        })?;
        Ok(Self {
            node: node.clone(),
            bind,
            listeners: Listeners::new(tokens),
            streams: BTreeMap::new(),
            servers: 0,
            ending: VecDeque::new(),
            ending_max: passing.lingering,
            handshakes: Handshakes::new(header, passing.handshakes),
            unsent: HashMap::new(),
        })
    }

    /// Opens the gateway's ports of a group, and one for every group, and server outside, that its
    /// server here `calls`; or what has changed of them. One that cannot be opened is tried again,
    /// see [`Self::open_again`].
    pub(crate) fn open_group(
        &mut self,
        (id, group): (GroupId, &Group),
        calls: &[GroupId],
        poller: &Poller,
    ) {
        let wanted = listeners::wanted((id, group), (&self.node, self.bind), calls);
        self.listeners.set(id, &group.name, wanted, poller);
    }

    /// Opens the port through which all groups are reached that have none of their own.
    pub(crate) fn open_shared(&mut self, port: u16, poller: &Poller) {
        let wanted = listeners::shared(port, (&self.node, self.bind));
        self.listeners.set(SHARED_PORT, "[gateway]", vec![wanted], poller);
    }

    /// Closes the ports of a group, and all connections to it and of its server. Gives those that
    /// the engine knows, and has not ended itself.
    pub(crate) fn close_group(&mut self, id: GroupId) -> Vec<ConnectionId> {
        self.listeners.close_group(id);
        let is_its = |client: &Client| client.group == id || client.caller == Some(id);
        let its = self.streams.iter().filter(|(_, client)| is_its(client));
        let its: Vec<u64> = its.map(|(token, _)| *token).collect();
        let mut known = Vec::new();
        for token in its {
            let is_ending = self.get(token).is_some_and(|stream| stream.is_closing());
            if !self.is_handshaking(token) && !is_ending {
                known.push(ConnectionId(token));
            }
            self.drop_stream(token);
        }
        known
    }

    /// What could not be opened first, and why, if anything.
    pub(crate) fn take_failure(&mut self) -> Option<NodeError> {
        self.listeners.take_failure()
    }

    /// Ports that cannot be opened, and why.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.listeners.failures()
    }

    /// When [`Self::open_again`] is wanted.
    pub(crate) const fn open_again_at(&self) -> Option<Clock> {
        self.listeners.again_at()
    }

    /// Tries again to open ports that could not be; the groups for whose servers one was opened.
    pub(crate) fn open_again(
        &mut self,
        name_of: impl Fn(GroupId) -> String,
        poller: &Poller,
    ) -> Vec<GroupId> {
        self.listeners.open_again(name_of, poller)
    }

    /// By called group, the ports for the server of `caller`.
    pub(crate) fn ports_for(&self, caller: GroupId) -> io::Result<Vec<(GroupId, u16)>> {
        self.listeners.ports_for(caller)
    }

    /// Where the processes of services call this one, if it is one and the port is open.
    pub(crate) fn port_of_service(&self, group: GroupId) -> Option<SocketAddr> {
        self.listeners.port_of_service(group)
    }

    /// Connections that wait at the listener of `token`. An error means that descriptors ran out.
    pub(crate) fn accept(
        &mut self,
        token: u64,
        next_token: &mut u64,
        poller: &Poller,
    ) -> (Vec<Accepted>, io::Result<()>) {
        let mut accepted = Vec::new();
        for _ in 0..ACCEPT_BATCH {
            let Some(listener) = self.listeners.get(token) else { break };
            match listener.socket.accept() {
                Ok((socket, peer)) => {
                    let token = *next_token;
                    *next_token += 1;
                    let (group, who) = (listener.wanted.group, listener.wanted.who);
                    if listener.is_tls() {
                        self.begin_handshake(socket, (group, peer.ip()), token, poller);
                    } else if let Ok(stream) = Stream::accepted(socket, token, poller) {
                        self.take_in(token, Client { stream, group, caller: who.caller() });
                        let (connection, peer) = (ConnectionId(token), peer.ip());
                        accepted.push(Accepted { connection, group, who, peer });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The client was gone before it was taken in.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return (accepted, Err(error)),
            }
        }
        (accepted, Ok(()))
    }

    fn take_in(&mut self, token: u64, client: Client) {
        // One that is broken already shows when it is read.
        let _ = client.stream.keep_alive(KEEP_ALIVE);
        self.servers += usize::from(client.caller.is_some());
        self.streams.insert(token, client);
    }

    fn begin_handshake(
        &mut self,
        socket: TcpStream,
        (group, peer): (GroupId, IpAddr),
        token: u64,
        poller: &Poller,
    ) {
        let Some(keys) = self.listeners.keys(group) else { return };
        let acceptor = keys.acceptor.clone();
        let begun = self.handshakes.begin(Clock::now(), token, group, peer);
        let Begun::Yes(ended) = begun else { return };
        if let Some(ended) = ended {
            self.drop_stream(ended);
        }
        match Stream::accepted_tls(socket, token, &acceptor, poller) {
            Ok(stream) => self.take_in(token, Client { stream, group, caller: None }),
            Err(_) => _ = self.handshakes.end(token),
        }
    }

    /// Stops or resumes taking in connections.
    pub(crate) fn set_listening(&mut self, listening: bool, poller: &Poller) {
        self.listeners.set_listening(listening, poller);
    }

    /// Closes the listeners for good, so that clients which are sent away do not come back. Servers
    /// may have to call before they can answer.
    pub(crate) fn close_listeners(&mut self) {
        self.listeners.close_for_clients();
        self.handshakes.tokens().into_iter().for_each(|token| self.drop_stream(token));
    }

    /// Reads the certificates for TLS again.
    pub(crate) fn reload_keys(&mut self) {
        self.listeners.reload_keys();
    }

    // -- clients that are not known yet -----------------------------------------------------

    pub(crate) fn is_handshaking(&self, token: u64) -> bool {
        self.handshakes.has(token)
    }

    /// Its client is known now: to which group it wants, and from where.
    pub(crate) fn end_handshake(&mut self, token: u64) -> Option<(GroupId, IpAddr)> {
        self.handshakes.end(token)
    }

    /// It came to nothing.
    pub(crate) fn drop_handshake(&mut self, token: u64, why: &str) {
        let Some((_, peer)) = self.handshakes.end(token) else { return };
        self.drop_stream(token);
        if let Some(not_told) = self.handshakes.failed(Clock::now()) {
            tracing::warn!(
                %peer,
                why,
                suppressed = not_told,
                "a TLS handshake failed (logged once a minute)"
            );
        }
    }

    /// Ends all connections, and those that wait to be taken in: clients find another gateway.
    /// Gives those that the engine knows.
    pub(crate) fn turn_away(&mut self) -> Vec<ConnectionId> {
        for Listener { socket, .. } in self.listeners.iter() {
            while socket.accept().is_ok() {}
        }
        self.handshakes.tokens().into_iter().for_each(|token| self.drop_stream(token));
        self.servers = 0;
        self.ending.clear();
        let streams = std::mem::take(&mut self.streams);
        let known = streams.into_iter().filter(|(_, client)| !client.stream.is_closing());
        known.map(|(token, _)| ConnectionId(token)).collect()
    }

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut Stream> {
        self.streams.get_mut(&token).map(|client| &mut client.stream)
    }

    pub(crate) fn set_reading(&mut self, id: ConnectionId, reading: bool, poller: &Poller) {
        if let Some(stream) = self.get(id.0) {
            let _ = stream.set_reading(reading, poller);
        }
    }

    pub(crate) fn close_when_sent(&mut self, id: ConnectionId, linger: bool, poller: &Poller) {
        if let Some(Client { stream, .. }) = self.streams.get_mut(&id.0) {
            let wait = linger || stream.has_unsent();
            if wait && stream.close_when_sent(poller) {
                let until = Clock::now() + LINGER;
                self.ending.push_back((until, id.0, stream.unsent_bytes()));
                if self.ending.len() > self.ending_max
                    && let Some((_, token, _)) = self.ending.pop_front()
                {
                    self.drop_stream(token);
                }
            } else {
                self.drop_stream(id.0);
            }
        }
    }

    /// When a connection that was ended, and that its client keeps, is looked at again, or one
    /// whose handshake takes too long is dropped.
    pub(crate) fn linger_until(&self) -> Option<Clock> {
        let ending = self.ending.front().map(|(until, ..)| *until);
        [ending, self.handshakes.until()].into_iter().flatten().min()
    }

    /// Drops connections that were ended long enough ago and whose clients take nothing more, or
    /// that have shaken hands for too long.
    pub(crate) fn drop_lingering(&mut self) {
        let now = Clock::now();
        while let Some((_, token, before)) = self.ending.pop_front_if(|(until, ..)| *until <= now) {
            let unsent = self.streams.get(&token).map_or(0, |client| client.stream.unsent_bytes());
            if unsent < before {
                self.ending.push_back((now + LINGER, token, unsent));
            } else {
                self.drop_stream(token);
            }
        }
        while let Some(token) = self.handshakes.overdue(now) {
            self.drop_handshake(token, "it took longer than header_ms");
        }
    }

    /// What the engine is to know of what a client has not taken, if that is news. Most clients
    /// take what they are sent, and nothing is looked up for them.
    pub(crate) fn unsent_news(&mut self, token: u64) -> Option<usize> {
        let stream = &self.streams.get(&token)?.stream;
        let unsent = stream.unsent_bytes();
        if unsent == 0 && self.unsent.is_empty() || stream.is_closing() {
            return None;
        }
        if unsent == 0 {
            return self.unsent.remove(&token).map(|_| 0);
        }
        let known = self.unsent.insert(token, unsent);
        (known != Some(unsent)).then_some(unsent)
    }

    /// Whether the engine knows of a client that it does not take what it is sent.
    pub(crate) fn is_slow(&self, token: u64) -> bool {
        !self.unsent.is_empty() && self.unsent.contains_key(&token)
    }

    pub(crate) fn remove(&mut self, token: u64) {
        self.drop_stream(token);
    }

    fn drop_stream(&mut self, token: u64) {
        if let Some(client) = self.streams.remove(&token) {
            self.servers -= usize::from(client.caller.is_some());
        }
        self.handshakes.end(token);
        self.unsent.remove(&token);
    }

    /// Whether no client is connected; servers stay until they end.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.len() == self.servers
    }
}
