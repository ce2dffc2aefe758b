//! A port that stays open whoever is behind it, as one that a service manager listens on: a
//! connection that is made while the server is restarted waits, and gets the new one.
//!
//! What it is not: a server's. It passes octets on, and ends with each end of a connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::wait;

/// How long a connection waits for a server.
const SERVER_TIME_MAX: Duration = Duration::from_secs(20);

pub(super) struct Relay {
    /// Every connection that was ever made.
    clients: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    /// Passes on what comes to `port`, to `server` behind it, as long as this process lives.
    pub(super) fn start(port: u16, server: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let clients = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&clients);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(copy) = client.try_clone() else { continue };
                kept.lock().expect("nobody panics with it").push(copy);
                thread::spawn(move || serve(&client, server));
            }
        });
        Ok(Self { clients })
    }

    /// Ends all connections, as a firewall does that forgets them. The server lives.
    pub(super) fn cut(&self) {
        for client in self.clients.lock().expect("nobody panics with it").drain(..) {
            // One that has ended already is what is wanted.
            let _ended = client.shutdown(Shutdown::Both);
        }
    }
}

fn serve(client: &TcpStream, server: u16) {
    let connected = wait::until("the server listens", SERVER_TIME_MAX, || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, server)).map_err(|error| error.to_string())
    });
    // Without a server the client sees its connection end.
    let Ok(server) = connected else { return };
    thread::scope(|scope| {
        scope.spawn(|| pass(client, &server));
        pass(&server, client);
    });
}

fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Either end of it ends both; one that has ended already is what is wanted.
    let _ended = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
