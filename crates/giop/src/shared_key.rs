//! Object keys on a port that several servers share: in front stands the name of whose it is.
//!
//! What it is not: a list of the names that there are. Invariant: a key that was made here is split
//! into the same name and key again, whatever octets the key has; a name has no `/`.

use alloc::vec::Vec;

/// What such a key begins with; behind it stand the name, a `/`, and the server's own object key.
pub const SHARED_KEY_PREFIX: &[u8] = b"QRB/";

/// The object key under which clients find what the server of `name` has under `key`.
#[must_use]
pub fn shared_key(name: &str, key: &[u8]) -> Vec<u8> {
    debug_assert!(!name.contains('/'), "a name with a slash cannot be split off again");
    [SHARED_KEY_PREFIX, name.as_bytes(), b"/", key].concat()
}

/// The name, and the server's own object key; `None` for a key that was not made here.
#[must_use]
pub fn split_shared_key(key: &[u8]) -> Option<(&str, &[u8])> {
    let rest = key.strip_prefix(SHARED_KEY_PREFIX)?;
    let slash = rest.iter().position(|octet| *octet == b'/')?;
    let (name, own) = rest.split_at_checked(slash)?;
    let name = core::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    Some((name, own.strip_prefix(b"/")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_as_it_was_whatever_octets_it_has() {
        for key in [&b"bank"[..], b"", b"/a/b/", b"QRB/x/y", &[0, 255, b'/', 1]] {
            let shared = shared_key("plant.bank-1", key);
            assert_eq!(split_shared_key(&shared), Some(("plant.bank-1", key)));
        }
    }

    #[test]
    fn other_keys_are_nobodys() {
        for key in [&b""[..], b"QRB", b"QRB/", b"QRB/bank", b"QRB//key", b"bank", b"QRB/\xff/key"] {
            assert_eq!(split_shared_key(key), None, "{key:?}");
        }
    }
}
