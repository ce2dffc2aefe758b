//! What replicas ask for, carried out: the order, the servers, the disks.

use super::{Cluster, Disk, GROUP, Server, id};
use bytes::Bytes;
use quorba_giop::{Body, Framer, FramerLimits};
use quorba_replica::{
    CatalogRecord, Delivered, GatewayKey, LogRecord, Output, Recovered, ServerCommand,
};

impl Cluster {
    fn enqueue_held(&mut self, index: usize, payload: Bytes) {
        self.enqueue(index, payload);
        self.nodes[index].awaits_held = true;
    }

    /// A majority holds what was ordered, unless the scenario says otherwise.
    pub(super) fn hold(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.nodes.len() {
            if !self.nobody_holds && core::mem::take(&mut self.nodes[index].awaits_held) {
                any = true;
                self.nodes[index].replica.handle_held(self.now, GROUP);
                self.drain(index);
            }
        }
        any
    }

    /// Carries out what the nodes ask for.
    pub fn drain_all(&mut self) {
        (0..self.nodes.len()).for_each(|index| self.drain(index));
    }

    pub(super) fn enqueue(&mut self, index: usize, payload: Bytes) {
        let node = &mut self.nodes[index];
        node.ticket += 1;
        self.order.push_back(Delivered {
            origin: id(index),
            incarnation: node.incarnation,
            ticket: node.ticket,
            payload,
            behind_gap: false,
        });
    }

    /// Here nothing has left before it is delivered.
    fn withdraw(&mut self, index: usize, to: GatewayKey) {
        let node = &mut self.nodes[index];
        let of = |(name, _): &&(GatewayKey, u64)| *name == to;
        let (_, ticket) = *node.ordered.iter().rev().find(of).expect("it was given before");
        let before = self.order.len();
        self.order.retain(|d| (d.origin, d.ticket) != (id(index), ticket));
        if self.order.len() < before {
            node.replica.handle_withdrawn(GROUP);
        }
    }

    fn log(&mut self, index: usize, record: LogRecord) {
        let disk = &mut self.nodes[index].disk;
        disk.records.push(record);
        if !disk.slow {
            self.sync(index);
        }
    }

    fn save_catalog(&mut self, index: usize, record: CatalogRecord) {
        let node = &mut self.nodes[index];
        if node.disk.catalog_is_slow {
            return node.disk.unsynced.push(record);
        }
        node.disk.put(&record);
        node.replica.handle_catalog_saved(record.version);
    }

    /// The disk of a node has what it was given of the catalog.
    pub fn sync_catalog(&mut self, index: usize) {
        self.nodes[index].disk.catalog_is_slow = false;
        for record in core::mem::take(&mut self.nodes[index].disk.unsynced) {
            self.save_catalog(index, record);
        }
        self.drain(index);
    }

    pub(super) fn drain(&mut self, index: usize) {
        while let Some(output) = self.nodes[index].replica.poll() {
            match output {
                Output::Order(payload) => self.enqueue(index, payload),
                Output::OrderHeld { payload, .. } => self.enqueue_held(index, payload),
                Output::BackedUp { result, .. } => self.nodes[index].backups.push(result),
                Output::Restored { result, .. } => self.nodes[index].restored.push(result),
                Output::OrderReply { to, payload, .. } => {
                    self.enqueue(index, payload);
                    let ticket = self.nodes[index].ticket;
                    self.nodes[index].ordered.push((to, ticket));
                }
                Output::Withdraw { to, .. } => self.withdraw(index, to),
                Output::Server { command, .. } => self.command(index, command),
                Output::Peer { to, bytes, .. } => {
                    self.peers.push_back((index, usize::from(to.index()), bytes));
                }
                Output::Reply { number, giop, .. } => {
                    let text = giop.map_or_else(String::new, |giop| reply_text(&giop));
                    self.nodes[index].replies.push((number.0, text));
                }
                Output::Mark { number, payload, .. } => {
                    self.nodes[index].marks.push(number);
                    self.enqueue(index, payload);
                }
                Output::Read { number, giop, .. } => {
                    let text = giop.map_or_else(|| "order it".into(), |giop| reply_text(&giop));
                    self.nodes[index].reads.push((number.0, text));
                }
                Output::Ended { end, .. } => self.nodes[index].ended.push(end),
                // What was read elsewhere meanwhile is what counts here.
                Output::ReadEnded { .. } => {}
                Output::Dropped { number, .. } => self.nodes[index].dropped.push(number.0),
                Output::Resubmit { .. } => self.nodes[index].resubmits += 1,
                Output::Catalog(record) => self.save_catalog(index, record),
                Output::CatalogChanged { result, .. } => self.nodes[index].defined.push(result),
                Output::Defined { id, news, .. } => self.nodes[index].news.push((id, news)),
                Output::Record(record) => self.nodes[index].record = record,
                Output::Event(event) => self.nodes[index].events.push(event),
                Output::Commanded { result, .. } => self.nodes[index].commanded.push(result),
                Output::Log(record) => self.log(index, record),
                Output::Save { group, place, parts } => {
                    let node = &mut self.nodes[index];
                    node.saves.push_back((group, place.record, parts.concat().into()));
                    if !node.saves_long {
                        self.save(index);
                    }
                }
                Output::Logged { number, .. } => self.nodes[index].logged.push(number.0),
                Output::Rebuilt | Output::Outlive(_) => {}
                Output::Shorten { record } => self.shorten(index, record),
                Output::CallOutside { .. }
                | Output::OrderAgain { .. }
                | Output::EndCalls { .. } => {
                    unreachable!("no group calls to the outside")
                }
                Output::LookUp { group, number } => {
                    let node = &mut self.nodes[index];
                    let Disk { records, states, .. } = &node.disk;
                    let (records, states) = (records.clone(), states.clone());
                    let found = Recovered { records, states, ..Recovered::default() };
                    node.looks.push_back(((group, number), found));
                    if !node.looks_long {
                        self.look(index);
                    }
                }
            }
        }
    }

    fn command(&mut self, index: usize, command: ServerCommand) {
        let node = &mut self.nodes[index];
        match command {
            ServerCommand::Connect(channel) => {
                let Some(server) = &mut node.server else { return };
                server.channels.push((channel, framer()));
                node.replica.handle_connected(self.now, GROUP, channel);
            }
            ServerCommand::Send(channel, bytes) => {
                let Some(server) = &mut node.server else { return };
                server.waiting.push_back((channel, bytes));
            }
            ServerCommand::SendAll(channel, pieces) => {
                let Some(server) = &mut node.server else { return };
                server.waiting.extend(pieces.into_iter().map(|bytes| (channel, bytes)));
            }
            ServerCommand::Close(channel) => {
                let Some(server) = &mut node.server else { return };
                server.channels.retain(|(id, _)| *id != channel);
            }
            ServerCommand::Restart(reason) => {
                node.restarts.push(reason);
                node.server = None;
            }
            ServerCommand::Start => self.start_server(index),
            ServerCommand::Stop => node.server = None,
        }
    }

    /// One call of the server at `index`.
    pub fn serve_once(&mut self, index: usize) -> bool {
        self.serve(index)
    }

    /// Lets the server at `index` answer its calls. Whether it did anything.
    pub fn serve(&mut self, index: usize) -> bool {
        let now = self.now;
        let Some(server) = self.nodes[index].server.as_mut().filter(|server| !server.held) else {
            return false;
        };
        let Some((channel, bytes)) = server.waiting.pop_front() else { return false };
        let Some((_, framer)) = server.channels.iter_mut().find(|(id, _)| *id == channel) else {
            return true;
        };
        framer.push(&bytes);
        // A long one comes in pieces.
        let Some(message) = framer.next().unwrap() else { return true };
        let Ok(Body::Request(request)) = message.parse() else { return true };
        if Server::is_of(&server.silent, &request) {
            return true;
        }
        let refuses = request.operation() == b"set_state" && self.nodes[index].refuses > 0;
        self.nodes[index].refuses -= usize::from(refuses);
        let Some(server) = self.nodes[index].server.as_mut() else { return true };
        if refuses || Server::is_of(&server.odd, &request) {
            server.channels.retain(|(id, _)| *id != channel);
            self.nodes[index].replica.handle_disconnected(now, GROUP, channel);
            self.drain(index);
            return true;
        }
        let reply = server.execute(&request);
        self.nodes[index].replica.handle_server_bytes(now, GROUP, channel, &reply);
        self.drain(index);
        true
    }
}

fn framer() -> Framer {
    Framer::new(FramerLimits {
        message_bytes_max: 4 << 20,
        fragmented_requests_max: 1,
        buffered_bytes_max: 8 << 20,
    })
}

fn reply_text(giop: &Bytes) -> String {
    let message = quorba_giop::Message::from_bytes(giop.clone()).unwrap();
    let Ok(Body::Reply(reply)) = message.parse() else { panic!("no reply") };
    if let Some(exception) = reply.system_exception() {
        return format!("exception {exception:?}");
    }
    let text = reply.reader().read_string(1 << 20, "text").unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}
