//! `quorba key`: the domain key.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use quorba_config::{DomainKey, KEY_BYTES, KEYS_MAX};
use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::system_reason;

/// Make and change the key that admits nodes to a domain
#[derive(Debug, Args)]
pub struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write a new key to FILE, readable by you alone
    New {
        /// Where to; a file that exists is not overwritten
        file: PathBuf,
    },
    /// Add a new key to FILE, beside the one that is in use
    ///
    /// Then copy the file to every host of the domain and send each node SIGHUP, in any order. The
    /// nodes accept both keys, and use the new one as soon as every node has it; no view changes.
    /// `quorba status` says who lacks it. When it is in use, take the old one away with `quorba key
    /// prune`.
    #[command(verbatim_doc_comment)]
    Rotate {
        /// The domain's key file
        file: PathBuf,
    },
    /// Take all keys but the newest out of FILE
    ///
    /// Only when `quorba status` shows no warning about the key any more: a node that seals with
    /// an old key, or comes back with one, is locked out. Then copy the file and send SIGHUP as
    /// before.
    #[command(verbatim_doc_comment)]
    Prune {
        /// The domain's key file
        file: PathBuf,
    },
}

/// What to do when a key file has changed.
const COPY_AND_RELOAD: &str =
    "Copy it to every host of the domain, over a safe way, and send each node SIGHUP.";

impl Key {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self.action {
            Action::New { file } => {
                let key = new_key()?;
                write_new(&file, &key.to_text()).map_err(|error| failure(&file, &error))?;
                if context.is_json() {
                    context.print_json(&json!({ "file": file }))?;
                } else {
                    context.print(&format!("{}\n", file.display()))?;
                    let next =
                        "Copy it to every host of the domain, over a safe way: who has it is in.";
                    context.tell(next);
                }
            }
            Action::Rotate { file } => {
                let mut keys = read(&file)?;
                if keys.len() >= KEYS_MAX {
                    let what = format!("{} has {} keys already", file.display(), keys.len());
                    let next = "take the old ones away with `quorba key prune`";
                    return Err(Failure::new(codes::FILE, Exit::Failed, what, next));
                }
                keys.push(new_key()?);
                replace(context, &file, &keys)?;
            }
            Action::Prune { file } => {
                let keys = read(&file)?;
                replace(context, &file, &keys[keys.len() - 1..])?;
            }
        }
        Ok(Exit::Ok)
    }
}

fn new_key() -> Result<DomainKey, Failure> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        let what = format!("the system gives no randomness: {error}");
        Failure::new(codes::FILE, Exit::Failed, what, "no key is better than a weak one")
    })?;
    Ok(DomainKey::from_bytes(bytes))
}

fn read(file: &Path) -> Result<Vec<DomainKey>, Failure> {
    DomainKey::read_file(file).map_err(|error| {
        let what = format!("key file {}: {error}", file.display());
        let next = "give the key file of the domain; `quorba key new` makes the first";
        Failure::new(codes::FILE, Exit::Failed, what, next)
    })
}

/// Puts a file with `keys` in the place of `file`, in one step.
fn replace(context: &Context, file: &Path, keys: &[DomainKey]) -> Result<(), Failure> {
    let text: String = keys.iter().map(DomainKey::to_text).collect();
    let next = file.with_extension("next");
    write_new(&next, &text).map_err(|error| failure(&next, &error))?;
    std::fs::rename(&next, file).map_err(|error| failure(file, &error))?;
    if context.is_json() {
        context.print_json(&json!({ "file": file, "keys": keys.len() }))?;
    } else {
        let noun = if keys.len() == 1 { "key" } else { "keys" };
        context.print(&format!("{}: {} {noun}\n", file.display(), keys.len()))?;
        context.tell(COPY_AND_RELOAD);
    }
    Ok(())
}

fn write_new(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(file)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()
}

fn failure(file: &Path, error: &io::Error) -> Failure {
    let shown = file.display();
    let (what, next) = match error.kind() {
        io::ErrorKind::AlreadyExists => (
            format!("{shown} exists already"),
            "choose another name; nodes with different keys do not see each other".to_owned(),
        ),
        _ => (
            format!("{shown} cannot be written: {}", system_reason(error)),
            "choose a directory that exists and that you may write to".to_owned(),
        ),
    };
    Failure::new(codes::FILE, Exit::Failed, what, next)
}
