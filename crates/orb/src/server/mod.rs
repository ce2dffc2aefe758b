//! The server: listens, and dispatches requests to servants by object key.
//!
//! What it is not: concurrent. Connections are read side by side, each by a thread of its own, and
//! requests are executed one at a time in the order in which they arrived; those of objects that
//! are apart likewise, beside the others; and those that wait for something beside all.
//!
//! Invariants: a connection above the limit is closed at once, with CloseConnection, so that its
//! client knows that nothing was executed; on stopping, the listener is closed first and
//! CloseConnection is sent after the last reply (GIOP §15.5.1).

mod answer;
mod connection;
mod turn;

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quorba_corba::Objects;
use quorba_giop::limits;

use crate::servant::Servant;
pub use connection::same_secret;
use turn::Turns;

/// Pause after a failure to accept, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Octets of a secret.
pub const SECRET_BYTES: usize = 32;

/// What a server allows.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// The most connections at a time.
    pub connections_max: usize,
    /// The largest message, in bytes.
    pub message_bytes_max: usize,
    /// What a connection has to begin with, before GIOP, so that it is served: a secret of those
    /// who may connect.
    pub secret: Option<[u8; SECRET_BYTES]>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { connections_max: 256, message_bytes_max: limits::MESSAGE_BYTES_MAX, secret: None }
    }
}

/// A server that listens and does not serve yet.
pub struct Server {
    listener: TcpListener,
    options: ServerOptions,
    servants: BTreeMap<Vec<u8>, Mutex<Box<dyn Servant>>>,
    objects: Option<Mutex<Box<dyn Objects + Send>>>,
    apart: Option<Apart>,
    waiting: Option<Waiting>,
}

/// Which requests, by object key and operation.
pub type Takes = fn(&[u8], &[u8]) -> bool;

/// Objects whose requests are executed in turns of their own.
struct Apart {
    takes: Takes,
    objects: Mutex<Box<dyn Objects + Send>>,
    turns: Turns,
}

/// Requests that wait for something, and what executes one of them.
struct Waiting {
    takes: Takes,
    make: Box<dyn Fn() -> Box<dyn Objects + Send> + Send + Sync>,
}

impl Server {
    /// Listens at `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// What the system says, such as that the port is in use.
    pub fn bind(address: impl ToSocketAddrs, options: ServerOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let (servants, objects) = (BTreeMap::new(), None);
        Ok(Self { listener, options, servants, objects, apart: None, waiting: None })
    }

    /// Lets `servant` answer requests for `object_key`; a servant that was there is replaced.
    #[must_use]
    pub fn with(mut self, object_key: impl Into<Vec<u8>>, servant: impl Servant + 'static) -> Self {
        self.servants.insert(object_key.into(), Mutex::new(Box::new(servant)));
        self
    }

    /// Lets `objects` answer requests for every key that has no servant of its own. After a panic
    /// in it none is answered any more.
    #[must_use]
    pub fn with_objects(mut self, objects: impl Objects + Send + 'static) -> Self {
        self.objects = Some(Mutex::new(Box::new(objects)));
        self
    }

    /// Lets `objects` answer the requests that it `takes`, whatever else is executed: in turns of
    /// their own.
    #[must_use]
    pub fn with_objects_apart(
        mut self,
        takes: Takes,
        objects: impl Objects + Send + 'static,
    ) -> Self {
        let objects: Mutex<Box<dyn Objects + Send>> = Mutex::new(Box::new(objects));
        self.apart = Some(Apart { takes, objects, turns: Turns::default() });
        self
    }

    /// Executes the requests that `takes` names at once, beside all others and each other, each by
    /// objects of its own: those that wait for something, so that nobody waits behind them.
    #[must_use]
    pub fn with_waiting(
        mut self,
        takes: Takes,
        make: impl Fn() -> Box<dyn Objects + Send> + Send + Sync + 'static,
    ) -> Self {
        self.waiting = Some(Waiting { takes, make: Box::new(make) });
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Begins to serve, in threads of its own.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(self) -> io::Result<RunningServer> {
        let address = self.listener.local_addr()?;
        let shared = Arc::new(Shared {
            servants: self.servants,
            objects: self.objects,
            apart: self.apart,
            waiting: self.waiting,
            turns: Turns::default(),
            stopping: AtomicBool::new(false),
            options: self.options,
            connections: Mutex::default(),
        });
        let listener = self.listener;
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("accept".to_owned())
                .spawn(move || accept(&listener, &shared))?
        };
        Ok(RunningServer { address, shared, acceptor: Some(acceptor) })
    }
}

/// A server that serves. It stops when this is dropped.
pub struct RunningServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// What the threads of a server share.
struct Shared {
    servants: BTreeMap<Vec<u8>, Mutex<Box<dyn Servant>>>,
    objects: Option<Mutex<Box<dyn Objects + Send>>>,
    apart: Option<Apart>,
    waiting: Option<Waiting>,
    turns: Turns,
    stopping: AtomicBool,
    options: ServerOptions,
    connections: Mutex<Connections>,
}

/// Every open connection, and the threads that read them.
#[derive(Default)]
struct Connections {
    next_id: u64,
    open: BTreeMap<u64, TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

impl RunningServer {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process ends.
    pub fn serve_forever(self) -> ! {
        loop {
            thread::park();
        }
    }

    /// Stops: closes the listener, lets each connection finish the request that it is in, sends
    /// CloseConnection and closes.
    pub fn stop(self) {
        drop(self);
    }

    fn wind_up(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        self.shared.stopping.store(true, Ordering::Release);
        // The acceptor sits in a blocking call; a connection from here wakes it.
        while !acceptor.is_finished() {
            let _woken = TcpStream::connect_timeout(&self.address, ACCEPT_AGAIN);
            thread::sleep(Duration::from_millis(1));
        }
        let _panicked = acceptor.join();
        let threads = {
            let mut connections = self.shared.connections();
            for stream in connections.open.values() {
                // What was received already is still read; then the end is.
                let _gone = stream.shutdown(Shutdown::Read);
            }
            std::mem::take(&mut connections.threads)
        };
        for thread in threads {
            let _panicked = thread.join();
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.wind_up();
    }
}

/// An open connection; forgotten when this is dropped, by a servant's panic, too.
struct Open<'a> {
    id: u64,
    shared: &'a Shared,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.shared.connections().open.remove(&self.id);
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().expect("no holder panics")
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        match listener.accept() {
            Ok((stream, _peer)) if shared.is_stopping() => return connection::refuse(stream),
            Ok((stream, _peer)) => admit(stream, shared),
            Err(_) if shared.is_stopping() => return,
            Err(_) => thread::sleep(ACCEPT_AGAIN),
        }
    }
}

fn admit(stream: TcpStream, shared: &Arc<Shared>) {
    let mut connections = shared.connections();
    connections.threads.retain(|thread| !thread.is_finished());
    if connections.open.len() >= shared.options.connections_max {
        drop(connections);
        connection::refuse(stream);
        return;
    }
    let Ok(handle) = stream.try_clone() else { return };
    let id = connections.next_id;
    connections.next_id += 1;
    let served = Arc::clone(shared);
    let thread = thread::Builder::new().name(format!("connection-{id}")).spawn(move || {
        let _open = Open { id, shared: &served };
        connection::serve(stream, &served);
    });
    if let Ok(thread) = thread {
        connections.open.insert(id, handle);
        connections.threads.push(thread);
    }
}
