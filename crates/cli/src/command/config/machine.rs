//! What a domain file says of this machine, compared with the machine.
//!
//! What it is not: an error of the file. A program that is missing here may be there on the hosts
//! that run it, so these are warnings. Invariant: nothing is started, and nothing is written.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use quorba_config::{Backend, Domain, Group, Host, Node};
use serde::Serialize;

use crate::text::system_reason;

/// One thing that is not as the file says.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What `quorba explain` knows it by.
    pub code: &'static str,
    /// What is not so, and where the file says it.
    pub message: String,
    /// What to do.
    pub help: String,
}

const CODE: &str = "QB-CLI-020";

/// Looks at everything that can be looked at without starting anything.
pub fn look(domain: &Domain) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = domain.nodes.iter().filter_map(host).collect();
    let here: Vec<&Node> = domain.nodes.iter().filter(|node| is_here(node)).collect();
    if !here.is_empty() {
        warnings.extend(domain.groups.iter().filter_map(program));
        warnings.extend(here.iter().filter_map(|node| state_dir(node)));
    }
    warnings
}

fn warning(message: String, help: impl Into<String>) -> Warning {
    Warning { code: CODE, message, help: help.into() }
}

/// A host name must have an address.
fn host(node: &Node) -> Option<Warning> {
    let Host::Name(name) = &node.host else { return None };
    let error = match (name.as_str(), node.ring_port).to_socket_addrs() {
        Ok(mut addresses) => match addresses.next() {
            Some(_) => return None,
            None => "it has none".to_owned(),
        },
        Err(error) => system_reason(&error),
    };
    let message =
        format!("[node.{}] host = \"{name}\" has no address on this machine: {error}", node.name);
    Some(warning(
        message,
        "correct the name, write an IP address, or enter it in DNS or /etc/hosts",
    ))
}

/// Whether a node's address is this machine's.
fn is_here(node: &Node) -> bool {
    let address = match &node.host {
        Host::Address(address) => Some(*address),
        Host::Name(name) => {
            let found = (name.as_str(), 0).to_socket_addrs();
            found.ok().and_then(|mut found| found.next()).map(|address| address.ip())
        }
    };
    address.is_some_and(|address: IpAddr| UdpSocket::bind((address, 0)).is_ok())
}

/// The program of a group's servers must be there, and must be one.
fn program(group: &Group) -> Option<Warning> {
    let Backend::Start(server) = &group.backend else { return None };
    let program = server.command.first()?.to_string();
    if program.contains('{') {
        return None;
    }
    let wrong = match find(&program) {
        Ok(path) => runnable(&path)?,
        Err(reason) => reason,
    };
    let name = &group.name;
    let message = format!("[group.{name}] server: {program}: {wrong}");
    Some(warning(
        message,
        "give the program's path; a relative one begins at the domain file's folder",
    ))
}

fn find(program: &str) -> Result<PathBuf, String> {
    if program.contains('/') {
        return Ok(PathBuf::from(program));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(program)).find(|it| it.is_file());
    found.ok_or_else(|| "no folder of PATH on this machine has it".to_owned())
}

/// What keeps a file from being run.
fn runnable(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some("it is not there on this machine".to_owned())
        }
        Err(error) => Some(system_reason(&error)),
        Ok(found) if found.is_dir() => Some("it is a folder".to_owned()),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => {
            Some("it is no program: nobody may execute it (chmod +x)".to_owned())
        }
        Ok(_) => None,
    }
}

/// A state directory, or the folder in which it is made, must be writable.
fn state_dir(node: &Node) -> Option<Warning> {
    let full = std::path::absolute(&node.state_dir).ok()?;
    let there = full.ancestors().find(|path| path.exists())?;
    let told = |what: &str| {
        let (name, path) = (&node.name, full.display());
        let message = format!("[node.{name}] state_dir = \"{path}\": {what}");
        Some(warning(message, "choose a folder that the user may write to who runs the node"))
    };
    if !there.is_dir() {
        return told(&format!("{} is no folder", there.display()));
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    match rustix::fs::access(there, access) {
        Ok(()) => None,
        Err(error) => told(&format!("{}: {}", there.display(), system_reason(&error.into()))),
    }
}
