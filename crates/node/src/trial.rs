//! A server of a group that runs by itself, for a trial: started as its node would start it, in a
//! folder of its own, and asked by whoever started it.
//!
//! What it is not: a member of its group. Invariant: it does not outlive its [`Trial`].

use crate::RunOptions;
use crate::endpoint::ServerEndpoint;
use crate::launch::{Launcher, launch, wanted_key};
use crate::ready::{self, Look};
use crate::running::Running;
use crate::times::Times;
use quorba_config::{Backend, Group, Node, Placeholder};
use quorba_engine::replica::Moment;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a starting server is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Why there is no trial.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// Somebody else starts the group's servers.
    #[error("the servers of group {0} are started by somebody else (`connect`)")]
    NotOurs(String),
    /// They call other groups, which are not there in a trial.
    #[error(
        "the servers of group {0} call other groups, which do not run during quorba group doctor"
    )]
    Calls(String),
    /// They listen on a file, and what tries them speaks TCP.
    #[error("the servers of group {0} listen on a {{socket}}, and a trial needs a {{port}}")]
    NoPort(String),
    /// Its folder cannot be used.
    #[error("{}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The server could not be started, or ended at once.
    #[error("the server of group {group} {what}; what it printed is in {}", log.display())]
    Server {
        /// Of this group.
        group: String,
        /// What it did.
        what: String,
        /// Where its output is.
        log: PathBuf,
    },
}

/// See the module's text.
pub struct Trial {
    server: Running,
    address: SocketAddr,
    time: Option<Times>,
}

impl Trial {
    /// Starts a server of `group` as on `node`, whose state directory is `folder` for this trial,
    /// and waits until it serves, for `within` at the longest.
    ///
    /// # Errors
    /// [`TrialError`]; a retry helps if the machine was busy.
    pub fn start(
        group: &Group,
        node: &Node,
        folder: &Path,
        within: Duration,
    ) -> Result<Self, TrialError> {
        let Backend::Start(command) = &group.backend else {
            return Err(TrialError::NotOurs(group.name.clone()));
        };
        if command.uses(Placeholder::Socket) {
            return Err(TrialError::NoPort(group.name.clone()));
        }
        if !group.calls.is_empty() {
            return Err(TrialError::Calls(group.name.clone()));
        }
        let unusable = |source| TrialError::Folder { path: folder.to_path_buf(), source };
        fs::create_dir_all(folder).map_err(unusable)?;
        let log = folder.join("server.log");
        let file = File::create(&log).map_err(unusable)?;
        let failed =
            |what: String| TrialError::Server { group: group.name.clone(), what, log: log.clone() };
        let mut node = node.clone();
        node.state_dir = folder.to_path_buf();
        let prefix = RunOptions::default().launcher;
        let gateways = vec![group.gateway(&node).to_string()];
        let launcher = Launcher { prefix, gateways, ..Launcher::default() };
        let time = Times::is_wanted(group).then(Times::start).transpose().map_err(unusable)?;
        let errors = file.try_clone().map_err(unusable)?;
        let printed = (file.into(), errors.into());
        let (server, endpoint) = launch(group, &node, &launcher, command, time.as_ref(), printed)
            .map_err(|not_started| {
            failed(format!("cannot be started: {}", not_started.reason))
        })?;
        let ServerEndpoint::Address(address) = endpoint.clone() else {
            unreachable!("it was given a port")
        };
        let trial = Self { server, address, time };
        let until = Instant::now() + within;
        loop {
            let key = wanted_key(group);
            let found = ready::look(&endpoint, key.map(|(_, key)| key));
            if matches!(found, Ok(Look::Ready)) {
                break;
            }
            if trial.has_ended() {
                return Err(failed("ended at once".into()));
            }
            if Instant::now() >= until {
                let waited = within.as_millis();
                let why =
                    found.map_or_else(|error| error.to_string(), |it| it.text(&endpoint, key));
                return Err(failed(format!("did not serve within {waited} ms: it {why}")));
            }
            trial.server.has_ended(LOOK);
        }
        Ok(trial)
    }

    /// Where it serves.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its ordered time tells from now on.
    pub fn publish(&self, moment: Option<Moment>) {
        if let Some(time) = &self.time {
            // Records do not say whose request it was.
            time.publish(moment, 0);
        }
    }

    /// Whether its process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.server.has_ended(Duration::ZERO)
    }
}
