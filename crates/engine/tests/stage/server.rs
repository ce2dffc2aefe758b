//! A server that remembers the numbers of its calls, and can give and take that as its state.

use super::STATE_OBJECT;
use quorba_giop::cdr::Reader;
use quorba_giop::{Body, Message, ReplyStatus, build};

#[derive(Clone, Default)]
pub struct Server {
    /// The numbers of the calls in its state.
    pub log: Vec<u32>,
    /// Calls that this very server has executed.
    pub executions: usize,
    /// So many bytes more in each reply.
    pub filler: usize,
    /// So many bytes more in its state.
    pub state_filler: usize,
}

impl Server {
    /// Executes a call and gives the bytes of the reply.
    pub fn serve(&mut self, message: &Message) -> Vec<u8> {
        let Ok(Body::Request(request)) = message.parse() else { panic!("no request") };
        let (version, endian) = (message.version(), message.endian());
        let mut body = Reader::at(request.message_bytes(), request.body_offset(), endian);
        let mut results: Vec<u8> = Vec::new();
        match request.operation() {
            b"get_state" if request.object_key() == Some(STATE_OBJECT) => {
                results.extend(self.log.iter().flat_map(|number| number.to_be_bytes()));
                let filler = [0xff; 4].into_iter().cycle();
                results.extend(filler.take(self.state_filler.next_multiple_of(4)));
            }
            b"set_state" if request.object_key() == Some(STATE_OBJECT) => {
                let state = body.read_octets(usize::MAX, "state").unwrap();
                let numbers = state.chunks_exact(4).map(|number| number.try_into().unwrap());
                let numbers = numbers.map(u32::from_be_bytes);
                self.log = numbers.filter(|number| *number != u32::MAX).collect();
            }
            _ => {
                self.executions += 1;
                self.log.push(body.read_u32("number").unwrap());
                results.resize(self.filler, 0);
            }
        }
        let status = ReplyStatus::NoException;
        let reply = build::reply(version, endian, request.request_id(), status, |cdr| {
            cdr.write_octets(&results);
        });
        reply.bytes().to_vec()
    }
}
