//! A naming service without replicas: `serve HOST:PORT`, for trying clients against it.

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;

use quorba_corba::Home;
use quorba_naming::{Limits, NamingService};
use quorba_orb::{Server, ServerOptions};

fn main() -> ExitCode {
    let Some(address) = env::args().nth(1) else {
        eprintln!("serve HOST:PORT");
        return ExitCode::FAILURE;
    };
    let server = match Server::bind(&address, ServerOptions::default()) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("{address}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let own: SocketAddr = server.local_address().expect("it listens");
    let addresses = vec![(own.ip().to_string(), own.port())];
    let home = Home { addresses, prefix: Vec::new() };
    let service = NamingService::new(home, Limits::default());
    println!("{}", service.root().0);
    let running = server.with_objects(service).start().expect("threads can be started");
    running.serve_forever()
}
