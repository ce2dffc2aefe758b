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
use quorba_config::Domain;
use quorba_node::backup::Description;
use quorba_node::status::{GroupStatus, MemberState};
use serde_json::json;

use crate::args::DomainFile;
use crate::command::backup::{self, Asked, Patience, Progress, Wish, group_of};
use crate::command::status::require_group;
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
        let group = require_group(&domain, &self.group)?;
        let deadline = context.deadline(DEADLINE);
        let (description, _) = backup::read(context, &self.file)?;
        description.check_for(group).map_err(|why| {
            let what = format!("{}: {why}", self.file.display());
            let next = format!(
                "give --group {}, or a domain file in which the group is what it was",
                description.group
            );
            Failure::new(codes::BACKUP_FILE, Exit::Failed, what, next)
        })?;
        let node = self.node.as_deref();
        let asked = Asked::find(&domain, &self.group, node, Wish::Give, deadline)?;
        let loss = loss(&asked, &self.group, &description);
        if !self.yes {
            let what = format!("nothing was done: {loss}");
            let next = "the same with --yes does it; quorba backup keeps what is there now, before";
            return Err(Failure::new(codes::RESTORE_UNSAID, Exit::Usage, what, next));
        }
        context.tell(&loss);
        if description.domain != domain.id {
            context.tell(format!("the backup is of domain {}", description.domain));
        }
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
        let mut waited = Patience::default();
        let node = self.node.as_deref();
        loop {
            let asked = Asked::find(domain, &self.group, node, Wish::Give, deadline)?;
            let mut file = Counted::open(context, &self.file)?;
            match asked.client.restore(&self.group, &mut file, deadline.left()) {
                Ok(()) => return Ok(asked.name),
                Err(error) => waited.heed(context, &asked.name, &error, deadline)?,
            }
        }
    }
}

/// What a restore costs, in words. A node that was started later does not know how much the group
/// has executed in all.
fn loss(asked: &Asked, name: &str, description: &Description) -> String {
    let group = group_of(&asked.status, name);
    let is_in =
        |group: &GroupStatus| group.members.iter().any(|member| member.state == MemberState::In);
    let has = if group.is_some_and(is_in) {
        let executed = group.map_or(0, |group| group.executed);
        format!(
            "THROWN AWAY is what group {name} has now, with all that was acknowledged since \
             the backup ({} has executed {} requests since it was started)",
            asked.name,
            grouped(executed)
        )
    } else {
        format!("no member of group {name} is in: nothing but the backup is left")
    };
    format!(
        "{has}; the backup has {} requests and was taken {}",
        grouped(description.executed),
        backup::taken(description)
    )
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
            let asked =
                Asked::find(self.domain, self.group, Some(first), Wish::Give, self.deadline);
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
                return Err(Failure::new(codes::TIMED_OUT, Exit::TimedOut, what, next));
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
