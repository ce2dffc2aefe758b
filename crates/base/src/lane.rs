//! How messages between two nodes share a link.
//!
//! Invariant: what is urgent does not wait for what is not.

/// How urgent a message between two nodes is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Somebody waits for it: in front of everything in the other lane.
    Control,
    /// It comes when there is room.
    Bulk,
}
