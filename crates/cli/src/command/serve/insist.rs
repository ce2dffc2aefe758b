//! Calls that the process of a service makes until they are heard, as far as that can help.
//!
//! What it is not: a repetition under one identity; that is the client's (`Repeat`).
//!
//! Invariants: only what another try can mend is tried again, after a wait that grows up to a
//! bound; everything else is left out, with its reason in the log, and what comes behind it goes
//! on.

use std::fmt::Display;
use std::time::Duration;

use quorba_corba::giop::SystemException;
use quorba_giop::ExceptionKind;

/// Before the first repetition.
const FIRST: Duration = Duration::from_millis(20);
/// Before each one in the end.
const MOST: Duration = Duration::from_secs(1);

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// It was heard.
    Heard,
    /// It never will be.
    LeftOut,
    /// Nobody wants it any more.
    Unwanted,
}

/// Whether the same call can be heard later.
pub(in crate::command) const fn is_passing(kind: ExceptionKind) -> bool {
    matches!(
        kind,
        ExceptionKind::Transient
            | ExceptionKind::CommFailure
            | ExceptionKind::Timeout
            | ExceptionKind::NoResponse
    )
}

/// Whose fault it is that something was left out, and what to do.
const fn advice(kind: ExceptionKind) -> &'static str {
    match kind {
        ExceptionKind::ImpLimit | ExceptionKind::NoResources | ExceptionKind::NoMemory => {
            "a client gave more than the group takes: message_bytes and buffered_bytes of [limits] \
             say how much that is"
        }
        ExceptionKind::NoPermission | ExceptionKind::ObjectNotExist => {
            "the domain file is at fault: see the keys of the service's table, and quorba status"
        }
        _ => "Quorba is at fault: please report this line",
    }
}

/// Calls again and again, while that can help and `is_wanted`; `wait` sleeps.
pub(super) fn insist(
    what: &dyn Display,
    mut call: impl FnMut() -> Result<(), SystemException>,
    mut is_wanted: impl FnMut() -> bool,
    mut wait: impl FnMut(Duration),
) -> Ended {
    let mut pause = FIRST;
    loop {
        let Err(raised) = call() else { return Ended::Heard };
        if !is_passing(raised.kind) {
            eprintln!(
                "{what} is left out: the group answers {raised}; a repetition would not help; {}",
                advice(raised.kind)
            );
            return Ended::LeftOut;
        }
        if !is_wanted() {
            return Ended::Unwanted;
        }
        wait(pause);
        pause = MOST.min(pause * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_corba::raise_system;

    fn ask(kinds: &[ExceptionKind], wanted: usize) -> (Ended, Vec<Duration>, usize) {
        let (mut waits, mut calls) = (Vec::new(), 0);
        let mut left = wanted;
        let ended = insist(
            &"a decision",
            || {
                calls += 1;
                kinds.get(calls - 1).map_or(Ok(()), |kind| Err(raise_system(*kind)))
            },
            || {
                left = left.saturating_sub(1);
                left > 0
            },
            |pause| waits.push(pause),
        );
        (ended, waits, calls)
    }

    #[test]
    fn what_can_pass_is_repeated_after_waits_that_grow_to_a_bound() {
        use ExceptionKind::{CommFailure, NoResponse, Timeout, Transient};
        let (ended, waits, calls) = ask(&[Transient, CommFailure, Timeout, NoResponse], 100);
        assert_eq!((ended, calls, waits.len()), (Ended::Heard, 5, 4));
        assert!(waits.is_sorted() && waits[0] == FIRST && waits[3] == FIRST * 8, "{waits:?}");
        let (_, waits, _) = ask(&[Transient; 50], 100);
        assert_eq!(waits.last(), Some(&MOST));
    }

    #[test]
    fn what_never_can_be_heard_is_left_out_at_once() {
        let all = [
            ExceptionKind::ImpLimit,
            ExceptionKind::BadParam,
            ExceptionKind::Marshal,
            ExceptionKind::NoPermission,
            ExceptionKind::ObjectNotExist,
            ExceptionKind::Unknown,
        ];
        for kind in all {
            assert_eq!(ask(&[kind, kind], 100), (Ended::LeftOut, Vec::new(), 1));
        }
    }

    #[test]
    fn what_nobody_wants_any_more_is_repeated_no_more() {
        let (ended, waits, calls) = ask(&[ExceptionKind::Transient; 9], 3);
        assert_eq!((ended, waits.len(), calls), (Ended::Unwanted, 2, 3));
    }
}
