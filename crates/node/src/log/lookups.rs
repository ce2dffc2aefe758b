//! The log read while it is written: a durable group has nobody left, and goes on from disks.
//!
//! What it is not: what follows from it. Invariant: what is read has everything that the engine
//! handed over before it asked; a log in doubt is not read.

use super::LogNews;
use crate::filesystem::is_out_of_descriptors;
use crate::priority::lower_priority;
use quorba_engine::replica::{GroupId, Recovered};
use quorba_journal::disk::FileDisk;
use quorba_journal::{Checkpoints, Owner, Seq};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TRIES: usize = 3;
/// How long a look waits that could not open a file.
const AGAIN: Duration = Duration::from_secs(1);
/// Files that a look has open at once, with room to spare.
const DESCRIPTORS: usize = 8;

/// A group, and how often it has asked.
pub(super) type Look = (GroupId, u64);

type Tell = Arc<dyn Fn(LogNews) + Send + Sync>;

/// See the module's text.
pub(super) struct Lookups {
    owner: Owner,
    checkpoints: Checkpoints,
    /// The last record that the engine has handed over, and the last one on disk.
    appended: Seq,
    durable: Seq,
    in_doubt: bool,
    /// Groups whose newest state was damaged at the start, until there is a newer one.
    lacking: BTreeSet<u64>,
    /// Who asks, and the record that must be on disk before.
    wanted: Vec<(Look, Seq)>,
    /// Threads that read the log now.
    under_way: usize,
}

impl Lookups {
    pub(super) fn new(
        owner: Owner,
        checkpoints: Checkpoints,
        last: Seq,
        in_doubt: bool,
        lacking: BTreeSet<u64>,
    ) -> Self {
        Self {
            owner,
            checkpoints,
            appended: last,
            durable: last,
            in_doubt,
            lacking,
            wanted: Vec::new(),
            under_way: 0,
        }
    }

    pub(super) fn appended(&mut self) {
        self.appended = self.appended.next();
    }

    pub(super) fn trusted(&mut self) {
        self.in_doubt = false;
    }

    /// A new state of a group is on disk.
    pub(super) fn adopted(&mut self, group: GroupId) {
        self.lacking.remove(&group.0);
    }

    /// Somebody reads the log, or is about to.
    pub(super) fn are_under_way(&self) -> bool {
        self.under_way > 0 || !self.wanted.is_empty()
    }

    pub(super) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    pub(super) fn want(&mut self, look: Look, path: &Path, tell: &Tell) {
        self.wanted.push((look, self.appended));
        self.begin(path, tell);
    }

    pub(super) fn durable(&mut self, seq: Seq, path: &Path, tell: &Tell) {
        self.durable = seq;
        self.begin(path, tell);
    }

    /// Begins what can be begun, each on a thread of its own: a log may be long.
    fn begin(&mut self, path: &Path, tell: &Tell) {
        let (durable, in_doubt) = (self.durable, self.in_doubt);
        for (of, _) in self.wanted.extract_if(.., |(_, seq)| in_doubt || *seq <= durable) {
            self.under_way += 1;
            let (owner, store, path) = (self.owner, self.checkpoints.clone(), path.to_path_buf());
            let (told, failed) = (Arc::clone(tell), Arc::clone(tell));
            let lacking = self.lacking.clone();
            let look = move || {
                if in_doubt {
                    return Err("it is in doubt, and not rebuilt yet".into());
                }
                let mut tries = 0;
                loop {
                    let found = look_up(&store, &path, owner, durable, &lacking);
                    // A state that has just been replaced by a newer one is read again.
                    tries += 1;
                    if found.is_err() && lacks_descriptors(&path) {
                        std::thread::sleep(AGAIN);
                    } else if found.is_ok() || tries >= TRIES {
                        return found;
                    }
                }
            };
            let thread = std::thread::Builder::new().name("look-up".into());
            let run = move || {
                lower_priority();
                told(LogNews::LookedUp(of, Box::new(look())));
            };
            if let Err(error) = thread.spawn(run) {
                failed(LogNews::LookedUp(of, Box::new(Err(error.to_string()))));
            }
        }
    }
}

/// What could not be read may be as good as ever: the process had no descriptor for it.
fn lacks_descriptors(path: &Path) -> bool {
    let some: Vec<_> = (0..DESCRIPTORS).map(|_| File::open(path)).collect();
    some.iter().any(|file| file.as_ref().is_err_and(is_out_of_descriptors))
}

fn look_up(
    store: &Checkpoints,
    path: &Path,
    owner: Owner,
    last: Seq,
    lacking: &BTreeSet<u64>,
) -> Result<Recovered, String> {
    let disk = FileDisk::open_for_reading(path).map_err(|error| error.to_string())?;
    let found = quorba_journal::look_up(Arc::new(disk), owner, last, lacking.clone());
    let read = found.and_then(|memory| memory.read(store));
    read.map_err(|damage| damage.to_string())
}
