//! The beginning of some octets, in place: for what is shown to people.
//!
//! What it is not: the octets. Invariant: it allocates nothing.

/// Octets of an operation's name, an object key or a client's id that are remembered.
pub(crate) const SHORT_BYTES_MAX: usize = 40;

/// The beginning of some octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Short {
    /// How many there were.
    pub total: u32,
    octets: [u8; SHORT_BYTES_MAX],
}

impl Short {
    pub(crate) const EMPTY: Self = Self { total: 0, octets: [0; SHORT_BYTES_MAX] };

    /// The beginning of `octets`.
    #[must_use]
    pub fn new(octets: &[u8]) -> Self {
        let mut short = Self::EMPTY;
        short.total = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        let kept = octets.len().min(SHORT_BYTES_MAX);
        short.octets[..kept].copy_from_slice(&octets[..kept]);
        short
    }

    /// What is remembered of them.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..self.total as usize).unwrap_or(&self.octets)
    }
}
