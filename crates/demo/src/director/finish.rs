//! The end of a run: the load stops, the group becomes whole, every replica is read from its own
//! server port, and the calls are accounted for.
//!
//! What it is not: lenient. A replica that cannot be read is a difference, not an excuse.

use std::thread;
use std::time::{Duration, Instant};

use quorba_admin::{Change, Client};
use quorba_base::policy::Style;

use super::model::EventKind;
use super::play::Play;
use super::stage::BANK_KEY;
use crate::accounting::{self, Replica, Unread, read};
use crate::options::{DemoError, DemoOutcome};

/// How long the group has to become whole after the load.
const WHOLE_WITHIN: Duration = Duration::from_secs(20);
/// How long replicas have to finish what was ordered.
const QUIET_WITHIN: Duration = Duration::from_secs(5);
/// Replicas that have executed the same number of calls for so long have finished.
const QUIET_FOR: Duration = Duration::from_millis(200);
/// How long the load of a stateless group goes on after the last fault: calls of that time are
/// held against what the servers have.
const HELD_FOR: Duration = Duration::from_secs(1);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

impl Play<'_> {
    /// Ends the run and accounts for it.
    pub(super) fn finish(mut self) -> Result<DemoOutcome, DemoError> {
        self.end_picture();
        let since = if self.options.is_stateless() { self.go_on_whole()? } else { 0 };
        self.tell(EventKind::Note, "the load ends; every replica is read when all members are in");
        let result = self.load.stop();
        self.restore()?;
        self.await_whole()?;
        self.bring_all_up();
        self.await_quiet();
        let recordings = std::slice::from_ref(&result.recording);
        let since = self.options.is_stateless().then_some(since);
        let account = accounting::judge(recordings, self.read_replicas(), since);
        let outcome = DemoOutcome {
            requests: account.requests,
            acknowledged: account.acknowledged,
            lost: account.lost,
            doubled: account.doubled,
            maybe: account.maybe(),
            kills: self.model.kills,
            longest_gap_ms: (result.longest_gap.as_secs_f64() * 1e4).round() / 10.0,
            p50_us: result.latency.p50_us,
            p99_us: result.latency.p99_us,
            replicas_equal: account.replicas_equal,
            refused: account.refused + account.refused_executed,
            ready_ms: u64::try_from(self.ready.as_millis()).unwrap_or(u64::MAX),
            unexpected_exits: self.unexpected_exits,
            account,
        };
        self.fleet.terminate();
        Ok(outcome)
    }

    /// The load goes on for a while with all servers that are read in the end; since when, in
    /// microseconds of its clock.
    fn go_on_whole(&mut self) -> Result<u64, DemoError> {
        self.restore()?;
        self.await_whole()?;
        let since = u64::try_from(self.load.now().as_micros()).unwrap_or(u64::MAX);
        let until = Instant::now() + HELD_FOR;
        while Instant::now() < until {
            thread::sleep(LOOK);
            self.look()?;
        }
        Ok(since)
    }

    fn await_whole(&mut self) -> Result<(), DemoError> {
        let deadline = Instant::now() + WHOLE_WITHIN;
        self.look()?;
        while !self.model.whole && Instant::now() < deadline {
            thread::sleep(LOOK);
            self.look()?;
        }
        if !self.model.whole {
            let standing = super::standing(self.stage, &self.fleet, &self.watch);
            let seconds = WHOLE_WITHIN.as_secs();
            let text = format!("a member is still out {seconds} s after the load\n{standing}");
            self.tell(EventKind::Alarm, text);
        }
        Ok(())
    }

    /// Replicas that have executed only a part are to catch up, and those without a server to start
    /// one, before they are read. A change of the style does that.
    fn bring_all_up(&mut self) {
        if self.options.style == Style::Active || self.options.is_stateless() {
            return;
        }
        self.tell(EventKind::Note, "all replicas catch up: the style becomes active");
        let active = Change::Style(Style::Active.as_str().into());
        let node = &self.stage.nodes()[0];
        let client = Client::new(node.admin, node.state_dir.join("admin.token"));
        if let Err(error) = client.change(BANK_KEY, &active, QUIET_WITHIN) {
            self.tell(EventKind::Alarm, format!("the style cannot be changed: {error}"));
        }
    }

    /// Waits until all servers have executed the same number of calls for a while. If they never
    /// do, the accounting shows why.
    fn await_quiet(&self) {
        let deadline = Instant::now() + QUIET_WITHIN;
        let mut last = Vec::new();
        let mut since = Instant::now();
        while Instant::now() < deadline {
            let executed: Vec<Option<u64>> = (0..self.options.nodes)
                .map(|host| read::executed(self.server_port(host)?).ok())
                .collect();
            if executed != last {
                last = executed;
                since = Instant::now();
            }
            let alike = last.windows(2).all(|pair| pair[0] == pair[1]);
            let same = alike || self.options.is_stateless();
            if same && since.elapsed() >= QUIET_FOR {
                return;
            }
            thread::sleep(LOOK);
        }
    }

    /// One for each node, read or not.
    fn read_replicas(&self) -> Vec<Result<Replica, Unread>> {
        let nodes = self.stage.nodes().iter().enumerate();
        let read = nodes.map(|(host, node)| {
            let read = match self.server_port(host) {
                Some(port) => read::replica(&node.name, port).map_err(|error| error.to_string()),
                None => Err("its node names no server".to_owned()),
            };
            read.map_err(|reason| Unread { replica: node.name.clone(), reason })
        });
        read.collect()
    }

    fn server_port(&self, host: usize) -> Option<u16> {
        self.watch.seen(host).server().map(|(_, port)| port)
    }
}
