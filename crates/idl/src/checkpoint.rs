//! What the operations of `FT::Checkpointable` answer where a servant's state is octets. Written by
//! hand, as all services need it.
//!
//! What it is not: a format. Invariant: a state that no reply can hold is not given.

use alloc::vec::Vec;

use quorba_corba::giop::MessageError;

use crate::ft::checkpointable::{GetStateError, SetStateError};
use crate::ft::{InvalidState, NoStateAvailable, State};

/// The answer of `get_state`.
///
/// # Errors
/// NoStateAvailable if it is longer than a sequence can be.
pub fn give_state(state: Vec<u8>) -> Result<State, GetStateError> {
    if u32::try_from(state.len()).is_err() {
        return Err(NoStateAvailable {}.into());
    }
    Ok(state)
}

/// The answer of `set_state`.
///
/// # Errors
/// InvalidState if the state was not taken over.
pub fn take_state(taken: Result<(), MessageError>) -> Result<(), SetStateError> {
    taken.map_err(|_| InvalidState {}.into())
}
