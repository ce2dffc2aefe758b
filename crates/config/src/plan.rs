//! What it takes to bring a running domain to what a file says.
//!
//! What it is not: the doing. Invariants: applied in its order, a group is created after the groups
//! and servers outside that it calls, and each is deleted after the groups that call it; what
//! differs is named, with its effect.

use std::collections::{BTreeMap, BTreeSet};

use crate::definition::Definition;
use crate::differences::changed_keys;
use crate::domain::Domain;
use crate::effects::{Effect, effect};

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Groups and servers outside that the file has and the domain has not.
    pub creates: Vec<Definition>,
    /// Those of which the file says something else.
    pub changes: Vec<GroupChange>,
    /// Those that the file does not have.
    pub deletes: Vec<Definition>,
    /// What else must be equal on all nodes and differs, such as `ring.encrypt`; no command
    /// changes it.
    pub restarts: Vec<KeyChange>,
}

/// One group, or server outside, of which the file says something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupChange {
    /// What the file says.
    pub definition: Definition,
    /// In what it differs.
    pub keys: Vec<KeyChange>,
}

/// One key, as it is and as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// Its name; that of a group stands without the group.
    pub key: String,
    /// What is there, as TOML; `None`: the key is not there.
    pub old: Option<String>,
    /// What is to be there.
    pub new: Option<String>,
    /// How that takes effect.
    pub effect: Effect,
}

impl Plan {
    /// Whether the file says what runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl GroupChange {
    /// Between two definitions of one group.
    #[must_use]
    pub fn between(old: &Definition, new: &Definition) -> Self {
        let (is_other, table) = (old.kind() != new.kind(), new.kind().table());
        let (old, entries) = (by_key(old), by_key(new));
        let keys: BTreeSet<&String> = old.keys().chain(entries.keys()).collect();
        let is_durable = old.get("durable").is_some_and(|value| value == "true");
        let differ = keys.into_iter().filter(|key| old.get(*key) != entries.get(*key));
        let mut keys: Vec<KeyChange> = differ
            .map(|key| KeyChange {
                key: key.clone(),
                old: old.get(key).cloned(),
                new: entries.get(key).cloned(),
                effect: match effect(table, key).or_else(|| effect("service", key)) {
                    Some(effect) if !is_other => effect.of_group(is_durable),
                    _ => Effect::Recreate,
                },
            })
            .collect();
        // Servers of nodes become those of somebody else, or the other way round.
        let kind = |entries: &BTreeMap<String, String>| {
            ["server", "service"].map(|key| entries.contains_key(key))
        };
        if kind(&old) != kind(&entries) {
            let is_backend = |key: &str| key == "server" || key.starts_with("connect");
            for key in keys.iter_mut().filter(|change| is_backend(&change.key)) {
                key.effect = Effect::Recreate;
            }
        }
        Self { definition: new.clone(), keys }
    }

    /// Whether the running group can be changed so; otherwise it must be deleted and created.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.keys.iter().all(|change| change.effect < Effect::Recreate)
    }
}

fn by_key(definition: &Definition) -> BTreeMap<String, String> {
    definition.entries().into_iter().collect()
}

/// What brings a domain with the groups `running`, whose nodes compare `running_shared`
/// ([`Domain::canonical`]), to what `file` says.
#[must_use]
pub fn plan(running: &[Definition], file: &Domain, running_shared: &str) -> Plan {
    let there: BTreeMap<&str, &Definition> =
        running.iter().map(|one| (one.name.as_str(), one)).collect();
    let wanted: BTreeSet<&str> = file.definitions().iter().map(|one| one.name.as_str()).collect();
    let creates: Vec<&Definition> =
        file.definitions().iter().filter(|one| !there.contains_key(one.name.as_str())).collect();
    // Groups that the replication manager has made stand in no file.
    let deletes: Vec<&Definition> = running
        .iter()
        .filter(|one| !wanted.contains(one.name.as_str()) && !one.is_of_manager())
        .collect();
    let changes = file.definitions().iter().filter_map(|new| {
        let old = there.get(new.name.as_str())?;
        // What a service has written into its definition stays there.
        let new = new.with_note_of(old);
        (old.text != new.text).then(|| GroupChange::between(old, &new))
    });
    Plan {
        creates: called_first(&creates).into_iter().cloned().collect(),
        changes: changes.collect(),
        deletes: called_first(&deletes).into_iter().rev().cloned().collect(),
        restarts: changed_keys(running_shared, &file.canonical()).into_iter().map(shared).collect(),
    }
}

fn shared((key, old, new): (String, Option<String>, Option<String>)) -> KeyChange {
    let kind = key.split('.').next().unwrap_or_default();
    let last = key.rsplit('.').next().unwrap_or_default();
    let effect = effect(kind, last).unwrap_or(Effect::DomainRestart);
    KeyChange { key, old, new, effect }
}

/// In an order in which each stands behind those of them that it calls, but for cycles.
fn called_first<'a>(all: &[&'a Definition]) -> Vec<&'a Definition> {
    fn visit<'a>(
        one: &'a Definition,
        by_name: &BTreeMap<&str, &'a Definition>,
        (seen, ordered): (&mut BTreeSet<&'a str>, &mut Vec<&'a Definition>),
    ) {
        if !seen.insert(one.name.as_str()) {
            return;
        }
        for called in one.calls() {
            if let Some(called) = by_name.get(called.as_str()) {
                visit(called, by_name, (seen, ordered));
            }
        }
        ordered.push(one);
    }
    let by_name: BTreeMap<&str, &Definition> =
        all.iter().map(|one| (one.name.as_str(), *one)).collect();
    let (mut seen, mut ordered) = (BTreeSet::new(), Vec::new());
    for one in all {
        visit(one, &by_name, (&mut seen, &mut ordered));
    }
    ordered
}
