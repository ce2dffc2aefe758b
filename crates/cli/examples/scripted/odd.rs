//! The oddities: what a server may do with a request other than to reply.
//!
//! Each is chosen by the request. It comes before the text is appended if the request says `late`,
//! else behind; a server on another node than the one named replies as to any other request.

use std::fmt::Write as _;
use std::process;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::Reader;
use quorba_giop::{Fault, Message, MessageError, MessageType, Request, ResponseFlags, Version};

use crate::Ending;
use crate::connection::Connection;
use crate::service::{Results, Service, Turn, reply, text};

/// How long the answer to a request of the server's own is waited for.
const CALLBACK_WITHIN: Duration = Duration::from_secs(1);
/// The id of such a request: odd, as ids of a connection's other side are (GIOP §15.8).
const CALLBACK_ID: u32 = 77;

/// What the server does.
enum Odd {
    /// The connection ends without a word.
    End(Ending),
    /// CloseConnection, which says that the request was not executed; so it is not.
    Refuse,
    /// Octets that are no GIOP; the connection stays.
    Garbage,
    /// The first half of the reply, then FIN.
    Partial,
    /// MessageError, then FIN.
    MessageError,
    /// A reply to a request that nobody sent.
    WrongId,
    /// Nothing. What else comes on this connection is not answered either.
    Never,
    /// The process ends in good order.
    Exit,
    /// The process is aborted.
    Crash,
    /// The reply; the process is aborted so long behind it, and gives no state until then.
    DiesAfter(Duration),
    /// The reply, and the same again.
    Twice,
    /// A Fragment that continues nothing, then the reply.
    Fragment,
    /// The same of GIOP 1.1, whose Fragments have no id.
    OldFragment,
    /// A request to whoever is at the other end, then the reply.
    Request,
    /// A LocateRequest to them, then the reply.
    Locate,
    /// The reply after so long.
    Slow(Duration),
    /// The reply.
    Plain,
}

impl FromStr for Odd {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Ok(match word {
            "fin" => Self::End(Ending::Fin),
            "rst" => Self::End(Ending::Rst),
            "close-always" => Self::Refuse,
            "garbage" => Self::Garbage,
            "partial" => Self::Partial,
            "message-error" => Self::MessageError,
            "wrong-id" => Self::WrongId,
            "never" => Self::Never,
            "exit" => Self::Exit,
            "crash" => Self::Crash,
            "twice" => Self::Twice,
            "fragment" => Self::Fragment,
            "old-fragment" => Self::OldFragment,
            "request" => Self::Request,
            "locate" => Self::Locate,
            "plain" => Self::Plain,
            _ => {
                let (kind, ms) = word.split_once(':').ok_or(())?;
                let time = Duration::from_millis(ms.parse().map_err(|_| ())?);
                match kind {
                    "slow" => Self::Slow(time),
                    "dies-after" => Self::DiesAfter(time),
                    _ => return Err(()),
                }
            }
        })
    }
}

/// What a request tells the server to do.
pub(crate) struct Told {
    word: String,
    odd: Odd,
    node: String,
    late: bool,
    text: String,
}

impl Told {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, MessageError> {
        let offset = reader.position();
        let word = text(reader)?;
        let unknown = |()| MessageError { what: "oddity", offset, fault: Fault::Value };
        let odd = word.parse().map_err(unknown)?;
        let node = text(reader)?;
        Ok(Self { word, odd, node, late: reader.read_bool("late")?, text: text(reader)? })
    }
}

/// Executes the request in the way that it says.
pub(crate) fn play(
    service: &Service,
    connection: &Connection,
    message: &Message,
    request: &Request<'_>,
    mut turn: Turn<'_>,
    told: Told,
) {
    let is_meant = told.node.is_empty() || told.node == service.options.node;
    let odd = if is_meant { told.odd } else { Odd::Plain };
    if matches!(odd, Odd::Refuse) {
        service.note(&format!("refuse {}", told.text));
        connection.end(Ending::CloseConnection, message.version());
        return;
    }
    let mut line = format!("odd {}", told.text);
    let _infallible = write!(line, " {}", if is_meant { &told.word } else { "plain" });
    service.note(&line);
    let results = Results::Number(turn.len() + 1);
    let usual = reply(message, request, Ok(&results));
    if !told.late {
        turn.push(told.text.clone());
    }
    if matches!(odd, Odd::Never) {
        let _held = service.options.single_threaded.then_some(turn);
        loop {
            thread::park();
        }
    }
    act(&odd, service, connection, message, &usual);
    if told.late {
        turn.push(told.text);
    }
}

fn act(odd: &Odd, service: &Service, connection: &Connection, message: &Message, usual: &Message) {
    let (version, endian, usual) = (message.version(), message.endian(), usual.bytes());
    match odd {
        Odd::End(how) => connection.end(*how, version),
        Odd::Refuse | Odd::Never => {}
        Odd::Garbage => connection.send(b"What comes here is no GIOP, whoever may read it.\r\n"),
        Odd::Partial => {
            connection.send(&usual[..usual.len() / 2]);
            connection.end(Ending::Fin, version);
        }
        Odd::MessageError => {
            connection.send(build::message_error(version).bytes());
            connection.end(Ending::Fin, version);
        }
        Odd::WrongId => {
            let status = quorba_giop::ReplyStatus::NoException;
            let id = 0x7fff_fff1;
            connection
                .send(build::reply(version, endian, id, status, |out| out.write_u32(0)).bytes());
        }
        Odd::Exit => process::exit(0),
        Odd::Crash => process::abort(),
        Odd::DiesAfter(time) => {
            let time = *time;
            service.is_ending.store(true, Ordering::SeqCst);
            thread::spawn(move || {
                thread::sleep(time);
                process::abort();
            });
            connection.send(usual);
        }
        Odd::Twice => connection.send(&[&usual[..], &usual[..]].concat()),
        Odd::Fragment => connection.send(&[&fragment(Version::V1_2), &usual[..]].concat()),
        Odd::OldFragment => connection.send(&[&fragment(Version::V1_1), &usual[..]].concat()),
        Odd::Request | Odd::Locate => {
            call_back(odd, service, connection, message);
            connection.send(usual);
        }
        Odd::Slow(time) => {
            thread::sleep(*time);
            connection.send(usual);
        }
        Odd::Plain => connection.send(usual),
    }
}

/// The last Fragment of a message that never began.
fn fragment(version: Version) -> Vec<u8> {
    let size = 8;
    let mut octets = b"GIOP".to_vec();
    octets.extend([version.major, version.minor, 0, MessageType::Fragment.octet(), 0, 0, 0, size]);
    // In GIOP 1.2 an id, then data.
    octets.extend([0x7f, 0xff, 0xff, 0xf3, 1, 2, 3, 4]);
    octets
}

/// Asks whoever is at the other end of the connection, and notes what they answer.
fn call_back(odd: &Odd, service: &Service, connection: &Connection, message: &Message) {
    let (version, endian) = (message.version(), message.endian());
    let question = if matches!(odd, Odd::Locate) {
        build::locate_request(version, endian, CALLBACK_ID, b"callback")
    } else {
        let head = RequestHead {
            version,
            endian,
            request_id: CALLBACK_ID,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"callback",
            operation: b"notify",
            contexts: &[],
        };
        build::request(&head, |_| {})
    };
    connection.send(question.bytes());
    let answer = connection.answer(CALLBACK_WITHIN);
    service.note(&format!("called back: {answer:?}"));
}
