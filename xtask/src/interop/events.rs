//! The event service of a domain, used by clients of an ORB that know nothing of it: suppliers and
//! consumers that push and that pull, while consumers, the process that leads, and then each node
//! are killed.
//!
//! What it is not: a test of each operation; `crates/events/tests` has those.
//!
//! Clients with the adapter for omniORB subscribe by one call at the facade, and call again by
//! themselves: no exception reaches them.
//!
//! Invariant: in a reliable channel each number that was taken comes to every consumer, for the
//! first time in its order. Of a supplier that is pulled, an event that is under way when who pulls
//! it ends may be gone, one at each end: the standard acknowledges no pull.

pub(super) mod bridge;
pub(super) mod filters;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::domain::{DomainFile, NODES};
use super::fleet::{self, Fleet};
use super::{Context, Orb, Verdict};
use crate::examples::Example;
use crate::{omniorbpy, wait, workspace};

/// The name of the service, and of its group.
const SERVICE: &str = "events";
/// Events that are pushed, and so many that are pulled of a supplier.
const COUNT: usize = 1_500;
/// After so many of them something is killed: the process that leads, and each node in turn.
const KILLS: [usize; 1 + NODES] = [250, 500, 750, 1_000];
/// After so many consumers end that others are beside.
const CONSUMERS_END: usize = 125;
/// How long a step may take.
const TIME_MAX: Duration = Duration::from_secs(60);

/// What the clients are written with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    Compiled(Orb),
    Omniorbpy,
    /// omniORB, with what makes its calls again.
    Adapter,
}

impl Clients {
    pub(super) const ALL: [Self; 4] =
        [Self::Omniorbpy, Self::Compiled(Orb::Omniorb), Self::Compiled(Orb::Jacorb), Self::Adapter];

    pub(super) fn name(self) -> String {
        let orb = match self {
            Self::Compiled(orb) => orb.name(),
            Self::Omniorbpy => "omniorbpy",
            Self::Adapter => "adapter",
        };
        format!("events-{orb}-kills")
    }

    /// What is built before it runs.
    pub(super) const fn example(self) -> Option<Example> {
        match self {
            Self::Compiled(Orb::Omniorb) => Some(Example::OmniorbEvents),
            Self::Compiled(Orb::Jacorb) => Some(Example::JacorbBank),
            Self::Adapter => Some(Example::OmniorbAdapter),
            Self::Omniorbpy => None,
        }
    }

    /// The program; none if its ORB is not here.
    fn command(self) -> Option<Command> {
        let program = |example: Example, name| Some(Command::new(example.built().join(name)));
        match self {
            Self::Compiled(Orb::Omniorb) => program(Example::OmniorbEvents, "events_client"),
            Self::Compiled(Orb::Jacorb) => program(Example::JacorbBank, "bin/events-client"),
            Self::Adapter => program(Example::OmniorbAdapter, "events_ft"),
            Self::Omniorbpy => {
                let script = workspace::root().join("examples/omniorbpy-events/events.py");
                omniorbpy::command(&script)
            }
        }
    }
}

/// A client with its output in a file; killed when this is dropped.
struct Role {
    name: &'static str,
    child: Child,
    path: PathBuf,
}

impl Drop for Role {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Role {
    fn start(
        (clients, folder): (Clients, &Path),
        name: &'static str,
        words: &[&str],
    ) -> Result<Self, String> {
        let mut command = clients.command().ok_or("no such ORB")?;
        let path = folder.join(format!("{name}.out"));
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let out = File::create(&path).map_err(failed)?;
        let err = File::create(folder.join(format!("{name}.err"))).map_err(failed)?;
        command.args(words).stdin(Stdio::null()).stdout(out).stderr(err);
        let role = Self { name, child: command.spawn().map_err(failed)?, path };
        // Who is pulled may give numbers before its call has returned.
        let is_connected = || role.text().lines().any(|line| line == "connected");
        wait::until("a client is connected", TIME_MAX, || match is_connected() {
            true => Ok(()),
            false => Err(format!("{name} is not")),
        })?;
        Ok(role)
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }

    /// What it has printed so far; a line that is not whole yet is none.
    fn numbers(&self) -> Vec<usize> {
        let text = self.text();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn wait_for(&self, count: usize) -> Result<(), String> {
        wait::until("numbers come", TIME_MAX, || {
            let there: BTreeSet<usize> = self.numbers().into_iter().collect();
            match there.len() >= count {
                true => Ok(()),
                false => Err(format!("{} has {} of {count}", self.name, there.len())),
            }
        })
    }

    /// It has ended, and says that all went well.
    fn wait_for_end(&mut self) -> Result<(), String> {
        let status = wait::until("a client has ended", TIME_MAX, || {
            let status = self.child.try_wait().map_err(|error| error.to_string())?;
            status.ok_or_else(|| format!("{} goes on", self.name))
        })?;
        let err = fs::read_to_string(self.path.with_extension("err")).unwrap_or_default();
        if status.success() { Ok(()) } else { Err(format!("{}: {status}: {err}", self.name)) }
    }

    /// All numbers came but so many at most, for the first time in their order.
    fn check(&self, lost_max: usize) -> Result<Came, String> {
        self.wait_for(COUNT - lost_max)?;
        let (numbers, mut seen) = (self.numbers(), BTreeSet::new());
        for number in &numbers {
            let last = seen.last().copied().unwrap_or_default();
            if seen.insert(*number) && *number < last {
                return Err(format!("{}: {number} came behind {last}", self.name));
            }
        }
        Ok(Came { lost: COUNT - seen.len(), again: numbers.len() - seen.len() })
    }
}

/// What became of the numbers of one consumer.
struct Came {
    lost: usize,
    again: usize,
}

pub(super) fn run(context: &Context, clients: Clients) -> Verdict {
    if clients.command().is_none() {
        return Verdict::Skipped("no omniORBpy here: cargo xtask deps installs it".into());
    }
    let run = if clients == Clients::Adapter { run_adapted } else { run_in };
    run(context, clients).map_or_else(Verdict::Failed, Verdict::Passed)
}

/// A whole domain with channels, of which one is not reliable; and how each is called.
fn channels(context: &Context) -> Result<(Fleet, impl Fn(&str) -> String), String> {
    let folder = &context.folder;
    let domain = DomainFile::with_service(&context.quorba, folder, SERVICE)?;
    let failed = |error: std::io::Error| format!("{}: {error}", domain.path.display());
    let text = fs::read_to_string(&domain.path).map_err(failed)?;
    // Who ends without a word must not make suppliers wait: who is pushed to is given up, and who
    // pulls has room for everything.
    let sure = "reliable = true\nretry_ms = 100\ngive_up_ms = 2000\nqueue_events = 10000\n";
    let channels = format!(
        "[service.events.channel.plain]\n\
         [service.events.channel.drawn]\n{sure}\
         [service.events.channel.sure]\n{sure}\
         [service.events.channel.single]\n{sure}batch = 1\n"
    );
    fs::write(&domain.path, text + &channels).map_err(failed)?;
    let fleet = Fleet::start(&context.quorba, folder, SERVICE, domain)?;
    fleet.wait_whole()?;
    let gateways: Vec<String> =
        fleet.nodes().iter().map(|node| format!("iiop:1.2@{}", node.gateway)).collect();
    let channel = move |name: &str| format!("corbaloc:{}/Events/{name}", gateways.join(","));
    Ok((fleet, channel))
}

/// Kills consumers in the middle of what they are given.
fn kill_consumers(consumers: Vec<Role>, supplier: &Role) -> Result<(), String> {
    supplier.wait_for(CONSUMERS_END)?;
    // Dropped, they are killed.
    consumers.iter().try_for_each(|consumer| consumer.wait_for(1))
}

/// Kills the process that leads, and then each node, each when so many events were taken.
fn kill(fleet: &mut Fleet, supplier: &Role) -> Result<(), String> {
    for (number, after) in KILLS.into_iter().enumerate() {
        supplier.wait_for(after)?;
        fleet.wait_whole()?;
        match number.checked_sub(1) {
            None => fleet::signal(fleet.server(fleet.leader()?)?.pid, Signal::KILL),
            Some(node) => {
                fleet.kill_node(node);
                fleet.start_node(node)?;
            }
        }
    }
    Ok(())
}

/// Who is pushed to with a reply wanted, and who leaves out what came before, by the adapter.
fn run_adapted(context: &Context, clients: Clients) -> Result<String, String> {
    let (mut fleet, channel) = channels(context)?;
    let start = |name, words: &[&str]| Role::start((clients, &context.folder), name, words);
    let (sure, count) = (channel("sure"), COUNT.to_string());
    let pushed = start("sure-consume", &["consume", &sure])?;
    let once = start("sure-once", &["once", &sure])?;
    let doomed = vec![
        start("sure-consume-killed", &["consume", &sure])?,
        start("sure-once-killed", &["once", &sure])?,
    ];
    let mut supplier = start("sure-supply", &["supply", &sure, &count])?;
    kill_consumers(doomed, &supplier)?;
    kill(&mut fleet, &supplier)?;
    // What it repeats is known by its name, so no number is taken twice.
    supplier.wait_for_end()?;
    let (pushed_came, once_came) = (pushed.check(0)?, once.check(0)?);
    if once_came.again > 0 {
        return Err(format!("{} events came again to who is told numbers", once_came.again));
    }
    drop((pushed, once, supplier));
    fleet.wait_whole()?;
    fleet.end()?;
    Ok(format!(
        "{COUNT} events through {} kills and 2 of consumers; pushed: {} came again; told numbers: \
         each once",
        KILLS.len(),
        pushed_came.again
    ))
}

fn run_in(context: &Context, clients: Clients) -> Result<String, String> {
    let (mut fleet, channel) = channels(context)?;
    let folder = &context.folder;
    let start = |name, words: &[&str]| Role::start((clients, folder), name, words);

    without_faults(start, &channel("plain"), clients)?;
    let (sure, drawn, count) = (channel("sure"), channel("drawn"), COUNT.to_string());
    let pushed = start("sure-consume", &["consume", &sure])?;
    let pulled = start("sure-pull", &["pull", &sure])?;
    let doomed = vec![
        start("sure-consume-killed", &["consume", &sure])?,
        start("sure-pull-killed", &["pull", &sure])?,
        start("drawn-consume-killed", &["consume", &drawn])?,
    ];
    let supplier = start("sure-supply", &["supply", &sure, &count])?;
    let fetched = start("drawn-consume", &["consume", &drawn])?;
    let source = start("drawn-source", &["source", &drawn, &count])?;
    kill_consumers(doomed, &supplier)?;
    kill(&mut fleet, &supplier)?;
    supplier.wait_for(COUNT)?;
    source.wait_for(COUNT)?;
    let pushed_came = pushed.check(0)?;
    let pulled_came = pulled.check(0)?;
    // Who pulls of the source ends with each.
    let fetched_came = fetched.check(KILLS.len())?;
    drop((pushed, pulled, supplier, fetched, source));
    fleet.wait_whole()?;
    fleet.end()?;
    Ok(format!(
        "2 x {COUNT} events through {} kills and 3 of consumers; none lost of those pushed by the \
         supplier; {} came again where they are pushed, {} where they are pulled; {} lost of a \
         pulled supplier",
        KILLS.len(),
        pushed_came.again + fetched_came.again,
        pulled_came.again,
        fetched_came.lost
    ))
}

/// All four kinds at a channel that is not reliable; in Python a supplier with `pull` only, too.
fn without_faults(
    start: impl Fn(&'static str, &[&str]) -> Result<Role, String>,
    plain: &str,
    clients: Clients,
) -> Result<(), String> {
    let pushed = start("plain-consume", &["consume", plain])?;
    let pulled = start("plain-pull", &["pull", plain])?;
    let supplier = start("plain-supply", &["supply", plain, "100"])?;
    supplier.wait_for(100)?;
    let source = start("plain-source", &["source", plain, "150"])?;
    [&source, &pushed, &pulled].into_iter().try_for_each(|role| role.wait_for(150))?;
    if !matches!(clients, Clients::Omniorbpy) {
        return Ok(());
    }
    let waiting = start("plain-waiting", &["waiting", plain, "200"])?;
    [&waiting, &pushed, &pulled].into_iter().try_for_each(|role| role.wait_for(200))
}
