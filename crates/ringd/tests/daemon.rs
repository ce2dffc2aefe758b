//! Real daemons on the loopback interface, and programs that use them.

use quorba_groups::{GroupName, GroupNumber, ProcessId};
use quorba_net::free_ports;
use quorba_order::{Guarantee, ViewKind};
use quorba_ringd::client::Client;
use quorba_ringd::protocol::{FRAME_BYTES_MAX, MESSAGE_BYTES_MAX, Notice, ViewNotice, WishKind};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

struct Fleet {
    daemons: Vec<Child>,
    /// Where the nodes of the ring speak to each other.
    peers: Vec<String>,
    dir: PathBuf,
}

impl Fleet {
    fn start(name: &str, nodes: usize) -> Self {
        let dir = std::env::temp_dir().join(format!("ringd-{}-{name}", std::process::id()));
        let peers: Vec<String> = free_ports(nodes)
            .expect("ports")
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        let daemons = (1..=nodes)
            .map(|node| {
                let own = dir.join(node.to_string());
                std::fs::create_dir_all(&own).expect("a folder");
                Command::new(env!("CARGO_BIN_EXE_quorba-ringd"))
                    .args(["daemon", "--encryption", "off", "--until-stdin-ends"])
                    .args(["--node", &node.to_string(), "--nodes", &nodes.to_string()])
                    .args(["--peers", &peers.join(","), "--dir"])
                    .arg(&own)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("the daemon starts")
            })
            .collect();
        let mut fleet = Self { daemons, peers, dir };
        for daemon in &mut fleet.daemons {
            let mut line = String::new();
            let out = daemon.stdout.as_mut().expect("piped");
            BufReader::new(out).read_line(&mut line).expect("a line");
            assert!(line.contains("listening"), "{line}");
        }
        fleet
    }

    fn program(&self, node: usize) -> Client {
        Client::connect(&socket(&self.dir, node)).expect("the daemon welcomes")
    }

    fn kill(&mut self, node: usize) {
        self.daemons[node - 1].kill().expect("it was alive");
        self.daemons[node - 1].wait().expect("it is dead");
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn socket(dir: &Path, node: usize) -> PathBuf {
    dir.join(node.to_string()).join("ring.sock")
}

fn name(text: &str) -> GroupName {
    GroupName::new(text.as_bytes()).expect("a name")
}

/// What a program keeps of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
enum News {
    View(ViewNotice),
    Message(ProcessId, Vec<u8>),
    Joining(GroupNumber),
    Refused(WishKind),
}

fn next(program: &mut Client) -> News {
    let deadline = Instant::now() + PATIENCE;
    while !program.await_notice(Some(Duration::from_secs(1))).expect("the daemon lives") {
        assert!(Instant::now() < deadline, "nothing comes");
    }
    match program.notice().expect("it can be read").expect("it is there") {
        Notice::View(view) => News::View(view),
        Notice::Message { from, message, .. } => News::Message(from, message.to_vec()),
        Notice::Joining(group, _) => News::Joining(group),
        Notice::Refused { what, .. } => News::Refused(what),
        Notice::Welcome(_) => panic!("welcomed twice"),
    }
}

/// Joins, and gives the group's number.
fn join(program: &mut Client, group: &str) -> GroupNumber {
    program.join(&name(group)).expect("the daemon lives");
    match next(program) {
        News::Joining(group) => group,
        other => panic!("not the group's number but {other:?}"),
    }
}

/// Reads on until a regular view with `count` members comes.
fn await_members(program: &mut Client, count: usize) -> ViewNotice {
    loop {
        if let News::View(view) = next(program)
            && view.kind == ViewKind::Regular
            && view.members.len() == count
        {
            return view;
        }
    }
}

fn messages(program: &mut Client, count: usize) -> Vec<(ProcessId, Vec<u8>)> {
    let mut messages = Vec::new();
    while messages.len() < count {
        if let News::Message(from, message) = next(program) {
            messages.push((from, message));
        }
    }
    messages
}

#[test]
fn all_members_get_all_messages_in_one_order_and_nobody_else_gets_any() {
    let fleet = Fleet::start("order", 3);
    let mut programs: Vec<Client> = (1..=3).map(|node| fleet.program(node)).collect();
    let mut stranger = fleet.program(1);
    join(&mut stranger, "others");
    await_members(&mut stranger, 1);
    let groups: Vec<GroupNumber> = programs.iter_mut().map(|p| join(p, "all")).collect();
    for program in &mut programs {
        await_members(program, 3);
    }
    let sizes = [2, 100, 1_000, 20_000, 300_000];
    for round in 0..20_u8 {
        for (index, (program, group)) in programs.iter_mut().zip(&groups).enumerate() {
            let guarantee = if round % 3 == 0 { Guarantee::Safe } else { Guarantee::Agreed };
            let mut message = vec![round; sizes[usize::from(round) % sizes.len()]];
            message[0] = index as u8;
            assert!(program.send(*group, guarantee, &message).expect("the daemon lives"));
            program.flush().expect("the daemon lives");
        }
    }
    let first = messages(&mut programs[0], 60);
    assert_eq!(messages(&mut programs[1], 60), first);
    assert_eq!(messages(&mut programs[2], 60), first);
    for program in &programs {
        let own = first.iter().filter(|(from, _)| *from == program.process());
        let rounds: Vec<u8> = own.map(|(_, message)| *message.last().expect("not empty")).collect();
        assert_eq!(rounds, (0..20).collect::<Vec<u8>>(), "in the order of sending");
    }
    assert!(!stranger.await_notice(Some(Duration::ZERO)).expect("the daemon lives"));
    let all = groups[0];
    assert!(stranger.send(all, Guarantee::Agreed, b"psst").expect("the daemon lives"));
    assert_eq!(next(&mut stranger), News::Refused(WishKind::Send));
}

#[test]
fn the_longest_message_arrives_whole_and_others_too() {
    let fleet = Fleet::start("longest", 3);
    let (mut sender, mut reader) = (fleet.program(1), fleet.program(3));
    let group = join(&mut sender, "all");
    join(&mut reader, "all");
    await_members(&mut sender, 2);
    await_members(&mut reader, 2);
    let long: Vec<u8> = (0..MESSAGE_BYTES_MAX).map(|at| (at % 251) as u8).collect();
    let sizes = [MESSAGE_BYTES_MAX, 5, MESSAGE_BYTES_MAX - 1, 7];
    for size in sizes {
        let (message, _) = long.split_at(size);
        while !sender.send(group, Guarantee::Agreed, message).expect("the daemon lives") {
            sender.flush().expect("the daemon lives");
        }
        sender.flush().expect("the daemon lives");
        for program in [&mut sender, &mut reader] {
            let came = messages(program, 1);
            // Not compared as a whole: nobody wants to read the difference.
            assert_eq!(came[0].1.len(), size);
            assert!(came[0].1 == message);
        }
    }
}

#[test]
fn a_longer_message_ends_its_program_and_not_the_daemon() {
    let fleet = Fleet::start("longer", 1);
    let mut rude = UnixStream::connect(socket(&fleet.dir, 1)).expect("the daemon listens");
    let mut frame = (FRAME_BYTES_MAX as u32).to_be_bytes().to_vec();
    // A `send` without any guarantee but order, in group 0, as long as a frame can be.
    frame.push(WishKind::Send as u8);
    frame.resize(4 + FRAME_BYTES_MAX, 0);
    // It may be cut off before it has sent all.
    let _ = rude.write_all(&frame);
    rude.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let ended = rude.read_to_end(&mut Vec::new());
    let waited = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
    assert!(!ended.is_err_and(waited), "it is still connected");
    let mut other = fleet.program(1);
    join(&mut other, "all");
    await_members(&mut other, 1);
}

#[test]
fn who_is_gone_and_why_is_told_to_those_who_remain() {
    let mut fleet = Fleet::start("gone", 3);
    let mut programs: Vec<Client> = [1, 2, 3, 3].map(|node| fleet.program(node)).into();
    for program in &mut programs {
        join(program, "all");
    }
    for program in &mut programs {
        await_members(program, 4);
    }
    let fourth = programs.pop().expect("four").process();
    for program in &mut programs {
        assert_eq!(await_members(program, 3).left, [(fourth, 1)], "it died");
    }
    let third = programs.pop().expect("three");
    fleet.kill(3);
    for program in &mut programs {
        let view = await_members(program, 2);
        assert!(
            view.left.is_empty() || view.left == [(third.process(), 2)],
            "its node is gone: {view:?}"
        );
    }
}

#[test]
fn a_program_that_does_not_read_slows_the_others_down_and_loses_nothing() {
    const MESSAGES: u64 = 40_000;
    let fleet = Fleet::start("slow", 2);
    let (mut sender, mut reader) = (fleet.program(1), fleet.program(2));
    let group = join(&mut sender, "all");
    join(&mut reader, "all");
    await_members(&mut sender, 2);
    await_members(&mut reader, 2);
    let mut message = [7; 1024];
    let (mut sent, mut came, mut read, mut stalled) = (0_u64, 0_u64, 0_u64, false);
    let deadline = Instant::now() + PATIENCE;
    while read < MESSAGES {
        assert!(Instant::now() < deadline, "{sent} sent, {came} came back, {read} read");
        message[..8].copy_from_slice(&sent.to_be_bytes());
        if sent < MESSAGES && sender.send(group, Guarantee::Agreed, &message).expect("it lives") {
            sent += 1;
        } else {
            // Everything is sent, or the daemon takes no more: from now on the reader reads.
            stalled |= sent == MESSAGES || !sender.push().expect("it lives");
        }
        while sender.await_notice(Some(Duration::ZERO)).expect("it lives") {
            came += u64::from(matches!(next(&mut sender), News::Message(..)));
        }
        while stalled && reader.await_notice(Some(Duration::ZERO)).expect("not cut off") {
            if let News::Message(_, message) = next(&mut reader) {
                let head = message.first_chunk().expect("long enough");
                assert_eq!(u64::from_be_bytes(*head), read);
                read += 1;
            }
        }
    }
    assert!(sent == MESSAGES && stalled);
}

#[test]
fn three_hundred_strangers_on_the_link_ports_change_no_view() {
    let fleet = Fleet::start("strangers", 3);
    let mut programs: Vec<Client> = (1..=3).map(|node| fleet.program(node)).collect();
    let groups: Vec<GroupNumber> = programs.iter_mut().map(|p| join(p, "all")).collect();
    for program in &mut programs {
        await_members(program, 3);
    }
    // At first they say nothing, then nonsense.
    for (round, words) in [vec![], vec![7; 400]].into_iter().enumerate() {
        for peer in &fleet.peers {
            let stranger = |_| {
                let mut socket = TcpStream::connect(peer).expect("anybody may try");
                socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
                let _ = socket.write(&words);
                socket
            };
            let strangers: Vec<TcpStream> = (0..300).map(stranger).collect();
            for mut stranger in strangers {
                let mut heard = Vec::new();
                match stranger.read_to_end(&mut heard) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("not shut out"),
                    _ => assert!(heard.len() < 20, "a challenge and the end, but {heard:?}"),
                }
            }
        }
        let (sender, group) = (&mut programs[round], groups[round]);
        assert!(sender.send(group, Guarantee::Safe, b"still here").expect("the daemon lives"));
        sender.flush().expect("the daemon lives");
        for program in &mut programs {
            let news = next(program);
            assert!(matches!(news, News::Message(_, _)), "a view changed: {news:?}");
        }
    }
}
