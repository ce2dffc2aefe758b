//! A link's frames and handshake under any octets; see [`crate::fuzzing`].
//!
//! What it is not: a test of sockets.
//!
//! Invariants: whoever lacks the key brings no message in and proves nothing; frames that were not
//! changed come as they were sent, in whatever pieces.

use super::frame::{FrameKey, Frames};
use super::handshake::{Boot, Handshake, NONCE_BYTES, PROOF_BYTES, Step};
use bytes::Bytes;
use quorba_base::NodeId;
use quorba_order::KEYS_MAX;
use ring::hmac;

fn frame_key() -> FrameKey {
    FrameKey::new(&hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &[1]), b"a fuzzer"))
}

/// What comes of `wire` if at most `most` octets are read at once; and whether all were frames.
fn read(mut wire: &[u8], most: usize) -> (Vec<Bytes>, bool) {
    let (mut frames, mut came) = (Frames::new(frame_key()), Vec::new());
    let mut room = vec![0; most];
    while !wire.is_empty() {
        let rest = frames.rest();
        let into_rest = rest.len().min(wire.len()).min(most);
        rest[..into_rest].copy_from_slice(&wire[..into_rest]);
        let is_full = into_rest == rest.len();
        wire = &wire[into_rest..];
        let more = if is_full { most.min(wire.len()) } else { 0 };
        room[..more].copy_from_slice(&wire[..more]);
        wire = &wire[more..];
        if frames.take(into_rest + more, &mut room, |message| came.push(message)).is_err() {
            return (came, false);
        }
    }
    (came, true)
}

/// The first octet says how much is read at once, the second how many messages are sent, each by
/// its length and its octets; what is left changes octets of what they are on the wire.
///
/// # Panics
/// If a message comes that was not sent, or one does not come although nothing was changed.
pub fn frames(input: &[u8]) {
    let [most, count, rest @ ..] = input else { return };
    let (most, mut rest) = (usize::from(*most) + 1, rest);
    // As it is, which nobody has sealed.
    assert!(read(rest, most).0.is_empty(), "a stranger's octets are no message");
    let (mut sealer, mut wire, mut sent) = (frame_key(), Vec::new(), Vec::new());
    for _ in 0..count % 8 {
        let Some((length, more)) = rest.split_first() else { break };
        let (message, more) = more.split_at(usize::from(*length).min(more.len()));
        rest = more;
        sealer.seal(message, &mut wire);
        sent.push(message);
    }
    assert_eq!(
        read(&wire, most),
        (sent.iter().copied().map(Bytes::copy_from_slice).collect(), true)
    );
    for change in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        match change[2] {
            0 => wire.truncate(at % (wire.len() + 1)),
            1 => wire.extend_from_slice(&change[..2]),
            value if !wire.is_empty() => {
                let at = at % wire.len();
                wire[at] ^= value;
            }
            _ => {}
        }
    }
    let (came, _) = read(&wire, most);
    let are_sent = came.iter().zip(&sent).all(|(came, sent)| came == sent);
    assert!(came.len() <= sent.len() && are_sent, "only what was sent comes, in its order");
}

fn boot(index: u8) -> Boot {
    Boot { node: NodeId::new(index).expect("in range"), incarnation: 7 }
}

/// A message of a handshake at each of its steps: as it is, and laid over the right one.
///
/// # Panics
/// If a message that is not the right one proves something.
pub fn handshake(input: &[u8]) {
    let keys = [hmac::Key::new(hmac::HMAC_SHA256, &[7])];
    let (near, far) = ([3; NONCE_BYTES], [4; NONCE_BYTES]);
    let calling = Handshake::Calling { me: boot(0), called: boot(1).node, nonce: near };
    let called = Handshake::Called { me: boot(1), challenge: far };
    let challenge = Handshake::challenge(&far);
    let Some(Step::Reply(answer, answered)) = calling.handle(&keys, &challenge) else {
        unreachable!("a right challenge is answered")
    };
    let Some(Step::Proven(_, reply)) = called.handle(&keys, &answer) else {
        unreachable!("a right answer proves")
    };
    for (waits, right) in [(calling, &challenge), (called, &answer), (answered, &reply)] {
        let _ = waits.handle(&keys, input);
        let mut bent = right.clone();
        bent.iter_mut().zip(input).for_each(|(octet, other)| *octet ^= other);
        let proves = matches!(waits.handle(&keys, &bent), Some(Step::Proven(..)));
        assert!(!proves || bent == *right || has_moved(right, &bent), "a wrong proof");
    }
}

/// An answer has room for a proof with each key, in whatever place: the right one counts anywhere.
fn has_moved(right: &[u8], bent: &[u8]) -> bool {
    let Some(head) = right.len().checked_sub(KEYS_MAX * PROOF_BYTES) else { return false };
    let proof = &right[head..head + PROOF_BYTES];
    right[..head] == bent[..head] && bent[head..].chunks(PROOF_BYTES).any(|one| one == proof)
}
