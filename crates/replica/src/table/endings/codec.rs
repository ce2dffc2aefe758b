//! Endings in the group's table, and reports in messages.

use super::{
    Agreed, Ended, Endings, EndsBehindRequest, Inquiry, JoinedWith, NoReply, Report, RequestEnd,
    States,
};
use crate::words::history::{History, put_history, take_history};
use crate::words::ids::{RequestKey, put_key, take_key};
use crate::words::wire::{InvalidEnvelope, Reader, Writer, code_of, of_code};
use alloc::collections::BTreeMap;
use quorba_base::{NodeSet, canary};

const REPORTS: [Report; 9] = [
    Report::Replied,
    Report::NotStarted,
    Report::Late,
    Report::GivenUp,
    Report::CaughtUp,
    Report::NoReply(NoReply::ConnectionEnded),
    Report::NoReply(NoReply::NotAReply),
    Report::NoReply(NoReply::NeverTaken),
    Report::NoReply(NoReply::Rejected),
];

const ENDS: [RequestEnd; 6] = [
    RequestEnd::NoReply(NoReply::ConnectionEnded),
    RequestEnd::NoReply(NoReply::NotAReply),
    RequestEnd::NoReply(NoReply::NeverTaken),
    RequestEnd::NoReply(NoReply::Rejected),
    RequestEnd::EndsServers,
    RequestEnd::Skipped,
];

impl Report {
    pub(crate) fn encode(self, w: &mut Writer) {
        w.u8(code_of(&REPORTS, &self));
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let invalid = r.error("report");
        of_code(&REPORTS, r.u8("report")?).ok_or(invalid)
    }
}

/// The name of a request, and its place in its group.
pub(crate) fn put_named(w: &mut Writer, (key, at): (&RequestKey, History)) {
    put_key(w, key, 0);
    put_history(w, at);
}

/// See [`put_named`].
pub(crate) fn take_named(r: &mut Reader) -> Result<(RequestKey, History), InvalidEnvelope> {
    let (key, _) = take_key(r)?;
    Ok((key, take_history(r)?))
}

impl Endings {
    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u32(self.open.len() as u32);
        for (key, inquiry) in &self.open {
            put_named(w, (key, inquiry.at));
            w.u8(inquiry.process_ends);
            w.u8(u8::from(inquiry.handed_over));
            w.u8(u8::from(inquiry.answered));
            w.u32(inquiry.reports.len() as u32);
            for (node, report) in &inquiry.reports {
                w.node(*node);
                report.encode(w);
            }
        }
        w.u32(self.ended.len() as u32);
        for (key, ended) in &self.ended {
            put_named(w, (key, ended.at));
            w.u8(code_of(&ENDS, &ended.end));
            w.u64(ended.number);
        }
        w.u32(self.skipped.len() as u32);
        for (at, number) in self.skipped.values() {
            put_history(w, *at);
            w.u64(*number);
        }
        w.u64(self.count);
        w.u64(self.late.bits());
        w.u64(self.answered);
        w.u32(self.joined_with.len() as u32);
        for (node, joined_with) in self.joined_with.iter() {
            w.node(node);
            w.u8(u8::from(matches!(joined_with, JoinedWith::State(_))));
            w.u64(joined_with.count());
        }
        self.behind.encode(w);
        self.states.encode(w);
        self.agreed.encode(w);
    }

    pub(crate) fn decode(r: &mut Reader) -> Result<Self, InvalidEnvelope> {
        let mut endings = Self::default();
        for _ in 0..r.count(37, "inquiries")? {
            let (key, at) = take_named(r)?;
            let (process_ends, handed_over) = (r.u8("process ends")?, r.bool("handed over")?);
            let answered = r.bool("answered")?;
            let mut reports = BTreeMap::new();
            for _ in 0..r.count(2, "reports")? {
                reports.insert(r.node("member")?, Report::decode(r)?);
            }
            let inquiry = Inquiry { at, reports, process_ends, handed_over, answered };
            endings.open.insert(key, inquiry);
        }
        for _ in 0..r.count(34, "ended requests")? {
            let (key, at) = take_named(r)?;
            let invalid = r.error("end");
            let end = of_code(&ENDS, r.u8("end")?).ok_or(invalid)?;
            let number = r.u64("number of the end")?;
            if !canary!(EndsStayHome) {
                endings.ended.insert(key, Ended { at, end, number });
            }
        }
        for _ in 0..r.count(24, "skipped requests")? {
            let at = take_history(r)?;
            endings.skipped.insert(at.count, (at, r.u64("number of the end")?));
        }
        endings.count = r.u64("ends")?;
        endings.late = NodeSet::from_bits(r.u64("late members")?);
        endings.answered = r.u64("answered")?;
        for _ in 0..r.count(10, "members")? {
            let (node, state) = (r.node("member")?, r.bool("state flag")?);
            let count = r.u64("requests")?;
            let joined_with =
                if state { JoinedWith::State(count) } else { JoinedWith::Requests(count) };
            endings.joined_with.insert(node, joined_with);
        }
        endings.behind = EndsBehindRequest::decode(r)?;
        endings.states = States::decode(r)?;
        endings.agreed = Agreed::decode(r)?;
        Ok(endings)
    }
}
