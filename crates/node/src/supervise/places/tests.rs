//! How often is looked, and for whom first. Time is what the test says; nobody listens at the ports
//! that only the system's own programs may have.

use super::*;
use crate::wake::mailbox;
use quorba_config::{DomainKey, check_text};
use std::path::Path;

fn group(more: &str) -> Arc<Group> {
    let text = format!(
        "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"127.0.0.1\"\n\
         [group.bank]\nlisten = 5000\nmembers = [\"n1\"]\n\
         connect = {{ n1 = \"127.0.0.1:1\" }}\n{more}"
    );
    let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
    let read = check_text(Path::new("quorba.toml"), &text, key);
    let domain = read.domain.unwrap_or_else(|| panic!("{}", read.report));
    Arc::new(domain.groups[0].clone())
}

struct Scene {
    places: Places,
    poller: Poller,
    now: Instant,
    group: Arc<Group>,
}

impl Scene {
    fn new() -> Self {
        let (messages, _) = mailbox().expect("a descriptor");
        let now = Instant::now();
        let places = Places::new(Workers::new("test", 1), messages, now);
        let poller = Poller::new().expect("a descriptor");
        Self { places, poller, now, group: group("") }
    }

    fn at(port: u16) -> Endpoint {
        Endpoint { host: Host::Address([127, 0, 0, 1].into()), port }
    }

    /// Until so many were told something.
    fn told(&mut self, count: usize) -> Vec<(Key, LookResult)> {
        let mut found = Vec::new();
        while found.len() < count {
            found.extend(self.places.run(Instant::now(), &self.poller));
            let next = self.places.next().unwrap_or(self.now);
            let left = next.saturating_duration_since(Instant::now());
            for index in 0..self.poller.wait(Some(left)).expect("it waits") {
                if let Source::Place(number) = Source::of(self.poller.ready(index).token) {
                    self.places.step(number, Instant::now(), &self.poller);
                }
            }
        }
        found
    }

    fn seek(&mut self, port: u16, key: u64) {
        self.places.seek(&Self::at(port), Key(key), &self.group, self.now);
    }

    /// Whoever was told something in the time until then, each time.
    fn told_within(&mut self, ms: u64) -> Vec<u64> {
        let until = self.now + Duration::from_millis(ms);
        let mut told = Vec::new();
        while let Some(next) = self.places.next().filter(|next| *next <= until) {
            assert!(self.places.credit > 0 || next > self.places.refilled, "it does not spin");
            self.now = self.now.max(next);
            let found = self.places.run(self.now, &self.poller);
            told.extend(found.into_iter().map(|(Key(key), _)| key));
        }
        self.now = until;
        told
    }
}

#[test]
fn in_all_no_more_looks_are_begun_than_a_second_may_have_and_everybodys_turn_comes() {
    let mut scene = Scene::new();
    (1..=600).for_each(|port| scene.seek(port, port.into()));
    let told = scene.told_within(20_000);
    assert!(told.len() <= 200 * 20 + LOOKS_AT_ONCE as usize, "{}", told.len());
    let all: BTreeSet<u64> = told.iter().copied().collect();
    assert_eq!(all.len(), 600);
    let told = scene.told_within(10_000);
    assert!((1_000..=2_020).contains(&told.len()), "{}", told.len());
}

#[test]
fn one_that_went_away_a_moment_ago_comes_before_all_that_have_been_away_for_long() {
    let mut scene = Scene::new();
    (1..=600).for_each(|port| scene.seek(port, port.into()));
    scene.told_within(60_000);
    scene.seek(700, 700);
    for _ in 0..20 {
        let told = scene.told_within(300);
        assert!(told.contains(&700), "within 300 ms, again and again");
    }
    scene.told_within(60_000);
    scene.places.hurry(&Scene::at(700), scene.now);
    assert!(scene.told_within(100).contains(&700), "somebody said so");
}

#[test]
fn one_that_is_away_for_long_is_looked_for_seldom_and_at_times_of_its_own() {
    let mut scene = Scene::new();
    (1..=9).for_each(|port| scene.seek(port, port.into()));
    let first = scene.told_within(10_000).len() / 9;
    assert!((40..=60).contains(&first), "{first} times in the first seconds");
    scene.told_within(60_000);
    let later = scene.told_within(60_000);
    assert!((9 * 9..=9 * 18).contains(&later.len()), "{} times in a minute", later.len());
    let times: BTreeSet<Instant> = scene.places.due.iter().map(|(_, at, _)| *at).collect();
    assert_eq!(times.len(), 9);
}

#[test]
fn all_who_look_at_one_address_share_a_look() {
    let mut scene = Scene::new();
    (1..=100).for_each(|key| scene.seek(1, key));
    assert_eq!(scene.told_within(0).len(), 100);
    assert_eq!(scene.places.credit, LOOKS_AT_ONCE - 1);
    (1..=99).for_each(|key| scene.places.leave(&Scene::at(1), Key(key)));
    assert_eq!(scene.told_within(250), [100]);
    scene.places.leave(&Scene::at(1), Key(100));
    assert!(scene.places.next().is_none() && scene.places.all.is_empty());
    assert!(scene.places.numbers.is_empty() && scene.places.due.is_empty());
}

#[test]
fn a_server_that_is_there_is_found_by_all_and_looked_for_no_more() {
    let mut scene = Scene::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (1..=3).for_each(|key| scene.seek(port, key));
    let found = scene.told(3);
    assert!(found.iter().all(|(_, sought)| matches!(sought, LookResult::Found(_))));
    assert!(scene.places.all.is_empty());
}

/// A name is looked up elsewhere; what comes of it is a message.
#[test]
fn a_name_that_is_looked_up_may_be_wanted_no_more_when_that_is_done() {
    let mut scene = Scene::new();
    let at = Endpoint { host: Host::Name("localhost".into()), port: 1 };
    let group = Arc::clone(&scene.group);
    scene.places.seek(&at, Key(1), &group, scene.now);
    assert!(scene.places.run(scene.now, &scene.poller).is_empty());
    assert!(scene.places.next().is_none(), "it waits for the name");
    let address = Ok(SocketAddr::from(([127, 0, 0, 1], 1)));
    scene.places.resolved(1, address, scene.now, &scene.poller);
    let found = scene.places.run(scene.now, &scene.poller);
    assert!(matches!(found[..], [(Key(1), LookResult::Not(_, Look::Deaf))]));
    scene.places.leave(&at, Key(1));
    let none = Err(std::io::Error::other("no such name"));
    scene.places.resolved(1, none, scene.now, &scene.poller);
    assert!(scene.places.run(scene.now, &scene.poller).is_empty());
}

/// A server that says of each object whether it is there, on one connection, for so many objects.
fn serve(listener: &std::net::TcpListener, count: usize, silent: &[u8]) {
    use quorba_giop::{Endian, LocateStatus, Version, build};
    use std::io::{Read, Write};
    let (mut stream, _) = listener.accept().expect("somebody comes");
    let mut question = [0; 256];
    for _ in 0..count {
        let length = stream.read(&mut question).expect("it asks");
        let question = &question[..length];
        if !silent.is_empty() && question.ends_with(silent) {
            break;
        }
        let is_there = !question.ends_with(b"no");
        let status = if is_there { LocateStatus::ObjectHere } else { LocateStatus::UnknownObject };
        let answer = build::locate_reply(Version::V1_0, Endian::Little, 1, status);
        stream.write_all(answer.bytes()).expect("it listens");
    }
    // Until it goes.
    let _ = stream.read(&mut question);
}

fn seek_objects(scene: &mut Scene, port: u16, keys: &[&str]) {
    for (number, key) in (1..).zip(keys) {
        let group = group(&format!("object_key = \"{key}\""));
        scene.places.seek(&Scene::at(port), Key(number), &group, scene.now);
    }
}

#[test]
fn groups_with_one_server_ask_for_their_objects_on_one_connection() {
    let mut scene = Scene::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    seek_objects(&mut scene, port, &["a", "no", "z", "a"]);
    let server = std::thread::spawn(move || serve(&listener, 3, b""));
    let mut found = scene.told(4);
    server.join().expect("all were asked for on one connection");
    found.sort_by_key(|(key, _)| *key);
    let look = |(_, sought): &(Key, LookResult)| match sought {
        LookResult::Found(_) => Look::Ready,
        LookResult::Not(_, look) => *look,
        LookResult::Failed(why) => panic!("{why}"),
    };
    assert_eq!(
        found.iter().map(look).collect::<Vec<_>>(),
        [Look::Ready, Look::NoObject, Look::Ready, Look::Ready]
    );
    assert_eq!(scene.places.all.values().map(|place| place.seekers.len()).sum::<usize>(), 1);
}

/// One connection is of no use any more when an answer has not come on it.
#[test]
fn an_object_of_which_nothing_is_said_keeps_nobody_behind_it_waiting() {
    let mut scene = Scene::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    seek_objects(&mut scene, port, &["silent", "z"]);
    let server = std::thread::spawn(move || {
        serve(&listener, 2, b"silent");
        serve(&listener, 1, b"");
    });
    let found = scene.told(2);
    assert!(matches!(found[0], (Key(1), LookResult::Not(_, Look::Silent))));
    assert!(matches!(found[1], (Key(2), LookResult::Found(_))));
    drop(scene);
    server.join().expect("the second connection asked for the other one first");
}
