//! What a member that wants to come in has.
//!
//! What it is not: what becomes of it, which the table decides. Invariant: a member says only what
//! it is sure of.

use crate::table::disk_census::DiskState;
use crate::words::history::{History, put_history, take_history};
use crate::words::wire::{InvalidEnvelope, Reader, Writer};

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    /// What its server has executed, if the sender is sure of it, or surely executes when it is in.
    pub(crate) claim: Option<History>,
    /// So many ends of requests the member had heard of when it fell out.
    pub(crate) ends: u64,
    /// Its server is through with all of that.
    pub(crate) is_through: bool,
    /// The checkpoint of the group's leader whose state the member has, and nothing behind it.
    pub(crate) held_checkpoint: Option<History>,
    /// The history of the group, as the sender knew it, if `claim` is that and some requests more:
    /// those had been ordered when the sender was cut off, and the others never got them.
    pub(crate) ahead_of: Option<History>,
    /// Its server may have been told another end of a call than the others know.
    pub(crate) heard_otherwise: bool,
    /// The latest time that its server can have been told, TimeT.
    pub(crate) told: u64,
    /// What the sender's disk has of the group.
    pub(crate) disk_state: DiskState,
    /// The history of the group, as the sender knew it when it said so. What was delivered since
    /// may be on that disk, too, and counts there.
    pub(crate) known: History,
}

impl Offer {
    pub(crate) fn encode(&self, w: &mut Writer) {
        for history in [self.claim, self.held_checkpoint, self.ahead_of] {
            w.u8(u8::from(history.is_some()));
            put_history(w, history.unwrap_or(History::EMPTY));
        }
        w.u64(self.ends);
        w.u8(u8::from(self.is_through));
        w.u8(u8::from(self.heard_otherwise));
        w.u64(self.told);
        self.disk_state.encode(w);
        put_history(w, self.known);
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let mut history = || {
            let known = r.bool("claim flag")?;
            let history = take_history(r)?;
            Ok(known.then_some(history))
        };
        let (claim, held_checkpoint, ahead_of) = (history()?, history()?, history()?);
        let ends = r.u64("ends")?;
        let is_through = r.bool("whether its server is through")?;
        let heard_otherwise = r.bool("whether it heard of other ends")?;
        let told = r.u64("told time")?;
        let (disk_state, known) = (DiskState::decode(r)?, take_history(r)?);
        Ok(Self {
            claim,
            ends,
            is_through,
            held_checkpoint,
            ahead_of,
            heard_otherwise,
            told,
            disk_state,
            known,
        })
    }
}
