//! Connections to the local servers, as sockets.
//!
//! Invariant: a channel of the engine is one socket; when the socket is gone the engine is told
//! once, unless the engine closed it.

use crate::endpoint::ServerEndpoint;
use quorba_engine::replica::{ChannelId, GroupId};
use quorba_net::{Poller, Stream};
use std::collections::BTreeMap;
use std::io;

/// A socket and whose it is.
pub(crate) struct Channel {
    pub(crate) stream: Stream,
    pub(crate) token: u64,
    pub(crate) group: GroupId,
    pub(crate) id: ChannelId,
    pub(crate) connected: bool,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Servers {
    channels: BTreeMap<u64, Channel>,
    tokens: BTreeMap<(GroupId, ChannelId), u64>,
    endpoints: BTreeMap<GroupId, ServerEndpoint>,
    /// Connections that wait for a descriptor.
    waiting: Vec<(GroupId, ChannelId)>,
}

impl Servers {
    pub(crate) fn set_endpoint(&mut self, group: GroupId, endpoint: ServerEndpoint) {
        self.endpoints.insert(group, endpoint);
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// That cannot even begin.
    pub(crate) fn connect(
        &mut self,
        group: GroupId,
        id: ChannelId,
        token: u64,
        poller: &Poller,
    ) -> io::Result<()> {
        let endpoint = self.endpoints.get(&group).ok_or(io::ErrorKind::NotFound)?;
        let stream = endpoint.open(token, poller)?;
        self.channels.insert(token, Channel { stream, token, group, id, connected: false });
        self.tokens.insert((group, id), token);
        Ok(())
    }

    /// This one is to be connected when there is a descriptor.
    pub(crate) fn connect_later(&mut self, group: GroupId, id: ChannelId) {
        self.waiting.push((group, id));
    }

    /// Those that wait for a descriptor; they do not any more.
    pub(crate) fn take_waiting(&mut self) -> Vec<(GroupId, ChannelId)> {
        std::mem::take(&mut self.waiting)
    }

    pub(crate) fn get(&mut self, token: u64) -> Option<&mut Channel> {
        self.channels.get_mut(&token)
    }

    pub(crate) fn by_id(&mut self, group: GroupId, id: ChannelId) -> Option<&mut Channel> {
        let token = self.tokens.get(&(group, id))?;
        self.channels.get_mut(token)
    }

    /// The sockets to a group's server; few, and mostly one.
    pub(crate) fn tokens_of(&self, group: GroupId) -> Vec<u64> {
        let from = self.tokens.range((group, ChannelId(0))..);
        from.take_while(|((of, _), _)| *of == group).map(|(_, token)| *token).collect()
    }

    /// Whether the poller tells of what a group's server says. One that is being connected is left
    /// alone: it waits for something else.
    pub(crate) fn set_reading(&mut self, group: GroupId, reading: bool, poller: &Poller) {
        for token in self.tokens_of(group) {
            if let Some(channel) = self.channels.get_mut(&token).filter(|one| one.connected) {
                // One that is broken shows when it is read.
                let _ = channel.stream.set_reading(reading, poller);
            }
        }
    }

    /// Forgets a socket; says whose it was.
    pub(crate) fn remove(&mut self, token: u64) -> Option<(GroupId, ChannelId)> {
        let channel = self.channels.remove(&token)?;
        self.tokens.remove(&(channel.group, channel.id));
        Some((channel.group, channel.id))
    }

    pub(crate) fn close(&mut self, group: GroupId, id: ChannelId) {
        self.waiting.retain(|waits| *waits != (group, id));
        if let Some(token) = self.tokens.remove(&(group, id)) {
            self.channels.remove(&token);
        }
    }

    /// Forgets all sockets to a server that is gone.
    pub(crate) fn close_group(&mut self, group: GroupId) {
        self.waiting.retain(|(of, _)| *of != group);
        for token in self.tokens_of(group) {
            self.remove(token);
        }
    }

    /// There is no server of the group here any more.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.close_group(group);
        self.endpoints.remove(&group);
    }
}
