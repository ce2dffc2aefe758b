//! Byte streams between the admin APIs of two nodes, over the link that the nodes have anyway: what
//! an operator asks of one node reaches any other.
//!
//! What it is not: a way past the link. A tunnel is sealed as the link is and ends with it; whoever
//! may open one holds the domain key. Nothing of it touches the engine.
//!
//! Invariants: of each stream at most [`WINDOW_BYTES`] are under way in each direction, so that a
//! large backup holds up no reply of a call; another node opens at most [`TUNNELS_PER_NODE_MAX`] at
//! a time; the end of a link ends all tunnels over it.

mod frame;

use bytes::Bytes;
pub(crate) use frame::FIRST_OCTET;
use frame::{DATA_BYTES_MAX, Frame, What};
use quorba_base::NodeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;

/// Octets of a stream that may be under way in one direction.
const WINDOW_BYTES: usize = 64 << 10;
/// Tunnels that one other node may have open here.
const TUNNELS_PER_NODE_MAX: usize = 32;

/// What the data plane tells of the links.
#[derive(Debug)]
pub(crate) enum News {
    /// A message that begins with [`FIRST_OCTET`].
    Message(NodeId, Bytes),
    /// What was on its way to or from this node is lost.
    Down(NodeId),
    /// The domain file of this node is wanted.
    WantsFile(NodeId),
}

/// What [`Tunnels::run`] gives out.
pub(crate) enum Begun {
    /// A stream that another node has opened.
    Stream(DuplexStream),
    /// The data plane wants the domain file of a node.
    WantsFile(NodeId),
}

/// Where the data plane puts [`News`].
pub(crate) type NewsSender = UnboundedSender<News>;
/// Where they are read.
pub(crate) type NewsReceiver = UnboundedReceiver<News>;

/// The way for [`News`].
pub(crate) fn news() -> (NewsSender, NewsReceiver) {
    mpsc::unbounded_channel()
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    node: NodeId,
    /// This node has opened it.
    is_ours: bool,
    number: u64,
}

struct Tunnel {
    /// Octets that came; nothing any more behind the other side's end.
    arrived: Option<UnboundedSender<Bytes>>,
    /// Octets that the other side may still send.
    window: usize,
    /// Octets that may be sent to it.
    credit: Arc<Semaphore>,
    pumps: [AbortHandle; 2],
    /// Directions that have not come to their end.
    directions: u8,
}

type Post = Box<dyn Fn(NodeId, Bytes) -> bool + Send + Sync>;

/// All tunnels of a node; to be used within one tokio runtime.
pub(crate) struct Tunnels {
    post: Post,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_number: u64,
    open: HashMap<Key, Tunnel>,
}

impl Tunnels {
    /// `post` hands a message for a node to the data plane; false if that is gone.
    pub(crate) fn new(post: impl Fn(NodeId, Bytes) -> bool + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { post: Box::new(post), state: Mutex::default() })
    }

    /// A new stream to a node. If there is no link to it, the stream ends at once.
    pub(crate) fn open(self: &Arc<Self>, node: NodeId) -> DuplexStream {
        let number = {
            let mut state = self.state.lock().expect("no holder panics");
            state.last_number += 1;
            state.last_number
        };
        let key = Key { node, is_ours: true, number };
        let near = self.begin(key);
        self.say(key, What::Open);
        near
    }

    /// Takes in what the data plane tells, for ever; what is to be done beyond that goes to
    /// `begin`.
    pub(crate) async fn run(self: Arc<Self>, mut news: NewsReceiver, mut begin: impl FnMut(Begun)) {
        while let Some(one) = news.recv().await {
            match one {
                News::Down(node) => self.forget(|key| key.node == node),
                News::WantsFile(node) => begin(Begun::WantsFile(node)),
                News::Message(node, bytes) => {
                    if let Some(frame) = Frame::decode(bytes)
                        && let Some(stream) = self.hear(node, frame)
                    {
                        begin(Begun::Stream(stream));
                    }
                }
            }
        }
    }

    fn hear(self: &Arc<Self>, node: NodeId, frame: Frame) -> Option<DuplexStream> {
        let key = Key { node, is_ours: !frame.is_senders, number: frame.number };
        if frame.what == What::Open {
            if key.is_ours || !self.has_room_for(key) {
                self.say(key, What::Reset);
                return None;
            }
            return Some(self.begin(key));
        }
        let mut state = self.state.lock().expect("no holder panics");
        let Some(tunnel) = state.open.get_mut(&key) else {
            drop(state);
            // Whoever sends into it must learn that it is gone.
            if matches!(frame.what, What::Data(_)) {
                self.say(key, What::Reset);
            }
            return None;
        };
        let is_fine = match frame.what {
            What::Open => unreachable!("handled above"),
            What::Data(data) => tunnel.take(data),
            What::Credit(octets) => {
                let octets = octets as usize;
                let is_fine = tunnel.credit.available_permits() + octets <= WINDOW_BYTES;
                if is_fine {
                    tunnel.credit.add_permits(octets);
                }
                is_fine
            }
            What::End => {
                tunnel.arrived = None;
                true
            }
            What::Reset => false,
        };
        if !is_fine {
            drop(state);
            self.forget(|other| *other == key);
            self.say(key, What::Reset);
        }
        None
    }

    fn has_room_for(&self, key: Key) -> bool {
        let state = self.state.lock().expect("no holder panics");
        let theirs = state.open.keys().filter(|other| other.node == key.node && !other.is_ours);
        theirs.count() < TUNNELS_PER_NODE_MAX && !state.open.contains_key(&key)
    }

    /// A tunnel's two pumps; gives back the stream that goes through it.
    fn begin(self: &Arc<Self>, key: Key) -> DuplexStream {
        let (near, far) = tokio::io::duplex(DATA_BYTES_MAX);
        let (from_here, to_here) = tokio::io::split(far);
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let credit = Arc::new(Semaphore::new(WINDOW_BYTES));
        let pumps = [
            tokio::spawn(Arc::clone(self).pump_out(key, from_here, Arc::clone(&credit))),
            tokio::spawn(Arc::clone(self).pump_in(key, arrivals, to_here)),
        ]
        .map(|task| task.abort_handle());
        let arrived = Some(arrived);
        let tunnel = Tunnel { arrived, window: WINDOW_BYTES, credit, pumps, directions: 2 };
        self.state.lock().expect("no holder panics").open.insert(key, tunnel);
        near
    }

    async fn pump_out(
        self: Arc<Self>,
        key: Key,
        mut from_here: ReadHalf<DuplexStream>,
        credit: Arc<Semaphore>,
    ) {
        let mut buffer = vec![0; DATA_BYTES_MAX];
        while let Ok(count @ 1..) = from_here.read(&mut buffer).await {
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                // One octet at least, and what else may be sent.
                let Ok(first) = credit.acquire().await else { return };
                first.forget();
                let more = credit.available_permits().min(rest.len() - 1);
                let more = match credit.try_acquire_many(more as u32) {
                    Ok(permits) => {
                        permits.forget();
                        more
                    }
                    Err(_) => 0,
                };
                let (now, later) = rest.split_at(1 + more);
                self.say(key, What::Data(Bytes::copy_from_slice(now)));
                rest = later;
            }
        }
        self.say(key, What::End);
        self.direction_ended(key);
    }

    async fn pump_in(
        self: Arc<Self>,
        key: Key,
        mut arrivals: UnboundedReceiver<Bytes>,
        mut to_here: WriteHalf<DuplexStream>,
    ) {
        while let Some(data) = arrivals.recv().await {
            if to_here.write_all(&data).await.is_err() {
                // Nobody reads any more.
                self.forget_soon(key);
                return;
            }
            self.took(key, data.len());
        }
        let _ = to_here.shutdown().await;
        self.direction_ended(key);
    }

    /// What came was taken, and the other side may send as much again.
    fn took(&self, key: Key, octets: usize) {
        if let Some(tunnel) = self.state.lock().expect("no holder panics").open.get_mut(&key) {
            tunnel.window += octets;
        }
        self.say(key, What::Credit(octets as u32));
    }

    fn direction_ended(&self, key: Key) {
        let mut state = self.state.lock().expect("no holder panics");
        let Some(tunnel) = state.open.get_mut(&key) else { return };
        tunnel.directions -= 1;
        if tunnel.directions == 0 {
            state.open.remove(&key);
        }
    }

    fn forget_soon(&self, key: Key) {
        self.say(key, What::Reset);
        self.forget(|other| *other == key);
    }

    fn forget(&self, which: impl Fn(&Key) -> bool) {
        let mut state = self.state.lock().expect("no holder panics");
        for (_, tunnel) in state.open.extract_if(|key, _| which(key)) {
            tunnel.pumps.iter().for_each(AbortHandle::abort);
        }
    }

    fn say(&self, key: Key, what: What) {
        let frame = Frame { is_senders: key.is_ours, number: key.number, what };
        // If the data plane is gone, so is the node.
        let _ = (self.post)(key.node, frame.encode());
    }
}

impl Tunnel {
    /// False if that is more than was allowed, or comes behind the end.
    fn take(&mut self, data: Bytes) -> bool {
        let Some(left) = self.window.checked_sub(data.len()) else { return false };
        self.window = left;
        self.arrived.as_ref().is_some_and(|arrived| {
            // A reader that is gone says so itself.
            let _ = arrived.send(data);
            true
        })
    }
}

#[cfg(test)]
mod tests;
