//! Whether a server that is late with a call lives: it is asked where an object is, on a connection
//! of its own.
//!
//! Only for a server that executes alone. Whether others are late, too, says nothing there, and a
//! long call is no reason to have another leader begin it anew. A server that executes one call at
//! a time cannot answer, so silence proves nothing; an answer does.
//!
//! What it is not: a call; the object need not exist. Invariant: at most one at a time, and nothing
//! that the server does with it reaches the group.

use super::channel::Channel;
use super::schedule::object_key;
use super::{Executor, Job, Outcome};
use crate::output::ServerCommand;
use crate::table::endings::Report;
use crate::words::ids::ChannelId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::{Body, Endian, Version, build};

/// How long a server has to answer, and the longest answer.
const WITHIN: Duration = Duration::from_millis(500);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A question that is under way.
pub(super) struct Probe {
    channel: Channel,
    until: Instant,
    /// The connection is gone.
    is_over: bool,
}

impl Executor {
    /// Asks the server that is late; it executes alone.
    pub(super) fn probe(&mut self, now: Instant, out: &mut Vec<ServerCommand>) {
        self.end_probe(out);
        let mut channel = self.open_channel(None, ANSWER_BYTES_MAX, out);
        let key = self.schedule.oldest().and_then(|oldest| match &oldest.job {
            Job::Execute { giop, .. } => object_key(giop),
            _ => None,
        });
        let key = key.unwrap_or_default();
        channel.send((self.where_is(&key), None), out);
        self.probe = Some(Box::new(Probe { channel, until: now + WITHIN, is_over: false }));
    }

    /// A question that a server answers whatever it is and has.
    pub(super) fn where_is(&mut self, key: &[u8]) -> Bytes {
        let (version, endian) = (Version::V1_2, Endian::Little);
        let request_id = self.new_request_id();
        build::locate_request(version, endian, request_id, key).bytes().clone()
    }

    /// When silence has lasted long enough.
    pub(super) fn probe_at(&self) -> Option<Instant> {
        self.probe.as_ref().map(|probe| if probe.is_over { Instant::ZERO } else { probe.until })
    }

    pub(super) fn probe_channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.probe.as_mut().map(|probe| &mut probe.channel).filter(|channel| channel.id == id)
    }

    /// The connection of the question is gone. Whether it was that.
    pub(super) fn probe_lost(&mut self, id: ChannelId) -> bool {
        let is_it = self.probe_channel(id).is_some();
        if let Some(probe) = self.probe.as_mut().filter(|_| is_it) {
            probe.is_over = true;
        }
        is_it
    }

    /// Bytes have come on the question's connection. Whether it was that.
    pub(super) fn probe_heard(&mut self, id: ChannelId, out: &mut Vec<ServerCommand>) -> bool {
        let Some(channel) = self.probe_channel(id) else { return false };
        let is_answer = matches!(channel.framer.next(), Ok(Some(message))
            if matches!(message.parse(), Ok(Body::LocateReply(_))));
        if is_answer {
            self.end_probe(out);
            let within = self.reply_within;
            if let Some(oldest) = self.schedule.oldest_mut() {
                oldest.late.lives(within);
            }
        }
        true
    }

    fn end_probe(&mut self, out: &mut Vec<ServerCommand>) {
        out.extend(self.probe.take().map(|probe| ServerCommand::Close(probe.channel.id)));
    }

    /// The server had its time: it is late, and gives no sign of life.
    pub(super) fn probe_over(
        &mut self,
        now: Instant,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Outcome> {
        if self.probe_at().is_none_or(|at| at > now) {
            return None;
        }
        self.end_probe(out);
        let waiting = self.waiting()?;
        let oldest = self.schedule.oldest_mut().filter(|oldest| oldest.late.is_untold())?;
        let Job::Execute { call: super::Call::Request(key, _), .. } = &oldest.job else {
            return None;
        };
        let (key, at) = (key.clone(), waiting.at);
        oldest.late.tell();
        Some(Outcome::Late { key, at, report: Report::Late })
    }
}
