//! States that the server has not given when it was asked, and that it has not taken.
//!
//! What it is not: a judge of whose fault that is. Invariants: one way that works again is
//! forgotten at once, the other is not touched by it; what a server has not given is not said of
//! the next one, and what is not taken counts on: who takes no state is started anew each time.

use alloc::string::String;
use quorba_giop::{Body, Message, ReplyStatus};

/// So much of an exception's id is told.
const ID_CHARS_MAX: usize = 120;

/// What a server said instead of giving or taking its state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// In words, or the id of its exception.
    pub said: String,
    /// The minor code, if that is a system exception.
    pub minor: Option<u32>,
}

impl Refusal {
    /// No exception, but this.
    pub(super) fn of(said: &str) -> Self {
        Self { said: said.into(), minor: None }
    }

    /// What a reply says. Of an exception's id so much as one wants to read.
    pub(super) fn read(reply: &Message) -> Self {
        let Ok(Body::Reply(view)) = reply.parse() else { return Self::of("no reply") };
        if view.status() == ReplyStatus::NoException {
            return Self::of("a reply that holds no sequence of octets");
        }
        let mut reader = view.reader();
        let Ok(id) = reader.read_string(1 << 10, "exception id") else {
            return Self::of("an exception without an id");
        };
        let id = String::from_utf8_lossy(id);
        let said = id.chars().filter(|c| !c.is_control()).take(ID_CHARS_MAX).collect();
        let is_system = view.status() == ReplyStatus::SystemException;
        let minor = is_system.then(|| reader.read_u32("minor code").ok()).flatten();
        Self { said, minor }
    }
}

/// A state that does not pass, for status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateRefused {
    /// How often in a row.
    pub times: u32,
    /// What the server said the last time.
    pub refusal: Refusal,
    /// Bytes of the state that it was to take; of one that it did not give, those of the last that
    /// it gave, if it did.
    pub bytes: Option<u64>,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct States {
    /// The length of the last state that was given.
    given: Option<u64>,
    not_given: Option<StateRefused>,
    not_taken: Option<StateRefused>,
}

impl States {
    /// The server has given a state of so many bytes.
    pub(super) fn gave(&mut self, bytes: usize) {
        (self.given, self.not_given) = (Some(bytes as u64), None);
    }

    pub(super) fn did_not_give(&mut self, refusal: Refusal) {
        let times = self.not_given.take().map_or(0, |it| it.times).saturating_add(1);
        self.not_given = Some(StateRefused { times, refusal, bytes: self.given });
    }

    /// Another server is asked from now on.
    pub(super) fn forget_not_given(&mut self) {
        self.not_given = None;
    }

    pub(super) fn took(&mut self) {
        self.not_taken = None;
    }

    /// The server was given a state of so many bytes, in vain.
    pub(super) fn did_not_take(&mut self, bytes: usize, refusal: Refusal) {
        let times = self.not_taken.take().map_or(0, |it| it.times).saturating_add(1);
        self.not_taken = Some(StateRefused { times, refusal, bytes: Some(bytes as u64) });
    }

    pub(super) fn not_given(&self) -> Option<&StateRefused> {
        self.not_given.as_ref()
    }

    pub(super) fn not_taken(&self) -> Option<&StateRefused> {
        self.not_taken.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_giop::{Completion, Endian, ExceptionKind, SystemException, Version, build};

    #[test]
    fn what_is_said_is_counted_with_sizes_until_the_same_way_works_again() {
        let mut states = States::default();
        let marshal = SystemException {
            kind: ExceptionKind::Marshal,
            minor: 0x4154_0045,
            completed: Completion::Yes,
        };
        let reply = build::system_exception(Version::V1_2, Endian::Little, 7, &marshal);
        states.did_not_give(Refusal::read(&reply));
        assert_eq!(states.not_given().map(|it| it.bytes), Some(None));
        states.gave(1_000);
        assert_eq!(states.not_given(), None);
        states.did_not_give(Refusal::of("it ended the connection"));
        states.did_not_give(Refusal::read(&reply));
        states.did_not_take(5_000, Refusal::of("it ended the connection"));
        let said = "IDL:omg.org/CORBA/MARSHAL:1.0".into();
        let refusal = Refusal { said, minor: Some(0x4154_0045) };
        let expected = StateRefused { times: 2, refusal, bytes: Some(1_000) };
        assert_eq!(states.not_given(), Some(&expected));
        states.took();
        assert_eq!((states.not_taken(), states.not_given().is_some()), (None, true));
    }
}
