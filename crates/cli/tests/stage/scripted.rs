//! A domain whose one group, `g`, has scripted servers (`examples/scripted`), and what can be
//! asked of it.
//!
//! Whatever does not come out as it should is an `Err` in words, so that a test can go on and tell
//! of all that it found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Pid;
use serde_json::Value;

use super::wire::{Answer, Wire};
use super::{Domain, text};

/// The key of the servers' object.
pub const KEY: &[u8] = b"o";
/// The nodes, as the domain file calls them.
pub const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// What a call that nothing stands against may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(15);

/// How a test's step ended: what is wrong, if anything.
pub type Step<T = ()> = Result<T, String>;

/// The program of the scripted server. Cargo builds examples with all tests of a package, but not
/// with one that is named.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("it has a path");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    let program = profile.join("examples/scripted");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scripted");
    let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let files = fs::read_dir(sources).expect("the sources are there").filter_map(Result::ok);
    let newest: Option<SystemTime> = files.filter_map(|file| changed(&file.path())).max();
    assert!(
        changed(&program).is_some_and(|built| Some(built) >= newest),
        "{} is not built from its sources: cargo build -p quorba-cli --example scripted",
        program.display()
    );
    program
}

/// A server that no node starts, for the member on a node.
fn serve(domain: &Domain, node: usize, arguments: &[&str]) -> Child {
    let log = domain.folder.path().join(format!("srv-{}.log", NODES[node]));
    let port = domain.server_port(node).to_string();
    let mut command = Command::new(program());
    command.args(["--port", &port, "--node", NODES[node], "--log"]).arg(log).args(arguments);
    command.spawn().expect("it is built")
}

/// Waits until `check` finds nothing wrong; else gives what it found last.
pub fn eventually<T>(within: Duration, mut check: impl FnMut() -> Step<T>) -> Step<T> {
    let until = Instant::now() + within;
    loop {
        match check() {
            Ok(found) => return Ok(found),
            Err(wrong) if Instant::now() > until => {
                return Err(format!("{wrong} (waited {within:?})"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The server of one member, as its node shows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: Option<Pid>,
    pub restarts: u64,
    pub port: Option<u16>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pid = self.pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        write!(f, "{pid} ({} restarts)", self.restarts)
    }
}

/// A running domain.
pub struct Scripted {
    pub domain: Domain,
    is_stateless: bool,
    /// A member that does not lead has no server for long: one is enough to keep checkpoints.
    keeps_few: bool,
    /// Servers that no node starts.
    foreign: Vec<Child>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        for server in &mut self.foreign {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Scripted {
    /// A group of this style, with these lines in its table, whose servers get these arguments.
    /// It is healthy.
    pub fn start(style: &str, lines: &str, arguments: &[&str]) -> Self {
        let program = program().display().to_string();
        let mut server = vec![&program[..], "--port", "{port}", "--node", "{node}"];
        // Servers run in their nodes' state_dir.
        server.extend(["--log", "srv.log"].iter().chain(arguments));
        let is_stateless = style == "stateless";
        let state = if is_stateless { "" } else { "state_object = \"o\"\n" };
        let domain = Domain::start_group(&format!(
            "[group.g]\nstyle = \"{style}\"\nlisten = {{listen}}\n\
             members = [\"n1\", \"n2\", \"n3\"]\nserver = {server:?}\n\
             object_key = \"o\"\n{state}{lines}"
        ));
        domain.wait_healthy();
        Self { domain, is_stateless, keeps_few: style == "cold-passive", foreign: Vec::new() }
    }

    /// The same, but that the servers are started here, and the nodes connect to them.
    pub fn connect(style: &str, lines: &str, arguments: &[&str]) -> Self {
        let domain = Domain::start_group(&format!(
            "[group.g]\nstyle = \"{style}\"\nlisten = {{listen}}\n\
             members = [\"n1\", \"n2\", \"n3\"]\nconnect = {{connect}}\n\
             object_key = \"o\"\n{lines}"
        ));
        let foreign = (0..NODES.len()).map(|node| serve(&domain, node, arguments)).collect();
        domain.wait_healthy();
        Self { domain, is_stateless: false, keeps_few: false, foreign }
    }

    /// The server of a node is killed and another one started, which has nothing.
    pub fn start_anew(&mut self, node: usize, arguments: &[&str]) {
        let server = &mut self.foreign[node];
        server.kill().expect("it runs");
        server.wait().expect("it ends");
        *server = serve(&self.domain, node, arguments);
    }

    /// A new connection to the gateway of a node.
    pub fn client(&self, node: usize) -> Step<Wire> {
        let port = self.domain.first_port + 6 + node as u16;
        Wire::connect(port).map_err(|error| format!("the gateway of {}: {error}", NODES[node]))
    }

    /// Appends a text over a new connection to the gateway of a node.
    pub fn add(&self, node: usize, text: &str, within: Duration) -> Step<u32> {
        let mut client = self.client(node)?;
        let answer = client.call(KEY, "add", within, |out| out.write_string(text.as_bytes()));
        answer.number().map_err(|answer| format!("add at {}: {answer}", NODES[node]))
    }

    /// The request for something odd. `only_on` is a node's name, or empty.
    pub fn odd(
        client: &mut Wire,
        (what, only_on, late): (&str, &str, bool),
        text: &str,
        within: Duration,
    ) -> Answer {
        client.call(KEY, "odd", within, |out| {
            out.write_string(what.as_bytes());
            out.write_string(only_on.as_bytes());
            out.write_bool(late);
            out.write_string(text.as_bytes());
        })
    }

    /// The list, seen at the gateway of a node.
    pub fn log(&self, node: usize, within: Duration) -> Step<Vec<String>> {
        let answer = self.client(node)?.call(KEY, "log", within, |_| {});
        list(&answer).map_err(|answer| format!("log at {}: {answer}", NODES[node]))
    }

    /// The list of a server that no node has started, asked past its node.
    pub fn log_of_server(&self, node: usize) -> Step<Vec<String>> {
        let mut server = Wire::connect(self.domain.server_port(node)).map_err(|e| e.to_string())?;
        list(&server.call(KEY, "log", SOON, |_| {})).map_err(|answer| answer.to_string())
    }

    /// All of `texts` are in the list once, in their order, and the lists at all gateways are the
    /// same; of a stateless group, whose members have lists of their own, there is one.
    pub fn has_each_once(&self, texts: &[String], within: Duration) -> Step {
        let mut first = None;
        for (node, name) in NODES.iter().enumerate() {
            let found = self.log(node, within)?;
            if self.is_stateless {
                continue;
            }
            let kept: Vec<_> = found.iter().filter(|text| texts.contains(text)).collect();
            if !kept.iter().copied().eq(texts) {
                return Err(format!("at {name} there is {found:?}, not each of {texts:?} once"));
            }
            let first = first.get_or_insert_with(|| found.clone());
            if *first != found {
                return Err(format!("at n1 there is {first:?}, at {name} {found:?}"));
            }
        }
        Ok(())
    }

    /// All servers have the same list, each asked for itself, past its node.
    pub fn servers_are_equal(&self, within: Duration) -> Step {
        eventually(within, || {
            let mut lists = Vec::new();
            for (process, name) in self.processes()?.iter().zip(NODES) {
                let port = process.port.ok_or(format!("no server on {name}"))?;
                let mut server = Wire::connect(port).map_err(|error| format!("{name}: {error}"))?;
                let answer = server.call(KEY, "log", SOON, |_| {});
                lists.push(list(&answer).map_err(|answer| format!("server on {name}: {answer}"))?);
            }
            let are_equal = lists.windows(2).all(|pair| pair[0] == pair[1]);
            if are_equal { Ok(()) } else { Err(format!("the servers differ: {lists:?}")) }
        })
    }

    /// What all nodes say of themselves.
    pub fn status(&self) -> Step<Value> {
        let output = self.domain.quorba(&["-o", "json", "status"]);
        let told = || format!("status: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).map_err(|_| told())
    }

    /// The servers of all members, in the nodes' order.
    pub fn processes(&self) -> Step<Vec<Process>> {
        let status = self.status()?;
        let of_node = |node: usize| {
            let server = &status["nodes"][node]["status"]["groups"][0]["server"];
            let pid = server["pid"].as_i64().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
            let port = server["port"].as_u64().and_then(|port| port.try_into().ok());
            Process { pid, restarts: server["restarts"].as_u64().unwrap_or(0), port }
        };
        Ok((0..NODES.len()).map(of_node).collect())
    }

    /// No server was ended that ran `before`, but for those that a member needs no more.
    pub fn are_left_alone(&self, before: &[Process]) -> Step {
        let now = self.processes()?;
        let is_ended = |(before, now): (&Process, &Process)| {
            let is_unneeded =
                self.keeps_few && now.pid.is_none() && before.restarts == now.restarts;
            before != now && before.pid.is_some() && !is_unneeded
        };
        let are_ended = before.iter().zip(&now).any(is_ended)
            // Somebody leads.
            || now.iter().all(|process| process.pid.is_none());
        if are_ended { Err(format!("servers: {before:?} became {now:?}")) } else { Ok(()) }
    }

    /// All members are in, as all nodes see it.
    pub fn becomes_healthy(&self, within: Duration) -> Step {
        let within = format!("{}s", within.as_secs());
        let output = self.domain.quorba(&["status", "--wait-healthy", &within]);
        if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
    }

    /// What the servers on a node have noted, since the domain was started.
    pub fn noted(&self, node: usize) -> Vec<String> {
        let file = self.domain.folder.path().join(format!("quorba-state/{}/srv.log", NODES[node]));
        let noted = fs::read_to_string(file).unwrap_or_default();
        let without_pid = |line: &str| line.split_once(' ').map(|(_, what)| what.to_owned());
        noted.lines().filter_map(without_pid).collect()
    }

    /// How often each node's servers have begun to execute the request that appends `text`; with
    /// `refuse`, how often they have refused it.
    pub fn executions(&self, verb: &str, text: &str) -> [usize; 3] {
        let begins = format!("{verb} {text}");
        let is_it = |line: &&String| {
            line.strip_prefix(&begins).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        [0, 1, 2].map(|node| self.noted(node).iter().filter(is_it).count())
    }
}

fn list(answer: &Answer) -> Step<Vec<String>> {
    let all = answer.text()?;
    Ok(all.split(',').filter(|text| !text.is_empty()).map(str::to_owned).collect())
}
