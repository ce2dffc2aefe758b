//! The requests of a group that a node's durable log has, read from its disk.
//!
//! What it is not: a recovery. It changes nothing, needs no running node, and may read beside one.
//! Invariant: what cannot be read is told, and does not hide what can.

use crate::recent::described;
use crate::store;
use quorba_admin::requests::{Messages, OrderedRequest, Outcome};
use quorba_config::{Domain, Node};
use quorba_engine::replica::{Catalog, GroupId, History, Moment, RequestEnvelope, RequestKey};
use quorba_journal::disk::{Disk, FileDisk};
use quorba_journal::{Record, Seq, inspect};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// What else is to be said of a log, in words.
#[derive(Debug, Default)]
pub struct Found {
    /// Because of it requests may be missing; each with the file that it is in.
    pub damage: Vec<String>,
    /// What else whoever reads should know.
    pub notes: Vec<String>,
}

/// Gives every request of `group` in the log of `node` to `take`, in their order. They are numbered
/// as the log has them: from the group's first one on, unless the log begins behind it.
///
/// # Errors
/// If there is no log, or its folder cannot be read.
pub fn requests(
    domain: &Domain,
    node: &Node,
    group: &str,
    mut take: impl FnMut(OrderedRequest, Messages),
) -> io::Result<Found> {
    let path = node.state_dir.join("log");
    if !path.is_dir() {
        let what = format!("{} is not there: no group is durable", path.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    let known = store::found(&node.state_dir).map_err(io::Error::other)?;
    let group = match known {
        Some(catalog) => catalog.id_of(group).ok_or_else(|| {
            let what = format!("{} has no group {group}", node.state_dir.display());
            io::Error::new(io::ErrorKind::NotFound, what)
        })?,
        None => Catalog::id_in_file(group),
    };
    let disk: Arc<dyn Disk> = Arc::new(FileDisk::open_for_reading(&path)?);
    let mut reader = Reading { group, history: History::EMPTY, time: 0, known: BTreeSet::new() };
    let mut found = Found::default();
    let (mut file, mut torn) = (String::new(), None);
    let mut first = None;
    inspect(
        &disk,
        |entry| {
            first.get_or_insert(entry.seq);
            if let Record::Message { origin, incarnation, payload, .. } = &entry.record
                && let Some(request) = RequestEnvelope::from_payload(payload.clone())
            {
                let name = domain.node(*origin).map_or("?", |node| node.name.as_str());
                if let Some((one, messages)) = reader.next((*origin, *incarnation), name, request) {
                    take(one, messages);
                }
            }
            None
        },
        |line| {
            if let Some((name, _)) = line.split_once(": records from ") {
                // What is not whole is damage, unless the log ends there.
                found.damage.extend(torn.take());
                file = path.join(name).display().to_string();
            } else if let Some(fault) = line.strip_prefix("  ") {
                // Only what is wrong: no records are described here.
                let fault = format!("{file}: {fault}; reading of this file ended there");
                if fault.contains(": a part was never written;") {
                    torn = Some(fault);
                } else {
                    found.damage.push(fault);
                }
            } else if ["DAMAGED", "DOUBTFUL", "cannot be"].iter().any(|w| line.contains(w)) {
                let of = if line.contains(".seg: ") { &mut found.damage } else { &mut found.notes };
                of.push(format!("{}: {line}", path.display()));
            }
        },
    )?;
    found.notes.extend(torn);
    if let Some(first) = first.filter(|first| *first > Seq(1)) {
        found.notes.push(format!(
            "the log was compacted, or begun anew: it begins with record {first}, and requests are \
             counted from there"
        ));
    }
    Ok(found)
}

/// How far the log was read.
struct Reading {
    group: GroupId,
    history: History,
    time: u64,
    known: BTreeSet<RequestKey>,
}

impl Reading {
    fn next(
        &mut self,
        (origin, incarnation): (quorba_base::NodeId, u64),
        gateway: &str,
        request: RequestEnvelope,
    ) -> Option<(OrderedRequest, Messages)> {
        if request.group != self.group {
            return None;
        }
        self.history = self.history.extended(origin, incarnation, request.number.0);
        self.time = self.time.max(request.stamp);
        let moment =
            Moment { number: self.history.count, time: self.time, seed: self.history.digest };
        // A share of it would hold the whole segment.
        let key = request.key(origin, incarnation).detached();
        let is_new = self.known.insert(key);
        let mut one = described(&request, moment, gateway);
        if !is_new {
            one.outcome = Outcome::Repetition;
        }
        let messages = Messages {
            number: moment.number,
            request: request.giop,
            code_sets: request.code_sets,
            time: moment.time,
            seed: moment.seed,
            reply: None,
        };
        Some((one, messages))
    }
}
