//! A log beside a model of what it must remember: everything that was appended, in order, and how
//! much of it was reported durable.
//!
//! Invariant: after each start the model is compared with what was recovered; what cannot be
//! explained by the faults panics.

#![allow(dead_code, reason = "each test file uses a part")]

use bytes::Bytes;
use quorba_base::{Duration, Instant, NodeId};
use quorba_journal::disk::SimulatedDisk;
use quorba_journal::{
    AdoptError, CommitError, Damage, Found, Journal, Memory, OpenError, Opened, Options, Owner,
    Position, Record, RingId, Seq,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// SplitMix64.
pub(crate) fn chance(seed: u64) -> impl FnMut() -> u64 + Send + 'static {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

pub(crate) fn owner() -> Owner {
    Owner { domain_digest: 0x0123_4567_89ab_cdef, node: NodeId::new(2).unwrap() }
}

pub(crate) fn position(prefix: u64) -> Position {
    let component = RingId { seq: 7, representative: NodeId::new(1).unwrap() };
    Position { component, prefix }
}

/// Record `number` of the history `life`: its content depends on both.
pub(crate) fn record(life: u64, number: u64, bytes: usize) -> Record {
    let mut octets = chance(life << 32 ^ number);
    let payload: Vec<u8> = (0..bytes).map(|_| octets().to_le_bytes()[0]).collect();
    if number % 17 == 3 {
        let component = RingId { seq: life, representative: NodeId::new(0).unwrap() };
        return Record::Component { component, payload: Bytes::from(payload) };
    }
    Record::Message {
        origin: NodeId::new((number % 5) as u8).unwrap(),
        incarnation: life,
        ticket: number,
        position: position(number),
        payload: Bytes::from(payload),
    }
}

/// What a checkpoint of a group after a record holds.
pub(crate) fn state(group: u64, seq: Seq, bytes: usize) -> Vec<u8> {
    let mut octets = chance((group << 48) ^ seq.0);
    (0..bytes).map(|_| octets().to_le_bytes()[0]).collect()
}

/// What a recovered log may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    /// The disk is honest: all that was reported durable is there, without doubt.
    Whole,
    /// The disk damages: all is there, or there is doubt.
    WholeOrDoubt,
    /// The disk lies: what is there is right; the end may be missing.
    Right,
}

/// See the module's text.
pub(crate) struct Model {
    pub(crate) disk: SimulatedDisk,
    pub(crate) journal: Option<Journal>,
    pub(crate) now: Instant,
    /// What passes from one commit to the next.
    pub(crate) pace: Duration,
    pub(crate) segment_bytes: u64,
    boot: u64,
    pub(crate) appended: BTreeMap<u64, Record>,
    pub(crate) durable: u64,
    /// The lengths of the checkpoints that were written for a group after a record.
    pub(crate) checkpoints: BTreeMap<(u64, u64), BTreeSet<usize>>,
    pub(crate) doubts: u64,
    pub(crate) unnoticed: u64,
}

impl Model {
    pub(crate) fn new(disk: SimulatedDisk, segment_bytes: u64) -> Self {
        Self {
            disk,
            journal: None,
            now: Instant::from_nanos(0),
            pace: Duration::from_millis(300),
            segment_bytes,
            boot: 0,
            appended: BTreeMap::new(),
            durable: 0,
            checkpoints: BTreeMap::new(),
            doubts: 0,
            unnoticed: 0,
        }
    }

    pub(crate) fn journal(&mut self) -> &mut Journal {
        self.journal.as_mut().expect("open")
    }

    pub(crate) fn options(&mut self) -> Options {
        self.boot += 1;
        let mut options = Options::new(owner(), self.boot, self.boot * 0x1234_5677);
        options.segment_bytes = self.segment_bytes;
        options
    }

    pub(crate) fn append(&mut self, bytes: usize) -> Seq {
        let number = self.journal().last().0 + 1;
        let record = record(self.boot, number, bytes);
        let seq = self.journal().append(record.clone()).unwrap();
        assert_eq!(seq.0, number, "numbers are consecutive");
        self.appended.insert(number, record);
        seq
    }

    pub(crate) fn commit(&mut self) -> Result<(), CommitError> {
        self.now = self.now + self.pace;
        let now = self.now;
        let result = self.journal().commit(now).map(drop);
        let durable = self.journal().durable().0;
        assert!(durable >= self.durable, "the watermark never goes back");
        self.durable = durable;
        result
    }

    /// Writes a checkpoint of the present end of the log; the disk may refuse.
    pub(crate) fn checkpoint(&mut self, group: u64, bytes: usize) -> bool {
        if self.commit().is_err() {
            return false;
        }
        let seq = self.journal().durable();
        let content = state(group, seq, bytes);
        let store = self.journal().checkpoints();
        let write = || {
            let mut writer = store.begin(group, seq, position(seq.0))?;
            for part in content.chunks(700_001) {
                writer.write(part)?;
            }
            writer.seal()
        };
        let Ok(sealed) = write() else { return false };
        // Even if the log does not say that it took it in, it may find it.
        self.checkpoints.entry((group, seq.0)).or_default().insert(bytes);
        match self.journal().adopt(&sealed) {
            Ok(()) => true,
            Err(AdoptError::Disk(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Opens the log and compares.
    pub(crate) fn open(&mut self, trust: Trust) -> Result<(), OpenError> {
        let options = self.options();
        let Opened { journal, recovered } = Journal::open(Arc::new(self.disk.clone()), options)?;
        let end = journal.durable();
        assert_eq!(end, journal.last());
        match recovered {
            Found::Fresh => self.compare_end(0, trust),
            Found::Clean(memory) => {
                assert_eq!(memory.last, end);
                let compared = self.compare(&memory, &journal);
                assert!(compared.is_ok() || trust == Trust::Right, "{compared:?}");
                self.compare_end(end.0, trust);
            }
            Found::Doubtful { damage } => {
                assert_ne!(trust, Trust::Whole, "doubt on an honest disk: {damage}");
                assert!(journal.is_doubtful() && !damage.to_string().is_empty());
                if trust != Trust::Right {
                    assert!(end.0 > self.durable, "numbers are not used twice");
                }
                self.doubts += 1;
                self.appended.clear();
                self.checkpoints.clear();
            }
        }
        self.appended.retain(|seq, _| *seq <= end.0);
        self.checkpoints.retain(|(_, seq), _| *seq <= end.0);
        self.durable = end.0;
        self.journal = Some(journal);
        Ok(())
    }

    fn compare_end(&mut self, last: u64, trust: Trust) {
        if last < self.durable {
            assert_eq!(trust, Trust::Right, "{last} of {} durable records", self.durable);
            self.unnoticed += 1;
        }
    }

    /// What was recovered, once more, record by record; the disk may fail meanwhile.
    fn compare(&mut self, memory: &Memory, journal: &Journal) -> Result<(), Damage> {
        let mut next = memory.first.0;
        for entry in memory.records() {
            let entry = entry?;
            assert_eq!(entry.seq.0, next);
            assert_eq!(Some(&entry.record), self.appended.get(&next), "record {next}");
            next += 1;
        }
        assert_eq!(next, memory.last.0 + 1);
        for checkpoint in &memory.checkpoints {
            let reader = journal.checkpoints().read(checkpoint)?;
            let content = reader.collect::<Result<Vec<_>, _>>()?.concat();
            let lengths = &self.checkpoints[&(checkpoint.group, checkpoint.seq.0)];
            assert!(lengths.contains(&content.len()), "checkpoint {checkpoint:?}");
            let expected = state(checkpoint.group, checkpoint.seq, content.len());
            assert!(content == expected, "checkpoint {checkpoint:?}");
            assert!(memory.first.0 <= checkpoint.seq.0 + 1, "the log reaches back");
        }
        Ok(())
    }

    /// The power goes off and comes back.
    pub(crate) fn crash(&mut self) {
        self.disk = self.disk.crash();
        self.journal = None;
    }
}
