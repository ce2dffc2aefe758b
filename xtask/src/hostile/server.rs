//! The servers behind the attacked gateways: as slow, as large and as loud as a request wants.
//!
//! What it is not: an example. Any object key leads to its one object, as with ORBs whose keys have
//! many forms.
//!
//! Invariants: what it does depends on its requests alone; requests are executed one at a time.
//!
//! ```text
//! add(ulong us, sequence<octet>) -> ulong   waits so long; how many adds there were
//! big(ulong) -> sequence<octet>             so many octets
//! say(string) -> string                     the same text; counts as an add
//! count() -> ulong                          how many adds there were
//! pour(ulong mb)                            so many megabytes to standard output
//! get_state, set_state                      FT::Checkpointable
//! ```

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Args;
use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::{
    Body, Completion, ExceptionKind, Framer, FramerLimits, LocateStatus, Message, MessageError,
    ReplyStatus, Request, SystemException, build, limits,
};

/// The longest request that is taken.
const REQUEST_BYTES_MAX: usize = 64 << 20;
/// What is poured at once.
const POUR_BYTES: usize = 1 << 20;

/// What a node starts it with.
#[derive(Args)]
pub(crate) struct ServerOptions {
    /// Where it listens, on loopback
    #[arg(long)]
    port: u16,
}

pub(crate) fn run(options: &ServerOptions) -> ExitCode {
    let Ok(listener) = TcpListener::bind(("127.0.0.1", options.port)) else {
        return ExitCode::FAILURE;
    };
    let adds = Arc::new(Mutex::new(0));
    loop {
        if let Ok((stream, _)) = listener.accept() {
            let adds = Arc::clone(&adds);
            thread::spawn(move || serve(stream, &adds));
        }
    }
}

/// Until the connection ends, for whatever reason.
fn serve(mut stream: TcpStream, adds: &Mutex<u32>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut framer = Framer::new(FramerLimits {
        message_bytes_max: REQUEST_BYTES_MAX,
        fragmented_requests_max: limits::FRAGMENTED_REQUESTS_MAX,
        buffered_bytes_max: 2 * REQUEST_BYTES_MAX,
    });
    let mut buffer = vec![0; 256 << 10];
    loop {
        while let Some(message) = framer.next().ok()? {
            if let Some(answer) = answer(&message, adds)? {
                stream.write_all(answer.bytes()).ok()?;
            }
        }
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        framer.push(&buffer[..count]);
    }
}

/// `None`: this is no connection to go on with.
fn answer(message: &Message, adds: &Mutex<u32>) -> Option<Option<Message>> {
    let (version, endian) = (message.version(), message.endian());
    match message.parse().ok()? {
        Body::Request(request) => {
            let mut adds = adds.lock().unwrap_or_else(PoisonError::into_inner);
            let results = perform(&mut adds, &request, message);
            drop(adds);
            if !request.response_expected() {
                return Some(None);
            }
            let id = request.request_id();
            Some(Some(match results {
                Ok(Some(write)) => {
                    build::reply(version, endian, id, ReplyStatus::NoException, write)
                }
                Ok(None) => exception(message, id, ExceptionKind::BadOperation),
                Err(_) => exception(message, id, ExceptionKind::Marshal),
            }))
        }
        Body::LocateRequest(request) => {
            let status = LocateStatus::ObjectHere;
            Some(Some(build::locate_reply(version, endian, request.request_id(), status)))
        }
        Body::CancelRequest { .. } => Some(None),
        _ => None,
    }
}

fn exception(message: &Message, id: u32, kind: ExceptionKind) -> Message {
    let exception = SystemException { kind, minor: 0, completed: Completion::No };
    build::system_exception(message.version(), message.endian(), id, &exception)
}

type Results = Box<dyn FnOnce(&mut Writer)>;

/// `None`: there is no such operation.
fn perform(
    adds: &mut u32,
    request: &Request<'_>,
    message: &Message,
) -> Result<Option<Results>, MessageError> {
    let reader = &mut Reader::at(message.bytes(), request.body_offset(), message.endian());
    Ok(Some(match request.operation() {
        b"add" => {
            let time = Duration::from_micros(reader.read_u32("us")?.into());
            if !time.is_zero() {
                thread::sleep(time);
            }
            *adds += 1;
            number(*adds)
        }
        b"count" => number(*adds),
        b"say" => {
            let text = reader.read_string(REQUEST_BYTES_MAX, "text")?.to_vec();
            *adds += 1;
            Box::new(move |out| out.write_string(&text))
        }
        b"big" => {
            let octets = vec![b'x'; reader.read_u32("octets")? as usize];
            Box::new(move |out| out.write_octets(&octets))
        }
        b"pour" => {
            pour(reader.read_u32("mb")?);
            Box::new(|_| {})
        }
        b"get_state" => {
            let state = adds.to_string().into_bytes();
            Box::new(move |out| out.write_octets(&state))
        }
        b"set_state" => {
            let state = reader.read_octets(REQUEST_BYTES_MAX, "state")?;
            *adds = String::from_utf8_lossy(state).parse().unwrap_or(u32::MAX);
            Box::new(|_| {})
        }
        b"_is_a" | b"_non_existent" => {
            let truth = request.operation() == b"_is_a";
            Box::new(move |out| out.write_bool(truth))
        }
        _ => return Ok(None),
    }))
}

fn number(number: u32) -> Results {
    Box::new(move |out| out.write_u32(number))
}

fn pour(megabytes: u32) {
    let line = [[b'o'; 99].as_slice(), b"\n"].concat();
    let octets = line.repeat(POUR_BYTES / line.len());
    let mut out = io::stdout().lock();
    for _ in 0..megabytes {
        // A full disk is the node's matter.
        if out.write_all(&octets).is_err() {
            return;
        }
    }
}
