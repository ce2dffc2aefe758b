//! What the node says of the local server: it is there, it is gone, it has sent something.
//!
//! What it is not: the server's process, which the node starts and ends.
//! Invariant: none of this changes the table; it leads to messages.

use super::{Group, NodeContext};
use crate::member::Consequence;
use crate::messages::envelope::{Envelope, ProcessEnd};
use crate::output::{DriverOutput, Event, OrderOutput, Outbox, Output, ServerCommand, forward};
use crate::table::DownReason;
use crate::words::ids::{Attempt, ChannelId};
use alloc::vec::Vec;
use quorba_base::Instant;

impl Group {
    pub(crate) fn server_up(&mut self, out: &mut Outbox) {
        let Some(member) = &mut self.member else { return };
        let mut commands = Vec::new();
        // Somebody else's server is known to be fresh only before the domain's first request.
        let fresh = !self.config.foreign || self.former.take_foreign_is_first();
        let consequence = member.server_up(fresh, &mut commands);
        forward(self.id, commands, out);
        if let Some(Consequence::Lost(attempt, reason)) = consequence {
            self.submit_down(attempt, reason, out);
        }
    }

    pub(crate) fn server_down(&mut self, reason: DownReason, here: NodeContext, out: &mut Outbox) {
        let Some(member) = &mut self.member else { return };
        let (ended, reads) = member.process_end();
        let consequence = member.server_failed(reason);
        self.reads_ended(&reads, here, out);
        if let Some(Consequence::Lost(attempt, reason)) = consequence {
            self.is_gone(attempt, reason, ended, out);
        }
    }

    pub(crate) fn connected(&mut self, channel: ChannelId, out: &mut Outbox) {
        let mut commands = Vec::new();
        if let Some(member) = &mut self.member {
            member.connected(channel, &mut commands);
        }
        forward(self.id, commands, out);
    }

    pub(crate) fn disconnected(&mut self, channel: ChannelId, here: NodeContext, out: &mut Outbox) {
        let Some(member) = &mut self.member else { return };
        let mut commands = Vec::new();
        let consequence = member.disconnected(channel, &mut commands);
        forward(self.id, commands, out);
        self.follow(consequence, here, out);
    }

    /// What has ended without bytes of the server, one after the other.
    pub(super) fn follow_ends(
        &mut self,
        now: Instant,
        in_primary: bool,
        here: NodeContext,
        out: &mut Outbox,
    ) {
        loop {
            let Some(member) = &mut self.member else { return };
            let mut commands = Vec::new();
            let (any, consequence) = member.next_end(now, &mut commands, &mut self.recent);
            if any {
                // What stood behind it may start.
                member.step(now, &mut commands);
            }
            forward(self.id, commands, out);
            self.mind_endings(now, in_primary, out);
            if !any {
                return;
            }
            match consequence {
                Some(Consequence::Overdue) => self.overdue(in_primary, out),
                consequence => self.follow(consequence, here, out),
            }
        }
    }

    pub(crate) fn received(
        &mut self,
        came: Option<Instant>,
        (channel, bytes): (ChannelId, &[u8]),
        here: NodeContext,
        out: &mut Outbox,
    ) {
        if let Some(now) = came {
            self.recent.at(now);
        }
        if let Some(member) = &mut self.member {
            member.received(came, channel, bytes);
        }
        while let Some(member) = &mut self.member {
            let mut commands: Vec<ServerCommand> = Vec::new();
            let consequence = member.next_consequence(channel, &mut commands, &mut self.recent);
            let (returned, is_uncleared) = (member.returned(), member.was_uncleared());
            forward(self.id, commands, out);
            for returned in returned {
                out.push_back(Output::Event(Event::Returned { group: self.id, returned }));
            }
            if is_uncleared {
                out.push_back(Output::Event(Event::Uncleared { group: self.id }));
            }
            if consequence.is_none() {
                return;
            }
            self.follow(consequence, here, out);
        }
    }

    pub(crate) fn lost(&mut self, attempt: Option<Attempt>, reason: DownReason, out: &mut Outbox) {
        if let Some(member) = &mut self.member {
            let _ = member.server_lost(reason);
        }
        self.is_gone(attempt, reason, ProcessEnd::default(), out);
    }

    /// Another process takes the place of the server.
    pub(super) fn replace_server(&self, reason: DownReason, out: &mut Outbox) {
        out.push_back(
            DriverOutput::Server { group: self.id, command: ServerCommand::Restart(reason) }.into(),
        );
    }

    /// The server is to be another one, and its member is down.
    fn is_gone(
        &mut self,
        attempt: Option<Attempt>,
        reason: DownReason,
        ended: ProcessEnd,
        out: &mut Outbox,
    ) {
        self.replace_server(reason, out);
        if let Some(attempt) = attempt {
            let down = Envelope::Down { group: self.id, attempt, reason, ended };
            out.push_back(OrderOutput::Submit(down.encode()).into());
        }
    }
}
