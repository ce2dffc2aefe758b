//! Connections to servers outside of the domain, as sockets.
//!
//! Invariants: a connection of the engine is one socket; when the socket is gone the engine is
//! told once, unless the engine closed it. Names are looked up once, when the node starts.

use crate::NodeError;
use crate::groups::Groups;
use crate::offer::Entrance;
use quorba_config::{DOMAIN_OBJECT, Outside};
use quorba_engine::ExternalId;
use quorba_engine::replica::{GroupId, GroupMap};
use quorba_net::{Poller, Stream};
use quorba_orb::SECRET_BYTES;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// A socket and which connection it is.
pub(crate) struct Trip {
    pub(crate) stream: Stream,
    pub(crate) id: ExternalId,
    pub(crate) connected: bool,
    /// What goes out before anything else.
    pub(crate) secret: Option<[u8; SECRET_BYTES]>,
}

/// See the module's text.
pub(crate) struct ExternalCalls {
    addresses: GroupMap<Vec<SocketAddr>>,
    /// Which one is this node's object for services, and its secret.
    own: Option<(GroupId, [u8; SECRET_BYTES])>,
    trips: HashMap<u64, Trip>,
    tokens: HashMap<ExternalId, u64>,
    /// Connections that wait for a descriptor, and to which server.
    waiting: Vec<(ExternalId, GroupId)>,
}

impl ExternalCalls {
    /// Looks up where the servers are. `own` is that of this node's object for services.
    pub(crate) fn look_up(groups: &Groups, own: &Entrance) -> Result<Self, NodeError> {
        let looked_up = |(id, server): (GroupId, &Outside)| match server.name.as_str() {
            DOMAIN_OBJECT => Ok((id, vec![own.address])),
            _ => Ok((id, addresses_of(server)?)),
        };
        let servers = groups.outside().iter().map(|(id, server)| (id, &**server));
        let addresses = servers.map(looked_up).collect::<Result<_, NodeError>>()?;
        let mut servers = groups.outside().iter();
        let own = servers
            .find(|(_, server)| server.name.as_str() == DOMAIN_OBJECT)
            .map(|(id, _)| (id, own.secret));
        let (trips, tokens) = (HashMap::new(), HashMap::new());
        Ok(Self { addresses, own, trips, tokens, waiting: Vec::new() })
    }

    /// Begins to connect. A server with several addresses is tried at each in turn.
    ///
    /// # Errors
    /// That cannot even begin.
    pub(crate) fn connect(
        &mut self,
        id: ExternalId,
        server: GroupId,
        token: u64,
        poller: &Poller,
    ) -> io::Result<()> {
        let addresses = self.addresses.get(server).ok_or(io::ErrorKind::NotFound)?;
        let turn = usize::try_from(id.0).unwrap_or(0) % addresses.len();
        let stream = Stream::connect(addresses[turn], token, poller)?;
        let secret = self.own.filter(|(own, _)| *own == server).map(|(_, secret)| secret);
        self.trips.insert(token, Trip { stream, id, connected: false, secret });
        self.tokens.insert(id, token);
        Ok(())
    }

    /// This one is to be connected when there is a descriptor.
    pub(crate) fn connect_later(&mut self, id: ExternalId, server: GroupId) {
        self.waiting.push((id, server));
    }

    /// Those that wait for a descriptor; they do not any more.
    pub(crate) fn take_waiting(&mut self) -> Vec<(ExternalId, GroupId)> {
        std::mem::take(&mut self.waiting)
    }

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut Trip> {
        self.trips.get_mut(&token)
    }

    pub(crate) fn by_id(&mut self, id: ExternalId) -> Option<&mut Trip> {
        let token = self.tokens.get(&id)?;
        self.trips.get_mut(token)
    }

    /// Forgets a socket; says which connection it was.
    pub(crate) fn remove(&mut self, token: u64) -> Option<ExternalId> {
        let trip = self.trips.remove(&token)?;
        self.tokens.remove(&trip.id);
        Some(trip.id)
    }

    pub(crate) fn close(&mut self, id: ExternalId) {
        self.waiting.retain(|(waits, _)| *waits != id);
        if let Some(token) = self.tokens.remove(&id) {
            self.trips.remove(&token);
        }
    }
}

fn addresses_of(server: &Outside) -> Result<Vec<SocketAddr>, NodeError> {
    let mut addresses = Vec::new();
    for endpoint in &server.endpoints {
        let failed = |source| NodeError::ResolveOutside {
            server: server.name.clone(),
            host: endpoint.host.clone(),
            source,
        };
        let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs().map_err(failed)?;
        addresses.extend(found);
    }
    if addresses.is_empty() {
        let host = server.endpoints.first().map_or_else(String::new, |one| one.host.clone());
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(NodeError::ResolveOutside { server: server.name.clone(), host, source });
    }
    Ok(addresses)
}
