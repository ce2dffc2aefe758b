//! Gateway listeners and client connections, as sockets; what is said on them is the engine's.
//!
//! Invariant: a token of a connection is used once, so that a late event of a closed one finds
//! nothing.

use crate::NodeError;
use crate::supervise::bind_address;
use quorba_config::{Domain, Node};
use quorba_engine::ConnectionId;
use quorba_engine::replica::GroupId;
use quorba_net::{Interest, Poller, Stream};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::{Duration, Instant as Clock};

/// Connections taken in at once, before other sockets have their turn.
const ACCEPT_BATCH: usize = 16;
/// How long a client may take to close a connection that was ended.
const LINGER: Duration = Duration::from_secs(1);

struct Listener {
    socket: TcpListener,
    group: GroupId,
    token: u64,
}

/// See the module's text.
pub(crate) struct Clients {
    listeners: Vec<Listener>,
    streams: HashMap<u64, Stream>,
    /// Connections that were ended and are not closed by their client yet, oldest first.
    ending: VecDeque<(Clock, u64)>,
    listening: bool,
}

impl Clients {
    /// Opens the gateway port of every group; tokens count up from `first_token`.
    pub(crate) fn listen(
        domain: &Domain,
        node: &Node,
        first_token: u64,
        poller: &Poller,
    ) -> Result<Self, NodeError> {
        let bind = bind_address(node).map_err(|source| NodeError::Resolve {
            node: node.name.clone(),
            host: node.host.to_string(),
            source,
        })?;
        let mut listeners = Vec::new();
        for (index, group) in domain.groups.iter().enumerate() {
            let address = SocketAddr::new(bind, group.gateway(node).port);
            let token = first_token + index as u64;
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
            listeners.push(Listener { socket, group: GroupId(index as u16), token });
        }
        Ok(Self { listeners, streams: HashMap::new(), ending: VecDeque::new(), listening: true })
    }

    /// Connections that wait at the listener of `token`. An error means that descriptors ran out.
    pub(crate) fn accept(
        &mut self,
        token: u64,
        next_token: &mut u64,
        poller: &Poller,
    ) -> (Vec<(ConnectionId, GroupId, IpAddr)>, io::Result<()>) {
        let mut accepted = Vec::new();
        let Some(listener) = self.listeners.iter().find(|listener| listener.token == token) else {
            return (accepted, Ok(()));
        };
        for _ in 0..ACCEPT_BATCH {
            match listener.socket.accept() {
                Ok((socket, peer)) => {
                    let token = *next_token;
                    *next_token += 1;
                    if let Ok(stream) = Stream::accepted(socket, token, poller) {
                        self.streams.insert(token, stream);
                        accepted.push((ConnectionId(token), listener.group, peer.ip()));
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

    /// Closes the listeners for good, so that clients which are sent away do not come back.
    pub(crate) fn close_listeners(&mut self) {
        self.listeners.clear();
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
                self.ending.push_back((Clock::now() + LINGER, id.0));
            } else {
                self.streams.remove(&id.0);
            }
        }
    }

    /// When a connection that was ended, and that its client keeps, is dropped.
    pub(crate) fn linger_until(&self) -> Option<Clock> {
        self.ending.front().map(|(until, _)| *until)
    }

    /// Drops connections that were ended long enough ago.
    pub(crate) fn drop_lingering(&mut self) {
        let now = Clock::now();
        while let Some((_, token)) = self.ending.pop_front_if(|(until, _)| *until <= now) {
            self.streams.remove(&token);
        }
    }

    pub(crate) fn remove(&mut self, token: u64) {
        self.streams.remove(&token);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }
}
