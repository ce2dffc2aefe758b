//! What passes between the engine and servers outside of the domain.

use super::DataPlane;
use bytes::Bytes;
use quorba_engine::{ExternalCommand, ExternalId};
use quorba_net::{ReadOutcome, Ready};

impl DataPlane {
    pub(super) fn external_ready(&mut self, token: u64, event: Ready) {
        let now = self.now();
        let Some(trip) = self.external.get(token) else { return };
        let id = trip.id;
        if event.writable {
            if trip.connected {
                if trip.stream.flush(&self.poller).is_err() {
                    return self.external_gone(token);
                }
            } else if trip.stream.check_connected(&self.poller).is_err() {
                return self.external_gone(token);
            } else {
                trip.connected = true;
                let secret = trip.secret.take().map(|secret| Bytes::copy_from_slice(&secret));
                let shown =
                    secret.is_none_or(|secret| trip.stream.send(secret, &self.poller).is_ok());
                if !shown {
                    return self.external_gone(token);
                }
                self.engine.handle_external_connected(now, id);
            }
        }
        let Some(trip) = self.external.get(token) else { return };
        if event.readable {
            match trip.stream.read(&mut self.buffer) {
                ReadOutcome::Bytes(count) => {
                    return self.engine.handle_external_bytes(now, id, &self.buffer[..count]);
                }
                ReadOutcome::Nothing => {}
                ReadOutcome::Closed => return self.external_gone(token),
            }
        }
        if event.hung_up {
            self.external_gone(token);
        }
    }

    fn external_gone(&mut self, token: u64) {
        if let Some(id) = self.external.remove(token) {
            let now = self.now();
            self.engine.handle_external_closed(now, id);
        }
    }

    pub(super) fn command_external(&mut self, id: ExternalId, command: ExternalCommand) {
        match command {
            ExternalCommand::Connect { server } => self.connect_external(id, server),
            ExternalCommand::Send(bytes) => {
                let Some(trip) = self.external.by_id(id) else { return };
                if trip.stream.send(bytes, &self.poller).is_err() {
                    self.external.close(id);
                    let now = self.now();
                    self.engine.handle_external_closed(now, id);
                }
            }
            ExternalCommand::Close => self.external.close(id),
        }
    }
}
