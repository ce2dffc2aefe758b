//! A member's part in the comparison of replies: what it votes, and replies that it keeps until
//! they are known to be right.
//!
//! What it is not: the count, which is the table's. Invariants: a reply that has to be voted on
//! goes to nobody before it is decided and this member's own vote agrees; a window is voted on only
//! if this member has executed all of it.

use super::{Member, Stage};
use crate::calls::refusal;
use crate::table::votes::Subject;
use crate::words::ids::{Attempt, GatewayKey, RequestKey};
use crate::words::reply_summary::ReplySummary;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::canary;
use quorba_base::policy::ComparisonRule;
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

/// Votes that go in one message.
const CAST_MAX: usize = 10_000;

/// A request that will be executed.
struct Admitted {
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
    /// The retention table may have forgotten it when it is decided.
    reply: Option<Bytes>,
    digest: u64,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Voting {
    comparison: Comparison,
    /// What looks like padding does not count.
    ignores_padding: bool,
    /// Requests up to here are not compared: they were executed before, or elsewhere.
    from: u64,
    /// As `from`, for those that are kept until they are decided: who was away votes late on them.
    late: u64,
    /// By index: a request may be forgotten and come again while it is executed.
    admitted: BTreeMap<u64, Admitted>,
    windows: BTreeMap<Subject, Window>,
    held: BTreeMap<u64, Held>,
    /// Which index a reply that is held has; of several the last.
    keys: BTreeMap<RequestKey, u64>,
    /// Votes to be cast.
    ballots: Vec<(Subject, u64)>,
    /// Votes are on their way: the next ones go together, when those are delivered.
    casting: bool,
}

impl Voting {
    /// Replies that differ only in what looks like padding are equal, or not.
    pub(crate) fn ignore_padding(&mut self, ignores: bool) {
        self.ignores_padding = ignores;
    }

    /// Requests behind `index` are compared in this way.
    pub(crate) fn begin(&mut self, comparison: Comparison, index: u64) {
        if self.comparison != comparison {
            self.comparison = comparison;
            (self.from, self.late) = (index, index);
        }
    }

    /// Everything that is known is void; what comes behind `index` is compared.
    pub(crate) fn begin_anew(&mut self, index: u64) {
        let Self { comparison, ignores_padding, .. } = *self;
        *self = Self { comparison, ignores_padding, from: index, late: index, ..Self::default() };
    }

    /// The member is given the requests behind `claim` that the group was delivered up to
    /// `joined_at`. Windows of them may have been cut short by changes that it has not seen.
    pub(super) fn catch_up(&mut self, claim: u64, joined_at: u64) {
        (self.from, self.late) = (joined_at, claim);
    }

    /// The member comes back with what its server has executed, and may be the only one that knows
    /// what it replied to some of it: it votes on that, late as it is.
    pub(super) fn vote_late(&mut self) {
        self.casting = false;
        self.admitted.retain(|_, admitted| admitted.before);
        let admitted = &self.admitted;
        self.windows.retain(|window, _| admitted.contains_key(&window.last) && !window.behind);
        let subject = |last: &u64| Subject { last: *last, behind: false };
        self.ballots = self.held.iter().map(|(last, held)| (subject(last), held.digest)).collect();
    }

    /// Nobody waits for what is held: who asked asks again.
    pub(super) fn forget_waiters(&mut self) {
        self.held.values_mut().for_each(|held| held.waiters.clear());
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
        let from = if behind { self.from } else { self.late };
        (begins >= from).then_some(Subject { last, behind })
    }

    /// Whether replies are kept until they are decided.
    pub(crate) fn is_before(&self) -> bool {
        self.comparison == Comparison::Before
    }

    /// A request will be executed.
    pub(crate) fn admitted(&mut self, index: u64) {
        let Some(window) = self.window_of(index) else { return };
        let before = self.comparison == Comparison::Before;
        self.admitted.insert(index, Admitted { window, before });
        self.windows.entry(window).or_default().outstanding += 1;
    }

    /// It was executed. True if the reply is kept here until it is decided.
    pub(crate) fn executed(
        &mut self,
        (index, key): (u64, &RequestKey),
        (reply, reply_summary): (Option<&Bytes>, Option<ReplySummary>),
        waiters: &[GatewayKey],
    ) -> bool {
        let Some(Admitted { window, before }) = self.admitted.remove(&index) else { return false };
        let Some(sums) = self.windows.get_mut(&window) else { return false };
        let digest = digest_of(index, (reply, reply_summary), self.ignores_padding);
        sums.outstanding -= 1;
        sums.digest = sums.digest.wrapping_add(digest);
        if !before || canary!(AnswersBeforeVote) {
            return false;
        }
        self.windows.remove(&window);
        self.ballots.push((window, digest));
        self.keys.insert(key.clone(), index);
        let (key, waiters, reply) = (key.clone(), waiters.into(), reply.cloned());
        self.held.insert(index, Held { key, waiters, reply, digest });
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
        let rest = self.ballots.split_off(self.ballots.len().min(CAST_MAX));
        Some(core::mem::replace(&mut self.ballots, rest))
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

    /// The last request of those whose replies are kept until they are decided.
    pub(super) fn last_held(&self) -> Option<u64> {
        self.held.last_key_value().map(|(index, _)| *index)
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

    /// Replies are not held any more: those that were, by their index.
    fn hold_no_more(&mut self) -> Vec<u64> {
        self.admitted.values_mut().for_each(|admitted| admitted.before = false);
        self.held.keys().copied().collect()
    }

    /// The reply may go: who waits, and what for.
    fn release(&mut self, index: u64) -> Option<(Vec<GatewayKey>, Option<Bytes>)> {
        let held = self.held.remove(&index)?;
        if self.keys.get(&held.key) == Some(&index) {
            self.keys.remove(&held.key);
        }
        Some((held.waiters, held.reply))
    }
}

impl Member {
    /// From here on replies are compared in this way.
    pub(crate) fn compare(&mut self, comparison: Comparison, rule: ComparisonRule, index: u64) {
        self.voting.ignore_padding(rule.ignore_padding);
        self.voting.begin(comparison, index);
    }

    /// Members were seen to reply differently: the next replies are looked at for what may be
    /// behind it.
    pub(crate) fn look_for_padding(&mut self) {
        if !self.voting.ignores_padding {
            self.executor.look_for_padding();
        }
    }

    /// Votes to be ordered now, and the try under which the member casts them.
    pub(crate) fn votes_to_cast(&mut self) -> Option<(Attempt, Vec<(Subject, u64)>)> {
        // Before it is in, nobody knows whether it has executed what the group has.
        let Stage::Serving { attempt } = self.stage else { return None };
        Some((attempt, self.voting.cast()?))
    }

    /// This member's votes were delivered.
    pub(crate) fn votes_were_cast(&mut self) {
        self.voting.was_cast();
    }

    /// A reply that was held may go: who waits, and what for.
    pub(crate) fn release_reply(&mut self, index: u64) -> Option<(Vec<GatewayKey>, Option<Bytes>)> {
        self.voting.release(index)
    }

    /// From here on nobody votes before replies go, and some members may not execute what they were
    /// to vote on: everything that was held may go.
    pub(crate) fn release_all(&mut self) -> Vec<u64> {
        self.voting.hold_no_more()
    }

    /// The same for a member that was away then: who waited has asked again.
    pub(crate) fn release_unheard(&mut self) {
        for index in self.voting.hold_no_more() {
            let _ = self.voting.release(index);
        }
    }

    /// Nobody knows which reply to a request is right: an exception takes its place.
    pub(crate) fn replace_reply(&mut self, index: u64) {
        let Some(held) = self.voting.held.get_mut(&index) else { return };
        self.retention.replace(&held.key, refusal::disagreement);
        if let Some(exception) = held.reply.as_ref().and_then(refusal::disagreement) {
            held.reply = Some(exception);
        }
    }
}

/// Of what a client gets to see: the status and the body. Contexts, and the request's id, are our
/// own or the ORB's.
fn digest_of(
    index: u64,
    reply: (Option<&Bytes>, Option<ReplySummary>),
    ignores_padding: bool,
) -> u64 {
    let (Some(reply), Some(reply_summary)) = reply else { return mix(index, 0, 0) };
    let status = match reply_summary.status {
        ReplyStatus::NoException => 2,
        ReplyStatus::UserException => 3,
        ReplyStatus::SystemException => 4,
        _ => 5,
    };
    let body = match ignores_padding {
        true => XxHash3_64::oneshot(&reply_summary.cleared_body(reply)),
        false => XxHash3_64::oneshot(reply_summary.body(reply)),
    };
    mix(index, status, body)
}

fn mix(index: u64, status: u64, body: u64) -> u64 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&index.to_le_bytes());
    bytes[8..16].copy_from_slice(&status.to_le_bytes());
    bytes[16..].copy_from_slice(&body.to_le_bytes());
    XxHash3_64::oneshot(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::ids::RequestNumber;
    use quorba_base::NodeId;

    #[test]
    fn as_many_votes_go_together_as_a_message_carries() {
        let node = NodeId::new(1).expect("a node");
        let gateway = |number| {
            let number = RequestNumber(number);
            RequestKey::Gateway(GatewayKey { node, incarnation: 1, number })
        };
        let mut voting = Voting::default();
        voting.begin(Comparison::Before, 0);
        for index in 1..=CAST_MAX as u64 + 1 {
            voting.admitted(index);
            assert!(voting.executed((index, &gateway(index)), (None, None), &[]));
        }
        assert_eq!(voting.cast().map(|votes| votes.len()), Some(CAST_MAX));
        assert_eq!(voting.cast(), None);
        voting.was_cast();
        assert_eq!(voting.cast().map(|votes| votes.len()), Some(1));
    }

    #[test]
    fn padding_behind_a_text_counts_unless_it_is_ignored() {
        use quorba_giop::{Endian, Version, build};
        let digest = |body: [u8; 12], ignores_padding| {
            let (version, status) = (Version::V1_2, ReplyStatus::NoException);
            let write = |out: &mut quorba_giop::cdr::Writer| out.write_raw(&body);
            let reply = build::reply(version, Endian::Little, 7, status, write);
            let reply = reply.bytes().clone();
            digest_of(1, (Some(&reply), ReplySummary::of(&reply)), ignores_padding)
        };
        let body = |fill, number| [2, 0, 0, 0, b'a', 0, fill, fill, number, 0, 0, 0];
        assert_ne!(digest(body(1, 5), false), digest(body(2, 5), false));
        assert_eq!(digest(body(1, 5), true), digest(body(2, 5), true));
        assert_ne!(digest(body(1, 5), true), digest(body(1, 6), true));
    }

    /// A client asks again when its time is over, while its first call still runs.
    #[test]
    fn a_call_that_comes_again_is_voted_on_by_its_own_number() {
        let key = RequestKey::Client {
            client_id: Bytes::new(),
            retention_id: 1,
            binding: crate::Binding::default(),
        };
        let mut voting = Voting::default();
        voting.begin(Comparison::Before, 0);
        voting.admitted(1);
        voting.admitted(2);
        voting.executed((1, &key), (None, None), &[]);
        voting.executed((2, &key), (None, None), &[]);
        let voted = voting.cast().expect("votes").iter().map(|(on, _)| on.last).collect::<Vec<_>>();
        assert_eq!(voted, [1, 2]);
        assert!(voting.release(1).is_some() && voting.is_held(&key));
        assert!(voting.release(2).is_some() && !voting.is_held(&key));
    }
}
