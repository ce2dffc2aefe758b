//! The groups as their driver sees them: ring views, deliveries and requests of processes in;
//! outputs out.
//!
//! Invariants: an operation counts only where it is delivered in a settled ring, or held until it
//! is; what was delivered elsewhere is ordered again by its node; nothing is given to a process
//! that is gone.

use crate::ids::{GroupName, GroupNumber, GroupViewId, ProcessId, ProcessNumber};
use crate::local::Local;
use crate::output::{Gone, GroupView, JoinReason, Output, Refused, Snapshot};
use crate::settle::{Held, Settling};
use crate::table::{Change, Slot, Table};
use crate::wire::{Action, Announcement, Operation, Payload, is_announcement, put_message_header};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::{NodeId, NodeSet};
use quorba_order::{Guarantee, LeaveReason, RingId, View, ViewKind};

enum Phase {
    /// No ring view yet.
    Outside,
    /// Announcements are missing.
    Settling(Settling),
    /// Operations and messages count as they come.
    Settled,
    /// The ring is at its end: messages are delivered, operations do not count.
    Parting,
}

/// One node's process groups: a state machine without I/O, clock or randomness.
///
/// The driver hands over every view and every delivery of its ring, in order, and calls
/// [`Groups::poll`] until it gives `None` after each call.
pub struct Groups {
    me: NodeId,
    incarnation: u64,
    local: Local,
    table: Table,
    phase: Phase,
    /// Nodes that have been with this one since the group views were settled last.
    together: NodeSet,
    /// Why the others were lost.
    reasons: BTreeMap<NodeId, LeaveReason>,
    /// The ring whose group views were settled last, and the changes in it so far.
    settled: Option<(RingId, u64)>,
    outputs: VecDeque<Output>,
    settlements: u64,
    messages: u64,
    strays: u64,
    malformed: u64,
}

impl core::fmt::Debug for Groups {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Groups").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

impl Groups {
    /// No groups yet. `incarnation` is that of the ring's [`quorba_order::Boot`].
    #[must_use]
    pub fn new(me: NodeId, incarnation: u64) -> Self {
        Self {
            me,
            incarnation,
            local: Local::default(),
            table: Table::new(me),
            phase: Phase::Outside,
            together: NodeSet::EMPTY.with(me),
            reasons: BTreeMap::new(),
            settled: None,
            outputs: VecDeque::new(),
            settlements: 0,
            messages: 0,
            strays: 0,
            malformed: 0,
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    // -- the processes of this node ---------------------------------------------------------

    /// A process wants to use groups.
    ///
    /// # Errors
    /// [`Refused::TooManyProcesses`].
    pub fn add_process(&mut self) -> Result<ProcessNumber, Refused> {
        self.local.add()
    }

    /// `process` wants to be in the group `name`, which exists while somebody is in it. It is when
    /// it gets its first view. Messages name the group by the number that this gives.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn join(
        &mut self,
        process: ProcessNumber,
        name: &GroupName,
    ) -> Result<GroupNumber, Refused> {
        let (group, payload) = self.local.join(process, name)?;
        self.submit(payload);
        Ok(group)
    }

    /// `process` wants to be out of `group`. It is when it gets a view that says so.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn leave(&mut self, process: ProcessNumber, group: GroupNumber) -> Result<(), Refused> {
        let payload = self.local.leave(process, group)?;
        self.submit(payload);
        Ok(())
    }

    /// `process` has ended: it leaves all its groups, and is told nothing more.
    pub fn process_gone(&mut self, process: ProcessNumber) {
        if let Some(payload) = self.local.gone(process) {
            self.submit(payload);
        }
    }

    /// Turns `frame` into a message of `process` to the members of `group`: overwrites its first
    /// [`crate::MESSAGE_HEADER_BYTES`], behind which the application's bytes begin. The driver
    /// then submits it to the ring, behind all [`Output::Submit`]s so far, with the guarantee that
    /// the process wants.
    ///
    /// # Errors
    /// [`Refused`]; the frame is as it was then.
    ///
    /// # Panics
    /// If the frame is shorter than the header.
    pub fn send(
        &self,
        process: ProcessNumber,
        group: GroupNumber,
        frame: &mut [u8],
    ) -> Result<(), Refused> {
        self.local.may_send(process, group)?;
        if !self.is_settled() {
            return Err(Refused::NotSettled);
        }
        put_message_header(frame, process, group);
        Ok(())
    }

    /// Whether messages can be sent: no change of the ring is being worked out.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Settled)
    }

    fn submit(&mut self, payload: Bytes) {
        self.outputs.push_back(Output::Submit { payload, guarantee: Guarantee::Agreed });
    }

    // -- the ring ---------------------------------------------------------------------------

    /// The ring has installed `view`.
    pub fn handle_view(&mut self, view: &View) {
        for (node, reason) in &view.left {
            self.reasons.entry(*node).or_insert(*reason);
        }
        match (view.kind, &mut self.phase) {
            (ViewKind::Transitional, Phase::Settled) => {
                self.shrink(view.transitional);
                self.phase = Phase::Parting;
            }
            (ViewKind::Transitional, Phase::Settling(settling)) => {
                settling.parted = Some((settling.held.len(), view.transitional));
            }
            (ViewKind::Transitional, Phase::Outside | Phase::Parting) => {}
            (ViewKind::Regular, _) => self.begin(view),
        }
    }

    /// The ring has delivered `payload`, which `incarnation` of `origin` submitted.
    pub fn handle_delivery(&mut self, origin: NodeId, incarnation: u64, payload: &Bytes) {
        let decoded = match Payload::decode(payload) {
            Ok(decoded) => decoded,
            Err(reason) => {
                self.malformed += 1;
                self.outputs.push_back(Output::Malformed { origin, reason });
                if !is_announcement(payload) {
                    return;
                }
                let Phase::Settling(settling) = &self.phase else { return };
                // Nobody waits for a node that cannot say what it has: it has nothing.
                let ring = settling.ring;
                Payload::Announcement(Announcement { ring, applied: 0, groups: Vec::new() })
            }
        };
        let mine = origin == self.me && incarnation == self.incarnation;
        if mine && matches!(decoded, Payload::Operation(_)) {
            self.local.delivered();
        }
        match (&mut self.phase, decoded) {
            (Phase::Settling(settling), Payload::Announcement(said)) => {
                if settling.announce(origin, incarnation, said) {
                    self.settle();
                }
            }
            (_, Payload::Announcement(_)) => {} // Of a ring that is over.
            (Phase::Settling(settling), payload) => {
                settling.hold(Held { origin, incarnation, payload });
            }
            (_, payload) => {
                self.take(origin, incarnation, payload);
                self.order_again();
            }
        }
    }

    /// A payload in a ring that is settled, or at its end.
    fn take(&mut self, origin: NodeId, incarnation: u64, payload: Payload) {
        match payload {
            Payload::Message { process, group, bytes } => {
                self.deliver(origin, incarnation, process, group, &bytes);
            }
            Payload::Operation(operation) if self.is_settled() => {
                self.operate(origin, incarnation, &operation);
            }
            Payload::Operation(_) | Payload::Announcement(_) => {}
        }
    }

    fn deliver(
        &mut self,
        origin: NodeId,
        incarnation: u64,
        process: ProcessNumber,
        number: GroupNumber,
        payload: &Bytes,
    ) {
        let Some((slot, from)) = self.table.addressed(origin, incarnation, process, number) else {
            self.strays += 1;
            return;
        };
        let group = self.table.group(slot);
        let Some(number) = group.number else { return };
        for member in &group.members[group.members_of(self.me)] {
            if self.local.is_there(member.number) {
                self.messages += 1;
                self.outputs.push_back(Output::Message {
                    to: member.number,
                    group: number,
                    view: group.view,
                    from,
                    payload: payload.clone(),
                });
            }
        }
    }

    fn operate(&mut self, origin: NodeId, incarnation: u64, operation: &Operation) {
        let Some((ring, changes)) = self.settled else { return };
        let view = GroupViewId { ring, change: changes + 1 };
        let done = match self.table.apply(origin, incarnation, operation, view) {
            Ok(None) => return,
            Ok(Some(done)) => done,
            Err(reason) => {
                self.malformed += 1;
                self.outputs.push_back(Output::Malformed { origin, reason });
                Vec::new()
            }
        };
        if !done.is_empty() {
            self.settled = Some((ring, changes + 1));
        }
        for change in done {
            self.tell_change(&change, &operation.action, view);
            self.table.prune(change.slot);
        }
        if origin == self.me {
            self.local.applied(operation);
        }
    }

    /// Tells local members of one join, leave or death.
    fn tell_change(&mut self, change: &Change, action: &Action, id: GroupViewId) {
        let process = change.process;
        let (joined, left) = match action {
            Action::Join { .. } => ([(process, JoinReason::Joined)].into(), Vec::new()),
            Action::Leave { .. } => (Vec::new(), [(process, Gone::Left)].into()),
            Action::Gone { .. } => (Vec::new(), [(process, Gone::Died)].into()),
        };
        let group = self.table.group_mut(change.slot);
        group.view = id;
        let last = matches!(action, Action::Leave { .. }) && process.node == self.me;
        if group.number.is_none() && !last {
            return;
        }
        let members = group.members.as_slice().into();
        let kind = ViewKind::Regular;
        let view = GroupView { kind, id, name: group.name.clone(), members, joined, left };
        let view = Arc::new(view);
        self.tell(change.slot, &view);
        if last && self.local.is_there(process.number) {
            let (to, group) = (process.number, change.number);
            self.outputs.push_back(Output::View { to, group, view });
        }
    }

    /// Gives `view` to the local members of its group.
    fn tell(&mut self, slot: Slot, view: &Arc<GroupView>) {
        let group = self.table.group(slot);
        let Some(number) = group.number else { return };
        for member in &group.members[group.members_of(self.me)] {
            if self.local.is_there(member.number) {
                let view = Arc::clone(view);
                self.outputs.push_back(Output::View { to: member.number, group: number, view });
            }
        }
    }

    // -- changes of the ring ----------------------------------------------------------------

    /// Only `transitional` come along: those who are in a group with others are told.
    fn shrink(&mut self, transitional: NodeSet) {
        let lost = self.together.difference(transitional);
        self.together = self.together.intersection(transitional);
        if lost.is_empty() {
            return;
        }
        for slot in self.table.local_slots() {
            let group = self.table.group(slot);
            if !group.members.iter().any(|member| lost.contains(member.node)) {
                continue;
            }
            let (members, left) = self.survivors(&group.members);
            let view = Arc::new(GroupView {
                kind: ViewKind::Transitional,
                id: group.view,
                name: group.name.clone(),
                members: members.into(),
                joined: Vec::new(),
                left,
            });
            self.tell(slot, &view);
        }
    }

    /// Those of `members` whose nodes are still together with this one, and the others.
    fn survivors(&self, members: &[ProcessId]) -> (Vec<ProcessId>, Vec<(ProcessId, Gone)>) {
        let (mut here, mut left) = (Vec::with_capacity(members.len()), Vec::new());
        for member in members {
            if self.together.contains(member.node) {
                here.push(*member);
            } else {
                let reason = self.reasons.get(&member.node).copied();
                left.push((*member, Gone::Node(reason.unwrap_or(LeaveReason::Parted))));
            }
        }
        (here, left)
    }

    /// A new ring: say what is here, and wait for what the others say.
    fn begin(&mut self, view: &View) {
        let settling = Settling::new(view.ring, view.incarnations.clone());
        let before = core::mem::replace(&mut self.phase, Phase::Settling(settling));
        let together = self.together;
        self.shrink(view.transitional);
        if let Phase::Settling(unsettled) = before {
            // The ring before this one ended before it was settled. Its operations are ordered
            // again by their nodes; its messages belong to what was before it.
            for Held { origin, incarnation, payload } in unsettled.held {
                if let Payload::Message { process, group, bytes } = payload
                    && together.contains(origin)
                {
                    self.deliver(origin, incarnation, process, group, &bytes);
                }
            }
        }
        let (applied, groups) = self.table.own();
        let payload = Announcement { ring: view.ring, applied, groups }.encode();
        // Safe: where one node settles views, all that are in the ring can.
        self.outputs.push_back(Output::Submit { payload, guarantee: Guarantee::Safe });
    }

    /// All announcements are in.
    fn settle(&mut self) {
        let before = core::mem::replace(&mut self.phase, Phase::Settled);
        let Phase::Settling(settling) = before else {
            unreachable!("only what is being settled gets announcements");
        };
        let id = GroupViewId { ring: settling.ring, change: 0 };
        let nodes = settling.nodes();
        let old = core::mem::replace(&mut self.table, Table::new(self.me));
        let mut announced = settling.announced;
        for (node, incarnation) in settling.members {
            let said = announced.remove(&node).expect("all announcements are in");
            self.table.announce(node, incarnation, said, id);
        }
        self.install(&old, id);
        self.settlements += 1;
        self.settled = Some((settling.ring, 0));
        self.together = nodes;
        self.reasons.clear();
        let (end, transitional) = settling.parted.unwrap_or((settling.held.len(), nodes));
        for (index, held) in settling.held.into_iter().enumerate() {
            if index == end {
                self.shrink(transitional);
                self.phase = Phase::Parting;
            }
            self.take(held.origin, held.incarnation, held.payload);
        }
        if settling.parted.is_some() && self.is_settled() {
            self.shrink(transitional);
            self.phase = Phase::Parting;
        }
        self.order_again();
    }

    /// Gives a view of each group that is not what it was in `old`.
    fn install(&mut self, old: &Table, id: GroupViewId) {
        for slot in self.table.local_slots() {
            let group = self.table.group(slot);
            let before = old.named(&group.name);
            let (here, mut left) = self.survivors(before.map_or(&[], |group| &group.members));
            if left.is_empty() && here == group.members {
                let unchanged = before.map_or(id, |group| group.view);
                self.table.group_mut(slot).view = unchanged;
                continue;
            }
            let is_new = |member: &ProcessId| here.binary_search(member).is_err();
            let new = group.members.iter().copied().filter(is_new);
            let joined = new.map(|member| (member, JoinReason::Merged)).collect();
            let is_lost = |member: &ProcessId| group.members.binary_search(member).is_err();
            left.extend(here.iter().copied().filter(is_lost).map(|m| (m, Gone::Left)));
            left.sort_unstable_by_key(|(member, _)| *member);
            let view = Arc::new(GroupView {
                kind: ViewKind::Regular,
                id,
                name: group.name.clone(),
                members: group.members.as_slice().into(),
                joined,
                left,
            });
            self.tell(slot, &view);
        }
    }

    fn order_again(&mut self) {
        if self.is_settled() {
            let again = self.local.again();
            self.outputs.extend(
                again.map(|payload| Output::Submit { payload, guarantee: Guarantee::Agreed }),
            );
        }
    }

    // -- for people -------------------------------------------------------------------------

    /// The members of `name` on all nodes of the ring, as of what was delivered here.
    #[must_use]
    pub fn members(&self, name: &GroupName) -> &[ProcessId] {
        self.table.named(name).map_or(&[], |group| &group.members)
    }

    /// All groups of the ring by name, with their members.
    pub fn groups(&self) -> impl Iterator<Item = (&GroupName, &[ProcessId])> {
        self.table.iter().map(|group| (&group.name, group.members.as_slice()))
    }

    /// Figures.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let settling = match &self.phase {
            Phase::Settling(settling) => Some(settling),
            _ => None,
        };
        Snapshot {
            settled: self.is_settled(),
            groups: self.table.len(),
            memberships: self.table.memberships(),
            processes: self.local.processes(),
            pending: self.local.pending(),
            held: settling.map_or(0, |s| s.held.len()),
            held_bytes: settling.map_or(0, |s| s.held_bytes),
            unannounced: settling.map_or(0, |s| s.unannounced().bits()),
            settlements: self.settlements,
            messages: self.messages,
            strays: self.strays,
            malformed: self.malformed,
        }
    }
}
