//! Accounting for groups whose members share no state: each has executed what it was given.
//!
//! What it is not: a comparison of replicas, of which there are none. Servers that have ended took
//! with them what they had executed, so a call is held against histories only if it was begun when
//! all servers had been started that are asked in the end; of the earlier ones only what
//! contradicts itself is found.

use std::collections::BTreeSet;

use super::difference::Differences;
use super::{Account, Difference, Replica, replicas, settle, standings};
use crate::record::{Recording, Verdict};

/// Holds the clients' recordings against what the members that are left have executed. By the
/// recordings, in their order, `since`: when, in microseconds of each one's clock, the servers were
/// started at the latest.
///
/// # Panics
/// If there are more recordings than times.
#[must_use]
pub fn account_stateless(recordings: &[Recording], members: &[Replica], since: &[u64]) -> Account {
    let mut account = Account { replicas_compared: false, ..Account::default() };
    let mut differences = Differences::default();
    let standings = standings(members);
    let mut recorded = BTreeSet::new();
    let mut held = BTreeSet::new();
    for (recording, since) in recordings.iter().zip(since) {
        for record in &recording.records {
            recorded.insert(record.reference.as_str());
            let standing = standings.get(record.reference.as_str());
            let is_held = record.start_us > *since;
            let is_owed = record.verdict() == Verdict::Acknowledged && record.changes();
            if is_held && is_owed {
                held.insert(record.reference.as_str());
            }
            if !is_held && is_owed && standing.is_none() {
                account.requests += 1;
                account.acknowledged += 1;
                account.executed_elsewhere += 1;
                continue;
            }
            settle(&mut account, &mut differences, record, standing);
        }
    }
    account.held = held.len() as u64;
    for (reference, standing) in &standings {
        let times = standing.seen.iter().filter(|seen| **seen).count();
        if !recorded.contains(reference) {
            account.unrecorded += 1;
            differences.add(Difference::Unrecorded { reference: (*reference).to_owned() });
        } else if times > 1 || standing.twice_at.is_some() {
            if held.contains(reference) {
                account.doubled += 1;
                differences.add(standing.executed_again(reference, members));
            } else {
                account.executed_again += 1;
            }
        }
    }
    replicas::consistent(members, &mut differences);
    account.differences = differences.into_list();
    account
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bank::books::Books;
    use crate::record::{CallRecord, Completed, Outcome};

    fn record(number: u64) -> CallRecord {
        CallRecord {
            reference: format!("c0-{number}"),
            operation: "increment".to_owned(),
            start_us: number * 10,
            end_us: number * 10 + 5,
            outcome: Outcome::Ok,
            exception: None,
            completed: None,
            minor: None,
        }
    }

    fn member(name: &str, executed: &[u64]) -> Replica {
        let mut books = Books::default();
        for number in executed {
            books.increment(&format!("c0-{number}"));
        }
        Replica { name: name.to_owned(), books, state: None }
    }

    /// Six calls, of which those from the third on are held against the histories.
    fn account(members: &[Replica]) -> Account {
        let records = (0..6).map(record).collect();
        let recording = Recording { name: "c".to_owned(), records };
        account_stateless(&[recording], members, &[25])
    }

    #[test]
    fn calls_are_spread_and_what_ended_with_its_server_is_not_missed() {
        let spread = account(&[member("n1", &[1, 3, 5]), member("n2", &[1, 4])]);
        assert!(spread.is_clean(), "{spread:?}");
        assert_eq!((spread.requests, spread.acknowledged, spread.held), (6, 6, 3));
        assert_eq!((spread.executed_elsewhere, spread.executed_again), (2, 1));
    }

    #[test]
    fn a_call_behind_the_last_kill_is_executed_once_by_one_member() {
        let lost = account(&[member("n1", &[3, 5]), member("n2", &[])]);
        assert_eq!((lost.lost, lost.is_clean()), (1, false), "{lost:?}");
        let doubled = account(&[member("n1", &[3, 4, 5]), member("n2", &[4])]);
        assert_eq!((doubled.doubled, doubled.is_clean()), (1, false), "{doubled:?}");
        let strange = account(&[member("n1", &[3, 4, 5, 77]), member("n2", &[])]);
        assert_eq!((strange.unrecorded, strange.is_clean()), (1, false), "{strange:?}");
    }

    #[test]
    fn a_call_that_was_refused_is_executed_by_nobody() {
        let mut refused = record(1);
        refused.outcome = Outcome::Exception;
        refused.exception = Some("IDL:omg.org/CORBA/TRANSIENT:1.0".to_owned());
        refused.completed = Some(Completed::No);
        let recording = Recording { name: "c".to_owned(), records: vec![refused] };
        let account = account_stateless(&[recording], &[member("n1", &[1])], &[25]);
        assert_eq!((account.refused_executed, account.is_clean()), (1, false), "{account:?}");
    }
}
