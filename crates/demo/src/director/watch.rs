//! What the nodes say of themselves, asked again and again.
//!
//! What it is not: proof. The accounting reads the servers; this says when the group is whole,
//! and where the servers are.
//!
//! Invariant: a node that does not answer delays nobody: each is asked by a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use quorba_admin::Client;
use quorba_admin::status::{GroupStatus, MemberState, Status};

use super::stage::{BANK_KEY, Stage};

/// Pause between two questions to a node that answers.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Pause between two questions to a node that does not: it may be about to be up.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_000);
/// An answer that is older says nothing about now.
const FRESH: Duration = Duration::from_millis(500);

/// The last answer of every node.
pub(super) struct Watch {
    seen: Vec<Arc<Mutex<Seen>>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// The last answer of one node.
#[derive(Clone, Default)]
pub(super) struct Seen {
    pub(super) status: Option<Status>,
    answered: Option<Instant>,
    /// Why the last question was not answered.
    pub(super) fault: Option<String>,
}

impl Watch {
    /// Begins to ask.
    pub(super) fn start(stage: &Stage) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut watch = Self { seen: Vec::new(), stop, threads: Vec::new() };
        for node in stage.nodes() {
            let client = Client::new(node.admin, node.state_dir.join("admin.token"));
            let seen = Arc::new(Mutex::new(Seen::default()));
            watch.seen.push(Arc::clone(&seen));
            let stop = Arc::clone(&watch.stop);
            watch.threads.push(thread::spawn(move || ask_on(&client, &seen, &stop)));
        }
        watch
    }

    /// The last answer of the node with this index.
    pub(super) fn seen(&self, index: usize) -> Seen {
        lock(&self.seen[index]).clone()
    }

    /// Forgets the answers of a node that was just killed: they are not about what comes.
    pub(super) fn forget(&self, index: usize) {
        *lock(&self.seen[index]) = Seen::default();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

impl Seen {
    /// Whether the answer is about now.
    pub(super) fn is_fresh(&self) -> bool {
        self.answered.is_some_and(|answered| answered.elapsed() < FRESH)
    }

    /// The bank's group, if the node answered.
    pub(super) fn bank(&self) -> Option<&GroupStatus> {
        let groups = &self.status.as_ref()?.groups;
        groups.iter().find(|group| group.name == BANK_KEY)
    }

    /// The member at `node`, as the answering node sees it.
    pub(super) fn member(&self, node: &str) -> Option<MemberState> {
        let members = &self.bank()?.members;
        members.iter().find(|member| member.node == node).map(|member| member.state)
    }

    /// Whether the answering node sees a ring of `nodes` nodes with every member in.
    pub(super) fn sees_all(&self, nodes: usize) -> bool {
        let (Some(status), Some(bank)) = (&self.status, self.bank()) else { return false };
        status.ring.primary
            && status.ring.members.len() == nodes
            && bank.members.len() == nodes
            && bank.members.iter().all(|member| member.state == MemberState::In)
    }

    /// Process id and port of the answering node's own server.
    pub(super) fn server(&self) -> Option<(u32, u16)> {
        let server = self.bank()?.server.as_ref()?;
        Some((server.pid?, server.port?))
    }
}

fn ask_on(client: &Client, seen: &Mutex<Seen>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let answer = client.status(ANSWER_WITHIN);
        let pause = if answer.is_ok() { ASK_EVERY } else { ASK_AGAIN };
        {
            let mut seen = lock(seen);
            match answer {
                // As of when it was asked: the answer may have been long under way.
                Ok(status) => {
                    *seen = Seen { status: Some(status), answered: Some(asked), fault: None };
                }
                Err(error) => seen.fault = Some(error.to_string()),
            }
        }
        thread::sleep(pause);
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().expect("no thread panics while it holds an answer")
}
