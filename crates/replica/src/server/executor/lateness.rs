//! How long the server has had a call, and what is said of that.
//!
//! Late is not dead: a call may take its time, and then it does so at every replica. So a member
//! only says that its server is late, and others say whether theirs have replied. It is restarted
//! if they have, and it has not even long after that.
//!
//! What it is not: a judgement about a request. Invariant: the server of a member that is in is
//! never given up because of a call that nobody has answered.

use super::states::Refusal;
use super::{Call, Executor, Job, Outcome, Outstanding};
use crate::calls::refusal;
use crate::output::ServerCommand;
use crate::table::DownReason;
use crate::table::endings::{Report, RequestEnd};
use crate::words::history::History;
use alloc::vec::Vec;
use quorba_base::{Duration, Instant};

/// Who waits for a reply here is told of another one after so many times what a call usually takes,
/// and not before this.
const USUAL: u32 = 20;
const PATIENCE_MIN: Duration = Duration::from_millis(50);

/// A node that looks at its server so much later than it was to look has stood still: its host was
/// paused, or its process.
const STOOD_STILL: Duration = Duration::from_millis(250);

/// How late a call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Lateness {
    /// How often that was told.
    told: u8,
    /// It was told before, of which the others may know nothing any more.
    was_told: bool,
    /// When others were known to have answered it.
    answered_at: Option<Instant>,
    given_up: bool,
    /// It lives, so that more time is given to it.
    more: Duration,
}

impl Lateness {
    /// The server has given a sign of life.
    pub(super) fn lives(&mut self, more: Duration) {
        self.more = self.more.saturating_add(more);
    }

    fn tell_anew(&mut self) {
        self.was_told |= self.told > 0;
        (self.told, self.answered_at, self.given_up) = (0, None, false);
    }

    pub(super) fn is_untold(&self) -> bool {
        self.told == 0
    }

    pub(super) fn tell(&mut self) {
        self.told = self.told.saturating_add(1);
    }
}

/// A request that the server has had for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiting {
    /// What the group was delivered with it.
    pub(crate) at: History,
    /// When the server got to it.
    pub(crate) since: Instant,
}

impl Executor {
    /// Whether only this member executes, so that nobody else can have answered.
    pub(crate) fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// `apart`: its member takes no part, and others do, so that nobody waits for what it does;
    /// `stateless`: nobody else executes a call that it has.
    pub(crate) fn set_place(&mut self, apart: bool, stateless: bool) {
        (self.apart, self.stateless) = (apart, stateless);
    }

    /// So often it was given up because of what it executed apart from the others.
    pub(crate) fn set_patience(&mut self, failures: u32) {
        self.patience_factor = 1 << failures.min(10);
    }

    /// Whether a state waits for the end of what the server is at.
    pub(crate) fn awaits_state(&self) -> bool {
        self.schedule.awaits_state()
    }

    /// The request that the server is at, if it is at one.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        if let Some(straggler) = &self.straggler {
            return Some(straggler.waiting);
        }
        let oldest = self.schedule.oldest().filter(|oldest| !oldest.abandoned)?;
        let Job::Execute { call: Call::Request(_, at), .. } = &oldest.job else { return None };
        let since = self.began(oldest).unwrap_or(Instant::ZERO);
        Some(Waiting { at: *at, since })
    }

    /// Whether the server has had what it is at for longer than it may, if others have answered.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        let oldest = self.schedule.oldest();
        oldest.and_then(|oldest| oldest.deadline).is_some_and(|deadline| deadline <= now)
    }

    /// When the server has had what it is at for that long.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.schedule.oldest().and_then(|oldest| oldest.deadline)
    }

    /// What was said of calls is of before: it is said again.
    pub(crate) fn tell_anew(&mut self) {
        for call in self.schedule.outstanding_mut() {
            call.late.tell_anew();
            if let Some(odd) = &mut call.odd {
                odd.tell_anew();
            }
        }
    }

    /// Whether it was said that the call at the head is late. It is so still, whatever is asked
    /// anew since.
    pub(crate) fn has_told_late(&self) -> bool {
        let has_told = |late: &Lateness| late.told > 0 || late.was_told;
        self.schedule.oldest().is_some_and(|oldest| has_told(&oldest.late))
    }

    /// Others have answered a request that the server is at; `now` may be later, if it may take
    /// longer than they.
    pub(crate) fn answered_elsewhere(&mut self, now: Instant, at: History) {
        let mut calls = self.schedule.outstanding_mut();
        if let Some(call) = calls.find(|call| super::ends::is_request(call, at)) {
            let answered = call.late.answered_at.get_or_insert(now);
            *answered = now.min(*answered);
        }
    }

    /// When a server is given up that nobody waits for. It may execute again what the others were
    /// as slow with.
    fn given_up_at(&self, call: &Outstanding) -> Option<Instant> {
        let is_given_more = match &call.job {
            Job::Execute { call: Call::Read(_), .. } | Job::Capture(_) => false,
            Job::Execute { .. } => self.apart,
            Job::Restore { .. } => true,
        };
        if call.abandoned || !is_given_more {
            return call.deadline;
        }
        Some(self.began(call)? + self.reply_within.saturating_mul(self.patience_factor))
    }

    fn began(&self, call: &Outstanding) -> Option<Instant> {
        let deadline = call.deadline?;
        Some(Instant::ZERO + deadline.since(Instant::ZERO + self.reply_within))
    }

    /// How long somebody who waits here for a reply waits before others are asked.
    pub(super) fn patience(&self, awaited: bool) -> Duration {
        let half = self.reply_within / 2;
        if self.alone {
            return self.reply_within;
        }
        if !awaited {
            return half;
        }
        let requests = u32::try_from(self.served.requests).unwrap_or(u32::MAX);
        let usual = self.served.time.checked_div(requests).unwrap_or(half);
        (usual.saturating_mul(USUAL)).max(PATIENCE_MIN).min(half)
    }

    /// When something must be said of the oldest call, or done about it.
    pub(super) fn late_at(&self) -> Option<Instant> {
        let oldest = self.schedule.oldest().filter(|oldest| !oldest.is_odd() || self.apart)?;
        // What it calls in a request of no account is refused.
        if self.calls.is_any_open() && !oldest.abandoned {
            return None;
        }
        let deadline = self.given_up_at(oldest)?;
        let Job::Execute { call: Call::Request(..), awaited, .. } = &oldest.job else {
            let is_read = matches!(oldest.job, Job::Execute { call: Call::Read(_), .. });
            if is_read && self.stateless && !oldest.abandoned {
                return Some(self.began(oldest)? + self.abandon?);
            }
            return Some(deadline);
        };
        if oldest.abandoned || self.apart || self.end_of(oldest).is_some() {
            return Some(deadline);
        }
        let began = self.began(oldest)?;
        let Lateness { told, answered_at, given_up, more, .. } = oldest.late;
        let is_asked = self.alone && self.probe.is_some();
        let abandon = self.abandon.filter(|_| !given_up).map(|after| began + after);
        let patience = self.patience(*awaited);
        let next = match (told, answered_at) {
            (0, _) if is_asked => None,
            (0, _) => Some(began + patience + more),
            (_, None) => None,
            (1, Some(answered)) => Some(answered + patience / 4),
            // It may have begun later than they: in turns, or because it had more to do.
            (_, Some(answered)) => Some(answered + self.reply_within),
        };
        [abandon, next].into_iter().flatten().min()
    }

    /// What is to be said of the oldest call now.
    pub(super) fn next_late(
        &mut self,
        now: Instant,
        out: &mut Vec<ServerCommand>,
    ) -> Result<Option<Outcome>, DownReason> {
        let Some(late_at) = self.late_at().filter(|at| *at <= now) else { return Ok(None) };
        if now.since(late_at) >= STOOD_STILL {
            self.stood_still(now.since(late_at));
            return Ok(None);
        }
        let (began, abandon) = (self.schedule.oldest().and_then(|c| self.began(c)), self.abandon);
        let Some(oldest) = self.schedule.oldest_mut() else { return Ok(None) };
        match &oldest.job {
            // What was for others, and nobody wants any more, has changed nothing.
            Job::Capture(_) => Ok(self.give_up_capture(out)),
            Job::Execute { call: Call::Read(_), .. } => Ok(self.give_up_read(out)),
            _ if oldest.abandoned => Err(DownReason::ServerHung),
            Job::Execute { call: Call::Request(..), .. } if self.apart => {
                Err(DownReason::ServerHung)
            }
            Job::Execute { call: Call::Request(key, _), .. } if self.ends.of(key).is_some() => {
                // Whoever has others is given their state; who has none goes on.
                if !core::mem::replace(&mut oldest.late.given_up, true) {
                    return Ok(Some(Outcome::Overdue));
                }
                Ok(self.go_on_without(out))
            }
            Job::Execute { call: Call::Request(key, at), .. } => {
                let (key, at) = (key.clone(), *at);
                let is_given_up = abandon.zip(began).is_some_and(|(after, b)| b + after <= now);
                if is_given_up && !oldest.late.given_up {
                    (oldest.late.given_up, oldest.late.told) = (true, oldest.late.told.max(1));
                    return Ok(Some(Outcome::Late { key, at, report: Report::GivenUp }));
                }
                if oldest.late.told >= 2 {
                    // Once: should nobody else be left, all begins again when somebody is.
                    oldest.late.answered_at = None;
                    return Ok(Some(Outcome::Overdue));
                }
                if self.alone && oldest.late.is_untold() {
                    self.probe(now, out);
                    return Ok(None);
                }
                oldest.late.tell();
                Ok(Some(Outcome::Late { key, at, report: Report::Late }))
            }
            Job::Execute { .. } | Job::Restore { .. } => Err(DownReason::ServerHung),
        }
    }

    /// This was to be looked at so long ago: the node stood still meanwhile, and what the server
    /// has sent may be read next. That time is none of the server's.
    fn stood_still(&mut self, so_long: Duration) {
        let more = so_long.saturating_add(PATIENCE_MIN);
        for call in self.schedule.outstanding_mut() {
            call.deadline = call.deadline.map(|deadline| deadline + more);
            call.late.answered_at = call.late.answered_at.map(|answered| answered + more);
        }
    }

    fn end_of(&self, call: &Outstanding) -> Option<RequestEnd> {
        match &call.job {
            Job::Execute { call: Call::Request(key, _), .. } => self.ends.of(key),
            _ => None,
        }
    }

    /// The request at the head has ended for the group; the server may go on with it, but not for
    /// us.
    fn go_on_without(&mut self, out: &mut Vec<ServerCommand>) -> Option<Outcome> {
        let end = self.end_of(self.schedule.oldest()?)?;
        let call = self.give_up_oldest(out)?;
        let Job::Execute { call: name, giop, .. } = call.job else { return None };
        Some(self.not_executed(name, &giop, call.oneway, end))
    }

    /// The server may go on with the oldest call; what waits behind it goes on, on another
    /// connection.
    fn give_up_oldest(&mut self, out: &mut Vec<ServerCommand>) -> Option<Outstanding> {
        let request_id = self.schedule.oldest()?.request_id;
        let call = self.schedule.take_out(request_id)?;
        self.calls.begin_anew();
        // What was sent behind it on the same connection the server is to answer there.
        let shares = self.schedule.outstanding().any(|other| other.channel == call.channel);
        let index = self.channels.iter().position(|c| c.id == call.channel);
        if let Some(index) = index.filter(|_| !shares) {
            self.leave_behind(index, out);
        }
        Some(call)
    }

    /// It is executed elsewhere, or in the order; what waits behind it goes on, on another
    /// connection.
    fn give_up_read(&mut self, out: &mut Vec<ServerCommand>) -> Option<Outcome> {
        let call = self.give_up_oldest(out)?;
        let Job::Execute { call: Call::Read(id), giop, .. } = call.job else { return None };
        Some(Outcome::ReadEnded { id, reply: refusal::ended(&giop, RequestEnd::Skipped) })
    }

    /// Nobody needs this very state: what waits behind it goes on, on another connection.
    fn give_up_capture(&mut self, out: &mut Vec<ServerCommand>) -> Option<Outcome> {
        let call = self.give_up_oldest(out)?;
        let Job::Capture(purpose) = call.job else { return None };
        self.ends.states.did_not_give(Refusal::of("no reply in server_reply_ms"));
        Some(Outcome::Captured { purpose, state: None })
    }

    /// It is not late, as far as others have to know: what it was said to be is of before.
    pub(crate) fn forgive(&mut self) {
        if let Some(oldest) = self.schedule.oldest_mut() {
            oldest.late.answered_at = None;
        }
    }
}
