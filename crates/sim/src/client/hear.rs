//! What a client makes of what it hears: replies, refusals, goodbyes and broken connections.
//!
//! Invariant: every call ends in the ledger exactly as a real client would see it end.

use super::{Link, Task};
use crate::check::endings::end_of;
use crate::ledger::Outcome;
use crate::servant::{Mark, Wish};
use crate::stream::{Segment, Side, StreamId};
use crate::world::World;
use bytes::Bytes;
use quorba_engine::replica::{Concurrency, ReadConsistency};
use quorba_giop::{
    Body, Completion, ExceptionKind, Message, MinorCode, ReplyStatus, Version, build,
};

impl World {
    pub(crate) fn client_hears(&mut self, id: StreamId, client: usize, segment: Segment) {
        let mine = match &self.clients[client].link {
            Link::Connecting { stream, .. } | Link::Up { stream, .. } => *stream == id,
            Link::Down { .. } => false,
        };
        if !mine {
            if matches!(segment, Segment::End | Segment::Reset | Segment::Refused) {
                self.streams.remove(&id);
            }
            return;
        }
        match segment {
            Segment::Accepted => {
                let framer = crate::server::Server::framer();
                self.clients[client].link = Link::Up { stream: id, framer };
            }
            Segment::Bytes(bytes) => self.client_bytes(client, &bytes),
            Segment::Refused => {
                self.streams.remove(&id);
                self.move_on(client);
            }
            Segment::End | Segment::Reset => {
                self.send(id, Side::Caller, Segment::End);
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.hear_no_more(Side::Caller);
                }
                self.client_lost(client, false);
            }
            Segment::Open => {}
        }
        self.step_client(client);
    }

    fn client_bytes(&mut self, client: usize, bytes: &Bytes) {
        let Link::Up { framer, .. } = &mut self.clients[client].link else { return };
        framer.push(bytes);
        loop {
            let Link::Up { framer, .. } = &mut self.clients[client].link else { return };
            match framer.next() {
                Ok(None) => return,
                Ok(Some(message)) => self.client_message(client, &message),
                Err(error) => {
                    let text = format!("c{client} got what is no GIOP: {error}");
                    self.checks.violate("replies", self.now, text);
                    return;
                }
            }
        }
    }

    fn client_message(&mut self, client: usize, message: &Message) {
        match message.parse() {
            Ok(Body::Reply(reply)) => {
                let id = reply.request_id();
                if self.clients[client].cancelled.remove(&id) {
                    return;
                }
                let Some(task) = self.clients[client].open.remove(&id) else {
                    let text = format!("c{client} got a reply to {id}, which is not open");
                    self.checks.violate("replies", self.now, text);
                    return;
                };
                match (reply.status(), reply.system_exception()) {
                    (ReplyStatus::NoException, _) if task.wish == Wish::Last => {
                        let value = reply.reader().read_u64("value").unwrap_or(u64::MAX);
                        self.transcript.mix(value);
                        let at = self.now;
                        self.ledger.close(task.reference, Outcome::Read { value, at });
                    }
                    (ReplyStatus::NoException, _) => {
                        let mut reader = reply.reader();
                        let length = reader.read_u64("length").unwrap_or(u64::MAX);
                        let digest = reader.read_u64("digest").unwrap_or(0);
                        self.acknowledge(client, &task, Mark { length, digest });
                    }
                    (_, Some(Ok(exception))) if let Some(code) = end_of(&exception) => {
                        self.call_ended(client, task, code);
                    }
                    // It is over, and nobody knows more.
                    (_, Some(Ok(exception))) if exception.kind == ExceptionKind::Internal => {
                        self.ledger.close(task.reference, Outcome::Unknown);
                    }
                    // There is no room to remember it; another copy of it may still come and find
                    // some.
                    (_, Some(Ok(exception))) if exception.kind == ExceptionKind::NoResources => {
                        self.ledger.close(task.reference, Outcome::Unknown);
                    }
                    (_, Some(Ok(exception))) => {
                        self.client_refused(client, task, exception.completed);
                    }
                    (ReplyStatus::UserException, _) if task.depth > 0 => {
                        self.client_refused(client, task, Completion::No);
                    }
                    _ => {
                        let text = format!("c{client} got a reply that nobody gives");
                        self.checks.violate("replies", self.now, text);
                    }
                }
            }
            Ok(Body::CloseConnection) => {
                let stream = self.clients[client].stream();
                if let Some(stream) = stream {
                    self.send(stream, Side::Caller, Segment::End);
                    if let Some(stream) = self.streams.get_mut(&stream) {
                        stream.hear_no_more(Side::Caller);
                    }
                }
                self.client_lost(client, true);
            }
            _ => {
                let text = format!("c{client} got {:?} from a gateway", message.message_type());
                self.checks.violate("replies", self.now, text);
            }
        }
    }

    fn acknowledge(&mut self, client: usize, task: &Task, mark: Mark) {
        let (now, reference) = (self.now, task.reference);
        self.transcript.mix(mark.digest);
        self.transcript.whisper(now, || {
            format!("c{client} {:x} acknowledged at {}", reference.0, mark.length)
        });
        self.ledger.close(reference, Outcome::Acknowledged { mark, at: now });
        let call = self.ledger.calls[&reference].clone();
        let target = &self.clients[client];
        self.note_time(&call, target.gateways[target.gateway]);
        self.note_no_end(reference, &call);
        self.check_depth(reference, &call, task.depth);
        self.note_beginning(call.group, mark);
        let is_doubtful = self.is_doubtful(reference, call.group);
        // What a reply says of all objects together is another thing at each member.
        if self.plan.groups[call.group].concurrency != Concurrency::PerObject && !is_doubtful {
            let target = &self.clients[client];
            let weaker = self.plan.groups[call.group].reads == Some(ReadConsistency::Sequential);
            let weaker = weaker.then(|| target.gateways[target.gateway]);
            self.checks.acknowledged(now, reference, &call, mark, weaker);
        }
    }

    /// No server has answered, and none will.
    fn call_ended(&mut self, client: usize, task: Task, code: MinorCode) {
        let call = self.ledger.calls[&task.reference].clone();
        self.note_end(task.reference, &call, code);
        if call.named && !task.doubts && self.clients[client].rng.per_mille(500) {
            // Whoever asks again, and wherever, is told the same.
            if self.clients[client].rng.per_mille(500) {
                self.leave_gateway(client);
            }
            return self.repeat(client, Task { doubts: true, ..task });
        }
        let is_no = code == MinorCode::NeverTaken;
        self.ledger.close(task.reference, if is_no { Outcome::Refused } else { Outcome::Unknown });
    }

    fn client_refused(&mut self, client: usize, mut task: Task, completed: Completion) {
        if task.depth > 1 && self.clients[client].rng.per_mille(500) {
            // With fewer it may be content.
            task.depth -= 1;
        }
        let call = &self.ledger.calls[&task.reference];
        let repeats = self.clients[client].plan.repeats;
        match completed {
            _ if call.named => {
                // Another gateway may know more.
                if self.clients[client].rng.per_mille(300) {
                    self.leave_gateway(client);
                }
                self.repeat(client, task);
            }
            Completion::No if repeats => self.repeat(client, task),
            Completion::No => self.ledger.close(task.reference, Outcome::Refused),
            Completion::Maybe => self.ledger.close(task.reference, Outcome::Unknown),
            Completion::Yes => {
                let text = format!("c{client} was told COMPLETED_YES without a result");
                self.checks.violate("replies", self.now, text);
            }
        }
    }

    /// Closes the connection and goes to the next gateway; only with nothing open.
    fn leave_gateway(&mut self, client: usize) {
        if !self.clients[client].open.is_empty() {
            return;
        }
        if let Some(stream) = self.clients[client].stream() {
            let version = self.clients[client].dialect().version;
            if version >= Version::V1_2 {
                // Before GIOP 1.2 only servers say it.
                let goodbye = build::close_connection(version).bytes().clone();
                self.send(stream, Side::Caller, Segment::Bytes(goodbye));
            }
            self.send(stream, Side::Caller, Segment::End);
            if let Some(stream) = self.streams.get_mut(&stream) {
                stream.hear_no_more(Side::Caller);
            }
            self.move_on(client);
        }
    }
    /// The client does not want one of its replies any more.
    pub(crate) fn cancel_call(&mut self, client: usize, stream: StreamId) {
        let target = &mut self.clients[client];
        let Some((id, task)) = target.open.pop_first() else { return };
        let dialect = target.dialect();
        self.say(|| format!("FAULT c{client} cancels {:x}", task.reference.0));
        let cancel = build::cancel_request(dialect.version, dialect.endian, id);
        self.send(stream, Side::Caller, Segment::Bytes(cancel.bytes().clone()));
        // A reply may be on its way already; an ORB drops what it did not ask for.
        self.clients[client].cancelled.insert(id);
        self.ledger.close(task.reference, Outcome::Unknown);
    }
}
