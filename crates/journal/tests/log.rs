//! What a log promises, claim by claim.

mod harness;

use harness::{Model, Trust, chance, owner, position, record, state};
use quorba_base::{Instant, NodeId};
use quorba_journal::disk::{Disk, Faults, FileDisk, SimulatedDisk};
use quorba_journal::format::VERSION;
use quorba_journal::{
    AdoptError, Cause, CommitError, Found, Journal, OpenError, Opened, Options, Owner, Seq, Stored,
    inspect,
};
use std::collections::BTreeSet;
use std::sync::Arc;

const NOW: Instant = Instant::from_nanos(0);

fn model(segment_bytes: u64) -> Model {
    let mut model = Model::new(SimulatedDisk::new(chance(1)), segment_bytes);
    model.open(Trust::Whole).unwrap();
    model
}

fn segments(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.list().unwrap();
    names.into_iter().filter(|name| name.ends_with(".seg")).collect()
}

fn lines(disk: &SimulatedDisk) -> String {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut text = String::new();
    inspect(&disk, |_| Some(String::new()), |line| text += &(line + "\n")).unwrap();
    text
}

#[test]
fn a_full_segment_is_left_for_a_new_one_and_all_are_read_in_order() {
    let mut model = model(1_000);
    for _ in 0..40 {
        model.append(100);
    }
    model.commit().unwrap();
    assert!(segments(&model.disk).len() > 5);
    model.crash();
    model.open(Trust::Whole).unwrap();
    assert_eq!(model.durable, 40);
}

#[test]
fn a_record_over_the_limit_is_refused_and_nothing_is_appended() {
    let mut model = model(1_000);
    let long = record(1, 1, (17 << 20) + 1);
    assert_eq!(model.journal().append(long).unwrap_err().0, (17 << 20) + 1);
    assert_eq!(model.journal().last(), Seq::NONE);
    model.append(17 << 20);
    model.commit().unwrap();
    model.crash();
    model.open(Trust::Whole).unwrap();
    assert_eq!(model.durable, 1);
}

#[test]
fn after_a_failed_sync_the_records_go_to_a_new_segment() {
    let mut model = model(1 << 20);
    model.append(10);
    model.commit().unwrap();
    model.append(600);
    model.disk.set_faults(Faults { sync_error: 1000, ..Faults::default() });
    assert!(matches!(model.commit(), Err(CommitError::Failed(_))));
    assert_eq!(model.durable, 1, "the watermark stands still");
    model.disk.set_faults(Faults::default());
    // The disk syncs again, and knows nothing of what it has lost meanwhile.
    model.append(10);
    model.commit().unwrap();
    assert_eq!((model.durable, segments(&model.disk).len()), (3, 2));
    assert!(model.journal().failures().segments_left >= 1);
    model.crash();
    model.open(Trust::Whole).unwrap();
    assert_eq!(model.durable, 3);
}

#[test]
fn on_a_full_disk_nothing_is_lost_and_it_goes_on_when_there_is_space() {
    let mut model = model(1 << 20);
    model.append(10);
    model.commit().unwrap();
    let capacity_bytes = Some(model.disk.used_bytes() + 700);
    model.disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
    model.append(5_000);
    let error = model.commit().unwrap_err();
    assert!(matches!(error, CommitError::Full(_)) && error.to_string().contains("full"));
    model.append(20);
    assert!(matches!(model.commit(), Err(CommitError::Full(_))));
    assert_eq!((model.durable, model.journal().failures().full), (1, 2));
    model.disk.set_faults(Faults::default());
    model.commit().unwrap();
    assert_eq!((model.durable, segments(&model.disk).len()), (3, 1));
    model.crash();
    model.open(Trust::Whole).unwrap();
    assert_eq!(model.durable, 3);
}

#[test]
fn segments_go_when_every_group_has_a_newer_checkpoint() {
    let mut model = model(1_000);
    for _ in 0..5 {
        for _ in 0..10 {
            model.append(100);
        }
        assert!(model.checkpoint(0, 2_500_000) && model.checkpoint(1, 10));
    }
    let first = model.journal().truncate_before(Seq(u64::MAX)).unwrap();
    // Back to the older of the two checkpoints, to which one may have to fall back.
    assert!(first.0 <= 40 && first.0 > 30, "{first}");
    let kept = model.disk.list().unwrap().iter().filter(|name| name.ends_with(".ckpt")).count();
    assert_eq!(kept, 4);
    model.crash();
    model.open(Trust::Whole).unwrap();
    assert_eq!(model.durable, 50);
    model.journal().forget(0).unwrap();
    assert!(lines(&model.disk).contains("group 1 after record 50"));
    assert!(!lines(&model.disk).contains("group 0 after"));
}

#[test]
fn the_record_of_the_older_checkpoint_stays_though_its_segment_ends_with_it() {
    let mut model = model(100);
    for _ in 0..3 {
        for _ in 0..2 {
            model.append(100);
            model.commit().unwrap();
        }
        assert!(model.checkpoint(0, 10));
    }
    let first = model.journal().truncate_before(Seq(u64::MAX)).unwrap();
    assert_eq!(first, Seq(4), "one record per segment; the older checkpoint is of record 4");
    model.crash();
    model.open(Trust::Whole).unwrap();
    assert_eq!(model.durable, 6);
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_older_one_and_the_log() {
    let mut model = model(1_000);
    for _ in 0..2 {
        for _ in 0..10 {
            model.append(100);
        }
        assert!(model.checkpoint(3, 5_000));
    }
    model.journal().truncate_before(Seq(20)).unwrap();
    let newest = "checkpoint-00000000000000000003-00000000000000000020.ckpt";
    let mut content = model.disk.content(newest).unwrap();
    content[3_000] ^= 4;
    model.disk.damage(newest, Some(content));
    let disk = model.disk.crash();
    let Opened { journal, recovered } =
        Journal::open(Arc::new(disk.clone()), Options::new(owner(), 9, 9)).unwrap();
    let Found::Clean(memory) = recovered else { panic!("the log reaches back") };
    assert_eq!((memory.checkpoints[0].seq, memory.spoilt[0].file.as_str()), (Seq(10), newest));
    assert_eq!(memory.lacking, BTreeSet::from([3]));
    assert_eq!(memory.records().map(|entry| entry.unwrap().seq).last(), Some(Seq(20)));
    drop(journal);

    // The older one is damaged, too, and the log does not begin with its first record.
    let older = "checkpoint-00000000000000000003-00000000000000000010.ckpt";
    let content = disk.content(older).unwrap();
    disk.damage(older, Some(content[..content.len() - 1].to_vec()));
    let disk = disk.crash();
    let Opened { recovered, .. } =
        Journal::open(Arc::new(disk), Options::new(owner(), 10, 10)).unwrap();
    let Found::Doubtful { damage } = recovered else { panic!("nothing to fall back to") };
    assert_eq!(damage.file, older);
    assert!(matches!(damage.cause, Cause::Checkpoint(_)), "{damage}");
}

#[test]
fn a_group_lacks_a_damaged_checkpoint_until_it_has_a_newer_one() {
    let mut model = model(1_000);
    for _ in 0..2 {
        model.append(100);
        assert!(model.checkpoint(3, 50));
    }
    assert!(model.checkpoint(4, 50));
    model.disk.damage("checkpoint-00000000000000000003-00000000000000000002.ckpt", None);
    let lacking = |model: &mut Model| {
        model.crash();
        model.open(Trust::Whole).unwrap();
        model.journal().lacking().clone()
    };
    // The file is gone for good at the first start, and the doubt is not.
    assert_eq!(lacking(&mut model), BTreeSet::from([3]));
    assert_eq!(lacking(&mut model), BTreeSet::from([3]));
    model.append(100);
    assert!(model.checkpoint(3, 50));
    assert!(model.journal().lacking().is_empty());
    assert!(lacking(&mut model).is_empty());
}

#[test]
fn a_checkpoint_is_taken_in_only_when_its_record_is_durable() {
    let mut model = model(1_000);
    let seq = model.append(10);
    let mut writer = model.journal().checkpoints().begin(0, seq, position(1)).unwrap();
    writer.write(&state(0, seq, 100)).unwrap();
    let sealed = writer.seal().unwrap();
    assert!(matches!(model.journal().adopt(&sealed), Err(AdoptError::NotDurable(Seq(1)))));
    model.commit().unwrap();
    model.journal().adopt(&sealed).unwrap();
    assert_eq!(sealed.checkpoint().bytes, 100);
}

#[test]
fn doubt_stays_until_the_node_says_that_it_is_rebuilt() {
    let mut model = model(1 << 20);
    for _ in 0..3 {
        model.append(50);
        model.commit().unwrap();
    }
    let mut content = model.disk.content("log-0000000001.seg").unwrap();
    content[100] ^= 1;
    model.disk.damage("log-0000000001.seg", Some(content));
    model.crash();
    model.open(Trust::WholeOrDoubt).unwrap();
    assert_eq!(model.doubts, 1);
    assert!(lines(&model.disk).contains("DOUBTFUL"));
    // It rebuilds, and dies over it: what it has so far is not its memory.
    model.append(10);
    model.commit().unwrap();
    model.crash();
    model.open(Trust::WholeOrDoubt).unwrap();
    assert_eq!(model.doubts, 2);
    let aside = |disk: &SimulatedDisk| {
        disk.list().unwrap().iter().filter(|name| name.starts_with("doubtful-")).count()
    };
    assert_eq!(aside(&model.disk), 1, "what was damaged is kept for a look");
    model.append(10);
    assert!(model.checkpoint(0, 100));
    model.journal().trust().unwrap();
    assert_eq!(aside(&model.disk), 0);
    model.crash();
    model.open(Trust::Whole).unwrap();
    assert_eq!(model.doubts, 2);
}

#[test]
fn lost_metadata_are_doubt_and_a_log_of_somebody_else_is_not_touched() {
    let mut model = model(1 << 20);
    model.append(50);
    model.commit().unwrap();
    let other = Owner { node: NodeId::new(9).unwrap(), ..owner() };
    let open = |owner, boot, disk: &SimulatedDisk| {
        Journal::open(Arc::new(disk.clone()), Options::new(owner, boot, boot))
    };
    assert!(matches!(open(other, 5, &model.disk), Err(OpenError::Foreign { .. })));
    assert!(matches!(open(owner(), 1, &model.disk), Err(OpenError::OldIncarnation { .. })));
    model.disk.damage("meta.redb", None);
    let before = model.disk.list().unwrap();
    let error = open(other, 5, &model.disk).unwrap_err();
    assert!(error.to_string().contains("belongs to node #2"), "{error}");
    assert_eq!(model.disk.list().unwrap(), before);
    let Opened { recovered, .. } = open(owner(), 6, &model.disk).unwrap();
    let Found::Doubtful { damage } = recovered else { panic!("no metadata, no trust") };
    assert!(damage.to_string().contains("meta.redb: metadata: missing"), "{damage}");
}

#[test]
fn a_log_of_another_version_is_refused_and_not_touched() {
    let mut model = model(1 << 20);
    model.append(50);
    model.commit().unwrap();
    let mut content = model.disk.content("log-0000000001.seg").unwrap();
    let other = VERSION + 1;
    content[8..10].copy_from_slice(&other.to_le_bytes());
    let crc = crc32fast::hash(&content[..56]);
    content[56..60].copy_from_slice(&crc.to_le_bytes());
    model.disk.damage("log-0000000001.seg", Some(content));
    let before = model.disk.list().unwrap();
    let disk = Arc::new(model.disk.clone());
    let error = Journal::open(disk, Options::new(owner(), 5, 5)).unwrap_err();
    assert!(error.to_string().contains(&format!("format version {other}")), "{error}");
    assert_eq!(model.disk.list().unwrap(), before);
}

#[test]
fn what_cannot_be_read_is_damage_with_its_place() {
    let mut model = model(1 << 20);
    for _ in 0..3 {
        model.append(50);
    }
    model.commit().unwrap();
    model.disk.make_unreadable("log-0000000001.seg", 150);
    let disk: Arc<dyn Disk> = Arc::new(model.disk.clone());
    let Opened { recovered, .. } = Journal::open(disk, Options::new(owner(), 5, 5)).unwrap();
    let Found::Doubtful { damage } = recovered else { panic!("it cannot be read") };
    assert_eq!(damage.file, "log-0000000001.seg");
    assert!(matches!(damage.cause, Cause::Unreadable(_)), "{damage}");
}

#[test]
fn a_log_in_words_names_each_record() {
    let mut model = model(1 << 20);
    for bytes in [3, 9, 27] {
        model.append(bytes);
    }
    model.commit().unwrap();
    let text = lines(&model.disk);
    for expected in [
        "meta.redb: node #2 of domain 0123456789abcdef, boot 1, durable up to record",
        "log-0000000001.seg: records from 1",
        "  1 at 7#1+1 message 1 of #1, boot 1, 3 octets (offset 64, durable 0)",
        "  3 component 1#0, 27 octets",
    ] {
        assert!(text.contains(expected), "{expected:?} in\n{text}");
    }
}

#[test]
fn the_same_holds_on_a_directory_of_the_operating_system() {
    let path = std::env::temp_dir().join(format!("quorba-journal-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    for boot in 1..4 {
        let disk = Arc::new(FileDisk::open(&path).unwrap());
        let busy = FileDisk::open(&path).unwrap_err();
        assert_eq!(busy.kind(), std::io::ErrorKind::ResourceBusy);
        let mut options = Options::new(owner(), boot, boot);
        options.segment_bytes = 1_000;
        let Opened { mut journal, recovered } = Journal::open(disk, options).unwrap();
        match recovered {
            Found::Fresh => assert_eq!(boot, 1),
            Found::Clean(memory) => {
                let records: Vec<_> = memory.records().map(|entry| entry.unwrap()).collect();
                assert_eq!(records.len() as u64, memory.last.0 + 1 - memory.first.0);
                assert_eq!(memory.last.0, (boot - 1) * 20);
                for entry in records {
                    let life = (entry.seq.0 - 1) / 20 + 1;
                    assert_eq!(entry.record, record(life, entry.seq.0, 100));
                }
                let [checkpoint] = &memory.checkpoints[..] else { panic!("one") };
                let blocks = journal.checkpoints().read(checkpoint).unwrap();
                let content: Vec<u8> = blocks.flat_map(|block| block.unwrap()).collect();
                assert!(content == state(0, checkpoint.seq, 1_500_000));
            }
            Found::Doubtful { damage } => panic!("{damage}"),
        }
        for _ in 0..20 {
            let number = journal.last().0 + 1;
            journal.append(record(boot, number, 100)).unwrap();
        }
        let durable = journal.commit(NOW).unwrap();
        let mut writer = journal.checkpoints().begin(0, durable, position(1)).unwrap();
        writer.write(&state(0, durable, 1_500_000)).unwrap();
        journal.adopt(&writer.seal().unwrap()).unwrap();
        journal.truncate_before(durable).unwrap();
        let reader: Arc<dyn Disk> = Arc::new(FileDisk::open_for_reading(&path).unwrap());
        inspect(&reader, |_| Some(String::new()), |line| assert!(!line.contains("DAMAGED")))
            .unwrap();
        assert!(reader.delete("meta.redb").is_err(), "it only reads");
        journal.close().unwrap();
    }
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_checkpoint_file_that_the_log_did_not_take_in_is_not_missed() {
    // Found by seed 964 of failed syncs: its name was there, the log was truncated without it.
    let mut model = model(600);
    let store = model.journal().checkpoints();
    let sealed = store.begin(4, Seq::NONE, position(0)).unwrap().seal().unwrap();
    model.disk.set_faults(Faults { sync_error: 1000, ..Faults::default() });
    assert!(matches!(model.journal().adopt(&sealed), Err(AdoptError::Disk(_))));
    model.disk.set_faults(Faults::default());
    for _ in 0..20 {
        model.append(100);
    }
    assert!(model.checkpoint(0, 100));
    let first = model.journal().truncate_before(Seq(20)).unwrap();
    assert!(first > Seq(1));
    model.crash();
    model.open(Trust::Whole).unwrap();
    assert!(!lines(&model.disk).contains("group 4"));
}

#[test]
fn a_record_of_an_earlier_log_in_its_place_is_found() {
    // Two logs alike but for their seeds: numbers, segments and lengths are the same.
    let logs = [11, 12].map(|seed| {
        let disk = SimulatedDisk::new(chance(1));
        let options = Options::new(owner(), 1, seed);
        let Opened { mut journal, .. } = Journal::open(Arc::new(disk.clone()), options).unwrap();
        for number in 1..4 {
            journal.append(record(1, number, 50)).unwrap();
        }
        journal.commit(NOW).unwrap();
        disk
    });
    let segment = "log-0000000001.seg";
    let [mut ours, other] = [0, 1].map(|log: usize| logs[log].content(segment).unwrap());
    let second = 64 + record(1, 1, 50).bytes();
    let third = second + record(1, 2, 50).bytes();
    ours[second..third].copy_from_slice(&other[second..third]);
    logs[0].damage(segment, Some(ours));
    let disk = Arc::new(logs[0].crash());
    let Opened { recovered, .. } = Journal::open(disk, Options::new(owner(), 2, 2)).unwrap();
    let Found::Doubtful { damage } = recovered else { panic!("a record of another log") };
    assert_eq!((damage.seq, damage.offset), (Some(Seq(2)), Some(second as u64)));
    assert!(damage.to_string().contains("a record of an earlier log"), "{damage}");
}
