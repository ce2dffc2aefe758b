//! The certificates of gateways, as files that may be read again.
//!
//! Invariant: what cannot be read changes nothing; connections that are there keep what they have.

use crate::NodeError;
use quorba_config::Tls;
use quorba_net::{TlsAcceptor, TlsError, TlsFiles};
use std::path::Path;
use std::{fs, io};

/// The longest file of certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Of one group.
pub(super) struct Keys {
    name: String,
    files: Tls,
    pub(super) acceptor: TlsAcceptor,
}

impl Keys {
    /// Of the group called `name`.
    ///
    /// # Errors
    /// [`NodeError::Tls`]: they cannot be used.
    pub(super) fn of_group(name: &str, files: &Tls) -> Result<Self, NodeError> {
        let failed = |problem| NodeError::Tls { group: name.to_owned(), problem };
        let acceptor = read(files).map_err(failed)?;
        Ok(Self { name: name.to_owned(), files: files.clone(), acceptor })
    }

    /// Reads the files again, for connections to come.
    pub(super) fn reload(&mut self) {
        let group = &self.name;
        match read(&self.files) {
            Ok(acceptor) => {
                self.acceptor = acceptor;
                tracing::info!(group, "the certificates for TLS were read again");
            }
            Err(error) => {
                tracing::error!(group, error, "the certificates for TLS stay what they were");
            }
        }
    }
}

/// Of an error, whose file it is and what is wrong.
fn read(files: &Tls) -> Result<TlsAcceptor, String> {
    let content = |path: &Path| {
        let shown = |error: io::Error| format!("{}: {error}", path.display());
        let length = fs::metadata(path).map_err(shown)?.len();
        if length > FILE_BYTES_MAX {
            return Err(format!("{}: longer than {FILE_BYTES_MAX} bytes", path.display()));
        }
        fs::read(path).map_err(shown)
    };
    let (certificate, key) = (content(&files.certificate)?, content(&files.key)?);
    let client_ca = files.client_ca.as_deref().map(content).transpose()?;
    let acceptor = TlsAcceptor::new(&TlsFiles {
        certificate: &certificate,
        key: &key,
        client_ca: client_ca.as_deref(),
        client_certificates_required: files.client_certificates_required,
    });
    acceptor
        .map_err(|error: TlsError| format!("{} and others: {error}", files.certificate.display()))
}
