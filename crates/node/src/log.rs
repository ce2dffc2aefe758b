//! The durable log of this node: what the engine wants written, and what it found at the start.
//!
//! What it is not: the format or the thread, which are the journal's; nor what of it may go, which
//! the engine says when it is told that the log is long. Invariants: records are
//! handed over in the order of the engine's outputs; what waits because the disk is slow or full
//! is bounded: whoever hands over more is told to wait. A disk that failed ends the node, for it
//! cannot keep its promises then; one that is full does not.

use crate::NodeError;
use crate::filesystem::{self, is_shortage};
use crate::priority::lower_priority;
use quorba_admin::status::{LogStatus, millis};
use quorba_base::{FNV_OFFSET, NodeId, fnv1a};
use quorba_config::Domain;
use quorba_engine::replica::{GroupId, LogHold, LogOutput, LogRecord, Place, Recovered};
use quorba_journal::disk::FileDisk;
use quorba_journal::{
    Checkpoints, Committer, Found, Journal, Notice, OpenError, Opened, Options, Owner, Position,
    Record, Refused, Sealed, Seq, Stored,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod growth;
mod lookups;
#[cfg(test)]
mod tests;

use growth::Growth;
use lookups::{Look, Lookups};

/// Octets that may be on their way to the disk.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Octets that may wait besides, until the disk takes more.
const BACKLOG_BYTES_MAX: usize = 192 << 20;
/// How long a state waits that found the disk full.
const SAVE_AGAIN: Duration = Duration::from_secs(1);

/// News of the log's thread, or of one that writes a state.
pub(crate) enum LogNews {
    Notice(Notice),
    /// A state cannot be written now, and is written when there is room.
    Waits(io::Error),
    Written(Result<Sealed, (GroupId, io::Error)>),
    LookedUp(Look, Box<Result<Recovered, String>>),
}

/// What became of them, for the engine.
pub(crate) enum Progress {
    Logged(u64),
    Saved(GroupId, u64),
    Trusted,
    LookedUp(Look, Option<Recovered>),
}

/// What the start found.
pub(crate) struct Boot {
    pub(crate) recovered: Option<Recovered>,
    pub(crate) in_doubt: bool,
    /// What is wrong with the log, in words.
    pub(crate) warning: Option<String>,
}

/// See the module's text.
pub(crate) struct Log {
    path: PathBuf,
    committer: Committer,
    checkpoints: Checkpoints,
    tell: Arc<dyn Fn(LogNews) + Send + Sync>,
    /// The last record of earlier boots.
    begin: Seq,
    /// What the committer has not been given.
    backlog: Vec<Record>,
    /// The last batch was refused; the next news of the disk try again.
    is_full: bool,
    /// What waits for room on the disk, and which.
    waits: Option<(String, Instant)>,
    backlog_bytes: usize,
    /// States that are written, and stand behind records of the backlog.
    written: Vec<Sealed>,
    warning: Option<String>,
    lookups: Lookups,
    growth: Growth,
    /// Where it begins, as far as the thread has said.
    first: Seq,
}

impl Log {
    /// Opens the log in `state_dir`, for a domain with a durable group.
    pub(crate) fn open(
        domain: &Domain,
        me: NodeId,
        incarnation: u64,
        state_dir: &Path,
        tell: impl Fn(LogNews) + Send + Sync + 'static,
    ) -> Result<(Self, Boot), NodeError> {
        let path = state_dir.join("log");
        let failed = |source| NodeError::Log { path: path.clone(), source };
        let disk = Arc::new(FileDisk::open(&path).map_err(failed)?);
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).expect("the kernel has randomness");
        let owner = Owner { domain_digest: owner_digest(&domain.id), node: me };
        let segment_bytes = growth::segment_bytes(domain.limits.log_bytes);
        let seed = u64::from_le_bytes(seed);
        let options = Options { segment_bytes, ..Options::new(owner, incarnation, seed) };
        let opened = Journal::open(disk, options);
        let opened =
            opened.map_err(|source| NodeError::LogRefused { path: path.clone(), source })?;
        let Opened { journal, recovered } = opened;
        let (found, first) = extent(&recovered);
        let growth = Growth::new(domain, me, found);
        let (boot, begin) = (remembered(&journal, recovered), journal.last());
        let checkpoints = journal.checkpoints();
        let lacking = journal.lacking().clone();
        let lookups = Lookups::new(owner, checkpoints.clone(), begin, boot.in_doubt, lacking);
        let tell: Arc<dyn Fn(LogNews) + Send + Sync> = Arc::new(tell);
        let news = Arc::clone(&tell);
        let notify = move |notice| news(LogNews::Notice(notice));
        let committer =
            Committer::start(journal, WAITING_BYTES_MAX, notify).map_err(NodeError::Resources)?;
        let warning = boot.warning.clone();
        let log = Self {
            path,
            committer,
            checkpoints,
            tell,
            begin,
            backlog: Vec::new(),
            is_full: false,
            waits: None,
            backlog_bytes: 0,
            written: Vec::new(),
            warning,
            lookups,
            growth,
            first,
        };
        Ok((log, boot))
    }

    /// Where it is, and whether it can be written.
    pub(crate) fn status(&self) -> LogStatus {
        let path = self.path.display().to_string();
        let waits = self.waits.as_ref();
        LogStatus {
            path,
            waits: waits.map(|(said, _)| said.clone()),
            waits_ms: waits.map(|(_, since)| millis(since.elapsed())),
        }
    }

    /// What an operator should know of it besides. `holds`: groups, by name, because of which it
    /// cannot be compacted, and why. `lacks`: groups whose member's state it has not got yet.
    pub(crate) fn warnings(&self, holds: &[(&str, LogHold)], lacks: &[&str]) -> Vec<String> {
        let mut warnings: Vec<String> = self.warning.iter().cloned().collect();
        warnings.extend(lacks.iter().map(|name| {
            format!(
                "group {name}: this node's log has no checkpoint of its replica yet, whose server \
                 is asked for its state (get_state); until then replies wait for the other \
                 members' disks"
            )
        }));
        if self.growth.is_held() {
            let because = |(name, hold): &(&str, LogHold)| format!("group {name}: {}", hold.text());
            let mut because = holds.iter().map(because).collect::<Vec<_>>().join("; ");
            if because.is_empty() {
                because = "not in a primary component, or the log is being rebuilt".into();
            }
            warnings.push(format!(
                "the log has grown beyond log_bytes and cannot be compacted: {because}"
            ));
        }
        warnings
    }

    /// What the engine asks of the log.
    pub(crate) fn carry_out(&mut self, output: LogOutput) {
        match output {
            LogOutput::Append(record) => self.append(record),
            LogOutput::Save { group, place, parts } => self.save(group, place, parts),
            LogOutput::Rebuilt => self.trust(),
            LogOutput::Compact { record } => self.compact(record),
            LogOutput::LookUp { group, number } => {
                self.lookups.want((group, number), &self.path, &self.tell);
            }
        }
    }

    /// Its folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// So much waits for the disk that nothing more may be handed over.
    pub(crate) fn is_overfull(&self) -> bool {
        self.backlog_bytes > BACKLOG_BYTES_MAX
    }

    /// Whether all that waited here is on its way to the disk.
    pub(crate) fn has_room_again(&self) -> bool {
        self.backlog.is_empty()
    }

    /// One more record; [`Self::flush`] hands it over.
    fn append(&mut self, record: LogRecord) {
        self.lookups.appended();
        self.backlog_bytes += record.bytes();
        self.growth.add(record.bytes());
        self.backlog.push(record);
    }

    /// Hands over what waits.
    pub(crate) fn flush(&mut self) {
        if self.backlog.is_empty() || self.is_full {
            return self.adopt();
        }
        match self.committer.append(std::mem::take(&mut self.backlog)) {
            Ok(()) => {
                self.backlog_bytes = 0;
                self.adopt();
            }
            Err(Refused::Full(batch)) => (self.backlog, self.is_full) = (batch, true),
            // The thread has said why, or the order carries more than the log: its news end us.
            Err(Refused::Ended(batch) | Refused::TooLong(batch)) => self.backlog = batch,
        }
    }

    /// Has states taken in behind whose place nothing waits here.
    fn adopt(&mut self) {
        if self.backlog.is_empty() {
            for sealed in self.written.drain(..) {
                self.committer.adopt(sealed);
            }
        }
    }

    /// Has a state written, on a thread of its own: it may be large.
    fn save(&self, group: GroupId, place: Place, parts: [bytes::Bytes; 2]) {
        let (checkpoints, tell) = (self.checkpoints.clone(), Arc::clone(&self.tell));
        let seq = Seq(self.begin.0 + place.record);
        let position = Position { component: place.view, prefix: place.prefix };
        let write = move || {
            let mut writer = checkpoints.begin(group.0, seq, position)?;
            match parts.iter().try_for_each(|part| writer.write(part)) {
                Ok(()) => writer.seal(),
                Err(error) => {
                    writer.abandon();
                    Err(error)
                }
            }
        };
        let failed = Arc::clone(&self.tell);
        let thread = std::thread::Builder::new().name("checkpoint".into());
        let started = thread.spawn(move || {
            lower_priority();
            let mut waits = false;
            let written = loop {
                match write() {
                    // The process ends without waiting for this thread.
                    Err(error) if is_shortage(&error) => {
                        if !std::mem::replace(&mut waits, true) {
                            tell(LogNews::Waits(error));
                        }
                        std::thread::sleep(SAVE_AGAIN);
                    }
                    written => break written,
                }
            };
            tell(LogNews::Written(written.map_err(|error| (group, error))));
        });
        if let Err(error) = started {
            failed(LogNews::Written(Err((group, error))));
        }
    }

    /// Whether the engine is to be told that the log is long. It says whether it begins to compact
    /// it; if it cannot, it is told again when the log has grown on.
    pub(crate) fn wants_compaction(&mut self) -> bool {
        self.growth.is_due()
    }

    /// The engine compacts it, or cannot now.
    pub(crate) fn told_of_length(&mut self, is_begun: bool) {
        self.growth.told(is_begun);
        if is_begun {
            tracing::debug!(
                "the log is long: log snapshots of the members are made, to compact it"
            );
        }
    }

    /// What stands before a record of this boot is not needed any more. The thread keeps what the
    /// older of two states needs; and while somebody reads the log, nothing goes.
    fn compact(&mut self, record: u64) {
        let seq = Seq(self.begin.0 + record);
        if self.lookups.are_under_way() {
            tracing::debug!("the log is being read, and not compacted now");
            return;
        }
        self.flush();
        self.committer.truncate_before(seq);
    }

    /// What was in doubt is not needed any more.
    fn trust(&mut self) {
        self.flush();
        self.committer.trust();
    }

    /// What the news mean for the engine.
    pub(crate) fn hear(&mut self, news: LogNews) -> Result<Option<Progress>, NodeError> {
        let failed = |source| NodeError::Log { path: self.path.clone(), source };
        match news {
            LogNews::Notice(Notice::Durable(seq)) => {
                self.goes_on();
                self.is_full = false;
                self.flush();
                self.lookups.durable(seq, &self.path, &self.tell);
                Ok(Some(Progress::Logged(seq.0.saturating_sub(self.begin.0))))
            }
            LogNews::Notice(Notice::Full(error)) | LogNews::Waits(error) => {
                let said = format!(
                    "the durable log in {} waits: {}; durable groups answer nothing until there is \
                     room",
                    self.path.display(),
                    filesystem::explain(&self.path, &error)
                );
                tracing::error!("{said}");
                let since = self.waits.take().map_or_else(Instant::now, |(_, since)| since);
                self.waits = Some((said, since));
                Ok(None)
            }
            LogNews::Notice(Notice::Failed(error) | Notice::Shortage(error)) => Err(failed(error)),
            LogNews::Notice(Notice::NotAdopted(_, error)) => {
                Err(failed(io::Error::other(error.to_string())))
            }
            LogNews::Notice(Notice::Adopted(sealed)) => {
                self.goes_on();
                let of = sealed.checkpoint();
                let record = of.seq.0.saturating_sub(self.begin.0);
                self.lookups.adopted(GroupId(of.group));
                Ok(Some(Progress::Saved(GroupId(of.group), record)))
            }
            LogNews::Notice(Notice::Truncated(first)) => {
                self.goes_on();
                if std::mem::replace(&mut self.first, first) < first {
                    tracing::info!(%first, "the log is compacted: it begins with this record now");
                }
                Ok(None)
            }
            LogNews::Notice(Notice::Trusted) => {
                self.goes_on();
                self.warning = None;
                self.lookups.trusted();
                tracing::info!("the log is rebuilt: its doubtful files are removed");
                Ok(Some(Progress::Trusted))
            }
            LogNews::LookedUp(look, found) => {
                self.lookups.ended();
                Ok(Some(self.looked_up(look, *found)))
            }
            LogNews::Written(Ok(sealed)) => {
                self.goes_on();
                self.written.push(sealed);
                self.flush();
                Ok(None)
            }
            LogNews::Written(Err((_, error))) => Err(failed(error)),
        }
    }

    /// The disk takes something again.
    fn goes_on(&mut self) {
        if self.waits.take().is_some() {
            tracing::info!(path = %self.path.display(), "the durable log has room again");
        }
    }

    fn looked_up(&mut self, look: Look, found: Result<Recovered, String>) -> Progress {
        let found = found.map_err(|damage| {
            tracing::error!(%damage, "the durable log cannot be read: groups do not go on from it");
            self.warning.get_or_insert(damage);
        });
        Progress::LookedUp(look, found.ok())
    }

    /// The node ends: what waits is written.
    pub(crate) fn stop(mut self) {
        self.is_full = false;
        self.flush();
        if let Some(journal) = self.committer.stop()
            && let Err(error) = journal.close()
        {
            let what = "the durable log was closed without its last mark; no record is lost";
            tracing::warn!(%error, "{what}");
        }
    }
}

fn remembered(journal: &Journal, found: Found) -> Boot {
    let nothing = |in_doubt, warning| Boot { recovered: None, in_doubt, warning };
    match found {
        Found::Fresh => nothing(false, None),
        Found::Doubtful { damage } => {
            tracing::error!(
                %damage,
                "the log is damaged: nothing of it is used, and the node rebuilds its groups from \
                 the others"
            );
            nothing(true, Some(damage.to_string()))
        }
        Found::Clean(memory) => match memory.read(&journal.checkpoints()) {
            Ok(recovered) => {
                if let Some(torn) = &memory.torn {
                    tracing::info!(
                        ?torn,
                        "the last record of the durable log is cut off: nobody relied on it"
                    );
                }
                for spoilt in &memory.spoilt {
                    tracing::warn!(
                        %spoilt,
                        "a damaged checkpoint: an older one and the records take its place, as far \
                         as they do"
                    );
                }
                Boot { recovered: Some(recovered), in_doubt: false, warning: None }
            }
            // Found right a moment ago: the disk gives other data now.
            Err(damage) => nothing(false, Some(damage.to_string())),
        },
    }
}

/// Octets of what a start goes through, and the first record of it.
fn extent(found: &Found) -> (u64, Seq) {
    match found {
        Found::Clean(memory) => (memory.bytes(), memory.first),
        Found::Fresh | Found::Doubtful { .. } => (0, Seq(1)),
    }
}

/// Whose log it is: of the domain of that id. Its groups are not part of it, since a log names a
/// group by an id that no other one ever has.
fn owner_digest(domain: &str) -> u64 {
    fnv1a(FNV_OFFSET, domain.bytes().chain([0]))
}

/// What is wrong, and what to do about it.
pub(crate) fn advice(path: &Path, error: &OpenError) -> String {
    let advice = match error {
        OpenError::Disk { source, .. } if filesystem::is_full(source) => {
            return format!("{} is full: free space on it", filesystem::describe(path));
        }
        OpenError::Disk { .. } => "make the disk work, or free space on it",
        OpenError::Foreign { .. } => "give the node its own state_dir",
        OpenError::Version { .. } => "run the program that wrote it",
        OpenError::OldIncarnation { .. } => {
            "restore the whole state_dir as it was, or move the folder `log` away: then the node \
             rebuilds its groups from the others"
        }
    };
    advice.into()
}
