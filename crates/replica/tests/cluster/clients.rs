//! What clients and operators ask of a node.

use super::{Cluster, GROUP};
use bytes::Bytes;
use quorba_giop::build::{self, RequestHead};
use quorba_giop::{Endian, ResponseFlags, Version};
use quorba_replica::{
    Backup, BackupRefused, Bound, FtRequest, NestedCall, Released, RequestEnvelope, RequestNumber,
};

impl Cluster {
    /// A request of the gateway at `index` under a number of its own.
    pub fn request(&mut self, index: usize, number: u64, text: &str) {
        self.submit(index, number, text, None);
    }

    /// A request that its client has named itself, and that is remembered as short as can be.
    pub fn ft_request(&mut self, index: usize, number: u64, text: &str, retention_id: i32) {
        let client_id = Bytes::from_static(b"client");
        let bound = Bound::default();
        let ft = FtRequest { client_id, retention_id, expiration: 0, bound };
        self.submit(index, number, text, Some(ft));
    }

    /// The same, where the gateway's clock shows `at` ticks; it is to be remembered until the same
    /// clock shows `until`.
    pub fn ft_request_at(
        &mut self,
        index: usize,
        (number, text): (u64, &str),
        retention_id: i32,
        (at, until): (u64, u64),
    ) {
        let client_id = Bytes::from_static(b"client");
        let bound = Bound::default();
        let ft = FtRequest { client_id, retention_id, expiration: until, bound };
        let payload = self.payload_at(index, at, (number, text), Some(ft));
        self.enqueue(index, payload);
    }

    /// A request where the gateway's clock shows `at` ticks.
    pub fn request_at(&mut self, index: usize, number: u64, text: &str, at: u64) {
        let payload = self.payload_at(index, at, (number, text), None);
        self.enqueue(index, payload);
    }

    /// The gateway at `index` has all replies below `number`.
    pub fn release_below(&mut self, index: usize, number: u64) {
        self.nodes[index].released_below = number;
    }

    /// A call to a stateless group.
    pub fn call(&mut self, index: usize, number: u64, text: &str) {
        let payload = self.payload(index, number, text, None);
        let request = RequestEnvelope::from_payload(payload).expect("it was just made");
        self.nodes[index].replica.handle_call(self.now, &request, false);
        self.drain(index);
    }

    /// A call that the server of another group makes at `index`.
    pub fn nested(&mut self, index: usize, number: u64, text: &str, call: NestedCall) {
        let payload = self.payload(index, number, text, None);
        let request = RequestEnvelope::from_payload(payload).expect("it was just made");
        self.enqueue(index, RequestEnvelope { nested: Some(call), ..request }.into_payload());
    }

    fn submit(&mut self, index: usize, number: u64, text: &str, ft: Option<FtRequest>) {
        let payload = self.payload(index, number, text, ft);
        self.enqueue(index, payload);
    }

    fn payload(&self, index: usize, number: u64, text: &str, ft: Option<FtRequest>) -> Bytes {
        self.payload_at(index, self.now.as_nanos() / 100, (number, text), ft)
    }

    fn payload_at(
        &self,
        index: usize,
        stamp: u64,
        (number, text): (u64, &str),
        ft: Option<FtRequest>,
    ) -> Bytes {
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id: 77,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"log",
            operation: b"append",
            contexts: &[],
        };
        let giop = build::request(&head, |cdr| cdr.write_string(text.as_bytes()));
        let request = RequestEnvelope {
            group: GROUP,
            number: RequestNumber(number),
            released: Released::below(RequestNumber(self.nodes[index].released_below)),
            stamp,
            ft,
            nested: None,
            ended_process: false,
            code_sets: None,
            giop: giop.bytes().clone(),
        };
        request.into_payload()
    }

    /// A read of the gateway at `index`.
    pub fn read(&mut self, index: usize, number: u64) {
        self.read_padded(index, number, 0);
    }

    pub fn read_padded(&mut self, index: usize, number: u64, padding: usize) {
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::Little,
            request_id: 78,
            response_flags: ResponseFlags::WithTarget,
            object_key: b"log",
            operation: b"tell",
            contexts: &[],
        };
        let giop = build::request(&head, |cdr| cdr.write_octets(&vec![0; padding]));
        let (number, giop) = (RequestNumber(number), giop.bytes().clone());
        self.nodes[index].replica.handle_read(self.now, GROUP, number, giop, None);
        self.drain(index);
    }

    /// A majority holds all that the node at `index` has had ordered.
    pub fn hold_marks(&mut self, index: usize) {
        for mark in core::mem::take(&mut self.nodes[index].marks) {
            self.nodes[index].replica.handle_mark_safe(self.now, GROUP, mark);
            self.drain(index);
        }
    }

    /// The operator at `index` takes a backup.
    pub fn back_up(&mut self, index: usize) -> Result<Backup, BackupRefused> {
        self.nodes[index].replica.handle_backup(GROUP, 1);
        self.drain(index);
        self.settle();
        self.nodes[index].backups.pop().expect("the operator is told")
    }

    /// The operator at `index` gives it back.
    pub fn restore(&mut self, index: usize, backup: Backup) -> Result<(), BackupRefused> {
        self.begin_restore(index, backup);
        self.nodes[index].restored.pop().expect("the operator is told")
    }

    /// The same, and the operator still waits.
    pub fn begin_restore(&mut self, index: usize, backup: Backup) {
        self.nodes[index].replica.handle_restore(GROUP, 1, backup);
        self.drain(index);
        self.settle();
    }
}
