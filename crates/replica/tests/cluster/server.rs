//! A server of the scenarios: its state is the list of what it was told.
//!
//! What it is not: a process; the stage takes what it is sent and gives it the answer back.

use bytes::Bytes;
use quorba_giop::build;
use quorba_giop::{Endian, Framer, ReplyStatus, Version};
use quorba_replica::ChannelId;
use std::collections::VecDeque;

/// A server whose state is the list of the calls that it executed.
#[derive(Default)]
pub struct Server {
    pub executed: Vec<String>,
    /// Of which the last state or update spoke.
    told: usize,
    /// It answers something else than what it does.
    pub lies: bool,
    /// Updates that it was given.
    pub updates: usize,
    /// States that it was given.
    pub states: usize,
    pub(super) channels: Vec<(ChannelId, Framer)>,
    /// Calls that it has received and not answered, because the scenario holds it back.
    pub(super) waiting: VecDeque<(ChannelId, Bytes)>,
    pub held: bool,
    /// It gives nobody its state.
    pub is_private: bool,
    /// So many times, from now on.
    pub refusals: usize,
    /// How often it was asked for it.
    pub asked: usize,
    /// Texts at which it ends the connection, without having done anything.
    pub odd: Vec<String>,
    /// Texts that it never answers.
    pub silent: Vec<String>,
}

impl Server {
    /// Whether a request names one of these.
    pub(super) fn is_of(texts: &[String], request: &quorba_giop::Request<'_>) -> bool {
        let octets = request.message_bytes();
        texts.iter().any(|text| octets.ends_with(format!("{text}\0").as_bytes()))
    }

    pub(super) fn execute(&mut self, request: &quorba_giop::Request<'_>) -> Bytes {
        let (version, endian) = (Version::V1_2, Endian::Little);
        let id = request.request_id();
        let mut reader = quorba_giop::cdr::Reader::at(
            request.message_bytes(),
            request.body_offset(),
            Endian::Little,
        );
        let ok = ReplyStatus::NoException;
        let reply = match request.operation() {
            b"append" => {
                let text = reader.read_string(1 << 20, "text").unwrap();
                self.executed.push(String::from_utf8(text.to_vec()).unwrap());
                let answer =
                    format!("{} is number {}", self.executed.last().unwrap(), self.executed.len());
                let answer = if self.lies { "nonsense".into() } else { answer };
                build::reply(version, endian, id, ok, |cdr| cdr.write_string(answer.as_bytes()))
            }
            b"tell" => {
                let answer = self.executed.join(",");
                build::reply(version, endian, id, ok, |cdr| cdr.write_string(answer.as_bytes()))
            }
            b"get_update" => {
                let update = self.executed[self.told..].join("\n");
                self.told = self.executed.len();
                build::reply(version, endian, id, ok, |cdr| cdr.write_octets(update.as_bytes()))
            }
            b"set_update" => {
                let update = reader.read_octets(1 << 20, "update").unwrap();
                let update = String::from_utf8(update.to_vec()).unwrap();
                self.executed.extend(update.lines().map(str::to_string));
                self.updates += 1;
                build::reply(version, endian, id, ok, |_| {})
            }
            b"get_state" => {
                self.asked += 1;
                let refuses = self.refusals > 0;
                self.refusals -= usize::from(refuses);
                if self.is_private || refuses {
                    let no_state = ReplyStatus::UserException;
                    let id_of_it = b"IDL:omg.org/CORBA/NoStateAvailable:1.0";
                    return build::reply(version, endian, id, no_state, |cdr| {
                        cdr.write_string(id_of_it);
                    })
                    .bytes()
                    .clone();
                }
                self.told = self.executed.len();
                let state = self.executed.join("\n");
                build::reply(version, endian, id, ok, |cdr| cdr.write_octets(state.as_bytes()))
            }
            b"set_state" => {
                let state = reader.read_octets(4 << 20, "state").unwrap();
                let state = String::from_utf8(state.to_vec()).unwrap();
                self.executed = state.lines().map(str::to_string).collect();
                self.states += 1;
                build::reply(version, endian, id, ok, |_| {})
            }
            other => panic!("unexpected operation {other:?}"),
        };
        reply.bytes().clone()
    }
}
