//! Virtual TCP between clients, gateways and servers: who gets what, and when.
//!
//! Invariant: a segment for a process that is gone is answered by its kernel, if that has power.

use crate::event::Event;
use crate::host::Input;
use crate::stream::{Callee, Caller, Segment, Side, Stream, StreamId};
use crate::world::{World, us};
use bytes::Bytes;
use quorba_base::Instant;

/// The most pieces that one write is chopped into.
const PIECES_MAX: usize = 48;

impl World {
    /// A new stream; its `Open` is on the way.
    pub(crate) fn connect(&mut self, caller: Caller, callee: Callee, chopped: bool) -> StreamId {
        let id = StreamId(self.next_stream);
        self.next_stream += 1;
        self.streams.insert(id, Stream::new(caller, callee, chopped));
        self.send(id, Side::Caller, Segment::Open);
        id
    }

    /// Sends something from one side of a stream to the other.
    pub(crate) fn send(&mut self, id: StreamId, from: Side, segment: Segment) {
        let Some(stream) = self.streams.get(&id) else { return };
        match segment {
            // Behind half a message it would be the rest of that one.
            Segment::Bytes(_) if stream.is_over && from == Side::Caller => {}
            Segment::Bytes(bytes) if stream.chopped && bytes.len() > 1 => {
                for piece in self.chop(bytes) {
                    self.send_piece(id, from, Segment::Bytes(piece));
                }
            }
            segment => self.send_piece(id, from, segment),
        }
    }

    fn chop(&mut self, bytes: Bytes) -> Vec<Bytes> {
        let least = bytes.len().div_ceil(PIECES_MAX);
        let most = (bytes.len() / 2).max(least);
        let mut rest = bytes;
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let length = self.rng.between(least as u64, most as u64) as usize;
            pieces.push(rest.split_to(length.min(rest.len())));
        }
        pieces
    }

    fn send_piece(&mut self, id: StreamId, from: Side, segment: Segment) {
        let stream = &self.streams[&id];
        let local = matches!(stream.caller, Caller::Node { .. } | Caller::Server { .. });
        let delay = if local { self.rng.between(5, 40) } else { self.rng.between(30, 200) };
        let mut at = self.now + us(delay);
        if let Callee::Gateway { node, .. } = stream.callee
            && !local
            && self.stalled_until[node] > self.now
        {
            at = at.max(self.stalled_until[node]);
        }
        let to = from.other();
        // What a process on the same machine has written can be read, whatever comes behind it. On
        // the way between machines it may be lost, and not sent again.
        let is_apart = match stream.caller {
            Caller::Node { group, .. } => self.group_plan(group).foreign,
            _ => true,
        };
        let overtakes = matches!(segment, Segment::Reset) && is_apart;
        let stream = self.streams.get_mut(&id).expect("looked up above");
        let at = if overtakes { at } else { stream.in_order(to, at) };
        self.queue.push(at, Event::Segment { id, to, segment });
    }

    /// A segment arrives.
    pub(crate) fn segment(&mut self, id: StreamId, to: Side, segment: Segment) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if to == Side::Callee && stream.paused && !matches!(segment, Segment::Reset) {
            stream.held.push_back(segment);
            return;
        }
        if matches!(segment, Segment::Open | Segment::Refused | Segment::End | Segment::Reset) {
            self.transcript.whisper(self.now, || format!("s{} {}", id.0, segment.name()));
        }
        match to {
            Side::Callee => match self.streams[&id].callee {
                Callee::Gateway { node, boot, group } => match segment {
                    Segment::Open => self.open_gateway(id, node, group),
                    segment => self.gateway_hears(id, node, boot, segment),
                },
                Callee::Server(server) => self.server_hears(id, server, segment),
                Callee::Outsider(outsider) => self.outsider_hears(id, outsider, segment),
            },
            Side::Caller => match self.streams[&id].caller {
                Caller::Client(client) => self.client_hears(id, client, segment),
                Caller::Server { server, .. } => self.caller_hears(id, server, segment),
                Caller::Stranger => {
                    if matches!(segment, Segment::Refused | Segment::End | Segment::Reset) {
                        self.streams.remove(&id);
                    }
                }
                Caller::ExternalCalls { node, boot, connection } => {
                    if self.hosts[node].boot != boot || !self.hosts[node].is_up() {
                        self.streams.remove(&id);
                        return;
                    }
                    self.external_hears(id, node, connection, segment);
                }
                Caller::Node { node, boot, group, channel } => {
                    if self.hosts[node].boot != boot || !self.hosts[node].is_up() {
                        self.streams.remove(&id);
                        return;
                    }
                    self.node_hears(id, node, group, channel, segment);
                }
            },
        }
    }

    fn open_gateway(&mut self, id: StreamId, node: usize, group: quorba_engine::replica::GroupId) {
        if !self.hosts[node].powered {
            return;
        }
        let caller = match self.streams[&id].caller {
            Caller::Server { group, .. } => Some(group),
            _ => None,
        };
        if !self.gateway_accepts(node, group, caller.is_some()) {
            self.send(id, Side::Callee, Segment::Refused);
            return;
        }
        let boot = Some(self.hosts[node].boot);
        self.streams.get_mut(&id).expect("it is opening").callee =
            Callee::Gateway { node, boot, group };
        self.send(id, Side::Callee, Segment::Accepted);
        self.deliver(
            node,
            match caller {
                Some(caller) => Input::CallOpened(id, caller, group),
                None => Input::ClientOpened(id, group),
            },
        );
    }

    fn gateway_hears(&mut self, id: StreamId, node: usize, boot: Option<u64>, segment: Segment) {
        let host = &self.hosts[node];
        if !host.powered {
            // TCP sends it again until somebody answers.
            let again = self.now + crate::world::ms(400);
            self.queue.push(again, Event::Segment { id, to: Side::Callee, segment });
            return;
        }
        if !host.is_up() || Some(host.boot) != boot {
            self.send(id, Side::Callee, Segment::Reset);
            return;
        }
        if self.streams[&id].is_deaf(Side::Callee) {
            if matches!(segment, Segment::End | Segment::Reset) {
                self.streams.remove(&id);
            }
            return;
        }
        match segment {
            Segment::Bytes(bytes) => self.deliver(node, Input::ClientBytes(id, bytes)),
            Segment::End | Segment::Reset => {
                self.streams.remove(&id);
                self.deliver(node, Input::ClientClosed(id));
            }
            Segment::Open | Segment::Accepted | Segment::Refused => {}
        }
    }

    fn node_hears(
        &mut self,
        id: StreamId,
        node: usize,
        group: quorba_engine::replica::GroupId,
        channel: quorba_engine::replica::ChannelId,
        segment: Segment,
    ) {
        if self.streams[&id].is_deaf(Side::Caller) {
            return;
        }
        match segment {
            Segment::Accepted => self.deliver(node, Input::ServerConnected(group, channel)),
            Segment::Bytes(bytes) => {
                self.deliver(node, Input::ServerBytes(group, channel, bytes));
            }
            Segment::Refused | Segment::End | Segment::Reset => {
                self.streams.remove(&id);
                self.deliver(node, Input::ServerClosed(group, channel));
            }
            Segment::Open => {}
        }
    }

    /// The gateway reads on: soon, because the engine is in the middle of its outputs.
    pub(crate) fn resume(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.resuming = true;
        self.queue.push(self.now, Event::Resume { id });
    }

    pub(crate) fn resumed(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !std::mem::take(&mut stream.resuming) {
            return;
        }
        stream.paused = false;
        // If the gateway has enough again meanwhile, the rest is held again, in its order.
        for segment in std::mem::take(&mut stream.held) {
            self.segment(id, Side::Callee, segment);
        }
    }

    /// A node's process is gone: its kernel resets its streams, unless that is gone too.
    pub(crate) fn forget_streams_of(&mut self, node: usize, silent: bool) {
        let mine: Vec<(StreamId, Side)> = self
            .streams
            .iter()
            .filter_map(|(id, stream)| match (stream.caller, stream.callee) {
                (Caller::Node { node: n, .. } | Caller::ExternalCalls { node: n, .. }, _)
                    if n == node =>
                {
                    Some((*id, Side::Caller))
                }
                (_, Callee::Gateway { node: n, boot: Some(_), .. }) if n == node => {
                    Some((*id, Side::Callee))
                }
                _ => None,
            })
            .collect();
        for (id, side) in mine {
            let stream = self.streams.get_mut(&id).expect("just listed");
            stream.hear_no_more(side);
            stream.paused = false;
            stream.held.clear();
            if !silent || side == Side::Caller {
                let segment = if self.rng.per_mille(500) { Segment::Reset } else { Segment::End };
                self.send(id, side, segment);
            }
        }
    }

    /// A client's traffic with `node` stands still until `until`.
    pub(crate) fn stall(&mut self, node: usize, until: Instant) {
        self.stalled_until[node] = until;
    }
}
