//! IceStorm beside ours: the event service of ZeroC Ice, with a supplier and consumers of its own
//! (`bench/peers/icestorm`), because it does not speak CORBA.
//!
//! What it is not: our supplier and consumers, so that what the two ORBs take in them differs.
//!
//! Invariant: every event comes to every consumer, or there is no figure.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::stand::Stand;
use super::{WARM_UP, is_here};

/// What runs IceStorm.
pub(super) const BOX: &str = "icebox";
const READY: &str = "READY";

/// The supplier and consumers, if they are built: `cargo xtask deps` does it.
pub(super) fn peer() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let built = program.parent()?.parent()?.join("bench/peers/icestorm/icestorm_peer");
    (is_here(BOX) && built.is_file()).then_some(built)
}

/// Its files, in that folder: topics are kept in memory only, as our channel is.
pub(super) fn write_files(folder: &Path, port: u16) -> std::io::Result<PathBuf> {
    let service = folder.join("icestorm.cfg");
    let text = format!(
        "IceStorm.InstanceName=IceStorm\n\
         IceStorm.TopicManager.Endpoints=tcp -h 127.0.0.1 -p {port}\n\
         IceStorm.Publish.Endpoints=tcp -h 127.0.0.1\n\
         IceStorm.Transient=1\n"
    );
    std::fs::write(&service, text)?;
    let file = folder.join("icebox.cfg");
    let text = format!(
        "IceBox.Service.IceStorm=IceStormService,37:createIceStorm --Ice.Config={}\n",
        service.display()
    );
    std::fs::write(&file, text)?;
    Ok(file)
}

/// A supplier and consumers, which have had their first events.
struct Peer {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    fn start(stand: &Stand, consumers: u32, ahead: u64, events: u32) -> Result<Self, String> {
        let program = peer().ok_or("icestorm_peer is not built")?;
        let mut command = Command::new(program);
        command.arg(stand.port.to_string()).arg(consumers.to_string()).arg(ahead.to_string());
        command.arg(WARM_UP.to_string()).arg(events.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |error: std::io::Error| format!("icestorm_peer: {error}");
        let mut child = command.spawn().map_err(failed)?;
        let said = BufReader::new(child.stdout.take().ok_or("icestorm_peer has no output")?);
        let mut peer = Self { child, said };
        match peer.line()?.as_str() {
            READY => Ok(peer),
            other => Err(format!("icestorm_peer says {other:?}")),
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.said.read_line(&mut line).map_err(|error| error.to_string())?;
        match read {
            0 => Err("icestorm_peer has ended".to_owned()),
            _ => Ok(line.trim().to_owned()),
        }
    }

    fn go(&mut self) -> Result<(), String> {
        let mut stdin = self.child.stdin.as_ref().ok_or("icestorm_peer has no input")?;
        stdin.write_all(b"go\n").map_err(|error| format!("icestorm_peer: {error}"))
    }

    fn nanoseconds(&mut self) -> Result<u64, String> {
        let line = self.line()?;
        line.parse().map_err(|_| format!("icestorm_peer says {line:?}"))
    }
}

/// From before each push until the consumer has the event, in nanoseconds.
pub(super) fn latency(stand: &Stand, events: u32) -> Result<Vec<u64>, String> {
    let mut peer = Peer::start(stand, 1, 0, events)?;
    peer.go()?;
    (0..events).map(|_| peer.nanoseconds()).collect()
}

/// How long `events` took to so many consumers, and the CPU time of the service meanwhile.
pub(super) fn load(
    stand: &Stand,
    consumers: u32,
    (ahead, events): (u64, u32),
) -> Result<(Duration, Duration), String> {
    let mut peer = Peer::start(stand, consumers, ahead, events)?;
    let before = stand.cpu()?;
    peer.go()?;
    let took = Duration::from_nanos(peer.nanoseconds()?);
    Ok((took, stand.cpu()?.saturating_sub(before)))
}
