//! Clients that speak TLS, and certificates for them and for gateways.
#![allow(unreachable_pub, reason = "a test uses it")]

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::stage::wire::{Carrier, Wire};

/// Who signs.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
pub struct Identity {
    pub certificate: rcgen::Certificate,
    pub key: KeyPair,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate") }
    }

    /// A certificate with this common name and these others.
    pub fn sign(&self, name: &str, others: &[&str]) -> Identity {
        let others: Vec<String> = others.iter().map(|&other| other.to_owned()).collect();
        let mut params = CertificateParams::new(others).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        Identity { certificate, key }
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A client that believes what this authority says.
    pub fn client(&self, own: Option<&Identity>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let builder = builder.with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
                let chain = vec![certificate.der().clone()];
                builder.with_client_auth_cert(chain, key).expect("they fit")
            }
        };
        Arc::new(config)
    }
}

impl Identity {
    /// As files for a gateway.
    pub fn write(&self, folder: &Path) {
        fs::write(folder.join("gateway.pem"), self.certificate.pem()).expect("written");
        fs::write(folder.join("gateway.key"), self.key.serialize_pem()).expect("written");
    }
}

impl Carrier for StreamOwned<ClientConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref()
    }
}

/// A client at the TLS port of a gateway whose certificate says 127.0.0.1.
pub fn connect(config: &Arc<ClientConfig>, port: u16) -> std::io::Result<Wire> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let name = ServerName::from(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mut connection =
        ClientConnection::new(config.clone(), name).map_err(std::io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(Wire::over(StreamOwned::new(connection, socket)))
}
