//! What the passive styles keep: the log of requests that nobody here has executed yet, and
//! checkpoints on their way from the leader to the others.
//!
//! A checkpoint is the leader's state after some request of the group, counted from its first, or
//! what changed since the checkpoint before it, together with the replies that clients may still
//! ask for. It travels in pieces through the order, so that every member has the same ones.
//!
//! What it is not: it decides neither who leads nor when a checkpoint is due. Invariant: a member's
//! base and its log are together everything that was delivered to the group.

use crate::messages::pieces::CheckpointPiece;
use crate::state::chain::Chain;
use crate::table::moment::Moment;
use crate::words::history::{History, put_history, take_history};
use crate::words::ids::{Attempt, RequestKey, put_key, take_key};
use crate::words::wire::{InvalidEnvelope, Reader, Writer, split_head};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::policy::CheckpointRule;
use quorba_base::{Instant, NodeId, NodeSet};

/// Requests and bytes that may wait for a leader's death; a member that has more drops out.
const LOGGED_MAX: usize = 200_000;
const LOGGED_BYTES_MAX: usize = 512 << 20;
/// Updates that a member without a server keeps behind its state; then the leader sends a whole
/// state again.
pub(crate) const UPDATES_MAX: usize = 64;

/// A request, or something else that has its place among them.
pub(crate) enum Logged {
    /// To be executed; `history`: what the group was delivered with it.
    Request {
        history: History,
        moment: Moment,
        key: RequestKey,
        giop: Bytes,
        code_sets: Option<Bytes>,
    },
    /// The state at this place is for a member that joins.
    Capture { joiner: NodeId, attempt: Attempt },
}

/// What was delivered and has been neither executed here nor covered by a checkpoint.
#[derive(Default)]
pub(crate) struct RequestLog {
    entries: VecDeque<Logged>,
    bytes: usize,
    /// What may be kept beyond the limits, as it came from a disk: entries and bytes.
    spared: (usize, usize),
}

impl RequestLog {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn is_overfull(&self) -> bool {
        let (entries, bytes) = self.spared;
        self.entries.len() > LOGGED_MAX + entries || self.bytes > LOGGED_BYTES_MAX + bytes
    }

    /// What is in it now does not count.
    pub(crate) fn spare(&mut self) {
        self.spared = (self.entries.len(), self.bytes);
    }

    pub(crate) fn push(&mut self, entry: Logged) {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
    }

    pub(crate) fn take(&mut self) -> VecDeque<Logged> {
        (self.bytes, self.spared) = (0, (0, 0));
        core::mem::take(&mut self.entries)
    }

    /// The requests in it, by their indices.
    pub(crate) fn requests(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().filter_map(|entry| match entry {
            Logged::Request { history, .. } => Some(history.count),
            Logged::Capture { .. } => None,
        })
    }

    /// The same, by name and place.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&RequestKey, History)> {
        self.entries.iter().filter_map(|entry| match entry {
            Logged::Request { history, key, .. } => Some((key, *history)),
            Logged::Capture { .. } => None,
        })
    }

    /// What is in it, but for captures.
    pub(crate) fn copies(&self) -> Vec<Logged> {
        let copy = |entry: &Logged| match entry {
            Logged::Request { history, moment, key, giop, code_sets } => Some(Logged::Request {
                history: *history,
                moment: *moment,
                key: key.clone(),
                giop: giop.clone(),
                code_sets: code_sets.clone(),
            }),
            Logged::Capture { .. } => None,
        };
        self.entries.iter().filter_map(copy).collect()
    }

    /// Keeps only requests of which that is so.
    pub(crate) fn retain(&mut self, keeps: impl Fn(History) -> bool) {
        self.entries.retain(|entry| match entry {
            Logged::Request { history, .. } => keeps(*history),
            Logged::Capture { .. } => true,
        });
        self.bytes = self.entries.iter().map(Logged::bytes).sum();
    }

    /// Takes over from the head of another one what is covered by the first `up_to` requests.
    pub(crate) fn append_up_to(&mut self, other: &mut Self, up_to: u64) {
        while let Some(entry) = other.entries.pop_front_if(|entry| entry.is_covered(up_to)) {
            other.bytes -= entry.bytes();
            self.push(entry);
        }
    }

    /// Takes out the captures, which only a leader can do.
    pub(crate) fn take_captures(&mut self) -> Vec<(NodeId, Attempt)> {
        let mut captures = Vec::new();
        self.entries.retain(|entry| match entry {
            Logged::Capture { joiner, attempt } => {
                captures.push((*joiner, *attempt));
                false
            }
            Logged::Request { .. } => true,
        });
        captures
    }

    /// A checkpoint covers all requests up to `index`.
    pub(crate) fn drop_up_to(&mut self, up_to: u64) {
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.is_covered(up_to)) {
            self.bytes -= entry.bytes();
        }
    }
}

impl Logged {
    /// Whether the first `up_to` requests of the group have it.
    fn is_covered(&self, up_to: u64) -> bool {
        match self {
            Self::Request { history, .. } => history.count <= up_to,
            Self::Capture { .. } => false,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Request { giop, .. } => giop.len(),
            Self::Capture { .. } => 0,
        }
    }
}

/// What a server is to be given before its log, if it did not see what the log goes on from.
#[derive(Clone)]
pub(crate) struct Base {
    /// The requests that are in it.
    pub(crate) at: History,
    /// `None`: what a fresh server has.
    pub(crate) state: Option<Bytes>,
    /// In their order.
    pub(crate) updates: Vec<Bytes>,
}

impl Base {
    /// That of a fresh server.
    pub(crate) const FRESH: Self = Self { at: History::EMPTY, state: None, updates: Vec::new() };
}

/// What stands in front of the state of a checkpoint, in its order there.
type Head = (Option<History>, History, Vec<(RequestKey, Option<Bytes>)>);

/// A checkpoint.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Checkpoint {
    /// The checkpoint that it goes on from; `None`: it is a whole state.
    pub(crate) from: Option<History>,
    /// The requests that are in it.
    pub(crate) up_to: History,
    /// Replies to requests that are in it; those of earlier checkpoints are known already.
    pub(crate) replies: Vec<(RequestKey, Option<Bytes>)>,
    /// What the server gave.
    pub(crate) state: Bytes,
}

impl Checkpoint {
    pub(crate) fn encode(&self) -> Bytes {
        let replies: usize =
            self.replies.iter().map(|(_, r)| r.as_ref().map_or(0, Bytes::len)).sum();
        let mut w =
            Writer::with_capacity(64 + self.state.len() + replies + 64 * self.replies.len());
        w.u8(u8::from(self.from.is_some()));
        put_history(&mut w, self.from.unwrap_or(History::EMPTY));
        put_history(&mut w, self.up_to);
        w.u32(self.replies.len() as u32);
        for (key, reply) in &self.replies {
            put_key(&mut w, key, 0);
            w.u8(u8::from(reply.is_some()));
            w.bytes(reply.as_deref().unwrap_or_default());
        }
        w.rest(&self.state);
        w.finish()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Self, InvalidEnvelope> {
        let mut r = Reader::new(bytes.clone());
        Self::decode_replies(&mut r)?;
        let (head, state) = split_head(bytes, r.offset());
        let (from, up_to, replies) = Self::decode_replies(&mut Reader::new(head))?;
        Ok(Self { from, up_to, replies, state })
    }

    /// All but the state.
    fn decode_replies(r: &mut Reader) -> Result<Head, InvalidEnvelope> {
        let is_update = r.bool("update flag")?;
        let from = Some(take_history(r)?).filter(|_| is_update);
        let up_to = take_history(r)?;
        let mut replies = Vec::new();
        for _ in 0..r.count(14, "checkpoint replies")? {
            let (key, _) = take_key(r)?;
            let some = r.bool("reply flag")?;
            let reply = r.bytes("reply")?;
            replies.push((key, some.then_some(reply)));
        }
        Ok((from, up_to, replies))
    }

    /// Whether the one that begins so is an update.
    fn begins_update(bytes: &Bytes) -> bool {
        bytes.first() == Some(&1)
    }
}

/// Where the leader stands with its checkpoints.
pub(crate) struct Checkpointer {
    pub(crate) rule: CheckpointRule,
    /// The number of the last one that was begun.
    number: u64,
    /// Other members are in, or about to be.
    pub(crate) audience: bool,
    /// One is wanted, even if nothing was asked of the group.
    pub(crate) wanted: bool,
    /// Requests that were admitted since the last one was begun.
    pub(crate) since: u32,
    /// Others may keep requests that are not among these.
    pub(crate) others_log: bool,
    /// When the first of them was.
    pub(crate) waiting_since: Option<Instant>,
    /// What the server has answered since the last one was taken.
    pub(crate) completed: Vec<RequestKey>,
    /// What the next one goes on from; if that is nothing, it has to be a whole state.
    pub(crate) chain: Chain,
    /// Requests of the group when a member came or went last that has not seen the last one.
    pub(crate) joined_at: u64,
    /// Members that join.
    pub(crate) joiners: NodeSet,
    /// A whole state was taken while somebody joined, who leaves it out.
    pub(crate) missed_whole: bool,
    /// The server is being asked for these.
    pub(crate) asked: Vec<u64>,
    /// On their way, one after the other.
    pub(crate) sending: VecDeque<Sending>,
    /// The server could not give its state.
    pub(crate) failed: bool,
    /// How often, in a row.
    pub(crate) failures: u32,
    /// Not again before then.
    pub(crate) not_before: Instant,
}

impl Checkpointer {
    /// Where nothing was done yet. `number`: of the last one that was begun before.
    pub(crate) fn new(rule: CheckpointRule, number: u64) -> Self {
        Self {
            rule,
            number,
            audience: false,
            wanted: false,
            since: 0,
            others_log: false,
            waiting_since: None,
            completed: Vec::new(),
            chain: Chain::default(),
            joined_at: 0,
            joiners: NodeSet::EMPTY,
            missed_whole: false,
            asked: Vec::new(),
            sending: VecDeque::new(),
            failed: false,
            failures: 0,
            not_before: Instant::ZERO,
        }
    }

    /// What was begun is void.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self::new(self.rule, self.number);
    }

    /// The member has another duty than before; `since`: requests that it keeps for its server.
    pub(crate) fn leads_anew(&mut self, since: u32) {
        let (joined_at, joiners) = (self.joined_at, self.joiners);
        self.begin_anew();
        (self.since, self.others_log) = (since, true);
        (self.joined_at, self.joiners) = (joined_at, joiners);
    }

    /// The server is being asked for one more; its number.
    pub(crate) fn ask(&mut self) -> u64 {
        self.number += 1;
        self.asked.push(self.number);
        self.number
    }

    /// One is being made or is on its way.
    pub(crate) fn is_underway(&self) -> bool {
        !self.asked.is_empty() || !self.sending.is_empty()
    }

    /// Somebody who joins goes on from a state that the members that are in have not got; what the
    /// group was delivered until then is `index` requests.
    pub(crate) fn break_chain(&mut self, index: u64) {
        self.chain.break_off();
        self.joined_at = index;
    }
}

/// How far a checkpoint is that was taken.
pub(crate) struct Sending {
    pub(crate) number: u64,
    /// The requests that are in it.
    pub(crate) up_to: u64,
    pub(crate) bytes: Bytes,
    pub(crate) next: usize,
}

/// Bytes of one piece.
const PIECE_BYTES: usize = 32 * 1024;
/// Pieces that may be on their way at once.
const PIECES_IN_FLIGHT: usize = 8;

/// Which checkpoint a piece is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) leader: NodeId,
    /// The try that brought the leader in.
    pub(crate) attempt: Attempt,
    /// The leader's count.
    pub(crate) number: u64,
}

impl CheckpointPiece {
    /// Pieces of `whole` from `next` on that may be sent now: the first ones, or one more because
    /// one was delivered.
    pub(crate) fn next(whole: &Bytes, next: &mut usize, first: bool) -> Vec<Self> {
        let count = if first { PIECES_IN_FLIGHT } else { 1 };
        let mut pieces = Vec::new();
        while pieces.len() < count && *next < whole.len() {
            let end = (*next + PIECE_BYTES).min(whole.len());
            let (offset, total) = (*next as u64, whole.len() as u64);
            pieces.push(Self { offset, total, bytes: whole.slice(*next..end) });
            *next = end;
        }
        pieces
    }

    /// Whether it is the beginning of a whole state.
    pub(crate) fn begins_whole(&self) -> bool {
        self.offset == 0 && !Checkpoint::begins_update(&self.bytes)
    }

    pub(crate) fn is_last(&self) -> bool {
        self.offset.checked_add(self.bytes.len() as u64) == Some(self.total)
    }
}

/// A checkpoint as its pieces are delivered.
#[derive(Default)]
pub(crate) struct Assembly {
    source: Option<Source>,
    bytes: Vec<u8>,
}

impl Assembly {
    /// Adds a piece; the checkpoint, if it was the last one. Pieces of one checkpoint come in
    /// order, so one that does not fit is of one whose beginning was not for this member.
    pub(crate) fn add(&mut self, source: Source, piece: &CheckpointPiece) -> Option<Bytes> {
        if self.source != Some(source) {
            *self = Self { source: Some(source), bytes: Vec::new() };
        }
        if piece.offset != self.bytes.len() as u64 {
            return None;
        }
        self.bytes.extend_from_slice(&piece.bytes);
        piece.is_last().then(|| Bytes::from(core::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn source(leader: u8, number: u64) -> Source {
        Source { leader: NodeId::new(leader).unwrap(), attempt: Attempt(3), number }
    }

    fn key(retention_id: i32) -> RequestKey {
        RequestKey::Client {
            client_id: Bytes::from_static(b"c"),
            retention_id,
            binding: crate::Binding::default(),
        }
    }

    #[test]
    fn a_checkpoint_is_what_it_was_when_its_pieces_are_put_together() {
        let state = Bytes::from(vec![7; 3 * PIECE_BYTES + 5]);
        let replies = vec![(key(1), Some(Bytes::from_static(b"one"))), (key(2), None)];
        for from in [None, Some(History { count: 4, digest: 1 })] {
            let (replies, up_to) = (replies.clone(), History { count: 9, digest: 2 });
            let checkpoint = Checkpoint { from, up_to, replies, state: state.clone() };
            let (bytes, mut next) = (checkpoint.encode(), 0);
            let mut assembly = Assembly::default();
            let mut whole = None;
            let mut pieces = CheckpointPiece::next(&bytes, &mut next, true);
            assert_eq!(pieces[0].begins_whole(), from.is_none());
            while !pieces.is_empty() {
                for piece in &pieces {
                    assert!(whole.is_none());
                    whole = assembly.add(source(1, 1), piece);
                }
                pieces = CheckpointPiece::next(&bytes, &mut next, false);
            }
            assert_eq!(Checkpoint::decode(whole.expect("complete")), Ok(checkpoint));
        }
    }

    /// Else each checkpoint would stay for as long as a reply in it.
    #[test]
    fn replies_of_a_checkpoint_do_not_hold_its_state() {
        let key = RequestKey::Gateway(crate::words::ids::GatewayKey {
            node: NodeId::new(1).unwrap(),
            incarnation: 1,
            number: crate::words::ids::RequestNumber(1),
        });
        let replies = vec![(key, Some(Bytes::from_static(b"reply")))];
        let state = Bytes::from(vec![7; 5_000]);
        let whole = Checkpoint { from: None, up_to: History::EMPTY, replies, state }.encode();
        let Checkpoint { replies, state, .. } = Checkpoint::decode(whole.clone()).unwrap();
        drop(state);
        assert!(whole.is_unique());
        assert_eq!(replies[0].1.as_deref(), Some(&b"reply"[..]));
    }

    #[test]
    fn pieces_of_several_checkpoints_are_never_put_together() {
        let mut assembly = Assembly::default();
        let piece = |offset, byte| CheckpointPiece {
            offset,
            total: 2,
            bytes: Bytes::copy_from_slice(&[byte]),
        };
        assert!(assembly.add(source(1, 1), &piece(1, 1)).is_none(), "the beginning was missed");
        assert!(assembly.add(source(1, 2), &piece(0, 2)).is_none());
        assert!(assembly.add(source(1, 1), &piece(1, 3)).is_none(), "the rest is of another one");
        assert!(assembly.add(source(1, 3), &piece(0, 4)).is_none());
        assert!(assembly.add(source(2, 3), &piece(1, 5)).is_none(), "and of another leader");
        assert!(assembly.add(source(2, 3), &piece(0, 8)).is_none());
        let whole = assembly.add(source(2, 3), &piece(1, 9));
        assert_eq!(whole, Some(Bytes::from_static(&[8, 9])));
    }

    #[test]
    fn the_log_forgets_what_a_checkpoint_covers() {
        let mut log = RequestLog::default();
        for index in 1..=4 {
            let giop = Bytes::from_static(b"GIOP");
            let history = History { count: index, digest: index };
            let (key, moment) = (key(index as i32), Moment::default());
            log.push(Logged::Request { history, moment, key, giop, code_sets: None });
        }
        log.drop_up_to(3);
        assert_eq!((log.len(), log.bytes), (1, 4));
        assert_eq!(log.take().len(), 1);
        assert_eq!((log.len(), log.bytes), (0, 0));
    }
}
