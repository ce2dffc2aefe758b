//! The books and their octets.

use super::books::{Books, Refusal};
use super::text::{decode, encode};

fn worked() -> Books {
    let mut books = Books::default();
    books.open("alice", "c0-0");
    books.open("bob", "c0-1");
    books.deposit("alice", 100, "c0-2").expect("alice exists");
    books.transfer("alice", "bob", 30, "c0-3").expect("alice has 100");
    books.increment("c0-4");
    books.note("two words, 100 %\nand a line");
    books
}

#[test]
fn each_change_appends_one_entry_and_a_refusal_none() {
    let mut books = worked();
    assert_eq!(books.executed(), 6);
    assert_eq!(
        books.transfer("alice", "bob", 71, "c0-5"),
        Err(Refusal::InsufficientFunds { account: "alice".into(), balance: 70 })
    );
    assert_eq!(
        books.transfer("alice", "carol", 1, "c0-6"),
        Err(Refusal::NoSuchAccount { account: "carol".into() })
    );
    assert!(books.deposit("carol", 1, "c0-7").is_err());
    assert_eq!(books, worked());
}

#[test]
fn opening_twice_keeps_the_money_and_is_logged() {
    let mut books = worked();
    books.open("alice", "c0-9");
    assert_eq!(books.balance("alice"), Ok(70));
    assert_eq!(books.executed(), 7);
}

#[test]
fn a_transfer_keeps_the_sum_even_to_the_same_account() {
    let mut books = worked();
    books.transfer("alice", "alice", 50, "c0-8").expect("alice has 70");
    assert_eq!(books.balance("alice"), Ok(70));
    assert_eq!(books.balances.values().sum::<i64>(), 100);
}

#[test]
fn pages_end_where_the_history_ends() {
    let books = worked();
    assert_eq!(books.page(4, 10).len(), 2);
    assert_eq!(books.page(1, 2)[0].number, 1);
    assert!(books.page(u64::MAX, usize::MAX).is_empty());
}

#[test]
fn replaying_a_history_gives_the_books() {
    assert_eq!(Books::replay(&worked().history), worked());
}

#[test]
fn the_octets_are_the_canonical_ones() {
    let text = String::from_utf8(encode(&worked())).expect("UTF-8");
    assert_eq!(
        text,
        "bank 1\ncounter 1\naccount alice 70\naccount bob 30\n\
         entry 0 open c0-0 alice - 0\nentry 1 open c0-1 bob - 0\n\
         entry 2 deposit c0-2 alice - 100\nentry 3 transfer c0-3 alice bob 30\n\
         entry 4 increment c0-4 - - 0\n\
         entry 5 note two%20words,%20100%20%25%0Aand%20a%20line - - 0\nend\n"
    );
    assert_eq!(decode(text.as_bytes()), Ok(worked()));
    assert_eq!(decode(&encode(&Books::default())), Ok(Books::default()));
}

#[test]
fn fields_that_look_like_syntax_survive() {
    let mut books = Books::default();
    for name in ["", "-", "--", "%2D", " ", "a b", "größe", "\n\n"] {
        books.open(name, name);
    }
    assert_eq!(decode(&encode(&books)), Ok(books));
}

#[test]
fn whatever_is_not_canonical_is_refused_with_its_line() {
    let good = String::from_utf8(encode(&worked())).expect("UTF-8");
    let line = |text: &str| decode(text.as_bytes()).expect_err("malformed").line;
    assert_eq!(line(""), 1);
    assert_eq!(line("bank 1\nend\n"), 2);
    assert_eq!(line(&good.replace("bank 1", "bank 2")), 1);
    assert_eq!(line(&good.replace("counter 1", "counter x")), 2);
    assert_eq!(line(&good.replace("alice 70", "alice 70 x")), 3);
    assert_eq!(line(&good.replace("entry 4", "entry 5")), 9);
    assert_eq!(line(&good.replace("account bob", "account alice")), 4);
    assert_eq!(line(&good.replace("%20", "%2g")), 10);
    assert_eq!(line(&good.replace("counter 1", "counter 01")), 1);
    assert_eq!(line(&good[..good.len() - 1]), 1);
    // Cut anywhere, it is refused, and never panics.
    for end in 0..good.len() {
        assert!(decode(&good.as_bytes()[..end]).is_err(), "accepted {end} octets of it");
    }
}
