//! The ports at which connections come in: of a group's clients, of servers that call groups, and
//! of the processes of this node's services.
//!
//! What it is not: connections. Invariants: a port that could not be opened is known with the
//! reason, and tried again until its group closes; a token is another's only when the ports before
//! it are closed, so that a late event finds nothing, or nobody who waits.

use super::keys::Keys;
use crate::NodeError;
use quorba_config::{Group, Node, Tls};
use quorba_engine::SHARED_PORT;
use quorba_engine::replica::{GroupId, GroupMap};
use quorba_net::{Interest, Poller};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::time::{Duration, Instant as Clock};

/// How long a port that could not be opened is left alone.
const OPEN_AGAIN: Duration = Duration::from_secs(3);

/// For whom a port is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    /// For clients.
    Clients,
    /// Only for the server of this group, on this host.
    ServerOf(GroupId),
    /// Only for the processes of services, on this host. Nobody else is told it.
    Services,
}

impl Who {
    /// The group whose server it is, if it is one.
    pub(crate) const fn caller(self) -> Option<GroupId> {
        match self {
            Self::ServerOf(caller) => Some(caller),
            Self::Clients | Self::Services => None,
        }
    }
}

/// A port that a group needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    /// Whom who connects wants.
    pub(super) group: GroupId,
    /// For whom.
    pub(super) who: Who,
    /// Port 0: any.
    address: SocketAddr,
    /// TLS is spoken on it.
    tls: Option<Box<Tls>>,
}

impl Wanted {
    /// The group that needs it.
    fn owner(&self) -> GroupId {
        self.who.caller().unwrap_or(self.group)
    }
}

/// The ports of `group` on `node`, whose sockets bind to `bind`; of its server, if it has one here,
/// for all that it `calls`; and of the processes of services, if it is one.
pub(super) fn wanted(
    (id, group): (GroupId, &Group),
    (node, bind): (&Node, IpAddr),
    calls: &[GroupId],
) -> Vec<Wanted> {
    let gateway =
        |port, tls| Wanted { group: id, who: Who::Clients, address: (bind, port).into(), tls };
    let is_own = group.listen.is_some() && group.takes_plain();
    let plain = is_own.then(|| gateway(group.gateway(node).port, None));
    let files = group.tls.clone().map(Box::new);
    let tls = group.tls_port(node).map(|port| gateway(port, files));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let local = |group, who| Wanted { group, who, address, tls: None };
    let calls = calls.iter().map(|target| local(*target, Who::ServerOf(id)));
    let of_service = group.service.map(|_| local(id, Who::Services));
    plain.into_iter().chain(tls).chain(calls).chain(of_service).collect()
}

/// The port that groups share, before the node's offset.
pub(super) fn shared(port: u16, (node, bind): (&Node, IpAddr)) -> Wanted {
    let address = SocketAddr::new(bind, port + node.gateway_port_offset);
    Wanted { group: SHARED_PORT, who: Who::Clients, address, tls: None }
}

/// One that is open.
pub(super) struct Listener {
    pub(super) socket: TcpListener,
    pub(super) wanted: Wanted,
}

impl Listener {
    pub(super) const fn is_tls(&self) -> bool {
        self.wanted.tls.is_some()
    }
}

/// One that could not be opened.
struct Shut {
    wanted: Wanted,
    why: NodeError,
}

/// See the module's text.
pub(super) struct Listeners {
    tokens: Range<u64>,
    next_token: u64,
    open: BTreeMap<u64, Listener>,
    /// The tokens of those that each group needs.
    of_group: BTreeSet<(GroupId, u64)>,
    keys: GroupMap<Keys>,
    shut: Vec<Shut>,
    again: Option<Clock>,
    /// Connections are taken in now.
    listening: bool,
    /// No client is let in any more.
    is_over: bool,
}

impl Listeners {
    pub(super) fn new(tokens: Range<u64>) -> Self {
        Self {
            next_token: tokens.start,
            tokens,
            open: BTreeMap::new(),
            of_group: BTreeSet::new(),
            keys: GroupMap::new(),
            shut: Vec::new(),
            again: None,
            listening: true,
            is_over: false,
        }
    }

    pub(super) fn get(&self, token: u64) -> Option<&Listener> {
        self.open.get(&token)
    }

    pub(super) fn keys(&self, group: GroupId) -> Option<&Keys> {
        self.keys.get(group)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Listener> {
        self.open.values()
    }

    /// The group called `name` needs these ports and no others; those that it has already stay.
    pub(super) fn set(&mut self, id: GroupId, name: &str, wanted: Vec<Wanted>, poller: &Poller) {
        self.shut.retain(|shut| shut.wanted.owner() != id);
        let mut missing = wanted;
        for token in self.tokens_of(id) {
            let open = &self.open[&token].wanted;
            match missing.iter().position(|wanted| wanted == open) {
                Some(at) => _ = missing.swap_remove(at),
                None => self.close(token),
            }
        }
        for wanted in missing {
            self.open_or_shut(name, wanted, poller);
        }
    }

    /// The group needs none any more.
    pub(super) fn close_group(&mut self, id: GroupId) {
        self.shut.retain(|shut| shut.wanted.owner() != id);
        for token in self.tokens_of(id) {
            self.close(token);
        }
        self.keys.remove(id);
    }

    fn tokens_of(&self, id: GroupId) -> Vec<u64> {
        self.of_group.range((id, 0)..=(id, u64::MAX)).map(|(_, token)| *token).collect()
    }

    fn close(&mut self, token: u64) {
        if let Some(listener) = self.open.remove(&token) {
            self.of_group.remove(&(listener.wanted.owner(), token));
        }
    }

    fn open_or_shut(&mut self, name: &str, wanted: Wanted, poller: &Poller) {
        if self.is_over && wanted.who == Who::Clients {
            return;
        }
        if let Err(why) = self.open(name, &wanted, poller) {
            self.shut.push(Shut { wanted, why });
            self.again.get_or_insert_with(|| Clock::now() + OPEN_AGAIN);
        }
    }

    fn open(&mut self, name: &str, wanted: &Wanted, poller: &Poller) -> Result<(), NodeError> {
        if let Some(files) = &wanted.tls {
            self.keys.insert(wanted.group, Keys::of_group(name, files)?);
        }
        let what = match wanted.who {
            Who::ServerOf(_) => format!("calls of group {name}"),
            Who::Services => format!("the processes of group {name}"),
            Who::Clients => format!("group {name}"),
        };
        let address = wanted.address;
        let token = self.free_token();
        let open = || -> io::Result<TcpListener> {
            let token = token.ok_or(io::ErrorKind::ResourceBusy)?;
            let socket = TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            let interest = Interest { read: self.listening, write: false };
            poller.add(&socket, token, interest)?;
            Ok(socket)
        };
        let socket = open().map_err(|source| NodeError::Listen { what, address, source })?;
        let token = token.expect("just used");
        self.of_group.insert((wanted.owner(), token));
        self.open.insert(token, Listener { socket, wanted: wanted.clone() });
        Ok(())
    }

    /// The next one that nobody has.
    fn free_token(&mut self) -> Option<u64> {
        for _ in 0..=self.open.len() {
            let token = self.next_token;
            self.next_token += 1;
            if self.next_token == self.tokens.end {
                self.next_token = self.tokens.start;
            }
            if !self.open.contains_key(&token) {
                return Some(token);
            }
        }
        None
    }

    /// When those that could not be opened are tried again.
    pub(super) const fn again_at(&self) -> Option<Clock> {
        self.again
    }

    /// Tries again to open those that could not be; the groups for whose servers one was opened.
    pub(super) fn open_again(
        &mut self,
        name_of: impl Fn(GroupId) -> String,
        poller: &Poller,
    ) -> Vec<GroupId> {
        self.again = None;
        let mut callers = Vec::new();
        for Shut { wanted, .. } in std::mem::take(&mut self.shut) {
            let (owner, who) = (wanted.owner(), wanted.who);
            let before = self.shut.len();
            self.open_or_shut(&name_of(owner), wanted, poller);
            if self.shut.len() == before {
                tracing::info!(group = name_of(owner), "its port could be opened now");
                // Its server is told its ports when it is started.
                callers.extend((who != Who::Clients).then_some(owner));
            }
        }
        callers
    }

    /// What could not be opened first, and why, if anything; it is not tried again.
    pub(super) fn take_failure(&mut self) -> Option<NodeError> {
        (!self.shut.is_empty()).then(|| self.shut.swap_remove(0).why)
    }

    /// What cannot be opened, for an operator.
    pub(super) fn failures(&self) -> Vec<String> {
        let seconds = OPEN_AGAIN.as_secs();
        let told = |shut: &Shut| format!("{}; it is tried again every {seconds} s", shut.why);
        self.shut.iter().map(told).collect()
    }

    /// By called group, the ports for the server of `caller`.
    pub(super) fn ports_for(&self, caller: GroupId) -> io::Result<Vec<(GroupId, u16)>> {
        let tokens = self.tokens_of(caller);
        let all = tokens.iter().map(|token| &self.open[token]);
        all.filter(|listener| listener.wanted.who.caller().is_some())
            .map(|listener| Ok((listener.wanted.group, listener.socket.local_addr()?.port())))
            .collect()
    }

    /// Where the processes of services call this one, if it is one and the port is open.
    pub(super) fn port_of_service(&self, group: GroupId) -> Option<SocketAddr> {
        let mut all = self.tokens_of(group).into_iter().map(|token| &self.open[&token]);
        let own = all.find(|listener| listener.wanted.who == Who::Services)?;
        own.socket.local_addr().ok()
    }

    /// Stops or resumes taking in connections.
    pub(super) fn set_listening(&mut self, listening: bool, poller: &Poller) {
        if self.listening == listening {
            return;
        }
        self.listening = listening;
        let interest = Interest { read: listening, write: false };
        for (token, listener) in &self.open {
            let _ = poller.modify(&listener.socket, *token, interest);
        }
    }

    /// Closes those of clients for good; servers may have to call before they can answer.
    pub(super) fn close_for_clients(&mut self) {
        self.is_over = true;
        self.shut.retain(|shut| shut.wanted.who != Who::Clients);
        self.open.retain(|_, listener| listener.wanted.who != Who::Clients);
        let open = &self.open;
        self.of_group.retain(|(_, token)| open.contains_key(token));
    }

    /// Reads the certificates for TLS again.
    pub(super) fn reload_keys(&mut self) {
        self.keys.values_mut().for_each(Keys::reload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Range<u64> = 16..24;

    fn gateway(group: u64, address: SocketAddr) -> Wanted {
        Wanted { group: GroupId(group), who: Who::Clients, address, tls: None }
    }

    fn call(caller: u64, group: u64) -> Wanted {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let who = Who::ServerOf(GroupId(caller));
        Wanted { group: GroupId(group), who, address, tls: None }
    }

    #[test]
    fn a_port_that_is_taken_is_told_of_and_opened_when_it_is_free() {
        let poller = Poller::new().expect("a descriptor");
        // No server of another test is given this port when it is free again.
        let port = quorba_net::free_ports(1).expect("a port")[0];
        let other = TcpListener::bind(("127.0.0.1", port)).expect("it is free");
        let address = other.local_addr().expect("an address");
        let mut all = Listeners::new(TOKENS);
        all.set(GroupId(3), "bank", vec![gateway(3, address)], &poller);
        let told = all.failures();
        assert!(told[0].starts_with(&format!("cannot listen for group bank on {address}")));
        assert!(all.again_at().is_some() && all.iter().count() == 0);
        assert!(all.open_again(|_| "bank".into(), &poller).is_empty());
        assert_eq!((all.failures().len(), all.again_at().is_some()), (1, true), "once more");
        drop(other);
        all.open_again(|_| "bank".into(), &poller);
        assert_eq!((all.failures(), all.iter().count()), (Vec::new(), 1));
        assert!(all.again_at().is_none());
    }

    #[test]
    fn a_group_that_closes_frees_its_ports_and_is_not_tried_again() {
        let poller = Poller::new().expect("a descriptor");
        let other = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = other.local_addr().expect("an address");
        let mut all = Listeners::new(TOKENS);
        all.set(GroupId(3), "shop", vec![gateway(3, address), call(3, 1)], &poller);
        all.set(GroupId(4), "bank", vec![call(4, 1)], &poller);
        assert_eq!(all.ports_for(GroupId(3)).expect("known").len(), 1);
        all.close_group(GroupId(3));
        assert!(all.failures().is_empty() && all.ports_for(GroupId(3)).expect("none").is_empty());
        assert_eq!(all.ports_for(GroupId(4)).expect("known").len(), 1, "another's stays");
    }

    #[test]
    fn what_a_group_has_already_stays_open_when_it_is_changed() {
        let poller = Poller::new().expect("a descriptor");
        let mut all = Listeners::new(TOKENS);
        all.set(GroupId(3), "shop", vec![call(3, 1)], &poller);
        let before = all.ports_for(GroupId(3)).expect("known");
        all.set(GroupId(3), "shop", vec![call(3, 2), call(3, 1)], &poller);
        let after = all.ports_for(GroupId(3)).expect("known");
        assert!(after.len() == 2 && after.contains(&before[0]));
        all.set(GroupId(3), "shop", Vec::new(), &poller);
        assert_eq!(all.iter().count(), 0);
    }

    #[test]
    fn tokens_are_given_out_again_when_all_were_used_and_never_twice_at_once() {
        let poller = Poller::new().expect("a descriptor");
        let mut all = Listeners::new(TOKENS);
        all.set(GroupId(1), "stays", vec![call(1, 2)], &poller);
        for _ in 0..20 {
            all.set(GroupId(3), "comes", vec![call(3, 2), call(3, 4)], &poller);
            assert_eq!((all.iter().count(), all.failures()), (3, Vec::new()));
            all.close_group(GroupId(3));
        }
        let many = (0..9).map(|target| call(5, 10 + target)).collect();
        all.set(GroupId(5), "many", many, &poller);
        assert_eq!((all.iter().count(), all.failures().len()), (8, 2), "so many have room");
    }
}
