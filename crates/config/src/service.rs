//! The services: servers that Quorba brings itself, and what a group of one is like where the
//! domain file says nothing else.
//!
//! What it is not: the servers. The command line has them (`quorba serve NAME`); a node starts
//! them as it starts any other server, from its own program.
//!
//! Invariants: a service is a group like any other: its definition says every key, so that nodes
//! of several versions read it alike; a name is given once.

use crate::template::Template;
use quorba_base::channel::{
    ORDERED_PREFIX, QUESTION_OPERATION, UNORDERED_OPERATIONS, UNORDERED_PREFIX, WAITING_OPERATION,
};

/// A service that a domain can have: `[service.NAME]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The naming service: CosNaming.
    Naming,
    /// The replication manager of FT-CORBA.
    ReplicationManager,
    /// The fault notifier of FT-CORBA.
    FaultNotifier,
    /// Event channels: CosEvent and TAO's.
    Events,
}

/// Calls of a service's objects that gateways hold until there is something to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What the keys of these objects begin with.
    pub keys: &'static [&'static str],
    /// The operation.
    pub operation: &'static str,
    /// The operation that asks whether that one would be answered.
    pub question: &'static str,
}

/// What is to be said of a service, once.
struct Facts {
    name: &'static str,
    /// The keys of its group, as TOML.
    keys: &'static str,
    /// The keys of the objects by which clients begin.
    initial: &'static [&'static str],
    /// The keys of the objects that only its own processes call.
    own: &'static [&'static str],
    /// The program's arguments behind `serve NAME`.
    arguments: &'static [&'static str],
}

const NAMING: Facts = Facts {
    name: "naming",
    keys: r#"
        durable = true
        listen = 2809
        object_key = "NameService"
        readonly = ["resolve", "resolve_str", "to_name", "to_string", "to_url"]
        state_object = "NameService/state"
        style = "active"
        type_id = "IDL:omg.org/CosNaming/NamingContextExt:1.0"
    "#,
    initial: &["NameService"],
    own: &[],
    arguments: &["--listen", "127.0.0.1:{port}", "--publish", "{gateways}", "--time", "{time}"],
};

/// It is not durable: what it knows stands in definitions, which every node has on its disk.
const REPLICATION_MANAGER: Facts = Facts {
    name: "replication-manager",
    keys: r#"
        calls = ["-domain"]
        listen = 2810
        object_key = "ReplicationManager"
        on_total_loss = "fresh"
        state_object = "ReplicationManager/state"
        style = "active"
        type_id = "IDL:omg.org/FT/ReplicationManager:1.0"
    "#,
    initial: &[
        "ReplicationManager",
        "TAO/ReplicationManager",
        "TAO/FactoryRegistry",
        "PushMonitor",
    ],
    own: &["ReplicationManager/watcher"],
    arguments: &[
        "--listen",
        "127.0.0.1:{port}",
        "--publish",
        "{gateways}",
        "--domain",
        "corbaloc:iiop:1.2@{call.-domain}/QuorbaDomain",
        "--news",
        "{news}",
        "--leaders",
        "{leaders}",
        "--gateway",
        "{host}:{listen}",
        "--group",
        "{group}",
        "--node",
        "{node}",
    ],
};

const FAULT_NOTIFIER: Facts = Facts {
    name: "fault-notifier",
    keys: r#"
        durable = true
        listen = 2811
        object_key = "FaultNotifier"
        state_object = "FaultNotifier/state"
        style = "active"
        type_id = "IDL:omg.org/FT/FaultNotifier:1.0"
    "#,
    initial: &["FaultNotifier", "TAO/FaultNotifier"],
    own: &[],
    arguments: &[
        "--listen",
        "127.0.0.1:{port}",
        "--publish",
        "{gateways}",
        "--news",
        "{news}",
        "--leaders",
        "{leaders}",
        "--gateway",
        "{host}:{listen}",
        "--group",
        "{group}",
        "--node",
        "{node}",
    ],
};

/// One member leads and dispatches. Replies of the others can differ where events are not
/// replicated, so they are not compared.
const EVENTS: Facts = Facts {
    name: "events",
    keys: r#"
        compare_replies = 0
        durable = true
        listen = 2812
        object_key = "EventService"
        readonly_consistency = "sequential"
        state_object = "EventService/state"
        style = "semi-active"
        type_id = "IDL:quorba.org/QuorbaEvents/Channels:1.0"
    "#,
    initial: &["EventService", "Events"],
    own: &["EventService/decisions"],
    arguments: &[
        "--listen",
        "127.0.0.1:{port}",
        "--publish",
        "{gateways}",
        "--time",
        "{time}",
        "--leaders",
        "{leaders}",
        "--gateway",
        "{host}:{listen}",
        "--group",
        "{group}",
        "--node",
        "{node}",
    ],
};

impl Service {
    /// All of them, by the word of the domain file.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        (NAMING.name, Self::Naming),
        (REPLICATION_MANAGER.name, Self::ReplicationManager),
        (FAULT_NOTIFIER.name, Self::FaultNotifier),
        (EVENTS.name, Self::Events),
    ];

    const fn facts(self) -> &'static Facts {
        match self {
            Self::Naming => &NAMING,
            Self::ReplicationManager => &REPLICATION_MANAGER,
            Self::FaultNotifier => &FAULT_NOTIFIER,
            Self::Events => &EVENTS,
        }
    }

    /// Its word, which is also the name of its group.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The service of that name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, service)| *service)
    }

    /// What the keys of objects begin with whose `readonly` operations the leader alone executes,
    /// because what they change is not replicated.
    #[must_use]
    pub const fn beside_the_order(self) -> Option<&'static str> {
        match self {
            Self::Events => Some(UNORDERED_PREFIX),
            Self::Naming | Self::ReplicationManager | Self::FaultNotifier => None,
        }
    }

    /// Those operations, where the file does not say others.
    pub(crate) const fn operations_beside_the_order(self) -> &'static [&'static str] {
        match self {
            Self::Events => &UNORDERED_OPERATIONS,
            Self::Naming | Self::ReplicationManager | Self::FaultNotifier => &[],
        }
    }

    /// Which calls gateways hold until there is something to answer.
    #[must_use]
    pub const fn waiting(self) -> Option<Waiting> {
        match self {
            Self::Events => Some(Waiting {
                keys: &[UNORDERED_PREFIX, ORDERED_PREFIX],
                operation: WAITING_OPERATION,
                question: QUESTION_OPERATION,
            }),
            Self::Naming | Self::ReplicationManager | Self::FaultNotifier => None,
        }
    }

    /// The keys of the objects by which its clients begin: they are found, with what is below them,
    /// at the ports of all services.
    #[must_use]
    pub const fn initial_keys(self) -> &'static [&'static str] {
        self.facts().initial
    }

    /// The keys of the objects that only its own processes call, at a port of their node that
    /// nobody else is told.
    #[must_use]
    pub const fn own_keys(self) -> &'static [&'static str] {
        self.facts().own
    }

    /// The keys of its group where the file does not say them, as TOML. `members` is not among
    /// them: all nodes.
    pub(crate) const fn defaults(self) -> &'static str {
        self.facts().keys
    }

    /// The command of its server.
    pub(crate) fn command(self) -> Vec<Template> {
        let begin = ["{quorba}", "serve", self.as_str()];
        let words = begin.iter().chain(self.facts().arguments);
        words.filter_map(|word| Template::parse(word).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_has_its_name_and_a_command_that_is_told_where_to_listen() {
        for (word, service) in Service::WORDS {
            assert_eq!((service.as_str(), Service::from_word(word)), (*word, Some(*service)));
            let command: Vec<String> = service.command().iter().map(ToString::to_string).collect();
            assert_eq!(command.len(), 3 + service.facts().arguments.len());
            assert!(command.iter().any(|word| word.contains("{port}")), "{command:?}");
            let keys: toml::Table = service.defaults().parse().expect("keys as TOML");
            assert!(keys.contains_key("listen") && keys.contains_key("object_key"));
        }
    }
}
