//! What goes wrong with disks.
//!
//! Two kinds. A disk that says that it failed, or is full, may be any: nothing that it reported to
//! be there is lost. A disk that has something else than what was written is damaged, and at no
//! time are more than a minority so. What no log can tell from a torn tail, which is a lie about
//! the last commit, is left out.

use super::LogDisk;
use crate::rng::Rng;
use quorba_journal::disk::{Disk as _, Faults, SimulatedDisk};

const SECTOR: usize = 512;

/// What a disk does while it is used. Chances are in a thousand operations.
pub(super) fn honest(rng: &mut Rng) -> Faults {
    let chance = |rng: &mut Rng| rng.pick(&[0, 2, 10, 50]) as u32;
    Faults {
        short_write: chance(rng),
        write_error: chance(rng),
        sync_error: chance(rng),
        ..Faults::default()
    }
}

/// What a request says behind the name of its operation is no further away, in octets.
const BEHIND_NAME: usize = 32;

impl LogDisk {
    /// A bit of a request that is in the log flips; says which.
    pub(super) fn rot(disk: &SimulatedDisk, rng: &mut Rng) -> Option<String> {
        let mut names = disk.list().ok()?;
        names.retain(|name| name.ends_with(".seg") && !name.starts_with("doubtful-"));
        let name = names.get(rng.index(names.len().max(1)))?.clone();
        let mut content = disk.content(&name)?;
        let word = b"append";
        let is_there = |at: &usize| content[*at..].starts_with(word);
        let places: Vec<usize> = (0..content.len()).filter(is_there).collect();
        let place = places.get(rng.index(places.len().max(1)))? + word.len();
        let at = place + rng.index(BEHIND_NAME);
        *content.get_mut(at)? ^= 1 << rng.below(8);
        disk.damage(&name, Some(content));
        Some(format!("a bit of {name} at {at} flips, in a request"))
    }

    /// Damages what is at rest, in files whose names end so; says what it did.
    pub(super) fn spoil(disk: &SimulatedDisk, ending: &str, rng: &mut Rng) -> Option<String> {
        let mut names = disk.list().ok()?;
        names.retain(|name| !name.starts_with("doubtful-") && !name.ends_with(".next"));
        let last = names.iter().rfind(|name| name.ends_with(".seg")).cloned();
        names.retain(|name| name.ends_with(ending));
        if names.is_empty() {
            return None;
        }
        let name = names[rng.index(names.len())].clone();
        let mut content = disk.content(&name).filter(|content| !content.is_empty())?;
        // Of the end of the last segment nobody knows how far it was reported.
        let is_open = last.as_deref() == Some(name.as_str());
        let at = rng.index(content.len());
        let kind = if is_open { rng.below(2) } else { rng.below(5) };
        match kind {
            0 => {
                content[at] ^= 1 << rng.below(8);
                disk.damage(&name, Some(content));
                Some(format!("a bit of {name} at {at} flips"))
            }
            1 => {
                disk.make_unreadable(&name, at);
                Some(format!("{name} cannot be read at {at}"))
            }
            2 => {
                disk.damage(&name, None);
                Some(format!("{name} is gone"))
            }
            3 => {
                content.truncate(at);
                disk.damage(&name, Some(content));
                Some(format!("{name} is cut at {at}"))
            }
            _ => {
                let from = &names[rng.index(names.len())];
                let stray = disk.content(from).filter(|stray| stray.len() >= SECTOR)?;
                let sectors = content.len() / SECTOR;
                if sectors == 0 {
                    return None;
                }
                let source = rng.index(stray.len() / SECTOR) * SECTOR;
                let to = rng.index(sectors) * SECTOR;
                content[to..to + SECTOR].copy_from_slice(&stray[source..source + SECTOR]);
                disk.damage(&name, Some(content));
                Some(format!("a sector of {from} at {source} is written to {name} at {to}"))
            }
        }
    }
}
