//! Records what two ORBs say to each other: a TCP proxy that writes both directions to files.
//!
//! `record LISTEN TO PREFIX`, for example
//! `record 127.0.0.1:7000 127.0.0.1:6000 corpus/streams/omniorb-1.2`, writes for each connection
//! `PREFIX-N.client.giop` and `PREFIX-N.server.giop`, N from 1, until it is killed. The client is
//! to be given the proxy's address, the server is to publish it.
//!
//! What it is not: a gateway. It understands nothing of what it passes on, and changes nothing.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, to, prefix] = arguments.as_slice() else {
        return Err("usage: record LISTEN TO PREFIX".into());
    };
    let listener = TcpListener::bind(listen)?;
    println!("READY");
    for (index, client) in listener.incoming().enumerate() {
        let client = client?;
        let server = TcpStream::connect(to)?;
        for socket in [&client, &server] {
            socket.set_nodelay(true)?;
        }
        let number = index + 1;
        pass_on(&client, &server, &format!("{prefix}-{number}.client.giop"))?;
        pass_on(&server, &client, &format!("{prefix}-{number}.server.giop"))?;
    }
    Ok(())
}

/// Passes on one direction in a thread of its own, which ends with it.
fn pass_on(from: &TcpStream, to: &TcpStream, path: &str) -> io::Result<()> {
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    let mut file = File::create(path)?;
    let path = path.to_owned();
    thread::spawn(move || {
        if let Err(error) = copy(&mut from, &mut to, &mut file) {
            eprintln!("{path}: {error}");
        }
        // The end of one direction is passed on as well; the other may still have to say something.
        let _ = to.shutdown(Shutdown::Write);
    });
    Ok(())
}

fn copy(from: &mut TcpStream, to: &mut TcpStream, file: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        // Written before it is passed on: what the peer has seen is in the file.
        file.write_all(&buffer[..count])?;
        to.write_all(&buffer[..count])?;
    }
}
