//! Ordered time for servers that ask for it (`{time}` in their command): `Quorba::OrderedTime` of
//! idl/quorba.idl, at a loopback port of its own for each group.
//!
//! What it is not: a clock. It says what the order says of the request that the server executes,
//! so that all replicas hear the same. Invariants: outside of a request there is no time, and the
//! answer is BAD_INV_ORDER; the data plane publishes a moment before the request leaves for the
//! server, takes no lock for it, and does so only for groups that want it.

use quorba_config::{Backend, Group, Placeholder};
use quorba_engine::replica::Moment;
use quorba_giop::cdr::Reader;
use quorba_giop::{Completion, ExceptionKind, MinorCode, QUORBA_VMCID, SystemException};
use quorba_orb::{Reply, RunningServer, Servant, Server, ServerOptions, unknown_operation};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The object's key.
pub const OBJECT_KEY: &[u8] = b"QuorbaOrderedTime";
/// Its repository id.
pub const REPOSITORY_ID: &str = "IDL:Quorba/OrderedTime:1.0";

/// A server has one connection, or a few.
const CONNECTIONS_MAX: usize = 64;
/// Requests have no arguments.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Where the moment of a group's request is published: one thread writes, others read.
///
/// A number that is odd while it is written, and differs afterwards, tells a reader that what it
/// read is of two moments (a sequence lock).
#[derive(Debug, Default)]
struct Cell {
    version: AtomicU64,
    number: AtomicU64,
    time: AtomicU64,
    seed: AtomicU64,
    caller: AtomicU64,
}

impl Cell {
    fn publish(&self, moment: Option<Moment>, caller: u64) {
        let Moment { number, time, seed } = moment.unwrap_or_default();
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.number.store(number, Ordering::Relaxed);
        self.time.store(time, Ordering::Relaxed);
        self.seed.store(seed, Ordering::Relaxed);
        self.caller.store(caller, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    fn read(&self) -> Option<(Moment, u64)> {
        loop {
            let before = self.version.load(Ordering::Acquire);
            let moment = Moment {
                number: self.number.load(Ordering::Relaxed),
                time: self.time.load(Ordering::Relaxed),
                seed: self.seed.load(Ordering::Relaxed),
            };
            let caller = self.caller.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return Some((moment, caller)).filter(|(moment, _)| moment.number > 0);
            }
            std::hint::spin_loop();
        }
    }
}

/// The ordered time of one group's server.
pub(crate) struct Times {
    cell: Arc<Cell>,
    server: RunningServer,
}

impl Times {
    /// Whether the group's command has the placeholder.
    pub(crate) fn is_wanted(group: &Group) -> bool {
        match &group.backend {
            Backend::Start(command) => command.uses(Placeholder::Time),
            Backend::Connect(_) => false,
        }
    }

    /// Serves.
    pub(crate) fn start() -> io::Result<Self> {
        let options = ServerOptions {
            connections_max: CONNECTIONS_MAX,
            message_bytes_max: MESSAGE_BYTES_MAX,
            secret: None,
        };
        let cell = Arc::new(Cell::default());
        let servant = OrderedTime { cell: Arc::clone(&cell) };
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), options)?;
        let server = server.with(OBJECT_KEY, servant).start()?;
        Ok(Self { cell, server })
    }

    /// What stands for `{time}`.
    pub(crate) fn reference(&self) -> String {
        let key = String::from_utf8_lossy(OBJECT_KEY);
        format!("corbaloc:iiop:1.2@{}/{key}", self.server.address())
    }

    /// What the server is told from now on; `caller`: 0 if that is not known.
    pub(crate) fn publish(&self, moment: Option<Moment>, caller: u64) {
        self.cell.publish(moment, caller);
    }
}

struct OrderedTime {
    cell: Arc<Cell>,
}

impl Servant for OrderedTime {
    fn repository_id(&self) -> &str {
        REPOSITORY_ID
    }

    fn dispatch(
        &mut self,
        operation: &str,
        _arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), SystemException> {
        let told = self.cell.read().ok_or(SystemException {
            kind: ExceptionKind::BadInvOrder,
            minor: QUORBA_VMCID | MinorCode::NoOrderedRequest.number(),
            completed: Completion::No,
        });
        let answer = match operation {
            "_get_now" => told?.0.time,
            "_get_seed" => told?.0.seed,
            "_get_number" => told?.0.number,
            "_get_caller" => told?.1,
            _ => return Err(unknown_operation()),
        };
        reply.results().write_u64(answer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_orb::{CallError, Client, ClientOptions, Reference};
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_server_hears_the_moment_of_its_request_and_nothing_outside_of_one() {
        let cell = Arc::new(Cell::default());
        let servant = OrderedTime { cell: Arc::clone(&cell) };
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default());
        let server = server.expect("a port").with(OBJECT_KEY, servant).start().expect("a thread");
        let reference = Reference::direct(server.address(), OBJECT_KEY);
        let mut client = Client::new(&reference, ClientOptions::default());
        assert!(client.is_a(REPOSITORY_ID).expect("it answers"));
        let mut get = |name: &str| {
            client
                .call(name, |_| {})
                .map(|answer| answer.results().read_u64("value").expect("a value"))
        };
        let Err(CallError::System(refused)) = get("_get_now") else { panic!("no request runs") };
        assert_eq!(refused.kind, ExceptionKind::BadInvOrder);
        cell.publish(Some(Moment { number: 3, time: 77, seed: 5 }), 9);
        let names = ["_get_number", "_get_now", "_get_seed", "_get_caller"];
        assert_eq!(names.map(|name| get(name).expect("told")), [3, 77, 5, 9]);
        cell.publish(None, 0);
        assert!(get("_get_seed").is_err());
    }

    #[test]
    fn a_reader_never_sees_half_a_moment() {
        let (cell, stop) = (Cell::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..200_000 {
                    let moment = Moment { number, time: number * 2, seed: number * 3 };
                    cell.publish(Some(moment), number * 4);
                }
                stop.store(true, Ordering::Relaxed);
            });
            while !stop.load(Ordering::Relaxed) {
                if let Some((Moment { number, time, seed }, caller)) = cell.read() {
                    assert_eq!((time, seed, caller), (number * 2, number * 3, number * 4));
                }
            }
        });
        cell.publish(None, 0);
        assert_eq!(cell.read(), None);
    }
}
