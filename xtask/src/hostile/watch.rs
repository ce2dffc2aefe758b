//! What nodes cost: resident memory, descriptors and lines of their logs, as the system tells it.
//!
//! What it is not: what nodes say of themselves.
//!
//! Invariant: dropped, nobody watches any more.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(25);
const PAGE_BYTES: u64 = 4096;

/// What one look at a process finds; nothing if it has ended.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Cost {
    pub(super) rss_bytes: u64,
    pub(super) files: u64,
}

impl Cost {
    pub(super) fn of(pid: u32) -> Self {
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        let files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        Self { rss_bytes: pages.unwrap_or_default() * PAGE_BYTES, files: files as u64 }
    }

    fn max(self, other: Self) -> Self {
        Self { rss_bytes: self.rss_bytes.max(other.rss_bytes), files: self.files.max(other.files) }
    }
}

/// Lines of a log.
pub(super) fn lines(log: &Path) -> usize {
    fs::read(log).map_or(0, |text| text.iter().filter(|octet| **octet == b'\n').count())
}

/// Octets of all files below a folder.
pub(super) fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of = |path: PathBuf| match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => folder_bytes(&path),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.filter_map(Result::ok).map(|entry| of(entry.path())).sum()
}

/// Remembers the most that processes cost.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    peaks: Arc<Mutex<Vec<Cost>>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(pids: Vec<u32>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let peaks = Arc::new(Mutex::new(vec![Cost::default(); pids.len()]));
        let (flag, most) = (Arc::clone(&stop), Arc::clone(&peaks));
        let thread = thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                let now: Vec<Cost> = pids.iter().map(|pid| Cost::of(*pid)).collect();
                let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
                most.iter_mut().zip(now).for_each(|(most, now)| *most = most.max(now));
                drop(most);
                thread::sleep(EVERY);
            }
        });
        Self { stop, peaks, thread: Some(thread) }
    }

    /// In the order of the processes.
    pub(super) fn peaks(&self) -> Vec<Cost> {
        self.peaks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it does, it has said so.
            let _ended = thread.join();
        }
    }
}
