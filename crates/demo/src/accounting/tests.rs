//! The accounting finds every kind of broken promise, each planted by hand into an honest run.

use super::*;
use crate::record::{Completed, Outcome};

/// A bank that is called in order, one call after the other, each taking 5 µs of every 10.
struct Run {
    books: Books,
    recording: Recording,
}

impl Run {
    fn honest() -> Self {
        let mut run = Self { books: Books::default(), recording: Recording::default() };
        run.call("open", |books, reference| books.open("alice", reference));
        run.call("open", |books, reference| books.open("bob", reference));
        run.call("deposit", |books, reference| {
            books.deposit("alice", 100, reference).expect("alice exists");
        });
        for _ in 0..3 {
            run.call("transfer", |books, reference| {
                books.transfer("alice", "bob", 10, reference).expect("alice has enough");
            });
        }
        run.call("increment", |books, reference| _ = books.increment(reference));
        run.call("balance", |_, _| {});
        run
    }

    fn call(&mut self, operation: &str, change: impl Fn(&mut Books, &str)) {
        let number = self.recording.records.len();
        let reference = format!("c0-{number}");
        change(&mut self.books, &reference);
        self.recording.records.push(CallRecord {
            reference,
            operation: operation.to_owned(),
            start_us: number as u64 * 10,
            end_us: number as u64 * 10 + 5,
            outcome: Outcome::Ok,
            exception: None,
            completed: None,
            minor: None,
        });
    }

    fn unknown(mut self, index: usize, completed: Completed) -> Self {
        let record = &mut self.recording.records[index];
        record.outcome = Outcome::Exception;
        record.exception = Some("IDL:omg.org/CORBA/COMM_FAILURE:1.0".to_owned());
        record.completed = Some(completed);
        self
    }

    /// Every replica's books after `change` to those of n2.
    fn account(&self, change: impl Fn(&mut Books)) -> Account {
        self.account_all(|name, books| {
            if name == "n2" {
                change(books)
            }
        })
    }

    fn account_all(&self, change: impl Fn(&str, &mut Books)) -> Account {
        let replica = |name: &str| {
            let mut books = self.books.clone();
            change(name, &mut books);
            let state = Some(crate::bank::text::encode(&books));
            Replica { name: name.to_owned(), books, state }
        };
        let replicas = ["n1", "n2", "n3"].map(replica);
        account(std::slice::from_ref(&self.recording), &replicas)
    }
}

/// All replicas are as they should be, but for those of `unread`, which nobody could read.
fn judged(unread: &[&str], stateless_since: Option<u64>) -> Account {
    let run = Run::honest();
    let found = ["n1", "n2", "n3"].map(|name| match unread.contains(&name) {
        true => Err(Unread { replica: name.to_owned(), reason: "it is gone".to_owned() }),
        false => {
            // Of a stateless group one member has executed everything.
            let has_all = stateless_since.is_none() || name == "n1";
            let books = if has_all { run.books.clone() } else { Books::default() };
            Ok(Replica { name: name.to_owned(), books, state: None })
        }
    });
    judge(std::slice::from_ref(&run.recording), found.into(), stateless_since)
}

#[test]
fn a_replica_that_could_not_be_read_is_not_clean() {
    for since in [None, Some(25)] {
        assert!(judged(&[], since).is_clean());
        for unread in [&["n2"][..], &["n2", "n3"], &["n3"]] {
            let account = judged(unread, since);
            assert_eq!((account.lost, account.doubled), (0, 0), "what is there is all there");
            assert!(!account.is_clean() && !account.replicas_equal, "{unread:?}: {account:?}");
            let named = account.differences.iter().map(|one| match one {
                Difference::Unread { replica, reason } if reason == "it is gone" => &**replica,
                other => panic!("{other}"),
            });
            assert_eq!(named.collect::<Vec<_>>(), unread);
        }
        assert!(!judged(&["n1", "n2", "n3"], since).is_clean(), "nothing is known");
    }
}

/// The books that the history without (or with more of) some entries leads to.
fn rewrite(books: &mut Books, change: impl Fn(&mut Vec<Entry>)) {
    change(&mut books.history);
    for (number, entry) in books.history.iter_mut().enumerate() {
        entry.number = number as u64;
    }
    *books = Books::replay(&books.history);
}

#[test]
fn an_honest_run_is_clean() {
    let account = Run::honest().account(|_| {});
    assert!(account.is_clean(), "{account:?}");
    assert_eq!((account.requests, account.acknowledged), (8, 8));
}

#[test]
fn a_call_that_stands_nowhere_is_lost() {
    let account =
        Run::honest().account_all(|_, books| rewrite(books, |history| _ = history.remove(3)));
    assert_eq!((account.lost, account.doubled, account.replicas_equal), (1, 0, true));
    assert_eq!(account.differences, [Difference::Lost { reference: "c0-3".into() }]);
    assert!(!account.is_clean());
}

#[test]
fn a_call_that_one_replica_lacks_is_missing_there() {
    let account = Run::honest().account(|books| rewrite(books, |history| _ = history.remove(3)));
    assert_eq!((account.lost, account.replicas_equal), (0, false));
    let missing = Difference::Missing { reference: "c0-3".into(), replicas: vec!["n2".into()] };
    assert!(account.differences.contains(&missing), "{account:?}");
}

#[test]
fn a_call_that_stands_twice_is_doubled_once_whoever_shows_it() {
    let double = |history: &mut Vec<Entry>| history.push(history[4].clone());
    let everywhere = Run::honest().account_all(|_, books| rewrite(books, double));
    assert_eq!((everywhere.doubled, everywhere.lost, everywhere.replicas_equal), (1, 0, true));
    let difference =
        Difference::Doubled { reference: "c0-4".into(), replica: "n1".into(), entries: [4, 7] };
    assert!(everywhere.differences.contains(&difference), "{everywhere:?}");

    let at_one = Run::honest().account(|books| rewrite(books, double));
    assert_eq!((at_one.doubled, at_one.replicas_equal), (1, false));
}

#[test]
fn replicas_in_different_orders_are_not_equal() {
    let account = Run::honest().account(|books| rewrite(books, |history| history.swap(4, 5)));
    assert_eq!((account.lost, account.doubled, account.replicas_equal), (0, 0, false));
    let Some(Difference::Diverged { replicas, what, first, second }) =
        account.differences.iter().find(|found| matches!(found, Difference::Diverged { .. }))
    else {
        panic!("no divergence in {account:?}")
    };
    assert_eq!(replicas, &["n1", "n2"]);
    assert_eq!(what, "history from entry 4 on");
    assert!(first.starts_with("c0-4: ") && second.starts_with("c0-5: "), "{first} {second}");
}

#[test]
fn an_order_against_real_time_is_seen_even_if_all_replicas_agree_on_it() {
    let account =
        Run::honest().account_all(|_, books| rewrite(books, |history| history.swap(4, 5)));
    assert_eq!((account.reordered, account.replicas_equal), (1, true));
    assert!(!account.is_clean());
}

#[test]
fn calls_that_overlap_may_stand_in_either_order() {
    let mut run = Run::honest();
    run.recording.records[4].end_us = run.recording.records[5].start_us + 1;
    let account = run.account_all(|_, books| rewrite(books, |history| history.swap(4, 5)));
    assert!(account.is_clean(), "{account:?}");
}

#[test]
fn an_unknown_outcome_may_come_late() {
    let run = Run::honest().unknown(4, Completed::Maybe);
    let account = run.account_all(|_, books| {
        rewrite(books, |history| {
            let late = history.remove(4);
            history.push(late);
        });
    });
    assert!(account.is_clean(), "{account:?}");
}

#[test]
fn equal_histories_with_different_money_have_diverged() {
    let account = Run::honest().account(|books| _ = books.balances.insert("bob".into(), 31));
    assert!(!account.replicas_equal);
    let text: Vec<String> = account.differences.iter().map(ToString::to_string).collect();
    assert!(text.contains(&r#"balance of "bob" differs: n1 has 30, n2 has 31"#.to_owned()));
    assert!(
        text.contains(&r#"at n2, the balance of "bob" is 31, and by its history 30"#.to_owned())
    );
}

#[test]
fn the_same_wrong_money_everywhere_is_seen_by_its_history() {
    let account = Run::honest().account_all(|_, books| _ = books.balances.insert("bob".into(), 31));
    assert!(account.replicas_equal);
    assert!(!account.is_clean());
}

#[test]
fn different_octets_of_state_have_diverged() {
    let run = Run::honest();
    let replica = |name: &str, state: &[u8]| Replica {
        name: name.to_owned(),
        books: run.books.clone(),
        state: Some(state.to_owned()),
    };
    let replicas = [replica("n1", b"bank 1"), replica("n2", b"bank 2")];
    let account = account(std::slice::from_ref(&run.recording), &replicas);
    assert!(!account.replicas_equal);
}

#[test]
fn an_unknown_outcome_is_counted_by_what_became_of_it() {
    let executed = Run::honest().unknown(3, Completed::Maybe).account(|_| {});
    assert_eq!((executed.maybe_executed, executed.maybe_not), (1, 0));
    assert!(executed.is_clean(), "{executed:?}");

    let not = Run::honest()
        .unknown(3, Completed::Maybe)
        .account_all(|_, books| rewrite(books, |history| _ = history.remove(3)));
    assert_eq!((not.maybe_executed, not.maybe_not, not.lost), (0, 1, 0));
    assert!(not.is_clean(), "{not:?}");

    let partly = Run::honest()
        .unknown(3, Completed::Maybe)
        .account(|books| rewrite(books, |history| _ = history.remove(3)));
    assert!(!partly.is_clean());
}

#[test]
fn a_call_that_was_said_not_to_have_happened_must_not_have() {
    let account = Run::honest().unknown(3, Completed::No).account(|_| {});
    assert_eq!((account.refused, account.refused_executed), (0, 1));
    assert!(!account.is_clean());
}

#[test]
fn a_call_that_raised_must_not_stand() {
    let mut run = Run::honest();
    run.recording.records[3].exception = Some("IDL:Bank/InsufficientFunds:1.0".into());
    let account = run.account(|_| {});
    assert_eq!((account.raised_executed, account.acknowledged), (1, 8));
    assert!(!account.is_clean());
}

#[test]
fn an_entry_that_nobody_asked_for_is_seen() {
    let account = Run::honest().account_all(|_, books| books.note("from nowhere"));
    assert_eq!(account.unrecorded, 1);
    assert!(!account.is_clean());
}

#[test]
fn a_call_under_another_operation_is_seen() {
    let mut run = Run::honest();
    run.recording.records[6].operation = "deposit".into();
    assert!(!run.account(|_| {}).is_clean());
}

#[test]
fn two_clients_under_one_name_are_seen() {
    let mut run = Run::honest();
    run.recording.records[7].reference = "c0-6".into();
    let account = run.account(|_| {});
    assert!(
        account.differences.contains(&Difference::ReferenceReused { reference: "c0-6".into() })
    );
}

#[test]
fn no_replica_shows_nothing() {
    let account = account(&[Run::honest().recording], &[]);
    assert_eq!((account.lost, account.replicas_equal), (7, false));
    assert!(!account.is_clean());
}

#[test]
fn the_list_is_capped_and_the_counts_are_not() {
    let mut run = Run::honest();
    for _ in 0..DIFFERENCES_MAX {
        run.call("increment", |_, _| {});
    }
    let account = run.account_all(|_, books| *books = Books::default());
    assert_eq!(account.lost, 7 + DIFFERENCES_MAX as u64);
    assert_eq!(account.differences.len(), DIFFERENCES_MAX);
}
