//! Carries out what the engine answers.
//!
//! Invariants: nothing leaves before what stands before it in the outputs is on disk; what goes to
//! one receiver leaves in its order. What leaves for a socket is gathered while there are outputs,
//! and each socket gets all of it with one system call.

use super::DataPlane;
use crate::log::{LogNews, Progress};
use crate::{NodeError, events, tunnel};
use bytes::Bytes;
use quorba_engine::replica::{
    ChannelId, Command, DriverOutput, Event as ReplicaEvent, GroupId, LogOutput, MemberState,
    ServerCommand,
};
use quorba_engine::{ConnectionId, Event, Output};
use quorba_net::{LinkEvent, Sent};

impl DataPlane {
    /// Carries out everything that the engine wants.
    pub(super) fn drain(&mut self) -> Result<(), NodeError> {
        let mut first = self.engine.poll();
        if let Some(recorder) = &mut self.recorder {
            recorder.progress(self.engine.progress());
        }
        if let Some(call_timings) = &mut self.call_timings {
            call_timings.progress(self.engine.progress());
        }
        loop {
            while let Some(output) = first.take().or_else(|| self.engine.poll()) {
                self.carry_out(output)?;
            }
            if let Some(ordered) = self.transport.next_ordered()? {
                let now = self.now();
                self.engine.handle_ordered(now, ordered);
                continue;
            }
            if let Some(log) = &mut self.log {
                log.flush();
                if log.wants_compaction() {
                    let now = self.now();
                    let is_begun = self.engine.handle_compact(now);
                    self.log.as_mut().expect("just seen").told_of_length(is_begun);
                    continue;
                }
            }
            // What is found broken is news for the engine.
            self.transport.flush();
            let gathered = !self.to_send.is_empty();
            self.send_gathered();
            self.transport.flush_links(&self.poller);
            match self.transport.next_link_event() {
                Some(event) => self.hear_link(event),
                None if gathered => {}
                None => return Ok(()),
            }
        }
    }

    /// The log's thread has something to say.
    pub(super) fn hear_log(&mut self, news: LogNews) -> Result<(), NodeError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let progress = log.hear(news)?;
        let now = self.now();
        match progress {
            Some(Progress::Logged(records)) => self.engine.handle_logged(now, records),
            Some(Progress::Saved(group, record)) => self.engine.handle_saved(now, group, record),
            Some(Progress::Trusted) => self.engine.handle_log_rebuilt(now),
            Some(Progress::LookedUp(look, found)) => {
                self.engine.handle_looked_up(now, look, found);
            }
            None => {}
        }
        Ok(())
    }

    fn hear_link(&mut self, event: LinkEvent) {
        let now = self.now();
        match event {
            LinkEvent::Up { node, incarnation } => {
                self.engine.handle_peer_up(now, node, incarnation);
            }
            LinkEvent::Down { node } => {
                let _ = self.tunnels.send(tunnel::News::Down(node));
                self.engine.handle_peer_down(now, node);
            }
            LinkEvent::Ended { node } => {
                tracing::warn!(
                    node = self.reporter.name_of(node),
                    "the process of a node has ended"
                );
                self.engine.handle_peer_lost(now, node);
            }
            LinkEvent::Message { from, bytes, .. }
                if bytes.first() == Some(&tunnel::FIRST_OCTET) =>
            {
                // Nobody listens only if the admin API has ended.
                let _ = self.tunnels.send(tunnel::News::Message(from, bytes));
            }
            LinkEvent::Message { from, incarnation, bytes } => {
                self.engine.handle_peer_message(now, from, incarnation, bytes);
            }
            LinkEvent::Room { node } => self.engine.handle_peer_room(now, node),
        }
    }

    /// Lets go what was gathered: what servers get first, so that they work while clients are
    /// answered. A client that is woken may well run in this thread's place.
    fn send_gathered(&mut self) {
        let mut to_send = std::mem::take(&mut self.to_send);
        to_send.retain(|token| {
            let Some(channel) = self.servers.get(*token) else { return true };
            if channel.stream.flush(&self.poller).is_err() {
                self.server_gone(*token);
            }
            false
        });
        let now = self.now();
        for token in to_send.drain(..) {
            let Some(stream) = self.clients.get(token) else { continue };
            if stream.flush(&self.poller).is_err() {
                self.clients.remove(token);
                self.engine.handle_client_closed(now, ConnectionId(token));
            } else if let Some(unsent) = self.clients.unsent_news(token) {
                self.engine.handle_client_unsent(now, ConnectionId(token), unsent);
            }
        }
        self.to_send = to_send;
    }

    fn carry_out(&mut self, output: Output) -> Result<(), NodeError> {
        if let Output::Datagram { to, datagram } = output {
            self.transport.send(to, datagram);
            return Ok(());
        }
        match output {
            Output::Datagram { .. } => unreachable!("sent above"),
            Output::Submit { ticket, payload } => self.transport.submit(ticket, payload),
            Output::ClientSend { connection, bytes } => self.send_to_client(connection, bytes),
            Output::ClientPause { connection } => {
                self.clients.set_reading(connection, false, &self.poller);
            }
            Output::ClientResume { connection } => {
                self.clients.set_reading(connection, true, &self.poller);
            }
            Output::ClientClose { connection, reason, linger } => {
                tracing::debug!(connection = connection.0, reason = reason.text(), "closing");
                // Its last words come first; whether it then lingers depends on what is unsent.
                if let Some(stream) = self.clients.get(connection.0) {
                    let _broken = stream.flush(&self.poller);
                }
                self.clients.close_when_sent(connection, linger, &self.poller);
            }
            Output::ExternalCalls { connection, command } => {
                self.command_external(connection, command)
            }
            Output::PersistRing { ring_seq } => {
                self.transport.flush();
                let stored = self.boot.set_ring_seq(ring_seq);
                self.stored(stored)?;
            }
            Output::Replica(output) => self.carry_out_of_replica(output)?,
            Output::Event(event) => {
                self.tell_supervisor(&event);
                let about = events::request_of(&event);
                let about = about.and_then(|(group, number)| self.engine.request(group, number));
                events::log(&event, about.as_ref(), &mut self.reporter);
                self.heed(&event);
            }
        }
        Ok(())
    }

    fn carry_out_of_replica(&mut self, output: DriverOutput) -> Result<(), NodeError> {
        match output {
            DriverOutput::Peer { to, lane, bytes } => {
                if self.transport.send_peer(to, lane, bytes.clone()) == Sent::Full {
                    let now = self.now();
                    self.engine.handle_peer_full(now, to, bytes);
                }
            }
            DriverOutput::Server { group, command } => self.command_server(group, command),
            DriverOutput::PersistPrimary(record) => {
                self.transport.flush();
                let stored = self.boot.set_record(record);
                self.stored(stored)?;
            }
            DriverOutput::CatalogChanged { id, result } => self.defines.close(id, result),
            DriverOutput::Defined { id, news, definition, operation } => {
                self.defined(id, news, (definition, operation));
            }
            DriverOutput::Catalog(record) => self.save_catalog(record),
            DriverOutput::Log(output) => self.write_log(output)?,
            DriverOutput::FreeLater(state) => self.deferred_free.keep(state),
            DriverOutput::Commanded { id, result } => {
                let reporter = &self.reporter;
                self.commands.close(id, result.map_err(|refused| reporter.refusal(refused)));
            }
            DriverOutput::BackedUp { group, id, result } => self.backed_up(group, id, result),
            DriverOutput::Restored { id, result, .. } => self.restored(id, result),
        }
        Ok(())
    }

    fn write_log(&mut self, output: LogOutput) -> Result<(), NodeError> {
        self.before_log(&output)?;
        let Some(log) = &mut self.log else { return Ok(()) };
        log.carry_out(output);
        if log.is_overfull() { self.wait_for_log() } else { Ok(()) }
    }

    fn heed(&mut self, event: &Event) {
        self.heed_refusal(event);
        self.heed_returned(event);
        self.heed_news(event);
    }

    /// One whose domain file differs is asked for it, to say in what.
    fn heed_refusal(&mut self, event: &Event) {
        if let Event::Refused { node, reason } = *event
            && self.reporter.saw_refusal(node, reason)
        {
            // Nobody listens only if the admin API has ended.
            let _ = self.tunnels.send(tunnel::News::WantsFile(node));
        }
    }

    /// A server has returned references: told once for each operation, and counted.
    fn heed_returned(&mut self, event: &Event) {
        let Event::Replica(ReplicaEvent::Returned { group, returned }) = event else { return };
        let ports = self.supervisors.ports();
        for (what, next) in self.reporter.saw_returned(*group, returned, &ports) {
            tracing::warn!(group = self.reporter.group_name(*group), next, "{what}");
        }
    }

    fn send_to_client(&mut self, connection: ConnectionId, bytes: Bytes) {
        if let Some(recorder) = &mut self.recorder {
            recorder.client_answered(connection);
        }
        if let Some(call_timings) = &mut self.call_timings {
            call_timings.client_answered(connection);
        }
        let Some(stream) = self.clients.get(connection.0) else { return };
        match stream.gather(bytes, &self.poller) {
            Ok(true) => self.to_send.push(connection.0),
            // No flush is owed that would tell.
            Ok(false) if self.clients.is_slow(connection.0) => self.tell_unsent(connection.0),
            Ok(false) => {}
            Err(_) => {
                self.clients.remove(connection.0);
                let now = self.now();
                self.engine.handle_client_closed(now, connection);
            }
        }
    }

    /// Whether a server is of use is seen in whether its member is in; and what ended it may be
    /// given up.
    fn tell_supervisor(&self, event: &Event) {
        if let Event::Replica(ReplicaEvent::Changed { group, command }) = event
            && matches!(command, Command::SkipAnswered(_))
        {
            self.supervisors.release(*group);
        }
        if let Event::Replica(ReplicaEvent::Member { group, node, state, .. }) = event
            && self.reporter.is_me(*node)
        {
            self.supervisors.member_is_in(*group, matches!(state, MemberState::In { .. }));
        }
    }

    /// One message for a server, of which pieces may go out later.
    fn send_to_server(
        &mut self,
        group: GroupId,
        channel: ChannelId,
        pieces: impl IntoIterator<Item = Bytes>,
    ) {
        self.tell_time(group);
        let Some(found) = self.servers.by_id(group, channel) else { return };
        self.reading.asked(group);
        if let Some(recorder) = &mut self.recorder {
            recorder.server_asked(group);
        }
        if let Some(call_timings) = &mut self.call_timings {
            call_timings.server_asked(group);
        }
        match found.stream.gather_all(pieces, &self.poller) {
            Ok(true) => self.to_send.push(found.token),
            Ok(false) => {}
            Err(_) => {
                self.servers.close(group, channel);
                let now = self.now();
                self.engine.handle_server_closed(now, group, channel);
            }
        }
    }

    fn command_server(&mut self, group: GroupId, command: ServerCommand) {
        match command {
            ServerCommand::Connect(channel) => self.connect_server(group, channel),
            ServerCommand::Send(channel, bytes) => {
                self.send_to_server(group, channel, std::iter::once(bytes));
            }
            ServerCommand::SendAll(channel, pieces) => {
                self.send_to_server(group, channel, pieces);
            }
            ServerCommand::Start => self.supervisors.want(group),
            ServerCommand::Stop => {
                self.servers.close_group(group);
                self.supervisors.give_up(group);
            }
            ServerCommand::Close(channel) => {
                if let Some(found) = self.servers.by_id(group, channel) {
                    let _broken = found.stream.flush(&self.poller);
                }
                self.servers.close(group, channel);
            }
            ServerCommand::Restart(reason) => {
                tracing::warn!(
                    group = self.reporter.group_name(group),
                    reason = reason.text(),
                    "restarting the server"
                );
                self.servers.close_group(group);
                self.supervisors.restart(group);
            }
        }
    }
}
