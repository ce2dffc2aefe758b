//! `quorba naming`: what is bound in a naming service, for people and scripts.
//!
//! What it is not: tied to the domain's own service. With `--at` it asks any naming service.
//!
//! Invariant: a name that does not exist, or exists already, is a failure with an exit code.

mod file;
mod import;
mod names;
mod refusal;
mod walk;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use quorba_config::Service;
use quorba_corba::Object;
use quorba_giop::Endian;
use quorba_giop::corbaloc::Corbaloc;
use quorba_idl::cos_naming::naming_context::NotFoundReason;
use quorba_idl::cos_naming::{BindingType, Name};
use serde_json::json;

use super::ior;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::reference;
use crate::text::{system_reason, table};
use file::Lines;
use import::Import;
use names::Names;
use refusal::Refusal;
use walk::{Bound, walk};

const DEADLINE: Duration = Duration::from_secs(30);
/// For what goes through everything.
const LONG_DEADLINE: Duration = Duration::from_secs(3600);

/// Show and change what is bound in a naming service
///
/// Names are written as in a/b.kind; \ stands before a / or . of an identifier. The naming service
/// is that of the domain file, or any other with --at.
#[derive(Debug, Args)]
pub struct Naming {
    #[command(subcommand)]
    action: Action,

    /// A naming service that is not the domain's: host:port, corbaloc:..., corbaname:..., IOR:...
    /// or a file
    #[arg(long, global = true, value_name = "REF")]
    at: Option<String>,

    /// The node whose gateway is asked first
    #[arg(long, global = true, value_name = "NODE", conflicts_with = "at")]
    first: Option<String>,

    /// The domain file
    #[arg(short, long, global = true, value_name = "FILE", env = "QUORBA_CONFIG")]
    #[arg(hide_env_values = true, default_value = "quorba.toml")]
    config: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what is bound in a context
    Ls {
        /// The context [default: the root]
        name: Option<String>,
    },
    /// Show all contexts and bindings below a context
    Tree {
        /// The context [default: the root]
        name: Option<String>,
    },
    /// Print the reference that a name is bound to
    Resolve {
        /// The name
        name: String,

        /// Print a corbaloc, which people can read, instead of an IOR
        #[arg(long)]
        corbaloc: bool,
    },
    /// Bind a name to an object, or to a context of another naming service
    Bind(Bind),
    /// Bind a name to an object, or a context, in place of another
    Rebind(Bind),
    /// Take a binding away; what was bound stays as it is
    Unbind {
        /// The name
        name: String,
    },
    /// Make a context and bind it
    Mkctx {
        /// The context
        name: String,

        /// Make those before it, too, and do not mind if they are there
        #[arg(short, long)]
        parents: bool,
    },
    /// Bind what is bound in another naming service, or in a file
    ///
    /// Contexts are made here, and objects bound by their references. Names that are there already
    /// stay as they are; those bound to something else are told of, and make the exit code 1.
    Import(ImportFrom),
    /// Write everything that is bound to a file, one JSON object to a line
    Export {
        /// The file [default: standard output]
        file: Option<PathBuf>,

        /// The context to begin at [default: the root]
        #[arg(long, value_name = "NAME")]
        under: Option<String>,
    },
}

#[derive(Debug, Args)]
struct Bind {
    /// The name
    name: String,

    /// IOR:..., corbaloc:..., corbaname:..., a file that holds one, or - for standard input
    #[arg(value_name = "REF")]
    reference: String,

    /// It is a naming context, of any naming service: names go on in it
    #[arg(long)]
    context: bool,
}

#[derive(Debug, Args)]
struct ImportFrom {
    /// A file that `quorba naming export` wrote
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    file: Option<PathBuf>,

    /// A naming service, such as omniNames: host:port, corbaloc:..., IOR:... or a file with one
    #[arg(long, value_name = "REF")]
    from: Option<String>,

    /// The context here to bind it in [default: the root]
    #[arg(long, value_name = "NAME")]
    under: Option<String>,

    /// Put objects in the place of others that have their names
    #[arg(long)]
    replace: bool,
}

impl Naming {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let mut names = self.names(context)?;
        let root = names.root();
        match self.action {
            Action::Ls { name } => ls(context, &mut names, &name_or_root(name)?),
            Action::Tree { name } => tree(context, &mut names, &name_or_root(name)?),
            Action::Resolve { name, corbaloc } => {
                resolve(context, &mut names, &names::parse(&name)?, corbaloc)
            }
            Action::Bind(bind) => {
                let (name, object) = bind.read()?;
                let done = match bind.context {
                    true => names.call(&root, &name, |it, name| it.bind_context(name, &object)),
                    false => names.call(&root, &name, |it, name| it.bind(name, &object)),
                };
                told(context, &names, &name, "bound", done)
            }
            Action::Rebind(bind) => {
                let (name, object) = bind.read()?;
                let done = match bind.context {
                    true => names.call(&root, &name, |it, name| it.rebind_context(name, &object)),
                    false => names.call(&root, &name, |it, name| it.rebind(name, &object)),
                };
                told(context, &names, &name, "bound", done)
            }
            Action::Unbind { name } => {
                let name = names::parse(&name)?;
                let done = names.call(&root, &name, |stub, name| stub.unbind(name));
                told(context, &names, &name, "unbound", done)
            }
            Action::Mkctx { name, parents } => {
                mkctx(context, &mut names, &names::parse(&name)?, parents)
            }
            Action::Import(from) => from.run(context, &mut names),
            Action::Export { file, under } => {
                export(context, &mut names, file.as_deref(), &name_or_root(under)?)
            }
        }
    }

    fn names(&self, context: &Context) -> Result<Names, Failure> {
        let long =
            matches!(self.action, Action::Import(_) | Action::Export { .. } | Action::Tree { .. });
        let deadline = context.deadline(if long { LONG_DEADLINE } else { DEADLINE });
        if let Some(at) = &self.at {
            return Names::new(names::root_of(at)?, deadline, false);
        }
        let domain = context.load(&self.config)?;
        let service = Service::Naming.as_str();
        let ior = ior::of_group(context, &domain, service, self.first.as_deref());
        let ior = ior.map_err(|failure| match failure.code {
            codes::NOT_IN_DOMAIN if self.first.is_none() => {
                let what = format!("domain {} has no naming service", domain.id);
                let next = "write [service.naming] into the domain file and run quorba config \
                            apply; or name another service with --at";
                Failure::new(codes::NOT_IN_DOMAIN, failure.exit, what, next)
            }
            _ => failure,
        })?;
        Names::new(Object(ior), deadline, true)
    }
}

impl Bind {
    fn read(&self) -> Result<(Name, Object), Failure> {
        let name = names::parse(&self.name)?;
        let text = reference::read_text(&self.reference)?;
        Ok((name, Object(reference::resolve(&text)?)))
    }
}

fn name_or_root(name: Option<String>) -> Result<Name, Failure> {
    name.map_or_else(|| Ok(Name::new()), |name| names::parse(&name))
}

/// Says that something was done with a name.
fn told(
    context: &Context,
    names: &Names,
    name: &Name,
    what: &str,
    done: Result<(), Refusal>,
) -> Result<Exit, Failure> {
    done.map_err(|refusal| names.failure(refusal, name))?;
    let name = names::text(name);
    match context.is_json() {
        true => context.print_json(&json!({ "name": name, "done": what }))?,
        false => context.print(&format!("{what}: {name}\n"))?,
    }
    Ok(Exit::Ok)
}

/// The context of that name.
fn context_at(names: &mut Names, name: &Name) -> Result<Object, Failure> {
    let root = names.root();
    let found = names.resolve(&root, name).and_then(|object| {
        match name.is_empty() || names.is_context(&root, name)? {
            true => Ok(object),
            false => Err(not_context(name)),
        }
    });
    found.map_err(|refusal| names.failure(refusal, name))
}

/// The last part of a name is an object.
fn not_context(name: &Name) -> Refusal {
    let last = name.iter().rev().take(1).cloned().collect();
    Refusal::NotFound(NotFoundReason::NotContext, last)
}

const fn word(kind: BindingType) -> &'static str {
    match kind {
        BindingType::Nobject => "object",
        BindingType::Ncontext => "context",
    }
}

fn ls(context: &Context, names: &mut Names, name: &Name) -> Result<Exit, Failure> {
    let object = context_at(names, name)?;
    let list = names.list(&object).map_err(|refusal| names.failure(refusal, name))?;
    if context.is_json() {
        for binding in &list {
            let (name, kind) = (names::text(&binding.binding_name), word(binding.binding_type));
            context.print_json(&json!({ "name": name, "type": kind }))?;
        }
        return Ok(Exit::Ok);
    }
    if !list.is_empty() {
        let cells = list.iter().map(|binding| {
            vec![word(binding.binding_type).to_owned(), names::text(&binding.binding_name)]
        });
        context.print(&table(&["TYPE", "NAME"], cells.collect()))?;
    }
    Ok(Exit::Ok)
}

fn tree(context: &Context, names: &mut Names, name: &Name) -> Result<Exit, Failure> {
    let top = context_at(names, name)?;
    let mut shown = Vec::new();
    walk(names, &top, |path, item| {
        let text = names::text(path);
        if context.is_json() {
            return context.print_json(&match item.bound {
                Bound::Object(object) => {
                    json!({ "name": text, "type": "object", "ior": ior_text(&object) })
                }
                Bound::Context(number) => {
                    json!({ "name": text, "type": "context", "context": number })
                }
                Bound::Foreign(object) => {
                    json!({ "name": text, "type": "foreign-context", "ior": ior_text(&object) })
                }
            });
        }
        shown.push((path.clone(), item.bound));
        Ok(())
    })?;
    if !context.is_json() {
        context.print(&picture(shown))?;
    }
    Ok(Exit::Ok)
}

/// What is below what, each a step further to the right.
fn picture(mut shown: Vec<(Name, Bound)>) -> String {
    let key = |name: &Name| -> Vec<(String, String)> {
        name.iter().map(|part| (part.id.clone(), part.kind.clone())).collect()
    };
    shown.sort_by_key(|(name, _)| key(name));
    let mut first = std::collections::BTreeMap::new();
    let mut text = String::new();
    for (name, bound) in shown {
        let Some((last, before)) = name.split_last() else { continue };
        text.push_str(&"  ".repeat(before.len()));
        text.push_str(&names::text(&vec![last.clone()]));
        text.push_str(&match bound {
            Bound::Object(_) => String::new(),
            Bound::Foreign(object) => {
                let place = Corbaloc::from_ior(&object.0).map(|place| place.to_string());
                format!("/  -> {}", place.unwrap_or_default())
            }
            Bound::Context(number) => match first.get(&number) {
                Some(earlier) => format!("/  = {earlier}"),
                None => {
                    first.insert(number, names::text(&name));
                    "/".to_owned()
                }
            },
        });
        text.push('\n');
    }
    text
}

fn ior_text(object: &Object) -> String {
    object.0.stringify(Endian::Big)
}

fn resolve(
    context: &Context,
    names: &mut Names,
    name: &Name,
    as_corbaloc: bool,
) -> Result<Exit, Failure> {
    let root = names.root();
    let object = names.resolve(&root, name).map_err(|refusal| names.failure(refusal, name))?;
    let corbaloc = Corbaloc::from_ior(&object.0).map(|corbaloc| corbaloc.to_string());
    if context.is_json() {
        context.print_json(&json!({
            "name": names::text(name),
            "type_id": String::from_utf8_lossy(&object.0.type_id),
            "nil": object.is_nil(),
            "ior": ior_text(&object),
            "corbaloc": corbaloc,
        }))?;
        return Ok(Exit::Ok);
    }
    let text = corbaloc.filter(|_| as_corbaloc).unwrap_or_else(|| ior_text(&object));
    context.print(&format!("{text}\n"))?;
    Ok(Exit::Ok)
}

fn mkctx(
    context: &Context,
    names: &mut Names,
    name: &Name,
    parents: bool,
) -> Result<Exit, Failure> {
    let root = names.root();
    let shortest = if parents { 1 } else { name.len() };
    for length in shortest..=name.len() {
        let part: Name = name.iter().take(length).cloned().collect();
        let done = names.call(&root, &part, |stub, name| stub.bind_new_context(name));
        match done {
            Ok(_) => {}
            Err(Refusal::AlreadyBound) if parents => {
                context_at(names, &part)?;
            }
            Err(refusal) => return Err(names.failure(refusal, &part)),
        }
    }
    told(context, names, name, "made", Ok(()))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let what = format!("{} cannot be written: {}", path.display(), system_reason(error));
    Failure::new(codes::FILE, Exit::Failed, what, "see that the folder is there and has room")
}

fn export(
    context: &Context,
    names: &mut Names,
    path: Option<&Path>,
    under: &Name,
) -> Result<Exit, Failure> {
    let top = context_at(names, under)?;
    let here = Path::new("standard output");
    let failed = |error: std::io::Error| unwritable(path.unwrap_or(here), &error);
    let out: Box<dyn Write> = match path {
        Some(path) => Box::new(File::create(path).map_err(failed)?),
        None => Box::new(std::io::stdout().lock()),
    };
    let mut out = BufWriter::new(out);
    file::begin(&mut out).map_err(failed)?;
    let mut bindings = 0_u64;
    walk(names, &top, |_, item| {
        bindings += 1;
        file::write(&mut out, &item).map_err(failed)
    })?;
    out.flush().map_err(failed)?;
    if let Some(path) = path {
        match context.is_json() {
            true => context.print_json(&json!({ "bindings": bindings, "file": path }))?,
            false => context.print(&format!("{bindings} bindings: {}\n", path.display()))?,
        }
    }
    Ok(Exit::Ok)
}

impl ImportFrom {
    fn run(&self, context: &Context, names: &mut Names) -> Result<Exit, Failure> {
        let under = name_or_root(self.under.clone())?;
        let root = context_at(names, &under)?;
        let deadline = context.deadline(LONG_DEADLINE);
        let mut import = Import::new(names, root, under, self.replace);
        match (&self.from, &self.file) {
            (Some(from), _) => {
                let mut there = Names::new(names::root_of(from)?, deadline, false)?;
                let top = there.root();
                walk(&mut there, &top, |_, item| import.add(item))?;
            }
            (None, Some(path)) => read_file(path, |item| import.add(item))?,
            (None, None) => {}
        }
        import.end(context)
    }
}

/// Gives out every binding of a file.
fn read_file(
    path: &Path,
    mut give: impl FnMut(walk::Item) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let wrong = |why: String| {
        let what = format!("{}: {why}", path.display());
        Failure::new(codes::FILE, Exit::Failed, what, "give a file that quorba naming export wrote")
    };
    let file = File::open(path).map_err(|error| wrong(system_reason(&error)))?;
    let mut lines = Lines::begin(BufReader::new(file)).map_err(wrong)?;
    while let Some(item) = lines.next().map_err(wrong)? {
        give(item)?;
    }
    Ok(())
}
