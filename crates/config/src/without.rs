//! What the event service is to do without, so that it can be measured what each measure against
//! long waits gains (Huang05 §4.3): words of a variable of its process.
//!
//! What it is not: a key of the domain file, or of use to anybody who does not measure. Invariant:
//! without the variable the service does without nothing.

use crate::domain::Backend;

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// Pushes past the order have no connection of their own to the process, and no thread.
    pub own_way: bool,
    /// Members that do not lead have no connections to consumers.
    pub warm: bool,
}

impl Without {
    /// The variable, in `env` of `[service.events]`: words with spaces between them.
    pub const VARIABLE: &str = "QUORBA_EVENTS_WITHOUT";
    /// Its word for [`Self::own_way`].
    pub const OWN_WAY: &str = "own-way";
    /// Its word for [`Self::warm`].
    pub const WARM: &str = "warm";

    /// What the variable's text says; other words are of no account.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let has = |word| text.split_ascii_whitespace().any(|one| one == word);
        Self { own_way: has(Self::OWN_WAY), warm: has(Self::WARM) }
    }

    /// What a group's servers are told.
    #[must_use]
    pub fn of(backend: &Backend) -> Self {
        let Backend::Start(server) = backend else { return Self::default() };
        let told = server.env.iter().find(|(name, _)| name == Self::VARIABLE);
        told.map_or_else(Self::default, |(_, value)| Self::read(&value.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_is_left_out() {
        assert_eq!(Without::read("warm own-way"), Without { own_way: true, warm: true });
        assert_eq!(Without::read(" warm"), Without { own_way: false, warm: true });
        assert_eq!(Without::read("warmer"), Without::default());
    }
}
