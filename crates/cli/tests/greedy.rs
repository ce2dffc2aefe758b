//! Clients that take more than their share, against a running domain: they cost themselves, and
//! neither memory nor the time of clients at other addresses.
//!
//! What it is not: a measurement. Bounds are those of the limits, and far from what a busy machine
//! needs for a call.

mod stage;

use std::fs;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use quorba_giop::build::{self, RequestHead};
use quorba_giop::cdr::Writer;
use quorba_giop::{
    Body, Completion, Endian, ExceptionKind, MinorCode, ReplyStatus, ResponseFlags, Version,
};
use rustix::process::Pid;
use stage::scripted::{KEY, SOON, Scripted, eventually};
use stage::wire::{Answer, Wire};

const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
const MIB: u64 = 1 << 20;
/// What a node may take more than when nobody asks for anything.
const GROWTH_MAX: u64 = 256 * MIB;
/// How long the greedy are at it.
const ATTACK: Duration = Duration::from_secs(5);
/// What a call of an honest client may take meanwhile. A backlog that others have to wait for
/// would be as long as the attack and more.
const PATIENCE: Duration = Duration::from_secs(2);

/// The resident bytes of the nodes.
fn resident(pids: &[Pid]) -> Vec<u64> {
    let of = |pid: &Pid| {
        let path = format!("/proc/{}/statm", pid.as_raw_nonzero());
        let text = fs::read_to_string(path).expect("the node runs");
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.expect("a number") * 4096
    };
    pids.iter().map(of).collect()
}

fn nodes(scripted: &Scripted) -> Vec<Pid> {
    let health = scripted.domain.wait_healthy();
    let nodes = health["nodes"].as_array().expect("a list").iter();
    let pid = |node: &serde_json::Value| node["status"]["pid"].as_i64();
    nodes.map(|node| Pid::from_raw(pid(node).expect("it runs") as i32).expect("a pid")).collect()
}

fn message(id: u32, operation: &str, flags: ResponseFlags, f: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let head = RequestHead {
        version: Version::V1_2,
        endian: Endian::Little,
        request_id: id,
        response_flags: flags,
        object_key: KEY,
        operation: operation.as_bytes(),
        contexts: &[],
    };
    build::request(&head, f).bytes().to_vec()
}

/// Sends until it is over, and never reads.
fn pour(port: u16, from: Ipv4Addr, over: &AtomicBool, mut next: impl FnMut(u32) -> Vec<u8>) {
    let Ok(mut wire) = Wire::connect_from(from, port) else { return };
    let mut id = 0;
    while !over.load(Ordering::Relaxed) {
        let mut octets = Vec::new();
        while octets.len() < 16 << 10 {
            octets.extend(next(id));
            id += 1;
        }
        let mut left = &octets[..];
        while !left.is_empty() && !over.load(Ordering::Relaxed) {
            let sent = wire.push(left, Duration::from_millis(50));
            left = &left[sent..];
        }
    }
}

/// An honest client that calls until it is over: how long its calls take, longest last.
fn serve(scripted: &Scripted, node: usize, over: &AtomicBool) -> Vec<Duration> {
    let mut client = scripted.client(node).expect("a gateway");
    let mut took = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = client.call(KEY, "log", SOON, |_| {});
        assert!(answer.text().is_ok(), "an honest client at n{}: {answer}", node + 1);
        took.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    took.sort();
    took
}

fn quantile(sorted: &[Duration], part: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

/// Those who are at it.
type Greedy<'s> = Vec<ScopedJoinHandle<'s, ()>>;

/// The greedy begin; honest clients at two gateways and the nodes' memory are watched.
fn withstands(
    name: &str,
    scripted: &Scripted,
    attack: impl for<'s> Fn(&'s Scope<'s, '_>, &'s AtomicBool, u16) -> Greedy<'s>,
) {
    let pids = nodes(scripted);
    scripted.add(0, "first", SOON).expect("it serves");
    let idle = resident(&pids);
    let mut peak = idle.clone();
    let over = AtomicBool::new(false);
    let port = scripted.domain.first_port + 6;
    let honest = std::thread::scope(|scope| {
        let greedy = attack(scope, &over, port);
        let honest = [0, 1].map(|node| {
            scope.spawn({
                let over = &over;
                move || serve(scripted, node, over)
            })
        });
        let began = Instant::now();
        while began.elapsed() < ATTACK {
            let now = resident(&pids);
            peak.iter_mut().zip(now).for_each(|(peak, now)| *peak = now.max(*peak));
            std::thread::sleep(Duration::from_millis(20));
        }
        over.store(true, Ordering::Relaxed);
        greedy.into_iter().for_each(|one| one.join().expect("the greedy do not panic"));
        honest.map(|one| one.join().expect("honest calls are answered"))
    });
    let grown = |now: &[u64]| -> Vec<u64> {
        now.iter().zip(&idle).map(|(now, idle)| now.saturating_sub(*idle) / MIB).collect()
    };
    for (node, took) in honest.iter().enumerate() {
        println!(
            "{name}: n{}: {} honest calls, p50 {:?}, p99 {:?}, longest {:?}; memory +{:?} MiB",
            node + 1,
            took.len(),
            quantile(took, 0.5),
            quantile(took, 0.99),
            quantile(took, 1.0),
            grown(&peak),
        );
        let longest = quantile(took, 1.0);
        assert!(longest < PATIENCE, "{name}: an honest call took {longest:?}");
    }
    let most = grown(&peak).into_iter().max().unwrap_or_default();
    assert!(most * MIB <= GROWTH_MAX, "{name}: {:?} MiB more than idle", grown(&peak));
    let given_back = eventually(Duration::from_secs(10), || {
        let now = grown(&resident(&pids));
        if now.iter().all(|grown| *grown < 64) { Ok(()) } else { Err(format!("{now:?} MiB more")) }
    });
    given_back.unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    scripted.add(0, "last", SOON).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
}

#[test]
fn replies_that_are_not_read_cost_little_memory_and_nobody_waits_for_them() {
    let scripted = Scripted::start("active", "", &[]);
    withstands("replies", &scripted, |scope, over, port| {
        let big = |id| message(id, "big", ResponseFlags::WithTarget, |out| out.write_u32(4 << 20));
        (0..12).map(|_| scope.spawn(move || pour(port, GREEDY, over, big))).collect()
    });
}

#[test]
fn a_flood_of_oneways_leaves_no_backlog() {
    let scripted = Scripted::start("active", "", &[]);
    for octets in [8, 4096] {
        withstands(&format!("oneways of {octets}"), &scripted, |scope, over, port| {
            let spend = move |id| {
                message(id, "spend", ResponseFlags::None, |out| {
                    out.write_u32(200);
                    out.write_octets(&vec![7; octets]);
                })
            };
            vec![scope.spawn(move || pour(port, GREEDY, over, spend))]
        });
    }
}

#[test]
fn questions_whose_answers_are_not_read_are_not_read() {
    let scripted = Scripted::start("active", "", &[]);
    withstands("questions", &scripted, |scope, over, port| {
        let locate = |id| {
            let asked = build::locate_request(Version::V1_2, Endian::Little, id, KEY);
            asked.bytes().to_vec()
        };
        (0..4).map(|_| scope.spawn(move || pour(port, GREEDY, over, locate))).collect()
    });
}

#[test]
fn cancelled_calls_count_until_they_are_executed() {
    let scripted = Scripted::start("active", "", &[]);
    withstands("cancelled", &scripted, |scope, over, port| {
        let pair = |id| {
            let mut pair = message(id, "spend", ResponseFlags::WithTarget, |out| {
                out.write_u32(200);
            });
            let cancel = build::cancel_request(Version::V1_2, Endian::Little, id);
            pair.extend_from_slice(cancel.bytes());
            pair
        };
        vec![scope.spawn(move || pour(port, GREEDY, over, pair))]
    });
}

#[test]
fn a_connection_too_many_is_told_so_and_another_gateway_has_room() {
    let limits = "[limits]\nconnections_per_peer = 3\n";
    let scripted = Scripted::start("active", limits, &[]);
    let port = scripted.domain.first_port + 6;
    let call = |wire: &mut Wire| wire.call(KEY, "log", SOON, |_| {});
    let mut kept: Vec<Wire> =
        (0..3).map(|_| Wire::connect_from(GREEDY, port).expect("a gateway")).collect();
    kept.iter_mut().for_each(|wire| assert!(call(wire).text().is_ok()));
    for _ in 0..3 {
        let mut wire = Wire::connect_from(GREEDY, port).expect("a gateway");
        let answer = call(&mut wire);
        assert_eq!(answer.ours(), Some(MinorCode::TooManyConnections), "{answer}");
        let Answer::Raised(exception) = answer else { unreachable!("just seen") };
        assert_eq!(exception.kind, ExceptionKind::Transient);
        assert_eq!(exception.completed, Completion::No);
        let then = wire
            .receive(Instant::now() + SOON)
            .map(|message| matches!(message.parse(), Ok(Body::CloseConnection)));
        assert!(matches!(then, Ok(true)), "CloseConnection follows");
        assert!(matches!(wire.receive(Instant::now() + SOON), Err(Answer::Closed)));
    }
    let mut elsewhere = Wire::connect_from(GREEDY, port + 1).expect("a gateway");
    assert!(call(&mut elsewhere).text().is_ok());
    let mut other = Wire::connect_from(OTHER, port).expect("a gateway");
    assert!(call(&mut other).text().is_ok(), "another address has room");
    let told = scripted.domain.told_once("a line", |told| told.contains("turned away"));
    let lines = told.lines().filter(|line| line.contains("turned away")).collect::<Vec<_>>();
    assert!(lines.len() == 1 && lines[0].contains("127.0.0.2"), "{lines:?}");
    let status = scripted.domain.quorba(&["status"]);
    let status = stage::text(&status.stdout);
    assert!(status.contains("127.0.0.2") && status.contains("connections_per_peer"), "{status}");
    kept.pop();
    let again = eventually(SOON, || {
        let mut wire = Wire::connect_from(GREEDY, port).map_err(|error| error.to_string())?;
        call(&mut wire).text()
    });
    again.expect("there is room again");
}

#[test]
fn a_client_that_has_ended_its_sending_gets_the_replies_that_it_is_owed() {
    let scripted = Scripted::start("active", "", &[]);
    let mut wire = scripted.client(0).expect("a gateway");
    let mut ids = Vec::new();
    for octets in [3 << 20, 10, 2 << 20] {
        let (id, request) = wire.request(KEY, "big", &[], |out| out.write_u32(octets));
        wire.send(request.bytes()).expect("sent");
        ids.push((id, octets));
    }
    wire.end_sending().expect("open");
    // Somebody slow.
    std::thread::sleep(Duration::from_millis(300));
    for (id, octets) in ids {
        let Answer::Reply(reply) = wire.answer(id, SOON) else { panic!("no reply to {id}") };
        assert!(reply.bytes().len() > octets as usize);
    }
    assert!(matches!(wire.receive(Instant::now() + SOON), Err(Answer::Closed)));
}

#[test]
fn a_request_that_is_too_large_is_refused_and_the_connection_goes_on() {
    let limits = "[limits]\nmessage_bytes = 100_000\n";
    let scripted = Scripted::start("active", limits, &[]);
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let mut wire = scripted.client(0).expect("a gateway");
        wire.version = version;
        for octets in [200_000, 3 << 20] {
            let (id, request) = wire.request(KEY, "spend", &[], |out| {
                out.write_u32(1);
                out.write_octets(&vec![7; octets]);
            });
            wire.send(request.bytes()).expect("sent");
            let answer = wire.answer(id, SOON);
            assert_eq!(answer.ours(), Some(MinorCode::RequestTooLarge), "{version}: {answer}");
            let answer = wire.call(KEY, "log", SOON, |_| {});
            assert!(answer.text().is_ok(), "{version}: {answer}");
        }
    }
    let mut wire = scripted.client(0).expect("a gateway");
    let answer = wire.call(KEY, "log", SOON, |_| {});
    let Answer::Reply(reply) = answer else { panic!("{answer}") };
    let Ok(Body::Reply(reply)) = reply.parse() else { panic!("a reply") };
    assert_eq!(reply.status(), ReplyStatus::NoException);
}
