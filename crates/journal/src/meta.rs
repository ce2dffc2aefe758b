//! What the log knows about itself, in an embedded store (redb) on the same disk: whose it is, the
//! durable watermark, which segments and checkpoints there are, whether it is in doubt.
//!
//! What it is not: needed to find the records; they say themselves where they belong. The store is
//! the second witness: it knows what *should* be there.
//!
//! Invariants: the file appears under its name only when it is complete; each change of it is one
//! transaction; at the first change of a boot, and after a failure of the disk, the file is written
//! anew from memory (a failed sync says nothing about what is on the disk).

use crate::disk::{Disk, DiskFile, read_whole};
use crate::format::{Owner, Seq};
use quorba_base::NodeId;
use redb::backends::InMemoryBackend;
use redb::{Builder, Database, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// The store's file.
pub(crate) const FILE: &str = "meta.redb";
/// The same before it is complete.
pub(crate) const FILE_NEXT: &str = "meta.redb.next";

const FACTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("facts");
const SEGMENTS: TableDefinition<'_, u32, (u64, u64)> = TableDefinition::new("segments");
const CHECKPOINTS: TableDefinition<'_, (u64, u64), u64> = TableDefinition::new("checkpoints");

/// The fact that stores of earlier versions do not have.
const LACKING: &str = "lacking";

/// The store holds kilobytes.
const CACHE_BYTES: usize = 1 << 20;

/// What the store holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Metadata {
    pub(crate) owner: Owner,
    /// The last boot that opened the log.
    pub(crate) incarnation: u64,
    /// All records up to this one are durable; lags behind.
    pub(crate) watermark: Seq,
    /// Why the memory of this disk must not be used.
    pub(crate) doubt: Option<String>,
    /// How often damage was found.
    pub(crate) doubts: u64,
    /// How often a torn tail was cut.
    pub(crate) torn_tails: u64,
    /// First record and nonce of each segment.
    pub(crate) segments: BTreeMap<u32, (Seq, u64)>,
    /// Octets of each checkpoint.
    pub(crate) checkpoints: BTreeMap<(u64, Seq), u64>,
    /// Groups whose newest checkpoint was found damaged, and that have no newer one since: what is
    /// left need not be all that was relied on.
    pub(crate) lacking: BTreeSet<u64>,
}

impl Metadata {
    pub(crate) const fn new(owner: Owner, incarnation: u64) -> Self {
        Self {
            owner,
            incarnation,
            watermark: Seq::NONE,
            doubt: None,
            doubts: 0,
            torn_tails: 0,
            segments: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            lacking: BTreeSet::new(),
        }
    }

    fn facts(&self) -> [(&'static str, Vec<u8>); 8] {
        let number = |number: u64| number.to_le_bytes().to_vec();
        [
            ("domain_digest", number(self.owner.domain_digest)),
            ("node", vec![self.owner.node.index()]),
            ("incarnation", number(self.incarnation)),
            ("watermark", number(self.watermark.0)),
            ("doubt", self.doubt.as_deref().unwrap_or_default().as_bytes().to_vec()),
            ("doubts", number(self.doubts)),
            ("torn_tails", number(self.torn_tails)),
            (LACKING, self.lacking.iter().flat_map(|group| group.to_le_bytes()).collect()),
        ]
    }
}

/// What was found under the store's name.
#[derive(Debug)]
pub(crate) enum Contents {
    Nothing,
    Whole(Box<Metadata>),
    Damaged(String),
}

/// The store.
#[derive(Debug)]
pub(crate) struct Meta {
    disk: Arc<dyn Disk>,
    /// None: the file is not to be used, and is made anew at the next change.
    database: Option<Database>,
    stored: Option<Metadata>,
}

impl Meta {
    /// Reads the store that is there, if there is one. It is not written on: the first change of a
    /// boot makes a new one.
    ///
    /// # Errors
    /// The disk's, if the file cannot even be opened.
    pub(crate) fn open(disk: &Arc<dyn Disk>) -> io::Result<(Self, Contents)> {
        let mut meta = Self { disk: Arc::clone(disk), database: None, stored: None };
        let found = look(&**disk)?;
        if let Contents::Whole(metadata) = &found {
            meta.stored = Some((**metadata).clone());
        }
        Ok((meta, found))
    }

    /// Makes `metadata` what the store holds, durably.
    ///
    /// # Errors
    /// The disk's; what the store holds is then the old or the new, and the next change writes it
    /// anew.
    pub(crate) fn store(&mut self, metadata: &Metadata) -> io::Result<()> {
        if self.database.is_some() && self.stored.as_ref() == Some(metadata) {
            return Ok(());
        }
        let before = self.stored.take();
        if let Some(database) = self.database.take()
            && let Ok(()) = write(&database, before.as_ref(), metadata)
        {
            self.database = Some(database);
        } else {
            self.database = Some(self.make(metadata)?);
        }
        self.stored = Some(metadata.clone());
        Ok(())
    }

    fn make(&self, metadata: &Metadata) -> io::Result<Database> {
        let file = self.disk.create(FILE_NEXT)?;
        let database = open_database(Storage(file))?;
        write(&database, None, metadata)?;
        self.disk.rename(FILE_NEXT, FILE)?;
        self.disk.sync_dir()?;
        Ok(database)
    }
}

/// Reads the store from a copy in memory, so that nothing is written, and the disk cannot fail in
/// the middle of a repair; also while somebody else writes it.
///
/// # Errors
/// The disk's, if the file cannot even be opened.
pub(crate) fn look(disk: &dyn Disk) -> io::Result<Contents> {
    let file = match disk.open(FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::Nothing),
        Err(error) => return Err(error),
    };
    let content = match read_whole(&*file) {
        Ok(content) => content,
        Err((offset, error)) => {
            return Ok(Contents::Damaged(format!("cannot be read at offset {offset}: {error}")));
        }
    };
    let backend = InMemoryBackend::new();
    backend.set_len(content.len() as u64)?;
    backend.write(0, &content)?;
    let opened = open_database(backend).map_err(|error| error.to_string());
    Ok(match opened.and_then(|database| read(&database)) {
        Ok(metadata) => Contents::Whole(Box::new(metadata)),
        Err(text) => Contents::Damaged(text),
    })
}

fn open_database(backend: impl StorageBackend) -> io::Result<Database> {
    Builder::new()
        .set_cache_size(CACHE_BYTES)
        .set_check_integrity_on_open(true)
        .create_with_backend(backend)
        .map_err(|error| of_disk(error.into()))
}

/// What the disk has said, if it is the disk's: a full one is waited for.
fn of_disk(error: redb::Error) -> io::Error {
    match error {
        redb::Error::Io(error) => error,
        error => io::Error::other(error.to_string()),
    }
}

fn read(database: &Database) -> Result<Metadata, String> {
    let text = |error: redb::Error| error.to_string();
    let transaction = database.begin_read().map_err(|error| text(error.into()))?;
    let facts = transaction.open_table(FACTS).map_err(|error| text(error.into()))?;
    let fact = |name: &str| {
        let value = facts.get(name).map_err(|error| text(error.into()))?;
        let value = value.ok_or_else(|| format!("{name} is missing"))?;
        Ok::<_, String>(value.value().to_vec())
    };
    let number = |name: &str| {
        let octets = fact(name)?.try_into().map_err(|_| format!("{name} is no number"))?;
        Ok::<_, String>(u64::from_le_bytes(octets))
    };
    let node = fact("node")?.first().copied().and_then(NodeId::new).ok_or("node is none")?;
    let owner = Owner { domain_digest: number("domain_digest")?, node };
    let mut metadata = Metadata::new(owner, number("incarnation")?);
    metadata.watermark = Seq(number("watermark")?);
    let doubt = String::from_utf8_lossy(&fact("doubt")?).into_owned();
    metadata.doubt = (!doubt.is_empty()).then_some(doubt);
    metadata.doubts = number("doubts")?;
    metadata.torn_tails = number("torn_tails")?;
    let lacking = facts.get(LACKING).map_err(|error| text(error.into()))?;
    let lacking = lacking.map(|value| value.value().to_vec()).unwrap_or_default();
    let (groups, rest) = lacking.as_chunks();
    if !rest.is_empty() {
        return Err(format!("{LACKING} is no list of groups"));
    }
    metadata.lacking = groups.iter().map(|octets| u64::from_le_bytes(*octets)).collect();
    let segments = transaction.open_table(SEGMENTS).map_err(|error| text(error.into()))?;
    for row in segments.iter().map_err(|error| text(error.into()))? {
        let (segment, row) = row.map_err(|error| text(error.into()))?;
        let (first, nonce) = row.value();
        metadata.segments.insert(segment.value(), (Seq(first), nonce));
    }
    let checkpoints = transaction.open_table(CHECKPOINTS).map_err(|error| text(error.into()))?;
    for row in checkpoints.iter().map_err(|error| text(error.into()))? {
        let (name, bytes) = row.map_err(|error| text(error.into()))?;
        let (group, seq) = name.value();
        metadata.checkpoints.insert((group, Seq(seq)), bytes.value());
    }
    Ok(metadata)
}

/// Writes what differs.
fn write(database: &Database, before: Option<&Metadata>, after: &Metadata) -> io::Result<()> {
    let transaction = database.begin_write().map_err(|error| of_disk(error.into()))?;
    write_tables(&transaction, before, after).map_err(of_disk)?;
    transaction.commit().map_err(|error| of_disk(error.into()))
}

fn write_tables(
    transaction: &redb::WriteTransaction,
    before: Option<&Metadata>,
    after: &Metadata,
) -> Result<(), redb::Error> {
    let mut facts = transaction.open_table(FACTS)?;
    let old_facts = before.map(Metadata::facts);
    for (index, (name, value)) in after.facts().iter().enumerate() {
        if old_facts.as_ref().is_none_or(|old| old[index].1 != *value) {
            facts.insert(*name, value.as_slice())?;
        }
    }
    let none = BTreeMap::new();
    let old = before.map_or(&none, |before| &before.segments);
    if before.is_none() || *old != after.segments {
        let mut segments = transaction.open_table(SEGMENTS)?;
        let (gone, new) = differences(old, &after.segments);
        for segment in gone {
            segments.remove(segment)?;
        }
        for (segment, (first, nonce)) in new {
            segments.insert(segment, (first.0, *nonce))?;
        }
    }
    let none = BTreeMap::new();
    let old = before.map_or(&none, |before| &before.checkpoints);
    if before.is_none() || *old != after.checkpoints {
        let mut checkpoints = transaction.open_table(CHECKPOINTS)?;
        let (gone, new) = differences(old, &after.checkpoints);
        for (group, seq) in gone {
            checkpoints.remove((*group, seq.0))?;
        }
        for ((group, seq), bytes) in new {
            checkpoints.insert((*group, seq.0), bytes)?;
        }
    }
    Ok(())
}

/// What is in the one and not in the other, and what is in the other and not, or otherwise, in the
/// one.
fn differences<'a, K: Ord, V: PartialEq>(
    old: &'a BTreeMap<K, V>,
    new: &'a BTreeMap<K, V>,
) -> (impl Iterator<Item = &'a K>, impl Iterator<Item = (&'a K, &'a V)>) {
    let gone = old.keys().filter(|key| !new.contains_key(key));
    (gone, new.iter().filter(|(key, value)| old.get(key) != Some(value)))
}

/// A file of the log's disk, as the store wants it.
#[derive(Debug)]
struct Storage(Arc<dyn DiskFile>);

impl StorageBackend for Storage {
    fn len(&self) -> io::Result<u64> {
        self.0.bytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_bytes(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, data)
    }
}
