//! The thread that commits: order, bounds, a full disk, a failed one.

mod harness;

use harness::{chance, owner, position, record};
use quorba_journal::disk::{Faults, SimulatedDisk};
use quorba_journal::{
    Checkpoints, Committer, Found, Journal, Notice, Opened, Options, Refused, Sealed, Seq,
};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

fn start_with_store(
    disk: &SimulatedDisk,
    boot: u64,
    waiting_bytes_max: usize,
) -> (Checkpoints, Committer, Receiver<Notice>) {
    let options = Options::new(owner(), boot, boot);
    let Opened { journal, .. } = Journal::open(Arc::new(disk.clone()), options).unwrap();
    let store = journal.checkpoints();
    let (sender, notices) = mpsc::channel();
    let notify = move |notice| drop(sender.send(notice));
    (store, Committer::start(journal, waiting_bytes_max, notify).unwrap(), notices)
}

fn start(
    disk: &SimulatedDisk,
    boot: u64,
    waiting_bytes_max: usize,
) -> (Committer, Receiver<Notice>) {
    let (_, committer, notices) = start_with_store(disk, boot, waiting_bytes_max);
    (committer, notices)
}

fn wait_for_durable(notices: &Receiver<Notice>, seq: Seq) {
    let mut last = Seq::NONE;
    while last < seq {
        match notices.recv().unwrap() {
            Notice::Durable(durable) => {
                assert!(durable > last, "it only grows");
                last = durable;
            }
            Notice::Full(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn batch(first: u64, count: u64, bytes: usize) -> Vec<quorba_journal::Record> {
    (first..first + count).map(|number| record(1, number, bytes)).collect()
}

#[test]
fn batches_become_durable_in_order_and_are_there_after_a_crash() {
    let disk = SimulatedDisk::new(chance(1));
    let (committer, notices) = start(&disk, 1, 1 << 20);
    for index in 0..50 {
        committer.append(batch(1 + index * 4, 4, 100)).unwrap();
    }
    wait_for_durable(&notices, Seq(200));
    let disk = disk.crash();
    assert!(committer.append(batch(201, 1, 10)).is_ok(), "the power went off behind its back");
    assert!(committer.stop().is_none());
    let opened = Journal::open(Arc::new(disk), Options::new(owner(), 2, 2)).unwrap();
    let Found::Clean(memory) = opened.recovered else { panic!("clean") };
    let records: Vec<_> = memory.records().map(|entry| entry.unwrap().record).collect();
    assert_eq!(records, batch(1, 200, 100));
}

#[test]
fn what_is_over_the_bound_is_given_back_and_fits_later() {
    let disk = SimulatedDisk::new(chance(1));
    let (committer, notices) = start(&disk, 1, 4_000);
    disk.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
    committer.append(batch(1, 1, 3_000)).unwrap();
    assert!(matches!(notices.recv().unwrap(), Notice::Full(_)));
    let Err(Refused::Full(back)) = committer.append(batch(2, 1, 3_000)) else { panic!("full") };
    let Err(Refused::TooLong(_)) = committer.append(batch(2, 1, (17 << 20) + 1)) else {
        panic!("too long")
    };
    disk.set_faults(Faults::default());
    wait_for_durable(&notices, Seq(1));
    // The thread counts a batch as done just after it has said so.
    let mut back = Some(back);
    while let Some(batch) = back.take() {
        if let Err(Refused::Full(again)) = committer.append(batch) {
            back = Some(again);
            std::thread::yield_now();
        }
    }
    wait_for_durable(&notices, Seq(2));
    assert_eq!(committer.stop().unwrap().durable(), Seq(2));
}

#[test]
fn a_disk_that_fails_for_good_ends_the_thread_with_the_reason() {
    let disk = SimulatedDisk::new(chance(1));
    let (committer, notices) = start(&disk, 1, 4_000);
    disk.set_faults(Faults { sync_error: 1000, ..Faults::default() });
    committer.append(batch(1, 1, 100)).unwrap();
    let Notice::Failed(error) = notices.recv().unwrap() else { panic!("it failed") };
    assert!(error.to_string().contains("sync"), "{error}");
    assert!(notices.recv().is_err(), "nothing more is said");
    assert!(matches!(committer.append(batch(2, 1, 1)), Err(Refused::Ended(_))));
    assert!(committer.stop().is_none());
}

#[test]
fn checkpoints_and_truncation_go_through_the_thread() {
    let disk = SimulatedDisk::new(chance(1));
    let (store, committer, notices) = start_with_store(&disk, 1, 1 << 20);
    committer.append(batch(1, 10, 10)).unwrap();
    let mut writer = store.begin(0, Seq(10), position(10)).unwrap();
    writer.write(b"state").unwrap();
    let sealed: Sealed = writer.seal().unwrap();
    // Handed over before its record is durable: it waits for it.
    assert!(committer.adopt(sealed.clone()));
    assert!(committer.truncate_before(Seq(5)) && committer.trust() && committer.forget(7));
    wait_for_durable(&notices, Seq(10));
    let Notice::Adopted(adopted) = notices.recv().unwrap() else { panic!("adopted") };
    assert_eq!(adopted, sealed);
    assert!(matches!(notices.recv().unwrap(), Notice::Truncated(Seq(1))));
    committer.stop().unwrap().close().unwrap();
    let opened = Journal::open(Arc::new(disk), Options::new(owner(), 2, 2)).unwrap();
    let Found::Clean(memory) = opened.recovered else { panic!("clean") };
    assert_eq!(memory.checkpoints, [sealed.checkpoint().clone()]);
}

fn next(notices: &Receiver<Notice>) -> Notice {
    notices.recv_timeout(std::time::Duration::from_secs(60)).expect("the thread says something")
}

/// What is to be done with checkpoints and segments needs room on the disk, too.
#[test]
fn whatever_a_full_disk_holds_up_is_done_when_there_is_space() {
    let disk = SimulatedDisk::new(chance(1));
    let (store, committer, notices) = start_with_store(&disk, 1, 1 << 20);
    committer.append(batch(1, 10, 10)).unwrap();
    wait_for_durable(&notices, Seq(10));
    let mut writer = store.begin(0, Seq(10), position(10)).unwrap();
    writer.write(b"state").unwrap();
    let sealed: Sealed = writer.seal().unwrap();
    // So that the metadata are made anew, which needs space.
    disk.set_faults(Faults { sync_error: 1000, ..Faults::default() });
    assert!(committer.trust());
    assert!(matches!(next(&notices), Notice::Shortage(_)));
    disk.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
    assert!(committer.adopt(sealed.clone()));
    let Notice::Full(error) = next(&notices) else { panic!("it is full") };
    assert!(quorba_journal::disk::is_shortage(&error));
    assert!(committer.trust() && committer.truncate_before(Seq(5)));
    disk.set_faults(Faults::default());
    let Notice::Adopted(adopted) = next(&notices) else { panic!("adopted") };
    assert_eq!(adopted, sealed);
    assert!(matches!(next(&notices), Notice::Trusted));
    assert!(matches!(next(&notices), Notice::Truncated(_)));
    committer.stop().unwrap().close().unwrap();
}

/// Whoever was refused hears of nothing more if its batch is refused again.
#[test]
fn what_is_told_to_be_durable_has_left_its_room_to_the_next_batch() {
    let disk = SimulatedDisk::new(chance(11));
    let options = Options::new(owner(), 1, 1);
    let Opened { journal, .. } = Journal::open(Arc::new(disk), options).unwrap();
    let (sender, notices) = mpsc::channel();
    let (go_on, told) = mpsc::channel();
    // The thread stands still where it tells.
    let notify = move |notice| {
        drop(sender.send(notice));
        let _ = told.recv();
    };
    let committer = Committer::start(journal, 1_000, notify).unwrap();
    committer.append(batch(1, 1, 990)).unwrap();
    for number in 2..5 {
        assert!(matches!(notices.recv(), Ok(Notice::Durable(seq)) if seq == Seq(number - 1)));
        assert!(committer.append(batch(number, 1, 990)).is_ok(), "there is room again");
        go_on.send(()).unwrap();
    }
    drop(go_on);
    committer.stop().expect("nothing failed");
}

/// A node that ends waits for no room on its disk.
#[test]
fn a_thread_that_waits_for_room_ends_when_it_is_told_to() {
    let disk = SimulatedDisk::new(chance(12));
    let (committer, notices) = start(&disk, 1, 1 << 20);
    disk.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
    committer.append(batch(1, 10, 1_000)).unwrap();
    assert!(matches!(next(&notices), Notice::Full(_)));
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(committer.stop().is_none()));
    let is_lost = told.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(is_lost, Ok(true), "it ends, and what waited is not durable");
}

#[test]
fn a_full_disk_is_named_once_however_often_it_is_tried() {
    let disk = SimulatedDisk::new(chance(13));
    let (committer, notices) = start(&disk, 1, 1 << 20);
    disk.set_faults(Faults { capacity_bytes: Some(0), ..Faults::default() });
    committer.append(batch(1, 1, 100)).unwrap();
    assert!(matches!(next(&notices), Notice::Full(_)));
    // Each time it begins a segment at least.
    let tried = disk.operations();
    while disk.operations() < tried + 10 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    disk.set_faults(Faults::default());
    assert!(matches!(next(&notices), Notice::Durable(Seq(1))));
    committer.stop().expect("it was only full");
}

/// A disk whose first writes with the fault fail, so many.
fn failing(writes: usize) -> SimulatedDisk {
    let mut left = writes;
    SimulatedDisk::new(move || {
        let fails = left > 0;
        left = left.saturating_sub(1);
        if fails { 0 } else { 999 }
    })
}

/// Each time the thread tries, the log does so in two segments.
#[test]
fn a_disk_that_fails_is_tried_three_times() {
    for (writes, lasts) in [(4, true), (6, false)] {
        let disk = failing(writes);
        let (committer, notices) = start(&disk, 1, 4_000);
        disk.set_faults(Faults { write_error: 500, ..Faults::default() });
        committer.append(batch(1, 1, 100)).unwrap();
        match next(&notices) {
            Notice::Durable(Seq(1)) => assert!(lasts, "{writes} writes failed"),
            Notice::Failed(error) => assert!(!lasts, "{writes} writes failed: {error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(committer.stop().is_some(), lasts);
    }
}
