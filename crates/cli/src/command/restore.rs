//! `quorba restore`: a group of a running domain has the state of a backup from one request on.
//!
//! What it is not: undone by anything but another restore. Invariants: without `--yes` nothing is
//! asked of the group; the file was read as a whole, and every checksum was right, before.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use quorba_admin::status::{GroupStatus, MemberState};
use quorba_admin::{AdminError, Wanted};
use quorba_config::Domain;
use quorba_node::backup::Description;
use serde_json::json;

use crate::args::DomainFile;
use crate::catalog;
use crate::command::backup::{self, Asked, BackupRequest, Progress, RetryPolicy, group_of};
use crate::context::{Context, Deadline};
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::{grouped, system_reason};

/// A large state goes to one node, and from there to the others.
const DEADLINE: Duration = Duration::from_secs(300);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// Give a group of a running domain the state of a backup
///
/// THROWS AWAY what the group has now: everything that it executed since the backup, acknowledged
/// or not. One member takes the state at one place in the order, the others get it from that one,
/// and clients are answered as soon as the first has it. A call that a client repeats is not
/// executed again if it was executed before the backup. Also brings back a group that has lost all
/// its members. The domain file must name the group as the backup does.
#[derive(Debug, Args)]
pub struct Restore {
    /// The backup
    file: PathBuf,

    /// The group that is to have it
    #[arg(long, value_name = "GROUP")]
    group: String,

    /// Yes, what the group has now may be thrown away
    #[arg(long)]
    yes: bool,

    /// The node whose member takes it first; otherwise the leader's
    #[arg(long)]
    node: Option<String>,

    #[command(flatten)]
    domain: DomainFile,
}

impl Restore {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let domain = context.load(&self.domain.config)?;
        let group = catalog::find_group(context, &domain, &self.group)?;
        let deadline = context.deadline(DEADLINE);
        let (description, _) = backup::read(context, &self.file)?;
        description.check_for(&group).map_err(|why| {
            let what = format!("{}: {why}", self.file.display());
            let next = format!(
                "give --group {}, or a domain file in which the group is what it was",
                description.group
            );
            Failure::new(codes::BACKUP_FILE, Exit::Failed, what, next)
        })?;
        let node = self.node.as_deref();
        let asked = Asked::find(&domain, &self.group, node, BackupRequest::Give, deadline)?;
        let loss = Loss::of(&asked, &self.group, deadline);
        let said = loss.said(&description, &domain);
        if !self.yes {
            let what = format!("nothing was done: {said}");
            return Err(Failure::new(codes::RESTORE_UNSAID, Exit::Usage, what, loss.next()));
        }
        context.tell(&said);
        let first = self.give(context, &domain, deadline)?;
        let whole = Whole { context, domain: &domain, group: &self.group, deadline };
        whole.wait(&first, &self.file, &description)
    }

    /// Asks a node after the other until one has done it, and says which.
    fn give(
        &self,
        context: &Context,
        domain: &Domain,
        deadline: Deadline,
    ) -> Result<String, Failure> {
        let mut waited = RetryPolicy::default();
        let node = self.node.as_deref();
        loop {
            let asked = Asked::find(domain, &self.group, node, BackupRequest::Give, deadline)?;
            waited
                .check(&asked.name, deadline)
                .map_err(|failure| RestoreOutcome::Not.told(failure))?;
            let mut file = Counted::open(context, &self.file)?;
            match asked.client.restore(&self.group, &mut file, deadline.left()) {
                Ok(()) => return Ok(asked.name),
                Err(error) => {
                    let fate = RestoreOutcome::after(&error, file.done < file.total);
                    let waits = waited.heed(context, &asked.name, &error, deadline);
                    waits.map_err(|failure| fate.map_or(failure.clone(), |it| it.told(failure)))?;
                }
            }
        }
    }
}

/// Whether a restore was done that was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestoreOutcome {
    Not,
    Unknown,
    /// The first member has it, others have not.
    First,
}

impl RestoreOutcome {
    /// None where the node's own words say it. A node does nothing before it has the whole file.
    const fn after(error: &AdminError, is_sent_in_part: bool) -> Option<Self> {
        match error {
            AdminError::Conflict { .. } => None,
            AdminError::NotNow { .. } | AdminError::Token { .. } | AdminError::Refused { .. } => {
                Some(Self::Not)
            }
            _ if is_sent_in_part => Some(Self::Not),
            _ => Some(Self::Unknown),
        }
    }

    fn told(self, mut failure: Failure) -> Failure {
        let word = match self {
            Self::Not => {
                failure.what += "; nothing was done";
                "no"
            }
            Self::Unknown => {
                failure.what += "; it is not known whether the group is restored";
                failure.next = "the nodes' logs say whether the group has the state of a backup \
                                now; a second restore throws away what came since the first"
                    .into();
                "unknown"
            }
            Self::First => "first",
        };
        failure.data(json!({ "restored": word }))
    }
}

/// What a restore costs.
struct Loss {
    group: String,
    /// Whether any member has a state that would go.
    is_any: bool,
    /// Who was asked, and the number of the last request that it remembers. A node remembers no
    /// request that it had before it was started.
    seen: (String, Option<u64>),
}

impl Loss {
    fn of(asked: &Asked, name: &str, deadline: Deadline) -> Self {
        let is_in = |group: &GroupStatus| {
            group.members.iter().any(|member| member.state == MemberState::In)
        };
        let is_any = group_of(&asked.status, name).is_some_and(is_in);
        let requests = asked.client.requests(name, Wanted::default(), deadline.left());
        let last = requests.ok().and_then(|found| found.requests.last().map(|one| one.number));
        Self { group: name.to_owned(), is_any, seen: (asked.name.clone(), last) }
    }

    /// In words.
    fn said(&self, description: &Description, domain: &Domain) -> String {
        let Self { group, is_any, seen: (node, last) } = self;
        let has = match is_any {
            true => format!(
                "a restore throws away what group {group} has now, with all that was \
                 acknowledged since the backup"
            ),
            false => format!("no member of group {group} is in"),
        };
        let seen = match last {
            Some(last) => {
                let last = grouped(*last);
                format!(" (node {node} has seen its order up to number {last})")
            }
            None => String::new(),
        };
        let of = match &description.domain {
            other if *other != domain.id => format!(" of domain {other}"),
            _ => String::new(),
        };
        format!(
            "{has}{seen}; the backup{of} is the state after {} requests and was taken {}",
            grouped(description.executed),
            backup::taken(description)
        )
    }

    const fn next(&self) -> &'static str {
        if self.is_any {
            "the same with --yes does it; quorba backup keeps what is there now, before"
        } else {
            "the same with --yes does it"
        }
    }
}

/// A file that says how far it was read.
struct Counted<'c> {
    file: File,
    context: &'c Context,
    progress: Progress,
    done: u64,
    total: u64,
}

impl<'c> Counted<'c> {
    fn open(context: &'c Context, path: &Path) -> Result<Self, Failure> {
        let open = || {
            let file = File::open(path)?;
            let total = file.metadata()?.len();
            Ok(Self { file, context, progress: Progress::default(), done: 0, total })
        };
        open().map_err(|error: io::Error| {
            let what = format!("{} cannot be read: {}", path.display(), system_reason(&error));
            let next = "give the file that quorba backup has written";
            Failure::new(codes::FILE, Exit::Failed, what, next)
        })
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.done += count as u64;
        self.progress.tell(self.context, self.done, self.total);
        Ok(count)
    }
}

/// The way from one member that has the state to all.
struct Whole<'a> {
    context: &'a Context,
    domain: &'a Domain,
    group: &'a str,
    deadline: Deadline,
}

impl Whole<'_> {
    fn wait(&self, first: &str, file: &Path, description: &Description) -> Result<Exit, Failure> {
        let mut told = String::new();
        loop {
            let asked = Asked::find(
                self.domain,
                self.group,
                Some(first),
                BackupRequest::Give,
                self.deadline,
            );
            let group = asked.ok().and_then(|asked| group_of(&asked.status, self.group).cloned());
            if let Some(group) = &group {
                let is_whole = is_whole(group);
                let says = members(group);
                if is_whole {
                    return self.done(group, first, file, description);
                }
                if says != told {
                    self.context.tell(format!("restored at {first}; members: {says}"));
                    told = says;
                }
            }
            if self.deadline.has_passed() {
                let what = format!(
                    "group {} has the state of {}, but not all members are in: {told}",
                    self.group,
                    file.display()
                );
                let next = format!("quorba group show {} shows how far they are", self.group);
                let failure = Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next);
                return Err(RestoreOutcome::First.told(failure));
            }
            thread::sleep(LOOK);
        }
    }

    fn done(
        &self,
        group: &GroupStatus,
        first: &str,
        file: &Path,
        description: &Description,
    ) -> Result<Exit, Failure> {
        let members = members(group);
        if self.context.is_json() {
            self.context.print_json(&json!({
                "group": self.group,
                "file": file,
                "node": first,
                "members": group.members,
                "backup": description,
            }))?;
        } else {
            self.context.print(&format!(
                "group {} has the state of {}; members: {members}\n",
                self.group,
                file.display()
            ))?;
        }
        Ok(Exit::Ok)
    }
}

/// All members that take part are in.
fn is_whole(group: &GroupStatus) -> bool {
    let fine = |state| matches!(state, MemberState::In | MemberState::Removed);
    group.members.iter().all(|member| fine(member.state))
}

fn members(group: &GroupStatus) -> String {
    let members = group.members.iter();
    let members: Vec<String> =
        members.map(|member| format!("{} {}", member.node, member.state.as_str())).collect();
    members.join(", ")
}
