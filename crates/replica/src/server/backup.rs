//! What an operator takes out of a group to keep it, and puts back.
//!
//! A backup is what a member that joins would be given, at a place of its own in the order: the
//! server's state after the last request before it, and the replies to requests that may still be
//! repeated. So whatever was acknowledged before it was asked for is in it: it counts only
//! when a majority holds its place, as a reply does. A restore makes such a thing the state of the
//! group from a place in the order on, at one member; the others get it from that one.
//!
//! What it is not: a file; drivers make one. Invariants: at most one of either is under way per
//! group and node; names of requests mean the same in every life of the domain, so that none is
//! taken for another one.

use crate::messages::backed_up::{Backup, BackupRefused};
use crate::messages::command::CommandRefused;
use crate::output::{DriverOutput, Output};
use crate::state::retention::{Frozen, Retention};
use crate::state::transfer::{self, TRANSFER_BYTES_MAX};
use crate::words::ids::{Attempt, GroupId};
use crate::words::wire::{Reader, Writer};
use bytes::Bytes;
use core::fmt;
use quorba_base::canary;

impl BackupRefused {
    /// The same may work soon.
    #[must_use]
    pub fn is_passing(self) -> bool {
        matches!(
            self,
            Self::Busy | Self::Joining | Self::NotExecuting | Self::Interrupted | Self::Unknown
        )
    }
}

impl fmt::Display for BackupRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Group(refused) => return refused.fmt(f),
            Self::NoMember => "this node has no member of the group",
            Self::Busy => "another backup or restore of the group is under way at this node",
            Self::Joining => "the member here is about to come in",
            Self::NotExecuting => "the member here has no server that executes the requests now",
            Self::Interrupted => "the member here was interrupted before its state was there",
            Self::NoState => "the server gave no state: an exception, or more than state_bytes",
            Self::TooLarge => "the state and the replies are together more than 1.5 GiB",
            Self::Damaged => "this is not what a member of a group gave",
            Self::Unknown => "the view changed: it is not known whether a majority has it",
        })
    }
}

impl core::error::Error for BackupRefused {}

impl Backup {
    fn retention(&self) -> Result<Retention, BackupRefused> {
        if self.bytes() > TRANSFER_BYTES_MAX {
            return Err(BackupRefused::TooLarge);
        }
        let mut reader = Reader::new(self.replies.clone());
        let retention = Retention::decode(&mut reader);
        let retention = retention.and_then(|retention| reader.end().map(|()| retention));
        let retention = retention.map_err(|_| BackupRefused::Damaged)?;
        let is_right = retention.len() as u64 == self.requests;
        if is_right { Ok(retention) } else { Err(BackupRefused::Damaged) }
    }

    fn bytes(&self) -> u64 {
        (self.replies.len() + self.state.len()) as u64
    }
}

/// What a member made of a question for its state.
pub(crate) type Captured = Result<(Bytes, u64, Bytes), BackupRefused>;

/// The replies and the state that go into a backup.
pub(crate) fn pack(retention: &Retention, frozen: &Frozen, state: Bytes) -> Captured {
    let head = transfer::head(retention, frozen);
    if (head.len() + state.len()) as u64 > TRANSFER_BYTES_MAX {
        return Err(BackupRefused::TooLarge);
    }
    Ok((head, frozen.len() as u64, state))
}

/// A backup that is to become the state of the group.
pub(crate) struct Staged {
    pub(crate) attempt: Attempt,
    pub(crate) retention: Retention,
    /// The group's clock when it was made.
    pub(crate) time: u64,
    pub(crate) state: Bytes,
}

impl Staged {
    pub(crate) fn new(attempt: Attempt, backup: Backup) -> Result<Self, BackupRefused> {
        let retention = backup.retention()?;
        Ok(Self { attempt, retention, time: backup.time, state: backup.state })
    }

    /// At this time of the group's clock: replies and state, in one piece as a joiner would take
    /// them, if it is wanted.
    pub(crate) fn take_effect(
        mut self,
        now: u64,
        in_one: bool,
    ) -> (Retention, Bytes, Option<Bytes>) {
        self.retention.shift(self.time, now);
        if canary!(RestoreForgetsRequests) {
            self.retention = Retention::default();
        }
        let whole = in_one.then(|| {
            let mut writer = Writer::with_capacity(self.state.len());
            self.retention.encode(&self.retention.freeze(), &mut writer);
            writer.rest(&self.state);
            writer.finish()
        });
        (self.retention, self.state, whole)
    }
}

/// What this node's operator waits for.
pub(crate) struct Operation {
    id: u64,
    /// A majority has its place.
    is_held: bool,
    what: What,
}

enum What {
    Backup {
        asked: Asked,
    },
    /// `awaits_disks`: what came of it must be on disks before it is told, and is not yet.
    Restore {
        result: Option<Result<(), CommandRefused>>,
        awaits_disks: bool,
    },
}

/// How far a backup is.
enum Asked {
    /// It has no place yet.
    Ordered,
    /// The server is asked; what is known of the rest.
    Server(Backup),
    Done(Result<Backup, BackupRefused>),
}

impl Operation {
    pub(crate) fn backup(id: u64) -> Self {
        Self { id, is_held: false, what: What::Backup { asked: Asked::Ordered } }
    }

    /// `awaits_disks`: of a durable group.
    pub(crate) fn restore(id: u64, awaits_disks: bool) -> Self {
        Self { id, is_held: false, what: What::Restore { result: None, awaits_disks } }
    }

    pub(crate) fn is(&self, id: u64) -> bool {
        self.id == id
    }

    /// A majority has its place.
    pub(crate) fn held(&mut self) {
        self.is_held = true;
    }

    /// So many disks have what came of it that it is not lost any more.
    pub(crate) fn logged(&mut self) {
        if let What::Restore { awaits_disks, .. } = &mut self.what {
            *awaits_disks = false;
        }
    }

    /// It was carried out, and only disks are waited for.
    pub(crate) fn awaits_disks(&self) -> bool {
        matches!(self.what, What::Restore { result: Some(Ok(())), awaits_disks: true })
    }

    /// It has its place; the server is being asked.
    pub(crate) fn placed(&mut self, backup: Backup) {
        if let What::Backup { asked: asked @ Asked::Ordered } = &mut self.what {
            *asked = Asked::Server(backup);
        }
    }

    pub(crate) fn is_capturing(&self) -> bool {
        matches!(self.what, What::Backup { asked: Asked::Server(_) })
    }

    /// The server has answered.
    pub(crate) fn captured(&mut self, captured: Captured) {
        let What::Backup { asked } = &mut self.what else { return };
        if let Asked::Server(backup) = core::mem::replace(asked, Asked::Ordered) {
            let filled = captured.map(|(replies, requests, state)| Backup {
                replies,
                requests,
                state,
                ..backup
            });
            *asked = Asked::Done(filled);
        }
    }

    pub(crate) fn fail(&mut self, refused: BackupRefused) {
        match &mut self.what {
            What::Backup { asked } => *asked = Asked::Done(Err(refused)),
            What::Restore { .. } => {}
        }
    }

    pub(crate) fn restored(&mut self, so: Result<(), CommandRefused>) {
        if let What::Restore { result, .. } = &mut self.what {
            *result = Some(so);
        }
    }

    /// What the operator is told when all is known, once; what was refused waits for nobody.
    pub(crate) fn finish(&mut self, group: GroupId) -> Option<Output> {
        let (id, is_held) = (self.id, self.is_held);
        match &mut self.what {
            What::Backup { asked } => {
                let is_over = match asked {
                    Asked::Done(Ok(_)) => is_held || canary!(BackupBeforeHeld),
                    Asked::Done(Err(_)) => true,
                    Asked::Ordered | Asked::Server(_) => false,
                };
                let done = is_over.then(|| core::mem::replace(asked, Asked::Ordered));
                let Some(Asked::Done(result)) = done else { return None };
                Some(DriverOutput::BackedUp { group, id, result }.into())
            }
            What::Restore { result, awaits_disks } => {
                let is_safe = is_held && (!*awaits_disks || canary!(RestoresBeforeLogged));
                let result = result.take_if(|result| is_safe || result.is_err())?;
                let result = result.map_err(BackupRefused::Group);
                Some(DriverOutput::Restored { group, id, result }.into())
            }
        }
    }

    /// The view is over, and whether it counts is not known.
    pub(crate) fn give_up(self, group: GroupId) -> Output {
        let id = self.id;
        match self.what {
            What::Backup { .. } => {
                DriverOutput::BackedUp { group, id, result: Err(BackupRefused::Unknown) }.into()
            }
            What::Restore { .. } => {
                DriverOutput::Restored { group, id, result: Err(BackupRefused::Unknown) }.into()
            }
        }
    }
}
