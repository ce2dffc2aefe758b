//! TLS of clients' connections, as a server: keys from PEM files, and one session of a connection.
//!
//! What it is not: who may call what. It says who has shown which certificate, and no more.
//! Invariants: what a session holds of input that is not read yet is bounded (a record, or a
//! handshake message of 64 KiB), and so is what it holds of output; certificates of clients have
//! been checked when the handshake is over.

use crate::stream::{ReadOutcome, would_block};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The longest plain text of a record, and what its envelope adds at most.
const RECORD_BYTES_MAX: usize = (16 << 10) + 2048;
/// How often one [`Session::read`] asks the socket: a session takes 4 KiB at a time.
const READS_MAX: usize = 16;
/// Names that are taken from one certificate.
const NAMES_MAX: usize = 64;

/// What is wrong with certificates or keys, in words.
#[derive(Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// Keys of a server, as PEM.
#[derive(Clone, Copy, Debug)]
pub struct TlsFiles<'a> {
    /// Its certificate, and those that lead to its root.
    pub certificate: &'a [u8],
    /// The key of the first of them.
    pub key: &'a [u8],
    /// Who signs certificates of clients; `None`: clients are not asked for one.
    pub client_ca: Option<&'a [u8]>,
    /// A client without a certificate is not let in.
    pub client_certificates_required: bool,
}

/// Makes sessions with clients.
#[derive(Clone)]
pub struct TlsAcceptor(Arc<ServerConfig>);

impl TlsAcceptor {
    /// With these keys.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(files: &TlsFiles<'_>) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = certificates(files.certificate, "certificate")?;
        let key = PrivateKeyDer::from_pem_slice(files.key)
            .map_err(|error| TlsError(format!("key: {error}")))?;
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(error.to_string()))?;
        let builder = match files.client_ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                for root in certificates(ca, "client_ca")? {
                    roots.add(root).map_err(|error| TlsError(format!("client_ca: {error}")))?;
                }
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = if files.client_certificates_required {
                    verifier
                } else {
                    verifier.allow_unauthenticated()
                };
                let verifier = verifier.build();
                let verifier = verifier.map_err(|error| TlsError(format!("client_ca: {error}")))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder
            .with_single_cert(chain, key)
            .map_err(|error| TlsError(format!("certificate and key: {error}")))?;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn session(&self) -> io::Result<Session> {
        let connection = ServerConnection::new(self.0.clone()).map_err(io::Error::other)?;
        Ok(Session { connection, fault: None, has_said_goodbye: false })
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsAcceptor")
    }
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| TlsError(format!("{what}: {error}")))?;
    if all.is_empty() {
        return Err(TlsError(format!("{what}: there is no certificate in it")));
    }
    Ok(all)
}

/// What a client has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerCertificate {
    /// The first octets of its SHA-256.
    pub digest: [u8; 16],
    /// The common names of its subject, and its DNS names.
    pub names: Vec<String>,
}

impl PeerCertificate {
    fn of(der: &[u8]) -> Self {
        let hash = ring::digest::digest(&ring::digest::SHA256, der);
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.as_ref()[..16]);
        // One whose names cannot be read has none.
        let names = X509Certificate::from_der(der).map(|(_, certificate)| names(&certificate));
        Self { digest, names: names.unwrap_or_default() }
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let common = certificate.subject().iter_common_name();
    let common = common.filter_map(|name| name.as_str().ok());
    let others = certificate.subject_alternative_name().ok().flatten();
    let others = others.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
    let dns = others.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(*name),
        _ => None,
    });
    common.chain(dns).take(NAMES_MAX).map(str::to_owned).collect()
}

/// TLS on one connection.
pub(crate) struct Session {
    connection: ServerConnection,
    fault: Option<rustls::Error>,
    has_said_goodbye: bool,
}

impl Session {
    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.as_ref().map(ToString::to_string)
    }

    pub(crate) fn peer(&self) -> Option<PeerCertificate> {
        let own = self.connection.peer_certificates()?.first()?;
        Some(PeerCertificate::of(own))
    }

    pub(crate) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Reads what there is, as far as `buffer` holds it. All plain text has been taken out when
    /// the buffer has room for a record more.
    pub(crate) fn read(
        &mut self,
        socket: &mut (impl Read + Write),
        buffer: &mut [u8],
    ) -> ReadOutcome {
        let mut filled = 0;
        for _ in 0..READS_MAX {
            match self.take_plain(buffer, &mut filled) {
                Ok(()) => {}
                Err(_) if filled > 0 => break,
                Err(_) => return ReadOutcome::Closed,
            }
            if buffer.len() - filled < RECORD_BYTES_MAX {
                break;
            }
            match self.connection.read_tls(socket) {
                // Whether it has said goodbye is told by the next look for plain text.
                Ok(0) if filled > 0 => break,
                Ok(0) => return ReadOutcome::Closed,
                Ok(_) => {}
                Err(error) if would_block(&error) => break,
                Err(_) => return ReadOutcome::Closed,
            }
            if let Err(error) = self.connection.process_new_packets() {
                self.fault = Some(error);
                // The reason goes to the client, if the socket takes it.
                let _ = self.write_out(socket);
                return ReadOutcome::Closed;
            }
        }
        // What the last record had.
        let _ = self.take_plain(buffer, &mut filled);
        if filled == 0 { ReadOutcome::Nothing } else { ReadOutcome::Bytes(filled) }
    }

    /// # Errors
    /// The other side has ended.
    fn take_plain(&mut self, buffer: &mut [u8], filled: &mut usize) -> io::Result<()> {
        while *filled < buffer.len() {
            match self.connection.reader().read(&mut buffer[*filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => *filled += count,
                Err(error) if would_block(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes records that wait; whether none is left.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub(crate) fn write_out(&mut self, socket: &mut impl Write) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if would_block(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Takes plain text for the next [`Self::write_out`]; how much of it, which is bounded.
    ///
    /// # Errors
    /// The session cannot go on.
    pub(crate) fn seal(&mut self, plain: &[u8]) -> io::Result<usize> {
        self.connection.writer().write(plain)
    }

    /// Nothing more is sent: says so to the other side, once.
    pub(crate) fn say_goodbye(&mut self) {
        if !self.has_said_goodbye {
            self.has_said_goodbye = true;
            self.connection.send_close_notify();
        }
    }
}

#[cfg(test)]
mod tests;
