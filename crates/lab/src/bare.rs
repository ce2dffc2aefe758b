//! The hidden processes of a run: `quorba lab peer ...`.
//!
//! They are the floor under every other figure: what the kernel takes to carry as many octets
//! between as many processes, when these do nothing with them. Blocking calls on one thread,
//! as few as possible.
//!
//! Invariants: each prints [`READY`] when it can be used, and ends when its standard input
//! does; a client prints one [`ClientFigures`] line, after it has written its samples.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::bare_group;
use crate::peer::READY;
use crate::placement::stay_on;
use crate::wire::Wire;

/// Most octets of a frame; a datagram cannot be larger.
pub(crate) const FRAME_LEN_MAX: usize = 65_000;
/// How long a client waits for one answer. On loopback nothing is lost, only late.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What a client says in the end; the echo client says more, and this too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientFigures {
    /// Calls that were measured.
    pub(crate) calls: u64,
    /// Of those, one after the other, a second.
    pub(crate) calls_per_s: f64,
    /// The client's own CPU time per call, in microseconds.
    pub(crate) client_cpu_us: f64,
}

#[derive(Debug, Parser)]
#[command(name = "quorba lab peer", no_binary_name = true)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Uses up what nobody else wants of a core
    Spin {
        #[arg(long)]
        core: usize,
    },
    /// Sends back what comes
    TcpEcho {
        #[arg(long)]
        port: u16,
    },
    /// Hands on what comes, both ways
    TcpRelay {
        #[arg(long)]
        port: u16,
        #[arg(long)]
        to: u16,
    },
    /// Hands on every datagram
    UdpForward {
        #[arg(long)]
        port: u16,
        #[arg(long)]
        to: u16,
    },
    /// Hands every request to three servers, its own and by each follower another
    GroupGateway {
        #[arg(long)]
        port: u16,
        /// For datagrams from the followers
        #[arg(long)]
        ring: u16,
        /// Port or path
        #[arg(long)]
        server: String,
        #[arg(long = "follower")]
        followers: Vec<u16>,
    },
    /// Hands what a gateway sends to its server
    GroupFollower {
        #[arg(long)]
        ring: u16,
        /// Port or path
        #[arg(long)]
        server: String,
        #[arg(long)]
        gateway: u16,
    },
    /// Carries the datagrams of a ring
    Wire {
        #[command(flatten)]
        wire: Wire,
        /// The ring's port of each node
        #[arg(long = "port")]
        ports: Vec<u16>,
    },
    /// Keeps a large state
    Ballast {
        #[arg(long)]
        socket: PathBuf,
    },
    /// Measures round trips
    TcpClient(Client),
    /// Measures rounds
    UdpClient(Client),
}

#[derive(Debug, Args)]
struct Client {
    /// Where the client's own datagrams come from
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[arg(long)]
    to: u16,
    #[arg(long)]
    octets: usize,
    #[arg(long)]
    calls: u64,
    #[arg(long)]
    warm_up: u64,
    #[arg(long)]
    samples: PathBuf,
}

/// Runs the hidden process that `arguments` name.
///
/// # Errors
/// What the system refuses, or what is wrong with the arguments.
pub fn peer_main(arguments: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    let parsed = Arguments::try_parse_from(arguments);
    match parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?.role {
        Role::Spin { core } => spin(core),
        Role::TcpEcho { port } => tcp_echo(port),
        Role::TcpRelay { port, to } => tcp_relay(port, to),
        Role::UdpForward { port, to } => udp_forward(port, to),
        Role::GroupGateway { port, ring, server, followers } => {
            bare_group::gateway(port, ring, &server, &followers)
        }
        Role::GroupFollower { ring, server, gateway } => {
            bare_group::follower(ring, &server, gateway)
        }
        Role::Wire { wire, ports } => crate::wire::run(wire, &ports),
        Role::Ballast { socket } => crate::ballast::serve(&socket),
        Role::TcpClient(client) => tcp_client(&client),
        Role::UdpClient(client) => udp_client(&client),
    }
}

/// From now on this process ends when nobody holds the other end of its input any more.
fn end_with_input() {
    thread::spawn(|| {
        let _end = io::copy(&mut io::stdin().lock(), &mut io::sink());
        process::exit(0);
    });
}

pub(crate) fn tell_ready() -> io::Result<()> {
    end_with_input();
    let mut out = io::stdout().lock();
    out.write_all(READY.as_bytes())?;
    out.flush()
}

pub(crate) fn local(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

fn spin(core: usize) -> io::Result<()> {
    stay_on(core).map_err(io::Error::other)?;
    tell_ready()?;
    let mut turns = 0u64;
    loop {
        // No pause instruction: a hypervisor takes that for a wait, and halts the core.
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

fn tcp_echo(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(local(port))?;
    tell_ready()?;
    echo_clients(&listener)
}

fn echo_clients(listener: &TcpListener) -> io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut frame = vec![0; FRAME_LEN_MAX];
        // A client that goes ends its connection, and nothing else.
        while let Ok(count @ 1..) = stream.read(&mut frame) {
            if stream.write_all(&frame[..count]).is_err() {
                break;
            }
        }
    }
}

fn tcp_relay(port: u16, to: u16) -> io::Result<()> {
    let listener = TcpListener::bind(local(port))?;
    tell_ready()?;
    relay_clients(&listener, to)
}

fn relay_clients(listener: &TcpListener, to: u16) -> io::Result<()> {
    loop {
        let (client, _) = listener.accept()?;
        let server = TcpStream::connect(local(to))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        // Whoever closes ends the pair.
        let _closed = relay(&client, &server);
    }
}

fn relay(mut client: &TcpStream, mut server: &TcpStream) -> io::Result<()> {
    let mut frame = vec![0; FRAME_LEN_MAX];
    loop {
        let mut both = [PollFd::new(client, PollFlags::IN), PollFd::new(server, PollFlags::IN)];
        poll(&mut both, None)?;
        let ready = both.map(|one| !one.revents().is_empty());
        if ready[0] {
            hand_on(&mut client, &mut server, &mut frame)?;
        }
        if ready[1] {
            hand_on(&mut server, &mut client, &mut frame)?;
        }
    }
}

fn hand_on(from: &mut impl Read, to: &mut impl Write, frame: &mut [u8]) -> io::Result<()> {
    match from.read(frame)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => to.write_all(&frame[..count]),
    }
}

fn udp_forward(port: u16, to: u16) -> io::Result<()> {
    let socket = UdpSocket::bind(local(port))?;
    tell_ready()?;
    let mut frame = vec![0; FRAME_LEN_MAX];
    loop {
        let count = socket.recv(&mut frame)?;
        match socket.send_to(&frame[..count], local(to)) {
            Ok(_) => {}
            // The client has gone, and the system says so a message late.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
    }
}

fn tcp_client(client: &Client) -> io::Result<()> {
    let mut stream = TcpStream::connect(local(client.to))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    measure(client, |sent, answer| {
        stream.write_all(sent)?;
        stream.read_exact(answer)
    })
}

fn udp_client(client: &Client) -> io::Result<()> {
    let socket = UdpSocket::bind(local(client.port))?;
    socket.set_read_timeout(Some(ANSWER_WITHIN))?;
    measure(client, |sent, answer| {
        socket.send_to(sent, local(client.to))?;
        match socket.recv(answer)? {
            count if count == sent.len() => Ok(()),
            count => Err(io::Error::other(format!("an answer of {count} octets"))),
        }
    })
}

fn measure(
    client: &Client,
    mut call: impl FnMut(&[u8], &mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    if client.calls == 0 || !(1..=FRAME_LEN_MAX).contains(&client.octets) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent: Vec<u8> = (0..=u8::MAX).cycle().take(client.octets).collect();
    let mut answer = vec![0; sent.len()];
    for _ in 0..client.warm_up {
        call(&sent, &mut answer)?;
    }
    let mut samples_ns = Vec::new();
    let (start, start_cpu) = (Instant::now(), own_cpu_us());
    for _ in 0..client.calls {
        answer.fill(0);
        let at = Instant::now();
        call(&sent, &mut answer)?;
        samples_ns.push(at.elapsed().as_nanos());
        if answer != sent {
            return Err(io::Error::other("the answer is not what was sent"));
        }
    }
    let (cpu_us, elapsed) = (own_cpu_us() - start_cpu, start.elapsed());
    write_samples(&client.samples, &samples_ns)?;
    print_figures(client.calls, cpu_us, elapsed)
}

#[expect(clippy::cast_precision_loss, reason = "a process has no 2^52 ns of CPU time or calls")]
fn print_figures(calls: u64, cpu_us: f64, elapsed: Duration) -> io::Result<()> {
    let figures = ClientFigures {
        calls,
        calls_per_s: calls as f64 / elapsed.as_secs_f64(),
        client_cpu_us: cpu_us / calls as f64,
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &figures)?;
    out.write_all(b"\n")
}

#[expect(clippy::cast_precision_loss, reason = "a process has no 2^52 ns of CPU time")]
fn own_cpu_us() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 * 1e6 + used.tv_nsec as f64 / 1e3
}

fn write_samples(path: &Path, samples_ns: &[u128]) -> io::Result<()> {
    let mut file = BufWriter::new(fs::File::create(path)?);
    for sample_ns in samples_ns {
        writeln!(file, "{sample_ns}")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_echo_and_the_relay_hand_on_what_comes() {
        let listen = || TcpListener::bind(local(0)).expect("a free port");
        let (echo, relay) = (listen(), listen());
        let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
        let (to, through) = (port(&echo), port(&relay));
        // They run as long as the test's process does.
        thread::spawn(move || echo_clients(&echo));
        thread::spawn(move || relay_clients(&relay, to));
        // Twice, because a client that goes must not end them.
        for port in [to, through, to, through] {
            let mut stream = TcpStream::connect(local(port)).expect("it listens");
            let (sent, mut answer) = ([7; 1100], [0; 1100]);
            stream.write_all(&sent).expect("sent");
            stream.read_exact(&mut answer).expect("answered");
            assert_eq!(answer, sent);
        }
    }

    #[test]
    fn arguments_are_read() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
        let line = "wire --hop-us 30 --mbit-s 100 --port 1 --port 2";
        let read = Arguments::try_parse_from(line.split(' ')).expect("arguments");
        assert!(matches!(read.role, Role::Wire { ports, .. } if ports == [1, 2]));
        let line = "tcp-client --to 1 --octets 2 --calls 3 --warm-up 4 --samples f";
        let read = Arguments::try_parse_from(line.split(' ')).expect("arguments");
        assert!(matches!(read.role, Role::TcpClient(Client { to: 1, calls: 3, .. })));
        assert!(peer_main(["spin".into()]).is_err());
    }
}
