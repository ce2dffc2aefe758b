//! The last requests that a group was delivered, for a member that missed only these.
//!
//! What it is not: the group's memory. It ends at a bound, and after a restart it is empty.
//! Invariant: it has every request from some place of the history on.

use crate::calls::arrived::Arrived;
use crate::table::CATCH_UP_REQUESTS_MAX;
use crate::table::moment::Moment;
use crate::words::history::{History, put_history, take_history};
use crate::words::ids::{
    CallKey, GatewayKey, GroupId, RequestKey, RequestNumber, put_key, take_key,
};
use crate::words::released::Released;
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::canary;

/// Bytes of them.
const BYTES_MAX: usize = 16 << 20;
/// So many bytes are passed on without asking whether a state would be shorter.
pub(crate) const SHORT_BYTES: usize = 1 << 20;
/// A request in a message is at least so long.
const REQUEST_BYTES_MIN: usize = 103;

/// See the module's text.
pub(crate) struct CatchUpLog {
    /// In front of the first one.
    base: History,
    requests: VecDeque<Arrived>,
    bytes: usize,
}

impl Default for CatchUpLog {
    fn default() -> Self {
        Self { base: History::EMPTY, requests: VecDeque::new(), bytes: 0 }
    }
}

impl CatchUpLog {
    /// A request was delivered where the history was `before`.
    pub(crate) fn push(&mut self, before: History, arrived: &Arrived) {
        let last = self.requests.back().map_or(self.base, |last| last.history);
        if last != before {
            *self = Self { base: before, ..Self::default() };
        }
        // The room for all, which costs nothing before it is used: to grow it later, the ring would
        // have to wait until all that is there was copied.
        self.requests.reserve_exact(CATCH_UP_REQUESTS_MAX as usize - self.requests.len());
        if self.requests.len() as u64 == CATCH_UP_REQUESTS_MAX {
            self.drop_first();
        }
        self.bytes += arrived.giop.len();
        self.requests.push_back(arrived.clone());
        while self.bytes > BYTES_MAX {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let first = self.requests.pop_front().expect("one is there");
        self.base = first.history;
        self.bytes -= first.giop.len();
    }

    /// Whether the last requests led from `earlier` to `last`, and there was at least one.
    pub(crate) fn leads_from(&self, earlier: History, last: History) -> bool {
        let is_last = self.requests.back().is_some_and(|one| one.history == last);
        is_last && earlier != last && self.place(earlier).is_some()
    }

    /// Groups whose calls are among the requests behind that place, if that is known.
    pub(crate) fn callers_behind(&self, history: History) -> BTreeSet<GroupId> {
        self.calls_behind(history).map(|call| call.caller).collect()
    }

    /// The calls among the requests behind that place, if that is known.
    pub(crate) fn calls_behind(&self, history: History) -> impl Iterator<Item = CallKey> + '_ {
        let behind = self.place(history).unwrap_or(self.requests.len());
        self.requests.range(behind..).filter_map(|arrived| match &arrived.key {
            RequestKey::Nested(call) => Some(*call),
            RequestKey::Gateway(_) | RequestKey::Client { .. } => None,
        })
    }

    /// How many requests are kept up to that place; `None` if it is not known.
    fn place(&self, history: History) -> Option<usize> {
        if history == self.base {
            return Some(0);
        }
        let at = usize::try_from(history.count.checked_sub(self.base.count)?).ok()?;
        let last = self.requests.get(at.checked_sub(1)?)?;
        (last.history == history).then_some(at)
    }

    /// What came behind `claim`, encoded; `None` if that is not a place that is known.
    pub(crate) fn since(&self, claim: History) -> Option<Bytes> {
        let first = self.place(claim)?;
        let missed = self.requests.range(first + usize::from(canary!(PassesOffByOne))..);
        let mut writer = Writer::with_capacity(self.bytes);
        writer.u32(missed.len() as u32);
        missed.for_each(|arrived| put(&mut writer, arrived));
        Some(writer.finish())
    }
}

/// Those that [`CatchUpLog::since`] gave; behind `claim` they must make the history `up_to`.
pub(crate) fn decode(
    bytes: Bytes,
    claim: History,
    up_to: History,
) -> Result<Vec<Arrived>, InvalidEnvelope> {
    let mut reader = Reader::new(bytes);
    let mut history = claim;
    let mut missed = Vec::new();
    for _ in 0..reader.count(REQUEST_BYTES_MIN, "request count")? {
        let arrived = take(&mut reader)?;
        let GatewayKey { node, incarnation, number } = arrived.gateway;
        history = history.with_request(node, incarnation, number, arrived.full);
        missed.push(arrived);
    }
    reader.end()?;
    let is_all = history == up_to || canary!(PassesOffByOne);
    if is_all { Ok(missed) } else { Err(reader.error("history")) }
}

fn put(w: &mut Writer, arrived: &Arrived) {
    w.node(arrived.gateway.node);
    w.u64(arrived.gateway.incarnation);
    w.u64(arrived.gateway.number.0);
    put_key(w, &arrived.key, 0);
    put_history(w, arrived.history);
    w.u8(u8::from(arrived.calls_below.is_some()));
    let (caller, below) = arrived.calls_below.unwrap_or((GroupId(0), 0));
    w.u64(caller.0);
    w.u64(below);
    w.u64(arrived.expiry);
    w.u64(arrived.clock);
    w.u8(u8::from(arrived.full));
    arrived.moment.encode(w);
    arrived.released.encode(w);
    w.bytes(&arrived.giop);
    w.u8(u8::from(arrived.code_sets.is_some()));
    w.bytes(arrived.code_sets.as_deref().unwrap_or_default());
}

fn take(r: &mut Reader) -> Result<Arrived, InvalidEnvelope> {
    let gateway = GatewayKey {
        node: r.node("gateway")?,
        incarnation: r.u64("incarnation")?,
        number: RequestNumber(r.u64("number")?),
    };
    let (key, _): (RequestKey, _) = take_key(r)?;
    let history = take_history(r)?;
    let some = r.bool("calls flag")?;
    let calls_below = Some((GroupId(r.u64("caller")?), r.u64("calls below")?)).filter(|_| some);
    let expiry = r.u64("expiry")?;
    let clock = r.u64("clock")?;
    let full = r.bool("full flag")?;
    let moment = Moment::decode(r)?;
    let released = Released::decode(r)?;
    let giop = r.bytes("request")?;
    let some = r.bool("code sets flag")?;
    let code_sets = Some(r.bytes("code sets")?).filter(|_| some);
    Ok(Arrived {
        key,
        gateway,
        history,
        calls_below,
        expiry,
        clock,
        full,
        moment,
        released,
        giop,
        code_sets,
        awaited: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::ids::CallKey;
    use quorba_base::NodeId;

    fn arrived(number: u64, giop: Bytes) -> Arrived {
        let node = NodeId::new(2).unwrap();
        let gateway = GatewayKey { node, incarnation: 7, number: RequestNumber(number) };
        Arrived {
            key: RequestKey::Gateway(gateway),
            gateway,
            history: History { count: number, digest: 3 },
            calls_below: (number == 3).then_some((GroupId(4), 9)),
            expiry: 5,
            clock: 6,
            full: number == 2,
            moment: Moment { number, time: 8, seed: 9 },
            released: Released { below: RequestNumber(1), also: Vec::from([RequestNumber(7)]) },
            giop,
            awaited: false,
            code_sets: (number == 3).then(|| Bytes::from_static(b"sets")),
        }
    }

    /// Histories before and behind each of so many requests.
    fn filled(count: u64, bytes: usize) -> (CatchUpLog, Vec<History>) {
        let mut catch_up_log = CatchUpLog::default();
        let mut histories = Vec::from([History::EMPTY]);
        for number in 1..=count {
            let before = *histories.last().unwrap();
            let mut one = arrived(number, Bytes::from(alloc::vec![1; bytes]));
            one.history = before.with_request(one.gateway.node, 7, one.gateway.number, one.full);
            catch_up_log.push(before, &one);
            histories.push(one.history);
        }
        (catch_up_log, histories)
    }

    #[test]
    fn what_was_missed_is_what_comes_behind_the_claim() {
        let (catch_up_log, histories) = filled(5, 10);
        for (at, claim) in histories.iter().enumerate() {
            let missed = catch_up_log.since(*claim).expect("it is known");
            let missed = decode(missed, *claim, histories[5]).unwrap();
            let indexes: Vec<u64> = missed.iter().map(|arrived| arrived.history.count).collect();
            assert_eq!(indexes, (at as u64 + 1..=5).collect::<Vec<u64>>());
        }
        let third = &decode(catch_up_log.since(histories[2]).unwrap(), histories[2], histories[5])
            .unwrap()[0];
        assert_eq!(third.code_sets.as_deref(), Some(&b"sets"[..]));
        assert_eq!(third.calls_below, Some((GroupId(4), 9)));
        assert_eq!((third.expiry, third.clock, third.full), (5, 6, false));
    }

    #[test]
    fn a_claim_that_is_no_part_of_the_history_is_not_known() {
        let (catch_up_log, histories) = filled(5, 10);
        assert!(catch_up_log.since(History { count: 3, digest: 1 }).is_none());
        assert!(catch_up_log.since(History { count: 9, digest: 1 }).is_none());
        assert!(catch_up_log.since(History { count: 0, digest: 1 }).is_none());
        let missed = catch_up_log.since(histories[2]).unwrap();
        assert!(decode(missed, histories[1], histories[5]).is_err(), "for another member");
    }

    #[test]
    fn what_is_too_old_is_not_known_any_more() {
        let (catch_up_log, histories) = filled(CATCH_UP_REQUESTS_MAX + 2, 10);
        assert!(catch_up_log.since(histories[1]).is_none());
        assert!(catch_up_log.since(histories[2]).is_some());
        let (catch_up_log, histories) = filled(20, 1 << 20);
        assert!(catch_up_log.since(histories[3]).is_none());
        assert!(catch_up_log.since(histories[4]).is_some());
    }

    #[test]
    fn who_called_behind_a_place_is_known() {
        let (mut catch_up_log, mut histories) = filled(3, 10);
        for caller in [GroupId(4), GroupId(6)] {
            let before = *histories.last().unwrap();
            let mut one = arrived(before.count + 1, Bytes::from_static(b"call"));
            one.history = before.with_request(one.gateway.node, 7, one.gateway.number, one.full);
            let during = History { count: 9, digest: 9 };
            one.key = RequestKey::Nested(CallKey { caller, during, number: 1 });
            catch_up_log.push(before, &one);
            histories.push(one.history);
        }
        let behind =
            |at: usize| catch_up_log.callers_behind(histories[at]).into_iter().collect::<Vec<_>>();
        assert_eq!(behind(2), [GroupId(4), GroupId(6)]);
        assert_eq!(behind(4), [GroupId(6)]);
        assert!(behind(5).is_empty());
        let elsewhere = History { count: 2, digest: 1 };
        assert!(catch_up_log.callers_behind(elsewhere).is_empty(), "no place that is known");
    }

    #[test]
    fn after_a_gap_it_begins_anew() {
        let (mut catch_up_log, histories) = filled(5, 10);
        let elsewhere = History { count: 9, digest: 3 };
        let mut one = arrived(10, Bytes::from_static(b"x"));
        one.history = elsewhere.extended(one.gateway.node, 7, 10);
        catch_up_log.push(elsewhere, &one);
        assert!(catch_up_log.since(histories[4]).is_none());
        assert!(catch_up_log.since(elsewhere).is_some());
    }
}
