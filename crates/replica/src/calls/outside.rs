//! Calls to servers outside of the domain: which node makes one, and what came of it.
//!
//! Such a server knows nothing of groups, so the call is made by one node, and what came of it is
//! told to all in the order:
//!
//! - the node whose copy of the call is delivered first makes it, as soon as a majority holds that
//!   copy: from then on nobody forgets that the call may have been made;
//! - what comes of it is ordered, and counts if it comes from the node that was to make the call;
//! - whoever waits for the answer then has its own copy ordered once more, behind what came of the
//!   call. When a majority holds that copy, it holds the answer before it, and no replica can have
//!   heard something else.
//!
//! If that node is gone when a copy is delivered, the call is in doubt, and [`OnDoubt`] decides. As
//! every node that waits has its calls ordered again after a view change, no doubt stays unseen.
//!
//! What it is not: it opens no connection, and does not know who waits. Invariant: a function of
//! what was delivered, and of the view in which it was.

use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use bytes::Bytes;
use quorba_base::policy::OnDoubt;
use quorba_base::{NodeId, canary};

/// Bytes of replies from outside that are known of all groups together, and of those that may
/// come: the tables of a domain have to fit into one message.
pub const OUTSIDE_BYTES_MAX: usize = 4 << 20;
/// The largest reply that a server outside may be allowed to give.
pub(crate) const OUTSIDE_REPLY_BYTES_MAX: usize = 1 << 20;
/// So often a call of unknown outcome is made, if it is repeated.
const TRIES_MAX: u32 = 8;

/// A server outside of the domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutsideConfig {
    /// What to do with calls in doubt.
    pub on_doubt: OnDoubt,
    /// The largest reply, in bytes of its GIOP message.
    pub reply_bytes_max: usize,
}

/// What came of one try to make a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutsideReport {
    /// The whole GIOP message.
    Reply(Bytes),
    /// The call was surely not begun, and somebody else may make it.
    NotBegun,
    /// There is no reply.
    Failed(OutsideFailure),
}

/// Why a call has no reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutsideFailure {
    /// The server takes no connections: it has not executed the call.
    NotReached,
    /// The connection ended, or the time was over, before there was a reply.
    Doubt,
    /// It was executed, and the reply is too large.
    TooLarge,
    /// The server could not read the request.
    Rejected,
    /// The server refers to another one, and has not executed the call.
    Moved,
}

impl OutsideFailure {
    const ALL: [Self; 5] =
        [Self::NotReached, Self::Doubt, Self::TooLarge, Self::Rejected, Self::Moved];

    /// One sentence part for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NotReached => "it takes no connections",
            Self::Doubt => "nobody knows whether it has executed the call",
            Self::TooLarge => "its reply is too large",
            Self::Rejected => "it cannot read the request",
            Self::Moved => "it refers to another server",
        }
    }

    fn code(self) -> u8 {
        Self::ALL.iter().position(|one| *one == self).map_or(0, |code| code as u8)
    }

    fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let invalid = r.error("failure");
        Self::ALL.get(usize::from(r.u8("failure")?)).copied().ok_or(invalid)
    }
}

/// What is known of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outside {
    /// Nothing has come of it yet.
    Open {
        /// The node that makes it, with its boot.
        maker: Option<(NodeId, u64)>,
        /// So many tries are in doubt.
        doubts: u32,
    },
    /// This has come of it.
    Ended(Result<Bytes, OutsideFailure>),
}

/// What a delivered copy of a call leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Copy {
    /// This node makes the call, as its try after so many.
    MadeBy((NodeId, u64), u32),
    /// This has come of it.
    Ended(Result<Bytes, OutsideFailure>),
}

impl Outside {
    /// A call of which nothing is known.
    pub(crate) const NEW: Self = Self::Open { maker: None, doubts: 0 };

    /// A copy of the call is delivered. `is_present`: that boot of that node is in the view.
    pub(crate) fn deliver(
        &mut self,
        by: (NodeId, u64),
        is_present: impl Fn((NodeId, u64)) -> bool,
        rule: OnDoubt,
    ) -> Copy {
        if let Self::Open { maker: Some(maker), doubts } = *self
            && !is_present(maker)
        {
            if canary!(OutsideForgetsDoubt) {
                *self = Self::Open { maker: None, doubts };
            } else {
                self.doubt(rule);
            }
        }
        match self {
            Self::Ended(what) => Copy::Ended(what.clone()),
            Self::Open { maker, doubts } => Copy::MadeBy(*maker.get_or_insert(by), *doubts),
        }
    }

    /// A copy of a read is delivered that a member serves beside what waits. `able`: the members
    /// that may, each with its try, the best one first. What the last one did is no matter.
    pub(crate) fn assign(&mut self, able: &[(NodeId, u64)]) -> Copy {
        if let Self::Open { maker: Some(maker), .. } = *self
            && !able.contains(&maker)
        {
            self.doubt(OnDoubt::Repeat);
        }
        let (maker, doubts) = match self {
            Self::Ended(what) => return Copy::Ended(what.clone()),
            Self::Open { maker, doubts } => (maker, *doubts),
        };
        let Some(first) = maker.or(able.first().copied()) else {
            let nobody = Err(OutsideFailure::NotReached);
            *self = Self::Ended(nobody.clone());
            return Copy::Ended(nobody);
        };
        *maker = Some(first);
        Copy::MadeBy(first, doubts)
    }

    /// Who is to make it now.
    pub(crate) fn maker(&self) -> Option<(NodeId, u64)> {
        match self {
            Self::Open { maker, .. } => *maker,
            Self::Ended(_) => None,
        }
    }

    /// A node says what came of its try; whether that counts.
    pub(crate) fn end(
        &mut self,
        by: (NodeId, u64),
        tries: u32,
        report: &OutsideReport,
        rule: OnDoubt,
    ) -> bool {
        let Self::Open { maker, doubts } = *self else { return false };
        if maker != Some(by) || doubts != tries {
            return false;
        }
        match report {
            OutsideReport::Reply(reply) => *self = Self::Ended(Ok(reply.clone())),
            OutsideReport::NotBegun => *self = Self::Open { maker: None, doubts },
            OutsideReport::Failed(OutsideFailure::Doubt) => self.doubt(rule),
            OutsideReport::Failed(why) => {
                use OutsideFailure::{Doubt, Moved, NotReached};
                // An earlier try may have been executed, if this one was not.
                let is_doubt = doubts > 0 && matches!(why, NotReached | Moved);
                *self = Self::Ended(Err(if is_doubt { Doubt } else { *why }));
            }
        }
        true
    }

    fn doubt(&mut self, rule: OnDoubt) {
        let Self::Open { doubts, .. } = *self else { return };
        *self = if rule == OnDoubt::Repeat && doubts + 1 < TRIES_MAX {
            Self::Open { maker: None, doubts: doubts + 1 }
        } else {
            Self::Ended(Err(OutsideFailure::Doubt))
        };
    }

    /// Whether that node is to make that try of it.
    pub(crate) fn is_made_by(&self, node: (NodeId, u64), tries: u32) -> bool {
        *self == Self::Open { maker: Some(node), doubts: tries }
    }

    /// Bytes that it takes, or may take.
    pub(crate) fn bytes(&self, reply_bytes_max: usize) -> usize {
        match self {
            Self::Open { .. } => reply_bytes_max,
            Self::Ended(Ok(reply)) => reply.len(),
            Self::Ended(Err(_)) => 0,
        }
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        match self {
            Self::Open { maker, doubts } => {
                w.u8(if maker.is_some() { OPEN_MADE } else { OPEN });
                if let Some((node, incarnation)) = maker {
                    w.node(*node);
                    w.u64(*incarnation);
                }
                w.u32(*doubts);
            }
            Self::Ended(Ok(reply)) => {
                w.u8(REPLY);
                w.bytes(reply);
            }
            Self::Ended(Err(why)) => {
                w.u8(FAILED);
                w.u8(why.code());
            }
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let invalid = r.error("call to outside");
        Ok(match r.u8("call to outside")? {
            OPEN => Self::Open { maker: None, doubts: r.u32("doubts")? },
            OPEN_MADE => {
                let maker = Some((r.node("maker")?, r.u64("incarnation")?));
                Self::Open { maker, doubts: r.u32("doubts")? }
            }
            REPLY => Self::Ended(Ok(r.bytes("reply from outside")?)),
            FAILED => Self::Ended(Err(OutsideFailure::decode(r)?)),
            _ => return Err(invalid),
        })
    }
}

const OPEN: u8 = 0;
const OPEN_MADE: u8 = 1;
const REPLY: u8 = 2;
const FAILED: u8 = 3;

impl OutsideReport {
    pub(crate) fn encode(&self, w: &mut Writer) {
        match self {
            Self::NotBegun => w.u8(OPEN),
            Self::Reply(reply) => {
                w.u8(REPLY);
                w.rest(reply);
            }
            Self::Failed(why) => {
                w.u8(FAILED);
                w.u8(why.code());
            }
        }
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let invalid = r.error("report");
        Ok(match r.u8("report")? {
            OPEN => Self::NotBegun,
            REPLY => Self::Reply(r.rest()),
            FAILED => Self::Failed(OutsideFailure::decode(r)?),
            _ => return Err(invalid),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(index: u8) -> (NodeId, u64) {
        (NodeId::new(index).unwrap(), 7)
    }

    fn reply() -> OutsideReport {
        OutsideReport::Reply(Bytes::from_static(b"reply"))
    }

    #[test]
    fn the_first_copy_says_who_makes_the_call_and_only_what_that_node_says_counts() {
        let mut call = Outside::NEW;
        assert_eq!(call.deliver(node(1), |_| true, OnDoubt::Fail), Copy::MadeBy(node(1), 0));
        assert_eq!(call.deliver(node(2), |_| true, OnDoubt::Fail), Copy::MadeBy(node(1), 0));
        assert!(!call.end(node(2), 0, &reply(), OnDoubt::Fail));
        assert!(!call.end((node(1).0, 8), 0, &reply(), OnDoubt::Fail), "another boot");
        assert!(call.end(node(1), 0, &reply(), OnDoubt::Fail));
        let ended = Copy::Ended(Ok(Bytes::from_static(b"reply")));
        assert_eq!(call.deliver(node(2), |_| false, OnDoubt::Fail), ended);
    }

    #[test]
    fn a_call_whose_node_is_gone_is_in_doubt() {
        let mut call = Outside::NEW;
        call.deliver(node(1), |_| true, OnDoubt::Fail);
        let gone = |who: (NodeId, u64)| who != node(1);
        let doubt = Copy::Ended(Err(OutsideFailure::Doubt));
        assert_eq!(call.deliver(node(2), gone, OnDoubt::Fail), doubt);
        // It comes back, and knows better; but the others have heard something else.
        assert!(!call.end(node(1), 0, &reply(), OnDoubt::Fail));
    }

    #[test]
    fn a_call_in_doubt_is_repeated_by_another_node_and_not_for_ever() {
        let mut call = Outside::NEW;
        call.deliver(node(0), |_| true, OnDoubt::Repeat);
        for tries in 1..TRIES_MAX {
            let by = node(tries as u8);
            let copy = call.deliver(by, |who| who == by, OnDoubt::Repeat);
            assert_eq!(copy, Copy::MadeBy(by, tries));
            assert!(!call.end(by, tries - 1, &reply(), OnDoubt::Repeat), "an earlier try");
        }
        let doubt = Copy::Ended(Err(OutsideFailure::Doubt));
        assert_eq!(call.deliver(node(9), |_| false, OnDoubt::Repeat), doubt);
    }

    #[test]
    fn what_was_not_begun_is_begun_by_whoever_asks_next_and_is_in_no_doubt() {
        let mut call = Outside::NEW;
        call.deliver(node(1), |_| true, OnDoubt::Fail);
        assert!(call.end(node(1), 0, &OutsideReport::NotBegun, OnDoubt::Fail));
        assert_eq!(call.deliver(node(2), |_| true, OnDoubt::Fail), Copy::MadeBy(node(2), 0));
    }

    #[test]
    fn who_could_not_be_reached_after_a_doubt_may_have_executed_the_call_before() {
        let mut call = Outside::NEW;
        call.deliver(node(1), |_| true, OnDoubt::Repeat);
        let failed = OutsideReport::Failed;
        assert!(call.end(node(1), 0, &failed(OutsideFailure::Doubt), OnDoubt::Repeat));
        call.deliver(node(1), |_| true, OnDoubt::Repeat);
        assert!(call.end(node(1), 1, &failed(OutsideFailure::NotReached), OnDoubt::Repeat));
        assert_eq!(call, Outside::Ended(Err(OutsideFailure::Doubt)));
    }

    #[test]
    fn a_read_is_served_by_the_first_who_can_and_by_another_when_that_one_is_gone() {
        let mut read = Outside::NEW;
        assert_eq!(read.assign(&[node(1), node(2)]), Copy::MadeBy(node(1), 0));
        assert_eq!(read.assign(&[node(2), node(1)]), Copy::MadeBy(node(1), 0), "it still can");
        assert_eq!(read.assign(&[node(2)]), Copy::MadeBy(node(2), 1));
        assert!(!read.end(node(1), 0, &reply(), OnDoubt::Fail), "nobody waits for that one");
        assert!(read.end(node(2), 1, &reply(), OnDoubt::Fail));
        let ended = Copy::Ended(Ok(Bytes::from_static(b"reply")));
        assert_eq!(read.assign(&[]), ended, "whoever asks later hears the same");
    }

    #[test]
    fn a_read_that_nobody_can_serve_or_that_kills_whoever_does_ends() {
        let mut read = Outside::NEW;
        assert_eq!(read.assign(&[]), Copy::Ended(Err(OutsideFailure::NotReached)));
        let mut read = Outside::NEW;
        for tries in 0..TRIES_MAX {
            let able = node(tries as u8);
            assert_eq!(read.assign(&[able]), Copy::MadeBy(able, tries));
        }
        assert_eq!(read.assign(&[node(9)]), Copy::Ended(Err(OutsideFailure::Doubt)));
    }

    #[test]
    fn what_is_known_is_passed_on() {
        let known = [
            Outside::NEW,
            Outside::Open { maker: Some(node(3)), doubts: 2 },
            Outside::Ended(Ok(Bytes::from_static(b"reply"))),
            Outside::Ended(Err(OutsideFailure::Moved)),
        ];
        for outside in known {
            let mut w = Writer::default();
            outside.encode(&mut w);
            assert_eq!(Outside::decode(&mut Reader::new(w.finish())), Ok(outside));
        }
    }
}
