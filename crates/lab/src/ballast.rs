//! A server with as large a state as one likes: `quorba lab peer ballast`.
//!
//! It gives its state without copying it, so that what a transfer takes is not what the server
//! takes. Calls change a word of it each, so that a state is of one moment only, and its digest
//! tells whether two servers have the same.
//!
//! What it is not: an ORB. It knows what nodes and the laboratory's own clients send.
//!
//! Invariants: requests are executed one at a time, in the order in which they came; a state that
//! cannot be taken changes nothing.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use quorba_orb::giop::cdr::{Reader, Writer};
use quorba_orb::giop::{
    Body, Completion, ExceptionKind, Framer, FramerLimits, LocateStatus, Message, MessageError,
    ReplyStatus, Request, SystemException, build, limits,
};

use crate::peer::READY;

/// What the object is called.
pub(crate) const KEY: &str = "ballast";
/// The largest state: the largest that a domain file lets travel, with room for its message.
pub(crate) const BALLAST_BYTES_MAX: u64 = (1 << 30) - (1 << 10);
/// Octets that are read at once.
const READ_BYTES: usize = 256 << 10;
/// The state begins with the number of calls.
const HEAD_BYTES: usize = 8;
/// Calls change words that are so far apart.
const STRIDE: usize = 4_096 + 8;
/// Where a GIOP message says how long it is (GIOP §15.4.1).
const SIZE_AT: usize = limits::HEADER_BYTES - 4;

/// The object.
#[derive(Default)]
struct Ballast {
    touched: u64,
    bytes: Vec<u8>,
    /// Calls until the last state or update that was given; `None`: no update can follow it.
    told: Option<u64>,
}

/// What goes out.
struct Answer {
    message: Message,
    /// The state stands behind it, and its length is not in the message's yet.
    with_state: bool,
}

/// Serves at a socket of this machine until the process is ended; its node does that.
pub(crate) fn serve(socket: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    io::stdout().write_all(READY.as_bytes())?;
    let ballast = Arc::new(Mutex::new(Ballast::default()));
    for stream in listener.incoming() {
        let (stream, ballast) = (stream?, Arc::clone(&ballast));
        thread::spawn(move || converse(stream, &ballast));
    }
    Ok(())
}

/// Answers until either side ends it; why it ended, the other side knows.
fn converse(mut stream: UnixStream, ballast: &Mutex<Ballast>) -> Option<()> {
    let message_bytes_max = 1 << 30;
    let mut framer = Framer::new(FramerLimits {
        message_bytes_max,
        fragmented_requests_max: 1,
        buffered_bytes_max: message_bytes_max + READ_BYTES,
    });
    let mut room = vec![0; READ_BYTES];
    loop {
        let count = stream.read(&mut room).ok().filter(|count| *count > 0)?;
        framer.push(&room[..count]);
        while let Some(message) = framer.next().ok()? {
            let request = match message.parse().ok()? {
                Body::Request(request) => request,
                Body::LocateRequest(question) => {
                    stream.write_all(here(&message, question.request_id()).bytes()).ok()?;
                    continue;
                }
                _ => return None,
            };
            let mut ballast = ballast.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = ballast.answer(&message, &request);
            if request.response_expected() {
                ballast.send(answer, &mut stream).ok()?;
            }
        }
    }
}

impl Ballast {
    fn answer(&mut self, message: &Message, request: &Request<'_>) -> Answer {
        let (version, endian, id) = (message.version(), message.endian(), request.request_id());
        let mut arguments = Reader::at(message.bytes(), request.body_offset(), endian);
        if request.operation() == b"get_state" {
            let length = (HEAD_BYTES + self.bytes.len()) as u32;
            self.told = Some(self.touched);
            let head = |out: &mut Writer| out.write_u32(length);
            let message = build::reply(version, endian, id, ReplyStatus::NoException, head);
            return Answer { message, with_state: true };
        }
        let mut results = Writer::new(endian);
        let message = match self.execute(request.operation(), &mut arguments, &mut results) {
            Ok(true) => {
                let octets = results.finish();
                let body = |out: &mut Writer| out.write_raw(&octets);
                build::reply(version, endian, id, ReplyStatus::NoException, body)
            }
            Ok(false) => exception(message, id, ExceptionKind::BadOperation),
            Err(_) => exception(message, id, ExceptionKind::Marshal),
        };
        Answer { message, with_state: false }
    }

    /// False if there is no such operation.
    fn execute(
        &mut self,
        operation: &[u8],
        arguments: &mut Reader<'_>,
        results: &mut Writer,
    ) -> Result<bool, MessageError> {
        match operation {
            b"touch" => results.write_u64(self.touch()),
            b"fill" => {
                let bytes = arguments.read_u64("bytes")?.min(BALLAST_BYTES_MAX);
                self.fill(bytes as usize);
            }
            b"digest" => results.write_u64(self.digest()),
            b"set_state" => {
                let state = arguments.read_octets(usize::MAX, "state")?;
                let Some((touched, bytes)) = state.split_first_chunk::<HEAD_BYTES>() else {
                    return Ok(false);
                };
                (self.touched, self.bytes) = (u64::from_le_bytes(*touched), bytes.to_vec());
                self.told = None;
            }
            b"get_update" => {
                let Some(update) = self.update() else { return Ok(false) };
                results.write_octets(&update);
            }
            b"set_update" => {
                let update = arguments.read_octets(usize::MAX, "update")?;
                return Ok(self.take(update));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn touch(&mut self) -> u64 {
        self.touched += 1;
        if let Some(at) = self.word_of(self.touched) {
            self.bytes[at..at + 8].copy_from_slice(&self.touched.to_le_bytes());
        }
        self.touched
    }

    /// Where the word is that this call changes.
    fn word_of(&self, call: u64) -> Option<usize> {
        let at = (call as usize).wrapping_mul(STRIDE / 8);
        at.checked_rem(self.bytes.len() / 8).map(|word| word * 8)
    }

    /// The calls before, and the words that have changed since what was given last.
    fn update(&mut self) -> Option<Vec<u8>> {
        let told = self.told.replace(self.touched)?;
        let mut update = told.to_le_bytes().to_vec();
        for call in told + 1..=self.touched {
            let word = self.word_of(call).map_or(&[][..], |at| &self.bytes[at..at + 8]);
            update.extend_from_slice(word);
        }
        Some(update)
    }

    /// Takes an update that goes on from what it has; false if it does not.
    fn take(&mut self, update: &[u8]) -> bool {
        let (words, rest) = update.as_chunks::<8>();
        let Some((told, words)) = words.split_first().filter(|_| rest.is_empty()) else {
            return false;
        };
        if u64::from_le_bytes(*told) != self.touched {
            return false;
        }
        for word in words {
            self.touched += 1;
            if let Some(at) = self.word_of(self.touched) {
                self.bytes[at..at + 8].copy_from_slice(word);
            }
        }
        self.told = None;
        true
    }

    /// What does not get shorter by being compressed, and is the same everywhere.
    fn fill(&mut self, bytes: usize) {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        self.bytes = vec![0; bytes];
        self.told = None;
        for word in self.bytes.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
    }

    fn digest(&self) -> u64 {
        let word = |chunk: &[u8; 8]| u64::from_le_bytes(*chunk);
        let (words, _) = self.bytes.as_chunks::<8>();
        words.iter().fold(self.touched, |sum, chunk| sum.rotate_left(1) ^ word(chunk))
    }

    fn send(&self, answer: Answer, stream: &mut UnixStream) -> io::Result<()> {
        if !answer.with_state {
            return stream.write_all(answer.message.bytes());
        }
        let length = HEAD_BYTES + self.bytes.len();
        let mut begin = answer.message.bytes().to_vec();
        let size = (begin.len() - limits::HEADER_BYTES + length) as u32;
        begin[SIZE_AT..limits::HEADER_BYTES].copy_from_slice(&match answer.message.endian() {
            quorba_orb::giop::Endian::Little => size.to_le_bytes(),
            quorba_orb::giop::Endian::Big => size.to_be_bytes(),
        });
        begin.extend_from_slice(&self.touched.to_le_bytes());
        stream.write_all(&begin)?;
        stream.write_all(&self.bytes)
    }
}

fn here(message: &Message, id: u32) -> Message {
    build::locate_reply(message.version(), message.endian(), id, LocateStatus::ObjectHere)
}

fn exception(message: &Message, id: u32, kind: ExceptionKind) -> Message {
    let exception = SystemException { kind, minor: 0, completed: Completion::No };
    build::system_exception(message.version(), message.endian(), id, &exception)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_makes_a_server_the_same() {
        let mut one = Ballast::default();
        one.fill(100_000);
        for _ in 0..50 {
            one.touch();
        }
        let (touched, bytes) = (one.touched, one.bytes.clone());
        let mut other = Ballast { touched, bytes, told: None };
        assert_eq!(one.digest(), other.digest());
        assert!(one.update().is_none(), "it was filled");
        for _ in 0..10 {
            one.touch();
        }
        assert_ne!(one.digest(), other.digest());
        let update = one.update().expect("the last word was a state");
        assert!(other.take(&update) && update.len() == 88);
        assert_eq!(one.digest(), other.digest());
        assert!(!other.take(&update), "it goes on from something else");
    }

    #[test]
    fn a_state_is_a_message_that_can_be_read() {
        use quorba_orb::giop::build::RequestHead;
        use quorba_orb::giop::{Endian, ResponseFlags, Version};
        let mut ballast = Ballast::default();
        ballast.fill(10_000);
        ballast.touch();
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id: 3,
            response_flags: ResponseFlags::WithTarget,
            object_key: KEY.as_bytes(),
            operation: b"get_state",
            contexts: &[],
        };
        let message = build::request(&head, |_| {});
        let Ok(Body::Request(request)) = message.parse() else { panic!("a request") };
        let answer = ballast.answer(&message, &request);
        let (mut here, mut there) = UnixStream::pair().expect("a pair");
        let sender = thread::spawn(move || ballast.send(answer, &mut here));
        let mut bytes = Vec::new();
        there.read_to_end(&mut bytes).expect("all of it");
        sender.join().expect("no panic").expect("sent");
        let reply = Message::from_bytes(bytes.into()).expect("whole");
        let Ok(Body::Reply(view)) = reply.parse() else { panic!("a reply") };
        let state = view.reader().read_octets(usize::MAX, "state").expect("a state");
        assert_eq!(state.len(), HEAD_BYTES + 10_000);
        assert_eq!(state[..HEAD_BYTES], 1_u64.to_le_bytes());
    }
}
