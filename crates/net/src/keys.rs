//! Keys for one purpose each, derived from the domain keys.
//!
//! Invariant: what was authenticated for one purpose is of no use for another, because the purpose
//! is part of the derivation.

use ring::hmac;

/// One key for each of the domain keys, in their order.
pub(crate) fn derived<'a>(
    purpose: &[u8],
    domain_keys: impl Iterator<Item = &'a [u8; 32]>,
) -> Vec<hmac::Key> {
    let derive = |key: &[u8; 32]| {
        let domain = hmac::Key::new(hmac::HMAC_SHA256, key);
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&domain, purpose).as_ref())
    };
    domain_keys.map(derive).collect()
}
