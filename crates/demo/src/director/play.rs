//! The run itself: load, kills, and what is shown of them.
//!
//! What it is not: the judge. What became of the calls is counted by [`super::finish`].
//!
//! Invariants: nothing is killed by the plan unless the group is whole; every fault is followed
//! until the group is whole again, and told with the longest gap that the clients saw.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use quorba_base::policy::Style;

use super::Interrupt;
use super::chaos::{Chaos, Victim};
use super::fleet::{Change, Fleet, Standing};
use super::lines::Lines;
use super::model::{EventKind, Model, NodeModel, Process};
use super::names::Names;
use super::screen::{Key, Screen};
use super::stage::Stage;
use super::watch::{Seen, Watch};
use crate::load::Load;
use crate::options::{DemoError, DemoOptions, KILL_EVERY_DEFAULT, Show};
use crate::processes;

/// Time between two looks at everything.
const TICK: Duration = Duration::from_millis(20);
/// Time between two points of a curve.
const SLOT: Duration = Duration::from_millis(250);
/// How long a node stays down that the plan killed.
const DOWN_FOR: Duration = Duration::from_millis(300);
/// How long one stays down that a person killed, who is to see it; `r` starts it sooner.
const DOWN_FOR_EYES: Duration = Duration::from_secs(3);
/// How long a paused node stays paused.
const PAUSE_FOR: Duration = Duration::from_secs(2);
/// The load ends at a history of so many entries: each joining replica is sent all of it, and a
/// message has an end.
const ENTRIES_MAX: u64 = 500_000;

/// A run that is on.
pub(super) struct Play<'a> {
    pub(super) options: &'a DemoOptions,
    pub(super) stage: &'a Stage,
    pub(super) fleet: Fleet,
    pub(super) watch: Watch,
    pub(super) load: Load,
    pub(super) model: Model,
    names: Names,
    pub(super) ready: Duration,
    pub(super) unexpected_exits: u64,
    began: Instant,
    chaos: Option<Chaos>,
    fault: Option<Fault>,
    /// Process ids of servers that were killed: an answer that still names one is of the past.
    killed_servers: BTreeSet<u32>,
    turn: usize,
    slot_due: Duration,
    view: View,
}

/// Something was broken, and is not whole again yet.
struct Fault {
    what: String,
    at: Instant,
}

enum View {
    Picture(Screen),
    Lines(Lines),
    Quiet,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        options: &'a DemoOptions,
        stage: &'a Stage,
        fleet: Fleet,
        watch: Watch,
        load: Load,
        ready: Duration,
    ) -> Result<Self, DemoError> {
        let view = match options.show {
            Show::Picture if Screen::is_possible() => {
                View::Picture(Screen::take().map_err(DemoError::system("take the terminal"))?)
            }
            Show::Picture | Show::Lines => View::Lines(Lines::default()),
            Show::Quiet => View::Quiet,
        };
        let nodes = stage.nodes().iter().map(|node| NodeModel {
            name: node.name.clone(),
            gateway: node.gateway.to_string(),
            ..NodeModel::default()
        });
        let model = Model {
            nodes: nodes.collect(),
            run_for: options.run_for,
            durable: options.durable,
            ..Model::default()
        };
        let mut play = Self {
            options,
            stage,
            fleet,
            watch,
            load,
            model,
            names: Names::start(stage),
            ready,
            unexpected_exits: 0,
            began: Instant::now(),
            chaos: None,
            fault: None,
            killed_servers: BTreeSet::new(),
            turn: 0,
            slot_due: SLOT,
            view,
        };
        if matches!(play.view, View::Picture(_)) {
            let file = stage.domain_file().display().to_string();
            let text = format!("in another terminal: quorba status -c {file}");
            play.tell(EventKind::Note, text);
        }
        if let Some(every) = options.kill_every {
            play.start_chaos(every);
        }
        Ok(play)
    }

    /// Plays until the time is over, a key or a signal ends it, or the history is full.
    pub(super) fn run(&mut self, interrupt: &Interrupt) -> Result<(), DemoError> {
        loop {
            self.look()?;
            let over = self.options.run_for.is_some_and(|time| self.model.elapsed >= time);
            if over || interrupt.is_asked() {
                return Ok(());
            }
            if self.model.nodes.iter().any(|node| node.executed >= ENTRIES_MAX) {
                let text = format!("the history has {ENTRIES_MAX} entries: the load ends here");
                self.tell(EventKind::Note, text);
                return Ok(());
            }
            let elapsed = self.model.elapsed;
            let whole = self.model.whole;
            if let Some(victim) = self.chaos.as_mut().and_then(|plan| plan.poll(elapsed, whole)) {
                self.strike(victim, DOWN_FOR);
            }
            if self.show_and_listen()? == Some(Key::Quit) {
                return Ok(());
            }
        }
    }

    /// Does what is due, and brings the model up to date.
    pub(super) fn look(&mut self) -> Result<(), DemoError> {
        self.model.elapsed = self.began.elapsed();
        let changes = self.fleet.poll().map_err(DemoError::system("look after the nodes"))?;
        for change in changes {
            self.tell_change(&change);
        }
        self.update_nodes();
        self.update_figures();
        if self.model.whole
            && let Some(fault) = self.fault.take()
        {
            let gap = self.load.gap_since_mark();
            let text = format!(
                "all members in again {:.0} ms after {}; longest gap {:.1} ms",
                fault.at.elapsed().as_secs_f64() * 1e3,
                fault.what,
                gap.as_secs_f64() * 1e3
            );
            self.tell(EventKind::Repair, text);
            self.names.resolve();
        }
        for (kind, text) in self.names.told() {
            self.tell(kind, text);
        }
        Ok(())
    }

    /// Starts and resumes whatever is down.
    pub(super) fn restore(&mut self) -> Result<(), DemoError> {
        let changes = self.fleet.restore().map_err(DemoError::system("start nodes again"))?;
        for change in changes {
            self.tell_change(&change);
        }
        Ok(())
    }

    /// Gives the terminal back; what comes is told in lines.
    pub(super) fn end_picture(&mut self) {
        if let View::Picture(_) = self.view {
            self.view = View::Lines(Lines::default());
        }
    }

    pub(super) fn tell(&mut self, kind: EventKind, text: impl Into<String>) {
        let event = self.model.event(kind, text);
        if let View::Lines(lines) = &self.view {
            lines.event(event);
        }
    }

    fn show_and_listen(&mut self) -> Result<Option<Key>, DemoError> {
        let key = match &mut self.view {
            View::Picture(screen) => {
                screen.draw(&self.model).map_err(DemoError::system("draw on the terminal"))?;
                screen.key(TICK).map_err(DemoError::system("read a key"))?
            }
            View::Lines(lines) => {
                lines.figures(&self.model);
                thread::sleep(TICK);
                None
            }
            View::Quiet => {
                thread::sleep(TICK);
                None
            }
        };
        if let Some(key) = key {
            self.act(key)?;
        }
        Ok(key)
    }

    fn act(&mut self, key: Key) -> Result<(), DemoError> {
        match key {
            Key::Choose(index) if index < self.options.nodes => {
                // Chosen again, it is chosen no longer.
                self.model.selected = (self.model.selected != Some(index)).then_some(index);
            }
            Key::Choose(_) | Key::Quit => {}
            Key::KillServer => {
                let host = self.next_host();
                self.strike(Victim::Server(host), DOWN_FOR_EYES);
            }
            Key::KillNode => {
                let host = self.next_host();
                self.strike(Victim::Node(host), DOWN_FOR_EYES);
            }
            Key::KillDomain if self.options.durable => self.strike(Victim::Domain, DOWN_FOR_EYES),
            Key::KillDomain => {
                let text = "only a durable group survives the end of all nodes: see --durable";
                self.tell(EventKind::Note, text);
            }
            Key::Pause => {
                let host = self.next_host();
                if self.fleet.pause(host, PAUSE_FOR) {
                    self.begin_fault(format!("{} was paused (SIGSTOP)", self.name(host)));
                }
            }
            Key::Restart => self.restore()?,
            Key::Chaos if self.chaos.take().is_none() => {
                self.start_chaos(self.options.kill_every.unwrap_or(KILL_EVERY_DEFAULT));
            }
            Key::Chaos => self.model.chaos = false,
            Key::Status => self.tell_status(),
            Key::Help => self.model.shows_help = !self.model.shows_help,
        }
        Ok(())
    }

    fn start_chaos(&mut self, every: Duration) {
        let victims = (self.options.nodes, self.options.durable);
        let plan = Chaos::new(every, victims, self.options.seed, self.model.elapsed);
        self.chaos = Some(plan);
        self.model.chaos = true;
    }

    /// The chosen node, or the next one in turn.
    fn next_host(&mut self) -> usize {
        self.model.selected.unwrap_or_else(|| {
            self.turn += 1;
            self.turn % self.options.nodes
        })
    }

    fn strike(&mut self, victim: Victim, down_for: Duration) {
        let (struck, what) = match victim {
            Victim::Server(host) => {
                let host = self.with_server(host);
                let pid = self.watch.seen(host).server().map(|(pid, _)| pid);
                let struck = pid.is_some_and(|pid| {
                    self.killed_servers.insert(pid);
                    processes::kill_of_run(pid, self.stage.path())
                });
                (
                    u64::from(struck),
                    format!("{}'s bank server was killed (SIGKILL)", self.name(host)),
                )
            }
            Victim::Node(host) => {
                let struck = self.kill_node(host, down_for);
                (u64::from(struck), format!("node {} was killed (SIGKILL)", self.name(host)))
            }
            Victim::Domain => {
                let hosts = 0..self.options.nodes;
                let struck = hosts.filter(|host| self.kill_node(*host, down_for)).count() as u64;
                (struck, "all nodes were killed at once (SIGKILL)".to_owned())
            }
        };
        if struck > 0 {
            self.model.kills += struck;
            self.begin_fault(what);
        } else {
            self.tell(EventKind::Note, "there is nothing to kill there just now");
        }
    }

    fn kill_node(&mut self, host: usize, down_for: Duration) -> bool {
        let struck = self.fleet.kill(host, Some(down_for));
        self.watch.forget(host);
        struck
    }

    /// The host, or, if none of its own is wanted there, one on which a server runs.
    fn with_server(&self, host: usize) -> usize {
        let runs = |host: &usize| self.watch.seen(*host).server().is_some();
        let others = (1..self.options.nodes).map(|step| (host + step) % self.options.nodes);
        std::iter::once(host).chain(others).find(runs).unwrap_or(host)
    }

    fn begin_fault(&mut self, what: String) {
        self.load.mark_gap();
        self.tell(EventKind::Fault, what.clone());
        self.model.whole = false;
        self.fault = Some(Fault { what, at: Instant::now() });
    }

    fn tell_change(&mut self, change: &Change) {
        match change {
            Change::Started(host) => {
                let text = format!("node {} is started again", self.name(*host));
                self.tell(EventKind::Note, text);
            }
            Change::Resumed(host) => {
                let text = format!("node {} runs on (SIGCONT)", self.name(*host));
                self.tell(EventKind::Note, text);
            }
            Change::Exited(host, status) => {
                self.unexpected_exits += 1;
                self.watch.forget(*host);
                let said = self.fleet.log_tail(*host);
                let last = said.lines().last().unwrap_or("nothing").to_owned();
                let name = self.name(*host);
                let text = format!("node {name} ended by itself ({status}); it said: {last}");
                self.tell(EventKind::Alarm, text);
                self.fleet.start_after(*host, DOWN_FOR);
            }
        }
    }

    fn tell_status(&mut self) {
        for host in 0..self.options.nodes {
            let seen = self.watch.seen(host);
            let Some(status) = &seen.status else { continue };
            let ring = &status.ring;
            let bank = seen.bank();
            let text = format!(
                "{}: ring {}, view {} of {}; {} retransmits; {} requests, {} repeated; {} MB",
                status.node,
                ring.state,
                ring.view_seq,
                ring.members.join(" "),
                ring.retransmits,
                bank.map_or(0, |bank| bank.requests),
                bank.map_or(0, |bank| bank.duplicates),
                status.rss_bytes >> 20
            );
            self.tell(EventKind::Note, text);
        }
    }

    fn update_nodes(&mut self) {
        let answers: Vec<Seen> =
            (0..self.options.nodes).map(|host| self.watch.seen(host)).collect();
        let mut whole = true;
        for host in 0..self.options.nodes {
            let seen = &answers[host];
            let standing = self.fleet.standing(host);
            whole &= self.is_well(standing, seen);
            // Of the member, its own node knows first; if it does not answer, another does.
            let name = self.stage.nodes()[host].name.as_str();
            let fresh = (std::iter::once(seen).chain(&answers))
                .filter(|answer| answer.is_fresh())
                .find_map(|answer| answer.member(name));
            let node = &mut self.model.nodes[host];
            node.process = process(standing, seen);
            node.member = fresh;
            if let Some(bank) = seen.bank() {
                node.executed = bank.executed;
                node.connections = bank.connections;
                node.server_restarts = bank.server.as_ref().map_or(0, |server| server.restarts);
            }
        }
        let views = answers.iter().filter_map(|seen| Some(seen.status.as_ref()?.ring.view_seq));
        self.model.view = views.max().unwrap_or(self.model.view);
        self.model.whole = whole;
    }

    /// Whether the node's own answer is of now, and says that every member is in.
    fn is_well(&self, standing: Standing, seen: &Seen) -> bool {
        let Some(status) = &seen.status else { return false };
        let needs_none = seen.bank().is_some_and(|bank| {
            bank.style == Style::ColdPassive.as_str() && bank.leader.as_ref() != Some(&status.node)
        });
        let server_is_new = match seen.server() {
            Some((pid, _)) => !self.killed_servers.contains(&pid),
            None => needs_none,
        };
        standing == Standing::Up(status.pid)
            && seen.is_fresh()
            && server_is_new
            && seen.sees_all(self.options.nodes)
    }

    fn update_figures(&mut self) {
        self.model.counts = self.load.counts();
        self.model.latency = self.load.latency();
        self.model.longest_gap = self.load.longest_gap();
        if self.model.elapsed >= self.slot_due {
            self.slot_due = self.model.elapsed + SLOT;
            let slot = self.load.take_slot();
            self.model.slot(slot);
        }
    }

    fn name(&self, host: usize) -> String {
        self.stage.nodes()[host].name.clone()
    }
}

fn process(standing: Standing, seen: &Seen) -> Process {
    match standing {
        Standing::Down => Process::Down,
        Standing::Paused => Process::Paused,
        Standing::Up(_) if seen.is_fresh() => Process::Up,
        Standing::Up(_) if seen.status.is_none() => Process::Starting,
        Standing::Up(_) => Process::Silent,
    }
}
