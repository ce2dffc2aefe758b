//! What a change of each key of the domain file takes to have its effect.
//!
//! What it is not: the change. Invariant: every key that the reader knows is here, and no other.

/// How a changed key takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// By an ordered command, while the group works.
    Now,
    /// It is ordered at once, and used when a server is started the next time.
    NextStart,
    /// It is only what the group begins with: `quorba group style` and `quorba group promote`
    /// change what it has.
    Begins,
    /// As [`Self::Now`] if the group is not durable; else as [`Self::Recreate`].
    NowUnlessDurable,
    /// The group has to be deleted and created.
    Recreate,
    /// Each node reads it when it starts: one node after the other.
    RollingRestart,
    /// Nodes refuse each other until all have it alike: all are stopped, then started.
    DomainRestart,
}

impl Effect {
    /// The same for a group of which that is known.
    #[must_use]
    pub const fn of_group(self, is_durable: bool) -> Self {
        match self {
            Self::NowUnlessDurable if is_durable => Self::Recreate,
            Self::NowUnlessDurable => Self::Now,
            other => other,
        }
    }

    /// What has to be done, in a few words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::NextStart => "at the next start of a server",
            Self::Begins => "only at creation; later by quorba group style, quorba group promote",
            Self::NowUnlessDurable => "now; of a durable group only if it is deleted and created",
            Self::Recreate => "only if the group is deleted and created",
            Self::RollingRestart => "when the nodes are restarted, one after the other",
            Self::DomainRestart => "when all nodes are stopped, and then started",
        }
    }

    /// The word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::NextStart => "next-start",
            Self::Begins => "begins",
            Self::NowUnlessDurable => "now-unless-durable",
            Self::Recreate => "recreate",
            Self::RollingRestart => "rolling-restart",
            Self::DomainRestart => "domain-restart",
        }
    }
}

use Effect::{Begins, DomainRestart, NextStart, Now, NowUnlessDurable, Recreate, RollingRestart};

/// The keys of one kind of table, with their effects.
pub type KeyEffects = &'static [(&'static str, Effect)];

/// Every kind of table, with its keys.
pub const EFFECTS: [(&str, KeyEffects); 10] = [
    ("channel", &CHANNEL),
    ("domain", &DOMAIN),
    ("gateway", &[("listen", RollingRestart)]),
    ("group", &GROUP),
    ("limits", &LIMITS),
    ("node", &NODE),
    ("outside", &OUTSIDE),
    ("ring", &RING),
    ("rt_info", &RT_INFO),
    ("service", &SERVICE),
];

const DOMAIN: [(&str, Effect); 4] = [
    ("id", DomainRestart),
    ("key_file", RollingRestart),
    ("quorum", DomainRestart),
    ("tie_breaker", DomainRestart),
];

const RING: [(&str, Effect); 7] = [
    ("accelerated", DomainRestart),
    ("datagram_bytes_max", DomainRestart),
    ("encrypt", DomainRestart),
    ("engine", DomainRestart),
    ("multicast", DomainRestart),
    ("token_loss_ms", DomainRestart),
    ("token_rests", DomainRestart),
];

const NODE: [(&str, Effect); 6] = [
    ("admin", RollingRestart),
    ("bind", RollingRestart),
    ("gateway_port_offset", DomainRestart),
    ("host", DomainRestart),
    ("ring_port", DomainRestart),
    ("state_dir", RollingRestart),
];

const OUTSIDE: [(&str, Effect); 5] = [
    ("connect_ms", Now),
    ("on_doubt", Now),
    ("reference", Now),
    ("reply_bytes", Now),
    ("reply_ms", Now),
];

const LIMITS: [(&str, Effect); 15] = [
    ("buffered_bytes", RollingRestart),
    ("buffered_bytes_per_group", RollingRestart),
    ("buffered_bytes_per_peer", RollingRestart),
    ("connections", RollingRestart),
    ("connections_per_peer", RollingRestart),
    ("header_ms", RollingRestart),
    ("idle_ms", RollingRestart),
    ("log_bytes", RollingRestart),
    ("message_bytes", DomainRestart),
    ("request_ms", RollingRestart),
    ("requests_pending", RollingRestart),
    ("requests_pending_per_connection", RollingRestart),
    ("requests_per_second_per_peer", RollingRestart),
    ("state_bytes", DomainRestart),
    ("unsent_bytes_per_connection", RollingRestart),
];

const GROUP: [(&str, Effect); 53] = [
    ("abandon_ms", Now),
    ("ack", Recreate),
    ("calls", Recreate),
    ("checkpoint_ms", Now),
    ("checkpoint_requests", Now),
    ("checkpoint_updates", Recreate),
    ("clients", Now),
    ("compare_replies", Now),
    ("concurrency", Recreate),
    ("connect", Now),
    ("cwd", NextStart),
    ("depth", Now),
    ("durable", Recreate),
    ("env", NextStart),
    ("execution", Recreate),
    ("ft_group", Recreate),
    ("ft_monitored", Now),
    ("ft_version", Now),
    ("leader", Begins),
    ("listen", Recreate),
    ("members", NowUnlessDurable),
    ("note", Now),
    ("object_key", Now),
    ("on_divergence", Now),
    ("on_total_loss", Recreate),
    ("placement", Now),
    ("placement_watch_ms", Now),
    ("pull_monitorable", Now),
    ("quarantine_after", Now),
    ("quarantine_ms", Now),
    ("readonly", Now),
    ("readonly_consistency", Now),
    ("recovery", Recreate),
    ("replay_bytes", Recreate),
    ("replication", Now),
    ("replier", Recreate),
    ("reply", Recreate),
    ("reply_retention_bytes", Now),
    ("reply_retention_ms", Now),
    ("restart_backoff_ms", Now),
    ("server", NextStart),
    ("server_reply_ms", Now),
    ("service", Recreate),
    ("start_timeout_ms", Now),
    ("state_object", Recreate),
    ("state_operations", Now),
    ("stuck_ms", Now),
    ("style", Begins),
    ("suppress_duplicates", Recreate),
    ("tls", Recreate),
    ("transfer_bytes_per_second", Now),
    ("type_id", Now),
    ("unavailable_wait_ms", Now),
];

const CHANNEL: [(&str, Effect); 16] = [
    ("batch", NextStart),
    ("calls_back", NextStart),
    ("cos_source", NextStart),
    ("cos_type", NextStart),
    ("full", NextStart),
    ("give_up_ms", NextStart),
    ("may_reconnect", NextStart),
    ("pull_ms", NextStart),
    ("queue_bytes", NextStart),
    ("queue_events", NextStart),
    ("reliable", NextStart),
    ("retry_ms", NextStart),
    ("rt_info", NextStart),
    ("strategy", NextStart),
    ("takes_hop", NextStart),
    ("total_bytes", NextStart),
];

const RT_INFO: [(&str, Effect); 4] = [
    ("critical", NextStart),
    ("deadline_us", NextStart),
    ("execution_us", NextStart),
    ("priority", NextStart),
];

/// Those of which a service says something else than a group; it has the others of a group, too.
const SERVICE: [(&str, Effect); 9] = [
    ("channel", NextStart),
    ("channels_bytes", NextStart),
    ("durable", Recreate),
    ("listen", Recreate),
    ("members", NowUnlessDurable),
    ("pushes_at_once", NextStart),
    ("readonly", Now),
    ("real_time_priority", NextStart),
    ("style", Begins),
];

/// How a change of `key` in a table of that kind, such as `group`, takes effect; of a key inside of
/// another one, such as `env.PATH`, what is true of that. `None`: there is no such key.
#[must_use]
pub fn effect(kind: &str, key: &str) -> Option<Effect> {
    let key = key.split('.').next().unwrap_or(key);
    let (_, keys) = EFFECTS.iter().find(|(known, _)| *known == kind)?;
    keys.iter().find(|(known, _)| *known == key).map(|(_, effect)| *effect)
}
