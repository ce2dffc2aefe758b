//! A file of the simulated disk: where its reads, writes and syncs go wrong.
//!
//! Invariant: faults are drawn in the order of the operations; one that cannot occur draws nothing.

use super::{SimulatedDisk, State};
use crate::disk::DiskFile;
use crate::disk::fault::Survival;
use crate::disk::image::Image;
use std::collections::BTreeMap;
use std::io;

#[derive(Debug)]
pub(super) struct SimulatedFile {
    disk: SimulatedDisk,
    image: u64,
}

impl SimulatedFile {
    pub(super) const fn new(disk: SimulatedDisk, image: u64) -> Self {
        Self { disk, image }
    }

    fn image<'s>(&self, state: &'s mut State) -> &'s mut Image {
        state.images.entry(self.image).or_default()
    }
}

impl DiskFile for SimulatedFile {
    fn bytes(&self) -> io::Result<u64> {
        let mut state = self.disk.running()?;
        Ok(self.image(&mut state).seen.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.running()?;
        let faults = state.faults;
        if state.chance.per_mille(faults.read_error) {
            return Err(io::Error::other("input/output error (read)"));
        }
        let image = self.image(&mut state);
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        if !image.is_readable(from, out.len()) {
            return Err(io::Error::other("input/output error (bad sector)"));
        }
        let end = from.checked_add(out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let data = image.seen.get(from..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(data);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.changing()?;
        let faults = state.faults;
        if state.chance.per_mille(faults.write_error) {
            return Err(io::Error::other("input/output error (write)"));
        }
        let before = self.image(&mut state).seen.len() as u64;
        let grows_by = (offset + data.len() as u64).saturating_sub(before);
        let room = state.room(grows_by);
        let cut = usize::try_from(grows_by - room).expect("part of a buffer");
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if cut > 0 {
            let kept = data.len().saturating_sub(cut);
            if kept > 0 {
                self.image(&mut state).write(from, &data[..kept]);
            }
            return Err(io::ErrorKind::StorageFull.into());
        }
        if state.chance.per_mille(faults.short_write) {
            let kept = state.chance.below(data.len() as u64) as usize;
            self.image(&mut state).write(from, &data[..kept]);
            return Err(io::Error::other("input/output error (short write)"));
        }
        self.image(&mut state).write(from, data);
        Ok(())
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.changing()?;
        let before = self.image(&mut state).seen.len() as u64;
        let grows_by = bytes.saturating_sub(before);
        if state.room(grows_by) < grows_by {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.image(&mut state).set_bytes(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.changing()?;
        let faults = state.faults;
        if state.chance.per_mille(faults.sync_lie) {
            return Ok(());
        }
        let failed = state.chance.per_mille(faults.sync_error);
        let mut fates = BTreeMap::new();
        for run in self.image(&mut state).runs() {
            let fate = if failed && state.chance.below(2) == 0 {
                Survival::Lost
            } else {
                state.sync_run(self.image, run)
            };
            fates.extend((run.0..run.0 + run.1).map(|sector| (sector, fate)));
        }
        self.image(&mut state).settle(!failed, |sector| fates[&sector]);
        if failed { Err(io::Error::other("input/output error (sync)")) } else { Ok(()) }
    }
}
