//! The bank server's process.
//!
//! What it is not: configurable beyond its port and its faults. It prints `READY` on standard
//! output when it serves, as every server of the examples does.

use std::io::{self, Write};
use std::net::SocketAddr;

use quorba_orb::{Server, ServerOptions};

use super::servant::{Bank, Faults, STATE_BYTES_MAX};
use crate::director::stage::BANK_KEY;

/// The largest message that a bank server takes: a whole state in one.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Serves a bank at `address` until the process ends.
///
/// # Errors
/// What the system says if it cannot listen there.
pub(crate) fn serve(address: SocketAddr, faults: Faults) -> io::Result<()> {
    let options = ServerOptions { message_bytes_max: MESSAGE_BYTES_MAX, ..Default::default() };
    let server = Server::bind(address, options)?;
    let running = server.with(BANK_KEY, Bank::new(faults, STATE_BYTES_MAX)).start()?;
    let mut out = io::stdout();
    writeln!(out, "READY")?;
    out.flush()?;
    running.serve_forever()
}
