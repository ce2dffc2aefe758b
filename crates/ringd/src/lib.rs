//! The Totem ring as a service of its own: process groups for programs on the same machine.
//!
//! [`driver::Driver`] runs a node of the ring inside of a program; [`daemon::Daemon`] serves
//! programs on its machine, which use [`client::Client`], or speak [`protocol`] themselves.
//!
//! What it is not: anything of CORBA; that is `quorba-node`'s.
//!
//! Invariant: one thread per node; nothing here decides an order or a view.

#![forbid(unsafe_code)]

pub mod client;
pub mod daemon;
pub mod driver;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod linger;
mod programs;
pub mod protocol;

use socket2::SockRef;
use std::os::unix::net::UnixStream;

/// Room for a turn's worth of messages between a program and the daemon.
const LOCAL_BUFFER_BYTES: usize = 1 << 20;

fn enlarge(socket: &UnixStream) {
    // The kernel gives what its limits allow; less only means more turns.
    let _ = SockRef::from(socket).set_send_buffer_size(LOCAL_BUFFER_BYTES);
}
