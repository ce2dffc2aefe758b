//! A number that is equal on two hosts exactly if their domain files agree where they must.
//!
//! What it is not: a protection. Who can forge a handshake holds the domain key; the digest finds
//! the file that somebody forgot to copy.
//!
//! It is FNV-1a (64 bits) over lines of canonical text, in this order: a format number, the
//! domain's id, the ring's settings, each node, each group. Left out is what may differ between
//! hosts: the key file's path, admin addresses, bind addresses, directories, limits of the
//! gateways, and how each member's server is started or reached.

use std::fmt::Write;

use crate::domain::{
    Checkpoint, ClientRule, Concurrency, Domain, Engine, Group, Node, Outside, Placement,
    QuorumRule, Recovery,
};

/// Raised when a field is added to the text, so that mixed versions disagree knowingly.
const FORMAT: u32 = 10;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

impl Domain {
    /// The digest of what must be equal on all hosts. Depends on nothing but the file's content:
    /// neither on the machine, nor on where the file lies.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.canonical()
            .bytes()
            .fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
    }

    /// The text that the digest is made of, for whoever has to find the difference.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = format!("quorba {FORMAT}\ndomain {}\n", self.id);
        let tie_breaker = self.tie_breaker.and_then(|node| self.node(node));
        let tie_breaker = tie_breaker.map_or("none", |node| node.name.as_str());
        // Domains that leave both out have the digest that they had before there was a choice.
        if self.quorum != QuorumRule::Majority || self.tie_breaker.is_some() {
            line(&mut text, format_args!("quorum {} tie_breaker={tie_breaker}", self.quorum));
        }
        let ring = &self.ring;
        line(
            &mut text,
            format_args!(
                "ring encrypt={} accelerated={} rests={} token_loss_ms={:?} datagram={} \
                 multicast={}",
                ring.encrypt,
                ring.accelerated,
                ring.token_rests,
                ring.token_loss.map(|time| time.as_millis()),
                ring.datagram_bytes_max,
                ring.multicast
            ),
        );
        if ring.engine != Engine::Totem {
            // Domains that are older than this key keep their digest.
            line(&mut text, format_args!("engine {}", ring.engine.as_str()));
        }
        for node in &self.nodes {
            node_line(&mut text, node);
        }
        for group in &self.groups {
            group_line(&mut text, self, group);
        }
        // Where a server is, and how long it may take, is each node's own business.
        for Outside { name, reply_bytes, on_doubt, .. } in &self.outside {
            let line_of = format_args!("outside {name} reply={reply_bytes} on_doubt={on_doubt:?}");
            line(&mut text, line_of);
        }
        text
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{arguments}");
}

fn node_line(text: &mut String, node: &Node) {
    line(
        text,
        format_args!(
            "node {} host={} ring_port={} offset={}",
            node.name, node.host, node.ring_port, node.gateway_port_offset
        ),
    );
}

fn group_line(text: &mut String, domain: &Domain, group: &Group) {
    let members: Vec<&str> = group
        .members
        .iter()
        .filter_map(|id| domain.node(id))
        .map(|node| node.name.as_str())
        .collect();
    line(
        text,
        format_args!(
            "group {} style={} listen={} members={} state={:?} key={:?} type={:?}",
            group.name,
            group.style.as_str(),
            group.listen,
            members.join(","),
            group.state_object,
            group.object_key,
            group.type_id,
        ),
    );
    line(
        text,
        format_args!(
            " ack={} reply={} replier={:?} retention_ms={} wait_ms={} total_loss={}",
            group.ack.as_str(),
            group.reply.as_str(),
            group.replier.and_then(|id| domain.node(id)).map(|node| node.name.as_str()),
            group.reply_retention.as_millis(),
            group.unavailable_wait.as_millis(),
            group.on_total_loss.as_str()
        ),
    );
    let Checkpoint { requests, after, updates } = group.checkpoint;
    line(
        text,
        format_args!(
            " leader={:?} checkpoint={requests},{},{updates} compare={},{}",
            group.leader.and_then(|id| domain.node(id)).map(|node| node.name.as_str()),
            after.as_millis(),
            group.comparison.requests,
            group.comparison.expel,
        ),
    );
    younger_parts(text, domain, group);
}

/// Younger than the digest: where they are not used, older versions agree.
fn younger_parts(text: &mut String, domain: &Domain, group: &Group) {
    if group.comparison.ignore_padding {
        line(text, format_args!(" compare_replies=ignore-padding"));
    }
    if group.durable {
        line(text, format_args!(" durable"));
    }
    if matches!(group.recovery, Recovery::Replay(_)) {
        line(text, format_args!(" recovery=replay"));
    }
    // All must give it up alike; when status says something is each node's own business.
    if let Some(abandon) = group.abandon {
        line(text, format_args!(" abandon_ms={}", abandon.as_millis()));
    }
    if group.staggered {
        line(text, format_args!(" execution=staggered"));
    }
    // How long it waits is each leader's own business.
    if matches!(group.placement, Placement::Auto(_)) {
        line(text, format_args!(" placement=auto"));
    }
    if group.concurrency != Concurrency::Sequential {
        line(text, format_args!(" concurrency={}", group.concurrency.as_str()));
    }
    if !group.calls.is_empty() {
        let called = group.calls.iter().filter_map(|index| domain.groups.get(*index));
        let called: Vec<&str> = called.map(|group| group.name.as_str()).collect();
        line(text, format_args!(" calls={}", called.join(",")));
    }
    if !group.outside.is_empty() {
        let called = group.outside.iter().filter_map(|index| domain.outside.get(*index));
        let called: Vec<&str> = called.map(|server| server.name.as_str()).collect();
        line(text, format_args!(" outside={}", called.join(",")));
    }
    // What one gateway lets in, all do. Where certificates lie is each host's own business.
    if let Some(tls) = &group.tls {
        let (asks, needs) = (tls.client_ca.is_some(), tls.client_certificates_required);
        line(text, format_args!(" tls={},{asks},{needs},{}", tls.listen, tls.plain));
    }
    for ClientRule { networks, certificates, operations } in group.clients.iter().flatten() {
        line(text, format_args!(" clients={networks:?},{certificates:?},{operations:?}"));
    }
    if group.clients.as_ref().is_some_and(Vec::is_empty) {
        line(text, format_args!(" clients=nobody"));
    }
    if !group.state_operations.is_empty() {
        line(text, format_args!(" state_operations={}", group.state_operations.join(",")));
    }
    if !group.readonly.is_empty() {
        let consistency = group.readonly_consistency.as_str();
        line(text, format_args!(" readonly={:?},{consistency}", group.readonly));
    }
}
