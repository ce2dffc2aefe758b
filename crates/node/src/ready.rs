//! Whether a server is ready: it accepts connections, and the object that matters is there.
//!
//! An ORB may open its port before the application has activated its objects. A request in that
//! gap is answered OBJECT_NOT_EXIST by this server and executed by the others, and the replicas
//! differ for good; hence a LocateRequest (GIOP §15.4.5) for the object before the first request.

use crate::endpoint::ServerEndpoint;
use crate::filesystem::is_out_of_descriptors;
use quorba_giop::corbaloc::EscapedKey;
use quorba_giop::{Body, Endian, Framer, FramerLimits, LocateStatus, Version, build};
use quorba_net::{Interest, timespec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// How long a connection or an answer may take.
const PATIENCE: Duration = Duration::from_millis(500);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What came of a look at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It accepts connections, and has the object if one was asked for.
    Ready,
    /// It accepts no connection.
    Deaf,
    /// It accepts connections, and does not answer in time.
    Silent,
    /// It answers that it has no such object.
    NoObject,
    /// It answers with something else than an answer to a LocateRequest.
    Strange,
}

impl Look {
    /// In words: the server does what. `key` as it stands in the domain file, and there as what.
    pub(crate) fn text(self, endpoint: &ServerEndpoint, key: Option<(&str, &[u8])>) -> String {
        let (what, key) = key.unwrap_or_default();
        let key = EscapedKey(key);
        match self {
            Self::Ready => format!("serves on {endpoint}"),
            Self::Deaf => match endpoint {
                ServerEndpoint::Address(address) => {
                    format!("accepts no connections on {address}, where its node connects")
                }
                ServerEndpoint::File(_) => format!("accepts no connections on {endpoint}"),
            },
            Self::Silent => {
                format!("accepts connections on {endpoint}, and answers no LocateRequest")
            }
            Self::NoObject => format!(
                "answers on {endpoint}, and has no object `{key}` ({what}): a LocateRequest for it \
                     was answered UNKNOWN_OBJECT"
            ),
            Self::Strange => format!("answers on {endpoint} with something that is no GIOP reply"),
        }
    }
}

/// A look that waits for nothing: a step is taken when its socket is ready, or its time is up.
pub(crate) struct Probe {
    socket: Socket,
    until: Instant,
    stage: Stage,
}

enum Stage {
    /// Until there is a connection; then for this object, if for any.
    Connecting(Option<Box<[u8]>>),
    /// There is one, and nothing is asked.
    Connected,
    /// Until there is an answer.
    Asked { framer: Box<Framer>, heard: bool },
}

impl Probe {
    /// Begins to connect, and to ask for an object if there is a key. Otherwise what came of it
    /// already.
    ///
    /// # Errors
    /// This node has no descriptor left to look with.
    pub(crate) fn begin(
        endpoint: &ServerEndpoint,
        key: Option<&[u8]>,
        now: Instant,
    ) -> io::Result<Result<Self, Look>> {
        match endpoint.probe_connect() {
            Ok(socket) => {
                let stage = Stage::Connecting(key.map(Into::into));
                Ok(Ok(Self { socket, until: now + PATIENCE, stage }))
            }
            Err(error) if is_out_of_descriptors(&error) => Err(error),
            Err(_) => Ok(Err(Look::Deaf)),
        }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What is to be waited for at its socket.
    pub(crate) const fn interest(&self) -> Interest {
        match self.stage {
            Stage::Connecting(_) => Interest::WRITE,
            Stage::Connected | Stage::Asked { .. } => Interest::READ,
        }
    }

    /// When its time is up.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// Something may have come, or its time may be up: what came of the look, if it is over.
    pub(crate) fn step(&mut self, now: Instant) -> Option<Look> {
        if let Stage::Connecting(_) = self.stage {
            match self.socket.take_error() {
                Ok(None) if self.is_with_itself() => return Some(Look::Deaf),
                Ok(None) if self.socket.peer_addr().is_ok() => {}
                Ok(None) if now < self.until => return None,
                _ => return Some(Look::Deaf),
            }
            match std::mem::replace(&mut self.stage, Stage::Connected) {
                Stage::Connecting(Some(key)) => self.ask(&key, now),
                _ => return Some(Look::Ready),
            }
        }
        self.hear(now)
    }

    /// Where nobody listens, at a port that the system gives to who connects, a socket may have
    /// been given that very port, and be connected with itself.
    fn is_with_itself(&self) -> bool {
        let own = self.socket.local_addr().ok().and_then(|address| address.as_socket());
        own.is_some() && own == self.socket.peer_addr().ok().and_then(|one| one.as_socket())
    }

    /// Asks for an object, on a connection on which nothing is asked, or was answered.
    pub(crate) fn ask(&mut self, key: &[u8], now: Instant) {
        let question = build::locate_request(Version::V1_0, Endian::Little, 1, key);
        let framer = Box::new(Framer::new(FramerLimits {
            message_bytes_max: ANSWER_BYTES_MAX,
            fragmented_requests_max: 1,
            buffered_bytes_max: ANSWER_BYTES_MAX,
        }));
        self.stage = Stage::Asked { framer, heard: false };
        // It fits into what the system keeps for a socket; if not, nobody answers.
        let is_sent = self.socket.write_all(question.bytes()).is_ok();
        self.until = if is_sent { now + PATIENCE } else { now };
    }

    fn hear(&mut self, now: Instant) -> Option<Look> {
        let Stage::Asked { framer, heard } = &mut self.stage else { return None };
        let mut buffer = [0; 4096];
        let look = loop {
            match framer.next() {
                Ok(Some(message)) => break judged(message.parse()),
                Ok(None) => {}
                Err(_) => break Look::Strange,
            }
            let silence = if *heard { Look::Strange } else { Look::Silent };
            match self.socket.read(&mut buffer) {
                Ok(0) => break silence,
                Ok(count) => {
                    *heard = true;
                    framer.push(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && now < self.until => {
                    return None;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break silence,
            }
        };
        self.stage = Stage::Connected;
        Some(look)
    }
}

fn judged<E>(answer: Result<Body<'_>, E>) -> Look {
    let Ok(Body::LocateReply(reply)) = answer else { return Look::Strange };
    match reply.status() {
        LocateStatus::ObjectHere | LocateStatus::ObjectForward => Look::Ready,
        LocateStatus::UnknownObject => Look::NoObject,
        _ => Look::Strange,
    }
}

/// Connects and, if there is a key, asks for its object; for a thread that may wait.
///
/// # Errors
/// This node has no descriptor left to look with.
pub(crate) fn look(endpoint: &ServerEndpoint, key: Option<&[u8]>) -> io::Result<Look> {
    let mut probe = match Probe::begin(endpoint, key, Instant::now())? {
        Ok(probe) => probe,
        Err(look) => return Ok(look),
    };
    loop {
        let now = Instant::now();
        if let Some(look) = probe.step(now) {
            return Ok(look);
        }
        let left = timespec(probe.until().saturating_duration_since(now));
        let flags = if probe.interest().write { PollFlags::OUT } else { PollFlags::IN };
        // Whatever woke it, the next step sees what there is.
        let _ = poll(&mut [PollFd::from_borrowed_fd(probe.socket(), flags)], Some(&left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// Looks for the object at a server that reads a question and says `answer`, or nothing.
    fn looked(answer: Option<Vec<u8>>) -> Look {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = ServerEndpoint::Address(listener.local_addr().expect("an address"));
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let mut question = [0; 256];
            let count = stream.read(&mut question).expect("it asks");
            assert!(question[..count].ends_with(b"bank"), "for the object");
            if let Some(answer) = answer {
                stream.write_all(&answer).expect("it listens");
            }
            // Until it goes.
            let _ = stream.read(&mut question);
        });
        let look = look(&endpoint, Some(b"bank")).expect("descriptors");
        server.join().expect("it ends");
        look
    }

    fn answered(status: LocateStatus) -> Look {
        let reply = build::locate_reply(Version::V1_0, Endian::Little, 1, status);
        looked(Some(reply.bytes().to_vec()))
    }

    #[test]
    fn a_server_is_ready_only_if_it_says_that_it_has_the_object() {
        assert_eq!(answered(LocateStatus::ObjectHere), Look::Ready);
        assert_eq!(answered(LocateStatus::ObjectForward), Look::Ready);
        assert_eq!(answered(LocateStatus::UnknownObject), Look::NoObject);
        assert_eq!(looked(None), Look::Silent);
        assert_eq!(looked(Some(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())), Look::Strange);
        let error = build::message_error(Version::V1_0).bytes().to_vec();
        assert_eq!(looked(Some(error)), Look::Strange);
    }

    #[test]
    fn where_nobody_listens_nobody_is_ready() {
        let port = quorba_net::free_ports(1).expect("a port")[0];
        let endpoint = ServerEndpoint::Address(([127, 0, 0, 1], port).into());
        for key in [None, Some(&b"bank"[..])] {
            assert_eq!(look(&endpoint, key).expect("descriptors"), Look::Deaf);
        }
    }

    /// As when the system happens to give that port.
    #[test]
    fn a_connection_with_itself_is_no_server() {
        let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.expect("a socket");
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(&any.into()).expect("a port");
        socket.connect(&socket.local_addr().expect("it is bound")).expect("with itself");
        socket.set_nonblocking(true).expect("a socket");
        let (until, stage) = (Instant::now() + PATIENCE, Stage::Connecting(None));
        let mut probe = Probe { socket, until, stage };
        assert_eq!(probe.step(Instant::now()), Some(Look::Deaf));
    }

    #[test]
    fn without_an_object_to_ask_for_a_connection_is_enough() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = ServerEndpoint::Address(listener.local_addr().expect("an address"));
        assert_eq!(look(&endpoint, None).expect("descriptors"), Look::Ready);
    }

    /// A server that listens on its host's address alone is not found: its node connects to
    /// 127.0.0.1.
    #[test]
    fn of_a_server_that_accepts_nothing_it_is_told_where_its_node_connects() {
        let endpoint = ServerEndpoint::Address("127.0.0.1:6001".parse().expect("an address"));
        let said = format!("it {}", Look::Deaf.text(&endpoint, None));
        assert_eq!(said, "it accepts no connections on 127.0.0.1:6001, where its node connects");
    }
}
