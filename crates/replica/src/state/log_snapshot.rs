//! What a node keeps of a member beside its log, so that the log can go on from there.
//!
//! a log snapshot is what the member has at one place of the order: what its server is to be given,
//! the requests behind that which it has not executed, and the replies that clients may still ask
//! for.
//!
//! What it is not: a state on its way to another member; that is `transfer`, whose form is the end
//! of this one. Invariant: base and requests are together everything that the group had been
//! delivered at `history`.

use crate::state::passive::{Base, Logged};
use crate::state::transfer;
use crate::table::moment::Moment;
use crate::words::history::{History, put_history, take_history};
use crate::words::ids::{put_key, take_key};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::vec::Vec;
use bytes::Bytes;

/// See the module's text.
pub(crate) struct LogSnapshot {
    /// What the group had been delivered.
    pub(crate) history: History,
    /// What a server begins with.
    pub(crate) base: Base,
    /// Requests that are not in it, in their order.
    pub(crate) requests: Vec<Logged>,
    /// The retention table and the server's state, as they travel.
    pub(crate) rest: Bytes,
}

/// What goes in front of the retention table and the state of a whole log snapshot: the requests up
/// to `at` are in the state, which is that of a fresh server if it is not `given`.
pub(crate) fn head(
    history: History,
    (at, given): (History, bool),
    updates: &[Bytes],
    requests: &[Logged],
) -> Writer {
    let mut w = Writer::default();
    put_history(&mut w, history);
    put_history(&mut w, at);
    w.u8(u8::from(given));
    w.u32(updates.len() as u32);
    updates.iter().for_each(|update| w.bytes(update));
    let requests = requests.iter().filter_map(|entry| match entry {
        Logged::Request { history, moment, key, giop, code_sets } => {
            Some((history, moment, key, giop, code_sets))
        }
        Logged::Capture { .. } => None,
    });
    w.u32(requests.clone().count() as u32);
    for (history, moment, key, giop, code_sets) in requests {
        put_history(&mut w, *history);
        moment.encode(&mut w);
        put_key(&mut w, key, 0);
        w.bytes(giop);
        w.u8(u8::from(code_sets.is_some()));
        w.bytes(code_sets.as_deref().unwrap_or_default());
    }
    w
}

/// The head of a log snapshot that is a state which another member gave.
pub(crate) fn head_of_given(history: History) -> Bytes {
    head(history, (history, true), &[], &[]).finish()
}

impl LogSnapshot {
    pub(crate) fn decode(bytes: Bytes) -> Result<Self, InvalidEnvelope> {
        let mut r = Reader::new(bytes);
        let history = take_history(&mut r)?;
        let at = take_history(&mut r)?;
        let given = r.bool("state flag")?;
        let mut updates = Vec::new();
        for _ in 0..r.count(4, "update count")? {
            updates.push(r.bytes("update")?);
        }
        let mut requests = Vec::new();
        for _ in 0..r.count(50, "request count")? {
            let history = take_history(&mut r)?;
            let moment = Moment::decode(&mut r)?;
            let (key, _) = take_key(&mut r)?;
            let giop = r.bytes("request")?;
            let some = r.bool("code sets flag")?;
            let code_sets = Some(r.bytes("code sets")?).filter(|_| some);
            requests.push(Logged::Request { history, moment, key, giop, code_sets });
        }
        let base = Base { at, state: given.then(Bytes::new), updates };
        Ok(Self { history, base, requests, rest: r.rest() })
    }

    /// What a member takes over from it.
    pub(crate) fn unpack(self) -> Result<crate::state::start::Start, InvalidEnvelope> {
        let Self { history, mut base, requests, rest } = self;
        let (mut retention, state) = transfer::unpack(rest)?;
        base.state = base.state.map(|_| state);
        for entry in &requests {
            if let Logged::Request { key, .. } = entry {
                retention.mark_unexecuted(key);
            }
        }
        Ok(crate::state::start::Start { delivered: history, retention, base, requests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::retention::{Admission, Retention};
    use crate::words::ids::{GatewayKey, RequestKey, RequestNumber};
    use alloc::vec;
    use quorba_base::NodeId;

    #[test]
    fn a_log_snapshot_is_read_as_it_was_written_and_damage_is_no_panic() {
        let gateway =
            GatewayKey { node: NodeId::new(1).unwrap(), incarnation: 3, number: RequestNumber(9) };
        let key = RequestKey::Gateway(gateway);
        let mut retention = Retention::default();
        retention.admit(&key, gateway, 0, false);
        let history = History { count: 7, digest: 70 };
        let giop = Bytes::from_static(b"GIOP");
        let moment = Moment::default();
        let requests =
            vec![Logged::Request { history, moment, key: key.clone(), giop, code_sets: None }];
        let updates = [Bytes::from_static(b"update")];
        let at = History { count: 6, digest: 60 };
        let mut w = head(history, (at, true), &updates, &requests);
        retention.encode(&retention.freeze(), &mut w);
        w.rest(b"state");
        let bytes = w.finish();
        for length in 0..bytes.len() - 5 {
            let cut = bytes.slice(..length);
            assert!(
                LogSnapshot::decode(cut).and_then(LogSnapshot::unpack).is_err(),
                "{length} octets"
            );
        }
        let log_snapshot = LogSnapshot::decode(bytes).unwrap();
        assert_eq!(log_snapshot.history, history);
        let mut start = log_snapshot.unpack().unwrap();
        assert_eq!((start.base.at, start.base.state.as_deref()), (at, Some(b"state".as_slice())));
        assert_eq!(start.base.updates, updates);
        assert_eq!(start.requests.len(), 1);
        let again = start.retention.admit(&key, gateway, 0, false);
        assert!(matches!(again, Admission::Wait), "it is still to be executed");
    }
}
