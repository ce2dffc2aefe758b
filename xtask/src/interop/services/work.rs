//! What one client does, and what it knows of it afterwards: each operation was acknowledged, or
//! an exception says that it was done already, which only a call in doubt may have done.
//!
//! What it is not: random. What a client does follows from its number of operations; what goes
//! wrong meanwhile does not.
//!
//! Invariant: an exception that no call in doubt explains ends the case.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::client::{Client, Kind, Outcome};
use crate::wait;

/// The type of the groups.
pub(super) const LEDGER: &str = "IDL:Bank/Ledger:1.0";
/// Nobody can be found for it just now: a node is away.
const NO_PLACE: [&str; 3] = ["NoFactory", "ObjectNotCreated", "CannotMeetCriteria"];
/// Operations of one round of names and groups.
const ROUND: usize = 10;

/// What is bound to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Context,
    /// An object with this key.
    Object(String),
}

/// How a race for a name ended for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Race {
    Won,
    Lost,
    /// It is bound, perhaps by this client's call in doubt.
    Unknown,
}

/// A group that was acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) reference: String,
    /// The least members that the manager keeps; none: the client itself says who is a member.
    pub(super) minimum: Option<usize>,
    /// Whom the client has as members.
    pub(super) members: BTreeSet<String>,
}

/// What a client knows.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) bindings: BTreeMap<String, Bound>,
    /// By the number in their names.
    pub(super) races: BTreeMap<usize, Race>,
    pub(super) groups: BTreeMap<u64, Group>,
    /// Calls that may have created a group that nobody was told of.
    pub(super) unknown_groups: usize,
    pub(super) operations: usize,
    /// Of these, those that the manager was asked for.
    pub(super) of_manager: usize,
    /// Of these, those that a call in doubt had done.
    pub(super) done_in_doubt: usize,
}

pub(super) struct Work<'a> {
    pub(super) client: Client,
    pub(super) known: Known,
    /// Names of nodes.
    pub(super) nodes: &'a [String],
    /// Objects that the application adds to groups.
    pub(super) objects: Vec<String>,
    /// Steps with the manager so far.
    steps: usize,
    /// The groups of the round.
    created: Option<u64>,
    own: Option<u64>,
    passive: Option<u64>,
}

/// A reference to an object with that key, where nobody is.
pub(super) fn target(key: &str) -> String {
    format!("corbaloc:iiop:1.2@127.0.0.1:9/{key}")
}

impl<'a> Work<'a> {
    pub(super) fn new(client: Client, nodes: &'a [String], objects: Vec<String>) -> Self {
        let (known, steps) = (Known::default(), 0);
        Self { client, known, nodes, objects, steps, created: None, own: None, passive: None }
    }

    const fn word(&self) -> &'static str {
        self.client.kind.word()
    }

    /// Does that many operations, one each `pace`.
    pub(super) fn go(&mut self, count: usize, pace: Duration) -> Result<(), String> {
        let begin = Instant::now();
        let first = self.known.operations;
        while self.known.operations < first + count {
            let number = self.known.operations;
            let due = pace * u32::try_from(number - first).unwrap_or(u32::MAX);
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
            self.step(number)?;
            self.known.operations += 1;
        }
        Ok(())
    }

    fn step(&mut self, number: usize) -> Result<(), String> {
        let round = number / ROUND;
        match number % ROUND {
            0 => self.new_context(round),
            1 | 2 | 6 => self.bind(round, number),
            3 | 9 => self.rebind(round, number),
            4 => self.race(round),
            7 => self.unbind(round, number - 1),
            _ => {
                self.known.of_manager += 1;
                self.manage()
            }
        }
    }

    /// The context of a round: three of four lie in each other.
    fn context(&self, round: usize) -> String {
        let nested: Vec<String> =
            (1..=round % 4).map(|depth| format!("/k{}", round / 4 * 4 + depth)).collect();
        match round / 4 {
            0 => format!("{}{}", self.word(), nested.concat()),
            four => format!("{}/four-{four}{}", self.word(), nested.concat()),
        }
    }

    fn name(&self, round: usize, number: usize) -> String {
        format!("{}/o{number}", self.context(round))
    }

    /// What was answered, where this exception is what a call in doubt may have left.
    fn done(
        &mut self,
        words: &[&str],
        outcome: Outcome,
        already: &str,
    ) -> Result<Vec<String>, String> {
        match outcome.answer {
            Ok(found) => Ok(found),
            Err(name) if name == already && outcome.doubts > 0 => {
                self.known.done_in_doubt += 1;
                Ok(Vec::new())
            }
            Err(name) => {
                let doubts = outcome.doubts;
                Err(format!("{} {words:?}: {name} with {doubts} calls in doubt", self.word()))
            }
        }
    }

    fn does(&mut self, words: &[&str], already: &str) -> Result<Vec<String>, String> {
        let outcome = self.client.does(words, &[])?;
        self.done(words, outcome, already)
    }

    fn new_context(&mut self, round: usize) -> Result<(), String> {
        let name = self.context(round);
        self.does(&["mkctx", &name], "AlreadyBound")?;
        self.known.bindings.insert(name, Bound::Context);
        Ok(())
    }

    fn bind(&mut self, round: usize, number: usize) -> Result<(), String> {
        let (name, key) = (self.name(round, number), format!("{}-{number}", self.word()));
        self.does(&["bind", &name, &target(&key)], "AlreadyBound")?;
        self.known.bindings.insert(name, Bound::Object(key));
        Ok(())
    }

    /// The first object of the round is another one from now on; a read behind it says so.
    fn rebind(&mut self, round: usize, number: usize) -> Result<(), String> {
        let name = self.name(round, round * ROUND + 1);
        let key = format!("{}-again-{number}", self.word());
        self.does(&["rebind", &name, &target(&key)], "-")?;
        let found = self.does(&["resolve", &name], "-")?;
        let found = found.first().map(String::as_str).unwrap_or_default();
        if object_key(found).as_deref() != Some(key.as_str()) {
            return Err(format!("{name} is {found} behind the rebind to {key}"));
        }
        self.known.bindings.insert(name, Bound::Object(key));
        Ok(())
    }

    fn unbind(&mut self, round: usize, number: usize) -> Result<(), String> {
        let name = self.name(round, number);
        self.does(&["unbind", &name], "NotFound")?;
        let words = ["resolve", name.as_str()];
        match self.client.does(&words, &[])?.answer {
            Err(raised) if raised == "NotFound" => {}
            other => return Err(format!("{name} was unbound and is {other:?}")),
        }
        self.known.bindings.remove(&name);
        Ok(())
    }

    /// All clients bind this name; one is the first.
    fn race(&mut self, round: usize) -> Result<(), String> {
        let key = race_key(self.client.kind, round);
        let words = ["bind", &format!("race-{round}"), &target(&key)];
        let Outcome { answer, doubts } = self.client.does(&words, &[])?;
        let ended = match answer {
            Ok(_) => Race::Won,
            Err(name) if name == "AlreadyBound" && doubts > 0 => Race::Unknown,
            Err(name) if name == "AlreadyBound" => Race::Lost,
            Err(name) => return Err(format!("{} {words:?}: {name}", self.word())),
        };
        self.known.races.insert(round, ended);
        Ok(())
    }

    /// The next step of a round of groups.
    fn manage(&mut self) -> Result<(), String> {
        let (round, step) = (self.steps / 8, self.steps % 8);
        self.steps += 1;
        let adds = !self.objects.is_empty() && round % 2 == 1;
        match step {
            0 => self.created = Some(self.create(3, 1, 2, 2)?),
            1 => self.create_own()?,
            2 | 3 if adds => self.add(step - 2)?,
            2 | 3 => self.join(round + step)?,
            4 => self.remove()?,
            5 => {
                let before = self.passive.take();
                self.passive = Some(self.create(2, 1, 2, 1)?);
                before.map_or(Ok(()), |before| self.delete(before))?;
            }
            6 => {
                let own = self.own.take();
                own.map_or(Ok(()), |own| self.delete(own))?;
            }
            _ => {
                let created = self.created.take();
                created.map_or(Ok(()), |created| self.delete(created))?;
            }
        }
        Ok(())
    }

    /// A group of this style, whose members are the manager's business or the client's.
    pub(super) fn create(
        &mut self,
        style: u16,
        membership: u16,
        initial: u16,
        minimum: u16,
    ) -> Result<u64, String> {
        let numbers = [style, membership, initial, minimum].map(|number| number.to_string());
        let words: Vec<&str> =
            ["create", LEDGER].into_iter().chain(numbers.iter().map(String::as_str)).collect();
        let Outcome { answer, doubts } = self.client.does(&words, &NO_PLACE)?;
        self.known.unknown_groups += doubts;
        let found = answer.map_err(|name| format!("{} {words:?}: {name}", self.word()))?;
        let [reference, number] = found.as_slice() else {
            return Err(format!("{words:?}: returned {found:?}"));
        };
        let number: u64 = number.parse().map_err(|_| format!("{number} is no creation id"))?;
        let is_managed = membership == 1;
        let group = Group {
            reference: reference.clone(),
            minimum: is_managed.then_some(minimum.into()),
            members: BTreeSet::new(),
        };
        match self.known.groups.insert(number, group) {
            None => Ok(number),
            Some(_) => Err(format!("{number} was given to two groups")),
        }
    }

    /// A group whose members the client says.
    pub(super) fn create_own(&mut self) -> Result<(), String> {
        self.own = Some(self.create(3, 0, 2, 1)?);
        Ok(())
    }

    fn own_group(&self) -> Result<(u64, Group), String> {
        let known = self.own.and_then(|id| Some((id, self.known.groups.get(&id)?.clone())));
        known.ok_or_else(|| "no group of its own".into())
    }

    /// One more member that a node starts, at the first node that can.
    pub(super) fn join(&mut self, begin: usize) -> Result<(), String> {
        let (id, group) = self.own_group()?;
        let nodes = self.nodes;
        let free: Vec<&String> = (0..nodes.len())
            .map(|at| &nodes[(begin + at) % nodes.len()])
            .filter(|node| !group.members.contains(*node))
            .collect();
        let began = Instant::now();
        loop {
            for node in &free {
                let words = ["create_member", &group.reference, node, LEDGER];
                let outcome = self.client.does(&words, &[])?;
                // A node that is away, or goes meanwhile, can have no member; another one can.
                let is_refused = |name: &String| NO_PLACE.contains(&name.as_str());
                if outcome.answer.as_ref().is_err_and(is_refused) {
                    self.client.repeated += 1;
                    continue;
                }
                self.done(&words, outcome, "MemberAlreadyPresent")?;
                return self.now_has(id, node);
            }
            if began.elapsed() > Duration::from_secs(30) {
                return Err(format!("{}: no node takes a member of group {id}", self.word()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// One more member that somebody else has started.
    fn add(&mut self, number: usize) -> Result<(), String> {
        let (id, group) = self.own_group()?;
        let node = self.nodes[number].clone();
        let object = self.objects[number].clone();
        self.does(&["add_member", &group.reference, &node, &object], "MemberAlreadyPresent")?;
        self.now_has(id, &node)
    }

    fn now_has(&mut self, id: u64, node: &str) -> Result<(), String> {
        let group = self.known.groups.get_mut(&id).ok_or("no group of its own")?;
        group.members.insert(node.to_owned());
        Ok(())
    }

    fn remove(&mut self) -> Result<(), String> {
        let (id, mut group) = self.own_group()?;
        let node = group.members.pop_first().ok_or("no member to remove")?;
        self.does(&["remove_member", &group.reference, &node], "MemberNotFound")?;
        self.known.groups.insert(id, group);
        Ok(())
    }

    fn delete(&mut self, id: u64) -> Result<(), String> {
        self.does(&["delete", &id.to_string()], "ObjectNotFound")?;
        self.known.groups.remove(&id);
        Ok(())
    }

    /// What the manager says of the members of a group.
    pub(super) fn locations(&mut self, group: &Group) -> Result<Vec<String>, String> {
        let found = self.does(&["locations", &group.reference], "-")?;
        Ok(found.iter().flat_map(|text| text.split(' ')).map(String::from).collect())
    }

    /// Waits until the manager says of each group what the client knows of it.
    pub(super) fn check_groups(&mut self, time_max: Duration) -> Result<(), String> {
        let groups: Vec<(u64, Group)> =
            self.known.groups.iter().map(|(id, group)| (*id, group.clone())).collect();
        for (id, group) in groups {
            wait::until("a group is as acknowledged", time_max, || {
                let found = self.locations(&group)?;
                let members: BTreeSet<String> = found.iter().cloned().collect();
                let is_so = members.len() == found.len()
                    && match group.minimum {
                        Some(minimum) => members.len() >= minimum,
                        None => members == group.members,
                    };
                match is_so {
                    true => Ok(()),
                    false => Err(format!("group {id} has {found:?} and not {group:?}")),
                }
            })?;
        }
        Ok(())
    }
}

/// The object that a client binds in a race.
pub(super) fn race_key(kind: Kind, round: usize) -> String {
    format!("race-{round}-{}", kind.word())
}

/// The key of the object that a reference is to.
pub(super) fn object_key(reference: &str) -> Option<String> {
    let ior = quorba_giop::ior::Ior::parse(reference).ok()?;
    let key = ior.endpoints().first()?.object_key.to_vec();
    String::from_utf8(key).ok()
}
