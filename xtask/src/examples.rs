//! `cargo xtask examples`: builds the examples into `target/examples/`, and the adapter for clients
//! of omniORB into `target/adapters/`.
//!
//! What it is not: how they are built; that is [`crate::project`].
//!
//! Invariant: every example that has a build of its own is among [`Example::ALL`].

use std::path::PathBuf;
use std::process::ExitCode;

use crate::project::{Project, Tool};
use crate::say::{Outcome, Steps};

/// One folder of `examples/` that is built, or of `adapters/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Example {
    OmniorbBank,
    OmniorbEcho,
    OmniorbShop,
    OmniorbManager,
    OmniorbNames,
    OmniorbEvents,
    OmniorbAdapter,
    JacorbBank,
}

impl Example {
    pub(crate) const ALL: [Self; 8] = [
        Self::OmniorbBank,
        Self::OmniorbEcho,
        Self::OmniorbShop,
        Self::OmniorbManager,
        Self::OmniorbNames,
        Self::OmniorbEvents,
        Self::OmniorbAdapter,
        Self::JacorbBank,
    ];

    const fn project(self) -> Project {
        let (folder, products): (_, &[&str]) = match self {
            Self::OmniorbBank => ("examples/omniorb-bank", &["bank_server", "bank_client"]),
            Self::OmniorbEcho => ("examples/omniorb-echo", &["echo_server", "echo_client"]),
            Self::OmniorbShop => ("examples/omniorb-shop", &["shop_server"]),
            Self::OmniorbManager => {
                const PROGRAMS: [&str; 3] = ["manager_driver", "faults_driver", "services_client"];
                ("examples/omniorb-manager", &PROGRAMS)
            }
            Self::OmniorbNames => ("examples/omniorb-names", &["names_driver"]),
            Self::OmniorbEvents => ("examples/omniorb-events", &["events_client"]),
            Self::OmniorbAdapter => {
                const PROGRAMS: [&str; 4] =
                    ["libquorba_ft.so", "events_ft", "filters_client", "bank_client_ft"];
                ("adapters/omniorb", &PROGRAMS)
            }
            Self::JacorbBank => {
                const BINS: [&str; 11] = [
                    "bank.jar",
                    "bin/bank-server",
                    "bin/bank-client",
                    "bin/echo-server",
                    "bin/echo-client",
                    "bin/names-tree",
                    "bin/names-driver",
                    "bin/faults-driver",
                    "bin/manager-driver",
                    "bin/services-client",
                    "bin/events-client",
                ];
                ("examples/jacorb-bank", &BINS)
            }
        };
        let (tool, programs): (_, &[&str]) = match self {
            Self::OmniorbBank
            | Self::OmniorbEcho
            | Self::OmniorbShop
            | Self::OmniorbManager
            | Self::OmniorbNames
            | Self::OmniorbEvents
            | Self::OmniorbAdapter => (Tool::Make, &["make", "g++", "omniidl"]),
            Self::JacorbBank => (Tool::Maven, &["mvn", "javac"]),
        };
        let beside: &[&str] = match self {
            Self::OmniorbManager | Self::OmniorbEvents => &["idl"],
            Self::OmniorbAdapter => &["idl", "examples/idl", "examples/omniorb-bank"],
            _ => &["examples/idl"],
        };
        Project { folder, tool, programs, headers: &[], beside, products }
    }

    /// The name of its folder in `examples/`; of an adapter, with the folder that it is in.
    pub(crate) fn folder(self) -> &'static str {
        self.project().folder.trim_start_matches("examples/")
    }

    /// Where it is built.
    pub(crate) fn built(self) -> PathBuf {
        self.project().built()
    }
}

pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::new("examples");
    for example in Example::ALL {
        steps.add(example.folder(), &build(example));
    }
    steps.finish()
}

/// Builds `example`, unless it is up to date or cannot be built here.
pub(crate) fn build(example: Example) -> Outcome {
    example.project().build()
}
