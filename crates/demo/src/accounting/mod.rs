//! Accounting: what became of every call, counted from the servers' own final state.
//!
//! [`account()`] holds the clients' recordings against the replicas' final states, which
//! are read from each replica's own server port, past every gateway.
//!
//! What it is not: trust. Neither the gateway's counters nor the order of arrival is believed;
//! only what stands in a history was executed, and only what a client wrote down was promised.
//!
//! Invariants: lost, doubled and the rest are counts of *references*, each counted once however
//! many replicas show it; [`Account::is_clean`] is false if anything at all is out of place.

mod difference;
pub mod read;
mod replicas;
mod stateless;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::bank::books::{Books, Entry};
use crate::record::{CallRecord, Recording, Verdict};

use difference::Differences;
pub use difference::{DIFFERENCES_MAX, Difference};
pub use stateless::account_stateless;

/// One replica's final state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The node that carries it, for messages.
    pub name: String,
    /// Counter, balances and history, as its operations report them.
    pub books: Books,
    /// What its `get_state` returns; none if it has none.
    pub state: Option<Vec<u8>>,
}

/// A replica whose final state could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The node that carries it.
    pub replica: String,
    /// Why.
    pub reason: String,
}

/// What became of the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Calls in the recordings, of every kind.
    pub requests: u64,
    /// Calls that a server answered: results and user exceptions.
    pub acknowledged: u64,
    /// Acknowledged calls that stand in no history.
    pub lost: u64,
    /// References that stand twice or more in a history.
    pub doubled: u64,
    /// Calls of unknown outcome that were executed.
    pub maybe_executed: u64,
    /// Calls of unknown outcome that were not.
    pub maybe_not: u64,
    /// Oneways that were executed.
    pub oneways_executed: u64,
    /// Oneways that were not: nobody promised them.
    pub oneways_not: u64,
    /// Calls whose caller was told that nothing happened, and nothing had.
    pub refused: u64,
    /// Calls whose caller was told that nothing happened, and that were executed.
    pub refused_executed: u64,
    /// Calls that raised a user exception and stand in a history all the same.
    pub raised_executed: u64,
    /// Calls that ended before another began and stand after it.
    pub reordered: u64,
    /// References in a history that no recording names.
    pub unrecorded: u64,
    /// Of a stateless group: acknowledged calls that are held against the histories, because they
    /// were begun after the last server was started.
    pub held: u64,
    /// Of a stateless group: earlier ones that no server has which is left.
    pub executed_elsewhere: u64,
    /// Of a stateless group: earlier ones that were executed more than once.
    pub executed_again: u64,
    /// Whether the replicas are to be equal: not so in a stateless group.
    pub replicas_compared: bool,
    /// Whether all replicas have one history, one set of balances, one counter, and the same
    /// octets of state.
    pub replicas_equal: bool,
    /// What is out of place, the first [`DIFFERENCES_MAX`] of them.
    pub differences: Vec<Difference>,
}

impl Account {
    /// Whether every promise was kept.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let broken = self.lost
            + self.doubled
            + self.refused_executed
            + self.raised_executed
            + self.reordered
            + self.unrecorded;
        let equal = self.replicas_equal || !self.replicas_compared;
        broken == 0 && equal && self.differences.is_empty()
    }

    /// Calls of unknown outcome, executed or not.
    #[must_use]
    pub const fn maybe(&self) -> u64 {
        self.maybe_executed + self.maybe_not
    }
}

/// Holds the clients' recordings against all replicas, read or not: nothing is known of one that
/// could not be read, so it is equal to none, and the account is not clean. `stateless_since`: the
/// members share no state, and the last of them was started then, in microseconds of the clients'
/// clock.
#[must_use]
pub fn judge(
    recordings: &[Recording],
    found: Vec<Result<Replica, Unread>>,
    stateless_since: Option<u64>,
) -> Account {
    let (mut replicas, mut unread) = (Vec::new(), Vec::new());
    for one in found {
        match one {
            Ok(replica) => replicas.push(replica),
            Err(Unread { replica, reason }) => {
                unread.push(Difference::Unread { replica, reason });
            }
        }
    }
    let mut account = match stateless_since {
        Some(since) => account_stateless(recordings, &replicas, &vec![since; recordings.len()]),
        None => account(recordings, &replicas),
    };
    if !unread.is_empty() {
        account.replicas_equal = false;
        account.differences.splice(0..0, unread);
    }
    account
}

/// Holds the clients' recordings against the replicas' final states.
#[must_use]
pub fn account(recordings: &[Recording], replicas: &[Replica]) -> Account {
    let mut account = Account { replicas_compared: true, ..Account::default() };
    let mut differences = Differences::default();
    let standings = standings(replicas);
    let mut recorded = BTreeSet::new();
    for record in recordings.iter().flat_map(|recording| &recording.records) {
        if !recorded.insert(record.reference.as_str()) {
            differences.add(Difference::ReferenceReused { reference: record.reference.clone() });
        }
        let standing = standings.get(record.reference.as_str());
        settle(&mut account, &mut differences, record, standing);
    }
    for (reference, standing) in &standings {
        if standing.twice_at.is_some() {
            account.doubled += 1;
            differences.add(standing.doubled(reference, replicas));
        }
        if !recorded.contains(reference) {
            account.unrecorded += 1;
            differences.add(Difference::Unrecorded { reference: (*reference).to_owned() });
        } else if standing.seen.contains(&false) {
            differences.add(standing.missing(reference, replicas));
        }
    }
    account.reordered = reordered(recordings, replicas, &mut differences);
    account.replicas_equal = replicas::equal(replicas, &mut differences);
    replicas::consistent(replicas, &mut differences);
    account.differences = differences.into_list();
    account
}

/// Where one reference stands.
struct Standing<'a> {
    /// Whether each replica's history shows it, by index.
    seen: Vec<bool>,
    /// The first replica that has it twice, and the numbers of the two entries.
    twice_at: Option<(usize, u64, u64)>,
    /// The first entry of it that was seen.
    entry: &'a Entry,
}

impl Standing<'_> {
    fn doubled(&self, reference: &str, replicas: &[Replica]) -> Difference {
        let (replica, first, second) = self.twice_at.expect("asked of a doubled reference only");
        Difference::Doubled {
            reference: reference.to_owned(),
            replica: replicas[replica].name.clone(),
            entries: [first, second],
        }
    }

    /// By one member twice, or by two.
    fn executed_again(&self, reference: &str, members: &[Replica]) -> Difference {
        if self.twice_at.is_some() {
            return self.doubled(reference, members);
        }
        let with = members.iter().zip(&self.seen).filter(|(_, seen)| **seen);
        Difference::ExecutedByTwo {
            reference: reference.to_owned(),
            members: with.map(|(member, _)| member.name.clone()).collect(),
        }
    }

    fn missing(&self, reference: &str, replicas: &[Replica]) -> Difference {
        let without = replicas.iter().zip(&self.seen).filter(|(_, seen)| !**seen);
        Difference::Missing {
            reference: reference.to_owned(),
            replicas: without.map(|(replica, _)| replica.name.clone()).collect(),
        }
    }
}

fn standings(replicas: &[Replica]) -> BTreeMap<&str, Standing<'_>> {
    let mut standings: BTreeMap<&str, Standing<'_>> = BTreeMap::new();
    for (index, replica) in replicas.iter().enumerate() {
        let mut first_numbers = BTreeMap::new();
        for entry in &replica.books.history {
            let standing = standings.entry(&entry.reference).or_insert_with(|| Standing {
                seen: vec![false; replicas.len()],
                twice_at: None,
                entry,
            });
            standing.seen[index] = true;
            if let Some(first) = first_numbers.insert(&entry.reference, entry.number) {
                standing.twice_at.get_or_insert((index, first, entry.number));
            }
        }
    }
    standings
}

fn settle(
    account: &mut Account,
    differences: &mut Differences,
    record: &CallRecord,
    standing: Option<&Standing<'_>>,
) {
    let reference = || record.reference.clone();
    let verdict = record.verdict();
    account.requests += 1;
    account.acknowledged += u64::from(matches!(verdict, Verdict::Acknowledged | Verdict::Raised));
    if let Some(entry) = standing.map(|standing| standing.entry)
        && entry.operation != record.operation
    {
        differences.add(Difference::OtherOperation {
            reference: reference(),
            recorded: record.operation.clone(),
            executed: entry.operation.clone(),
        });
    }
    match (verdict, standing.is_some()) {
        (Verdict::Acknowledged, false) if record.changes() => {
            account.lost += 1;
            differences.add(Difference::Lost { reference: reference() });
        }
        (Verdict::Acknowledged, _) | (Verdict::Raised, false) => {}
        (Verdict::Raised, true) => {
            account.raised_executed += 1;
            differences.add(Difference::RaisedButExecuted { reference: reference() });
        }
        (Verdict::Refused, false) => account.refused += 1,
        (Verdict::Refused, true) => {
            account.refused_executed += 1;
            differences.add(Difference::RefusedButExecuted { reference: reference() });
        }
        (Verdict::Maybe, false) => account.maybe_not += 1,
        (Verdict::Maybe, true) => account.maybe_executed += 1,
        (Verdict::Sent, false) => account.oneways_not += 1,
        (Verdict::Sent, true) => account.oneways_executed += 1,
    }
}

/// Calls that were acknowledged before another of the same recording was begun must stand before
/// it: the bank is one machine to its callers (linearizability's real-time half). Recordings are
/// looked at one by one, because each has a clock of its own.
fn reordered(recordings: &[Recording], replicas: &[Replica], out: &mut Differences) -> u64 {
    let mut late = BTreeSet::new();
    for recording in recordings {
        let calls: BTreeMap<&str, &CallRecord> =
            recording.records.iter().map(|call| (call.reference.as_str(), call)).collect();
        for replica in replicas {
            let mut latest: Option<&CallRecord> = None;
            for entry in &replica.books.history {
                let Some(&call) = calls.get(entry.reference.as_str()) else { continue };
                let ended = (call.verdict() == Verdict::Acknowledged).then_some(call.end_us);
                if let Some(before) = latest.filter(|before| Some(before.start_us) > ended)
                    && ended.is_some()
                    && late.insert(call.reference.clone())
                {
                    out.add(Difference::Reordered {
                        replica: replica.name.clone(),
                        ended_first: call.reference.clone(),
                        stands_first: before.reference.clone(),
                    });
                }
                if latest.is_none_or(|before| before.start_us < call.start_us) {
                    latest = Some(call);
                }
            }
        }
    }
    late.len() as u64
}
