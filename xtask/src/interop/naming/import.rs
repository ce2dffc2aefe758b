//! A site that has JacORB's name server moves to the domain's: all that is bound there is imported,
//! and the old server, bound as a context, goes on to be reached by names through the new one.
//!
//! Invariant: an import that is done again changes nothing.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{CONTEXTS, Life, OBJECTS, target};
use crate::examples::Example;
use crate::interop::Context;
use crate::wait;

/// How long a JVM may take until the server says where it is.
const START_TIME_MAX: Duration = Duration::from_secs(30);
/// What the old server is called in the new one.
const LINK: &str = "old";

/// JacORB's name server.
struct NameServer {
    process: Child,
    ior: PathBuf,
}

impl NameServer {
    fn start(context: &Context) -> Result<Self, String> {
        let ior = context.folder.join("jacorb-names.ior");
        let log = context.folder.join("jacorb-names.log");
        let log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let classes = Example::JacorbBank.built().join("lib/*");
        let mut command = Command::new("java");
        command.arg("-Xmx64m").arg("-cp").arg(classes);
        for property in [
            "org.omg.CORBA.ORBClass=org.jacorb.orb.ORB",
            "org.omg.CORBA.ORBSingletonClass=org.jacorb.orb.ORBSingleton",
            "OAIAddr=127.0.0.1",
        ] {
            command.arg(format!("-D{property}"));
        }
        command.arg(format!("-Djacorb.naming.ior_filename={}", ior.display()));
        command.arg("org.jacorb.naming.NameServer");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().map_err(|error| format!("java: {error}"))?;
        let server = Self { process, ior };
        wait::until("JacORB's name server says where it is", START_TIME_MAX, || {
            server.reference().map(drop)
        })?;
        Ok(server)
    }

    fn reference(&self) -> Result<String, String> {
        let text = std::fs::read_to_string(&self.ior)
            .map_err(|error| format!("{}: {error}", self.ior.display()))?;
        let text = text.trim();
        if text.starts_with("IOR:") { Ok(text.to_owned()) } else { Err("no reference yet".into()) }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        // It cannot fail but for a process that has ended already.
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }
}

/// The tree of `life` is filled from JacORB's name server.
pub(super) fn run(mut life: Life, context: &Context) -> Result<String, String> {
    let server = NameServer::start(context)?;
    let old = server.reference()?;
    for name in CONTEXTS {
        life.operator.ok(&["naming", "mkctx", name, "--at", &old])?;
        life.expected.insert(format!("context {name}"));
    }
    for name in OBJECTS {
        life.operator.ok(&["naming", "bind", name, &target(name), "--at", &old])?;
        life.expected.insert(format!("object {name}"));
    }
    let import = ["-o", "json", "naming", "import", "--from", &old];
    let counts = |text: &str| -> Result<[u64; 3], String> {
        let told: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))?;
        let count = |key: &str| told[key].as_u64().unwrap_or(u64::MAX);
        Ok([count("objects"), count("contexts"), count("conflicts")])
    };
    let (objects, contexts) = (OBJECTS.len() as u64, CONTEXTS.len() as u64);
    let first = counts(&life.operator.ok(&import)?)?;
    if first != [objects, contexts, 0] {
        return Err(format!("objects, contexts and conflicts of the first import: {first:?}"));
    }
    let again = counts(&life.operator.ok(&import)?)?;
    if again != [0; 3] {
        return Err(format!("objects, contexts and conflicts of the second import: {again:?}"));
    }
    life.check()?;

    life.operator.ok(&["naming", "bind", LINK, &old, "--context"])?;
    let name = format!("{LINK}/{}", OBJECTS[OBJECTS.len() - 1]);
    let here = life.operator.ok(&["naming", "resolve", OBJECTS[OBJECTS.len() - 1]])?;
    let there = life.operator.ok(&["naming", "resolve", &name])?;
    if here != there {
        return Err(format!("{name} is {there}, and was imported as {here}"));
    }
    let (names, looks) = (life.expected.len(), life.looks);
    drop(server);
    life.fleet.end()?;
    Ok(format!("{names} bindings imported, {looks} times listed by {:?}", life.clients))
}
