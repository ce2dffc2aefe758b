//! Compares what is there with what the clients know.
//!
//! What it is not: forgiving. Only a call in doubt, which nobody was answered, may have been done
//! or not; everything else is known exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quorba_admin::status::MemberState;
use serde_json::Value;

use super::client::Kind;
use super::work::{Bound, Race, Work, object_key, race_key, target};
use super::{Context, Life, MANAGER, NAMING, NODES, SERVICES};
use crate::interop::naming::{self, Client};
use crate::{omniorbpy, wait};

/// How long members that died last may take to be replaced.
const REPAIRED_TIME_MAX: Duration = Duration::from_secs(30);
/// How long replicas may take to be even when nobody calls any more.
const EVEN_TIME_MAX: Duration = Duration::from_secs(20);
/// Names bound just before all nodes end.
const LAST: usize = 20;

/// Objects that an application runs itself.
pub(super) struct Objects {
    processes: Vec<Child>,
    references: Vec<String>,
}

impl Objects {
    /// Built-in banks.
    pub(super) fn start(context: &Context, count: usize) -> Result<Self, String> {
        let first = super::ports(count)?;
        let mut objects = Self { processes: Vec::new(), references: Vec::new() };
        for port in (first..).take(count) {
            let mut command = Command::new(&context.quorba);
            command.args(["servant", "bank", "--port", &port.to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            objects.processes.push(command.spawn().map_err(|error| error.to_string())?);
            objects.references.push(format!("corbaloc:iiop:1.2@127.0.0.1:{port}/bank"));
        }
        Ok(objects)
    }

    /// Two for each client.
    pub(super) fn of(&self, client: usize) -> Vec<String> {
        self.references.iter().skip(2 * client).take(2).cloned().collect()
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It cannot fail but for a process that has ended already.
            let _killed = process.kill();
            let _status = process.wait();
        }
    }
}

pub(super) struct Judge<'a> {
    pub(super) life: &'a mut Life,
    works: Vec<Work<'a>>,
    looks: usize,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(life: &'a mut Life, works: Vec<Work<'a>>) -> Self {
        Self { life, works, looks: 0 }
    }

    /// What was done, for people.
    pub(super) fn told(&self) -> String {
        let sum = |of: fn(&Work<'_>) -> usize| self.works.iter().map(of).sum::<usize>();
        format!(
            "{} operations ({} on the manager) by {:?}, {} calls repeated, {} done in doubt, \
             {} bindings and {} groups as acknowledged, {} times listed",
            sum(|work| work.known.operations),
            sum(|work| work.known.of_manager),
            self.works.iter().map(|work| work.client.kind).collect::<Vec<_>>(),
            sum(|work| work.client.repeated),
            sum(|work| work.known.done_in_doubt),
            sum(|work| work.known.bindings.len() + work.known.races.len()),
            sum(|work| work.known.groups.len()),
            self.looks,
        )
    }

    /// All is as acknowledged, everywhere.
    pub(super) fn everything(&mut self) -> Result<(), String> {
        self.life.wait_whole()?;
        self.works.iter_mut().try_for_each(|work| work.check_groups(REPAIRED_TIME_MAX))?;
        // A repair has groups change.
        self.life.wait_whole()?;
        self.no_other_groups()?;
        self.bindings()?;
        SERVICES.iter().try_for_each(|service| self.replicas_are_equal(service))?;
        self.life.operator.wait_healthy()
    }

    /// Bindings and groups that all nodes end behind, at once.
    pub(super) fn last_acknowledgements(&mut self) -> Result<(), String> {
        let Some(work) = self.works.first_mut() else { return Err("no clients".into()) };
        let context = work.client.kind.word();
        for number in 0..LAST {
            let (name, key) = (format!("{context}/last-{number}"), format!("last-{number}"));
            let outcome = work.client.does(&["bind", &name, &target(&key)], &[])?;
            outcome.answer.map_err(|raised| format!("bind {name}: {raised}"))?;
            work.known.bindings.insert(name, Bound::Object(key));
        }
        work.create_own()?;
        work.join(0)?;
        work.create(3, 1, 3, 2).map(drop)
    }

    /// Every group of the manager was acknowledged, or may be what a call in doubt left.
    fn no_other_groups(&self) -> Result<(), String> {
        let known = |id: &u64| self.works.iter().any(|work| work.known.groups.contains_key(id));
        let unknown_max: usize = self.works.iter().map(|work| work.known.unknown_groups).sum();
        (0..NODES).try_for_each(|index| {
            let status = self.life.fleet.status(index)?;
            let objects = status.groups.iter().filter_map(|group| {
                let id: u64 = group.name.strip_prefix("object-")?.parse().ok()?;
                Some((id, group))
            });
            let mut unknown = BTreeSet::new();
            for (id, group) in objects {
                if !known(&id) {
                    unknown.insert(id);
                }
                let nodes: BTreeSet<&String> = group.members.iter().map(|one| &one.node).collect();
                let is_in = |state: MemberState| state == MemberState::In;
                let are_in = group.members.iter().all(|member| is_in(member.state));
                if nodes.len() != group.members.len() || !are_in {
                    return Err(format!("{} has {:?}", group.name, group.members));
                }
            }
            match unknown.len() <= unknown_max {
                true => Ok(()),
                false => Err(format!(
                    "{} has groups {unknown:?} that nobody was told of, with {unknown_max} calls \
                     in doubt",
                    status.node
                )),
            }
        })
    }

    /// What is bound to each name, as clients know it; of races: what may be.
    fn expected(&self) -> Result<BTreeMap<String, Vec<Bound>>, String> {
        let mut expected = BTreeMap::new();
        let mut races: BTreeMap<usize, Vec<(Kind, Race)>> = BTreeMap::new();
        for work in &self.works {
            let bindings = work.known.bindings.iter();
            expected.extend(bindings.map(|(name, bound)| (name.clone(), vec![bound.clone()])));
            for (round, ended) in &work.known.races {
                races.entry(*round).or_default().push((work.client.kind, *ended));
            }
        }
        for (round, ends) in races {
            let of = |wanted: Race| -> Vec<Bound> {
                let those = ends.iter().filter(|(_, ended)| *ended == wanted);
                those.map(|(kind, _)| Bound::Object(race_key(*kind, round))).collect()
            };
            let (won, unknown) = (of(Race::Won), of(Race::Unknown));
            let may_be = match won.len() {
                0 => unknown,
                1 => won,
                _ => return Err(format!("race {round} was won by {won:?}")),
            };
            expected.insert(format!("race-{round}"), may_be);
        }
        Ok(expected)
    }

    /// What each node exports is what is expected.
    fn bindings(&self) -> Result<(), String> {
        let expected = self.expected()?;
        for node in self.life.fleet.nodes() {
            let export = self.life.operator.ok(&["naming", "--at", &node.gateway, "export"])?;
            let found = read_export(&export)?;
            let missing: Vec<_> =
                expected.keys().filter(|name| !found.contains_key(*name)).collect();
            let extra: Vec<_> = found.keys().filter(|name| !expected.contains_key(*name)).collect();
            let differs = |(name, bound): &(&String, &Bound)| {
                expected.get(*name).is_some_and(|may_be| !may_be.contains(bound))
            };
            let other: Vec<_> = found.iter().filter(differs).collect();
            if !missing.is_empty() || !extra.is_empty() || !other.is_empty() {
                return Err(format!(
                    "{} exports without {missing:?}, with {extra:?}, others are {other:?}",
                    node.name
                ));
            }
        }
        Ok(())
    }

    /// Every client lists and resolves the whole tree at every node.
    pub(super) fn trees(&mut self) -> Result<(), String> {
        let line = |(name, may_be): (&String, &Vec<Bound>)| match may_be.first() {
            Some(Bound::Context) => format!("context {name}"),
            _ => format!("object {name}"),
        };
        let expected: BTreeSet<String> = self.expected()?.iter().map(line).collect();
        // nameclt, a process for each name, has its turn in the cases of naming.rs.
        let mut clients = vec![Client::Jacorb];
        clients.extend(omniorbpy::omniidl().map(|_| Client::Omniorbpy));
        for (node, client) in
            self.life.fleet.nodes().iter().flat_map(|node| clients.iter().map(move |c| (node, *c)))
        {
            let place = format!("corbaloc:iiop:1.2@{}/NameService", node.gateway);
            let seen = naming::tree(client, &place, &[])?;
            self.looks += 1;
            if seen != expected {
                let missing: Vec<_> = expected.difference(&seen).collect();
                let extra: Vec<_> = seen.difference(&expected).collect();
                let name = &node.name;
                return Err(format!("{client:?} at {name}: no {missing:?} and {extra:?}"));
            }
        }
        Ok(())
    }

    /// The states of all replicas are equal to the octet, asked past every gateway.
    fn replicas_are_equal(&mut self, service: &str) -> Result<(), String> {
        let key = match service {
            NAMING => "NameService/state",
            _ => "ReplicationManager/state",
        };
        debug_assert!([NAMING, MANAGER].contains(&service));
        let Some(work) = self.works.iter_mut().find(|work| work.client.kind == Kind::Omniorb)
        else {
            return Err("no client in C++".into());
        };
        wait::until("replicas are equal", EVEN_TIME_MAX, || {
            let mut states = Vec::new();
            for index in 0..NODES {
                let port = self.life.fleet.server_of(index, service)?.port;
                let place = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/{key}");
                let state = work.client.does(&["state", &place], &[])?.answer?;
                states.push(state.concat());
            }
            let first = &states[0];
            match !first.is_empty() && states.iter().all(|state| state == first) {
                true => Ok(()),
                false => {
                    let octets: Vec<usize> = states.iter().map(|state| state.len() / 2).collect();
                    Err(format!("states of {service} of {octets:?} octets differ"))
                }
            }
        })
    }
}

/// Names and what is bound to them, of what `quorba naming export` writes.
fn read_export(text: &str) -> Result<BTreeMap<String, Bound>, String> {
    let mut contexts = BTreeMap::from([(0_u64, String::new())]);
    let mut found = BTreeMap::new();
    for line in text.lines().skip(1) {
        let told = || format!("no line of an export: {line}");
        let line: Value = serde_json::from_str(line).map_err(|_| told())?;
        let within = line["in"].as_u64().and_then(|number| contexts.get(&number));
        let (Some(within), Some(id)) = (within, line["id"].as_str()) else { return Err(told()) };
        let name = match within.as_str() {
            "" => id.to_owned(),
            path => format!("{path}/{id}"),
        };
        let bound = match (line["object"].as_str(), line["context"].as_u64()) {
            (Some(reference), _) => Bound::Object(object_key(reference).ok_or_else(told)?),
            (None, Some(number)) => {
                contexts.insert(number, name.clone());
                Bound::Context
            }
            _ => return Err(told()),
        };
        found.insert(name, bound);
    }
    Ok(found)
}
