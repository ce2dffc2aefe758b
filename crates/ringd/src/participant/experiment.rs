//! One experiment at one node, as a pure state machine: when to send, what was delivered.
//!
//! What it is not: a clock or a socket; times come in as nanoseconds of the monotonic clock.
//!
//! Invariants: only messages with the experiment's id count; the order hash covers every counted
//! message of every sender, in the order of delivery.

use super::command::{HEADER_BYTES, Kind, Plan};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
/// The number of a sender's last message.
const END: u64 = u64::MAX;

/// What the node is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Send the next message.
    Send,
    /// Nothing before this time.
    WaitUntil(u64),
    /// Nothing before something is delivered.
    Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Prepared,
    Running,
    /// All own messages are sent but the END marker.
    Ending,
    /// Nothing more to send.
    Sent,
}

/// See the module's text.
pub(crate) struct Experiment {
    pub(crate) plan: Plan,
    me: u32,
    senders: BTreeSet<u32>,
    stage: Stage,
    go_ns: u64,
    end_ns: u64,
    next_at: u64,
    sent: u64,
    own: u64,
    sent_at: u64,
    delivered: u64,
    hash: u64,
    ended: BTreeSet<u32>,
    samples_ns: Vec<u64>,
    last_at: u64,
    gap: (u64, u64),
    views: Vec<Value>,
    stopped: bool,
    message: Vec<u8>,
}

impl Experiment {
    pub(crate) fn new(plan: Plan, me: u32, nodes: u32) -> Self {
        let senders = if plan.sender == 0 { (1..=nodes).collect() } else { [plan.sender].into() };
        let samples = if plan.kind == Kind::Latency { plan.amount.min(1 << 24) } else { 0 };
        Self {
            me,
            senders,
            stage: Stage::Prepared,
            go_ns: 0,
            end_ns: 0,
            next_at: 0,
            sent: 0,
            own: 0,
            sent_at: 0,
            delivered: 0,
            hash: FNV_OFFSET,
            ended: BTreeSet::new(),
            samples_ns: Vec::with_capacity(samples as usize),
            last_at: 0,
            gap: (0, 0),
            views: Vec::new(),
            stopped: false,
            message: vec![0x5a; plan.size_bytes.max(HEADER_BYTES)],
            plan,
        }
    }

    pub(crate) fn go(&mut self, now_ns: u64) {
        self.go_ns = now_ns;
        self.end_ns = now_ns;
        self.next_at = now_ns + self.plan.pause_us * 1000;
        self.stage = if self.senders.contains(&self.me) { Stage::Running } else { Stage::Sent };
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// What to do now. [`Self::message`] is to follow a [`Next::Send`] that was possible.
    pub(crate) fn next(&mut self, now_ns: u64) -> Next {
        let undelivered = self.sent - self.own;
        match (self.stage, self.plan.kind) {
            (Stage::Prepared | Stage::Sent, _) => Next::Wait,
            (Stage::Ending, _) => Next::Send,
            (Stage::Running, Kind::Latency) => {
                if undelivered > 0 || self.sent == self.plan.amount {
                    Next::Wait
                } else if self.next_at > now_ns {
                    Next::WaitUntil(self.next_at)
                } else {
                    Next::Send
                }
            }
            (Stage::Running, Kind::Stream) => {
                if now_ns >= self.go_ns + self.plan.amount * 1_000_000 {
                    self.stage = Stage::Ending;
                    Next::Send
                } else if self.plan.window > 0 && undelivered >= self.plan.window {
                    Next::Wait
                } else {
                    Next::Send
                }
            }
            (Stage::Running, Kind::Steady) => {
                if self.stopped {
                    self.stage = Stage::Ending;
                    Next::Send
                } else if self.next_at > now_ns {
                    Next::WaitUntil(self.next_at)
                } else {
                    Next::Send
                }
            }
        }
    }

    /// The message to be sent.
    pub(crate) fn message(&mut self) -> &[u8] {
        let number = if self.stage == Stage::Ending { END } else { self.sent };
        let (id, me) = (self.plan.id.to_le_bytes(), self.me.to_le_bytes());
        self.message[..4].copy_from_slice(&id);
        self.message[4..8].copy_from_slice(&me);
        self.message[8..HEADER_BYTES].copy_from_slice(&number.to_le_bytes());
        &self.message
    }

    /// The message was taken; `now_ns` is from before it was offered.
    pub(crate) fn sent(&mut self, now_ns: u64) {
        if self.stage == Stage::Ending {
            self.stage = Stage::Sent;
            return;
        }
        self.sent += 1;
        self.sent_at = now_ns;
        if self.plan.kind == Kind::Steady {
            self.next_at += self.plan.pause_us * 1000;
        }
    }

    /// A message was delivered here.
    pub(crate) fn delivered(&mut self, now_ns: u64, message: &[u8]) {
        let Some((head, _)) = message.split_first_chunk::<HEADER_BYTES>() else { return };
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (id, sender) = (word(0), word(4));
        let number = u64::from(word(8)) | u64::from(word(12)) << 32;
        if id != self.plan.id {
            return;
        }
        self.end_ns = now_ns;
        if number == END {
            self.ended.insert(sender);
            return;
        }
        if self.delivered > 0 && now_ns - self.last_at > self.gap.1 - self.gap.0 {
            self.gap = (self.last_at, now_ns);
        }
        self.last_at = now_ns;
        self.delivered += 1;
        self.hash = (self.hash ^ (u64::from(sender) << 48 | number)).wrapping_mul(FNV_PRIME);
        if sender == self.me {
            self.own += 1;
            if self.plan.kind == Kind::Latency {
                self.samples_ns.push(now_ns - self.sent_at);
                self.next_at = now_ns + self.plan.pause_us * 1000;
            }
        }
    }

    /// A regular view; members are numbered from 1.
    ///
    /// # Errors
    /// A sender whose end is waited for is not in it: what it sent meanwhile will never come.
    pub(crate) fn view(&mut self, now_ns: u64, members: &[u32]) -> Result<(), String> {
        self.views.push(json!({ "at_ns": now_ns, "members": members }));
        let is_waited_for = |node: &&u32| !self.ended.contains(node) && !members.contains(node);
        let is_endless = self.plan.kind != Kind::Steady && self.stage != Stage::Prepared;
        match self.senders.iter().find(is_waited_for) {
            Some(node) if is_endless => {
                Err(format!("node {node} is not in the view any more, with its messages under way"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        if self.stage == Stage::Prepared {
            return false;
        }
        match self.plan.kind {
            Kind::Latency => self.delivered >= self.plan.amount,
            Kind::Stream => self.senders.is_subset(&self.ended),
            Kind::Steady => {
                self.senders.is_subset(&self.ended)
                    || self.stopped && !self.senders.contains(&self.me)
            }
        }
    }

    /// From the start to the last delivery.
    pub(crate) const fn took_ns(&self) -> u64 {
        self.end_ns - self.go_ns
    }

    /// The line that ends it. `rotations`: how long the token took around the ring, if known.
    pub(crate) fn done(&self, ring: Value, rotations: Option<Value>) -> Value {
        let mut fields: BTreeMap<&str, Value> = BTreeMap::new();
        fields.insert("event", json!("done"));
        fields.insert("id", json!(self.plan.id));
        fields.insert("go_ns", json!(self.go_ns));
        fields.insert("end_ns", json!(self.end_ns));
        fields.insert("delivered", json!(self.delivered));
        fields.insert("hash", json!(format!("{:016x}", self.hash)));
        fields.insert("ring", ring);
        if let Some(rotations) = rotations {
            fields.insert("rotation_us", rotations);
        }
        match self.plan.kind {
            Kind::Latency => {
                fields.insert("samples_ns", json!(self.samples_ns));
            }
            Kind::Stream | Kind::Steady => {
                fields.insert("gap_begin_ns", json!(self.gap.0));
                fields.insert("gap_end_ns", json!(self.gap.1));
                fields.insert("views", json!(self.views));
            }
        }
        json!(fields)
    }
}
