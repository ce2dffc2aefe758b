//! What one boot of one node submitted, and what it saw: messages and views, in one stream.
//!
//! Invariant: written once, by the world; checkers only read.

use bytes::{BufMut, Bytes, BytesMut};
use quorba_base::{Instant, NodeId};
use quorba_engine::order::{Guarantee, Position, RingId, Snapshot, View, ViewKind};

/// Bytes that every message begins with: which life, and which of its messages.
pub(super) const HEAD_BYTES: usize = 16;

/// A message that a life submitted; ticket n is at n - 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submission {
    pub(super) bytes: usize,
    pub(super) guarantee: Guarantee,
    /// The last message that its sender had been delivered.
    pub(super) saw: Option<Position>,
}

impl Submission {
    /// What it says; nobody else says the same.
    pub(super) fn payload(&self, life: usize, ticket: u64) -> Bytes {
        let mut payload = BytesMut::with_capacity(self.bytes);
        payload.put_u64(life as u64);
        payload.put_u64(ticket);
        payload.resize(self.bytes, ticket as u8);
        payload.freeze()
    }

    /// Whether that is what `payload` says; nothing is allocated, for this is asked very often.
    pub(super) fn is(&self, life: usize, ticket: u64, payload: &[u8]) -> bool {
        let Some((head, filling)) = payload.split_first_chunk::<HEAD_BYTES>() else { return false };
        let name = u128::from(life as u64) << 64 | u128::from(ticket);
        let differs = filling.iter().fold(0, |differs, byte| differs | (byte ^ ticket as u8));
        payload.len() == self.bytes && u128::from_be_bytes(*head) == name && differs == 0
    }
}

/// A message that a life was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Got {
    pub(super) position: Position,
    /// The life that sent it, and its name for it.
    pub(super) origin: usize,
    pub(super) ticket: u64,
}

/// A claim that a majority has all messages of a life up to a ticket.
pub(crate) struct Claim {
    pub(super) ticket: u64,
    /// Of every life that ran.
    pub(super) states: Vec<State>,
    pub(super) at: Instant,
}

/// How a life stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(super) life: usize,
    /// The ring that it had installed, and the packet up to which it had everything of that.
    pub(super) received: Option<(RingId, u64)>,
    /// How many messages it had been delivered.
    pub(super) delivered: usize,
}

/// See the module's text.
pub(crate) struct Life {
    pub(super) node: NodeId,
    pub(super) incarnation: u64,
    pub(crate) submitted: Vec<Submission>,
    pub(crate) got: Vec<Got>,
    /// Each with the number of messages that were delivered before it.
    pub(crate) views: Vec<(usize, View)>,
    pub(super) held: u64,
    pub(super) stable: u64,
    /// First and last ticket of messages for which no claim will come.
    pub(super) unheld: Vec<(u64, u64)>,
    pub(super) claims: Vec<Claim>,
    /// How it stood when it ended, and when that was.
    pub(super) ended: Option<(Instant, Box<Snapshot>)>,
    /// How it stood before the last input, if it was to end in the middle of what follows.
    pub(super) before: Option<Box<Snapshot>>,
}

impl Life {
    pub(super) fn new(node: NodeId, incarnation: u64) -> Self {
        Self {
            node,
            incarnation,
            submitted: Vec::new(),
            got: Vec::new(),
            views: Vec::new(),
            held: 0,
            stable: 0,
            unheld: Vec::new(),
            claims: Vec::new(),
            ended: None,
            before: None,
        }
    }

    /// Whether `position` is among the first `count` messages that it was delivered.
    pub(super) fn has(&self, position: Position, count: usize) -> bool {
        self.got[..count].binary_search_by_key(&position, |got| got.position).is_ok()
    }

    /// Its regular views.
    pub(super) fn regular_views(&self) -> impl Iterator<Item = &View> {
        self.views.iter().map(|(_, view)| view).filter(|view| view.kind == ViewKind::Regular)
    }

    /// How many of its own messages it was delivered.
    pub(super) fn own_deliveries(&self, me: usize) -> impl Iterator<Item = u64> + '_ {
        self.got.iter().filter(move |got| got.origin == me).map(|got| got.ticket)
    }
}

/// What one life saw of one ring: between two regular views.
pub(super) struct Stay<'a> {
    pub(super) life: usize,
    pub(super) ring: RingId,
    /// Delivered in the regular configuration, and in the transitional one behind it.
    pub(super) regular: &'a [Got],
    pub(super) transitional: &'a [Got],
    pub(super) half: Option<&'a View>,
    pub(super) next: Option<&'a View>,
}

impl<'a> Stay<'a> {
    pub(super) fn all(&self) -> impl Iterator<Item = &'a Got> {
        self.regular.iter().chain(self.transitional)
    }
}

/// Everything that happened.
pub(super) struct History<'a> {
    pub(super) nodes: usize,
    pub(super) lives: &'a [Life],
    pub(super) stays: Vec<Stay<'a>>,
}

impl<'a> History<'a> {
    /// The whole history, if the views of every life follow each other as they must.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn new(nodes: usize, lives: &'a [Life]) -> Result<Self, String> {
        let mut stays = Vec::new();
        for (index, life) in lives.iter().enumerate() {
            stays_of(index, life, &mut stays)?;
        }
        Ok(Self { nodes, lives, stays })
    }

    pub(super) fn name(&self, life: usize) -> String {
        format!("{}/{}", self.lives[life].node, self.lives[life].incarnation)
    }

    pub(super) fn guarantee(&self, got: &Got) -> Guarantee {
        self.lives[got.origin].submitted[got.ticket as usize - 1].guarantee
    }

    /// The life of a node in a boot.
    pub(super) fn life_of(&self, node: NodeId, incarnation: u64) -> Option<&'a Life> {
        self.lives.iter().find(|life| life.node == node && life.incarnation == incarnation)
    }
}

fn stays_of<'a>(index: usize, life: &'a Life, stays: &mut Vec<Stay<'a>>) -> Result<(), String> {
    let end = life.got.len();
    if life.views.first().map_or(end, |(before, _)| *before) > 0 {
        return Err(format!("{} was delivered a message before any view", life.node));
    }
    let mut views = life.views.iter().peekable();
    while let Some((from, view)) = views.next() {
        if view.kind != ViewKind::Regular {
            return Err(format!("{}: {} is not announced by a regular view", life.node, view.ring));
        }
        let half = views.next_if(|(_, view)| view.kind == ViewKind::Transitional);
        let next = views.peek().map(|(at, view)| (*at, view));
        if next.is_some() && half.is_none() {
            let text = format!("{} left {} without a transitional view", life.node, view.ring);
            return Err(text);
        }
        let until = next.map_or(end, |(at, _)| at);
        let middle = half.map_or(until, |(at, _)| *at);
        stays.push(Stay {
            life: index,
            ring: view.ring,
            regular: &life.got[*from..middle],
            transitional: &life.got[middle..until],
            half: half.map(|(_, view)| view),
            next: next.map(|(_, view)| view),
        });
    }
    Ok(())
}
