//! Changing the domain key without losing a datagram or a member.
//!
//! Every node is given the new key beside the old one, in any order and at any time. The token
//! carries the newest key's id and who has it; when that is every node of the *domain*, each
//! member seals with the new key from its next datagram on. All others open it, for they said that
//! they have the key. When every node seals with it, the old key can be taken away.
//!
//! Invariants: a node that is away stops the switch, so that nobody is locked out; the switch goes
//! from older to newer keys only; the packet counter goes on, so no nonce comes back under the same
//! key and no recording counts again.

use crate::config::DomainKey;
use crate::seal::{InvalidKeys, KeyId};
use crate::shared::Core;
use crate::wire::Token;
use alloc::vec::Vec;
use quorba_base::NodeSet;

impl Core {
    /// Accepts `keys`, oldest first, and no others.
    pub(crate) fn replace_keys(&mut self, keys: Vec<DomainKey>) -> Result<(), InvalidKeys> {
        let newest = self.sessions.keyring().newest();
        self.sessions.replace_keys(keys)?;
        if newest != self.sessions.keyring().newest() {
            self.keyed = NodeSet::EMPTY;
        }
        self.seal_with_chosen();
        if self.config.nodes.len() == 1 {
            self.turn_to_key(self.sessions.keyring().newest());
        }
        Ok(())
    }

    /// Writes into the token which key this node has, and turns to it when everyone has it.
    pub(crate) fn show_keys(&mut self, token: &mut Token) {
        if !self.config.encrypt {
            return;
        }
        let keyring = self.sessions.keyring();
        let newest = keyring.newest();
        if token.key != newest {
            // A key that I do not have is newer than mine; one that I have is older.
            if token.key != KeyId::NONE && keyring.get(token.key).is_none() {
                return;
            }
            token.key = newest;
            token.keyed = NodeSet::EMPTY;
        }
        token.keyed.insert(self.me());
        self.keyed = token.keyed;
        if self.config.nodes.is_subset(token.keyed) {
            self.turn_to_key(newest);
        }
    }

    /// Seals with `key`, if it is newer than the one in use.
    pub(crate) fn turn_to_key(&mut self, key: KeyId) {
        if self.sessions.keyring_mut().turn_to(key) {
            self.seal_with_chosen();
        }
    }

    fn seal_with_chosen(&mut self) {
        let keyring = self.sessions.keyring();
        if self.config.encrypt
            && self.sealer.key_id() != keyring.sealing()
            && let Some(key) = keyring.get(keyring.sealing())
        {
            self.sealer.turn_to(key);
        }
    }

    /// The newest key and who is known to have it.
    pub(crate) fn newest_key(&self) -> Option<(KeyId, NodeSet)> {
        self.config.encrypt.then(|| (self.sessions.keyring().newest(), self.keyed))
    }
}
