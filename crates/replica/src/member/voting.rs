//! A member's part in the comparison of replies: what it votes, and replies that it keeps until
//! they are known to be right.
//!
//! What it is not: the count, which is the table's. Invariants: a reply that has to be voted on
//! goes to nobody before it is decided and this member's own vote agrees; a window is voted on only
//! if this member has executed all of it.

use super::Member;
use crate::gist::Gist;
use crate::ids::{Attempt, GatewayKey, RequestKey};
use crate::refusal;
use crate::votes::Subject;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::canary;
use quorba_giop::ReplyStatus;
use twox_hash::XxHash3_64;

/// How replies are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Comparison {
    /// Not at all.
    #[default]
    Off,
    /// Windows of so many requests, behind the replies.
    Behind(u64),
    /// Each, before it is given to anybody.
    Before,
}

/// A request that will be executed.
struct Admitted {
    index: u64,
    window: Subject,
    /// Its reply is kept until it is decided.
    before: bool,
}

/// A window that is not complete.
#[derive(Default)]
struct Window {
    outstanding: u32,
    /// The sum, so that the order in which calls of different objects end does not matter.
    digest: u64,
}

/// A reply that nobody was given yet.
struct Held {
    key: RequestKey,
    waiters: Vec<GatewayKey>,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Voting {
    comparison: Comparison,
    /// Requests up to here are not compared: they were executed before, or elsewhere.
    from: u64,
    admitted: BTreeMap<RequestKey, Admitted>,
    windows: BTreeMap<Subject, Window>,
    held: BTreeMap<u64, Held>,
    /// Which index a reply that is held has.
    keys: BTreeMap<RequestKey, u64>,
    /// Votes to be cast.
    ballots: Vec<(Subject, u64)>,
    /// Votes are on their way: the next ones go together, when those are delivered.
    casting: bool,
}

impl Voting {
    /// Requests behind `index` are compared in this way.
    pub(crate) fn begin(&mut self, comparison: Comparison, index: u64) {
        if self.comparison != comparison {
            self.comparison = comparison;
            self.from = index;
        }
    }

    /// Everything that is known is void; what comes behind `index` is compared.
    pub(crate) fn begin_anew(&mut self, index: u64) {
        *self = Self { comparison: self.comparison, from: index, ..Self::default() };
    }

    /// As [`Self::begin_anew`], but what was compared before is still compared.
    pub(crate) fn resume(&mut self, index: u64) {
        let from = self.from.max(index);
        self.begin_anew(from);
    }

    fn window_of(&self, index: u64) -> Option<Subject> {
        let (last, begins, behind) = match self.comparison {
            Comparison::Off => return None,
            Comparison::Before => (index, index - 1, false),
            Comparison::Behind(size) => {
                let last = index.div_ceil(size) * size;
                (last, last - size, true)
            }
        };
        (begins >= self.from).then_some(Subject { last, behind })
    }

    /// Whether replies are kept until they are decided.
    pub(crate) fn is_before(&self) -> bool {
        self.comparison == Comparison::Before
    }

    /// A request will be executed.
    pub(crate) fn admitted(&mut self, index: u64, key: &RequestKey) {
        let Some(window) = self.window_of(index) else { return };
        let before = self.comparison == Comparison::Before;
        self.admitted.insert(key.clone(), Admitted { index, window, before });
        self.windows.entry(window).or_default().outstanding += 1;
    }

    /// It was executed. True if the reply is kept here until it is decided.
    pub(crate) fn executed(
        &mut self,
        key: &RequestKey,
        reply: (Option<&Bytes>, Option<Gist>),
        waiters: &[GatewayKey],
    ) -> bool {
        let Some(admitted) = self.admitted.remove(key) else { return false };
        let Admitted { index, window, before } = admitted;
        let Some(sums) = self.windows.get_mut(&window) else { return false };
        let digest = digest_of(index, reply);
        sums.outstanding -= 1;
        sums.digest = sums.digest.wrapping_add(digest);
        if !before || canary!(AnswersBeforeVote) {
            return false;
        }
        self.windows.remove(&window);
        self.ballots.push((window, digest));
        self.keys.insert(key.clone(), index);
        self.held.insert(index, Held { key: key.clone(), waiters: waiters.into() });
        true
    }

    /// Windows that are over and executed, by what was delivered.
    pub(crate) fn close(&mut self, delivered: u64) {
        let is_over = |(window, sums): &(&Subject, &Window)| {
            window.last <= delivered && sums.outstanding == 0
        };
        while let Some((window, sums)) = self.windows.first_key_value().filter(is_over) {
            let ballot = (*window, sums.digest);
            self.windows.pop_first();
            self.ballots.push(ballot);
        }
    }

    /// Votes to cast now.
    pub(crate) fn cast(&mut self) -> Option<Vec<(Subject, u64)>> {
        if self.casting || self.ballots.is_empty() {
            return None;
        }
        self.casting = true;
        Some(core::mem::take(&mut self.ballots))
    }

    /// Votes of this member were delivered.
    pub(crate) fn was_cast(&mut self) {
        self.casting = false;
    }

    /// Whether the reply to a request is kept until it is decided.
    pub(super) fn is_held(&self, key: &RequestKey) -> bool {
        self.keys.contains_key(key)
    }

    /// Whether nothing is to be decided any more of the first `count` requests before they are
    /// answered.
    pub(super) fn is_over(&self, count: u64) -> bool {
        self.held.first_key_value().is_none_or(|(index, _)| *index > count)
    }

    /// A repetition of a request whose reply is held: this gateway waits, too.
    pub(crate) fn wait(&mut self, key: &RequestKey, gateway: GatewayKey) -> bool {
        let Some(held) = self.keys.get(key).and_then(|index| self.held.get_mut(index)) else {
            return false;
        };
        if !held.waiters.contains(&gateway) {
            held.waiters.push(gateway);
        }
        true
    }

    fn key_of(&self, index: u64) -> Option<RequestKey> {
        self.held.get(&index).map(|held| held.key.clone())
    }

    /// Replies are not held any more: those that were, by their index.
    fn hold_no_more(&mut self) -> Vec<u64> {
        self.admitted.values_mut().for_each(|admitted| admitted.before = false);
        self.held.keys().copied().collect()
    }

    /// The reply may go.
    pub(crate) fn release(&mut self, index: u64) -> Option<(RequestKey, Vec<GatewayKey>)> {
        let held = self.held.remove(&index)?;
        self.keys.remove(&held.key);
        Some((held.key, held.waiters))
    }
}

impl Member {
    /// From here on replies are compared in this way.
    pub(crate) fn compare(&mut self, comparison: Comparison, index: u64) {
        self.voting.begin(comparison, index);
    }

    /// Votes to be ordered now, and the try under which the member casts them.
    pub(crate) fn votes_to_cast(&mut self) -> Option<(Attempt, Vec<(Subject, u64)>)> {
        let attempt = self.attempt()?;
        Some((attempt, self.voting.cast()?))
    }

    /// This member's votes were delivered.
    pub(crate) fn votes_were_cast(&mut self) {
        self.voting.was_cast();
    }

    /// A reply that was held may go: who waits, and what for.
    pub(crate) fn release_reply(&mut self, index: u64) -> Option<(Vec<GatewayKey>, Option<Bytes>)> {
        let (key, waiters) = self.voting.release(index)?;
        let reply = self.retention.reply(&key).flatten();
        Some((waiters, reply))
    }

    /// From here on nobody votes before replies go, and some members may not execute what they were
    /// to vote on: everything that was held may go.
    pub(crate) fn release_all(&mut self) -> Vec<u64> {
        self.voting.hold_no_more()
    }

    /// Nobody knows which reply to a request is right: an exception takes its place.
    pub(crate) fn replace_reply(&mut self, index: u64) {
        let Some(key) = self.voting.key_of(index) else { return };
        self.retention.replace(&key, refusal::disagreement);
    }
}

/// Of what a client gets to see: the status and the body. Contexts, and the request's id, are our
/// own or the ORB's.
fn digest_of(index: u64, reply: (Option<&Bytes>, Option<Gist>)) -> u64 {
    let (Some(reply), Some(gist)) = reply else { return mix(index, 0, 0) };
    let status = match gist.status {
        ReplyStatus::NoException => 2,
        ReplyStatus::UserException => 3,
        ReplyStatus::SystemException => 4,
        _ => 5,
    };
    mix(index, status, XxHash3_64::oneshot(gist.body(reply)))
}

fn mix(index: u64, status: u64, body: u64) -> u64 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&index.to_le_bytes());
    bytes[8..16].copy_from_slice(&status.to_le_bytes());
    bytes[16..].copy_from_slice(&body.to_le_bytes());
    XxHash3_64::oneshot(&bytes)
}
