//! What the data plane does while descriptors are scarce.
//!
//! Invariants: a connection that the engine wants is made as soon as there is a descriptor, or the
//! engine is told why not, which is never for want of one: neither a server nor a client is at
//! fault then. What the node needs itself comes before new clients.

use super::DataPlane;
use crate::descriptors::{Reserve, Shares, TransientConnections, share_out};
use crate::filesystem::is_out_of_descriptors;
use crate::log_limiter::LogLimiter;
use crate::process;
use quorba_base::NodeId;
use quorba_config::Domain;
use quorba_engine::ExternalId;
use quorba_engine::replica::{ChannelId, GroupId};
use std::io;
use std::time::{Duration, Instant as Clock};

/// How long what found no descriptor waits.
pub(super) const AGAIN: Duration = Duration::from_millis(100);

/// What is kept for it.
pub(super) struct DescriptorBudget {
    pub(super) connect_again: Option<Clock>,
    pub(super) reserve: Reserve,
    /// How many connections of each kind may pass by.
    pub(super) passing: TransientConnections,
    shortage: LogLimiter,
    /// What the domain file wants and this process cannot have.
    pub(super) shortcoming: Option<String>,
}

impl DescriptorBudget {
    /// With the domain as far as this process has descriptors for it.
    pub(super) fn of(mut domain: Domain, me: NodeId) -> (Domain, Self) {
        let most = process::descriptors();
        let (Shares { clients, passing }, shortcoming) = share_out(&domain, me, most);
        if let Some(said) = &shortcoming {
            tracing::warn!("{said}");
        }
        domain.limits.connections = clients;
        let (reserve, shortage) = (Reserve::new(), LogLimiter::default());
        (domain, Self { connect_again: None, reserve, passing, shortage, shortcoming })
    }
}

impl DataPlane {
    pub(super) fn connect_server(&mut self, group: GroupId, channel: ChannelId) {
        let connected = self.with_reserve(|plane, token| {
            plane.servers.connect(group, channel, token, &plane.poller)
        });
        match connected {
            Ok(()) => {}
            Err(error) if is_out_of_descriptors(&error) => {
                self.servers.connect_later(group, channel);
            }
            Err(_) => {
                let now = self.now();
                self.engine.handle_server_closed(now, group, channel);
            }
        }
    }

    pub(super) fn connect_external(&mut self, id: ExternalId, server: GroupId) {
        let connected = self
            .with_reserve(|plane, token| plane.external.connect(id, server, token, &plane.poller));
        match connected {
            Ok(()) => {}
            Err(error) if is_out_of_descriptors(&error) => self.external.connect_later(id, server),
            Err(_) => {
                let now = self.now();
                self.engine.handle_external_closed(now, id);
            }
        }
    }

    /// Tries it, and once more with what is kept in reserve.
    fn with_reserve(
        &mut self,
        mut open: impl FnMut(&mut Self, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let token = self.next_token;
        self.next_token += 1;
        match open(self, token) {
            Err(error) if is_out_of_descriptors(&error) => {
                self.tell_of_shortage(&error);
                self.descriptors.reserve.lend();
                let again = open(self, token);
                if again.as_ref().is_err_and(is_out_of_descriptors) {
                    self.descriptors.connect_again = Some(Clock::now() + AGAIN);
                }
                again
            }
            opened => opened,
        }
    }

    /// Once a minute.
    pub(super) fn tell_of_shortage(&mut self, error: &io::Error) {
        if let Some(left_out) = self.descriptors.shortage.tells(Clock::now()) {
            tracing::error!(
                %error, suppressed = left_out,
                "no file descriptor is left: new clients wait, and what the node needs itself \
                 comes first; raise the limit of the process (LimitNOFILE) or of the system \
                 (fs.file-max)"
            );
        }
    }

    /// Makes the connections that found no descriptor.
    pub(super) fn look_for_descriptors(&mut self) {
        let now = Clock::now();
        self.descriptors.reserve.refill(now);
        if self.descriptors.connect_again.is_some_and(|at| at <= now) {
            self.descriptors.connect_again = None;
            for (group, channel) in self.servers.take_waiting() {
                self.connect_server(group, channel);
            }
            for (id, server) in self.external.take_waiting() {
                self.connect_external(id, server);
            }
        }
    }
}
