//! Drivers in omniORB C++, JacORB and omniORBpy that go through every operation of a service and
//! every exception of theirs, with the stubs that their ORBs make of the IDL.
//!
//! What it is not: a test of faults; `services.rs`, `naming.rs` and `crates/cli/tests` have those.
//!
//! Invariants: a case passes only if each driver that can run here has found everything to be as it
//! must be; one that cannot is skipped by name.

use std::path::Path;
use std::process::Command;

use quorba_lab::skips::skip;
use rustix::process::Signal;

use super::domain::DomainFile;
use super::fleet::{self, Fleet};
use super::live::operator::Operator;
use super::naming::other::{Maker, NameServer};
use super::{Context, Verdict};
use crate::examples::Example;
use crate::{omniorbpy, workspace};

/// Names of services, and of their groups.
const NAMING: &str = "naming";
const MANAGER: &str = "replication-manager";
const NOTIFIER: &str = "fault-notifier";

/// Which service is driven.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Naming,
    Manager,
    Faults,
    /// The manager and the notifier in the form of clients that are linked with TAO.
    Tao,
}

/// What a driver is written with.
#[derive(Clone, Copy)]
enum Language {
    /// omniORB: this program of that example.
    Cpp(Example, &'static str),
    /// JacORB: this program.
    Java(&'static str),
    /// omniORBpy: this script below `examples/`, with stubs of these files below `idl/`.
    Python(&'static str, &'static [&'static str]),
}

/// What a driver is given.
#[derive(Clone, Copy)]
enum Given {
    /// The naming service, another one in which a name goes on, and a name of its own.
    Names,
    /// The manager, and the nodes.
    Manager,
    /// The same in TAO's form, which it says by itself.
    ManagerOfTao,
    Notifier,
    NotifierOfTao,
}

/// The IDL of the services of FT-CORBA.
const FT: &[&str] = &["FT.idl"];
/// The same as TAO has them.
const TAO: &[&str] = &["TAO-FT.idl"];

impl Service {
    pub(super) const ALL: [Self; 4] = [Self::Naming, Self::Manager, Self::Faults, Self::Tao];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Naming => "naming-service-operations",
            Self::Manager => "manager-operations",
            Self::Faults => "fault-notifier-operations",
            Self::Tao => "tao-operations",
        }
    }

    /// The group that is waited for.
    const fn group(self) -> &'static str {
        match self {
            Self::Naming => NAMING,
            Self::Manager | Self::Tao => MANAGER,
            Self::Faults => NOTIFIER,
        }
    }

    const fn drivers(self) -> &'static [(Language, Given)] {
        match self {
            Self::Naming => &[
                (Language::Cpp(Example::OmniorbNames, "names_driver"), Given::Names),
                (Language::Java("names-driver"), Given::Names),
                (Language::Python("omniorbpy-names/driver.py", &[]), Given::Names),
            ],
            Self::Manager => &[
                (Language::Cpp(Example::OmniorbManager, "manager_driver"), Given::Manager),
                (Language::Java("manager-driver"), Given::Manager),
                (Language::Python("omniorbpy-manager/driver.py", FT), Given::Manager),
            ],
            Self::Faults => &[
                (Language::Cpp(Example::OmniorbManager, "faults_driver"), Given::Notifier),
                (Language::Java("faults-driver"), Given::Notifier),
                (Language::Python("omniorbpy-faults/driver.py", FT), Given::Notifier),
            ],
            Self::Tao => &[
                (Language::Python("omniorbpy-manager/driver.py", TAO), Given::ManagerOfTao),
                (Language::Python("omniorbpy-faults/tao.py", TAO), Given::NotifierOfTao),
            ],
        }
    }

    /// What is built before it runs.
    pub(super) fn examples(self) -> Vec<Example> {
        let of = |(language, _): &(Language, Given)| match language {
            Language::Cpp(example, _) => Some(*example),
            Language::Java(_) => Some(Example::JacorbBank),
            Language::Python(..) => None,
        };
        self.drivers().iter().filter_map(of).collect()
    }

    fn domain(self, quorba: &Path, folder: &Path) -> Result<DomainFile, String> {
        match self {
            Self::Naming => DomainFile::with_service(quorba, folder, self.group()),
            _ => DomainFile::with_fault_tolerance(quorba, folder),
        }
    }
}

impl Language {
    const fn orb(self) -> &'static str {
        match self {
            Self::Cpp(..) => "omniORB",
            Self::Java(_) => "JacORB",
            Self::Python(..) => "omniORBpy",
        }
    }

    /// The program; none if its ORB is not here.
    fn command(self, folder: &Path) -> Result<Option<Command>, String> {
        match self {
            Self::Cpp(example, name) => Ok(Some(Command::new(example.built().join(name)))),
            Self::Java(name) => {
                let program = Example::JacorbBank.built().join("bin").join(name);
                Ok(Some(Command::new(program)))
            }
            Self::Python(script, idl) => {
                let script = workspace::root().join("examples").join(script);
                let Some(mut command) = omniorbpy::command(&script) else { return Ok(None) };
                if !idl.is_empty() {
                    command.env("PYTHONPATH", omniorbpy::stubs(folder, idl)?);
                }
                Ok(Some(command))
            }
        }
    }

    /// Runs it; what it says last, which is how much it has found.
    fn run(self, mut command: Command, words: &[String]) -> Result<String, String> {
        command.args(words);
        if !matches!(self, Self::Java(_)) {
            command.args(["-ORBclientCallTimeOutPeriod", "60000"]);
            command.args(["-ORBnativeCharCodeSet", "UTF-8"]);
        }
        let failed = |what: String| format!("{}: {what}", self.orb());
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        let out = String::from_utf8_lossy(&output.stdout);
        let last = out.lines().last().unwrap_or_default();
        if output.status.success() {
            return Ok(format!("{} {last}", self.orb()));
        }
        let err = String::from_utf8_lossy(&output.stderr);
        Err(failed(format!("behind {last:?}: {}", err.trim())))
    }
}

pub(super) fn run(context: &Context, service: Service) -> Verdict {
    if service == Service::Naming
        && let Some(reason) = Maker::Omninames.missing()
    {
        return Verdict::Skipped(reason);
    }
    run_in(context, service).map_or_else(Verdict::Failed, Verdict::Passed)
}

fn run_in(context: &Context, service: Service) -> Result<String, String> {
    let folder = &context.folder;
    let domain = service.domain(&context.quorba, folder)?;
    let fleet = Fleet::start(&context.quorba, folder, service.group(), domain)?;
    let operator = Operator::of(context, &fleet);
    operator.wait_healthy()?;
    // A name goes on in it.
    let other = match service {
        Service::Naming => Some(NameServer::start(context, Maker::Omninames)?),
        _ => None,
    };
    let mut told = Vec::new();
    for (language, given) in service.drivers() {
        let orb = language.orb();
        let Some(command) = language.command(folder)? else {
            let name = format!("{}-{}", service.name(), orb.to_lowercase());
            skip(&name, "no omniORBpy here: cargo xtask deps installs it");
            continue;
        };
        if service == Service::Manager && !told.is_empty() {
            // Not waited for anything: the next one meets the manager in the middle of it.
            fleet::signal(fleet.server(0)?.pid, Signal::KILL);
        }
        let words = words(*given, &operator, &fleet, other.as_ref(), orb)?;
        told.push(language.run(command, &words)?);
    }
    drop(other);
    fleet.wait_whole()?;
    fleet.end()?;
    Ok(told.join(", "))
}

/// What a driver is told.
fn words(
    given: Given,
    operator: &Operator,
    fleet: &Fleet,
    other: Option<&NameServer>,
    orb: &str,
) -> Result<Vec<String>, String> {
    let nodes = fleet.nodes().iter().map(|node| node.name.clone());
    let of_tao = |group: &str, key: &str| -> Result<String, String> {
        Ok(operator.ok(&["ior", "make", group, "--key", key])?.trim().to_owned())
    };
    let first = match given {
        Given::Names => {
            let other = other.map(NameServer::reference).unwrap_or_default();
            return Ok(vec![operator.reference(NAMING)?, other.to_owned(), format!("of-{orb}")]);
        }
        Given::Manager => operator.reference(MANAGER)?,
        Given::ManagerOfTao => of_tao(MANAGER, "TAO/ReplicationManager")?,
        Given::Notifier => return Ok(vec![operator.reference(NOTIFIER)?]),
        Given::NotifierOfTao => return Ok(vec![of_tao(NOTIFIER, "TAO/FaultNotifier")?]),
    };
    Ok(std::iter::once(first).chain(nodes).collect())
}
