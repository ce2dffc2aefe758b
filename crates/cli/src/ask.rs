//! Asks the nodes of a domain how they are.
//!
//! A node's admin API listens on loopback, so only the nodes on this machine can be asked; that
//! the others exist is learnt from what these say of the view.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quorba_config::{Domain, Node};
use quorba_node::status::Status;

use crate::text::system_reason;

/// One node is not waited for longer than this, whatever the deadline of the command.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);
/// An answer larger than this is not a status.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// A token is a line of text.
const TOKEN_BYTES_MAX: u64 = 1024;

/// What one node of the domain file said.
#[derive(Debug)]
pub struct Answer {
    /// Its name in the domain file.
    pub node: String,
    /// Its host in the domain file.
    pub host: String,
    /// Where it was asked.
    pub admin: SocketAddr,
    /// Its status, or why there is none.
    pub status: Result<Status, Silence>,
}

/// Why a node did not say how it is.
#[derive(Debug)]
pub enum Silence {
    /// Nothing listens on its admin address: it does not run, or not on this machine.
    NotHere,
    /// Another node answers at its address, so it runs on another machine.
    Elsewhere {
        /// Who answers.
        answered: String,
    },
    /// Its token cannot be read.
    NoToken {
        /// The token's file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It does not accept the token: the file is of an earlier run, or of another node.
    Denied {
        /// The token's file.
        file: PathBuf,
    },
    /// It accepted the connection, and said nothing in time.
    Hung,
    /// It said something that is no status.
    Confused {
        /// What was wrong with it.
        reason: String,
    },
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHere => f.write_str("not running here"),
            Self::Elsewhere { answered } => {
                write!(f, "on another machine ({answered} answers here)")
            }
            Self::NoToken { file, reason } => {
                write!(f, "running; its token {} cannot be read: {reason}", file.display())
            }
            Self::Denied { file } => {
                write!(f, "running; it refuses the token in {}", file.display())
            }
            Self::Hung => f.write_str("running; no answer"),
            Self::Confused { reason } => write!(f, "running; unreadable answer: {reason}"),
        }
    }
}

/// Asks every node of the domain at the same time, each for `left` or two seconds at the longest.
pub fn everyone(domain: &Domain, left: Duration) -> Vec<Answer> {
    let time = left.clamp(Duration::from_millis(1), NODE_TIMEOUT);
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            domain.nodes.iter().map(|node| scope.spawn(move || ask(domain, node, time))).collect();
        asked.into_iter().map(|asked| asked.join().expect("asking does not panic")).collect()
    })
}

fn ask(domain: &Domain, node: &Node, time: Duration) -> Answer {
    let status = fetch(node.admin, &node.admin_token_file(), time).and_then(|status| {
        if status.domain == domain.id && status.node == node.name {
            return Ok(status);
        }
        let answered = if status.domain == domain.id {
            status.node
        } else {
            format!("{} of domain {}", status.node, status.domain)
        };
        Err(Silence::Elsewhere { answered })
    });
    Answer { node: node.name.clone(), host: node.host.to_string(), admin: node.admin, status }
}

/// `GET /v1/status` with the token in `token_file`.
fn fetch(admin: SocketAddr, token_file: &Path, time: Duration) -> Result<Status, Silence> {
    let until = Instant::now() + time;
    let stream = TcpStream::connect_timeout(&admin, time).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Silence::Hung,
        _ => Silence::NotHere,
    })?;
    let mut token = String::new();
    let read = std::fs::File::open(token_file)
        .and_then(|file| file.take(TOKEN_BYTES_MAX).read_to_string(&mut token));
    read.map_err(|error| Silence::NoToken {
        file: token_file.to_owned(),
        reason: system_reason(&error),
    })?;
    let request = format!(
        "GET /v1/status HTTP/1.1\r\nHost: {admin}\r\nAuthorization: Bearer {}\r\n\
         Connection: close\r\n\r\n",
        token.trim()
    );
    let answered = converse(stream, &request, until).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Silence::Hung,
        _ => Silence::Confused { reason: system_reason(&error) },
    })?;
    match answered {
        (200, body) => serde_json::from_slice(&body)
            .map_err(|error| Silence::Confused { reason: error.to_string() }),
        (401 | 403, _) => Err(Silence::Denied { file: token_file.to_owned() }),
        (code, _) => Err(Silence::Confused { reason: format!("HTTP status {code}") }),
    }
}

/// Sends one request; the answer's status code and body.
fn converse(stream: TcpStream, request: &str, until: Instant) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = Bounded { stream, until };
    stream.write_all(request.as_bytes())?;
    let mut reader = BufReader::new(stream).take(ANSWER_BYTES_MAX);
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let code = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.ok_or_else(|| bad("no HTTP status"))?;
    let mut length = None;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(bad("the answer ends in its header"));
        }
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let mut body = Vec::new();
    reader.read_to_end(&mut body)?;
    match length {
        Some(length) if body.len() < length => Err(bad("the answer is cut off")),
        Some(length) => {
            body.truncate(length);
            Ok((code, body))
        }
        None => Ok((code, body)),
    }
}

/// A connection whose reads and writes all share one deadline.
struct Bounded {
    stream: TcpStream,
    until: Instant,
}

impl Bounded {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer)
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
