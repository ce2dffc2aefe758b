//! A network between the nodes of a domain that all run on one machine: every datagram of the ring
//! takes a while, and longer ones take longer.
//!
//! What it is not: a model of loss, of collisions or of switches' queues. It is a full-duplex link
//! to every node, as with an Ethernet switch.
//!
//! Invariant: datagrams to one node arrive in the order in which they were sent.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::set_current_timer_slack;
use serde::Deserialize;

use crate::bare::{FRAME_LEN_MAX, tell_ready};

/// Octets of an Ethernet frame, with preamble and gap, beside a UDP payload in IPv4.
const FRAME_OVERHEAD_LEN: usize = 66;
/// Longest hop: beyond it the ring would take it for a failure.
pub(crate) const HOP_US_MAX: u32 = 10_000;

/// How long datagrams take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args, Deserialize)]
#[serde(deny_unknown_fields)]
#[group(skip)]
pub struct Wire {
    /// From node to node, however short.
    #[arg(long)]
    pub hop_us: u32,
    /// So many megabits a second enter a node.
    #[arg(long)]
    pub mbit_s: u32,
}

impl Wire {
    /// How long a datagram occupies the link to its receiver.
    fn occupies(self, payload_len: usize) -> Duration {
        let bits = (payload_len + FRAME_OVERHEAD_LEN) as u64 * 8;
        Duration::from_nanos(bits * 1_000 / u64::from(self.mbit_s))
    }
}

/// Where others send to for the node at `index`, counted from 0; the node itself listens on
/// 127.0.0.1, at the same port.
pub(crate) fn outside(index: usize) -> Ipv4Addr {
    let last = u8::try_from(index + 1).expect("a domain has few nodes");
    Ipv4Addr::new(127, 0, 1, last)
}

/// One node's link.
struct Link {
    socket: UdpSocket,
    node: SocketAddrV4,
    /// When the last datagram on its way will have entered.
    free_at: Instant,
    /// What is on its way, and when it arrives.
    on_its_way: VecDeque<(Instant, Vec<u8>)>,
}

/// Carries datagrams to the nodes at `ports` until this process is ended.
pub(crate) fn run(wire: Wire, ports: &[u16]) -> io::Result<()> {
    let mut links = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let socket = UdpSocket::bind((outside(index), *port))?;
        socket.set_nonblocking(true)?;
        let node = SocketAddrV4::new(Ipv4Addr::LOCALHOST, *port);
        links.push(Link { socket, node, free_at: Instant::now(), on_its_way: VecDeque::new() });
    }
    // Else the kernel may let each pause last 50 µs longer.
    set_current_timer_slack(NonZeroU64::new(1))?;
    tell_ready()?;
    let mut frame = vec![0; FRAME_LEN_MAX];
    loop {
        let now = Instant::now();
        links.iter_mut().for_each(|link| link.deliver(now));
        let next = links.iter().filter_map(|link| Some(link.on_its_way.front()?.0)).min();
        let wait = next.map(|at| at.saturating_duration_since(now));
        let wait = wait.map(|wait| Timespec::try_from(wait).expect("a short time"));
        let mut sockets: Vec<PollFd<'_>> =
            links.iter().map(|link| PollFd::new(&link.socket, PollFlags::IN)).collect();
        match poll(&mut sockets, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for link in &mut links {
            link.take_in(wire, &mut frame)?;
        }
    }
}

impl Link {
    fn take_in(&mut self, wire: Wire, frame: &mut [u8]) -> io::Result<()> {
        loop {
            match self.socket.recv(frame) {
                Ok(count) => {
                    let starts = self.free_at.max(Instant::now());
                    self.free_at = starts + wire.occupies(count);
                    let arrives = self.free_at + Duration::from_micros(wire.hop_us.into());
                    self.on_its_way.push_back((arrives, frame[..count].to_vec()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The node has gone, and the system says so a datagram late.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn deliver(&mut self, now: Instant) {
        while let Some((_, datagram)) = self.on_its_way.pop_front_if(|(at, _)| *at <= now) {
            // What a node does not take is lost, as on any network.
            let _lost = self.socket.send_to(&datagram, self.node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_datagrams_take_longer() {
        let wire = Wire { hop_us: 30, mbit_s: 100 };
        assert_eq!(wire.occupies(34), Duration::from_micros(8));
        assert_eq!(wire.occupies(1_184), Duration::from_micros(100));
    }

    #[test]
    fn what_is_sent_arrives_in_order_and_not_at_once() {
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let node = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.set_nonblocking(true).expect("set");
        let port = node.local_addr().expect("bound").port();
        let outside = socket.local_addr().expect("bound");
        let began = Instant::now();
        let mut link = Link {
            socket,
            node: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
            free_at: began,
            on_its_way: VecDeque::new(),
        };
        sender.send_to(&[1; 1_184], outside).expect("sent");
        sender.send_to(&[2; 34], outside).expect("sent");
        let wire = Wire { hop_us: 1_000, mbit_s: 100 };
        let mut frame = vec![0; FRAME_LEN_MAX];
        while link.on_its_way.len() < 2 {
            link.take_in(wire, &mut frame).expect("taken in");
        }
        let due: Vec<Instant> = link.on_its_way.iter().map(|(at, _)| *at).collect();
        assert!(due[0] >= began + Duration::from_micros(1_100));
        assert!(due[1] >= due[0] + Duration::from_micros(8), "behind the other");
        link.deliver(due[0]);
        assert_eq!(link.on_its_way.len(), 1, "its time has not come");
        link.deliver(due[1]);
        let mut first = [0; 2_000];
        assert_eq!(node.recv(&mut first).expect("received"), 1_184);
        assert_eq!(node.recv(&mut first).expect("received"), 34);
    }
}
