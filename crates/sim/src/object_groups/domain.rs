//! What the manager calls: the domain, and factories of an application.
//!
//! What it is not: a node. Invariants: a call that is made while an entry of the order is executed
//! is made once, whichever members execute it, and all of them hear the same; what came of each is
//! written down for the model.

use crate::rng::Rng;
use quorba_base::{FNV_OFFSET, fnv1a};
use quorba_corba::giop::{Endian, ExceptionKind, SystemException, Version};
use quorba_corba::{
    Answer, Any, Arguments, Call, Coding, Encoder, Interface, Local, Object, Objects, Transport,
    raise_system,
};
use quorba_idl::ft;
use quorba_idl::quorba::domain as raised;
use quorba_idl::quorba::domain::{ChangeGroupError, CreateByFactoryError, CreateGroupError};
use quorba_idl::quorba::{self, Domain, GroupInfo, GroupInfos, NodeStates, Settings};
use quorba_manager::table::{Defined, Table};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The group of the manager itself.
pub(crate) const OWN: &str = "replication-manager";

/// How a change ended, as the manager was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Done,
    /// Not now.
    Passing,
    Never,
    /// There is no such thing.
    Missing,
    /// Nobody was reached.
    Unheard,
    /// It was done, and nobody hears of it.
    Hidden,
}

/// What a call was, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Did {
    /// A question was answered that the model need not know.
    Asked,
    /// A question was not answered.
    Unheard,
    /// Who is up.
    Nodes(Vec<String>),
    Defined {
        group: String,
        is_new: bool,
        members: Vec<String>,
        version: u32,
        /// Who was in then.
        members_in: Vec<String>,
        outcome: Outcome,
    },
    /// The manager's own definition was changed.
    Saved(Outcome),
    Deleted(String, Outcome),
    Promoted(Outcome),
    /// A group, and who is in.
    Seen(String, Option<Vec<String>>),
    /// The page of groups with notes: name, members, version.
    Noted(Vec<(String, Vec<String>, u32)>),
    /// A factory was called: what it made.
    Made(Option<u64>),
    Unmade(Outcome),
}

/// Why an object may be at a factory although no group has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// The node that had it made ended before it said so, and another one called again.
    Failover,
    /// The factory answered too late.
    Late,
    /// The factory did not hear that it was to go.
    NotDeleted,
}

/// A call, for who makes it again.
struct Nested {
    digest: u64,
    operation: String,
    answer: Result<Answer, SystemException>,
    did: Did,
}

/// Chances of what goes wrong with a call, per thousand.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Chances {
    /// It does not come through.
    pub(crate) unreachable: u64,
    /// It is done, and nobody hears of it.
    pub(crate) doubt: u64,
    /// The node that makes it ends before it says what came of it.
    pub(crate) failover: u64,
    /// A new server is not in when it is looked for.
    pub(crate) slow: u64,
    /// A node without a manager ends just then.
    pub(crate) stir: u64,
}

/// See the module's text.
pub(crate) struct Around {
    pub(crate) table: Table,
    pub(crate) chances: Chances,
    rng: Rng,
    book: Vec<Vec<Nested>>,
    /// The entry that is being executed, how many calls it has made, and at which of them the
    /// process ends.
    at: usize,
    next: usize,
    dies_at: Option<usize>,
    has_died: bool,
    has_called: bool,
    did: Did,
    /// A member made another call than the first one.
    pub(crate) wrong: Option<String>,
    pub(crate) left: BTreeMap<u64, Left>,
    /// Servers that come later, and nodes that have just ended.
    pub(crate) late: Vec<(String, String)>,
    pub(crate) stirred: Vec<String>,
    /// Nodes that may end just then.
    pub(crate) others: Vec<String>,
    pub(crate) failovers: u64,
}

/// What an execution did beside its answer.
pub(crate) struct Execution {
    pub(crate) has_called: bool,
    pub(crate) has_died: bool,
}

fn transient() -> SystemException {
    raise_system(ExceptionKind::Transient)
}

impl Around {
    pub(crate) fn new(table: Table, others: Vec<String>, rng: Rng) -> Self {
        Self {
            table,
            chances: Chances::default(),
            rng,
            book: Vec::new(),
            at: 0,
            next: 0,
            dies_at: None,
            has_died: false,
            has_called: false,
            did: Did::Asked,
            wrong: None,
            left: BTreeMap::new(),
            late: Vec::new(),
            stirred: Vec::new(),
            others,
            failovers: 0,
        }
    }

    /// A member begins to execute an entry; its process ends before its call of that number.
    pub(crate) fn begin(&mut self, at: usize, dies_at: Option<usize>) {
        (self.at, self.next, self.dies_at) = (at, 0, dies_at);
        (self.has_died, self.has_called) = (false, false);
        while self.book.len() <= at {
            self.book.push(Vec::new());
        }
    }

    pub(crate) fn end(&mut self) -> Execution {
        let known = self.book[self.at].len();
        if !self.has_died && self.next < known && self.wrong.is_none() {
            let text = format!("at {}: {} calls instead of {known}", self.at, self.next);
            self.wrong = Some(text);
        }
        Execution { has_called: self.has_called, has_died: self.has_died }
    }

    /// What was called while an entry was executed.
    pub(crate) fn did(&self, at: usize) -> Vec<Did> {
        self.book.get(at).into_iter().flatten().map(|one| one.did.clone()).collect()
    }

    fn invoke(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        if self.has_died {
            return Err(transient());
        }
        let mut encoder = Encoder::new(Endian::Big, Coding::plain(Version::V1_2));
        arguments(&mut encoder);
        let octets = encoder.finish(quorba_corba::giop::Completion::No)?;
        let digest = fnv1a(FNV_OFFSET, octets);
        let place = self.next;
        if let Some(known) = self.book[self.at].get(place) {
            self.next += 1;
            if (known.digest, known.operation.as_str()) != (digest, operation) {
                let first = &known.operation;
                let text = format!("at {}, {place}: {operation} instead of {first}", self.at);
                self.wrong.get_or_insert(text);
            }
            return known.answer.clone();
        }
        if self.dies_at == Some(place) {
            self.has_died = true;
            return Err(transient());
        }
        self.next += 1;
        self.has_called = true;
        self.stir();
        self.did = Did::Asked;
        let answer = Local::new(self, b"domain").invoke(operation, arguments);
        let did = std::mem::replace(&mut self.did, Did::Asked);
        let nested =
            Nested { digest, operation: operation.to_owned(), answer: answer.clone(), did };
        self.book[self.at].push(nested);
        answer
    }

    /// Something happens between two calls.
    fn stir(&mut self) {
        if self.others.is_empty() || !self.rng.per_mille(self.chances.stir) {
            return;
        }
        let index = self.rng.index(self.others.len());
        let node = self.others[index].clone();
        if self.table.nodes.get(&node) == Some(&true) {
            self.table.nodes.insert(node.clone(), false);
            self.stirred.push(node);
        }
    }

    fn is_unreachable(&mut self) -> bool {
        self.rng.per_mille(self.chances.unreachable)
    }

    fn is_in_doubt(&mut self) -> bool {
        self.rng.per_mille(self.chances.doubt)
    }

    /// The node that makes the call ends before anybody hears what came of it.
    fn fails_over(&mut self) -> bool {
        let fails = self.rng.per_mille(self.chances.failover);
        self.failovers += u64::from(fails);
        fails
    }

    fn ask<R>(
        &mut self,
        ask: impl FnOnce(&mut Table) -> Result<R, SystemException>,
    ) -> Result<R, SystemException> {
        if self.is_unreachable() {
            self.did = Did::Unheard;
            return Err(transient());
        }
        ask(&mut self.table)
    }

    /// Does something to the domain: what the manager is told, and how that is to be understood.
    fn change<R, E: From<SystemException>>(
        &mut self,
        change: impl Fn(&mut Table) -> Result<R, E>,
        outcome: impl FnOnce(&E) -> Outcome,
    ) -> (Result<R, E>, Outcome) {
        if self.is_unreachable() {
            return (Err(transient().into()), Outcome::Unheard);
        }
        let changed = change(&mut self.table);
        if changed.is_ok() && self.is_in_doubt() {
            return (Err(transient().into()), Outcome::Hidden);
        }
        let how = changed.as_ref().map_or_else(outcome, |_| Outcome::Done);
        (changed, how)
    }

    fn start(&mut self, name: &str, members: &[String]) {
        for node in members {
            let at = (name.to_owned(), node.clone());
            if self.rng.per_mille(self.chances.slow) && self.table.out.insert(at.clone()) {
                self.late.push(at);
            }
        }
    }
}

const fn refusal(may_be_repeated: bool) -> Outcome {
    if may_be_repeated { Outcome::Passing } else { Outcome::Never }
}

fn parts(keys: &Settings) -> (Vec<String>, u32) {
    let pairs = keys.iter().map(|key| (key.name.clone(), key.value.clone()));
    let defined = Defined { keys: pairs.collect(), leader: String::new() };
    (defined.members(), defined.version())
}

impl Domain for Around {
    fn id(&mut self) -> Result<String, SystemException> {
        self.ask(Domain::id)
    }

    fn nodes(&mut self) -> Result<NodeStates, SystemException> {
        let nodes = self.ask(Domain::nodes)?;
        let up = nodes.iter().filter(|node| node.is_up).map(|node| node.name.clone()).collect();
        self.did = Did::Nodes(up);
        Ok(nodes)
    }

    fn types(&mut self) -> Result<Vec<String>, SystemException> {
        self.ask(Domain::types)
    }

    fn create_group(
        &mut self,
        name: String,
        type_id: String,
        keys: Settings,
        wait_ms: u32,
    ) -> Result<GroupInfo, CreateGroupError> {
        let (members, version) = parts(&keys);
        self.start(&name, &members);
        let create = |table: &mut Table| {
            table.create_group(name.clone(), type_id.clone(), keys.clone(), wait_ms)
        };
        let (created, outcome) = self.change(create, |error| match error {
            CreateGroupError::Refused(refused) => refusal(refused.may_be_repeated),
            CreateGroupError::NoSuchType(_) => Outcome::Missing,
            CreateGroupError::System(_) => Outcome::Unheard,
        });
        let members_in = created.as_ref().map_or_else(|_| Vec::new(), |it| it.members_in.clone());
        let (group, is_new) = (name, true);
        self.did = Did::Defined { group, is_new, members, version, members_in, outcome };
        created
    }

    fn change_group(
        &mut self,
        name: String,
        keys: Settings,
        wait_ms: u32,
    ) -> Result<GroupInfo, ChangeGroupError> {
        let (members, version) = parts(&keys);
        let before = self.table.groups.get(&name).map(Defined::members).unwrap_or_default();
        let new: Vec<String> =
            members.iter().filter(|node| !before.contains(node)).cloned().collect();
        self.start(&name, &new);
        let change = |table: &mut Table| table.change_group(name.clone(), keys.clone(), wait_ms);
        let (changed, outcome) = self.change(change, |error| match error {
            ChangeGroupError::Refused(refused) => refusal(refused.may_be_repeated),
            ChangeGroupError::NoSuchGroup(_) => Outcome::Missing,
            ChangeGroupError::System(_) => Outcome::Unheard,
        });
        if name == OWN {
            self.did = Did::Saved(outcome);
            return changed;
        }
        let members_in = changed.as_ref().map_or_else(|_| Vec::new(), |it| it.members_in.clone());
        let (group, is_new) = (name, false);
        self.did = Did::Defined { group, is_new, members, version, members_in, outcome };
        changed
    }

    fn delete_group(&mut self, name: String) -> Result<bool, raised::DeleteGroupError> {
        if self.fails_over() {
            let _first = self.table.delete_group(name.clone());
        }
        let delete = |table: &mut Table| table.delete_group(name.clone());
        let (deleted, outcome) = self.change(delete, |error| match error {
            raised::DeleteGroupError::Refused(refused) => refusal(refused.may_be_repeated),
            raised::DeleteGroupError::System(_) => Outcome::Unheard,
        });
        self.did = Did::Deleted(name, outcome);
        deleted
    }

    fn promote(&mut self, name: String, node: String) -> Result<(), raised::PromoteError> {
        let promote = |table: &mut Table| table.promote(name.clone(), node.clone());
        let (promoted, outcome) = self.change(promote, |error| match error {
            raised::PromoteError::Refused(_) | raised::PromoteError::NoSuchGroup(_) => {
                Outcome::Never
            }
            raised::PromoteError::System(_) => Outcome::Unheard,
        });
        self.did = Did::Promoted(outcome);
        promoted
    }

    fn group(&mut self, name: String) -> Result<GroupInfo, raised::GroupError> {
        if self.is_unreachable() {
            self.did = Did::Unheard;
            return Err(transient().into());
        }
        let found = self.table.group(name.clone());
        let members_in = found.as_ref().ok().map(|info| info.members_in.clone());
        self.did = Did::Seen(name, members_in);
        found
    }

    fn member(&mut self, name: String, node: String) -> Result<Object, raised::MemberError> {
        if self.is_unreachable() {
            self.did = Did::Unheard;
            return Err(transient().into());
        }
        self.table.member(name, node)
    }

    fn coming(&mut self, name: String) -> Result<Vec<String>, SystemException> {
        self.ask(|table| table.coming(name))
    }

    fn noted_groups(
        &mut self,
        after: String,
        how_many: u32,
    ) -> Result<GroupInfos, SystemException> {
        let page = self.ask(|table| table.noted_groups(after, how_many))?;
        let noted = |info: &GroupInfo| (info.name.clone(), info.members.clone(), info.version);
        self.did = Did::Noted(page.iter().map(noted).collect());
        Ok(page)
    }

    fn create_by_factory(
        &mut self,
        the_factory: Object,
        type_id: String,
        the_criteria: ft::Criteria,
    ) -> Result<(Object, Any), CreateByFactoryError> {
        self.did = Did::Made(None);
        let make = |table: &mut Table| {
            table.create_by_factory(the_factory.clone(), type_id.clone(), the_criteria.clone())
        };
        if self.is_unreachable() {
            return Err(raise_system(ExceptionKind::CommFailure).into());
        }
        if self.fails_over() && make(&mut self.table).is_ok() {
            self.left.insert(self.table.next_made, Left::Failover);
        }
        let made = make(&mut self.table)?;
        if self.is_in_doubt() {
            self.left.insert(self.table.next_made, Left::Late);
            return Err(raise_system(ExceptionKind::Timeout).into());
        }
        self.did = Did::Made(Some(self.table.next_made));
        Ok(made)
    }

    fn delete_by_factory(
        &mut self,
        the_factory: Object,
        factory_creation_id: Any,
    ) -> Result<(), raised::DeleteByFactoryError> {
        let id = factory_creation_id.get::<u64>().unwrap_or_default();
        if self.is_unreachable() {
            self.left.insert(id, Left::NotDeleted);
            self.did = Did::Unmade(Outcome::Unheard);
            return Err(raise_system(ExceptionKind::CommFailure).into());
        }
        self.did = Did::Unmade(Outcome::Done);
        if self.fails_over() {
            let gone = (the_factory.clone(), factory_creation_id.clone());
            let _first = self.table.delete_by_factory(gone.0, gone.1);
        }
        self.table.delete_by_factory(the_factory, factory_creation_id)
    }
}

impl Objects for Around {
    fn interface(&self, _: &[u8]) -> Option<Interface> {
        Some(quorba::DOMAIN)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        quorba::dispatch_domain(self, call)
    }
}

/// A member's way to it.
#[derive(Clone)]
pub(crate) struct Way(pub(crate) Rc<RefCell<Around>>);

impl Transport for Way {
    fn invoke(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        self.0.borrow_mut().invoke(operation, arguments)
    }

    fn send(&mut self, operation: &str, arguments: Arguments<'_>) -> Result<(), SystemException> {
        self.invoke(operation, arguments).map(drop)
    }
}
