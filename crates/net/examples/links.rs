//! How fast links carry messages between two threads of this machine, beside a plain TCP copy:
//! `cargo run --release -p quorba-net --example links -- [MIB [CHUNK_BYTES]]`.

use bytes::Bytes;
use quorba_base::NodeId;
use quorba_net::{Lane, LinkEvent, Links, Poller, Sent, free_ports};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const KEY: [u8; 32] = [7; 32];
const PATIENCE: Option<Duration> = Some(Duration::from_millis(20));

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let mut number = |default: usize| numbers.next().unwrap_or(default);
    let (mib, chunk) = (number(2_048), number(64 << 10));
    let total = mib << 20;
    for _ in 0..3 {
        report("plain TCP", total, || copy_plain(total, chunk));
        report("links", total, || copy_links(total, chunk));
    }
}

/// Runs it and prints the rate and the processor time of both ends.
fn report(what: &str, bytes: usize, copy: impl FnOnce()) {
    let (begun, used) = (Instant::now(), cpu_ticks());
    copy();
    let (took, used) = (begun.elapsed().as_secs_f64(), cpu_ticks() - used);
    let rate = bytes as f64 / took / 1e6;
    let per_gb = used as f64 / 100.0 / (bytes as f64 / 1e9);
    println!("{what:>10}: {rate:.0} MB/s, {per_gb:.2} s of processor time per GB (both ends)");
}

/// Hundredths of a second that this process has used.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split(' ').collect();
    [12, 13].iter().map(|at| fields[*at].parse::<u64>().expect("a count")).sum()
}

fn copy_plain(total: usize, chunk: usize) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let to = listener.local_addr().expect("an address");
    let sender = thread::spawn(move || {
        let mut socket = TcpStream::connect(to).expect("it listens");
        let bytes = vec![7; chunk];
        for _ in 0..total / chunk {
            socket.write_all(&bytes).expect("it is read");
        }
    });
    let (mut socket, _) = listener.accept().expect("it calls");
    let (mut room, mut came) = (vec![0; chunk], 0);
    while came < total / chunk * chunk {
        came += socket.read(&mut room).expect("it is written");
    }
    sender.join().expect("no panic");
}

fn copy_links(total: usize, chunk: usize) {
    let ports = free_ports(2).expect("ports");
    let address = |index: usize| SocketAddr::from(([127, 0, 0, 1], ports[index]));
    let node = |index: usize| NodeId::new(index as u8).expect("in range");
    let (to, from) = ((node(0), address(0)), (node(1), address(1)));
    let count = total / chunk;
    let receiver = thread::spawn(move || {
        let mut poller = Poller::new().expect("epoll");
        let mut links = open(to, vec![None, Some(from.1)], &poller);
        let mut came = 0;
        while came < count {
            turn(&mut links, &mut poller);
            while let Some(event) = links.poll() {
                came += usize::from(matches!(event, LinkEvent::Message { .. }));
            }
        }
        assert_eq!(links.send(node(1), Lane::Control, Bytes::new()), Sent::Queued);
        links.flush(&poller);
        thread::sleep(Duration::from_millis(50));
    });
    let mut poller = Poller::new().expect("epoll");
    let mut links = open(from, vec![Some(to.1), None], &poller);
    let (bytes, mut left, mut done) = (Bytes::from(vec![7; chunk]), count, false);
    let mut is_up = false;
    while !done {
        while is_up && left > 0 && links.send(node(0), Lane::Bulk, bytes.clone()) == Sent::Queued {
            left -= 1;
        }
        links.flush(&poller);
        turn(&mut links, &mut poller);
        while let Some(event) = links.poll() {
            is_up |= matches!(event, LinkEvent::Up { .. });
            done |= matches!(event, LinkEvent::Message { .. });
        }
    }
    receiver.join().expect("no panic");
}

fn open((me, bind): (NodeId, SocketAddr), peers: Vec<Option<SocketAddr>>, on: &Poller) -> Links {
    Links::open((me, 1), bind, peers, [KEY].iter(), 0, on).expect("a free port")
}

fn turn(links: &mut Links, poller: &mut Poller) {
    for index in 0..poller.wait(PATIENCE).expect("epoll") {
        links.handle(poller.ready(index), poller);
    }
    links.retry(poller);
}
