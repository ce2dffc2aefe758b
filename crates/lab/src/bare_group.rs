//! A group of three without a group: hidden processes that hand every request to three servers,
//! and do nothing else. What is left is what the kernel takes for it, the floor under what a
//! replicated server can do with these clients and servers on this machine.
//!
//! What it is not: fault-tolerant. Nothing is ordered, kept, numbered by who called, encrypted or
//! checked, a datagram that is lost is lost, and whoever misbehaves ends the block.
//!
//! Invariants: like a node, a gateway takes what its clients have sent together, sends it to the
//! followers in one datagram each, and answers a call when its own server has and a follower has
//! said that it holds the request; a follower reads what its server says with its next message.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::net::{RecvFlags, recv};

use crate::bare::{FRAME_LEN_MAX, local, tell_ready};

/// Octets before the requests in a datagram: which call is the first, and which comes next.
const SPAN_LEN: usize = 8;
/// Octets of a GIOP header, and where the request's id stands behind it (GIOP 1.2).
const HEADER_LEN: usize = 12;
const ID: std::ops::Range<usize> = 12..16;
/// More calls than are ever under way.
const CALLS: usize = 4096;
/// What a read takes at most.
const READ_LEN: usize = 1 << 18;
const READY_MAX: usize = 64;

/// What epoll says of the sockets that are not a client's.
const LISTENER: u64 = 0;
const RING: u64 = 1;
const SERVER: u64 = 2;
const FIRST_CLIENT: u64 = 3;

/// A call that was handed on.
#[derive(Default)]
struct Call {
    client: u64,
    /// As the client has it.
    id: [u8; 4],
    /// The server's answer, where a follower has not yet the request.
    reply: Option<Vec<u8>>,
}

struct Gateway {
    epoll: OwnedFd,
    ring: UdpSocket,
    followers: Vec<SocketAddrV4>,
    server: File,
    /// Each with what it has begun to send.
    clients: BTreeMap<u64, (TcpStream, Vec<u8>)>,
    next_client: u64,
    calls: Vec<Call>,
    /// The number of the next call, and of the first that no follower holds.
    next: u32,
    held: u32,
    /// What goes to the followers, and behind its span to the server.
    batch: Vec<u8>,
    from_server: Vec<u8>,
    chunk: Vec<u8>,
}

/// Runs the process where the clients call.
pub(crate) fn gateway(port: u16, ring: u16, server: &str, followers: &[u16]) -> io::Result<()> {
    let listener = TcpListener::bind(local(port))?;
    let ring = UdpSocket::bind(local(ring))?;
    let gateway = Gateway::new(&listener, ring, connect(server)?, followers)?;
    tell_ready()?;
    gateway.serve(&listener)
}

/// Runs one of the other two.
pub(crate) fn follower(ring: u16, server: &str, gateway: u16) -> io::Result<()> {
    let ring = UdpSocket::bind(local(ring))?;
    let server = connect(server)?;
    tell_ready()?;
    follow(&ring, server, local(gateway))
}

/// A server at a port, or at a socket's path.
fn connect(server: &str) -> io::Result<File> {
    let stream: OwnedFd = match server.parse() {
        Ok(port) => {
            let stream = TcpStream::connect(local(port))?;
            stream.set_nodelay(true)?;
            stream.into()
        }
        Err(_) => UnixStream::connect(server)?.into(),
    };
    Ok(stream.into())
}

fn follow(ring: &UdpSocket, mut server: File, gateway: SocketAddrV4) -> io::Result<()> {
    let (mut datagram, mut ignored) = (vec![0; FRAME_LEN_MAX], vec![0; READ_LEN]);
    loop {
        let count = ring.recv(&mut datagram)?;
        ring.send_to(&datagram[..SPAN_LEN.min(count)], gateway)?;
        server.write_all(datagram[..count].get(SPAN_LEN..).unwrap_or_default())?;
        while matches!(recv(&server, &mut ignored[..], RecvFlags::DONTWAIT), Ok((1.., _))) {}
    }
}

/// The length of the GIOP message at the beginning, once it is there.
fn message_len(octets: &[u8]) -> Option<usize> {
    let header = octets.get(..HEADER_LEN)?;
    let size = [header[8], header[9], header[10], header[11]];
    let is_little = header[6] & 1 == 1;
    let size = if is_little { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
    let len = HEADER_LEN + size as usize;
    (len <= octets.len()).then_some(len)
}

impl Gateway {
    fn new(
        listener: &TcpListener,
        ring: UdpSocket,
        server: File,
        followers: &[u16],
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let all = [(listener.as_fd(), LISTENER), (ring.as_fd(), RING), (server.as_fd(), SERVER)];
        for (socket, name) in all {
            epoll::add(&epoll, socket, epoll::EventData::new_u64(name), epoll::EventFlags::IN)?;
        }
        Ok(Self {
            epoll,
            ring,
            followers: followers.iter().map(|port| local(*port)).collect(),
            server,
            clients: BTreeMap::new(),
            next_client: FIRST_CLIENT,
            calls: std::iter::repeat_with(Call::default).take(CALLS).collect(),
            next: 0,
            held: 0,
            batch: vec![0; SPAN_LEN],
            from_server: Vec::new(),
            chunk: vec![0; READ_LEN],
        })
    }

    fn serve(mut self, listener: &TcpListener) -> io::Result<()> {
        let mut events = Vec::with_capacity(READY_MAX);
        loop {
            events.clear();
            epoll::wait(&self.epoll, spare_capacity(&mut events), None)?;
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(listener)?,
                    RING => self.hear()?,
                    SERVER => self.take_replies()?,
                    client => self.take_requests(client)?,
                }
            }
            self.hand_on()?;
        }
    }

    fn accept(&mut self, listener: &TcpListener) -> io::Result<()> {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let name = epoll::EventData::new_u64(self.next_client);
        epoll::add(&self.epoll, &stream, name, epoll::EventFlags::IN)?;
        self.clients.insert(self.next_client, (stream, Vec::new()));
        self.next_client += 1;
        Ok(())
    }

    fn call(&mut self, number: u32) -> &mut Call {
        &mut self.calls[number as usize % CALLS]
    }

    fn take_requests(&mut self, client: u64) -> io::Result<()> {
        let Some((stream, begun)) = self.clients.get_mut(&client) else { return Ok(()) };
        let count = stream.read(&mut self.chunk).unwrap_or(0);
        if count == 0 {
            // Closed, which takes it out of the epoll, too.
            self.clients.remove(&client);
            return Ok(());
        }
        begun.extend_from_slice(&self.chunk[..count]);
        let mut requests = std::mem::take(begun);
        let mut at = 0;
        while let Some(len) = message_len(&requests[at..]) {
            let message = &mut requests[at..at + len];
            at += len;
            // A Request or a LocateRequest; nothing else is answered.
            if !matches!(message[7], 0 | 3) || len < ID.end {
                continue;
            }
            if self.batch.len() + len > FRAME_LEN_MAX {
                self.hand_on()?;
            }
            let mut id = self.next.to_le_bytes();
            message[ID].swap_with_slice(&mut id);
            self.batch.extend_from_slice(message);
            *self.call(self.next) = Call { client, id, reply: None };
            self.next = self.next.wrapping_add(1);
        }
        requests.drain(..at);
        if let Some((_, begun)) = self.clients.get_mut(&client) {
            *begun = requests;
        }
        Ok(())
    }

    fn hand_on(&mut self) -> io::Result<()> {
        if self.batch.len() == SPAN_LEN {
            return Ok(());
        }
        self.batch[4..SPAN_LEN].copy_from_slice(&self.next.to_le_bytes());
        for follower in &self.followers {
            self.ring.send_to(&self.batch, follower)?;
        }
        self.server.write_all(&self.batch[SPAN_LEN..])?;
        self.batch.truncate(SPAN_LEN);
        self.batch[..4].copy_from_slice(&self.next.to_le_bytes());
        Ok(())
    }

    /// A follower has the requests up to some number, as all datagrams arrive in their order.
    fn hear(&mut self) -> io::Result<()> {
        let mut span = [0; SPAN_LEN];
        self.ring.recv(&mut span)?;
        let next = u32::from_le_bytes([span[4], span[5], span[6], span[7]]);
        // The other follower has said so before if it is none of these.
        while next.wrapping_sub(self.held) <= self.next.wrapping_sub(self.held) && self.held != next
        {
            let held = self.held;
            self.held = held.wrapping_add(1);
            let call = self.call(held);
            if let Some(reply) = call.reply.take() {
                let client = call.client;
                self.answer(client, &reply);
            }
        }
        Ok(())
    }

    fn take_replies(&mut self) -> io::Result<()> {
        let count = self.server.read(&mut self.chunk)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.from_server.extend_from_slice(&self.chunk[..count]);
        let mut replies = std::mem::take(&mut self.from_server);
        let mut at = 0;
        while let Some(len) = message_len(&replies[at..]) {
            let message = &mut replies[at..at + len];
            at += len;
            if len < ID.end {
                continue;
            }
            let [a, b, c, d] = [message[12], message[13], message[14], message[15]];
            let number = u32::from_le_bytes([a, b, c, d]);
            let is_held = self.next.wrapping_sub(self.held) < self.next.wrapping_sub(number);
            let call = self.call(number);
            message[ID].copy_from_slice(&call.id);
            if is_held {
                let client = call.client;
                self.answer(client, message);
            } else {
                call.reply = Some(message.to_vec());
            }
        }
        replies.drain(..at);
        self.from_server = replies;
        Ok(())
    }

    fn answer(&mut self, client: u64, reply: &[u8]) {
        // A client that has gone wants no answer.
        if let Some((stream, _)) = self.clients.get_mut(&client) {
            let _gone = stream.write_all(reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A GIOP 1.2 message of this type, little-endian, with a body of `len` octets.
    fn message(kind: u8, id: u32, len: u32) -> Vec<u8> {
        let mut octets = b"GIOP\x01\x02\x01".to_vec();
        octets.push(kind);
        octets.extend(len.to_le_bytes());
        octets.extend(id.to_le_bytes());
        octets.resize(HEADER_LEN + len as usize, 7);
        octets
    }

    /// Answers each request by what it said, as a Reply.
    fn serve(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().expect("one comes");
        let mut octets = [0; HEADER_LEN + 1000];
        while stream.read_exact(&mut octets).is_ok() {
            octets[7] = 1;
            stream.write_all(&octets).expect("taken");
        }
    }

    #[test]
    fn each_client_gets_its_own_answers_under_its_own_ids() {
        let listen = || TcpListener::bind(local(0)).expect("a free port");
        let bind = || UdpSocket::bind(local(0)).expect("a free port");
        let rings = [bind(), bind(), bind()];
        let ports = rings.each_ref().map(|one| one.local_addr().expect("bound").port());
        let mut servers = [(); 3].map(|()| {
            let listener = listen();
            let port = listener.local_addr().expect("bound").port();
            // They run as long as the test's process does.
            thread::spawn(move || serve(&listener));
            connect(&port.to_string()).expect("it listens")
        });
        let clients = listen();
        let port = clients.local_addr().expect("bound").port();
        let [ring, others @ ..] = rings;
        let [own, servers @ ..] = &mut servers;
        for (other, server) in others.into_iter().zip(servers) {
            let server = server.try_clone().expect("a handle");
            thread::spawn(move || follow(&other, server, local(ports[0])));
        }
        let own = own.try_clone().expect("a handle");
        thread::spawn(move || Gateway::new(&clients, ring, own, &ports[1..])?.serve(&clients));
        let mut streams = [(); 2].map(|()| TcpStream::connect(local(port)).expect("it listens"));
        for turn in 0..50 {
            for (stream, id) in streams.iter_mut().zip([turn, turn + 1]) {
                // Two at once, the second in two parts.
                let both = [message(0, id, 1000), message(0, id + 1000, 1000)].concat();
                stream.write_all(&both[..1500]).expect("sent");
                stream.write_all(&both[1500..]).expect("sent");
            }
            for (stream, id) in streams.iter_mut().zip([turn, turn + 1]) {
                for id in [id, id + 1000] {
                    let mut answer = vec![0; HEADER_LEN + 1000];
                    stream.read_exact(&mut answer).expect("answered");
                    assert_eq!(answer, message(1, id, 1000));
                }
            }
        }
    }

    #[test]
    fn a_message_is_there_when_all_of_it_is() {
        let whole = message(0, 1, 100);
        assert_eq!(message_len(&whole), Some(112));
        assert_eq!(message_len(&whole[..111]), None);
        assert_eq!(message_len(&whole[..11]), None);
        let mut big = whole;
        big[6] = 0;
        big[8..12].copy_from_slice(&50u32.to_be_bytes());
        assert_eq!(message_len(&big), Some(62));
    }
}
