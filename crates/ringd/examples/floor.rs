//! What the kernel alone takes for the hops of an agreed and of a safe message: the same wake-ups
//! and system calls, without any protocol.
//!
//! `cargo run --release -p quorba-ringd --example floor` prints medians in microseconds. Agreed:
//! program, daemon, program. Safe: program, daemon, both other nodes, daemon, program.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

const MESSAGE_BYTES: usize = 1_024;
/// A token, or a word that a message has been received.
const ANSWER_BYTES: usize = 120;
const OTHERS: usize = 2;
const TURNS: usize = 20_000;

/// Waits as a process that has many descriptors does, and does not spin.
fn wait(fd: impl AsFd) {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    while poll(&mut fds, None).is_err() {}
}

/// A node that answers every datagram.
fn node() -> io::Result<SocketAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = socket.local_addr()?;
    thread::spawn(move || -> io::Result<()> {
        let mut buffer = [0; MESSAGE_BYTES];
        loop {
            wait(&socket);
            let (_, from) = socket.recv_from(&mut buffer)?;
            socket.send_to(&buffer[..ANSWER_BYTES], from)?;
        }
    });
    Ok(address)
}

/// The daemon: gives every message back, when the others have answered if there are any.
fn daemon(mut program: UnixStream, others: Vec<SocketAddr>) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut buffer = [0; MESSAGE_BYTES];
    let mut answer = [0; ANSWER_BYTES];
    loop {
        wait(&program);
        program.read_exact(&mut buffer)?;
        for other in &others {
            socket.send_to(&buffer, other)?;
        }
        for _ in &others {
            wait(&socket);
            socket.recv_from(&mut answer)?;
        }
        program.write_all(&buffer)?;
    }
}

/// The median time of a message there and back.
fn median_us(others: Vec<SocketAddr>) -> io::Result<f64> {
    let (mut near, far) = UnixStream::pair()?;
    thread::spawn(move || daemon(far, others));
    let mut buffer = [0; MESSAGE_BYTES];
    let mut times = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let begin = Instant::now();
        near.write_all(&buffer)?;
        wait(&near);
        near.read_exact(&mut buffer)?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(times[TURNS / 2].as_secs_f64() * 1e6)
}

fn main() -> io::Result<()> {
    for round in 1..=5 {
        let agreed = median_us(Vec::new())?;
        let others = (0..OTHERS).map(|_| node()).collect::<io::Result<_>>()?;
        let safe = median_us(others)?;
        let ratio = safe / agreed;
        println!("round {round}: agreed {agreed:.1} us, safe {safe:.1} us, {ratio:.2} times");
    }
    Ok(())
}
