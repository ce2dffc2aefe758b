//! Carries out what the engine answers.
//!
//! Invariant: outputs take effect in their order; datagrams in a row are sent together, before
//! whatever comes behind them.

use super::DataPlane;
use crate::{NodeError, events};
use quorba_engine::Output;
use quorba_engine::replica::{GroupId, ServerCommand};
use quorba_net::{LinkEvent, Sent};

impl DataPlane {
    /// Carries out everything that the engine wants.
    pub(super) fn drain(&mut self) -> Result<(), NodeError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.progress(self.engine.progress());
        }
        loop {
            while let Some(output) = self.engine.poll() {
                self.carry_out(output)?;
            }
            if let Some(ordered) = self.transport.next_ordered()? {
                let now = self.now();
                self.engine.handle_ordered(now, ordered);
                continue;
            }
            self.transport.flush();
            self.transport.flush_links(&self.poller);
            let Some(event) = self.transport.next_link_event() else { return Ok(()) };
            self.hear_link(event);
        }
    }

    fn hear_link(&mut self, event: LinkEvent) {
        let now = self.now();
        match event {
            LinkEvent::Up { node, incarnation } => {
                self.engine.handle_peer_up(now, node, incarnation);
            }
            LinkEvent::Down { node } => self.engine.handle_peer_down(now, node),
            LinkEvent::Ended { node } => {
                tracing::warn!(node = self.reporter.name_of(node), "its process has ended");
                self.engine.handle_peer_lost(now, node);
            }
            LinkEvent::Message { from, incarnation, bytes } => {
                self.engine.handle_peer_message(now, from, incarnation, bytes);
            }
            LinkEvent::Room { node } => self.engine.handle_peer_room(now, node),
        }
    }

    fn carry_out(&mut self, output: Output) -> Result<(), NodeError> {
        if let Output::Datagram { to, datagram } = output {
            self.transport.send(to, datagram);
            return Ok(());
        }
        // What comes behind datagrams in the order, comes behind them in time; but messages to
        // single nodes have an order of their own, and leave when all else has.
        if !matches!(output, Output::Peer { .. }) {
            self.transport.flush();
        }
        match output {
            Output::Datagram { .. } => unreachable!("sent above"),
            Output::Submit { ticket, payload } => self.transport.submit(ticket, payload),
            Output::Peer { to, lane, bytes } => {
                if self.transport.send_peer(to, lane, bytes) == Sent::Full {
                    let now = self.now();
                    self.engine.handle_peer_full(now, to);
                }
            }
            Output::ClientSend { connection, bytes } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.client_answered(connection);
                }
                if !self.clients.send(connection, bytes, &self.poller) {
                    let now = self.now();
                    self.engine.handle_client_closed(now, connection);
                }
            }
            Output::ClientPause { connection } => {
                self.clients.set_reading(connection, false, &self.poller);
            }
            Output::ClientResume { connection } => {
                self.clients.set_reading(connection, true, &self.poller);
            }
            Output::ClientClose { connection, reason, linger } => {
                tracing::debug!(connection = connection.0, reason = reason.text(), "closing");
                self.clients.close_when_sent(connection, linger, &self.poller);
            }
            Output::Server { group, command } => self.command_server(group, command),
            Output::PersistRing { ring_seq } => {
                self.boot.set_ring_seq(ring_seq).map_err(|e| self.reporter.disk_failed(e))?;
            }
            Output::PersistPrimary(record) => {
                self.boot.set_record(record).map_err(|e| self.reporter.disk_failed(e))?;
            }
            Output::Commanded { id, result } => {
                let reporter = &self.reporter;
                self.commands.close(id, result.map_err(|refused| reporter.refusal(refused)));
            }
            Output::Event(event) => events::log(&event, &mut self.reporter),
        }
        Ok(())
    }

    fn command_server(&mut self, group: GroupId, command: ServerCommand) {
        let now = self.now();
        match command {
            ServerCommand::Connect(channel) => {
                let token = self.next_token;
                self.next_token += 1;
                if !self.servers.connect(group, channel, token, &self.poller) {
                    self.engine.handle_server_closed(now, group, channel);
                }
            }
            ServerCommand::Send(channel, bytes) => {
                let Some(found) = self.servers.by_id(group, channel) else { return };
                if let Some(recorder) = &mut self.recorder {
                    recorder.server_asked(group);
                }
                if found.stream.send(bytes, &self.poller).is_err() {
                    self.servers.close(group, channel);
                    self.engine.handle_server_closed(now, group, channel);
                }
            }
            ServerCommand::Start => {
                if let Some(Some(supervisor)) = self.supervisors.get(usize::from(group.0)) {
                    supervisor.want();
                }
            }
            ServerCommand::Stop => {
                self.servers.close_group(group);
                if let Some(Some(supervisor)) = self.supervisors.get_mut(usize::from(group.0)) {
                    supervisor.give_up();
                }
            }
            ServerCommand::Close(channel) => self.servers.close(group, channel),
            ServerCommand::Restart(reason) => {
                tracing::warn!(
                    group = self.reporter.group_name(group),
                    reason = reason.text(),
                    "restarting the server"
                );
                self.servers.close_group(group);
                if let Some(Some(supervisor)) = self.supervisors.get(usize::from(group.0)) {
                    supervisor.restart();
                }
            }
        }
    }
}
