//! Groups over real rings in the small network of the ring's own tests.
//!
//! Invariant: a run is a function of its seed.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

#[path = "../../../order/tests/harness/mod.rs"]
pub mod harness;

pub mod check;

use harness::{Net, Seen, ms, us};
use quorba_base::{Duration, NodeId};
use quorba_groups::{
    GroupName, GroupNumber, GroupView, GroupViewId, Groups, MESSAGE_HEADER_BYTES, Output,
    ProcessId, ProcessNumber, Refused,
};
use quorba_order::Guarantee;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What a process saw of one group, in order.
#[derive(Clone, Debug)]
pub enum Told {
    View(Arc<GroupView>),
    Message { view: GroupViewId, from: ProcessId, payload: Vec<u8> },
}

/// One life of a node.
pub struct Host {
    pub node: NodeId,
    pub groups: Groups,
    pub incarnation: u64,
    /// How much of what the ring said was handed over.
    heard: usize,
    backlog: VecDeque<(bytes::Bytes, Guarantee)>,
    pub told: BTreeMap<(ProcessNumber, GroupNumber), Vec<Told>>,
    pub names: BTreeMap<GroupNumber, GroupName>,
    /// What each process sent to each group.
    pub sent: BTreeMap<(ProcessNumber, GroupNumber), Vec<Vec<u8>>>,
    /// What processes asked for and did not take back.
    pub wants: BTreeSet<(ProcessNumber, GroupNumber)>,
    pub gone: BTreeSet<ProcessNumber>,
    pub malformed: usize,
    pub submitted_bytes: usize,
}

pub struct Stage {
    pub net: Net,
    /// By life of the network.
    pub hosts: Vec<Host>,
    serial: u32,
}

pub fn name(text: &str) -> GroupName {
    GroupName::new(text.as_bytes()).unwrap()
}

impl Stage {
    pub fn new(count: usize, seed: u64) -> Self {
        let mut stage = Self { net: Net::new(count, seed), hosts: Vec::new(), serial: 0 };
        stage.pump();
        stage
    }

    /// A whole ring whose groups are settled.
    pub fn formed(count: usize, seed: u64) -> Self {
        let mut stage = Self::new(count, seed);
        stage.until_settled();
        stage
    }

    /// The life that runs on node `index`.
    pub fn host(&mut self, index: usize) -> &mut Host {
        let life = self.net.life_number(index).expect("node is up");
        self.pump();
        &mut self.hosts[life]
    }

    /// Hands over what rings and groups have for each other.
    pub fn pump(&mut self) {
        while self.hosts.len() < self.net.lives.len() {
            let life = &self.net.lives[self.hosts.len()];
            self.hosts.push(Host::new(life.node, life.incarnation));
        }
        for index in 0..self.net.count {
            if self.net.is_paused(index) {
                continue;
            }
            while let Some(life) = self.net.life_number(index)
                && self.exchange(index, life)
            {}
        }
    }

    /// Whether something was submitted.
    fn exchange(&mut self, index: usize, life: usize) -> bool {
        let host = &mut self.hosts[life];
        for seen in &self.net.lives[life].seen[host.heard..] {
            match seen {
                Seen::View(view) => host.groups.handle_view(view),
                Seen::Deliver(d) => {
                    host.groups.handle_delivery(d.origin, d.incarnation, &d.payload);
                }
            }
            host.take_outputs();
        }
        host.heard = self.net.lives[life].seen.len();
        host.take_outputs();
        let mut any = false;
        while let Some((payload, guarantee)) = host.backlog.front().cloned() {
            if self.net.submit_payload(index, payload, guarantee).is_none() {
                break;
            }
            host.backlog.pop_front();
            any = true;
        }
        if any {
            self.net.drain(index);
        }
        any
    }

    pub fn run_for(&mut self, duration: Duration) {
        let end = self.net.now + duration;
        while self.net.now < end {
            let step = us(100).min(end.since(self.net.now));
            self.net.run_for(step);
            self.pump();
        }
    }

    pub fn until_settled(&mut self) {
        for _ in 0..200 {
            self.run_for(ms(50));
            let up = (0..self.net.count).filter(|i| self.net.is_up(*i)).collect::<Vec<_>>();
            let quiet = up.iter().all(|index| {
                let life = self.net.life_number(*index).expect("up");
                let host = &self.hosts[life];
                let snapshot = host.groups.snapshot();
                !self.net.is_paused(*index)
                    && snapshot.settled
                    && snapshot.pending == 0
                    && host.backlog.is_empty()
            });
            if quiet && self.net.is_whole() && self.net.is_drained() {
                return;
            }
        }
        for host in &self.hosts {
            eprintln!("{:?}", host.groups);
        }
        panic!("not settled after 10 s of peace");
    }

    pub fn process(&mut self, index: usize) -> ProcessNumber {
        self.host(index).groups.add_process().unwrap()
    }

    pub fn join(
        &mut self,
        index: usize,
        process: ProcessNumber,
        group: &str,
    ) -> Result<GroupNumber, Refused> {
        let number = self.host(index).join(process, group)?;
        self.pump();
        Ok(number)
    }

    pub fn leave(&mut self, index: usize, process: ProcessNumber, group: GroupNumber) {
        self.host(index).leave(process, group);
        self.pump();
    }

    pub fn gone(&mut self, index: usize, process: ProcessNumber) {
        self.host(index).gone(process);
        self.pump();
    }

    /// Sends what no other message says.
    pub fn send(
        &mut self,
        index: usize,
        process: ProcessNumber,
        group: GroupNumber,
    ) -> Result<(), Refused> {
        self.serial += 1;
        let payload = self.serial.to_be_bytes().to_vec();
        self.host(index).send(process, group, payload)?;
        self.pump();
        Ok(())
    }

    /// Checks everything that must hold at any time.
    pub fn check_safety(&self) {
        check::safety(&self.hosts);
    }

    /// Checks, besides, what must hold when all is quiet.
    pub fn check_settled(&self) {
        let up = (0..self.net.count).filter_map(|index| self.net.life_number(index));
        check::settled(&self.hosts, &up.collect::<Vec<_>>());
    }

    /// Members of `group` as node `index` knows them.
    pub fn members(&mut self, index: usize, group: &str) -> Vec<ProcessId> {
        self.host(index).groups.members(&name(group)).to_vec()
    }

    pub fn id(&mut self, index: usize, number: ProcessNumber) -> ProcessId {
        self.host(index).id(number)
    }

    /// What a process was told of a group.
    pub fn told(&mut self, index: usize, p: ProcessNumber, group: GroupNumber) -> Vec<Told> {
        self.host(index).told.get(&(p, group)).cloned().unwrap_or_default()
    }

    pub fn views(&mut self, index: usize, p: ProcessNumber, g: GroupNumber) -> Vec<Arc<GroupView>> {
        let told = self.told(index, p, g).into_iter();
        told.filter_map(|told| match told {
            Told::View(view) => Some(view),
            Told::Message { .. } => None,
        })
        .collect()
    }
}

impl Host {
    pub fn new(node: NodeId, incarnation: u64) -> Self {
        Self {
            node,
            groups: Groups::new(node, incarnation),
            incarnation,
            heard: 0,
            backlog: VecDeque::new(),
            told: BTreeMap::new(),
            names: BTreeMap::new(),
            sent: BTreeMap::new(),
            wants: BTreeSet::new(),
            gone: BTreeSet::new(),
            malformed: 0,
            submitted_bytes: 0,
        }
    }

    pub fn id(&self, number: ProcessNumber) -> ProcessId {
        ProcessId { node: self.node, incarnation: self.incarnation, number }
    }

    /// Gives what this node submitted and the ring has not taken.
    pub fn next_submission(&mut self) -> Option<(bytes::Bytes, Guarantee)> {
        self.backlog.pop_front()
    }

    pub fn join(&mut self, process: ProcessNumber, group: &str) -> Result<GroupNumber, Refused> {
        let number = self.groups.join(process, &name(group))?;
        self.names.insert(number, name(group));
        self.wants.insert((process, number));
        self.take_outputs();
        Ok(number)
    }

    pub fn leave(&mut self, process: ProcessNumber, group: GroupNumber) {
        if self.groups.leave(process, group).is_ok() {
            self.wants.remove(&(process, group));
        }
        self.take_outputs();
    }

    pub fn gone(&mut self, process: ProcessNumber) {
        self.groups.process_gone(process);
        self.wants.retain(|(wanting, _)| *wanting != process);
        self.gone.insert(process);
        self.take_outputs();
    }

    pub fn send(
        &mut self,
        process: ProcessNumber,
        group: GroupNumber,
        payload: Vec<u8>,
    ) -> Result<(), Refused> {
        let mut frame = vec![0; MESSAGE_HEADER_BYTES];
        frame.extend_from_slice(&payload);
        self.groups.send(process, group, &mut frame)?;
        self.backlog.push_back((frame.into(), Guarantee::Agreed));
        self.sent.entry((process, group)).or_default().push(payload);
        Ok(())
    }

    pub fn take_outputs(&mut self) {
        while let Some(output) = self.groups.poll() {
            match output {
                Output::Submit { payload, guarantee } => {
                    self.submitted_bytes += payload.len();
                    self.backlog.push_back((payload, guarantee));
                }
                Output::View { to, group, view } => {
                    self.told.entry((to, group)).or_default().push(Told::View(view));
                }
                Output::Message { to, group, view, from, payload } => {
                    let told = Told::Message { view, from, payload: payload.to_vec() };
                    self.told.entry((to, group)).or_default().push(told);
                }
                Output::Malformed { .. } => self.malformed += 1,
            }
        }
    }
}
