//! A request as it was delivered.
//!
//! What it is not: what becomes of it.

use crate::table::moment::Moment;
use crate::words::history::History;
use crate::words::ids::{GatewayKey, GroupId, RequestKey};
use crate::words::released::Released;
use bytes::Bytes;

/// A delivered request, with its identity.
#[derive(Clone)]
pub(crate) struct Arrived {
    pub(crate) key: RequestKey,
    pub(crate) gateway: GatewayKey,
    /// What the group was delivered, with this one.
    pub(crate) history: History,
    pub(crate) moment: Moment,
    pub(crate) expiry: u64,
    pub(crate) clock: u64,
    /// The group took no new requests of clients when it came.
    pub(crate) full: bool,
    pub(crate) released: Released,
    /// If another group calls: which, and which of its requests nobody executes again.
    pub(crate) calls_below: Option<(GroupId, u64)>,
    pub(crate) giop: Bytes,
    pub(crate) code_sets: Option<Bytes>,
    /// This member is to answer it, as far as the group knew when it was delivered.
    pub(crate) awaited: bool,
}
