//! A bare copy over the link that the nodes use: one TCP connection from the donor's address to the
//! joiner's.
//!
//! What it is not: clever. Large reads and writes, nothing done with what comes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use super::trial::{DONOR, JOINER};
use crate::namespaces::{self, Namespaces};
use crate::place::Place;

const PIECE_BYTES: usize = 1 << 20;
/// Less would measure the connection's beginning.
const BYTES_MIN: u64 = 64 << 20;

/// Bytes a second of a copy of `bytes`, and of no less than 64 MiB, over the nodes' cables if they
/// have `cables`.
pub(super) fn rate(bytes: u64, cables: Option<&Namespaces>) -> Result<f64, String> {
    let failed = |error: io::Error| format!("the raw copy: {error}");
    let place = |index| cables.map_or(Place::Here, |cables| cables.node(index));
    let host = cables.map_or_else(|| Ipv4Addr::LOCALHOST.to_string(), |_| namespaces::host(JOINER));
    let listen = || TcpListener::bind((&*host, 0)).map_err(failed);
    let listener = place(JOINER).run(listen)?;
    let to = listener.local_addr().map_err(failed)?;
    let to = place(DONOR).run(|| TcpStream::connect(to).map_err(failed))?;
    let (from, _) = listener.accept().map_err(failed)?;
    copy(bytes.max(BYTES_MIN), from, to).map_err(failed)
}

fn copy(bytes: u64, mut from: TcpStream, mut to: TcpStream) -> io::Result<f64> {
    let began = Instant::now();
    let sender = thread::spawn(move || -> io::Result<()> {
        let piece = vec![0x5a; PIECE_BYTES];
        let mut left = bytes;
        while left > 0 {
            let count = left.min(PIECE_BYTES as u64) as usize;
            to.write_all(&piece[..count])?;
            left -= count as u64;
        }
        Ok(())
    });
    let mut room = vec![0; PIECE_BYTES];
    while from.read(&mut room)? > 0 {}
    let took = began.elapsed();
    sender.join().expect("a copy does not panic")?;
    Ok(bytes as f64 / took.as_secs_f64())
}
