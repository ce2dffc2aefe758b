//! Connections to servers outside of the domain, as sockets.
//!
//! Invariants: a connection of the engine is one socket; when the socket is gone the engine is
//! told once, unless the engine closed it. Names are looked up in the background, when a server is
//! defined and again from time to time while it is called; nobody here waits for that.

use crate::data::DataMessage;
use crate::groups::Groups;
use crate::offer::OfferedEndpoint;
use crate::wake::MailboxSender;
use crate::workers::Workers;
use quorba_config::{DOMAIN_OBJECT, Outside};
use quorba_engine::ExternalId;
use quorba_engine::replica::{GroupId, GroupMap};
use quorba_net::{Poller, Stream};
use quorba_orb::SECRET_BYTES;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names that are looked up at one time.
const RESOLVERS_MAX: usize = 2;
/// When names are looked up again: while no address is known, and while some are.
const LOOK_UP_AGAIN: Duration = Duration::from_secs(1);
const LOOK_UP_ANEW: Duration = Duration::from_secs(60);

/// A socket and which connection it is.
pub(crate) struct SocketEntry {
    pub(crate) stream: Stream,
    pub(crate) id: ExternalId,
    pub(crate) connected: bool,
    /// What goes out before anything else.
    pub(crate) secret: Option<[u8; SECRET_BYTES]>,
}

/// Where a server outside is.
struct Place {
    endpoints: Arc<[(String, u16)]>,
    /// What is known of them; those of before while names are looked up again.
    addresses: Vec<SocketAddr>,
    /// Some of them are names.
    has_names: bool,
    /// When these were looked up last.
    looked: Option<Instant>,
    is_looking: bool,
}

/// The addresses of a server outside, or the host that has none and why.
pub(crate) type LookUp = Result<Vec<SocketAddr>, (String, io::Error)>;

/// See the module's text.
pub(crate) struct ExternalCalls {
    places: GroupMap<Place>,
    /// Which one is this node's object for services, and its secret.
    own: Option<(GroupId, [u8; SECRET_BYTES])>,
    trips: HashMap<u64, SocketEntry>,
    tokens: HashMap<ExternalId, u64>,
    /// Connections that wait for a descriptor, and to which server.
    waiting: Vec<(ExternalId, GroupId)>,
    /// For names, as the system's resolver may take seconds.
    resolvers: Workers,
    mailer: MailboxSender<DataMessage>,
}

impl ExternalCalls {
    /// `own` is where this node's object for services is. What comes of looking names up is sent
    /// by `mailer`.
    pub(crate) fn new(
        groups: &Groups,
        own: &OfferedEndpoint,
        mailer: MailboxSender<DataMessage>,
    ) -> Self {
        let mut servers = groups.outside().iter();
        let is_own = |(_, server): &(GroupId, &Arc<Outside>)| server.name == DOMAIN_OBJECT;
        let id = servers.find(is_own).map(|(id, _)| id);
        let mut external = Self {
            places: GroupMap::new(),
            own: id.map(|id| (id, own.secret)),
            trips: HashMap::new(),
            tokens: HashMap::new(),
            waiting: Vec::new(),
            resolvers: Workers::new("outside", RESOLVERS_MAX),
            mailer,
        };
        for (id, server) in groups.outside().iter().filter(|one| !is_own(one)) {
            external.define(id, server);
        }
        if let Some(id) = id {
            external.places.insert(id, Place::at(own.address));
        }
        external
    }

    /// There is such a server, or it is another one; connections that there are stay.
    pub(crate) fn define(&mut self, id: GroupId, server: &Outside) {
        let endpoints = server.endpoints.iter().map(|at| (at.host.clone(), at.port)).collect();
        self.places.insert(id, Place::of(endpoints));
        self.look_up(id);
    }

    /// There is no such server any more.
    pub(crate) fn forget(&mut self, id: GroupId) {
        self.places.remove(id);
        self.waiting.retain(|(_, server)| *server != id);
    }

    /// Has names looked up that were not, or long ago.
    fn look_up(&mut self, id: GroupId) {
        let Some(place) = self.places.get_mut(id).filter(|place| place.wants_look_up()) else {
            return;
        };
        (place.is_looking, place.looked) = (true, Some(Instant::now()));
        let (endpoints, mailer) = (Arc::clone(&place.endpoints), self.mailer.clone());
        let job = move || {
            mailer.send(DataMessage::LookedUp(id, addresses_of(&endpoints)));
        };
        if self.resolvers.run(job).is_err() {
            // The next connection has them looked up.
            place.is_looking = false;
        }
    }

    /// What came of looking the names of a server up.
    pub(crate) fn looked_up(&mut self, id: GroupId, found: LookUp) {
        let Some(place) = self.places.get_mut(id) else { return };
        place.is_looking = false;
        match found {
            Ok(addresses) => place.addresses = addresses,
            Err((host, error)) => tracing::warn!(
                host, %error,
                "the name of a server outside cannot be looked up: calls to it wait until it can, \
                 or end with NO_RESOURCES; repair the name service, or `quorba outside change` its \
                 reference"
            ),
        }
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
        self.look_up(server);
        let addresses = &self.places.get(server).ok_or(io::ErrorKind::NotFound)?.addresses;
        let count = NonZeroUsize::new(addresses.len()).ok_or(io::ErrorKind::NotFound)?;
        let turn = usize::try_from(id.0).unwrap_or(0) % count;
        let stream = Stream::connect(addresses[turn], token, poller)?;
        let secret = self.own.filter(|(own, _)| *own == server).map(|(_, secret)| secret);
        self.trips.insert(token, SocketEntry { stream, id, connected: false, secret });
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

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut SocketEntry> {
        self.trips.get_mut(&token)
    }

    pub(crate) fn by_id(&mut self, id: ExternalId) -> Option<&mut SocketEntry> {
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

impl Place {
    fn at(address: SocketAddr) -> Self {
        Self { addresses: vec![address], ..Self::of([].into()) }
    }

    fn of(endpoints: Arc<[(String, u16)]>) -> Self {
        let literal = |(host, port): &(String, u16)| {
            let address: IpAddr = host.parse().ok()?;
            Some(SocketAddr::new(address, *port))
        };
        let addresses: Vec<_> = endpoints.iter().filter_map(literal).collect();
        let has_names = addresses.len() < endpoints.len();
        Self { endpoints, addresses, has_names, looked: None, is_looking: false }
    }

    fn wants_look_up(&self) -> bool {
        let after = if self.addresses.is_empty() { LOOK_UP_AGAIN } else { LOOK_UP_ANEW };
        let is_due = self.looked.is_none_or(|at| at.elapsed() >= after);
        self.has_names && !self.is_looking && is_due
    }
}

/// All addresses, in the order of the endpoints. A host without one is left out where others have
/// some.
fn addresses_of(endpoints: &[(String, u16)]) -> LookUp {
    let mut addresses = Vec::new();
    let mut failed = None;
    for (host, port) in endpoints {
        match (host.as_str(), *port).to_socket_addrs() {
            Ok(found) => addresses.extend(found),
            Err(error) => failed = Some((host.clone(), error)),
        }
    }
    match failed {
        Some(failed) if addresses.is_empty() => Err(failed),
        _ => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_no_look_up_and_names_are_looked_up_again() {
        let mut place = Place::of([("10.0.0.9".to_owned(), 1), ("::1".to_owned(), 2)].into());
        assert_eq!(place.addresses.len(), 2);
        assert!(!place.wants_look_up());
        place = Place::of([("bank.example".to_owned(), 1)].into());
        assert!(place.addresses.is_empty() && place.wants_look_up());
        place.is_looking = true;
        assert!(!place.wants_look_up(), "it is under way");
        place = Place { is_looking: false, looked: Some(Instant::now()), ..place };
        assert!(!place.wants_look_up(), "a moment ago it had none");
    }

    #[test]
    fn a_host_without_address_hinders_no_other() {
        let at = |host: &str| (host.to_owned(), 7);
        let found = addresses_of(&[at("no such host"), at("127.0.0.1")]).expect("one is there");
        assert_eq!(found, ["127.0.0.1:7".parse().expect("an address")]);
        let (host, _) = addresses_of(&[at("no such host")]).expect_err("there is none");
        assert_eq!(host, "no such host");
    }
}
