//! One case with the name server: three unmodified `omniNames` behind one reference, used by
//! omniORB's own `nameclt` while one of the three is killed.
//!
//! What it is not: a case of state transfer. `omniNames` cannot hand out its state, so the killed
//! one stays out, and the other two go on.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::cluster::Ground;
use super::domain::{DomainFile, GroupText, Servers};
use super::fleet::{self, Fleet};
use super::{Context, Verdict};
use crate::place::Place;
use crate::{wait, workspace};

/// Bindings made before the kill, at it and after it, each.
const BINDINGS: usize = 10;
/// How long the others may take to see that one is gone.
const GONE_TIME_MAX: Duration = Duration::from_secs(20);
/// `omniNames` makes no folder for its data; a shell does, and is replaced by it. What it returns
/// leads to its own node's gateway: replicas are asked past the order here, too, and an iterator
/// that one has made so is unknown to the others.
const SERVER: &str = "mkdir -p {state_dir}/names && exec omniNames -always -start {port} \
    -datadir {state_dir}/names -ORBendPoint giop:tcp:127.0.0.1:{port} \
    -ORBendPointPublish giop:tcp:{host}:{listen} -ORBpoaUniquePersistentSystemIds 0";

pub(super) fn run(context: &Context, victim: usize) -> Verdict {
    for name in ["omniNames", "nameclt"] {
        if workspace::program(name).is_none() {
            let reason = format!("no {name} here: cargo xtask deps installs it");
            return Verdict::Skipped(reason);
        }
    }
    match run_in(context, victim) {
        Ok(figures) => Verdict::Passed(figures),
        Err(reason) => Verdict::Failed(reason),
    }
}

fn run_in(context: &Context, victim: usize) -> Result<String, String> {
    let group = GroupText {
        style: "active",
        name: "names",
        servers: Servers::Started(["/bin/sh", "-c", SERVER].map(String::from).to_vec()),
        more: "object_key = \"NameService\"\n\
               type_id = \"IDL:omg.org/CosNaming/NamingContextExt:1.0\"\n",
    };
    let domain = DomainFile::write(&context.quorba, &context.folder, &group, &Ground::default())?;
    let fleet = Fleet::start(&context.quorba, &context.folder, "names", domain)?;
    fleet.wait_whole()?;
    let gateways: Vec<String> =
        fleet.nodes().iter().map(|node| format!("iiop:1.2@{}", node.gateway)).collect();
    let client = NameClient::new(&format!("corbaloc:{}/NameService", gateways.join(",")));

    let mut expected = BTreeSet::new();
    for number in 0..BINDINGS {
        client.bind(&mut expected, &format!("before-{number}"))?;
    }
    let killed = fleet.server(victim)?;
    fleet::signal(killed.pid, Signal::KILL);
    // Not waited for anything: these meet the group in the middle of it.
    for number in 0..BINDINGS {
        client.bind(&mut expected, &format!("across-{number}"))?;
    }
    wait::until("the killed one is out", GONE_TIME_MAX, || match fleet.is_whole() {
        Ok(()) => Err("all are in".to_owned()),
        Err(_) => Ok(()),
    })?;
    for number in 0..BINDINGS {
        client.bind(&mut expected, &format!("after-{number}"))?;
    }
    client.unbind(&mut expected, "before-0")?;
    client.check(&expected)?;
    for index in (0..fleet.nodes().len()).filter(|index| *index != victim) {
        let port = fleet.server(index)?.port;
        NameClient::new(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/NameService"))
            .check(&expected)
            .map_err(|reason| format!("asked directly, {}: {reason}", index + 1))?;
    }
    fleet.end()?;
    Ok(format!("{} names bound, listed and resolved, by both survivors alike", expected.len()))
}

/// omniORB's own command line client of the name service.
struct NameClient {
    service: String,
}

impl NameClient {
    fn new(reference: &str) -> Self {
        Self { service: format!("NameService={reference}") }
    }

    /// Binds `name` to an object that is called the same.
    fn bind(&self, expected: &mut BTreeSet<String>, name: &str) -> Result<(), String> {
        self.call(&["bind", name, &target(name)])?;
        expected.insert(name.to_owned());
        Ok(())
    }

    fn unbind(&self, expected: &mut BTreeSet<String>, name: &str) -> Result<(), String> {
        self.call(&["unbind", name])?;
        expected.remove(name);
        Ok(())
    }

    /// Lists all names and resolves each.
    fn check(&self, expected: &BTreeSet<String>) -> Result<(), String> {
        let listed: BTreeSet<String> =
            self.call(&["list"])?.lines().map(|line| line.trim().to_owned()).collect();
        if listed != *expected {
            let missing: Vec<_> = expected.difference(&listed).collect();
            let extra: Vec<_> = listed.difference(expected).collect();
            return Err(format!("listed without {missing:?} and with {extra:?}"));
        }
        let mut references = BTreeSet::new();
        for name in expected {
            references.insert(self.call(&["resolve", name])?.trim().to_owned());
        }
        // Every name leads to an object of its own.
        if references.len() != expected.len() || references.iter().any(|one| !is_ior(one)) {
            return Err(format!("{} names resolve to {references:?}", expected.len()));
        }
        Ok(())
    }

    fn call(&self, words: &[&str]) -> Result<String, String> {
        let output = Place::Here
            .command(Path::new("nameclt"))
            .args(["-ORBInitRef", &self.service])
            .args(words)
            .output()
            .map_err(|error| format!("nameclt: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let reason = String::from_utf8_lossy(&output.stderr);
        Err(format!("nameclt {}: {} {}", words.join(" "), text.trim(), reason.trim()))
    }
}

fn target(name: &str) -> String {
    format!("corbaloc::127.0.0.1:9/{name}")
}

fn is_ior(text: &str) -> bool {
    text.starts_with("IOR:")
}
