//! The simulated disk fails as real ones do.

mod harness;

use harness::chance;
use quorba_journal::disk::{Disk, Faults, SimulatedDisk, Survival};
use std::io::ErrorKind;

fn disk() -> SimulatedDisk {
    SimulatedDisk::new(chance(1))
}

fn always(fault: impl FnOnce(&mut Faults)) -> Faults {
    let mut faults = Faults::default();
    fault(&mut faults);
    faults
}

#[test]
fn only_what_was_synced_survives_for_sure() {
    let disk = disk();
    let file = disk.create("a").unwrap();
    file.write_at(0, &[1; 600]).unwrap();
    file.sync().unwrap();
    disk.sync_dir().unwrap();
    file.write_at(600, &[2; 900]).unwrap();
    disk.create("b").unwrap();
    assert_eq!(disk.unsynced("a"), [1, 2]);
    let lost = disk.fork(chance(2)).crash_keeping(|_, _| Survival::Lost);
    assert_eq!(lost.content("a").unwrap(), [1; 600]);
    let second = disk
        .fork(chance(2))
        .crash_keeping(|_, sector| if sector == 2 { Survival::Whole } else { Survival::Lost });
    let content = second.content("a").unwrap();
    assert_eq!((content.len(), content[600], content[1024]), (1500, 0, 2));
    assert!(file.sync().is_ok());
    let rebooted = disk.crash();
    assert_eq!(rebooted.content("a").unwrap()[600..], [2; 900]);
    assert!(file.sync().is_err() && disk.list().is_err(), "handles of before are dead");
}

#[test]
fn a_rename_is_kept_whole_or_not_at_all_and_in_order() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..40 {
        let disk = SimulatedDisk::new(chance(seed));
        for name in ["new", "old"] {
            let file = disk.create(name).unwrap();
            file.write_at(0, name.as_bytes()).unwrap();
            file.sync().unwrap();
        }
        disk.sync_dir().unwrap();
        disk.rename("new", "old").unwrap();
        let disk = disk.crash();
        let names = disk.list().unwrap();
        match &disk.content("old").unwrap()[..] {
            b"old" => {
                before += 1;
                assert_eq!(names, ["new", "old"]);
            }
            b"new" => {
                after += 1;
                assert_eq!(names, ["old"]);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(before > 0 && after > 0, "both occur");
}

#[test]
fn after_a_failed_sync_a_second_one_succeeds_and_has_written_nothing() {
    let lost = (0..20).any(|seed| {
        let disk = SimulatedDisk::new(chance(seed));
        let file = disk.create("a").unwrap();
        disk.sync_dir().unwrap();
        file.write_at(0, &[1; 512]).unwrap();
        disk.set_faults(always(|faults| faults.sync_error = 1000));
        assert!(file.sync().is_err());
        disk.set_faults(Faults::default());
        assert!(file.sync().is_ok());
        disk.crash().content("a").unwrap() != [1; 512]
    });
    assert!(lost);
}

#[test]
fn lost_and_misdirected_writes_are_seen_only_after_a_crash() {
    for misdirected in [0, 1000] {
        let disk = disk();
        let file = disk.create("a").unwrap();
        disk.sync_dir().unwrap();
        file.write_at(0, &[1; 2048]).unwrap();
        file.sync().unwrap();
        disk.set_faults(always(|faults| {
            faults.misdirected = misdirected;
            faults.lost = 1000 - misdirected;
        }));
        file.write_at(512, &[2; 512]).unwrap();
        file.sync().unwrap();
        assert_eq!(disk.content("a").unwrap()[512..1024], [2; 512]);
        let content = disk.crash().content("a").unwrap();
        assert_eq!(content.len(), 2048);
        assert!(misdirected > 0 || content == [1; 2048]);
    }
}

#[test]
fn a_full_disk_stores_what_fits_and_says_so() {
    let disk = disk();
    let file = disk.create("a").unwrap();
    disk.set_faults(always(|faults| faults.capacity_bytes = Some(1000)));
    file.write_at(0, &[1; 800]).unwrap();
    assert_eq!(file.write_at(800, &[2; 800]).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!((file.bytes().unwrap(), disk.used_bytes()), (1000, 1000));
    file.write_at(0, &[3; 1000]).unwrap();
    disk.delete("a").unwrap();
    assert_eq!(disk.used_bytes(), 0);
}

#[test]
fn power_fails_after_so_many_operations() {
    let disk = disk();
    disk.set_faults(always(|faults| faults.power_fails_after = Some(2)));
    let file = disk.create("a").unwrap();
    file.write_at(0, &[1]).unwrap();
    assert!(file.sync().is_err() && disk.sync_dir().is_err());
    assert_eq!(disk.operations(), 2);
    assert!(file.bytes().is_ok(), "reads are still answered");
}
