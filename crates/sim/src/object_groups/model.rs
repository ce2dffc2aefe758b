//! What the order of calls means: which groups there are, with whom, and what is answered.
//!
//! What it is not: the manager. It is written from its documents, and is told what the domain
//! answered; where that decides, it judges what the manager made of it, and does not foretell it.

use super::domain::{Did, Outcome};
use super::judge::{self, Right};
use super::operation::{Heard, Op, Question};
use super::values::{Key, Values};
use quorba_idl::ft;
use std::collections::{BTreeMap, BTreeSet};

/// A group.
#[derive(Clone, Default, Debug)]
pub(crate) struct Known {
    pub(crate) type_id: String,
    pub(crate) creation: Values,
    pub(crate) dynamic: Values,
    /// Where its members are.
    pub(crate) members: Vec<String>,
    pub(crate) version: u32,
    /// Ports of objects that the application added.
    pub(crate) added: BTreeMap<String, u16>,
    /// Nodes start its servers.
    pub(crate) is_local: bool,
}

impl Known {
    pub(crate) fn values(&self) -> Values {
        judge::over(&self.creation, &self.dynamic)
    }

    pub(crate) fn number(&self, key: Key) -> Option<u16> {
        self.values().get(&key).and_then(super::values::Value::number)
    }

    pub(crate) fn is_by_infrastructure(&self) -> bool {
        self.number(Key::Membership) != Some(ft::MEMB_APP_CTRL)
    }

    pub(crate) fn is_pushed(&self) -> bool {
        self.number(Key::Monitoring) == Some(ft::PUSH)
    }

    pub(crate) fn minimum(&self) -> usize {
        self.number(Key::Minimum).unwrap_or(1).into()
    }
}

/// What is of no group.
#[derive(Clone, Default, Debug)]
pub(crate) struct Common {
    pub(crate) defaults: Values,
    pub(crate) types: BTreeMap<String, Values>,
    /// By role and node: the type, and the factory's port.
    pub(crate) registry: BTreeMap<(String, String), (String, u16)>,
}

/// See the module's text.
#[derive(Default, Debug)]
pub(crate) struct Model {
    pub(crate) groups: BTreeMap<u64, Known>,
    pub(crate) common: Common,
    /// What the domain has, as far as it has said so: members and version.
    pub(crate) shadow: BTreeMap<u64, (Vec<String>, u32)>,
    versions: BTreeMap<u64, (Vec<String>, u32)>,
    /// Groups that are to go, and of which nobody knows yet whether they are gone.
    pub(crate) garbage: BTreeSet<u64>,
    /// Groups of which the domain may have another version than it said last.
    pub(crate) doubtful: BTreeSet<u64>,
    /// Groups that nobody was told of, and that may be there since all members have ended.
    pub(crate) ghosts: BTreeSet<u64>,
    deleted: BTreeSet<u64>,
    numbers: BTreeSet<u64>,
    /// The members know nothing, after all have ended.
    is_fresh: bool,
    /// The manager's own definition may have what was refused.
    is_doubtful: bool,
    /// Since all have ended nobody knows which of both they have found.
    pub(crate) is_blind: bool,
    pub(crate) wrong: Vec<(&'static str, String)>,
}

pub(crate) fn id_of(name: &str) -> Option<u64> {
    name.strip_prefix("object-")?.parse().ok()
}

impl Model {
    pub(crate) fn new() -> Self {
        Self { is_fresh: true, ..Self::default() }
    }

    fn blame(&mut self, invariant: &'static str, text: String) {
        self.wrong.push((invariant, text));
    }

    /// One call, what was answered, and what the domain was asked meanwhile.
    pub(crate) fn take(&mut self, place: usize, op: &Op, heard: &Heard, did: &[Did]) {
        if *op == Op::Restart {
            self.is_fresh = true;
            self.is_blind |= self.is_doubtful;
            return;
        }
        let mut did = did;
        if self.is_fresh {
            let Some(rest) = self.remember(did) else {
                if !heard.is_transient() {
                    self.blame("answers", format!("{place} {op:?}: {heard:?}, without memory"));
                }
                return;
            };
            did = rest;
        }
        let before = self.shadow.clone();
        did.iter().for_each(|one| self.follow(place, one));
        if let Err(right) = self.judge(op, heard, did) {
            self.blame("answers", format!("{place} {op:?}: {heard:?} instead of {right}; {did:?}"));
        }
        self.unbidden(place, op, &before, did);
        self.begin_anew(op, did);
        for (id, known) in &mut self.groups {
            if let Some((members, version)) = self.shadow.get(id) {
                (known.members, known.version) = (members.clone(), *version);
                known.added.retain(|at, _| members.contains(at));
            }
        }
    }

    /// A group that had lost its members has others, by whoever makes those of its type now.
    fn begin_anew(&mut self, op: &Op, did: &[Did]) {
        if matches!(op, Op::CreateMember { .. } | Op::AddMember { .. }) {
            return;
        }
        let Some(up) = judge::up(did).cloned() else { return };
        for (id, mut known) in self.groups.clone() {
            let is_anew = known.members.is_empty() && self.shadow.contains_key(&id);
            if is_anew || self.was_cleared(id, did) {
                let (_, is_foreign) = self.candidates(&known.type_id, &known.values(), None, &up);
                known.is_local = !is_foreign;
                self.groups.insert(id, known);
            }
        }
    }

    /// Whether all of its members went, and others came.
    fn was_cleared(&self, id: u64, did: &[Did]) -> bool {
        did.iter().any(|one| match one {
            Did::Defined { group, is_new, outcome, .. } => {
                *is_new && id_of(group) == Some(id) && *outcome == Outcome::Done
            }
            _ => false,
        })
    }

    /// A manager without memory asks the domain first; what it did behind that, if it was answered.
    fn remember<'d>(&mut self, did: &'d [Did]) -> Option<&'d [Did]> {
        let (own, mut rest) = (did.get(..2)?, did.get(2..)?);
        if own.contains(&Did::Unheard) {
            return None;
        }
        let mut found = BTreeMap::new();
        loop {
            let Some((Did::Noted(page), behind)) = rest.split_first() else { return None };
            rest = behind;
            if page.is_empty() {
                break;
            }
            for (name, members, version) in page {
                found.extend(id_of(name).map(|id| (id, (members.clone(), *version))));
            }
        }
        self.is_fresh = false;
        for (id, known) in self.groups.clone() {
            match found.remove(&id) {
                Some(now) if self.doubtful.contains(&id) => drop(self.shadow.insert(id, now)),
                Some(now) if now == (known.members.clone(), known.version) => {}
                None if known.members.is_empty() => {}
                // It is to go there, and empty here.
                Some(_) if known.members.is_empty() && self.garbage.contains(&id) => {}
                now => {
                    self.blame("memory", format!("group {id} is {now:?}, and was {known:?}"));
                }
            }
        }
        for (id, now) in found {
            if self.garbage.contains(&id) || self.doubtful.contains(&id) {
                self.shadow.insert(id, now);
                if !self.deleted.contains(&id) {
                    self.ghosts.insert(id);
                }
            } else {
                self.blame("memory", format!("group {id} is there, {now:?}, and was not"));
            }
        }
        Some(rest)
    }

    /// What the domain did.
    fn follow(&mut self, place: usize, did: &Did) {
        match did {
            Did::Defined { group, is_new, members, version, outcome, .. } => {
                let Some(id) = id_of(group) else { return };
                if *is_new && !self.groups.contains_key(&id) && !self.numbers.insert(id) {
                    self.blame("numbers", format!("{place}: {id} is given once more"));
                }
                if matches!(outcome, Outcome::Done | Outcome::Hidden) {
                    self.version(place, id, members, *version);
                }
                match outcome {
                    Outcome::Done => {
                        self.shadow.insert(id, (members.clone(), *version));
                        self.doubtful.remove(&id);
                    }
                    Outcome::Unheard | Outcome::Hidden => drop(self.doubtful.insert(id)),
                    _ => {}
                }
            }
            Did::Deleted(group, outcome) => {
                let Some(id) = id_of(group) else { return };
                self.shadow.remove(&id);
                if *outcome == Outcome::Done {
                    self.garbage.remove(&id);
                    self.doubtful.remove(&id);
                    self.ghosts.remove(&id);
                } else {
                    self.garbage.insert(id);
                }
            }
            Did::Saved(Outcome::Hidden) => self.is_doubtful = true,
            Did::Saved(Outcome::Done) => self.is_doubtful = false,
            _ => {}
        }
    }

    /// Other members are another version, and a later one.
    fn version(&mut self, place: usize, id: u64, members: &[String], version: u32) {
        let mut sorted = members.to_vec();
        sorted.sort();
        let last = self.versions.insert(id, (sorted.clone(), version));
        let Some((before, last)) = last else { return };
        let is_right = if before == sorted { version >= last } else { version > last };
        if !is_right {
            let text = format!("{place}: group {id} {last} {before:?}, then {version} {sorted:?}");
            self.blame("versions", text);
        }
    }

    fn judge(&mut self, op: &Op, heard: &Heard, did: &[Did]) -> Right {
        let is_full = self.groups.values().filter(|known| known.members.is_empty()).count() > 5;
        if is_full && matches!(heard, Heard::Raised(name, _) if name == "NoResources") {
            return Ok(());
        }
        if op.group().is_some_and(|id| self.ghosts.contains(&id)) {
            return Ok(());
        }
        match op {
            Op::Create { type_id, wanted, at } => {
                let created = self.created(type_id, wanted, at.as_deref(), heard, did);
                if let Heard::Group { created: Some(id), .. } = heard {
                    self.numbers.insert(*id);
                }
                created
            }
            Op::CreateMember { group, type_id, at } => {
                self.member_created(*group, type_id, at, heard, did)
            }
            Op::AddMember { group, at, port } => self.member_added(*group, at, *port, heard, did),
            Op::RemoveMember { group, at } => self.member_removed(*group, at, heard, did),
            Op::SetPrimary { group, at } => self.primary_set(*group, at, heard, did),
            Op::Delete(id) => self.deleted(*id, heard, did),
            Op::SetDefaults(..)
            | Op::RemoveDefaults(_)
            | Op::SetOfType(..)
            | Op::RemoveOfType(..)
            | Op::Register { .. }
            | Op::Unregister { .. } => self.common_changed(op, heard, did),
            Op::Notifier(_) => judge::saved(heard, did),
            Op::SetDynamically(id, said) => self.dynamic_set(*id, said, heard, did),
            Op::Ask(id, question) => self.asked(*id, *question, heard),
            Op::Member(id, at) => self.member_asked(*id, at, heard),
            Op::GroupsAt(at) => self.groups_at(at, heard),
            Op::OfType(of) if self.is_blind => judge::is(matches!(heard, Heard::Properties(_)), of),
            Op::OfType(of) => {
                let values = self.values_of(of);
                judge::same(heard, &Heard::Properties(values))
            }
            Op::Report(_) => judge::is(
                matches!(heard, Heard::Done) || judge::is_excused(heard, did),
                "that it is taken",
            ),
            Op::Look => judge::is(
                matches!(heard, Heard::Number(_)) || judge::is_excused(heard, did),
                "what was done",
            ),
            Op::Overdue(id, at) => self.overdue(*id, at, heard, did),
            Op::Alive(port, at) => {
                let is = |known: &Known| {
                    known.added.get(at) == Some(port)
                        && known.members.contains(at)
                        && known.number(Key::Monitoring) == Some(ft::PUSH)
                };
                let is_known = self.groups.values().any(is);
                judge::is(self.is_blind || *heard == Heard::Flag(is_known), "what it is")
            }
            Op::Restart => Ok(()),
        }
    }

    fn asked(&self, id: u64, question: Question, heard: &Heard) -> Right {
        let Some(known) = self.groups.get(&id) else { return judge::no_group(heard) };
        let right = match question {
            Question::Locations => Heard::Places(known.members.clone()),
            Question::Properties if self.is_blind => return Ok(()),
            Question::Properties => Heard::Properties(known.values()),
            Question::Id => Heard::Number(id),
            Question::Reference => Heard::Group { id, version: known.version, created: None },
        };
        judge::same(heard, &right)
    }

    fn member_asked(&self, id: u64, at: &str, heard: &Heard) -> Right {
        let Some(known) = self.groups.get(&id) else { return judge::no_group(heard) };
        if !known.members.iter().any(|one| one == at) {
            return judge::raised(heard, "MemberNotFound");
        }
        match known.added.get(at) {
            Some(port) => judge::same(heard, &Heard::Object(Some((at.to_owned(), *port)))),
            None if known.is_local && heard.is_transient() => Ok(()),
            None => {
                let is_there = matches!(heard, Heard::Object(Some((host, _))) if host == at);
                judge::is(is_there, "an object there")
            }
        }
    }

    fn groups_at(&self, at: &str, heard: &Heard) -> Right {
        let Heard::Groups(said) = heard else { return Err("groups".to_owned()) };
        let here = |known: &&Known| known.members.iter().any(|one| one == at);
        let due = self.groups.iter().filter(|(_, known)| here(known));
        let due: Vec<_> = due.map(|(id, known)| (*id, known.version)).collect();
        let said: Vec<_> =
            said.iter().copied().filter(|(id, _)| !self.ghosts.contains(id)).collect();
        judge::is(said == due, &format!("{due:?}"))
    }

    pub(crate) fn values_of(&self, type_id: &str) -> Values {
        let none = Values::new();
        let of_type = self.common.types.get(type_id).unwrap_or(&none);
        judge::over(&self.common.defaults, of_type)
    }

    fn deleted(&mut self, id: u64, heard: &Heard, did: &[Did]) -> Right {
        if !self.groups.contains_key(&id) {
            return judge::raised(heard, "ObjectNotFound");
        }
        let is_refused = matches!(did.first(), Some(Did::Deleted(_, outcome))
            if matches!(outcome, Outcome::Passing | Outcome::Never | Outcome::Missing));
        if heard.is_transient() && (self.groups[&id].members.is_empty() || is_refused) {
            // It is as it was.
            let known = &self.groups[&id];
            if !known.members.is_empty() {
                self.shadow.insert(id, (known.members.clone(), known.version));
                self.garbage.remove(&id);
            }
            return Ok(());
        }
        self.groups.remove(&id);
        if *heard == Heard::Done {
            self.deleted.insert(id);
        }
        judge::is(*heard == Heard::Done || heard.is_transient(), "that it is deleted")
    }

    /// Only a newcomer that is not in is given up, and another one comes for it.
    fn overdue(&self, id: u64, at: &str, heard: &Heard, did: &[Did]) -> Right {
        judge::is(
            matches!(heard, Heard::Number(_)) || judge::is_excused(heard, did),
            "what was done",
        )?;
        let Some(known) = self.groups.get(&id).filter(|_| !self.is_blind) else { return Ok(()) };
        let Some((now, _)) = self.shadow.get(&id) else { return Ok(()) };
        let inside = did.iter().find_map(|one| match one {
            Did::Seen(name, inside) if id_of(name) == Some(id) => inside.as_ref(),
            _ => None,
        });
        let is_in = |at: &str| inside.is_some_and(|inside| inside.iter().any(|one| one == at));
        let gone: Vec<&String> = known.members.iter().filter(|one| !now.contains(one)).collect();
        let is_right = gone.iter().all(|one| *one == at && !is_in(at));
        judge::is(is_right && now.len() == known.members.len(), "nobody else taken out")
    }

    /// What is done to groups without that somebody has asked for it.
    fn unbidden(
        &mut self,
        place: usize,
        op: &Op,
        before: &BTreeMap<u64, (Vec<String>, u32)>,
        did: &[Did],
    ) {
        let asked_for = op.group();
        let up: Vec<&String> = did
            .iter()
            .find_map(|one| match one {
                Did::Nodes(up) => Some(up.iter().collect()),
                _ => None,
            })
            .unwrap_or_default();
        for (id, known) in self.groups.clone() {
            let (Some((was, _)), Some((is, _))) = (before.get(&id), self.shadow.get(&id)) else {
                continue;
            };
            if was == is || asked_for == Some(id) || self.is_blind {
                continue;
            }
            let mut why = None;
            let told = match op {
                Op::Report(told) => Some(told),
                Op::Look => None,
                _ => {
                    why = Some("nobody has asked for it");
                    None
                }
            };
            let inside = did.iter().find_map(|one| match one {
                Did::Seen(name, inside) if id_of(name) == Some(id) => inside.as_ref(),
                _ => None,
            });
            let lives = |at: &&String| {
                let of_it = told.is_some_and(|told| told.node == **at);
                let is_in = inside.is_some_and(|inside| inside.contains(at));
                let is_accused = told.is_some_and(|told| told.is_unanswered);
                up.contains(at) && !(of_it && (is_accused || !is_in))
            };
            let least = was.len().min(known.minimum().max(1));
            if !known.is_by_infrastructure() {
                why = Some("it is the application's");
            } else if is.len() < least {
                why = Some("it is below its minimum");
            } else if is.len() > was.len().max(known.minimum()) {
                why = Some("it is larger than it must be");
            } else if was.iter().filter(lives).any(|at| !is.contains(at)) {
                why = Some("who lives is taken out");
            }
            if let Some(why) = why {
                let text = format!("{place} {op:?}: group {id} was {was:?} and is {is:?}: {why}");
                self.blame("members", text);
            }
        }
    }
}
