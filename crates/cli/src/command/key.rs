//! `quorba key`: the domain key.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use quorba_config::{DomainKey, KEY_BYTES};
use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::system_reason;

/// Make the key that admits nodes to a domain
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
}

impl Key {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let Action::New { file } = self.action;
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| {
            let what = format!("the system gives no randomness: {error}");
            Failure::new(codes::FILE, Exit::Failed, what, "no key is better than a weak one")
        })?;
        write_new(&file, &DomainKey::from_bytes(bytes)).map_err(|error| failure(&file, &error))?;
        if context.is_json() {
            context.print_json(&json!({ "file": file }))?;
        } else {
            context.print(&format!("{}\n", file.display()))?;
            context.tell("Copy it to every host of the domain, over a safe way: who has it is in.");
        }
        Ok(Exit::Ok)
    }
}

fn write_new(file: &Path, key: &DomainKey) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(file)?;
    out.write_all(key.to_text().as_bytes())?;
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
