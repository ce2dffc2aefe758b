//! Groups and servers outside by what others have to know of them: an answer to [`Known`] that
//! grows and shrinks.
//!
//! What it is not: the groups. Invariant: it says what reading all of its definitions anew would
//! say, and each question and change takes the logarithm of their number.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::definition::{Definition, Kind};
use crate::read::Known;

/// So many names are told to who has written one wrong.
const NAMES_MAX: usize = 1000;

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct KnownGroups {
    groups: BTreeMap<String, Facts>,
    outside: BTreeSet<String>,
    ports: BTreeMap<u16, String>,
    /// By who is called: who calls.
    callers: BTreeMap<String, BTreeSet<String>>,
    /// Who calls anybody.
    calling: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Facts {
    is_stateless: bool,
    ports: Vec<u16>,
    calls: Vec<String>,
}

impl Facts {
    fn of(definition: &Definition) -> Self {
        let keys = definition.keys();
        let port = |table: Option<&Table>| {
            let listen = table?.get("listen")?.as_integer()?;
            u16::try_from(listen).ok()
        };
        let tls = keys.get("tls").and_then(Value::as_table);
        Self {
            is_stateless: keys.get("style").and_then(Value::as_str) == Some("stateless"),
            ports: [port(Some(&keys)), port(tls)].into_iter().flatten().collect(),
            calls: definition.calls(),
        }
    }
}

impl KnownGroups {
    /// One more group, or another definition of one.
    pub fn insert(&mut self, definition: &Definition) {
        let name = &definition.name;
        self.remove(name);
        if definition.kind() == Kind::Outside {
            self.outside.insert(name.clone());
            return;
        }
        let facts = Facts::of(definition);
        for port in &facts.ports {
            self.ports.entry(*port).or_insert_with(|| name.clone());
        }
        for called in &facts.calls {
            self.callers.entry(called.clone()).or_default().insert(name.clone());
        }
        if !facts.calls.is_empty() {
            self.calling.insert(name.clone());
        }
        self.groups.insert(name.clone(), facts);
    }

    /// One less.
    pub fn remove(&mut self, name: &str) {
        self.outside.remove(name);
        let Some(facts) = self.groups.remove(name) else { return };
        self.calling.remove(name);
        for port in facts.ports {
            if self.ports.get(&port).is_some_and(|owner| owner == name) {
                self.ports.remove(&port);
            }
        }
        for called in facts.calls {
            if let Some(callers) = self.callers.get_mut(&called) {
                callers.remove(name);
                if callers.is_empty() {
                    self.callers.remove(&called);
                }
            }
        }
    }
}

impl<'a> FromIterator<&'a Definition> for KnownGroups {
    fn from_iter<T: IntoIterator<Item = &'a Definition>>(definitions: T) -> Self {
        let mut known = Self::default();
        definitions.into_iter().for_each(|definition| known.insert(definition));
        known
    }
}

impl Known for KnownGroups {
    fn is_stateless(&self, name: &str) -> Option<bool> {
        self.groups.get(name).map(|facts| facts.is_stateless)
    }

    fn is_outside(&self, name: &str) -> bool {
        self.outside.contains(name)
    }

    fn outside_count(&self) -> usize {
        self.outside.len()
    }

    fn listener(&self, port: u16) -> Option<String> {
        self.ports.get(&port).cloned()
    }

    fn caller_of(&self, name: &str) -> Option<String> {
        let mut callers = self.callers.get(name)?.iter();
        callers.find(|caller| *caller != name).cloned()
    }

    fn callers_beside(&self, name: &str) -> usize {
        self.calling.len() - usize::from(self.calling.contains(name))
    }

    fn count(&self) -> usize {
        self.groups.len()
    }

    fn names(&self) -> Vec<String> {
        self.groups.keys().chain(&self.outside).take(NAMES_MAX).cloned().collect()
    }
}

/// Whether the group, or server outside, of that name can be deleted.
///
/// # Errors
/// Why it cannot, and what helps: it is not there, or another one calls it.
pub fn check_delete(name: &str, known: &dyn Known) -> Result<(), String> {
    if known.is_stateless(name).is_none() && !known.is_outside(name) {
        return Err(format!("there is no group {name}, and no such server outside"));
    }
    match known.caller_of(name) {
        Some(caller) => Err(format!("group {caller} calls {name}: delete {caller} first")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Definition {
        Definition::parse(text).expect("a definition")
    }

    #[test]
    fn it_knows_what_is_there_and_forgets_what_is_deleted() {
        let bank = parsed("[group.bank]\nlisten = 1\ntls = { listen = 2 }\n");
        let shop = parsed("[group.shop]\ncalls = [\"bank\"]\n");
        let mirror = parsed("[group.mirror]\nstyle = \"stateless\"\nlisten = 3\n");
        let mut known: KnownGroups = [&bank, &shop, &mirror].into_iter().collect();
        assert_eq!(
            (known.is_stateless("bank"), known.is_stateless("mirror")),
            (Some(false), Some(true))
        );
        assert_eq!(known.is_stateless("mill"), None);
        let ports = [1, 2, 3, 4].map(|port| known.listener(port));
        let (one, other) = (Some("bank".to_owned()), Some("mirror".to_owned()));
        assert_eq!(ports, [one.clone(), one, other, None]);
        assert_eq!((known.callers_beside("bank"), known.callers_beside("shop")), (1, 0));
        let refused = check_delete("bank", &known).expect_err("shop calls it");
        assert_eq!(refused, "group shop calls bank: delete shop first");
        assert_eq!(
            check_delete("mill", &known),
            Err("there is no group mill, and no such server outside".to_owned())
        );
        known.insert(&parsed("[group.shop]\nlisten = 9\n"));
        assert_eq!(check_delete("bank", &known), Ok(()));
        known.remove("bank");
        assert_eq!(
            (known.count(), known.listener(1), known.listener(9)),
            (2, None, Some("shop".into()))
        );
        known.remove("bank");
        assert_eq!(known.names(), ["mirror", "shop"]);
    }
}
