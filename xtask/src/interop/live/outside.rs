//! JacORB servers that no node starts: each writes down the reference of its object, with a port
//! and a key that no other one has.
//!
//! Invariant: dropped, no server is left.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quorba_demo::accounting::{Replica, read};
use quorba_giop::ior::Ior;

use super::super::{Context, Orb, load};
use crate::wait;

/// How long a JVM may take to serve.
const START_TIME_MAX: Duration = Duration::from_secs(45);

pub(super) struct Server {
    pub(super) name: String,
    /// As the server wrote it, and where.
    pub(super) reference: String,
    pub(super) file: String,
    port: u16,
    process: Child,
}

impl Server {
    /// Starts one whose object keys begin with `name`.
    pub(super) fn start(context: &Context, name: &str) -> Result<Self, String> {
        let program = load::program(&context.folder, Orb::Jacorb, "server")?;
        let file = context.folder.join(format!("{name}.ior"));
        let log = context.folder.join(format!("{name}.log"));
        let told = |path: &PathBuf, error| format!("{}: {error}", path.display());
        let out = File::create(&log).map_err(|error| told(&log, error))?;
        let mut command = Command::new(&program);
        // Any port: who starts it again has another one.
        command.args(["--listen", "127.0.0.1:0", "--name", name, "--ior"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(out);
        let mut process = command.spawn().map_err(|error| told(&program, error))?;
        let reference = wait::until("a server serves", START_TIME_MAX, || {
            fs::read_to_string(&file).map_err(|error| told(&file, error))
        });
        let found = reference.and_then(|text| {
            let text = text.trim().to_owned();
            let ior = Ior::parse(&text).map_err(|error| format!("{name}: {error}"))?;
            let port = ior.endpoints().first().map(|endpoint| endpoint.port);
            Ok((text, port.ok_or_else(|| format!("{name} has no address"))?))
        });
        match found {
            Ok((reference, port)) => {
                let (name, file) = (name.to_owned(), file.display().to_string());
                Ok(Self { name, reference, file, port, process })
            }
            Err(reason) => {
                // It cannot fail but for a process that has ended already.
                let _killed = process.kill();
                let _status = process.wait();
                Err(reason)
            }
        }
    }

    /// As `kill -9`.
    pub(super) fn kill(&mut self) {
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }

    /// How many requests it has executed, whoever asked for them.
    pub(super) fn executed(&self) -> Result<u64, String> {
        read::executed(self.port).map_err(|error| format!("{}: {error}", self.name))
    }

    /// What it has, asked past every gateway.
    pub(super) fn replica(&self) -> Result<Replica, String> {
        read::replica(&self.name, self.port).map_err(|error| format!("{}: {error}", self.name))
    }

    /// An increment that no node knows of, as one made before there was a group, or by a client
    /// that has the server's own reference.
    pub(super) fn call_past_the_order(&self, reference: &str) -> Result<(), String> {
        let told = |error| format!("{}: {error}", self.name);
        read::ledger(self.port).increment(reference).map(drop).map_err(told)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
