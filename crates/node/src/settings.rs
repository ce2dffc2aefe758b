//! From the domain file's values to the engine's.
//!
//! Invariant: what must be equal on all nodes is taken from the domain file only.

use crate::boot::BootFile;
use crate::definitions::Reader;
use crate::descriptors::TransientConnections;
use crate::groups::Groups;
use crate::log::Boot;
use bytes::Bytes;
use quorba_base::{Instant, NodeId};
use quorba_config::{Backend, Domain, Engine, Group, Limits, Outside, Service};
use quorba_engine::order::{Boot as OrderBoot, DomainKey};
use quorba_engine::replica::{
    Catalog, ENVELOPE_BYTES_MAX, GroupConfig, GroupId, LeaderRule, OutsideConfig, Quorum, ReadRule,
    TransferRule, WaitRule,
};
use quorba_engine::{
    Access, BootState, ClientRule, DomainSettings, GatewayLimits, GroupSettings, MESSAGE_BYTES_MAX,
    Node, NodeConfig, OutsideSettings, SettingsOf,
};
use std::sync::Arc;
use std::time::Duration;

/// What Corosync carries in one piece.
const OUTSIDE_PAYLOAD_BYTES_MAX: usize = 1_000_000;

// What the domain file lets in can be ordered, with all that it may be wrapped in.
const _: () = assert!(
    quorba_config::MESSAGE_BYTES_MAX as usize == MESSAGE_BYTES_MAX
        && quorba_config::MESSAGE_BYTES_COROSYNC_MAX as usize + ENVELOPE_BYTES_MAX
            <= OUTSIDE_PAYLOAD_BYTES_MAX
);

/// "Never" for a connection's idle time.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The engine, with the order that the domain file asks for; `now` is the driver's origin of time.
pub(crate) fn engine(
    (reader, catalog): (&Arc<Reader>, Catalog),
    me: NodeId,
    boot: &BootFile,
    found: Option<Boot>,
    passing: TransientConnections,
    now: Instant,
) -> Node {
    let domain = reader.shared();
    let mut config = node_config((reader, catalog), me, boot, now);
    config.limits.turned_away = passing.turned_away;
    if let Some(found) = found {
        (config.recovered, config.in_doubt) = (found.recovered, found.in_doubt);
    }
    match domain.ring.engine {
        Engine::Totem => Node::new(config, now),
        Engine::Corosync => Node::with_outside_order(config, OUTSIDE_PAYLOAD_BYTES_MAX, now),
    }
}

/// The engine's configuration; `now` is the driver's origin of time.
fn node_config(
    (reader, catalog): (&Arc<Reader>, Catalog),
    me: NodeId,
    boot: &BootFile,
    now: Instant,
) -> NodeConfig {
    debug_assert_eq!(now, Instant::ZERO, "the wall clock is taken at the origin");
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).expect("the kernel has randomness");
    let domain = reader.shared();
    // Those of the catalog the engine learns from there.
    let own = Groups::none(domain);
    let servers = own.outside().iter();
    let found = BootState {
        me,
        boot: OrderBoot { incarnation: boot.incarnation(), salt, ring_seq_min: boot.ring_seq() },
        record: boot.record(),
        catalog,
        recovered: None,
        in_doubt: false,
        wall_clock_origin: quorba_orb::time_t(),
    };
    let domain = DomainSettings {
        id: domain.id.clone().into(),
        nodes: domain.node_set(),
        key: DomainKey::new(*domain.keys[0].as_bytes()),
        digest: domain.digest(),
        datagram_bytes_max: usize::from(domain.ring.datagram_bytes_max),
        encrypt: domain.ring.encrypt,
        accelerated: domain.ring.accelerated,
        token_rests: domain.ring.token_rests,
        token_loss: domain.ring.token_loss,
        quorum: quorum(domain),
        outside: servers.map(|(id, server)| (id, outside_settings(server))).collect(),
        gateways: domain.gateways_digest(),
        limits: limits(domain),
    };
    NodeConfig::new(domain, found, Arc::clone(reader) as Arc<dyn SettingsOf>)
}

fn quorum(domain: &Domain) -> Quorum {
    Quorum { rule: domain.quorum, tie_breaker: domain.tie_breaker }
}

/// The domain keys as the ring wants them.
pub(crate) fn domain_keys(keys: &[quorba_config::DomainKey]) -> Vec<DomainKey> {
    keys.iter().map(|key| DomainKey::new(*key.as_bytes())).collect()
}

fn read_rule(group: &Group) -> ReadRule {
    ReadRule {
        operations: group.readonly.iter().map(|name| name.clone().into()).collect(),
        consistency: group.readonly_consistency,
        of_leader: group.service.and_then(leader_rule).map(Box::new),
        aside: !quorba_config::Without::of(&group.backend).own_way,
    }
}

fn leader_rule(service: quorba_config::Service) -> Option<LeaderRule> {
    let name = |name: &'static str| bytes::Bytes::from_static(name.as_bytes());
    let waits = service.waiting().map(|waiting| WaitRule {
        keys: waiting.keys.iter().map(|start| name(start)).collect(),
        operation: name(waiting.operation),
        question: name(waiting.question),
    });
    Some(LeaderRule { keys: name(service.beside_the_order()?), waits })
}

/// What the engine is to know of a group, whose servers call these.
pub(crate) fn group_settings(limits: &Limits, group: &Group, calls: Vec<GroupId>) -> GroupSettings {
    GroupSettings {
        replica: GroupConfig {
            calls,
            is_called: false,
            members: group.members,
            state_object: group.state_object.clone().map(Into::into),
            object_key: group.object_key.clone().map(Into::into),
            member_keys: member_keys(group),
            foreign: matches!(group.backend, Backend::Connect(_)),
            ack: group.ack,
            reply: group.reply,
            replier: group.replier,
            style: group.style,
            leader: group.leader,
            comparison: group.comparison,
            checkpoint: group.checkpoint,
            reads: read_rule(group),
            concurrency: group.concurrency,
            durable: group.durable,
            logged: false,
            on_total_loss: group.on_total_loss,
            open_after: group.start_timeout,
            server_reply: group.server_reply,
            abandon: group.abandon,
            staggered: group.staggered,
            replication: group.replication,
            retention: group.reply_retention,
            retention_bytes_max: group.reply_retention_bytes,
            replay_bytes_max: group.replay_bytes_max,
            by_application: group.by_application,
            reply_bytes_max: MESSAGE_BYTES_MAX,
            state_bytes_max: limits.state_bytes as usize,
            transfer: TransferRule {
                bytes_per_second: group.transfer_rate,
                ..TransferRule::default()
            },
        },
        depth: group.depth,
        unavailable_wait: group.unavailable_wait,
        access: access(group),
        references: None,
        initial_keys: initial_keys(group),
    }
}

/// By what clients of a service begin. Whose connections are to be sealed is not called by those of
/// another port.
fn initial_keys(group: &Group) -> Vec<bytes::Bytes> {
    let service = group.service.filter(|_| group.tls.is_none());
    let keys = service.map_or(&[][..], quorba_config::Service::initial_keys);
    keys.iter().map(|key| bytes::Bytes::from_static(key.as_bytes())).collect()
}

/// The keys of members that are given by references, and have another one than clients.
fn member_keys(group: &Group) -> Vec<(NodeId, bytes::Bytes)> {
    let Backend::Connect(members) = &group.backend else { return Vec::new() };
    let own = |(node, member): &(NodeId, quorba_config::Member)| {
        let key = member.object_key.clone().filter(|key| Some(key) != group.object_key.as_ref())?;
        Some((*node, key.into()))
    };
    members.iter().filter_map(own).collect()
}

fn access(group: &Group) -> Access {
    let texts = |texts: &[String]| texts.iter().map(|text| text.clone().into()).collect();
    let rule = |rule: &quorba_config::ClientRule| ClientRule {
        networks: rule.networks.clone(),
        names: texts(&rule.certificates),
        operations: rule.operations.as_deref().map(texts),
    };
    let clients = group.clients.as_ref().map(|clients| clients.iter().map(rule).collect());
    let own_keys = group.service.map(Service::own_keys).unwrap_or_default();
    let own_keys = own_keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect();
    Access { clients, state_operations: texts(&group.state_operations), own_keys }
}

/// What the engine has to know of a server outside.
pub(crate) fn outside_settings(server: &Outside) -> OutsideSettings {
    OutsideSettings {
        replica: OutsideConfig { on_doubt: server.on_doubt, reply_bytes_max: server.reply_bytes },
        connect: server.connect,
        reply: server.reply,
    }
}

fn limits(domain: &Domain) -> GatewayLimits {
    let limits = &domain.limits;
    let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
    GatewayLimits {
        connections: limits.connections as usize,
        connections_per_peer: limits.connections_per_peer as usize,
        message_bytes: limits.message_bytes as usize,
        buffered_bytes: bytes(limits.buffered_bytes),
        buffered_bytes_per_peer: bytes(limits.buffered_bytes_per_peer),
        buffered_bytes_per_group: bytes(limits.buffered_bytes_per_group),
        unsent_bytes: limits.unsent_bytes_per_connection as usize,
        requests_per_second_per_peer: limits.requests_per_second_per_peer,
        idle: limits.idle.unwrap_or(NEVER),
        header: limits.header,
        request: limits.request,
        pending_per_connection: limits.requests_pending_per_connection as usize,
        pending: limits.requests_pending as usize,
        ..GatewayLimits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_config::check_text;
    use std::path::Path;

    /// One domain; `limits` and `group` are more lines of these tables.
    fn domain(limits: &str, group: &str) -> Domain {
        let text = format!(
            "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"127.0.0.1\"\n\
             [limits]\n{limits}\n[group.bank]\nlisten = 5000\nmembers = [\"n1\"]\n\
             server = [\"b\", \"{{port}}\"]\nstate_object = \"s\"\n{group}\n"
        );
        let key = |_: &Path| Ok(vec![quorba_config::DomainKey::from_bytes([7; 32])]);
        let read = check_text(Path::new("quorba.toml"), &text, key);
        read.domain.unwrap_or_else(|| panic!("{}", read.report))
    }

    /// Each has a value that no other has.
    /// What the plan of `quorba config apply` says of a key is what the nodes do.
    #[test]
    fn keys_that_a_living_group_keeps_are_told_to_need_another_group() {
        for key in GroupConfig::FIXED.iter().filter(|key| **key != "connect") {
            let effect = quorba_config::effect("group", key).expect("a key of the file");
            assert_eq!(effect.of_group(true), quorba_config::Effect::Recreate, "{key}");
        }
    }

    #[test]
    fn each_limit_of_the_file_is_that_limit_of_the_gateway() {
        let found = limits(&domain(
            "connections = 901\nconnections_per_peer = 77\nmessage_bytes = 1000003\n\
             buffered_bytes = 90000003\nbuffered_bytes_per_peer = 50000002\n\
             buffered_bytes_per_group = 60000001\nunsent_bytes_per_connection = 5000007\n\
             requests_per_second_per_peer = 333\nidle_ms = 71000\nheader_ms = 7000\n\
             request_ms = 17000\nrequests_pending_per_connection = 19\nrequests_pending = 1900",
            "",
        ));
        let expected = GatewayLimits {
            connections: 901,
            connections_per_peer: 77,
            message_bytes: 1_000_003,
            buffered_bytes: 90_000_003,
            buffered_bytes_per_peer: 50_000_002,
            buffered_bytes_per_group: 60_000_001,
            unsent_bytes: 5_000_007,
            requests_per_second_per_peer: 333,
            idle: Duration::from_secs(71),
            header: Duration::from_secs(7),
            request: Duration::from_secs(17),
            pending_per_connection: 19,
            pending: 1900,
            ..GatewayLimits::default()
        };
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }

    #[test]
    fn each_time_and_size_of_a_group_is_that_one_of_the_engine() {
        let domain = domain(
            "",
            "reply_retention_ms = 71001\nreply_retention_bytes = 7000001\nserver_reply_ms = 9002\n\
             start_timeout_ms = 11003\nunavailable_wait_ms = 1304",
        );
        let found = group_settings(&domain.limits, &domain.groups[0], Vec::new());
        let ms = Duration::from_millis;
        let replica = &found.replica;
        assert_eq!(replica.retention, ms(71_001));
        assert_eq!(replica.retention_bytes_max, domain.groups[0].reply_retention_bytes);
        assert_eq!(
            format!("{:?}", replica.server_reply),
            format!("{:?}", domain.groups[0].server_reply)
        );
        assert_eq!(replica.open_after, ms(11_003));
        assert_eq!(found.unavailable_wait, ms(1_304));
        assert_eq!(replica.members, domain.groups[0].members);
        assert_eq!(replica.state_object.as_deref(), Some(&b"s"[..]));
        assert!(!replica.durable && !replica.foreign && !replica.is_called);
    }

    #[test]
    fn a_state_moves_for_nobody_and_lists_of_clients_count_only_if_the_file_says_so() {
        let closed = access(&domain("", "").groups[0]);
        assert_eq!(closed, Access::default());
        assert!(closed.state_operations.is_empty() && closed.clients.is_none());
        let open = access(&domain("", "state_operations = [\"get_update\"]").groups[0]);
        assert_eq!(open.state_operations, ["get_update"]);
        let none = access(&domain("", "clients = []").groups[0]);
        assert_eq!(none.clients, Some(Vec::new()), "nobody may call");
        let clients = "clients = [{ networks = [\"10.1.0.0/16\"], operations = [\"balance\"] }]";
        let some = access(&domain("", clients).groups[0]).clients.expect("rules");
        assert_eq!(some.len(), 1);
        assert_eq!(some[0].networks[0].prefix_bits, 16);
        assert_eq!(some[0].operations.as_deref(), Some(&["balance".into()][..]));
        assert!(some[0].names.is_empty());
    }
}
