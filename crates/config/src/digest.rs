//! A number that is equal on two hosts exactly if their domain files agree where they must.
//!
//! What it is not: a protection. Who can forge a handshake holds the domain key; the digest finds
//! the file that somebody forgot to copy. Nor does it look at groups and servers outside: those
//! that the domain has are ordered, and each node that joins is told them.
//!
//! It is FNV-1a (64 bits) over lines of canonical text, in this order: a format number, the
//! domain's id, who may go on without whom, the ring's settings, the limits that all nodes must
//! have alike, and each node. Left out is what may differ between hosts: groups, servers outside,
//! the key file's path, admin addresses, bind addresses, directories, and all other limits.

use std::fmt::Write;

use quorba_base::{FNV_OFFSET, fnv1a};

use crate::domain::{Domain, Node};

/// Raised when the text changes, so that mixed versions disagree knowingly.
const FORMAT: u32 = 15;

impl Domain {
    /// The digest of what must be equal on all hosts. Depends on nothing but the file's content:
    /// neither on the machine, nor on where the file lies.
    #[must_use]
    pub fn digest(&self) -> u64 {
        fnv1a(FNV_OFFSET, self.canonical().bytes())
    }

    /// A digest of where all nodes have their gateways, as far as that is equal on all hosts: the
    /// shared port is not in it, which nodes may change one after the other.
    #[must_use]
    pub fn gateways_digest(&self) -> u64 {
        let mut text = String::new();
        for Node { name, host, gateway_port_offset, .. } in &self.nodes {
            line(&mut text, format_args!("{name} {host} {gateway_port_offset}"));
        }
        fnv1a(FNV_OFFSET, text.bytes())
    }

    /// The text that the digest is made of, for whoever has to find the difference.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = format!("quorba {FORMAT}\n");
        let tie_breaker = self.tie_breaker.and_then(|node| self.node(node));
        let tie_breaker = tie_breaker.map_or("none", |node| node.name.as_str());
        line(
            &mut text,
            format_args!("domain id={} quorum={} tie_breaker={tie_breaker}", self.id, self.quorum),
        );
        let ring = &self.ring;
        line(
            &mut text,
            format_args!(
                "ring engine={} encrypt={} accelerated={} token_rests={} token_loss_ms={:?} \
                 datagram_bytes_max={} multicast={}",
                ring.engine.as_str(),
                ring.encrypt,
                ring.accelerated,
                ring.token_rests,
                ring.token_loss.map(|time| time.as_millis()),
                ring.datagram_bytes_max,
                ring.multicast
            ),
        );
        // What one node lets in, or gives away, the others must be able to take.
        let limits = &self.limits;
        line(
            &mut text,
            format_args!(
                "limits state_bytes={} message_bytes={}",
                limits.state_bytes, limits.message_bytes
            ),
        );
        for node in &self.nodes {
            node_line(&mut text, node);
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
            "node {} host={} ring_port={} gateway_port_offset={}",
            node.name, node.host, node.ring_port, node.gateway_port_offset
        ),
    );
}
