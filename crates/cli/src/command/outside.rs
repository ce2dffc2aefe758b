//! `quorba outside`: the servers outside of a running domain, which its groups call.
//!
//! What it is not: a way to write the domain file, with which a domain begins; nor a look at these
//! servers: whether one answers, its callers see. Invariant: what cannot be, as far as it is seen
//! here, is not asked for.

use std::time::Duration;

use clap::{Args, Subcommand};
use quorba_admin::CatalogChange;
use quorba_base::policy::OnDoubt;
use quorba_config::{Definition, Domain, Kind, check_definition};
use serde_json::{Value, json};

use crate::args::{DomainFile, Operation};
use crate::catalog::{self, Running};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;
use crate::text::table;

const DEADLINE: Duration = Duration::from_secs(30);

/// Show the servers outside that groups of a running domain call, and change them
///
/// Such a server is not in the domain: nobody replicates it. A group that has it in `calls` makes
/// each call of its servers once. A change has its place in the order, and is on disk at a majority
/// of the nodes before the command ends.
#[derive(Debug, Args)]
pub struct Outside {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the servers outside with their addresses and the groups that call them
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        domain: DomainFile,
    },
    /// Let groups that are created from now on call one more server
    ///
    /// Enter it in the domain file, too: a domain that begins anew begins with its file.
    Create {
        /// Its name, which no group has; servers of groups find it as {call.NAME} and {url.NAME}
        name: String,

        /// Where it is: an IOR, a corbaloc, or a file that has one of them
        #[arg(long, value_name = "REFERENCE")]
        reference: String,

        #[command(flatten)]
        keys: Keys,
    },
    /// Change where a server outside is, or how it is called
    ///
    /// Calls that are made from then on go to the new address. A server of a group that has the
    /// object key in its command line, by {url.NAME}, is told a new one when it is started next.
    Change {
        /// The server
        name: String,

        /// Where it is: an IOR, a corbaloc, or a file that has one of them
        #[arg(long, value_name = "REFERENCE")]
        reference: Option<String>,

        #[command(flatten)]
        keys: Keys,
    },
    /// Forget a server outside that no group calls
    Delete {
        /// The server
        name: String,

        #[command(flatten)]
        keys: Common,
    },
}

#[derive(Debug, Args)]
struct Keys {
    /// What its callers hear when nobody knows whether it has executed a call
    #[arg(long, value_parser = crate::args::on_doubt())]
    on_doubt: Option<OnDoubt>,

    /// How long it may take until it accepts a connection
    #[arg(long, value_name = "MS")]
    connect_ms: Option<u64>,

    /// How long it may take to reply
    #[arg(long, value_name = "MS")]
    reply_ms: Option<u64>,

    /// The longest reply
    #[arg(long, value_name = "BYTES")]
    reply_bytes: Option<u64>,

    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    named: Operation,

    #[command(flatten)]
    domain: DomainFile,
}

impl Keys {
    /// With their values as TOML.
    fn entries(&self, reference: Option<&str>) -> Result<Vec<(String, String)>, Failure> {
        // Servers write theirs to files.
        let reference = reference.map(reference::read_text).transpose()?;
        let numbers = [
            ("connect_ms", self.connect_ms),
            ("reply_ms", self.reply_ms),
            ("reply_bytes", self.reply_bytes),
        ];
        let numbers = numbers.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let texts =
            [("reference", reference.as_deref()), ("on_doubt", self.on_doubt.map(OnDoubt::as_str))];
        let texts = texts.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let entries = texts.map(|(key, value)| (key.to_owned(), json!(value).to_string()));
        Ok(entries.chain(numbers.map(|(key, value)| (key.to_owned(), value.to_string()))).collect())
    }
}

impl Outside {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self.command {
            What::List { domain } => list(context, &context.load(&domain.config)?),
            What::Create { name, reference, keys } => {
                let entries = keys.entries(Some(&reference))?;
                let definition = Definition::of_outside(&name, &entries);
                let definition = definition.map_err(|why| unusable(&name, &why))?;
                define(context, &keys.common, CatalogChange::Create(definition))
            }
            What::Change { name, reference, keys } => {
                let entries = keys.entries(reference.as_deref())?;
                let definition = changed(context, &keys.common, &name, &entries)?;
                define(context, &keys.common, CatalogChange::Change(definition))
            }
            What::Delete { name, keys } => define(context, &keys, CatalogChange::Delete(name)),
        }
    }
}

/// The server as it runs, with what is to be different.
fn changed(
    context: &Context,
    common: &Common,
    name: &str,
    entries: &[(String, String)],
) -> Result<Definition, Failure> {
    if entries.is_empty() {
        let what = format!("nothing is said of what is to be different of server {name}");
        let next = "give one of --reference, --on-doubt, --connect-ms, --reply-ms, --reply-bytes";
        return Err(Failure::new(codes::USAGE, Exit::Usage, what, next));
    }
    let domain = context.load(&common.domain.config)?;
    let running = Running::ask(&domain, &context.deadline(DEADLINE))?;
    let found = running.definitions.iter().find(|one| one.name == name);
    let found = found.filter(|one| one.kind() == Kind::Outside).ok_or_else(|| {
        let what = format!("domain {} has no server outside called {name:?}", domain.id);
        let next = "quorba outside list shows those that there are";
        Failure::new(codes::NOT_IN_DOMAIN, Exit::Usage, what, next)
    })?;
    found.changed(entries).map_err(|why| unusable(name, &why))
}

fn unusable(name: &str, why: &str) -> Failure {
    let what = format!("server outside {name}: {why}");
    Failure::new(codes::USAGE, Exit::Usage, what, "quorba outside create --help shows the options")
}

/// Has it ordered, and says what came of it.
fn define(context: &Context, common: &Common, change: CatalogChange) -> Result<Exit, Failure> {
    let domain = context.load(&common.domain.config)?;
    let deadline = context.deadline(DEADLINE);
    let running = Running::ask(&domain, &deadline)?;
    match &change {
        // Whether it is there already the nodes say: the command may be a repeated one.
        CatalogChange::Create(definition) | CatalogChange::Change(definition) => {
            let mut known = running.known();
            known.remove(&definition.name);
            let (defined, report) = check_definition(&domain, &definition.text, &known);
            defined.ok_or_else(|| catalog::wrong(context, &definition.title(), &report))?;
        }
        CatalogChange::Delete(name) => running.check_delete(Kind::Outside, name)?,
    }
    let operation = common.named.operation();
    let defined = catalog::define(&domain, &operation, &change, &deadline)?;
    catalog::print_defined(context, (Kind::Outside, &change), (&operation, &defined))?;
    catalog::tell_of_file(context, &domain, &change);
    Ok(Exit::Ok)
}

fn list(context: &Context, domain: &Domain) -> Result<Exit, Failure> {
    let running = Running::ask(domain, &context.deadline(DEADLINE))?;
    let servers: Vec<Listed> = running
        .definitions
        .iter()
        .filter(|one| one.kind() == Kind::Outside)
        .map(|one| Listed::of(one, &running.definitions))
        .collect();
    if context.is_json() {
        servers.iter().try_for_each(|one| context.print_json(&one.json()))?;
        return Ok(Exit::Ok);
    }
    let rows = servers.iter().map(|one| {
        let callers = if one.callers.is_empty() { "-".into() } else { one.callers.join(",") };
        vec![one.name.clone(), one.address(), one.key("on_doubt").unwrap_or("fail").into(), callers]
    });
    context.print(&table(&["SERVER", "REFERENCE", "ON DOUBT", "CALLED BY"], rows.collect()))?;
    Ok(Exit::Ok)
}

/// A server outside, for a list.
struct Listed {
    name: String,
    entries: Vec<(String, String)>,
    callers: Vec<String>,
}

impl Listed {
    fn of(definition: &Definition, all: &[Definition]) -> Self {
        let name = definition.name.clone();
        let calls_it = |one: &&Definition| one.calls().contains(&name);
        let callers = all.iter().filter(calls_it).map(|one| one.name.clone()).collect();
        Self { name, entries: definition.entries(), callers }
    }

    /// What is said of it under this key.
    fn key(&self, key: &str) -> Option<&str> {
        let found = self.entries.iter().find(|(one, _)| one == key);
        found.map(|(_, value)| value.trim_matches('"'))
    }

    fn address(&self) -> String {
        let reference = self.key("reference").unwrap_or("-");
        reference::readable(reference)
    }

    fn json(&self) -> Value {
        let number = |key: &str| self.key(key).and_then(|value| value.parse::<u64>().ok());
        json!({
            "outside": self.name,
            "reference": self.key("reference"),
            "on_doubt": self.key("on_doubt").unwrap_or("fail"),
            "connect_ms": number("connect_ms"),
            "reply_ms": number("reply_ms"),
            "reply_bytes": number("reply_bytes"),
            "called_by": self.callers,
        })
    }
}
