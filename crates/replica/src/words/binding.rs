//! What a client's name of a request (FT_REQUEST) is bound to: target, operation, arguments and
//! sender of the first request that came under it.
//!
//! What it is not: a part of the name. Names are alike whatever they are bound to, so that a
//! stranger's request finds the one whose name it has, and is refused.
//! Invariant: gateways compute it from the message and the connection alone, and put it into the
//! order; what follows from it is decided there, alike at all members.

use crate::words::wire::{InvalidEnvelope, Reader, Writer};
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

/// What a request is bound to, in digests that nobody can choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bound {
    /// Who sent it: the address, as one of IPv6, or a digest of the certificate.
    pub subject: [u8; 16],
    /// Digest of the object key and the operation.
    pub call: [u8; 16],
    /// Digest of the arguments, as they were marshalled.
    pub body: [u8; 16],
}

impl Bound {
    /// Whether a request that is bound so repeats the one that is bound as `self`. A client may
    /// marshal again, with other padding; a stranger who has seen its name may not.
    #[must_use]
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        self.call == other.call && (self.body == other.body || self.subject == other.subject)
    }
}

/// A [`Bound`] in a name, where it makes no difference: all are equal.
#[derive(Clone, Default)]
pub struct Binding(Arc<Bound>);

impl From<Bound> for Binding {
    fn from(bound: Bound) -> Self {
        Self(Arc::new(bound))
    }
}

impl core::ops::Deref for Binding {
    type Target = Bound;

    fn deref(&self) -> &Bound {
        &self.0
    }
}

impl PartialEq for Binding {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Binding {}

impl PartialOrd for Binding {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Binding {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for Binding {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(crate) fn put_bound(w: &mut Writer, bound: &Bound) {
    let Bound { subject, call, body } = bound;
    [subject, call, body].into_iter().for_each(|part| w.octets16(part));
}

pub(crate) fn take_bound(r: &mut Reader) -> Result<Bound, InvalidEnvelope> {
    Ok(Bound {
        subject: r.octets16("subject")?,
        call: r.octets16("call digest")?,
        body: r.octets16("body digest")?,
    })
}
