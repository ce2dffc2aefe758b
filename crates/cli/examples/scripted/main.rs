//! A small deterministic GIOP server for tests: it keeps a list of texts, and does odd things when
//! a request tells it to, so that replicas do them alike, or on one node only.
//!
//! What it is not: shipped, or an ORB. Each connection has a thread that reads and one that
//! executes; one lock stands over all execution, so LocateRequests are answered meanwhile.
//!
//! Invariants: what it does depends on its requests alone, its node's name apart; every request
//! that changes something is in its log (`--log`) before it is executed, in one line.
//!
//! ```text
//! add(string) -> ulong                 appends; the list's new length
//! sleepadd(ulong ms, string) -> ulong  the same, slowly
//! spend(ulong us, ...)                 takes so long; whatever follows is not looked at
//! log() -> string                      the list, comma-separated
//! who() -> string                      the node's name
//! big(ulong) -> sequence<octet>        so many octets
//! refer(ulong port, string key) -> Object
//!                                      a reference to that port; 0: the server's own; an empty
//!                                      key: one that no other process has
//! padded(string, string node, string liar) -> string, ulong
//!                                      the text, and 7; the server on that node, all with `*`,
//!                                      leaves what is between them as it was in memory; on the
//!                                      node `liar` it is 8
//! odd(string what, string node, boolean late, string) -> ulong
//!                                      add, but oddly: see `odd.rs`
//! get_state, set_state                 FT::Checkpointable
//! _is_a, _non_existent                 of any object
//! ```

mod connection;
mod odd;
mod service;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use service::Service;

/// How a connection is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Ending {
    /// CloseConnection, then FIN.
    CloseConnection,
    /// FIN without a word.
    Fin,
    /// A reset.
    Rst,
}

/// See the module's text.
#[derive(Debug, Parser)]
struct Options {
    /// Where it listens, on loopback.
    #[arg(long)]
    port: u16,

    /// The name of its node.
    #[arg(long, default_value = "")]
    node: String,

    /// The file to which it appends what it does.
    #[arg(long)]
    log: PathBuf,

    /// It ends connections that were idle for so many milliseconds.
    #[arg(long, value_name = "MS")]
    idle_close: Option<u64>,

    /// How.
    #[arg(long, value_enum, default_value = "close-connection")]
    idle_how: Ending,

    /// It raises NO_RESOURCES when it is asked for its state.
    #[arg(long)]
    no_state: bool,

    /// It gives no longer state, and takes none, as an omniORB server does: MARSHAL, MessageError.
    #[arg(long, value_name = "BYTES")]
    state_max: Option<usize>,

    /// Only where its node has this name.
    #[arg(long, value_name = "NODE")]
    state_max_on: Option<String>,

    /// One thread for everything: while a call runs nothing else is answered.
    #[arg(long)]
    single_threaded: bool,
}

impl Options {
    fn idle(&self) -> Option<Duration> {
        self.idle_close.map(Duration::from_millis)
    }
}

fn main() -> std::io::Result<()> {
    let options = Options::parse();
    let listener = TcpListener::bind(("127.0.0.1", options.port))?;
    let service = Arc::new(Service::new(options)?);
    loop {
        // A connection that is gone again is nobody's fault.
        if let Ok((stream, _)) = listener.accept() {
            let service = Arc::clone(&service);
            std::thread::spawn(move || connection::serve(stream, &service));
        }
    }
}
