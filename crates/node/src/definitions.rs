//! What definitions of groups mean, for the engine and for this node: read against the domain file,
//! of which they take nodes, limits and servers outside.
//!
//! What it is not: the judgement of a new definition beside others (ports, callees), which is the
//! admin API's before it is ordered. Invariants: all nodes of a version read alike, because what
//! is taken from the file is the same on all, and what may differ makes no definition wrong; each
//! text is read once, and shared.

use crate::reference;
use crate::settings::group_settings;
use quorba_config::{Domain, Group, Known, Limits, read_group};
use quorba_engine::replica::{Catalog, Definition, GroupId, GroupMap};
use quorba_engine::{GroupSettings, SettingsOf};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// See the module's text.
pub(crate) struct Reader {
    shared: Domain,
    outside: HashMap<String, GroupId>,
    read: Mutex<HashMap<Arc<str>, Read>>,
}

/// A text, and the group that it is.
type Read = (bytes::Bytes, Arc<Group>);

/// Whatever a definition says of others is right: it was judged before it was ordered.
struct Judged;

impl Known for Judged {
    fn is_judged(&self) -> bool {
        true
    }

    fn is_stateless(&self, _: &str) -> Option<bool> {
        Some(false)
    }

    fn listener(&self, _: u16) -> Option<String> {
        None
    }

    fn caller_of(&self, _: &str) -> Option<String> {
        None
    }

    fn callers_beside(&self, _: &str) -> usize {
        0
    }

    fn count(&self) -> usize {
        0
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Reader {
    /// `shared`: the domain file, of which the groups do not matter.
    pub(crate) fn new(domain: &Domain, outside: &GroupMap<Arc<quorba_config::Outside>>) -> Self {
        let shared = domain.without_groups();
        let outside = outside.iter().map(|(id, server)| (server.name.clone(), id)).collect();
        Self { shared, outside, read: Mutex::new(HashMap::new()) }
    }

    /// The domain file.
    pub(crate) fn shared(&self) -> &Domain {
        &self.shared
    }

    /// The group that a definition is.
    ///
    /// # Errors
    /// Why another version, or another node's file, reads something else.
    pub(crate) fn group(&self, definition: &Definition) -> Result<Arc<Group>, String> {
        let mut read = self.read.lock().expect("no holder panics");
        if let Some((text, group)) = read.get(&definition.name)
            && *text == definition.text
        {
            return Ok(Arc::clone(group));
        }
        let text = str::from_utf8(&definition.text).map_err(|error| error.to_string())?;
        let group = read_group(&self.shared, text, &Judged).map_err(|report| report.to_string())?;
        if group.name != *definition.name {
            return Err(format!("it is about group {}", group.name));
        }
        let group = Arc::new(group);
        read.insert(Arc::clone(&definition.name), (definition.text.clone(), Arc::clone(&group)));
        Ok(group)
    }

    /// There is no such group any more.
    pub(crate) fn forget(&self, name: &str) {
        self.read.lock().expect("no holder panics").remove(name);
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }
}

impl SettingsOf for Reader {
    fn settings_of(
        &self,
        definition: &Definition,
        id_of: &dyn Fn(&str) -> Option<GroupId>,
    ) -> Result<GroupSettings, String> {
        let group = self.group(definition)?;
        let callees = group.calls.iter().map(|name| (name, id_of(name)));
        let outside = group.outside.iter().map(|name| (name, self.outside.get(name).copied()));
        let calls = callees.chain(outside).map(|(name, id)| {
            id.ok_or_else(|| format!("it calls {name}, and nothing is called so"))
        });
        let calls = calls.collect::<Result<Vec<_>, String>>()?;
        let reference = reference::current(&self.shared, &group);
        Ok(GroupSettings { reference, ..group_settings(self.limits(), &group, calls) })
    }
}

/// The catalog that the domain file has.
pub(crate) fn of_file(domain: &Domain) -> Catalog {
    let definitions = domain.definitions().iter().map(|definition| {
        let name: Arc<str> = definition.name.as_str().into();
        let text = definition.text.clone().into_bytes().into();
        (Catalog::id_in_file(&name), Definition { name, text })
    });
    Catalog::of_file(definitions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_config::{DomainKey, check_text};
    use std::path::Path;

    fn reader(more: &str) -> Reader {
        let text = format!(
            "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"127.0.0.1\"\n{more}"
        );
        let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
        let read = check_text(Path::new("quorba.toml"), &text, key);
        let domain = read.domain.unwrap_or_else(|| panic!("{}", read.report));
        Reader::new(&domain, crate::groups::Groups::none(&domain).outside())
    }

    #[test]
    fn a_group_may_call_a_server_outside_and_none_has_its_name() {
        let reader = reader("[outside.bank]\nreference = \"corbaloc::10.0.0.9:1/b\"\n");
        let definition = |name: &str, calls: &str| Definition {
            name: name.into(),
            text: format!(
                "[group.{name}]\nlisten = 5000\nmembers = [\"n1\"]\nstate_object = \"s\"\n\
                 server = [\"b\", \"{{port}}\", \"{{call.bank}}\"]\ncalls = [\"{calls}\"]\n"
            )
            .into_bytes()
            .into(),
        };
        let shop = reader.group(&definition("shop", "bank")).expect("it is right");
        assert_eq!((shop.outside.len(), shop.calls.len()), (1, 0));
        let settings = reader.settings_of(&definition("shop", "bank"), &|_| None);
        assert!(settings.is_ok());
        assert!(reader.group(&definition("bank", "shop")).is_err());
    }

    /// One node that finds wrong what others have carried out would have other groups than they.
    #[test]
    fn what_files_may_say_in_different_ways_makes_no_definition_wrong() {
        let group = |listen: &str| Definition {
            name: "bank".into(),
            text: format!(
                "[group.bank]\nmembers = [\"n1\"]\nserver = [\"b\", \"{{port}}\"]\n{listen}"
            )
            .into_bytes()
            .into(),
        };
        for listen in ["", "listen = 5000\n"] {
            for file in [
                "",
                "[gateway]\nlisten = 5000\n",
                "admin = \"127.0.0.1:5000\"\n",
                "ring_port = 5001\n",
            ] {
                let read = reader(file).group(&group(listen));
                assert!(read.is_ok(), "{listen:?}, {file:?}: {read:?}");
            }
        }
    }
}
