//! Whether what a manager answered is right, call by call.
//!
//! Invariant: an exception is right only with its reason.

use super::domain::{Did, Outcome};
use super::model::{Common, Known, Model, id_of};
use super::operation::{Heard, Op};
use super::values::{Key, Said, Value, Values, WRONG};
use super::world::TYPES;
use quorba_idl::ft;
use std::collections::BTreeSet;

/// Nothing, or what would be right.
pub(crate) type Right = Result<(), String>;

/// Members of a group for which nobody has said how many.
const INITIAL: usize = 2;

impl Heard {
    pub(crate) fn is_transient(&self) -> bool {
        self.is_raised("Transient")
    }

    fn is_raised(&self, name: &str) -> bool {
        matches!(self, Self::Raised(raised, _) if raised == name)
    }
}

pub(crate) fn over(below: &Values, above: &Values) -> Values {
    let mut values = below.clone();
    values.extend(above.iter().map(|(key, value)| (*key, value.clone())));
    values
}

pub(crate) fn is(is_right: bool, right: &str) -> Right {
    if is_right { Ok(()) } else { Err(right.to_owned()) }
}

pub(crate) fn same(heard: &Heard, right: &Heard) -> Right {
    is(heard == right, &format!("{right:?}"))
}

pub(crate) fn raised(heard: &Heard, name: &str) -> Right {
    is(heard.is_raised(name), name)
}

pub(crate) fn no_group(heard: &Heard) -> Right {
    raised(heard, "ObjectGroupNotFound")
}

fn outcomes(did: &[Did]) -> impl Iterator<Item = Outcome> {
    did.iter().filter_map(|one| match one {
        Did::Unheard => Some(Outcome::Unheard),
        Did::Defined { outcome, .. }
        | Did::Saved(outcome)
        | Did::Deleted(_, outcome)
        | Did::Promoted(outcome) => Some(*outcome),
        _ => None,
    })
}

fn is_passing(did: &[Did]) -> bool {
    let is_left = |one: &Did| match one {
        Did::Saved(outcome) | Did::Deleted(_, outcome) => *outcome != Outcome::Done,
        _ => false,
    };
    did.iter().any(is_left)
        || outcomes(did)
            .any(|one| matches!(one, Outcome::Passing | Outcome::Unheard | Outcome::Hidden))
}

fn is_never(did: &[Did]) -> bool {
    outcomes(did).any(|one| matches!(one, Outcome::Never | Outcome::Missing))
}

/// Whether an exception is raised by what the domain refused, where the IDL has none for it.
pub(crate) fn is_excused(heard: &Heard, did: &[Did]) -> bool {
    heard.is_transient() && is_passing(did) || heard.is_raised("Unknown") && is_never(did)
}

/// What is written down is done, and nothing else is.
pub(crate) fn saved(heard: &Heard, did: &[Did]) -> Right {
    let saved = did.iter().rev().find_map(|one| match one {
        Did::Saved(outcome) => Some(*outcome),
        _ => None,
    });
    match saved {
        Some(Outcome::Done) => same(heard, &Heard::Done),
        _ => raised(heard, "Transient"),
    }
}

/// Properties that are said, or the exception and what it names.
fn read(said: &Said, is_dynamic: bool) -> Result<Values, (&'static str, &'static str)> {
    let mut values = Values::new();
    for (key, value) in said {
        if *key == Key::Colour {
            return Err(("UnsupportedProperty", key.id()));
        }
        let fits = match (key, value) {
            (Key::Times, Value::Times(..)) | (Key::Factories, Value::Factories(_)) => true,
            (Key::Times | Key::Factories, _) => false,
            (_, Value::Number(number)) => *number != WRONG,
            _ => false,
        };
        if !fits || is_dynamic && !key.is_dynamic() {
            return Err(("InvalidProperty", key.id()));
        }
        values.insert(*key, value.clone());
    }
    Ok(values)
}

fn is_in_conflict(values: &Values) -> bool {
    let number = |key| values.get(&key).and_then(Value::number);
    number(Key::Initial).is_some() && number(Key::Initial) < number(Key::Minimum)
}

/// What it would be with these, or which exception.
fn set(
    below: &Values,
    before: &Values,
    said: &Said,
    is_dynamic: bool,
) -> Result<Values, (&'static str, &'static str)> {
    let set = over(before, &read(said, is_dynamic)?);
    match is_in_conflict(&over(below, &set)) {
        true => Err(("InvalidProperty", Key::Minimum.id())),
        false => Ok(set),
    }
}

fn without(before: &Values, keys: &[Key]) -> Result<Values, (&'static str, &'static str)> {
    if keys.contains(&Key::Colour) {
        return Err(("UnsupportedProperty", Key::Colour.id()));
    }
    let mut left = before.clone();
    for key in keys {
        left.remove(key).ok_or(("InvalidProperty", key.id()))?;
    }
    Ok(left)
}

fn raises(heard: &Heard, (name, what): (&str, &str)) -> Right {
    same(heard, &Heard::Raised(name.to_owned(), what.to_owned()))
}

/// The last definition of a group in this call, and whether it was done.
fn defined(id: u64, did: &[Did]) -> Option<(&Vec<String>, u32, &Vec<String>, Outcome)> {
    did.iter().rev().find_map(|one| match one {
        Did::Defined { group, members, version, members_in, outcome, .. }
            if id_of(group) == Some(id) =>
        {
            Some((members, *version, members_in, *outcome))
        }
        _ => None,
    })
}

pub(crate) fn up(did: &[Did]) -> Option<&Vec<String>> {
    did.iter().find_map(|one| match one {
        Did::Nodes(up) => Some(up),
        _ => None,
    })
}

/// What went wrong explains that nothing was created.
fn explains(heard: &Heard, did: &[Did]) -> Right {
    let is_not_made = did.contains(&Did::Made(None));
    let is_not_in = did.iter().any(|one| match one {
        Did::Defined { members, members_in, outcome: Outcome::Done, .. } => {
            members_in.len() < members.len()
        }
        _ => false,
    });
    let is_right = heard.is_transient() && is_passing(did)
        || heard.is_raised("ObjectNotCreated") && (is_never(did) || is_not_made || is_not_in)
        // Who is in may have changed between two questions.
        || heard.is_raised("ObjectNotCreated") && did.iter().any(|one| matches!(one, Did::Seen(..)))
        || heard.is_raised("NoFactory") && is_not_made;
    is(is_right, "an exception with a reason, or what was created")
}

impl Model {
    /// Nodes where a member can be created, and whether factories do it.
    pub(crate) fn candidates(
        &self,
        type_id: &str,
        values: &Values,
        at: Option<&str>,
        up: &[String],
    ) -> (Vec<String>, bool) {
        let named: Vec<String> = match values.get(&Key::Factories) {
            Some(Value::Factories(all)) if !all.is_empty() => {
                all.iter().map(|(_, node)| node.clone()).collect()
            }
            _ => {
                let registry = self.common.registry.iter();
                let of_type = registry.filter(|(_, (of, _))| of == type_id);
                of_type.map(|((_, node), _)| node.clone()).collect()
            }
        };
        let is_foreign = !named.is_empty();
        let is_started = type_id != TYPES[2];
        let mut nodes: Vec<String> = if is_foreign {
            named.into_iter().filter(|node| up.contains(node)).collect()
        } else {
            up.iter().filter(|_| is_started).cloned().collect()
        };
        // Several factories at one location make one member.
        let mut seen = BTreeSet::new();
        nodes.retain(|node| at.is_none_or(|at| at == node) && seen.insert(node.clone()));
        (nodes, is_foreign)
    }

    pub(crate) fn created(
        &mut self,
        type_id: &str,
        wanted: &Said,
        at: Option<&str>,
        heard: &Heard,
        did: &[Did],
    ) -> Right {
        if self.is_blind {
            return self.created_blindly(type_id, wanted, heard);
        }
        let own = match read(wanted, false) {
            // `create_object` does not raise UnsupportedProperty.
            Err((_, what)) => return raises(heard, ("InvalidProperty", what)),
            Ok(own) => own,
        };
        let creation = over(&self.values_of(type_id), &own);
        if is_in_conflict(&creation) {
            return raises(heard, ("InvalidProperty", Key::Minimum.id()));
        }
        let known = Known { type_id: type_id.to_owned(), creation, ..Known::default() };
        if matches!(did.first(), Some(Did::Saved(outcome)) if *outcome != Outcome::Done) {
            return raised(heard, "Transient");
        }
        let Heard::Group { id, version, created: Some(created) } = heard else {
            return self.not_created(&known, at, heard, did);
        };
        is(id == created && !self.groups.contains_key(id), "a number of its own")?;
        if !known.is_by_infrastructure() {
            let is_saved = matches!(did.last(), Some(Did::Saved(Outcome::Done)));
            is(is_saved, "an exception: it is nowhere")?;
            self.groups.insert(*id, Known { version: *version, ..known });
            return is(*version == 1, "version 1");
        }
        let up = up(did).ok_or("an exception: nobody knows where")?;
        let (nodes, is_foreign) = self.candidates(type_id, &known.creation, at, up);
        is(is_foreign || !known.is_pushed(), "InvalidProperty: servers cannot push")?;
        let initial = initial(&known, nodes.len());
        let Some((members, of, _, Outcome::Done)) = defined(*id, did) else {
            return Err("an exception: it is not in the domain".to_owned());
        };
        let distinct: BTreeSet<&String> = members.iter().collect();
        is(of == *version, "the version that the domain has")?;
        is(members.len() == initial && distinct.len() == initial, "as many members as wanted")?;
        is(members.iter().all(|one| nodes.contains(one)), "members where they can be")?;
        self.groups.insert(*id, Known { is_local: !is_foreign, ..known });
        Ok(())
    }

    fn not_created(&self, known: &Known, at: Option<&str>, heard: &Heard, did: &[Did]) -> Right {
        let Some(up) = up(did).filter(|_| known.is_by_infrastructure()) else {
            return is(heard.is_transient() && is_passing(did), "a group");
        };
        if is_passing(did) && heard.is_transient() {
            return Ok(());
        }
        let (nodes, is_foreign) = self.candidates(&known.type_id, &known.creation, at, up);
        if nodes.is_empty() {
            return raised(heard, "NoFactory");
        }
        if nodes.len() < initial(known, nodes.len()) {
            return raised(heard, "CannotMeetCriteria");
        }
        if !is_foreign && known.is_pushed() {
            return raises(heard, ("InvalidProperty", Key::Monitoring.id()));
        }
        explains(heard, did)
    }

    fn created_blindly(&mut self, type_id: &str, wanted: &Said, heard: &Heard) -> Right {
        if let Heard::Group { id, version, .. } = heard {
            let (type_id, creation) = (type_id.to_owned(), read(wanted, false).unwrap_or_default());
            let known = Known { type_id, creation, version: *version, ..Known::default() };
            self.groups.insert(*id, known);
        }
        Ok(())
    }

    pub(crate) fn member_created(
        &mut self,
        id: u64,
        type_id: &str,
        at: &str,
        heard: &Heard,
        did: &[Did],
    ) -> Right {
        let Some(known) = self.groups.get(&id).cloned() else { return no_group(heard) };
        if known.members.iter().any(|one| one == at) {
            return raised(heard, "MemberAlreadyPresent");
        }
        let Some(up) = up(did) else { return raised(heard, "Transient") };
        if self.is_blind || heard.is_transient() && is_passing(did) {
            return Ok(());
        }
        let (nodes, is_foreign) = self.candidates(type_id, &known.values(), Some(at), up);
        let is_same_kind = known.members.is_empty() || known.is_local != is_foreign;
        let is_started = known.type_id == type_id && !known.is_pushed();
        let fits = is_same_kind && (is_foreign || is_started);
        if nodes.is_empty() || !fits {
            return raised(heard, "NoFactory");
        }
        let Heard::Group { version, .. } = heard else {
            let now = self.shadow.get(&id).map(|(members, _)| members.clone());
            is(now.unwrap_or_default() == known.members, "the members that it had")?;
            return explains(heard, did);
        };
        let mut all = known.members.clone();
        all.push(at.to_owned());
        match defined(id, did) {
            Some((members, of, _, Outcome::Done)) if *members == all && of == *version => {}
            other => return Err(format!("an exception, with {other:?}")),
        }
        is(*version > known.version, "a later version")?;
        if let Some(known) = self.groups.get_mut(&id) {
            known.is_local = !is_foreign;
            known.added.remove(at);
        }
        Ok(())
    }

    pub(crate) fn member_added(
        &mut self,
        id: u64,
        at: &str,
        port: u16,
        heard: &Heard,
        did: &[Did],
    ) -> Right {
        let Some(known) = self.groups.get_mut(&id) else { return no_group(heard) };
        if known.members.iter().any(|one| one == at) {
            return raised(heard, "MemberAlreadyPresent");
        }
        if did.first() == Some(&Did::Unheard) {
            return raised(heard, "Transient");
        }
        let is_mixed = !known.members.is_empty() && known.is_local && !self.is_blind;
        if at == "far" || is_mixed {
            return raised(heard, "ObjectNotAdded");
        }
        match (heard, defined(id, did)) {
            (Heard::Group { version, .. }, Some((members, of, _, Outcome::Done))) => {
                is(members.len() == known.members.len() + 1, "one more")?;
                is(members.iter().any(|one| one == at), "that one")?;
                is(of == *version && of > known.version, "a later version")?;
                known.added.insert(at.to_owned(), port);
                known.is_local = false;
                Ok(())
            }
            (_, Some((.., Outcome::Never | Outcome::Missing))) => raised(heard, "ObjectNotAdded"),
            (_, Some((.., Outcome::Passing | Outcome::Unheard | Outcome::Hidden))) => {
                raised(heard, "Transient")
            }
            (_, None) if heard.is_transient() && is_passing(did) => Ok(()),
            _ if self.is_blind => raised(heard, "ObjectNotAdded"),
            (_, other) => Err(format!("what fits {other:?}")),
        }
    }

    pub(crate) fn member_removed(
        &mut self,
        id: u64,
        at: &str,
        heard: &Heard,
        did: &[Did],
    ) -> Right {
        let Some(known) = self.groups.get(&id).cloned() else { return no_group(heard) };
        if !known.members.iter().any(|one| one == at) {
            return raised(heard, "MemberNotFound");
        }
        let now = self.shadow.get(&id).cloned();
        let Heard::Group { version, .. } = heard else {
            is(heard.is_transient() && (is_passing(did) || is_never(did)), "that it is removed")?;
            // Who was to take over may be there beside it.
            return match now {
                Some((members, _)) if known.members.iter().all(|one| members.contains(one)) => {
                    Ok(())
                }
                _ => Err("that it is removed: it is".to_owned()),
            };
        };
        is(*version > known.version, "a later version")?;
        let known_mut = self.groups.entry(id).or_default();
        known_mut.added.remove(at);
        let is_empty = known.members.len() == 1 && now.is_none();
        if is_empty {
            (known_mut.members, known_mut.version) = (Vec::new(), *version);
            return Ok(());
        }
        let (members, of) = now.ok_or("members")?;
        is(of == *version, "the version that the domain has")?;
        let stay = |one: &&String| *one != at;
        if !known.is_by_infrastructure() && !self.is_blind {
            return is(known.members.iter().filter(stay).eq(&members), "all others, and no more");
        }
        let most = (known.members.len() - 1).max(known.minimum());
        is(members.len() <= most || self.is_blind, "no more than the minimum")
    }

    pub(crate) fn primary_set(&self, id: u64, at: &str, heard: &Heard, did: &[Did]) -> Right {
        let Some(known) = self.groups.get(&id) else { return no_group(heard) };
        if !known.members.iter().any(|one| one == at) {
            return raised(heard, "MemberNotFound");
        }
        if self.is_blind {
            return Ok(());
        }
        if known.number(Key::Style) != Some(ft::WARM_PASSIVE) {
            return raised(heard, "BadReplicationStyle");
        }
        match did.first() {
            Some(Did::Promoted(Outcome::Done)) => {}
            Some(Did::Promoted(Outcome::Unheard | Outcome::Hidden)) => {
                return raised(heard, "Transient");
            }
            _ => return raised(heard, "PrimaryNotSet"),
        }
        match defined(id, did) {
            Some((members, version, _, Outcome::Done)) => {
                is(*members == known.members && version > known.version, "a version more")?;
                same(heard, &Heard::Group { id, version, created: None })
            }
            _ => raised(heard, "PrimaryNotSet"),
        }
    }

    pub(crate) fn dynamic_set(
        &mut self,
        id: u64,
        said: &Said,
        heard: &Heard,
        did: &[Did],
    ) -> Right {
        let is_blind = self.is_blind;
        let Some(known) = self.groups.get_mut(&id) else { return no_group(heard) };
        if is_blind {
            return Ok(());
        }
        let dynamic = match set(&known.creation, &known.dynamic, said, true) {
            Err(exception) => return raises(heard, exception),
            Ok(dynamic) => dynamic,
        };
        if known.members.is_empty() {
            // Behind it there may be members again.
            let first = did.iter().position(|one| matches!(one, Did::Saved(_)));
            saved(heard, first.and_then(|at| did.get(..=at)).unwrap_or_default())?;
        } else {
            // Behind it who is missing may be replaced.
            let outcome = did.iter().find_map(|one| match one {
                Did::Defined { outcome, .. } => Some(*outcome),
                _ => None,
            });
            match outcome {
                Some(Outcome::Done) => same(heard, &Heard::Done)?,
                Some(Outcome::Never | Outcome::Missing) if said.is_empty() => {
                    raised(heard, "Unknown")?;
                }
                Some(Outcome::Never | Outcome::Missing) => raised(heard, "InvalidProperty")?,
                _ => raised(heard, "Transient")?,
            }
        }
        if *heard == Heard::Done {
            known.dynamic = dynamic;
        }
        Ok(())
    }

    pub(crate) fn common_changed(&mut self, op: &Op, heard: &Heard, did: &[Did]) -> Right {
        if self.is_blind {
            return Ok(());
        }
        let mut common: Common = self.common.clone();
        let none = Values::new();
        let changed = match op {
            Op::SetDefaults(said) => {
                set(&none, &common.defaults, said, false).map(|now| common.defaults = now)
            }
            Op::RemoveDefaults(keys) => {
                without(&common.defaults, keys).map(|now| common.defaults = now)
            }
            Op::SetOfType(of, said) => {
                let before = common.types.get(of).unwrap_or(&none);
                let now = set(&common.defaults, before, said, false);
                now.map(|now| drop(common.types.insert(of.clone(), now)))
            }
            Op::RemoveOfType(of, keys) => {
                let before = common.types.get(of).unwrap_or(&none);
                without(before, keys).map(|now| drop(common.types.insert(of.clone(), now)))
            }
            Op::Register { role, type_id, port, at } => {
                let key = (role.clone(), at.clone());
                match common.registry.insert(key, (type_id.clone(), *port)) {
                    Some(_) => return raised(heard, "MemberAlreadyPresent"),
                    None => Ok(()),
                }
            }
            Op::Unregister { role, at } => {
                match common.registry.remove(&(role.clone(), at.clone())) {
                    None => return raised(heard, "MemberNotFound"),
                    Some(_) => Ok(()),
                }
            }
            _ => Ok(()),
        };
        if let Err(exception) = changed {
            return raises(heard, exception);
        }
        saved(heard, did)?;
        if *heard == Heard::Done {
            self.common = common;
        }
        Ok(())
    }
}

/// With how many members a group begins, where there are so many candidates.
pub(crate) fn initial(known: &Known, candidates: usize) -> usize {
    match known.number(Key::Initial) {
        Some(initial) => initial.into(),
        None => known.minimum().max(INITIAL.min(candidates)),
    }
}
