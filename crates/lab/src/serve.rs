//! Objects in the laboratory's own process: consumers and factories that services call.
//!
//! What it is not: a service that is measured. Invariant: they are served as long as what
//! [`serve`] gives is kept.

use std::net::Ipv4Addr;

use quorba_corba::{Home, Objects};
use quorba_orb::{RunningServer, Server, ServerOptions};

/// As many as a thousand consumers of a domain of four nodes have, and more.
const CONNECTIONS_MAX: usize = 8_192;

/// Serves `objects` at a port of their own; and what makes references to them.
pub(crate) fn serve(
    objects: impl Objects + Send + 'static,
) -> Result<(RunningServer, Home), String> {
    let options = ServerOptions { connections_max: CONNECTIONS_MAX, ..ServerOptions::default() };
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0), options);
    let started = server.and_then(|server| server.with_objects(objects).start());
    let server = started.map_err(|error| format!("cannot serve: {error}"))?;
    let address = server.address();
    let addresses = vec![(address.ip().to_string(), address.port())];
    Ok((server, Home { addresses, prefix: Vec::new() }))
}
