//! Stands for the Corosync cluster in a program that was built without the feature `corosync`.
//!
//! Invariant: there is none, so nothing here is ever called but [`Corosync::join`].

use crate::NodeError;
use crate::boot::BootFile;
use bytes::Bytes;
use quorba_base::NodeId;
use quorba_config::Domain;
use quorba_engine::order::{Output, Ticket};
use quorba_net::Poller;
use std::time::Instant;

pub(crate) enum Corosync {}

impl Corosync {
    pub(crate) fn join(
        _: &Domain,
        _: NodeId,
        _: &BootFile,
        _: u64,
        _: &Poller,
    ) -> Result<Self, NodeError> {
        Err(NodeError::NoCorosync)
    }

    pub(crate) fn submit(&mut self, _: Ticket, _: Bytes) {
        match *self {}
    }

    pub(crate) fn dispatch(&mut self) -> Result<(), NodeError> {
        match *self {}
    }

    pub(crate) fn next(&mut self) -> Result<Option<Output>, NodeError> {
        match *self {}
    }

    pub(crate) fn retry_at(&self) -> Option<Instant> {
        match *self {}
    }

    pub(crate) fn offer(&mut self) -> Result<(), NodeError> {
        match *self {}
    }

    pub(crate) fn leave(&self) {
        match *self {}
    }
}
