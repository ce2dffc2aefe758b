//! The domain file: one TOML file, the same on every host of a domain, read into a [`Domain`].
//!
//! What it is not: the node's state, or the command line. Nothing here opens sockets or resolves
//! names; only [`Domain::load`] and [`check`] read files (the domain file and the key file).
//!
//! Invariants: all errors of a file are told at once, each with its place and what to do; a key
//! that nobody knows is an error; a [`Domain`] in hand is right as far as the file alone can be;
//! [`Domain::digest`] is equal on two hosts exactly if their files agree where they must.
//!
//! Read next: `domain.rs` (the result), `read.rs` (the way there), `codes.rs` (what can be wrong).

#![forbid(unsafe_code)]

mod codes;
mod definition;
mod differences;
mod digest;
mod domain;
mod effects;
mod key;
mod known;
mod plan;
mod problem;
mod read;
mod reference;
mod schema;
mod service;
mod suggest;
mod template;
mod walk;
mod without;

use std::io::Read;
use std::path::Path;

pub use codes::{CODES, Code, CodeText};
pub use definition::{DEFINITION_BYTES_MAX, Definition, Kind};
pub use differences::{GroupDifferences, differences, group_differences};
pub use domain::{
    Backend, ClientRule, DOMAIN_OBJECT, DOMAIN_OBJECT_KEY, Domain, Endpoint, Engine, Gateway,
    Group, Host, Limits, Member, Multicast, Node, ObjectGroup, Outside, Placement,
    RESTART_BACKOFF_MAX, Ring, ServerCommand, ServerType, Tls,
};
pub use effects::{EFFECTS, Effect, KeyEffects, effect};
pub use key::{DomainKey, KEY_BYTES, KEYS_MAX, KeyError};
pub use known::{KnownGroups, check_delete};
pub use plan::{GroupChange, KeyChange, Plan, plan};
pub use problem::{Problem, Report};
pub use read::{
    Checked, Defined, GROUPS_MAX, Known, MESSAGE_BYTES_COROSYNC_MAX, MESSAGE_BYTES_MAX,
    check_definition, check_text, read_definition, read_group,
};
pub use reference::{Gateways, code_sets, reference_to};
pub use schema::{Key, Shape, TABLES, keys};
pub use service::Service;
pub use template::{PLACEHOLDERS, Placeholder, Template, TemplateError, Values};
pub use without::Without;

/// A group takes a few hundred bytes, and there may be 100,000; more than this is something else.
const FILE_BYTES_MAX: u64 = 64 << 20;

impl Domain {
    /// Reads the domain file at `path` and the key file that it names. Relative paths in it are
    /// relative to its directory.
    ///
    /// # Errors
    /// A [`Report`] with every problem of the file. All are the operator's to repair.
    pub fn load(path: &Path) -> Result<Self, Report> {
        let Checked { domain, report } = check(path);
        domain.ok_or(report)
    }
}

/// Like [`Domain::load`], with the report of warnings for a domain that is right, too.
#[must_use]
pub fn check(path: &Path) -> Checked {
    match read_text(path) {
        Ok(text) => check_text(path, &text, DomainKey::read_file),
        Err(reason) => {
            let message = format!("{} cannot be read: {reason}", path.display());
            let problem = Problem::of_file(Code::FileUnreadable, message);
            Checked { domain: None, report: Report::new(path, "", vec![problem]) }
        }
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| key::plain(&error))?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| key::plain(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("it is larger than 64 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}
