//! What a server prints, on its way to a file: in rotation, and no faster than a disk should be
//! filled by talk.
//!
//! A server never waits for the disk. What comes faster than is kept, or finds no room, is left
//! out, and that is said: in the file, in the node's log and in the status.
//!
//! Invariants: the file and the one before it hold no more than twice [`FILE_BYTES_MAX`] and a
//! piece; to turn to a new file needs no room but a name.

use crate::filesystem;
use crate::log_limiter::LogLimiter;
use crate::priority::lower_priority;
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A file that has become so long is put aside for a new one.
pub(crate) const FILE_BYTES_MAX: u64 = 16 << 20;
/// Kept per second, for long.
const BYTES_PER_SECOND: u64 = 1 << 20;
/// And at once.
const BURST_BYTES: u64 = 8 << 20;
/// Read at once.
const PIECE_BYTES: usize = 64 << 10;
/// A pause after each piece that is left out, so that talk costs the others no processor.
const PAUSE: Duration = Duration::from_millis(1);
/// Of what was printed last so much is kept in memory, for the status, and so many lines are told.
const TAIL_BYTES: usize = 2 << 10;
const TAIL_LINES: usize = 5;
/// How long a file that could not be opened is left alone.
const OPEN_AGAIN: Duration = Duration::from_secs(1);

/// Where the output of one group's server goes.
#[derive(Clone)]
pub(crate) struct Output {
    file: Arc<Mutex<Rotating>>,
}

impl Output {
    /// Into `state_dir/logs/GROUP.log`.
    pub(crate) fn new(state_dir: &Path, group: &str) -> Self {
        let path = state_dir.join("logs").join(format!("{group}.log"));
        Self { file: Arc::new(Mutex::new(Rotating::new(path, Instant::now()))) }
    }

    /// Where that is.
    pub(crate) fn path(&self) -> PathBuf {
        self.file.lock().expect("no holder panics").path.clone()
    }

    /// Bytes that were left out.
    pub(crate) fn lost(&self) -> u64 {
        self.file.lock().expect("no holder panics").lost
    }

    /// The last lines that the server printed which was started last, oldest first.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.file.lock().expect("no holder panics").tail.lines()
    }

    /// A pipe for one server process; what comes out of it is kept until all have closed it.
    ///
    /// # Errors
    /// The system has no descriptor or no thread.
    pub(crate) fn pipe(&self) -> io::Result<PipeWriter> {
        let (from, to) = io::pipe()?;
        let file = Arc::clone(&self.file);
        file.lock().expect("no holder panics").tail = Tail::default();
        let keeper = thread::Builder::new().name("output".into());
        keeper.spawn(move || {
            lower_priority();
            keep(from, &file);
        })?;
        Ok(to)
    }
}

fn keep(mut from: PipeReader, file: &Mutex<Rotating>) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => {
                let mut file = file.lock().expect("no holder panics");
                let is_kept = file.take(&piece[..count], Instant::now());
                drop(file);
                if !is_kept {
                    thread::sleep(PAUSE);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The end of what was printed.
#[derive(Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(TAIL_BYTES)..];
        let over = (self.0.len() + piece.len()).saturating_sub(TAIL_BYTES);
        self.0.drain(..over);
        self.0.extend(piece);
    }

    fn lines(&self) -> Vec<String> {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.collect();
        let lines = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        let plain = |line: &&str| line.chars().filter(|char| !char.is_control()).collect();
        lines.iter().map(plain).collect()
    }
}

struct Rotating {
    path: PathBuf,
    /// None: it could not be opened, or written.
    file: Option<File>,
    open_at: Instant,
    bytes: u64,
    /// What may be kept now.
    credit: u64,
    refilled: Instant,
    /// Since the last note in the file.
    left_out: u64,
    /// In all.
    lost: u64,
    fast: LogLimiter,
    broken: LogLimiter,
    tail: Tail,
}

impl Rotating {
    fn new(path: PathBuf, now: Instant) -> Self {
        Self {
            path,
            file: None,
            open_at: now,
            bytes: 0,
            credit: BURST_BYTES,
            refilled: now,
            left_out: 0,
            lost: 0,
            fast: LogLimiter::default(),
            broken: LogLimiter::default(),
            tail: Tail::default(),
        }
    }

    /// Whether it is kept.
    fn take(&mut self, piece: &[u8], now: Instant) -> bool {
        self.tail.push(piece);
        let since = now.saturating_duration_since(self.refilled);
        let gained = since.as_millis() as u64 * BYTES_PER_SECOND / 1000;
        if gained > 0 {
            self.credit = (self.credit + gained).min(BURST_BYTES);
            self.refilled = now;
        }
        let bytes = piece.len() as u64;
        let is_slow_enough = bytes <= self.credit;
        let is_left_alone = self.file.is_none() && now < self.open_at;
        let is_kept = is_slow_enough
            && !is_left_alone
            && match self.write(piece) {
                Ok(()) => true,
                Err(error) => {
                    self.tell_of_trouble(&error, now);
                    false
                }
            };
        if is_kept {
            self.credit -= bytes;
            return true;
        }
        self.left_out += bytes;
        self.lost += bytes;
        if !is_slow_enough && self.fast.tells(now).is_some() {
            tracing::warn!(
                log = %self.path.display(),
                left_out_bytes = self.lost,
                "the server prints faster than its log is written ({BYTES_PER_SECOND} bytes a \
                 second): a part is left out"
            );
        }
        false
    }

    fn tell_of_trouble(&mut self, error: &io::Error, now: Instant) {
        self.file = None;
        self.open_at = now + OPEN_AGAIN;
        if self.broken.tells(now).is_some() {
            let why = filesystem::explain(&self.path, error);
            let log = self.path.display();
            tracing::warn!(
                "what the server prints is left out, for {log} cannot be written: {why}"
            );
        }
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.bytes >= FILE_BYTES_MAX {
            self.file = None;
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open()?,
        };
        if self.left_out > 0 {
            let note = format!("\n[quorba: {} bytes are left out here]\n", self.left_out);
            file.write_all(note.as_bytes())?;
            self.left_out = 0;
        }
        file.write_all(piece)?;
        self.bytes += piece.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn open(&mut self) -> io::Result<File> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        if !folder.is_dir() {
            DirBuilder::new().recursive(true).mode(0o750).create(folder)?;
        }
        let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o640).custom_flags(no_links);
        let file = options.open(&self.path)?;
        let meta = file.metadata()?;
        // One that a former program made.
        if meta.permissions().mode() & 0o137 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o640))?;
        }
        self.bytes = meta.len();
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(path: &Path) -> (u64, u64) {
        let length = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
        (length(path), length(&path.with_extension("log.1")))
    }

    #[test]
    fn a_server_that_prints_without_end_fills_two_files_and_no_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = Output::new(folder.path(), "bank");
        let mut file = output.file.lock().expect("nobody panics");
        let mut now = Instant::now();
        let piece = [b'x'; PIECE_BYTES];
        let kept = (0..1_000).filter(|_| file.take(&piece, now)).count();
        assert_eq!(kept as u64, BURST_BYTES / PIECE_BYTES as u64, "and the rest is left out");
        for _ in 0..120 {
            now += Duration::from_secs(1);
            for _ in 0..40 {
                file.take(&piece, now);
            }
        }
        let (bytes, before) = lengths(&file.path);
        let most = FILE_BYTES_MAX + PIECE_BYTES as u64 + 100;
        assert!(bytes <= most && (FILE_BYTES_MAX..=most).contains(&before), "{bytes} {before}");
        let text = fs::read_to_string(&file.path).expect("read");
        assert!(text.contains("bytes are left out here]"), "it is said");
        assert!(file.lost > 100 << 20, "{}", file.lost);
        let mode = fs::metadata(&file.path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn what_cannot_be_written_is_left_out_and_the_server_is_not_kept_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let state_dir = folder.path().join("state");
        fs::write(&state_dir, "in the way").expect("written");
        let output = Output::new(&state_dir, "bank");
        let mut to = output.pipe().expect("a pipe");
        to.write_all(&vec![b'x'; 1 << 20]).expect("it is taken");
        fs::remove_file(&state_dir).expect("removed");
        // More than a second later the file is tried again.
        while !output.path().exists() {
            to.write_all(b"y").expect("it is taken");
            thread::sleep(Duration::from_millis(10));
        }
        assert!(output.lost() >= 1 << 20);
    }

    #[test]
    fn a_planted_link_is_not_written_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = folder.path().join("other");
        fs::write(&other, "somebody else's").expect("written");
        fs::create_dir(folder.path().join("logs")).expect("made");
        let output = Output::new(folder.path(), "bank");
        std::os::unix::fs::symlink(&other, output.path()).expect("a link");
        let is_kept = output.file.lock().expect("nobody panics").take(b"text", Instant::now());
        assert!(!is_kept);
        assert_eq!(fs::read(&other).expect("read"), b"somebody else's");
    }
}
