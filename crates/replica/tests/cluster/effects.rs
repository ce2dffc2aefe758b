//! What replicas ask for, carried out: the order, the servers, the disks.

use super::{Cluster, Disk, GROUP, Server, id};
use bytes::Bytes;
use quorba_giop::{Body, Framer, FramerLimits};
use quorba_replica::{
    CatalogRecord, Delivered, DriverOutput, GatewayKey, GatewayOutput, LogOutput, LogRecord,
    OrderOutput, Output, Recovered, ServerCommand,
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
                Output::Order(output) => self.give_order(index, output),
                Output::Gateway(output) => self.tell_gateway(index, output),
                Output::Driver(output) => self.carry_out(index, output),
                Output::Event(event) => self.nodes[index].events.push(event),
            }
        }
    }

    fn give_order(&mut self, index: usize, output: OrderOutput) {
        match output {
            OrderOutput::Submit(payload) => self.enqueue(index, payload),
            OrderOutput::SubmitHeld { payload, .. } => self.enqueue_held(index, payload),
            OrderOutput::SubmitReply { to, payload, .. } => {
                self.enqueue(index, payload);
                let ticket = self.nodes[index].ticket;
                self.nodes[index].ordered.push((to, ticket));
            }
            OrderOutput::Withdraw { to, .. } => self.withdraw(index, to),
        }
    }

    fn tell_gateway(&mut self, index: usize, output: GatewayOutput) {
        let node = &mut self.nodes[index];
        match output {
            GatewayOutput::Reply { number, giop, .. } => {
                let text = giop.map_or_else(String::new, |giop| reply_text(&giop));
                node.replies.push((number.0, text));
            }
            GatewayOutput::Mark { number, payload, .. } => {
                node.marks.push(number);
                self.enqueue(index, payload);
            }
            GatewayOutput::Read { number, giop, ended, .. } => {
                node.ended_reads.extend(ended.then_some(number.0));
                let text = giop.map_or_else(|| "order it".into(), |giop| reply_text(&giop));
                node.reads.push((number.0, text));
            }
            GatewayOutput::Ended { end, .. } => node.ended.push(end),
            // What was read elsewhere meanwhile is what counts here.
            GatewayOutput::ReadEnded { .. } | GatewayOutput::References => {}
            GatewayOutput::Dropped { number, .. } => node.dropped.push(number.0),
            GatewayOutput::Resubmit { .. } => node.resubmits += 1,
            GatewayOutput::Logged { number, .. } => node.logged.push(number.0),
            GatewayOutput::CallOutside { .. }
            | GatewayOutput::OrderAgain { .. }
            | GatewayOutput::EndCalls { .. } => {
                unreachable!("no group calls to the outside")
            }
            GatewayOutput::Executed { .. } => unreachable!("nobody asks for a depth"),
        }
    }

    fn carry_out(&mut self, index: usize, output: DriverOutput) {
        let node = &mut self.nodes[index];
        match output {
            DriverOutput::Server { group: GROUP, command } => self.command(index, command),
            // Servers of others are not on this stage.
            DriverOutput::Server { .. } => {}
            DriverOutput::Peer { to, bytes, .. } => {
                self.peers.push_back((index, usize::from(to.index()), bytes));
            }
            DriverOutput::PersistPrimary(record) => node.record = record,
            DriverOutput::Catalog(record) => self.save_catalog(index, record),
            DriverOutput::Log(output) => self.write_log(index, output),
            DriverOutput::FreeLater(_) => {}
            DriverOutput::Defined { id, news, .. } => node.news.push((id, news)),
            DriverOutput::CatalogChanged { result, .. } => node.defined.push(result),
            DriverOutput::Commanded { result, .. } => node.commanded.push(result),
            DriverOutput::BackedUp { result, .. } => node.backups.push(result),
            DriverOutput::Restored { result, .. } => node.restored.push(result),
        }
    }

    fn write_log(&mut self, index: usize, output: LogOutput) {
        let node = &mut self.nodes[index];
        match output {
            LogOutput::Append(record) => self.log(index, record),
            LogOutput::Save { group, place, parts } => {
                node.saves.push_back((group, place.record, parts.concat().into()));
                if !node.saves_long {
                    self.save(index);
                }
            }
            LogOutput::LookUp { group, number } => {
                let Disk { records, states, .. } = &node.disk;
                let (records, states) = (records.clone(), states.clone());
                let found = Recovered { records, states, ..Recovered::default() };
                node.looks.push_back(((group, number), found));
                if !node.looks_long {
                    self.look(index);
                }
            }
            LogOutput::Compact { record } => self.compact(index, record),
            LogOutput::Rebuilt => {}
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
