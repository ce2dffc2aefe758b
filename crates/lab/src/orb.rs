//! The ORBs whose echo programs the laboratory measures with, and how these are started.
//!
//! What it is not: how they are built, which `cargo xtask examples` knows.
//!
//! Invariant: both clients take the same options and print the same figures.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// An ORB that clients or servers are written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Orb {
    /// `examples/omniorb-echo`.
    #[default]
    Omniorb,
    /// The echo in `examples/jacorb-bank`. One connection for all clients, as JacORB has it.
    Jacorb,
}

impl Orb {
    /// The client, if omniORB's is in `echo_dir`.
    pub(crate) fn client(self, echo_dir: &Path) -> PathBuf {
        match self {
            Self::Omniorb => echo_dir.join("echo_client"),
            Self::Jacorb => beside(echo_dir).join("echo-client"),
        }
    }

    /// The server, if omniORB's is in `echo_dir`.
    pub(crate) fn server(self, echo_dir: &Path) -> PathBuf {
        match self {
            Self::Omniorb => echo_dir.join("echo_server"),
            Self::Jacorb => beside(echo_dir).join("echo-server"),
        }
    }

    /// Whether both are there.
    pub(crate) fn is_built(self, echo_dir: &Path) -> bool {
        self.client(echo_dir).is_file() && self.server(echo_dir).is_file()
    }

    /// The server's arguments; `port` may stand for one.
    pub(crate) fn listen_on(self, port: &str) -> [String; 2] {
        match self {
            Self::Omniorb => ["-ORBendPoint".to_owned(), format!("giop:tcp:127.0.0.1:{port}")],
            Self::Jacorb => ["--listen".to_owned(), format!("127.0.0.1:{port}")],
        }
    }

    /// The same, on a socket of the machine, for servers that can.
    pub(crate) fn listen_at(self, path: &str) -> Option<[String; 2]> {
        let omniorb = || ["-ORBendPoint".to_owned(), format!("giop:unix:{path}")];
        (self == Self::Omniorb).then(omniorb)
    }
}

/// `cargo xtask examples` builds all examples side by side.
fn beside(echo_dir: &Path) -> PathBuf {
    echo_dir.parent().unwrap_or(echo_dir).join("jacorb-bank/bin")
}
