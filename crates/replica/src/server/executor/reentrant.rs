//! A read that the server executes while it waits for a call of its own; see
//! [`crate::calls::reentrant`].
//!
//! What it is not: who asks, or who hears the answer. Invariants: at most one at a time, on a
//! connection that is used for nothing else; whether it is answered changes nothing for the request
//! in which the server waits.

use super::channel::Channel;
use super::{Executor, calls};
use crate::calls::outside::{OutsideFailure, OutsideReport};
use crate::calls::reentrant::{Question, REENTRANT_REPLY_BYTES_MAX, ReadAttempt, Served, Spot};
use crate::output::ServerCommand;
use crate::words::ids::ChannelId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::Instant;
use quorba_giop::{Body, FrameError, Message};

/// Where the server stands, seen from a spot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    Before,
    There,
    Behind,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Reentrant {
    running: Option<Box<Running>>,
    /// Whether it has ever answered while it waited; false once it was given all its time and has
    /// not. One that executes a call at a time never will.
    answers: Option<bool>,
    /// Connections of reads that nobody waits for; hardly ever any.
    stale: Box<[ChannelId]>,
}

struct Running {
    read_attempt: ReadAttempt,
    request_id: u32,
    channel: Channel,
    deadline: Instant,
}

impl Reentrant {
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.running.as_ref().map(|running| running.deadline)
    }

    /// Nobody waits for what is asked now.
    pub(super) fn abandon(&mut self) {
        if let Some(running) = self.running.take() {
            let mut stale = core::mem::take(&mut self.stale).into_vec();
            stale.push(running.channel.id);
            self.stale = stale.into_boxed_slice();
        }
    }

    /// The server is gone, and its connections with it.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(super) fn channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.running.as_mut().map(|running| &mut running.channel).filter(|c| c.id == id)
    }

    pub(super) fn close_stale(&mut self, out: &mut Vec<ServerCommand>) {
        let stale = core::mem::take(&mut self.stale).into_vec();
        out.extend(stale.into_iter().map(ServerCommand::Close));
    }
}

impl Executor {
    /// Where the server stands, seen from there.
    pub(crate) fn position(&self, spot: Spot) -> Position {
        let Some(during) = self.schedule.oldest().and_then(calls::request_of) else {
            return Position::Before;
        };
        let made = self.calls.made();
        if during == spot.during && made == spot.number && self.calls.is_any_open() {
            Position::There
        } else if during.count < spot.during.count || during == spot.during && made < spot.number {
            Position::Before
        } else {
            Position::Behind
        }
    }

    /// Whether the server is asked that.
    pub(crate) fn is_asked_reentrant(&self, read_attempt: ReadAttempt) -> bool {
        self.reentrant.running.as_ref().is_some_and(|running| running.read_attempt == read_attempt)
    }

    /// Nobody waits for what the server is asked beside, unless it is that.
    pub(crate) fn keep_reentrant(&mut self, read_attempt: Option<ReadAttempt>) {
        if read_attempt.is_none_or(|read_attempt| !self.is_asked_reentrant(read_attempt)) {
            self.reentrant.abandon();
        }
    }

    /// Asks the server beside the request in which it waits. `Some`: it is not asked any more,
    /// because it let the time pass once and has never answered such a read; everybody would
    /// wait for as long again.
    pub(crate) fn ask_reentrant(
        &mut self,
        now: Instant,
        question: &Question,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Served> {
        self.reentrant.abandon();
        if self.reentrant.answers == Some(false) {
            let report = OutsideReport::Failed(OutsideFailure::Doubt);
            return Some(Served { read_attempt: question.read_attempt, report });
        }
        let code_sets = question.code_sets.clone();
        let mut channel = self.open_channel(code_sets, REENTRANT_REPLY_BYTES_MAX, out);
        let request_id = self.new_request_id();
        let (bytes, _) = channel.prepare(&question.giop, request_id);
        channel.send((bytes, None), out);
        let (read_attempt, deadline) = (question.read_attempt, now + self.reply_within);
        let running = Running { read_attempt, request_id, channel, deadline };
        self.reentrant.running = Some(Box::new(running));
        self.reentrant.close_stale(out);
        None
    }

    /// When the server must have answered what it is asked beside.
    pub(crate) fn reentrant_deadline(&self) -> Option<Instant> {
        self.reentrant.deadline()
    }

    /// The time is over in which the server may answer.
    pub(crate) fn reentrant_overdue(
        &mut self,
        now: Instant,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Served> {
        let running = self.reentrant.running.take_if(|running| running.deadline <= now)?;
        out.push(ServerCommand::Close(running.channel.id));
        self.reentrant.answers.get_or_insert(false);
        let report = OutsideReport::Failed(OutsideFailure::Doubt);
        Some(Served { read_attempt: running.read_attempt, report })
    }

    /// What came on the connection of such a read, if that ends it.
    pub(super) fn answered_reentrant(
        &mut self,
        channel: ChannelId,
        out: &mut Vec<ServerCommand>,
    ) -> Option<Served> {
        let running = self.reentrant.running.as_mut().filter(|r| r.channel.id == channel)?;
        let report = match running.channel.framer.next() {
            Ok(None) => return None,
            Ok(Some(message)) => report_of(&message, running.request_id),
            Err(FrameError::TooLarge { .. } | FrameError::TooMuchBuffered { .. }) => {
                OutsideReport::Failed(OutsideFailure::TooLarge)
            }
            Err(_) => OutsideReport::Failed(OutsideFailure::Doubt),
        };
        out.push(ServerCommand::Close(channel));
        let running = self.reentrant.running.take()?;
        if matches!(report, OutsideReport::Reply(_)) {
            self.reentrant.answers = Some(true);
        }
        Some(Served { read_attempt: running.read_attempt, report })
    }
}

fn report_of(message: &Message, request_id: u32) -> OutsideReport {
    match message.parse() {
        Ok(Body::Reply(reply)) if reply.request_id() == request_id => {
            let bytes: Bytes = message.bytes().clone();
            if bytes.len() > REENTRANT_REPLY_BYTES_MAX {
                return OutsideReport::Failed(OutsideFailure::TooLarge);
            }
            OutsideReport::Reply(bytes)
        }
        Ok(Body::MessageError) => OutsideReport::Failed(OutsideFailure::Rejected),
        Ok(_) | Err(_) => OutsideReport::Failed(OutsideFailure::Doubt),
    }
}
