//! Gateway listeners and client connections, as sockets; what is said on them is the engine's.
//!
//! Invariant: a token of a connection is used once, so that a late event of a closed one finds
//! nothing.

mod handshakes;
mod keys;

use self::handshakes::{Begun, Handshakes};
use self::keys::Keys;
use crate::NodeError;
use crate::descriptors::Passing;
use crate::names::{group_id, group_named, outside_named};
use crate::supervise::bind_address;
use quorba_base::NodeId;
use quorba_config::{Domain, Node};
use quorba_engine::ConnectionId;
use quorba_engine::replica::GroupId;
use quorba_net::{Interest, Poller, Stream};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant as Clock};

/// Connections taken in at once, before other sockets have their turn.
const ACCEPT_BATCH: usize = 16;
/// How long a client may take to close a connection that was ended, or to take something of what it
/// is still owed.
const LINGER: Duration = Duration::from_secs(1);
/// Silence after which the kernel asks a client's host whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

struct Listener {
    socket: TcpListener,
    group: GroupId,
    /// Only for the server of this group, on this host.
    caller: Option<GroupId>,
    token: u64,
    /// TLS is spoken on it.
    tls: bool,
}

/// Who has connected.
pub(crate) struct Accepted {
    pub(crate) connection: ConnectionId,
    pub(crate) group: GroupId,
    /// The group whose server it is; `None`: a client.
    pub(crate) caller: Option<GroupId>,
    pub(crate) peer: IpAddr,
}

/// See the module's text.
pub(crate) struct Clients {
    listeners: Vec<Listener>,
    streams: BTreeMap<u64, Stream>,
    /// Of these, those of local servers.
    servers: HashSet<u64>,
    /// Connections that were ended and are not closed by their client yet, with what was unsent
    /// when that was looked at last, oldest look first.
    ending: VecDeque<(Clock, u64, usize)>,
    /// Of more than so many the oldest is dropped at once.
    ending_max: usize,
    /// How much the engine knows of clients that do not take what they are sent.
    unsent: HashMap<u64, usize>,
    handshakes: Handshakes,
    keys: Vec<Keys>,
    listening: bool,
}

impl Clients {
    /// Opens the gateway port of every group; tokens count up from `first_token`.
    pub(crate) fn listen(
        domain: &Domain,
        node: &Node,
        passing: Passing,
        first_token: u64,
        poller: &Poller,
    ) -> Result<Self, NodeError> {
        let bind = bind_address(node).map_err(|source| NodeError::Resolve {
            node: node.name.clone(),
            host: node.host.to_string(),
            source,
        })?;
        let mut listeners = Vec::new();
        let keys = Keys::of_domain(domain)?;
        let ports = domain.groups.iter().enumerate().flat_map(|(index, group)| {
            let plain =
                group.takes_plain().then(|| (index, group, group.gateway(node).port, false));
            let tls = group.tls_port(node).map(|port| (index, group, port, true));
            [plain, tls].into_iter().flatten()
        });
        for (index, group, port, tls) in ports {
            let address = SocketAddr::new(bind, port);
            let token = first_token + listeners.len() as u64;
            let open = || -> io::Result<TcpListener> {
                let socket = TcpListener::bind(address)?;
                socket.set_nonblocking(true)?;
                poller.add(&socket, token, Interest::READ)?;
                Ok(socket)
            };
            let socket = open().map_err(|source| NodeError::Listen {
                what: format!("group {}", group.name),
                address,
                source,
            })?;
            let group = group_id(index);
            listeners.push(Listener { socket, group, caller: None, token, tls });
        }
        Ok(Self {
            listeners,
            streams: BTreeMap::new(),
            servers: HashSet::new(),
            ending: VecDeque::new(),
            ending_max: passing.lingering,
            handshakes: Handshakes::new(domain.limits.header, passing.handshakes),
            keys,
            unsent: HashMap::new(),
            listening: true,
        })
    }

    /// Opens a port for every group, and server outside, that the server of a member on this node
    /// calls.
    pub(crate) fn listen_to_servers(
        &mut self,
        domain: &Domain,
        me: NodeId,
        first_token: u64,
        poller: &Poller,
    ) -> Result<(), NodeError> {
        let callers = domain.groups.iter().enumerate();
        for (index, caller) in callers.filter(|(_, group)| group.members.contains(me)) {
            let groups = caller.calls.iter().filter_map(|name| group_named(domain, name));
            let outside = caller.outside.iter().filter_map(|name| outside_named(domain, name));
            for target in groups.chain(outside) {
                let token = first_token + self.listeners.len() as u64;
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let open = || -> io::Result<TcpListener> {
                    let socket = TcpListener::bind(address)?;
                    socket.set_nonblocking(true)?;
                    poller.add(&socket, token, Interest::READ)?;
                    Ok(socket)
                };
                let socket = open().map_err(|source| NodeError::Listen {
                    what: format!("calls of group {}", caller.name),
                    address,
                    source,
                })?;
                let (group, caller) = (target, Some(group_id(index)));
                self.listeners.push(Listener { socket, group, caller, token, tls: false });
            }
        }
        Ok(())
    }

    /// By called group, the ports for the server of `caller`.
    pub(crate) fn ports_for(&self, caller: GroupId) -> io::Result<Vec<(GroupId, u16)>> {
        let listeners = self.listeners.iter().filter(|listener| listener.caller == Some(caller));
        listeners
            .map(|listener| Ok((listener.group, listener.socket.local_addr()?.port())))
            .collect()
    }

    /// Connections that wait at the listener of `token`. An error means that descriptors ran out.
    pub(crate) fn accept(
        &mut self,
        token: u64,
        next_token: &mut u64,
        poller: &Poller,
    ) -> (Vec<Accepted>, io::Result<()>) {
        let mut accepted = Vec::new();
        let Some(listener) = self.listeners.iter().find(|listener| listener.token == token) else {
            return (accepted, Ok(()));
        };
        for _ in 0..ACCEPT_BATCH {
            match listener.socket.accept() {
                Ok((socket, peer)) => {
                    let token = *next_token;
                    *next_token += 1;
                    if listener.tls {
                        let of = |keys: &&Keys| keys.group == listener.group;
                        let Some(keys) = self.keys.iter().find(of) else { continue };
                        let now = Clock::now();
                        let begun = self.handshakes.begin(now, token, listener.group, peer.ip());
                        let Begun::Yes(ended) = begun else { continue };
                        if let Some(ended) = ended {
                            self.streams.remove(&ended);
                        }
                        let stream = Stream::accepted_tls(socket, token, &keys.acceptor, poller);
                        if let Ok(stream) = stream {
                            // One that is broken already shows when it is read.
                            let _ = stream.keep_alive(KEEP_ALIVE);
                            self.streams.insert(token, stream);
                        } else {
                            self.handshakes.end(token);
                        }
                    } else if let Ok(stream) = Stream::accepted(socket, token, poller) {
                        // One that is broken already shows when it is read.
                        let _ = stream.keep_alive(KEEP_ALIVE);
                        self.streams.insert(token, stream);
                        if listener.caller.is_some() {
                            self.servers.insert(token);
                        }
                        let (connection, peer) = (ConnectionId(token), peer.ip());
                        let (group, caller) = (listener.group, listener.caller);
                        accepted.push(Accepted { connection, group, caller, peer });
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

    /// Stops or resumes taking in connections.
    pub(crate) fn set_listening(&mut self, listening: bool, poller: &Poller) {
        if self.listening == listening {
            return;
        }
        self.listening = listening;
        let interest = Interest { read: listening, write: false };
        for listener in &self.listeners {
            let _ = poller.modify(&listener.socket, listener.token, interest);
        }
    }

    /// Closes the listeners for good, so that clients which are sent away do not come back. Servers
    /// may have to call before they can answer.
    pub(crate) fn close_listeners(&mut self) {
        self.listeners.retain(|listener| listener.caller.is_some());
        self.handshakes.tokens().into_iter().for_each(|token| self.drop_stream(token));
    }

    /// Reads the certificates for TLS again.
    pub(crate) fn reload_keys(&mut self) {
        self.keys.iter_mut().for_each(Keys::reload);
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
        self.streams.remove(&token);
        if let Some(not_told) = self.handshakes.failed(Clock::now()) {
            tracing::warn!(
                %peer,
                why,
                not_told,
                "a TLS handshake came to nothing (told once a minute)"
            );
        }
    }

    /// Ends all connections, and those that wait to be taken in: clients find another gateway.
    /// Gives those that the engine knows.
    pub(crate) fn turn_away(&mut self) -> Vec<ConnectionId> {
        for listener in &self.listeners {
            while listener.socket.accept().is_ok() {}
        }
        self.handshakes.tokens().into_iter().for_each(|token| self.drop_stream(token));
        self.servers.clear();
        self.ending.clear();
        let streams = std::mem::take(&mut self.streams);
        let known = streams.into_iter().filter(|(_, stream)| !stream.is_closing());
        known.map(|(token, _)| ConnectionId(token)).collect()
    }

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut Stream> {
        self.streams.get_mut(&token)
    }

    pub(crate) fn set_reading(&mut self, id: ConnectionId, reading: bool, poller: &Poller) {
        if let Some(stream) = self.streams.get_mut(&id.0) {
            let _ = stream.set_reading(reading, poller);
        }
    }

    pub(crate) fn close_when_sent(&mut self, id: ConnectionId, linger: bool, poller: &Poller) {
        if let Some(stream) = self.streams.get_mut(&id.0) {
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
            let unsent = self.streams.get(&token).map_or(0, Stream::unsent_bytes);
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
        let stream = self.streams.get(&token)?;
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
        self.streams.remove(&token);
        self.servers.remove(&token);
        self.handshakes.end(token);
        self.unsent.remove(&token);
    }

    /// Whether no client is connected; servers stay until they end.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.len() == self.servers.len()
    }
}
