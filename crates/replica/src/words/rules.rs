//! Rules of a group that more than one part keeps to: which operations are reads, and how states
//! travel.
//!
//! What it is not: what is done by them; that is `reads` and `transfer`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorba_base::policy::ReadConsistency;

/// The longest chunk, as it is before it is compressed.
pub(crate) const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Which operations are reads, and what they may miss.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadRule {
    /// Names of operations that change nothing; `*` stands for any part of one.
    pub operations: Vec<Bytes>,
    /// What they may miss.
    pub consistency: ReadConsistency,
    /// Only calls of certain objects are reads, and the leader executes them. Nothing: reads of any
    /// object. Boxed, as few of many groups say it.
    pub of_leader: Option<Box<LeaderRule>>,
    /// Those have connections of their own to the server, and wait for nothing else that it does.
    pub aside: bool,
}

/// Of which objects the leader executes calls past the order, and which of them wait.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeaderRule {
    /// Their keys begin so. What is called may change what only the leader has, and is not
    /// replicated.
    pub keys: Bytes,
    /// Which calls gateways hold until there is something to answer.
    pub waits: Option<WaitRule>,
}

/// Calls that wait, where a servant cannot: as long as there is nothing it raises TRANSIENT with
/// the minor code `NothingYet`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitRule {
    /// Of objects whose keys begin so.
    pub keys: Vec<Bytes>,
    /// The operation.
    pub operation: Bytes,
    /// The operation without arguments by which the leader is asked, past the order, whether that
    /// one would be answered: a boolean.
    pub question: Bytes,
}

impl WaitRule {
    /// Whether the operation of this name waits, of the object with this key.
    #[must_use]
    pub fn has(&self, operation: &[u8], object_key: Option<&[u8]>) -> bool {
        operation == self.operation && self.is_of(object_key)
    }

    /// Whether the operation of this name takes what it answers, so that who is given no reply has
    /// lost it: the one that waits, or `try_` and its name.
    fn takes(&self, operation: &[u8]) -> bool {
        operation.strip_prefix(b"try_").unwrap_or(operation) == self.operation
    }

    /// Whether the operation of this name is the question, at the object with this key. It is the
    /// gateways' own: ordered, each member would answer it, and only the leader knows the answer.
    #[must_use]
    pub fn is_question(&self, operation: &[u8], object_key: Option<&[u8]>) -> bool {
        operation == self.question && self.is_of(object_key)
    }

    fn is_of(&self, object_key: Option<&[u8]>) -> bool {
        let is_of = |key: &[u8]| self.keys.iter().any(|start| key.starts_with(start));
        object_key.is_some_and(is_of)
    }
}

impl ReadRule {
    /// Whether calls that the leader alone executes have connections of their own.
    pub(crate) fn is_aside(&self) -> bool {
        self.aside && self.of_leader.is_some()
    }

    /// Which calls wait.
    #[must_use]
    pub fn waits(&self) -> Option<&WaitRule> {
        self.of_leader.as_ref()?.waits.as_ref()
    }

    /// Whether a call may have to be had by several members before its caller goes on. Not one past
    /// the order at the leader alone, nor one that takes what it answers.
    #[must_use]
    pub fn has_depth(&self, operation: &[u8]) -> bool {
        let is_past = self.operations.iter().any(|pattern| name_fits(pattern, operation));
        let takes = self.waits().is_some_and(|rule| rule.takes(operation));
        self.of_leader.is_none() || !is_past && !takes
    }

    /// Whether the operation of this name is a read, of the object with this key.
    #[must_use]
    pub fn has(&self, operation: &[u8], object_key: Option<&[u8]>) -> bool {
        let is_of = |rule: &LeaderRule| object_key.is_some_and(|key| key.starts_with(&rule.keys));
        self.of_leader.as_deref().is_none_or(is_of)
            && self.operations.iter().any(|pattern| name_fits(pattern, operation))
    }
}

/// Whether a name fits a pattern in which `*` stands for any octets.
#[must_use]
pub fn name_fits(pattern: &[u8], name: &[u8]) -> bool {
    let mut parts = pattern.split(|octet| *octet == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts.filter(|part| !part.is_empty()) {
        // The first place is as good as any later one: what follows has most room then.
        let Some(at) = rest.windows(part.len()).position(|window| window == part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// How the group's transfers go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferRule {
    /// Bytes of a chunk before it is compressed; at most 64 KiB.
    pub chunk_bytes: usize,
    /// What a donor sends to one joiner at most, in bytes per second; `None`: what the link takes.
    pub bytes_per_second: Option<u64>,
}

impl Default for TransferRule {
    fn default() -> Self {
        Self { chunk_bytes: CHUNK_BYTES_MAX, bytes_per_second: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;

    #[test]
    fn what_takes_its_answer_and_what_goes_past_the_order_has_no_depth() {
        let name = |name: &'static [u8]| Bytes::from_static(name);
        let waits = WaitRule {
            keys: alloc::vec![name(b"Events/")],
            operation: name(b"pull"),
            question: name(b"has_event"),
        };
        let of_leader = LeaderRule { keys: name(b"Unordered/"), waits: Some(waits) };
        let rule = ReadRule {
            operations: alloc::vec![name(b"push")],
            of_leader: Some(Box::new(of_leader)),
            ..ReadRule::default()
        };
        for operation in [&b"push"[..], b"pull", b"try_pull"] {
            assert!(!rule.has_depth(operation));
        }
        assert!(rule.has_depth(b"connect_push_consumer") && rule.has_depth(b"try_push"));
        // Of any other group all ordered calls have one.
        let of_members = ReadRule { of_leader: None, ..rule };
        assert!(of_members.has_depth(b"pull") && of_members.has_depth(b"push"));
    }
}
