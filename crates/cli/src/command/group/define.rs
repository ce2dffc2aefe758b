//! `quorba group create` and `quorba group delete`: the groups that a running domain has.
//!
//! What it is not: a way to write the domain file, with which a domain begins. Invariant: what
//! cannot be, as far as it is seen here, is not asked for.

use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use quorba_admin::CatalogChange;
use quorba_base::policy::Style;
use quorba_config::{self as config, Backend, Definition, Group, Kind, check_definition};
use serde_json::json;

use crate::args::{DomainFile, Operation};
use crate::catalog::{self, Running};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;
use crate::text::system_reason;

const DEADLINE: Duration = Duration::from_secs(30);
/// A file with definitions is not longer.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Create a group in the running domain
///
/// What the group is comes from a file, or from the options; both are what `[group.NAME]` of the
/// domain file would say. All nodes create it at the same place in the order. Enter it in the
/// domain file, too: a domain that begins anew begins with its file.
#[derive(Debug, Args)]
pub struct Create {
    /// The group's name
    group: String,

    /// A file with its section, or a whole domain file that has it
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["members", "server", "connect", "style", "state_object",
        "object_key", "durable", "listen", "set"])]
    from: Option<PathBuf>,

    /// The nodes that carry a replica, such as n1,n2,n3
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    members: Vec<String>,

    /// What starts a server: the program and its arguments, with blanks between them
    #[arg(long, value_name = "COMMAND", conflicts_with = "connect")]
    server: Option<String>,

    /// A server that runs already: n1=10.0.0.1:6000, n1=IOR:..., or n1=FILE, a file with its IOR;
    /// once for each member
    #[arg(long, value_name = "NODE=WHERE")]
    connect: Vec<String>,

    /// How the members share the work
    #[arg(long, value_parser = crate::args::style())]
    style: Option<Style>,

    /// The object key of the servers' FT::Checkpointable
    #[arg(long, value_name = "KEY")]
    state_object: Option<String>,

    /// The object key of the reference that `quorba ior make` prints
    #[arg(long, value_name = "KEY")]
    object_key: Option<String>,

    /// What is acknowledged survives the end of all nodes
    #[arg(long)]
    durable: bool,

    /// A gateway port of its own on every node; without one clients use that of `[gateway]`
    #[arg(long, value_name = "PORT")]
    listen: Option<u16>,

    /// Any other key, as it would stand in the file, such as server_reply_ms=1000
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    named: Operation,

    #[command(flatten)]
    domain: DomainFile,
}

/// Delete a group of the running domain
///
/// Its servers are ended, its gateways closed, and what it had acknowledged is lost, on disks, too.
/// Take it out of the domain file as well: a domain that begins anew begins with its file.
#[derive(Debug, Args)]
pub struct Delete {
    /// The group
    group: String,

    /// Yes, its state may be lost
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    named: Operation,

    #[command(flatten)]
    domain: DomainFile,
}

impl Create {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let domain = context.load(&self.domain.config)?;
        let deadline = context.deadline(DEADLINE);
        let definition = match &self.from {
            Some(path) => from_file(context, &self.group, path)?,
            None => self.definition(context)?,
        };
        let running = Running::ask(&domain, &deadline)?;
        let mut known = running.known();
        // Whether it is there already the nodes say: the command may be a repeated one.
        known.remove(&self.group);
        let (defined_as, report) = check_definition(&domain, &definition.text, &known);
        let Some(defined_as) = defined_as else {
            return Err(catalog::wrong(context, &definition.title(), &report));
        };
        if !report.problems().is_empty() && !context.is_json() {
            context.tell(report.render(context.colours_stderr()).trim_end());
        }
        let operation = self.named.operation();
        let change = CatalogChange::Create(definition);
        let defined = catalog::define(&domain, &operation, &change, &deadline)?;
        catalog::print_defined(context, (Kind::Group, &change), (&operation, &defined))?;
        if let (false, config::Defined::Group(group)) = (context.is_json(), &defined_as) {
            tell_of_states(context, group);
        }
        catalog::tell_of_file(context, &domain, &change);
        Ok(Exit::Ok)
    }

    /// What the options say, as the file would.
    fn definition(&self, context: &Context) -> Result<Definition, Failure> {
        let mut text = format!("[group.{}]\n", quoted(&self.group));
        let mut say = |key: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{key} = {value}");
        };
        if !self.members.is_empty() {
            say("members", &json!(self.members).to_string());
        }
        if let Some(server) = &self.server {
            say("server", &json!(server.split_whitespace().collect::<Vec<_>>()).to_string());
        }
        if !self.connect.is_empty() {
            let servers = self.connect.iter().map(|one| {
                let (node, place) = parts("--connect", one)?;
                Ok(format!("{} = {}", quoted(node), quoted(&where_it_is(node, place)?)))
            });
            let servers: Vec<String> = servers.collect::<Result<_, Failure>>()?;
            say("connect", &format!("{{ {} }}", servers.join(", ")));
        }
        let texts = [
            ("style", self.style.map(Style::as_str)),
            ("state_object", self.state_object.as_deref()),
            ("object_key", self.object_key.as_deref()),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                say(key, &quoted(value));
            }
        }
        if self.durable {
            say("durable", "true");
        }
        if let Some(port) = self.listen {
            say("listen", &port.to_string());
        }
        for one in &self.set {
            let (key, value) = parts("--set", one)?;
            say(key, value);
        }
        Definition::parse(&text)
            .map_err(|report| catalog::wrong(context, &format!("group {}", self.group), &report))
    }
}

/// Where a server is, as the definition says it: servers write their references to files.
fn where_it_is(node: &str, place: &str) -> Result<String, Failure> {
    if reference::is_reference(place) {
        return Ok(place.to_owned());
    }
    if Path::new(place).is_file() {
        let text = reference::read_text(place)?;
        return reference::parse(&text).map(|_| text);
    }
    if place.contains(':') {
        return Ok(place.to_owned());
    }
    let what = format!("--connect {node}={place}: that is no host:port, no reference and no file");
    let next = "give the address of the server, the IOR of its object, or the file that it is in";
    Err(Failure::new(codes::USAGE, Exit::Usage, what, next))
}

/// A text as TOML writes it; JSON's way is one of its ways.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}

fn parts<'t>(option: &str, text: &'t str) -> Result<(&'t str, &'t str), Failure> {
    text.split_once('=').ok_or_else(|| {
        let what = format!("{option} {text}: there is no = in it");
        let next = format!("write it as {option} NAME=VALUE");
        Failure::new(codes::USAGE, Exit::Usage, what, next)
    })
}

/// What a file says of a group: one with its section, or a whole domain file.
pub(crate) fn from_file(
    context: &Context,
    group: &str,
    path: &Path,
) -> Result<Definition, Failure> {
    let unreadable = |error: &std::io::Error| {
        let what = format!("{} cannot be read: {}", path.display(), system_reason(error));
        let next = "give the path of a file with [group.NAME]";
        Failure::new(codes::FILE, Exit::Failed, what, next)
    };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| unreadable(&error))?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    Definition::find(group, path, &text)
        .map_err(|report| catalog::wrong(context, &format!("group {group}"), &report))
}

/// Whose state it is at the beginning: that of the server that comes in first.
fn tell_of_states(context: &Context, group: &Group) {
    let is_elsewhere = matches!(group.backend, Backend::Connect(_));
    let is_given = group.state_object.is_some() && group.style != Style::Stateless;
    if is_elsewhere && is_given && group.members.len() > 1 {
        context.tell(
            "note: the first of its servers that is found gives its state to the others; if it is \
             to be a certain one, create the group with that member, and add the others by quorba \
             config apply",
        );
    }
}

impl Delete {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let domain = context.load(&self.domain.config)?;
        let deadline = context.deadline(DEADLINE);
        if !self.yes {
            let group = &self.group;
            let what = format!("the servers of group {group} would be ended, and its state lost");
            let next = "the same with --yes does it; quorba backup keeps its state";
            return Err(Failure::new(codes::DELETE_UNSAID, Exit::Usage, what, next));
        }
        let running = Running::ask(&domain, &deadline)?;
        running.check_delete(Kind::Group, &self.group)?;
        let operation = self.named.operation();
        let change = CatalogChange::Delete(self.group.clone());
        let defined = catalog::define(&domain, &operation, &change, &deadline)?;
        catalog::print_defined(context, (Kind::Group, &change), (&operation, &defined))?;
        catalog::tell_of_file(context, &domain, &change);
        Ok(Exit::Ok)
    }
}
