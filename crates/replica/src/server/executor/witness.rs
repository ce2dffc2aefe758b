//! A second connection to a server that somebody else starts and ends: it shows that the process is
//! still the same.
//!
//! Whoever runs such a server may start it anew behind the same address, and the next process has
//! nothing of what the last one had. When its process ends, all its connections do; when a server
//! only ends the one on which it was sent something, the other stays. So each of the two is a
//! witness for the other. A connection counts only if the server has answered on it: a listening
//! socket that outlives its process keeps connections that nobody has accepted.
//!
//! What it is not: used for calls. Invariant: without a witness a member whose connection ends is
//! out.

use super::ends::When;
use super::{Channel, Executor};
use crate::output::ServerCommand;
use crate::words::ids::ChannelId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorba_base::{Duration, Instant};
use quorba_giop::Body;

/// How often the connection is used, so that no idle limit ends it, and the pause before it is made
/// again.
const USED_EVERY: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_secs(1);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// See the module's text.
#[derive(Default)]
pub(super) struct Witness {
    channel: Option<Box<Channel>>,
    /// The server has answered on it.
    is_proven: bool,
    next: Option<When>,
}

impl Witness {
    pub(super) fn is_proven(&self) -> bool {
        self.is_proven
    }

    pub(super) fn at(&self) -> Option<Instant> {
        self.next.and_then(When::at)
    }

    pub(super) fn channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channel.as_deref_mut().filter(|channel| channel.id == id)
    }

    /// The connection is gone. Whether it was that.
    pub(super) fn lost(&mut self, id: ChannelId) -> bool {
        let is_it = self.channel(id).is_some();
        if is_it {
            *self = Self { next: Some(When::In(AGAIN)), ..Self::default() };
        }
        is_it
    }

    /// Something has come on the connection. `None`: it was another one; else whether the server
    /// ends it.
    pub(super) fn heard(&mut self, id: ChannelId) -> Option<bool> {
        let channel = self.channel.as_mut().filter(|channel| channel.id == id)?;
        loop {
            match channel.framer.next() {
                Ok(None) => return Some(false),
                Ok(Some(m)) if matches!(m.parse(), Ok(Body::LocateReply(_))) => {
                    self.is_proven = true;
                }
                // It closes the connection, or says what answers nothing.
                Ok(Some(_)) | Err(_) => return Some(true),
            }
        }
    }
}

impl Executor {
    /// Opens the connection, and uses it from time to time.
    pub(super) fn tend_witness(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        if !self.ends.is_foreign() || self.channels.is_empty() {
            return;
        }
        let next = self.witness.next.get_or_insert(When::In(Duration::ZERO));
        next.fix(now);
        if !next.is_due(now) {
            return;
        }
        *next = When::At(now + USED_EVERY);
        if self.witness.channel.is_none() {
            let channel = self.open_channel(None, ANSWER_BYTES_MAX, out);
            self.witness.channel = Some(Box::new(channel));
        }
        let key = self.state_object.clone().unwrap_or_default();
        let question = self.where_is(&key);
        if let Some(channel) = &mut self.witness.channel {
            channel.send((question, None), out);
        }
    }
}
