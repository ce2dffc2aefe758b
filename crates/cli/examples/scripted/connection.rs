//! One connection: a thread that reads, and one that executes what was read, in its order.
//!
//! What it is not: where requests get their meaning. Replies, LocateReplies and MessageErrors
//! that come are answers to the server's own requests, and handed to whoever waits for one.
//!
//! Invariant: the socket has one handle, so that a reset is one when both threads let go of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quorba_giop::{
    Body, Framer, FramerLimits, LocateStatus, Message, MessageType, Version, build, limits,
};

use crate::Ending;
use crate::service::Service;

/// Limits on what a node may send.
const LIMITS: FramerLimits = FramerLimits {
    message_bytes_max: 64 << 20,
    fragmented_requests_max: limits::FRAGMENTED_REQUESTS_MAX,
    buffered_bytes_max: 128 << 20,
};

/// A connection, as both of its threads have it.
pub(crate) struct Connection {
    stream: TcpStream,
    sending: Mutex<()>,
    /// Answers to the server's own requests: what kind of message came.
    answers: Mutex<Receiver<MessageType>>,
    /// Requests that were read and are not done.
    open: AtomicUsize,
}

impl Connection {
    /// Sends octets, whatever they are. A peer that is gone misses them.
    pub(crate) fn send(&self, octets: &[u8]) {
        let _one = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let _gone = (&self.stream).write_all(octets);
    }

    /// Ends it. What came and was not read yet is not executed.
    pub(crate) fn end(&self, how: Ending, version: Version) {
        let how = match how {
            Ending::CloseConnection => {
                self.send(build::close_connection(version).bytes());
                Shutdown::Both
            }
            Ending::Fin => Shutdown::Both,
            Ending::Rst => {
                let now = Some(Duration::ZERO);
                let _gone = rustix::net::sockopt::set_socket_linger(&self.stream, now);
                // Wakes the thread that reads, and says nothing to the peer.
                Shutdown::Read
            }
        };
        let _gone = self.stream.shutdown(how);
    }

    /// What came as the answer to a request of the server's own, if it came in time.
    pub(crate) fn answer(&self, within: Duration) -> Option<MessageType> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.recv_timeout(within).ok()
    }
}

/// Where messages that were read go.
struct Reader<'s> {
    connection: Arc<Connection>,
    service: &'s Arc<Service>,
    requests: Sender<Message>,
    answers: Sender<MessageType>,
    version: Version,
}

/// Serves it until either side ends it.
pub(crate) fn serve(stream: TcpStream, service: &Arc<Service>) {
    let set = stream.set_nodelay(true);
    if set.and_then(|()| stream.set_read_timeout(service.options.idle())).is_err() {
        return;
    }
    let (answers, answered) = mpsc::channel();
    let (requests, to_execute) = mpsc::channel::<Message>();
    let connection = Arc::new(Connection {
        stream,
        sending: Mutex::new(()),
        answers: Mutex::new(answered),
        open: AtomicUsize::new(0),
    });
    let (of_worker, worker) = (Arc::clone(&connection), Arc::clone(service));
    std::thread::spawn(move || {
        for message in to_execute {
            worker.execute(&of_worker, &message);
            of_worker.open.fetch_sub(1, Ordering::SeqCst);
        }
    });
    let version = Version::V1_2;
    let _ended = Reader { connection, service, requests, answers, version }.run();
}

impl Reader<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut framer = Framer::new(LIMITS);
        let mut buffer = vec![0; 64 << 10];
        loop {
            loop {
                match framer.next() {
                    Ok(Some(message)) => self.take(message),
                    Ok(None) => break,
                    Err(_) => {
                        self.connection.send(build::message_error(self.version).bytes());
                        self.connection.end(Ending::Fin, self.version);
                        return Ok(());
                    }
                }
            }
            match (&self.connection.stream).read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => framer.push(&buffer[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        if self.connection.open.load(Ordering::SeqCst) == 0 {
                            self.service.note("idle-close");
                            let how = self.service.options.idle_how;
                            self.connection.end(how, self.version);
                            return Ok(());
                        }
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    fn take(&mut self, message: Message) {
        self.version = message.version();
        match message.parse() {
            Ok(Body::Request(_)) => {
                self.connection.open.fetch_add(1, Ordering::SeqCst);
                let _ended = self.requests.send(message);
            }
            Ok(Body::LocateRequest(request)) => {
                let _turn = self.service.turn_of_reader();
                let (id, here) = (request.request_id(), LocateStatus::ObjectHere);
                let reply = build::locate_reply(self.version, message.endian(), id, here);
                self.connection.send(reply.bytes());
            }
            Ok(Body::Reply(_) | Body::LocateReply(_) | Body::MessageError) => {
                let _nobody = self.answers.send(message.message_type());
            }
            Ok(Body::CancelRequest { .. } | Body::CloseConnection) => {}
            Err(_) => self.connection.send(build::message_error(self.version).bytes()),
        }
    }
}
