//! `quorba backup`: a group's state, with what clients may repeat, in a file.
//!
//! What it is not: a way to look into the state; only the group's servers know what it means.
//!
//! Invariants: a file that exists is not written over; a file that is not whole is not left behind,
//! and if the machine ends first, is known by its end that is missing; what is in a file is said
//! only after every checksum in it was right.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use clap::{Args, Subcommand};
use quorba_admin::status::{GroupStatus, MemberState, Status};
use quorba_admin::{AdminError, Client};
use quorba_config::Domain;
use quorba_node::backup::{BackupError, Decoder, Description};
use serde_json::{Value, json};

use crate::args::DomainFile;
use crate::ask;
use crate::catalog;
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::{grouped, size, system_reason};

/// A large state on a slow disk takes its time.
const DEADLINE: Duration = Duration::from_secs(300);
/// Pause before a node is asked again that cannot now.
const AGAIN: Duration = Duration::from_millis(200);
/// Time between two words about how far it is.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// Write the state of a group to a file while the group works, or show such a file
///
/// The backup is the state after one request of the group's order, with the replies that clients
/// may still ask for: everything that was acknowledged before is in it. One member's server gives
/// it (get_state), and executes nothing meanwhile; the others go on. `quorba restore` puts it back.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Backup {
    #[command(subcommand)]
    command: Option<What>,

    /// The group
    #[arg(required = true)]
    group: Option<String>,

    /// The file, which must not exist; only its owner may read it
    #[arg(long, value_name = "FILE", required = true)]
    to: Option<PathBuf>,

    /// The node whose member gives its state; otherwise one that does not lead, if it can
    #[arg(long)]
    node: Option<String>,

    #[command(flatten)]
    domain: DomainFile,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show what is in a backup, after all of it was read and found right
    Show {
        /// The file
        file: PathBuf,
    },
}

impl Backup {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        if let Some(What::Show { file }) = self.command {
            return show(context, &file);
        }
        let (Some(group), Some(to)) = (self.group, self.to) else {
            unreachable!("both are required where there is no subcommand")
        };
        let domain = context.load(&self.domain.config)?;
        catalog::require_known(context, &domain, &group)?;
        let deadline = context.deadline(DEADLINE);
        let began = Instant::now();
        let mut file = create(&to)?;
        let taken = take(context, &domain, &group, self.node.as_deref(), &mut file, deadline)
            .and_then(|description| {
                file.sync_all().map_err(|error| unwritable(&to, &error))?;
                Ok(description)
            });
        let description = taken.inspect_err(|_| {
            // Half a backup is none.
            let _ = fs::remove_file(&to);
        })?;
        let bytes = file.metadata().map_or(0, |data| data.len());
        if context.is_json() {
            context.print_json(&told(&to, bytes, &description))?;
        } else {
            context.print(&format!(
                "{}: group {} after {} requests, {} ({} in the file), from {} in {:.1} s\n",
                to.display(),
                description.group,
                grouped(description.executed),
                size(description.content_bytes()),
                size(bytes),
                description.node,
                began.elapsed().as_secs_f64(),
            ))?;
        }
        Ok(Exit::Ok)
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let what = format!("{} exists already", path.display());
            Failure::new(codes::FILE, Exit::Failed, what, "choose another name for the backup")
        }
        _ => unwritable(path, &error),
    })
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let what = format!("{} cannot be written: {}", path.display(), system_reason(error));
    let next = "choose a directory that exists, that you may write to, and that has room";
    Failure::new(codes::FILE, Exit::Failed, what, next)
}

/// Asks a node after the other until one gives a backup.
fn take(
    context: &Context,
    domain: &Domain,
    group: &str,
    node: Option<&str>,
    file: &mut File,
    deadline: Deadline,
) -> Result<Description, Failure> {
    let mut waited = RetryPolicy::default();
    loop {
        let asked = Asked::find(domain, group, node, BackupRequest::Take, deadline)?;
        waited.check(&asked.name, deadline)?;
        match asked.client.backup(group, deadline.left()) {
            Ok(answer) => return copy(context, answer, file, &asked.name, deadline),
            Err(error) => waited.heed(context, &asked.name, &error, deadline)?,
        }
    }
}

/// Writes down what comes, and reads it on the way.
fn copy(
    context: &Context,
    mut answer: impl Read,
    file: &mut File,
    node: &str,
    deadline: Deadline,
) -> Result<Description, Failure> {
    let mut decoder = Decoder::default();
    let mut progress = Progress::default();
    let mut buffer = vec![0; READ_BYTES];
    let ended = |what: String| {
        let (code, exit) = if deadline.has_passed() {
            (codes::TIMED_OUT, Exit::TimedOut)
        } else {
            (codes::BACKUP, Exit::Failed)
        };
        Failure::new(code, exit, what, "see that the node runs, and try again; nothing was kept")
    };
    loop {
        let count = match answer.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) => {
                return Err(ended(format!("the backup from node {node} broke off: {error}")));
            }
        };
        let wrong = |error: BackupError| ended(format!("node {node} sent no backup: {error}"));
        decoder.push(&buffer[..count]).map_err(wrong)?;
        file.write_all(&buffer[..count])
            .map_err(|error| unwritable(Path::new("the backup"), &error))?;
        if let Some(description) = decoder.description() {
            progress.tell(context, decoder.done_bytes(), description.content_bytes());
        }
    }
    let wrong =
        |error: BackupError| ended(format!("the backup from node {node} broke off: {error}"));
    Ok(decoder.finish().map_err(wrong)?.0)
}

/// How far it is, now and then.
#[derive(Default)]
pub(super) struct Progress {
    told: Option<Instant>,
}

impl Progress {
    pub(super) fn tell(&mut self, context: &Context, done: u64, total: u64) {
        let told = *self.told.get_or_insert_with(Instant::now);
        if told.elapsed() >= TELL_EVERY {
            self.told = Some(Instant::now());
            context.tell(format!("{} of {}", size(done), size(total)));
        }
    }
}

/// What a node is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BackupRequest {
    /// Its member's state.
    Take,
    /// To let its member have another one.
    Give,
}

/// A node that can do it, as far as is known.
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) client: Client,
    /// As it said last.
    pub(super) status: Status,
}

impl Asked {
    pub(super) fn find(
        domain: &Domain,
        group: &str,
        node: Option<&str>,
        wish: BackupRequest,
        deadline: Deadline,
    ) -> Result<Self, Failure> {
        if let Some(name) = node {
            ask::require_node(domain, name)?;
        }
        let answers = ask::everyone(domain, deadline.left());
        let said = answers.iter().filter_map(|answer| answer.status.as_ref().ok());
        let said = said.filter(|status| node.is_none_or(|name| status.node == name));
        let said: Vec<&Status> = said.filter(|status| group_of(status, group).is_some()).collect();
        if said.is_empty() {
            return Err(ask::no_word(domain, &answers, group, node));
        }
        let best = said.iter().filter_map(|status| Some((rank(status, group, wish)?, *status)));
        let Some((_, status)) = best.max_by_key(|(rank, _)| *rank) else {
            return Err(unable(&said, group, node, wish));
        };
        let answer = answers.iter().find(|one| one.node == status.node).expect("it was asked");
        Ok(Self {
            name: status.node.clone(),
            client: answer.client.clone(),
            status: status.clone(),
        })
    }
}

pub(super) fn group_of<'s>(status: &'s Status, group: &str) -> Option<&'s GroupStatus> {
    status.groups.iter().find(|one| one.name == group)
}

/// How well a node can do it; none: not at all.
fn rank(status: &Status, group: &str, wish: BackupRequest) -> Option<u8> {
    let group = group_of(status, group).filter(|_| status.ring.primary)?;
    let member = group.members.iter().find(|member| member.node == status.node)?;
    let leads = group.leader.as_deref() == Some(status.node.as_str());
    let is_in = member.state == MemberState::In;
    match wish {
        // Others than the leader give up less, where they have executed all.
        BackupRequest::Take if !is_in || group.style.ends_with("passive") && !leads => None,
        BackupRequest::Take => Some(if leads { 1 } else { 2 }),
        BackupRequest::Give if member.state == MemberState::Removed => None,
        BackupRequest::Give if leads => Some(3),
        BackupRequest::Give => Some(if is_in { 2 } else { 1 }),
    }
}

/// Why no node can do it.
fn unable(said: &[&Status], name: &str, node: Option<&str>, wish: BackupRequest) -> Failure {
    // Who lacks what.
    let lacks = |what: &str| match node {
        Some(node) => format!("node {node} has no member of group {name} that {what}"),
        None => format!("no node here has a member of group {name} that {what}"),
    };
    let group = said.iter().find_map(|status| group_of(status, name));
    let leader = group.and_then(|group| group.leader.as_deref());
    let is_passive = group.is_some_and(|group| group.style.ends_with("passive"));
    let (what, next) = if said.iter().all(|status| !status.ring.primary) {
        let who = node.map_or("no node here is".into(), |node| format!("node {node} is not"));
        let what = format!("{who} in a primary component, so that nothing can be ordered");
        (what, "quorba status shows what is missing".to_owned())
    } else if let (true, Some(leader), BackupRequest::Take) = (is_passive, leader, wish) {
        let what = "of a passive group only the leader's member can give a backup";
        (what.to_owned(), format!("run this on the machine of node {leader}, which leads"))
    } else if wish == BackupRequest::Take {
        (
            lacks("is in"),
            format!("quorba group show {name} shows its members; run this where one is in"),
        )
    } else {
        (
            lacks("takes part"),
            format!("quorba group show {name} shows its members; run this where one is"),
        )
    };
    Failure::new(codes::BACKUP, Exit::Failed, what, next)
}

/// Nodes that cannot now are asked again.
#[derive(Default)]
pub(super) struct RetryPolicy {
    /// Why the one that was asked last could not.
    last: Option<String>,
}

impl RetryPolicy {
    /// Fails if no time is left to ask `node`.
    pub(super) fn check(&self, node: &str, deadline: Deadline) -> Result<(), Failure> {
        if deadline.has_passed() { Err(self.over(node, deadline)) } else { Ok(()) }
    }

    fn over(&self, node: &str, deadline: Deadline) -> Failure {
        let time = humantime::format_duration(deadline.time);
        let what = match &self.last {
            Some(why) => format!("{why}; gave up after {time}"),
            None => format!("timed out ({time}) before node {node} could be asked"),
        };
        let next = "give more time with --timeout; quorba status shows how the group is";
        Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next)
    }

    /// Waits a moment if that may help, or gives the failure.
    pub(super) fn heed(
        &mut self,
        context: &Context,
        node: &str,
        error: &AdminError,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let what = error.to_string();
        let what = match what.trim_end() {
            named if named.starts_with(&format!("node {node}: ")) => named.to_owned(),
            other => format!("node {node}: {other}"),
        };
        let (code, exit, next) = match error {
            AdminError::NotNow { .. } => {
                if self.last.is_none() {
                    context.tell(format!("{what}; trying again"));
                }
                self.last = Some(what);
                thread::sleep(AGAIN.min(deadline.left()));
                return self.check(node, deadline);
            }
            AdminError::Timeout { .. } => {
                (codes::TIMED_OUT, Exit::TimedOut, "quorba status shows how the group is")
            }
            AdminError::Conflict { .. } => (
                codes::BACKUP,
                Exit::Failed,
                "docs/how-to/backups.md says which groups can be backed up",
            ),
            _ => (codes::NOBODY_ANSWERS, Exit::Failed, "quorba status shows which nodes answer"),
        };
        Err(Failure::new(code, exit, what, next))
    }
}

/// Reads the whole file; every checksum is compared.
pub(super) fn read(context: &Context, path: &Path) -> Result<(Description, u64), Failure> {
    let unreadable = |error: io::Error| {
        let what = format!("{} cannot be read: {}", path.display(), system_reason(&error));
        Failure::new(
            codes::FILE,
            Exit::Failed,
            what,
            "give the file that quorba backup has written",
        )
    };
    let wrong = |error: BackupError| {
        let next = match error {
            BackupError::NoBackup => "give the file that quorba backup has written",
            BackupError::OtherVersion { .. } => "read it with the version of Quorba that wrote it",
            _ => "take another copy of this backup, or an earlier one",
        };
        let what = format!("{}: {error}", path.display());
        Failure::new(codes::BACKUP_FILE, Exit::Failed, what, next)
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    let mut decoder = Decoder::default();
    let mut progress = Progress::default();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = file.read(&mut buffer).map_err(unreadable)?;
        if count == 0 {
            break;
        }
        decoder.push(&buffer[..count]).map_err(wrong)?;
        if let Some(description) = decoder.description() {
            progress.tell(context, decoder.done_bytes(), description.content_bytes());
        }
    }
    Ok((decoder.finish().map_err(wrong)?.0, bytes))
}

fn told(path: &Path, bytes: u64, description: &Description) -> Value {
    let mut value = json!(description);
    value["file"] = json!(path);
    value["bytes"] = json!(bytes);
    value["taken"] = json!(taken(description));
    value
}

pub(super) fn taken(description: &Description) -> String {
    let at = UNIX_EPOCH.checked_add(Duration::from_millis(description.taken_ms));
    at.map_or_else(
        || "at a time that cannot be".into(),
        |at| humantime::format_rfc3339_seconds(at).to_string(),
    )
}

fn show(context: &Context, path: &Path) -> Result<Exit, Failure> {
    let (description, bytes) = read(context, path)?;
    if context.is_json() {
        context.print_json(&told(path, bytes, &description))?;
        return Ok(Exit::Ok);
    }
    let Description { domain, group, type_id, node, style, .. } = &description;
    let type_id = type_id.as_deref().unwrap_or("not named");
    context.print(&format!(
        "group     {group} of domain {domain}, style {style}\n\
         objects   {type_id}\n\
         taken     {taken} from {node}, by Quorba {version}\n\
         state     {state}, after {executed} requests\n\
         history   {history}\n\
         replies   of {requests} requests that may be repeated, {replies}\n\
         file      {bytes}, every checksum is right\n",
        taken = taken(&description),
        version = description.version,
        state = size(description.state_bytes),
        executed = grouped(description.executed),
        history = description.history,
        requests = grouped(description.requests),
        replies = size(description.replies_bytes),
        bytes = size(bytes),
    ))?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;
    use clap::Parser;

    #[test]
    fn what_hindered_a_node_is_said_when_the_time_is_over() {
        let context =
            Context::new(&Arguments::parse_from(["quorba", "status", "--timeout", "1ms"]));
        let deadline = context.deadline(DEADLINE);
        thread::sleep(Duration::from_millis(2));
        let refusal = "node n1: another backup is under way".to_owned();
        let error = AdminError::NotNow { address: ([127, 0, 0, 1], 1).into(), refusal };
        let failure = RetryPolicy::default().heed(&context, "n1", &error, deadline);
        let failure = failure.expect_err("no time is left");
        assert_eq!(failure.exit, Exit::TimedOut);
        let what = "node n1: another backup is under way; gave up after 1ms";
        assert_eq!(failure.what, what);
    }
}
