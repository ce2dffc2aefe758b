//! What definitions of groups and servers outside mean, for the engine and for this node: read
//! against the domain file, of which they take nodes and limits.
//!
//! What it is not: the judgement of a new definition beside others (ports, callees), which is the
//! admin API's before it is ordered. Invariants: all nodes of a version read alike, because what
//! is taken from the file is the same on all, and what may differ makes no definition wrong; each
//! text is read once, and shared.

use crate::reference;
use crate::settings::{group_settings, outside_settings};
use quorba_config::{
    DOMAIN_OBJECT, Defined, Domain, Group, Known, Limits, Outside, read_definition,
};
use quorba_engine::replica::{Catalog, Definition, GroupId};
use quorba_engine::{GroupSettings, Settings, SettingsOf};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// See the module's text.
pub(crate) struct Reader {
    shared: Arc<Domain>,
    read: Mutex<HashMap<Arc<str>, (bytes::Bytes, Read)>>,
}

/// What a text means.
#[derive(Clone, Debug)]
pub(crate) enum Read {
    /// A group.
    Group(Arc<Group>),
    /// A server outside.
    Outside(Arc<Outside>),
}

/// Whatever a definition says of others is right: it was judged before it was ordered.
struct Judged;

impl Known for Judged {
    fn is_judged(&self) -> bool {
        true
    }

    fn is_stateless(&self, _: &str) -> Option<bool> {
        Some(false)
    }

    fn is_outside(&self, _: &str) -> bool {
        false
    }

    fn outside_count(&self) -> usize {
        0
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
    pub(crate) fn new(domain: &Domain) -> Self {
        Self { shared: Arc::new(domain.without_groups()), read: Mutex::new(HashMap::new()) }
    }

    /// The domain file.
    pub(crate) fn shared(&self) -> &Domain {
        &self.shared
    }

    /// What a definition means.
    ///
    /// # Errors
    /// Why another version, or another node's file, reads something else.
    pub(crate) fn read(&self, definition: &Definition) -> Result<Read, String> {
        let mut known = self.read.lock().expect("no holder panics");
        if let Some((text, read)) = known.get(&definition.name)
            && *text == definition.text
        {
            return Ok(read.clone());
        }
        let text = str::from_utf8(&definition.text).map_err(|error| error.to_string())?;
        let defined = read_definition(&self.shared, text, &Judged);
        let read = match defined.map_err(|report| report.to_string())? {
            Defined::Group(group) => Read::Group(Arc::new(*group)),
            Defined::Outside(server) => Read::Outside(Arc::new(server)),
        };
        let name = match &read {
            Read::Group(group) => &group.name,
            Read::Outside(server) => &server.name,
        };
        if *name != *definition.name {
            return Err(format!("it is about {name}"));
        }
        known.insert(Arc::clone(&definition.name), (definition.text.clone(), read.clone()));
        Ok(read)
    }

    /// Nothing is called so any more.
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
    ) -> Result<Settings, String> {
        let group = match self.read(definition)? {
            Read::Group(group) => group,
            Read::Outside(server) => return Ok(Settings::Outside(outside_settings(&server))),
        };
        let calls = group.calls.iter().map(|name| {
            let own = || (name == DOMAIN_OBJECT).then(|| Catalog::id_in_file(name));
            let id = id_of(name).or_else(own);
            id.ok_or_else(|| format!("it calls {name}, and nothing is called so"))
        });
        let calls = calls.collect::<Result<Vec<_>, String>>()?;
        // One that is created has no id yet, and nobody can ask for its reference.
        let id = id_of(&group.name);
        let references = id.and_then(|id| reference::current(&self.shared, &group, id));
        let settings = GroupSettings { references, ..group_settings(self.limits(), &group, calls) };
        Ok(Settings::Group(Box::new(settings)))
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
        Reader::new(&domain)
    }

    #[test]
    fn what_a_group_calls_is_found_by_its_name_whatever_it_is() {
        let reader = reader("");
        let definition = |name: &str, calls: &str| Definition {
            name: name.into(),
            text: format!(
                "[group.{name}]\nlisten = 5000\nmembers = [\"n1\"]\nstate_object = \"s\"\n\
                 server = [\"b\", \"{{port}}\", \"{{call.{calls}}}\"]\ncalls = [\"{calls}\"]\n"
            )
            .into_bytes()
            .into(),
        };
        let shop = definition("shop", "bank");
        assert!(reader.settings_of(&shop, &|_| None).is_err(), "nothing is called bank");
        let of_bank = |name: &str| (name == "bank").then_some(GroupId(7));
        let Ok(Settings::Group(settings)) = reader.settings_of(&shop, &of_bank) else {
            panic!("it is a group");
        };
        assert_eq!(settings.replica.calls, [GroupId(7)]);
        let own = reader.settings_of(&definition("shop", DOMAIN_OBJECT), &|_| None);
        assert!(own.is_ok(), "every domain has its own object");
        let text = "[outside.bank]\nreference = \"corbaloc::10.0.0.9:1/b\"\nreply_ms = 70\n";
        let bank = Definition { name: "bank".into(), text: text.as_bytes().into() };
        let Ok(Settings::Outside(bank)) = reader.settings_of(&bank, &|_| None) else {
            panic!("it is a server outside");
        };
        assert_eq!(bank.reply.as_millis(), 70);
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
                let read = reader(file).read(&group(listen));
                assert!(read.is_ok(), "{listen:?}, {file:?}: {read:?}");
            }
        }
    }
}
