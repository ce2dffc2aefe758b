//! How the two ends of a link prove to each other that they hold a domain key.
//!
//! The called side sends a challenge: a fresh nonce. The caller answers with who it is, in which
//! boot, whom it means, a nonce of its own, and one proof for each domain key that it holds. The
//! called side looks for one that it can verify, and proves itself and its boot with the same key.
//! So both understand each other as long as they have one key in common, at every moment of a
//! change of keys.
//!
//! What it is not: anything that reads, sends or looks at a clock.
//!
//! Invariants: a proof covers its role, both nodes and both nonces, so that it counts neither for
//! the other role (reflected), nor on another connection (recorded), nor between other nodes. Every
//! message has one length, known before it is read. Who called proves itself first: strangers cost
//! the called side a nonce and no proof of its own. The key of what the caller sends afterwards
//! covers the same and both boots; whoever learns a domain key can read what was recorded.

use super::frame::FrameKey;
use quorba_base::NodeId;
use quorba_order::KEYS_MAX;
use ring::hmac;

const MAGIC: &[u8; 3] = b"QL\x02";
pub(super) const NONCE_BYTES: usize = 16;
pub(super) const PROOF_BYTES: usize = 32;
const CHALLENGE_BYTES: usize = MAGIC.len() + NONCE_BYTES;
const BOOT_BYTES: usize = 8;
/// Caller and called follow the magic, then the caller's boot, its nonce and room for all proofs.
const ANSWER_HEAD_BYTES: usize = MAGIC.len() + 2 + BOOT_BYTES + NONCE_BYTES;
const ANSWER_BYTES: usize = ANSWER_HEAD_BYTES + KEYS_MAX * PROOF_BYTES;
/// The called node's boot and proof.
const REPLY_BYTES: usize = BOOT_BYTES + PROOF_BYTES;
/// No message is longer.
pub(super) const MESSAGE_BYTES_MAX: usize = ANSWER_BYTES;

pub(super) type Nonce = [u8; NONCE_BYTES];

/// One boot of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Boot {
    pub(super) node: NodeId,
    /// Larger than that of any boot before.
    pub(super) incarnation: u64,
}

/// What a text is signed for.
#[derive(Clone, Copy, Debug)]
enum Role {
    Caller = 1,
    Called = 2,
    /// The key of what the caller sends.
    Traffic = 3,
}

/// One side's view of a handshake that is not over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handshake {
    /// I call `called`, and wait for its challenge.
    Calling { me: Boot, called: NodeId, nonce: Nonce },
    /// I have answered the challenge, and wait for the other's proof.
    Answered(Call),
    /// I was called, have sent the challenge, and wait for the answer.
    Called { me: Boot, challenge: Nonce },
}

/// What every proof covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    caller: Boot,
    called: NodeId,
    challenge: Nonce,
    nonce: Nonce,
}

/// What both sides know when both have proven themselves.
pub(super) struct Proof {
    /// The other side.
    pub(super) peer: Boot,
    /// Seals what the caller sends.
    pub(super) key: FrameKey,
}

/// What follows from a message of the other side.
pub(super) enum Step {
    /// Send this, and go on.
    Reply(Vec<u8>, Handshake),
    /// It is over: the other side holds a domain key. Send what there is to send.
    Proven(Proof, Vec<u8>),
}

impl Handshake {
    /// What the called side sends first.
    pub(super) fn challenge(challenge: &Nonce) -> Vec<u8> {
        [MAGIC.as_slice(), challenge].concat()
    }

    /// How long the next message of the other side is.
    pub(super) const fn wanted_bytes(&self) -> usize {
        match self {
            Self::Calling { .. } => CHALLENGE_BYTES,
            Self::Answered(_) => REPLY_BYTES,
            Self::Called { .. } => ANSWER_BYTES,
        }
    }

    /// The other side's message is complete. `None`: it proves nothing, and that is the end.
    /// `keys` are derived from the domain keys, oldest first.
    pub(super) fn handle(self, keys: &[hmac::Key], message: &[u8]) -> Option<Step> {
        if message.len() != self.wanted_bytes() {
            return None;
        }
        match self {
            Self::Calling { me, called, nonce } => {
                let challenge = message.strip_prefix(MAGIC)?.try_into().ok()?;
                let call = Call { caller: me, called, challenge, nonce };
                Some(Step::Reply(call.answer(keys), Self::Answered(call)))
            }
            Self::Answered(call) => {
                let (boot, proof) = message.split_first_chunk::<BOOT_BYTES>()?;
                let incarnation = u64::from_be_bytes(*boot);
                let is_his = |key: &&hmac::Key| call.verify(key, Role::Called, incarnation, proof);
                let key = keys.iter().find(is_his)?;
                let peer = Boot { node: call.called, incarnation };
                let key = call.traffic_key(key, incarnation);
                Some(Step::Proven(Proof { peer, key }, Vec::new()))
            }
            Self::Called { me, challenge } => {
                let (call, proofs) = Call::read(challenge, message)?;
                if call.called != me.node || call.caller.node == me.node {
                    return None;
                }
                let mut proofs = proofs.chunks_exact(PROOF_BYTES);
                let known =
                    |proof| keys.iter().find(|key| call.verify(key, Role::Caller, 0, proof));
                let key = proofs.find_map(known)?;
                let boot = me.incarnation;
                let proof = call.sign(key, Role::Called, boot);
                let reply = [boot.to_be_bytes().as_slice(), proof.as_ref()].concat();
                let proof = Proof { peer: call.caller, key: call.traffic_key(key, boot) };
                Some(Step::Proven(proof, reply))
            }
        }
    }
}

impl Call {
    /// An answer to `challenge`, and the proofs in it.
    fn read(challenge: Nonce, answer: &[u8]) -> Option<(Self, &[u8])> {
        let (head, proofs) = answer.split_at_checked(ANSWER_HEAD_BYTES)?;
        let [caller, called, rest @ ..] = head.strip_prefix(MAGIC)? else { return None };
        let (boot, nonce) = rest.split_first_chunk::<BOOT_BYTES>()?;
        let incarnation = u64::from_be_bytes(*boot);
        let caller = Boot { node: NodeId::new(*caller)?, incarnation };
        let called = NodeId::new(*called)?;
        Some((Self { caller, called, challenge, nonce: nonce.try_into().ok()? }, proofs))
    }

    /// The newest key's proof comes first; where there is no key there are zeros.
    fn answer(&self, keys: &[hmac::Key]) -> Vec<u8> {
        let mut answer = Vec::with_capacity(ANSWER_BYTES);
        answer.extend_from_slice(MAGIC);
        answer.extend_from_slice(&[self.caller.node.index(), self.called.index()]);
        answer.extend_from_slice(&self.caller.incarnation.to_be_bytes());
        answer.extend_from_slice(&self.nonce);
        for key in keys.iter().rev().take(KEYS_MAX) {
            answer.extend_from_slice(self.sign(key, Role::Caller, 0).as_ref());
        }
        answer.resize(ANSWER_BYTES, 0);
        answer
    }

    fn traffic_key(&self, key: &hmac::Key, called_incarnation: u64) -> FrameKey {
        FrameKey::new(&self.sign(key, Role::Traffic, called_incarnation))
    }

    /// `called_incarnation`: 0 as long as the caller does not know it.
    fn sign(&self, key: &hmac::Key, role: Role, called_incarnation: u64) -> hmac::Tag {
        hmac::sign(key, &self.text(role, called_incarnation))
    }

    /// Compares in constant time.
    fn verify(&self, key: &hmac::Key, role: Role, called_incarnation: u64, proof: &[u8]) -> bool {
        hmac::verify(key, &self.text(role, called_incarnation), proof).is_ok()
    }

    /// Every part has one length, so no two calls have the same text.
    fn text(&self, role: Role, called_incarnation: u64) -> Vec<u8> {
        let nodes = [role as u8, self.caller.node.index(), self.called.index()];
        let boots = [self.caller.incarnation, called_incarnation].map(u64::to_be_bytes);
        [nodes.as_slice(), boots.as_flattened(), &self.challenge, &self.nonce].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::derived;

    fn node(index: u8) -> NodeId {
        NodeId::new(index).expect("in range")
    }

    fn keys(bytes: &[u8]) -> Vec<hmac::Key> {
        let domain: Vec<[u8; 32]> = bytes.iter().map(|byte| [*byte; 32]).collect();
        derived(b"a test", domain.iter())
    }

    fn boot(index: u8) -> Boot {
        Boot { node: node(index), incarnation: 40 + u64::from(index) }
    }

    fn calling(nonce: u8) -> Handshake {
        Handshake::Calling { me: boot(0), called: node(1), nonce: [nonce; NONCE_BYTES] }
    }

    fn called(me: u8, challenge: u8) -> Handshake {
        Handshake::Called { me: boot(me), challenge: [challenge; NONCE_BYTES] }
    }

    fn challenge(of: u8) -> Vec<u8> {
        Handshake::challenge(&[of; NONCE_BYTES])
    }

    /// What node 0 answers to a challenge, and what it waits for then.
    fn answer(keys: &[hmac::Key], nonce: u8, to: u8) -> (Vec<u8>, Handshake) {
        match calling(nonce).handle(keys, &challenge(to)) {
            Some(Step::Reply(answer, next)) => (answer, next),
            _ => panic!("no answer"),
        }
    }

    /// What the called node says to a caller that has proven to be node 0.
    fn proof(keys: &[hmac::Key], to: u8, answer: &[u8]) -> Vec<u8> {
        match called(1, to).handle(keys, answer) {
            Some(Step::Proven(who, proof)) if who.peer == boot(0) => proof,
            _ => panic!("no proof"),
        }
    }

    #[test]
    fn both_sides_learn_who_the_other_one_is() {
        let keys = keys(&[7]);
        let (answer, waits) = answer(&keys, 1, 2);
        let proof = proof(&keys, 2, &answer);
        assert_eq!((answer.len(), proof.len()), (ANSWER_BYTES, waits.wanted_bytes()));
        let proven = waits.handle(&keys, &proof);
        assert!(matches!(proven, Some(Step::Proven(who, _)) if who.peer == boot(1)));
    }

    #[test]
    fn one_key_in_common_is_enough_wherever_it_stands() {
        for (near, far) in [([7].as_slice(), [7, 8].as_slice()), (&[7, 8], &[7]), (&[7, 8], &[8])] {
            let (near, far) = (keys(near), keys(far));
            let (answer, waits) = answer(&near, 1, 2);
            let proof = proof(&far, 2, &answer);
            assert!(matches!(waits.handle(&near, &proof), Some(Step::Proven(..))));
        }
    }

    #[test]
    fn who_has_no_key_in_common_or_none_is_refused() {
        let mine = keys(&[7]);
        for theirs in [keys(&[8]), keys(&[]), keys(&[8, 9, 10, 11])] {
            let (answer, _) = answer(&theirs, 1, 2);
            assert!(called(1, 2).handle(&mine, &answer).is_none());
            assert!(called(1, 2).handle(&[], &answer).is_none());
        }
        let (_, waits) = answer(&mine, 1, 2);
        assert!(waits.handle(&mine, &[0; REPLY_BYTES]).is_none());
    }

    #[test]
    fn a_recording_counts_on_no_other_connection() {
        let keys = keys(&[7]);
        let (old, _) = answer(&keys, 1, 2);
        let old_proof = proof(&keys, 2, &old);
        assert!(called(1, 3).handle(&keys, &old).is_none(), "another challenge");
        let (_, waits) = answer(&keys, 4, 2);
        assert!(waits.handle(&keys, &old_proof).is_none(), "another nonce of mine");
    }

    #[test]
    fn my_own_words_count_nothing_with_me_nor_a_proof_for_others() {
        let keys = keys(&[7]);
        // My own challenge is put to me, and my answer to it is given back to me.
        let (mine, waits) = answer(&keys, 1, 2);
        assert!(called(0, 2).handle(&keys, &mine).is_none(), "it is for another node");
        let first = &mine[ANSWER_HEAD_BYTES..][..PROOF_BYTES];
        assert!(waits.handle(&keys, first).is_none(), "it is the caller's proof");
        assert!(called(2, 2).handle(&keys, &mine).is_none(), "it is for node 1");
        for place in [MAGIC.len(), MAGIC.len() + 1] {
            let mut bent = mine.clone();
            bent[place] = 2;
            assert!(called(1, 2).handle(&keys, &bent).is_none());
            assert!(called(2, 2).handle(&keys, &bent).is_none());
        }
    }

    #[test]
    fn whatever_comes_is_refused_without_harm() {
        let keys = keys(&[7]);
        let (right, waits) = answer(&keys, 1, 2);
        let proof = proof(&keys, 2, &right);
        for message in [right, proof, challenge(2), vec![0xFF; ANSWER_BYTES]] {
            for cut in 0..message.len() {
                assert!(called(1, 2).handle(&keys, &message[..cut]).is_none());
                assert!(waits.handle(&keys, &message[..cut]).is_none());
            }
        }
        let (right, waits) = answer(&keys, 1, 2);
        let right_proof = self::proof(&keys, 2, &right);
        for bit in 0..REPLY_BYTES * 8 {
            let mut bent = right_proof.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(waits.handle(&keys, &bent).is_none(), "bit {bit}, the boot included");
        }
        for bit in 0..(ANSWER_HEAD_BYTES + PROOF_BYTES) * 8 {
            let mut bent = right.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(called(1, 2).handle(&keys, &bent).is_none(), "bit {bit}");
        }
        assert!(calling(1).handle(&keys, b"QL\x01 another version").is_none());
    }
}
