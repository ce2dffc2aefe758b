//! A server that needs the time and chance: `quorba servant clock`.
//!
//! What it is not: deterministic, unless it is given a reference to Quorba's ordered time. Tests
//! and docs/determinism.md show both.
//!
//! Invariant: its state depends on every time and every number that it has told, so that replicas
//! whose states are equal have told the same.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use quorba_orb::giop::cdr::Reader;
use quorba_orb::giop::{Completion, ExceptionKind, SystemException};
use quorba_orb::{
    CallError, Client, ClientOptions, Reference, Reply, Servant, Server, ServerOptions,
    marshal_fault, unknown_operation,
};

use crate::bank::servant::CHECKPOINTABLE_ID;

/// The clock's object key, which is its state object's, too.
pub const CLOCK_KEY: &[u8] = b"clock";
/// Its repository id.
pub const CLOCK_ID: &str = "IDL:Demo/Clock:1.0";
/// Octets of its state.
const STATE_BYTES: usize = 16;

/// Where time and chance come from.
enum Source {
    /// The machine.
    Own,
    /// Quorba's ordered time.
    Ordered(Box<Client>),
}

struct Clock {
    source: Source,
    told: u64,
    digest: u64,
}

impl Source {
    fn look(&mut self) -> Result<(u64, u64), SystemException> {
        match self {
            Self::Own => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
                Ok((now, RandomState::new().hash_one(now)))
            }
            Self::Ordered(client) => Ok((ask(client, "_get_now")?, ask(client, "_get_seed")?)),
        }
    }
}

fn ask(client: &mut Client, attribute: &str) -> Result<u64, SystemException> {
    let broken =
        || SystemException { kind: ExceptionKind::Internal, minor: 0, completed: Completion::Yes };
    match client.call(attribute, |_| {}) {
        Ok(answer) => answer.results().read_u64("time").map_err(|_| broken()),
        Err(CallError::System(exception)) => Err(exception),
        Err(CallError::User(_)) => Err(broken()),
    }
}

impl Servant for Clock {
    fn repository_id(&self) -> &str {
        CLOCK_ID
    }

    fn is_a(&self, id: &str) -> bool {
        [CLOCK_ID, CHECKPOINTABLE_ID].contains(&id)
    }

    fn dispatch(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), SystemException> {
        let out = reply.results();
        match operation {
            "tell" => {
                let (now, chance) = self.source.look()?;
                self.told += 1;
                for number in [now, chance] {
                    let mixed = (self.digest ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    self.digest = mixed.rotate_left(29);
                }
                out.write_u64(now);
                out.write_u64(chance);
            }
            "told" => {
                out.write_u64(self.told);
                out.write_u64(self.digest);
            }
            "get_state" => out.write_octets(&self.state()),
            "set_state" => {
                let state = arguments
                    .read_octets(STATE_BYTES, "state")
                    .map_err(|fault| marshal_fault(fault, Completion::No))?;
                let number = |at: usize| {
                    let octets = state.get(at..).and_then(|rest| rest.first_chunk());
                    octets.map_or(0, |octets| u64::from_be_bytes(*octets))
                };
                (self.told, self.digest) = (number(0), number(8));
            }
            _ => return Err(unknown_operation()),
        }
        Ok(())
    }
}

impl Clock {
    fn state(&self) -> Vec<u8> {
        [self.told, self.digest].iter().flat_map(|number| number.to_be_bytes()).collect()
    }
}

/// Serves a clock at `address` until the process ends; `time` is a reference to ordered time.
///
/// # Errors
/// What the system says if it cannot listen there, or what is wrong with the reference.
pub(crate) fn serve(address: SocketAddr, time: Option<&str>) -> io::Result<()> {
    let source = match time {
        None => Source::Own,
        Some(text) => {
            let reference = Reference::parse(text).map_err(io::Error::other)?;
            Source::Ordered(Box::new(Client::new(&reference, ClientOptions::default())))
        }
    };
    let clock = Clock { source, told: 0, digest: 0 };
    let server = Server::bind(address, ServerOptions::default())?;
    let running = server.with(CLOCK_KEY, clock).start()?;
    let mut out = io::stdout();
    writeln!(out, "READY")?;
    out.flush()?;
    running.serve_forever()
}
