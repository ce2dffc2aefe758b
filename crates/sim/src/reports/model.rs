//! What the order of calls means: which reports are news, and who has to be given them.
//!
//! What it is not: the notifier. It is written from its documents, knows the simulator's own facts
//! instead of events, and evaluates no constraint.

use super::fault::{By, Told, Want};
use super::operation::{Op, Reply};
use quorba_idl::quorba::NewsItem;
use std::collections::{BTreeMap, BTreeSet};

/// A connection of a consumer.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Whose it is.
    pub(crate) consumer: usize,
    want: Want,
    /// Numbers of reports that the group thinks it lacks.
    waiting: Vec<u64>,
    /// What it has to be given, in that order.
    pub(crate) due: Vec<String>,
    /// It was there in the end.
    pub(crate) is_open: bool,
}

/// See the module's text.
#[derive(Default, Debug)]
pub(crate) struct Model {
    pub(crate) connections: BTreeMap<u64, Connection>,
    /// What the replication manager has to be told, and what of that is waiting.
    pub(crate) for_manager: Vec<String>,
    manager_waiting: Vec<(u64, String)>,
    /// Who was cut off because somebody said so: the connection, and whose it was.
    pub(crate) cut_off: Vec<(u64, usize)>,
    /// Who was cut off, for whatever reason: it is told so.
    pub(crate) to_part: Vec<u64>,
    incidents: BTreeSet<String>,
    /// The last view in which a node was said to be gone, and to be there.
    gone: BTreeMap<String, u64>,
    there: BTreeMap<String, u64>,
    last: u64,
    pub(crate) wrong: Option<String>,
    waiting_max: usize,
}

impl Model {
    pub(crate) fn new(waiting_max: usize) -> Self {
        Self { waiting_max, ..Self::default() }
    }

    /// One call, and what was answered.
    pub(crate) fn take(&mut self, op: &Op, reply: &Reply) {
        let right = match op {
            Op::Connect(_, consumer) => self.connect(*consumer),
            Op::Disconnect(id) if self.close(*id).is_some() => Reply::Done,
            Op::Disconnect(_) => Reply::Disconnected,
            Op::Constrain(id, want) => match self.open(*id) {
                Some(connection) => {
                    connection.want = want.clone();
                    Reply::Done
                }
                None => Reply::Raised(quorba_corba::giop::ExceptionKind::BadParam),
            },
            Op::Report(all) => {
                all.iter().for_each(|told| self.report(told, None));
                Reply::Done
            }
            Op::News(item) => {
                self.news(item);
                Reply::Done
            }
            Op::Delivered(0, last) => {
                self.manager_waiting.retain(|(number, _)| number > last);
                Reply::Done
            }
            Op::Delivered(id, last) => {
                if let Some(connection) = self.open(*id) {
                    connection.waiting.retain(|number| number > last);
                }
                Reply::Done
            }
            Op::CutOff(id, _) => {
                if let Some(consumer) = self.close(*id) {
                    self.cut_off.push((*id, consumer));
                    self.to_part.push(*id);
                }
                Reply::Done
            }
            Op::Parted(_) => Reply::Done,
        };
        if *reply != right && self.wrong.is_none() {
            self.wrong = Some(format!("{op:?}: {reply:?} instead of {right:?}"));
        }
    }

    fn connect(&mut self, consumer: usize) -> Reply {
        let id = self.connections.len() as u64 + 1;
        let connection = Connection {
            consumer,
            want: Want::All,
            waiting: Vec::new(),
            due: Vec::new(),
            is_open: true,
        };
        self.connections.insert(id, connection);
        Reply::Connection(id)
    }

    fn open(&mut self, id: u64) -> Option<&mut Connection> {
        self.connections.get_mut(&id).filter(|one| one.is_open)
    }

    /// Whose it was, if it was open.
    fn close(&mut self, id: u64) -> Option<usize> {
        let connection = self.open(id)?;
        connection.is_open = false;
        Some(connection.consumer)
    }

    fn news(&mut self, item: &NewsItem) {
        let view = item.incident.rsplit_once(" view ").and_then(|(_, view)| view.parse().ok());
        match (item.is_up, item.group.is_empty()) {
            (true, true) => {
                let there = self.there.entry(item.node.clone()).or_default();
                *there = view.unwrap_or(u64::MAX).max(*there);
            }
            (true, false) => {}
            (false, _) => self.report(&Told::of_news(item), view),
        }
    }

    fn report(&mut self, told: &Told, view: Option<u64>) {
        if !self.is_news(told, view) {
            return;
        }
        self.last += 1;
        let (number, what) = (self.last, told.identity());
        for (id, connection) in self.connections.iter_mut().filter(|(_, one)| one.is_open) {
            if connection.want.takes(told) {
                connection.waiting.push(number);
                connection.due.push(what.clone());
                connection.is_open = connection.waiting.len() <= self.waiting_max;
                if !connection.is_open {
                    self.to_part.push(*id);
                }
            }
        }
        if told.is_ours && matches!(told.by, By::Application(_)) {
            self.for_manager.push(what.clone());
            self.manager_waiting.push((number, what));
            if self.manager_waiting.len() > self.waiting_max {
                let (_, lost) = self.manager_waiting.remove(0);
                self.for_manager.retain(|one| *one != lost);
            }
        }
    }

    /// A node that is gone is told once, until it is there again; so is nothing else of it.
    fn is_news(&mut self, told: &Told, view: Option<u64>) -> bool {
        if !told.is_ours {
            return true;
        }
        if let By::Node(incident) = &told.by
            && !self.incidents.insert(incident.clone())
        {
            return false;
        }
        let there = self.there.get(&told.location).copied().unwrap_or(0);
        let gone = self.gone.get(&told.location).copied().unwrap_or(0);
        let is_gone = gone > there;
        let Some(view) = view.filter(|_| told.group.is_none()) else { return !is_gone };
        if is_gone || view > there {
            self.gone.insert(told.location.clone(), view.max(gone));
        }
        !is_gone && view > there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(view: u64, is_up: bool) -> Op {
        Op::News(NewsItem {
            number: 0,
            node: "n1".to_owned(),
            group: String::new(),
            is_up,
            type_id: String::new(),
            group_id: 0,
            incident: format!("n1 view {view}"),
            is_monitored: true,
        })
    }

    #[test]
    fn an_answer_that_does_not_follow_from_the_order_is_wrong() {
        let mut model = Model::new(10);
        model.take(&Op::Connect(true, 0), &Reply::Connection(1));
        model.take(&Op::Disconnect(1), &Reply::Done);
        assert_eq!(model.wrong, None);
        model.take(&Op::Disconnect(1), &Reply::Done);
        assert!(model.wrong.is_some(), "it was disconnected");
        let mut model = Model::new(10);
        model.take(&Op::Connect(true, 0), &Reply::Connection(2));
        assert!(model.wrong.is_some(), "it is the first one");
    }

    #[test]
    fn a_dead_node_is_due_once_and_nothing_else_of_it_until_it_is_back() {
        let mut model = Model::new(10);
        model.take(&Op::Connect(true, 0), &Reply::Connection(1));
        let member = |serial| {
            let by = By::Application(serial);
            Op::Report(vec![Told { by, is_ours: true, location: "n1".to_owned(), group: Some(1) }])
        };
        let all = [node(8, false), member(1), node(12, false), node(4, true), member(2)];
        let more = [node(16, true), member(3), node(12, false), node(20, false)];
        all.iter().chain(&more).for_each(|op| model.take(op, &Reply::Done));
        assert_eq!(model.connections[&1].due, ["n1 view 8", "report 3", "n1 view 20"]);
        assert_eq!(model.for_manager, ["report 3"]);
    }
}
