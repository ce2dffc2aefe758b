//! What has happened to nodes and members, for services that tell of faults.
//!
//! What it is not: a log. The last items are kept; who asks late has missed some. Invariants: every
//! node tells of every member, and of every other node, so that a service need not be where
//! somebody dies; what several nodes tell of one event has the same name.

use super::DataPlane;
use quorba_engine::Event;
use quorba_engine::order::ViewKind;
use quorba_engine::replica::{Attempt, DownReason, Event as ReplicaEvent, GroupId, MemberState};
use quorba_idl::quorba::{NewsItem, NewsItems};
use std::collections::VecDeque;
use std::sync::mpsc::Sender;

/// Items that are kept.
const KEPT_MAX: usize = 1_024;
/// Who may wait for the next one.
const WAITING_MAX: usize = 64;

#[derive(Default)]
pub(super) struct News {
    items: VecDeque<NewsItem>,
    last: u64,
    waiting: Vec<Sender<NewsItems>>,
    /// Who wants to know when somebody else leads: the group, and who leads as far as it knows.
    watching: Vec<(String, String, Sender<String>)>,
}

impl News {
    /// Those behind `after`, at once or when there are some.
    pub(super) fn ask(&mut self, after: u64, asker: Sender<NewsItems>) {
        // A number of the boot before says nothing here.
        let after = if after > self.last { 0 } else { after };
        let items = self.items.iter().filter(|item| item.number > after);
        let items: NewsItems = items.cloned().collect();
        if !items.is_empty() {
            // Whoever asked may have given up.
            let _ = asker.send(items);
        } else {
            if self.waiting.len() >= WAITING_MAX {
                self.waiting.remove(0);
            }
            self.waiting.push(asker);
        }
    }

    pub(super) fn watch(&mut self, group: String, known: String, asker: Sender<String>) {
        // The group's process asks again when its last question was not answered in time.
        self.watching.retain(|(of, ..)| *of != group);
        if self.watching.len() >= WAITING_MAX {
            self.watching.remove(0);
        }
        self.watching.push((group, known, asker));
    }

    fn add(&mut self, item: NewsItem) {
        self.last += 1;
        let item = NewsItem { number: self.last, ..item };
        for asker in self.waiting.drain(..) {
            let _ = asker.send(vec![item.clone()]);
        }
        if self.items.len() >= KEPT_MAX {
            self.items.pop_front();
        }
        self.items.push_back(item);
    }
}

/// Whether a server has failed, and not its node or the group around it.
const fn is_fault(reason: DownReason) -> bool {
    matches!(
        reason,
        DownReason::ServerExited
            | DownReason::ConnectionLost
            | DownReason::ServerHung
            | DownReason::ServerProtocol
            | DownReason::StateRefused
            | DownReason::Diverged
    )
}

impl DataPlane {
    /// Tells who leads now, where that has changed.
    fn heed_leader(&mut self, event: &Event) {
        let may_change = match event {
            Event::View(_) => true,
            Event::Replica(event) => matches!(
                event,
                ReplicaEvent::Primary { .. }
                    | ReplicaEvent::MemoryFrom { .. }
                    | ReplicaEvent::Blocked { .. }
                    | ReplicaEvent::Member { .. }
                    | ReplicaEvent::Opened { .. }
                    | ReplicaEvent::Changed { .. }
                    | ReplicaEvent::Leader { .. }
            ),
            _ => false,
        };
        if !may_change || self.news.watching.is_empty() {
            return;
        }
        for (group, known, asker) in std::mem::take(&mut self.news.watching) {
            let leader = self.leader_of(&group);
            if leader == known {
                self.news.watch(group, known, asker);
            } else {
                // Whoever asked may have given up.
                let _ = asker.send(leader);
            }
        }
    }

    pub(super) fn heed_news(&mut self, event: &Event) {
        self.heed_leader(event);
        match event {
            Event::View(view) if view.kind == ViewKind::Regular => {
                let left = view.left.iter().map(|(node, _)| (*node, false));
                let changes: Vec<_> =
                    left.chain(view.joined.iter().map(|node| (node, true))).collect();
                for (node, is_up) in changes {
                    let node = self.reporter.name_of(node).to_owned();
                    let incident = format!("{node} view {}", view.ring.seq);
                    self.tell(node, None, is_up, incident);
                }
            }
            Event::Replica(ReplicaEvent::Member { group, node, state, ended }) => {
                let (is_up, attempt) = match state {
                    MemberState::In { attempt } => (true, Some(*attempt)),
                    MemberState::Down(reason) if is_fault(*reason) => (false, *ended),
                    // It comes, or was taken away, or catches up.
                    MemberState::Joining { .. }
                    | MemberState::Down(_)
                    | MemberState::Out { .. } => return,
                };
                let node = self.reporter.name_of(*node).to_owned();
                // All nodes know it by this: a try ends once.
                let Some(Attempt(attempt)) = attempt else { return };
                let incident = format!("{node} {:016x} {attempt}", group.0);
                self.tell(node, Some(*group), is_up, incident);
            }
            _ => {}
        }
    }

    fn tell(&mut self, node: String, group: Option<GroupId>, is_up: bool, incident: String) {
        let known = group.and_then(|id| Some((id, self.reporter.groups().get(id)?)));
        let group_id = known.map_or(0, |(id, group)| group.object_group.map_or(id.0, |one| one.id));
        let item = NewsItem {
            number: 0,
            node,
            group: known.map(|(_, group)| group.name.clone()).unwrap_or_default(),
            is_up,
            type_id: known.and_then(|(_, group)| group.type_id.clone()).unwrap_or_default(),
            group_id,
            incident,
            is_monitored: known.is_none_or(|(_, group)| group.monitored),
        };
        // Of a group that is deleted nobody wants to know.
        if group.is_none() || known.is_some() {
            self.news.add(item);
        }
    }
}
