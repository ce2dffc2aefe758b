//! Name servers of other ORBs, in processes of their own.
//!
//! Invariant: dropped, no process is left.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::examples::Example;
use crate::interop::{Context, domain};
use crate::{wait, workspace};

/// How long a JVM may take until the server says where it is.
const START_TIME_MAX: Duration = Duration::from_secs(30);

/// Whose it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::interop) enum Maker {
    Jacorb,
    Omninames,
}

pub(in crate::interop) struct NameServer {
    process: Child,
    /// Of the root context.
    reference: String,
}

impl Maker {
    /// Why there can be no such server here, if so.
    pub(in crate::interop) fn missing(self) -> Option<String> {
        let is_there = self == Self::Jacorb || workspace::program("omniNames").is_some();
        (!is_there).then(|| "no omniNames here: cargo xtask deps installs it".into())
    }
}

impl NameServer {
    /// One that has begun to serve, and has nothing bound.
    pub(in crate::interop) fn start(context: &Context, maker: Maker) -> Result<Self, String> {
        match maker {
            Maker::Jacorb => Self::start_jacorb(context),
            Maker::Omninames => Self::start_omninames(context),
        }
    }

    pub(in crate::interop) fn reference(&self) -> &str {
        &self.reference
    }

    fn spawn(mut command: Command, context: &Context, name: &str) -> Result<Self, String> {
        let path = context.folder.join(format!("{name}.log"));
        let log = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { process, reference: String::new() })
    }

    fn start_jacorb(context: &Context) -> Result<Self, String> {
        let ior = context.folder.join("jacorb-names.ior");
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
        let mut server = Self::spawn(command, context, "jacorb-names")?;
        let reference = || {
            let text =
                fs::read_to_string(&ior).map_err(|error| format!("{}: {error}", ior.display()))?;
            let is_whole = text.starts_with("IOR:");
            if is_whole { Ok(text.trim().to_owned()) } else { Err("no reference yet".into()) }
        };
        let what = "JacORB's name server says where it is";
        server.reference = wait::until(what, START_TIME_MAX, reference)?;
        Ok(server)
    }

    fn start_omninames(context: &Context) -> Result<Self, String> {
        let port = domain::free_ports(1)?;
        let data = context.folder.join("omninames");
        fs::create_dir_all(&data).map_err(|error| format!("{}: {error}", data.display()))?;
        let mut command = Command::new("omniNames");
        command.args(["-always", "-start", &port.to_string(), "-datadir"]).arg(&data);
        command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
        let mut server = Self::spawn(command, context, "omninames")?;
        wait::until("omniNames takes connections", START_TIME_MAX, || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(|error| error.to_string())
        })?;
        server.reference = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/NameService");
        Ok(server)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        // It cannot fail but for a process that has ended already.
        let _killed = self.process.kill();
        let _status = self.process.wait();
    }
}
