//! Links of several nodes over real sockets, and strangers that disturb them.

use super::handshake::{Handshake, Step};
use super::*;
use crate::ports::free_ports;
use std::io::{Read, Write};

mod messages;

/// Longer than anything takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tokens of one node's links.
const SPAN: u64 = 1 << 20;
const KEY: [u8; 32] = [7; 32];
const OTHER_KEY: [u8; 32] = [8; 32];

fn node(index: usize) -> NodeId {
    NodeId::new(index as u8).expect("in range")
}

/// Nodes in this thread, on one poller.
struct Net {
    poller: Poller,
    addresses: Vec<SocketAddr>,
    nodes: Vec<Option<Links>>,
    /// Who has reported whose end.
    lost: Vec<(usize, NodeId)>,
    /// What else each has reported.
    told: Vec<Vec<LinkEvent>>,
    boots: u64,
}

impl Net {
    fn new(count: usize) -> Self {
        let ports = free_ports(count).expect("ports");
        let address = |port: &u16| SocketAddr::from(([127, 0, 0, 1], *port));
        Self::at(ports.iter().map(address).collect())
    }

    fn at(addresses: Vec<SocketAddr>) -> Self {
        let nodes = addresses.iter().map(|_| None).collect();
        let told = addresses.iter().map(|_| Vec::new()).collect();
        let poller = Poller::new().expect("epoll");
        Self { poller, addresses, nodes, lost: Vec::new(), told, boots: 0 }
    }

    fn start(&mut self, index: usize, keys: &[[u8; 32]]) {
        let address = self.addresses[index];
        let mut peers: Vec<_> = self.addresses.iter().copied().map(Some).collect();
        peers[index] = None;
        let base = SPAN * index as u64;
        self.boots += 1;
        let me = (node(index), self.boots);
        let links = Links::open(me, address, peers, keys.iter(), base, &self.poller);
        self.nodes[index] = Some(links.expect("it listens"));
    }

    fn node(&self, index: usize) -> &Links {
        self.nodes[index].as_ref().expect("it runs")
    }

    /// Whether `from` has proven to `to`, and `to` to `from`, on the link that `from` opened.
    fn is_linked(&self, from: usize, to: usize) -> bool {
        let outgoing = self.node(from).outgoing.get(&node(to)).and_then(Link::proven);
        let incoming = self.node(to).incoming.iter().map(|incoming| incoming.link.proven());
        outgoing.is_some_and(|who| who.node == node(to))
            && incoming.flatten().any(|who| who.node == node(from))
    }

    fn turn(&mut self) {
        let due = self.nodes.iter().flatten().filter_map(Links::retry_at).min();
        let due = due.map(|at| at.saturating_duration_since(Clock::now()));
        // Not longer, because the test itself does something in between.
        let wait = due.unwrap_or(PATIENCE).min(Duration::from_millis(5));
        for at in 0..self.poller.wait(Some(wait)).expect("epoll") {
            let event = self.poller.ready(at);
            let index = (event.token / SPAN) as usize;
            let Some(links) = &mut self.nodes[index] else { continue };
            links.handle(event, &self.poller);
        }
        for (index, links) in self.nodes.iter_mut().enumerate() {
            let Some(links) = links else { continue };
            links.retry(&self.poller);
            links.flush(&self.poller);
            while let Some(event) = links.poll() {
                match event {
                    LinkEvent::Ended { node } => self.lost.push((index, node)),
                    event => self.told[index].push(event),
                }
            }
            let unproven = links.incoming.iter().filter(|one| one.link.proven().is_none());
            assert!(unproven.count() <= UNPROVEN_MAX);
        }
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let deadline = Clock::now() + PATIENCE;
        while !done(self) {
            assert!(Clock::now() < deadline, "not within {PATIENCE:?}: {what}");
            self.turn();
        }
    }

    fn until_linked(&mut self, one: usize, two: usize) {
        self.until("linked", |net| net.is_linked(one, two) && net.is_linked(two, one));
    }

    /// Until `index` has called once more in vain, and will do so again.
    fn until_refused(&mut self, index: usize) {
        let before = self.node(index).reopen_at;
        self.until("refused", |net| net.node(index).reopen_at > before);
    }

    /// A connection from outside to node `to`.
    fn stranger(&self, to: usize) -> Stranger {
        Stranger::new(TcpStream::connect(self.addresses[to]).expect("the kernel takes it"))
    }

    /// What the stranger gets, until there are `count` bytes or the end.
    fn hear(&mut self, stranger: &mut Stranger, count: usize) -> Vec<u8> {
        self.until("something or the end", |_| stranger.heard(count));
        std::mem::take(&mut stranger.bytes)
    }
}

/// Something that is no node.
struct Stranger {
    socket: TcpStream,
    bytes: Vec<u8>,
    is_ended: bool,
}

impl Stranger {
    fn new(socket: TcpStream) -> Self {
        socket.set_nonblocking(true).expect("a socket");
        Self { socket, bytes: Vec::new(), is_ended: false }
    }

    /// The other side may be gone already; that shows in reading.
    fn say(&mut self, bytes: &[u8]) {
        let _ = self.socket.write(bytes);
    }

    fn heard(&mut self, count: usize) -> bool {
        let mut room = [0; 256];
        let wanted = count.saturating_sub(self.bytes.len()).min(room.len());
        match self.socket.read(&mut room[..wanted]) {
            Ok(0) if wanted > 0 => self.is_ended = true,
            Ok(count) => self.bytes.extend_from_slice(&room[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.is_ended = true,
        }
        self.is_ended || self.bytes.len() >= count
    }

    /// Whether it was shut out; what it is told before that is thrown away.
    fn is_out(&mut self) -> bool {
        self.bytes.clear();
        self.heard(256);
        self.is_ended
    }
}

/// What a node with `key` and the number `me` answers to a challenge of node `called`.
fn answer(key: &[u8; 32], (me, called): (usize, usize), challenge: &[u8]) -> Vec<u8> {
    let calling = Handshake::Calling {
        me: Boot { node: node(me), incarnation: 99 },
        called: node(called),
        nonce: [3; 16],
    };
    match calling.handle(&derived(b"quorba link v1", [key].into_iter()), challenge) {
        Some(Step::Reply(answer, _)) => answer,
        _ => panic!("no answer"),
    }
}

#[test]
fn a_link_comes_from_the_rings_address_and_stays_open_where_the_host_has_another_one() {
    let port = free_ports(1).expect("a port")[0];
    let mut net = Net::at([1, 2].map(|host| SocketAddr::from(([127, 0, 1, host], port))).into());
    net.start(0, &[KEY]);
    net.start(1, &[KEY]);
    net.until_linked(0, 1);
    let from: Vec<IpAddr> = net.node(1).incoming.iter().map(|incoming| incoming.from).collect();
    assert_eq!(from, [net.addresses[0].ip()], "not the address that the route would choose");
    assert!(net.lost.is_empty(), "nobody has ended: {:?}", net.lost);
}

#[test]
fn the_end_of_a_proven_link_is_reported_once() {
    let mut net = Net::new(3);
    (0..3).for_each(|index| net.start(index, &[KEY]));
    for (one, two) in [(0, 1), (0, 2), (1, 2)] {
        net.until_linked(one, two);
    }
    net.nodes[1] = None;
    net.until("both report it", |net| net.lost.len() == 2);
    // Calls in vain are no loss.
    net.until_refused(0);
    net.until_refused(0);
    net.lost.sort_unstable();
    assert_eq!(net.lost, [(0, node(1)), (2, node(1))]);
    assert!(net.is_linked(0, 2) && net.is_linked(2, 0));
    net.start(1, &[KEY]);
    net.until_linked(0, 1);
    net.nodes[1] = None;
    net.until("both report its second end", |net| net.lost.len() == 4);
}

#[test]
fn hundreds_of_strangers_neither_end_a_link_nor_get_one() {
    let mut net = Net::new(2);
    net.start(0, &[KEY]);
    net.start(1, &[KEY]);
    net.until_linked(0, 1);
    let before = net.node(1).incoming[0].token;
    let mut strangers = Vec::new();
    for number in 0..600_u32 {
        let mut stranger = net.stranger(1);
        match number {
            // So many at the same time that there is no room for all.
            0..300 => {}
            300..450 => stranger.say(&number.to_be_bytes().repeat(100)),
            _ => stranger.say(&answer(&OTHER_KEY, (0, 1), &Handshake::challenge(&[0; 16]))),
        }
        strangers.push(stranger);
        net.turn();
    }
    net.until("all strangers are out", |_| strangers.iter_mut().all(Stranger::is_out));
    assert!(net.is_linked(0, 1) && net.is_linked(1, 0));
    let incoming: Vec<u64> = net.node(1).incoming.iter().map(|incoming| incoming.token).collect();
    assert_eq!(incoming, [before], "the link of before, and nothing else");
    assert!(net.lost.is_empty(), "{:?}", net.lost);
}

#[test]
fn a_node_gets_its_link_while_three_hundred_strangers_say_nothing() {
    let mut net = Net::new(2);
    net.start(1, &[KEY]);
    let mut strangers = Vec::new();
    for _ in 0..300 {
        strangers.push(net.stranger(1));
        net.turn();
    }
    net.start(0, &[KEY]);
    net.until_linked(0, 1);
    strangers.iter_mut().for_each(|stranger| stranger.say(&[1; 500]));
    net.until("all strangers are out", |_| strangers.iter_mut().all(Stranger::is_out));
    assert!(net.is_linked(0, 1) && net.is_linked(1, 0) && net.lost.is_empty());
}

#[test]
fn who_has_another_key_is_refused_and_its_end_is_never_reported() {
    let mut net = Net::new(2);
    net.start(0, &[KEY]);
    net.start(1, &[OTHER_KEY]);
    net.until_refused(0);
    net.until_refused(1);
    assert!(!net.is_linked(0, 1) && !net.is_linked(1, 0));
    net.nodes[1] = None;
    net.until_refused(0);
    assert!(net.lost.is_empty(), "{:?}", net.lost);
}

#[test]
fn an_impostor_at_a_nodes_address_is_refused_and_its_end_is_never_reported() {
    let mut net = Net::new(2);
    let listener = TcpListener::bind(net.addresses[1]).expect("the node does not run");
    listener.set_nonblocking(true).expect("a socket");
    net.start(0, &[KEY]);
    // It ends at once; it says nothing; it talks nonsense; it knows how to begin.
    let right = Handshake::challenge(&[0; 16]);
    for words in [None, Some(vec![]), Some(vec![1; 500]), Some([right, vec![1; 32]].concat())] {
        let mut impostor = None;
        net.until("called", |_| {
            impostor = listener.accept().ok().map(|(socket, _)| Stranger::new(socket));
            impostor.is_some()
        });
        let (Some(mut impostor), Some(words)) = (impostor, words) else { continue };
        impostor.say(&words);
        net.until("it is out", |_| impostor.is_out());
    }
    assert!(net.lost.is_empty(), "{:?}", net.lost);
}

#[test]
fn a_recorded_handshake_is_refused() {
    let mut net = Net::new(2);
    net.start(1, &[KEY]);
    let mut right = net.stranger(1);
    let challenge = net.hear(&mut right, 19);
    let recording = answer(&KEY, (0, 1), &challenge);
    right.say(&recording);
    assert_eq!(net.hear(&mut right, 40).len(), 40, "the node proves itself");
    assert_eq!(net.node(1).incoming[0].link.proven().map(|boot| boot.node), Some(node(0)));
    let mut replay = net.stranger(1);
    replay.say(&recording);
    assert_eq!(net.hear(&mut replay, 32).len(), 19, "a challenge, and then the end");
    assert!(replay.is_ended && net.node(1).incoming.len() == 1 && !right.is_out());
}

#[test]
fn a_nodes_own_words_are_refused_when_they_come_back() {
    let mut net = Net::new(2);
    let listener = TcpListener::bind(net.addresses[1]).expect("the node does not run");
    listener.set_nonblocking(true).expect("a socket");
    net.start(0, &[KEY]);
    let mut called = None;
    net.until("called", |_| {
        called = listener.accept().ok().map(|(socket, _)| Stranger::new(socket));
        called.is_some()
    });
    let mut called = called.expect("just now");
    let mut caller = net.stranger(0);
    let challenge = net.hear(&mut caller, 19);
    called.say(&challenge);
    let words = net.hear(&mut called, 157);
    assert_eq!(words.len(), 157, "it proves itself to whom it calls");
    caller.say(&words);
    assert!(net.hear(&mut caller, 32).is_empty() && caller.is_ended, "it gets no proof for that");
    called.say(&words[29..69]);
    net.until("its own proof is no other's", |_| called.is_out());
    assert!(net.node(0).incoming.is_empty() && net.lost.is_empty());
}

#[test]
fn links_outlast_a_change_of_keys_and_can_be_made_at_every_moment_of_it() {
    let (old, new) = (KEY, OTHER_KEY);
    let mut net = Net::new(2);
    net.start(0, &[old]);
    net.start(1, &[old]);
    net.until_linked(0, 1);
    let tokens = |net: &Net| [0, 1].map(|at| net.node(at).incoming[0].token);
    let (both, only_new) = ([old, new], [new]);
    let moments: [[&[[u8; 32]]; 2]; 4] =
        [[&both, &[old]], [&both, &both], [&only_new, &both], [&only_new, &only_new]];
    for keys in moments {
        let before = tokens(&net);
        for (links, keys) in net.nodes.iter_mut().flatten().zip(keys) {
            links.set_keys(keys.iter());
        }
        net.turn();
        assert!(net.is_linked(0, 1) && net.is_linked(1, 0) && tokens(&net) == before);
        // Both call each other anew.
        for links in net.nodes.iter_mut().flatten() {
            links.outgoing.clear();
            links.reopen_at = Some(Clock::now());
        }
        let is_new = |net: &Net| tokens(net).iter().zip(before).all(|(now, was)| *now != was);
        net.until("new links", |net| {
            let one_each = net.nodes.iter().flatten().all(|links| links.incoming.len() == 1);
            one_each && is_new(net) && net.is_linked(0, 1) && net.is_linked(1, 0)
        });
    }
    assert!(net.lost.is_empty(), "{:?}", net.lost);
    let mut former = net.stranger(1);
    let challenge = net.hear(&mut former, 19);
    former.say(&answer(&old, (0, 1), &challenge));
    net.until("who has the old key only is out", |_| former.is_out());
}

#[test]
fn of_one_node_only_the_latest_links_are_held() {
    let mut net = Net::new(2);
    net.start(1, &[KEY]);
    let mut latest = Vec::new();
    for _ in 0..PROVEN_PER_NODE_MAX + 2 {
        let mut caller = net.stranger(1);
        let challenge = net.hear(&mut caller, 19);
        caller.say(&answer(&KEY, (0, 1), &challenge));
        net.hear(&mut caller, 40);
        latest.push(caller);
    }
    net.until("the former ones are out", |_| latest[..2].iter_mut().all(Stranger::is_out));
    assert_eq!(net.node(1).incoming.len(), PROVEN_PER_NODE_MAX);
    // A number that no other node has.
    for who in [1, 2] {
        let mut caller = net.stranger(1);
        let challenge = net.hear(&mut caller, 19);
        caller.say(&answer(&KEY, (who, 1), &challenge));
        net.until("it is out", |_| caller.is_out());
    }
    assert!(!latest[2..].iter_mut().any(Stranger::is_out));
}
