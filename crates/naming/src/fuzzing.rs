//! What is fuzzed: calls of any octets, and states of any octets.
//!
//! What it is not: in a build of the product; the feature `fuzzing` asks for it.
//!
//! Invariant: an input that breaks a promise panics.

use alloc::string::ToString;
use alloc::vec::Vec;

use quorba_corba::giop::build::{self, RequestHead};
use quorba_corba::giop::{Body, Endian, ResponseFlags, Version};
use quorba_corba::{Home, answer};

use crate::{Limits, NamingService, ROOT_KEY, STATE_KEY};

const OPERATIONS: [&str; 20] = [
    "bind",
    "rebind",
    "bind_context",
    "rebind_context",
    "resolve",
    "unbind",
    "new_context",
    "bind_new_context",
    "destroy",
    "list",
    "to_string",
    "to_name",
    "to_url",
    "resolve_str",
    "next_one",
    "next_n",
    "get_state",
    "set_state",
    "_is_a",
    "_non_existent",
];

fn service() -> NamingService {
    let home = Home { addresses: Vec::from([("n1".to_string(), 2809)]), prefix: Vec::new() };
    let limits = Limits {
        bindings_max: 20,
        contexts_max: 5,
        iterators_max: 3,
        listed_max: 4,
        ..Limits::default()
    };
    NamingService::new(home, limits)
}

/// Calls, each of an octet for the operation, one for the object and byte order, one for the length
/// of its arguments, and these. Two services answer alike, and the state of one is another like it.
///
/// # Panics
/// If they do not.
pub fn calls(input: &[u8]) {
    let (mut one, mut other) = (service(), service());
    let mut rest = input;
    while let [operation, place, length, behind @ ..] = rest {
        let (arguments, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;
        let key = match place >> 1 & 7 {
            0..=3 => ROOT_KEY.to_string(),
            4 => STATE_KEY.to_string(),
            5 => alloc::format!("{ROOT_KEY}/i{}", 1 + (place >> 4)),
            _ => alloc::format!("{ROOT_KEY}/c{}", 1 + (place >> 4)),
        };
        let operation = OPERATIONS.get(usize::from(*operation) % OPERATIONS.len());
        let head = RequestHead {
            version: Version::V1_2,
            endian: Endian::from_bit(place & 1),
            request_id: 1,
            response_flags: ResponseFlags::WithTarget,
            object_key: key.as_bytes(),
            operation: operation.map_or(b"", |operation| operation.as_bytes()),
            contexts: &[],
        };
        let message = build::request(&head, |out| out.write_raw(arguments));
        let Ok(Body::Request(request)) = message.parse() else { continue };
        let reply = answer(&message, &request, &mut one, &mut None);
        assert_eq!(reply, answer(&message, &request, &mut other, &mut None));
        assert!(reply.is_some(), "a reply was wanted");
    }
    assert!(one.bindings() <= 20 && one.iterators.len() <= 3);
    check_state(&one.state());
}

/// A state of any octets is refused, or read as the same after it was written.
///
/// # Panics
/// If it is not.
pub fn state(input: &[u8]) {
    let mut service = service();
    if service.take_over(input).is_ok() {
        check_state(&service.state());
    }
}

fn check_state(state: &[u8]) {
    let mut other = service();
    assert!(other.take_over(state).is_ok(), "a state of one is one for others");
    assert_eq!(other.state(), state);
}
