//! Sessions with clients that rustls makes: what passes, and who is let in.

use crate::poller::Poller;
use crate::stream::{ReadOutcome, Stream};
use crate::tls::{PeerCertificate, TlsAcceptor, TlsFiles};
use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn sign(issuer: &Issuer, name: &str, dns: &[&str]) -> (rcgen::Certificate, KeyPair) {
    let dns: Vec<String> = dns.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(dns).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, issuer).unwrap(), key)
}

fn acceptor(issuer: &Issuer) -> TlsAcceptor {
    let (certificate, key) = sign(issuer, "gateway", &["gateway.example"]);
    let (certificate, key, ca) = (certificate.pem(), key.serialize_pem(), issuer.pem());
    TlsAcceptor::new(&TlsFiles {
        certificate: certificate.as_bytes(),
        key: key.as_bytes(),
        client_ca: Some(ca.as_bytes()),
        client_certificates_required: true,
    })
    .unwrap()
}

fn client(issuer: &Issuer, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(issuer.der().clone()).unwrap();
    let (certificate, key) = sign(issuer, "alice", &["a.example", "b.example"]);
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let name = ServerName::try_from("gateway.example").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
}

#[test]
fn much_goes_both_ways_and_who_the_client_is_is_known_before() {
    const MUCH: usize = 5 << 20;
    let issuer = issuer();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut tls = client(&issuer, TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let (socket, _) = listener.accept().unwrap();
    let mut poller = Poller::new().unwrap();
    let mut stream = Stream::accepted_tls(socket, 1, &acceptor(&issuer), &poller).unwrap();
    let client = thread::spawn(move || {
        tls.write_all(&vec![7; MUCH]).unwrap();
        let mut back = Vec::new();
        let ended = tls.read_to_end(&mut back);
        (back, ended.is_ok())
    });
    let mut buffer = vec![0; 64 << 10];
    let mut received = 0;
    assert!(stream.is_handshaking() && stream.peer_certificate().is_none());
    while received < MUCH {
        poller.wait(None).unwrap();
        match stream.read(&mut buffer) {
            ReadOutcome::Bytes(count) => {
                assert!(!stream.is_handshaking());
                assert!(buffer[..count].iter().all(|octet| *octet == 7));
                received += count;
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::Closed => panic!("it ends after {received}: {:?}", stream.tls_fault()),
        }
        stream.flush(&poller).unwrap();
    }
    let PeerCertificate { digest, names } = stream.peer_certificate().unwrap();
    assert_eq!(names, ["alice", "a.example", "b.example"]);
    assert_ne!(digest, [0; 16]);
    stream.gather(Bytes::from(vec![9; MUCH]), &poller).unwrap();
    assert!(stream.close_when_sent(&poller));
    while stream.has_unsent() {
        poller.wait(None).unwrap();
        stream.flush(&poller).unwrap();
    }
    let (back, ended_well) = client.join().unwrap();
    assert_eq!(back.len(), MUCH);
    assert!(ended_well, "the end is said, too");
}

#[test]
fn what_is_no_tls_ends_with_a_reason_and_a_stranger_is_not_let_in() {
    let issuer = issuer();
    let acceptor = acceptor(&issuer);
    let try_it = |speak: Box<dyn FnOnce(TcpStream) + Send>| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let speaker = thread::spawn(move || speak(socket));
        let mut poller = Poller::new().unwrap();
        let mut stream = Stream::accepted_tls(accepted, 1, &acceptor, &poller).unwrap();
        let mut buffer = vec![0; 64 << 10];
        loop {
            poller.wait(None).unwrap();
            match stream.read(&mut buffer) {
                ReadOutcome::Bytes(_) => panic!("it was let in"),
                ReadOutcome::Nothing => drop(stream.flush(&poller)),
                ReadOutcome::Closed => break,
            }
        }
        let fault = stream.tls_fault();
        drop(stream);
        speaker.join().unwrap();
        fault.expect("a reason")
    };
    let garbage = |mut socket: TcpStream| drop(socket.write_all(b"GIOP\x01\x02\x00\x00\0\0\0\0"));
    assert!(!try_it(Box::new(garbage)).is_empty());
    let other = super::tests::issuer();
    let stranger = move |socket: TcpStream| {
        // It believes nobody, and shows what nobody believes.
        let _ = client(&other, socket).write_all(b"x");
    };
    assert!(!try_it(Box::new(stranger)).is_empty());
}

#[test]
fn files_that_do_not_fit_are_refused_in_words() {
    let issuer = issuer();
    let (certificate, key) = sign(&issuer, "gateway", &[]);
    let (_, other) = sign(&issuer, "other", &[]);
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    let files = TlsFiles {
        certificate: certificate.as_bytes(),
        key: key.as_bytes(),
        client_ca: None,
        client_certificates_required: false,
    };
    assert!(TlsAcceptor::new(&files).is_ok());
    let other = other.serialize_pem();
    for (wrong, word) in [
        (TlsFiles { certificate: b"", ..files }, "certificate"),
        (TlsFiles { key: b"nonsense", ..files }, "key"),
        (TlsFiles { key: other.as_bytes(), ..files }, "key"),
        (TlsFiles { client_ca: Some(b"-"), ..files }, "client_ca"),
    ] {
        let said = TlsAcceptor::new(&wrong).unwrap_err().to_string();
        assert!(said.contains(word), "{said}");
    }
}
