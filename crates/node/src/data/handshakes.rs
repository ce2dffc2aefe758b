//! Clients that come with TLS: from the first octet until it is known who they are.
//!
//! Invariant: what a handshake costs is bounded per turn, because whoever waits for this node's
//! token waits meanwhile.

use super::DataPlane;
use quorba_engine::{Certificate, ClientPeer, ConnectionId};
use quorba_net::{PeerCertificate, ReadOutcome, Ready};
use std::net::IpAddr;

/// Steps of handshakes between two looks at what the engine wants; a step may be a signature.
pub(super) const STEPS_MAX: u32 = 4;

impl DataPlane {
    /// Something came, or may go, on a connection whose client is not known.
    pub(super) fn handshake_ready(&mut self, token: u64, event: Ready) {
        if self.handshake_steps >= STEPS_MAX {
            // The poller says it again.
            return;
        }
        self.handshake_steps += 1;
        let Some(stream) = self.clients.get(token) else { return };
        let mut came = 0;
        if event.readable || event.hung_up {
            match stream.read(&mut self.buffer) {
                ReadOutcome::Bytes(count) => came = count,
                ReadOutcome::Nothing => {}
                ReadOutcome::Closed => {
                    let why = stream.tls_fault();
                    let why = why.unwrap_or_else(|| "the client closed it".to_owned());
                    return self.clients.drop_handshake(token, &why);
                }
            }
        }
        if stream.flush(&self.poller).is_err() {
            return self.clients.drop_handshake(token, "the connection broke");
        }
        if stream.is_handshaking() {
            return;
        }
        let certificate = stream.peer_certificate();
        let Some((group, address)) = self.clients.end_handshake(token) else { return };
        let (now, id) = (self.now(), ConnectionId(token));
        let peer = peer(address, certificate);
        self.engine.handle_client_opened(now, id, group, peer);
        if came > 0 {
            self.engine.handle_client_bytes(now, id, &self.buffer[..came]);
        }
    }
}

fn peer(address: IpAddr, certificate: Option<PeerCertificate>) -> ClientPeer {
    let certificate = certificate.map(|PeerCertificate { digest, names }| {
        let names = names.into_iter().map(|name| name.into_bytes().into()).collect();
        Certificate { digest, names }
    });
    ClientPeer { address, certificate }
}
