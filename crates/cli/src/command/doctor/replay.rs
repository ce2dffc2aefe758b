//! Gives recorded requests to a server that runs by itself, one after the other.
//!
//! What it is not: a node. Invariants: the server gets what a node would send: each request under
//! an id of ours, with a reply wanted even for a oneway, on a connection for each negotiation of
//! code sets; and both runs are given the same octets.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use quorba_admin::requests::Messages;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{
    Body, Endian, Framer, FramerLimits, Message, ReplyStatus, ResponseFlags, Rewrite, Version,
};

/// CodeSets service context (GIOP §13.10.2.6).
const CODE_SETS: u32 = 1;
/// The longest reply or state that is read, in octets.
const REPLY_BYTES_MAX: usize = 1 << 30;
const READ_BYTES: usize = 64 << 10;

/// What a server answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A reply.
    Reply(Message),
    /// It closed the connection, or its process ended.
    Ended,
    /// Nothing within the group's `server_reply`.
    Silence,
    /// Something that is no reply to the request.
    Confusion,
}

impl Answer {
    /// In few words.
    pub fn text(&self) -> String {
        match self {
            Self::Reply(message) => match message.parse() {
                Ok(Body::Reply(reply)) => {
                    let status = quorba_admin::requests::status_text(Some(reply.status()));
                    format!("{status}, {} octets", message.bytes().len())
                }
                _ => "no reply".into(),
            },
            Self::Ended => "the server ended".into(),
            Self::Silence => "the server did not answer in time".into(),
            Self::Confusion => "what came is no reply".into(),
        }
    }

    /// The whole message, if it is one.
    pub fn octets(&self) -> &[u8] {
        match self {
            Self::Reply(message) => message.bytes(),
            Self::Ended | Self::Silence | Self::Confusion => &[],
        }
    }
}

/// A server that is asked.
pub struct Asked {
    address: SocketAddr,
    reply_within: Duration,
    connections: BTreeMap<Option<Vec<u8>>, Connection>,
    last_id: u32,
}

struct Connection {
    socket: TcpStream,
    framer: Framer,
    negotiated: bool,
}

impl Asked {
    pub const fn new(address: SocketAddr, reply_within: Duration) -> Self {
        Self { address, reply_within, connections: BTreeMap::new(), last_id: 0 }
    }

    /// Has a request executed. `None` if it is no request.
    pub fn execute(&mut self, recorded: &Messages) -> Option<Answer> {
        self.last_id += 1;
        let id = self.last_id;
        let message = Message::from_bytes(recorded.request.clone()).ok()?;
        let Ok(Body::Request(request)) = message.parse() else { return None };
        let code_sets = recorded.code_sets.as_deref();
        let Some(connection) = self.connection(code_sets) else { return Some(Answer::Ended) };
        let introduce =
            !connection.negotiated && request.contexts().all(|(context, _)| context != CODE_SETS);
        connection.negotiated = true;
        let context = code_sets.filter(|_| introduce).map(|data| (CODE_SETS, data));
        let message = request.rewrite(&Rewrite {
            request_id: Some(id),
            response_flags: Some(ResponseFlags::WithTarget),
            add_contexts: context.as_slice(),
            ..Rewrite::default()
        });
        Some(self.exchange(code_sets, id, &message))
    }

    /// The server's state, if it gives one.
    pub fn state(&mut self, object_key: &[u8]) -> Option<Vec<u8>> {
        self.last_id += 1;
        let id = self.last_id;
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id: id,
            response_flags: ResponseFlags::WithTarget,
            object_key,
            operation: b"get_state",
            contexts: &[],
        };
        self.connection(None)?;
        let Answer::Reply(message) = self.exchange(None, id, &build::request(&head, |_| {})) else {
            return None;
        };
        let Ok(Body::Reply(reply)) = message.parse() else { return None };
        if reply.status() != ReplyStatus::NoException {
            return None;
        }
        reply.reader().read_octets(REPLY_BYTES_MAX, "state").ok().map(<[u8]>::to_vec)
    }

    fn connection(&mut self, code_sets: Option<&[u8]>) -> Option<&mut Connection> {
        let name = code_sets.map(<[u8]>::to_vec);
        if !self.connections.contains_key(&name) {
            let socket = TcpStream::connect_timeout(&self.address, self.reply_within).ok()?;
            let _ = socket.set_nodelay(true);
            let framer = Framer::new(FramerLimits {
                message_bytes_max: REPLY_BYTES_MAX,
                fragmented_requests_max: 1,
                buffered_bytes_max: REPLY_BYTES_MAX,
            });
            let connection = Connection { socket, framer, negotiated: false };
            self.connections.insert(name.clone(), connection);
        }
        self.connections.get_mut(&name)
    }

    fn exchange(&mut self, code_sets: Option<&[u8]>, id: u32, message: &Message) -> Answer {
        let name = code_sets.map(<[u8]>::to_vec);
        let within = self.reply_within;
        let connection = self.connections.get_mut(&name).expect("made before");
        let answer = connection.exchange(id, message, within);
        if !matches!(answer, Answer::Reply(_)) {
            self.connections.remove(&name);
        }
        answer
    }
}

impl Connection {
    fn exchange(&mut self, id: u32, message: &Message, within: Duration) -> Answer {
        if self.socket.write_all(message.bytes()).is_err() {
            return Answer::Ended;
        }
        let until = Instant::now() + within;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match self.framer.next() {
                Ok(Some(message)) => return answer_in(message, id),
                Ok(None) => {}
                Err(_) => return Answer::Confusion,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Answer::Silence;
            }
            if self.socket.set_read_timeout(Some(left)).is_err() {
                return Answer::Ended;
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => return Answer::Ended,
                Ok(count) => self.framer.push(&buffer[..count]),
                Err(error) if is_timeout(&error) => return Answer::Silence,
                Err(_) => return Answer::Ended,
            }
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn answer_in(message: Message, id: u32) -> Answer {
    let is_reply = matches!(message.parse(), Ok(Body::Reply(reply)) if reply.request_id() == id);
    let is_end = matches!(message.parse(), Ok(Body::CloseConnection));
    match (is_reply, is_end) {
        (true, _) => Answer::Reply(message),
        (_, true) => Answer::Ended,
        _ => Answer::Confusion,
    }
}
