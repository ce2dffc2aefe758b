//! Calls to servers outside of the domain: one connection for each, one request, one reply.
//!
//! What it is not: it decides neither who calls nor what becomes of a call whose outcome is not
//! known. Invariants: a request is written once on each connection, and on another one only if
//! the first was refused, or the server said that it has not executed it; each call that was begun
//! is answered, after `connect` and `reply` of its server at the latest.

use crate::output::Output;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{Duration, Instant};
use quorba_giop::{
    Body, FrameError, Framer, FramerLimits, FtRequest, Message, ReplyStatus, ResponseFlags,
    Rewrite, context,
};
use quorba_replica::{
    CallKey, GroupId, GroupMap, OutsideConfig, OutsideFailure, OutsideReport, RequestEnvelope,
    RequestNumber,
};

/// Calls that are made at one time; more wait.
const CALLS_MAX: usize = 256;
/// How long after a refused connection another one is tried.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// How long a server outside may recognise a repeated call, in 100 ns; it is repeated much earlier.
const EXPIRES_AFTER: u64 = 3600 * 10_000_000;

/// A server outside of the domain.
#[derive(Clone, Copy, Debug)]
pub struct OutsideSettings {
    /// What the replica needs to know.
    pub replica: OutsideConfig,
    /// How long it may take until it accepts a connection.
    pub connect: Duration,
    /// How long it may take to reply.
    pub reply: Duration,
}

/// A connection to a server outside; they count up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExternalId(pub u64);

/// What is to be done with one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExternalCommand {
    /// Open it.
    Connect {
        /// To which server outside.
        server: GroupId,
    },
    /// Send bytes.
    Send(Bytes),
    /// Close it; nothing more is heard of it.
    Close,
}

/// Why a call is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A replicated server makes it, and so many tries were in doubt.
    Call(CallKey, u32),
    /// What an ORB asks by itself, for one server.
    Ask(GroupId, RequestNumber),
}

/// What came of one.
pub(crate) struct Return {
    pub(crate) purpose: Purpose,
    pub(crate) request: Bytes,
    pub(crate) report: OutsideReport,
}

enum Stage {
    Waiting { again: Instant },
    Connecting,
    Asked { until: Instant },
}

struct ExternalCall {
    purpose: Purpose,
    server: GroupId,
    settings: OutsideSettings,
    /// As it is sent.
    message: Message,
    request_id: u32,
    connect_by: Instant,
    stage: Stage,
    framer: Framer,
}

/// See the module's text.
pub(crate) struct ExternalCalls {
    /// The domain's name, for the calls' names.
    domain: Bytes,
    servers: GroupMap<OutsideSettings>,
    last: u64,
    trips: BTreeMap<ExternalId, ExternalCall>,
    /// Calls for which there is no room now.
    queue: VecDeque<(GroupId, Purpose, RequestEnvelope)>,
    returned: VecDeque<Return>,
    pub(crate) out: VecDeque<Output>,
}

impl ExternalCalls {
    pub(crate) fn new(domain: Bytes, servers: GroupMap<OutsideSettings>) -> Self {
        Self {
            domain,
            servers,
            last: 0,
            trips: BTreeMap::new(),
            queue: VecDeque::new(),
            returned: VecDeque::new(),
            out: VecDeque::new(),
        }
    }

    /// There is such a server from here on, or it is another one; calls that are under way go on.
    pub(crate) fn define(&mut self, id: GroupId, server: OutsideSettings) {
        self.servers.insert(id, server);
    }

    /// There is no such server any more.
    pub(crate) fn forget(&mut self, id: GroupId) {
        self.servers.remove(id);
    }

    /// Makes a call.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        server: GroupId,
        purpose: Purpose,
        envelope: RequestEnvelope,
    ) {
        if self.trips.len() >= CALLS_MAX {
            return self.queue.push_back((server, purpose, envelope));
        }
        let failed = |why| OutsideReport::Failed(why);
        let begun = match (self.servers.get(server).copied(), self.message(purpose, &envelope)) {
            (Some(settings), Some(message)) => Ok((settings, message)),
            (Some(_), None) => Err(failed(OutsideFailure::Rejected)),
            // It was deleted, as was whoever wanted to call it.
            (None, _) => Err(failed(OutsideFailure::NotReached)),
        };
        let (settings, (message, request_id)) = match begun {
            Ok(begun) => begun,
            Err(report) => {
                let request = envelope.giop;
                return self.returned.push_back(Return { purpose, request, report });
            }
        };
        let trip = ExternalCall {
            purpose,
            server,
            settings,
            message,
            request_id,
            connect_by: now + settings.connect,
            stage: Stage::Connecting,
            framer: framer(&settings),
        };
        self.connect(trip);
    }

    /// The message as the server gets it: with the call's name, which is the same whichever node
    /// makes it, and with what the caller's ORB said when it connected.
    fn message(&self, purpose: Purpose, envelope: &RequestEnvelope) -> Option<(Message, u32)> {
        let message = Message::from_bytes(envelope.giop.clone()).ok()?;
        let Ok(Body::Request(request)) = message.parse() else { return None };
        let mut add: Vec<(u32, &[u8])> = Vec::new();
        let mut drop: Vec<u32> = Vec::new();
        let name = match purpose {
            Purpose::Call(key, _) => Some(self.name(key, envelope.stamp).encode(message.endian())),
            Purpose::Ask(..) => None,
        };
        if let Some(name) = &name {
            drop.push(context::FT_REQUEST);
            add.push((context::FT_REQUEST, name));
        }
        if matches!(purpose, Purpose::Call(_, tries) if tries > 0) {
            add.push((context::CALL_IN_DOUBT, &[]));
        }
        if let Some(code_sets) = &envelope.code_sets {
            drop.push(context::CODE_SETS);
            add.push((context::CODE_SETS, code_sets));
        }
        let rewritten = request.rewrite(&Rewrite {
            response_flags: Some(ResponseFlags::WithTarget),
            drop_contexts: &drop,
            add_contexts: &add,
            ..Rewrite::default()
        });
        Some((rewritten, request.request_id()))
    }

    fn name(&self, key: CallKey, stamp: u64) -> FtRequest {
        let domain = alloc::string::String::from_utf8_lossy(&self.domain);
        let CallKey { caller, during, number } = key;
        let client = format!("{domain}/{}/{}.{:016x}", caller.0, during.count, during.digest);
        FtRequest {
            client_id: client.into_bytes(),
            retention_id: number as i32,
            expiration_time: stamp.saturating_add(EXPIRES_AFTER),
        }
    }

    fn connect(&mut self, trip: ExternalCall) {
        self.last += 1;
        let id = ExternalId(self.last);
        let command = ExternalCommand::Connect { server: trip.server };
        self.out.push_back(Output::ExternalCalls { connection: id, command });
        self.trips.insert(id, ExternalCall { stage: Stage::Connecting, ..trip });
    }

    /// What came of calls.
    pub(crate) fn next_return(&mut self) -> Option<Return> {
        self.returned.pop_front()
    }

    // -- the connections ----------------------------------------------------------------------

    pub(crate) fn connected(&mut self, now: Instant, id: ExternalId) {
        let Some(trip) = self.trips.get_mut(&id) else { return };
        let bytes = trip.message.bytes().clone();
        trip.stage = Stage::Asked { until: now + trip.settings.reply };
        let command = ExternalCommand::Send(bytes);
        self.out.push_back(Output::ExternalCalls { connection: id, command });
    }

    pub(crate) fn received(&mut self, now: Instant, id: ExternalId, bytes: &[u8]) {
        let Some(trip) = self.trips.get_mut(&id) else { return };
        trip.framer.push(bytes);
        let heard = match trip.framer.next() {
            Ok(None) => return,
            Ok(Some(message)) => heard(&message, trip.request_id),
            Err(FrameError::TooLarge { .. } | FrameError::TooMuchBuffered { .. }) => {
                Heard::Report(OutsideReport::Failed(OutsideFailure::TooLarge))
            }
            Err(_) => Heard::Report(OutsideReport::Failed(OutsideFailure::Doubt)),
        };
        let command = ExternalCommand::Close;
        self.out.push_back(Output::ExternalCalls { connection: id, command });
        match heard {
            Heard::Report(report) => self.end(now, id, report),
            Heard::NotExecuted => self.refused(now, id),
        }
    }

    /// It ended, or could not be made.
    pub(crate) fn closed(&mut self, now: Instant, id: ExternalId) {
        match self.trips.get(&id).map(|trip| &trip.stage) {
            Some(Stage::Asked { .. }) => {
                self.end(now, id, OutsideReport::Failed(OutsideFailure::Doubt));
            }
            Some(Stage::Connecting) => self.refused(now, id),
            Some(Stage::Waiting { .. }) | None => {}
        }
    }

    /// The server has surely not executed the call; it may be about to start.
    fn refused(&mut self, now: Instant, id: ExternalId) {
        let Some(trip) = self.trips.get_mut(&id) else { return };
        let again = now + AGAIN_AFTER;
        if again >= trip.connect_by {
            return self.end(now, id, OutsideReport::Failed(OutsideFailure::NotReached));
        }
        trip.framer = framer(&trip.settings);
        trip.stage = Stage::Waiting { again };
    }

    fn end(&mut self, now: Instant, id: ExternalId, report: OutsideReport) {
        let Some(trip) = self.trips.remove(&id) else { return };
        let request = trip.message.bytes().clone();
        self.returned.push_back(Return { purpose: trip.purpose, request, report });
        if let Some((server, purpose, envelope)) = self.queue.pop_front() {
            self.begin(now, server, purpose, envelope);
        }
    }

    // -- time -------------------------------------------------------------------------------

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.trips.values().map(ExternalCall::due).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let due = |(id, trip): (&ExternalId, &ExternalCall)| (trip.due() <= now).then_some(*id);
        let due: Vec<ExternalId> = self.trips.iter().filter_map(due).collect();
        for id in due {
            let Some(trip) = self.trips.get(&id) else { continue };
            let why = match trip.stage {
                Stage::Waiting { .. } => {
                    if let Some(trip) = self.trips.remove(&id) {
                        self.connect(trip);
                    }
                    continue;
                }
                Stage::Connecting => OutsideFailure::NotReached,
                Stage::Asked { .. } => OutsideFailure::Doubt,
            };
            let command = ExternalCommand::Close;
            self.out.push_back(Output::ExternalCalls { connection: id, command });
            self.end(now, id, OutsideReport::Failed(why));
        }
    }
}

impl ExternalCall {
    fn due(&self) -> Instant {
        match self.stage {
            Stage::Waiting { again } => again,
            Stage::Connecting => self.connect_by,
            Stage::Asked { until } => until,
        }
    }
}

enum Heard {
    Report(OutsideReport),
    NotExecuted,
}

fn heard(message: &Message, request_id: u32) -> Heard {
    let failed = |why| Heard::Report(OutsideReport::Failed(why));
    match message.parse() {
        Ok(Body::Reply(reply)) if reply.request_id() == request_id => match reply.status() {
            ReplyStatus::NoException
            | ReplyStatus::UserException
            | ReplyStatus::SystemException => {
                Heard::Report(OutsideReport::Reply(message.bytes().clone()))
            }
            ReplyStatus::LocationForward
            | ReplyStatus::LocationForwardPerm
            | ReplyStatus::NeedsAddressingMode => failed(OutsideFailure::Moved),
        },
        // Whoever closes in this way has not executed what it has not answered (GIOP §15.5.1.1).
        Ok(Body::CloseConnection) => Heard::NotExecuted,
        Ok(Body::MessageError) => failed(OutsideFailure::Rejected),
        Ok(_) | Err(_) => failed(OutsideFailure::Doubt),
    }
}

fn framer(settings: &OutsideSettings) -> Framer {
    let most = settings.replica.reply_bytes_max;
    Framer::new(FramerLimits {
        message_bytes_max: most,
        fragmented_requests_max: 1,
        buffered_bytes_max: most.saturating_add(64 << 10),
    })
}

#[cfg(test)]
mod tests;
