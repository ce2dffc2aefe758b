//! A bare copy over the link that the nodes use: one TCP connection from their address to itself.
//!
//! What it is not: clever. Large reads and writes, nothing done with what comes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

const PIECE_BYTES: usize = 1 << 20;
/// Less would measure the connection's beginning.
const BYTES_MIN: u64 = 64 << 20;

/// Bytes a second of a copy of `bytes`, and of no less than 64 MiB.
pub(super) fn rate(bytes: u64) -> io::Result<f64> {
    let bytes = bytes.max(BYTES_MIN);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut to = TcpStream::connect(listener.local_addr()?)?;
    let (mut from, _) = listener.accept()?;
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
