//! One repetition of a case: a domain, a client, a fault, and the gap.
//!
//! Invariants: the fault comes when every member is in and the client has been answered for a
//! while; nothing of a repetition is left behind, stopped processes included.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorba_net::free_ports;
use rustix::process::{Pid, Signal, kill_process};

use super::EFFECT;
use super::caller::{Caller, Calls};
use super::case::{CLIENT, Fault, LEADER, OTHER, Sharing, Victim};
use super::record::Sample;
use crate::domain::{self, Domain, Servers};
use crate::namespaces::Namespaces;
use crate::plan::DomainShape;
use crate::ring_share::to_f64;

/// Calls before anything is looked at.
const WARM_UP_CALLS: u64 = 200;
/// What the servers have answered when the fault comes, about.
const BYSTANDER_CALLS: u64 = 8_000;
/// How long calls are looked at before the fault, and at least behind it.
const WINDOW: Duration = Duration::from_secs(1);
/// How long the first answer behind the fault may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Pause between two looks at the client.
const LOOK: Duration = Duration::from_millis(5);
/// Silence after which a server that owes a reply counts as dead; a user's default is longer.
pub(crate) const SERVER_REPLY: Duration = Duration::from_millis(500);
const NODES: usize = 3;
/// Requests behind which the leader of a passive group sends its state, if that is to matter.
const LATE_REQUESTS: u64 = 2_000;
/// So many are logged when the leader's server dies: a look at them takes some calls' time.
const LATE_ENOUGH: u64 = 1_800;
/// How long it may take until then.
const LATE_WITHIN: Duration = Duration::from_secs(60);

/// What all repetitions share.
pub(super) struct Bench<'a> {
    /// This very program, which is the nodes and the servers.
    pub(super) program: PathBuf,
    /// Set when the user wants it to end.
    pub(super) interrupted: &'a AtomicBool,
}

/// Why a repetition gave no figure.
pub(super) enum Failed {
    /// It did not get to the fault, which says nothing about the fault.
    Start(String),
    /// Behind the fault.
    Fault(String),
}

/// What the next leader has to execute anew.
#[derive(Clone, Copy, Debug, Default)]
struct Replay {
    requests: u64,
    /// What that took the former leader's server.
    us: f64,
}

/// The nodes' cables.
pub(super) struct Network(Namespaces);

impl Network {
    /// Makes it, or says why this machine does not let us.
    pub(super) fn make() -> Result<Self, String> {
        Namespaces::make(NODES).map(Self)
    }
}

/// A server that no node knows, and that has answered about as many calls: to end a process takes
/// the machine the longer, the more memory it has.
struct ReferenceServer {
    child: Child,
    port: u16,
}

impl ReferenceServer {
    fn start(program: &Path) -> Result<Self, String> {
        let port = free_ports(1).map_err(|error| format!("no free port: {error}"))?[0];
        let mut command = Command::new(program);
        command.args(["servant", "bank", "--port", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("no bystander: {error}"))?;
        Ok(Self { child, port })
    }

    fn reference(&self) -> String {
        format!("corbaloc:iiop:1.2@127.0.0.1:{}/bank", self.port)
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        // It may have been met already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bench<'_> {
    /// Runs one repetition: its figures, and when each answer came, in microseconds since the
    /// fault.
    pub(super) fn run(
        &self,
        case: (Sharing, Fault),
        repetition: u32,
    ) -> Result<(Sample, Vec<i64>), Failed> {
        if !case.1.is_cut() {
            return self.run_within(None, case, repetition);
        }
        let network = Network::make().map_err(Failed::Start)?;
        // What it starts, the client included, stays where the clients are.
        let inside = || Ok(self.run_within(Some(&network), case, repetition));
        network.0.clients().run(inside).map_err(Failed::Start)?
    }

    fn run_within(
        &self,
        network: Option<&Network>,
        (style, fault): (Sharing, Fault),
        repetition: u32,
    ) -> Result<(Sample, Vec<i64>), Failed> {
        let start = Failed::Start;
        let folder = tempfile::Builder::new().prefix("quorba-lab-").tempdir();
        let folder = folder.map_err(|error| start(format!("no temporary folder: {error}")))?;
        let servers = Servers::Bank(&self.program);
        let shape = shape(style, fault);
        let what = (&shape, &*self.program, servers);
        let namespaces = network.map(|network| &network.0);
        let domain = Domain::start_within(namespaces, what, folder.path(), false);
        let domain = domain.map_err(start)?;
        let bystander =
            matches!(fault, Fault::ReferenceServer).then(|| ReferenceServer::start(&self.program));
        let bystander = bystander.transpose().map_err(start)?;
        if let Some(bystander) = &bystander {
            let caller = Caller::start(&bystander.reference()).map_err(start)?;
            let called = self.await_answers(&caller, BYSTANDER_CALLS);
            caller.stop();
            called.map_err(start)?;
        }
        let caller = Caller::start(&reference(&domain)).map_err(start)?;
        let ready = self.await_answers(&caller, WARM_UP_CALLS);
        let victim = ready.and_then(|()| aim(&domain, bystander.as_ref(), (style, fault)));
        let victim = match victim {
            Ok(victim) => victim,
            Err(reason) => {
                caller.stop();
                return Err(Failed::Start(reason));
            }
        };
        thread::sleep(WINDOW);
        let replay = match fault.is_late_in(style) {
            true => self.await_late(&domain),
            false => Ok(Replay::default()),
        };
        let replay = match replay {
            Ok(replay) => replay,
            Err(reason) => {
                caller.stop();
                return Err(Failed::Start(reason));
            }
        };
        let began = Instant::now();
        let struck = strike(&domain, network, &victim);
        // A cable is cut by a program, which takes its time before it does.
        let at = if matches!(victim, Target::Cable(_)) { Instant::now() } else { began };
        thread::sleep(WINDOW);
        let answered = struck.and_then(|()| {
            let before = caller.answered();
            self.await_answers(&caller, before + 1)
        });
        // What is stopped would not end by itself when asked to.
        let released = release(&domain, &victim);
        let calls = caller.stop();
        answered.and(released).map_err(Failed::Fault)?;
        let replies = calls.replies.iter().map(|reply| since(at, *reply)).collect();
        let sample = sample((style, fault), repetition, at, &calls);
        let sample = sample.ok_or_else(|| Failed::Fault("no answers".to_owned()))?;
        Ok((Sample { replayed: replay.requests, replay_us: replay.us, ..sample }, replies))
    }

    /// Waits until the member that is to lead next has logged much.
    fn await_late(&self, domain: &Domain) -> Result<Replay, String> {
        let deadline = Instant::now() + LATE_WITHIN;
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            let statuses = domain.statuses()?;
            let group = |index: usize| statuses[index].groups.first().ok_or("no group");
            let (leader, next) = (group(LEADER)?, group(OTHER)?);
            if next.logged >= LATE_ENOUGH {
                let each_us = to_f64(leader.served_us) / to_f64(leader.served.max(1));
                return Ok(Replay { requests: next.logged, us: to_f64(next.logged) * each_us });
            }
            if Instant::now() >= deadline {
                return Err(format!("{} requests logged, and not {LATE_ENOUGH}", next.logged));
            }
            thread::sleep(LOOK);
        }
    }

    fn await_answers(&self, caller: &Caller, count: u64) -> Result<(), String> {
        let deadline = Instant::now() + ANSWER_WITHIN;
        while caller.answered() < count {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            if Instant::now() >= deadline {
                return Err(format!("no answer within {} s", ANSWER_WITHIN.as_secs()));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

pub(super) fn shape(style: Sharing, fault: Fault) -> DomainShape {
    let mut group = toml::Table::new();
    let reply_ms = i64::try_from(SERVER_REPLY.as_millis()).expect("a short time");
    let [style_word, execution] = style.keys();
    group.insert("style".to_owned(), style_word.into());
    group.insert("execution".to_owned(), execution.into());
    group.insert("state_object".to_owned(), "bank".into());
    group.insert("server_reply_ms".to_owned(), reply_ms.into());
    if fault.is_late_in(style) {
        let requests = i64::try_from(LATE_REQUESTS).expect("a few");
        group.insert("checkpoint_requests".to_owned(), requests.into());
        // Never because of the time.
        group.insert("checkpoint_ms".to_owned(), 60_000.into());
    }
    DomainShape {
        nodes: NODES,
        members: NODES,
        client: CLIENT + 1,
        wire: None,
        ring: toml::Table::new(),
        limits: toml::Table::new(),
        group,
        server_options: Vec::new(),
        server_socket: false,
    }
}

/// The bank at every gateway, the client's first.
fn reference(domain: &Domain) -> String {
    let gateways: Vec<String> =
        domain.gateways().map(|gateway| format!("iiop:1.2@{gateway}")).collect();
    format!("corbaloc:{}/bank", gateways.join(","))
}

/// A victim, as the system knows it.
enum Target {
    Server(u32, Signal),
    Node(usize, Signal),
    Cable(usize),
    Nobody,
}

/// Finds out who is to be met, while nothing has happened yet.
fn aim(
    domain: &Domain,
    bystander: Option<&ReferenceServer>,
    (style, fault): (Sharing, Fault),
) -> Result<Target, String> {
    let victim = fault.meets(style).expect("only such cases are run");
    let server = |index: usize| {
        let name = format!("server of n{}", index + 1);
        let servers = domain::servers(&domain.statuses()?);
        let found = servers.iter().find(|server| server.name == name);
        found.map(|server| server.pid).ok_or_else(|| format!("there is no {name}"))
    };
    Ok(match victim {
        Victim::KilledServer(index) => Target::Server(server(index)?, Signal::KILL),
        Victim::StoppedServer(index) => Target::Server(server(index)?, Signal::STOP),
        Victim::KilledNode(index) => Target::Node(index, Signal::KILL),
        Victim::StoppedNode(index) => Target::Node(index, Signal::STOP),
        Victim::CutNode(index) => Target::Cable(index),
        Victim::ReferenceServer => {
            let bystander = bystander.ok_or_else(|| "there is no bystander".to_owned())?;
            Target::Server(bystander.child.id(), Signal::KILL)
        }
        Victim::Nobody => Target::Nobody,
    })
}

fn strike(domain: &Domain, network: Option<&Network>, aim: &Target) -> Result<(), String> {
    match aim {
        Target::Server(pid, signal) => send(*pid, *signal),
        Target::Node(index, signal) => {
            domain.signal(*index, *signal).map_err(|error| error.to_string())
        }
        Target::Cable(index) => {
            let network = network.ok_or_else(|| "the nodes have no cables".to_owned())?;
            network.0.set_plugged(*index, false)
        }
        Target::Nobody => Ok(()),
    }
}

fn release(domain: &Domain, aim: &Target) -> Result<(), String> {
    match aim {
        // Its node has given it up and killed it, or will when it ends.
        Target::Server(..) | Target::Node(_, Signal::KILL) | Target::Nobody => Ok(()),
        // It ends with its namespace's network, cut or not.
        Target::Cable(_) => Ok(()),
        Target::Node(index, _) => {
            domain.signal(*index, Signal::KILL).map_err(|error| error.to_string())
        }
    }
}

fn send(pid: u32, signal: Signal) -> Result<(), String> {
    let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = known.ok_or_else(|| format!("{pid} is no process"))?;
    kill_process(pid, signal).map_err(|error| format!("the server cannot be met: {error}"))
}

/// The figures, if there were answers before the fault and behind it.
pub(super) fn sample(
    (style, fault): (Sharing, Fault),
    repetition: u32,
    at: Instant,
    calls: &Calls,
) -> Option<Sample> {
    let pairs = || calls.replies.windows(2).map(|pair| (pair[0], pair[1]));
    let before = pairs().filter(|(from, to)| *to <= at && *from + WINDOW >= at);
    let mut normal: Vec<Duration> = before.map(|(from, to)| to - from).collect();
    normal.sort_unstable();
    let behind = pairs().filter(|(from, to)| *to > at && *from < at + WINDOW);
    let gap = behind.map(|(from, to)| to - from).max()?;
    // The longest wait that touches a while as long as a fault is felt.
    let longest = |begins: Instant, until: Option<Instant>| {
        let touches = pairs().filter(|(from, to)| {
            *to > begins && *from < begins + EFFECT && until.is_none_or(|until| *to <= until)
        });
        touches.map(|(from, to)| to - from).max()
    };
    let whiles = u32::try_from(WINDOW.as_millis() / EFFECT.as_millis()).expect("a few");
    let earlier = (1..=whiles).filter_map(|number| at.checked_sub(EFFECT * number));
    let mut controls: Vec<Duration> =
        earlier.filter_map(|begins| longest(begins, Some(at))).collect();
    controls.sort_unstable();
    let (from, to) = pairs().find(|(from, to)| *from <= at && *to > at)?;
    Some(Sample {
        around_us: micros(to - from),
        window_us: micros(longest(at, None)?),
        control_us: micros(*controls.get(controls.len() / 2)?),
        style,
        fault,
        repetition,
        gap_us: micros(gap),
        normal_us: micros(*normal.get(normal.len() / 2)?),
        longest_before_us: micros(*normal.last()?),
        replayed: 0,
        replay_us: 0.0,
        exceptions: calls.exceptions,
        answered: calls.replies.len() as u64,
    })
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn since(at: Instant, reply: Instant) -> i64 {
    let us = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    if reply >= at { us(reply - at) } else { -us(at - reply) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_base::policy::Style;

    #[test]
    fn every_domain_is_accepted() {
        for style in Sharing::ALL {
            for fault in Fault::ALL {
                assert_eq!(domain::refusal(&shape(style, fault)), None);
            }
        }
    }

    #[test]
    fn the_gap_is_the_longest_wait_that_ends_behind_the_fault() {
        let begin = Instant::now();
        let ms = |ms: u64| begin + Duration::from_millis(ms);
        // A wait of 30 ms before the fault at 500 ms, one of 80 ms around it, one of 20 ms behind.
        let mut replies: Vec<Instant> = (0..47).map(|n| ms(n * 10)).collect();
        replies.extend([ms(490), ms(570), ms(590), ms(600)]);
        let calls = Calls { replies, exceptions: 2 };
        let case = (Sharing::Together(Style::Active), Fault::StoppedNode);
        let found = sample(case, 1, ms(500), &calls).expect("a sample");
        assert_eq!((found.gap_us, found.normal_us), (80_000.0, 10_000.0));
        assert_eq!((found.around_us, found.answered), (80_000.0, 51));
        assert_eq!(found.longest_before_us, 30_000.0);
        assert_eq!(found.exceptions, 2);
        assert!(sample(case, 1, ms(700), &calls).is_none(), "nothing behind the fault");
    }
}
