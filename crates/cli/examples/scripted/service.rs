//! What requests mean: the list of texts and its operations.
//!
//! Invariant: requests are executed one at a time, over all connections.

use std::fs::File;
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::ior::IiopProfile;
use quorba_giop::{
    Body, Completion, Endian, ExceptionKind, Ior, Message, MessageError, ReplyStatus, Request,
    SystemException, Version, build,
};

use crate::connection::Connection;
use crate::odd::{self, Told};
use crate::{Ending, Options};

/// The longest text that is taken, in octets.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// The list of texts, in its lock.
pub(crate) type Turn<'s> = MutexGuard<'s, Vec<String>>;

/// The server's one object.
pub(crate) struct Service {
    pub(crate) options: Options,
    state: Mutex<Vec<String>>,
    /// The process is about to end, and gives its state to nobody.
    pub(crate) is_ending: AtomicBool,
    log: File,
}

/// What an operation gives.
pub(crate) enum Results {
    Nothing,
    Truth(bool),
    Number(usize),
    Text(String),
    Octets(Vec<u8>),
    Reference(Ior),
    /// A text and a number, with this octet between them as far as there is room.
    Padded(String, u8, u32),
}

impl Results {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Nothing => {}
            Self::Truth(truth) => out.write_bool(*truth),
            Self::Number(number) => out.write_count(*number),
            Self::Text(text) => out.write_string(text.as_bytes()),
            Self::Octets(octets) => out.write_octets(octets),
            Self::Reference(reference) => reference.write(out),
            Self::Padded(text, fill, number) => {
                out.write_string(text.as_bytes());
                while !out.position().is_multiple_of(4) {
                    out.write_raw(&[*fill]);
                }
                out.write_u32(*number);
            }
        }
    }
}

/// The reply to a request.
pub(crate) fn reply(
    message: &Message,
    request: &Request<'_>,
    results: Result<&Results, SystemException>,
) -> Message {
    let (version, endian, id) = (message.version(), message.endian(), request.request_id());
    match results {
        Ok(results) => build::reply(version, endian, id, ReplyStatus::NoException, |out| {
            results.write(out);
        }),
        Err(exception) => build::system_exception(version, endian, id, &exception),
    }
}

pub(crate) fn text(reader: &mut Reader<'_>) -> Result<String, MessageError> {
    let text = reader.read_string(TEXT_BYTES_MAX, "text")?;
    Ok(String::from_utf8_lossy(text).into_owned())
}

impl Service {
    pub(crate) fn new(options: Options) -> io::Result<Self> {
        let log = File::options().create(true).append(true).open(&options.log)?;
        let state = Mutex::new(Vec::new());
        Ok(Self { options, state, is_ending: AtomicBool::new(false), log })
    }

    /// Appends a line to the log. It is there when this process has ended.
    pub(crate) fn note(&self, what: &str) {
        let line = format!("{} {what}\n", process::id());
        // A test that looks for the line will say that it is missing.
        let _full = (&self.log).write_all(line.as_bytes());
    }

    /// The turn to execute.
    fn turn(&self) -> Turn<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn that a thread that reads needs: one thread would have to end its call first.
    pub(crate) fn turn_of_reader(&self) -> Option<Turn<'_>> {
        self.options.single_threaded.then(|| self.turn())
    }

    /// Executes a request and answers it.
    pub(crate) fn execute(&self, connection: &Connection, message: &Message) {
        let Ok(Body::Request(request)) = message.parse() else { return };
        let mut turn = self.turn();
        let results = if request.operation() == b"odd" {
            match Told::read(&mut parameters(&request, message)) {
                Ok(told) => {
                    odd::play(self, connection, message, &request, turn, told);
                    return;
                }
                Err(error) => Err(error),
            }
        } else {
            self.perform(&mut turn, &request, message)
        };
        if request.operation() == b"set_state" && self.is_too_long(message.bytes().len()) {
            connection.send(build::message_error(message.version()).bytes());
            return connection.end(Ending::Fin, message.version());
        }
        let results = results.map_err(|_| marshal()).and_then(|results| {
            let kind = match request.operation() {
                b"get_state" => ExceptionKind::NoResources,
                _ => ExceptionKind::BadOperation,
            };
            match results {
                // What omniORB says: MARSHAL_MessageSizeExceedLimit.
                Some(Results::Octets(state)) if self.is_too_long(state.len()) => {
                    Err(SystemException { minor: 0x4154_0045, ..marshal() })
                }
                results => {
                    results.ok_or(SystemException { kind, minor: 0, completed: Completion::No })
                }
            }
        });
        if request.response_expected() {
            let results = results.as_ref().map_err(|exception| *exception);
            connection.send(reply(message, &request, results).bytes());
        }
    }

    /// `None`: there is no such operation.
    fn perform(
        &self,
        texts: &mut Vec<String>,
        request: &Request<'_>,
        message: &Message,
    ) -> Result<Option<Results>, MessageError> {
        let reader = &mut parameters(request, message);
        Ok(Some(match request.operation() {
            b"add" => self.add(texts, text(reader)?, Duration::ZERO),
            b"sleepadd" => {
                let time = Duration::from_millis(reader.read_u32("ms")?.into());
                self.add(texts, text(reader)?, time)
            }
            b"spend" => {
                thread::sleep(Duration::from_micros(reader.read_u32("us")?.into()));
                Results::Nothing
            }
            b"log" => Results::Text(texts.join(",")),
            b"who" => Results::Text(self.options.node.clone()),
            b"big" => Results::Octets(vec![b'x'; reader.read_u32("octets")? as usize]),
            b"refer" => self.refer(reader)?,
            b"padded" => {
                let (said, node, liar) = (text(reader)?, text(reader)?, text(reader)?);
                let own = &self.options.node;
                let left = own.bytes().last().unwrap_or_default();
                let fill = if node == *own || node == "*" { left } else { 0 };
                Results::Padded(said, fill, if liar == *own { 8 } else { 7 })
            }
            b"get_state" if self.options.no_state => return Ok(None),
            b"get_state" if self.is_ending.load(Ordering::SeqCst) => return Ok(None),
            b"get_state" => Results::Octets(texts.join("\n").into_bytes()),
            b"set_state" => {
                let state = reader.read_octets(TEXT_BYTES_MAX, "state")?;
                let state = String::from_utf8_lossy(state);
                *texts = state.lines().map(str::to_owned).collect();
                self.note("set_state");
                Results::Nothing
            }
            b"_is_a" => Results::Truth(true),
            b"_non_existent" => Results::Truth(false),
            _ => return Ok(None),
        }))
    }

    fn refer(&self, reader: &mut Reader<'_>) -> Result<Results, MessageError> {
        let port = match reader.read_u32("port")? {
            0 => self.options.port,
            port => u16::try_from(port).unwrap_or(u16::MAX),
        };
        let key = match text(reader)? {
            key if key.is_empty() => format!("object {:08x}", process::id()),
            key => key,
        };
        let profile = IiopProfile {
            version: Version::V1_2,
            host: "127.0.0.1".into(),
            port,
            object_key: key.into_bytes(),
            components: Vec::new(),
        };
        let profiles = vec![profile.encode(Endian::Little)];
        Ok(Results::Reference(Ior { type_id: b"IDL:Thing:1.0".to_vec(), profiles }))
    }

    fn is_too_long(&self, bytes: usize) -> bool {
        let is_here = self.options.state_max_on.as_ref().is_none_or(|on| *on == self.options.node);
        is_here && self.options.state_max.is_some_and(|most| bytes > most)
    }

    fn add(&self, texts: &mut Vec<String>, text: String, time: Duration) -> Results {
        self.note(&format!("add {text}"));
        thread::sleep(time);
        texts.push(text);
        Results::Number(texts.len())
    }
}

fn parameters<'m>(request: &Request<'_>, message: &'m Message) -> Reader<'m> {
    Reader::at(message.bytes(), request.body_offset(), message.endian())
}

fn marshal() -> SystemException {
    SystemException { kind: ExceptionKind::Marshal, minor: 0, completed: Completion::No }
}
