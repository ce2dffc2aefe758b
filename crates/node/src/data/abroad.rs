//! What passes between the engine and servers outside of the domain.

use super::DataPlane;
use bytes::Bytes;
use quorba_engine::{AbroadCommand, AbroadId};
use quorba_net::{ReadOutcome, Ready};

impl DataPlane {
    pub(super) fn abroad_ready(&mut self, token: u64, event: Ready) {
        let now = self.now();
        let Some(trip) = self.abroad.get(token) else { return };
        let id = trip.id;
        if event.writable {
            if trip.connected {
                if trip.stream.flush(&self.poller).is_err() {
                    return self.abroad_gone(token);
                }
            } else if trip.stream.check_connected(&self.poller).is_err() {
                return self.abroad_gone(token);
            } else {
                trip.connected = true;
                let secret = trip.secret.take().map(|secret| Bytes::copy_from_slice(&secret));
                let shown =
                    secret.is_none_or(|secret| trip.stream.send(secret, &self.poller).is_ok());
                if !shown {
                    return self.abroad_gone(token);
                }
                self.engine.handle_abroad_connected(now, id);
            }
        }
        let Some(trip) = self.abroad.get(token) else { return };
        if event.readable {
            match trip.stream.read(&mut self.buffer) {
                ReadOutcome::Bytes(count) => {
                    return self.engine.handle_abroad_bytes(now, id, &self.buffer[..count]);
                }
                ReadOutcome::Nothing => {}
                ReadOutcome::Closed => return self.abroad_gone(token),
            }
        }
        if event.hung_up {
            self.abroad_gone(token);
        }
    }

    fn abroad_gone(&mut self, token: u64) {
        if let Some(id) = self.abroad.remove(token) {
            let now = self.now();
            self.engine.handle_abroad_closed(now, id);
        }
    }

    pub(super) fn command_abroad(&mut self, id: AbroadId, command: AbroadCommand) {
        match command {
            AbroadCommand::Connect { server } => self.connect_abroad(id, server),
            AbroadCommand::Send(bytes) => {
                let Some(trip) = self.abroad.by_id(id) else { return };
                if trip.stream.send(bytes, &self.poller).is_err() {
                    self.abroad.close(id);
                    let now = self.now();
                    self.engine.handle_abroad_closed(now, id);
                }
            }
            AbroadCommand::Close => self.abroad.close(id),
        }
    }
}
