//! Replicas beside each other, and each beside its own history.

use std::collections::BTreeSet;

use super::Replica;
use super::difference::{Difference, Differences};
use crate::bank::books::{Books, Entry};

/// Whether all replicas are equal; the first thing in which each differs from the first goes to
/// `out`. No replica at all is not equality.
pub(super) fn equal(replicas: &[Replica], out: &mut Differences) -> bool {
    let Some((first, others)) = replicas.split_first() else {
        out.add(Difference::NoReplica);
        return false;
    };
    let mut equal = true;
    for other in others {
        if let Some(difference) = divergence(first, other) {
            equal = false;
            out.add(difference);
        }
    }
    equal
}

/// Says where balances or counters are not what the replica's own history leads to.
pub(super) fn consistent(replicas: &[Replica], out: &mut Differences) {
    for replica in replicas {
        let mut say = |what: String| {
            out.add(Difference::Inconsistent { replica: replica.name.clone(), what })
        };
        let books = &replica.books;
        let due = Books::replay(&books.history);
        for (index, entry) in books.history.iter().enumerate() {
            if entry.number != index as u64 {
                say(format!("entry {index} has number {}", entry.number));
                break;
            }
        }
        if due.counter != books.counter {
            let (counter, due) = (books.counter, due.counter);
            say(format!("the counter is {counter}, and by its history {due}"));
        }
        if due.balances != books.balances {
            let what = first_balance(&due, books).map_or_else(String::new, |(account, due, is)| {
                format!("the balance of {account:?} is {is}, and by its history {due}")
            });
            say(what);
        }
    }
}

fn divergence(one: &Replica, two: &Replica) -> Option<Difference> {
    let diverged = |what: String, first: String, second: String| {
        let replicas = [one.name.clone(), two.name.clone()];
        Some(Difference::Diverged { replicas, what, first, second })
    };
    let (ours, theirs) = (&one.books, &two.books);
    if ours.history != theirs.history {
        let at = (ours.history.iter().zip(&theirs.history))
            .position(|(left, right)| left != right)
            .unwrap_or(ours.history.len().min(theirs.history.len()));
        let words = |entry: Option<&Entry>| entry.map_or_else(|| "nothing".to_owned(), in_words);
        let (first, second) = (words(ours.history.get(at)), words(theirs.history.get(at)));
        return diverged(format!("history from entry {at} on"), first, second);
    }
    if ours.counter != theirs.counter {
        let (first, second) = (ours.counter.to_string(), theirs.counter.to_string());
        return diverged("counter".to_owned(), first, second);
    }
    if let Some((account, first, second)) = first_balance(ours, theirs) {
        return diverged(format!("balance of {account:?}"), first, second);
    }
    if one.state != two.state {
        let octets = |state: &Option<Vec<u8>>| match state {
            Some(state) => format!("{} octets", state.len()),
            None => "none".to_owned(),
        };
        return diverged("state".to_owned(), octets(&one.state), octets(&two.state));
    }
    None
}

/// The first account that the two have differently, with what each has.
fn first_balance(one: &Books, two: &Books) -> Option<(String, String, String)> {
    let accounts: BTreeSet<&String> = one.balances.keys().chain(two.balances.keys()).collect();
    let words = |books: &Books, account: &str| match books.balances.get(account) {
        Some(balance) => balance.to_string(),
        None => "nothing".to_owned(),
    };
    accounts
        .into_iter()
        .find(|account| one.balances.get(*account) != two.balances.get(*account))
        .map(|account| (account.clone(), words(one, account), words(two, account)))
}

fn in_words(entry: &Entry) -> String {
    let Entry { reference, operation, account, other, amount, .. } = entry;
    format!("{reference}: {operation}({account:?}, {other:?}, {amount})")
}
