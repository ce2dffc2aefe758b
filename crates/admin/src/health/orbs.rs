//! Which ORB a minor code is of, and which of its options lets a large state pass.
//!
//! What it is not: certain. A server's exception may carry any number; what is told is what the
//! ORBs that were measured do (docs/recovery.md). Invariant: an option is named only where the
//! server's words or the state's size point to it.

use crate::status::StateRefusedStatus;

/// The upper 20 bits of a minor code say whose it is (CORBA 3.3, part 1, A.5.1).
const VENDOR: u32 = 0xFFFF_F000;
const OMNIORB: u32 = 0x4154_0000;
/// `omniORB4/minorCode.h`: MARSHAL_MessageSizeExceedLimitOnClient, ...OnServer, and without either.
const OMNIORB_TOO_LONG: [u32; 3] = [OMNIORB | 11, OMNIORB | 12, OMNIORB | 69];
/// The default of omniORB's giopMaxMsgSize.
const OMNIORB_BYTES_MAX: u64 = 2 << 20;
/// The most that the Eclipse ORB (GlassFish) reads at once, by default.
const ECLIPSE_BYTES_MAX: u64 = 256_000;
/// What servers may be given as their limit; twice a state that is larger.
const ROOM_BYTES: u64 = 256 << 20;

/// Whose minor code it is; nothing of those that every ORB uses.
pub(super) const fn vendor(minor: u32) -> Option<&'static str> {
    Some(match minor & VENDOR {
        OMNIORB => "omniORB",
        0x4A43_0000 => "JacORB",
        0x5441_0000 => "TAO",
        0x5355_0000 => "Sun's and the Eclipse ORB",
        0x4954_0000 => "Orbix",
        0x5142_0000 => "Quorba",
        _ => return None,
    })
}

/// A limit that lets a state of so many bytes pass.
fn room(bytes: Option<u64>) -> u64 {
    bytes.unwrap_or(0).saturating_mul(2).next_power_of_two().max(ROOM_BYTES)
}

/// The last state that was given was shorter than the one that was not.
const fn near(most: u64, is_to_take: bool) -> u64 {
    if is_to_take { most } else { most / 2 }
}

fn omniorb(bytes: Option<u64>) -> String {
    format!(
        "give the servers of all members -ORBgiopMaxMsgSize {}, as omniORB takes 2 MiB by default",
        room(bytes)
    )
}

/// The option to set; none if nothing points to one.
pub(super) fn option(refused: &StateRefusedStatus, is_to_take: bool) -> Option<String> {
    let bytes = refused.bytes;
    if refused.minor.is_some_and(|minor| OMNIORB_TOO_LONG.contains(&minor)) {
        return Some(omniorb(bytes));
    }
    let is_marshal = refused.reason.contains("/MARSHAL:");
    let is_of_another = refused.minor.and_then(vendor).is_some_and(|vendor| vendor != "omniORB");
    // An ORB that is sent too much ends the connection, mostly, and says nothing.
    let is_mute = refused.minor.is_none()
        && ["connection", "MessageError"].iter().any(|word| refused.reason.contains(word));
    let is_about_size = is_marshal || is_mute;
    match bytes {
        Some(bytes)
            if is_about_size && bytes > near(OMNIORB_BYTES_MAX, is_to_take) && !is_of_another =>
        {
            Some(
                omniorb(Some(bytes))
                    + "; for the Eclipse ORB set \
                   com.sun.corba.ee.transport.ORBMaximumReadByteBufferSize to as much",
            )
        }
        Some(bytes) if is_about_size && is_to_take && bytes > ECLIPSE_BYTES_MAX => Some(format!(
            "if it is the Eclipse ORB, set \
             com.sun.corba.ee.transport.ORBMaximumReadByteBufferSize to {} (256,000 by default)",
            room(Some(bytes))
        )),
        // omniORB does so with a reply above its limit, and nobody has seen how long that is.
        None if is_mute => {
            Some(format!("if it is omniORB and its state may be that long, {}", omniorb(None)))
        }
        _ if refused.reason.contains("/NO_MEMORY:") || refused.reason.contains("/IMP_LIMIT:") => {
            Some("raise the limit of the language's runtime (Java: -Xmx)".into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(reason: &str, minor: Option<u32>, bytes: Option<u64>) -> StateRefusedStatus {
        StateRefusedStatus { times: 2, reason: reason.into(), minor, bytes }
    }

    #[test]
    fn the_option_is_named_that_the_servers_words_or_the_size_point_to() {
        let marshal = "IDL:omg.org/CORBA/MARSHAL:1.0";
        let named = |refused, is_to_take| option(&refused, is_to_take).unwrap_or_default();
        let too_long = refused(marshal, Some(0x4154_0045), Some(1_900_000));
        assert!(named(too_long, false).contains("-ORBgiopMaxMsgSize 268435456"));
        let huge = refused(marshal, Some(0x4154_000C), Some(400 << 20));
        assert!(named(huge, false).contains("-ORBgiopMaxMsgSize 1073741824"));
        let ended = |bytes| refused("it ended the connection", None, Some(bytes));
        assert!(named(ended(3 << 20), true).contains("-ORBgiopMaxMsgSize"));
        let eclipse = named(ended(300_000), true);
        assert!(eclipse.contains("ORBMaximumReadByteBufferSize"), "{eclipse}");
        assert_eq!(named(ended(1_000), true), "");
        assert!(named(ended(1_900_000), false).contains("-ORBgiopMaxMsgSize"));
        let unknown = refused("it sent MessageError", None, None);
        assert!(named(unknown, false).contains("if it is omniORB"));
        // The end of a message that came too soon is no matter of its size.
        assert_eq!(named(refused(marshal, Some(0x4154_000A), Some(1_000)), false), "");
        let memory = refused("IDL:omg.org/CORBA/NO_MEMORY:1.0", Some(0), None);
        assert!(named(memory, false).contains("-Xmx"));
        assert_eq!(named(refused("IDL:omg.org/CORBA/NoStateAvailable:1.0", None, None), false), "");
    }

    #[test]
    fn an_orb_is_known_by_its_minor_codes() {
        assert_eq!(vendor(0x4154_000C), Some("omniORB"));
        assert_eq!(vendor(0x4A43_0001), Some("JacORB"));
        assert_eq!(vendor(0x5441_0085), Some("TAO"));
        assert_eq!((vendor(0x4F4D_0001), vendor(0)), (None, None));
    }
}
