//! `quorba group`: the groups of a running domain, and what an operator changes of them.

mod define;
mod list;
mod skip;

pub(crate) use self::define::from_file;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quorba_admin::status::{GroupStatus, MemberState, Status};
use quorba_admin::{AdminError, Change};
use quorba_base::policy::Style;
use quorba_config::Domain;
use quorba_giop::corbaloc::EscapedKey;
use serde_json::{Value, json};

use crate::args::{DomainFile, duration};
use crate::ask::{self, Answer, nobody_here, require_node};
use crate::catalog;
use crate::command::advise;
use crate::command::doctor::Doctor;
use crate::command::log::Log;
use crate::command::record::Record;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

const DEADLINE: Duration = Duration::from_secs(15);

/// Show the groups of a running domain, and change them while they work
///
/// A change has its place in the order like any request: all members change at the same request,
/// and none is lost. Which groups there are, and what their definitions say, every node has on its
/// disk: that outlives the end of all nodes, and wins over the domain file. Style, leader and
/// members that were removed last until the whole domain is stopped, and in a domain with a durable
/// group longer.
#[derive(Debug, Args)]
pub struct Group {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the groups with their ids, styles, leaders and members, and how they are reached
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        domain: DomainFile,
    },
    Create(Box<define::Create>),
    Delete(define::Delete),
    /// Show one group with its members and servers
    Show {
        /// The group
        group: String,

        #[command(flatten)]
        domain: DomainFile,
    },
    /// Change how the members of a group share the work
    Style {
        /// The group
        group: String,

        /// The style
        #[arg(value_parser = crate::args::style())]
        style: Style,

        /// Yes, the servers have no state that could be lost (for `stateless`)
        #[arg(long)]
        yes: bool,

        #[command(flatten)]
        domain: DomainFile,
    },
    /// Let the member on a node take part in its group again
    ///
    /// It gets the group's state from another member first. The domain file names the members that
    /// there can be.
    Add {
        /// The group
        group: String,

        /// The node whose member is to take part
        node: String,

        #[command(flatten)]
        domain: DomainFile,
    },
    /// Say that the server of a member that is out has the group's state
    ///
    /// Only you can know: nobody else can tell whose state is behind a connection to a server that
    /// somebody else started, or what a server has after the last member with the state was lost.
    /// The group goes on with what this server has. Requests whose replies only the lost members
    /// remembered are executed again if their clients repeat them.
    Adopt {
        /// The group
        group: String,

        /// The node whose member it is
        node: String,

        #[command(flatten)]
        domain: DomainFile,
    },
    /// Take the member on a node out of its group, until it is added again
    ///
    /// Its server is started anew and waits. Nodes that are started anew remember who was removed,
    /// as long as one node of the domain runs; with a durable group, always.
    Remove {
        /// The group
        group: String,

        /// The node whose member is to take no part
        node: String,

        #[command(flatten)]
        domain: DomainFile,
    },
    /// Say what a call would cost with each member as the leader, from what is measured now
    Advise {
        /// The group
        group: String,

        /// How long to measure
        #[arg(long, default_value_t = 2, value_name = "SECONDS")]
        #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
        seconds: u64,

        #[command(flatten)]
        domain: DomainFile,
    },
    /// Start the server of a member that is in quarantine at once, its failures forgiven
    Release {
        /// The group
        group: String,

        /// The node whose server it is
        node: String,

        #[command(flatten)]
        domain: DomainFile,
    },
    /// Give up a request that servers do not answer
    ///
    /// `quorba status` says which requests servers are at for longer than stuck_ms. All members go
    /// on behind it, over new connections; its client is told TIMEOUT, COMPLETED_MAYBE, and so is
    /// whoever repeats it. No server begins it again; one that has begun may finish it, so the
    /// members may differ, and `quorba status` says so until all have the state of one.
    Skip {
        /// The group
        group: String,

        /// The number of the request, as `quorba status` and `quorba group log` show it
        number: u64,

        /// It was answered, and servers end soon after it: nobody executes it from the log again
        ///
        /// For a durable group that does not come back because its servers end each time they are
        /// given the log. The client was told that the request was executed, and what it did is
        /// lost; so --yes is wanted, and no member may be in.
        #[arg(long)]
        answered: bool,

        /// What an acknowledged request did may be lost
        #[arg(long, requires = "answered")]
        yes: bool,

        #[command(flatten)]
        domain: DomainFile,
    },
    /// Show what a group ordered lately, with what became of it
    Log {
        /// The group
        group: String,

        /// How many of the last requests are shown first
        #[arg(short = 'n', long, default_value_t = 20, value_name = "NUMBER")]
        last: usize,

        /// Go on with what comes, until --timeout or the end of the command
        #[arg(short, long, conflicts_with = "disk")]
        follow: bool,

        #[command(flatten)]
        from: Source,
    },
    /// Write the requests of a group, as they are ordered, and their replies to a file
    Record {
        /// The group
        group: String,

        /// How long
        #[arg(long = "for", default_value = "60s", value_name = "TIME", value_parser = duration)]
        for_: Duration,

        /// The file, which must not exist
        #[arg(long, value_name = "FILE")]
        to: PathBuf,

        #[command(flatten)]
        from: Source,
    },
    /// Run a group's server twice on recorded requests, and show the first reply that differs
    ///
    /// Replicas that answer differently cannot stand in for each other. Both servers are fresh
    /// and run one after the other, on this machine and without the domain. Exit code 0: all
    /// replies, and the states at the end, are equal; 1: they are not.
    Doctor(Doctor),
    /// Make the member on a node the leader of its group
    Promote {
        /// The group
        group: String,

        /// The node whose member is to lead
        node: String,

        #[command(flatten)]
        domain: DomainFile,
    },
}

/// Where a group's requests are read.
#[derive(Debug, Args)]
struct Source {
    /// The node that is asked; otherwise the leader's, or one whose member is in
    #[arg(long)]
    node: Option<String>,

    /// Read the durable log on the node's disk instead (else the first member's node)
    #[arg(long)]
    disk: bool,

    #[command(flatten)]
    domain: DomainFile,
}

impl Source {
    fn domain(&self, context: &Context, group: &str) -> Result<Domain, Failure> {
        let domain = context.load(&self.domain.config)?;
        // A disk can be read when nobody runs, and says itself which groups it has.
        if !self.disk {
            catalog::require_known(context, &domain, group)?;
        }
        Ok(domain)
    }
}

impl Group {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self.command {
            What::List { domain } => list::list(context, &context.load(&domain.config)?),
            What::Create(create) => create.run(context),
            What::Delete(delete) => delete.run(context),
            What::Show { group, domain } => {
                crate::command::status::Status::of_group(group, domain).run(context)
            }
            What::Style { group, style, yes, domain } => {
                let domain = context.load(&domain.config)?;
                if style == Style::Stateless && !yes {
                    return Err(state_would_be_lost(context, &domain, &group));
                }
                change(context, &domain, &group, &Change::Style(style.as_str().to_owned()))
            }
            What::Add { group, node, domain } => {
                let domain = context.load(&domain.config)?;
                change(context, &domain, &group, &Change::Add(node))
            }
            What::Adopt { group, node, domain } => {
                let domain = context.load(&domain.config)?;
                change(context, &domain, &group, &Change::Adopt(node))
            }
            What::Remove { group, node, domain } => {
                let domain = context.load(&domain.config)?;
                change(context, &domain, &group, &Change::Remove(node))
            }
            What::Advise { group, seconds, domain } => {
                let domain = context.load(&domain.config)?;
                advise::advise(context, &domain, &group, Duration::from_secs(seconds))
            }
            What::Release { group, node, domain } => {
                release(context, &context.load(&domain.config)?, &group, node)
            }
            What::Skip { group, number, answered, yes, domain } => {
                let domain = context.load(&domain.config)?;
                match (answered, yes) {
                    (false, _) => skip::skip(context, &domain, &group, number),
                    (true, true) => skip::skip_answered(context, &domain, &group, number),
                    (true, false) => Err(skip::wants_yes(number)),
                }
            }
            What::Log { group, last, follow, from } => {
                let domain = from.domain(context, &group)?;
                let (node, disk) = (from.node.as_deref(), from.disk);
                Log { group: &group, node, disk, last, follow }.run(context, &domain)
            }
            What::Record { group, for_, to, from } => {
                let domain = from.domain(context, &group)?;
                let (node, disk) = (from.node.as_deref(), from.disk);
                Record { group: &group, node, disk, for_, to: &to }.run(context, &domain)
            }
            What::Doctor(doctor) => doctor.run(context),
            What::Promote { group, node, domain } => {
                let domain = context.load(&domain.config)?;
                change(context, &domain, &group, &Change::Promote(node))
            }
        }
    }
}

fn state_would_be_lost(context: &Context, domain: &Domain, group: &str) -> Failure {
    let definition = catalog::find_group(context, domain, group).ok();
    let state = definition.as_ref().and_then(|group| group.state_object.as_deref());
    let has = state.map_or_else(String::new, |key| {
        format!(" It names a state_object, `{}`, so its servers have a state.", EscapedKey(key))
    });
    let what = format!(
        "each request of a stateless group is executed by one member only: what group {group} has \
         acknowledged until now, and from now on, would be known to some of its members and lost \
         with them.{has}"
    );
    let next = "add --yes if its servers keep nothing, or keep it elsewhere";
    Failure::new(codes::STATE_UNSAID, Exit::Usage, what, next)
}

fn group_json(group: &GroupStatus) -> Value {
    json!({
        "group": group.name,
        "style": group.style,
        "leader": group.leader,
        "members": group.members,
        "executed": group.executed,
        "reference_version": group.reference_version,
    })
}

/// Has a node order the change, and shows what came of it.
fn change(
    context: &Context,
    domain: &Domain,
    group: &str,
    change: &Change,
) -> Result<Exit, Failure> {
    catalog::require_known(context, domain, group)?;
    match change {
        Change::Promote(node)
        | Change::Release(node)
        | Change::Add(node)
        | Change::Adopt(node)
        | Change::Remove(node) => {
            require_node(domain, node)?;
        }
        Change::Style(_) | Change::Skip(_) | Change::SkipAnswered(_) => {}
    }
    let deadline = context.deadline(DEADLINE);
    let answers = ask::everyone(domain, deadline.left());
    // A node in the primary component can order something; the others would only say so.
    let able = |answer: &&Answer| answer.status.as_ref().is_ok_and(|status| status.ring.primary);
    let asked = answers.iter().find(able).or(answers.iter().find(|a| a.status.is_ok()));
    let asked = asked.ok_or_else(|| nobody_here(domain))?;
    let client = &asked.client;
    let refused = |error: AdminError| refused(&asked.node, group, &error);
    client.change(group, change, deadline.left()).map_err(refused)?;
    let status = client.status(deadline.left()).map_err(refused)?;
    show(context, &status, group)?;
    Ok(Exit::Ok)
}

/// Only a server's own node knows how it does, so that one is asked.
fn release(context: &Context, domain: &Domain, group: &str, name: String) -> Result<Exit, Failure> {
    catalog::require_known(context, domain, group)?;
    let deadline = context.deadline(DEADLINE);
    let node = require_node(domain, &name)?;
    let answers = ask::everyone(domain, deadline.left());
    let answer = answers.iter().find(|answer| answer.node == name).expect("all are asked");
    if answer.status.is_err() {
        return Err(ask::no_word(domain, &answers, group, Some(&name)));
    }
    let client = &answer.client;
    let change = Change::Release(name);
    let refused = |error: AdminError| refused(&node.name, group, &error);
    client.change(group, &change, deadline.left()).map_err(refused)?;
    if context.is_json() {
        context.print_json(&json!({ "group": group, "released": node.name }))?;
    } else {
        context.print(&format!("the server of group {group} on {} may start\n", node.name))?;
    }
    Ok(Exit::Ok)
}

fn show(context: &Context, status: &Status, name: &str) -> Result<(), Failure> {
    let Some(group) = status.groups.iter().find(|group| group.name == name) else { return Ok(()) };
    if context.is_json() {
        return context.print_json(&group_json(group));
    }
    let leader = match &group.leader {
        Some(leader) => format!(", led by {leader}"),
        None => String::new(),
    };
    let members = group.members.iter();
    let members: Vec<String> = members
        .map(|member| match member.state {
            MemberState::In => member.node.clone(),
            state => format!("{} ({})", member.node, state.as_str()),
        })
        .collect();
    let members = members.join(", ");
    context.print(&format!("group {name} is {}{leader}; members: {members}\n", group.style))
}

/// What helps against a refusal, as far as its words say it.
fn next_after(group: &str, refusal: &str) -> String {
    let says = |words: &str| refusal.contains(words);
    if says("primary component") {
        "quorba status shows which nodes are missing".to_owned()
    } else if says("state_object") {
        format!("name the key of the servers' FT::Checkpointable as state_object of {group}")
    } else if says("does not list it under `members`") {
        format!("quorba group show {group} shows its members")
    } else if says("no request with number") {
        format!("quorba group log {group} shows what became of it")
    } else if says("there is no group") {
        ask::CREATE_OR_LOOK.to_owned()
    } else {
        format!("quorba group show {group} shows the group as it is")
    }
}

pub(super) fn refused(node: &str, group: &str, error: &AdminError) -> Failure {
    let what = format!("node {node}: {error}");
    match error {
        AdminError::Conflict { .. } => Failure::new(
            codes::CHANGE_REFUSED,
            Exit::Failed,
            what,
            next_after(group, &error.to_string()),
        ),
        AdminError::Timeout { .. } => Failure::new(
            codes::TIMED_OUT,
            Exit::TimedOut,
            what,
            "quorba group list shows whether the change was made",
        ),
        _ => Failure::new(
            codes::NOBODY_ANSWERS,
            Exit::Failed,
            what,
            "quorba status shows which nodes answer",
        ),
    }
}
