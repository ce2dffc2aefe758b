//! A disk in memory that fails in the ways of real ones, for tests and for the simulator.
//!
//! Invariants: nothing is random but what the caller's generator draws, and it is drawn in the
//! order of the operations, so that a run can be repeated to the octet; a crash keeps a prefix of
//! the changes of names since the last sync of the directory, as a journalling file system does;
//! handles from before a crash are dead.

mod file;

use super::fault::{Chance, Faults, Survival};
use super::image::Image;
use super::{Disk, DiskFile};
use crate::format::SECTOR_BYTES;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// See the module's text. A clone is the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
    boot: u64,
}

#[derive(Debug)]
struct State {
    images: BTreeMap<u64, Image>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    /// Changes of names since the directory's last sync.
    renames: Vec<NameChange>,
    next_image: u64,
    faults: Faults,
    chance: Chance,
    boot: u64,
    operations: u64,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(String, u64),
    Rename(String, String, u64),
    Remove(String),
}

fn apply(names: &mut BTreeMap<String, u64>, change: &NameChange) {
    match change {
        NameChange::Set(name, image) => {
            names.insert(name.clone(), *image);
        }
        NameChange::Rename(from, to, image) => {
            names.remove(from);
            names.insert(to.clone(), *image);
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
    }
}

impl SimulatedDisk {
    /// An empty disk without faults; `chance` draws what later faults need.
    #[must_use]
    pub fn new(chance: impl FnMut() -> u64 + Send + 'static) -> Self {
        let state = State {
            images: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            renames: Vec::new(),
            next_image: 0,
            faults: Faults::default(),
            chance: Chance(Box::new(chance)),
            boot: 0,
            operations: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), boot: 0 }
    }

    /// A disk of its own with the same content.
    #[must_use]
    pub fn fork(&self, chance: impl FnMut() -> u64 + Send + 'static) -> Self {
        let state = self.lock();
        let copy = State {
            images: state.images.clone(),
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            renames: state.renames.clone(),
            next_image: state.next_image,
            faults: state.faults,
            chance: Chance(Box::new(chance)),
            boot: state.boot,
            operations: state.operations,
        };
        Self { state: Arc::new(Mutex::new(copy)), boot: self.boot }
    }

    /// From now on, these faults.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.lock();
        state.faults = faults;
        state.operations = 0;
    }

    /// Operations that changed something since [`Self::set_faults`].
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// The power goes off and comes back: the chance decides what is left of what was not synced.
    /// Returns the disk of the next boot; this one is dead.
    #[must_use]
    pub fn crash(&self) -> Self {
        let mut state = self.lock();
        let faults = state.faults;
        let lost = if faults.lost_sector == 0 { 500 } else { faults.lost_sector };
        let kept = state.renames.len() as u64 + 1;
        let kept = state.chance.below(kept) as usize;
        let State { images, chance, .. } = &mut *state;
        for image in images.values_mut() {
            let whole_length = chance.below(2) == 0;
            image.settle(whole_length, |_| {
                if chance.per_mille(lost) {
                    Survival::Lost
                } else if chance.per_mille(faults.torn_sector) {
                    Survival::Prefix(chance.below(SECTOR_BYTES as u64) as usize)
                } else {
                    Survival::Whole
                }
            });
            if !image.durable.is_empty() && chance.per_mille(faults.bit_rot) {
                let at = chance.below(image.durable.len() as u64) as usize;
                image.durable[at] ^= 1 << chance.below(8);
            }
        }
        state.restart(kept);
        Self { state: Arc::clone(&self.state), boot: state.boot }
    }

    /// The same, but the caller decides of each sector of each file, in order. Changes of names
    /// are all kept.
    #[must_use]
    pub fn crash_keeping(&self, mut survival: impl FnMut(&str, usize) -> Survival) -> Self {
        let mut state = self.lock();
        let State { images, names, .. } = &mut *state;
        for (name, image) in names.iter() {
            if let Some(image) = images.get_mut(image) {
                image.settle(false, |sector| survival(name, sector));
            }
        }
        let kept = state.renames.len();
        state.restart(kept);
        Self { state: Arc::clone(&self.state), boot: state.boot }
    }

    /// Octets that all files hold together.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock().used_bytes()
    }

    /// The sectors of a file that a crash may lose.
    #[must_use]
    pub fn unsynced(&self, name: &str) -> Vec<usize> {
        let state = self.lock();
        state.names.get(name).map(|image| state.images[image].dirty()).unwrap_or_default()
    }

    /// What a read of the whole file would give; `None` if there is no such file.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.lock();
        state.names.get(name).map(|image| state.images[image].seen.clone())
    }

    /// Damages a file: this is its content from now on, and durable. `None` removes it.
    pub fn damage(&self, name: &str, content: Option<Vec<u8>>) {
        let mut state = self.lock();
        let Some(content) = content else {
            state.names.remove(name);
            state.durable_names.remove(name);
            return;
        };
        let image = state.new_image(Image::of(content));
        state.names.insert(name.to_string(), image);
        state.durable_names.insert(name.to_string(), image);
    }

    /// From now on, this octet of the file cannot be read.
    pub fn make_unreadable(&self, name: &str, offset: usize) {
        let mut state = self.lock();
        if let Some(image) = state.names.get(name).copied()
            && let Some(image) = state.images.get_mut(&image)
        {
            image.unreadable.insert(offset);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the disk is in use")
    }

    /// The state, if this handle is of the running boot.
    fn running(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.boot == self.boot { Ok(state) } else { Err(power_is_off()) }
    }

    /// The same, for an operation that changes something.
    fn changing(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.running()?;
        if state.faults.power_fails_after.is_some_and(|after| state.operations >= after) {
            return Err(power_is_off());
        }
        state.operations += 1;
        Ok(state)
    }

    fn file(&self, image: u64) -> Arc<dyn DiskFile> {
        Arc::new(file::SimulatedFile::new(self.clone(), image))
    }
}

impl State {
    fn new_image(&mut self, image: Image) -> u64 {
        self.next_image += 1;
        self.images.insert(self.next_image, image);
        self.next_image
    }

    fn change(&mut self, change: NameChange) {
        apply(&mut self.names, &change);
        self.renames.push(change);
    }

    /// After the power was off, with so many of the changes of names.
    fn restart(&mut self, kept: usize) {
        let changes = std::mem::take(&mut self.renames);
        for change in &changes[..kept] {
            apply(&mut self.durable_names, change);
        }
        self.names.clone_from(&self.durable_names);
        let State { images, names, .. } = self;
        images.retain(|image, _| names.values().any(|used| used == image));
        for image in images.values_mut() {
            image.restart();
        }
        self.boot += 1;
        self.operations = 0;
        self.faults.power_fails_after = None;
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|image| self.images[image].seen.len() as u64).sum()
    }

    /// How many of the octets of a write that grows the file are stored.
    fn room(&self, grows_by: u64) -> u64 {
        let free = self.faults.capacity_bytes.map(|all| all.saturating_sub(self.used_bytes()));
        free.map_or(grows_by, |free| free.min(grows_by))
    }

    /// Writes one run to the platter, or wherever the faults let it go.
    fn sync_run(&mut self, image: u64, run: (usize, usize)) -> Survival {
        let faults = self.faults;
        if self.chance.per_mille(faults.lost) {
            return Survival::Lost;
        }
        if !self.chance.per_mille(faults.misdirected) {
            return Survival::Whole;
        }
        let data = self.images[&image].run(run);
        let others = self.images.len() as u64;
        let other = self.chance.below(others) as usize;
        let (_, target) = self.images.iter_mut().nth(other).expect("below their number");
        let sectors = (target.durable.len() / SECTOR_BYTES + 1) as u64;
        let offset = self.chance.below(sectors) as usize * SECTOR_BYTES;
        target.stray(offset, &data);
        Survival::Lost
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the power is off")
}

impl Disk for SimulatedDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.running()?.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.changing()?;
        let image = state.new_image(Image::default());
        state.change(NameChange::Set(name.to_string(), image));
        Ok(self.file(image))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.running()?;
        let image = state.names.get(name).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(image))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.changing()?;
        let image = state.names.get(from).copied().ok_or(io::ErrorKind::NotFound)?;
        state.change(NameChange::Rename(from.to_string(), to.to_string(), image));
        Ok(())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let mut state = self.changing()?;
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(NameChange::Remove(name.to_string()));
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.changing()?;
        let faults = state.faults;
        if state.chance.per_mille(faults.sync_error) {
            return Err(io::Error::other("input/output error (sync of the directory)"));
        }
        if !state.chance.per_mille(faults.sync_lie) {
            for change in std::mem::take(&mut state.renames) {
                apply(&mut state.durable_names, &change);
            }
        }
        Ok(())
    }
}
